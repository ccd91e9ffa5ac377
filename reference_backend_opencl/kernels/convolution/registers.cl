/* Convolutions of f32 on GPUs, as products in register tiles, after core/registers.cl and window.cl. Nothing is laid out
 * but the weight: windows are read where they lie, each element by its column's place and its step's offset, and only where the
 * place is an element's; else a zero stands for it (what that spoils beside infinities, gaps.cl mends).
 * Outputs of which each dimension leaves the same rest by div meet the same taps, and make a phase: a product of its own,
 * of those taps alone. Dividing what is divisible, input = q * mul + shift, where q counts a phase's outputs.
 *
 * FORWARD: rows of the product are output channels, its columns outputs, and K goes over channels and their taps, or
 * TAP_BY_TAP over taps and their channels, which are whole strips then. Else, the gradient of the weight: rows are output
 * channels, columns channels and taps, and K goes over outputs. */

/* A work-item brings elements of a strip of windows: of E columns, SIDE apart, SHARE steps or, by way of registers, one. */
#if COPIES
#define E (TILE_N > LANES ? TILE_N / LANES : 1)
#define SIDE (TILE_N / E)
#define SHARE (STEP * SIDE / LANES)
#else
#define E (TILE_N * STEP / LANES)
#define SIDE (TILE_N / E)
#endif

#ifdef FORWARD
/* One dimension of a phase: its outputs' rest by div, how many they are, and its taps. */
typedef struct {
  int rest, outs, first, taps;
} axis;

static INLINED axis axis_of(const window *s, int d, int rest) {
  const int outs = (int)s->out_size[d], taps = (int)s->taps[d], off = (int)s->off[d], tap = (int)s->tap[d];
  const int div = (int)s->div[d], step = (int)s->step[d];
  axis a;
  a.rest = rest;
  a.outs = rest < outs ? (outs - rest + div - 1) / div : 0;
  a.first = 0;
  while (a.first < step && (rest + off + a.first * tap) % div != 0) a.first++;
  a.taps = a.first < step && a.first < taps ? (taps - 1 - a.first) / step + 1 : 0;
  return a;
}

typedef struct {
  axis of[3];
  int outs, taps;
} phase;

/* Without a loop over the dimensions: one with a loop of unknown length in it is not unrolled everywhere. */
static INLINED phase phase_of(const window *s, int number) {
  phase p;
  const int height = (int)s->div[1], width = (int)s->div[2];
  p.of[0] = axis_of(s, 0, number / width / height);
  p.of[1] = axis_of(s, 1, number / width % height);
  p.of[2] = axis_of(s, 2, number % width);
  p.outs = p.of[0].outs * p.of[1].outs * p.of[2].outs;
  p.taps = p.of[0].taps * p.of[1].taps * p.of[2].taps;
  return p;
}

/* Where the input of tap t, as a phase counts them, is beside q * mul; and which tap that is. */
typedef struct {
  int shift[3], number;
} met;

static INLINED met met_by(const window *s, const phase *p, int t) {
  met m;
  /* A phase that no tap meets asks, too: a division by 0 ends a process on a CPU. */
  const int columns = max(p->of[2].taps, 1), rows = max(p->of[1].taps, 1);
  int turn[3] = {t / columns / rows, t / columns % rows, t % columns};
  m.number = 0;
#pragma unroll
  for (int d = 0; d < 3; d++) {
    const int tap = p->of[d].first + turn[d] * (int)s->step[d];
    m.shift[d] = (p->of[d].rest + (int)s->off[d] + tap * (int)s->tap[d]) / (int)s->div[d];
    m.number = m.number * (int)s->taps[d] + tap;
  }
  return m;
}

/* The weight, to [phase][group][step of K][output channel], and for each step where its element is beside its column's
 * place, and how far its tap's bit is from the highest, which is no tap's and stands for what is past the last. After the
 * steps, the taps' shifts. */
