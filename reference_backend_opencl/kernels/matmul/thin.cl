/* Few rows times a matrix, on a CPU, after core/pairs.cl: each element of B is read once, as it lies, and long stretches of it at a time.
 * (panels.cl copies both first, which is worth it where an element is used often.) The parameters are those of panels.cl; partial, k_begin
 * and k_end say nothing here. A work-item takes p.panels_per_item vectors of columns. */
#define THIN 8 /* rows, at most, of columns that lie side by side */
#define THIN_BY_COLUMNS 32 /* and of those whose K does */
#define WIDE 32 /* vectors, at most */
#define SPAN 256 /* of K: what is summed before it is added to the rest, so that rounding errors do not grow with K */

/* Columns side by side: rows of B are added up. */
static void add_rows(VT sum[WIDE], const CT *x, __global const RAW(D) *b, long stride, int count, int vectors, int rest) {
  int k = 0;
  for (; k + 4 <= count; k += 4) {
    __global const RAW(D) *row = b + k * stride;
    const VT x0 = (VT)x[k], x1 = (VT)x[k + 1], x2 = (VT)x[k + 2], x3 = (VT)x[k + 3];
    for (int v = 0; v < vectors; v++) {
      VT s = fma(x0, LOAD(D, __global, row + v * VEC), sum[v]);
      s = fma(x1, LOAD(D, __global, row + stride + v * VEC), s);
      s = fma(x2, LOAD(D, __global, row + 2 * stride + v * VEC), s);
      sum[v] = fma(x3, LOAD(D, __global, row + 3 * stride + v * VEC), s);
    }
  }
  for (; k < count; k++) {
    for (int v = 0; v < vectors; v++) sum[v] = fma((VT)x[k], LOAD(D, __global, b + k * stride + v * VEC), sum[v]);
  }
  if (rest == 0) return;
  for (k = 0; k < count; k++) {
    RAW(D) lanes[VEC];
    for (int j = 0; j < VEC; j++) lanes[j] = b[k * stride + vectors * VEC + (j < rest ? j : 0)];
    sum[vectors] = fma((VT)x[k], LOAD(D, __private, lanes), sum[vectors]);
  }
}

static void by_rows(__global const RAW(D) *a, __global const RAW(D) *b, product p, long first, long end, long batch, CT alpha,
                    CT beta, __global uchar *out, extras more) {
  const int vectors = (int)((end - first) / VEC), rest = (int)((end - first) % VEC), all = vectors + (rest > 0);
  VT total[THIN][WIDE], sum[WIDE];
  for (int r = 0; r < p.m; r++) {
    for (int v = 0; v < all; v++) total[r][v] = (VT)0;
  }
  for (long k = 0; k < p.k; k += SPAN) {
    const int count = (int)min((long)SPAN, p.k - k);
    for (int r = 0; r < p.m; r++) {
      CT x[SPAN];
      for (int i = 0; i < count; i++) x[i] = LOAD_ONE(a + r * p.a_row + (k + i) * p.a_depth);
      for (int v = 0; v < all; v++) sum[v] = (VT)0;
      add_rows(sum, x, b + k * p.b_depth + first, p.b_depth, count, vectors, rest);
      for (int v = 0; v < all; v++) total[r][v] += sum[v];
    }
  }
  for (int r = 0; r < p.m; r++) {
    for (int v = 0; v < all; v++) finish(total[r][v], r, first + v * VEC, p, batch, alpha, beta, out, more);
  }
}

/* Columns whose K lies side by side: GROUP of them against so many rows of A, along vectors, of PAIRS (pairs.cl) of two
 * numbers in each lane. What is read serves for as many products as a tile has rows or columns. */
#define GROUP 4
#ifdef PAIRS
#define LOAD_ALONG(p) load_pairs(p)
#else
#define LOAD_ALONG(p) LOAD(D, __global, p)
#define ONE_STEP(p, apart, has) LOAD_ONE(p)
#endif
#define ALONG (VEC * STEP_K)
static __attribute__((noinline)) VT take(__global const RAW(D) *at, long stride, long n) {
  if (stride == 1 && n >= ALONG) return LOAD_ALONG(at);
  CT lanes[VEC];
  for (int j = 0; j < VEC; j++) {
    const int first = j * STEP_K;
    lanes[j] = first < n ? ONE_STEP(at + first * stride, stride, first + 1 < n) : 0;
  }
  return VLOAD(lanes);
}

static CT lanes_sum(VT v) {
  CT lanes[VEC];
  VSTORE(v, lanes);
  for (int step = VEC / 2; step > 0; step /= 2) {
    for (int j = 0; j < step; j++) lanes[j] += lanes[j + step];
  }
  return lanes[0];
}

