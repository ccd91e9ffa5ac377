/* Numbers of an optimizer step: the norm of each tensor of a list, and the loss scale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"
#include "indexed.h"

/* ---- _foreach_norm ----
 * As many tensors as a kernel has arguments for are cut into chunks, numbered through: one launch gives each chunk a
 * partial result, another brings those of each tensor together. */

enum { GROUP = 16 };

typedef struct group {
  ocl_kernel parts, whole;
  uint32_t tensor[GROUP], count; /* places in the list */
  int64_t first_chunk, chunks;   /* of all groups' */
} group;

typedef struct memo {
  group *groups;
  uint32_t count;
  uint64_t work_bytes;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  for (uint32_t i = 0; i < memo->count; i++) {
    ocl_kernel_destroy(&memo->groups[i].parts);
    ocl_kernel_destroy(&memo->groups[i].whole);
  }
  free(memo->groups);
  free(memo);
}

typedef struct norm {
  const char *map, *join, *finish;
  double p;
} norm;

static norm norm_of(double p) {
  if (isinf(p)) return (norm){"fabs(v)", p > 0 ? "LARGER(a, b)" : "SMALLER(a, b)", "v", p};
  if (p == 0) return (norm){"(v != (VT)0 ? (VT)1 : (VT)0)", "a + b", "v", p};
  if (p == 1) return (norm){"fabs(v)", "a + b", "v", p};
  if (p == 2) return (norm){"v * v", "a + b", "sqrt(v)", p};
  return (norm){"pow(fabs(v), (VT)P)", "a + b", "pow(v, (CT)1 / (CT)P)", p};
}

static void add_parameters(ocl_text *head) {
  ocl_text_add(head, "#define PARAMETERS ");
  for (int t = 0; t < GROUP; t++) ocl_text_add(head, "%s__global uchar *buffer_%d, ulong at_%d", t ? ", " : "", t, t);
  ocl_text_add(head, "\n#define CHOOSE ");
  for (int t = 0; t < GROUP; t++) ocl_text_add(head, "case %d: p = buffer_%d + at_%d; break; ", t, t, t);
  ocl_text_add(head, "\n");
}

static graft_status make_group(group *group, graft_device *device, const graft_args_foreach_norm_Scalar *args,
                               const norm *norm, int64_t chunk) {
  const ocl_dtype *dtype = ocl_dtype_of(device, args->self.items[group->tensor[0]]->dl.dtype);
  const ocl_dtype *compute = ocl_dtype_of(device, device->has_f64 ? GRAFT_F64 : GRAFT_F32);
  size_t local = device->is_cpu ? 1 : 64;
  int64_t space[2 * GROUP + 3];
  group->chunks = 0;
  for (uint32_t i = 0; i < GROUP; i++) {
    int64_t size = i < group->count ? ocl_elements(args->self.items[group->tensor[i]]) : 0;
    space[i] = group->chunks;
    space[GROUP + i] = size;
    group->chunks += (size + chunk - 1) / chunk;
  }
  space[2 * GROUP] = chunk;
  space[2 * GROUP + 1] = group->chunks;
  space[2 * GROUP + 2] = group->count;
  ocl_text head = {0};
  ocl_head_types(&head, compute, device->vector_width, local);
  ocl_text_add(&head, "#define NORMS\n#define D %s\n#define GROUP %d\n#define MAP(v) %s\n#define JOIN(a, b) %s\n",
               dtype->name, GROUP, norm->map, norm->join);
  ocl_text_add(&head, "#define FINISH(v) %s\n#define P %a%s\n#define NOTHING %s\n", norm->finish,
               isinf(norm->p) ? 0 : norm->p, device->has_f64 ? "" : "f",
               isinf(norm->p) && norm->p < 0 ? "INFINITY" : "0");
  add_parameters(&head);
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY : GRAFT_OK;
  if (status == GRAFT_OK)
    status = ocl_kernel_init(&group->parts, device, head.items, "optimizer_scalars", "norm_parts");
  if (status == GRAFT_OK)
    status = ocl_kernel_init(&group->whole, device, head.items, "optimizer_scalars", "norm_whole");
  ocl_text_free(&head);
  if (status == GRAFT_OK) status = ocl_kernel_constant(&group->parts, 2 * GROUP + 2, sizeof space, space);
  if (status == GRAFT_OK) status = ocl_kernel_constant(&group->whole, 2 * GROUP + 2, sizeof space, space);
  group->parts.local[0] = group->whole.local[0] = local;
  group->parts.global[0] = ((size_t)(group->chunks ? group->chunks : 1) + local - 1) / local * local;
  group->whole.global[0] = (GROUP + local - 1) / local * local;
  return status;
}

static bool is_served(const graft_device *device, const graft_args_foreach_norm_Scalar *args, uint64_t i) {
  const graft_tensor_desc *self = args->self.items[i], *out = args->out.items[i];
  const ocl_dtype *dtype = ocl_dtype_of(device, self->dl.dtype);
  return dtype && dtype->class == OCL_CLASS_FLOAT && out->dl.dtype == dtype->code;
}

