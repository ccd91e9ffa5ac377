/* What networks put between their layers, and its backward slots. The second text of an op is often the one that smoke
 * runs: one program an op. */
#include <math.h>

#include "conformance/cases/pointwise/pointwise.h"

/* ---- derivatives: the sum of the absolute terms of f'(x) ---- */

static long double cf_sigmoid(long double x) {
  return 1 / (1 + expl(-x));
}

static long double cf_k_tanh(long double x) { /* 1 - y y */
  return 1 + tanhl(x) * tanhl(x);
}

static long double cf_k_sigmoid(long double x) { /* y (1 - y) */
  long double y = cf_sigmoid(x);
  return y * (1 + y);
}

static long double cf_k_gelu(long double x) { /* Phi(x) + x phi(x), Phi = (1 + erf) / 2; the tanh form alike */
  long double phi = 0.3989422804014327L * expl(-x * x / 2);
  return 0.5L * (1 + fabsl(erfl(x * 0.7071067811865476L))) + fabsl(x) * phi * (1 + x * x);
}

static long double cf_k_silu(long double x) { /* s (1 + x (1 - s)) */
  long double s = cf_sigmoid(x);
  return s * (1 + fabsl(x) * (1 + s));
}

static long double cf_k_hardswish(long double x) { /* x / 3 + 1/2, or 1 */
  return fabsl(x) / 3 + 1;
}

static long double cf_k_mish(long double x) { /* t + x s (1 - t t), t = tanh(softplus) */
  long double t = tanhl(log1pl(expl(x)));
  return t + fabsl(x) * cf_sigmoid(x) * (1 + t * t);
}

/* ---- backward slots: (grad, x or y) -> grad f' ---- */

static void cf_slot_limit(const cf_check *k, uint32_t out, long double *limits, long double (*terms)(long double),
                          long double roundings) {
  const cf_array *g = &k->in[0], *x = &k->in[1], *o = &k->outs[out];
  for (int64_t i = 0; i < o->numel; i++)
    limits[i] = cf_limit_of(k, out, i, roundings * fabsl(g->v[i].re) * terms(x->v[i].re));
}

static long double cf_k_sigmoid_of_y(long double y) {
  return fabsl(y) + y * y;
}

static long double cf_k_tanh_of_y(long double y) {
  return 1 + y * y;
}

static void cf_l_sigmoid_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_sigmoid_of_y, 4);
}

static void cf_l_tanh_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_tanh_of_y, 4);
}

/* erf 16 ulp and exp 3 ulp, twice u each, and the roundings of the formula. */
static void cf_l_gelu_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_gelu, 40);
}

/* sigmoid 4 ulp, used twice. */
static void cf_l_silu_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_silu, 20);
}

static void cf_l_hardswish_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_hardswish, 4);
}

/* exp 3 ulp in each of tanh's two places, sigmoid 4 ulp. */
static void cf_l_mish_backward(const cf_check *k, uint32_t out, long double *l) {
  cf_slot_limit(k, out, l, cf_k_mish, 32);
}

/* ---- other limits ---- */

/* output as softplus: 4 ulp + 2u |x|; buffer is one exp */
static void cf_l_log_sigmoid(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  bool half = cf_mantissa(dtype) < 24;
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double ulp = cf_ulp(dtype, k->outs[out].v[i].re), size = fabsl(k->in[0].v[i].re);
    limits[i] = out ? (half ? 1 : 3) * ulp : (half ? 1 : 4) * ulp + 2 * cf_u_acc(dtype) * size;
  }
}

/* g / (1 + z), which may be g (1 - z / (1 + z)): its quotient, right to 2u, is up to z times as large as what is left.
 */
static void cf_l_log_sigmoid_backward(const cf_check *k, uint32_t out, long double *limits) {
  graft_dtype dtype = k->dtypes[out];
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double size = fabsl(k->outs[out].v[i].re), buffer = k->in[2].v[i].re;
    limits[i] = cf_ulp(dtype, size) + (3 + 2 * buffer) * cf_u_acc(dtype) * size;
  }
}

