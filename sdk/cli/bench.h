/* graft bench: what is timed. */
#ifndef GRAFT_CLI_BENCH_H
#define GRAFT_CLI_BENCH_H

#include "conformance/text/text.h"

/* One call. Floating arguments are drawn from (0, 1], integers from [0, bound). */
typedef struct bench_row {
  const char *call;  /* in the grammar of conformance/text/text.h */
  double operations; /* of one call; 0: the bytes of its tensors are what counts */
  int64_t bound;     /* of indices; 0: 2 */
} bench_row;

extern const bench_row bench_rows[];
extern const size_t bench_row_count;

/* What was measured of a row. Times are of one call. */
typedef struct bench_result {
  graft_status status;    /* UNIMPLEMENTED: the backend has no way to run it; the text is graft_last_error */
  const char *way;        /* who ran it: plugin, decomposition, reference, ... */
  uint32_t rounds, calls; /* medians of `rounds` times `calls` calls */
  double first_s, median_s, best_s;
  double bytes, operations;
} bench_result;

/* Times one row on a device, whose default stream is used. */
void bench_run(const bench_row *row, graft_rt_device *device, bench_result *result);

#endif
