/* Results that go where they are copied to: of an elementwise call, or of one on lists, whose result is copied, whole,
 * to what was there before, as a program without writes ends with what it would have written. The call writes there at
 * once, the copy goes, and what else reads the result reads it there.
 *
 * So nobody may look at what was there before between the call and the copy, and the call itself only where it writes,
 * element by element; and as long as the result is read nobody else may write there. */
#include <stdlib.h>

#include "graph/graph.h"

typedef struct direct {
  graft_graph *graph;
  bool *is_output;
  uint32_t *writes;  /* by buffer: how many nodes write it */
  uint32_t *made_by; /* by buffer: the node whose result it is, plus 1 */
} direct;

static bool uses(const gr_node *node, uint32_t buffer) {
  bool any = false;
  for (uint32_t i = 0; i < node->noperands && !any; i++) any = node->operands[i].view.buffer == buffer;
  for (uint32_t i = 0; i < node->nresults && !any; i++) any = node->results[i].view.buffer == buffer;
  return any;
}

static bool writes_to(const gr_node *node, uint32_t buffer) {
  bool any = false;
  for (uint32_t i = 0; i < node->noperands && !any; i++)
    any = node->operands[i].written && node->operands[i].view.buffer == buffer;
  for (uint32_t i = 0; i < node->nresults && !any; i++) any = node->results[i].view.buffer == buffer;
  return any;
}

/* What a node copies, whole, to a view that was there; NULL: it is no such copy. */
static const gr_view *copied_by(const direct *d, const gr_node *node) {
  const op_def *def = op_def_of(node->schema->id);
  if (!def || !(def->flags & OP_COPY) || node->nresults != 1 || !node->results[0].given) return NULL;
  uint32_t last = node->noperands;
  while (last > 0 && node->operands[last - 1].view.buffer == GR_NONE) last--;
  if (!last) return NULL;
  const gr_view *from = &node->operands[last - 1].view, *to = &node->results[0].view;
  if (from->buffer == to->buffer || to->buffer == GR_NONE) return NULL;
  gr_view same = *to;
  same.buffer = from->buffer;
  same.offset = 0;
  const gr_buffer *source = &d->graph->buffers[from->buffer], *target = &d->graph->buffers[to->buffer];
  const bool whole = gr_same_view(&same, from) && source->bytes && source->kind == GR_VALUE &&
                     (uint64_t)tns_numel(from->ndim, from->sizes) * dt_bytes(from->dtype) == source->bytes;
  const bool plain = !from->flags && !source->on_host && !target->on_host && target->kind != GR_CONSTANT;
  return whole && plain && !d->is_output[from->buffer] && d->writes[from->buffer] == 1 ? from : NULL;
}

static void move(gr_view *view, uint32_t from, const gr_view *to) {
  if (view->buffer != from) return;
  view->buffer = to->buffer;
  view->offset += to->offset * (int64_t)dt_bytes(to->dtype) / (int64_t)dt_bytes(view->dtype);
}

/* Which item of its list an operand is; GR_NONE: it is no item of one. */
static uint32_t item_of(const gr_node *node, uint32_t operand) {
  for (uint32_t a = 0; a < node->nargs; a++) {
    const graft_value *v = &node->args[a];
    if (v->kind == GRAFT_VALUE_TENSORS && operand >= (uint64_t)v->as.i && operand - (uint64_t)v->as.i < v->count)
      return (uint32_t)(operand - (uint64_t)v->as.i);
  }
  return GR_NONE;
}

/* Whether a node may write result number `result` where it goes: each element is read where it is written. */
static bool may_write(const gr_node *node, uint32_t result, uint32_t from, const gr_view *to) {
  gr_view moved = node->results[result].view;
  move(&moved, from, to);
  const op_def *def = op_def_of(node->schema->id);
  const bool elementwise = def && def->flags & OP_ELEMENTWISE && node->nresults == 1;
  if (!def || (!elementwise && !(def->flags & OP_ITEM_BY_ITEM))) return false;
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_operand *o = &node->operands[i];
    if (o->view.buffer != to->buffer) continue;
    if (o->written || !gr_same_view(&o->view, &moved) || (!elementwise && item_of(node, i) != result)) return false;
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].view.buffer == to->buffer) return false;
  }
  return true;
}

