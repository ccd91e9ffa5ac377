/* How far a result moves with the inputs of a call: the condition that turns a backward error into a forward one.
 *
 * A backward stable algorithm gives what is right for inputs near by: off by c n u of the norm of each matrix (Higham,
 * Accuracy and Stability of Numerical Algorithms, 2nd edition: theorems 9.4 for LU, 10.4 for Cholesky, 8.5 for
 * triangles, 19.4 for QR). To first order an element of the result then moves by c n u times the norm of its
 * derivative. For a perturbation of independent normal numbers of standard deviation s the element's change is normal,
 * with s times that norm as its standard deviation; so the root mean square of some of them measures it. */
#ifndef GRAFT_CF_CONDITION_H
#define GRAFT_CF_CONDITION_H

#include "conformance/run/call.h"
#include "conformance/run/result.h"

/* Computes arrays from what the call's inputs are now. */
typedef graft_status (*cf_probe_fn)(void *context, cf_array *arrays);

/* moves[i], of the shapes of base[i], for count arrays: how far each element moves per relative change of all inputs
 * and of the `others` (cotangents, CF_MAX_TENSORS of them or NULL). The inputs are as before when it returns. */
bool cf_condition(cf_call *call, cf_array *others, cf_probe_fn probe, void *context, const cf_array *base,
                  uint32_t count, cf_array *moves);

#endif
