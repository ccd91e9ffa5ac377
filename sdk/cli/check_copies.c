/* Copies and fills: every byte where it belongs, and no other touched. */
#include <string.h>

#include "check.h"

static const uint64_t sizes[] = {1, 2, 3, 5, 7, 13, 16, 17, 33, 64, 129, 1025, 4099, 65537};
static const uint64_t offsets[] = {0, 1, 3, 5, 8, 63, 64, 65, 511, 4097};
enum { SIZES = sizeof sizes / sizeof *sizes, OFFSETS = sizeof offsets / sizeof *offsets, WINDOW = 71000 };

/* A device buffer and what it should hold. */
typedef struct window {
  graft_stream *stream;
  graft_buffer *buffer;
  unsigned char *expected, *got;
  uint64_t bytes;
} window;

static window window_of(ck_session *s, uint64_t bytes, unsigned seed) {
  uint64_t unit = s->copy_granularity;
  bytes = (bytes + unit - 1) / unit * unit;
  window w = {ck_stream(s, 0), ck_buffer(s, bytes), ck_alloc(bytes), ck_alloc(bytes), bytes};
  ck_pattern(w.expected, bytes, seed);
  ck_write(s, w.stream, w.buffer, 0, w.expected, bytes);
  return w;
}

static void compare(ck_session *s, window *w, const char *what, uint64_t size, uint64_t offset) {
  memset(w->got, 0x5a, w->bytes);
  ck_read(s, w->stream, w->buffer, 0, w->got, w->bytes);
  ck_same(w->got, w->expected, w->bytes, "the whole buffer after %s of %llu bytes at offset %llu", what,
          (unsigned long long)size, (unsigned long long)offset);
}

/* Every size with one offset, and every offset with one size, in the device's granularity. */
static bool next_case(const ck_session *s, unsigned *i, uint64_t *size, uint64_t *offset) {
  unsigned n = (*i)++;
  if (n >= SIZES + OFFSETS) return false;
  *size = (n < SIZES ? sizes[n] : 1025) * s->copy_granularity;
  *offset = (n < SIZES ? offsets[(n * 3 + 1) % OFFSETS] : offsets[n - SIZES]) * s->copy_granularity;
  return true;
}

static void check_from_host(ck_session *s) {
  window w = window_of(s, WINDOW * s->copy_granularity, 1);
  unsigned char *in = ck_alloc(w.bytes);
  uint64_t size, offset;
  for (unsigned i = 0; next_case(s, &i, &size, &offset);) {
    ck_pattern(in, size, 100 + i);
    memcpy(w.expected + offset, in, size);
    ck_write(s, w.stream, w.buffer, offset, in, size);
    compare(s, &w, "copy_from_host", size, offset);
  }
}

static void check_to_host(ck_session *s) {
  window w = window_of(s, WINDOW * s->copy_granularity, 2);
  unsigned char *out = ck_alloc(w.bytes + 64);
  uint64_t size, offset;
  for (unsigned i = 0; next_case(s, &i, &size, &offset);) {
    memset(out, 0xa5, size + 64);
    ck_read(s, w.stream, w.buffer, offset, out + 32, size);
    ck_same(out + 32, w.expected + offset, size, "copy_to_host of %llu bytes from offset %llu",
            (unsigned long long)size, (unsigned long long)offset);
    for (int b = 0; b < 32; b++) {
      if (out[b] != 0xa5 || out[32 + size + (unsigned)b] != 0xa5) ck_fail("it wrote beside the host's memory");
    }
  }
}

static void check_copy(ck_session *s) {
  window from = window_of(s, WINDOW * s->copy_granularity, 3), to = window_of(s, WINDOW * s->copy_granularity, 4);
  uint64_t size, offset, unit = s->copy_granularity;
  for (unsigned i = 0; next_case(s, &i, &size, &offset);) {
    uint64_t source = offsets[(i * 7 + 2) % OFFSETS] * unit;
    memcpy(to.expected + offset, from.expected + source, size);
    CK_CALL(GRAFT_OK, s->memory.copy(to.stream, to.buffer, offset, from.buffer, source, size),
            "copy of %llu bytes from offset %llu to %llu", (unsigned long long)size, (unsigned long long)source,
            (unsigned long long)offset);
    compare(s, &to, "copy", size, offset);
  }
  /* Inside one buffer, apart from each other. */
  memcpy(to.expected + 5000 * unit, to.expected + 3 * unit, 1025 * unit);
  CK_CALL(GRAFT_OK, s->memory.copy(to.stream, to.buffer, 5000 * unit, to.buffer, 3 * unit, 1025 * unit),
          "copy inside a buffer");
  compare(s, &to, "copy inside the buffer", 1025 * unit, 5000 * unit);
}

