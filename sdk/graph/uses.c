/* What passes ask of a graph: who writes what, and what is seen. */
#include <stdlib.h>

#include "graph/graph.h"

void gr_count_writes(const gr_node *node, uint32_t *counts) {
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].view.buffer != GR_NONE) counts[node->results[i].view.buffer]++;
  }
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_operand *o = &node->operands[i];
    if (o->written && o->view.buffer != GR_NONE) counts[o->view.buffer]++;
  }
}

graft_status gr_drop_constants(graft_graph *graph) {
  bool *used;
  graft_status status = gr_mark_outputs(graph, &used);
  if (status) return status;
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    const gr_node *node = graph->nodes[n];
    for (uint32_t i = 0; i < node->noperands; i++) {
      if (node->operands[i].view.buffer != GR_NONE) used[node->operands[i].view.buffer] = true;
    }
  }
  for (uint32_t i = 0; i < graph->nbuffers; i++) {
    gr_buffer *b = &graph->buffers[i];
    if (used[i] || !b->constant) continue;
    graft_tensor_release(b->constant);
    *b = (gr_buffer){.kind = GR_VALUE};
  }
  free(used);
  return GRAFT_OK;
}

graft_status gr_mark_outputs(const graft_graph *graph, bool **is_output) {
  bool *marks = calloc(graph->nbuffers + 1u, sizeof *marks);
  if (!marks) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a pass over a graph");
  for (uint32_t i = 0; i < graph->ninputs; i++) marks[graph->inputs[i].view.buffer] = true;
  for (uint32_t i = 0; i < graph->noutputs; i++) marks[graph->outputs[i].view.buffer] = true;
  *is_output = marks;
  return GRAFT_OK;
}
