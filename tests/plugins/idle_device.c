#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "idle_device.h"

#include <dlfcn.h>
#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))
/* The loader's own function of this name. */
#define REAL(name, variable)         \
  __typeof__(name) *variable = NULL; \
  *(void **)&(variable) = dlsym(RTLD_NEXT, #name)

static const idle_answer *described;
static atomic_long buffers_held, programs_held, kernels_held;

idle_objects idle_held(void) {
  return (idle_objects){atomic_load(&buffers_held), atomic_load(&programs_held), atomic_load(&kernels_held)};
}

void idle_describe(const idle_answer *answers) {
  described = answers;
}

static cl_int give(const void *from, size_t bytes, size_t capacity, void *to, size_t *size) {
  if (size) *size = bytes;
  if (to && capacity < bytes) return CL_INVALID_VALUE;
  if (to) memcpy(to, from, bytes);
  return CL_SUCCESS;
}

SEEN cl_int clGetDeviceInfo(cl_device_id device, cl_device_info key, size_t capacity, void *value, size_t *size) {
  REAL(clGetDeviceInfo, real);
  for (const idle_answer *a = described; a && a->question; a++) {
    if (a->question == key) return give(a->text ? a->text : (const void *)&a->value, a->bytes, capacity, value, size);
  }
  return real(device, key, capacity, value, size);
}

/* ---- Buffers ---- */

enum { BUFFERS = 1 << 16 };
/* By their handles, which an argument holds as it does any value. A handle may come again, for another one. */
static struct {
  cl_mem handle;
  size_t bytes;
} buffers[BUFFERS];

/* The place of a handle, or the one where it is to stand. */
static unsigned buffer_place(cl_mem handle) {
  unsigned at = (unsigned)(((uintptr_t)handle >> 4) * 0x9E3779B1u) % BUFFERS;
  for (unsigned n = 0; n < BUFFERS && buffers[at].handle && buffers[at].handle != handle; n++) at = (at + 1) % BUFFERS;
  return at;
}

static bool reads_zeros;

void idle_read_zeros(bool on) {
  reads_zeros = on;
}

SEEN cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error) {
  REAL(clCreateBuffer, real);
  idle_buffer_made(bytes);
  const cl_mem made = real(context, flags, bytes, host, error);
  const unsigned at = buffer_place(made);
  buffers[at].handle = made;
  buffers[at].bytes = bytes;
  if (made) atomic_fetch_add(&buffers_held, 1);
  return made;
}

SEEN cl_int clRetainMemObject(cl_mem buffer) {
  REAL(clRetainMemObject, real);
  atomic_fetch_add(&buffers_held, 1);
  return real(buffer);
}

SEEN cl_int clReleaseMemObject(cl_mem buffer) {
  REAL(clReleaseMemObject, real);
  atomic_fetch_sub(&buffers_held, 1);
  return real(buffer);
}

static size_t buffer_bytes_of(const void *value, size_t bytes) {
  cl_mem handle;
  if (!value || bytes != sizeof handle) return 0;
  memcpy(&handle, value, sizeof handle);
  const unsigned at = buffer_place(handle);
  return handle && buffers[at].handle == handle ? buffers[at].bytes : 0;
}

/* ---- Programs ---- */

static char *joined(cl_uint count, const char **texts, const size_t *lengths) {
  size_t bytes = 0, at = 0;
  for (cl_uint i = 0; i < count; i++) bytes += lengths ? lengths[i] : strlen(texts[i]);
  char *text = malloc(bytes + 1);
  for (cl_uint i = 0; text && i < count; i++) {
    const size_t length = lengths ? lengths[i] : strlen(texts[i]);
    memcpy(text + at, texts[i], length);
    at += length;
  }
  if (text) text[at] = '\0';
  return text;
}

/* Of all but the first. */
static char *first_lines(cl_uint count, const char **texts, const size_t *lengths) {
  size_t bytes = 0, at = 0;
  char *found = NULL;
  for (int turn = 0; turn < 2; turn++) {
    if (turn) found = malloc(bytes + 1);
    if (turn && !found) return NULL;
    for (cl_uint i = 1; i < count; i++) {
      const size_t all = lengths ? lengths[i] : strlen(texts[i]);
      const char *end = memchr(texts[i], '\n', all);
      const size_t line = end ? (size_t)(end - texts[i]) + 1 : all;
      if (turn) memcpy(found + at, texts[i], line), at += line;
      bytes += line;
    }
  }
  found[at] = '\0';
  return found;
}

/* ---- What the backend writes behind a head: lines that no kernel's file has ---- */

