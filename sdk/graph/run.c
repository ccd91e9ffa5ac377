/* A run: inputs are checked and bound, memory is taken, and each node's plan is run as graft_call would. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/capture.h"
#include "graph/exec.h"
#include "tensor/copy.h"

typedef struct running {
  graft_graph_exec *e;
  graft_tensor *const *inputs;
  graft_tensor **handed; /* the same where inputs are handed over; NULL: they are not */
  const uint8_t *let_go; /* which ones; NULL: all */
  gr_frame *frame;
  bool unaligned; /* an input lies elsewhere than plans were found for */
} running;

/* --- inputs --- */

static graft_status mismatch(const graft_graph_exec *e, const gr_port *port, const graft_tensor *t) {
  graft_rt_device *device = gr_input_device(e, port);
  char is[160], expected[160], strides[160];
  tns_format_ints(expected, sizeof expected, (uint64_t)port->view.ndim, port->view.sizes);
  tns_format_ints(strides, sizeof strides, (uint64_t)port->view.ndim, port->view.strides);
  const char *bits = port->view.flags & TNS_CONJ ? ", conjugate" : port->view.flags ? ", negative" : "";
  const char *own = t->flags & TNS_CONJ ? ", conjugate" : t->flags & TNS_NEG ? ", negative" : "";
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "input %s is %s%s on %s; the graph was compiled for %s%s with strides %s%s on %s", port->name,
                 tns_describe(t, is, sizeof is), own, graft_device_text(t->device), graft_dtype_name(port->view.dtype),
                 expected, strides, bits, graft_device_text(device));
}

static graft_status check_input(const running *r, uint32_t i) {
  const graft_graph *graph = r->e->graph;
  const gr_port *port = &graph->inputs[i];
  graft_tensor *t = r->inputs[i];
  if (!t) return err_set(GRAFT_INVALID_ARGUMENT, "input %s is NULL", port->name);
  if (!gr_input_fits(r->e, port, t, port->view.sizes, port->view.strides)) return mismatch(r->e, port, t);
  graft_status status = tns_check_memory(t, port->name);
  if (status) return status;
  if (!graft_grad_mode() || !graft_tensor_requires_grad(t)) return GRAFT_OK;
  return err_set(
      GRAFT_INVALID_ARGUMENT,
      "input %s requires grad and grad mode is on, but a run has no history; record the gradient too, and run "
      "with grad mode off",
      port->name);
}

typedef struct span {
  uint64_t begin, end;
} span;

static span span_of(const graft_tensor *t) {
  const uint64_t begin = (uint64_t)t->offset * dt_bytes(t->dtype);
  if (!t->numel) return (span){begin, begin};
  return (span){begin, (uint64_t)tns_extent_bytes(t->dtype, t->ndim, t->sizes, t->strides, t->offset)};
}

/* A value that is written through one input is read through another one at times that passes may change. */
static graft_status check_shared(const running *r, uint32_t written) {
  const graft_graph *graph = r->e->graph;
  const graft_tensor *t = r->inputs[written];
  const span own = span_of(t);
  for (uint32_t i = 0; i < graph->ninputs; i++) {
    const graft_tensor *other = r->inputs[i];
    if (i == written || other->storage != t->storage) continue;
    const span its = span_of(other);
    if (its.end <= own.begin || own.end <= its.begin) continue;
    return err_set(
        GRAFT_INVALID_ARGUMENT,
        "inputs %s and %s share memory, and the graph writes to %s; make one an input and view it in the graph",
        graph->inputs[written].name, graph->inputs[i].name, graph->inputs[written].name);
  }
  return GRAFT_OK;
}

static graft_status check_inputs(const running *r) {
  const graft_graph *graph = r->e->graph;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < graph->ninputs && !status; i++) status = check_input(r, i);
  for (uint32_t i = 0; i < graph->ninputs && !status; i++) {
    if (r->e->places[graph->inputs[i].view.buffer].written) status = check_shared(r, i);
  }
  return status;
}

/* --- memory --- */

static bool is_handed(const running *r, uint32_t input) {
  return r->handed && (!r->let_go || r->let_go[input]);
}

