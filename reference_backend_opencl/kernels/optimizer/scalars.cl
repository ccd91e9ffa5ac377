/* Numbers of an optimizer step. With NORMS, after lists.cl: the operands are a tensor and its norm, and the
 * index space numbers chunks of the tensors. The head defines D, MAP(v), JOIN(a, b), NOTHING, FINISH(v) and P, the
 * order. */
#ifdef NORMS
#define SMALLER(a, b) (((a) < (b)) | ((a) != (a)) ? (a) : (b))

typedef struct {
  long begin, end, span; /* chunks of the launch; how many a work-item takes */
  long chunk;            /* elements */
  long tensors;
} norm_space;

static CT joined(CT a, CT b) { return JOIN(a, b); }

/* The sum, or the extremum, of what MAP gives over elements i ... end - 1. */
static CT norm_part(__global const RAW(D) *from, long i, long end) {
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
  return lanes[0];
}

KERNEL norm_parts(PARAMETERS, PLACE(work), norm_space space) {
  long at = space.begin + (long)get_global_id(0) * space.span, stop = min(at + space.span, space.end);
  __global const long *first = FIRST(table);
  int tensors = (int)space.tensors;
  for (; at < stop; at++) {
    /* Looked up for each chunk: a loop that steps on to the next tensor makes llvmpipe leave those behind it too early. */
    const int tensor = tensor_at(first, tensors, at);
    __global const long *record = RECORD(first, tensors, tensor);
    __global uchar *p;
    LOCATE(p, record, 0)
    long i = (at - first[tensor]) * space.chunk;
    ((__global CT *)(work + offset_work))[at] =
        norm_part((__global const RAW(D) *)p, i, min(i + space.chunk, SIZE(record)));
  }
}

KERNEL norm_whole(PARAMETERS, CONST_PLACE(work), norm_space space) {
  long from = (long)get_global_id(0) * space.span, stop = min(from + space.span, space.tensors);
  __global const long *first = FIRST(table);
  for (int tensor = (int)from; tensor < stop; tensor++) {
    __global uchar *p;
    LOCATE(p, RECORD(first, space.tensors, tensor), 1)
    CT v = (CT)(NOTHING);
    for (long k = first[tensor]; k < first[tensor + 1]; k++) {
      v = joined(v, ((__global const CT *)(work + offset_work))[k]);
    }
    v = FINISH(v);
    RAW(D) lanes[VEC];
    STORE(D, __private, lanes, (VT)v);
    *(__global RAW(D) *)p = lanes[0];
  }
}
#endif

/* x times a factor, which a device without f64 gets in two parts: rounded once. */
static float scaled(float x, CT factor, CT rest) {
  CT product = (CT)x * factor;
  return (float)(isfinite(product) ? product + fma((CT)x, rest, fma((CT)x, factor, -product)) : product);
}

/* Less after a step that was skipped, more after `interval` that were not, unless that is too much. */
KERNEL_OF(1, 1) update_scale(
    PLACE(out), PLACE(tracker_out), CONST_PLACE(scale), CONST_PLACE(tracker), CONST_PLACE(found), CT growth,
    CT growth_rest, CT backoff, CT backoff_rest, long interval) {
  float now = *(__global const float *)(scale + offset_scale);
  int steps = *(__global const int *)(tracker + offset_tracker) + 1;
  if (*(__global const float *)(found + offset_found) != 0) {
    now = scaled(now, backoff, backoff_rest);
    steps = 0;
  } else if (steps == interval) {
    float grown = scaled(now, growth, growth_rest);
    now = isfinite(grown) ? grown : now;
    steps = 0;
  }
  *(__global float *)(out + offset_out) = now;
  *(__global int *)(tracker_out + offset_tracker_out) = steps;
}
