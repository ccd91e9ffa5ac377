/* Stands between the OpenCL backend and the loader (LD_PRELOAD), and makes the first device one of NVIDIA's with
 * Hopper's tensor cores, of which nothing runs: the text of each program is written to the folder GRAFT_TEXTS, and
 * nothing is compiled. Memory is the real device's. For tests/opencl_texts.py. */
#define _GNU_SOURCE
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))
/* The loader's own function of this name. */
#define REAL(name, variable)         \
  __typeof__(name) *variable = NULL; \
  *(void **)&(variable) = dlsym(RTLD_NEXT, #name)

/* As cl_nv_device_attribute_query names it, and what an H100 answers. */
#define CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000
static const struct {
  cl_device_info key;
  uint64_t value;
  size_t bytes;
} answers[] = {
    {CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, 9, sizeof(cl_uint)},
    {CL_DEVICE_TYPE, CL_DEVICE_TYPE_GPU, sizeof(cl_device_type)},
    {CL_DEVICE_MAX_COMPUTE_UNITS, 132, sizeof(cl_uint)},
    {CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 1, sizeof(cl_uint)},
    {CL_DEVICE_LOCAL_MEM_SIZE, 48 << 10, sizeof(cl_ulong)},
    {CL_DEVICE_MAX_WORK_GROUP_SIZE, 1024, sizeof(size_t)},
};

static const char extensions[] = "cl_khr_byte_addressable_store cl_khr_fp64 cl_nv_device_attribute_query";

static cl_int give(const void *from, size_t bytes, size_t capacity, void *to, size_t *size) {
  if (size) *size = bytes;
  if (to && capacity < bytes) return CL_INVALID_VALUE;
  if (to) memcpy(to, from, bytes);
  return CL_SUCCESS;
}

SEEN cl_int clGetDeviceInfo(cl_device_id device, cl_device_info key, size_t capacity, void *value, size_t *size) {
  REAL(clGetDeviceInfo, real);
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    if (answers[i].key == key) return give(&answers[i].value, answers[i].bytes, capacity, value, size);
  }
  if (key == CL_DEVICE_EXTENSIONS) return give(extensions, sizeof extensions, capacity, value, size);
  return real(device, key, capacity, value, size);
}

/* ---- Programs ---- */

/* The handle of a program; its binary is the path of its text. */
struct _cl_program {
  char path[256];
  char *declarations; /* the text without its macros; NULL until a kernel is made of it */
};

static cl_program program_of(const char *path, size_t length, cl_int *error) {
  cl_program program = calloc(1, sizeof *program);
  const bool fits = program && length < sizeof program->path;
  if (fits) memcpy(program->path, path, length);
  if (error) *error = fits ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
  return program;
}

SEEN cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts, const size_t *lengths,
                                          cl_int *error) {
  static atomic_int number;
  char path[256];
  (void)context;
  const int length =
      snprintf(path, sizeof path, "%s/%d-%d.cl", getenv("GRAFT_TEXTS"), (int)getpid(), atomic_fetch_add(&number, 1));
  FILE *file = fopen(path, "w");
  for (cl_uint i = 0; file && i < count; i++) fwrite(texts[i], 1, lengths ? lengths[i] : strlen(texts[i]), file);
  if (file) fclose(file);
  return program_of(path, (size_t)length, error);
}

SEEN cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id *devices,
                                          const size_t *lengths, const unsigned char **binaries, cl_int *status,
                                          cl_int *error) {
  (void)context, (void)count, (void)devices;
  if (status) *status = CL_SUCCESS;
  return program_of((const char *)binaries[0], lengths[0], error);
}

SEEN cl_int clReleaseProgram(cl_program program) {
  free(program->declarations);
  free(program);
  return CL_SUCCESS;
}

SEEN cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                           void (*told)(cl_program, void *), void *context) {
  (void)program, (void)count, (void)devices, (void)options, (void)told, (void)context;
  return CL_SUCCESS;
}

SEEN cl_int clGetProgramInfo(cl_program program, cl_program_info key, size_t capacity, void *value, size_t *size) {
  const size_t bytes = strlen(program->path);
  if (key == CL_PROGRAM_BINARY_SIZES) return give(&bytes, sizeof bytes, capacity, value, size);
  if (key != CL_PROGRAM_BINARIES) return CL_INVALID_VALUE;
  memcpy(*(char **)value, program->path, bytes);
  return CL_SUCCESS;
}

/* All that a command writes, to be freed. */
static char *said_by(const char *command) {
  char *said = NULL;
  size_t capacity = 0;
  FILE *from = popen(command, "r");
  if (from && getdelim(&said, &capacity, '\0', from) < 0) {
    free(said);
    said = NULL;
  }
  if (from) pclose(from);
  return said;
}

/* ---- Kernels ---- */

struct _cl_kernel {
  cl_uint parameters;
};

static atomic_bool probes; /* the next read is of the product that tells whether there are tensor cores */

/* The backend asks of a kernel how many parameters it has, and its text says it. */
static cl_uint parameters_of(const char *declarations, const char *kernel) {
  const size_t length = strlen(kernel);
  for (const char *at = declarations; (at = strstr(at, "__kernel")); at++) {
    const char *name = strstr(at, " void ");
    if (!name || strncmp(name += 6, kernel, length) != 0 || name[length] != '(') continue;
    cl_uint commas = 0;
    for (const char *c = name; *c && *c != ')'; c++) commas += *c == ',';
    return commas + 1;
  }
  return 0;
}

SEEN cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *error) {
  cl_kernel kernel = calloc(1, sizeof *kernel);
  if (!program->declarations) {
    char command[1024];
    snprintf(command, sizeof command, "%s %s", getenv("GRAFT_PREPROCESSOR"), program->path);
    program->declarations = said_by(command);
  }
  kernel->parameters = program->declarations ? parameters_of(program->declarations, name) : 0;
  if (strcmp(name, "probe") == 0) atomic_store(&probes, true);
  if (error) *error = kernel->parameters ? CL_SUCCESS : CL_INVALID_KERNEL_NAME;
  return kernel;
}

SEEN cl_int clReleaseKernel(cl_kernel kernel) {
  free(kernel);
  return CL_SUCCESS;
}

SEEN cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info key, size_t capacity, void *value, size_t *size) {
  return key == CL_KERNEL_NUM_ARGS ? give(&kernel->parameters, sizeof kernel->parameters, capacity, value, size)
                                   : CL_INVALID_VALUE;
}

SEEN cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value) {
  (void)kernel, (void)index, (void)bytes, (void)value;
  return CL_SUCCESS;
}

SEEN cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dims, const size_t *offset,
                                   const size_t *global, const size_t *local, cl_uint count, const cl_event *events,
                                   cl_event *event) {
  (void)kernel, (void)dims, (void)offset, (void)global, (void)local;
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
