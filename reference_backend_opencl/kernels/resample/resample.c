/* Adaptive average pooling, upsampling, reflection and replication padding, and their gradients: maps that are a table
 * for each dim. The tables are made here; a long dim's are large, so they are kept on the device for as long as there
 * is room (table.c), and made again after that. */
#include <math.h>
#include <stdlib.h>

#include "runtime/ocl.h"

typedef enum kind { ADAPTIVE, NEAREST, EXACT, LINEAR, CUBIC, LINEAR_AA, CUBIC_AA, REFLECT, REPLICATE } kind;

enum { DIMS = 3, AT_ONCE = 8 /* as resample.cl has it */ };

/* How an op takes what lies between elements, or beyond them, and along how many of the last dims. */
typedef struct recipe {
  kind kind;
  int dims;
} recipe;

enum { SELF, GRAD_OUTPUT, OUT, PADDING, ALIGN_CORNERS, SCALES, SCALES_D, SCALES_H, SCALES_W, READS };
static const char *const reads[] = {[SELF] = "self",         [GRAD_OUTPUT] = "grad_output",     [OUT] = "out",
                                    [PADDING] = "padding",   [ALIGN_CORNERS] = "align_corners", [SCALES] = "scales",
                                    [SCALES_D] = "scales_d", [SCALES_H] = "scales_h",           [SCALES_W] = "scales_w",
                                    [READS] = NULL};

typedef struct operands {
  kind kind;
  int dims;
  bool backward, align;
  const graft_tensor_desc *from, *to;
  const int64_t *padding;
  double scales[DIMS]; /* of the last dims; 0: from the sizes */
} operands;

/* ---- Taps ---- */

/* All fields are of one size: what a table is made from is also its key. */
typedef struct dim {
  int64_t kind, in, out, before, align;
  double scale;
} dim;

typedef struct source {
  char family[8]; /* so that no other family has this key */
  int64_t backward;
  const ocl_dtype *dtype;
  dim dims[DIMS];
} source;

typedef struct tap {
  int64_t in, out;
  double weight;
} tap;

/* The taps of all dims, in order of the results' places. */
typedef struct table {
  tap *taps;
  int64_t count, capacity;
  bool failed;
} table;

static void add_tap(table *t, int64_t out, int64_t in, double weight) {
  if (t->count == t->capacity) {
    t->capacity = t->capacity ? 2 * t->capacity : 256;
    tap *grown = realloc(t->taps, (size_t)t->capacity * sizeof *grown);
    t->failed = t->failed || !grown;
    if (!grown)
      t->capacity = t->count;
    else
      t->taps = grown;
  }
  if (!t->failed) t->taps[t->count++] = (tap){in, out, weight};
}

