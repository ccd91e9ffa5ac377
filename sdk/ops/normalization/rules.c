/* Layer, group and batch normalization, and their gradients: rules. */
#include "ops/normalization/normalization.h"

#include "ops/core/ref.h"
#include "ops/core/table.h"

/* --- checks --- */

/* Parameters have the input's dtype, or are f32 beside a half type. */
static graft_status check_dtype(op_call *c, const norm_args *at, int arg, bool *mixed) {
  const graft_tensor *t = norm_tensor(c->args, arg);
  graft_dtype input = op_tensor(c, at->input)->dtype;
  if (!t || t->dtype == input) return GRAFT_OK;
  if (!dt_is_half(input) || t->dtype != GRAFT_F32) {
    return op_refuse(c, arg, dt_is_half(input) ? "the input's dtype, or f32" : "the input's dtype");
  }
  *mixed = true;
  return GRAFT_OK;
}

static graft_status check_sizes(const op_call *c, int arg, uint32_t ndim, const int64_t *sizes) {
  const graft_tensor *t = norm_tensor(c->args, arg);
  if (!t || tns_has_sizes(t, (int32_t)ndim, sizes)) return GRAFT_OK;
  return op_refuse(c, arg, "the sizes of the normalized dims or channels (%s)", op_show_tensors(c));
}

/* Weight, bias and running statistics. *mixed: some are f32 beside a half input; the op then runs in f32 as a whole. */
static graft_status check_parameters(op_call *c, const norm_args *at, uint32_t ndim, const int64_t *sizes,
                                     bool *mixed) {
  const int8_t parameters[] = {at->weight, at->bias, at->running_mean, at->running_var};
  *mixed = false;
  graft_status status = op_check_floating(c, at->input);
  for (int i = 0; !status && i < 4; i++) {
    status = check_dtype(c, at, parameters[i], mixed);
    if (!status) status = check_sizes(c, parameters[i], ndim, sizes);
  }
  return status;
}

static void set_compute(op_call *c, const norm_args *at, bool mixed) {
  c->compute = mixed ? GRAFT_F32 : op_tensor(c, at->input)->dtype;
  c->decompose_only = mixed;
}

/* How many dims normalized_shape has; they are the input's last. */
static graft_status check_normalized(op_call *c, const norm_args *at) {
  const graft_tensor *input = op_tensor(c, at->input);
  const graft_value *shape = &c->args[at->shape];
  int32_t lead = input->ndim - (int32_t)shape->count;
  bool fits = shape->count > 0 && lead >= 0;
  for (uint32_t i = 0; fits && i < shape->count; i++) fits = input->sizes[lead + (int32_t)i] == shape->as.ints[i];
  return fits ? GRAFT_OK : op_error(c, "normalized_shape is not that of the last dims of %s", op_show(c, at->input));
}

static graft_status check_groups(op_call *c, const norm_args *at) {
  int64_t n = op_int(c, at->n), channels = op_int(c, at->channels), area = op_int(c, at->area);
  int64_t groups = op_int(c, at->groups);
  if (groups < 1 || channels < 0 || channels % groups) {
    return op_error(c, "%lld channels can't be divided into %lld groups", (long long)channels, (long long)groups);
  }
  int64_t all;
  const bool counted = !__builtin_mul_overflow(n, channels, &all) && !__builtin_mul_overflow(all, area, &all);
  if (n < 0 || area < 0 || !counted || all != op_tensor(c, at->input)->numel) {
    return op_error(c, "N %lld, C %lld and HxW %lld are not the sizes of %s", (long long)n, (long long)channels,
                    (long long)area, op_show(c, at->input));
  }
  return GRAFT_OK;
}

static graft_status check_batch(op_call *c, const norm_args *at) {
  const graft_tensor *input = op_tensor(c, at->input);
  if (input->ndim < 2) return op_refuse(c, at->input, "[N,C,...]");
  if (norm_fixed(at, c->args)) {
    bool given = norm_tensor(c->args, at->running_mean) && norm_tensor(c->args, at->running_var);
    return given ? GRAFT_OK : op_error(c, "without training it takes running_mean and running_var");
  }
  if (at->grad < 0 && !input->numel) return op_error(c, "no mean of nothing: input is %s", op_show(c, at->input));
  return GRAFT_OK;
}

