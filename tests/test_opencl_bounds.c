/* With tests/plugins/array_bounds.c in front of PoCL a kernel dies where an index lies outside of its own array, in
 * private and in local memory, and computes otherwise. Other drivers are not looked at. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_folder.h"
#include "suite.h"

static const char text[] =
    "__kernel void own(__global int *to, int at) {"
    "  int lanes[3] = {1, 2, 3};"
    "  to[0] = lanes[at];"
    "}"
    "__kernel void shared(__global int *to, int at) {"
    "  __local int lanes[3];"
    "  lanes[at] = at + 1;"
    "  to[0] = lanes[at];"
    "}";

static bool find_pocl(cl_platform_id *platform) {
  enum { PLATFORMS = 16 };
  cl_platform_id all[PLATFORMS];
  cl_uint count = 0;
  if (clGetPlatformIDs(PLATFORMS, all, &count) != CL_SUCCESS) return false;
  for (cl_uint i = 0; i < count && i < PLATFORMS; i++) {
    char name[64] = "";
    *platform = all[i];
    if (clGetPlatformInfo(*platform, CL_PLATFORM_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
        strstr(name, "Portable"))
      return true;
  }
  return false;
}

/* In a process of its own: exit status 0 where the kernel gives the lane at that place. */
static int run_kernel(const char *name, cl_int at) {
  cl_platform_id platform;
  cl_device_id id;
  cl_int found = 0;
  const char *source = text;
  if (!find_pocl(&platform) || clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL)) return 1;
  cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, NULL);
  cl_command_queue queue = clCreateCommandQueue(context, id, 0, NULL);
  cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, NULL);
  if (clBuildProgram(program, 1, &id, "-cl-opt-disable", NULL, NULL)) return 1;
  cl_kernel kernel = clCreateKernel(program, name, NULL);
  cl_mem to = clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof found, NULL, NULL);
  clSetKernelArg(kernel, 0, sizeof to, &to);
  clSetKernelArg(kernel, 1, sizeof at, &at);
  clEnqueueNDRangeKernel(queue, kernel, 1, NULL, (const size_t[]){1}, (const size_t[]){1}, 0, NULL, NULL);
  if (clEnqueueReadBuffer(queue, to, CL_TRUE, 0, sizeof found, &found, 0, NULL, NULL)) return 1;
  return found != at + 1;
}

static const char *program;

static int status_of(const char *kernel, int at) {
  char folder[] = OWN_FOLDER, command[1024];
  folder_make(folder);
  snprintf(command, sizeof command,
           "ulimit -c 0; POCL_CACHE_DIR='%s' LD_PRELOAD='%s/tests/plugins/array_bounds.so' exec '%s' %s %d 2>/dev/null",
           folder, GRAFT_BINARY_DIR, program, kernel, at);
  const int status = system(command);
  folder_remove(folder);
  return status;
}

START_TEST(an_index_outside_of_an_array_is_the_end) {
  static const char *const kernels[] = {"own", "shared"};
  cl_platform_id platform;
  if (!find_pocl(&platform)) return;
  ck_assert_int_eq(status_of(kernels[_i], 2), 0);
  const int status = status_of(kernels[_i], 3);
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  ck_assert_msg(signal == SIGILL || signal == SIGTRAP, "status %d", status);
}
END_TEST

int main(int argc, char **argv) {
  const suite_test tests[] = {EACH(an_index_outside_of_an_array_is_the_end, 2), {0}};
  program = argv[0];
  if (argc == 3) return run_kernel(argv[1], (cl_int)(argv[2][0] - '0'));
  return run_suite("opencl_bounds", tests, (suite_options){.timeout_s = 60});
}
