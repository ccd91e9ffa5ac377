/* After butterflies.cl, and on a CPU core/square.cl. One pass of a forward transform of n = before * size * behind points (Stockham, decimation in
 * frequency): each of before * behind lines of `size` points, that many apart, is transformed, times what the passes
 * behind it need, and goes to where these find it. Line p * before + q reads the points from there on and writes those
 * from q + p * before * size on, `before` apart.
 *
 * A tile is some lines side by side: the lanes of a vector on a CPU, and lines of one work-group, in local memory,
 * elsewhere. In it the same is done by small radices. Roots of unity come from the host, each rounded once; backward
 * transforms swap real and imaginary parts before and behind. */
#define FROM_REAL 1
#define FROM_HALF 2 /* only points up to n / 2 are there; the others are their mirror images, conjugated */
#define TO_REAL 4
#define LOAD_FACTORS 16 /* point j times the factor j */
#define TURNS 32        /* what the passes behind it need */
#define SWAP_FIRST 64   /* before the factors */
#define STORE_FACTORS 128

/* Points are numbered as in the whole line; those from points_in or points_out on are not there: read as 0, not written.
 * Strides count elements of their tensor. low, high, load_factors, store_factors: where they begin in the table, behind
 * the `size` roots. */
typedef struct {
  long tiles, per_item, lines, lanes, batches, batches_first, rank;
  long size, before, behind, points_in, points_out, step_in, step_out;
  long flags, shift, low, high, load_factors, store_factors;
  long stages, radices; /* of RADIX_BITS bits, the first the lowest; no array, as common.cl says */
  long batch_size[BATCH_DIMS], stride_in[BATCH_DIMS], stride_out[BATCH_DIMS];
} pass;

/* Of a large pass the head gives the sizes of a tile and of the line, too, as constants: what a compiler knows of them
 * takes most of the divisions and all of the choices out of the loops. */
#ifdef SIZE
static pass with_constants(pass s) {
  s.size = SIZE;
  s.lanes = LANES;
  s.before = BEFORE;
  s.behind = BEHIND;
#ifdef STAGES
  s.stages = STAGES;
#endif
  s.radices = RADICES;
  s.flags = FLAGS;
  s.rank = KEPT_DIMS;
  return s;
}
#define TILE_SIZE (SIZE * LANES)
#else
#define with_constants(s) (s)
#define TILE_SIZE TILE_POINTS
#endif

/* Of a line: where its batch begins, its first point on either side, and p. */
typedef struct {
  long in, out, first_in, first_out, turn;
} place;

static place place_of(pass s, long line) {
  long columns = s.before * s.behind;
  line = min(line, s.lines - 1);
  long batch = s.batches_first ? line % s.batches : line / columns;
  place at = {.first_in = s.batches_first ? line / s.batches : line % columns};
  at.turn = at.first_in / s.before;
  at.first_out = at.first_in % s.before + at.turn * s.before * s.size;
  if (s.rank > 1) {
    for (int d = BATCH_DIMS - 1; d > 0; d--) { /* to the end: common.cl says why */
      if (d >= s.rank) continue;
      long index = batch % s.batch_size[d];
      batch /= s.batch_size[d];
      at.in += index * s.stride_in[d];
      at.out += index * s.stride_out[d];
    }
  }
  at.in += batch * s.stride_in[0];
  at.out += batch * s.stride_out[0];
  return at;
}

