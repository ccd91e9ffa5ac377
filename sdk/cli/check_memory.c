/* Buffers: allocating and releasing them. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static graft_allocation request_of(const ck_session *s, uint64_t units) {
  return (graft_allocation){.struct_size = sizeof(graft_allocation), .bytes = units * s->granularity};
}

static void release(ck_session *s, graft_buffer *buffer) {
  CK_CALL(GRAFT_OK, s->memory.release(s->device, buffer), "release");
}

/* Buffers of many sizes live together, each keeps what was written to it. */
static void check_sizes(ck_session *s) {
  static const uint64_t units[] = {1, 2, 3, 7, 8, 33, 129, 2049};
  enum { COUNT = sizeof units / sizeof *units };
  graft_stream *stream = ck_stream(s, 0);
  graft_buffer *buffers[COUNT];
  unsigned char *bytes[COUNT], *back = ck_alloc(units[COUNT - 1] * s->granularity);
  for (unsigned i = 0; i < COUNT; i++) {
    uint64_t size = units[i] * s->granularity;
    buffers[i] = ck_buffer(s, size);
    bytes[i] = ck_alloc(size);
    ck_pattern(bytes[i], size, i);
    ck_write(s, stream, buffers[i], 0, bytes[i], size);
  }
  for (unsigned i = 0; i < COUNT; i++) {
    ck_read(s, stream, buffers[i], 0, back, units[i] * s->granularity);
    ck_same(back, bytes[i], units[i] * s->granularity, "a buffer of %llu bytes beside others",
            (unsigned long long)(units[i] * s->granularity));
  }
}

/* What a plugin gives back can be had again, many times over. */
static void check_reuse(ck_session *s) {
  for (unsigned i = 0; i < 2000; i++) {
    graft_allocation request = request_of(s, 1 + i % 64);
    CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate %llu bytes for the %u. time",
            (unsigned long long)request.bytes, i + 1);
    release(s, request.buffer);
  }
}

static void check_answer(const graft_allocation *r, uint64_t alignment, bool host_visible) {
  if (!r->buffer) ck_fail("it said OK and gave no buffer");
  if (r->device_address % alignment) {
    ck_fail("device_address is 0x%llx", (unsigned long long)r->device_address);
  }
  if ((uintptr_t)r->host_pointer % alignment) ck_fail("host_pointer is %p", r->host_pointer);
  if (host_visible && !r->host_pointer) ck_fail("pinned memory came without host_pointer");
}

static void check_alignment(ck_session *s) {
  static const uint64_t asked[] = {0, 64, 256, 4096, 65536};
  uint64_t own = ck_property(s, GRAFT_DEVICE_ALIGNMENT, 8, 64);
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
    for (int round = 0; round < 5; round++) {
      graft_allocation request = request_of(s, 3);
      request.alignment = asked[i];
      CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate with alignment %llu%s",
              (unsigned long long)asked[i], asked[i] ? "" : " (the device's own)");
      check_answer(&request, asked[i] ? asked[i] : own, false);
      graft_stream *stream = round ? NULL : ck_stream(s, 0);
      unsigned char in[64], out[64];
      size_t bytes = request.bytes < sizeof in ? (size_t)request.bytes : sizeof in;
      ck_pattern(in, bytes, (unsigned)i);
      if (stream) {
        ck_write(s, stream, request.buffer, 0, in, bytes);
        ck_read(s, stream, request.buffer, 0, out, bytes);
        ck_same(out, in, bytes, "a buffer with alignment %llu", (unsigned long long)asked[i]);
      }
      release(s, request.buffer);
    }
  }
}

/* Pinned memory is a place of the host's that copies start and end at; what the device would see of it as a buffer is
 * not said. */
static void check_pinned(ck_session *s) {
  graft_stream *stream = ck_stream(s, 0);
  graft_allocation request = request_of(s, 8);
  size_t bytes = (size_t)request.bytes;
  unsigned char *in = ck_alloc(bytes);
  graft_buffer *there = ck_buffer(s, bytes);
  request.kind = GRAFT_MEMORY_PINNED;
  CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate pinned memory");
  check_answer(&request, 1, true);
  ck_pattern(in, bytes, 1);
  memcpy(request.host_pointer, in, bytes);
  ck_write(s, stream, there, 0, request.host_pointer, bytes);
  memset(request.host_pointer, 0, bytes);
  ck_read(s, stream, there, 0, request.host_pointer, bytes);
  ck_same(request.host_pointer, in, bytes, "values sent from pinned memory and back");
  release(s, request.buffer);
}

