/* Convolutions, over three spatial dimensions (missing ones are of size 1). Rows of the input are first packed: cast,
 * padded with zeros, and taken apart into phases, so that the elements which a vector of outputs meets at one tap of the
 * window lie side by side, whatever stride, dilation and padding are:
 *   place = output * mul + off + tap_number * tap;  input = place / div, where div divides it
 * A forward convolution has mul = stride, a transposed one div = stride.
 *
 * The head defines D (the dtype), TAPS (the window's innermost size), TILE (channels of a work-item's result) and FORWARD
 * for the convolution itself, which is also the gradient of its input; else the gradients of weight and bias are made. */
#ifdef CLASS_FLOAT
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ADD(c, MUL(a, b))
#endif

typedef struct {
  long batch, groups, out_channels, in_channels; /* channels of one group */
  long out_size[3], in_size[3], taps[3];
  long mul[3], off[3], tap[3], div[3];
  long weight_group, weight_out, weight_in; /* strides; taps are innermost and contiguous */
  long phase, row, first;                   /* elements of a packed phase and row; the place its first element has */
  long segments, blocks, units, per_item;
} space;

#define DEFINE_LOAD(name, dtype)                                     \
  static CT CAT(one_, name)(__global const RAW(dtype) * at) {        \
    RAW(dtype) lanes[VEC];                                           \
    CT values[VEC];                                                  \
    for (int j = 0; j < VEC; j++) lanes[j] = *at;                    \
    VSTORE(LOAD(dtype, __private, lanes), values);                   \
    return values[0];                                                \
  }                                                                  \
  static void CAT(put_, name)(__global RAW(dtype) * at, int n, VT v) { \
    RAW(dtype) lanes[VEC];                                           \
    if (n == VEC) {                                                  \
      STORE(dtype, __global, at, v);                                 \
      return;                                                        \
    }                                                                \
    STORE(dtype, __private, lanes, v);                               \
    for (int j = 0; j < n; j++) at[j] = lanes[j];                    \
  }
DEFINE_LOAD(value, D)

/* Of single values, and by a mask. */
#ifdef CLASS_FLOAT
#define ADD1(a, b) ((a) + (b))
#else
#define ADD1(a, b) ((CT)((UT)(a) + (UT)(b)))
#endif
#define SELECT(mask, a, b) ((mask) != (VM)0 ? (a) : (b))

static CT total(VT v) {
  CT lanes[VEC], sum = (CT)0;
  VSTORE(v, lanes);
  for (int j = 0; j < VEC; j++) sum = ADD1(sum, lanes[j]);
  return sum;
}

/* ---- Packing ---- */

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void pack_rows(__global uchar *work, ulong offset_work,
                                                                           __global const uchar *in, ulong offset_in,
                                                                           space s) {
  long rows = s.batch * s.groups * s.in_channels * s.in_size[0] * s.in_size[1];
  long row = get_global_id(0) * s.per_item, last = min(row + s.per_item, rows), size = s.in_size[2];
  for (; row < last; row++) {
    __global const RAW(D) *from = (__global const RAW(D) *)(in + offset_in) + row * size;
    __global CT *to = (__global CT *)(work + offset_work) + row * s.row;
    for (long p = 0; p < s.mul[2]; p++) {
      for (long q = 0; q < s.phase; q += VEC) {
        long place = q * s.mul[2] + p + s.first;
        if (s.mul[2] == 1 && s.div[2] == 1 && place >= 0 && place + VEC <= size) {
          VSTORE(LOAD(D, __global, from + place), to + p * s.phase + q);
          continue;
        }
        RAW(D) lanes[VEC];
        for (int j = 0; j < VEC; j++, place += s.mul[2]) {
          long i = s.div[2] == 1 ? place : place / s.div[2];
          bool inside = place >= 0 && i < size && i * s.div[2] == place;
          lanes[j] = inside ? from[inside ? i : 0] : (RAW(D))0;
        }
        VSTORE(LOAD(D, __private, lanes), to + p * s.phase + q);
      }
    }
  }
}

#ifdef FORWARD
/* To [group][block][in channel][tap][TILE]. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void pack_weights(__global uchar *work, ulong offset_work,
                                                                              __global const uchar *weight,
                                                                              ulong offset_weight, space s) {
  long taps = s.taps[0] * s.taps[1] * s.taps[2], all = s.groups * s.blocks * s.in_channels * taps;
  long at = get_global_id(0);
  if (at >= all) return;
  long tap = at % taps, channel = at / taps % s.in_channels, block = at / taps / s.in_channels % s.blocks;
  long group = at / taps / s.in_channels / s.blocks;
  __global const RAW(D) *from = (__global const RAW(D) *)(weight + offset_weight) +
                                       group * s.weight_group + channel * s.weight_in + tap;
  __global CT *to = (__global CT *)(work + offset_work) + at * TILE;
#pragma unroll
  for (int b = 0; b < TILE; b++) {
    long out = block * TILE + b;
    to[b] = out < s.out_channels ? one_value(from + out * s.weight_out) : (CT)0;
  }
}

#endif

/* Where tap k of a row begins, for output 0. */
static long tap_start(const space *s, long k) {
  long place = s->off[2] + k * s->tap[2] - s->first;
  return place % s->mul[2] * s->phase + place / s->mul[2];
}

