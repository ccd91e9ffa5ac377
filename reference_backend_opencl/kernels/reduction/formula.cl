/* What formulas of reductions are written with, and lanes that are brought together: in front of an eager pass, and of
 * each reduction of a fused kernel. The head defines ROWS and the formula, as reduction.cl says. */
#define MAXIMUM(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))
#define MINIMUM(a, b) (((a) < (b)) | ((a) != (a)) ? (a) : (b))
#if defined(CLASS_COMPLEX)
#define TRUTH(v) (VT)(NONZERO(v) ? 1 : 0, 0)
#define EITHER(a, b) ((a) + (b) - (a) * (b)) /* of truths, each of which is 0 or 1 */
#define BOTH(a, b) ((a) * (b))
#define NUMBER(v) (v)
#define QUOTIENT(v, x) ((v) / (x).x)
#define WHOLE(v) (VT)((v).x + (v).y, 0)
#define MODULUS(v) (VT)(hypot((v).x, (v).y), 0)
#define POWER(v, y) (VT)(pow((v).x, (PART)(y)), 0)
#else
#define TRUTH(v) (NONZERO(v) ? (VT)1 : (VT)0)
#define EITHER(a, b) MAXIMUM(a, b)
#define BOTH(a, b) MINIMUM(a, b)
#define NUMBER(v) ((v) == (v) ? (v) : (VT)0)
#define FINITE(v) (fabs(v) == (VT)INFINITY ? (VT)0 : (v))
#define QUOTIENT(v, x) ((v) / (x))
#define WHOLE(v) (v)
#define MODULUS(v) fabs(v)
#define POWER(v, y) POW(v, (VT)(y))
#endif
#if !defined(CLASS_INT)
#define LEAST (-INFINITY)
#define MOST INFINITY
#elif defined(IS_UNSIGNED)
#define LEAST 0
#define MOST (~(CT)0)
#else
#define LEAST ((CT)1 << (8 * sizeof(CT) - 1))
#define MOST (~LEAST)
#endif

/* With ROWS the first n lanes, and elsewhere what changes nothing. */
static VT first_lanes(VT v, int n) {
#if defined(ROWS) && VEC > 1
  if (n < VEC) {
    CT values[VEC];
    VSTORE(v, values);
    OVER_LANES
    for (int j = n; j < VEC; j++) values[j] = INIT;
    v = VLOAD(values);
  }
#endif
  return v;
}

/* All lanes into the first: each with the one half of the vector behind it, then a quarter, and so on. */
static VT across(VT v) {
#if VEC == 16
  v = COMBINE(v, v.s89abcdef89abcdef);
  v = COMBINE(v, v.s4567456745674567);
  v = COMBINE(v, v.s2323232323232323);
  v = COMBINE(v, v.s1111111111111111);
#elif VEC == 8
  v = COMBINE(v, v.s45674567);
  v = COMBINE(v, v.s23232323);
  v = COMBINE(v, v.s11111111);
#elif VEC == 4
  v = COMBINE(v, v.s2323);
  v = COMBINE(v, v.s1111);
#endif
  return v;
}

static CT first_lane(VT v) {
  CT lanes[VEC];
  VSTORE(v, lanes);
  return lanes[0];
}
