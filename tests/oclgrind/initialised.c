/* Stands between the backend and Oclgrind 21.10, whose --uninitialized loses count of what has been written:
 *   - a buffer that comes where one was released before inherits the notes about the old one, of the old size;
 *   - a write, fill or copy by the host to a part of a buffer wipes the notes about the rest.
 * So buffers are not released, and the host always writes whole ones. Loaded in front of Oclgrind's own library. */
#define _GNU_SOURCE              /* RTLD_NEXT */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static cl_int write_whole(cl_command_queue queue, cl_mem buffer, size_t bytes, const void *from, cl_uint count,
                          const cl_event *events, cl_event *done) {
  static cl_int (*next)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *, cl_uint, const cl_event *,
                        cl_event *);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "clEnqueueWriteBuffer");
  return next(queue, buffer, CL_TRUE, 0, bytes, from, count, events, done);
}

/* What the buffer holds now, and how large it is; NULL: it can't be read. */
static unsigned char *read_whole(cl_command_queue queue, cl_mem buffer, size_t *bytes) {
  unsigned char *image = NULL;
  if (clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof *bytes, bytes, NULL) == CL_SUCCESS && (image = malloc(*bytes)) &&
      clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, *bytes, image, 0, NULL, NULL) == CL_SUCCESS) {
    return image;
  }
  free(image);
  return NULL;
}

cl_int clReleaseMemObject(cl_mem buffer) {
  (void)buffer;
  return CL_SUCCESS;
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool wait, size_t offset, size_t bytes,
                            const void *from, cl_uint count, const cl_event *events, cl_event *done) {
  size_t whole;
  (void)wait;
  unsigned char *image = read_whole(queue, buffer, &whole);
  if (!image || offset > whole || bytes > whole - offset) {
    free(image);
    return CL_INVALID_VALUE;
  }
  memcpy(image + offset, from, bytes);
  cl_int error = write_whole(queue, buffer, whole, image, count, events, done);
  free(image);
  return error;
}

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes,
                           size_t offset, size_t bytes, cl_uint count, const cl_event *events, cl_event *done) {
  unsigned char *filled = malloc(bytes);
  if (!filled) return CL_OUT_OF_HOST_MEMORY;
  for (size_t i = 0; i < bytes; i++) filled[i] = ((const unsigned char *)pattern)[i % pattern_bytes];
  cl_int error = clEnqueueWriteBuffer(queue, buffer, CL_TRUE, offset, bytes, filled, count, events, done);
  free(filled);
  return error;
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                           size_t bytes, cl_uint count, const cl_event *events, cl_event *done) {
  size_t whole;
  unsigned char *image = read_whole(queue, from, &whole);
  if (!image || from_offset > whole || bytes > whole - from_offset) {
    free(image);
    return CL_INVALID_VALUE;
  }
  cl_int error = clEnqueueWriteBuffer(queue, to, CL_TRUE, to_offset, bytes, image + from_offset, count, events, done);
  free(image);
  return error;
}
