/* Which calls of a graph go together into one kernel. Calls are placed in an order in which they can run: first what
 * can't be fused and waits for nothing, then a group, which takes whatever waits for nothing but it, and so on. So a
 * group can always run at once. Calls of a group run over one space: one shape, or with reductions that and what these
 * leave of it. Of what one writes no other sees other elements.
 *
 * A group also moves calls: all run at once, so what the last one waits for is there before any, and what any makes
 * lives from then on. So a call joins those whose results it reads or whose operands it makes, and others only where
 * they stand near it. */
#include <stdlib.h>
#include <string.h>

#include "kernels/pointwise/groups.h"

typedef ocl_grouped_call candidate;
typedef ocl_grouping grouping;

/* ---- what needs what ---- */

bool ocl_share(const graft_tensor_desc *const *a, uint32_t na, const graft_tensor_desc *const *b, uint32_t nb) {
  for (uint32_t i = 0; i < na; i++) {
    for (uint32_t j = 0; j < nb; j++) {
      if (a[i]->storage_id == b[j]->storage_id) return true;
    }
  }
  return false;
}

/* Hosts of version 1 have no flags, and show no node that draws. */
static bool draws(const graft_graph_node *node) {
  return GRAFT_HAS(node, graft_graph_node, flags) && node->flags & GRAFT_GRAPH_NODE_DRAWS;
}

static bool must_follow(const graft_graph_node *late, const graft_graph_node *early) {
  return ocl_share(early->writes, early->write_count, late->reads, late->read_count) ||
         ocl_share(early->writes, early->write_count, late->writes, late->write_count) ||
         ocl_share(early->reads, early->read_count, late->writes, late->write_count) || (draws(early) && draws(late));
}

static graft_status add_edge(grouping *g, uint32_t early, uint32_t late) {
  if (g->nedges == g->room) {
    const size_t room = g->room ? 2 * g->room : 256;
    ocl_edge *edges = realloc(g->edges, room * sizeof *edges);
    if (!edges) return GRAFT_OUT_OF_MEMORY;
    g->edges = edges;
    g->room = room;
  }
  g->edges[g->nedges] = (ocl_edge){late, g->nodes[early].follows};
  g->nodes[early].follows = g->nedges++;
  g->nodes[late].waits++;
  return GRAFT_OK;
}

static graft_status find_edges(grouping *g) {
  graft_status status = GRAFT_OK;
  for (uint32_t late = 1; late < g->graph->node_count; late++) {
    for (uint32_t early = 0; early < late && status == GRAFT_OK; early++) {
      if (must_follow(g->graph->nodes[late], g->graph->nodes[early])) status = add_edge(g, early, late);
    }
  }
  return status;
}

static graft_status keep_lists(candidate *c, const ocl_lists *lists) {
  c->lists = malloc(sizeof *c->lists);
  if (!c->lists) return GRAFT_OUT_OF_MEMORY;
  *c->lists = *lists;
  c->fits = true;
  return GRAFT_OK;
}

static graft_status find_candidates(grouping *g, const graft_exec *exec) {
  graft_status status = GRAFT_OK;
  for (uint32_t n = 0; n < g->graph->node_count && status == GRAFT_OK; n++) {
    ocl_fused_op op;
    ocl_lists lists;
    candidate *c = &g->nodes[n];
    c->node = g->graph->nodes[n];
    c->follows = OCL_NO_EDGE;
    if (ocl_chain_read(exec, c->node, &lists)) {
      status = keep_lists(c, &lists);
      continue;
    }
    c->fits = ocl_fused_read(exec, c->node, &op);
    if (!c->fits) continue;
    c->space = op.space;
    c->numbers = op.numbers;
    c->stages = op.reduces ? op.numbers : 0;
    c->multiplies = op.multiplies;
    c->draws = op.draws;
    c->normalizes = op.normalizes;
  }
  return status;
}

/* ---- columns ---- */

static graft_status find_columns(grouping *g, const graft_exec *exec) {
  graft_status status = ocl_columns_find(exec, g->graph->nodes, g->graph->node_count, false, &g->columns);
  for (uint32_t i = 0; i < g->columns.count && status == GRAFT_OK; i++) {
    const ocl_column *column = g->columns.items[i];
    for (uint32_t k = 0; k < column->count; k++) g->nodes[column->nodes[k]].column = column;
    g->nodes[column->first].leads = true;
    status = keep_lists(&g->nodes[column->first], &column->call);
  }
  return status;
}

