/* After a product: what zeros in the padding, and between the elements of a transposed convolution's input, have
 * spoiled. The product multiplies them, and zero times an infinity or a NaN is NaN. That is all they can do, so each
 * result that is NaN is summed once more, over elements alone, until a term of its own makes it NaN.
 *
 * After space.cl, in the program of the product or in one of its own; the head defines D and, for a convolution, FORWARD: else
 * it is the gradient of a weight; PLANE as convolution.cl has it and SPREAD as phases.cl. */
/* The element of a dimension at a place; -1: there is none. */
static long element_at(long place, long div, long size) {
  if (div == 1) return place >= 0 && place < size ? place : -1;
  long i = place / div;
  return place >= 0 && i < size && i * div == place ? i : -1;
}

#ifdef FORWARD
/* What one channel of the input gives for the output at (o0, o1, o2). */
static CT sum_window(__global const RAW(D) * in, __global const RAW(D) * weight, const space *s, long o0, long o1,
                     long o2) {
  CT sum = (CT)0;
  for (long k0 = 0; k0 < s->taps[0]; k0++) {
    long i0 = element_at(o0 * s->mul[0] + s->off[0] + k0 * s->tap[0], s->div[0], s->in_size[0]);
    for (long k1 = 0; i0 >= 0 && k1 < s->taps[1]; k1++) {
      long i1 = element_at(o1 * s->mul[1] + s->off[1] + k1 * s->tap[1], s->div[1], s->in_size[1]);
      for (long k2 = 0; i1 >= 0 && k2 < s->taps[2]; k2++) {
        long i2 = element_at(o2 * s->mul[2] + s->off[2] + k2 * s->tap[2], s->div[2], s->in_size[2]);
        if (i2 < 0) continue;
        sum += one_value(in + (i0 * s->in_size[1] + i1) * s->in_size[2] + i2) *
               one_value(weight + (k0 * s->taps[1] + k1) * s->taps[2] + k2);
      }
    }
  }
  return sum;
}

static CT summed_again(__global const RAW(D) * in, __global const RAW(D) * weight, CT sum_of_bias, const space *s, long at) {
  long o2 = at % s->out_size[2], o1 = at / s->out_size[2] % s->out_size[1];
  long rest = at / s->out_size[2] / s->out_size[1], o0 = rest % s->out_size[0];
  long channel = rest / s->out_size[0] % s->out_channels, image = rest / s->out_size[0] / s->out_channels;
  long group = image % s->groups; /* `image` is one group of one */
  CT sum = (CT)0;
  in += image * s->in_channels * s->in_size[0] * s->in_size[1] * s->in_size[2];
  weight += group * s->weight_group + channel * s->weight_out;
  for (long c = 0; c < s->in_channels && sum == sum; c++) {
    sum += sum_window(in, weight, s, o0, o1, o2);
    in += s->in_size[0] * s->in_size[1] * s->in_size[2];
    weight += s->weight_in;
  }
  return sum + sum_of_bias;
}

static void again(__global RAW(D) * out, __global const RAW(D) * in, __global const RAW(D) * weight, CT sum_of_bias,
                  const space *s, long at) {
  put_value(out + at, (VT)summed_again(in, weight, sum_of_bias, s, at), 1);
}

/* The convolution before its planes were laid out as rows, or its rows phase by phase. */
static space whole_of(const space *s) {
  space w = *s;
#ifdef SPREAD
  w.div[2] = SPREAD;
#endif
#ifdef PLANE
  const plane *p = &s->plane;
  w.out_size[1] = p->height;
  w.out_size[2] = p->width;
  w.in_size[1] = p->in_height;
  w.in_size[2] = p->in_width;
  w.taps[1] = s->taps[2] / p->across;
  w.taps[2] = p->across;
  w.off[1] = p->top + (p->start - s->off[2] + p->left) / p->pitch;
#endif
  return w;
}

