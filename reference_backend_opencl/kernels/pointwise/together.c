/* Calls of a graph that families make as one: a loss, attention's gradients in their places, a product beside sums. */
#include <stdlib.h>

#include "kernels/attention/placed.h"
#include "kernels/loss/classes.h"
#include "kernels/matmul/summed.h"
#include "kernels/pointwise/groups.h"

typedef ocl_grouped_call candidate;
typedef ocl_grouping grouping;

/* ---- one behind the other ---- */

/* Calls that others go together with as one: all give what they make to the last of them, or to one another, and nobody
 * else. */
static bool gives_to_alone(const grouping *g, uint32_t early, const uint32_t *members, int count) {
  const candidate *c = &g->nodes[early];
  if (c->fits || c->follows == OCL_NO_EDGE ||
      ocl_share(c->node->writes, c->node->write_count, g->graph->seen, g->graph->seen_count)) {
    return false;
  }
  for (size_t i = c->follows; i != OCL_NO_EDGE; i = g->edges[i].next) {
    bool is_one = false;
    for (int k = 0; k < count; k++) is_one |= g->edges[i].late == members[k];
    if (!is_one) return false;
  }
  return true;
}

/* The last of those that run behind the node. */
static uint32_t last_behind(const grouping *g, uint32_t n) {
  uint32_t last = n;
  for (size_t i = g->nodes[n].follows; i != OCL_NO_EDGE; i = g->edges[i].next) {
    if (g->edges[i].late > last) last = g->edges[i].late;
  }
  return last;
}

static void pair_up(grouping *g, const uint32_t *members, uint32_t count, uint32_t last) {
  for (uint32_t i = 0; i < count; i++) {
    candidate *c = &g->nodes[members[i]];
    c->fits = true;
    c->pair = members[i] == last ? 0 : 1 + last;
    c->joins_pair = members[i] == last;
  }
}

/* A cross entropy or its gradient: two calls, or three whose first one gives to both others. */
static void find_together(grouping *g, const graft_exec *exec, uint32_t first) {
  const graft_graph_node *nodes[OCL_CLASSES_CALLS] = {g->nodes[first].node};
  uint32_t members[OCL_CLASSES_CALLS] = {first};
  int count = 1;
  const uint32_t last = last_behind(g, first);
  for (size_t i = g->nodes[first].follows; i != OCL_NO_EDGE && count < OCL_CLASSES_CALLS - 1; i = g->edges[i].next) {
    if (g->edges[i].late != last) members[count++] = g->edges[i].late;
  }
  members[count++] = last;
  bool alone = last != first && !g->nodes[last].fits;
  for (int i = 0; i + 1 < count && alone; i++) alone = gives_to_alone(g, members[i], members, count);
  for (int i = 1; i < count; i++) nodes[i] = g->nodes[members[i]].node;
  if (!alone || !ocl_classes_match(exec, nodes, (uint32_t)count)) return;
  pair_up(g, members, (uint32_t)count, last);
}

/* Whether a node waits for others than these. */
static bool waits_for_others(const grouping *g, uint32_t n, const uint32_t *members, uint32_t count) {
  uint32_t own = 0;
  for (uint32_t k = 0; k < count; k++) {
    for (size_t i = g->nodes[members[k]].follows; i != OCL_NO_EDGE; i = g->edges[i].next) own += g->edges[i].late == n;
  }
  return g->nodes[n].waits > own;
}

/* A call of several results, and another one behind each of them, which nobody else takes. */
static void find_placed(grouping *g, const graft_exec *exec, uint32_t first) {
  const candidate *c = &g->nodes[first];
  const graft_graph_node *nodes[OCL_PLACED_CALLS] = {c->node};
  uint32_t members[OCL_PLACED_CALLS] = {first}, count = 1;
  if (c->fits || ocl_share(c->node->writes, c->node->write_count, g->graph->seen, g->graph->seen_count)) return;
  for (size_t i = c->follows; i != OCL_NO_EDGE; i = g->edges[i].next) {
    if (count == OCL_PLACED_CALLS || g->nodes[g->edges[i].late].column) return;
    nodes[count] = g->nodes[g->edges[i].late].node;
    members[count++] = g->edges[i].late;
  }
  bool ready = true;
  for (uint32_t k = 1; k < count && ready; k++) ready = !waits_for_others(g, members[k], members, count);
  if (ready && ocl_placed_match(exec, nodes, count)) pair_up(g, members, count, last_behind(g, first));
}

