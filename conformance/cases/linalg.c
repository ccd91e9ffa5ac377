#include "conformance/cases/rows.h"

static const cf_op cf_linalg_ops[] = {
    {"aten::trace", CF_TEXTS("s T[33,17]", "m T[13,129]", "m T[129,129]", "m T[1,3]", "m T[0,3]"),
     CF_REALS | CF_COMPLEX, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(0)},
};

CF_TOPIC(linalg, "linalg", cf_linalg_ops);
