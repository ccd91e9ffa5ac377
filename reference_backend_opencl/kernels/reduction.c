/* Reductions over some dimensions: rows of a table, like the pointwise ops. A call is one pass, or two where there are
 * too few outputs to keep the device busy: the first then leaves partial results in workspace, which the second
 * combines. */
#include <stdlib.h>
#include <string.h>

#include "families.h"

typedef struct row {
  uint32_t op_id;
  uint64_t inputs, outputs;
  const char *init, *map, *combine, *finish; /* OpenCL C; x is the number of elements reduced */
} row;

static const row rows[] = {
    {GRAFT_OP_SUM_DIM_INTLIST, OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX, OCL_FLOATS | OCL_BIT(I64) | OCL_COMPLEX,
     "0", "v", "ADD(a, b)", "v"},
};

enum { ROW_SUM };

bool ocl_reduction_caps(uint32_t op_id, ocl_op_caps *caps) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].op_id != op_id) continue;
    caps->inputs = rows[i].inputs;
    caps->outputs = rows[i].outputs;
    caps->flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED | GRAFT_CAP_MIXED_DTYPE;
    return true;
  }
  return false;
}

/* ---- A call ---- */

typedef struct call {
  const row *row;
  const graft_tensor_desc *in, *out;
  uint32_t reduced; /* bit d: dimension d of `in` */
  bool keepdim;
} call;

static uint32_t dims_to_bits(graft_int_list dims, int32_t ndim) {
  if (!dims.items || dims.count == 0) return (UINT32_C(1) << ndim) - 1;
  uint32_t bits = 0;
  for (uint64_t i = 0; i < dims.count; i++) bits |= UINT32_C(1) << dims.items[i];
  return bits;
}

typedef struct pass {
  ocl_geometry kept;    /* operands: out, in */
  ocl_geometry reduced; /* operand: in */
  const ocl_dtype *out, *in;
  const char *map, *finish;
  bool rows;
  int64_t splits, split_stride;
} pass;

static void split_geometry(const call *call, pass *pass) {
  const graft_dl_tensor *in = &call->in->dl, *out = &call->out->dl;
  pass->kept.operands = 2;
  pass->reduced.operands = 1;
  int o = out->ndim - 1;
  for (int d = in->ndim - 1; d >= 0; d--) {
    bool is_reduced = call->reduced >> d & 1;
    int64_t strides[OCL_OPERANDS_MAX] = {in->strides[d]};
    if (is_reduced) {
      ocl_geometry_push_outer(&pass->reduced, in->shape[d], strides);
    } else {
      strides[0] = out->strides[o];
      strides[1] = in->strides[d];
      ocl_geometry_push_outer(&pass->kept, in->shape[d], strides);
    }
    if (!is_reduced || call->keepdim) o--;
  }
}

/* The innermost kept dimension should be the input's: the output is the smaller of the two. */
static void order(pass *pass) {
  int64_t out[OCL_DIMS_MAX];
  memcpy(out, pass->kept.stride[0], sizeof out);
  memcpy(pass->kept.stride[0], pass->kept.stride[1], sizeof out);
  memcpy(pass->kept.stride[1], out, sizeof out);
  ocl_geometry_sort(&pass->kept);
  memcpy(out, pass->kept.stride[0], sizeof out);
  memcpy(pass->kept.stride[0], pass->kept.stride[1], sizeof out);
  memcpy(pass->kept.stride[1], out, sizeof out);
  ocl_geometry_collapse(&pass->kept);
  ocl_geometry_sort(&pass->reduced);
  ocl_geometry_collapse(&pass->reduced);
  bool wide_columns = pass->kept.stride[1][0] == 1 && pass->kept.size[0] >= 4;
  pass->rows = pass->reduced.stride[0][0] == 1 || !wide_columns;
}

static int64_t elements(const ocl_geometry *geometry) {
  int64_t count = 1;
  for (int d = 0; d < geometry->rank; d++) count *= geometry->size[d];
  return count;
}

