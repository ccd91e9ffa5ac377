#include <math.h>

#include "conformance/cases/rows.h"

/* A product of n factors has n roundings at most, in the order of the line or another. */
static void cf_l_cumprod(const cf_check *k, uint32_t out, long double *limits) {
  const cf_array *o = &k->outs[out];
  cf_axis a = cf_axis_of(&k->in[0], cf_arg_int(k->call, "dim", 0));
  for (int64_t i = 0; i < o->numel; i++) limits[i] = cf_limit_of(k, out, i, (long double)a.length * fabsl(o->v[i].re));
}

#define CF_EXTREMUM(name, level)                                                                              \
  {                                                                                                           \
    name,                                                                                                     \
        CF_TEXTS(level " T[33,17] 1", "m T[33,17] 0", "m T[1025] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0] 0", \
                 "f T[2,3,1,3,2,3] 3", "f T[129,1025] 1"),                                                    \
        CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, {                            \
      .kind = CF_GRAD_SELECT, .steps = 1, .inner = 64                                                         \
    }                                                                                                         \
  } /* an element may gather a line of 1025: 2 sqrt n */

static const cf_op cf_scan_ops[] = {
    {"aten::cumsum",
     CF_TEXTS("s T[33,17] 1", "s T[33,17] 0", "m T[1025] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0] 0", "m T[13,129] -1",
              "f T[2,3,1,3,2,3] 3", "f T[129,1025] 1"),
     CF_ANY_DTYPE, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(1)},
    {"aten::cumprod",
     CF_TEXTS("s T[33,17] 1", "m T[17,13] 0", "m T[33] 0", "m T[3,13,17] 1", "m T[] 0", "m T[0] 0",
              "f T[2,3,1,3,2,3] 3"),
     CF_REALS,
     CF_R_CUSTOM(cf_l_cumprod),
     CF_NONZERO,
     CF_ORDERED,
     {.kind = CF_GRAD_ABS, .steps = 6, .inner = 80}},
    CF_EXTREMUM("aten::cummax", "s"),
    CF_EXTREMUM("aten::cummin", "m"),
    {"aten::_cummax_helper",
     CF_TEXTS("m T[33,17] T[33,17] i64[33,17] 1", "m T[33,17] T[33,17] i64[33,17] 0", "m T[129] T[129] i64[129] 0"),
     CF_ANY_DTYPE, CF_R_EXACT, CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ANY_ZERO, CF_G_NONE},
};

CF_TOPIC(scan, "scan", cf_scan_ops);
