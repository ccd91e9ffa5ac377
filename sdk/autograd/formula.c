/* One call's gradient: unpacks what was saved, runs the op's formula, and brings each result to the shape, dtype and
 * device of its argument. */
#include <stdlib.h>

#include "autograd/node.h"
#include "graft/abi/op_ids.h"
#include "ops/generated/fx_ops.h"

/* What an op_vjp points to. */
typedef struct frame {
  fx s;
  graft_value args[OP_MAX_ARGS];
  graft_tensor *results[OP_MAX_ARGS];
  graft_tensor **list_results[OP_MAX_ARGS];
  graft_tensor **items; /* one a slot: the tensors of the arguments */
  graft_tensor **grads; /* one a slot: the results of Tensor[] arguments */
  graft_tensor **outs;
  graft_tensor *local[64];
} frame;

static bool frame_begin(frame *f, const ag_node *n) {
  size_t pointers = 2 * (size_t)n->nslots + n->nouts;
  fx_begin(&f->s, &fx_execute);
  f->items = f->local;
  if (pointers > sizeof f->local / sizeof *f->local && !(f->items = malloc(pointers * sizeof *f->items))) return false;
  f->grads = f->items + n->nslots;
  f->outs = f->grads + n->nslots;
  for (uint32_t i = 0; i < n->nslots; i++) f->grads[i] = NULL;
  return true;
}

static graft_status frame_end(frame *f) {
  graft_status status = fx_end(&f->s);
  if (f->items != f->local) free(f->items);
  return status;
}

static void unpack(frame *f, ag_node *n, bool history) {
  const ag_edge none = {NULL, 0};
  for (uint32_t i = 0; i < n->nslots; i++) f->items[i] = ag_unsave(&f->s, &n->inputs[i], history ? n->edges[i] : none);
  for (uint32_t i = 0; i < n->nouts; i++) {
    /* Whether a result requires grad was decided by its dtype when it was recorded; see record.c. */
    bool without = n->def && n->def->without_grad >> ag_return_of(n->schema, i, n->nouts) & 1;
    bool has_history = history && ag_differentiable(n->outs[i].tensor) && !without;
    f->outs[i] = ag_unsave(&f->s, &n->outs[i], has_history ? (ag_edge){n, i} : none);
  }
  for (uint32_t a = 0; a < n->nargs; a++) {
    graft_value *v = &f->args[a];
    *v = n->args[a];
    f->results[a] = NULL;
    f->list_results[a] = NULL;
    if (v->kind == GRAFT_VALUE_TENSOR) v->as.tensor = f->items[n->first_slot[a]];
    if (v->kind != GRAFT_VALUE_TENSORS) continue;
    v->as.tensors = f->items + n->first_slot[a];
    f->list_results[a] = f->grads + n->first_slot[a];
  }
}

static uint64_t needs_of(const ag_node *n, const uint8_t *wanted) {
  uint64_t needs = 0;
  for (uint32_t a = 0; a < n->nargs; a++) {
    for (uint32_t i = 0; i < ag_slots_of(&n->args[a]); i++) {
      if (wanted[n->first_slot[a] + i]) needs |= UINT64_C(1) << a;
    }
  }
  return needs;
}

static graft_tensor *wrong_shape(fx *s, const ag_node *n, uint32_t arg, const graft_tensor *result,
                                 const graft_tensor *like) {
  char is[160], expected[160];
  fx_fail(s, err_about(GRAFT_INTERNAL, n->schema->name,
                       "its gradient formula gave %s for argument %s, expected the shape of %s",
                       tns_describe(result, is, sizeof is), n->schema->args[arg].name,
                       tns_describe(like, expected, sizeof expected)));
  return NULL;
}

/* Brings a result to its argument. */
static graft_tensor *fit(fx *s, const ag_node *n, uint32_t arg, graft_tensor *result, const graft_tensor *like) {
  if (s->status || !result) return NULL;
  if (result->ndim >= like->ndim && ag_node_role(n, arg) == 'b') {
    result = fx_sum_to(s, result, like->ndim, like->sizes);
    if (!result) return NULL;
  }
  if (!tns_same_sizes(result, like)) return wrong_shape(s, n, arg, result, like);
  if (result->dtype == like->dtype && result->device == like->device) return result;
  return fx_to_copy(s, result, like->dtype, like->device, GRAFT_FORMAT_PRESERVE);
}

