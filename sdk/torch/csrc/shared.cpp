// In-place ops on tensors whose elements share memory, as those of expand() do, for the few that PyTorch lets write
// there: each element of memory becomes what any of its places in the tensor was given.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "bridge.h"

namespace torch_graft {

namespace {

struct Writer {
  const char *name;
  const char *deprecated;  // PyTorch's name of it in its warning, or null
};

constexpr Writer kWriters[] = {
    {"fill_.Scalar", nullptr},
    {"zero_", nullptr},
    {"masked_fill_.Scalar", "masked_fill_"},
    {"masked_fill_.Tensor", "masked_fill_"},
    {"index_fill_.int_Scalar", "index_fill_"},
    {"index_fill_.int_Tensor", "index_fill_"},
};

const Writer *writer_of(const OpRow &row) {
  auto found = std::find_if(std::begin(kWriters), std::end(kWriters),
                            [&](const Writer &writer) { return !std::strcmp(writer.name, row.name); });
  return found == std::end(kWriters) ? nullptr : found;
}

// The bits of the elements, as numbers that are equal where they are.
at::Tensor bits_of(const at::Tensor &tensor) {
  switch (tensor.itemsize()) {
    case 1: return tensor.view(at::kByte);
    case 2: return tensor.view(at::kShort);
    case 4: return tensor.view(at::kInt);
    default: return tensor.view(at::kLong);
  }
}

at::Tensor changed(const at::Tensor &before, const at::Tensor &after) {
  if (before.itemsize() <= 8) return bits_of(after).ne(bits_of(before));
  return bits_of(at::view_as_real(after)).ne(bits_of(at::view_as_real(before))).any(-1);
}

void write_back(at::Tensor to, const at::Tensor &before, at::Tensor after) {
  at::Tensor is_new = changed(before, after);
  for (int64_t d = 0; d < to.dim(); d++) {
    if (to.stride(d) || to.size(d) < 2) continue;
    at::Tensor place = is_new.to(at::kByte).argmax(d, true);
    after = after.gather(d, place);
    is_new = is_new.any(d, true);
    to = to.narrow(d, 0, 1);
  }
  to.copy_(after);
}

}  // namespace

bool run_shared(const OpRow &row, const c10::OperatorHandle &op, torch::jit::Stack *stack) {
  const Writer *writer = writer_of(row);
  if (!writer) return false;
  const size_t nargs = op.schema().arguments().size();
  c10::IValue &argument = torch::jit::peek(*stack, 0, nargs);
  const at::Tensor self = argument.toTensor();
  if (at::has_internal_overlap(self) != at::MemOverlap::Yes) return false;
  if (writer->deprecated) {
    TORCH_WARN("Use of ", writer->deprecated,
               " on expanded tensors is deprecated. Please clone() the tensor before "
               "performing this operation. This also applies to advanced indexing e.g. tensor[mask] = scalar");
  }
  const at::Tensor before = self.contiguous();
  argument = before.clone();
  run(row, op, stack);
  write_back(self, before, torch::jit::pop(*stack).toTensor());
  stack->push_back(self);
  return true;
}

}  // namespace torch_graft
