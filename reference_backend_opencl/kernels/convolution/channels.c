/* Which gradients of weights CPUs make tap by tap, as products of channels (channels.cl). */
#include "kernels/convolution/convolution.h"

/* Work-items for each core, so that all end together; steps of a part, whose rows of both panels stay in a cache. */
enum { EACH_CORE = 4, STEPS = 128 };
/* Of a window, whose sums a work-item has side by side. What it takes to begin a run of steps, in steps. */
enum { TAPS_MOST = 64, BEGUN = 4 };

/* As in channels.cl. */
typedef struct channels {
  int64_t taps, in_places, out_places, in_panels, out_panels, in_row, in_phase, rows, columns, images, scratch;
} channels;
typedef struct side {
  int64_t images, channels, places, panels, pieces, width, phases, phase, packed;
} side;

/* Lanes of a vector, vectors side by side, input channels: what fills the registers. Images in pairs: core/pairs.cl. */
typedef struct tile {
  int64_t vec, wide, channels;
  bool pairs;
} tile;

static tile tile_of(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  tile t = {.vec = device->vector_width, .wide = 2, .channels = device->vector_width == 16 ? 8 : 4};
  t.pairs = ocl_multiplies_pairs(device, dtype) && s->batch > 1;
  if (dtype->bytes > 4 && t.vec > 4) t.vec /= 2;
  return t;
}

#define FILES "core/square core/pairs convolution/space convolution/sums convolution/tile convolution/channels"

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_dtype *dtype, const tile *t,
                                const char *entry) {
  ocl_text head = {0};
  ocl_head_types(&head, dtype, (unsigned)t->vec, 1);
  ocl_text_add(&head, "#define D %s\n#define D_PART %s\n#define TILE %d\n#define WIDE %d\n%s", dtype->name,
               dtype->code == GRAFT_F64 ? "f64" : "f32", (int)t->channels, (int)t->wide,
               t->pairs ? "#define PAIRS\n" : "");
  return ocl_kernel_make(kernel, device, &head, FILES, entry);
}

/* Shares the units out, and returns how many work-items there are. */
static int64_t share(ocl_kernel *kernel, ocl_space *s, const graft_device *device) {
  s->per_item = ocl_ceil_divide(s->units, EACH_CORE * (int64_t)device->compute_units);
  const int64_t items = ocl_ceil_divide(s->units, s->per_item);
  ocl_kernel_size(kernel, items, 1);
  return items;
}

static graft_status make_packing(ocl_kernel *kernel, graft_device *device, const ocl_dtype *dtype, const tile *t,
                                 ocl_space s, const side *d) {
  graft_status status = make_kernel(kernel, device, dtype, t, "pack_channels");
  s.units = s.groups * d->panels * s.batch * d->pieces;
  share(kernel, &s, device);
  const ocl_argument constants[] = {OCL_VALUE(s), OCL_VALUE(*d)};
  return status == GRAFT_OK ? ocl_kernel_set(kernel, OCL_ALL(constants)) : status;
}

static side side_of(int64_t images, int64_t of, const int64_t size[3], int64_t phases, const tile *t) {
  const int64_t places = ocl_volume(size), phase = ocl_ceil_divide(size[2], phases);
  return (side){.images = images,
                .channels = of,
                .places = places,
                .panels = ocl_ceil_divide(of, t->wide * t->vec),
                .pieces = ocl_ceil_divide(places, t->vec),
                .width = size[2],
                .phases = phases,
                .phase = phase,
                .packed = size[0] * size[1] * phases * phase};
}

static uint64_t packed_bytes(const ocl_space *s, const side *d, const tile *t, const ocl_dtype *dtype) {
  const int64_t images = s->splits * ocl_ceil_divide(s->batch, s->splits);
  return ocl_values_bytes(s->groups * d->panels * d->packed * images * t->wide * t->vec, dtype);
}

/* Images first, since their steps lie side by side. */
static void cut(channels *c, const ocl_space *s) {
  c->images = ocl_smaller(ocl_ceil_divide(s->batch, s->splits), STEPS);
  c->columns = ocl_smaller(s->out_size[2], ocl_ceil_divide(STEPS, c->images));
  c->rows =
      c->columns < s->out_size[2] ? 1 : ocl_smaller(s->out_size[1], ocl_ceil_divide(STEPS, c->images * c->columns));
}