/* ROWS is 1 or GROUP; places of A's rows are a_row apart, results `apart`. */
#define DEFINE_DOT(NAME, ROWS)                                                                                        \
  static void NAME(__global const RAW(D) *a, long a_row, long a_depth, __global const RAW(D) *const b[GROUP], long depth, \
                   CT *to, long apart) {                                                                              \
    VT total[ROWS][GROUP];                                                                                            \
    for (int r = 0; r < ROWS; r++) {                                                                                  \
      for (int g = 0; g < GROUP; g++) total[r][g] = (VT)0;                                                            \
    }                                                                                                                 \
    for (long k = 0; k < depth;) {                                                                                    \
      const long stop = min(k + SPAN * VEC, depth);                                                                   \
      VT sum[ROWS][GROUP];                                                                                            \
      _Pragma("unroll") for (int r = 0; r < ROWS; r++) {                                                              \
        _Pragma("unroll") for (int g = 0; g < GROUP; g++) sum[r][g] = (VT)0;                                          \
      }                                                                                                               \
      for (; k < stop; k += ALONG) {                                                                                  \
        const bool whole = a_depth == 1 && k + ALONG <= stop;                                                         \
        VT x[ROWS], y[GROUP];                                                                                         \
        _Pragma("unroll") for (int r = 0; r < ROWS; r++)                                                              \
          x[r] = whole ? LOAD_ALONG(a + r * a_row + k) : take(a + r * a_row + k * a_depth, a_depth, stop - k);        \
        _Pragma("unroll") for (int g = 0; g < GROUP; g++)                                                             \
          y[g] = whole ? LOAD_ALONG(b[g] + k) : take(b[g] + k, 1, stop - k);                                          \
        _Pragma("unroll") for (int r = 0; r < ROWS; r++) {                                                            \
          _Pragma("unroll") for (int g = 0; g < GROUP; g++) sum[r][g] = ADD_PRODUCTS(x[r], y[g], sum[r][g]);          \
        }                                                                                                             \
      }                                                                                                               \
      _Pragma("unroll") for (int r = 0; r < ROWS; r++) {                                                              \
        _Pragma("unroll") for (int g = 0; g < GROUP; g++) total[r][g] += sum[r][g];                                   \
      }                                                                                                               \
    }                                                                                                                 \
    for (int r = 0; r < ROWS; r++) {                                                                                  \
      for (int g = 0; g < GROUP; g++) to[r * apart + g] = lanes_sum(total[r][g]);                                     \
    }                                                                                                                 \
  }
DEFINE_DOT(dot_row, 1)
DEFINE_DOT(dot_rows, GROUP)

static void by_columns(__global const RAW(D) *a, __global const RAW(D) *b, product p, long first, long end, long batch,
                       CT alpha, CT beta, __global uchar *out, extras more) {
  for (long j = first; j < end; j += VEC) {
    CT lanes[THIN_BY_COLUMNS][VEC + GROUP];
    for (int g = 0; g < VEC; g += GROUP) {
      __global const RAW(D) *columns[GROUP]; /* beyond the last, the last again */
      for (int i = 0; i < GROUP; i++) columns[i] = b + min(j + g + i, end - 1) * p.b_column;
      int r = 0;
      for (; r + GROUP <= p.m; r += GROUP)
        dot_rows(a + r * p.a_row, p.a_row, p.a_depth, columns, p.k, lanes[r] + g, VEC + GROUP);
      for (; r < p.m; r++) dot_row(a + r * p.a_row, p.a_row, p.a_depth, columns, p.k, lanes[r] + g, VEC + GROUP);
    }
    for (int r = 0; r < p.m; r++) finish(VLOAD(lanes[r]), r, j, p, batch, alpha, beta, out, more);
  }
}

KERNEL_OF(1, 1) multiply(
    CONST_PLACE(factor_a), CONST_PLACE(factor_b), PLACE(partial), PLACE(out), CONST_PLACE(addend) EPILOGUE_PARAMETERS, CT alpha, CT beta,
    long k_begin, long k_end, product p) {
  const long batch = get_global_id(2), first = (long)get_global_id(0) * p.panels_per_item * VEC;
  const long end = min(first + p.panels_per_item * VEC, p.n);
  __global const RAW(D) *a = CONST_POINTER(D, factor_a) + batch * p.a_batch;
  __global const RAW(D) *b = CONST_POINTER(D, factor_b) + batch * p.b_batch;
  if (p.b_column == 1)
    by_rows(a, b, p, first, end, batch, alpha, beta, out + offset_out, EXTRAS);
  else
    by_columns(a, b, p, first, end, batch, alpha, beta, out + offset_out, EXTRAS);
}
