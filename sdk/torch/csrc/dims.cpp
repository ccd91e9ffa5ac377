// Tensors of more dimensions than libgraft has (GRAFT_MAX_DIMS). PyTorch's views of them cost nothing and stay
// PyTorch's. Copies merge what dimensions they can and go part by part over the rest, elementwise ops see one
// dimension, and other ops are left to the CPU.
#include <ATen/ExpandUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/native/Resize.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "bridge.h"

namespace torch_graft {

// --- copies ---

namespace {

// Two tensors of one shape, as views with as few dimensions as both allow, outermost first.
std::pair<at::Tensor, at::Tensor> merged(const at::Tensor &to, const at::Tensor &from) {
  std::vector<int64_t> order(static_cast<size_t>(to.dim()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return to.stride(a) > to.stride(b); });
  std::vector<int64_t> sizes, to_strides, from_strides;
  for (int64_t d : order) {
    if (to.size(d) == 1) continue;
    const bool fits = !sizes.empty() && to_strides.back() == to.size(d) * to.stride(d) &&
                      from_strides.back() == to.size(d) * from.stride(d);
    if (!fits) {
      sizes.push_back(1);
      to_strides.push_back(0);
      from_strides.push_back(0);
    }
    sizes.back() *= to.size(d);
    to_strides.back() = to.stride(d);
    from_strides.back() = from.stride(d);
  }
  return {to.as_strided(sizes, to_strides), from.as_strided(sizes, from_strides)};
}

void copy_parts(const at::Tensor &to, const at::Tensor &from, bool non_blocking) {
  if (!has_many_dims(to)) return copy_values(to, from, non_blocking);
  for (int64_t i = 0; i < to.size(0); i++) copy_parts(to.select(0, i), from.select(0, i), non_blocking);
}

}  // namespace

void copy_many_dims(const at::Tensor &to, const at::Tensor &from, bool non_blocking) {
  if (to.numel() == 0) return;
  auto [t, f] = merged(to, from.expand_as(to));
  copy_parts(t, f, non_blocking);
}

// --- ops ---

namespace {

bool is_written(const OpRow &row, size_t place) {
  return std::strchr(row.outs, static_cast<int>('a' + place)) != nullptr;
}

// Whether what is written gets the shape of the inputs; else it has its own.
bool has_outs(const OpRow &row) {
  return is_out_form(row) && !std::strchr(row.args, '#');
}

// Where on the stack tensors with dimensions are.
std::vector<size_t> places_of_tensors(torch::jit::Stack *stack, size_t nargs) {
  std::vector<size_t> places;
  for (size_t i = 0; i < nargs; i++) {
    const c10::IValue &value = torch::jit::peek(*stack, i, nargs);
    if (value.isTensor() && value.toTensor().defined() && value.toTensor().dim() > 0) places.push_back(i);
  }
  return places;
}

// The shape that the inputs broadcast to; a tensor that is written in place has it already.
std::vector<int64_t> shape_of_inputs(const OpRow &row, torch::jit::Stack *stack, size_t nargs) {
  std::vector<int64_t> sizes;
  for (size_t place : places_of_tensors(stack, nargs)) {
    if (!has_outs(row) || !is_written(row, place))
      sizes = at::infer_size(sizes, torch::jit::peek(*stack, place, nargs).toTensor().sizes());
  }
  return sizes;
}

// An elementwise op, done on tensors of one dimension that hold the elements in their order.
void run_flat(const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const size_t nargs = op.schema().arguments().size(), nreturns = op.schema().returns().size();
  const std::vector<int64_t> sizes = shape_of_inputs(row, stack, nargs);
  struct Written {
    at::Tensor given, flat;
  };
  std::vector<Written> all_written;
  for (size_t place : places_of_tensors(stack, nargs)) {
    c10::IValue &value = torch::jit::peek(*stack, place, nargs);
    const at::Tensor given = value.toTensor();
    if (is_written(row, place)) {
      if (has_outs(row)) at::native::resize_output(given, sizes);
      TORCH_CHECK(given.sizes() == sizes, "output with shape ", given.sizes(), " doesn't match the broadcast shape ",
                  c10::IntArrayRef(sizes));
    }
    value = given.expand(sizes).reshape({-1});
    if (is_written(row, place)) all_written.push_back({given, value.toTensor()});
  }
  run(row, op, stack);
  for (const Written &written : all_written) {
    if (!written.flat.is_alias_of(written.given)) written.given.copy_(written.flat.view(sizes));
  }
  for (size_t i = 0; i < nreturns; i++) {
    c10::IValue &result = torch::jit::peek(*stack, i, nreturns);
    auto written = std::find_if(all_written.begin(), all_written.end(),
                                [&](const Written &w) { return w.flat.is_same(result.toTensor()); });
    if (written != all_written.end()) {
      result = written->given;
    } else if (result.toTensor().defined()) {
      result = result.toTensor().view(sizes);
    }
  }
}

}  // namespace

void run_many_dims(const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  if (row.elementwise) return run_flat(row, op, stack);
  TORCH_CHECK_NOT_IMPLEMENTED(!fallback_forbidden(), "graft: aten::", row.name,
                              " was given a tensor of more dimensions than Graft's devices take (", GRAFT_MAX_DIMS,
                              "), and GRAFT_FALLBACK=error forbids running it on the CPU; merge some with reshape()");
  fallback(op, stack);
}

}  // namespace torch_graft