static void check_fill(ck_session *s) {
  static const uint64_t counts[] = {1, 2, 3, 5, 7, 13, 16, 17, 31, 33, 129, 1025, 5001};
  window w = window_of(s, 128 * 1024 * s->copy_granularity, 5);
  for (uint32_t bytes = 1; bytes <= 16; bytes *= 2) {
    for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
      unsigned char pattern[16], *at;
      uint64_t offset = (i * 3 + 1) * bytes, size = counts[i] * bytes;
      ck_pattern(pattern, sizeof pattern, bytes * 100 + i);
      at = w.expected + offset;
      for (uint64_t k = 0; k < counts[i]; k++) memcpy(at + k * bytes, pattern, bytes);
      CK_CALL(GRAFT_OK, s->memory.fill(w.stream, w.buffer, offset, size, pattern, bytes),
              "fill of %llu times %u bytes at offset %llu", (unsigned long long)counts[i], bytes,
              (unsigned long long)offset);
      memset(pattern, 0xee, sizeof pattern); /* it was read before the call returned */
      compare(s, &w, "fill", size, offset);
    }
  }
}

/* The source is overwritten as soon as the call returns; earlier work keeps the stream busy. */
static void check_reusable(ck_session *s) {
  static const uint64_t amounts[] = {1, 17, 1025, 65537, 1048579, 4 << 20};
  uint64_t largest = amounts[5] * s->copy_granularity;
  window w = window_of(s, largest, 6);
  graft_buffer *busy = ck_buffer(s, 16 << 20);
  unsigned char *in = ck_alloc(largest);
  for (unsigned i = 0; i < 6; i++) {
    uint64_t size = amounts[i] * s->copy_granularity;
    ck_pattern(in, size, 200 + i);
    memcpy(w.expected, in, size);
    for (int k = 0; k < 3; k++) ck_fill_all(s, w.stream, busy, 16 << 20, 'x');
    CK_CALL(GRAFT_OK, s->memory.copy_from_host(w.stream, w.buffer, 0, in, size, GRAFT_COPY_SOURCE_REUSABLE),
            "copy_from_host of %llu bytes with SOURCE_REUSABLE", (unsigned long long)size);
    memset(in, 0xee, size);
    compare(s, &w, "copy_from_host with SOURCE_REUSABLE, its source overwritten afterwards,", size, 0);
  }
}

static void check_flags(ck_session *s) {
  window w = window_of(s, 4096 * s->copy_granularity, 7);
  uint64_t size = 64 * s->copy_granularity;
  unsigned char *other = ck_alloc(size);
  memset(other, 0x11, size);
  for (uint32_t flag = 2; flag <= 0x8000; flag <<= 1) {
    if (flag & s->memory_flags) continue;
    CK_CALL(GRAFT_INVALID_ARGUMENT, s->memory.copy_from_host(w.stream, w.buffer, 0, other, size, flag),
            "copy_from_host with the unknown flag 0x%x", flag);
    CK_CALL(GRAFT_INVALID_ARGUMENT, s->memory.copy_to_host(w.stream, other, w.buffer, 0, size, flag),
            "copy_to_host with the unknown flag 0x%x", flag);
  }
  compare(s, &w, "copies that were refused", size, 0);
  memcpy(w.expected, other, size);
  CK_CALL(GRAFT_OK, s->memory.copy_from_host(w.stream, w.buffer, 0, other, size, CK_HINT_FLAG),
          "copy_from_host with an unknown hint");
  ck_synchronize(s, w.stream);
  compare(s, &w, "copy_from_host with an unknown hint", size, 0);
}

/* Offsets beyond 4 GiB: the ones that a 32-bit variable would fold onto the beginning. */
static void check_far(ck_session *s) {
  const uint64_t far = (UINT64_C(1) << 32) + 4096 * s->copy_granularity, size = 1025 * s->copy_granularity;
  uint64_t left = ck_property(s, GRAFT_DEVICE_FREE_MEMORY, 8, UINT64_MAX), whole = far + (UINT64_C(1) << 20);
  whole = (whole + s->granularity - 1) / s->granularity * s->granularity;
  if (whole > s->max_allocation || whole > left) ck_skip("the device has no buffer of more than 4 GiB");
  graft_allocation request = {.struct_size = sizeof request, .bytes = whole};
  ck_doing("allocate %llu bytes", (unsigned long long)whole);
  graft_status status = s->memory.allocate(s->device, &request);
  if (status == GRAFT_OUT_OF_MEMORY) ck_skip("no memory for a buffer of more than 4 GiB");
  ck_is(status, GRAFT_OK);
  graft_stream *stream = ck_stream(s, 0);
  unsigned char *near = ck_alloc(size), *in = ck_alloc(size), *out = ck_alloc(size);
  ck_pattern(near, size, 8);
  ck_pattern(in, size, 9);
  uint64_t folded = far - (UINT64_C(1) << 32);
  ck_write(s, stream, request.buffer, folded, near, size);
  ck_write(s, stream, request.buffer, far, in, size);
  ck_read(s, stream, request.buffer, far, out, size);
  ck_same(out, in, size, "what was copied beyond 4 GiB");
  ck_read(s, stream, request.buffer, folded, out, size);
  ck_same(out, near, size, "what lies 4 GiB before it");
  CK_CALL(GRAFT_OK, s->memory.fill(stream, request.buffer, far, size / 8 * 8, "12345678", 8), "fill beyond 4 GiB");
  ck_read(s, stream, request.buffer, folded, out, size);
  ck_same(out, near, size, "what lies 4 GiB before a fill");
  CK_CALL(GRAFT_OK, s->memory.copy(stream, request.buffer, far, request.buffer, folded, size), "copy beyond 4 GiB");
  ck_read(s, stream, request.buffer, far, out, size);
  ck_same(out, near, size, "what was copied beyond 4 GiB inside the device");
  CK_CALL(GRAFT_OK, s->memory.release(s->device, request.buffer), "release");
}

