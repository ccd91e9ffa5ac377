/* A graph for one device: cells, plans, and where each value lies. */
#include <stdlib.h>
#include <string.h>

#include "base/row.h"
#include "graph/exec.h"

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to compile a graph");
}

/* --- which buffer lives when --- */

static graft_status find_places(graft_graph_exec *e) {
  const graft_graph *graph = e->graph;
  e->places = arena_take(&e->memory, graph->nbuffers * sizeof *e->places);
  if (!e->places) return no_memory();
  for (uint32_t i = 0; i < graph->nbuffers; i++) {
    e->places[i] = (gr_place){.same_as = GR_NONE, .first_cell = GR_NONE, .donor = GR_NONE};
    if (graph->buffers[i].kind == GR_CONSTANT) e->places[i].memory = GR_KEPT;
  }
  gr_find_spans(e);
  for (uint32_t i = 0; i < graph->noutputs; i++) e->places[graph->outputs[i].view.buffer].is_output = true;
  for (uint32_t i = 0; i < graph->ninputs; i++) {
    gr_place *place = &e->places[graph->inputs[i].view.buffer];
    place->memory = GR_BOUND;
    place->input = i;
  }
  for (uint32_t i = 0; i < graph->nbuffers; i++) {
    gr_place *place = &e->places[i];
    bool used = place->is_output || place->first != GR_NONE;
    /* The caller may write to an output, and not to a constant. */
    if (place->is_output && place->memory != GR_BOUND) place->memory = GR_OWN;
    if (used && place->memory == GR_UNUSED) place->memory = GR_ARENA;
  }
  return GRAFT_OK;
}

/* --- cells --- */

static graft_status cell_of(graft_graph_exec *e, const gr_view *view, uint32_t *cell) {
  *cell = GR_NONE;
  if (view->buffer == GR_NONE) return GRAFT_OK;
  gr_place *place = &e->places[view->buffer];
  for (uint32_t i = place->first_cell; i != GR_NONE; i = e->cells[i].next) {
    if (gr_same_view(&e->cells[i].view, view)) return *cell = i, GRAFT_OK;
  }
  graft_status status = gr_grow((void **)&e->cells, e->ncells, sizeof *e->cells);
  if (status) return status;
  e->cells[e->ncells] = (gr_cell){*view, place->first_cell};
  *cell = place->first_cell = e->ncells++;
  return GRAFT_OK;
}

static graft_status fill_step(graft_graph_exec *e, uint32_t n) {
  const gr_node *node = e->graph->nodes[n];
  gr_step *step = &e->steps[n];
  *step = (gr_step){.node = node,
                    .args = arena_copy(&e->memory, node->args, node->nargs * sizeof *node->args),
                    .operands = arena_take(&e->memory, node->noperands * sizeof *step->operands),
                    .results = arena_take(&e->memory, node->nresults * sizeof *step->results),
                    .first_operand = e->noperands,
                    .first_arg = e->nargs,
                    .first_result = e->nresults,
                    .group = GR_NONE};
  if (!step->args || !step->operands || !step->results) return no_memory();
  e->noperands += node->noperands;
  e->nargs += node->nargs;
  e->nresults += node->nresults;
  for (uint32_t i = 0; i < node->nargs; i++) {
    graft_value *v = &step->args[i];
    if (v->kind == GRAFT_VALUE_DEVICE) v->as.device = e->device;
  }
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->noperands && !status; i++)
    status = cell_of(e, &node->operands[i].view, &step->operands[i]);
  for (uint32_t i = 0; i < node->nresults && !status; i++)
    status = cell_of(e, &node->results[i].view, &step->results[i]);
  return status;
}

static graft_status fill_steps(graft_graph_exec *e) {
  e->steps = arena_take(&e->memory, e->graph->nnodes * sizeof *e->steps);
  graft_status status = e->steps ? GRAFT_OK : no_memory();
  for (uint32_t n = 0; n < e->graph->nnodes && !status; n++) status = fill_step(e, n);
  return status;
}

/* --- plans ---
 * A plan is found with tensors that lie where those of a run will, as far as a plan can tell: at the start of aligned
 * memory, buffers of their own storages. */

typedef struct planning {
  graft_graph_exec *e;
  gr_frame *frame;
  uint32_t *asked; /* what receives the plugin's numbers of groups, where it is only asked for them */
} planning;

