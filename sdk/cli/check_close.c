/* The end as libgraft makes it: a backend that was used is closed for good, in the ABI's order. */
#include "check.h"
#include "device/device.h"
#include "graft/graft.h"
#include "plugin/loader.h"

#define NEED(call, what) (ck_doing("%s", what), need(call))

static void need(graft_status status) {
  if (status) ck_fail("%s", graft_last_error());
}

static void use(graft_rt_device *device) {
  enum { COUNT = 3000 };
  static float in[COUNT], out[COUNT];
  graft_rt_stream *stream;
  graft_rt_event *event;
  graft_tensor *x = NULL, *y = NULL;
  const int64_t size = COUNT;
  ck_pattern(in, sizeof in, 1);
  NEED(graft_stream_create(device, 0, 0, &stream), "a stream");
  NEED(graft_event_create(device, 0, &event), "an event");
  NEED(graft_tensor_from_host(device, GRAFT_F32, 1, &size, in, &x), "a tensor");
  NEED(graft_op_neg(x, &y), "aten::neg");
  NEED(graft_event_record(event, graft_stream_current(device)), "recording the event");
  NEED(graft_stream_wait(stream, event), "waiting for the event");
  NEED(graft_tensor_to_host(x, out), "reading the tensor");
  ck_same(out, in, sizeof out, "what libgraft reads back");
  graft_tensor_release(x);
  graft_tensor_release(y);
  NEED(graft_event_destroy(event), "destroying the event");
}

static void check_host(ck_session *s) {
  graft_rt_backend *backend = NULL;
  graft_rt_device *device = NULL;
  if (!s->target->path) ck_skip("the built-in backend stays open");
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
