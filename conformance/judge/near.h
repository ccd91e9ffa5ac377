/* Values that carry their error: first-order propagation through a formula, written as the formula. u is the unit
 * roundoff of the arithmetic; sums count both terms, so that fused multiply-adds and other orders stay within. */
#ifndef GRAFT_CF_NEAR_H
#define GRAFT_CF_NEAR_H

#include <math.h>

typedef struct cf_near {
  long double v, e; /* the exact value, and how far from it a right computation may be */
} cf_near;

static inline cf_near cf_exactly(long double v) {
  return (cf_near){v, 0};
}
static inline cf_near cf_near_add(long double u, cf_near a, cf_near b) {
  return (cf_near){a.v + b.v, a.e + b.e + u * (fabsl(a.v) + fabsl(b.v))};
}
static inline cf_near cf_near_neg(cf_near a) {
  return (cf_near){-a.v, a.e};
}
static inline cf_near cf_near_sub(long double u, cf_near a, cf_near b) {
  return cf_near_add(u, a, cf_near_neg(b));
}
static inline cf_near cf_near_mul(long double u, cf_near a, cf_near b) {
  return (cf_near){a.v * b.v, fabsl(a.v) * b.e + fabsl(b.v) * a.e + a.e * b.e + u * fabsl(a.v * b.v)};
}
/* A function's value, its slope there, and its own error in ulp. */
static inline cf_near cf_near_fn(long double u, cf_near a, long double value, long double slope, long double ulps) {
  return (cf_near){value, fabsl(slope) * a.e + 2 * ulps * u * fabsl(value)};
}
static inline cf_near cf_near_sigmoid(long double u, cf_near a) {
  long double y = 1 / (1 + expl(-a.v));
  return cf_near_fn(u, a, y, y * (1 - y), 4);
}
static inline cf_near cf_near_tanh(long double u, cf_near a) {
  long double y = tanhl(a.v);
  return cf_near_fn(u, a, y, 1 - y * y, 5);
}
static inline cf_near cf_near_exp(long double u, cf_near a) {
  long double y = expl(a.v);
  return cf_near_fn(u, a, y, y, 3);
}
/* Rounded to a tensor on the way. */
static inline cf_near cf_near_stored(long double u, cf_near a) {
  return (cf_near){a.v, a.e + u * fabsl(a.v)};
}

#endif
