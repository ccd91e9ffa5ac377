/* What a rule says of outputs: shapes and strides. */
#include <string.h>

#include "ops/core/op.h"

void op_out(op_call *call, int n, graft_dtype dtype, int32_t ndim, const int64_t *sizes) {
  graft_meta *out = &call->out[n];
  out->dtype = dtype;
  out->ndim = ndim;
  if (ndim) memcpy(out->sizes, sizes, (size_t)ndim * sizeof *sizes);
  tns_contiguous_strides(ndim, sizes, out->strides);
  call->out_wanted[n] = true;
  if ((uint32_t)n >= call->nouts) call->nouts = (uint32_t)n + 1;
}

void op_out_like(op_call *call, int n, graft_dtype dtype, const graft_tensor *like) {
  op_out(call, n, dtype, like->ndim, like->sizes);
  tns_preserve_strides(like->ndim, like->sizes, like->strides, call->out[n].strides);
}

void op_out_format(op_call *call, int n, graft_dtype dtype, int32_t ndim, const int64_t *sizes,
                   graft_memory_format format) {
  op_out(call, n, dtype, ndim, sizes);
  if ((format == GRAFT_FORMAT_CHANNELS_LAST && ndim == 4) || (format == GRAFT_FORMAT_CHANNELS_LAST_3D && ndim == 5)) {
    tns_channels_last_strides(ndim, sizes, call->out[n].strides);
  }
}

/* --- flat outputs: a Tensor[] counts as its items --- */

void op_out_list(op_call *call, int n, int like) {
  call->list_like[n] = (int8_t)like;
  call->out_wanted[n] = true;
  if ((uint32_t)n >= call->nouts) call->nouts = (uint32_t)n + 1;
}

static uint32_t return_count(const op_call *call, uint32_t ret) {
  return call->schema->rets[ret].kind == OPK_TENSORS ? call->args[call->list_like[ret]].count : 1;
}

uint32_t op_flat_count(const op_call *call) {
  uint32_t count = 0;
  for (uint32_t r = 0; r < call->schema->nrets; r++) count += return_count(call, r);
  return count;
}

static graft_status list_item(const op_call *call, uint32_t ret, uint32_t item, graft_meta *meta) {
  if (call->def->list_item) return call->def->list_item(call, ret, item, meta);
  const graft_tensor *like = call->args[call->list_like[ret]].as.tensors[item];
  op_call alone = {.nouts = 0};
  op_out_like(&alone, OUT, like->dtype, like);
  *meta = alone.out[OUT];
  return GRAFT_OK;
}

graft_status op_flat_outputs(const op_call *call, graft_meta *metas, bool *wanted, uint32_t capacity) {
  graft_status status = GRAFT_OK;
  uint32_t n = 0;
  for (uint32_t r = 0; r < call->schema->nrets; r++) {
    bool list = call->schema->rets[r].kind == OPK_TENSORS;
    for (uint32_t i = 0; i < return_count(call, r) && !status; i++, n++) {
      if (n >= capacity) continue;
      if (wanted) wanted[n] = call->out_wanted[r];
      if (!call->out_wanted[r])
        metas[n] = (graft_meta){0};
      else if (list)
        status = list_item(call, r, i, &metas[n]);
      else
        metas[n] = call->out[r];
    }
  }
  return status;
}

/* --- TensorIterator's output strides ---
 * PyTorch gives a pointwise result the layout of its operands: their own strides where all are dense and alike,
 * otherwise dense strides in an order found by comparing operands' strides dim by dim, the first operand first. */

static bool fast_strides(graft_meta *out, const graft_tensor *const *operands, int count) {
  bool contiguous = true, channels_last = true, dense = true;
  for (int i = 0; i < count; i++) {
    const graft_tensor *t = operands[i];
    if (!t || !tns_has_sizes(t, out->ndim, out->sizes)) return false;
    contiguous &= tns_is_contiguous(t->ndim, t->sizes, t->strides);
    channels_last &= t->ndim == 4 && tns_is_channels_last(t->ndim, t->sizes, t->strides);
    dense &= tns_is_dense(t->ndim, t->sizes, t->strides) &&
             !memcmp(t->strides, operands[0]->strides, (size_t)t->ndim * sizeof *t->strides);
  }
  if (contiguous) return true; /* out is contiguous already */
  if (channels_last) {
    tns_channels_last_strides(out->ndim, out->sizes, out->strides);
    return true;
  }
  if (!dense) return false;
  memcpy(out->strides, operands[0]->strides, (size_t)out->ndim * sizeof *out->strides);
  return true;
}

