/* Convolutions, over three spatial dimensions, after core/pairs.cl, space.cl, gaps.cl, sums.cl, phases.cl and followed.cl. Rows of the input are first packed: cast, padded with
 * zeros, and taken apart into phases, so that the elements which a vector of outputs meets at one tap of the window lie
 * side by side, whatever stride, dilation and padding are. What those zeros spoil is mended (gaps.cl): of a convolution where
 * its results are written, of a gradient by a kernel of its own.
 *
 * Short rows are packed as PLANE: all of a plane one after the other, `pitch` elements apart, so that it is one long row
 * and each tap of the window a shift of the whole.
 *
 * The head defines D (the dtype), TAPS (the window's innermost size; all of a PLANE's), MANY_TAPS (where that is large:
 * TAPS is s.taps[2] then and no constant), TILE (channels of a work-item's result), WIDE (vectors side by side of each) and FORWARD for the convolution itself,
 * which is also the gradient of its input; else the gradients of weight and bias are made. */
/* ---- Packing ---- */

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

/* Where tap k of a row begins, for output 0. */
static long tap_start(const space *s, long k) {
#ifdef SPREAD
  return (s->off[2] + k * s->tap[2] + PHASE(k)) / SPREAD - s->first; /* for the first of its phase */
#endif
#ifdef PLANE
  return s->plane.start + k / s->plane.across * s->plane.down + k % s->plane.across * s->tap[2];
#endif
  long place = s->off[2] + k * s->tap[2] - s->first;
  return place % s->mul[2] * s->phase + place / s->mul[2];
}

/* ---- Results ---- */

#ifdef FORWARD
/* Where a vector of results belongs in a channel. */
typedef struct {
  long spatial; /* elements of a channel */
  long at;
#ifdef PLANE
  long x, y; /* of the first one */
#endif
  int count;
} results;

static results results_of(const space *s, long o0, long o1, long o2) {
  results r;
#ifdef PLANE
  long plane = s->plane.height * s->plane.width;
  r.spatial = s->out_size[0] * plane;
  r.at = o0 * plane;
  r.y = o2 / s->plane.pitch;
  r.x = o2 - r.y * s->plane.pitch;
#else
  r.spatial = s->out_size[0] * s->out_size[1] * s->out_size[2];
  r.at = (o0 * s->out_size[1] + o1) * s->out_size[2] + o2;
#endif
  r.count = (int)min((long)VEC, s->out_size[2] - o2);
  return r;
}

static void put_results(const results *r, const space *s, __global RAW(D) * channel, VT v) {
#ifdef PLANE
  if (r->x + VEC <= s->plane.width && r->count >= VEC) {
    put_value(channel + r->at + r->y * s->plane.width + r->x, v, VEC);
    return;
  }
  RAW(D) lanes[VEC];
  STORE(D, __private, lanes, v);
  long x = r->x, y = r->y;
  for (long j = 0; j < r->count; x = 0, y++) {
    __global RAW(D) *to = channel + r->at + y * s->plane.width + x;
    long end = min(j + s->plane.width - x, (long)r->count), next = j + s->plane.pitch - x;
    for (; j + 4 <= end; j += 4, to += 4) vstore4(vload4(0, lanes + j), 0, to);
    for (; j < end; j++, to++) *to = lanes[j];
    j = next;
  }
#else
  put_value(channel + r->at, v, r->count);
#endif
}

#ifdef MANY_TAPS
/* From tap to tap of a row, without the divisions of tap_start; taps go backwards only where mul is 1. */
typedef struct {
  long phase, element;
} walk;

static walk walk_of(long place, const space *s) {
  walk w = {place % s->mul[2], place / s->mul[2]};
  return w;
}

static void walk_on(walk *at, const walk *step, const space *s) {
  at->phase += step->phase;
  at->element += step->element;
  if (at->phase >= s->mul[2]) at->phase -= s->mul[2], at->element++;
}
#endif

