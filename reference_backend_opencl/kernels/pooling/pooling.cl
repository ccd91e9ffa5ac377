/* Pooling over planes. A work-item takes `per_item` elements of what is written, row by row. The head defines D, and for
 * the average COUNT_PADDING (0 or 1) and DIVISOR (0: the number of elements). Windows are constants of the head, KERNEL_0
 * (rows), KERNEL_1 and so on, since a division by a constant is none. */
#define WINDOW(dim) ((dim) ? KERNEL_1 : KERNEL_0)
#define STRIDE(dim) ((dim) ? STRIDE_1 : STRIDE_0)
#define PADDING(dim) ((dim) ? PADDING_1 : PADDING_0)
#define DILATION(dim) ((dim) ? DILATION_1 : DILATION_0)
typedef struct {
  long n, c;           /* planes are n x c */
  long in[2], out[2];  /* sizes of the input's planes and of the result's; [0] is rows */
  long in_stride[4], out_stride[4], index_stride[4]; /* n, c, rows, columns */
  long per_item;
} pools;

/* A place in planes of some size, and how one goes on: by counting, since divisions cost more than the pooling. */
typedef struct {
  long n, c, y, x;
} place;

static place place_of(long at, long channels, const long *size) {
  long plane = at / (size[0] * size[1]);
  place p = {plane / channels, plane % channels, at / size[1] % size[0], at % size[1]};
  return p;
}

static place next_place(place p, long channels, const long *size) {
  if (++p.x < size[1]) return p;
  p.x = 0;
  if (++p.y < size[0]) return p;
  p.y = 0;
  if (++p.c < channels) return p;
  p.c = 0;
  p.n++;
  return p;
}

static long plane_start(const long *stride, place p) { return p.n * stride[0] + p.c * stride[1]; }
static long offset_of(const long *stride, place p) {
  return plane_start(stride, p) + p.y * stride[2] + p.x * stride[3];
}

#define EACH_PLACE(size)                                                                                \
  const long first_place = (long)get_global_id(0) * shape.per_item;                                     \
  const long last_place = min(first_place + shape.per_item, shape.n * shape.c * (size)[0] * (size)[1]); \
  place p = place_of(first_place, shape.c, size);                                                       \
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

#if defined(MAX)
/* The first of the largest; a NaN counts as larger than all before it. Where nothing is in reach, the window's corner. */
KERNEL pool(PLACE(out), PLACE(indices), CONST_PLACE(in), pools shape) {
  EACH_PLACE(shape.out) {
    __global const RAW(D) *plane =
        CONST_POINTER(D, in) + plane_start(shape.in_stride, p);
    long y0 = p.y * STRIDE(0) - PADDING(0), x0 = p.x * STRIDE(1) - PADDING(1);
    long y1 = min(y0 + (WINDOW(0) - 1) * DILATION(0) + 1, shape.in[0]);
    long x1 = min(x0 + (WINDOW(1) - 1) * DILATION(1) + 1, shape.in[1]);
    while (y0 < 0) y0 += DILATION(0);
    while (x0 < 0) x0 += DILATION(1);
    CT most = LOWEST;
    long best = y0 * shape.in[1] + x0;
    for (long y = y0; y < y1; y += DILATION(0)) {
      for (long x = x0; x < x1; x += DILATION(1)) {
        CT v = GET(plane + y * shape.in_stride[2] + x * shape.in_stride[3]);
        if (!(v > most) && !IS_NAN(v)) continue;
        most = v;
        best = y * shape.in[1] + x;
      }
    }
    STORE(D, __global, POINTER(D, out) + offset_of(shape.out_stride, p), most);
    ((__global long *)(indices + offset_indices))[offset_of(shape.index_stride, p)] = best;
  }
}

/* Here `in` is the gradient and a plane of `sums` is written, dense. A work-group takes a plane, a work-item those of its
 * places that are its own, so that sums are made in order and by one. */
