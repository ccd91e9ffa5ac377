/* Opening a device, and what it says of itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

#include "runtime/ocl.h"

graft_status ocl_device_count(void *self, int32_t *count) {
  ocl_plugin *plugin = self;
  graft_status status = ocl_probe(plugin);
  if (status == GRAFT_OK) *count = plugin->count;
  return status;
}

static bool has_extension(cl_device_id id, const char *name) {
  char list[8192] = "";
  clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof list - 1, list, NULL);
  return strstr(list, name) != NULL;
}

static cl_device_fp_config fp_config(cl_device_id id, cl_device_info key) {
  cl_device_fp_config config = 0;
  clGetDeviceInfo(id, key, sizeof config, &config, NULL);
  return config;
}

static cl_uint query_uint(cl_device_id id, cl_device_info key) {
  cl_uint value = 0;
  clGetDeviceInfo(id, key, sizeof value, &value, NULL);
  return value;
}

static cl_ulong query_ulong(cl_device_id id, cl_device_info key) {
  cl_ulong value = 0;
  clGetDeviceInfo(id, key, sizeof value, &value, NULL);
  return value;
}

static size_t query_size(cl_device_id id, cl_device_info key) {
  size_t value = 0;
  clGetDeviceInfo(id, key, sizeof value, &value, NULL);
  return value;
}

static bool has_f64(cl_device_id id) {
  return has_extension(id, "cl_khr_fp64");
}

/* As cl_nv_device_attribute_query names it; other drivers need not know the question. */
#define CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000

static cl_uint nvidia_capability(cl_device_id id) {
  if (!has_extension(id, "cl_nv_device_attribute_query")) return 0;
  return query_uint(id, CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV);
}

static uint64_t dtype_set(cl_device_id id) {
  uint64_t set = OCL_BOOLS | OCL_INTS | OCL_HALVES | OCL_BIT(F32) | OCL_BIT(C64);
  return has_f64(id) ? set | OCL_BIT(F64) | OCL_BIT(C128) : set;
}

