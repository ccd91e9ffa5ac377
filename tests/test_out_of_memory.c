/* Each request for memory of a call fails once, libgraft's own and those of the reference plugin: the call says that
 * memory is missing, or its results are right nevertheless; nothing is lost; and the next call is right. Then the
 * device is full from each of a call's blocks on, results and what is between: the call says so, and holds none of
 * them.
 *
 *   test_out_of_memory [LEVEL [OPS]]   level smoke's first case of each op; with a level all of its cases, of these ops
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bad_input.h"
#include "conformance/cases/cases.h"
#include "conformance/run/attempt.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "conformance/run/menu.h"
#include "device/device.h"
#include "heap.h"
#include "plugin/loader.h"
#include "suite.h"

/* Calls of lists leave a plan of each item that was reached, one try after the other: that ends. */
enum { SHARDS = 8, TIMES = 3, TIMES_MOST = 64, REQUESTS_MOST = 4096 };
static cf_selection selection = {.level = CF_SMOKE, .grad = -1, .ways = CF_CHOSEN_WAY};
static int shard;
static bool all_cases;

/* What all requests of one call came to. */
typedef struct attempt {
  graft_status status;
  bool failed; /* a request did */
  char text[320];
  cf_array results[CF_MAX_TENSORS];
} attempt;