/* ---- Results ---- */

#ifdef FORWARD
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void convolve(
    __global uchar *out, ulong offset_out, __global const uchar *work, ulong offset_rows, ulong offset_weights,
    __global const uchar *bias, ulong offset_bias, long has_bias, space s) {
  long unit = get_global_id(0) * s.per_item, last = min(unit + s.per_item, s.units);
  long start[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; k++) start[k] = tap_start(&s, k);
  for (; unit < last; unit++) {
    long o2 = unit % s.segments * VEC, rest = unit / s.segments;
    long o1 = rest % s.out_size[1], o0 = rest / s.out_size[1] % s.out_size[0];
    rest /= s.out_size[0] * s.out_size[1];
    long block = rest % s.blocks, image = rest / s.blocks, group = image % s.groups; /* one group of one image */
    VT sum[TILE];
#pragma unroll
    for (int b = 0; b < TILE; b++) sum[b] = (VT)0;
    __global const CT *rows = (__global const CT *)(work + offset_rows) +
                              image * s.in_channels * s.in_size[0] * s.in_size[1] * s.row + o2;
    __global const CT *weights = (__global const CT *)(work + offset_weights) +
                                 (group * s.blocks + block) * s.in_channels * s.taps[0] * s.taps[1] * TAPS * TILE;
    for (long c = 0; c < s.in_channels; c++) {
      for (long k0 = 0; k0 < s.taps[0]; k0++) {
        long place0 = o0 * s.mul[0] + s.off[0] + k0 * s.tap[0], i0 = place0 / s.div[0];
        bool inside0 = place0 >= 0 && i0 < s.in_size[0] && i0 * s.div[0] == place0;
        for (long k1 = 0; k1 < s.taps[1]; k1++, weights += TAPS * TILE) {
          long place1 = o1 * s.mul[1] + s.off[1] + k1 * s.tap[1], i1 = place1 / s.div[1];
          if (!inside0 || place1 < 0 || i1 >= s.in_size[1] || i1 * s.div[1] != place1) continue;
          __global const CT *row = rows + ((c * s.in_size[0] + i0) * s.in_size[1] + i1) * s.row;
#pragma unroll
          for (int k = 0; k < TAPS; k++) {
            VT x = VLOAD(row + start[k]);
#pragma unroll
            for (int b = 0; b < TILE; b++) sum[b] = MULTIPLY_ADD(x, (VT)weights[k * TILE + b], sum[b]);
          }
        }
      }
    }
    long spatial = s.out_size[0] * s.out_size[1] * s.out_size[2];
    int n = (int)min((long)VEC, s.out_size[2] - o2);
#pragma unroll
    for (int b = 0; b < TILE; b++) {
      long channel = block * TILE + b;
      if (channel >= s.out_channels) continue;
      if (has_bias) {
        CT v = one_value((__global const RAW(D) *)(bias + offset_bias) + group * s.out_channels + channel);
        sum[b] = ADD(sum[b], (VT)v);
      }
      put_value((__global RAW(D) *)(out + offset_out) + (image * s.out_channels + channel) * spatial +
                  (o0 * s.out_size[1] + o1) * s.out_size[2] + o2,
              n, sum[b]);
    }
  }
}