/* ---- terms of gradients ---- */

/* (g, x, w) to (g or w g, 0 or x g), for cotangents of both; all of one shape */
static void cf_t_prelu(const cf_check *k, uint32_t in, long double *terms) {
  for (int64_t i = 0; i < k->in[in].numel; i++) {
    long double g = fabsl(k->in[0].v[i].re), x = fabsl(k->in[1].v[i].re), w = fabsl(k->in[2].v[i].re);
    long double first = fabsl(k->g[0].v[i].re), second = fabsl(k->g[1].v[i].re);
    terms[i] = in == 0 ? first * fmaxl(1, w) + second * x : in == 1 ? g * second : g * first;
  }
}

/* Of element i of the whole tensor: where its half-tensor element is, and where its partner is. */
typedef struct cf_gate {
  int64_t half, partner;
  bool is_gate;
} cf_gate;

static cf_gate cf_gate_of(const cf_array *whole, int64_t dim, int64_t i) {
  cf_axis x = cf_axis_of(whole, dim);
  int64_t run = x.length * x.inner, at = i % run, half = run / 2;
  bool is_gate = at >= half;
  return (cf_gate){i / run * half + at % half, is_gate ? i - half : i + half, is_gate};
}

/* g s, and g a s (1 - s) */
static long double cf_glu_term(const cf_array *whole, const cf_array *g, int64_t dim, int64_t i) {
  cf_gate at = cf_gate_of(whole, dim, i);
  long double s = cf_sigmoid(whole->v[at.is_gate ? i : at.partner].re), size = fabsl(g->v[at.half].re);
  return at.is_gate ? size * fabsl(whole->v[at.partner].re) * s * (1 + s) : size * s;
}

static void cf_t_glu(const cf_check *k, uint32_t in, long double *terms) {
  int64_t dim = cf_arg_int(k->call, "dim", -1);
  for (int64_t i = 0; i < k->in[in].numel; i++) terms[i] = cf_glu_term(&k->in[0], &k->g[0], dim, i);
}

/* sigmoid 4 ulp, used twice. */
static void cf_l_glu_backward(const cf_check *k, uint32_t out, long double *limits) {
  int64_t dim = cf_arg_int(k->call, "dim", -1);
  for (int64_t i = 0; i < k->outs[out].numel; i++)
    limits[i] = cf_limit_of(k, out, i, 20 * cf_glu_term(&k->in[1], &k->in[0], dim, i));
}

/* ---- rows ---- */

