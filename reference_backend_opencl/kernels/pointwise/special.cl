/* Functions of activations and error functions, in front of pointwise.cl for the rows that ask for them (SPECIAL). */
#if defined(CLASS_FLOAT)
#define IS_INFINITE(a, sign) ((a) == (VT)(sign INFINITY))
#define PI K(3.1415926535897932385)

/* ---- neighbours: of one sign, numbers stand in the order of their bits ---- */

#define STEPPED_f16(a, step) from_f16(CONVERT(ushort, CONVERT(int, to_f16(a)) + step))
#define STEPPED_bf16(a, step) AS(float, AS(int, a) + step * 0x10000)
#define STEPPED_f32(a, step) AS(float, AS(int, a) + step)
#define STEPPED_f64(a, step) AS(double, AS(long, a) + step)
#define LEAST_f16 0x1p-24f
#define LEAST_bf16 0x1p-133f
#define LEAST_f32 0x1p-149f
#define LEAST_f64 0x1p-1074
/* What a number that came in the compute type is in the result's. */
#define NARROWED_f16(a) from_f16(to_f16(a))
#define NARROWED_bf16(a) AS(float, CONVERT(uint, to_bf16(a)) << 16)
#define NARROWED_f32(a) (a)
#define NARROWED_f64(a) (a)
#define NARROWED(a) CAT(NARROWED_, D_OUT)(a)
#define STEPPED CAT(STEPPED_, D_OUT)
#define LEAST CAT(LEAST_, D_OUT)

#ifndef BOOL_RESULT
static VT next_after(VT a, VT b) {
  VM step = (a < b) ^ (a < (VT)0) ? (VM)1 : (VM)(-1);
  VT next = STEPPED(a, step);
  next = a == (VT)0 ? copysign((VT)LEAST, b) : next;
  next = a == b ? b : next;
  return (a != a) | (b != b) ? (VT)NAN : next;
}
#endif

/* ---- mantissa and exponent ---- */

/* By their bits: PoCL 3.1's frexp of double vectors is wrong where denormal lanes are among others. */
#ifdef IS_DOUBLE
#define FRACTION_BITS 52
#define EXPONENT_OF_HALF 1022
#define LEAST_NORMAL 0x1p-1022
#else
#define FRACTION_BITS 23
#define EXPONENT_OF_HALF 126
#define LEAST_NORMAL 0x1p-126f
#endif
#define DOUBLINGS 64 /* so many doublings make all denormals normal */

static VM is_denormal(VT a) { return fabs(a) < (VT)LEAST_NORMAL; }
static VM bits_of(VT a) { return AS(MT, is_denormal(a) ? a * (VT)0x1p64f : a); }

static VT mantissa_of(VT a) {
  const MT fraction = ((MT)1 << FRACTION_BITS) - 1, half_of_1 = (MT)EXPONENT_OF_HALF << FRACTION_BITS;
  const VT mantissa = AS(CT, (bits_of(a) & (VM)fraction) | (VM)half_of_1);
  return (a == (VT)0) | (a - a != (VT)0) ? a : copysign(mantissa, a);
}
static VT exponent_of(VT a) {
  const VM exponent = (AS(MT, fabs(AS(CT, bits_of(a)))) >> (VM)FRACTION_BITS) - (VM)EXPONENT_OF_HALF;
  const VT power = CONVERT(CT, exponent) - (is_denormal(a) ? (VT)DOUBLINGS : (VT)0);
  return (a == (VT)0) | (a - a != (VT)0) ? (VT)0 : power;
}

/* tanh(log(1 + e^a)) as n / (n + 2), n = e^a (e^a + 2); from 20 on it is 1. */
static VT mish_gate(VT a) {
  VT e = EXP(a > (VT)20 ? (VT)20 : a), n = e * (e + (VT)2);
  return a > (VT)20 ? (VT)1 : n / (n + (VT)2);
}
/* s: sigmoid(a). 1 - gate^2 is 4 (n + 1) / (n + 2)^2. */
static VT mish_slope(VT a, VT s) {
  VT e = EXP(a > (VT)20 ? (VT)20 : a), n = e * (e + (VT)2);
  VT rest = a > (VT)20 ? (VT)0 : (VT)4 * (n + (VT)1) / ((n + (VT)2) * (n + (VT)2));
  return mish_gate(a) + a * s * rest;
}

static VT sigmoid_slope(VT s) { return s * ((VT)1 - s); }

/* ---- logit ---- */

#ifdef HAS_X
#define KEPT_OFF(a, x) ((a) < (x) ? (x) : (a) > (VT)1 - (x) ? (VT)1 - (x) : (a))
#define LOGIT_SLOPE(g, a, x) (((a) < (x)) | ((a) > (VT)1 - (x)) ? (VT)0 : logit_slope(g, a))
#else
#define KEPT_OFF(a, x) (a)
#define LOGIT_SLOPE(g, a, x) (((a) < (VT)0) | ((a) > (VT)1) ? (VT)NAN : logit_slope(g, a))
#endif
static VT logit(VT a) { return log(a / ((VT)1 - a)); }
static VT logit_slope(VT g, VT a) { return (a == (VT)0) | (a == (VT)1) ? g * (VT)INFINITY : g / (a * ((VT)1 - a)); }

/* ---- sums of exponentials of base e^k: the larger operand, and what the smaller one adds ---- */
static VT add_exponentials(VT a, VT b, VT k) {
  VT most = a > b ? a : b;
  VT sum = most + log1p(EXP(-fabs(a - b) * k)) / k;
  sum = (a == b) & (fabs(a) == (VT)INFINITY) ? a : sum;
  return a != a ? a : b != b ? b : sum;
}

