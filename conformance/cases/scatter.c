#include "conformance/cases/families.h"

static const cf_op cf_scatter_ops[] = {
    {"aten::scatter_add",
     CF_TEXTS("s T[33,17] 1 i64[33,5]<17 T[33,5]", "m T[33,17] 0 i64[129,17]<33 T[129,17]",
              "m T[13] 0 i64[1025]<13 T[1025]", "m T[3,13,17] 1 i64[3,5,17]<13 T[3,5,17]",
              "m T[33,17] 1 i64[33,0]<17 T[33,0]"),
     CF_REALS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::index_put",
     CF_TEXTS("s T[33,17] {i64[5]<33!} T[5,17]", "m T[13,17,3] {_;i64[5]<17!} T[13,5,3]", "m T[33] {i64[3]<33!} T[]",
              "m T[33,17] {i64[0]<33} T[0,17]"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::index_put",
     CF_TEXTS("s T[33,17] {i64[5]<33} T[5,17] true", "m T[13,17] {i64[129]<13;i64[129]<17} T[129] true",
              "m T[5] {i64[1025]<5} T[1025] true"),
     CF_FLOATS | CF_BIT(I64), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::scatter.src",
     CF_TEXTS("s T[33,17] 1 i64[33,5]<17! T[33,5]", "m T[33,17] 0 i64[5,17]<33! T[5,17]", "m T[13] 0 i64[3]<13! T[3]",
              "m T[33,17] 1 i64[33,0]<17 T[33,0]"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    {"aten::masked_scatter",
     CF_TEXTS("s T[33,17] bool[33,17] T[561]", "m T[33,17] bool[17] T[33,17]", "m T[1025] bool[1025]=1 T[1025]",
              "m T[3,13,17] bool[13,1] T[900]", "m T[33] bool[33]=0 T[0]", "m T[] bool[] T[1]"),
     CF_ANY_DTYPE | CF_COMPLEX, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
};

CF_FAMILY(scatter, "scatter");
