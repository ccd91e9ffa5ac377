/* Dead nodes: those that write nothing which is seen from outside or read by a node that stays. A node that draws
 * random numbers stays, since those behind it draw others without it. Constants that nobody reads go with the last
 * node that did. */
#include <stdlib.h>

#include "graph/graph.h"

static bool writes_live(const gr_node *node, const bool *live) {
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].view.buffer != GR_NONE && live[node->results[i].view.buffer]) return true;
  }
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_operand *o = &node->operands[i];
    if (o->written && o->view.buffer != GR_NONE && live[o->view.buffer]) return true;
  }
  return false;
}

static void mark_used(const gr_node *node, bool *live) {
  for (uint32_t i = 0; i < node->noperands; i++) {
    if (node->operands[i].view.buffer != GR_NONE) live[node->operands[i].view.buffer] = true;
  }
  /* What it writes to was there before: those who filled it are needed, too. */
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].view.buffer != GR_NONE) live[node->results[i].view.buffer] = true;
  }
}

graft_status gr_pass_dead(graft_graph *graph) {
  bool *live;
  graft_status status = gr_mark_outputs(graph, &live);
  if (status) return status;
  uint32_t kept = graph->nnodes;
  for (uint32_t n = graph->nnodes; n-- > 0;) {
    gr_node *node = graph->nodes[n];
    if (!gr_is_random(node) && !writes_live(node, live)) continue;
    mark_used(node, live);
    graph->nodes[--kept] = node;
  }
  for (uint32_t i = kept; i < graph->nnodes; i++) graph->nodes[i - kept] = graph->nodes[i];
  graph->nnodes -= kept;
  free(live);
  return gr_drop_constants(graph);
}
