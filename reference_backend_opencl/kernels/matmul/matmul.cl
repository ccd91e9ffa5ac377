/* What the matrix products of a CPU (panels.cl) and of a GPU (tiles.cl) share. The head defines D, the dtype
 * of all tensors (of the result, where the factors have another), ADDEND for addmm and its kin, RELU where that
 * follows, SCALED for _scaled_mm. */
/* One element as a value. */
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
#define LOAD_ONE(p) ((CT)CAT(ONE_, D)(p))

/* Strides count elements. A and B are the tensors, or panels of TILE_N rows in the workspace. A GPU cuts K into
 * `splits` of split_depth each, which run side by side. */
typedef struct {
  long m, n, k, panels_m, panels_n, panels_per_item, splits, split_depth;
  long a_batch, a_panel, a_row, a_depth, b_batch, b_panel, b_column, b_depth;
  long out_batch, out_row, out_column;
  long addend_batch, addend_row, addend_column;
  long packed_a, odd; /* of panels.cl: whether A is packed; whether the last step of K is a single element */
} product;

/* Calls that follow in the same kernel are in a text before this one, which defines these (fused_epilogue.c): parameters
 * of the kernel, what functions take of these and of the matrix to add, and D_TO, of what is written at last. */
#ifndef EPILOGUE_PARAMETERS
#define EPILOGUE_PARAMETERS
#define D_TO D
typedef __global const uchar *extras;
#define EXTRAS_WITH(addend) (addend)
#define ADDEND_OF(extras) (extras)
#endif
#define EXTRAS EXTRAS_WITH(addend + offset_addend)

static void put(__global RAW(D_TO) * at, long stride, int n, VT v) {
  RAW(D_TO) lanes[VEC];
  if (stride == 1 && n >= VEC) {
    STORE(D_TO, __global, at, v);
    return;
  }
  STORE(D_TO, __private, lanes, v);
  for (int j = 0; j < n && j < VEC; j++) at[j * stride] = lanes[j];
}

#ifdef ADDEND
static VT get(__global const RAW(D) * at, long stride, int n) {
  if (stride == 1 && n >= VEC) return LOAD(D, __global, at);
  RAW(D) lanes[VEC];
  for (int j = 0; j < VEC; j++) lanes[j] = at[j < n ? j * stride : 0];
  return LOAD(D, __private, lanes);
}
#ifdef CLASS_COMPLEX
#define ADDS_NOTHING ((beta.x == 0) & (beta.y == 0))
#else
#define ADDS_NOTHING (beta == 0)
#endif
#define EPILOGUE(sum) (ADDS_NOTHING ? MUL((VT)alpha, sum) : ADD(MUL((VT)alpha, sum), MUL((VT)beta, old)))
#elif defined(SCALED)
/* In place of a matrix to add: f32 scales of rows, then of columns, a bias of columns and a scale of all, each from a
 * multiple of VEC on (scales.cl). */
#define SCALES ((__global const float *)ADDEND_OF(more))
#define EVEN(count) (((count) + VEC - 1) / VEC * VEC)
#define EPILOGUE(sum)                                                                        \
  (((sum)*SCALES[i] * VLOAD(SCALES + EVEN(p.m) + j) + VLOAD(SCALES + EVEN(p.m) + EVEN(p.n) + j)) * \
   SCALES[EVEN(p.m) + 2 * EVEN(p.n)])
#else
#define EPILOGUE(sum) (sum)
#endif

#ifdef FOLLOWED
#define followed(value, i, j, p, batch, more) followed_by(value, i, j, batch, (int)min((long)VEC, (p).n - (j)), more)
#else
#define followed(value, i, j, p, batch, more) (value)
#endif

/* Asks for what finished will read: rows are far apart, and no processor guesses where the next one is. */
static void ahead(long i, long j, product p, long batch, extras more) {
#ifdef ADDEND
  PREFETCH((__global const RAW(D) *)ADDEND_OF(more) + batch * p.addend_batch + i * p.addend_row + j * p.addend_column);
#endif
#ifdef FOLLOWED
  epilogue_ahead(i, j, batch, more);
#endif
}

/* What VEC sums of row i from column j on, which lie in the matrix, become. */
static VT finished(VT sum, long i, long j, product p, long batch, CT alpha, CT beta, extras more) {
#ifdef ADDEND
  VT old = get((__global const RAW(D) *)ADDEND_OF(more) + batch * p.addend_batch + i * p.addend_row + j * p.addend_column,
               p.addend_column, (int)min((long)VEC, p.n - j));
#endif
  VT value = EPILOGUE(sum);
#ifdef RELU
  value = value <= (VT)0 ? (VT)0 : value;
#endif
  return followed(value, i, j, p, batch, more);
}

/* VEC sums of row i from column j on go out, as far as the matrix reaches. */
static void finish(VT sum, long i, long j, product p, long batch, CT alpha, CT beta, __global uchar *out,
                   extras more) {
  if (i >= p.m || j >= p.n) return;
  int n = (int)min((long)VEC, p.n - j);
  put((__global RAW(D_TO) *)out + batch * p.out_batch + i * p.out_row + j * p.out_column, p.out_column, n,
      finished(sum, i, j, p, batch, alpha, beta, more));
}
