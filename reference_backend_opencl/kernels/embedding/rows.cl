/* Rows of a table, one after the other as indices name them. After lines.cl and lengths.cl; a line is a row. The head
 * defines D, D_INDEX and OP_ID. */
DEFINE_ACCESS(value, D)

#define EACH_INDEX(i)                                                   \
  const long first_index = (long)UNIT_ID * space.per_item;              \
  const long last_index = min(first_index + space.per_item, space.units); \
  for (long i = first_index; i < last_index; i++)

/* Whether the index lies in the table. */
static bool is_row(long index, long table, __global long *faults) {
  bool lies = index >= 0 && index < table;
  if (!lies) REPORT(faults, OP_ID, index, table);
  return lies;
}

/* The row that an index names, from the end where it is negative; -1 where another index has taken it before. */
static long take_row(long index, long table, __global int *taken, __global long *faults) {
  long row = index < 0 ? index + table : index;
  if (row < 0 || row >= table) {
    REPORT(faults, OP_ID, index, table);
    return -1;
  }
  return atomic_xchg(taken + row, 1) ? -1 : row;
}

/* Which index has a row does not matter: each makes the same of it. All work-items go over a row that is not taken as over
 * one of no elements, so that they meet at the same barriers. */
KERNEL renorm(PLACE(out), CONST_PLACE(in), CONST_PLACE(indices), PLACE(taken), __global long *faults, CT p, CT most,
              long table, lines space) {
  GROUP_ARRAY(CT, shared);
  __local long shared_row;
  EACH_INDEX(i) {
    if (get_local_id(0) == 0)
      shared_row = take_row(CONST_POINTER(D_INDEX, indices)[i], table, (__global int *)(taken + offset_taken), faults);
    barrier(CLK_LOCAL_MEM_FENCE);
    const long row = shared_row, size = row < 0 ? 0 : space.size;
    __global const RAW(D) *x = CONST_POINTER(D, in) + max(row, 0L) * space.size;
    __global RAW(D) *to = POINTER(D, out) + max(row, 0L) * space.size;
    VT length = LENGTH_OF_NONE;
    ADD_LENGTH(length, c, n, size, get_value(x + c, n), p)
    length = length_of(LENGTH_TOTAL(length, shared), p);
    const VT factor = shortening(length, most);
    EACH(c, n, 0, size, put_value(to + c, get_value(x + c, n) * factor, n))
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

/* The gradient of a row's weight: its product with the gradient of the bag that it is in. */
KERNEL weights_gradient(PLACE(out), CONST_PLACE(grad), CONST_PLACE(rows), CONST_PLACE(indices), CONST_PLACE(bag_of),
                        __global long *faults, long table, long bags, long padding, lines space) {
  GROUP_ARRAY(CT, shared);
  EACH_INDEX(i) {
    const long row = CONST_POINTER(D_INDEX, indices)[i], bag = CONST_POINTER(D_INDEX, bag_of)[i];
    const bool lies = is_row(row, table, faults) & is_row(bag, bags, faults);
    const long size = lies && row != padding ? space.size : 0;
    __global const RAW(D) *g = CONST_POINTER(D, grad) + (size ? bag * size : 0);
    __global const RAW(D) *x = CONST_POINTER(D, rows) + (size ? row * size : 0);
    VT sum = (VT)0;
    SUM(sum, c, n, size, get_value(g + c, n) * get_value(x + c, n))
    sum = total_sum(sum, shared);
    if (get_local_id(0) == 0) put_value(POINTER(D, out) + i, sum, 1);
  }
}