static pair pair_times(pair a, pair b) { return (pair){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static pair swapped(pair a) { return (pair){a.im, a.re}; }

/* Point i of a line as it goes into the transform. */
static pair fetch(__global const CT *in, __global const CT *table, pass s, place at, long i) {
  long j = at.first_in + i * s.before * s.behind;
  pair v = {0, 0};
  if (j >= s.points_in) return v;
  bool mirrored = (s.flags & FROM_HALF) && 2 * j > s.points_in;
  long from = at.in + (mirrored ? s.points_in - j : j) * s.step_in;
  if (s.flags & FROM_REAL)
    v.re = in[from];
  else
    v = pair_at(in, from);
  if (mirrored) v.im = -v.im;
  if ((s.flags & FROM_HALF) && (j == 0 || 2 * j == s.points_in)) v.im = 0;
  if (s.flags & SWAP_LOADED) v = swapped(v);
  return s.flags & LOAD_FACTORS ? pair_times(v, pair_at(table, s.load_factors + j)) : v;
}

/* Point i of a line as it comes from the transform. */
static void leave(__global CT *out, __global const CT *table, pass s, place at, long i, pair v, CT scale) {
  long k = at.first_out + i * s.before;
  if (k >= s.points_out) return;
  if (s.flags & TURNS) {
    long turn = at.turn * i;
    v = pair_times(v, pair_at(table, s.low + (turn & ((1L << s.shift) - 1))));
    if (s.high) v = pair_times(v, pair_at(table, s.high + (turn >> s.shift)));
  }
  if (s.flags & SWAP_FIRST) v = swapped(v);
  if (s.flags & STORE_FACTORS) v = pair_times(v, pair_at(table, s.store_factors + k));
  if (s.flags & SWAP_STORED) v = swapped(v);
  long to = at.out + k * s.step_out;
  if (s.flags & TO_REAL) {
    out[to] = v.re * scale;
  } else {
    out[2 * to] = v.re * scale;
    out[2 * to + 1] = v.im * scale;
  }
}

#if LOCAL == 1
/* Of complex points one beside the other, or each somewhere, without more ado; else one by one. */
#define PLAIN_LOAD(s) (!((s).flags & (FROM_REAL | FROM_HALF | LOAD_FACTORS)) && (s).points_in >= (s).size * (s).before * (s).behind)
#define PLAIN_STORE(s) (!((s).flags & (TO_REAL | TURNS | SWAP_FIRST | STORE_FACTORS)) && \
                        (s).points_out >= (s).size * (s).before * (s).behind)

#if VEC > 1
/* Lines of which each lies in a run go by squares (core/square.cl): VEC points of each lane's. What is no whole square at
 * the end is part of one that ends there. */
static void load_runs(__global const CT *in, const long *first, long size, bool swap, __global VT *tile) {
  for (long i = 0; i < size; i += VEC) {
    const long begin = min(i, size - VEC);
    VT re[VEC], im[VEC];
    for (int l = 0; l < VEC; l++) {
      const point v = load_points(in + first[l] + 2 * begin);
      re[l] = v.re;
      im[l] = v.im;
    }
    turn_square(re);
    turn_square(im);
    for (int j = 0; j < VEC; j++) put(tile, (int)begin + j, swapped_if((point){re[j], im[j]}, swap));
  }
}
static void store_runs(__global CT *out, const long *first, int lanes, long size, bool swap, __global const VT *tile,
                       CT scale) {
  for (long i = 0; i < size; i += VEC) {
    const long begin = min(i, size - VEC);
    VT re[VEC], im[VEC];
    for (int j = 0; j < VEC; j++) {
      const point v = stretched(swapped_if(get(tile, (int)begin + j), swap), scale);
      re[j] = v.re;
      im[j] = v.im;
    }
    turn_square(re);
    turn_square(im);
    for (int l = 0; l < lanes; l++) store_points(out + first[l] + 2 * begin, (point){re[l], im[l]});
  }
}
#endif

static void load_tile(__global const CT *in, __global const CT *table, pass s, const place *at, __global VT *tile) {
  bool plain = PLAIN_LOAD(s), swap = s.flags & SWAP_LOADED, beside = plain;
  long step = 2 * s.before * s.behind * s.step_in, first[VEC];
  for (int l = 0; l < VEC; l++) {
    first[l] = 2 * (at[l].in + at[l].first_in * s.step_in);
    beside &= first[l] == first[0] + 2 * l;
  }
#if VEC > 1
  if (plain && step == 2 && s.size >= VEC) {
    load_runs(in, first, s.size, swap, tile);
    return;
  }
#endif
  for (long i = 0; i < s.size; i++) {
    CT re[VEC], im[VEC];
    VT a, b;
    if (beside) {
#if VEC > 1
      const point v = load_points(in + first[0] + i * step);
      a = v.re;
      b = v.im;
#else
      a = in[first[0] + i * step];
      b = in[first[0] + i * step + 1];
#endif
    } else if (plain) {
      for (int l = 0; l < VEC; l++) {
        re[l] = in[first[l] + i * step];
        im[l] = in[first[l] + i * step + 1];
      }
      a = VLOAD(re);
      b = VLOAD(im);
    } else {
      for (int l = 0; l < VEC; l++) {
        pair v = fetch(in, table, s, at[l], i);
        re[l] = v.re;
        im[l] = v.im;
      }
      a = VLOAD(re);
      b = VLOAD(im);
      tile[2 * i] = a;
      tile[2 * i + 1] = b;
      continue;
    }
    tile[2 * i] = swap ? b : a;
    tile[2 * i + 1] = swap ? a : b;
  }
}

static void store_tile(__global CT *out, __global const CT *table, pass s, const place *at, int lanes,
                       __global const VT *tile, CT scale) {
  bool plain = PLAIN_STORE(s), swap = s.flags & SWAP_STORED, beside = plain && lanes == VEC;
  long step = 2 * s.before * s.step_out, first[VEC];
  for (int l = 0; l < VEC; l++) {
    first[l] = 2 * (at[l].out + at[l].first_out * s.step_out);
    beside &= first[l] == first[0] + 2 * l;
  }
#if VEC > 1
  if (plain && step == 2 && s.size >= VEC) {
    store_runs(out, first, lanes, s.size, swap, tile, scale);
    return;
  }
#endif
  for (long i = 0; i < s.size; i++) {
    CT re[VEC], im[VEC];
    VT a = tile[2 * i], b = tile[2 * i + 1];
    if (!plain) {
      VSTORE(a, re);
      VSTORE(b, im);
      for (int l = 0; l < lanes; l++) leave(out, table, s, at[l], i, (pair){re[l], im[l]}, scale);
      continue;
    }
    VT x = (swap ? b : a) * scale, y = (swap ? a : b) * scale;
#if VEC > 1
    if (beside) {
      store_points(out + first[0] + i * step, (point){x, y});
      continue;
    }
#endif
    VSTORE(x, re);
    VSTORE(y, im);
    for (int l = 0; l < lanes; l++) {
      out[first[l] + i * step] = re[l];
      out[first[l] + i * step + 1] = im[l];
    }
  }
}
#endif

#if LOCAL == 1
static INLINED void transform_all(stage s) {
  switch (s.radix) {
    case 2: FROM_GROUP(0, radix_2); break;
    case 3: FROM_GROUP(0, radix_3); break;
    case 4: WITHOUT_ROOTS(radix_4); FROM_GROUP(1, radix_4); break;
    case 5: FROM_GROUP(0, radix_5); break;
    default: FROM_GROUP(0, radix_any);
  }
}
#else
static INLINED void transform_one(stage s, butterfly at) {
  switch (s.radix) {
    case 2: radix_2(s, at); break;
    case 3: radix_3(s, at); break;
    case 4: radix_4(s, at); break;
    case 5: radix_5(s, at); break;
    default: radix_any(s, at);
  }
}

/* Loops run as often in each work-item: PoCL leaves out those that some do not enter at all. */
static INLINED void transform_all(stage s) {
  int all = s.before * s.behind * s.lanes;
  for (int first = 0; first < all; first += LOCAL) {
    int i = first + (int)get_local_id(0), column = i / s.lanes;
    if (i < all) transform_one(s, (butterfly){column / s.before, column % s.before, i % s.lanes});
  }
}
#endif

KERNEL fft_pass(PLACE(out), CONST_PLACE(in), PLACE(work), __global const CT *table, CT scale, pass given) {
  const pass s = with_constants(given);
  const int lanes = (int)s.lanes;
  __global const CT *from = (__global const CT *)(in + offset_in);
  __global CT *to = (__global CT *)(out + offset_out);
#if LOCAL == 1
  const int all = (int)s.size;
  place at[VEC];
  __global VT *tile = (__global VT *)(work + offset_work) + get_global_id(0) * 4 * s.size;
#else
  const int id = (int)get_local_id(0), all = (int)s.size * lanes;
  __local place at[LANES_MAX];
  __local CT tile[4 * TILE_SIZE];
#endif
  long begin = (long)get_group_id(0) * s.per_item, end = min(begin + s.per_item, s.tiles);
  for (long t = begin; t < end; t++) {
    SPACE VT *x = tile, *y = tile + 2 * all;
    const int here = (int)min((long)lanes, s.lines - t * lanes);
#if LOCAL == 1
    for (int l = 0; l < VEC; l++) at[l] = place_of(s, t * VEC + l);
    load_tile(from, table, s, at, x);
#else
    if (id < lanes) at[id] = place_of(s, t * lanes + id);
    SYNC;
    for (int first = 0; first < all; first += LOCAL) {
      int i = first + id;
      if (i >= all) continue;
      pair v = fetch(from, table, s, at[i % lanes], i / lanes);
      put(x, i, (point){v.re, v.im});
    }
#endif
#ifdef STAGES
#pragma unroll
#endif
    for (int r = 0, before = 1, behind = (int)s.size; r < s.stages; r++) {
      const int radix = (int)(s.radices >> RADIX_BITS * r) & ((1 << RADIX_BITS) - 1);
      behind /= radix;
      SYNC;
      transform_all((stage){x, y, table, radix, before, behind, lanes});
      before *= radix;
      SPACE VT *other = x;
      x = y;
      y = other;
    }
    SYNC;
#if LOCAL == 1
    store_tile(to, table, s, at, here, x, scale);
#else
    for (int first = 0; first < all; first += LOCAL) {
      int i = first + id;
      if (i >= all || i % lanes >= here) continue;
      point v = get(x, i);
      leave(to, table, s, at[i % lanes], i / lanes, (pair){v.re, v.im}, scale);
    }
    SYNC;
#endif
  }
}
