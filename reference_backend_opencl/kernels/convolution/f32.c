/* Which convolutions of f32 GPUs make as products in register tiles (registers.cl), or one by one where each input
 * channel has outputs of its own (depthwise.cl), and how they are planned. */
#include "kernels/convolution/convolution.h"
#include "kernels/core/registers.h"

/* Of fewer channels, tiles would stay empty; of fewer products, a program of its own would not pay. */
enum { CHANNELS_LEAST = 8, PRODUCTS_LEAST = 1 << 18 };
/* Bits for taps, one of them for none; phases; parts of K, and of a gradient's. */
enum { FEW_TAPS = 31, TAPS_MOST = 63, PHASES_MOST = 64, FORWARD_SPLITS_MOST = 32, SPLITS_MOST = 256 };
/* Of a window of depthwise.cl: taps, and elements of a row that four windows span; the least products; what its
 * gradient's groups are, and how many a unit should have. */
enum { ALONE_TAPS = 27, SEEN_MOST = 32, ALONE_LEAST = 1 << 16, FOUR = 4, ALONE_LANES = 128, ALONE_GROUPS = 8 };
enum { LOCAL = 64 };

/* As in registers.cl. */
typedef struct window {
  int64_t batch, groups, out_channels, in_channels;
  int64_t out_size[3], in_size[3], taps[3], mul[3], off[3], tap[3], div[3];
  int64_t step[3];
  int64_t weight_group, weight_out, weight_in;
  int64_t phases, depth, width;
  int64_t panels_m, panels_n, splits, split_depth;
} window;

static window window_of(const ocl_space *s) {
  window w = {.batch = s->batch,
              .groups = s->groups,
              .out_channels = s->out_channels,
              .in_channels = s->in_channels,
              .weight_group = s->weight_group,
              .weight_out = s->weight_out,
              .weight_in = s->weight_in};
  for (int d = 0; d < 3; d++) {
    w.out_size[d] = s->out_size[d];
    w.in_size[d] = s->in_size[d];
    w.taps[d] = s->taps[d];
    w.mul[d] = s->mul[d];
    w.off[d] = s->off[d];
    w.tap[d] = s->tap[d];
    w.div[d] = s->div[d];
    w.step[d] = s->step[d];
  }
  w.phases = ocl_volume(s->div);
  return w;
}

/* Places within an image, of padding too, and outputs of all images are counted in 32 bits. */
static bool is_counted(const ocl_space *s) {
  double places = (double)s->in_channels, outs = (double)s->batch;
  for (int d = 0; d < 3; d++) {
    int64_t reach = s->off[d] + s->taps[d] * s->tap[d];
    places *= (double)s->in_size[d] + (double)(reach < 0 ? -reach : reach) + (double)s->out_size[d] * (double)s->mul[d];
    outs *= (double)s->out_size[d];
  }
  return places < (double)(1 << 30) && outs < (double)(1 << 30);
}

static double products_of(const ocl_space *s) {
  double products = (double)(s->batch * ocl_volume(s->out_size)) * (double)(s->in_channels * ocl_volume(s->taps));
  return products * (double)(s->out_channels * s->groups) / (double)ocl_volume(s->div);
}

static bool is_served(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  return ocl_registers_serve(device, dtype) && ocl_volume(s->taps) <= TAPS_MOST && ocl_volume(s->div) <= PHASES_MOST &&
         is_counted(s) && s->out_channels >= CHANNELS_LEAST && products_of(s) >= PRODUCTS_LEAST;
}

/* How many elements of a row four windows side by side span. */
static int64_t seen_of(const ocl_space *s) {
  return (FOUR - 1) * s->mul[2] + (s->taps[2] - 1) * (s->tap[2] < 0 ? -s->tap[2] : s->tap[2]) + 1;
}

static bool is_alone(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  return ocl_registers_serve(device, dtype) && s->in_channels == 1 && ocl_volume(s->taps) <= ALONE_TAPS &&
         seen_of(s) <= SEEN_MOST && is_counted(s) && products_of(s) >= ALONE_LEAST;
}

/* A window of one element, taken at each, and images that fours fill. */
static bool is_pointwise(const window *w) {
  for (int d = 0; d < 3; d++) {
    if (w->taps[d] != 1 || w->mul[d] != 1 || w->div[d] != 1 || w->off[d] != 0) return false;
  }
  return ocl_volume(w->in_size) % 4 == 0;
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_dtype *dtype, const window *w,
                                const ocl_registers *tile, const char *more, const char *entry) {
  const bool few = ocl_volume(w->taps) <= FEW_TAPS;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 4, LOCAL);
  ocl_head_registers(&head, tile);
  ocl_text_add(&head, "#define D %s\n#define TAPS %s\n#define SIGNED_TAPS %s\n#define MOST_TAPS %d\n", dtype->name,
               few ? "uint" : "ulong", few ? "int" : "long", few ? FEW_TAPS : TAPS_MOST);
  ocl_text_add(&head, "#define POINTWISE %d\n#define TAP_BY_TAP %d\n%s", is_pointwise(w),
               tile->copies && w->in_channels % tile->step == 0, more);
  return ocl_kernel_make(
      kernel, device, &head,
      tile->copies ? "core/registers core/bands core/nvidia_copies convolution/window convolution/registers"
                   : "core/fours core/registers core/bands core/strips convolution/window convolution/registers",
      entry);
}

