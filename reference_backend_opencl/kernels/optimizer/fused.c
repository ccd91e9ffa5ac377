/* The fused optimizers: what each asks of the engine in optimizer.c. */
#include <math.h>

#include "kernels/optimizer/lists.h"

/* What is updated: the functional form has an output beside the input. */
static void add_updated(ocl_lists *lists, int k, const ocl_call *call, int from, int to) {
  lists->from[k] = ocl_read_list(call, from);
  lists->list[k] = lists->to[k] = ocl_read_list(call, to);
}

static bool has_one_f32(const graft_tensor_desc *desc) {
  return !desc || desc->dl.dtype == GRAFT_F32;
}

/* The learning rate is a number, or where `lr` is not NULL a tensor. */
static graft_status run(const ocl_call *call, ocl_lists *lists, const graft_tensor_desc *lr,
                        const graft_tensor_desc *scale, const graft_tensor_desc *found) {
  lists->dtypes = OCL_FLOATS;
  lists->shared[0] = found;
  lists->shared[1] = scale;
  lists->shared[2] = lr;
  lists->flags |= (lr ? OCL_LISTS_LR : 0) | (scale ? OCL_LISTS_SCALE : 0) | (found ? OCL_LISTS_FOUND : 0);
  if (!has_one_f32(scale) || !has_one_f32(found)) return GRAFT_UNIMPLEMENTED;
  const ocl_dtype *lr_dtype = lr ? ocl_dtype_of(call->exec->device, lr->dl.dtype) : NULL;
  if (lr && (!lr_dtype || lr_dtype->class != OCL_CLASS_FLOAT)) return GRAFT_UNIMPLEMENTED;
  return ocl_lists_run(call->exec, lists);
}

/* What all three read. */
#define COMMON_READS SELF, SELF_OUT, GRADS, GRADS_OUT, LR, WEIGHT_DECAY, MAXIMIZE, GRAD_SCALE, FOUND_INF, COMMON
#define COMMON_NAMES                                                                                   \
  [SELF] = "self", [SELF_OUT] = "self_out", [GRADS] = "grads", [GRADS_OUT] = "grads_out", [LR] = "lr", \
  [WEIGHT_DECAY] = "weight_decay", [MAXIMIZE] = "maximize", [GRAD_SCALE] = "grad_scale", [FOUND_INF] = "found_inf"
enum { COMMON_READS };

static graft_status run_common(const ocl_call *call, ocl_lists *lists) {
  if (ocl_read_bool(call, MAXIMIZE)) lists->flags |= OCL_LISTS_MAXIMIZE;
  lists->numbers[OCL_LR] = ocl_read_float(call, LR, 0);
  lists->numbers[OCL_WEIGHT_DECAY] = ocl_read_float(call, WEIGHT_DECAY, 0);
  add_updated(lists, 0, call, SELF, SELF_OUT);
  add_updated(lists, 1, call, GRADS, GRADS_OUT);
  return run(call, lists, ocl_read_tensor(call, LR), ocl_read_tensor(call, GRAD_SCALE),
             ocl_read_tensor(call, FOUND_INF));
}

/* ---- Adam and AdamW, which decouples the weight decay ---- */

enum {
  AVERAGES = COMMON,
  AVERAGES_OUT,
  SQUARES,
  SQUARES_OUT,
  GREATEST,
  GREATEST_OUT,
  ADAM_STEPS,
  BETA1,
  BETA2,
  ADAM_EPS,
  AMSGRAD,
  ADAM_READS
};
const char *const ocl_adam_reads[] = {COMMON_NAMES,
                                      [AVERAGES] = "exp_avgs",
                                      [AVERAGES_OUT] = "exp_avgs_out",
                                      [SQUARES] = "exp_avg_sqs",
                                      [SQUARES_OUT] = "exp_avg_sqs_out",
                                      [GREATEST] = "max_exp_avg_sqs",
                                      [GREATEST_OUT] = "max_exp_avg_sqs_out",
                                      [ADAM_STEPS] = "state_steps",
                                      [BETA1] = "beta1",
                                      [BETA2] = "beta2",
                                      [ADAM_EPS] = "eps",
                                      [AMSGRAD] = "amsgrad",
                                      [ADAM_READS] = NULL};

