#include <math.h>
#include <string.h>

#include "conformance/cases/rows.h"

/* ---- fused steps, to first order in u ---- */

/* Item `item` of a list, or a tensor (item 0), by the argument's name; NULL: absent. */
static const cf_array *cf_item(const cf_check *k, const char *name, uint32_t item) {
  const cf_call *call = k->call;
  for (uint32_t i = 0; i < call->ntensors; i++)
    if (strcmp(call->text.schema->args[call->specs[i].arg].name, name) == 0 && item-- == 0) return &k->in[i];
  return NULL;
}

/* A number that is given as such or as a tensor. */
static long double cf_number_of(const cf_check *k, const char *name, long double otherwise) {
  const cf_array *t = cf_item(k, name, 0);
  return t ? t->v[0].re : (long double)cf_arg_number(k->call, name, (double)otherwise);
}

typedef struct cf_step {
  uint32_t list, item;
  const cf_array *p, *g;
  long double u, lr, wd, eps, scale, step;
} cf_step;

static cf_step cf_step_of(const cf_check *k, uint32_t out) {
  uint32_t n = k->call->text.args[0].count, item = out % n;
  const cf_array *step = cf_item(k, "state_steps", item);
  return (cf_step){.list = out / n,
                   .item = item,
                   .p = cf_item(k, "self", item),
                   .g = cf_item(k, "grads", item),
                   .u = cf_u_acc(k->dtypes[out]),
                   .lr = cf_number_of(k, "lr", 0),
                   .wd = cf_number_of(k, "weight_decay", 0),
                   .eps = cf_number_of(k, "eps", 0),
                   .scale = cf_number_of(k, "grad_scale", 1),
                   .step = step ? step->v[0].re : 1};
}

/* The gradient that the step takes: its value up to the sign, and its absolute terms. */
typedef struct cf_gradient {
  long double value, terms;
} cf_gradient;

static cf_gradient cf_step_gradient(const cf_check *k, const cf_step *s, int64_t i, bool decays) {
  long double g = s->g->v[i].re / s->scale, decay = decays ? s->wd * s->p->v[i].re : 0;
  if (cf_arg_int(k->call, "maximize", 0)) g = -g;
  return (cf_gradient){g + decay, fabsl(g) + fabsl(decay)};
}

/* Adam and AdamW:
 *   m' = b1 m + (1 - b1) g             3 roundings of absolute terms
 *   v' = b2 v + (1 - b2) g g           4
 *   p' = p (1 - lr wd) - lr m' / (1 - b1^t) / (sqrt(v' / (1 - b2^t)) + eps): the update has the errors of m', half of
 *   v', two powers (16 ulp each, one halved), the bias differences, square root and two divisions.
 * Adam's g has the weight decay in it, with 4 roundings more; AdamW's is apart from it. */
static void cf_l_adam(const cf_check *k, uint32_t out, long double *limits) {
  cf_step s = cf_step_of(k, out);
  const cf_array *o = &k->outs[out], *m = cf_item(k, "exp_avgs", s.item), *v = cf_item(k, "exp_avg_sqs", s.item);
  const cf_array *most = cf_arg_int(k->call, "amsgrad", 0) ? cf_item(k, "max_exp_avg_sqs", s.item) : NULL;
  bool decoupled = strstr(k->call->op->name, "adamw") != NULL;
  long double b1 = cf_arg_number(k->call, "beta1", 0.9), b2 = cf_arg_number(k->call, "beta2", 0.999), u = s.u;
  long double c1 = 1 - powl(b1, s.step), c2 = 1 - powl(b2, s.step); /* differences of numbers near 1 */
  long double powers = 34 * (powl(b1, s.step) / c1 + powl(b2, s.step) / c2 / 2), more = decoupled ? 0 : 4;
  for (int64_t i = 0; i < o->numel; i++) {
    cf_gradient g = cf_step_gradient(k, &s, i, !decoupled);
    long double ulp = cf_ulp(k->dtypes[out], o->v[i].re), limit = 0, p = fabsl(s.p->v[i].re);
    long double m1 = b1 * fabsl(m->v[i].re) + (1 - b1) * g.terms;
    long double v1 = b2 * fabsl(v->v[i].re) + (1 - b2) * g.value * g.value;
    long double v_terms = b2 * fabsl(v->v[i].re) + (1 - b2) * g.terms * g.terms;
    long double under = most ? fmaxl(most->v[i].re, v1) : v1;
    long double update = s.lr * m1 / c1 / (sqrtl(under / c2) + s.eps);
    if (s.list == 0) limit = 4 * u * p * (1 + s.lr * s.wd) + (11 + more + 5 * v_terms / v1 + powers) * u * update + ulp;
    if (s.list == 1) limit = s.scale == 1 ? 0 : ulp;
    if (s.list == 2)
      limit = ulp + (4 + more) * u * (m1 + fabsl(m->v[i].re) + g.terms); /* as a lerp: m + (g - m)(1 - b1) */
    if (s.list >= 3) limit = ulp + (6 + more) * u * v_terms;
    limits[i] = limit;
  }
}

