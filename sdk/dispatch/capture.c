/* Makes launches of what a stream is given; see capture.h. */
#include "dispatch/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a launch that is captured");
}

/* --- refusals --- */

/* Keeps the error that was just set: it ends the capture. */
static graft_status fail(dsp_capture *c, graft_status status) {
  pthread_mutex_lock(&c->lock);
  if (!c->failed) snprintf(c->failure, sizeof c->failure, "%s", graft_last_error());
  c->failed = true;
  pthread_mutex_unlock(&c->lock);
  return status;
}

graft_status dsp_capture_refuse(dsp_capture *c, const char *op, const char *why) {
  return fail(c, err_about(GRAFT_INVALID_ARGUMENT, op, "%s, which can't be captured; the capture has ended", why));
}

static graft_status refuse(dev_capture *self, const char *what) {
  return fail((dsp_capture *)(void *)self,
              err_set(GRAFT_INVALID_ARGUMENT,
                      "%s can't be captured: a launch waits for nobody and reads no new values; do it before the "
                      "capture or after a launch, through tensors that the capture uses; the capture has ended",
                      what));
}

static graft_status check_failed(dsp_capture *c) {
  pthread_mutex_lock(&c->lock);
  bool failed = c->failed;
  pthread_mutex_unlock(&c->lock);
  return failed ? err_set(GRAFT_INVALID_ARGUMENT, "the capture has ended: %s", c->failure) : GRAFT_OK;
}

graft_status dsp_capture_admits(dsp_capture *c, const dsp_plan *plan) {
  const op_schema *schema = plan->call.schema;
  graft_status status = check_failed(c);
  if (status) return status;
  if (plan->call.dynamic || schema->flags & OPF_DYNAMIC)
    return dsp_capture_refuse(c, schema->name, "the size of its result depends on data");
  if (plan->checks_indices)
    return dsp_capture_refuse(c, schema->name, "the host reads its indices to check them before each call");
  return GRAFT_OK;
}

/* --- what launches are made of --- */

void *dsp_capture_take(dsp_capture *c, size_t bytes) {
  pthread_mutex_lock(&c->lock);
  void *taken = arena_take(&c->memory, bytes);
  pthread_mutex_unlock(&c->lock);
  return taken;
}

void *dsp_capture_copy(dsp_capture *c, const void *from, size_t bytes) {
  void *taken = dsp_capture_take(c, bytes);
  return taken ? memcpy(taken, from, bytes) : NULL;
}

/* Room for one more in an array of so many. */
static bool grow(void **items, uint32_t count, uint32_t *room, size_t bytes) {
  if (count < *room) return true;
  uint32_t wanted = *room ? *room * 2 : 64;
  void *grown = realloc(*items, wanted * bytes);
  if (!grown) return false;
  *items = grown;
  *room = wanted;
  return true;
}

static graft_status keep(dsp_capture *c, void *what, void (*release)(void *)) {
  if (!grow((void **)&c->kept, c->nkept, &c->kept_room, sizeof *c->kept)) {
    release(what);
    return no_memory();
  }
  c->kept[c->nkept++] = (dsp_kept){what, release};
  return GRAFT_OK;
}

graft_status dsp_capture_keep(dsp_capture *c, void *what, void (*release)(void *)) {
  pthread_mutex_lock(&c->lock);
  graft_status status = keep(c, what, release);
  pthread_mutex_unlock(&c->lock);
  return status;
}

static void release_storage(void *storage) {
  tns_storage_release(storage);
}

static void release_plan(void *plan) {
  dsp_plan_release(plan);
}

static graft_status hold(dsp_capture *c, graft_storage *storage) {
  graft_status status = GRAFT_OK;
  pthread_mutex_lock(&c->lock);
  uint32_t i = c->nkept;
  while (i && c->kept[i - 1].what != storage) i--;
  if (!i) {
    tns_storage_retain(storage);
    status = keep(c, storage, release_storage);
  }
  pthread_mutex_unlock(&c->lock);
  return status;
}

graft_status dsp_capture_room(dsp_capture *c, dsp_launch *launch, uint32_t tensors) {
  launch->seen = dsp_capture_take(c, tensors * sizeof *launch->seen);
  launch->written = dsp_capture_take(c, tensors * sizeof(graft_storage *));
  return launch->seen && launch->written ? GRAFT_OK : no_memory();
}

static graft_status note_place(dsp_capture *c, const dsp_place *place) {
  pthread_mutex_lock(&c->lock);
  const bool room = grow((void **)&c->places, c->nplaces, &c->place_room, sizeof *c->places);
  if (room) c->places[c->nplaces++] = *place;
  pthread_mutex_unlock(&c->lock);
  return room ? GRAFT_OK : no_memory();
}

