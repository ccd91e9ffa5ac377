/* Random whole numbers, coins and choices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/core/indexed.h"
#include "kernels/families.h"

typedef struct memo {
  ocl_kernel first, second;
  uint64_t elements, chunk;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->first);
  ocl_kernel_destroy(&memo->second);
  free(memo);
}

static bool is_served(const graft_philox *philox) {
  return philox && !GRAFT_HAS(philox, graft_philox, state);
}

static void set_items(ocl_kernel *kernel, uint64_t items) {
  kernel->global[0] = (items + kernel->local[0] - 1) / kernel->local[0] * kernel->local[0];
}

/* A kernel of random.cl for a head that begins with the types of `compute`. */
static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const ocl_dtype *compute, const char *defines,
                                const char *entry) {
  kernel->local[0] = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, compute, 1, kernel->local[0]);
  ocl_text_add(&head, "%s", defines);
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(kernel, device, head.items, "random/random", entry);
  ocl_text_free(&head);
  return status;
}

static graft_status keep(memo *memo, graft_status status, void **out) {
  if (status != GRAFT_OK)
    destroy_memo(memo);
  else
    *out = memo;
  return status;
}

/* ---- Whole numbers ---- */

static graft_status make_integers(const graft_exec *exec, const void *args, const void *desc_pointer, void **out) {
  const graft_tensor_desc *desc = desc_pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, desc->dl.dtype);
  char defines[64];
  (void)args;
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->elements = (uint64_t)ocl_elements(desc);
  memo->chunk = device->is_cpu ? 4096 : 2;
  snprintf(defines, sizeof defines, "#define INTEGERS\n#define D %s\n", dtype->name);
  graft_status status = make_kernel(&memo->first, device, ocl_dtype_of(device, GRAFT_I64), defines, "integers");
  set_items(&memo->first, (memo->elements + memo->chunk - 1) / memo->chunk);
  return keep(memo, status, out);
}

static graft_status draw_integers(const graft_exec *exec, const graft_tensor_desc *out, const graft_philox *philox,
                                  int64_t from, uint64_t range) {
  void *pointer;
  if (!is_served(philox)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, NULL, out, make_integers, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  uint64_t first_block = philox->offset / 4;
  const ocl_argument arguments[] = {OCL_TENSOR(out),       OCL_VALUE(philox->seed), OCL_VALUE(first_block),
                                    OCL_VALUE(from),       OCL_VALUE(range),        OCL_VALUE(memo->elements),
                                    OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->first, exec->stream, 8, arguments);
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
  const graft_tensor_desc *out, *chances; /* chances may be NULL */
  const graft_philox *philox;
  double chance;
} coins;

static graft_status make_coins(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const coins *call = call_pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->out->dl.dtype), *compute = dtype;
  const ocl_dtype *chances = call->chances ? ocl_dtype_of(device, call->chances->dl.dtype) : dtype;
  char defines[192];
  (void)args;
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX || !chances) return GRAFT_UNIMPLEMENTED;
  if (call->chances) {
    bool wide = dtype->code == GRAFT_F64 || chances->code == GRAFT_F64;
    compute = ocl_dtype_of(device, wide ? GRAFT_F64 : GRAFT_F32);
    if (chances->class != OCL_CLASS_FLOAT || !compute) return GRAFT_UNIMPLEMENTED;
  }
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->elements = (uint64_t)ocl_elements(call->out);
  memo->chunk = device->is_cpu ? 1024 : 1; /* blocks */
  snprintf(defines, sizeof defines, "#define BERNOULLI\n#define D %s\n#define D_P %s\n%s%s", dtype->name, chances->name,
           dtype->code == GRAFT_F64 ? "#define WIDE\n" : "", call->chances ? "#define CHANCES\n" : "");
  graft_status status = make_kernel(&memo->first, device, compute, defines, "bernoulli");
  uint64_t per_block = dtype->code == GRAFT_F64 ? 2 : 4, blocks = (memo->elements + per_block - 1) / per_block;
  set_items(&memo->first, (blocks + memo->chunk - 1) / memo->chunk);
  return keep(memo, status, out);
}

