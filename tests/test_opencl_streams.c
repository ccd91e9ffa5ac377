/* What the OpenCL backend's streams and events say of work that the driver has not done yet, or that has failed: by its
 * own tables, with a driver that says what the test wants. */
#include <math.h>
#include <stdio.h>

#include "bad_input.h"
#include "between.h"
#include "device/device.h"
#include "suite.h"

static graft_rt_device *opened;
static graft_device *device;
static const graft_native_handle_api *native;
static const graft_stream_api *streams;
static const graft_memory_api *memory;
static graft_buffer *buffer;

enum { BYTES = 4096 };

static void setup(void) {
  opened = device_at(OPENCL, NULL, 0);
  ck_assert_msg(opened, "%s", graft_last_error());
  between_begin();
  const graft_plugin *plugin = &opened->backend->plugin;
  OK(plugin->extension(plugin->self, GRAFT_EXTENSION_NATIVE_HANDLE, 1, (const void **)&native));
  device = opened->handle;
  streams = opened->backend->plugin.stream;
  memory = opened->backend->plugin.memory;
  graft_allocation request = {.struct_size = sizeof request, .bytes = BYTES, .kind = GRAFT_MEMORY_DEVICE};
  OK(memory->allocate(device, &request));
  buffer = request.buffer;
}

static void teardown(void) {
  ck_assert_msg(!between_waits_for_ever(), "a queue waits for what another one was not told to begin");
  OK(memory->release(device, buffer));
}

static graft_stream *new_stream(graft_stream_flags flags) {
  graft_stream *stream;
  OK(streams->create(device, 0, flags, &stream));
  return stream;
}

static graft_event *new_event(graft_event_flags flags) {
  graft_event *event;
  OK(streams->event_create(device, flags, &event));
  return event;
}

static void submit(graft_stream *stream, uint8_t value) {
  OK(memory->fill(stream, buffer, 0, BYTES, &value, 1));
}

/* ---- progress ---- */

/* While the driver answers so, the stream does that, with so many new markers. */
static void expect_query(graft_stream *stream, const cl_int *answers, int count, graft_status status, int markers) {
  long before = between_markers();
  between_say_states(answers, count);
  ck_assert_int_eq(streams->query(stream), status);
  ck_assert_int_eq(between_states_said(), count);
  ck_assert_int_eq(between_markers() - before, markers);
  between_say_states(NULL, 0);
}
#define ANSWERS(...) (const cl_int[]){__VA_ARGS__}, sizeof((const cl_int[]){__VA_ARGS__}) / sizeof(cl_int)

START_TEST(who_asks_again_shares_a_marker) {
  graft_stream *stream = new_stream(0);
  submit(stream, 1);
  expect_query(stream, ANSWERS(CL_RUNNING), GRAFT_NOT_READY, 1);
  expect_query(stream, ANSWERS(CL_QUEUED), GRAFT_NOT_READY, 0);
  submit(stream, 2);
  expect_query(stream, ANSWERS(CL_RUNNING, CL_RUNNING), GRAFT_NOT_READY, 0);
  /* The marker is reached, which stands before the second fill. */
  expect_query(stream, ANSWERS(CL_RUNNING, CL_COMPLETE), GRAFT_NOT_READY, 0);
  expect_query(stream, ANSWERS(CL_COMPLETE, CL_SUBMITTED), GRAFT_NOT_READY, 1);
  expect_query(stream, ANSWERS(CL_COMPLETE), GRAFT_OK, 0);
  /* Nothing was submitted since. */
  expect_query(stream, NULL, 0, GRAFT_OK, 0);
  submit(stream, 3);
  OK(streams->synchronize(stream));
  expect_query(stream, NULL, 0, GRAFT_OK, 0);
  OK(streams->destroy(stream));
}
END_TEST

START_TEST(a_stream_without_work_is_done) {
  graft_stream *stream = new_stream(0);
  expect_query(stream, NULL, 0, GRAFT_OK, 0);
  OK(streams->destroy(stream));
}
END_TEST

