/* What expressions of the pointwise ops are made of, for a compute type; complex.cl has the functions of complex numbers.
 * A function begins a line with `static`, so that fused.c finds its name. */

#define MAXIMUM(a, b) nan_max(a, b)
#define MINIMUM(a, b) nan_min(a, b)

#if !defined(CLASS_COMPLEX)
static VT nan_max(VT a, VT b) { return ((a > b) | (a != a)) ? a : b; }
static VT nan_min(VT a, VT b) { return ((a < b) | (a != a)) ? a : b; }
#endif

#if defined(CLASS_FLOAT)
/* a / b for b from 1 on. NVIDIA has an instruction for 1 / b in f32, right to 1 ulp; a division takes some twenty. */
#if defined(QUICK_FUNCTIONS) && !defined(IS_DOUBLE)
#define OVER(a, b) ((a) * native_recip(b))
#else
#define OVER(a, b) ((a) / (b))
#endif

static VT sigmoid(VT a) {
  /* exp of a negative number only: the other overflows where the result is a denormal. */
  VT e = EXP(-fabs(a));
  /* A NaN stays as it is: of one that exp gives the driver chooses the sign, otherwise where it optimizes. */
  return a != a ? a : OVER(a < (VT)0 ? e : (VT)1, (VT)1 + e);
}

/* 1 where f32 has nothing nearer, 13 ln(2) being the first such place: the driver's may stay below it (PoCL's does), and
 * then slopes, 1 - tanh^2, never come to 0. */
static VT whole_tanh(VT a) {
#ifdef IS_DOUBLE
  return tanh(a);
#else
  return fabs(a) > K(9.0109133) ? copysign((VT)1, a) : tanh(a);
#endif
}

/* The driver's erf of f32 may go lane by lane (PoCL's does, and takes four times as long as reading and writing). This one
 * has no branch and is right to 1.1 ulp: polynomials through Chebyshev nodes of erf(a) / a - 1 in a a up to 1, and of
 * log2(erfc(a)) + a log2(e) beyond, where from 4 on the result is 1. */
#ifdef IS_DOUBLE
#define ERF(a) erf(a)
#else
/* 2 to the power of a, from -126 to 0, to 1 ulp; other arguments give anything, NaN gives NaN. */
static VT power_of_2(VT a) {
#ifdef QUICK_FUNCTIONS /* NVIDIA's is one instruction, right to 2 ulp */
  return native_exp2(a);
#else
  const VT shift = (VT)12582912.0f; /* 1.5 * 2^23: the sum's last bits are the nearest whole number */
  VT shifted = a + shift, f = a - (shifted - shift);
  VT p = fma((VT)1.546144748e-04f, f, (VT)1.339086737e-03f);
  p = fma(p, f, (VT)9.618056670e-03f);
  p = fma(p, f, (VT)5.550357104e-02f);
  p = fma(p, f, (VT)2.402265092e-01f);
  p = fma(p, f, (VT)6.931471880e-01f);
  p = fma(p, f, (VT)1);
  return p * AS(CT, (AS(UT, shifted) << 23) + 0x3f800000u);
#endif
}

static VT ERF(VT a) {
  VT size = fabs(a), t = size > (VT)4 ? (VT)4 : size, s = a * a; /* NaN stays */
  VT low = fma((VT)7.882497448e-05f, s, (VT)-8.018855006e-04f);
  low = fma(low, s, (VT)5.189312156e-03f);
  low = fma(low, s, (VT)-2.685432881e-02f);
  low = fma(low, s, (VT)1.128359735e-01f);
  low = fma(low, s, (VT)-3.761262596e-01f);
  low = fma(low, s, (VT)1.283791661e-01f);
  VT high = fma((VT)2.328598670e-06f, t, (VT)-6.577336557e-05f);
  high = fma(high, t, (VT)8.551856629e-04f);
  high = fma(high, t, (VT)-6.838695287e-03f);
  high = fma(high, t, (VT)3.803624738e-02f);
  high = fma(high, t, (VT)-1.586650668e-01f);
  high = fma(high, t, (VT)-9.116925010e-01f);
  high = fma(high, t, (VT)-1.877908231e-01f);
  high = fma(high, t, (VT)4.374438347e-04f);
  high = fma(t, (VT)-1.442695041f, high);
  return size < (VT)1 ? fma(low, a, a) : copysign((VT)1 - power_of_2(high), a);
}
#endif

/* How much of a normal distribution is below a; *bell is exp(-a a / 2), of which its density is a part. Beside that no
 * number is looked at twice, unlike in erf: what is beyond |a| is bell t q(t) with t = 1 / (1 + 0.35 |a|), where q goes
 * through Chebyshev nodes, around the middle of what t can be, to 3e-8. With roundings it is right to 1.5e-7, and below
 * 0 to 6e-7 of itself, where 1 + erf(a) would have lost its digits. */
