/* Values that inputs have where a run is not told others: what a step begins with. They are held as bytes, laid out as
 * the input is, on the graph's device. */
#include <stdlib.h>

#include "graph/graph.h"

static graft_rt_device *device_for(const graft_graph *graph, uint32_t index, graft_rt_device *device) {
  return graph->buffers[graph->inputs[index].view.buffer].on_host ? graft_device_reference() : device;
}

/* The input's elements among such bytes. */
static graft_status view_of(const gr_view *view, graft_tensor *bytes, graft_tensor **t) {
  graft_status status =
      tns_new(bytes->storage, bytes->device, view->dtype, view->ndim, view->sizes, view->strides, 0, t);
  if (!status) (*t)->flags |= view->flags;
  return status;
}

bool gr_has_open_size(const graft_graph *graph, const gr_port *port) {
  for (int32_t i = 0; port->open && i < port->view.ndim; i++) {
    if (gr_is_open(&graph->script->sizes, port->open->sizes[i])) return true;
    if (port->open->strided && gr_is_open(&graph->script->sizes, port->open->strides[i])) return true;
  }
  return false;
}

static graft_status check_value(const graft_graph *graph, uint32_t index, const graft_tensor *value) {
  const gr_port *port = &graph->inputs[index];
  if (tns_recording)
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "graft_graph_input_set_value: this thread records a graph; end that recording first");
  if (gr_has_open_size(graph, port))
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_input_set_value: input %s has an open size", port->name);
  if (value->dtype == port->view.dtype && tns_has_sizes(value, port->view.ndim, port->view.sizes)) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_input_set_value: input %s is %s%s, its value %s", port->name,
                 graft_dtype_name(port->view.dtype), TNS_INTS(port->view.ndim, port->view.sizes), TNS_SHAPE(value));
}

/* Zeros: what lies in the gaps between elements is nobody's. */
static graft_status new_zeros(graft_rt_device *device, uint64_t count, graft_tensor **bytes) {
  const int64_t size = (int64_t)count;
  void *zeros = calloc(1, count + 1);
  if (!zeros) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the value of an input");
  graft_status status = graft_tensor_from_host(device, GRAFT_U8, 1, &size, zeros, bytes);
  free(zeros);
  return status;
}

graft_status graft_graph_input_set_value(graft_graph *graph, uint32_t index, graft_tensor *value) {
  if (!graph) return err_null(__func__, "graph");
  if (!value) return err_null(__func__, "value");
  if (index >= graph->ninputs)
    return err_about(GRAFT_INVALID_ARGUMENT, __func__, "input %u; the graph has %u", index, graph->ninputs);
  gr_port *port = &graph->inputs[index];
  graft_tensor *bytes, *view = NULL;
  graft_status status = check_value(graph, index, value);
  if (status) return status;
  status = new_zeros(device_for(graph, index, graph->device), graph->buffers[port->view.buffer].bytes, &bytes);
  if (status) return status;
  const bool grad = graft_grad_mode_set(false);
  status = view_of(&port->view, bytes, &view);
  if (!status) status = graft_tensor_copy(view, value);
  graft_grad_mode_set(grad);
  graft_tensor_release(view);
  graft_tensor_release(status ? bytes : port->value);
  if (!status) port->value = bytes;
  return status;
}

graft_status graft_graph_input_value(const graft_graph *graph, uint32_t index, graft_rt_device *device,
                                     graft_tensor **value) {
  if (!graph) return err_null(__func__, "graph");
  if (!device) return err_null(__func__, "device");
  if (!value) return err_null(__func__, "value");
  if (index >= graph->ninputs)
    return err_about(GRAFT_INVALID_ARGUMENT, __func__, "input %u; the graph has %u", index, graph->ninputs);
  const gr_port *port = &graph->inputs[index];
  graft_tensor *bytes;
  if (!port->value) return err_about(GRAFT_INVALID_ARGUMENT, __func__, "input %s has no value of its own", port->name);
  graft_status status = graft_tensor_empty(device_for(graph, index, device), GRAFT_U8, 1, &port->value->numel, &bytes);
  if (status) return status;
  status = graft_tensor_copy(bytes, port->value);
  if (!status) status = view_of(&port->view, bytes, value);
  graft_tensor_release(bytes);
  return status;
}
