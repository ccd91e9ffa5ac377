/* Prepared kernels and memos: what makes a repeated call cheap. */
#include <stdlib.h>
#include <string.h>

#include "runtime/ocl.h"

static graft_status init_of_program(ocl_kernel *kernel, graft_device *device, ocl_program *program, const char *file,
                                    const char *entry) {
  cl_int error;
  kernel->program = program;
  kernel->entry = entry;
  kernel->of = ocl_program_handle(program);
  kernel->handle = clCreateKernel(kernel->of, entry, &error);
  if (error == CL_SUCCESS) {
    error = clGetKernelInfo(kernel->handle, CL_KERNEL_NUM_ARGS, sizeof kernel->parameters, &kernel->parameters, NULL);
  }
  if (error != CL_SUCCESS) {
    return ocl_fail(device->plugin, GRAFT_INTERNAL, "kernel %s of %s.cl: %s", entry, file, ocl_error_name(error));
  }
  kernel->device = device;
  for (int i = 0; i < 3; i++) { /* what the caller has not said */
    if (!kernel->global[i]) kernel->global[i] = 1;
    if (!kernel->local[i]) kernel->local[i] = 1;
  }
  pthread_mutex_init(&kernel->lock, NULL);
  return GRAFT_OK;
}

graft_status ocl_kernel_init(ocl_kernel *kernel, graft_device *device, const ocl_text *head, const char *file,
                             const char *entry) {
  ocl_program *program;
  graft_status status = head->failed ? GRAFT_OUT_OF_MEMORY : ocl_program_get(device, head->items, file, &program);
  return status == GRAFT_OK ? init_of_program(kernel, device, program, file, entry) : status;
}

graft_status ocl_kernel_init_whole(ocl_kernel *kernel, graft_device *device, const ocl_text *source, const char *name,
                                   const char *entry) {
  ocl_program *program;
  graft_status status =
      source->failed ? GRAFT_OUT_OF_MEMORY : ocl_program_get_whole(device, source->items, name, &program);
  return status == GRAFT_OK ? init_of_program(kernel, device, program, name, entry) : status;
}

/* Constants that a later handle is given, too: a handle gives none back. */
struct ocl_constants {
  cl_uint count;
  size_t bytes[OCL_ARGUMENTS_MAX];
  unsigned char values[];
};

static cl_int set_constants(cl_kernel handle, cl_uint first, cl_uint count, const ocl_argument *constants) {
  cl_int error = CL_SUCCESS;
  for (cl_uint i = 0; i < count && error == CL_SUCCESS; i++)
    error = clSetKernelArg(handle, first + i, constants[i].bytes, constants[i].value);
  return error;
}

/* Those that are given now stand in front of what was given before. */
static bool keep(ocl_kernel *kernel, cl_uint count, const ocl_argument *constants) {
  ocl_constants *before = kernel->constants;
  const cl_uint all = count + (before ? before->count : 0);
  size_t bytes = 0, at = 0, rest = 0;
  for (cl_uint i = 0; i < count; i++) bytes += constants[i].bytes;
  for (cl_uint i = count; i < all; i++) rest += before->bytes[i - count];
  ocl_constants *kept = all <= OCL_ARGUMENTS_MAX ? calloc(1, sizeof *kept + bytes + rest) : NULL;
  if (!kept) return false;
  kept->count = all;
  for (cl_uint i = 0; i < count; i++) {
    kept->bytes[i] = constants[i].bytes;
    memcpy(kept->values + at, constants[i].value, constants[i].bytes);
    at += constants[i].bytes;
  }
  for (cl_uint i = count; i < all; i++) kept->bytes[i] = before->bytes[i - count];
  if (rest) memcpy(kept->values + at, before->values, rest);
  free(before);
  kernel->constants = kept;
  return true;
}

graft_status ocl_kernel_set(ocl_kernel *kernel, cl_uint count, const ocl_argument *constants) {
  cl_int error = count <= kernel->parameters ? CL_SUCCESS : CL_INVALID_KERNEL_ARGS;
  if (error == CL_SUCCESS) {
    kernel->parameters -= count;
    error = set_constants(kernel->handle, kernel->parameters, count, constants);
  }
  if (error == CL_SUCCESS && kernel->device->optimizes_slowly && !keep(kernel, count, constants))
    return GRAFT_OUT_OF_MEMORY;
  if (error == CL_SUCCESS) return GRAFT_OK;
  return ocl_fail(kernel->device->plugin, GRAFT_INTERNAL, "constants of a kernel: %s", ocl_error_name(error));
}

void ocl_kernel_destroy(ocl_kernel *kernel) {
  if (!kernel->handle) return;
  free(kernel->constants);
  free(kernel->given);
  clReleaseKernel(kernel->handle);
  pthread_mutex_destroy(&kernel->lock);
}

/* The arguments of the last launch. A handle keeps them, and drivers take a while for each (PoCL allocates memory for a
 * copy of it): what comes again is not given again. */
typedef struct given_argument {
  size_t bytes;
  unsigned char *value;
  bool is_known, is_null;
} given_argument;

