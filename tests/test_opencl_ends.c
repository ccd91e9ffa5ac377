/* What the OpenCL backend takes it gives back: of the driver's objects and of memory, as many are left after a device
 * was opened, used in all ways and closed as were left the time before. The program stands between the backend and the
 * C library, and between the backend and OpenCL, and counts. */
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <check.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bad_input.h"
#include "suite.h"

#define SEEN __attribute__((visibility("default")))

/* ---- memory: what the backend's own code asked for, wherever it is freed ---- */

enum { SLOTS = 1 << 18 };
static _Atomic(uintptr_t) taken[SLOTS]; /* by open addressing; GONE marks a place that was in use */
static atomic_long blocks, files;
static uintptr_t begin, end; /* of the backend's code */
static const uintptr_t GONE = 1;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *pointer);

static size_t slot_of(uintptr_t key) {
  return (size_t)(key >> 4) * 0x9e3779b97f4a7c15u >> 46;
}

static void note(void *pointer, const void *caller) {
  uintptr_t key = (uintptr_t)pointer, from = (uintptr_t)caller;
  if (!pointer || from < begin || from >= end) return;
  for (size_t i = slot_of(key);; i = (i + 1) % SLOTS) {
    uintptr_t empty = 0, gone = GONE;
    if (!atomic_compare_exchange_strong(&taken[i], &empty, key) &&
        !atomic_compare_exchange_strong(&taken[i], &gone, key))
      continue;
    atomic_fetch_add(&blocks, 1);
    return;
  }
}

static void forget(void *pointer) {
  uintptr_t key = (uintptr_t)pointer;
  if (!pointer || !end) return;
  for (size_t i = slot_of(key);; i = (i + 1) % SLOTS) {
    uintptr_t there = atomic_load(&taken[i]);
    if (!there) return;
    if (there != key) continue;
    atomic_store(&taken[i], GONE);
    atomic_fetch_sub(&blocks, 1);
    return;
  }
}

SEEN void *malloc(size_t bytes) {
  void *pointer = __libc_malloc(bytes);
  note(pointer, __builtin_return_address(0));
  return pointer;
}

SEEN void *calloc(size_t count, size_t bytes) {
  void *pointer = __libc_calloc(count, bytes);
  note(pointer, __builtin_return_address(0));
  return pointer;
}

SEEN void *realloc(void *old, size_t bytes) {
  forget(old);
  void *pointer = __libc_realloc(old, bytes);
  note(pointer ? pointer : old, __builtin_return_address(0));
  return pointer;
}

SEEN void free(void *pointer) {
  forget(pointer);
  __libc_free(pointer);
}

static bool calls_from_backend(const void *caller) {
  return (uintptr_t)caller >= begin && (uintptr_t)caller < end;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

SEEN FILE *fopen(const char *path, const char *mode) {
  FILE *file = NEXT(fopen)(path, mode);
  if (file && calls_from_backend(__builtin_return_address(0))) atomic_fetch_add(&files, 1);
  return file;
}

SEEN int fclose(FILE *file) {
  if (calls_from_backend(__builtin_return_address(0))) atomic_fetch_sub(&files, 1);
  return NEXT(fclose)(file);
}

/* ---- objects of OpenCL: references held, by kind ---- */

enum { CONTEXTS, QUEUES, BUFFERS, PROGRAMS, KERNELS, EVENTS, KINDS };
static const char *const kinds[KINDS] = {"contexts", "queues", "buffers", "programs", "kernels", "events"};
static atomic_long held[KINDS];

static void *driver(const char *name) {
  static void *library;
  if (!library) library = dlopen("libOpenCL.so.1", RTLD_NOW);
  ck_assert_msg(library, "%s", dlerror());
  void *function = dlsym(library, name);
  ck_assert_msg(function, "%s", dlerror());
  return function;
}

#define DRIVER(name) ((__typeof__(&name))driver(#name))
#define MADE(kind, name, type, parameters, arguments) \
  SEEN type name parameters {                         \
    type object = DRIVER(name) arguments;             \
    if (object) atomic_fetch_add(&held[kind], 1);     \
    return object;                                    \
  }
#define COUNTED(kind, what, type)            \
  SEEN cl_int clRetain##what(type object) {  \
    atomic_fetch_add(&held[kind], 1);        \
    return DRIVER(clRetain##what)(object);   \
  }                                          \
  SEEN cl_int clRelease##what(type object) { \
    atomic_fetch_sub(&held[kind], 1);        \
    return DRIVER(clRelease##what)(object);  \
  }
/* A command that gives an event where it is asked for one. */
#define COMMAND(name, parameters, arguments)                              \
  SEEN cl_int name parameters {                                           \
    cl_int error = DRIVER(name) arguments;                                \
    if (error == CL_SUCCESS && event) atomic_fetch_add(&held[EVENTS], 1); \
    return error;                                                         \
  }

MADE(CONTEXTS, clCreateContext, cl_context,
     (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
      void(CL_CALLBACK *say)(const char *, const void *, size_t, void *), void *context, cl_int *error),
     (properties, count, devices, say, context, error))
MADE(QUEUES, clCreateCommandQueue, cl_command_queue,
     (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *error),
     (context, device, properties, error))
MADE(BUFFERS, clCreateBuffer, cl_mem, (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error),
     (context, flags, bytes, host, error))
MADE(PROGRAMS, clCreateProgramWithSource, cl_program,
     (cl_context context, cl_uint count, const char **texts, const size_t *lengths, cl_int *error),
     (context, count, texts, lengths, error))
MADE(PROGRAMS, clCreateProgramWithBinary, cl_program,
     (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths,
      const unsigned char **binaries, cl_int *status, cl_int *error),
     (context, count, devices, lengths, binaries, status, error))
MADE(KERNELS, clCreateKernel, cl_kernel, (cl_program program, const char *name, cl_int *error), (program, name, error))
COUNTED(CONTEXTS, Context, cl_context)
COUNTED(QUEUES, CommandQueue, cl_command_queue)
COUNTED(BUFFERS, MemObject, cl_mem)
COUNTED(PROGRAMS, Program, cl_program)
COUNTED(KERNELS, Kernel, cl_kernel)
COUNTED(EVENTS, Event, cl_event)
COMMAND(clEnqueueMarkerWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event),
        (queue, count, list, event))