static void expect_failure(graft_stream *stream, graft_failure_scope expected, const char *part) {
  char text[256] = "", cut[8];
  size_t length = 0;
  graft_failure_scope scope = 77;
  OK(streams->failure(device, stream, text, sizeof text, &length, &scope));
  ck_assert_int_eq(scope, expected);
  ck_assert_msg(strstr(text, part), "expected \"%s\" in: %s", part, text);
  ck_assert_uint_eq(length, strlen(text));
  OK(streams->failure(device, stream, cut, sizeof cut, NULL, NULL));
  ck_assert(strlen(cut) < sizeof cut && strncmp(cut, text, strlen(cut)) == 0);
  OK(streams->failure(device, stream, NULL, 0, NULL, NULL));
}

START_TEST(a_command_that_failed_fails_its_stream) {
  graft_stream *stream = new_stream(0);
  expect_failure(stream, GRAFT_FAILURE_NONE, "");
  submit(stream, 1);
  expect_query(stream, ANSWERS(CL_OUT_OF_RESOURCES), GRAFT_STREAM_FAILED, 1);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "CL_OUT_OF_RESOURCES"));
  expect_failure(stream, GRAFT_FAILURE_STREAM, "a command of the stream: CL_OUT_OF_RESOURCES");
  uint8_t value = 2;
  uint32_t word;
  graft_event *event = new_event(0);
  ck_assert_int_eq(streams->query(stream), GRAFT_STREAM_FAILED);
  ck_assert_int_eq(streams->synchronize(stream), GRAFT_STREAM_FAILED);
  ck_assert_int_eq(streams->flush(stream), GRAFT_STREAM_FAILED);
  ck_assert_int_eq(streams->event_record(event, stream), GRAFT_STREAM_FAILED);
  ck_assert_int_eq(streams->stream_wait(stream, event), GRAFT_STREAM_FAILED);
  ck_assert_int_eq(memory->fill(stream, buffer, 0, 1, &value, 1), GRAFT_STREAM_FAILED);
  ck_assert_int_eq(memory->copy(stream, buffer, 0, buffer, 64, 32), GRAFT_STREAM_FAILED);
  ck_assert_int_eq(memory->copy_from_host(stream, buffer, 0, &value, 1, 0), GRAFT_STREAM_FAILED);
  ck_assert_int_eq(memory->copy_to_host(stream, &word, buffer, 0, sizeof word, 0), GRAFT_STREAM_FAILED);
  OK(streams->event_destroy(event));
  OK(streams->destroy(stream));
  expect_failure(NULL, GRAFT_FAILURE_NONE, "");
}
END_TEST

/* A failure of one request leaves the stream as it was; others don't. */
static const struct {
  cl_int error;
  graft_status status;
  graft_failure_scope scope;
} errors[] = {
    {CL_OUT_OF_HOST_MEMORY, GRAFT_OUT_OF_MEMORY, GRAFT_FAILURE_NONE},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, GRAFT_OUT_OF_MEMORY, GRAFT_FAILURE_NONE},
    {CL_INVALID_VALUE, GRAFT_INVALID_ARGUMENT, GRAFT_FAILURE_NONE},
    {CL_MEM_COPY_OVERLAP, GRAFT_INVALID_ARGUMENT, GRAFT_FAILURE_NONE},
    {CL_OUT_OF_RESOURCES, GRAFT_STREAM_FAILED, GRAFT_FAILURE_STREAM},
    {CL_INVALID_COMMAND_QUEUE, GRAFT_STREAM_FAILED, GRAFT_FAILURE_STREAM},
    {CL_DEVICE_NOT_AVAILABLE, GRAFT_DEVICE_LOST, GRAFT_FAILURE_DEVICE},
};

START_TEST(errors_last_as_long_as_they_must) {
  static between_places places;
  graft_stream *stream = new_stream(0);
  uint8_t value = 1;
  between_watch(&places);
  submit(stream, value);
  between_watch(NULL);
  ck_assert_uint_eq(places.count, 1);
  between_fail(&places.items[0], errors[_i].error);
  ck_assert_int_eq(memory->fill(stream, buffer, 0, BYTES, &value, 1), errors[_i].status);
  ck_assert(between_failed());
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "clEnqueueFillBuffer: CL_"));
  bool lasts = errors[_i].scope != GRAFT_FAILURE_NONE;
  expect_failure(stream, errors[_i].scope, lasts ? "clEnqueueFillBuffer: CL_" : "");
  ck_assert_int_eq(streams->synchronize(stream), lasts ? errors[_i].status : GRAFT_OK);
  OK(streams->destroy(stream));
}
END_TEST

