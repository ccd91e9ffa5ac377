#include "conformance/cases/families.h"

static const cf_op cf_scan_ops[] = {
  {"aten::cumsum",
   CF_TEXTS("s T[33,17] 1", "s T[33,17] 0", "m T[1025] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0] 0", "m T[13,129] -1",
            "f T[2,3,1,3,2,3] 3", "f T[129,1025] 1"),
   CF_ANY_DTYPE, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(1)},
};

CF_FAMILY(scan, "scan");
