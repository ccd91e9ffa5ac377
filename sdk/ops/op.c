/* Helpers that rules (infer) are written with. */
#include "ops/op.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

graft_tensor *op_tensor(const op_call *call, int arg) {
  return call->args[arg].kind == GRAFT_VALUE_TENSOR ? call->args[arg].as.tensor : NULL;
}

int64_t op_int(const op_call *call, int arg) {
  return call->args[arg].as.i;
}
double op_float(const op_call *call, int arg) {
  return call->args[arg].as.f;
}
bool op_bool(const op_call *call, int arg) {
  return call->args[arg].kind == GRAFT_VALUE_BOOL && call->args[arg].as.i;
}

graft_dtype op_dtype(const op_call *call, int arg) {
  return call->args[arg].kind == GRAFT_VALUE_DTYPE ? call->args[arg].as.dtype : GRAFT_DTYPE_NONE;
}

graft_scalar op_scalar(const op_call *call, int arg) {
  return call->args[arg].kind == GRAFT_VALUE_SCALAR ? call->args[arg].as.scalar : graft_scalar_none();
}

char op_role(const op_schema *schema, const op_def *def, uint32_t arg) {
  const char *role = def->roles;
  for (uint32_t i = 0; i < arg && *role; i++) {
    if (schema->args[i].kind == OPK_TENSOR || schema->args[i].kind == OPK_TENSORS) role++;
  }
  return *role ? *role : 'k';
}

int64_t *op_ints_new(op_call *call, uint32_t count) {
  if (count > OP_POOL - call->pool_used) abort(); /* lists here are dims and window sizes: at most 16 each */
  int64_t *items = call->pool + call->pool_used;
  call->pool_used += count;
  return items;
}

void op_set_ints(op_call *call, int arg, const int64_t *items, uint32_t count) {
  int64_t *copy = op_ints_new(call, count);
  if (count) memcpy(copy, items, count * sizeof *items);
  call->args[arg] = (graft_value){GRAFT_VALUE_INTS, count, {.ints = copy}};
}

void op_set_int(op_call *call, int arg, int64_t value) {
  call->args[arg] = (graft_value){GRAFT_VALUE_INT, 0, {.i = value}};
}

void op_set_dtype(op_call *call, int arg, graft_dtype dtype) {
  call->args[arg] = (graft_value){GRAFT_VALUE_DTYPE, 0, {.dtype = dtype}};
}

graft_status op_wrap_dim(const op_call *call, int64_t *dim, int32_t ndim) {
  int64_t rank = ndim ? ndim : 1;
  if (*dim < -rank || *dim >= rank) {
    return op_out_of_range(call, "dim %lld is out of range: expected %lld to %lld", (long long)*dim, (long long)-rank,
                           (long long)rank - 1);
  }
  if (*dim < 0) *dim += rank;
  return GRAFT_OK;
}

graft_status op_wrap_dims(op_call *call, int arg, int32_t ndim, bool empty_means_all, uint32_t *mask) {
  const graft_value *value = &call->args[arg];
  uint32_t bits = 0;
  if (value->kind == GRAFT_VALUE_NONE || (value->count == 0 && empty_means_all)) {
    bits = ndim ? (1u << ndim) - 1 : 0;
  } else {
    for (uint32_t i = 0; i < value->count; i++) {
      int64_t dim = value->as.ints[i];
      graft_status status = op_wrap_dim(call, &dim, ndim);
      if (status) return status;
      if (bits >> dim & 1) return op_error(call, "dim %lld appears more than once in the list of dims", (long long)dim);
      bits |= 1u << dim;
    }
    if (!ndim) bits = 0;
  }
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (bits >> i & 1) dims[count++] = i;
  }
  op_set_ints(call, arg, dims, count);
  *mask = bits;
  return GRAFT_OK;
}

/* --- promotion --- */

typedef struct categories {
  graft_dtype dimensioned, rank0, number;
} categories;

static graft_dtype join(graft_dtype a, graft_dtype b) {
  if (!a) return b;
  return b ? dt_promote(a, b) : a;
}

/* What a Python number weighs: bool, i64, the default float, the default complex. */
static graft_dtype number_dtype(const graft_scalar *scalar) {
  switch (dt_category_of(scalar->dtype)) {
    case DT_BOOL: return GRAFT_BOOL;
    case DT_INTEGER: return GRAFT_I64;
    case DT_FLOAT: return dt_default();
    default: return dt_complex(dt_default());
  }
}

