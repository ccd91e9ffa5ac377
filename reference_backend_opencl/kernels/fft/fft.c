/* Fourier transforms of any length, dim by dim. A line that is too long for a tile, or too lonely to fill one, takes a
 * few passes through a workspace; one whose length has a large prime is a convolution with a chirp (Bluestein), which
 * is two transforms of a power of two. */
#include <math.h>
#include <stdlib.h>

#include "kernels/fft/fft.h"

enum { PASSES_MAX = OCL_FFT_STEPS_MAX, LANES_MAX = 16, LARGEST_RADIX = 31 };

/* As in fft.cl. */
enum { LOAD_FACTORS = 16, TURNS = 32, SWAP_FIRST = 64, STORE_FACTORS = 128 };

typedef ocl_fft_place where;
typedef ocl_fft_step step;
typedef ocl_fft_memo memo;
typedef ocl_fft_side side;
typedef ocl_fft_line line;
typedef ocl_fft_plan plan;

typedef struct pass {
  int64_t tiles, per_item, lines, lanes, batches, batches_first, rank;
  int64_t size, before, behind, points_in, points_out, step_in, step_out;
  int64_t flags, shift, low, high, load_factors, store_factors, stages, radices;
  int64_t batch_size[OCL_FFT_BATCH_DIMS], stride_in[OCL_FFT_BATCH_DIMS], stride_out[OCL_FFT_BATCH_DIMS];
} pass;

typedef struct operands {
  const graft_tensor_desc *self, *out;
  graft_int_list dim;
  int64_t normalization;
  bool backward;
} operands;

/* ---- One dim ---- */

unsigned ocl_fft_vector(const plan *p) {
  if (!p->device->is_cpu) return 1;
  return p->real->code == GRAFT_F32 || p->device->vector_width <= 4 ? p->device->vector_width
                                                                    : p->device->vector_width / 2;
}

static int64_t tile_points(const plan *p) {
  return p->device->is_cpu ? 2048 : p->real->code == GRAFT_F32 ? 1024 : 512;
}

/* The dims beside the transformed one, by falling stride on the side that is read, joined where they are one run. */
static graft_status lay_batches(plan *p, const line *l) {
  p->kept = 0;
  p->batches = 1;
  for (int64_t d = 0; d < p->rank; d++) {
    if (d == l->dim || p->shape[d] == 1) continue;
    if (p->kept == OCL_FFT_BATCH_DIMS) return GRAFT_UNIMPLEMENTED;
    int64_t at = p->kept++;
    for (; at > 0 && p->in[at - 1] < l->from.strides[d]; at--) {
      p->size[at] = p->size[at - 1], p->in[at] = p->in[at - 1], p->out[at] = p->out[at - 1];
    }
    p->size[at] = p->shape[d], p->in[at] = l->from.strides[d], p->out[at] = l->to.strides[d];
    p->batches *= p->shape[d];
  }
  int64_t joined = 0;
  for (int64_t i = 1; i < p->kept; i++) {
    bool run = p->in[joined] == p->in[i] * p->size[i] && p->out[joined] == p->out[i] * p->size[i];
    int64_t size = run ? p->size[joined] * p->size[i] : p->size[i];
    if (!run) joined++;
    p->size[joined] = size, p->in[joined] = p->in[i], p->out[joined] = p->out[i];
  }
  if (p->kept) p->kept = joined + 1;
  int64_t dense = 1;
  for (int64_t i = p->kept - 1; i >= 0; i--) {
    p->dense[i] = dense;
    dense *= p->size[i];
  }
  p->batches_first = p->kept && p->in[p->kept - 1] == 1 && l->from.strides[l->dim] != 1;
  return GRAFT_OK;
}

/* Strides of the batches on a side, and the step between points. Work has lines of `length` points. */
static int64_t lay_side(const plan *p, const side *s, const int64_t *strides, int64_t dim, int64_t length,
                        int64_t *to) {
  for (int64_t i = 0; i < p->kept; i++) {
    to[i] = s->strides ? strides[i] : p->batches_first ? p->dense[i] : p->dense[i] * length;
  }
  return s->strides ? s->strides[dim] : p->batches_first ? p->batches : 1;
}

/* As fft.cl reads them; a tile's points are the product of a dozen at most. */
static void add_radix(pass *s, int64_t radix) {
  s->radices |= radix << OCL_FFT_RADIX_BITS * s->stages++;
}

