// graft::rnn_layer and graft::rnn_layer_backward; see rnn_layer.h.
#include "rnn_layer.h"

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include <cstring>
#include <string>
#include <tuple>

#include "graft/abi/op_ids.h"
#include "hot.h"

namespace torch_graft {

namespace {

using at::Tensor;
using std::optional;
using Results = std::tuple<Tensor, Tensor, Tensor, Tensor>;

Results tuple_of(LayerResults r) {
  return {std::move(r[0]), std::move(r[1]), std::move(r[2]), std::move(r[3])};
}

LayerResults array_of(Results r) {
  return {std::move(std::get<0>(r)), std::move(std::get<1>(r)), std::move(std::get<2>(r)), std::move(std::get<3>(r))};
}

// --- calls of libgraft ---

LayerResults call(uint32_t op_id, std::initializer_list<const Tensor *> tensors, const char *mode,
                  std::initializer_list<bool> flags, const c10::OperatorHandle *op = nullptr) {
  CallFrame frame;
  auto add = [&](const auto &argument) {
    graft_value value = {};
    set(frame, value, argument);
    frame.add_arg(value);
  };
  for (const Tensor *tensor : tensors) {
    if (tensor->defined())
      add(*tensor);
    else
      frame.add_arg({});
  }
  if (op) check_same_device(frame.tensors(), *op);
  graft_value name = {};
  name.kind = GRAFT_VALUE_STR;
  name.as.str = mode;
  frame.add_arg(name);
  for (bool flag : flags) add(flag);
  LayerResults outs;
  frame.reserve_outs(outs.size());
  check(graft_call(op_id, frame.args, frame.nargs, frame.outs, frame.nouts));
  for (size_t i = 0; i < outs.size(); i++) {
    graft_tensor *out = std::exchange(frame.outs[i], nullptr);
    if (out) outs[i] = wrap(out);
  }
  return outs;
}

LayerResults call_layer(const Layer &l, bool train, const c10::OperatorHandle *op = nullptr) {
  return call(GRAFT_OP_RNN_LAYER, {&l.gates, &l.state, &l.cell, &l.weight, &l.bias}, l.mode, {l.reverse, train}, op);
}

LayerResults call_backward(const Layer &l, const Tensor &of_output, const Tensor &of_state, const Tensor &of_cell,
                           const Tensor &output, const Tensor &reserve, const c10::OperatorHandle *op = nullptr) {
  return call(GRAFT_OP_RNN_LAYER_BACKWARD,
              {&of_output, &of_state, &of_cell, &output, &l.state, &l.cell, &l.weight, &reserve}, l.mode, {l.reverse},
              op);
}

// --- ops of PyTorch's dispatcher ---

Results layer(const Tensor &gates, const Tensor &hx, const optional<Tensor> &cx, const Tensor &weight,
              const optional<Tensor> &bias, c10::string_view mode, bool reverse, bool train);
Results layer_backward(const optional<Tensor> &grad_output, const optional<Tensor> &grad_hy,
                       const optional<Tensor> &grad_cy, const Tensor &output, const Tensor &hx,
                       const optional<Tensor> &cx, const Tensor &weight, const optional<Tensor> &reserve,
                       c10::string_view mode, bool reverse);

const auto &layer_op() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("graft::rnn_layer", "").typed<decltype(layer)>();
  return op;
}

const auto &backward_op() {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("graft::rnn_layer_backward", "").typed<decltype(layer_backward)>();
  return op;
}

Results layer(const Tensor &gates, const Tensor &hx, const optional<Tensor> &cx, const Tensor &weight,
              const optional<Tensor> &bias, c10::string_view mode, bool reverse, bool train) {
  const std::string name(mode);
  check_no_nul(name);
  return tuple_of(call_layer({gates, hx, cx.value_or(Tensor()), weight, bias.value_or(Tensor()), name.c_str(), reverse},
                             train, &layer_op()));
}

Results layer_backward(const optional<Tensor> &grad_output, const optional<Tensor> &grad_hy,
                       const optional<Tensor> &grad_cy, const Tensor &output, const Tensor &hx,
                       const optional<Tensor> &cx, const Tensor &weight, const optional<Tensor> &reserve,
                       c10::string_view mode, bool reverse) {
  const std::string name(mode);
  check_no_nul(name);
  return tuple_of(call_backward({Tensor(), hx, cx.value_or(Tensor()), weight, Tensor(), name.c_str(), reverse},
                                grad_output.value_or(Tensor()), grad_hy.value_or(Tensor()), grad_cy.value_or(Tensor()),
                                output, reserve.value_or(Tensor()), &backward_op()));
}

// How many parts a row of the gates and of the reserve has.
std::pair<int64_t, int64_t> parts_of(c10::string_view mode) {
  if (mode == "lstm") return {4, 5};
  if (mode == "gru") return {3, 4};
  return {1, 0};
}

Tensor empty_rows(const Tensor &like, const Tensor &state, int64_t parts) {
  return at::empty_symint({like.sym_size(0), state.sym_size(0), parts * state.sym_size(1)}, like.options());
}

Tensor empty_as(const Tensor &state) {
  return at::empty_symint(state.sym_sizes(), state.options());
}

// Meta functions; libgraft's own (graft_infer) would fix sizes that are open.
Results layer_meta(const Tensor &gates, const Tensor &hx, const optional<Tensor> &cx, const Tensor &,
                   const optional<Tensor> &, c10::string_view mode, bool, bool train) {
  const int64_t kept = parts_of(mode).second;
  return {empty_rows(gates, hx, 1), empty_as(hx), cx ? empty_as(hx) : Tensor(),
          train && kept ? empty_rows(gates, hx, kept) : Tensor()};
}

Results layer_backward_meta(const optional<Tensor> &, const optional<Tensor> &, const optional<Tensor> &,
                            const Tensor &output, const Tensor &hx, const optional<Tensor> &cx, const Tensor &,
                            const optional<Tensor> &, c10::string_view mode, bool) {
  const int64_t gates = parts_of(mode).first;
  return {empty_rows(output, hx, gates), mode == "gru" ? empty_rows(output, hx, gates) : Tensor(), empty_as(hx),
          cx ? empty_as(hx) : Tensor()};
}

std::function<bool(const Tensor &)> stands_in;

using Traces = c10::impl::TorchDispatchModeKey;

bool is_traced(Traces by) {
  return c10::impl::TorchDispatchModeTLS::get_mode(by).has_value();
}

}  // namespace

