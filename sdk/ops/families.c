/* The tables of rows, one or more in each family's folder. A new one is a line here. */
#include "ops/families.h"

#define TABLES(X)          \
  X(attention)             \
  X(convolution)           \
  X(convolution_columns)   \
  X(embedding_bags)        \
  X(embedding_rows)        \
  X(factory)               \
  X(fft)                   \
  X(indexing)              \
  X(linalg)                \
  X(linalg_cholesky)       \
  X(linalg_cross)          \
  X(linalg_distances)      \
  X(linalg_exponential)    \
  X(linalg_ldl)            \
  X(linalg_lstsq)          \
  X(linalg_lu)             \
  X(linalg_lu_unpack)      \
  X(linalg_qr)             \
  X(linalg_spectrum)       \
  X(linalg_triangular)     \
  X(loss_ctc)              \
  X(loss_elements)         \
  X(loss_margin)           \
  X(loss_nll)              \
  X(matmul)                \
  X(matmul_grouped)        \
  X(normalization)         \
  X(normalization_renorm)  \
  X(normalization_rms)     \
  X(optimizer_foreach)     \
  X(optimizer_scale)       \
  X(optimizer_steps)       \
  X(pointwise_activations) \
  X(pointwise_arithmetic)  \
  X(pointwise_bessel)      \
  X(pointwise_comparison)  \
  X(pointwise_elementary)  \
  X(pointwise_gamma)       \
  X(pointwise_gated)       \
  X(pointwise_polynomials) \
  X(pointwise_special)     \
  X(pooling)               \
  X(quantized)             \
  X(random)                \
  X(random_distributions)  \
  X(random_gamma)          \
  X(random_rrelu)          \
  X(reduction)             \
  X(reduction_equal)       \
  X(reduction_histogram)   \
  X(reduction_segments)    \
  X(resample)              \
  X(resample_grid)         \
  X(rnn)                   \
  X(rnn_layer)             \
  X(scan)                  \
  X(scatter_elements)      \
  X(scatter_reduce)        \
  X(scatter_slices)        \
  X(shape_movement)        \
  X(shape_parts)           \
  X(shape_views)           \
  X(shape_windows)         \
  X(softmax)               \
  X(sorting)               \
  X(sorting_ranks)         \
  X(sorting_unique)        \
  X(sparse)

#define DECLARE(name) extern const op_table ops_##name;
TABLES(DECLARE)

#define ADDRESS(name) &ops_##name,
const op_table *const ops_families[] = {TABLES(ADDRESS) NULL};