static graft_status bind_input(running *r, uint32_t i) {
  const gr_port *port = &r->e->graph->inputs[i];
  graft_tensor *t = r->inputs[i];
  graft_storage *storage = t->storage;
  const uint64_t base = (uint64_t)t->offset * dt_bytes(t->dtype);
  if ((storage->offset + base) % r->e->device->alignment) r->unaligned = true;
  if (is_handed(r, i)) {
    storage = tns_release_to_storage(t);
    r->handed[i] = NULL;
    r->frame->handed[port->view.buffer] = true;
  }
  graft_status status = gr_frame_bind(r->e, r->frame, port->view.buffer, storage, base);
  return status ? err_attribute(status, port->name) : GRAFT_OK;
}

static graft_status own_memory(running *r, uint32_t buffer) {
  const gr_buffer *b = &r->e->graph->buffers[buffer];
  graft_storage *storage;
  graft_status status = tns_storage_new(r->e->device, b->bytes, &storage);
  if (status) return status;
  status = gr_frame_bind(r->e, r->frame, buffer, storage, 0);
  if (status || !b->constant || !b->bytes) return status;
  /* An output that is a constant: the values are the graph's, the memory the caller's. */
  const int64_t size = (int64_t)b->bytes, one = 1;
  graft_tensor *to;
  status = tns_new(storage, r->e->device, GRAFT_U8, 1, &size, &one, 0, &to);
  if (status) return status;
  status = tns_copy(to, b->constant);
  graft_tensor_release(to);
  return status;
}

static graft_status new_arena(running *r, uint32_t arena) {
  graft_status status = tns_storage_new(r->e->device, r->e->arena_bytes[arena], &r->frame->arenas[arena]);
  if (!status) tns_storage_expose(r->frame->arenas[arena]); /* many values in one storage: plugins cache none of them */
  return status;
}

static graft_status bind_arenas(running *r) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = r->e->ndonors; i < r->e->narenas && !status; i++) status = new_arena(r, i);
  return status;
}

static graft_status bind_value(running *r, uint32_t buffer) {
  const gr_spot *spot = &r->e->places[buffer].spot;
  return gr_frame_bind(r->e, r->frame, buffer, r->frame->arenas[spot->arena], spot->offset);
}

/* Where the input's memory can't be had there is other one. */
static graft_status bind_donated(running *r, uint32_t buffer) {
  const uint32_t donor = r->e->places[buffer].spot.arena;
  graft_status status = r->frame->arenas[donor] ? GRAFT_OK : new_arena(r, donor);
  return status ? status : bind_value(r, buffer);
}

static graft_status bind_buffer(running *r, uint32_t buffer) {
  const graft_graph_exec *e = r->e;
  const gr_place *place = &e->places[buffer];
  graft_tensor *constant = e->graph->buffers[buffer].constant;
  switch (place->memory) {
    case GR_BOUND: return bind_input(r, place->input);
    case GR_KEPT: return gr_frame_bind(e, r->frame, buffer, constant->storage, (uint64_t)constant->offset);
    case GR_ARENA:
      if (place->spot.arena == GR_NONE) return own_memory(r, buffer); /* of no bytes */
      return gr_is_donated(e, place) ? GRAFT_OK : bind_value(r, buffer);
    case GR_OWN: return place->first == GR_NONE || constant ? own_memory(r, buffer) : GRAFT_OK;
    default: return GRAFT_OK;
  }
}

static graft_status bind_all(running *r) {
  graft_status status = bind_arenas(r);
  for (uint32_t i = 0; i < r->e->graph->nbuffers && !status; i++) status = bind_buffer(r, i);
  return status;
}

static bool owns(const running *r, uint32_t buffer) {
  const gr_place *place = &r->e->places[buffer];
  if (place->memory == GR_ARENA) return place->spot.arena == GR_NONE;
  if (place->memory == GR_BOUND) return r->frame->handed[buffer];
  return place->memory == GR_OWN || place->memory == GR_LOOSE || place->memory == GR_INSIDE;
}

static void drop(running *r, uint32_t buffer) {
  if (!owns(r, buffer)) return;
  tns_storage_release(r->frame->storages[buffer]);
  r->frame->storages[buffer] = NULL;
  r->frame->handed[buffer] = false;
}

static void drop_arena(running *r, uint32_t arena) {
  tns_storage_release(r->frame->arenas[arena]);
  r->frame->arenas[arena] = NULL;
}

static void drop_all(running *r) {
  for (uint32_t i = 0; i < r->e->graph->nbuffers; i++) {
    drop(r, i);
    r->frame->storages[i] = NULL;
  }
  for (uint32_t i = 0; i < r->e->narenas; i++) drop_arena(r, i);
}

/* Whether nobody else can see the memory of an input: it was handed over, is in no other hands and of this stream
 * alone. What a capture reads it will read again. */
