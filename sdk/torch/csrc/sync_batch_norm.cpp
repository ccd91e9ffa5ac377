// torch.nn.SyncBatchNorm: the parts of a batch norm between which processes exchange their statistics. PyTorch has them
// on CUDA alone. Half types are counted in f32.
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/var_mean.h>
#include <torch/library.h>

#include "bridge.h"

namespace torch_graft {
namespace {

using Optional = std::optional<at::Tensor>;

bool is_there(const Optional &x) {
  return x && x->defined();
}

std::vector<int64_t> dims_of_batch(const at::Tensor &x) {
  TORCH_CHECK(x.dim() >= 2, "expected an input of at least 2 dims, the second of channels, but got ", x.sizes());
  return all_but_channels(x);
}

// What is of channels, beside a tensor of as many dims as `like`.
at::Tensor beside(const at::Tensor &channels, const at::Tensor &like) {
  std::vector<int64_t> shape(like.dim(), 1);
  shape[1] = channels.size(0);
  return wide(channels).view(shape);
}

std::tuple<at::Tensor, at::Tensor> stats(const at::Tensor &input, double eps) {
  auto [variance, mean] = at::var_mean(wide(input), dims_of_batch(input), /*correction=*/0);
  return {mean, at::rsqrt(variance.add(eps))};
}

// Of processes with `counts` elements a channel each: mean and invstd are [processes, channels].
std::tuple<at::Tensor, at::Tensor> gathered(const at::Tensor &mean, const at::Tensor &invstd,
                                            const Optional &running_mean, const Optional &running_var, double momentum,
                                            double eps, const at::Tensor &counts) {
  at::Tensor means = wide(mean), each = counts.to(means.scalar_type()).unsqueeze(1), count = each.sum();
  at::Tensor all = means.mul(each).sum(0).div(count);
  at::Tensor variances = wide(invstd).pow(-2).sub(eps).add(means.sub(all).square());
  at::Tensor deviations = variances.mul(each).sum(0);
  move_on(running_mean, all, momentum);
  if (is_there(running_var)) move_on(running_var, deviations.div(count.sub(1)), momentum);
  return {all, at::rsqrt(deviations.div(count).add(eps))};
}

std::tuple<at::Tensor, at::Tensor> gather_with_counts(const at::Tensor &, const at::Tensor &mean,
                                                      const at::Tensor &invstd, const Optional &running_mean,
                                                      const Optional &running_var, double momentum, double eps,
                                                      const at::Tensor &counts) {
  return gathered(mean, invstd, running_mean, running_var, momentum, eps, counts);
}

std::tuple<at::Tensor, at::Tensor> gather(const at::Tensor &, const at::Tensor &mean, const at::Tensor &invstd,
                                          const Optional &running_mean, const Optional &running_var, double momentum,
                                          double eps, int64_t count) {
  at::Tensor counts = mean.new_full({mean.size(0)}, static_cast<double>(count));
  return gathered(mean, invstd, running_mean, running_var, momentum, eps, counts);
}

at::Tensor elemt(const at::Tensor &input, const Optional &weight, const Optional &bias, const at::Tensor &mean,
                 const at::Tensor &invstd, double) {
  at::Tensor scaled = wide(input).sub(beside(mean, input)).mul(beside(invstd, input));
  if (is_there(weight)) scaled = scaled.mul(beside(*weight, input));
  if (is_there(bias)) scaled = scaled.add(beside(*bias, input));
  return scaled.to(input.scalar_type());
}

at::Tensor &elemt_out(const at::Tensor &input, const Optional &weight, const Optional &bias, const at::Tensor &mean,
                      const at::Tensor &invstd, double eps, at::Tensor &out) {
  return write_result(out, elemt(input, weight, bias, mean, invstd, eps));
}

// The sums of grad and of grad * (input - mean), and the gradients of weight and bias.
std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> backward_reduce(
    const at::Tensor &grad, const at::Tensor &input, const at::Tensor &mean, const at::Tensor &invstd,
    const Optional &weight, bool of_input, bool of_weight, bool of_bias) {
  std::vector<int64_t> dims = dims_of_batch(input);
  at::Tensor wide_grad = wide(grad), sum = wide_grad.sum(dims);
  at::Tensor product = wide_grad.mul(wide(input).sub(beside(mean, input))).sum(dims);
  at::ScalarType dtype = is_there(weight) ? weight->scalar_type() : input.scalar_type();
  return {of_input ? sum : at::Tensor(), of_input ? product : at::Tensor(),
          of_weight ? product.mul(wide(invstd)).to(dtype) : at::Tensor(), of_bias ? sum.to(dtype) : at::Tensor()};
}

at::Tensor backward_elemt(const at::Tensor &grad, const at::Tensor &input, const at::Tensor &mean,
                          const at::Tensor &invstd, const Optional &weight, const at::Tensor &sum,
                          const at::Tensor &product, const at::Tensor &counts) {
  at::Tensor count = counts.sum().to(wide(mean).scalar_type()), scale = wide(invstd);
  at::Tensor slope = product.div(count).mul(scale.square());
  if (is_there(weight)) scale = scale.mul(wide(*weight));
  at::Tensor centered = wide(input).sub(beside(mean, input));
  at::Tensor result = wide(grad).sub(beside(sum.div(count), input)).sub(centered.mul(beside(slope, input)));
  return result.mul(beside(scale, input)).to(input.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("batch_norm_stats", TORCH_FN(stats));
  m.impl("batch_norm_gather_stats", TORCH_FN(gather));
  m.impl("batch_norm_gather_stats_with_counts", TORCH_FN(gather_with_counts));
  m.impl("batch_norm_elemt", TORCH_FN(elemt));
  m.impl("batch_norm_elemt.out", TORCH_FN(elemt_out));
  m.impl("batch_norm_backward_reduce", TORCH_FN(backward_reduce));
  m.impl("batch_norm_backward_elemt", TORCH_FN(backward_elemt));
}

}  // namespace torch_graft
