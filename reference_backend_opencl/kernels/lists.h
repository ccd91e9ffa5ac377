/* A call over lists of tensors, as the engine in optimizer.c takes it. */
#ifndef OCL_LISTS_H
#define OCL_LISTS_H

#include "../ocl.h"

enum { OCL_LISTS_MAX = 6 };

/* As in optimizer.cl. */
enum {
  OCL_LISTS_LR = 1,
  OCL_LISTS_SCALE = 2,
  OCL_LISTS_FOUND = 4,
  OCL_LISTS_MAXIMIZE = 8,
  OCL_LISTS_DECOUPLED = 16,
  OCL_LISTS_NESTEROV = 32,
  OCL_LISTS_FIRST_STEP = 64
};

typedef struct ocl_lists {
  int operands; /* 0 is what is written; fused optimizers update others, too */
  graft_tensor_list list[OCL_LISTS_MAX];
  const graft_tensor_desc *single[OCL_LISTS_MAX];           /* in place of a list: one tensor of one element for all */
  graft_tensor_list from[OCL_LISTS_MAX], to[OCL_LISTS_MAX]; /* copied first, unless they are the same memory */
  const graft_tensor_desc *shared[3], *shared_from;         /* found_inf, scale, learning rate */
  uint64_t dtypes;
  bool same_dtype; /* all operands have the output's */
  const char *defines, *expression;
  int64_t flags;
  double numbers[16];
  const graft_scalar *scalars; /* in place of numbers */
  bool scalar_each;            /* one for each tensor */
} ocl_lists;

graft_status ocl_lists_run(const graft_exec *exec, const ocl_lists *call);

#endif
