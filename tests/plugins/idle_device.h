/* What stands between the OpenCL backend and OpenCL where nothing is to run: the first device says of itself what a
 * description says, no program is compiled, no kernel is launched. Memory is the real device's. Who links it says what
 * happens with programs and launches. */
#ifndef GRAFT_TESTS_IDLE_DEVICE_H
#define GRAFT_TESTS_IDLE_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>

/* As cl_nv_device_attribute_query names it. */
#define CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV 0x4000

typedef struct idle_answer {
  cl_device_info question;
  uint64_t value;
  size_t bytes;     /* of the answer */
  const char *text; /* in the value's place */
} idle_answer;
#define IDLE_NUMBER(question, type, value) \
  { (question), (value), sizeof(type), NULL }
#define IDLE_TEXT(question, text) \
  { (question), 0, sizeof(text), (text) }

/* What an H100 answers. Lists of answers end with one that is {0}. */
#define IDLE_H100                                                                                  \
  IDLE_NUMBER(CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV, cl_uint, 9),                                  \
      IDLE_NUMBER(CL_DEVICE_TYPE, cl_device_type, CL_DEVICE_TYPE_GPU),                             \
      IDLE_NUMBER(CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint, 132),                                      \
      IDLE_NUMBER(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, cl_uint, 1),                                \
      IDLE_NUMBER(CL_DEVICE_LOCAL_MEM_SIZE, cl_ulong, 48 << 10),                                   \
      IDLE_NUMBER(CL_DEVICE_MAX_WORK_GROUP_SIZE, size_t, 1024),                                    \
      IDLE_NUMBER(CL_DEVICE_MAX_PARAMETER_SIZE, size_t, 4352),                                     \
      IDLE_NUMBER(CL_DEVICE_SINGLE_FP_CONFIG, cl_device_fp_config,                                 \
                  CL_FP_FMA | CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT), \
      IDLE_TEXT(CL_DEVICE_EXTENSIONS, "cl_khr_byte_addressable_store cl_khr_fp64 cl_nv_device_attribute_query")

/* What devices answer from now on; NULL: all is the driver's. */
void idle_describe(const idle_answer *answers);

/* Whether what is read of memory is 0: nothing has written there. */
void idle_read_zeros(bool on);

/* What kernels are told of: a part of the program's text each, of which the first is what stands before its files; of
 * these the first lines; behind the first part, the lines that no kernel's file has; what the compiler is told. */
typedef struct idle_program {
  char *text, *head, *files, *written, *options;
} idle_program;

/* What a kernel was given: a value; a buffer of so many bytes; local memory, of which there is no value. */
typedef struct idle_argument {
  void *value;
  size_t bytes, buffer_bytes;
} idle_argument;
/* Of the kernel that is being launched, those that were never set among them. */
const idle_argument *idle_arguments(cl_uint *count);

/* How many buffers, programs and kernels were made and not given back. */
typedef struct idle_objects {
  long buffers, programs, kernels;
} idle_objects;
idle_objects idle_held(void);

/* ---- what who links it defines ---- */

/* A program was made. */
void idle_program_made(const idle_program *program);
/* A kernel was to be launched. `local` has as many items as `global`. */
void idle_launched(const idle_program *program, const char *kernel, cl_uint dims, const size_t *global,
                   const size_t *local);
/* A buffer was made. */
void idle_buffer_made(size_t bytes);

#endif
