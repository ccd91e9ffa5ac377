#include "conformance/cases/rows.h"

static const cf_op cf_sorting_ops[] = {
    {"aten::sort",
     CF_TEXTS("s T[33,17] 1", "m T[33,17] 0 true", "m T[1025]", "m T[3,13,17] 1", "m T[]", "m T[0]",
              "m T[5,129] -1 true"),
     CF_REALS, CF_R_PERMUTED, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::sort.stable",
     CF_TEXTS("s T[33,17] true 1", "m T[33,17] true 0 true", "m T[1025] true", "m T[3,13,17] true 1", "m T[] true",
              "m T[0] true"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::topk",
     CF_TEXTS("s T[33,17] 5 1", "m T[33,17] 3 0 false", "m T[1025] 17", "m T[3,13,17] 13 1", "m T[5] 0", "m T[] 1",
              "m T[5,129] 129 -1"),
     CF_REALS, CF_R_PERMUTED, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(0)},
    {"aten::isin.Tensor_Tensor",
     CF_TEXTS("s T[33,17] T[13]", "m T[1025] T[3]", "m T[33,17] T[1025] invert=true", "m T[] T[5]", "m T[0] T[3]",
              "m T[13] T[0]", "m T[129] T[3000]", "m T[33] f32[5]"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::bucketize.Tensor",
     CF_TEXTS("m T[33,17] T[1]", "m T[1025] T[33]=1", "m T[33] T[13]=0 right=true", "m T[] T[3]=0", "m T[3,13] T[0]",
              "m T[129] T[5]=1 out_int32=true"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::searchsorted.Tensor",
     CF_TEXTS("s T[1] T[33,17]", "m T[33]=1 T[1025]", "m T[3,13]=0 T[3,17] right=true", "m T[5]=1 T[13] side='right'",
              "m T[3]=2 T[]", "m T[4] T[129] sorter=i64[4]=2"),
     CF_REALS, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::_unique2",
     CF_TEXTS("s T[33,17] true true true", "m T[1025]", "m T[3,13,17] false true", "m T[129] true false true",
              "m T[] true true", "m T[0] true true true"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_ANY_ZERO, CF_G_NONE},
};

CF_TOPIC(sorting, "sorting", cf_sorting_ops);