static void check_known_kind(ck_session *s, graft_memory_kind kind) {
  if (kind == GRAFT_MEMORY_PINNED) {
    check_pinned(s);
    return;
  }
  graft_stream *stream = ck_stream(s, 0);
  graft_allocation request = request_of(s, 8);
  size_t bytes = (size_t)request.bytes;
  unsigned char *in = ck_alloc(bytes), *out = ck_alloc(bytes), *mine = NULL;
  if (kind == GRAFT_MEMORY_IMPORT) {
    mine = aligned_alloc(65536, (bytes + 65535) / 65536 * 65536);
    request.host_pointer = mine;
  }
  request.kind = kind;
  CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate memory of kind %u", kind);
  check_answer(&request, 1, false);
  ck_pattern(in, bytes, kind);
  ck_write(s, stream, request.buffer, 0, in, bytes);
  ck_read(s, stream, request.buffer, 0, out, bytes);
  ck_same(out, in, bytes, "memory of kind %u, read back", kind);
  if (request.host_pointer && kind != GRAFT_MEMORY_DEVICE) {
    ck_same(request.host_pointer, in, bytes, "memory of kind %u, seen by the host", kind);
  }
  release(s, request.buffer);
  free(mine);
}

/* Through host_pointer the host sees what the device wrote before an event that is done, and the device what the host
 * wrote before it submitted. */
static void check_coherent_kind(ck_session *s, graft_memory_kind kind) {
  graft_allocation request = request_of(s, 8);
  size_t bytes = (size_t)request.bytes;
  unsigned char *mine = kind == GRAFT_MEMORY_IMPORT ? aligned_alloc(65536, (bytes + 65535) / 65536 * 65536) : NULL;
  request.kind = kind;
  request.host_pointer = mine;
  CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate memory of kind %u", kind);
  if (request.host_pointer) {
    graft_stream *stream = ck_stream(s, 0);
    graft_event *event = ck_event(s, 0);
    graft_buffer *there = ck_buffer(s, bytes);
    unsigned char *values = ck_alloc(bytes), *seen = ck_alloc(bytes);
    for (unsigned round = 0; round < 3; round++) {
      ck_pattern(values, bytes, 2 * round);
      memcpy(request.host_pointer, values, bytes);
      CK_CALL(GRAFT_OK, s->memory.copy(stream, there, 0, request.buffer, 0, bytes), "copy of what the host wrote");
      ck_read(s, stream, there, 0, seen, bytes);
      ck_same(seen, values, bytes, "memory of kind %u, written through host_pointer, as the device saw it", kind);
      ck_pattern(values, bytes, 2 * round + 1);
      ck_write(s, stream, there, 0, values, bytes);
      CK_CALL(GRAFT_OK, s->memory.copy(stream, request.buffer, 0, there, 0, bytes), "copy for the host to read");
      CK_CALL(GRAFT_OK, s->stream.event_record(event, stream), "event_record");
      CK_CALL(GRAFT_OK, s->stream.event_synchronize(event), "event_synchronize");
      ck_same(request.host_pointer, values, bytes, "memory of kind %u, read through host_pointer", kind);
    }
  }
  release(s, request.buffer);
  free(mine);
}

/* Pinned memory is a place of the host's; see check_pinned. */
static void check_coherent(ck_session *s) {
  ck_since(s, 2);
  for (graft_memory_kind kind = 0; kind <= GRAFT_MEMORY_IMPORT; kind++) {
    if (kind != GRAFT_MEMORY_PINNED && s->memory_kinds >> kind & 1) check_coherent_kind(s, kind);
  }
}

static void check_kinds(ck_session *s) {
  for (graft_memory_kind kind = 0; kind < 32; kind++) {
    if (s->memory_kinds >> kind & 1) {
      if (kind <= GRAFT_MEMORY_IMPORT) check_known_kind(s, kind);
      continue;
    }
    graft_allocation request = request_of(s, 1);
    request.kind = kind;
    CK_CALL(GRAFT_UNIMPLEMENTED, s->memory.allocate(s->device, &request),
            "allocate memory of kind %u, which GRAFT_DEVICE_MEMORY_KINDS does not name", kind);
    if (request.buffer) ck_fail("it wrote its output all the same");
  }
}

static void check_flags(ck_session *s) {
  graft_allocation request = request_of(s, 1);
  for (uint32_t flag = 1; flag <= 0x8000; flag <<= 1) {
    if (flag & s->memory_flags) continue;
    request.flags = flag;
    CK_CALL(GRAFT_INVALID_ARGUMENT, s->memory.allocate(s->device, &request), "allocate with the unknown flag 0x%x",
            flag);
    if (request.buffer) ck_fail("it wrote its output all the same");
  }
  request.flags = CK_HINT_FLAG;
  CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate with an unknown hint, 0x%x", CK_HINT_FLAG);
  release(s, request.buffer);
}

/* The struct of a host of a later minor; the bytes behind what this minor knows are none of the plugin's business. */
static void check_newer_request(ck_session *s) {
  struct newer {
    graft_allocation known;
    unsigned char unknown[32], mark[32];
  } request = {.known = request_of(s, 1)};
  request.known.struct_size = GRAFT_SIZE_TO(struct newer, unknown);
  memset(request.mark, 0xa5, sizeof request.mark);
  CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request.known), "allocate with a larger graft_allocation");
  for (size_t i = 0; i < sizeof request.mark; i++) {
    if (request.mark[i] != 0xa5) ck_fail("it wrote behind the struct");
  }
  release(s, request.known.buffer);
}

