/* Ops over lists of tensors: the _foreach ops and the fused optimizers. One launch serves as many tensors as a kernel
 * may have arguments for; so a model's hundred parameters are some ten launches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"
#include "lists.h"

enum { GROUP_MAX = 16 };

typedef struct launch {
  ocl_kernel kernel;
  uint32_t tensor[GROUP_MAX]; /* places in the lists */
  uint32_t count;
} launch;

typedef struct memo {
  launch *launches;
  uint32_t count, group;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  for (uint32_t i = 0; i < memo->count; i++) ocl_kernel_destroy(&memo->launches[i].kernel);
  free(memo->launches);
  free(memo);
}

static const graft_tensor_desc *operand(const ocl_lists *call, int k, uint32_t tensor) {
  return call->single[k] ? call->single[k] : call->list[k].items[tensor];
}

/* ---- Which tensors go together ---- */

/* The device's limit on the bytes of arguments, less those that do not depend on the number of tensors. */
static uint32_t group_of(const graft_device *device, const ocl_lists *call) {
  size_t bytes = 1024, each = 16 * (size_t)call->operands + 16;
  clGetDeviceInfo(device->id, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof bytes, &bytes, NULL);
  size_t group = (bytes - 256) / each;
  return group < 1 ? 1 : group > GROUP_MAX ? GROUP_MAX : (uint32_t)group;
}

static bool same_dtypes(const ocl_lists *call, uint32_t a, uint32_t b) {
  for (int k = 0; k < call->operands; k++) {
    if (operand(call, k, a)->dl.dtype != operand(call, k, b)->dl.dtype) return false;
  }
  return true;
}

static int64_t elements(const graft_tensor_desc *desc) {
  int64_t count = 1;
  for (int d = 0; d < desc->dl.ndim; d++) count *= desc->dl.shape[d];
  return count;
}

/* Half types and f32 are computed in f32, and may meet; f64 only where the output is. */
static bool is_served(const graft_device *device, const ocl_lists *call, uint32_t tensor) {
  const ocl_dtype *out = NULL;
  for (int k = 0; k < call->operands; k++) {
    const graft_tensor_desc *desc = operand(call, k, tensor);
    const ocl_dtype *dtype = desc ? ocl_dtype_of(device, desc->dl.dtype) : NULL;
    if (!dtype || !(call->dtypes >> dtype->number & 1)) return false;
    if (!out) out = dtype;
    if (dtype->class != out->class || (dtype->class == OCL_CLASS_INT && dtype != out)) return false;
    if (call->same_dtype && dtype != out) return false;
    if (dtype->code == GRAFT_F64 && out->code != GRAFT_F64) return false;
  }
  return true;
}

/* ---- The kernel ---- */

static void add_buffers(ocl_text *head, const ocl_lists *call, uint32_t group) {
  ocl_text_add(head, "#define PARAMETERS ");
  for (uint32_t t = 0; t < group; t++) {
    for (int k = 0; k < call->operands; k++) {
      ocl_text_add(head, "%s__global uchar *buffer_%u_%d, ulong at_%u_%d", t || k ? ", " : "", t, k, t, k);
    }
  }
  ocl_text_add(head, "\n#define CHOOSE ");
  for (uint32_t t = 0; t < group; t++) {
    ocl_text_add(head, "case %u: ", t);
    for (int k = 0; k < call->operands; k++) ocl_text_add(head, "p%d = buffer_%u_%d + at_%u_%d; ", k, t, k, t, k);
    ocl_text_add(head, "break; ");
  }
  ocl_text_add(head, "\n");
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_lists *call, uint32_t tensor,
                                uint32_t group) {
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(device, operand(call, 0, tensor)->dl.dtype), device->vector_width, local);
  ocl_text_add(&head, "#define OPERANDS %d\n#define GROUP %u\n%s", call->operands, group, call->defines);
  for (int k = 0; k < call->operands; k++) {
    ocl_text_add(&head, "#define D_%d %s\n#define SINGLE_%d %d\n", k,
                 ocl_dtype_of(device, operand(call, k, tensor)->dl.dtype)->name, k, call->single[k] != NULL);
  }
  if (call->expression) ocl_text_add(&head, "#define EXPRESSION %s\n", call->expression);
  if (call->flags & OCL_LISTS_LR) {
    ocl_text_add(&head, "#define D_LR %s\n", ocl_dtype_of(device, call->shared[2]->dl.dtype)->name);
  } else {
    ocl_text_add(&head, "#define D_LR f32\n");
  }
  add_buffers(&head, call, group);
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(kernel, device, head.items, "optimizer", "optimize");
  ocl_text_free(&head);
  kernel->local[0] = local;
  return status;
}

