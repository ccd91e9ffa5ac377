/* Orthogonal polynomials, in front of pointwise.cl for the rows that ask for them (POLYNOMIALS). Which one is a number, so
 * that they share a program. */
static VT apart_sin(VT a);
static VT apart_cos(VT a);

enum { T, U, V, W, H, HE, L, P }; /* the rows of ops.c name them by number */

/* p_1 = s_x x + s; p_(k+1) = (((x + k_x k) x + one + k_one k) p_k - (before + k_before k) p_(k-1)) / (1 + divisor k). */
__constant CT recurrences[][9] = {
    /* s_x, s, x, k_x, one, k_one, before, k_before, divisor */
    {1, 0, 2, 0, 0, 0, 1, 0, 0}, {2, 0, 2, 0, 0, 0, 1, 0, 0},  {2, -1, 2, 0, 0, 0, 1, 0, 0},
    {2, 1, 2, 0, 0, 0, 1, 0, 0}, {2, 0, 2, 0, 0, 0, 0, 2, 0},  {1, 0, 1, 0, 0, 0, 0, 1, 0},
    {-1, 1, -1, 0, 1, 2, 0, 1, 1}, {1, 0, 1, 2, 0, 0, 0, 1, 1},
};
#define BY_ANGLE_FROM 7
#ifdef IS_DOUBLE
#define HERMITE_MOST 512
#else
#define HERMITE_MOST 128
#endif

/* A lane is done at its degree, or when it is no number any more. */
static VT by_recurrence(int kind, VT n, VT x) {
  __constant const CT *c = recurrences[kind];
  VT before = (VT)1, now = fma((VT)c[0], x, (VT)c[1]);
  for (long k = 1; SOME(((VT)(CT)k < n) & (now == now)); k++) {
    CT at = (CT)k;
    VM goes_on = (VT)at < n;
    VT factor = fma((VT)(c[2] + c[3] * at), x, (VT)(c[4] + c[5] * at));
    VT next = factor * now - (VT)(c[6] + c[7] * at) * before;
    if (c[8] > 0) next /= (VT)(c[8] * at + 1);
    next = now == now ? next : now;
    before = goes_on ? now : before;
    now = goes_on ? next : now;
  }
  return now;
}

/* Chebyshev's of half the angle of |x|, whose sine squared is `rest`: V and W of -x are W and V of x. */
static VT by_angle(int kind, VT n, VM is_left, VT rest) {
  VT half_angle = asin(sqrt(rest)), odd = n - (VT)2 * floor(n * (VT)0.5f);
  VT angle = kind == T ? (VT)2 * half_angle * n : kind == U ? (VT)2 * half_angle * (n + (VT)1) : half_angle * ((VT)2 * n + (VT)1);
  VT result = apart_cos(angle), ratio = apart_sin(angle);
  if (kind == U) result = rest == (VT)0 ? n + (VT)1 : ratio / sin((VT)2 * half_angle);
  if (kind == V || kind == W) {
    VM is_w = kind == W ? is_left == (VM)0 : is_left != (VM)0;
    VT w = rest == (VT)0 ? (VT)2 * n + (VT)1 : ratio / sin(half_angle);
    result = is_w ? w : result / cos(half_angle);
  }
  return is_left & (odd != (VT)0) ? -result : result;
}

static VT polynomial(VT a, VT b, CT number, CT is_shifted) {
  int kind = (int)number;
  VT n = trunc(b), x = is_shifted > 0 ? a + a - (VT)1 : a;
  n = (n >= (VT)0) & (n < (VT)0x1p63f) ? n : (VT)(-1);
  VM turns = (VM)0, known = (VM)0;
  VT result = (VT)1;
  if (kind <= W) {
    turns = (n >= (VT)BY_ANGLE_FROM) & (fabs(x) <= (VT)1);
    if (SOME(turns)) {
      VT rest = (VT)0.5f * ((VT)1 - fabs(x));
      if (is_shifted > 0) rest = x < (VT)0 ? a : (VT)1 - a;
      result = by_angle(kind, n, x < (VT)0, turns ? rest : (VT)0.5f);
    }
  }
  if (kind == P) known = fabs(x) == (VT)1;
  if (kind == L) known = x == (VT)0;
  if (kind == H || kind == HE) known = n > (VT)HERMITE_MOST;
  VT odd = n - (VT)2 * floor(n * (VT)0.5f);
  if (kind == P) result = (x < (VT)0) & (odd != (VT)0) ? (VT)(-1) : (VT)1;
  if (kind == H || kind == HE) result = (VT)NAN;
  known |= turns;
  VT walked = by_recurrence(kind, known ? (VT)(-1) : n, x);
  result = known ? result : walked;
  result = n == (VT)0 ? (VT)1 : result;
  return n < (VT)0 ? (VT)0 : result;
}