/* SGD: b' = momentum b + (1 - dampening) g or, first, g; d = g + momentum b', or b', or g; p' = p - lr d. Up to nine
 * roundings of absolute terms stand behind d, four numbers are rounded themselves, two more roundings come after. */
static void cf_l_sgd(const cf_check *k, uint32_t out, long double *limits) {
  cf_step s = cf_step_of(k, out);
  const cf_array *o = &k->outs[out], *b = cf_item(k, "momentum_buffer_list", s.item);
  long double momentum = cf_arg_number(k->call, "momentum", 0), rest = 1 - cf_arg_number(k->call, "dampening", 0);
  bool first = cf_arg_int(k->call, "is_first_step", 0), nesterov = cf_arg_int(k->call, "nesterov", 0);
  for (int64_t i = 0; i < o->numel; i++) {
    long double g = cf_step_gradient(k, &s, i, true).terms, ulp = cf_ulp(k->dtypes[out], o->v[i].re), d = g, buffer = 0;
    if (b) buffer = first ? g : momentum * fabsl(b->v[i].re) + fabsl(rest) * g;
    if (b) d = nesterov ? g + momentum * buffer : buffer;
    if (s.list == 0) limits[i] = ulp + s.u * fabsl(s.p->v[i].re) + 15 * s.u * s.lr * d;
    if (s.list == 1) limits[i] = s.scale == 1 ? 0 : ulp;
    if (s.list == 2) limits[i] = ulp + 10 * s.u * buffer;
  }
}

/* Adagrad: s' = s + g g; p' = p - lr / (1 + (t - 1) lr_decay) g / (sqrt(s') + eps). g has 5 roundings, s' twice that
 * and 2 more, the rate 6, and sqrt, sum, quotient and product one each. */
static void cf_l_adagrad(const cf_check *k, uint32_t out, long double *limits) {
  cf_step s = cf_step_of(k, out);
  const cf_array *o = &k->outs[out], *sums = cf_item(k, "state_sums", s.item);
  long double rate = s.lr / (1 + (s.step - 1) * cf_arg_number(k->call, "lr_decay", 0)), u = s.u;
  for (int64_t i = 0; i < o->numel && s.list < 3; i++) { /* the steps come out as they are */
    cf_gradient g = cf_step_gradient(k, &s, i, true);
    long double sum = sums->v[i].re + g.value * g.value, terms = sums->v[i].re + g.terms * g.terms;
    long double under = sqrtl(sum) + s.eps, ulp = cf_ulp(k->dtypes[out], o->v[i].re);
    long double off = 12 * u * terms / (2 * sqrtl(sum)); /* of the root */
    long double update = 15 * u * rate * g.terms / under + rate * fabsl(g.value) * off / (under * under);
    if (s.list == 0) limits[i] = ulp + u * fabsl(s.p->v[i].re) + update;
    if (s.list == 1) limits[i] = s.scale == 1 ? 0 : ulp;
    if (s.list == 2) limits[i] = ulp + 12 * u * terms;
  }
}

