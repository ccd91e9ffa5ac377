/* The gradient of a weight on CPUs where there are many channels, after core/square.cl, space.cl, sums.cl and tile.cl: for each tap, a
 * matrix product of the input's channels and the output's, summed over images and over the places where that tap meets an
 * element; nothing else is multiplied. A vector is of VEC output channels.
 *
 * Input and gradient are packed to [panel of WIDE vectors of channels][split][place][image][channel], as many images for
 * each split, so that those of a place and of the next follow each other (the input's phase by phase: each mul-th place of
 * a row is the next one); of PAIRS (core/pairs.cl) an
 * image is two, side by side in each value, and s.batch counts these. A work-item makes the sums of
 * a panel of each for all taps: so many steps at a time that both stay near, TILE x WIDE vectors in registers, which are
 * added to what it has in its part of the workspace.
 *
 * The head defines D, D_PART (what sums of a part of the batch are kept as), TILE (input channels, a divisor of VEC) and WIDE. */
#define CHANNELS (WIDE * VEC)

DEFINE_ACCESS(part, D_PART)

typedef struct {
  long taps, in_places, out_places;
  long in_panels, out_panels;      /* of a group */
  long in_row, in_phase;           /* places of a packed row of the input, and of each of its phases */
  long rows, columns, images;      /* so many at a time: of a plane of outputs, and of the batch */
  long scratch;                    /* elements of a work-item's sums */
} channels;

/* Images of a split; the last ones may have fewer, or none. */
static long each_of(const space *s) { return (s->batch + s->splits - 1) / s->splits; }

/* ---- Packing ---- */

/* A tensor of so many images, of `channels` a group and so many places, and how many panels a group has. */
typedef struct {
  long images, channels, places, panels, pieces; /* vectors of places */
  long width, phases, phase, packed;             /* of a row: columns, phases and places of each; of an image */
} side;

/* Where VEC places from `first` on are packed. */
static void pack_places(long at[VEC], long first, const side *d) {
  long row = first / d->width, column = first % d->width, phase = column % d->phases, in_phase = column / d->phases;
  for (int j = 0; j < VEC; j++) {
    at[j] = (row * d->phases + phase) * d->phase + in_phase;
    if (++phase == d->phases) phase = 0, in_phase++;
    if (++column == d->width) column = phase = in_phase = 0, row++;
  }
}

/* `count` places side by side; of PAIRS also those of the image that begins `apart` elements on, if one does. */
static VT get_step(__global const RAW(D) * from, long apart, int count) {
#ifdef PAIRS
  if (count == VEC) return LOAD_STEP(from, apart, apart);
  CT lanes[VEC];
  for (int j = 0; j < VEC; j++) lanes[j] = ONE_STEP(from + (j < count ? j : 0), apart, apart);
  return VLOAD(lanes);
#else
  return get_value(from, count);
#endif
}

#define AHEAD 4 /* vectors: more rows are read side by side than a processor sees coming */

KERNEL pack_channels(PLACE(work), CONST_PLACE(in), space s, side d) {
  long unit = get_global_id(0) * s.per_item, last = min(unit + s.per_item, s.units);
  for (; unit < last; unit++) {
    const long first = unit % d.pieces * VEC, rest = unit / d.pieces, image = rest % s.batch, panel = rest / s.batch;
    const long group = panel / d.panels, channel = panel % d.panels * CHANNELS;
    const int count = (int)min((long)VEC, d.places - first);
    const long size = s.groups * d.channels * d.places, apart = STEP_K * image + 1 < d.images ? size : 0;
    __global const RAW(D) *from =
        CONST_POINTER(D, in) + STEP_K * image * size + group * d.channels * d.places + first;
    const long each = each_of(&s), split = image / each;
    __global CT *to = (__global CT *)(work + offset_work) +
                      ((panel * s.splits + split) * d.packed * each + image % each) * CHANNELS;
    long at[VEC];
    pack_places(at, first, &d);
    for (int w = 0; w < WIDE; w++) {
      VT square[VEC];
#pragma unroll
      for (int i = 0; i < VEC; i++) { /* beyond the last, the last again */
        __global const RAW(D) *row = from + min(channel + w * VEC + i, d.channels - 1) * d.places;
        PREFETCH(row + AHEAD * VEC);
        square[i] = get_step(row, apart, count);
      }
      turn_square(square);
#pragma unroll
      for (int j = 0; j < VEC; j++) {
        if (j < count) VSTORE(square[j], to + at[j] * each * CHANNELS + w * VEC);
      }
    }
  }
}

/* ---- The products ---- */

/* Outputs [begin, end) of a dimension, of which a tap meets elements: of those from `low` up to `high`. */
typedef struct {
  long low, high;
} met;

static met met_by(long begin, long end, long tap, const space *s, int d) {
  const long shift = s->off[d] + tap * s->tap[d], mul = s->mul[d], beyond = s->in_size[d] - shift;
  met m = {max(begin, shift < 0 ? (mul - 1 - shift) / mul : 0), min(end, beyond > 0 ? (beyond + mul - 1) / mul : 0)};
  return m;
}

/* A part of the sum: rows and columns of a plane of outputs, of some images. */
typedef struct {
  long o0, o1, end1, o2, end2, image, images; /* image: in its split */
} part;

static INLINED void add_run(VT sum[TILE][WIDE], __global const CT *x, __global const CT *grad, long steps) {
  for (long k = 0; k < steps; k++, x += CHANNELS, grad += CHANNELS) add_to_tile(sum, grad, x);
}

