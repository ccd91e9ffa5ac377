/* A compiled graph: what compile.c makes and run.c reads. Nothing of it changes while it runs, but for the pool of
 * frames, so any number of threads may run it. */
#ifndef GRAFT_SDK_GRAPH_EXEC_H
#define GRAFT_SDK_GRAPH_EXEC_H

#include "dispatch/groups.h"
#include "graph/graph.h"

/* Where a buffer's memory comes from in a run. */
typedef enum gr_memory {
  GR_UNUSED,
  GR_BOUND, /* the tensor of an input */
  GR_KEPT,  /* a constant */
  GR_ARENA, /* a part of an arena */
  GR_OWN,   /* a storage of its own, from its first node on: it is seen from outside, or is not planned */
  GR_LOOSE, /* the storage in which a node that runs by other means than a slot gives its result */
  GR_INSIDE /* none: only nodes of one group use it. A storage of its own where these run one by one */
} gr_memory;

typedef struct gr_place {
  gr_memory memory;
  bool is_output;
  bool written;         /* by some node */
  uint32_t first, last; /* moments, see gr_moment; first GR_NONE: no node uses it */
  uint32_t input;       /* of GR_BOUND */
  uint32_t donor;       /* of GR_BOUND: the arena that its memory becomes, see graft_graph_exec; GR_NONE: none */
  uint32_t same_as;     /* the buffer whose memory it takes over, which ends where this begins; of a large one, if it
                           can be had in a run; GR_NONE: its own */
  gr_spot spot;         /* of GR_ARENA */
  uint32_t first_cell;  /* of the chain of its cells; GR_NONE: none */
} gr_place;

/* A tensor that nodes of a run see: what every run has in common. */
typedef struct gr_cell {
  gr_view view;
  uint32_t next; /* of the same buffer */
} gr_cell;

/* A node. Cells stand for its tensors. */
typedef struct gr_step {
  const gr_node *node;
  dsp_plan *plan;                                  /* NULL: a copy */
  dsp_plan *over;                                  /* where its result lies over an operand, see lay_over.c; or NULL */
  dsp_plan *conversion;                            /* of a copy: as a slot would make it; NULL: not looked for */
  graft_value *args;                               /* in full, without tensors */
  uint32_t *operands;                              /* cells; GR_NONE: absent */
  uint32_t *results;                               /* cells; GR_NONE: absent */
  bool gives;                                      /* its new results are its own: GR_LOOSE */
  uint32_t first_operand, first_arg, first_result; /* of its part in a frame's arrays */
  uint32_t group;                                  /* GR_NONE: none */
} gr_step;

/* A view as plugins see it while there is no memory; one for all who speak of the same elements. */
typedef struct gr_described {
  struct gr_described *next; /* of the same buffer */
  gr_view view;
  graft_tensor_desc desc;
} gr_described;

/* Nodes that follow each other and that the plugin compiled to one program. */
typedef struct gr_group {
  uint32_t first, end; /* nodes */
  graft_executable *executable;
  bool unaligned; /* takes inputs that begin anywhere */
  uint32_t ninputs, noutputs;
  const graft_tensor_desc *const *descs; /* inputs, then outputs, each part of a gr_described */
  uint32_t first_desc;                   /* in a frame's array */
  dsp_plan *const *drawing;              /* of its nodes that draw, in their order */
  uint32_t ndraws, first_draw;           /* first_draw: in a frame's array */
} gr_group;

/* What one run needs of its own, kept for the next one. */
typedef struct gr_frame {
  struct gr_frame *next;
  graft_tensor *cells;
  graft_value *args;        /* of all steps, with this frame's tensors */
  graft_tensor **operands;  /* of all steps: what lists point to */
  graft_tensor **results;   /* of all steps */
  graft_storage **storages; /* by buffer; owned where GR_OWN or GR_LOOSE */
  bool *handed;             /* by buffer: of GR_BOUND, owned, too */
  uint64_t *bases;          /* by buffer: its first byte in the storage */
  graft_storage **arenas;
  graft_tensor_desc *descs;             /* of all groups */
  const graft_tensor_desc **desc_items; /* likewise: what points to them */
  graft_philox *philox;                 /* of all nodes in groups that draw */
  const graft_philox **philox_items;    /* likewise */
} gr_frame;

