/* What reference kernels are written with. They compute in long double, which holds every value of every real dtype,
 * and round once when they store: they are the oracle, so they are plain rather than fast. Sums go through ref_sum and
 * ref_dot, which can imitate narrower accumulators and other orders for the tests of the suite itself. */
#ifndef GRAFT_SDK_REF_H
#define GRAFT_SDK_REF_H

#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "graft/abi/plugin.h"
#include "ops/core/schema.h"
#include "ops/generated/kernels.h"
#include "tensor/dtype.h"

/* Every kernel has the signature of its slot, and most have no use for exec. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

typedef long double ref_real;
typedef long double complex ref_complex;

/* A buffer of the reference plugin: host memory. */
struct graft_buffer {
  char *data;
  bool imported; /* the data belongs to others */
};
/* One over memory of others, described in `space`, which the caller keeps. */
graft_buffer *ref_buffer_over(graft_buffer *space, void *data);

/* The host's functions, for kernels whose output size depends on data. Every host of this process offers the same ones,
 * so the latest that opened the plugin serves all instances. */
const graft_host *ref_host(void);
void ref_host_set(const graft_host *host);

/* The first byte of a tensor's data. */
char *ref_data(const graft_tensor_desc *d);
int64_t ref_numel(const graft_tensor_desc *d);

/* calloc's, and NULL where there is no memory, not for no items. No byte more than they take: a sanitizer sees what is
 * read or written behind them. */
void *ref_zeros(int64_t count, size_t bytes);

/* A tensor's values as a dense row-major array. re is NULL when host memory ran out. */
typedef struct ref_array {
  int64_t count;
  ref_real *re, *im; /* im NULL for real dtypes */
} ref_array;
ref_array ref_new(int64_t count, bool complex_values);               /* zeros */
ref_array ref_read(const graft_tensor_desc *d);                      /* NULL: an array with re NULL and count 0 */
void ref_write(const graft_tensor_desc *d, const ref_array *values); /* NULL: nothing */
void ref_free(ref_array *a);
/* Frees an array where its scope ends: REF_OWNED ref_array x = ref_read(a->self); */
#define REF_OWNED __attribute__((cleanup(ref_free)))
static inline ref_complex ref_at(const ref_array *a, int64_t i) {
  return CMPLXL(a->re[i], a->im ? a->im[i] : 0); /* x + y * I would make NaN of an infinite y */
}
/* to[at] = from[i], both complex or neither. */
static inline void ref_take(ref_array *to, int64_t at, const ref_array *from, int64_t i) {
  to->re[at] = from->re[i];
  if (to->im) to->im[at] = from->im[i];
}
/* The arrays of a kernel that has many: those of `in` are read, those of `out` begin as zeros behind them, and both
 * stay empty where a descriptor is NULL. False: no memory. ref_arrays_close frees them, and writes the results where
 * ok. */
bool ref_arrays_open(ref_array *arrays, const graft_tensor_desc *const *in, int ins,
                     const graft_tensor_desc *const *out, int outs);
graft_status ref_arrays_close(ref_array *arrays, int ins, const graft_tensor_desc *const *out, int outs, bool ok);
/* OUT_OF_MEMORY for a kernel to return. */
graft_status ref_no_memory(void);
/* Whether every str argument has a value that there is, or none. */
bool ref_texts_are_known(const op_schema *schema, const void *args);
/* How sums are accumulated; REF_WIDE is the default. For tests: rounding after each step to the accumulator's dtype,
 * and the reverse order. Per thread. */
enum { REF_WIDE = 0, REF_NARROW = 1, REF_REVERSED = 2, REF_NO_FMA = 4 };
extern _Thread_local unsigned ref_mode;
/* Sum of x[i * step], and of x[i*xs] * y[i*ys], for values of `dtype`. */
ref_real ref_sum(graft_dtype dtype, const ref_real *x, int64_t step, int64_t count);
ref_real ref_dot(graft_dtype dtype, const ref_real *x, int64_t xs, const ref_real *y, int64_t ys, int64_t count);
/* What ref_dot gives of x and each of several y, of which one begins `next` behind another. */
typedef struct ref_factors {
  const ref_real *at;
  int64_t step, next, count;
} ref_factors;
void ref_dots(graft_dtype dtype, const ref_real *x, int64_t xs, ref_factors y, int64_t count, ref_real *sums);
/* out = a b for dense a [n,k] and b [k,m]: each number is ref_dot's of a row and a column, to the bit. */
void ref_product(graft_dtype dtype, int64_t n, int64_t k, int64_t m, const ref_real *a, const ref_real *b,
                 ref_real *out);

static inline void ref_add(graft_dtype dtype, ref_real *sum, ref_real value) {
  *sum = ref_sum(dtype, (ref_real[]){*sum, value}, 1, 2);
}
/* The same of each of to, and factor times each of from; to the bit. */
void ref_add_scaled(graft_dtype dtype, ref_real *to, ref_real factor, const ref_real *from, int64_t count);
static inline void ref_add_element(graft_dtype dtype, ref_array *sums, int64_t at, const ref_array *from, int64_t i) {
  ref_add(dtype, &sums->re[at], from->re[i]);
  if (sums->im) ref_add(dtype, &sums->im[at], from->im[i]);
}
/* Integers wrap around in 64 bits, as machines have it, where a long double would round: an integer's bits, and the
 * integer that has these. */
uint64_t ref_bits(ref_real integer);
ref_real ref_of_bits(graft_dtype dtype, uint64_t bits);

/* Philox 4x32-10: one block of four words. */
void ref_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]);
/* Word and element i of a call's stream; see graft_philox. */
uint64_t ref_philox_offset(const graft_philox *p); /* with what state adds */
uint32_t ref_philox_word(const graft_philox *p, uint64_t word);
ref_real ref_philox_uniform(const graft_philox *p, graft_dtype dtype, uint64_t element); /* in [0, 1) */

/* Copies the field of that name, of an argument or a result, out of an op's args; leaves *to where the op has none. For
 * kernels that serve several ops. */
void ref_field(const void *args, const char *name, void *to, size_t bytes);

/* A scalar argument; `fallback` where absent. */
static inline ref_real ref_scalar(const graft_scalar *s, ref_real fallback) {
  return s ? dt_scalar_value(s).re : fallback;
}

/* Splits a shape at a dim: outer x size x inner. */
typedef struct ref_split {
  int64_t outer, size, inner;
} ref_split;
ref_split ref_split_at(const graft_tensor_desc *d, int64_t dim);

#endif
