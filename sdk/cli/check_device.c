/* Devices: their number, their properties, opening and closing. */
#include <string.h>

#include "check.h"

static void check_count(ck_session *s) {
  int32_t first = -1, again = -1;
  CK_CALL(GRAFT_OK, s->plugin.device_count(s->plugin.self, &first), "device_count");
  if (first < 0) ck_fail("it says %d", first);
  if (!first) ck_fail("the plugin finds no device");
  for (int i = 0; i < 3; i++) {
    CK_CALL(GRAFT_OK, s->plugin.device_count(s->plugin.self, &again), "device_count, asked again");
    if (again != first) ck_fail("it says %d, and said %d before", again, first);
  }
  if (s->target->device >= first) ck_fail("device %d was asked for; the plugin has %d", s->target->device, first);
}

static void check_opens(ck_session *s) {
  ck_open_device(s);
}

/* --- properties --- */

typedef enum kind { TEXT, U32, U64, I32, I32_LIST, I32_PAIR } kind;

typedef struct property {
  graft_device_key key;
  const char *name;
  kind kind;
} property;

#define PROPERTY(key, kind) \
  { GRAFT_DEVICE_##key, #key, kind }

static const property properties[] = {
    PROPERTY(NAME, TEXT),           PROPERTY(VENDOR, TEXT),
    PROPERTY(DRIVER_VERSION, TEXT), PROPERTY(KIND, U32),
    PROPERTY(TOTAL_MEMORY, U64),    PROPERTY(FREE_MEMORY, U64),
    PROPERTY(MAX_ALLOCATION, U64),  PROPERTY(ALIGNMENT, U64),
    PROPERTY(GRANULARITY, U64),     PROPERTY(COPY_GRANULARITY, U64),
    PROPERTY(INDIVISIBLE, U32),     PROPERTY(UNIFIED_MEMORY, U32),
    PROPERTY(DTYPES, U64),          PROPERTY(DENORMALS, U64),
    PROPERTY(VECTOR_WIDTH, U32),    PROPERTY(COMPUTE_UNITS, U32),
    PROPERTY(PEERS, I32_LIST),      PROPERTY(DLPACK_TYPE, I32),
    PROPERTY(MEMORY_FLAGS, U32),    PROPERTY(STREAM_FLAGS, U32),
    PROPERTY(EVENT_FLAGS, U32),     PROPERTY(PRIORITIES, I32_PAIR),
    PROPERTY(MEMORY_KINDS, U32),    PROPERTY(WAITS_ACROSS, U32),
    PROPERTY(UNCACHED, U32),
};

typedef struct answer {
  unsigned char bytes[4096];
  size_t size;
} answer;

static graft_status ask(ck_session *s, const property *p, answer *a) {
  memset(a, 0xa5, sizeof *a);
  a->size = 0;
  ck_doing("device_query(GRAFT_DEVICE_%s)", p->name);
  return s->plugin.device_query(s->plugin.self, s->target->device, p->key, a->bytes, sizeof a->bytes, &a->size);
}

static void check_text(const answer *a) {
  if (a->size < 2 || a->size > sizeof a->bytes) ck_fail("the text has %zu bytes with its NUL", a->size);
  if (memchr(a->bytes, 0, a->size) != a->bytes + a->size - 1) ck_fail("the size does not count up to the text's NUL");
}

static void check_type(const property *p, const answer *a) {
  static const size_t sizes[] = {[U32] = 4, [U64] = 8, [I32] = 4, [I32_PAIR] = 8};
  if (p->kind == TEXT)
    check_text(a);
  else if (p->kind == I32_LIST && a->size % 4)
    ck_fail("the list of i32 has %zu bytes", a->size);
  else if (p->kind != I32_LIST && a->size != sizes[p->kind]) {
    ck_fail("the answer has %zu bytes, expected %zu", a->size, sizes[p->kind]);
  }
}

static bool power_of_two(uint64_t n) {
  return n && !(n & (n - 1));
}

static void check_peers(ck_session *s, const answer *a) {
  int32_t count = 0;
  CK_CALL(GRAFT_OK, s->plugin.device_count(s->plugin.self, &count), "device_count");
  ck_doing("device_query(GRAFT_DEVICE_PEERS)");
  for (size_t at = 0; at + 4 <= a->size; at += 4) {
    int32_t peer;
    memcpy(&peer, a->bytes + at, 4);
    if (peer < 0 || peer >= count) ck_fail("device %d of %d is named as a peer", peer, count);
    if (peer == s->target->device) ck_fail("the device is named as its own peer");
  }
}

static void check_sense(ck_session *s, const property *p, const answer *a) {
  uint64_t n = 0;
  int32_t pair[2];
  memcpy(&n, a->bytes, p->kind == U64 ? 8 : p->kind == U32 ? 4 : 0);
  switch (p->key) {
    case GRAFT_DEVICE_ALIGNMENT:
      if (!power_of_two(n)) ck_fail("%llu is no power of two", (unsigned long long)n);
      break;
    case GRAFT_DEVICE_GRANULARITY:
    case GRAFT_DEVICE_COPY_GRANULARITY:
    case GRAFT_DEVICE_MAX_ALLOCATION:
      if (!n) ck_fail("it is 0");
      break;
    case GRAFT_DEVICE_DTYPES:
    case GRAFT_DEVICE_DENORMALS:
      if (n >> 63) ck_fail("the set is 0x%llx; expected bits of dtype numbers", (unsigned long long)n);
      break;
    case GRAFT_DEVICE_INDIVISIBLE:
    case GRAFT_DEVICE_UNIFIED_MEMORY:
    case GRAFT_DEVICE_WAITS_ACROSS:
    case GRAFT_DEVICE_UNCACHED:
      if (n > 1) ck_fail("it is %llu, expected 0 or 1", (unsigned long long)n);
      break;
    case GRAFT_DEVICE_MEMORY_KINDS:
      if (!(n & 1u << GRAFT_MEMORY_DEVICE)) ck_fail("0x%llx lacks the device's own memory", (unsigned long long)n);
      break;
    case GRAFT_DEVICE_MEMORY_FLAGS:
    case GRAFT_DEVICE_STREAM_FLAGS:
    case GRAFT_DEVICE_EVENT_FLAGS:
      if (n >> 16) ck_fail("0x%llx holds hints; expected must-understand flags", (unsigned long long)n);
      break;
    case GRAFT_DEVICE_PRIORITIES:
      memcpy(pair, a->bytes, sizeof pair);
      if (pair[0] > pair[1]) ck_fail("the lowest, %d, is above the highest, %d", pair[0], pair[1]);
      break;
    case GRAFT_DEVICE_PEERS: check_peers(s, a); break;
    default: break;
  }
}

static void check_properties(ck_session *s) {
  static answer first, again;
  for (size_t i = 0; i < sizeof properties / sizeof *properties; i++) {
    const property *p = &properties[i];
    graft_status status = ask(s, p, &first);
    if (status == GRAFT_UNIMPLEMENTED && p->key != GRAFT_DEVICE_NAME) continue;
    ck_is(status, GRAFT_OK);
    check_type(p, &first);
    check_sense(s, p, &first);
    ck_is(ask(s, p, &again), GRAFT_OK);
    if (p->key != GRAFT_DEVICE_FREE_MEMORY &&
        (first.size != again.size || memcmp(first.bytes, again.bytes, first.size))) {
      ck_fail("asked twice, it answers differently");
    }
  }
}

/* A limit beside its whole. */
static void check_amounts(ck_session *s) {
  uint64_t total = ck_property(s, GRAFT_DEVICE_TOTAL_MEMORY, 8, 0);
  uint64_t left = ck_property(s, GRAFT_DEVICE_FREE_MEMORY, 8, 0);
  uint64_t granularity = ck_property(s, GRAFT_DEVICE_GRANULARITY, 8, 512);
  uint64_t copies = ck_property(s, GRAFT_DEVICE_COPY_GRANULARITY, 8, 1);
  uint64_t alignment = ck_property(s, GRAFT_DEVICE_ALIGNMENT, 8, 64);
  ck_doing("the device's properties");
  if (total && left > total) {
    ck_fail("free memory, %llu, is more than all memory, %llu", (unsigned long long)left, (unsigned long long)total);
  }
  if (granularity % copies) {
    ck_fail("the granularity of sizes, %llu, is no multiple of that of copies, %llu", (unsigned long long)granularity,
            (unsigned long long)copies);
  }
  if (alignment % copies) {
    ck_fail("the alignment, %llu, is no multiple of the granularity of copies, %llu", (unsigned long long)alignment,
            (unsigned long long)copies);
  }
}

static void check_unknown_key(ck_session *s) {
  static const property unknown[] = {{0, "of number 0", U32}, {0x7ffffff0, "of number 0x7ffffff0", U32}};
  static answer a;
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    ck_is(ask(s, &unknown[i], &a), GRAFT_UNIMPLEMENTED);
    for (size_t b = 0; b < sizeof a.bytes; b++) {
      if (a.bytes[b] != 0xa5) ck_fail("it said UNIMPLEMENTED and wrote its output");
    }
  }
}

