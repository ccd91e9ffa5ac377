/* What one op's expression asks about its own arguments, and how its operands are taken and its result is given: behind
 * functions.cl, once in an eager kernel, once for each op in a fused one. The head defines
 *   D_OUT, D_0 ...   dtypes                MASK    which operand is a mask: 0 or 1
 *   HAS_X, HAS_B ... arguments there are   MODE    of ops that have one
 *   BOOL_RESULT      comparisons */
#ifndef CASES
#if defined(HAS_X) && defined(HAS_Y)
#define CLAMP_NUMBERS(a) MINIMUM(MAXIMUM(a, x), y)
#elif defined(HAS_X)
#define CLAMP_NUMBERS(a) MAXIMUM(a, x)
#elif defined(HAS_Y)
#define CLAMP_NUMBERS(a) MINIMUM(a, y)
#endif
#if defined(HAS_B) && defined(HAS_C)
#define CLAMP_TENSORS(a) MINIMUM(MAXIMUM(a, b), c)
#elif defined(HAS_B)
#define CLAMP_TENSORS(a) MAXIMUM(a, b)
#else
#define CLAMP_TENSORS(a) MINIMUM(a, c)
#endif
#endif

/* ---- Operands ---- */

/* A mask, such as the condition of where, can be the first or the second. */
#define TAKE_MASK(p) (CONVERT(MT, VLOAD(p)) != (VM)0)
#if defined(MASK) && MASK == 0
#define TYPE_0 VM
#define TAKE_0(space, p) TAKE_MASK(p)
#else
#define TYPE_0 VT
#define TAKE_0(space, p) LOAD(D_0, space, p)
#endif
#if defined(MASK) && MASK == 1
#define TYPE_1 VM
#define TAKE_1(space, p) TAKE_MASK(p)
#else
#define TYPE_1 VT
#define TAKE_1(space, p) LOAD(D_1, space, p)
#endif
#define TYPE_2 VT
#define TAKE_2(space, p) LOAD(D_2, space, p)

/* A comparison is -1 or 0 in a vector, 1 or 0 in a scalar. */
#ifdef BOOL_RESULT
#define RESULT VM
#define STORE_RESULT(space, p, v) VSTORE(CONVERT(uchar, v) & (uchar)1, p)
#else
#define RESULT VT
#define STORE_RESULT(space, p, v) STORE(D_OUT, space, p, v)
#endif
