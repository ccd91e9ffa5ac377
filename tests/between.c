#include "between.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"

#define SEEN   __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

/* ---- the backend's code ---- */

static uintptr_t begin, end;

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

void between_begin(void) {
  void *frame;
  backtrace(&frame, 1); /* which takes memory the first time */
  dl_iterate_phdr(remember_code, NULL);
  ck_assert(end);
}

static bool is_backend(const void *address) {
  return (uintptr_t)address >= begin && (uintptr_t)address < end;
}

/* ---- calls that fail ---- */

enum { FRAMES = 24 };

/* What is looked at less closely: how many functions of the backend make a place, 0 for 4; what may fail in silence. */
static const struct {
  const char *name;
  int depth;
  bool quiet;
} kinds_of_calls[] = {
    {"malloc", 0, true},
    {"calloc", 0, true},
    {"realloc", 3, true},
    {"posix_memalign", 0, true}, /* the driver's own memory serves, too */
    {"clSetMemObjectDestructorCallback", 0, true},
    {"fopen", 2, true},
    {"fread", 2, true},
    {"fwrite", 2, true},
    {"clCreateBuffer", 0, true},          /* the host makes room and asks again */
    {"clEnqueueMapBuffer", 0, true},      /* pageable memory serves, too */
    {"clEnqueueUnmapMemObject", 0, true}, /* it is released, whatever becomes of that */
    {"clFlush", 0, true},
    {"clCreateProgramWithBinary", 2, true},
    {"clCreateProgramWithSource", 2, true}, /* the next try has the driver's header */
    {"clBuildProgram", 2, true},
    {"clGetProgramInfo", 2, true},
    {"clSetEventCallback", 2, true},
    {"clGetEventInfo", 0, true}, /* of a record, or it is asked again */
    {"clGetEventProfilingInfo", 2, true},
};

static between_places *watched;
static between_place failing;
static cl_int answer;
static atomic_bool armed;

static between_place place_of(const char *name) {
  between_place place = {.key = UINT64_C(0xcbf29ce484222325), .name = name};
  void *frames[FRAMES];
  int count = backtrace(frames, FRAMES), depth = 4, i = 0;
  for (size_t k = 0; k < sizeof kinds_of_calls / sizeof *kinds_of_calls; k++) {
    if (strcmp(kinds_of_calls[k].name, name) != 0) continue;
    place.quiet = kinds_of_calls[k].quiet;
    if (kinds_of_calls[k].depth) depth = kinds_of_calls[k].depth;
  }
  while (i < count && !is_backend(frames[i])) i++;
  for (; i < count && depth > 0 && is_backend(frames[i]); i++, depth--) {
    place.key = (place.key ^ ((uintptr_t)frames[i] - begin)) * UINT64_C(0x100000001b3);
  }
  for (const char *letter = name; *letter; letter++) {
    place.key = (place.key ^ (unsigned char)*letter) * UINT64_C(0x100000001b3);
  }
  return place;
}

static void watch(const between_place *place) {
  for (uint32_t i = 0; i < watched->count; i++) {
    if (watched->items[i].key == place->key) return;
  }
  ck_assert_uint_lt(watched->count, BETWEEN_PLACES);
  watched->items[watched->count++] = *place;
}

/* Whether this call is the one that is to fail. Of what the driver calls by itself, none is. */
static bool fails(const char *name, const void *caller) {
  if ((!watched && !atomic_load(&armed)) || !is_backend(caller)) return false;
  const between_place place = place_of(name);
  if (watched) watch(&place);
  return place.key == failing.key && atomic_exchange(&armed, false);
}

void between_watch(between_places *places) {
  watched = places;
}

void between_fail(const between_place *place, cl_int error) {
  failing = place ? *place : (between_place){0};
  answer = error;
  atomic_store(&armed, place != NULL);
}

bool between_failed(void) {
  return !atomic_load(&armed);
}

/* ---- memory: what the backend's own code asked for, wherever it is freed ---- */

enum { SLOTS = 1 << 18 };
static _Atomic(uintptr_t) taken[SLOTS]; /* by open addressing; GONE marks a place that was in use */
static atomic_long blocks, files;
static const uintptr_t GONE = 1;

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *pointer);

