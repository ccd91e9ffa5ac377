/* Late nodes: one that runs long before its results are used moves to just before their first use, where that makes
 * memory live shorter, as values that a backward computes again do. Its operands live on until there, so it stays where
 * these are larger than its results and nobody else needs them for so long. Nodes that draw random numbers or write to
 * what was there stay, and none passes one that writes what it reads.
 *
 * From the last node to the first, so that those before follow those that need them. */
#include <stdlib.h>

#include "graph/graph.h"

typedef struct late {
  graft_graph *graph;
  bool *is_output;
  uint32_t *order;    /* by place: which node; nodes go by the numbers that they had */
  uint32_t *at;       /* by node: its place */
  uint32_t *last;     /* by buffer: of the nodes seen so far the one that uses it last; GR_NONE: none */
  uint32_t *given_by; /* by buffer: the latest node that was looked at as one that gives it, plus 1 */
  uint32_t *read_by;  /* likewise, that reads it */
} late;

static bool may_move(const gr_node *node) {
  if (gr_is_random(node) || !node->nresults) return false;
  for (uint32_t i = 0; i < node->noperands; i++) {
    if (node->operands[i].written) return false;
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].given) return false;
  }
  return true;
}

/* What moving the node costs and saves, in bytes; stamps tell what has been counted. */
static bool stamp(uint32_t *stamps, uint32_t buffer, uint32_t n) {
  if (buffer == GR_NONE || stamps[buffer] == n + 1) return false;
  stamps[buffer] = n + 1;
  return true;
}

static void stamp_all(late *l, uint32_t n) {
  const gr_node *node = l->graph->nodes[n];
  for (uint32_t i = 0; i < node->noperands; i++) stamp(l->read_by, node->operands[i].view.buffer, n);
  for (uint32_t i = 0; i < node->nresults; i++) stamp(l->given_by, node->results[i].view.buffer, n);
}

/* Whether the node must stay behind node n, whose buffers are stamped. */
static bool waits_for(const late *l, const gr_node *node, uint32_t n) {
  for (uint32_t i = 0; i < node->noperands; i++) {
    const uint32_t buffer = node->operands[i].view.buffer;
    if (buffer == GR_NONE) continue;
    if (l->given_by[buffer] == n + 1 || (node->operands[i].written && l->read_by[buffer] == n + 1)) return true;
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    const uint32_t buffer = node->results[i].view.buffer;
    if (buffer != GR_NONE && (l->given_by[buffer] == n + 1 || l->read_by[buffer] == n + 1)) return true;
  }
  return false;
}

/* The place before which node n has to run. */
static uint32_t first_use(const late *l, uint32_t n) {
  uint32_t to = n + 1;
  while (to < l->graph->nnodes && !waits_for(l, l->graph->nodes[l->order[to]], n)) to++;
  return to;
}

/* Whether the buffer would live until place `to` for node n alone. */
static bool lives_longer(const late *l, uint32_t buffer, uint32_t to) {
  const gr_buffer *b = &l->graph->buffers[buffer];
  const bool may_end = b->kind == GR_VALUE ? !l->is_output[buffer] : b->donated;
  if (!may_end) return false;
  return l->last[buffer] == GR_NONE || l->at[l->last[buffer]] < to;
}

static bool pays(late *l, uint32_t n, uint32_t to) {
  const gr_node *node = l->graph->nodes[n];
  uint64_t saved = 0, spent = 0;
  for (uint32_t i = 0; i < node->nresults; i++) {
    const uint32_t buffer = node->results[i].view.buffer;
    if (buffer != GR_NONE) saved += l->graph->buffers[buffer].bytes;
  }
  for (uint32_t i = 0; i < node->noperands; i++) {
    const uint32_t buffer = node->operands[i].view.buffer;
    bool first = buffer != GR_NONE;
    for (uint32_t j = 0; j < i && first; j++) first = node->operands[j].view.buffer != buffer;
    if (first && lives_longer(l, buffer, to)) spent += l->graph->buffers[buffer].bytes;
  }
  return saved >= spent;
}

/* Node n, which stands at its old place, now stands before what is at `to`. */
static void move(late *l, uint32_t n, uint32_t to) {
  for (uint32_t place = n; place + 1 < to; place++) {
    l->order[place] = l->order[place + 1];
    l->at[l->order[place]] = place;
  }
  l->order[to - 1] = n;
  l->at[n] = to - 1;
}

static void note_use(late *l, uint32_t buffer, uint32_t n) {
  if (buffer != GR_NONE && (l->last[buffer] == GR_NONE || l->at[l->last[buffer]] < l->at[n])) l->last[buffer] = n;
}

static void place(late *l, uint32_t n) {
  const gr_node *node = l->graph->nodes[n];
  if (may_move(node)) {
    stamp_all(l, n);
    const uint32_t to = first_use(l, n);
    if (to > n + 1 && pays(l, n, to)) move(l, n, to);
  }
  for (uint32_t i = 0; i < node->noperands; i++) note_use(l, node->operands[i].view.buffer, n);
  for (uint32_t i = 0; i < node->nresults; i++) note_use(l, node->results[i].view.buffer, n);
}

static bool put_in_order(const late *l) {
  const uint32_t count = l->graph->nnodes;
  gr_node **before = malloc((count + 1u) * sizeof *before);
  if (!before) return false;
  for (uint32_t i = 0; i < count; i++) before[i] = l->graph->nodes[i];
  for (uint32_t i = 0; i < count; i++) l->graph->nodes[i] = before[l->order[i]];
  free(before);
  return true;
}

graft_status gr_pass_late(graft_graph *graph) {
  const uint32_t nnodes = graph->nnodes, nbuffers = graph->nbuffers;
  late l = {.graph = graph,
            .order = calloc(nnodes + 1u, sizeof *l.order),
            .at = calloc(nnodes + 1u, sizeof *l.at),
            .last = calloc(nbuffers + 1u, sizeof *l.last),
            .given_by = calloc(nbuffers + 1u, sizeof *l.given_by),
            .read_by = calloc(nbuffers + 1u, sizeof *l.read_by)};
  bool has_memory = l.order && l.at && l.last && l.given_by && l.read_by;
  graft_status status = has_memory ? gr_mark_outputs(graph, &l.is_output) : GRAFT_OUT_OF_MEMORY;
  for (uint32_t n = 0; n < nnodes && !status; n++) l.order[n] = l.at[n] = n;
  for (uint32_t b = 0; b < nbuffers && !status; b++) l.last[b] = GR_NONE;
  for (uint32_t n = nnodes; n-- > 0 && !status;) place(&l, n);
  if (!status && !put_in_order(&l)) status = GRAFT_OUT_OF_MEMORY;
  free(l.is_output);
  free(l.order);
  free(l.at);
  free(l.last);
  free(l.given_by);
  free(l.read_by);
  return status ? err_set(GRAFT_OUT_OF_MEMORY, "no host memory to put the nodes of a graph in order") : GRAFT_OK;
}
