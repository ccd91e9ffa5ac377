/* Recurrent layers, all steps in one launch: the rows of a batch know nothing of each other, so a work-group takes some
 * of them through all steps by itself. Before it the weight is laid out as its products read it; see layer.cl. */
#include "kernels/core/direct.h"

/* How a call is cut: products give `outer` sums of `inner` products each. */
typedef struct plan {
  uint32_t mode;
  bool backward, has_bias, keeps, has_grad_output, has_grad_hy, has_grad_cy;
  int64_t outer, inner, outer_pad, inner_pad, width_pad;
  int64_t rows, blocks, near; /* of a work-group, work-groups, what each holds near itself */
  size_t together, slices;    /* work-items, and into how many parts they cut a sum */
  int own;                    /* chunks of four factors that each keeps */
} plan;

/* Local arrays come in few sizes, so that sizes of layers share programs. 0: there is not so much. */
static int64_t near_size(const graft_device *device, int64_t elements, uint32_t bytes) {
  static const int64_t sizes[] = {1024, 2048, 4096, 5632, 8192, 11264};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    if (elements <= sizes[i] && (cl_ulong)sizes[i] * bytes < device->local_bytes) return sizes[i];
  }
  return 0;
}

static int64_t near_of(const plan *p, int64_t rows) {
  return rows * (p->inner_pad + (int64_t)p->slices * p->outer_pad + 2 * p->width_pad);
}

/* One row a core while there are cores for all; more rows read the weight once for all of them. */
static int64_t rows_for(const graft_device *device, int64_t batch) {
  int64_t rows = 1;
  while (rows < 4 && rows * (int64_t)device->compute_units < batch) rows *= 2;
  return rows;
}

static void plan_cpu(plan *p, const graft_device *device, int64_t batch) {
  const int64_t vector = (int64_t)ocl_direct_lanes(device), room = 2 * vector;
  p->outer_pad = ocl_round_up(p->outer, room);
  p->inner_pad = ocl_round_up(p->inner, vector);
  p->together = p->slices = 1;
  p->rows = rows_for(device, batch);
  p->near = near_of(p, p->rows) + room; /* a vector is read whole at the end, too */
}

/* What groups read of the weight in a step comes from a cache that all share. Beyond so many bytes (some 25 us of it),
 * a product of the whole batch a step is faster. */
#define MOST_READ ((int64_t)160 << 20)

/* So many chunks of four numbers leave a work-item of a group of 512 the registers that it needs beside them. */
enum { OWN_CHUNKS = 16 };

static graft_status plan_gpu(plan *p, const graft_device *device, int64_t batch, uint32_t bytes) {
  p->outer_pad = p->outer;
  p->inner_pad = ocl_round_up(p->inner, 4);
  p->together = p->outer * p->inner > 8192 && device->largest_group >= 512 ? 512 : 128;
  p->slices = 1;
  while (p->slices < 16 && 2 * (int64_t)p->slices * p->outer <= (int64_t)p->together) p->slices *= 2;
  p->rows = rows_for(device, batch);
  while (p->rows > 1 && !near_size(device, near_of(p, p->rows), bytes)) p->rows /= 2;
  p->near = near_size(device, near_of(p, p->rows), bytes);
  const int64_t part = p->inner_pad / 4 / (int64_t)p->slices;
  const bool even = p->inner_pad / 4 % (int64_t)p->slices == 0 && p->outer * (int64_t)p->slices <= (int64_t)p->together;
  p->own = bytes == 4 && even && part >= OWN_CHUNKS ? OWN_CHUNKS : 0;
  int64_t groups = ocl_ceil_divide(batch, p->rows);
  bool serves = p->near && groups * p->outer * p->inner * bytes <= MOST_READ;
  return serves ? GRAFT_OK : GRAFT_UNIMPLEMENTED;
}

static void write_head(ocl_text *head, const void *of) {
  const plan *p = of;
  ocl_text_add(head, "#define MODE %u\n#define BACKWARD %d\n#define HAS_BIAS %d\n#define KEEPS %d\n", p->mode,
               p->backward, p->has_bias, p->keeps);
  ocl_text_add(head, "#define HAS_GRAD_OUTPUT %d\n#define HAS_GRAD_HY %d\n#define HAS_GRAD_CY %d\n", p->has_grad_output,
               p->has_grad_hy, p->has_grad_cy);
  ocl_text_add(head, "#define ROWS %d\n#define TOGETHER %zu\n#define SLICES %zu\n", (int)p->rows, p->together,
               p->slices);
  /* on a CPU it lies in a buffer, and its size is no constant */
  ocl_text_add(head, "#define NEAR_SIZE %d\n", p->together > 1 ? (int)p->near : 0);
  const bool one = p->together > 1 && p->rows * p->width_pad <= (int64_t)p->together;
  ocl_text_add(head, "#define OWN %d\n#define ONE_PIECE %d\n", p->own, one);
}

