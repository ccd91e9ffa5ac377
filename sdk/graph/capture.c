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

graft_status graft_graph_capture_launch(graft_graph_capture *capture) {
  if (!capture) return err_null(__func__, "capture");
  graft_rt_device *device = capture->pool->device;
  if (dev_forked(device)) return dev_forked_error(device);
  if (capture->phase == GR_FAILED) return failed_before(capture);
  if (capture->phase == GR_CAPTURING) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_capture_launch: the capture is under way; end it first");
  }
  if (dev_capture_of(graft_stream_current(device))) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "graft_graph_capture_launch: the current stream is captured, and a capture holds no other one");
  }
  return dsp_capture_launch(&capture->base);
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
