/* libgraft: graphs. Calls are recorded once and run often: nothing is looked up, checked or decided again, values in
 * between share one piece of memory, and what need not be computed is not.
 *
 * A graph has inputs, constants, calls and outputs. While a thread records, its calls run nothing: tensors stand for
 * values that are not there yet, gradients included, so that a training step (forward, graft_backward, optimizer ops)
 * becomes one graph. What such a graph gives is, to the bit, what its calls give one by one.
 *
 * A recording holds for the dtypes, shapes and strides of its inputs, but for sizes that were named open. A graph is
 * used by one thread at a time, a compiled one by any number. Before 1.0 this header may still change. */
#ifndef GRAFT_GRAPH_H
#define GRAFT_GRAPH_H

#include "graft/tensor.h"
#include "graft/value.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graft_graph graft_graph;
typedef struct graft_graph_exec graft_graph_exec;

/* A graph without calls, of calls on `device`, which it keeps open as a tensor does. */
GRAFT_EXPORT graft_status graft_graph_create(graft_rt_device *device, graft_graph **graph);
/* Ends a recording into it that this thread has begun. What was compiled from it stays. */
GRAFT_EXPORT void graft_graph_destroy(GRAFT_NULLABLE graft_graph *graph);

/* --- building ---
 * The tensors that these functions give stand for values: they have dtype, shape, strides and history, and no memory.
 * They are for calls that this graph records, and for graft_graph_output; anything that needs their values is an error.
 */

/* A size that is open until a run: `size` receives a name of it, an int64_t that stands for it among the sizes and
 * strides of inputs, and, while this graph is recorded, among the whole numbers of calls (sizes of a view, an end, a
 * factor), also in lists and in numbers of dtype i64. Names are numbers near INT64_MIN / 2, which then mean nothing
 * else: no arithmetic is done on one, and a call that is given what such gives is INVALID_ARGUMENT; `n + 1` is a name
 * of its own, which graft_graph_size_of makes. Calls are recorded as for the size `example`; tensors have that size and
 * graft_tensor_sizes gives it. A whole number that is given plainly stays what it is.
 *
 * At a run the sizes are those of the inputs, and calls and gradients are what they would be at these sizes: what was
 * recorded is called once more, so that all that depends on a size (what is broadcast, how a result lies, what is
 * empty, the formula of a gradient) is decided for the one at hand; where a call can't be made then, the run says
 * which. What calls it can't say: of the tensors of such a graph, those that are made by ops (graft_call, graft/ops.h,
 * graft_tensor_copy and _to) and the gradients that graft_backward and graft_grad give are values; others
 * (graft_tensor_empty, _detach) are refused where they are used, as are hooks and graft_tensor_set_grad.
 *
 * Errors: the graph has inputs or calls already, and no open size; the name is empty or taken; `least` is below 0; the
 * example is below `least` or above `most`. */
GRAFT_EXPORT graft_status graft_graph_size(graft_graph *graph, const char *name, int64_t example, int64_t least,
                                           int64_t most, int64_t *size);

typedef uint32_t graft_size_op;
enum {
  GRAFT_SIZE_ADD = 1,
  GRAFT_SIZE_SUB = 2,
  GRAFT_SIZE_MUL = 3,
  GRAFT_SIZE_DIV = 4, /* rounded down */
  GRAFT_SIZE_MOD = 5, /* of the divisor's sign */
  GRAFT_SIZE_MIN = 6,
  GRAFT_SIZE_MAX = 7
};
/* A size that follows from two others, each a name or a number; `size` receives a name. Errors: the graph has no open
 * size; the examples have no such result. */
GRAFT_EXPORT graft_status graft_graph_size_of(graft_graph *graph, graft_size_op op, int64_t left, int64_t right,
                                              int64_t *size);

/* An input. strides NULL: contiguous. Names are given once among inputs, and once among outputs. */
GRAFT_EXPORT graft_status graft_graph_input(graft_graph *graph, const char *name, graft_dtype dtype, int32_t ndim,
                                            const int64_t *sizes, GRAFT_NULLABLE const int64_t *strides,
                                            graft_tensor **input);
