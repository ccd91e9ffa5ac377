/* What is asked of the driver, told in words, by devices on which nothing runs: which programs, by which macros and
 * options; which kernels, with which arguments, over how many work-items; which buffers, copies and fills; the text
 * that the backend writes. What stands in kernels' files is none of it. */
#ifndef GRAFT_TESTS_OPENCL_TOLD_H
#define GRAFT_TESTS_OPENCL_TOLD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#include "plugins/idle_device.h"

static FILE *told; /* NULL: nobody listens */

static void tell(const char *format, ...) {
  va_list items;
  if (!told) return;
  va_start(items, format);
  vfprintf(told, format, items);
  va_end(items);
}

static void tell_sizes(const char *what, cl_uint dims, const size_t *sizes) {
  tell(" %s", what);
  for (cl_uint d = 0; sizes && d < dims; d++) tell(" %zu", sizes[d]);
}

static void tell_argument(const idle_argument *a) {
  if (a->buffer_bytes) {
    tell(" buffer:%zu", a->buffer_bytes);
    return;
  }
  tell(a->value ? " %zu:" : " local:%zu", a->bytes);
  for (size_t i = 0; a->value && i < a->bytes; i++) tell("%02x", ((const unsigned char *)a->value)[i]);
}

void idle_program_made(const idle_program *program) {
  (void)program; /* which comes first changes with who came before */
}

void idle_launched(const idle_program *program, const char *kernel, cl_uint dims, const size_t *global,
                   const size_t *local) {
  cl_uint count;
  const idle_argument *arguments = idle_arguments(&count);
  if (!told) return;
  tell("%s", kernel);
  tell_sizes("over", dims, global);
  tell_sizes("of", dims, local);
  tell(" with");
  for (cl_uint i = 0; i < count; i++) tell_argument(&arguments[i]);
  tell("\n%s%s%s\n%s", program->options ? program->options : "", program->files, program->head, program->written);
}

void idle_buffer_made(size_t bytes) {
  tell("buffer %zu\n", bytes);
}

#define SEEN __attribute__((visibility("default")))
#define REAL(name, variable)         \
  __typeof__(name) *variable = NULL; \
  *(void **)&(variable) = dlsym(RTLD_NEXT, #name)

SEEN cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t at, size_t to_at, size_t bytes,
                                cl_uint count, const cl_event *events, cl_event *event) {
  REAL(clEnqueueCopyBuffer, real);
  tell("copy %zu from %zu to %zu\n", bytes, at, to_at);
  return real(queue, from, to, at, to_at, bytes, count, events, event);
}

SEEN cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t size, size_t at,
                                size_t bytes, cl_uint count, const cl_event *events, cl_event *event) {
  REAL(clEnqueueFillBuffer, real);
  tell("fill %zu at %zu with ", bytes, at);
  for (size_t i = 0; i < size; i++) tell("%02x", ((const unsigned char *)pattern)[i]);
  tell("\n");
  return real(queue, buffer, pattern, size, at, bytes, count, events, event);
}

SEEN cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocks, size_t at, size_t bytes,
                                 const void *from, cl_uint count, const cl_event *events, cl_event *event) {
  REAL(clEnqueueWriteBuffer, real);
  tell("write %zu at %zu\n", bytes, at);
  return real(queue, buffer, blocks, at, bytes, from, count, events, event);
}

#endif
