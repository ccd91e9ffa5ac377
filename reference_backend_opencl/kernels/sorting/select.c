/* See select.h. */
#include "kernels/sorting/select.h"

enum {
  BITS = 11,
  COUNTERS = 4 * (1 << BITS) + 16, /* of a work-item, as select.cl has it */
  STATE_BYTES = 16,
  PASSES_MAX = 6
};

/* As select.cl has it. */
typedef struct parts {
  int64_t size, part, items;
} parts;

typedef struct memo {
  ocl_kernel count, choose;
  parts space;
  int passes, key_bits;
} memo;

bool ocl_select_serves(const graft_device *device, const graft_tensor_desc *in) {
  return device->is_cpu && ocl_elements(in) > OCL_SMALL && ocl_elements(in) <= UINT32_MAX;
}

static graft_status make_kernels(memo *memo, graft_device *device, const ocl_selection *call, const ocl_dtype *dtype) {
  const bool wide = dtype->bytes > 4;
  const char *files = "core/items sorting/items sorting/select";
  memo->key_bits = wide ? 64 : 32;
  memo->passes = (int)ocl_ceil_divide(memo->key_bits, BITS);
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, 1);
  ocl_text_add(&head, "#define D %s\n#define as_key as_%s\n%s#define BITS %d\n%s", dtype->name, wide ? "ulong" : "uint",
               wide ? "" : "#define NARROW\n", BITS, call->passes_nan ? "#define PASSES_NAN\n" : "");
  graft_status status = ocl_kernel_init(&memo->count, device, &head, files, "count_digit");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->choose, device, &head, files, "choose_digit");
  ocl_text_free(&head);
  return status;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const ocl_selection *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  if (!dtype || call->out->dl.dtype != dtype->code || dtype->class == OCL_CLASS_COMPLEX) return GRAFT_UNIMPLEMENTED;
  const int64_t size = ocl_elements(call->in);
  const int64_t part = ocl_ceil_divide(size, 2 * (int64_t)device->compute_units);
  memo->space = (parts){size, part, ocl_ceil_divide(size, part)};
  graft_status status = make_kernels(memo, device, call, dtype);
  ocl_kernel_size(&memo->count, memo->space.items, 1);
  ocl_kernel_size(&memo->choose, 1, 1);
  return status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare};

graft_status ocl_select_run(const graft_exec *exec, const ocl_selection *call) {
  memo *memo;
  ocl_place work;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  status = ocl_workspace(exec, STATE_BYTES + (uint64_t)memo->space.items * COUNTERS * sizeof(cl_uint), &work);
  for (int pass = 0; status == GRAFT_OK && pass < memo->passes; pass++) {
    const int end = memo->key_bits - pass * BITS;
    const cl_int bits = end < BITS ? end : BITS, shift = end - bits;
    const ocl_argument count[] = {OCL_TENSOR(call->in), OCL_PLACE(work), OCL_VALUE(memo->space), OCL_VALUE(shift),
                                  OCL_VALUE(bits)};
    status = ocl_launch(&memo->count, exec->stream, OCL_ALL(count));
    const ocl_argument choose[] = {OCL_TENSOR(call->out),  OCL_TENSOR(call->in), OCL_PLACE(work),
                                   OCL_VALUE(memo->space), OCL_VALUE(shift),     OCL_VALUE(bits)};
    if (status == GRAFT_OK) status = ocl_launch(&memo->choose, exec->stream, OCL_ALL(choose));
  }
  return status;
}
