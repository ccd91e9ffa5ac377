/* The reference device is opened when it is first needed. Each request for memory of that fails once: what needed it
 * says that memory is missing, and is right as soon as there is some. */
#include <string.h>

#include "graft/graft.h"
#include "heap.h"
#include "suite.h"

enum { REQUESTS_MOST = 1000 };

/* What needs the device, in a process that has none yet. */
typedef struct need {
  const char *name;
  graft_status (*meet)(void);
} need;

static graft_status ask_for_it(void) {
  return graft_device_reference() ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
}

static graft_status make_tensor(void) {
  graft_tensor *t = NULL;
  graft_status status = graft_op_full((int64_t[]){2}, 1, graft_scalar_int(1), GRAFT_F32, NULL, &t);
  graft_tensor_release(t);
  return status;
}

static graft_status load_graph(void) {
  graft_graph *graph = NULL;
  graft_status status = graft_graph_load(NULL, "/nowhere/at.all", &graph);
  return status == GRAFT_OUT_OF_MEMORY ? status : GRAFT_OK; /* that there is no such file comes later */
}

static const need needs[] = {
    {"graft_device_reference", ask_for_it}, {"an op without a tensor", make_tensor}, {"graft_graph_load", load_graph}};

/* Each request in turn, until all have been given; the first of them is the opening's own. */
START_TEST(test_missing_memory_is_an_error) {
  const need *n = &needs[_i];
  int failures = 0;
  for (uint64_t request = 1; request < REQUESTS_MOST; request++) {
    heap_failing = heap_calls + request;
    const graft_status status = n->meet();
    const bool failed = heap_calls >= heap_failing;
    heap_failing = 0;
    if (!failed) break;
    if (!status) continue; /* it was made do without */
    failures++;
    ck_assert_msg(status == GRAFT_OUT_OF_MEMORY, "%s: request %d fails: status %d, %s", n->name, (int)request,
                  (int)status, graft_last_error());
    ck_assert_msg(strstr(graft_last_error(), "memory"), "%s: \"%s\" does not say what is missing", n->name,
                  graft_last_error());
  }
  ck_assert_msg(failures > 0, "%s asks for no memory", n->name);
  ck_assert_msg(!n->meet(), "%s: %s", n->name, graft_last_error());
  ck_assert_ptr_nonnull(graft_device_reference());
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(test_missing_memory_is_an_error, ROWS(needs)), {0}};
  return run_suite("reference_memory", tests, (suite_options){.timeout_s = 60});
}
