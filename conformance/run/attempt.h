/* A call on the backend, some times over: its inputs between red zones, its outputs poisoned. The steps are
 *
 *   begin  { prepare  call  collect  release } of run 0, 1, 2  end */
#ifndef GRAFT_CF_ATTEMPT_H
#define GRAFT_CF_ATTEMPT_H

#include "conformance/run/backend.h"
#include "conformance/run/guard.h"
#include "conformance/run/result.h"

typedef struct cf_attempt {
  const cf_backend *backend;
  cf_call *call;
  cf_result *result;  /* is told of what goes wrong */
  unsigned char zone; /* what the bytes around the inputs are */
  bool one_poison;    /* outputs and workspaces are poisoned alike in each run */
  int run;            /* the one under way */
  uint32_t nouts;
  bool guarded; /* outputs are ours: the out form */
  graft_meta metas[CF_MAX_TENSORS];
  cf_guarded in[CF_MAX_TENSORS], out[2][CF_MAX_TENSORS];
  unsigned char *after[2][CF_MAX_TENSORS];
  cf_array results[3][CF_MAX_TENSORS], mutated[CF_MAX_TENSORS];
  bool absent;    /* the case asks for a way that the call does not have */
  uint64_t draws; /* how far the generator moved */
} cf_attempt;

/* Makes the inputs and finds the shapes of the outputs. */
bool cf_attempt_begin(cf_attempt *s);
/* Inputs anew, and outputs of run 0, 1 or 2, which poison in turn; outs has room for CF_MAX_TENSORS, all NULL. */
bool cf_attempt_prepare(cf_attempt *s, int run, graft_tensor **outs);
/* Runs the op on the device's current stream, and waits. */
graft_status cf_attempt_call(cf_attempt *s, graft_tensor **outs);
/* Zones, gaps and inputs are as they were; the results become arrays. */
bool cf_attempt_collect(cf_attempt *s, int run, graft_tensor **outs);
void cf_attempt_release(const cf_attempt *s, graft_tensor **outs);
void cf_attempt_end(cf_attempt *s);

/* Each side draws the same. Not at offset 0, so that a plugin which forgets the offset is seen. */
void cf_seed_generator(graft_rt_device *device, const cf_call *call);

#endif
