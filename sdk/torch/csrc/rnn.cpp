// LSTM, GRU and Elman networks by layers: graft::rnn_layer takes all steps of a direction in one call, where PyTorch's
// own composition makes several of each step. That composition serves whatever differs: packed sequences, projections,
// tensors of other devices, wrapped ones and those with forward gradients, and modes that want to see each op. What
// torch.compile traces is the layers.
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/gru_native.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/lstm_native.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rnn_relu_native.h>
#include <ATen/ops/rnn_tanh_native.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <string>

#include "graft/abi/op_ids.h"
#include "rnn_layer.h"

namespace torch_graft {

namespace {

using at::Tensor;
using std::optional;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// --- one direction of a layer ---

// The same of ops that have gradients, for gradients of gradients.
variable_list compose(const Layer &l) {
  const int64_t steps = l.gates.size(0);
  const std::string mode = l.mode;
  Tensor state = l.state, cell = l.cell;
  std::vector<Tensor> states(steps);
  for (int64_t n = 0; n < steps; n++) {
    int64_t t = l.reverse ? steps - 1 - n : n;
    Tensor input = l.gates.select(0, t), hidden = at::linear(state, l.weight, given(l.bias));
    if (mode == "lstm") {
      auto gates = (input + hidden).chunk(4, 1);
      cell = gates[1].sigmoid() * cell + gates[0].sigmoid() * gates[2].tanh();
      state = gates[3].sigmoid() * cell.tanh();
    } else if (mode == "gru") {
      auto x = input.chunk(3, 1), h = hidden.chunk(3, 1);
      Tensor update = (x[1] + h[1]).sigmoid(), fresh = (x[2] + (x[0] + h[0]).sigmoid() * h[2]).tanh();
      state = fresh + update * (state - fresh);
    } else {
      state = mode == "tanh" ? (input + hidden).tanh() : (input + hidden).relu();
    }
    states[t] = state;
  }
  return {at::stack(states), state, cell};
}

variable_list gradients_with_graph(const Layer &l, const variable_list &grads) {
  variable_list all = compose(l), outputs, cotangents, inputs;
  const Tensor *arguments[] = {&l.gates, &l.state, &l.cell, &l.weight, &l.bias};
  for (size_t i = 0; i < grads.size(); i++) {
    if (!grads[i].defined() || !all[i].defined() || !all[i].requires_grad()) continue;
    outputs.push_back(all[i]), cotangents.push_back(grads[i]);
  }
  for (const Tensor *argument : arguments) {
    if (argument->defined() && argument->requires_grad()) inputs.push_back(*argument);
  }
  variable_list found, results(std::size(arguments));
  if (!outputs.empty() && !inputs.empty()) {
    found = torch::autograd::grad(outputs, inputs, cotangents, /*retain_graph=*/true, /*create_graph=*/true,
                                  /*allow_unused=*/true);
  }
  size_t next = 0;
  for (size_t i = 0; i < std::size(arguments) && !found.empty(); i++) {
    if (arguments[i]->defined() && arguments[i]->requires_grad()) results[i] = found[next++];
  }
  return results;
}

// Steps begin with the first state and the outputs of all steps but the last: one product of these and the gates'
// gradients, in two parts.
Tensor weight_gradient(const Layer &l, const Tensor &output, const Tensor &gates) {
  // AOTAutograd traces a backward as under the autocast of its forward, where eager mode has none.
  c10::impl::ExcludeDispatchKeyGuard without(c10::DispatchKey::AutocastPrivateUse1);
  const c10::SymInt steps = gates.sym_size(0), begin = l.reverse ? steps - 1 : c10::SymInt(0);
  const int64_t others = l.reverse ? 0 : 1;
  Tensor first = at::mm(gates.select_symint(0, begin).t(), l.state);
  if (steps == 1) return first;
  Tensor rest = gates.narrow_symint(0, others, steps - 1).flatten(0, 1);
  return at::addmm(first, rest.t(), output.narrow_symint(0, 1 - others, steps - 1).flatten(0, 1));
}

struct LayerFunction : torch::autograd::Function<LayerFunction> {
  static variable_list forward(AutogradContext *ctx, const Tensor &gates, const Tensor &state,
                               const optional<Tensor> &cell, const Tensor &weight, const optional<Tensor> &bias,
                               const std::string &mode, bool reverse) {
    Layer l = {gates, state, cell.value_or(Tensor()), weight, bias.value_or(Tensor()), mode.c_str(), reverse};
    auto [output, last, last_cell, reserve] = run_layer(l, true);
    ctx->saved_data["mode"] = mode;
    ctx->saved_data["reverse"] = reverse;
    ctx->set_materialize_grads(false);
    ctx->save_for_backward({l.gates, l.state, l.cell, l.weight, l.bias, output, reserve});
    if (!last_cell.defined()) return {output, last};
    return {output, last, last_cell};
  }

