/* Gamma functions, in front of pointwise.cl for the rows that ask for them (GAMMA): a recurrence up to FAR, then the expansions at infinity, whose coefficients are Bernoulli's
 * numbers; left of 0 by reflection. */
#define PI K(3.1415926535897932385)
#define FAR ((VT)10)
#ifdef IS_DOUBLE
#define CT_EPSILON DBL_EPSILON
#else
#define CT_EPSILON FLT_EPSILON
#endif
/* As common.cl has it. */
#if defined(IS_DOUBLE) && VEC > 1
static VT pow_by_lanes(VT a, VT b);
#define POW(a, b) pow_by_lanes(a, b)
#else
#define POW(a, b) pow(a, b)
#endif

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

/* What log Gamma of a >= FAR is beyond (a - 1/2) log a - a + log(2 pi) / 2. */
static VT stirling(VT a) {
  VT t = (VT)1 / (a * a);
  VT series = fma((VT)K(0.0064102564102564102564), t, (VT)K(-0.0019175269175269175269));
  series = fma(series, t, (VT)K(0.00084175084175084175084));
  series = fma(series, t, (VT)K(-0.00059523809523809523810));
  series = fma(series, t, (VT)K(0.00079365079365079365079));
  series = fma(series, t, (VT)K(-0.0027777777777777777778));
  return fma(series, t, (VT)K(0.083333333333333333333)) / a;
}
static VT log_gamma_far(VT a) {
  return (a - (VT)0.5f) * log(a) - a + (VT)K(0.91893853320467274178) + stirling(a);
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

/* Bernoulli's numbers B2, B4, ... */
__constant CT bernoulli[] = {K(0.16666666666666666667),   K(-0.033333333333333333333), K(0.023809523809523809524),
                             K(-0.033333333333333333333), K(0.075757575757575757576),  K(-0.25311355311355311355),
                             K(1.1666666666666666667)};

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

/* ---- zeta(s, q) = sum (q + k)^-s for s > 1, by Euler and Maclaurin as above, but for any s: after ten terms and from FAR
 * on. Either nothing is left there, or q is so large that the expansion converges. Left of 0 for whole s only. ---- */
static VT zeta(VT s, VT q) {
  VM ordinary = (s > (VT)1) & (s < (VT)INFINITY) & (q < (VT)INFINITY) & (q > (VT)(-10000000));
  ordinary &= (q > (VT)0) | ((s == floor(s)) & (q != floor(q)));
  VT power_of = ordinary ? s : (VT)2, at = ordinary ? q : (VT)1, sum = (VT)0;
  for (int n = 0; n < 10 || SOME(at < FAR); n++) {
    sum += POW(at, -power_of);
    at += (VT)1;
  }
  VT power = POW(at, -power_of), factor = power_of * (VT)0.5f * power / at, rest = power * (VT)0.5f;
  for (int k = 1; k <= 7; k++) {
    rest += (VT)bernoulli[k - 1] * factor;
    VT next = (power_of + (VT)(CT)(2 * k - 1)) / at * ((power_of + (VT)(CT)(2 * k)) / at);
    factor *= next / (VT)(CT)((2 * k + 1) * (2 * k + 2));
  }
  sum += POW(at, (VT)1 - power_of) / (power_of - (VT)1) + (power == (VT)0 ? (VT)0 : rest);
  VT result = ordinary ? sum : (VT)NAN;
  result = (q <= (VT)0) & (q == floor(q)) ? (VT)INFINITY : result;
  result = s < (VT)1 ? (VT)NAN : result;
  return s == (VT)1 ? (VT)INFINITY : result;
}

/* ---- incomplete gamma functions. Numbers in brackets are equations of the Digital Library of Mathematical Functions ---- */

#ifdef IS_DOUBLE
#define LOG1P_TERMS 16
#define REST_TERMS 20
#define TEMME_TERMS 20
#else
#define LOG1P_TERMS 8
#define REST_TERMS 14
#define TEMME_TERMS 10
#endif

/* log Gamma(1 + a) for a > 0, with all bits of a small a. */
static VT log_gamma_of_1_and(VT a) {
  VM small = a < (VT)0.5f;
  VT near = small ? a : (VT)0;
  return small ? log_gamma_near_2(near) - log1p(near) : log_gamma_right(a + (VT)1);
}

/* m - log(1 + m); by r = m / (2 + m), log(1 + m) = 2 (r + r^3/3 + ...), where that cancels. */
static VT log1p_less(VT m) {
  VT r = m / (m + (VT)2), square = r * r, sum = (VT)0;
  for (int k = LOG1P_TERMS; k > 0; k--) sum = fma(sum, square, (VT)((CT)1 / (CT)(2 * k + 1)));
  return fabs(m) < (VT)0.5f ? r * (m - (VT)2 * square * sum) : m - log1p(m);
}

/* x^a e^-x / Gamma(a + 1); of a large a by Stirling's series (5.11.1), where the parts would cancel. */
static VT incomplete_factor(VT a, VT x) {
  VM is_large = a >= FAR;
  VT large = is_large ? a : FAR, small = is_large ? (VT)1 : a;
  VT exponent = -large * log1p_less((x - large) / large) - stirling(large);
  VT result = small * log(x) - x - log_gamma_of_1_and(small);
  return is_large ? exp(exponent) / sqrt((VT)K(6.2831853071795864769) * large) : exp(result);
}

/* The lower one (8.11.4), for x up to a or 1. */
static VT incomplete_series(VT a, VT x) {
  VT sum = (VT)1, term = (VT)1, n = a;
  while (SOME(term > sum * (VT)CT_EPSILON)) {
    n += (VT)1;
    term *= x / n;
    sum += term;
  }
  return sum * incomplete_factor(a, x);
}

/* The upper one (8.9.2), by Lentz's method, for others. */
static VT incomplete_fraction(VT a, VT x) {
  VT b = x + (VT)1 - a, above = (VT)K(1e30), below = (VT)1 / b, result = below, step = (VT)0;
  for (int n = 1; n < 400 && SOME(fabs(step - (VT)1) > (VT)2 * (VT)CT_EPSILON); n++) {
    VT numerator = (VT)(CT)n * (a - (VT)(CT)n);
    b += (VT)2;
    below = (VT)1 / fma(numerator, below, b);
    above = b + numerator / above;
    step = below * above;
    result *= step;
  }
  return result * a * incomplete_factor(a, x);
}

/* The upper one of small a and x, where it is what is left of 1 (8.7.3). */
static VT incomplete_rest(VT a, VT x) {
  VT size = a * log(x) - log_gamma_of_1_and(a), term = (VT)1, sum = (VT)0;
  for (int n = 1; n < REST_TERMS; n++) {
    term *= -x / (VT)(CT)n;
    sum += term * (a / (a + (VT)(CT)n));
  }
  return -expm1(size) - exp(size) * sum;
}

/* Of a large a near x: Temme's expansion (8.12.3, 8.12.4), its sum S over powers of eta alone. As the derivative of the
 * whole is known, eta S = S'/a + f/Gamma*(a) - 1, where f = eta / (x/a - 1): so the coefficients of S follow from those
 * of f, from the last one down. */
static VT incomplete_near(VT a, VT x, CT is_upper) {
  const CT f[] = {K(1.0), K(-0.33333333333333333333), K(0.083333333333333333333), K(-0.014814814814814814815),
                  K(0.0011574074074074074074), K(0.00035273368606701940035), K(-0.0001787551440329218107),
                  K(0.000039192631785224377817), K(-2.1854485106799921615e-6), K(-1.8540622107151599607e-6),
                  K(8.296711340953086005e-7),
#ifdef IS_DOUBLE
                  K(-1.7665952736826079304e-7), K(6.7078535434014985804e-9), K(1.0261809784240308043e-8),
                  K(-4.3820360184533531866e-9), K(9.1476995822367902342e-10), K(-2.5514193994946249767e-11),
                  K(-5.8307721325504250675e-11), K(2.4361948020667416244e-11), K(-5.0276692801141755891e-12),
                  K(1.1004392031956134771e-13),
#endif
  };
  VT m = (x - a) / a, half_square = log1p_less(m), eta = copysign(sqrt((VT)2 * half_square), m);
  VT sum = (VT)0, now = (VT)0, next = (VT)0, first = (VT)0;
  for (int n = TEMME_TERMS; n > 0; n--) {
    VT before = fma(next, (VT)(CT)(n + 1) / a, (VT)f[n]);
    sum = fma(sum, eta, before);
    if (n == 2) first = before;
    next = now;
    now = before;
  }
  VT rest = exp(-a * half_square) / sqrt((VT)K(6.2831853071795864769) * a) * (sum / ((VT)1 + first / a));
  VT y = eta * sqrt(a * (VT)0.5f);
  return is_upper > 0 ? (VT)0.5f * erfc(y) + rest : (VT)0.5f * erfc(-y) - rest;
}

static VT incomplete_gamma(VT a, VT x, CT is_upper) {
  VM ordinary = (a > (VT)0) & (x > (VT)0) & (a < (VT)INFINITY) & (x < (VT)INFINITY);
  VT order = ordinary ? a : (VT)1, at = ordinary ? x : (VT)0.5f;
  VM is_near = (order >= (VT)20) & (fabs(at - order) < (VT)K(0.3) * order), by_rest = (VM)0;
  if (is_upper > 0) {
    VM little = at < (VT)0.5f ? -order * log(at) < (VT)K(0.4) : order < (VT)0.75f * at;
    by_rest = (at <= (VT)K(1.1)) & little;
  }
  VM by_series = (by_rest == (VM)0) & (is_near == (VM)0) & ((at <= order) | (at <= (VT)1));
  VM by_fraction = (by_rest == (VM)0) & (is_near == (VM)0) & (by_series == (VM)0);
  VT upper = (VT)0;
  if (SOME(is_near)) upper = incomplete_near(is_near ? order : (VT)20, is_near ? at : (VT)20, is_upper);
  VT result = upper;
  if (SOME(by_rest)) result = by_rest ? incomplete_rest(by_rest ? order : (VT)0.5f, by_rest ? at : (VT)1) : result;
  if (SOME(by_series)) {
    VT lower = incomplete_series(by_series ? order : (VT)1, by_series ? at : (VT)0.5f);
    result = by_series ? (is_upper > 0 ? (VT)1 - lower : lower) : result;
  }
  if (SOME(by_fraction)) {
    upper = incomplete_fraction(by_fraction ? order : (VT)1, by_fraction ? at : (VT)2);
    result = by_fraction ? (is_upper > 0 ? upper : (VT)1 - upper) : result;
  }
  VT none = (VT)(is_upper > 0 ? (CT)1 : (CT)0), whole = (VT)1 - none; /* at x = 0, and at infinite x */
  result = (a != a) | (x != x) ? (VT)NAN : result;
  result = x == (VT)INFINITY ? whole : result; /* in PyTorch's order, from its last condition on */
  result = a == (VT)INFINITY ? (x == (VT)INFINITY ? (VT)NAN : none) : result;
  result = x == (VT)0 ? none : result;
  result = a == (VT)0 ? (x > (VT)0 ? whole : (VT)NAN) : result;
  return (a < (VT)0) | (x < (VT)0) ? (VT)NAN : result;
}