struct ocl_given {
  uint64_t releases;      /* of buffers on the device until then: a later one may get the handle of one that is gone */
  given_argument items[]; /* and their values behind them */
};

/* What the first launch gives of an argument tells how large it is, but of local memory, which has no value. */
static size_t bytes_of(const ocl_argument *argument) {
  return argument->value ? argument->bytes : sizeof(cl_mem);
}

/* NULL: no memory. */
static ocl_given *make_given(cl_uint count, const ocl_argument *arguments) {
  size_t bytes = 0;
  for (cl_uint i = 0; i < count; i++) bytes += bytes_of(&arguments[i]);
  ocl_given *made = calloc(1, sizeof *made + count * sizeof *made->items + bytes);
  if (!made) return NULL;
  unsigned char *value = (unsigned char *)(made->items + count);
  for (cl_uint i = 0; i < count; i++) {
    made->items[i] = (given_argument){.bytes = bytes_of(&arguments[i]), .value = value};
    value += made->items[i].bytes;
  }
  return made;
}

static ocl_given *given_of(ocl_kernel *kernel, cl_uint count, const ocl_argument *arguments) {
  ocl_given *given = kernel->given;
  if (!given) given = kernel->given = make_given(count, arguments);
  if (!given) return NULL;
  const uint64_t releases = atomic_load(&kernel->device->buffers_released);
  for (cl_uint i = 0; i < count && given->releases != releases; i++) given->items[i].is_known = false;
  given->releases = releases;
  return given;
}

static bool is_given(const given_argument *last, const ocl_argument *argument) {
  if (!last->is_known || last->bytes != argument->bytes || last->is_null != !argument->value) return false;
  return last->is_null || memcmp(last->value, argument->value, last->bytes) == 0;
}

static void note(given_argument *last, const ocl_argument *argument) {
  last->is_known = last->bytes == argument->bytes;
  last->is_null = !argument->value;
  if (last->is_known && argument->value) memcpy(last->value, argument->value, last->bytes);
}

static cl_int set_arguments(ocl_kernel *kernel, cl_uint count, const ocl_argument *arguments) {
  ocl_given *given = given_of(kernel, count, arguments);
  for (cl_uint i = 0; i < count; i++) {
    if (given && is_given(&given->items[i], &arguments[i])) continue;
    if (given) given->items[i].is_known = false;
    cl_int error = clSetKernelArg(kernel->handle, i, arguments[i].bytes, arguments[i].value);
    if (error != CL_SUCCESS) return error;
    if (given) note(&given->items[i], &arguments[i]);
  }
  return CL_SUCCESS;
}

static cl_int set_and_enqueue(ocl_kernel *kernel, graft_stream *stream, const size_t *global, cl_uint count,
                              const ocl_argument *arguments) {
  if (count != kernel->parameters) return CL_INVALID_KERNEL_ARGS;
  cl_int error = set_arguments(kernel, count, arguments);
  if (error != CL_SUCCESS) return error;
  cl_event event = NULL;
  const ocl_command command = ocl_command_begin(stream, GRAFT_RECORD_KERNEL, 0);
  error = clEnqueueNDRangeKernel(command.queue, kernel->handle, 3, NULL, global, kernel->local, 0, NULL,
                                 command.recorded ? &event : NULL);
  ocl_command_end(&command, event, kernel->handle);
  return error;
}

/* Where the program has become an optimized one, the handle becomes one of that. */
static cl_int renew(ocl_kernel *kernel) {
  cl_program now = ocl_program_handle(kernel->program);
  if (now == kernel->of) return CL_SUCCESS;
  cl_int error;
  cl_kernel handle = clCreateKernel(now, kernel->entry, &error);
  const ocl_constants *kept = kernel->constants;
  ocl_argument constants[OCL_ARGUMENTS_MAX];
  size_t at = 0;
  for (cl_uint i = 0; kept && i < kept->count; i++) {
    constants[i] = (ocl_argument){kept->bytes[i], kept->values + at};
    at += kept->bytes[i];
  }
  if (error == CL_SUCCESS && kept) error = set_constants(handle, kernel->parameters, kept->count, constants);
  if (error != CL_SUCCESS) {
    if (handle) clReleaseKernel(handle);
    return error;
  }
  clReleaseKernel(kernel->handle);
  kernel->handle = handle;
  kernel->of = now;
  free(kernel->given);
  kernel->given = NULL;
  return CL_SUCCESS;
}

static graft_status launch(ocl_kernel *kernel, graft_stream *stream, const size_t *global, cl_uint count,
                           const ocl_argument *arguments) {
  graft_status status = ocl_stream_check(stream);
  if (status == GRAFT_OK) status = ocl_program_launched(kernel->device, kernel->program);
  if (status != GRAFT_OK) return status;
  pthread_mutex_lock(&kernel->lock);
  cl_int error = renew(kernel);
  if (error == CL_SUCCESS) error = set_and_enqueue(kernel, stream, global, count, arguments);
  pthread_mutex_unlock(&kernel->lock);
  if (error != CL_SUCCESS) return ocl_stream_result(stream, error, "clEnqueueNDRangeKernel");
  ocl_faults_passed(stream, count, arguments);
  ocl_stream_submitted(stream);
  atomic_fetch_add_explicit(&kernel->device->plugin->counters.launches, 1, memory_order_relaxed);
  return GRAFT_OK;
}

