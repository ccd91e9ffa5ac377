/* The script of a graph with open sizes: what the recording thread called, as it called it, with its sizes as names.
 *
 * A graph's nodes hold for the sizes of its recording: rules, views and gradient formulas have looked at them. So for
 * other sizes nothing of the nodes is used. The script is called once more with these in the place of names (make.c),
 * through the same rules, which decide anew what depends on a size: broadcasting, strides, what is empty, formulas of
 * gradients. What can't be followed so is refused when it is recorded.
 *
 * Entries speak of values: each tensor that an input, a constant or a call gave has a number, which it carries
 * (graft_tensor.traced). A tensor of the graph without one came by a way that no entry knows.
 *
 * A script grows only at its end, by the thread that records; copies share what their entries point to.
 *
 * The data are in graph.h. Internal to graph/. */
#ifndef GRAFT_SDK_GRAPH_SCRIPT_H
#define GRAFT_SDK_GRAPH_SCRIPT_H

#include "graph/graph.h"

/* --- script.c --- */
/* What a dsp_recorder of an open graph does. */
graft_status gr_script_call(dsp_recorder *self, uint32_t op_id, const graft_value *args, uint32_t nargs,
                            graft_tensor **outs, uint32_t nouts);
graft_status gr_script_backward(tns_recorder *self, const tns_backward *call);
/* Arguments with numbers in the place of names; what is not as it was lies in `memory`. NULL: no host memory. */
graft_value *gr_with_values(const gr_sizes *sizes, const int64_t *values, const graft_value *args, uint32_t nargs,
                            arena *memory, bool *any);

/* --- make.c --- */
/* The graph for other sizes, values[i] of each. Constants are shared. */
graft_status gr_make(const graft_graph *open, const int64_t *values, graft_graph **made);

/* --- bind.c --- */
/* Notes which dimension of an input each open size is. INVALID_ARGUMENT, naming it, of one that is none as it stands,
 * so that no run could tell it. */
graft_status gr_find_bound(graft_graph *open);
/* What a run's inputs say of the sizes, all of which then fit; values has room for one each. */
graft_status gr_bind_sizes(const graft_graph *open, graft_tensor *const *inputs, int64_t *values);

#endif
