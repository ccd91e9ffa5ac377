/* Runs what was captured: see capture.h. Nothing is looked up, allocated or decided here but what a slot asks for. */
#include <stdatomic.h>
#include <stdio.h>

#include "dispatch/capture.h"
#include "dispatch/groups.h"
#include "tensor/copy_host.h"
#include "tensor/transfer.h"

static graft_status run_slot(const dsp_capture *c, const dsp_launch *l, graft_rt_stream *stream) {
  dsp_plan *plan = l->as.slot.plan;
  graft_philox *philox = l->as.slot.philox;
  if (philox) dev_generator_draw(&plan->device->generator, plan->call.draws, &philox->seed, &philox->offset);
  dsp_frame frame;
  graft_status status = dsp_enter_slot(plan, l->as.slot.args, c->flags, stream, &frame);
  if (status != GRAFT_UNIMPLEMENTED) return dev_status(plan->device, status, plan->call.schema->name);
  return err_about(GRAFT_UNIMPLEMENTED, plan->call.schema->name,
                   "the plugin does not take this call after all, and a launch has no other way; run the work once "
                   "before it is captured, so that its way is known");
}

static graft_status copy_bytes(const dsp_launch *l, graft_rt_stream *stream) {
  const dsp_bytes *to = &l->as.bytes.to, *from = &l->as.bytes.from;
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

static graft_status run(const dsp_capture *c, const dsp_launch *l, graft_rt_stream *stream) {
  switch (l->kind) {
    case DSP_LAUNCH_SLOT: return run_slot(c, l, stream);
    case DSP_LAUNCH_GROUP: return dsp_run_group(stream, l->as.group.api, l->as.group.executable, &l->as.group.args);
    case DSP_LAUNCH_BYTES: return copy_bytes(l, stream);
    case DSP_LAUNCH_ELEMENTS: return copy_elements(l, stream);
    default:
      return mem_from_host(stream, l->as.number.to.buffer, l->as.number.to.offset, l->as.number.element,
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

graft_status dsp_capture_launch(dsp_capture *c) {
  graft_rt_stream *stream = graft_stream_current(c->base.base.device);
  graft_status status = GRAFT_OK;
  pthread_mutex_lock(&c->lock);
  for (uint32_t i = 0; i < c->nlaunches && !status; i++) {
    const dsp_launch *l = &c->launches[i];
    show_versions(l);
    status = run(c, l, stream);
    if (status)
      status = failed(c, i, status);
    else
      mark_written(l);
  }
  pthread_mutex_unlock(&c->lock);
  return status;
}
