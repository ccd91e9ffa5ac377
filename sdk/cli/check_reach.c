/* Whether a slot is ever called: its capabilities must not leave out the results of every call that they let in. What
 * is tried are the calls of the conformance suite. */
#include "check.h"
#include "conformance/cases/cases.h"
#include "conformance/run/call.h"
#include "conformance/run/menu.h"
#include "graft/runtime.h"

static bool in_set(uint64_t set, graft_dtype dtype) {
  return !set || set >> dt_number(dtype) & 1;
}

/* Whether the values that a call puts out are of dtypes listed. Masks and indices come whatever is listed. */
static bool puts_out_listed(const cf_call *call, uint64_t listed) {
  graft_tensor *tensors[CF_MAX_TENSORS] = {0}, *items[CF_MAX_TENSORS];
  graft_value args[OP_MAX_ARGS];
  graft_meta outs[CF_MAX_TENSORS];
  uint32_t count = 0;
  graft_status status = graft_device_reference() ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < call->ntensors && !status; i++) {
    const txt_tensor *t = &call->specs[i];
    status = tns_new(NULL, graft_device_reference(), t->dtype, t->ndim, t->sizes, t->strides, t->offset, &tensors[i]);
  }
  cf_call_args(call, graft_device_reference(), tensors, args, items);
  if (!status)
    status = graft_infer(call->schema->id, args, call->schema->nargs, outs, sizeof *outs, CF_MAX_TENSORS, &count);
  bool listed_all = true, one_each = count == call->schema->nrets;
  for (uint32_t i = 0; !status && i < count; i++) {
    bool value = !one_each || !(call->schema->rets[i].flags & OPR_NO_VALUE);
    if (value && outs[i].dtype && !in_set(listed, outs[i].dtype)) listed_all = false;
  }
  for (uint32_t i = 0; i < call->ntensors; i++) graft_tensor_release(tensors[i]);
  return status || listed_all; /* what cannot be told excludes nothing */
}

typedef struct reach {
  bool let_in, reached; /* some call has its inputs listed; and its results, too */
} reach;

static void try_row(const cf_case *row, const op_schema *schema, const graft_op_caps *caps, reach *r) {
  const cf_op *op = cf_case_op(row);
  graft_dtype dtypes[GRAFT_NUMBER_WIDE];
  uint32_t count = cf_op_dtypes(op, dtypes);
  for (uint32_t i = 0; i < count && !r->reached; i++) {
    cf_case c = *row;
    cf_call call;
    c.dtype = dtypes[i], c.op_id = schema->id;
    if (!in_set(caps->input_dtypes, c.dtype) || !cf_call_open(&c, &call)) continue;
    r->let_in = true;
    r->reached = puts_out_listed(&call, caps->output_dtypes);
    cf_call_close(&call);
  }
}

static reach reach_of(const op_schema *schema, const graft_op_caps *caps) {
  reach r = {0};
  for (uint32_t t = 0; t < cf_topic_count; t++)
    for (uint32_t i = 0; i < cf_topics[t]->count && !r.reached; i++)
      if (op_schema_find(cf_topics[t]->ops[i].name) == schema)
        try_row(&(cf_case){.topic = (uint16_t)t, .op = (uint16_t)i}, schema, caps, &r);
  return r;
}

static void check_reached(ck_session *s) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  if (!s->plugin.op_caps) ck_skip("the plugin has no op_caps");
  for (size_t i = 0; i < count; i++) {
    if (!ck_slot_of(s, &all[i])) continue;
    graft_op_caps caps = ck_caps_of(s, &all[i]);
    reach r = reach_of(&all[i], &caps);
    if (r.let_in && !r.reached)
      ck_fail("no call reaches the slot of %s: its output_dtypes list none of what it gives for its input_dtypes",
              all[i].name);
  }
}

static const ck_check checks[] = {
    {"op.reached", "The capabilities of a slot do not exclude every call of it.", CK_DEVICE, .run = check_reached},
};

const ck_table ck_reach_checks = {checks, sizeof checks / sizeof *checks};
