/* See ref.h. */
#include "ops/core/ref.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "ops/core/schema.h"

_Thread_local unsigned ref_mode;

enum { REF_MAX_DIMS = 64 };

graft_buffer *ref_buffer_over(graft_buffer *space, void *data) {
  *space = (graft_buffer){.data = data, .imported = true};
  return space;
}

static _Atomic(const graft_host *) host_table;
const graft_host *ref_host(void) {
  return atomic_load(&host_table);
}
void ref_host_set(const graft_host *host) {
  atomic_store(&host_table, host);
}

char *ref_data(const graft_tensor_desc *d) {
  if (d->flags & GRAFT_TENSOR_HOST_VALUE) return (char *)d->dl.data;
  return d->dl.data ? d->dl.data->data + d->dl.byte_offset : NULL;
}

int64_t ref_numel(const graft_tensor_desc *d) {
  int64_t count = 1;
  for (int32_t i = 0; i < d->dl.ndim; i++) count *= d->dl.shape[i];
  return count;
}

void *ref_zeros(int64_t count, size_t bytes) {
  return calloc(count ? (size_t)count : 1, bytes);
}

ref_array ref_new(int64_t count, bool complex_values) {
  ref_array a = {count, ref_zeros(count, sizeof *a.re), NULL};
  if (a.re && complex_values) a.im = ref_zeros(count, sizeof *a.im);
  if (complex_values && !a.im) ref_free(&a);
  return a;
}

void ref_free(ref_array *a) {
  free(a->re);
  free(a->im);
  *a = (ref_array){0};
}

/* Visits a strided tensor's rows in row-major order. A row is what one step leads through: the last dim, and those
 * before it that it follows without a gap. */
typedef struct walker {
  const graft_tensor_desc *d;
  char *at;
  int64_t index[REF_MAX_DIMS];
  int64_t bytes; /* of an element */
  int64_t row, step;
  int32_t outer; /* the dims that are no part of a row */
} walker;

static walker walk(const graft_tensor_desc *d) {
  walker w = {.d = d, .at = ref_data(d), .bytes = (int64_t)dt_bytes(d->dl.dtype), .row = 1, .outer = d->dl.ndim};
  for (; w.outer > 0; w.outer--) {
    int64_t size = d->dl.shape[w.outer - 1], stride = d->dl.strides[w.outer - 1];
    if (size == 1) continue;
    if (w.row != 1 && stride != w.step * w.row) break;
    if (w.row == 1) w.step = stride;
    w.row *= size;
  }
  return w;
}

static void next_row(walker *w) {
  for (int32_t i = w->outer - 1; i >= 0; i--) {
    w->at += w->d->dl.strides[i] * w->bytes;
    if (++w->index[i] < w->d->dl.shape[i]) return;
    w->at -= w->d->dl.strides[i] * w->bytes * w->d->dl.shape[i];
    w->index[i] = 0;
  }
}

static dt_parts parts_from(const ref_array *a, int64_t i) {
  return (dt_parts){&a->re[i], a->im ? &a->im[i] : NULL, 1};
}

ref_array ref_read(const graft_tensor_desc *d) {
  if (!d) return (ref_array){0};
  ref_array a = ref_new(ref_numel(d), dt_is_complex(d->dl.dtype));
  walker w = walk(d);
  for (int64_t i = 0; a.re && i < a.count; i += w.row, next_row(&w)) {
    dt_load_row(d->dl.dtype, w.at, w.step * w.bytes, w.row, parts_from(&a, i));
  }
  return a;
}

void ref_write(const graft_tensor_desc *d, const ref_array *values) {
  if (!d) return;
  walker w = walk(d);
  for (int64_t i = 0; i < values->count; i += w.row, next_row(&w)) {
    int64_t count = w.row < values->count - i ? w.row : values->count - i;
    dt_store_row(d->dl.dtype, w.at, w.step * w.bytes, count, parts_from(values, i));
  }
}

bool ref_arrays_open(ref_array *arrays, const graft_tensor_desc *const *in, int ins,
                     const graft_tensor_desc *const *out, int outs) {
  bool ok = true;
  for (int i = 0; i < ins; i++) {
    arrays[i] = ref_read(in[i]);
    ok &= !in[i] || arrays[i].re;
  }
  for (int i = 0; i < outs; i++) {
    arrays[ins + i] = out[i] ? ref_new(ref_numel(out[i]), false) : (ref_array){0};
    ok &= !out[i] || arrays[ins + i].re;
  }
  return ok;
}

graft_status ref_arrays_close(ref_array *arrays, int ins, const graft_tensor_desc *const *out, int outs, bool ok) {
  for (int i = 0; ok && i < outs; i++) ref_write(out[i], &arrays[ins + i]);
  for (int i = 0; i < ins + outs; i++) ref_free(&arrays[i]);
  return ok ? GRAFT_OK : ref_no_memory();
}

