/* Nodes that the plugin compiles to one program, by its extension "graft.graph": it is asked which go together, the
 * answer is checked, groups are compiled, and what one leaves out of memory needs none. Nodes of a group that is
 * refused run one by one. */
#include <stdlib.h>
#include <string.h>

#include "graph/exec.h"

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to group the nodes of a graph");
}

typedef struct grouping {
  graft_graph_exec *e;
  gr_describer describer;
  const graft_graph_node **nodes; /* as the plugin sees them */
  uint32_t *numbers;              /* the plugin's answer, by node */
} grouping;

/* --- the question --- */

static graft_status list_seen(grouping *g, const graft_tensor_desc **seen, uint32_t *count) {
  const graft_graph *graph = g->e->graph;
  for (uint32_t i = 0; i < graph->ninputs + graph->noutputs; i++) {
    const gr_port *port = i < graph->ninputs ? &graph->inputs[i] : &graph->outputs[i - graph->ninputs];
    seen[*count] = gr_describe_view(&g->describer, &port->view);
    if (!seen[(*count)++]) return no_memory();
  }
  return GRAFT_OK;
}

static graft_status ask(grouping *g) {
  const graft_graph *graph = g->e->graph;
  graft_status status = GRAFT_OK;
  for (uint32_t n = 0; n < graph->nnodes && !status; n++) status = gr_describe_node(&g->describer, n, &g->nodes[n]);
  if (status) return status;
  const graft_tensor_desc **seen = calloc(graph->ninputs + graph->noutputs + 1u, sizeof *seen);
  if (!seen) return no_memory();
  graft_graph_nodes shown = {.struct_size = sizeof shown, .nodes = g->nodes, .seen = seen, .node_count = graph->nnodes};
  status = list_seen(g, seen, &shown.seen_count);
  if (!status) status = dsp_query_groups(g->e->device, g->e->api, &shown, g->numbers);
  free(seen);
  return status;
}

static graft_status check_numbers(const grouping *g) {
  const graft_graph *graph = g->e->graph;
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    if (g->numbers[n] > graph->nnodes) {
      return err_about(
          GRAFT_INTERNAL, g->e->device->text,
          "the plugin's \"%s\" puts node %u (%s) into group %u; expected 0, for none, to %u, the number of "
          "nodes",
          GRAFT_EXTENSION_GRAPH, n, graph->nodes[n]->schema->name, g->numbers[n], graph->nnodes);
    }
    if (!g->numbers[n] || g->nodes[n]->args) continue;
    return err_about(GRAFT_INTERNAL, g->e->device->text,
                     "the plugin's \"%s\" takes node %u (%s) into group %u, and was not offered that one: its args are "
                     "NULL",
                     GRAFT_EXTENSION_GRAPH, n, graph->nodes[n]->schema->name, g->numbers[n]);
  }
  return GRAFT_OK;
}

/* --- the order --- */

static bool permute(void *items, size_t bytes, const uint32_t *order, uint32_t count) {
  char *before = malloc(count * bytes + 1);
  if (!before) return false;
  memcpy(before, items, count * bytes);
  for (uint32_t i = 0; i < count; i++) memcpy((char *)items + i * bytes, before + order[i] * bytes, bytes);
  free(before);
  return true;
}

/* Puts the nodes of each group behind each other. */
static graft_status reorder(grouping *g) {
  graft_graph_exec *e = g->e;
  const uint32_t count = e->graph->nnodes;
  uint32_t *order = calloc(count + 1u, sizeof *order);
  if (!order) return no_memory();
  graft_status status = gr_order_groups(e, g->numbers, order);
  bool good = status ||
              (permute(e->graph->nodes, sizeof *e->graph->nodes, order, count) &&
               permute(e->steps, sizeof *e->steps, order, count) && permute(g->nodes, sizeof *g->nodes, order, count) &&
               permute(g->numbers, sizeof *g->numbers, order, count));
  free(order);
  return good ? status : no_memory();
}

/* --- a group --- */