static const cf_op cf_activations_ops[] = {
    CF_U("relu", CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_ANY_ZERO, CF_G_SELECT(1)),
    CF_U("sigmoid", CF_TO_FLOAT, CF_R_ULPS(4), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_sigmoid, 20)),
    CF_U("tanh", CF_TO_FLOAT, CF_R_ULPS(5), CF_VALUES, CF_SPECIAL_WIDE, CF_G_KAPPA(cf_k_tanh, 24)),
    {"aten::gelu",
     CF_TEXTS("s T[33,17]", "s T[33,17] 'tanh'", "m T[1025]", "m T[1025] 'tanh'", "m T[]", "m T[0]", "m T[3,13,17]",
              "f T[2,1,3,2,2,3]"),
     CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_KAPPA(cf_k_gelu, 40)},
    CF_U("silu", CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_KAPPA(cf_k_silu, 24)),
    {"aten::sigmoid_backward", CF_TEXTS("m T[33,17] T[33,17]", "s T[1025] T[1025]", "m T[0] T[0]", "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_sigmoid_backward), CF_PROBABILITY, CF_INPLACE, CF_G_NONE},
    {"aten::tanh_backward", CF_TEXTS("m T[33,17] T[33,17]", "s T[1025] T[1025]", "m T[0] T[0]", "m T[] T[]"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_tanh_backward), CF_UNIT, CF_INPLACE, CF_G_NONE},
    {"aten::gelu_backward", CF_TEXTS("m T[33,17] T[33,17]", "s T[1025] T[1025] 'tanh'", "m T[0] T[0]", "m T[] T[]"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_gelu_backward), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::silu_backward", CF_TEXTS("m T[33,17] T[33,17]", "s T[1025] T[1025]", "m T[0] T[0]", "m T[] T[]"), CF_FLOATS,
     CF_R_CUSTOM(cf_l_silu_backward), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::threshold_backward",
     CF_TEXTS("m T[33,17] T[33,17] 0", "s T[1025] T[1025] 1", "m T[0] T[0] 0", "m T[] T[] 0", "m T[33,17] T[33,17] 2"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_INPLACE | CF_ANY_ZERO, CF_G_SELECT(1)},
    {"aten::elu", CF_ONE(""), CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_SELECT(14)},
    {"aten::elu", CF_TEXTS("m T[33,17] 0.5 1.5 3"), CF_FLOATS, CF_R_GATED(4), CF_VALUES, 0, CF_G_SELECT(14)},
    {"aten::elu_backward",
     CF_TEXTS("m T[33,17] 0.5 1.5 3 false T[33,17]", "s T[129] 1 1 1 false T[129]", "m T[129] 0.5 1.5 3 true T[129]",
              "m T[] 1 1 1 true T[]", "m T[0] 1 1 1 false T[0]"),
     CF_FLOATS, CF_R_ULPS(10), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::celu", CF_ONE(" 0.5"), CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_SELECT(14)},
    {"aten::hardtanh", CF_ONE(" -0.5 0.75"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::hardtanh", CF_TEXTS("m T[33,17] 1 3", "m T[1025] 0 6"), CF_INTS, CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE},
    {"aten::hardtanh_backward", CF_TWO(" -0.5 0.75"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_INPLACE | CF_ANY_ZERO,
     CF_G_SELECT(1)},
    {"aten::leaky_relu", CF_ONE(" 0.1"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(2)},
    {"aten::leaky_relu_backward", CF_TWO(" 0.1 false"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_INPLACE, CF_G_SELECT(2)},
    {"aten::leaky_relu_backward", CF_TEXTS("m T[33,17] T[33,17] 0.25 true"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, 0,
     CF_G_SELECT(2)},
    {"aten::hardswish", CF_ONE(""), CF_FLOATS, CF_R_ULPS(3), CF_VALUES, CF_INPLACE, CF_G_KAPPA(cf_k_hardswish, 4)},
    {"aten::hardswish_backward", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_hardswish_backward), CF_VALUES, CF_INPLACE,
     CF_G_NONE},
    {"aten::hardsigmoid", CF_ONE(""), CF_FLOATS, CF_R_ULPS(2), CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(2)},
    {"aten::hardsigmoid_backward", CF_TWO(""), CF_FLOATS, CF_R_ULPS(1), CF_VALUES, CF_INPLACE | CF_ANY_ZERO,
     CF_G_SELECT(2)},
    {"aten::softplus", CF_ONE(""), CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_SELECT(16)},
    {"aten::softplus", CF_TEXTS("m T[33,17] 2 0.5"), CF_FLOATS, CF_R_GATED(4), CF_VALUES, 0, CF_G_SELECT(16)},
    {"aten::softplus_backward", CF_TWO(" 2 0.5"), CF_FLOATS, CF_R_ULPS(10), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::log_sigmoid_forward", CF_ONE(""), CF_FLOATS, CF_R_CUSTOM(cf_l_log_sigmoid), CF_VALUES, CF_NO_ADJOINT,
     CF_G_SELECT(14)}, /* buffer has no gradient, as in PyTorch */
    {"aten::log_sigmoid_backward",
     CF_TEXTS("m T[33,17] T[33,17] T[33,17]+", "s T[129] T[129] T[129]+", "m T[] T[] T[]+", "m T[0] T[0] T[0]+"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_log_sigmoid_backward), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::mish", CF_ONE(""), CF_FLOATS, CF_R_GATED(4), CF_VALUES, CF_INPLACE, CF_G_KAPPA(cf_k_mish, 32)},
    {"aten::mish_backward", CF_TWO(""), CF_FLOATS, CF_R_CUSTOM(cf_l_mish_backward), CF_VALUES, CF_INPLACE, CF_G_NONE},
    {"aten::threshold", CF_ONE(" 0.25 7"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_SELECT(1)},
    {"aten::threshold", CF_TEXTS("m T[33,17] 1 3", "m T[129] 0 5"), CF_INTS, CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE},
    {"aten::hardshrink", CF_ONE(" 0.5"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::hardshrink", CF_TEXTS("m T[33,17] 0.75"), CF_FLOATS, CF_R_EXACT, CF_VALUES, 0, CF_G_SELECT(1)},
    {"aten::hardshrink_backward", CF_TWO(" 0.5"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_INPLACE | CF_ANY_ZERO,
     CF_G_SELECT(1)},
    {"aten::softshrink", CF_ONE(" 0.5"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    {"aten::softshrink", CF_TEXTS("m T[33,17] 0.75"), CF_FLOATS, CF_R_ROUNDED, CF_VALUES, 0, CF_G_SELECT(1)},
    {"aten::softshrink_backward", CF_TWO(" 0.5"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_INPLACE | CF_ANY_ZERO,
     CF_G_SELECT(1)},
    {"aten::_prelu_kernel",
     CF_TEXTS("m T[33,17] T[33,17]", "s T[33,17] T[17]", "m T[3,13,17] T[13,1]", "m T[] T[]", "m T[0] T[0]",
              "f T[2,3,1,17] T[3,1,1]"),
     CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_SPECIAL | CF_INPLACE, CF_G_SELECT(2)},
    {"aten::_prelu_kernel_backward",
     CF_TEXTS("m T[33,17] T[33,17] T[33,17]", "s T[129] T[129] T[129]", "m T[] T[] T[]", "m T[0] T[0] T[0]"), CF_FLOATS,
     CF_R_ROUNDED, CF_VALUES, CF_SPECIAL | CF_ANY_ZERO, CF_G_CUSTOM(cf_t_prelu, 4)},
    {"aten::_prelu_kernel_backward", CF_TEXTS("m T[33,17] T[33,17] T[17]", "m T[3,13,17] T[3,13,17] T[13,1]"),
     CF_FLOATS, CF_R_ROUNDED, CF_VALUES, CF_ANY_ZERO, CF_G_NONE},
    {"aten::glu",
     CF_TEXTS("m T[33,34]", "s T[13,34]", "m T[13,34] 1", "m T[4,3,17] 0", "m T[3,8,17] -2", "m T[0,4]", "m T[258]",
              "f T[2,3,2,4,2,3] 3"),
     CF_FLOATS, CF_R_ULPS(9), CF_VALUES, 0, CF_G_CUSTOM(cf_t_glu, 20)},
    {"aten::glu_backward",
     CF_TEXTS("m T[33,17] T[33,34] 1", "s T[13,17] T[13,34] -1", "m T[2,3,17] T[4,3,17] 0", "m T[3,4,17] T[3,8,17] 1",
              "m T[0,2] T[0,4] 1"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_glu_backward), CF_VALUES, 0, CF_G_NONE},
    /* Numbers that are cut. */
    {"aten::hardtanh", CF_TEXTS("m T[33,17] 1.75 3.75"), CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::hardtanh", CF_TEXTS("m T[33,17] -1.75 2.5"), CF_SIGNED, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::threshold", CF_TEXTS("m T[33,17] 1.75 3.75"), CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::threshold", CF_TEXTS("m T[33,17] -1.75 -3.75"), CF_SIGNED, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
};

CF_TOPIC(pointwise_activations, "pointwise", cf_activations_ops);
