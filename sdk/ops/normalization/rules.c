/* Layer, group and batch normalization, and their gradients: rules. */
#include "ops/normalization/normalization.h"

#include "ops/core/families.h"
#include "ops/core/ref.h"

static const norm_args places[] = {
    {GRAFT_OP_NATIVE_LAYER_NORM, NORM_LAYER, -1, 0, 1, 2, 3, -1, -1, -1, -1, -1, 4, -1, false},
    {GRAFT_OP_NATIVE_LAYER_NORM_BACKWARD, NORM_LAYER, 0, 1, 2, 5, 6, 3, 4, -1, -1, -1, -1, 7, false},
    {GRAFT_OP_NATIVE_GROUP_NORM, NORM_GROUP, -1, 0, 3, 1, 2, -1, -1, -1, -1, -1, 7, -1, false},
    {GRAFT_OP_NATIVE_GROUP_NORM_BACKWARD, NORM_GROUP, 0, 1, 5, 4, -1, 2, 3, -1, -1, -1, -1, 9, false},
    {GRAFT_OP_NATIVE_BATCH_NORM, NORM_BATCH, -1, 0, -1, 1, 2, -1, -1, 3, 4, 5, 7, -1, false},
    {GRAFT_OP_NATIVE_BATCH_NORM_BACKWARD, NORM_BATCH, 0, 1, -1, 2, -1, 5, 6, 3, 4, 7, 8, 9, false},
    {GRAFT_OP_NATIVE_BATCH_NORM_LEGIT, NORM_BATCH, -1, 0, -1, 1, 2, -1, -1, 3, 4, 5, 7, -1, false},
    {GRAFT_OP_NATIVE_BATCH_NORM_LEGIT_NO_STATS, NORM_BATCH, -1, 0, -1, 1, 2, -1, -1, -1, -1, 3, 5, -1, false},
    {GRAFT_OP_NATIVE_BATCH_NORM_LEGIT_NO_TRAINING, NORM_BATCH, -1, 0, -1, 1, 2, -1, -1, 3, 4, -1, 6, -1, true},
};

const norm_args *norm_args_of(uint32_t op_id) {
  const norm_args *at = places;
  while (at->op_id != op_id) at++;
  return at;
}

/* --- checks --- */

/* Parameters have the input's dtype, or are f32 beside a half type. */
static graft_status check_dtype(op_call *c, const norm_args *at, int arg, bool *mixed) {
  const graft_tensor *t = norm_tensor(c->args, arg);
  graft_dtype input = op_tensor(c, at->input)->dtype;
  if (!t || t->dtype == input) return GRAFT_OK;
  if (!dt_is_half(input) || t->dtype != GRAFT_F32) {
    return op_refuse_dtype(c, arg, dt_is_half(input) ? "the input's dtype, or f32" : "the input's dtype");
  }
  *mixed = true;
  return GRAFT_OK;
}

static graft_status check_sizes(const op_call *c, int arg, uint32_t ndim, const int64_t *sizes) {
  const graft_tensor *t = norm_tensor(c->args, arg);
  bool fits = !t || (uint32_t)t->ndim == ndim;
  for (uint32_t i = 0; fits && t && i < ndim; i++) fits = t->sizes[i] == sizes[i];
  if (fits) return GRAFT_OK;
  return op_error(c, "%s is %s; expected the sizes of the normalized dims or channels (%s)", c->schema->args[arg].name,
                  op_show(c, arg), op_show_tensors(c));
}

/* Weight, bias and running statistics. *mixed: some are f32 beside a half input; the op then runs in f32 as a whole. */
static graft_status check_parameters(op_call *c, const norm_args *at, uint32_t ndim, const int64_t *sizes,
                                     bool *mixed) {
  const int8_t parameters[] = {at->weight, at->bias, at->running_mean, at->running_var};
  graft_dtype input = op_tensor(c, at->input)->dtype;
  *mixed = false;
  if (!dt_is_float(input) || dt_is_float8(input)) return op_refuse_dtype(c, at->input, "a floating dtype");
  for (int i = 0; i < 4; i++) {
    graft_status status = check_dtype(c, at, parameters[i], mixed);
    if (!status) status = check_sizes(c, parameters[i], ndim, sizes);
    if (status) return status;
  }
  return GRAFT_OK;
}

static void set_compute(op_call *c, const norm_args *at, bool mixed) {
  c->compute = mixed ? GRAFT_F32 : op_tensor(c, at->input)->dtype;
  c->decompose_only = mixed;
}

