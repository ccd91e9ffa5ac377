/* graph/: calls that were recorded, as data: passes over them, a memory plan, and runs.
 *
 * - record.c: calls come in; constants.c: tensors with memory; ports.c: inputs and outputs; input_values.c: what inputs
 * begin with; graph.c: what holds them
 * - passes.c: which passes run; pass_*.c: one each; uses.c: what they ask of a graph
 * - compile.c: a graph for one device, its plans and places; spans.c: when buffers are used; lay_over.c: values over
 * others that end there; plan_memory.c: where values lie, a pure function
 * - groups.c: nodes that the plugin compiles to one program; group_nodes.c: nodes as it sees them; group_order.c: an
 *   order in which those of a group follow each other
 * - run.c: a run; frame.c: the tensors and arguments that one needs (exec.h)
 * - file_*.c: graphs in files (file.h); query.c: what a graph says of itself
 *
 * A graph speaks of buffers and views, not of tensors that view each other: a buffer is memory of so many bytes, a view
 * says which elements of a buffer an operand is. So aliases need no analysis (two operands share memory where their
 * buffer is one), a mutation is an operand that is written, and an op that gives a view leaves no node: a chain of
 * views is one view. The order of nodes is the order of the calls; of the passes, late and fuse change it, and only
 * where that changes no value.
 *
 * All sizes are numbers. A graph with open sizes has, beside its nodes, the calls that made them (script.h): for other
 * sizes these are made once more, and what comes of it is another graph.
 * sizes.c: open sizes and formulas; script.c: what is kept of calls; make.c: a graph for other sizes; bind.c: which
 * ones inputs have; compile_open.c: when one is made; made.c: which are kept
 *
 * Internal to libgraft. Begin reading in record.c, then compile.c. */
#ifndef GRAFT_SDK_GRAPH_H
#define GRAFT_SDK_GRAPH_H

#include "dispatch/dispatch.h"
#include "graft/graph.h"
#include "graph/grow.h"
#include "graph/sizes.h"

#define GR_NONE UINT32_MAX
/* All values of a graph together: what is planned for them can't overflow. */
#define GR_BYTES_MAX (INT64_C(1) << 62)

/* Elements of a buffer; offset and strides count elements of dtype. */
typedef struct gr_view {
  uint32_t buffer; /* GR_NONE: absent */
  graft_dtype dtype;
  uint32_t flags; /* TNS_CONJ, TNS_NEG */
  int32_t ndim;
  int64_t offset;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
} gr_view;

typedef enum gr_kind { GR_VALUE, GR_INPUT, GR_CONSTANT } gr_kind;

typedef struct gr_buffer {
  gr_kind kind;
  bool on_host;           /* a number in host memory, beside those of the device */
  bool donated;           /* of an input: its memory may serve the run once it is read no more */
  uint64_t bytes;         /* that its views reach */
  graft_tensor *constant; /* u8[bytes], owned */
  /* Of a constant: which memory was copied, so that it is so once; id 0: not known. */
  uint64_t source_id, source_version, source_first;
} gr_buffer;

typedef struct gr_operand {
  gr_view view;
  bool written; /* by the node, beyond its results */
} gr_operand;

/* A result: a new value, or written to a view that was there. */
typedef struct gr_result {
  gr_view view;
  bool given;
} gr_result;

/* A call. args are canonical and complete; of a tensor, as.i is its operand, of a list the first one of `count`; an
 * item that is NULL is an absent operand. A device is the graph's. */
typedef struct gr_node {
  const op_schema *schema;
  uint32_t nargs, noperands, nresults;
  graft_value *args;
  gr_operand *operands;
  gr_result *results;
} gr_node;

/* An input or an output. */
typedef struct gr_port {
  char *name;
  gr_view view;
  graft_tensor *value; /* of an input where no other is given: u8[bytes of its buffer], owned; NULL: none */
  /* Of a graph with open sizes: which value it is, and of an input its shape. Lives as the script does. */
  uint32_t value_number;
  const struct gr_open_shape *open;
} gr_port;

typedef struct gr_recorder {
  dsp_recorder base; /* first: the thread knows this */
  graft_graph *graph;
} gr_recorder;

/* --- what a graph with open sizes keeps of its calls; see script.h --- */

