/* Convolutions on Hopper's tensor cores, of 16-bit floats with sums in f32; after core/nvidia_tile.cl. Input is packed
 * with channels innermost, `channels` of them, over all places that a window may meet, zeros where there is no
 * element: place = output * mul + tap * step, counted from the first. Taps side by side, and all their channels, are
 * then one run of memory, a stretch of K.
 *
 * FORWARD: rows of the product are output channels, its columns outputs. Else, the gradient of the weight: rows are
 * output channels, columns a run, and K goes over all places; outputs' gradients are spread over them. */
typedef struct {
  long batch, groups, out_channels, in_channels, channels; /* channels of one group */
  long out_size[3], in_size[3], places[3], first[3], mul[3], div[3], step[3], taps[3], turned[3];
  long weight_group, weight_out, weight_in; /* strides; taps are innermost and contiguous */
  long across, runs, run;                   /* taps of a run, how many runs, elements of one */
  long all_places, group_places;            /* of an image; of a group's images, and zeros for the last run */
  long depth;                               /* of the gradient's K: places, rounded up */
  long panels_m, panels_n, splits, split_depth;
} lattice;

DEFINE_ACCESS(value, D)

/* ---- Packing ---- */

/* Which element of a dimension a place is of; -1: none. */
static long element_at(long place, long mul, long div, long size) {
  long i = place / div;
  return place >= 0 && i * div == place && i < size ? i : -1;
}

/* To [group][image][place][channel], 8 channels of a place each. */
KERNEL_OF(64, 1) pack_rows(PLACE(work), CONST_PLACE(in), lattice s) {
  long q = get_global_id(0), eight = get_global_id(1), group = get_global_id(2);
  if (q >= s.group_places) return;
  long image = q / s.all_places, place = q % s.all_places;
  long x = element_at(place % s.places[2] + s.first[2], s.mul[2], s.div[2], s.in_size[2]);
  long y = element_at(place / s.places[2] % s.places[1] + s.first[1], s.mul[1], s.div[1], s.in_size[1]);
  long z = element_at(place / s.places[2] / s.places[1] + s.first[0], s.mul[0], s.div[0], s.in_size[0]);
  bool inside = image < s.batch && x >= 0 && y >= 0 && z >= 0;
  long spatial = s.in_size[0] * s.in_size[1] * s.in_size[2];
  __global const ushort *from =
      CONST_POINTER(D, in) + ((image * s.groups + group) * s.in_channels + eight * 8) * spatial +
      (z * s.in_size[1] + y) * s.in_size[2] + x;
  ushort lanes[8];
#pragma unroll
  for (int c = 0; c < 8; c++) lanes[c] = inside && eight * 8 + c < s.in_channels ? from[c * spatial] : (ushort)0;
  __global ushort *to = (__global ushort *)(work + offset_work) + (group * s.group_places + q) * s.channels + eight * 8;
  *(__global ushort8 *)to = vload8(0, lanes);
}

/* Which tap, as the weight counts them, element e of run r is of. */
static long tap_of(lattice s, long r, long e) {
  long tap[3] = {s.across > 1 ? r / s.taps[1] : r / s.taps[2] / s.taps[1],
                 s.across > 1 ? r % s.taps[1] : r / s.taps[2] % s.taps[1],
                 s.across > 1 ? e / s.channels : r % s.taps[2]};
#pragma unroll
  for (int d = 0; d < 3; d++) tap[d] = s.turned[d] ? s.taps[d] - 1 - tap[d] : tap[d];
  return (tap[0] * s.taps[1] + tap[1]) * s.taps[2] + tap[2];
}

/* Where a run begins, in places after an output's own. */
static INLINED long run_offset(const lattice *s, long r) {
  long x = s->across > 1 ? 0 : r % s->taps[2], rest = s->across > 1 ? r : r / s->taps[2];
  long line = rest / s->taps[1] * s->step[0] * s->places[1] + rest % s->taps[1] * s->step[1];
  return line * s->places[2] + x * s->step[2];
}

#ifdef FORWARD
/* To [group][out channel][run][element]. */
KERNEL_OF(64, 1) pack_weights(PLACE(work), CONST_PLACE(weight), lattice s) {
  long at = get_global_id(0), e = at % s.run, r = at / s.run % s.runs, line = at / s.run / s.runs;
  long out = line % s.out_channels, group = line / s.out_channels, channel = e % s.channels;
  if (group >= s.groups) return;
  __global const ushort *from = CONST_POINTER(D, weight) + group * s.weight_group + out * s.weight_out;
  ((__global ushort *)(work + offset_work))[at] =
      channel < s.in_channels ? from[channel * s.weight_in + tap_of(s, r, e)] : (ushort)0;
}

