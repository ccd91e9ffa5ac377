/* Which convolutions Hopper's tensor cores take, and how they are laid out for nvidia.cl. */
#include "kernels/convolution/convolution.h"

/* Of fewer rows or terms, tiles would stay empty. */
enum { SIDE_LEAST = 16 };
/* As in nvidia.cl; the most parts of a gradient's K, and the fewest places that one is worth. */
enum { EIGHT = 8, LOCAL = 64, SPLITS_MOST = 64, SPLIT_LEAST = 512 };
/* How many groups of work-items the device takes along the second and the third dimension. */
enum { ALONG_MOST = 65535 };

typedef struct lattice {
  int64_t batch, groups, out_channels, in_channels, channels;
  int64_t out_size[3], in_size[3], places[3], first[3], mul[3], div[3], step[3], taps[3], turned[3];
  int64_t weight_group, weight_out, weight_in;
  int64_t across, runs, run;
  int64_t all_places, group_places, depth;
  int64_t panels_m, panels_n, splits, split_depth;
} lattice;

static void lay_dimension(lattice *l, const ocl_space *s, int d) {
  int64_t step = s->tap[d] < 0 ? -s->tap[d] : s->tap[d], reach = (s->taps[d] - 1) * step;
  l->out_size[d] = s->out_size[d];
  l->in_size[d] = s->in_size[d];
  l->mul[d] = s->mul[d];
  l->div[d] = s->div[d];
  l->taps[d] = s->taps[d];
  l->step[d] = step;
  l->turned[d] = s->tap[d] < 0;
  l->first[d] = s->off[d] - (s->tap[d] < 0 ? reach : 0);
  l->places[d] = (s->out_size[d] - 1) * s->mul[d] + reach + 1;
}

static lattice lattice_of(const ocl_space *s) {
  lattice l = {.batch = s->batch,
               .groups = s->groups,
               .out_channels = s->out_channels,
               .in_channels = s->in_channels,
               .channels = ocl_round_up(s->in_channels, EIGHT),
               .weight_group = s->weight_group,
               .weight_out = s->weight_out,
               .weight_in = s->weight_in};
  for (int d = 0; d < 3; d++) lay_dimension(&l, s, d);
  l.across = l.step[2] == 1 ? l.taps[2] : 1;
  l.run = l.across * l.channels;
  l.runs = l.taps[0] * l.taps[1] * l.taps[2] / l.across;
  l.all_places = l.places[0] * l.places[1] * l.places[2];
  int64_t slack = ((l.taps[0] - 1) * l.step[0] * l.places[1] + (l.taps[1] - 1) * l.step[1]) * l.places[2] +
                  (l.taps[2] - 1) * l.step[2];
  l.group_places = l.batch * l.all_places + slack;
  l.depth = ocl_round_up(l.batch * l.all_places, OCL_TENSOR_STRIP_BYTES / 2);
  return l;
}

static bool is_counted(const ocl_space *s) {
  return s->groups * s->taps[0] * s->taps[1] * s->taps[2] <= ALONG_MOST && s->out_channels <= ALONG_MOST &&
         s->in_channels / EIGHT < ALONG_MOST;
}

static bool is_served(graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  double taps = (double)(s->taps[0] * s->taps[1] * s->taps[2]), outs = (double)s->batch;
  for (int d = 0; d < 3; d++) outs *= (double)s->out_size[d];
  double terms = (double)s->in_channels * taps, rows = (double)s->out_channels;
  return rows >= SIDE_LEAST && terms >= SIDE_LEAST && is_counted(s) &&
         ocl_tensor_cores_serve(device, ocl_tensor_way_of_halves(dtype->code), outs * terms * rows * (double)s->groups);
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_dtype *dtype, ocl_tensor_size size,
                                bool forward, const char *entry) {
  ocl_text head = {0};
  ocl_head_types(&head, dtype, OCL_TENSOR_VECTOR, LOCAL);
  ocl_text_add(&head, "#define D %s\n#define TILE_M %d\n#define TILE_N %d\n%s", dtype->name, (int)size.m, (int)size.n,
               forward ? "#define FORWARD\n" : "");
  ocl_head_tensor_tile(&head, ocl_tensor_way_of_halves(dtype->code), size, OCL_FACTOR_ALONG,
                       forward ? OCL_FACTOR_ALONG : OCL_FACTOR_ACROSS);
  return ocl_kernel_make(kernel, device, &head, "core/nvidia core/bands core/nvidia_tile convolution/nvidia", entry);
}

static graft_status set_lattice(ocl_kernel *kernel, const lattice *l, int64_t x, int64_t y, int64_t z, int64_t local) {
  kernel->local[0] = (size_t)local;
  kernel->global[0] = (size_t)ocl_round_up(x, local);
  kernel->global[1] = (size_t)y;
  kernel->global[2] = (size_t)z;
  return ocl_kernel_set(kernel, 1, &(ocl_argument)OCL_VALUE(*l));
}

