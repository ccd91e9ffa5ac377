/* Ops over lists of tensors that treat each element apart: the _foreach ops and the fused optimizers. One launch serves
 * all tensors of the same dtypes (lists.h). */
#include <stdlib.h>
#include <string.h>

#include "kernels/optimizer/chain.h"

void ocl_lists_plan_release(void *pointer) {
  ocl_lists_plan *plan = pointer;
  ocl_groups_free(&plan->groups);
  free(plan->kernels);
}

/* Whether a tensor of more elements than one has one in memory. */
static bool is_expanded(const graft_tensor_desc *desc) {
  bool expanded = ocl_elements(desc) > 1;
  for (int32_t d = 0; d < desc->dl.ndim && expanded; d++) expanded = desc->dl.shape[d] == 1 || desc->dl.strides[d] == 0;
  return expanded;
}

bool ocl_lists_are_single(const ocl_lists *call, int k) {
  bool single = call->single[k] != NULL;
  for (uint64_t t = 0; t < call->list[k].count && !single; t++) single = is_expanded(call->list[k].items[t]);
  return single;
}

/* Whether no tensor of a list that has single elements has more. */
static bool is_all_single(const ocl_lists *call, int k) {
  bool all = true;
  for (uint64_t t = 0; t < call->list[k].count && all; t++)
    all = ocl_elements(call->list[k].items[t]) <= 1 || is_expanded(call->list[k].items[t]);
  return all;
}

/* Half types and f32 are computed in f32, and may meet; f64 only where the output is. */
static bool is_served(const graft_device *device, const ocl_lists *call, uint32_t tensor) {
  const ocl_dtype *out = NULL;
  for (int k = 0; k < call->operands; k++) {
    const graft_tensor_desc *desc = ocl_lists_operand(call, k, tensor);
    const ocl_dtype *dtype = desc ? ocl_dtype_of(device, desc->dl.dtype) : NULL;
    if (!dtype || !(call->dtypes >> dtype->number & 1)) return false;
    if (!out) out = dtype;
    if (dtype->class != out->class || (dtype->class == OCL_CLASS_INT && dtype != out)) return false;
    if (call->same_dtype && dtype != out) return false;
    if (dtype->code == GRAFT_F64 && out->code != GRAFT_F64) return false;
  }
  return true;
}

/* ---- The kernel ---- */

static size_t local_of(const graft_device *device) {
  return device->is_cpu ? 1 : 64;
}

#define FILES "core/places optimizer/lists optimizer/optimizer"

/* Functions stand in front of the head, and bring common.cl for themselves. */
static graft_status share_with_functions(ocl_kernel **kernel, graft_device *device, const ocl_chain *chain,
                                         const ocl_text *head) {
  ocl_text text = {.failed = head->failed};
  ocl_chain_write_functions(&text, chain, device, local_of(device));
  if (!text.failed) ocl_text_append(&text, head->items);
  ocl_program_add_files(&text, "core/common " FILES);
  graft_status status = ocl_kernel_shared_whole(kernel, device, &text, FILES, "optimize", local_of(device));
  ocl_text_free(&text);
  return status;
}

static graft_status make_kernel(ocl_kernel **kernel, graft_device *device, const ocl_lists *call, uint32_t tensor,
                                int size) {
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(device, ocl_lists_operand(call, 0, tensor)->dl.dtype), device->vector_width,
                 local_of(device));
  ocl_text_add(&head, "#define OPERANDS %d\n%s", call->operands, call->defines);
  for (int k = 0; k < call->operands; k++) {
    ocl_text_add(&head, "#define D_%d %s\n#define SINGLE_%d %d\n", k,
                 ocl_dtype_of(device, ocl_lists_operand(call, k, tensor)->dl.dtype)->name, k,
                 ocl_lists_are_single(call, k));
  }
  if (call->expression) ocl_text_add(&head, "#define EXPRESSION %s\n", call->expression);
  if (call->chain) ocl_chain_write(&head, call->chain, device, tensor);
  if (call->flags & OCL_LISTS_LR) {
    ocl_text_add(&head, "#define D_LR %s\n", ocl_dtype_of(device, call->shared[2]->dl.dtype)->name);
  } else {
    ocl_text_add(&head, "#define D_LR f32\n");
  }
  ocl_batch_head(&head, call, size);
  const size_t local = local_of(device);
  graft_status status = call->chain && ocl_chain_has_functions(call->chain)
                            ? share_with_functions(kernel, device, call->chain, &head)
                            : ocl_kernel_shared(kernel, device, &head, FILES, "optimize", local);
  ocl_text_free(&head);
  return status;
}

/* ---- What is kept ---- */

/* The index space of a launch has a place for each element. A work-group takes `span` of them: on a CPU a long run,
 * which may hold many tensors; on a GPU a piece of one tensor. So each tensor has some places more: what it costs to
 * begin with it, or up to the next piece. */
static void cut(ocl_group *group, const graft_device *device, const ocl_lists *call) {
  const int64_t begin_costs = 256, least = 2048, most = 65536;
  int64_t total = 0, unit = device->is_cpu ? 16 : (int64_t)local_of(device) * device->vector_width;
  int64_t more = device->is_cpu ? begin_costs : 0;
  for (uint32_t i = 0; i < group->count; i++) {
    int64_t size = ocl_elements(ocl_lists_operand(call, 0, group->tensor[i]));
    group->first[i] = total;
    total += ocl_round_up(size + more, unit);
  }
  group->first[group->count] = total;
  group->span = unit;
  if (!device->is_cpu) return;
  int64_t span = total / (4 * (int64_t)device->compute_units);
  group->span = (span < least ? least : span > most ? most : span) / unit * unit;
}