/* How many dims normalized_shape has; they are the input's last. */
static graft_status check_normalized(op_call *c, const norm_args *at) {
  const graft_tensor *input = op_tensor(c, at->input);
  const graft_value *shape = &c->args[at->sizes];
  int32_t lead = input->ndim - (int32_t)shape->count;
  bool fits = shape->count > 0 && lead >= 0;
  for (uint32_t i = 0; fits && i < shape->count; i++) fits = input->sizes[lead + (int32_t)i] == shape->as.ints[i];
  return fits ? GRAFT_OK : op_error(c, "normalized_shape is not that of the last dims of %s", op_show(c, at->input));
}

static graft_status check_groups(op_call *c, const norm_args *at) {
  int64_t n = op_int(c, at->sizes), channels = op_int(c, at->sizes + 1), area = op_int(c, at->sizes + 2);
  int64_t groups = op_int(c, at->sizes + 3);
  if (groups < 1 || channels < 0 || channels % groups) {
    return op_error(c, "%lld channels can't be divided into %lld groups", (long long)channels, (long long)groups);
  }
  if (n < 0 || area < 0 || n * channels * area != op_tensor(c, at->input)->numel) {
    return op_error(c, "N %lld, C %lld and HxW %lld are not the sizes of %s", (long long)n, (long long)channels,
                    (long long)area, op_show(c, at->input));
  }
  return GRAFT_OK;
}

static graft_status check_batch(op_call *c, const norm_args *at) {
  const graft_tensor *input = op_tensor(c, at->input);
  if (input->ndim < 2) return op_refuse_dtype(c, at->input, "[N,C,...]");
  if (norm_fixed(at, c->args)) {
    bool given = norm_tensor(c->args, at->running_mean) && norm_tensor(c->args, at->running_var);
    return given ? GRAFT_OK : op_error(c, "without training it takes running_mean and running_var");
  }
  if (at->grad < 0 && !input->numel) return op_error(c, "no mean of nothing: input is %s", op_show(c, at->input));
  return GRAFT_OK;
}

/* What weight and bias have the sizes of. */
static graft_status check_shape(op_call *c, const norm_args *at, uint32_t *ndim, const int64_t **sizes) {
  const graft_value *shape = at->sizes >= 0 ? &c->args[at->sizes] : NULL;
  *ndim = 1;
  switch (at->kind) {
    case NORM_LAYER:
      *ndim = shape->count;
      *sizes = shape->as.ints;
      return check_normalized(c, at);
    case NORM_GROUP: *sizes = &shape[1].as.i; return check_groups(c, at);
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
    int32_t lead = ndim - (int32_t)c->args[at->sizes].count;
    for (int32_t i = 0; i < ndim; i++) sizes[i] = i < lead ? input->sizes[i] : 1;
  } else if (at->kind == NORM_GROUP) {
    ndim = 2;
    sizes[0] = op_int(c, at->sizes);
    sizes[1] = op_int(c, at->sizes + 3);
  } else {
    ndim = 1;
    sizes[0] = input->sizes[1];
  }
  op_out(c, 1, dtype, ndim, sizes);
  op_out(c, 2, dtype, ndim, sizes);
}

static graft_status infer_forward(op_call *c) {
  const norm_args *at = norm_args_of(c->schema->id);
  const graft_tensor *input = op_tensor(c, at->input);
  uint32_t ndim;
  const int64_t *sizes;
  bool mixed;
  graft_status status = check_shape(c, at, &ndim, &sizes);
  if (!status) status = check_parameters(c, at, ndim, sizes, &mixed);
  if (status) return status;
  set_compute(c, at, mixed);
  if (at->kind == NORM_LAYER) op_out(c, 0, input->dtype, input->ndim, input->sizes);
  if (at->kind == NORM_GROUP) op_out_format(c, 0, input->dtype, input->ndim, input->sizes, tns_suggest_format(input));
  if (at->kind == NORM_BATCH) op_out_like(c, 0, input->dtype, input);
  out_statistics(c, at, statistics_dtype(c, at, mixed));
  return GRAFT_OK;
}

/* --- backward --- */

static graft_status check_statistics(op_call *c, const norm_args *at) {
  const graft_tensor *input = op_tensor(c, at->input), *g = op_tensor(c, at->grad);
  bool same = g->ndim == input->ndim;
  for (int32_t i = 0; same && i < g->ndim; i++) same = g->sizes[i] == input->sizes[i];
  if (!same) return op_error(c, "grad_out and input differ in shape (%s)", op_show_tensors(c));
  op_call like = *c;
  out_statistics(&like, at, input->dtype);
  int64_t rows = tns_numel(like.out[1].ndim, like.out[1].sizes);
  const int8_t statistics[] = {at->mean, at->rstd};
  for (int i = 0; i < 2; i++) {
    const graft_tensor *t = norm_tensor(c->args, statistics[i]);
    if (!t && !norm_fixed(at, c->args)) return op_error(c, "%s is absent", c->schema->args[statistics[i]].name);
    if (!t || norm_fixed(at, c->args)) continue;
    if (t->numel != rows) {
      return op_error(c, "%s is %s; expected %lld statistics", c->schema->args[statistics[i]].name,
                      op_show(c, statistics[i]), (long long)rows);
    }
    if (!dt_is_float(t->dtype)) return op_refuse_dtype(c, statistics[i], "a floating dtype");
  }
  return GRAFT_OK;
}

