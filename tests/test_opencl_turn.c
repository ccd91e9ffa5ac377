/* Factors that are copied for tensor cores (kernels/matmul/turn.cl) come out along K, with zeros beyond it, at every
 * edge of a tile: to the bit where nothing is rounded, as f16 where they are float8, and as the nearest tf32. Any
 * OpenCL device runs that kernel, whether it has tensor cores or not. */
#define _POSIX_C_SOURCE          200809L /* strdup */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"
#include "tensor/dtype.h"

#define KERNELS GRAFT_SOURCE_DIR "/reference_backend_opencl/kernels/"

/* As turn.cl has them. */
enum { SIDE = 64, LANES = 256 };
typedef struct turned {
  int64_t rows, depth, row_stride, depth_stride, batch_stride, pitch, tiles_rows, tiles_depth;
} turned;

typedef struct kind {
  const char *head;
  graft_dtype from, to; /* equal: copied; none: tf32 */
  int from_bytes, to_bytes;
} kind;

static const kind kinds[] = {
    {"#define CT int\n#define CLASS_INT\n#define D i8\n#define FACTOR_TYPE uchar\n#define TURNED_NOT\n", GRAFT_I8,
     GRAFT_I8, 1, 1},
    {"#define CT float\n#define CLASS_FLOAT\n#define D bf16\n#define FACTOR_TYPE ushort\n#define TURNED_NOT\n",
     GRAFT_BF16, GRAFT_BF16, 2, 2},
    {"#define CT float\n#define CLASS_FLOAT\n#define D f8_e4m3fn\n#define FACTOR_TYPE ushort\n#define TURNED_F16\n",
     GRAFT_F8_E4M3FN, GRAFT_F16, 1, 2},
    {"#define CT float\n#define CLASS_FLOAT\n#define D f8_e5m2\n#define FACTOR_TYPE ushort\n#define TURNED_F16\n",
     GRAFT_F8_E5M2, GRAFT_F16, 1, 2},
    {"#define CT float\n#define CLASS_FLOAT\n#define D f32\n#define FACTOR_TYPE uint\n#define TURNED_TF32\n", GRAFT_F32,
     GRAFT_DTYPE_NONE, 4, 4},
};

static const struct {
  int64_t rows, depth;
  bool along;
} shapes[] = {{70, 131, true}, {70, 131, false}, {64, 64, false}, {3, 200, true}, {129, 65, false}, {1, 1, true}};

enum { BATCHES = 2, FILE_MAX = 1 << 16 };

static char *text_of(const char *path) {
  static char text[FILE_MAX];
  FILE *file = fopen(path, "r");
  ck_assert_ptr_nonnull(file);
  text[fread(text, 1, FILE_MAX - 1, file)] = '\0';
  ck_assert(feof(file));
  fclose(file);
  return strdup(text);
}

/* To the nearest of 11 bits; one half of a step more goes away from zero. What would become infinite stays the largest.
 */
static bool is_nearest_tf32(float from, uint32_t to) {
  float value;
  memcpy(&value, &to, sizeof value);
  if (isnan(from)) return isnan(value);
  if (isinf(from)) return value == from;
  if (fabsf(from) > 0x1.ffep127f) return fabsf(value) == 0x1.ffcp127f;
  double step = fmax(ldexp(1, from == 0 ? -136 : ilogbf(from) - 10), 0x1p-136);
  return (to & 0x1fff) == 0 && isfinite(value) && fabs((double)value - from) <= step / 2;
}

static bool is_right(const kind *k, const unsigned char *from, const unsigned char *to) {
  uint32_t bits;
  float value;
  if (k->from == k->to) return memcmp(from, to, (size_t)k->to_bytes) == 0;
  if (k->to == GRAFT_F16) {
    const dt_value expected = dt_load(k->from, from), got = dt_load(GRAFT_F16, to);
    return isnan(expected.re) ? isnan(got.re) : expected.re == got.re;
  }
  memcpy(&value, from, sizeof value);
  memcpy(&bits, to, sizeof bits);
  return is_nearest_tf32(value, bits);
}

static cl_device_id some_device(void) {
  cl_platform_id platform;
  cl_device_id device;
  cl_uint count = 0;
  if (clGetPlatformIDs(1, &platform, &count) != CL_SUCCESS || count == 0) return NULL;
  return clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, &count) == CL_SUCCESS && count ? device : NULL;
}