static size_t slot_of(uintptr_t key) {
  return (size_t)(key >> 4) * 0x9e3779b97f4a7c15u >> 46;
}

static void note(void *pointer, const void *caller) {
  uintptr_t key = (uintptr_t)pointer;
  if (!pointer || !is_backend(caller)) return;
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
  if (fails("malloc", CALLER)) return NULL;
  void *pointer = __libc_malloc(bytes);
  note(pointer, CALLER);
  return pointer;
}

SEEN void *calloc(size_t count, size_t bytes) {
  if (fails("calloc", CALLER)) return NULL;
  void *pointer = __libc_calloc(count, bytes);
  note(pointer, CALLER);
  return pointer;
}

SEEN int posix_memalign(void **pointer, size_t alignment, size_t bytes) {
  void *made = fails("posix_memalign", CALLER) ? NULL : __libc_memalign(alignment, bytes);
  note(made, CALLER);
  if (made) *pointer = made;
  return made ? 0 : ENOMEM;
}

SEEN char *strdup(const char *text) {
  char *copy = __libc_malloc(strlen(text) + 1);
  note(copy, CALLER);
  return copy ? strcpy(copy, text) : NULL;
}

SEEN void *realloc(void *old, size_t bytes) {
  if (fails("realloc", CALLER)) return NULL;
  forget(old);
  void *pointer = __libc_realloc(old, bytes);
  note(pointer ? pointer : old, CALLER);
  return pointer;
}

