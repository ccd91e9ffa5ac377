/* Indices looked at by the host, before a slot that asks for it with GRAFT_CAP_HOST_CHECKS_INDICES. */
#include <stdlib.h>

#include "dispatch/state.h"

static graft_status refuse(const op_call *call, uint32_t arg, int64_t at, int64_t index, const op_range *range) {
  return err_about(GRAFT_OUT_OF_RANGE, call->schema->name,
                   "element %lld of %s is %lld; expected an index from %lld to %lld (the size there is %lld)",
                   (long long)at, call->schema->args[arg].name, (long long)index, (long long)range->low,
                   (long long)range->high - 1, (long long)range->size);
}

/* Waits for the device. */
static graft_status check_tensor(const op_call *call, uint32_t arg, graft_tensor *t, const op_range *range) {
  size_t bytes = dt_bytes(t->dtype);
  if (!t->numel || !t->storage) return GRAFT_OK;
  char *elements = malloc((size_t)t->numel * bytes);
  if (!elements) return err_about(GRAFT_OUT_OF_MEMORY, call->schema->name, "no host memory for its indices");
  graft_status status = graft_tensor_to_host(t, elements);
  for (int64_t i = 0; i < t->numel && !status; i++) {
    int64_t index = (int64_t)dt_load(t->dtype, elements + (size_t)i * bytes).re;
    if (!op_in_range(range, index)) status = refuse(call, arg, i, index, range);
  }
  free(elements);
  return status;
}

static graft_status check_list(const op_call *call, const graft_value *args, uint32_t arg) {
  graft_status status = GRAFT_OK;
  op_range range;
  for (uint32_t i = 0; i < args[arg].count && !status; i++)
    if (op_index_range(call->schema, args, arg, i, &range))
      status = check_tensor(call, arg, args[arg].as.tensors[i], &range);
  return status;
}

graft_status dsp_check_indices(const op_call *call, const graft_value *args) {
  graft_status status = GRAFT_OK;
  op_range range;
  for (uint32_t a = 0; a < call->schema->nargs && !status; a++) {
    if (args[a].kind == GRAFT_VALUE_TENSORS)
      status = check_list(call, args, a);
    else if (args[a].kind == GRAFT_VALUE_TENSOR && op_index_range(call->schema, args, a, 0, &range))
      status = check_tensor(call, a, args[a].as.tensor, &range);
  }
  return status;
}