static void check_too_much(ck_session *s) {
  graft_allocation request = request_of(s, (UINT64_C(1) << 62) / s->granularity);
  ck_doing("allocate %llu bytes", (unsigned long long)request.bytes);
  graft_status status = s->memory.allocate(s->device, &request);
  if (status != GRAFT_OUT_OF_MEMORY && status != GRAFT_INVALID_ARGUMENT) ck_is(status, GRAFT_OUT_OF_MEMORY);
  if (request.buffer) ck_fail("it wrote its output all the same");
  graft_stream *stream = ck_stream(s, 0);
  unsigned char in[64], out[64];
  ck_pattern(in, sizeof in, 1);
  graft_buffer *buffer = ck_buffer(s, sizeof in);
  ck_write(s, stream, buffer, 0, in, sizeof in);
  ck_read(s, stream, buffer, 0, out, sizeof out);
  ck_same(out, in, sizeof in, "a buffer made after a request that was too large");
}

static void *allocate_often(void *session) {
  ck_session *s = session;
  for (unsigned i = 0; i < 300; i++) {
    graft_allocation request = request_of(s, 1 + i % 9);
    CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate in four threads at once");
    if (!request.buffer) ck_fail("it said OK and gave no buffer");
    CK_CALL(GRAFT_OK, s->memory.release(s->device, request.buffer), "release in four threads at once");
  }
  return NULL;
}

static void check_threads(ck_session *s) {
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, allocate_often, s);
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

/* A buffer that is given back while a copy from it waits in its stream; and one that is taken from what was given back.
 */
static void check_on_stream(ck_session *s) {
  enum { BYTES = 1 << 20, ROUNDS = 200 };
  ck_since(s, 2);
  if (!ck_property(s, GRAFT_DEVICE_UNCACHED, 4, 0)) ck_skip("the device does not say GRAFT_DEVICE_UNCACHED");
  if (!s->memory.release_on) ck_skip("the plugin has no release_on");
  graft_stream *stream = ck_stream(s, 0);
  graft_buffer *kept = ck_buffer(s, BYTES);
  unsigned char *in = ck_alloc(BYTES), *out = ck_alloc(BYTES);
  for (unsigned round = 0; round < ROUNDS; round++) {
    graft_allocation request = request_of(s, (BYTES + s->granularity - 1) / s->granularity);
    request.stream = stream;
    CK_CALL(GRAFT_OK, s->memory.allocate(s->device, &request), "allocate on a stream");
    if (!request.buffer) ck_fail("it gave no buffer");
    ck_pattern(in, BYTES, round);
    for (int i = 0; i < 8; i++) ck_fill_all(s, stream, kept, BYTES, 'x'); /* so that what follows waits */
    CK_CALL(GRAFT_OK, s->memory.copy_from_host(stream, request.buffer, 0, in, BYTES, GRAFT_COPY_SOURCE_REUSABLE),
            "copy_from_host");
    CK_CALL(GRAFT_OK, s->memory.copy(stream, kept, 0, request.buffer, 0, BYTES), "copy");
    CK_CALL(GRAFT_OK, s->memory.release_on(stream, request.buffer), "release_on behind a copy");
    if (round % 5) continue; /* several rounds in flight */
    ck_read(s, stream, kept, 0, out, BYTES);
    ck_same(out, in, BYTES, "what was copied from a buffer before release_on");
  }
}

static const ck_check checks[] = {
    {"memory.allocate", "Buffers of any multiple of the granularity live side by side.", CK_DEVICE, .run = check_sizes},
    {"memory.release", "release gives memory back.", CK_DEVICE, .run = check_reuse},
    {"memory.alignment", "A buffer begins at the alignment asked for.", CK_DEVICE, .run = check_alignment},
    {"memory.kinds", "Kinds that GRAFT_DEVICE_MEMORY_KINDS names work; others are UNIMPLEMENTED.", CK_DEVICE,
     .run = check_kinds},
    {"memory.coherent", "Through host_pointer host and device see what the other wrote.", CK_DEVICE,
     .run = check_coherent},
    {"memory.flags", "An unknown must-understand flag is INVALID_ARGUMENT, a hint is ignored.", CK_DEVICE,
     .run = check_flags},
    {"memory.newer_request", "A struct that is larger than known is read and written as far as it is known.", CK_DEVICE,
     .run = check_newer_request},
    {"memory.too_much", "A request that can't be met fails, leaves its outputs untouched, and harms nothing.",
     CK_DEVICE, .run = check_too_much},
    {"memory.on_stream", "release_on comes behind the work of its stream.", CK_DEVICE, .run = check_on_stream},
    {"memory.threads", "allocate and release are thread-safe.", CK_DEVICE, .run = check_threads},
};

const ck_table ck_memory_checks = {checks, sizeof checks / sizeof *checks};
