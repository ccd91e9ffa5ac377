/* nonzero, in three kernels: each chunk counts, one work-item turns counts into places, each chunk writes its indices.
 * The head defines D, RANK and `chunk` as CHUNK; the input is contiguous. */
static int is_set(__global const RAW(D) * at) {
  CT v = LOAD(D, __global, at);
  return NONZERO(v);
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void count(__global const uchar *in, ulong offset_in,
                                                                        __global uchar *work, ulong offset_work,
                                                                        ulong n, ulong chunk) {
  __global const RAW(D) *from = (__global const RAW(D) *)(in + offset_in);
  ulong i = get_global_id(0) * chunk, end = min(i + chunk, n);
  long found = 0;
  if (i >= n) return;
  for (; i < end; i++) found += is_set(from + i);
  ((__global long *)(work + offset_work))[get_global_id(0) + 1] = found;
}

/* places[k] becomes the sum of the counts before chunk k; the last is the total. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void accumulate(__global uchar *work, ulong offset_work,
                                                                         ulong chunks) {
  __global long *places = (__global long *)(work + offset_work);
  long sum = 0;
  places[0] = 0;
  for (ulong k = 1; k <= chunks; k++) {
    sum += places[k];
    places[k] = sum;
  }
}

typedef struct {
  long size[RANK]; /* outermost first */
} shape_t;

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void fill(__global const uchar *in, ulong offset_in,
                                                                       __global const uchar *work, ulong offset_work,
                                                                       ulong n, ulong chunk, __global uchar *out,
                                                                       ulong offset_out, shape_t shape) {
  __global const RAW(D) *from = (__global const RAW(D) *)(in + offset_in);
  ulong i = get_global_id(0) * chunk, end = min(i + chunk, n);
  if (i >= n) return;
  __global long *to = (__global long *)(out + offset_out) +
                      RANK * ((__global const long *)(work + offset_work))[get_global_id(0)];
  for (; i < end; i++) {
    if (!is_set(from + i)) continue;
    long rest = (long)i;
    for (int d = RANK - 1; d >= 0; d--) {
      to[d] = rest % shape.size[d];
      rest /= shape.size[d];
    }
    to += RANK;
  }
}
