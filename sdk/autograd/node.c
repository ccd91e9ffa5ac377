/* Nodes: making, naming and releasing them. */
#include <stdlib.h>
#include <string.h>

#include "autograd/node.h"

/* Leaves are not counted: see AG_LEAF_SEQUENCE. */
static _Atomic(uint64_t) next_sequence = 1;

/* A block that is measured first (base NULL) and then handed out piece by piece. */
typedef struct block {
  unsigned char *base;
  size_t used;
} block;

static void *take(block *a, size_t bytes) {
  void *piece = a->base ? a->base + a->used : NULL;
  a->used += (bytes + 15) & ~(size_t)15;
  return piece;
}

static void copy_arg(block *a, graft_value *to, const graft_value *from) {
  size_t bytes = op_value_bytes(from);
  if (to) *to = *from;
  if (!bytes) return;
  void *copy = take(a, bytes);
  if (!copy) return;
  memcpy(copy, from->as.ints, bytes);
  to->as.ints = copy; /* the pointers of the union are one */
}

static ag_node *lay_out(block *a, const graft_value *args, uint32_t nargs, uint32_t nslots, uint32_t nouts) {
  ag_node *n = take(a, sizeof *n);
  graft_value *values = take(a, nargs * sizeof *values);
  uint32_t *first_slot = take(a, nargs * sizeof *first_slot);
  ag_edge *edges = take(a, nslots * sizeof *edges);
  ag_saved *inputs = take(a, nslots * sizeof *inputs);
  ag_saved *outs = take(a, nouts * sizeof *outs);
  for (uint32_t i = 0, slot = 0; i < nargs; slot += ag_slots_of(&args[i]), i++) {
    copy_arg(a, n ? &values[i] : NULL, &args[i]);
    if (n) first_slot[i] = slot;
  }
  if (!n) return NULL;
  n->args = values;
  n->first_slot = first_slot;
  n->edges = edges;
  n->inputs = inputs;
  n->outs = outs;
  return n;
}

graft_status ag_node_new(const op_schema *schema, const op_def *def, const graft_value *args, uint32_t nargs,
                         uint32_t nouts, ag_node **node) {
  uint32_t nslots = 0;
  for (uint32_t i = 0; i < nargs; i++) nslots += ag_slots_of(&args[i]);
  block a = {NULL, 0};
  lay_out(&a, args, nargs, nslots, nouts);
  a.base = calloc(1, a.used);
  if (!a.base) return err_about(GRAFT_OUT_OF_MEMORY, schema ? schema->name : "leaf", "no host memory to record it");
  a.used = 0;
  ag_node *n = lay_out(&a, args, nargs, nslots, nouts);
  atomic_init(&n->refs, 1);
  n->schema = schema;
  n->def = def;
  n->nargs = nargs;
  n->nslots = nslots;
  n->nouts = nouts;
  n->sequence = schema ? atomic_fetch_add_explicit(&next_sequence, 1, memory_order_relaxed) : AG_LEAF_SEQUENCE;
  pthread_mutex_init(&n->lock, NULL);
  *node = n;
  return GRAFT_OK;
}

graft_status ag_leaf_new(const graft_tensor *like, ag_node **node) {
  ag_node *n;
  graft_status status = ag_node_new(NULL, NULL, NULL, 0, 1, &n);
  if (status) return status;
  status = tns_new(NULL, like->device, like->dtype, like->ndim, like->sizes, like->strides, 0, &n->outs[0].tensor);
  if (status) {
    ag_node_release(n);
    return status;
  }
  n->device = like->device;
  *node = n;
  return GRAFT_OK;
}

void ag_node_retain(ag_node *node) {
  atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
}

static void destroy(ag_node *n) {
  for (uint32_t i = 0; i < n->nslots; i++) {
    ag_node_release(n->edges[i].node);
    graft_tensor_release(n->inputs[i].tensor);
  }
  for (uint32_t i = 0; i < n->nouts; i++) graft_tensor_release(n->outs[i].tensor);
  graft_tensor_release(n->grad);
  while (n->hooks) {
    ag_hook *next = n->hooks->next;
    free(n->hooks);
    n->hooks = next;
  }
  pthread_mutex_destroy(&n->lock);
  free(n);
}

/* A chain of a hundred thousand calls must not become a stack of as many frames: nodes that die while another is being
 * destroyed wait in a list. */
void ag_node_release(ag_node *node) {
  static _Thread_local ag_node *dead;
  static _Thread_local bool busy;
  if (!node || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1) return;
  node->next_dead = dead;
  dead = node;
  if (busy) return;
  busy = true;
  while (dead) {
    ag_node *n = dead;
    dead = n->next_dead;
    destroy(n);
  }
  busy = false;
}

const char *ag_node_name(const ag_node *node) {
  return node->schema ? node->schema->name : "a leaf";
}

char ag_node_role(const ag_node *node, uint32_t arg) {
  return node->def && node->def->roles ? op_role(node->schema, node->def, arg) : 'k';
}

uint32_t ag_return_of(const op_schema *schema, uint32_t out, uint32_t nouts) {
  uint32_t lists = 0;
  for (uint32_t r = 0; r < schema->nrets; r++) lists += schema->rets[r].kind == OPK_TENSORS;
  if (!lists) return out;
  uint32_t length = (nouts - (schema->nrets - lists)) / lists, end = 0;
  for (uint32_t r = 0; r < schema->nrets; r++) {
    end += schema->rets[r].kind == OPK_TENSORS ? length : 1;
    if (out < end) return r;
  }
  return schema->nrets;
}