/* The taps along a dimension that meet an element of the input: the first of them, its element, and how many; each of the
 * others is `step` taps further, and meets what is `move` elements further. */
typedef struct {
  long tap, element, count;
} met;

static met met_along(const space *s, int d, long out) {
  const long place = out * s->mul[d] + s->off[d];
  met m = {0, 0, 0};
  while (m.tap < s->step[d] && (place + m.tap * s->tap[d]) % s->div[d] != 0) m.tap++;
  if (m.tap == s->step[d]) return m;
  m.element = (place + m.tap * s->tap[d]) / s->div[d];
  while (m.tap < s->taps[d] && (m.element < 0 || m.element >= s->in_size[d])) m.tap += s->step[d], m.element += s->move[d];
  for (long tap = m.tap, i = m.element; tap < s->taps[d] && i >= 0 && i < s->in_size[d]; tap += s->step[d], i += s->move[d])
    m.count++;
  return m;
}

#ifdef FOLLOWED
/* Of a PLANE's vector what is inside its rows: places of one channel, side by side. */
static void follow_results(const results *r, VT v, CT added, long image, long channel, const space *s, const followers *f) {
#ifdef PLANE
  const long width = s->plane.width, pitch = s->plane.pitch;
  CT all[VEC], inside[VEC];
  int n = 0;
  VSTORE(v, all);
  for (long j = r->x < width ? 0 : pitch - r->x, x = r->x < width ? r->x : 0; j < r->count; j += pitch - width, x = 0) {
    const long end = min(j + width - x, (long)r->count);
    for (; j + 4 <= end; j += 4, n += 4) vstore4(vload4(0, all + j), 0, inside + n);
    for (; j < end; j++) inside[n++] = all[j];
  }
  for (int j = n; j < VEC; j++) inside[j] = (CT)0;
  const long at = r->at + (r->x < width ? r->y * width + r->x : (r->y + 1) * width);
  if (n > 0) follow(VLOAD(inside), added, image, channel, r->spatial, at, n, s, f);
#else
  follow(v, added, image, channel, r->spatial, r->at, r->count, s, f);
#endif
}

/* In a loop that stays one, since the code of what follows is long. */
static void follow_tile(const VT sum[TILE * WIDE], CONST_PLACE(bias), long has_bias, long image, long first, long o0, long o1,
                        long o2, const space *s, const followers *f) {
#pragma clang loop unroll(disable)
  for (int at = 0; at < TILE * WIDE; at++) {
    const long channel = first + at / WIDE, place = o2 + at % WIDE * VEC;
    if (channel >= s->out_channels || place >= s->out_size[2]) continue;
    const CT added = has_bias ? one_value(CONST_POINTER(D, bias) + image % s->groups * s->out_channels + channel) : (CT)0;
    const results r = results_of(s, o0, o1, place);
    follow_results(&r, has_bias ? ADD(sum[at], (VT)added) : sum[at], added, image, channel, s, f);
  }
}
#endif

#ifndef FOLLOWED
/* Sums those results of a tile that are NaN once more (gaps.cl). They are read where they were written, by a loop that stays
 * one: it is seldom needed. `image` is one group of one. */
static void mend_tile(__global RAW(D) * out, __global const RAW(D) * in, __global const RAW(D) * weight, CONST_PLACE(bias),
                      long has_bias, long image, long first, long o0, long o1, long o2, const space *s) {
  const space whole = whole_of(s);
#pragma clang loop unroll(disable)
  for (int t = 0; t < TILE * WIDE; t++) {
    const long channel = first + t / WIDE, place = o2 + t % WIDE * VEC;
    if (channel >= s->out_channels || place >= s->out_size[2]) continue;
    const CT added = has_bias ? one_value(CONST_POINTER(D, bias) + image % s->groups * s->out_channels + channel) : (CT)0;
    const results r = results_of(s, o0, o1, place);
    const long row = (image * s->out_channels + channel) * r.spatial + r.at;
    for (int j = 0; added == added && j < r.count; j++) {
#ifdef PLANE
      const long x = (r.x + j) % s->plane.pitch, y = r.y + (r.x + j) / s->plane.pitch;
      if (x >= s->plane.width) continue;
      const long at = row + y * s->plane.width + x;
#else
      const long at = row + j;
#endif
      const CT spoiled = one_value(out + at);
      if (spoiled != spoiled) again(out, in, weight, added, &whole, at);
    }
  }
}
#endif

