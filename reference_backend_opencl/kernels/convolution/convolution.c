/* Convolutions of one to three spatial dimensions, forward and transposed, and their gradients. The gradient of the
 * input of one kind is a convolution of the other; see convolution.cl. */
#include "kernels/convolution/convolution.h"

/* A window that is unrolled whole, and so many sums that storing single elements is little beside them. */
enum { PLANE_TAPS = 25, PLANE_CHANNELS = 4 };

/* A loop over so many taps is unrolled. Longer ones would take a compiler seconds, and a program for each size. */
enum { UNROLLED_TAPS = 12 };

/* Of a transposed convolution: a longer stride along a row leaves too few registers for channels (phases.cl). */
enum { SPREAD_MOST = 8 };

/* So many products take some ten microseconds of a core even where much of a vector is empty. */
enum { SMALL_PRODUCTS = 1 << 21 };

/* ---- A convolution as the kernels see it ---- */

/* What the arguments of both ops say alike. */
typedef struct window {
  const graft_dl_tensor *weight;
  const int64_t *stride, *padding, *dilation;
  int64_t groups;
  bool transposed;
} window;

static void set_sizes(ocl_space *s, const window *w, const graft_dl_tensor *in, const graft_dl_tensor *out) {
  int dims = in->ndim - 2;
  for (int d = 0; d < 3; d++) {
    s->out_size[d] = s->in_size[d] = s->taps[d] = s->mul[d] = s->tap[d] = s->div[d] = 1;
    s->off[d] = 0;
    int own = d - (3 - dims);
    if (own < 0) continue;
    s->in_size[d] = in->shape[own + 2];
    s->out_size[d] = out->shape[own + 2];
    s->taps[d] = w->weight->shape[own + 2];
    s->mul[d] = w->transposed ? 1 : w->stride[own];
    s->div[d] = w->transposed ? w->stride[own] : 1;
    s->off[d] = w->transposed ? w->padding[own] : -w->padding[own];
    s->tap[d] = w->transposed ? -w->dilation[own] : w->dilation[own];
  }
}

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a < 0 ? -a : a;
}

/* In each dim: from a tap to the next one that elements of the same phase meet, and how far on these are. */
static void set_steps(ocl_space *s) {
  for (int d = 0; d < 3; d++) {
    s->step[d] = s->div[d] / common_divisor(s->div[d], s->tap[d]);
    s->move[d] = s->step[d] * s->tap[d] / s->div[d];
  }
}

/* A window of one element, taken at each: all spatial dimensions are one. */
static void flatten(ocl_space *s) {
  for (int d = 0; d < 3; d++) {
    if (s->taps[d] != 1 || s->mul[d] != 1 || s->div[d] != 1 || s->off[d] != 0) return;
    if (s->in_size[d] != s->out_size[d]) return; /* a transposed one's output padding */
  }
  s->in_size[2] = s->out_size[2] = s->in_size[0] * s->in_size[1] * s->in_size[2];
  for (int d = 0; d < 2; d++) s->in_size[d] = s->out_size[d] = 1;
}

/* The convolution that takes `in` to `out`; w->transposed says of which kind that one is, `swapped` that the weight's
 * first two dimensions are the input's and the output's channels. */
static ocl_space space_of(const window *w, const graft_dl_tensor *in, const graft_dl_tensor *out, bool swapped) {
  ocl_space s = {.batch = in->shape[0], .groups = w->groups};
  s.in_channels = in->shape[1] / w->groups;
  s.out_channels = out->shape[1] / w->groups;
  s.steps = s.in_channels;
  set_sizes(&s, w, in, out);
  int64_t taps = s.taps[0] * s.taps[1] * s.taps[2];
  s.weight_group = s.in_channels * s.out_channels * taps;
  s.weight_out = swapped ? taps : s.in_channels * taps;
  s.weight_in = swapped ? s.out_channels * taps : taps;
  set_steps(&s);
  flatten(&s);
  return s;
}

static int64_t vector_for(const graft_device *device, int64_t row) {
  int64_t vec = device->vector_width;
  while (vec > 4 && row <= vec / 2) vec /= 2;
  return vec;
}

/* What a program is compiled for. */
typedef struct form {
  bool forward;
  int64_t pitch;           /* of a plane; 0: rows */
  int64_t vec, wide, tile; /* lanes, vectors side by side, channels */
  bool any_taps;           /* a loop, for windows of any size */
  int64_t spread;          /* phases of outputs, as phases.cl has them; 0: not */
  bool pairs;              /* of input channels: core/pairs.cl */
} form;