/* ---- The convolution ---- */

#define PASSES (TILE_N / (LANES / 8))

struct factors {
  share a;
  __global const ushort *weights, *rows[PASSES]; /* of A's first run; of each pass's output */
  uint to;
  int present, chunk; /* a bit a pass; elements of a strip before this work-item's 16 bytes */
  long run, within;   /* of the next strip */
  lattice s;
};

static void bring_strip(struct factors *f, uint a, uint b, long i) {
  long skip = f->within * STRIP, offset = run_offset(&f->s, f->run) * f->s.channels + skip;
  int left = (int)min(f->s.run - skip, (long)STRIP), bytes = clamp((left - f->chunk) * 2, 0, 16);
  f->a.from = f->weights + f->run * f->s.run + skip;
  bring(&f->a, a, TILE_M, 1, left, LANES);
#pragma unroll
  for (int p = 0; p < PASSES; p++)
    copy_async(b + f->to + p * (LANES / 8) * ROW_BYTES, f->rows[p] + offset, f->present >> p & 1 ? bytes : 0);
  bool last = skip + STRIP >= f->s.run;
  f->within = last ? 0 : f->within + 1;
  f->run += last;
}

/* VEC results of a channel, from output `at` of all images on. */
static INLINED void leave(VT sum, long channel, long at, const lattice *s, CT bias, bool whole, __global ushort *out) {
  long spatial = s->out_size[0] * s->out_size[1] * s->out_size[2], all = s->batch * spatial;
  if (channel >= s->groups * s->out_channels || at >= all) return;
  RAW(D) lanes[VEC];
  STORE(D, __private, lanes, sum + (VT)bias);
  long channels = s->groups * s->out_channels;
  if (whole) {
    *(__global VEC_OF(RAW(D)) *)(out + (at / spatial * channels + channel) * spatial + at % spatial) = VLOAD(lanes);
  } else {
    for (int j = 0; j < VEC && at + j < all; j++)
      out[((at + j) / spatial * channels + channel) * spatial + (at + j) % spatial] = lanes[j];
  }
}

KERNEL_OF(LANES, 1) convolve(PLACE(out), __global const uchar *work, ulong offset_rows, ulong offset_weights,
                             CONST_PLACE(bias), long has_bias, lattice s) {
  __local uchar strips[STRIPS_BYTES] __attribute__((aligned(1024)));
  int lane = get_local_id(0);
  long row, column, group = get_group_id(1), spatial = s.out_size[0] * s.out_size[1] * s.out_size[2];
  find_tile((int)get_group_id(0), (int)s.panels_m, (int)s.panels_n, &row, &column);
  __global const ushort *rows = (__global const ushort *)(work + offset_rows) + group * s.group_places * s.channels;
  __global const ushort *weights = (__global const ushort *)(work + offset_weights);
  struct factors f;
  f.s = s;
  long line = s.runs * s.run;
  f.a = share_along(weights + (group * s.out_channels + row) * line, line, s.out_channels - row, lane, LANES);
  f.weights = f.a.from;
  f.chunk = lane % 8 * 8;
  f.to = swizzled(lane / 8, lane % 8);
  f.present = 0;
  f.run = f.within = 0;
#pragma unroll
  for (int p = 0; p < PASSES; p++) {
    long at = column + lane / 8 + p * (LANES / 8), image = at / spatial, rest = at % spatial;
    bool present = image < s.batch;
    long z = rest / s.out_size[2] / s.out_size[1] * s.mul[0], y = rest / s.out_size[2] % s.out_size[1] * s.mul[1];
    long place = image * s.all_places + (z * s.places[1] + y) * s.places[2] + rest % s.out_size[2] * s.mul[2];
    f.rows[p] = rows + (present ? place : 0) * s.channels + f.chunk;
    f.present |= present << p;
  }
  float sum[TILE_N / 2];
  multiply_strips(sum, &f, local_address(strips), s.runs * ((s.run + STRIP - 1) / STRIP), lane);
  __local float *tile = (__local float *)strips;
  keep_tile(tile, sum, lane);
  bool whole = spatial % VEC == 0 && offset_out % (2 * VEC) == 0;
#pragma unroll 1
  for (int at = lane * VEC; at < TILE_M * TILE_N; at += LANES * VEC) {
    int i = at / TILE_N, j = at % TILE_N;
    long channel = group * s.out_channels + row + i;
    bool inside = row + i < s.out_channels;
    const CT added = inside && has_bias ? one_value(CONST_POINTER(D, bias) + channel) : (CT)0;
    const VT sums = *(__local VT *)(tile + i * TILE_PITCH + j);
    if (inside) leave(sums, channel, column + j, &s, added, whole, POINTER(D, out));
  }
}

