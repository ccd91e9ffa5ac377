/* What sums of convolutions share, after space.cl. Of single values, and by a mask: */
#ifdef CLASS_FLOAT
#define ADD1(a, b) ((a) + (b))
#else
#define ADD1(a, b) ((CT)((UT)(a) + (UT)(b)))
#endif
#define SELECT(mask, a, b) ((mask) != (VM)0 ? (a) : (b))

static CT total(VT v) {
  CT lanes[VEC], sum = (CT)0;
  VSTORE(v, lanes);
  for (int j = 0; j < VEC; j++) sum = ADD1(sum, lanes[j]);
  return sum;
}

#ifndef FORWARD
/* The gradient of a weight, of parts of the batch. */
KERNEL sum_splits(PLACE(weight), __global const uchar *work, ulong offset_parts, space s) {
  long all = s.groups * s.out_channels * s.in_channels * s.taps[0] * s.taps[1] * s.taps[2], i = get_global_id(0);
  if (i >= all) return;
  __global const CT *parts = (__global const CT *)(work + offset_parts);
  /* Sums of a span are added to those of the others: rounding errors grow with the longer of the two. */
  CT sum = (CT)0;
  for (long split = 0; split < s.splits;) {
    CT span = (CT)0;
    for (long end = min(split + 32, s.splits); split < end; split++) span = ADD1(span, parts[split * all + i]);
    sum = ADD1(sum, span);
  }
  put_value(POINTER(D, weight) + i, (VT)sum, 1);
}
#endif
