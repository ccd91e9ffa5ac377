/* Limits come from the op's arithmetic, never from what passes: what follows from a row's class alone is here,
 * first-order propagation stands beside the rows. */
#include "conformance/judge/tolerance.h"

#include <math.h>
#include <string.h>

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

/* 2^e. Limits ask for some at each element: those that a double has as normal numbers are made of its bits, which is
 * sooner than ldexpl. */
static long double cf_power_of_2(int e) {
  double power;
  if (e < -1022 || e > 1023) return ldexpl(1, e);
  memcpy(&power, &(uint64_t){(uint64_t)(e + 1023) << 52}, sizeof power);
  return power;
}

int cf_mantissa(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  return f ? f->mantissa : 0;
}

long double cf_u(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  return f ? cf_power_of_2(-f->mantissa) : 0;
}

long double cf_u_acc(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  return !f ? 0 : f->mantissa > 24 ? cf_power_of_2(-f->mantissa) : cf_power_of_2(-24);
}

long double cf_ulp(graft_dtype dtype, long double x) {
  const cf_format *f = cf_format_of(dtype);
  if (!f) return 0;
  int e = x == 0 || !isfinite(x) ? f->emin : ilogbl(x);
  if (isinf(x)) e = f->emax;
  e = e < f->emin ? f->emin : e > f->emax ? f->emax : e;
  return cf_power_of_2(e - f->mantissa + 1);
}

long double cf_normal_min(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  return f ? cf_power_of_2(f->emin) : 0;
}

long double cf_max(graft_dtype dtype) {
  const cf_format *f = cf_format_of(dtype);
  if (f && f->dtype == GRAFT_F8_E4M3FN) return 448; /* its last mantissa is NaN */
  return f ? ldexpl(2 - cf_power_of_2(1 - f->mantissa), f->emax) : 0;
}

long double cf_growth(long double n) {
  return n <= 0 ? 0 : fminl(2 * sqrtl(n), n);
}

/* ---- limits ---- */

const cf_array *cf_arg_array(const cf_check *check, const char *name) {
  const cf_call *call = check->call;
  for (uint32_t i = 0; i < call->ntensors; i++)
    if (strcmp(call->text.schema->args[call->specs[i].arg].name, name) == 0) return &check->in[i];
  return NULL;
}

static bool cf_half(graft_dtype dtype) {
  return dt_is_half(dt_real(dtype));
}

static bool cf_alpha_is_one(const cf_call *call) {
  dt_value alpha = cf_arg_complex(call, "alpha", 1);
  return alpha.re == 1 && alpha.im == 0;
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

bool cf_is_exact(const cf_call *call, graft_dtype dtype) {
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

long double cf_limit_of(const cf_check *check, uint32_t out, int64_t i, long double roundings) {
  graft_dtype dtype = check->dtypes[out];
  return roundings * cf_u_acc(dtype) + cf_ulp(dtype, cf_modulus(check->outs[out].v[i])) / 2;
}

/* Powers (exact or a rounding for 0, 1, 2 and inf; pow's 16 ulp else), the sum of positive terms, the root. */
long double cf_norm_roundings(double p, long double n) {
  if (isinf(p)) return 0;
  if (p == 0 || p == 1) return cf_growth(n);
  return (cf_growth(n) + (p == 2 ? 1 : 32)) / p + (p == 2 ? 2 : 32);
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

/* Of a factor that is rounded to nearest, to the 11 bits of tf32. */
#define CF_U_TF32 0x1p-11L

static long double cf_sum_limit(const cf_check *check, uint32_t out, graft_dtype dtype, int64_t i, long double size) {
  const cf_rule *rule = &check->call->op->rule;
  long double s = cf_modulus(check->absolute[out].v[i]), n = cf_terms_of(check, out, i);
  long double exact_below = 1 / cf_u_acc(dtype);
  if (check->call->c->fill == CF_INTEGERS && s < exact_below && rule->ulps == 0) return cf_ulp(dtype, size);
  long double growth = cf_growth(n) * (rule->ulps > 0 ? rule->ulps : 1);
  long double factors = check->call->c->layout == CF_TF32 ? 2 * CF_U_TF32 + CF_U_TF32 * CF_U_TF32 : 0;
  return (growth * cf_u_acc(dtype) * (1 + factors) + factors) * s + cf_ulp(dtype, size) / 2;
}

/* |x| of the first input; it has the output's shape in the classes that ask. */
static long double cf_input_size(const cf_check *check, int64_t i) {
  const cf_array *x = &check->in[0];
  return i < x->numel ? cf_modulus(x->v[i]) : 0;
}

long double cf_matrix_size(const cf_call *call) {
  int64_t n = 1;
  for (uint32_t i = 0; i < call->ntensors; i++)
    for (int32_t d = call->in[i].ndim - 1; d >= 0 && d >= call->in[i].ndim - 2; d--)
      if (call->in[i].sizes[d] > n) n = call->in[i].sizes[d];
  return (long double)n;
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
    case CF_BACKWARD:
    case CF_PROPERTY:
      return (rule->ulps * cf_matrix_size(check->call) * u) * cf_modulus(check->moves[out].v[i]) + ulp / 2;
    case CF_PROD: {
      long double n =
          check->outs[out].numel ? (long double)check->in[0].numel / (long double)check->outs[out].numel : 1;
      return (complex ? 2 : 1) * n * u * size + ulp / 2;
    }
    default: return 0;
  }
}

void cf_limits(const cf_check *check, uint32_t out, long double *limits) {
  const cf_rule *rule = &check->call->op->rule;
  const cf_array *o = &check->outs[out];
  memset(limits, 0, (size_t)o->numel * sizeof *limits);
  if (cf_is_exact(check->call, check->dtypes[out])) return;
  if (rule->klass == CF_CUSTOM) {
    rule->limit(check, out, limits);
    return;
  }
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit(check, out, check->dtypes[out], i);
}
