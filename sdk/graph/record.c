/* Recording: what a thread calls becomes nodes, and tensors with memory that it uses become constants.
 *
 * A tensor of the graph has a storage without memory, whose symbol says which graph and which buffer it is of; so a
 * tensor is known by where it lies, not by its address, and views and what autograd saves need nothing of their own.
 * The graph holds no reference to them, since who else holds one decides what autograd may write in place. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/script.h"
#include "tensor/copy.h"

static graft_graph *graph_of(dsp_recorder *self) {
  return ((gr_recorder *)(void *)self)->graph;
}

static graft_status failed_before(const graft_graph *graph) {
  return err_set(GRAFT_INVALID_ARGUMENT, "the recording of the graph has ended: %s", graph->failure);
}

/* --- what tensor/ asks --- */

static graft_status take_place(tns_recorder *self, uint64_t bytes, uint64_t *symbol) {
  graft_graph *graph = graph_of((dsp_recorder *)(void *)self);
  uint32_t buffer;
  graft_status status = gr_add_buffer(graph, GR_VALUE, bytes, &buffer);
  if (!status) *symbol = graph->serial << 32 | (buffer + UINT64_C(1));
  return status;
}

static graft_status refuse(tns_recorder *self, const char *what) {
  return gr_fail(
      graph_of((dsp_recorder *)(void *)self),
      err_set(GRAFT_UNIMPLEMENTED,
              "%s: values go to and from the host before and after a graph runs, not while it is recorded; make "
              "it an input or an output",
              what));
}

static graft_status copy(tns_recorder *self, graft_tensor *to, graft_tensor *from) {
  (void)self;
  const graft_value args[] = {fx_tensor(to), fx_tensor(from)};
  bool grad = graft_grad_mode_set(false);
  graft_status status = graft_call(GRAFT_OP_COPY, args, 2, &to, 1);
  graft_grad_mode_set(grad);
  return status;
}

/* --- tensors to views --- */

typedef struct taking {
  graft_graph *graph;
  const op_call *call;
  const op_schema *schema;
} taking;

static graft_status take_tensor(const taking *k, graft_tensor *t, gr_view *view) {
  uint64_t symbol = t->storage ? t->storage->symbol : 0;
  if (!symbol) return gr_constant_view(k->graph, k->schema->name, t, view);
  if (symbol >> 32 != k->graph->serial) {
    return err_about(GRAFT_INVALID_ARGUMENT, k->schema->name, "%s is a value of another graph", TNS_SHAPE(t));
  }
  *view = gr_view_of(t, (uint32_t)symbol - 1, 0);
  return GRAFT_OK;
}

static graft_status check_written(const taking *k, const gr_view *view) {
  if (k->graph->buffers[view->buffer].kind != GR_CONSTANT) return GRAFT_OK;
  return err_about(GRAFT_INVALID_ARGUMENT, k->schema->name,
                   "it writes to a tensor that is no value of the graph that is recorded; make it an input");
}

/* --- calls to nodes --- */

static graft_status check_value(const taking *k, uint32_t arg, graft_value *v) {
  const char *op = k->schema->name;
  if (v->kind == GRAFT_VALUE_DEVICE && v->as.device && v->as.device != k->graph->device) {
    return err_about(GRAFT_INVALID_ARGUMENT, op, "%s is %s; a graph that is recorded for %s stays there",
                     k->schema->args[arg].name, graft_device_text(v->as.device), graft_device_text(k->graph->device));
  }
  if (v->kind == GRAFT_VALUE_GENERATOR && v->as.generator &&
      v->as.generator != graft_generator_default(k->graph->device)) {
    return err_about(GRAFT_UNIMPLEMENTED, op, "a graph draws from its device's default generator only");
  }
  if (v->kind == GRAFT_VALUE_GENERATOR) *v = (graft_value){0};
  return GRAFT_OK;
}

