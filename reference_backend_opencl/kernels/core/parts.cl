/* A long sum in parts, a work-group each, and then of these. After cascade.cl and lines.cl, rows. */

/* The group's part, which all lanes of its total have. */
static void put_part(__global CT *parts, VT total) {
  CT lanes[VEC];
  VSTORE(total, lanes);
  if (get_local_id(0) == 0) parts[get_group_id(0)] = lanes[0];
}

/* For one work-item: parts are few. */
static CT sum_of_parts(__global const CT *parts, long count) {
  cascade sum = cascade_of_none();
  for (long k = 0; k < count; k++) cascade_add(&sum, parts[k]);
  return cascade_total(&sum);
}
