/* What convolutions and the gradients of their weights read, packed, after core/pairs.cl and space.cl: rows of the input or of a
 * gradient, and with FORWARD the weights. How rows lie: convolution.cl. */
#ifndef PAIRS
#define ONE_STEP(p, apart, has) one_value(p)
#endif

/* VEC elements of a row of `size`, of which the first is `place`: 0 outside it. */
static VEC_OF(RAW(D)) elements_of(__global const RAW(D) * from, long size, long place, long mul, long div) {
  RAW(D) lanes[VEC];
  for (int j = 0; div == 1 && j < VEC; j++, place += mul) {
    bool inside = (ulong)place < (ulong)size;
    RAW(D) element = from[inside ? place : 0];
    lanes[j] = inside ? element : (RAW(D))0;
  }
  for (int j = 0; div != 1 && j < VEC; j++, place += mul) {
    long i = place / div;
    bool inside = place >= 0 && i < size && i * div == place;
    lanes[j] = inside ? from[inside ? i : 0] : (RAW(D))0;
  }
  return VLOAD(lanes);
}

/* A step of them: of PAIRS also of the row that lies `apart` elements on, if one does. */
static VT row_part(__global const RAW(D) * from, long apart, long size, long place, long mul, long div) {
  const VEC_OF(RAW(D)) elements = elements_of(from, size, place, mul, div);
#ifdef PAIRS
  return join_pairs(elements, apart ? elements_of(from + apart, size, place, mul, div) : (VEC_OF(RAW(D)))0);
#else
  return LOAD(D, __private, (__private const RAW(D) *)&elements);
#endif
}

/* `count` elements that lie side by side. Where there is a vector of them the last one begins where it ends with them. */
static void pack_run(__global CT *to, __global const RAW(D) * from, long apart, long count) {
  long x = 0;
  for (; x + VEC <= count; x += VEC) VSTORE(LOAD_STEP(from + x, apart, apart), to + x);
  if (x < count && count >= VEC) {
    x = count - VEC;
    VSTORE(LOAD_STEP(from + x, apart, apart), to + x);
    return;
  }
  for (; x < count; x++) to[x] = ONE_STEP(from + x, apart, apart);
}

#ifdef PLANE
#define ROW_SIZE(s) ((s)->plane.in_width * (s)->plane.in_height)
static void pack(__global const RAW(D) * in, long apart, __global CT *to, const space *s) {
  const plane *p = &s->plane;
  for (long q = 0; q < s->row; q += VEC) VSTORE((VT)0, to + q);
  long x0 = max(-p->left, 0L), x1 = min(p->pitch, p->in_width - p->left);
  for (long y = max(-p->top, 0L); y < min(p->rows, p->in_height - p->top); y++) {
    pack_run(to + y * p->pitch + x0, in + (y + p->top) * p->in_width + p->left + x0, apart, x1 - x0);
  }
}

#else
#define ROW_SIZE(s) ((s)->in_size[2])
#if VEC > 1
/* VEC steps of a row of VEC or more that lie side by side: zeros outside it. */
static VT run_part(__global const RAW(D) * from, long apart, long size, long place) {
  const long inside = clamp(place, 0L, size - VEC);
  const VT v = LOAD_STEP(from + inside, apart, apart);
  if (place == inside) return v;
  CT lanes[3 * VEC];
  VSTORE((VT)0, lanes);
  VSTORE(v, lanes + VEC);
  VSTORE((VT)0, lanes + 2 * VEC);
  return VLOAD(lanes + VEC + clamp(place - inside, -(long)VEC, (long)VEC));
}
#endif

static void pack(__global const RAW(D) * in, long apart, __global CT *to, const space *s) {
  if (s->mul[2] == 1 && s->div[2] == 1) {
    for (long q = 0; q < s->phase; q += VEC) VSTORE((VT)0, to + q);
    const long begin = clamp(-s->first, 0L, s->phase), end = clamp(s->in_size[2] - s->first, begin, s->phase);
    pack_run(to + begin, in + s->first + begin, apart, end - begin);
    return;
  }
#if VEC > 1
  if (s->mul[2] == 2 && s->div[2] == 1 && s->in_size[2] >= VEC) {
    for (long q = 0; q < s->phase; q += VEC) {
      const VT a = run_part(in, apart, s->in_size[2], 2 * q + s->first);
      const VT b = run_part(in, apart, s->in_size[2], 2 * q + s->first + VEC);
      VSTORE((VT)(a.even, b.even), to + q);
      VSTORE((VT)(a.odd, b.odd), to + s->phase + q);
    }
    return;
  }
#endif
  for (long p = 0; p < s->mul[2]; p++) {
    for (long q = 0; q < s->phase; q += VEC) {
      VSTORE(row_part(in, apart, s->in_size[2], q * s->mul[2] + p + s->first, s->mul[2], s->div[2]), to + p * s->phase + q);
    }
  }
}

#endif
KERNEL pack_rows(PLACE(work), CONST_PLACE(in), space s) {
  const long lines = s.in_size[0] * s.in_size[1], rows = s.batch * s.groups * s.steps * lines;
  long row = get_global_id(0) * s.per_item, last = min(row + s.per_item, rows);
  for (; row < last; row++) {
    const long line = row % lines, step = row / lines % s.steps, image = row / lines / s.steps;
    const long channel = step * STEP_K, apart = channel + 1 < s.in_channels ? lines * ROW_SIZE(&s) : 0;
    pack(CONST_POINTER(D, in) + ((image * s.in_channels + channel) * lines + line) * ROW_SIZE(&s), apart,
         (__global CT *)(work + offset_work) + row * s.row, &s);
  }
}

#ifdef FORWARD
/* To [group][block][step of in channels][tap][TILE]. */
KERNEL pack_weights(PLACE(work), CONST_PLACE(weight), space s) {
  long taps = s.taps[0] * s.taps[1] * s.taps[2], all = s.groups * s.blocks * s.steps * taps;
  long at = get_global_id(0);
  if (at >= all) return;
  long tap = at % taps, channel = at / taps % s.steps * STEP_K, block = at / taps / s.steps % s.blocks;
  long group = at / taps / s.steps / s.blocks;
  __global const RAW(D) *from = CONST_POINTER(D, weight) +
                                       group * s.weight_group + channel * s.weight_in + tap;
  __global CT *to = (__global CT *)(work + offset_work) + at * TILE;
#pragma unroll
  for (int b = 0; b < TILE; b++) {
    long out = block * TILE + b;
    to[b] = out < s.out_channels ? ONE_STEP(from + out * s.weight_out, s.weight_in, channel + 1 < s.in_channels) : (CT)0;
  }
}

#endif
