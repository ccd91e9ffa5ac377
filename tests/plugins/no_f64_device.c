/* Stands between the OpenCL backend and the loader (LD_PRELOAD), and makes devices that have no f64, as many GPUs are.
 * For tests/test_no_f64.sh. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <string.h>

static const char hidden[] = "cl_khr_fp64";

/* The driver's own answer, as long as before, with spaces where the extension's name stood. */
__attribute__((visibility("default"))) cl_int clGetDeviceInfo(cl_device_id device, cl_device_info key, size_t capacity,
                                                              void *value, size_t *size) {
  __typeof__(clGetDeviceInfo) *real = NULL;
  *(void **)&real = dlsym(RTLD_NEXT, "clGetDeviceInfo");
  cl_int error = real(device, key, capacity, value, size);
  char *name = error == CL_SUCCESS && key == CL_DEVICE_EXTENSIONS && value ? strstr(value, hidden) : NULL;
  if (name) memset(name, ' ', strlen(hidden));
  return error;
}
