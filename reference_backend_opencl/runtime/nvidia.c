/* NVIDIA's tensor cores: the text of their products, the tiles that suit them, and whether they are there. */
#include "runtime/nvidia.h"

#include "runtime/ocl.h"

/* ---- Ways ---- */

/* e4m3 and e5m2 are all of them numbers of f16. The tensor cores' own sums of float8 keep some 14 bits, which are too
 * few. */
static const ocl_tensor_way ways[] = {
    {GRAFT_BF16, GRAFT_BF16, "bf16", "bf16", "f32", 2, OCL_TURNED_NOT},
    {GRAFT_F16, GRAFT_F16, "f16", "f16", "f32", 2, OCL_TURNED_NOT},
    {GRAFT_I8, GRAFT_I8, "s8", "s8", "s32", 1, OCL_TURNED_NOT},
    {GRAFT_U8, GRAFT_I8, "u8", "s8", "s32", 1, OCL_TURNED_NOT},
    {GRAFT_F8_E4M3FN, GRAFT_F8_E4M3FN, "f16", "f16", "f32", 2, OCL_TURNED_F16},
    {GRAFT_F8_E4M3FN, GRAFT_F8_E5M2, "f16", "f16", "f32", 2, OCL_TURNED_F16},
    {GRAFT_F8_E5M2, GRAFT_F8_E4M3FN, "f16", "f16", "f32", 2, OCL_TURNED_F16},
    {GRAFT_F8_E5M2, GRAFT_F8_E5M2, "f16", "f16", "f32", 2, OCL_TURNED_F16},
    {GRAFT_F32, GRAFT_F32, "tf32", "tf32", "f32", 4, OCL_TURNED_TF32},
    {GRAFT_F64, GRAFT_F64, "f64", "f64", "f64", 8, OCL_TURNED_NOT},
};

const ocl_tensor_way *ocl_tensor_way_of(graft_dtype a, graft_dtype b) {
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    if (ways[i].a == a && ways[i].b == b) return &ways[i];
  }
  return NULL;
}

const ocl_tensor_way *ocl_tensor_way_of_halves(graft_dtype dtype) {
  return dtype == GRAFT_BF16 || dtype == GRAFT_F16 ? ocl_tensor_way_of(dtype, dtype) : NULL;
}

/* ---- Products ---- */

static void add_operands(ocl_text *head, int count, int first) {
  for (int i = 0; i < count; i++) ocl_text_add(head, "%s%%%d", i ? "," : "", first + i);
}

/* Signs of the factors, which integers don't have, and which factor lies across, which only 16 bits do. */
static void add_layout(ocl_text *head, const ocl_tensor_way *way, ocl_factor a, ocl_factor b) {
  if (way->bytes > 1) ocl_text_add(head, ", 1, 1");
  if (way->bytes == 2 && a != OCL_FACTOR_REGISTERS) ocl_text_add(head, ", %d", a == OCL_FACTOR_ACROSS);
  if (way->bytes == 2) ocl_text_add(head, ", %d", b == OCL_FACTOR_ACROSS);
}

void ocl_head_multiply(ocl_text *head, const char *name, const ocl_tensor_way *way, int columns, ocl_factor a,
                       ocl_factor b) {
  const int sums = columns / 2;
  const bool registers = a == OCL_FACTOR_REGISTERS, whole = way->bytes == 1;
  ocl_text_add(head,
               "static __attribute__((always_inline)) void %s(%s *sums, %s a, ulong b) {\n"
               "__asm volatile(\"%s { .reg .pred adds; setp.eq.u32 adds, 0, 0;\\n"
               "%s wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s {",
               name, whole ? "int" : "float", registers ? "const uint *" : "ulong", OCL_PTX_MARK, OCL_PTX_MARK, columns,
               32 / way->bytes, way->sum_type, way->a_type, way->b_type);
  add_operands(head, sums, 0);
  ocl_text_add(head, "}, %s", registers ? "{" : "");
  add_operands(head, registers ? 4 : 1, sums);
  ocl_text_add(head, "%s, %%%d, adds", registers ? "}" : "", sums + (registers ? 4 : 1));
  add_layout(head, way, a, b);
  ocl_text_add(head, "; }\" : ");
  for (int i = 0; i < sums; i++) ocl_text_add(head, "%s\"+%s\"(sums[%d])", i ? ", " : "", whole ? "r" : "f", i);
  ocl_text_add(head, " : ");
  for (int i = 0; registers && i < 4; i++) ocl_text_add(head, "\"r\"(a[%d]), ", i);
  ocl_text_add(head, "%s\"l\"(b) : \"memory\");\n}\n", registers ? "" : "\"l\"(a), ");
}

