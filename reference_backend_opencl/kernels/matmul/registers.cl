/* Matrix product of f32 on a GPU, after core/registers.cl. The head says of each factor how it is read: along K or
 * across, and whether in vectors that lie whole and aligned. A long K is summed in blocks, so that rounding errors do
 * not grow with it: their sums wait in the workspace, where only the work-item that left them looks. */
#define BLOCK 1024L

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

/* VEC neighbouring sums of the whole of K go out. */
static INLINED void leave(VT sum, long i, long j, product p, long batch, bool whole, CT alpha, CT beta,
                          __global uchar *out, extras more) {
  if (i >= p.m || j >= p.n) return;
  if (!whole) {
    finish(sum, i, j, p, batch, alpha, beta, out, more);
    return;
  }
  RAW(D_TO) lanes[VEC];
  STORE(D_TO, __private, lanes, finished(sum, i, j, p, batch, alpha, beta, more));
  *(__global VEC_OF(RAW(D_TO)) *)((__global RAW(D_TO) *)out + batch * p.out_batch + i * p.out_row + j) = VLOAD(lanes);
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
  const long i = row + item_row(lane), j = column + item_column(lane);
  float4 sum[ITEM_M][VECTORS_N];
  for (long begin = k_begin; begin < max(k_end, k_begin + 1); begin += BLOCK) {
    const long end = min(begin + BLOCK, k_end), done = begin - k_begin;
    struct factors f;
    struct parts parts;
    f.a = share_of(a + done * p.a_depth, p.a_row, p.a_depth, p.m - row, TILE_M, A_ALONG, lane);
    f.b = share_of(b + done * p.b_depth, p.b_column, p.b_depth, p.n - column, TILE_N, B_ALONG, lane);
    f.end = end;
    sum_strips(sum, &f, &parts, strips, begin, end, lane);
#pragma unroll
    for (int r = 0; r < ITEM_M; r++) {
#pragma unroll
      for (int v = 0; v < VECTORS_N; v++) {
        const long to_i = i + VECTOR_ROW(r / 4) + r % 4, to_j = j + VECTOR_COLUMN(v);
        __global float4 *kept = (__global float4 *)(sums + kept_at(part, to_i, to_j, p));
        if (begin > k_begin) sum[r][v] += *kept;
        if (end < k_end || p.splits > 1)
          *kept = sum[r][v];
        else
          leave(sum[r][v], to_i, to_j, p, batch, whole, alpha, beta, out + offset_out, EXTRAS);
      }
    }
  }
}
