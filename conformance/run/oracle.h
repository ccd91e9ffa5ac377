/* The oracle: the same call on the reference device with every floating tensor as long double, so that nothing is
 * rounded but once, at 64 bits of mantissa. */
#ifndef GRAFT_CF_ORACLE_H
#define GRAFT_CF_ORACLE_H

#include "conformance/judge/call.h"
#include "conformance/run/answers.h"

/* Which numbers the oracle computes with. */
typedef struct cf_precision {
  bool native;         /* the tensors' own dtypes */
  bool doubles;        /* f64, as plugins' reference functions have it, instead of long double */
  bool widen_integers; /* integers of the tested dtype become wide too, for ops that give floats from them */
} cf_precision;

typedef struct cf_side { /* the call on the reference device */
  graft_tensor *in[CF_MAX_TENSORS];
  graft_value args[OP_MAX_ARGS];
  graft_tensor *items[CF_MAX_TENSORS];
  graft_scalar scalars[64];
  uint32_t nscalars;
} cf_side;

/* As the op of a call has it. */
cf_precision cf_precision_of(const cf_call *call);

graft_status cf_oracle_open(const cf_call *call, cf_transform transform, bool widen_integers, cf_side *side);
void cf_side_close(cf_side *side);
/* Runs it; outs[i] become arrays. *mutated, one a spec, receives what the op wrote into inputs (NULL: not asked). */
graft_status cf_oracle_run(const cf_call *call, cf_transform transform, bool widen_integers, uint32_t nouts,
                           cf_array *outs, cf_array *mutated);
/* The tensor of an array on the reference device, floating values as long double. */
graft_status cf_oracle_tensor(const cf_array *a, cf_transform transform, cf_precision precision, graft_tensor **tensor);

#endif