/* Its calls stand for themselves again. */
static void dissolve(grouping *g, const ocl_column *column) {
  candidate *first = &g->nodes[column->first];
  free(first->lists);
  first->lists = NULL;
  first->leads = false;
  for (uint32_t k = 0; k < column->count; k++) g->nodes[column->nodes[k]].column = NULL;
}

/* Those that wait for themselves, by way of other calls. False: there is none. */
static bool dissolve_rest(grouping *g) {
  bool any = false;
  for (uint32_t n = 0; n < g->graph->node_count; n++) {
    candidate *c = &g->nodes[n];
    if (c->placed || (!c->column && !c->beside)) continue;
    if (c->column) dissolve(g, c->column);
    c->beside = 0;
    c->leads = false;
    any = true;
  }
  return any;
}

/* ---- calls that are placed at once ---- */

/* Which calls are placed with this one, itself among them. */
static uint32_t count_together(const candidate *c) {
  return c->column ? c->column->count : c->beside ? OCL_SUMMED_CALLS : 1;
}

static uint32_t together(const grouping *g, uint32_t n, uint32_t i) {
  const candidate *c = &g->nodes[n];
  if (c->column) return c->column->nodes[i];
  return i ? c->beside - 1 : n;
}

/* What stands for all of them: that of the first item, of which others have the first item, too. */
static const graft_graph_node *node_of(const grouping *g, uint32_t n) {
  return g->nodes[together(g, n, 0)].node;
}

/* ---- a group ---- */

static bool is_member(const grouping *g, uint32_t n) {
  const candidate *c = &g->nodes[n];
  const uint32_t first = c->column ? c->column->first : c->beside && !c->leads ? c->beside - 1 : n;
  for (int i = 0; i < g->nmembers; i++) {
    if (g->members[i] == first) return true;
  }
  return false;
}

/* Whether the two, in one kernel, would see what one of them writes in two ways. */
static bool clashes(const ocl_fused_space *space, const graft_graph_node *a, const graft_graph_node *b) {
  for (uint32_t i = 0; i < a->write_count; i++) {
    const graft_tensor_desc *written = a->writes[i];
    for (uint32_t j = 0; j < b->read_count; j++) {
      if (b->reads[j]->storage_id == written->storage_id && !ocl_fused_same(space, b->reads[j], written)) return true;
    }
    for (uint32_t j = 0; j < b->write_count; j++) {
      if (b->writes[j]->storage_id == written->storage_id && !ocl_fused_same(space, b->writes[j], written)) return true;
    }
  }
  return false;
}

static bool can_see(const ocl_fused_space *space, const graft_tensor_desc *const *descs, uint32_t count) {
  ocl_fused_view view;
  for (uint32_t i = 0; i < count; i++) {
    if (!(descs[i]->flags & GRAFT_TENSOR_HOST_VALUE) && !ocl_fused_see(space, descs[i], &view)) return false;
  }
  return true;
}

static bool can_see_all(const ocl_fused_space *space, const candidate *c) {
  const graft_graph_node *node = c->node;
  if (c->normalizes) return !space->reduced && can_see(space, node->reads, 1) && can_see(space, node->writes, 1);
  return can_see(space, node->reads, node->read_count) && can_see(space, node->writes, node->write_count);
}

static bool is_seen(const grouping *g, const graft_tensor_desc *desc) {
  return ocl_share(&desc, 1, g->graph->seen, g->graph->seen_count);
}

static bool is_read_outside(const grouping *g, uint32_t writer, const graft_tensor_desc *desc) {
  for (size_t i = g->nodes[writer].follows; i != OCL_NO_EDGE; i = g->edges[i].next) {
    const graft_graph_node *reader = g->nodes[g->edges[i].late].node;
    if (!is_member(g, g->edges[i].late) && ocl_share(&desc, 1, reader->reads, reader->read_count)) return true;
  }
  return false;
}

static bool is_listed(const graft_tensor_desc *const *list, int count, const graft_tensor_desc *desc) {
  for (int i = 0; i < count; i++) {
    if (list[i] == desc) return true;
  }
  return false;
}

/* One that a group has written goes by its storage, of which the group sees nothing else. */
static bool is_written(const graft_tensor_desc *const *list, int count, const graft_tensor_desc *desc) {
  return ocl_share(list, (uint32_t)count, &desc, 1);
}