/* Accumulation is in f32 for halves and f32, f64 for f64, exact for whole numbers. */
static const ocl_dtype *accumulator(const graft_device *device, const ocl_dtype *out) {
  if (out->class == OCL_CLASS_FLOAT) return ocl_dtype_of(device, out->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  return out->class == OCL_CLASS_COMPLEX ? out : ocl_dtype_of(device, GRAFT_I64);
}

/* An explicit dtype converts before it sums; only where that is no rounding of its own. */
static bool converts(const ocl_dtype *from, const ocl_dtype *to) {
  if (from == to) return true;
  bool whole = from->class == OCL_CLASS_INT || from->class == OCL_CLASS_BOOL;
  if (to->class == OCL_CLASS_INT) return whole;
  if (to->class == OCL_CLASS_FLOAT) {
    return (whole && to->bytes >= 4) || (from->class == OCL_CLASS_FLOAT && from->bytes < to->bytes);
  }
  return false;
}

/* ---- The memo ---- */

typedef struct memo {
  ocl_kernel kernel[2];
  int passes;
  const ocl_dtype *accumulator;
  uint64_t partial_bytes;
  ocl_number count;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel[0]);
  ocl_kernel_destroy(&memo->kernel[1]);
  free(memo);
}

static int inner_kind(int64_t stride) {
  return stride == 0 ? 0 : stride == 1 ? 1 : 2;
}

static int add_geometry(int64_t *space, int n, const ocl_geometry *geometry) {
  for (int d = 0; d < geometry->rank; d++) space[n++] = geometry->size[d];
  for (int k = 0; k < geometry->operands; k++) {
    for (int d = 0; d < geometry->rank; d++) space[n++] = geometry->stride[k][d];
  }
  return n;
}

static int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static graft_status prepare_pass(ocl_kernel *kernel, graft_device *device, const row *row, const pass *pass,
                                 const ocl_dtype *compute) {
  size_t local = device->is_cpu ? 1 : 64;
  int64_t vec = compute->class == OCL_CLASS_COMPLEX ? 1 : device->vector_width;
  ocl_text head = {0};
  ocl_head_types(&head, compute, (unsigned)vec, local);
  ocl_text_add(&head, "#define KEPT %d\n#define REDUCED %d\n#define D_OUT %s\n#define D_IN %s\n", pass->kept.rank,
               pass->reduced.rank, pass->out->name, pass->in->name);
  ocl_text_add(&head, "%s#define INNER_IN %d\n#define INNER_OUT %d\n", pass->rows ? "#define ROWS\n" : "",
               inner_kind(pass->rows ? pass->reduced.stride[0][0] : pass->kept.stride[1][0]),
               inner_kind(pass->kept.stride[0][0]));
  ocl_text_add(&head, "#define INIT (CT)(%s)\n#define MAP(v) %s\n#define COMBINE(a, b) %s\n#define FINISH(v) %s\n",
               row->init, pass->map, row->combine, pass->finish);
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(kernel, device, head.items, "reduction", "reduce");
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;

  int64_t space[5 * OCL_DIMS_MAX + 10];
  int n = add_geometry(space, 0, &pass->kept);
  n = add_geometry(space, n, &pass->reduced);
  int64_t segment = pass->rows ? 64 * vec : 256, per_row = ceil_divide(pass->reduced.size[0], segment);
  int64_t segments = per_row * (elements(&pass->reduced) / pass->reduced.size[0]);
  int64_t outputs_per_unit = pass->rows ? 1 : vec;
  int64_t units_per_row = ceil_divide(pass->kept.size[0], outputs_per_unit);
  int64_t units_per_split = units_per_row * (elements(&pass->kept) / pass->kept.size[0]);
  int64_t units = units_per_split * pass->splits;
  int64_t items = device->is_cpu ? 8 * (int64_t)device->compute_units : INT64_MAX;
  int64_t per_item = units > items ? ceil_divide(units, items) : 1;
  int64_t rest[10] = {segment,
                      per_row,
                      segments,
                      ceil_divide(segments, pass->splits),
                      pass->split_stride,
                      outputs_per_unit,
                      units_per_row,
                      units_per_split,
                      units,
                      per_item};
  memcpy(space + n, rest, sizeof rest);
  kernel->local[0] = local;
  kernel->global[0] = ((size_t)ceil_divide(units, per_item) + local - 1) / local * local;
  return ocl_kernel_constant(kernel, 5, sizeof *space * (size_t)(n + 10), space);
}