/* ---- Tiles ---- */

/* How many multiplications a unit makes at a time in tiles of each size, measured on an H100 at K = 8192: relative to
 * each other. Of the smallest, two groups run on a unit. */
typedef struct speed {
  ocl_tensor_size size;
  double speed;
} speed;
static const speed speeds[] = {
    {{.m = 128, .n = 256}, 100}, {{.m = 128, .n = 128}, 68}, {{.m = 64, .n = 128}, 60}, {{.m = 0}, 0}};
/* Of f64, whose sums take twice the registers. */
static const speed wide_speeds[] = {{{.m = 128, .n = 128}, 100}, {{.m = 64, .n = 64}, 80}, {{.m = 0}, 0}};

/* How many tiles a unit makes, one after the other. */
static int64_t rounds_of(const graft_device *device, int64_t rows, int64_t columns, int64_t batches,
                         ocl_tensor_size size) {
  const int64_t tiles = ocl_ceil_divide(rows, size.m) * ocl_ceil_divide(columns, size.n) * batches;
  return ocl_ceil_divide(tiles, (int64_t)device->compute_units);
}

/* What is left of a size's speed: the rest is spent beyond the result's edges, or waiting for the last tiles. */
static double speed_of(const graft_device *device, int64_t rows, int64_t columns, int64_t batches, const speed *of) {
  const ocl_tensor_size size = of->size;
  return of->speed / (double)(rounds_of(device, rows, columns, batches, size) * size.m * size.n);
}

ocl_tensor_size ocl_tensor_size_for(const graft_device *device, const ocl_tensor_way *way, int64_t rows,
                                    int64_t columns, int64_t batches) {
  const speed *best = way->bytes == 8 ? wide_speeds : speeds;
  for (const speed *s = best + 1; s->speed > 0; s++) {
    if (speed_of(device, rows, columns, batches, s) > speed_of(device, rows, columns, batches, best)) best = s;
  }
  ocl_tensor_size size = best->size;
  size.alone = rounds_of(device, rows, columns, batches, size) <= 1;
  return size;
}

/* As many strips as a unit's local memory holds beside its other group, if it has two. */
static int stages_of(ocl_tensor_size size) {
  enum { UNIT_BYTES = 200 << 10 };
  const int64_t bytes = size.m == 64 && !size.alone ? UNIT_BYTES / 2 : UNIT_BYTES;
  return (int)(bytes / ((size.m + size.n) * OCL_TENSOR_STRIP_BYTES));
}

void ocl_head_tensor_tile(ocl_text *head, const ocl_tensor_way *way, ocl_tensor_size size, ocl_factor a, ocl_factor b) {
  static const char *const elements[] = {[1] = "uchar", [2] = "ushort", [4] = "uint", [8] = "double"};
  ocl_text_add(head,
               "#define WARPGROUPS %d\n#define A_ALONG %d\n#define B_ALONG %d\n#define FACTOR_TYPE %s\n"
               "#define FACTOR_BYTES %d\n#define SUM_TYPE %s\n",
               (int)(size.m / 64), a == OCL_FACTOR_ALONG, b == OCL_FACTOR_ALONG, elements[way->bytes], way->bytes,
               way->bytes == 1   ? "int"
               : way->bytes == 8 ? "double"
                                 : "float");
  if (way->bytes == 8) return;
  const int stages = stages_of(size);
  ocl_text_add(head, "#define STAGES %d\n#define PENDING %d\n", stages, stages - 3);
  ocl_head_multiply(head, "multiply_tensor", way, (int)size.n, a, b);
}

