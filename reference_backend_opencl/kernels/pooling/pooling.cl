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

/* Numbers of places and of elements; NARROW, if all of the tensors' fit in 32 bits, which a GPU divides in sooner. */
#ifdef NARROW
typedef int number;
typedef uint divisible; /* unsigned, since none is below 0 */
#else
typedef long number;
typedef ulong divisible;
#endif

/* A place in planes of some size, and how one goes on: by counting, since divisions cost more than the pooling. */
typedef struct {
  number n, c, at[3];
} place;

static number plane_size(const long *size) { return (number)(size[0] * size[1] * size[2]); }

static place place_of(number at, long channels, const long *size) {
  const divisible columns = (divisible)size[2], rows = (divisible)size[1], line = (divisible)at / columns;
  const divisible level = line / rows, plane = DIMS < 3 ? level : level / (divisible)size[0];
  const divisible n = plane / (divisible)channels;
  place p;
  p.n = (number)n;
  p.c = (number)(plane - n * (divisible)channels);
  p.at[0] = DIMS < 3 ? 0 : (number)(level - plane * (divisible)size[0]);
  p.at[1] = (number)(line - level * rows);
  p.at[2] = (number)((divisible)at - line * columns);
  return p;
}

/* Place by place: of an initializer with zeros for `at`, rusticl in Mesa 22.3 crashes in making the kernel. */
static place corner_of(number plane, long channels) {
  place p;
  p.n = (number)(plane / channels);
  p.c = (number)(plane % channels);
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

static number plane_start(const long *stride, place p) { return p.n * (number)stride[0] + p.c * (number)stride[1]; }
static number within_plane(const long *stride, number z, number y, number x) {
  return z * (number)stride[2] + y * (number)stride[3] + x * (number)stride[4];
}
static number offset_of(const long *stride, place p) {
  return plane_start(stride, p) + within_plane(stride, p.at[0], p.at[1], p.at[2]);
}

#define EACH_PLACE(size)                                                                              \
  const long first_place = (long)get_global_id(0) * shape.per_item;                                   \
  const long last_place = min(first_place + shape.per_item, shape.n * shape.c * plane_size(size));    \
  place p = place_of((number)first_place, shape.c, size);                                             \
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
  number first, end, padded;
} span;

#ifdef FRACTIONAL
/* A sample outside [0, 1) leads nowhere outside the plane. */
static span span_of(pools shape, int dim, number at, float sample) {
  const number last = (number)shape.in[dim] - WINDOW(dim);
  span s = {last, 0, WINDOW(dim)};
  if (at < shape.out[dim] - 1) {
    float from = trunc(((float)at + sample) * shape.step[dim]) - trunc(sample * shape.step[dim]);
    s.first = min((number)fmax(fmin(from, (float)last), 0.0f), last);
  }
  s.end = s.first + WINDOW(dim);
  return s;
}
/* Of two samples the width's stands first. */
#define SAMPLE(dim) \
  ((float)GET(CONST_POINTER(D, samples) + (p.n * shape.c + p.c) * DIMS + (DIMS == 3 ? (dim) : (dim) ? 2 - (dim) : 0)))
#define SAMPLES , CONST_PLACE(samples)
#else
static span span_of(pools shape, int dim, number at, float sample) {
  span s = {0, 1, 1};
  if (DIMS < 3 && dim == 0) return s;
#ifdef ADAPTIVE
  s.first = (number)(at * shape.in[dim] / shape.out[dim]);
  s.end = (number)(((at + 1) * shape.in[dim] + shape.out[dim] - 1) / shape.out[dim]);
  s.padded = s.end - s.first;
#else
  const number size = (number)shape.in[dim];
  s.first = at * STRIDE(dim) - PADDING(dim);
  s.end = s.first + (WINDOW(dim) - 1) * DILATION(dim) + 1;
  s.padded = min(s.end, size + PADDING(dim)) - s.first;
  s.end = min(s.end, size);
  while (s.first < 0) s.first += DILATION(dim);
#endif
  return s;
}
#define SAMPLE(dim) 0
#define SAMPLES
#endif
#define SPAN(dim) span_of(shape, dim, p.at[dim], SAMPLE(dim))

