/* Matrix product by packed panels. Both factors are first copied into panels that the product reads from end to end, and
 * on the way cast to the compute type and freed of strides and remainders (which become zeros). Then each work-item takes
 * one panel of B and some panels of A, and keeps a tile of TILE_M x TILE_N sums in registers for the whole of K.
 *
 * The head defines D_A, D_B, D_OUT, TILE_M, TILE_V (vectors in a tile's row) and, for addmm and its kin, ADDEND. */
#define TILE_N (TILE_V * VEC)

#if defined(CLASS_FLOAT)
#define MULTIPLY_ADD(a, b, c) fma(a, b, c)
#else
#define MULTIPLY_ADD(a, b, c) ADD(c, MUL(a, b))
#endif

/* A factor: `rows` counts along the output, `depth` along K; strides in elements. */
typedef struct {
  long rows, depth, row_stride, depth_stride, batch_stride;
} factor;

/* A work-item packs STEP steps of depth of one panel: long enough to read whole cache lines either way round. */
#define STEP 64

#define DEFINE_PACK(name, dtype, tile)                                                                 \
  __kernel __attribute__((reqd_work_group_size(1, 1, 1))) void name(                                   \
      __global uchar *work, ulong offset_work, __global const uchar *in, ulong offset, factor f) {     \
    long k = (long)get_global_id(0) * STEP, panel = get_global_id(1), batch = get_global_id(2);        \
    long end = min(k + STEP, f.depth), first = panel * tile, count = min((long)tile, f.rows - first);  \
    __global const RAW(dtype) *from =                                                                  \
        (__global const RAW(dtype) *)(in + offset) + batch * f.batch_stride + first * f.row_stride;    \
    __global CT *to = (__global CT *)(work + offset_work) +                                            \
                      (batch * (long)get_global_size(1) + panel) * f.depth * tile;                     \
    for (; k < end; k++) {                                                                             \
      __global const RAW(dtype) *row = from + k * f.depth_stride;                                      \
      for (long r = 0; r < count; r++) to[k * tile + r] = LOAD_ONE(dtype, row + r * f.row_stride);     \
      for (long r = count; r < tile; r++) to[k * tile + r] = (CT)0;                                    \
    }                                                                                                  \
  }

/* One element: packing changes the order of them, so there is no vector to load. */
#define ONE_bool(p) (*(p))
#define ONE_u8(p) (*(p))
#define ONE_i8(p) (*(p))
#define ONE_i16(p) (*(p))
#define ONE_i32(p) (*(p))
#define ONE_i64(p) (*(p))
#define ONE_u16(p) (*(p))
#define ONE_u32(p) (*(p))
#define ONE_u64(p) (*(p))
#define ONE_f16(p) vload_half(0, (__global const half *)(p))
#define ONE_bf16(p) as_float((uint) * (p) << 16)
#define ONE_f32(p) (*(p))
#define ONE_f64(p) (*(p))
#define ONE_c64(p) (*(p))
#define ONE_c128(p) (*(p))
#define LOAD_ONE(dtype, p) ((CT)CAT(ONE_, dtype)(p))

DEFINE_PACK(pack_a, D_A, TILE_M)
DEFINE_PACK(pack_b, D_B, TILE_N)

typedef struct {
  long m, n, k, panels_m, panels_n, panels_per_item;
  long out_batch, out_row, out_column;
  long addend_batch, addend_row, addend_column;
} product;

static void put(__global RAW(D_OUT) * at, long stride, int n, VT v) {
  RAW(D_OUT) lanes[VEC];
  if (stride == 1 && n >= VEC) {
    STORE(D_OUT, __global, at, v);
    return;
  }
  STORE(D_OUT, __private, lanes, v);
  for (int j = 0; j < n && j < VEC; j++) at[j * stride] = lanes[j];
}

#ifdef ADDEND
static VT get(__global const RAW(ADDEND) * at, long stride, int n) {
  RAW(ADDEND) lanes[VEC];
  for (int j = 0; j < VEC; j++) lanes[j] = at[j < n ? j * stride : 0];
  return LOAD(ADDEND, __private, lanes);
}
#define EPILOGUE(sum) (beta == (CT)0 ? MUL((VT)alpha, sum) : ADD(MUL((VT)alpha, sum), MUL((VT)beta, old)))
#else
#define EPILOGUE(sum) (sum)
#endif

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void multiply(
    __global const uchar *work, ulong offset_a, ulong offset_b, __global uchar *out, ulong offset_out,
    __global const uchar *addend, ulong offset_addend, CT alpha, CT beta, product p) {
  long panel_n = get_global_id(0), batch = get_global_id(2);
  long panel_m = get_global_id(1) * p.panels_per_item, last = min(panel_m + p.panels_per_item, p.panels_m);
  for (; panel_m < last; panel_m++) {
    __global const CT *a =
        (__global const CT *)(work + offset_a) + (batch * p.panels_m + panel_m) * p.k * TILE_M;
    __global const CT *b =
        (__global const CT *)(work + offset_b) + (batch * p.panels_n + panel_n) * p.k * TILE_N;
    VT sum[TILE_M][TILE_V];
#pragma unroll
    for (int r = 0; r < TILE_M; r++) {
#pragma unroll
      for (int v = 0; v < TILE_V; v++) sum[r][v] = (VT)0;
    }
    for (long k = 0; k < p.k; k++, a += TILE_M, b += TILE_N) {
      VT column[TILE_V];
#pragma unroll
      for (int v = 0; v < TILE_V; v++) column[v] = VLOAD(b + v * VEC);
#pragma unroll
      for (int r = 0; r < TILE_M; r++) {
#pragma unroll
        for (int v = 0; v < TILE_V; v++) sum[r][v] = MULTIPLY_ADD((VT)a[r], column[v], sum[r][v]);
      }
    }
    long row = panel_m * TILE_M, column = panel_n * TILE_N;
#pragma unroll
    for (int r = 0; r < TILE_M; r++) {
#pragma unroll
      for (int v = 0; v < TILE_V; v++) {
        long i = row + r, j = column + v * VEC;
        if (i < p.m && j < p.n) {
          int n = (int)min((long)VEC, p.n - j);
#ifdef ADDEND
          VT old = get((__global const RAW(ADDEND) *)(addend + offset_addend) + batch * p.addend_batch +
                           i * p.addend_row + j * p.addend_column,
                       p.addend_column, n);
#endif
          put((__global RAW(D_OUT) *)(out + offset_out) + batch * p.out_batch + i * p.out_row + j * p.out_column,
              p.out_column, n, EPILOGUE(sum[r][v]));
        }
      }
    }
  }
}
