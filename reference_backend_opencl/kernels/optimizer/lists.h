/* Ops over lists of tensors: as many tensors as can be in one launch, however many there are.
 *
 * A kernel finds its tensors in a table: a buffer with a record for each, which says how large it is and where its
 * operands lie: in which of the buffers that are arguments, at which byte. A model's hundreds of tensors lie in few
 * buffers, since the host divides large ones; only where they are more than a kernel may have arguments for, or where
 * the dtypes differ, a call takes several launches. Tables are kept with the device, so that a step that is like the
 * one before uploads none.
 *
 * The words of a table (64 bits each): OCL_TABLE_NUMBERS for numbers of the call; first[tensors + 1], where each tensor
 * begins in the index space of the launch; and the records: elements, numbers of its own, place of each operand. */
#ifndef OCL_LISTS_H
#define OCL_LISTS_H

#include "runtime/ocl.h"

enum { OCL_LISTS_MAX = 20, OCL_LIST_NUMBERS = 32, OCL_TABLE_NUMBERS = 16, OCL_LIST_SIZES = 3, OCL_LIST_BUFFERS = 64 };

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

/* The numbers of a fused optimizer, as in optimizer.cl. */
enum {
  OCL_LR,
  OCL_WEIGHT_DECAY,
  OCL_OWN_NUMBERS,
  OCL_ADAM_BETA1 = OCL_OWN_NUMBERS,
  OCL_ADAM_BETA2,
  OCL_ADAM_LOG_BETA1,
  OCL_ADAM_LOG_BETA2,
  OCL_ADAM_REST1, /* 1 - beta1 */
  OCL_ADAM_REST2,
  OCL_ADAM_EPS,
  OCL_SGD_MOMENTUM = OCL_OWN_NUMBERS,
  OCL_SGD_NEW, /* 1 - dampening */
  OCL_ADAGRAD_LR_DECAY = OCL_OWN_NUMBERS,
  OCL_ADAGRAD_EPS
};

/* A number of each tensor. */
typedef struct ocl_list_number {
  const graft_scalar *items; /* NULL: 0 */
  bool each;                 /* one for each tensor, else one for all */
} ocl_list_number;

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
  double numbers[OCL_TABLE_NUMBERS];
  ocl_list_number own[OCL_LIST_NUMBERS]; /* in place of numbers */
  int owns;
  const struct ocl_chain *chain;   /* in place of an expression: several ops */
  const struct ocl_column *column; /* of a chain: calls of single tensors */
} ocl_lists;

/* Whether operand k has one element for each tensor: it is one tensor for all, or a list of which some are expanded. */
bool ocl_lists_are_single(const ocl_lists *call, int k);

/* Whether all lists are of one length, each tensor's dtypes are among those that the op is served for, and its operands
 * have all of its elements or one. */
bool ocl_lists_are_served(const graft_device *device, const ocl_lists *call);

/* optimizer.c: an op that treats each element apart. */
graft_status ocl_lists_run(const graft_exec *exec, const ocl_lists *call);

/* Engines. A _foreach op's recipe is an ocl_foreach_recipe, Adam's a bool: whether its weight decay is decoupled. */
typedef struct ocl_foreach_recipe {
  const char *expression;
  bool casts; /* it copies, whatever the dtypes */
} ocl_foreach_recipe;
graft_status ocl_foreach(const ocl_call *call);
void ocl_foreach_read(const ocl_call *call, ocl_lists *lists);

extern const char *const ocl_adam_reads[], *const ocl_sgd_reads[], *const ocl_adagrad_reads[];
graft_status ocl_adam(const ocl_call *call);
graft_status ocl_sgd(const ocl_call *call);
graft_status ocl_adagrad(const ocl_call *call);

static inline const graft_tensor_desc *ocl_lists_operand(const ocl_lists *call, int k, uint32_t tensor) {
  return call->single[k] ? call->single[k] : call->list[k].items[tensor];
}

/* ---- lists.c: tensors that go together ---- */

/* Tensors of the same dtypes, and what of their table is the same in each call. */
typedef struct ocl_group {
  uint32_t *tensor, count; /* places in the lists */
  int64_t *first;          /* count + 1 */
  int64_t span;            /* of the index space: what a work-group takes */
} ocl_group;

typedef struct ocl_groups {
  ocl_group *items;
  uint32_t count;
} ocl_groups;

/* Sorts the tensors by the dtypes of their operands, in the order in which they come; `empty`: also those without
 * elements. `first` and what follows are the caller's to fill. */
graft_status ocl_groups_make(ocl_groups *groups, const ocl_lists *call, bool empty);
void ocl_groups_free(ocl_groups *groups);

/* The tensors begin ... end - 1 of a group, which fit in one launch; with size 0 ... OCL_LIST_SIZES - 1 for the number
 * of buffers that the kernel is to take. */
typedef struct ocl_batch {
  uint32_t begin, end;
  int size;
  cl_mem buffers[OCL_LIST_BUFFERS];
  cl_mem table; /* retained */
} ocl_batch;

graft_status ocl_batch_make(ocl_batch *batch, graft_device *device, const ocl_lists *call, const ocl_group *group,
                            uint32_t begin);
void ocl_batch_free(graft_device *device, ocl_batch *batch);

/* Writes OWNS, PARAMETERS (the table and the buffers) and CASES (a `case` for each buffer, which sets `base`). */
void ocl_batch_head(ocl_text *head, const ocl_lists *call, int size);
/* Adds the arguments of PARAMETERS; returns how many. */
cl_uint ocl_batch_arguments(const ocl_batch *batch, ocl_argument *arguments);
enum { OCL_BATCH_ARGUMENTS = OCL_LIST_BUFFERS + 1 };

/* ---- optimizer.c: what of a call is the same whenever its lists have these sizes and dtypes ---- */

typedef struct ocl_lists_plan {
  ocl_groups groups;
  _Atomic(ocl_kernel *) *kernels; /* OCL_LIST_SIZES for each group; NULL: not yet needed */
} ocl_lists_plan;

graft_status ocl_lists_plan_fill(ocl_lists_plan *plan, const graft_device *device, const ocl_lists *call);
void ocl_lists_plan_release(void *plan);
graft_status ocl_lists_launch(const graft_exec *exec, const ocl_lists *call, const ocl_lists_plan *plan);

#endif