static graft_status add_group(graft_graph_exec *e, uint32_t first, uint32_t end) {
  graft_status status = gr_grow((void **)&e->groups, e->ngroups, sizeof *e->groups);
  if (status) return status;
  for (uint32_t n = first; n < end; n++) e->steps[n].group = e->ngroups;
  e->groups[e->ngroups++] = (gr_group){.first = first, .end = end, .first_desc = e->ndescs, .first_draw = e->ndraws};
  return GRAFT_OK;
}

/* The latest one is no group after all. */
static void take_back(graft_graph_exec *e) {
  const gr_group *group = &e->groups[--e->ngroups];
  for (uint32_t n = group->first; n < group->end; n++) e->steps[n].group = GR_NONE;
}

/* Whether the storage is one that nobody outside of the group uses. */
static bool is_inside(const graft_graph_exec *e, uint32_t buffer, const gr_group *group) {
  const gr_place *place = &e->places[buffer];
  return place->memory == GR_ARENA && place->first == group->first && place->last == group->first;
}

static bool holds(const graft_tensor_desc *const *descs, uint32_t count, const graft_tensor_desc *desc) {
  for (uint32_t i = 0; i < count; i++) {
    if (descs[i] == desc) return true;
  }
  return false;
}

static void add_desc(const grouping *g, const gr_group *group, const graft_tensor_desc *desc,
                     const graft_tensor_desc **descs, uint32_t *count) {
  if (is_inside(g->e, gr_described_of(desc)->view.buffer, group) || holds(descs, *count, desc)) return;
  descs[(*count)++] = desc;
}

/* What has memory: inputs and outputs, in one array. */
static graft_status list_descs(const grouping *g, gr_group *group) {
  uint32_t most = 1;
  for (uint32_t n = group->first; n < group->end; n++) most += g->nodes[n]->read_count + g->nodes[n]->write_count;
  const graft_tensor_desc **inputs = arena_take(&g->e->memory, 2 * most * sizeof *inputs), **outputs = inputs + most;
  if (!inputs) return no_memory();
  for (uint32_t n = group->first; n < group->end; n++) {
    const graft_graph_node *node = g->nodes[n];
    for (uint32_t i = 0; i < node->read_count; i++) {
      if (!holds(outputs, group->noutputs, node->reads[i])) add_desc(g, group, node->reads[i], inputs, &group->ninputs);
    }
    for (uint32_t i = 0; i < node->write_count; i++) add_desc(g, group, node->writes[i], outputs, &group->noutputs);
  }
  memmove(inputs + group->ninputs, outputs, group->noutputs * sizeof *outputs);
  group->descs = inputs;
  return GRAFT_OK;
}

/* Which of its nodes draw. */
static graft_status list_draws(const grouping *g, gr_group *group) {
  dsp_plan **plans = arena_take(&g->e->memory, (group->end - group->first) * sizeof *plans);
  if (!plans) return no_memory();
  for (uint32_t n = group->first; n < group->end; n++) {
    if (g->nodes[n]->flags & GRAFT_GRAPH_NODE_DRAWS) plans[group->ndraws++] = g->e->steps[n].plan;
  }
  group->drawing = plans;
  return GRAFT_OK;
}

static graft_status compile_group(grouping *g, gr_group *group, uint64_t *in_place) {
  graft_graph_exec *e = g->e;
  graft_status status = list_descs(g, group);
  if (!status) status = list_draws(g, group);
  graft_graph_group *shown = arena_take(&e->memory, sizeof *shown);
  if (status || !shown) return status ? status : no_memory();
  *shown = (graft_graph_group){.struct_size = sizeof *shown,
                               .nodes = g->nodes + group->first,
                               .inputs = group->descs,
                               .outputs = group->descs + group->ninputs,
                               .node_count = group->end - group->first,
                               .input_count = group->ninputs,
                               .output_count = group->noutputs};
  graft_graph_compiled compiled;
  status = dsp_compile_group(e->device, e->api, shown, &compiled);
  group->executable = status ? NULL : compiled.executable;
  group->unaligned = compiled.flags & GRAFT_EXECUTABLE_UNALIGNED;
  *in_place = compiled.in_place;
  return status == GRAFT_UNIMPLEMENTED ? status : gr_group_error(status, group->first, group->end - 1);
}

