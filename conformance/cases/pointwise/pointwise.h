/* What the files of the pointwise family share: sets of flags and dtypes, argument texts, and rows of one form. */
#ifndef GRAFT_CF_POINTWISE_H
#define GRAFT_CF_POINTWISE_H

#include "conformance/cases/rows.h"

#define CF_SPECIAL_WIDE (CF_SPECIAL | CF_WIDE | CF_INPLACE)
#define CF_CLAMPS       (CF_SPECIAL_WIDE | CF_ANY_ZERO)
#define CF_TO_FLOAT     (CF_FLOATS | CF_BIT(I64) | CF_BIT(I32) | CF_BIT(U8))

/* Texts of ops of one tensor, and of two of one shape, with the same arguments behind. The second is the one that smoke
 * runs: one program an op. */
#define CF_ONE(rest)                                                                             \
  CF_TEXTS("m T[33,17]" rest, "s T[129]" rest, "m T[]" rest, "m T[0]" rest, "m T[3,13,17]" rest, \
           "f T[2,1,3,2,2,3]" rest, "f T[1025]" rest)
#define CF_TWO(rest)                                                                                 \
  CF_TEXTS("m T[33,17] T[33,17]" rest, "s T[129] T[129]" rest, "m T[] T[]" rest, "m T[0] T[0]" rest, \
           "m T[3,13,17] T[3,13,17]" rest, "f T[1025] T[1025]" rest)
/* Of an op whose twin smoke runs. */
#define CF_TWIN CF_TEXTS("m T[33,17]", "m T[129]", "m T[]", "m T[0]", "f T[2,1,3,2,2,3]")
/* Of complex numbers, where real ones have a row of their own. */
#define CF_ONE_COMPLEX(rest) \
  CF_TEXTS("m T[33,17]" rest, "m T[]" rest, "m T[0]" rest, "f T[3,13,17]" rest, "f T[1025]" rest)
#define CF_TWIN_PAIR \
  CF_TEXTS("m T[33,17] T[33,17]", "m T[129] T[129]", "m T[] T[]", "m T[0] T[0]", "f T[3,13,17] T[3,13,17]")
#define CF_MEETING                                                                                              \
  CF_TEXTS("m T[33,17] T[17]", "s T[129] T[129]", "m T[13,1] T[17]", "m T[33] 2", "m T[] T[33]", "m T[0] T[0]", \
           "m T[3,1,17] T[13,1]", "f T[2,3,1,17] T[3,13,1]")

/* Rows over the texts that all families share: of one tensor, of two, of a tensor and a number. */
#define CF_U(n, dtypes, rule, domain, flags, ...) \
  { "aten::" n, cf_unary, dtypes, rule, domain, flags, __VA_ARGS__ }
#define CF_B(n, dtypes, rule, domain, flags, ...) \
  { "aten::" n, cf_binary, dtypes, rule, domain, flags, __VA_ARGS__ }
#define CF_N(n, dtypes, rule, flags, ...) \
  { "aten::" n, cf_number, dtypes, rule, CF_VALUES, flags, __VA_ARGS__ }
#define CF_EXACTLY(n, texts, dtypes, domain, flags) \
  { "aten::" n, texts, dtypes, CF_R_EXACT, domain, flags, CF_G_NONE }

#endif