static VT normal_below(VT a, VT *bell) {
#ifdef IS_DOUBLE
  *bell = exp((VT)(-0.5) * a * a);
  return (VT)0.5 * ((VT)1 + erf(a * (VT)0.70710678118654752440));
#else
  VT exponent = (VT)-0.721347520f * a * a;
  *bell = exponent < (VT)-126 ? (VT)0 : power_of_2(exponent); /* NaN stays */
  VT t = OVER((VT)1, fma((VT)0.35f, fabs(a), (VT)1)), u = fma((VT)2.42643930f, t, (VT)-1.42643930f);
  VT q = fma((VT)-2.42352425e-05f, u, (VT)1.39180702e-05f);
  q = fma(q, u, (VT)2.68039264e-04f);
  q = fma(q, u, (VT)-3.50943912e-04f);
  q = fma(q, u, (VT)-2.90679280e-03f);
  q = fma(q, u, (VT)3.46163288e-03f);
  q = fma(q, u, (VT)5.12691699e-02f);
  q = fma(q, u, (VT)1.62638620e-01f);
  q = fma(q, u, (VT)2.85630584e-01f);
  VT beyond = *bell * t * q;
  return a < (VT)0 ? beyond : (VT)1 - beyond;
#endif
}

static VT gelu_erf(VT a) {
  VT bell;
  return a * normal_below(a, &bell);
}

static VT gelu_tanh(VT a) {
  return a * sigmoid((VT)K(1.59576912160573071176) * (a + (VT)K(0.044715) * a * a * a));
}

/* C's fmod, exact. The driver's own can't be trusted: PoCL 3.1's for double is wrong near 12 quotients. Each round takes
 * the leading bits of the quotient, never too many, so that the product fits and the fma is exact. */
#ifdef IS_DOUBLE
#define LEADING_BITS (VM)(-1L << 30)
#define HUGE_QUOTIENT 0x1p1000
#define HUGE_STEP 0x1p600
#define EPSILON DBL_EPSILON
#else
#define LEADING_BITS (VM)(-1 << 13)
#define HUGE_QUOTIENT 0x1p120f
#define HUGE_STEP 0x1p100f
#define EPSILON FLT_EPSILON
#endif
static VT exact_mod(VT a, VT b) {
  VT r = fabs(a), divisor = fabs(b);
  VM valid = (r < (VT)INFINITY) & (divisor > (VT)0);
  r = valid ? r : (VT)0;
  divisor = valid ? divisor : (VT)1;
  while (SOME(r >= divisor)) {
    VT step = divisor;
    if (SOME(r / step > (VT)HUGE_QUOTIENT)) { /* twice where a divisor is a denormal number */
      step = r / step > (VT)HUGE_QUOTIENT ? step * (VT)HUGE_STEP : step;
      step = r / step > (VT)HUGE_QUOTIENT ? step * (VT)HUGE_STEP : step;
    }
    VT q = trunc(AS(CT, AS(MT, r / step * ((VT)1 - (VT)8 * (VT)EPSILON)) & LEADING_BITS));
    VT next = fma(-fmax(q, (VT)1), step, r);
    r = r >= divisor ? next : r;
  }
  return valid ? copysign(r, a) : a * b / (a * b);
}
/* Lanes far from 0 are the driver's, and done apart: one of them sends a whole vector of PoCL's down a path that is wrong
 * near 0. Where a lane is far, `near` may be anything. */
#define APART(name, a, most, near)                               \
  {                                                              \
    VM is_far = fabs(a) > (VT)(most);                            \
    VT near_result = near;                                       \
    if (!SOME(is_far)) return near_result;                       \
    return is_far ? name(is_far ? a : (VT)100000) : near_result; \
  }
#define DRIVER_MOST 100
#define OF_DRIVER(name, a) name(fabs(a) > (VT)DRIVER_MOST ? (VT)0 : a)
#ifdef IS_DOUBLE
static VT apart_sin(VT a) APART(sin, a, DRIVER_MOST, OF_DRIVER(sin, a))
static VT apart_cos(VT a) APART(cos, a, DRIVER_MOST, OF_DRIVER(cos, a))
#else
/* sin of a size, which is a quarter turn behind cos: of `quarters` 0 and 1. Right to 0.9 ulp up to NEAR_MOST. What is left
 * of the size once quarter turns are taken off has two parts: the first product is taken off exactly, as what remains is a
 * multiple of the size's last bit and below 1, and `low` has what the second and the third lose. */
