/* A reduction of a fused kernel as functions, behind formula.cl and a head that defines STAGE. With ROWS lanes are places
 * of one row, which come together at the end; else each is a column of its own. */
#undef VLOAD
#undef VSTORE
#define VLOAD(p) (*(p))
#define VSTORE(v, p) (*(p) = (v))
static VT CAT(nothing_, STAGE)(void) { return (VT)(INIT); }
static VT CAT(join_, STAGE)(VT a, VT b) { return COMBINE(a, b); }
static VT CAT(take_, STAGE)(VT total, __private const VEC_OF(RAW(D_IN)) * in, VT s, int n) {
  VT v = LOAD(D_IN, __private, in);
  v = first_lanes(MAP(v), n);
  return COMBINE(total, v);
}
static VT CAT(total_, STAGE)(VT v, VT s, CT number) {
  VT x = (VT)number;
#ifdef ROWS
  v = across(v);
  return (VT)first_lane(FINISH(v));
#else
  return FINISH(v);
#endif
}
static void CAT(give_, STAGE)(__private VEC_OF(RAW(D_OUT)) * out, VT v) { STORE(D_OUT, __private, out, v); }