/* What is inside has no memory, now that its group is compiled. */
static void leave_out_memory(graft_graph_exec *e, const gr_group *group) {
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) {
    if (is_inside(e, i, group)) e->places[i].memory = GR_INSIDE;
  }
}

static graft_status make_group(grouping *g, uint32_t first, uint32_t end) {
  graft_graph_exec *e = g->e;
  graft_status status = add_group(e, first, end);
  if (status) return status;
  gr_group *group = &e->groups[e->ngroups - 1];
  gr_find_spans(e);
  uint64_t in_place = 0;
  status = compile_group(g, group, &in_place);
  if (!status) {
    leave_out_memory(e, group);
    gr_lay_group_over(e, group, in_place);
    e->ndescs += group->ninputs + group->noutputs;
    e->ndraws += group->ndraws;
    return GRAFT_OK;
  }
  if (status == GRAFT_OUT_OF_MEMORY) return status;
  if (status == GRAFT_UNIMPLEMENTED)
    err_log(GRAFT_LOG_DEBUG, "%s: compile refuses graph nodes %u to %u", e->device->text, first, end - 1);
  else {
    err_log(GRAFT_LOG_WARNING, "%s; they run one by one", graft_last_error());
    e->failed_groups++;
  }
  take_back(e);
  return GRAFT_OK;
}

static graft_status make_all(grouping *g) {
  const uint32_t count = g->e->graph->nnodes;
  graft_status status = GRAFT_OK;
  for (uint32_t first = 0, end; first < count && !status; first = end) {
    for (end = first + 1; end < count && g->numbers[first] && g->numbers[end] == g->numbers[first];) end++;
    if (g->numbers[first]) status = make_group(g, first, end);
  }
  if (!status) gr_find_spans(g->e);
  return status;
}

/* --- the whole --- */

/* Asks, and goes on with the answer, where the plugin has the extension. */
static graft_status with_numbers(graft_graph_exec *e, gr_frame *frame, uint32_t *numbers,
                                 graft_status (*then)(grouping *)) {
  graft_status status = e->graph->nnodes ? dsp_graph_api(e->device, &e->api, &e->shows_draws) : GRAFT_OK;
  if (status || !e->api) return status;
  grouping g = {.e = e, .describer = {.exec = e, .frame = frame}, .numbers = numbers};
  g.describer.by_buffer = calloc(e->graph->nbuffers + 1u, sizeof *g.describer.by_buffer);
  g.nodes = arena_take(&e->memory, e->graph->nnodes * sizeof *g.nodes);
  status = g.describer.by_buffer && g.nodes ? ask(&g) : no_memory();
  if (!status) status = check_numbers(&g);
  if (!status) status = then(&g);
  free(g.describer.by_buffer);
  return status;
}

static graft_status reorder_and_make(grouping *g) {
  graft_status status = reorder(g);
  return status ? status : make_all(g);
}

graft_status gr_make_groups(graft_graph_exec *e, gr_frame *frame) {
  uint32_t *numbers = calloc(e->graph->nnodes + 1u, sizeof *numbers);
  graft_status status = numbers ? with_numbers(e, frame, numbers, reorder_and_make) : no_memory();
  free(numbers);
  return status;
}

static graft_status leave(grouping *g) {
  (void)g;
  return GRAFT_OK;
}

graft_status gr_ask_groups(graft_graph_exec *e, gr_frame *frame, uint32_t *numbers) {
  return with_numbers(e, frame, numbers, leave);
}

void gr_destroy_groups(graft_graph_exec *e) {
  for (uint32_t i = 0; i < e->ngroups; i++) {
    if (e->groups[i].executable && !dev_forked(e->device)) e->api->destroy(e->groups[i].executable);
  }
  e->ngroups = 0;
}