#else
/* To [group][out channel][place]: zeros at places that are no output's. */
KERNEL_OF(64, 1) pack_outs(PLACE(work), CONST_PLACE(grad), lattice s) {
  long q = get_global_id(0), out = get_global_id(1), group = get_global_id(2);
  if (q >= s.depth) return;
  long image = q / s.all_places, place = q % s.all_places;
  long x = element_at(place % s.places[2], 1, s.mul[2], s.out_size[2]);
  long y = element_at(place / s.places[2] % s.places[1], 1, s.mul[1], s.out_size[1]);
  long z = element_at(place / s.places[2] / s.places[1], 1, s.mul[0], s.out_size[0]);
  bool inside = image < s.batch && x >= 0 && y >= 0 && z >= 0;
  long line = (image * s.groups + group) * s.out_channels + out;
  long from = ((line * s.out_size[0] + z) * s.out_size[1] + y) * s.out_size[2] + x;
  ((__global ushort *)(work + offset_work))[(group * s.out_channels + out) * s.depth + q] =
      inside ? CONST_POINTER(D, grad)[from] : (ushort)0;
}

/* ---- The gradient of the weight ---- */

struct factors {
  share a, b;
  long depth;
};
static void bring_strip(struct factors *f, uint a, uint b, long i) {
  int left = (int)min(f->depth - i * STRIP, (long)STRIP);
  bring(&f->a, a, TILE_M, 1, left, LANES);
  bring(&f->b, b, TILE_N, 0, left, LANES);
}

/* Sums of a split, to [split][group][run][out channel][element]. */
KERNEL_OF(LANES, 1) weight_gradient(PLACE(weight), __global uchar *work, ulong offset_rows, ulong offset_outs,
                                    long outs, ulong offset_parts, lattice s) {
  __local uchar strips[STRIPS_BYTES] __attribute__((aligned(1024)));
  int lane = get_local_id(0);
  long row, column, batch = get_group_id(2), r = batch % s.runs, group = batch / s.runs % s.groups;
  long begin = batch / s.runs / s.groups * s.split_depth, end = min(begin + s.split_depth, s.batch * s.all_places);
  find_tile((int)get_group_id(0), (int)s.panels_m, (int)s.panels_n, &row, &column);
  __global const ushort *rows = (__global const ushort *)(work + offset_rows);
  __global const ushort *grads = (__global const ushort *)(work + offset_outs);
  struct factors f;
  f.depth = max(end - begin, (long)0);
  __global const ushort *line = grads + (group * s.out_channels + row) * s.depth + begin;
  f.a = share_along(line, s.depth, s.out_channels - row, lane, LANES);
  f.b = share_across(rows + (group * s.group_places + begin + run_offset(&s, r)) * s.channels + column, s.channels,
                     s.run - column, TILE_N, lane, LANES);
  float sum[TILE_N / 2];
  multiply_strips(sum, &f, local_address(strips), (f.depth + STRIP - 1) / STRIP, lane);
  __local float *tile = (__local float *)strips;
  keep_tile(tile, sum, lane);
  __global CT *parts = (__global CT *)(work + offset_parts) + batch * s.out_channels * s.run;
#pragma unroll 1
  for (int at = lane * VEC; at < TILE_M * TILE_N; at += LANES * VEC) {
    long i = row + at / TILE_N, j = column + at % TILE_N;
    if (i < s.out_channels && j < s.run)
      *(__global VT *)(parts + i * s.run + j) = *(__local VT *)(tile + at / TILE_N * TILE_PITCH + at % TILE_N);
  }
}

/* One element of [group][run][out channel][element] each. */
KERNEL_OF(64, 1) sum_splits(PLACE(weight), __global const uchar *work, ulong offset_parts, lattice s) {
  long at = get_global_id(0), all = s.groups * s.runs * s.out_channels * s.run;
  long e = at % s.run, out = at / s.run % s.out_channels, r = at / s.run / s.out_channels % s.runs;
  long group = at / s.run / s.out_channels / s.runs, channel = e % s.channels;
  if (at >= all || channel >= s.in_channels) return;
  __global const CT *parts = (__global const CT *)(work + offset_parts);
  CT sum = 0;
  for (long split = 0; split < s.splits; split++) sum += parts[split * all + at];
  long to = group * s.weight_group + out * s.weight_out + channel * s.weight_in + tap_of(s, r, e);
  put_value(POINTER(D, weight) + to, (VT)sum, 1);
}
#endif
