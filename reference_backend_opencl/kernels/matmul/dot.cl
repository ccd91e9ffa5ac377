/* The product of two vectors, in parts and then their sum. After core/cascade.cl and core/lines.cl, rows. */
DEFINE_ACCESS(value, D)

KERNEL dot_parts(PLACE(out), CONST_PLACE(a), CONST_PLACE(b), long elements, long part) {
  __local CT shared[LOCAL];
  const long start = (long)get_group_id(0) * part, size = min(part, elements - start);
  __global const RAW(D) *p = CONST_POINTER(D, a) + start, *q = CONST_POINTER(D, b) + start;
  VT sum = (VT)0;
  SUM(sum, i, n, size, get_value(p + i, n) * get_value(q + i, n))
  sum = total_sum(sum, shared);
  CT lanes[VEC];
  VSTORE(sum, lanes);
  if (get_local_id(0) == 0) ((__global CT *)(out + offset_out))[get_group_id(0)] = lanes[0];
}

/* One work-item: there are few. */
KERNEL_OF(1, 1) dot_sum(PLACE(out), CONST_PLACE(parts), long count) {
  cascade sum = cascade_of_none();
  for (long k = 0; k < count; k++) cascade_add(&sum, ((__global const CT *)(parts + offset_parts))[k]);
  put_value(POINTER(D, out), (VT)cascade_total(&sum), 1);
}
