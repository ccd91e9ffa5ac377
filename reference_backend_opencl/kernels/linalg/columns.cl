/* Hermitian matrices become tridiagonal by many work-groups, after direct.cl, stacks.cl and reflector.cl: a
 * launch for each column, in which a work-group takes from its rows what the last column's reflector leaves, and
 * multiplies them by this one's. What is as long as a column each work-group finds for itself. The head (columns.c)
 * defines LONGEST, rows of a matrix. */
#define ITEMS 256
#define TEAM 32 /* work-items that have a row */
#define ROWS_EACH (ITEMS / TEAM)

/* What all of a matrix is smaller by, so that no square overflows: NaN where a number is not finite. */
KERNEL_OF(ITEMS, 1) find_scale(PLACE(diagonal), CONST_PLACE(in), long size, long upper) {
  __local RT most[ITEMS];
  const long b = (long)get_group_id(0);
  const int id = (int)get_local_id(0);
  const_matrix from = CONST_MATRIX(in) + b * size * size;
  RT largest = 0;
  for (long p = id; p < size * size; p += ITEMS) {
    const long i = divided(p, size), j = p - i * size;
    if (upper ? i <= j : i >= j) largest = fmax(largest, LARGEST_PART(from[p]));
  }
  most[id] = largest;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_of = ITEMS / 2; half_of > 0; half_of /= 2) {
    if (id < half_of) most[id] = fmax(most[id], most[id + half_of]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (id) return;
  const bool good = most[0] <= MAXIMUM;
  REALS(diagonal)[b * (2 * size + 1) + 2 * size] = !good ? (RT)NAN : most[0] > 0 ? most[0] : (RT)1;
}

/* Both triangles of the one that is read. */
KERNEL_OF(ITEMS, 1) begin(PLACE(work), CONST_PLACE(diagonal), CONST_PLACE(in), long size, long upper, long elements) {
  const long p = (long)get_global_id(0);
  if (p >= elements) return;
  const long row = divided(p, size), j = p - row * size, b = divided(row, size), i = row - b * size;
  const_matrix from = CONST_MATRIX(in) + b * size * size;
  const RT scale = ((__global const RT *)(diagonal + offset_diagonal))[b * (2 * size + 1) + 2 * size];
  const CT given = (upper ? i <= j : i >= j) ? from[i * size + j] : CONJ(from[j * size + i]);
  MATRIX(work)[p] = scale != scale ? (CT)0 : i == j ? FROM_REAL(REAL(given) / scale) : given / scale;
}

static INLINED CT total(__local CT *parts, CT mine) {
  const int id = (int)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  parts[id] = mine;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_of = ITEMS / 2; half_of > 0; half_of /= 2) {
    if (id < half_of) parts[id] += parts[id + half_of];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return parts[0];
}

static INLINED RT largest_of(__local CT *parts, RT mine) {
  const int id = (int)get_local_id(0);
  barrier(CLK_LOCAL_MEM_FENCE);
  parts[id] = FROM_REAL(mine);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_of = ITEMS / 2; half_of > 0; half_of /= 2) {
    if (id < half_of) parts[id] = FROM_REAL(fmax(REAL(parts[id]), REAL(parts[id + half_of])));
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  return REAL(parts[0]);
}

/* Column k. `steps` has, for each matrix, of odd and of even columns a reflector's vector and the product with it. */
KERNEL_OF(ITEMS, 1) take_column(PLACE(work), PLACE(steps), PLACE(diagonal), PLACE(reflectors), PLACE(tau), long size,
                                long parts, long k) {
  __local CT x[LONGEST], y[LONGEST], now[LONGEST], sums[ITEMS];
  const long b = (long)get_group_id(0) / parts, part = (long)get_group_id(0) % parts;
  const int id = (int)get_local_id(0), lane = id % TEAM;
  matrix a = MATRIX(work) + b * size * size, mine = MATRIX(steps) + b * 4 * size + k % 2 * 2 * size;
  const_matrix last = MATRIX(steps) + b * 4 * size + (k + 1) % 2 * 2 * size;
  matrix factors = MATRIX(tau) + b * (size - 1);
  __global RT *d = REALS(diagonal) + b * (2 * size + 1);
  const CT factor = k > 0 ? factors[k - 1] : (CT)0;
  CT dot = 0;
  for (long i = id; i < size; i += ITEMS) {
    x[i] = k > 0 && i >= k ? last[i] : (CT)0;
    y[i] = k > 0 && i >= k ? MUL(factor, last[size + i]) : (CT)0;
    dot = MULTIPLY_ADD(CONJ(y[i]), x[i], dot);
  }
  dot = MUL(factor, total(sums, dot)) / 2;
  for (long i = id; i < size; i += ITEMS) y[i] = MULTIPLY_ADD(-dot, x[i], y[i]);
  barrier(CLK_LOCAL_MEM_FENCE);
  RT most = 0;
  for (long i = id; i < size; i += ITEMS) {
    const CT less = i >= k ? MULTIPLY_ADD(-x[i], CONJ(y[k]), a[i * size + k]) : (CT)0;
    now[i] = i >= k ? MULTIPLY_ADD(-y[i], CONJ(x[k]), less) : (CT)0;
    if (i > k + 1) most = fmax(most, MODULUS(now[i]));
  }
  most = largest_of(sums, most);
  if (part == 0 && id == 0) d[k] = REAL(now[k]);
  const CT head = now[k + 1];
  barrier(CLK_LOCAL_MEM_FENCE); /* that number and the one before are read */
  RT squares = 0;
  for (long i = id; i < size; i += ITEMS) {
    const CT share = i > k + 1 && most != 0 ? now[i] / most : (CT)0;
    squares = ADD_SQUARE(share, squares);
    now[i] = share;
  }
  const reflector by = reflector_of(head, most, REAL(total(sums, FROM_REAL(squares))));
  for (long i = id; i < size; i += ITEMS) {
    now[i] = i == k + 1 ? FROM_REAL(1) : MUL(by.each, now[i]);
    if (part == 0) {
      mine[i] = now[i];
      if (i > k + 1) MATRIX(reflectors)[b * (size - 1) * size + (i - 1) * size + k] = now[i];
    }
  }
  if (part == 0 && id == 0) {
    d[size + k] = by.beta;
    factors[k] = by.factor;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  const long i = k + 1 + part * ROWS_EACH + id / TEAM;
  CT sum = 0;
  for (long j = k + 1 + lane; i < size && j < size; j += TEAM) {
    const CT less = MULTIPLY_ADD(-x[i], CONJ(y[j]), a[i * size + j]), left = MULTIPLY_ADD(-y[i], CONJ(x[j]), less);
    a[i * size + j] = left;
    sum = MULTIPLY_ADD(left, now[j], sum);
  }
  sums[id] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_of = TEAM / 2; half_of > 0; half_of /= 2) {
    if (lane < half_of) sums[id] += sums[id + half_of];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane == 0 && i < size) mine[size + i] = sums[id];
}

/* What the last reflector leaves of the last row, a matrix a work-item's. */
KERNEL_OF(ITEMS, 1) finish(PLACE(work), PLACE(steps), PLACE(diagonal), PLACE(tau), long size, long matrices) {
  const long b = (long)get_global_id(0), end = size - 1;
  if (b >= matrices) return;
  const_matrix last = MATRIX(steps) + b * 4 * size + (size - 2) % 2 * 2 * size;
  const CT factor = MATRIX(tau)[b * end + end - 1], x = last[end], given = MUL(factor, last[size + end]);
  const CT dot = MUL(factor, MUL(CONJ(given), x)) / 2, y = MULTIPLY_ADD(-dot, x, given);
  const CT less = MULTIPLY_ADD(-x, CONJ(y), MATRIX(work)[(b + 1) * size * size - 1]);
  __global RT *d = REALS(diagonal) + b * (2 * size + 1);
  d[end] = REAL(MULTIPLY_ADD(-y, CONJ(x), less));
  d[size + end] = 0;
}
