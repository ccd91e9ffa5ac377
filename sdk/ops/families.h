/* The families of ops, one file each. */
#ifndef GRAFT_SDK_FAMILIES_H
#define GRAFT_SDK_FAMILIES_H

#include "ops/op.h"

#define OP_FAMILIES(X) \
  X(pointwise)         \
  X(pointwise_pairs)   \
  X(reduction)         \
  X(scan)              \
  X(softmax)           \
  X(normalization)     \
  X(loss)              \
  X(loss_pairs)        \
  X(loss_margin)       \
  X(matmul)            \
  X(convolution)       \
  X(pooling)           \
  X(embedding)         \
  X(optimizer)         \
  X(shape)             \
  X(shape_windows)     \
  X(factory)           \
  X(random)            \
  X(random_rrelu)      \
  X(indexing)          \
  X(scatter)           \
  X(sorting)           \
  X(linalg)            \
  X(rnn)               \
  X(attention)         \
  X(resample)          \
  X(normalization_rms) \
  X(embedding_bag)

#define FAMILY(name) extern const op_family ops_##name;
OP_FAMILIES(FAMILY)
#undef FAMILY

#define OP_FAMILY_END(name, table) const op_family ops_##name = {table, sizeof(table) / sizeof((table)[0])};

#endif
