/* Which convolutions CPUs make strip by strip (strips.cl): those of one input channel a group, depthwise ones above
 * all. Each element serves few products there, and to pack a whole tensor would take longer than these. */
#include "kernels/convolution/convolution.h"

/* Of more channels a group, tiles of convolution.cl share what they read. */
enum { CHANNELS_MOST = 3 };
/* As in strips.cl: rows of a window, taps of a row; and up to how many taps are unrolled. */
enum { MOST = 64, UNROLLED_TAPS = 12 };
/* Vectors of a strip's row, whose sums are made in one go; rows of the input, that stay in a core's cache. */
enum { VECTORS_MOST = 64, CACHE_BYTES = 64 << 10 };
/* Work-items for each core, so that all end together. Each has its own workspace. */
enum { EACH_CORE = 4 };

/* As in strips.cl. */
typedef struct strips {
  int64_t rows, width, down, across, held, scratch, mends;
} strips;

static bool is_served(const graft_device *device, const ocl_space *s) {
  return device->is_cpu && s->in_channels == 1 && s->out_channels <= CHANNELS_MOST && s->taps[0] * s->taps[1] <= MOST &&
         s->taps[2] <= MOST;
}

static int64_t reach_of(const ocl_space *s, int d) {
  int64_t reach = (s->taps[d] - 1) * s->tap[d];
  return reach < 0 ? -reach : reach;
}

/* How many rows of the input `rows` rows of outputs meet, at most. */
static int64_t met_by(const ocl_space *s, int64_t rows) {
  return ocl_smaller(((rows - 1) * s->mul[1] + reach_of(s, 1)) / s->div[1] + 1, s->in_size[1]);
}

/* A strip has as many rows as the cache holds, but so many that what it shares with the next is no more than its own.
 */
static strips cut(ocl_space *s, const ocl_dtype *dtype, int64_t vec) {
  const int64_t element = dtype->bytes < 4 ? 4 : dtype->bytes, plane = s->out_size[1];
  strips c = {.width = ocl_smaller(s->out_size[2], VECTORS_MOST * vec)};
  s->first = s->off[2] - (s->tap[2] < 0 ? reach_of(s, 2) : 0);
  s->phase = ocl_round_up(ocl_round_up(c.width, vec) + reach_of(s, 2) / s->mul[2], vec);
  s->row = s->phase * s->mul[2];
  int64_t rows = CACHE_BYTES / (s->taps[0] * s->row * element), whole = reach_of(s, 1) / s->mul[1] + 1;
  c.rows = rows > reach_of(s, 1) ? ((rows - 1) * s->div[1] - reach_of(s, 1)) / s->mul[1] + 1 : 1;
  c.rows = ocl_smaller(c.rows > whole ? c.rows : whole, plane);
  c.down = ocl_ceil_divide(plane, c.rows);
  c.rows = ocl_ceil_divide(plane, c.down);
  c.across = ocl_ceil_divide(s->out_size[2], c.width);
  c.held = met_by(s, c.rows);
  c.scratch = s->row + s->taps[0] * c.held * s->row + 2 * vec; /* a row may end in half a vector */
  return c;
}

#define FILES "convolution/space convolution/gaps convolution/sums convolution/followed convolution/strips"

static void write_head(ocl_text *head, const ocl_dtype *dtype, int64_t vec, const ocl_space *s) {
  ocl_head_types(head, dtype, (unsigned)vec, 1);
  ocl_text_add(head, "#define D %s\n", dtype->name);
  if (s->taps[2] > UNROLLED_TAPS)
    ocl_text_add(head, "#define MANY_TAPS\n#define TAPS s->taps[2]\n");
  else
    ocl_text_add(head, "#define TAPS %d\n", (int)s->taps[2]);
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_dtype *dtype, int64_t vec,
                                const ocl_space *s, const char *entry) {
  ocl_text head = {0};
  write_head(&head, dtype, vec, s);
  return ocl_kernel_make(kernel, device, &head, FILES, entry);
}

/* Shares the units out, and returns how many work-items there are. */
static int64_t share(ocl_space *s, const graft_device *device) {
  s->per_item = ocl_ceil_divide(s->units, EACH_CORE * (int64_t)device->compute_units);
  return ocl_ceil_divide(s->units, s->per_item);
}

static graft_status set_strips(ocl_kernel *kernel, const ocl_space *s, const strips *c, int64_t items) {
  const ocl_argument constants[] = {OCL_VALUE(*s), OCL_VALUE(*c)};
  ocl_kernel_size(kernel, items, 1);
  return ocl_kernel_set(kernel, OCL_ALL(constants));
}