KERNEL pool_back(PLACE(out), PLACE(work), CONST_PLACE(in), CONST_PLACE(indices), __global long *faults, pools shape) {
  const long size = shape.in[0] * shape.in[1], me = get_local_id(0);
  const long first = (long)get_group_id(0) * shape.per_item, last = min(first + shape.per_item, shape.n * shape.c);
  for (long plane = first; plane < last; plane++) {
    const place p = {plane / shape.c, plane % shape.c, 0, 0};
    __global CT *sums = (__global CT *)(work + offset_work) + plane * size;
    __global const RAW(D) *grad =
        CONST_POINTER(D, in) + plane_start(shape.out_stride, p);
    __global const long *places =
        (__global const long *)(indices + offset_indices) + plane_start(shape.index_stride, p);
    for (long i = me; i < size; i += LOCAL) sums[i] = 0;
    for (long y = 0; y < shape.out[0]; y++) {
      for (long x = 0; x < shape.out[1]; x++) {
        long to = places[y * shape.index_stride[2] + x * shape.index_stride[3]];
        if (to < 0 || to >= size) {
          if (me == 0) REPORT(faults, OP_ID, to, size);
        } else if (LOCAL == 1 || to % LOCAL == me) {
          sums[to] = ADD(sums[to], GET(grad + y * shape.out_stride[2] + x * shape.out_stride[3]));
        }
      }
    }
#ifdef THROUGH_WORK
    __global RAW(D) *result = POINTER(D, out) + plane_start(shape.in_stride, p);
    for (long i = me; i < size; i += LOCAL) {
      STORE(D, __global, result + i / shape.in[1] * shape.in_stride[2] + i % shape.in[1] * shape.in_stride[3], sums[i]);
    }
#endif
  }
}
#else

/* A window's ends along one dimension, cut to the plane; `padded` is its length with padding counted. */
typedef struct {
  long first, end, padded;
} window;

static window window_of(pools shape, int dim, long at) {
  window w;
  w.first = at * STRIDE(dim) - PADDING(dim);
  w.end = min(w.first + WINDOW(dim), shape.in[dim] + PADDING(dim));
  w.padded = w.end - w.first;
  w.first = max(w.first, 0L);
  w.end = min(w.end, shape.in[dim]);
  return w;
}

static long divisor_of(window rows, window columns) {
  long seen = rows.end > rows.first && columns.end > columns.first
                  ? (rows.end - rows.first) * (columns.end - columns.first)
                  : 0;
  return DIVISOR ? DIVISOR : COUNT_PADDING || !seen ? rows.padded * columns.padded : seen;
}

KERNEL pool(PLACE(out), CONST_PLACE(in), pools shape) {
  EACH_PLACE(shape.out) {
    __global const RAW(D) *plane =
        CONST_POINTER(D, in) + plane_start(shape.in_stride, p);
    window rows = window_of(shape, 0, p.y), columns = window_of(shape, 1, p.x);
    CT sum = 0;
    for (long y = rows.first; y < rows.end; y++) {
      CT part = 0;
      for (long x = columns.first; x < columns.end; x++) {
        part = ADD(part, GET(plane + y * shape.in_stride[2] + x * shape.in_stride[3]));
      }
      sum = ADD(sum, part);
    }
    CT mean = SHARE(sum, divisor_of(rows, columns));
    STORE(D, __global, POINTER(D, out) + offset_of(shape.out_stride, p), mean);
  }
}

/* The windows along one dimension that have `at` in them. */
static long first_window(int dim, long at) {
  long from = at + PADDING(dim) - WINDOW(dim);
  return from < 0 ? 0 : from / STRIDE(dim) + 1;
}
static long last_window(pools shape, int dim, long at) {
  return min((at + PADDING(dim)) / STRIDE(dim), shape.out[dim] - 1);
}

/* Here `in` is the gradient, and what is written has the sizes of the input. */
KERNEL pool_back(PLACE(out), CONST_PLACE(in), pools shape) {
  EACH_PLACE(shape.in) {
    __global const RAW(D) *grad =
        CONST_POINTER(D, in) + plane_start(shape.out_stride, p);
    CT sum = 0;
    const long y1 = last_window(shape, 0, p.y), x0 = first_window(1, p.x), x1 = last_window(shape, 1, p.x);
    for (long y = first_window(0, p.y); y <= y1; y++) {
      window rows = window_of(shape, 0, y);
      for (long x = x0; x <= x1; x++) {
        CT g = GET(grad + y * shape.out_stride[2] + x * shape.out_stride[3]);
        sum = ADD(sum, SHARE(g, divisor_of(rows, window_of(shape, 1, x))));
      }
    }
    STORE(D, __global, POINTER(D, out) + offset_of(shape.in_stride, p), sum);
  }
}
#endif