/* An input that lies as `like` does: also its conjugate and negative bits, and host memory for a number (rank 0) that
 * takes part in the calls of a device. It requires grad where `like` does. */
GRAFT_EXPORT graft_status graft_graph_input_like(graft_graph *graph, const char *name, const graft_tensor *like,
                                                 graft_tensor **input);

/* Between these two all calls of this thread on the graph's device are recorded, through graft_call, the functions of
 * graft/ops.h, graft_tensor_copy and _to, and autograd; graft_tensor_empty gives a value of the graph. Tensors with
 * memory become constants: their values now, so that they may be changed or released after it. Refused, naming the op,
 * are writes to such tensors, tensors with memory that require grad, ops on other devices and generators other than the
 * device's default one. What depends on values (graft_tensor_item, _to_host, an op whose result's size depends on data)
 * or brings some (graft_tensor_from_host) is refused, and ends the recording: no more calls are taken, and the end, as
 * all that uses the graph then, is INVALID_ARGUMENT with that error's text. Any other failing call leaves the graph as
 * it was; a call under another default dtype (graft_default_dtype_set) than the first one's is such. Errors of begin:
 * this thread records already. */
GRAFT_EXPORT graft_status graft_graph_record_begin(graft_graph *graph);
GRAFT_EXPORT graft_status graft_graph_record_end(graft_graph *graph);

/* One call, recorded as graft_call would be between the two: for those who have a graph already and no program. */
GRAFT_EXPORT graft_status graft_graph_call(graft_graph *graph, uint32_t op_id, const graft_value *args, uint32_t nargs,
                                           graft_tensor **outs, uint32_t nouts);

/* Names an output: any value of the graph, an input or a view of one too, as often as wanted. */
GRAFT_EXPORT graft_status graft_graph_output(graft_graph *graph, const char *name, graft_tensor *value);

/* The value that an input has where a run is given no other: the weights that a training step begins with, what its
 * optimizer keeps. The graph holds a copy of `value` as it is now, which has the input's dtype and shape and may lie
 * otherwise or on another device; graft_graph_save writes it, `graft run` begins with it. Runs do not change it, and
 * graft_graph_run wants all inputs all the same. Replaces one that was there. Errors: this thread records. */
GRAFT_EXPORT graft_status graft_graph_input_set_value(graft_graph *graph, uint32_t index, graft_tensor *value);
/* A new tensor on `device` with that value, which graft_graph_run takes for the input. Error: it has none, as has_value
 * of its port says. */
GRAFT_EXPORT graft_status graft_graph_input_value(const graft_graph *graph, uint32_t index, graft_rt_device *device,
                                                  graft_tensor **value);

/* The plan may let values of a run lie in the memory of this input once all that read it have run. A run does so where
 * the input is handed over to it (graft_graph_run_letting_go) and nobody else has that memory then; elsewhere it takes
 * memory in its place, so that nothing that is still held is ever overwritten. A hint: it is for inputs that are handed
 * over as a rule, as what a forward keeps for its backward, and that share their memory with no other one. An input
 * that calls write to, or that an output views, is not reused, nor is any while a stream is captured. Stands in no
 * file. Error: there is no such input. */
GRAFT_EXPORT graft_status graft_graph_input_donate(graft_graph *graph, uint32_t index);

/* What an input or an output is. A later libgraft may append fields. */
typedef struct graft_graph_port {
  const char *name; /* of the graph, as long as it lives */
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS]; /* strides count elements */
  uint8_t on_host;                                        /* a number in host memory, whatever the device */
  uint8_t is_written;                                     /* an input: calls write to it */
  uint8_t conjugate, negative;                            /* its bits */
  uint8_t has_value;                                      /* an input: graft_graph_input_set_value gave it one */
  uint8_t reserved[3];
} graft_graph_port;
/* Fills `port`, of port_bytes bytes: sizeof(graft_graph_port) as the caller knows it. Error: there is no such one. */
GRAFT_EXPORT graft_status graft_graph_input_query(const graft_graph *graph, uint32_t index, graft_graph_port *port,
                                                  size_t port_bytes);