/* How many tensors the kernel of the group would have: in memory, or of numbers that it draws. */
static int count_tensors(const grouping *g) {
  const graft_tensor_desc *inputs[OCL_FUSED_OPS * OCL_FUSED_INPUTS_MAX], *written[2 * OCL_FUSED_OPS];
  int ninputs = 0, nwritten = 0, noutputs = 0, ndrawn = 0;
  for (int m = 0; m < g->nmembers; m++) {
    const graft_graph_node *node = g->nodes[g->members[m]].node;
    ndrawn += g->nodes[g->members[m]].draws;
    for (uint32_t i = 0; i < node->read_count; i++) {
      const graft_tensor_desc *desc = node->reads[i];
      if (desc->flags & GRAFT_TENSOR_HOST_VALUE || is_written(written, nwritten, desc)) continue;
      if (!is_listed(inputs, ninputs, desc)) inputs[ninputs++] = desc;
    }
    for (uint32_t i = 0; i < node->write_count; i++) {
      const graft_tensor_desc *desc = node->writes[i];
      if (is_written(written, nwritten, desc)) continue;
      written[nwritten++] = desc;
      noutputs += is_seen(g, desc) || is_written(inputs, ninputs, desc) || is_read_outside(g, g->members[m], desc);
    }
  }
  return ninputs + noutputs + ndrawn;
}

/* The space that the group has when the node joins it. */
static bool find_space(const grouping *g, const candidate *c, ocl_fused_space *space) {
  *space = c->space;
  if (g->nmembers > 0 && !ocl_fused_merge(&g->space, &c->space, space)) return false;
  bool changes = space->reduced != g->space.reduced; /* which asks more of those that are in it */
  for (int i = 0; i < g->nmembers && changes; i++) {
    if (!can_see_all(space, &g->nodes[g->members[i]])) return false;
  }
  return c->multiplies || can_see_all(space, c);
}

/* Of two calls that give each other nothing, and that may go together all the same: how far apart they stand at most.
 * Where both read one tensor, a kernel of both reads it once. */
enum { NEAR = 3, NEAR_READERS = 16 };

static bool belong_together(const grouping *g, uint32_t a, uint32_t b) {
  const graft_graph_node *x = node_of(g, a), *y = node_of(g, b);
  const uint32_t apart = a < b ? b - a : a - b;
  if (apart <= NEAR) return true;
  if (apart <= NEAR_READERS && ocl_share(x->reads, x->read_count, y->reads, y->read_count)) return true;
  return ocl_share(x->writes, x->write_count, y->reads, y->read_count) ||
         ocl_share(x->reads, x->read_count, y->writes, y->write_count) ||
         ocl_share(x->writes, x->write_count, y->writes, y->write_count);
}

static bool is_wanted(const grouping *g, uint32_t n) {
  for (int i = 0; i < g->nmembers; i++) {
    if (belong_together(g, g->members[i], n)) return true;
  }
  return g->nmembers == 0;
}

/* Whether the node reads what a reduction of the group gives. */
static bool reads_result(const grouping *g, const candidate *c) {
  for (int i = 0; i < g->nmembers; i++) {
    const candidate *other = &g->nodes[g->members[i]];
    if (other->stages > 0 &&
        ocl_share(other->node->writes, other->node->write_count, c->node->reads, c->node->read_count)) {
      return true;
    }
  }
  return false;
}

/* Whether the node reads what a call behind the product reads, too, and is made of nothing that the group gives: where
 * that call has it, one access and often one function serve both. A GPU's work-item has no registers to spare there. */
static bool may_accompany(const grouping *g, const candidate *c) {
  bool reads = false;
  for (int i = 1; i < g->nmembers && g->device->is_cpu && !reads; i++) {
    const graft_graph_node *other = g->nodes[g->members[i]].node;
    for (uint32_t k = 0; k < c->node->read_count && !reads; k++)
      reads = is_listed(other->reads, (int)other->read_count, c->node->reads[k]);
  }
  return reads;
}

/* Whether the node may follow the product that the group begins with: it is made of what the group gives, so that it
 * can be made where that is written, or goes along; and nothing that the product reads is written before it is done. */
static bool may_follow(const grouping *g, const candidate *c) {
  const graft_graph_node *node = c->node, *product = g->nodes[g->members[0]].node;
  if (ocl_share(node->writes, node->write_count, product->reads, product->read_count)) return false;
  for (int i = 0; i < g->nmembers; i++) {
    const graft_graph_node *other = g->nodes[g->members[i]].node;
    if (ocl_share(other->writes, other->write_count, node->reads, node->read_count)) return true;
  }
  return may_accompany(g, c);
}

