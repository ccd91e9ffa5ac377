/* Distances of points, between two sets (cdist) and within one (pdist), and their gradients. */
#include "kernels/core/lengths.h"
#include "kernels/linalg/linalg.h"

/* `numbers` of distances.cl: those of the sets, then three of each dim of the stack. */
enum { WIDTH, POINTS, OTHERS, P, OF_DIMS, OF_EACH_DIM = 3, NUMBERS = OF_DIMS + OF_EACH_DIM * OCL_DIMS_MAX };
_Static_assert((int)NUMBERS <= (int)OCL_DIRECT_NUMBERS, "a kernel takes them");

/* As distances.cl has it. */
enum { POINTS_AT_ONCE = 4 };

typedef struct sets {
  double p;
  int64_t stack; /* how many sets lie on each other */
  int dims, panel;
  bool within;
  int64_t numbers[NUMBERS];
} sets;

static void write_head(ocl_text *head, const void *of) {
  const sets *s = of;
  ocl_text_add(head, "#define BATCH %d\n#define WITHIN %d\n#define PANEL %d\n", s->dims, s->within, s->panel);
  ocl_length_head(head, s->p);
}

/* How many sets of `x` lie between two that follow each other in dim d of `out`; 0 where it is broadcast. */
static int64_t step_of(const graft_dl_tensor *x, const graft_dl_tensor *out, int d) {
  int own = d - (out->ndim - x->ndim);
  int64_t step = own >= 0 && x->shape[own] != 1;
  for (int i = own + 1; step && i < x->ndim - 2; i++) step *= x->shape[i];
  return step;
}

static sets sets_of(const graft_tensor_desc *x1, const graft_tensor_desc *x2, const graft_tensor_desc *out, double p) {
  sets s = {.p = p, .stack = 1};
  ocl_geometry dims = {.operands = 2};
  for (int d = out->dl.ndim - 3; d >= 0; d--) {
    const int64_t steps[OCL_OPERANDS_MAX] = {step_of(&x1->dl, &out->dl, d), step_of(&x2->dl, &out->dl, d)};
    s.stack *= out->dl.shape[d];
    ocl_geometry_push_outer(&dims, out->dl.shape[d], steps);
  }
  ocl_geometry_collapse(&dims);
  s.dims = dims.rank;
  s.numbers[WIDTH] = ocl_stack_size(x1, 1);
  s.numbers[POINTS] = ocl_stack_size(x1, 2);
  s.numbers[OTHERS] = ocl_stack_size(x2, 2);
  s.numbers[P] = ocl_direct_number(x1->dl.dtype, p);
  for (int d = 0; d < dims.rank; d++) {
    int64_t *of_dim = &s.numbers[OF_DIMS + OF_EACH_DIM * d];
    of_dim[0] = dims.size[d], of_dim[1] = dims.stride[0][d], of_dim[2] = dims.stride[1][d];
  }
  return s;
}

/* A set is beside itself. */
static sets set_of(const graft_tensor_desc *self, double p) {
  sets s = sets_of(self, self, self, p);
  s.within = true;
  return s;
}

static ocl_direct call_of(const sets *s, graft_dtype dtype, unsigned lanes, int places) {
  return (ocl_direct){.file = "core/lines core/lengths core/direct linalg/distances",
                      .dtype = dtype,
                      .lanes = lanes,
                      .head = write_head,
                      .of = s,
                      .numbers = s->numbers,
                      .count = NUMBERS,
                      .places = places};
}

/* The others are turned over first, in panels of as many as lanes, or work-items of a GPU, read side by side. */
static graft_status run_forward(const graft_exec *exec, sets *s, const graft_tensor_desc *out,
                                const graft_tensor_desc *x1, const graft_tensor_desc *x2) {
  int64_t others = s->numbers[OTHERS], width = s->numbers[WIDTH];
  if (!ocl_dtype_of(exec->device, out->dl.dtype)) return GRAFT_UNIMPLEMENTED;
  if (!ocl_elements(out)) return GRAFT_OK;
  unsigned lanes = ocl_lanes_within(ocl_direct_lanes(exec->device), others);
  s->panel = exec->device->is_cpu ? (int)lanes : 32;
  int64_t rows = ocl_stack_count(x2, 2) * ocl_ceil_divide(others, s->panel) * width;
  ocl_place turned;
  graft_status status = ocl_stack_work(exec, x2, rows * s->panel + 1, &turned);
  if (status != GRAFT_OK) return status;
  ocl_direct call = call_of(s, out->dl.dtype, lanes, 3);
  call.stages[0] = (ocl_stage){.entry = "turn", .units = rows, .places = {turned, ocl_place_of(x2)}};
  const bool together = exec->device->is_cpu && !s->within;
  const int64_t pieces =
      ocl_ceil_divide(s->numbers[POINTS], together ? POINTS_AT_ONCE : 1) * ocl_ceil_divide(others, lanes);
  call.stages[1] = (ocl_stage){.entry = together ? "distances_together" : "distances",
                               .units = s->stack * pieces,
                               .places = {ocl_place_of(out), ocl_place_of(x1), turned}};
  return ocl_direct_run(exec, &call);
}

graft_status ocl_op_cdist_forward(const graft_exec *exec, const graft_args_cdist_forward *args) {
  if (args->out->dl.ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  sets s = sets_of(args->x1, args->x2, args->out, args->p);
  return run_forward(exec, &s, args->out, args->x1, args->x2);
}

graft_status ocl_op_pdist_forward(const graft_exec *exec, const graft_args_pdist_forward *args) {
  sets s = set_of(args->self, args->p);
  return run_forward(exec, &s, args->out, args->self, args->self);
}

static graft_status run_backward(const graft_exec *exec, sets *s, const graft_tensor_desc *const tensors[5]) {
  int64_t width = s->numbers[WIDTH];
  unsigned lanes = ocl_lanes_within(ocl_direct_lanes(exec->device), width);
  s->panel = 1;
  ocl_direct call = call_of(s, tensors[0]->dl.dtype, lanes, 5);
  call.stages[0] =
      (ocl_stage){.entry = "pulls", .units = s->stack * s->numbers[POINTS] * ocl_ceil_divide(width, lanes)};
  for (int i = 0; i < 5; i++) call.stages[0].places[i] = ocl_place_of(tensors[i]);
  return ocl_direct_run(exec, &call);
}

graft_status ocl_op_cdist_backward(const graft_exec *exec, const graft_args_cdist_backward *args) {
  if (args->out->dl.ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  sets s = sets_of(args->x1, args->x2, args->out, args->p);
  const graft_tensor_desc *const tensors[] = {args->out, args->grad, args->x1, args->x2, args->cdist};
  return run_backward(exec, &s, tensors);
}

graft_status ocl_op_pdist_backward(const graft_exec *exec, const graft_args_pdist_backward *args) {
  sets s = set_of(args->self, args->p);
  const graft_tensor_desc *const tensors[] = {args->out, args->grad, args->self, args->self, args->pdist};
  return run_backward(exec, &s, tensors);
}
