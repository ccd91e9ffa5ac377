#include "conformance/cases/rows.h"

static const cf_op cf_pooling_ops[] = {
    {"aten::max_pool2d_with_indices",
     CF_TEXTS("s T[2,3,13,17] [3,3] [2,2] [1,1]", "m T[3,13,17] [2,2]", "m T[2,3,13,17] [3,2] [2,2] [1,1] [1,1] true",
              "m T[1,2,13,13] [3,3] [1,1] [1,1] [2,2]", "m T[2,1,3,3] [3,3]", "f T[3,5,33,17] [3,3] [2,1] [1,0]"),
     CF_FLOATS, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_SELECT(2)},
    {"aten::max_pool2d_with_indices_backward",
     CF_TEXTS("s T[2,3,7,9] T[2,3,13,17] [3,3] [2,2] [1,1] [1,1] false i64[2,3,7,9]<221",
              "m T[3,6,8] T[3,13,17] [2,2] [2,2] [0,0] [1,1] false i64[3,6,8]<221"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::avg_pool2d",
     CF_TEXTS("s T[2,3,13,17] [3,3] [2,2] [1,1]", "m T[3,13,17] [2,2]", "m T[2,3,13,17] [3,2] [2,2] [1,1] true false",
              "m T[2,3,13,17] [3,3] [2,2] [1,1] false true 7", "m T[2,1,3,3] [3,3]",
              "f T[3,5,33,17] [3,3] [2,1] [1,0]"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_WINDOW), CF_VALUES, CF_SPECIAL | CF_WIDE, CF_G_LINEAR(3)},
    {"aten::avg_pool2d_backward",
     CF_TEXTS("s T[2,3,7,9] T[2,3,13,17] [3,3] [2,2] [1,1] false true _",
              "m T[3,6,8] T[3,13,17] [2,2] [2,2] [0,0] false true _",
              "m T[2,3,7,9] T[2,3,13,17] [3,3] [2,2] [1,1] false false _"),
     CF_FLOATS,
     {.klass = CF_SUM, .terms = CF_TERMS_WINDOW, .ulps = 2},
     CF_VALUES,
     CF_ORDERED,
     CF_G_LINEAR(3)},
};

CF_TOPIC(pooling, "pooling", cf_pooling_ops);
