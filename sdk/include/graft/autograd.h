/* libgraft: reverse-mode automatic differentiation over the same ops, so that gradients of gradients come for free.
 *
 * While grad mode is on, a call with an input that requires grad is recorded. Backward runs the recorded calls in
 * reverse on the streams they ran on. In-place changes of a value that backward needs are found by version counters
 * and reported, not computed with. */
#ifndef GRAFT_AUTOGRAD_H
#define GRAFT_AUTOGRAD_H

#include "graft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a floating or complex tensor without history a leaf that collects its gradient, or stops it. */
GRAFT_EXPORT graft_status graft_tensor_set_requires_grad(graft_tensor *tensor, bool requires_grad);
GRAFT_EXPORT bool graft_tensor_requires_grad(const graft_tensor *tensor) GRAFT_NULL_GIVES(false);
GRAFT_EXPORT bool graft_tensor_is_leaf(const graft_tensor *tensor) GRAFT_NULL_GIVES(false);

/* The gradient collected in a leaf, borrowed, or NULL. set_grad replaces it (NULL clears it). */
GRAFT_EXPORT graft_tensor *graft_tensor_grad(const graft_tensor *tensor) GRAFT_NULL_GIVES(NULL);
GRAFT_EXPORT graft_status graft_tensor_set_grad(graft_tensor *tensor, GRAFT_NULLABLE graft_tensor *grad);

/* The same values without history. */
GRAFT_EXPORT graft_status graft_tensor_detach(graft_tensor *tensor, graft_tensor **detached);

typedef uint32_t graft_backward_flags;
enum {
  GRAFT_BACKWARD_RETAIN_GRAPH = 0x1, /* saved values stay, so that backward can run again */
  GRAFT_BACKWARD_CREATE_GRAPH = 0x2  /* record backward itself; implies RETAIN_GRAPH */
};

/* Adds d(sum of roots[i] * grads[i]) / d(leaf) to the gradient of every leaf. grads may be NULL, or hold NULL, for
 * roots with one element. */
GRAFT_EXPORT graft_status graft_backward(graft_tensor *const *roots, GRAFT_NULLABLE graft_tensor *const *grads,
                                         uint32_t count, graft_backward_flags flags);

/* The gradients with respect to `inputs` (leaves or not) instead of collecting; results[i] is NULL where the roots do
 * not depend on inputs[i]. */
GRAFT_EXPORT graft_status graft_grad(graft_tensor *const *roots, GRAFT_NULLABLE graft_tensor *const *grads,
                                     uint32_t count, graft_tensor *const *inputs, uint32_t input_count,
                                     graft_backward_flags flags, graft_tensor **results);

/* Called once in a backward, with the tensor's complete gradient, before it is used, collected or handed out; may
 * replace it by storing an owned tensor of the same shape, dtype and device in *replacement. Hooks run in the order in
 * which they were added, on the thread that called backward. */
typedef graft_status (*graft_hook_fn)(void *context, graft_tensor *grad, graft_tensor **replacement);
GRAFT_EXPORT graft_status graft_tensor_add_hook(graft_tensor *tensor, graft_hook_fn hook, GRAFT_NULLABLE void *context,
                                                GRAFT_NULLABLE uint64_t *handle);
GRAFT_EXPORT graft_status graft_tensor_remove_hook(graft_tensor *tensor, uint64_t handle);

/* Modes of this thread; each setter returns what it was before. */
GRAFT_EXPORT bool graft_grad_mode_set(bool enabled);
GRAFT_EXPORT bool graft_grad_mode(void);
GRAFT_EXPORT bool graft_inference_mode_set(bool enabled); /* tensors made in it never take part in autograd */
GRAFT_EXPORT bool graft_inference_mode(void);
GRAFT_EXPORT bool graft_anomaly_mode_set(bool enabled); /* name the op whose gradient is NaN first */

#ifdef __cplusplus
}
#endif

#endif