static uint64_t aligned(int64_t elements, uint64_t bytes) {
  return ((uint64_t)elements * bytes + 255) / 256 * 256;
}

bool ocl_tensor_serves_forward(graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  return is_served(device, dtype, s);
}

graft_status ocl_tensor_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  if (!is_served(device, dtype, s)) return GRAFT_UNIMPLEMENTED;
  lattice l = lattice_of(s);
  int64_t outs = l.batch * l.out_size[0] * l.out_size[1] * l.out_size[2];
  int64_t weights = l.groups * l.out_channels * l.runs * l.run;
  const ocl_tensor_size size =
      ocl_tensor_size_for(device, ocl_tensor_way_of_halves(dtype->code), l.out_channels, outs, l.groups);
  l.panels_m = ocl_ceil_divide(l.out_channels, size.m);
  l.panels_n = ocl_ceil_divide(outs, size.n);
  f->skip_weights = aligned(l.groups * l.group_places * l.channels, 2);
  f->bytes = f->skip_weights + aligned(weights, 2);
  graft_status status = make_kernel(&f->rows, device, dtype, size, true, "pack_rows");
  if (status == GRAFT_OK) status = make_kernel(&f->weights, device, dtype, size, true, "pack_weights");
  if (status == GRAFT_OK) status = make_kernel(&f->convolve, device, dtype, size, true, "convolve");
  if (status == GRAFT_OK) status = set_lattice(&f->rows, &l, l.group_places, l.channels / EIGHT, l.groups, LOCAL);
  if (status == GRAFT_OK) status = set_lattice(&f->weights, &l, weights, 1, 1, LOCAL);
  int64_t lanes = OCL_TENSOR_LANES(size.m);
  if (status == GRAFT_OK) status = set_lattice(&f->convolve, &l, l.panels_m * l.panels_n * lanes, l.groups, 1, lanes);
  return status;
}

/* K is cut so that there are tiles enough for the device. */
static void plan_splits(lattice *l, const graft_device *device) {
  int64_t tiles = l->panels_m * l->panels_n * l->groups * l->runs, places = l->batch * l->all_places;
  int64_t wanted = 2 * (int64_t)device->compute_units / tiles, most = places / SPLIT_LEAST;
  if (wanted > most) wanted = most;
  if (wanted > SPLITS_MOST) wanted = SPLITS_MOST;
  l->split_depth = ocl_round_up(ocl_ceil_divide(places, wanted > 1 ? wanted : 1), OCL_TENSOR_STRIP_BYTES / 2);
  l->splits = ocl_ceil_divide(places, l->split_depth);
}

graft_status ocl_tensor_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype,
                               const ocl_space *s) {
  if (!is_served(device, dtype, s)) return GRAFT_UNIMPLEMENTED;
  lattice l = lattice_of(s);
  ocl_tensor_size size =
      ocl_tensor_size_for(device, ocl_tensor_way_of_halves(dtype->code), l.out_channels, l.run, l.groups * l.runs);
  size.alone = false; /* each tile is made in splits */
  l.panels_m = ocl_ceil_divide(l.out_channels, size.m);
  l.panels_n = ocl_ceil_divide(l.run, size.n);
  plan_splits(&l, device);
  int64_t weights = l.groups * l.runs * l.out_channels * l.run;
  g->skip_outs = aligned(l.groups * l.group_places * l.channels, 2);
  g->skip_parts = g->skip_outs + aligned(l.groups * l.out_channels * l.depth, 2);
  g->bytes = g->skip_parts + aligned(l.splits * weights, 4);
  g->sums = true;
  graft_status status = make_kernel(&g->rows, device, dtype, size, false, "pack_rows");
  if (status == GRAFT_OK) status = make_kernel(&g->outs, device, dtype, size, false, "pack_outs");
  if (status == GRAFT_OK) status = make_kernel(&g->gradient, device, dtype, size, false, "weight_gradient");
  if (status == GRAFT_OK) status = make_kernel(&g->sum, device, dtype, size, false, "sum_splits");
  if (status == GRAFT_OK) status = set_lattice(&g->rows, &l, l.group_places, l.channels / EIGHT, l.groups, LOCAL);
  if (status == GRAFT_OK) status = set_lattice(&g->outs, &l, l.depth, l.out_channels, l.groups, LOCAL);
  int64_t lanes = OCL_TENSOR_LANES(size.m);
  if (status == GRAFT_OK)
    status = set_lattice(&g->gradient, &l, l.panels_m * l.panels_n * lanes, 1, l.splits * l.groups * l.runs, lanes);
  return status == GRAFT_OK ? set_lattice(&g->sum, &l, weights, 1, 1, LOCAL) : status;
}
