/* Random whole numbers, coins and choices. */
#include <math.h>
#include <stdio.h>

#include "kernels/random/random.h"

typedef struct memo {
  ocl_kernel first, second;
  uint64_t elements, chunk;
} memo;

/* A kernel of random.cl for a head that begins with the types of `compute`. */
static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_dtype *compute, const char *defines,
                                const char *entry) {
  kernel->local[0] = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, compute, 1, kernel->local[0]);
  ocl_text_append(&head, defines);
  graft_status status = ocl_kernel_make(kernel, device, &head, OCL_RANDOM_FILES, entry);
  return status;
}

/* ---- Whole numbers ---- */

static graft_status prepare_integers(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_tensor_desc *desc = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, desc->dl.dtype);
  char defines[64];
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX) return GRAFT_UNIMPLEMENTED;
  memo->elements = (uint64_t)ocl_elements(desc);
  memo->chunk = device->is_cpu ? 4096 : 2;
  snprintf(defines, sizeof defines, "#define INTEGERS\n#define D %s\n", dtype->name);
  graft_status status = make_kernel(&memo->first, device, ocl_dtype_of(device, GRAFT_I64), defines, "integers");
  ocl_kernel_size(&memo->first, ocl_ceil_divide((int64_t)memo->elements, (int64_t)memo->chunk), memo->first.local[0]);
  return status;
}

static const ocl_memo_type integers_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare_integers};

static graft_status draw_integers(const graft_exec *exec, const graft_tensor_desc *out, const graft_philox *philox,
                                  int64_t from, uint64_t range) {
  memo *memo;
  if (!philox) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &integers_type, out, &memo);
  if (status != GRAFT_OK) return status;
  uint64_t first_block = philox->offset / 4;
  const ocl_argument arguments[] = {OCL_TENSOR(out),       OCL_VALUE(philox->seed), OCL_VALUE(first_block),
                                    OCL_VALUE(from),       OCL_VALUE(range),        OCL_VALUE(memo->elements),
                                    OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->first, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_random_from(const graft_exec *exec, const graft_args_random_from *args) {
  uint64_t from = (uint64_t)args->from, range = args->to ? (uint64_t)*args->to - from : (uint64_t)INT64_MAX - from + 1;
  return draw_integers(exec, args->out, args->philox, args->from, range);
}

graft_status ocl_op_randint_low(const graft_exec *exec, const graft_args_randint_low *args) {
  return draw_integers(exec, args->out, args->philox, args->low, (uint64_t)args->high - (uint64_t)args->low);
}

/* ---- Coins ---- */

typedef struct coins {
  uint32_t op_id;
  const graft_tensor_desc *out, *chances; /* chances may be NULL */
  const graft_philox *philox;
  double chance;
} coins;

static graft_status prepare_coins(void *pointer, graft_device *device, const void *from) {
  const coins *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->out->dl.dtype), *compute = dtype;
  const ocl_dtype *chances = call->chances ? ocl_dtype_of(device, call->chances->dl.dtype) : dtype;
  char defines[96];
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX || !chances) return GRAFT_UNIMPLEMENTED;
  if (call->chances) {
    bool wide = dtype->code == GRAFT_F64 || chances->code == GRAFT_F64;
    compute = ocl_dtype_of(device, wide ? GRAFT_F64 : GRAFT_F32);
    if (chances->class != OCL_CLASS_FLOAT || !compute) return GRAFT_UNIMPLEMENTED;
  }
  snprintf(defines, sizeof defines, "#define BERNOULLI\n#define OP_ID %u\n#define D_P %s\n%s", call->op_id,
           chances->name, call->chances ? "#define CHANCES\n" : "");
  return ocl_draws_prepare(pointer, device, dtype, compute, (uint64_t)ocl_elements(call->out), defines, "bernoulli");
}

static const ocl_memo_type coins_type = {.bytes = sizeof(ocl_draws), .kernels = 1, .prepare = prepare_coins};

