#include "conformance/cases/rows.h"

#define CF_MATMUL_DTYPES (CF_FLOATS | CF_BIT(I64) | CF_BIT(I32) | CF_COMPLEX)

static const cf_op cf_matmul_ops[] = {
    {"aten::mm",
     CF_TEXTS("s T[33,17] T[17,129]", "m T[1,1] T[1,1]", "m T[3,13] T[13,1]", "m T[129,33] T[33,65]",
              "m T[33,0] T[0,17]", "m T[0,3] T[3,5]", "m T[13,1025] T[1025,3]", "m T[1,17] T[17,33]",
              "f T[129,1025] T[1025,33]", "f T[64,64] T[64,64]"),
     CF_MATMUL_DTYPES, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::bmm",
     CF_TEXTS("s T[3,13,17] T[3,17,33]", "m T[1,1,1] T[1,1,1]", "m T[5,3,129] T[5,129,3]", "m T[3,5,0] T[3,0,7]",
              "m T[0,3,5] T[0,5,7]", "m T[13,33,17] T[13,17,1]", "f T[3,129,33] T[3,33,65]"),
     CF_MATMUL_DTYPES, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::addmm",
     CF_TEXTS("s T[129] T[33,17] T[17,129]", "m T[33,13] T[33,17] T[17,13] beta=0.5 alpha=2",
              "m T[33,1] T[33,3] T[3,5]", "m T[5] T[3,0] T[0,5]", "m T[13] T[3,129] T[129,13] beta=0",
              "f T[65] T[129,33] T[33,65]"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(2)},
    {"aten::addmm", CF_TEXTS("m T[33,13] T[33,17] T[17,13] beta=0.5 alpha=2", "m T[13] T[3,129] T[129,13] beta=0"),
     CF_COMPLEX, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
    /* relu moves no result further off. gelu's slope is 1.13 at most and gelu(S) of the absolute terms S / 2 at least;
     * its own error is 10 u of what it is given. */
    {"aten::_addmm_activation",
     CF_TEXTS("s T[129] T[33,17] T[17,129]", "m T[33,13] T[33,17] T[17,13] beta=0.5 alpha=2", "m T[5] T[3,0] T[0,5]",
              "m T[13] T[3,129] T[129,13] beta=0", "m T[7] T[0,3] T[3,7]"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED | CF_ANY_ZERO, CF_G_NONE},
    {"aten::_addmm_activation",
     CF_TEXTS("m T[129] T[33,17] T[17,129] use_gelu=true",
              "m T[33,13] T[33,17] T[17,13] beta=0.5 alpha=2 use_gelu=true"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_ONES, .ulps = 6},
     CF_VALUES,
     CF_ORDERED | CF_ANY_ZERO,
     CF_G_NONE},
    {"aten::baddbmm",
     CF_TEXTS("s T[3,13,33] T[3,13,17] T[3,17,33]", "m T[33] T[3,13,17] T[3,17,33] beta=0.5 alpha=2",
              "m T[3,1,7] T[3,5,0] T[3,0,7]", "m T[5,3,3] T[5,3,129] T[5,129,3] beta=0"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(2)},
    {"aten::baddbmm",
     CF_TEXTS("m T[33] T[3,13,17] T[3,17,33] beta=0.5 alpha=2", "m T[5,3,3] T[5,3,129] T[5,129,3] beta=0"), CF_COMPLEX,
     CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
};

CF_TOPIC(matmul, "matmul", cf_matmul_ops);
