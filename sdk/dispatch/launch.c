/* Runs what was captured: see capture.h. Nothing is looked up, allocated or decided here but what a slot asks for. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "dispatch/capture.h"
#include "dispatch/groups.h"
#include "tensor/copy.h"
#include "tensor/copy_host.h"
#include "tensor/recorder.h"
#include "tensor/transfer.h"

static graft_status run_slot(const dsp_launch *l, graft_rt_stream *stream, graft_exec_flags flags) {
  dsp_plan *plan = l->as.slot.plan;
  dsp_frame frame;
  graft_status status = dsp_enter_slot(plan, l->as.slot.args, flags, stream, &frame);
  if (status != GRAFT_UNIMPLEMENTED) return dev_status(plan->device, status, plan->call.schema->name);
  return err_about(GRAFT_UNIMPLEMENTED, plan->call.schema->name,
                   "the plugin does not take this call after all, and a launch has no other way; run the work once "
                   "before it is captured, so that its way is known");
}

static graft_status copy_bytes(const dsp_launch *l, graft_rt_stream *stream) {
  const dsp_bytes *to = l->as.bytes.to, *from = l->as.bytes.from;
  err_clear();
  pthread_mutex_lock(&stream->lock);
  dev_mark(stream, 0);
  graft_status status = stream->device->backend->memory.copy(stream->handle, to->buffer, to->offset, from->buffer,
                                                             from->offset, l->as.bytes.count);
  pthread_mutex_unlock(&stream->lock);
  return dev_status(stream->device, status, "copying inside the device");
}

static graft_status copy_elements(const dsp_launch *l, graft_rt_stream *stream) {
  const graft_tensor *to = &l->as.elements.to->tensor, *from = &l->as.elements.from->tensor;
  pthread_mutex_lock(&stream->lock);
  tns_copy_elements(to, tns_host_data(to), from, tns_host_data(from), l->as.elements.conj, l->as.elements.neg);
  pthread_mutex_unlock(&stream->lock);
  return GRAFT_OK;
}

static void draw(const dsp_launch *l) {
  if (l->kind == DSP_LAUNCH_SLOT && l->as.slot.philox) dsp_draw(l->as.slot.plan, l->as.slot.philox);
  if (l->kind != DSP_LAUNCH_GROUP) return;
  for (uint32_t i = 0; i < l->as.group.ndraws; i++) dsp_draw(l->as.group.drawing[i], &l->as.group.philox[i]);
}

static graft_status make(const dsp_capture *c, const dsp_launch *l, graft_rt_stream *stream, graft_exec_flags flags) {
  switch (l->kind) {
    case DSP_LAUNCH_SLOT: return run_slot(l, stream, c->flags | flags);
    case DSP_LAUNCH_GROUP: return dsp_run_group(stream, l->as.group.api, l->as.group.executable, &l->as.group.args);
    case DSP_LAUNCH_BYTES: return copy_bytes(l, stream);
    case DSP_LAUNCH_ELEMENTS: return copy_elements(l, stream);
    default:
      return mem_from_host(stream, l->as.number.to->buffer, l->as.number.to->offset, l->as.number.element,
                           l->as.number.count);
  }
}

/* Contents of storages that are held may have changed since. */
static void show_versions(const dsp_launch *l) {
  for (uint32_t i = 0; i < l->nseen; i++) {
    const graft_storage *storage = l->seen[i].storage;
    bool unseen = atomic_load_explicit(&storage->unseen, memory_order_relaxed);
    *l->seen[i].version = unseen ? 0 : atomic_load_explicit(&storage->version, memory_order_relaxed);
  }
}

static void mark_written(const dsp_launch *l) {
  for (uint32_t i = 0; i < l->nwritten; i++)
    atomic_fetch_add_explicit(&l->written[i]->version, 1, memory_order_relaxed);
}

static graft_status failed(const dsp_capture *c, uint32_t launch, graft_status status) {
  char subject[64];
  snprintf(subject, sizeof subject, "launch %u of %u of a capture", launch + 1, c->nlaunches);
  return err_attribute(status, subject);
}

/* --- recorded by the plugin: extension "graft.capture" (graft/abi/extension.h). It is asked when they are launched for
 * the first time, from the calls that the capture holds, so one that refuses costs nothing but the fast way. --- */

static graft_status find_api(dsp_capture *c) {
  const void *table = NULL;
  void *self;
  graft_rt_device *device = c->base.base.device;
  graft_status status = graft_device_extension(device, GRAFT_EXTENSION_CAPTURE, GRAFT_CAPTURE_VERSION, &table, &self);
  if (status) return status;
  const graft_capture_api *api = table;
  bool whole =
      api && GRAFT_HAS(api, graft_capture_api, destroy) && api->begin && api->end && api->launch && api->destroy;
  if (!whole) {
    return err_about(GRAFT_INTERNAL, device->text, "the plugin's table \"%s\" is not whole", GRAFT_EXTENSION_CAPTURE);
  }
  c->record.api = api;
  return GRAFT_OK;
}

