// What PyTorch registers for the CPU and CUDA alone though it serves any device: made of other overloads, or a question
// about the tensor itself, which a copy on the CPU could not answer.
#include <ATen/EmptyTensor.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/fill_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/rsub_native.h>
#include <torch/library.h>

#include "bridge.h"

namespace torch_graft {

namespace {

at::Tensor &fill_(at::Tensor &self, const at::Tensor &value) {
  return at::native::fill_(self, value);
}

at::Tensor rsub(const at::Tensor &self, const at::Tensor &other, const at::Scalar &alpha) {
  return at::native::rsub(self, other, alpha);
}

at::Tensor &bernoulli_out(const at::Tensor &self, std::optional<at::Generator> generator, at::Tensor &out) {
  at::native::resize_output(out, self.sizes());
  return out.bernoulli_(self, std::move(generator));
}

at::Tensor &eye_out(int64_t n, at::Tensor &out) {
  return at::eye_out(out, n, n);
}

at::Tensor &conj_physical_out(const at::Tensor &self, at::Tensor &out) {
  at::native::resize_output(out, self.sizes());
  return out.copy_(self.conj());
}

at::Tensor &conj_physical_(at::Tensor &self) {
  return self.is_complex() ? self.copy_(self.conj()) : self;
}

// Zeros without memory, which forward-mode AD has for tangents that are not given.
at::Tensor efficient_zeros(at::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                           std::optional<c10::Device> device, std::optional<bool>) {
  c10::Device where = device.value_or(c10::Device(c10::kPrivateUse1));
  if (!where.has_index()) where.set_index(current_device());
  at::native::ZeroTensorAllocator allocator(where);
  c10::DispatchKeySet keys({c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor});
  return at::detail::empty_generic(size, &allocator, keys, c10::dtype_or_default(dtype), std::nullopt);
}

// Whether a padding mask could become a nested tensor, which Graft has not: nn.TransformerEncoder then keeps the mask.
bool fits_nested(const at::Tensor &, const at::Tensor &) {
  return false;
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("fill_.Tensor", TORCH_FN(fill_));
  m.impl("rsub.Tensor", TORCH_FN(rsub));
  m.impl("eye.out", TORCH_FN(eye_out));
  m.impl("conj_physical.out", TORCH_FN(conj_physical_out));
  m.impl("conj_physical_", TORCH_FN(conj_physical_));
  m.impl("bernoulli.out", TORCH_FN(bernoulli_out));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
  m.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(fits_nested));
}

}  // namespace torch_graft