/* ---- The probe ---- */

enum { PROBE_COLUMNS = 8, PROBE_STEPS = 16, PROBE_ROWS = 64 };

static bool has_capability(const graft_device *device, cl_uint least) {
  return !device->is_cpu && !device->plugin->portable && device->nvidia_capability >= least;
}

bool ocl_has_warps(const graft_device *device) {
  return has_capability(device, 7);
}

bool ocl_converts_bf16(const graft_device *device) {
  return has_capability(device, 8);
}

bool ocl_has_quick_functions(const graft_device *device) {
  return has_capability(device, 7);
}

bool ocl_has_copies(const graft_device *device) {
  return has_capability(device, 8);
}

/* Whether a product of small whole numbers, which the kernel makes up, comes out as it must. */
static bool multiplies(graft_device *device) {
  const ocl_dtype *bf16 = ocl_dtype_of(device, GRAFT_BF16);
  ocl_text head = {0};
  ocl_head_types(&head, bf16, 1, 128);
  ocl_head_multiply(&head, "multiply_tensor", ocl_tensor_way_of_halves(GRAFT_BF16), PROBE_COLUMNS, OCL_FACTOR_ALONG,
                    OCL_FACTOR_ALONG);
  ocl_kernel kernel = {0};
  graft_status status = ocl_kernel_make(&kernel, device, &head, "core/nvidia core/nvidia_probe", "probe");
  if (status != GRAFT_OK) return false;
  float got[PROBE_ROWS * PROBE_COLUMNS];
  cl_int error;
  cl_mem buffer = clCreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof got, NULL, &error);
  size_t size = 128;
  cl_command_queue queue = NULL;
  if (error == CL_SUCCESS) queue = clCreateCommandQueue(device->context, device->id, 0, &error);
  if (error == CL_SUCCESS) error = clSetKernelArg(kernel.handle, 0, sizeof buffer, &buffer);
  if (error == CL_SUCCESS) error = clEnqueueNDRangeKernel(queue, kernel.handle, 1, NULL, &size, &size, 0, NULL, NULL);
  if (error == CL_SUCCESS) error = clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, sizeof got, got, 0, NULL, NULL);
  if (queue) clReleaseCommandQueue(queue);
  if (buffer) clReleaseMemObject(buffer);
  ocl_kernel_destroy(&kernel);
  bool right = error == CL_SUCCESS;
  for (int i = 0; right && i < PROBE_ROWS; i++) {
    for (int j = 0; j < PROBE_COLUMNS; j++) {
      int sum = 0;
      for (int k = 0; k < PROBE_STEPS; k++) sum += ((i + 3 * k) % 17 - 8) * ((5 * j + k) % 13 - 6);
      right = right && got[i * PROBE_COLUMNS + j] == (float)sum;
    }
  }
  return right;
}

static bool has_tensor_cores(graft_device *device) {
  pthread_mutex_lock(&device->tensor_lock);
  if (!device->tensor_known) {
    const bool asked = !device->plugin->portable && device->nvidia_capability == 9;
    device->tensor_cores = asked && multiplies(device);
    device->tensor_known = true;
    if (asked && !device->tensor_cores)
      ocl_log(device->plugin, GRAFT_LOG_WARNING,
              "tensor cores: the probe's product is not right with this driver; portable kernels serve");
  }
  bool has = device->tensor_cores;
  pthread_mutex_unlock(&device->tensor_lock);
  return has;
}

bool ocl_tensor_cores_serve(graft_device *device, const ocl_tensor_way *way, double multiplications) {
  /* Fewer are not worth a program of their own, nor the second that it takes to compile. */
  const double least = 1 << 19;
  return !device->is_cpu && way && multiplications >= least && has_tensor_cores(device);
}