static bool is_its_own(const running *r, uint32_t buffer) {
  const graft_storage *storage = r->frame->storages[buffer];
  if (!r->frame->handed[buffer] || !storage->block || dsp_capture_of(r->e->device)) return false;
  if (atomic_load_explicit(&storage->refs, memory_order_acquire) != 1) return false;
  return mem_is_of_stream(storage->block, graft_stream_current(r->e->device));
}

/* The memory of an input that is read no more becomes the run's. */
static void take_over(running *r, uint32_t buffer) {
  graft_storage *storage = r->frame->storages[buffer];
  const uint32_t donor = r->e->places[buffer].donor;
  if (!is_its_own(r, buffer) || storage->bytes < r->e->arena_bytes[donor]) return;
  tns_storage_expose(storage);
  r->frame->arenas[donor] = storage;
  r->frame->storages[buffer] = NULL;
  r->frame->handed[buffer] = false;
}

/* Whether a large value can be had over the one that ends where it begins. An output is all of its memory. */
static bool may_lie_over(const running *r, uint32_t buffer) {
  const gr_place *place = &r->e->places[buffer];
  if (place->same_as == GR_NONE || place->memory == GR_ARENA) return false;
  const graft_storage *storage = r->frame->storages[place->same_as];
  if (!storage || r->frame->bases[place->same_as]) return false;
  if (place->is_output && storage->bytes != r->e->graph->buffers[buffer].bytes) return false;
  return r->e->places[place->same_as].memory != GR_BOUND || is_its_own(r, place->same_as);
}

static graft_status lie_over(running *r, uint32_t buffer) {
  graft_storage *storage = r->frame->storages[r->e->places[buffer].same_as];
  tns_storage_retain(storage);
  return gr_frame_bind(r->e, r->frame, buffer, storage, 0);
}

/* What was handed over and nobody reads. */
static void drop_unread(running *r) {
  for (uint32_t i = 0; r->handed && i < r->e->graph->ninputs; i++) {
    const uint32_t buffer = r->e->graph->inputs[i].view.buffer;
    if (r->e->places[buffer].first == GR_NONE && !r->e->places[buffer].is_output) drop(r, buffer);
  }
}

/* --- nodes --- */

/* Memory of its own for what a node uses first. */
static graft_status open_buffer(running *r, const gr_view *view) {
  if (view->buffer == GR_NONE || r->frame->storages[view->buffer]) return GRAFT_OK;
  const gr_memory memory = r->e->places[view->buffer].memory;
  if (memory == GR_ARENA) return bind_donated(r, view->buffer);
  if (may_lie_over(r, view->buffer)) return lie_over(r, view->buffer);
  return memory == GR_OWN || memory == GR_INSIDE ? own_memory(r, view->buffer) : GRAFT_OK;
}

static graft_status open_buffers(running *r, const gr_node *node) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->noperands && !status; i++) status = open_buffer(r, &node->operands[i].view);
  for (uint32_t i = 0; i < node->nresults && !status; i++) status = open_buffer(r, &node->results[i].view);
  return status;
}

/* What nobody uses behind this moment gives its memory back. */
static void close_buffer(running *r, const gr_view *view, uint32_t moment) {
  if (view->buffer == GR_NONE) return;
  const gr_place *place = &r->e->places[view->buffer];
  if (place->last != moment || place->is_output) return;
  if (place->donor != GR_NONE) take_over(r, view->buffer);
  if (gr_is_donated(r->e, place) && r->e->donor_ends[place->spot.arena] == moment) drop_arena(r, place->spot.arena);
  drop(r, view->buffer);
}

static void close_buffers(running *r, const gr_node *node, uint32_t moment) {
  for (uint32_t i = 0; i < node->noperands; i++) close_buffer(r, &node->operands[i].view, moment);
  for (uint32_t i = 0; i < node->nresults; i++) close_buffer(r, &node->results[i].view, moment);
}

/* After node n; a group's moment is over with its last node. */
static void close_moment(running *r, uint32_t n) {
  const graft_graph_exec *e = r->e;
  const uint32_t group = e->steps[n].group, first = gr_moment(e, n);
  if (group != GR_NONE && n + 1 < e->groups[group].end) return;
  for (uint32_t i = first; i <= n; i++) close_buffers(r, e->steps[i].node, first);
}

static bool is_given(const gr_step *step, uint32_t i) {
  return step->results[i] != GR_NONE && (!step->gives || step->node->results[i].given);
}

