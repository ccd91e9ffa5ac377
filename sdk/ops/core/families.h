/* The tables of rows, one or more in each family's folder. */
#ifndef GRAFT_SDK_FAMILIES_H
#define GRAFT_SDK_FAMILIES_H

#include "ops/core/op.h"

#define OP_TABLES(X)       \
  X(attention)             \
  X(convolution)           \
  X(embedding_bags)        \
  X(embedding_rows)        \
  X(factory)               \
  X(indexing)              \
  X(linalg)                \
  X(loss_elements)         \
  X(loss_margin)           \
  X(loss_nll)              \
  X(matmul)                \
  X(normalization)         \
  X(normalization_rms)     \
  X(optimizer_foreach)     \
  X(optimizer_scale)       \
  X(optimizer_steps)       \
  X(pointwise_activations) \
  X(pointwise_arithmetic)  \
  X(pointwise_comparison)  \
  X(pointwise_elementary)  \
  X(pointwise_gated)       \
  X(pointwise_special)     \
  X(pooling)               \
  X(random)                \
  X(random_rrelu)          \
  X(reduction)             \
  X(reduction_histogram)   \
  X(resample)              \
  X(rnn)                   \
  X(scan)                  \
  X(scatter_elements)      \
  X(scatter_reduce)        \
  X(scatter_slices)        \
  X(shape_movement)        \
  X(shape_parts)           \
  X(shape_views)           \
  X(shape_windows)         \
  X(softmax)               \
  X(sorting)

typedef struct op_table {
  const char *file; /* the source that it stands in: the tests compare its folder with the family column */
  const op_def *defs;
  uint32_t count;
} op_table;

#define OP_TABLE_DECLARE(name) extern const op_table ops_##name;
OP_TABLES(OP_TABLE_DECLARE)
#undef OP_TABLE_DECLARE

#define OP_TABLE(name, defs) const op_table ops_##name = {__FILE__, defs, sizeof(defs) / sizeof((defs)[0])};

/* All of them; NULL ends the list. */
extern const op_table *const op_tables[];

#endif