graft_status ocl_launch(ocl_kernel *kernel, graft_stream *stream, cl_uint count, const ocl_argument *arguments) {
  return launch(kernel, stream, kernel->global, count, arguments);
}

graft_status ocl_launch_groups(ocl_kernel *kernel, graft_stream *stream, size_t groups, cl_uint count,
                               const ocl_argument *arguments) {
  const size_t global[3] = {groups * kernel->local[0], 1, 1};
  return launch(kernel, stream, global, count, arguments);
}

graft_status ocl_workspace(const graft_exec *exec, uint64_t bytes, ocl_place *place) {
  return exec->device->plugin->host->workspace(exec, bytes, 64, &place->buffer, &place->offset);
}

/* ---- Shared kernels ---- */

struct ocl_shared_kernel {
  ocl_shared_kernel *next;
  const ocl_program *program;
  const char *entry;
  ocl_kernel kernel;
};

static ocl_shared_kernel *find_shared(graft_device *device, const ocl_program *program, const char *entry) {
  ocl_shared_kernel *shared = device->shared_kernels;
  while (shared && (shared->program != program || strcmp(shared->entry, entry) != 0)) shared = shared->next;
  return shared;
}

static graft_status share(ocl_kernel **kernel, graft_device *device, ocl_program *program, const char *file,
                          const char *entry, size_t local) {
  graft_status status = GRAFT_OK;
  pthread_mutex_lock(&device->shared_lock);
  ocl_shared_kernel *shared = find_shared(device, program, entry);
  if (!shared && !(shared = calloc(1, sizeof *shared))) status = GRAFT_OUT_OF_MEMORY;
  if (status == GRAFT_OK && !shared->program) {
    status = init_of_program(&shared->kernel, device, program, file, entry);
    shared->program = program;
    shared->entry = entry;
    shared->kernel.local[0] = local;
    shared->next = device->shared_kernels;
    if (status == GRAFT_OK) {
      device->shared_kernels = shared;
    } else {
      ocl_kernel_destroy(&shared->kernel);
      free(shared);
    }
  }
  pthread_mutex_unlock(&device->shared_lock);
  if (status == GRAFT_OK) *kernel = &shared->kernel;
  return status;
}

graft_status ocl_kernel_shared(ocl_kernel **kernel, graft_device *device, const ocl_text *head, const char *file,
                               const char *entry, size_t local) {
  ocl_program *program;
  graft_status status = head->failed ? GRAFT_OUT_OF_MEMORY : ocl_program_get(device, head->items, file, &program);
  return status == GRAFT_OK ? share(kernel, device, program, file, entry, local) : status;
}

graft_status ocl_kernel_shared_whole(ocl_kernel **kernel, graft_device *device, const ocl_text *source,
                                     const char *name, const char *entry, size_t local) {
  ocl_program *program;
  graft_status status =
      source->failed ? GRAFT_OUT_OF_MEMORY : ocl_program_get_whole(device, source->items, name, &program);
  return status == GRAFT_OK ? share(kernel, device, program, name, entry, local) : status;
}

void ocl_kernels_close_all(graft_device *device) {
  while (device->shared_kernels) {
    ocl_shared_kernel *shared = device->shared_kernels;
    device->shared_kernels = shared->next;
    ocl_kernel_destroy(&shared->kernel);
    free(shared);
  }
}

/* ---- Memos ---- */

/* Stands in front of what the family sees. */
typedef struct memo_head {
  const ocl_memo_type *type;
  uint64_t reserved; /* what follows is aligned as malloc aligns */
} memo_head;

static void destroy_memo(void *memo) {
  memo_head *head = (memo_head *)memo - 1;
  ocl_kernel *kernels = memo;
  for (int i = 0; i < head->type->kernels; i++) ocl_kernel_destroy(&kernels[i]);
  if (head->type->release) head->type->release(memo);
  free(head);
}

static graft_status make_memo(const graft_exec *exec, const ocl_memo_type *type, const void *call, void **memo) {
  memo_head *head = calloc(1, sizeof *head + type->bytes);
  if (!head) return GRAFT_OUT_OF_MEMORY;
  head->type = type;
  graft_status status = type->prepare(head + 1, exec->device, call);
  if (status == GRAFT_OK) status = exec->device->plugin->host->memo_publish(exec, head + 1, destroy_memo, memo);
  if (status != GRAFT_OK) destroy_memo(head + 1);
  return status;
}

graft_status ocl_memo_get(const graft_exec *exec, const ocl_memo_type *type, const void *call, void *memo) {
  void *found = exec->memo;
  graft_status status = found ? GRAFT_OK : make_memo(exec, type, call, &found);
  if (status == GRAFT_OK) memcpy(memo, &found, sizeof found);
  return status;
}
