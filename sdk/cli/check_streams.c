/* Streams: order, waiting, failure, several at once. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { BIG = 4 << 20 };

static void check_create(ck_session *s) {
  graft_stream *streams[16];
  for (int i = 0; i < 16; i++) streams[i] = ck_stream(s, 0);
  for (int i = 0; i < 16; i++) {
    for (int j = 0; j < i; j++) {
      if (streams[i] == streams[j]) ck_fail("streams %d and %d are one", i, j);
    }
  }
}

static void check_priorities(ck_session *s) {
  uint64_t pair = ck_property(s, GRAFT_DEVICE_PRIORITIES, 8, 0);
  int32_t range[2];
  memcpy(range, &pair, sizeof range);
  for (int i = 0; i < 2; i++) {
    graft_stream *stream = NULL;
    CK_CALL(GRAFT_OK, s->stream.create(s->device, range[i], 0, &stream), "stream.create, priority %d", range[i]);
    CK_CALL(GRAFT_OK, s->stream.destroy(stream), "stream.destroy");
  }
}

static void check_flags(ck_session *s) {
  graft_stream *stream = NULL;
  for (uint32_t flag = 1; flag <= 0x8000; flag <<= 1) {
    graft_status expected = flag & s->stream_flags ? GRAFT_OK : GRAFT_INVALID_ARGUMENT;
    CK_CALL(expected, s->stream.create(s->device, 0, flag, &stream), "stream.create with flag 0x%x, %s", flag,
            expected ? "not among GRAFT_DEVICE_STREAM_FLAGS" : "among GRAFT_DEVICE_STREAM_FLAGS");
    if (expected && stream) ck_fail("it wrote its output all the same");
    if (!expected) CK_CALL(GRAFT_OK, s->stream.destroy(stream), "stream.destroy");
    stream = NULL;
  }
  ck_stream(s, CK_HINT_FLAG);
}

/* Every command reads what the one before it wrote. */
static void check_order(ck_session *s) {
  graft_stream *stream = ck_stream(s, 0);
  uint64_t unit = 4096 * s->copy_granularity;
  graft_buffer *a = ck_buffer(s, unit), *b = ck_buffer(s, unit);
  unsigned char *in = ck_alloc(64 * unit), *out = ck_alloc(64 * unit), *expected = ck_alloc(unit);
  for (unsigned i = 0; i < 64; i++) {
    ck_pattern(in + i * unit, unit, i);
    CK_CALL(GRAFT_OK, s->memory.fill(stream, a, 0, unit, "\0\1\2\3", 4), "fill");
    CK_CALL(GRAFT_OK, s->memory.copy_from_host(stream, a, 0, in + i * unit, unit, 0), "copy_from_host");
    CK_CALL(GRAFT_OK, s->memory.copy(stream, b, 0, a, 0, unit), "copy");
    CK_CALL(GRAFT_OK, s->memory.fill(stream, b, 0, unit / 2, "\7", 1), "fill of half");
    CK_CALL(GRAFT_OK, s->memory.copy_to_host(stream, out + i * unit, b, 0, unit, 0), "copy_to_host");
  }
  ck_synchronize(s, stream);
  for (unsigned i = 0; i < 64; i++) {
    memcpy(expected, in + i * unit, unit);
    memset(expected, 7, unit / 2);
    ck_same(out + i * unit, expected, unit, "round %u of fill, copy_from_host, copy, fill, copy_to_host", i);
  }
}

/* Work whose end shows in host memory: the last byte of `out` becomes `value`. */
static void submit_long_work(ck_session *s, graft_stream *stream, graft_buffer *buffer, unsigned char *out,
                             unsigned char value) {
  for (unsigned i = 0; i < 4; i++) {
    ck_fill_all(s, stream, buffer, BIG, i < 3 ? (unsigned char)i : value);
  }
  CK_CALL(GRAFT_OK, s->memory.copy_to_host(stream, out, buffer, 0, BIG, 0), "copy_to_host of 4 MiB");
}

