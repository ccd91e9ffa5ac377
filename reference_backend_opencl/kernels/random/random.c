/* Random ops: uniform, normal and exponential numbers, dropout, rrelu. Whole numbers and choices are in
 * discrete.c, permutations in permutation.c. */
#include <math.h>

#include "kernels/random/random.h"

graft_status ocl_draws_prepare(ocl_draws *draws, graft_device *device, const ocl_dtype *dtype, const ocl_dtype *compute,
                               uint64_t elements, const char *defines, const char *entry) {
  bool wide = dtype->code == GRAFT_F64;
  size_t local = device->is_cpu ? 1 : 64;
  draws->dtype = dtype;
  draws->elements = elements;
  draws->blocks_per_item = device->is_cpu ? 1024 : 1;
  ocl_text head = {0};
  ocl_head_types(&head, compute, 1, local);
  ocl_text_add(&head, "#define D %s\n%s%s", dtype->name, wide ? "#define WIDE\n" : "", defines);
  graft_status status = ocl_kernel_make(&draws->kernel, device, &head, OCL_RANDOM_FILES, entry);
  int64_t blocks = ocl_ceil_divide((int64_t)elements, wide ? 2 : 4);
  ocl_kernel_size(&draws->kernel, ocl_ceil_divide(blocks, (int64_t)draws->blocks_per_item), local);
  return status;
}

const ocl_pointwise_recipe ocl_dropout_recipe = {.dtypes = OCL_FLOATS,
                                                 .flags = OCL_DRAWS | OCL_TWO_RESULTS,
                                                 .expression = "b < x ? a * y : (VT)0",
                                                 .second = "b < x ? (VT)1 : (VT)0"};
const ocl_pointwise_recipe ocl_dropout_backward_recipe = {
    .dtypes = OCL_FLOATS, .flags = OCL_MASK_B, .expression = "a * ((b ? (VT)1 : (VT)0) * x)"};

/* Ops that draw a number for each element of a tensor and decide by it what becomes of that element. */
typedef struct sieve {
  const graft_tensor_desc *in, *out;
  const char *define, *entry; /* of random.cl */
} sieve;

static graft_status prepare_sieve(void *memo, graft_device *device, const void *from) {
  const sieve *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || call->out->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  return ocl_draws_prepare(memo, device, dtype, dtype, (uint64_t)ocl_elements(call->in), call->define, call->entry);
}

static const ocl_memo_type sieve_type = {.bytes = sizeof(ocl_draws), .kernels = 1, .prepare = prepare_sieve};

