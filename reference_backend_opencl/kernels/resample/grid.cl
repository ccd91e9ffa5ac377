/* Sampling at the points of a grid, after direct.cl, and its gradients. A point has a coordinate for each dim of the image,
 * the last dim's first; images of two dims are one deep. Modes are numbers, so that all are of one program. */
#define CHANNELS n.of[0]
#define SIZE(d) n.of[1 + (d)]
#define POINTS n.of[4]
#define DIMS n.of[5]
#define INTERPOLATION n.of[6]
#define PADDING n.of[7]
#define ALIGN n.of[8]
#define LANES n.of[9]
#define EACH n.of[10] /* channels of a piece of grid_sample */
#define PIXELS (SIZE(0) * SIZE(1) * SIZE(2))

#define NEAREST 1
#define CUBIC 2
#define BORDER 1
#define REFLECTION 2

/* What a point reads along a dim: elements (-1: none, a zero), their weights, and how these change with the coordinate. */
typedef struct {
  int count;
  long at[4];
  CT weight[4], slope[4];
} axis;

/* Mirrored at low and low + span as often as it takes. *slope: 1 or -1. */
static CT mirrored(CT x, CT low, CT span, CT *slope) {
  const CT far = fabs(x - low), extra = fmod(far, span), flips = floor(far / span);
  *slope = x < low ? -1 : 1;
  if (fmod(flips, (CT)2) == 0) return extra + low;
  *slope = -*slope;
  return span - extra + low;
}

/* Brought into the image, unless what lies outside is zero. NaN becomes 0. */
static CT inside(CT x, long size, long padding, long align, CT *slope) {
  *slope = 1;
  if (padding == REFLECTION && align && size == 1) x = 0;
  else if (padding == REFLECTION) x = mirrored(x, align ? (CT)0 : -K(0.5), (CT)(align ? size - 1 : size), slope);
  if (padding != BORDER && padding != REFLECTION) return x;
  if (!(x > 0 && x < (CT)(size - 1))) *slope = 0;
  return fmin(fmax(x, (CT)0), (CT)(size - 1));
}

static long element(CT x, long size) { return x >= 0 && x < (CT)size ? (long)x : -1; }

/* Keys' cubic convolution with -0.75, and its slope. */
static CT cubic(CT x, CT *slope) {
  const CT a = -K(0.75), far = fabs(x);
  if (far < 1) {
    *slope = (3 * (a + 2) * far - 2 * (a + 3)) * far;
    if (x < 0) *slope = -*slope;
    return ((a + 2) * far - (a + 3)) * far * far + 1;
  }
  *slope = a * ((3 * far - 10) * far + 8);
  if (x < 0) *slope = -*slope;
  return ((far - 5) * far + 8) * far * a - 4 * a;
}

/* On a GPU an end that is known keeps the taps in registers, where nothing else asks for one by a number. */
#if LOCAL > 1
#define EACH_TAP(k) _Pragma("unroll") for (int k = 0; k < 4; k++) if (k < a.count)
#else
#define EACH_TAP(k) for (int k = 0; k < a.count; k++)
#endif

static axis axis_of(CT coordinate, long size, long interpolation, long padding, long align) {
  const CT scale = (CT)(align ? size - 1 : size) / 2;
  CT x = (coordinate + 1) * scale - (align ? (CT)0 : K(0.5)), turn = 1, ignored;
  axis a;
  a.count = interpolation == NEAREST ? 1 : interpolation == CUBIC ? 4 : 2;
  if (interpolation != CUBIC) x = inside(x, size, padding, align, &turn);
  const CT low = interpolation == NEAREST ? rint(x) : floor(x);
  EACH_TAP(k) {
    a.weight[k] = a.count == 1 ? (CT)1 : k ? x - low : low + 1 - x;
    a.slope[k] = a.count == 1 ? (CT)0 : (k ? scale : -scale) * turn;
    if (interpolation == CUBIC) {
      a.weight[k] = cubic(x - low + 1 - k, &a.slope[k]);
      a.slope[k] *= scale;
      a.at[k] = element(inside(low - 1 + k, size, padding, align, &ignored), size);
    } else {
      a.at[k] = element(low + k, size);
    }
  }
  return a;
}