static graft_status run_weight(const graft_exec *exec, ocl_weight_gradient *g, ocl_place work,
                               const graft_tensor_desc *in, const graft_tensor_desc *out,
                               const graft_tensor_desc *weight) {
  const uint64_t at_outs = work.offset + g->skip_outs, at_sums = work.offset + g->skip_sums;
  const uint64_t at_parts = work.offset + g->skip_parts;
  const ocl_argument rows[] = {OCL_PLACE(work), OCL_TENSOR(in)};
  const ocl_argument outs[] = {OCL_BUFFER(work.buffer), OCL_VALUE(at_outs), OCL_TENSOR(out)};
  const ocl_argument gradient[] = {OCL_TENSOR(weight), OCL_PLACE(work), OCL_VALUE(at_outs), OCL_VALUE(at_sums),
                                   OCL_VALUE(at_parts)};
  const ocl_argument sum[] = {OCL_TENSOR(weight), OCL_BUFFER(work.buffer), OCL_VALUE(at_parts)};
  graft_status status = ocl_launch(&g->rows, exec->stream, OCL_ALL(rows));
  if (status == GRAFT_OK) status = ocl_launch(&g->outs, exec->stream, OCL_ALL(outs));
  if (status == GRAFT_OK) status = ocl_launch(&g->gradient, exec->stream, OCL_ALL(gradient));
  return status == GRAFT_OK && g->sums ? ocl_launch(&g->sum, exec->stream, OCL_ALL(sum)) : status;
}

/* In multiplications of a vector. Of a longer stride than one, images alone count as a run: this way's work-items are
 * as many as these, and few where the other's are many. */
static double cost_of(const ocl_space *s, const tile *t) {
  const double run = (double)(s->mul[2] == 1 ? s->batch * s->out_size[2] : s->batch);
  const double steps = ocl_met_taps(s, 0) * ocl_met_taps(s, 1) * ocl_met_taps(s, 2) * (double)s->batch;
  const int64_t channels = ocl_round_up(s->in_channels, t->channels) * s->groups;
  const int64_t vectors = ocl_round_up(s->out_channels, t->wide * t->vec) / t->vec;
  return steps * (1 + BEGUN / run) * (double)(channels * vectors);
}

graft_status ocl_channels_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                                 double other) {
  const tile t = tile_of(device, dtype, &s);
  const int64_t images = s.batch;
  if (t.pairs) s.batch = ocl_ceil_divide(images, 2);
  const bool served = device->is_cpu && dtype->class == OCL_CLASS_FLOAT && ocl_volume(s.taps) <= TAPS_MOST;
  if (!served || cost_of(&s, &t) >= other) return GRAFT_UNIMPLEMENTED;
  const int64_t lanes = t.wide * t.vec, taps = ocl_volume(s.taps);
  const side in = side_of(images, s.in_channels, s.in_size, s.mul[2], &t);
  const side outs = side_of(images, s.out_channels, s.out_size, 1, &t);
  channels c = {.taps = taps,
                .in_places = in.packed,
                .out_places = outs.packed,
                .in_panels = in.panels,
                .out_panels = outs.panels,
                .in_row = in.phases * in.phase,
                .in_phase = in.phase,
                .scratch = lanes * taps * lanes};
  const int64_t panels = s.groups * in.panels * outs.panels, weights = s.groups * s.out_channels * s.weight_out;
  s.splits = ocl_smaller(ocl_ceil_divide(EACH_CORE * (int64_t)device->compute_units, panels), s.batch);
  cut(&c, &s);
  g->sums = s.splits > 1;
  g->run = run_weight;
  graft_status status = make_packing(&g->rows, device, dtype, &t, s, &in);
  if (status == GRAFT_OK) status = make_packing(&g->outs, device, dtype, &t, s, &outs);
  if (status == GRAFT_OK) status = make_kernel(&g->gradient, device, dtype, &t, "gradient_channels");
  if (status == GRAFT_OK && g->sums) status = make_kernel(&g->sum, device, dtype, &t, "sum_splits");
  s.units = panels * s.splits;
  const int64_t items = share(&g->gradient, &s, device);
  g->skip_outs = packed_bytes(&s, &in, &t, dtype);
  g->skip_sums = g->skip_outs + packed_bytes(&s, &outs, &t, dtype);
  g->skip_parts = g->skip_sums + ocl_values_bytes(items * c.scratch, dtype);
  g->bytes = g->skip_parts + (g->sums ? ocl_values_bytes(s.splits * weights, dtype) : 0);
  ocl_kernel_size(&g->sum, weights, 1);
  const ocl_argument constants[] = {OCL_VALUE(s), OCL_VALUE(c)};
  if (status == GRAFT_OK) status = ocl_kernel_set(&g->gradient, OCL_ALL(constants));
  if (status != GRAFT_OK || !g->sums) return status;
  return ocl_kernel_set(&g->sum, 1, &(ocl_argument)OCL_VALUE(s));
}
