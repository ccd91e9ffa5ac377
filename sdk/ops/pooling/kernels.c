/* Reference kernels of pooling: planes of one to three dims, whatever lies in front of them. Tensors are dense here. */
#include "base/error.h"
#include "ops/core/ref.h"
#include "ops/pooling/pooling.h"

typedef struct pooling {
  const pool_row *row;
  const char *name;
  int64_t in[POOL_DIMS], out[POOL_DIMS]; /* sizes of a plane of the input and of the result; dims in front that the op
                                          * lacks are 1 */
  int64_t kernel[POOL_DIMS], stride[POOL_DIMS], padding[POOL_DIMS], dilation[POOL_DIMS];
  bool count_padding;
  const int64_t *divisor;
  const graft_tensor_desc *self, *grad_output, *random_samples, *values, *indices; /* values: the first result */
} pooling;

static void read_list(const pooling *p, const void *args, const char *name, int64_t otherwise, int64_t *to) {
  graft_int_list list = {0};
  ref_field(args, name, &list, sizeof list);
  int front = POOL_DIMS - p->row->dims;
  for (int d = 0; d < POOL_DIMS; d++) to[d] = d < front || !list.count ? otherwise : list.items[d - front];
}

static void read_sizes(const pooling *p, const graft_tensor_desc *t, int64_t *to) {
  for (int d = 0; d < POOL_DIMS; d++)
    to[d] = d < POOL_DIMS - p->row->dims ? 1 : t->dl.shape[t->dl.ndim - POOL_DIMS + d];
}

static pooling pooling_of(const void *args) {
  uint32_t id = ((const graft_args *)args)->op_id;
  pooling p = {.row = op_row(id), .name = op_schema_of(id)->name};
  uint8_t count_padding = 0;
  ref_field(args, "self", &p.self, sizeof p.self);
  ref_field(args, "grad_output", &p.grad_output, sizeof p.grad_output);
  ref_field(args, "random_samples", &p.random_samples, sizeof p.random_samples);
  ref_field(args, "out", &p.values, sizeof p.values);
  ref_field(args, "out0", &p.values, sizeof p.values);
  ref_field(args, "out1", &p.indices, sizeof p.indices);
  ref_field(args, "indices", &p.indices, sizeof p.indices);
  ref_field(args, "divisor_override", &p.divisor, sizeof p.divisor);
  ref_field(args, "count_include_pad", &count_padding, sizeof count_padding);
  p.count_padding = count_padding != 0;
  read_list(&p, args, "kernel_size", 1, p.kernel);
  read_list(&p, args, "stride", 1, p.stride);
  read_list(&p, args, "padding", 0, p.padding);
  read_list(&p, args, "dilation", 1, p.dilation);
  if (p.row->windows == POOL_NONE) {
    p.grad_output = p.self;
    p.self = p.values;
  }
  read_sizes(&p, p.self, p.in);
  read_sizes(&p, p.grad_output ? p.grad_output : p.values, p.out);
  return p;
}

static int64_t plane_size(const int64_t *size) {
  return size[0] * size[1] * size[2];
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* --- windows --- */

/* What a window sees along one dim: from first on, by steps, to before end. `padded` is its length with the padding. */
typedef struct span {
  int64_t first, end, step, padded;
} span;

static span sliding(const pooling *p, int d, int64_t at) {
  span s = {.first = at * p->stride[d] - p->padding[d], .step = p->dilation[d]};
  s.end = s.first + (p->kernel[d] - 1) * s.step + 1;
  s.padded = least(s.end, p->in[d] + p->padding[d]) - s.first;
  s.end = least(s.end, p->in[d]);
  while (s.first < 0) s.first += s.step;
  return s;
}

/* Where a window begins is found in single precision whatever the dtype, as are PyTorch's indices of nearest elements.
 * A sample outside [0, 1) leads nowhere outside the plane. */
static span fractional(const pooling *p, int d, int64_t at, ref_real sample) {
  int64_t last = p->in[d] - p->kernel[d], begin = last;
  if (at < p->out[d] - 1) {
    float step = (float)last / (float)(p->out[d] - 1), s = (float)sample;
    float from = truncf(((float)at + s) * step) - truncf(s * step);
    begin = least((int64_t)fmaxf(fminf(from, (float)last), 0), last);
  }
  return (span){begin, begin + p->kernel[d], 1, p->kernel[d]};
}

/* The window of element i of the result. Samples are [planes, dims]; in two dims the width's stands first. */
static void window_of(const pooling *p, const ref_array *samples, int64_t i, span *w) {
  int64_t plane = i / plane_size(p->out);
  for (int d = POOL_DIMS - 1, front = POOL_DIMS - p->row->dims; d >= 0; i /= p->out[d--]) {
    int64_t at = i % p->out[d], in = p->in[d], out = p->out[d];
    if (d < front) {
      w[d] = (span){0, 1, 1, 1};
    } else if (p->row->windows == POOL_ADAPTIVE) {
      w[d] = (span){at * in / out, ((at + 1) * in + out - 1) / out, 1, 0};
      w[d].padded = w[d].end - w[d].first;
    } else if (p->row->windows == POOL_FRACTIONAL) {
      w[d] = fractional(p, d, at, samples->re[plane * p->row->dims + (p->row->dims == 2 ? 2 - d : d)]);
    } else {
      w[d] = sliding(p, d, at);
    }
  }
}

static int64_t place_of(const pooling *p, int64_t z, int64_t y, int64_t x) {
  return (z * p->in[1] + y) * p->in[2] + x;
}

/* --- maximum --- */

/* The position of the first of the largest; a NaN counts as larger than all before it. Where wide dilation steps over
 * the whole plane, the window's corner, and -infinity. */
static int64_t largest(const pooling *p, const ref_real *plane, const span *w, ref_real *value_of) {
  int64_t best = place_of(p, w[0].first, w[1].first, w[2].first);
  ref_real most = -INFINITY;
  for (int64_t z = w[0].first; z < w[0].end; z += w[0].step) {
    for (int64_t y = w[1].first; y < w[1].end; y += w[1].step) {
      for (int64_t x = w[2].first; x < w[2].end; x += w[2].step) {
        int64_t at = place_of(p, z, y, x);
        if (!(plane[at] > most) && !isnan(plane[at])) continue;
        most = plane[at];
        best = at;
      }
    }
  }
  *value_of = most;
  return best;
}

static graft_status maximum(const pooling *p) {
  REF_OWNED ref_array x = ref_read(p->self), samples = ref_read(p->random_samples),
                      values = ref_new(ref_numel(p->values), false), indices = ref_new(values.count, false);
  if (!(x.re && values.re && indices.re) || (p->random_samples && !samples.re)) return ref_no_memory();
  for (int64_t i = 0; i < values.count; i++) {
    span w[POOL_DIMS];
    window_of(p, &samples, i, w);
    const ref_real *plane = x.re + i / plane_size(p->out) * plane_size(p->in);
    indices.re[i] = (ref_real)largest(p, plane, w, &values.re[i]);
  }
  ref_write(p->values, &values);
  ref_write(p->indices, &indices);
  return GRAFT_OK;
}

/* Where an index is met again, a gradient adds up, and of elements the last one stays. */
static graft_status scattered(const pooling *p) {
  int64_t size = plane_size(p->in), windows = plane_size(p->out);
  graft_dtype dtype = p->values->dl.dtype;
  REF_OWNED ref_array grad = ref_read(p->grad_output), indices = ref_read(p->indices),
                      to = ref_new(ref_numel(p->values), false);
  graft_status status = grad.re && indices.re && to.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < grad.count; i++) {
    int64_t at = (int64_t)indices.re[i];
    if (at < 0 || at >= size) {
      status = err_about(GRAFT_OUT_OF_RANGE, p->name, "index %lld is out of range for a plane of %lld", (long long)at,
                         (long long)size);
      break;
    }
    ref_real *place = &to.re[i / windows * size + at];
    if (p->row->backward)
      ref_add(dtype, place, grad.re[i]);
    else
      *place = grad.re[i];
  }
  if (!status) ref_write(p->values, &to);
  return status;
}