static int64_t clamp(int64_t i, int64_t size) {
  return i < 0 ? 0 : i >= size ? size - 1 : i;
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

/* A neighbour of weight 0 is one, too: it makes an infinity NaN. Between equal sizes an element is its own neighbour,
 * whatever the scale. */
static void add_linear(table *t, const dim *d, int64_t o) {
  const bool same = d->in == d->out;
  double at = same ? (double)o : fmax(position(d, o), 0);
  int64_t low = clamp((int64_t)at, d->in);
  double high = fmin(at - (double)low, 1);
  add_tap(t, o, low, 1 - high);
  add_tap(t, o, low + (!same && low < d->in - 1), high);
}

/* Keys' cubic convolution. */
static double cubic(double x, double a) {
  x = fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

static void add_cubic(table *t, const dim *d, int64_t o) {
  double at = position(d, o), low = fmin(floor(at), (double)(d->in - 1)), between = fmin(at - low, 1);
  for (int k = 0; k < 4; k++) add_tap(t, o, clamp((int64_t)low + k - 1, d->in), cubic(between + 1 - k, -0.75));
}

/* A filter that is wider where the result is smaller than the input; its weights sum to 1. */
static void add_antialiased(table *t, const dim *d, int64_t o) {
  double step = step_of(d), wide = fmax(step, 1), center = step * ((double)o + 0.5);
  double reach = d->kind == CUBIC_AA ? 2 * wide : wide, sum = 0;
  double size = (double)d->in;
  int64_t first = (int64_t)fmin(fmax(center - reach + 0.5, 0), size), end = (int64_t)fmin(center + reach + 0.5, size);
  int64_t begin = t->count;
  for (int64_t i = first; i < end; i++) {
    double x = ((double)i - center + 0.5) / wide, weight = d->kind == CUBIC_AA ? cubic(x, -0.5) : fmax(1 - fabs(x), 0);
    add_tap(t, o, i, weight);
    sum += weight;
  }
  for (int64_t k = begin; sum != 0 && k < t->count; k++) t->taps[k].weight /= sum;
}

/* Indices of nearest elements are found in single precision whatever the dtype. */
static int64_t nearest(const dim *d, int64_t o) {
  float step = d->scale > 0 ? (float)(1 / d->scale) : (float)d->in / (float)d->out;
  float at = d->kind == EXACT ? ((float)o + 0.5f) * step : (float)o * step;
  return clamp((int64_t)floorf(at), d->in);
}

static void add_taps(table *t, const dim *d, int64_t o) {
  int64_t i = o - d->before;
  switch ((kind)d->kind) {
    case ADAPTIVE: {
      int64_t begin = o * d->in / d->out, end = ((o + 1) * d->in + d->out - 1) / d->out;
      for (int64_t k = begin; k < end; k++) add_tap(t, o, k, 1 / (double)(end - begin));
      return;
    }
    case NEAREST:
    case EXACT: add_tap(t, o, nearest(d, o), 1); return;
    case LINEAR: add_linear(t, d, o); return;
    case CUBIC: add_cubic(t, d, o); return;
    case LINEAR_AA:
    case CUBIC_AA: add_antialiased(t, d, o); return;
    case REFLECT: add_tap(t, o, i < 0 ? -i : i >= d->in ? 2 * (d->in - 1) - i : i, 1); return;
    case REPLICATE: add_tap(t, o, clamp(i, d->in), 1); return;
  }
}

/* A bicubic gradient between equal sizes is copied, as PyTorch has it: an infinity meets no weights of 0 there. */
static bool copies_gradient(const source *s) {
  bool copies = s->backward && s->dims[DIMS - 1].kind == CUBIC;
  for (int d = DIMS - 2; d < DIMS; d++)
    copies &= s->dims[d].in == s->dims[d].out && (!(s->dims[d].scale > 0) || s->dims[d].scale == 1);
  return copies;
}

static dim dim_of(const operands *call, int at) {
  const graft_dl_tensor *in = &(call->backward ? call->to : call->from)->dl,
                        *out = &(call->backward ? call->from : call->to)->dl;
  if (at < DIMS - call->dims) return (dim){.kind = REPLICATE, .in = 1, .out = 1};
  dim d = {.kind = call->kind,
           .in = in->shape[in->ndim - DIMS + at],
           .out = out->shape[in->ndim - DIMS + at],
           .scale = call->scales[at],
           .align = call->align};
  if (call->padding) d.before = call->padding[2 * (DIMS - 1 - at)];
  return d;
}

/* ---- The case ---- */

/* As resample.cl has them, and what the kernel walks with. */
typedef struct numbers {
  int64_t from[DIMS], to[DIMS], planes, each, moves, rest[59 - 2 * DIMS], per_item, units;
} numbers;

typedef struct memo {
  ocl_kernel kernel;
  source source;
} memo;

/* A dim's entries, which are those from `begin` on: by what is written, in order of what is read. */
static void lay_out(const table *t, int64_t begin, int64_t places, bool backward, int *first, int *indices,
                    double *weights) {
  for (int64_t i = 0; i <= places; i++) first[i] = 0;
  first[0] = (int)begin;
  for (int64_t k = begin; k < t->count; k++) first[(backward ? t->taps[k].in : t->taps[k].out) + 1]++;
  for (int64_t i = 0; i < places; i++) first[i + 1] += first[i];
  for (int64_t k = begin; k < t->count; k++) {
    const tap *tap = &t->taps[k];
    int at = first[backward ? tap->in : tap->out]++;
    indices[at] = (int)(backward ? tap->out : tap->in);
    weights[at] = tap->weight;
  }
  for (int64_t i = places; i > 0; i--) first[i] = first[i - 1];
  first[0] = (int)begin;
}

static size_t weight_bytes(const ocl_dtype *dtype) {
  return dtype->code == GRAFT_F64 || dtype->code == GRAFT_C128 || dtype->code == GRAFT_I64 || dtype->code == GRAFT_U64
             ? 8
             : 4;
}

static const char *weight_type(const ocl_dtype *dtype) {
  bool wide = weight_bytes(dtype) == 8;
  if (dtype->class == OCL_CLASS_FLOAT || dtype->class == OCL_CLASS_COMPLEX) return wide ? "double" : "float";
  return dtype->compute;
}

static void put_weight(const ocl_dtype *dtype, double weight, char *to) {
  bool wide = weight_bytes(dtype) == 8;
  if (dtype->class == OCL_CLASS_FLOAT || dtype->class == OCL_CLASS_COMPLEX) {
    if (wide)
      *(double *)(void *)to = weight;
    else
      *(float *)(void *)to = (float)weight;
  } else if (wide) {
    *(int64_t *)(void *)to = 1;
  } else {
    *(int32_t *)(void *)to = 1;
  }
}

static int64_t places_of(const source *s, int d) {
  return s->backward ? s->dims[d].in : s->dims[d].out;
}

/* `first` of all dims, the indices, and from an even place on, as weights may have 8 bytes, the weights. */
static graft_status fill_table(const source *s, const table *t, const int64_t begin[DIMS + 1], int *ints,
                               int64_t firsts, char *converted) {
  double *weights = calloc((size_t)t->count + 1, sizeof *weights);
  if (!weights) return GRAFT_OUT_OF_MEMORY;
  int *first = ints;
  for (int d = 0; d < DIMS; d++) {
    table part = *t;
    part.count = begin[d + 1];
    lay_out(&part, begin[d], places_of(s, d), s->backward, first, ints + firsts, weights);
    first += places_of(s, d) + 1;
  }
  for (size_t k = 0; k < (size_t)t->count; k++)
    put_weight(s->dtype, weights[k], converted + k * weight_bytes(s->dtype));
  free(weights);
  return GRAFT_OK;
}

static graft_status make_table(const void *of, void **content, size_t *bytes) {
  const source *s = of;
  table t = {0};
  int64_t begin[DIMS + 1] = {0}, firsts = 0;
  for (int d = 0; d < DIMS; d++) {
    for (int64_t o = 0; o < s->dims[d].out; o++) add_taps(&t, &s->dims[d], o);
    begin[d + 1] = t.count;
    firsts += places_of(s, d) + 1;
  }
  size_t before = (size_t)(firsts + t.count + 1) / 2 * 2 * sizeof(int);
  *bytes = before + ((size_t)t.count + 1) * weight_bytes(s->dtype);
  char *made = t.failed ? NULL : calloc(1, *bytes);
  *content = made;
  graft_status status =
      made ? fill_table(s, &t, begin, (int *)(void *)made, firsts, made + before) : GRAFT_OUT_OF_MEMORY;
  free(t.taps);
  return status;
}

/* Whether each element of the result is one of the input. */
static bool moves(const source *s) {
  const kind kind = (enum kind)s->dims[DIMS - 1].kind;
  return !s->backward && (kind == NEAREST || kind == EXACT || kind == REFLECT || kind == REPLICATE);
}

/* On a CPU a piece is a row, else a place of some planes: of AT_ONCE where that leaves a few hundred work-items for
 * each unit. */
static void lay(const graft_device *device, int64_t elements, numbers *n) {
  const int64_t items = 8 * (int64_t)device->compute_units, enough = 256 * (int64_t)device->compute_units;
  const int64_t places = n->to[0] * n->to[1] * n->to[2];
  n->planes = elements / places;
  n->each = elements / AT_ONCE >= enough ? AT_ONCE : 1;
  n->units = device->is_cpu ? elements / n->to[2] : ocl_ceil_divide(n->planes, n->each) * places;
  n->per_item = device->is_cpu ? ocl_ceil_divide(n->units, items) : 1;
}

static graft_status make_kernel(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype,
                                numbers *n) {
  size_t local = device->is_cpu ? 1 : 128;
  lay(device, ocl_elements(call->to), n);
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define WT %s\n%s", dtype->name, weight_type(dtype),
               device->permutes && dtype->class == OCL_CLASS_FLOAT && dtype->bytes <= 4 ? "#define PERMUTES\n" : "");
  graft_status status = ocl_kernel_make(&memo->kernel, device, &head, "core/direct resample/resample", "resample");
  ocl_kernel_size(&memo->kernel, ocl_ceil_divide(n->units, n->per_item), local);
  return status == GRAFT_OK ? ocl_kernel_set(&memo->kernel, 1, &(ocl_argument)OCL_VALUE(*n)) : status;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->to->dl.dtype);
  if (!dtype) return GRAFT_UNIMPLEMENTED;
  memo->source = (source){.family = {"resample"}, .backward = call->backward, .dtype = dtype};
  for (int d = 0; d < DIMS; d++) memo->source.dims[d] = dim_of(call, d);
  if (copies_gradient(&memo->source)) memo->source.dims[DIMS - 2].kind = memo->source.dims[DIMS - 1].kind = REPLICATE;
  numbers n = {.moves = moves(&memo->source)};
  for (int d = 0; d < DIMS; d++) {
    n.to[d] = places_of(&memo->source, d);
    n.from[d] = call->backward ? memo->source.dims[d].out : memo->source.dims[d].in;
  }
  return make_kernel(memo, device, call, dtype, &n);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

static graft_status run(const ocl_call *call) {
  const recipe *recipe = call->op->recipe;
  const graft_tensor_desc *grad = ocl_read_tensor(call, GRAD_OUTPUT);
  const operands operands = {
      .kind = recipe->kind,
      .dims = recipe->dims,
      .backward = grad != NULL,
      .align = ocl_read_bool(call, ALIGN_CORNERS),
      .from = grad ? grad : ocl_read_tensor(call, SELF),
      .to = ocl_read_tensor(call, OUT),
      .padding = ocl_read_ints(call, PADDING).items,
      .scales = {ocl_read_float(call, SCALES_D, 0), ocl_read_float(call, SCALES_H, 0),
                 recipe->dims == 1 ? ocl_read_float(call, SCALES, 0) : ocl_read_float(call, SCALES_W, 0)}};
  memo *memo;
  cl_mem table;
  graft_status status = ocl_memo_get(call->exec, &memo_type, &operands, &memo);
  if (status != GRAFT_OK) return status;
  status = ocl_table_made(call->exec->device, &memo->source, sizeof memo->source, make_table, &memo->source, &table);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(operands.to), OCL_TENSOR(operands.from), OCL_VALUE(table)};
  status = ocl_launch(&memo->kernel, call->exec->stream, OCL_ALL(arguments));
  ocl_table_release(call->exec->device, table);
  return status;
}

