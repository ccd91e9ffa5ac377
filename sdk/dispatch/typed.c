#include "dispatch/typed.h"

#include <stdlib.h>

#include "base/error.h"
#include "ops/core/schema.h"

enum { FEW_OUTS = 64, MAX_RETURNS = 16 }; /* beyond the first a call takes its array from the heap */

static graft_status no_pointer(uint32_t op_id, uint32_t result) {
  const op_schema *schema = op_schema_of(op_id);
  return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "the pointer for the result %s is NULL",
                   schema->rets[result].name);
}

graft_status dsp_call_one(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **out) {
  if (!out) return no_pointer(op_id, 0);
  graft_tensor *result = NULL;
  graft_status status = graft_call(op_id, args, nargs, &result, 1);
  if (!status) *out = result;
  return status;
}

static graft_status check_pointers(uint32_t op_id, graft_tensor **const *outs, const uint32_t *counts, uint32_t nouts,
                                   uint64_t *total) {
  *total = 0;
  for (uint32_t i = 0; i < nouts; i++) {
    if (counts[i] && !outs[i]) return no_pointer(op_id, i);
    *total += counts[i];
  }
  return GRAFT_OK;
}

graft_status dsp_call_lists(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **const *outs,
                            const uint32_t *counts, uint32_t nouts) {
  graft_tensor *few[FEW_OUTS];
  graft_tensor **flat = few;
  uint64_t total;
  graft_status status = check_pointers(op_id, outs, counts, nouts, &total);
  if (status) return status;
  if (total > FEW_OUTS && !(flat = malloc(total * sizeof *flat))) {
    return err_about(GRAFT_OUT_OF_MEMORY, op_schema_of(op_id)->name, "no host memory for %llu results",
                     (unsigned long long)total);
  }
  for (uint64_t i = 0; i < total; i++) flat[i] = NULL;
  status = graft_call(op_id, args, nargs, flat, (uint32_t)total);
  uint64_t next = 0;
  for (uint32_t i = 0; status == GRAFT_OK && i < nouts; i++) {
    for (uint32_t j = 0; j < counts[i]; j++) outs[i][j] = flat[next++];
  }
  if (flat != few) free(flat);
  return status;
}

graft_status dsp_call_each(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **const *outs,
                           uint32_t nouts) {
  static const uint32_t ones[MAX_RETURNS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  return dsp_call_lists(op_id, args, nargs, outs, ones, nouts);
}