/* A tensor that an entry takes. Whether a leaf requires grad may be said at any time, also before the recording. */
typedef struct gr_value_use {
  uint32_t value; /* GR_NONE: absent */
  bool is_leaf, requires_grad;
} gr_value_use;

typedef struct gr_made_value {
  uint32_t value; /* GR_NONE: not given */
  bool given;     /* written to a value that was there */
  uint32_t leaf;  /* of graft_backward: whose gradient it is */
} gr_made_value;

typedef enum gr_act { GR_CALL, GR_BACKWARD, GR_GRAD } gr_act;

typedef struct gr_entry {
  gr_act act;
  bool grad_mode, inference_mode;
  uint32_t op_id; /* of a call */
  uint32_t flags; /* graft_backward_flags */
  uint32_t nargs, nuses, nouts;
  uint32_t count;    /* roots; uses are these, then their cotangents, then inputs */
  graft_value *args; /* of a call: a tensor's as.i is its use, a list's the first one */
  gr_value_use *uses;
  gr_made_value *outs;
} gr_entry;

/* A value that is a view of a constant. */
typedef struct gr_script_constant {
  uint32_t value;
  gr_view view;
} gr_script_constant;

/* A leaf that requires grad: graft_backward leaves its gradient there. Owned. */
typedef struct gr_leaf {
  uint32_t value;
  graft_tensor *tensor;
} gr_leaf;

/* What entries point to: as long as a copy of the script is there. */
typedef struct gr_store {
  atomic_uint refs;
  arena memory;
} gr_store;

typedef struct gr_script {
  gr_store *store;
  gr_sizes sizes;
  gr_entry **entries;
  gr_script_constant *constants;
  gr_leaf *leaves;
  uint32_t nentries, nconstants, nleaves, nvalues;
} gr_script;

/* The sizes and strides of an input, as numbers and names. */
struct gr_open_shape {
  bool strided; /* else contiguous */
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
};

struct graft_graph {
  graft_rt_device *device;
  graft_dtype default_dtype; /* of the recording thread at the first node: rules read it */
  graft_tensor *claim;       /* of no bytes: it keeps the device open */
  uint64_t serial;           /* in the symbols of its tensors */
  arena memory;              /* of nodes and names */
  gr_buffer *buffers;
  gr_node **nodes;
  gr_port *inputs, *outputs;
  uint32_t nbuffers, nnodes, ninputs, noutputs;
  gr_recorder recorder;
  gr_script *script; /* NULL: no size is open */
  bool failed;       /* something could not be recorded */
  char failure[512]; /* and what was said of it */
};

/* --- graph.c --- */
graft_status gr_new(graft_rt_device *device, graft_graph **graph);
/* The error of a graph whose values take more memory than can be planned. */
graft_status gr_check_bytes(const graft_graph *graph);
graft_status gr_clone(const graft_graph *graph, graft_graph **clone);
graft_status gr_add_buffer(graft_graph *graph, gr_kind kind, uint64_t bytes, uint32_t *index);
graft_status gr_add_port(graft_graph *graph, gr_port **ports, uint32_t *count, const char *name, const gr_view *view);
/* A node with room for its parts, appended; the caller fills it in. */
graft_status gr_add_node(graft_graph *graph, const op_schema *schema, uint32_t noperands, uint32_t nresults,
                         gr_node **node);
/* Whether the node draws random numbers, and so changes more than memory. */
static inline bool gr_is_random(const gr_node *node) {
  return node->schema->flags & OPF_RANDOM;
}
graft_status gr_script_new(gr_script **script);
graft_status gr_script_copy(const gr_script *script, gr_script **copy); /* without leaves */
void gr_script_free(gr_script *script);
/* Gives a tensor the next number. */
uint32_t gr_trace(graft_graph *graph, graft_tensor *tensor);
/* The number that a tensor of the graph carries; GR_NONE: none. */
uint32_t gr_traced(const graft_graph *graph, const graft_tensor *tensor);
/* Keeps the error that was just set: it ends the recording. Returns it. */
graft_status gr_fail(graft_graph *graph, graft_status status);
bool gr_same_view(const gr_view *a, const gr_view *b);
/* Puts "graph node 3" before the error of a node. */
graft_status gr_node_error(graft_status status, uint32_t node);
/* Puts "graph nodes 3 to 7" there, of a group. */
graft_status gr_group_error(graft_status status, uint32_t first, uint32_t last);
/* The view that a tensor is of a buffer in which it begins `first` bytes later than in its storage. */
gr_view gr_view_of(const graft_tensor *t, uint32_t buffer, uint64_t first);