GRAFT_EXPORT graft_status graft_graph_output_query(const graft_graph *graph, uint32_t index, graft_graph_port *port,
                                                   size_t port_bytes);

GRAFT_EXPORT uint32_t graft_graph_node_count(const graft_graph *graph) GRAFT_NULL_GIVES(0);
GRAFT_EXPORT uint32_t graft_graph_input_count(const graft_graph *graph) GRAFT_NULL_GIVES(0);
GRAFT_EXPORT uint32_t graft_graph_output_count(const graft_graph *graph) GRAFT_NULL_GIVES(0);

/* --- files ---
 * A file holds a graph with its constants: a safetensors file, so that other programs can read the weights
 * (docs/graphs.md says what stands in it). Files are read as if others had written them: a damaged or hostile one is an
 * error. */

/* Writes it, whole or not at all: a file that was there stays until the new one is on the disk. The same graph gives
 * the same bytes. Waits for the device. Errors: this thread records; the recording failed; the disk. */
GRAFT_EXPORT graft_status graft_graph_save(const graft_graph *graph, const char *path);
/* Reads a graph; `device` NULL: the reference. It may be compiled for any device. Errors name the file, and what is
 * wrong: an op that this libgraft does not know or knows with another schema, an op of a plugin that is not open
 * (INCOMPATIBLE), anything that could not have been recorded. This thread must not record. */
GRAFT_EXPORT graft_status graft_graph_load(GRAFT_NULLABLE graft_rt_device *device, const char *path,
                                           graft_graph **graph);

/* --- running --- */

/* Makes a graph ready for a device, its own or another: runs the passes, finds the way of each call, has the plugin
 * compile calls that it takes together (graft/abi/graph.h), plans memory. `passes` takes some out by name
 * ("-cse,-fold") or all ("none"), as GRAFT_GRAPH_PASSES does; NULL: all run. It holds a copy of the graph, and keeps
 * the device open as a tensor does. What this thread asks of its ops now, determinism for one, holds for all runs.
 * Waits for the device. INTERNAL, naming the plugin, where its answer on groups can't be right; a group that it fails
 * to compile is logged and runs call by call. GRAFT_GRAPH_DUMP=FOLDER has it save each graph there. With open sizes,
 * each of which an input has to have for a dimension, it is ready for those of the recording; the first run at others
 * makes it ready for these, as this function would. The 16 sizes that ran last are kept. */
GRAFT_EXPORT graft_status graft_graph_compile(const graft_graph *graph, graft_rt_device *device,
                                              GRAFT_NULLABLE const char *passes, graft_graph_exec **exec);
/* No run of it may be under way in another thread. Waits for the device. */
GRAFT_EXPORT void graft_graph_exec_destroy(GRAFT_NULLABLE graft_graph_exec *exec);

/* Whether inputs lie as a run takes them: their number, and of each dtype, shape, strides (where a size is above 1),
 * bits and device; with open sizes, whether there are sizes for which they lie so. Sets no error, and says nothing of
 * what else a run wants: that none that is written shares memory with another one, that a graph can be made for the
 * sizes. */
GRAFT_EXPORT bool graft_graph_exec_fits(const graft_graph_exec *exec, GRAFT_NULLABLE graft_tensor *const *inputs,
                                        uint32_t ninputs) GRAFT_NULL_GIVES(false);

/* Runs it, asynchronously on the current stream. Inputs come in the order in which they were named, each with the
 * dtype, shape, strides (where a size is above 1), bits and device of its own; what the graph writes to them is
 * written. Outputs come in their order, as new tensors that the caller owns: two that view one value share its memory,
 * one that views an input shares that input's. Random ops draw from the device's generator and advance it as the calls
 * do. Nothing is recorded for autograd. Errors, before anything runs: another number of tensors; an input that does not
 * match, naming it (of one without elements strides do not count); an input that is written and shares memory with
 * another one; an input that requires grad while grad mode is on; this thread records. A call that fails is named with
 * its node; what ran before it has run. */