/* ---- events ---- */

static void expect_event(graft_event *event, cl_int state, graft_status status) {
  between_say_states(&state, 1);
  ck_assert_int_eq(streams->event_query(event), status);
  ck_assert_int_eq(between_states_said(), 1);
  between_say_states(NULL, 0);
}

START_TEST(events_say_what_their_marker_says) {
  graft_stream *stream = new_stream(0);
  graft_event *event = new_event(0);
  OK(streams->event_query(event)); /* never recorded */
  OK(streams->event_synchronize(event));
  OK(streams->stream_wait(stream, event));
  submit(stream, 1);
  OK(streams->event_record(event, stream));
  expect_event(event, CL_QUEUED, GRAFT_NOT_READY);
  expect_event(event, CL_RUNNING, GRAFT_NOT_READY);
  expect_event(event, CL_COMPLETE, GRAFT_OK);
  expect_event(event, CL_OUT_OF_RESOURCES, GRAFT_STREAM_FAILED);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "a command before the event: CL_OUT_OF_RESOURCES"));
  OK(streams->destroy(stream)); /* which it may outlive */
  OK(streams->event_synchronize(event));
  OK(streams->event_query(event));
  OK(streams->event_destroy(event));
}
END_TEST

START_TEST(time_between_events) {
  graft_stream *stream = new_stream(GRAFT_STREAM_TIMING), *untimed = new_stream(0);
  graft_event *first = new_event(GRAFT_EVENT_TIMING), *second = new_event(GRAFT_EVENT_TIMING), *plain = new_event(0);
  double there = NAN, back = NAN;
  ck_assert_int_eq(streams->event_elapsed(first, second, &there), GRAFT_NOT_READY); /* never recorded */
  OK(streams->event_record(first, stream));
  for (int i = 0; i < 100; i++) submit(stream, (uint8_t)i);
  OK(streams->event_record(second, stream));
  OK(streams->event_record(plain, stream));
  OK(streams->synchronize(stream));
  between_say_states(ANSWERS(CL_RUNNING, CL_COMPLETE));
  ck_assert_int_eq(streams->event_elapsed(first, second, &there), GRAFT_NOT_READY);
  between_say_states(ANSWERS(CL_COMPLETE, CL_RUNNING));
  ck_assert_int_eq(streams->event_elapsed(first, second, &there), GRAFT_NOT_READY);
  between_say_states(ANSWERS(CL_OUT_OF_RESOURCES, CL_COMPLETE));
  ck_assert_int_eq(streams->event_elapsed(first, second, &there), GRAFT_STREAM_FAILED);
  between_say_states(NULL, 0);
  ck_assert(isnan(there));
  OK(streams->event_elapsed(first, second, &there));
  OK(streams->event_elapsed(second, first, &back));
  ck_assert_msg(there > 0 && there < 60000 && back == -there, "%g ms, and %g back", there, back);
  ck_assert_int_eq(streams->event_elapsed(first, plain, &there), GRAFT_UNIMPLEMENTED);
  ck_assert_int_eq(streams->event_elapsed(plain, first, &there), GRAFT_UNIMPLEMENTED);
  OK(streams->event_record(second, untimed));
  OK(streams->event_synchronize(second));
  ck_assert_int_eq(streams->event_elapsed(first, second, &there), GRAFT_UNIMPLEMENTED);
  graft_event *const events[] = {first, second, plain};
  for (int i = 0; i < ROWS(events); i++) OK(streams->event_destroy(events[i]));
  OK(streams->destroy(stream));
  OK(streams->destroy(untimed));
}
END_TEST

/* ---- two queues of a stream ---- */

static cl_command_queue queue_of(graft_stream *stream) {
  void *handle;
  OK(native->stream(stream, &handle));
  return handle;
}

/* What the stream's queue is given from now on waits for the event that is returned. */
static cl_event close_gate(graft_stream *stream) {
  cl_context context;
  cl_int error;
  ck_assert(!clGetCommandQueueInfo(queue_of(stream), CL_QUEUE_CONTEXT, sizeof context, &context, NULL));
  cl_event gate = clCreateUserEvent(context, &error);
  ck_assert_int_eq(error, CL_SUCCESS);
  ck_assert_int_eq(clEnqueueBarrierWithWaitList(queue_of(stream), 1, &gate, NULL), CL_SUCCESS);
  return gate;
}