/* Copies an argument, whose tensors become operands from number *next on. */
static graft_status take_arg(const taking *k, gr_node *node, uint32_t arg, uint32_t *next) {
  const graft_value *given = &k->call->args[arg];
  graft_value *v = &node->args[arg];
  *v = *given;
  bool list = v->kind == GRAFT_VALUE_TENSORS;
  if (!list && v->kind != GRAFT_VALUE_TENSOR) {
    size_t bytes = op_value_bytes(v);
    if (bytes && !(v->as.str = arena_copy(&k->graph->memory, v->as.str, bytes)))
      return err_about(GRAFT_OUT_OF_MEMORY, k->schema->name, "no host memory for its node");
    return check_value(k, arg, v);
  }
  uint32_t count = list ? v->count : 1;
  v->as.i = *next;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < count && !status; i++) {
    gr_operand *o = &node->operands[(*next)++];
    graft_tensor *t = list ? given->as.tensors[i] : given->as.tensor;
    o->view.buffer = GR_NONE;
    if (!t) continue;
    o->written = op_call_writes(k->call, arg);
    status = take_tensor(k, t, &o->view);
    if (!status && o->written) status = check_written(k, &o->view);
  }
  return status;
}

static uint32_t count_operands(const op_call *call) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    const graft_value *v = &call->args[i];
    count += v->kind == GRAFT_VALUE_TENSOR ? 1 : v->kind == GRAFT_VALUE_TENSORS ? v->count : 0;
  }
  return count;
}

static graft_status make_results(const dsp_recorded *r, graft_tensor **outs, bool *made) {
  for (uint32_t i = 0; i < r->nouts; i++) {
    const graft_meta *meta = &r->metas[i];
    if (outs[i] || (r->wanted && !r->wanted[i])) continue;
    graft_status status =
        graft_tensor_empty_strided(r->call->device, meta->dtype, meta->ndim, meta->sizes, meta->strides, &outs[i]);
    if (status) return status;
    made[i] = true;
  }
  return GRAFT_OK;
}

static graft_status take_result(const taking *k, gr_result *result, graft_tensor *out, bool made) {
  result->view.buffer = GR_NONE;
  if (!out) return GRAFT_OK;
  result->given = !made;
  graft_status status = take_tensor(k, out, &result->view);
  return status || made ? status : check_written(k, &result->view);
}

static graft_status fill_node(const taking *k, const dsp_recorded *r, gr_node *node, graft_tensor **outs,
                              const bool *made) {
  uint32_t next = 0;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->nargs && !status; i++) status = take_arg(k, node, i, &next);
  for (uint32_t i = 0; i < r->nouts && !status; i++) status = take_result(k, &node->results[i], outs[i], made[i]);
  return status;
}

/* As a call that runs does, so that a value which was saved is known to have changed. */
static void mark_written(const dsp_recorded *r, graft_tensor **outs) {
  for (uint32_t i = 0; i < r->nouts; i++) {
    if (outs[i]) tns_bump(outs[i]);
  }
  for (uint32_t a = 0; a < r->call->schema->nargs; a++) {
    const graft_value *v = &r->call->args[a];
    if (!op_call_writes(r->call, a)) continue;
    if (v->kind == GRAFT_VALUE_TENSOR && v->as.tensor) tns_bump(v->as.tensor);
    for (uint32_t i = 0; v->kind == GRAFT_VALUE_TENSORS && i < v->count; i++) {
      if (v->as.tensors[i]) tns_bump(v->as.tensors[i]);
    }
  }
}

/* Rules read the default dtype, and all nodes of a graph run under one: the first one's. */
static graft_status check_default_dtype(const graft_graph *graph) {
  graft_dtype now = dt_default();
  if (now == graph->default_dtype) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "the default dtype is %s, and the graph's first calls were recorded under %s; record all under one",
                 graft_dtype_name(now), graft_dtype_name(graph->default_dtype));
}

