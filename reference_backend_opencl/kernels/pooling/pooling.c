/* Pooling: max with indices, average, and their gradients. */
#include "runtime/ocl.h"

typedef struct operands {
  const graft_tensor_desc *in, *out,
      *indices; /* in: the pooled side; out: the result's, or its gradient; indices: max */
  graft_int_list kernel, stride, padding, dilation;
  bool count_padding, backward;
  int64_t divisor; /* 0: none given */
  uint32_t op_id;
} operands;

/* As pooling.cl has it. */
typedef struct pools {
  int64_t n, c, in[2], out[2];
  int64_t in_stride[4], out_stride[4], index_stride[4];
  int64_t per_item;
} pools;

typedef struct memo {
  ocl_kernel kernel;
  uint64_t work_bytes; /* 0: sums are made in the output */
} memo;

static void strides_of(const graft_dl_tensor *t, int64_t strides[4]) {
  int lead = t->ndim - 3;
  strides[0] = lead ? t->strides[0] : 0;
  for (int d = 0; d < 3; d++) strides[d + 1] = t->strides[lead + d];
}

static pools pools_of(const operands *call) {
  const graft_dl_tensor *in = &call->in->dl, *out = &call->out->dl;
  int lead = in->ndim - 3;
  pools p = {.n = lead ? in->shape[0] : 1, .c = in->shape[lead]};
  for (int d = 0; d < 2; d++) {
    p.in[d] = in->shape[lead + 1 + d];
    p.out[d] = out->shape[lead + 1 + d];
  }
  strides_of(in, p.in_stride);
  strides_of(out, p.out_stride);
  strides_of(call->indices ? &call->indices->dl : out, p.index_stride);
  return p;
}

/* Whether a work-item can add up in the output itself: dense planes one after the other, in the type it adds in. */
static bool sums_in_place(const pools *p, const ocl_dtype *dtype) {
  static const graft_dtype whole[] = {GRAFT_F32, GRAFT_F64, GRAFT_I32, GRAFT_I64};
  bool same = false;
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) same = same || dtype->code == whole[i];
  return same && p->in_stride[3] == 1 && p->in_stride[2] == p->in[1] && p->in_stride[1] == p->in[0] * p->in[1] &&
         (p->n == 1 || p->in_stride[0] == p->c * p->in_stride[1]);
}

/* Returns how many work-items there are. */
static int64_t plan(const graft_device *device, const operands *call, pools *p, memo *memo, const ocl_dtype *dtype,
                    size_t local) {
  bool by_plane = call->indices && call->backward; /* a work-group a plane */
  const int64_t *size = call->backward ? p->in : p->out;
  int64_t units = by_plane ? p->n * p->c : p->n * p->c * size[0] * size[1];
  int64_t items = device->is_cpu ? 8 * (int64_t)device->compute_units : INT32_MAX;
  p->per_item = units > items ? ocl_ceil_divide(units, items) : 1;
  if (by_plane && !sums_in_place(p, dtype)) memo->work_bytes = (uint64_t)(units * p->in[0] * p->in[1]) * 8;
  return ocl_ceil_divide(units, p->per_item) * (by_plane ? (int64_t)local : 1);
}

static graft_status make_kernel(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype) {
  size_t local = device->is_cpu ? 1 : 64;
  pools p = pools_of(call);
  int64_t items = plan(device, call, &p, memo, dtype, local);
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define OP_ID %u\n%s%s", dtype->name, call->op_id,
               call->indices ? "#define MAX\n" : "", memo->work_bytes ? "#define THROUGH_WORK\n" : "");
  ocl_text_add(&head, "#define COUNT_PADDING %d\n#define DIVISOR %lldL\n", call->count_padding,
               (long long)call->divisor);
  for (int d = 0; d < 2; d++) {
    ocl_text_add(&head, "#define KERNEL_%d %lldL\n#define STRIDE_%d %lldL\n", d, (long long)call->kernel.items[d], d,
                 (long long)call->stride.items[d]);
    ocl_text_add(&head, "#define PADDING_%d %lldL\n#define DILATION_%d %lldL\n", d, (long long)call->padding.items[d],
                 d, (long long)(call->dilation.count ? call->dilation.items[d] : 1));
  }
  graft_status status =
      ocl_kernel_make(&memo->kernel, device, &head, "pooling/pooling", call->backward ? "pool_back" : "pool");
  ocl_kernel_size(&memo->kernel, items, local);
  return status == GRAFT_OK ? ocl_kernel_set(&memo->kernel, 1, &(ocl_argument)OCL_VALUE(p)) : status;
}