graft_status ref_no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a reference kernel");
}

bool ref_texts_are_known(const op_schema *schema, const void *args) {
  for (int i = 0; i < schema->nargs; i++) {
    const op_arg *arg = &schema->args[i];
    uint32_t value, known = 0;
    if (arg->kind != OPK_STR) continue;
    memcpy(&value, (const char *)args + arg->offset, sizeof value);
    while (arg->strings[known]) known++;
    if (value > known) return false;
  }
  return true;
}

void ref_field(const void *args, const char *name, void *to, size_t bytes) {
  const op_schema *schema = op_schema_of(((const graft_args *)args)->op_id);
  const char *base = args;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    if (!strcmp(schema->args[i].name, name)) memcpy(to, base + schema->args[i].offset, bytes);
  }
  for (uint32_t i = 0; i < schema->nrets; i++) {
    if (!strcmp(schema->rets[i].name, name)) memcpy(to, base + schema->rets[i].offset, bytes);
  }
}

/* --- sums --- */

/* Rounded to an accumulator's dtype. A call of dt_round takes longer than what is summed up. */
static inline ref_real narrow(graft_dtype accumulator, ref_real x) {
  if (accumulator == GRAFT_F32) return (float)x;
  return accumulator == GRAFT_F64 ? (double)x : dt_round(accumulator, x);
}

uint64_t ref_bits(ref_real integer) {
  return integer < 0 ? (uint64_t)(int64_t)integer : (uint64_t)integer;
}
ref_real ref_of_bits(graft_dtype dtype, uint64_t bits) {
  return dtype == GRAFT_U64 ? (ref_real)bits : (ref_real)(int64_t)bits;
}

static ref_real integer_sum(graft_dtype dtype, const ref_real *x, int64_t step_size, int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; i++) sum += ref_bits(x[i * step_size]);
  return ref_of_bits(dtype, sum);
}

static ref_real integer_dot(graft_dtype dtype, const ref_real *x, int64_t xs, const ref_real *y, int64_t ys,
                            int64_t count) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; i++) sum += ref_bits(x[i * xs]) * ref_bits(y[i * ys]);
  return ref_of_bits(dtype, sum);
}

/* Number i of a sum lies at `first + i * step`. */
typedef struct line {
  const void *at; /* long doubles, or doubles */
  int64_t first, step;
} line;

/* Of `count` numbers; for tests from the last to the first. */
static line line_of(const void *at, int64_t step, int64_t count) {
  const bool reversed = ref_mode & REF_REVERSED && count > 0;
  return reversed ? (line){at, (count - 1) * step, -step} : (line){at, 0, step};
}

static ref_real wide_sum(const ref_real *x, int64_t step, int64_t count) {
  ref_real sum = 0;
  for (int64_t i = 0; i < count; i++) sum += x[i * step];
  return sum;
}

ref_real ref_sum(graft_dtype dtype, const ref_real *x, int64_t step, int64_t count) {
  if (dt_is_integral(dtype, true)) return integer_sum(dtype, x, step, count);
  const line l = line_of(x, step, count);
  if (!(ref_mode & REF_NARROW)) return wide_sum(x + l.first, l.step, count);
  const graft_dtype accumulator = dt_accumulate(dtype);
  ref_real sum = 0;
  for (int64_t i = 0; i < count; i++) sum = narrow(accumulator, sum + x[l.first + i * l.step]);
  return sum;
}

void ref_add_scaled(graft_dtype dtype, ref_real *to, ref_real factor, const ref_real *from, int64_t count) {
  const bool integral = dt_is_integral(dtype, true), narrowed = ref_mode & REF_NARROW;
  const bool reversed = ref_mode & REF_REVERSED;
  const graft_dtype accumulator = dt_accumulate(dtype);
  for (int64_t i = 0; i < count; i++) {
    const ref_real value = factor * from[i], first = reversed ? value : to[i], second = reversed ? to[i] : value;
    if (integral)
      ref_add(dtype, &to[i], value);
    else if (narrowed)
      to[i] = narrow(accumulator, narrow(accumulator, 0 + first) + second);
    else
      to[i] = 0 + first + second;
  }
}

/* How often a sum is looked at: at an infinity or NaN, which a finite product does not change, adding takes an x87 unit
 * a hundred times as long. */
enum { LOOKED_AT = 8 };

/* Beside how sums are accumulated: factors are doubles, which an x87 unit loads in a fifth of the time. */
enum { DOUBLES = 8 };

static inline ref_real factor_of(unsigned mode, line l, int64_t i) {
  const int64_t place = l.first + i * l.step;
  return mode & DOUBLES ? ((const double *)l.at)[place] : ((const ref_real *)l.at)[place];
}

