/* Products with a matrix in CSR form, after places.cl. The head defines D, the dtype of values. Elements are added in their order, so that
 * results are the same each time, and n of them as parts of about sqrt(n) each: n equal terms, one after the other, would
 * be rounded the same way n times. */
typedef struct {
  long rows, columns, elements, size; /* of the matrix; size: how long the dense rows are */
  long op_id;
} csr_space;

/* Where a row begins and ends; one that lies elsewhere counts as one of nothing. The row behind the last is empty. */
static long2 range_of(__global const long *starts, long row, __global long *faults, csr_space space) {
  long begin = starts[row], end = row < space.rows ? starts[row + 1] : begin;
  if (begin >= 0 && begin <= end && end <= space.elements) return (long2)(begin, end);
  REPORT(faults, (int)space.op_id, row, FAULT_SEGMENTS);
  return (long2)(0, 0);
}

static int is_column(long column, csr_space space) { return column >= 0 && column < space.columns; }

/* Work-item i looks at row i and element i: those that no result comes from, too. */
static void check_place(__global const long *starts, __global const long *columns, long i, __global long *faults,
                        csr_space space) {
  if (i <= space.rows) range_of(starts, i, faults, space);
  if (i < space.elements && !is_column(columns[i], space)) REPORT(faults, (int)space.op_id, columns[i], space.columns);
}

static long part_of(long n) { return max(16L, (long)sqrt((float)n)); }

#if LOCAL == 1
/* On a CPU a work-item has a stretch of rows, and of elements; a row of the result is made in vectors. */
DEFINE_ACCESS(value, D)
#define VECTORS 4 /* of a row of the result that are summed together: each has two registers */

static long part_begin(long count, long item) { return count * item / (long)get_global_size(0); }

static void check_places(__global const long *starts, __global const long *columns, __global long *faults,
                         csr_space space, long item) {
  const long last_row = part_begin(space.rows + 1, item + 1), last = part_begin(space.elements, item + 1);
  for (long row = part_begin(space.rows + 1, item); row < last_row; row++) range_of(starts, row, faults, space);
  int wrong = 0;
  for (long j = part_begin(space.elements, item); j < last; j++) wrong |= !is_column(columns[j], space);
  for (long j = part_begin(space.elements, item); wrong && j < last; j++) {
    if (!is_column(columns[j], space)) REPORT(faults, (int)space.op_id, columns[j], space.columns);
  }
}

/* So many vectors of a row of the result, of which the last has n lanes. `from` is where they lie in the first dense row. */
static INLINED void sum_vectors(const int vectors, __global RAW(D) * to, __global const RAW(D) * from,
                                __global const RAW(D) * values, __global const long *columns, long2 range, int n,
                                csr_space space) {
  VT sum[VECTORS], part[VECTORS];
#pragma unroll
  for (int v = 0; v < vectors; v++) sum[v] = (VT)0;
  const long step = part_of(range.y - range.x);
  for (long begin = range.x; begin < range.y; begin += step) {
#pragma unroll
    for (int v = 0; v < vectors; v++) part[v] = (VT)0;
    for (long j = begin; j < min(begin + step, range.y); j++) {
      if (!is_column(columns[j], space)) continue;
      const VT value = (VT)one_value(values + j);
      __global const RAW(D) *other = from + columns[j] * space.size;
#pragma unroll
      for (int v = 0; v < vectors; v++)
        part[v] = MULTIPLY_ADD(value, get_value(other + v * VEC, v == vectors - 1 ? n : VEC), part[v]);
    }
#pragma unroll
    for (int v = 0; v < vectors; v++) sum[v] = ADD(sum[v], part[v]);
  }
#pragma unroll
  for (int v = 0; v < vectors; v++) put_value(to + v * VEC, sum[v], v == vectors - 1 ? n : VEC);
}

KERNEL multiply(PLACE(out), CONST_PLACE(starts), CONST_PLACE(columns), CONST_PLACE(values), CONST_PLACE(dense),
                __global long *faults, csr_space space) {
  const long item = (long)get_global_id(0), last = part_begin(space.rows, item + 1);
  __global const long *start = (__global const long *)(starts + offset_starts);
  __global const long *column = (__global const long *)(columns + offset_columns);
  check_places(start, column, faults, space, item);
  for (long row = part_begin(space.rows, item); row < last; row++) {
    const long2 range = range_of(start, row, faults, space);
    __global RAW(D) *to = POINTER(D, out) + row * space.size;
    __global const RAW(D) *from = CONST_POINTER(D, dense), *value = CONST_POINTER(D, values);
    long c = 0;
    for (; c + VECTORS * VEC <= space.size; c += VECTORS * VEC)
      sum_vectors(VECTORS, to + c, from + c, value, column, range, VEC, space);
    for (; c < space.size; c += VEC)
      sum_vectors(1, to + c, from + c, value, column, range, (int)min((long)VEC, space.size - c), space);
  }
}