enum { PLACES = 14, WEIGHT = 10, PACKED = 12, SCRATCH };

static graft_status run(const graft_exec *exec, plan *p, const graft_tensor_desc *weight, int64_t steps, int64_t batch,
                        bool reverse, const graft_tensor_desc *const places[WEIGHT + 2]) {
  graft_device *device = exec->device;
  const graft_dtype dtype = weight->dl.dtype;
  const int64_t width = weight->dl.shape[1], gates = weight->dl.shape[0];
  const uint32_t bytes = dtype == GRAFT_F64 ? 8 : 4;
  p->inner = p->backward ? gates : width;
  p->outer = p->backward ? width : gates;
  p->width_pad = ocl_round_up(width, (int64_t)ocl_direct_lanes(device));
  graft_status status = GRAFT_OK;
  if (device->is_cpu)
    plan_cpu(p, device, batch);
  else
    status = plan_gpu(p, device, batch, bytes);
  if (status != GRAFT_OK) return status;
  p->blocks = ocl_ceil_divide(batch, p->rows);
  const int64_t packed = p->inner_pad * p->outer_pad;
  const int64_t numbers[] = {steps,        batch,        width,        p->inner, p->outer,
                             p->inner_pad, p->outer_pad, p->width_pad, reverse,  p->together > 1 ? 0 : p->near};
  ocl_direct call = {.file = "core/direct core/exp rnn/layer",
                     .dtype = dtype,
                     .head = write_head,
                     .of = p,
                     .numbers = numbers,
                     .count = sizeof numbers / sizeof *numbers,
                     .lanes = ocl_direct_lanes(device),
                     .places = PLACES};
  call.stages[0] = (ocl_stage){.entry = "pack", .units = packed};
  call.stages[1] = (ocl_stage){.entry = "layer", .units = p->blocks, .together = p->together > 1 ? p->together : 0};
  ocl_place space;
  status = ocl_workspace(exec, (uint64_t)(packed + (device->is_cpu ? p->blocks * p->near : 0)) * bytes, &space);
  if (status != GRAFT_OK) return status;
  for (int stage = 0; stage < 2; stage++) {
    ocl_place *to = call.stages[stage].places;
    for (int i = 0; i < PACKED; i++) to[i] = ocl_place_of(places[i]);
    to[PACKED] = to[SCRATCH] = space;
    to[SCRATCH].offset += (uint64_t)packed * bytes;
  }
  return ocl_direct_run(exec, &call);
}

graft_status ocl_op_rnn_layer(const graft_exec *exec, const graft_args_rnn_layer *args) {
  plan p = {.mode = args->mode, .has_bias = args->bias != NULL, .keeps = args->reserve != NULL};
  const graft_tensor_desc *const places[WEIGHT + 2] = {args->output, args->hy, args->cy,     args->reserve,
                                                       NULL,         NULL,     NULL,         args->input_gates,
                                                       args->hx,     args->cx, args->weight, args->bias};
  return run(exec, &p, args->weight, args->output->dl.shape[0], args->output->dl.shape[1], args->reverse, places);
}

graft_status ocl_op_rnn_layer_backward(const graft_exec *exec, const graft_args_rnn_layer_backward *args) {
  plan p = {.mode = args->mode,
            .backward = true,
            .has_grad_output = args->grad_output != NULL,
            .has_grad_hy = args->grad_hy != NULL,
            .has_grad_cy = args->grad_cy != NULL};
  const graft_tensor_desc *const places[WEIGHT + 2] = {args->grad_input_gates,
                                                       args->grad_hidden_gates,
                                                       args->grad_hx,
                                                       args->grad_cx,
                                                       args->grad_output,
                                                       args->grad_hy,
                                                       args->grad_cy,
                                                       args->output,
                                                       args->hx,
                                                       args->cx,
                                                       args->weight,
                                                       args->reserve};
  return run(exec, &p, args->weight, args->output->dl.shape[0], args->output->dl.shape[1], args->reverse, places);
}
