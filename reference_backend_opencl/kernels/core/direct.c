/* See direct.h. */
#include "kernels/core/direct.h"

#include <stdlib.h>

struct ocl_direct_kernels {
  ocl_kernel kernels[OCL_DIRECT_STAGES];
};
typedef ocl_direct_kernels memo;

int64_t ocl_direct_number(graft_dtype dtype, double value) {
  ocl_value bits = {.i64 = 0};
  if (dtype == GRAFT_F64)
    bits.d[0] = value;
  else
    bits.f[0] = (float)value;
  return bits.i64;
}

/* As direct.cl has it. */
typedef struct numbers {
  int64_t of[OCL_DIRECT_NUMBERS], per_item, units;
} numbers;

static graft_status prepare(ocl_kernel *kernel, graft_device *device, const ocl_direct *call, const ocl_stage *stage,
                            const ocl_text *head) {
  size_t local = device->is_cpu ? 1 : 64;
  int64_t items = device->is_cpu ? 8 * (int64_t)device->compute_units : INT32_MAX;
  numbers n = {.per_item = ocl_ceil_divide(stage->units, items), .units = stage->units};
  const int64_t *given = stage->numbers ? stage->numbers : call->numbers;
  for (int i = 0; i < call->count; i++) n.of[i] = given[i];
  graft_status status = ocl_kernel_init(kernel, device, head, stage->file ? stage->file : call->file, stage->entry);
  if (status != GRAFT_OK) return status;
  if (stage->together)
    ocl_kernel_size(kernel, stage->units * (int64_t)stage->together, stage->together);
  else
    ocl_kernel_size(kernel, ocl_ceil_divide(stage->units, n.per_item), local);
  return ocl_kernel_set(kernel, 1, &(ocl_argument)OCL_VALUE(n));
}

static graft_status prepare_all(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const ocl_direct *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->dtype);
  if (!dtype) return GRAFT_UNIMPLEMENTED;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, call->lanes ? call->lanes : 1, device->is_cpu ? 1 : 64);
  ocl_text_add(&head, "#define D %s\n", dtype->name);
  if (call->head) call->head(&head, call->of);
  graft_status status = GRAFT_OK;
  for (int i = 0; i < OCL_DIRECT_STAGES && status == GRAFT_OK; i++) {
    if (call->stages[i].units) status = prepare(&memo->kernels[i], device, call, &call->stages[i], &head);
  }
  ocl_text_free(&head);
  return status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = OCL_DIRECT_STAGES, .prepare = prepare_all};

static graft_status launch(const graft_exec *exec, ocl_kernel *kernel, const ocl_direct *call, const ocl_stage *stage,
                           const cl_mem *faults) {
  ocl_argument arguments[2 * OCL_DIRECT_PLACES + 1];
  cl_uint count = 0;
  const ocl_place *any = NULL;
  for (int i = 0; i < call->places && !any; i++) any = stage->places[i].buffer ? &stage->places[i] : NULL;
  if (!any) return GRAFT_OK; /* tensors without elements alone: nothing to do */
  for (int i = 0; i < call->places; i++) {
    const ocl_place *place = stage->places[i].buffer ? &stage->places[i] : any;
    arguments[count++] = (ocl_argument)OCL_BUFFER(place->buffer);
    arguments[count++] = (ocl_argument)OCL_VALUE(place->offset);
  }
  if (call->reports) arguments[count++] = (ocl_argument){sizeof *faults, faults};
  return ocl_launch(kernel, exec->stream, count, arguments);
}

graft_status ocl_direct_run(const graft_exec *exec, const ocl_direct *call) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  return status == GRAFT_OK ? ocl_direct_run_made(exec, call, memo) : status;
}

graft_status ocl_direct_make(graft_device *device, const ocl_direct *call, ocl_direct_kernels **made) {
  *made = calloc(1, sizeof **made);
  return *made ? prepare_all(*made, device, call) : GRAFT_OUT_OF_MEMORY;
}

void ocl_direct_destroy(ocl_direct_kernels *made) {
  for (int i = 0; made && i < OCL_DIRECT_STAGES; i++) ocl_kernel_destroy(&made->kernels[i]);
  free(made);
}

graft_status ocl_direct_run_made(const graft_exec *exec, const ocl_direct *call, ocl_direct_kernels *memo) {
  cl_mem faults = NULL;
  graft_status status = call->reports ? ocl_stream_faults(exec->stream, &faults) : GRAFT_OK;
  for (int i = 0; i < OCL_DIRECT_STAGES && status == GRAFT_OK; i++) {
    if (call->stages[i].units) status = launch(exec, &memo->kernels[i], call, &call->stages[i], &faults);
  }
  return status;
}