static graft_status find(planning *p, uint32_t n, bool give, dsp_plan **plan) {
  const gr_step *step = &p->e->steps[n];
  const gr_node *node = step->node;
  graft_tensor **outs = p->frame->results + step->first_result;
  for (uint32_t i = 0; i < node->nresults; i++) {
    bool absent = step->results[i] == GR_NONE || (!give && !node->results[i].given);
    outs[i] = absent ? NULL : &p->frame->cells[step->results[i]];
  }
  const op_schema *schema = node->schema;
  graft_status status = dsp_find_plan(schema, op_def_of(schema->id), p->frame->args + step->first_arg, node->nargs,
                                      outs, node->nresults, plan);
  return gr_node_error(status, n);
}

/* New results that the node makes itself have storages of their own. */
static void let_give(graft_graph_exec *e, gr_step *step) {
  step->gives = true;
  for (uint32_t i = 0; i < step->node->nresults; i++) {
    const gr_result *result = &step->node->results[i];
    if (result->view.buffer != GR_NONE && !result->given) e->places[result->view.buffer].memory = GR_LOOSE;
  }
}

/* Whether each element of the operand is read where that of the node's one result is written, and all that its buffer
 * is read for ends here. */
static bool may_take_over(const graft_graph_exec *e, uint32_t n, uint32_t operand) {
  const gr_node *node = e->graph->nodes[n];
  const gr_view *from = &node->operands[operand].view, *to = &node->results[0].view;
  if (node->operands[operand].written || !gr_may_lie_over(e, from->buffer, to->buffer, n)) return false;
  gr_view same = *from;
  same.buffer = to->buffer;
  if (!gr_same_view(&same, to)) return false;
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_view *other = &node->operands[i].view;
    if (other->buffer == from->buffer && !gr_same_view(other, from)) return false;
  }
  return true;
}

/* The node's plan with its result over what buffer `from` is, where a slot takes that; else NULL. */
static graft_status find_over(planning *p, uint32_t n, uint32_t from, dsp_plan **over) {
  const uint32_t to = p->e->graph->nodes[n]->results[0].view.buffer;
  graft_storage *own = p->frame->storages[to];
  *over = NULL;
  graft_status status = gr_frame_bind(p->e, p->frame, to, p->frame->storages[from], 0);
  if (!status) status = find(p, n, true, over);
  if (status) return status;
  if (gr_is_slot(*over) && (*over)->simple) return GRAFT_OK;
  dsp_plan_release(*over);
  *over = NULL;
  return gr_frame_bind(p->e, p->frame, to, own, 0);
}

/* A node writes over an operand that nobody looks at any more, where its slot takes that. */
static graft_status try_in_place(planning *p, uint32_t n) {
  gr_step *step = &p->e->steps[n];
  const gr_node *node = step->node;
  const op_def *def = op_def_of(node->schema->id);
  if (!def || !(def->flags & (OP_ELEMENTWISE | OP_BY_LINES)) || node->nresults != 1 || node->results[0].given)
    return GRAFT_OK;
  const uint32_t to = node->results[0].view.buffer;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->noperands && !step->over && !status; i++) {
    if (!may_take_over(p->e, n, i)) continue;
    const uint32_t from = node->operands[i].view.buffer;
    status = find_over(p, n, from, &step->over);
    if (step->over) p->e->places[to].same_as = from;
  }
  return status;
}

static graft_status plan_step(planning *p, uint32_t n) {
  gr_step *step = &p->e->steps[n];
  const op_def *def = op_def_of(step->node->schema->id);
  if (def && def->flags & OP_COPY) return GRAFT_OK;
  graft_status status = find(p, n, true, &step->plan);
  if (status) return status;
  if (!gr_is_slot(step->plan)) {
    dsp_plan_release(step->plan);
    step->plan = NULL;
    let_give(p->e, step);
    status = find(p, n, false, &step->plan);
  }
  if (status) return status;
  /* What is no tensor comes from the plan; a number that each call brings anew is the node's. */
  graft_value full[OP_MAX_ARGS];
  dsp_full_args(step->plan, p->frame->args + step->first_arg, step->node->nargs, full);
  memcpy(step->args, full, step->node->nargs * sizeof *full);
  return GRAFT_OK;
}

