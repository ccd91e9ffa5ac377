#include "conformance/cases/families.h"

static const cf_op cf_embedding_ops[] = {
    {"aten::embedding",
     CF_TEXTS("s T[33,17] i64[5,3]<33", "m T[129,1] i64[]<129", "m T[3,17] i64[0]<3", "m T[33,17] i32[5,3]<33",
              "f T[1025,33] i64[17,13]<1025"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(0)},
    /* padding_idx: the row that it names gets no gradient, so that the VJP is not the adjoint of the forward. */
    {"aten::embedding", CF_TEXTS("m T[33,17] i64[13]<33 3", "m T[3,5] i64[13]<3 0"), CF_FLOATS, CF_R_EXACT, CF_VALUES,
     CF_NO_ADJOINT, CF_G_LINEAR(0)},
    {"aten::embedding_dense_backward",
     CF_TEXTS("s T[5,3,17] i64[5,3]<33 33 -1 false", "m T[129,3] i64[129]<5 5 2 false",
              "m T[13,17] i64[13]<4 33 -1 false"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
};

CF_FAMILY(embedding, "embedding");