/* ---- Rows ---- */

#define ANY   (OCL_FLOATS | OCL_INTS | OCL_COMPLEX)
#define BYTES (OCL_FLOATS | OCL_BIT(U8))

#define ROW(op, set, ...)                                                                      \
  {                                                                                            \
    OCL_ENGINE(op, run, reads, (&(const recipe){__VA_ARGS__})), .inputs = set, .outputs = set, \
                                                                .flags = GRAFT_CAP_UNALIGNED   \
  }
#define RESAMPLING(op, set, ...) \
  ROW(op, set, __VA_ARGS__), ROW(op##_backward, (set) & (OCL_FLOATS | OCL_COMPLEX | OCL_BIT(U8)), __VA_ARGS__)

/* grid.c has these. */
#define ON_ITS_OWN(op) \
  { OCL_OP(op), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS, .flags = GRAFT_CAP_UNALIGNED }
#define SAMPLER(op) ON_ITS_OWN(op), ON_ITS_OWN(op##_backward)

static const ocl_op ops[] = {
    RESAMPLING(adaptive_avg_pool2d, OCL_FLOATS, .kind = ADAPTIVE, .dims = 2),
    RESAMPLING(adaptive_avg_pool3d, OCL_FLOATS, .kind = ADAPTIVE, .dims = 3),
    RESAMPLING(upsample_nearest1d, BYTES, .kind = NEAREST, .dims = 1),
    RESAMPLING(upsample_nearest2d, BYTES, .kind = NEAREST, .dims = 2),
    RESAMPLING(upsample_nearest3d, BYTES, .kind = NEAREST, .dims = 3),
    RESAMPLING(upsample_nearest_exact1d, BYTES, .kind = EXACT, .dims = 1),
    RESAMPLING(upsample_nearest_exact2d, BYTES, .kind = EXACT, .dims = 2),
    RESAMPLING(upsample_nearest_exact3d, BYTES, .kind = EXACT, .dims = 3),
    RESAMPLING(upsample_linear1d, OCL_FLOATS, .kind = LINEAR, .dims = 1),
    RESAMPLING(upsample_bilinear2d, OCL_FLOATS, .kind = LINEAR, .dims = 2),
    RESAMPLING(upsample_bicubic2d, OCL_FLOATS, .kind = CUBIC, .dims = 2),
    RESAMPLING(upsample_bilinear2d_aa, OCL_FLOATS, .kind = LINEAR_AA, .dims = 2),
    RESAMPLING(upsample_bicubic2d_aa, OCL_FLOATS, .kind = CUBIC_AA, .dims = 2),
    RESAMPLING(upsample_trilinear3d, OCL_FLOATS, .kind = LINEAR, .dims = 3),
    RESAMPLING(reflection_pad1d, ANY, .kind = REFLECT, .dims = 1),
    RESAMPLING(reflection_pad2d, ANY, .kind = REFLECT, .dims = 2),
    RESAMPLING(reflection_pad3d, ANY, .kind = REFLECT, .dims = 3),
    RESAMPLING(replication_pad1d, ANY, .kind = REPLICATE, .dims = 1),
    RESAMPLING(replication_pad2d, ANY, .kind = REPLICATE, .dims = 2),
    RESAMPLING(replication_pad3d, ANY, .kind = REPLICATE, .dims = 3),
    SAMPLER(grid_sampler_2d),
    SAMPLER(grid_sampler_3d),
};
OCL_FAMILY(resample, ops)
