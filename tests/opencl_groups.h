/* Calls that the OpenCL backend fuses, run one by one and as a graph: for the tests of its groups. With
 * OPENCL_IS_DESCRIBED the tests become programs of test_opencl_group_launches, on devices on which nothing runs. */
#ifndef GRAFT_TESTS_OPENCL_GROUPS_H
#define GRAFT_TESTS_OPENCL_GROUPS_H

#include <math.h>

#ifdef OPENCL_IS_COUNTED
#include <dlfcn.h>
#include <unistd.h>

#include "between.h"
#endif
#include "device/device.h"
#include "dispatch/dispatch.h"
#include "graph_programs.h"
#include "opencl_device.h"
#ifdef OPENCL_IS_DESCRIBED
#include "opencl_described.h"
#include "opencl_told.h"
#endif
#include "suite.h"

enum { ROWS_OF_X = 5, COLUMNS = 205, ELEMENTS = ROWS_OF_X * COLUMNS, RESULTS = 8 };
enum { ZONE_BYTES = 512 }; /* around the workspaces of a group */

/* --- setups: either kind of kernels, by the processor that is there; once in a process --- */

#ifdef OPENCL_IS_DESCRIBED
enum { NOTHING_RUNS = 1 };

/* The one that the environment names, where its kernels are of that kind; NULL: whichever they are. */
static inline void open_with(const char *option) {
  const char *name = getenv("GRAFT_TEST_DESCRIBED");
  int which = 0;
  if (device) return;
  while (which < DESCRIBED_DEVICES && (!name || strcmp(described[which].name, name) != 0)) which++;
  ck_assert_msg(which < DESCRIBED_DEVICES,
                "GRAFT_TEST_DESCRIBED names no device of tests/opencl_described.h: %s. "
                "test_opencl_group_launches runs these programs",
                name ? name : "it is not set");
  const bool is_cpu = described[which].answers[0].value == CL_DEVICE_TYPE_CPU;
  if (option && (strcmp(option, "kernels=cpu") == 0) != is_cpu) return;
  prepare_described();
  device = open_described(which);
  idle_read_zeros(true);
}
#else
enum { NOTHING_RUNS = 0 };

/* From here on what the backend takes is counted. It stays where it is. */
static inline void begin_counting(void) {
#ifdef OPENCL_IS_COUNTED
  ck_assert_msg(dlopen(OPENCL, RTLD_NOW), "%s", dlerror());
  between_begin();
#endif
}

static inline void open_with(const char *option) {
  static const char *opened;
  if (opened && strcmp(opened, option) == 0) return;
  if (!opened && has_opencl()) begin_counting();
  opened = option;
  device = has_opencl() ? device_at(OPENCL, (const char *const[]){option, NULL}, 0) : NULL;
}
#endif

static inline void open_for_cpus(void) {
  open_with("kernels=cpu");
}

static inline void open_for_gpus(void) {
  open_with("kernels=gpu");
}

#ifdef OPENCL_IS_COUNTED
/* A thread of the driver may still be on its way out. */
static inline void expect_nothing_left(void) {
  long left[BETWEEN_COUNTS];
  between_count(left);
  for (int tenths = 0; tenths < 50 && left[BETWEEN_BLOCKS]; tenths++) {
    usleep(100000);
    between_count(left);
  }
  for (int i = 0; i < BETWEEN_COUNTS; i++) ck_assert_msg(!left[i], "%ld %s are left", left[i], between_kinds[i]);
}
#endif

/* What groups, and calls one by one, have taken of the driver they have given back when their device is closed. */
START_TEST(all_that_was_taken_is_given_back) {
  if (!device) return;
  OK(graft_backend_close(device->backend));
  device = NULL;
#ifdef OPENCL_IS_COUNTED
  expect_nothing_left();
#endif
#ifdef OPENCL_IS_DESCRIBED
  expect_nothing_held();
#endif
}
END_TEST

/* PoCL reads its library of built-in functions, ten megabytes, in each process that compiles: most of what a small test
 * would take. The tests of a suite share a process. */
static inline suite_options on_one_device(void (*setup)(void)) {
  return (suite_options){.setup = setup, .shared_process = true, .last = all_that_was_taken_is_given_back};
}

/* --- values --- */

