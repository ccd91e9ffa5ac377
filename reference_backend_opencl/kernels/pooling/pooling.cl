/* Pooling over planes of two or three dims; those of two are one deep. A work-item takes `per_item` elements of what is
 * written, row by row. The head defines D, DIMS, MAX for the maximum, and which windows there are: ADAPTIVE, FRACTIONAL,
 * or such as slide; these are constants of the head, KERNEL_0 (planes), KERNEL_1 (rows) and so on, since a division by a
 * constant is none. For the average it also defines COUNT_PADDING (0 or 1) and DIVISOR (0: the number of elements). */
#define BY_DIM(name, dim) ((dim) == 0 ? name##_0 : (dim) == 1 ? name##_1 : name##_2)
#define WINDOW(dim) BY_DIM(KERNEL, dim)
#define STRIDE(dim) BY_DIM(STRIDE, dim)
#define PADDING(dim) BY_DIM(PADDING, dim)
#define DILATION(dim) BY_DIM(DILATION, dim)
typedef struct {
  long n, c;           /* planes are n x c */
  long in[3], out[3];  /* sizes of the input's planes and of the result's; [2] is columns */
  long in_stride[5], out_stride[5], index_stride[5]; /* n, c, planes, rows, columns */
  long per_item;
  long op_id, through_work; /* of the maximum's gradient: sums are made in `work` and written from there */
  float step[4];            /* of fractional windows: from one to the next */
} pools;

/* A place in planes of some size, and how one goes on: by counting, since divisions cost more than the pooling. */
typedef struct {
  long n, c, at[3];
} place;

static long plane_size(const long *size) { return size[0] * size[1] * size[2]; }

static place place_of(long at, long channels, const long *size) {
  long plane = at / plane_size(size);
  place p = {plane / channels, plane % channels, {DIMS < 3 ? 0 : at / (size[1] * size[2]) % size[0], at / size[2] % size[1],
                                                  at % size[2]}};
  return p;
}

/* Place by place: of an initializer with zeros for `at`, rusticl in Mesa 22.3 crashes in making the kernel. */
static place corner_of(long plane, long channels) {
  place p;
  p.n = plane / channels;
  p.c = plane % channels;
  p.at[0] = p.at[1] = p.at[2] = 0;
  return p;
}

static place next_place(place p, long channels, const long *size) {
  if (++p.at[2] < size[2]) return p;
  p.at[2] = 0;
  if (++p.at[1] < size[1]) return p;
  p.at[1] = 0;
  if (DIMS == 3 && ++p.at[0] < size[0]) return p;
  p.at[0] = 0;
  if (++p.c < channels) return p;
  p.c = 0;
  p.n++;
  return p;
}

static long plane_start(const long *stride, place p) { return p.n * stride[0] + p.c * stride[1]; }
static long offset_of(const long *stride, place p) {
  return plane_start(stride, p) + p.at[0] * stride[2] + p.at[1] * stride[3] + p.at[2] * stride[4];
}

#define EACH_PLACE(size)                                                                              \
  const long first_place = (long)get_global_id(0) * shape.per_item;                                   \
  const long last_place = min(first_place + shape.per_item, shape.n * shape.c * plane_size(size));    \
  place p = place_of(first_place, shape.c, size);                                                     \
  for (long at = first_place; at < last_place; at++, p = next_place(p, shape.c, size))

/* One number from memory and back, VEC being 1. */
#define GET(p) LOAD(D, __global, p)

#ifdef CLASS_FLOAT
#define LOWEST (-INFINITY)
#define IS_NAN(v) ((v) != (v))
#define SHARE(v, by) ((v) / (CT)(by))
#else
#ifdef IS_UNSIGNED
#define LOWEST 0
#else
#define LOWEST ((CT)1 << (8 * sizeof(CT) - 1))
#endif
#define IS_NAN(v) 0
#define SHARE(v, by) ((v) / (CT)(by))
#endif

/* What a window sees along one dim, from first to before end; `padded` is its length with padding counted. */
typedef struct {
  long first, end, padded;
} span;

#ifdef FRACTIONAL
/* A sample outside [0, 1) leads nowhere outside the plane. */
static span span_of(pools shape, int dim, long at, float sample) {
  const long last = shape.in[dim] - WINDOW(dim);
  span s = {last, 0, WINDOW(dim)};
  if (at < shape.out[dim] - 1) {
    float from = trunc(((float)at + sample) * shape.step[dim]) - trunc(sample * shape.step[dim]);
    s.first = min((long)fmax(fmin(from, (float)last), 0.0f), last);
  }
  s.end = s.first + WINDOW(dim);
  return s;
}
/* Of two samples the width's stands first. */
#define SAMPLE(dim) \
  ((float)GET(CONST_POINTER(D, samples) + (p.n * shape.c + p.c) * DIMS + (DIMS == 3 ? (dim) : (dim) ? 2 - (dim) : 0)))
