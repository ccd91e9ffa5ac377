/* The product of two vectors, in parts and then their sum. After core/parts.cl. */
DEFINE_ACCESS(value, D)

KERNEL dot_parts(PLACE(out), CONST_PLACE(a), CONST_PLACE(b), long elements, long part) {
  GROUP_ARRAY(CT, shared);
  const long start = (long)get_group_id(0) * part, size = min(part, elements - start);
  __global const RAW(D) *p = CONST_POINTER(D, a) + start, *q = CONST_POINTER(D, b) + start;
  VT sum = (VT)0;
  SUM(sum, i, n, size, get_value(p + i, n) * get_value(q + i, n))
  put_part((__global CT *)(out + offset_out), total_sum(sum, shared));
}

KERNEL dot_sum(PLACE(out), CONST_PLACE(parts), long count) {
  GROUP_ARRAY(CT, shared);
  const CT sum = sum_of_parts((__global const CT *)(parts + offset_parts), count, shared);
  if (get_local_id(0) == 0) put_value(POINTER(D, out), (VT)sum, 1);
}
