/* What no rule can look at, looked at when a call is bound to its plan: late numbers, and a number in memory. */
#include "dispatch/capture.h"
#include "dispatch/plan.h"

/* Late numbers, as they were given. */
static graft_status check_late(const dsp_plan *plan, const graft_value *full, const graft_value *args, uint32_t nargs) {
  const op_schema *schema = plan->call.schema;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; !status && i < nargs; i++) {
    if (schema->args[i].kind != OPK_SCALAR || args[i].kind == GRAFT_VALUE_NONE) continue;
    graft_value number = dsp_complete_number(&schema->args[i], &args[i]);
    status = plan->call.def->bind(&plan->call, full, (int)i, &number);
  }
  return status;
}

/* Whether a dtype holds all numbers of another one. */
static bool holds_all(graft_dtype dtype, graft_dtype of) {
  if (dtype == of || dtype == GRAFT_BOOL || of == GRAFT_BOOL) return true;
  if (dt_is_integral(dtype, false) && !dt_is_integral(of, false)) return false;
  if (dt_is_complex(of) && !dt_is_complex(dtype)) return false;
  return dt_largest(dt_real(of)) <= dt_largest(dt_real(dtype));
}

/* A number in the tensor's place is in no key: another may have made the plan. As it was given; in full it wraps. */
static graft_status check_last(const dsp_plan *plan, const graft_value *full, const graft_value *args, uint32_t nargs) {
  const op_call *call = &plan->call;
  int arg = call->schema->nargs - 1;
  bool given = (uint32_t)arg < nargs && args[arg].kind == GRAFT_VALUE_SCALAR;
  return op_value_fits(call, arg, given ? &args[arg] : &full[arg], call->compute);
}

/* Waits for the device where the number's dtype has others than the tensor's; not while calls are recorded or captured,
 * whose numbers are not there yet. */
static graft_status check_one_number(const dsp_plan *plan, const graft_value *full) {
  const op_call *call = &plan->call;
  int arg = call->schema->nargs - 1;
  if (full[arg].kind != GRAFT_VALUE_TENSOR || !full[arg].as.tensor->storage) return GRAFT_OK;
  if (holds_all(call->compute, full[arg].as.tensor->dtype)) return GRAFT_OK;
  if (dsp_recording() || dsp_capture_of(plan->device)) return GRAFT_OK;
  graft_value number = {.kind = GRAFT_VALUE_SCALAR};
  graft_status status = graft_tensor_item(full[arg].as.tensor, &number.as.scalar);
  return status ? status : op_value_fits(call, arg, &number, call->compute);
}

graft_status dsp_check_bound(const dsp_plan *plan, const graft_value *full, const graft_value *args, uint32_t nargs,
                             bool from_outside) {
  const op_def *def = plan->call.def;
  graft_status status = GRAFT_OK;
  if (def->bind && def->flags & OP_LATE_NUMBERS) status = check_late(plan, full, args, nargs);
  if (status || !(def->flags & OP_HOLDS_LAST)) return status;
  status = check_last(plan, full, args, nargs);
  if (!status && from_outside) status = check_one_number(plan, full);
  return status;
}