static void check_done(const unsigned char *out, unsigned char value, const char *after) {
  ck_doing("%s", after);
  if (out[0] != value || out[BIG - 1] != value || out[BIG / 2] != value) ck_fail("the work was not done");
}

static void check_synchronize(ck_session *s) {
  graft_stream *stream = ck_stream(s, 0);
  graft_buffer *buffer = ck_buffer(s, BIG);
  unsigned char *out = ck_alloc(BIG);
  for (unsigned char round = 10; round < 20; round++) {
    submit_long_work(s, stream, buffer, out, round);
    ck_synchronize(s, stream);
    check_done(out, round, "synchronize");
    CK_CALL(GRAFT_OK, s->stream.query(stream), "query after synchronize");
    ck_synchronize(s, stream);
  }
}

static void pause_briefly(void) {
  nanosleep(&(struct timespec){0, 200000}, NULL);
}

/* Nothing but query is called: it flushes, and tells the truth. */
static void check_query(ck_session *s) {
  graft_stream *stream = ck_stream(s, 0);
  graft_buffer *buffer = ck_buffer(s, BIG);
  unsigned char *out = ck_alloc(BIG);
  CK_CALL(GRAFT_OK, s->stream.query(stream), "query of a stream without work");
  for (unsigned char round = 10; round < 20; round++) {
    submit_long_work(s, stream, buffer, out, round);
    graft_status status;
    ck_doing("query until the work is done, without synchronize");
    while ((status = s->stream.query(stream)) == GRAFT_NOT_READY) pause_briefly();
    ck_is(status, GRAFT_OK);
    check_done(out, round, "query said OK");
  }
}

static void check_flush(ck_session *s) {
  if (!s->stream.flush) ck_skip("the plugin has no flush");
  graft_stream *stream = ck_stream(s, 0);
  graft_buffer *buffer = ck_buffer(s, BIG);
  unsigned char *out = ck_alloc(BIG);
  CK_CALL(GRAFT_OK, s->stream.flush(stream), "flush of a stream without work");
  out[BIG - 1] = 0;
  submit_long_work(s, stream, buffer, out, 10);
  CK_CALL(GRAFT_OK, s->stream.flush(stream), "flush");
  ck_doing("waiting for flushed work, without any further call");
  const volatile unsigned char *last = out + BIG - 1;
  while (*last != 10) pause_briefly();
  ck_synchronize(s, stream);
}

static void check_failure(ck_session *s) {
  graft_stream *streams[2] = {ck_stream(s, 0), NULL}; /* NULL: the device */
  for (int i = 0; i < 2; i++) {
    const char *what = i ? "the device" : "a stream";
    for (size_t capacity = 0; capacity <= 32; capacity += 8) {
      char text[64];
      size_t length = 99;
      graft_failure_scope scope = 99;
      memset(text, 0x5a, sizeof text);
      CK_CALL(GRAFT_OK, s->stream.failure(s->device, streams[i], text, capacity, &length, &scope),
              "failure of %s, with room for %zu bytes", what, capacity);
      if (scope != GRAFT_FAILURE_NONE) ck_fail("scope is %d, and nothing failed", scope);
      if (length == 99) ck_fail("*length was not written");
      if (capacity && !memchr(text, 0, capacity)) ck_fail("the text has no NUL");
      for (size_t b = capacity; b < sizeof text; b++) {
        if (text[b] != 0x5a) ck_fail("it wrote behind its room");
      }
    }
  }
}

/* --- several threads --- */

typedef struct worker {
  ck_session *session;
  graft_stream *stream;
  graft_buffer *a, *b;
  unsigned seed;
} worker;

enum { THREAD_BYTES = 65536, ROUNDS = 60 };

