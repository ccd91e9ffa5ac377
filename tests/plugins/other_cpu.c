/* Stands between the OpenCL backend and the loader (LD_PRELOAD), and says of every device that it is another CPU's:
 * GRAFT_CPU_VECTOR f32 in a vector, GRAFT_CPU_UNITS compute units. What is planned for such a CPU runs on this one, and
 * is right on both: the width is only what kernels are written in, the units only how work is cut. For ./run test. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdlib.h>

static cl_int answer(const char *name, void *value) {
  const char *text = getenv(name);
  if (text) *(cl_uint *)value = (cl_uint)strtoul(text, NULL, 10);
  return CL_SUCCESS;
}

__attribute__((visibility("default"))) cl_int clGetDeviceInfo(cl_device_id device, cl_device_info key, size_t capacity,
                                                              void *value, size_t *size) {
  __typeof__(clGetDeviceInfo) *real = NULL;
  *(void **)&real = dlsym(RTLD_NEXT, "clGetDeviceInfo");
  cl_int error = real(device, key, capacity, value, size);
  if (error != CL_SUCCESS || !value) return error;
  if (key == CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) return answer("GRAFT_CPU_VECTOR", value);
  if (key == CL_DEVICE_MAX_COMPUTE_UNITS) return answer("GRAFT_CPU_UNITS", value);
  return CL_SUCCESS;
}