/* The storages in which a node gave its new results. */
static graft_status take_results(running *r, const gr_step *step, graft_tensor **outs) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < step->node->nresults; i++) {
    if (is_given(step, i) || !outs[i]) continue;
    const uint64_t base = (uint64_t)outs[i]->offset * dt_bytes(outs[i]->dtype);
    graft_storage *storage = tns_release_to_storage(outs[i]);
    outs[i] = NULL;
    if (status || step->results[i] == GR_NONE) {
      tns_storage_release(storage);
      continue;
    }
    status = gr_frame_bind(r->e, r->frame, step->node->results[i].view.buffer, storage, base);
  }
  return status;
}

static graft_status run_copy(running *r, const gr_step *step, graft_tensor **outs) {
  graft_tensor *from = NULL;
  for (uint32_t i = 0; i < step->node->noperands; i++) { /* the last one is the source */
    if (step->operands[i] != GR_NONE) from = &r->frame->cells[step->operands[i]];
  }
  graft_status status = tns_copy(outs[0], from);
  if (!status && outs[0] != from) tns_bump(outs[0]);
  return status;
}

static graft_status run_unaligned(const gr_step *step, const graft_value *args, graft_tensor **outs) {
  const op_schema *schema = step->node->schema;
  dsp_plan *plan;
  graft_status status =
      dsp_find_plan(schema, op_def_of(schema->id), args, step->node->nargs, outs, step->node->nresults, &plan);
  if (status) return status;
  graft_value full[OP_MAX_ARGS];
  dsp_full_args(plan, args, step->node->nargs, full);
  dsp_route taken;
  status = dsp_run_plan(plan, full, outs, &taken);
  dsp_plan_release(plan);
  return status;
}

/* The plan that holds where its result lies. */
static dsp_plan *plan_of(const running *r, const gr_step *step) {
  if (!step->over) return step->plan;
  const uint32_t to = step->node->results[0].view.buffer, from = r->e->places[to].same_as;
  const bool is_over =
      r->frame->storages[to] == r->frame->storages[from] && r->frame->bases[to] == r->frame->bases[from];
  return is_over ? step->over : step->plan;
}

static graft_status run_step(running *r, uint32_t n) {
  const gr_step *step = &r->e->steps[n];
  graft_tensor **outs = r->frame->results + step->first_result;
  const graft_value *args = r->frame->args + step->first_arg;
  graft_status status = open_buffers(r, step->node);
  if (status) return status;
  for (uint32_t i = 0; i < step->node->nresults; i++)
    outs[i] = is_given(step, i) ? &r->frame->cells[step->results[i]] : NULL;
  dsp_route taken;
  if (!step->plan)
    status = run_copy(r, step, outs);
  else
    status = r->unaligned ? run_unaligned(step, args, outs) : dsp_run_plan(plan_of(r, step), args, outs, &taken);
  if (!status) status = take_results(r, step, outs);
  if (!status) close_moment(r, n);
  return status;
}

/* --- groups --- */

static void fill_desc(const running *r, const gr_described *from, graft_tensor_desc *to) {
  const uint32_t buffer = from->view.buffer;
  const graft_storage *storage = r->frame->storages[buffer];
  *to = from->desc;
  to->storage_id = storage->id;
  if (!atomic_load_explicit(&storage->unseen, memory_order_relaxed)) {
    to->storage_version = atomic_load_explicit(&storage->version, memory_order_relaxed);
  }
  to->dl.byte_offset += r->frame->bases[buffer];
  if (to->flags & GRAFT_TENSOR_HOST_VALUE) {
    to->dl.data = (graft_buffer *)(void *)((char *)storage->host_pointer + to->dl.byte_offset);
    to->dl.byte_offset = 0;
    return;
  }
  to->dl.data = storage->buffer;
  to->dl.byte_offset += storage->offset;
}

static graft_status draw_and_run_group(running *r, const gr_group *group, const graft_tensor_desc **items) {
  graft_philox *philox = r->frame->philox + group->first_draw;
  for (uint32_t i = 0; i < group->ndraws; i++) dsp_draw(group->drawing[i], &philox[i]);
  const graft_graph_run_args args = {sizeof args, items, items + group->ninputs,
                                     r->frame->philox_items + group->first_draw};
  return dsp_run_group(graft_stream_current(r->e->device), r->e->api, group->executable, &args);
}

