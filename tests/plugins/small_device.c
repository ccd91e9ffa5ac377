/* Stands between the OpenCL backend and the loader (LD_PRELOAD), and makes every device a GPU that has the least that
 * OpenCL 1.2 asks of one: no f64, 32 KiB of local memory, 1024 bytes of arguments, 128 MiB a buffer. What goes beyond
 * is refused as such a device would. GRAFT_SMALL_GROUP: work-items of a group, 256 if it is not set. GRAFT_SMALL_F64:
 * f64 is there, whose tiles take twice as much. For tests/test_small_device.sh. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SEEN __attribute__((visibility("default")))
/* The loader's own function of this name. */
#define REAL(name, variable)         \
  __typeof__(name) *variable = NULL; \
  *(void **)&(variable) = dlsym(RTLD_NEXT, #name)

enum { LOCAL_BYTES = 32 << 10, PARAMETER_BYTES = 1024, BUFFER_BYTES = 128 << 20, GROUP = 256, ARGUMENTS = 128 };

static size_t group(void) {
  const char *text = getenv("GRAFT_SMALL_GROUP");
  return text ? strtoull(text, NULL, 10) : GROUP;
}

/* The driver's own text, as long as before, with spaces where the name stood. */
static void hide(char *extensions, const char *name) {
  char *at = strstr(extensions, name);
  if (at) memset(at, ' ', strlen(name));
}

SEEN cl_int clGetDeviceInfo(cl_device_id device, cl_device_info key, size_t capacity, void *value, size_t *size) {
  REAL(clGetDeviceInfo, real);
  cl_int error = real(device, key, capacity, value, size);
  if (error != CL_SUCCESS || !value) return error;
  if (key == CL_DEVICE_EXTENSIONS && !getenv("GRAFT_SMALL_F64")) hide(value, "cl_khr_fp64");
  if (key == CL_DEVICE_TYPE) *(cl_device_type *)value = CL_DEVICE_TYPE_GPU;
  if (key == CL_DEVICE_MAX_WORK_GROUP_SIZE) *(size_t *)value = group();
  if (key == CL_DEVICE_LOCAL_MEM_SIZE) *(cl_ulong *)value = LOCAL_BYTES;
  if (key == CL_DEVICE_MAX_PARAMETER_SIZE) *(size_t *)value = PARAMETER_BYTES;
  if (key == CL_DEVICE_MAX_MEM_ALLOC_SIZE) *(cl_ulong *)value = BUFFER_BYTES;
  return error;
}

SEEN cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *from, cl_int *error) {
  REAL(clCreateBuffer, real);
  if (bytes <= BUFFER_BYTES) return real(context, flags, bytes, from, error);
  if (error) *error = CL_INVALID_BUFFER_SIZE;
  return NULL;
}

/* ---- What a kernel's arguments take ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef struct arguments {
  cl_kernel kernel;
  size_t bytes[ARGUMENTS];
  struct arguments *next;
} arguments;

static arguments *all;

static arguments *arguments_of(cl_kernel kernel) {
  arguments *at = all;
  while (at && at->kernel != kernel) at = at->next;
  if (at || !(at = calloc(1, sizeof *at))) return at;
  at->kernel = kernel;
  at->next = all;
  return all = at;
}

/* Its address may be another's next. */
SEEN cl_int clReleaseKernel(cl_kernel kernel) {
  REAL(clReleaseKernel, real);
  pthread_mutex_lock(&lock);
  arguments *own = arguments_of(kernel);
  if (own) memset(own->bytes, 0, sizeof own->bytes);
  pthread_mutex_unlock(&lock);
  return real(kernel);
}

SEEN cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value) {
  REAL(clSetKernelArg, real);
  size_t sum = 0;
  pthread_mutex_lock(&lock);
  arguments *own = arguments_of(kernel);
  if (own && index < ARGUMENTS) own->bytes[index] = value ? bytes : sizeof(void *); /* local memory is a pointer */
  for (int i = 0; own && i < ARGUMENTS; i++) sum += own->bytes[i];
  pthread_mutex_unlock(&lock);
  return sum > PARAMETER_BYTES ? CL_OUT_OF_RESOURCES : real(kernel, index, bytes, value);
}

/* ---- What a launch takes ---- */

SEEN cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                   const size_t *global, const size_t *local, cl_uint count, const cl_event *events,
                                   cl_event *event) {
  REAL(clEnqueueNDRangeKernel, real);
  cl_device_id device;
  cl_ulong bytes = 0;
  size_t items = 1;
  for (cl_uint i = 0; local && i < dims; i++) items *= local[i];
  if (items > group()) return CL_INVALID_WORK_GROUP_SIZE;
  clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
  clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL);
  if (bytes > LOCAL_BYTES) return CL_OUT_OF_RESOURCES;
  return real(queue, kernel, dims, offset, global, local, count, events, event);
}