/* The recipe says whether the decay is decoupled. */
graft_status ocl_adam(const ocl_call *call) {
  double beta1 = ocl_read_float(call, BETA1, 0), beta2 = ocl_read_float(call, BETA2, 0);
  ocl_lists lists = {.operands = ocl_read_bool(call, AMSGRAD) ? 6 : 5,
                     .defines = "#define MODE_ADAM\n",
                     .flags = *(const bool *)call->op->recipe ? OCL_LISTS_DECOUPLED : 0,
                     .numbers = {[OCL_ADAM_BETA1] = beta1,
                                 [OCL_ADAM_BETA2] = beta2,
                                 [OCL_ADAM_LOG_BETA1] = log(beta1),
                                 [OCL_ADAM_LOG_BETA2] = log(beta2),
                                 [OCL_ADAM_REST1] = 1 - beta1,
                                 [OCL_ADAM_REST2] = 1 - beta2,
                                 [OCL_ADAM_EPS] = ocl_read_float(call, ADAM_EPS, 0)}};
  add_updated(&lists, 2, call, AVERAGES, AVERAGES_OUT);
  add_updated(&lists, 3, call, SQUARES, SQUARES_OUT);
  lists.list[4] = ocl_read_list(call, ADAM_STEPS);
  add_updated(&lists, 5, call, GREATEST, GREATEST_OUT);
  return run_common(call, &lists);
}

/* ---- SGD ---- */

enum { BUFFERS = COMMON, BUFFERS_OUT, MOMENTUM, DAMPENING, NESTEROV, FIRST_STEP, SGD_READS };
const char *const ocl_sgd_reads[] = {COMMON_NAMES,
                                     [BUFFERS] = "momentum_buffer_list",
                                     [BUFFERS_OUT] = "momentum_buffer_list_out",
                                     [MOMENTUM] = "momentum",
                                     [DAMPENING] = "dampening",
                                     [NESTEROV] = "nesterov",
                                     [FIRST_STEP] = "is_first_step",
                                     [SGD_READS] = NULL};

graft_status ocl_sgd(const ocl_call *call) {
  ocl_lists lists = {.operands = ocl_read_list(call, BUFFERS).count ? 3 : 2,
                     .defines = "#define MODE_SGD\n",
                     .flags = (ocl_read_bool(call, NESTEROV) ? OCL_LISTS_NESTEROV : 0) |
                              (ocl_read_bool(call, FIRST_STEP) ? OCL_LISTS_FIRST_STEP : 0),
                     .numbers = {[OCL_SGD_MOMENTUM] = ocl_read_float(call, MOMENTUM, 0),
                                 [OCL_SGD_NEW] = 1 - ocl_read_float(call, DAMPENING, 0)}};
  add_updated(&lists, 2, call, BUFFERS, BUFFERS_OUT);
  return run_common(call, &lists);
}

/* ---- Adagrad ---- */

enum { SUMS = COMMON, SUMS_OUT, STEPS, STEPS_OUT, LR_DECAY, EPS, ADAGRAD_READS };
const char *const ocl_adagrad_reads[] = {COMMON_NAMES,
                                         [SUMS] = "state_sums",
                                         [SUMS_OUT] = "state_sums_out",
                                         [STEPS] = "state_steps",
                                         [STEPS_OUT] = "state_steps_out",
                                         [LR_DECAY] = "lr_decay",
                                         [EPS] = "eps",
                                         [ADAGRAD_READS] = NULL};

graft_status ocl_adagrad(const ocl_call *call) {
  ocl_lists lists = {.operands = 4,
                     .defines = "#define MODE_ADAGRAD\n",
                     .numbers = {[OCL_ADAGRAD_LR_DECAY] = ocl_read_float(call, LR_DECAY, 0),
                                 [OCL_ADAGRAD_EPS] = ocl_read_float(call, EPS, 0)}};
  add_updated(&lists, 2, call, SUMS, SUMS_OUT);
  add_updated(&lists, 3, call, STEPS, STEPS_OUT);
  return run_common(call, &lists);
}

/* ---- The gradients of a scaled loss ---- */

graft_status ocl_op_amp_foreach_non_finite_check_and_unscale(
    const graft_exec *exec, const graft_args_amp_foreach_non_finite_check_and_unscale *args) {
  if (!has_one_f32(args->found_inf) || !has_one_f32(args->inv_scale)) return GRAFT_UNIMPLEMENTED;
  return ocl_lists_run(exec, &(ocl_lists){.operands = 2,
                                          .list = {args->self_out, args->self},
                                          .shared = {args->found_inf_out, args->inv_scale},
                                          .shared_from = args->found_inf,
                                          .dtypes = OCL_FLOATS,
                                          .same_dtype = true,
                                          .defines = "#define MODE_UNSCALE\n"});
}
