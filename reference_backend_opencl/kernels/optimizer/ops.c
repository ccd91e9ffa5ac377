/* The optimizer ops: what each asks of the engine in optimizer.c. */
#include <math.h>
#include <string.h>

#include "kernels/families.h"
#include "kernels/optimizer/lists.h"
#include "kernels/optimizer/table.h"

#define NUMBERS_SET (OCL_FLOATS | OCL_INTS)

/* ---- _foreach ---- */

typedef struct row {
  uint32_t op_id;
  uint64_t dtypes;
  struct {
    uint16_t list[3], single, scalar, scalars, out;
  } at; /* offsets in the args struct; 0: none, since the head comes first */
  const char *expression;
} row;

/* The first tensor field of every args struct here lies right behind the head, the outputs at its end. */
#define L1(a)         .at.list = {offsetof(ARGS, a)}
#define L2(a, b)      .at.list = {offsetof(ARGS, a), offsetof(ARGS, b)}
#define L3(a, b, c)   .at.list = {offsetof(ARGS, a), offsetof(ARGS, b), offsetof(ARGS, c)}
#define S2(a, b)      .at.list = {offsetof(ARGS, a)}, .at.single = offsetof(ARGS, b)
#define AT_SCALAR(f)  .at.scalar = offsetof(ARGS, f)
#define AT_SCALARS(f) .at.scalars = offsetof(ARGS, f)
#define NO_NUMBER     .at.scalar = 0

static graft_status run_foreach(const graft_exec *exec, const void *args, const row *row);

/* Offsets need the struct's name in each row, so each op has its own row beside its slot. */
#define OUT_OF(op) sizeof(graft_args_##op) - sizeof(graft_tensor_list)
#define DEFINE_FOREACH(op, id, dtypes_, inputs, number, expression_)                                          \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) {                             \
    typedef graft_args_##op ARGS;                                                                             \
    static const row row = {                                                                                  \
        GRAFT_OP_##id, dtypes_, inputs, number, .at.out = (uint16_t)(OUT_OF(op)), .expression = expression_}; \
    return run_foreach(exec, args, &row);                                                                     \
  }
OCL_FOREACH(DEFINE_FOREACH)

static const void *pointer_at(const void *args, uint16_t offset) {
  const void *value;
  memcpy(&value, (const char *)args + offset, sizeof value);
  return value;
}

static graft_tensor_list list_at(const void *args, uint16_t offset) {
  graft_tensor_list list;
  memcpy(&list, (const char *)args + offset, sizeof list);
  return list;
}

static graft_status run_foreach(const graft_exec *exec, const void *args, const row *row) {
  ocl_lists call = {.operands = 1, .dtypes = row->dtypes, .defines = "", .expression = row->expression};
  call.same_dtype = row->op_id != GRAFT_OP_FOREACH_COPY;
  call.list[0] = list_at(args, row->at.out);
  for (int k = 0; k < 3 && row->at.list[k]; k++) call.list[call.operands++] = list_at(args, row->at.list[k]);
  if (row->at.single) call.single[call.operands++] = pointer_at(args, row->at.single);
  if (row->at.scalar) call.scalars = pointer_at(args, row->at.scalar);
  if (row->at.scalars) {
    graft_scalar_list scalars;
    memcpy(&scalars, (const char *)args + row->at.scalars, sizeof scalars);
    call.scalars = scalars.items;
    call.scalar_each = true;
  }
  return ocl_lists_run(exec, &call);
}

/* ---- Fused optimizers ---- */

static void add_updated(ocl_lists *call, int k, graft_tensor_list from, graft_tensor_list to) {
  call->from[k] = from;
  call->to[k] = to;
  call->list[k] = to;
}

static bool has_one_f32(const graft_tensor_desc *desc) {
  return !desc || desc->dl.dtype == GRAFT_F32;
}

static graft_status run_fused(const graft_exec *exec, ocl_lists *call, const graft_tensor_desc *lr,
                              const graft_tensor_desc *scale, const graft_tensor_desc *found) {
  call->dtypes = OCL_FLOATS;
  call->shared[0] = found;
  call->shared[1] = scale;
  call->shared[2] = lr;
  call->flags |= (lr ? OCL_LISTS_LR : 0) | (scale ? OCL_LISTS_SCALE : 0) | (found ? OCL_LISTS_FOUND : 0);
  if (!has_one_f32(scale) || !has_one_f32(found)) return GRAFT_UNIMPLEMENTED;
  const ocl_dtype *lr_dtype = lr ? ocl_dtype_of(exec->device, lr->dl.dtype) : NULL;
  if (lr && (!lr_dtype || lr_dtype->class != OCL_CLASS_FLOAT)) return GRAFT_UNIMPLEMENTED;
  return ocl_lists_run(exec, call);
}

#define ADAM(op, adamw_flag, lr_number, lr_tensor)                                                                  \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) {                                   \
    ocl_lists call = {.operands = args->amsgrad ? 6 : 5, .defines = "#define MODE_ADAM\n"};                         \
    call.flags = (adamw_flag) | (args->maximize ? OCL_LISTS_MAXIMIZE : 0);                                          \
    add_updated(&call, 0, args->self, args->self_out);                                                              \
    add_updated(&call, 1, args->grads, args->grads_out);                                                            \
    add_updated(&call, 2, args->exp_avgs, args->exp_avgs_out);                                                      \
    add_updated(&call, 3, args->exp_avg_sqs, args->exp_avg_sqs_out);                                                \
    call.list[4] = args->state_steps;                                                                               \
    if (args->max_exp_avg_sqs.count) add_updated(&call, 5, args->max_exp_avg_sqs, args->max_exp_avg_sqs_out);       \
    const double numbers[] = {lr_number,          args->beta1, args->beta2,     log(args->beta1), log(args->beta2), \
                              args->weight_decay, args->eps,   1 - args->beta1, 1 - args->beta2};                   \
    memcpy(call.numbers, numbers, sizeof numbers);                                                                  \
    return run_fused(exec, &call, lr_tensor, args->grad_scale, args->found_inf);                                    \
  }
