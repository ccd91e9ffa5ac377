/* A long sum in parts, a work-group each, and then of these. After cascade.cl and lines.cl, rows. */

/* The group's part, which all lanes of its total have. */
static void put_part(__global CT *parts, VT total) {
  CT lanes[VEC];
  VSTORE(total, lanes);
  if (get_local_id(0) == 0) parts[get_group_id(0)] = lanes[0];
}

/* For one work-group: each work-item takes every LOCAL-th part. One alone would wait for a thousand of them in turn. */
static INLINED CT sum_of_parts(__global const CT *parts, long count, __local CT *shared) {
  cascade sum = cascade_of_none();
  for (long k = (long)get_local_id(0); k < count; k += LOCAL) cascade_add(&sum, parts[k]);
#if LOCAL > 1
  return across_total_sum(cascade_total(&sum), shared);
#else
  return cascade_total(&sum);
#endif
}