enum { LINES_OF_FILES = 1 << 16 };
static uint64_t lines_of_files[LINES_OF_FILES];

/* FNV-1a, letter by letter. */
#define HASH_OF_NOTHING UINT64_C(0xCBF29CE484222325)
static uint64_t hash_with(uint64_t hash, char letter) {
  return (hash ^ (unsigned char)letter) * UINT64_C(0x100000001B3);
}

static uint64_t hash_of(const char *text, size_t length) {
  uint64_t hash = HASH_OF_NOTHING;
  for (size_t i = 0; i < length; i++) hash = hash_with(hash, text[i]);
  return hash;
}

/* Where it is, or where it is to stand. */
static uint64_t *line_place(uint64_t hash) {
  size_t at = hash % LINES_OF_FILES;
  for (size_t n = 0; n < LINES_OF_FILES && lines_of_files[at] && lines_of_files[at] != hash; n++)
    at = (at + 1) % LINES_OF_FILES;
  return &lines_of_files[at];
}

static void learn_lines(const char *path) {
  FILE *file = fopen(path, "r");
  char *line = NULL;
  size_t capacity = 0;
  ssize_t length;
  while (file && (length = getline(&line, &capacity, file)) > 0) {
    const uint64_t hash = hash_of(line, (size_t)length);
    *line_place(hash) = hash;
  }
  free(line);
  if (file) fclose(file);
}

static void learn_files(void) {
  glob_t found;
  if (glob(GRAFT_SOURCE_DIR "/reference_backend_opencl/kernels/*/*.cl", 0, NULL, &found) != 0) abort();
  for (size_t i = 0; i < found.gl_pathc; i++) learn_lines(found.gl_pathv[i]);
  globfree(&found);
}

/* Lines that follow what the files have: "#define NAME NAME_1", as each op of a group has for the functions of those
 * that it needs, and ends of macros. */
static bool follows_files(const char *line) {
  char name[64], own[64];
  if (strncmp(line, "#undef ", 7) == 0) return true;
  const size_t length = sscanf(line, "#define %63s %63s", name, own) == 2 ? strlen(name) : 0;
  return length && strncmp(own, name, length) == 0 && own[length] == '_' &&
         own[length + 1 + strspn(own + length + 1, "0123456789")] == '\0';
}

static char *written_lines(cl_uint count, const char **texts, const size_t *lengths) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  char *text = count > 1 ? joined(count - 1, texts + 1, lengths ? lengths + 1 : NULL) : calloc(1, 1), *to = text;
  pthread_once(&once, learn_files);
  for (char *line = text, *next; line && *line; line = next) {
    char *end = strchr(line, '\n');
    next = end ? end + 1 : line + strlen(line);
    const size_t length = (size_t)(next - line);
    const uint64_t hash = hash_of(line, length);
    if (*line_place(hash) == hash || follows_files(line)) continue;
    memmove(to, line, length);
    to += length;
  }
  if (to) *to = '\0';
  return text;
}

static cl_program program_of(cl_uint count, const char **texts, const size_t *lengths, cl_int *error) {
  idle_program *program = calloc(1, sizeof *program);
  if (program) program->text = joined(count, texts, lengths);
  if (program) program->head = joined(count ? 1 : 0, texts, lengths);
  if (program) program->files = first_lines(count, texts, lengths);
  if (program) program->written = written_lines(count, texts, lengths);
  const bool whole = program && program->text && program->head && program->files && program->written;
  if (whole) idle_program_made(program);
  if (whole) atomic_fetch_add(&programs_held, 1);
  if (error) *error = whole ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
  return (cl_program)program;
}

SEEN cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts, const size_t *lengths,
                                          cl_int *error) {
  (void)context;
  return program_of(count, texts, lengths, error);
}

/* The binary of a program is a line of PTX and one that names the program, which is what comes of it. */
#define PTX ".version 8.0\n// %p\n"

SEEN cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id *devices,
                                          const size_t *lengths, const unsigned char **binaries, cl_int *status,
                                          cl_int *error) {
  void *program = NULL;
  (void)context, (void)count, (void)devices, (void)lengths;
  if (status) *status = CL_SUCCESS;
  if (error) *error = sscanf((const char *)binaries[0], PTX, &program) == 1 ? CL_SUCCESS : CL_INVALID_BINARY;
  if (program) atomic_fetch_add(&programs_held, 1);
  return program;
}