/* ---- a group of calls on lists ---- */

/* By its first tensor: of a list in which others are seen, ocl_chain_kind makes nothing. */
static bool is_inside(const void *context, int member, const graft_tensor_desc *desc) {
  const grouping *g = context;
  return !is_seen(g, desc) && !is_read_outside(g, together(g, g->members[member], 0), desc);
}

static bool gives_to(const graft_graph_node *early, const graft_graph_node *late) {
  return ocl_share(early->writes, early->write_count, late->reads, late->read_count);
}

/* Whether a call takes what this one gives, and what one of the group gives, too: an optimizer's long step begins in
 * several places. */
static bool meets(const grouping *g, uint32_t n) {
  for (size_t i = g->nodes[together(g, n, 0)].follows; i != OCL_NO_EDGE; i = g->edges[i].next) {
    const graft_graph_node *late = g->nodes[g->edges[i].late].node;
    if (!gives_to(node_of(g, n), late)) continue;
    for (int k = 0; k < g->nmembers; k++) {
      if (gives_to(node_of(g, g->members[k]), late)) return true;
    }
  }
  return false;
}

/* Values of one element for each item: no memory to speak of, however long they live. */
static bool is_light(const ocl_lists *call) {
  bool light = true;
  for (uint64_t i = 0; i < call->list[0].count && light; i++) light = ocl_elements(call->list[0].items[i]) <= 1;
  return light;
}

static bool join_lists(grouping *g, uint32_t n) {
  const candidate *c = &g->nodes[n];
  const ocl_lists *calls[OCL_CHAIN_CALLS];
  const bool wanted = is_wanted(g, n) || is_light(c->lists) || meets(g, n);
  if (g->nmembers == OCL_CHAIN_CALLS || !wanted || ocl_chain_clashes(c->lists, c->lists)) return false;
  for (int i = 0; i < g->nmembers; i++) {
    const ocl_lists *other = calls[i] = g->nodes[g->members[i]].lists;
    if (!other || !ocl_chain_alike(g->device, other, c->lists) || ocl_chain_clashes(other, c->lists) ||
        ocl_chain_clashes(c->lists, other)) {
      return false;
    }
  }
  calls[g->nmembers] = c->lists;
  g->members[g->nmembers++] = n;
  const bool fits = ocl_chain_operands(calls, g->nmembers, is_inside, g) <= OCL_LISTS_MAX &&
                    ocl_chain_numbers(calls, g->nmembers) <= OCL_LIST_NUMBERS;
  g->nmembers -= !fits;
  return fits;
}

/* ---- a group of any others ---- */

/* Whether nobody sees more of a normalization than its first result. */
static bool has_one_result(const grouping *g, uint32_t n) {
  const graft_graph_node *node = g->nodes[n].node;
  bool one = true;
  for (uint32_t i = 1; i < node->write_count && one; i++)
    one = !is_seen(g, node->writes[i]) && !is_read_outside(g, n, node->writes[i]);
  return one;
}

/* Whether the node may join the group at hand; it then has. */
static bool join(grouping *g, uint32_t n) {
  const candidate *c = &g->nodes[n];
  if (c->pair || c->joins_pair || c->beside) return ocl_join_together(g, n);
  if (g->nmembers > 0 && (g->nodes[g->members[0]].pair || g->nodes[g->members[0]].beside)) return false;
  if (c->lists) return join_lists(g, n);
  if (g->nmembers > 0 && g->nodes[g->members[0]].lists) return false;
  ocl_fused_space space;
  if (c->normalizes && !has_one_result(g, n)) return false;
  if (g->nmembers == OCL_FUSED_OPS || g->nnumbers + c->numbers > OCL_FUSED_NUMBERS ||
      g->nstages + c->stages > OCL_FUSED_STAGES || !is_wanted(g, n) || !find_space(g, c, &space) ||
      clashes(&space, c->node, c->node) || (space.team.splits > 1 && reads_result(g, c)) ||
      (space.product && g->nmembers > 0 && (c->draws || !may_follow(g, c)))) {
    return false;
  }
  for (int i = 0; i < g->nmembers; i++) {
    const candidate *other = &g->nodes[g->members[i]];
    if (clashes(&space, c->node, other->node) || clashes(&space, other->node, c->node)) return false;
  }
  g->members[g->nmembers++] = n;
  if (count_tensors(g) > OCL_FUSED_TENSORS) {
    g->nmembers--;
    return false;
  }
  g->nnumbers += c->numbers;
  g->nstages += c->stages;
  g->space = space;
  return true;
}