static uint64_t denormal_set(cl_device_id id) {
  uint64_t set = 0;
  /* Denormal halves are normal as f32, where the arithmetic happens; bf16 has f32's exponents. */
  set |= OCL_BIT(F16);
  if (fp_config(id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_DENORM) set |= OCL_BIT(BF16) | OCL_BIT(F32) | OCL_BIT(C64);
  if (has_f64(id)) set |= OCL_BIT(F64) | OCL_BIT(C128); /* cl_khr_fp64 requires them */
  return set;
}

static uint32_t device_kind(cl_device_id id) {
  cl_device_type type = 0;
  clGetDeviceInfo(id, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  if (type & CL_DEVICE_TYPE_CPU) return GRAFT_DEVICE_KIND_CPU;
  if (type & CL_DEVICE_TYPE_GPU) return GRAFT_DEVICE_KIND_GPU;
  if (type & CL_DEVICE_TYPE_ACCELERATOR) return GRAFT_DEVICE_KIND_ACCELERATOR;
  return GRAFT_DEVICE_KIND_OTHER;
}

static graft_status answer(const void *from, size_t bytes, void *value, size_t capacity, size_t *size) {
  if (size) *size = bytes;
  if (capacity < bytes) return GRAFT_INVALID_ARGUMENT;
  memcpy(value, from, bytes);
  return GRAFT_OK;
}

static graft_status answer_string(cl_device_id id, cl_device_info key, void *value, size_t capacity, size_t *size) {
  char text[1024] = "";
  clGetDeviceInfo(id, key, sizeof text - 1, text, NULL);
  return answer(text, strlen(text) + 1, value, capacity, size);
}

static graft_status answer_driver(cl_device_id id, void *value, size_t capacity, size_t *size) {
  /* The OpenCL version stands for the platform: a new PoCL keeps the driver's number now and then. */
  char driver[256] = "", version[256] = "", text[520];
  clGetDeviceInfo(id, CL_DRIVER_VERSION, sizeof driver, driver, NULL);
  clGetDeviceInfo(id, CL_DEVICE_VERSION, sizeof version, version, NULL);
  snprintf(text, sizeof text, "%s, %s", driver, version);
  return answer(text, strlen(text) + 1, value, capacity, size);
}

graft_status ocl_device_query(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                              size_t *size) {
  ocl_plugin *plugin = self;
  graft_status status = ocl_probe(plugin);
  if (status != GRAFT_OK) return status;
  if (index < 0 || index >= plugin->count) {
    return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT, "OpenCL device %d of %d", index, plugin->count);
  }
  cl_device_id id = plugin->candidates[index].id;
#define ANSWER(type, expression)                                  \
  do {                                                            \
    type result = (expression);                                   \
    return answer(&result, sizeof result, value, capacity, size); \
  } while (0)
  switch (key) {
    case GRAFT_DEVICE_NAME: return answer_string(id, CL_DEVICE_NAME, value, capacity, size);
    case GRAFT_DEVICE_VENDOR: return answer_string(id, CL_DEVICE_VENDOR, value, capacity, size);
    case GRAFT_DEVICE_DRIVER_VERSION: return answer_driver(id, value, capacity, size);
    case GRAFT_DEVICE_KIND: ANSWER(uint32_t, device_kind(id));
    case GRAFT_DEVICE_TOTAL_MEMORY: ANSWER(uint64_t, query_ulong(id, CL_DEVICE_GLOBAL_MEM_SIZE));
    case GRAFT_DEVICE_MAX_ALLOCATION: ANSWER(uint64_t, query_ulong(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE));
    case GRAFT_DEVICE_ALIGNMENT: ANSWER(uint64_t, 64);
    case GRAFT_DEVICE_GRANULARITY: ANSWER(uint64_t, 1);
    case GRAFT_DEVICE_COPY_GRANULARITY: ANSWER(uint64_t, 1);
    case GRAFT_DEVICE_INDIVISIBLE: ANSWER(uint32_t, 0);
    case GRAFT_DEVICE_UNIFIED_MEMORY: ANSWER(uint32_t, query_uint(id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0);
    case GRAFT_DEVICE_DTYPES: ANSWER(uint64_t, dtype_set(id));
    case GRAFT_DEVICE_DENORMALS: ANSWER(uint64_t, denormal_set(id));
    case GRAFT_DEVICE_VECTOR_WIDTH: ANSWER(uint32_t, query_uint(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
    case GRAFT_DEVICE_COMPUTE_UNITS: ANSWER(uint32_t, query_uint(id, CL_DEVICE_MAX_COMPUTE_UNITS));
    case GRAFT_DEVICE_STREAM_FLAGS: ANSWER(uint32_t, GRAFT_STREAM_TIMING);
    case GRAFT_DEVICE_EVENT_FLAGS: ANSWER(uint32_t, GRAFT_EVENT_TIMING);
    case GRAFT_DEVICE_MEMORY_FLAGS: ANSWER(uint32_t, 0);
    case GRAFT_DEVICE_MEMORY_KINDS: ANSWER(uint32_t, 1u << GRAFT_MEMORY_DEVICE | 1u << GRAFT_MEMORY_PINNED);
    default: return GRAFT_UNIMPLEMENTED; /* free memory among them: OpenCL does not tell */
  }
#undef ANSWER
}

/* What kernels may ask of the processor by inline assembly: PoCL's devices are this one. Of AVX-512 also whether the
 * system keeps its registers. Where there is AMX, a product of pairs of bf16 takes as long as two fma
 * (docs/benchmarks.md). */
static void find_instructions(graft_device *device) {
#if defined(__x86_64__) && defined(__GNUC__)
  enum { FEATURES = 7, AVX512_BF16 = 1 << 5, AMX_BF16 = 1 << 22 };
  unsigned a, b, c, d, more_a, more_b, more_c, more_d;
  device->permutes = __builtin_cpu_supports("avx512f");
  device->dots_bytes = device->permutes && __builtin_cpu_supports("avx512vnni");
  device->dots_bf16 = device->dots_bytes && __get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) &&
                      __get_cpuid_count(FEATURES, 1, &more_a, &more_b, &more_c, &more_d) && (more_a & AVX512_BF16) &&
                      !(d & AMX_BF16);
#else
  (void)device;
#endif
}

static bool is_pocl(cl_device_id id) {
  char version[256] = "";
  clGetDeviceInfo(id, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
  return strstr(version, "PoCL") || strstr(version, "pocl");
}

/* Mesa's llvmpipe ends a work-item's loops after 65,535 turns in all (docs/opencl.md), which kernels for CPUs, with a
 * long piece of work for each, meet soon; and what it makes of an unrolled loop with barriers in it is wrong. */
static bool is_llvmpipe(cl_device_id id) {
  char name[256] = "";
  clGetDeviceInfo(id, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
  return strstr(name, "llvmpipe");
}

/* Kernels for GPUs have work-groups of up to so many work-items; with smaller ones those for CPUs run, which have one.
 */
enum { GROUP_LEAST = 256 };

static bool runs_cpu_kernels(const graft_device *device) {
  ocl_plugin *plugin = device->plugin;
  if (plugin->cpu_kernels || (!plugin->gpu_kernels && device->host_memory && !is_llvmpipe(device->id))) return true;
  if (device->largest_group >= GROUP_LEAST) return false;
  ocl_log(plugin, GRAFT_LOG_WARNING, "the device's work-groups have at most %zu work-items: kernels for CPUs run",
          device->largest_group);
  return true;
}

graft_status ocl_device_open(void *self, int32_t index, graft_device **out) {
  ocl_plugin *plugin = self;
  graft_status status = ocl_probe(plugin);
  if (status != GRAFT_OK) return status;
  if (index < 0 || index >= plugin->count) {
    return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT, "OpenCL device %d of %d", index, plugin->count);
  }
  graft_device *device = calloc(1, sizeof *device);
  if (!device || !(device->tables = ocl_tables_new()) || !(device->profiler = ocl_profiler_new())) {
    if (device && device->tables) ocl_tables_free(device->tables);
    free(device);
    return GRAFT_OUT_OF_MEMORY;
  }
  cl_device_id id = plugin->candidates[index].id;
  cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)plugin->candidates[index].platform,
                                        0};
  cl_int error;
  device->context = clCreateContext(properties, 1, &id, NULL, NULL, &error);
  if (error == CL_SUCCESS) device->map_queue = clCreateCommandQueue(device->context, id, 0, &error);
  if (error != CL_SUCCESS) {
    if (device->context) clReleaseContext(device->context);
    ocl_tables_free(device->tables);
    ocl_profiler_free(device->profiler);
    free(device);
    return ocl_fail(plugin, GRAFT_INTERNAL, "OpenCL device %d can't be opened: %s", index, ocl_error_name(error));
  }
  cl_uint width = query_uint(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
  device->plugin = plugin;
  device->id = id;
  device->host_memory = device_kind(id) == GRAFT_DEVICE_KIND_CPU;
  device->largest_group = query_size(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  device->is_cpu = runs_cpu_kernels(device);
  device->breaks_unrolled_barriers = is_llvmpipe(id);
  device->has_f64 = has_f64(id);
  device->exact_division = fp_config(id, CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
  device->vector_width = width >= 16 ? 16 : width >= 8 ? 8 : 4;
  device->compute_units = query_uint(id, CL_DEVICE_MAX_COMPUTE_UNITS);
  device->local_bytes = query_ulong(id, CL_DEVICE_LOCAL_MEM_SIZE);
  device->max_allocation = query_ulong(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device->parameter_bytes = query_size(id, CL_DEVICE_MAX_PARAMETER_SIZE);
  device->nvidia_capability = nvidia_capability(id);
  bool pocl = is_pocl(id);
  if (pocl && device->is_cpu && device->vector_width == 16 && !plugin->portable) find_instructions(device);
  const char *pocl_cache = getenv("POCL_KERNEL_CACHE");
  device->long_header = pocl; /* clang's opencl-c.h, which takes longer to read than most kernels to compile */
  /* In work-groups of many work-items PoCL does not compile all that waits right without its optimizer
   * (docs/opencl.md). */
  device->optimizes_slowly = pocl && device->is_cpu;
  device->buffers_in_place = pocl && device->host_memory;
  device->compiles_here = pocl;
  device->keeps_programs = pocl && !(pocl_cache && strcmp(pocl_cache, "0") == 0);
  pthread_mutex_init(&device->shared_lock, NULL);
  pthread_mutex_init(&device->tensor_lock, NULL);
  pthread_mutex_init(&device->program_lock, NULL);
  pthread_cond_init(&device->program_ready, NULL);
  *out = device;
  return GRAFT_OK;
}

graft_status ocl_device_close(graft_device *device) {
  ocl_tables_free(device->tables);
  ocl_profiler_free(device->profiler);
  ocl_kernels_close_all(device);
  ocl_program_close_all(device);
  clReleaseCommandQueue(device->map_queue);
  clReleaseContext(device->context);
  pthread_cond_destroy(&device->program_ready);
  pthread_mutex_destroy(&device->program_lock);
  pthread_mutex_destroy(&device->tensor_lock);
  pthread_mutex_destroy(&device->shared_lock);
  free(device);
  return GRAFT_OK;
}
