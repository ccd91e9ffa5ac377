// Root mean square norms of sizes that are open while PyTorch traces. Its own hands them to _fused_rms_norm, which
// takes numbers alone, as if they were: what is traced has the addresses of symbols for sizes.
#include <ATen/native/layer_norm.h>
#include <ATen/ops/rms_norm_ops.h>
#include <ATen/ops/rsqrt.h>
#include <torch/library.h>

#include <limits>

#include "bridge.h"

namespace torch_graft {
namespace {

double smallest_step(at::ScalarType dtype) {
  return dtype == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

// As PyTorch composes it for the CPU.
at::Tensor rms_norm(const at::Tensor &input, c10::SymIntArrayRef shape, const std::optional<at::Tensor> &weight,
                    std::optional<double> eps) {
  if (c10::asIntArrayRefSlowOpt(shape)) {
    return at::_ops::rms_norm::redispatch(c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), input, shape, weight,
                                          eps);
  }
  bool weighted = weight && weight->defined();
  at::native::_check_rms_norm_inputs_symint(input, shape, weighted ? *weight : at::Tensor());
  std::vector<int64_t> dims;
  for (int64_t d = -static_cast<int64_t>(shape.size()); d < 0; d++) dims.push_back(d);
  at::Tensor x = wide(input);
  double least = eps ? *eps : smallest_step(x.scalar_type());
  at::Tensor result = x.mul(at::rsqrt(x.square().mean(dims, /*keepdim=*/true).add(least)));
  return (weighted ? result.mul(*weight) : result).to(input.scalar_type());
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) {
  m.impl("rms_norm", TORCH_FN(rms_norm));
}

}  // namespace torch_graft