/* Whether a program for this size alone would not pay: how many products there are, those of lanes and channels that
 * stand empty included, where vectors and tiles are as long as they can be. */
static bool is_small(const graft_device *device, const ocl_space *s, int64_t tile) {
  int64_t lanes = ocl_round_up(s->out_size[2], device->vector_width), channels = ocl_round_up(s->out_channels, tile);
  int64_t sums = s->batch * s->groups * channels * s->out_size[0] * s->out_size[1] * lanes;
  return sums * s->in_channels * s->taps[0] * s->taps[1] * s->taps[2] <= SMALL_PRODUCTS;
}

/* How many places the window covers beside its own, and the first of them for output 0. */
static int64_t reach_of(const ocl_space *s, int d) {
  int64_t reach = (s->taps[d] - 1) * s->tap[d];
  return reach < 0 ? -reach : reach;
}

static int64_t first_of(const ocl_space *s, int d) {
  return s->off[d] - (s->tap[d] < 0 ? reach_of(s, d) : 0);
}

/* Makes one row of a plane, in which rows begin `pitch` elements apart; work-items take `wide` vectors of it. */
static void lay_plane(ocl_space *s, const form *form) {
  const int64_t pitch = form->pitch, vec = form->vec, wide = form->wide;
  ocl_plane *p = &s->plane;
  int64_t shift = reach_of(s, 1) * pitch + reach_of(s, 2);
  *p = (ocl_plane){.pitch = pitch,
                   .width = s->out_size[2],
                   .height = s->out_size[1],
                   .in_width = s->in_size[2],
                   .in_height = s->in_size[1],
                   .rows = s->out_size[1] + reach_of(s, 1),
                   .top = first_of(s, 1),
                   .left = first_of(s, 2),
                   .down = s->tap[1] * pitch,
                   .across = s->taps[2]};
  p->start = (s->off[1] - p->top) * pitch + s->off[2] - p->left;
  s->in_size[1] = s->out_size[1] = 1;
  s->in_size[2] = s->out_size[2] = (p->height - 1) * pitch + p->width;
  s->taps[2] *= s->taps[1];
  s->taps[1] = 1;
  s->off[1] = 0;
  s->phase = s->row = ocl_round_up(ocl_round_up(s->out_size[2], wide * vec) + shift, vec);
}

/* Short rows leave much of a vector unused. Where the window moves by single elements, a plane serves as one row: a tap
 * is then a shift of the whole, and what is computed past the rows' ends is left out. Returns the pitch that rows need
 * for the window to stay inside, 0 where rows are long enough. */
static int64_t plane_pitch(const graft_device *device, const ocl_space *s) {
  int64_t vec = device->vector_width, height = s->out_size[1], width = s->out_size[2];
  int64_t pitch = width + reach_of(s, 2);
  bool single = s->mul[1] == 1 && s->mul[2] == 1 && s->div[1] == 1 && s->div[2] == 1;
  if (!device->is_cpu || !single || height < 2 || s->taps[1] * s->taps[2] > PLANE_TAPS) return 0;
  int64_t as_plane = ocl_ceil_divide((height - 1) * pitch + width, vec);
  int64_t as_rows = height * ocl_ceil_divide(width, vector_for(device, width));
  return 13 * as_plane <= 12 * as_rows ? pitch : 0;
}

/* The residue, which is never negative. */
static int64_t modulo(int64_t a, int64_t b) {
  return (a % b + b) % b;
}

/* The element that a tap of a row meets first, of a transposed convolution. */
static int64_t element_of(const ocl_space *s, int64_t tap) {
  const int64_t place = s->off[2] + tap * s->tap[2];
  return (place + modulo(-place, s->div[2])) / s->div[2];
}

/* Rows of phases.cl: the elements that the first output of each phase meets, and those of the others behind. */
static void lay_phases(ocl_space *s, const form *form) {
  const int64_t one = element_of(s, 0), other = element_of(s, s->taps[2] - 1);
  const int64_t reach = one < other ? other - one : one - other;
  s->first = one < other ? one : other;
  s->phase = s->row =
      ocl_round_up(ocl_round_up(ocl_ceil_divide(s->out_size[2], form->spread), form->vec) + reach, form->vec);
  s->div[2] = 1;
}

