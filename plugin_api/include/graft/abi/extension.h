/* Graft plugin ABI: names and versions of extensions.
 *
 * Growth that is not a field or an op goes through a named extension: a struct with struct_size, asked for by name and
 * least version through the `extension` function of either side. A party that does not know a name, or only lesser
 * versions of it, answers GRAFT_UNIMPLEMENTED and leaves *table alone. Names that begin with "graft." are
 * Graft's; a vendor's begin with its own name and a dot.
 *
 * A table is constant: asked again, the same pointer to the same contents, valid until close (a host's: for as long as
 * the instance). Asking touches no driver, so it may come before any device is opened. A version only appends to the
 * one before. A plugin has one table for all of its devices; a function that one of them can't serve answers
 * GRAFT_UNIMPLEMENTED for it. Functions take the handle they are about; those that are about the whole instance take
 * graft_plugin.self (of a host's table: graft_host.context) first. */
#ifndef GRAFT_ABI_EXTENSION_H
#define GRAFT_ABI_EXTENSION_H

#include "graft/abi/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GRAFT_EXTENSION_GRAPH         "graft.graph"      /* calls that are compiled to one program; see graph.h */
#define GRAFT_EXTENSION_COLLECTIVE    "graft.collective" /* all-reduce and friends; no version yet */
#define GRAFT_EXTENSION_PROFILER      "graft.profiler"   /* times of what ran on the device */
#define GRAFT_EXTENSION_IPC           "graft.ipc"        /* memory shared between processes; no version yet */
#define GRAFT_EXTENSION_NATIVE_HANDLE "graft.native_handle"
#define GRAFT_EXTENSION_CUSTOM_OPS    "graft.custom_ops" /* ops that are in no table of Graft's */
#define GRAFT_EXTENSION_CAPTURE       "graft.capture"    /* work that is recorded and submitted again as a whole */

/* Version 1 of "graft.native_handle", offered by a plugin: the driver's own objects behind Graft's handles, for code
 * that knows the vendor's API. The handle stays the plugin's. Any pointer may be NULL: not offered. Thread-safe. */
#define GRAFT_NATIVE_HANDLE_VERSION 1
typedef struct graft_native_handle_api {
  size_t struct_size;
  const char *api; /* such as "opencl", "cuda", "level_zero" */
  graft_status (*device)(graft_device *device, void **handle) GRAFT_TABLE_NOEXCEPT;
  graft_status (*stream)(graft_stream *stream, void **handle) GRAFT_TABLE_NOEXCEPT;
  graft_status (*buffer)(graft_buffer *buffer, void **handle) GRAFT_TABLE_NOEXCEPT;
} graft_native_handle_api;

/* Version 1 of "graft.profiler", offered by a plugin: what ran on a device and when. Between start and stop it keeps a
 * record of each kernel, copy and fill that a stream of the device was given there; at other times it spends nothing on
 * this. All functions of the table are there, and thread-safe; the host serialises mark with the calls that name its
 * stream. */
#define GRAFT_PROFILER_VERSION 1

typedef uint32_t graft_record_kind;
enum {
  GRAFT_RECORD_KERNEL = 0,
  GRAFT_RECORD_COPY = 1, /* from buffer to buffer */
  GRAFT_RECORD_COPY_FROM_HOST = 2,
  GRAFT_RECORD_COPY_TO_HOST = 3,
  GRAFT_RECORD_FILL = 4
};

/* One command, or one part of it where the plugin divides a copy or a fill. */
typedef struct graft_profiler_record {
  size_t struct_size;
  graft_record_kind kind; /* one that the host does not know counts as a kernel */
  uint32_t op_id;         /* these two as the stream's latest mark before the command had them */
  uint64_t correlation;
  const char *name;  /* such as the kernel's; UTF-8, lives until `take` returns; NULL: it has none */
  uint64_t bytes;    /* that are copied or filled; 0 for a kernel */
  uint64_t begin_ns; /* when it began to run and when it was done, on the device's clock */
  uint64_t end_ns;
} graft_profiler_record;

