/* A whole transform of a line at a time, for lines of which there are many. After core/square.cl and butterflies.cl, on
 * CPUs.
 *
 * A line of VEC * size points in a row: lane l takes those at l + VEC * m, and all lanes are transformed together, with
 * roots of order `size`. Times the factor lanes[k][l], result k of lane l is what a transform of VEC points takes over the
 * lanes: these are turned, so that it goes over vectors, and its result r are the points from r * size on.
 * BESIDE: VEC lines of `size` points side by side; nothing is left to be done over the lanes.
 * HALVES: a line of 2 * VEC * size real numbers in a row, as so many complex ones half: Z, whose even and odd parts are the
 * transforms of both halves. Half of the results are written, and the one behind. */

/* Strides count elements of their tensor; lanes, halves: where factors begin in the table, behind the `size` roots; behind
 * those of lanes stand VEC roots of that order. */
typedef struct {
  long units, per_item, size, rank, flags, stages, radices, lanes, halves, step_in, step_out;
  long batch_size[BATCH_DIMS], stride_in[BATCH_DIMS], stride_out[BATCH_DIMS];
} rows;

#ifdef BESIDE
#define LINES VEC
#else
#define LINES 1
#endif
#ifdef HALVES
#define PARTS_IN 1
#else
#define PARTS_IN 2
#endif

static void transform_stage(stage s) {
  switch (s.radix) {
    case 2: FROM_GROUP(0, radix_2); break;
    case 3: FROM_GROUP(0, radix_3); break;
    case 5: FROM_GROUP(0, radix_5); break;
    case 4: WITHOUT_ROOTS(radix_4); FROM_GROUP(1, radix_4); break;
    default: WITHOUT_ROOTS(radix_8); FROM_GROUP(1, radix_8);
  }
}