/* ---- _foreach ---- */

static void cf_l_foreach_lerp(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out], *a = cf_item(k, "self", out), *b = cf_item(k, "tensors1", out);
  const cf_array *weights = cf_item(k, "weights", out);
  long double all = cf_arg_number(k->call, "weight", 1), u = cf_u_acc(k->dtypes[out]);
  for (int64_t i = 0; i < o->numel; i++) {
    long double x = fabsl(a->v[i].re), y = fabsl(b->v[i].re), w = weights ? weights->v[i].re : all;
    limits[i] = cf_ulp(k->dtypes[out], o->v[i].re) + u * cf_lerp_terms(x, y, fabsl(w), fabsl(1 - w));
  }
}

/* Norms, each of its own tensor. */
static void cf_l_norms(const cf_check *k, uint32_t out, long double *limits) {
  long double roundings = cf_norm_roundings(fabs(cf_arg_number(k->call, "ord", 2)), (long double)k->in[out].numel);
  limits[0] = cf_limit_of(k, out, 0, roundings * fabsl(k->outs[out].v[0].re));
}

/* Two items in each list. */
#define CF_TWO                  "{T[33];T[3,5]}"
#define CF_TWO_POSITIVE         "{T[33]+;T[3,5]+}"
#define CF_ONES                 "{T[1];T[]}" /* an element for each */
#define CF_STEPS                "{f32[]=3;f32[]=3}"
#define CF_ADAM(level, numbers) level " " CF_TWO " " CF_TWO " " CF_TWO " " CF_TWO_POSITIVE " {} " CF_STEPS " " numbers
#define CF_AMSGRAD(level, numbers) \
  level " " CF_TWO " " CF_TWO " " CF_TWO " " CF_TWO_POSITIVE " " CF_TWO_POSITIVE " " CF_STEPS " " numbers
#define CF_SGD(level, buffers, numbers) level " " CF_TWO " " CF_TWO " " buffers " " numbers
#define CF_ADAGRAD(level, numbers)      level " " CF_TWO " " CF_TWO " " CF_TWO_POSITIVE " " CF_STEPS " " numbers
/* In a launch of its own what does not fit into one: 18 items. */
#define CF_MANY \
  "{T[3];T[13,17];T[1];T[5];T[6];T[7];T[8];T[9];T[10];T[11];T[12];T[13];T[14];T[15];T[16];T[17];T[18];T[19]}"
#define CF_OPTIMIZER(name, texts, limit) \
  { "aten::_fused_" name, texts, CF_FLOATS, CF_R_CUSTOM(limit), CF_VALUES, 0, CF_G_NONE }

/* One item, and items that differ in dtype, size and strides, one of them empty. */
#define CF_LONE              "{T[7,3]}"
#define CF_ODD               "{f32[3,5]:1,3;T[0];T[13]:2;f16[]}"
#define CF_ONE_LIST(list)    list
#define CF_TWO_LISTS(list)   list " " list
#define CF_THREE_LISTS(list) list " " list " " list
/* An op on lists of such items, and what follows these. */
#define CF_EACH(name, dtypes, rule, domain, flags, lists, first, rest)                                           \
  {                                                                                                              \
    "aten::_foreach_" name, CF_TEXTS("m " lists(first) rest, "m " lists(CF_LONE) rest, "m " lists(CF_ODD) rest), \
        dtypes, rule, domain, flags, CF_G_NONE                                                                   \
  }
/* With a number for each. */
#define CF_EACH_NUMBERED(name, dtypes, rule, domain, flags, lists, a, b)              \
  {                                                                                   \
    "aten::_foreach_" name,                                                           \
        CF_TEXTS("m " lists(CF_TWO) " [" a "," b "]", "m " lists(CF_LONE) " [" b "]", \
                 "m " lists(CF_ODD) " [" a "," b "," b "," a "]"),                    \
        dtypes, rule, domain, flags, CF_G_NONE                                        \
  }