/* What TILE channels of the input from x on give for a tap, added to `sums`, where a channel has s.taps x CHANNELS. */
static void add_tap(__global CT *sums, __global const CT *x, __global const CT *grad, const part *p, long k0, long k1, long k2,
                    const space *s, const channels *c) {
  const long i0 = p->o0 * s->mul[0] + s->off[0] + k0 * s->tap[0];
  const met rows = met_by(p->o1, p->end1, k1, s, 1), columns = met_by(p->o2, p->end2, k2, s, 2);
  if (i0 < 0 || i0 >= s->in_size[0] || rows.low >= rows.high || columns.low >= columns.high) return;
  const long each = each_of(s), step = each * CHANNELS, count = columns.high - columns.low;
  const bool joined = p->images == each; /* columns follow each other */
  const long first = columns.low * s->mul[2] + s->off[2] + k2 * s->tap[2];
  const long in_row = first % s->mul[2] * c->in_phase + first / s->mul[2];
  VT sum[TILE][WIDE];
  clear_tile(sum);
  for (long o1 = rows.low; o1 < rows.high; o1++) {
    const long i1 = o1 * s->mul[1] + s->off[1] + k1 * s->tap[1];
    const long at = (p->o0 * s->out_size[1] + o1) * s->out_size[2] + columns.low;
    __global const CT *from = x + ((i0 * s->in_size[1] + i1) * c->in_row + in_row) * step + p->image * CHANNELS;
    __global const CT *of = grad + at * step + p->image * CHANNELS;
    const long runs = joined ? 1 : count, steps = joined ? count * p->images : p->images;
    for (long run = 0; run < runs; run++, from += step, of += step) add_run(sum, from, of, steps);
  }
#pragma unroll
  for (int t = 0; t < TILE; t++) {
#pragma unroll
    for (int w = 0; w < WIDE; w++) {
      __global CT *to = sums + t * c->taps * CHANNELS + w * VEC;
      VSTORE(ADD(VLOAD(to), sum[t][w]), to);
    }
  }
}

static void add_part(__global CT *sums, __global const CT *x, __global const CT *grad, long count, const part *p,
                     const space *s, const channels *c) {
  for (long tap = 0; tap < c->taps; tap++) {
    const long k0 = tap / s->taps[2] / s->taps[1], k1 = tap / s->taps[2] % s->taps[1], k2 = tap % s->taps[2];
    for (int t = 0; t < count; t += TILE)
      add_tap(sums + (t * c->taps + tap) * CHANNELS, x + t, grad, p, k0, k1, k2, s, c);
  }
}

/* Sums of a panel of output channels, turned: for each of these, all taps of a panel of input channels lie side by side. */
#define WRITE(put, to, step)                                                                       \
  for (long row = 0; row < rows; row += VEC) {                                                     \
    const int count = (int)min((long)VEC, rows - row);                                             \
    for (int w = 0; w < WIDE; w++) {                                                               \
      VT square[VEC], results[VEC];                                                                \
      _Pragma("unroll") for (int i = 0; i < VEC; i++) square[i] = VLOAD(sums + ((row + i) * WIDE + w) * VEC); \
      turn_square(square);                                                                         \
      _Pragma("unroll") for (int i = 0; i < VEC; i++) results[i] = square[i];                      \
      for (int i = 0; i < min((long)VEC, outs - w * VEC); i++) put((to) + (w * VEC + i) * (step) + row, results[i], count); \
    }                                                                                              \
  }

KERNEL gradient_channels(PLACE(weight), __global uchar *work, ulong offset_rows, ulong offset_outs, ulong offset_sums,
                         ulong offset_parts, space s, channels c) {
  __global CT *sums = (__global CT *)(work + offset_sums) + get_global_id(0) * c.scratch;
  long unit = get_global_id(0) * s.per_item, last = min(unit + s.per_item, s.units);
  for (; unit < last; unit++) {
    const long in_panel = unit % c.in_panels, rest = unit / c.in_panels, out_panel = rest % c.out_panels;
    const long group = rest / c.out_panels % s.groups, split = rest / c.out_panels / s.groups;
    const long each = each_of(&s), images = min(each, s.batch - split * each);
    __global const CT *x = (__global const CT *)(work + offset_rows) +
                           ((group * c.in_panels + in_panel) * s.splits + split) * c.in_places * each * CHANNELS;
    __global const CT *grad = (__global const CT *)(work + offset_outs) +
                              ((group * c.out_panels + out_panel) * s.splits + split) * c.out_places * each * CHANNELS;
    for (long q = 0; q < c.scratch; q += VEC) VSTORE((VT)0, sums + q);
    const long count = min((long)CHANNELS, s.in_channels - in_panel * CHANNELS);
    part p;
    for (p.o0 = 0; p.o0 < s.out_size[0]; p.o0++) {
      for (p.image = 0; p.image < images; p.image += c.images) {
        p.images = min(c.images, images - p.image);
        for (p.o1 = 0; p.o1 < s.out_size[1]; p.o1 += c.rows) {
          p.end1 = min(p.o1 + c.rows, s.out_size[1]);
          for (p.o2 = 0; p.o2 < s.out_size[2]; p.o2 += c.columns) {
            p.end2 = min(p.o2 + c.columns, s.out_size[2]);
            add_part(sums, x, grad, count, &p, &s, &c);
          }
        }
      }
    }
    const long step = s.in_channels * c.taps, rows = count * c.taps;
    const long outs = s.out_channels - out_panel * CHANNELS;
    const long at = (group * s.out_channels + out_panel * CHANNELS) * step + in_panel * CHANNELS * c.taps;
    if (s.splits == 1) {
      WRITE(put_value, POINTER(D, weight) + at, step)
    } else {
      __global RAW(D_PART) *parts =
          (__global RAW(D_PART) *)(work + offset_parts) + split * s.groups * s.out_channels * step + at;
      WRITE(put_part, parts, step)
    }
  }
}
