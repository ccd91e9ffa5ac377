/* Bessel functions of the orders 0 and 1, in front of pointwise.cl for the rows that ask for them (BESSEL). Near 0 they
 * are power series and Miller's recurrence, from FAR on Hankel's expansions, which are right to e^-2 FAR there. Numbers
 * in brackets are equations of the Digital Library of Mathematical Functions. */
#ifdef IS_DOUBLE
#define FAR 20
#define SERIES_TERMS 46
#define HANKEL_TERMS 30
#define SHORT_TERMS 14
#define FIRST_ORDER 62
#define FIRST_VALUE 1e-80
#else
#define FAR 10
#define SERIES_TERMS 24
#define HANKEL_TERMS 14
#define SHORT_TERMS 8
#define FIRST_ORDER 30
#define FIRST_VALUE 1e-30f
#endif
static VT apart_sin(VT a);
static VT apart_cos(VT a);

/* The sum of quarter^k / (k! (k + order)!): (10.25.2) and (10.2.2). */
static VT power_series(VT quarter, int order, int terms) {
  VT sum = (VT)1;
  for (int k = terms; k > 0; k--) sum = fma(sum, quarter * (VT)((CT)1 / (CT)(k * (k + order))), (VT)1);
  return sum;
}

/* I, or e^-|a| I. */
static VT modified_bessel(VT a, CT order, CT is_scaled) {
  VT size = fabs(a);
  VM is_far = size >= (VT)FAR;
  VT near = is_far ? (VT)0 : size, far = is_far ? size : (VT)FAR;
  VT sum = power_series(near * near * (VT)0.25f, (int)order, SERIES_TERMS), expansion = (VT)1;
  for (int k = HANKEL_TERMS; k > 0; k--) { /* (10.40.1) */
    CT odd = (CT)(2 * k - 1), factor = (odd * odd - 4 * order * order) / (CT)(8 * k);
    expansion = fma(expansion, (VT)factor / far, (VT)1);
  }
  expansion /= sqrt((VT)K(6.2831853071795864769) * far);
  if (order > 0) sum *= near * (VT)0.5f;
  VT half_power = exp(far * (VT)0.5f), result;
  if (is_scaled > 0)
    result = is_far ? expansion : sum * exp(-near);
  else
    result = !is_far ? sum : far == (VT)INFINITY ? far : half_power * expansion * half_power;
  return order > 0 ? copysign(result, a) : result;
}

/* Down from an order whose value is 0 all but (3.6(ii)), made to fulfil J0 + 2 J2 + 2 J4 + ... = 1 (10.12.4). */
static VT miller(VT x, CT order) {
  VT twice = (VT)2 / x, later = (VT)0, now = (VT)FIRST_VALUE, first = now, even = (VT)0;
  for (int n = FIRST_ORDER; n > 0; n--) {
    if (n % 2 == 0) even += now;
    VT before = fma((VT)(CT)n * twice, now, -later);
    first = now;
    later = now;
    now = before;
  }
  return (order > 0 ? first : now) / fma((VT)2, even, now);
}

/* (10.17.3), with the angle taken apart: sin and cos of x - pi/4 or x - 3 pi/4. */
static VT hankel(VT x, CT order) {
  VT term = (VT)1, p = (VT)1, q = (VT)0, s = apart_sin(x), c = apart_cos(x);
  CT sign = 1, square = 4 * order * order;
  for (int k = 1; k < HANKEL_TERMS; k += 2) {
    CT odd = (CT)(2 * k - 1), next = (CT)(2 * k + 1);
    term *= (VT)((square - odd * odd) / (CT)(8 * k)) / x;
    q += (VT)sign * term;
    sign = -sign;
    term *= (VT)((square - next * next) / (CT)(8 * k + 8)) / x;
    p += (VT)sign * term;
  }
  VT wave = order > 0 ? p * (s - c) + q * (s + c) : p * (s + c) - q * (s - c);
  return x == (VT)INFINITY ? (VT)0 : wave / sqrt((VT)K(3.1415926535897932385) * x);
}

static VT bessel_j(VT a, CT order) {
  VT size = fabs(a);
  VM is_far = size >= (VT)FAR, is_near = size < (VT)2;
  VT near = is_near ? size : (VT)1;
  VT result = power_series(near * near * (VT)(-0.25f), (int)order, SHORT_TERMS);
  if (order > 0) result *= near * (VT)0.5f;
  result = is_near ? result : miller(is_far ? (VT)2 : size, order);
  if (SOME(is_far)) result = is_far ? hankel(is_far ? size : (VT)FAR, order) : result;
  return order > 0 && SOME(a < (VT)0) ? (a < (VT)0 ? -result : result) : result;
}
