/* How two numbers of a scan become one, beside what common.cl has. */
#ifdef CLASS_FLOAT
/* log(exp(a) + exp(b)). Infinities without a difference stay as they are. */
static VT log_add(VT a, VT b) {
  VT most = fmax(a, b), least = fmin(a, b), sum = most + log1p(exp(least - most));
  sum = (least == most) & (fabs(most) == (VT)INFINITY) ? most : sum;
  return (a != a) | (b != b) ? a + b : sum;
}
#endif
