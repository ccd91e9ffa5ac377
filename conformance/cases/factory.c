#include "conformance/cases/families.h"

static const cf_op cf_factory_ops[] = {
    {"aten::full", CF_TEXTS("s [33,17] 2 dtype=T", "m [1025] 1 dtype=T", "m [] 2 dtype=T", "m [0] 1 dtype=T"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::full", CF_TEXTS("s [33,17] 2.7 dtype=T", "m [129] inf dtype=T"), CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE},
    {"aten::fill.Scalar", CF_TEXTS("s T[33,17] 2", "m T[1025] 1", "m T[] 2", "m T[0] 1"), CF_ANY_DTYPE, CF_R_EXACT,
     CF_VALUES, CF_SPECIAL, CF_G_SELECT(0)},
    {"aten::zero", CF_TEXTS("m T[33,17]", "s T[1025]", "m T[]", "m T[0]"), CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES,
     CF_SPECIAL, CF_G_SELECT(0)},
    {"aten::arange.start_step",
     CF_TEXTS("s 0 33 2 dtype=T", "m 5 -17 -3 dtype=T", "m 0 100 1 dtype=T", "m 3 3 1 dtype=T"), CF_REALS & ~CF_BIT(U8),
     CF_R_EXACT, CF_VALUES, CF_FLAT, CF_G_NONE},
    {"aten::arange.start_step", CF_TEXTS("s 1 9 0.25 dtype=T", "m 0 1 0.125 dtype=T"), CF_FLOATS, CF_R_EXACT, CF_VALUES,
     CF_FLAT, CF_G_NONE},
    {"aten::scalar_tensor", CF_TEXTS("s 2 dtype=T", "m 1 dtype=T"), CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_FLAT,
     CF_G_NONE},
};

CF_FAMILY(factory, "factory");