static graft_status run_forward(const graft_exec *exec, ocl_forward *f, ocl_place work, const ocl_forward_call *call) {
  int64_t has_bias = call->bias != NULL;
  const graft_tensor_desc *some = call->bias ? call->bias : call->out; /* not looked at where there is none */
  const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_PLACE(work),      OCL_TENSOR(some),
                                    OCL_VALUE(has_bias),   OCL_TENSOR(call->in), OCL_TENSOR(call->weight)};
  return ocl_results_launch(exec, f, call, OCL_ALL(arguments));
}

graft_status ocl_strips_forward(ocl_forward *f, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                                int64_t vec) {
  if (!is_served(device, &s)) return GRAFT_UNIMPLEMENTED;
  strips c = cut(&s, dtype, vec);
  c.scratch = ocl_round_up(c.scratch + ocl_volume(s.taps), vec); /* the weights */
  c.mends = ocl_forward_has_gaps(dtype, &s);
  s.units = s.batch * s.groups * s.out_size[0] * c.down * c.across;
  const int64_t items = share(&s, device);
  f->run = run_forward;
  f->exact = true;
  f->bytes = ocl_values_bytes(items * c.scratch, dtype);
  ocl_text head = {0};
  write_head(&head, dtype, vec, &s);
  ocl_text_add(&head, "#define FORWARD\n");
  graft_status status = ocl_results_make(f, &f->convolve, device, &head, c.mends, FILES, "convolve_strips");
  if (status == GRAFT_OK) status = set_strips(&f->convolve, &s, &c, items);
  return status == GRAFT_OK ? ocl_results_set(f, &f->convolve) : status;
}

static graft_status run_weight(const graft_exec *exec, ocl_weight_gradient *g, ocl_place work,
                               const graft_tensor_desc *in, const graft_tensor_desc *out,
                               const graft_tensor_desc *weight) {
  uint64_t at_parts = work.offset + g->skip_parts;
  const ocl_argument gradient[] = {OCL_PLACE(work), OCL_VALUE(at_parts), OCL_TENSOR(in), OCL_TENSOR(out)};
  const ocl_argument sum[] = {OCL_TENSOR(weight), OCL_BUFFER(work.buffer), OCL_VALUE(at_parts)};
  graft_status status = ocl_launch(&g->gradient, exec->stream, OCL_ALL(gradient));
  return status == GRAFT_OK ? ocl_launch(&g->sum, exec->stream, OCL_ALL(sum)) : status;
}

graft_status ocl_strips_weight(ocl_weight_gradient *g, graft_device *device, const ocl_dtype *dtype, ocl_space s,
                               int64_t vec) {
  if (!is_served(device, &s)) return GRAFT_UNIMPLEMENTED;
  const ocl_space whole = s;
  strips c = cut(&s, dtype, vec);
  const int64_t channels = s.groups * s.out_channels, weights = channels * ocl_volume(s.taps);
  c.scratch = ocl_round_up(c.scratch + 2 * ocl_volume(s.taps) * vec + ocl_round_up(c.width, vec),
                           vec); /* sums, and a row of outputs */
  s.splits = ocl_smaller(ocl_ceil_divide(EACH_CORE * (int64_t)device->compute_units, channels), s.batch);
  s.units = channels * s.splits;
  const int64_t items = share(&s, device);
  g->run = run_weight;
  g->skip_parts = ocl_values_bytes(items * c.scratch, dtype);
  g->bytes = g->skip_parts + ocl_values_bytes(weights * s.splits, dtype);
  graft_status status = make_kernel(&g->gradient, device, dtype, vec, &s, "gradient_strips");
  if (status == GRAFT_OK) status = set_strips(&g->gradient, &s, &c, items);
  if (status == GRAFT_OK) status = make_kernel(&g->sum, device, dtype, vec, &s, "sum_splits");
  ocl_kernel_size(&g->sum, weights, 1);
  if (status == GRAFT_OK) status = ocl_kernel_set(&g->sum, 1, &(ocl_argument)OCL_VALUE(s));
  if (status != GRAFT_OK || !ocl_weight_has_gaps(dtype, &whole)) return status;
  status = make_kernel(&g->mend, device, dtype, vec, &s, "mend");
  return status == GRAFT_OK ? ocl_gaps_set(&g->mend, device, whole, false, vec) : status;
}