#define NEAR_MOST 32768.0f
static VT near_wave(VT size, uint quarters) {
  const VT shift = (VT)12582912.0f; /* 1.5 * 2^23: the sum's last bits are the nearest whole number */
  VT shifted = fma(size, (VT)0x1.45f306p-1f, shift), turns = shifted - shift;
  VT first = fma(turns, (VT)-0x1.921fb6p0f, size);
  VT second = turns * (VT)-0x1.777a5cp-25f, lost = fma(turns, (VT)-0x1.777a5cp-25f, -second);
  VT r = first - second, taken = first - r;
  VT low = (first - (r + taken)) + (taken - second) - fma(turns, (VT)-0x1.ee59dap-50f, lost);
  VT z = r * r, halved = (VT)0.5f * z, rest = (VT)1 - halved;
  VT s = fma(fma((VT)-0x1.98d31cp-13f, z, (VT)0x1.11059cp-7f), z, (VT)-0x1.55554p-3f);
  VT c = fma(fma((VT)0x1.99fc32p-16f, z, (VT)-0x1.6c0c76p-10f), z, (VT)0x1.55554ap-5f);
  s = r + fma(r * z, s, low);
  c = rest + fma(z * z, c, (((VT)1 - rest) - halved) - r * low);
  VEC_OF(UT) count = AS(UT, shifted) + quarters;
  VT wave = (count & 1u) != 0u ? c : s;
  return AS(CT, AS(UT, wave) ^ (count & 2u) << 30);
}

#define SIGN_OF(a) (AS(UT, a) & 0x80000000u)
static VT apart_sin(VT a) APART(sin, a, NEAR_MOST, AS(CT, AS(UT, near_wave(fabs(a), 0)) ^ SIGN_OF(a)))
static VT apart_cos(VT a) APART(cos, a, NEAR_MOST, near_wave(fabs(a), 1))
#endif
static VT apart_tan(VT a) APART(tan, a, DRIVER_MOST, OF_DRIVER(tan, a))

static VT python_mod(VT a, VT b) {
  VT r = exact_mod(a, b);
  return (r != (VT)0) & ((r < (VT)0) ^ (b < (VT)0)) ? r + b : r;
}

/* Python's //, with the quotient corrected where a - r is not divided exactly. */
static VT floor_divide(VT a, VT b) {
  VT r = exact_mod(a, b);
  VT q = (a - r) / b;
  q = (r != (VT)0) & ((r < (VT)0) ^ (b < (VT)0)) ? q - (VT)1 : q;
  VT whole = floor(q);
  whole = q - whole > (VT)0.5f ? whole + (VT)1 : whole;
  whole = q == (VT)0 ? copysign((VT)0, a / b) : whole;
  return b == (VT)0 ? a / b : whole;
}

#define LERP(a, b, w) (fabs(w) < (VT)0.5f ? (a) + (w) * ((b) - (a)) : (b) - ((b) - (a)) * ((VT)1 - (w)))

static VT silu_grad(VT grad, VT a) {
  VT s = sigmoid(a);
  return grad * s * ((VT)1 + a * ((VT)1 - s));
}

static VT gelu_erf_grad(VT grad, VT a) {
  VT bell, below = normal_below(a, &bell);
  return grad * (below + a * (bell * (VT)K(0.39894228040143267794)));
}

/* With tanh(u) = 2 sigmoid(2 u) - 1; its slope, 1 - tanh(u)^2, would lose all its digits where tanh is near 1. */
static VT gelu_tanh_grad(VT grad, VT a) {
  VT beta = (VT)K(0.79788456080286535588), cube = (VT)K(0.044715);
  VT twice = (VT)2 * beta * (a + cube * a * a * a), e = EXP(-fabs(twice)), share = (VT)1 / ((VT)1 + e);
  VT left = (twice < (VT)0 ? e : (VT)1) * share;
  VT right = (VT)2 * a * (e * share * share) * beta * ((VT)1 + (VT)3 * cube * a * a);
  return grad * (left + right);
}

#define ABS(a) fabs(a)
#define QUOTIENT(a, b) ((a) / (b))
#define FMOD(a, b) exact_mod(a, b)
#define TRUNC_DIVIDE(a, b) trunc((a) / (b))
#define SIGN(a) ((a) > (VT)0 ? (VT)1 : (a) < (VT)0 ? (VT)(-1) : (VT)0)
#define SIGNBIT(a) (AS(MT, a) < (VM)0)
#define FLOOR(a) floor(a)
#define CEIL(a) ceil(a)
#define TRUNC(a) trunc(a)
#define ROUND(a) rint(a)
#define IS_INF(a) (fabs(a) == (VT)INFINITY)
#endif

