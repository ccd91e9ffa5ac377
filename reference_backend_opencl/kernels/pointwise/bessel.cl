/* Bessel functions of the orders 0 and 1 and Airy's, in front of pointwise.cl for the rows that ask for them (BESSEL).
 * Near 0 they are power series and Miller's recurrence, from FAR on Hankel's expansions, which are right to e^-2 FAR
 * there. Numbers in brackets are equations of the Digital Library of Mathematical Functions. */
#ifdef IS_DOUBLE
#define FAR 20
#define SERIES_TERMS 46
#define HANKEL_TERMS 30
#define SHORT_TERMS 14
#define FIRST_ORDER 62
#define FIRST_VALUE 1e-80
#define K_NODES 24
#define K_STEP 0.2
#define K_SPAN 0.6
#define TAYLOR_TERMS 26
#define AIRY_TERMS 15
#else
#define FAR 10
#define SERIES_TERMS 24
#define HANKEL_TERMS 14
#define SHORT_TERMS 8
#define FIRST_ORDER 30
#define FIRST_VALUE 1e-30f
#define K_NODES 11
#define K_STEP 0.4f
#define K_SPAN 1.0f
#define TAYLOR_TERMS 14
#define AIRY_TERMS 6
#endif
#define PI K(3.1415926535897932385)
#define TWO_OVER_PI K(0.63661977236758134308)
static VT apart_sin(VT a);
static VT apart_cos(VT a);

/* The sum of quarter^k / (k! (k + order)!): (10.25.2) and (10.2.2). */
static VT power_series(VT quarter, int order, int terms) {
  VT sum = (VT)1;
  for (int k = terms; k > 0; k--) sum = fma(sum, quarter * (VT)((CT)1 / (CT)(k * (k + order))), (VT)1);
  return sum;
}

/* The sum of (H_k + H_(k + order)) quarter^k / (k! (k + order)!), H the harmonic numbers: with the logarithm below, what
 * Y (10.8.1) and K (10.31.1) are beside J and I. */
static VT harmonic_series(VT quarter, int order) {
  CT harmonic = (CT)order;
  VT term = (VT)1, sum = (VT)harmonic;
  for (int k = 1; k <= SHORT_TERMS; k++) {
    harmonic += (CT)1 / (CT)k + (CT)1 / (CT)(k + order);
    term *= quarter * (VT)((CT)1 / (CT)(k * (k + order)));
    sum = fma(term, (VT)harmonic, sum);
  }
  return sum;
}
/* log(a / 2) and Euler's constant */
static VT log_of_half(VT a) { return log(a) + (VT)K(-0.11593151565841244881); }

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
  expansion /= (VT)K(2.5066282746310005024) * sqrt(far); /* 2 pi times the largest numbers is infinite */
  if (order > 0) sum *= near * (VT)0.5f;
  VT half_power = exp(far * (VT)0.5f), result;
  if (is_scaled > 0)
    result = is_far ? expansion : sum * exp(-near);
  else
    result = !is_far ? sum : far == (VT)INFINITY ? far : half_power * expansion * half_power;
  return order > 0 ? copysign(result, a) : result;
}

/* e^a K(a) for a >= 1: the integral of e^-a(cosh t - 1) cosh(order t) (10.32.9) by the trapezoidal rule, whose error is
 * that integral with 2 pi i / step for the order. */
static VT trapezoidal_k(VT a, CT order) {
  VT root = sqrt(a), step = fmin((VT)K_STEP, (VT)K_SPAN / root), sum = (VT)0.5f;
  for (int j = 1; j <= K_NODES; j++) {
    VT s = sinh(step * (VT)((CT)j * (CT)0.5f)), r = root * s, term = exp((VT)(-2) * r * r);
    sum += order > 0 ? term * fma((VT)2 * s, s, (VT)1) : term;
  }
  return sum * step;
}

