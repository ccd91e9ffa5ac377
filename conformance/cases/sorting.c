#include "conformance/cases/families.h"

static const cf_op cf_sorting_ops[] = {
    {"aten::sort",
     CF_TEXTS("s T[33,17] 1", "m T[33,17] 0 true", "m T[1025]", "m T[3,13,17] 1", "m T[]", "m T[0]",
              "m T[5,129] -1 true"),
     CF_REALS,
     {.klass = CF_PERMUTED},
     CF_VALUES,
     CF_SPECIAL | CF_WIDE | CF_ANY_ZERO,
     CF_G_SELECT(0)},
    {"aten::sort.stable",
     CF_TEXTS("s T[33,17] true 1", "m T[33,17] true 0 true", "m T[1025] true", "m T[3,13,17] true 1", "m T[] true",
              "m T[0] true"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::topk",
     CF_TEXTS("s T[33,17] 5 1", "m T[33,17] 3 0 false", "m T[1025] 17", "m T[3,13,17] 13 1", "m T[5] 0", "m T[] 1",
              "m T[5,129] 129 -1"),
     CF_REALS,
     {.klass = CF_PERMUTED},
     CF_VALUES,
     CF_SPECIAL | CF_WIDE | CF_ANY_ZERO,
     CF_G_SELECT(0)},
};

CF_FAMILY(sorting, "sorting");
