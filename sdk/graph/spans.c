/* When buffers are used. */
#include "graph/exec.h"

static void use(graft_graph_exec *e, const gr_view *view, uint32_t moment, bool written) {
  if (view->buffer == GR_NONE) return;
  gr_place *place = &e->places[view->buffer];
  if (place->first == GR_NONE) place->first = moment;
  place->last = moment;
  place->written |= written;
}

void gr_find_spans(graft_graph_exec *e) {
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) e->places[i].first = GR_NONE;
  for (uint32_t n = 0; n < e->graph->nnodes; n++) {
    const gr_node *node = e->graph->nodes[n];
    const uint32_t moment = gr_moment(e, n);
    for (uint32_t i = 0; i < node->noperands; i++) use(e, &node->operands[i].view, moment, node->operands[i].written);
    for (uint32_t i = 0; i < node->nresults; i++) use(e, &node->results[i].view, moment, true);
  }
}
