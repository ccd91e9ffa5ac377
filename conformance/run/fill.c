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

static long double cf_draw(graft_dtype dtype, const cf_filling *how, cf_random *r) {
  if (dtype == GRAFT_BOOL) return cf_random_next(r) & 1;
  if (dt_is_integral(dtype, false)) return cf_draw_whole(dtype, how, r);
  switch (how->fill) {
    case CF_INTEGERS: return cf_draw_integer(how->domain, r);
    case CF_EXPONENTS: return cf_draw_exponent(dt_real(dtype), how, r);
    case CF_SPECIALS: return cf_draw_special(dt_real(dtype), how, r);
    default: return cf_draw_uniform(how->domain, r);
  }
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

void cf_fill_values(cf_array *a, const cf_note *note, const cf_filling *how, cf_random *r) {
  bool complex = dt_is_complex(a->dtype);
  for (int64_t i = 0; i < a->numel; i++) {
    long double re, im = 0;
    if (note->constant)
      re = note->value;
    else if (note->bound && note->distinct)
      re = cf_diagonal_index(a, i, note->bound);
    else if (note->bound)
      re = (long double)(cf_random_next(r) % (uint64_t)note->bound);
    else
      re = cf_draw(a->dtype, how, r);
    if (complex) im = cf_draw(a->dtype, how, r);
    a->v[i].re = dt_round(dt_real(a->dtype), re);
    a->v[i].im = complex ? dt_round(dt_real(a->dtype), im) : 0;
  }
}