GRAFT_EXPORT graft_status graft_graph_run(graft_graph_exec *exec, GRAFT_NULLABLE graft_tensor *const *inputs,
                                          uint32_t ninputs, GRAFT_NULLABLE graft_tensor **outputs, uint32_t noutputs);

/* The same, and inputs are handed over: of those that let_go has a 1 for (NULL: of all) the caller's hold is given up,
 * whatever is returned, and NULL stands in `inputs` instead. Memory that nobody else holds is so free again as soon as
 * the last call that reads it has run, or serves the run itself (graft_graph_input_donate). */
GRAFT_EXPORT graft_status graft_graph_run_letting_go(graft_graph_exec *exec, GRAFT_NULLABLE graft_tensor **inputs,
                                                     uint32_t ninputs, GRAFT_NULLABLE const uint8_t *let_go,
                                                     GRAFT_NULLABLE graft_tensor **outputs, uint32_t noutputs);

/* What stood in the way of a run, for who can take another one then. A later libgraft may append kinds. */
typedef uint32_t graft_graph_failure;
enum {
  GRAFT_GRAPH_NO_FAILURE = 0,
  /* What was given, or this thread, does not fit. Nothing has run. */
  GRAFT_GRAPH_INPUTS_FAILED = 1,
  /* Sizes are open, and the graph can't be made ready for these: of a call with them, or of all of them. Nothing has
   * run, and unless the status is OUT_OF_MEMORY it would be so again. */
  GRAFT_GRAPH_SIZES_FAILED = 2,
  /* Sizes are open, and the stream is captured, which takes sizes that have run before. Nothing has run. */
  GRAFT_GRAPH_CAPTURE_FAILED = 3,
  /* A call failed, or memory was short. Those before it have run. */
  GRAFT_GRAPH_CALLS_FAILED = 4
};
/* Of this thread's last graft_graph_run, or _letting_go; NO_FAILURE where that went well, or there was none. */
GRAFT_EXPORT graft_graph_failure graft_graph_last_failure(void);

/* What was compiled. A later libgraft may append fields. */
typedef struct graft_graph_exec_info {
  uint32_t nodes;          /* calls that are left */
  uint32_t arenas;         /* pieces of memory that values in between share */
  uint64_t arena_bytes;    /* their size, taken from the caching allocator for each run */
  uint64_t value_bytes;    /* the size of the values in them */
  uint64_t constant_bytes; /* held as long as it lives */
  uint32_t groups;         /* of calls that the plugin compiled to one program each */
  uint32_t grouped_nodes;  /* how many of the nodes are in one */
  uint64_t donated_bytes;  /* of inputs in whose memory values may lie, graft_graph_input_donate */
  uint32_t sizes_made;    /* of a graph with open sizes: for how many it is ready. The rest is of those that ran last */
  uint32_t failed_groups; /* that the plugin failed to compile, which the log says: their calls run one by one */
} graft_graph_exec_info;
/* Fills `info`, of info_bytes bytes: sizeof(graft_graph_exec_info) as the caller knows it. */
GRAFT_EXPORT graft_status graft_graph_exec_query(const graft_graph_exec *exec, graft_graph_exec_info *info,
                                                 size_t info_bytes);

/* --- captures ---
 * A capture holds what a stream was given between begin and end, as calls of the plugin that are ready to be made, and
 * makes them again with each launch: no rule, no look-up, no dispatch, no allocation. It differs from a graph in that
 * it has no inputs and outputs: it reads and writes the memory that was read and written when it was made. So one fills
 * tensors that the captured calls read, launches, and reads tensors that they wrote. To the bit a launch gives what the
 * calls would; random ops draw on from where the device's generator stands, and leave it where the calls would.
 *
 * Between begin and end calls run nothing, and what they write has no values before a launch; the device's generator
 * stays as it is. Captured is what any thread gives to the stream, autograd's included, and to streams that wait for an
 * event recorded there. Numbers in host memory have the values of then; one number may be copied to the device.
 * What would wait or leave the device is refused and ends the capture: reading values, copying others from the host,
 * ops whose result's size depends on data, ops that run in host memory, indices that the host checks, copies between
 * devices, generators other than the device's default one. No more is taken then, and end gives that error once more.
 * Any other failing call leaves the capture as it was. */