static int32_t first_peer(ck_session *s) {
  int32_t peers[256];
  size_t size = 0;
  ck_doing("device_query(GRAFT_DEVICE_PEERS)");
  graft_status status =
      s->plugin.device_query(s->plugin.self, s->target->device, GRAFT_DEVICE_PEERS, peers, sizeof peers, &size);
  return status == GRAFT_OK && size >= sizeof *peers ? peers[0] : -1;
}

static void check_peer(ck_session *s) {
  if (!s->memory.copy_peer) ck_skip("the plugin has no copy_peer");
  int32_t index = first_peer(s);
  if (index < 0) ck_skip("the device names no peers");
  window to = window_of(s, 65536 * s->copy_granularity, 10), from = window_of(s, 65536 * s->copy_granularity, 11);
  graft_device *peer = NULL;
  graft_allocation request = {.struct_size = sizeof request, .bytes = 0};
  CK_CALL(GRAFT_OK, s->plugin.device_open(s->plugin.self, index, &peer), "device_open(%d)", index);
  request.bytes = (from.bytes + s->granularity - 1) / s->granularity * s->granularity;
  CK_CALL(GRAFT_OK, s->memory.allocate(peer, &request), "allocate on the peer");
  uint64_t size = 1025 * s->copy_granularity, unit = s->copy_granularity;
  CK_CALL(GRAFT_OK, s->memory.copy_peer(to.stream, s->device, to.buffer, 0, s->device, from.buffer, 0, size),
          "copy_peer on one device");
  memcpy(to.expected, from.expected, size);
  compare(s, &to, "copy_peer", size, 0);
  graft_stream *there = NULL;
  CK_CALL(GRAFT_OK, s->stream.create(peer, 0, 0, &there), "stream.create on the peer");
  CK_CALL(GRAFT_OK, s->memory.copy_peer(there, peer, request.buffer, unit, s->device, from.buffer, 3 * unit, size),
          "copy_peer to device %d", index);
  ck_synchronize(s, there);
  CK_CALL(GRAFT_OK, s->memory.copy_peer(to.stream, s->device, to.buffer, 7 * unit, peer, request.buffer, unit, size),
          "copy_peer from device %d", index);
  memcpy(to.expected + 7 * unit, from.expected + 3 * unit, size);
  compare(s, &to, "copy_peer there and back", size, 7 * unit);
  CK_CALL(GRAFT_OK, s->stream.destroy(there), "stream.destroy on the peer");
  CK_CALL(GRAFT_OK, s->memory.release(peer, request.buffer), "release on the peer");
  CK_CALL(GRAFT_OK, s->plugin.device_close(peer), "device_close(%d)", index);
}

static const ck_check checks[] = {
    {"copy.from_host", "copy_from_host writes its range and nothing else, at any multiple of the copy granularity.",
     CK_DEVICE, .run = check_from_host},
    {"copy.to_host", "copy_to_host reads its range and writes nothing else.", CK_DEVICE, .run = check_to_host},
    {"copy.device", "copy writes its range and nothing else.", CK_DEVICE, .run = check_copy},
    {"copy.fill", "fill takes patterns of 1, 2, 4, 8 and 16 bytes, read before it returns, and any number of them.",
     CK_DEVICE, .run = check_fill},
    {"copy.source_reusable", "With SOURCE_REUSABLE the source is free on return.", CK_DEVICE, .run = check_reusable},
    {"copy.flags", "An unknown must-understand flag is INVALID_ARGUMENT, without effect; a hint is ignored.", CK_DEVICE,
     .run = check_flags},
    {"copy.far", "Offsets have 64 bits.", CK_DEVICE, .run = check_far},
    {"copy.peer", "copy_peer reaches the devices that GRAFT_DEVICE_PEERS names.", CK_DEVICE, .run = check_peer},
};

const ck_table ck_copy_checks = {checks, sizeof checks / sizeof *checks};
