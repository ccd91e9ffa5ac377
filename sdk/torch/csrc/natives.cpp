// What PyTorch registers for the CPU and CUDA alone though it serves any device: made of other overloads, or a question
// about the tensor itself, which a copy on the CPU could not answer.
#include <ATen/EmptyTensor.h>
#include <ATen/ExpandUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/fill_native.h>
#include <ATen/ops/is_set_to_native.h>
#include <ATen/ops/mode.h>
#include <ATen/ops/rsub_native.h>
#include <ATen/ops/searchsorted.h>
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

// --- counting ---

at::Tensor count_nonzero(const at::Tensor &self, at::IntArrayRef dim) {
  return self.ne(0).sum(dim);
}

// Place i of the result comes from the first input whose repetitions end behind i.
at::Tensor repeat_interleave(const at::Tensor &repeats, std::optional<c10::SymInt> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt,
              "repeats has to be Long or Int tensor");
  if (repeats.size(0) == 0) return at::empty_like(repeats);
  TORCH_CHECK(repeats.min().item<int64_t>() >= 0, "repeats can not be negative");
  at::Tensor ends = repeats.cumsum(0);
  int64_t count = ends[-1].item<int64_t>();
  TORCH_CHECK(!output_size || *output_size == count, "allocated size does not match required size");
  return at::searchsorted(ends, at::arange(count, ends.options()), false, true).to(repeats.scalar_type());
}

// PyTorch's own out form asks for a device of the CPU, CUDA or XPU by name.
std::tuple<at::Tensor &, at::Tensor &> mode_out(const at::Tensor &self, int64_t dim, bool keepdim, at::Tensor &values,
                                                at::Tensor &indices) {
  TORCH_CHECK(values.scalar_type() == self.scalar_type(), "expected scalar type '", self.scalar_type(), "' but got '",
              values.scalar_type(), "' for values output");
  TORCH_CHECK(indices.scalar_type() == at::kLong, "expected scalar type '", at::kLong, "' but got '",
              indices.scalar_type(), "' for indices output");
  auto [mode, where] = at::mode(self, dim, keepdim);
  write_result(values, mode);
  write_result(indices, where);
  return std::forward_as_tuple(values, indices);
}

// --- normal numbers about means, with deviations, of tensors ---

// `mean` is a number or a tensor.
template <typename T>
at::Tensor &normal_to(at::Tensor &out, const T &mean, const at::Tensor &deviation,
                      std::optional<at::Generator> generator) {
  TORCH_CHECK(!deviation.is_complex(), "normal expects standard deviation to be non-complex");
  TORCH_CHECK(deviation.numel() == 0 || deviation.min().ge(0).item<bool>(),
              "normal expects all elements of std >= 0.0");
  return out.normal_(0, 1, std::move(generator)).mul_(deviation).add_(mean);
}

at::Tensor &normal_tensor_float_out(const at::Tensor &mean, double deviation, std::optional<at::Generator> generator,
                                    at::Tensor &out) {
  at::native::resize_output(out, mean.sizes());
  return out.normal_(0, deviation, std::move(generator)).add_(mean);
}
at::Tensor &normal_float_tensor_out(double mean, const at::Tensor &deviation, std::optional<at::Generator> generator,
                                    at::Tensor &out) {
  at::native::resize_output(out, deviation.sizes());
  return normal_to(out, mean, deviation, std::move(generator));
}
at::Tensor &normal_tensors_out(const at::Tensor &mean, const at::Tensor &deviation,
                               std::optional<at::Generator> generator, at::Tensor &out) {
  at::native::resize_output(out, at::infer_size(mean.sizes(), deviation.sizes()));
  return normal_to(out, mean, deviation, std::move(generator));
}

at::Tensor normal_tensor_float(const at::Tensor &mean, double deviation, std::optional<at::Generator> generator) {
  at::Tensor out = at::empty_like(mean, at::MemoryFormat::Contiguous);
  return normal_tensor_float_out(mean, deviation, std::move(generator), out);
}
at::Tensor normal_float_tensor(double mean, const at::Tensor &deviation, std::optional<at::Generator> generator) {
  at::Tensor out = at::empty_like(deviation, at::MemoryFormat::Contiguous);
  return normal_float_tensor_out(mean, deviation, std::move(generator), out);
}
at::Tensor normal_tensors(const at::Tensor &mean, const at::Tensor &deviation, std::optional<at::Generator> generator) {
  at::Tensor out = at::empty(at::infer_size(mean.sizes(), deviation.sizes()), mean.options());
  return normal_tensors_out(mean, deviation, std::move(generator), out);
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

// Whether a padding mask could become a nested tensor, which Graft has not: nn.TransformerEncoder then keeps the mask,
// and torch_graft/_transformer.py gives what is padded the values of the nested path.
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
  m.impl("count_nonzero.dim_IntList", TORCH_FN(count_nonzero));
  m.impl("repeat_interleave.Tensor", TORCH_FN(repeat_interleave));
  m.impl("mode.values", TORCH_FN(mode_out));
  m.impl("normal.Tensor_float", TORCH_FN(normal_tensor_float));
  m.impl("normal.Tensor_float_out", TORCH_FN(normal_tensor_float_out));
  m.impl("normal.float_Tensor", TORCH_FN(normal_float_tensor));
  m.impl("normal.float_Tensor_out", TORCH_FN(normal_float_tensor_out));
  m.impl("normal.Tensor_Tensor", TORCH_FN(normal_tensors));
  m.impl("normal.Tensor_Tensor_out", TORCH_FN(normal_tensors_out));
  m.impl("is_set_to", TORCH_FN(at::native::is_set_to));
  m.impl("_efficientzerotensor", TORCH_FN(efficient_zeros));
  m.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(fits_nested));
}

}  // namespace torch_graft
