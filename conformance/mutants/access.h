/* What bugs look at and change of a call: its arguments, and its tensors' elements in logical order. */
#ifndef GRAFT_MUTANTS_ACCESS_H
#define GRAFT_MUTANTS_ACCESS_H

#include "ops/core/op.h"
#include "ops/core/ref.h"
#include "reference/reference.h"

typedef graft_status (*mut_slot)(const graft_exec *exec, const graft_args *args);

/* One call of the op that a bug sits in. */
typedef struct mut_call {
  const graft_exec *exec;
  const graft_args *args;
  const op_schema *schema;
  mut_slot inner; /* the right kernel */
} mut_call;

enum { MUT_ARGS_BYTES = 1024 };
typedef union mut_args { /* a copy of a call's args, to be edited */
  graft_args head;
  unsigned char bytes[MUT_ARGS_BYTES];
} mut_args;

mut_args mut_copy(const mut_call *c);
/* An argument or a result, by its name. */
void *mut_field(const mut_call *c, mut_args *copy, const char *name);
const graft_tensor_desc *mut_desc(const mut_call *c, const char *name);
void mut_replace(const mut_call *c, mut_args *copy, const char *name, const graft_tensor_desc *d);
/* The right kernel, on such arguments. */
graft_status mut_inner(const mut_call *c, const mut_args *copy);

int64_t mut_numel(const graft_tensor_desc *d);
char *mut_at(const graft_tensor_desc *d, int64_t i);
long double mut_get(const graft_tensor_desc *d, int64_t i);
void mut_put(const graft_tensor_desc *d, int64_t i, long double v);

#endif
