/* CLBlast's sgemm on the first OpenCL device as a peer; see matmul_peer.h. */
#define CL_TARGET_OPENCL_VERSION 120
#include <clblast_c.h>

#include "matmul_peer.h"

typedef struct product {
  size_t n;
  cl_command_queue queue;
  cl_mem a, b, c;
} product;

static void need(int good, const char *what) {
  if (good) return;
  fprintf(stderr, "matmul_clblast: %s failed\n", what);
  exit(1);
}

static void multiply(void *context) {
  product *p = context;
  cl_event done = NULL;
  CLBlastStatusCode status = CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, p->n, p->n,
                                          p->n, 1, p->a, 0, p->n, p->b, 0, p->n, 0, p->c, 0, p->n, &p->queue, &done);
  need(status == CLBlastSuccess, "CLBlastSgemm");
  clWaitForEvents(1, &done);
  clReleaseEvent(done);
}

static cl_mem buffer(cl_context context, size_t n) {
  cl_int error;
  float *values = peer_matrix((long)n);
  cl_mem made = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, n * n * sizeof *values, values, &error);
  need(error == CL_SUCCESS, "clCreateBuffer");
  free(values);
  return made;
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: matmul_clblast N\n"), 2;
  product p = {.n = (size_t)atol(argv[1])};
  cl_platform_id platform;
  cl_device_id device;
  cl_int error;
  need(clGetPlatformIDs(1, &platform, NULL) == CL_SUCCESS, "clGetPlatformIDs");
  need(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) == CL_SUCCESS, "clGetDeviceIDs");
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
  need(error == CL_SUCCESS, "clCreateContext");
  p.queue = clCreateCommandQueue(context, device, 0, &error);
  need(error == CL_SUCCESS, "clCreateCommandQueue");
  p.a = buffer(context, p.n), p.b = buffer(context, p.n), p.c = buffer(context, p.n);
  return peer_serve(multiply, &p);
}
