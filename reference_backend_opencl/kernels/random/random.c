/* Random ops: uniform, normal and exponential numbers, dropout, rrelu. Whole numbers and choices are in
 * discrete.c, permutations in permutation.c. */
#include <math.h>
#include <stdlib.h>

#include "kernels/families.h"

bool ocl_random_caps(uint32_t op_id, ocl_op_caps *caps) {
  caps->inputs = caps->outputs = OCL_FLOATS;
  caps->flags = GRAFT_CAP_UNALIGNED;
  switch (op_id) {
    case GRAFT_OP_NATIVE_DROPOUT:
      caps->outputs |= OCL_BOOLS;
      caps->flags |= GRAFT_CAP_IN_PLACE;
      return true;
    case GRAFT_OP_RRELU_WITH_NOISE: caps->flags |= GRAFT_CAP_IN_PLACE; return true;
    case GRAFT_OP_NATIVE_DROPOUT_BACKWARD: caps->flags |= GRAFT_CAP_IN_PLACE; return true;
    case GRAFT_OP_UNIFORM:
      caps->flags |= GRAFT_CAP_IN_PLACE;
      caps->inputs = caps->outputs = OCL_FLOATS | OCL_COMPLEX;
      return true;
    case GRAFT_OP_EXPONENTIAL: caps->flags |= GRAFT_CAP_IN_PLACE; return true;
    case GRAFT_OP_BERNOULLI_P:
    case GRAFT_OP_BERNOULLI_TENSOR:
    case GRAFT_OP_RANDOM_FROM:
      caps->flags |= GRAFT_CAP_IN_PLACE;
      caps->inputs = caps->outputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS;
      return true;
    case GRAFT_OP_RANDINT_LOW: caps->outputs = OCL_FLOATS | OCL_INTS | OCL_BOOLS; return true;
    case GRAFT_OP_MULTINOMIAL: caps->outputs = OCL_BIT(I64); return true;
    case GRAFT_OP_NORMAL_FLOAT_FLOAT:
    case GRAFT_OP_RAND:
    case GRAFT_OP_RANDN: caps->outputs = OCL_FLOATS | OCL_COMPLEX; return true;
    case GRAFT_OP_RANDPERM:
    case GRAFT_OP_RANDPERM_GENERATOR: caps->outputs = OCL_FLOATS | OCL_INTS; return true;
    default: return false;
  }
}

static bool has_state(const graft_philox *philox) {
  return !philox || GRAFT_HAS(philox, graft_philox, state);
}

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *dtype;
  uint64_t elements, blocks_per_item;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel);
  free(memo);
}

/* Ops that draw a number for each element of a tensor and decide by it what becomes of that element. */
typedef struct sieve {
  const graft_tensor_desc *in, *out;
  const char *define, *entry; /* of random.cl */
} sieve;

static graft_status make_sieve(const graft_exec *exec, const void *args, const void *pointer, void **out) {
  const sieve *call = pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->in->dl.dtype);
  (void)args;
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || call->out->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  size_t local = device->is_cpu ? 1 : 64;
  memo->dtype = dtype;
  memo->elements = (uint64_t)ocl_elements(call->in);
  memo->blocks_per_item = device->is_cpu ? 1024 : 1;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define %s\n#define D %s\n%s", call->define, dtype->name,
               dtype->code == GRAFT_F64 ? "#define WIDE\n" : "");
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY
                                    : ocl_kernel_init(&memo->kernel, device, head.items, "random/random", call->entry);
  ocl_text_free(&head);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  uint64_t per_block = dtype->code == GRAFT_F64 ? 2 : 4, blocks = (memo->elements + per_block - 1) / per_block;
  uint64_t items = (blocks + memo->blocks_per_item - 1) / memo->blocks_per_item;
  memo->kernel.local[0] = local;
  memo->kernel.global[0] = (items + local - 1) / local * local;
  *out = memo;
  return GRAFT_OK;
}

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
  if (!args->out0 || !args->out1 || has_state(args->philox)) return GRAFT_UNIMPLEMENTED;
  if (!trains) return keep_all(exec, args);
  void *pointer;
  const sieve call = {args->input, args->out0, "DROPOUT", "dropout"};
  graft_status status = ocl_memo_get(exec, NULL, &call, make_sieve, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
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
  return ocl_launch(&memo->kernel, exec->stream, sizeof arguments / sizeof *arguments, arguments);
}

static size_t scalar_as(const graft_scalar *scalar, const ocl_dtype *dtype, ocl_value *value) {
  ocl_number number;
  ocl_number_of_scalar(scalar, &number);
  return ocl_number_as(&number, dtype, value);
}