/* Storages without memory, one a buffer. */
static graft_status bind_all(planning *p, graft_storage **owned) {
  const graft_graph *graph = p->e->graph;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < graph->nbuffers && !status; i++) {
    graft_rt_device *device = graph->buffers[i].on_host ? graft_device_reference() : p->e->device;
    status = tns_storage_symbolic(device, graph->buffers[i].bytes, UINT64_MAX, &owned[i]);
    if (!status) status = gr_frame_bind(p->e, p->frame, i, owned[i], 0);
  }
  return status;
}

/* What runs by itself is made ready; of a group that is left to where its nodes run one by one after all. */
static graft_status finish_steps(planning *p) {
  graft_graph_exec *e = p->e;
  graft_status status = GRAFT_OK;
  for (uint32_t n = 0; n < e->graph->nnodes && !status; n++) {
    gr_step *step = &e->steps[n];
    if (step->group != GR_NONE || !step->plan) continue;
    if (gr_is_slot(step->plan) && e->passes & GR_PASS_INPLACE) status = try_in_place(p, n);
    if (!status) status = gr_node_error(dsp_prepare(step->plan), n);
    if (!status && step->over) status = gr_node_error(dsp_prepare(step->over), n);
  }
  return status;
}

static graft_status group_and_finish(planning *p) {
  graft_status status = p->e->passes & GR_PASS_FUSE ? gr_make_groups(p->e, p->frame) : GRAFT_OK;
  return status ? status : finish_steps(p);
}

static graft_status ask(planning *p) {
  return gr_ask_groups(p->e, p->frame, p->asked);
}

/* Finds the steps' plans, and goes on with a frame in which they hold. */
static graft_status find_plans(graft_graph_exec *e, uint32_t *asked, graft_status (*then)(planning *)) {
  planning p = {.e = e, .asked = asked};
  graft_storage **owned = calloc(e->graph->nbuffers + 1u, sizeof *owned);
  graft_status status = owned ? gr_frame_new(e, &p.frame) : no_memory();
  if (!status) status = bind_all(&p, owned);
  for (uint32_t n = 0; n < e->graph->nnodes && !status; n++) status = plan_step(&p, n);
  if (!status) status = then(&p);
  for (uint32_t i = 0; owned && i < e->graph->nbuffers; i++) tns_storage_release(owned[i]);
  free(owned);
  gr_frame_free(p.frame);
  return status;
}

/* --- memory --- */

static uint32_t root_of(const graft_graph_exec *e, uint32_t buffer) {
  while (e->places[buffer].same_as != GR_NONE) buffer = e->places[buffer].same_as;
  return buffer;
}

static void fill_usages(graft_graph_exec *e, gr_usage *usages) {
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) {
    const gr_place *place = &e->places[i];
    if (place->memory != GR_ARENA) continue;
    gr_usage *usage = &usages[root_of(e, i)];
    if (!usage->bytes) *usage = (gr_usage){e->graph->buffers[i].bytes, place->first, place->last};
    if (place->first < usage->first) usage->first = place->first;
    if (place->last > usage->last) usage->last = place->last;
    e->value_bytes += e->graph->buffers[i].bytes;
  }
}

/* An input as one who gives memory. */
typedef struct giver {
  gr_donor donor;
  uint32_t buffer;
} giver;

/* Small ones first, so that what a small one holds leaves the large ones free; of one size those last that are there
 * soonest. */
static int compare_givers(const void *a, const void *b) {
  const giver *x = a, *y = b;
  if (x->donor.bytes != y->donor.bytes) return x->donor.bytes < y->donor.bytes ? -1 : 1;
  if (x->donor.from != y->donor.from) return x->donor.from > y->donor.from ? -1 : 1;
  return x->buffer < y->buffer ? -1 : 1;
}

/* Large ones are handed on as they are, see lay_over.c. */
static bool gives_a_part(const graft_graph_exec *e, uint32_t buffer) {
  const uint64_t bytes = e->graph->buffers[buffer].bytes;
  return bytes && bytes < GR_LARGE_BYTES && e->places[buffer].first != GR_NONE && gr_may_give(e, buffer);
}

static uint32_t list_givers(const graft_graph_exec *e, giver *givers) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) {
    if (gives_a_part(e, i)) givers[count++] = (giver){{e->graph->buffers[i].bytes, e->places[i].last + 1}, i};
  }
  qsort(givers, count, sizeof *givers, compare_givers);
  return count;
}