SEEN void free(void *pointer) {
  forget(pointer);
  __libc_free(pointer);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

SEEN FILE *fopen(const char *path, const char *mode) {
  if (fails("fopen", CALLER)) return NULL;
  FILE *file = NEXT(fopen)(path, mode);
  if (file && is_backend(CALLER)) atomic_fetch_add(&files, 1);
  return file;
}

SEEN int fclose(FILE *file) {
  if (is_backend(CALLER)) atomic_fetch_sub(&files, 1);
  return NEXT(fclose)(file);
}

SEEN size_t fread(void *to, size_t bytes, size_t count, FILE *file) {
  return fails("fread", CALLER) ? 0 : NEXT(fread)(to, bytes, count, file);
}

SEEN size_t fwrite(const void *from, size_t bytes, size_t count, FILE *file) {
  return fails("fwrite", CALLER) ? 0 : NEXT(fwrite)(from, bytes, count, file);
}

/* ---- locks: the backend's are of a kind that knows who holds it ---- */

static atomic_long misuses;

#define KEPT(next, name)         \
  static __typeof__(&name) next; \
  if (!next) next = NEXT(name)

SEEN int pthread_mutex_init(pthread_mutex_t *lock, const pthread_mutexattr_t *how) {
  KEPT(next, pthread_mutex_init);
  if (how || !is_backend(CALLER)) return next(lock, how);
  pthread_mutexattr_t checked;
  pthread_mutexattr_init(&checked);
  pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
  int error = next(lock, &checked);
  pthread_mutexattr_destroy(&checked);
  return error;
}

SEEN int pthread_mutex_lock(pthread_mutex_t *lock) {
  KEPT(next, pthread_mutex_lock);
  int error = next(lock);
  if (error && is_backend(CALLER)) atomic_fetch_add(&misuses, 1);
  return error;
}

SEEN int pthread_mutex_unlock(pthread_mutex_t *lock) {
  KEPT(next, pthread_mutex_unlock);
  int error = next(lock);
  if (error && is_backend(CALLER)) atomic_fetch_add(&misuses, 1);
  return error;
}

long between_misuses(void) {
  return atomic_load(&misuses);
}

/* ---- objects of OpenCL: references held, by kind ---- */

const char *const between_kinds[BETWEEN_COUNTS] = {"contexts", "queues", "buffers",          "programs",
                                                   "kernels",  "events", "blocks of memory", "files"};
static atomic_long objects[BETWEEN_COUNTS], markers, reads, arguments_given;

static void *driver(const char *name) {
  static void *library;
  if (!library) library = dlopen("libOpenCL.so.1", RTLD_NOW);
  void *function = library ? dlsym(library, name) : NULL;
  if (function) return function;
  fprintf(stderr, "%s\n", dlerror()); /* a process that ends is no test, which could fail */
  abort();
}

/* Events of commands that their queue may keep to itself: it was not flushed behind them. The latest few. */
enum { UNFLUSHED = 64 };
static struct {
  cl_command_queue queue;
  cl_event event;
} unflushed[UNFLUSHED];
static uint32_t events_seen;
static long waits_for_ever;
static pthread_mutex_t unflushed_lock = PTHREAD_MUTEX_INITIALIZER;

static void see_event(cl_command_queue queue, cl_event event) {
  atomic_fetch_add(&objects[BETWEEN_EVENTS], 1);
  pthread_mutex_lock(&unflushed_lock);
  for (int i = 0; i < UNFLUSHED; i++) /* where one lay that was released another may lie */
    if (unflushed[i].event == event) unflushed[i].queue = NULL;
  unflushed[events_seen % UNFLUSHED].queue = queue;
  unflushed[events_seen++ % UNFLUSHED].event = event;
  pthread_mutex_unlock(&unflushed_lock);
}

static void see_flush(cl_command_queue queue) {
  pthread_mutex_lock(&unflushed_lock);
  for (int i = 0; i < UNFLUSHED; i++)
    if (unflushed[i].queue == queue) unflushed[i].queue = NULL;
  pthread_mutex_unlock(&unflushed_lock);
}

/* What a queue waits for of another must have been flushed there: it may never be begun. */
static void see_waits(cl_command_queue queue, cl_uint count, const cl_event *list) {
  pthread_mutex_lock(&unflushed_lock);
  for (int i = 0; i < UNFLUSHED; i++) {
    const bool kept = unflushed[i].queue && unflushed[i].queue != queue;
    for (cl_uint k = 0; kept && k < count; k++) waits_for_ever += list[k] == unflushed[i].event;
  }
  pthread_mutex_unlock(&unflushed_lock);
}

long between_waits_for_ever(void) {
  return waits_for_ever;
}

#define DRIVER(name) ((__typeof__(&name))driver(#name))
#define MADE(kind, name, type, parameters, arguments) \
  SEEN type name parameters {                         \
    bool failed = fails(#name, CALLER);               \
    type object = NULL;                               \
    if (failed && error) *error = answer;             \
    if (!failed) object = DRIVER(name) arguments;     \
    if (object) atomic_fetch_add(&objects[kind], 1);  \
    return object;                                    \
  }
/* Taking a reference to what is there does not fail. */
#define COUNTED(kind, what, type)            \
  SEEN cl_int clRetain##what(type object) {  \
    atomic_fetch_add(&objects[kind], 1);     \
    return DRIVER(clRetain##what)(object);   \
  }                                          \
  SEEN cl_int clRelease##what(type object) { \
    atomic_fetch_sub(&objects[kind], 1);     \
    return DRIVER(clRelease##what)(object);  \
  }
/* A command that gives an event where it is asked for one. */
#define COMMAND(name, parameters, arguments)                               \
  SEEN cl_int name parameters {                                            \
    see_waits(queue, count, list);                                         \
    cl_int error = fails(#name, CALLER) ? answer : DRIVER(name) arguments; \
    if (error == CL_SUCCESS && event) see_event(queue, *event);            \
    return error;                                                          \
  }
/* One that waits: nothing is under way behind it, even where it fails. */
#define WAITED(name, parameters, arguments)       \
  SEEN cl_int name parameters {                   \
    cl_int error = DRIVER(name) arguments;        \
    return fails(#name, CALLER) ? answer : error; \
  }
#define FLUSHES(name)                             \
  SEEN cl_int name(cl_command_queue queue) {      \
    see_flush(queue);                             \
    cl_int error = DRIVER(name)(queue);           \
    return fails(#name, CALLER) ? answer : error; \
  }
#define ASKED(name, parameters, arguments)                         \
  SEEN cl_int name parameters {                                    \
    return fails(#name, CALLER) ? answer : DRIVER(name) arguments; \
  }

MADE(BETWEEN_CONTEXTS, clCreateContext, cl_context,
     (const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
      void(CL_CALLBACK *say)(const char *, const void *, size_t, void *), void *context, cl_int *error),
     (properties, count, devices, say, context, error))
MADE(BETWEEN_QUEUES, clCreateCommandQueue, cl_command_queue,
     (cl_context context, cl_device_id device, cl_command_queue_properties properties, cl_int *error),
     (context, device, properties, error))
MADE(BETWEEN_BUFFERS, clCreateBuffer, cl_mem,
     (cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error),
     (context, flags, bytes, host, error))
MADE(BETWEEN_PROGRAMS, clCreateProgramWithSource, cl_program,
     (cl_context context, cl_uint count, const char **texts, const size_t *lengths, cl_int *error),
     (context, count, texts, lengths, error))
MADE(BETWEEN_PROGRAMS, clCreateProgramWithBinary, cl_program,
     (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *lengths,
      const unsigned char **binaries, cl_int *status, cl_int *error),
     (context, count, devices, lengths, binaries, status, error))
MADE(BETWEEN_KERNELS, clCreateKernel, cl_kernel, (cl_program program, const char *name, cl_int *error),
     (program, name, error))
COUNTED(BETWEEN_CONTEXTS, Context, cl_context)
COUNTED(BETWEEN_QUEUES, CommandQueue, cl_command_queue)
COUNTED(BETWEEN_BUFFERS, MemObject, cl_mem)
COUNTED(BETWEEN_PROGRAMS, Program, cl_program)
COUNTED(BETWEEN_KERNELS, Kernel, cl_kernel)
COUNTED(BETWEEN_EVENTS, Event, cl_event)
COMMAND(clEnqueueBarrierWithWaitList, (cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event),
        (queue, count, list, event))
COMMAND(clEnqueueNDRangeKernel,
        (cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *first, const size_t *global,
         const size_t *local, cl_uint count, const cl_event *list, cl_event *event),
        (queue, kernel, dims, first, global, local, count, list, event))
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

SEEN cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint count, const cl_event *list, cl_event *event) {
  if (fails("clEnqueueMarkerWithWaitList", CALLER)) return answer;
  see_waits(queue, count, list);
  cl_int error = DRIVER(clEnqueueMarkerWithWaitList)(queue, count, list, event);
  if (error == CL_SUCCESS && event) see_event(queue, *event);
  if (is_backend(CALLER)) atomic_fetch_add(&markers, 1);
  return error;
}

SEEN void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags,
                              size_t offset, size_t bytes, cl_uint count, const cl_event *list, cl_event *event,
                              cl_int *error) {
  if (fails("clEnqueueMapBuffer", CALLER)) {
    *error = answer;
    return NULL;
  }
  return DRIVER(clEnqueueMapBuffer)(queue, buffer, blocking, flags, offset, bytes, count, list, event, error);
}

SEEN cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem from, cl_bool blocking, size_t offset, size_t bytes,
                                void *to, cl_uint count, const cl_event *list, cl_event *event) {
  if (fails("clEnqueueReadBuffer", CALLER)) return answer;
  cl_int error = DRIVER(clEnqueueReadBuffer)(queue, from, blocking, offset, bytes, to, count, list, event);
  if (error == CL_SUCCESS && event) see_event(queue, *event);
  if (is_backend(CALLER)) atomic_fetch_add(&reads, 1);
  return error;
}

SEEN cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value) {
  if (fails("clSetKernelArg", CALLER)) return answer;
  if (is_backend(CALLER)) atomic_fetch_add(&arguments_given, 1);
  return DRIVER(clSetKernelArg)(kernel, index, bytes, value);
}
ASKED(clGetKernelInfo, (cl_kernel kernel, cl_kernel_info key, size_t capacity, void *value, size_t *size),
      (kernel, key, capacity, value, size))
ASKED(clBuildProgram,
      (cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
       void(CL_CALLBACK *say)(cl_program, void *), void *context),
      (program, count, devices, options, say, context))
ASKED(clGetProgramInfo, (cl_program program, cl_program_info key, size_t capacity, void *value, size_t *size),
      (program, key, capacity, value, size))
ASKED(clSetMemObjectDestructorCallback, (cl_mem buffer, void(CL_CALLBACK *say)(cl_mem, void *), void *context),
      (buffer, say, context))
FLUSHES(clFlush)
FLUSHES(clFinish)
WAITED(clWaitForEvents, (cl_uint count, const cl_event *events), (count, events))
ASKED(clGetEventProfilingInfo, (cl_event event, cl_profiling_info key, size_t capacity, void *value, size_t *size),
      (event, key, capacity, value, size))
ASKED(clSetEventCallback,
      (cl_event event, cl_int state, void(CL_CALLBACK *say)(cl_event, cl_int, void *), void *context),
      (event, state, say, context))

/* ---- what the driver says ---- */

static const cl_int *states;
static int states_left, states_said;

SEEN cl_int clGetEventInfo(cl_event event, cl_event_info key, size_t capacity, void *value, size_t *size) {
  if (fails("clGetEventInfo", CALLER)) return answer;
  if (!states_left || !is_backend(CALLER)) return DRIVER(clGetEventInfo)(event, key, capacity, value, size);
  memcpy(value, states++, sizeof *states);
  states_left--, states_said++;
  return CL_SUCCESS;
}

enum { PRETENCES = 2 };
static struct {
  cl_device_info question;
  const void *value;
  size_t bytes;
} pretences[PRETENCES];
static int pretences_made;
static atomic_long refusals;

static cl_uint platforms_said;

void between_say_platforms(cl_uint count) {
  platforms_said = count;
}

SEEN cl_int clGetPlatformIDs(cl_uint capacity, cl_platform_id *platforms, cl_uint *count) {
  const cl_int error = DRIVER(clGetPlatformIDs)(capacity, platforms, count);
  if (error != CL_SUCCESS || !platforms_said) return error;
  for (cl_uint i = 1; platforms && i < platforms_said && i < capacity; i++) platforms[i] = platforms[0];
  if (count) *count = platforms_said;
  return error;
}

SEEN cl_int clGetDeviceInfo(cl_device_id device, cl_device_info key, size_t capacity, void *value, size_t *size) {
  int at = 0;
  while (at < pretences_made && pretences[at].question != key) at++;
  if (at == pretences_made || !is_backend(CALLER)) {
    cl_int error = DRIVER(clGetDeviceInfo)(device, key, capacity, value, size);
    if (error != CL_SUCCESS && is_backend(CALLER)) refusals++;
    return error;
  }
  if (size) *size = pretences[at].bytes;
  if (value && capacity < pretences[at].bytes) return CL_INVALID_VALUE;
  if (value) memcpy(value, pretences[at].value, pretences[at].bytes);
  return CL_SUCCESS;
}

long between_refusals(void) {
  return refusals;
}

void between_pretend(cl_device_info question, const void *value, size_t bytes) {
  pretences_made = 0;
  if (value) between_pretend_too(question, value, bytes);
}

void between_pretend_too(cl_device_info question, const void *value, size_t bytes) {
  ck_assert_int_lt(pretences_made, PRETENCES);
  pretences[pretences_made].question = question;
  pretences[pretences_made].value = value;
  pretences[pretences_made++].bytes = bytes;
}

void between_say_states(const cl_int *said, int count) {
  states = said;
  states_left = count;
  states_said = 0;
}

int between_states_said(void) {
  return states_said;
}

long between_markers(void) {
  return atomic_load(&markers);
}

long between_reads(void) {
  return atomic_load(&reads);
}

long between_arguments(void) {
  return atomic_load(&arguments_given);
}

void between_count(long held[BETWEEN_COUNTS]) {
  for (int i = 0; i < BETWEEN_COUNTS; i++) held[i] = atomic_load(&objects[i]);
  held[BETWEEN_BLOCKS] = atomic_load(&blocks);
  held[BETWEEN_FILES] = atomic_load(&files);
}