static void set_rows(ocl_space *s, const form *form) {
  const int64_t vec = form->vec, wide = form->wide;
  if (form->spread) {
    lay_phases(s, form);
  } else if (!s->plane.pitch) {
    s->first = first_of(s, 2);
    s->phase = ocl_round_up(ocl_round_up(s->out_size[2], wide * vec) + reach_of(s, 2) / s->mul[2], vec);
    s->row = s->phase * s->mul[2];
  }
  s->segments = ocl_ceil_divide(s->out_size[2], wide * vec);
  s->blocks = ocl_ceil_divide(s->out_channels, form->tile);
  s->units = s->batch * s->groups * s->blocks * s->out_size[0] * s->out_size[1] * s->segments;
}

static int64_t packed_rows(const ocl_space *s) {
  return s->batch * s->groups * s->steps * s->in_size[0] * s->in_size[1];
}

/* ---- Kernels ---- */

#define FILES                                                                                      \
  "core/square core/pairs convolution/space convolution/gaps convolution/sums convolution/phases " \
  "convolution/followed convolution/tile convolution/packing convolution/convolution convolution/gradients"

static void write_head(ocl_text *head, const graft_device *device, const ocl_dtype *dtype, const form *form,
                       const ocl_space *s) {
  ocl_head_types(head, dtype, (unsigned)form->vec, device->is_cpu ? 1 : 64);
  ocl_text_add(head, "#define D %s\n#define TILE %d\n#define WIDE %d\n%s%s%s", dtype->name, (int)form->tile,
               (int)form->wide, form->forward ? "#define FORWARD\n" : "", form->pitch ? "#define PLANE\n" : "",
               form->pairs ? "#define PAIRS\n" : "");
  if (form->spread)
    ocl_text_add(head, "#define SPREAD %d\n#define FIRST_PHASE %d\n#define NEXT_PHASE %d\n", (int)form->spread,
                 (int)modulo(s->off[2], form->spread), (int)modulo(s->tap[2], form->spread));
  if (form->any_taps)
    ocl_text_add(head, "#define MANY_TAPS\n#define TAPS s.taps[2]\n");
  else
    ocl_text_add(head, "#define TAPS %d\n", (int)s->taps[2]);
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_dtype *dtype, const char *name,
                                const form *form, const ocl_space *s) {
  ocl_text head = {0};
  write_head(&head, device, dtype, form, s);
  return ocl_kernel_make(kernel, device, &head, FILES, name);
}

/* So many work-items, and the struct as the kernel's last argument. */
static graft_status set_space(ocl_kernel *kernel, graft_device *device, const ocl_space *s, int64_t items) {
  ocl_kernel_size(kernel, items, device->is_cpu ? 1 : 64);
  return ocl_kernel_set(kernel, 1, &(ocl_argument)OCL_VALUE(*s));
}

static int64_t share(const graft_device *device, int64_t units, int64_t each_core) {
  int64_t items = each_core * (int64_t)device->compute_units;
  return device->is_cpu && units > items ? ocl_ceil_divide(units, items) : 1;
}

static graft_status prepare_rows(ocl_kernel *kernel, graft_device *device, ocl_space s) {
  int64_t rows = packed_rows(&s);
  s.per_item = share(device, rows, 4);
  return set_space(kernel, device, &s, ocl_ceil_divide(rows, s.per_item));
}

void ocl_forward_destroy(ocl_forward *f) {
  ocl_kernel_destroy(&f->rows);
  ocl_kernel_destroy(&f->weights);
  ocl_kernel_destroy(&f->convolve);
  ocl_kernel_destroy(&f->sum);
  ocl_kernel_destroy(&f->mend);
  ocl_product_destroy(f->product);
}

/* How many vectors side by side a work-item takes: two where registers are enough and little of the last pair is lost.
 * A weight is then read once for both. Where a pair more would be a tenth of the row, twice the channels take its
 * place. */
static void widen(form *form, const graft_device *device, const ocl_dtype *dtype, const ocl_space *s, int64_t vectors) {
  const bool registers = device->is_cpu && device->vector_width == 16 && dtype->bytes <= 4 && form->tile == 8;
  const bool odd = vectors % 2 && vectors < 10, channels = s->out_channels % (2 * form->tile) == 0;
  form->wide = 1;
  if (registers && odd && channels && !form->pitch)
    form->tile *= 2;
  else if (registers && (vectors % 2 == 0 || vectors > 4))
    form->wide = 2;
}