/* Who gives to whom, now that values have their places. */
static graft_status note_donors(graft_graph_exec *e, const giver *givers, const gr_usage *usages) {
  e->donor_ends = arena_take(&e->memory, (e->ndonors + 1u) * sizeof *e->donor_ends);
  if (!e->donor_ends) return no_memory();
  for (uint32_t i = 0; i < e->ndonors; i++) e->donor_ends[i] = GR_NONE;
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) {
    if (!gr_is_donated(e, &e->places[i])) continue;
    const uint32_t donor = e->places[i].spot.arena, last = usages[root_of(e, i)].last;
    if (e->donor_ends[donor] == GR_NONE || e->donor_ends[donor] < last) e->donor_ends[donor] = last;
    e->places[givers[donor].buffer].donor = donor;
  }
  return GRAFT_OK;
}

typedef struct planned {
  gr_usage *usages;
  gr_spot *spots;
  giver *givers;
  gr_donor *donors;
} planned;

static graft_status plan_values(graft_graph_exec *e, const planned *p) {
  const uint32_t count = e->graph->nbuffers;
  fill_usages(e, p->usages);
  e->ndonors = list_givers(e, p->givers);
  for (uint32_t i = 0; i < e->ndonors; i++) p->donors[i] = p->givers[i].donor;
  const gr_room room = {.donors = p->donors,
                        .ndonors = e->ndonors,
                        .alignment = e->device->alignment,
                        .most = e->device->max_allocation ? e->device->max_allocation : UINT64_MAX};
  graft_status status = gr_plan_memory(p->usages, count, &room, p->spots, &e->arena_bytes, &e->narenas);
  if (status) return status;
  for (uint32_t i = 0; i < count; i++) {
    if (e->places[i].memory == GR_ARENA) e->places[i].spot = p->spots[root_of(e, i)];
  }
  return note_donors(e, p->givers, p->usages);
}

static graft_status plan_arenas(graft_graph_exec *e) {
  const uint32_t count = e->graph->nbuffers;
  planned p = {.usages = calloc(count + 1u, sizeof *p.usages),
               .spots = calloc(count + 1u, sizeof *p.spots),
               .givers = calloc(count + 1u, sizeof *p.givers),
               .donors = calloc(count + 1u, sizeof *p.donors)};
  graft_status status = p.usages && p.spots && p.givers && p.donors ? plan_values(e, &p) : no_memory();
  free(p.usages);
  free(p.spots);
  free(p.givers);
  free(p.donors);
  return status;
}

static graft_status place_values(graft_graph_exec *e) {
  const bool plans = e->passes & GR_PASS_MEMORY;
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) {
    const bool large = e->graph->buffers[i].bytes >= GR_LARGE_BYTES;
    if (e->places[i].memory == GR_ARENA && (large || !plans)) e->places[i].memory = GR_OWN;
  }
  return plans ? plan_arenas(e) : GRAFT_OK;
}

/* --- the whole --- */

/* Constants of another device come over. */
static graft_status move_constants(graft_graph *graph, graft_rt_device *device) {
  for (uint32_t i = 0; i < graph->nbuffers; i++) {
    gr_buffer *b = &graph->buffers[i];
    if (!b->constant || b->on_host || b->constant->device == device) continue;
    graft_tensor *moved;
    graft_status status = graft_tensor_to(b->constant, device, GRAFT_DTYPE_NONE, &moved);
    if (status) return status;
    graft_tensor_release(b->constant);
    b->constant = moved;
  }
  graph->device = device;
  return GRAFT_OK;
}

graft_status gr_take_graph(const graft_graph *graph, graft_graph_exec *e) {
  const int64_t none = 0;
  graft_status status = graft_tensor_empty(e->device, GRAFT_U8, 1, &none, &e->claim);
  if (!status) status = gr_clone(graph, &e->graph);
  return status ? status : move_constants(e->graph, e->device);
}

/* Up to where it is known what each node needs. */
static graft_status lay_out(const graft_graph *graph, graft_graph_exec *e) {
  graft_status status = gr_take_graph(graph, e);
  if (!status) status = gr_run_passes(e->graph, e->passes);
  if (!status) status = find_places(e);
  return status ? status : fill_steps(e);
}

graft_status gr_compile_fixed(const graft_graph *graph, graft_graph_exec *e) {
  graft_status status = lay_out(graph, e);
  if (!status) status = find_plans(e, NULL, group_and_finish);
  if (!status) status = place_values(e);
  /* Constants may have been copied on any stream, and are read on any. */
  return status ? status : graft_device_synchronize(e->device);
}

