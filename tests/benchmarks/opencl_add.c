/* What a call of add costs on the OpenCL backend, beyond OpenCL itself.
 *
 *   opencl_add            10,000 adds of 16 elements through the host and one synchronize, against the bare loop of
 *                         clSetKernelArg and clEnqueueNDRangeKernel that the backend itself performed, and one
 * clFinish; then how soon a kernel from the disk cache is ready in a fresh process opencl_add --ready    one add, in a
 * process of its own
 *
 * The bare loop is recorded: this program stands in front of the OpenCL library with its own clSetKernelArg and
 * clEnqueueNDRangeKernel, notes what one add does, and repeats exactly that, on the same kernel, buffers and queue.
 * Beside it stands the same loop of a kernel that takes nothing and does nothing: what no backend on this driver can do
 * without. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/device.h"
#include "graft_opencl.h"
#include "measure.h"

enum { CALLS = 10000, ROUNDS = 21, ARGUMENTS = 64, FRESH = 7 };

/* --- the recorder --- */

typedef cl_int (*set_fn)(cl_kernel, cl_uint, size_t, const void *);
typedef cl_int (*enqueue_fn)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,
                             cl_uint, const cl_event *, cl_event *);

static set_fn real_set;
static enqueue_fn real_enqueue;

static struct {
  int on;
  cl_uint count;
  struct {
    cl_uint index;
    size_t bytes;
    unsigned char value[64];
  } arguments[ARGUMENTS];
  cl_kernel kernel;
  cl_command_queue queue;
  cl_uint dimensions, launches;
  size_t global[3], local[3];
} record;

GRAFT_EXPORT cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t bytes, const void *value) {
  if (record.on && bytes <= sizeof record.arguments[0].value && record.count < ARGUMENTS) {
    record.arguments[record.count].index = index;
    record.arguments[record.count].bytes = bytes;
    memcpy(record.arguments[record.count++].value, value, bytes);
  }
  return real_set(kernel, index, bytes, value);
}

GRAFT_EXPORT cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                           const size_t *offset, const size_t *global, const size_t *local,
                                           cl_uint waits, const cl_event *list, cl_event *event) {
  if (record.on) {
    record.kernel = kernel, record.queue = queue, record.dimensions = dimensions, record.launches++;
    memcpy(record.global, global, dimensions * sizeof *global);
    memcpy(record.local, local, dimensions * sizeof *local);
  }
  return real_enqueue(queue, kernel, dimensions, offset, global, local, waits, list, event);
}

static void find_real(void) {
  real_set = (set_fn)dlsym(RTLD_NEXT, "clSetKernelArg");
  real_enqueue = (enqueue_fn)dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");
  if (real_set && real_enqueue) return;
  fprintf(stderr, "opencl_add: no OpenCL library behind this program\n");
  exit(1);
}

/* --- the two loops --- */

typedef struct adding {
  graft_rt_device *device;
  graft_tensor *a, *b, *out;
} adding;

static void add(adding *s) {
  const graft_value args[] = {graft_value_tensor(s->a), graft_value_tensor(s->b)};
  must(graft_call(GRAFT_OP_ADD_TENSOR, args, 2, &s->out, 1));
}

static void setup(adding *s) {
  float values[16] = {1, 2, 3};
  int64_t size = 16;
  s->device = device_of("opencl");
  must(graft_tensor_from_host(s->device, GRAFT_F32, 1, &size, values, &s->a));
  must(graft_tensor_from_host(s->device, GRAFT_F32, 1, &size, values, &s->b));
  must(graft_tensor_empty(s->device, GRAFT_F32, 1, &size, &s->out));
}

/* Of all threads: what other programs on the machine take does not count. */
static double cpu_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double host_round(adding *s) {
  double start = now_s();
  for (int i = 0; i < CALLS; i++) add(s);
  must(graft_device_synchronize(s->device));
  return now_s() - start;
}

