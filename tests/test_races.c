/* Threads that meet in libgraft. Run as it is and, as the program `races`, built with ThreadSanitizer: CMakeLists.txt.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "device/device.h"
#include "graft/graft.h"
#include "plugin/loader.h"
#include "reference/reference.h"
#include "suite.h"

enum { THREADS = 8, ROUNDS = 200 };

/* --- a plugin whose neg publishes a memo at each call that finds none --- */

typedef struct memo {
  int owner; /* the thread whose function must destroy it */
  int uses;  /* plain on purpose: what the publisher wrote is seen by whoever finds the memo */
} memo;

static _Thread_local int thread_number;
static atomic_int published, destroyed, misdirected;
static const graft_host *the_host;
static graft_neg_fn plain_neg;

static void destroy(memo *m, int owner) {
  destroyed++;
  misdirected += m->owner != owner;
  free(m);
}
static void destroy_even(void *m) {
  destroy(m, 0);
}
static void destroy_odd(void *m) {
  destroy(m, 1);
}

static graft_status neg_with_memo(const graft_exec *exec, const graft_args_neg *args) {
  void *kept = exec->memo;
  if (!kept) {
    memo *mine = malloc(sizeof *mine);
    *mine = (memo){.owner = thread_number % 2, .uses = 1};
    published++;
    usleep(100); /* so that others find none, too */
    graft_status status = the_host->memo_publish(exec, mine, mine->owner ? destroy_odd : destroy_even, &kept);
    if (status) return status;
  }
  if (((memo *)kept)->uses != 1) return GRAFT_INTERNAL;
  return plain_neg(exec, args);
}

static graft_status open_plugin(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  static graft_plugin made;
  static graft_core_ops core;
  const graft_plugin *reference;
  graft_status status = ref_plugin_open(host, options, &reference);
  if (status) return status;
  the_host = host;
  made = *reference;
  core = *reference->core;
  plain_neg = core.neg;
  core.neg = neg_with_memo;
  made.core = &core;
  *plugin = &made;
  return GRAFT_OK;
}

static graft_rt_device *open_device(void) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  ck_assert_msg(!plg_negotiate(open_plugin, "racing", NULL, NULL, &backend), "%s", graft_last_error());
  ck_assert_msg(!graft_backend_device(backend, 0, &device), "%s", graft_last_error());
  return device;
}

/* --- threads --- */

typedef struct racer {
  pthread_t thread;
  int number;
  graft_rt_device *device;
  pthread_barrier_t *start;
  graft_status status;
} racer;

/* Each round is a new case, which all meet at once, each on a stream of its own. */
static void *race(void *context) {
  racer *r = context;
  graft_rt_stream *stream;
  thread_number = r->number;
  r->status = graft_stream_create(r->device, 0, 0, &stream);
  if (!r->status) graft_stream_set_current(stream);
  for (int64_t round = 1; round <= ROUNDS; round++) {
    graft_tensor *x = NULL, *out = NULL;
    if (!r->status) r->status = graft_tensor_empty(r->device, GRAFT_F32, 1, &round, &x);
    pthread_barrier_wait(r->start);
    if (!r->status) r->status = graft_op_neg(x, &out);
    graft_tensor_release(x);
    graft_tensor_release(out);
  }
  graft_stream_set_current(r->device->default_stream);
  graft_stream_destroy(stream);
  return NULL;
}

START_TEST(memos_are_destroyed_by_who_made_them) {
  pthread_barrier_t start;
  racer racers[THREADS];
  graft_rt_device *device = open_device();
  pthread_barrier_init(&start, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    racers[i] = (racer){.number = i, .device = device, .start = &start};
    ck_assert_int_eq(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(racers[i].thread, NULL);
    ck_assert_int_eq(racers[i].status, GRAFT_OK);
  }
  ck_assert_int_gt(published, ROUNDS); /* else there was no race */
  ck_assert_int_eq(published - destroyed, ROUNDS);
  ck_assert_int_eq(misdirected, 0);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(memos_are_destroyed_by_who_made_them), {0}};
  return run_suite("races", tests, (suite_options){.timeout_s = 120});
}