static graft_status set_window(ocl_kernel *kernel, const window *w, int64_t items, int64_t local) {
  ocl_kernel_size(kernel, items, (size_t)local);
  return ocl_kernel_set(kernel, 1, &(ocl_argument)OCL_VALUE(*w));
}

static uint64_t aligned(int64_t elements, uint64_t bytes) {
  return ((uint64_t)elements * bytes + 255) / 256 * 256;
}

static graft_status make_alone(ocl_kernel *kernel, graft_device *device, const ocl_dtype *dtype, const ocl_space *s,
                               const char *more, const char *entry) {
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 4, LOCAL);
  ocl_text_add(&head, "#define D %s\n#define T0 %d\n#define T1 %d\n#define T2 %d\n", dtype->name, (int)s->taps[0],
               (int)s->taps[1], (int)s->taps[2]);
  ocl_text_add(&head, "#define MUL2 %d\n#define TAP2 %d\n#define DIV2 %d\n#define SEEN %d\n%s", (int)s->mul[2],
               (int)s->tap[2], (int)s->div[2], (int)seen_of(s), more);
  return ocl_kernel_make(kernel, device, &head, "convolution/window convolution/depthwise", entry);
}

static graft_status run_forward(const graft_exec *exec, ocl_forward *f, ocl_place work, const ocl_forward_call *call) {
  const graft_tensor_desc *in = call->in, *weight = call->weight, *bias = call->bias, *out = call->out;
  uint64_t at_steps = work.offset + f->skip_weights, at_sums = work.offset + f->skip_sums;
  int64_t has_bias = bias != NULL;
  const graft_tensor_desc *some = bias ? bias : out; /* not looked at where there is none */
  const ocl_argument alone[] = {OCL_TENSOR(out), OCL_TENSOR(in), OCL_TENSOR(weight), OCL_TENSOR(some),
                                OCL_VALUE(has_bias)};
  if (!f->weights.handle) return ocl_launch(&f->convolve, exec->stream, OCL_ALL(alone));
  const ocl_argument weights[] = {OCL_PLACE(work), OCL_VALUE(at_steps), OCL_TENSOR(weight)};
  const ocl_argument convolve[] = {OCL_TENSOR(out),    OCL_TENSOR(in),   OCL_PLACE(work),    OCL_VALUE(at_steps),
                                   OCL_VALUE(at_sums), OCL_TENSOR(some), OCL_VALUE(has_bias)};
  const ocl_argument sum[] = {OCL_TENSOR(out), OCL_BUFFER(work.buffer), OCL_VALUE(at_sums), OCL_TENSOR(some),
                              OCL_VALUE(has_bias)};
  graft_status status = ocl_launch(&f->weights, exec->stream, OCL_ALL(weights));
  if (status == GRAFT_OK) status = ocl_launch(&f->convolve, exec->stream, OCL_ALL(convolve));
  return status == GRAFT_OK && f->sum.handle ? ocl_launch(&f->sum, exec->stream, OCL_ALL(sum)) : status;
}

static graft_status run_weight(const graft_exec *exec, ocl_weight_gradient *g, ocl_place work,
                               const graft_tensor_desc *in, const graft_tensor_desc *out,
                               const graft_tensor_desc *weight) {
  const ocl_argument gradient[] = {OCL_TENSOR(in), OCL_TENSOR(out), OCL_PLACE(work)};
  const ocl_argument sum[] = {OCL_TENSOR(weight), OCL_PLACE(work)};
  graft_status status = ocl_launch(&g->gradient, exec->stream, OCL_ALL(gradient));
  return status == GRAFT_OK ? ocl_launch(&g->sum, exec->stream, OCL_ALL(sum)) : status;
}

static graft_status prepare_alone(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  const window w = window_of(s);
  const int64_t fours = ocl_ceil_divide(s->out_size[2], FOUR) * s->out_size[1] * s->out_size[0];
  f->exact = true;
  f->run = run_forward;
  f->bytes = sizeof(float); /* of no use */
  graft_status status = make_alone(&f->convolve, device, dtype, s, "#define FORWARD\n", "depthwise");
  return status == GRAFT_OK ? set_window(&f->convolve, &w, s->batch * s->groups * s->out_channels * fours, LOCAL)
                            : status;
}