KERNEL_OF(64, 1) pack_weights(PLACE(work), ulong offset_steps, CONST_PLACE(weight), window s) {
  const long at = get_global_id(0), channel = at % s.width, k = at / s.width % s.depth, part = at / s.width / s.depth;
  const long group = part % s.groups, number = part / s.groups;
  if (number >= s.phases) return;
  const phase p = phase_of(&s, (int)number);
  const bool there = k < s.in_channels * p.taps;
#if TAP_BY_TAP
  const int t = there ? (int)(k / s.in_channels) : 0, c = there ? (int)(k - t * s.in_channels) : 0;
#else
  const int c = there ? (int)(k / p.taps) : 0, t = there ? (int)(k - (long)c * p.taps) : 0;
#endif
  const met m = met_by(&s, &p, t);
  float v = 0;
  if (there && channel < s.out_channels)
    v = CONST_POINTER(D, weight)[group * s.weight_group + channel * s.weight_out + c * s.weight_in + m.number];
  ((__global float *)(work + offset_work))[at] = v;
  if (channel != 0 || group != 0) return;
  int2 step = (int2)(0, 0);
  if (there) {
    step.x = ((c * (int)s.in_size[0] + m.shift[0]) * (int)s.in_size[1] + m.shift[1]) * (int)s.in_size[2] + m.shift[2];
    step.y = MOST_TAPS - t;
  }
  ((__global int2 *)(work + offset_steps))[number * s.depth + k] = step;
  if (k < p.taps) {
    const met of = met_by(&s, &p, (int)k);
    ((__global int4 *)(work + offset_steps + s.phases * s.depth * sizeof(int2)))[number * MOST_TAPS + k] =
        (int4)(of.shift[0], of.shift[1], of.shift[2], 0);
  }
}

#if COPIES
struct factors {
  share a;
  __global const int2 *steps;    /* this work-item's first in the next strip */
  __global const float *from[E]; /* a column's place in the first channel */
  TAPS meets[E];                 /* bit t: tap t meets an element; the highest: none */
  int to, channel;               /* in the strip; elements of a channel */
};

static INLINED void bring_strip(struct factors *f, __local float *a, __local float *b, int left) {
  if (left <= 0) return; /* past the last, of which steps of no tap follow in its strip */
  bring(&f->a, a, TILE_M, PITCH_A, false, 4, STEP);
  int2 steps[SHARE];
#pragma unroll
  for (int s = 0; s < SHARE; s++) steps[s] = TAP_BY_TAP ? f->steps[0] + (int2)(s * f->channel, 0) : f->steps[s];
#pragma unroll
  for (int s = 0; s < SHARE; s++) {
#pragma unroll
    for (int e = 0; e < E; e++)
      copy_one(b + f->to + s * PITCH_B + e * SIDE, f->from[e] + steps[s].x, (SIGNED_TAPS)(f->meets[e] << steps[s].y) < 0);
  }
  f->steps += STEP;
}

#elif POINTWISE
/* Windows of one element, taken at each, of images whose size divides by four: a row of the factor is a channel. */
struct factors {
  share a, b;
  bool whole;
  long end;
};
struct parts {
  float4 a[PASSES(TILE_M)], b[PASSES(TILE_N)];
};

static INLINED void bring_strip(struct factors *f, struct parts *to, long k) {
  const int left = (int)clamp(f->end - k, 0L, (long)STEP), lane = get_local_id(0);
  bring_fours(&f->a, to->a, TILE_M, false, true, left > 0 ? STEP : 0, lane);
  bring_fours(&f->b, to->b, TILE_N, false, f->whole, left, lane);
  if (left == 0) return;
  f->a.from += f->a.strip;
  f->b.from += f->b.strip;
}

static INLINED void place_strip(const struct factors *f, const struct parts *from, __local float *a, __local float *b) {
  const int lane = get_local_id(0);
  place_fours(&f->a, from->a, a, TILE_M, PITCH_A, false, lane);
  place_fours(&f->b, from->b, b, TILE_N, PITCH_B, false, lane);
}

#else
struct factors {
  share a;
  __global const int2 *steps;    /* of this work-item's step in the strip after the next */
  int2 step;                     /* and in the next: read ahead, since what is read by it waits for it */
  __global const float *from[E]; /* a column's place in the first channel */
  TAPS meets[E];                 /* bit t: tap t meets an element; the highest: none */
  long end;
};
struct parts {
  float4 a[PASSES(TILE_M)];
  float b[E];
};

static INLINED void bring_strip(struct factors *f, struct parts *to, long k) {
  const bool there = k < f->end;
  bring_fours(&f->a, to->a, TILE_M, false, true, there ? STEP : 0, get_local_id(0));
#pragma unroll
  for (int e = 0; e < E; e++)
    to->b[e] = there && (SIGNED_TAPS)(f->meets[e] << f->step.y) < 0 ? f->from[e][f->step.x] : 0;
  if (!there) return;
  f->step = *f->steps;
  f->steps += STEP;
  f->a.from += f->a.strip;
}

