#include "conformance/run/grouped.h"

#include <stdio.h>

#include "base/error.h"
#include "conformance/run/call.h"
#include "graph/graph.h"

enum { MOST_NODES = 256 };

/* ---- calls and their neighbours ---- */

static graft_status cf_add_call(graft_graph *graph, const char *name, graft_value of, graft_tensor **outs,
                                uint32_t nouts) {
  return graft_graph_call(graph, op_schema_find(name)->id, &of, 1, outs, nouts);
}

graft_status cf_add_negation(graft_graph *graph, graft_tensor *of, graft_tensor **negated) {
  const char *name = graft_tensor_dtype(of) == GRAFT_BOOL ? "aten::logical_not" : "aten::neg";
  return cf_add_call(graph, name, graft_value_tensor(of), negated, 1);
}

/* Once: a plugin that answers wrongly does so for all. */
static void cf_say_wrong_answer(void) {
  static bool said;
  if (!said) fprintf(stderr, "graft: warning: %s\n", graft_last_error());
  said = true;
}

/* Receives the group of each node, and their number; 0: the plugin takes none together, or the graph is too large. */
static uint32_t cf_groups_of(const graft_graph *graph, graft_rt_device *device, uint32_t numbers[MOST_NODES]) {
  const uint32_t count = graft_graph_node_count(graph);
  if (count > MOST_NODES) return 0;
  graft_status status = gr_would_group(graph, device, numbers);
  if (status && status != GRAFT_UNIMPLEMENTED) cf_say_wrong_answer();
  return status ? 0 : count;
}

/* Whether node `at` is in a group with one of those from `from` to `to`. */
static bool cf_shares_group(const uint32_t *numbers, uint32_t at, uint32_t from, uint32_t to) {
  for (uint32_t n = from; n < to; n++)
    if (n != at && numbers[at] && numbers[n] == numbers[at]) return true;
  return false;
}

bool cf_joins_neighbours(const graft_graph *graph, graft_rt_device *device, uint32_t neighbours) {
  uint32_t numbers[MOST_NODES];
  const uint32_t count = cf_groups_of(graph, device, numbers);
  if (count <= 2 * neighbours) return false;
  const uint32_t to = count - neighbours;
  return cf_shares_group(numbers, neighbours - 1, neighbours, to) || cf_shares_group(numbers, to, neighbours, to);
}

bool cf_joins_end(const graft_graph *graph, graft_rt_device *device, bool first) {
  uint32_t numbers[MOST_NODES];
  const uint32_t count = cf_groups_of(graph, device, numbers);
  return count > 1 && cf_shares_group(numbers, first ? 0 : count - 1, 0, count);
}

/* ---- a case ---- */

/* The graph of a call, and what it holds until it runs. */
typedef struct cf_grouped {
  const cf_call *call;
  graft_rt_device *device;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *inputs[CF_MAX_TENSORS], *outs[CF_MAX_TENSORS], *negated[4][CF_MAX_TENSORS];
  uint32_t nouts;
} cf_grouped;

/* Tensors of the call that its neighbour takes or gives: one, or all of a list. */
typedef struct cf_end {
  uint32_t first, count;
  bool is_list;
} cf_end;

static cf_end cf_first_input(const cf_call *call) {
  cf_end end = {.first = (uint32_t)cf_call_first_read(call), .count = 1};
  const uint32_t arg = call->spec_arg[end.first];
  end.is_list = call->schema->args[arg].kind == OPK_TENSORS;
  while (end.is_list && end.first > 0 && call->spec_arg[end.first - 1] == arg) end.first--;
  while (end.is_list && end.first + end.count < call->ntensors && call->spec_arg[end.first + end.count] == arg)
    end.count++;
  return end;
}

/* Results that the call does not give have no output; the first of those that it gives is negated. */
static cf_end cf_first_result(const cf_grouped *g) {
  const op_schema *schema = g->call->schema;
  cf_end end = {.count = 1, .is_list = schema->rets[0].kind == OPK_TENSORS};
  if (end.is_list) end.count = g->nouts / schema->nrets;
  while (!end.is_list && end.first + 1 < g->nouts && !g->outs[end.first]) end.first++;
  return end;
}

static graft_status cf_negate(cf_grouped *g, const cf_end *end, graft_tensor *const *of, graft_tensor **negated) {
  if (!end->is_list) return cf_add_negation(g->graph, of[0], negated);
  if (graft_tensor_dtype(of[0]) == GRAFT_BOOL) { /* of which there is no list form */
    graft_status status = GRAFT_OK;
    for (uint32_t i = 0; i < end->count && !status; i++) status = cf_add_negation(g->graph, of[i], &negated[i]);
    return status;
  }
  return cf_add_call(g->graph, "aten::_foreach_neg", graft_value_tensors(of, end->count), negated, end->count);
}

