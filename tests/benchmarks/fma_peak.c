/* The most multiply-adds in f32 that a device does: fma_peak cpu | opencl [DEVICE'S NAME]
 *
 * Prints operations a second, a multiply-add being two. On the CPU as many threads as OMP_NUM_THREADS says (else one a
 * processor), each with independent chains in vectors; on an OpenCL device a kernel of the same kind. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"

enum { RUNS = 41, CHAINS = 12, LANES = 16, STEPS = 1 << 18, MAX_THREADS = 256 };

/* --- the CPU --- */

typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* The instructions that the machine has. */
#ifdef __x86_64__
#define MULTIVERSIONED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define MULTIVERSIONED
#endif

MULTIVERSIONED static float chains(float a, float b) {
  lanes x[CHAINS];
  for (int c = 0; c < CHAINS; c++) x[c] = (lanes){0} + (float)c;
  for (int i = 0; i < STEPS; i++) {
#pragma GCC unroll 12
    for (int c = 0; c < CHAINS; c++) x[c] = x[c] * a + b;
  }
  float sum = 0;
  for (int c = 0; c < CHAINS; c++)
    for (int l = 0; l < LANES; l++) sum += x[c][l];
  return sum;
}

static void *thread(void *sum) {
  *(volatile float *)sum = chains(0.999F, 1e-3F);
  return NULL;
}

static double cpu_peak(void) {
  const char *asked = getenv("OMP_NUM_THREADS");
  long threads = asked ? atol(asked) : sysconf(_SC_NPROCESSORS_ONLN);
  if (threads < 1 || threads > MAX_THREADS) threads = 1;
  double best = 1e9;
  for (int run = 0; run < RUNS; run++) {
    pthread_t ids[MAX_THREADS];
    float sums[MAX_THREADS];
    double start = now_s();
    for (long t = 0; t < threads; t++) pthread_create(&ids[t], NULL, thread, &sums[t]);
    for (long t = 0; t < threads; t++) pthread_join(ids[t], NULL);
    double seconds = now_s() - start;
    if (seconds < best) best = seconds;
  }
  return 2.0 * CHAINS * LANES * STEPS * (double)threads / best;
}

/* --- an OpenCL device --- */

/* A processor's lanes are in a vector, a GPU's are work-items. */
static const char source[] =
    "kernel void chains(global float *out, float a, float b) {\n"
    "  T x[CHAINS];\n"
    "  __attribute__((opencl_unroll_hint)) for (int c = 0; c < CHAINS; c++) x[c] = (T)((float)get_global_id(0) + c);\n"
    "  for (int i = 0; i < STEPS; i++) {\n"
    "    __attribute__((opencl_unroll_hint)) for (int c = 0; c < CHAINS; c++) x[c] = fma(x[c], (T)a, (T)b);\n"
    "  }\n"
    "  T sum = 0;\n"
    "  for (int c = 0; c < CHAINS; c++) sum += x[c];\n"
    "  out[get_global_id(0)] = SUM(sum);\n"
    "}\n";

static void cl_must(cl_int status, const char *what) {
  if (status != CL_SUCCESS) fprintf(stderr, "fma_peak: %s: OpenCL error %d\n", what, status), exit(1);
}

/* The device whose name stands in `name`, else the first. */
static cl_device_id device_named(const char *name) {
  cl_platform_id platforms[16];
  cl_device_id first = NULL;
  cl_uint platform_count = 0;
  cl_must(clGetPlatformIDs(16, platforms, &platform_count), "clGetPlatformIDs");
  for (cl_uint p = 0; p < platform_count; p++) {
    cl_device_id devices[16];
    cl_uint count = 0;
    if (clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, devices, &count) != CL_SUCCESS) continue;
    for (cl_uint d = 0; d < count; d++) {
      char text[256] = "";
      clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof text, text, NULL);
      if (name && text[0] && strstr(name, text)) return devices[d];
      if (!first) first = devices[d];
    }
  }
  if (!first) fprintf(stderr, "fma_peak: there is no OpenCL device\n"), exit(1);
  return first;
}

typedef struct shape {
  bool processor;
  size_t local, items;
  int steps, width;
} shape;

static shape shape_of(cl_device_id device) {
  cl_device_type type = 0;
  cl_uint units = 1;
  clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, NULL);
  clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, NULL);
  if (type & CL_DEVICE_TYPE_CPU) return (shape){true, 1, units, 1 << 18, LANES};
  return (shape){false, 256, units * (size_t)16 * 256, 1 << 12, 1};
}

static cl_kernel compiled(cl_context context, cl_device_id device, const shape *shape) {
  const char *text = source;
  char options[160];
  cl_int status;
  cl_program program = clCreateProgramWithSource(context, 1, &text, NULL, &status);
  cl_must(status, "clCreateProgramWithSource");
  snprintf(options, sizeof options, "-DCHAINS=%d -DSTEPS=%d -DT=%s -DSUM(x)=%s", CHAINS, shape->steps,
           shape->processor ? "float16" : "float",
           shape->processor ? "dot((x).s0123,(x).s4567)+dot((x).s89ab,(x).scdef)" : "x");
  cl_must(clBuildProgram(program, 1, &device, options, NULL, NULL), "clBuildProgram");
  cl_kernel kernel = clCreateKernel(program, "chains", &status);
  cl_must(status, "clCreateKernel");
  return kernel;
}

static double opencl_peak(const char *name) {
  cl_device_id device = device_named(name);
  shape shape = shape_of(device);
  cl_int status;
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
  cl_must(status, "clCreateContext");
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, &status);
  cl_must(status, "clCreateCommandQueue");
  cl_kernel kernel = compiled(context, device, &shape);
  cl_mem out = clCreateBuffer(context, CL_MEM_READ_WRITE, shape.items * sizeof(float), NULL, &status);
  cl_must(status, "clCreateBuffer");
  float a = 0.999F, b = 1e-3F;
  clSetKernelArg(kernel, 0, sizeof out, &out);
  clSetKernelArg(kernel, 1, sizeof a, &a);
  clSetKernelArg(kernel, 2, sizeof b, &b);
  double best = 1e9;
  for (int run = 0; run <= RUNS; run++) {
    double start = now_s();
    cl_must(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &shape.items, &shape.local, 0, NULL, NULL),
            "clEnqueueNDRangeKernel");
    cl_must(clFinish(queue), "clFinish");
    double seconds = now_s() - start;
    if (run && seconds < best) best = seconds; /* the first builds what the kernel needs */
  }
  return 2.0 * CHAINS * shape.width * shape.steps * (double)shape.items / best;
}

int main(int argc, char **argv) {
  bool cpu = argc == 2 && !strcmp(argv[1], "cpu"), opencl = argc >= 2 && !strcmp(argv[1], "opencl");
  if (!cpu && !opencl) return fprintf(stderr, "usage: fma_peak cpu | opencl [DEVICE'S NAME]\n"), 2;
  printf("%.6g\n", cpu ? cpu_peak() : opencl_peak(argc > 2 ? argv[2] : NULL));
  return 0;
}