/* The numbers, in the compute type; and how the tensors are cut. */
static graft_status set_constants(launch *launch, graft_device *device, const ocl_lists *call, uint32_t group) {
  const ocl_dtype *dtype = ocl_dtype_of(device, operand(call, 0, launch->tensor[0])->dl.dtype);
  unsigned char numbers[GROUP_MAX * sizeof(double)] = {0};
  size_t bytes = 0;
  for (uint32_t i = 0; i < GROUP_MAX; i++) {
    ocl_number number = {.is_int = true};
    ocl_value value;
    if (call->scalars) {
      uint32_t of = launch->tensor[i < launch->count ? i : 0];
      ocl_number_of_scalar(&call->scalars[call->scalar_each ? of : 0], &number);
    } else {
      number = (ocl_number){.re = call->numbers[i]};
    }
    bytes = ocl_number_as(&number, dtype, &value);
    memcpy(numbers + i * bytes, &value, bytes);
  }
  int64_t space[2 * GROUP_MAX + 3], chunk = device->is_cpu ? 8192 : device->vector_width, chunks = 0;
  for (uint32_t i = 0; i < group; i++) {
    int64_t size = i < launch->count ? elements(operand(call, 0, launch->tensor[i])) : 0;
    space[i] = i < launch->count ? chunks : INT64_MAX;
    space[group + i] = size;
    chunks += (size + chunk - 1) / chunk;
  }
  space[2 * group] = chunk;
  space[2 * group + 1] = chunks;
  space[2 * group + 2] = call->flags;
  size_t local = launch->kernel.local[0];
  launch->kernel.global[0] = ((size_t)chunks + local - 1) / local * local;
  cl_uint index = 2 * group * (cl_uint)call->operands + 6;
  graft_status status = ocl_kernel_constant(&launch->kernel, index, GROUP_MAX * bytes, numbers);
  if (status != GRAFT_OK) return status;
  return ocl_kernel_constant(&launch->kernel, index + 1, sizeof *space * (2 * group + 3), space);
}

/* ---- The memo ---- */

static graft_status fill_memo(memo *memo, graft_device *device, const ocl_lists *call) {
  launch *open = NULL;
  uint64_t tensors = call->list[0].count;
  memo->group = group_of(device, call);
  memo->launches = calloc(tensors ? tensors : 1, sizeof *memo->launches);
  if (!memo->launches) return GRAFT_OUT_OF_MEMORY;
  for (uint32_t t = 0; t < tensors; t++) {
    if (elements(operand(call, 0, t)) == 0) continue;
    if (!open || open->count == memo->group || !same_dtypes(call, open->tensor[0], t)) {
      open = &memo->launches[memo->count++];
    }
    open->tensor[open->count++] = t;
  }
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < memo->count && status == GRAFT_OK; i++) {
    launch *launch = &memo->launches[i];
    status = make_kernel(&launch->kernel, device, call, launch->tensor[0], memo->group);
    if (status == GRAFT_OK) status = set_constants(launch, device, call, memo->group);
  }
  return status;
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const ocl_lists *call = call_pointer;
  (void)args;
  for (int k = 0; k < call->operands; k++) {
    if (!call->single[k] && call->list[k].count != call->list[0].count) return GRAFT_UNIMPLEMENTED;
  }
  for (uint32_t t = 0; t < call->list[0].count; t++) {
    if (!is_served(exec->device, call, t)) return GRAFT_UNIMPLEMENTED;
  }
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  graft_status status = fill_memo(memo, exec->device, call);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

/* ---- A call ---- */

/* The functional form: what is updated is copied first. */
static graft_status copy_to_output(graft_stream *stream, const graft_tensor_desc *from, const graft_tensor_desc *to) {
  if (from->dl.data == to->dl.data && from->dl.byte_offset == to->dl.byte_offset) return GRAFT_OK;
  return ocl_memory_api.copy(stream, to->dl.data, to->dl.byte_offset, from->dl.data, from->dl.byte_offset,
                             (uint64_t)elements(from) * GRAFT_DTYPE_BYTES(from->dl.dtype));
}

static graft_status copy_updated(graft_stream *stream, const ocl_lists *call) {
  graft_status status = GRAFT_OK;
  for (int k = 0; k < OCL_LISTS_MAX; k++) {
    for (uint64_t t = 0; t < call->from[k].count && status == GRAFT_OK; t++) {
      status = copy_to_output(stream, call->from[k].items[t], call->to[k].items[t]);
    }
  }
  if (status == GRAFT_OK && call->shared_from) status = copy_to_output(stream, call->shared_from, call->shared[0]);
  return status;
}

static graft_status run_launch(const graft_exec *exec, const ocl_lists *call, launch *launch, uint32_t group) {
  static const uint64_t zero = 0;
  ocl_argument arguments[2 * GROUP_MAX * OCL_LISTS_MAX + 6];
  cl_uint n = 0;
  const graft_tensor_desc *some = NULL;
  for (uint32_t t = 0; t < group; t++) {
    for (int k = 0; k < call->operands; k++) {
      const graft_tensor_desc *desc = operand(call, k, launch->tensor[t < launch->count ? t : 0]);
      if (!some) some = desc;
      arguments[n++] = (ocl_argument){sizeof(cl_mem), &desc->dl.data->handle};
      arguments[n++] = (ocl_argument){sizeof(uint64_t), &desc->dl.byte_offset};
    }
  }
  for (int k = 0; k < 3; k++) { /* what is absent is not looked at */
    const graft_tensor_desc *desc = call->shared[k];
    arguments[n++] = (ocl_argument){sizeof(cl_mem), desc ? &desc->dl.data->handle : &some->dl.data->handle};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), desc ? &desc->dl.byte_offset : &zero};
  }
  return ocl_launch(&launch->kernel, exec->stream, n, arguments);
}

graft_status ocl_lists_run(const graft_exec *exec, const ocl_lists *call) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, NULL, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  status = copy_updated(exec->stream, call);
  for (uint32_t i = 0; i < memo->count && status == GRAFT_OK; i++) {
    status = run_launch(exec, call, &memo->launches[i], memo->group);
  }
  return status;
}