/* Commands that are timed, which go to another queue, come behind those that are not, and the other way round. */
START_TEST(timed_commands_stay_in_order) {
  enum { LOOKS = 10000 };
  graft_stream *stream = new_stream(0);
  graft_event *event = new_event(0);
  if (_i) OK(graft_profiler_start(opened));
  submit(stream, 1);
  const cl_command_queue before = queue_of(stream);
  const cl_event gate = close_gate(stream);
  OK(_i ? graft_profiler_stop(opened) : graft_profiler_start(opened));
  submit(stream, 2);
  ck_assert_ptr_ne(queue_of(stream), before);
  OK(streams->event_record(event, stream));
  for (int i = 0; i < LOOKS; i++) ck_assert_int_eq(streams->event_query(event), GRAFT_NOT_READY);
  ck_assert_int_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  OK(streams->event_synchronize(event));
  if (!_i) OK(graft_profiler_stop(opened));
  clReleaseEvent(gate);
  OK(streams->event_destroy(event));
  OK(streams->destroy(stream));
}
END_TEST

/* ---- what must be understood ---- */

START_TEST(unknown_flags_are_refused) {
  graft_stream *stream = new_stream(0), *none = NULL;
  graft_event *event = NULL;
  graft_copy_flags known = GRAFT_COPY_SOURCE_REUSABLE;
  uint32_t word = 0;
  for (int bit = 0; bit < 16; bit++) {
    uint32_t flag = UINT32_C(1) << bit;
    graft_allocation request = {.struct_size = sizeof request, .bytes = 64, .flags = flag};
    if (flag != GRAFT_STREAM_TIMING) ck_assert_int_eq(streams->create(device, 0, flag, &none), GRAFT_INVALID_ARGUMENT);
    if (flag != GRAFT_EVENT_TIMING)
      ck_assert_int_eq(streams->event_create(device, flag, &event), GRAFT_INVALID_ARGUMENT);
    ck_assert_int_eq(memory->allocate(device, &request), GRAFT_INVALID_ARGUMENT);
    if (flag != known)
      ck_assert_int_eq(memory->copy_from_host(stream, buffer, 0, &word, sizeof word, flag), GRAFT_INVALID_ARGUMENT);
    ck_assert_int_eq(memory->copy_to_host(stream, &word, buffer, 0, sizeof word, flag), GRAFT_INVALID_ARGUMENT);
  }
  ck_assert_int_eq(streams->create(device, 1, 0, &none), GRAFT_INVALID_ARGUMENT); /* a priority */
  /* Flags of the upper half may be ignored. */
  OK(streams->create(device, 0, UINT32_C(1) << 16, &none));
  OK(streams->event_create(device, UINT32_C(1) << 16, &event));
  OK(memory->copy_from_host(stream, buffer, 0, &word, sizeof word, UINT32_C(1) << 16));
  OK(memory->copy_to_host(stream, &word, buffer, 0, sizeof word, UINT32_C(1) << 16));
  OK(streams->synchronize(stream));
  OK(streams->destroy(none));
  OK(streams->event_destroy(event));
  OK(streams->destroy(stream));
}
END_TEST

START_TEST(allocations_that_no_device_has_are_refused) {
  graft_allocation nothing = {.struct_size = sizeof nothing, .kind = GRAFT_MEMORY_DEVICE};
  graft_allocation large = {.struct_size = sizeof large, .bytes = UINT64_C(1) << 62, .kind = GRAFT_MEMORY_DEVICE};
  graft_allocation other = {.struct_size = sizeof other, .bytes = 64, .kind = 77};
  ck_assert_int_eq(memory->allocate(device, &nothing), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(memory->allocate(device, &large), GRAFT_OUT_OF_MEMORY);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "4611686018427387904 bytes asked for"));
  ck_assert_int_eq(memory->allocate(device, &other), GRAFT_UNIMPLEMENTED);
}
END_TEST

