#include "conformance/run/fill.h"

#include <math.h>
#include <stdlib.h>

#include "conformance/judge/tolerance.h"

uint64_t cf_random_next(cf_random *r) { /* SplitMix64 */
  uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

long double cf_random_unit(cf_random *r) {
  return (long double)(cf_random_next(r) >> 11) * 0x1p-53L;
}

uint64_t cf_hash(const char *text) { /* FNV-1a, mixed once more */
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001B3);
  cf_random mix = {h};
  return cf_random_next(&mix);
}

/* ---- one value ---- */

static long double cf_draw_uniform(cf_domain domain, cf_random *r) {
  long double u = cf_random_unit(r), sign = cf_random_next(r) & 1 ? -1 : 1;
  switch (domain) {
    case CF_POSITIVE: return 0.25L + 3.75L * u;
    case CF_UNIT: return 2 * u - 1;
    case CF_NONZERO: return sign * (0.25L + 1.75L * u);
    case CF_PROBABILITY: return u;
    case CF_ABOVE_ONE: return 1.25L + 2.75L * u;
    default: return 4 * u - 2;
  }
}

static long double cf_draw_integer(cf_domain domain, cf_random *r) {
  int64_t k = (int64_t)(cf_random_next(r) % 17) - 8;
  switch (domain) {
    case CF_POSITIVE: return k < 1 ? 1 - k : k;
    case CF_UNIT: return k > 0 ? 1 : k < 0 ? -1 : 0;
    case CF_NONZERO: return k == 0 ? 3 : k;
    case CF_PROBABILITY: return k > 0;
    case CF_ABOVE_ONE: return 2 + (k < 0 ? -k : k);
    default: return k;
  }
}

/* Exponents over the dtype's whole range; where values are summed or multiplied up, over a part of it, so that it is
 * the result and not an intermediate that overflows. */
static long double cf_draw_exponent(graft_dtype dtype, const cf_filling *how, cf_random *r) {
  cf_domain domain = how->domain;
  bool narrow = dtype == GRAFT_F16;
  int top = how->reduced ? narrow ? 3 : 10 : narrow ? 14 : dtype == GRAFT_F64 || dtype == GRAFT_C128 ? 1000 : 120;
  int e = (int)(cf_random_next(r) % (uint64_t)(2 * top + 1)) - top;
  long double m = 1 + cf_random_unit(r), sign = cf_random_next(r) & 1 ? -1 : 1;
  if (domain == CF_UNIT || domain == CF_PROBABILITY) e = -abs(e) - 1;
  if (domain == CF_ABOVE_ONE) e = abs(e) + 1;
  if (domain == CF_POSITIVE || domain == CF_PROBABILITY || domain == CF_ABOVE_ONE) sign = 1;
  return sign * ldexpl(m, e);
}

static long double cf_draw_special(graft_dtype dtype, const cf_filling *how, cf_random *r) {
  bool reduced = how->reduced, denormals = how->denormals;
  switch (cf_random_next(r) % (reduced ? 12 : 10)) {
    case 0: return NAN;
    case 1: return INFINITY;
    case 2: return -INFINITY;
    case 3: return 0.0L;
    case 4: return -0.0L;
    case 5: return denormals ? cf_normal_min(dtype) * 0.375L : 1;
    case 6: return denormals ? -cf_normal_min(dtype) * 0.5L : -1;
    case 7: return reduced ? 2 : cf_max(dtype);
    case 8: return reduced ? -2 : cf_normal_min(dtype);
    default: return cf_draw_uniform(CF_VALUES, r);
  }
}

static long double cf_draw_whole(graft_dtype dtype, const cf_filling *how, cf_random *r) {
  cf_domain domain = how->domain;
  bool reduced = how->reduced;
  if (how->fill == CF_EXPONENTS && !reduced) { /* every bit pattern */
    uint64_t bits = cf_random_next(r);
    long double v = dt_load(dtype, &bits).re;
    if (domain == CF_POSITIVE && v <= 0) v = 1 - v > 0 ? 1 : 2;
    return (domain == CF_NONZERO || domain == CF_POSITIVE) && v == 0 ? 1 : v;
  }
  int64_t low = dt_is_unsigned(dtype) || domain == CF_POSITIVE ? 0 : -100, span = reduced ? 12 : 200;
  if (reduced && low) low = -6;
  if (!low) span /= 2;
  int64_t k = low + (int64_t)(cf_random_next(r) % (uint64_t)(span + 1));
  bool bad = (domain == CF_NONZERO || domain == CF_POSITIVE) && k == 0;
  return bad ? 3 : k;
}

