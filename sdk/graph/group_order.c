/* An order of the nodes in which those of a group follow each other, if there is one: nodes that need each other stay
 * in the order that they have, and what need not move does not.
 *
 * A unit is a group, or a node that is in none; it is named by its first node. */
#include <stdlib.h>

#include "graph/exec.h"

typedef struct edge {
  uint32_t from, to; /* units: `to` runs after `from` */
  uint32_t next;     /* from the same unit */
} edge;

/* A use of a buffer by a node. */
typedef struct gr_use {
  uint32_t node;
  bool writes;
  uint32_t before; /* the same buffer's use before */
} gr_use;

typedef struct ordering {
  const graft_graph_exec *e;
  uint32_t *unit;        /* by node */
  uint32_t *next_member; /* by node: the next one of its unit */
  uint32_t *waits;       /* by unit: for how many edges */
  uint32_t *edges_of;    /* by unit: the first */
  bool *placed;          /* by unit */
  edge *edges;
  uint32_t nedges;
  gr_use *uses;
  uint32_t nuses;
  uint32_t *latest; /* use, by buffer; the last one is the random generator's */
} ordering;

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to put groups of nodes in order");
}

static graft_status add_edge(ordering *o, uint32_t from, uint32_t to) {
  if (from == to) return GRAFT_OK;
  graft_status status = gr_grow((void **)&o->edges, o->nedges, sizeof *o->edges);
  if (status) return status;
  o->edges[o->nedges] = (edge){from, to, o->edges_of[from]};
  o->edges_of[from] = o->nedges++;
  o->waits[to]++;
  return GRAFT_OK;
}

/* The node comes after all whose uses of the buffer it may not pass. */
static graft_status use(ordering *o, uint32_t node, uint32_t buffer, bool writes) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = o->latest[buffer]; i != GR_NONE && !status; i = o->uses[i].before) {
    const gr_use *earlier = &o->uses[i];
    if (writes || earlier->writes) status = add_edge(o, o->unit[earlier->node], o->unit[node]);
    if (earlier->writes) break; /* which has waited for those before it */
  }
  if (!status) status = gr_grow((void **)&o->uses, o->nuses, sizeof *o->uses);
  if (status) return status;
  o->uses[o->nuses] = (gr_use){node, writes, o->latest[buffer]};
  o->latest[buffer] = o->nuses++;
  return GRAFT_OK;
}

static graft_status add_node(ordering *o, uint32_t n) {
  const graft_graph *graph = o->e->graph;
  const gr_node *node = graph->nodes[n];
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->noperands && !status; i++) {
    const gr_operand *operand = &node->operands[i];
    if (operand->view.buffer != GR_NONE) status = use(o, n, operand->view.buffer, operand->written);
  }
  for (uint32_t i = 0; i < node->nresults && !status; i++) {
    if (node->results[i].view.buffer != GR_NONE) status = use(o, n, node->results[i].view.buffer, true);
  }
  return !status && gr_is_random(node) ? use(o, n, graph->nbuffers, true) : status;
}

static graft_status find_units(ordering *o, const uint32_t *groups) {
  const uint32_t count = o->e->graph->nnodes;
  uint32_t *last = calloc(count + 1u, sizeof *last); /* by group: its latest node, plus 1 */
  if (!last) return no_memory();
  for (uint32_t n = 0; n < count; n++) {
    const uint32_t before = groups[n] ? last[groups[n]] : 0;
    o->unit[n] = before ? o->unit[before - 1] : n;
    o->next_member[n] = o->edges_of[n] = GR_NONE;
    if (before) o->next_member[before - 1] = n;
    if (groups[n]) last[groups[n]] = n + 1;
  }
  free(last);
  for (uint32_t b = 0; b <= o->e->graph->nbuffers; b++) o->latest[b] = GR_NONE;
  return GRAFT_OK;
}

/* Takes the lowest unit that waits for nothing, again and again; how many nodes that places. */
static uint32_t place_units(ordering *o, uint32_t *order) {
  uint32_t count = 0;
  for (uint32_t at = 0; at < o->e->graph->nnodes;) {
    if (o->unit[at] != at || o->placed[at] || o->waits[at]) {
      at++;
      continue;
    }
    o->placed[at] = true;
    for (uint32_t n = at; n != GR_NONE; n = o->next_member[n]) order[count++] = n;
    uint32_t lowest = at + 1;
    for (uint32_t i = o->edges_of[at]; i != GR_NONE; i = o->edges[i].next) {
      const uint32_t to = o->edges[i].to;
      if (--o->waits[to] == 0 && to < lowest) lowest = to;
    }
    at = lowest;
  }
  return count;
}

/* A unit that could not be placed and that such a one needs. */
static uint32_t needed_by(const ordering *o, uint32_t unit) {
  for (uint32_t i = 0; i < o->nedges; i++) {
    if (o->edges[i].to == unit && !o->placed[o->edges[i].from]) return o->edges[i].from;
  }
  return unit;
}

static graft_status name_circle(const ordering *o, const uint32_t *groups) {
  uint32_t at = 0;
  while (o->unit[at] != at || o->placed[at]) at++;
  for (uint32_t i = 0; i < o->e->graph->nnodes; i++) at = needed_by(o, at); /* is in the circle now */
  while (o->next_member[at] == GR_NONE) at = needed_by(o, at);              /* and a group */
  uint32_t last = at;
  while (o->next_member[last] != GR_NONE) last = o->next_member[last];
  gr_node *const *nodes = o->e->graph->nodes;
  return err_about(GRAFT_INTERNAL, o->e->device->text,
                   "the plugin's \"%s\" takes nodes %u (%s) to %u (%s) as group %u, which can't run at once: a node "
                   "outside of it needs what it writes and is needed by it",
                   GRAFT_EXTENSION_GRAPH, at, nodes[at]->schema->name, last, nodes[last]->schema->name, groups[at]);
}

graft_status gr_order_groups(const graft_graph_exec *e, const uint32_t *groups, uint32_t *order) {
  const uint32_t count = e->graph->nnodes;
  ordering o = {.e = e,
                .unit = calloc(count + 1u, sizeof *o.unit),
                .next_member = calloc(count + 1u, sizeof *o.next_member),
                .waits = calloc(count + 1u, sizeof *o.waits),
                .edges_of = calloc(count + 1u, sizeof *o.edges_of),
                .placed = calloc(count + 1u, sizeof *o.placed),
                .latest = calloc(e->graph->nbuffers + 1u, sizeof *o.latest)};
  bool has_memory = o.unit && o.next_member && o.waits && o.edges_of && o.placed && o.latest;
  graft_status status = has_memory ? find_units(&o, groups) : no_memory();
  for (uint32_t n = 0; n < count && !status; n++) status = add_node(&o, n);
  if (!status && place_units(&o, order) < count) status = name_circle(&o, groups);
  free(o.unit);
  free(o.next_member);
  free(o.waits);
  free(o.edges_of);
  free(o.placed);
  free(o.latest);
  free(o.edges);
  free(o.uses);
  return status;
}