SEEN cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                           void (*told)(cl_program, void *), void *context) {
  idle_program *of = (idle_program *)program;
  (void)count, (void)devices, (void)told, (void)context;
  free(of->options);
  of->options = options ? strdup(options) : NULL;
  return CL_SUCCESS;
}

/* Kernels name their program as long as they are there: it stays. */
SEEN cl_int clReleaseProgram(cl_program program) {
  (void)program;
  atomic_fetch_sub(&programs_held, 1);
  return CL_SUCCESS;
}

SEEN cl_int clGetProgramInfo(cl_program program, cl_program_info key, size_t capacity, void *value, size_t *size) {
  const size_t bytes = sizeof PTX + 2 * sizeof program;
  if (key == CL_PROGRAM_BINARY_SIZES) return give(&bytes, sizeof bytes, capacity, value, size);
  if (key != CL_PROGRAM_BINARIES) return CL_INVALID_VALUE;
  snprintf(*(char **)value, bytes, PTX, (void *)program);
  return CL_SUCCESS;
}

/* ---- How many parameters a kernel has ---- */

static const char *parameters_of(const char *text, const char *begins, const char *kernel, int *kernels) {
  const char *found = NULL;
  char named[80];
  snprintf(named, sizeof named, " %s(", kernel);
  *kernels = 0;
  for (const char *at = text; (at = strstr(at, begins)); at += strlen(begins)) {
    const char *name = strstr(at, named), *end = strpbrk(at, "{;");
    if (!name || (end && name > end)) continue;
    found = name + strlen(named);
    ++*kernels;
  }
  return found;
}

/* PLACE and CONST_PLACE are two parameters each. What else is written in capitals may be any number: -1. */
static int count_parameters(const char *at) {
  int count = 1;
  for (int depth = 1; depth > 0 && *at; at++) {
    const size_t capitals = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    if (capitals > 2) {
      const bool place = strncmp(at, "PLACE(", 6) == 0 || strncmp(at, "CONST_PLACE(", 12) == 0;
      if (!place && strncmp(at, "RAW(", 4) != 0) return -1;
      count += place;
      at += capitals;
    }
    depth += (*at == '(') - (*at == ')');
    count += *at == ',' && depth == 1;
  }
  return count;
}

/* A text without its macros, to be freed. */
static char *preprocessed(const char *text) {
  char command[128], *found = NULL;
  const int file = memfd_create("program", 0); /* nothing is left of it where a test is killed */
  size_t capacity = 0;
  if (file < 0) return NULL;
  const bool whole = write(file, text, strlen(text)) == (ssize_t)strlen(text);
  snprintf(command, sizeof command, "cc -E -P -w -D_OPENCL_H_ -x c - </proc/self/fd/%d", file);
  FILE *from = whole ? popen(command, "r") : NULL;
  if (from && getdelim(&found, &capacity, '\0', from) < 0) {
    free(found);
    found = NULL;
  }
  if (from) pclose(from);
  close(file);
  return found;
}

static cl_uint preprocessed_arguments(const char *text, const char *kernel) {
  int kernels;
  char *plain = preprocessed(text);
  const char *parameters = plain ? parameters_of(plain, "__kernel", kernel, &kernels) : NULL;
  const int count = parameters && kernels == 1 ? count_parameters(parameters) : 0;
  free(plain);
  return count > 0 ? (cl_uint)count : 0;
}

/* What a text has of parameters is so for all that differ in numbers of its head only, such as sizes. */
static uint64_t key_of(const idle_program *program, const char *kernel) {
  const char *const parts[] = {kernel, program->head, program->text + strlen(program->head)};
  uint64_t key = HASH_OF_NOTHING;
  for (int part = 0; part < 3; part++)
    for (const char *at = parts[part]; *at; at++)
      if (part != 1 || *at < '0' || *at > '9') key = hash_with(key, *at);
  return key;
}

/* What other processes have found, in the file that the environment names for that, a key and a count a line; 0: none
 * has. A preprocessor takes longer than what else a launch that does not run costs. */
static cl_uint kept_count(uint64_t key) {
  const char *path = getenv("GRAFT_TEST_COUNTS");
  FILE *file = path ? fopen(path, "r") : NULL;
  uint64_t of;
  cl_uint count, found = 0;
  while (file && !found && fscanf(file, "%" SCNx64 " %u", &of, &count) == 2)
    if (of == key) found = count;
  if (file) fclose(file);
  return found;
}

static void keep_count(uint64_t key, cl_uint count) {
  const char *path = getenv("GRAFT_TEST_COUNTS");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%016" PRIx64 " %u\n", key, count);
  fclose(file);
}

