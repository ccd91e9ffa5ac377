/* EXP(a): e^a. That of f32 on processors is made here: a driver's may take twice as long (PoCL's does). It is right to 0.9
 * ulp, denormals included, and has the same bits for any number of lanes; the head may say how many (EXP_LANES), else they
 * are VEC. Behind common.cl.
 *
 * a is n ln(2) + r: the first product is taken off exactly, and e^r is a polynomial of least relative error up to
 * |r| = ln(2) / 2. */
#if defined(IS_CPU) && defined(CLASS_FLOAT) && !defined(IS_DOUBLE)
#define EXP(a) own_exp(a)

#ifndef EXP_LANES
#define EXP_LANES VEC
#endif
#if EXP_LANES == 1
#define LANES_OF(type) type
#else
#define LANES_OF(type) CAT(type, EXP_LANES)
#endif

/* p 2^n, rounded once, by an instruction of AVX-512. Far above, where r is anything, p is positive, as its degree is even, or
 * NaN where n is infinite, which gives infinity, too. */
#if defined(__AVX512VL__) && !defined(PORTABLE) && EXP_LANES == 16
#define TIMES_POWER(p, n) __builtin_ia32_scalefps512_mask(p, n, p, 0xffff, 4)
#elif defined(__AVX512VL__) && !defined(PORTABLE) && EXP_LANES == 8
#define TIMES_POWER(p, n) __builtin_ia32_scalefps256_mask(p, n, p, 0xff)
#elif defined(__AVX512VL__) && !defined(PORTABLE) && EXP_LANES == 4
#define TIMES_POWER(p, n) __builtin_ia32_scalefps128_mask(p, n, p, 0xf)
#endif

static LANES_OF(float) own_exp(LANES_OF(float) a) {
  typedef LANES_OF(float) reals;
  typedef LANES_OF(uint) bits;
  const reals shift = (reals)12582912.0f; /* 1.5 * 2^23: the sum's last bits are the nearest whole number */
  reals x = a < (reals)-104 ? (reals)-104 : a; /* NaN stays */
#ifndef TIMES_POWER
  x = x > (reals)104 ? (reals)104 : x;
#endif
  const reals shifted = fma(x, (reals)0x1.715476p0f, shift), n = shifted - shift;
  const reals r = fma(n, (reals)0x1.05c61p-29f, fma(n, (reals)-0x1.62e43p-1f, x));
  reals p = fma((reals)0x1.6a2434p-10f, r, (reals)0x1.1239e2p-7f);
  p = fma(p, r, (reals)0x1.5558f2p-5f);
  p = fma(p, r, (reals)0x1.555492p-3f);
  p = fma(p, r, (reals)0x1.fffffcp-2f);
  p = fma(p, r, (reals)1);
  p = fma(p, r, (reals)1);
#ifdef TIMES_POWER
  return TIMES_POWER(p, n);
#else
  /* In two factors, of which the first leaves p exact. Neither is a NaN: one in p stays as it is. */
  const bits whole = CAT(as_, LANES_OF(uint))(shifted), part = whole << 22 & (bits)0xff800000u, one = (bits)0x3f800000u;
  return p * CAT(as_, LANES_OF(float))(part + one) * CAT(as_, LANES_OF(float))((whole << 23) - part + one);
#endif
}
#else
#define EXP(a) exp(a)
#endif
