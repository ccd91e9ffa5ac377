/* Launches nothing, and says on stderr what would be launched: `launch KERNEL PROGRAM`, the program by a hash of its
 * text, `items N` for its work-items, and `buffer BYTES` for each buffer made. Loaded in front of Oclgrind's own
 * library. */
#define _GNU_SOURCE              /* RTLD_NEXT */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* FNV-1a. */
static uint64_t hash_of(const char *text) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (; text && *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash;
}

static uint64_t program_of(cl_kernel kernel) {
  cl_program program;
  size_t bytes;
  char *text = NULL;
  uint64_t hash = 0;
  if (clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof program, &program, NULL) == CL_SUCCESS &&
      clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, NULL, &bytes) == CL_SUCCESS && (text = malloc(bytes)) &&
      clGetProgramInfo(program, CL_PROGRAM_SOURCE, bytes, text, NULL) == CL_SUCCESS) {
    hash = hash_of(text);
  }
  free(text);
  return hash;
}

cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                              const size_t *global, const size_t *local, cl_uint count, const cl_event *events,
                              cl_event *done) {
  char name[256] = "";
  size_t items = 1;
  (void)offset, (void)local;
  for (cl_uint d = 0; d < dims; d++) items *= global[d];
  clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name - 1, name, NULL);
  fprintf(stderr, "launch %s %016" PRIx64 "\nitems %zu\n", name, program_of(kernel), items);
  return done ? clEnqueueMarkerWithWaitList(queue, count, events, done) : CL_SUCCESS;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *error) {
  static cl_mem (*next)(cl_context, cl_mem_flags, size_t, void *, cl_int *);
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "clCreateBuffer");
  fprintf(stderr, "buffer %zu\n", bytes);
  return next(context, flags, bytes, host, error);
}
