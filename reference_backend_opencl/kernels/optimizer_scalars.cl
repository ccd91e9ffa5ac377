/* Numbers of an optimizer step. With NORMS the head defines D, GROUP, PARAMETERS (the buffers), CHOOSE (a `case` for each
 * tensor, which sets p), MAP(v), JOIN(a, b), NOTHING, FINISH(v) and P, the order. */
#ifdef NORMS
#define LARGER(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))
#define SMALLER(a, b) (((a) < (b)) | ((a) != (a)) ? (a) : (b))

typedef struct {
  long first[GROUP]; /* chunk each tensor begins with */
  long size[GROUP];  /* elements */
  long chunk, chunks, tensors;
} norm_space;

static CT joined(CT a, CT b) { return JOIN(a, b); }

/* The sum, or the extremum, of what MAP gives over one chunk. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void norm_parts(PARAMETERS, __global uchar *work,
                                                                            ulong offset_work, norm_space space) {
  long at = get_global_id(0);
  if (at >= space.chunks) return;
  int tensor = 0;
  for (int k = 1; k < GROUP; k++) tensor = space.size[k] && at >= space.first[k] ? k : tensor;
  __global uchar *p = 0;
  switch (tensor) { CHOOSE }
  __global const RAW(D) *from = (__global const RAW(D) *)p;
  long i = (at - space.first[tensor]) * space.chunk, end = min(i + space.chunk, space.size[tensor]);
  VT total = (VT)(NOTHING);
  for (; i + VEC <= end; i += VEC) {
    VT v = LOAD(D, __global, from + i);
    v = MAP(v);
    total = JOIN(total, v);
  }
  if (i < end) {
    RAW(D) lanes[VEC];
    CT values[VEC];
    for (int j = 0; j < VEC; j++) lanes[j] = from[i + j < end ? i + j : i];
    VT v = LOAD(D, __private, lanes);
    VSTORE(MAP(v), values);
    for (int j = 0; j < VEC; j++) values[j] = i + j < end ? values[j] : (CT)(NOTHING);
    total = JOIN(total, VLOAD(values));
  }
  CT lanes[VEC];
  VSTORE(total, lanes);
  for (int step = VEC / 2; step > 0; step /= 2) {
    for (int j = 0; j < step; j++) lanes[j] = joined(lanes[j], lanes[j + step]);
  }
  ((__global CT *)(work + offset_work))[at] = lanes[0];
}

__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void norm_whole(PARAMETERS, __global const uchar *work,
                                                                            ulong offset_work, norm_space space) {
  int tensor = (int)get_global_id(0);
  if (tensor >= space.tensors) return;
  __global uchar *p = 0;
  switch (tensor) { CHOOSE }
  long last = space.first[tensor] + (space.size[tensor] + space.chunk - 1) / space.chunk;
  CT v = (CT)(NOTHING);
  for (long k = space.first[tensor]; k < last; k++) v = joined(v, ((__global const CT *)(work + offset_work))[k]);
  v = FINISH(v);
  RAW(D) lanes[VEC];
  STORE(D, __private, lanes, (VT)v);
  *(__global RAW(D) *)p = lanes[0];
}
#endif

/* Less after a step that was skipped, more after `interval` that were not, unless that is too much. */
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void update_scale(
    __global uchar *out, ulong offset_out, __global uchar *tracker_out, ulong offset_tracker_out,
    __global const uchar *scale, ulong offset_scale, __global const uchar *tracker, ulong offset_tracker,
    __global const uchar *found, ulong offset_found, CT growth, CT backoff, long interval) {
  float now = *(__global const float *)(scale + offset_scale);
  int steps = *(__global const int *)(tracker + offset_tracker) + 1;
  if (*(__global const float *)(found + offset_found) != 0) {
    now = (float)((CT)now * backoff);
    steps = 0;
  } else if (steps == interval) {
    float grown = (float)((CT)now * growth);
    now = isfinite(grown) ? grown : now;
    steps = 0;
  }
  *(__global float *)(out + offset_out) = now;
  *(__global int *)(tracker_out + offset_tracker_out) = steps;
}
