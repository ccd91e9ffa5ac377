/* Convolutions of one input channel a group on CPUs, after space.cl, gaps.cl and sums.cl: each element serves so few
 * products that to pack a whole tensor would take longer than these. A work-item brings the rows that a strip of outputs
 * meets to its own part of the workspace, small enough to stay in the cache: cast, with zeros where a row has no element,
 * and taken apart into phases, so that what a vector of outputs meets at one tap lies side by side. Rows that the window
 * meets outside the input are left out. What the zeros spoil is mended (gaps.cl), of a convolution at once.
 *
 * The head defines D, TAPS (of a row of the window; s.taps[2], where these are many) and FORWARD for the convolution. */
typedef struct {
  long rows, width;   /* outputs of a strip */
  long down, across;  /* strips of a plane */
  long held, scratch; /* rows of the input that a strip meets; elements of a work-item's workspace */
  long mends;         /* whether zeros may spoil a result */
} strips;

typedef struct {
  long image, o0;        /* an image's group; a plane of its outputs */
  long begin, end;       /* rows of outputs */
  long first, count;     /* of each the outputs */
  long low, high, place; /* rows of the input, from the first to the last; the place where each begins */
} strip;

static strip strip_of(const space *s, const strips *c, long unit) {
  strip p;
  p.first = unit % c->across * c->width;
  p.begin = unit / c->across % c->down * c->rows;
  const long plane = unit / c->across / c->down, reach = (s->taps[1] - 1) * s->tap[1];
  p.o0 = plane % s->out_size[0];
  p.image = plane / s->out_size[0];
  p.count = min(c->width, s->out_size[2] - p.first);
  p.end = min(p.begin + c->rows, s->out_size[1]);
  const long low = p.begin * s->mul[1] + s->off[1] + min(reach, 0L);
  const long high = (p.end - 1) * s->mul[1] + s->off[1] + max(reach, 0L);
  p.low = low > 0 ? (low + s->div[1] - 1) / s->div[1] : 0;
  p.high = high < 0 ? -1 : min(high / s->div[1], s->in_size[1] - 1);
  p.place = p.first * s->mul[2] + s->first;
  return p;
}

/* ---- Rows of the input ---- */

static void clear_row(__global CT *to, long size) {
  for (long q = 0; q < size; q += VEC) VSTORE((VT)0, to + q);
}

/* VEC elements, of which `count` are wanted; beyond them zeros. `room`: how many may be read. */
static VT some_of(__global const RAW(D) * from, long count, long room) {
  if (count >= VEC) return LOAD(D, __global, from);
  MT lanes[VEC];
  for (int j = 0; j < VEC; j++) lanes[j] = j;
  const VT v = room >= VEC ? LOAD(D, __global, from) : get_value(from, (int)count);
  return SELECT(VLOAD(lanes) < (VM)(MT)count, v, (VT)0);
}

/* Elements side by side, from `first` up to `end`, to their places; zeros up to a whole vector. */
static void copy_row(__global const RAW(D) * from, __global CT *to, long first, long end, long place, long room) {
  for (long i = first; i < end; i += VEC) VSTORE(some_of(from + i, end - i, room - i), to + i - place);
}

/* With div - 1 zeros between them. */
static void spread_row(__global const RAW(D) * from, __global CT *to, long first, long end, long place, long div) {
  for (long i = first; i < end; i += VEC) {
    CT lanes[VEC];
    const long count = min((long)VEC, end - i);
    VSTORE(get_value(from + i, (int)count), lanes);
    for (long j = 0; j < count; j++) to[(i + j) * div - place] = lanes[j];
  }
}

/* A row taken apart: phase p has each mul-th element from the p-th on. */
static void part_row(__global const CT *line, __global CT *to, long phase, long mul) {
  for (long q = 0; q < phase; q += VEC) {
#if VEC > 1
    if (mul == 2) {
      const VT a = VLOAD(line + 2 * q), b = VLOAD(line + 2 * q + VEC);
      VSTORE((VT)(a.even, b.even), to + q);
      VSTORE((VT)(a.odd, b.odd), to + phase + q);
      continue;
    }
#endif
    for (long p = 0; p < mul; p++) {
      CT lanes[VEC];
      for (int j = 0; j < VEC; j++) lanes[j] = line[(q + j) * mul + p];
      VSTORE(VLOAD(lanes), to + p * phase + q);
    }
  }
}