/* To a capture, or to the plugin. */
static graft_status give_group(running *r, const gr_group *group, const graft_tensor_desc **items) {
  const graft_graph_exec *e = r->e;
  dsp_capture *capture = dsp_capture_of(e->device);
  if (!capture) return draw_and_run_group(r, group, items);
  const uint32_t count = group->ninputs + group->noutputs;
  graft_storage **storages = dsp_capture_take(capture, count * sizeof(graft_storage *));
  if (!storages) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to capture a group");
  for (uint32_t i = 0; i < count; i++) storages[i] = r->frame->storages[gr_described_of(group->descs[i])->view.buffer];
  const dsp_group_call call = {.api = e->api,
                               .executable = group->executable,
                               .ninputs = group->ninputs,
                               .noutputs = group->noutputs,
                               .descs = items,
                               .storages = storages,
                               .drawing = group->drawing,
                               .ndraws = group->ndraws};
  return dsp_capture_group(capture, &call);
}

static graft_status run_group(running *r, const gr_group *group) {
  const graft_graph_exec *e = r->e;
  graft_tensor_desc *descs = r->frame->descs + group->first_desc;
  const graft_tensor_desc **items = r->frame->desc_items + group->first_desc;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < group->ninputs + group->noutputs && !status; i++) {
    const gr_described *described = gr_described_of(group->descs[i]);
    status = open_buffer(r, &described->view);
    if (!status) fill_desc(r, described, &descs[i]);
  }
  if (!status) status = give_group(r, group, items);
  for (uint32_t i = 0; i < group->noutputs && !status; i++) {
    const gr_view *view = &gr_described_of(group->descs[group->ninputs + i])->view;
    tns_bump(&r->frame->cells[e->places[view->buffer].first_cell]);
  }
  if (!status) close_moment(r, group->end - 1);
  return status;
}

/* A node, or the group that begins with it; *next receives what runs then. */
static graft_status run_at(running *r, uint32_t n, uint32_t *next) {
  const uint32_t number = r->e->steps[n].group;
  const gr_group *group = number == GR_NONE ? NULL : &r->e->groups[number];
  if (!group || (r->unaligned && !group->unaligned)) {
    *next = n + 1;
    return gr_node_error(run_step(r, n), n);
  }
  *next = group->end;
  return gr_group_error(run_group(r, group), n, group->end - 1);
}

/* --- outputs --- */

static graft_status make_output(running *r, const gr_port *port, graft_tensor **output) {
  const gr_view *view = &port->view;
  const uint32_t buffer = view->buffer;
  graft_status status = GRAFT_OK;
  if (!r->frame->storages[buffer]) status = own_memory(r, buffer); /* no node writes it */
  if (status) return status;
  const int64_t offset = (int64_t)(r->frame->bases[buffer] / dt_bytes(view->dtype)) + view->offset;
  graft_storage *storage = r->frame->storages[buffer];
  status = tns_new(storage, storage->device, view->dtype, view->ndim, view->sizes, view->strides, offset, output);
  if (!status) (*output)->flags |= view->flags;
  return status;
}

static graft_status make_outputs(running *r, graft_tensor **outputs) {
  const graft_graph *graph = r->e->graph;
  graft_tensor **made = calloc(graph->noutputs + 1u, sizeof *made);
  graft_status status = made ? GRAFT_OK : err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the outputs of a graph");
  uint32_t count = 0;
  for (; count < graph->noutputs && !status; count++) status = make_output(r, &graph->outputs[count], &made[count]);
  for (uint32_t i = 0; i < count; i++) {
    if (status)
      graft_tensor_release(made[i]);
    else
      outputs[i] = made[i];
  }
  free(made);
  return status;
}

/* --- the whole --- */

static void let_go(void *exec) {
  graft_graph_exec_destroy(exec);
}

/* A capture keeps what its launches run: plans and programs. */
static graft_status keep_captured(graft_graph_exec *e) {
  dsp_capture *capture = dsp_capture_of(e->device);
  if (!capture) return GRAFT_OK;
  atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
  return dsp_capture_keep(capture, e, let_go);
}

static graft_status run(running *r, graft_tensor **outputs) {
  graft_exec_flags flags = dsp_exec_flags();
  dsp_set_exec_flags(r->e->flags);
  graft_dtype dtype = dt_default();
  dt_set_default(r->e->graph->default_dtype);
  bool grad = graft_grad_mode_set(false);
  graft_status status = bind_all(r);
  if (!status) drop_unread(r);
  for (uint32_t n = 0; n < r->e->graph->nnodes && !status;) status = run_at(r, n, &n);
  if (!status) status = make_outputs(r, outputs);
  graft_grad_mode_set(grad);
  dt_set_default(dtype);
  dsp_set_exec_flags(flags);
  return status;
}

