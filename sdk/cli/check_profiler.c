/* Extension "graft.profiler": records of copies and fills, and the clocks. */
#include <string.h>
#include <time.h>

#include "check.h"

enum { BYTES = 1 << 16, RECORDS_MAX = 4096, KINDS = GRAFT_RECORD_FILL + 1 };

typedef struct records {
  graft_profiler_record items[RECORDS_MAX];
  size_t count;
} records;

static const graft_profiler_api *find(ck_session *s) {
  return ck_extension(s, GRAFT_EXTENSION_PROFILER, GRAFT_PROFILER_VERSION, "the plugin records nothing");
}

/* The table, where it is whole: else check_table says so. */
static const graft_profiler_api *whole(ck_session *s) {
  const graft_profiler_api *api = find(s);
  if (!api || !GRAFT_HAS(api, graft_profiler_api, clock) || !api->start || !api->stop || !api->mark || !api->drain) {
    ck_skip("its table is not whole");
  }
  return api;
}

static void check_table(ck_session *s) {
  const graft_profiler_api *api = find(s);
  if (!api || api->struct_size < sizeof *api) ck_fail("its table is too short");
  ck_doing("graft_profiler_api");
  if (!api->start) ck_fail("start is NULL");
  if (!api->stop) ck_fail("stop is NULL");
  if (!api->mark) ck_fail("mark is NULL");
  if (!api->drain) ck_fail("drain is NULL");
  if (!api->clock) ck_fail("clock is NULL");
}

/* --- work that leaves records --- */

static uint64_t bytes_of(const ck_session *s) {
  uint64_t unit = s->copy_granularity > 1 ? s->copy_granularity : 1;
  return (BYTES + unit - 1) / unit * unit;
}

static uint32_t op_of(graft_record_kind kind) {
  return GRAFT_OP_ABS + (uint32_t)kind;
}

static uint64_t correlation_of(graft_record_kind kind) {
  return UINT64_C(1) << 63 | (uint64_t)kind;
}

/* A copy or a fill, marked by its kind, of `bytes` bytes of the first buffer. */
static void submit(ck_session *s, const graft_profiler_api *api, graft_stream *stream, graft_record_kind kind,
                   graft_buffer *const *buffers, char *host) {
  const graft_memory_api *memory = &s->memory;
  uint64_t bytes = bytes_of(s);
  const uint64_t pattern[2] = {0};
  CK_CALL(GRAFT_OK, api->mark(stream, op_of(kind), correlation_of(kind)), "mark");
  switch (kind) {
    case GRAFT_RECORD_COPY:
      CK_CALL(GRAFT_OK, memory->copy(stream, buffers[1], 0, buffers[0], 0, bytes), "copy of what is recorded");
      break;
    case GRAFT_RECORD_COPY_FROM_HOST:
      CK_CALL(GRAFT_OK, memory->copy_from_host(stream, buffers[0], 0, host, bytes, 0), "copy_from_host, recorded");
      break;
    case GRAFT_RECORD_COPY_TO_HOST:
      CK_CALL(GRAFT_OK, memory->copy_to_host(stream, host, buffers[0], 0, bytes, 0), "copy_to_host, recorded");
      break;
    default: CK_CALL(GRAFT_OK, memory->fill(stream, buffers[0], 0, bytes, pattern, sizeof pattern), "fill, recorded");
  }
}

static void submit_all(ck_session *s, const graft_profiler_api *api, graft_stream *stream) {
  graft_buffer *const buffers[] = {ck_buffer(s, bytes_of(s)), ck_buffer(s, bytes_of(s))};
  char *host = ck_alloc(bytes_of(s));
  memset(host, 'x', bytes_of(s));
  for (graft_record_kind kind = GRAFT_RECORD_COPY; kind < KINDS; kind++) submit(s, api, stream, kind, buffers, host);
  ck_synchronize(s, stream);
}

static void take(void *context, const graft_profiler_record *record) {
  records *all = context;
  if (all->count < RECORDS_MAX) all->items[all->count++] = *record;
}

static void drain(ck_session *s, const graft_profiler_api *api, records *all) {
  uint64_t lost = 77;
  all->count = 0;
  CK_CALL(GRAFT_OK, api->drain(s->device, take, all, &lost), "drain");
  if (lost) ck_fail("it lost %llu of %zu records", (unsigned long long)lost, all->count);
}

/* --- the checks --- */

