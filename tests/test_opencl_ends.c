/* What the OpenCL backend takes it gives back: of the driver's objects and of memory, as many are left after a device
 * was opened, used in all ways and closed as were left the time before. */
#include <stdio.h>
#include <stdlib.h>

#include "bad_input.h"
#include "between.h"
#include "opencl_groups.h"
#include "own_folder.h"
#include "suite.h"

static void ignore(void *context, const graft_profile_record *record) {
  (void)context, (void)record;
}

static void work_without_waiting(graft_rt_device *device) {
  static const float values[1000];
  graft_tensor *from = NULL, *to = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){1000}, values, &from));
  OK(graft_op_neg(from, &to));
  graft_tensor_release(from);
  graft_tensor_release(to);
}

/* A group of each kind: pointwise calls alone, around a reduction, and behind a product. */
static void calls_of_groups(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *e = CALL(EXP, T(CALL(NEG, T(in[0]))));
  out[0] = retained(CALL(TANH, T(CALL(ABS, T(in[1])))));
  out[1] = retained(CALL(DIV_TENSOR, T(e), T(CALL(SUM_DIM_INTLIST, T(e), INTS(-1), graft_value_bool(true)))));
  out[2] = retained(CALL(RELU, T(CALL(MM, T(in[0]), T(in[2])))));
}

static void run_groups(graft_rt_device *on) {
  device = on;
  graft_tensor *in[] = {sized(GRAFT_F32, 7, 13, 1), sized(GRAFT_F32, 300, 5, 2), sized(GRAFT_F32, 13, 9, 3)};
  graft_tensor *out[RESULTS] = {NULL};
  const way w = {calls_of_groups, NULL, ROWS(in), 3, 0, 0, .at_least = true};
  graft_graph_exec *exec = compiled(&w, in);
  graft_graph_exec_info info;
  OK(graft_graph_exec_query(exec, &info, sizeof info));
  ck_assert_uint_ge(info.groups, 2);
  OK(graft_graph_run(exec, in, w.ninputs, out, w.noutputs));
  release_all(out, w.noutputs);
  release_all(in, w.ninputs);
  graft_graph_exec_destroy(exec);
}

/* Of each way to take something: programs and tables of several sizes, events asked and waited for, pinned memory,
 * records, and a stream that has failed. */
static void use(graft_rt_device *device) {
  static const char *const lines[] = {
      "aten::add.Tensor f32[17] i64[17]",
      "aten::sum.dim_IntList f32[3,17] [1]",
      "aten::mm f32[5,6] f32[6,7]",
      "aten::_fft_c2c c64[12] [0] 0 true",
      "aten::sort f32[100]",
      "aten::max.dim f32[200000] 0",
      "aten::sum.dim_IntList f32[200000] [0]",
      "aten::cumsum f32[200000] 0",
      "aten::native_layer_norm_backward f32[300,9] f32[300,9] [9] f32[300,1] f32[300,1] "
      "f32[9] f32[9] [1,1,1]",
      "aten::_fused_rms_norm_backward f32[129,5] f32[129,5] [5] f32[129,1] f32[5] [1,1]",
      "aten::_ctc_loss f32[17,3,5] i64[3,4] [17,9,13] [4,2,3] 4",
      "aten::mse_loss f32[30000] f32[30000]",
      "aten::mm f32[2,20000] f32[20000,3]",
      "aten::nonzero f32[33,17]",
      "aten::segment_reduce f32[33,17] 'sum' lengths=i64[3] unsafe=true",
      "aten::index_reduce f32[33,17] 0 i64[129] f32[129,17] 'mean'",
      "aten::scatter_add f16[33,17] 1 i64[33,5] f16[33,5]",
      "aten::randperm 1025 dtype=i64",
      "aten::multinomial f32[33] 4",
      "aten::index.Tensor f32[3,4] {i64[5]}",
      "aten::cat {f32[3];f32[4]}",
      "aten::_fused_sgd {f32[33]} {f32[33]} {f32[33]} weight_decay=0.1 momentum=0.9 lr=0.01 dampening=0.25 "
      "nesterov=false "
      "maximize=false is_first_step=false",
      "aten::linalg_lu_factor_ex f32[97,97]",
      "aten::_linalg_eigh f32[65,65]",
      "aten::native_dropout f32[17] 0.5 true"};
  graft_rt_stream *usual = graft_stream_current(device), *stream;
  graft_rt_event *event, *timed;
  uint64_t lost;
  void *pinned;
  OK(graft_pinned_allocate(device, 4096, &pinned));
  memset(pinned, 1, 4096);
  OK(graft_pinned_free(device, pinned));
  for (int i = 0; i < ROWS(lines); i++) ck_assert_msg(!call_of(lines[i], device, NULL), "%s", graft_last_error());
  run_groups(device);
  OK(graft_stream_create(device, 0, 0, &stream));
  OK(graft_event_create(device, 0, &event));
  OK(graft_event_create(device, GRAFT_EVENT_TIMING, &timed));
  graft_stream_set_current(stream);
  OK(graft_profiler_start(device));
  for (int turn = 0; turn < 3; turn++) {
    ck_assert_int_eq(job(device), 0);
    OK(graft_event_record(event, stream));
    OK(graft_event_record(timed, stream));
    work_without_waiting(device);
    while (graft_event_query(event) == GRAFT_NOT_READY || graft_stream_query(stream) == GRAFT_NOT_READY) continue;
  }
  OK(graft_event_synchronize(timed));
  OK(graft_profiler_stop(device));
  OK(graft_profiler_drain(device, ignore, NULL, &lost));
  ck_assert(call_of("aten::index_select f32[3,4] 0 i64[5]", device, &(wrong){3, true}));
  graft_stream_set_current(usual);
  OK(graft_event_destroy(event));
  OK(graft_event_destroy(timed));
  OK(graft_stream_destroy(stream));
  OK(graft_device_synchronize(device));
}