/* What weight and bias have the sizes of. */
static graft_status check_shape(op_call *c, const norm_args *at, uint32_t *ndim, const int64_t **sizes) {
  *ndim = 1;
  switch (at->kind) {
    case NORM_LAYER:
      *ndim = c->args[at->shape].count;
      *sizes = c->args[at->shape].as.ints;
      return check_normalized(c, at);
    case NORM_GROUP: *sizes = &c->args[at->channels].as.i; return check_groups(c, at);
    default: *sizes = &op_tensor(c, at->input)->sizes[1]; return check_batch(c, at);
  }
}

/* --- forward --- */

/* Statistics of half inputs are f32; only group norm keeps them in the dtype of its parameters. */
static graft_dtype statistics_dtype(const op_call *c, const norm_args *at, bool mixed) {
  graft_dtype input = op_tensor(c, at->input)->dtype;
  if (at->kind == NORM_GROUP && !mixed) return input;
  return dt_is_half(input) ? GRAFT_F32 : input;
}

static void out_statistics(op_call *c, const norm_args *at, graft_dtype dtype) {
  const graft_tensor *input = op_tensor(c, at->input);
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t ndim = input->ndim;
  if (at->kind == NORM_LAYER) {
    int32_t lead = ndim - (int32_t)c->args[at->shape].count;
    for (int32_t i = 0; i < ndim; i++) sizes[i] = i < lead ? input->sizes[i] : 1;
  } else if (at->kind == NORM_GROUP) {
    ndim = 2;
    sizes[0] = op_int(c, at->n);
    sizes[1] = op_int(c, at->groups);
  } else {
    ndim = 1;
    sizes[0] = input->sizes[1];
  }
  op_out(c, OUT_native_group_norm_out1, dtype, ndim, sizes);
  op_out(c, OUT_native_group_norm_out2, dtype, ndim, sizes);
}

static graft_status infer_forward(op_call *c) {
  const norm_args *at = c->def->row;
  const graft_tensor *input = op_tensor(c, at->input);
  uint32_t ndim;
  const int64_t *sizes;
  bool mixed;
  graft_status status = check_shape(c, at, &ndim, &sizes);
  if (!status) status = check_parameters(c, at, ndim, sizes, &mixed);
  if (status) return status;
  set_compute(c, at, mixed);
  if (at->kind == NORM_LAYER) op_out(c, OUT_native_group_norm_out0, input->dtype, input->ndim, input->sizes);
  if (at->kind == NORM_GROUP)
    op_out_format(c, OUT_native_group_norm_out0, input->dtype, input->ndim, input->sizes, tns_suggest_format(input));
  if (at->kind == NORM_BATCH) op_out_like(c, OUT_native_group_norm_out0, input->dtype, input);
  out_statistics(c, at, statistics_dtype(c, at, mixed));
  if (at->kind == NORM_BATCH && norm_fixed(at, c->args) && !at->fixed)
    c->only_read = UINT64_C(1) << at->running_mean | UINT64_C(1) << at->running_var;
  return GRAFT_OK;
}

/* --- backward --- */

static graft_status check_statistics(op_call *c, const norm_args *at) {
  const graft_tensor *input = op_tensor(c, at->input), *g = op_tensor(c, at->grad);
  if (!tns_same_sizes(g, input)) return op_error(c, "grad_out and input differ in shape (%s)", op_show_tensors(c));
  op_call like = *c;
  out_statistics(&like, at, input->dtype);
  int64_t rows = tns_numel(like.out[OUT_native_group_norm_out1].ndim, like.out[OUT_native_group_norm_out1].sizes);
  const int8_t statistics[] = {at->mean, at->rstd};
  for (int i = 0; i < 2; i++) {
    const graft_tensor *t = norm_tensor(c->args, statistics[i]);
    if (!t && !norm_fixed(at, c->args)) return op_error(c, "%s is absent", c->schema->args[statistics[i]].name);
    if (!t || norm_fixed(at, c->args)) continue;
    if (t->numel != rows) {
      return op_refuse(c, statistics[i], "%lld statistics", (long long)rows);
    }
    if (!dt_is_float(t->dtype)) return op_refuse(c, statistics[i], "a floating dtype");
  }
  return GRAFT_OK;
}

