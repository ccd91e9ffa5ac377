/* Results that lie where an operand did which nobody looks at any more: of calls that run alone, and of groups. Small
 * values do so in the arena's plan. Of large ones a run hands the memory on, and that of a donated input only where it
 * has that to itself, so that both must do: over it, and apart. */
#include "graph/exec.h"

bool gr_may_give(const graft_graph_exec *e, uint32_t buffer) {
  const gr_place *place = &e->places[buffer];
  const gr_buffer *b = &e->graph->buffers[buffer];
  return place->memory == GR_BOUND && b->donated && !b->on_host && !place->is_output && !place->written;
}

static bool may_end(const graft_graph_exec *e, uint32_t from) {
  return e->places[from].memory == GR_ARENA ||
         (gr_may_give(e, from) && e->graph->buffers[from].bytes >= GR_LARGE_BYTES);
}

static bool may_begin(const graft_graph_exec *e, uint32_t to) {
  const gr_place *place = &e->places[to];
  const gr_buffer *b = &e->graph->buffers[to];
  if (place->memory == GR_ARENA) return true;
  return place->memory == GR_OWN && !b->constant && b->bytes >= GR_LARGE_BYTES;
}

bool gr_may_lie_over(const graft_graph_exec *e, uint32_t from, uint32_t to, uint32_t moment) {
  if (from == GR_NONE || to == GR_NONE || from == to) return false;
  const uint64_t bytes = e->graph->buffers[to].bytes;
  if (!bytes || e->graph->buffers[from].bytes != bytes) return false;
  if (e->places[from].last != moment || e->places[to].first != moment || e->places[to].same_as != GR_NONE) return false;
  return may_end(e, from) && may_begin(e, to);
}

/* --- groups --- */

static bool same_elements(const graft_tensor_desc *a, const graft_tensor_desc *b) {
  bool same = a->dl.dtype == b->dl.dtype && a->dl.ndim == b->dl.ndim && a->dl.byte_offset == b->dl.byte_offset;
  for (int32_t d = 0; d < a->dl.ndim && same; d++)
    same = a->dl.shape[d] == b->dl.shape[d] && a->dl.strides[d] == b->dl.strides[d];
  return same;
}

/* Whether the group has the storage through one descriptor. */
static bool is_alone(const gr_group *group, const graft_tensor_desc *desc) {
  for (uint32_t i = 0; i < group->ninputs + group->noutputs; i++) {
    if (group->descs[i] != desc && group->descs[i]->storage_id == desc->storage_id) return false;
  }
  return true;
}

static bool is_taken(const graft_graph_exec *e, const gr_group *group, uint32_t from) {
  for (uint32_t i = 0; i < group->noutputs; i++) {
    if (e->places[gr_described_of(group->descs[group->ninputs + i])->view.buffer].same_as == from) return true;
  }
  return false;
}

static void lay_over(graft_graph_exec *e, const gr_group *group, const graft_tensor_desc *output, uint64_t in_place) {
  enum { BITS = 64 };
  const uint32_t to = gr_described_of(output)->view.buffer;
  if (!is_alone(group, output)) return;
  for (uint32_t i = 0; i < group->ninputs && i < BITS; i++) {
    const graft_tensor_desc *input = group->descs[i];
    const uint32_t from = gr_described_of(input)->view.buffer;
    if (!(in_place >> i & 1) || !same_elements(input, output) || !is_alone(group, input)) continue;
    if (!gr_may_lie_over(e, from, to, group->first) || is_taken(e, group, from)) continue;
    e->places[to].same_as = from;
    return;
  }
}

void gr_lay_group_over(graft_graph_exec *e, const gr_group *group, uint64_t in_place) {
  /* A group that may run call by call writes before its last call has read. */
  if (!(e->passes & GR_PASS_INPLACE) || !group->unaligned) return;
  for (uint32_t i = 0; i < group->noutputs; i++) lay_over(e, group, group->descs[group->ninputs + i], in_place);
}
