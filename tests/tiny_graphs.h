/* Graphs that tests of graft_tiny record: inputs x0, x1, … as they are taken. */
#ifndef GRAFT_TESTS_TINY_GRAPHS_H
#define GRAFT_TESTS_TINY_GRAPHS_H

#include <stdio.h>

#include "graft/graft.h"
#include "suite.h"

#define OK(call) ck_assert_msg((call) == GRAFT_OK, "%s", graft_last_error())
enum { MOST_PORTS = 8 };

typedef struct recorded {
  graft_graph *graph;
  graft_tensor *in[MOST_PORTS];
  uint32_t nin;
} recorded;

static void begin(recorded *r) {
  *r = (recorded){0};
  OK(graft_graph_create(graft_device_reference(), &r->graph));
}

static graft_tensor *take(recorded *r, graft_dtype dtype, int32_t ndim, const int64_t *sizes) {
  char name[16];
  snprintf(name, sizeof name, "x%u", r->nin);
  OK(graft_graph_input(r->graph, name, dtype, ndim, sizes, NULL, &r->in[r->nin]));
  return r->in[r->nin++];
}
#define F32(r, ...) \
  take(r, GRAFT_F32, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

static void record(recorded *r) {
  OK(graft_graph_record_begin(r->graph));
}

static void give(recorded *r, const char *name, graft_tensor *value) {
  OK(graft_graph_output(r->graph, name, value));
  graft_tensor_release(value);
}

static void end(recorded *r) {
  OK(graft_graph_record_end(r->graph));
  for (uint32_t i = 0; i < r->nin; i++) graft_tensor_release(r->in[i]);
}

/* An f32 of two under a name of its own. */
static inline graft_tensor *take_named(recorded *r, const char *name) {
  OK(graft_graph_input(r->graph, name, GRAFT_F32, 1, (int64_t[]){2}, NULL, &r->in[r->nin]));
  return r->in[r->nin++];
}

#endif