static void keep_results(frame *f, const ag_node *n, const uint8_t *wanted, graft_tensor **results) {
  for (uint32_t a = 0; a < n->nargs; a++) {
    uint32_t first = n->first_slot[a];
    for (uint32_t i = 0; i < ag_slots_of(&n->args[a]); i++) {
      graft_tensor *r = n->args[a].kind == GRAFT_VALUE_TENSORS ? f->grads[first + i] : f->results[a];
      if (!wanted[first + i]) continue;
      if (r) ag_stale_note(r);
      results[first + i] = fx_keep(&f->s, fit(&f->s, n, a, r, f->items[first + i]));
    }
  }
}

static _Thread_local bool anomaly_mode;

bool graft_anomaly_mode_set(bool enabled) {
  bool before = anomaly_mode;
  anomaly_mode = enabled;
  return before;
}

static bool has_nan(graft_dtype dtype, const unsigned char *data, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    dt_value v = dt_load(dtype, data + (uint64_t)i * dt_bytes(dtype));
    if (v.re != v.re || v.im != v.im) return true;
  }
  return false;
}

/* Anomaly mode: the values are looked at on the host, so that nothing is asked of the backend under suspicion. */
static graft_status check_nan(const ag_node *n, uint32_t arg, graft_tensor *result) {
  if (!result || !result->numel) return GRAFT_OK;
  unsigned char *data = malloc((size_t)result->numel * dt_bytes(result->dtype));
  if (!data) return err_about(GRAFT_OUT_OF_MEMORY, n->schema->name, "no host memory to look for NaN in its gradient");
  graft_status status = graft_tensor_to_host(result, data);
  if (!status && has_nan(result->dtype, data, result->numel)) {
    char shape[160];
    status = err_about(GRAFT_INVALID_ARGUMENT, n->schema->name,
                       "the gradient of its argument %s (%s) is the first that holds NaN (anomaly mode)",
                       n->schema->args[arg].name, tns_describe(result, shape, sizeof shape));
  }
  free(data);
  return status;
}

static graft_status check_anomaly(const ag_node *n, graft_tensor *const *results) {
  if (!anomaly_mode) return GRAFT_OK;
  graft_status status = GRAFT_OK;
  for (uint32_t a = 0; !status && a < n->nargs; a++) {
    for (uint32_t i = 0; !status && i < ag_slots_of(&n->args[a]); i++) {
      status = check_nan(n, a, results[n->first_slot[a] + i]);
    }
  }
  return status;
}

static graft_status check_runnable(const ag_node *n) {
  if (!n->def || !n->def->vjp) {
    return err_set(GRAFT_UNIMPLEMENTED,
                   "%s has no gradient formula, and a gradient reached it; detach what it is given, or its result",
                   n->schema->name);
  }
  if (!n->freed) return GRAFT_OK;
  return err_about(GRAFT_INVALID_ARGUMENT, n->schema->name,
                   "the values saved for its gradient were freed by an earlier backward; give that one "
                   "GRAFT_BACKWARD_RETAIN_GRAPH to run backward again");
}

graft_status ag_formula_run(ag_node *node, graft_tensor *const *g, const uint8_t *wanted, bool create_graph,
                            graft_tensor **results) {
  graft_status status = check_runnable(node);
  if (status) return status;
  frame f;
  if (!frame_begin(&f, node))
    return err_about(GRAFT_OUT_OF_MEMORY, node->schema->name, "no host memory for its gradient");
  bool grad_mode = graft_grad_mode_set(create_graph); /* a hook may have left another one */
  unpack(&f, node, create_graph);
  for (uint32_t i = 0; i < node->nslots; i++) results[i] = NULL;
  if (!f.s.status) {
    op_vjp v = {.s = &f.s,
                .schema = node->schema,
                .args = f.args,
                .outs = f.outs,
                .g = g,
                .needs = needs_of(node, wanted),
                .create_graph = create_graph,
                .results = f.results,
                .list_results = f.list_results};
    ag_stale_watch();
    node->def->vjp(&v);
    keep_results(&f, node, wanted, results);
  }
  status = frame_end(&f);
  graft_grad_mode_set(grad_mode);
  bool used_stale = ag_stale_was_used();
  if (!status && used_stale) status = ag_stale_error(node);
  if (!status) status = check_anomaly(node, results);
  if (!status) return GRAFT_OK;
  for (uint32_t i = 0; i < node->nslots; i++) {
    graft_tensor_release(results[i]);
    results[i] = NULL;
  }
  return status;
}
