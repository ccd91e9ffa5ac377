/* How far from the oracle a right answer may be: from the op's arithmetic, never from what passes. One table (the
 * classes of cf.h) for what follows from the class alone; first-order propagation stands beside the rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cf.h"

/* ---- formats ---- */

typedef struct cf_format {
  graft_dtype dtype;
  int mantissa, emin, emax; /* bits with the leading one; exponents of the smallest and the largest normal number */
} cf_format;

static const cf_format cf_formats[] = {
    {GRAFT_F16, 11, -14, 15},        {GRAFT_BF16, 8, -126, 127},  {GRAFT_F32, 24, -126, 127},
    {GRAFT_F64, 53, -1022, 1023},    {GRAFT_F8_E4M3FN, 4, -6, 8}, {GRAFT_F8_E5M2, 3, -14, 15},
    {GRAFT_WIDE, 64, -16382, 16383},
};

static const cf_format *cf_format_of(graft_dtype dtype) {
  dtype = dt_real(dtype);
  for (size_t i = 0; i < sizeof cf_formats / sizeof *cf_formats; i++)
    if (cf_formats[i].dtype == dtype) return &cf_formats[i];
  return NULL;
}

int cf_mantissa(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  return f ? f->mantissa : 0;
}

long double cf_u(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  return f ? ldexpl(1, -f->mantissa) : 0;
}

long double cf_u_acc(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  return !f ? 0 : f->mantissa > 24 ? ldexpl(1, -f->mantissa) : ldexpl(1, -24);
}

long double cf_ulp(graft_dtype dtype, long double x) {
  const cf_format *f = cf_format_of(dtype);
  if (!f) return 0;
  int e = x == 0 || !isfinite(x) ? f->emin : ilogbl(x);
  if (isinf(x)) e = f->emax;
  e = e < f->emin ? f->emin : e > f->emax ? f->emax : e;
  return ldexpl(1, e - f->mantissa + 1);
}

long double cf_normal_min(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  return f ? ldexpl(1, f->emin) : 0;
}

long double cf_max(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  if (f && f->dtype == GRAFT_F8_E4M3FN) return 448; /* its last mantissa is NaN */
  return f ? ldexpl(2 - ldexpl(1, 1 - f->mantissa), f->emax) : 0;
}

long double cf_growth(long double n) {
  return n <= 0 ? 0 : fminl(2 * sqrtl(n), n);
}

/* ---- arguments, for rules ---- */

/* Rules read the row's own op, also where a prim that equals it is called. */
static const graft_value *cf_arg_value(const cf_call *call, const char *name) {
  const op_schema *schema = call->text.schema;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    if (strcmp(schema->args[i].name, name) != 0) continue;
    const graft_value *v = &call->text.args[i];
    return v->kind == GRAFT_VALUE_NONE ? schema->args[i].fallback : v;
  }
  return NULL;
}

double cf_arg_number(const cf_call *call, const char *name, double otherwise) {
  const graft_value *v = cf_arg_value(call, name);
  if (!v) return otherwise;
  switch (v->kind) {
    case GRAFT_VALUE_INT:
    case GRAFT_VALUE_BOOL: return (double)v->as.i;
    case GRAFT_VALUE_FLOAT: return v->as.f;
    case GRAFT_VALUE_SCALAR: return (double)dt_scalar_value(&v->as.scalar).re;
    case GRAFT_VALUE_INTS: return v->count ? (double)v->as.ints[0] : otherwise;
    default: return otherwise;
  }
}

int64_t cf_arg_int(const cf_call *call, const char *name, int64_t otherwise) {
  return (int64_t)cf_arg_number(call, name, (double)otherwise);
}

const cf_array *cf_arg_array(const cf_check *check, const char *name) {
  const cf_call *call = check->call;
  for (uint32_t i = 0; i < call->ntensors; i++)
    if (strcmp(call->text.schema->args[call->specs[i].arg].name, name) == 0) return &check->in[i];
  return NULL;
}

