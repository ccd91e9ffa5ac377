/* A result against the oracle's. */
#ifndef GRAFT_CF_COMPARE_H
#define GRAFT_CF_COMPARE_H

#include "conformance/judge/call.h"

struct cf_verdict {
  bool ok;
  double ratio; /* the largest error / limit */
  double error;
  int64_t index;  /* of the worst element */
  char text[200]; /* what failed */
};

/* Whether two runs gave the same: zeros by their sign, complex numbers in both parts; NaN equals NaN. */
bool cf_same_value(dt_value a, dt_value b);
/* The same number, whatever a zero's sign; NaN equals NaN. */
bool cf_equal(long double a, long double b);

/* The limit of an element that is not judged: where two right ways to compute it part, as one overflows on its way. */
#define CF_UNJUDGED (-1.0L)

/* How two sides are compared. */
typedef struct cf_comparison {
  const long double *limits; /* one an element, or CF_UNJUDGED; NULL: 0 */
  bool exact;                /* the rounded oracle is the only right answer */
  bool any_zero;             /* the sign of a zero is free */
  bool flushes;              /* the device may give 0 for a denormal */
  bool through_f32; /* what is exact may be rounded to f32 first, as PyTorch does where f64 becomes a half type */
  const char *what; /* "result", for the verdict's text */
} cf_comparison;

/* Each worsens a verdict, which begins as {.ok = true}. */
void cf_verdict_fail(cf_verdict *v, const char *text);
void cf_compare(const cf_array *result, const cf_array *oracle, const cf_comparison *how, cf_verdict *v);
/* topk and unstable sort: each index picks its value, and none is used twice along the dim. */
void cf_check_permutation(const cf_call *call, const cf_array *values, const cf_array *indices, cf_verdict *v);

/* Of equal elements such an op may choose any, and its gradient follows: puts the gradients of equal inputs into
 * ascending order along the dim, and what stands beside them (NULL: nothing) along with them. */
void cf_order_ties(const cf_call *call, cf_array *gradient, cf_array *beside);

#endif
