#include "conformance/cases/rows.h"

static const cf_op cf_indexing_ops[] = {
    {"aten::index.Tensor",
     CF_TEXTS("s T[33,17] {i64[5]<33}", "s T[33,17] {_;i64[5]<17}", "m T[13,17,3] {i64[4,1]<13;i64[5]<17}",
              "m T[13,17,3] {i64[5]<13;_;i64[5]<3}", "m T[33] {i64[]<33}", "m T[33,17] {i64[0]<33}",
              "m T[129,3] {i64[1025]<129}", "f T[3,5,7,2] {_;i64[4]<5;i64[3,1]<7}"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::index_select",
     CF_TEXTS("s T[33,17] 1 i64[5]<17", "m T[33,17] 0 i64[129]<33", "m T[33,17] 0 i32[7]<33",
              "m T[3,13,17] 1 i64[3]<13", "m T[33,17] 1 i64[0]<17", "m T[17] 0 i64[1]<17"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::gather",
     CF_TEXTS("s T[33,17] 1 i64[33,5]<17", "m T[33,17] 0 i64[5,17]<33", "m T[33,17] 1 i64[3,129]<17", "m T[] 0 i64[]<1",
              "m T[33,17] 1 i64[33,0]<17", "m T[3,13,17] 1 i64[3,5,17]<13"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::take",
     CF_TEXTS("s T[33,17] i64[5,7]<561", "m T[1025] i64[129]<1025", "m T[33,17] i64[]=-3", "m T[33] i64[0]<33",
              "m T[] i64[3]<1", "m T[3,13,17] i64[17]=-663"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::nonzero",
     CF_TEXTS("s T[33,17]", "m T[5,3]=0", "m T[1025]", "m T[]", "m T[0]", "m T[3,13,17]", "f T[2,3,1,3,2,3]"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::nonzero_static",
     CF_TEXTS("s T[33,17] size=600", "m T[33,17] size=40", "m T[5,3]=0 size=4 fill_value=7", "m T[1025] size=1025",
              "m T[] size=2", "m T[0,3] size=3 fill_value=-9", "m T[3,13,17] size=0"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL, CF_G_NONE},
    {"aten::masked_select",
     CF_TEXTS("s T[33,17] bool[33,17]", "m T[33,17] bool[17]", "m T[1025] bool[1025]", "m T[33] bool[33]=0",
              "m T[] bool[]", "m T[0] bool[0]", "m T[3,13,17] bool[13,1]", "f T[129,1025] bool[129,1025]"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(1)},
};

CF_TOPIC(indexing, "indexing", cf_indexing_ops);