static void check_records(ck_session *s) {
  static records all;
  const graft_profiler_api *api = whole(s);
  graft_stream *stream = ck_stream(s, 0);
  CK_CALL(GRAFT_OK, api->start(s->device), "start");
  submit_all(s, api, stream);
  CK_CALL(GRAFT_OK, api->stop(s->device), "stop");
  drain(s, api, &all);
  uint64_t sums[KINDS] = {0};
  for (size_t i = 0; i < all.count; i++) {
    const graft_profiler_record *r = &all.items[i];
    if (r->struct_size < sizeof *r) ck_fail("a record's struct_size is %zu", r->struct_size);
    if (r->kind < KINDS) sums[r->kind] += r->bytes;
    graft_record_kind kind = (graft_record_kind)(r->correlation & 0xff);
    if (r->correlation != correlation_of(kind) || r->op_id != op_of(kind)) {
      ck_fail("a record of kind %u has op id %u and correlation 0x%llx, which no mark had", (unsigned)r->kind,
              (unsigned)r->op_id, (unsigned long long)r->correlation);
    }
  }
  for (graft_record_kind kind = GRAFT_RECORD_COPY; kind < KINDS; kind++) {
    if (sums[kind] == bytes_of(s)) continue;
    ck_fail("there are records of %llu bytes of kind %u, expected %llu", (unsigned long long)sums[kind], (unsigned)kind,
            (unsigned long long)bytes_of(s));
  }
}

static void check_drain(ck_session *s) {
  static records all;
  const graft_profiler_api *api = whole(s);
  graft_stream *stream = ck_stream(s, 0);
  CK_CALL(GRAFT_OK, api->start(s->device), "start");
  submit_all(s, api, stream);
  drain(s, api, &all);
  drain(s, api, &all);
  if (all.count) ck_fail("it gave %zu records again", all.count);
  CK_CALL(GRAFT_OK, api->stop(s->device), "stop");
}

static void check_period(ck_session *s) {
  static records all;
  const graft_profiler_api *api = whole(s);
  graft_stream *stream = ck_stream(s, 0);
  CK_CALL(GRAFT_OK, api->stop(s->device), "stop where nothing was started");
  CK_CALL(GRAFT_OK, api->start(s->device), "start");
  submit_all(s, api, stream);
  CK_CALL(GRAFT_OK, api->start(s->device), "start, which forgets");
  drain(s, api, &all);
  if (all.count) ck_fail("there are %zu records of what was submitted before start", all.count);
  CK_CALL(GRAFT_OK, api->stop(s->device), "stop");
  submit_all(s, api, stream);
  drain(s, api, &all);
  if (all.count) ck_fail("there are %zu records of what was submitted after stop", all.count);
}

typedef struct moment {
  uint64_t device_ns, host_ns;
} moment;

static uint64_t host_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static moment read_clock(ck_session *s, const graft_profiler_api *api) {
  moment now = {0, 0};
  uint64_t before = host_clock();
  CK_CALL(GRAFT_OK, api->clock(s->device, &now.device_ns, &now.host_ns), "clock");
  if (now.host_ns < before || now.host_ns > host_clock()) {
    ck_fail("its %llu ns lie beside the call on the host's CLOCK_MONOTONIC", (unsigned long long)now.host_ns);
  }
  return now;
}

static void check_clock(ck_session *s) {
  static records all;
  const graft_profiler_api *api = whole(s);
  graft_stream *stream = ck_stream(s, 0);
  CK_CALL(GRAFT_OK, api->start(s->device), "start");
  moment before = read_clock(s, api);
  submit_all(s, api, stream);
  moment after = read_clock(s, api);
  CK_CALL(GRAFT_OK, api->stop(s->device), "stop");
  drain(s, api, &all);
  for (size_t i = 0; i < all.count; i++) {
    const graft_profiler_record *r = &all.items[i];
    ck_doing("the record of a command of kind %u", (unsigned)r->kind);
    if (r->end_ns < r->begin_ns) ck_fail("it ends before it begins");
    if (r->begin_ns < before.device_ns) ck_fail("it begins before it was submitted, by what clock said then");
    if (r->end_ns > after.device_ns) ck_fail("it ends after somebody had waited for it, by what clock said then");
  }
}

static const ck_check checks[] = {
    {"profiler.table", "The table of \"graft.profiler\" is whole.", CK_DEVICE, .run = check_table},
    {"profiler.records", "Each copy and fill leaves records of all its bytes, with its kind and the latest mark.",
     CK_DEVICE, .run = check_records},
    {"profiler.drain", "drain forgets what it handed over.", CK_DEVICE, .run = check_drain},
    {"profiler.period", "There are records of what is submitted between start and stop only; start forgets.", CK_DEVICE,
     .run = check_period},
    {"profiler.clock", "clock names one moment of its call, by which commands run after their submission.", CK_DEVICE,
     .run = check_clock},
};

const ck_table ck_profiler_checks = {checks, sizeof checks / sizeof *checks};