#else
/* What one image gives for a tap; in and grad are its channels'. */
static CT sum_image(__global const RAW(D) * in, __global const RAW(D) * grad, const space *s, long k0, long k1,
                    long k2) {
  CT sum = (CT)0;
  for (long o0 = 0; o0 < s->out_size[0]; o0++) {
    long i0 = element_at(o0 * s->mul[0] + s->off[0] + k0 * s->tap[0], 1, s->in_size[0]);
    for (long o1 = 0; i0 >= 0 && sum == sum && o1 < s->out_size[1]; o1++) {
      long i1 = element_at(o1 * s->mul[1] + s->off[1] + k1 * s->tap[1], 1, s->in_size[1]);
      CT row = (CT)0;
      for (long o2 = 0; i1 >= 0 && o2 < s->out_size[2]; o2++) {
        long i2 = element_at(o2 * s->mul[2] + s->off[2] + k2 * s->tap[2], 1, s->in_size[2]);
        if (i2 < 0) continue;
        row += one_value(in + (i0 * s->in_size[1] + i1) * s->in_size[2] + i2) *
               one_value(grad + (o0 * s->out_size[1] + o1) * s->out_size[2] + o2);
      }
      sum += row;
    }
  }
  return sum;
}

static void again(__global RAW(D) * weight, __global const RAW(D) * in, __global const RAW(D) * grad, const space *s,
                  long at) {
  long k2 = at % s->taps[2], k1 = at / s->taps[2] % s->taps[1], rest = at / s->taps[2] / s->taps[1];
  long k0 = rest % s->taps[0], pair = rest / s->taps[0];
  long channel = pair % s->in_channels, out = pair / s->in_channels; /* of all groups */
  long group = out / s->out_channels, spatial = s->in_size[0] * s->in_size[1] * s->in_size[2];
  long outs = s->out_size[0] * s->out_size[1] * s->out_size[2];
  CT sum = (CT)0;
  in += (group * s->in_channels + channel) * spatial;
  grad += out * outs;
  for (long n = 0; n < s->batch && sum == sum; n++) {
    sum += sum_image(in, grad, s, k0, k1, k2);
    in += s->groups * s->in_channels * spatial;
    grad += s->groups * s->out_channels * outs;
  }
  put_value(weight + at, (VT)sum, 1);
}
#endif

/* s.units vectors of results, s.per_item of them a work-item. */
#ifdef FORWARD
KERNEL mend(PLACE(out), CONST_PLACE(in), CONST_PLACE(factor), CONST_PLACE(bias), long has_bias, space s) {
  long all = s.batch * s.groups * s.out_channels * s.out_size[0] * s.out_size[1] * s.out_size[2];
#else
KERNEL mend(PLACE(out), CONST_PLACE(in), CONST_PLACE(factor), space s) {
  long all = s.groups * s.out_channels * s.in_channels * s.taps[0] * s.taps[1] * s.taps[2];
#endif
  __global RAW(D) *to = POINTER(D, out);
  long unit = get_global_id(0) * s.per_item, last = min(unit + s.per_item, s.units);
  for (; unit < last; unit++) {
    int count = (int)min((long)VEC, all - unit * VEC);
    VT v = get_value(to + unit * VEC, count);
    if (!SOME(v != v)) continue;
    for (long at = unit * VEC; at < unit * VEC + count; at++) {
      CT spoiled = one_value(to + at);
      if (spoiled == spoiled) continue;
#ifdef FORWARD
      long channel = at / (s.out_size[0] * s.out_size[1] * s.out_size[2]) % (s.groups * s.out_channels);
      CT start = has_bias ? one_value(CONST_POINTER(D, bias) + channel) : (CT)0;
      if (start == start) again(to, CONST_POINTER(D, in), CONST_POINTER(D, factor), start, &s, at);
#else
      again(to, CONST_POINTER(D, in), CONST_POINTER(D, factor), &s, at);
#endif
    }
  }
}
