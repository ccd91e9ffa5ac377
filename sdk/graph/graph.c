/* What holds a graph. */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a graph");
}

graft_status gr_new(graft_rt_device *device, graft_graph **graph) {
  static _Atomic(uint32_t) last_serial;
  graft_graph *made = calloc(1, sizeof *made);
  if (!made) return no_memory();
  made->device = device;
  made->default_dtype = dt_default();
  made->serial = atomic_fetch_add(&last_serial, 1) + UINT64_C(1);
  *graph = made;
  return GRAFT_OK;
}

graft_status gr_script_new(gr_script **script) {
  gr_script *made = calloc(1, sizeof *made);
  gr_store *store = calloc(1, sizeof *store);
  if (!made || !store) {
    free(made);
    free(store);
    return no_memory();
  }
  atomic_init(&store->refs, 1);
  made->store = store;
  *script = made;
  return GRAFT_OK;
}

graft_status gr_script_copy(const gr_script *script, gr_script **copy) {
  gr_script *made = calloc(1, sizeof *made);
  if (!made) return no_memory();
  made->store = script->store;
  atomic_fetch_add(&made->store->refs, 1);
  made->nvalues = script->nvalues;
  made->nentries = script->nentries;
  made->nconstants = script->nconstants;
  made->entries = gr_grown_copy(script->entries, script->nentries, sizeof *script->entries);
  made->constants = gr_grown_copy(script->constants, script->nconstants, sizeof *script->constants);
  graft_status status = made->entries && made->constants ? gr_sizes_copy(&script->sizes, &made->sizes) : no_memory();
  if (status)
    gr_script_free(made);
  else
    *copy = made;
  return status;
}

void gr_script_free(gr_script *script) {
  if (!script) return;
  for (uint32_t i = 0; i < script->nleaves; i++) graft_tensor_release(script->leaves[i].tensor);
  gr_sizes_free(&script->sizes);
  free(script->entries);
  free(script->constants);
  free(script->leaves);
  if (atomic_fetch_sub(&script->store->refs, 1) == 1) {
    arena_free(&script->store->memory);
    free(script->store);
  }
  free(script);
}

uint32_t gr_trace(graft_graph *graph, graft_tensor *tensor) {
  const uint32_t value = graph->script->nvalues++;
  tensor->traced = graph->serial << 32 | (value + UINT64_C(1));
  return value;
}

uint32_t gr_traced(const graft_graph *graph, const graft_tensor *tensor) {
  return tensor->traced >> 32 == graph->serial ? (uint32_t)tensor->traced - 1 : GR_NONE;
}

graft_status gr_fail(graft_graph *graph, graft_status status) {
  if (graph->failed) return status;
  graph->failed = true;
  snprintf(graph->failure, sizeof graph->failure, "%s", graft_last_error());
  return status;
}

void graft_graph_destroy(graft_graph *graph) {
  if (!graph) return;
  if (tns_recording == &graph->recorder.base.base) tns_recording = NULL;
  for (uint32_t i = 0; i < graph->nbuffers; i++) graft_tensor_release(graph->buffers[i].constant);
  for (uint32_t i = 0; i < graph->ninputs; i++) graft_tensor_release(graph->inputs[i].value);
  free(graph->buffers);
  free(graph->nodes);
  free(graph->inputs);
  free(graph->outputs);
  gr_script_free(graph->script);
  graft_tensor_release(graph->claim);
  arena_free(&graph->memory);
  free(graph);
}

graft_status gr_add_buffer(graft_graph *graph, gr_kind kind, uint64_t bytes, uint32_t *index) {
  graft_status status = gr_grow((void **)&graph->buffers, graph->nbuffers, sizeof *graph->buffers);
  if (status) return status;
  *index = graph->nbuffers++;
  graph->buffers[*index] = (gr_buffer){.kind = kind, .bytes = bytes};
  return GRAFT_OK;
}

graft_status gr_add_port(graft_graph *graph, gr_port **ports, uint32_t *count, const char *name, const gr_view *view) {
  for (uint32_t i = 0; i < *count; i++) {
    if (strcmp((*ports)[i].name, name) != 0) continue;
    return err_set(GRAFT_INVALID_ARGUMENT, "the graph has an %s named %s; names are given once",
                   ports == &graph->inputs ? "input" : "output", name);
  }
  graft_status status = gr_grow((void **)ports, *count, sizeof **ports);
  char *copy = status ? NULL : arena_copy(&graph->memory, name, strlen(name) + 1);
  if (!status && !copy) status = no_memory();
  if (!status) (*ports)[(*count)++] = (gr_port){.name = copy, .view = *view};
  return status;
}

graft_status gr_add_node(graft_graph *graph, const op_schema *schema, uint32_t noperands, uint32_t nresults,
                         gr_node **node) {
  graft_status status = gr_grow((void **)&graph->nodes, graph->nnodes, sizeof *graph->nodes);
  if (status) return status;
  gr_node *made = arena_take(&graph->memory, sizeof *made);
  if (!made) return no_memory();
  made->schema = schema;
  made->nargs = schema->nargs;
  made->noperands = noperands;
  made->nresults = nresults;
  made->args = arena_take(&graph->memory, schema->nargs * sizeof *made->args);
  made->operands = arena_take(&graph->memory, noperands * sizeof *made->operands);
  made->results = arena_take(&graph->memory, nresults * sizeof *made->results);
  if (!made->args || !made->operands || !made->results) return no_memory();
  graph->nodes[graph->nnodes++] = made;
  *node = made;
  return GRAFT_OK;
}

