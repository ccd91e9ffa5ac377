/* The copy between strided host memory: order the dims, merge what lies together, then go row by row. */
#include <string.h>

#include "tensor/copy_host.h"

/* Strides count elements. */
typedef struct host_copy {
  void *to;
  const void *from; /* may be `to`, with equal strides and element sizes */
  graft_dtype to_dtype, from_dtype;
  int32_t ndim;
  const int64_t *sizes, *to_strides, *from_strides;
  bool conj, neg; /* what happens to each value on the way */
} host_copy;

static inline void move_each(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count,
                             size_t bytes) {
  for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, bytes);
}

/* Elements of the same dtype, moved as they are. The sizes are constants, so that each memcpy is a move. */
static void move_row(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count, int64_t bytes) {
  if (to_step == bytes && from_step == bytes) {
    memmove(to, from, (size_t)(count * bytes));
    return;
  }
  switch (bytes) {
    case 1: move_each(to, to_step, from, from_step, count, 1); break;
    case 2: move_each(to, to_step, from, from_step, count, 2); break;
    case 4: move_each(to, to_step, from, from_step, count, 4); break;
    case 8: move_each(to, to_step, from, from_step, count, 8); break;
    case 16: move_each(to, to_step, from, from_step, count, 16); break;
    default: move_each(to, to_step, from, from_step, count, 32); break;
  }
}

/* The conversions that tests and optimizers do by the million, where C's own conversion is the rule. */
#define CONVERTER(name, to_type, from_type)                                                         \
  static void name(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count) { \
    for (int64_t i = 0; i < count; i++) {                                                           \
      from_type x;                                                                                  \
      memcpy(&x, from + i * from_step, sizeof x);                                                   \
      to_type y = (to_type)x;                                                                       \
      memcpy(to + i * to_step, &y, sizeof y);                                                       \
    }                                                                                               \
  }
CONVERTER(f64_of_f32, double, float)
CONVERTER(f32_of_f64, float, double)
CONVERTER(wide_of_f32, long double, float)
CONVERTER(wide_of_f64, long double, double)
CONVERTER(f32_of_wide, float, long double)
CONVERTER(f64_of_wide, double, long double)
CONVERTER(i64_of_i32, int64_t, int32_t)
CONVERTER(f32_of_i64, float, int64_t)
CONVERTER(f32_of_i32, float, int32_t)
CONVERTER(f64_of_i64, double, int64_t)

typedef void (*converter)(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t count);

static const struct {
  graft_dtype to, from;
  converter convert;
} converters[] = {{GRAFT_F64, GRAFT_F32, f64_of_f32},   {GRAFT_F32, GRAFT_F64, f32_of_f64},
                  {GRAFT_WIDE, GRAFT_F32, wide_of_f32}, {GRAFT_WIDE, GRAFT_F64, wide_of_f64},
                  {GRAFT_F32, GRAFT_WIDE, f32_of_wide}, {GRAFT_F64, GRAFT_WIDE, f64_of_wide},
                  {GRAFT_I64, GRAFT_I32, i64_of_i32},   {GRAFT_F32, GRAFT_I64, f32_of_i64},
                  {GRAFT_F32, GRAFT_I32, f32_of_i32},   {GRAFT_F64, GRAFT_I64, f64_of_i64}};

static converter converter_of(graft_dtype to, graft_dtype from) {
  for (size_t i = 0; i < sizeof converters / sizeof *converters; i++) {
    if (converters[i].to == to && converters[i].from == from) return converters[i].convert;
  }
  return NULL;
}

/* How a row is copied; the steps are bytes between elements. */
typedef struct row_copy {
  graft_dtype to_dtype, from_dtype;
  int64_t to_step, from_step;
  bool conj, neg;
  bool moves;        /* nothing is done to the values */
  converter convert; /* NULL: through the widest type */
} row_copy;

static row_copy plan_row(const host_copy *copy, int64_t to_step, int64_t from_step) {
  row_copy row = {.to_dtype = copy->to_dtype,
                  .from_dtype = copy->from_dtype,
                  .to_step = to_step,
                  .from_step = from_step,
                  .conj = copy->conj,
                  .neg = copy->neg};
  bool plain = !copy->conj && !copy->neg;
  row.moves = plain && copy->to_dtype == copy->from_dtype;
  row.convert = plain ? converter_of(copy->to_dtype, copy->from_dtype) : NULL;
  return row;
}

static void copy_row(const row_copy *row, char *to, const char *from, int64_t count) {
  if (row->moves) {
    move_row(to, row->to_step, from, row->from_step, count, (int64_t)dt_bytes(row->to_dtype));
    return;
  }
  if (row->convert) {
    row->convert(to, row->to_step, from, row->from_step, count);
    return;
  }
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
static int32_t plan_loops(const host_copy *copy, loop_dim *dims) {
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

static void copy_strided(const host_copy *copy) {
  loop_dim dims[GRAFT_MAX_DIMS + 1];
  if (tns_numel(copy->ndim, copy->sizes) == 0) return;
  int32_t ndim = plan_loops(copy, dims);
  if (ndim == 0) dims[ndim++] = (loop_dim){1, 0, 0};
  loop_dim row = dims[--ndim];
  row_copy rows = plan_row(copy, row.to_step, row.from_step);
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
  copy_strided(&(host_copy){.to = to_data,
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