/* A transposed convolution goes phase by phase where a row of the window is unrolled. Sums of all phases are in
 * registers at once, so there are fewer channels of them. */
static bool take_phases(form *form, const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  const int64_t spread = s->div[2], sums = device->vector_width == 16 && dtype->bytes <= 4 ? 16 : 8;
  if (!device->is_cpu || spread < 2 || spread > SPREAD_MOST || s->taps[2] > UNROLLED_TAPS) return false;
  form->spread = form->wide = spread;
  form->vec = vector_for(device, ocl_ceil_divide(s->out_size[2], spread));
  while (form->tile > 1 && form->tile * spread > sums) form->tile /= 2;
  return true;
}

static form forward_form(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  const int64_t most = 8, whole = s->out_channels == 1 ? 1 : most;
  if (is_small(device, s, whole))
    return (form){.forward = true, .vec = device->vector_width, .wide = 1, .tile = whole, .any_taps = true};
  form form = {.forward = true, .tile = 1};
  form.pairs = ocl_multiplies_pairs(device, dtype) && s->in_channels > 1;
  while (form.tile < most && form.tile < s->out_channels) form.tile *= 2;
  if (take_phases(&form, device, dtype, s)) return form;
  form.pitch = s->in_channels < PLANE_CHANNELS ? 0 : plane_pitch(device, s);
  form.vec = form.pitch ? device->vector_width : vector_for(device, s->out_size[2]);
  int64_t row = form.pitch ? (s->out_size[1] - 1) * form.pitch + s->out_size[2] : s->out_size[2];
  widen(&form, device, dtype, s, ocl_ceil_divide(row, form.vec));
  form.any_taps = !form.pitch && s->taps[2] > UNROLLED_TAPS;
  return form;
}

/* Other ways of CPUs, each with programs of its own; `rows` is laid out for the one that is left. */
static graft_status prepare_large(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const ocl_space *s,
                                  const ocl_space *rows, const form *form, bool has_bias) {
  graft_status served = ocl_strips_forward(f, device, dtype, *s, vector_for(device, s->out_size[2]));
  if (served != GRAFT_UNIMPLEMENTED) return served;
  double cost = ocl_products_cost(device, dtype, s);
  if (form->pairs) cost /= 2;
  if (cost == 0) cost = ocl_rows_cost(device, dtype, rows, form->vec, form->spread ? 1 : form->wide, form->tile);
  served = ocl_images_forward(f, device, dtype, *s, cost);
  return served == GRAFT_UNIMPLEMENTED ? ocl_products_forward(f, device, dtype, s, has_bias) : served;
}

graft_status ocl_forward_prepare(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                                 bool has_bias) {
  const ocl_space whole = s;
  ocl_text head = {0};
  const bool gaps = ocl_forward_has_gaps(dtype, &s);
  graft_status served = ocl_tensor_forward(f, device, dtype, &s);
  if (served == GRAFT_UNIMPLEMENTED) served = ocl_f32_forward(f, device, dtype, &s);
  if (served == GRAFT_OK && gaps && !f->exact) return ocl_gaps_make(&f->mend, device, dtype, &s, true);
  if (served != GRAFT_UNIMPLEMENTED) return served;
  const form form = forward_form(device, dtype, &s);
  const int64_t tile = form.tile;
  if (form.pitch) lay_plane(&s, &form);
  if (form.pairs) s.steps = ocl_ceil_divide(s.in_channels, 2);
  set_rows(&s, &form);
  if (!is_small(device, &whole, tile)) served = prepare_large(f, device, dtype, &whole, &s, &form, has_bias);
  if (served != GRAFT_UNIMPLEMENTED) return served;
  f->skip_weights = ocl_values_bytes(packed_rows(&s) * s.row, dtype);
  int64_t packed = s.groups * s.blocks * s.steps * s.taps[0] * s.taps[1] * s.taps[2];
  f->bytes = f->skip_weights + ocl_values_bytes(packed * tile, dtype);
  graft_status status = make_kernel(&f->rows, device, dtype, "pack_rows", &form, &s);
  if (status == GRAFT_OK) status = make_kernel(&f->weights, device, dtype, "pack_weights", &form, &s);
  if (status == GRAFT_OK) {
    write_head(&head, device, dtype, &form, &s);
    status = ocl_results_make(f, &f->convolve, device, &head, gaps, FILES, "convolve");
  }
  if (status == GRAFT_OK) status = prepare_rows(&f->rows, device, s);
  if (status == GRAFT_OK) status = set_space(&f->weights, device, &s, packed);
  s.per_item = share(device, s.units, 16);
  if (status == GRAFT_OK) status = set_space(&f->convolve, device, &s, ocl_ceil_divide(s.units, s.per_item));
  if (status == GRAFT_OK) status = ocl_results_set(f, &f->convolve);
  f->portable = true;
  f->mends = gaps;
  return status;
}

