#include "conformance/cases/rows.h"

#define CF_CSR_DTYPES (CF_FLOATS | CF_BIT(I64) | CF_BIT(I32) | CF_COMPLEX)

/* Where rows begin: `<N~rising` has rows without elements and ever longer ones behind them, `<N!` leaves out the first
 * element and the last ones, `=0` all of them. Columns come in any order and more than once. Results without elements
 * are not here: no kernel is asked for them. */
static const cf_op cf_sparse_ops[] = {
    {"graft::csr_mm",
     CF_TEXTS("s i64[14]<66~rising i64[65]<17 T[65] T[17,9]", "m i64[5]<1026~rising i64[1025]<129 T[1025] T[129,3]",
              "m i32[14]<34~rising i32[33]<7 T[33] T[7,1]", "m i64[14]<34! i64[33]<5 T[33] T[5,17]",
              "m i64[5]<66~rising i64[65]<17 T[65] T[17,81]", "m i64[4]=0 i64[0]<5 T[0] T[5,3]",
              "m i64[3]=0 i64[13]<5 T[13] T[5,3]", "m i64[4]=0 i64[0]<5 T[0] T[0,3]",
              "f i64[130]<1026~rising i64[1025]<33 T[1025] T[33,129]"),
     CF_CSR_DTYPES, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(0)},
    {"graft::csr_sampled_mm",
     CF_TEXTS("s i64[14]<66~rising i64[65]<17 T[13,9] T[17,9]", "m i64[5]<1026~rising i64[1025]<129 T[4,3] T[129,3]",
              "m i32[14]<34~rising i32[33]<7 T[13,1] T[7,1]", "m i64[14]<34! i64[33]<5 T[13,129] T[5,129]",
              "m i64[3]=0 i64[13]<5 T[2,3] T[5,3]", "m i64[5]<34~rising i64[33]<7 T[4,0] T[7,0]"),
     CF_CSR_DTYPES, CF_R_SUM(CF_TERMS_ONES), CF_VALUES, CF_SPECIAL | CF_WIDE | CF_ORDERED, CF_G_LINEAR(0)},
};

CF_TOPIC(sparse, "sparse", cf_sparse_ops);
