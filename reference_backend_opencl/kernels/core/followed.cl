/* What calls that follow in a kernel make of its results (pointwise/fused_epilogue.c): of VEC numbers of a line from a
 * column on, of which n are there, rounded as the result is. They take as many lanes as the eager kernels of these calls
 * have. After common.cl, in such kernels alone. */
static VT followed_by(VT value, long line, long column, long batch, int n, extras more) {
  RAW(D) results[EPILOGUE_LANES];
  RAW(D_TO) lanes[EPILOGUE_LANES];
  STORE(D, __private, results, value);
  for (int lane = VEC; lane < EPILOGUE_LANES; lane++) results[lane] = results[0];
  epilogue(lanes, results, line, column, batch, n, more);
  return LOAD(D_TO, __private, lanes);
}