/* Of a dim that the image lacks: the one element that there is. */
static axis no_axis(void) {
  axis a;
  a.count = 1;
  a.at[0] = 0;
  a.weight[0] = 1;
  a.slope[0] = 0;
  return a;
}

/* The axes of a point, from its coordinates. */
#define AXES(point)                                                                                       \
  const axis x = axis_of(GET(point), SIZE(2), INTERPOLATION, PADDING, ALIGN);                             \
  const axis y = axis_of(GET((point) + 1), SIZE(1), INTERPOLATION, PADDING, ALIGN);                       \
  const axis z = DIMS == 3 ? axis_of(GET((point) + 2), SIZE(0), INTERPOLATION, PADDING, ALIGN) : no_axis()

/* The pixel of taps i, j, k; -1 where one of them lies outside. */
static long pixel(const axis *z, const axis *y, const axis *x, int i, int j, int k, long height, long width) {
  if (z->at[i] < 0 || y->at[j] < 0 || x->at[k] < 0) return -1;
  return (z->at[i] * height + y->at[j]) * width + x->at[k];
}

/* What a tap adds its weight of. In two dims an element outside is a zero, so that a weight of NaN counts, as with
 * PyTorch; in three it is passed over. */
#define IS_PASSED_OVER(at) ((at) < 0 && DIMS == 3)
#define VALUE(plane, at) ((at) < 0 ? (CT)0 : GET((plane) + (at)))

#if LOCAL > 1
/* Up to two taps along each of two dims, side by side: from channel c to before `end`. The same sums as below. */
#define AT_ONCE 4
static void sample_pairs(__global RAW(D) * to, __global const RAW(D) * from, long points, long pixels, long width,
                         const axis *y, const axis *x, int channels) {
  long at[2][2];
  for (int j = 0; j < 2; j++) {
    for (int k = 0; k < 2; k++)
      at[j][k] = j < y->count && k < x->count && y->at[j] >= 0 && x->at[k] >= 0 ? y->at[j] * width + x->at[k] : -1;
  }
  for (int c = 0; c < channels; c += AT_ONCE) {
#pragma unroll
    for (int p = 0; p < AT_ONCE; p++) {
      if (c + p >= channels) continue;
      __global const RAW(D) *plane = from + (c + p) * pixels;
      CT sum = 0;
#pragma unroll
      for (int j = 0; j < 2; j++) {
        CT line = 0;
#pragma unroll
        for (int k = 0; k < 2; k++) line += k < x->count ? x->weight[k] * VALUE(plane, at[j][k]) : (CT)0;
        if (j < y->count) sum += y->weight[j] * line;
      }
      PUT(to + (c + p) * points, sum);
    }
  }
}
#endif

#if LOCAL == 1
/* Up to two taps along each of two dims, of POINTS_AT_ONCE points: what is found out of a point serves all channels, and
 * results of neighbours lie side by side. Two elements of a row are read at once, of rows that have as many; one that is no
 * tap, or lies outside, does not count. */
#define POINTS_AT_ONCE 64

typedef struct {
  RAW(D) of[2];
} pair;

/* Of each point: where the pairs of both rows begin, whether their elements count, and the weights of elements and rows. */
typedef struct {
  int at[2][POINTS_AT_ONCE], counts[2][2][POINTS_AT_ONCE];
  CT x[2][POINTS_AT_ONCE], y[2][POINTS_AT_ONCE];
} stretch;

static void place_taps(stretch *s, const axis *y, const axis *x, int width, int k) {
  const int taps = x->count > 1 ? 2 : 1, left = (int)x->at[0], right = taps > 1 ? (int)x->at[1] : -1;
  const int turned = left == width - 1 || (left < 0 && right >= 0); /* the first element is the second tap's */
  const int first = left < 0 ? max(right, 0) : min(left, width - 2);
  s->x[turned][k] = x->weight[0];
  s->x[!turned][k] = taps > 1 ? x->weight[1] : (CT)0;
  for (int j = 0; j < 2; j++) {
    const int is_there = j < y->count && y->at[j] >= 0;
    s->y[j][k] = j < y->count ? y->weight[j] : (CT)0;
    s->at[j][k] = is_there ? (int)y->at[j] * width + first : 0;
    s->counts[j][turned][k] = is_there && left >= 0;
    s->counts[j][!turned][k] = is_there && right >= 0;
  }
}