/* Works while each of the places where memory is made larger fails, in turn; returns how many records were lost in all.
 */
static uint64_t recorded_without_memory(graft_rt_device *device, const between_places *places, bool anew) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < places->count; i++) {
    uint64_t lost = 0;
    if (strcmp(places->items[i].name, "realloc") != 0) continue;
    OK(graft_profiler_start(device));
    between_fail(&places->items[i], CL_OUT_OF_HOST_MEMORY);
    const int wrong_at = job(device);
    between_fail(NULL, CL_SUCCESS);
    if (anew) OK(graft_profiler_start(device));
    if (wrong_at || anew) ck_assert_int_eq(job(device), 0);
    OK(graft_profiler_stop(device));
    OK(graft_device_synchronize(device));
    OK(graft_profiler_drain(device, ignore, NULL, &lost));
    all += lost;
  }
  return all;
}

/* What one recording has lost is none of the next one's. */
START_TEST(each_recording_counts_its_own) {
  static between_places places;
  if (!has_opencl()) return;
  graft_rt_device *device = device_at(OPENCL, NULL, 0);
  uint64_t lost;
  between_begin();
  ck_assert_int_eq(job(device), 0);
  between_watch(&places);
  OK(graft_profiler_start(device));
  ck_assert_int_eq(job(device), 0);
  OK(graft_profiler_stop(device));
  OK(graft_device_synchronize(device));
  between_watch(NULL);
  OK(graft_profiler_drain(device, ignore, NULL, &lost));
  ck_assert_uint_eq(lost, 0);
  ck_assert_uint_gt(recorded_without_memory(device, &places, false), 0);
  ck_assert_uint_eq(recorded_without_memory(device, &places, true), 0);
}
END_TEST

static void live_once(const char *const *options, void (*use_it)(graft_rt_device *device), long left[BETWEEN_COUNTS]) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  OK(graft_backend_open(OPENCL, options, &backend));
  between_begin();
  OK(graft_backend_device(backend, 0, &device));
  use_it(device);
  OK(graft_backend_close(backend));
  between_count(left);
}

static void expect_nothing_left(const char *const *options, void (*use_it)(graft_rt_device *device)) {
  char cache[] = OWN_FOLDER;
  long first[BETWEEN_COUNTS], second[BETWEEN_COUNTS];
  folder_make(cache);
  setenv("GRAFT_CACHE_DIR", cache, 1);
  live_once(options, use_it, first); /* which keeps its programs on disk, and what a process has but once */
  live_once(options, use_it, first);
  live_once(options, use_it, second);
  for (int tenths = 0; tenths < 50 && memcmp(first, second, sizeof first); tenths++) {
    usleep(100000); /* a thread of the driver may be on its way out */
    between_count(second);
  }
  folder_remove(cache);
  for (int i = 0; i < BETWEEN_COUNTS; i++)
    ck_assert_msg(second[i] <= first[i], "%ld %s more are left each time", second[i] - first[i], between_kinds[i]);
  ck_assert_int_eq(second[BETWEEN_FILES], 0);
  ck_assert_msg(!between_misuses(), "locks were taken twice, or given back by who did not hold them");
  ck_assert_msg(!between_waits_for_ever(), "a queue waits for what another one was not told to begin");
}

/* With the kernels for CPUs, and with those for GPUs. */
START_TEST(a_closed_device_leaves_nothing) {
  static const char *const kernels[][3] = {{"kernels=cpu", "device=0"}, {"kernels=gpu", "device=0"}};
  expect_nothing_left(kernels[_i], use);
}
END_TEST

/* Where the driver keeps no programs, the backend does, and reads them. */
START_TEST(programs_from_the_disk_leave_nothing) {
  static const char *const options[] = {"kernels=cpu", NULL};
  setenv("POCL_KERNEL_CACHE", "0", 1);
  expect_nothing_left(options, work_without_waiting);
}
END_TEST

/* ---- while it is open ---- */

static long buffers_after(graft_rt_device *device, int elements) {
  long left[BETWEEN_COUNTS];
  char line[64];
  snprintf(line, sizeof line, "aten::_foreach_neg {f32[%d]}", elements);
  ck_assert_msg(!call_of(line, device, NULL), "%s", graft_last_error());
  OK(graft_memory_empty_cache(device));
  between_count(left);
  return left[BETWEEN_BUFFERS];
}

/* Each call brings a table of its own to the device, which keeps the latest. */
START_TEST(tables_are_kept_and_do_not_pile_up) {
  enum { CALLS = 200, KEPT = 128 };
  graft_rt_device *device = device_at(OPENCL, NULL, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  between_begin();
  long before = buffers_after(device, 1), after = before;
  for (int i = 2; i <= CALLS; i++) {
    long now = buffers_after(device, i);
    ck_assert_msg(now == after + (i <= KEPT), "call %d: %ld buffers, %ld before it", i, now, after);
    ck_assert_msg(buffers_after(device, i) == now, "call %d makes its table twice", i);
    after = now;
  }
  ck_assert_int_eq(buffers_after(device, CALLS - KEPT / 2), after); /* which is there */
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(a_closed_device_leaves_nothing, 2),
                              ONCE(programs_from_the_disk_leave_nothing),
                              ONCE(tables_are_kept_and_do_not_pile_up),
                              ONCE(each_recording_counts_its_own),
                              {0}};
  return run_suite("opencl_ends", tests, (suite_options){.timeout_s = 120});
}
