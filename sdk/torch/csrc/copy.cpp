// Copies: between the device and the CPU, inside a device, and between devices of any plugins. One call of libgraft
// does dtypes, strides, broadcasting and the conjugate and negative bits of both sides.
#include <ATen/native/Resize.h>
#include <ATen/ops/eq.h>
#include <torch/library.h>

#include "bridge.h"

namespace torch_graft {

void copy_values(const at::Tensor &to, const at::Tensor &from, bool non_blocking) {
  if (has_many_dims(to) || has_many_dims(from)) return copy_many_dims(to, from, non_blocking);
  if (!is_ours(to)) to.mutable_data_ptr();  // a lazy clone gets memory of its own before it is written to
  graft_tensor_space to_space, from_space;
  graft_tensor *t = borrow(&to_space, to);
  graft_tensor *f = borrow(&from_space, from);
  // A source in pageable memory is staged before the call returns; only pinned memory is left to the device.
  check(non_blocking && is_ours(to) != is_ours(from) ? graft_tensor_copy_async(t, f) : graft_tensor_copy(t, f));
}

namespace {

at::Tensor copy_from(const at::Tensor &self, const at::Tensor &dst, bool non_blocking) {
  copy_values(dst, self, non_blocking);
  return dst;
}

at::Tensor copy_from_and_resize(const at::Tensor &self, const at::Tensor &dst) {
  at::native::resize_output(dst, self.sizes());
  copy_values(dst, self, false);
  return dst;
}

c10::Scalar local_scalar_dense(const at::Tensor &self) {
  TORCH_CHECK(self.numel() == 1, "a Tensor with ", self.numel(), " elements cannot be converted to Scalar");
  graft_tensor_space space;
  graft_scalar value;
  const at::Tensor one = has_many_dims(self) ? self.as_strided({}, {}) : self;
  check(graft_tensor_item(borrow(&space, one), &value));
  switch (value.dtype) {
    case GRAFT_BOOL: return c10::Scalar(value.value.i != 0);
    case GRAFT_I64: return c10::Scalar(value.value.i);
    case GRAFT_U64: return c10::Scalar(static_cast<uint64_t>(value.value.i));
    case GRAFT_F64: return c10::Scalar(value.value.f);
    default: return c10::Scalar(c10::complex<double>(value.value.c[0], value.value.c[1]));
  }
}

bool equal(const at::Tensor &self, const at::Tensor &other) {
  TORCH_CHECK(self.scalar_type() == other.scalar_type(), "Expected object of data type ", self.scalar_type(),
              " but got data type ", other.scalar_type(), " for argument 'other' in call to equal");
  TORCH_CHECK(self.device() == other.device(), "equal: expected both tensors on one device, got ", self.device(),
              " and ", other.device());
  return self.sizes() == other.sizes() && at::eq(self, other).all().item<bool>();
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("equal", TORCH_FN(equal));
}

// The bits are libgraft's to honour; resolving them first would copy, which would resolve them, and so on.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
  m.impl("_copy_from_and_resize", torch::CppFunction::makeFallthrough());
}

}  // namespace torch_graft