/* Whether this element is to be one of the numbers that the call names, or its opposite; *value receives it. */
static bool cf_draw_number(graft_dtype dtype, const cf_filling *how, cf_random *r, long double *value) {
  bool ordinary = how->fill == CF_UNIFORM || how->fill == CF_INTEGERS;
  if (!ordinary || how->domain != CF_VALUES || how->number_count < 2 || dtype == GRAFT_BOOL) return false;
  if (cf_random_next(r) % 8) return false;
  uint64_t drawn = cf_random_next(r);
  long double x = how->numbers[drawn % how->number_count];
  bool whole = dt_is_integral(dtype, false);
  *value = drawn >> 32 & 1 && x != 0 && !dt_is_unsigned(dtype) ? -x : x;
  return !whole || (x == floorl(x) && fabsl(x) < 100 && (x >= 0 || !dt_is_unsigned(dtype)));
}

static long double cf_draw(graft_dtype dtype, const cf_filling *how, cf_random *r) {
  long double number;
  if (dtype == GRAFT_BOOL) return cf_random_next(r) & 1;
  if (cf_draw_number(dtype, how, r, &number)) return number;
  if (dt_is_integral(dtype, false)) return cf_draw_whole(dtype, how, r);
  switch (how->fill) {
    case CF_INTEGERS: return cf_draw_integer(how->domain, r);
    case CF_EXPONENTS: return cf_draw_exponent(dt_real(dtype), how, r);
    case CF_SPECIALS: return cf_draw_special(dt_real(dtype), how, r);
    default: return cf_draw_uniform(how->domain, r);
  }
}

static long double cf_draw_between(graft_dtype dtype, const cf_note *note, cf_random *r) {
  long double low = dt_is_unsigned(dtype) ? (long double)(note->low < 0 ? 0 : note->low) : (long double)note->low;
  long double x = low + ((long double)note->bound - low) * cf_random_unit(r);
  return dt_is_integral(dtype, true) ? floorl(x) : x;
}

/* Indices that differ along every dim: the sum of the coordinates. */
static int64_t cf_diagonal_index(const cf_array *a, int64_t i, int64_t bound) {
  int64_t sum = 1;
  for (int32_t d = a->ndim - 1; d >= 0; d--) {
    if (!a->sizes[d]) return 0;
    sum += i % a->sizes[d];
    i /= a->sizes[d];
  }
  return sum % bound;
}

/* Indices of which a row of `bound` has each once: multiples of a number that shares no divisor with it. */
static int64_t cf_index_apart(int64_t i, int64_t bound) {
  int64_t step = bound * 2 / 5 + 1;
  for (;; step++) {
    int64_t a = step, b = bound;
    while (b) {
      int64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 1) return (i % bound * step + 1) % bound;
  }
}

/* Indices from 0 to the last one below the bound, none before a smaller one: first steps of 0, then ever larger ones.
 */
static int64_t cf_index_rising(int64_t i, int64_t count, int64_t bound) {
  return count < 2 ? 0 : i * i * (bound - 1) / ((count - 1) * (count - 1));
}

/* Whether an element of a tensor that masks another is -inf. */
static bool cf_is_masked(const cf_array *a, int64_t i, cf_random *r) {
  int64_t size = a->ndim ? a->sizes[a->ndim - 1] : 1, row = i / size;
  bool drawn = cf_random_next(r) % 4 == 0;
  return row % 3 == 1 || (row % 3 == 2 ? (i + 1) % size != 0 : drawn);
}

