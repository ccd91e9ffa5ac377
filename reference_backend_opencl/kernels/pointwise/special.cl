/* Functions of activations and special functions, in front of pointwise.cl for the rows that ask for them (SPECIAL). */
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

static VT mantissa_of(VT a) {
  VEC_OF(int) power;
  return frexp(a, &power);
}
static VT exponent_of(VT a) {
  VEC_OF(int) power;
  (void)frexp(a, &power);
  return a - a == (VT)0 ? CONVERT(CT, power) : (VT)0;
}

/* tanh(log(1 + e^a)) as n / (n + 2), n = e^a (e^a + 2); from 20 on it is 1. */
static VT mish_gate(VT a) {
  VT e = exp(a > (VT)20 ? (VT)20 : a), n = e * (e + (VT)2);
  return a > (VT)20 ? (VT)1 : n / (n + (VT)2);
}
/* s: sigmoid(a). 1 - gate^2 is 4 (n + 1) / (n + 2)^2. */
static VT mish_slope(VT a, VT s) {
  VT e = exp(a > (VT)20 ? (VT)20 : a), n = e * (e + (VT)2);
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
  VT sum = most + log1p(exp(-fabs(a - b) * k)) / k;
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

/* ---- gamma functions: a recurrence up to FAR, then the expansions at infinity, whose coefficients are Bernoulli's
 * numbers; left of 0 by reflection ---- */
#define FAR ((VT)10)

/* log Gamma(2 + w) for |w| <= 1/2: w (1 - gamma) + the sum of (zeta(k) - 1) (-w)^k / k, from the last term on. 0 where w
 * is, with all its bits near there. */
static VT log_gamma_near_2(VT w) {
  const CT terms[] = {
#ifdef IS_DOUBLE
      K(-2.7595228851242331452e-10), K(5.7313672416788620133e-10), K(-1.1921401405860912074e-9),
      K(2.4836745438024783172e-9), K(-5.1834750419700466551e-9), K(1.0838659214896954091e-8),
      K(-2.271109460894316491e-8), K(4.7698101693639805658e-8), K(-1.0043224823968099609e-7),
      K(2.1207184805554665869e-7), K(-4.4924691987645660433e-7), K(9.5514121304074198329e-7),
      K(-2.0392157538013662368e-6), K(4.3748667899074878042e-6),
#endif
      K(-9.439488275268395904e-6), K(0.000020507212775670691553), K(-0.0000449262367381331417),
      K(0.000099457512781808533715), K(-0.00022315475845357937976), K(0.00050966952474304242234),
      K(-0.0011927539117032609771), K(0.0028905103307415232858), K(-0.0073855510286739852663),
      K(0.020580808427784547879), K(-0.067352301053198095133), K(0.32246703342411321824), K(0.42278433509846713939)};
  VT sum = (VT)0;
  for (int k = 0; k < (int)(sizeof terms / sizeof *terms); k++) sum = fma(sum, w, (VT)terms[k]);
  return sum * w;
}

/* log Gamma of a >= FAR. */
static VT log_gamma_far(VT a) {
  VT t = (VT)1 / (a * a);
  VT series = fma((VT)K(0.0064102564102564102564), t, (VT)K(-0.0019175269175269175269));
  series = fma(series, t, (VT)K(0.00084175084175084175084));
  series = fma(series, t, (VT)K(-0.00059523809523809523810));
  series = fma(series, t, (VT)K(0.00079365079365079365079));
  series = fma(series, t, (VT)K(-0.0027777777777777777778));
  series = fma(series, t, (VT)K(0.083333333333333333333)) / a;
  return (a - (VT)0.5f) * log(a) - a + (VT)K(0.91893853320467274178) + series;
}

/* log |Gamma| from -1/2 on: brought down to 2.5 by a product of factors above 1.5, whose logarithm does not cancel; then
 * around 2, around 1 by Gamma(a + 1) = a Gamma(a), and around 0 by that once more. */
static VT log_gamma_right(VT a) {
  VM far = a >= FAR;
  VT product = (VT)1, near = far ? (VT)2 : a;
  while (SOME(near > (VT)2.5f)) {
    product = near > (VT)2.5f ? product * (near - (VT)1) : product;
    near = near > (VT)2.5f ? near - (VT)1 : near;
  }
  VM at_0 = near < (VT)0.5f, at_1 = near < (VT)1.5f;
  VT w = at_0 ? near : at_1 ? near - (VT)1 : near - (VT)2;
  VT result = log_gamma_near_2(w) + log(product);
  result = at_1 ? result - log1p(w) : result;
  result = at_0 ? result - log(at_0 ? fabs(near) : (VT)1) : result;
  return far ? log_gamma_far(far ? a : FAR) : result;
}
static VT log_gamma(VT a) {
  VT finite = (fabs(a) == (VT)INFINITY) | (a != a) ? (VT)1 : a;
  VM left = finite < (VT)(-0.5f);
  VT right = log_gamma_right(left ? (VT)1 - finite : finite);
  VT result = left ? log((VT)PI / fabs(sin_of_turns(finite))) - right : right;
  result = (a <= (VT)0) & (a == floor(a)) ? (VT)INFINITY : result;
  return a != a ? a : fabs(a) == (VT)INFINITY ? (VT)INFINITY : result;
}

/* pi^(p (p - 1) / 4) times the product of Gamma(a - j/2), p: MODE. */
static VT log_gamma_of_dims(VT a) {
  VT sum = (VT)((CT)MODE * (CT)(MODE - 1) * K(0.28618247146235004353)); /* log(pi) / 4 */
  for (int j = 0; j < MODE; j++) sum += log_gamma(a - (VT)((CT)j * (CT)0.5f));
  return sum;
}

static VT digamma_right(VT a) {
  VT sum = (VT)0;
  while (SOME(a < FAR)) {
    sum = a < FAR ? sum - (VT)1 / a : sum;
    a = a < FAR ? a + (VT)1 : a;
  }
  VT t = (VT)1 / (a * a);
  VT series = fma((VT)K(-0.083333333333333333333), t, (VT)K(0.021092796092796092796));
  series = fma(series, t, (VT)K(-0.0075757575757575757576));
  series = fma(series, t, (VT)K(0.0041666666666666666667));
  series = fma(series, t, (VT)K(-0.0039682539682539682540));
  series = fma(series, t, (VT)K(0.0083333333333333333333));
  series = fma(series, t, (VT)K(-0.083333333333333333333)) * t;
  return sum + log(a) - (VT)0.5f / a + series;
}
static VT digamma(VT a) {
  VM left = a < (VT)0;
  VT far = (fabs(a) == (VT)INFINITY) | (a != a) ? (VT)1 : a;
  VT right = digamma_right(left ? (VT)1 - far : far == (VT)0 ? (VT)1 : far);
  VT r = far - rint(far); /* tan has period 1 here */
  VT result = left ? right - (VT)PI * cos((VT)PI * r) / sin((VT)PI * r) : right;
  result = left & (a == floor(a)) ? (VT)NAN : a == (VT)0 ? copysign((VT)INFINITY, -a) : result;
  return (a != a) | (a == (VT)INFINITY) ? a : result;
}

static VT inverse_power(VT a, int s) {
  VT result = (VT)1;
  for (int k = 0; k < s; k++) result /= a;
  return result;
}

/* sum (a + k)^-s for whole s > 1, by Euler and Maclaurin from 10 + 2 s on: the first term that is left out, B16 / 16! x
 * s (s + 1) ... (s + 14) / a^(s + 15), is below 2^-56 of the sum there, which is 1 / ((s - 1) a^(s - 1)) at least. Of
 * greater s than MOST_POWER polygamma multiplies by a factorial that is infinite. */
#define MOST_POWER 171
static VT hurwitz(int s, VT a) {
  VT sum = (VT)0, far = FAR + (VT)(s > MOST_POWER ? 0 : 2 * s);
  while (SOME(a < far)) {
    sum = a < far ? sum + inverse_power(a, s) : sum;
    a = a < far ? a + (VT)1 : a;
  }
  const CT bernoulli[] = {K(0.16666666666666666667), K(-0.033333333333333333333), K(0.023809523809523809524),
                          K(-0.033333333333333333333), K(0.075757575757575757576), K(-0.25311355311355311355),
                          K(1.1666666666666666667)};
  VT power = inverse_power(a, s), factor = (VT)(s * (CT)0.5f) * power / a;
  sum += a * power / (VT)(s - 1) + power * (VT)0.5f;
  for (int k = 1; k <= 7; k++) {
    sum += (VT)bernoulli[k - 1] * factor;
    factor *= (VT)((CT)(s + 2 * k - 1) * (CT)(s + 2 * k) / (CT)((2 * k + 1) * (2 * k + 2))) / (a * a);
  }
  return sum;
}

/* The derivative of digamma whose number is MODE. */
static VT polygamma(VT a) {
  if (MODE == 0) return digamma(a);
  VM special = (fabs(a) == (VT)INFINITY) | (a != a);
  VT far = special ? (VT)1 : a, result;
  if (MODE == 1) { /* trigamma, by reflection left of a half */
    VM left = far < (VT)0.5f;
    VT s = sin_of_turns(far), right = hurwitz(2, left ? (VT)1 - far : far);
    result = left ? (VT)PI / s * ((VT)PI / s) - right : right;
    result = a == -(VT)INFINITY ? (VT)NAN : a == (VT)INFINITY ? (VT)0 : result;
  } else {
    CT factorial = 1;
    for (int k = 2; k <= MODE; k++) factorial *= (CT)k;
    VM is_pole = (far <= (VT)0) & (far == floor(far)), is_far = far < (VT)(-10000000);
    result = hurwitz(MODE + 1, is_pole | is_far ? (VT)1 : far);
    result = is_pole ? (VT)INFINITY : is_far ? (VT)NAN : result;
    result *= (VT)(MODE % 2 ? factorial : -factorial);
    result = a == (VT)INFINITY ? (VT)0 : a == -(VT)INFINITY ? (VT)NAN : result;
  }
  return a != a ? a : result;
}

/* ---- the inverse of erf: Winitzki's guess, then steps of Halley on whichever of erf and erfc is small there ---- */
static VT erfinv(VT a) {
  VT y = fabs(a), inside = y < (VT)1 ? y : (VT)0;
  VT t = log(((VT)1 - inside) * ((VT)1 + inside)), k = (VT)K(4.3307467508872) + t * (VT)0.5f;
  VT x = sqrt(fmax(sqrt(fmax(k * k - t / (VT)K(0.147), (VT)0)) - k, (VT)0));
  x = inside < (VT)K(0.01) ? inside * (VT)K(0.88622692545275801365) : x; /* there the guess cancels */
  for (int step = 0; step < 3; step++) {
    VT miss = inside < (VT)0.5f ? erf(x) - inside : ((VT)1 - inside) - erfc(x);
    miss *= (VT)K(0.88622692545275801365) * exp(x * x);
    x -= miss / (fma(x, miss, (VT)1));
  }
  x = y < (VT)1 ? x : y == (VT)1 ? (VT)INFINITY : (VT)NAN;
  return a == (VT)0 ? a : copysign(x, a);
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