graft_status ocl_lists_plan_fill(ocl_lists_plan *plan, const graft_device *device, const ocl_lists *call) {
  ocl_groups *groups = &plan->groups;
  graft_status status = ocl_groups_make(groups, call, false);
  if (status != GRAFT_OK) return status;
  for (uint32_t i = 0; i < groups->count; i++) cut(&groups->items[i], device, call);
  plan->kernels = calloc((size_t)groups->count * OCL_LIST_SIZES + 1, sizeof *plan->kernels);
  return plan->kernels ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
}

bool ocl_lists_are_served(const graft_device *device, const ocl_lists *call) {
  bool served = true;
  for (int k = 0; k < call->operands && served; k++)
    served = call->single[k] ||
             (call->list[k].count == call->list[0].count && (!ocl_lists_are_single(call, k) || is_all_single(call, k)));
  for (uint32_t t = 0; t < call->list[0].count && served; t++) served = is_served(device, call, t);
  return served;
}

static graft_status prepare(void *plan, graft_device *device, const void *from) {
  const ocl_lists *call = from;
  return ocl_lists_are_served(device, call) ? ocl_lists_plan_fill(plan, device, call) : GRAFT_UNIMPLEMENTED;
}

static const ocl_memo_type memo_type = {
    .bytes = sizeof(ocl_lists_plan), .prepare = prepare, .release = ocl_lists_plan_release};

/* ---- A call ---- */

/* The functional form: what is updated is copied first. */
static graft_status copy_to_output(graft_stream *stream, const graft_tensor_desc *from, const graft_tensor_desc *to) {
  if (from->dl.data == to->dl.data && from->dl.byte_offset == to->dl.byte_offset) return GRAFT_OK;
  return ocl_memory_api.copy(stream, to->dl.data, to->dl.byte_offset, from->dl.data, from->dl.byte_offset,
                             (uint64_t)ocl_elements(from) * GRAFT_DTYPE_BYTES(from->dl.dtype));
}

static graft_status copy_updated(graft_stream *stream, const ocl_lists *call) {
  graft_status status = GRAFT_OK;
  for (int k = 0; k < OCL_LISTS_MAX; k++) {
    for (uint64_t t = 0; t < call->from[k].count && status == GRAFT_OK; t++) {
      status = copy_to_output(stream, call->from[k].items[t], call->to[k].items[t]);
    }
  }
  if (status == GRAFT_OK && call->shared_from) status = copy_to_output(stream, call->shared_from, call->shared[0]);
  return status;
}

/* Laid out as in optimizer.cl. */
typedef struct space {
  int64_t begin, end, span, flags, tensors;
} space;

static graft_status launch_batch(const graft_exec *exec, const ocl_lists *call, const ocl_group *group,
                                 const ocl_batch *batch, ocl_kernel *kernel) {
  static const uint64_t zero = 0;
  ocl_argument arguments[OCL_BATCH_ARGUMENTS + 7];
  cl_uint n = ocl_batch_arguments(batch, arguments);
  for (int k = 0; k < 3; k++) { /* what is absent is not looked at */
    const graft_tensor_desc *desc = call->shared[k];
    arguments[n++] = (ocl_argument){sizeof(cl_mem), desc ? &desc->dl.data->handle : &batch->buffers[0]};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), desc ? &desc->dl.byte_offset : &zero};
  }
  const space space = {group->first[batch->begin], group->first[batch->end], group->span, call->flags,
                       batch->end - batch->begin};
  arguments[n++] = (ocl_argument){sizeof space, &space};
  size_t work_groups = (size_t)(ocl_ceil_divide(space.end - space.begin, space.span));
  return ocl_launch_groups(kernel, exec->stream, work_groups, n, arguments);
}

/* The tensors of a group from `begin` on that fit in a launch; sets *end behind them. */
static graft_status run_batch(const graft_exec *exec, const ocl_lists *call, const ocl_group *group,
                              _Atomic(ocl_kernel *) *kernels, uint32_t begin, uint32_t *end) {
  ocl_batch batch;
  graft_status status = ocl_batch_make(&batch, exec->device, call, group, begin);
  if (status != GRAFT_OK) return status;
  ocl_kernel *kernel = atomic_load(&kernels[batch.size]);
  if (!kernel) { /* a second thread finds the same one */
    status = make_kernel(&kernel, exec->device, call, group->tensor[0], batch.size);
    if (status == GRAFT_OK) atomic_store(&kernels[batch.size], kernel);
  }
  if (status == GRAFT_OK) status = launch_batch(exec, call, group, &batch, kernel);
  *end = batch.end;
  ocl_batch_free(exec->device, &batch);
  return status;
}

graft_status ocl_lists_launch(const graft_exec *exec, const ocl_lists *call, const ocl_lists_plan *plan) {
  graft_status status = copy_updated(exec->stream, call);
  for (uint32_t i = 0; i < plan->groups.count; i++) {
    const ocl_group *group = &plan->groups.items[i];
    for (uint32_t at = 0; at < group->count && status == GRAFT_OK;) {
      status = run_batch(exec, call, group, plan->kernels + (size_t)i * OCL_LIST_SIZES, at, &at);
    }
  }
  return status;
}

graft_status ocl_lists_run(const graft_exec *exec, const ocl_lists *call) {
  ocl_lists_plan *plan;
  const graft_status status = ocl_memo_get(exec, &memo_type, call, &plan);
  return status == GRAFT_OK ? ocl_lists_launch(exec, call, plan) : status;
}