/* What the host writes there arrives on the device, and what comes from the device the host reads there. */
START_TEST(pinned_memory_is_the_hosts) {
  graft_allocation request = {.struct_size = sizeof request, .bytes = BYTES, .kind = GRAFT_MEMORY_PINNED};
  graft_stream *stream = new_stream(0);
  OK(memory->allocate(device, &request));
  unsigned char *bytes = request.host_pointer;
  ck_assert_ptr_nonnull(bytes);
  for (int i = 0; i < BYTES; i++) bytes[i] = (unsigned char)(i % 251);
  OK(memory->copy_from_host(stream, buffer, 0, bytes, BYTES, 0));
  OK(streams->synchronize(stream));
  memset(bytes, 0xee, BYTES);
  OK(memory->copy_to_host(stream, bytes, buffer, 0, BYTES, 0));
  OK(streams->synchronize(stream));
  for (int i = 0; i < BYTES; i++) ck_assert_int_eq(bytes[i], i % 251);
  OK(memory->release(device, request.buffer));
  OK(streams->destroy(stream));
}
END_TEST

/* Bytes at their places, whatever the sizes: a small source is copied aside, a large one is waited for. */
START_TEST(copies_arrive_where_they_belong) {
  static const uint64_t sizes[] = {0, 1, 100, (1u << 20) - 1, 1u << 20, (1u << 20) + 1};
  uint64_t bytes = sizes[_i % ROWS(sizes)], room = bytes + 32;
  graft_copy_flags flags = _i < ROWS(sizes) ? 0 : GRAFT_COPY_SOURCE_REUSABLE;
  graft_allocation request = {.struct_size = sizeof request, .bytes = 2 * room, .kind = GRAFT_MEMORY_DEVICE};
  graft_stream *stream = new_stream(0);
  unsigned char *from = malloc(room), *to = malloc(2 * room), zero = 0;
  OK(memory->allocate(device, &request));
  OK(memory->fill(stream, request.buffer, 0, 2 * room, &zero, 1));
  for (uint64_t i = 0; i < bytes; i++) from[i] = (unsigned char)(i % 251 + 1);
  OK(memory->copy_from_host(stream, request.buffer, 16, from, bytes, flags));
  if (flags) memset(from, 0xee, bytes);
  OK(memory->copy(stream, request.buffer, room + 8, request.buffer, 16, bytes));
  OK(memory->copy_to_host(stream, to, request.buffer, 0, 2 * room, 0));
  OK(streams->synchronize(stream));
  for (uint64_t i = 0; i < 2 * room; i++) {
    bool first = i >= 16 && i < 16 + bytes, second = i >= room + 8 && i < room + 8 + bytes;
    uint64_t at = first ? i - 16 : i - room - 8;
    if (to[i] == (first || second ? at % 251 + 1 : 0)) continue;
    ck_abort_msg("byte %llu of %llu: %d", (unsigned long long)i, (unsigned long long)bytes, to[i]);
  }
  OK(memory->release(device, request.buffer));
  OK(streams->destroy(stream));
  free(from);
  free(to);
}
END_TEST

/* ---- what is not done twice ---- */

static graft_buffer *new_buffer(uint64_t bytes) {
  graft_allocation request = {.struct_size = sizeof request, .bytes = bytes, .kind = GRAFT_MEMORY_DEVICE};
  OK(memory->allocate(device, &request));
  return request.buffer;
}

static unsigned char first_byte(graft_stream *stream, graft_buffer *from) {
  unsigned char byte = 0;
  OK(memory->copy_to_host(stream, &byte, from, 0, 1, 0));
  OK(streams->synchronize(stream));
  return byte;
}

/* PoCL's buffer is the host's memory, which the host reads itself once the stream is done; until then, and while others
 * have its queue, a command does. */
START_TEST(an_idle_stream_is_read_in_place) {
  enum { LARGE = 2 << 20 };
  graft_stream *stream = new_stream(0);
  graft_buffer *large = new_buffer(LARGE);
  unsigned char value = 1, seen = 0;
  OK(memory->fill(stream, large, 0, LARGE, &value, 1));
  const long before = between_reads();
  ck_assert_int_eq(first_byte(stream, large), 1);
  ck_assert_int_eq(between_reads() - before, 1);
  ck_assert_int_eq(first_byte(stream, large), 1);
  ck_assert_int_eq(between_reads() - before, 1);
  value = 2;
  OK(memory->fill(stream, large, 0, LARGE, &value, 1));
  ck_assert_int_eq(first_byte(stream, large), 2);

  void *handle;
  OK(native->buffer(large, &handle));
  const cl_event gate = close_gate(stream);
  value = 3;
  ck_assert(!clEnqueueFillBuffer(queue_of(stream), handle, &value, 1, 0, LARGE, 0, NULL, NULL));
  OK(memory->copy_to_host(stream, &seen, large, 0, 1, 0));
  ck_assert_int_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  OK(streams->synchronize(stream));
  ck_assert_int_eq(seen, 3);
  clReleaseEvent(gate);
  OK(memory->release(device, large));
  OK(streams->destroy(stream));
}
END_TEST