KERNEL grid_sample_plane(PLACE(out), PLACE(in), PLACE(grid), numbers n) {
  const long stretches = (POINTS + POINTS_AT_ONCE - 1) / POINTS_AT_ONCE;
  EACH_UNIT(unit) {
    const long image = unit / stretches, first = unit % stretches * POINTS_AT_ONCE;
    const int count = (int)min((long)POINTS_AT_ONCE, POINTS - first);
    stretch s;
    for (int k = 0; k < POINTS_AT_ONCE; k++) { /* beyond the last, the last again */
      __global const RAW(D) *point = ELEMENTS(grid) + (image * POINTS + first + min(k, count - 1)) * 2;
      const axis x = axis_of(GET(point), SIZE(2), INTERPOLATION, PADDING, ALIGN);
      const axis y = axis_of(GET(point + 1), SIZE(1), INTERPOLATION, PADDING, ALIGN);
      place_taps(&s, &y, &x, (int)SIZE(2), k);
    }
    __global const RAW(D) *plane = ELEMENTS(in) + image * CHANNELS * PIXELS;
    __global RAW(D) *to = ELEMENTS(out) + image * CHANNELS * POINTS + first;
    for (long c = 0; c < CHANNELS; c++, plane += PIXELS, to += POINTS) {
      RAW(D) made[POINTS_AT_ONCE];
      pair pairs[2][POINTS_AT_ONCE];
      /* One by one: where a processor can gather, that takes longer. */
#pragma clang loop vectorize(disable)
      for (int k = 0; k < POINTS_AT_ONCE; k++) {
        pairs[0][k] = *(__global const pair *)(plane + s.at[0][k]);
        pairs[1][k] = *(__global const pair *)(plane + s.at[1][k]);
      }
      for (int k = 0; k < POINTS_AT_ONCE; k++) {
        CT v[2][2];
#pragma unroll
        for (int t = 0; t < 4; t++) {
          const CT value = LOAD(D, __private, pairs[t / 2][k].of + t % 2);
          v[t / 2][t % 2] = s.counts[t / 2][t % 2][k] ? value : (CT)0;
        }
        const CT upper = s.x[0][k] * v[0][0] + s.x[1][k] * v[0][1], lower = s.x[0][k] * v[1][0] + s.x[1][k] * v[1][1];
        STORE(D, __private, made + k, s.y[0][k] * upper + s.y[1][k] * lower);
      }
      for (int k = 0; k < count; k++) to[k] = made[k];
    }
  }
}
#endif

/* A piece is EACH channels of a point of an image, which are sampled one after the other. */
KERNEL grid_sample(PLACE(out), PLACE(in), PLACE(grid), numbers n) {
  const long pieces = (CHANNELS + EACH - 1) / EACH;
  EACH_UNIT(unit) {
    const long piece = divided(unit, POINTS), point = unit - piece * POINTS, image = divided(piece, pieces);
    const long first = (piece - image * pieces) * EACH, last = min(first + EACH, CHANNELS);
    __global const RAW(D) *at_point = ELEMENTS(grid) + (image * POINTS + point) * DIMS;
#if LOCAL > 1
    if (DIMS == 2 && INTERPOLATION != CUBIC) {
      const axis x = axis_of(GET(at_point), SIZE(2), INTERPOLATION, PADDING, ALIGN);
      const axis y = axis_of(GET(at_point + 1), SIZE(1), INTERPOLATION, PADDING, ALIGN);
      sample_pairs(ELEMENTS(out) + (image * CHANNELS + first) * POINTS + point,
                   ELEMENTS(in) + (image * CHANNELS + first) * PIXELS, POINTS, PIXELS, SIZE(2), &y, &x,
                   (int)(last - first));
      continue;
    }
#endif
    AXES(at_point);
    for (long c = first; c < last; c++) {
      __global const RAW(D) *plane = ELEMENTS(in) + (image * CHANNELS + c) * PIXELS;
      CT sum = 0;
      for (int i = 0; i < z.count; i++) {
        for (int j = 0; j < y.count; j++) {
          CT line = 0;
          if (DIMS == 3 && (z.at[i] < 0 || y.at[j] < 0)) continue; /* whatever the line's weight is */
          for (int k = 0; k < x.count; k++) {
            const long at = pixel(&z, &y, &x, i, j, k, SIZE(1), SIZE(2));
            if (!IS_PASSED_OVER(at)) line += x.weight[k] * VALUE(plane, at);
          }
          sum += z.weight[i] * y.weight[j] * line;
        }
      }
      PUT(ELEMENTS(out) + (image * CHANNELS + c) * POINTS + point, sum);
    }
  }
}

