/* A peer of the matrix product, as a process: matmul_PEER N makes two f32 matrices of N x N, and for each line with a
 * number of calls on stdin answers with the seconds of one, after one that is not timed. */
#ifndef GRAFT_BENCHMARKS_MATMUL_PEER_H
#define GRAFT_BENCHMARKS_MATMUL_PEER_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double peer_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static float *peer_matrix(long n) {
  float *values = aligned_alloc(64, (size_t)(n * n) * sizeof *values);
  if (!values) exit(1);
  for (long i = 0; i < n * n; i++) values[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  return values;
}

/* `multiply` returns when the product is there. */
static int peer_serve(void (*multiply)(void *context), void *context) {
  int calls;
  multiply(context);
  while (scanf("%d", &calls) == 1) {
    multiply(context);
    double start = peer_now();
    for (int i = 0; i < calls; i++) multiply(context);
    printf("%.9f\n", (peer_now() - start) / calls);
    fflush(stdout);
  }
  return 0;
}

#endif
