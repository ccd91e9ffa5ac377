/* A compiled graph: what compile.c makes and run.c reads. Nothing of it changes while it runs, but for the pool of
 * frames, so any number of threads may run it. */
#ifndef GRAFT_SDK_GRAPH_EXEC_H
#define GRAFT_SDK_GRAPH_EXEC_H

#include "dispatch/plan.h"
#include "graph/graph.h"

/* Where a buffer's memory comes from in a run. */
typedef enum gr_memory {
  GR_UNUSED,
  GR_BOUND, /* the tensor of an input */
  GR_KEPT,  /* a constant */
  GR_ARENA, /* a part of an arena */
  GR_OWN,   /* a storage of its own, from its first node on: it is seen from outside, or is not planned */
  GR_LOOSE  /* the storage in which a node that runs by other means than a slot gives its result */
} gr_memory;

typedef struct gr_place {
  gr_memory memory;
  bool is_output;
  bool written;         /* by some node */
  uint32_t first, last; /* nodes; first GR_NONE: no node uses it */
  uint32_t input;       /* of GR_BOUND */
  uint32_t same_as;     /* the buffer whose memory it takes over, which ends where this begins; GR_NONE: its own */
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
  graft_value *args;                               /* in full, without tensors */
  uint32_t *operands;                              /* cells; GR_NONE: absent */
  uint32_t *results;                               /* cells; GR_NONE: absent */
  bool gives;                                      /* its new results are its own: GR_LOOSE */
  uint32_t first_operand, first_arg, first_result; /* of its part in a frame's arrays */
} gr_step;

/* What one run needs of its own, kept for the next one. */
typedef struct gr_frame {
  struct gr_frame *next;
  graft_tensor *cells;
  graft_value *args;        /* of all steps, with this frame's tensors */
  graft_tensor **operands;  /* of all steps: what lists point to */
  graft_tensor **results;   /* of all steps */
  graft_storage **storages; /* by buffer; owned where GR_OWN or GR_LOOSE */
  uint64_t *bases;          /* by buffer: its first byte in the storage */
  graft_storage **arenas;
} gr_frame;

struct graft_graph_exec {
  graft_graph *graph; /* its own */
  graft_rt_device *device;
  graft_exec_flags flags; /* of the compiling thread: plans hold for these */
  uint32_t passes;
  gr_place *places; /* by buffer */
  gr_cell *cells;
  gr_step *steps; /* by node */
  uint64_t *arena_bytes;
  uint32_t ncells, narenas, noperands, nargs, nresults;
  uint64_t value_bytes;
  graft_tensor *claim; /* of no bytes: it keeps the device open */
  arena memory;
  pthread_mutex_t lock; /* guards frames */
  gr_frame *frames;
};

/* --- frame.c --- */
graft_status gr_frame_new(const graft_graph_exec *exec, gr_frame **frame);
void gr_frame_free(gr_frame *frame);
/* Gives a buffer its memory in this frame: all its cells lie in the storage, from byte `base` on. */
graft_status gr_frame_bind(const graft_graph_exec *exec, gr_frame *frame, uint32_t buffer, graft_storage *storage,
                           uint64_t base);

#endif