static void choose_radices(pass *s) {
  static const int64_t first[] = {4, 2, 3, 5};
  int64_t rest = s->size;
  for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
    for (; rest % first[i] == 0; rest /= first[i]) add_radix(s, first[i]);
  }
  for (int64_t p = 7; rest > 1; p += 2) {
    for (; rest % p == 0; rest /= p) add_radix(s, p);
  }
}

/* A work-item for each butterfly of four points, as long as there are warps of them. */
static size_t group_of(const plan *p, const pass *s) {
  const int64_t most = 256, least = 64, butterflies = s->size * s->lanes / 4;
  if (p->device->is_cpu) return 1;
  return (size_t)(butterflies >= most ? most : butterflies >= most / 2 ? most / 2 : least);
}

/* What large passes on a GPU are compiled for. */
static void add_constants(ocl_text *head, const plan *p, const pass *s) {
  if (p->device->is_cpu || s->lines * s->size <= OCL_SMALL) return;
  const struct {
    const char *name;
    int64_t value;
  } constants[] = {{"SIZE", s->size},      {"LANES", s->lanes},     {"BEFORE", s->before},
                   {"BEHIND", s->behind},  {"RADICES", s->radices}, {"FLAGS", s->flags},
                   {"KEPT_DIMS", s->rank}, {"STAGES", s->stages}}; /* the last one, which may be left out */
  const size_t left_out = p->device->breaks_unrolled_barriers;
  for (size_t i = 0; i < sizeof constants / sizeof *constants - left_out; i++)
    ocl_text_add(head, "#define %s %lldL\n", constants[i].name, (long long)constants[i].value);
}

static graft_status make_kernel(plan *p, step *step, pass *s, double scale) {
  unsigned vec = ocl_fft_vector(p);
  int64_t lanes = p->device->is_cpu ? vec : tile_points(p) / s->size;
  s->lanes = lanes < LANES_MAX ? lanes : LANES_MAX;
  s->tiles = ocl_ceil_divide(s->lines, s->lanes);
  int64_t items = p->device->is_cpu ? 2 * (int64_t)p->device->compute_units : INT32_MAX;
  s->per_item = ocl_ceil_divide(s->tiles, items);
  items = ocl_ceil_divide(s->tiles, s->per_item);
  uint64_t bytes = (uint64_t)(items * 4 * s->size * (int64_t)vec) * p->real->bytes;
  if (p->device->is_cpu && bytes > p->tile_bytes) p->tile_bytes = bytes;
  choose_radices(s);
  const size_t local = group_of(p, s);
  ocl_text head = {0};
  ocl_head_types(&head, p->real, vec, local);
  ocl_text_add(&head, "#define BATCH_DIMS %d\n#define RADIX_BITS %d\n#define LANES_MAX %d\n#define TILE_POINTS %lld\n",
               OCL_FFT_BATCH_DIMS, OCL_FFT_RADIX_BITS, LANES_MAX, (long long)tile_points(p));
  add_constants(&head, p, s);
  graft_status status =
      ocl_kernel_make(&step->kernel, p->device, &head, "core/square fft/butterflies fft/fft", "fft_pass");
  if (status != GRAFT_OK) return status;
  ocl_kernel_size(&step->kernel, items * (int64_t)local, local);
  const ocl_number factor = {.re = scale};
  ocl_value value;
  size_t value_bytes = ocl_number_as(&factor, p->real, &value);
  const ocl_argument constants[] = {OCL_VALUE(step->table), {value_bytes, &value}, OCL_VALUE(*s)};
  return ocl_kernel_set(&step->kernel, OCL_ALL(constants));
}

/* ---- Passes ---- */

/* A transform of `length` points, forward: from points of one side to those of another. */
typedef struct chain {
  side from, to;
  int64_t length, points_in, points_out;
  int64_t load_flags, store_flags;
  double scale;
  ocl_fft_table table; /* what its ends read beside roots */
} chain;

/* The divisor of n, `most` at most, that is nearest to `wanted`. */
static int64_t divisor_near(int64_t n, double wanted, int64_t most) {
  int64_t best = 1;
  double distance = INFINITY;
  for (int64_t d = 2; d <= most && d <= n; d++) {
    double apart = fabs(log((double)d / wanted));
    if (n % d == 0 && apart < distance) best = d, distance = apart;
  }
  return best;
}