/* K, or e^a K. */
static VT modified_bessel_k(VT a, CT order, CT is_scaled) {
  VM is_near = (a > (VT)0) & (a < (VT)1), is_far = (a >= (VT)1) & (a < (VT)INFINITY);
  VT near = is_near ? a : (VT)1, far = is_far ? a : (VT)1, by_two = near * (VT)0.5f, quarter = by_two * by_two;
  VT sum = power_series(quarter, (int)order, SHORT_TERMS) * -log_of_half(near);
  sum = fma(harmonic_series(quarter, (int)order), (VT)0.5f, sum);
  if (order > 0) sum = fma(sum, -by_two, (VT)1 / near);
  VT rest = trapezoidal_k(far, order);
  if (is_scaled > 0)
    sum *= exp(near);
  else
    rest *= exp(-far);
  VT result = is_near ? sum : is_far ? rest : a == (VT)0 ? (VT)INFINITY : a == (VT)INFINITY ? (VT)0 : (VT)NAN;
  return result;
}

/* Down from an order whose value is 0 all but (3.6(ii)), made to fulfil J0 + 2 J2 + 2 J4 + ... = 1 (10.12.4). Y is a
 * series of those of its parity (10.23.16); for the order 1, the derivative of that. */
static VT miller(VT x, CT order, CT is_second) {
  VT twice = (VT)2 / x, later = (VT)0, now = (VT)FIRST_VALUE, first = now, even = (VT)0, sum = (VT)0;
  for (int n = FIRST_ORDER; n > 0; n--) {
    if (n % 2 == 0) even += now;
    if (is_second > 0 && n > 1 && n % 2 == (int)order)
      sum += now * (VT)((CT)(n / 2 % 2 ? -4 : 4) * (order > 0 ? (CT)n / (CT)(n * n - 1) : (CT)1 / (CT)n));
    VT before = fma((VT)(CT)n * twice, now, -later);
    first = now;
    later = now;
    now = before;
  }
  VT result = order > 0 ? first : now;
  if (is_second > 0) {
    result = (log_of_half(x) - (VT)order) * result - sum;
    if (order > 0) result -= now / x;
    result *= (VT)TWO_OVER_PI;
  }
  return result / fma((VT)2, even, now);
}

/* J (10.17.3) or Y (10.17.4), with the angle taken apart: sin and cos of x - pi/4 or x - 3 pi/4. */
static VT hankel(VT x, CT order, CT is_second) {
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
  VT wave = (order > 0) != (is_second > 0) ? p * (s - c) + q * (s + c) : p * (s + c) - q * (s - c);
  if (order > 0 && is_second > 0) wave = -wave;
  return x == (VT)INFINITY ? (VT)0 : wave / sqrt((VT)PI * x);
}

static VT bessel_j(VT a, CT order) {
  VT size = fabs(a);
  VM is_far = size >= (VT)FAR, is_near = size < (VT)2;
  VT near = is_near ? size : (VT)1;
  VT result = power_series(near * near * (VT)(-0.25f), (int)order, SHORT_TERMS);
  if (order > 0) result *= near * (VT)0.5f;
  result = is_near ? result : miller(is_far ? (VT)2 : size, order, 0);
  if (SOME(is_far)) result = is_far ? hankel(is_far ? size : (VT)FAR, order, 0) : result;
  return order > 0 && SOME(a < (VT)0) ? (a < (VT)0 ? -result : result) : result;
}

static VT bessel_y(VT a, CT order) {
  VM is_far = a >= (VT)FAR, is_near = a < (VT)2;
  VT near = (is_near & (a > (VT)0)) ? a : (VT)1, by_two = near * (VT)0.5f, quarter = -by_two * by_two;
  VT first = power_series(quarter, (int)order, SHORT_TERMS), series = harmonic_series(quarter, (int)order);
  VT result = (VT)2 * log_of_half(near) * first - series;
  result *= order > 0 ? by_two * (VT)K(0.31830988618379067154) : (VT)K(0.31830988618379067154);
  if (order > 0) result -= (VT)TWO_OVER_PI / near;
  result = is_near ? result : miller(is_far | is_near ? (VT)2 : a, order, 1);
  if (SOME(is_far)) result = is_far ? hankel(is_far ? a : (VT)FAR, order, 1) : result;
  return a == (VT)0 ? (VT)(-INFINITY) : a < (VT)0 ? (VT)NAN : result;
}

/* ---- Airy's function: up to AIRY_FAR by Taylor's series around the nearest whole number, beyond by the expansions at
 * infinity ---- */

#define AIRY_MOST 10
#define AIRY_FAR K(10.5)

