/* Pooling: maximum with indices and its undoing, average, and their gradients, over planes of two or three dims. */
#include "runtime/ocl.h"

enum { DIMS = 3 };

typedef enum windows { SLIDING, ADAPTIVE, FRACTIONAL, NONE } windows; /* none: elements go where indices say */

/* What makes an op of the engine. */
typedef struct recipe {
  int dims;
  windows windows;
  bool maximum;
} recipe;

enum {
  SELF,
  GRAD_OUTPUT,
  OUT,
  OUT0,
  OUT1,
  INDICES,
  RANDOM_SAMPLES,
  KERNEL_SIZE,
  STRIDE,
  PADDING,
  DILATION,
  COUNT_INCLUDE_PAD,
  DIVISOR_OVERRIDE,
  READS
};
static const char *const reads[] = {[SELF] = "self",
                                    [GRAD_OUTPUT] = "grad_output",
                                    [OUT] = "out",
                                    [OUT0] = "out0",
                                    [OUT1] = "out1",
                                    [INDICES] = "indices",
                                    [RANDOM_SAMPLES] = "random_samples",
                                    [KERNEL_SIZE] = "kernel_size",
                                    [STRIDE] = "stride",
                                    [PADDING] = "padding",
                                    [DILATION] = "dilation",
                                    [COUNT_INCLUDE_PAD] = "count_include_pad",
                                    [DIVISOR_OVERRIDE] = "divisor_override",
                                    [READS] = NULL};

typedef struct operands {
  const recipe *recipe;
  /* in: the pooled side; out: the result, or its gradient; indices: of a maximum */
  const graft_tensor_desc *in, *out, *indices, *samples;
  int64_t kernel[DIMS], stride[DIMS], padding[DIMS], dilation[DIMS]; /* 1, 1, 0 and 1 where the op has no such dim */
  bool count_padding, backward;                                      /* backward: from the pooled side to the other */
  int64_t divisor;                                                   /* 0: none given */
  uint32_t op_id;
} operands;

/* As pooling.cl has it. */
typedef struct pools {
  int64_t n, c, in[DIMS], out[DIMS];
  int64_t in_stride[DIMS + 2], out_stride[DIMS + 2], index_stride[DIMS + 2];
  int64_t per_item, op_id, through_work;
  float step[4];
} pools;

typedef struct memo {
  ocl_kernel kernel;
  uint64_t work_bytes; /* 0: sums are made in the output */
} memo;

static void strides_of(const graft_dl_tensor *t, int dims, int64_t *strides) {
  int lead = t->ndim - dims, front = DIMS - dims;
  strides[0] = lead == 2 ? t->strides[0] : 0;
  strides[1] = t->strides[lead - 1];
  for (int d = 0; d < DIMS; d++) strides[2 + d] = d < front ? 0 : t->strides[lead + d - front];
}

static pools pools_of(const operands *call) {
  const graft_dl_tensor *in = &call->in->dl, *out = &call->out->dl;
  int dims = call->recipe->dims, lead = in->ndim - dims, front = DIMS - dims;
  pools p = {.n = lead == 2 ? in->shape[0] : 1, .c = in->shape[lead - 1], .op_id = call->op_id};
  for (int d = 0; d < DIMS; d++) {
    p.in[d] = d < front ? 1 : in->shape[lead + d - front];
    p.out[d] = d < front ? 1 : out->shape[lead + d - front];
    if (p.out[d] > 1) p.step[d] = (float)(p.in[d] - call->kernel[d]) / (float)(p.out[d] - 1);
  }
  strides_of(in, dims, p.in_stride);
  strides_of(out, dims, p.out_stride);
  strides_of(call->indices ? &call->indices->dl : out, dims, p.index_stride);
  return p;
}