static graft_status infer_backward(op_call *c) {
  const norm_args *at = norm_args_of(c->schema->id);
  const graft_tensor *input = op_tensor(c, at->input), *weight = norm_tensor(c->args, at->weight);
  if (op_absent(c, at->mask) || c->args[at->mask].count < 3) return op_error(c, "output_mask must be 3 bools");
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
  if (mask[0]) op_out_format(c, 0, input->dtype, input->ndim, input->sizes, format);
  graft_dtype dtype = weight                                               ? weight->dtype
                      : at->kind == NORM_BATCH && dt_is_half(input->dtype) ? GRAFT_F32
                                                                           : input->dtype;
  if (mask[1]) op_out(c, 1, dtype, (int32_t)ndim, sizes);
  if (mask[2]) op_out(c, 2, dtype, (int32_t)ndim, sizes);
  return GRAFT_OK;
}

#define ARG OP_SAVE_ARG
#define OUT OP_SAVE_OUT
/* The legit forms are other names for native_batch_norm, and take half types there. */
#define LEGIT(id, roles_, saves_)                                                                                     \
  {                                                                                                                   \
    .op_id = id, .roles = roles_, .infer = infer_forward, .decompose = norm_decompose_legit, .vjp = norm_vjp_forward, \
    .saves = saves_ | OUT(1) | OUT(2), .flags = OP_NO_WIDEN                                                           \
  }

static const op_def defs[] = {
    {.op_id = GRAFT_OP_NATIVE_LAYER_NORM,
     .roles = "vvv",
     .infer = infer_forward,
     .decompose = norm_decompose_forward,
     .vjp = norm_vjp_forward,
     .saves = ARG(0) | ARG(2) | ARG(3) | OUT(1) | OUT(2),
     .reference = OP_REF(native_layer_norm)},
    {.op_id = GRAFT_OP_NATIVE_GROUP_NORM,
     .roles = "vvv",
     .infer = infer_forward,
     .decompose = norm_decompose_forward,
     .vjp = norm_vjp_forward,
     .saves = ARG(0) | ARG(1) | OUT(1) | OUT(2),
     .reference = OP_REF(native_group_norm)},
    {.op_id = GRAFT_OP_NATIVE_BATCH_NORM,
     .roles = "vvvkk",
     .infer = infer_forward,
     .decompose = norm_decompose_forward,
     .vjp = norm_vjp_forward,
     .saves = ARG(0) | ARG(1) | ARG(3) | ARG(4) | OUT(1) | OUT(2),
     .reference = OP_REF(native_batch_norm)},
    {.op_id = GRAFT_OP_NATIVE_LAYER_NORM_BACKWARD,
     .roles = "vvkkvv",
     .infer = infer_backward,
     .decompose = norm_decompose_backward,
     .vjp = norm_vjp_backward,
     .saves = ARG(0) | ARG(1) | ARG(3) | ARG(4) | ARG(5),
     .reference = OP_REF(native_layer_norm_backward)},
    {.op_id = GRAFT_OP_NATIVE_GROUP_NORM_BACKWARD,
     .roles = "vvkkv",
     .infer = infer_backward,
     .decompose = norm_decompose_backward,
     .vjp = norm_vjp_backward,
     .saves = ARG(0) | ARG(1) | ARG(2) | ARG(3) | ARG(4),
     .reference = OP_REF(native_group_norm_backward)},
    {.op_id = GRAFT_OP_NATIVE_BATCH_NORM_BACKWARD,
     .roles = "vvvkkkk",
     .infer = infer_backward,
     .decompose = norm_decompose_backward,
     .vjp = norm_vjp_backward,
     .saves = ARG(0) | ARG(1) | ARG(2) | ARG(3) | ARG(4) | ARG(5) | ARG(6),
     .reference = OP_REF(native_batch_norm_backward)},
    LEGIT(GRAFT_OP_NATIVE_BATCH_NORM_LEGIT, "vvvkk", ARG(0) | ARG(1) | ARG(3) | ARG(4)),
    LEGIT(GRAFT_OP_NATIVE_BATCH_NORM_LEGIT_NO_STATS, "vvv", ARG(0) | ARG(1)),
    LEGIT(GRAFT_OP_NATIVE_BATCH_NORM_LEGIT_NO_TRAINING, "vvvkk", ARG(0) | ARG(1) | ARG(3) | ARG(4)),
};
OP_TABLE(normalization, defs)
