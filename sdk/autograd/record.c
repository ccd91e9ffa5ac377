/* Recording: which calls enter the graph, and what may be written in place. */
#include "autograd/node.h"

typedef bool (*tensor_test)(const graft_tensor *tensor, const void *context);

/* Whether a tensor among the arguments passes a test. */
static bool any_tensor(const graft_value *args, uint32_t nargs, tensor_test test, const void *context) {
  for (uint32_t a = 0; a < nargs; a++) {
    if (args[a].kind == GRAFT_VALUE_TENSOR && test(args[a].as.tensor, context)) return true;
    if (args[a].kind != GRAFT_VALUE_TENSORS) continue;
    for (uint32_t i = 0; i < args[a].count; i++) {
      if (test(args[a].as.tensors[i], context)) return true;
    }
  }
  return false;
}

static bool test_requires(const graft_tensor *t, const void *unused) {
  (void)unused;
  return ag_requires(t);
}
static bool note_stale(const graft_tensor *t, const void *unused) {
  (void)unused;
  ag_stale_note(t);
  return false; /* go on: all of them are looked at */
}
static bool test_same(const graft_tensor *t, const void *other) {
  return t == other;
}
static bool test_same_storage(const graft_tensor *t, const void *storage) {
  return t && t->storage == storage;
}

bool ag_wanted(const graft_value *args, uint32_t nargs) {
  if (!any_tensor(args, nargs, test_requires, NULL)) return false;
  if (ag_stale_is_watched()) any_tensor(args, nargs, note_stale, NULL);
  return graft_grad_mode();
}

static graft_status refuse_write(const op_schema *schema, const graft_tensor *out, const char *why) {
  char shape[160];
  return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "can't write into %s: %s",
                   tns_describe(out, shape, sizeof shape), why);
}

/* `wanted`: an argument requires grad. */
static graft_status check_write(const op_schema *schema, const graft_value *args, uint32_t nargs,
                                const graft_tensor *out, bool wanted) {
  if (out->flags & TNS_INFERENCE) { /* grad mode is on, so inference mode is off */
    return refuse_write(schema, out,
                        "it was made in inference mode, which is off now; clone it, or write in that mode");
  }
  const ag_meta *meta = out->autograd;
  bool requires = ag_requires(out);
  if (!requires && !wanted) return GRAFT_OK;
  if (requires && !meta->node->schema) {
    return refuse_write(schema, out,
                        "it is a leaf that requires grad; turn grad mode off around the call, or write "
                        "into a copy");
  }
  if (requires && !any_tensor(args, nargs, test_same, out)) {
    return refuse_write(schema, out,
                        "it requires grad, and its history would be lost; write into a tensor without one");
  }
  if (requires && meta->is_view) {
    return refuse_write(schema, out,
                        "it is a view of a tensor that requires grad, which would miss the change; clone "
                        "it, or use an op that is not in place (slice_scatter, index_put, where)");
  }
  bool shared = out->storage && atomic_load_explicit(&out->storage->refs, memory_order_acquire) > 1;
  if (shared && (!requires || meta->viewed)) {
    return refuse_write(schema, out,
                        "other tensors share its memory and would miss the history of the change; release "
                        "them, or clone it");
  }
  return GRAFT_OK;
}

/* The arguments are looked through once, not for each output: lists have hundreds of both. */
graft_status ag_check_writes(const op_schema *schema, const graft_value *args, uint32_t nargs,
                             graft_tensor *const *outs, uint32_t nouts) {
  graft_status status = GRAFT_OK;
  if (!graft_grad_mode()) return status;
  const bool wanted = any_tensor(args, nargs, test_requires, NULL);
  for (uint32_t i = 0; i < nouts && status == GRAFT_OK; i++) {
    if (outs[i]) status = check_write(schema, args, nargs, outs[i], wanted);
  }
  return status;
}

/* A view is made by an op of the host that returns the memory of an argument. */
static bool is_view_op(const op_schema *schema) {
  return schema->route == OPROUTE_HOST;
}