graft_status ocl_forward_run(const graft_exec *exec, ocl_forward *f, const ocl_forward_call *call) {
  const graft_tensor_desc *in = call->in, *weight = call->weight, *bias = call->bias, *out = call->out;
  ocl_place work = call->work ? *call->work : (ocl_place){0};
  graft_status status = f->bytes && !call->work ? ocl_workspace(exec, f->bytes, &work) : GRAFT_OK;
  if (status != GRAFT_OK) return status;
  uint64_t at_weights = work.offset + f->skip_weights;
  int64_t has_bias = bias != NULL;
  const graft_tensor_desc *some = bias ? bias : out; /* not looked at where there is none */
  const ocl_argument rows[] = {OCL_PLACE(work), OCL_TENSOR(in)};
  const ocl_argument weights[] = {OCL_BUFFER(work.buffer), OCL_VALUE(at_weights), OCL_TENSOR(weight)};
  const ocl_argument convolve[] = {OCL_TENSOR(out),     OCL_PLACE(work), OCL_VALUE(at_weights), OCL_TENSOR(some),
                                   OCL_VALUE(has_bias), OCL_TENSOR(in),  OCL_TENSOR(weight),    OCL_VALUE(f->mends)};
  enum { TO_MEND = 5 }; /* input, weight and `mends`, which only convolution.cl's kernel takes */
  const cl_uint count = sizeof convolve / sizeof *convolve - (f->portable ? 0 : TO_MEND);
  if (f->run) {
    status = f->run(exec, f, work, call);
  } else {
    status = ocl_launch(&f->rows, exec->stream, OCL_ALL(rows));
    if (status == GRAFT_OK) status = ocl_launch(&f->weights, exec->stream, OCL_ALL(weights));
    if (status == GRAFT_OK) status = ocl_results_launch(exec, f, call, count, convolve);
  }
  const ocl_argument mend[] = {OCL_TENSOR(out), OCL_TENSOR(in), OCL_TENSOR(weight), OCL_TENSOR(some),
                               OCL_VALUE(has_bias)};
  return status == GRAFT_OK && f->mend.handle ? ocl_launch(&f->mend, exec->stream, OCL_ALL(mend)) : status;
}

/* GPUs want more work-items than a small weight has tiles: they sum parts of the batch, and where its images are fewer,
 * parts of their rows, of so many vectors at least. */
enum { PART_VECTORS = 64 };

static void set_splits(ocl_space *s, const graft_device *device, int64_t tiles) {
  s->splits = s->row_splits = 1;
  if (device->is_cpu || !s->batch) return;
  const int64_t wanted = ocl_ceil_divide(512 * (int64_t)device->compute_units, tiles);
  const int64_t images = wanted < s->batch ? wanted : s->batch, rest = ocl_ceil_divide(wanted, images);
  const int64_t most = s->out_size[1] * s->segments / PART_VECTORS;
  s->row_splits = rest < most ? rest : most;
  if (s->row_splits > s->out_size[1]) s->row_splits = s->out_size[1];
  if (s->row_splits < 1) s->row_splits = 1;
  s->splits = images * s->row_splits;
}

/* The result's rows, packed as they are. */
static ocl_space outs_of(const ocl_space *s) {
  ocl_space outs = {.batch = s->batch, .groups = s->groups, .in_channels = s->out_channels, .steps = s->out_channels};
  for (int d = 0; d < 3; d++) {
    outs.in_size[d] = outs.out_size[d] = s->out_size[d];
    outs.taps[d] = outs.mul[d] = outs.tap[d] = outs.div[d] = 1;
  }
  return outs;
}

static form gradient_form(const graft_device *device, const ocl_space *s) {
  form form = {.wide = 1, .tile = 4};
  bool small = is_small(device, s, form.tile);
  form.pitch = small ? 0 : plane_pitch(device, s);
  form.vec = small || form.pitch ? device->vector_width : vector_for(device, s->out_size[2]);
  form.any_taps = small || (!form.pitch && s->taps[2] > UNROLLED_TAPS);
  return form;
}

