/* Rounding, signs, comparisons, logic and bits: what is exact. */
#include "conformance/cases/pointwise/pointwise.h"

#define CF_COMPARE(n) CF_COMPARE_OF(n, 0)
#define CF_COMPARE_OF(n, further)                                                                      \
  CF_B(n ".Tensor", CF_ANY_DTYPE | (further), CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE), \
      CF_N(n ".Scalar", CF_REALS | (further), CF_R_EXACT, CF_SPECIAL | CF_WIDE, CF_G_NONE)

/* Steps: the gradient is 0 throughout, which no difference over a jump says. */
#define CF_STEPS(n, texts, dtypes, flags) \
  { "aten::" n, texts, dtypes, CF_R_EXACT, CF_VALUES, (flags) | CF_NO_ADJOINT, CF_G_LINEAR(0) }

static const cf_op cf_logic_ops[] = {
    CF_STEPS("floor", cf_unary, CF_REALS, CF_SPECIAL_WIDE),
    CF_STEPS("ceil", CF_ONE(""), CF_REALS, CF_SPECIAL_WIDE),
    CF_STEPS("trunc", CF_ONE(""), CF_REALS, CF_SPECIAL_WIDE),
    CF_STEPS("round", CF_ONE(""), CF_REALS, CF_SPECIAL_WIDE),
    /* one product and one quotient, either of which may come last */
    {"aten::round.decimals",
     CF_TEXTS("s T[33,17] 2", "m T[129] -1", "m T[33,17] 0", "m T[] 3", "m T[0] 1", "m T[3,13,17] 38",
              "f T[2,1,3,2,2,3] -40"),
     CF_FLOATS, CF_R_DIVISION, CF_VALUES, CF_SPECIAL_WIDE | CF_NATIVE | CF_NO_ADJOINT, CF_G_LINEAR(0)},
    {"aten::frac", CF_ONE(""), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_CLAMPS, CF_G_SELECT(1)},
    CF_STEPS("sign", CF_ONE(""), CF_ANY_DTYPE, CF_CLAMPS),
    CF_STEPS("sgn", CF_ONE(""), CF_ANY_DTYPE, CF_CLAMPS),
    {"aten::sgn", CF_ONE(""), CF_COMPLEX, CF_R_ULPS(6), CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    CF_EXACTLY("signbit", CF_ONE(""), CF_ANY_DTYPE, CF_VALUES, CF_WIDE),
    CF_U("isnan", CF_REALS | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE),
    {"prims::isfinite", CF_TWIN, CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"prims::conj_physical", CF_TWIN, CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE, CF_G_LINEAR(0)},
    {"aten::nextafter", CF_TWO(""), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_SPECIAL_WIDE | CF_NATIVE, CF_G_SELECT(1)},
    {"aten::frexp.Tensor", CF_ONE(""), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_SELECT(1)},
    CF_EXACTLY("isinf", CF_ONE(""), CF_ANY_DTYPE | CF_COMPLEX, CF_VALUES, CF_SPECIAL | CF_WIDE),
    {"aten::isneginf", CF_ONE(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::isposinf", CF_ONE(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE},
    {"aten::nan_to_num", CF_ONE(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_INPLACE | CF_NATIVE,
     CF_G_SELECT(1)},
    {"aten::nan_to_num", CF_TEXTS("m T[33,17] 1.5 2 -3", "m T[129] nan=7"), CF_FLOATS, CF_R_EXACT, CF_VALUES,
     CF_SPECIAL | CF_NATIVE, CF_G_SELECT(1)},
    {"aten::copysign.Tensor", CF_TWO(""), CF_TO_FLOAT, CF_R_EXACT, CF_NONZERO, CF_SPECIAL_WIDE, CF_G_SELECT(1)},
    {"aten::heaviside", CF_TWO(""), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_INPLACE, CF_G_NONE},
    CF_COMPARE_OF("eq", CF_COMPLEX),
    CF_COMPARE_OF("ne", CF_COMPLEX),
    CF_EXACTLY("eq.Scalar", CF_TEXTS("m T[13]=1 1+2j", "m T[13]=1 1+0j", "m T[33,17] 2j"), CF_COMPLEX, CF_VALUES,
               CF_SPECIAL),
    CF_EXACTLY("ne.Scalar", CF_TEXTS("m T[13]=1 1+2j", "m T[13]=1 1+0j", "m T[33,17] 2j"), CF_COMPLEX, CF_VALUES,
               CF_SPECIAL),
    CF_COMPARE("lt"),
    CF_COMPARE("le"),
    CF_COMPARE("gt"),
    CF_COMPARE("ge"),
    CF_U("logical_not", CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE),
    CF_B("logical_and", CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_NONE),
    CF_EXACTLY("logical_or", CF_MEETING, CF_ANY_DTYPE | CF_COMPLEX, CF_VALUES, CF_SPECIAL | CF_WIDE),
    CF_EXACTLY("logical_xor", CF_MEETING, CF_ANY_DTYPE | CF_COMPLEX, CF_VALUES, CF_SPECIAL | CF_WIDE),
    CF_EXACTLY("logical_xor", CF_TEXTS("m bool[33,17] T[33,17]", "m T[33,17] f32[17]", "m i64[13,1] T[17]"),
               CF_ANY_DTYPE, CF_VALUES, CF_SPECIAL),
    CF_U("bitwise_not", CF_INTS | CF_BOOLS, CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE),
    CF_B("bitwise_and.Tensor", CF_INTS | CF_BOOLS, CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE),
    CF_EXACTLY("bitwise_or.Tensor", CF_TWO(""), CF_INTS | CF_BOOLS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_xor.Tensor", CF_TWO(""), CF_INTS | CF_BOOLS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_and.Scalar", CF_ONE(" 5"), CF_INTS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_or.Scalar", CF_ONE(" 5"), CF_INTS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_xor.Scalar", CF_ONE(" 5"), CF_INTS, CF_VALUES, CF_WIDE | CF_INPLACE),
    CF_EXACTLY("bitwise_left_shift.Tensor",
               CF_TEXTS("m T[33,17] 3", "s T[129] T[129]<9", "m T[33,17] T[17]<66", "m T[13,1] -1", "m T[] T[]<8",
                        "m T[0] T[0]"),
               CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("bitwise_right_shift.Tensor",
               CF_TEXTS("m T[33,17] 3", "s T[129] T[129]<9", "m T[33,17] T[17]<66", "m T[13,1] -1", "m T[] T[]<8",
                        "m T[0] T[0]"),
               CF_INTS, CF_VALUES, 0),
    /* whole numbers, and one that is not */
    CF_EXACTLY("eq.Scalar", CF_TEXTS("m T[33,17] 2.5", "m T[129] -0.5"), CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("ne.Scalar", CF_TEXTS("m T[33,17] 2.5", "m T[129] -0.5"), CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("lt.Scalar", CF_TEXTS("m T[33,17] 2.5", "m T[129] -0.5"), CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("le.Scalar", CF_TEXTS("m T[33,17] 2.5", "m T[129] -0.5"), CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("gt.Scalar", CF_TEXTS("m T[33,17] 2.5", "m T[129] -0.5"), CF_INTS, CF_VALUES, 0),
    CF_EXACTLY("ge.Scalar", CF_TEXTS("m T[33,17] 2.5", "m T[129] -0.5"), CF_INTS, CF_VALUES, 0),
};

CF_TOPIC(pointwise_logic, "pointwise", cf_logic_ops);
