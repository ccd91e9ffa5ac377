// Fake quantization with a scale and a zero point that are tensors, and are learned: of what fakes with numbers.
#include <ATen/ops/_fake_quantize_learnable_per_channel_affine_native.h>
#include <ATen/ops/_fake_quantize_learnable_per_tensor_affine_native.h>
#include <ATen/ops/fake_quantize_per_tensor_affine_cachemask.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <torch/library.h>

#include "bridge.h"

namespace torch_graft {

namespace {

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

std::tuple<at::Tensor, at::Tensor> fake_tensor_qparams(const at::Tensor &self, const at::Tensor &scale,
                                                       const at::Tensor &zero_point, const at::Tensor &enabled,
                                                       int64_t quant_min, int64_t quant_max) {
  if (!enabled.ne(0).item<bool>()) return {self.clone(), at::ones_like(self, at::kBool)};
  return at::fake_quantize_per_tensor_affine_cachemask(self, scale.item<double>(), zero_point.item<int64_t>(),
                                                       quant_min, quant_max);
}

// With q = zero_point + round(x / scale): where q was cut off, the result is (limit - zero_point) * scale, and x counts
// for nothing; elsewhere x passes through, and the scale has what rounding took. Scale and zero point broadcast.
Gradients gradients(const at::Tensor &grad, const at::Tensor &self, const at::Tensor &scale, const at::Tensor &rounded,
                    int64_t quant_min, int64_t quant_max, double factor) {
  at::Tensor places = self.div(scale).round_().add_(rounded), kept = places.clamp(quant_min, quant_max);
  at::Tensor inside = places.eq(kept);
  at::Tensor none = at::zeros({}, grad.options());
  at::Tensor of_scale = kept.sub(rounded).sub_(at::where(inside, self.div(scale), none)).mul_(grad).mul_(factor);
  at::Tensor of_zero = at::where(inside, none, grad.mul(scale).mul_(-factor));
  return {at::where(inside, grad, none), of_scale, of_zero};
}

Gradients learnable_tensor_backward(const at::Tensor &grad, const at::Tensor &self, const at::Tensor &scale,
                                    const at::Tensor &zero_point, int64_t quant_min, int64_t quant_max, double factor) {
  at::Tensor rounded = zero_point.reshape({}).add(0.5).floor_().clamp_(quant_min, quant_max);
  auto [x, s, z] = gradients(grad, self, scale.reshape({}), rounded, quant_min, quant_max, factor);
  return {x, s.sum().unsqueeze(0), z.sum().unsqueeze(0)};
}

Gradients learnable_channel_backward(const at::Tensor &grad, const at::Tensor &self, const at::Tensor &scale,
                                     const at::Tensor &zero_point, int64_t axis, int64_t quant_min, int64_t quant_max,
                                     double factor) {
  std::vector<int64_t> shape(self.dim(), 1), others;
  shape[axis] = -1;
  for (int64_t d = 0; d < self.dim(); d++)
    if (d != axis) others.push_back(d);
  at::Tensor rounded = zero_point.add(0.5).floor_().clamp_(quant_min, quant_max);
  auto [x, s, z] = gradients(grad, self, scale.reshape(shape), rounded.reshape(shape), quant_min, quant_max, factor);
  return {x, others.empty() ? s : s.sum(others), others.empty() ? z : z.sum(others)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", TORCH_FN(fake_tensor_qparams));
  m.impl("_fake_quantize_learnable_per_tensor_affine",
         TORCH_FN(at::native::_fake_quantize_learnable_per_tensor_affine));
  m.impl("_fake_quantize_learnable_per_tensor_affine_backward", TORCH_FN(learnable_tensor_backward));
  m.impl("_fake_quantize_learnable_per_channel_affine",
         TORCH_FN(at::native::_fake_quantize_learnable_per_channel_affine));
  m.impl("_fake_quantize_learnable_per_channel_affine_backward", TORCH_FN(learnable_channel_backward));
}

}  // namespace torch_graft