/* Whether the call wrote over a tensor: an output that was given is that tensor, or lies in its storage. */
static bool is_overwritten(const op_schema *schema, const graft_tensor *t, graft_tensor *const *outs, uint32_t nouts) {
  for (uint32_t i = 0; i < nouts; i++) {
    if (outs[i] == t) return true;
    if (outs[i] && outs[i]->storage && outs[i]->storage == t->storage && !is_view_op(schema)) return true;
  }
  return false;
}

typedef struct recording {
  const op_schema *schema;
  uint64_t saves;        /* 0 where there is no formula */
  uint32_t without_grad; /* of op_def */
  graft_tensor **outs;
  uint32_t nouts;
  ag_node *node;
} recording;

static graft_status record_input(recording *r, uint32_t arg, uint32_t slot, graft_tensor *t) {
  ag_saved *saved = &r->node->inputs[slot];
  if (ag_requires(t)) {
    ag_node_retain(t->autograd->node);
    r->node->edges[slot] = (ag_edge){t->autograd->node, t->autograd->output};
  }
  if (!t) return GRAFT_OK;
  bool wanted = op_saves_arg(r->saves, arg);
  bool overwritten = wanted && is_overwritten(r->schema, t, r->outs, r->nouts);
  graft_status status = ag_save(saved, t, wanted);
  saved->overwritten = overwritten;
  saved->checked = !op_mutates(r->schema, arg);
  if (saved->version) r->node->holds_values = true;
  if (is_view_op(r->schema) && t->autograd) t->autograd->viewed = true;
  return status;
}

static graft_status record_inputs(recording *r, const graft_value *args, uint32_t nargs) {
  graft_status status = GRAFT_OK;
  for (uint32_t a = 0; a < nargs && !status; a++) {
    uint32_t slot = r->node->first_slot[a];
    if (args[a].kind == GRAFT_VALUE_TENSOR) status = record_input(r, a, slot, args[a].as.tensor);
    if (args[a].kind != GRAFT_VALUE_TENSORS) continue;
    for (uint32_t i = 0; i < args[a].count && !status; i++) {
      status = record_input(r, a, slot + i, args[a].as.tensors[i]);
    }
  }
  return status;
}

static graft_status record_outputs(recording *r) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < r->nouts && !status; i++) {
    bool wanted = op_saves_out(r->saves, ag_return_of(r->schema, i, r->nouts));
    status = ag_save(&r->node->outs[i], r->outs[i], wanted);
    if (r->node->outs[i].version) r->node->holds_values = true;
  }
  return status;
}

/* From here on the results have their history; where it fails, those that have it keep it, which is harmless. */
static graft_status set_histories(recording *r, const graft_value *args, uint32_t nargs) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < r->nouts && !status; i++) {
    graft_tensor *out = r->outs[i];
    if (!ag_differentiable(out) || r->without_grad >> ag_return_of(r->schema, i, r->nouts) & 1) continue;
    bool is_view = is_view_op(r->schema) && any_tensor(args, nargs, test_same_storage, out->storage);
    status = ag_meta_set(out, r->node, i, is_view);
  }
  return status;
}

static graft_rt_device *device_of(graft_tensor *const *outs, uint32_t nouts) {
  for (uint32_t i = 0; i < nouts; i++) {
    if (ag_differentiable(outs[i])) return outs[i]->device;
  }
  return NULL;
}

graft_status ag_record(const op_schema *schema, const op_def *def, const graft_value *args, uint32_t nargs,
                       graft_tensor **outs, uint32_t nouts) {
  graft_rt_device *device = device_of(outs, nouts);
  if (!device) return GRAFT_OK; /* no result has a gradient */
  recording r = {schema, def && def->vjp ? def->saves : 0, def ? def->without_grad : 0, outs, nouts, NULL};
  graft_status status = ag_node_new(schema, def, args, nargs, nouts, &r.node);
  if (status) return status;
  r.node->device = device;
  graft_rt_stream *stream = graft_stream_current(device);
  if (stream) r.node->stream_id = stream->id;
  status = record_inputs(&r, args, nargs);
  if (!status) status = record_outputs(&r);
  if (!status) status = set_histories(&r, args, nargs);
  ag_node_release(r.node);
  return status;
}
