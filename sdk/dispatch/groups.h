/* Extension "graft.graph" (graft/abi/graph.h), as graph/ asks for it: calls as a plugin sees them before there is
 * memory for them, and the extension's functions with all that stands around a call of a plugin. */
#ifndef GRAFT_SDK_DISPATCH_GROUPS_H
#define GRAFT_SDK_DISPATCH_GROUPS_H

#include "dispatch/plan.h"
#include "graft/abi/graph.h"

/* The descriptor of an operand that is not absent and no plain number, NULL where host memory runs out. */
typedef const graft_tensor_desc *(*dsp_describe_fn)(void *context, const dsp_operand *operand);

/* The args struct of a plan's slot for a call with these arguments, in full, which outlive it; the rest lies in
 * `memory` and the plan. */
graft_status dsp_pack_call(dsp_plan *plan, const graft_value *args, dsp_describe_fn describe, void *context,
                           arena *memory, const graft_args **packed);

/* The table of the device's plugin; *api receives NULL where it has none. `draws`: whether it takes calls that draw. */
graft_status dsp_graph_api(graft_rt_device *device, const graft_graph_api **api, bool *draws);
/* `groups` comes zeroed. */
graft_status dsp_query_groups(graft_rt_device *device, const graft_graph_api *api, const graft_graph_nodes *graph,
                              uint32_t *groups);
graft_status dsp_compile_group(graft_rt_device *device, const graft_graph_api *api, const graft_graph_group *group,
                               graft_graph_compiled *compiled);
/* What the next call of a random op draws from, by its device's generator, which is moved on. */
void dsp_draw(const dsp_plan *plan, graft_philox *philox);
/* On a stream, whether or not that captures. */
graft_status dsp_run_group(graft_rt_stream *stream, const graft_graph_api *api, graft_executable *executable,
                           const graft_graph_run_args *args);

#endif
