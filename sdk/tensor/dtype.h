/* Facts about dtypes, and conversions of single values. The universal value is ref_value: long double holds every
 * value of every real dtype exactly (i64, u64 and f64 included), so that one load and one store per dtype serve all. */
#ifndef GRAFT_SDK_DTYPE_H
#define GRAFT_SDK_DTYPE_H

#include <stdbool.h>

#include "graft/abi/dtype.h"
#include "graft/abi/tensor.h"

/* long double in memory: the dtype of the conformance oracle. Only the reference backend knows it, no plugin. */
#define GRAFT_WIDE                ((graft_dtype)0x00018080)
#define GRAFT_WIDE_COMPLEX        ((graft_dtype)0x00010081) /* two of them; 32 bytes */
#define GRAFT_NUMBER_WIDE         30
#define GRAFT_NUMBER_WIDE_COMPLEX 31

typedef enum dt_category { DT_BOOL, DT_INTEGER, DT_FLOAT, DT_COMPLEX } dt_category;

int dt_number(graft_dtype dtype);     /* GRAFT_NUMBER_*, -1 when unknown */
graft_dtype dt_of_number(int number); /* GRAFT_DTYPE_NONE when unknown */
uint64_t dt_bytes(graft_dtype dtype);
dt_category dt_category_of(graft_dtype dtype);
bool dt_is_float(graft_dtype dtype); /* real floating, float8 and half types included */
bool dt_is_complex(graft_dtype dtype);
bool dt_is_integral(graft_dtype dtype, bool or_bool);
bool dt_is_unsigned(graft_dtype dtype);
bool dt_is_half(graft_dtype dtype); /* f16, bf16 */
bool dt_is_float8(graft_dtype dtype);
graft_dtype dt_real(graft_dtype dtype);    /* c64 -> f32; others as they are */
graft_dtype dt_complex(graft_dtype dtype); /* f32 -> c64, f64 -> c128 */
uint64_t dt_bit(graft_dtype dtype);        /* 1 << number */

/* PyTorch's promotion of two dtypes (c10::promoteTypes); NONE when it refuses. */
graft_dtype dt_promote(graft_dtype a, graft_dtype b);
/* The dtype that floating results of integer inputs have, and Python's floats beside integers: f32 unless this thread
 * said otherwise. A part of every plan's key. */
graft_dtype dt_default(void);
void dt_set_default(graft_dtype dtype);
/* The dtype in which a dtype is accumulated or computed: f16, bf16, f32 -> f32; f64 -> f64; integers -> i64. */
graft_dtype dt_accumulate(graft_dtype dtype);

/* One element. Narrow floats round to nearest, ties to even, denormals, infinities and NaN included. Integers wrap as C
 * conversions from a wide integer do; float to bool is != 0; a complex source gives its
 * real part to a real type. */
typedef struct dt_value {
  long double re, im;
} dt_value;
dt_value dt_load(graft_dtype dtype, const void *element);
void dt_store(graft_dtype dtype, void *element, dt_value value);
/* A row of elements, each so many bytes behind the last, and their values, of which one lies `step` behind another. im
 * may be NULL: it is not asked for, or 0. */
typedef struct dt_parts {
  long double *re, *im;
  int64_t step;
} dt_parts;
void dt_load_row(graft_dtype dtype, const void *row, int64_t bytes, int64_t count, dt_parts to);
void dt_store_row(graft_dtype dtype, void *row, int64_t bytes, int64_t count, dt_parts from);
/* Values that lie one behind the other. */
static inline dt_parts dt_parts_of(dt_value *values) {
  return (dt_parts){&values->re, &values->im, sizeof *values / sizeof values->re};
}
/* The value rounded to a dtype and back. */
long double dt_round(graft_dtype dtype, long double value);
/* The largest finite number of a dtype; of a complex one, of its parts. */
long double dt_largest(graft_dtype dtype);
/* A scalar as a value, and a value as the scalar a dtype's item() is. */
dt_value dt_scalar_value(const graft_scalar *scalar);
graft_scalar dt_item(graft_dtype dtype, const void *element);

#endif