#define SPAN 128 /* products, which are summed before they are added to those before: equal terms round alike */

/* On CPUs so many units of a tile of channels take turns, span by span: what a span reads of the weights, and of the rows
 * that units share, stays in the nearest cache. */
#if LOCAL == 1
#define TURNS 8
#else
#define TURNS 1
#endif

/* Where a unit's results are, and what of the window meets elements there: the first row and its weights, of a step, and how
 * many planes and rows of a plane. */
typedef struct {
  long o0, o1, o2;
  long row, weights, planes, rows;
} place;

static place place_of(const space *s, long unit) {
  place p = {unit / s->segments / s->out_size[1] % s->out_size[0], unit / s->segments % s->out_size[1],
             unit % s->segments * (WIDE * VEC), 0, 0, 0, 0};
  const met met0 = met_along(s, 0, p.o0), met1 = met_along(s, 1, p.o1);
  p.row = (met0.element * s->in_size[1] + met1.element) * s->row + p.o2 / OUTS_APART;
  p.weights = (met0.tap * s->taps[1] + met1.tap) * s->taps[2] * TILE;
  p.planes = met0.count;
  p.rows = met1.count;
  return p;
}

#ifndef FOLLOWED
static INLINED void put_tile(VT total[TILE][WIDE], PLACE(out), CONST_PLACE(in), CONST_PLACE(weight), CONST_PLACE(bias),
                             long has_bias, long mends, long image, long first, const place *p, const space *s) {
  VM spoiled = (VM)0;
#pragma unroll
  for (int w = 0; w < WIDE; w++) {
    if (p->o2 + w * VEC >= s->out_size[2]) continue;
    const results r = results_of(s, p->o0, p->o1, p->o2 + w * VEC);
#pragma unroll
    for (int b = 0; b < TILE; b++) {
      const long channel = first + b;
      if (channel >= s->out_channels) continue;
      if (has_bias) {
        CT v = one_value(CONST_POINTER(D, bias) + image % s->groups * s->out_channels + channel);
        total[b][w] = ADD(total[b][w], (VT)v);
      }
      spoiled |= total[b][w] != total[b][w];
      put_results(&r, s, POINTER(D, out) + (image * s->out_channels + channel) * r.spatial, total[b][w]);
    }
  }
  if (mends && SOME(spoiled))
    mend_tile(POINTER(D, out), CONST_POINTER(D, in), CONST_POINTER(D, weight), bias, offset_bias, has_bias, image, first,
              p->o0, p->o1, p->o2, s);
}
#endif

