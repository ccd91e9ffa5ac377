/* Extension "graft.capture": copies and fills that are recorded and launched. */
#include <string.h>

#include "check.h"

enum { BYTES = 1 << 12 };

static const graft_capture_api *find(ck_session *s) {
  return ck_extension(s, GRAFT_EXTENSION_CAPTURE, GRAFT_CAPTURE_VERSION, "the plugin does not record work");
}

/* The table, where it is whole: else check_table says so. */
static const graft_capture_api *whole(ck_session *s) {
  const graft_capture_api *api = find(s);
  if (!api || !GRAFT_HAS(api, graft_capture_api, destroy) || !api->begin || !api->end || !api->launch ||
      !api->destroy) {
    ck_skip("its table is not whole");
  }
  return api;
}

static void check_table(ck_session *s) {
  const graft_capture_api *api = find(s);
  if (!api || api->struct_size < sizeof *api) ck_fail("its table is too short");
  ck_doing("graft_capture_api");
  if (!api->begin) ck_fail("begin is NULL");
  if (!api->end) ck_fail("end is NULL");
  if (!api->launch) ck_fail("launch is NULL");
  if (!api->destroy) ck_fail("destroy is NULL");
}

/* --- work: two buffers, the first of which is copied and then filled --- */

typedef struct work {
  const graft_capture_api *api;
  uint64_t bytes;
  graft_buffer *from, *to;
  unsigned char *is, *expected;
} work;

static void write_all(ck_session *s, const work *w, graft_stream *stream, graft_buffer *buffer, int value) {
  memset(w->is, value, w->bytes);
  ck_write(s, stream, buffer, 0, w->is, w->bytes);
}

static void expect_all(ck_session *s, const work *w, graft_stream *stream, graft_buffer *buffer, int value,
                       const char *what) {
  memset(w->expected, value, w->bytes);
  ck_read(s, stream, buffer, 0, w->is, w->bytes);
  ck_same(w->is, w->expected, w->bytes, "%s", what);
}

static work new_work(ck_session *s, graft_stream *stream) {
  const uint64_t unit = s->copy_granularity > 1 ? s->copy_granularity : 1;
  work w = {.api = whole(s), .bytes = (BYTES + unit - 1) / unit * unit};
  w.from = ck_buffer(s, w.bytes);
  w.to = ck_buffer(s, w.bytes);
  w.is = ck_alloc(w.bytes);
  w.expected = ck_alloc(w.bytes);
  write_all(s, &w, stream, w.from, 1);
  write_all(s, &w, stream, w.to, 2);
  ck_synchronize(s, stream);
  return w;
}

static void submit(ck_session *s, const work *w, graft_stream *stream) {
  const uint64_t pattern = UINT64_C(0x0303030303030303);
  CK_CALL(GRAFT_OK, w->api->begin(stream), "begin");
  CK_CALL(GRAFT_OK, s->memory.copy(stream, w->to, 0, w->from, 0, w->bytes), "copy, to be recorded");
  CK_CALL(GRAFT_OK, s->memory.fill(stream, w->from, 0, w->bytes, &pattern, sizeof pattern), "fill, to be recorded");
}

static graft_captured *record(ck_session *s, const work *w, graft_stream *stream) {
  graft_captured *captured = NULL;
  submit(s, w, stream);
  CK_CALL(GRAFT_OK, w->api->end(stream, &captured), "end");
  if (!captured) ck_fail("it gave nothing that was recorded");
  return captured;
}

/* --- the checks --- */

static void check_record(ck_session *s) {
  graft_stream *stream = ck_stream(s, 0);
  work w = new_work(s, stream);
  graft_captured *captured = record(s, &w, stream);
  expect_all(s, &w, stream, w.from, 1, "what is recorded is not run: the buffer that the fill names");
  expect_all(s, &w, stream, w.to, 2, "what is recorded is not run: the buffer that the copy names");
  write_all(s, &w, stream, w.to, 4);
  expect_all(s, &w, stream, w.to, 4, "behind end the stream runs its work again: the buffer");
  CK_CALL(GRAFT_OK, w.api->destroy(captured), "destroy");
}

static void check_launch(ck_session *s) {
  graft_stream *streams[] = {ck_stream(s, 0), ck_stream(s, 0)};
  work w = new_work(s, streams[0]);
  graft_captured *captured = record(s, &w, streams[0]);
  for (int turn = 0; turn < 4; turn++) {
    graft_stream *stream = streams[turn % 2];
    write_all(s, &w, stream, w.from, 5 + turn);
    CK_CALL(GRAFT_OK, w.api->launch(captured, stream), "launch %d", turn + 1);
    expect_all(s, &w, stream, w.to, 5 + turn, "a launch copies what is there then: the copy");
    expect_all(s, &w, stream, w.from, 3, "a launch runs all of it, in order: the fill");
    ck_synchronize(s, stream);
  }
  CK_CALL(GRAFT_OK, w.api->destroy(captured), "destroy");
}

static void check_dropped(ck_session *s) {
  graft_stream *stream = ck_stream(s, 0);
  work w = new_work(s, stream);
  submit(s, &w, stream);
  CK_CALL(GRAFT_OK, w.api->end(stream, NULL), "end with captured NULL");
  expect_all(s, &w, stream, w.to, 2, "what was dropped does not run: the buffer");
  write_all(s, &w, stream, w.to, 4);
  expect_all(s, &w, stream, w.to, 4, "behind end the stream runs its work again: the buffer");
}

static const ck_check checks[] = {
    {"capture.table", "The table of \"graft.capture\" is whole.", CK_DEVICE, .run = check_table},
    {"capture.record", "What is recorded does not run; behind end the stream does.", CK_DEVICE, .run = check_record},
    {"capture.launch", "A launch runs what was recorded, in order, on what is in its buffers then, on any stream.",
     CK_DEVICE, .run = check_launch},
    {"capture.dropped", "With captured NULL end drops what was recorded.", CK_DEVICE, .run = check_dropped},
};

const ck_table ck_capture_checks = {checks, sizeof checks / sizeof *checks};
