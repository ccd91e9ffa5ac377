/* Layer normalization and its gradient for rows that are held in registers, each element read once. After held.cl; the
 * heads and the parameters are those of forward.cl and of backward.cl's `gradient`, but for the last: what other
 * normalizations have of them is not looked at. BACKWARD: the gradient. */
DEFINE_HELD(value, D)
DEFINE_ACCESS(statistic, D_STATISTIC)

/* A row's weights, or its biases. */
static INLINED void hold_either(VT *v, held_row r, __global const RAW(D) * given, int has, CT else_all) {
  if (has)
    hold_value(v, r, given, 0);
  else
    EACH_HELD v[k] = (VT)else_all;
}
#ifdef HAS_WEIGHT
#define HAS_W 1
#else
#define HAS_W 0
#endif
#ifdef HAS_BIAS
#define HAS_B 1
#else
#define HAS_B 0
#endif

#ifndef BACKWARD
KERNEL forward(PLACE(out), PLACE(means), PLACE(rstds), CONST_PLACE(in), CONST_PLACE(weight), CONST_PLACE(bias),
               PLACE(running_mean), PLACE(running_var), CT epsilon, CT momentum, CT keep, held_space space) {
  GROUP_ARRAY(CT, shared);
  const held_row r = row_of(space);
  const VT count = (VT)(CT)space.size;
  VT x[VECTORS], other[VECTORS];
  hold_value(x, r, CONST_POINTER(D, in) + r.start, 0);
  const VT mean = (VT)team_sum(x, r, shared) / count;
  EACH_HELD {
    x[k] -= mean;
    other[k] = IS_HELD(r, k) ? x[k] * x[k] : (VT)0;
  }
  const VT rstd = (VT)1 / sqrt((VT)team_sum(other, r, shared) / count + epsilon);
  hold_either(other, r, CONST_POINTER(D, weight), HAS_W, 1);
  EACH_HELD x[k] = x[k] * rstd * other[k];
  hold_either(other, r, CONST_POINTER(D, bias), HAS_B, 0);
  EACH_HELD x[k] += other[k];
  give_value(x, r, POINTER(D, out) + r.start);
  if (r.is_there && r.member == 0) {
    const long row = r.start / space.size;
    put_statistic(POINTER(D_STATISTIC, means) + row, mean, 1);
    put_statistic(POINTER(D_STATISTIC, rstds) + row, rstd, 1);
  }
}
#else
KERNEL gradient(PLACE(out), PLACE(weight_out), PLACE(bias_out), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(means),
                CONST_PLACE(rstds), CONST_PLACE(weight), CT epsilon, held_space space) {
  GROUP_ARRAY(CT, shared);
  const held_row r = row_of(space);
  const VT count = (VT)(CT)space.size;
  const long row = r.is_there ? r.start / space.size : 0;
  const VT mean = get_statistic(CONST_POINTER(D_STATISTIC, means) + row, 1);
  const VT rstd = get_statistic(CONST_POINTER(D_STATISTIC, rstds) + row, 1);
  VT unit[VECTORS], g[VECTORS], other[VECTORS];
  hold_value(unit, r, CONST_POINTER(D, in) + r.start, 0);
  hold_value(g, r, CONST_POINTER(D, grad) + r.start, 0);
  hold_either(other, r, CONST_POINTER(D, weight), HAS_W, 1);
  EACH_HELD {
    unit[k] = (unit[k] - mean) * rstd;
    g[k] = g[k] * other[k];
    other[k] = IS_HELD(r, k) ? g[k] * unit[k] : (VT)0;
  }
  const VT all = (VT)team_sum(g, r, shared) / count, all_units = (VT)team_sum(other, r, shared) / count;
  EACH_HELD g[k] = rstd * (g[k] - all - unit[k] * all_units);
  give_value(g, r, POINTER(D, out) + r.start);
}
#endif