/* As prepare_large. */
static graft_status prepare_large_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype,
                                         const ocl_space *s, const ocl_space *rows, const ocl_space *outs,
                                         const form *form) {
  graft_status served = ocl_strips_weight(g, device, dtype, *s, vector_for(device, s->out_size[2]));
  if (served == GRAFT_UNIMPLEMENTED) served = ocl_products_weight(g, device, dtype, s);
  const double cost = ocl_squares_cost(device, dtype, rows, outs, form->vec, form->tile);
  return served == GRAFT_UNIMPLEMENTED ? ocl_channels_weight(g, device, dtype, *s, cost) : served;
}

static graft_status prepare_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype, ocl_space s) {
  const ocl_space whole = s;
  const bool gaps = ocl_weight_has_gaps(dtype, &s);
  graft_status served = ocl_tensor_weight(g, device, dtype, &s);
  if (served == GRAFT_UNIMPLEMENTED) served = ocl_f32_weight(g, device, dtype, &s);
  if (served == GRAFT_OK && gaps && !g->exact) return ocl_gaps_make(&g->mend, device, dtype, &s, false);
  if (served != GRAFT_UNIMPLEMENTED) return served;
  const int64_t enough = 32; /* vectors summed before they are added to the others */
  const form form = gradient_form(device, &s);
  const int64_t tile = form.tile;
  ocl_space outs = outs_of(&s);
  if (form.pitch) {
    lay_plane(&s, &form);
    lay_plane(&outs, &form);
  }
  set_rows(&s, &form);
  set_rows(&outs, &form);
  if (!is_small(device, &whole, tile)) served = prepare_large_weight(g, device, dtype, &whole, &s, &outs, &form);
  if (served != GRAFT_UNIMPLEMENTED) return served;
  s.images = enough / (s.out_size[0] * s.out_size[1] * s.segments) + 1;
  g->out_row = outs.row;
  g->skip_outs = ocl_values_bytes(packed_rows(&s) * s.row, dtype);
  g->skip_parts = g->skip_outs + ocl_values_bytes(packed_rows(&outs) * outs.row, dtype);
  int64_t taps = s.taps[0] * s.taps[1] * s.taps[2], weights = s.groups * s.out_channels * s.in_channels * taps;
  bool row_each = device->is_cpu && !form.any_taps; /* a work-item has a row of taps, else one */
  int64_t tiles = s.groups * s.blocks * ocl_ceil_divide(s.in_channels, tile) * (row_each ? taps / s.taps[2] : taps);
  set_splits(&s, device, tiles);
  g->sums = s.splits > 1;
  g->bytes = g->skip_parts + (s.splits > 1 ? ocl_values_bytes(weights * s.splits, dtype) : 0);
  graft_status status = make_kernel(&g->rows, device, dtype, "pack_rows", &form, &s);
  if (status == GRAFT_OK) status = make_kernel(&g->outs, device, dtype, "pack_rows", &form, &s);
  if (status == GRAFT_OK) status = make_kernel(&g->gradient, device, dtype, "weight_gradient", &form, &s);
  if (status == GRAFT_OK && s.splits > 1) status = make_kernel(&g->sum, device, dtype, "sum_splits", &form, &s);
  if (status == GRAFT_OK) status = prepare_rows(&g->rows, device, s);
  if (status == GRAFT_OK) status = prepare_rows(&g->outs, device, outs);
  if (status == GRAFT_OK && s.splits > 1) status = set_space(&g->sum, device, &s, weights);
  if (status == GRAFT_OK) status = set_space(&g->gradient, device, &s, tiles * s.splits);
  if (status == GRAFT_OK && gaps) status = make_kernel(&g->mend, device, dtype, "mend", &form, &whole);
  return status == GRAFT_OK && gaps ? ocl_gaps_set(&g->mend, device, whole, false, form.vec) : status;
}

