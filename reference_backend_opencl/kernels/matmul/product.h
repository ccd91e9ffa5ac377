/* A product while it is planned (plan.c) and run (matmul.c), also with calls that follow it (followed.c). */
#ifndef OCL_MATMUL_PRODUCT_H
#define OCL_MATMUL_PRODUCT_H

#include "kernels/matmul/matmul.h"

/* out = alpha * a b + beta * addend; without an addend, out = a b. The last two dimensions count. */
typedef struct ocl_operands {
  const graft_tensor_desc *a, *b, *out, *addend;
  const graft_scalar *alpha, *beta;
  const ocl_scales *scales;                /* or NULL */
  bool relu;                               /* of the result */
  bool mixed;                              /* of dtypes that only tensor cores take together */
  bool tf32;                               /* f32 may be rounded to 11 bits */
  bool sums;                               /* over a batch, whose K lie one after the other */
  const graft_tensor_desc *row_sums_to;    /* sums of a's rows, or NULL */
  const ocl_reduction_pass *row_sums_pass; /* that makes them */
  const ocl_epilogue *epilogue;            /* or NULL; with its arguments, where the call runs */
  const ocl_argument *arguments;
  cl_uint count;
} ocl_operands;

/* What is made once for products that lie alike. */
struct ocl_product {
  ocl_kernel pack_a, pack_b, multiply, combine, scale;
  ocl_kernel subtotals; /* adds up those that the packing of a leaves */
  const ocl_dtype *compute;
  bool swapped;                 /* a takes B's place: the transposed product, of transposed factors */
  bool thin;                    /* few rows: thin.cl */
  const ocl_tensor_way *tensor; /* through tensor cores: nvidia.cl; NULL: not */
  bool f32;                     /* of f32 on a GPU: `way` */
  ocl_f32_way way;
  bool own;                  /* work-items make panels of B themselves */
  bool pairs;                /* two elements of K at a time: core/pairs.cl */
  bool packs_a, packs_b;     /* else the product reads the tensor */
  bool splits;               /* parts of K side by side, which `combine` adds up */
  int64_t parts;             /* of A's rows, which is as many launches; A is packed part by part */
  int64_t depth, block;      /* K, and how much of it a launch takes */
  uint64_t bytes_a, bytes_b; /* of what is packed: A's lies first in the workspace */
  uint64_t workspace_bytes, skip_partial, skip_scales, skip_subtotals;
  uint64_t row_sums_step; /* bytes between the sums of two parts */
};

/* Plans a product, and makes its kernels. */
graft_status ocl_product_plan(ocl_product *memo, graft_device *device, const ocl_operands *call);
/* The same for a call that may be none of these kernels': UNIMPLEMENTED. As a memo's `prepare`. */
graft_status ocl_product_prepare(void *memo, graft_device *device, const void *call);
/* Whether a CPU packs the first factor of a call, and of one whose rows come in parts. */
bool ocl_product_packs_first(graft_device *device, const ocl_operands *call);
bool ocl_product_packs_parts(graft_device *device, const ocl_operands *call);
/* Whether tensor cores serve; then *plan is how, and *t in which tile. */
bool ocl_product_on_tensor_cores(ocl_tensor_plan *plan, graft_device *device, const ocl_operands *call, ocl_tile *t);
graft_status ocl_product_launch(const graft_exec *exec, ocl_product *memo, const ocl_operands *call);

/* A kernel that writes results, behind the text of calls that follow, if any do. */
graft_status ocl_writing_init(ocl_kernel *kernel, graft_device *device, const ocl_operands *call, const ocl_text *head,
                              const char *files, const char *entry);
/* What such a kernel takes: what all calls have, with the epilogue's arguments behind the first `before`. */
cl_uint ocl_with_followers(ocl_argument *all, const ocl_operands *call, cl_uint before, const ocl_argument *common,
                           cl_uint behind);

#endif