/* ---- one beside the other ---- */

/* Whether what the one gives leads to the other, which stands behind it: edges go to later nodes. */
static bool leads_to(const grouping *g, uint32_t from, uint32_t to) {
  bool *behind = calloc(g->graph->node_count, sizeof *behind);
  if (!behind) return true;
  behind[from] = true;
  for (uint32_t n = from; n < to; n++) {
    for (size_t i = g->nodes[n].follows; behind[n] && i != OCL_NO_EDGE; i = g->edges[i].next)
      behind[g->edges[i].late] = true;
  }
  const bool leads = behind[to];
  free(behind);
  return leads;
}

static bool is_free(const candidate *c) {
  return !c->pair && !c->joins_pair && !c->beside && !c->column && !c->lists;
}

/* Whether it reads what the product gives, and writes nothing that the product reads. */
static bool takes_alone(const candidate *product, const candidate *late) {
  const graft_graph_node *early = product->node, *node = late->node;
  return ocl_share(early->writes, early->write_count, node->reads, node->read_count) &&
         !ocl_share(early->reads, early->read_count, node->writes, node->write_count);
}

/* Whether a call behind the product may go into its kernel, which costs less than a reading of the factor does. What
 * stands behind the sums is not looked at: it has an element a row. */
static bool is_followed(const grouping *g, const candidate *product) {
  bool followed = false;
  for (size_t i = product->follows; i != OCL_NO_EDGE && !followed; i = g->edges[i].next) {
    const candidate *late = &g->nodes[g->edges[i].late];
    followed = late->fits && is_free(late) && !late->multiplies && !late->stages && takes_alone(product, late);
  }
  return followed;
}

/* A product, and sums of the rows of its first factor. */
static void find_beside(grouping *g, const graft_exec *exec, uint32_t product) {
  candidate *c = &g->nodes[product];
  if (!g->device->is_cpu || !is_free(c) || !c->multiplies || is_followed(g, c)) return;
  for (uint32_t n = 0; n < g->graph->node_count && !c->beside; n++) {
    candidate *sum = &g->nodes[n];
    if (n == product || !is_free(sum)) continue;
    if (!ocl_share(c->node->reads, c->node->read_count, sum->node->reads, sum->node->read_count)) continue;
    const graft_graph_node *const nodes[OCL_SUMMED_CALLS] = {c->node, sum->node};
    if (!ocl_summed_match(exec, nodes, OCL_SUMMED_CALLS)) continue;
    if (n < product ? leads_to(g, n, product) : leads_to(g, product, n)) continue;
    c->beside = 1 + n;
    c->leads = true;
    sum->beside = 1 + product;
  }
}

/* ---- all ---- */

void ocl_find_together(grouping *g, const graft_exec *exec) {
  for (uint32_t n = 0; n < g->graph->node_count; n++) {
    find_together(g, exec, n);
    find_placed(g, exec, n);
  }
  for (uint32_t n = 0; n < g->graph->node_count; n++) find_beside(g, exec, n);
}

static bool belongs(const grouping *g, uint32_t n) {
  const candidate *c = &g->nodes[n];
  if (!g->nmembers) return c->pair || c->beside; /* others wait for the first of theirs */
  /* Two that are placed at once are all of their group, and its first has no pair. */
  const uint32_t pair = g->nodes[g->members[0]].pair;
  return pair && !c->beside && pair == (c->pair ? c->pair : 1 + n);
}

bool ocl_join_together(grouping *g, uint32_t n) {
  if (!belongs(g, n)) return false;
  g->members[g->nmembers++] = n;
  return true;
}