/* Whether a work-item can add up in the output itself: dense planes one after the other, in the type it adds in. */
static bool sums_in_place(const pools *p, const ocl_dtype *dtype) {
  static const graft_dtype whole[] = {GRAFT_F32, GRAFT_F64, GRAFT_I32, GRAFT_I64};
  bool same = false;
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) same = same || dtype->code == whole[i];
  int64_t size = 1;
  for (int d = DIMS - 1; d >= 0; size *= p->in[d--]) same = same && (p->in[d] == 1 || p->in_stride[2 + d] == size);
  return same && p->in_stride[1] == size && (p->n == 1 || p->in_stride[0] == p->c * size);
}

static int64_t plane_size(const int64_t *size) {
  return size[0] * size[1] * size[2];
}

/* Whether no two windows of an average share an element: its gradient then goes by rows on a CPU. */
static bool are_apart(const graft_device *device, const operands *call) {
  bool apart = device->is_cpu && !call->recipe->maximum && call->recipe->windows == SLIDING;
  for (int d = 0; d < DIMS; d++) apart = apart && call->stride[d] >= call->kernel[d];
  return apart;
}

/* Returns how many work-items there are. */
static int64_t plan(const graft_device *device, const operands *call, pools *p, memo *memo, const ocl_dtype *dtype,
                    size_t local) {
  bool by_plane = call->recipe->maximum && call->backward; /* a work-group a plane */
  int64_t units = p->n * p->c * (by_plane ? 1 : plane_size(call->backward ? p->in : p->out));
  if (call->backward && are_apart(device, call)) units /= p->in[2];
  int64_t items = device->is_cpu ? 8 * (int64_t)device->compute_units : INT32_MAX;
  p->per_item = units > items ? ocl_ceil_divide(units, items) : 1;
  p->through_work = by_plane && call->recipe->windows != NONE && !sums_in_place(p, dtype);
  if (p->through_work) memo->work_bytes = (uint64_t)(units * plane_size(p->in)) * 8;
  return ocl_ceil_divide(units, p->per_item) * (by_plane ? (int64_t)local : 1);
}

static void head_numbers(ocl_text *head, const char *name, const int64_t *numbers, bool narrow) {
  for (int d = 0; d < DIMS; d++)
    ocl_text_add(head, "#define %s_%d %lld%s\n", name, d, (long long)numbers[d], narrow ? "" : "L");
}

/* The largest number of an element of planes of these sizes. */
static int64_t reach_of(const pools *p, const int64_t *size, const int64_t *stride) {
  const int64_t counts[] = {p->n, p->c, size[0], size[1], size[2]};
  int64_t reach = 0;
  for (int d = 0; d < DIMS + 2; d++) reach += (counts[d] - 1) * stride[d];
  return reach;
}

/* Whether all numbers of places, elements, and of what lies a window beyond them fit in 32 bits. On a CPU 64 are as
 * fast. */
static bool is_narrow(const graft_device *device, const operands *call, const pools *p) {
  const int64_t most = INT32_MAX, reaches[] = {reach_of(p, p->in, p->in_stride), reach_of(p, p->out, p->out_stride),
                                               reach_of(p, p->out, p->index_stride), p->n * p->c * plane_size(p->in),
                                               p->n * p->c * plane_size(p->out)};
  bool narrow = !device->is_cpu;
  for (size_t i = 0; i < sizeof reaches / sizeof *reaches; i++) narrow = narrow && reaches[i] <= most;
  for (int d = 0; d < DIMS; d++) {
    const int64_t numbers[] = {call->kernel[d],   call->stride[d], call->padding[d],
                               call->dilation[d], p->in[d],        p->out[d]};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) narrow = narrow && numbers[i] < 1 << 14;
  }
  return narrow;
}

