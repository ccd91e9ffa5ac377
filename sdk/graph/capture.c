/* Captures and their pools, as applications see them; what they are made of is in dispatch/capture.h. */
#include "dispatch/capture.h"

#include <stdlib.h>

#include "graft/graph.h"

struct graft_graph_pool {
  atomic_uint refs;
  graft_rt_device *device;
  mem_pool *memory;
  graft_tensor *claim; /* of no bytes: it keeps the device open */
};

typedef enum gr_phase { GR_CAPTURING, GR_READY, GR_FAILED } gr_phase;

struct graft_graph_capture {
  dsp_capture base;
  graft_graph_pool *pool;
  gr_phase phase;
};

/* --- pools --- */

graft_status graft_graph_pool_create(graft_rt_device *device, graft_graph_pool **pool) {
  if (!device) return err_null(__func__, "device");
  if (!pool) return err_null(__func__, "pool");
  graft_graph_pool *made = calloc(1, sizeof *made);
  if (!made) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a pool");
  atomic_init(&made->refs, 1);
  made->device = device;
  const int64_t none = 0;
  tns_recorder *recording = tns_recording;
  tns_recording = NULL; /* the claim is no value of a graph */
  graft_status status = graft_tensor_empty(device, GRAFT_U8, 1, &none, &made->claim);
  tns_recording = recording;
  if (!status) status = mem_pool_create(device, &made->memory);
  if (!status) {
    *pool = made;
    return GRAFT_OK;
  }
  graft_tensor_release(made->claim);
  free(made);
  return status;
}

void graft_graph_pool_release(graft_graph_pool *pool) {
  if (!pool || atomic_fetch_sub(&pool->refs, 1) != 1) return;
  mem_pool_release(pool->device, pool->memory);
  graft_tensor_release(pool->claim);
  free(pool);
}

/* --- captures --- */

static graft_status hold_pool(graft_rt_device *device, graft_graph_pool *given, graft_graph_pool **pool) {
  if (!given) return graft_graph_pool_create(device, pool);
  if (given->device != device) {
    return err_set(GRAFT_INVALID_ARGUMENT, "a pool of %s is no pool for a capture on %s",
                   graft_device_text(given->device), graft_device_text(device));
  }
  atomic_fetch_add(&given->refs, 1);
  *pool = given;
  return GRAFT_OK;
}

graft_status graft_graph_capture_begin(graft_rt_device *device, graft_graph_pool *pool, graft_graph_capture **capture) {
  if (!device) return err_null(__func__, "device");
  if (!capture) return err_null(__func__, "capture");
  if (tns_recording) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "graft_graph_capture_begin: this thread records a graph, whose calls run nothing; end that first");
  }
  graft_graph_capture *made = calloc(1, sizeof *made);
  if (!made) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a capture");
  graft_status status = hold_pool(device, pool, &made->pool);
  if (status) {
    free(made);
    return status;
  }
  dsp_capture_init(&made->base);
  made->base.base.base.pool = made->pool->memory;
  status = dev_capture_begin(&made->base.base.base, graft_stream_current(device));
  if (!status) {
    *capture = made;
    return GRAFT_OK;
  }
  graft_graph_pool_release(made->pool);
  dsp_capture_free(&made->base);
  free(made);
  return status;
}

static graft_status failed_before(const graft_graph_capture *capture) {
  return err_set(GRAFT_INVALID_ARGUMENT, "the capture has ended: %s", capture->base.failure);
}

graft_status graft_graph_capture_end(graft_graph_capture *capture) {
  if (!capture) return err_null(__func__, "capture");
  if (capture->phase != GR_CAPTURING) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_capture_end: this capture is not under way");
  }
  dev_capture_end(&capture->base.base.base);
  capture->phase = capture->base.failed ? GR_FAILED : GR_READY;
  return capture->base.failed ? failed_before(capture) : GRAFT_OK;
}

static graft_status check_launch(const char *function, const graft_graph_capture *capture) {
  if (!capture) return err_null(function, "capture");
  graft_rt_device *device = capture->pool->device;
  if (dev_forked(device)) return dev_forked_error(device);
  if (capture->phase == GR_FAILED) return failed_before(capture);
  if (capture->phase == GR_CAPTURING) {
    return err_about(GRAFT_INVALID_ARGUMENT, function, "the capture is under way; end it first");
  }
  if (!dev_capture_of(graft_stream_current(device))) return GRAFT_OK;
  return err_about(GRAFT_INVALID_ARGUMENT, function,
                   "the current stream is captured, and a capture holds no other one");
}

