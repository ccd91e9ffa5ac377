/* How far from the oracle a right answer may be. The file of a family has the limits that its rows need beside them,
 * and what it needs for them is here. */
#ifndef GRAFT_CF_TOLERANCE_H
#define GRAFT_CF_TOLERANCE_H

#include "conformance/judge/call.h"

int cf_mantissa(graft_dtype dtype);      /* bits, the leading one included; 0: not floating */
long double cf_u(graft_dtype dtype);     /* unit roundoff */
long double cf_u_acc(graft_dtype dtype); /* of the dtype in which sums run */
long double cf_ulp(graft_dtype dtype, long double x);
long double cf_normal_min(graft_dtype dtype);
long double cf_max(graft_dtype dtype);
long double cf_modulus(dt_value v);
long double cf_growth(long double n); /* min(2 sqrt n, n) */

/* What a limit is computed from. */
struct cf_check {
  const cf_call *call;
  const cf_array *in; /* the call's inputs */
  uint32_t nouts;
  const cf_array *outs;      /* the oracle's */
  const graft_dtype *dtypes; /* of the device's outputs */
  const cf_array *absolute;  /* S: the oracle on absolute values; NULL where no class asks */
  const cf_array *ones;
  const cf_array *moves; /* how far an output moves with the inputs (run/condition.h); NULL where no class asks */
  const cf_array *g;     /* cotangents, for gradients */
};

/* The values of a tensor argument of the row's op; NULL: absent. */
const cf_array *cf_arg_array(const cf_check *check, const char *name);

/* What most limits of CF_CUSTOM are: `roundings` in u of the accumulator, each times what it rounds, and half an ulp of
 * element i of output `out`. */
long double cf_limit_of(const cf_check *check, uint32_t out, int64_t i, long double roundings);
/* The roundings of a norm of order p of n elements, relative to it. */
long double cf_norm_roundings(double p, long double n);

/* n of an algorithm on matrices: the largest of the last two dims of the inputs. */
long double cf_matrix_size(const cf_call *call);

bool cf_rule_needs_absolute(const cf_rule *rule);
/* Whether a rule's answer is one value only for this dtype and call. */
bool cf_is_exact(const cf_call *call, graft_dtype dtype);
/* The limits of output `out` around the oracle's values, one an element. 0 in an exact class. */
void cf_limits(const cf_check *check, uint32_t out, long double *limits);

#endif
