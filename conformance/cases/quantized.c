#include "conformance/cases/rows.h"

static const cf_op cf_quantized_ops[] = {
    {"aten::_int_mm",
     CF_TEXTS("s T[33,17] T[17,129]", "m T[1,1] T[1,1]", "m T[3,13] T[13,1]", "m T[13,1025] T[1025,3]",
              "m T[5,0] T[0,7]", "m T[0,5] T[5,7]", "m u8[17,33] T[33,5]"),
     CF_BIT(I8), CF_R_EXACT, CF_VALUES, CF_WIDE, CF_G_NONE},
};

CF_TOPIC(quantized, "quantized", cf_quantized_ops);