static graft_status run_weight(const graft_exec *exec, ocl_weight_gradient *g, ocl_place work,
                               const graft_tensor_desc *in, const graft_tensor_desc *out,
                               const graft_tensor_desc *weight) {
  graft_status status = GRAFT_OK;
  uint64_t at_outs = work.offset + g->skip_outs, at_parts = work.offset + g->skip_parts;
  const ocl_argument rows[] = {OCL_PLACE(work), OCL_TENSOR(in)};
  const ocl_argument outs[] = {OCL_BUFFER(work.buffer), OCL_VALUE(at_outs), OCL_TENSOR(out)};
  const ocl_argument gradient[] = {OCL_TENSOR(weight), OCL_PLACE(work), OCL_VALUE(at_outs), OCL_VALUE(g->out_row),
                                   OCL_VALUE(at_parts)};
  const ocl_argument sum[] = {OCL_TENSOR(weight), OCL_BUFFER(work.buffer), OCL_VALUE(at_parts)};
  if (g->run) {
    status = g->run(exec, g, work, in, out, weight);
  } else {
    status = ocl_launch(&g->rows, exec->stream, OCL_ALL(rows));
    if (status == GRAFT_OK) status = ocl_launch(&g->outs, exec->stream, OCL_ALL(outs));
    if (status == GRAFT_OK) status = ocl_launch(&g->gradient, exec->stream, OCL_ALL(gradient));
    if (status == GRAFT_OK && g->sums) status = ocl_launch(&g->sum, exec->stream, OCL_ALL(sum));
  }
  const ocl_argument mend[] = {OCL_TENSOR(weight), OCL_TENSOR(in), OCL_TENSOR(out)};
  return status == GRAFT_OK && g->mend.handle ? ocl_launch(&g->mend, exec->stream, OCL_ALL(mend)) : status;
}

/* ---- Memos ---- */

typedef struct memo {
  ocl_forward forward;
  ocl_weight_gradient weight;
  ocl_kernel bias;
} memo;

static void release(void *pointer) {
  memo *memo = pointer;
  ocl_forward_destroy(&memo->forward);
  ocl_kernel_destroy(&memo->weight.rows);
  ocl_kernel_destroy(&memo->weight.outs);
  ocl_kernel_destroy(&memo->weight.gradient);
  ocl_kernel_destroy(&memo->weight.sum);
  ocl_kernel_destroy(&memo->weight.mend);
  ocl_product_destroy(memo->weight.product);
  ocl_kernel_destroy(&memo->bias);
}

const ocl_dtype *ocl_convolution_dtype(const graft_device *device, const graft_tensor_desc *a,
                                       const graft_tensor_desc *b) {
  const ocl_dtype *dtype = ocl_dtype_of(device, a->dl.dtype);
  bool computes = dtype && (dtype->class == OCL_CLASS_FLOAT || dtype->class == OCL_CLASS_INT);
  return computes && b->dl.dtype == dtype->code && a->dl.ndim >= 3 && a->dl.ndim <= 5 ? dtype : NULL;
}

ocl_space ocl_convolution_space(const graft_args_convolution *args) {
  const window w = {.weight = &args->weight->dl,
                    .stride = args->stride.items,
                    .padding = args->padding.items,
                    .dilation = args->dilation.items,
                    .groups = args->groups,
                    .transposed = args->transposed};
  return space_of(&w, &args->input->dl, &args->out->dl, w.transposed);
}

static graft_status prepare_convolution(void *pointer, graft_device *device, const void *from) {
  const graft_args_convolution *args = from;
  const ocl_dtype *dtype = ocl_convolution_dtype(device, args->input, args->weight);
  if (!dtype || (args->bias && args->bias->dl.dtype != dtype->code)) return GRAFT_UNIMPLEMENTED;
  return ocl_forward_prepare(&((memo *)pointer)->forward, device, dtype, ocl_convolution_space(args),
                             args->bias != NULL);
}

static const ocl_memo_type convolution_type = {
    .bytes = sizeof(memo), .prepare = prepare_convolution, .release = release};

graft_status ocl_op_convolution(const graft_exec *exec, const graft_args_convolution *args) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &convolution_type, args, &memo);
  if (status != GRAFT_OK) return status;
  const ocl_forward_call call = {.in = args->input, .weight = args->weight, .bias = args->bias, .out = args->out};
  return ocl_forward_run(exec, &memo->forward, &call);
}