static void *work(void *argument) {
  worker *w = argument;
  ck_session *s = w->session;
  uint64_t bytes = THREAD_BYTES * s->copy_granularity;
  unsigned char *in = ck_alloc(bytes), *out = ck_alloc(bytes);
  for (unsigned i = 0; i < ROUNDS; i++) {
    ck_pattern(in, bytes, w->seed + i);
    CK_CALL(GRAFT_OK, s->memory.copy_from_host(w->stream, w->a, 0, in, bytes, 0),
            "copy_from_host in one of two threads");
    CK_CALL(GRAFT_OK, s->memory.copy(w->stream, w->b, 0, w->a, 0, bytes), "copy in one of two threads");
    CK_CALL(GRAFT_OK, s->memory.copy_to_host(w->stream, out, w->b, 0, bytes, 0), "copy_to_host in one of two threads");
    CK_CALL(GRAFT_OK, s->stream.synchronize(w->stream), "synchronize in one of two threads");
    ck_same(out, in, bytes, "round %u of two threads with a stream each", i);
  }
  return NULL;
}

static worker worker_of(ck_session *s, unsigned seed) {
  uint64_t bytes = THREAD_BYTES * s->copy_granularity;
  return (worker){s, ck_stream(s, 0), ck_buffer(s, bytes), ck_buffer(s, bytes), seed};
}

static void check_two_streams(ck_session *s) {
  pthread_t threads[2];
  worker workers[2] = {worker_of(s, 1000), worker_of(s, 2000)};
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

typedef struct watcher {
  worker *watched;
  atomic_bool stop;
} watcher;

/* The calls that need no permission of the thread that owns the stream. */
static void *watch(void *argument) {
  watcher *w = argument;
  ck_session *s = w->watched->session;
  while (!atomic_load(&w->stop)) {
    ck_doing("query in one thread while another uses the stream");
    graft_status status = s->stream.query(w->watched->stream);
    if (status != GRAFT_NOT_READY) ck_is(status, GRAFT_OK);
    CK_CALL(GRAFT_OK, s->stream.synchronize(w->watched->stream),
            "synchronize in one thread while another uses the stream");
  }
  return NULL;
}

static void check_watched(ck_session *s) {
  pthread_t threads[2];
  worker owner = worker_of(s, 3000);
  watcher eye = {.watched = &owner};
  pthread_create(&threads[0], NULL, work, &owner);
  pthread_create(&threads[1], NULL, watch, &eye);
  pthread_join(threads[0], NULL);
  atomic_store(&eye.stop, true);
  pthread_join(threads[1], NULL);
}

static const ck_check checks[] = {
    {"stream.create", "A device has many streams.", CK_DEVICE, .run = check_create},
    {"stream.priorities", "Streams of the priorities that GRAFT_DEVICE_PRIORITIES names can be made.", CK_DEVICE,
     .run = check_priorities},
    {"stream.flags", "Flags that GRAFT_DEVICE_STREAM_FLAGS names are taken, others are INVALID_ARGUMENT; hints pass.",
     CK_DEVICE, .run = check_flags},
    {"stream.order", "A stream runs its work in the order of submission.", CK_DEVICE, .run = check_order},
    {"stream.synchronize", "synchronize returns when all submitted work is done.", CK_DEVICE, .run = check_synchronize},
    {"stream.query", "query flushes, says NOT_READY until all submitted work is done, and then OK.", CK_DEVICE,
     .run = check_query},
    {"stream.flush", "After flush, work starts without further calls.", CK_DEVICE, .run = check_flush},
    {"stream.failure", "Where nothing failed, failure is OK with scope NONE, and keeps to its room.", CK_DEVICE,
     .run = check_failure},
    {"stream.two", "Two threads may use a stream each.", CK_DEVICE, .run = check_two_streams},
    {"stream.watched", "query and synchronize are thread-safe.", CK_DEVICE, .run = check_watched},
};

const ck_table ck_stream_checks = {checks, sizeof checks / sizeof *checks};
