/* The gradients of weight and bias, after convolution.cl, whose head they have, without FORWARD. */
#ifndef FORWARD
/* The gradient of a weight: for each tap, the products of an output's rows (packed one by one, `outs` elements each) and
 * the input's, summed. A work-item has a tile of TILE outputs' and TILE inputs' channels: on CPUs for all taps of a row of
 * the window if these are not many, so that what one tap has read is still near for the next, else for one tap. */
#if LOCAL == 1 && !defined(MANY_TAPS)
#define EACH TAPS
#else
#define EACH 1
#endif

/* Which elements of a vector of outputs count: those of `lane` at the end of a row, in a PLANE those inside its rows. */
typedef struct {
  VM lane;
#ifdef PLANE
  VM first, step;
#endif
} inside;

static inside inside_of(const space *s) {
  inside i;
  MT lane[VEC];
  for (int j = 0; j < VEC; j++) lane[j] = s->out_size[2] % VEC == 0 || j < s->out_size[2] % VEC ? -1 : 0;
  i.lane = VLOAD(lane);
#ifdef PLANE
  for (int j = 0; j < VEC; j++) lane[j] = j % s->plane.pitch;
  i.first = VLOAD(lane);
  i.step = (VM)(VEC % s->plane.pitch);
#endif
  return i;
}

/* Adds what a row of outputs gives for one tap. */
static void add_row(VT part[TILE][TILE], __global const CT *grad, const long grad_channels[TILE],
                    __global const CT *row, const long row_channels[TILE], const space *s, const inside *i) {
#ifdef PLANE
  VM column = i->first;
#endif
  for (long o2 = 0; o2 < s->out_size[2]; o2 += VEC) {
    VT g[TILE], x[TILE];
    bool tail = o2 + VEC > s->out_size[2];
#pragma unroll
    for (int a = 0; a < TILE; a++) g[a] = VLOAD(grad + grad_channels[a] + o2);
#ifdef PLANE
    VM counts = column < (VM)(MT)s->plane.width;
    if (tail) counts &= i->lane;
    column += i->step;
    column -= (column >= (VM)(MT)s->plane.pitch) & (VM)(MT)s->plane.pitch;
#endif
#pragma unroll
    for (int b = 0; b < TILE; b++) {
      x[b] = VLOAD(row + row_channels[b] + o2);
#ifdef PLANE
      x[b] = SELECT(counts, x[b], (VT)0);
#else
      if (tail) x[b] = SELECT(i->lane, x[b], (VT)0);
#endif
    }
#pragma unroll
    for (int a = 0; a < TILE; a++) {
#pragma unroll
      for (int b = 0; b < TILE; b++) part[a][b] = MULTIPLY_ADD(g[a], x[b], part[a][b]);
    }
  }
}