typedef struct graft_graph_capture graft_graph_capture;

/* Memory for captures: what is allocated while one is made comes from its pool, what is freed goes back there and is
 * used for no other purpose, so that a launch finds its values in between where they were. Captures that share a pool
 * share that memory: they are launched in the order in which they were made, and one overwrites what the other left
 * behind. A pool lives as long as somebody holds it, its captures among them; tensors in it stay valid beyond. It keeps
 * the device open as a tensor does. */
typedef struct graft_graph_pool graft_graph_pool;
GRAFT_EXPORT graft_status graft_graph_pool_create(graft_rt_device *device, graft_graph_pool **pool);
/* Gives up the caller's hold. The last one waits for the device. */
GRAFT_EXPORT void graft_graph_pool_release(GRAFT_NULLABLE graft_graph_pool *pool);

/* Begins with the thread's current stream of the device. pool NULL: one of its own. Errors: a capture of the device is
 * under way; the pool is another device's; this thread records a graph. */
GRAFT_EXPORT graft_status graft_graph_capture_begin(graft_rt_device *device, GRAFT_NULLABLE graft_graph_pool *pool,
                                                    graft_graph_capture **capture);
/* Its streams run their work again, whatever is returned. Errors: what ended the capture before; it is not under way.
 * The capture is then to be destroyed. */
GRAFT_EXPORT graft_status graft_graph_capture_end(graft_graph_capture *capture);
/* Gives all of it to the thread's current stream of the device, in the order in which it was captured; asynchronous.
 * The tensors that it was captured with are kept as long as it lives, those made meanwhile are the caller's to keep.
 * One launch at a time: others wait. Errors: the capture has not ended or has failed; that stream is captured; a call
 * that fails, with its number and op, and those before it have run; the launch of what the plugin has recorded
 * (extension "graft.capture"), of which a part may have run. The generator has moved on, and the next launch begins
 * anew. */
GRAFT_EXPORT graft_status graft_graph_capture_launch(graft_graph_capture *capture);

/* A tensor in the place of one that was captured, for one launch. Both have one dtype, sizes and strides, and
 * `captured` is all of its memory. */
typedef struct graft_graph_stand_in {
  graft_tensor *captured;
  graft_tensor *given;
  uint8_t is_result; /* 0: calls read there and do not write, 1: they write there before they read */
} graft_graph_stand_in;
/* graft_graph_capture_launch, where calls read from and write to `given` instead of `captured`, whose contents have no
 * meaning afterwards. What a launch writes may share memory with no other stand-in, nor with what the calls use.
 * Nothing is copied where the calls can be given other memory; where one has been recorded by the plugin or works in
 * host memory, or where `given` begins at another alignment, `captured` is copied to before the launch, or from behind
 * it. Errors: of graft_graph_capture_launch; a stand-in that is not as said, before anything has run. */
GRAFT_EXPORT graft_status graft_graph_capture_launch_with(graft_graph_capture *capture,
                                                          const graft_graph_stand_in *items, uint32_t count);
/* Ends it where it is under way. Waits for the device. */
GRAFT_EXPORT void graft_graph_capture_destroy(GRAFT_NULLABLE graft_graph_capture *capture);

/* How many calls of the plugin a launch makes. */
GRAFT_EXPORT uint32_t graft_graph_capture_count(const graft_graph_capture *capture) GRAFT_NULL_GIVES(0);
/* Whether what a stream is given is captured. */
GRAFT_EXPORT bool graft_stream_is_captured(const graft_rt_stream *stream) GRAFT_NULL_GIVES(false);

#ifdef __cplusplus
}
#endif

#endif