static void check_capacity(ck_session *s) {
  static answer whole, cut;
  const property name = {GRAFT_DEVICE_NAME, "NAME", TEXT};
  ck_is(ask(s, &name, &whole), GRAFT_OK);
  const size_t capacities[] = {0, 1, whole.size - 1};
  for (size_t i = 0; i < 3; i++) {
    memset(&cut, 0xa5, sizeof cut);
    cut.size = 0;
    CK_CALL(GRAFT_INVALID_ARGUMENT,
            s->plugin.device_query(s->plugin.self, s->target->device, GRAFT_DEVICE_NAME, cut.bytes, capacities[i],
                                   &cut.size),
            "device_query(GRAFT_DEVICE_NAME) of %zu bytes with room for %zu", whole.size, capacities[i]);
    if (cut.size != whole.size) ck_fail("*size is %zu, expected %zu", cut.size, whole.size);
    for (size_t b = 0; b < whole.size; b++) {
      if (cut.bytes[b] != 0xa5) ck_fail("it wrote to *value");
    }
  }
}

/* All devices, one after the other: each handle is the host's only one. */
static void check_all_open(ck_session *s) {
  enum { MOST = 8 };
  int32_t count = 0;
  graft_device *devices[MOST] = {0};
  CK_CALL(GRAFT_OK, s->plugin.device_count(s->plugin.self, &count), "device_count");
  if (count > MOST) count = MOST;
  for (int32_t i = 0; i < count; i++) {
    CK_CALL(GRAFT_OK, s->plugin.device_open(s->plugin.self, i, &devices[i]), "device_open(%d)", i);
    if (!devices[i]) ck_fail("it said OK and gave no device");
    for (int32_t j = 0; j < i; j++) {
      if (devices[i] == devices[j]) ck_fail("it gave the handle of device %d", j);
    }
  }
  for (int32_t i = 0; i < count; i++) CK_CALL(GRAFT_OK, s->plugin.device_close(devices[i]), "device_close(%d)", i);
}

static const ck_check checks[] = {
    {"device.count", "device_count is constant, and there is a device to check.", CK_PLUGIN, .run = check_count,
     .shows = CK_COUNT},
    {"device.properties", "Each property has the type of its key, makes sense, and stays.", CK_COUNT,
     .run = check_properties},
    {"device.amounts", "Properties do not contradict each other.", CK_COUNT, .run = check_amounts},
    {"device.unknown_key", "A key that the plugin does not know is UNIMPLEMENTED.", CK_COUNT, .run = check_unknown_key},
    {"device.capacity", "Too little room is INVALID_ARGUMENT, and only *size is written.", CK_COUNT,
     .run = check_capacity},
    {"device.open", "A device opens and closes.", CK_COUNT, .run = check_opens, .shows = CK_DEVICE},
    {"device.all", "All devices can be open at once.", CK_COUNT, .run = check_all_open},
};

const ck_table ck_device_checks = {checks, sizeof checks / sizeof *checks};