static bool gather(categories *c, const graft_value *value) {
  if (value->kind == GRAFT_VALUE_SCALAR) {
    c->number = join(c->number, number_dtype(&value->as.scalar));
    return c->number;
  }
  if (value->kind == GRAFT_VALUE_TENSORS) {
    for (uint32_t i = 0; i < value->count; i++) {
      graft_value item = fx_tensor(value->as.tensors[i]);
      if (!gather(c, &item)) return false;
    }
    return true;
  }
  if (value->kind != GRAFT_VALUE_TENSOR) return true;
  graft_dtype *at = value->as.tensor->ndim ? &c->dimensioned : &c->rank0;
  *at = join(*at, value->as.tensor->dtype);
  return *at;
}

/* A lower category counts only where its kind (bool < integer < float < complex) is higher, and then only by its kind
 * where the higher one is floating. */
static graft_dtype combine(graft_dtype higher, graft_dtype lower) {
  if (!higher) return lower;
  if (!lower || dt_category_of(lower) <= dt_category_of(higher)) return higher;
  return dt_is_float(higher) ? dt_complex(higher) : dt_promote(higher, lower);
}

graft_dtype op_promote(const op_call *call, int from, int to) {
  categories c = {0};
  for (int i = from; i < to; i++) {
    if (!gather(&c, &call->args[i])) return GRAFT_DTYPE_NONE;
  }
  return combine(combine(c.dimensioned, c.rank0), c.number);
}

graft_dtype op_promote_tensors(const op_call *call, int from) {
  categories c = {0};
  for (int i = from; i < call->schema->nargs; i++) {
    if (call->schema->args[i].kind == OPK_TENSOR && !gather(&c, &call->args[i])) return GRAFT_DTYPE_NONE;
  }
  return combine(combine(c.dimensioned, c.rank0), c.number);
}

static long double most_of(graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_F16: return 65504;
    case GRAFT_BF16: return 0x1.fep127L;
    case GRAFT_F32:
    case GRAFT_C64: return 0x1.fffffep127L;
    case GRAFT_F64:
    case GRAFT_C128: return 0x1.fffffffffffffp1023L;
    case GRAFT_F8_E4M3FN: return 448;
    case GRAFT_F8_E5M2: return 57344;
    default: break;
  }
  if (!dt_is_integral(dtype, false)) return INFINITY; /* what only the oracle knows */
  return ldexpl(1, (int)(8 * dt_bytes(dtype)) - !dt_is_unsigned(dtype)) - 1;
}

graft_status op_number_fits(const op_call *call, int arg, graft_dtype dtype) {
  graft_scalar number = op_scalar(call, arg);
  if (!number.dtype || number.dtype == GRAFT_BOOL || dtype == GRAFT_BOOL) return GRAFT_OK;
  dt_value value = dt_scalar_value(&number);
  long double most = most_of(dtype);
  bool integral = dt_is_integral(dtype, false);
  bool has_infinity = !integral && dtype != GRAFT_F8_E4M3FN;
  bool wraps = integral && dt_is_unsigned(dtype) && dt_is_integral(number.dtype, false);
  bool fits = !(value.im != 0 && !dt_is_complex(dtype));
  if (isnan(value.re))
    fits &= !integral;
  else if (isinf(value.re))
    fits &= has_infinity;
  else
    fits &= value.re <= most && value.re >= (integral && dt_is_unsigned(dtype) && !wraps ? 0 : -most - integral);
  if (fits) return GRAFT_OK;
  return op_error(call, "%s is %Lg%s, which %s can't hold", call->schema->args[arg].name, value.re,
                  value.im != 0 ? " with an imaginary part" : "", graft_dtype_name(dtype));
}

graft_status op_check_sizes(const op_call *call, int arg) {
  const graft_value *v = &call->args[arg];
  const char *name = call->schema->args[arg].name;
  if (v->count > GRAFT_MAX_DIMS)
    return op_error(call, "%s has %u items; expected at most %d", name, v->count, GRAFT_MAX_DIMS);
  for (uint32_t i = 0; i < v->count; i++) {
    if (v->as.ints[i] < 0) return op_error(call, "%s has a negative item, %lld", name, (long long)v->as.ints[i]);
  }
  if (tns_numel((int32_t)v->count, v->as.ints) < 0)
    return op_error(call, "%s says more elements than can be counted", name);
  return GRAFT_OK;
}

