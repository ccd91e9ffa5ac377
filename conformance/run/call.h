/* From a case to a call with values: the row's text for one dtype and layout. */
#ifndef GRAFT_CF_RUN_CALL_H
#define GRAFT_CF_RUN_CALL_H

#include "conformance/judge/call.h"

/* Parses and applies the layout. False with a text in graft_last_error, or with none where the case does not exist. */
bool cf_call_open(const cf_case *c, cf_call *call);
/* Draws the values. `denormals`: the device keeps them. False: no memory. */
bool cf_call_fill(cf_call *call, uint64_t seed, bool denormals);
void cf_call_close(cf_call *call);
/* The arguments with these tensors in place (one a spec); items has room for CF_MAX_TENSORS. */
void cf_call_args(const cf_call *call, graft_rt_device *device, graft_tensor *const *tensors, graft_value *args,
                  graft_tensor **items);
/* Whether tensor `spec` holds indices into another. A mask in an index's place does not. */
bool cf_call_is_index(const cf_call *call, uint32_t spec);
/* Whether the op writes into tensor argument `spec`. */
bool cf_call_mutates(const cf_call *call, uint32_t spec);
/* The first tensor that a call before may have made: no index, nothing that is written. -1: there is none. */
int cf_call_first_read(const cf_call *call);
/* Whether the op returns its first argument, written: it is then called in place. */
bool cf_call_returns_input(const cf_call *call);
/* Output tensors of the call, 0 for one that has no fixed number. */
uint32_t cf_call_outs(const cf_call *call);

#endif