COMMAND(clEnqueueBarrierWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event),
        (queue, count, list, event))
COMMAND(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *first, const size_t *global,
         const size_t *local, cl_uint count, const cl_event *list, cl_event *event),
        (queue, kernel, dims, first, global, local, count, list, event))
COMMAND(clEnqueueReadBuffer,
        (cl_command_queue queue, cl_mem from, cl_bool blocking, size_t offset, size_t bytes, void *to, cl_uint count,
         const cl_event *list, cl_event *event),
        (queue, from, blocking, offset, bytes, to, count, list, event))
COMMAND(clEnqueueWriteBuffer,
        (cl_command_queue queue, cl_mem to, cl_bool blocking, size_t offset, size_t bytes, const void *from,
         cl_uint count, const cl_event *list, cl_event *event),
        (queue, to, blocking, offset, bytes, from, count, list, event))
COMMAND(clEnqueueCopyBuffer,
        (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset, size_t bytes,
         cl_uint count, const cl_event *list, cl_event *event),
        (queue, from, to, from_offset, to_offset, bytes, count, list, event))
COMMAND(clEnqueueFillBuffer,
        (cl_command_queue queue, cl_mem to, const void *pattern, size_t pattern_bytes, size_t offset, size_t bytes,
         cl_uint count, const cl_event *list, cl_event *event),
        (queue, to, pattern, pattern_bytes, offset, bytes, count, list, event))
COMMAND(clEnqueueUnmapMemObject,
        (cl_command_queue queue, cl_mem buffer, void *mapped, cl_uint count, const cl_event *list, cl_event *event),
        (queue, buffer, mapped, count, list, event))

/* ---- a device's whole life ---- */

static int remember_code(struct dl_phdr_info *info, size_t size, void *context) {
  (void)size, (void)context;
  if (!strstr(info->dlpi_name, "graft_opencl.so")) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
    begin = info->dlpi_addr + part->p_vaddr;
    end = begin + part->p_memsz;
  }
  return 1;
}

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

/* Of each way to take something: programs and tables of several sizes, events asked and waited for, pinned memory,
 * records, and a stream that has failed. */
static void use(graft_rt_device *device) {
  static const char *const lines[] = {"aten::add.Tensor f32[17] i64[17]",
                                      "aten::sum.dim_IntList f32[3,17] [1]",
                                      "aten::mm f32[5,6] f32[6,7]",
                                      "aten::_fft_c2c c64[12] [0] 0 true",
                                      "aten::sort f32[100]",
                                      "aten::index.Tensor f32[3,4] {i64[5]}",
                                      "aten::cat {f32[3];f32[4]}",
                                      "aten::native_dropout f32[17] 0.5 true"};
  graft_rt_stream *usual = graft_stream_current(device), *stream;
  graft_rt_event *event, *timed;
  uint64_t lost;
  void *pinned;
  OK(graft_pinned_allocate(device, 4096, &pinned));
  memset(pinned, 1, 4096);
  OK(graft_pinned_free(device, pinned));
  for (int i = 0; i < ROWS(lines); i++) ck_assert_msg(!call_of(lines[i], device, NULL), "%s", graft_last_error());
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

enum { COUNTS = KINDS + 2 };

static void count(long left[COUNTS]) {
  for (int i = 0; i < KINDS; i++) left[i] = atomic_load(&held[i]);
  left[KINDS] = atomic_load(&blocks);
  left[KINDS + 1] = atomic_load(&files);
}

static void live_once(long left[COUNTS]) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  OK(graft_backend_open(OPENCL, NULL, &backend));
  dl_iterate_phdr(remember_code, NULL);
  ck_assert(end);
  OK(graft_backend_device(backend, 0, &device));
  use(device);
  OK(graft_backend_close(backend));
  count(left);
}

START_TEST(a_closed_device_leaves_nothing) {
  char cache[] = "/tmp/graft_test_XXXXXX", command[64];
  long first[COUNTS], second[COUNTS];
  ck_assert_ptr_nonnull(mkdtemp(cache));
  setenv("GRAFT_CACHE_DIR", cache, 1);
  live_once(first); /* which keeps its programs on disk, and what a process has but once */
  live_once(first);
  live_once(second);
  for (int tenths = 0; tenths < 50 && memcmp(first, second, sizeof first); tenths++) {
    usleep(100000); /* a thread of the driver may be on its way out */
    count(second);
  }
  snprintf(command, sizeof command, "rm -rf '%s'", cache);
  ck_assert_int_eq(system(command), 0);
  for (int i = 0; i < KINDS; i++)
    ck_assert_msg(second[i] <= first[i], "%ld %s more are left each time", second[i] - first[i], kinds[i]);
  ck_assert_msg(second[KINDS] <= first[KINDS], "%ld blocks of memory more are left each time",
                second[KINDS] - first[KINDS]);
  ck_assert_int_eq(second[KINDS + 1], 0);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(a_closed_device_leaves_nothing), {0}};
  return run_suite("opencl_ends", tests, (suite_options){.timeout_s = 120});
}