#define SAMPLES , CONST_PLACE(samples)
#else
static span span_of(pools shape, int dim, long at, float sample) {
  span s = {0, 1, 1};
  if (DIMS < 3 && dim == 0) return s;
#ifdef ADAPTIVE
  s.first = at * shape.in[dim] / shape.out[dim];
  s.end = ((at + 1) * shape.in[dim] + shape.out[dim] - 1) / shape.out[dim];
  s.padded = s.end - s.first;
#else
  s.first = at * STRIDE(dim) - PADDING(dim);
  s.end = s.first + (WINDOW(dim) - 1) * DILATION(dim) + 1;
  s.padded = min(s.end, shape.in[dim] + PADDING(dim)) - s.first;
  s.end = min(s.end, shape.in[dim]);
  while (s.first < 0) s.first += DILATION(dim);
#endif
  return s;
}
#define SAMPLE(dim) 0
#define SAMPLES
#endif
#define SPAN(dim) span_of(shape, dim, p.at[dim], SAMPLE(dim))

#if defined(MAX)
/* The first of the largest; a NaN counts as larger than all before it. Where nothing is in reach, the window's corner. */
KERNEL pool(PLACE(out), PLACE(indices), CONST_PLACE(in) SAMPLES, pools shape) {
  EACH_PLACE(shape.out) {
    __global const RAW(D) *plane = CONST_POINTER(D, in) + plane_start(shape.in_stride, p);
    const span zs = SPAN(0), ys = SPAN(1), xs = SPAN(2);
    CT most = LOWEST;
    long best = (zs.first * shape.in[1] + ys.first) * shape.in[2] + xs.first;
    for (long z = zs.first; z < zs.end; z += DILATION(0)) {
      for (long y = ys.first; y < ys.end; y += DILATION(1)) {
        for (long x = xs.first; x < xs.end; x += DILATION(2)) {
          CT v = GET(plane + z * shape.in_stride[2] + y * shape.in_stride[3] + x * shape.in_stride[4]);
          if (!(v > most) && !IS_NAN(v)) continue;
          most = v;
          best = (z * shape.in[1] + y) * shape.in[2] + x;
        }
      }
    }
    STORE(D, __global, POINTER(D, out) + offset_of(shape.out_stride, p), most);
    ((__global long *)(indices + offset_indices))[offset_of(shape.index_stride, p)] = best;
  }
}

/* Where element i of a plane lies in it, without a division where the plane's places follow each other evenly. */
static long offset_in_plane(const long *stride, const long *size, long i) {
  if (stride[3] == size[2] * stride[4] && (DIMS < 3 || stride[2] == size[1] * stride[3])) return i * stride[4];
  return i / (size[1] * size[2]) * stride[2] + i / size[2] % size[1] * stride[3] + i % size[2] * stride[4];
}

/* Here `in` is the gradient and a plane of `sums` is written, dense. A work-group takes a plane, a work-item those of its
 * places that are its own, so that sums are made in order and by one. */
