/* Graphs as C sources, compiled, loaded and held against the graphs.
 *
 * A source is compiled as its users are told to, without a warning, and may ask the linker for a few functions of
 * <math.h> and <string.h> alone. Bounds of errors: a sum of n products in f32, in any order, is off by at most
 * (n + 2) 2^-24 times the same sum of absolute values, and the reference, which rounds once, by one more of these; that
 * sum is the same graph run on absolute values. */
#ifndef GRAFT_TESTS_TINY_SOURCES_H
#define GRAFT_TESTS_TINY_SOURCES_H

#include <dlfcn.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tiny/tiny.h"
#include "tiny_graphs.h"

/* --- sources --- */

static char folder[] = "/tmp/test_tiny_XXXXXX";

static void make_folder(void) {
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

/* A command that is run in the folder. */
__attribute__((format(printf, 1, 2))) static void shell(const char *format, ...) {
  char command[1024];
  int used = snprintf(command, sizeof command, "cd %s && ", folder);
  va_list given;
  va_start(given, format);
  vsnprintf(command + used, sizeof command - (size_t)used, format, given);
  va_end(given);
  ck_assert_msg(system(command) == 0, "%s", command);
}

static tiny_info emit(const graft_graph *graph, graft_tensor *const *values) {
  char path[64];
  tiny_info info;
  snprintf(path, sizeof path, "%s/source.c", folder);
  FILE *to = fopen(path, "w");
  ck_assert_ptr_nonnull(to);
  OK(tiny_emit(graph, &(tiny_options){.name = "graph", .values = values}, to, &info));
  fclose(to);
  return info;
}

/* Beside the source, a function that takes the arguments as an array: its signature is none that C can make up. */
static void write_caller(uint32_t count) {
  char path[64];
  snprintf(path, sizeof path, "%s/caller.c", folder);
  FILE *to = fopen(path, "w");
  ck_assert_ptr_nonnull(to);
  fputs("#define TINY_DECLARATIONS\n#include \"source.c\"\nvoid call(void **p);\nvoid call(void **p) { graph_run(", to);
  for (uint32_t i = 0; i < count; i++) fprintf(to, "%sp[%u]", i ? ", " : "", i);
  fputs("); }\n", to);
  fclose(to);
}

typedef void (*caller)(void **arguments);

/* The source, built beside its caller and loaded. */
static inline void *compiled(uint32_t arguments) {
  char path[64];
  write_caller(arguments);
  shell("gcc -std=c11 -Os -Wall -Wextra -Werror -fPIC -c source.c");
  shell("! nm -u source.o | grep -vE ' (expf|logf|rintf|floorf|memset|memcpy|_GLOBAL_OFFSET_TABLE_)$' | grep .");
  shell("gcc -std=c11 -fPIC -shared -o source.so caller.c source.o -lm");
  snprintf(path, sizeof path, "%s/source.so", folder);
  void *library = dlopen(path, RTLD_NOW);
  ck_assert_msg(library != NULL, "%s", dlerror());
  return library;
}

/* --- values --- */

static float drawn(uint32_t *state, int whole) {
  *state = *state * 1664525u + 1013904223u;
  const float unit = (float)(*state >> 8) / 16777216.0f * 2 - 1;
  return whole ? rintf(unit * 2) : unit;
}

typedef struct ports {
  void *data[MOST_PORTS];
  graft_dtype dtypes[MOST_PORTS];
  size_t counts[MOST_PORTS];
  uint32_t count;
} ports;

static void add_port(ports *p, const graft_graph_port *port) {
  size_t count = 1;
  for (int32_t d = 0; d < port->ndim; d++) count *= (size_t)port->sizes[d];
  p->data[p->count] = calloc(count, 8);
  p->dtypes[p->count] = port->dtype;
  p->counts[p->count++] = count;
}

static void draw_into(void *data, graft_dtype dtype, size_t count, uint32_t *state, int whole) {
  for (size_t k = 0; k < count; k++) {
    const float v = drawn(state, whole);
    switch ((int)dtype) {
      case GRAFT_F32: ((float *)data)[k] = v; break;
      case GRAFT_I8: ((int8_t *)data)[k] = (int8_t)(*state >> 24); break;
      case GRAFT_I32: ((int32_t *)data)[k] = (int32_t)(*state >> 12) - (1 << 19); break;
      default: ((int64_t *)data)[k] = (int64_t)(k % 3); break;
    }
  }
}

static ports inputs_of(const graft_graph *graph, int whole) {
  ports p = {0};
  graft_graph_port port;
  uint32_t state = 11;
  for (uint32_t i = 0; i < graft_graph_input_count(graph); i++) {
    OK(graft_graph_input_query(graph, i, &port, sizeof port));
    add_port(&p, &port);
    draw_into(p.data[i], p.dtypes[i], p.counts[i], &state, whole);
  }
  return p;
}

static ports outputs_of(const graft_graph *graph) {
  ports p = {0};
  graft_graph_port port;
  for (uint32_t i = 0; i < graft_graph_output_count(graph); i++) {
    OK(graft_graph_output_query(graph, i, &port, sizeof port));
    add_port(&p, &port);
  }
  return p;
}

static void free_ports(ports *p) {
  for (uint32_t i = 0; i < p->count; i++) free(p->data[i]);
}

/* By libgraft; inputs that are written come back in `in`. */
static ports run_graph(const graft_graph *graph, ports *in, uint32_t absolute) {
  ports out = outputs_of(graph);
  graft_graph_exec *exec;
  graft_tensor *given[MOST_PORTS], *made[MOST_PORTS];
  OK(graft_graph_compile(graph, graft_device_reference(), NULL, &exec));
  for (uint32_t i = 0; i < in->count; i++) {
    graft_graph_port port;
    OK(graft_graph_input_query(graph, i, &port, sizeof port));
    for (size_t k = 0; k < in->counts[i] && absolute >> i & 1; k++)
      ((float *)in->data[i])[k] = fabsf(((float *)in->data[i])[k]);
    OK(graft_tensor_from_host(graft_device_reference(), port.dtype, port.ndim, port.sizes, in->data[i], &given[i]));
  }
  OK(graft_graph_run(exec, given, in->count, made, out.count));
  for (uint32_t i = 0; i < in->count; i++) OK(graft_tensor_to_host(given[i], in->data[i]));
  for (uint32_t i = 0; i < out.count; i++) OK(graft_tensor_to_host(made[i], out.data[i]));
  for (uint32_t i = 0; i < in->count; i++) graft_tensor_release(given[i]);
  for (uint32_t i = 0; i < out.count; i++) graft_tensor_release(made[i]);
  graft_graph_exec_destroy(exec);
  return out;
}

static ports run_source(const graft_graph *graph, caller call, ports *in) {
  ports out = outputs_of(graph);
  void *arguments[2 * MOST_PORTS];
  memcpy(arguments, in->data, sizeof in->data);
  memcpy(arguments + in->count, out.data, sizeof out.data);
  call(arguments);
  return out;
}

/* --- a row: a graph, and how far off a source may be --- */

/* terms: of the longest sum; its bound is (terms + 3) 2^-24 times the sum of absolute values, which is what the graph
 * gives for the absolute values of the inputs in the mask `absolute`. flat: a bound of its own, in 2^-24, for what is
 * no such sum. Both 0: to the bit. */
typedef struct row {
  const char *name;
  void (*record)(recorded *r);
  int terms;
  uint32_t absolute;
  double flat;
  int whole;
} row;

static void compare(const row *row, const ports *got, const ports *wanted, const ports *sums_, const char *what) {
  for (uint32_t i = 0; i < got->count; i++) {
    if (got->dtypes[i] != GRAFT_F32) { /* memory of 8 bytes an element, zeros behind the last one */
      ck_assert_msg(!memcmp(got->data[i], wanted->data[i], 8 * got->counts[i]), "%s: %s %u differs", row->name, what,
                    i);
      continue;
    }
    for (size_t k = 0; k < got->counts[i]; k++) {
      const double g = ((float *)got->data[i])[k], w = ((float *)wanted->data[i])[k];
      const double most = row->terms ? (row->terms + 3) * fabs((double)((float *)sums_->data[i])[k]) : row->flat;
      ck_assert_msg(fabs(g - w) <= most * 0x1p-24, "%s: %s %u, element %zu is %.9g, on the reference %.9g", row->name,
                    what, i, k, g, w);
    }
  }
}

/* Records it, and holds what its source gives against what the graph gives. */
static void check_row(const row *row) {
  recorded r;
  begin(&r);
  row->record(&r);
  end(&r);
  emit(r.graph, NULL);
  caller call = (caller)dlsym(compiled(r.nin + graft_graph_output_count(r.graph)), "call");
  ports in = inputs_of(r.graph, row->whole), mine = inputs_of(r.graph, row->whole),
        sum_in = inputs_of(r.graph, row->whole);
  ports wanted = run_graph(r.graph, &in, 0), sums_ = run_graph(r.graph, &sum_in, row->absolute);
  ports got = run_source(r.graph, call, &mine);
  compare(row, &got, &wanted, &sums_, "output");
  compare(row, &mine, &in, &sum_in, "input");
  ports *all[] = {&in, &mine, &sum_in, &wanted, &sums_, &got};
  for (int i = 0; i < 6; i++) free_ports(all[i]);
  graft_graph_destroy(r.graph);
}

#endif