/* Forward and backward are of one program; where no window is asked for, adaptive ones stand in the head. */
static graft_status make_kernel(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype) {
  static const char *const windows[] = {[SLIDING] = "",
                                        [ADAPTIVE] = "#define ADAPTIVE\n",
                                        [FRACTIONAL] = "#define FRACTIONAL\n",
                                        [NONE] = "#define ADAPTIVE\n"};
  const char *entry = call->recipe->windows == NONE ? "unpool" : call->backward ? "pool_back" : "pool";
  pools p = pools_of(call);
  /* Of a maximum's gradient all of a group take part in a plane. */
  bool is_wide = call->recipe->maximum && call->backward && plane_size(p.out) >= 1024;
  size_t local = device->is_cpu ? 1 : is_wide ? 256 : 64;
  int64_t items = plan(device, call, &p, memo, dtype, local);
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define DIMS %d\n%s%s", dtype->name, call->recipe->dims,
               call->recipe->maximum ? "#define MAX\n" : "", windows[call->recipe->windows]);
  ocl_text_add(&head, "#define COUNT_PADDING %d\n#define DIVISOR %lldL\n", call->count_padding,
               (long long)call->divisor);
  if (are_apart(device, call)) ocl_text_add(&head, "#define APART\n");
  const bool narrow = is_narrow(device, call, &p);
  if (narrow) ocl_text_add(&head, "#define NARROW\n");
  head_numbers(&head, "KERNEL", call->kernel, narrow);
  head_numbers(&head, "STRIDE", call->stride, narrow);
  head_numbers(&head, "PADDING", call->padding, narrow);
  head_numbers(&head, "DILATION", call->dilation, narrow);
  graft_status status = ocl_kernel_make(&memo->kernel, device, &head, "pooling/pooling", entry);
  ocl_kernel_size(&memo->kernel, items, local);
  return status == GRAFT_OK ? ocl_kernel_set(&memo->kernel, 1, &(ocl_argument)OCL_VALUE(p)) : status;
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  int lead = call->in->dl.ndim - call->recipe->dims;
  if (!dtype || call->out->dl.dtype != dtype->code || lead < 1 || lead > 2 ||
      (dtype->class != OCL_CLASS_FLOAT && dtype->class != OCL_CLASS_INT)) {
    return GRAFT_UNIMPLEMENTED;
  }
  if (call->indices && call->indices->dl.dtype != GRAFT_I64) return GRAFT_UNIMPLEMENTED;
  if (call->samples && call->samples->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  return make_kernel(memo, device, call, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

static graft_status run_maximum_backward(const graft_exec *exec, memo *memo, const operands *call) {
  cl_mem faults;
  ocl_place work = ocl_place_of(call->in);
  graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status == GRAFT_OK && memo->work_bytes) status = ocl_workspace(exec, memo->work_bytes, &work);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(call->in), OCL_PLACE(work), OCL_TENSOR(call->out),
                                    OCL_TENSOR(call->indices), OCL_VALUE(faults)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

static graft_status run_unpool(const graft_exec *exec, memo *memo, const operands *call) {
  cl_mem faults;
  graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(call->in), OCL_TENSOR(call->out), OCL_TENSOR(call->indices),
                                    OCL_VALUE(faults)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

static graft_status run_maximum(const graft_exec *exec, memo *memo, const operands *call) {
  const ocl_argument arguments[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->indices), OCL_TENSOR(call->in)};
  if (!call->samples) return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
  const ocl_argument with_samples[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->indices), OCL_TENSOR(call->in),
                                       OCL_TENSOR(call->samples)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(with_samples));
}

static graft_status run_average(const graft_exec *exec, memo *memo, const operands *call) {
  const graft_tensor_desc *to = call->backward ? call->in : call->out, *from = call->backward ? call->out : call->in;
  const ocl_argument arguments[] = {OCL_TENSOR(to), OCL_TENSOR(from)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

static void read_list(const ocl_call *call, int read, int64_t otherwise, int64_t *to) {
  const recipe *recipe = call->op->recipe;
  const graft_int_list list = recipe->windows == NONE ? (graft_int_list){0} : ocl_read_ints(call, read);
  int front = DIMS - recipe->dims;
  for (int d = 0; d < DIMS; d++) to[d] = d < front || !list.count ? otherwise : list.items[d - front];
}

static graft_status run(const ocl_call *call) {
  const recipe *recipe = call->op->recipe;
  const graft_tensor_desc *grad = ocl_read_tensor(call, recipe->windows == NONE ? SELF : GRAD_OUTPUT);
  operands operands = {.recipe = recipe,
                       .backward = grad != NULL,
                       .count_padding = ocl_read_bool(call, COUNT_INCLUDE_PAD),
                       .divisor = ocl_read_int(call, DIVISOR_OVERRIDE, 0),
                       .op_id = call->op->id};
  bool maximum = recipe->maximum;
  operands.in = ocl_read_tensor(call, grad ? OUT : SELF);
  operands.out = grad ? grad : ocl_read_tensor(call, maximum ? OUT0 : OUT);
  operands.indices = ocl_read_tensor(call, grad ? INDICES : OUT1);
  operands.samples = ocl_read_tensor(call, RANDOM_SAMPLES);
  if (!operands.out || (maximum && !operands.indices)) return GRAFT_UNIMPLEMENTED;
  read_list(call, recipe->windows == ADAPTIVE ? STRIDE : KERNEL_SIZE, 1, operands.kernel);
  read_list(call, STRIDE, 1, operands.stride);
  read_list(call, PADDING, 0, operands.padding);
  read_list(call, DILATION, 1, operands.dilation);
  memo *memo;
  graft_status status = ocl_memo_get(call->exec, &memo_type, &operands, &memo);
  if (status != GRAFT_OK) return status;
  if (!maximum) return run_average(call->exec, memo, &operands);
  if (recipe->windows == NONE) return run_unpool(call->exec, memo, &operands);
  return grad ? run_maximum_backward(call->exec, memo, &operands) : run_maximum(call->exec, memo, &operands);
}

/* ---- Rows ---- */

#define LAYOUTS  (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED)
#define WITH_I64 (OCL_FLOATS | OCL_BIT(I64))
#define REALS    (OCL_FLOATS | OCL_INTS)

#define ROW(op, set, caps, ...) \
  { OCL_ENGINE(op, run, reads, (&(const recipe){__VA_ARGS__})), .inputs = set, .outputs = set, .flags = caps }
#define POOLING(op, set, ...) ROW(op, set, LAYOUTS, __VA_ARGS__), ROW(op##_backward, set, LAYOUTS, __VA_ARGS__)

/* A gradient by index asks for no window: one program serves those of adaptive and of fractional maxima, and unpooling.
 */
static const ocl_op ops[] = {
    POOLING(max_pool2d_with_indices, REALS, .dims = 2, .maximum = true),
    POOLING(max_pool3d_with_indices, REALS, .dims = 3, .maximum = true),
    POOLING(adaptive_max_pool2d, REALS, .dims = 2, .windows = ADAPTIVE, .maximum = true),
    POOLING(adaptive_max_pool3d, REALS, .dims = 3, .windows = ADAPTIVE, .maximum = true),
    ROW(fractional_max_pool2d, REALS, GRAFT_CAP_UNALIGNED, .dims = 2, .windows = FRACTIONAL, .maximum = true),
    ROW(fractional_max_pool2d_backward, REALS, LAYOUTS, .dims = 2, .windows = ADAPTIVE, .maximum = true),
    ROW(fractional_max_pool3d, REALS, GRAFT_CAP_UNALIGNED, .dims = 3, .windows = FRACTIONAL, .maximum = true),
    ROW(fractional_max_pool3d_backward, REALS, LAYOUTS, .dims = 3, .windows = ADAPTIVE, .maximum = true),
    ROW(max_unpool2d, OCL_FLOATS, LAYOUTS, .dims = 2, .windows = NONE, .maximum = true),
    ROW(max_unpool3d, OCL_FLOATS, LAYOUTS, .dims = 3, .windows = NONE, .maximum = true),
    POOLING(avg_pool2d, WITH_I64, .dims = 2),
    POOLING(avg_pool3d, WITH_I64, .dims = 3),
};
OCL_FAMILY(pooling, ops)