static void bring_row(__global const RAW(D) * from, __global CT *line, __global CT *to, const space *s, long place,
                      long room) {
  const long div = s->div[2], mul = s->mul[2], last = place + s->row - 1;
  const long first = place > 0 ? (place + div - 1) / div : 0, end = last < 0 ? 0 : min(last / div + 1, s->in_size[2]);
  __global CT *at = mul == 1 ? to : line;
  clear_row(at, s->row);
  if (div == 1) copy_row(from, at, first, end, place, room);
  else spread_row(from, at, first, end, place, div);
  if (mul > 1) part_row(line, to, s->phase, mul);
}

/* All rows that a strip of a channel's image meets. */
static void bring_strip(CONST_PLACE(in), long number, __global CT *line, __global CT *held, const space *s, const strips *c,
                        const strip *p) {
  const long rows = s->in_size[0] * s->in_size[1], all = s->batch * s->groups * rows;
  for (long k0 = 0; k0 < s->taps[0]; k0++) {
    const long i0 = element_at(p->o0 * s->mul[0] + s->off[0] + k0 * s->tap[0], s->div[0], s->in_size[0]);
    for (long i1 = p->low; i0 >= 0 && i1 <= p->high; i1++) {
      const long row = number * rows + i0 * s->in_size[1] + i1;
      bring_row(CONST_POINTER(D, in) + row * s->in_size[2], line, held + (k0 * c->held + i1 - p->low) * s->row, s, p->place,
                (all - row) * s->in_size[2]);
    }
  }
}

/* ---- The window ---- */

#define MOST 64 /* rows of a window, and taps of a row */

/* Where the taps of a row begin, for output 0 of a strip. */
static void start_taps(long start[MOST], const space *s) {
  for (long k = 0; k < s->taps[2]; k++) {
    const long place = s->off[2] + k * s->tap[2] - s->first;
    start[k] = place % s->mul[2] * s->phase + place / s->mul[2];
  }
}

/* The rows of the window that meet some of the input: where these lie, and their first taps. */
typedef struct {
  long count, number[MOST];
  __global const CT *row[MOST];
} met_rows;

static void meet(met_rows *met, __global const CT *held, const space *s, const strips *c, const strip *p, long o1) {
  met->count = 0;
  for (long k0 = 0; k0 < s->taps[0]; k0++) {
    const long i0 = element_at(p->o0 * s->mul[0] + s->off[0] + k0 * s->tap[0], s->div[0], s->in_size[0]);
    for (long k1 = 0; i0 >= 0 && k1 < s->taps[1]; k1++) {
      const long i1 = element_at(o1 * s->mul[1] + s->off[1] + k1 * s->tap[1], s->div[1], s->in_size[1]);
      if (i1 < 0) continue;
      met->number[met->count] = (k0 * s->taps[1] + k1) * s->taps[2];
      met->row[met->count++] = held + (k0 * c->held + i1 - p->low) * s->row;
    }
  }
}

#ifdef FORWARD
/* ---- The convolution ---- */

typedef struct {
  __global RAW(D) *to; /* of the row's outputs in this strip */
  long count, room;    /* of them, and elements that may be written: results come after these, in order */
} result_row;

#ifdef CLASS_FLOAT
#define SPOILED(v) ((v) != (v))
#else
#define SPOILED(v) ((VM)0)
#endif

/* One vector of outputs or two. */
static INLINED void sum_vectors(const int wide, VT sum[2], long o2, const met_rows *met, __global const CT *weights,
                                const long start[MOST], const space *s) {
  sum[0] = sum[1] = (VT)0;
  for (long at = 0; at < met->count; at++) {
    __global const CT *row = met->row[at] + o2, *taps = weights + met->number[at];
#ifdef MANY_TAPS
    VT part[2] = {(VT)0, (VT)0}; /* rounding errors grow with a row's taps, not with all */
#else
#define part sum
#pragma unroll
#endif
    for (int k = 0; k < TAPS; k++) {
#pragma unroll
      for (int w = 0; w < wide; w++) part[w] = MULTIPLY_ADD(VLOAD(row + start[k] + w * VEC), (VT)taps[k], part[w]);
    }
#ifdef MANY_TAPS
#pragma unroll
    for (int w = 0; w < wide; w++) sum[w] = ADD(sum[w], part[w]);
#endif
  }
}