graft_status graft_graph_capture_launch(graft_graph_capture *capture) {
  graft_status status = check_launch(__func__, capture);
  return status ? status : dsp_capture_launch(&capture->base, NULL, 0);
}

/* --- stand-ins --- */

static bool is_all_of_its_memory(const graft_tensor *t) {
  if (!t->numel) return true;
  const int64_t end = tns_extent_bytes(t->dtype, t->ndim, t->sizes, t->strides, t->offset);
  return !t->offset && (uint64_t)end == t->storage->bytes;
}

static bool lie_alike(const graft_tensor *a, const graft_tensor *b) {
  bool alike = a->dtype == b->dtype && a->flags == b->flags && tns_has_sizes(a, b->ndim, b->sizes);
  for (int32_t i = 0; i < a->ndim && alike; i++) alike = a->sizes[i] < 2 || a->strides[i] == b->strides[i];
  return alike;
}

static bool is_written(const dsp_capture *c, uint64_t storage_id) {
  for (uint32_t i = 0; i < c->nplaces; i++) {
    if (c->places[i].storage_id == storage_id && c->places[i].written) return true;
  }
  return false;
}

static graft_status check_stand_in(const graft_graph_capture *capture, const graft_graph_stand_in *item, uint32_t i) {
  const char *function = "graft_graph_capture_launch_with";
  const graft_tensor *captured = item->captured, *given = item->given;
  char is[160], expected[160];
  if (!captured || !given) {
    return err_about(GRAFT_INVALID_ARGUMENT, function, "item %u: %s is NULL", i, captured ? "given" : "captured");
  }
  const graft_rt_device *device = capture->pool->device;
  if (captured->device != device || given->device != device) {
    return err_about(GRAFT_INVALID_ARGUMENT, function, "item %u: the tensors must be on %s, as the capture is", i,
                     graft_device_text(device));
  }
  if (!lie_alike(captured, given)) {
    return err_about(GRAFT_INVALID_ARGUMENT, function,
                     "item %u: given is %s, captured %s; dtype, sizes and strides must be the same", i,
                     tns_describe(given, is, sizeof is), tns_describe(captured, expected, sizeof expected));
  }
  if (!is_all_of_its_memory(captured)) {
    return err_about(GRAFT_INVALID_ARGUMENT, function,
                     "item %u: captured is a part of its memory, and calls may use the other parts; give all of it", i);
  }
  if (item->is_result || !is_written(&capture->base, captured->storage->id)) return GRAFT_OK;
  return err_about(GRAFT_INVALID_ARGUMENT, function,
                   "item %u: captured calls write there; it is no tensor to read from", i);
}

static graft_status check_apart(const graft_graph_stand_in *items, uint32_t i) {
  for (uint32_t k = 0; k < i; k++) {
    if (items[k].captured->storage != items[i].captured->storage) continue;
    return err_about(GRAFT_INVALID_ARGUMENT, "graft_graph_capture_launch_with",
                     "items %u and %u: one memory was captured for both, and has one stand-in", k, i);
  }
  return GRAFT_OK;
}

graft_status graft_graph_capture_launch_with(graft_graph_capture *capture, const graft_graph_stand_in *items,
                                             uint32_t count) {
  if (!capture) return err_null(__func__, "capture");
  if (count && !items) return err_null(__func__, "items");
  graft_status status = check_launch(__func__, capture);
  for (uint32_t i = 0; i < count && !status; i++) {
    status = check_stand_in(capture, &items[i], i);
    if (!status) status = check_apart(items, i);
  }
  if (!status) status = dsp_capture_launch(&capture->base, items, count);
  for (uint32_t i = 0; i < count && !status; i++) {
    if (items[i].is_result) tns_bump(items[i].given);
  }
  return status;
}

void graft_graph_capture_destroy(graft_graph_capture *capture) {
  if (!capture) return;
  if (capture->phase == GR_CAPTURING) dev_capture_end(&capture->base.base.base);
  if (!dev_forked(capture->pool->device)) dev_wait_for_work(capture->pool->device);
  dsp_capture_free(&capture->base);
  graft_graph_pool_release(capture->pool);
  free(capture);
}

uint32_t graft_graph_capture_count(const graft_graph_capture *capture) {
  if (err_is_null(capture, __func__, "capture")) return 0;
  return capture->base.nlaunches;
}

bool graft_stream_is_captured(const graft_rt_stream *stream) {
  if (err_is_null(stream, __func__, "stream")) return false;
  return dev_capture_of(stream) != NULL;
}