static graft_status cf_negate_twice(cf_grouped *g, const cf_end *end, graft_tensor *const *of,
                                    graft_tensor *negated[][CF_MAX_TENSORS]) {
  graft_status status = cf_negate(g, end, of, negated[0]);
  return status ? status : cf_negate(g, end, negated[0], negated[1]);
}

static graft_status cf_grouped_inputs(cf_grouped *g, graft_tensor *const *like) {
  graft_status status = graft_graph_create(g->device, &g->graph);
  for (uint32_t i = 0; i < g->call->ntensors && !status; i++) {
    char name[16];
    snprintf(name, sizeof name, "t%u", i);
    status = graft_graph_input_like(g->graph, name, like[i], &g->inputs[i]);
  }
  return status;
}

static graft_status cf_grouped_outputs(cf_grouped *g) {
  const cf_end end = cf_first_result(g);
  graft_status status = cf_negate_twice(g, &end, g->outs + end.first, &g->negated[2]);
  for (uint32_t i = 0; i < g->nouts && !status; i++) {
    char name[16];
    snprintf(name, sizeof name, "o%u", i);
    const bool is_negated = i >= end.first && i < end.first + end.count;
    graft_tensor *out = is_negated ? g->negated[3][i - end.first] : g->outs[i];
    if (g->outs[i]) status = graft_graph_output(g->graph, name, out);
  }
  return status;
}

static graft_status cf_grouped_build(cf_grouped *g, graft_tensor *const *like) {
  graft_tensor *tensors[CF_MAX_TENSORS] = {0}, *items[CF_MAX_TENSORS];
  graft_value args[OP_MAX_ARGS];
  const cf_end end = cf_first_input(g->call);
  graft_status status = cf_grouped_inputs(g, like);
  if (!status) status = cf_negate_twice(g, &end, g->inputs + end.first, g->negated);
  if (status) return status;
  for (uint32_t i = 0; i < g->call->ntensors; i++) tensors[i] = g->inputs[i];
  for (uint32_t i = 0; i < end.count; i++) tensors[end.first + i] = g->negated[1][i];
  cf_call_args(g->call, g->device, tensors, args, items);
  status = graft_graph_call(g->graph, g->call->schema->id, args, g->call->schema->nargs, g->outs, g->nouts);
  return status ? status : cf_grouped_outputs(g);
}

/* *joined: whether the plugin has compiled what it takes together. It need not, but it must not fail: the calls would
 * run one by one, and nobody see that their program is wrong. */
static graft_status cf_grouped_compile(cf_grouped *g, bool *joined) {
  graft_graph_exec_info info = {0};
  graft_status status = graft_graph_compile(g->graph, g->device, NULL, &g->exec);
  if (!status) status = graft_graph_exec_query(g->exec, &info, sizeof info);
  if (!status && info.failed_groups)
    return err_set(GRAFT_INTERNAL,
                   "the plugin takes the calls together and fails to compile them: its message is in the log");
  *joined = status || info.groups > 0;
  return status;
}

static graft_status cf_grouped_run(cf_grouped *g, graft_tensor *const *inputs, graft_tensor **outs) {
  graft_tensor *made[CF_MAX_TENSORS] = {0};
  uint32_t nmade = 0;
  for (uint32_t i = 0; i < g->nouts; i++) nmade += g->outs[i] != NULL;
  graft_status status = graft_graph_run(g->exec, inputs, g->call->ntensors, made, nmade);
  for (uint32_t i = 0, at = 0; i < g->nouts && !status; i++)
    if (g->outs[i]) outs[i] = made[at++];
  return status;
}

static void cf_grouped_release(cf_grouped *g) {
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) {
    graft_tensor_release(g->inputs[i]);
    graft_tensor_release(g->outs[i]);
    for (int k = 0; k < 4; k++) graft_tensor_release(g->negated[k][i]);
  }
  graft_graph_exec_destroy(g->exec);
  graft_graph_destroy(g->graph);
}

graft_status cf_grouped_call(const cf_call *call, graft_rt_device *device, graft_tensor *const *inputs,
                             graft_tensor **outs, uint32_t nouts, bool *joined) {
  cf_grouped g = {.call = call, .device = device, .nouts = nouts};
  graft_status status = cf_grouped_build(&g, inputs);
  *joined = !status && cf_joins_neighbours(g.graph, device, 2);
  if (*joined) status = cf_grouped_compile(&g, joined);
  if (*joined && !status) status = cf_grouped_run(&g, inputs, outs);
  cf_grouped_release(&g);
  return status;
}
