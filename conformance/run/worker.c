#include "conformance/run/worker.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/run/case.h"
#include "conformance/run/custom_rows.h"
#include "graft_opencl.h"

enum { CF_WORKER_FD = 3, CF_MAX_JOBS = 64, CF_HELLO_SECONDS = 120 };

static bool cf_read_all(int fd, void *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = read(fd, (char *)to + done, bytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

static bool cf_write_all(int fd, const void *from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = send(fd, (const char *)from + done, bytes - done, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

static double cf_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- the child ---- */

static const cf_arithmetics *cf_arithmetics_of(const graft_plugin *p) {
  const void *table = NULL;
  return p->extension && p->extension(p->self, CF_ARITHMETICS, 1, &table) == GRAFT_OK ? table : NULL;
}

graft_status cf_backend_open(const cf_options *options, cf_backend *backend) {
  graft_rt_backend *b = NULL;
  int32_t count = 0;
  const char *const *plugin_options = options->plugin_option_count ? options->plugin_options : NULL;
  graft_status s = graft_backend_open(options->backend, plugin_options, &b);
  if (s == GRAFT_OK) s = graft_backend_device_count(b, &count);
  if (s != GRAFT_OK) return s;
  if (options->device < 0 || options->device >= count)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s has no device %d: it has %d", options->backend, options->device, count);
  s = graft_backend_device(b, options->device, &backend->device);
  if (s != GRAFT_OK) return s;
  backend->arithmetics = cf_arithmetics_of(&b->plugin);
  backend->flushes = !(backend->device->denormals & dt_bit(GRAFT_F32));
  backend->seed = options->seed;
  backend->dump = options->dump;
  return GRAFT_OK;
}

static void cf_hello_device(cf_hello *hello, graft_rt_device *device) {
  const graft_plugin *plugin = &device->backend->plugin;
  size_t size;
  snprintf(hello->plugin, sizeof hello->plugin, "%s %s", plugin->name, plugin->version ? plugin->version : "");
  snprintf(hello->device, sizeof hello->device, "%s", graft_device_text(device));
  if (graft_device_query(device, GRAFT_DEVICE_NAME, hello->name, sizeof hello->name, &size) != GRAFT_OK)
    hello->name[0] = 0;
  if (graft_device_query(device, GRAFT_DEVICE_DRIVER_VERSION, hello->driver, sizeof hello->driver, &size) != GRAFT_OK)
    hello->driver[0] = 0;
}

/* A result, and what the plugin counted until then. */
typedef struct cf_answer {
  cf_result result;
  cf_statistics statistics;
  uint32_t leaving; /* the device failed: the worker ends after this answer */
} cf_answer;

static void cf_take_statistics(cf_statistics *s, graft_rt_device *device) {
  const graft_plugin *p = &device->backend->plugin;
  const void *table = NULL;
  graft_opencl_statistics statistics = {.struct_size = sizeof statistics};
  if (!p->extension || p->extension(p->self, GRAFT_OPENCL_STATISTICS, 1, &table) != GRAFT_OK) return;
  if (((const graft_opencl_statistics_api *)table)->query(p->self, &statistics) != GRAFT_OK) return;
  *s = (cf_statistics){.programs_built = statistics.programs_built,
                       .programs_with_header = statistics.programs_with_header,
                       .programs_loaded = statistics.programs_loaded,
                       .build_nanoseconds = statistics.build_nanoseconds,
                       .launches = statistics.launches,
                       .known = true};
}

bool cf_settle(cf_result *r, graft_status device, const char *text) {
  bool failed = device != GRAFT_OK && device != GRAFT_UNIMPLEMENTED;
  if (failed && r->outcome != CF_FAIL) {
    r->outcome = CF_FAIL;
    snprintf(r->text, sizeof r->text, "right so far, but then the device failed: %s", text);
  }
  return failed;
}

int cf_worker_main(const cf_options *options) {
  cf_backend backend = {0};
  cf_hello hello = {0};
  cf_case c;
  dup2(STDERR_FILENO, STDOUT_FILENO);   /* stdout is the report's */
  setenv("GRAFT_FALLBACK", "allow", 0); /* the report counts what leaves the device; no need to warn, too */
  setenv("GRAFT_CACHE_DIR", "none", 0); /* to save thousands of programs of one use takes a third of the time */
  if (cf_backend_open(options, &backend) != GRAFT_OK || cf_custom_take() != GRAFT_OK) {
    hello.status = 2;
    snprintf(hello.text, sizeof hello.text, "%s", graft_last_error());
    cf_write_all(CF_WORKER_FD, &hello, sizeof hello);
    return 2;
  }
  cf_hello_device(&hello, backend.device);
  if (!cf_write_all(CF_WORKER_FD, &hello, sizeof hello)) return 2;
  while (cf_read_all(CF_WORKER_FD, &c, sizeof c) && c.op_id != 0) {
    cf_answer answer = {0};
    char id[CF_ID_BYTES];
    if (options->verbose && cf_case_id(&c, id)) fprintf(stderr, "case %s\n", id);
    cf_run(&backend, &c, &answer.result);
    cf_take_statistics(&answer.statistics, backend.device);
    answer.leaving = cf_settle(&answer.result, graft_device_synchronize(backend.device), graft_last_error());
    if (!cf_write_all(CF_WORKER_FD, &answer, sizeof answer)) return 2;
    if (answer.leaving) return 0;
  }
  return 0;
}

/* ---- the parent ---- */

typedef struct cf_worker {
  pid_t pid;
  int fd;
  bool ready;       /* it has said hello */
  int64_t index;    /* of the case at work, -1: none */
  uint32_t at, end; /* the cases it does after that one */
  cf_answer last;   /* with the counts so far */
  double deadline;
} cf_worker;

typedef struct cf_crew {
  const cf_options *options;
  const cf_cases *cases;
  cf_hello *hello;
  cf_result_fn visit;
  void *context;
  cf_worker workers[CF_MAX_JOBS];
  uint32_t jobs, next, failed_starts;
  bool stopped;
  int status;
} cf_crew;

void cf_exec_self(const cf_options *o, const char *as, int from, int to) {
  char device[16], seed[24];
  const char *argv[64] = {"graft", "conformance", as, "-b", o->backend, "-d", device, "--seed", seed};
  int n = 9;
  snprintf(device, sizeof device, "%d", o->device);
  snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
  if (o->verbose) argv[n++] = "--verbose";
  for (uint32_t i = 0; i < o->plugin_option_count; i++) argv[n++] = "-o", argv[n++] = o->plugin_options[i];
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a plugin that never comes back would keep it once the parent is gone */
  if (dup2(from, to) < 0) _exit(127);
  execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
  _exit(127);
}

static bool cf_worker_start(cf_crew *crew, cf_worker *w) {
  int pair[2];
  w->pid = 0, w->fd = -1, w->ready = false, w->index = -1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  w->pid = fork();
  if (w->pid == 0) cf_exec_self(crew->options, "--worker", pair[1], CF_WORKER_FD);
  close(pair[1]);
  w->fd = pair[0];
  w->deadline = cf_seconds() + CF_HELLO_SECONDS;
  return w->pid > 0;
}

static void cf_add_statistics(cf_statistics *sum, const cf_statistics *last) {
  sum->known |= last->known;
  sum->programs_built += last->programs_built;
  sum->programs_with_header += last->programs_with_header;
  sum->programs_loaded += last->programs_loaded;
  sum->build_nanoseconds += last->build_nanoseconds;
  sum->launches += last->launches;
}

static void cf_worker_end(cf_crew *crew, cf_worker *w, int *status) {
  cf_add_statistics(&crew->hello->statistics, &w->last.statistics);
  memset(&w->last, 0, sizeof w->last);
  if (w->fd >= 0) close(w->fd);
  if (w->pid > 0) {
    while (waitpid(w->pid, status, 0) < 0 && errno == EINTR) {
    }
  }
  w->fd = -1, w->pid = 0, w->ready = false;
}

static void cf_deliver(cf_crew *crew, int64_t index, const cf_result *r) {
  if (!crew->visit(crew->context, (uint32_t)index, r)) crew->stopped = true;
}

/* The next case of the worker that has most to do: what is left is done in its order, so that each of them meets one
 * shape after another. */
static void cf_steal(cf_crew *crew, cf_worker *w) {
  cf_worker *from = &crew->workers[0];
  for (uint32_t i = 1; i < crew->jobs; i++) {
    if (crew->workers[i].end - crew->workers[i].at > from->end - from->at) from = &crew->workers[i];
  }
  if (from->at == from->end) return;
  w->at = from->at++;
  w->end = from->at;
}

/* Whether there is a case for this worker. The cases of a topic stay with one, which has its programs. */
static bool cf_claim(cf_crew *crew, cf_worker *w) {
  const cf_cases *cases = crew->cases;
  if (w->at == w->end && crew->next < cases->count) {
    w->at = w->end = crew->next;
    while (w->end < cases->count && cases->items[w->end].topic == cases->items[w->at].topic) w->end++;
    crew->next = w->end;
  } else if (w->at == w->end) {
    cf_steal(crew, w);
  }
  return w->at < w->end;
}

static bool cf_next_case(cf_crew *crew, cf_worker *w) {
  static const cf_case end = {0};
  bool more = !crew->stopped && cf_claim(crew, w);
  w->index = more ? (int64_t)w->at++ : -1;
  w->deadline = cf_seconds() + (more ? crew->options->time_limit_s : 10);
  return cf_write_all(w->fd, more ? &crew->cases->items[w->index] : &end, sizeof end);
}

static void cf_say_ending(int status, char *text, size_t capacity) {
  if (WIFSIGNALED(status))
    snprintf(text, capacity, "the worker died: %s", strsignal(WTERMSIG(status)));
  else
    snprintf(text, capacity, "the worker ended with status %d", WEXITSTATUS(status));
}

/* It had no more cases, and has ended: a driver or a plugin may fail even then. */
static void cf_worker_left(cf_crew *crew, cf_worker *w) {
  int status = 0;
  cf_worker_end(crew, w, &status);
  if (status == 0) return;
  crew->hello->bad_endings++;
  cf_say_ending(status, crew->hello->text, sizeof crew->hello->text);
}

/* The worker is gone: its case is red; another worker takes its place while there is work. */
static void cf_worker_died(cf_crew *crew, cf_worker *w, bool timed_out) {
  int status = 0;
  int64_t index = w->index;
  bool was_ready = w->ready;
  if (timed_out) kill(w->pid, SIGKILL);
  cf_worker_end(crew, w, &status);
  if (index >= 0) {
    cf_result r = {.c = crew->cases->items[index], .outcome = timed_out ? CF_TIMEOUT : CF_CRASH, .ratio = INFINITY};
    if (timed_out)
      snprintf(r.text, sizeof r.text, "no answer within %.0f s", crew->options->time_limit_s);
    else
      cf_say_ending(status, r.text, sizeof r.text);
    cf_deliver(crew, index, &r);
  } else if (was_ready && timed_out) {
    crew->hello->bad_endings++;
    snprintf(crew->hello->text, sizeof crew->hello->text, "the worker did not end");
  }
  if (!was_ready && ++crew->failed_starts >= 3) {
    crew->stopped = true, crew->status = 2;
    snprintf(crew->hello->text, sizeof crew->hello->text, "%s",
             timed_out ? "the device was not open within 120 s" : "the worker dies before the device is open");
  }
  if (!crew->stopped && cf_claim(crew, w)) cf_worker_start(crew, w);
}

static void cf_take_hello(cf_crew *crew, cf_worker *w) {
  cf_hello hello;
  if (!cf_read_all(w->fd, &hello, sizeof hello)) {
    cf_worker_died(crew, w, false);
    return;
  }
  if (hello.status != 0) {
    *crew->hello = hello;
    crew->stopped = true, crew->status = hello.status;
    cf_worker_end(crew, w, &(int){0});
    return;
  }
  w->ready = true;
  crew->failed_starts = 0;
  memcpy(crew->hello->device, hello.device, sizeof hello.device);
  memcpy(crew->hello->name, hello.name, sizeof hello.name);
  memcpy(crew->hello->driver, hello.driver, sizeof hello.driver);
  memcpy(crew->hello->plugin, hello.plugin, sizeof hello.plugin);
  if (!cf_next_case(crew, w)) cf_worker_died(crew, w, false);
}

static void cf_take_answer(cf_crew *crew, cf_worker *w) {
  if (!w->ready) {
    cf_take_hello(crew, w);
    return;
  }
  if (w->index < 0) { /* it was told to end, and has */
    cf_worker_left(crew, w);
    return;
  }
  if (!cf_read_all(w->fd, &w->last, sizeof w->last)) {
    cf_worker_died(crew, w, false);
    return;
  }
  cf_deliver(crew, w->index, &w->last.result);
  if (w->last.leaving) {
    w->index = -1;
    cf_worker_died(crew, w, false);
    return;
  }
  if (!cf_next_case(crew, w)) cf_worker_died(crew, w, false);
}

/* Waits for any worker; false when none is left. */
static bool cf_crew_turn(cf_crew *crew) {
  struct pollfd fds[CF_MAX_JOBS];
  uint32_t who[CF_MAX_JOBS], n = 0;
  double now = cf_seconds(), wait = 3600;
  for (uint32_t i = 0; i < crew->jobs; i++) {
    cf_worker *w = &crew->workers[i];
    if (w->pid <= 0) continue;
    fds[n] = (struct pollfd){.fd = w->fd, .events = POLLIN};
    who[n++] = i;
    if (w->deadline - now < wait) wait = w->deadline - now;
  }
  if (n == 0) return false;
  int ready = poll(fds, n, wait <= 0 ? 0 : (int)(wait * 1e3) + 1);
  if (ready < 0 && errno != EINTR) return false;
  now = cf_seconds();
  for (uint32_t i = 0; i < n; i++) {
    cf_worker *w = &crew->workers[who[i]];
    if (ready > 0 && fds[i].revents)
      cf_take_answer(crew, w);
    else if (w->deadline <= now)
      cf_worker_died(crew, w, true);
  }
  return true;
}

int cf_workers_run(const cf_options *options, const cf_cases *cases, cf_hello *hello, cf_result_fn visit,
                   void *context) {
  cf_crew crew = {.options = options, .cases = cases, .hello = hello, .visit = visit, .context = context};
  crew.jobs = options->jobs < 1 ? 1 : options->jobs > CF_MAX_JOBS ? CF_MAX_JOBS : options->jobs;
  if (crew.jobs > cases->count) crew.jobs = cases->count ? cases->count : 1;
  for (uint32_t i = 0; i < crew.jobs; i++) {
    if (cf_worker_start(&crew, &crew.workers[i])) continue;
    snprintf(hello->text, sizeof hello->text, "a worker process cannot be started: %s", strerror(errno));
    crew.status = 2, crew.stopped = true;
  }
  while (cf_crew_turn(&crew)) {
  }
  return crew.status;
}
