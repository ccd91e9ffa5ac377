/* Powers of real numbers, in front of pointwise.cl for the rows that ask for them (POWERS). The driver's pow of f32 may go
 * lane by lane (PoCL's does). This one has no branch and is right to 2 ulp: y log2(a) in two parts, of which the second
 * holds what the first rounds away, then 2 to that power. */
#if defined(CLASS_FLOAT) && !defined(IS_DOUBLE)
/* log2(a) of a positive finite a, its leading part and the rest. a = 2^e m with m around 1, s = (m - 1) / (m + 1), and
 * log2(m) = 2 / log(2) (s + s^3 q(s^2)), where q goes through Chebyshev nodes. */
static VT log2_in_parts(VT a, VT *rest) {
  VM is_small = a < (VT)0x1p-126f;
  VM bits = AS(MT, is_small ? a * (VT)0x1p24f : a), e = (bits - 0x3f3504f3) >> 23;
  VT m = AS(CT, bits - (e << 23)), d = m - (VT)1, n = m + (VT)1;
  VT s = d / n, s_rest = fma(-s, n, d) - s * (m - (n - (VT)1)), z = s * s; /* n rounds, too */
  VT q = fma((VT)0.116658072f, z, (VT)0.142753893f);
  q = fma(q, z, (VT)0.200000611f);
  q = fma(q, z, (VT)0.333333333f);
  VT tail = fma(s * z, q, s_rest / n);
  VT high = (VT)2.885390043f * s, low = fma((VT)2.885390043f, s, -high);
  low = fma((VT)2.885390043f, tail, fma((VT)3.85192598e-8f, s, low));
  VT whole = CONVERT(float, is_small ? e - 24 : e), sum = whole + high, more = high - (sum - whole) + low;
  VT leading = sum + more;
  *rest = more - (leading - sum);
  return leading;
}

/* 2 to the power of a + rest, where |a| is at most 200 and rest small. */
static VT exp2_of_parts(VT a, VT rest) {
  const VT shift = (VT)12582912.0f; /* 1.5 * 2^23: the sum's last bits are the nearest whole number */
  VT shifted = a + shift, f = (a - (shifted - shift)) + rest;
  VT p = fma((VT)1.54614679e-04f, f, (VT)1.34004550e-03f);
  p = fma(p, f, (VT)9.61805662e-03f);
  p = fma(p, f, (VT)5.55032716e-02f);
  p = fma(p, f, (VT)2.40226509e-01f);
  p = fma(p, f, (VT)6.93147207e-01f);
  p = fma(p, f, (VT)1);
  VM k = AS(MT, shifted) - 0x4b400000, half_of_it = k >> 1; /* in two factors: each is a normal number */
  return p * AS(CT, (half_of_it + 127) << 23) * AS(CT, (k - half_of_it + 127) << 23);
}

static VT power(VT a, VT b) {
  VT size = fabs(a), y = fmin(fmax(b, (VT)-0x1p40f), (VT)0x1p40f); /* beyond, results are 0, 1 and infinity already */
  VM is_zero = size == (VT)0, is_infinite = size == (VT)INFINITY;
  VT rest, logarithm = log2_in_parts(is_zero | is_infinite ? (VT)1 : size, &rest);
  VT exponent = y * logarithm, low = fma(y, logarithm, -exponent) + y * rest;
  VM is_far = fabs(exponent) > (VT)200;
  VT result = exp2_of_parts(fmin(fmax(exponent, (VT)-200), (VT)200), is_far ? (VT)0 : low);
  result = is_zero ? (b < (VT)0 ? (VT)INFINITY : (VT)0) : is_infinite ? (b < (VT)0 ? (VT)0 : (VT)INFINITY) : result;
  VM is_whole = trunc(b) == b, is_odd = is_whole & (trunc(b * (VT)0.5f) != b * (VT)0.5f);
  result = (AS(MT, a) < (VM)0) & is_odd ? -result : result;
  result = (a < (VT)0) & !is_infinite & !is_whole ? (VT)NAN : result;
  result = (a != a) | (b != b) ? a + b : result;
  return (b == (VT)0) | (a == (VT)1) ? (VT)1 : result;
}
#undef POW
#define POW(a, b) power(a, b)
#endif

/* All elements to the power of one number: few numbers are what most calls have. */
#if defined(CLASS_FLOAT)
static VT to_the(VT a, CT y) {
  if (y == 2) return a * a;
  if (y == 3) return a * a * a;
  if (y == -1) return (VT)1 / a;
  if (y == (CT)0.5f) return a == (VT)(-INFINITY) ? (VT)INFINITY : sqrt(a) + (VT)0; /* of -0 it is 0 */
  return POW(a, (VT)y);
}
#else
#define to_the(a, y) POW(a, (VT)(y))
#endif