static graft_status infer_backward(op_call *c) {
  const norm_args *at = c->def->row;
  const graft_tensor *input = op_tensor(c, at->input), *weight = norm_tensor(c->args, at->weight);
  const uint8_t *mask = c->args[at->mask].as.mask;
  uint32_t ndim;
  const int64_t *sizes;
  bool mixed;
  graft_status status = check_shape(c, at, &ndim, &sizes);
  if (!status) status = check_parameters(c, at, ndim, sizes, &mixed);
  if (!status) status = check_dtype(c, at, at->grad, &mixed);
  if (!status) status = check_statistics(c, at);
  if (status) return status;
  set_compute(c, at, mixed);
  c->nouts = 3;
  graft_memory_format format = at->kind == NORM_LAYER ? GRAFT_FORMAT_CONTIGUOUS : tns_suggest_format(input);
  if (mask[0]) op_out_format(c, OUT_native_group_norm_backward_out0, input->dtype, input->ndim, input->sizes, format);
  graft_dtype dtype = weight                                               ? weight->dtype
                      : at->kind == NORM_BATCH && dt_is_half(input->dtype) ? GRAFT_F32
                                                                           : input->dtype;
  if (mask[1]) op_out(c, OUT_native_group_norm_backward_out1, dtype, (int32_t)ndim, sizes);
  if (mask[2]) op_out(c, OUT_native_group_norm_backward_out2, dtype, (int32_t)ndim, sizes);
  return GRAFT_OK;
}

/* --- the table --- */

#define AT(op, name)   .name = ARG_##op##_##name
#define NO_RUNNING     .running_mean = -1, .running_var = -1
#define NO_TRAINING    NO_RUNNING, .train = -1
#define FORWARD        .grad = -1, .mean = -1, .rstd = -1, .mask = -1
#define PARAMETERS(op) AT(op, input), AT(op, weight), AT(op, bias), AT(op, eps)
#define RUNNING(op)    AT(op, running_mean), AT(op, running_var), AT(op, momentum)
#define GROUPS(op)     .n = ARG_##op##_N, .channels = ARG_##op##_C, .area = ARG_##op##_HxW, .groups = ARG_##op##_group
#define BACKWARD(op)   .grad = ARG_##op##_grad_out, .mask = ARG_##op##_output_mask, AT(op, input), AT(op, weight)

static const norm_args layer_norm = {FORWARD, .kind = NORM_LAYER, NO_TRAINING, PARAMETERS(native_layer_norm),
                                     .shape = ARG_native_layer_norm_normalized_shape};
static const norm_args layer_norm_backward = {.kind = NORM_LAYER,
                                              NO_TRAINING,
                                              BACKWARD(native_layer_norm_backward),
                                              AT(native_layer_norm_backward, mean),
                                              AT(native_layer_norm_backward, rstd),
                                              AT(native_layer_norm_backward, bias),
                                              .shape = ARG_native_layer_norm_backward_normalized_shape};
static const norm_args group_norm = {FORWARD, .kind = NORM_GROUP, NO_TRAINING, PARAMETERS(native_group_norm),
                                     GROUPS(native_group_norm)};
static const norm_args group_norm_backward = {.kind = NORM_GROUP,
                                              NO_TRAINING,
                                              BACKWARD(native_group_norm_backward),
                                              AT(native_group_norm_backward, mean),
                                              AT(native_group_norm_backward, rstd),
                                              .bias = -1,
                                              GROUPS(native_group_norm_backward)};
static const norm_args batch_norm = {FORWARD, .kind = NORM_BATCH, PARAMETERS(native_batch_norm),
                                     RUNNING(native_batch_norm), .train = ARG_native_batch_norm_training};
static const norm_args batch_norm_backward = {.kind = NORM_BATCH,
                                              BACKWARD(native_batch_norm_backward),
                                              AT(native_batch_norm_backward, running_mean),
                                              AT(native_batch_norm_backward, running_var),
                                              AT(native_batch_norm_backward, train),
                                              AT(native_batch_norm_backward, eps),
                                              .mean = ARG_native_batch_norm_backward_save_mean,
                                              .rstd = ARG_native_batch_norm_backward_save_invstd,
                                              .bias = -1};