static uint32_t result_of(const gr_node *node, uint32_t buffer) {
  uint32_t i = 0;
  while (i < node->nresults && node->results[i].view.buffer != buffer) i++;
  return i;
}

/* Whether what is at `to` may be the result of node n from there on, though the copy is node `copy`. */
static bool is_free(const direct *d, uint32_t n, uint32_t copy, uint32_t from, const gr_view *to) {
  const graft_graph *graph = d->graph;
  for (uint32_t i = n + 1; i < copy; i++) {
    if (graph->nodes[i] && uses(graph->nodes[i], to->buffer)) return false;
  }
  bool written = false;
  for (uint32_t i = copy + 1; i < graph->nnodes; i++) {
    const gr_node *node = graph->nodes[i];
    if (!node) continue;
    written = written || writes_to(node, to->buffer);
    if (written && uses(node, from)) return false;
  }
  return true;
}

/* Whether a view of the result can be said as one of where it goes. */
static bool can_move(const gr_view *view, uint32_t from, const gr_view *to) {
  return view->buffer != from || to->offset * (int64_t)dt_bytes(to->dtype) % (int64_t)dt_bytes(view->dtype) == 0;
}

static bool can_move_all(const graft_graph *graph, uint32_t from, const gr_view *to) {
  bool can = true;
  for (uint32_t n = 0; n < graph->nnodes && can; n++) {
    const gr_node *node = graph->nodes[n];
    for (uint32_t i = 0; node && i < node->noperands && can; i++) can = can_move(&node->operands[i].view, from, to);
    for (uint32_t i = 0; node && i < node->nresults && can; i++) can = can_move(&node->results[i].view, from, to);
  }
  return can;
}

static void move_all(graft_graph *graph, uint32_t from, const gr_view *to) {
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    gr_node *node = graph->nodes[n];
    for (uint32_t i = 0; node && i < node->noperands; i++) move(&node->operands[i].view, from, to);
    for (uint32_t i = 0; node && i < node->nresults; i++) move(&node->results[i].view, from, to);
  }
}

static void look_at(direct *d, uint32_t copy) {
  graft_graph *graph = d->graph;
  const gr_node *node = graph->nodes[copy];
  const gr_view *source = copied_by(d, node);
  if (!source || !d->made_by[source->buffer]) return;
  const uint32_t from = source->buffer, n = d->made_by[from] - 1;
  const gr_view to = node->results[0].view;
  gr_node *maker = graph->nodes[n];
  const uint32_t result = result_of(maker, from);
  if (!can_move_all(graph, from, &to) || !may_write(maker, result, from, &to) || !is_free(d, n, copy, from, &to))
    return;
  maker->results[result].given = true;
  graph->nodes[copy] = NULL;
  move_all(graph, from, &to);
}

static void note_writers(direct *d) {
  for (uint32_t n = 0; n < d->graph->nnodes; n++) {
    const gr_node *node = d->graph->nodes[n];
    gr_count_writes(node, d->writes);
    for (uint32_t i = 0; i < node->nresults; i++) {
      const gr_result *result = &node->results[i];
      if (result->view.buffer != GR_NONE && !result->given) d->made_by[result->view.buffer] = n + 1;
    }
  }
}

static void close_ranks(graft_graph *graph) {
  uint32_t kept = 0;
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    if (graph->nodes[n]) graph->nodes[kept++] = graph->nodes[n];
  }
  graph->nnodes = kept;
}

graft_status gr_pass_direct(graft_graph *graph) {
  direct d = {.graph = graph,
              .writes = calloc(graph->nbuffers + 1u, sizeof *d.writes),
              .made_by = calloc(graph->nbuffers + 1u, sizeof *d.made_by)};
  graft_status status = d.writes && d.made_by ? gr_mark_outputs(graph, &d.is_output)
                                              : err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a pass over a graph");
  if (!status) {
    note_writers(&d);
    for (uint32_t n = 0; n < graph->nnodes; n++) look_at(&d, n);
    close_ranks(graph);
  }
  free(d.is_output);
  free(d.writes);
  free(d.made_by);
  return status;
}