KERNEL weight_gradient(PLACE(weight), __global uchar *work, ulong offset_rows, ulong offset_outs, long outs,
                       ulong offset_parts, space s) {
  long in_blocks = (s.in_channels + TILE - 1) / TILE, taps = s.taps[0] * s.taps[1] * TAPS;
  long at = get_global_id(0), k2 = at % (TAPS / EACH), k1 = at / (TAPS / EACH) % s.taps[1];
  long rest = at / (TAPS / EACH) / s.taps[1], k0 = rest % s.taps[0];
  rest /= s.taps[0];
  long in_block = rest % in_blocks, block = rest / in_blocks % s.blocks;
  long group = rest / in_blocks / s.blocks % s.groups, split = rest / in_blocks / s.blocks / s.groups;
  if (split >= s.splits) return;
  long part_of_images = split / s.row_splits, part_of_rows = split % s.row_splits, images = s.splits / s.row_splits;
  long each = (s.batch + images - 1) / images, end = min((part_of_images + 1) * each, s.batch);
  long rows_each = (s.out_size[1] + s.row_splits - 1) / s.row_splits, top = part_of_rows * rows_each;
  long bottom = min(top + rows_each, s.out_size[1]);
  long in_step = s.in_size[0] * s.in_size[1] * s.row, out_step = s.out_size[0] * s.out_size[1] * outs;
  const inside counts = inside_of(&s);
  long row_channels[TILE], grad_channels[TILE]; /* past the last one: that again */
  for (int t = 0; t < TILE; t++) {
    row_channels[t] = min((long)t, s.in_channels - 1 - in_block * TILE) * in_step;
    grad_channels[t] = min((long)t, s.out_channels - 1 - block * TILE) * out_step;
  }
  VT sum[EACH][TILE][TILE];
  for (int k = 0; k < EACH; k++) {
#pragma unroll
    for (int t = 0; t < TILE * TILE; t++) sum[k][t / TILE][t % TILE] = (VT)0;
  }
  for (long n = part_of_images * each; n < end; n += s.images) {
    long last = min(n + s.images, end);
    for (int k = 0; k < EACH; k++) {
      long start = tap_start(&s, k2 + k);
      VT part[TILE][TILE];
#pragma unroll
      for (int t = 0; t < TILE * TILE; t++) part[t / TILE][t % TILE] = (VT)0;
      for (long image = n; image < last; image++) {
        __global const CT *row = (__global const CT *)(work + offset_rows) +
                                 ((image * s.groups + group) * s.in_channels + in_block * TILE) * in_step + start;
        __global const CT *grad = (__global const CT *)(work + offset_outs) +
                                  ((image * s.groups + group) * s.out_channels + block * TILE) * out_step;
        for (long o0 = 0; o0 < s.out_size[0]; o0++) {
          long i0 = o0 * s.mul[0] + s.off[0] + k0 * s.tap[0];
          if (i0 < 0 || i0 >= s.in_size[0]) continue;
          for (long o1 = top; o1 < bottom; o1++) {
            long i1 = o1 * s.mul[1] + s.off[1] + k1 * s.tap[1];
            if (i1 < 0 || i1 >= s.in_size[1]) continue;
            add_row(part, grad + (o0 * s.out_size[1] + o1) * outs, grad_channels,
                    row + (i0 * s.in_size[1] + i1) * s.row, row_channels, &s, &counts);
          }
        }
      }
#pragma unroll
      for (int t = 0; t < TILE * TILE; t++) {
        sum[k][t / TILE][t % TILE] = ADD(sum[k][t / TILE][t % TILE], part[t / TILE][t % TILE]);
      }
    }
  }
  __global RAW(D) *to = POINTER(D, weight);
  __global CT *parts = (__global CT *)(work + offset_parts) + split * s.groups * s.out_channels * s.in_channels * taps;
  for (int a = 0; a < TILE; a++) {
    for (int b = 0; b < TILE; b++) {
      long out = block * TILE + a, in = in_block * TILE + b;
      if (out >= s.out_channels || in >= s.in_channels) continue;
      long first = ((group * s.out_channels + out) * s.in_channels + in) * taps + (k0 * s.taps[1] + k1) * TAPS + k2;
      for (int k = 0; k < EACH; k++) {
        if (s.splits > 1) parts[first + k] = total(sum[k][a][b]);
        else put_value(to + first + k, (VT)total(sum[k][a][b]), 1);
      }
    }
  }
}

/* The gradient of a bias: the sum of a channel over all images, on GPUs by a work-group. */
#if LOCAL == 1
static CT channel_sum(__global const RAW(D) * grad, long images, long step, long spatial) {
  CT sum = (CT)0;
  for (long n = 0; n < images; n++) {
    __global const RAW(D) *from = grad + n * step;
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
  return sum;
}
#endif

KERNEL bias_gradient(PLACE(bias), CONST_PLACE(grad), long images, long channels, long spatial) {
  long channel = get_group_id(0);
  __global const RAW(D) *from = CONST_POINTER(D, grad) + channel * spatial;
#if LOCAL == 1
  CT sum = channel_sum(from, images, channels * spatial, spatial);
#else
  __local CT sums[LOCAL];
  int item = get_local_id(0);
  CT sum = (CT)0;
  for (long n = 0; n < images; n++) {
    CT part = (CT)0;
    for (long i = item; i < spatial; i += LOCAL) part = ADD1(part, one_value(from + n * channels * spatial + i));
    sum = ADD1(sum, part);
  }
  sums[item] = sum;
  for (int half_of = LOCAL / 2; half_of; half_of /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < half_of) sums[item] = ADD1(sums[item], sums[item + half_of]);
  }
  if (item) return;
  sum = sums[0];
#endif
  put_value(POINTER(D, bias) + channel, (VT)sum, 1);
}
#endif