static const norm_args legit = {FORWARD, .kind = NORM_BATCH, PARAMETERS(native_batch_norm_legit),
                                RUNNING(native_batch_norm_legit), .train = ARG_native_batch_norm_legit_training};
static const norm_args legit_no_stats = {FORWARD,
                                         .kind = NORM_BATCH,
                                         NO_RUNNING,
                                         PARAMETERS(native_batch_norm_legit_no_stats),
                                         AT(native_batch_norm_legit_no_stats, momentum),
                                         .train = ARG_native_batch_norm_legit_no_stats_training};
static const norm_args legit_no_training = {FORWARD,
                                            .kind = NORM_BATCH,
                                            .fixed = true,
                                            .train = -1,
                                            PARAMETERS(native_batch_norm_legit_no_training),
                                            RUNNING(native_batch_norm_legit_no_training)};

#define NORM(op, roles_, row_, saved)                                                                      \
  {                                                                                                        \
    .op_id = ID_##op, .roles = roles_, .infer = infer_forward, .decompose = norm_decompose_forward,        \
    .vjp = norm_vjp_forward, .saves = saved | OP_SAVE_OUT(op, out1) | OP_SAVE_OUT(op, out2), .row = &row_, \
    .reference = norm_ref_forward                                                                          \
  }
#define NORM_BACKWARD(op, roles_, row_, saved)                                                        \
  {                                                                                                   \
    .op_id = ID_##op, .roles = roles_, .infer = infer_backward, .decompose = norm_decompose_backward, \
    .vjp = norm_vjp_backward, .saves = saved, .row = &row_, .reference = norm_ref_backward            \
  }
/* The legit forms are other names for native_batch_norm, and take half types there. */
#define LEGIT(op, roles_, row_, saved)                                                                     \
  {                                                                                                        \
    .op_id = ID_##op, .roles = roles_, .infer = infer_forward, .decompose = norm_decompose_legit,          \
    .vjp = norm_vjp_forward, .saves = saved | OP_SAVE_OUT(op, out1) | OP_SAVE_OUT(op, out2), .row = &row_, \
    .flags = OP_NO_WIDEN                                                                                   \
  }

static const op_def defs[] = {
    NORM(native_layer_norm, "vvv", layer_norm, OP_SAVE_ARGS(native_layer_norm, input, weight, bias)),
    NORM(native_group_norm, "vvv", group_norm, OP_SAVE_ARGS(native_group_norm, input, weight)),
    NORM(native_batch_norm, "vvvkk", batch_norm,
         OP_SAVE_ARGS(native_batch_norm, input, weight, running_mean, running_var)),
    NORM_BACKWARD(native_layer_norm_backward, "vvkkvv", layer_norm_backward,
                  OP_SAVE_ARGS(native_layer_norm_backward, grad_out, input, mean, rstd, weight)),
    NORM_BACKWARD(native_group_norm_backward, "vvkkv", group_norm_backward,
                  OP_SAVE_ARGS(native_group_norm_backward, grad_out, input, mean, rstd, weight)),
    NORM_BACKWARD(native_batch_norm_backward, "vvvkkkk", batch_norm_backward,
                  OP_SAVE_ARGS(native_batch_norm_backward, grad_out, input, weight, running_mean, running_var,
                               save_mean, save_invstd)),
    LEGIT(native_batch_norm_legit, "vvvkk", legit,
          OP_SAVE_ARGS(native_batch_norm_legit, input, weight, running_mean, running_var)),
    LEGIT(native_batch_norm_legit_no_stats, "vvv", legit_no_stats,
          OP_SAVE_ARGS(native_batch_norm_legit_no_stats, input, weight)),
    LEGIT(native_batch_norm_legit_no_training, "vvvkk", legit_no_training,
          OP_SAVE_ARGS(native_batch_norm_legit_no_training, input, weight, running_mean, running_var)),
};
OP_TABLE(normalization, defs)
