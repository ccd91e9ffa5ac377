/* What of a constant a graph can see. A constant is memory from the first element of a view to its last, as it lay in
 * the tensor that it was taken from; what lies between and beside the elements is nobody's business, and may be
 * different each time. */
#include <stdlib.h>
#include <string.h>

#include "graph/file.h"

/* Marks the elements of a view from dim `dim` on, of which the first is element `at` of the buffer. */
static void mark_dim(const gr_view *view, int32_t dim, int64_t at, unsigned char *seen) {
  const uint64_t unit = dt_bytes(view->dtype);
  const int64_t size = dim < view->ndim ? view->sizes[dim] : 1, stride = dim < view->ndim ? view->strides[dim] : 1;
  const bool last = dim + 1 >= view->ndim;
  if (last && stride == 1) {
    memset(seen + (uint64_t)at * unit, 1, (uint64_t)size * unit);
    return;
  }
  for (int64_t i = 0; i < (stride ? size : 1); i++) { /* the same elements once more are marked already */
    if (last)
      memset(seen + (uint64_t)(at + i * stride) * unit, 1, unit);
    else
      mark_dim(view, dim + 1, at + i * stride, seen);
  }
}

static void mark_view(const gr_view *view, uint32_t buffer, unsigned char *seen) {
  if (view->buffer == buffer && tns_numel(view->ndim, view->sizes) > 0) mark_dim(view, 0, view->offset, seen);
}

static void mark_nodes(const graft_graph *graph, uint32_t buffer, unsigned char *seen) {
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    const gr_node *node = graph->nodes[n];
    for (uint32_t i = 0; i < node->noperands; i++) mark_view(&node->operands[i].view, buffer, seen);
  }
  for (uint32_t i = 0; i < graph->noutputs; i++) mark_view(&graph->outputs[i].view, buffer, seen);
}

/* Of open sizes: what the calls name. Views that they make of it, at any size, are of that. */
static void mark_constants(const gr_script *script, uint32_t buffer, unsigned char *seen) {
  for (uint32_t i = 0; i < script->nconstants; i++) mark_view(&script->constants[i].view, buffer, seen);
}

graft_status gr_clear_unseen(const graft_graph *graph, uint32_t buffer, unsigned char *bytes) {
  const uint64_t count = graph->buffers[buffer].bytes;
  unsigned char *seen = calloc(1, count + 1);
  if (!seen) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to write a graph");
  if (graph->script)
    mark_constants(graph->script, buffer, seen);
  else
    mark_nodes(graph, buffer, seen);
  for (uint64_t i = 0; i < count; i++) {
    if (!seen[i]) bytes[i] = 0;
  }
  free(seen);
  return GRAFT_OK;
}
