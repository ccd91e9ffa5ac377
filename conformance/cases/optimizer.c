#include <math.h>

#include "conformance/cases/families.h"

/* One step of AdamW to first order, in u:
 *   m' = b1 m + (1 - b1) g             3 roundings of absolute terms
 *   v' = b2 v + (1 - b2) g g           4
 *   p' = p (1 - lr wd) - lr m' / (1 - b1^t) / (sqrt(v' / (1 - b2^t)) + eps): the update has the errors of m', half of
 *   v', two powers (16 ulp each, one halved), the bias differences, square root and two divisions. */
static void cf_l_adamw(const cf_check *k, uint32_t out, long double *limits) {
  const cf_call *call = k->call;
  const cf_array *o = &k->outs[out];
  uint32_t n = call->text.args[0].count, list = out / n, item = out % n;
  const cf_array *g = &k->in[n + item], *m = &k->in[2 * n + item], *v = &k->in[3 * n + item];
  const cf_array *step = &k->in[call->ntensors - n + item], *p = &k->in[item];
  long double lr = cf_arg_number(call, "lr", 0), b1 = cf_arg_number(call, "beta1", 0.9);
  long double b2 = cf_arg_number(call, "beta2", 0.999), eps = cf_arg_number(call, "eps", 0), t = step->v[0].re;
  long double wd = cf_arg_number(call, "weight_decay", 0), u = cf_u_acc(k->dtypes[out]);
  long double c1 = 1 - powl(b1, t), c2 = 1 - powl(b2, t); /* differences of numbers near 1 */
  long double powers = 34 * (powl(b1, t) / c1 + powl(b2, t) / c2 / 2);
  for (int64_t i = 0; i < o->numel; i++) {
    long double gi = g->v[i].re, ulp = cf_ulp(k->dtypes[out], o->v[i].re), limit = 0;
    long double m1 = b1 * fabsl(m->v[i].re) + (1 - b1) * fabsl(gi), v1 = b2 * fabsl(v->v[i].re) + (1 - b2) * gi * gi;
    long double update = lr * m1 / c1 / (sqrtl(v1 / c2) + eps);
    if (list == 0) limit = 4 * u * fabsl(p->v[i].re) * (1 + lr * wd) + (16 + powers) * u * update + ulp;
    if (list == 2) limit = ulp + 4 * u * (m1 + fabsl(m->v[i].re) + fabsl(gi)) ; /* as a lerp: m + (g - m)(1 - b1) */
    if (list == 3) limit = ulp + 6 * u * v1;
    limits[i] = limit;
  }
}

/* Norms, each of its own tensor, as linalg_vector_norm's. */
static void cf_l_norms(const cf_check *k, uint32_t out, long double *limits) {
  double p = fabs(cf_arg_number(k->call, "ord", 2));
  long double n = (long double)k->in[out].numel, u = cf_u_acc(k->dtypes[out]), v = fabsl(k->outs[out].v[0].re);
  bool plain = p == 0 || p == 1 || isinf(p);
  long double powers = plain ? 0 : p == 2 ? 1 : 32, root = plain ? 0 : p == 2 ? 2 : 32;
  long double relative = isinf(p) ? 0 : (cf_growth(n) + powers) / (p == 0 ? 1 : p) + root;
  limits[0] = relative * u * v + cf_ulp(k->dtypes[out], v) / 2;
}

#define CF_ADAMW(level, numbers) \
  level " {T[33];T[3,5]} {T[33];T[3,5]} {T[33];T[3,5]} {T[33]+;T[3,5]+} {} {f32[]=3;f32[]=3} " numbers

static const cf_op cf_optimizer_ops[] = {
    {"aten::_fused_adamw",
     CF_TEXTS(CF_ADAMW("s", "lr=0.01 beta1=0.9 beta2=0.999 weight_decay=0.1 eps=1e-08 amsgrad=false maximize=false"),
              CF_ADAMW("m", "lr=0.5 beta1=0.5 beta2=0.75 weight_decay=0.0 eps=1e-06 amsgrad=false maximize=true")),
     CF_BIT(F32) | CF_BIT(F64), CF_R_CUSTOM(cf_l_adamw), CF_VALUES, 0, CF_G_NONE},
    {"aten::_foreach_add.Scalar",
     CF_TEXTS("s {T[33];T[3,5];T[1025]} 2", "m {T[129]} 3", "m {T[0];T[13]} 1", "m {T[];T[3,13,17];T[1]} 2"), CF_REALS,
     CF_R_SCALED, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::_foreach_norm.Scalar",
     CF_TEXTS(
         "s {T[33];T[3,5];T[1025]} 2", "m {T[129];T[];T[0]} 1", "m {T[33,17];T[13]} inf", "m {T[33];T[129]} 3",
         "m {T[3];T[13,17];T[1];T[5];T[6];T[7];T[8];T[9];T[10];T[11];T[12];T[13];T[14];T[15];T[16];T[17];T[18];T[19]} "
         "2",
         "m {T[33];T[129]} 0", "f {T[129,1025];T[1025,33];T[70000]} 2"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_norms), CF_NONZERO, 0, CF_G_NONE},
    {"aten::_amp_update_scale",
     CF_TEXTS("s T[]+ i32[]=4 f32[]=0 2.0 0.5 5", "m T[1]+ i32[1]=3 f32[1]=0 2.0 0.5 5",
              "m T[]+ i32[]=4 f32[]=1 2.0 0.3 5", "m T[]=3e38 i32[]=4 f32[]=0 2.0 0.5 5"),
     CF_BIT(F32), CF_R_ROUNDED, CF_VALUES, 0, CF_G_NONE},
};

CF_FAMILY(optimizer, "optimizer");
