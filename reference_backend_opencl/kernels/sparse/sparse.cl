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
