/* The families, each a folder with one table of rows. */
#include "runtime/op.h"

#define FAMILIES(X) \
  X(attention)      \
  X(convolution)    \
  X(embedding)      \
  X(factory)        \
  X(fft)            \
  X(indexing)       \
  X(linalg)         \
  X(loss)           \
  X(matmul)         \
  X(normalization)  \
  X(optimizer)      \
  X(pointwise)      \
  X(pooling)        \
  X(quantized)      \
  X(random)         \
  X(reduction)      \
  X(resample)       \
  X(rnn)            \
  X(scan)           \
  X(scatter)        \
  X(shape)          \
  X(softmax)        \
  X(sorting)        \
  X(sparse)

#define DECLARE(name) extern const ocl_family ocl_family_##name;
FAMILIES(DECLARE)

#define ENTRY(name) &ocl_family_##name,
const ocl_family *const ocl_families[] = {FAMILIES(ENTRY) NULL};
