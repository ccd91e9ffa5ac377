/* Resampling: ops whose every dim is a small linear map of its own, so that an element of the result is a sum over
 * taps: adaptive average pooling, upsampling (nearest, linear, cubic, antialiased), reflection and replication padding;
 * and their gradients, the same maps transposed. X has the gradient X_backward. */
#include <string.h>

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

typedef enum resample_kind {
  ADAPTIVE,
  NEAREST, /* the element at floor(o * scale) */
  EXACT,   /* the element whose middle is nearest: floor((o + 1/2) * scale) */
  LINEAR,
  CUBIC,
  LINEAR_AA, /* antialiased: where the result is smaller, the filter is as much wider */
  CUBIC_AA,
  REFLECT,
  REPLICATE
} resample_kind;

/* The row of an op. */
typedef struct resample_row {
  uint32_t other; /* its gradient, or what it is the gradient of */
  resample_kind kind;
  int8_t dims;
  bool backward;
} resample_row;

static bool is_padding(const resample_row *row) {
  return row->kind == REFLECT || row->kind == REPLICATE;
}
static bool is_upsample(const resample_row *row) {
  return !is_padding(row) && row->kind != ADAPTIVE;
}

/* Where arguments stand in all of them. */
enum {
  INPUT = ARG_upsample_linear1d_self, /* grad_output in the gradients */
  OUTPUT_SIZE = ARG_upsample_linear1d_output_size,
  PADDING = ARG_reflection_pad1d_padding,
  BACK_OUTPUT_SIZE = ARG_upsample_linear1d_backward_output_size,
  BACK_INPUT_SIZE = ARG_upsample_linear1d_backward_input_size,
  BACK_SELF = ARG_reflection_pad1d_backward_self,
  BACK_PADDING = ARG_reflection_pad1d_backward_padding
};

/* --- rules --- */

static graft_status check_dtype(op_call *c, const resample_row *row) {
  graft_dtype dtype = op_tensor(c, INPUT)->dtype;
  if (is_padding(row) && !row->backward && dtype != GRAFT_BOOL) return GRAFT_OK;
  bool bytes = dtype == GRAFT_U8 && (row->kind == NEAREST || row->kind == EXACT);
  bool complex_pad = dt_is_complex(dtype) && is_padding(row);
  if ((dt_is_float(dtype) && !dt_is_float8(dtype)) || bytes || complex_pad) return GRAFT_OK;
  return op_refuse(c, INPUT, bytes ? "a floating dtype or u8" : "a floating dtype");
}

/* Rank and sizes of the side that is resampled. A batch may be missing but for upsampling, and may be empty. */
static graft_status check_input(op_call *c, const resample_row *row, int32_t ndim, const int64_t *sizes) {
  bool batched = ndim == row->dims + 2;
  bool fits = batched || (ndim == row->dims + 1 && !is_upsample(row));
  int32_t first = row->kind == ADAPTIVE ? ndim - row->dims : batched;
  for (int32_t i = first; fits && i < ndim; i++) fits = sizes[i] > 0;
  if (fits) return GRAFT_OK;
  return op_error(c, "the input's sizes do not fit %d spatial dims, none of them empty (%s)", row->dims,
                  op_show_tensors(c));
}

static graft_status check_list(op_call *c, int arg, uint32_t count, int64_t lowest) {
  const graft_value *list = &c->args[arg];
  const char *name = c->schema->args[arg].name;
  if (list->count != count) return op_error(c, "%s has %u numbers; expected %u", name, list->count, count);
  for (uint32_t i = 0; i < count; i++) {
    if (list->as.ints[i] >= lowest) continue;
    return op_error(c, "%s holds %lld; expected at least %lld", name, (long long)list->as.ints[i], (long long)lowest);
  }
  return GRAFT_OK;
}

/* The sizes behind padding: pairs of before and after, the last dim first. */
static graft_status padded_sizes(op_call *c, const resample_row *row, int arg, int32_t ndim, const int64_t *in,
                                 int64_t *out) {
  graft_status status = check_list(c, arg, (uint32_t)row->dims * 2, INT64_MIN);
  for (int32_t d = 0; !status && d < row->dims; d++) {
    const int64_t *pad = c->args[arg].as.ints + 2 * d;
    int64_t size = in[ndim - 1 - d], *to = &out[ndim - 1 - d];
    bool reach = row->kind == REFLECT && (pad[0] >= size || pad[1] >= size);
    if (reach)
      status = op_error(c, "padding %lld, %lld reaches past a dim of %lld", (long long)pad[0], (long long)pad[1],
                        (long long)size);
    *to = size + pad[0] + pad[1];
    if (!status && *to < 1) status = op_error(c, "the result would have a size of %lld", (long long)*to);
  }
  return status;
}