static INLINED void place_strip(const struct factors *f, const struct parts *from, __local float *a, __local float *b) {
  const int lane = get_local_id(0);
  place_fours(&f->a, from->a, a, TILE_M, PITCH_A, false, lane);
#pragma unroll
  for (int e = 0; e < E; e++) b[lane / SIDE * PITCH_B + lane % SIDE + e * SIDE] = from->b[e];
}

#endif

/* An output, as columns count them: its image, and q of each dimension. */
typedef struct {
  int image, q[3];
} output;

static INLINED output output_of(const phase *p, long column) {
  output o;
  o.image = (int)(column / p->outs);
  int rest = (int)(column - (long)o.image * p->outs);
  o.q[0] = rest / (p->of[1].outs * p->of[2].outs);
  rest -= o.q[0] * p->of[1].outs * p->of[2].outs;
  o.q[1] = rest / p->of[2].outs;
  o.q[2] = rest - o.q[1] * p->of[2].outs;
  return o;
}

#if COPIES || !POINTWISE
/* Which elements a work-item's columns read. */

static INLINED void read_columns(struct factors *f, const window *s, const phase *p, long column, long group,
                                 __global const float *in, __global const int4 *shifts) {
  int at[E][3];
#pragma unroll
  for (int e = 0; e < E; e++) {
    const bool there = column + e * SIDE < s->batch * p->outs;
    const output o = output_of(p, there ? column + e * SIDE : 0);
#pragma unroll
    for (int d = 0; d < 3; d++) at[e][d] = o.q[d] * (int)s->mul[d];
    f->from[e] = in + ((long)o.image * s->groups + group) * s->in_channels * VOLUME(s->in_size) +
                 ((long)at[e][0] * s->in_size[1] + at[e][1]) * s->in_size[2] + at[e][2];
    f->meets[e] = 0;
    if (!there) at[e][0] = -(1 << 30);
  }
  for (int t = 0; t < p->taps; t++) {
    const int4 shift = shifts[t];
#pragma unroll
    for (int e = 0; e < E; e++) {
      const bool inside = (uint)(at[e][0] + shift.x) < (uint)s->in_size[0] &
                          (uint)(at[e][1] + shift.y) < (uint)s->in_size[1] &
                          (uint)(at[e][2] + shift.z) < (uint)s->in_size[2];
      f->meets[e] |= (TAPS)inside << t;
    }
  }
}

#endif

/* Where a column's result is in the first channel of its group. */
static INLINED long result_at(const window *s, const phase *p, long column, long group) {
  const output o = output_of(p, column);
  long at = 0;
#pragma unroll
  for (int d = 0; d < 3; d++) at = at * s->out_size[d] + o.q[d] * s->div[d] + p->of[d].rest;
  return ((long)o.image * s->groups + group) * s->out_channels * VOLUME(s->out_size) + at;
}