/* sin(pi a), by its period of 2: what is left of a is exact. */
static VT sin_of_turns(VT a) {
  VT r = a - (VT)2 * rint(a * (VT)0.5f);
  r = r > (VT)0.5f ? (VT)1 - r : r < (VT)(-0.5f) ? (VT)(-1) - r : r;
  return sin((VT)PI * r);
}
static VT sinc(VT a) { return a == (VT)0 ? (VT)1 : fabs(a) == (VT)INFINITY ? (VT)NAN : sin_of_turns(a) / ((VT)PI * a); }

/* ---- error functions ---- */

/* e^(a^2), with what is lost of the square. */
static VT exp_of_square(VT a) {
  VT square = a * a, power = exp(square);
  return power == (VT)INFINITY ? power : fma(power, fma(a, a, -square), power);
}

/* e^(a^2) erfc(a) for a >= 0; from 2 on a continued fraction (7.9.1 in the Digital Library of Mathematical Functions). */
#ifdef IS_DOUBLE
#define FRACTION_TERMS 64
#else
#define FRACTION_TERMS 16
#endif
static VT erfcx_right(VT a) {
  VM is_far = a >= (VT)2;
  VT far = is_far ? a : (VT)2, near = is_far ? (VT)0 : a, fraction = far;
  for (int k = FRACTION_TERMS; k > 0; k--) fraction = far + (VT)((CT)k * (CT)0.5f) / fraction;
  return is_far ? (VT)K(0.56418958354775628695) / fraction : exp_of_square(near) * erfc(near);
}
static VT erfcx(VT a) {
  VT right = erfcx_right(fabs(a));
  return a < (VT)0 ? (VT)2 * exp_of_square(a) - right : right;
}

/* The logarithm of the standard normal distribution function. */
static VT log_ndtr(VT a) {
  VM left = a < (VT)(-1);
  VT y = a * (VT)K(0.70710678118654752440);
  VT far = log((VT)0.5f * erfcx_right(left ? -y : (VT)1)) - (VT)0.5f * a * a;
  return left ? far : log1p((VT)(-0.5f) * erfc(left ? (VT)0 : y));
}

/* The a whose erf is `inside` and whose erfc is `rest`; both are given, since one of them has more digits. Winitzki's
 * guess, then steps of Halley on erf, or of Newton on the logarithm of erfc, which is nearly straight. */
static VT inverse_erf(VT inside, VT rest) {
  VT t = log(rest * ((VT)1 + inside)), k = (VT)K(4.3307467508872) + t * (VT)0.5f;
  VT x = sqrt(fmax(sqrt(fmax(k * k - t / (VT)K(0.147), (VT)0)) - k, (VT)0));
  x = inside < (VT)K(0.01) ? inside * (VT)K(0.88622692545275801365) : x; /* there the guess cancels */
  for (int step = 0; step < 4; step++) {
    VT miss = (erf(x) - inside) * (VT)K(0.88622692545275801365) * exp(x * x), scaled = erfcx_right(x);
    VT left = (log(scaled) - x * x - log(rest)) * scaled * (VT)K(0.88622692545275801365);
    x = inside < (VT)0.5f ? x - miss / fma(x, miss, (VT)1) : x + left;
  }
  return x;
}
static VT erfinv(VT a) {
  VT y = fabs(a);
  VM within = y < (VT)1;
  VT x = inverse_erf(within ? y : (VT)0, within ? (VT)1 - y : (VT)1);
  x = within ? x : y == (VT)1 ? (VT)INFINITY : (VT)NAN;
  return a == (VT)0 ? a : copysign(x, a);
}

/* Where the standard normal distribution function is p. */
static VT ndtri(VT p) {
  VT tail = p < (VT)0.5f ? p : (VT)1 - p;
  VM within = (tail > (VT)0) & (tail < (VT)0.5f);
  VT x = inverse_erf(within ? (VT)1 - (VT)2 * tail : (VT)0, within ? (VT)2 * tail : (VT)1);
  x = within ? x * (VT)K(1.4142135623730950488) : tail == (VT)0 ? (VT)INFINITY : tail == (VT)0.5f ? (VT)0 : (VT)NAN;
  return x == (VT)0 ? x : copysign(x, p - (VT)0.5f);
}

/* ---- what takes the place of NaN and infinities; x, y, z where given ---- */
#define LARGEST_f16 65504.0f
#define LARGEST_bf16 0x1.fep127f
#define LARGEST_f32 FLT_MAX
#define LARGEST_f64 DBL_MAX
#define NUMBER(n) (n)
#elif defined(CLASS_INT)
#define IS_INFINITE(a, sign) ((a) != (a))
#define MADE_FINITE(a) (a)
#else
#define LARGEST_c64 FLT_MAX
#define LARGEST_c128 DBL_MAX
#define NUMBER(n) ((VT)((n).x))
#endif

#if !defined(CLASS_INT)
#define LARGEST CAT(LARGEST_, D_OUT)
#ifdef HAS_X
#define FOR_NAN NUMBER(x)
#else
#define FOR_NAN (VT)0
#endif
#ifdef HAS_Y
#define FOR_MOST NUMBER(y)
#else
#define FOR_MOST (VT)LARGEST
#endif
#ifdef HAS_Z
#define FOR_LEAST NUMBER(z)
#else
#define FOR_LEAST (VT)(-LARGEST)
#endif
#define MADE_FINITE(a) \
  ((a) != (a) ? FOR_NAN : (a) == (VT)INFINITY ? FOR_MOST : (a) == (VT)(-INFINITY) ? FOR_LEAST : (a))
#endif