/* --- what can be recorded --- */

static bool is_pattern(uint64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

static bool slot_records(const dsp_launch *l) {
  dsp_plan *plan = l->as.slot.plan;
  graft_op_caps caps;
  op_slot slot;
  if (!dsp_caps(plan->device, plan->slot_schema, &slot, &caps)) return false;
  if (!(caps.exec_flags_known & GRAFT_EXEC_CAPTURING)) return false;
  return !l->as.slot.philox || caps.flags & GRAFT_CAP_PHILOX_STATE;
}

static bool records(const dsp_launch *l) {
  switch (l->kind) {
    case DSP_LAUNCH_SLOT: return slot_records(l);
    case DSP_LAUNCH_GROUP: return !l->as.group.ndraws; /* no `state` reaches them */
    case DSP_LAUNCH_BYTES: return true;
    case DSP_LAUNCH_NUMBER: return is_pattern(l->as.number.count);
    default: return false; /* the host's own work */
  }
}

/* --- recording --- */

static _Thread_local dsp_record *under_way; /* whose workspaces are kept */

/* Room for those of one more launch: without it, what a plugin was given could be neither kept nor freed. */
static graft_status make_room(dsp_record *r) {
  if (r->workspace_room - r->nworkspaces >= DSP_MAX_WORKSPACES) return GRAFT_OK;
  const uint32_t room = r->workspace_room * 2 + DSP_MAX_WORKSPACES;
  mem_block **grown = realloc(r->workspaces, room * sizeof *grown);
  if (!grown) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the workspaces of a record");
  r->workspaces = grown;
  r->workspace_room = room;
  return GRAFT_OK;
}

static void keep_workspace(mem_block *block) {
  under_way->workspaces[under_way->nworkspaces++] = block;
}

/* Draws count from where the launch will stand. */
static void place_draws(dsp_record *r, const dsp_launch *l, const graft_tensor_desc *state) {
  graft_philox *philox = l->kind == DSP_LAUNCH_SLOT ? l->as.slot.philox : NULL;
  if (!philox) return;
  philox->seed = r->seed;
  philox->offset = r->draws;
  philox->state = state;
  r->draws += (l->as.slot.plan->call.draws + 3) / 4 * 4;
}

static graft_status record_number(const dsp_launch *l, graft_rt_stream *stream) {
  const dsp_bytes *to = l->as.number.to;
  pthread_mutex_lock(&stream->lock);
  graft_status status = stream->device->backend->memory.fill(stream->handle, to->buffer, to->offset, l->as.number.count,
                                                             l->as.number.element, (uint32_t)l->as.number.count);
  pthread_mutex_unlock(&stream->lock);
  return status;
}

/* Contents change between launches: plugins keep nothing of them. */
static void hide_versions(const dsp_launch *l) {
  for (uint32_t i = 0; i < l->nseen; i++) *l->seen[i].version = 0;
}

static graft_status record_all(dsp_capture *c, graft_rt_stream *stream, const graft_tensor_desc *state) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < c->nlaunches && !status; i++) {
    const dsp_launch *l = &c->launches[i];
    status = make_room(&c->record);
    if (status) break;
    hide_versions(l);
    place_draws(&c->record, l, state);
    status = l->kind == DSP_LAUNCH_NUMBER ? record_number(l, stream) : make(c, l, stream, GRAFT_EXEC_CAPTURING);
  }
  return status;
}

static graft_status record_on(dsp_capture *c, graft_rt_stream *stream) {
  dsp_record *r = &c->record;
  graft_tensor_desc state = {0};
  const int64_t one = 1;
  if (r->state) dsp_fill_desc(&state, r->state, GRAFT_U64, 1, &one, &one);
  graft_status status = r->api->begin(stream->handle);
  if (status) return status;
  graft_exec_flags flags = dsp_exec_flags();
  dsp_set_exec_flags(c->flags | GRAFT_EXEC_CAPTURING); /* groups take the thread's */
  under_way = r;
  dsp_keep_workspace = keep_workspace;
  status = record_all(c, stream, &state);
  dsp_keep_workspace = NULL;
  dsp_set_exec_flags(flags);
  graft_status ended = r->api->end(stream->handle, status ? NULL : &r->captured);
  return status ? status : ended;
}

static bool draws(const dsp_capture *c) {
  for (uint32_t i = 0; i < c->nlaunches; i++) {
    if (c->launches[i].kind == DSP_LAUNCH_SLOT && c->launches[i].as.slot.philox) return true;
  }
  return false;
}