/* The result's sizes from argument `arg`: the output's spatial sizes, or padding. */
static graft_status forward_sizes(op_call *c, const resample_row *row, int arg, int32_t ndim, const int64_t *in,
                                  int64_t *out) {
  memcpy(out, in, (size_t)ndim * sizeof *in);
  if (is_padding(row)) return padded_sizes(c, row, arg, ndim, in, out);
  graft_status status = check_list(c, arg, (uint32_t)row->dims, row->kind == ADAPTIVE ? 0 : 1);
  for (int d = 0; !status && d < row->dims; d++) out[ndim - row->dims + d] = c->args[arg].as.ints[d];
  return status;
}

static void out_sizes(op_call *c, int32_t ndim, const int64_t *sizes) {
  graft_memory_format format = GRAFT_FORMAT_CONTIGUOUS;
  if (c->schema->strides == OPS_SUGGEST) format = tns_suggest_format(op_tensor(c, c->schema->strides_arg));
  c->compute = op_tensor(c, INPUT)->dtype;
  op_out_format(c, OUT, c->compute, ndim, sizes, format);
}

static graft_status infer_forward(op_call *c) {
  const resample_row *row = c->def->row;
  const graft_tensor *self = op_tensor(c, ARG_reflection_pad1d_self);
  int64_t sizes[GRAFT_MAX_DIMS];
  graft_status status = check_dtype(c, row);
  if (!status) status = check_input(c, row, self->ndim, self->sizes);
  if (!status) status = forward_sizes(c, row, OUTPUT_SIZE, self->ndim, self->sizes, sizes);
  if (!status) out_sizes(c, self->ndim, sizes);
  return status;
}

static graft_status check_grad(op_call *c, int32_t ndim, const int64_t *sizes) {
  bool same = tns_has_sizes(op_tensor(c, ARG_reflection_pad1d_backward_grad_output), ndim, sizes);
  return same ? GRAFT_OK : op_error(c, "grad_output has not the shape of the result (%s)", op_show_tensors(c));
}

static graft_status infer_upsample_backward(op_call *c, const resample_row *row) {
  int64_t sizes[GRAFT_MAX_DIMS];
  graft_status status = check_list(c, BACK_INPUT_SIZE, (uint32_t)row->dims + 2, 0);
  const int64_t *in = c->args[BACK_INPUT_SIZE].as.ints;
  if (!status) status = check_input(c, row, row->dims + 2, in);
  if (!status) status = forward_sizes(c, row, BACK_OUTPUT_SIZE, row->dims + 2, in, sizes);
  if (!status) status = check_grad(c, row->dims + 2, sizes);
  if (!status) out_sizes(c, row->dims + 2, in);
  return status;
}

static graft_status infer_backward(op_call *c) {
  const resample_row *row = c->def->row;
  graft_status status = check_dtype(c, row);
  if (status || is_upsample(row)) return status ? status : infer_upsample_backward(c, row);
  const graft_tensor *grad = op_tensor(c, ARG_reflection_pad1d_backward_grad_output), *self = op_tensor(c, BACK_SELF);
  int64_t sizes[GRAFT_MAX_DIMS];
  if (self->dtype != grad->dtype) return op_error(c, "dtypes differ (%s)", op_show_tensors(c));
  status = check_input(c, row, self->ndim, self->sizes);
  memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
  if (!status && is_padding(row)) status = padded_sizes(c, row, BACK_PADDING, self->ndim, self->sizes, sizes);
  for (int32_t i = self->ndim - row->dims; !status && !is_padding(row) && i < self->ndim; i++) {
    if (grad->ndim == self->ndim) sizes[i] = grad->sizes[i];
    if (!sizes[i] || !self->sizes[1]) status = op_error(c, "nothing to average (%s)", op_show_tensors(c));
  }
  if (!status) status = check_grad(c, self->ndim, sizes);
  if (!status) out_sizes(c, self->ndim, self->sizes);
  return status;
}

/* --- taps --- */

enum { MOST_DIMS = 3 };

/* One dim of a call. */
typedef struct dim {
  resample_kind kind;
  int64_t in, out, before; /* before: padding in front */
  double scale;            /* as the caller gave it; 0: from the sizes */
  bool align;
} dim;

