/* Collecting gradients: sums on the way, and the gradient of a leaf. */
#include "autograd/node.h"
#include "graft/abi/op_ids.h"
#include "ops/generated/fx_ops.h"

/* Whether nothing else refers to the tensor or its memory. */
static bool is_unshared(const graft_tensor *t) {
  return atomic_load_explicit(&t->refs, memory_order_acquire) == 1 && t->storage &&
         atomic_load_explicit(&t->storage->refs, memory_order_acquire) == 1;
}

/* The same values without history; takes over the reference. */
static graft_status without_history(graft_tensor *tensor, graft_tensor **plain) {
  *plain = tensor;
  if (!tensor->autograd) return GRAFT_OK;
  graft_status status = graft_tensor_detach(tensor, plain);
  graft_tensor_release(tensor);
  return status;
}

static graft_status add_into(graft_tensor *to, graft_tensor *more) {
  graft_value args[] = {fx_tensor(to), fx_tensor(more)};
  bool grad = graft_grad_mode_set(false);
  graft_status status = graft_call(GRAFT_OP_ADD_TENSOR, args, 2, &to, 1);
  graft_grad_mode_set(grad);
  return status;
}

static graft_status add_new(graft_tensor *a, graft_tensor *b, graft_tensor **sum) {
  fx s;
  fx_begin(&s, &fx_execute);
  *sum = fx_keep(&s, fx_add(&s, a, b));
  return fx_end(&s);
}

graft_status ag_sum(graft_tensor *a, graft_tensor *b, bool create_graph, graft_tensor **sum) {
  graft_status status;
  if (!create_graph && is_unshared(a) && tns_is_dense(a->ndim, a->sizes, a->strides)) {
    status = add_into(a, b);
    *sum = a;
    if (status) graft_tensor_release(a);
  } else {
    status = add_new(a, b, sum);
    graft_tensor_release(a);
  }
  graft_tensor_release(b);
  return status;
}

/* A gradient is kept as it came only where it lies in memory as the leaf does; so that optimizers see one layout. */
static bool has_layout_of(const graft_tensor *t, const graft_tensor *leaf) {
  if (!tns_is_dense(leaf->ndim, leaf->sizes, leaf->strides)) return graft_tensor_is_contiguous(t);
  for (int32_t i = 0; i < t->ndim; i++) {
    if (t->sizes[i] > 1 && t->strides[i] != leaf->strides[i]) return false;
  }
  return true;
}

static graft_status copy_like(const graft_tensor *leaf, graft_tensor *gradient, graft_tensor **copy) {
  const int64_t *strides = tns_is_dense(leaf->ndim, leaf->sizes, leaf->strides) ? leaf->strides : NULL;
  graft_status status = graft_tensor_empty_strided(leaf->device, leaf->dtype, leaf->ndim, leaf->sizes, strides, copy);
  if (!status && (status = graft_tensor_copy(*copy, gradient))) graft_tensor_release(*copy);
  return status;
}

static graft_status clone_recorded(graft_tensor *gradient, graft_tensor **copy) {
  fx s;
  fx_begin(&s, &fx_execute);
  *copy = fx_keep(&s, fx_clone(&s, gradient, GRAFT_FORMAT_PRESERVE));
  return fx_end(&s);
}

/* The first gradient of a leaf: taken over where nobody else can change it, else copied. */
static graft_status first_gradient(const ag_node *leaf, graft_tensor *gradient, bool create_graph,
                                   graft_tensor **first) {
  const graft_tensor *shape = leaf->outs[0].tensor;
  bool unshared = is_unshared(gradient);
  if (unshared && create_graph) return *first = gradient, GRAFT_OK;
  if (unshared && has_layout_of(gradient, shape) && !(gradient->flags & (TNS_CONJ | TNS_NEG))) {
    return without_history(gradient, first);
  }
  graft_status status = create_graph ? clone_recorded(gradient, first) : copy_like(shape, gradient, first);
  graft_tensor_release(gradient);
  return status;
}

graft_status ag_leaf_add(ag_node *leaf, graft_tensor *gradient, bool create_graph) {
  graft_tensor *sum = NULL;
  graft_status status;
  pthread_mutex_lock(&leaf->lock);
  graft_tensor *former = leaf->grad;
  if (!former) {
    status = first_gradient(leaf, gradient, create_graph, &sum);
    if (!status) leaf->grad = sum;
  } else if (create_graph) {
    status = add_new(former, gradient, &sum);
    if (!status) leaf->grad = sum;
    graft_tensor_release(gradient);
  } else {
    status = add_into(former, gradient);
    former = NULL; /* stays */
    graft_tensor_release(gradient);
  }
  pthread_mutex_unlock(&leaf->lock);
  if (!status) graft_tensor_release(former);
  return status;
}
