// The dtypes that PyTorch and Graft both have, the one that is looked for most first.
#pragma once

#include <c10/core/ScalarType.h>
#include <graft/abi/dtype.h>

namespace torch_graft {

struct DtypePair {
  c10::ScalarType torch;
  graft_dtype graft;
};

inline constexpr DtypePair kDtypes[] = {
    {c10::ScalarType::Float, GRAFT_F32},
    {c10::ScalarType::Bool, GRAFT_BOOL},
    {c10::ScalarType::Byte, GRAFT_U8},
    {c10::ScalarType::Char, GRAFT_I8},
    {c10::ScalarType::Short, GRAFT_I16},
    {c10::ScalarType::Int, GRAFT_I32},
    {c10::ScalarType::Long, GRAFT_I64},
    {c10::ScalarType::UInt16, GRAFT_U16},
    {c10::ScalarType::UInt32, GRAFT_U32},
    {c10::ScalarType::UInt64, GRAFT_U64},
    {c10::ScalarType::Half, GRAFT_F16},
    {c10::ScalarType::BFloat16, GRAFT_BF16},
    {c10::ScalarType::Double, GRAFT_F64},
    {c10::ScalarType::ComplexFloat, GRAFT_C64},
    {c10::ScalarType::ComplexDouble, GRAFT_C128},
    {c10::ScalarType::Float8_e4m3fn, GRAFT_F8_E4M3FN},
    {c10::ScalarType::Float8_e5m2, GRAFT_F8_E5M2},
};

}  // namespace torch_graft
