/* Prepared kernels, their arguments and launches, and the memos that keep them. */
#ifndef OCL_LAUNCH_H
#define OCL_LAUNCH_H

#include "runtime/geometry.h"
#include "runtime/memory.h"
#include "runtime/program.h"
#include "runtime/stream.h"
#include "runtime/text.h"

#define OCL_ARGUMENTS_MAX 24

typedef struct ocl_constants ocl_constants;
typedef struct ocl_given ocl_given;

/* A kernel with its constant arguments set, ready to launch. cl_kernel arguments are not thread-safe, and several
 * streams may share a memo: the lock spans setting the others and the launch. */
typedef struct ocl_kernel {
  graft_device *device;
  ocl_program *program;
  cl_kernel handle;
  const char *entry;
  cl_program of;            /* which of the program's the handle is of */
  cl_uint parameters;       /* those that a launch gives: all but the constants at the end */
  ocl_constants *constants; /* copies of these; NULL: none are kept */
  ocl_given *given;         /* what the last launch gave; NULL: nothing is known of it */
  pthread_mutex_t lock;
  size_t global[3], local[3];
} ocl_kernel;

typedef struct ocl_argument {
  size_t bytes;
  const void *value;
} ocl_argument;

/* Makes a kernel of the program for (head, file). The work size is filled in by the caller, who frees the head. */
graft_status ocl_kernel_init(ocl_kernel *kernel, graft_device *device, const ocl_text *head, const char *file,
                             const char *entry);
/* Of a source that has all of it; `name` is for reports. */
graft_status ocl_kernel_init_whole(ocl_kernel *kernel, graft_device *device, const ocl_text *source, const char *name,
                                   const char *entry);
/* The same for a head that serves this kernel alone: it is freed. */
static inline graft_status ocl_kernel_make(ocl_kernel *kernel, graft_device *device, ocl_text *head, const char *file,
                                           const char *entry) {
  graft_status status = ocl_kernel_init(kernel, device, head, file, entry);
  ocl_text_free(head);
  return status;
}
/* So many work-items, and as many more as fill the last work-group of `local`. */
static inline void ocl_kernel_size(ocl_kernel *kernel, int64_t items, size_t local) {
  kernel->local[0] = local;
  kernel->global[0] = (size_t)ocl_round_up(items, (int64_t)local);
}
/* Sets the last parameters for all launches; once. */
graft_status ocl_kernel_set(ocl_kernel *kernel, cl_uint count, const ocl_argument *constants);
void ocl_kernel_destroy(ocl_kernel *kernel);
/* Sets the parameters before the constants, and enqueues. */
graft_status ocl_launch(ocl_kernel *kernel, graft_stream *stream, cl_uint count, const ocl_argument *arguments);
/* Notes after a launch that a kernel which has the fault words may write them. Not before: another thread that waits
 * meanwhile would read them too early, and nobody again. */
void ocl_faults_passed(graft_stream *stream, cl_uint count, const ocl_argument *arguments);

/* As ocl_launch with a work size of this launch: so many work-groups. */
graft_status ocl_launch_groups(ocl_kernel *kernel, graft_stream *stream, size_t groups, cl_uint count,
                               const ocl_argument *arguments);

/* The one kernel of the program for (head, file), for memos that have no constant arguments; the device keeps it. */
graft_status ocl_kernel_shared(ocl_kernel **kernel, graft_device *device, const ocl_text *head, const char *file,
                               const char *entry, size_t local);
/* Likewise of a source that has all of it. */
graft_status ocl_kernel_shared_whole(ocl_kernel **kernel, graft_device *device, const ocl_text *source,
                                     const char *name, const char *entry, size_t local);
void ocl_kernels_close_all(graft_device *device);

/* An array of arguments, and before it how many they are. */
#define OCL_ALL(arguments) (cl_uint)(sizeof(arguments) / sizeof *(arguments)), arguments
/* A tensor is two arguments: its buffer and its byte offset, 64 bits wide. */
#define OCL_TENSOR(desc)                        \
  {sizeof(cl_mem), &(desc)->dl.data->handle}, { \
    sizeof(uint64_t), &(desc)->dl.byte_offset   \
  }
#define OCL_VALUE(variable) \
  { sizeof(variable), &(variable) }
#define OCL_BUFFER(buffer) \
  { sizeof(cl_mem), ocl_handle_of(buffer) }
#define OCL_PLACE(place) OCL_BUFFER((place).buffer), OCL_VALUE((place).offset)
/* NULL is a buffer that is not there, which the kernel does not look at. */
static inline const cl_mem *ocl_handle_of(const graft_buffer *buffer) {
  return buffer ? &buffer->handle : NULL;
}

/* Where a kernel argument lies. */
typedef struct ocl_place {
  graft_buffer *buffer;
  uint64_t offset;
} ocl_place;

/* An absent tensor has no buffer. */
static inline ocl_place ocl_place_of(const graft_tensor_desc *desc) {
  return desc ? (ocl_place){desc->dl.data, desc->dl.byte_offset} : (ocl_place){NULL, 0};
}

/* Memory of this call's own, until its kernels are done. */
graft_status ocl_workspace(const graft_exec *exec, uint64_t bytes, ocl_place *place);

/* What a family keeps with a call that may come again. */
typedef struct ocl_memo_type {
  size_t bytes; /* of a struct that begins with `kernels` ocl_kernels */
  int kernels;
  /* Fills a zeroed one from what is in the memo's key: dtypes, shapes, strides and arguments, but no
   * host values, nor floats and Scalars where the row says GRAFT_CAP_MEMO_IGNORES_SCALARS. */
  graft_status (*prepare)(void *memo, graft_device *device, const void *call);
  void (*release)(void *memo); /* what it holds beside kernels, or NULL */
} ocl_memo_type;

/* The memo of this call; *memo, a pointer to the family's struct, is set to it. A call without one gets one made. */
graft_status ocl_memo_get(const graft_exec *exec, const ocl_memo_type *type, const void *call, void *memo);

#endif
