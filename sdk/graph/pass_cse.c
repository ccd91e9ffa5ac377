/* Common subexpressions: a node that computes what an earlier one did, from buffers that nobody wrote in between, goes,
 * and its results are those of the earlier one. Not for nodes that draw random numbers or write to what was there, nor
 * where results are written later, or are seen from outside on both sides, where one tensor would become two names of
 * one memory. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "graph/graph.h"

typedef struct cse {
  graft_graph *graph;
  bool *is_output;
  uint32_t *writes;   /* by buffer: how many nodes write it, all in all */
  uint32_t *versions; /* by buffer: how many have, up to here */
  uint32_t *same_as;  /* by buffer: what stands for it */
  uint32_t **before;  /* by node that stays: versions of its operands when it ran */
  uint32_t *table;    /* hash table of node + 1, open addressing */
  uint32_t mask;
  arena memory;
} cse;

static bool is_candidate(const cse *c, const gr_node *node) {
  if (gr_is_random(node) || !node->nresults) return false;
  for (uint32_t i = 0; i < node->noperands; i++) {
    if (node->operands[i].written) return false;
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    const gr_result *r = &node->results[i];
    if (r->view.buffer == GR_NONE) continue;
    if (r->given || c->writes[r->view.buffer] != 1) return false;
  }
  return true;
}

static bool same_value(const graft_value *a, const graft_value *b) {
  if (a->kind != b->kind || a->count != b->count) return false;
  if (a->kind == GRAFT_VALUE_TENSOR || a->kind == GRAFT_VALUE_TENSORS) return true; /* operands are compared */
  size_t bytes = op_value_bytes(a);
  if (bytes) return bytes == op_value_bytes(b) && !memcmp(a->as.str, b->as.str, bytes);
  if (a->kind == GRAFT_VALUE_NONE || a->kind == GRAFT_VALUE_DEVICE) return true;
  if (a->kind == GRAFT_VALUE_DTYPE) return a->as.dtype == b->as.dtype;
  if (a->kind != GRAFT_VALUE_SCALAR) return a->as.i == b->as.i;
  const graft_scalar *x = &a->as.scalar, *y = &b->as.scalar;
  return x->dtype == y->dtype && !memcmp(&x->value, &y->value, sizeof x->value);
}

static uint32_t version_of(const cse *c, const gr_view *view) {
  return view->buffer == GR_NONE ? 0 : c->versions[view->buffer];
}

static bool same_results(const cse *c, const gr_node *a, const gr_node *b) {
  for (uint32_t i = 0; i < a->nresults; i++) {
    gr_view x = a->results[i].view, y = b->results[i].view;
    if ((x.buffer == GR_NONE) != (y.buffer == GR_NONE)) return false;
    if (x.buffer == GR_NONE) continue;
    if (c->is_output[x.buffer] && c->is_output[y.buffer]) return false;
    x.buffer = y.buffer;
    if (!gr_same_view(&x, &y)) return false;
  }
  return true;
}

/* Whether node b, which runs now, gives what node number `at` gave. */
static bool is_same(const cse *c, uint32_t at, const gr_node *b) {
  const gr_node *a = c->graph->nodes[at];
  if (a->schema != b->schema || a->noperands != b->noperands || a->nresults != b->nresults) return false;
  for (uint32_t i = 0; i < a->nargs; i++) {
    if (!same_value(&a->args[i], &b->args[i])) return false;
  }
  for (uint32_t i = 0; i < a->noperands; i++) {
    const gr_view *x = &a->operands[i].view, *y = &b->operands[i].view;
    if (x->buffer != y->buffer || (x->buffer != GR_NONE && !gr_same_view(x, y))) return false;
    if (c->before[at][i] != version_of(c, y)) return false;
  }
  return same_results(c, a, b);
}

static uint64_t hash_of(const gr_node *node) {
  uint64_t hash = node->schema->id;
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_view *v = &node->operands[i].view;
    const uint64_t words[] = {hash, v->buffer, v->buffer == GR_NONE ? 0 : (uint64_t)v->offset};
    hash = XXH3_64bits(words, sizeof words);
  }
  return hash;
}

static void rename_view(const cse *c, gr_view *view) {
  if (view->buffer != GR_NONE) view->buffer = c->same_as[view->buffer];
}

static void rename_node(const cse *c, gr_node *node) {
  for (uint32_t i = 0; i < node->noperands; i++) rename_view(c, &node->operands[i].view);
  for (uint32_t i = 0; i < node->nresults; i++) rename_view(c, &node->results[i].view);
}

static void replace(cse *c, const gr_node *by, const gr_node *node) {
  for (uint32_t i = 0; i < node->nresults; i++) {
    const uint32_t from = node->results[i].view.buffer, to = by->results[i].view.buffer;
    if (from == GR_NONE) continue;
    c->same_as[from] = to;
    c->is_output[to] |= c->is_output[from];
  }
}

/* Whether the node was replaced; else it is one that later ones are compared with. */
static bool look_up(cse *c, const gr_node *node, uint32_t at) {
  uint32_t slot = (uint32_t)hash_of(node) & c->mask;
  for (; c->table[slot]; slot = (slot + 1) & c->mask) {
    if (!is_same(c, c->table[slot] - 1, node)) continue;
    replace(c, c->graph->nodes[c->table[slot] - 1], node);
    return true;
  }
  c->table[slot] = at + 1;
  for (uint32_t i = 0; i < node->noperands; i++) c->before[at][i] = version_of(c, &node->operands[i].view);
  return false;
}

static bool take_arrays(cse *c) {
  const graft_graph *graph = c->graph;
  c->mask = 7;
  while (c->mask < 2 * graph->nnodes) c->mask = c->mask * 2 + 1;
  c->table = arena_take(&c->memory, (c->mask + 1u) * sizeof *c->table);
  c->writes = arena_take(&c->memory, graph->nbuffers * sizeof *c->writes);
  c->versions = arena_take(&c->memory, graph->nbuffers * sizeof *c->versions);
  c->same_as = arena_take(&c->memory, graph->nbuffers * sizeof *c->same_as);
  c->before = arena_take(&c->memory, graph->nnodes * sizeof *c->before);
  return c->table && c->writes && c->versions && c->same_as && c->before;
}

static graft_status run(cse *c) {
  graft_graph *graph = c->graph;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < graph->nbuffers; i++) c->same_as[i] = i;
  for (uint32_t n = 0; n < graph->nnodes; n++) gr_count_writes(graph->nodes[n], c->writes);
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    gr_node *node = graph->nodes[n];
    rename_node(c, node);
    graph->nodes[kept] = node;
    c->before[kept] = arena_take(&c->memory, node->noperands * sizeof **c->before);
    if (!c->before[kept]) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a pass over a graph");
    if (is_candidate(c, node) && look_up(c, node, kept)) continue;
    gr_count_writes(node, c->versions);
    kept++;
  }
  graph->nnodes = kept;
  for (uint32_t i = 0; i < graph->noutputs; i++) rename_view(c, &graph->outputs[i].view);
  return GRAFT_OK;
}

graft_status gr_pass_cse(graft_graph *graph) {
  cse c = {.graph = graph};
  graft_status status = gr_mark_outputs(graph, &c.is_output);
  if (status) return status;
  if (!take_arrays(&c)) status = err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a pass over a graph");
  if (!status) status = run(&c);
  arena_free(&c.memory);
  free(c.is_output);
  return status;
}