static inline ref_real product_of(unsigned mode, graft_dtype accumulator, ref_real x, ref_real y) {
  return mode & REF_NO_FMA ? narrow(accumulator, x * y) : x * y;
}

/* A sum of products at work: so many of them are in it. */
typedef struct dot_sum {
  ref_real sum;
  int64_t done;
} dot_sum;

/* Where it is called `mode` is known: the loop without rounding takes most of the suite's time. */
static inline __attribute__((always_inline)) ref_real dot(unsigned mode, graft_dtype accumulator, dot_sum from, line x,
                                                          line y, int64_t count) {
  ref_real sum = from.sum;
  int64_t i = from.done;
  while (i < count && isfinite(sum)) {
    const int64_t end = count - i < LOOKED_AT ? count : i + LOOKED_AT;
    for (; i < end; i++) {
      sum += product_of(mode, accumulator, factor_of(mode, x, i), factor_of(mode, y, i));
      if (mode & REF_NARROW) sum = narrow(accumulator, sum);
    }
  }
  for (; i < count; i++) {
    const ref_real product = product_of(mode, accumulator, factor_of(mode, x, i), factor_of(mode, y, i));
    if (!isfinite(product)) sum += product;
  }
  return sum;
}

ref_real ref_dot(graft_dtype dtype, const ref_real *x, int64_t xs, const ref_real *y, int64_t ys, int64_t count) {
  if (dt_is_integral(dtype, false)) return integer_dot(dtype, x, xs, y, ys, count);
  const line a = line_of(x, xs, count), b = line_of(y, ys, count);
  const dot_sum none = {0, 0};
  if (!(ref_mode & REF_NARROW)) return dot(REF_WIDE, dtype, none, a, b, count);
  const graft_dtype accumulator = dt_accumulate(dtype);
  if (!(ref_mode & REF_NO_FMA)) return dot(REF_NARROW, accumulator, none, a, b, count);
  return dot(REF_NARROW | REF_NO_FMA, accumulator, none, a, b, count);
}

enum { DOTS = 4 };

/* Several sums at once, in the order of each: one alone waits for each of its additions. The second factors of one
 * begin `next` behind another's. */
static inline __attribute__((always_inline)) void dots(unsigned mode, graft_dtype accumulator, line x, line y,
                                                       int64_t next, int64_t count, ref_real sums[DOTS]) {
  ref_real a = 0, b = 0, c = 0, d = 0;
  const line ys[DOTS] = {
      y, {y.at, y.first + next, y.step}, {y.at, y.first + 2 * next, y.step}, {y.at, y.first + 3 * next, y.step}};
  int64_t i = 0;
  while (i < count && isfinite(a) && isfinite(b) && isfinite(c) && isfinite(d)) {
    const int64_t end = count - i < LOOKED_AT ? count : i + LOOKED_AT;
    for (; i < end; i++) {
      const ref_real factor = factor_of(mode, x, i);
      a += product_of(mode, accumulator, factor, factor_of(mode, ys[0], i));
      b += product_of(mode, accumulator, factor, factor_of(mode, ys[1], i));
      c += product_of(mode, accumulator, factor, factor_of(mode, ys[2], i));
      d += product_of(mode, accumulator, factor, factor_of(mode, ys[3], i));
      if (!(mode & REF_NARROW)) continue;
      a = narrow(accumulator, a), b = narrow(accumulator, b);
      c = narrow(accumulator, c), d = narrow(accumulator, d);
    }
  }
  const ref_real so_far[DOTS] = {a, b, c, d};
  for (int k = 0; k < DOTS; k++) sums[k] = dot(mode, accumulator, (dot_sum){so_far[k], i}, x, ys[k], count);
}

/* Of floating numbers. */
static inline __attribute__((always_inline)) void dots_as_asked(unsigned numbers, graft_dtype dtype, line x, line y,
                                                                int64_t next, int64_t count, ref_real sums[DOTS]) {
  const graft_dtype accumulator = dt_accumulate(dtype);
  if (!(ref_mode & REF_NARROW))
    dots(numbers | REF_WIDE, dtype, x, y, next, count, sums);
  else if (!(ref_mode & REF_NO_FMA))
    dots(numbers | REF_NARROW, accumulator, x, y, next, count, sums);
  else
    dots(numbers | REF_NARROW | REF_NO_FMA, accumulator, x, y, next, count, sums);
}

