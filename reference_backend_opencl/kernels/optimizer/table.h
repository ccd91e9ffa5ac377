/* The _foreach ops: one row an op.
 *
 *   X(op, ID, dtypes, inputs, number, expression)
 *
 * inputs: where its lists and single tensors lie in the args struct, in order; they are a, b, c in the expression.
 * number: where x comes from: a number (AT_SCALAR), one for each tensor (AT_SCALARS), or nowhere (NO_NUMBER). */
#ifndef OCL_OPTIMIZER_TABLE_H
#define OCL_OPTIMIZER_TABLE_H

#define OCL_FOREACH(X)                                                                                                \
  X(foreach_abs, FOREACH_ABS, NUMBERS_SET, L1(self), NO_NUMBER, "ABS(a)")                                             \
  X(foreach_add_List, FOREACH_ADD_LIST, NUMBERS_SET, L2(self, other), AT_SCALAR(alpha), "ADD(a, MUL(x, b))")          \
  X(foreach_add_Scalar, FOREACH_ADD_SCALAR, NUMBERS_SET, L1(self), AT_SCALAR(scalar), "ADD(a, x)")                    \
  X(foreach_add_ScalarList, FOREACH_ADD_SCALARLIST, NUMBERS_SET, L1(self), AT_SCALARS(scalars), "ADD(a, x)")          \
  X(foreach_sub_List, FOREACH_SUB_LIST, NUMBERS_SET, L2(self, other), AT_SCALAR(alpha), "SUB(a, MUL(x, b))")          \
  X(foreach_mul_List, FOREACH_MUL_LIST, NUMBERS_SET, L2(self, other), NO_NUMBER, "MUL(a, b)")                         \
  X(foreach_mul_Scalar, FOREACH_MUL_SCALAR, NUMBERS_SET, L1(self), AT_SCALAR(scalar), "MUL(a, x)")                    \
  X(foreach_mul_ScalarList, FOREACH_MUL_SCALARLIST, NUMBERS_SET, L1(self), AT_SCALARS(scalars), "MUL(a, x)")          \
  X(foreach_mul_Tensor, FOREACH_MUL_TENSOR, NUMBERS_SET, S2(self, other), NO_NUMBER, "MUL(a, b)")                     \
  X(foreach_div_List, FOREACH_DIV_LIST, OCL_FLOATS, L2(self, other), NO_NUMBER, "a / b")                              \
  X(foreach_div_Scalar, FOREACH_DIV_SCALAR, OCL_FLOATS, L1(self), AT_SCALAR(scalar), "a / x")                         \
  X(foreach_div_ScalarList, FOREACH_DIV_SCALARLIST, OCL_FLOATS, L1(self), AT_SCALARS(scalars), "a / x")               \
  X(foreach_div_Tensor, FOREACH_DIV_TENSOR, OCL_FLOATS, S2(self, other), NO_NUMBER, "a / b")                          \
  X(foreach_addcdiv_Scalar, FOREACH_ADDCDIV_SCALAR, OCL_FLOATS, L3(self, tensor1, tensor2), AT_SCALAR(value),         \
    "a + x * (b / c)")                                                                                                \
  X(foreach_addcdiv_ScalarList, FOREACH_ADDCDIV_SCALARLIST, OCL_FLOATS, L3(self, tensor1, tensor2),                   \
    AT_SCALARS(scalars), "a + x * (b / c)")                                                                           \
  X(foreach_addcmul_Scalar, FOREACH_ADDCMUL_SCALAR, NUMBERS_SET, L3(self, tensor1, tensor2), AT_SCALAR(value),        \
    "ADD(a, MUL(x, MUL(b, c)))")                                                                                      \
  X(foreach_lerp_List, FOREACH_LERP_LIST, OCL_FLOATS, L3(self, tensors1, weights), NO_NUMBER, "LERP(a, b, c)")        \
  X(foreach_lerp_Scalar, FOREACH_LERP_SCALAR, OCL_FLOATS, L2(self, tensors1), AT_SCALAR(weight), "LERP(a, b, x)")     \
  X(foreach_maximum_List, FOREACH_MAXIMUM_LIST, NUMBERS_SET, L2(self, other), NO_NUMBER, "MAXIMUM(a, b)")             \
  X(foreach_neg, FOREACH_NEG, NUMBERS_SET, L1(self), NO_NUMBER, "NEG(a)")                                             \
  X(foreach_reciprocal, FOREACH_RECIPROCAL, OCL_FLOATS, L1(self), NO_NUMBER, "(VT)1 / a")                             \
  X(foreach_rsqrt, FOREACH_RSQRT, OCL_FLOATS, L1(self), NO_NUMBER, "(VT)1 / sqrt(a)")                                 \
  X(foreach_sign, FOREACH_SIGN, NUMBERS_SET, L1(self), NO_NUMBER, "SIGN(a)")                                          \
  X(foreach_sqrt, FOREACH_SQRT, OCL_FLOATS, L1(self), NO_NUMBER, "sqrt(a)")                                           \
  X(foreach_pow_ScalarAndTensor, FOREACH_POW_SCALARANDTENSOR, OCL_FLOATS, L1(exponent), AT_SCALAR(self), "pow(x, a)") \
  X(foreach_copy, FOREACH_COPY, NUMBERS_SET, L1(src), NO_NUMBER, "a")                                                 \
  X(foreach_zero, FOREACH_ZERO, NUMBERS_SET, L1(self), NO_NUMBER, "(VT)0")

#endif