/* How many arguments one more sum gives to its kernel. */
static long arguments_of_a_sum(graft_tensor *x, graft_tensor *y, graft_tensor **out) {
  const long before = between_arguments();
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(x), graft_value_tensor(y)}, 2, out, 1));
  return between_arguments() - before;
}

START_TEST(what_a_kernel_has_is_not_given_again) {
  enum { N = 8 };
  const float ones[N] = {1, 1, 1, 1, 1, 1, 1, 1}, twos[N] = {2, 2, 2, 2, 2, 2, 2, 2};
  graft_tensor *x, *y, *out = NULL, *other = NULL;
  float sums[N];
  OK(graft_tensor_from_host(opened, GRAFT_F32, 1, (int64_t[]){N}, ones, &x));
  OK(graft_tensor_from_host(opened, GRAFT_F32, 1, (int64_t[]){N}, twos, &y));
  arguments_of_a_sum(x, y, &out); /* which makes it */
  ck_assert_int_gt(arguments_of_a_sum(x, y, &out), 0);
  ck_assert_int_eq(arguments_of_a_sum(x, y, &out), 0);
  arguments_of_a_sum(y, y, &other);
  ck_assert_int_gt(arguments_of_a_sum(y, y, &other), 0);
  OK(graft_tensor_to_host(other, sums));
  for (int i = 0; i < N; i++) ck_assert(sums[i] == 4);
  ck_assert_int_gt(arguments_of_a_sum(x, y, &out), 0);
  OK(graft_tensor_to_host(out, sums));
  for (int i = 0; i < N; i++) ck_assert(sums[i] == 3);
  /* A later buffer may have the handle of one that is gone. */
  OK(memory->release(device, new_buffer(BYTES)));
  ck_assert_int_gt(arguments_of_a_sum(x, y, &out), 0);
  graft_tensor *all[] = {x, y, out, other};
  for (int i = 0; i < ROWS(all); i++) graft_tensor_release(all[i]);
}
END_TEST

/* What was recorded is flushed: the driver may keep back what the other stream waits for. */
START_TEST(a_stream_waits_for_another) {
  graft_stream *first = new_stream(0), *second = new_stream(0);
  graft_event *event = new_event(0);
  uint8_t bytes[BYTES] = {0};
  submit(first, 7);
  OK(streams->event_record(event, first));
  OK(streams->stream_wait(second, event));
  OK(memory->copy_to_host(second, bytes, buffer, 0, BYTES, 0));
  OK(streams->synchronize(second));
  ck_assert(bytes[0] == 7 && bytes[BYTES - 1] == 7);
  OK(streams->event_destroy(event));
  OK(streams->destroy(second));
  OK(streams->destroy(first));
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(who_asks_again_shares_a_marker),
                              ONCE(a_stream_without_work_is_done),
                              ONCE(a_command_that_failed_fails_its_stream),
                              EACH(errors_last_as_long_as_they_must, ROWS(errors)),
                              ONCE(events_say_what_their_marker_says),
                              ONCE(time_between_events),
                              ONCE(a_stream_waits_for_another),
                              EACH(timed_commands_stay_in_order, 2),
                              ONCE(unknown_flags_are_refused),
                              ONCE(allocations_that_no_device_has_are_refused),
                              ONCE(pinned_memory_is_the_hosts),
                              EACH(copies_arrive_where_they_belong, 12),
                              ONCE(an_idle_stream_is_read_in_place),
                              ONCE(what_a_kernel_has_is_not_given_again),
                              {0}};
  return run_suite("opencl_streams", tests, (suite_options){.timeout_s = 60, .setup = setup, .teardown = teardown});
}
