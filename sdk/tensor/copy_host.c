/* The copy between strided host memory: order the dims, merge what lies together, then go row by row. */
#include <string.h>

#include "tensor/copy_host.h"

typedef struct row_copy {
  graft_dtype to_dtype, from_dtype;
  int64_t to_step, from_step; /* bytes between elements */
  bool conj, neg;
} row_copy;

#define MOVE(bytes)                                                                          \
  for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, bytes); \
  return

/* Elements of the same dtype, moved as they are. The sizes are constants, so that each memcpy is a move. */
static void move_row(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t bytes) {
  if (to_step == bytes && from_step == bytes) {
    memmove(to, from, (size_t)(count * bytes));
    return;
  }
  switch (bytes) {
    case 1: MOVE(1);
    case 2: MOVE(2);
    case 4: MOVE(4);
    case 8: MOVE(8);
    case 16: MOVE(16);
    default: MOVE(32);
  }
}

#define CONVERT(to_type, from_type)             \
  for (int64_t i = 0; i < count; i++) {         \
    from_type x;                                \
    memcpy(&x, from + i * from_step, sizeof x); \
    to_type y = (to_type)x;                     \
    memcpy(to + i * to_step, &y, sizeof y);     \
  }                                             \
  return true

#define PAIR(to_dtype, from_dtype) ((uint64_t)(to_dtype) << 32 | (from_dtype))

/* The conversions that tests and optimizers do by the million, where C's own conversion is the rule. */
static bool convert_row_fast(const row_copy *row, char *to, const char *from, int64_t count) {
  int64_t to_step = row->to_step, from_step = row->from_step;
  switch (PAIR(row->to_dtype, row->from_dtype)) {
    case PAIR(GRAFT_F64, GRAFT_F32): CONVERT(double, float);
    case PAIR(GRAFT_F32, GRAFT_F64): CONVERT(float, double);
    case PAIR(GRAFT_WIDE, GRAFT_F32): CONVERT(long double, float);
    case PAIR(GRAFT_WIDE, GRAFT_F64): CONVERT(long double, double);
    case PAIR(GRAFT_F32, GRAFT_WIDE): CONVERT(float, long double);
    case PAIR(GRAFT_F64, GRAFT_WIDE): CONVERT(double, long double);
    case PAIR(GRAFT_I64, GRAFT_I32): CONVERT(int64_t, int32_t);
    case PAIR(GRAFT_F32, GRAFT_I64): CONVERT(float, int64_t);
    case PAIR(GRAFT_F32, GRAFT_I32): CONVERT(float, int32_t);
    case PAIR(GRAFT_F64, GRAFT_I64): CONVERT(double, int64_t);
    default: return false;
  }
}

static void copy_row(const row_copy *row, char *to, const char *from, int64_t count) {
  bool plain = !row->conj && !row->neg;
  if (plain && row->to_dtype == row->from_dtype) {
    move_row(to, row->to_step, from, row->from_step, count, (int64_t)dt_bytes(row->to_dtype));
    return;
  }
  if (plain && convert_row_fast(row, to, from, count)) return;
  for (int64_t i = 0; i < count; i++) {
    dt_value value = dt_load(row->from_dtype, from + i * row->from_step);
    if (row->conj) value.im = -value.im;
    if (row->neg) value.re = -value.re, value.im = -value.im;
    dt_store(row->to_dtype, to + i * row->to_step, value);
  }
}

typedef struct loop_dim {
  int64_t size, to_step, from_step;
} loop_dim;

/* The dims that matter, outermost first as the destination lies in memory, neighbours that nest merged. */
static int32_t plan_loops(const tns_host_copy *copy, loop_dim *dims) {
  int64_t to_bytes = (int64_t)dt_bytes(copy->to_dtype), from_bytes = (int64_t)dt_bytes(copy->from_dtype);
  int32_t count = 0;
  for (int32_t i = 0; i < copy->ndim; i++) {
    if (copy->sizes[i] == 1) continue;
    loop_dim d = {copy->sizes[i], copy->to_strides[i] * to_bytes, copy->from_strides[i] * from_bytes};
    int32_t at = count++;
    for (; at > 0 && dims[at - 1].to_step < d.to_step; at--) dims[at] = dims[at - 1];
    dims[at] = d;
  }
  int32_t merged = 0;
  for (int32_t i = 0; i < count; i++) {
    loop_dim *outer = merged ? &dims[merged - 1] : NULL, d = dims[i];
    if (outer && outer->to_step == d.size * d.to_step && outer->from_step == d.size * d.from_step) {
      *outer = (loop_dim){outer->size * d.size, d.to_step, d.from_step};
    } else {
      dims[merged++] = d;
    }
  }
  return merged;
}

void tns_copy_host(const tns_host_copy *copy) {
  loop_dim dims[GRAFT_MAX_DIMS + 1];
  if (tns_numel(copy->ndim, copy->sizes) == 0) return;
  int32_t ndim = plan_loops(copy, dims);
  if (ndim == 0) dims[ndim++] = (loop_dim){1, 0, 0};
  loop_dim row = dims[--ndim];
  row_copy rows = {copy->to_dtype, copy->from_dtype, row.to_step, row.from_step, copy->conj, copy->neg};
  int64_t index[GRAFT_MAX_DIMS] = {0};
  char *to = copy->to;
  const char *from = copy->from;
  for (;;) {
    copy_row(&rows, to, from, row.size);
    int32_t d = ndim - 1;
    for (; d >= 0; d--) {
      to += dims[d].to_step, from += dims[d].from_step;
      if (++index[d] < dims[d].size) break;
      to -= dims[d].size * dims[d].to_step, from -= dims[d].size * dims[d].from_step;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

void tns_copy_elements(const graft_tensor *to, void *to_data, const graft_tensor *from, const void *from_data,
                       bool conj, bool neg) {
  tns_copy_host(&(tns_host_copy){.to = to_data,
                                 .from = from_data,
                                 .to_dtype = to->dtype,
                                 .from_dtype = from->dtype,
                                 .ndim = to->ndim,
                                 .sizes = to->sizes,
                                 .to_strides = to->strides,
                                 .from_strides = from->strides,
                                 .conj = conj,
                                 .neg = neg});
}