/* Sizes of the passes of a length: 1 where a tile holds it and there are lines enough to fill the lanes. */
static int choose_passes(const plan *p, int64_t length, int64_t *sizes) {
  int64_t most = tile_points(p), rest = length;
  bool lonely = p->device->is_cpu && length >= 256 && p->batches < 2 * (int64_t)ocl_fft_vector(p);
  bool fits = length <= most && !lonely;
  if (!fits && !p->device->is_cpu) most = 128;
  int count = 0, left = 1;
  for (double reach = (double)most; reach < (double)length; reach *= (double)most) left++;
  if (lonely && left == 1) left = 2;
  if (fits) return sizes[0] = length, 1;
  while (rest > 1 && count < PASSES_MAX) {
    double wanted = pow((double)rest, 1.0 / (left > 1 ? left : 1));
    sizes[count] = divisor_near(rest, wanted, most);
    rest /= sizes[count++];
    left--;
  }
  return rest == 1 ? count : 0;
}

static void read_table(pass *s, const ocl_fft_table *table) {
  ocl_fft_parts parts = ocl_fft_parts_of(table);
  s->shift = parts.shift, s->low = parts.low, s->high = parts.high;
  s->load_factors = parts.load_factors, s->store_factors = parts.store_factors;
}

static graft_status add_pass(plan *p, const chain *c, const line *l, int64_t size, int64_t before, where *work) {
  int64_t behind = c->length / before / size;
  bool first = before == 1, last = behind == 1;
  const side middle = {.where = *work};
  const side *from = first ? &c->from : &(side){.where = *work == OCL_FFT_WORK_0 ? OCL_FFT_WORK_1 : OCL_FFT_WORK_0},
             *to = last ? &c->to : &middle;
  pass s = {.size = size, .before = before, .behind = behind, .batches = p->batches, .batches_first = p->batches_first};
  s.lines = p->batches * before * behind;
  s.rank = p->kept;
  for (int64_t i = 0; i < p->kept; i++) s.batch_size[i] = p->size[i];
  s.points_in = first ? c->points_in : c->length;
  s.points_out = last ? c->points_out : c->length;
  s.step_in = lay_side(p, from, p->in, l->dim, c->length, s.stride_in);
  s.step_out = lay_side(p, to, p->out, l->dim, c->length, s.stride_out);
  ocl_fft_table table = {.wide = p->real->code == GRAFT_F64, .size = size};
  if (!last) s.flags |= TURNS, table.turns = size * behind;
  if (first) s.flags |= c->load_flags;
  if (last) s.flags |= c->store_flags;
  if (s.flags & (LOAD_FACTORS | STORE_FACTORS)) {
    table.chirp = c->table.chirp, table.length = c->table.length;
    table.chirp_in = (s.flags & LOAD_FACTORS) != 0;
    table.chirp_out = (s.flags & STORE_FACTORS) && !c->table.spectrum;
    table.spectrum = (s.flags & STORE_FACTORS) && c->table.spectrum;
  }
  read_table(&s, &table);
  step *step = &p->memo->steps[p->memo->count++];
  step->from = from->where, step->to = to->where;
  if (to->where == *work) *work = *work == OCL_FFT_WORK_0 ? OCL_FFT_WORK_1 : OCL_FFT_WORK_0;
  uint64_t bytes = 2 * (uint64_t)(p->batches * c->length) * p->real->bytes;
  if (!(from->strides && to->strides) && bytes > p->work_bytes) p->work_bytes = bytes;
  graft_status status = ocl_fft_table_get(p->device, &table, &step->table);
  return status == GRAFT_OK ? make_kernel(p, step, &s, last ? c->scale : 1) : status;
}

/* `work` is where the next result that is no side's own goes. */
static graft_status add_chain(plan *p, const chain *c, const line *l, where *work) {
  int64_t sizes[PASSES_MAX], before = 1;
  int count = choose_passes(p, c->length, sizes);
  graft_status status = count ? GRAFT_OK : GRAFT_UNIMPLEMENTED;
  for (int i = 0; status == GRAFT_OK && i < count; i++) {
    status = add_pass(p, c, l, sizes[i], before, work);
    before *= sizes[i];
  }
  return status;
}