/* On a stream of its own, which nobody else gives anything to. */
static graft_status record(dsp_capture *c) {
  dsp_record *r = &c->record;
  graft_rt_device *device = c->base.base.device;
  graft_status status = find_api(c);
  for (uint32_t i = 0; i < c->nlaunches && !status; i++) {
    if (!records(&c->launches[i])) status = GRAFT_UNIMPLEMENTED;
  }
  const int64_t one = 1;
  if (!status && draws(c)) status = graft_tensor_empty(device, GRAFT_U64, 1, &one, &r->state);
  graft_rt_stream *stream = NULL;
  if (!status) status = graft_stream_create(device, 0, 0, &stream);
  if (!status) status = record_on(c, stream);
  graft_stream_destroy(stream);
  return status;
}

static void record_drop(dsp_capture *c) {
  dsp_record *r = &c->record;
  if (r->captured) r->api->destroy(r->captured);
  for (uint32_t i = 0; i < r->nworkspaces; i++) mem_free(r->workspaces[i]);
  free(r->workspaces);
  graft_tensor_release(r->state);
  *r = (dsp_record){0};
}

/* Moves the generator on by one launch; false where it has another seed than what was recorded. */
static bool take_draws(dsp_capture *c) {
  dsp_record *r = &c->record;
  graft_generator *generator = &c->base.base.device->generator;
  pthread_mutex_lock(&generator->lock);
  const bool good = !r->draws || r->seed == generator->seed;
  r->offset = generator->offset;
  if (good) generator->offset += r->draws;
  pthread_mutex_unlock(&generator->lock);
  return good;
}

static void try_to_record(dsp_capture *c) {
  dsp_record *r = &c->record;
  graft_generator *generator = &c->base.base.device->generator;
  tns_recorder *recording = tns_recording;
  tns_recording = NULL; /* the state is no value of a graph */
  pthread_mutex_lock(&generator->lock);
  r->seed = generator->seed;
  pthread_mutex_unlock(&generator->lock);
  c->drop_record = record_drop;
  r->is_there = record(c) == GRAFT_OK && r->captured;
  tns_recording = recording;
  if (!r->is_there) record_drop(c);
  r->tried = true;
  err_clear();
}

static bool record_ready(dsp_capture *c) {
  dsp_record *r = &c->record;
  if (!r->tried) try_to_record(c);
  while (r->is_there && !take_draws(c)) {
    dev_wait_for_work(c->base.base.device);
    record_drop(c);
    try_to_record(c);
  }
  return r->is_there;
}

static graft_status record_launch(dsp_capture *c, graft_rt_stream *stream) {
  dsp_record *r = &c->record;
  graft_rt_device *device = c->base.base.device;
  if (r->draws) {
    const graft_storage *storage = r->state->storage;
    graft_status status = mem_from_host(stream, storage->buffer, storage->offset, &r->offset, sizeof r->offset);
    if (status) return status;
  }
  err_clear();
  pthread_mutex_lock(&stream->lock);
  graft_status status = r->api->launch(r->captured, stream->handle);
  pthread_mutex_unlock(&stream->lock);
  return dev_status(device, status, "launching what was captured");
}

/* As the plugin recorded them. */
static graft_status launch_record(dsp_capture *c, graft_rt_stream *stream) {
  graft_status status = record_launch(c, stream);
  for (uint32_t i = 0; i < c->nlaunches && !status; i++) mark_written(&c->launches[i]);
  return status;
}

static graft_status launch_each(dsp_capture *c, graft_rt_stream *stream) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < c->nlaunches && !status; i++) {
    const dsp_launch *l = &c->launches[i];
    show_versions(l);
    draw(l);
    status = make(c, l, stream, 0);
    if (status)
      status = failed(c, i, status);
    else
      mark_written(l);
  }
  return status;
}

/* What goes in is copied before a launch that can't name it, what comes out behind it. */
static graft_status copy_stand_ins(const graft_graph_stand_in *items, uint32_t count, bool results) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < count && !status; i++) {
    if (items[i].is_result != results) continue;
    graft_tensor *captured = items[i].captured, *given = items[i].given;
    status = results ? tns_copy(given, captured) : tns_copy(captured, given);
  }
  return status;
}

graft_status dsp_capture_launch(dsp_capture *c, const graft_graph_stand_in *items, uint32_t count) {
  graft_rt_stream *stream = graft_stream_current(c->base.base.device);
  pthread_mutex_lock(&c->lock);
  const bool recorded = record_ready(c), names = !recorded && dsp_can_stand_in(c, items, count);
  graft_status status = GRAFT_OK;
  if (names)
    dsp_stand_in(c, items, count);
  else
    status = copy_stand_ins(items, count, false);
  if (!status) status = recorded ? launch_record(c, stream) : launch_each(c, stream);
  if (names)
    dsp_stand_back(c, items, count);
  else if (!status)
    status = copy_stand_ins(items, count, true);
  pthread_mutex_unlock(&c->lock);
  return status;
}
