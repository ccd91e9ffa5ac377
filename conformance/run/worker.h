/* Cases run in child processes. The parent never opens a plugin: it starts itself again as a worker, hands it one case
 * at a time over a socket, and replaces it when it dies or takes too long, so that a crash or hang is a red case. */
#ifndef GRAFT_CF_WORKER_H
#define GRAFT_CF_WORKER_H

#include "conformance/run/menu.h"
#include "conformance/run/run.h"

typedef struct cf_options {
  const char *backend, *plugin_options[16];
  uint32_t plugin_option_count;
  int32_t device;
  cf_selection selection;
  uint32_t jobs;
  uint64_t seed;
  bool fail_fast, verbose;
  const char *waivers, *report, *dump;
  const char *expect, *write_expect; /* files; see report/expect.h */
  double time_limit_s;
} cf_options;

/* What a plugin counts, or the sums over all workers. */
typedef struct cf_statistics {
  uint64_t programs_built, programs_with_header, programs_loaded, build_nanoseconds, launches;
  bool known;
} cf_statistics;

/* What a worker says of the device it opened; the counts are the parent's sums. */
typedef struct cf_hello {
  int32_t status; /* 0, or an exit status with its text */
  char device[96], name[160], driver[96], text[512];
  char plugin[96]; /* its name and version */
  cf_statistics statistics;
  uint32_t bad_endings; /* workers that ended with a fault, after all their cases; text says how the last one did */
} cf_hello;

/* ---- the child ---- */

graft_status cf_backend_open(const cf_options *options, cf_backend *backend);
int cf_worker_main(const cf_options *options);
/* What the device says once a case is done: a fault that comes late is the case's, too. Whether there was one: it
 * sticks to its stream, so a fresh process goes on, and one faulty case does not turn those after it red. */
bool cf_settle(cf_result *r, graft_status device, const char *text);

/* ---- the parent ---- */

/* In a child between fork and exec, which makes nothing anew: becomes `graft conformance` with the backend, device and
 * options that were asked for, as what a hidden option says, and has file `from` as `to`. */
_Noreturn void cf_exec_self(const cf_options *options, const char *as, int from, int to);

typedef struct cf_cases {
  cf_case *items;
  uint32_t count, capacity;
  bool incomplete; /* no memory for all */
} cf_cases;
typedef bool (*cf_result_fn)(void *context, uint32_t index, const cf_result *r); /* false: stop */
/* Runs cases in workers. Returns an exit status of 2 when no worker could open the device, else 0. */
int cf_workers_run(const cf_options *options, const cf_cases *cases, cf_hello *hello, cf_result_fn visit,
                   void *context);

#endif