/* --- constants.c --- */
/* The view of a constant that a tensor with memory becomes; `what` takes it, for an error. */
graft_status gr_constant_view(graft_graph *graph, const char *what, graft_tensor *t, gr_view *view);

/* --- ports.c --- */
/* A tensor that stands for an input, and its entry among the inputs, which follow each other. */
graft_status gr_new_input(graft_graph *graph, graft_rt_device *device, graft_dtype dtype, int32_t ndim,
                          const int64_t *sizes, const int64_t *strides, graft_tensor **input);
graft_status gr_add_input(graft_graph *graph, const char *name, graft_tensor *input);
/* The same; of a graph with open sizes also which these are: names among sizes and strides. sizes NULL: as the input
 * has them; strides NULL: contiguous. */
graft_status gr_add_traced_input(graft_graph *graph, const char *name, graft_tensor *input, const int64_t *sizes,
                                 const int64_t *strides);

/* --- input_values.c --- */
/* Whether an input has a size, or a stride, that is open, and so no value of its own. */
bool gr_has_open_size(const graft_graph *graph, const gr_port *port);

/* --- passes.c --- */
enum {
  GR_PASS_DEAD = 1,
  GR_PASS_CSE = 2,
  GR_PASS_FOLD = 4,
  GR_PASS_INPLACE = 8,
  GR_PASS_MEMORY = 16,
  GR_PASS_FUSE = 32,
  GR_PASS_LATE = 64,
  GR_PASS_DIRECT = 128
};
/* Which passes run: all but those that GRAFT_GRAPH_PASSES and `text` (each may be NULL) take out or leave. */
graft_status gr_choose_passes(const char *text, uint32_t *passes);
/* Pass number `number`, in the order in which they run; false: there are not so many. */
bool gr_pass_at(uint32_t number, const char **name, uint32_t *bit);
graft_status gr_run_passes(graft_graph *graph, uint32_t passes);
/* Each changes the graph; nodes that go leave the array. */
graft_status gr_pass_dead(graft_graph *graph);
graft_status gr_pass_cse(graft_graph *graph);
graft_status gr_pass_fold(graft_graph *graph);
graft_status gr_pass_direct(graft_graph *graph);
graft_status gr_pass_late(graft_graph *graph);

/* --- uses.c --- */
/* How many nodes write each buffer, added to `counts`. */
void gr_count_writes(const gr_node *node, uint32_t *counts);
/* Gives up constants that neither nodes nor outputs read. */
graft_status gr_drop_constants(graft_graph *graph);
/* Of each buffer, whether it can be seen from outside: of inputs, and what outputs view. An array of the caller's. */
graft_status gr_mark_outputs(const graft_graph *graph, bool **is_output);

/* --- plan_memory.c --- */
/* One value: alive from node `first` to node `last`, both included. */
typedef struct gr_usage {
  uint64_t bytes; /* 0: takes no place */
  uint32_t first, last;
} gr_usage;
typedef struct gr_spot {
  uint32_t arena;
  uint64_t offset;
} gr_spot;
/* Memory that is there anyway, for what is first alive at node `from` or later. */
typedef struct gr_donor {
  uint64_t bytes;
  uint32_t from;
} gr_donor;
typedef struct gr_room {
  const gr_donor *donors;
  uint32_t ndonors;
  uint64_t alignment; /* a power of two */
  uint64_t most;      /* bytes of an arena, unless one value alone is larger */
} gr_room;
/* Places all values so that no two which are alive at once overlap: each at a multiple of the alignment, in the first
 * donor that has room for it, or else in an arena. spots has `count` items; *arenas receives an array of *narenas
 * sizes, the caller's, of which the first ones are the donors' own. OUT_OF_MEMORY is all that can fail. */
graft_status gr_plan_memory(const gr_usage *usages, uint32_t count, const gr_room *room, gr_spot *spots,
                            uint64_t **arenas, uint32_t *narenas);

/* --- compile.c --- */
/* Which nodes the device's plugin would take together, by its extension "graft.graph": numbers, which has room for all
 * nodes, receives for each that of its group; 0: alone. No pass runs, and nothing is compiled. */
graft_status gr_would_group(const graft_graph *graph, graft_rt_device *device, uint32_t *numbers);

#endif
