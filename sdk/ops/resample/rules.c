/* Resampling: rules and gradients. */
#include "ops/resample/resample.h"

#include <string.h>

#include "ops/core/families.h"

#define BOTH(name, KIND, DIMS)                                                   \
  {GRAFT_OP_##name, GRAFT_OP_##name##_BACKWARD, RESAMPLE_##KIND, DIMS, false}, { \
    GRAFT_OP_##name##_BACKWARD, GRAFT_OP_##name, RESAMPLE_##KIND, DIMS, true     \
  }

static const resample_row rows[] = {
    BOTH(ADAPTIVE_AVG_POOL2D, ADAPTIVE, 2), BOTH(ADAPTIVE_AVG_POOL3D, ADAPTIVE, 3),
    BOTH(UPSAMPLE_NEAREST1D, NEAREST, 1),   BOTH(UPSAMPLE_NEAREST2D, NEAREST, 2),
    BOTH(UPSAMPLE_NEAREST3D, NEAREST, 3),   BOTH(UPSAMPLE_NEAREST_EXACT2D, EXACT, 2),
    BOTH(UPSAMPLE_LINEAR1D, LINEAR, 1),     BOTH(UPSAMPLE_BILINEAR2D, LINEAR, 2),
    BOTH(UPSAMPLE_TRILINEAR3D, LINEAR, 3),  BOTH(REFLECTION_PAD1D, REFLECT, 1),
    BOTH(REFLECTION_PAD2D, REFLECT, 2),     BOTH(REFLECTION_PAD3D, REFLECT, 3),
    BOTH(REPLICATION_PAD1D, REPLICATE, 1),  BOTH(REPLICATION_PAD2D, REPLICATE, 2),
    BOTH(REPLICATION_PAD3D, REPLICATE, 3),
};

const resample_row *resample_row_of(uint32_t op_id) {
  const resample_row *row = rows;
  while (row->op_id != op_id) row++;
  return row;
}

/* --- rules --- */

static graft_status check_dtype(op_call *c, const resample_row *row) {
  graft_dtype dtype = op_tensor(c, 0)->dtype;
  if (resample_is_padding(row->kind) && !row->backward && dtype != GRAFT_BOOL) return GRAFT_OK;
  bool bytes = dtype == GRAFT_U8 && (row->kind == RESAMPLE_NEAREST || row->kind == RESAMPLE_EXACT);
  bool complex = dt_is_complex(dtype) && resample_is_padding(row->kind);
  if ((dt_is_float(dtype) && !dt_is_float8(dtype)) || bytes || complex) return GRAFT_OK;
  return op_refuse_dtype(c, 0, bytes ? "a floating dtype or u8" : "a floating dtype");
}

/* Rank and sizes of the side that is resampled. A batch may be missing but for upsampling, and may be empty. */
static graft_status check_input(op_call *c, const resample_row *row, int32_t ndim, const int64_t *sizes) {
  bool batched = ndim == row->dims + 2;
  bool fits = batched || (ndim == row->dims + 1 && !resample_is_upsample(row->kind));
  int32_t first = row->kind == RESAMPLE_ADAPTIVE ? ndim - row->dims : batched;
  for (int32_t i = first; fits && i < ndim; i++) fits = sizes[i] > 0;
  if (fits) return GRAFT_OK;
  return op_error(c, "the input's sizes do not fit %d spatial dims, none of them empty (%s)", row->dims,
                  op_show_tensors(c));
}

static graft_status check_list(op_call *c, int arg, uint32_t count, int64_t lowest) {
  const graft_value *list = &c->args[arg];
  const char *name = c->schema->args[arg].name;
  if (list->count != count) return op_error(c, "%s has %u numbers; expected %u", name, list->count, count);
  for (uint32_t i = 0; i < count; i++) {
    if (list->as.ints[i] >= lowest) continue;
    return op_error(c, "%s holds %lld; expected at least %lld", name, (long long)list->as.ints[i], (long long)lowest);
  }
  return GRAFT_OK;
}