  static variable_list backward(AutogradContext *ctx, const variable_list &grads) {
    const variable_list saved = ctx->get_saved_variables();
    const std::string mode = ctx->saved_data["mode"].toStringRef();
    Layer l = {saved[0], saved[1], saved[2], saved[3], saved[4], mode.c_str(), ctx->saved_data["reverse"].toBool()};
    variable_list results(7);
    bool any = std::any_of(grads.begin(), grads.end(), [](const Tensor &grad) { return grad.defined(); });
    if (any && at::GradMode::is_enabled()) {
      variable_list found = gradients_with_graph(l, grads);
      std::copy(found.begin(), found.end(), results.begin());
    } else if (any) {
      auto [gates, hidden, state, cell] = run_layer_backward(l, grads, saved[5], saved[6]);
      if (!hidden.defined()) hidden = gates;
      results[0] = gates, results[1] = state, results[2] = cell;
      if (l.weight.requires_grad()) results[3] = weight_gradient(l, saved[5], hidden);
      if (l.bias.defined() && l.bias.requires_grad()) results[4] = hidden.sum(at::IntArrayRef({0, 1}));
    }
    return results;
  }
};

variable_list layer(const Layer &l) {
  bool train = false;
  for (const Tensor *tensor : {&l.gates, &l.state, &l.cell, &l.weight, &l.bias})
    train = train || (tensor->defined() && tensor->requires_grad());
  if (train && at::GradMode::is_enabled())
    return LayerFunction::apply(l.gates, l.state, given(l.cell), l.weight, given(l.bias), std::string(l.mode),
                                l.reverse);
  auto [output, last, last_cell, reserve] = run_layer(l, false);
  if (!last_cell.defined()) return {output, last};
  return {output, last, last_cell};
}

// --- networks ---

struct Network {
  const char *mode;
  int64_t gates;
  at::TensorList params;
  bool has_biases;
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first;
  bool keeps_states = false;  // under autocast, in their own dtype

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t params_each() const { return has_biases ? 4 : 2; }
};

bool is_plain(const Tensor &tensor, const Tensor &like) {
  return is_ours(tensor) && tensor.device() == like.device() && tensor.scalar_type() == like.scalar_type() &&
         tensor.layout() == at::kStrided && tensor.sym_numel() != 0 && is_taken(tensor) &&
         !tensor._fw_grad(0).defined();
}

// Whether layers serve it, with states of this dtype; what does not fit is told by PyTorch's own checks.
bool is_served(const Network &n, const Tensor &input, at::TensorList states, at::ScalarType of_states) {
  static const bool known = graft_op_known(GRAFT_OP_RNN_LAYER) && graft_op_known(GRAFT_OP_RNN_LAYER_BACKWARD);
  const int64_t all = n.num_layers * n.directions();
  if (!known || ops_are_watched() || input.dim() != 3 || !input.is_floating_point()) return false;
  if (static_cast<int64_t>(n.params.size()) != all * n.params_each() || !is_plain(input, input)) return false;
  const c10::SymInt batch = input.sym_size(n.batch_first ? 0 : 1);
  const c10::SymInt width = states[0].dim() == 3 ? states[0].sym_size(2) : c10::SymInt(0);
  for (const Tensor &state : states) {
    if (!is_plain(state, state) || state.device() != input.device() || state.scalar_type() != of_states) return false;
    if (state.dim() != 3 || state.sym_size(0) != all || state.sym_size(1) != batch || state.sym_size(2) != width)
      return false;
  }
  for (int64_t i = 0; i < static_cast<int64_t>(n.params.size()); i++) {
    const int64_t place = i % n.params_each();
    const bool later = i >= n.params_each() * n.directions();
    if (!is_plain(n.params[i], input) || n.params[i].sym_size(0) != n.gates * width) return false;
    if (n.params[i].dim() != (place < 2 ? 2 : 1)) return false;
    if (place == 0 && n.params[i].sym_size(1) != (later ? width * n.directions() : input.sym_size(2))) return false;
    if (place == 1 && n.params[i].sym_size(1) != width) return false;
  }
  return true;
}

// The output, and the last states (and cells) of all layers and directions, in the states' dtype. Products of the
// inputs are in the parameters'.
variable_list run(const Network &n, const Tensor &input, at::TensorList states) {
  const at::ScalarType product = n.params[0].scalar_type(), kept = states[0].scalar_type();
  Tensor x = n.batch_first ? input.transpose(0, 1) : input;
  std::vector<Tensor> first = states[0].unbind(0), cells(first.size());
  if (states.size() > 1) cells = states[1].unbind(0);
  std::vector<Tensor> last, last_cells;
  for (int64_t number = 0; number < n.num_layers; number++) {
    std::vector<Tensor> outputs;
    x = x.to(product).contiguous();
    for (int64_t direction = 0; direction < n.directions(); direction++) {
      const int64_t i = number * n.directions() + direction;
      const Tensor *p = &n.params[i * n.params_each()];
      Tensor gates = at::linear(x, p[0], n.has_biases ? optional<Tensor>(p[2]) : std::nullopt).to(kept);
      variable_list outs = layer(
          {gates, first[i], cells[i], p[1].to(kept), n.has_biases ? p[3].to(kept) : Tensor(), n.mode, direction == 1});
      outputs.push_back(outs[0]), last.push_back(outs[1]);
      if (outs.size() > 2) last_cells.push_back(outs[2]);
    }
    x = outputs.size() > 1 ? at::cat(outputs, 2) : outputs[0];
    if (n.dropout != 0 && n.train && number + 1 < n.num_layers) x = at::dropout(x, n.dropout, true);
  }
  variable_list results = {n.batch_first ? x.transpose(0, 1) : x, at::stack(last)};
  if (!last_cells.empty()) results.push_back(at::stack(last_cells));
  return results;
}

constexpr at::DeviceType kDevice = at::DeviceType::PrivateUse1;

// Under autocast all is of the lower precision, as the products and the cells of the composition are; but the CPU keeps
// the states of a GRU, which it adds to, in their own, and so those of an LSTM of an empty batch.
struct Lowered {
  Lowered(const Tensor &x, at::TensorList hx, at::TensorList weights)
      : without(c10::DispatchKey::AutocastPrivateUse1),
        dtype(at::autocast::get_autocast_dtype(kDevice)),
        input(at::autocast::cached_cast(dtype, x, kDevice)),
        states(at::autocast::cached_cast(dtype, hx, kDevice)),
        params(at::autocast::cached_cast(dtype, weights, kDevice)) {}