static graft_status prepare_bias(ocl_kernel *kernel, graft_device *device, const ocl_dtype *dtype,
                                 const graft_dl_tensor *grad) {
  int64_t images = grad->shape[0], channels = grad->shape[1], spatial = 1;
  for (int d = 2; d < grad->ndim; d++) spatial *= grad->shape[d];
  /* One of the programs that there are for gradients of weights. */
  bool small = images * channels * spatial <= OCL_SMALL;
  int64_t vec = small ? device->vector_width : vector_for(device, spatial);
  const form form = {.vec = vec, .wide = 1, .tile = 4, .any_taps = small};
  graft_status status = make_kernel(kernel, device, dtype, "bias_gradient", &form, &(ocl_space){.taps = {1, 1, 1}});
  const ocl_argument sizes[] = {OCL_VALUE(images), OCL_VALUE(channels), OCL_VALUE(spatial)};
  if (status == GRAFT_OK) status = ocl_kernel_set(kernel, OCL_ALL(sizes));
  size_t local = device->is_cpu ? 1 : 64;
  ocl_kernel_size(kernel, channels * (int64_t)local, local);
  return status;
}

static graft_status prepare_backward(void *pointer, graft_device *device, const void *arguments) {
  memo *memo = pointer;
  const graft_args_convolution_backward *args = arguments;
  const ocl_dtype *dtype = ocl_convolution_dtype(device, args->input, args->weight);
  if (!dtype || args->grad_output->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  const graft_dl_tensor *in = &args->input->dl, *grad = &args->grad_output->dl;
  const window w = {.weight = &args->weight->dl,
                    .stride = args->stride.items,
                    .padding = args->padding.items,
                    .dilation = args->dilation.items,
                    .groups = args->groups,
                    .transposed = args->transposed};
  graft_status status = GRAFT_OK;
  if (args->out0) {
    window back = w;
    back.transposed = !w.transposed;
    status = ocl_forward_prepare(&memo->forward, device, dtype, space_of(&back, grad, in, !w.transposed), false);
  }
  if (status == GRAFT_OK && args->out1) {
    window from = w;
    from.transposed = false;
    ocl_space s = w.transposed ? space_of(&from, grad, in, false) : space_of(&from, in, grad, false);
    status = prepare_weight(&memo->weight, device, dtype, s);
  }
  if (status == GRAFT_OK && args->out2) status = prepare_bias(&memo->bias, device, dtype, grad);
  return status;
}

static const ocl_memo_type backward_type = {.bytes = sizeof(memo), .prepare = prepare_backward, .release = release};

/* Of both gradients, which are made one after the other. */
static graft_status take_workspace(const graft_exec *exec, const memo *memo, ocl_place *work) {
  const uint64_t first = memo->forward.bytes, second = memo->weight.bytes;
  *work = (ocl_place){0};
  return first || second ? ocl_workspace(exec, first > second ? first : second, work) : GRAFT_OK;
}

graft_status ocl_op_convolution_backward(const graft_exec *exec, const graft_args_convolution_backward *args) {
  memo *memo;
  ocl_place work;
  graft_status status = ocl_memo_get(exec, &backward_type, args, &memo);
  if (status == GRAFT_OK) status = take_workspace(exec, memo, &work);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *grad = args->grad_output;
  const ocl_forward_call call = {.in = grad, .weight = args->weight, .out = args->out0, .work = &work};
  if (args->out0) status = ocl_forward_run(exec, &memo->forward, &call);
  if (status == GRAFT_OK && args->out1) {
    const graft_tensor_desc *in = args->transposed ? grad : args->input, *out = args->transposed ? args->input : grad;
    status = run_weight(exec, &memo->weight, work, in, out, args->out1);
  }
  if (status == GRAFT_OK && args->out2) {
    const ocl_argument bias[] = {OCL_TENSOR(args->out2), OCL_TENSOR(grad)};
    status = ocl_launch(&memo->bias, exec->stream, OCL_ALL(bias));
  }
  return status;
}

#define COLUMNS (OCL_FLOATS | OCL_COMPLEX | OCL_BOOLS)

static const ocl_op ops[] = {
    {OCL_OP(convolution), .inputs = OCL_FLOATS | OCL_INTS, .outputs = OCL_FLOATS | OCL_INTS,
     .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(convolution_backward), .inputs = OCL_FLOATS | OCL_INTS, .outputs = OCL_FLOATS | OCL_INTS,
     .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(im2col), .inputs = COLUMNS, .outputs = COLUMNS, .flags = GRAFT_CAP_UNALIGNED},
    {OCL_OP(col2im), .inputs = COLUMNS, .outputs = COLUMNS, .flags = GRAFT_CAP_UNALIGNED},
};
OCL_FAMILY(convolution, ops)