#ifdef FOLLOWED
/* One channel's outputs of a strip, whose planes have so many elements. */
static void follow_strip(long image, long channel, __global const CT *held, __global const CT *weights,
                         const long start[MOST], CT added, const space *s, const strips *c, const strip *p,
                         const followers *f) {
  const long plane = s->out_size[1] * s->out_size[2];
  met_rows met;
  for (long o1 = p->begin; o1 < p->end; o1++) {
    const long at = p->o0 * plane + o1 * s->out_size[2] + p->first;
    meet(&met, held, s, c, p, o1);
    for (long o2 = 0; o2 < p->count; o2 += 2 * VEC) {
      VT sum[2];
      if (o2 + VEC < p->count) sum_vectors(2, sum, o2, &met, weights, start, s);
      else sum_vectors(1, sum, o2, &met, weights, start, s);
#pragma clang loop unroll(disable)
      for (int w = 0; w < 2; w++) {
        const long o = o2 + w * VEC;
        if (o < p->count)
          follow(ADD(sum[w], (VT)added), added, image, channel, s->out_size[0] * plane, at + o,
                 (int)min((long)VEC, p->count - o), s, f);
      }
    }
  }
}

#else
/* Returns which are NaN. */
static INLINED VM put_vectors(const int wide, long o2, const result_row *r, const met_rows *met,
                              __global const CT *weights, const long start[MOST], CT added, const space *s) {
  VT sum[2];
  VM spoiled = (VM)0;
  sum_vectors(wide, sum, o2, met, weights, start, s);
#pragma unroll
  for (int w = 0; w < wide; w++) {
    const long o = o2 + w * VEC;
    const VT v = ADD(sum[w], (VT)added);
    spoiled |= SPOILED(v);
    if (o + VEC <= r->room) STORE(D, __global, r->to + o, v);
    else put_value(r->to + o, v, (int)min((long)VEC, r->count - o));
  }
  return spoiled;
}

/* One channel's outputs of a strip; `to` is its plane, that begins with result number `number` of all. */
static void put_strip(PLACE(out), CONST_PLACE(in), CONST_PLACE(weight), long number, __global const CT *held,
                      __global const CT *weights, const long start[MOST], CT added, const space *s, const strips *c,
                      const strip *p) {
  met_rows met;
  __global RAW(D) *plane = POINTER(D, out) + number;
  for (long o1 = p->begin; o1 < p->end; o1++) {
    const long at = o1 * s->out_size[2] + p->first;
    const result_row r = {plane + at, p->count, c->across == 1 ? p->end * s->out_size[2] - at : p->count};
    VM spoiled = (VM)0;
    long o2 = 0;
    meet(&met, held, s, c, p, o1);
    for (; o2 + VEC < p->count; o2 += 2 * VEC) spoiled |= put_vectors(2, o2, &r, &met, weights, start, added, s);
    if (o2 < p->count) spoiled |= put_vectors(1, o2, &r, &met, weights, start, added, s);
#ifdef CLASS_FLOAT
    if (!c->mends || added != added || !SOME(spoiled != (VM)0)) continue;
    for (o2 = 0; o2 < p->count; o2++) {
      const CT v = one_value(r.to + o2);
      if (v != v)
        again(POINTER(D, out), CONST_POINTER(D, in), CONST_POINTER(D, weight), added, s, number + at + o2);
    }
#endif
  }
}
#endif

KERNEL convolve_strips(PLACE(out), PLACE(work), CONST_PLACE(bias), long has_bias, CONST_PLACE(in),
                       CONST_PLACE(weight) FOLLOWED_PARAMETERS, space s, strips c) {
#ifdef FOLLOWED
  const followers f = FOLLOWERS;
#endif
  const long item = get_global_id(0), taps = s.taps[0] * s.taps[1] * s.taps[2];
  __global CT *line = (__global CT *)(work + offset_work) + item * c.scratch;
  __global CT *held = line + s.row + VEC, *weights = held + s.taps[0] * c.held * s.row + VEC;
  long start[MOST];
  start_taps(start, &s);
  long unit = item * s.per_item, last = min(unit + s.per_item, s.units);
  for (; unit < last; unit++) {
    const strip p = strip_of(&s, &c, unit);
    const long group = p.image % s.groups;
    bring_strip(in, offset_in, p.image, line, held, &s, &c, &p);
    for (long channel = 0; channel < s.out_channels; channel++) {
      __global const RAW(D) *from = CONST_POINTER(D, weight) + group * s.weight_group + channel * s.weight_out;
      for (long t = 0; t < taps; t++) weights[t] = one_value(from + t);
      const CT added = has_bias ? one_value(CONST_POINTER(D, bias) + group * s.out_channels + channel) : (CT)0;
#ifdef FOLLOWED
      follow_strip(p.image, channel, held, weights, start, added, &s, &c, &p, &f);
#else
      put_strip(out, offset_out, in, offset_in, weight, offset_weight,
                ((p.image * s.out_channels + channel) * s.out_size[0] + p.o0) * s.out_size[1] * s.out_size[2], held, weights,
                start, added, &s, &c, &p);
#endif
    }
  }
}