graft_status dsp_capture_see(dsp_capture *c, dsp_launch *launch, graft_storage *storage, dsp_place place) {
  if (!storage->id) return refuse(&c->base.base, "using host memory of the caller");
  place.storage_id = storage->id;
  if (storage->block && mem_is_of_pool(storage->block, c->base.base.pool)) {
    if (place.shows_version) place.desc->storage_version = 0;
    return note_place(c, &place);
  }
  graft_status status = hold(c, storage);
  if (status) return status;
  if (place.shows_version) {
    place.seen = &launch->seen[launch->nseen++];
    *place.seen = (dsp_seen){&place.desc->storage_version, storage};
  }
  if (place.written) launch->written[launch->nwritten++] = storage;
  return note_place(c, &place);
}

graft_status dsp_capture_add(dsp_capture *c, const dsp_launch *launch) {
  pthread_mutex_lock(&c->lock);
  graft_status status = GRAFT_OK;
  if (!grow((void **)&c->launches, c->nlaunches, &c->launch_room, sizeof *c->launches)) status = no_memory();
  if (!status && launch->kind == DSP_LAUNCH_SLOT) {
    atomic_fetch_add_explicit(&launch->as.slot.plan->refs, 1, memory_order_relaxed);
    status = keep(c, launch->as.slot.plan, release_plan);
  }
  if (!status) c->launches[c->nlaunches++] = *launch;
  pthread_mutex_unlock(&c->lock);
  return status;
}

/* --- copies --- */

static dsp_bytes *bytes_of(dsp_capture *c, const graft_tensor *t) {
  const dsp_bytes bytes = {t->storage->buffer, tns_first_byte(t)};
  return dsp_capture_copy(c, &bytes, sizeof bytes);
}

static graft_status copy_bytes(tns_capture *self, graft_tensor *to, graft_tensor *from) {
  dsp_capture *c = (dsp_capture *)(void *)self;
  dsp_launch launch = {.kind = DSP_LAUNCH_BYTES};
  launch.as.bytes.to = bytes_of(c, to);
  launch.as.bytes.from = bytes_of(c, from);
  launch.as.bytes.count = (uint64_t)to->numel * dt_bytes(to->dtype);
  graft_status status = check_failed(c);
  if (!status && (!launch.as.bytes.to || !launch.as.bytes.from)) status = no_memory();
  if (!status) status = dsp_capture_room(c, &launch, 2);
  if (!status) status = dsp_capture_see(c, &launch, from->storage, (dsp_place){.bytes = launch.as.bytes.from});
  if (!status)
    status = dsp_capture_see(c, &launch, to->storage, (dsp_place){.bytes = launch.as.bytes.to, .written = true});
  return status ? status : dsp_capture_add(c, &launch);
}

static graft_status put_number(tns_capture *self, graft_tensor *to, const void *element) {
  dsp_capture *c = (dsp_capture *)(void *)self;
  dsp_launch launch = {.kind = DSP_LAUNCH_NUMBER};
  launch.as.number.to = bytes_of(c, to);
  launch.as.number.count = dt_bytes(to->dtype);
  graft_status status = check_failed(c);
  if (status) return status;
  launch.as.number.element = dsp_capture_copy(c, element, dt_bytes(to->dtype));
  status = launch.as.number.to && launch.as.number.element ? dsp_capture_room(c, &launch, 1) : no_memory();
  if (!status)
    status = dsp_capture_see(c, &launch, to->storage, (dsp_place){.bytes = launch.as.number.to, .written = true});
  return status ? status : dsp_capture_add(c, &launch);
}

static dsp_apart *apart(dsp_capture *c, const graft_tensor *t) {
  dsp_apart *made = dsp_capture_take(c, sizeof *made);
  if (!made) return NULL;
  made->tensor = *t;
  made->tensor.autograd = NULL;
  made->tensor.storage = &made->storage;
  made->storage.device = t->device;
  made->storage.host_pointer = t->storage->host_pointer;
  return made;
}

/* Whether all elements of a tensor are one in memory. */
static bool is_number(const graft_tensor *t) {
  for (int32_t i = 0; i < t->ndim; i++) {
    if (t->sizes[i] > 1 && t->strides[i]) return false;
  }
  return true;
}