/* Small and large ones, whole ones, zeros of both signs, denormals, infinities and NaN. */
static inline double value_at(int64_t i, uint32_t seed) {
  static const double special[] = {0.0,    -0.0, 1,     -1,       2,         0.5, 1e-40,
                                   -3e-39, 1e30, -1e30, INFINITY, -INFINITY, NAN, 88.7};
  const uint32_t h = ((uint32_t)i + seed * 977u) * 2654435761u;
  if (h >> 28 == 3) return special[(h >> 8) % (sizeof special / sizeof *special)];
  const double small = (double)(int32_t)h / 2147483648.0;
  return h >> 28 < 8 ? small * 6 : h >> 28 < 12 ? (double)(int32_t)(h >> 16) - 20 : small;
}

/* Of what is between -3 and 3, which sums come to something of. */
static inline double plain_value_at(int64_t i, uint32_t seed) {
  return (double)(int32_t)(((uint32_t)i + seed * 977u) * 2654435761u) / 715827882.0;
}

static inline graft_tensor *filled_with(double (*value)(int64_t i, uint32_t seed), graft_dtype dtype, int64_t count,
                                        uint32_t seed) {
  graft_tensor *t;
  if (NOTHING_RUNS) {
    OK(graft_tensor_empty(device, dtype, 1, &count, &t));
    return t;
  }
  unsigned char *bytes = calloc((size_t)count + 1, dt_bytes(dtype));
  for (int64_t i = 0; i < count; i++) {
    double x = value(i, seed);
    if (dt_is_integral(dtype, true)) x = (double)((i * 37 + seed) % 23) - 9;
    dt_store(dtype, bytes + i * (int64_t)dt_bytes(dtype), (dt_value){x, 0});
  }
  OK(graft_tensor_from_host(device, dtype, 1, &count, bytes, &t));
  free(bytes);
  return t;
}

static inline graft_tensor *filled(graft_dtype dtype, int64_t count, uint32_t seed) {
  return filled_with(value_at, dtype, count, seed);
}

/* A matrix of that dtype: dense; its transpose's; every other column; one row again and again; from the second element
 * on. */
enum { LAYOUTS = 5 };
static inline graft_tensor *matrix(graft_dtype dtype, int layout, uint32_t seed) {
  const int64_t sizes[] = {ROWS_OF_X, COLUMNS};
  int64_t strides[] = {COLUMNS, 1};
  if (layout == 1) strides[0] = 1, strides[1] = ROWS_OF_X;
  if (layout == 2) strides[0] = 2 * COLUMNS, strides[1] = 2;
  if (layout == 3) strides[0] = 0;
  graft_tensor *all = filled(dtype, 2 * ELEMENTS + 2, seed), *t;
  OK(tns_new(all->storage, device, dtype, 2, sizes, strides, layout == 4, &t));
  graft_tensor_release(all);
  return t;
}

/* A dense matrix of values that sums come to something of. */
static inline graft_tensor *sized(graft_dtype dtype, int64_t rows, int64_t columns, uint32_t seed) {
  graft_tensor *all = filled_with(plain_value_at, dtype, rows * columns, seed), *t;
  const int64_t sizes[] = {rows, columns}, strides[] = {columns, 1};
  OK(tns_new(all->storage, device, dtype, 2, sizes, strides, 0, &t));
  graft_tensor_release(all);
  return t;
}

/* --- calls --- */

static inline graft_tensor *cast(graft_tensor *t, graft_dtype dtype) {
  graft_tensor *out;
  OK(graft_tensor_to(t, NULL, dtype, &out));
  return later(out);
}

/* --- the two ways --- */

typedef void (*calls_fn)(graft_tensor **in, graft_tensor **out, const void *what);

typedef struct way {
  calls_fn calls;
  const void *what;
  uint32_t ninputs, noutputs, grouped_nodes, groups;
  bool at_least;      /* so many nodes or more, in any number of groups */
  uint64_t seed;      /* of the generator before each of the two ways; 0: they draw nothing */
  const char *passes; /* of the graph; NULL: all but the one that makes equal calls one */
} way;