static graft_status prepare(void *memo, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  if (!dtype || call->out->dl.dtype != dtype->code || call->in->dl.ndim < 3 || call->in->dl.ndim > 4 ||
      (dtype->class != OCL_CLASS_FLOAT && dtype->class != OCL_CLASS_INT)) {
    return GRAFT_UNIMPLEMENTED;
  }
  if (call->indices && call->indices->dl.dtype != GRAFT_I64) return GRAFT_UNIMPLEMENTED;
  return make_kernel(memo, device, call, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

static graft_status run_max_backward(const graft_exec *exec, memo *memo, const operands *call) {
  cl_mem faults;
  ocl_place work = ocl_place_of(call->in);
  graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status == GRAFT_OK && memo->work_bytes) status = ocl_workspace(exec, memo->work_bytes, &work);
  if (status != GRAFT_OK) return status;
  const ocl_argument arguments[] = {OCL_TENSOR(call->in), OCL_PLACE(work), OCL_TENSOR(call->out),
                                    OCL_TENSOR(call->indices), OCL_VALUE(faults)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  if (call->indices && call->backward) return run_max_backward(exec, memo, call);
  if (call->indices) {
    const ocl_argument max[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->indices), OCL_TENSOR(call->in)};
    return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(max));
  }
  const graft_tensor_desc *to = call->backward ? call->in : call->out, *from = call->backward ? call->out : call->in;
  const ocl_argument average[] = {OCL_TENSOR(to), OCL_TENSOR(from)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(average));
}

/* ---- Slots ---- */

graft_status ocl_op_max_pool2d_with_indices(const graft_exec *exec, const graft_args_max_pool2d_with_indices *args) {
  if (!args->out0 || !args->out1) return GRAFT_UNIMPLEMENTED;
  operands call = {.in = args->self,
                   .out = args->out0,
                   .indices = args->out1,
                   .kernel = args->kernel_size,
                   .stride = args->stride,
                   .padding = args->padding,
                   .dilation = args->dilation};
  return run(exec, &call);
}

graft_status ocl_op_max_pool2d_with_indices_backward(const graft_exec *exec,
                                                     const graft_args_max_pool2d_with_indices_backward *args) {
  operands call = {.in = args->out,
                   .out = args->grad_output,
                   .indices = args->indices,
                   .kernel = args->kernel_size,
                   .stride = args->stride,
                   .padding = args->padding,
                   .dilation = args->dilation,
                   .backward = true,
                   .op_id = args->head.op_id};
  return run(exec, &call);
}

graft_status ocl_op_avg_pool2d(const graft_exec *exec, const graft_args_avg_pool2d *args) {
  operands call = {.in = args->self,
                   .out = args->out,
                   .kernel = args->kernel_size,
                   .stride = args->stride,
                   .padding = args->padding,
                   .count_padding = args->count_include_pad,
                   .divisor = args->divisor_override ? *args->divisor_override : 0};
  return run(exec, &call);
}

graft_status ocl_op_avg_pool2d_backward(const graft_exec *exec, const graft_args_avg_pool2d_backward *args) {
  operands call = {.in = args->out,
                   .out = args->grad_output,
                   .kernel = args->kernel_size,
                   .stride = args->stride,
                   .padding = args->padding,
                   .count_padding = args->count_include_pad,
                   .backward = true,
                   .divisor = args->divisor_override ? *args->divisor_override : 0};
  return run(exec, &call);
}

#define LAYOUTS (GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED)

static const ocl_op ops[] = {
    {OCL_OP(max_pool2d_with_indices), .inputs = OCL_FLOATS | OCL_INTS, .outputs = OCL_FLOATS | OCL_INTS,
     .flags = LAYOUTS},
    {OCL_OP(max_pool2d_with_indices_backward), .inputs = OCL_FLOATS | OCL_INTS, .outputs = OCL_FLOATS | OCL_INTS,
     .flags = LAYOUTS},
    {OCL_OP(avg_pool2d), .inputs = OCL_FLOATS | OCL_BIT(I64), .outputs = OCL_FLOATS | OCL_BIT(I64), .flags = LAYOUTS},
    {OCL_OP(avg_pool2d_backward), .inputs = OCL_FLOATS | OCL_BIT(I64), .outputs = OCL_FLOATS | OCL_BIT(I64),
     .flags = LAYOUTS},
};
OCL_FAMILY(pooling, ops)