KERNEL pool_back(PLACE(out), PLACE(work), CONST_PLACE(in), CONST_PLACE(indices), __global long *faults, pools shape) {
  const long size = plane_size(shape.in), me = get_local_id(0);
  const long first = (long)get_group_id(0) * shape.per_item, last = min(first + shape.per_item, shape.n * shape.c);
#if LOCAL > 1
  __local long targets[LOCAL];
  __local CT grads[LOCAL];
#endif
  for (long plane = first; plane < last; plane++) {
    place p = corner_of(plane, shape.c);
    __global CT *sums = (__global CT *)(work + offset_work) + plane * size;
    for (long i = me; i < size; i += LOCAL) sums[i] = 0;
#if LOCAL > 1
    /* They bring LOCAL elements of the gradient to local memory, and each looks through all of these for its own. */
    const long count = plane_size(shape.out);
    __global const RAW(D) *from = CONST_POINTER(D, in) + plane_start(shape.out_stride, p);
    __global const long *index = (__global const long *)(indices + offset_indices) + plane_start(shape.index_stride, p);
    for (long begin = 0; begin < count; begin += LOCAL) {
      const long i = begin + me;
      targets[me] = -1;
      if (i < count) {
        const long to = index[offset_in_plane(shape.index_stride, shape.out, i)];
        if (to < 0 || to >= size)
          REPORT(faults, shape.op_id, to, size);
        else
          targets[me] = to;
        grads[me] = GET(from + offset_in_plane(shape.out_stride, shape.out, i));
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int k = 0; k < LOCAL; k++) {
        const long to = targets[k];
        if (to >= 0 && ((int)to & (LOCAL - 1)) == (int)me) sums[to] = ADD(sums[to], grads[k]);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
#else
    for (long i = 0; i < plane_size(shape.out); i++, p = next_place(p, LONG_MAX, shape.out)) {
      const long to = ((__global const long *)(indices + offset_indices))[offset_of(shape.index_stride, p)];
      if (to < 0 || to >= size) {
        REPORT(faults, shape.op_id, to, size);
      } else {
        sums[to] = ADD(sums[to], GET(CONST_POINTER(D, in) + offset_of(shape.out_stride, p)));
      }
    }
#endif
    if (!shape.through_work) continue;
    for (long i = me; i < size; i += LOCAL) {
      const place q = place_of(plane * size + i, shape.c, shape.in);
      STORE(D, __global, POINTER(D, out) + offset_of(shape.in_stride, q), sums[i]);
    }
  }
}

/* Here planes of the sizes `in` are written, zeros and the elements of `in` at their indices, by a work-group each. */
KERNEL unpool(PLACE(out), CONST_PLACE(in), CONST_PLACE(indices), __global long *faults, pools shape) {
  const long size = plane_size(shape.in), me = get_local_id(0);
  const long first = (long)get_group_id(0) * shape.per_item, last = min(first + shape.per_item, shape.n * shape.c);
  for (long plane = first; plane < last; plane++) {
    const place p = corner_of(plane, shape.c);
    __global RAW(D) *to = POINTER(D, out) + plane_start(shape.in_stride, p);
    __global const RAW(D) *from = CONST_POINTER(D, in) + plane_start(shape.out_stride, p);
    __global const long *index = (__global const long *)(indices + offset_indices) + plane_start(shape.index_stride, p);
    for (long i = me; i < size; i += LOCAL) to[offset_in_plane(shape.in_stride, shape.in, i)] = 0;
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (long i = me; i < plane_size(shape.out); i += LOCAL) {
      const long at = index[offset_in_plane(shape.index_stride, shape.out, i)];
      if (at < 0 || at >= size) {
        REPORT(faults, shape.op_id, at, size);
      } else {
        to[offset_in_plane(shape.in_stride, shape.in, at)] = from[offset_in_plane(shape.out_stride, shape.out, i)];
      }
    }
  }
}
#else

static long seen_of(span s) { return max(s.end - s.first, 0L); }

static long divisor_of(span planes, span rows, span columns) {
  const long seen = seen_of(planes) * seen_of(rows) * seen_of(columns);
  return DIVISOR ? DIVISOR : COUNT_PADDING || !seen ? planes.padded * rows.padded * columns.padded : seen;
}

/* Sums are of at most CHUNK elements, then of such sums, of rows and of planes, so that rounding errors do not grow with
 * a window's size. */
#define CHUNK 64
static CT row_sum(__global const RAW(D) *row, long stride, span s) {
  CT sum = 0;
  for (long x = s.first; x < s.end;) {
    CT part = 0;
    for (const long stop = min(x + CHUNK, s.end); x < stop; x++) part = ADD(part, GET(row + x * stride));
    sum = ADD(sum, part);
  }
  return sum;
}

KERNEL pool(PLACE(out), CONST_PLACE(in), pools shape) {
  EACH_PLACE(shape.out) {
    __global const RAW(D) *plane = CONST_POINTER(D, in) + plane_start(shape.in_stride, p);
    const span planes = SPAN(0), rows = SPAN(1), columns = SPAN(2);
    CT sum = 0;
    for (long z = planes.first; z < planes.end; z++) {
      CT part = 0;
      for (long y = rows.first; y < rows.end; y++) {
        part = ADD(part, row_sum(plane + z * shape.in_stride[2] + y * shape.in_stride[3], shape.in_stride[4], columns));
      }
      sum = ADD(sum, part);
    }
    STORE(D, __global, POINTER(D, out) + offset_of(shape.out_stride, p), SHARE(sum, divisor_of(planes, rows, columns)));
  }
}

/* The first and the last of the windows along one dim that have `at` in them. */
static long first_window(pools shape, int dim, long at) {
#ifdef ADAPTIVE
  return at * shape.out[dim] / shape.in[dim];
#else
  const long from = at + PADDING(dim) - WINDOW(dim);
  return from < 0 ? 0 : from / STRIDE(dim) + 1;
#endif
}
static long last_window(pools shape, int dim, long at) {
#ifdef ADAPTIVE
  return ((at + 1) * shape.out[dim] + shape.in[dim] - 1) / shape.in[dim] - 1;
#else
  return min((at + PADDING(dim)) / STRIDE(dim), shape.out[dim] - 1);
#endif
}

#ifdef APART
/* Windows that share no element, on a CPU: a work-item takes rows of what is written, `per_item` of them. A gradient is
 * divided once and spread over the elements of its window; what lies in no window gets 0. */
static void spread(__global RAW(D) *to, long stride, long first, long end, CT value) {
  for (long i = first; i < end; i++) STORE(D, __global, to + i * stride, value);
}

/* The windows from x to before `last`, which lie in the row whole, and the gaps behind them. */
#define SPREAD_WHOLE(grad_stride, stride)                                                           \
  for (; x < last; x++) {                                                                           \
    const CT value = ADD((CT)0, SHARE(GET(grad + x * (grad_stride)), by));                          \
    __global RAW(D) *at = to + (x * STRIDE(2) - PADDING(2)) * (stride);                             \
    for (int i = 0; i < STRIDE(2); i++) STORE(D, __global, at + i * (stride), i < WINDOW(2) ? value : (CT)0); \
  }

static void spread_row(__global RAW(D) *to, __global const RAW(D) *grad, span planes, span rows, pools shape) {
  const long grad_stride = shape.out_stride[4], stride = shape.in_stride[4], size = shape.in[2];
  long x = 0;
  while (x < shape.out[2]) {
    const span columns = span_of(shape, 2, x, 0);
    const long from = x * STRIDE(2) - PADDING(2), by = divisor_of(planes, rows, columns);
    const long last = min(shape.out[2], (size - STRIDE(2) + PADDING(2)) / STRIDE(2) + 1);
    if (from >= 0 && from + STRIDE(2) <= size && x < last) {
      if (grad_stride == 1 && stride == 1) {
        SPREAD_WHOLE(1, 1)
      } else {
        SPREAD_WHOLE(grad_stride, stride)
      }
      continue;
    }
    const CT value = ADD((CT)0, SHARE(GET(grad + x * grad_stride), by));
    spread(to, stride, max(from, 0L), min(from + WINDOW(2), size), value);
    spread(to, stride, max(from + WINDOW(2), 0L), min(from + STRIDE(2), size), 0);
    x++;
  }
  spread(to, stride, max(x * STRIDE(2) - PADDING(2), 0L), size, 0);
}

/* The window that an element lies in along one dim; -1: it lies in none. */
static long window_at(pools shape, int dim, long at) {
  const long window = (at + PADDING(dim)) / STRIDE(dim);
  return window < shape.out[dim] && (at + PADDING(dim)) % STRIDE(dim) < WINDOW(dim) ? window : -1;
}

KERNEL pool_back(PLACE(out), CONST_PLACE(in), pools shape) {
  const long count = shape.n * shape.c * shape.in[0] * shape.in[1];
  const long first = (long)get_global_id(0) * shape.per_item, end = min(first + shape.per_item, count);
  for (long row = first; row < end; row++) {
    const long lines[3] = {shape.in[0], shape.in[1], 1};
    const place p = place_of(row, shape.c, lines);
    __global RAW(D) *to = POINTER(D, out) + offset_of(shape.in_stride, p);
    const long z = window_at(shape, 0, p.at[0]), y = window_at(shape, 1, p.at[1]);
    if (z < 0 || y < 0) {
      spread(to, shape.in_stride[4], 0, shape.in[2], 0);
      continue;
    }
    __global const RAW(D) *grad =
        CONST_POINTER(D, in) + plane_start(shape.out_stride, p) + z * shape.out_stride[2] + y * shape.out_stride[3];
    spread_row(to, grad, span_of(shape, 0, z, 0), span_of(shape, 1, y, 0), shape);
  }
}
#else
/* Here `in` is the gradient, and what is written has the sizes of the input. */
KERNEL pool_back(PLACE(out), CONST_PLACE(in), pools shape) {
  EACH_PLACE(shape.in) {
    __global const RAW(D) *grad = CONST_POINTER(D, in) + plane_start(shape.out_stride, p);
    CT sum = 0;
    const long z1 = last_window(shape, 0, p.at[0]), y1 = last_window(shape, 1, p.at[1]);
    const long y0 = first_window(shape, 1, p.at[1]);
    const long x0 = first_window(shape, 2, p.at[2]), x1 = last_window(shape, 2, p.at[2]);
    for (long z = first_window(shape, 0, p.at[0]); z <= z1; z++) {
      const span planes = span_of(shape, 0, z, 0);
      for (long y = y0; y <= y1; y++) {
        const span rows = span_of(shape, 1, y, 0);
        for (long x = x0; x <= x1; x++) {
          CT g = GET(grad + z * shape.out_stride[2] + y * shape.out_stride[3] + x * shape.out_stride[4]);
          sum = ADD(sum, SHARE(g, divisor_of(planes, rows, span_of(shape, 2, x, 0))));
        }
      }
    }
    STORE(D, __global, POINTER(D, out) + offset_of(shape.in_stride, p), sum);
  }
}
#endif
#endif
