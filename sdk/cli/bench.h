/* graft bench: what is timed. */
#ifndef GRAFT_CLI_BENCH_H
#define GRAFT_CLI_BENCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "conformance/text/text.h"

/* One call. Floating arguments are drawn from (low, high], integers from [0, bound). */
typedef struct bench_row {
  char call[512];    /* in the grammar of conformance/text/text.h */
  double operations; /* of one call; 0: the bytes of its tensors are what counts */
  int64_t bound;     /* of integers */
  double low, high;  /* of floating values */
  bool large;        /* for GPUs */
} bench_row;

/* The lines of bench_calls.txt that are calls. */
uint32_t bench_row_count(void);
bench_row bench_row_at(uint32_t index);

/* What was measured of a row. Times are of one call. */
typedef struct bench_result {
  graft_status status;    /* UNIMPLEMENTED: the backend has no way to run it; NOT_READY: it took too long */
  char way[24];           /* who ran it: plugin, decomposition, reference, ... */
  char problem[512];      /* why not, where status says so */
  uint32_t rounds, calls; /* medians of `rounds` times `calls` calls */
  double first_s, median_s, best_s;
  double bytes, operations;
} bench_result;

/* Times one row on a device, whose default stream is used. */
void bench_run(const bench_row *row, graft_rt_device *device, bench_result *result);

/* --- the process that runs the rows --- */

typedef struct bench_target {
  const char *backend; /* a name, or the path of a library */
  int device;
  double limit_s; /* how long a row may take */
} bench_target;

typedef struct bench_worker {
  bench_target target; /* set by the caller */
  pid_t pid;           /* 0: none runs */
  int fd, ended;
} bench_worker;

/* What it says when it has opened the device, or could not. */
typedef struct bench_hello {
  bool opened;
  char device[64], name[256], problem[512];
} bench_hello;

/* Begins the process; false with hello->problem where the device does not open. */
bool bench_worker_begin(bench_worker *worker, bench_hello *hello);

/* Times row number `row`. One that takes longer than the limit is NOT_READY; it ends the process, as a crash does, and
 * the next row begins another. */
void bench_worker_run(bench_worker *worker, uint32_t row, bench_result *result);

void bench_worker_end(bench_worker *worker);

#endif
