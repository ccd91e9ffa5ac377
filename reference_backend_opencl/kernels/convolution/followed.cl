/* What calls that follow a convolution in its kernel make of its results (pointwise/fused_epilogue.c), after space.cl and
 * gaps.cl. What zeros have spoiled is mended before, since no kernel behind could see it. The head defines MENDS where they
 * may. Elsewhere this is empty. */
#ifdef FOLLOWED
/* Strides of what the kernel writes. */
typedef struct {
  long image, channel, place;
} result_strides;

/* What goes with all results. */
typedef struct {
  __global const RAW(D) *in, *weight;
  __global uchar *out;
  result_strides to;
  extras more;
} followers;

#define FOLLOWED_PARAMETERS EPILOGUE_PARAMETERS, result_strides to
#define FOLLOWERS {CONST_POINTER(D, in), CONST_POINTER(D, weight), out + offset_out, to, EXTRAS_WITH(bias + offset_bias)}

#ifdef MENDS
static VT mended(VT v, CT added, long first, int count, const space *s, const followers *f) {
  if (added != added || !SOME(v != v)) return v;
  const space w = whole_of(s);
  CT values[VEC];
  VSTORE(v, values);
  for (int j = 0; j < count; j++) {
    if (values[j] != values[j]) values[j] = summed_again(f->in, f->weight, added, &w, first + j);
  }
  return VLOAD(values);
}
#else
#define mended(v, added, first, count, s, f) (v)
#endif

/* `count` results, side by side from place `at` on, of a channel of so many places; `image` is one group of one, and
 * `added` the channel's bias. They take as many lanes as the eager kernels of the calls have. */
static void follow(VT v, CT added, long image, long channel, long places, long at, int count, const space *s,
                   const followers *f) {
  RAW(D) results[EPILOGUE_LANES];
  RAW(D_TO) made[EPILOGUE_LANES];
  STORE(D, __private, results, mended(v, added, (image * s->out_channels + channel) * places + at, count, s, f));
  for (int lane = VEC; lane < EPILOGUE_LANES; lane++) results[lane] = results[0];
  const long n = image / s->groups, row = image % s->groups * s->out_channels + channel;
  epilogue(made, results, row, at, n, count, f->more);
  __global RAW(D_TO) *to = (__global RAW(D_TO) *)f->out + n * f->to.image + row * f->to.channel + at * f->to.place;
  if (VEC == EPILOGUE_LANES && count == VEC && f->to.place == 1) {
    VSTORE(VLOAD(made), to);
    return;
  }
  int j = 0;
  for (; f->to.place == 1 && j + 4 <= count; j += 4) vstore4(vload4(0, made + j), 0, to + j);
  for (; j < count; j++) to[j * f->to.place] = made[j];
}
#else
#define FOLLOWED_PARAMETERS
#endif