/* Calls without training draw nothing and never come here. */
graft_status ocl_op_rrelu_with_noise(const graft_exec *exec, const graft_args_rrelu_with_noise *args) {
  if (!args->training || args->noise->dl.dtype != args->self->dl.dtype || has_state(args->philox))
    return GRAFT_UNIMPLEMENTED;
  void *pointer;
  const sieve call = {args->self, args->out, "RRELU", "rrelu"};
  graft_status status = ocl_memo_get(exec, NULL, &call, make_sieve, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  ocl_value lower, upper;
  size_t bytes = scalar_as(args->lower, memo->dtype, &lower);
  scalar_as(args->upper, memo->dtype, &upper);
  uint64_t first_block = args->philox->offset / 4;
  const ocl_argument arguments[] = {
      OCL_TENSOR(args->out),           OCL_TENSOR(args->noise), OCL_TENSOR(args->self), OCL_VALUE(args->philox->seed),
      OCL_VALUE(first_block),          {bytes, &lower},         {bytes, &upper},        OCL_VALUE(memo->elements),
      OCL_VALUE(memo->blocks_per_item)};
  return ocl_launch(&memo->kernel, exec->stream, sizeof arguments / sizeof *arguments, arguments);
}

/* ---- The gradient of dropout ---- */

static graft_status make_backward(const graft_exec *exec, const void *pointer, const void *row, void **out) {
  const graft_args_native_dropout_backward *args = pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, args->grad_output->dl.dtype);
  (void)row;
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || args->out->dl.dtype != dtype->code ||
      args->mask->dl.dtype != GRAFT_BOOL) {
    return GRAFT_UNIMPLEMENTED;
  }
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  size_t local = device->is_cpu ? 1 : 64;
  memo->dtype = dtype;
  memo->elements = (uint64_t)ocl_elements(args->out);
  memo->blocks_per_item = device->is_cpu ? 16384 : device->vector_width; /* elements, here */
  ocl_text head = {0};
  ocl_head_types(&head, dtype, device->vector_width, local);
  ocl_text_add(&head, "#define DROPOUT_BACKWARD\n#define D %s\n", dtype->name);
  graft_status status = head.failed
                            ? GRAFT_OUT_OF_MEMORY
                            : ocl_kernel_init(&memo->kernel, device, head.items, "random/random", "dropout_backward");
  ocl_text_free(&head);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  uint64_t items = (memo->elements + memo->blocks_per_item - 1) / memo->blocks_per_item;
  memo->kernel.local[0] = local;
  memo->kernel.global[0] = (items + local - 1) / local * local;
  *out = memo;
  return GRAFT_OK;
}

graft_status ocl_op_native_dropout_backward(const graft_exec *exec, const graft_args_native_dropout_backward *args) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, args, NULL, make_backward, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  ocl_number number = {.re = args->scale};
  ocl_value scale;
  size_t scale_bytes = ocl_number_as(&number, memo->dtype, &scale);
  const ocl_argument arguments[] = {OCL_TENSOR(args->out),     OCL_TENSOR(args->grad_output),
                                    OCL_TENSOR(args->mask),    {scale_bytes, &scale},
                                    OCL_VALUE(memo->elements), OCL_VALUE(memo->blocks_per_item)};
  return ocl_launch(&memo->kernel, exec->stream, 9, arguments);
}

/* ---- Uniform, normal and exponential numbers ---- */

/* from + range * a number of the stream; a complex one is two, of its parts' dtype. */
typedef struct drawing {
  const graft_tensor_desc *out;
  const graft_philox *philox;
  double from, range;
  const char *define; /* of random.cl; "" for uniform numbers */
  bool truncates;
} drawing;

static const ocl_dtype *part_of(const graft_device *device, graft_dtype code) {
  const ocl_dtype *dtype = ocl_dtype_of(device, code);
  if (!dtype || dtype->class == OCL_CLASS_FLOAT) return dtype;
  return dtype->class == OCL_CLASS_COMPLEX ? ocl_dtype_of(device, code == GRAFT_C64 ? GRAFT_F32 : GRAFT_F64) : NULL;
}

static graft_status make_drawing(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const drawing *call = call_pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = part_of(device, call->out->dl.dtype);
  (void)args;
  if (!dtype) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  size_t local = device->is_cpu ? 1 : 64;
  memo->dtype = dtype;
  memo->elements = (uint64_t)ocl_elements(call->out) * (dtype->code == call->out->dl.dtype ? 1 : 2);
  memo->blocks_per_item = device->is_cpu ? 1024 : 1;
  bool wide = dtype->code == GRAFT_F64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define DRAW\n#define D %s\n%s%s", dtype->name, wide ? "#define WIDE\n" : "", call->define);
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(&memo->kernel, device, head.items, "random/random", "draw");
  ocl_text_free(&head);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  uint64_t per_block = wide ? 2 : 4, blocks = (memo->elements + per_block - 1) / per_block;
  uint64_t items = (blocks + memo->blocks_per_item - 1) / memo->blocks_per_item;
  memo->kernel.local[0] = local;
  memo->kernel.global[0] = (items + local - 1) / local * local;
  *out = memo;
  return GRAFT_OK;
}

static graft_status draw(const graft_exec *exec, const drawing *call) {
  void *pointer;
  if (has_state(call->philox)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, NULL, call, make_drawing, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
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
  return ocl_launch(&memo->kernel, exec->stream, 9, arguments);
}

graft_status ocl_op_rand(const graft_exec *exec, const graft_args_rand *args) {
  return draw(exec, &(drawing){args->out, args->philox, 0, 1, "", true});
}

graft_status ocl_op_uniform(const graft_exec *exec, const graft_args_uniform *args) {
  bool truncates = args->from == 0 && args->to == 1;
  return draw(exec, &(drawing){args->out, args->philox, args->from, args->to - args->from, "", truncates});
}

/* The variance of a complex number is std squared, so that of each part half of it. */
static graft_status draw_normal(const graft_exec *exec, const graft_tensor_desc *out, const graft_philox *philox,
                                double mean, double std) {
  bool complex = out->dl.dtype == GRAFT_C64 || out->dl.dtype == GRAFT_C128;
  return draw(exec, &(drawing){out, philox, mean, std * (complex ? sqrt(0.5) : 1), "#define NORMAL\n", false});
}

graft_status ocl_op_randn(const graft_exec *exec, const graft_args_randn *args) {
  return draw_normal(exec, args->out, args->philox, 0, 1);
}

graft_status ocl_op_normal_float_float(const graft_exec *exec, const graft_args_normal_float_float *args) {
  return draw_normal(exec, args->out, args->philox, args->mean, args->std);
}

graft_status ocl_op_exponential(const graft_exec *exec, const graft_args_exponential *args) {
  return draw(exec, &(drawing){args->out, args->philox, 0, args->lambd, "#define EXPONENTIAL\n", false});
}