/* Taps of result element o: indices[first[o]] to indices[first[o + 1] - 1], with weights. */
typedef struct taps {
  int64_t *first, *indices;
  ref_real *weights;
} taps;

static int64_t clamped(int64_t i, int64_t size) {
  return i < 0 ? 0 : i >= size ? size - 1 : i;
}

/* Indices are found in single precision whatever the dtype, as accelerators do. */
static int64_t nearest(const dim *d, int64_t o) {
  float scale = d->scale > 0 ? (float)(1 / d->scale) : (float)d->in / (float)d->out;
  float at = d->kind == EXACT ? ((float)o + 0.5f) * scale : (float)o * scale;
  return clamped((int64_t)floorf(at), d->in);
}

/* From one element of the result to the next, in elements of the input. */
static double step_of(const dim *d) {
  if (d->align) return d->out > 1 ? (double)(d->in - 1) / (double)(d->out - 1) : 0;
  return d->scale > 0 ? 1 / d->scale : (double)d->in / (double)d->out;
}

/* Where element o of the result lies among those of the input. */
static double position(const dim *d, int64_t o) {
  return d->align ? step_of(d) * (double)o : step_of(d) * ((double)o + 0.5) - 0.5;
}

static int64_t reflected(int64_t i, int64_t size) {
  return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
}

/* The range of an adaptive window. */
static int64_t window_begin(const dim *d, int64_t o) {
  return o * d->in / d->out;
}
static int64_t window_end(const dim *d, int64_t o) {
  return ((o + 1) * d->in + d->out - 1) / d->out;
}