static bool has_large_prime(int64_t n) {
  for (int64_t p = 2; p <= LARGEST_RADIX && n > 1; p++) {
    while (n % p == 0) n /= p;
  }
  return n > 1;
}

/* The line times a chirp, transformed, times the chirp's own transform, transformed back, times a chirp. */
static graft_status add_convolution(plan *p, const line *l, const chain *whole, where *work) {
  int64_t length = 1;
  while (length < 2 * l->points - 1) length *= 2;
  chain there = *whole, back = *whole;
  there.length = back.length = back.points_in = there.points_out = length;
  there.table = back.table = (ocl_fft_table){.chirp = l->points, .length = length};
  there.table.spectrum = 1;
  there.to = (side){.where = OCL_FFT_WORK_0};
  there.load_flags |= LOAD_FACTORS;
  there.store_flags = STORE_FACTORS | OCL_FFT_SWAP_STORED;
  there.scale = 1;
  int64_t sizes[PASSES_MAX];
  int passes = choose_passes(p, length, sizes);
  if (passes % 2 == 0) there.to.where = OCL_FFT_WORK_1; /* its own passes begin with OCL_FFT_WORK_0 */
  graft_status status = add_chain(p, &there, l, work);
  *work = there.to.where == OCL_FFT_WORK_0 ? OCL_FFT_WORK_1 : OCL_FFT_WORK_0;
  back.from = there.to;
  back.load_flags = 0;
  back.store_flags |= SWAP_FIRST | STORE_FACTORS;
  return status == GRAFT_OK ? add_chain(p, &back, l, work) : status;
}

static graft_status add_line(plan *p, const line *l) {
  where work = OCL_FFT_WORK_0;
  graft_status status = lay_batches(p, l);
  if (status != GRAFT_OK) return status;
  int64_t swap_in = l->backward ? OCL_FFT_SWAP_LOADED : 0, swap_out = l->backward ? OCL_FFT_SWAP_STORED : 0;
  const chain whole = {.from = l->from,
                       .to = l->to,
                       .length = l->points,
                       .points_in = l->points,
                       .points_out = l->points_out,
                       .load_flags = l->load_flags | swap_in,
                       .store_flags = l->store_flags | swap_out,
                       .scale = l->scale};
  if (ocl_fft_rows_serve(p, l)) return ocl_fft_add_rows(p, l);
  return has_large_prime(l->points) ? add_convolution(p, l, &whole, &work) : add_chain(p, &whole, l, &work);
}

/* ---- A call ---- */

static double scale_of(const operands *call, double points) {
  return call->normalization == 0 ? 1 : call->normalization == 1 ? 1 / sqrt(points) : 1 / points;
}

/* The last dim of the list is the first to be transformed, but from half its points, where it is the last; between,
 * points stand in `out`, or, where that has real ones, in OCL_FFT_HALF, which lies as self does but without gaps. */
static graft_status add_lines(plan *p, const operands *call) {
  const graft_dl_tensor *self = &call->self->dl, *out = &call->out->dl;
  bool from_real = self->dtype == p->real->code, to_real = out->dtype == p->real->code;
  int64_t half[OCL_DIMS_MAX], dense = 1, count = (int64_t)call->dim.count;
  for (int64_t d = self->ndim - 1; d >= 0; d--) {
    half[d] = dense;
    dense *= self->shape[d];
  }
  side from = {OCL_FFT_SELF, self->strides, from_real}, to = {OCL_FFT_OUT, out->strides, to_real}, between = to;
  if (to_real) between = (side){OCL_FFT_HALF, half, false};
  double points = 1;
  graft_status status = GRAFT_OK;
  for (int64_t i = 0; status == GRAFT_OK && i < count; i++) {
    int64_t dim = call->dim.items[to_real ? i : count - 1 - i];
    bool last = i + 1 == count, first = i == 0;
    line l = {.from = from, .to = last ? to : between, .dim = dim, .backward = call->backward};
    l.points = from_real && first ? self->shape[dim] : out->shape[dim];
    l.points_out = out->shape[dim];
    if (to_real && !last) l.points = l.points_out = self->shape[dim];
    l.load_flags = (from_real && first ? OCL_FFT_FROM_REAL : 0) | (to_real && last ? OCL_FFT_FROM_HALF : 0);
    l.store_flags = to_real && last ? OCL_FFT_TO_REAL : 0;
    points *= (double)l.points;
    l.scale = last ? scale_of(call, points) : 1;
    p->shape = from_real && first ? self->shape : to_real ? self->shape : out->shape;
    p->rank = self->ndim;
    status = add_line(p, &l);
    from = between;
  }
  if (to_real && count > 1)
    p->memo->begins[OCL_FFT_HALF] = 2 * (uint64_t)dense * p->real->bytes; /* its size, until laid out */
  return status;
}