#if defined(CLASS_INT)
/* Division by zero, and the least number by -1, trap on some devices: such lanes divide by 1. */
#ifdef IS_UNSIGNED
#define TRAPS(a, b) ((b) == (VT)0)
#else
#define TRAPS(a, b) (((b) == (VT)0) | ((b) == (VT)(-1)))
#endif
static VT quotient(VT a, VT b) {
  VT q = a / (TRAPS(a, b) ? (VT)1 : b);
#ifndef IS_UNSIGNED
  q = b == (VT)(-1) ? NEG(a) : q;
#endif
  return b == (VT)0 ? (VT)0 : q;
}
static VT c_mod(VT a, VT b) {
  VT r = a % (TRAPS(a, b) ? (VT)1 : b);
  return b == (VT)0 ? (VT)0 : r;
}
static VT python_mod(VT a, VT b) {
  VT r = c_mod(a, b);
  return (r != (VT)0) & ((r < (VT)0) ^ (b < (VT)0)) ? r + b : r;
}
static VT floor_divide(VT a, VT b) {
  VT q = quotient(a, b), r = c_mod(a, b);
  return (r != (VT)0) & ((r < (VT)0) ^ (b < (VT)0)) ? q - (VT)1 : q;
}
#define ABS(a) ((a) < (VT)0 ? NEG(a) : (a))

/* Of sizes: the least number stays below 0, as its dtype lacks its size, and so may the rests. A lane that is done stays
 * as it is. */
static VT common_divisor(VT rest, VT divisor) {
  while (SOME(rest != (VT)0)) {
    VT next = c_mod(divisor, rest);
    divisor = rest == (VT)0 ? divisor : rest;
    rest = next;
  }
  return divisor;
}
static VT common_multiple(VT a, VT b) {
  VT common = common_divisor(ABS(a), ABS(b));
  VEC_OF(UT) left = AS(UT, ABS(a)), right = AS(UT, ABS(b)), divisor = AS(UT, ABS(common));
  VT product = AS(CT, left / (divisor == (VEC_OF(UT))0 ? (VEC_OF(UT))1 : divisor) * right);
  return ABS(product);
}

/* By squaring; of negative powers only those of 1 and -1 are whole numbers other than 0. */
static VT int_pow(VT a, VT b) {
  VT result = (VT)1, base = a, left = b < (VT)0 ? (VT)0 : b;
  for (int bit = 0; bit < 8 * (int)sizeof(CT); bit++) {
    result = (left & (VT)1) != (VT)0 ? MUL(result, base) : result;
    base = MUL(base, base);
    left >>= (VT)1;
  }
#ifndef IS_UNSIGNED
  VT odd = (b & (VT)1) != (VT)0 ? (VT)(-1) : (VT)1;
  VT inverse = a == (VT)1 ? (VT)1 : a == (VT)(-1) ? odd : (VT)0;
  result = b < (VT)0 ? inverse : result;
#endif
  return result;
}
#define POW(a, b) int_pow(a, b)
#define QUOTIENT(a, b) quotient(a, b)
#define FMOD(a, b) c_mod(a, b)
#define TRUNC_DIVIDE(a, b) quotient(a, b)
#define SIGN(a) ((a) > (VT)0 ? (VT)1 : (a) < (VT)0 ? (VT)(-1) : (VT)0)
#define SIGNBIT(a) ((a) < (VT)0)
#define FLOOR(a) (a)
#define CEIL(a) (a)
#define TRUNC(a) (a)
#define ROUND(a) (a)
#define IS_INF(a) ((a) != (a))
/* By a negative number, or by the width or more, nothing is left but the sign of a right shift: which is that of the type
 * computed with, as small unsigned types are without one there, too. */
#define WIDTH ((VT)(8 * sizeof(RAW(D_OUT))))
/* A size as the result's dtype has it. */
#define HELD_SIZE(a) CONVERT(CT, CONVERT(RAW(D_OUT), ABS(a)))
#define SHIFTS_OUT(b) (((b) < (VT)0) | ((b) >= WIDTH))
#define SHIFT_LEFT(a, b) (SHIFTS_OUT(b) ? (VT)0 : (a) << (SHIFTS_OUT(b) ? (VT)0 : (b)))
#ifdef IS_UNSIGNED
#define SHIFT_RIGHT(a, b) (SHIFTS_OUT(b) ? (VT)0 : (a) >> (SHIFTS_OUT(b) ? (VT)0 : (b)))
#else
#define SHIFT_RIGHT(a, b) ((a) >> (SHIFTS_OUT(b) ? (VT)(8 * sizeof(CT) - 1) : (b)))
#endif
#ifdef IS_BOOL
#define BITNOT(a) ((a) == (VT)0)
#else
#define BITNOT(a) (~(a))
#endif
#endif

#define DIVIDE(a, b) (MODE == 1 ? TRUNC_DIVIDE(a, b) : floor_divide(a, b))