static graft_status check_call(graft_graph *graph, const op_call *call) {
  if (graph->failed) return failed_before(graph);
  if (!graph->nnodes) graph->default_dtype = dt_default();
  graft_status status = check_default_dtype(graph);
  if (status) return status;
  if (call->device != graph->device) {
    return err_about(GRAFT_INVALID_ARGUMENT, call->schema->name,
                     "it runs on %s while a graph for %s is recorded; call it before, or give its result as an input",
                     graft_device_text(call->device), graft_device_text(graph->device));
  }
  if (!call->dynamic && !(call->schema->flags & OPF_DYNAMIC)) return GRAFT_OK;
  return gr_fail(graph,
                 err_about(GRAFT_UNIMPLEMENTED, call->schema->name,
                           "the size of its result depends on data, and a graph's sizes are fixed; the recording "
                           "has ended"));
}

static graft_status add_node(const taking *k, const dsp_recorded *r, graft_tensor **outs, const bool *made) {
  graft_graph *graph = k->graph;
  const uint32_t nodes = graph->nnodes;
  gr_node *node;
  graft_status status = gr_add_node(graph, k->schema, count_operands(r->call), r->nouts, &node);
  if (!status) status = fill_node(k, r, node, outs, made);
  if (status) graph->nnodes = nodes;
  return status;
}

static graft_status take(dsp_recorder *self, const dsp_recorded *r, graft_tensor **outs) {
  graft_graph *graph = graph_of(self);
  graft_status status = check_call(graph, r->call);
  if (status) return status;
  const taking k = {graph, r->call, r->call->schema};
  arena memory = {0};
  bool *made = arena_take(&memory, r->nouts * sizeof *made);
  if (!made) return err_about(GRAFT_OUT_OF_MEMORY, k.schema->name, "no host memory for its node");
  status = make_results(r, outs, made);
  if (!status && !r->nothing_to_run) status = add_node(&k, r, outs, made);
  if (!status) mark_written(r, outs);
  for (uint32_t i = 0; status && i < r->nouts; i++) {
    if (!made[i]) continue;
    graft_tensor_release(outs[i]);
    outs[i] = NULL;
  }
  arena_free(&memory);
  return status;
}

/* --- the public part --- */

static graft_status begin(graft_graph *graph) {
  if (tns_recording) {
    return err_set(GRAFT_INVALID_ARGUMENT, "this thread records a graph already; end that recording first");
  }
  if (graph->failed) return failed_before(graph);
  graph->recorder = (gr_recorder){
      {{graph->device, take_place, copy, refuse, graph->script ? gr_script_backward : NULL},
       take,
       graph->script ? gr_script_call : NULL},
      graph,
  };
  tns_recording = &graph->recorder.base.base;
  return GRAFT_OK;
}

graft_status graft_graph_record_begin(graft_graph *graph) {
  return graph ? begin(graph) : err_null(__func__, "graph");
}

graft_status graft_graph_record_end(graft_graph *graph) {
  if (!graph) return err_null(__func__, "graph");
  if (tns_recording != &graph->recorder.base.base) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_record_end: this thread does not record this graph");
  }
  tns_recording = NULL;
  return graph->failed ? failed_before(graph) : GRAFT_OK;
}

graft_status graft_graph_call(graft_graph *graph, uint32_t op_id, const graft_value *args, uint32_t nargs,
                              graft_tensor **outs, uint32_t nouts) {
  if (!graph) return err_null(__func__, "graph");
  if (nargs && !args) return err_null(__func__, "args");
  if (nouts && !outs) return err_null(__func__, "outs");
  graft_status status = begin(graph);
  if (status) return status;
  status = graft_call(op_id, args, nargs, outs, nouts);
  tns_recording = NULL;
  return status;
}

graft_status graft_graph_create(graft_rt_device *device, graft_graph **graph) {
  if (!device) return err_null(__func__, "device");
  if (!graph) return err_null(__func__, "graph");
  const int64_t none = 0;
  graft_tensor *claim;
  tns_recorder *recording = tns_recording;
  tns_recording = NULL; /* the claim is no value of another graph */
  graft_status status = graft_tensor_empty(device, GRAFT_U8, 1, &none, &claim);
  tns_recording = recording;
  if (status) return status;
  status = gr_new(device, graph);
  if (status)
    graft_tensor_release(claim);
  else
    (*graph)->claim = claim;
  return status;
}