LayerResults run_layer(const Layer &l, bool train) {
  if (C10_LIKELY(!c10::impl::dispatch_mode_enabled())) return call_layer(l, train);
  return array_of(layer_op().call(l.gates, l.state, given(l.cell), l.weight, given(l.bias), l.mode, l.reverse, train));
}

LayerResults run_layer_backward(const Layer &l, c10::ArrayRef<Tensor> grads, const Tensor &output,
                                const Tensor &reserve) {
  const Tensor none, &of_cell = grads.size() > 2 ? grads[2] : none;
  if (C10_LIKELY(!c10::impl::dispatch_mode_enabled()))
    return call_backward(l, grads[0], grads[1], of_cell, output, reserve);
  return array_of(backward_op().call(given(grads[0]), given(grads[1]), given(of_cell), output, l.state, given(l.cell),
                                     l.weight, given(reserve), l.mode, l.reverse));
}

// While AOTAutograd traces, modes of the program (checkpointing has some) see what it does.
bool ops_are_watched() {
  if (C10_LIKELY(!c10::impl::dispatch_mode_enabled()) || is_traced(Traces::FUNCTIONAL)) return false;
  return !is_traced(Traces::FAKE) || c10::impl::TorchDispatchModeTLS::any_modes_set(/*skip_infra_modes=*/true);
}

bool is_taken(const Tensor &tensor) {
  const c10::DispatchKeySet of_subclasses = tensor.key_set() & at::kTensorSubclassLike;
  if (C10_LIKELY(of_subclasses.empty())) return true;
  return of_subclasses == c10::DispatchKeySet(c10::DispatchKey::Python) && stands_in && stands_in(tensor);
}

void on_stand_ins(std::function<bool(const Tensor &)> knows) {
  stands_in = std::move(knows);
}

TORCH_LIBRARY_FRAGMENT(graft, m) {
  m.def(
      "rnn_layer(Tensor input_gates, Tensor hx, Tensor? cx, Tensor weight, Tensor? bias, str mode, bool reverse=False, "
      "bool train=False) -> (Tensor output, Tensor hy, Tensor cy, Tensor reserve)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "rnn_layer_backward(Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, Tensor output, Tensor hx, Tensor? cx, "
      "Tensor weight, Tensor? reserve, str mode, bool reverse=False) -> (Tensor grad_input_gates, Tensor "
      "grad_hidden_gates, Tensor grad_hx, Tensor grad_cx)",
      {at::Tag::pt2_compliant_tag});
}
TORCH_LIBRARY_IMPL(graft, PrivateUse1, m) {
  m.impl("rnn_layer", TORCH_FN(layer));
  m.impl("rnn_layer_backward", TORCH_FN(layer_backward));
}
TORCH_LIBRARY_IMPL(graft, Meta, m) {
  m.impl("rnn_layer", TORCH_FN(layer_meta));
  m.impl("rnn_layer_backward", TORCH_FN(layer_backward_meta));
}

}  // namespace torch_graft