cf_axis cf_axis_of(const cf_array *a, int64_t dim) {
  cf_axis x = {1, 1, 1};
  if (a->ndim == 0) return x;
  if (dim < 0) dim += a->ndim;
  for (int32_t d = 0; d < a->ndim; d++) {
    if (d < dim)
      x.outer *= a->sizes[d];
    else if (d == dim)
      x.length = a->sizes[d];
    else
      x.inner *= a->sizes[d];
  }
  return x;
}

/* ---- limits ---- */

static bool cf_half(graft_dtype dtype) {
  return dt_is_half(dt_real(dtype));
}

static bool cf_alpha_is_one(const cf_call *call) {
  return cf_arg_number(call, "alpha", 1) == 1;
}

/* Whether a Python number of the call has more bits than the dtype: then a half type's result is rounded twice, to f32
 * and to the half, since f32 cannot hold the product exactly. */
static bool cf_has_long_number(const cf_call *call, graft_dtype dtype) {
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    const graft_value *value = &call->args[i];
    bool list = value->kind == GRAFT_VALUE_SCALARS;
    if (!list && value->kind != GRAFT_VALUE_SCALAR) continue;
    for (uint32_t k = 0; k < (list ? value->count : 1); k++) {
      long double v = dt_scalar_value(list ? &value->as.scalars[k] : &value->as.scalar).re;
      if (dt_round(dt_real(dtype), v) != v) return true;
    }
  }
  return false;
}

bool cf_is_exact(const cf_call *call, uint32_t out, graft_dtype dtype) {
  (void)out;
  if (cf_mantissa(dtype) == 0) return true; /* integers, bool */
  bool twice = cf_half(dtype) && cf_has_long_number(call, dtype);
  bool rounds_once = cf_mantissa(dtype) <= 24 && !dt_is_complex(dtype) && !twice;
  switch (call->op->rule.klass) {
    case CF_EXACT:
    case CF_PERMUTED: return true;
    case CF_ROUNDED: return rounds_once; /* f64: long double has too few bits to round twice and say so */
    case CF_SCALED: return rounds_once && cf_alpha_is_one(call);
    case CF_DIVISION: return cf_half(dtype) && !twice;
    default: return false;
  }
}

bool cf_rule_needs_absolute(const cf_rule *rule) {
  return rule->klass == CF_SUM || rule->klass == CF_ALPHA || rule->klass == CF_SCALED || rule->absolute;
}

long double cf_modulus(dt_value v) {
  return v.im == 0 ? fabsl(v.re) : hypotl(v.re, v.im);
}

static long double cf_terms_of(const cf_check *check, uint32_t out, int64_t i) {
  const cf_rule *rule = &check->call->op->rule;
  const cf_array *o = &check->outs[out];
  if (rule->terms == CF_TERMS_ONES) return check->ones ? cf_modulus(check->ones[out].v[i]) : 1;
  if (rule->terms == CF_TERMS_RATIO) return o->numel ? (long double)check->in[0].numel / (long double)o->numel : 1;
  const op_schema *schema = check->call->text.schema;
  long double n = 1;
  for (uint32_t a = 0; a < schema->nargs; a++) {
    const graft_value *v = &check->call->text.args[a];
    if (v->kind != GRAFT_VALUE_INTS) continue;
    for (uint32_t k = 0; k < v->count; k++) n *= (long double)v->as.ints[k];
    break;
  }
  return n;
}

static long double cf_sum_limit(const cf_check *check, uint32_t out, graft_dtype dtype, int64_t i, long double size) {
  const cf_rule *rule = &check->call->op->rule;
  long double s = cf_modulus(check->absolute[out].v[i]), n = cf_terms_of(check, out, i);
  long double exact_below = 1 / cf_u_acc(dtype);
  if (check->call->c->fill == CF_INTEGERS && s < exact_below && rule->ulps == 0) return cf_ulp(dtype, size);
  long double growth = cf_growth(n) * (rule->ulps > 0 ? rule->ulps : 1);
  return growth * cf_u_acc(dtype) * s + cf_ulp(dtype, size) / 2;
}

/* |x| of the first input; it has the output's shape in the classes that ask. */
static long double cf_input_size(const cf_check *check, int64_t i) {
  const cf_array *x = &check->in[0];
  return i < x->numel ? cf_modulus(x->v[i]) : 0;
}