static graft_status clone_node(graft_graph *clone, const gr_node *node) {
  gr_node *made;
  graft_status status = gr_add_node(clone, node->schema, node->noperands, node->nresults, &made);
  if (status) return status;
  memcpy(made->args, node->args, node->nargs * sizeof *node->args);
  memcpy(made->operands, node->operands, node->noperands * sizeof *node->operands);
  memcpy(made->results, node->results, node->nresults * sizeof *node->results);
  for (uint32_t i = 0; i < node->nargs; i++) {
    graft_value_kind kind = node->args[i].kind;
    size_t bytes = kind == GRAFT_VALUE_TENSORS ? 0 : op_value_bytes(&node->args[i]);
    if (bytes && !(made->args[i].as.str = arena_copy(&clone->memory, node->args[i].as.str, bytes))) return no_memory();
  }
  return GRAFT_OK;
}

static graft_status clone_port(const gr_port *port, graft_graph *clone, gr_port **ports, uint32_t *count) {
  graft_status status = gr_add_port(clone, ports, count, port->name, &port->view);
  if (status) return status;
  (*ports)[*count - 1].value_number = port->value_number;
  (*ports)[*count - 1].open = port->open;
  return GRAFT_OK;
}

static graft_status clone_all(const graft_graph *graph, graft_graph *clone) {
  graft_status status = graph->script ? gr_script_copy(graph->script, &clone->script) : GRAFT_OK;
  clone->default_dtype = graph->default_dtype;
  for (uint32_t i = 0; !status && i < graph->nbuffers; i++) {
    uint32_t index;
    status = gr_add_buffer(clone, graph->buffers[i].kind, 0, &index);
    if (status) return status;
    clone->buffers[index] = graph->buffers[i];
    if (graph->buffers[i].constant) graft_tensor_retain(graph->buffers[i].constant);
  }
  for (uint32_t i = 0; !status && i < graph->nnodes; i++) status = clone_node(clone, graph->nodes[i]);
  for (uint32_t i = 0; !status && i < graph->ninputs; i++)
    status = clone_port(&graph->inputs[i], clone, &clone->inputs, &clone->ninputs);
  for (uint32_t i = 0; !status && i < graph->noutputs; i++)
    status = clone_port(&graph->outputs[i], clone, &clone->outputs, &clone->noutputs);
  return status;
}

graft_status gr_clone(const graft_graph *graph, graft_graph **clone) {
  graft_graph *made;
  graft_status status = gr_new(graph->device, &made);
  if (status) return status;
  status = clone_all(graph, made);
  if (status)
    graft_graph_destroy(made);
  else
    *clone = made;
  return status;
}

graft_status gr_check_bytes(const graft_graph *graph) {
  uint64_t left = GR_BYTES_MAX;
  for (uint32_t i = 0; i < graph->nbuffers; i++) {
    if (graph->buffers[i].bytes > left)
      return err_set(GRAFT_INVALID_ARGUMENT, "the values of the graph take more memory than any machine has");
    left -= graph->buffers[i].bytes;
  }
  return GRAFT_OK;
}

bool gr_same_view(const gr_view *a, const gr_view *b) {
  size_t dims = (size_t)a->ndim * sizeof *a->sizes;
  return a->buffer == b->buffer && a->dtype == b->dtype && a->flags == b->flags && a->ndim == b->ndim &&
         a->offset == b->offset && !memcmp(a->sizes, b->sizes, dims) && !memcmp(a->strides, b->strides, dims);
}

gr_view gr_view_of(const graft_tensor *t, uint32_t buffer, uint64_t first) {
  gr_view view = {.buffer = buffer,
                  .dtype = t->dtype,
                  .flags = t->flags & (TNS_CONJ | TNS_NEG),
                  .ndim = t->ndim,
                  .offset = t->offset - (int64_t)(first / dt_bytes(t->dtype))};
  memcpy(view.sizes, t->sizes, (size_t)t->ndim * sizeof *t->sizes);
  memcpy(view.strides, t->strides, (size_t)t->ndim * sizeof *t->strides);
  return view;
}

graft_status gr_node_error(graft_status status, uint32_t node) {
  if (status == GRAFT_OK) return GRAFT_OK; /* each node of a run asks */
  char subject[32];
  snprintf(subject, sizeof subject, "graph node %u", node);
  return err_attribute(status, subject);
}

graft_status gr_group_error(graft_status status, uint32_t first, uint32_t last) {
  if (status == GRAFT_OK) return GRAFT_OK;
  char subject[48];
  snprintf(subject, sizeof subject, "graph nodes %u to %u", first, last);
  return err_attribute(status, subject);
}

uint32_t graft_graph_node_count(const graft_graph *graph) {
  return err_is_null(graph, __func__, "graph") ? 0 : graph->nnodes;
}
uint32_t graft_graph_input_count(const graft_graph *graph) {
  return err_is_null(graph, __func__, "graph") ? 0 : graph->ninputs;
}
uint32_t graft_graph_output_count(const graft_graph *graph) {
  return err_is_null(graph, __func__, "graph") ? 0 : graph->noutputs;
}
