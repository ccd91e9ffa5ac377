/* Every public function with NULL in each place: none may crash, and each answers as the headers say (GRAFT_NULLABLE
 * and GRAFT_NULL_GIVES in graft/error.h). The calls are generated from the headers by null_calls.py. They run in a
 * child, and a new one goes on behind a call that ends it. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "graft/bridge.h"
#include "graft/custom_ops.h"
#include "graft/graft.h"
#include "suite.h"

/* --- good arguments --- */

static graft_rt_device *good_device(void) {
  return graft_device_reference();
}

static graft_rt_backend *good_backend(void) {
  graft_rt_backend *backend = NULL;
  ck_assert_int_eq(graft_backend_open("reference", NULL, &backend), GRAFT_OK);
  return backend;
}

static graft_rt_stream *good_stream(void) {
  return graft_stream_current(good_device());
}

static graft_rt_event *good_event(void) {
  graft_rt_event *event = NULL;
  ck_assert_int_eq(graft_event_create(good_device(), 0, &event), GRAFT_OK);
  return event;
}

static graft_generator *good_generator(void) {
  return graft_generator_default(good_device());
}

static graft_graph *good_graph(void) {
  graft_graph *graph = NULL;
  ck_assert_int_eq(graft_graph_create(good_device(), &graph), GRAFT_OK);
  return graph;
}

static graft_graph_exec *good_exec(void) {
  graft_graph_exec *exec = NULL;
  ck_assert_int_eq(graft_graph_compile(good_graph(), good_device(), NULL, &exec), GRAFT_OK);
  return exec;
}

static graft_graph_pool *good_pool(void) {
  graft_graph_pool *pool = NULL;
  ck_assert_int_eq(graft_graph_pool_create(good_device(), &pool), GRAFT_OK);
  return pool;
}

/* Zeros: room for outs, numbers and sized structs. */
static void *good_memory(void) {
  static uint64_t room[1024];
  return memset(room, 0, sizeof room);
}

static int64_t *good_ints(void) {
  static int64_t ints[] = {2, 2, 2, 2};
  return ints;
}

static graft_tensor *good_tensor(void) {
  const float values[] = {1, 2, 3, 4};
  graft_tensor *tensor = NULL;
  ck_assert_int_eq(graft_tensor_from_host(good_device(), GRAFT_F32, 2, good_ints(), values, &tensor), GRAFT_OK);
  return tensor;
}

static graft_tensor *const *good_tensors(void) {
  static graft_tensor *tensors[1];
  tensors[0] = good_tensor();
  return tensors;
}

static graft_tensor *const *good_null_item(void) {
  static graft_tensor *tensors[1];
  return tensors;
}

static graft_storage *good_storage(void) {
  return graft_tensor_storage(good_tensor());
}

static const graft_view *good_view(void) {
  static graft_view view = {.dtype = GRAFT_F32, .ndim = 1};
  view.sizes = view.strides = good_ints();
  return &view;
}

static const graft_value *good_values(void) {
  static graft_value value = {.kind = GRAFT_VALUE_TENSOR};
  value.as.tensor = good_tensor();
  return &value;
}

static graft_scalar *good_scalars(void) {
  static graft_scalar scalar;
  scalar = graft_scalar_int(1);
  return &scalar;
}

static graft_memory_statistics *good_statistics(void) {
  graft_memory_statistics *statistics = good_memory();
  statistics->struct_size = sizeof *statistics;
  return statistics;
}

static struct DLManagedTensorVersioned *good_dlpack(void) {
  struct DLManagedTensorVersioned *managed = NULL;
  ck_assert_int_eq(graft_tensor_to_dlpack(good_tensor(), &managed), GRAFT_OK);
  return managed;
}

static struct DLManagedTensor *good_dlpack_old(void) {
  struct DLManagedTensor *managed = NULL;
  ck_assert_int_eq(graft_tensor_to_dlpack_old(good_tensor(), &managed), GRAFT_OK);
  return managed;
}

static void good_take(void *context, const graft_profile_record *record) {
  (void)context, (void)record;
}

static graft_status good_hook(void *context, graft_tensor *grad, graft_tensor **replacement) {
  (void)context, (void)grad, (void)replacement;
  return GRAFT_OK;
}

/* --- the calls --- */

typedef struct null_answer {
  graft_status status;
  bool given; /* what GRAFT_NULL_GIVES says */
} null_answer;

typedef struct null_call {
  void (*call)(null_answer *answer);
  enum { ALLOWED, STATUS, GIVES, VOID } expected;
  const char *function, *place;
  const char *subject, *parameter; /* what the text must name */
} null_call;

#include "null_calls.inc"

/* What a child leaves for its parent. */
typedef struct progress {
  int at, wrong;
} progress;

static bool text_names(const null_call *row) {
  return strstr(graft_last_error(), row->subject) && strstr(graft_last_error(), row->parameter);
}

static bool is_answered(const null_call *row) {
  null_answer answer = {.status = GRAFT_INTERNAL};
  row->call(&answer);
  if (row->expected == ALLOWED) return true;
  if (row->expected == STATUS && answer.status != GRAFT_INVALID_ARGUMENT) return false;
  if (row->expected == GIVES && !answer.given) return false;
  return text_names(row);
}

static void run_from(int first, progress *shared) {
  for (int i = first; i < ROWS(null_calls); i++) {
    shared->at = i;
    if (is_answered(&null_calls[i])) continue;
    shared->wrong++;
    fprintf(stderr, "%s with %s = NULL is not answered as its header says; the text is: %s\n", null_calls[i].function,
            null_calls[i].place, graft_last_error());
  }
}

START_TEST(every_null_is_answered) {
  progress *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert(shared != MAP_FAILED);
  int crashes = 0;
  for (int first = 0; first < ROWS(null_calls); first = shared->at + 1) {
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
      run_from(first, shared);
      _exit(0);
    }
    int how;
    ck_assert_int_eq(waitpid(child, &how, 0), child);
    if (WIFEXITED(how)) break;
    crashes++;
    fprintf(stderr, "%s with %s = NULL: %s\n", null_calls[shared->at].function, null_calls[shared->at].place,
            strsignal(WTERMSIG(how)));
  }
  ck_assert_msg(!crashes && !shared->wrong, "%d of %d calls with NULL crash, %d are not answered as the headers say",
                crashes, ROWS(null_calls), shared->wrong);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(every_null_is_answered), {0}};
  return run_suite("null_calls", tests, (suite_options){.timeout_s = 300});
}