static graft_status make_memo(const graft_exec *exec, const void *pointer, const void *norm_pointer, void **out) {
  const graft_args_foreach_norm_Scalar *args = pointer;
  graft_device *device = exec->device;
  size_t parameters = 1024;
  clGetDeviceInfo(device->id, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof parameters, &parameters, NULL);
  if (parameters < 1024) return GRAFT_UNIMPLEMENTED;
  for (uint64_t i = 0; i < args->self.count; i++) {
    if (!is_served(device, args, i)) return GRAFT_UNIMPLEMENTED;
  }
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->groups = calloc(args->self.count + 1, sizeof *memo->groups);
  graft_status status = memo->groups ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  group *open = NULL;
  for (uint32_t i = 0; i < args->self.count && status == GRAFT_OK; i++) {
    bool alike = open && args->self.items[open->tensor[0]]->dl.dtype == args->self.items[i]->dl.dtype;
    if (!alike || open->count == GROUP) open = &memo->groups[memo->count++];
    open->tensor[open->count++] = i;
  }
  int64_t chunks = 0;
  for (uint32_t i = 0; i < memo->count && status == GRAFT_OK; i++) {
    status = make_group(&memo->groups[i], device, args, norm_pointer, device->is_cpu ? 8192 : 1024);
    memo->groups[i].first_chunk = chunks;
    chunks += memo->groups[i].chunks;
  }
  memo->work_bytes = (uint64_t)(chunks + 1) * sizeof(double);
  if (status != GRAFT_OK)
    destroy_memo(memo);
  else
    *out = memo;
  return status;
}

static graft_status launch(const graft_exec *exec, ocl_kernel *kernel, const group *group, graft_tensor_list list,
                           graft_buffer *work, uint64_t at) {
  static const uint64_t zero = 0;
  ocl_argument arguments[2 * GROUP + 2];
  cl_uint n = 0;
  for (uint32_t t = 0; t < GROUP; t++) { /* what has no elements may have no buffer, and is not looked at */
    const graft_tensor_desc *desc = list.items[group->tensor[t < group->count ? t : 0]];
    bool there = desc->dl.data != NULL;
    arguments[n++] = (ocl_argument){sizeof(cl_mem), there ? &desc->dl.data->handle : &work->handle};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), there ? &desc->dl.byte_offset : &zero};
  }
  arguments[n++] = (ocl_argument){sizeof(cl_mem), &work->handle};
  arguments[n++] = (ocl_argument){sizeof(uint64_t), &at};
  return ocl_launch(kernel, exec->stream, n, arguments);
}

graft_status ocl_op_foreach_norm_Scalar(const graft_exec *exec, const graft_args_foreach_norm_Scalar *args) {
  ocl_number order = {.re = 2};
  if (args->ord) ocl_number_of_scalar(args->ord, &order);
  norm norm = norm_of(order.re);
  void *pointer;
  graft_buffer *work;
  uint64_t at;
  if (isnan(order.re)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, args, &norm, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  status = exec->device->plugin->host->workspace(exec, memo->work_bytes, 0, &work, &at);
  for (uint32_t i = 0; i < memo->count && status == GRAFT_OK; i++) {
    group *group = &memo->groups[i];
    uint64_t of_group = at + (uint64_t)group->first_chunk * sizeof(double);
    if (group->chunks) status = launch(exec, &group->parts, group, args->self, work, of_group);
    if (status == GRAFT_OK) status = launch(exec, &group->whole, group, args->out, work, of_group);
  }
  return status;
}

/* ---- _amp_update_scale ---- */

static void destroy_kernel(void *pointer) {
  ocl_kernel_destroy(pointer);
  free(pointer);
}

static graft_status make_update(const graft_exec *exec, const void *args, const void *row, void **out) {
  graft_device *device = exec->device;
  (void)args, (void)row;
  ocl_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel) return GRAFT_OUT_OF_MEMORY;
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(device, device->has_f64 ? GRAFT_F64 : GRAFT_F32), 1, 1);
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY
                                    : ocl_kernel_init(kernel, device, head.items, "optimizer_scalars", "update_scale");
  ocl_text_free(&head);
  if (status != GRAFT_OK)
    destroy_kernel(kernel);
  else
    *out = kernel;
  return status;
}

graft_status ocl_op_amp_update_scale(const graft_exec *exec, const graft_args_amp_update_scale *args) {
  void *kernel;
  bool served = args->self->dl.dtype == GRAFT_F32 && args->growth_tracker->dl.dtype == GRAFT_I32 &&
                args->found_inf->dl.dtype == GRAFT_F32;
  if (!served) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, args, NULL, make_update, destroy_kernel, &kernel);
  if (status != GRAFT_OK) return status;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, exec->device->has_f64 ? GRAFT_F64 : GRAFT_F32);
  ocl_number growth_number = {.re = args->scale_growth_factor}, backoff_number = {.re = args->scale_backoff_factor};
  ocl_value growth, backoff;
  size_t bytes = ocl_number_as(&growth_number, dtype, &growth);
  ocl_number_as(&backoff_number, dtype, &backoff);
  const ocl_argument arguments[] = {OCL_TENSOR(args->out0),      OCL_TENSOR(args->growth_tracker_out),
                                    OCL_TENSOR(args->self),      OCL_TENSOR(args->growth_tracker),
                                    OCL_TENSOR(args->found_inf), {bytes, &growth},
                                    {bytes, &backoff},           OCL_VALUE(args->growth_interval)};
  return ocl_launch(kernel, exec->stream, 13, arguments);
}
