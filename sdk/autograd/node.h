/* The tape: one node a recorded call, one node a leaf. Private to autograd/.
 *
 * A node owns what its gradient needs and, through its edges, the nodes of the inputs; so a graph lives as long as the
 * tensors at its end, and it never holds a tensor that has a history: what is saved is an alias without one, and the
 * history is put back when the value is used. So there are no reference cycles.
 *
 * Begin reading in record.c (how a graph comes about), then engine.c (how it is run). */
#ifndef GRAFT_SDK_AUTOGRAD_NODE_H
#define GRAFT_SDK_AUTOGRAD_NODE_H

#include <pthread.h>

#include "autograd/autograd.h"

typedef struct ag_node ag_node;

/* Where a gradient goes: output `output` of `node`. node NULL: nowhere. */
typedef struct ag_edge {
  ag_node *node;
  uint32_t output;
} ag_edge;

/* A tensor that a formula sees: its shape always, its values where `version` is not 0. `overwritten` has values too,
 * but not those that the formula means. */
typedef struct ag_saved {
  graft_tensor *tensor;
  uint64_t version; /* of the storage when it was saved */
  bool checked;     /* a later change is an error; false for what the op itself keeps changing (running statistics) */
  bool overwritten; /* the call itself wrote over the value that was to be saved */
} ag_saved;

typedef struct ag_hook {
  struct ag_hook *next;
  graft_hook_fn call;
  void *context;
  uint64_t handle;
  uint32_t output;
} ag_hook;

/* Leaves run first among what is ready: their sequence is the largest. */
#define AG_LEAF_SEQUENCE UINT64_MAX

/* Tensors among the arguments are numbered through: a Tensor[] argument takes one slot an item. One allocation holds a
 * node and all arrays. */
struct ag_node {
  atomic_int refs;
  uint64_t sequence;       /* larger than that of every node its edges lead to, leaves excepted */
  const op_schema *schema; /* NULL: a leaf */
  const op_def *def;       /* NULL: the host knows no rule for the op */
  uint32_t nargs, nouts, nslots;
  graft_value *args;    /* tensors left out: they stand in slots */
  uint32_t *first_slot; /* one an argument */
  ag_edge *edges;       /* one a slot */
  ag_saved *inputs;     /* one a slot */
  ag_saved *outs;
  bool holds_values; /* something was saved with its values */
  bool freed;        /* and given up by an earlier backward */
  graft_rt_device *device;
  uint64_t stream_id;   /* that the call ran on */
  pthread_mutex_t lock; /* hooks, and a leaf's grad */
  ag_hook *hooks;
  graft_tensor *grad; /* of a leaf */
  bool stopped;       /* a leaf that requires grad no longer */
  ag_node *next_dead;
};

/* A tensor's place in the graph. */
struct ag_meta {
  ag_node *node; /* never NULL */
  uint32_t output;
  bool requires_grad; /* always true but for leaves */
  bool is_view;       /* made by a recorded view op */
  bool viewed;        /* a recorded view op was applied to it */
};

static inline bool ag_requires(const graft_tensor *t) {
  return t && t->autograd && t->autograd->requires_grad;
}
static inline bool ag_differentiable(const graft_tensor *t) {
  return t && (dt_is_float(t->dtype) || dt_is_complex(t->dtype));
}

/* --- node.c --- */
graft_status ag_node_new(const op_schema *schema, const op_def *def, const graft_value *args, uint32_t nargs,
                         uint32_t nouts, ag_node **node);
graft_status ag_leaf_new(const graft_tensor *like, ag_node **node);
void ag_node_retain(ag_node *node);
void ag_node_release(ag_node *node); /* NULL is accepted; never recurses */
/* "aten::mul.Tensor", or what stands for a leaf. */
const char *ag_node_name(const ag_node *node);
/* The letter of op_def.roles for an argument; 'k' where there is none. */
char ag_node_role(const ag_node *node, uint32_t arg);
/* The schema's return that a flat output belongs to: a Tensor[] return has as many as its list. */
uint32_t ag_return_of(const op_schema *schema, uint32_t out, uint32_t nouts);
static inline uint32_t ag_slots_of(const graft_value *arg) {
  return arg->kind == GRAFT_VALUE_TENSOR ? 1 : arg->kind == GRAFT_VALUE_TENSORS ? arg->count : 0;
}

/* --- saved.c --- */
/* Saves the shape of a tensor, and its values where `values`. */
graft_status ag_save(ag_saved *saved, graft_tensor *tensor, bool values);
/* The tensor of a saved value for a formula, owned by the scope; with `history` where that is given (node not NULL). */
graft_tensor *ag_unsave(fx *s, const ag_saved *saved, ag_edge history);

/* A saved value that was changed since is an error only if the formula uses it (the gradient of x * c with respect to
 * x does not use x). So a stale value is handed out marked, and ag_wanted, which sees the arguments of every op, notes
 * its use. */
void ag_stale_watch(void);    /* before a formula */
bool ag_stale_was_used(void); /* after it */
bool ag_stale_is_watched(void);
void ag_stale_note(const graft_tensor *tensor);
/* The error of a formula that used a stale value. */
graft_status ag_stale_error(const ag_node *node);
/* Gives up the saved values after a backward that does not retain the graph. */
void ag_node_free_values(ag_node *node);

/* --- meta.c --- */
/* Makes a tensor output `output` of a node; its former place is given up. */
graft_status ag_meta_set(graft_tensor *tensor, ag_node *node, uint32_t output, bool is_view);

/* --- leaf.c --- */
/* Adds a gradient to a leaf's. Takes over the reference. */
graft_status ag_leaf_add(ag_node *leaf, graft_tensor *gradient, bool create_graph);
/* a + b: in place where nobody else sees `a` and no graph is wanted. Takes over both references. */
graft_status ag_sum(graft_tensor *a, graft_tensor *b, bool create_graph, graft_tensor **sum);

/* --- hooks.c --- */
/* Runs the hooks of one output on its gradient, which they may replace. */
graft_status ag_hooks_run(ag_node *node, uint32_t output, graft_tensor **gradient);

/* --- formula.c --- */
/* Computes the gradients of a node's inputs: results has nslots items, owned references or NULL, and wanted one byte
 * a slot. g has nouts items; at least one is not NULL. create_graph: the results have a history of their own. */
graft_status ag_formula_run(ag_node *node, graft_tensor *const *g, const uint8_t *wanted, bool create_graph,
                            graft_tensor **results);

/* --- stream.c --- */
/* The stream that a node's gradient is computed on: the one its call ran on, or the current one where that is gone. */
graft_rt_stream *ag_stream_of(const ag_node *node);
/* Makes `tensor`, computed on stream `from`, usable on `to`. */
graft_status ag_stream_hand_over(graft_tensor *tensor, graft_rt_stream *from, graft_rt_stream *to);

#endif