/* To `out`, or where K is in parts, to as many results like it in `sums`. */
KERNEL_OF(LANES, 1) convolve(PLACE(out), CONST_PLACE(in), __global uchar *work, ulong offset_weights, ulong offset_steps,
                             ulong offset_sums, CONST_PLACE(bias), long has_bias, window s) {
  __local float strips[STRIPS] __attribute__((aligned(16)));
  const int lane = get_local_id(0);
  const long tiles = s.panels_m * s.panels_n, number = get_group_id(0) / tiles, group = number % s.groups;
  const long split = number / s.groups / s.phases, part = number - split * s.groups * s.phases;
  const phase p = phase_of(&s, (int)(part / s.groups));
  long row, column;
  find_tile((int)(get_group_id(0) - number * tiles), (int)s.panels_m, (int)s.panels_n, &row, &column);
  const long all = s.batch * p.outs, start = split * s.split_depth;
  const long depth = min(start + s.split_depth, s.in_channels * p.taps);
  if (column >= all) return;
  struct factors f;
  __global const float *weights = (__global const float *)(work + offset_weights) + (part * s.depth + start) * s.width + row;
#if COPIES
  f.a = share_of(weights, 1, s.width, TILE_M, TILE_M, PITCH_A, false, 4, lane);
#else
  struct parts parts;
  f.a = share_of(weights, 1, s.width, TILE_M, TILE_M, false, lane);
#endif
#if POINTWISE && !COPIES
  const long size = VOLUME(s.in_size), mine = column + lane % (TILE_N / 4) * 4, image = mine / size;
  f.b = share_of(CONST_POINTER(D, in) + ((image * s.groups + group) * s.in_channels + start) * size + mine -
                     image * size - lane % (TILE_N / 4) * 4,
                 1, size, all - column, TILE_N, false, lane);
  f.whole = offset_in % 16 == 0;
#else
  __global const int2 *steps = (__global const int2 *)(work + offset_steps);
  read_columns(&f, &s, &p, column + lane % SIDE, group, CONST_POINTER(D, in),
               (__global const int4 *)(steps + s.phases * s.depth) + part / s.groups * MOST_TAPS);
  steps += part / s.groups * s.depth + start;
#if COPIES
  f.steps = steps + lane / SIDE * SHARE;
  f.channel = (int)VOLUME(s.in_size);
  f.to = lane / SIDE * SHARE * PITCH_B + lane % SIDE;
#else
  f.steps = steps + lane / SIDE;
  f.step = *f.steps;
  f.steps += STEP;
#endif
#endif
  const long first = row + item_row(lane), spatial = VOLUME(s.out_size), to = column + item_column(lane);
  const bool whole = s.phases == 1 && spatial % 4 == 0 && (s.splits > 1 || offset_out % 16 == 0);
  const bool finishes = s.splits == 1 && has_bias;
  __global float *outs = POINTER(D, out);
  if (s.splits > 1)
    outs = (__global float *)(work + offset_sums) + split * s.batch * s.groups * s.out_channels * spatial;
  float4 sum[ITEM_M][VECTORS_N];
#if COPIES
  sum_strips(sum, &f, strips, start, depth, lane);
#else
  f.end = depth;
  sum_strips(sum, &f, &parts, strips, start, depth, lane);
#endif
#pragma unroll
  for (int v = 0; v < VECTORS_N; v++) {
    const long j = to + VECTOR_COLUMN(v);
    long at[4];
#pragma unroll
    for (int i = 0; i < 4; i++) at[i] = j + i < all && (i == 0 || !whole) ? result_at(&s, &p, j + i, group) : 0;
#pragma unroll
    for (int r = 0; r < ITEM_M; r++) {
      const long channel = first + VECTOR_ROW(r / 4) + r % 4;
      if (channel >= s.out_channels || j >= all) continue;
      float4 v4 = sum[r][v];
      if (finishes) {
        const float added = CONST_POINTER(D, bias)[group * s.out_channels + channel];
        v4 += (float4)added;
      }
      __global float *o = outs + channel * spatial;
      if (whole) {
        *(__global float4 *)(o + at[0]) = v4;
      } else {
        const float lanes[4] = {v4.x, v4.y, v4.z, v4.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
          if (j + i < all) o[at[i]] = lanes[i];
        }
      }
    }
  }
}

/* One result each: its parts, added up in their order. */
KERNEL_OF(64, 1) sum_parts(PLACE(out), CONST_PLACE(sums), CONST_PLACE(bias), long has_bias, window s) {
  const long spatial = VOLUME(s.out_size), channels = s.groups * s.out_channels, all = s.batch * channels * spatial;
  const long at = get_global_id(0);
  if (at >= all) return;
  __global const float *from = CONST_POINTER(D, sums) + at;
  float sum = 0;
  for (long split = 0; split < s.splits; split++) sum += from[split * all];
  POINTER(D, out)[at] = has_bias ? sum + CONST_POINTER(D, bias)[at / spatial % channels] : sum;
}

#else
/* ---- The gradient of the weight ---- */

/* K counts outputs of an image after those of another, each image's rounded up to whole strips. */
struct factors {
  share a;
  __global const float *grads, *in; /* of this group's first channel in the image */
  long end, grads_image, in_image;
  bool whole;                       /* fours of gradients begin at multiples of 16 bytes */
  int outs, strips, strip;          /* of an image; which of them is next */
  int offset[E], shift[E][3], there;
  int width, plane, mul[3], size[3];
};
struct parts {
  float4 a[PASSES(TILE_M)];
  float b[E];
};

static INLINED void bring_strip(struct factors *f, struct parts *to, long k) {
  const int lane = get_local_id(0), place = f->strip * STEP + lane % STEP;
  const int left = k < f->end ? min(f->outs - f->strip * STEP, STEP) : 0;
  bring_fours(&f->a, to->a, TILE_M, true, f->whole, left, lane);
  const bool there = lane % STEP < left;
  const int z = place / f->plane, rest = place - z * f->plane, y = rest / f->width, x = rest - y * f->width;
  const int at[3] = {z * f->mul[0], y * f->mul[1], x * f->mul[2]};
  const int from = (at[0] * f->size[1] + at[1]) * f->size[2] + at[2];
#pragma unroll
  for (int e = 0; e < E; e++) {
    bool inside = there && f->there >> e & 1;
#pragma unroll
    for (int d = 0; d < 3; d++) inside &= (uint)(at[d] + f->shift[e][d]) < (uint)f->size[d];
    to->b[e] = inside ? f->in[from + f->offset[e]] : 0;
  }
  if (k >= f->end) return;
  f->a.from += STEP;
  if (++f->strip == f->strips) { /* the next image */
    f->strip = 0;
    f->a.from += f->grads_image - (long)f->strips * STEP;
    f->in += f->in_image;
  }
}

