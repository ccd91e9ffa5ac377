/* Numbers of an optimizer step: the norm of each tensor of a list, and the loss scale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/optimizer/lists.h"

/* ---- _foreach_norm ----
 * The tensors are cut into chunks, numbered through: one launch gives each chunk a partial result, another brings those
 * of each tensor together. */

enum { KERNELS = 2 * OCL_LIST_SIZES };

typedef struct memo {
  ocl_groups groups;              /* their `first` counts chunks, of all groups */
  _Atomic(ocl_kernel *) *kernels; /* for each group: norm_parts and norm_whole of each size; NULL: not yet needed */
  int64_t chunk, chunks;
} memo;

static void release(void *pointer) {
  memo *memo = pointer;
  ocl_groups_free(&memo->groups);
  free(memo->kernels);
}

typedef struct norm {
  const char *map, *join, *finish;
  double p;
  ocl_lists call; /* the tensors and their norms */
} norm;

static norm norm_of(double p) {
  if (isinf(p)) return (norm){"fabs(v)", p > 0 ? "LARGER(a, b)" : "SMALLER(a, b)", "v", p, {0}};
  if (p == 0) return (norm){"(v != (VT)0 ? (VT)1 : (VT)0)", "a + b", "v", p, {0}};
  if (p == 1) return (norm){"fabs(v)", "a + b", "v", p, {0}};
  if (p == 2) return (norm){"v * v", "a + b", "sqrt(v)", p, {0}};
  return (norm){"pow(fabs(v), (VT)P)", "a + b", "pow(v, (CT)1 / (CT)P)", p, {0}};
}

static size_t local_of(const graft_device *device) {
  return device->is_cpu ? 1 : 64;
}

static graft_status make_kernel(ocl_kernel **kernel, graft_device *device, const norm *norm, uint32_t tensor, int size,
                                bool whole) {
  const ocl_dtype *dtype = ocl_dtype_of(device, ocl_lists_operand(&norm->call, 0, tensor)->dl.dtype);
  const ocl_dtype *compute = ocl_dtype_of(device, device->has_f64 ? GRAFT_F64 : GRAFT_F32);
  ocl_text head = {0};
  ocl_head_types(&head, compute, device->vector_width, local_of(device));
  ocl_text_add(&head, "#define NORMS\n#define OPERANDS %d\n#define D %s\n#define MAP(v) %s\n#define JOIN(a, b) %s\n",
               norm->call.operands, dtype->name, norm->map, norm->join);
  ocl_text_add(&head, "#define FINISH(v) %s\n#define P %a%s\n#define NOTHING %s\n", norm->finish,
               isinf(norm->p) ? 0 : norm->p, device->has_f64 ? "" : "f",
               isinf(norm->p) && norm->p < 0 ? "INFINITY" : "0");
  ocl_batch_head(&head, &norm->call, size);
  graft_status status = ocl_kernel_shared(kernel, device, &head, "core/places optimizer/lists optimizer/scalars",
                                          whole ? "norm_whole" : "norm_parts", local_of(device));
  ocl_text_free(&head);
  return status;
}

static bool is_served(const graft_device *device, const ocl_lists *call, uint32_t i) {
  const ocl_dtype *dtype = ocl_dtype_of(device, call->list[0].items[i]->dl.dtype);
  return dtype && dtype->class == OCL_CLASS_FLOAT && call->list[1].items[i]->dl.dtype == dtype->code;
}

static graft_status fill_memo(memo *memo, const graft_device *device, const ocl_lists *call) {
  ocl_groups *groups = &memo->groups;
  graft_status status = ocl_groups_make(groups, call, true);
  if (status != GRAFT_OK) return status;
  memo->chunk = device->is_cpu ? 8192 : 1024;
  for (uint32_t g = 0; g < groups->count; g++) {
    ocl_group *group = &groups->items[g];
    for (uint32_t i = 0; i < group->count; i++) {
      group->first[i] = memo->chunks;
      memo->chunks += ocl_ceil_divide(ocl_elements(call->list[0].items[group->tensor[i]]), memo->chunk);
    }
    group->first[group->count] = memo->chunks;
  }
  memo->kernels = calloc((size_t)groups->count * KERNELS + 1, sizeof *memo->kernels);
  return memo->kernels ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const ocl_lists *call = from;
  for (uint32_t i = 0; i < call->list[0].count; i++) {
    if (!is_served(device, call, i)) return GRAFT_UNIMPLEMENTED;
  }
  return fill_memo(memo, device, call);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .prepare = prepare, .release = release};

/* Laid out as in scalars.cl. */
typedef struct norm_space {
  int64_t begin, end, span, chunk, tensors;
} norm_space;

/* How many of `count` a work-item takes: all a GPU has, and on a CPU a few work-items for each core. */
static int64_t span_of(const graft_device *device, int64_t count) {
  int64_t items = 8 * (int64_t)device->compute_units;
  return device->is_cpu ? ocl_ceil_divide(count, items) : 1;
}