typedef struct graft_profiler_api {
  size_t struct_size;
  /* Keeps records of what is submitted from now on, and forgets those that nobody has drained. */
  graft_status (*start)(graft_device *device) GRAFT_TABLE_NOEXCEPT;
  /* Keeps no more; those that are kept can still be drained. OK also where nothing was started. */
  graft_status (*stop)(graft_device *device) GRAFT_TABLE_NOEXCEPT;
  /* Goes into the records of what the stream is given from now on, until the next mark: the op that it is part of
   * (GRAFT_OP_*, 0: none), and a number of the host's. Both are 0 at first. */
  graft_status (*mark)(graft_stream *stream, uint32_t op_id, uint64_t correlation) GRAFT_TABLE_NOEXCEPT;
  /* Hands over, and forgets, the records of all that is done; those of one stream in the order of submission. `take`
   * calls nothing of the plugin. *lost receives how many could not be kept since the latest drain or start. */
  graft_status (*drain)(graft_device *device, void (*take)(void *context, const graft_profiler_record *record),
                        void *context, uint64_t *lost) GRAFT_TABLE_NOEXCEPT;
  /* One moment of this call, as near as the plugin can tell, on the device's clock and on the host's CLOCK_MONOTONIC. A
   * command that is submitted later begins later on the device's clock, too. */
  graft_status (*clock)(graft_device *device, uint64_t *device_ns, uint64_t *host_ns) GRAFT_TABLE_NOEXCEPT;
} graft_profiler_api;

/* Version 1 of "graft.capture", offered by a plugin: work that a stream is given is recorded instead of run, and
 * submitted as a whole as often as wanted. Between begin and end the stream is given copies from buffer to buffer,
 * fills, slots with GRAFT_EXEC_CAPTURING, and executables of "graft.graph" with that flag; nothing else names the
 * stream, and nobody waits for it. What a call is given by value is recorded as it is: numbers that come as host
 * values, too. Buffers that are named then stay where they are until the record is destroyed, workspace included.
 *
 * Only slots whose exec_flags_known has GRAFT_EXEC_CAPTURING are recorded, and of those that draw random numbers only
 * such as have GRAFT_CAP_PHILOX_STATE: what a launch draws from is written to philox.state before. What a slot can't
 * record is GRAFT_UNIMPLEMENTED.
 *
 * The host asks when an application launches its capture for the first time, and, where that draws, again when the
 * device's generator has got another seed, after the old record was destroyed. Any error then, of begin, of a call that
 * is to be recorded or of end, costs the record alone: nobody hears of it, and the host makes the calls one by one at
 * this launch and all later ones, as where a plugin has no such extension. All functions of the table are there, and
 * thread-safe. */
#define GRAFT_CAPTURE_VERSION 1
typedef struct graft_captured graft_captured; /* the plugin's */
typedef struct graft_capture_api {
  size_t struct_size;
  /* From here on what is submitted to the stream is recorded, not run. Nothing waits on the stream then. After an error
   * the stream runs its work, and there is no end. */
  graft_status (*begin)(graft_stream *stream) GRAFT_TABLE_NOEXCEPT;
  /* Ends it; the stream runs its work again, whatever the status. With captured NULL, which a call that failed is
   * followed by, what was recorded is dropped, and the status says nothing. An error leaves *captured untouched; where
   * it is NULL with GRAFT_OK, there is no record either. */
  graft_status (*end)(graft_stream *stream, graft_captured **captured) GRAFT_TABLE_NOEXCEPT;
  /* Submits it all to a stream of the same device, with the buffers and numbers of the recording; work that the stream
   * was given before is done first, and what it is given later sees all of it. The stream of the recording may be gone.
   * The host makes no two launches of one record at once. An error is the application's, as "launching what was
   * captured": part of the work may have been submitted, so nothing is done in its place. The record stays, and the
   * next launch is one of it. */
  graft_status (*launch)(graft_captured *captured, graft_stream *stream) GRAFT_TABLE_NOEXCEPT;
  /* No submitted launch refers to it. Records are destroyed before memos, executables, events and streams. It is gone
   * whatever the status, which nobody looks at. */
  graft_status (*destroy)(graft_captured *captured) GRAFT_TABLE_NOEXCEPT;
} graft_capture_api;

