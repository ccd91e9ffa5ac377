/* Sums of products go step by step. Where PAIRS says so, of bf16 on a processor with AVX512-BF16, a step has two: vdpbf16ps
 * adds both to each lane, rounding twice, as two fma do; denormals count as zeros. The two numbers of a lane lie side by side
 * in its 32 bits, the first one below, as a CT with which nothing else is computed.
 *
 * A step of VEC numbers that lie side by side, and one of a single number; its second numbers are `apart` elements on, or
 * there are none. */
#ifdef PAIRS
#define STEP_K 2

static INLINED VT add_pairs(VT a, VT b, VT sum) {
  __asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
  return sum;
}

static INLINED VT join_pairs(VEC_OF(ushort) first, VEC_OF(ushort) second) {
  return AS(float, CONVERT(uint, first) | CONVERT(uint, second) << 16);
}

static INLINED float join_pair(ushort first, ushort second) {
  return as_float((uint)first | (uint)second << 16);
}

/* VEC steps of numbers that follow each other. */
static INLINED VT load_pairs(__global const ushort *from) {
  typedef VT loose __attribute__((aligned(2)));
  return *(__global const loose *)from;
}

#define ADD_PRODUCTS(a, b, sum) add_pairs(a, b, sum)
#define LOAD_STEP(p, apart, has) join_pairs(VLOAD(p), (has) ? VLOAD((p) + (apart)) : (VEC_OF(ushort))0)
#define ONE_STEP(p, apart, has) join_pair(*(p), (has) ? (p)[apart] : 0)
#else
#define STEP_K 1
#define ADD_PRODUCTS(a, b, sum) MULTIPLY_ADD(a, b, sum)
#define LOAD_STEP(p, apart, has) LOAD(D, __global, p)
#endif