static void lay_workspace(plan *p) {
  memo *memo = p->memo;
  uint64_t half = memo->begins[OCL_FFT_HALF], tiles = (p->tile_bytes + 63) / 64 * 64,
           work = (p->work_bytes + 63) / 64 * 64;
  memo->begins[OCL_FFT_WORK_0] = tiles;
  memo->begins[OCL_FFT_WORK_1] = tiles + work;
  memo->begins[OCL_FFT_HALF] = tiles + 2 * work;
  memo->bytes = memo->begins[OCL_FFT_HALF] + half;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  const operands *call = from;
  graft_dtype self = call->self->dl.dtype;
  bool wide = self == GRAFT_F64 || self == GRAFT_C128;
  plan p = {.memo = pointer, .device = device, .real = ocl_dtype_of(device, wide ? GRAFT_F64 : GRAFT_F32)};
  if (!p.real || call->self->dl.ndim > OCL_DIMS_MAX || !call->dim.count) return GRAFT_UNIMPLEMENTED;
  p.memo->steps = calloc(call->dim.count * 2 * PASSES_MAX, sizeof *p.memo->steps);
  if (!p.memo->steps) return GRAFT_OUT_OF_MEMORY;
  graft_status status = add_lines(&p, call);
  lay_workspace(&p);
  return status;
}

static void release(void *pointer) {
  memo *memo = pointer;
  for (int i = 0; i < memo->count; i++) {
    ocl_kernel_destroy(&memo->steps[i].kernel);
    if (memo->steps[i].table) clReleaseMemObject(memo->steps[i].table);
  }
  free(memo->steps);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .prepare = prepare, .release = release};

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  ocl_place work = ocl_place_of(call->out); /* not looked at where no step has work */
  if (memo->bytes) status = ocl_workspace(exec, memo->bytes, &work);
  for (int i = 0; status == GRAFT_OK && i < memo->count; i++) {
    step *step = &memo->steps[i];
    ocl_place places[OCL_FFT_PLACES] = {
        [OCL_FFT_SELF] = ocl_place_of(call->self), [OCL_FFT_OUT] = ocl_place_of(call->out)};
    for (int w = OCL_FFT_HALF; w < OCL_FFT_PLACES; w++)
      places[w] = (ocl_place){work.buffer, work.offset + memo->begins[w]};
    const ocl_argument arguments[] = {OCL_PLACE(places[step->to]), OCL_PLACE(places[step->from]), OCL_PLACE(work)};
    status = ocl_launch(&step->kernel, exec->stream, OCL_ALL(arguments));
  }
  return status;
}

graft_status ocl_op_fft_c2c(const graft_exec *exec, const graft_args_fft_c2c *args) {
  return run(exec, &(operands){args->self, args->out, args->dim, args->normalization, !args->forward});
}

graft_status ocl_op_fft_r2c(const graft_exec *exec, const graft_args_fft_r2c *args) {
  return run(exec, &(operands){args->self, args->out, args->dim, args->normalization, false});
}

graft_status ocl_op_fft_c2r(const graft_exec *exec, const graft_args_fft_c2r *args) {
  return run(exec, &(operands){args->self, args->out, args->dim, args->normalization, true});
}

#define REALS   (OCL_BIT(F32) | OCL_BIT(F64))
#define LAYOUTS (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED)

static const ocl_op ops[] = {
    {OCL_OP(fft_c2c), .inputs = OCL_COMPLEX, .outputs = OCL_COMPLEX, .flags = LAYOUTS},
    {OCL_OP(fft_r2c), .inputs = REALS, .outputs = OCL_COMPLEX, .flags = LAYOUTS},
    {OCL_OP(fft_c2r), .inputs = OCL_COMPLEX, .outputs = REALS, .flags = LAYOUTS},
};
OCL_HEAVY_FAMILY(fft, ops)
