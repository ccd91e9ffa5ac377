/* What the files of the family optimizer share. */
#ifndef GRAFT_SDK_OPS_OPTIMIZER_H
#define GRAFT_SDK_OPS_OPTIMIZER_H

#include "ops/core/op.h"
#include "ops/core/ref.h"

/* Fused steps; a row's `extra` says which. */
enum { OPT_ADAM, OPT_SGD, OPT_ADAGRAD };
graft_status opt_infer_step(op_call *call);
void opt_decompose_step(fx *s, const op_call *call, graft_tensor **outs);
graft_status ref_fused_adamw(const graft_exec *exec, const graft_args_fused_adamw *a);
graft_status ref_fused_adamw_tensor_lr(const graft_exec *exec, const graft_args_fused_adamw_tensor_lr *a);
graft_status ref_fused_adam(const graft_exec *exec, const graft_args_fused_adam *a);
graft_status ref_fused_adam_tensor_lr(const graft_exec *exec, const graft_args_fused_adam_tensor_lr *a);
graft_status ref_fused_sgd(const graft_exec *exec, const graft_args_fused_sgd *a);
graft_status ref_fused_sgd_tensor_lr(const graft_exec *exec, const graft_args_fused_sgd_tensor_lr *a);
graft_status ref_fused_adagrad(const graft_exec *exec, const graft_args_fused_adagrad *a);

graft_status opt_infer_unscale(op_call *call);
void opt_decompose_unscale(fx *s, const op_call *call, graft_tensor **outs);
graft_status ref_amp_foreach_non_finite_check_and_unscale(const graft_exec *exec,
                                                          const graft_args_amp_foreach_non_finite_check_and_unscale *a);
graft_status opt_infer_update_scale(op_call *call);
void opt_decompose_update_scale(fx *s, const op_call *call, graft_tensor **outs);
graft_status ref_amp_update_scale(const graft_exec *exec, const graft_args_amp_update_scale *a);

/* The number that a tensor with one element holds; `fallback` where there is no tensor. */
static inline ref_real opt_number(const graft_tensor_desc *d, ref_real fallback) {
  ref_array one = ref_read(d);
  ref_real value = one.re ? one.re[0] : fallback;
  ref_free(&one);
  return value;
}

#endif