void cf_fill_values(cf_array *a, const cf_note *note, const cf_filling *how, cf_random *r) {
  bool complex = dt_is_complex(a->dtype);
  for (int64_t i = 0; i < a->numel; i++) {
    long double re, im = 0;
    if (note->constant)
      re = note->value;
    else if (note->bound && note->distinct)
      re = cf_diagonal_index(a, i, note->bound);
    else if (note->bound && note->matrices == CF_APART)
      re = cf_index_apart(i, note->bound);
    else if (note->bound && note->matrices == CF_RISING)
      re = cf_index_rising(i, a->numel, note->bound);
    else if (note->between)
      re = cf_draw_between(a->dtype, note, r);
    else if (note->bound)
      re = (long double)(cf_random_next(r) % (uint64_t)note->bound);
    else
      re = cf_draw(a->dtype, how, r);
    if (note->has_sentinel && cf_random_next(r) % 4 == 0) re = (long double)note->sentinel;
    if (note->infinities && cf_mantissa(a->dtype) > 0 && cf_random_next(r) % 16 == 0) re = INFINITY;
    if (note->matrices == CF_MASKED && cf_mantissa(a->dtype) > 0 && cf_is_masked(a, i, r)) re = -INFINITY;
    if (complex && !note->constant) im = cf_draw(a->dtype, how, r);
    a->v[i].re = dt_round(dt_real(a->dtype), re);
    a->v[i].im = complex ? dt_round(dt_real(a->dtype), im) : 0;
  }
}

/* ---- matrices ---- */

/* Rows and columns of the last two dims, and how many such matrices there are. */
typedef struct cf_square {
  int64_t count, size;
} cf_square;

static dt_value *cf_entry(cf_array *a, cf_square q, int64_t b, int64_t i, int64_t j) {
  return &a->v[(b * q.size + i) * q.size + j];
}

static void cf_make_hermitian(cf_array *a, cf_square q, int64_t b) {
  for (int64_t i = 0; i < q.size; i++)
    for (int64_t j = 0; j <= i; j++) {
      dt_value *x = cf_entry(a, q, b, i, j), *y = cf_entry(a, q, b, j, i);
      if (i == j) x->im = 0;
      *y = (dt_value){x->re, i == j ? 0 : -x->im};
    }
}

/* A diagonal of the largest sum of a row's sizes, and one more. */
static void cf_make_definite(cf_array *a, cf_square q, int64_t b) {
  long double most = 0;
  for (int64_t i = 0; i < q.size; i++) {
    long double sum = 0;
    for (int64_t j = 0; j < q.size; j++) sum += cf_modulus(*cf_entry(a, q, b, i, j));
    most = fmaxl(most, sum);
  }
  for (int64_t i = 0; i < q.size; i++) {
    dt_value *d = cf_entry(a, q, b, i, i);
    d->re = most + 1 + fabsl(d->re);
  }
}

/* Beside the diagonal numbers whose sum in a row stays about 1, on it some of 1 and more. */
static void cf_make_dominant(cf_array *a, cf_square q, int64_t b, bool real) {
  for (int64_t i = 0; i < q.size; i++)
    for (int64_t j = 0; j < q.size; j++) {
      dt_value *v = cf_entry(a, q, b, i, j);
      if (i == j) v->re += v->re < 0 ? -1 : 1;
      if (i == j && real) v->im = 0;
      if (i != j) v->re /= (long double)q.size, v->im /= (long double)q.size;
    }
}

static void cf_make_pivots(cf_array *a, bool pairs) {
  int64_t size = a->ndim ? a->sizes[a->ndim - 1] : 1;
  for (int64_t i = 0; i < a->numel; i++) {
    int64_t at = i % size, left = size - at, drawn = (int64_t)fabsl(a->v[i].re);
    a->v[i].re = (long double)(at + 1 + drawn % left);
    if (pairs && at % 4 == 1) a->v[i].re = a->v[i - 1].re = -a->v[i].re;
  }
}

/* I - tau x x^H is unitary where |tau|^2 x^H x = 2 re tau. x is 1 and what stands below the diagonal: with a sum of
 * squares of 3 there both 1/2 and (1 +- i)/4 are such taus, so that one tensor may be filled without the other. A
 * vector of no length, such as that of the last row, gives a factor that shrinks. */