static cl_program program_of(cl_context context, cl_device_id device, const kind *k) {
  char head[256];
  snprintf(head, sizeof head,
           "%s#define MT int\n#define UT uint\n#define VEC 1\n#define LOCAL %d\n#define FACTOR_BYTES %d\n", k->head,
           LANES, k->to_bytes);
  char *common = text_of(KERNELS "core/common.cl"), *turn = text_of(KERNELS "matmul/turn.cl");
  const char *texts[] = {head, common, turn};
  cl_program program = clCreateProgramWithSource(context, 3, texts, NULL, NULL);
  ck_assert_int_eq(clBuildProgram(program, 1, &device, "", NULL, NULL), CL_SUCCESS);
  free(common);
  free(turn);
  return program;
}

static void run(cl_context context, cl_device_id device, const kind *k, const turned *t, unsigned char *in,
                size_t in_bytes, unsigned char *out, size_t out_bytes) {
  const cl_ulong zero = 0;
  cl_program program = program_of(context, device, k);
  cl_kernel kernel = clCreateKernel(program, "turn", NULL);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  cl_mem from = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, in_bytes, in, NULL);
  cl_mem to = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, out_bytes, out, NULL);
  clSetKernelArg(kernel, 0, sizeof to, &to);
  clSetKernelArg(kernel, 1, sizeof zero, &zero);
  clSetKernelArg(kernel, 2, sizeof from, &from);
  clSetKernelArg(kernel, 3, sizeof zero, &zero);
  clSetKernelArg(kernel, 4, sizeof *t, t);
  const size_t local = LANES, global = (size_t)(BATCHES * t->tiles_rows * t->tiles_depth) * local;
  ck_assert_int_eq(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL), CL_SUCCESS);
  ck_assert_int_eq(clEnqueueReadBuffer(queue, to, CL_TRUE, 0, out_bytes, out, 0, NULL, NULL), CL_SUCCESS);
  clReleaseMemObject(from);
  clReleaseMemObject(to);
  clReleaseCommandQueue(queue);
  clReleaseKernel(kernel);
  clReleaseProgram(program);
}

START_TEST(factors_are_turned) {
  const kind *k = &kinds[_i / ROWS(shapes)];
  const int64_t rows = shapes[_i % ROWS(shapes)].rows, depth = shapes[_i % ROWS(shapes)].depth;
  const int64_t piece = 16 / k->to_bytes, pitch = (depth + piece - 1) / piece * piece;
  const bool along = shapes[_i % ROWS(shapes)].along;
  cl_device_id device = some_device();
  if (!device) return;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  const turned t = {.rows = rows,
                    .depth = depth,
                    .row_stride = along ? depth + 3 : 1,
                    .depth_stride = along ? 1 : rows + 5,
                    .batch_stride = along ? rows * (depth + 3) : depth * (rows + 5),
                    .pitch = pitch,
                    .tiles_rows = (rows + SIDE - 1) / SIDE,
                    .tiles_depth = (pitch + SIDE - 1) / SIDE};
  const size_t in_bytes = (size_t)(BATCHES * t.batch_stride * k->from_bytes);
  const size_t out_bytes = (size_t)(BATCHES * rows * pitch * k->to_bytes);
  unsigned char *in = malloc(in_bytes), *out = malloc(out_bytes);
  uint32_t random = 1;
  for (size_t i = 0; i < in_bytes; i++) in[i] = (unsigned char)((random = random * 1664525u + 1013904223u) >> 24);
  memset(out, 0xaa, out_bytes);
  run(context, device, k, &t, in, in_bytes, out, out_bytes);
  for (int64_t at = 0; at < BATCHES * rows * pitch; at++) {
    const int64_t step = at % pitch, row = at / pitch % rows, batch = at / pitch / rows;
    const unsigned char *to = out + at * k->to_bytes, zero[4] = {0};
    const int64_t from = batch * t.batch_stride + row * t.row_stride + step * t.depth_stride;
    const bool right =
        step < depth ? is_right(k, in + from * k->from_bytes, to) : !memcmp(to, zero, (size_t)k->to_bytes);
    ck_assert_msg(right, "batch %d, row %d, step %d", (int)batch, (int)row, (int)step);
  }
  free(in);
  free(out);
  clReleaseContext(context);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(factors_are_turned, ROWS(kinds) * ROWS(shapes)), {0}};
  return run_suite("opencl_turn", tests, (suite_options){.timeout_s = 60});
}
