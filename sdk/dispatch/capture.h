/* Captures: what streams are given becomes a list of launches, which is run as often as wanted.
 *
 * It is taken where a call would enter the plugin, or host memory would be touched: behind rules, plans,
 * decompositions, temporaries and autograd, which have done their part once and for all. A launch names memory as its
 * call did. Memory that is made meanwhile comes from the capture's pool, which nobody else uses, and what has another
 * origin is held, so that all of it is where it was. capture.c makes launches, launch.c runs them, stand_in.c has them
 * name other memory for once. */
#ifndef GRAFT_SDK_DISPATCH_CAPTURE_H
#define GRAFT_SDK_DISPATCH_CAPTURE_H

#include "dispatch/plan.h"
#include "graft/abi/extension.h"
#include "graft/abi/graph.h"
#include "graft/graph.h"
#include "tensor/capture.h"

typedef enum dsp_launch_kind {
  DSP_LAUNCH_SLOT,
  DSP_LAUNCH_GROUP,
  DSP_LAUNCH_BYTES,
  DSP_LAUNCH_ELEMENTS,
  DSP_LAUNCH_NUMBER
} dsp_launch_kind;

/* A descriptor that says which version of a storage it shows: filled in before each launch, since contents change
 * between launches. Storages of the pool say 0: plugins cache nothing of them. */
typedef struct dsp_seen {
  uint64_t *version;
  const graft_storage *storage;
} dsp_seen;

/* Bytes in a buffer. */
typedef struct dsp_bytes {
  graft_buffer *buffer;
  uint64_t offset;
} dsp_bytes;

/* Where a launch names memory, so that other memory can stand there for once: a descriptor, or bytes, or neither where
 * the host does the work in the memory of then. */
typedef struct dsp_place {
  graft_tensor_desc *desc;
  bool shows_version; /* of the storage, in the descriptor */
  dsp_bytes *bytes;
  uint64_t storage_id;
  dsp_seen *seen; /* of the descriptor; NULL: it shows no version */
  bool written;
} dsp_place;

/* A tensor by itself: its storage is a copy that has its place in memory and nothing else. */
typedef struct dsp_apart {
  graft_tensor tensor;
  graft_storage storage;
} dsp_apart;

typedef struct dsp_launch {
  dsp_launch_kind kind;
  uint32_t nseen, nwritten;
  dsp_seen *seen;
  graft_storage **written; /* storages that are held: their versions change */
  union {
    struct {
      dsp_plan *plan;
      const graft_args *args;
      graft_philox *philox; /* NULL: it draws no numbers. What is drawn from is found out at each launch */
    } slot;
    struct {
      const graft_graph_api *api;
      graft_executable *executable;
      graft_graph_run_args args;
      dsp_plan *const *drawing; /* of its calls that draw, in their order; the graph holds them */
      graft_philox *philox;     /* for each of these, found out at each launch */
      uint32_t ndraws;
    } group;
    struct {
      dsp_bytes *to, *from;
      uint64_t count;
    } bytes;
    struct {
      dsp_apart *to, *from;
      bool conj, neg;
    } elements;
    struct {
      dsp_bytes *to;
      const void *element;
      uint64_t count;
    } number;
  } as;
} dsp_launch;

/* The launches as the plugin has recorded them itself: extension "graft.capture". */
typedef struct dsp_record {
  bool tried, is_there;
  const graft_capture_api *api;
  graft_captured *captured;
  uint64_t seed;       /* of the generator when it was recorded */
  uint64_t draws;      /* of one launch, in words */
  uint64_t offset;     /* that the launch now to be made draws from */
  graft_tensor *state; /* what is added to the offsets of its draws; NULL: it draws nothing */
  mem_block **workspaces;
  uint32_t nworkspaces, workspace_room;
} dsp_record;

/* Something that the capture keeps alive. */
typedef struct dsp_kept {
  void *what;
  void (*release)(void *what);
} dsp_kept;

typedef struct dsp_capture {
  tns_capture base;
  graft_exec_flags flags;
  pthread_mutex_t lock; /* guards all below: autograd's threads call, too; and one launch runs at a time */
  arena memory;
  dsp_launch *launches;
  dsp_kept *kept;
  dsp_place *places; /* of all launches */
  uint32_t nlaunches, launch_room, nkept, kept_room, nplaces, place_room;
  dsp_record record;
  void (*drop_record)(struct dsp_capture *self); /* NULL: none was made */
  bool failed;
  char failure[512];
} dsp_capture;

/* The capture that the current stream's work goes to, or NULL. */
static inline dsp_capture *dsp_capture_of(graft_rt_device *device) {
  return (dsp_capture *)(void *)tns_capture_of(device);
}

void dsp_capture_init(dsp_capture *capture);
/* What it kept goes: nothing that a launch has submitted is under way. */
void dsp_capture_free(dsp_capture *capture);

/* INVALID_ARGUMENT, naming the op and saying why it can't be captured; the capture has ended. It is not UNIMPLEMENTED,
 * which would send the call's plan to another way for good. */
graft_status dsp_capture_refuse(dsp_capture *capture, const char *op, const char *why);
/* The error where a capture has ended, or can't hold the slot's call of a plan. */
graft_status dsp_capture_admits(dsp_capture *capture, const dsp_plan *plan);

/* Zeroed memory that lives as long; NULL: no host memory. */
void *dsp_capture_take(dsp_capture *capture, size_t bytes);
void *dsp_capture_copy(dsp_capture *capture, const void *from, size_t bytes);
/* Keeps something alive; on failure it is released. */
graft_status dsp_capture_keep(dsp_capture *capture, void *what, void (*release)(void *what));
/* Notes a storage of a launch that is made, and where it is named (desc, shows_version, bytes, written): it is held
 * unless it is of the pool. The launch's arrays have room. */
graft_status dsp_capture_see(dsp_capture *capture, dsp_launch *launch, graft_storage *storage, dsp_place place);
/* Room for so many tensors. */
graft_status dsp_capture_room(dsp_capture *capture, dsp_launch *launch, uint32_t tensors);
/* Appends it; what it points to lives as long as the capture. */
graft_status dsp_capture_add(dsp_capture *capture, const dsp_launch *launch);
/* A group that the plugin compiled: its descriptors, which are copied but for their shapes, and the storage of each. */
typedef struct dsp_group_call {
  const graft_graph_api *api;
  graft_executable *executable;
  uint32_t ninputs, noutputs;
  const graft_tensor_desc *const *descs; /* inputs, then outputs */
  graft_storage *const *storages;        /* likewise */
  dsp_plan *const *drawing;              /* of its calls that draw, in their order */
  uint32_t ndraws;
} dsp_group_call;
graft_status dsp_capture_group(dsp_capture *capture, const dsp_group_call *group);

/* --- launch.c --- */
/* Gives all launches to the current stream, in their order, with other tensors in the place of some. A failure names
 * the launch. */
graft_status dsp_capture_launch(dsp_capture *capture, const graft_graph_stand_in *items, uint32_t count);

/* --- stand_in.c --- */
/* Whether launches can name that memory in the place of the captured one. */
bool dsp_can_stand_in(const dsp_capture *capture, const graft_graph_stand_in *items, uint32_t count);
/* Has them do so, or what they named before. */
void dsp_stand_in(dsp_capture *capture, const graft_graph_stand_in *items, uint32_t count);
void dsp_stand_back(dsp_capture *capture, const graft_graph_stand_in *items, uint32_t count);

#endif