/* The sizes behind padding: pairs of before and after, the last dim first. */
static graft_status padded_sizes(op_call *c, const resample_row *row, int arg, int32_t ndim, const int64_t *in,
                                 int64_t *out) {
  graft_status status = check_list(c, arg, (uint32_t)row->dims * 2, INT64_MIN);
  for (int32_t d = 0; !status && d < row->dims; d++) {
    const int64_t *pad = c->args[arg].as.ints + 2 * d;
    int64_t size = in[ndim - 1 - d], *to = &out[ndim - 1 - d];
    bool reach = row->kind == RESAMPLE_REFLECT && (pad[0] >= size || pad[1] >= size);
    if (reach)
      status = op_error(c, "padding %lld, %lld reaches past a dim of %lld", (long long)pad[0], (long long)pad[1],
                        (long long)size);
    *to = size + pad[0] + pad[1];
    if (!status && *to < 1) status = op_error(c, "the result would have a size of %lld", (long long)*to);
  }
  return status;
}

/* The result's sizes from argument `arg`: the output's spatial sizes, or padding. */
static graft_status forward_sizes(op_call *c, const resample_row *row, int arg, int32_t ndim, const int64_t *in,
                                  int64_t *out) {
  memcpy(out, in, (size_t)ndim * sizeof *in);
  if (resample_is_padding(row->kind)) return padded_sizes(c, row, arg, ndim, in, out);
  graft_status status = check_list(c, arg, (uint32_t)row->dims, row->kind == RESAMPLE_ADAPTIVE ? 0 : 1);
  for (int d = 0; !status && d < row->dims; d++) out[ndim - row->dims + d] = c->args[arg].as.ints[d];
  return status;
}

static void out_sizes(op_call *c, int32_t ndim, const int64_t *sizes) {
  graft_memory_format format = GRAFT_FORMAT_CONTIGUOUS;
  if (c->schema->strides == OPS_SUGGEST) format = tns_suggest_format(op_tensor(c, c->schema->strides_arg));
  c->compute = op_tensor(c, 0)->dtype;
  op_out_format(c, 0, c->compute, ndim, sizes, format);
}

static graft_status infer_forward(op_call *c) {
  const resample_row *row = resample_row_of(c->schema->id);
  const graft_tensor *self = op_tensor(c, 0);
  int64_t sizes[GRAFT_MAX_DIMS];
  graft_status status = check_dtype(c, row);
  if (!status) status = check_input(c, row, self->ndim, self->sizes);
  if (!status) status = forward_sizes(c, row, 1, self->ndim, self->sizes, sizes);
  if (!status) out_sizes(c, self->ndim, sizes);
  return status;
}

static graft_status check_grad(op_call *c, int32_t ndim, const int64_t *sizes) {
  const graft_tensor *grad = op_tensor(c, 0);
  bool same = grad->ndim == ndim;
  for (int32_t i = 0; same && i < ndim; i++) same = grad->sizes[i] == sizes[i];
  return same ? GRAFT_OK : op_error(c, "grad_output has not the shape of the result (%s)", op_show_tensors(c));
}

/* upsample_*_backward(grad_output, output_size, input_size, ...) */
static graft_status infer_upsample_backward(op_call *c, const resample_row *row) {
  int64_t sizes[GRAFT_MAX_DIMS];
  graft_status status = check_list(c, 2, (uint32_t)row->dims + 2, 0);
  const int64_t *in = c->args[2].as.ints;
  if (!status) status = check_input(c, row, row->dims + 2, in);
  if (!status) status = forward_sizes(c, row, 1, row->dims + 2, in, sizes);
  if (!status) status = check_grad(c, row->dims + 2, sizes);
  if (!status) out_sizes(c, row->dims + 2, in);
  return status;
}

/* others: (grad_output, self, padding) */
static graft_status infer_backward(op_call *c) {
  const resample_row *row = resample_row_of(c->schema->id);
  graft_status status = check_dtype(c, row);
  if (status || resample_is_upsample(row->kind)) return status ? status : infer_upsample_backward(c, row);
  const graft_tensor *grad = op_tensor(c, 0), *self = op_tensor(c, 1);
  int64_t sizes[GRAFT_MAX_DIMS];
  if (self->dtype != grad->dtype) return op_error(c, "dtypes differ (%s)", op_show_tensors(c));
  status = check_input(c, row, self->ndim, self->sizes);
  memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
  if (!status && resample_is_padding(row->kind)) status = padded_sizes(c, row, 2, self->ndim, self->sizes, sizes);
  for (int32_t i = self->ndim - row->dims; !status && !resample_is_padding(row->kind) && i < self->ndim; i++) {
    if (grad->ndim == self->ndim) sizes[i] = grad->sizes[i];
    if (!sizes[i] || !self->sizes[1]) status = op_error(c, "nothing to average (%s)", op_show_tensors(c));
  }
  if (!status) status = check_grad(c, self->ndim, sizes);
  if (!status) out_sizes(c, self->ndim, self->sizes);
  return status;
}

