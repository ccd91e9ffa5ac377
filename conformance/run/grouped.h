/* A case's call in a graph with neighbours that the plugin compiles together with it (extension "graft.graph"). */
#ifndef GRAFT_CF_GROUPED_H
#define GRAFT_CF_GROUPED_H

#include "conformance/judge/call.h"
#include "graft/graph.h"

/* Records a call that negates; of bool the logical one. */
graft_status cf_add_negation(graft_graph *graph, graft_tensor *of, graft_tensor **negated);
/* Whether the plugin takes the first node, or the last one, together with another one. */
bool cf_joins_end(const graft_graph *graph, graft_rt_device *device, bool first);
/* Whether it takes what stands between the first and the last `neighbours` nodes together with some of these. */
bool cf_joins_neighbours(const graft_graph *graph, graft_rt_device *device, uint32_t neighbours);

/* Makes the call with these tensors in a graph: its first input is negated twice before, its first result twice behind,
 * a list as a list, which changes no bit, so that it is judged as it is elsewhere. *joined tells whether the plugin
 * takes the call together with one of its neighbours, and has compiled what it takes; if not, nothing is run. */
graft_status cf_grouped_call(const cf_call *call, graft_rt_device *device, graft_tensor *const *inputs,
                             graft_tensor **outs, uint32_t nouts, bool *joined);

#endif