/* Memory that is the caller's may be gone at a launch. */
static graft_status take_from(dsp_capture *c, dsp_launch *launch, graft_tensor *from) {
  dsp_apart *made = apart(c, from);
  if (!made) return no_memory();
  launch->as.elements.from = made;
  if (from->storage->id) return dsp_capture_see(c, launch, from->storage, (dsp_place){.written = false});
  if (!is_number(from)) return refuse(&c->base.base, "copying from the host");
  const size_t bytes = dt_bytes(from->dtype);
  made->storage.host_pointer =
      dsp_capture_copy(c, (char *)from->storage->host_pointer + (uint64_t)from->offset * bytes, bytes);
  made->tensor.offset = 0;
  return made->storage.host_pointer ? GRAFT_OK : no_memory();
}

static graft_status copy_elements(tns_capture *self, graft_tensor *to, graft_tensor *from, bool conj, bool neg) {
  dsp_capture *c = (dsp_capture *)(void *)self;
  dsp_launch launch = {.kind = DSP_LAUNCH_ELEMENTS};
  launch.as.elements.conj = conj;
  launch.as.elements.neg = neg;
  graft_status status = check_failed(c);
  if (status) return status;
  if (!to->storage->id) return refuse(&c->base.base, "copying to the host");
  launch.as.elements.to = apart(c, to);
  status = launch.as.elements.to ? dsp_capture_room(c, &launch, 2) : no_memory();
  if (!status) status = take_from(c, &launch, from);
  if (!status) status = dsp_capture_see(c, &launch, to->storage, (dsp_place){.written = true});
  return status ? status : dsp_capture_add(c, &launch);
}

/* --- groups --- */

static graft_status take_desc(dsp_capture *c, const graft_tensor_desc *from, graft_tensor_desc *to) {
  *to = *from;
  to->storage_version = 0; /* contents change between launches */
  if (!(from->flags & GRAFT_TENSOR_HOST_VALUE)) return GRAFT_OK;
  to->dl.data = dsp_capture_copy(c, from->dl.data, dt_bytes(from->dl.dtype));
  return to->dl.data ? GRAFT_OK : no_memory();
}

static graft_status take_draws(dsp_capture *c, const dsp_group_call *group, dsp_launch *launch) {
  graft_philox *philox = dsp_capture_take(c, (group->ndraws + 1u) * sizeof *philox);
  const graft_philox **items = dsp_capture_take(c, (group->ndraws + 1u) * sizeof *items);
  if (!philox || !items) return no_memory();
  for (uint32_t i = 0; i < group->ndraws; i++) items[i] = &philox[i];
  launch->as.group.drawing = group->drawing;
  launch->as.group.philox = philox;
  launch->as.group.ndraws = group->ndraws;
  launch->as.group.args.philox = items;
  return GRAFT_OK;
}

graft_status dsp_capture_group(dsp_capture *c, const dsp_group_call *group) {
  const uint32_t count = group->ninputs + group->noutputs;
  dsp_launch launch = {.kind = DSP_LAUNCH_GROUP};
  graft_status status = check_failed(c);
  if (!status) status = dsp_capture_room(c, &launch, count);
  if (status) return status;
  graft_tensor_desc *descs = dsp_capture_take(c, count * sizeof *descs);
  const graft_tensor_desc **items = dsp_capture_take(c, count * sizeof *items);
  if (!descs || !items) return no_memory();
  for (uint32_t i = 0; i < count && !status; i++) {
    items[i] = &descs[i];
    status = take_desc(c, group->descs[i], &descs[i]);
    if (!status && !(descs[i].flags & GRAFT_TENSOR_HOST_VALUE))
      status = dsp_capture_see(c, &launch, group->storages[i],
                               (dsp_place){.desc = &descs[i], .written = i >= group->ninputs});
  }
  launch.as.group.api = group->api;
  launch.as.group.executable = group->executable;
  launch.as.group.args = (graft_graph_run_args){sizeof launch.as.group.args, items, items + group->ninputs, NULL};
  if (!status) status = take_draws(c, group, &launch);
  return status ? status : dsp_capture_add(c, &launch);
}

/* --- its life --- */

void dsp_capture_init(dsp_capture *c) {
  c->base.base.refuse = refuse;
  c->base.copy_bytes = copy_bytes;
  c->base.copy_elements = copy_elements;
  c->base.put_number = put_number;
  c->flags = dsp_exec_flags();
  pthread_mutex_init(&c->lock, NULL);
}

void dsp_capture_free(dsp_capture *c) {
  if (c->drop_record) c->drop_record(c);
  while (c->nkept) {
    const dsp_kept *last = &c->kept[--c->nkept];
    last->release(last->what);
  }
  free(c->kept);
  free(c->launches);
  free(c->places);
  arena_free(&c->memory);
  pthread_mutex_destroy(&c->lock);
}