/* The input and the weight are read where `mends`, for what zeros have spoiled. */
KERNEL convolve(PLACE(out), __global const uchar *work, ulong offset_rows, ulong offset_weights, CONST_PLACE(bias),
                long has_bias, CONST_PLACE(in), CONST_PLACE(weight), long mends FOLLOWED_PARAMETERS, space s) {
  long unit = get_global_id(0) * s.per_item, last = min(unit + s.per_item, s.units);
#ifdef FOLLOWED
  const followers f = FOLLOWERS;
#endif
  const long at_once = max(SPAN / (STEP_K * s.taps[0] * s.taps[1] * TAPS), 1L); /* steps */
#ifdef MANY_TAPS
  const walk first_tap = walk_of(s.off[2] - s.first, &s), next_tap = walk_of(s.tap[2], &s);
#else
  long start[TAPS];
#pragma unroll
  for (int k = 0; k < TAPS; k++) start[k] = tap_start(&s, k);
#endif
  const long next_row = s.move[1] * s.row, next_weights = s.step[1] * TAPS * TILE;
  const long next_plane = s.move[0] * s.in_size[1] * s.row, next_plane_weights = s.step[0] * s.taps[1] * TAPS * TILE;
  const long in_step = s.in_size[0] * s.in_size[1] * s.row, weights_step = s.taps[0] * s.taps[1] * TAPS * TILE;
  const long of_block = s.segments * s.out_size[1] * s.out_size[0];
#ifdef MANY_TAPS
  const long ahead = in_step;
#else
  const long ahead = in_step + max(start[0], start[TAPS - 1]); /* what no unit before has read */
#endif
  for (long turns; unit < last; unit += turns) {
    const long rest = unit / of_block;
    const long block = rest % s.blocks, image = rest / s.blocks, group = image % s.groups; /* one group of one image */
    turns = min(min((long)TURNS, last - unit), (rest + 1) * of_block - unit);
    __global const CT *rows = (__global const CT *)(work + offset_rows) + image * s.steps * in_step;
    __global const CT *all_weights =
        (__global const CT *)(work + offset_weights) + (group * s.blocks + block) * s.steps * weights_step;
    VT totals[TURNS][TILE][WIDE];
    place places[TURNS];
    for (int turn = 0; turn < turns; turn++) {
      places[turn] = place_of(&s, unit + turn);
      clear_tile(totals[turn]);
    }
    for (long first = 0; first < s.steps; first += at_once) {
      for (int turn = 0; turn < turns; turn++) {
        const place p = places[turn];
        VT sum[TILE][WIDE];
        clear_tile(sum);
        for (long c = first; c < min(first + at_once, s.steps); c++) {
          __global const CT *plane_row = rows + c * in_step + p.row, *plane_weights = all_weights + c * weights_step + p.weights;
          for (long n0 = p.planes; n0 > 0; n0--, plane_row += next_plane, plane_weights += next_plane_weights) {
            __global const CT *row = plane_row, *weights = plane_weights;
            for (long n1 = p.rows; n1 > 0; n1--, row += next_row, weights += next_weights) {
#pragma unroll
              for (int w = 0; w < WIDE; w++) PREFETCH(row + ahead + w * VEC);
#ifdef MANY_TAPS
              walk at = first_tap;
              for (long k = 0; k < TAPS; k++, walk_on(&at, &next_tap, &s))
                add_to_tile(sum, row + at.phase * s.phase + at.element, weights + k * TILE);
#elif defined(SPREAD)
#pragma unroll
              for (int k = 0; k < TAPS; k++) add_tap_of(sum, PHASE(k), row + start[k], weights + k * TILE);
#else
#pragma unroll
              for (int k = 0; k < TAPS; k++) add_to_tile(sum, row + start[k], weights + k * TILE);
#endif
            }
          }
        }
#pragma unroll
        for (int b = 0; b < TILE; b++) {
#pragma unroll
          for (int w = 0; w < WIDE; w++) totals[turn][b][w] += sum[b][w];
        }
      }
    }
    for (int turn = 0; turn < turns; turn++) {
      const place p = places[turn];
      VT total[TILE][WIDE];
#pragma unroll
      for (int t = 0; t < TILE * WIDE; t++) total[t / WIDE][t % WIDE] = totals[turn][t / WIDE][t % WIDE];
#ifdef SPREAD
#pragma unroll
      for (int b = 0; b < TILE; b++) join_phases(total[b]);
#endif
#ifdef FOLLOWED
      VT left[TILE * WIDE];
#pragma unroll
      for (int t = 0; t < TILE * WIDE; t++) left[t] = total[t / WIDE][t % WIDE];
      follow_tile(left, bias, offset_bias, has_bias, image, block * TILE, p.o0, p.o1, p.o2, &s, &f);
#else
      put_tile(total, out, offset_out, in, offset_in, weight, offset_weight, bias, offset_bias, has_bias, mends, image,
               block * TILE, &p, &s);
#endif
    }
  }
}

#else
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