static graft_status launch(const graft_exec *exec, ocl_kernel *kernel, const ocl_batch *batch, const ocl_place *work,
                           norm_space space, int64_t count) {
  ocl_argument arguments[OCL_BATCH_ARGUMENTS + 3];
  cl_uint n = ocl_batch_arguments(batch, arguments);
  space.span = span_of(exec->device, count);
  arguments[n++] = (ocl_argument)OCL_BUFFER(work->buffer);
  arguments[n++] = (ocl_argument)OCL_VALUE(work->offset);
  arguments[n++] = (ocl_argument)OCL_VALUE(space);
  int64_t taken = space.span * (int64_t)kernel->local[0];
  return ocl_launch_groups(kernel, exec->stream, (size_t)(ocl_ceil_divide(count, taken)), n, arguments);
}

static graft_status run_batch(const graft_exec *exec, const norm *norm, const memo *memo, uint32_t which,
                              const ocl_place *work, uint32_t begin, uint32_t *end) {
  const ocl_group *group = &memo->groups.items[which];
  ocl_batch batch;
  graft_status status = ocl_batch_make(&batch, exec->device, &norm->call, group, begin);
  if (status != GRAFT_OK) return status;
  *end = batch.end;
  norm_space space = {
      .begin = group->first[begin], .end = group->first[batch.end], .chunk = memo->chunk, .tensors = batch.end - begin};
  for (int whole = 0; whole < 2 && status == GRAFT_OK; whole++) {
    int64_t count = whole ? space.tensors : space.end - space.begin;
    _Atomic(ocl_kernel *) *place = &memo->kernels[which * KERNELS + 2 * batch.size + whole];
    ocl_kernel *kernel = atomic_load(place);
    if (count == 0) continue;
    if (!kernel) status = make_kernel(&kernel, exec->device, norm, group->tensor[0], batch.size, whole);
    if (status != GRAFT_OK) continue;
    atomic_store(place, kernel);
    status = launch(exec, kernel, &batch, work, space, count);
  }
  ocl_batch_free(exec->device, &batch);
  return status;
}

graft_status ocl_op_foreach_norm_Scalar(const graft_exec *exec, const graft_args_foreach_norm_Scalar *args) {
  ocl_number order = {.re = 2};
  if (args->ord) ocl_number_of_scalar(args->ord, &order);
  norm norm = norm_of(order.re);
  norm.call = (ocl_lists){.operands = 2, .list = {args->self, args->out}};
  memo *memo;
  ocl_place work;
  if (isnan(order.re)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, &norm.call, &memo);
  if (status != GRAFT_OK) return status;
  status = ocl_workspace(exec, (uint64_t)(memo->chunks + 1) * sizeof(double), &work);
  for (uint32_t i = 0; i < memo->groups.count; i++) {
    for (uint32_t at = 0; at < memo->groups.items[i].count && status == GRAFT_OK;) {
      status = run_batch(exec, &norm, memo, i, &work, at, &at);
    }
  }
  return status;
}

/* ---- _amp_update_scale ---- */

typedef struct update_memo {
  ocl_kernel kernel;
} update_memo;

static graft_status prepare_update(void *memo, graft_device *device, const void *unused) {
  (void)unused;
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(device, device->has_f64 ? GRAFT_F64 : GRAFT_F32), 1, 1);
  graft_status status =
      ocl_kernel_make(&((update_memo *)memo)->kernel, device, &head, "optimizer/scalars", "update_scale");
  return status;
}

static const ocl_memo_type update_type = {.bytes = sizeof(update_memo), .kernels = 1, .prepare = prepare_update};

enum { PARTS = 2 };

/* A factor as numbers whose sum it is; the second is 0 where the device has f64. Gives the bytes of each. */
static size_t split_factor(const graft_device *device, double factor, ocl_value parts[PARTS]) {
  const ocl_dtype *dtype = ocl_dtype_of(device, device->has_f64 ? GRAFT_F64 : GRAFT_F32);
  double first = device->has_f64 ? factor : (float)factor;
  const ocl_number numbers[PARTS] = {{.re = first}, {.re = isfinite(first) ? factor - first : 0}};
  ocl_number_as(&numbers[0], dtype, &parts[0]);
  return ocl_number_as(&numbers[1], dtype, &parts[1]);
}

graft_status ocl_op_amp_update_scale(const graft_exec *exec, const graft_args_amp_update_scale *args) {
  update_memo *memo;
  bool served = args->self->dl.dtype == GRAFT_F32 && args->growth_tracker->dl.dtype == GRAFT_I32 &&
                args->found_inf->dl.dtype == GRAFT_F32;
  if (!served) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &update_type, args, &memo);
  if (status != GRAFT_OK) return status;
  ocl_value growth[PARTS], backoff[PARTS];
  size_t bytes = split_factor(exec->device, args->scale_growth_factor, growth);
  split_factor(exec->device, args->scale_backoff_factor, backoff);
  const ocl_argument arguments[] = {OCL_TENSOR(args->out0),      OCL_TENSOR(args->growth_tracker_out),
                                    OCL_TENSOR(args->self),      OCL_TENSOR(args->growth_tracker),
                                    OCL_TENSOR(args->found_inf), {bytes, &growth[0]},
                                    {bytes, &growth[1]},         {bytes, &backoff[0]},
                                    {bytes, &backoff[1]},        OCL_VALUE(args->growth_interval)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}
