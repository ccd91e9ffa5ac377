/* Values that gradients need: keeping them, finding that they were changed, giving them up. */
#include <stdio.h>

#include "autograd/node.h"

/* What marks a stale value: a leaf that nobody reaches. */
static ag_node stale_mark = {
    .refs = 1, .sequence = AG_LEAF_SEQUENCE, .stopped = true, .lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local struct { bool watched, used; } stale;

void ag_stale_watch(void) {
  stale.watched = true;
  stale.used = false;
}

bool ag_stale_was_used(void) {
  stale.watched = false;
  return stale.used;
}

bool ag_stale_is_watched(void) {
  return stale.watched;
}

void ag_stale_note(const graft_tensor *t) {
  if (t && t->autograd && t->autograd->node == &stale_mark) stale.used = true;
}

static uint64_t version_of(const graft_tensor *t) {
  return t->storage ? atomic_load_explicit(&t->storage->version, memory_order_relaxed) : 0;
}

static graft_status shape_of(const graft_tensor *t, graft_tensor **shape) {
  graft_status status = tns_new(NULL, t->device, t->dtype, t->ndim, t->sizes, t->strides, t->offset, shape);
  if (!status) (*shape)->flags = t->flags;
  return status;
}

graft_status ag_save(ag_saved *saved, graft_tensor *tensor, bool values) {
  if (!tensor) return GRAFT_OK;
  saved->checked = true;
  if (!values || !tensor->storage) return shape_of(tensor, &saved->tensor);
  saved->version = version_of(tensor);
  return tns_view(tensor, tensor->ndim, tensor->sizes, tensor->strides, tensor->offset, &saved->tensor);
}

static void clear(ag_saved *saved) {
  graft_tensor_release(saved->tensor);
  saved->tensor = NULL;
}

static bool is_stale(const ag_saved *saved) {
  if (saved->overwritten) return true;
  return saved->version && saved->checked && version_of(saved->tensor) != saved->version;
}

graft_tensor *ag_unsave(fx *s, const ag_saved *saved, ag_edge history) {
  graft_tensor *t = saved->tensor;
  if (s->status || !t || !saved->version) return t;
  if (is_stale(saved)) history = (ag_edge){&stale_mark, 0};
  if (!history.node) return t;
  graft_tensor *copy = NULL;
  graft_status status = tns_view(t, t->ndim, t->sizes, t->strides, t->offset, &copy);
  if (!status) status = ag_meta_set(copy, history.node, history.output, false);
  if (status) fx_fail(s, status);
  return fx_own(s, copy);
}

static graft_status stale_text(const ag_node *node, const ag_saved *saved, const char *what, const char *name) {
  char shape[160];
  tns_describe(saved->tensor, shape, sizeof shape);
  if (saved->overwritten) {
    return err_about(GRAFT_INVALID_ARGUMENT, node->schema->name,
                     "its gradient needs the %s %s %s, which the call itself wrote over; use the form that is not in "
                     "place",
                     what, name, shape);
  }
  return err_about(GRAFT_INVALID_ARGUMENT, node->schema->name,
                   "its gradient needs the %s %s %s, which was changed in place since: it is at version %llu, "
                   "expected version %llu; change a copy, or after backward",
                   what, name, shape, (unsigned long long)version_of(saved->tensor),
                   (unsigned long long)saved->version);
}

graft_status ag_stale_error(const ag_node *node) {
  for (uint32_t a = 0; a < node->nargs; a++) {
    for (uint32_t i = 0; i < ag_slots_of(&node->args[a]); i++) {
      const ag_saved *saved = &node->inputs[node->first_slot[a] + i];
      if (saved->tensor && is_stale(saved)) return stale_text(node, saved, "argument", node->schema->args[a].name);
    }
  }
  for (uint32_t i = 0; i < node->nouts; i++) {
    const ag_saved *saved = &node->outs[i];
    char number[16];
    snprintf(number, sizeof number, "%u", i);
    if (saved->tensor && is_stale(saved)) return stale_text(node, saved, "result", number);
  }
  return GRAFT_OK;
}

void ag_node_free_values(ag_node *node) {
  if (!node->holds_values || node->freed) return;
  node->freed = true;
  for (uint32_t i = 0; i < node->nslots; i++) clear(&node->inputs[i]);
  for (uint32_t i = 0; i < node->nouts; i++) clear(&node->outs[i]);
}
