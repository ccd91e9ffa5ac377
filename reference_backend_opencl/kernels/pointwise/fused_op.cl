/* One op of a fused kernel as a function, behind step.cl and a head that defines NUMBER, INPUTS and EXPRESSION: it takes
 * and gives elements as they would lie in memory, rounded to their dtypes, so that it gives what the eager kernel does.
 * Here they are vectors, not arrays: PoCL's vstore16 comes down to eight stores, which keep its values in memory. */
#undef VLOAD
#undef VSTORE
#define VLOAD(p) (*(p))
#define VSTORE(v, p) (*(p) = (v))
#ifdef VALUE_0
#define PARAMETER_0 , CT in_0
#define GET_0 VT a = (VT)in_0;
#elif INPUTS > 0
#define PARAMETER_0 , __private const VEC_OF(RAW(D_0)) * in_0
#define GET_0 TYPE_0 a = TAKE_0(__private, in_0);
#else
#define PARAMETER_0
#define GET_0
#endif
#ifdef VALUE_1
#define PARAMETER_1 , CT in_1
#define GET_1 VT b = (VT)in_1;
#elif INPUTS > 1
#define PARAMETER_1 , __private const VEC_OF(RAW(D_1)) * in_1
#define GET_1 TYPE_1 b = TAKE_1(__private, in_1);
#else
#define PARAMETER_1
#define GET_1
#endif
#ifdef VALUE_2
#define PARAMETER_2 , CT in_2
#define GET_2 VT c = (VT)in_2;
#elif INPUTS > 2
#define PARAMETER_2 , __private const VEC_OF(RAW(D_2)) * in_2
#define GET_2 TYPE_2 c = TAKE_2(__private, in_2);
#else
#define PARAMETER_2
#define GET_2
#endif
#if INPUTS > 3 /* those of a batch normalization */
#define PARAMETER_3 , __private const VEC_OF(RAW(D_3)) * in_3
#define PARAMETER_4 , __private const VEC_OF(RAW(D_4)) * in_4
#define GET_3 VT d = LOAD(D_3, __private, in_3);
#define GET_4 VT e = LOAD(D_4, __private, in_4);
#else
#define PARAMETER_3
#define PARAMETER_4
#define GET_3
#define GET_4
#endif
#ifdef SECOND
#define PARAMETER_SECOND , __private VEC_OF(RAW(D_SECOND)) * second
#define PUT_SECOND STORE(D_SECOND, __private, second, (SECOND));
#else
#define PARAMETER_SECOND
#define PUT_SECOND
#endif

static void CAT(op_, NUMBER)(__private VEC_OF(RAW(D_OUT)) * out PARAMETER_SECOND PARAMETER_0 PARAMETER_1 PARAMETER_2 PARAMETER_3 PARAMETER_4, CT number_x,
                             CT number_y, CT number_z) {
  VT x = (VT)number_x, y = (VT)number_y, z = (VT)number_z;
  GET_0 GET_1 GET_2 GET_3 GET_4
  STORE_RESULT(__private, out, (EXPRESSION));
  PUT_SECOND
}