/* Without training the output is the input and the mask is whole. */
static graft_status keep_all(const graft_exec *exec, const graft_args_native_dropout *args) {
  const graft_dl_tensor *in = &args->input->dl, *out = &args->out0->dl, *mask = &args->out1->dl;
  uint64_t elements = (uint64_t)ocl_elements(args->input);
  uint8_t kept = 1;
  if (in->dtype != out->dtype || !ocl_dtype_of(exec->device, in->dtype)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memory_api.fill(exec->stream, mask->data, mask->byte_offset, elements, &kept, 1);
  if (status != GRAFT_OK || (in->data == out->data && in->byte_offset == out->byte_offset)) return status;
  return ocl_memory_api.copy(exec->stream, out->data, out->byte_offset, in->data, in->byte_offset,
                             elements * GRAFT_DTYPE_BYTES(in->dtype));
}

graft_status ocl_op_native_dropout(const graft_exec *exec, const graft_args_native_dropout *args) {
  bool trains = !args->train || *args->train;
  if (!args->out0 || !args->out1) return GRAFT_UNIMPLEMENTED;
  if (!trains) return keep_all(exec, args);
  if (!args->philox) return GRAFT_UNIMPLEMENTED;
  ocl_draws *memo;
  const sieve call = {.in = args->input, .out = args->out0, .define = "#define DROPOUT\n", .entry = "dropout"};
  graft_status status = ocl_memo_get(exec, &sieve_type, &call, &memo);
  if (status != GRAFT_OK) return status;
  double keep = 1 - args->p;
  bool wide = memo->dtype->code == GRAFT_F64;
  uint64_t first_block = args->philox->offset / 4, threshold = (uint64_t)ceil(keep * (wide ? 0x1p53 : 0x1p24));
  ocl_number scale_number = {.re = keep > 0 ? 1 / keep : 0};
  ocl_value scale;
  size_t scale_bytes = ocl_number_as(&scale_number, memo->dtype, &scale);
  const ocl_argument arguments[] = {
      OCL_TENSOR(args->out0),        OCL_TENSOR(args->out1),    OCL_TENSOR(args->input),
      OCL_VALUE(args->philox->seed), OCL_VALUE(first_block),    OCL_VALUE(threshold),
      {scale_bytes, &scale},         OCL_VALUE(memo->elements), OCL_VALUE(memo->blocks_per_item)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

static size_t scalar_as(const graft_scalar *scalar, const ocl_dtype *dtype, ocl_value *value) {
  ocl_number number;
  ocl_number_of_scalar(scalar, &number);
  return ocl_number_as(&number, dtype, value);
}

/* Calls without training draw nothing and never come here. */
graft_status ocl_op_rrelu_with_noise(const graft_exec *exec, const graft_args_rrelu_with_noise *args) {
  if (!args->training || !args->philox || args->noise->dl.dtype != args->self->dl.dtype) return GRAFT_UNIMPLEMENTED;
  ocl_draws *memo;
  const sieve call = {.in = args->self, .out = args->out, .define = "#define RRELU\n", .entry = "rrelu"};
  graft_status status = ocl_memo_get(exec, &sieve_type, &call, &memo);
  if (status != GRAFT_OK) return status;
  ocl_value lower, upper;
  size_t bytes = scalar_as(args->lower, memo->dtype, &lower);
  scalar_as(args->upper, memo->dtype, &upper);
  uint64_t first_block = args->philox->offset / 4;
  const ocl_argument arguments[] = {
      OCL_TENSOR(args->out),           OCL_TENSOR(args->noise), OCL_TENSOR(args->self), OCL_VALUE(args->philox->seed),
      OCL_VALUE(first_block),          {bytes, &lower},         {bytes, &upper},        OCL_VALUE(memo->elements),
      OCL_VALUE(memo->blocks_per_item)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

/* ---- The gradient of dropout ---- */

typedef struct backward_memo {
  ocl_kernel kernel;
  const ocl_dtype *dtype;
  uint64_t elements, chunk;
} backward_memo;

static graft_status prepare_backward(void *pointer, graft_device *device, const void *from) {
  backward_memo *memo = pointer;
  const graft_args_native_dropout_backward *args = from;
  const ocl_dtype *dtype = memo->dtype = ocl_dtype_of(device, args->grad_output->dl.dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || args->out->dl.dtype != dtype->code ||
      args->mask->dl.dtype != GRAFT_BOOL) {
    return GRAFT_UNIMPLEMENTED;
  }
  size_t local = device->is_cpu ? 1 : 64;
  memo->elements = (uint64_t)ocl_elements(args->out);
  memo->chunk = device->is_cpu ? 16384 : device->vector_width;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, device->vector_width, local);
  ocl_text_add(&head, "#define DROPOUT_BACKWARD\n#define D %s\n", dtype->name);
  graft_status status = ocl_kernel_make(&memo->kernel, device, &head, OCL_RANDOM_FILES, "dropout_backward");
  ocl_kernel_size(&memo->kernel, ocl_ceil_divide((int64_t)memo->elements, (int64_t)memo->chunk), local);
  return status;
}

static const ocl_memo_type backward_type = {.bytes = sizeof(backward_memo), .kernels = 1, .prepare = prepare_backward};

graft_status ocl_op_native_dropout_backward(const graft_exec *exec, const graft_args_native_dropout_backward *args) {
  backward_memo *memo;
  graft_status status = ocl_memo_get(exec, &backward_type, args, &memo);
  if (status != GRAFT_OK) return status;
  ocl_number number = {.re = args->scale};
  ocl_value scale;
  size_t scale_bytes = ocl_number_as(&number, memo->dtype, &scale);
  const ocl_argument arguments[] = {OCL_TENSOR(args->out), OCL_TENSOR(args->grad_output), OCL_TENSOR(args->mask),
                                    {scale_bytes, &scale}, OCL_VALUE(memo->elements),     OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

/* ---- Numbers that are functions of uniform ones ---- */

/* from + range * a number of the stream; a complex one is two, of its parts' dtype. */
typedef struct drawing {
  const graft_tensor_desc *out;
  const graft_philox *philox;
  double from, range;
  const char *defines;      /* of random.cl, DRAW among them */
  bool truncates, integers; /* integers: they may be put out, computed in f32 */
} drawing;

static const ocl_dtype *part_of(const graft_device *device, graft_dtype code) {
  const ocl_dtype *dtype = ocl_dtype_of(device, code);
  if (!dtype || dtype->class == OCL_CLASS_FLOAT) return dtype;
  return dtype->class == OCL_CLASS_COMPLEX ? ocl_dtype_of(device, code == GRAFT_C64 ? GRAFT_F32 : GRAFT_F64) : NULL;
}

static graft_status prepare_drawing(void *memo, graft_device *device, const void *from) {
  const drawing *call = from;
  const ocl_dtype *dtype = part_of(device, call->out->dl.dtype), *whole = ocl_dtype_of(device, call->out->dl.dtype);
  if (!dtype && call->integers && whole && whole->class == OCL_CLASS_INT) {
    const ocl_dtype *compute = ocl_dtype_of(device, GRAFT_F32);
    graft_status status =
        ocl_draws_prepare(memo, device, whole, compute, (uint64_t)ocl_elements(call->out), call->defines, "draw");
    ((ocl_draws *)memo)->dtype = compute; /* of the numbers that it takes */
    return status;
  }
  if (!dtype) return GRAFT_UNIMPLEMENTED;
  int64_t parts = dtype->code == call->out->dl.dtype ? 1 : 2;
  return ocl_draws_prepare(memo, device, dtype, dtype, (uint64_t)(ocl_elements(call->out) * parts), call->defines,
                           "draw");
}

static const ocl_memo_type drawing_type = {.bytes = sizeof(ocl_draws), .kernels = 1, .prepare = prepare_drawing};

static graft_status draw(const graft_exec *exec, const drawing *call) {
  ocl_draws *memo;
  if (!call->philox) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &drawing_type, call, &memo);
  if (status != GRAFT_OK) return status;
  ocl_number from_number = {.re = call->from}, range_number = {.re = call->range};
  ocl_value from, range;
  size_t bytes = ocl_number_as(&from_number, memo->dtype, &from);
  ocl_number_as(&range_number, memo->dtype, &range);
  uint64_t first_block = call->philox->offset / 4;
  int64_t truncates = call->truncates;
  const ocl_argument arguments[] = {OCL_TENSOR(call->out),     OCL_VALUE(call->philox->seed),
                                    OCL_VALUE(first_block),    {bytes, &from},
                                    {bytes, &range},           OCL_VALUE(truncates),
                                    OCL_VALUE(memo->elements), OCL_VALUE(memo->blocks_per_item)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_rand(const graft_exec *exec, const graft_args_rand *args) {
  return draw(
      exec,
      &(drawing){.out = args->out, .philox = args->philox, .range = 1, .defines = "#define DRAW\n", .truncates = true});
}

graft_status ocl_op_uniform(const graft_exec *exec, const graft_args_uniform *args) {
  return draw(exec, &(drawing){.out = args->out,
                               .philox = args->philox,
                               .from = args->from,
                               .range = args->to - args->from,
                               .defines = "#define DRAW\n",
                               .truncates = args->from == 0 && args->to == 1});
}

graft_status ocl_op_prims_uniform(const graft_exec *exec, const graft_args_prims_uniform *args) {
  ocl_number low, high;
  ocl_number_of_scalar(args->low, &low);
  ocl_number_of_scalar(args->high, &high);
  double from = low.is_int ? (double)low.i : low.re, to = high.is_int ? (double)high.i : high.re;
  return draw(exec, &(drawing){.out = args->out,
                               .philox = args->philox,
                               .from = from,
                               .range = to - from,
                               .defines = "#define DRAW\n",
                               .truncates = from == 0 && to == 1});
}

/* The variance of a complex number is std squared, so that of each part half of it. */
static graft_status draw_normal(const graft_exec *exec, const graft_tensor_desc *out, const graft_philox *philox,
                                double mean, double std) {
  bool complex = out->dl.dtype == GRAFT_C64 || out->dl.dtype == GRAFT_C128;
  return draw(exec, &(drawing){.out = out,
                               .philox = philox,
                               .from = mean,
                               .range = std * (complex ? sqrt(0.5) : 1),
                               .defines = "#define DRAW\n#define NORMAL\n"});
}

graft_status ocl_op_randn(const graft_exec *exec, const graft_args_randn *args) {
  return draw_normal(exec, args->out, args->philox, 0, 1);
}

graft_status ocl_op_normal_float_float(const graft_exec *exec, const graft_args_normal_float_float *args) {
  return draw_normal(exec, args->out, args->philox, args->mean, args->std);
}

graft_status ocl_op_exponential(const graft_exec *exec, const graft_args_exponential *args) {
  return draw(exec, &(drawing){.out = args->out,
                               .philox = args->philox,
                               .range = args->lambd,
                               .defines = "#define DRAW\n#define EXPONENTIAL\n"});
}

graft_status ocl_op_cauchy(const graft_exec *exec, const graft_args_cauchy *args) {
  return draw(exec, &(drawing){.out = args->out,
                               .philox = args->philox,
                               .from = args->median,
                               .range = args->sigma,
                               .defines = "#define DRAW\n#define CAUCHY\n"});
}

graft_status ocl_op_geometric(const graft_exec *exec, const graft_args_geometric *args) {
  return draw(exec, &(drawing){.out = args->out,
                               .philox = args->philox,
                               .range = log1p(-args->p),
                               .defines = "#define DRAW\n#define GEOMETRIC\n",
                               .integers = true});
}

graft_status ocl_op_log_normal(const graft_exec *exec, const graft_args_log_normal *args) {
  return draw(exec, &(drawing){.out = args->out,
                               .philox = args->philox,
                               .from = args->mean,
                               .range = args->std,
                               .defines = "#define DRAW\n#define LOG_NORMAL\n"});
}
