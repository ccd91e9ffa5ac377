/* What a graph says of itself. */
#include <string.h>

#include "base/row.h"
#include "graph/graph.h"

static bool writes(const gr_node *node, uint32_t buffer) {
  for (uint32_t i = 0; i < node->noperands; i++) {
    if (node->operands[i].written && node->operands[i].view.buffer == buffer) return true;
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].view.buffer == buffer) return true;
  }
  return false;
}

static void describe(const graft_graph *graph, const gr_port *from, graft_graph_port *port) {
  const gr_view *view = &from->view;
  *port = (graft_graph_port){.name = from->name,
                             .dtype = view->dtype,
                             .ndim = view->ndim,
                             .on_host = graph->buffers[view->buffer].on_host,
                             .has_value = from->value != NULL,
                             .conjugate = (view->flags & TNS_CONJ) != 0,
                             .negative = (view->flags & TNS_NEG) != 0};
  memcpy(port->sizes, view->sizes, (size_t)view->ndim * sizeof *view->sizes);
  memcpy(port->strides, view->strides, (size_t)view->ndim * sizeof *view->strides);
  for (uint32_t n = 0; n < graph->nnodes && !port->is_written; n++)
    port->is_written = writes(graph->nodes[n], view->buffer);
}

static graft_status query(const graft_graph *graph, const char *function, bool input, uint32_t index,
                          graft_graph_port *port, size_t port_bytes) {
  const uint32_t count = input ? graph->ninputs : graph->noutputs;
  if (!port_bytes)
    return err_about(GRAFT_INVALID_ARGUMENT, function, "port_bytes is 0; expected sizeof(graft_graph_port)");
  if (index >= count) return err_about(GRAFT_INVALID_ARGUMENT, function, "index %u; the graph has %u", index, count);
  graft_graph_port all;
  describe(graph, input ? &graph->inputs[index] : &graph->outputs[index], &all);
  row_copy((char *)port, port_bytes, &all, sizeof all);
  return GRAFT_OK;
}

graft_status graft_graph_input_query(const graft_graph *graph, uint32_t index, graft_graph_port *port,
                                     size_t port_bytes) {
  if (!graph) return err_null(__func__, "graph");
  if (!port) return err_null(__func__, "port");
  return query(graph, __func__, true, index, port, port_bytes);
}

graft_status graft_graph_output_query(const graft_graph *graph, uint32_t index, graft_graph_port *port,
                                      size_t port_bytes) {
  if (!graph) return err_null(__func__, "graph");
  if (!port) return err_null(__func__, "port");
  return query(graph, __func__, false, index, port, port_bytes);
}
