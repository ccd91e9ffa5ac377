/* Matrix product of f32 on a GPU, after core/registers.cl and one of the files that bring strips. The head says of each
 * factor how it is read: along K or across, and whether in vectors that lie whole and aligned. */
#if COPIES
/* Four at a time where they lie so across K, else one by one. */
#define EACH_A (A_WHOLE && !A_ALONG ? 4 : 1)
#define EACH_B (B_WHOLE && !B_ALONG ? 4 : 1)

struct factors {
  share a, b;
};

static INLINED void bring_strip(struct factors *f, __local float *a, __local float *b, int left) {
  bring(&f->a, a, TILE_M, PITCH_A, A_ALONG, EACH_A, left);
  bring(&f->b, b, TILE_N, PITCH_B, B_ALONG, EACH_B, left);
}
#else
struct factors {
  share a, b;
  long end;
};
struct parts {
  float4 a[PASSES(TILE_M)], b[PASSES(TILE_N)];
};

static INLINED void bring_strip(struct factors *f, struct parts *to, long k) {
  int left = (int)clamp(f->end - k, 0L, (long)STEP), lane = get_local_id(0);
  bring_fours(&f->a, to->a, TILE_M, A_ALONG, A_WHOLE, left, lane);
  bring_fours(&f->b, to->b, TILE_N, B_ALONG, B_WHOLE, left, lane);
  f->a.from += f->a.strip;
  f->b.from += f->b.strip;
}

static INLINED void place_strip(const struct factors *f, const struct parts *from, __local float *a, __local float *b) {
  int lane = get_local_id(0);
  place_fours(&f->a, from->a, a, TILE_M, PITCH_A, A_ALONG, lane);
  place_fours(&f->b, from->b, b, TILE_N, PITCH_B, B_ALONG, lane);
}
#endif

/* VEC neighbouring results go out. */
static INLINED void leave(VT value, long i, long j, product p, bool whole, __global RAW(D_TO) *out) {
  if (i >= p.m || j >= p.n) return;
  if (!whole) {
    put(out + i * p.out_row + j * p.out_column, p.out_column, (int)min((long)VEC, p.n - j), value);
    return;
  }
  RAW(D_TO) lanes[VEC];
  STORE(D_TO, __private, lanes, value);
  *(__global VEC_OF(RAW(D_TO)) *)(out + i * p.out_row + j) = VLOAD(lanes);
}

KERNEL_OF(LANES, 1) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  __local float strips[STRIPS] __attribute__((aligned(16)));
  const int lane = get_local_id(0);
  const long tiles = p.panels_m * p.panels_n, part = get_group_id(0) / tiles, batch = part / p.splits;
  long row, column;
  find_tile((int)(get_group_id(0) - part * tiles), (int)p.panels_m, (int)p.panels_n, &row, &column);
  if (p.splits > 1) {
    k_begin = part % p.splits * p.split_depth;
    k_end = min(k_begin + p.split_depth, p.k);
  }
  __global const float *a = CONST_POINTER(D, factor_a) + batch * p.a_batch + row * p.a_row + k_begin * p.a_depth;
  __global const float *b = CONST_POINTER(D, factor_b) + batch * p.b_batch + column * p.b_column + k_begin * p.b_depth;
  const bool whole = p.out_column == 1 && p.n % VEC == 0 && p.out_row % VEC == 0 && p.out_batch % VEC == 0 &&
                     offset_out % (sizeof(RAW(D_TO)) * VEC) == 0;
  __global CT *sums = (__global CT *)(partial + offset_partial);
  __global RAW(D_TO) *to = (__global RAW(D_TO) *)(out + offset_out) + batch * p.out_batch;
  const long i = row + item_row(lane), j = column + item_column(lane);
  float4 sum[ITEM_M][VECTORS_N];
  struct factors f;
#if COPIES
  f.a = share_of(a, p.a_row, p.a_depth, p.m - row, TILE_M, PITCH_A, A_ALONG, EACH_A, lane);
  f.b = share_of(b, p.b_column, p.b_depth, p.n - column, TILE_N, PITCH_B, B_ALONG, EACH_B, lane);
  sum_strips(sum, &f, strips, k_begin, k_end, lane);
#else
  struct parts parts;
  f.a = share_of(a, p.a_row, p.a_depth, p.m - row, TILE_M, A_ALONG, lane);
  f.b = share_of(b, p.b_column, p.b_depth, p.n - column, TILE_N, B_ALONG, lane);
  f.end = k_end;
  sum_strips(sum, &f, &parts, strips, k_begin, k_end, lane);
#endif
  /* What the results take beside the sums is read before any of them is written: the reads wait together. */
#pragma unroll
  for (int r = 0; r < ITEM_M; r++) {
#pragma unroll
    for (int v = 0; v < VECTORS_N; v++) {
      const long to_i = i + VECTOR_ROW(r / 4) + r % 4, to_j = j + VECTOR_COLUMN(v);
      if (p.splits > 1)
        *(__global float4 *)(sums + kept_at(part, to_i, to_j, p)) = sum[r][v];
      else if (to_i < p.m && to_j < p.n)
        sum[r][v] = finished(sum[r][v], to_i, to_j, p, batch, alpha, beta, EXTRAS);
    }
  }
  if (p.splits > 1) return;
#pragma unroll
  for (int r = 0; r < ITEM_M; r++) {
#pragma unroll
    for (int v = 0; v < VECTORS_N; v++)
      leave(sum[r][v], i + VECTOR_ROW(r / 4) + r % 4, j + VECTOR_COLUMN(v), p, whole, to);
  }
}