graft_status gr_compile_with(const graft_graph *graph, const gr_exec_choice *choice, gr_compile_fn compile,
                             graft_graph_exec **exec) {
  graft_graph_exec *e = calloc(1, sizeof *e);
  if (!e) return no_memory();
  atomic_init(&e->refs, 1);
  pthread_mutex_init(&e->lock, NULL);
  e->device = choice->device;
  e->flags = choice->flags;
  e->passes = choice->passes;
  const graft_exec_flags before = dsp_exec_flags();
  dsp_set_exec_flags(choice->flags);
  bool grad = graft_grad_mode_set(false);
  graft_dtype dtype = dt_default();
  dt_set_default(graph->default_dtype);
  graft_status status = compile(graph, e);
  dt_set_default(dtype);
  graft_grad_mode_set(grad);
  dsp_set_exec_flags(before);
  if (status)
    graft_graph_exec_destroy(e);
  else
    *exec = e;
  return status;
}

graft_status gr_would_group(const graft_graph *graph, graft_rt_device *device, uint32_t *numbers) {
  memset(numbers, 0, graph->nnodes * sizeof *numbers);
  graft_graph_exec *laid = NULL;
  graft_status status = gr_compile_with(graph, &(gr_exec_choice){.device = device}, lay_out, &laid);
  if (!status) status = find_plans(laid, numbers, ask);
  graft_graph_exec_destroy(laid);
  return status;
}

static bool holds_constants(const graft_graph *graph) {
  bool any = false;
  for (uint32_t i = 0; i < graph->nbuffers; i++) any |= graph->buffers[i].constant != NULL;
  return any;
}

void graft_graph_exec_destroy(graft_graph_exec *e) {
  if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; e->made && i < e->made->count; i++) graft_graph_exec_destroy(e->made->items[i].exec);
  gr_made_free(e->made);
  /* Work of any stream may still read constants, and run groups. */
  bool waits = e->graph && (holds_constants(e->graph) || e->ngroups);
  if (waits && !dev_forked(e->device)) dev_wait_for_work(e->device);
  gr_destroy_groups(e);
  for (gr_frame *f = e->frames, *next; f; f = next) {
    next = f->next;
    gr_frame_free(f);
  }
  for (uint32_t n = 0; e->steps && n < e->graph->nnodes; n++) {
    dsp_plan_release(e->steps[n].plan);
    dsp_plan_release(e->steps[n].over);
    dsp_plan_release(e->steps[n].conversion);
  }
  graft_graph_destroy(e->graph);
  graft_tensor_release(e->claim);
  pthread_mutex_destroy(&e->lock);
  arena_free(&e->memory);
  free(e->cells);
  free(e->groups);
  free(e->arena_bytes);
  free(e);
}

static graft_graph_exec_info info_of(const graft_graph_exec *e) {
  graft_graph_exec_info all = {
      .nodes = e->graph->nnodes, .arenas = e->narenas - e->ndonors, .value_bytes = e->value_bytes};
  all.groups = e->ngroups;
  all.failed_groups = e->failed_groups;
  for (uint32_t i = 0; i < e->ngroups; i++) all.grouped_nodes += e->groups[i].end - e->groups[i].first;
  for (uint32_t i = e->ndonors; i < e->narenas; i++) all.arena_bytes += e->arena_bytes[i];
  for (uint32_t i = 0; i < e->ndonors; i++) {
    if (e->donor_ends[i] != GR_NONE) all.donated_bytes += e->arena_bytes[i];
  }
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) {
    if (e->graph->buffers[i].constant) all.constant_bytes += e->graph->buffers[i].bytes;
  }
  return all;
}

graft_status graft_graph_exec_query(const graft_graph_exec *e, graft_graph_exec_info *info, size_t info_bytes) {
  if (!e) return err_null(__func__, "exec");
  if (!info) return err_null(__func__, "info");
  if (!info_bytes) {
    return err_about(GRAFT_INVALID_ARGUMENT, __func__, "info_bytes is 0; expected sizeof(graft_graph_exec_info)");
  }
  graft_graph_exec_info all;
  if (e->made) pthread_mutex_lock(&e->made->lock);
  all = info_of(e->made ? gr_made_latest(e->made) : e);
  if (e->made) all.sizes_made = e->made->count;
  if (e->made) pthread_mutex_unlock(&e->made->lock);
  row_copy((char *)info, info_bytes, &all, sizeof all);
  return GRAFT_OK;
}
