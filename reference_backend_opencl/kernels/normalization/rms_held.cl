/* rms.cl for rows that are held in registers. After held.cl; the head defines what it defines there. */
DEFINE_HELD(value, D)
DEFINE_ACCESS(rstd, D_RSTD)

static INLINED void hold_weight(VT *v, held_row r, __global const RAW(D) * weights) {
#if HAS_WEIGHT
  hold_value(v, r, weights, 0);
#else
  EACH_HELD v[k] = (VT)1;
#endif
}

#ifndef BACKWARD
KERNEL rms_norm(PLACE(out), PLACE(rstds), CONST_PLACE(in), CONST_PLACE(weight), CT epsilon, held_space space) {
  GROUP_ARRAY(CT, shared);
  const held_row r = row_of(space);
  VT x[VECTORS], other[VECTORS];
  hold_value(x, r, CONST_POINTER(D, in) + r.start, 0);
  EACH_HELD other[k] = x[k] * x[k];
  const VT rstd = (VT)1 / sqrt((VT)team_sum(other, r, shared) / (VT)(CT)space.size + epsilon);
  hold_weight(other, r, CONST_POINTER(D, weight));
  EACH_HELD x[k] = x[k] * rstd * other[k];
  give_value(x, r, POINTER(D, out) + r.start);
  if (r.is_there && r.member == 0) put_rstd(POINTER(D_RSTD, rstds) + r.start / space.size, rstd, 1);
}
#else
KERNEL rms_norm_backward(PLACE(out), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(rstds), CONST_PLACE(weight),
                         held_space space) {
  GROUP_ARRAY(CT, shared);
  const held_row r = row_of(space);
  VT x[VECTORS], g[VECTORS], other[VECTORS];
  hold_value(x, r, CONST_POINTER(D, in) + r.start, 0);
  hold_value(g, r, CONST_POINTER(D, grad) + r.start, 0);
  hold_weight(other, r, CONST_POINTER(D, weight));
  EACH_HELD {
    g[k] = g[k] * other[k];
    other[k] = g[k] * x[k];
  }
  const VT rstd = r.is_there ? get_rstd(CONST_POINTER(D_RSTD, rstds) + r.start / space.size, 1) : (VT)0;
  const VT slope = (VT)team_sum(other, r, shared) / (VT)(CT)space.size * rstd * rstd;
  EACH_HELD x[k] = rstd * (g[k] - x[k] * slope);
  give_value(x, r, POINTER(D, out) + r.start);
}
#endif