#else
/* ---- The gradient of the weight ---- */

#define ROWS 32 /* of outputs, whose sums are added to those before: rounding errors don't grow with their number */

/* Adds to the sums of the taps of one row of the window what a row of outputs gives. */
static void add_row(__global CT *sums, __global const CT *outs, __global const CT *row, const long start[MOST],
                    long count, const space *s) {
#ifdef MANY_TAPS
  for (long k = 0; k < TAPS; k++) {
    VT sum = (VT)0;
    for (long o2 = 0; o2 < count; o2 += VEC) sum = MULTIPLY_ADD(VLOAD(outs + o2), VLOAD(row + start[k] + o2), sum);
    VSTORE(ADD(VLOAD(sums + k * VEC), sum), sums + k * VEC);
  }
#else
  VT sum[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; k++) sum[k] = (VT)0;
  for (long o2 = 0; o2 < count; o2 += VEC) {
    const VT g = VLOAD(outs + o2);
#pragma unroll
    for (int k = 0; k < TAPS; k++) sum[k] = MULTIPLY_ADD(g, VLOAD(row + start[k] + o2), sum[k]);
  }
#pragma unroll
  for (int k = 0; k < TAPS; k++) VSTORE(ADD(VLOAD(sums + k * VEC), sum[k]), sums + k * VEC);
#endif
}

/* Adds up the sums of so many elements, and clears them. */
static void add_sums(__global CT *totals, __global CT *sums, long elements) {
  for (long at = 0; at < elements; at += VEC) {
    VSTORE(ADD(VLOAD(totals + at), VLOAD(sums + at)), totals + at);
    VSTORE((VT)0, sums + at);
  }
}

/* A unit is one output channel, of a part of the batch. */
KERNEL gradient_strips(PLACE(work), ulong offset_parts, CONST_PLACE(in), CONST_PLACE(grad), space s, strips c) {
  const long item = get_global_id(0), taps = s.taps[0] * s.taps[1] * s.taps[2], channels = s.groups * s.out_channels;
  const long pieces = s.out_size[0] * c.down * c.across, each = (s.batch + s.splits - 1) / s.splits;
  const long all = s.batch * channels * s.out_size[0] * s.out_size[1]; /* rows of outputs */
  __global CT *line = (__global CT *)(work + offset_work) + item * c.scratch;
  __global CT *held = line + s.row + VEC, *sums = held + s.taps[0] * c.held * s.row + VEC, *totals = sums + taps * VEC;
  __global CT *outs = totals + taps * VEC;
  long start[MOST];
  met_rows met;
  start_taps(start, &s);
  long unit = item * s.per_item, last = min(unit + s.per_item, s.units);
  for (; unit < last; unit++) {
    const long channel = unit % channels, split = unit / channels, group = channel / s.out_channels;
    const long stop = min((split + 1) * each, s.batch);
    long rows = 0;
    clear_row(sums, 2 * taps * VEC);
    for (long at = split * each * pieces; at < stop * pieces; at++) {
      const strip p = strip_of(&s, &c, at);
      const long plane = (p.image * channels + channel) * s.out_size[0] + p.o0;
      bring_strip(in, offset_in, p.image * s.groups + group, line, held, &s, &c, &p);
      for (long o1 = p.begin; o1 < p.end; o1++) {
        meet(&met, held, &s, &c, &p, o1);
        const long row = plane * s.out_size[1] + o1;
        copy_row(CONST_POINTER(D, grad) + row * s.out_size[2], outs, p.first, p.first + p.count, p.first,
                 (all - row) * s.out_size[2]);
        for (long r = 0; r < met.count; r++) add_row(sums + met.number[r] * VEC, outs, met.row[r], start, p.count, &s);
        if (++rows % ROWS == 0) add_sums(totals, sums, taps * VEC);
      }
    }
    add_sums(totals, sums, taps * VEC);
    __global CT *to = (__global CT *)(work + offset_parts) + (split * channels + channel) * taps;
    for (long t = 0; t < taps; t++) to[t] = total(VLOAD(totals + t * VEC));
  }
}
#endif