/* Executables of a graph with open sizes, by these. */
enum { GR_MADE_MOST = 16 };
typedef struct gr_made_item {
  int64_t *values; /* of the sizes */
  graft_graph_exec *exec;
  uint64_t used; /* when, by `clock` */
} gr_made_item;
typedef struct gr_made {
  pthread_mutex_t making; /* held by the thread that makes one */
  pthread_mutex_t lock;   /* guards what follows */
  gr_made_item items[GR_MADE_MOST];
  uint32_t count;
  uint64_t clock;
} gr_made;

struct graft_graph_exec {
  atomic_uint refs;   /* its maker's, and one of each run that was captured */
  graft_graph *graph; /* its own */
  graft_rt_device *device;
  graft_exec_flags flags; /* of the compiling thread: plans hold for these */
  uint32_t passes;
  gr_made *made;    /* of a graph with open sizes, which has nothing of what follows; else NULL */
  gr_place *places; /* by buffer */
  gr_cell *cells;
  gr_step *steps;             /* by node */
  const graft_graph_api *api; /* of the plugin, where there are groups */
  bool shows_draws;           /* to it: nodes that draw may be in groups */
  gr_group *groups;           /* in the order of their nodes */
  uint32_t ngroups, ndescs, ndraws;
  uint32_t failed_groups;
  uint64_t *arena_bytes;
  /* The first arenas are the memory of inputs that nobody reads any more, if a run has that to itself; each ends with
   * the last moment at which a value lies in it. */
  uint32_t *donor_ends;
  uint32_t ncells, narenas, ndonors, noperands, nargs, nresults;
  uint64_t value_bytes;
  graft_tensor *claim; /* of no bytes: it keeps the device open */
  arena memory;
  pthread_mutex_t lock; /* guards frames */
  gr_frame *frames;
};

/* When a node runs: those of a group do so at once, when its first one would. */
static inline uint32_t gr_moment(const graft_graph_exec *exec, uint32_t node) {
  const uint32_t group = exec->steps ? exec->steps[node].group : GR_NONE;
  return group == GR_NONE ? node : exec->groups[group].first;
}

/* Whether values lie in the memory of inputs there. */
static inline bool gr_is_donated(const graft_graph_exec *exec, const gr_place *place) {
  return place->memory == GR_ARENA && place->spot.arena < exec->ndonors;
}

/* Whether a plan leads to a slot of the plugin. */
static inline bool gr_is_slot(const dsp_plan *plan) {
  int route = atomic_load(&plan->route);
  return route == DSP_ROUTE_PLUGIN || route == DSP_ROUTE_EQUAL;
}

/* --- compile.c --- */
/* What an executable is made with. */
typedef struct gr_exec_choice {
  graft_rt_device *device;
  graft_exec_flags flags;
  uint32_t passes;
} gr_exec_choice;
typedef graft_status (*gr_compile_fn)(const graft_graph *graph, graft_graph_exec *exec);
/* A new executable, filled in by `compile` under the graph's modes. */
graft_status gr_compile_with(const graft_graph *graph, const gr_exec_choice *choice, gr_compile_fn compile,
                             graft_graph_exec **exec);
/* What fills one in that holds for the graph's sizes. */
graft_status gr_compile_fixed(const graft_graph *graph, graft_graph_exec *exec);
/* Gives it a graph of its own, on its device. */
graft_status gr_take_graph(const graft_graph *graph, graft_graph_exec *exec);

/* --- lay_over.c --- */
/* An arena is there for a whole run, and so is a donor until the last value in it is read: a large value, of so many
 * bytes, takes less where it comes from the allocator by itself and goes back when nobody reads it any more. That costs
 * the host nothing beside what is done with so many bytes. */
enum { GR_LARGE_BYTES = 1 << 20 };
/* Whether a buffer is an input that a run may have to itself once it is read no more. */
bool gr_may_give(const graft_graph_exec *exec, uint32_t buffer);
/* Whether the value of buffer `to`, which begins at this moment, may have the memory of `from`, which is read there for
 * the last time, as far as both have as many bytes; which elements are read where the caller looks. */