#ifndef BESIDE
static INLINED point times_each(point a, point w) {
  return (point){a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}

/* VEC points, each a vector: of four a quarter apart, then of what is left. The roots are of order VEC. */
#define QUARTER (VEC / 4)
static INLINED void transform_lanes(VT re[VEC], VT im[VEC], __global const CT *roots) {
  point v[VEC];
#pragma unroll
  for (int a = 0; a < QUARTER; a++) {
    point p[4];
#pragma unroll
    for (int b = 0; b < 4; b++) p[b] = (point){re[a + b * QUARTER], im[a + b * QUARTER]};
    point even = plus(p[0], p[2]), odd = plus(p[1], p[3]), left = minus(p[0], p[2]), right = quarter(minus(p[1], p[3]));
    p[0] = plus(even, odd);
    p[1] = plus(left, right);
    p[2] = minus(even, odd);
    p[3] = minus(left, right);
#pragma unroll
    for (int c = 0; c < 4; c++) v[a + c * QUARTER] = a && c ? times(p[c], pair_at(roots, a * c)) : p[c];
  }
#pragma unroll
  for (int c = 0; c < 4; c++) {
#if VEC == 16
    point p0 = v[4 * c], p1 = v[4 * c + 1], p2 = v[4 * c + 2], p3 = v[4 * c + 3];
    point even = plus(p0, p2), odd = plus(p1, p3), left = minus(p0, p2), right = quarter(minus(p1, p3));
    const point results[4] = {plus(even, odd), plus(left, right), minus(even, odd), minus(left, right)};
#elif VEC == 8
    const point results[2] = {plus(v[2 * c], v[2 * c + 1]), minus(v[2 * c], v[2 * c + 1])};
#else
    const point results[1] = {v[c]};
#endif
#pragma unroll
    for (int d = 0; d < QUARTER; d++) {
      re[c + 4 * d] = results[d].re;
      im[c + 4 * d] = results[d].im;
    }
  }
}
#endif

#ifdef HALVES
#if VEC == 16
#define REVERSED(v) (v).sfedcba9876543210
#elif VEC == 8
#define REVERSED(v) (v).s76543210
#else
#define REVERSED(v) (v).s3210
#endif
/* X[k] = E + w^k O of 2 E = Z[k] + conj Z[n - k] and 2 O = -i (Z[k] - conj Z[n - k]); `scale` has the half. */
static void store_halves(__global CT *to, __global const CT *factors, __global CT *re, __global CT *im, int n, CT scale) {
  re[n] = re[0];
  im[n] = im[0];
  for (int k = 0; k < n; k += VEC) {
    const point a = {VLOAD(re + k), VLOAD(im + k)};
    const VT back_re = VLOAD(re + n - k - VEC + 1), back_im = VLOAD(im + n - k - VEC + 1);
    const point b = {REVERSED(back_re), -REVERSED(back_im)};
    const point odd = times_each(quarter(minus(a, b)), load_points(factors + 2 * k));
    store_points(to + 2 * k, stretched(plus(plus(a, b), odd), scale));
  }
  to[2 * n] = (re[0] - im[0]) * 2 * scale;
  to[2 * n + 1] = 0;
}
#endif

KERNEL fft_rows(PLACE(out), CONST_PLACE(in), PLACE(work), __global const CT *table, CT scale, rows s) {
  const int size = (int)s.size;
  __global VT *tile = (__global VT *)(work + offset_work) + get_global_id(0) * 4 * (s.size + 1);
  long begin = (long)get_global_id(0) * s.per_item, end = min(begin + s.per_item, s.units);
  for (long unit = begin; unit < end; unit++) {
    long batch = unit * LINES, at_in = 0, at_out = 0;
    for (int d = BATCH_DIMS - 1; d >= 0; d--) { /* to the end: common.cl says why */
      if (d >= s.rank) continue;
      const long index = d > 0 ? batch % s.batch_size[d] : batch;
      batch = d > 0 ? batch / s.batch_size[d] : 0;
      at_in += index * s.stride_in[d];
      at_out += index * s.stride_out[d];
    }
    __global const CT *from = (__global const CT *)(in + offset_in) + PARTS_IN * at_in;
    __global CT *to = (__global CT *)(out + offset_out) + 2 * at_out;
    __global VT *x = tile, *y = tile + 2 * (size + 1);
    for (int i = 0; i < size; i++) {
#ifdef BESIDE
      const point v = load_points(from + 2 * i * s.step_in);
#else
      const point v = load_points(from + 2 * VEC * i);
#endif
      put(x, i, swapped_if(v, s.flags & SWAP_LOADED));
    }
    for (int r = 0, before = 1, behind = size; r < s.stages; r++) {
      const int radix = (int)(s.radices >> RADIX_BITS * r) & ((1 << RADIX_BITS) - 1);
      behind /= radix;
      transform_stage((stage){x, y, table, radix, before, behind, 1});
      before *= radix;
      __global VT *other = x;
      x = y;
      y = other;
    }
#ifdef BESIDE
    for (int k = 0; k < size; k++) {
      store_points(to + 2 * k * s.step_out, swapped_if(stretched(get(x, k), scale), s.flags & SWAP_STORED));
    }
#else
    __global const CT *factors = table + 2 * s.lanes;
    for (int whole = 0; whole < size; whole += VEC) {
      const int k = min(whole, size - VEC); /* what is no whole square at the end is part of one that ends there */
      VT re[VEC], im[VEC];
#pragma unroll
      for (int j = 0; j < VEC; j++) {
        const point v = times_each(get(x, k + j), load_points(factors + 2 * VEC * (k + j)));
        re[j] = v.re;
        im[j] = v.im;
      }
      turn_square(re);
      turn_square(im);
      transform_lanes(re, im, factors + 2 * VEC * size);
#ifdef HALVES
      __global CT *parts = (__global CT *)y + k;
#pragma unroll
      for (int r = 0; r < VEC; r++) {
        VSTORE(re[r], parts + r * size);
        VSTORE(im[r], parts + (VEC + r) * size + VEC);
      }
#else
#pragma unroll
      for (int r = 0; r < VEC; r++) {
        const point v = stretched((point){re[r], im[r]}, scale);
        store_points(to + 2 * (r * size + k), swapped_if(v, s.flags & SWAP_STORED));
      }
#endif
    }
#ifdef HALVES
    store_halves(to, table + 2 * s.halves, (__global CT *)y, (__global CT *)y + VEC * size + VEC, VEC * size, scale);
#endif
#endif
  }
}
