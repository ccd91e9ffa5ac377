/* The end as libgraft makes it: a backend that was used is closed for good, in the ABI's order. */
#include <stdlib.h>

#include "check.h"
#include "device/device.h"
#include "graft/graft.h"
#include "plugin/loader.h"

#define NEED(call, what) (ck_doing("%s", what), need(call))

static void need(graft_status status) {
  if (status) ck_fail("%s", graft_last_error());
}

/* Ops of one matrix, of which some plugin serves each. */
static graft_status add(graft_tensor *x, graft_tensor **y) {
  return graft_op_add_Tensor(x, x, (graft_scalar){.dtype = GRAFT_I64, .value.i = 1}, y);
}
static graft_status mul(graft_tensor *x, graft_tensor **y) {
  return graft_op_mul_Tensor(x, x, y);
}
static graft_status mm(graft_tensor *x, graft_tensor **y) {
  return graft_op_mm(x, x, y);
}

static const struct {
  const char *name;
  graft_status (*call)(graft_tensor *x, graft_tensor **y);
} probes[] = {{"aten::neg", graft_op_neg},
              {"aten::relu", graft_op_relu},
              {"aten::abs", graft_op_abs},
              {"aten::exp", graft_op_exp},
              {"aten::add.Tensor", add},
              {"aten::mul.Tensor", mul},
              {"aten::mm", mm}};

/* The first op that the plugin runs itself, so that it has a memo to give back if it makes any. One without such an op
 * is closed all the same. */
static graft_tensor *run_one(graft_tensor *x) {
  graft_tensor *y = NULL;
  for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
    ck_doing("%s", probes[i].name);
    graft_status status = probes[i].call(x, &y);
    if (!status) return y;
    if (status != GRAFT_UNIMPLEMENTED) need(status);
  }
  return NULL;
}

static void use(graft_rt_device *device) {
  enum { SIDE = 50, COUNT = SIDE * SIDE };
  static float in[COUNT], out[COUNT];
  graft_rt_stream *stream;
  graft_rt_event *event;
  graft_tensor *x = NULL;
  const int64_t shape[2] = {SIDE, SIDE};
  ck_pattern(in, sizeof in, 1);
  NEED(graft_stream_create(device, 0, 0, &stream), "a stream");
  NEED(graft_event_create(device, 0, &event), "an event");
  NEED(graft_tensor_from_host(device, GRAFT_F32, 2, shape, in, &x), "a tensor");
  graft_tensor *y = run_one(x);
  NEED(graft_event_record(event, graft_stream_current(device)), "recording the event");
  NEED(graft_stream_wait(stream, event), "waiting for the event");
  NEED(graft_tensor_to_host(x, out), "reading the tensor");
  ck_same(out, in, sizeof out, "what libgraft reads back");
  graft_tensor_release(x);
  if (y) graft_tensor_release(y);
  NEED(graft_event_destroy(event), "destroying the event");
}

static void check_host(ck_session *s) {
  graft_rt_backend *backend = NULL;
  graft_rt_device *device = NULL;
  if (!s->target->path) ck_skip("the built-in backend stays open");
  setenv("GRAFT_FALLBACK", "error", 1); /* this process is the check's own */
  NEED(plg_negotiate(s->entry, s->target->path, NULL, s->target->options, &backend), "opening by libgraft");
  NEED(graft_backend_device(backend, s->target->device, &device), "opening the device by libgraft");
  use(device);
  NEED(graft_backend_close(backend), "closing by libgraft");
}

static const ck_check checks[] = {
    {"close.host", "A backend that an application has used ends: memos, events, streams, buffers, devices, instance.",
     CK_DEVICE, .run = check_host, .fresh = true},
};

const ck_table ck_close_checks = {checks, sizeof checks / sizeof *checks};