bool gr_may_lie_over(const graft_graph_exec *exec, uint32_t from, uint32_t to, uint32_t moment);
/* Outputs of a compiled group over its inputs. in_place: see graft_graph_compiled. */
void gr_lay_group_over(graft_graph_exec *exec, const gr_group *group, uint64_t in_place);

/* --- bind.c --- */
/* Where an input lies: on the device, or in host memory. */
graft_rt_device *gr_input_device(const graft_graph_exec *exec, const gr_port *port);
/* Whether an input lies as the port of the graph, of these sizes and strides, on the executable's device. */
bool gr_input_fits(const graft_graph_exec *exec, const gr_port *port, const graft_tensor *t, const int64_t *sizes,
                   const int64_t *strides);

/* --- failure.c --- */
/* What a failure of this thread's run is, as far as the run has come. */
extern _Thread_local graft_graph_failure gr_failing;

/* --- compile_open.c --- */
/* The executable for the sizes of these inputs, made where there is none yet; held once more, for
 * graft_graph_exec_destroy. */
graft_status gr_made_for_inputs(graft_graph_exec *exec, graft_tensor *const *inputs, graft_graph_exec **made);

/* --- made.c --- */
graft_status gr_made_new(gr_made **made);
void gr_made_free(gr_made *made); /* the executables are the caller's */
/* The one for these sizes, held once more; or NULL. */
graft_graph_exec *gr_made_find(gr_made *made, const int64_t *values, size_t bytes);
/* Puts it in the place of the one that was not used for longest, which is the caller's then. */
gr_made_item gr_made_put(gr_made *made, gr_made_item item);
/* The one that ran last, where there is one. */
graft_graph_exec *gr_made_latest(const gr_made *made);

/* --- spans.c --- */
/* Finds, for each buffer, the moments between which it is used, and whether it is written. */
void gr_find_spans(graft_graph_exec *exec);

/* --- groups.c --- */
/* Asks the plugin which nodes it takes together, puts these behind each other and compiles them. Steps have their
 * plans, buffers have storages in `frame`, and no memory yet. */
graft_status gr_make_groups(graft_graph_exec *exec, gr_frame *frame);
/* Only asks: the plugin's number of each node, see graft_graph_api.query. `numbers` comes zeroed. */
graft_status gr_ask_groups(graft_graph_exec *exec, gr_frame *frame, uint32_t *numbers);
/* Nothing that a run has submitted is under way. */
void gr_destroy_groups(graft_graph_exec *exec);

/* --- group_order.c --- */
/* An order of the nodes in which those of a group follow each other: node order[0] is first. groups has a number for
 * each node, 0: none. INTERNAL, naming the group, where there is none. */
graft_status gr_order_groups(const graft_graph_exec *exec, const uint32_t *groups, uint32_t *order);

/* --- group_nodes.c --- */
/* Nodes as a plugin sees them. What they point to lies in the memory of the exec. */
typedef struct gr_describer {
  graft_graph_exec *exec;
  gr_frame *frame;
  gr_described **by_buffer; /* what there is of each */
} gr_describer;
graft_status gr_describe_node(gr_describer *describer, uint32_t node, const graft_graph_node **described);
/* NULL: no host memory. */
const graft_tensor_desc *gr_describe_view(gr_describer *describer, const gr_view *view);
static inline const gr_described *gr_described_of(const graft_tensor_desc *desc) {
  return (const gr_described *)(const void *)((const char *)desc - offsetof(gr_described, desc));
}

/* --- frame.c --- */
graft_status gr_frame_new(const graft_graph_exec *exec, gr_frame **frame);
void gr_frame_free(gr_frame *frame);
/* Gives a buffer its memory in this frame: all its cells lie in the storage, from byte `base` on. */
graft_status gr_frame_bind(const graft_graph_exec *exec, gr_frame *frame, uint32_t buffer, graft_storage *storage,
                           uint64_t base);

#endif
