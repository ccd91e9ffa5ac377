#include "conformance/cases/rows.h"

/* input weight bias stride padding dilation transposed output_padding groups */
static const cf_op cf_convolution_ops[] = {
    {"aten::convolution",
     CF_TEXTS("s T[2,3,13,17] T[5,3,3,3] T[5] [1,1] [0,0] [1,1] false [0,0] 1",
              "s T[2,4,17] T[6,2,3] T[6] [2] [1] [1] false [0] 2",
              "s T[1,2,5,7,6] T[3,2,2,3,2] _ [1,2,1] [1,0,1] [1,1,1] false [0,0,0] 1",
              "s T[2,4,7,9] T[4,3,3,3] T[3] [2,2] [1,1] [1,1] true [1,1] 1",
              "m T[2,3,13,17] T[5,3,3,3] _ [1,1] [2,2] [2,2] false [0,0] 1",
              "m T[2,4,9,11] T[4,1,3,3] T[4] [1,1] [1,1] [1,1] false [0,0] 4",
              "m T[3,6,5,7] T[13,6,1,1] T[13] [1,1] [0,0] [1,1] false [0,0] 1",
              "m T[2,4,9] T[4,2,3] T[4] [2] [1] [1] true [1] 2",
              "m T[1,2,3,4,5] T[2,3,2,2,2] T[3] [2,1,1] [0,0,0] [1,1,1] true [0,0,0] 1",
              "m T[3,5,6,5] T[4,5,3,3] T[4] [1,1] [1,0] [1,1] false [0,0] 1",
              "m T[2,8,7,4] T[8,3,3,2] T[6] [1,1] [1,1] [2,1] true [0,0] 2",
              "m T[2,4,3,5,3] T[3,4,2,3,3] _ [1,1,1] [0,1,2] [1,1,1] false [0,0,0] 1",
              "m T[1,1,33] T[1,1,33] _ [1] [0] [1] false [0] 1",
              "f T[3,16,33,17] T[33,16,3,3] T[33] [1,1] [1,1] [1,1] false [0,0] 1",
              "f T[2,6,13,17] T[9,2,5,3] T[9] [2,1] [2,1] [1,2] false [0,0] 3"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
    {"aten::convolution_backward",
     CF_TEXTS("s T[2,5,11,15] T[2,3,13,17] T[5,3,3,3] [5] [1,1] [0,0] [1,1] false [0,0] 1 [1,1,1]",
              "m T[2,6,9] T[2,4,17] T[6,2,3] [6] [2] [1] [1] false [0] 2 [1,1,1]",
              "m T[2,3,14,18] T[2,4,7,9] T[4,3,3,3] [3] [2,2] [1,1] [1,1] true [1,1] 1 [1,1,1]",
              "m T[2,5,11,15] T[2,3,13,17] T[5,3,3,3] [5] [1,1] [0,0] [1,1] false [0,0] 1 [0,1,0]",
              "m T[9,4,6,3] T[9,5,6,5] T[4,5,3,3] [4] [1,1] [1,0] [1,1] false [0,0] 1 [1,1,1]",
              "m T[3,6,9,3] T[3,8,7,4] T[8,3,3,2] [6] [1,1] [1,1] [2,1] true [0,0] 2 [1,1,1]"),
     CF_FLOATS, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(4)},
    /* so many images that their sums are made in parts */
    {"aten::convolution_backward",
     CF_TEXTS("m T[600,1,2,2] T[600,1,3,3] T[1,1,2,2] [1] [1,1] [0,0] [1,1] false [0,0] 1 [1,1,1]"), CF_BIT(F32),
     CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_NONE},
    {"aten::im2col",
     CF_TEXTS("s T[2,3,13,17] [3,2] [1,1] [1,0] [2,1]", "m T[3,5,7] [2,3] [2,1] [0,2] [1,1]",
              "m T[1,2,5,7] [1,1] [1,1] [0,0] [3,2]", "f T[3,5,33,17] [3,3] [1,2] [1,1] [1,2]"),
     CF_FLOATS | CF_BOOLS | CF_BIT(C64), CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_LINEAR(0)},
    {"aten::col2im",
     CF_TEXTS("s T[2,18,112] [13,17] [3,2] [1,1] [1,0] [2,1]", "m T[18,27] [5,7] [2,3] [2,1] [0,2] [1,1]",
              "m T[1,2,8] [5,7] [1,1] [1,1] [0,0] [3,2]"),
     CF_FLOATS | CF_BIT(C64), CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_ORDERED, CF_G_LINEAR(0)},
};

CF_TOPIC(convolution, "convolution", cf_convolution_ops);
