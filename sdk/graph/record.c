/* Recording: what a thread calls becomes nodes, and tensors with memory that it uses become constants.
 *
 * A tensor of the graph has a storage without memory, whose symbol says which graph and which buffer it is of; so a
 * tensor is known by where it lies, not by its address, and views and what autograd saves need nothing of their own.
 * The graph holds no reference to them, since who else holds one decides what autograd may write in place. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "tensor/copy.h"

static graft_graph *graph_of(dsp_recorder *self) {
  return ((gr_recorder *)(void *)self)->graph;
}

static graft_status failed_before(const graft_graph *graph) {
  return err_set(GRAFT_INVALID_ARGUMENT, "the recording of the graph has ended: %s", graph->failure);
}

/* Keeps the error that was just set: it ends the recording. */
static graft_status fail(graft_graph *graph, graft_status status) {
  if (graph->failed) return status;
  graph->failed = true;
  snprintf(graph->failure, sizeof graph->failure, "%s", graft_last_error());
  return status;
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
  return fail(
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

static uint64_t address_unit(const graft_graph *graph) {
  return graph->device->alignment > 64 ? graph->device->alignment : 64;
}

/* The bytes of a storage from `first` on, in memory of the graph's own. */
static graft_status copy_bytes(graft_tensor *t, uint64_t first, uint64_t bytes, graft_tensor **made) {
  const int64_t size = (int64_t)bytes, one = 1;
  graft_tensor *from;
  tns_recorder *recording = tns_recording;
  tns_recording = NULL; /* this is to run */
  graft_status status = tns_new(t->storage, t->device, GRAFT_U8, 1, &size, &one, (int64_t)first, &from);
  if (!status) {
    status = graft_tensor_empty(t->device, GRAFT_U8, 1, &size, made);
    if (!status && (status = tns_copy(*made, from))) graft_tensor_release(*made);
    graft_tensor_release(from);
  }
  tns_recording = recording;
  return status;
}

static bool is_known(const gr_buffer *b, const graft_storage *storage, uint64_t first, uint64_t bytes) {
  return b->kind == GR_CONSTANT && b->source_id == storage->id && b->source_first == first && b->bytes == bytes &&
         b->source_version == atomic_load(&storage->version);
}

static graft_status add_constant(graft_graph *graph, graft_tensor *t, uint64_t first, uint64_t bytes, uint32_t *index) {
  const graft_storage *storage = t->storage;
  bool unseen = atomic_load(&storage->unseen);
  for (uint32_t i = 0; !unseen && i < graph->nbuffers; i++) {
    if (is_known(&graph->buffers[i], storage, first, bytes)) return *index = i, GRAFT_OK;
  }
  graft_tensor *made;
  graft_status status = copy_bytes(t, first, bytes, &made);
  if (status) return status;
  status = gr_add_buffer(graph, GR_CONSTANT, bytes, index);
  if (status) {
    graft_tensor_release(made);
    return status;
  }
  gr_buffer *b = &graph->buffers[*index];
  b->constant = made;
  b->on_host = t->device != graph->device;
  if (unseen) return GRAFT_OK;
  b->source_id = storage->id;
  b->source_version = atomic_load(&storage->version);
  b->source_first = first;
  return GRAFT_OK;
}

static graft_status take_constant(const taking *k, graft_tensor *t, gr_view *view) {
  const char *op = k->schema->name;
  char is[160];
  tns_describe(t, is, sizeof is);
  if (!t->storage) return err_about(GRAFT_INVALID_ARGUMENT, op, "%s has a shape but no memory", is);
  if (graft_tensor_requires_grad(t)) {
    return err_about(GRAFT_INVALID_ARGUMENT, op,
                     "%s requires grad and is no value of the graph that is recorded, which would be lost to its "
                     "history; make it an input (graft_graph_input_like), or detach it",
                     is);
  }
  if (t->device != k->graph->device && (!t->device->is_reference || t->ndim)) {
    return err_about(GRAFT_INVALID_ARGUMENT, op, "%s is on %s; the graph is recorded for %s", is,
                     graft_device_text(t->device), graft_device_text(k->graph->device));
  }
  uint64_t begin = (uint64_t)t->offset * dt_bytes(t->dtype), unit = address_unit(k->graph), first = begin / unit * unit;
  int64_t end = t->numel ? tns_extent_bytes(t->dtype, t->ndim, t->sizes, t->strides, t->offset) : (int64_t)first;
  uint32_t index;
  graft_status status = add_constant(k->graph, t, first, (uint64_t)end - first, &index);
  if (!status) *view = gr_view_of(t, index, first);
  return status;
}

static graft_status take_tensor(const taking *k, graft_tensor *t, gr_view *view) {
  uint64_t symbol = t->storage ? t->storage->symbol : 0;
  if (!symbol) return take_constant(k, t, view);
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
  return fail(graph, err_about(GRAFT_UNIMPLEMENTED, call->schema->name,
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
      {{graph->device, take_place, copy, refuse}, take},
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