ADAM(fused_adam, 0, args->lr, NULL)
ADAM(fused_adam_tensor_lr, 0, 0, args->lr)
ADAM(fused_adamw, OCL_LISTS_DECOUPLED, args->lr, NULL)
ADAM(fused_adamw_tensor_lr, OCL_LISTS_DECOUPLED, 0, args->lr)

#define SGD(op, lr_number, lr_tensor)                                                                         \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) {                             \
    ocl_lists call = {.operands = args->momentum_buffer_list.count ? 3 : 2, .defines = "#define MODE_SGD\n"}; \
    call.flags = (args->maximize ? OCL_LISTS_MAXIMIZE : 0) | (args->nesterov ? OCL_LISTS_NESTEROV : 0) |      \
                 (args->is_first_step ? OCL_LISTS_FIRST_STEP : 0);                                            \
    add_updated(&call, 0, args->self, args->self_out);                                                        \
    add_updated(&call, 1, args->grads, args->grads_out);                                                      \
    if (args->momentum_buffer_list.count) {                                                                   \
      add_updated(&call, 2, args->momentum_buffer_list, args->momentum_buffer_list_out);                      \
    }                                                                                                         \
    const double numbers[] = {lr_number, args->momentum, 1 - args->dampening, args->weight_decay};            \
    memcpy(call.numbers, numbers, sizeof numbers);                                                            \
    return run_fused(exec, &call, lr_tensor, args->grad_scale, args->found_inf);                              \
  }
SGD(fused_sgd, args->lr, NULL)
SGD(fused_sgd_tensor_lr, 0, args->lr)

graft_status ocl_op_fused_adagrad(const graft_exec *exec, const graft_args_fused_adagrad *args) {
  ocl_lists call = {.operands = 4, .defines = "#define MODE_ADAGRAD\n"};
  call.flags = args->maximize ? OCL_LISTS_MAXIMIZE : 0;
  add_updated(&call, 0, args->self, args->self_out);
  add_updated(&call, 1, args->grads, args->grads_out);
  add_updated(&call, 2, args->state_sums, args->state_sums_out);
  add_updated(&call, 3, args->state_steps, args->state_steps_out);
  const double numbers[] = {args->lr, args->lr_decay, args->weight_decay, args->eps};
  memcpy(call.numbers, numbers, sizeof numbers);
  return run_fused(exec, &call, NULL, args->grad_scale, args->found_inf);
}

graft_status ocl_op_amp_foreach_non_finite_check_and_unscale(
    const graft_exec *exec, const graft_args_amp_foreach_non_finite_check_and_unscale *args) {
  ocl_lists call = {.operands = 2, .dtypes = OCL_FLOATS, .same_dtype = true, .defines = "#define MODE_UNSCALE\n"};
  if (args->found_inf->dl.dtype != GRAFT_F32 || args->inv_scale->dl.dtype != GRAFT_F32) return GRAFT_UNIMPLEMENTED;
  call.list[0] = args->self_out;
  call.list[1] = args->self;
  call.shared[0] = args->found_inf_out;
  call.shared_from = args->found_inf;
  call.shared[1] = args->inv_scale;
  return ocl_lists_run(exec, &call);
}

/* ---- What is served ---- */

bool ocl_optimizer_caps(uint32_t op_id, ocl_op_caps *caps) {
#define FOREACH_DTYPES(op, id, dtypes, ...) {GRAFT_OP_##id, dtypes},
  static const struct {
    uint32_t op_id;
    uint64_t dtypes;
  } served[] = {OCL_FOREACH(FOREACH_DTYPES){GRAFT_OP_FUSED_ADAM, OCL_FLOATS},
                {GRAFT_OP_FUSED_ADAM_TENSOR_LR, OCL_FLOATS},
                {GRAFT_OP_FUSED_ADAMW, OCL_FLOATS},
                {GRAFT_OP_FUSED_ADAMW_TENSOR_LR, OCL_FLOATS},
                {GRAFT_OP_FUSED_SGD, OCL_FLOATS},
                {GRAFT_OP_FUSED_SGD_TENSOR_LR, OCL_FLOATS},
                {GRAFT_OP_FUSED_ADAGRAD, OCL_FLOATS},
                {GRAFT_OP_AMP_FOREACH_NON_FINITE_CHECK_AND_UNSCALE, OCL_FLOATS},
                {GRAFT_OP_FOREACH_NORM_SCALAR, OCL_FLOATS},
                {GRAFT_OP_AMP_UPDATE_SCALE, OCL_BIT(F32) | OCL_BIT(I32)}};
  for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
    if (served[i].op_id != op_id) continue;
    caps->inputs = caps->outputs = served[i].dtypes;
    caps->flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_IN_PLACE | GRAFT_CAP_EMPTY | GRAFT_CAP_MIXED_DTYPE;
    return true;
  }
  return false;
}