/* --- average --- */

static ref_real divide(graft_dtype dtype, ref_real sum, ref_real divisor) {
  return dt_is_integral(dtype, true) ? truncl(sum / divisor) : sum / divisor;
}

static ref_real divisor_of(const pooling *p, const span *w) {
  int64_t padded = 1, seen = 1;
  for (int d = 0; d < POOL_DIMS; d++) {
    padded *= w[d].padded;
    seen *= w[d].end > w[d].first ? w[d].end - w[d].first : 0;
  }
  return (ref_real)(p->divisor ? *p->divisor : p->count_padding || !seen ? padded : seen);
}

/* The elements of a window, one after the other; returns how many. */
static int64_t collect(const pooling *p, const ref_real *plane, const span *w, ref_real *line) {
  int64_t terms = 0;
  for (int64_t z = w[0].first; z < w[0].end; z++) {
    for (int64_t y = w[1].first; y < w[1].end; y++) {
      for (int64_t x = w[2].first; x < w[2].end; x++) line[terms++] = plane[place_of(p, z, y, x)];
    }
  }
  return terms;
}

static graft_status average(const pooling *p) {
  graft_dtype dtype = p->values->dl.dtype;
  REF_OWNED ref_array x = ref_read(p->self), to = ref_new(ref_numel(p->values), false),
                      line = ref_new(plane_size(p->in), false);
  if (!(x.re && to.re && line.re)) return ref_no_memory();
  for (int64_t i = 0; i < to.count; i++) {
    span w[POOL_DIMS];
    window_of(p, NULL, i, w);
    int64_t terms = collect(p, x.re + i / plane_size(p->out) * plane_size(p->in), w, line.re);
    to.re[i] = terms ? divide(dtype, ref_sum(dtype, line.re, 1, terms), divisor_of(p, w)) : 0;
  }
  ref_write(p->values, &to);
  return GRAFT_OK;
}

static graft_status average_backward(const pooling *p) {
  graft_dtype dtype = p->values->dl.dtype;
  REF_OWNED ref_array grad = ref_read(p->grad_output), to = ref_new(ref_numel(p->values), false);
  if (!(grad.re && to.re)) return ref_no_memory();
  for (int64_t i = 0; i < grad.count; i++) {
    span w[POOL_DIMS];
    window_of(p, NULL, i, w);
    ref_real *plane = to.re + i / plane_size(p->out) * plane_size(p->in);
    ref_real share = divide(dtype, grad.re[i], divisor_of(p, w));
    for (int64_t z = w[0].first; z < w[0].end; z++) {
      for (int64_t y = w[1].first; y < w[1].end; y++) {
        for (int64_t x = w[2].first; x < w[2].end; x++) ref_add(dtype, &plane[place_of(p, z, y, x)], share);
      }
    }
  }
  ref_write(p->values, &to);
  return GRAFT_OK;
}

graft_status pool_kernel(const graft_exec *exec, const void *args) {
  pooling p = pooling_of(args);
  if (p.row->windows == POOL_NONE) return scattered(&p);
  if (p.row->maximum) return p.row->backward ? scattered(&p) : maximum(&p);
  return p.row->backward ? average_backward(&p) : average(&p);
}