/* Windows of few elements, all of them known: a GPU asks for these at once, whether or not they lie in the plane. */
#if LOCAL > 1 && !defined(ADAPTIVE) && !defined(FRACTIONAL) && KERNEL_0 * KERNEL_1 * KERNEL_2 <= 32
#define UNROLLED
#define UNROLLED_LOOP _Pragma("unroll")
#define ALONG(dim, i)                                                                                           \
  UNROLLED_LOOP for (number w##i = 0, i = p.at[dim] * STRIDE(dim) - PADDING(dim); w##i < WINDOW(dim); \
                         w##i++, i += DILATION(dim)) if (i >= 0 && i < (number)shape.in[dim])
#else
#define UNROLLED_LOOP
#define ALONG(dim, i) for (number i = SPANNED(dim).first; i < SPANNED(dim).end; i += DILATION(dim))
#define SPANNED(dim) ((dim) == 0 ? zs : (dim) == 1 ? ys : xs)
#endif

#if defined(MAX)
/* The first of the largest; a NaN counts as larger than all before it. Where nothing is in reach, the window's corner. */
KERNEL pool(PLACE(out), PLACE(indices), CONST_PLACE(in) SAMPLES, pools shape) {
  EACH_PLACE(shape.out) {
    __global const RAW(D) *plane = CONST_POINTER(D, in) + plane_start(shape.in_stride, p);
    const span zs = SPAN(0), ys = SPAN(1), xs = SPAN(2);
    const number rows = (number)shape.in[1], columns = (number)shape.in[2];
    CT most = LOWEST;
    number best = (zs.first * rows + ys.first) * columns + xs.first;
    ALONG(0, z) {
      ALONG(1, y) {
        ALONG(2, x) {
          CT v = GET(plane + within_plane(shape.in_stride, z, y, x));
          if (!(v > most) && !IS_NAN(v)) continue;
          most = v;
          best = (z * rows + y) * columns + x;
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

#if LOCAL > 1
#ifndef ADAPTIVE
/* The most windows along a dim that have an element in common, and the first of those that reach to `at`. */
#define MOST_WINDOWS(dim) ((WINDOW(dim) - 1) * DILATION(dim) / STRIDE(dim) + 1)
#define FIRST_REACH(dim, at) \
  (max((number)(at) + PADDING(dim) - (WINDOW(dim) - 1) * DILATION(dim) + STRIDE(dim) - 1, (number)0) / STRIDE(dim))
#define REACHES(dim, window, at) \
  ((window) * STRIDE(dim) - PADDING(dim) <= (at) && (window) < (number)shape.out[dim])

/* Whether the window of place q of the result reaches to the place `to` of the input. */
static bool has_in_reach(pools shape, place q, place to) {
  bool has = true;
  for (int d = DIMS < 3 ? 1 : 0; d < 3; d++) {
    const number from = q.at[d] * STRIDE(d) - PADDING(d);
    has = has && to.at[d] >= from && to.at[d] <= from + (WINDOW(d) - 1) * DILATION(d);
  }
  return has;
}

/* Whether every index of a plane lies in its window, as those of a maximum do. */
static INLINED bool are_in_windows(__global const long *index, pools shape, volatile __local int *strays) {
  const number size = plane_size(shape.in), count = plane_size(shape.out), me = (number)get_local_id(0);
  if (me == 0) *strays = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  bool strays_here = false;
  for (number i = me; i < count; i += LOCAL) {
    const place q = place_of(i, 1, shape.out);
    const long to = index[within_plane(shape.index_stride, q.at[0], q.at[1], q.at[2])];
    if (to < 0 || to >= size || !has_in_reach(shape, q, place_of((number)to, 1, shape.in))) strays_here = true;
  }
  if (strays_here) atomic_xchg(strays, 1); /* at once, also of the same value, work-items may not just store */
  barrier(CLK_LOCAL_MEM_FENCE);
  const bool none = *strays == 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  return none;
}

/* Then an element's gradient comes from the windows that reach to it alone. */
static void gather_plane(__global RAW(D) *to, __global const RAW(D) *from, __global const long *index, pools shape) {
  const number size = plane_size(shape.in);
  for (number i = (number)get_local_id(0); i < size; i += LOCAL) {
    const place q = place_of(i, 1, shape.in);
    const number z0 = DIMS < 3 ? 0 : FIRST_REACH(0, q.at[0]), y0 = FIRST_REACH(1, q.at[1]), x0 = FIRST_REACH(2, q.at[2]);
    CT sum = 0;
    UNROLLED_LOOP for (number z = z0; z < z0 + (DIMS < 3 ? 1 : MOST_WINDOWS(0)); z++) {
      UNROLLED_LOOP for (number y = y0; y < y0 + MOST_WINDOWS(1); y++) {
        UNROLLED_LOOP for (number x = x0; x < x0 + MOST_WINDOWS(2); x++) {
          if (DIMS == 3 && !REACHES(0, z, q.at[0])) continue;
          if (!REACHES(1, y, q.at[1]) || !REACHES(2, x, q.at[2])) continue;
          if (index[within_plane(shape.index_stride, z, y, x)] != i) continue;
          sum = ADD(sum, GET(from + within_plane(shape.out_stride, z, y, x)));
        }
      }
    }
    STORE(D, __global, to + within_plane(shape.in_stride, q.at[0], q.at[1], q.at[2]), sum);
  }
}
#endif

/* They bring LOCAL elements of the gradient to local memory, and each looks through all of these for its own. */
static INLINED void search_plane(__global CT *sums, __global const RAW(D) *from, __global const long *index, pools shape,
                                 __local number *targets, __local CT *grads, __global long *faults) {
  const number size = plane_size(shape.in), count = plane_size(shape.out), me = (number)get_local_id(0);
  for (number i = me; i < size; i += LOCAL) sums[i] = 0;
  for (number begin = 0; begin < count; begin += LOCAL) {
    const number i = begin + me;
    targets[me] = -1;
    if (i < count) {
      const long to = index[offset_in_plane(shape.index_stride, shape.out, i)];
      if (to < 0 || to >= size)
        REPORT(faults, shape.op_id, to, size);
      else
        targets[me] = (number)to;
      grads[me] = GET(from + offset_in_plane(shape.out_stride, shape.out, i));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < LOCAL; k++) {
      const number to = targets[k];
      if (to >= 0 && ((int)to & (LOCAL - 1)) == (int)me) sums[to] = ADD(sums[to], grads[k]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
#endif

/* Here `in` is the gradient and a plane of `sums` is written, dense. A work-group takes a plane, a work-item those of its
 * places that are its own, so that sums are made in order and by one. */
KERNEL pool_back(PLACE(out), PLACE(work), CONST_PLACE(in), CONST_PLACE(indices), __global long *faults, pools shape) {
  const long size = plane_size(shape.in), me = get_local_id(0);
  const long first = (long)get_group_id(0) * shape.per_item, last = min(first + shape.per_item, shape.n * shape.c);
#if LOCAL > 1
  GROUP_ARRAY(number, targets);
  GROUP_ARRAY(CT, grads);
#ifndef ADAPTIVE
  __local int strays;
#endif
#endif
  for (long plane = first; plane < last; plane++) {
    place p = corner_of((number)plane, shape.c);
    __global CT *sums = (__global CT *)(work + offset_work) + plane * size;
    __global const RAW(D) *from = CONST_POINTER(D, in) + plane_start(shape.out_stride, p);
    __global const long *index = (__global const long *)(indices + offset_indices) + plane_start(shape.index_stride, p);
#if LOCAL > 1
#ifndef ADAPTIVE
    if (are_in_windows(index, shape, &strays)) {
      gather_plane(POINTER(D, out) + plane_start(shape.in_stride, p), from, index, shape);
      continue;
    }
#endif
    search_plane(sums, from, index, shape, targets, grads, faults);
#else
    for (long i = me; i < size; i += LOCAL) sums[i] = 0;
    for (long i = 0; i < plane_size(shape.out); i++, p = next_place(p, LONG_MAX, shape.out)) {
      const long to = index[within_plane(shape.index_stride, p.at[0], p.at[1], p.at[2])];
      if (to < 0 || to >= size) {
        REPORT(faults, shape.op_id, to, size);
      } else {
        sums[to] = ADD(sums[to], GET(from + within_plane(shape.out_stride, p.at[0], p.at[1], p.at[2])));
      }
    }
#endif
    if (!shape.through_work) continue;
    for (long i = me; i < size; i += LOCAL) {
      const place q = place_of((number)(plane * size + i), shape.c, shape.in);
      STORE(D, __global, POINTER(D, out) + offset_of(shape.in_stride, q), sums[i]);
    }
  }
}

/* Here planes of the sizes `in` are written, zeros and the elements of `in` at their indices, by a work-group each. */
KERNEL unpool(PLACE(out), CONST_PLACE(in), CONST_PLACE(indices), __global long *faults, pools shape) {
  const long size = plane_size(shape.in), me = get_local_id(0);
  const long first = (long)get_group_id(0) * shape.per_item, last = min(first + shape.per_item, shape.n * shape.c);
  for (long plane = first; plane < last; plane++) {
    const place p = corner_of((number)plane, shape.c);
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

static long seen_of(span s) { return max((long)(s.end - s.first), 0L); }

static long divisor_of(span planes, span rows, span columns) {
  const long seen = seen_of(planes) * seen_of(rows) * seen_of(columns);
  return DIVISOR ? DIVISOR : COUNT_PADDING || !seen ? planes.padded * rows.padded * columns.padded : seen;
}

/* Sums are of at most CHUNK elements, then of such sums, of rows and of planes, so that rounding errors do not grow with
 * a window's size. */
#define CHUNK 64
static CT row_sum(__global const RAW(D) *row, number stride, span s) {
  CT sum = 0;
  for (number x = s.first; x < s.end;) {
    CT part = 0;
    for (const number stop = min(x + (number)CHUNK, s.end); x < stop; x++) part = ADD(part, GET(row + x * stride));
    sum = ADD(sum, part);
  }
  return sum;
}

KERNEL pool(PLACE(out), CONST_PLACE(in), pools shape) {
  EACH_PLACE(shape.out) {
    __global const RAW(D) *plane = CONST_POINTER(D, in) + plane_start(shape.in_stride, p);
    const span planes = SPAN(0), rows = SPAN(1), columns = SPAN(2);
    CT sum = 0;
#ifdef UNROLLED
    ALONG(0, z) {
      CT part = 0;
      ALONG(1, y) {
        CT line = 0;
        ALONG(2, x) line = ADD(line, GET(plane + within_plane(shape.in_stride, z, y, x)));
        part = ADD(part, line);
      }
      sum = ADD(sum, part);
    }
#else
    for (number z = planes.first; z < planes.end; z++) {
      CT part = 0;
      for (number y = rows.first; y < rows.end; y++) {
        part = ADD(part, row_sum(plane + within_plane(shape.in_stride, z, y, 0), (number)shape.in_stride[4], columns));
      }
      sum = ADD(sum, part);
    }
#endif
    STORE(D, __global, POINTER(D, out) + offset_of(shape.out_stride, p), SHARE(sum, divisor_of(planes, rows, columns)));
  }
}

/* The first and the last of the windows along one dim that have `at` in them. */
static number first_window(pools shape, int dim, number at) {
#ifdef ADAPTIVE
  return (number)(at * shape.out[dim] / shape.in[dim]);
#else
  const number from = at + PADDING(dim) - WINDOW(dim);
  return from < 0 ? 0 : from / STRIDE(dim) + 1;
#endif
}
static number last_window(pools shape, int dim, number at) {
#ifdef ADAPTIVE
  return (number)(((at + 1) * shape.out[dim] + shape.in[dim] - 1) / shape.in[dim] - 1);
#else
  return min((at + PADDING(dim)) / STRIDE(dim), (number)shape.out[dim] - 1);
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
    const number z1 = last_window(shape, 0, p.at[0]), y1 = last_window(shape, 1, p.at[1]);
    const number y0 = first_window(shape, 1, p.at[1]);
    const number x0 = first_window(shape, 2, p.at[2]), x1 = last_window(shape, 2, p.at[2]);
    for (number z = first_window(shape, 0, p.at[0]); z <= z1; z++) {
      const span planes = span_of(shape, 0, z, 0);
      for (number y = y0; y <= y1; y++) {
        const span rows = span_of(shape, 1, y, 0);
        for (number x = x0; x <= x1; x++) {
          CT g = GET(grad + within_plane(shape.out_stride, z, y, x));
          sum = ADD(sum, SHARE(g, divisor_of(planes, rows, span_of(shape, 2, x, 0))));
        }
      }
    }
    STORE(D, __global, POINTER(D, out) + offset_of(shape.in_stride, p), sum);
  }
}
#endif
#endif
