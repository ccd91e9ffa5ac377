/* histc: the bounds of the data where these are wanted, counts, and counts as the result's numbers. */
#include "runtime/ocl.h"

/* As histogram.cl has it. */
typedef struct space {
  int64_t n, chunk, bins, rows;
} space;

typedef struct memo {
  ocl_kernel extremes, count, store;
  const ocl_dtype *wide; /* what bounds are computed in */
  space space;
  int64_t groups;
  uint64_t counts_bytes; /* the workspace begins with so many; behind them are a pair of bounds for each group */
} memo;

enum {
  BINS_MAX = 1 << 24, /* f32 can say no more */
  LOCAL_BINS = 4096,  /* 16 KiB, which OpenCL asks each device for */
  PER_ITEM = 16
};

static graft_status make_kernels(memo *memo, graft_device *device, const ocl_dtype *dtype, uint32_t op_id) {
  const space *s = &memo->space;
  size_t local = device->is_cpu ? 1 : 256;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, device->is_cpu ? device->vector_width : 1, local);
  ocl_text_add(&head, "#define D %s\n#define OP_ID %u\n", dtype->name, op_id);
  if (!device->is_cpu && s->bins <= LOCAL_BINS) ocl_text_add(&head, "#define LOCAL_BINS %d\n", LOCAL_BINS);
  graft_status status = ocl_kernel_init(&memo->extremes, device, &head, "reduction/histogram", "extremes");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->count, device, &head, "reduction/histogram", "count_parts");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->store, device, &head, "reduction/histogram", "store_counts");
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;
  ocl_kernel_size(&memo->extremes, memo->groups * (int64_t)local, local);
  ocl_kernel_size(&memo->count, memo->groups * (int64_t)local, local);
  ocl_kernel_size(&memo->store, s->bins, local);
  const ocl_argument space = OCL_VALUE(*s);
  status = ocl_kernel_set(&memo->extremes, 1, &space);
  if (status == GRAFT_OK) status = ocl_kernel_set(&memo->count, 1, &space);
  return status == GRAFT_OK ? ocl_kernel_set(&memo->store, 1, &space) : status;
}

/* On a CPU each work-item counts in a row of its own, and there are no more of these than elements ask for. */
static void plan(memo *memo, const graft_device *device) {
  space *s = &memo->space;
  int64_t most = 4 * (int64_t)device->compute_units;
  memo->groups = s->n / (device->is_cpu ? 4096 + s->bins : 256 * PER_ITEM) + 1;
  if (memo->groups > most) memo->groups = most;
  s->chunk = ocl_ceil_divide(s->n, memo->groups);
  memo->groups = s->n ? ocl_ceil_divide(s->n, s->chunk) : 1;
  s->rows = device->is_cpu ? memo->groups : 1;
  memo->counts_bytes = (uint64_t)ocl_round_up(s->rows * (s->bins + 1) * (int64_t)sizeof(uint32_t), 16);
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_args_histc *args = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, args->self->dl.dtype);
  if (!dtype || args->out->dl.dtype != dtype->code || args->bins > BINS_MAX) return GRAFT_UNIMPLEMENTED;
  if (dtype->class != OCL_CLASS_INT && dtype->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  bool narrow = dtype->class == OCL_CLASS_FLOAT && dtype->code != GRAFT_F64;
  memo->wide = ocl_dtype_of(device, narrow ? GRAFT_F32 : GRAFT_F64);
  memo->space = (space){.n = ocl_elements(args->self), .bins = args->bins};
  if (!memo->wide || memo->space.n > UINT32_MAX) return GRAFT_UNIMPLEMENTED;
  plan(memo, device);
  return make_kernels(memo, device, dtype, args->head.op_id);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 3, .prepare = prepare};

static bool are_equal(const ocl_number *a, const ocl_number *b) {
  return a->is_int && b->is_int ? a->i == b->i : a->re == b->re;
}

/* Equal bounds stand for those of the data. */
graft_status ocl_op_histc(const graft_exec *exec, const graft_args_histc *args) {
  memo *memo;
  ocl_place counts;
  cl_mem faults;
  ocl_number numbers[2];
  ocl_value low, high;
  const uint32_t zero = 0;
  graft_status status = ocl_memo_get(exec, &memo_type, args, &memo);
  if (status != GRAFT_OK) return status;
  status = ocl_workspace(exec, memo->counts_bytes + 2 * (uint64_t)memo->groups * memo->wide->bytes, &counts);
  if (status != GRAFT_OK) return status;
  status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  ocl_number_of_scalar(args->min, &numbers[0]);
  ocl_number_of_scalar(args->max, &numbers[1]);
  const ocl_place bounds = {counts.buffer, counts.offset + memo->counts_bytes};
  const graft_tensor_desc *in = memo->space.n ? args->self : args->out; /* of nothing nothing is read */
  int64_t pairs = 0;
  if (are_equal(&numbers[0], &numbers[1]) && memo->space.n) {
    const ocl_argument extremes[] = {OCL_PLACE(bounds), OCL_TENSOR(in)};
    pairs = memo->groups;
    status = ocl_launch(&memo->extremes, exec->stream, OCL_ALL(extremes));
  }
  if (status == GRAFT_OK && !exec->device->is_cpu) {
    status = ocl_fill(exec->stream, counts.buffer, counts.offset, memo->counts_bytes, &zero, sizeof zero);
  }
  if (status != GRAFT_OK) return status;
  const ocl_argument count[] = {OCL_PLACE(counts),
                                OCL_TENSOR(in),
                                OCL_PLACE(bounds),
                                OCL_VALUE(faults),
                                OCL_VALUE(pairs),
                                {ocl_number_as(&numbers[0], memo->wide, &low), &low},
                                {ocl_number_as(&numbers[1], memo->wide, &high), &high}};
  status = ocl_launch(&memo->count, exec->stream, OCL_ALL(count));
  const ocl_argument store[] = {OCL_TENSOR(args->out), OCL_PLACE(counts)};
  return status == GRAFT_OK ? ocl_launch(&memo->store, exec->stream, OCL_ALL(store)) : status;
}
