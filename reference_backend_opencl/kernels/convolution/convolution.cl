/* Convolutions, over three spatial dimensions, after core/square.cl, core/pairs.cl, space.cl, gaps.cl, sums.cl, phases.cl,
 * followed.cl and packing.cl. Rows of the input are first packed: cast, padded with zeros, and taken apart into phases, so
 * that the elements which a vector of outputs meets at one tap of the window lie side by side, whatever stride, dilation and
 * padding are. What those zeros spoil is mended (gaps.cl): of a convolution where its results are written, of a gradient by
 * a kernel of its own.
 *
 * Short rows are packed as PLANE: all of a plane one after the other, `pitch` elements apart, so that it is one long row
 * and each tap of the window a shift of the whole.
 *
 * The head defines D (the dtype), TAPS (the window's innermost size; all of a PLANE's), MANY_TAPS (where that is large:
 * TAPS is s.taps[2] then and no constant), TILE (channels of a work-item's result), WIDE (vectors side by side of each) and
 * FORWARD for the convolution itself, which is also the gradient of its input; else the gradients of weight and bias are
 * made (gradients.cl). */

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

#endif
