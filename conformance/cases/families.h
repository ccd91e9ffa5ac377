/* The families' tables, one file each, and what they share. */
#ifndef GRAFT_CF_FAMILIES_H
#define GRAFT_CF_FAMILIES_H

#include "conformance/cf.h"

#define CF_FAMILY(id, label) \
  const cf_family cf_##id = {label, cf_##id##_ops, sizeof cf_##id##_ops / sizeof *cf_##id##_ops}

extern const cf_family cf_pointwise, cf_activations, cf_elementary, cf_reduction, cf_scan, cf_matmul, cf_convolution,
    cf_pooling, cf_normalization, cf_softmax, cf_embedding, cf_indexing, cf_scatter, cf_sorting, cf_shape, cf_factory,
    cf_random_family, cf_loss, cf_optimizer, cf_linalg, cf_rnn, cf_attention, cf_resample, cf_normalization_rms,
    cf_embedding_bag;

/* Gradient rules that many rows share. n counts roundings in u: at most six of them are roundings of intermediate
 * tensors to the tested dtype, the others happen inside kernels, at the precision in which these accumulate. */
#define CF_G_STEPS(n) .steps = (n) < 6 ? (n) : 6, .inner = (n)
#define CF_G_NONE \
  { .kind = CF_GRAD_NONE }
#define CF_G_LINEAR(n) \
  { .kind = CF_GRAD_ABS, CF_G_STEPS(n) }
#define CF_G_SELECT(n) \
  { .kind = CF_GRAD_SELECT, CF_G_STEPS(n) }
#define CF_G_KAPPA(f, n) \
  { .kind = CF_GRAD_KAPPA, .kappa = (f), CF_G_STEPS(n) }
#define CF_G_CUSTOM(f, n) \
  { .kind = CF_GRAD_CUSTOM, .terms = (f), CF_G_STEPS(n) }

/* The function gives the propagated error for a unit roundoff of 1, every rounding counted. */
#define CF_G_PROPAGATED(f) \
  { .kind = CF_GRAD_CUSTOM, .terms = (f), .steps = 1, .inner = 1 }

#define CF_TEXTS(...)     \
  (const char *const[]) { \
    __VA_ARGS__, NULL     \
  }

#endif