/* ---- the order ---- */

static void place_one(grouping *g, uint32_t n) {
  g->nodes[n].placed = true;
  for (size_t i = g->nodes[n].follows; i != OCL_NO_EDGE; i = g->edges[i].next) g->nodes[g->edges[i].late].waits--;
}

static void place(grouping *g, uint32_t n) {
  const uint32_t count = count_together(&g->nodes[n]);
  for (uint32_t i = 0; i < count; i++) place_one(g, together(g, n, i));
}

static bool place_alone(grouping *g) {
  bool any = false;
  for (uint32_t n = 0; n < g->graph->node_count; n++) {
    const candidate *c = &g->nodes[n];
    if (c->placed || c->waits || c->fits || c->beside) continue;
    place(g, n);
    any = true;
  }
  return any;
}

static bool is_ready(const grouping *g, uint32_t n) {
  const candidate *c = &g->nodes[n];
  if (!c->fits || c->placed || ((c->column || c->beside) && !c->leads)) return false;
  bool ready = true;
  for (uint32_t i = 0; i < count_together(c) && ready; i++) ready = !g->nodes[together(g, n, i)].waits;
  return ready;
}

/* Products come first, each with what follows it: then what else needs them is ready. */
static uint32_t first_of_group(const grouping *g) {
  for (uint32_t n = 0; n < g->graph->node_count; n++) {
    if (g->nodes[n].multiplies && is_ready(g, n)) return n;
  }
  return 0;
}

static void number_group(grouping *g, uint32_t number) {
  uint32_t calls = 0;
  for (int i = 0; i < g->nmembers; i++) calls += count_together(&g->nodes[g->members[i]]);
  for (int i = 0; calls > 1 && i < g->nmembers; i++) {
    const candidate *c = &g->nodes[g->members[i]];
    for (uint32_t k = 0; k < count_together(c); k++) g->groups[together(g, g->members[i], k)] = number;
  }
}

/* Whether any call joined. */
static bool place_ready(grouping *g, uint32_t from) {
  const int before = g->nmembers;
  for (uint32_t n = from; n < g->graph->node_count; n++) {
    if (!is_ready(g, n)) continue;
    if (!join(g, n) && g->nmembers) continue;
    if (!g->nmembers && g->nodes[n].column)
      dissolve(g, g->nodes[n].column);
    else
      place(g, n);
    if (!g->nmembers) return true; /* too much even by itself */
  }
  return g->nmembers > before;
}

/* Calls on lists, and those that accompany others behind a product, may be wanted where they were not before others had
 * joined. */
static bool place_group(grouping *g, uint32_t number) {
  g->nmembers = g->nnumbers = g->nstages = 0;
  bool any = place_ready(g, first_of_group(g));
  const bool again = g->nmembers > 0 && (g->nodes[g->members[0]].lists || g->space.product);
  while (again && place_ready(g, 0)) continue;
  number_group(g, number);
  return any || dissolve_rest(g);
}

static graft_status query(const graft_exec *exec, const graft_graph_nodes *graph, uint32_t *groups) {
  grouping g = {.graph = graph,
                .device = exec->device,
                .groups = groups,
                .nodes = calloc(graph->node_count + 1u, sizeof *g.nodes)};
  graft_status status = g.nodes ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  if (status == GRAFT_OK) {
    status = find_candidates(&g, exec);
    if (status == GRAFT_OK) status = find_columns(&g, exec);
    if (status == GRAFT_OK) status = find_edges(&g);
    if (status == GRAFT_OK) ocl_find_together(&g, exec);
  }
  for (uint32_t number = 1; status == GRAFT_OK;) {
    while (place_alone(&g)) continue;
    if (!place_group(&g, number++)) break;
  }
  for (uint32_t n = 0; g.nodes && n < graph->node_count; n++) free(g.nodes[n].lists);
  free(g.nodes);
  free(g.edges);
  ocl_columns_free(&g.columns);
  return status;
}

const graft_graph_api ocl_graph_api = {sizeof ocl_graph_api, query, ocl_fused_compile, ocl_fused_run,
                                       ocl_fused_destroy};
