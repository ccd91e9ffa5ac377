/* What a plugin may ask of the host while a slot runs. */
#include "dispatch/host_callbacks.h"

#include <stdlib.h>

#include "dispatch/plan.h"

graft_status dsp_host_workspace(const graft_exec *exec, uint64_t bytes, uint64_t alignment, graft_buffer **buffer,
                                uint64_t *byte_offset) {
  dsp_frame *frame = exec->host_context;
  if (alignment > frame->device->alignment) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "workspace: an alignment of %llu bytes was asked for; the device's own is %llu",
                   (unsigned long long)alignment, (unsigned long long)frame->device->alignment);
  }
  if (frame->workspace_count == DSP_MAX_WORKSPACES) {
    return err_set(GRAFT_INVALID_ARGUMENT, "workspace: one call may ask for %u at most", frame->workspace_count);
  }
  mem_block *block;
  graft_status status = dsp_zone_allocate(frame, bytes, &block);
  if (status) return status;
  frame->workspace_bytes[frame->workspace_count] = bytes;
  frame->workspaces[frame->workspace_count++] = block;
  *buffer = bytes ? block->buffer : NULL;
  *byte_offset = block->offset + dsp_zone_bytes(frame->device);
  return GRAFT_OK;
}

graft_status dsp_host_output_shape(const graft_exec *exec, graft_output *output, int32_t ndim, const int64_t *shape,
                                   const graft_tensor_desc **desc) {
  dsp_frame *frame = exec->host_context;
  const char *op = frame->plan->call.schema->name;
  if (output->tensor) return err_about(GRAFT_INVALID_ARGUMENT, op, "output_shape was called twice for one output");
  const graft_meta *bound = &output->plan->out_metas[output->index];
  if (ndim != bound->ndim) {
    return err_about(GRAFT_INVALID_ARGUMENT, op, "the plugin gives an output of rank %d; expected %d", ndim,
                     bound->ndim);
  }
  for (int32_t i = 0; i < ndim; i++) {
    if (shape[i] < 0 || shape[i] > bound->sizes[i]) {
      return err_about(GRAFT_INVALID_ARGUMENT, op, "the plugin gives size %lld for dim %d; expected 0 to %lld",
                       (long long)shape[i], i, (long long)bound->sizes[i]);
    }
  }
  graft_tensor *t;
  graft_status status = graft_tensor_empty(frame->device, bound->dtype, ndim, shape, &t);
  if (status) return status;
  output->tensor = t;
  dsp_fill_desc(&output->desc, t, t->dtype, t->ndim, t->sizes, t->strides);
  *desc = &output->desc;
  return GRAFT_OK;
}

graft_status dsp_host_memo_publish(const graft_exec *exec, void *value, void (*destroy)(void *value), void **winner) {
  dsp_frame *frame = exec->host_context;
  dsp_plan *plan = frame->plan;
  if (!plan) return err_set(GRAFT_INVALID_ARGUMENT, "memo_publish: a group of calls has an executable and no memo");
  if (!value) return err_set(GRAFT_INVALID_ARGUMENT, "memo_publish: a memo can't be NULL");
  if (frame->loser_count == DSP_MAX_LOSERS) {
    return err_set(GRAFT_INVALID_ARGUMENT, "memo_publish: one call may publish a memo %d times at most",
                   DSP_MAX_LOSERS);
  }
  dsp_memo *made = malloc(sizeof *made), *none = NULL;
  if (!made) return err_set(GRAFT_OUT_OF_MEMORY, "memo_publish: no host memory");
  *made = (dsp_memo){value, destroy};
  if (atomic_compare_exchange_strong(&plan->memo, &none, made)) {
    *winner = value;
    return GRAFT_OK;
  }
  frame->losers[frame->loser_count++] = *made; /* destroy is called under no lock, and the stream's is held here */
  free(made);
  *winner = none->value;
  return GRAFT_OK;
}