static INLINED void place_strip(const struct factors *f, const struct parts *from, __local float *a, __local float *b) {
  const int lane = get_local_id(0);
  place_fours(&f->a, from->a, a, TILE_M, PITCH_A, true, lane);
#pragma unroll
  for (int e = 0; e < E; e++) b[lane % STEP * PITCH_B + lane / STEP + e * (LANES / STEP)] = from->b[e];
}

/* The sums of a part of K, to [part][group][output channel][channel and tap]. */
KERNEL_OF(LANES, 1) weight_gradient(CONST_PLACE(in), CONST_PLACE(grad), PLACE(parts), window s) {
  __local float strips[STRIPS] __attribute__((aligned(16)));
  const int lane = get_local_id(0);
  const long tiles = s.panels_m * s.panels_n, part = get_group_id(0) / tiles, group = part % s.groups;
  const long taps = VOLUME(s.taps), columns = s.in_channels * taps, outs = VOLUME(s.out_size);
  long row, column;
  find_tile((int)(get_group_id(0) - part * tiles), (int)s.panels_m, (int)s.panels_n, &row, &column);
  struct factors f;
  struct parts parts_of;
  f.outs = (int)outs;
  f.strips = (int)((outs + STEP - 1) / STEP);
  f.width = (int)s.out_size[2];
  f.plane = (int)(s.out_size[1] * s.out_size[2]);
  f.there = 0;
  f.whole = outs % 4 == 0 && offset_grad % 16 == 0;
#pragma unroll
  for (int d = 0; d < 3; d++) {
    f.mul[d] = (int)s.mul[d];
    f.size[d] = (int)s.in_size[d];
  }
#pragma unroll
  for (int e = 0; e < E; e++) {
    const long n = min(column + lane / STEP + e * (LANES / STEP), columns - 1);
    const int c = (int)(n / taps), t = (int)(n - (long)c * taps);
    f.there |= (column + lane / STEP + e * (LANES / STEP) < columns) << e;
    const int turn[3] = {t / (int)s.taps[2] / (int)s.taps[1], t / (int)s.taps[2] % (int)s.taps[1], t % (int)s.taps[2]};
#pragma unroll
    for (int d = 0; d < 3; d++) f.shift[e][d] = (int)s.off[d] + turn[d] * (int)s.tap[d];
    f.offset[e] = ((c * f.size[0] + f.shift[e][0]) * f.size[1] + f.shift[e][1]) * f.size[2] + f.shift[e][2];
  }
  f.grads_image = s.groups * s.out_channels * outs;
  f.in_image = s.groups * s.in_channels * VOLUME(s.in_size);
  const long begin = part / s.groups * s.split_depth, last = min(begin + s.split_depth, s.batch * f.strips * STEP);
  const long image = begin / STEP / f.strips;
  f.strip = (int)(begin / STEP - image * f.strips);
  f.in = CONST_POINTER(D, in) + image * f.in_image + group * s.in_channels * VOLUME(s.in_size);
  __global const float *grads =
      CONST_POINTER(D, grad) + image * f.grads_image + (group * s.out_channels + row) * outs + f.strip * STEP;
  f.a = share_of(grads, outs, 1, s.out_channels - row, TILE_M, true, lane);
  __global float *to = (__global float *)(parts + offset_parts) + part * s.out_channels * columns;
  float4 sum[ITEM_M][VECTORS_N];
  f.end = last;
  sum_strips(sum, &f, &parts_of, strips, begin, last, lane);
#pragma unroll
  for (int r = 0; r < ITEM_M; r++) {
#pragma unroll
    for (int v = 0; v < VECTORS_N; v++) {
      const long i = row + item_row(lane) + VECTOR_ROW(r / 4) + r % 4;
      const long j = column + item_column(lane) + VECTOR_COLUMN(v);
      const float lanes[4] = {sum[r][v].x, sum[r][v].y, sum[r][v].z, sum[r][v].w};
#pragma unroll
      for (int l = 0; l < 4; l++) {
        if (i < s.out_channels && j + l < columns) to[i * columns + j + l] = lanes[l];
      }
    }
  }
}
#endif
