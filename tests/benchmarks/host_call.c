/* What the host adds to a slot: a call of add with a preallocated output on a plugin that does nothing, against the
 * bare slot; and a chain of such calls, one by one, as a graph, and as a capture. Prints nanoseconds and the host's
 * mallocs on the way; usage: host_call PATH-OF-NULL-PLUGIN. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "device/device.h"
#include "graft/graft.h"
#include "tests/heap.h"

enum { CALLS = 200000, ROUNDS = 9, CHAIN = 50 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void must(graft_status status) {
  if (!status) return;
  fprintf(stderr, "host_call: %s\n", graft_last_error());
  exit(1);
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of several rounds, per call. */
static double median(double (*round)(void *), void *context) {
  double times[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) times[i] = round(context) / CALLS;
  qsort(times, ROUNDS, sizeof *times, by_value);
  return times[ROUNDS / 2];
}

typedef struct setup {
  graft_tensor *a, *b, *out;
  graft_add_Tensor_fn slot;
  graft_graph_exec *chain;
  graft_graph_capture *captured;
} setup;

static double host_round(void *context) {
  setup *s = context;
  double start = now_ns();
  for (int i = 0; i < CALLS; i++) {
    const graft_value args[] = {graft_value_tensor(s->a), graft_value_tensor(s->b), {0}};
    must(graft_call(GRAFT_OP_ADD_TENSOR, args, 3, &s->out, 1));
  }
  return now_ns() - start;
}

static double slot_round(void *context) {
  setup *s = context;
  graft_rt_device *device = graft_tensor_device(s->a);
  graft_exec exec = {.struct_size = sizeof exec, .device = device->handle, .stream = device->default_stream->handle};
  graft_tensor_desc desc = {.struct_size = sizeof desc};
  graft_scalar one = graft_scalar_int(1);
  graft_args_add_Tensor args = {
      .head = {sizeof args, GRAFT_OP_ADD_TENSOR, 0}, .self = &desc, .other = &desc, .alpha = &one, .out = &desc};
  double start = now_ns();
  for (int i = 0; i < CALLS; i++) must(s->slot(&exec, &args));
  return now_ns() - start;
}

/* a + b + ... + b, each time a new tensor. */
static graft_tensor *add_chain(graft_tensor *a, graft_tensor *b) {
  graft_tensor *x = a;
  for (int i = 0; i < CHAIN; i++) {
    const graft_value args[] = {graft_value_tensor(x), graft_value_tensor(b), {0}};
    graft_tensor *sum = NULL;
    must(graft_call(GRAFT_OP_ADD_TENSOR, args, 3, &sum, 1));
    if (i) graft_tensor_release(x);
    x = sum;
  }
  return x;
}

static double chain_round(void *context) {
  setup *s = context;
  double start = now_ns();
  for (int i = 0; i < CALLS; i += CHAIN) graft_tensor_release(add_chain(s->a, s->b));
  return now_ns() - start;
}

static double graph_round(void *context) {
  setup *s = context;
  graft_tensor *in[] = {s->a, s->b}, *out;
  double start = now_ns();
  for (int i = 0; i < CALLS; i += CHAIN) {
    must(graft_graph_run(s->chain, in, 2, &out, 1));
    graft_tensor_release(out);
  }
  return now_ns() - start;
}

static double capture_round(void *context) {
  setup *s = context;
  double start = now_ns();
  for (int i = 0; i < CALLS; i += CHAIN) must(graft_graph_capture_launch(s->captured));
  return now_ns() - start;
}

static graft_graph_capture *capture_chain(const setup *s) {
  graft_graph_capture *capture;
  must(graft_graph_capture_begin(graft_tensor_device(s->a), NULL, &capture));
  graft_tensor_release(add_chain(s->a, s->b));
  must(graft_graph_capture_end(capture));
  return capture;
}

static graft_graph_exec *record_chain(const setup *s) {
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *a, *b, *sum;
  must(graft_graph_create(graft_tensor_device(s->a), &graph));
  must(graft_graph_input_like(graph, "a", s->a, &a));
  must(graft_graph_input_like(graph, "b", s->b, &b));
  must(graft_graph_record_begin(graph));
  sum = add_chain(a, b);
  must(graft_graph_record_end(graph));
  must(graft_graph_output(graph, "sum", sum));
  must(graft_graph_compile(graph, graft_tensor_device(s->a), NULL, &exec));
  graft_graph_destroy(graph);
  graft_tensor_release(a);
  graft_tensor_release(b);
  graft_tensor_release(sum);
  return exec;
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: host_call PATH-OF-NULL-PLUGIN\n"), 2;
  graft_rt_backend *backend;
  graft_rt_device *device;
  must(graft_backend_open(argv[1], NULL, &backend));
  must(graft_backend_device(backend, 0, &device));
  setup s = {.slot = ((graft_core_ops *)backend->core)->add_Tensor};
  int64_t sizes[] = {4, 4};
  must(graft_tensor_empty(device, GRAFT_F32, 2, sizes, &s.a));
  must(graft_tensor_empty(device, GRAFT_F32, 2, sizes, &s.b));
  must(graft_tensor_empty(device, GRAFT_F32, 2, sizes, &s.out));
  host_round(&s); /* the plan is made */
  uint64_t before = heap_calls;
  double host = median(host_round, &s), slot = median(slot_round, &s);
  printf(
      "add through the host   %7.1f ns\nthe slot alone         %7.1f ns\nthe host adds          %7.1f ns\nmallocs on "
      "the way     %7llu\n",
      host, slot, host - slot, (unsigned long long)(heap_calls - before));
  s.chain = record_chain(&s);
  s.captured = capture_chain(&s);
  double calls = median(chain_round, &s), nodes = median(graph_round, &s), launches = median(capture_round, &s);
  printf(
      "a chain, one by one    %7.1f ns an add\nthe same as a graph    %7.1f ns an add\nthe same as a capture  %7.1f ns "
      "an add\n",
      calls, nodes, launches);
  graft_graph_capture_destroy(s.captured);
  graft_graph_exec_destroy(s.chain);
  return 0;
}