static inline graft_graph_exec *compiled(const way *w, graft_tensor **in) {
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *value[RESULTS], *out[RESULTS] = {NULL};
  char name[2] = "a";
  OK(graft_graph_create(device, &graph));
  for (uint32_t i = 0; i < w->ninputs; i++, name[0]++) OK(graft_graph_input_like(graph, name, in[i], &value[i]));
  OK(graft_graph_record_begin(graph));
  w->calls(value, out, w->what);
  OK(graft_graph_record_end(graph));
  sweep();
  for (uint32_t i = 0; i < w->noutputs; i++, name[0]++) OK(graft_graph_output(graph, name, out[i]));
  OK(graft_graph_compile(graph, device, w->passes ? w->passes : "-cse", &exec));
  graft_graph_destroy(graph);
  release_all(out, w->noutputs);
  release_all(value, w->ninputs);
  return exec;
}

/* Seeds the generator for one of the ways. */
static inline void begin_way(const way *w) {
  if (w->seed) graft_generator_seed(graft_generator_default(device), w->seed);
}

static inline uint64_t numbers_drawn(void) {
  uint64_t offset;
  graft_generator_state(graft_generator_default(device), NULL, &offset);
  return offset;
}

#ifdef OPENCL_IS_DESCRIBED
/* Where a test tells, which is given back. */
static inline FILE *begin_telling(const char *test) {
  const char *path = getenv("GRAFT_TEST_TOLD");
  FILE *to = path ? fopen(path, "a") : NULL;
  ck_assert_msg(to, "GRAFT_TEST_TOLD names no file that can be written: %s", path ? path : "it is not set");
  fprintf(to, "= %s\n", test);
  return to;
}

static inline void tell_groups(FILE *to, const char *name, const graft_graph_exec *exec) {
  graft_graph_exec_info info;
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  fprintf(to, "%s: %u groups of %u nodes\n", name, info.groups, info.grouped_nodes);
}

/* Of a second run: what is made once, and kept, is not told, so that it does not matter who came first. */
static inline void compare(const char *name, const way *w, graft_tensor **in, graft_tensor **same) {
  graft_graph_exec *exec = compiled(w, in);
  FILE *to = begin_telling(tcase_name());
  (void)same;
  tell_groups(to, name, exec);
  for (int run = 0; run < 2; run++) {
    graft_tensor *out[RESULTS] = {NULL};
    begin_way(w);
    told = run ? to : NULL;
    OK(graft_graph_run(exec, in, w->ninputs, out, w->noutputs));
    told = NULL;
    release_all(out, w->noutputs);
  }
  fclose(to);
  graft_graph_exec_destroy(exec);
}
#else
/* Nothing is written beside a group's workspace, of which nothing is looked at before it is written. */
static inline void compare(const char *name, const way *w, graft_tensor **in, graft_tensor **same) {
  graft_tensor *expected[RESULTS] = {NULL}, *out[RESULTS] = {NULL};
  graft_graph_exec *exec = compiled(w, in);
  graft_graph_exec_info info;
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  const bool more = w->at_least && info.grouped_nodes >= w->grouped_nodes;
  ck_assert_msg(more || (info.groups == w->groups && info.grouped_nodes == w->grouped_nodes),
                "%s: %u groups of %u nodes, expected %u of %u", name, info.groups, info.grouped_nodes, w->groups,
                w->grouped_nodes);
  begin_way(w);
  w->calls(in, expected, w->what);
  sweep();
  const uint64_t drawn = numbers_drawn();
  begin_way(w);
  dsp_zones = (dsp_zone_watch){.bytes = ZONE_BYTES, .inside = 0x5A};
  OK(graft_graph_run(exec, same, w->ninputs, out, w->noutputs));
  ck_assert_msg(!dsp_zones.broken[0], "%s: %s", name, dsp_zones.broken);
  dsp_zones.bytes = 0;
  ck_assert_msg(numbers_drawn() == drawn, "%s: %d numbers drawn, expected %d", name, (int)numbers_drawn(), (int)drawn);
  const program p = {.name = name};
  for (uint32_t i = 0; i < w->noutputs; i++) expect_same(&p, "output", i, out[i], expected[i]);
  for (uint32_t i = 0; i < w->ninputs; i++) expect_same(&p, "input", i, same[i], in[i]);
  graft_graph_exec_destroy(exec);
  release_all(out, w->noutputs);
  release_all(expected, w->noutputs);
}
#endif

#endif
