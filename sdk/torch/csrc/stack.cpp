// stack along a new last dim, as one cat.
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/stack_native.h>
#include <torch/library.h>

#include <algorithm>

#include "bridge.h"
#include "call.h"

namespace torch_graft {

namespace {

// Whether all are tensors of one device, dtype and shape, and can have one dim more.
bool stack_alike(at::TensorList tensors) {
  const at::Tensor &first = tensors[0];
  return std::all_of(tensors.begin(), tensors.end(), [&first](const at::Tensor &tensor) {
    return tensor.defined() && is_ours(tensor) && tensor.device() == first.device() && !tensor._is_zerotensor() &&
           tensor.layout() == c10::kStrided && tensor.scalar_type() == first.scalar_type() &&
           tensor.dim() < GRAFT_MAX_DIMS && tensor.sizes() == first.sizes();
  });
}

// Each with a last dim of size 1.
graft_value stacked(CallFrame &frame, at::TensorList tensors) {
  const size_t rank = static_cast<size_t>(tensors[0].dim()), one_more = rank + 1;
  int64_t *sizes = frame.list<int64_t>(one_more), *strides = frame.list<int64_t>(one_more * tensors.size());
  graft_tensor **items = frame.list<graft_tensor *>(tensors.size());
  std::copy_n(tensors[0].sizes().data(), rank, sizes);
  sizes[rank] = 1;
  for (size_t i = 0; i < tensors.size(); i++, strides += one_more) {
    std::copy_n(tensors[i].strides().data(), rank, strides);
    strides[rank] = 1;
    items[i] = frame.borrow_as(tensors[i], {sizes, one_more}, {strides, one_more});
  }
  return graft_value_tensors(items, static_cast<uint32_t>(tensors.size()));
}

// Along a new last dim, as of numbers, PyTorch's makes a view of each tensor, for cat, which takes longer than cat
// itself; along others it is one cat and one view.
at::Tensor stack(at::TensorList tensors, int64_t dim) {
  const int64_t rank = tensors.empty() ? 0 : tensors[0].dim();
  if (tensors.empty() || at::maybe_wrap_dim(dim, rank + 1) < rank || !stack_alike(tensors))
    return at::native::stack(tensors, dim);
  CallFrame frame;
  frame.add_arg(stacked(frame, tensors));
  frame.add_arg(graft_value_int(rank));
  frame.reserve_outs(1);
  const graft_status status = graft_call(GRAFT_OP_CAT, frame.args, frame.nargs, frame.outs, frame.nouts);
  if (C10_UNLIKELY(status != GRAFT_OK)) return at::native::stack(tensors, dim);
  return wrap(std::exchange(frame.outs[0], nullptr));
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("stack", TORCH_FN(stack));
}

}  // namespace torch_graft
