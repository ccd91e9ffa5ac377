/* See graph.h. No recursion: graphs are as deep as programs are long. */
#include "autograd/graph.h"

#include <stdlib.h>
#include <string.h>

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "backward: no host memory for its graph");
}

static uint32_t hash_of(const ag_node *node) {
  uint64_t x = (uint64_t)(uintptr_t)node >> 4;
  return (uint32_t)((x * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

static uint32_t *place_of(const ag_graph *g, const ag_node *node) {
  uint32_t at = hash_of(node) & (g->table_size - 1);
  while (g->table[at] && g->tasks[g->table[at] - 1].node != node) at = (at + 1) & (g->table_size - 1);
  return &g->table[at];
}

uint32_t ag_graph_find(const ag_graph *g, const ag_node *node) {
  return g->table_size ? *place_of(g, node) - 1 : AG_NO_TASK; /* an empty place is 0, so AG_NO_TASK */
}

static graft_status grow(ag_graph *g) {
  uint32_t capacity = g->capacity ? g->capacity * 2 : 64;
  ag_task *tasks = realloc(g->tasks, capacity * sizeof *tasks);
  if (!tasks) return no_memory();
  g->tasks = tasks;
  uint32_t *table = calloc(capacity * 2, sizeof *table);
  if (!table) return no_memory();
  free(g->table);
  g->table = table;
  g->table_size = capacity * 2;
  g->capacity = capacity;
  for (uint32_t i = 0; i < g->count; i++) *place_of(g, g->tasks[i].node) = i + 1;
  return GRAFT_OK;
}

/* The task of a node, and whether it is new. */
static graft_status visit(ag_graph *g, ag_node *node, uint32_t *task, bool *is_new) {
  if (g->count == g->capacity) {
    graft_status status = grow(g);
    if (status) return status;
  }
  uint32_t *place = place_of(g, node);
  *is_new = !*place;
  if (*is_new) {
    g->tasks[g->count] = (ag_task){.node = node, .first = g->ncotangents};
    g->ncotangents += node->nouts;
    *place = ++g->count;
  }
  *task = *place - 1;
  return GRAFT_OK;
}

typedef struct step {
  uint32_t task, next_edge;
} step;

typedef struct walk {
  ag_graph *graph;
  step *stack;
  size_t count, capacity;
  bool collect; /* leaves are wanted */
} walk;

static graft_status enter(walk *w, ag_node *node, bool is_dependency) {
  uint32_t task;
  bool is_new;
  graft_status status = visit(w->graph, node, &task, &is_new);
  if (status) return status;
  if (is_dependency) w->graph->tasks[task].waiting++;
  if (!is_new) return GRAFT_OK;
  if (!node->schema) w->graph->tasks[task].run = w->collect && !node->stopped;
  if (w->count == w->capacity) {
    size_t capacity = w->capacity ? w->capacity * 2 : 64;
    step *stack = realloc(w->stack, capacity * sizeof *stack);
    if (!stack) return no_memory();
    w->stack = stack;
    w->capacity = capacity;
  }
  w->stack[w->count++] = (step){task, 0};
  return GRAFT_OK;
}

/* Depth first: when a node is left, all below it have been, so what is worth running is known on the way back. */
static graft_status walk_from(walk *w, ag_node *root) {
  graft_status status = enter(w, root, false);
  while (!status && w->count) {
    step *top = &w->stack[w->count - 1];
    ag_node *node = w->graph->tasks[top->task].node;
    while (top->next_edge < node->nslots && !node->edges[top->next_edge].node) top->next_edge++;
    if (top->next_edge < node->nslots) {
      status = enter(w, node->edges[top->next_edge++].node, true);
    } else {
      w->count--;
    }
  }
  return status;
}

static int by_sequence(const void *a, const void *b) {
  const ag_task *const *x = a, *const *y = b;
  uint64_t s = (*x)->node->sequence, t = (*y)->node->sequence;
  return s < t ? -1 : s > t;
}

/* Marks every node that leads to a wanted one: edges lead to smaller sequences, or to leaves, which are marked. */
static graft_status mark_wanted(ag_graph *g) {
  ag_task **order = malloc((g->count ? g->count : 1) * sizeof *order);
  if (!order) return no_memory();
  for (uint32_t i = 0; i < g->count; i++) order[i] = &g->tasks[i];
  qsort(order, g->count, sizeof *order, by_sequence);
  for (uint32_t i = 0; i < g->count; i++) {
    const ag_node *node = order[i]->node;
    for (uint32_t e = 0; e < node->nslots && !order[i]->run; e++) {
      if (node->edges[e].node) order[i]->run = ag_task_wanted(&g->tasks[ag_graph_find(g, node->edges[e].node)]);
    }
  }
  free(order);
  return GRAFT_OK;
}

graft_status ag_graph_build(ag_graph *g, graft_tensor *const *roots, uint32_t nroots, graft_tensor *const *inputs,
                            uint32_t ninputs) {
  *g = (ag_graph){0};
  walk w = {.graph = g, .collect = !inputs};
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < nroots && !status; i++) status = walk_from(&w, roots[i]->autograd->node);
  free(w.stack);
  if (status) return status;
  for (uint32_t i = 0; i < ninputs; i++) {
    uint32_t task = ag_graph_find(g, inputs[i]->autograd->node);
    if (task != AG_NO_TASK) g->tasks[task].captured = true;
  }
  g->cotangents = calloc(g->ncotangents ? g->ncotangents : 1, sizeof *g->cotangents);
  g->ready = malloc((g->count ? g->count : 1) * sizeof *g->ready);
  if (!g->cotangents || !g->ready) return no_memory();
  return mark_wanted(g);
}

void ag_graph_free(ag_graph *g) {
  if (g->cotangents) {
    for (size_t i = 0; i < g->ncotangents; i++) graft_tensor_release(g->cotangents[i]);
  }
  free(g->cotangents);
  free(g->ready);
  free(g->table);
  free(g->tasks);
  *g = (ag_graph){0};
}

static bool before(const ag_graph *g, uint32_t a, uint32_t b) {
  return g->tasks[g->ready[a]].node->sequence > g->tasks[g->ready[b]].node->sequence;
}

static void swap(ag_graph *g, uint32_t a, uint32_t b) {
  uint32_t task = g->ready[a];
  g->ready[a] = g->ready[b];
  g->ready[b] = task;
}

void ag_graph_push(ag_graph *g, uint32_t task) {
  uint32_t at = g->nready++;
  g->ready[at] = task;
  for (; at && before(g, at, (at - 1) / 2); at = (at - 1) / 2) swap(g, at, (at - 1) / 2);
}

uint32_t ag_graph_pop(ag_graph *g) {
  if (!g->nready) return AG_NO_TASK;
  uint32_t task = g->ready[0];
  g->ready[0] = g->ready[--g->nready];
  for (uint32_t at = 0, child; (child = 2 * at + 1) < g->nready; at = child) {
    if (child + 1 < g->nready && before(g, child + 1, child)) child++;
    if (!before(g, child, at)) break;
    swap(g, at, child);
  }
  return task;
}