static graft_status prepare_alone_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype,
                                         const ocl_space *s) {
  window w = window_of(s);
  const int64_t channels = s->groups * s->out_channels, weights = channels * ocl_volume(s->taps);
  int64_t wanted = ocl_ceil_divide(ALONE_GROUPS * (int64_t)device->compute_units, channels);
  w.split_depth = ocl_ceil_divide(s->batch, wanted < s->batch ? wanted : s->batch);
  w.splits = ocl_ceil_divide(s->batch, w.split_depth);
  g->exact = true;
  g->run = run_weight;
  g->bytes = aligned(weights * w.splits, sizeof(float));
  graft_status status = make_alone(&g->gradient, device, dtype, s, "", "depthwise_weight");
  if (status == GRAFT_OK) status = make_alone(&g->sum, device, dtype, s, "", "sum_splits");
  if (status == GRAFT_OK) status = set_window(&g->sum, &w, weights, LOCAL);
  return status == GRAFT_OK ? set_window(&g->gradient, &w, channels * w.splits * ALONE_LANES, ALONE_LANES) : status;
}

bool ocl_f32_serves_forward(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  return is_alone(device, dtype, s) || is_served(device, dtype, s);
}

graft_status ocl_f32_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  if (is_alone(device, dtype, s)) return prepare_alone(f, device, dtype, s);
  if (!is_served(device, dtype, s)) return GRAFT_UNIMPLEMENTED;
  window w = window_of(s);
  int64_t outs = s->batch, taps = 1;
  for (int d = 0; d < 3; d++) {
    outs *= ocl_ceil_divide(s->out_size[d], s->div[d]);
    taps *= ocl_ceil_divide(s->taps[d], w.step[d]);
  }
  const ocl_product_size size = {s->out_channels,     outs, s->groups * w.phases, s->in_channels * taps,
                                 FORWARD_SPLITS_MOST, false};
  const ocl_registers tile = ocl_registers_for(device, &size, true);
  w.depth = ocl_round_up(s->in_channels * taps, tile.step);
  w.panels_m = ocl_ceil_divide(s->out_channels, tile.m);
  w.panels_n = ocl_ceil_divide(outs, tile.n);
  w.width = w.panels_m * tile.m;
  w.split_depth = ocl_round_up(ocl_ceil_divide(w.depth, tile.splits), tile.step);
  w.splits = ocl_ceil_divide(w.depth, w.split_depth);
  const int64_t results = s->batch * s->groups * s->out_channels * ocl_volume(s->out_size);
  const int64_t weights = w.phases * w.groups * w.depth * w.width;
  f->run = run_forward;
  f->skip_weights = aligned(weights, sizeof(float)); /* of the steps */
  f->skip_sums = f->skip_weights + aligned(w.phases * (w.depth + 2 * TAPS_MOST), 2 * sizeof(int32_t));
  f->bytes = f->skip_sums + (w.splits > 1 ? aligned(w.splits * results, sizeof(float)) : 0);
  const char *forward = "#define FORWARD\n";
  graft_status status = make_kernel(&f->weights, device, dtype, &w, &tile, forward, "pack_weights");
  if (status == GRAFT_OK) status = make_kernel(&f->convolve, device, dtype, &w, &tile, forward, "convolve");
  if (status == GRAFT_OK) status = set_window(&f->weights, &w, weights, LOCAL);
  if (status == GRAFT_OK && w.splits > 1) status = make_kernel(&f->sum, device, dtype, &w, &tile, forward, "sum_parts");
  if (status == GRAFT_OK && w.splits > 1) status = set_window(&f->sum, &w, results, LOCAL);
  const int64_t groups = w.panels_m * w.panels_n * w.groups * w.phases * w.splits;
  return status == GRAFT_OK ? set_window(&f->convolve, &w, groups * tile.lanes, tile.lanes) : status;
}

graft_status ocl_f32_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype, const ocl_space *s) {
  if (is_alone(device, dtype, s)) return prepare_alone_weight(g, device, dtype, s);
  if (!is_served(device, dtype, s)) return GRAFT_UNIMPLEMENTED;
  window w = window_of(s);
  const int64_t columns = s->in_channels * ocl_volume(s->taps), outs = ocl_volume(s->out_size);
  const ocl_product_size size = {s->out_channels, columns, s->groups, s->batch * outs, SPLITS_MOST, false};
  const ocl_registers tile = ocl_registers_for(device, &size, false);
  const int64_t depth = s->batch * ocl_round_up(outs, tile.step);
  w.panels_m = ocl_ceil_divide(s->out_channels, tile.m);
  w.panels_n = ocl_ceil_divide(columns, tile.n);
  w.split_depth = ocl_round_up(ocl_ceil_divide(depth, tile.splits), tile.step);
  w.splits = ocl_ceil_divide(depth, w.split_depth);
  const int64_t weights = s->groups * s->out_channels * columns;
  g->run = run_weight;
  g->bytes = aligned(weights * w.splits, sizeof(float));
  graft_status status = make_kernel(&g->gradient, device, dtype, &w, &tile, "", "weight_gradient");
  if (status == GRAFT_OK) status = make_kernel(&g->sum, device, dtype, &w, &tile, "", "sum_splits");
  if (status == GRAFT_OK) status = set_window(&g->sum, &w, weights, LOCAL);
  const int64_t groups = w.panels_m * w.panels_n * w.groups * w.splits;
  return status == GRAFT_OK ? set_window(&g->gradient, &w, groups * tile.lanes, tile.lanes) : status;
}