/* The gradient of the grid: a piece is a point. The nearest element is the same beside it: no value counts. */
KERNEL grid_slopes(PLACE(out), PLACE(in), PLACE(grid), PLACE(grad), PLACE(work), numbers n) {
  EACH_UNIT(unit) {
    const long image = unit / POINTS, point = unit % POINTS;
    AXES(ELEMENTS(grid) + unit * DIMS);
    CT sums[3] = {0, 0, 0};
    for (long c = 0; c < CHANNELS && INTERPOLATION != NEAREST; c++) {
      __global const RAW(D) *plane = ELEMENTS(in) + (image * CHANNELS + c) * PIXELS;
      const CT g = GET(ELEMENTS(grad) + (image * CHANNELS + c) * POINTS + point);
      for (int i = 0; i < z.count; i++) {
        for (int j = 0; j < y.count; j++) {
          for (int k = 0; k < x.count; k++) {
            const long at = pixel(&z, &y, &x, i, j, k, SIZE(1), SIZE(2));
            if (IS_PASSED_OVER(at)) continue;
            const CT v = VALUE(plane, at) * g;
            sums[0] += v * (z.weight[i] * y.weight[j] * x.slope[k]);
            sums[1] += v * (z.weight[i] * y.slope[j] * x.weight[k]);
            sums[2] += v * (z.slope[i] * y.weight[j] * x.weight[k]);
          }
        }
      }
    }
    for (int d = 0; d < 3; d++)
      if (d < DIMS) PUT(ELEMENTS(out) + unit * DIMS + d, sums[d]);
  }
}

/* The gradient of the image: a piece is a plane's pixels that are one lane's, so that sums are made in order and by one.
 * They are made in `work`, in the type that is added in. */
KERNEL grid_scatter(PLACE(out), PLACE(in), PLACE(grid), PLACE(grad), PLACE(work), numbers n) {
  EACH_UNIT(unit) {
    const long plane = unit / LANES, lane = unit % LANES, image = plane / CHANNELS;
    __global CT *sums = (__global CT *)(work + offset_work) + plane * PIXELS;
    for (long p = lane; p < PIXELS; p += LANES) sums[p] = 0;
    for (long point = 0; point < POINTS; point++) {
      AXES(ELEMENTS(grid) + (image * POINTS + point) * DIMS);
      const CT g = GET(ELEMENTS(grad) + plane * POINTS + point);
      for (int i = 0; i < z.count; i++) {
        for (int j = 0; j < y.count; j++) {
          for (int k = 0; k < x.count; k++) {
            const long at = pixel(&z, &y, &x, i, j, k, SIZE(1), SIZE(2));
            if (at < 0 || (LANES > 1 && at % LANES != lane)) continue;
            sums[at] += g * (z.weight[i] * y.weight[j] * x.weight[k]);
          }
        }
      }
    }
    for (long p = lane; p < PIXELS; p += LANES) PUT(ELEMENTS(out) + plane * PIXELS + p, sums[p]);
  }
}