enum { CF_REFLECTOR_SQUARES = 3 };

static void cf_make_reflectors(cf_array *a) {
  if (a->ndim < 2 || a->numel == 0) return;
  int64_t rows = a->sizes[a->ndim - 2], columns = a->sizes[a->ndim - 1];
  for (int64_t at = 0; at < a->numel; at += rows * columns)
    for (int64_t j = 0; j < columns; j++) {
      dt_value *column = a->v + at + j;
      long double squares = 0;
      for (int64_t i = j + 1; i < rows; i++) {
        long double size = cf_modulus(column[i * columns]);
        squares += size * size;
      }
      long double scale = squares > 0 ? sqrtl(CF_REFLECTOR_SQUARES / squares) : 0;
      for (int64_t i = j + 1; i < rows; i++) column[i * columns].re *= scale, column[i * columns].im *= scale;
    }
}

static void cf_make_scales(cf_array *a) {
  bool complex = dt_is_complex(a->dtype);
  for (int64_t i = 0; i < a->numel; i++)
    a->v[i] = complex ? (dt_value){0.25L, i % 3 ? 0.25L : -0.25L} : (dt_value){0.5L, 0};
}

static void cf_round_all(cf_array *a) {
  graft_dtype real = dt_real(a->dtype);
  for (int64_t i = 0; i < a->numel; i++) a->v[i] = (dt_value){dt_round(real, a->v[i].re), dt_round(real, a->v[i].im)};
}

static void cf_make_alike(cf_array *a) {
  int64_t each = a->ndim < 2 ? 1 : a->sizes[a->ndim - 1] * a->sizes[a->ndim - 2];
  for (int64_t i = 0; i < a->numel; i++) a->v[i] = a->v[i / each * each];
}

/* Of three matrices the first has two thirds of the rank that it could have, the next one third, the last none. */
static void cf_make_singular(cf_array *a) {
  if (a->ndim < 2 || a->numel == 0) return;
  int64_t rows = a->sizes[a->ndim - 2], columns = a->sizes[a->ndim - 1], least = rows < columns ? rows : columns;
  for (int64_t at = 0; at < a->numel; at++) {
    int64_t rank = least * (2 - at / columns / rows % 3) / 3;
    if (at / columns % rows >= rank || at % columns >= rank) a->v[at] = (dt_value){0, 0};
  }
}

void cf_fill_matrices(cf_array *a, cf_matrices kind) {
  if (kind == CF_ALIKE) cf_make_alike(a);
  if (kind == CF_SINGULAR) cf_make_singular(a);
  if (kind == CF_PIVOTS || kind == CF_PAIRS) cf_make_pivots(a, kind == CF_PAIRS);
  if (kind == CF_REFLECTORS) cf_make_reflectors(a), cf_round_all(a);
  if (kind == CF_SCALES) cf_make_scales(a);
  if (kind >= CF_PIVOTS || kind < CF_HERMITIAN || a->ndim < 2 || a->numel == 0) return;
  int64_t size = a->sizes[a->ndim - 1];
  if (a->sizes[a->ndim - 2] != size) return;
  cf_square q = {.count = a->numel / size / size, .size = size};
  for (int64_t b = 0; b < q.count; b++) {
    if (kind < CF_DOMINANT) cf_make_hermitian(a, q, b);
    if (kind >= CF_DOMINANT) cf_make_dominant(a, q, b, kind == CF_FACTOR);
    if (kind == CF_DEFINITE) cf_make_definite(a, q, b);
  }
  cf_round_all(a);
}

void cf_fill_hermitian(cf_array *a) {
  int64_t size = a->ndim > 1 ? a->sizes[a->ndim - 1] : 0;
  if (!size || a->numel == 0 || a->sizes[a->ndim - 2] != size || dt_is_integral(a->dtype, true)) return;
  cf_square q = {.count = a->numel / size / size, .size = size};
  for (int64_t b = 0; b < q.count; b++) cf_make_hermitian(a, q, b);
}