static graft_status toss(const graft_exec *exec, const coins *call) {
  void *pointer;
  if (!is_served(call->philox)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, NULL, call, make_coins, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  const graft_tensor_desc *chances = call->chances ? call->chances : call->out;
  uint64_t first_block = call->philox->offset / 4;
  uint64_t threshold = (uint64_t)ceil(call->chance * (call->out->dl.dtype == GRAFT_F64 ? 0x1p53 : 0x1p24));
  const ocl_argument arguments[] = {OCL_TENSOR(call->out),  OCL_TENSOR(chances),  OCL_VALUE(call->philox->seed),
                                    OCL_VALUE(first_block), OCL_VALUE(threshold), OCL_VALUE(memo->elements),
                                    OCL_VALUE(memo->chunk)};
  return ocl_launch(&memo->first, exec->stream, 9, arguments);
}

graft_status ocl_op_bernoulli_p(const graft_exec *exec, const graft_args_bernoulli_p *args) {
  return toss(exec, &(coins){args->out, NULL, args->philox, args->p});
}

graft_status ocl_op_bernoulli_Tensor(const graft_exec *exec, const graft_args_bernoulli_Tensor *args) {
  return toss(exec, &(coins){args->out, args->p, args->philox, 0});
}

/* ---- Choices ---- */

static graft_status make_choices(const graft_exec *exec, const void *pointer, const void *row, void **out) {
  const graft_args_multinomial *args = pointer;
  graft_device *device = exec->device;
  const ocl_dtype *dtype = ocl_dtype_of(device, args->self->dl.dtype);
  char defines[96];
  (void)row;
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || !device->has_f64) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->elements = (uint64_t)args->self->dl.shape[args->self->dl.ndim - 1];
  memo->chunk = (uint64_t)ocl_elements(args->self) / memo->elements; /* rows */
  snprintf(defines, sizeof defines, "#define MULTINOMIAL\n#define D %s\n#define OP_ID %u\n", dtype->name,
           args->head.op_id);
  bool once = !args->replacement && args->num_samples > 1;
  const ocl_dtype *compute = ocl_dtype_of(device, GRAFT_F64);
  graft_status status = make_kernel(&memo->first, device, compute, defines, "accumulate");
  if (status == GRAFT_OK) status = make_kernel(&memo->second, device, compute, defines, once ? "pick_once" : "pick");
  set_items(&memo->first, memo->chunk);
  set_items(&memo->second, once ? memo->chunk : memo->chunk * (uint64_t)args->num_samples);
  return keep(memo, status, out);
}

graft_status ocl_op_multinomial(const graft_exec *exec, const graft_args_multinomial *args) {
  void *pointer;
  cl_mem faults;
  graft_buffer *work;
  uint64_t at;
  if (!is_served(args->philox)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, args, NULL, make_choices, destroy_memo, &pointer);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  status = exec->device->plugin->host->workspace(exec, sizeof(double) * memo->chunk * memo->elements, 0, &work, &at);
  if (status != GRAFT_OK) return status;
  uint64_t first_block = args->philox->offset / 4;
  const ocl_argument sums[] = {OCL_TENSOR(args->self), OCL_BUFFER(work),       OCL_VALUE(at),
                               OCL_VALUE(faults),      OCL_VALUE(memo->chunk), OCL_VALUE(memo->elements)};
  status = ocl_launch(&memo->first, exec->stream, 7, sums);
  if (status != GRAFT_OK) return status;
  if (!args->replacement && args->num_samples > 1) {
    const ocl_argument once[] = {OCL_TENSOR(args->out),  OCL_TENSOR(args->self),        OCL_BUFFER(work),
                                 OCL_VALUE(at),          OCL_VALUE(args->philox->seed), OCL_VALUE(first_block),
                                 OCL_VALUE(memo->chunk), OCL_VALUE(memo->elements),     OCL_VALUE(args->num_samples)};
    return ocl_launch(&memo->second, exec->stream, 11, once);
  }
  const ocl_argument pick[] = {OCL_TENSOR(args->out),
                               OCL_BUFFER(work),
                               OCL_VALUE(at),
                               OCL_VALUE(args->philox->seed),
                               OCL_VALUE(first_block),
                               OCL_VALUE(memo->chunk),
                               OCL_VALUE(memo->elements),
                               OCL_VALUE(args->num_samples)};
  return ocl_launch(&memo->second, exec->stream, 9, pick);
}