/* --- gradients: calls of each other --- */

enum { LONGEST = 8 };

static graft_tensor *call_other(op_vjp *v, const resample_row *row, const graft_value *args, uint32_t count) {
  graft_tensor *out;
  fx_call(v->s, row->other, args, count, &out, 1);
  return out;
}

static void vjp_forward(op_vjp *v) {
  const resample_row *row = resample_row_of(v->schema->id);
  graft_tensor *self = vjp_arg(v, 0);
  graft_value args[LONGEST] = {fx_tensor(v->g[0])};
  uint32_t count = 1;
  if (resample_is_upsample(row->kind)) {
    args[count++] = v->args[1];
    args[count++] = (graft_value){GRAFT_VALUE_INTS, (uint32_t)self->ndim, {.ints = self->sizes}};
    for (uint32_t i = 2; i < v->schema->nargs; i++) args[count++] = v->args[i];
  } else {
    args[count++] = v->args[0];
    if (resample_is_padding(row->kind)) args[count++] = v->args[1];
  }
  v->results[0] = call_other(v, row, args, count);
}

static void vjp_backward(op_vjp *v) {
  const resample_row *row = resample_row_of(v->schema->id);
  graft_tensor *grad = vjp_arg(v, 0);
  graft_value args[LONGEST] = {fx_tensor(v->g[0])};
  uint32_t count = 1;
  if (resample_is_upsample(row->kind)) {
    args[count++] = v->args[1];
    for (uint32_t i = 3; i < v->schema->nargs; i++) args[count++] = v->args[i];
  } else if (resample_is_padding(row->kind)) {
    args[count++] = v->args[2];
  } else {
    const int64_t *spatial = grad->sizes + grad->ndim - row->dims;
    args[count++] = (graft_value){GRAFT_VALUE_INTS, (uint32_t)row->dims, {.ints = spatial}};
  }
  if (vjp_needs(v, 0)) v->results[0] = call_other(v, row, args, count);
  if (!resample_is_upsample(row->kind) && vjp_needs(v, 1)) v->results[1] = fx_zeros_like(v->s, v->g[0]);
}

#define DEFS(name, saved)                                                                             \
  {.op_id = GRAFT_OP_##name,                                                                          \
   .roles = "v",                                                                                      \
   .infer = infer_forward,                                                                            \
   .vjp = vjp_forward,                                                                                \
   .saves = saved,                                                                                    \
   .reference = ref_resample},                                                                        \
  {                                                                                                   \
    .op_id = GRAFT_OP_##name##_BACKWARD, .roles = "vv", .infer = infer_backward, .vjp = vjp_backward, \
    .reference = ref_resample                                                                         \
  }

static const op_def defs[] = {
    DEFS(ADAPTIVE_AVG_POOL2D, OP_SAVE_ARG(0)),
    DEFS(ADAPTIVE_AVG_POOL3D, OP_SAVE_ARG(0)),
    DEFS(UPSAMPLE_NEAREST1D, 0),
    DEFS(UPSAMPLE_NEAREST2D, 0),
    DEFS(UPSAMPLE_NEAREST3D, 0),
    DEFS(UPSAMPLE_NEAREST_EXACT2D, 0),
    DEFS(UPSAMPLE_LINEAR1D, 0),
    DEFS(UPSAMPLE_BILINEAR2D, 0),
    DEFS(UPSAMPLE_TRILINEAR3D, 0),
    DEFS(REFLECTION_PAD1D, OP_SAVE_ARG(0)),
    DEFS(REFLECTION_PAD2D, OP_SAVE_ARG(0)),
    DEFS(REFLECTION_PAD3D, OP_SAVE_ARG(0)),
    DEFS(REPLICATION_PAD1D, OP_SAVE_ARG(0)),
    DEFS(REPLICATION_PAD2D, OP_SAVE_ARG(0)),
    DEFS(REPLICATION_PAD3D, OP_SAVE_ARG(0)),
};
OP_TABLE(resample, defs)