/* As the program's text has them; 0 if that has not one kernel of this name. */
static cl_uint arguments_of(const idle_program *program, const char *kernel) {
  enum { KNOWN = 8192 };
  static struct {
    uint64_t key;
    cl_uint count;
  } known[KNOWN], *place;
  int kernels;
  const char *parameters = parameters_of(program->text, "\nKERNEL", kernel, &kernels);
  const int count = kernels == 1 ? count_parameters(parameters) : -1;
  if (count >= 0) return (cl_uint)count;
  const uint64_t key = key_of(program, kernel);
  place = &known[key % KNOWN];
  if (place->key == key) return place->count;
  place->key = key;
  place->count = kept_count(key);
  if (place->count == 0) {
    place->count = preprocessed_arguments(program->text, kernel);
    keep_count(key, place->count);
  }
  return place->count;
}

/* ---- Kernels ---- */

enum { ARGUMENTS = 256 };
typedef struct kernel {
  const idle_program *program;
  char name[64];
  idle_argument arguments[ARGUMENTS];
  cl_uint count;
} kernel;

static const kernel *launched;

const idle_argument *idle_arguments(cl_uint *count) {
  *count = launched->count;
  return launched->arguments;
}

static atomic_bool probes; /* the next read is of the product that tells whether there are tensor cores */

SEEN cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *error) {
  kernel *made = calloc(1, sizeof *made);
  if (made) {
    made->program = (const idle_program *)program;
    snprintf(made->name, sizeof made->name, "%s", name);
    atomic_fetch_add(&kernels_held, 1);
  }
  if (strcmp(name, "probe") == 0) atomic_store(&probes, true);
  if (error) *error = made ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
  return (cl_kernel)made;
}

SEEN cl_int clReleaseKernel(cl_kernel handle) {
  kernel *of = (kernel *)handle;
  for (cl_uint i = 0; i < of->count; i++) free(of->arguments[i].value);
  free(of);
  atomic_fetch_sub(&kernels_held, 1);
  return CL_SUCCESS;
}

SEEN cl_int clGetKernelInfo(cl_kernel handle, cl_kernel_info key, size_t capacity, void *value, size_t *size) {
  const kernel *of = (const kernel *)handle;
  if (key != CL_KERNEL_NUM_ARGS) return CL_INVALID_VALUE;
  const cl_uint count = arguments_of(of->program, of->name);
  return give(&count, sizeof count, capacity, value, size);
}

SEEN cl_int clSetKernelArg(cl_kernel handle, cl_uint index, size_t bytes, const void *value) {
  kernel *of = (kernel *)handle;
  if (index >= ARGUMENTS) return CL_INVALID_ARG_INDEX;
  idle_argument *to = &of->arguments[index];
  if (index >= of->count) of->count = index + 1;
  free(to->value);
  *to = (idle_argument){value ? malloc(bytes) : NULL, bytes, buffer_bytes_of(value, bytes)};
  if (value && !to->value) return CL_OUT_OF_HOST_MEMORY;
  if (value) memcpy(to->value, value, bytes);
  return CL_SUCCESS;
}

SEEN cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel handle, cl_uint dims, const size_t *offset,
                                   const size_t *global, const size_t *local, cl_uint count, const cl_event *events,
                                   cl_event *event) {
  const kernel *of = (const kernel *)handle;
  (void)offset;
  launched = of;
  if (strcmp(of->name, "probe") != 0) idle_launched(of->program, of->name, dims, global, local);
  return event || count ? clEnqueueMarkerWithWaitList(queue, count, events, event) : CL_SUCCESS;
}

/* The product that runtime/nvidia.c asks for. */
static void fill_probe(float *to) {
  for (int i = 0; i < 64; i++) {
    for (int j = 0; j < 8; j++) {
      int sum = 0;
      for (int k = 0; k < 16; k++) sum += ((i + 3 * k) % 17 - 8) * ((5 * j + k) % 13 - 6);
      to[8 * i + j] = (float)sum;
    }
  }
}

SEEN cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocks, size_t offset, size_t bytes,
                                void *to, cl_uint count, const cl_event *events, cl_event *event) {
  REAL(clEnqueueReadBuffer, real);
  if (bytes == 64 * 8 * sizeof(float) && atomic_exchange(&probes, false)) {
    fill_probe(to);
    return CL_SUCCESS;
  }
  if (!reads_zeros) return real(queue, buffer, blocks, offset, bytes, to, count, events, event);
  memset(to, 0, bytes);
  return event || count ? clEnqueueMarkerWithWaitList(queue, count, events, event) : CL_SUCCESS;
}