static graft_status take_frame(graft_graph_exec *e, gr_frame **frame) {
  pthread_mutex_lock(&e->lock);
  *frame = e->frames;
  if (*frame) e->frames = (*frame)->next;
  pthread_mutex_unlock(&e->lock);
  return *frame ? GRAFT_OK : gr_frame_new(e, frame);
}

static void give_frame_back(graft_graph_exec *e, gr_frame *frame) {
  pthread_mutex_lock(&e->lock);
  frame->next = e->frames;
  e->frames = frame;
  pthread_mutex_unlock(&e->lock);
}

static graft_status check_call(const char *function, const graft_graph_exec *e, uint32_t ninputs, uint32_t noutputs) {
  if (dev_forked(e->device)) return dev_forked_error(e->device);
  if (tns_recording) {
    return err_about(GRAFT_INVALID_ARGUMENT, function,
                     "this thread records a graph; its calls can be recorded, a compiled graph can't");
  }
  if (ninputs != e->graph->ninputs) {
    return err_about(GRAFT_INVALID_ARGUMENT, function, "the graph has %u inputs, %u were given", e->graph->ninputs,
                     ninputs);
  }
  if (noutputs == e->graph->noutputs) return GRAFT_OK;
  return err_about(GRAFT_INVALID_ARGUMENT, function, "the graph has %u outputs, room for %u was given",
                   e->graph->noutputs, noutputs);
}

static graft_status run_fixed(running *r, graft_tensor **outputs) {
  gr_failing = GRAFT_GRAPH_INPUTS_FAILED;
  graft_status status = check_inputs(r);
  if (status) return status;
  gr_failing = GRAFT_GRAPH_CALLS_FAILED;
  status = keep_captured(r->e);
  if (!status) status = take_frame(r->e, &r->frame);
  if (status) return status;
  status = run(r, outputs);
  drop_all(r);
  give_frame_back(r->e, r->frame);
  return status;
}

/* Where sizes are open, what was made for those of the inputs runs. */
static graft_status run_checked(running *r, graft_tensor **outputs) {
  if (!r->e->made) return run_fixed(r, outputs);
  graft_graph_exec *made;
  graft_status status = gr_made_for_inputs(r->e, r->inputs, &made);
  if (status) return status;
  r->e = made;
  status = run_fixed(r, outputs);
  graft_graph_exec_destroy(made);
  return status;
}

static graft_status run_at_all(running *r, graft_tensor **outputs) {
  graft_status status = run_checked(r, outputs);
  if (!status) gr_failing = GRAFT_GRAPH_NO_FAILURE;
  return status;
}

graft_status graft_graph_run(graft_graph_exec *e, graft_tensor *const *inputs, uint32_t ninputs, graft_tensor **outputs,
                             uint32_t noutputs) {
  gr_failing = GRAFT_GRAPH_INPUTS_FAILED;
  if (!e) return err_null(__func__, "exec");
  if (ninputs && !inputs) return err_null(__func__, "inputs");
  if (noutputs && !outputs) return err_null(__func__, "outputs");
  graft_status status = check_call(__func__, e, ninputs, noutputs);
  running r = {.e = e, .inputs = inputs};
  return status ? status : run_at_all(&r, outputs);
}

graft_status graft_graph_run_letting_go(graft_graph_exec *e, graft_tensor **inputs, uint32_t ninputs,
                                        const uint8_t *let_go, graft_tensor **outputs, uint32_t noutputs) {
  gr_failing = GRAFT_GRAPH_INPUTS_FAILED;
  if (ninputs && !inputs) return err_null(__func__, "inputs");
  graft_status status = GRAFT_OK;
  if (!e) status = err_null(__func__, "exec");
  if (!status && noutputs && !outputs) status = err_null(__func__, "outputs");
  if (!status) status = check_call(__func__, e, ninputs, noutputs);
  running r = {.e = e, .inputs = inputs, .handed = inputs, .let_go = let_go};
  if (!status) status = run_at_all(&r, outputs);
  for (uint32_t i = 0; i < ninputs; i++) {
    if (!is_handed(&r, i)) continue;
    graft_tensor_release(inputs[i]);
    inputs[i] = NULL;
  }
  return status;
}