/* Elements from `row` on, n of them and zeros behind. */
static VT elements_of(__global const RAW(D) * row, int n) {
  VT v = get_value(row, n);
  if (n == VEC) return v;
  CT lanes[VEC];
  VSTORE(v, lanes);
  for (int i = n; i < VEC; i++) lanes[i] = (CT)0;
  return VLOAD(lanes);
}

/* All lanes in each. */
static VT sum_of(VT v) {
  CT lanes[2 * VEC];
  for (int step = VEC / 2; step > 0; step /= 2) {
    VSTORE(v, lanes);
    VSTORE(v, lanes + VEC);
    v = ADD(v, VLOAD(lanes + step));
  }
  return v;
}

static VT product_of(__global const RAW(D) * a, __global const RAW(D) * b, long size) {
  VT sum = (VT)0;
  const long step = part_of(size / VEC) * VEC;
  for (long from = 0; from < size; from += step) {
    VT part = (VT)0;
    for (long k = from; k < min(from + step, size); k += VEC) {
      const int n = (int)min((long)VEC, size - k);
      part = MULTIPLY_ADD(elements_of(a + k, n), elements_of(b + k, n), part);
    }
    sum = ADD(sum, part);
  }
  return sum_of(sum);
}

/* A product of two dense rows for each element; 0 where it is in no row. */
KERNEL sample(PLACE(out), CONST_PLACE(starts), CONST_PLACE(columns), CONST_PLACE(left), CONST_PLACE(right),
              __global long *faults, csr_space space) {
  const long item = (long)get_global_id(0), last = part_begin(space.elements, item + 1);
  __global const long *start = (__global const long *)(starts + offset_starts);
  __global const long *column = (__global const long *)(columns + offset_columns);
  check_places(start, column, faults, space, item);
  for (long j = part_begin(space.elements, item); j < last; j++) {
    const long row = last_place_before(start, 0, space.rows + 1, j);
    VT sum = (VT)0;
    if (is_column(column[j], space) && row >= 0 && row < space.rows)
      sum = product_of(CONST_POINTER(D, left) + row * space.size, CONST_POINTER(D, right) + column[j] * space.size,
                       space.size);
    put_value(POINTER(D, out) + j, sum, 1);
  }
}
#else
/* An element of the result for each work-item; neighbours read neighbouring elements of dense rows. */
KERNEL multiply(PLACE(out), CONST_PLACE(starts), CONST_PLACE(columns), CONST_PLACE(values), CONST_PLACE(dense),
                __global long *faults, csr_space space) {
  long i = (long)get_global_id(0);
  __global const long *start = (__global const long *)(starts + offset_starts);
  __global const long *column = (__global const long *)(columns + offset_columns);
  check_place(start, column, i, faults, space);
  if (i >= space.rows * space.size) return;
  long2 range = range_of(start, i / space.size, faults, space);
  CT sum = (CT)0;
  const long step = part_of(range.y - range.x);
  for (long from = range.x; from < range.y; from += step) {
    CT part = (CT)0;
    for (long j = from; j < min(from + step, range.y); j++) {
      if (!is_column(column[j], space)) continue;
      CT value = LOAD(D, __global, CONST_POINTER(D, values) + j);
      CT other = LOAD(D, __global, CONST_POINTER(D, dense) + column[j] * space.size + i % space.size);
      part = MULTIPLY_ADD(value, other, part);
    }
    sum = ADD(sum, part);
  }
  STORE(D, __global, POINTER(D, out) + i, sum);
}

/* A product of two dense rows for each element; 0 where it is in no row. */
KERNEL sample(PLACE(out), CONST_PLACE(starts), CONST_PLACE(columns), CONST_PLACE(left), CONST_PLACE(right),
              __global long *faults, csr_space space) {
  long j = (long)get_global_id(0);
  __global const long *start = (__global const long *)(starts + offset_starts);
  __global const long *columns_at = (__global const long *)(columns + offset_columns);
  check_place(start, columns_at, j, faults, space);
  if (j >= space.elements) return;
  long column = columns_at[j], row = last_place_before(start, 0, space.rows + 1, j);
  CT sum = (CT)0;
  if (is_column(column, space) && row >= 0 && row < space.rows) {
    __global const RAW(D) *a = CONST_POINTER(D, left) + row * space.size;
    __global const RAW(D) *b = CONST_POINTER(D, right) + column * space.size;
    const long step = part_of(space.size);
    for (long from = 0; from < space.size; from += step) {
      CT part = (CT)0;
      for (long k = from; k < min(from + step, space.size); k++)
        part = MULTIPLY_ADD(LOAD(D, __global, a + k), LOAD(D, __global, b + k), part);
      sum = ADD(sum, part);
    }
  }
  STORE(D, __global, POINTER(D, out) + j, sum);
}
#endif
