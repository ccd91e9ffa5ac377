/* What the benchmark programs share: a clock, medians, and an end with libgraft's text when a call fails. */
#ifndef GRAFT_BENCHMARKS_MEASURE_H
#define GRAFT_BENCHMARKS_MEASURE_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "graft/graft.h"

static inline double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline int measure_by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts the values. */
static inline double median_of(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, measure_by_value);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static inline void must(graft_status status) {
  if (status == GRAFT_OK) return;
  fprintf(stderr, "%s: %s\n", graft_status_name(status), graft_last_error());
  exit(1);
}

static inline graft_rt_device *device_of(const char *backend) {
  graft_rt_backend *opened;
  graft_rt_device *device;
  must(graft_backend_open(backend, NULL, &opened));
  must(graft_backend_device(opened, 0, &device));
  return device;
}

#endif
