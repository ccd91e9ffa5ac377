/* softmax.cl for rows that are held in registers. After held.cl; the head defines what it defines there. */
DEFINE_HELD(out, D_OUT)
DEFINE_HELD(in, D_IN)
DEFINE_HELD(mask, bool)

#define SAFE_SOFTMAX 2
#define SOFTMAX_BACKWARD 3
#define LOG_SOFTMAX_BACKWARD 4
#define LOG_SOFTMAX 1

KERNEL softmax(PLACE(out), CONST_PLACE(a), CONST_PLACE(b), CONST_PLACE(mask), held_space space) {
  GROUP_ARRAY(CT, shared);
  const held_row r = row_of(space);
  VT x[VECTORS], term[VECTORS];
#if OP == SOFTMAX_BACKWARD || OP == LOG_SOFTMAX_BACKWARD
  VT y[VECTORS];
  hold_in(x, r, CONST_POINTER(D_IN, a) + r.start, 0);
  hold_in(y, r, CONST_POINTER(D_IN, b) + r.start, 0);
#ifdef MASKED
  hold_mask(term, r, mask + offset_mask + r.start, 0);
  EACH_HELD {
    x[k] = term[k] == (VT)0 ? x[k] : (VT)0;
    y[k] = term[k] == (VT)0 ? y[k] : (VT)0;
  }
#endif
#if OP == SOFTMAX_BACKWARD
  EACH_HELD term[k] = x[k] * y[k];
  const VT sum = (VT)team_sum(term, r, shared);
  EACH_HELD x[k] = y[k] * (x[k] - sum);
#else
  const VT sum = (VT)team_sum(x, r, shared);
  EACH_HELD x[k] = x[k] - EXP(y[k]) * sum;
#endif
#else
  hold_in(x, r, CONST_POINTER(D_IN, a) + r.start, -INFINITY);
  const VT most = (VT)team_max(x, r, shared);
  EACH_HELD term[k] = IS_HELD(r, k) ? EXP(x[k] - most) : (VT)0;
  const VT sum = (VT)team_sum(term, r, shared);
#if OP == LOG_SOFTMAX
  const VT logarithm = log(sum);
  EACH_HELD x[k] = x[k] - most - logarithm;
#elif OP == SAFE_SOFTMAX
  EACH_HELD x[k] = most == (VT)(-INFINITY) ? (VT)0 : term[k] / sum;
#else
  EACH_HELD x[k] = term[k] / sum;
#endif
#endif
  give_out(x, r, POINTER(D_OUT, out) + r.start);
}