  // What a sum with a state is of.
  at::ScalarType with(const Tensor &state) const { return at::promote_types(dtype, state.scalar_type()); }

  c10::impl::ExcludeDispatchKeyGuard without;
  at::ScalarType dtype;
  Tensor input;
  std::vector<Tensor> states, params;
};

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor &input, at::TensorList hx, at::TensorList params, bool has_biases,
                                        int64_t num_layers, double dropout, bool train, bool bidirectional,
                                        bool batch_first) {
  if (at::autocast::is_autocast_enabled(kDevice)) {
    Lowered low(input, hx, params);
    auto [output, state, cell] = torch_graft::lstm(low.input, low.states, low.params, has_biases, num_layers, dropout,
                                                   train, bidirectional, batch_first);
    const at::ScalarType dtype = input.numel() ? output.scalar_type() : low.with(hx[1]);
    return {output.to(dtype), state.to(dtype), cell.to(dtype)};
  }
  Network n = {"lstm", 4, params, has_biases, num_layers, dropout, train, bidirectional, batch_first};
  if (hx.size() != 2 || !is_served(n, input, hx, input.scalar_type()))
    return at::native::lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first);
  variable_list outs = run(n, input, hx);
  return {outs[0], outs[1], outs[2]};
}

using Composition = std::tuple<Tensor, Tensor> (*)(const Tensor &, const Tensor &, at::TensorList, bool, int64_t,
                                                   double, bool, bool, bool);

