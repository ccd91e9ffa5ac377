/* Connectionist temporal classification and its gradient. */
#include <stdlib.h>

#include "kernels/loss/loss.h"
#include "runtime/table.h"

typedef struct ctc {
  const graft_tensor_desc *log_probs, *targets, *loss, *alpha;
  const graft_tensor_desc *grad, *out; /* of the gradient */
  graft_int_list steps, labels;
  int64_t blank;
  bool skips_infinite;
  uint32_t op_id;
} ctc;

/* As ctc.cl has it. */
typedef struct shape {
  int64_t steps, batch, classes, states, blank, skips_infinite;
} shape;

typedef struct memo {
  ocl_kernel walk, slopes; /* walk: alpha, or of the gradient beta */
  uint64_t beta_bytes;
} memo;

static graft_status make(ocl_kernel *kernel, graft_device *device, const ocl_text *head, const char *entry,
                         const shape *shape, int64_t items, size_t local) {
  graft_status status = ocl_kernel_init(kernel, device, head, "loss/ctc", entry);
  ocl_kernel_size(kernel, items, local);
  return status == GRAFT_OK ? ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof *shape, shape}) : status;
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const ctc *call = from;
  const int64_t *sizes = call->log_probs->dl.shape;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->log_probs->dl.dtype),
                  *target = ocl_dtype_of(device, call->targets->dl.dtype);
  if (!dtype || !target || dtype->class != OCL_CLASS_FLOAT || dtype->bytes == 2) return GRAFT_UNIMPLEMENTED;
  const shape shape = {.steps = sizes[0],
                       .batch = sizes[1],
                       .classes = sizes[2],
                       .states = call->alpha->dl.shape[2],
                       .blank = call->blank,
                       .skips_infinite = call->skips_infinite};
  size_t local = device->is_cpu ? 1 : 64;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define D %s\n#define D_TARGET %s\n#define OP_ID %u\n", dtype->name, target->name, call->op_id);
  memo->beta_bytes = (uint64_t)ocl_elements(call->alpha) * dtype->bytes;
  graft_status status =
      make(&memo->walk, device, &head, call->grad ? "ctc_beta" : "ctc_alpha", &shape, sizes[1] * (int64_t)local, local);
  if (status == GRAFT_OK && call->grad)
    status = make(&memo->slopes, device, &head, "ctc_slopes", &shape, sizes[0] * sizes[1], local);
  ocl_text_free(&head);
  return status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 2, .prepare = prepare};

/* Steps, labels and the first label of each entry. */
static graft_status make_table(graft_device *device, const ctc *call, cl_mem *table) {
  uint64_t batch = call->steps.count;
  const graft_dl_tensor *targets = &call->targets->dl;
  int64_t *rows = malloc((size_t)(3 * batch + 1) * sizeof *rows), first = 0;
  if (!rows) return ocl_fail(device->plugin, GRAFT_OUT_OF_MEMORY, "no host memory for a table of lengths");
  for (uint64_t n = 0; n < batch; n++) {
    rows[3 * n] = call->steps.items[n];
    rows[3 * n + 1] = call->labels.items[n];
    rows[3 * n + 2] = first;
    first += targets->ndim == 2 ? targets->shape[1] : call->labels.items[n];
  }
  graft_status status = ocl_table_get(device, rows, (size_t)(3 * batch) * sizeof *rows, table);
  free(rows);
  return status;
}

static graft_status launch(const graft_exec *exec, memo *memo, const ctc *call, cl_mem table, cl_mem faults) {
  /* Without a label there may be no memory; it is never read. */
  const graft_tensor_desc *targets = call->targets->dl.data ? call->targets : call->log_probs;
  if (!call->grad) {
    const ocl_argument alpha[] = {OCL_TENSOR(call->loss), OCL_TENSOR(call->alpha), OCL_TENSOR(call->log_probs),
                                  OCL_TENSOR(targets),    OCL_VALUE(table),        OCL_VALUE(faults)};
    return ocl_launch(&memo->walk, exec->stream, OCL_ALL(alpha));
  }
  ocl_place work;
  graft_status status = ocl_workspace(exec, memo->beta_bytes, &work);
  if (status != GRAFT_OK) return status;
  const ocl_argument beta[] = {OCL_PLACE(work), OCL_TENSOR(call->log_probs), OCL_TENSOR(targets), OCL_VALUE(table),
                               OCL_VALUE(faults)};
  status = ocl_launch(&memo->walk, exec->stream, OCL_ALL(beta));
  if (status != GRAFT_OK) return status;
  const ocl_argument slopes[] = {OCL_TENSOR(call->out), OCL_TENSOR(call->grad), OCL_TENSOR(call->log_probs),
                                 OCL_TENSOR(targets),   OCL_TENSOR(call->loss), OCL_TENSOR(call->alpha),
                                 OCL_PLACE(work),       OCL_VALUE(table),       OCL_VALUE(faults)};
  return ocl_launch(&memo->slopes, exec->stream, OCL_ALL(slopes));
}

static graft_status run(const graft_exec *exec, const ctc *call) {
  memo *memo;
  cl_mem faults, table;
  if (!call->loss || !call->alpha || call->steps.count == 0) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status == GRAFT_OK) status = ocl_stream_faults(exec->stream, &faults);
  if (status == GRAFT_OK) status = make_table(exec->device, call, &table);
  if (status != GRAFT_OK) return status;
  status = launch(exec, memo, call, table, faults);
  ocl_table_release(exec->device, table);
  return status;
}

graft_status ocl_op_ctc_loss(const graft_exec *exec, const graft_args_ctc_loss *args) {
  return run(exec, &(ctc){.op_id = args->head.op_id,
                          .log_probs = args->log_probs,
                          .targets = args->targets,
                          .steps = args->input_lengths,
                          .labels = args->target_lengths,
                          .blank = args->blank,
                          .loss = args->out0,
                          .alpha = args->out1});
}

graft_status ocl_op_ctc_loss_backward(const graft_exec *exec, const graft_args_ctc_loss_backward *args) {
  return run(exec, &(ctc){.op_id = args->head.op_id,
                          .log_probs = args->log_probs,
                          .targets = args->targets,
                          .steps = args->input_lengths,
                          .labels = args->target_lengths,
                          .blank = args->blank,
                          .skips_infinite = args->zero_infinity,
                          .loss = args->neg_log_likelihood,
                          .alpha = args->log_alpha,
                          .grad = args->grad,
                          .out = args->out});
}
