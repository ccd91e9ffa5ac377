/* The dtypes of the ABI, each at its number, and behind them those of the conformance oracle. */
#ifndef GRAFT_TESTS_DTYPES_H
#define GRAFT_TESTS_DTYPES_H

#include "tensor/dtype.h"

static const graft_dtype dtypes[] = {GRAFT_BOOL,      GRAFT_U8,      GRAFT_I8,   GRAFT_I16,         GRAFT_I32,
                                     GRAFT_I64,       GRAFT_U16,     GRAFT_U32,  GRAFT_U64,         GRAFT_F16,
                                     GRAFT_BF16,      GRAFT_F32,     GRAFT_F64,  GRAFT_C64,         GRAFT_C128,
                                     GRAFT_F8_E4M3FN, GRAFT_F8_E5M2, GRAFT_WIDE, GRAFT_WIDE_COMPLEX};
enum { ALL_DTYPES = sizeof dtypes / sizeof *dtypes, ABI_DTYPES = ALL_DTYPES - 2 };

#endif