std::tuple<Tensor, Tensor> network(const Network &n, Composition otherwise, const Tensor &input, const Tensor &hx) {
  if (at::autocast::is_autocast_enabled(kDevice)) {
    Lowered low(input, hx, n.params);
    Network lowered = n;
    lowered.params = low.params;
    const at::ScalarType kept = n.keeps_states ? low.with(hx) : low.states[0].scalar_type();
    const Tensor state = hx.to(kept);
    if (is_served(lowered, low.input, state, kept)) {
      variable_list outs = run(lowered, low.input, state);
      return {outs[0], outs[1]};
    }
    auto [output, last] = torch_graft::network(lowered, otherwise, low.input, low.states[0]);
    return {output.to(kept), last.to(kept)};
  }
  if (!is_served(n, input, hx, input.scalar_type()))
    return otherwise(input, hx, n.params, n.has_biases, n.num_layers, n.dropout, n.train, n.bidirectional,
                     n.batch_first);
  variable_list outs = run(n, input, hx);
  return {outs[0], outs[1]};
}

std::tuple<Tensor, Tensor> gru(const Tensor &input, const Tensor &hx, at::TensorList params, bool has_biases,
                               int64_t num_layers, double dropout, bool train, bool bidirectional, bool batch_first) {
  return network({"gru", 3, params, has_biases, num_layers, dropout, train, bidirectional, batch_first, true},
                 &at::native::gru, input, hx);
}

std::tuple<Tensor, Tensor> rnn_tanh(const Tensor &input, const Tensor &hx, at::TensorList params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  return network({"tanh", 1, params, has_biases, num_layers, dropout, train, bidirectional, batch_first},
                 &at::native::rnn_tanh, input, hx);
}

std::tuple<Tensor, Tensor> rnn_relu(const Tensor &input, const Tensor &hx, at::TensorList params, bool has_biases,
                                    int64_t num_layers, double dropout, bool train, bool bidirectional,
                                    bool batch_first) {
  return network({"relu", 1, params, has_biases, num_layers, dropout, train, bidirectional, batch_first},
                 &at::native::rnn_relu, input, hx);
}

}  // namespace

// Under inference mode no autograd key is there.
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("lstm.input", TORCH_FN(lstm));
  m.impl("gru.input", TORCH_FN(gru));
  m.impl("rnn_tanh.input", TORCH_FN(rnn_tanh));
  m.impl("rnn_relu.input", TORCH_FN(rnn_relu));
}
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("lstm.input", TORCH_FN(lstm));
  m.impl("gru.input", TORCH_FN(gru));
  m.impl("rnn_tanh.input", TORCH_FN(rnn_tanh));
  m.impl("rnn_relu.input", TORCH_FN(rnn_relu));
}

}  // namespace torch_graft
