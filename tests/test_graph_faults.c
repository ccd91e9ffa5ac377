/* Whether random programs find what passes and plans could do wrong: faults, planted in graphs that were recorded,
 * in those that were loaded from a file, and in what was compiled. Without one all programs agree. */
#include "bad_input.h"
#include "cli/fuzz.h"
#include "graph/exec.h"
#include "suite.h"

enum { PROGRAMS = 400 };

/* --- what writes, and what is read --- */

static bool writes_what_was_there(const gr_node *node) {
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].given) return true;
  }
  return false;
}

static void take_out(graft_graph *graph, uint32_t node) {
  graph->nnodes--;
  for (uint32_t i = node; i < graph->nnodes; i++) graph->nodes[i] = graph->nodes[i + 1];
}

static void read_instead(graft_graph *graph, uint32_t buffer, const gr_view *view, uint32_t from) {
  for (uint32_t n = from; n < graph->nnodes; n++) {
    for (uint32_t i = 0; i < graph->nodes[n]->noperands; i++) {
      gr_operand *o = &graph->nodes[n]->operands[i];
      if (o->view.buffer == buffer) o->view = *view;
    }
  }
}

/* --- faults --- */

static void lose_write(graft_graph *graph) {
  for (uint32_t n = graph->nnodes; n-- > 0;) {
    if (writes_what_was_there(graph->nodes[n])) return take_out(graph, n);
  }
}

/* A write goes to a copy that nobody else sees. */
static void lose_alias(graft_graph *graph) {
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    gr_result *result = &graph->nodes[n]->results[0];
    uint32_t apart;
    if (!writes_what_was_there(graph->nodes[n])) continue;
    if (gr_add_buffer(graph, GR_VALUE, graph->buffers[result->view.buffer].bytes, &apart)) return;
    result->view.buffer = apart;
    return;
  }
}

/* A view begins one element late. */
static void shift_view(graft_graph *graph) {
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    for (uint32_t i = 0; i < graph->nodes[n]->noperands; i++) {
      gr_view *view = &graph->nodes[n]->operands[i].view;
      if (view->buffer == GR_NONE || !view->offset) continue;
      view->offset--;
      return;
    }
  }
}

/* What read a converted value reads the value before. */
static void drop_cast(graft_graph *graph) {
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    const gr_node *node = graph->nodes[n];
    if (node->noperands != 1 || node->nresults != 1 || node->results[0].given) continue;
    const gr_view *from = &node->operands[0].view, *to = &node->results[0].view;
    if (!(op_def_of(node->schema->id)->flags & OP_COPY) || from->dtype == to->dtype) continue;
    read_instead(graph, to->buffer, from, n + 1);
  }
}

static void swap_nodes(graft_graph *graph) {
  for (uint32_t n = 1; n < graph->nnodes; n++) {
    gr_node *node = graph->nodes[n];
    if (!writes_what_was_there(node)) continue;
    graph->nodes[n] = graph->nodes[n - 1];
    graph->nodes[n - 1] = node;
    return;
  }
}

/* Two draws become one. */
static void merge_draws(graft_graph *graph) {
  const gr_node *first = NULL;
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    const gr_node *node = graph->nodes[n];
    if (!gr_is_random(node)) continue;
    if (!first) {
      first = node;
      continue;
    }
    read_instead(graph, node->results[0].view.buffer, &first->results[0].view, n);
    return take_out(graph, n);
  }
}

/* Of the last list that a call takes, two tensors stand for each other. */
static void swap_items(graft_graph *graph) {
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    const gr_node *node = graph->nodes[n];
    for (uint32_t a = node->nargs; a-- > 0;) {
      const graft_value *list = &node->args[a];
      if (list->kind != GRAFT_VALUE_TENSORS || list->count < 2) continue;
      gr_operand *items = &node->operands[list->as.i];
      const gr_operand first = items[0];
      items[0] = items[1];
      items[1] = first;
      break;
    }
  }
}

/* All values in one place. */
static void overlap_values(graft_graph_exec *exec) {
  for (uint32_t i = 0; i < exec->graph->nbuffers; i++) {
    if (exec->places[i].memory == GR_ARENA && exec->places[i].spot.arena != GR_NONE) exec->places[i].spot.offset = 0;
  }
}

/* --- faults of groups --- */

static void each_input(graft_graph_exec *exec, void (*change)(gr_described *input)) {
  for (uint32_t g = 0; g < exec->ngroups; g++) {
    const gr_group *group = &exec->groups[g];
    for (uint32_t i = 0; i < group->ninputs; i++) change((gr_described *)(void *)gr_described_of(group->descs[i]));
  }
}

