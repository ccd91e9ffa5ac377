/* The reduction family: rules and decompositions in reduction.c (those of histograms in reduction_histogram.c),
 * reference kernels in reduction_kernels.c, gradients in reduction_vjp.c. */
#ifndef GRAFT_SDK_REDUCTION_H
#define GRAFT_SDK_REDUCTION_H

#include "ops/core/op.h"

/* Where an op's arguments stand, -1 for none; one row an op. */
typedef struct red_args {
  int8_t dims; /* a list of dims, or one; -1: all dims are reduced */
  int8_t keepdim;
  int8_t dtype;
} red_args;
const red_args *red_args_of(uint32_t op_id);

/* The reduced dims, and whether they stay with size 1, of a canonical call. */
uint32_t red_mask(uint32_t op_id, const graft_value *args, int32_t ndim);
bool red_keepdim(uint32_t op_id, const graft_value *args);
/* How many elements are reduced to one. */
int64_t red_count(const graft_tensor *self, uint32_t mask);

/* clang-format off */
#define RED_KERNELS(X)                                                                                                \
  X(sum_dim_IntList)                                                                                                  \
  X(mean_dim)                                                                                                         \
  X(amax) X(amin) X(argmax) X(argmin) X(var_correction) X(any) X(any_dim) X(any_dims) X(prod) X(prod_dim_int)         \
      X(linalg_vector_norm) X(max_dim) X(min_dim) X(all) X(all_dim) X(max) X(min) X(std_correction)                   \
          X(var_mean_correction) X(std_mean_correction) X(norm_ScalarOpt_dim) X(nansum) X(count_nonzero) X(logsumexp) \
              X(aminmax)
/* clang-format on */
#define RED_DECLARE(name) graft_status ref_##name(const graft_exec *exec, const graft_args_##name *args);
RED_KERNELS(RED_DECLARE)
#undef RED_DECLARE

graft_status red_infer_histc(op_call *call);
void red_decompose_histc(fx *s, const op_call *call, graft_tensor **outs);

void red_vjp_sum(op_vjp *v);
void red_vjp_mean(op_vjp *v);
void red_vjp_extremum(op_vjp *v); /* amax, amin, max, min, aminmax */
void red_vjp_pick(op_vjp *v);     /* max.dim, min.dim */
void red_vjp_var(op_vjp *v);      /* var, std, and each with the mean */
void red_vjp_prod(op_vjp *v);
void red_vjp_norm(op_vjp *v);
void red_vjp_nansum(op_vjp *v);
void red_vjp_logsumexp(op_vjp *v);

#endif
