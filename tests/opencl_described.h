/* Devices that are described, on which nothing runs: processors with vectors of 16, of 8 and of 4 lanes, a GPU, an
 * H100. */
#ifndef GRAFT_TESTS_OPENCL_DESCRIBED_H
#define GRAFT_TESTS_OPENCL_DESCRIBED_H

#include "bad_input.h"
#include "plugins/idle_device.h"

#define DESCRIBED(type, units, width, local_bytes, lanes)                                                        \
  {                                                                                                              \
    IDLE_NUMBER(CL_DEVICE_TYPE, cl_device_type, type), IDLE_NUMBER(CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint, units), \
        IDLE_NUMBER(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, cl_uint, width),                                        \
        IDLE_NUMBER(CL_DEVICE_LOCAL_MEM_SIZE, cl_ulong, local_bytes),                                            \
        IDLE_NUMBER(CL_DEVICE_MAX_WORK_GROUP_SIZE, size_t, lanes),                                               \
        IDLE_NUMBER(CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong, UINT64_C(4) << 30),                                  \
        IDLE_NUMBER(CL_DEVICE_SINGLE_FP_CONFIG, cl_device_fp_config, CL_FP_FMA | CL_FP_DENORM | CL_FP_INF_NAN),  \
        IDLE_NUMBER(CL_DEVICE_MAX_PARAMETER_SIZE, size_t, 1024),                                                 \
        IDLE_TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_byte_addressable_store cl_khr_fp64"),                            \
        IDLE_TEXT(CL_DEVICE_VERSION, "OpenCL 1.2 described"), {                                                  \
      0                                                                                                          \
    }                                                                                                            \
  }

static const idle_answer cpu16[] = DESCRIBED(CL_DEVICE_TYPE_CPU, 16, 16, 512 << 10, 4096);
static const idle_answer cpu8[] = DESCRIBED(CL_DEVICE_TYPE_CPU, 8, 8, 512 << 10, 4096);
static const idle_answer cpu4[] = DESCRIBED(CL_DEVICE_TYPE_CPU, 4, 4, 512 << 10, 4096);
static const idle_answer gpu[] = DESCRIBED(CL_DEVICE_TYPE_GPU, 40, 1, 64 << 10, 256);
static const idle_answer h100[] = {IDLE_H100,
                                   IDLE_NUMBER(CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong, UINT64_C(20) << 30),
                                   IDLE_TEXT(CL_DEVICE_VERSION, "OpenCL 3.0 CUDA"),
                                   {0}};

/* Each opens an instance of its own: no two have the same options. */
static const struct described {
  const char *name;
  const idle_answer *answers;
  const char *options[3];
} described[] = {{"cpu16", cpu16, {"optimize=no"}},
                 {"cpu8", cpu8, {"kernels=cpu", "optimize=no"}},
                 {"cpu4", cpu4, {"kernels=cpu"}},
                 {"gpu", gpu, {"kernels=gpu"}},
                 {"h100", h100, {NULL}}};
enum { DESCRIBED_DEVICES = sizeof described / sizeof *described };

static inline void prepare_described(void) {
  setenv("GRAFT_CACHE_DIR", "none", 1);
  setenv("GRAFT_NO_MEMORY_CACHING", "1", 1); /* each request makes a buffer */
  setenv("GRAFT_FALLBACK", "error", 1);
  unsetenv("GRAFT_OPENCL_KERNELS");
  unsetenv("GRAFT_OPENCL_OPTIMIZE");
}

static inline graft_rt_device *open_described(int which) {
  idle_describe(described[which].answers);
  graft_rt_device *device = device_at(OPENCL, described[which].options, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  return device;
}

/* Behind the last that is open. */
static inline void expect_nothing_held(void) {
  const idle_objects left = idle_held();
  ck_assert_msg(!left.buffers && !left.programs && !left.kernels, "%ld buffers, %ld programs, %ld kernels are left",
                left.buffers, left.programs, left.kernels);
}

#endif
