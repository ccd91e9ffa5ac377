/* What the files of the random family share. */
#ifndef OCL_RANDOM_H
#define OCL_RANDOM_H

#include "kernels/pointwise/pointwise.h"

/* What a program of random.cl is made of. */
#define OCL_RANDOM_FILES "random/philox random/blocks random/random"

/* A kernel over numbers of a stream. */
typedef struct ocl_draws {
  ocl_kernel kernel;
  const ocl_dtype *dtype;
  uint64_t elements, blocks_per_item;
} ocl_draws;

/* Makes the kernel `entry` of random.cl with so many blocks of the stream for each work-item, for numbers of a floating
 * or whole dtype; `compute` is what it computes with, `defines` what the head says beside D and WIDE. */
graft_status ocl_draws_prepare(ocl_draws *draws, graft_device *device, const ocl_dtype *dtype, const ocl_dtype *compute,
                               uint64_t elements, const char *defines, const char *entry);

/* randperm by a CPU (keys.c). */
graft_status ocl_permute_by_keys(const graft_exec *exec, const graft_philox *philox, const graft_tensor_desc *out);

/* What dropout and its gradient do with an element, for groups of calls. */
extern const ocl_pointwise_recipe ocl_dropout_recipe, ocl_dropout_backward_recipe;

#endif
