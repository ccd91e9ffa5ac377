// Trains a small network on a Graft device, in C++ and without Python: two interleaved spirals are told apart.
//
//   train_mlp [DEVICE]   the device's index, 0 if none is given
#include <torch_graft.h>

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace {

// Points of two spirals, and which one each lies on.
std::pair<torch::Tensor, torch::Tensor> spirals(int64_t count) {
  torch::Tensor which = torch::arange(count) % 2;
  torch::Tensor radius = torch::linspace(0.2, 1, count);
  torch::Tensor angle = 7 * radius + 3.14159265 * which;
  torch::Tensor points = torch::stack({radius * angle.cos(), radius * angle.sin()}, 1);
  return {points + 0.01 * torch::randn_like(points), which};
}

}  // namespace

int main(int argc, char **argv) {
  torch::manual_seed(0);
  const torch::Device device = torch_graft::device(static_cast<c10::DeviceIndex>(argc > 1 ? std::atoi(argv[1]) : 0));
  auto [points, which] = spirals(512);
  points = points.to(device);
  which = which.to(device);

  torch::nn::Sequential model(torch::nn::Linear(2, 64), torch::nn::Tanh(), torch::nn::Linear(64, 64), torch::nn::Tanh(),
                              torch::nn::Linear(64, 2));
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.01));
  for (int step = 0; step <= 200; step++) {
    optimizer.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(model->forward(points), which);
    loss.backward();
    optimizer.step();
    if (step % 50 == 0) std::printf("step %3d: loss %.4f\n", step, loss.item<double>());
  }
  const double right = (model->forward(points).argmax(1) == which).to(torch::kFloat).mean().item<double>();
  std::printf("%.1f %% right on %s\n", 100 * right, torch_graft::devices()[device.index()].text.c_str());
  for (const auto &row : torch_graft::fallbacks()) std::printf("%s left the device\n", row.op.c_str());
  return right > 0.95 ? 0 : 1;
}