static graft_status toss(const graft_exec *exec, const coins *call) {
  ocl_draws *memo;
  if (!call->philox) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &coins_type, call, &memo);
  cl_mem faults;
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *chances = call->chances ? call->chances : call->out;
  uint64_t first_block = call->philox->offset / 4;
  uint64_t threshold = (uint64_t)ceil(call->chance * (call->out->dl.dtype == GRAFT_F64 ? 0x1p53 : 0x1p24));
  const ocl_argument arguments[] = {
      OCL_TENSOR(call->out), OCL_TENSOR(chances), OCL_VALUE(call->philox->seed), OCL_VALUE(first_block),
      OCL_VALUE(threshold),  OCL_VALUE(faults),   OCL_VALUE(memo->elements),     OCL_VALUE(memo->blocks_per_item)};
  return ocl_launch(&memo->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_op_bernoulli_p(const graft_exec *exec, const graft_args_bernoulli_p *args) {
  return toss(exec, &(coins){.op_id = args->head.op_id, .out = args->out, .philox = args->philox, .chance = args->p});
}

graft_status ocl_op_bernoulli_Tensor(const graft_exec *exec, const graft_args_bernoulli_Tensor *args) {
  return toss(exec, &(coins){.op_id = args->head.op_id, .out = args->out, .chances = args->p, .philox = args->philox});
}

/* ---- Choices ---- */

static graft_status prepare_choices(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const graft_args_multinomial *args = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, args->self->dl.dtype);
  char defines[96];
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || !device->has_f64) return GRAFT_UNIMPLEMENTED;
  memo->elements = (uint64_t)args->self->dl.shape[args->self->dl.ndim - 1];
  memo->chunk = (uint64_t)ocl_elements(args->self) / memo->elements; /* rows */
  snprintf(defines, sizeof defines, "#define MULTINOMIAL\n#define D %s\n#define OP_ID %u\n", dtype->name,
           args->head.op_id);
  bool once = !args->replacement && args->num_samples > 1;
  const ocl_dtype *compute = ocl_dtype_of(device, GRAFT_F64);
  graft_status status = make_kernel(&memo->first, device, compute, defines, "accumulate");
  if (status == GRAFT_OK) status = make_kernel(&memo->second, device, compute, defines, once ? "pick_once" : "pick");
  if (status != GRAFT_OK) return status;
  ocl_kernel_size(&memo->first, (int64_t)memo->chunk, memo->first.local[0]);
  ocl_kernel_size(&memo->second, (int64_t)memo->chunk * (once ? 1 : args->num_samples), memo->second.local[0]);
  return GRAFT_OK;
}

static const ocl_memo_type choices_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare_choices};

graft_status ocl_op_multinomial(const graft_exec *exec, const graft_args_multinomial *args) {
  memo *memo;
  cl_mem faults;
  ocl_place work;
  if (!args->philox) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &choices_type, args, &memo);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  status = ocl_workspace(exec, sizeof(double) * memo->chunk * memo->elements, &work);
  if (status != GRAFT_OK) return status;
  uint64_t first_block = args->philox->offset / 4;
  const ocl_argument sums[] = {OCL_TENSOR(args->self), OCL_PLACE(work), OCL_VALUE(faults), OCL_VALUE(memo->chunk),
                               OCL_VALUE(memo->elements)};
  status = ocl_launch(&memo->first, exec->stream, OCL_ALL(sums));
  if (status != GRAFT_OK) return status;
  if (!args->replacement && args->num_samples > 1) {
    const ocl_argument once[] = {OCL_TENSOR(args->out),         OCL_TENSOR(args->self),      OCL_PLACE(work),
                                 OCL_VALUE(args->philox->seed), OCL_VALUE(first_block),      OCL_VALUE(memo->chunk),
                                 OCL_VALUE(memo->elements),     OCL_VALUE(args->num_samples)};
    return ocl_launch(&memo->second, exec->stream, OCL_ALL(once));
  }
  const ocl_argument pick[] = {OCL_TENSOR(args->out),       OCL_PLACE(work),        OCL_VALUE(args->philox->seed),
                               OCL_VALUE(first_block),      OCL_VALUE(memo->chunk), OCL_VALUE(memo->elements),
                               OCL_VALUE(args->num_samples)};
  return ocl_launch(&memo->second, exec->stream, OCL_ALL(pick));
}