/* What is broadcast is read as if it were not. */
static void lose_zero(gr_described *input) {
  for (int32_t d = 0; d < input->view.ndim; d++) {
    if (input->view.sizes[d] > 1 && input->view.strides[d] == 0) input->view.strides[d] = 1;
  }
}
static void lose_zeros(graft_graph_exec *exec) {
  each_input(exec, lose_zero);
}

static void lose_dtype(gr_described *input) {
  if (input->desc.dl.dtype == GRAFT_F32) input->desc.dl.dtype = GRAFT_I32;
}
static void lose_dtypes(graft_graph_exec *exec) {
  each_input(exec, lose_dtype);
}

static bool is_reduction(const gr_node *node) {
  static const uint32_t ids[] = {GRAFT_OP_SUM_DIM_INTLIST, GRAFT_OP_MEAN_DIM, GRAFT_OP_AMAX, GRAFT_OP_AMIN,
                                 GRAFT_OP_VAR_CORRECTION};
  for (size_t i = 0; i < ROWS(ids); i++) {
    if (node->schema->id == ids[i]) return true;
  }
  return false;
}

/* What is reduced over its rows is read as if these were its columns. */
static void turn_rows(graft_graph_exec *exec, const gr_group *group, gr_described *input) {
  gr_view *view = &input->view;
  for (uint32_t n = group->first; n < group->end; n++) {
    const gr_node *node = exec->graph->nodes[n];
    if (!is_reduction(node) || view->ndim != 2 || view->sizes[0] != view->sizes[1]) continue;
    if (!gr_same_view(&node->operands[0].view, view)) continue;
    const int64_t stride = view->strides[0];
    view->strides[0] = view->strides[1];
    view->strides[1] = stride;
    return;
  }
}
static void reduce_wrong_rows(graft_graph_exec *exec) {
  for (uint32_t g = 0; g < exec->ngroups; g++) {
    const gr_group *group = &exec->groups[g];
    for (uint32_t i = 0; i < group->ninputs; i++)
      turn_rows(exec, group, (gr_described *)(void *)gr_described_of(group->descs[i]));
  }
}

/* Where a group converts to whole numbers, nothing is cut off. */
static void keep_fraction(gr_described *output) {
  if (output->desc.dl.dtype == GRAFT_I64) output->desc.dl.dtype = GRAFT_F64;
  if (output->desc.dl.dtype == GRAFT_I32) output->desc.dl.dtype = GRAFT_F32;
}
static void drop_group_casts(graft_graph_exec *exec) {
  for (uint32_t g = 0; g < exec->ngroups; g++) {
    const gr_group *group = &exec->groups[g];
    for (uint32_t i = 0; i < group->noutputs; i++)
      keep_fraction((gr_described *)(void *)gr_described_of(group->descs[group->ninputs + i]));
  }
}

/* Two descriptors of a group name each other's memory. */
static void swap_memory(graft_graph_exec *exec, const gr_group *group, uint32_t first, uint32_t second) {
  gr_view *a = &((gr_described *)(void *)gr_described_of(group->descs[first]))->view;
  gr_view *b = &((gr_described *)(void *)gr_described_of(group->descs[second]))->view;
  const gr_buffer *buffers = exec->graph->buffers;
  const uint32_t buffer = a->buffer;
  if (buffers[buffer].on_host || buffers[b->buffer].on_host || buffers[buffer].bytes != buffers[b->buffer].bytes)
    return;
  a->buffer = b->buffer;
  b->buffer = buffer;
}
static void swap_inputs(graft_graph_exec *exec) {
  for (uint32_t g = 0; g < exec->ngroups; g++) {
    if (exec->groups[g].ninputs > 1) swap_memory(exec, &exec->groups[g], 0, 1);
  }
}
/* Whether a group's input is there as long as its output: a later group that reads the output finds memory in its
 * place. */
static bool outlives(const graft_graph_exec *exec, const graft_tensor_desc *input, const graft_tensor_desc *output) {
  const gr_place *in = &exec->places[gr_described_of(input)->view.buffer],
                 *out = &exec->places[gr_described_of(output)->view.buffer];
  return in->is_output || (!out->is_output && in->last >= out->last);
}
static void swap_output(graft_graph_exec *exec) {
  for (uint32_t g = 0; g < exec->ngroups; g++) {
    const gr_group *group = &exec->groups[g];
    if (group->ninputs && group->noutputs && outlives(exec, group->descs[0], group->descs[group->ninputs]))
      swap_memory(exec, group, 0, group->ninputs);
  }
}