/* Lists that are not alike. */
#define CF_EACH_ON(name, dtypes, rule, domain, flags, lists) \
  { "aten::_foreach_" name, CF_TEXTS("m " lists), dtypes, rule, domain, flags, CF_G_NONE }

static const cf_op cf_optimizer_ops[] = {
    CF_OPTIMIZER(
        "adamw",
        CF_TEXTS(CF_ADAM("s", "lr=0.01 beta1=0.9 beta2=0.999 weight_decay=0.1 eps=1e-08 amsgrad=false maximize=false"),
                 CF_ADAM("m", "lr=0.5 beta1=0.5 beta2=0.75 weight_decay=0.0 eps=1e-06 amsgrad=false maximize=true"),
                 CF_AMSGRAD("m", "lr=0.01 beta1=0.9 beta2=0.75 weight_decay=0.1 eps=1e-08 amsgrad=true maximize=false"),
                 CF_ADAM("m",
                         "lr=0.01 beta1=0.9 beta2=0.75 weight_decay=0.1 eps=1e-08 amsgrad=false maximize=false "
                         "grad_scale=f32[]=4 found_inf=f32[]=0")),
        cf_l_adam),
    CF_OPTIMIZER("adamw.tensor_lr",
                 CF_TEXTS(CF_ADAM("m",
                                  "lr=f32[]=0.01 beta1=0.9 beta2=0.999 weight_decay=0.1 eps=1e-08 amsgrad=false "
                                  "maximize=false grad_scale=f32[]=4 found_inf=f32[]=0"),
                          CF_AMSGRAD("m",
                                     "lr=f32[]=0.5 beta1=0.5 beta2=0.75 weight_decay=0.1 eps=1e-06 amsgrad=true "
                                     "maximize=true")),
                 cf_l_adam),
    CF_OPTIMIZER(
        "adam",
        CF_TEXTS(CF_ADAM("m", "lr=0.01 beta1=0.9 beta2=0.999 weight_decay=0.1 eps=1e-08 amsgrad=false maximize=false"),
                 CF_AMSGRAD("m",
                            "lr=0.5 beta1=0.5 beta2=0.75 weight_decay=0.1 eps=1e-06 amsgrad=true maximize=true "
                            "grad_scale=f32[]=3 found_inf=f32[]=0")),
        cf_l_adam),
    CF_OPTIMIZER(
        "adam.tensor_lr",
        CF_TEXTS(
            CF_ADAM("m", "lr=f32[]=0.01 beta1=0.9 beta2=0.999 weight_decay=0.1 eps=1e-08 amsgrad=false maximize=false"),
            CF_ADAM("m",
                    "lr=f32[1]=0.25 beta1=0.9 beta2=0.75 weight_decay=0.0 eps=1e-08 amsgrad=false "
                    "maximize=false grad_scale=f32[]=4 found_inf=f32[]=1"),
            CF_AMSGRAD("m", "lr=f32[]=0.5 beta1=0.5 beta2=0.75 weight_decay=0.1 eps=1e-06 amsgrad=true maximize=true")),
        cf_l_adam),
    CF_OPTIMIZER("sgd",
                 CF_TEXTS(CF_SGD("s", CF_TWO,
                                 "weight_decay=0.1 momentum=0.9 lr=0.01 dampening=0.25 nesterov=false maximize=false "
                                 "is_first_step=false"),
                          CF_SGD("m", "{}",
                                 "weight_decay=0.1 momentum=0.0 lr=0.5 dampening=0.0 nesterov=false maximize=true "
                                 "is_first_step=false"),
                          CF_SGD("m", CF_TWO,
                                 "weight_decay=0.0 momentum=0.5 lr=0.01 dampening=0.0 nesterov=true maximize=false "
                                 "is_first_step=true grad_scale=f32[]=3 found_inf=f32[]=0"),
                          CF_SGD("m", CF_TWO,
                                 "weight_decay=0.1 momentum=0.5 lr=0.01 dampening=0.0 nesterov=true maximize=true "
                                 "is_first_step=false grad_scale=f32[]=4 found_inf=f32[]=1")),
                 cf_l_sgd),
    CF_OPTIMIZER("sgd.tensor_lr",
                 CF_TEXTS(CF_SGD("m", CF_TWO,
                                 "weight_decay=0.1 momentum=0.9 lr=f32[]=0.01 dampening=0.25 nesterov=true "
                                 "maximize=false is_first_step=false"),
                          CF_SGD("m", "{}",
                                 "weight_decay=0.0 momentum=0.0 lr=f32[1]=0.3 dampening=0.0 nesterov=false "
                                 "maximize=false is_first_step=false"),
                          CF_SGD("m", CF_TWO,
                                 "weight_decay=0.1 momentum=0.5 lr=f32[]=0.01 dampening=0.0 nesterov=false "
                                 "maximize=true is_first_step=true grad_scale=f32[]=3 found_inf=f32[]=0")),
                 cf_l_sgd),
    CF_OPTIMIZER("adagrad",
                 CF_TEXTS(CF_ADAGRAD("s", "lr=0.01 lr_decay=0.1 weight_decay=0.1 eps=1e-10 maximize=false"),
                          CF_ADAGRAD("m",
                                     "lr=0.5 lr_decay=0.0 weight_decay=0.0 eps=1e-06 maximize=true grad_scale=f32[]=3 "
                                     "found_inf=f32[]=0")),
                 cf_l_adagrad),

    {"aten::_foreach_add.Scalar",
     CF_TEXTS("s {T[33];T[3,5];T[1025]} 2", "m {T[129]} 3", "s {T[0];T[13]} 1", "m {T[];T[3,13,17];T[1]} 2"), CF_REALS,
     CF_R_SCALED, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    CF_EACH("sign", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, CF_TWO, ""),
    CF_EACH("abs", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_ONE_LIST, CF_MANY, ""),
    CF_EACH("neg", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_ONE_LIST, CF_TWO, ""),
    CF_EACH("sqrt", CF_FLOATS, CF_R_DIVISION, CF_POSITIVE, CF_SPECIAL, CF_ONE_LIST, CF_TWO, ""),
    CF_EACH("rsqrt", CF_FLOATS, CF_R_ULPS(2), CF_POSITIVE, 0, CF_ONE_LIST, CF_TWO, ""),
    CF_EACH("reciprocal", CF_FLOATS, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL, CF_ONE_LIST, CF_TWO, ""),
    CF_EACH("zero", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, CF_TWO, ""),
    CF_EACH("copy", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_TWO_LISTS, CF_TWO, ""),
    {"aten::_foreach_copy", CF_TEXTS("m " CF_TWO " {f32[33];f32[3,5]}", "m " CF_TWO " {T[33];T[5]}"), CF_FLOATS,
     CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    CF_EACH("add.List", CF_REALS, CF_R_SCALED, CF_VALUES, CF_SPECIAL, CF_TWO_LISTS, CF_TWO, ""),
    CF_EACH_ON("add.List", CF_REALS, CF_R_SCALED, CF_VALUES, 0, CF_TWO " " CF_TWO " alpha=-3"),
    /* small and large ones lie in buffers of their own */
    CF_EACH_ON("add.List", CF_BIT(F32), CF_R_SCALED, CF_VALUES, 0, "{T[3];T[600,600]} {T[3];T[600,600]}"),
    CF_EACH_NUMBERED("add.ScalarList", CF_REALS, CF_R_SCALED, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, "2", "3"),
    CF_EACH_ON("add.List", CF_REALS, CF_R_SCALED, CF_VALUES, 0, CF_TWO " " CF_ONES),
    CF_EACH("sub.List", CF_REALS, CF_R_SCALED, CF_VALUES, CF_SPECIAL | CF_DIFFERENCE, CF_TWO_LISTS, CF_TWO, ""),
    CF_EACH_ON("sub.List", CF_REALS, CF_R_SCALED, CF_VALUES, CF_DIFFERENCE, CF_TWO " " CF_TWO " alpha=2"),
    CF_EACH("sub.Scalar", CF_REALS, CF_R_SCALED, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_ONE_LIST, CF_TWO, " 2"),
    CF_EACH_NUMBERED("sub.ScalarList", CF_REALS, CF_R_SCALED, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, "2", "3"),
    CF_EACH("mul.List", CF_REALS, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL, CF_TWO_LISTS, CF_TWO, ""),
    CF_EACH("mul.Scalar", CF_REALS, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, CF_MANY, " 3"),
    CF_EACH_NUMBERED("mul.ScalarList", CF_REALS, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, "2", "3"),
    /* A number that each item's dtype has. */
    {"aten::_foreach_mul.Tensor", CF_TEXTS("m " CF_TWO " T[]", "m " CF_LONE " T[]", "m " CF_ODD " T[]=3"), CF_REALS,
     CF_R_ROUNDED, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    CF_EACH("div.List", CF_FLOATS, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL, CF_TWO_LISTS, CF_TWO, ""),
    CF_EACH_ON("div.List", CF_FLOATS, CF_R_DIVISION, CF_NONZERO, 0, "{T[33];T[1];T[];T[3,5]} {T[];T[1];T[];T[1]}"),
    CF_EACH_ON("div.List", CF_FLOATS, CF_R_DIVISION, CF_NONZERO, 0, CF_TWO " {T[];T[5]}"),
    CF_EACH("div.Scalar", CF_FLOATS, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL, CF_ONE_LIST, CF_TWO, " 0.1"),
    CF_EACH_NUMBERED("div.ScalarList", CF_FLOATS, CF_R_DIVISION, CF_NONZERO, CF_SPECIAL, CF_ONE_LIST, "0.1", "3.0"),
    {"aten::_foreach_div.Tensor", CF_TEXTS("m " CF_TWO " T[]", "m " CF_LONE " T[]", "m " CF_ODD " T[]=3"), CF_FLOATS,
     CF_R_DIVISION, CF_NONZERO, CF_SPECIAL, CF_G_NONE},
    CF_EACH("addcmul.Scalar", CF_FLOATS, CF_R_ALPHA, CF_VALUES, 0, CF_THREE_LISTS, CF_TWO, " 0.3"),
    CF_EACH("addcdiv.Scalar", CF_FLOATS, CF_R_ALPHA, CF_NONZERO, 0, CF_THREE_LISTS, CF_TWO, " -0.5"),
    CF_EACH_ON("addcdiv.Scalar", CF_FLOATS, CF_R_ALPHA, CF_NONZERO, 0, CF_TWO " " CF_TWO " " CF_ONES " -0.5"),
    CF_EACH_NUMBERED("addcdiv.ScalarList", CF_FLOATS, CF_R_ALPHA, CF_NONZERO, 0, CF_THREE_LISTS, "-0.5", "0.3"),
    CF_EACH("lerp.Scalar", CF_FLOATS, CF_R_CUSTOM(cf_l_foreach_lerp), CF_VALUES, 0, CF_TWO_LISTS, CF_TWO, " 0.3"),
    CF_EACH("lerp.List", CF_FLOATS, CF_R_CUSTOM(cf_l_foreach_lerp), CF_VALUES, 0, CF_THREE_LISTS, CF_TWO, ""),
    CF_EACH("maximum.List", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_ANY_ZERO, CF_TWO_LISTS, CF_TWO, ""),
    CF_EACH("clamp_min.List", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_ANY_ZERO, CF_TWO_LISTS, CF_TWO, ""),
    CF_EACH("clamp_min.Scalar", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, CF_MANY, " 1"),
    CF_EACH_ON("clamp_min.Scalar", CF_BIT(U8), CF_R_EXACT, CF_VALUES, 0, CF_TWO " -1"),
    CF_EACH_NUMBERED("clamp_min.ScalarList", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, "1", "2"),
    CF_EACH("clamp_max.List", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_ANY_ZERO, CF_TWO_LISTS, CF_TWO, ""),
    CF_EACH("clamp_max.Scalar", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, CF_MANY, " 1"),
    CF_EACH_ON("clamp_max.Scalar", CF_BIT(U8), CF_R_EXACT, CF_VALUES, 0, CF_TWO " -1"),
    CF_EACH_NUMBERED("clamp_max.ScalarList", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_ONE_LIST, "1", "2"),
    {"aten::_foreach_pow.ScalarAndTensor", CF_TEXTS("m 2.5 " CF_TWO, "m 2.5 " CF_LONE, "m 2.5 " CF_ODD), CF_FLOATS,
     CF_R_ULPS(16), CF_VALUES, 0, CF_G_NONE},
    {"aten::_amp_foreach_non_finite_check_and_unscale",
     CF_TEXTS("s " CF_TWO " f32[]=0 f32[]=0.25", "m " CF_MANY " f32[1]=0 f32[1]=0.5",
              "m {T[33];T[0];T[]} f32[]=1 f32[]=1"),
     CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::_amp_foreach_non_finite_check_and_unscale", CF_TEXTS("m " CF_TWO " f32[]=0 f32[]=0.3"),
     CF_BIT(F32) | CF_BIT(F64), CF_R_ROUNDED, CF_VALUES, CF_WIDE, CF_G_NONE},
    {"aten::_foreach_norm.Scalar",
     CF_TEXTS(
         "s {T[33];T[3,5];T[1025]} 2", "m {T[129];T[];T[0]} 1", "s {T[33,17];T[13]} inf", "m {T[33];T[129]} 3",
         "m {T[3];T[13,17];T[1];T[5];T[6];T[7];T[8];T[9];T[10];T[11];T[12];T[13];T[14];T[15];T[16];T[17];T[18];T[19]} "
         "2",
         "m {T[33];T[129]} 0", "f {T[129,1025];T[1025,33];T[70000]} 2"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_norms), CF_NONZERO, 0, CF_G_NONE},
    {"aten::_foreach_norm.Scalar", CF_TEXTS("m {T[33];T[3,5];T[129]} 2 f32", "m {T[129];T[];T[0]} 1 f64"),
     CF_BIT(F16) | CF_BIT(BF16), CF_R_CUSTOM(cf_l_norms), CF_NONZERO, 0, CF_G_NONE},
    {"aten::_amp_update_scale",
     CF_TEXTS("s T[]+ i32[]=4 f32[]=0 2.0 0.5 5", "m T[1]+ i32[1]=3 f32[1]=0 2.0 0.5 5",
              "m T[]+ i32[]=4 f32[]=1 2.0 0.3 5", "m T[]=3e38 i32[]=4 f32[]=0 2.0 0.5 5",
              "m T[]+ i32[]=6 f32[]=0 2.0 0.5 7"),
     CF_BIT(F32), CF_R_ROUNDED, CF_VALUES, 0, CF_G_NONE},
    /* Whole numbers, and one that is not. */
    CF_EACH_ON("add.Scalar", CF_INTS, CF_R_SCALED, CF_VALUES, 0, CF_TWO " 2.5"),
    CF_EACH_ON("sub.Scalar", CF_INTS, CF_R_SCALED, CF_VALUES, 0, CF_TWO " -0.25"),
    CF_EACH_ON("mul.Scalar", CF_INTS, CF_R_ROUNDED, CF_VALUES, 0, CF_TWO " -2.5"),
    CF_EACH_ON("clamp_min.Scalar", CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_TWO " 1.5"),
    CF_EACH_ON("clamp_max.Scalar", CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_TWO " 1.5"),
};

CF_TOPIC(optimizer, "optimizer", cf_optimizer_ops);
