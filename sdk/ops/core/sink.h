/* Where the calls of a formula go. Decompositions and gradients are written once, as calls of ops (fx.h); the sink of
 * their scope decides what becomes of these: fx_execute runs each at once, and another sink may record them, to print
 * them, or to make a graph that is run later and often.
 *
 * A sink that is `described` is told all that is known of a call without running it. What holds for it:
 *
 *   Arguments are complete and canonical, as an op's rule leaves them: one for each argument of the schema, defaults
 *   filled in, dims non-negative, lists at their full length. An op that equals another one comes as that other one.
 *   Tensors are those that the formula was given and those that the sink itself made; the sink may tell them apart by
 *   their address for as long as it holds a reference. Arguments, lists and descriptors live as long as the call of
 *   `take`; a sink that keeps them makes copies (op_value_bytes says how long a list or text is).
 *
 *   Results: for each a descriptor (dtype, sizes, strides; dtype NONE: the call does not produce it), and where a
 *   result's size depends on data, an upper bound. outs[i] NULL: the sink makes a tensor of that description, and the
 *   reference is the scope's from then on. outs[i] not NULL: the call writes to this tensor, and none is made.
 *
 *   Of a tensor that comes out, a formula asks dtype, sizes, strides, device, contiguity and the conjugate and negative
 *   bits, and never its values: so a tensor without a storage will do (tns_new), and what a formula emits is the same
 *   for all values. Inputs may lack memory, too. A formula makes decisions by dtypes, shapes and numbers among the
 *   arguments, so a recording holds for these only.
 *
 * A failure of the sink ends the formula: nothing is emitted after it, and fx_end gives it. A sink serves one thread at
 * a time; fx_execute, which has no state, any number. */
#ifndef GRAFT_SDK_SINK_H
#define GRAFT_SDK_SINK_H

#include "graft/value.h"

/* One call. */
typedef struct fx_step {
  uint32_t op_id;
  const graft_value *args;
  uint32_t nargs;
  /* What follows is for sinks that are described, else 0. */
  const graft_meta *results;
  uint32_t nresults;
  graft_rt_device *device; /* that the call would run on */
} fx_step;

typedef struct fx_sink {
  graft_status (*take)(void *self, const fx_step *step, graft_tensor **outs, uint32_t nouts);
  void *self;     /* the sink's own */
  bool described; /* false: a step has the arguments as the formula wrote them, those left out at the end missing */
} fx_sink;

/* Runs each call at once, through graft_call. */
extern const fx_sink fx_execute;

#endif
