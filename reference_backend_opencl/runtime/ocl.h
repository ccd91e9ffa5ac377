/* The OpenCL reference backend, from the inside. Begin reading here.
 *
 *   plugin.c   the table the host sees          program.c  kernel sources to cl_program, kept in memory
 *   select.c   which OpenCL devices are meant   disk.c     ... and on disk
 *   device.c   opening one, its properties      launch.c   a prepared kernel, its arguments, its launch
 *   memory.c   buffers and copies               ops.c      which op lies in which slot, and what it says of itself
 *   stream.c   queues, events, failures         table.c    small tables that kernels read
 *   fault.c    failures that kernels find       kernels/   the ops, a folder a family; core/ is what families share
 *
 * An op, on its first call with some dtypes and shapes, generates the source of one kernel for just that case, and
 * hangs the prepared kernel on the call's memo. Every later call sets the buffers and launches. */
#ifndef OCL_H
#define OCL_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "graft/abi/plugin.h"
#include "graft_opencl.h"
#include "runtime/op.h"

#define OCL_TEXT_CAPACITY 1024

/* ---- The instance ---- */

/* One OpenCL device that the selection lets through. */
typedef struct ocl_candidate {
  cl_platform_id platform;
  cl_device_id id;
} ocl_candidate;

typedef struct ocl_counters {
  atomic_uint_fast64_t programs_built, programs_loaded, build_nanoseconds, launches;
} ocl_counters;

struct ocl_plugin {
  graft_plugin api; /* what the host holds; api.self is this struct */
  const graft_host *host;
  ocl_registry *registry;
  ocl_counters counters;
  char *selection;               /* the user's choice of device, or NULL */
  bool cpu_kernels, gpu_kernels; /* the user's choice of kernels, whatever the device is */

  pthread_mutex_t lock; /* guards what follows, filled at the first question about devices */
  bool probed;
  graft_status probe_status;
  char *probe_error;
  ocl_candidate *candidates;
  int32_t count;
};

/* Finds the devices once (select.c). Later calls repeat the first answer, its error text included. */
graft_status ocl_probe(ocl_plugin *plugin);

/* ---- Devices ---- */

typedef struct ocl_program ocl_program;
typedef struct ocl_shared_kernel ocl_shared_kernel;
typedef struct ocl_tables ocl_tables;

struct graft_device {
  ocl_plugin *plugin;
  cl_device_id id;
  cl_context context;
  cl_command_queue map_queue; /* maps pinned memory; never carries work */
  int32_t index;
  bool is_cpu; /* long pieces of work for a few cores; else a work-item for each few elements */
  bool has_f64, exact_division;
  cl_uint vector_width; /* f32 lanes worth naming in a kernel: 4, 8 or 16 */
  cl_uint compute_units;
  cl_ulong max_allocation;
  size_t parameter_bytes; /* the most that the arguments of a kernel may have together */

  pthread_mutex_t program_lock; /* guards `programs` and the state of each */
  pthread_cond_t program_ready;
  ocl_program *programs;
  atomic_bool disk_unusable; /* said once, then no more tries */

  pthread_mutex_t shared_lock; /* guards `shared_kernels` */
  ocl_shared_kernel *shared_kernels;
  ocl_tables *tables;
};

graft_status ocl_device_count(void *self, int32_t *count);
graft_status ocl_device_query(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                              size_t *size);
graft_status ocl_device_open(void *self, int32_t index, graft_device **device);
graft_status ocl_device_close(graft_device *device);

/* ---- Memory, streams ---- */

struct graft_buffer {
  cl_mem handle;
  uint64_t bytes;
  void *mapped; /* pinned memory: where the host sees it */
};

/* What the kernels of one stream found wrong: the id of the op (0: nothing), the index, and the size that it should lie
 * below (0: a division by zero; -1: the index is a row of weights that are no distribution). Shared by the stream and
 * the events recorded on it. */
typedef struct ocl_faults {
  atomic_int references;
  cl_mem words;
  int64_t seen[3]; /* the words as they were last read back */
} ocl_faults;

struct graft_stream {
  graft_device *device;
  cl_command_queue queue;
  bool timing;
  atomic_int failure;      /* the cl error that sticks, CL_SUCCESS while there is none */
  const char *failed_call; /* which call it came from; written once, before `failure` */
  pthread_mutex_t failure_lock;
  _Atomic(ocl_faults *) faults; /* NULL until a kernel that may report is launched */
  atomic_bool faults_unread;
  atomic_uint_fast64_t submitted,
      finished;                  /* commands, counted once they are in the queue: equal when all are known done */
  pthread_mutex_t progress_lock; /* guards the two below, which answer query */
  cl_event progress;             /* the last marker put for it, NULL at first */
  uint64_t progress_reach;       /* `submitted` when it was */
};

struct graft_event {
  graft_event_flags flags;
  pthread_mutex_t lock; /* guards the two below: recording and asking may meet */
  cl_event latest;
  bool timed;
  ocl_faults *faults; /* of the stream it was recorded on */
};

extern const graft_memory_api ocl_memory_api;
extern const graft_stream_api ocl_stream_api;

