/* A tensor's place in the graph, as the public header shows it. */
#include <stdlib.h>

#include "autograd/node.h"

graft_status ag_meta_set(graft_tensor *tensor, ag_node *node, uint32_t output, bool is_view) {
  ag_meta *meta = tensor->autograd;
  if (!meta && !(meta = calloc(1, sizeof *meta))) {
    return err_about(GRAFT_OUT_OF_MEMORY, ag_node_name(node), "no host memory to record it");
  }
  ag_node *former = meta->node;
  ag_node_retain(node);
  meta->node = node;
  meta->output = output;
  meta->requires_grad = true;
  meta->is_view = is_view;
  tensor->autograd = meta;
  ag_node_release(former);
  return GRAFT_OK;
}

void ag_meta_release(ag_meta *meta) {
  if (!meta) return;
  ag_node_release(meta->node);
  free(meta);
}

static bool is_leaf(const graft_tensor *t) {
  return !t->autograd || !t->autograd->node->schema;
}

/* The leaf node of a tensor, made where it has none. */
static graft_status leaf_of(graft_tensor *tensor, ag_node **leaf) {
  if (!tensor->autograd) {
    ag_node *node;
    graft_status status = ag_leaf_new(tensor, &node);
    if (status) return status;
    status = ag_meta_set(tensor, node, 0, false);
    ag_node_release(node); /* the tensor holds it now */
    if (status) return status;
    tensor->autograd->requires_grad = false;
    node->stopped = true;
  }
  *leaf = tensor->autograd->node;
  return GRAFT_OK;
}

/* Graphs that lead to a leaf know its node only, so it hears of it too. */
static void stop(ag_meta *leaf, bool stopped) {
  leaf->requires_grad = !stopped;
  leaf->node->stopped = stopped;
}

graft_status graft_tensor_set_requires_grad(graft_tensor *tensor, bool requires_grad) {
  if (!tensor) return err_null(__func__, "tensor");
  if (!is_leaf(tensor)) {
    if (requires_grad) return GRAFT_OK;
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "set_requires_grad: only a leaf can stop requiring grad, and this is a result of %s; use "
                   "graft_tensor_detach",
                   ag_node_name(tensor->autograd->node));
  }
  if (!requires_grad) {
    if (tensor->autograd) stop(tensor->autograd, true);
    return GRAFT_OK;
  }
  if (!ag_differentiable(tensor)) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "set_requires_grad: a tensor of dtype %s has no gradient; expected a floating "
                   "or complex dtype",
                   graft_dtype_name(tensor->dtype));
  }
  if ((tensor->flags & TNS_INFERENCE) && !graft_inference_mode()) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "set_requires_grad: the tensor was made in inference mode and takes no part in autograd; clone it");
  }
  ag_node *leaf;
  graft_status status = leaf_of(tensor, &leaf);
  if (!status) stop(tensor->autograd, false);
  return status;
}

bool graft_tensor_requires_grad(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return false;
  return ag_requires(tensor);
}

bool graft_tensor_is_leaf(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return false;
  return is_leaf(tensor);
}

graft_tensor *graft_tensor_grad(const graft_tensor *tensor) {
  if (err_is_null(tensor, __func__, "tensor")) return NULL;
  return tensor->autograd ? tensor->autograd->node->grad : NULL;
}

static graft_status check_grad(const graft_tensor *tensor, const graft_tensor *grad) {
  char is[160], expected[160];
  if (!is_leaf(tensor)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "set_grad: only a leaf holds a gradient, and this is a result of %s",
                   ag_node_name(tensor->autograd->node));
  }
  if (grad == tensor) return err_set(GRAFT_INVALID_ARGUMENT, "set_grad: a tensor can't be its own gradient");
  if (tns_same_sizes(tensor, grad) && tensor->dtype == grad->dtype && tensor->device == grad->device) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "set_grad: the gradient is %s on %s, expected %s on %s as the tensor is",
                 tns_describe(grad, is, sizeof is), graft_device_text(grad->device),
                 tns_describe(tensor, expected, sizeof expected), graft_device_text(tensor->device));
}

graft_status graft_tensor_set_grad(graft_tensor *tensor, graft_tensor *grad) {
  if (!tensor) return err_null(__func__, "tensor");
  if (tensor->traced)
    return err_set(GRAFT_UNIMPLEMENTED,
                   "set_grad: the tensor is a value of a graph with open sizes, which is not told");
  if (!grad && !tensor->autograd) return GRAFT_OK;
  graft_status status = grad ? check_grad(tensor, grad) : GRAFT_OK;
  ag_node *leaf;
  if (!status) status = leaf_of(tensor, &leaf);
  if (status) return status;
  if (grad) graft_tensor_retain(grad);
  pthread_mutex_lock(&leaf->lock);
  graft_tensor *former = leaf->grad;
  leaf->grad = grad;
  pthread_mutex_unlock(&leaf->lock);
  graft_tensor_release(former);
  return GRAFT_OK;
}

graft_status graft_tensor_detach(graft_tensor *tensor, graft_tensor **detached) {
  if (!tensor) return err_null(__func__, "tensor");
  if (!detached) return err_null(__func__, "detached");
  return tns_view(tensor, tensor->ndim, tensor->sizes, tensor->strides, tensor->offset, detached);
}
