/* Cholesky's factorization by many work-groups, after stacks.cl: BLOCK columns at a time, a launch that factorizes their
 * square and solves the rows below it, and one that takes these from what is left. All is said of a lower factor; of an
 * upper one rows are columns, and the matrix that is factorized is the conjugate. */
#define BLOCK 32
#define PANEL 64 /* rows of the panel that a work-group solves, each work-item one */

/* Where matrix b is, and its elements. */
typedef struct {
  matrix at;
  long down, right;
} factor;

static factor factor_of(matrix l, long b, long size, long upper) {
  return (factor){l + b * size * size, upper ? 1 : size, upper ? size : 1};
}
#define AT(f, i, j) ((f).at[(i) * (f).down + (j) * (f).right])

/* What lies on one side of the diagonal, zeros on the other. `state` is the first bad step of each matrix, from 1 on. */
KERNEL_OF(PANEL, 1) begin(PLACE(l), PLACE(info), PLACE(state), CONST_PLACE(a), long size, long upper, long count) {
  const long place = (long)get_global_id(0);
  if (place < count) WHOLE(info)[place] = WHOLE(state)[place] = 0;
  if (place >= count * size * size) return;
  const long row = divided(place, size), j = place - row * size, i = row - divided(row, size) * size;
  const CT v = CONST_MATRIX(a)[place];
  MATRIX(l)[place] = i == j ? FROM_REAL(REAL(v)) : (i > j) == !upper ? v : (CT)0;
}

/* The square in local memory, with ones behind its last column; it loses each column's product as soon as that is
 * found. Returns the first step whose pivot is not positive, from 1 on, or 0. */
static INLINED int factor_square(__local CT (*square)[BLOCK + 1], factor f, long first, int columns) {
  const int id = (int)get_local_id(0);
  int bad = 0;
  for (int p = id; p < BLOCK * BLOCK; p += PANEL) {
    const int i = p / BLOCK, j = p % BLOCK;
    square[i][j] = i < columns && j <= i ? AT(f, first + i, first + j) : FROM_REAL(i == j);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = 0; k < columns; k++) {
    const RT pivot = REAL(square[k][k]), root = sqrt(pivot);
    if (!bad && !(pivot > 0)) bad = (int)(first + k) + 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (id >= k && id < columns && !bad) square[id][k] = id == k ? FROM_REAL(root) : square[id][k] / root;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int left = columns - k - 1;
    for (int p = id; p < left * left && !bad; p += PANEL) {
      const int i = k + 1 + p / left, j = k + 1 + p % left;
      if (j <= i) square[i][j] = MULTIPLY_ADD(-square[i][k], CONJ(square[j][k]), square[i][j]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return bad;
}

/* Each work-group of a matrix factorizes the square for itself; `squares` gets it, as others still read it. */
KERNEL_OF(PANEL, 1) panel(PLACE(l), PLACE(info), PLACE(state), PLACE(squares), long size, long upper, long parts,
                          long first) {
  __local CT square[BLOCK][BLOCK + 1];
  const long b = (long)get_group_id(0) / parts, part = (long)get_group_id(0) % parts;
  const int id = (int)get_local_id(0), columns = (int)min((long)BLOCK, size - first);
  const factor f = factor_of(MATRIX(l), b, size, upper);
  if (WHOLE(info)[b]) return;
  const int bad = factor_square(square, f, first, columns);
  if (part == 0) {
    for (int p = id; p < BLOCK * BLOCK; p += PANEL) MATRIX(squares)[b * BLOCK * BLOCK + p] = square[p / BLOCK][p % BLOCK];
    if (id == 0) WHOLE(state)[b] = bad;
  }
  const long row = first + columns + part * PANEL + id;
  if (bad || row >= size) return;
  CT x[BLOCK];
  AT_THE_SAME_TIME for (int j = 0; j < BLOCK; j++) x[j] = j < columns ? AT(f, row, first + j) : (CT)0;
  AT_THE_SAME_TIME for (int j = 0; j < BLOCK; j++) {
    x[j] = x[j] / REAL(square[j][j]);
    AT_THE_SAME_TIME for (int k = j + 1; k < BLOCK; k++) x[k] = MULTIPLY_ADD(-x[j], CONJ(square[k][j]), x[k]);
  }
  AT_THE_SAME_TIME for (int j = 0; j < BLOCK; j++) {
    if (j < columns) AT(f, row, first + j) = x[j];
  }
}

/* A work-group takes from a tile behind the panel what its rows and those of its columns make; the first of a matrix puts
 * the square into its place, too. */
#define TILE_LANES 256
#define ROWS_EACH (BLOCK * BLOCK / TILE_LANES)
KERNEL_OF(TILE_LANES, 1) update(PLACE(l), PLACE(info), PLACE(state), CONST_PLACE(squares), long size, long upper,
                                long tiles, long first) {
  __local CT rows[BLOCK][BLOCK + 1], others[BLOCK][BLOCK + 1];
  const long groups = tiles ? tiles * tiles : 1, b = (long)get_group_id(0) / groups, tile = (long)get_group_id(0) % groups;
  const int id = (int)get_local_id(0), column = id % BLOCK, columns = (int)min((long)BLOCK, size - first);
  const factor f = factor_of(MATRIX(l), b, size, upper);
  if (WHOLE(info)[b]) return;
  const int bad = WHOLE(state)[b];
  for (int p = id; tile == 0 && p < columns * columns; p += TILE_LANES) {
    const int i = p / columns, j = p % columns;
    if (j <= i) AT(f, first + i, first + j) = CONST_MATRIX(squares)[(b * BLOCK + i) * BLOCK + j];
  }
  if (bad && tile == 0 && id == 0) WHOLE(info)[b] = bad;
  const long top = first + BLOCK + (tiles ? tile / tiles : 0) * BLOCK, left = first + BLOCK + (tiles ? tile % tiles : 0) * BLOCK;
  if (bad || !tiles || left > top) return;
  for (int p = id; p < BLOCK * BLOCK; p += TILE_LANES) {
    const int i = p / BLOCK, k = p % BLOCK;
    rows[i][k] = top + i < size ? AT(f, top + i, first + k) : (CT)0;
    others[i][k] = left + i < size ? AT(f, left + i, first + k) : (CT)0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  CT sums[ROWS_EACH];
  AT_THE_SAME_TIME for (int r = 0; r < ROWS_EACH; r++) {
    const long i = top + id / BLOCK + r * (BLOCK / ROWS_EACH), j = left + column;
    sums[r] = i < size && j <= i ? AT(f, i, j) : (CT)0;
  }
  for (int k = 0; k < BLOCK; k++) {
    const CT other = CONJ(others[column][k]);
    AT_THE_SAME_TIME for (int r = 0; r < ROWS_EACH; r++)
      sums[r] = MULTIPLY_ADD(-rows[id / BLOCK + r * (BLOCK / ROWS_EACH)][k], other, sums[r]);
  }
  AT_THE_SAME_TIME for (int r = 0; r < ROWS_EACH; r++) {
    const long i = top + id / BLOCK + r * (BLOCK / ROWS_EACH), j = left + column;
    if (i < size && j <= i) AT(f, i, j) = i == j ? FROM_REAL(REAL(sums[r])) : sums[r];
  }
}
