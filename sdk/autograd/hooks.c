/* Functions that see, and may replace, a gradient on its way. They hang on an output of a node, so a tensor that is
 * changed in place later leaves them with the value they were made for. */
#include <stdlib.h>

#include "autograd/node.h"

static _Atomic(uint64_t) next_handle = 1;

graft_status graft_tensor_add_hook(graft_tensor *tensor, graft_hook_fn hook, void *context, uint64_t *handle) {
  if (!tensor) return err_null(__func__, "tensor");
  if (!hook) return err_null(__func__, "hook");
  if (tensor->traced)
    return err_set(GRAFT_UNIMPLEMENTED,
                   "add_hook: the tensor is a value of a graph with open sizes, which can't call it at others");
  if (!ag_requires(tensor)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "add_hook: the tensor does not require grad, so no gradient will reach it");
  }
  ag_hook *entry = malloc(sizeof *entry);
  if (!entry) return err_set(GRAFT_OUT_OF_MEMORY, "add_hook: no host memory");
  ag_node *node = tensor->autograd->node;
  uint64_t number = atomic_fetch_add(&next_handle, 1);
  *entry = (ag_hook){NULL, hook, context, number, tensor->autograd->output};
  pthread_mutex_lock(&node->lock);
  ag_hook **end = &node->hooks; /* hooks run in the order they were added */
  while (*end) end = &(*end)->next;
  *end = entry;
  pthread_mutex_unlock(&node->lock);
  if (handle) *handle = number;
  return GRAFT_OK;
}

graft_status graft_tensor_remove_hook(graft_tensor *tensor, uint64_t handle) {
  if (!tensor) return err_null(__func__, "tensor");
  ag_node *node = tensor->autograd ? tensor->autograd->node : NULL;
  ag_hook *found = NULL;
  if (node) {
    pthread_mutex_lock(&node->lock);
    ag_hook **at = &node->hooks;
    while (*at && (*at)->handle != handle) at = &(*at)->next;
    found = *at;
    if (found) *at = found->next;
    pthread_mutex_unlock(&node->lock);
  }
  if (!found) {
    return err_set(GRAFT_INVALID_ARGUMENT, "remove_hook: the tensor has no hook with handle %llu",
                   (unsigned long long)handle);
  }
  free(found);
  return GRAFT_OK;
}

static graft_status check_replacement(const ag_node *node, const graft_tensor *was, const graft_tensor *is) {
  if (was->dtype == is->dtype && was->device == is->device && tns_same_sizes(was, is)) return GRAFT_OK;
  char before[160], after[160];
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "a hook on a result of %s replaced a gradient %s by %s; expected the same "
                 "shape, dtype and device",
                 ag_node_name(node), tns_describe(was, before, sizeof before), tns_describe(is, after, sizeof after));
}

/* The first hook of an output whose handle is above `after`. A hook may add and remove hooks, so the list is entered
 * anew for each. */
static bool next_hook(ag_node *node, uint32_t output, uint64_t after, ag_hook *copy) {
  pthread_mutex_lock(&node->lock);
  ag_hook *at = node->hooks;
  while (at && (at->output != output || at->handle <= after)) at = at->next;
  if (at) *copy = *at;
  pthread_mutex_unlock(&node->lock);
  return at != NULL;
}

graft_status ag_hooks_run(ag_node *node, uint32_t output, graft_tensor **gradient) {
  ag_hook hook = {.handle = 0};
  while (next_hook(node, output, hook.handle, &hook)) {
    graft_tensor *replacement = NULL;
    graft_status status = hook.call(hook.context, *gradient, &replacement);
    if (!status && replacement) status = check_replacement(node, *gradient, replacement);
    if (status) {
      graft_tensor_release(replacement);
      return status;
    }
    if (!replacement) continue;
    graft_tensor_release(*gradient);
    *gradient = replacement;
  }
  return GRAFT_OK;
}
