/* Programs: kernel source to cl_program, once a device. In front of each stands a head that says what the case at hand
 * is (types, rank, widths), and the helpers every kernel uses. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/ocl.h"

typedef enum state { BUILDING, READY, FAILED } state;

struct ocl_program {
  ocl_program *next;
  ocl_key key;
  state state;
  cl_program handle;
  /* Of one that is not optimized: what it is made of, until `optimized` is there. */
  struct recipe *kept;
  _Atomic(cl_program) optimized;
  atomic_uint launches;
};

/* A small call is some ten microseconds slower where its program is not optimized; after so many launches that comes to
 * what optimizing takes. */
enum { LAUNCHES_UNOPTIMIZED = 1024 };

static _Thread_local bool for_small_calls;

void ocl_program_for_small_calls(bool small) {
  for_small_calls = small;
}

cl_program ocl_program_handle(const ocl_program *program) {
  cl_program optimized = atomic_load(&program->optimized);
  return optimized ? optimized : program->handle;
}

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static graft_status report_build(graft_device *device, cl_program handle, cl_int error, const char *file) {
  char log[OCL_TEXT_CAPACITY - 128] = "";
  clGetProgramBuildInfo(handle, device->id, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
  /* A compiler that refuses a source says where; of a file that it can't write PoCL says nothing. */
  const char *unsaid = strstr(log, "error") ? "" : "; no error is named: if this is PoCL, " OCL_POCL_FOLDER;
  return ocl_fail(device->plugin, GRAFT_INTERNAL, "%s.cl does not compile: %s%s\n%s", file, ocl_error_name(error),
                  unsaid, log);
}

/* The binary of a built program, to be freed; NULL: there is none. NVIDIA's is PTX, which ends with a zero. */
static unsigned char *binary_of(cl_program handle, size_t *bytes) {
  unsigned char *binary = NULL;
  *bytes = 0;
  if (clGetProgramInfo(handle, CL_PROGRAM_BINARY_SIZES, sizeof *bytes, bytes, NULL) != CL_SUCCESS || *bytes == 0 ||
      !(binary = calloc(1, *bytes + 1)))
    return NULL;
  if (clGetProgramInfo(handle, CL_PROGRAM_BINARIES, sizeof binary, &binary, NULL) == CL_SUCCESS) return binary;
  free(binary);
  return NULL;
}

/* Every kernel here has its work-group size fixed, so PoCL finishes all of them for the binary. Taken before any
 * launch: PoCL 3.1 fails an assertion when one kernel is finished for a binary and for a launch at the same time. */
static void save(graft_device *device, const ocl_program *program) {
  size_t bytes;
  if (atomic_load(&device->disk_unusable)) return;
  unsigned char *binary = binary_of(program->handle, &bytes);
  if (binary) ocl_disk_save(device, program->key, binary, bytes);
  free(binary);
}

typedef struct recipe {
  const char *options, *source, *file;
  size_t head_length; /* of the source; common.cl and the kernels' files follow */
  bool unoptimized;   /* beside what the options say */
} recipe;

/* The parts of a program's text. OpenCL takes a length of 0 to mean that a zero ends the part: an empty one is left
 * out. */
typedef struct {
  const char *texts[3];
  size_t lengths[3];
  cl_uint count;
} parts;

static void add_part(parts *to, const char *text, size_t length) {
  if (length == 0) return;
  to->texts[to->count] = text;
  to->lengths[to->count++] = length;
}

/* `declarations` come after the head, and the driver's own header is left out: a macro makes believe that it has been
 * read. An empty text leaves things as the driver has them. */
static cl_int build(graft_device *device, ocl_program *program, const recipe *recipe, const char *declarations) {
  const char *rest = recipe->source + recipe->head_length;
  parts parts = {.count = 0};
  add_part(&parts, recipe->source, recipe->head_length);
  add_part(&parts, declarations, strlen(declarations));
  add_part(&parts, rest, strlen(rest));
  char options[160];
  snprintf(options, sizeof options, "%s%s%s", recipe->options, recipe->unoptimized ? " -cl-opt-disable" : "",
           *declarations ? " -D_OPENCL_H_" : "");
  cl_int error;
  program->handle = clCreateProgramWithSource(device->context, parts.count, parts.texts, parts.lengths, &error);
  return error == CL_SUCCESS ? clBuildProgram(program->handle, 1, &device->id, options, NULL, NULL) : error;
}

/* True if it was built. Nothing is said if not: built with the driver's header, it tells whose fault it is. */
static bool build_declared(graft_device *device, ocl_program *program, const recipe *recipe) {
  if (!device->long_header || atomic_load(&device->keeps_header)) return false;
  if (build(device, program, recipe, ocl_kernel_source("core/declarations")) == CL_SUCCESS) return true;
  if (program->handle) clReleaseProgram(program->handle);
  return false; /* the next build puts its own there */
}

/* Whether programs are written to the cache directory. */
static bool keeps(const graft_device *device) {
  return !device->keeps_programs || atomic_load(&device->plugin->keeps_all);
}

/* Whoever waits is told why: once, when compiling has taken a second in all, and only if it is not to be again. */
static void tell(graft_device *device, const recipe *recipe, uint64_t nanoseconds) {
  const uint64_t second = 1000000000u;
  ocl_plugin *plugin = device->plugin;
  char folder[PATH_MAX];
  ocl_log(plugin, GRAFT_LOG_DEBUG, "compiled %s.cl in %.3f s, after: %.*s", recipe->file, (double)nanoseconds * 1e-9,
          (int)recipe->head_length, recipe->source);
  uint64_t before = atomic_fetch_add(&plugin->compile_nanoseconds, nanoseconds);
  if (before >= second || before + nanoseconds < second) return;
  if (!keeps(device)) {
    ocl_log(plugin, GRAFT_LOG_WARNING, "compiling kernels for this device; its driver keeps them");
  } else if (ocl_disk_folder(device, folder, sizeof folder)) {
    ocl_log(plugin, GRAFT_LOG_WARNING, "compiling kernels for this device; they are kept in %s", folder);
  }
}

static cl_int build_binary(graft_device *device, ocl_program *program, const void *binary, size_t bytes,
                           const char *options) {
  const unsigned char *bits = binary;
  cl_int status = CL_SUCCESS, error;
  program->handle = clCreateProgramWithBinary(device->context, 1, &device->id, &bytes, &bits, &status, &error);
  if (error == CL_SUCCESS) error = status;
  return error == CL_SUCCESS ? clBuildProgram(program->handle, 1, &device->id, options, NULL, NULL) : error;
}

/* A program with marked lines of PTX becomes the one that has them. */
static cl_int uncover(graft_device *device, ocl_program *program, const char *options) {
  size_t bytes;
  unsigned char *ptx = binary_of(program->handle, &bytes);
  char *whole = ptx ? ocl_ptx_uncover((const char *)ptx) : NULL;
  cl_int error = CL_OUT_OF_HOST_MEMORY;
  if (whole) {
    clReleaseProgram(program->handle);
    error = build_binary(device, program, whole, strlen(whole), options);
  }
  free(ptx);
  free(whole);
  return error;
}

static graft_status build_and_keep(graft_device *device, ocl_program *program, const recipe *recipe) {
  uint64_t begin = now_ns();
  ocl_counters *counters = &device->plugin->counters;
  if (!build_declared(device, program, recipe)) {
    cl_int error = build(device, program, recipe, "");
    if (error != CL_SUCCESS) return report_build(device, program->handle, error, recipe->file);
    /* The first program shows whether the driver can do without; later ones may just call what is not declared. */
    if (atomic_load(&counters->programs_built) == 0) atomic_store(&device->keeps_header, true);
    if (device->long_header) atomic_fetch_add(&counters->programs_with_header, 1);
  }
  if (strstr(recipe->source, OCL_PTX_MARK)) {
    cl_int error = uncover(device, program, recipe->options);
    if (error != CL_SUCCESS) return report_build(device, program->handle, error, recipe->file);
  }
  atomic_fetch_add(&counters->programs_built, 1);
  tell(device, recipe, now_ns() - begin);
  if (keeps(device)) save(device, program);
  return GRAFT_OK;
}

static graft_status compile(graft_device *device, ocl_program *program, const recipe *recipe) {
  ocl_exit_build_begins(device);
  graft_status status = build_and_keep(device, program, recipe);
  ocl_exit_build_ends(device);
  return status;
}

/* A binary that the driver refuses is as good as none. */
static bool load(graft_device *device, ocl_program *program, const char *options) {
  size_t bytes;
  void *binary = ocl_disk_load(device, program->key, &bytes);
  if (!binary) return false;
  cl_int error = build_binary(device, program, binary, bytes, options);
  free(binary);
  if (error == CL_SUCCESS) {
    atomic_fetch_add(&device->plugin->counters.programs_loaded, 1);
    return true;
  }
  if (program->handle) clReleaseProgram(program->handle);
  return false; /* the next build puts its own there */
}

/* Where the program of this key hangs or, NULL, is to hang. */
static ocl_program **find(graft_device *device, ocl_key key) {
  ocl_program **at = &device->programs[key.low % OCL_PROGRAM_LISTS];
  while (*at && ((*at)->key.low != key.low || (*at)->key.high != key.high)) at = &(*at)->next;
  return at;
}

/* Returns the program of this key, with *mine true if the caller is the one to build it. */
static ocl_program *claim(graft_device *device, ocl_key key, bool *mine) {
  pthread_mutex_lock(&device->program_lock);
  ocl_program **at = find(device, key), *program = *at;
  *mine = !program;
  if (*mine && (program = calloc(1, sizeof *program))) {
    program->key = key;
    *at = program;
  }
  while (!*mine && program->state == BUILDING) pthread_cond_wait(&device->program_ready, &device->program_lock);
  pthread_mutex_unlock(&device->program_lock);
  return program;
}

static void finish(graft_device *device, ocl_program *program, state state) {
  pthread_mutex_lock(&device->program_lock);
  program->state = state;
  pthread_cond_broadcast(&device->program_ready);
  pthread_mutex_unlock(&device->program_lock);
}

static void device_text(const graft_device *device, char *text, size_t capacity) {
  char name[256] = "", driver[256] = "", version[256] = "";
  clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
  clGetDeviceInfo(device->id, CL_DRIVER_VERSION, sizeof driver - 1, driver, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
  snprintf(text, capacity, "%s|%s|%s", name, driver, version);
}

void ocl_program_add_files(ocl_text *source, const char *files) {
  while (*files) {
    char name[64];
    size_t length = strcspn(files, " ");
    snprintf(name, sizeof name, "%.*s", (int)length, files);
    ocl_text_append(source, ocl_kernel_source(name));
    files += length + strspn(files + length, " ");
  }
}

/* What the device is, in front of everything. */
static void add_device(ocl_text *source, const graft_device *device) {
  ocl_text_add(source, "%s%s%s%s%s%s", device->has_f64 ? "#define HAS_F64\n" : "",
               device->is_cpu ? "#define IS_CPU\n" : "", device->plugin->portable ? "#define PORTABLE\n" : "",
               device->host_memory && !device->is_cpu ? "#define GPU_KERNELS_ON_CPU\n" : "",
               ocl_converts_bf16(device) ? "#define CONVERTS_BF16\n" : "",
               ocl_has_quick_functions(device) ? "#define QUICK_FUNCTIONS\n" : "");
}

/* ---- Programs that are not optimized yet ---- */

static void free_recipe(recipe *recipe) {
  if (!recipe) return;
  free((char *)recipe->options);
  free((char *)recipe->source);
  free((char *)recipe->file);
  free(recipe);
}

/* NULL: no memory, and it stays as it is. */
static recipe *copy_recipe(const recipe *from) {
  recipe *copy = calloc(1, sizeof *copy);
  if (!copy) return NULL;
  copy->options = strdup(from->options);
  copy->source = strdup(from->source);
  copy->file = strdup(from->file);
  copy->head_length = from->head_length;
  if (copy->options && copy->source && copy->file) return copy;
  free_recipe(copy);
  return NULL;
}

/* Programs that are compiled to be kept are optimized. */
static bool may_wait(const graft_device *device) {
  const ocl_plugin *plugin = device->plugin;
  return for_small_calls && device->optimizes_slowly && !keeps(device) && !plugin->unoptimized &&
         !plugin->always_optimized;
}

/* Once; kernels take it at their next launch. */
static graft_status optimize(graft_device *device, ocl_program *program) {
  ocl_program made = {.key = program->key};
  pthread_mutex_lock(&device->program_lock);
  recipe *kept = program->kept;
  program->kept = NULL;
  pthread_mutex_unlock(&device->program_lock);
  if (!kept) return GRAFT_OK; /* another thread does it */
  graft_status status = compile(device, &made, kept);
  free_recipe(kept);
  if (status == GRAFT_OK) atomic_store(&program->optimized, made.handle);
  return status;
}

static bool is_kept(graft_device *device, ocl_program *program) {
  pthread_mutex_lock(&device->program_lock);
  bool kept = program->kept;
  pthread_mutex_unlock(&device->program_lock);
  return kept;
}

graft_status ocl_program_launched(graft_device *device, ocl_program *program) {
  if (!device->optimizes_slowly ||
      atomic_fetch_add_explicit(&program->launches, 1, memory_order_relaxed) + 1 != LAUNCHES_UNOPTIMIZED) {
    return GRAFT_OK;
  }
  return is_kept(device, program) ? optimize(device, program) : GRAFT_OK;
}

static graft_status make(graft_device *device, ocl_program *program, recipe *recipe) {
  if (load(device, program, recipe->options)) return GRAFT_OK;
  recipe->unoptimized = may_wait(device);
  graft_status status = compile(device, program, recipe);
  if (status == GRAFT_OK && recipe->unoptimized) program->kept = copy_recipe(recipe);
  return status;
}

static graft_status get(graft_device *device, const ocl_text *source, size_t head_length, const char *file,
                        ocl_program **out) {
  /* No fast or relaxed mathematics, here or later: the conformance limits are those of the full profile. */
  char options[128], name[800];
  snprintf(options, sizeof options, "-w -cl-std=CL1.2%s%s",
           device->exact_division ? " -cl-fp32-correctly-rounded-divide-sqrt" : "",
           device->plugin->unoptimized ? " -cl-opt-disable" : "");
  device_text(device, name, sizeof name);
  if (source->failed) return GRAFT_OUT_OF_MEMORY;
  bool mine;
  ocl_program *program = claim(device, ocl_key_of(source->items, options, name), &mine);
  graft_status status = program ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  if (program && mine) {
    uint64_t begin = now_ns();
    recipe recipe = {.options = options, .source = source->items, .file = file, .head_length = head_length};
    status = make(device, program, &recipe);
    atomic_fetch_add(&device->plugin->counters.build_nanoseconds, now_ns() - begin);
    finish(device, program, status == GRAFT_OK ? READY : FAILED);
  } else if (program && program->state == FAILED) {
    status = ocl_fail(device->plugin, GRAFT_INTERNAL, "%s.cl did not compile when it was first needed", file);
  } else if (program && !for_small_calls && device->optimizes_slowly && is_kept(device, program)) {
    status = optimize(device, program); /* small calls came first */
  }
  if (status == GRAFT_OK) *out = program;
  return status;
}

graft_status ocl_program_get(graft_device *device, const char *head, const char *file, ocl_program **out) {
  ocl_text source = {0};
  add_device(&source, device);
  ocl_text_append(&source, head);
  size_t head_length = source.length;
  ocl_text_append(&source, ocl_kernel_source("core/common"));
  ocl_program_add_files(&source, file);
  graft_status status = get(device, &source, head_length, file, out);
  ocl_text_free(&source);
  return status;
}

graft_status ocl_program_get_whole(graft_device *device, const char *text, const char *name, ocl_program **out) {
  ocl_text source = {0};
  add_device(&source, device);
  size_t head_length = source.length;
  ocl_text_append(&source, text);
  graft_status status = get(device, &source, head_length, name, out);
  ocl_text_free(&source);
  return status;
}

static void close_list(ocl_program *program) {
  while (program) {
    ocl_program *next = program->next;
    if (program->handle) clReleaseProgram(program->handle);
    if (program->optimized) clReleaseProgram(program->optimized);
    free_recipe(program->kept);
    free(program);
    program = next;
  }
}

void ocl_program_close_all(graft_device *device) {
  for (int list = 0; list < OCL_PROGRAM_LISTS; list++) {
    close_list(device->programs[list]);
    device->programs[list] = NULL;
  }
}