/* Exact where freed blocks are not kept aside as if they were in use: see main. */
static uint64_t bytes_in_use(void) {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

/* The call, whose request number `failing` gets nothing; 0: none. */
static void call_once(cf_call *call, uint64_t failing, attempt *made) {
  const cf_backend backend = {.device = graft_device_reference(), .seed = 1};
  cf_result result = {.c = *call->c};
  graft_tensor *outs[CF_MAX_TENSORS] = {0};
  cf_attempt *s = calloc(1, sizeof *s);
  ck_assert_ptr_nonnull(s);
  *made = (attempt){0};
  *s = (cf_attempt){.backend = &backend, .call = call, .result = &result, .zone = 0xA5};
  ck_assert_msg(cf_attempt_begin(s) && cf_attempt_prepare(s, 0, outs), "%s", result.text);
  OK(graft_memory_empty_cache(backend.device)); /* so that memory of the device is asked for, too */
  heap_failing = failing ? heap_calls + failing : 0;
  made->status = cf_attempt_call(s, outs);
  made->failed = failing && heap_calls >= heap_failing;
  heap_failing = 0;
  if (made->status) snprintf(made->text, sizeof made->text, "%s", graft_last_error());
  ck_assert_msg(made->status || cf_attempt_collect(s, 0, outs), "%s", result.text);
  if (!made->status) memcpy(made->results, s->results[0], sizeof made->results);
  if (!made->status) memset(s->results[0], 0, sizeof s->results[0]);
  cf_attempt_release(s, outs);
  cf_attempt_end(s);
  free(s);
}

static void end(attempt *made) {
  for (int i = 0; i < CF_MAX_TENSORS; i++) cf_array_free(&made->results[i]);
}

static bool same_results(const attempt *a, const attempt *b) {
  for (int i = 0; i < CF_MAX_TENSORS; i++) {
    const cf_array *x = &a->results[i], *y = &b->results[i];
    if (x->numel != y->numel) return false;
    for (int64_t k = 0; x->v && k < x->numel; k++)
      if (!cf_same_value(x->v[k], y->v[k])) return false;
  }
  return true;
}

/* One request fails, some times over, so that what is lost each time is seen. `right` has the first results that there
 * are. False: there are not so many requests. */
static bool fail_request(cf_call *call, uint64_t request, attempt *right, const char *id) {
  uint64_t before = 0;
  bool grows = true;
  for (int time = 0; time < TIMES || (grows && time < TIMES_MOST); time++) {
    attempt made;
    call_once(call, request, &made);
    if (!made.status && right->status) {
      *right = made;
    } else if (!made.status) {
      ck_assert_msg(same_results(&made, right), "%s: request %d fails, and results are others", id, (int)request);
      end(&made);
    } else {
      ck_assert_msg(made.failed, "%s: %s", id, made.text);
      ck_assert_msg(made.status == GRAFT_OUT_OF_MEMORY && strstr(made.text, "memory"), "%s: request %d fails: %s", id,
                    (int)request, made.text);
    }
    if (!made.failed) return time > 0; /* the plan is there by now, and takes fewer */
    OK(graft_memory_empty_cache(graft_device_reference()));
    const uint64_t now = bytes_in_use();
    grows = now > before;
    before = now;
  }
  ck_assert_msg(!grows, "%s: request %d fails, and something is lost", id, (int)request);
  return true;
}

static char last_op[DSP_ROUTE_REFERENCE + 1][64]; /* by way */

static bool is_wanted(const cf_case *c) {
  const char *name = cf_case_op(c)->name;
  if (c->mode != CF_FORWARD || c->op_id % SHARDS != (uint32_t)shard) return false;
  char *last = last_op[c->way];
  if (!all_cases && strcmp(last, name) == 0) return false;
  snprintf(last, sizeof *last_op, "%s", name);
  return true;
}

/* First while nothing is known of the call, and again when its plan is there. */
static bool sweep(void *context, const cf_case *c, const char *id) {
  cf_call call;
  attempt right = {.status = GRAFT_INTERNAL};
  if (!is_wanted(c)) return true;
  ck_assert_msg(cf_call_open(c, &call) && cf_call_fill(&call, 1, true), "%s", id);
  for (int pass = 0; pass < 2; pass++) {
    uint64_t request = 1;
    while (request < REQUESTS_MOST && fail_request(&call, request, &right, id)) request++;
    ck_assert_uint_lt(request, REQUESTS_MOST);
    *(uint64_t *)context += request - 1;
  }
  end(&right);
  cf_call_close(&call);
  return true;
}

/* --- a full device --- */

static graft_status (*device_gives)(graft_device *device, graft_allocation *request);
static uint64_t blocks_asked, full_from; /* of a call: the block that finds the device full; 0: none does */

static graft_status allocate(graft_device *device, graft_allocation *request) {
  blocks_asked++;
  return full_from && blocks_asked >= full_from ? GRAFT_OUT_OF_MEMORY : device_gives(device, request);
}

static graft_memory_statistics memory_now(void) {
  graft_memory_statistics now = {.struct_size = sizeof now};
  OK(graft_memory_stats(graft_device_reference(), &now));
  return now;
}

static void expect_same_memory(const graft_memory_statistics *before, const char *id, uint64_t block) {
  const graft_memory_statistics now = memory_now();
  const bool same = now.allocation.current == before->allocation.current &&
                    now.active.current == before->active.current &&
                    now.allocated_bytes.current == before->allocated_bytes.current &&
                    now.active_bytes.current == before->active_bytes.current &&
                    now.requested_bytes.current == before->requested_bytes.current;
  ck_assert_msg(same, "%s: full from block %d on, %lld bytes are in use, not %lld", id, (int)block,
                (long long)now.allocated_bytes.current, (long long)before->allocated_bytes.current);
}

/* The call makes its results itself, where it can: those of the out form are there before it. */
static void call_on_full(cf_call *call, uint64_t block, attempt *made, const char *id) {
  const cf_backend backend = {.device = graft_device_reference(), .seed = 1};
  cf_result result = {.c = *call->c};
  graft_tensor *outs[CF_MAX_TENSORS] = {0};
  cf_attempt *s = calloc(1, sizeof *s);
  ck_assert_ptr_nonnull(s);
  *made = (attempt){0};
  *s = (cf_attempt){.backend = &backend, .call = call, .result = &result, .zone = 0xA5};
  ck_assert_msg(cf_attempt_begin(s), "%s", result.text);
  s->guarded &= call->c->layout == CF_IN_PLACE || call->c->layout == CF_OUT;
  ck_assert_msg(cf_attempt_prepare(s, 0, outs), "%s", result.text);
  OK(graft_memory_empty_cache(backend.device));
  const graft_memory_statistics before = memory_now();
  blocks_asked = 0, full_from = block;
  made->status = cf_attempt_call(s, outs);
  made->failed = block && blocks_asked >= block;
  full_from = 0;
  if (made->status) {
    snprintf(made->text, sizeof made->text, "%s", graft_last_error());
    expect_same_memory(&before, id, block);
  } else {
    ck_assert_msg(cf_attempt_collect(s, 0, outs), "%s", result.text);
    memcpy(made->results, s->results[0], sizeof made->results);
    memset(s->results[0], 0, sizeof s->results[0]);
  }
  cf_attempt_release(s, outs);
  cf_attempt_end(s);
  free(s);
}

/* False: the call asks for fewer blocks. */
static bool fill_device(cf_call *call, uint64_t block, const attempt *right, const char *id) {
  attempt made, next;
  call_on_full(call, block, &made, id);
  if (!made.failed) {
    ck_assert_msg(!made.status && same_results(&made, right), "%s: %s", id, made.text);
    end(&made);
    return false;
  }
  ck_assert_msg(
      made.status == GRAFT_OUT_OF_MEMORY && strstr(made.text, "out of memory") && strstr(made.text, " asked for"),
      "%s: full from block %d on: %s %s", id, (int)block, graft_status_name(made.status), made.text);
  call_on_full(call, 0, &next, id);
  ck_assert_msg(!next.status && same_results(&next, right), "%s: behind a full device: %s", id, next.text);
  end(&next);
  return true;
}

static bool fill_device_for(void *context, const cf_case *c, const char *id) {
  cf_call call;
  attempt right;
  if (!is_wanted(c)) return true;
  ck_assert_msg(cf_call_open(c, &call) && cf_call_fill(&call, 1, true), "%s", id);
  call_on_full(&call, 0, &right, id);
  uint64_t block = 1;
  ck_assert_msg(!right.status, "%s: %s", id, right.text);
  while (block < REQUESTS_MOST && fill_device(&call, block, &right, id)) block++;
  ck_assert_uint_lt(block, REQUESTS_MOST);
  *(uint64_t *)context += block - 1;
  end(&right);
  cf_call_close(&call);
  return true;
}

START_TEST(a_full_device_is_told_and_nothing_is_held) {
  uint64_t blocks = 0;
  setenv("GRAFT_NO_MEMORY_CACHING", "1", 1); /* each block is asked of the plugin */
  graft_memory_api *memory = &graft_device_reference()->backend->memory;
  device_gives = memory->allocate;
  memory->allocate = allocate;
  shard = _i;
  selection.ways |= 1u << DSP_ROUTE_DECOMPOSITION; /* those have most of the blocks */
  cf_menu(&selection, fill_device_for, &blocks);
  ck_assert(blocks || selection.ops);
}
END_TEST

START_TEST(missing_memory_is_told_and_nothing_is_lost) {
  uint64_t requests = 0;
  shard = _i;
  cf_menu(&selection, sweep, &requests);
  ck_assert(requests || selection.ops);
}
END_TEST

int main(int argc, char **argv) {
  if (!getenv("GLIBC_TUNABLES")) { /* read before main begins */
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
    execv("/proc/self/exe", argv);
  }
  const suite_test tests[] = {EACH(missing_memory_is_told_and_nothing_is_lost, SHARDS),
                              EACH(a_full_device_is_told_and_nothing_is_held, SHARDS),
                              {0}};
  const int level = argc > 1 ? cf_level_parse(argv[1]) : CF_SMOKE;
  if (level < 0) return fprintf(stderr, "usage: test_out_of_memory [smoke|mustpass|full [OPS]]\n"), 2;
  selection.level = (cf_level)level;
  selection.ops = argc > 2 ? argv[2] : NULL;
  all_cases = argc > 1;
  return run_suite("out_of_memory", tests, (suite_options){.timeout_s = argc > 1 ? 3600 : 300});
}
