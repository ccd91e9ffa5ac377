/* The gradient of a root mean square normalization's weight on a GPU: partial sums over parts of the rows. A group takes
 * WIDTH columns side by side and DEPTH rows at a time. The head defines D and D_RSTD. */
#define WIDTH 32
#define DEPTH (LOCAL / WIDTH)
#define STRETCH (64 * DEPTH) /* rows that are summed before they are added to the rest */

KERNEL rms_norm_weight_parts(PLACE(parts), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(rstds), long rows,
                             long columns, long rows_of_part) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *x = CONST_POINTER(D, in), *g = CONST_POINTER(D, grad);
  __global const RAW(D_RSTD) *rstd = CONST_POINTER(D_RSTD, rstds);
  const int id = (int)get_local_id(0), place = id / WIDTH;
  const long column = (long)get_group_id(0) * WIDTH + id % WIDTH;
  const long first = (long)get_group_id(1) * rows_of_part, last = min(first + rows_of_part, rows);
  CT total = 0;
  for (long stretch = first; column < columns && stretch < last; stretch += STRETCH) {
    const long end = min(stretch + STRETCH, last);
    CT sum = 0;
#pragma unroll 8
    for (long row = stretch + place; row < end; row += DEPTH)
      sum += LOAD(D, __global, g + row * columns + column) * LOAD(D, __global, x + row * columns + column) *
             LOAD(D_RSTD, __global, rstd + row);
    total += sum;
  }
  shared[id] = total;
  for (int half_depth = DEPTH / 2; half_depth > 0; half_depth /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (place < half_depth) shared[id] += shared[id + half_depth * WIDTH];
  }
  if (place == 0 && column < columns)
    ((__global CT *)(parts + offset_parts))[(long)get_group_id(1) * columns + column] = shared[id];
}