/* --- faults in graphs with open sizes --- */

/* A size stays what it was when it was recorded. */
static void freeze_size(graft_graph *graph) {
  const gr_sizes *sizes = &graph->script->sizes;
  for (uint32_t i = 0; i < graph->script->nentries; i++) {
    const gr_entry *entry = graph->script->entries[i];
    for (uint32_t a = 0; a < entry->nargs; a++) {
      graft_value *v = &entry->args[a];
      for (uint32_t k = 0; v->kind == GRAFT_VALUE_INTS && k < v->count; k++)
        ((int64_t *)(uintptr_t)v->as.ints)[k] = gr_size_value(sizes, sizes->examples, v->as.ints[k]);
    }
  }
}

static void round_down_twice(graft_graph *graph) {
  const gr_sizes *sizes = &graph->script->sizes;
  for (uint32_t i = 0; i < sizes->count; i++) {
    if (sizes->items[i].op == GRAFT_SIZE_DIV) sizes->items[i].right = 4;
  }
}

static void lose_call(graft_graph *graph) {
  gr_script *s = graph->script;
  for (uint32_t i = s->nentries; i-- > 0;) {
    if (s->entries[i]->act != GR_CALL || !s->entries[i]->outs[0].given) continue;
    s->nentries--;
    for (; i < s->nentries; i++) s->entries[i] = s->entries[i + 1];
    return;
  }
}

static void swap_operands(graft_graph *graph) {
  for (uint32_t i = 0; i < graph->script->nentries; i++) {
    const gr_entry *entry = graph->script->entries[i];
    if (entry->act != GR_CALL || entry->nuses != 2) continue;
    const gr_value_use first = entry->uses[0];
    entry->uses[0] = entry->uses[1];
    entry->uses[1] = first;
  }
}

static const struct {
  const char *name;
  fuzz_fault fault;
} faults[] = {
    {"a size that stays", {.in_open = freeze_size}},
    {"another formula", {.in_open = round_down_twice}},
    {"a lost write at other sizes", {.in_open = lose_call}},
    {"operands in the other order", {.in_open = swap_operands}},
    {"a lost write", {.in_graph = lose_write}},
    {"a lost alias", {.in_graph = lose_alias}},
    {"a shifted view", {.in_graph = shift_view}},
    {"a dropped cast", {.in_graph = drop_cast}},
    {"two nodes in the other order", {.in_graph = swap_nodes}},
    {"two draws in one", {.in_graph = merge_draws}},
    {"a wrong tensor of a list", {.in_graph = swap_items}},
    {"a wrong reuse of memory", {.in_exec = overlap_values}},
    {"a lost write in a file", {.in_loaded = lose_write}},
    {"a shifted view in a file", {.in_loaded = shift_view}},
    {"a group that reads over what is broadcast", {.in_exec = lose_zeros}},
    {"a group that takes an input for another dtype", {.in_exec = lose_dtypes}},
    {"a group that takes one input for another", {.in_exec = swap_inputs}},
    {"a group that writes where it reads", {.in_exec = swap_output}},
    {"a group that reduces over the wrong rows", {.in_exec = reduce_wrong_rows}},
    {"a group that drops a cast", {.in_exec = drop_group_casts}},
};

/* On a plugin that takes groups; "groups=none": one that takes none. */
static uint32_t count_found(const char *groups, const fuzz_fault *fault, fuzz_report *report) {
  graft_rt_device *device = device_at(test_plugin("groups"), (const char *const[]){groups, NULL}, 0);
  uint32_t found = 0;
  ck_assert_msg(device, "%s", graft_last_error());
  for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
    fuzz_program program;
    fuzz_make(seed, &program);
    found += !fuzz_agrees(&program, device, fault, report);
  }
  return found;
}

static const char *const groupings[] = {"groups=none", "groups=runs", "groups=spread"};

START_TEST(programs_agree) {
  fuzz_report report = {0};
  ck_assert_msg(count_found(groupings[_i], NULL, &report) == 0, "%s: %s", groupings[_i], report.why);
}
END_TEST

START_TEST(a_fault_is_found) {
  fuzz_report report = {0};
  bool of_groups = faults[_i].fault.in_exec && faults[_i].fault.in_exec != overlap_values;
  ck_assert_msg(count_found(of_groups ? "groups=runs" : "groups=none", &faults[_i].fault, &report) > 0,
                "nothing found %s", faults[_i].name);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(programs_agree, ROWS(groupings)), EACH(a_fault_is_found, ROWS(faults)), {0}};
  return run_suite("graph_faults", tests, (suite_options){.timeout_s = 120});
}