static long double cf_limit(const cf_check *check, uint32_t out, graft_dtype dtype, int64_t i) {
  const cf_rule *rule = &check->call->op->rule;
  long double size = cf_modulus(check->outs[out].v[i]), ulp = cf_ulp(dtype, size), u = cf_u_acc(dtype);
  bool half = cf_half(dtype), complex = dt_is_complex(dtype);
  switch (rule->klass) {
    case CF_SCALED:
      if (!cf_alpha_is_one(check->call)) return ulp + 2 * u * cf_modulus(check->absolute[out].v[i]);
      /* fall through */
    case CF_ROUNDED: return complex ? 2 * ulp : half ? ulp / 2 + u * size : ulp * (0.5L + 0x1p-10L);
    case CF_DIVISION: return complex ? 4 * ulp : half ? ulp / 2 + 2 * u * size : ulp;
    case CF_ALPHA: return ulp + 2 * u * cf_modulus(check->absolute[out].v[i]);
    case CF_ULPS: return (half ? 1 : rule->ulps) * ulp;
    case CF_GATED: return (half ? 1 : rule->ulps) * ulp + 2 * u * cf_input_size(check, i);
    case CF_SUM: return cf_sum_limit(check, out, dtype, i, size);
    case CF_PROD: {
      long double n =
          check->outs[out].numel ? (long double)check->in[0].numel / (long double)check->outs[out].numel : 1;
      return n * u * size + ulp / 2;
    }
    default: return 0;
  }
}

void cf_limits(const cf_check *check, uint32_t out, long double *limits) {
  const cf_rule *rule = &check->call->op->rule;
  const cf_array *o = &check->outs[out];
  memset(limits, 0, (size_t)o->numel * sizeof *limits);
  if (cf_is_exact(check->call, out, check->dtypes[out])) return;
  if (rule->klass == CF_CUSTOM) {
    rule->limit(check, out, limits);
    return;
  }
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit(check, out, check->dtypes[out], i);
}

/* ---- comparison ---- */

/* The error over the limit; 0 for a hit, infinity for what no limit excuses. */
static double cf_ratio(graft_dtype dtype, long double r, long double o, long double limit, bool flushes) {
  if (isnan(o) || isnan(r)) return isnan(o) && isnan(r) ? 0 : INFINITY;
  if (r == o) return 0;
  if (flushes && r == 0 && fabsl(o) < cf_normal_min(dtype)) return 0;
  if (isinf(o)) return INFINITY;
  long double most = cf_max(dtype);
  if (isinf(r)) { /* an overflow is right where the limit reaches past the largest number */
    bool reaches = fabsl(o) + limit >= most + cf_ulp(dtype, most) / 2 && (o > 0) == (r > 0);
    return reaches ? 0 : INFINITY;
  }
  if (limit == 0) return INFINITY;
  return isnan(limit) || isinf(limit) ? 0 : (double)(fabsl(r - o) / limit);
}

static double cf_exact_ratio(graft_dtype dtype, long double r, long double o, bool any_zero, bool flushes) {
  long double expected = dt_round(dtype, o);
  if (isnan(expected) || isnan(r)) return isnan(expected) && isnan(r) ? 0 : INFINITY;
  if (r == expected && (r != 0 || any_zero || cf_mantissa(dtype) == 0 || signbit(r) == signbit(expected))) return 0;
  return flushes && r == 0 && expected != 0 && fabsl(expected) < cf_normal_min(dtype) ? 0 : INFINITY;
}

