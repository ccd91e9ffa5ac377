/* Which values of f32 a source holds as i8: those that only whole numbers of i8 are written to, and that only kernels
 * read which take such. A graph says f32, so that gradients flow and any backend runs it; a source takes a quarter of
 * the memory, and sums of products are i32. What is computed is the same. */
#include <string.h>

#include "tiny/emitter.h"

static bool is_held(const tiny_emitter *e, const gr_view *view) {
  return view->buffer != GR_NONE && view->dtype == GRAFT_F32 && e->held[view->buffer] == GRAFT_I8;
}

/* Arguments of the row's bits whose operand is held as i8. */
static uint32_t held_args(const tiny_emitter *e, const gr_node *node, const tiny_op *op) {
  uint32_t held = 0;
  for (uint32_t k = 0; k < node->nargs; k++) {
    if (!(op->i8_args >> k & 1) || node->args[k].kind != GRAFT_VALUE_TENSOR) continue;
    if (is_held(e, &node->operands[node->args[k].as.i].view)) held |= 1u << k;
  }
  return held;
}

/* Whether the kernel reads operand number `number` as i8. */
static bool reads_i8(const tiny_emitter *e, const gr_node *node, const tiny_op *op, uint32_t number) {
  const uint32_t held = held_args(e, node, op);
  if (op->i8_together && held != op->i8_args) return false;
  for (uint32_t k = 0; k < node->nargs; k++) {
    if (held >> k & 1 && (uint32_t)node->args[k].as.i == number) return true;
  }
  return false;
}

static bool give_up(tiny_emitter *e, const gr_view *view) {
  e->held[view->buffer] = GRAFT_F32;
  return true;
}

/* Whether something was given up. */
static bool look_at_node(tiny_emitter *e, const gr_node *node) {
  const tiny_op *op = tiny_op_of(node);
  bool changed = false;
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_view *view = &node->operands[i].view;
    if (is_held(e, view) && !reads_i8(e, node, op, i)) changed = give_up(e, view);
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    const gr_view *view = &node->results[i].view;
    if (is_held(e, view) && (i || !op->gives_i8 || !op->gives_i8(e, node))) changed = give_up(e, view);
  }
  return changed;
}

static void choose(tiny_emitter *e) {
  const graft_graph *g = e->graph;
  memcpy(e->held, e->dtypes, g->nbuffers * sizeof *e->held);
  for (uint32_t i = 0; i < g->nbuffers; i++) {
    if (g->buffers[i].kind == GR_VALUE && e->dtypes[i] == GRAFT_F32) e->held[i] = GRAFT_I8;
  }
  for (uint32_t i = 0; i < g->noutputs; i++) {
    if (is_held(e, &g->outputs[i].view)) give_up(e, &g->outputs[i].view);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t n = 0; n < g->nnodes; n++) changed |= look_at_node(e, g->nodes[n]);
  }
}

/* --- casts that need not be made --- */

static bool is_whole(const gr_buffer *b, const gr_view *view) {
  return !view->offset && tns_is_contiguous(view->ndim, view->sizes, view->strides) &&
         (uint64_t)tns_numel(view->ndim, view->sizes) * dt_bytes(view->dtype) == b->bytes;
}

static bool reads(const gr_node *node, uint32_t buffer) {
  for (uint32_t i = 0; i < node->noperands; i++) {
    if (node->operands[i].view.buffer == buffer) return true;
  }
  return false;
}

bool tiny_writes(const gr_node *node, uint32_t buffer) {
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].view.buffer == buffer) return true;
  }
  for (uint32_t i = 0; i < node->noperands; i++) {
    if (node->operands[i].view.buffer == buffer && node->operands[i].written) return true;
  }
  return false;
}

/* Whether nobody writes `from` before the last node that reads `to`, nor `to` at all, behind node n. */
static bool stays(const graft_graph *g, uint32_t n, uint32_t from, uint32_t to) {
  bool written = false;
  for (uint32_t i = n + 1; i < g->nnodes; i++) {
    written |= tiny_writes(g->nodes[i], from);
    if (tiny_writes(g->nodes[i], to) || (written && reads(g->nodes[i], to))) return false;
  }
  return true;
}

/* A cast from all of an input or a constant of i8, which stays as it is while the result is read, is that memory. */
static void look_at_cast(tiny_emitter *e, uint32_t n) {
  const graft_graph *g = e->graph;
  const gr_node *node = g->nodes[n];
  if (node->nresults != 1 || !is_held(e, &node->results[0].view) || node->noperands != 1) return;
  const gr_view *from = &node->operands[0].view, *to = &node->results[0].view;
  if (from->dtype != GRAFT_I8 || g->buffers[from->buffer].kind == GR_VALUE) return;
  if (!is_whole(&g->buffers[from->buffer], from) || !is_whole(&g->buffers[to->buffer], to)) return;
  if (stays(g, n, from->buffer, to->buffer)) e->same[to->buffer] = from->buffer;
}

void tiny_choose_i8(tiny_emitter *e) {
  choose(e);
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) e->same[i] = GR_NONE;
  for (uint32_t n = 0; n < e->graph->nnodes; n++) look_at_cast(e, n);
}

bool tiny_has_i8(const tiny_emitter *e, const gr_node *node) {
  return held_args(e, node, tiny_op_of(node)) != 0;
}