#else
/* The gradient of a weight: for each tap, the products of an output's rows (packed one by one, `outs` elements each) and
 * the input's, summed. A work-item has a tile of TILE outputs' and TILE inputs' channels. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void weight_gradient(
    __global uchar *weight, ulong offset_weight, __global const uchar *work, ulong offset_rows, ulong offset_outs,
    long outs, space s) {
  long in_blocks = (s.in_channels + TILE - 1) / TILE, taps = s.taps[0] * s.taps[1] * TAPS;
  long at = get_global_id(0), k2 = at % TAPS, k1 = at / TAPS % s.taps[1], k0 = at / TAPS / s.taps[1] % s.taps[0];
  long rest = at / taps, in_block = rest % in_blocks, block = rest / in_blocks % s.blocks;
  long group = rest / in_blocks / s.blocks;
  if (group >= s.groups) return;
  long in_step = s.in_size[0] * s.in_size[1] * s.row, out_step = s.out_size[0] * s.out_size[1] * outs;
  CT sum[TILE][TILE];
#pragma unroll
  for (int a = 0; a < TILE; a++) {
#pragma unroll
    for (int b = 0; b < TILE; b++) sum[a][b] = (CT)0;
  }
  VM lane;
  MT lanes[VEC];
  for (int j = 0; j < VEC; j++) lanes[j] = s.out_size[2] % VEC == 0 || j < s.out_size[2] % VEC ? -1 : 0;
  lane = VLOAD(lanes);
  for (long n = 0; n < s.batch; n++) {
    for (long o0 = 0; o0 < s.out_size[0]; o0++) {
      long i0 = o0 * s.mul[0] + s.off[0] + k0 * s.tap[0];
      if (i0 < 0 || i0 >= s.in_size[0]) continue;
      VT part[TILE][TILE];
#pragma unroll
      for (int a = 0; a < TILE; a++) {
#pragma unroll
        for (int b = 0; b < TILE; b++) part[a][b] = (VT)0;
      }
      for (long o1 = 0; o1 < s.out_size[1]; o1++) {
        long i1 = o1 * s.mul[1] + s.off[1] + k1 * s.tap[1];
        if (i1 < 0 || i1 >= s.in_size[1]) continue;
        __global const CT *rows = (__global const CT *)(work + offset_rows) +
                                  (n * s.groups + group) * s.in_channels * in_step +
                                  (i0 * s.in_size[1] + i1) * s.row + tap_start(&s, k2);
        __global const CT *grads = (__global const CT *)(work + offset_outs) +
                                   (n * s.groups + group) * s.out_channels * out_step +
                                   (o0 * s.out_size[1] + o1) * outs;
        for (long o2 = 0; o2 < s.out_size[2]; o2 += VEC) {
          VT g[TILE], x[TILE];
#pragma unroll
          for (int a = 0; a < TILE; a++) g[a] = VLOAD(grads + min(block * TILE + a, s.out_channels - 1) * out_step + o2);
#pragma unroll
          for (int b = 0; b < TILE; b++) {
            x[b] = VLOAD(rows + min(in_block * TILE + b, s.in_channels - 1) * in_step + o2);
            if (o2 + VEC > s.out_size[2]) x[b] = SELECT(lane, x[b], (VT)0);
          }
#pragma unroll
          for (int a = 0; a < TILE; a++) {
#pragma unroll
            for (int b = 0; b < TILE; b++) part[a][b] = MULTIPLY_ADD(g[a], x[b], part[a][b]);
          }
        }
      }
#pragma unroll
      for (int a = 0; a < TILE; a++) {
#pragma unroll
        for (int b = 0; b < TILE; b++) sum[a][b] = ADD1(sum[a][b], total(part[a][b]));
      }
    }
  }
  __global RAW(D) *to = (__global RAW(D) *)(weight + offset_weight);
#pragma unroll
  for (int a = 0; a < TILE; a++) {
#pragma unroll
    for (int b = 0; b < TILE; b++) {
      long out = block * TILE + a, in = in_block * TILE + b;
      if (out >= s.out_channels || in >= s.in_channels) continue;
      put_value(to + ((group * s.out_channels + out) * s.in_channels + in) * taps + (k0 * s.taps[1] + k1) * TAPS + k2, 1,
              (VT)sum[a][b]);
    }
  }
}

/* The gradient of a bias: the sum of a channel over all images, from the packed rows. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void bias_gradient(__global uchar *bias, ulong offset_bias,
                                                                               __global const uchar *grad,
                                                                               ulong offset_grad, long images,
                                                                               long channels, long spatial) {
  long channel = get_global_id(0);
  if (channel >= channels) return;
  CT sum = (CT)0;
  for (long n = 0; n < images; n++) {
    __global const RAW(D) *from =
        (__global const RAW(D) *)(grad + offset_grad) + (n * channels + channel) * spatial;
    VT part = (VT)0;
    long i = 0, block = 0;
    for (; i + VEC <= spatial; i += VEC) {
      part = ADD(part, LOAD(D, __global, from + i));
      if (++block % 64 == 0) {
        sum = ADD1(sum, total(part));
        part = (VT)0;
      }
    }
    if (i < spatial) {
      RAW(D) lanes[VEC];
      for (int j = 0; j < VEC; j++) lanes[j] = i + j < spatial ? from[i + j] : (RAW(D))0;
      part = ADD(part, LOAD(D, __private, lanes));
    }
    sum = ADD1(sum, total(part));
  }
  put_value((__global RAW(D) *)(bias + offset_bias) + channel, 1, (VT)sum);
}
#endif