static void cf_describe(const cf_array *r, const cf_array *o, int64_t i, long double limit, bool exact,
                        const char *what, cf_verdict *v) {
  char at[96] = "", *to = at;
  int64_t rest = i, coordinates[GRAFT_MAX_DIMS];
  for (int32_t d = r->ndim - 1; d >= 0; d--) coordinates[d] = rest % r->sizes[d], rest /= r->sizes[d];
  for (int32_t d = 0; d < r->ndim && to < at + 80; d++)
    to += snprintf(to, (size_t)(at + sizeof at - to), d ? ",%lld" : "%lld", (long long)coordinates[d]);
  graft_dtype real = dt_real(r->dtype);
  dt_value right = o->v[i];
  if (exact) right.re = dt_round(real, right.re), right.im = dt_round(real, right.im);
  if (dt_is_complex(r->dtype))
    snprintf(v->text, sizeof v->text, "%s[%s] is %.9Lg%+.9Lgj, not %.9Lg%+.9Lgj within %.3Lg", what, at, r->v[i].re,
             r->v[i].im, right.re, right.im, limit);
  else if (exact)
    snprintf(v->text, sizeof v->text, "%s[%s] is %.17Lg, not %.17Lg (bit for bit)", what, at, r->v[i].re, right.re);
  else
    snprintf(v->text, sizeof v->text, "%s[%s] is %.17Lg, not %.17Lg within %.3Lg", what, at, r->v[i].re, right.re,
             limit);
}

static bool cf_same_shape(const cf_array *a, const cf_array *b) {
  return a->ndim == b->ndim && memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof *a->sizes) == 0;
}

void cf_compare(const cf_array *r, const cf_array *o, const long double *limits, bool exact, bool any_zero,
                bool flushes, const char *what, cf_verdict *v) {
  if (!cf_same_shape(r, o)) {
    v->ok = false, v->ratio = INFINITY;
    snprintf(v->text, sizeof v->text, "%s has another shape than the oracle's", what);
    return;
  }
  graft_dtype real = dt_real(r->dtype);
  for (int64_t i = 0; i < r->numel; i++) {
    long double limit = limits ? limits[i] : 0;
    double ratio = exact ? cf_exact_ratio(real, r->v[i].re, o->v[i].re, any_zero, flushes)
                         : cf_ratio(real, r->v[i].re, o->v[i].re, limit, flushes);
    if (dt_is_complex(r->dtype)) {
      double im = exact ? cf_exact_ratio(real, r->v[i].im, o->v[i].im, any_zero, flushes)
                        : cf_ratio(real, r->v[i].im, o->v[i].im, limit, flushes);
      if (im > ratio) ratio = im;
    }
    if (ratio <= v->ratio) continue;
    v->ratio = ratio, v->index = i;
    v->error = (double)fabsl(r->v[i].re - o->v[i].re);
    if (ratio <= 1) continue;
    v->ok = false;
    cf_describe(r, o, i, limit, exact, what, v);
  }
}

/* topk and unstable sort: each index picks its value, and none is used twice along the dim. */
void cf_check_permutation(const cf_call *call, const cf_array *values, const cf_array *indices, const cf_array *oracle,
                          cf_verdict *v) {
  const cf_array *x = &call->in[0];
  (void)oracle;
  int64_t dim = cf_arg_int(call, "dim", -1);
  cf_axis from = cf_axis_of(x, dim), to = cf_axis_of(values, dim);
  bool *used = calloc((size_t)from.length + 1, sizeof *used);
  for (int64_t row = 0; used && v->ok && row < to.outer * to.inner; row++) {
    int64_t outer = row / to.inner, inner = row % to.inner;
    memset(used, 0, (size_t)from.length * sizeof *used);
    for (int64_t k = 0; v->ok && k < to.length; k++) {
      int64_t at = (outer * to.length + k) * to.inner + inner;
      long double index = indices->v[at].re, value = values->v[at].re;
      bool inside = index >= 0 && index < (long double)from.length;
      long double there = inside ? x->v[(outer * from.length + (int64_t)index) * from.inner + inner].re : 0;
      bool same = inside && (there == value || (isnan(there) && isnan(value)));
      if (same && !used[(int64_t)index]) {
        used[(int64_t)index] = true;
        continue;
      }
      v->ok = false, v->ratio = INFINITY, v->index = at;
      snprintf(v->text, sizeof v->text, "index %Lg at element %lld %s", index, (long long)at,
               !inside ? "lies outside the dim"
               : same  ? "is used twice"
                       : "does not pick the value beside it");
    }
  }
  free(used);
}