/* --- outputs --- */

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
  op_out_like(&alone, 0, like->dtype, like);
  *meta = alone.out[0];
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

static bool same_sizes(const graft_meta *out, const graft_tensor *t) {
  return t->ndim == out->ndim && !memcmp(t->sizes, out->sizes, (size_t)out->ndim * sizeof *out->sizes);
}

static bool fast_strides(graft_meta *out, const graft_tensor *const *operands, int count) {
  bool contiguous = true, channels_last = true, dense = true;
  for (int i = 0; i < count; i++) {
    const graft_tensor *t = operands[i];
    if (!t || !same_sizes(out, t)) return false;
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

static graft_status broadcast_into(op_call *call, graft_meta *out, const graft_tensor *t) {
  if (t->ndim > out->ndim) {
    int32_t extra = t->ndim - out->ndim;
    memmove(out->sizes + extra, out->sizes, (size_t)out->ndim * sizeof *out->sizes);
    for (int32_t i = 0; i < extra; i++) out->sizes[i] = 1;
    out->ndim = t->ndim;
  }
  int32_t extra = out->ndim - t->ndim;
  for (int32_t i = 0; i < t->ndim; i++) {
    int64_t *size = &out->sizes[i + extra];
    if (t->sizes[i] == *size || t->sizes[i] == 1) continue;
    if (*size != 1) return op_error(call, "shapes do not broadcast: %s", op_show_tensors(call));
    *size = t->sizes[i];
  }
  return GRAFT_OK;
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
    graft_status status = broadcast_into(call, out, t);
    if (status) return status;
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

/* --- errors --- */

enum { SHOW_BUFFERS = 4, SHOW_BYTES = 512 };
static _Thread_local char show_buffers[SHOW_BUFFERS][SHOW_BYTES];
static _Thread_local unsigned show_next;

static size_t show_value(char *buffer, size_t room, const graft_value *value) {
  if (value->kind == GRAFT_VALUE_TENSOR) {
    tns_describe(value->as.tensor, buffer, room);
  } else if (value->kind == GRAFT_VALUE_SCALAR) {
    snprintf(buffer, room, "number of %s", graft_dtype_name(value->as.scalar.dtype));
  } else if (value->kind == GRAFT_VALUE_TENSORS) {
    size_t used = (size_t)snprintf(buffer, room, "{");
    for (uint32_t i = 0; i < value->count && used + 40 < room; i++) {
      graft_value item = fx_tensor(value->as.tensors[i]);
      if (i) used += (size_t)snprintf(buffer + used, room - used, ";");
      used += show_value(buffer + used, room - used, &item);
    }
    snprintf(buffer + used, room - used, "}");
  } else {
    snprintf(buffer, room, "absent");
  }
  return strlen(buffer);
}

const char *op_show(const op_call *call, int arg) {
  char *buffer = show_buffers[show_next++ % SHOW_BUFFERS];
  show_value(buffer, SHOW_BYTES, &call->args[arg]);
  return buffer;
}

const char *op_show_tensors(const op_call *call) {
  char *buffer = show_buffers[show_next++ % SHOW_BUFFERS];
  size_t used = 0;
  *buffer = 0;
  for (int i = 0; i < call->schema->nargs; i++) {
    uint8_t kind = call->schema->args[i].kind;
    if ((kind != OPK_TENSOR && kind != OPK_TENSORS) || op_absent(call, i) || used + 64 > SHOW_BYTES) continue;
    used += (size_t)snprintf(buffer + used, SHOW_BYTES - used, "%s%s ", used ? ", " : "", call->schema->args[i].name);
    used += show_value(buffer + used, SHOW_BYTES - used, &call->args[i]);
  }
  return buffer;
}

graft_status op_fail(const op_call *call, graft_status status, const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return err_set(status, "%s: %s", call->schema->name, text);
}

graft_status op_refuse_dtype(const op_call *call, int arg, const char *expected) {
  return op_error(call, "%s is %s; expected %s", call->schema->args[arg].name, op_show(call, arg), expected);
}