/* How many work-items should share an output: as many as keep the device busy, if each has enough to do. */
static int64_t choose_splits(const graft_device *device, const pass *pass) {
  int64_t wanted = device->is_cpu ? 2 * (int64_t)device->compute_units : 512 * (int64_t)device->compute_units;
  int64_t least = device->is_cpu ? 16384 : 512; /* elements for each */
  int64_t outputs = elements(&pass->kept), reduced = elements(&pass->reduced);
  int64_t splits = wanted / outputs, most = reduced / least;
  if (splits > most) splits = most;
  return splits > 1 ? splits : 1;
}

static graft_status prepare(memo *memo, graft_device *device, const call *call, pass *only) {
  int64_t outputs = elements(&only->kept), splits = choose_splits(device, only);
  memo->passes = splits > 1 ? 2 : 1;
  only->splits = splits;
  if (splits == 1) return prepare_pass(&memo->kernel[0], device, call->row, only, memo->accumulator);

  pass first = *only, second = *only;
  int64_t stride = 1;
  for (int d = 0; d < only->kept.rank; d++) {
    first.kept.stride[0][d] = second.kept.stride[1][d] = stride;
    stride *= only->kept.size[d];
  }
  first.out = second.in = memo->accumulator;
  first.finish = "v";
  second.map = "v";
  first.split_stride = outputs;
  second.splits = 1;
  second.reduced = (ocl_geometry){.rank = 1, .operands = 1, .size = {splits}, .stride = {{outputs}}};
  second.rows = false;
  ocl_geometry_collapse(&second.kept);
  memo->partial_bytes = (uint64_t)(outputs * splits) * memo->accumulator->bytes;
  graft_status status = prepare_pass(&memo->kernel[0], device, call->row, &first, memo->accumulator);
  return status != GRAFT_OK ? status : prepare_pass(&memo->kernel[1], device, call->row, &second, memo->accumulator);
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const call *call = call_pointer;
  graft_device *device = exec->device;
  pass only = {.in = ocl_dtype_of(device, call->in->dl.dtype),
               .out = ocl_dtype_of(device, call->out->dl.dtype),
               .map = call->row->map,
               .finish = call->row->finish};
  (void)args;
  if (!only.in || !only.out || call->in->dl.ndim > OCL_DIMS_MAX || !(call->row->inputs >> only.in->number & 1) ||
      !(call->row->outputs >> only.out->number & 1) || !converts(only.in, only.out)) {
    return GRAFT_UNIMPLEMENTED;
  }
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  split_geometry(call, &only);
  order(&only);
  memo->accumulator = accumulator(device, only.out);
  memo->count = (ocl_number){.is_int = true, .i = elements(&only.reduced), .re = (double)elements(&only.reduced)};
  graft_status status = prepare(memo, device, call, &only);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

static graft_status run(const graft_exec *exec, const call *call) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, NULL, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  ocl_value count;
  size_t count_bytes = ocl_number_as(&memo->count, memo->accumulator, &count);
  if (memo->passes == 1) {
    const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->in), {count_bytes, &count}};
    return ocl_launch(&memo->kernel[0], exec->stream, 5, arguments);
  }
  graft_buffer *partial;
  uint64_t offset;
  status = exec->device->plugin->host->workspace(exec, memo->partial_bytes, 0, &partial, &offset);
  if (status != GRAFT_OK) return status;
  const ocl_argument first[] = {OCL_BUFFER(partial), OCL_VALUE(offset), OCL_TENSOR(call->in), {count_bytes, &count}};
  status = ocl_launch(&memo->kernel[0], exec->stream, 5, first);
  if (status != GRAFT_OK) return status;
  const ocl_argument second[] = {OCL_TENSOR(call->out), OCL_BUFFER(partial), OCL_VALUE(offset), {count_bytes, &count}};
  return ocl_launch(&memo->kernel[1], exec->stream, 5, second);
}

/* ---- Slots ---- */

graft_status ocl_op_sum_dim_IntList(const graft_exec *exec, const graft_args_sum_dim_IntList *args) {
  call call = {&rows[ROW_SUM], args->self, args->out, dims_to_bits(args->dim, args->self->dl.ndim), args->keepdim};
  return run(exec, &call);
}
