/* Inputs and outputs. */
#include <string.h>

#include "graph/graph.h"

static graft_status take_place(tns_recorder *self, uint64_t bytes, uint64_t *symbol) {
  graft_graph *graph = ((gr_recorder *)(void *)self)->graph;
  uint32_t buffer;
  graft_status status = gr_add_buffer(graph, GR_INPUT, bytes, &buffer);
  if (!status) *symbol = graph->serial << 32 | (buffer + UINT64_C(1));
  return status;
}

/* A tensor as one is made on `device`, checks and all, but of the graph. */
graft_status gr_new_input(graft_graph *graph, graft_rt_device *device, graft_dtype dtype, int32_t ndim,
                          const int64_t *sizes, const int64_t *strides, graft_tensor **input) {
  gr_recorder recorder = {{{device, take_place, NULL, NULL, NULL}, NULL, NULL}, graph};
  tns_recorder *before = tns_recording;
  tns_recording = &recorder.base.base;
  graft_status status = graft_tensor_empty_strided(device, dtype, ndim, sizes, strides, input);
  tns_recording = before;
  return status;
}

graft_status gr_add_input(graft_graph *graph, const char *name, graft_tensor *input) {
  const uint32_t buffer = graph->nbuffers - 1;
  graph->buffers[buffer].on_host = input->device != graph->device;
  gr_view view = gr_view_of(input, buffer, 0);
  graft_status status = gr_add_port(graph, &graph->inputs, &graph->ninputs, name, &view);
  return status ? err_attribute(status, "graft_graph_input") : GRAFT_OK;
}

graft_status gr_add_traced_input(graft_graph *graph, const char *name, graft_tensor *input, const int64_t *sizes,
                                 const int64_t *strides) {
  graft_status status = gr_add_input(graph, name, input);
  if (status || !graph->script) return status;
  struct gr_open_shape *open = arena_take(&graph->script->store->memory, sizeof *open);
  if (!open) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the shape of an input");
  const size_t bytes = (size_t)input->ndim * sizeof *open->sizes;
  if (bytes) memcpy(open->sizes, sizes ? sizes : input->sizes, bytes);
  open->strided = !sizes || strides;
  if (bytes && open->strided) memcpy(open->strides, strides ? strides : input->strides, bytes);
  gr_port *port = &graph->inputs[graph->ninputs - 1];
  port->open = open;
  port->value_number = gr_trace(graph, input);
  return GRAFT_OK;
}

/* The numbers of the recording in the place of names. */
static const int64_t *examples_of(const graft_graph *graph, int32_t ndim, const int64_t *from, int64_t *to) {
  if (!graph->script || !from || ndim < 0 || ndim > GRAFT_MAX_DIMS) return from;
  const gr_sizes *sizes = &graph->script->sizes;
  for (int32_t i = 0; i < ndim; i++) to[i] = gr_size_value(sizes, sizes->examples, from[i]);
  return to;
}

graft_status graft_graph_input(graft_graph *graph, const char *name, graft_dtype dtype, int32_t ndim,
                               const int64_t *sizes, const int64_t *strides, graft_tensor **input) {
  if (!graph) return err_null(__func__, "graph");
  if (!name) return err_null(__func__, "name");
  if (!*name) return err_set(GRAFT_INVALID_ARGUMENT, "%s: the name is empty", __func__);
  if (ndim && !sizes) return err_null(__func__, "sizes");
  if (!input) return err_null(__func__, "input");
  graft_tensor *made;
  int64_t size_numbers[GRAFT_MAX_DIMS], stride_numbers[GRAFT_MAX_DIMS];
  graft_status status = gr_new_input(graph, graph->device, dtype, ndim, examples_of(graph, ndim, sizes, size_numbers),
                                     examples_of(graph, ndim, strides, stride_numbers), &made);
  if (status) return status;
  status = gr_add_traced_input(graph, name, made, sizes, strides);
  if (status)
    graft_tensor_release(made);
  else
    *input = made;
  return status;
}

graft_status graft_graph_input_like(graft_graph *graph, const char *name, const graft_tensor *like,
                                    graft_tensor **input) {
  if (!graph) return err_null(__func__, "graph");
  if (!name) return err_null(__func__, "name");
  if (!*name) return err_set(GRAFT_INVALID_ARGUMENT, "%s: the name is empty", __func__);
  if (!like) return err_null(__func__, "like");
  if (!input) return err_null(__func__, "input");
  if (like->device != graph->device && (!like->device->is_reference || like->ndim)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_input_like: %s is on %s; the graph is for %s", TNS_SHAPE(like),
                   graft_device_text(like->device), graft_device_text(graph->device));
  }
  graft_tensor *made;
  graft_status status = gr_new_input(graph, like->device, like->dtype, like->ndim, like->sizes, like->strides, &made);
  if (status) return status;
  made->flags |= like->flags & (TNS_CONJ | TNS_NEG);
  if (graft_tensor_requires_grad(like)) status = graft_tensor_set_requires_grad(made, true);
  if (!status) status = gr_add_traced_input(graph, name, made, NULL, NULL);
  if (status)
    graft_tensor_release(made);
  else
    *input = made;
  return status;
}

graft_status graft_graph_input_donate(graft_graph *graph, uint32_t index) {
  if (!graph) return err_null(__func__, "graph");
  if (index >= graph->ninputs)
    return err_about(GRAFT_INVALID_ARGUMENT, __func__, "input %u; the graph has %u", index, graph->ninputs);
  graph->buffers[graph->inputs[index].view.buffer].donated = true;
  return GRAFT_OK;
}

graft_status graft_graph_output(graft_graph *graph, const char *name, graft_tensor *value) {
  if (!graph) return err_null(__func__, "graph");
  if (!name) return err_null(__func__, "name");
  if (!value) return err_null(__func__, "value");
  uint64_t symbol = value->storage ? value->storage->symbol : 0;
  if (!symbol || symbol >> 32 != graph->serial) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_output: %s (%s) is no value of this graph%s", name,
                   TNS_SHAPE(value), symbol ? ", but of another one" : "");
  }
  const uint32_t number = graph->script ? gr_traced(graph, value) : 0;
  if (number == GR_NONE) {
    return err_set(
        GRAFT_INVALID_ARGUMENT,
        "graft_graph_output: %s (%s) was made by no call of an op, nor by graft_backward for a leaf, and the "
        "graph has open sizes: it can't be followed to others",
        name, TNS_SHAPE(value));
  }
  gr_view view = gr_view_of(value, (uint32_t)symbol - 1, 0);
  graft_status status = gr_add_port(graph, &graph->outputs, &graph->noutputs, name, &view);
  if (!status) graph->outputs[graph->noutputs - 1].value_number = number;
  return status ? err_attribute(status, "graft_graph_output") : GRAFT_OK;
}