/* Turns what `call` returned on a stream into a status. What only this command lacked (memory) is a plain failure; what
 * says that the queue or the device is broken sticks to the stream. */
graft_status ocl_stream_result(graft_stream *stream, cl_int error, const char *call);
/* Counts a submitted command; ocl_stream_result does so, too. */
void ocl_stream_submitted(graft_stream *stream);
/* OK, or the status of the fault that sticks. First thing in every call that submits. */
graft_status ocl_stream_check(graft_stream *stream);

/* The words for a kernel that may REPORT (common.cl) and is about to be launched. */
graft_status ocl_stream_faults(graft_stream *stream, cl_mem *words);
/* What stream.c does with them. */
cl_int ocl_faults_read(graft_stream *stream);
bool ocl_faults_seen(const ocl_faults *faults);
void ocl_fault_text(const ocl_faults *faults, char *text, size_t capacity);
ocl_faults *ocl_faults_retain(ocl_faults *faults);
void ocl_faults_release(ocl_faults *faults);

/* ---- Errors ---- */

/* "CL_OUT_OF_RESOURCES" and so on; "unknown OpenCL error" for what OpenCL 1.2 does not name. */
const char *ocl_error_name(cl_int error);
/* Sets the host's error text as printf does, and returns `status`. */
graft_status ocl_fail(const ocl_plugin *plugin, graft_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void ocl_log(const ocl_plugin *plugin, graft_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Text under construction ---- */

/* A growing string. A failed allocation makes `items` NULL for good, so that only the end need be checked. */
typedef struct ocl_text {
  char *items;
  size_t length, capacity;
  bool failed;
} ocl_text;

void ocl_text_add(ocl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ocl_text_free(ocl_text *text);

/* The word of the list (NULL at its end) that is most like the first `length` letters of `word`; NULL: none is. */
const char *ocl_nearest(const char *word, size_t length, const char *const *words);

/* ---- Programs ---- */

/* The kernel sources, embedded at build time from kernels/<name>.cl; NULL where there is no such file. */
const char *ocl_kernel_source(const char *name);

/* The program for `head` (the #defines of the case at hand) followed by the named .cl file, or files with spaces
 * between. Shared, kept until the device is closed. Two threads that ask for the same one wait for one build. */
graft_status ocl_program_get(graft_device *device, const char *head, const char *file, ocl_program **program);
cl_program ocl_program_handle(const ocl_program *program);
void ocl_program_close_all(graft_device *device);

/* A 128-bit name for a program, and the folder of compiled ones (disk.c). */
typedef struct ocl_key {
  uint64_t low, high;
} ocl_key;
ocl_key ocl_key_of(const char *source, const char *options, const char *device);
/* Returns the binary, to be freed, or NULL: not there, cut, or not what was written. */
void *ocl_disk_load(graft_device *device, ocl_key key, size_t *bytes);
void ocl_disk_save(graft_device *device, ocl_key key, const void *binary, size_t bytes);

/* ---- Prepared kernels ---- */

#define OCL_ARGUMENTS_MAX 24

/* A kernel with its constant arguments set, ready to launch. cl_kernel arguments are not thread-safe, and several
 * streams may share a memo: the lock spans setting the others and the launch. */
typedef struct ocl_kernel {
  graft_device *device;
  ocl_program *program;
  cl_kernel handle;
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
/* Sets one argument for all launches. */
graft_status ocl_kernel_constant(ocl_kernel *kernel, cl_uint index, size_t bytes, const void *value);
void ocl_kernel_destroy(ocl_kernel *kernel);
/* Sets arguments 0 .. count-1 and enqueues. */
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
void ocl_kernels_close_all(graft_device *device);

/* A tensor is two arguments: its buffer and its byte offset, 64 bits wide. */
#define OCL_TENSOR(desc)                        \
  {sizeof(cl_mem), &(desc)->dl.data->handle}, { \
    sizeof(uint64_t), &(desc)->dl.byte_offset   \
  }
#define OCL_VALUE(variable) \
  { sizeof(variable), &(variable) }
#define OCL_BUFFER(buffer) \
  { sizeof(cl_mem), &(buffer)->handle }
#define OCL_PLACE(place) OCL_BUFFER((place).buffer), OCL_VALUE((place).offset)

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
  /* Fills a zeroed one from what is in the memo's key: dtypes, shapes, strides, and arguments but numbers. */
  graft_status (*prepare)(void *memo, graft_device *device, const void *call);
  void (*release)(void *memo); /* what it holds beside kernels, or NULL */
} ocl_memo_type;

/* The memo of this call; *memo, a pointer to the family's struct, is set to it. A call without one gets one made. */
graft_status ocl_memo_get(const graft_exec *exec, const ocl_memo_type *type, const void *call, void *memo);

/* ---- Tables ---- */

ocl_tables *ocl_tables_new(void);
void ocl_tables_free(ocl_tables *tables);
/* A read-only buffer with this content. The caller releases it once the kernel that reads it is enqueued. */
graft_status ocl_table_get(graft_device *device, const void *content, size_t bytes, cl_mem *buffer);
/* The same for content that is large, or takes time to make: `key` says which it is, and make(of) is asked for it where
 * the device has it no more. */
typedef graft_status (*ocl_table_make)(const void *of, void **content, size_t *bytes); /* malloc'ed */
graft_status ocl_table_made(graft_device *device, const void *key, size_t key_bytes, ocl_table_make make,
                            const void *of, cl_mem *buffer);

/* ---- Dtypes ---- */

/* How values are computed with. Half types and f32 share F32. */
typedef enum ocl_class { OCL_CLASS_NONE, OCL_CLASS_BOOL, OCL_CLASS_INT, OCL_CLASS_FLOAT, OCL_CLASS_COMPLEX } ocl_class;

typedef struct ocl_dtype {
  graft_dtype code;
  uint32_t number; /* GRAFT_NUMBER_* */
  uint32_t bytes;
  ocl_class class;
  const char *name;    /* as in LOAD_<name> of dtype.cl */
  const char *compute; /* the OpenCL type that arithmetic on it uses */
  bool needs_f64;
} ocl_dtype;

/* NULL for a dtype this backend does not know, or that the device can't serve. */
const ocl_dtype *ocl_dtype_of(const graft_device *device, graft_dtype code);

/* Writes what common.cl asks of the head for this compute type. */
void ocl_head_types(ocl_text *head, const ocl_dtype *dtype, unsigned vec, size_t local);

/* A number from the host, and as a kernel argument of some dtype's compute type. */
typedef struct ocl_number {
  bool is_int;
  int64_t i;
  double re, im;
} ocl_number;

typedef union ocl_value {
  float f[2];
  double d[2];
  int64_t i64;
} ocl_value;

void ocl_number_of_scalar(const graft_scalar *scalar, ocl_number *number);
bool ocl_number_of_tensor(const graft_tensor_desc *desc, ocl_number *number); /* a GRAFT_TENSOR_HOST_VALUE */
size_t ocl_number_as(const ocl_number *number, const ocl_dtype *dtype, ocl_value *value); /* returns its bytes */
/* The number as an element of a dtype in memory. */
void ocl_number_store(const ocl_number *number, const ocl_dtype *dtype, void *element);
/* To the nearest f16 or bf16; other dtypes leave it as it is. */
float ocl_round_to(graft_dtype dtype, float value);

#define OCL_BIT(number) GRAFT_DTYPE_BIT(GRAFT_NUMBER_##number)
#define OCL_HALVES      (OCL_BIT(F16) | OCL_BIT(BF16))
#define OCL_FLOATS      (OCL_HALVES | OCL_BIT(F32) | OCL_BIT(F64))
#define OCL_INTS \
  (OCL_BIT(U8) | OCL_BIT(I8) | OCL_BIT(I16) | OCL_BIT(I32) | OCL_BIT(I64) | OCL_BIT(U16) | OCL_BIT(U32) | OCL_BIT(U64))
#define OCL_BOOLS   OCL_BIT(BOOL)
#define OCL_COMPLEX (OCL_BIT(C64) | OCL_BIT(C128))

/* ---- Geometry ---- */

#define OCL_DIMS_MAX     12
#define OCL_OPERANDS_MAX 8

/* The product of the sizes. */
int64_t ocl_elements(const graft_tensor_desc *desc);
/* Whether its elements are one run of memory, in logical order. */
bool ocl_is_dense(const graft_dl_tensor *tensor);

/* The index space of a kernel: dimension 0 is the innermost. Strides count elements; operand 0 is the output. */
typedef struct ocl_geometry {
  int rank; /* at least 1 */
  int operands;
  int64_t size[OCL_DIMS_MAX];
  int64_t stride[OCL_OPERANDS_MAX][OCL_DIMS_MAX];
} ocl_geometry;

/* Adds a dimension inside the existing ones. Size 1 is left out. */
void ocl_geometry_push_outer(ocl_geometry *geometry, int64_t size, const int64_t *strides);
/* Orders dimensions by the stride of operand 0 (then 1, ...), for ops that do not care which element comes first. */
void ocl_geometry_sort(ocl_geometry *geometry);
/* Joins neighbours that are one run of memory in every operand. Leaves at least one dimension. */
void ocl_geometry_collapse(ocl_geometry *geometry);

/* How an index space is cut: on a CPU into a few long pieces for each core, on a GPU into one vector a work-item. The
 * innermost dimension is cut into chunks; a work-item takes per_item chunks. Laid out as the kernels' structs end. */
typedef struct ocl_cut {
  int64_t chunk, chunks_per_row, chunks, per_item;
} ocl_cut;
void ocl_geometry_cut(const graft_device *device, const ocl_geometry *geometry, size_t local, ocl_cut *cut,
                      size_t *global);
/* Sizes, then the strides of each operand: as the kernels' structs begin. Returns how many numbers that is. */
int ocl_geometry_numbers(const ocl_geometry *geometry, int64_t *numbers);
#define OCL_GEOMETRY_NUMBERS ((OCL_OPERANDS_MAX + 1) * OCL_DIMS_MAX)

#endif
