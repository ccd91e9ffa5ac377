#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "idle_device.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))
/* The loader's own function of this name. */
#define REAL(name, variable)         \
  __typeof__(name) *variable = NULL; \
  *(void **)&(variable) = dlsym(RTLD_NEXT, #name)

static const idle_answer *described;

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

SEEN cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error) {
  REAL(clCreateBuffer, real);
  idle_buffer_made(bytes);
  return real(context, flags, bytes, host, error);
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

static cl_program program_of(cl_uint count, const char **texts, const size_t *lengths, cl_int *error) {
  idle_program *program = calloc(1, sizeof *program);
  if (program) program->text = joined(count, texts, lengths);
  if (program) program->head = joined(count ? 1 : 0, texts, lengths);
  const bool whole = program && program->text && program->head;
  if (whole) idle_program_made(program);
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
  return program;
}

SEEN cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                           void (*told)(cl_program, void *), void *context) {
  (void)program, (void)count, (void)devices, (void)options, (void)told, (void)context;
  return CL_SUCCESS;
}

/* Kernels name their program as long as they are there: it stays. */
SEEN cl_int clReleaseProgram(cl_program program) {
  (void)program;
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
  char path[] = "/tmp/graft_idle_XXXXXX", command[128], *found = NULL;
  const int file = mkstemp(path);
  size_t capacity = 0;
  if (file < 0) return NULL;
  const bool whole = write(file, text, strlen(text)) == (ssize_t)strlen(text);
  close(file);
  snprintf(command, sizeof command, "cc -E -P -w -D_OPENCL_H_ -x c %s", path);
  FILE *from = whole ? popen(command, "r") : NULL;
  if (from && getdelim(&found, &capacity, '\0', from) < 0) {
    free(found);
    found = NULL;
  }
  if (from) pclose(from);
  unlink(path);
  return found;
}

/* As the program's text has them; 0 if that has not one kernel of this name. */
static cl_uint arguments_of(const idle_program *program, const char *kernel) {
  int kernels;
  const char *parameters = parameters_of(program->text, "\nKERNEL", kernel, &kernels);
  int count = kernels == 1 ? count_parameters(parameters) : -1;
  if (count >= 0) return (cl_uint)count;
  char *plain = preprocessed(program->text);
  parameters = plain ? parameters_of(plain, "__kernel", kernel, &kernels) : NULL;
  count = parameters && kernels == 1 ? count_parameters(parameters) : 0;
  free(plain);
  return count > 0 ? (cl_uint)count : 0;
}

/* ---- Kernels ---- */

typedef struct kernel {
  const idle_program *program;
  char name[64];
} kernel;

static atomic_bool probes; /* the next read is of the product that tells whether there are tensor cores */

SEEN cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *error) {
  kernel *made = calloc(1, sizeof *made);
  if (made) {
    made->program = (const idle_program *)program;
    snprintf(made->name, sizeof made->name, "%s", name);
  }
  if (strcmp(name, "probe") == 0) atomic_store(&probes, true);
  if (error) *error = made ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
  return (cl_kernel)made;
}

SEEN cl_int clReleaseKernel(cl_kernel handle) {
  free(handle);
  return CL_SUCCESS;
}

SEEN cl_int clGetKernelInfo(cl_kernel handle, cl_kernel_info key, size_t capacity, void *value, size_t *size) {
  const kernel *of = (const kernel *)handle;
  if (key != CL_KERNEL_NUM_ARGS) return CL_INVALID_VALUE;
  const cl_uint count = arguments_of(of->program, of->name);
  return give(&count, sizeof count, capacity, value, size);
}

SEEN cl_int clSetKernelArg(cl_kernel handle, cl_uint index, size_t bytes, const void *value) {
  (void)handle, (void)index, (void)bytes, (void)value;
  return CL_SUCCESS;
}

SEEN cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel handle, cl_uint dims, const size_t *offset,
                                   const size_t *global, const size_t *local, cl_uint count, const cl_event *events,
                                   cl_event *event) {
  const kernel *of = (const kernel *)handle;
  (void)offset;
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
  return real(queue, buffer, blocks, offset, bytes, to, count, events, event);
}
