// Autocast: PyTorch's own lists of what runs in the lower precision, in f32, and in the widest dtype of its inputs.
// What is in no list runs in the dtypes that it is given.
#include <ATen/autocast_mode.h>

namespace torch_graft {

namespace {

using namespace at;  // the lists spell types without one, and not the same types in every version

Tensor binary_cross_entropy(const Tensor &, const Tensor &, const std::optional<Tensor> &, int64_t) {
  TORCH_CHECK(false,
              "graft: binary_cross_entropy (BCELoss) is unsafe to autocast: its input's logarithm does not survive the "
              "lower precision. Use binary_cross_entropy_with_logits (BCEWithLogitsLoss) and leave out the sigmoid "
              "before it, or call it where torch.autocast(..., enabled=False) holds, with f32 inputs.");
}

}  // namespace

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define IN_F32(...)          KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define RESULT_IN_F32(...)   KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...)          KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
  AT_FORALL_FP32(IN_F32)
  AT_FORALL_FP32_SET_OPT_DTYPE(RESULT_IN_F32)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(WIDEST)
  // Its own composition would take the softmax in the dtype of the logits.
  IN_F32(cross_entropy_loss)
  m.impl("binary_cross_entropy", TORCH_FN(binary_cross_entropy));
}

}  // namespace torch_graft