/* Version 1 of "graft.custom_ops", offered by a plugin: ops of the vendor's own, under a namespace of its own, for
 * calls by name from C and as torch.ops from PyTorch. Their ids are the plugin's and mean something for it only:
 * graft_args.op_id has them, and op_caps, op_query, prepare and memos take them as any others. A name belongs to one
 * plugin in a process. The host copies the rows when it opens the plugin; one that it refuses (it says why in its log)
 * is left out, and the plugin's other ops are not.
 *
 * schema: as PyTorch writes it, "acme::scale_add(Tensor x, Tensor y, *, float alpha=1.0) -> Tensor". The
 * namespaces aten, prims and graft are taken. Arguments: Tensor, int, float, bool, Scalar, str, ScalarType, each with ?
 * too; Tensor[], Tensor?[], int[], int[N], float[], Scalar[], bool[N]. SymInt is int. Results: Tensor, or several of
 * them in brackets. An alias or a mutation, "Tensor(a!)", is refused: results are new tensors. The name has at most 120
 * characters, namespace and overload included. Defaults are those that PyTorch reads: none for tensors, their lists and
 * Scalar[], only None for a list that may be absent; no argument without one stands behind one with one, up to the *.
 *
 * The args struct is what a C compiler makes of graft_args, a member for each argument in the order of the schema, and
 * a const graft_tensor_desc * for each result:
 *   Tensor, Tensor?       const graft_tensor_desc *    int, float, bool      int64_t, double, uint8_t
 *   Tensor[], Tensor?[]   graft_tensor_list            int?, float?, bool?   a pointer to one
 *   int[], int[N]         graft_int_list               Scalar, Scalar?       const graft_scalar *
 *   float[]               graft_f64_list               str, str?             const char *
 *   Scalar[]              graft_scalar_list            bool[N]               uint8_t [N]
 *   ScalarType            graft_dtype; 0: absent
 * bool[N] has N items; of int[N], one number stands for N, and a list of another length comes as it is.
 * A pointer that is NULL is an absent argument. The schema's defaults are filled in; nothing is promoted or broadcast.
 *
 * The sets of dtypes in graft_op_caps speak of results only; a slot answers GRAFT_UNIMPLEMENTED for inputs that it does
 * not serve. Results are contiguous, unless a caller gives memory for them and the capabilities say
 * GRAFT_CAP_STRIDED. */
#define GRAFT_CUSTOM_OPS_VERSION 1

/* What a result is. The host gives room for `capacity` sizes, infer fills in the rest. */
typedef struct graft_custom_result {
  size_t struct_size;
  graft_dtype dtype; /* 0: the call does not produce it, and slot and reference find NULL */
  int32_t ndim;
  int32_t capacity;
  uint32_t reserved;
  int64_t *shape;
} graft_custom_result;

typedef struct graft_custom_op {
  size_t struct_size;
  uint32_t op_id; /* from GRAFT_OP_VENDOR_IDS on */
  /* The op of this table that is its gradient; 0: not differentiable. It takes a cotangent for each result (zeros where
   * there is none), then the op's arguments (keyword-only ones with the same names), and gives a gradient for each
   * Tensor and Tensor? argument in their order; or, where its results are called grad_ARGUMENT, for each argument of
   * these names. */
  uint32_t gradient_id;
  const char *schema;
  /* Dtypes and shapes of the results; what the tensors hold is not there to be read (their data is NULL, and so are the
   * results in args). INVALID_ARGUMENT, with a text, where the arguments do not fit. Pure, thread-safe. */
  graft_status (*infer)(void *self, const graft_args *args, graft_custom_result *const *results,
                        uint32_t count) GRAFT_TABLE_NOEXCEPT;
  graft_status (*slot)(const graft_exec *exec, const graft_args *args) GRAFT_NOEXCEPT;
  /* The same in plain host memory, at once: dl.data of each tensor points to its first element, byte_offset is 0, all
   * are contiguous, and may be empty. For tensors of the host, and for the conformance suite, whose oracle it is: it
   * gives f64 tensors in the place of other floating ones (c128 for complex ones), so at least these are served;
   * UNIMPLEMENTED for others. Thread-safe. Optional: without it there are no conformance cases. */
  graft_status (*reference)(void *self, const graft_args *args) GRAFT_TABLE_NOEXCEPT;
  /* The arguments of the conformance suite's calls, one call a line, such as "T[33,17] T[33,17] alpha=0.5", where T is
   * each of the dtypes tested; the grammar stands in docs/custom_ops.md. NULL: tensors of one shape, numbers as they
   * come. Optional. */
  const char *cases;
  /* How many roundings of its inputs a result may be away from the reference's; 0: 8. */
  uint32_t roundings;
  uint32_t reserved;
} graft_custom_op;

typedef struct graft_custom_ops_api {
  size_t struct_size;
  uint32_t count;
  uint32_t reserved;
  const graft_custom_op *const *ops; /* `count` pointers: a row may grow */
} graft_custom_ops_api;

#ifdef __cplusplus
}
#endif

#endif