/* Keys' cubic convolution, R. G. Keys, "Cubic convolution interpolation for digital image processing", 1981. */
static ref_real cubic(ref_real x, ref_real a) {
  x = fabsl(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

/* The taps of an antialiased filter; returns how many. weights NULL: no more than that. */
static int64_t antialiased(const dim *d, int64_t o, int64_t *indices, ref_real *weights) {
  bool is_cubic = d->kind == CUBIC_AA;
  double step = step_of(d), wide = step >= 1 ? step : 1, center = step * ((double)o + 0.5),
         reach = wide * (1 + is_cubic);
  double size = (double)d->in;
  int64_t first = (int64_t)fmin(fmax(center - reach + 0.5, 0), size), end = (int64_t)fmin(center + reach + 0.5, size);
  int64_t count = end > first ? end - first : 0;
  ref_real sum = 0;
  for (int64_t k = 0; weights && k < count; k++) {
    ref_real x = ((ref_real)(first + k) - center + 0.5L) / wide;
    indices[k] = first + k;
    weights[k] = is_cubic ? cubic(x, -0.5L) : fmaxl(1 - fabsl(x), 0);
    sum += weights[k];
  }
  for (int64_t k = 0; weights && sum != 0 && k < count; k++) weights[k] /= sum;
  return count;
}

static int64_t count_taps(const dim *d, int64_t o) {
  switch (d->kind) {
    case ADAPTIVE: return window_end(d, o) - window_begin(d, o);
    case LINEAR: return 2;
    case CUBIC: return 4;
    case LINEAR_AA:
    case CUBIC_AA: return antialiased(d, o, NULL, NULL);
    default: return 1;
  }
}

/* Both neighbours count, one of weight 0, too: it makes an infinity NaN. Between equal sizes an element is its own
 * neighbour, whatever the scale, as PyTorch has it. */
static void fill_linear(const dim *d, int64_t o, int64_t *indices, ref_real *weights) {
  const bool same = d->in == d->out;
  double at = same ? (double)o : fmax(position(d, o), 0);
  int64_t low = clamped((int64_t)at, d->in);
  ref_real high = fmin(at - (double)low, 1);
  indices[0] = low;
  indices[1] = low + (!same && low < d->in - 1);
  weights[0] = 1 - high;
  weights[1] = high;
}

static void fill_cubic(const dim *d, int64_t o, int64_t *indices, ref_real *weights) {
  double at = position(d, o), low = fmin(floor(at), (double)(d->in - 1));
  ref_real t = fmin(at - low, 1);
  for (int k = 0; k < 4; k++) {
    indices[k] = clamped((int64_t)low + k - 1, d->in);
    weights[k] = cubic(t + 1 - k, -0.75L);
  }
}

static void fill_taps(const dim *d, int64_t o, int64_t count, int64_t *indices, ref_real *weights) {
  switch (d->kind) {
    case LINEAR: fill_linear(d, o, indices, weights); return;
    case CUBIC: fill_cubic(d, o, indices, weights); return;
    case LINEAR_AA:
    case CUBIC_AA: antialiased(d, o, indices, weights); return;
    default: break;
  }
  for (int64_t k = 0; k < count; k++) {
    weights[k] = 1 / (ref_real)count;
    indices[k] = d->kind == ADAPTIVE    ? window_begin(d, o) + k
                 : d->kind == REFLECT   ? reflected(o - d->before, d->in)
                 : d->kind == REPLICATE ? clamped(o - d->before, d->in)
                                        : nearest(d, o);
  }
}

static void free_taps(taps *t) {
  free(t->first);
  free(t->indices);
  free(t->weights);
}

static bool make_taps(const dim *d, taps *t) {
  int64_t total = 0;
  t->first = ref_zeros(d->out + 1, sizeof *t->first);
  for (int64_t o = 0; t->first && o < d->out; o++) {
    total += count_taps(d, o);
    t->first[o + 1] = total;
  }
  t->indices = ref_zeros(total, sizeof *t->indices);
  t->weights = ref_zeros(total, sizeof *t->weights);
  if (!t->first || !t->indices || !t->weights) return false;
  for (int64_t o = 0; o < d->out; o++) {
    int64_t first = t->first[o];
    fill_taps(d, o, t->first[o + 1] - first, t->indices + first, t->weights + first);
  }
  return true;
}

/* --- a call, from its args struct --- */

typedef struct resampling {
  const resample_row *row;
  const graft_tensor_desc *from, *to; /* from: self or grad_output */
  dim dims[MOST_DIMS];                /* those missing in front have size 1 */
  taps taps[MOST_DIMS];
} resampling;

static double scale_of(const void *args, int d, int dims) {
  static const char *const names[MOST_DIMS] = {"scales_d", "scales_h", "scales_w"};
  const double *scale = NULL;
  ref_field(args, dims == 1 ? "scales" : names[MOST_DIMS - dims + d], &scale, sizeof scale);
  return scale ? *scale : 0;
}

/* PyTorch copies a bicubic gradient between equal sizes: an infinity meets no weights of 0 there. */
static bool copies_gradient(const resampling *r) {
  bool copies = r->row->backward && r->row->kind == CUBIC;
  for (int d = MOST_DIMS - 2; d < MOST_DIMS; d++)
    copies &= r->dims[d].in == r->dims[d].out && (!(r->dims[d].scale > 0) || r->dims[d].scale == 1);
  return copies;
}

static resampling resampling_of(const void *args) {
  resampling r = {.row = op_row(((const graft_args *)args)->op_id)};
  graft_int_list padding = {0};
  uint8_t align = 0;
  ref_field(args, r.row->backward ? "grad_output" : "self", &r.from, sizeof r.from);
  ref_field(args, "out", &r.to, sizeof r.to);
  ref_field(args, "padding", &padding, sizeof padding);
  ref_field(args, "align_corners", &align, sizeof align);
  const graft_tensor_desc *in = r.row->backward ? r.to : r.from, *out = r.row->backward ? r.from : r.to;
  for (int d = 0; d < MOST_DIMS; d++) {
    int own = d - (MOST_DIMS - r.row->dims), at = in->dl.ndim - MOST_DIMS + d;
    r.dims[d] = (dim){.kind = REPLICATE, .in = 1, .out = 1};
    if (own < 0) continue;
    r.dims[d] = (dim){.kind = r.row->kind,
                      .in = in->dl.shape[at],
                      .out = out->dl.shape[at],
                      .scale = scale_of(args, own, r.row->dims),
                      .align = align};
    if (padding.count) r.dims[d].before = padding.items[2 * (MOST_DIMS - 1 - d)];
  }
  if (copies_gradient(&r)) r.dims[MOST_DIMS - 2].kind = r.dims[MOST_DIMS - 1].kind = REPLICATE;
  return r;
}

/* --- kernels --- */

/* Where the taps of result element `at` lie in its plane, and their weights; returns how many. */
static int64_t collect(const resampling *r, int64_t at, int64_t *places, ref_real *weights) {
  int64_t o[MOST_DIMS], count = 0;
  const dim *d = r->dims;
  for (int k = MOST_DIMS - 1; k >= 0; k--) {
    o[k] = at % d[k].out;
    at /= d[k].out;
  }
  const taps *t = r->taps;
  for (int64_t a = t[0].first[o[0]]; a < t[0].first[o[0] + 1]; a++) {
    for (int64_t b = t[1].first[o[1]]; b < t[1].first[o[1] + 1]; b++) {
      for (int64_t c = t[2].first[o[2]]; c < t[2].first[o[2] + 1]; c++) {
        places[count] = (t[0].indices[a] * d[1].in + t[1].indices[b]) * d[2].in + t[2].indices[c];
        weights[count++] = t[0].weights[a] * t[1].weights[b] * t[2].weights[c];
      }
    }
  }
  return count;
}

static int64_t most_taps(const resampling *r) {
  int64_t most = 1;
  for (int d = 0; d < MOST_DIMS; d++) {
    int64_t widest = 0;
    for (int64_t o = 0; o < r->dims[d].out; o++) {
      int64_t count = r->taps[d].first[o + 1] - r->taps[d].first[o];
      widest = count > widest ? count : widest;
    }
    most *= widest;
  }
  return most;
}

/* What a plane's walk needs room for. */
typedef struct room {
  int64_t *places;
  ref_real *weights, *terms;
} room;

/* A sum begins with its first term: it is -0 where all terms are. */
static ref_real sum_of(graft_dtype dtype, const ref_real *terms, int64_t count) {
  bool negative = count > 0;
  for (int64_t k = 0; negative && k < count; k++) negative = terms[k] == 0 && signbit(terms[k]);
  return negative ? -0.0L : ref_sum(dtype, terms, 1, count);
}

static void gather(const resampling *r, graft_dtype dtype, const ref_real *from, ref_real *to, int64_t count,
                   const room *room) {
  for (int64_t at = 0; at < count; at++) {
    int64_t n = collect(r, at, room->places, room->weights);
    for (int64_t k = 0; k < n; k++) room->terms[k] = room->weights[k] * from[room->places[k]];
    to[at] = n == 1 ? room->terms[0] : sum_of(dtype, room->terms, n);
  }
}

static void scatter(const resampling *r, graft_dtype dtype, const ref_real *from, ref_real *to, int64_t count,
                    const room *room) {
  for (int64_t at = 0; at < count; at++) {
    int64_t n = collect(r, at, room->places, room->weights);
    for (int64_t k = 0; k < n; k++) ref_add(dtype, &to[room->places[k]], room->weights[k] * from[at]);
  }
}

static void run(const resampling *r, const ref_array *from, ref_array *to, const room *room) {
  int64_t in = 1, out = 1;
  for (int d = 0; d < MOST_DIMS; d++) in *= r->dims[d].in, out *= r->dims[d].out;
  int64_t from_size = r->row->backward ? out : in, to_size = r->row->backward ? in : out;
  graft_dtype dtype = r->to->dl.dtype;
  for (int64_t p = 0; to_size && p < to->count / to_size; p++) {
    void (*walk)(const resampling *, graft_dtype, const ref_real *, ref_real *, int64_t, const struct room *) =
        r->row->backward ? scatter : gather;
    walk(r, dtype, from->re + p * from_size, to->re + p * to_size, out, room);
    if (to->im) walk(r, dtype, from->im + p * from_size, to->im + p * to_size, out, room);
  }
}

static graft_status ref_resample(const graft_exec *exec, const void *args) {
  resampling r = resampling_of(args);
  REF_OWNED ref_array from = ref_read(r.from), to = ref_new(ref_numel(r.to), from.im != NULL);
  bool ok = from.re && to.re;
  for (int d = 0; d < MOST_DIMS; d++) ok &= make_taps(&r.dims[d], &r.taps[d]);
  size_t most = ok ? (size_t)most_taps(&r) + 1 : 1;
  room room = {calloc(most, sizeof *room.places), calloc(most, sizeof *room.weights), calloc(most, sizeof *room.terms)};
  ok &= room.places && room.weights && room.terms;
  if (ok) {
    run(&r, &from, &to, &room);
    ref_write(r.to, &to);
  }
  free(room.places);
  free(room.weights);
  free(room.terms);
  for (int d = 0; d < MOST_DIMS; d++) free_taps(&r.taps[d]);
  return ok ? GRAFT_OK : ref_no_memory();
}

/* --- gradients: calls of each other --- */

enum { LONGEST = 8 };

static void vjp_forward(op_vjp *v) {
  const resample_row *row = op_row(v->schema->id);
  graft_tensor *self = vjp_arg(v, INPUT);
  graft_value args[LONGEST] = {fx_tensor(v->g[OUT])};
  uint32_t count = 1;
  if (is_upsample(row)) {
    args[count++] = v->args[OUTPUT_SIZE];
    args[count++] = graft_value_ints(self->sizes, (uint32_t)self->ndim);
    for (uint32_t i = OUTPUT_SIZE + 1; i < v->schema->nargs; i++) args[count++] = v->args[i];
  } else {
    args[count++] = fx_tensor(self);
    if (is_padding(row)) args[count++] = v->args[PADDING];
  }
  v->results[INPUT] = fx_one(v->s, row->other, args, count);
}

static void vjp_backward(op_vjp *v) {
  const resample_row *row = op_row(v->schema->id);
  graft_tensor *grad = vjp_arg(v, INPUT);
  graft_value args[LONGEST] = {fx_tensor(v->g[OUT])};
  uint32_t count = 1;
  if (is_upsample(row)) {
    args[count++] = v->args[BACK_OUTPUT_SIZE];
    for (uint32_t i = BACK_INPUT_SIZE + 1; i < v->schema->nargs; i++) args[count++] = v->args[i];
  } else if (is_padding(row)) {
    args[count++] = v->args[BACK_PADDING];
  } else {
    args[count++] = graft_value_ints(grad->sizes + grad->ndim - row->dims, (uint32_t)row->dims);
  }
  if (vjp_needs(v, INPUT)) v->results[INPUT] = fx_one(v->s, row->other, args, count);
  if (!is_upsample(row) && vjp_needs(v, BACK_SELF)) v->results[BACK_SELF] = fx_zeros_like(v->s, v->g[OUT]);
}

#define BOTH(name, kind_, dims_, saved)                                                               \
  {.op_id = GRAFT_OP_##name,                                                                          \
   .roles = "v",                                                                                      \
   .infer = infer_forward,                                                                            \
   .vjp = vjp_forward,                                                                                \
   .saves = saved,                                                                                    \
   .reference = ref_resample,                                                                         \
   .row = &(const resample_row){.other = GRAFT_OP_##name##_BACKWARD, .kind = kind_, .dims = dims_}},  \
  {                                                                                                   \
    .op_id = GRAFT_OP_##name##_BACKWARD, .roles = "vv", .infer = infer_backward, .vjp = vjp_backward, \
    .reference = ref_resample, .row = &(const resample_row) {                                         \
      .other = GRAFT_OP_##name, .kind = kind_, .dims = dims_, .backward = true                        \
    }                                                                                                 \
  }
#define SELF OP_SAVE_ARG(reflection_pad1d, self)

static const op_def defs[] = {
    BOTH(ADAPTIVE_AVG_POOL2D, ADAPTIVE, 2, SELF),  BOTH(ADAPTIVE_AVG_POOL3D, ADAPTIVE, 3, SELF),
    BOTH(UPSAMPLE_NEAREST1D, NEAREST, 1, 0),       BOTH(UPSAMPLE_NEAREST2D, NEAREST, 2, 0),
    BOTH(UPSAMPLE_NEAREST3D, NEAREST, 3, 0),       BOTH(UPSAMPLE_NEAREST_EXACT1D, EXACT, 1, 0),
    BOTH(UPSAMPLE_NEAREST_EXACT2D, EXACT, 2, 0),   BOTH(UPSAMPLE_NEAREST_EXACT3D, EXACT, 3, 0),
    BOTH(UPSAMPLE_LINEAR1D, LINEAR, 1, 0),         BOTH(UPSAMPLE_BILINEAR2D, LINEAR, 2, 0),
    BOTH(UPSAMPLE_TRILINEAR3D, LINEAR, 3, 0),      BOTH(REFLECTION_PAD1D, REFLECT, 1, SELF),
    BOTH(REFLECTION_PAD2D, REFLECT, 2, SELF),      BOTH(REFLECTION_PAD3D, REFLECT, 3, SELF),
    BOTH(REPLICATION_PAD1D, REPLICATE, 1, SELF),   BOTH(REPLICATION_PAD2D, REPLICATE, 2, SELF),
    BOTH(REPLICATION_PAD3D, REPLICATE, 3, SELF),   BOTH(UPSAMPLE_BICUBIC2D, CUBIC, 2, 0),
    BOTH(UPSAMPLE_BILINEAR2D_AA, LINEAR_AA, 2, 0), BOTH(UPSAMPLE_BICUBIC2D_AA, CUBIC_AA, 2, 0),
};
OP_TABLE(resample, defs)
