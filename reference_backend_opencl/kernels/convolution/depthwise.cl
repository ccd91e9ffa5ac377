/* Convolutions of one input channel a group, in f32 on GPUs, after window.cl: each element serves few products, so it is
 * read where it lies, and nothing is multiplied that is not an element. The head defines the window's sizes T0, T1 and
 * T2, MUL2, TAP2 and DIV2 of the innermost dimension, and SEEN, how many elements of a row four windows side by side span. */

/* The element that tap t of output o meets; -1: none. */
static INLINED int met_at(const window *s, int d, int o, int t) {
  const int place = o * (int)s->mul[d] + (int)s->off[d] + t * (int)s->tap[d], i = place / (int)s->div[d];
  return place >= 0 && i * (int)s->div[d] == place && i < (int)s->in_size[d] ? i : -1;
}

#ifdef FORWARD
#define FOUR 4 /* outputs side by side, a work-item */

static INLINED void add_taps(float sum[FOUR], __global const float *row, __global const float *weight, int x, int size,
                             int off) {
#if DIV2 == 1
  /* What four windows see, each element once. */
  const int least = TAP2 < 0 ? (T2 - 1) * TAP2 : 0, first = x * MUL2 + off + least;
  float seen[SEEN];
#pragma unroll
  for (int i = 0; i < SEEN; i++) seen[i] = (uint)(first + i) < (uint)size ? row[first + i] : 0;
#pragma unroll
  for (int t = 0; t < T2; t++) {
    const float w = weight[t];
#pragma unroll
    for (int j = 0; j < FOUR; j++) {
      const int i = j * MUL2 + t * TAP2 - least;
      if ((uint)(first + i) < (uint)size) sum[j] = fma(seen[i], w, sum[j]);
    }
  }
#else
#pragma unroll
  for (int t = 0; t < T2; t++) {
#pragma unroll
    for (int j = 0; j < FOUR; j++) {
      const int place = (x + j) * MUL2 + off + t * TAP2, i = place / DIV2;
      if (place >= 0 && i * DIV2 == place && i < size) sum[j] = fma(row[i], weight[t], sum[j]);
    }
  }
#endif
}

KERNEL_OF(64, 1) depthwise(PLACE(out), CONST_PLACE(in), CONST_PLACE(weight), CONST_PLACE(bias), long has_bias, window s) {
  const long segments = (s.out_size[2] + FOUR - 1) / FOUR, at = get_global_id(0), line = at / segments;
  const long channels = s.groups * s.out_channels, plane = line / (s.out_size[0] * s.out_size[1]);
  if (plane >= s.batch * channels) return;
  const int x = (int)(at - line * segments) * FOUR;
  const int y = (int)(line - plane * s.out_size[0] * s.out_size[1]), o0 = y / (int)s.out_size[1];
  const int o1 = y - o0 * (int)s.out_size[1], channel = (int)(plane % channels), group = channel / (int)s.out_channels;
  __global const float *from =
      CONST_POINTER(D, in) + (plane / channels * s.groups + group) * VOLUME(s.in_size);
  __global const float *weights = CONST_POINTER(D, weight) + group * s.weight_group +
                                  (channel - (long)group * s.out_channels) * s.weight_out;
  float sum[FOUR] = {0, 0, 0, 0};
#pragma unroll
  for (int t0 = 0; t0 < T0; t0++) {
#pragma unroll
    for (int t1 = 0; t1 < T1; t1++) {
      const int i0 = met_at(&s, 0, o0, t0), i1 = met_at(&s, 1, o1, t1);
      if (i0 >= 0 && i1 >= 0)
        add_taps(sum, from + ((long)i0 * s.in_size[1] + i1) * s.in_size[2], weights + (t0 * T1 + t1) * T2, x,
                 (int)s.in_size[2], (int)s.off[2]);
    }
  }
  const float added = has_bias ? CONST_POINTER(D, bias)[channel] : 0;
  const long to = line * s.out_size[2] + x;
  __global float *o = POINTER(D, out) + to;
  if (s.out_size[2] % FOUR == 0 && offset_out % 16 == 0) {
    *(__global float4 *)o = (float4)(sum[0], sum[1], sum[2], sum[3]) + (float4)added;
  } else {
#pragma unroll
    for (int j = 0; j < FOUR; j++) {
      if (x + j < s.out_size[2]) o[j] = sum[j] + added;
    }
  }
}

#else
/* The gradient of the weight: a group of work-items sums what one channel of some images gives, in all taps at a time. */
#define LANES 128
#define ALL_TAPS (T0 * T1 * T2)
#define TEAM 8   /* work-items that add up what the others have of a tap */
#define SPAN 256 /* outputs, whose sums are added to those before: so rounding errors do not grow with their number */

KERNEL_OF(LANES, 1) depthwise_weight(CONST_PLACE(in), CONST_PLACE(grad), PLACE(parts), window s) {
  __local float all[ALL_TAPS * (LANES + 1)], few[ALL_TAPS * TEAM];
  const int lane = get_local_id(0), outs = (int)VOLUME(s.out_size);
  const long channels = s.groups * s.out_channels, split = get_group_id(0) / channels;
  const long channel = get_group_id(0) - split * channels, group = channel / s.out_channels;
  const long begin = split * s.split_depth, end = min(begin + s.split_depth, s.batch);
  float total[ALL_TAPS];
#pragma unroll
  for (int t = 0; t < ALL_TAPS; t++) total[t] = 0;
  for (long image = begin; image < end; image++) {
    __global const float *from = CONST_POINTER(D, in) + (image * s.groups + group) * VOLUME(s.in_size);
    __global const float *grads = CONST_POINTER(D, grad) + (image * channels + channel) * outs;
    for (int first = lane; first < outs; first += LANES * SPAN) {
      float sum[ALL_TAPS];
#pragma unroll
      for (int t = 0; t < ALL_TAPS; t++) sum[t] = 0;
      const int last = min(outs, first + LANES * SPAN);
      for (int o = first; o < last; o += LANES) {
        const float g = grads[o];
        const int line = o / (int)s.out_size[2], o2 = o - line * (int)s.out_size[2];
        const int o0 = line / (int)s.out_size[1], o1 = line - o0 * (int)s.out_size[1];
#pragma unroll
        for (int t = 0; t < ALL_TAPS; t++) {
          const int i0 = met_at(&s, 0, o0, t / T2 / T1), i1 = met_at(&s, 1, o1, t / T2 % T1), i2 = met_at(&s, 2, o2, t % T2);
          if (i0 >= 0 && i1 >= 0 && i2 >= 0)
            sum[t] = fma(g, from[(i0 * (int)s.in_size[1] + i1) * (int)s.in_size[2] + i2], sum[t]);
        }
      }
#pragma unroll
      for (int t = 0; t < ALL_TAPS; t++) total[t] += sum[t];
    }
  }
#pragma unroll
  for (int t = 0; t < ALL_TAPS; t++) all[t * (LANES + 1) + lane] = total[t];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int at = lane; at < ALL_TAPS * TEAM; at += LANES) {
    float sum = 0;
    for (int i = at % TEAM; i < LANES; i += TEAM) sum += all[at / TEAM * (LANES + 1) + i];
    few[at] = sum;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int t = lane; t < ALL_TAPS; t += LANES) {
    float sum = 0;
    for (int i = 0; i < TEAM; i++) sum += few[t * TEAM + i];
    ((__global float *)(parts + offset_parts))[(split * channels + channel) * ALL_TAPS + t] = sum;
  }
}
#endif