void ref_dots(graft_dtype dtype, const ref_real *x, int64_t xs, ref_factors y, int64_t count, ref_real *sums) {
  int64_t i = 0;
  for (; !dt_is_integral(dtype, false) && i + DOTS <= y.count; i += DOTS)
    dots_as_asked(0, dtype, line_of(x, xs, count), line_of(y.at + i * y.next, y.step, count), y.next, count, &sums[i]);
  for (; i < y.count; i++) sums[i] = ref_dot(dtype, x, xs, y.at + i * y.next, y.step, count);
}

/* Rows of `each` numbers that lie `step` apart, one behind the other. False: one of them is no double, or NaN. */
static bool as_doubles(double *to, const ref_real *from, int64_t rows, int64_t each, int64_t step) {
  bool same = true;
  for (int64_t row = 0; row < rows; row++) {
    for (int64_t i = 0; i < each; i++) {
      to[row * each + i] = (double)from[row * step + i];
      same &= to[row * each + i] == from[row * step + i];
    }
  }
  return same;
}

/* Some columns of b at a time, which stay in the cache while all rows of a meet them. */
void ref_product(graft_dtype dtype, int64_t n, int64_t k, int64_t m, const ref_real *a, const ref_real *b,
                 ref_real *out) {
  const bool many = n >= DOTS && !dt_is_integral(dtype, false); /* the copies are worth it */
  double *rows = many ? malloc((size_t)(n * k) * sizeof *rows) : NULL;
  double *columns = rows ? malloc((size_t)k * DOTS * sizeof *columns) : NULL;
  const bool doubles = columns && as_doubles(rows, a, 1, n * k, 0);
  for (int64_t j = 0; j < m; j += DOTS) {
    const int64_t count = m - j < DOTS ? m - j : DOTS;
    const bool fast = doubles && count == DOTS && as_doubles(columns, b + j, k, DOTS, m);
    for (int64_t i = 0; i < n; i++) {
      if (fast)
        dots_as_asked(DOUBLES, dtype, line_of(rows + i * k, 1, k), line_of(columns, DOTS, k), 1, k, out + i * m + j);
      else
        ref_dots(dtype, a + i * k, 1, (ref_factors){b + j, m, 1, count}, k, out + i * m + j);
    }
  }
  free(columns);
  free(rows);
}

/* --- Philox --- */

void ref_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t words[4]) {
  uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k0 = key[0], k1 = key[1];
  for (int round = 0; round < 10; round++) {
    uint64_t m0 = (uint64_t)0xD2511F53u * c[0], m1 = (uint64_t)0xCD9E8D57u * c[2];
    uint32_t n0 = (uint32_t)(m1 >> 32) ^ c[1] ^ k0, n2 = (uint32_t)(m0 >> 32) ^ c[3] ^ k1;
    c[1] = (uint32_t)m1;
    c[3] = (uint32_t)m0;
    c[0] = n0;
    c[2] = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  memcpy(words, c, sizeof c);
}

uint64_t ref_philox_offset(const graft_philox *p) {
  uint64_t more = 0;
  if (GRAFT_HAS(p, graft_philox, state)) memcpy(&more, ref_data(p->state), sizeof more);
  return p->offset + more;
}

uint32_t ref_philox_word(const graft_philox *p, uint64_t word) {
  uint64_t block = ref_philox_offset(p) / 4 + word / 4;
  uint32_t words[4];
  ref_philox_block((uint32_t[]){(uint32_t)block, (uint32_t)(block >> 32), 0, 0},
                   (uint32_t[]){(uint32_t)p->seed, (uint32_t)(p->seed >> 32)}, words);
  return words[word % 4];
}

/* Towards 0, to so many significant bits. (Numbers here are multiples of 2^-24, which f16's denormals are too.) */
static ref_real truncated(ref_real u, int bits) {
  int exponent;
  frexpl(u, &exponent);
  return ldexpl(truncl(ldexpl(u, bits - exponent)), exponent - bits);
}

ref_real ref_philox_uniform(const graft_philox *p, graft_dtype dtype, uint64_t element) {
  if (dtype == GRAFT_F64 || dtype == GRAFT_WIDE) {
    uint64_t low = ref_philox_word(p, 2 * element), high = ref_philox_word(p, 2 * element + 1);
    return (ref_real)((high << 32 | low) >> 11) * 0x1p-53L;
  }
  ref_real u = (ref_real)(ref_philox_word(p, element) >> 8) * 0x1p-24L;
  return dtype == GRAFT_F16 ? truncated(u, 11) : dtype == GRAFT_BF16 ? truncated(u, 8) : u;
}

ref_split ref_split_at(const graft_tensor_desc *d, int64_t dim) {
  ref_split s = {1, 1, 1};
  for (int32_t i = 0; i < d->dl.ndim; i++) {
    int64_t *at = i < dim ? &s.outer : i == dim ? &s.size : &s.inner;
    *at *= d->dl.shape[i];
  }
  return s;
}