/* Its values and its slopes from -AIRY_MOST to AIRY_MOST. */
__constant CT airy_values[] = {
    K(0.040241238486443190689), K(-0.022133721547341403674), K(-0.052705050356386202622), K(0.18428083525050563728),
    K(-0.32914517362982310523), K(0.35076100902411431979), K(-0.070265532949289515099), K(-0.37881429367765807435),
    K(0.22740742820168557599), K(0.53556088329235211880), K(0.35502805388781723926), K(0.13529241631288141552),
    K(0.034924130423274379135), K(0.0065911393574607191443), K(0.00095156385120480187362),
    K(0.00010834442813607441735), K(9.9476943602528895702e-6), K(7.4921288639971670808e-7),
    K(4.6922076160992316256e-8), K(2.4711684308724898433e-9), K(1.1047532552898685934e-10)};
__constant CT airy_slopes[] = {
    K(0.99626504413279005590), K(-0.97566398092633159471), K(0.93556093819830655103), K(-0.77100816841012654773),
    K(0.34593548728134289493), K(0.32719281855444313679), K(-0.79062857536858138030), K(0.31458376921659881365),
    K(0.61825902074169104141), K(-0.010160567116645209395), K(-0.25881940379280679841), K(-0.15914744129679321279),
    K(-0.053090384433653631704), K(-0.011912976705951318474), K(-0.0019586409502041789001),
    K(-0.00024741389086846247600), K(-0.000024765200397034954754), K(-2.0081508947387919912e-6),
    K(-1.3414392979067865743e-7), K(-7.4806413896589464128e-9), K(-3.5206336767389236366e-10)};
static VT airy_looked_up(__constant const CT *table, VT whole) {
  CT lanes[VEC];
  VSTORE(whole, lanes);
  for (int i = 0; i < VEC; i++) lanes[i] = table[(int)lanes[i] + AIRY_MOST];
  return VLOAD(lanes);
}

/* Ai'' = a Ai makes the coefficients at `whole`, here each with its power of `rest`. */
static VT airy_near(VT whole, VT rest) {
  VT before = (VT)0, now = airy_looked_up(airy_values, whole), next = rest * airy_looked_up(airy_slopes, whole);
  VT square = rest * rest, cube = square * rest, sum = now + next;
  for (int n = 2; n <= TAYLOR_TERMS; n++) {
    VT later = fma(whole * square, now, cube * before) * (VT)((CT)1 / (CT)(n * (n - 1)));
    sum += later;
    before = now;
    now = next;
    next = later;
  }
  return sum;
}

/* (9.7.5) and (9.7.9): terms of the even and of the odd powers of 1 / zeta apart */
static VT airy_far(VT size, VM is_left) {
  VT zeta = size * sqrt(size) * (VT)K(0.66666666666666666667), term = (VT)1, even = (VT)1, odd = (VT)0;
  VT left_even = (VT)1, left_odd = (VT)0;
  for (int k = 1; k <= AIRY_TERMS; k++) {
    term *= (VT)((CT)((6 * k - 5) * (6 * k - 1)) / (CT)(72 * k)) / zeta;
    VT turned = k / 2 % 2 ? -term : term;
    if (k % 2) {
      odd += term;
      left_odd += turned;
    } else {
      even += term;
      left_even += turned;
    }
  }
  VT s = apart_sin(is_left ? zeta : (VT)0), c = apart_cos(is_left ? zeta : (VT)0);
  VT wave = ((c + s) * left_even + (s - c) * left_odd) * (VT)K(0.70710678118654752440);
  VT fall = exp(-zeta) * (even - odd) * (VT)0.5f;
  VT result = (is_left ? wave : fall) / (sqrt(sqrt(size)) * (VT)K(1.7724538509055160273));
  return zeta == (VT)INFINITY ? (VT)0 : result; /* where it is all but 0, and no bit of zeta is left */
}

static VT airy_ai(VT a) {
  VM is_far = fabs(a) > (VT)AIRY_FAR;
  VT near = is_far ? (VT)0 : a, whole = a != a ? (VT)0 : rint(near);
  whole = fmin(fmax(whole, (VT)(-AIRY_MOST)), (VT)AIRY_MOST);
  VT result = airy_near(whole, near - whole);
  if (SOME(is_far)) result = is_far ? airy_far(is_far ? fabs(a) : (VT)AIRY_FAR, a < (VT)0) : result;
  return result;
}