static double bare_round(void) {
  double start = now_s();
  for (int i = 0; i < CALLS; i++) {
    cl_int error = CL_SUCCESS;
    for (cl_uint k = 0; k < record.count && error == CL_SUCCESS; k++) {
      error = real_set(record.kernel, record.arguments[k].index, record.arguments[k].bytes, record.arguments[k].value);
    }
    if (error == CL_SUCCESS) {
      error = real_enqueue(record.queue, record.kernel, record.dimensions, NULL, record.global, record.local, 0, NULL,
                           NULL);
    }
    if (error != CL_SUCCESS) fprintf(stderr, "opencl_add: OpenCL error %d\n", error), exit(1);
  }
  if (clFinish(record.queue) != CL_SUCCESS) exit(1);
  return now_s() - start;
}

/* On the recorded queue. */
static cl_kernel nothing_kernel(void) {
  const char *source = "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void nothing(void) {}";
  cl_context context;
  cl_int error = clGetCommandQueueInfo(record.queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  cl_program program = error == CL_SUCCESS ? clCreateProgramWithSource(context, 1, &source, NULL, &error) : NULL;
  if (error == CL_SUCCESS) error = clBuildProgram(program, 0, NULL, NULL, NULL, NULL);
  cl_kernel kernel = error == CL_SUCCESS ? clCreateKernel(program, "nothing", &error) : NULL;
  if (error != CL_SUCCESS) fprintf(stderr, "opencl_add: the empty kernel: OpenCL error %d\n", error), exit(1);
  clReleaseProgram(program);
  return kernel;
}

static double empty_round(cl_kernel nothing) {
  const size_t one[3] = {1, 1, 1};
  double start = now_s();
  for (int i = 0; i < CALLS; i++) {
    if (real_enqueue(record.queue, nothing, 3, NULL, one, one, 0, NULL, NULL) != CL_SUCCESS) exit(1);
  }
  if (clFinish(record.queue) != CL_SUCCESS) exit(1);
  return now_s() - start;
}

static void say_calls(const char *what, double *seconds) {
  const double each = median_of(seconds, ROUNDS) / CALLS * 1e6; /* sorts them */
  printf("  %-22s %8.2f us a call, the least %.2f\n", what, each, seconds[0] / CALLS * 1e6);
}

static void loops(void) {
  adding s = {0};
  double host[ROUNDS], bare[ROUNDS], empty[ROUNDS], ratio[ROUNDS], work[ROUNDS];
  setup(&s);
  add(&s);
  record.on = 1;
  add(&s);
  record.on = 0;
  must(graft_device_synchronize(s.device));
  if (record.launches != 1) fprintf(stderr, "opencl_add: one add made %u launches\n", record.launches), exit(1);
  cl_kernel nothing = nothing_kernel();
  host_round(&s), bare_round(), empty_round(nothing);
  for (int i = 0; i < ROUNDS; i++) {
    double start = cpu_s();
    host[i] = host_round(&s);
    double middle = cpu_s();
    bare[i] = bare_round();
    ratio[i] = host[i] / bare[i];
    work[i] = (middle - start) / (cpu_s() - middle);
    empty[i] = empty_round(nothing);
  }
  clReleaseKernel(nothing);
  printf("10,000 adds of 16 elements, each of which gives %u arguments anew\n", record.count);
  say_calls("through the host", host);
  say_calls("the bare OpenCL loop", bare);
  say_calls("an empty kernel", empty);
  printf("  ratio                  %8.3f     (median of %d pairs; at most 1.15)\n", median_of(ratio, ROUNDS), ROUNDS);
  printf("  ratio of CPU time      %8.3f\n", median_of(work, ROUNDS));
}

/* --- a fresh process --- */

static graft_opencl_statistics statistics_of(const adding *s) {
  const graft_plugin *plugin = &s->device->backend->plugin;
  const void *table;
  graft_opencl_statistics statistics = {.struct_size = sizeof statistics};
  must(plugin->extension(plugin->self, GRAFT_OPENCL_STATISTICS, GRAFT_OPENCL_STATISTICS_VERSION, &table));
  must(((const graft_opencl_statistics_api *)table)->query(plugin->self, &statistics));
  return statistics;
}

/* PoCL keeps what it compiles, and the plugin then keeps nothing, unless it is asked to. */
static void keep_all(const adding *s) {
  const graft_plugin *plugin = &s->device->backend->plugin;
  const void *table;
  must(plugin->extension(plugin->self, GRAFT_OPENCL_PROGRAMS, GRAFT_OPENCL_PROGRAMS_VERSION, &table));
  ((const graft_opencl_programs_api *)table)->keep_all(plugin->self);
}

/* One line: programs built, loaded, ms spent on them, ms of the first add and of the second. */
static int ready(void) {
  adding s = {0};
  setup(&s);
  keep_all(&s);
  must(graft_device_synchronize(s.device));
  graft_opencl_statistics before = statistics_of(&s);
  double start = now_s();
  add(&s);
  must(graft_device_synchronize(s.device));
  double first = now_s() - start;
  start = now_s();
  add(&s);
  must(graft_device_synchronize(s.device));
  double second = now_s() - start;
  graft_opencl_statistics after = statistics_of(&s);
  printf("%llu %llu %.4f %.4f %.4f\n", (unsigned long long)(after.programs_built - before.programs_built),
         (unsigned long long)(after.programs_loaded - before.programs_loaded),
         (double)(after.build_nanoseconds - before.build_nanoseconds) * 1e-6, first * 1e3, second * 1e3);
  return 0;
}

typedef struct fresh {
  int built, loaded;
  double program_ms, first_ms, second_ms;
} fresh;

/* `kept`: PoCL's own cache stays from process to process; else each finds an empty one and has Graft's alone. */
static fresh run_fresh(const char *program, const char *folder, bool kept) {
  fresh f = {0};
  char command[4400];
  snprintf(command, sizeof command,
           "d='%s/pocl%s' && %s mkdir -p $d && GRAFT_CACHE_DIR='%s' POCL_CACHE_DIR=$d '%s' --ready", folder,
           kept ? "" : "_empty", kept ? "" : "rm -rf $d &&", folder, program);
  FILE *pipe = popen(command, "r");
  if (!pipe || fscanf(pipe, "%d %d %lf %lf %lf", &f.built, &f.loaded, &f.program_ms, &f.first_ms, &f.second_ms) != 5) {
    fprintf(stderr, "opencl_add: a fresh process failed\n");
    exit(1);
  }
  pclose(pipe);
  return f;
}

static void from_disk(const char *program, const char *folder, bool kept) {
  double load[FRESH], first[FRESH];
  for (int i = 0; i < FRESH; i++) {
    fresh f = run_fresh(program, folder, kept);
    if (f.loaded != 1 || f.built) fprintf(stderr, "opencl_add: the program did not come from the disk\n"), exit(1);
    load[i] = f.program_ms;
    first[i] = f.first_ms - f.second_ms;
  }
  printf("  from the disk cache, %-24s %8.2f ms, the whole first call %8.2f ms   (under 5)\n",
         kept ? "PoCL's own kept" : "PoCL's own emptied", median_of(load, FRESH), median_of(first, FRESH));
}

static void cache(const char *program) {
  char folder[] = "/tmp/graft_bench_XXXXXX", command[64];
  if (!mkdtemp(folder)) perror(folder), exit(1);
  fresh built = run_fresh(program, folder, true);
  printf("the kernel of add in a fresh process, medians of %d\n", FRESH);
  printf("  built from source %36.2f ms, the whole first call %8.2f ms\n", built.program_ms,
         built.first_ms - built.second_ms);
  from_disk(program, folder, true);
  from_disk(program, folder, false);
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command)) fprintf(stderr, "opencl_add: %s is left behind\n", folder);
}

int main(int argc, char **argv) {
  find_real();
  if (argc > 1 && !strcmp(argv[1], "--ready")) return ready();
  loops();
  cache(argv[0]);
  return 0;
}