static int64_t operand_stride(const graft_meta *out, const graft_tensor *t, int32_t dim) {
  int32_t own = dim - (out->ndim - t->ndim);
  if (own < 0 || (t->sizes[own] == 1 && out->sizes[dim] != 1)) return 0;
  return t->strides[own] * (int64_t)dt_bytes(t->dtype);
}

/* Positive: dim0 belongs outside dim1; 0: no operand decides. */
static int compare_dims(const graft_meta *out, const graft_tensor *const *operands, int count, int32_t dim0,
                        int32_t dim1) {
  for (int i = 0; i < count; i++) {
    if (!operands[i]) continue;
    int64_t stride0 = operand_stride(out, operands[i], dim0), stride1 = operand_stride(out, operands[i], dim1);
    if (!stride0 || !stride1) continue;
    if (stride0 != stride1) return stride0 < stride1 ? -1 : 1;
    if (out->sizes[dim0] > out->sizes[dim1]) return 1;
  }
  return 0;
}

void op_iterator_strides(graft_meta *out, const graft_tensor *const *operands, int count) {
  if (!out->ndim || !count || fast_strides(out, operands, count)) return;
  int32_t order[GRAFT_MAX_DIMS]; /* innermost first */
  for (int32_t i = 0; i < out->ndim; i++) order[i] = out->ndim - 1 - i;
  for (int32_t i = 1; i < out->ndim; i++) {
    int32_t at1 = i;
    for (int32_t at0 = i - 1; at0 >= 0; at0--) {
      int comparison = compare_dims(out, operands, count, order[at0], order[at1]);
      if (comparison < 0) break;
      if (comparison == 0) continue;
      int32_t swap = order[at0];
      order[at0] = order[at1];
      order[at1] = swap;
      at1 = at0;
    }
  }
  int64_t stride = 1;
  for (int32_t i = 0; i < out->ndim; i++) {
    out->strides[order[i]] = stride;
    stride *= out->sizes[order[i]];
  }
  for (int32_t i = 0; i < out->ndim; i++) {
    if (!out->strides[i]) { /* empty: strides as if contiguous */
      tns_contiguous_strides(out->ndim, out->sizes, out->strides);
      break;
    }
  }
}

/* PyTorch converts an operand before it looks at strides, and the converted one is dense. */
static const graft_tensor *as_converted(const op_call *call, char role, const graft_tensor *t, graft_tensor *shell) {
  if (role != 'b' || !call->compute || t->dtype == call->compute || !t->ndim) return t;
  *shell = *t;
  tns_preserve_strides(t->ndim, t->sizes, t->strides, shell->strides);
  return shell;
}

graft_status op_out_broadcast(op_call *call, int n, graft_dtype dtype) {
  const graft_tensor *operands[OP_MAX_ARGS];
  graft_tensor shells[3];
  int count = 0;
  graft_meta *out = &call->out[n];
  out->ndim = 0;
  const char *role = call->def->roles;
  for (int i = 0; i < call->schema->nargs && *role; i++) {
    uint8_t kind = call->schema->args[i].kind;
    if (kind != OPK_TENSOR && kind != OPK_TENSORS) continue;
    char letter = *role++;
    graft_tensor *t = op_tensor(call, i);
    if (letter != 'b' && letter != 'c') continue;
    if (call->args[i].kind == GRAFT_VALUE_SCALAR) operands[count++] = NULL;
    if (!t) continue;
    if (!tns_broadcast_sizes(&out->ndim, out->sizes, t->ndim, t->sizes))
      return op_error(call, "shapes do not broadcast: %s", op_show_tensors(call));
    operands[count] = count < 3 ? as_converted(call, letter, t, &shells[count]) : t;
    count++;
  }
  if (call->def->flags & OP_SECOND_FIRST) {
    const graft_tensor *first = operands[0];
    operands[0] = operands[1];
    operands[1] = first;
  }
  if (call->def->flags & OP_NUMBER_FORM) operands[count++] = NULL;
  int64_t sizes[GRAFT_MAX_DIMS];
  memcpy(sizes, out->sizes, sizeof sizes);
  op_out(call, n, dtype, out->ndim, sizes);
  op_iterator_strides(out, operands, count);
  return GRAFT_OK;
}
