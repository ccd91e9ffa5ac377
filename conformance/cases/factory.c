#include <math.h>

#include "conformance/cases/rows.h"

/* start + i step or end - i step, fused or not: roundings of the step, the product and the sum. */
static void cf_l_linspace(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double size = cf_arg_size(k->call, "start") + cf_arg_size(k->call, "end");
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, 4 * size);
}

/* pow's 16 ulp, and what its exponent's roundings come to. */
static void cf_l_logspace(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  long double size = cf_arg_size(k->call, "start") + cf_arg_size(k->call, "end");
  double base = cf_arg_number(k->call, "base", 10);
  long double each = 4 * size * hypotl(logl(fabsl((long double)base)), base < 0 ? acosl(-1) : 0) + 16;
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, each * cf_modulus(o->v[i]));
}

static const cf_op cf_factory_ops[] = {
    {"aten::full", CF_TEXTS("s [33,17] 2 dtype=T", "m [1025] 1 dtype=T", "m [] 2 dtype=T", "m [0] 1 dtype=T"),
     CF_ANY_DTYPE | CF_FLOAT8, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    /* so many that a kernel writes them */
    {"aten::full", CF_TEXTS("m [5003] 1 dtype=T"), CF_BIT(F32) | CF_BIT(I64) | CF_BIT(BOOL), CF_R_EXACT, CF_VALUES, 0,
     CF_G_NONE},
    {"aten::full", CF_TEXTS("m [33,17] 2.7 dtype=T", "m [129] inf dtype=T", "m [13] nan dtype=T"), CF_FLOATS,
     CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    /* the largest f16 */
    {"aten::full", CF_TEXTS("m [13] 65504 dtype=T", "m [13] -65504 dtype=T"), CF_BIT(F16), CF_R_EXACT, CF_VALUES,
     CF_FLAT, CF_G_NONE},
    /* an integer that by way of f64 would round to another f32 */
    {"aten::full", CF_TEXTS("m [13] 18014399583223809 dtype=T"), CF_BIT(F32) | CF_BIT(F64), CF_R_EXACT, CF_VALUES,
     CF_FLAT, CF_G_NONE},
    {"aten::fill.Scalar", CF_TEXTS("s T[33,17] 2", "m T[1025] 1", "m T[] 2", "m T[0] 1"), CF_ANY_DTYPE | CF_FLOAT8,
     CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_SELECT(0)},
    {"aten::fill.Scalar", CF_TEXTS("m T[13] nan", "m T[13] 1e-6"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE},
    /* below the normal numbers, rounded, and what rounds to the largest of e4m3fn */
    {"aten::fill.Scalar", CF_TEXTS("m T[13] 0.011", "m T[13] -2.7", "m T[13] nan", "m T[13] 440"), CF_FLOAT8,
     CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::zero", CF_TEXTS("m T[33,17]", "s T[1025]", "m T[]", "m T[0]"), CF_ANY_DTYPE | CF_FLOAT8 | CF_COMPLEX,
     CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_SELECT(0)},
    {"aten::full_like", CF_TEXTS("m T[33,17] 2", "m T[1025] 1", "m T[] 3", "m T[0] 2", "m T[3,13] 0 dtype=f32"),
     CF_MOVABLE, CF_R_EXACT, CF_VALUES, 0, CF_G_SELECT(0)},
    {"aten::full_like", CF_TEXTS("m T[33,17] 0.5-2j"), CF_COMPLEX, CF_R_EXACT, CF_VALUES, 0, CF_G_SELECT(0)},
    {"aten::arange.start_step",
     CF_TEXTS("s 0 33 2 dtype=T", "m 5 -17 -3 dtype=T", "m 0 100 1 dtype=T", "m 3 3 1 dtype=T"), CF_REALS & ~CF_BIT(U8),
     CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::arange.start_step", CF_TEXTS("s 1 9 0.25 dtype=T", "m 0 1 0.125 dtype=T"), CF_FLOATS, CF_R_EXACT, CF_VALUES,
     CF_FLAT, CF_G_NONE},
    /* Of more numbers than a GPU's work-items make at a time: here, and in linspace and eye. */
    {"aten::arange.start_step", CF_TEXTS("m -10001 10018 1 dtype=T"), CF_BIT(I64) | CF_BIT(F32), CF_R_EXACT, CF_VALUES,
     CF_FLAT, CF_G_NONE},
    {"prims::iota",
     CF_TEXTS("m 33 start=-3 step=2 dtype=T requires_grad=false", "m 17 start=5 step=-3 dtype=T requires_grad=false",
              "m 0 start=1 step=1 dtype=T requires_grad=false"),
     CF_SIGNED, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::scalar_tensor", CF_TEXTS("s 2 dtype=T", "m 1 dtype=T"), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE},
    {"aten::linspace",
     CF_TEXTS("s 0 1 33 dtype=T", "m -3 5 1025 dtype=T", "m -3 5 20011 dtype=T", "m 2 2 3 dtype=T", "m 7 -1 1 dtype=T",
              "m 0 1 0 dtype=T"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_linspace), CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::linspace",
     CF_TEXTS("m 0 100 33 dtype=T", "m 100 3 7 dtype=T", "m 0 127 129 dtype=T", "m 300 -300 0 dtype=T",
              "m 3 -300 1 dtype=T"), /* no dtype has to hold a number that is not made */
     CF_INTS, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::linspace", CF_TEXTS("m 0 1+2j 33 dtype=T", "m -3-1j 5 129 dtype=T", "m 1j 2 1 dtype=T", "m 0 1j 0 dtype=T"),
     CF_COMPLEX, CF_R_CUSTOM(cf_l_linspace), CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::logspace",
     CF_TEXTS("s 0 1 33 dtype=T", "m -3 2 129 dtype=T", "m 2 2 3 dtype=T", "m 3 -1 1 dtype=T", "m 0 1 0 dtype=T",
              "m -1.5 2.25 17 2.5 dtype=T", "m 4 -2 13 0.5 dtype=T"),
     CF_FLOATS, CF_R_CUSTOM(cf_l_logspace), CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::logspace", CF_TEXTS("m 0 2 3 dtype=T", "m 6 0 7 2 dtype=T", "m 0 2 6 dtype=T", "m 1 0 1 7 dtype=T"),
     CF_INTS, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::logspace",
     CF_TEXTS("m 0 1+2j 33 dtype=T", "m -3-1j 2 129 dtype=T", "m -1.5 2.25+1j 17 -2.5 dtype=T", "m 1j 2 1 dtype=T"),
     CF_COMPLEX, CF_R_CUSTOM(cf_l_logspace), CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::eye.m",
     CF_TEXTS("s 33 17 dtype=T", "m 13 129 dtype=T", "m 157 131 dtype=T", "m 131 157 dtype=T", "m 3 3 dtype=T",
              "m 0 3 dtype=T"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::tril_indices",
     CF_TEXTS("s 13 17 dtype=T", "m 17 13 3 dtype=T", "m 33 17 -5 dtype=T", "m 3 5 9 dtype=T", "m 129 3 -200 dtype=T"),
     CF_BIT(I64) | CF_BIT(I32), CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::triu_indices",
     CF_TEXTS("m 13 17 dtype=T", "m 17 13 3 dtype=T", "m 33 17 -5 dtype=T", "m 3 5 9 dtype=T", "m 129 3 -200 dtype=T"),
     CF_BIT(I64) | CF_BIT(I32), CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    /* Whole numbers of others, which are cut: toward 0. */
    {"aten::full", CF_TEXTS("m [33,17] 2.75 dtype=T", "m [5003] 2.75 dtype=T"), CF_INTS, CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE},
    {"aten::full", CF_TEXTS("m [33,17] -2.75 dtype=T"), CF_SIGNED, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::full_like", CF_TEXTS("m T[33,17] 2.75"), CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::full_like", CF_TEXTS("m T[33,17] -2.75"), CF_SIGNED, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::fill.Scalar", CF_TEXTS("m T[33,17] 2.75"), CF_INTS, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::fill.Scalar", CF_TEXTS("m T[33,17] -2.75"), CF_SIGNED, CF_R_EXACT, CF_VALUES, 0, CF_G_NONE},
    {"aten::scalar_tensor", CF_TEXTS("m 2.75 dtype=T"), CF_INTS, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::scalar_tensor", CF_TEXTS("m -2.75 dtype=T"), CF_SIGNED, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::arange.start_step", CF_TEXTS("m 0.5 33.75 1.75 dtype=T"), CF_INTS, CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE},
    {"aten::arange.start_step", CF_TEXTS("m 3.75 -17.5 -2.75 dtype=T"), CF_SIGNED, CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE},
    {"aten::linspace", CF_TEXTS("m 0.5 5.75 3 dtype=T", "m 2.75 99.9 33 dtype=T", "m 2.75 0.5 1 dtype=T"), CF_INTS,
     CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::linspace", CF_TEXTS("m -2.9 5.75 5 dtype=T"), CF_SIGNED, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::logspace",
     CF_TEXTS("m 0.5 2.9 3 dtype=T", "m 0.9 6.9 7 2 dtype=T", "m 1.5 0.9 1 dtype=T", "m 0 4 5 2.5 dtype=T"), CF_INTS,
     CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
};

CF_TOPIC(factory, "factory", cf_factory_ops);
