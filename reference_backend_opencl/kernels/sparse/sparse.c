/* Products with a matrix in CSR form: one program, a kernel an op. */
#include "runtime/ocl.h"

/* As sparse.cl has it. */
typedef struct space {
  int64_t rows, columns, elements, size, op_id;
} space;

typedef struct csr {
  const char *entry;
  const graft_tensor_desc *out, *starts, *columns, *first, *second; /* the operands in their order */
  space space;
} csr;

typedef struct memo {
  ocl_kernel kernel;
} memo;

/* One for each result, and no fewer than there are rows and elements to look at; on a CPU some for each core. */
static int64_t items_of(const graft_device *device, const csr *call) {
  int64_t results = ocl_elements(call->out), places = call->space.rows + 1;
  if (places < call->space.elements) places = call->space.elements;
  const int64_t items = results > places ? results : places, most = 16 * (int64_t)device->compute_units;
  const int64_t of_item = 64; /* results, at least */
  if (!device->is_cpu) return items;
  return items > most * of_item ? most : ocl_ceil_divide(items, of_item);
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const csr *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->out->dl.dtype);
  if (!dtype) return GRAFT_UNIMPLEMENTED;
  const size_t local = device->is_cpu ? 1 : 64;
  const bool vectors = device->is_cpu && dtype->class != OCL_CLASS_COMPLEX;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, vectors ? (unsigned)device->vector_width : 1, local);
  ocl_text_add(&head, "#define D %s\n", dtype->name);
  graft_status status = ocl_kernel_init(&memo->kernel, device, &head, "core/places sparse/sparse", call->entry);
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;
  ocl_kernel_size(&memo->kernel, items_of(device, call), local);
  return ocl_kernel_set(&memo->kernel, 1, &(ocl_argument)OCL_VALUE(call->space));
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

/* Of a tensor without elements nothing is read or written; starts has some always. */
static const graft_tensor_desc *filled(const csr *call, const graft_tensor_desc *t) {
  return t->dl.data ? t : call->starts;
}

static graft_status run(const graft_exec *exec, const csr *call) {
  memo *memo;
  cl_mem faults;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(filled(call, call->out)),     OCL_TENSOR(call->starts),
                                    OCL_TENSOR(filled(call, call->columns)), OCL_TENSOR(filled(call, call->first)),
                                    OCL_TENSOR(filled(call, call->second)),  OCL_VALUE(faults)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_csr_mm(const graft_exec *exec, const graft_args_csr_mm *args) {
  const int64_t *dense = args->dense->dl.shape;
  const csr call = {
      .entry = "multiply",
      .out = args->out,
      .starts = args->crow_indices,
      .columns = args->col_indices,
      .first = args->values,
      .second = args->dense,
      .space = {args->out->dl.shape[0], dense[0], ocl_elements(args->values), dense[1], args->head.op_id}};
  return run(exec, &call);
}

graft_status ocl_op_csr_sampled_mm(const graft_exec *exec, const graft_args_csr_sampled_mm *args) {
  const int64_t *left = args->left->dl.shape, elements = ocl_elements(args->out);
  const csr call = {.entry = "sample",
                    .out = args->out,
                    .starts = args->crow_indices,
                    .columns = args->col_indices,
                    .first = args->left,
                    .second = args->right,
                    .space = {left[0], args->right->dl.shape[0], elements, left[1], args->head.op_id}};
  return run(exec, &call);
}

#define ALL (OCL_FLOATS | OCL_INTS | OCL_COMPLEX)

static const ocl_op ops[] = {
    {OCL_OP(csr_mm), .inputs = ALL, .outputs = ALL, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
    {OCL_OP(csr_sampled_mm), .inputs = ALL, .outputs = ALL, .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY},
};
OCL_FAMILY(sparse, ops)
