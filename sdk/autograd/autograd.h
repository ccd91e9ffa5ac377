/* autograd/: the tape and the engine. Internal to libgraft.
 *
 * dispatch/ calls ag_record after a call has run; everything else is the public graft/autograd.h. Gradient formulas are
 * those of ops/ (op_def.vjp) and run through the same dispatch, so gradients of gradients need nothing of their own. */
#ifndef GRAFT_SDK_AUTOGRAD_H
#define GRAFT_SDK_AUTOGRAD_H

#include "graft/autograd.h"
#include "ops/core/op.h"

/* Whether this call would be recorded: grad mode is on, and a tensor among args (lists included) requires grad. Cheap:
 * no lock, no allocation; one thread-local read when no tensor has autograd state. */
bool ag_wanted(const graft_value *args, uint32_t nargs);

/* Before a call writes into given outs (in-place or out form; NULL: a new one) under grad mode: refuses a leaf that
 * requires grad, an out that requires grad, an inference tensor outside inference mode; in each case with the op's
 * name.
 */
graft_status ag_check_writes(const op_schema *schema, const graft_value *args, uint32_t nargs,
                             graft_tensor *const *outs, uint32_t nouts);

/* Records a call that has run. `args` are as the caller gave them, complete and canonical; `outs` the results
 * (nouts items, NULL where not wanted). An op without vjp makes outputs that require no grad, unless its results are
 * differentiable in principle, which is an error at backward that names the op. In-place results (an out that is also
 * an input) get the new history. */
graft_status ag_record(const op_schema *schema, const struct op_def *def, const graft_value *args, uint32_t nargs,
                       graft_tensor **outs, uint32_t nouts);

/* Frees the autograd state of a tensor that is going away. */
void ag_meta_release(ag_meta *meta);

/* Gives back what is kept of a device that is about to be closed. */
void ag_forget_device(graft_rt_device *device);

#endif
