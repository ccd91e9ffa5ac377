/* Backward: runs a graph from its end. A node runs when all gradients of its results have come; of those that are
 * ready, the one recorded last runs first, which is the reverse of the program and so frees memory early. */
#include <stdlib.h>

#include "autograd/graph.h"
#include "ops/generated/fx_ops.h"
#include "tensor/recorder.h"

typedef struct backward {
  const char *name; /* of the public function, for errors */
  ag_graph graph;
  graft_tensor *const *inputs; /* NULL: collect in leaves */
  uint32_t ninputs;
  graft_tensor **results;
  bool create_graph, retain_graph;
  graft_rt_stream *home; /* the caller's stream of the device whose stream a node changed; NULL: none did */
} backward;

/* Where the caller expects results on a device. */
static graft_rt_stream *home_stream(const backward *b, graft_rt_device *device) {
  return b->home && b->home->device == device ? b->home : graft_stream_current(device);
}

static graft_rt_stream *consumer_stream(const backward *b, const ag_node *node, const graft_tensor *gradient) {
  graft_rt_stream *home = home_stream(b, gradient->device);
  if (!node->schema || node->device != gradient->device) return home;
  return home && home->id == node->stream_id ? home : ag_stream_of(node);
}

/* Adds a gradient to what has come for an output. Takes over the reference. */
static graft_status deliver(backward *b, uint32_t task, uint32_t output, graft_tensor *gradient) {
  graft_tensor **at = &b->graph.cotangents[b->graph.tasks[task].first + output];
  graft_rt_stream *from = graft_stream_current(gradient->device);
  graft_rt_stream *to = consumer_stream(b, b->graph.tasks[task].node, gradient);
  graft_status status = ag_stream_hand_over(gradient, from, to);
  if (status) {
    graft_tensor_release(gradient);
    return status;
  }
  if (!*at) return *at = gradient, GRAFT_OK;
  if (from != to) graft_stream_set_current(to);
  graft_tensor *former = *at;
  *at = NULL;
  graft_tensor *sum;
  status = ag_sum(former, gradient, b->create_graph, &sum);
  if (!status) *at = sum;
  if (from != to) graft_stream_set_current(from);
  return status;
}

static void arrived(backward *b, uint32_t task) {
  ag_task *t = &b->graph.tasks[task];
  if (--t->waiting == 0 && ag_task_wanted(t)) ag_graph_push(&b->graph, task);
}

static graft_status run_hooks(ag_node *node, graft_tensor **g) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->nouts && !status; i++) {
    if (g[i]) status = ag_hooks_run(node, i, &g[i]);
  }
  return status;
}

static graft_status capture(backward *b, const ag_node *node, graft_tensor *const *g) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < b->ninputs && !status; i++) {
    const ag_meta *meta = b->inputs[i]->autograd;
    if (meta->node != node || !g[meta->output]) continue;
    graft_tensor *result = g[meta->output];
    status = ag_stream_hand_over(result, graft_stream_current(result->device), home_stream(b, result->device));
    graft_tensor_retain(result);
    b->results[i] = result;
  }
  return status;
}

/* Hands the gradients of a node's inputs on. Takes over the references, also where it fails. */
static graft_status hand_on(backward *b, ag_node *node, graft_tensor **results) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->nslots; i++) {
    ag_edge edge = node->edges[i];
    if (!edge.node) continue;
    uint32_t task = ag_graph_find(&b->graph, edge.node);
    graft_tensor *result = results[i];
    results[i] = NULL;
    if (status) {
      graft_tensor_release(result);
      continue;
    }
    if (result) status = deliver(b, task, edge.output, result);
    arrived(b, task);
  }
  return status;
}

static graft_status run_call(backward *b, ag_node *node, graft_tensor *const *g) {
  enum { FEW = 32 };
  graft_tensor *few[FEW];
  uint8_t few_wanted[FEW];
  graft_tensor **results = few;
  uint8_t *wanted = few_wanted;
  void *heap = NULL;
  if (node->nslots > FEW) {
    heap = malloc(node->nslots * (sizeof *results + 1));
    if (!heap) return err_about(GRAFT_OUT_OF_MEMORY, b->name, "no host memory");
    results = heap;
    wanted = (uint8_t *)(results + node->nslots);
  }
  bool any = false;
  for (uint32_t i = 0; i < node->nouts; i++) any |= g[i] != NULL;
  for (uint32_t i = 0; i < node->nslots; i++) {
    const ag_node *to = node->edges[i].node;
    wanted[i] = to && ag_task_wanted(&b->graph.tasks[ag_graph_find(&b->graph, to)]);
    results[i] = NULL;
  }
  graft_status status = any ? ag_formula_run(node, g, wanted, b->create_graph, results) : GRAFT_OK;
  if (!status && !b->retain_graph) ag_node_free_values(node);
  if (!status) status = hand_on(b, node, results);
  free(heap);
  return status;
}

static graft_status run_leaf(backward *b, ag_node *leaf, graft_tensor **g) {
  graft_tensor *gradient = g[0];
  g[0] = NULL;
  return gradient ? ag_leaf_add(leaf, gradient, b->create_graph) : GRAFT_OK;
}

static graft_status run_task(backward *b, uint32_t task) {
  ag_task t = b->graph.tasks[task];
  graft_tensor **g = &b->graph.cotangents[t.first];
  graft_status status = run_hooks(t.node, g);
  if (!status && t.captured) status = capture(b, t.node, g);
  if (!status && t.run) status = t.node->schema ? run_call(b, t.node, g) : run_leaf(b, t.node, g);
  for (uint32_t i = 0; i < t.node->nouts; i++) {
    graft_tensor_release(g[i]);
    g[i] = NULL;
  }
  return status;
}

/* Runs a task with the stream of its call as the current one. */
static graft_status run_on_its_stream(backward *b, uint32_t task) {
  const ag_node *node = b->graph.tasks[task].node;
  graft_rt_stream *before = graft_stream_current(node->device);
  graft_rt_stream *stream = node->schema ? ag_stream_of(node) : before;
  if (stream == before) return run_task(b, task);
  b->home = before;
  graft_stream_set_current(stream);
  graft_status status = run_task(b, task);
  graft_stream_set_current(before);
  b->home = NULL;
  return status;
}

static graft_status run_graph(backward *b) {
  for (uint32_t i = 0; i < b->graph.count; i++) {
    const ag_task *t = &b->graph.tasks[i];
    if (!t->waiting && ag_task_wanted(t)) ag_graph_push(&b->graph, i);
  }
  graft_status status = GRAFT_OK;
  uint32_t task;
  while (!status && (task = ag_graph_pop(&b->graph)) != AG_NO_TASK) status = run_on_its_stream(b, task);
  return status;
}

static graft_status check_root(const backward *b, graft_tensor *const *roots, graft_tensor *const *grads, uint32_t i) {
  const graft_tensor *root = roots[i], *grad = grads ? grads[i] : NULL;
  char is[160], expected[160];
  if (!root) return err_about(GRAFT_INVALID_ARGUMENT, b->name, "root %u is NULL", i);
  tns_describe(root, expected, sizeof expected);
  if (!ag_requires(root)) {
    return err_about(GRAFT_INVALID_ARGUMENT, b->name,
                     "root %u (%s) does not require grad: nothing it was computed from does, or grad mode was off", i,
                     expected);
  }
  if (!grad && (root->numel != 1 || dt_is_complex(root->dtype))) {
    return err_about(GRAFT_INVALID_ARGUMENT, b->name,
                     "root %u (%s) needs a gradient to begin with: one is only implied for a real tensor with one "
                     "element",
                     i, expected);
  }
  if (!grad) return GRAFT_OK;
  if (grad->device == root->device && tns_same_sizes(grad, root)) return GRAFT_OK;
  return err_about(
      GRAFT_INVALID_ARGUMENT, b->name, "the gradient of root %u is %s on %s, expected the shape of %s on %s", i,
      tns_describe(grad, is, sizeof is), graft_device_text(grad->device), expected, graft_device_text(root->device));
}

static graft_status check_inputs(const backward *b) {
  for (uint32_t i = 0; i < b->ninputs; i++) {
    if (!b->inputs[i]) return err_about(GRAFT_INVALID_ARGUMENT, b->name, "input %u is NULL", i);
    if (!ag_requires(b->inputs[i])) {
      return err_about(GRAFT_INVALID_ARGUMENT, b->name, "input %u does not require grad", i);
    }
  }
  return GRAFT_OK;
}

/* The gradient a root begins with. */
static graft_status deliver_root(backward *b, graft_tensor *root, graft_tensor *grad) {
  uint32_t task = ag_graph_find(&b->graph, root->autograd->node);
  if (!ag_task_wanted(&b->graph.tasks[task])) return GRAFT_OK;
  fx s;
  fx_begin(&s, &fx_execute);
  graft_tensor *first =
      grad ? fx_cast(&s, grad, root->dtype) : fx_filled(&s, root, root->ndim, root->sizes, 1.0, root->dtype);
  first = fx_keep(&s, first);
  graft_status status = fx_end(&s);
  return status ? status : deliver(b, task, root->autograd->output, first);
}

static graft_status run(backward *b, graft_tensor *const *roots, graft_tensor *const *grads, uint32_t count) {
  graft_status status = ag_graph_build(&b->graph, roots, count, b->inputs, b->ninputs);
  for (uint32_t i = 0; i < count && !status; i++) status = deliver_root(b, roots[i], grads ? grads[i] : NULL);
  if (!status) status = run_graph(b);
  ag_graph_free(&b->graph);
  return status;
}

/* A hook may release or change roots, so their nodes are held while they run. */
static graft_status run_held(backward *b, graft_tensor *const *roots, graft_tensor *const *grads, uint32_t count) {
  ag_node **held = malloc((count + b->ninputs + 1) * sizeof *held);
  if (!held) return err_about(GRAFT_OUT_OF_MEMORY, b->name, "no host memory");
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++) held[n++] = roots[i]->autograd->node;
  for (uint32_t i = 0; i < b->ninputs; i++) held[n++] = b->inputs[i]->autograd->node;
  for (uint32_t i = 0; i < n; i++) ag_node_retain(held[i]);
  bool grad_mode = graft_grad_mode_set(b->create_graph);
  graft_status status = run(b, roots, grads, count);
  graft_grad_mode_set(grad_mode);
  for (uint32_t i = 0; i < n; i++) ag_node_release(held[i]);
  free(held);
  return status;
}

static graft_status start(backward *b, graft_tensor *const *roots, graft_tensor *const *grads, uint32_t count,
                          graft_backward_flags flags) {
  const graft_backward_flags known = GRAFT_BACKWARD_RETAIN_GRAPH | GRAFT_BACKWARD_CREATE_GRAPH;
  if (flags & ~known) return err_about(GRAFT_INVALID_ARGUMENT, b->name, "unknown flags 0x%x", flags & ~known);
  b->create_graph = flags & GRAFT_BACKWARD_CREATE_GRAPH;
  b->retain_graph = flags != 0; /* create_graph implies it */
  graft_status status = check_inputs(b);
  for (uint32_t i = 0; i < count && !status; i++) status = check_root(b, roots, grads, i);
  return status ? status : run_held(b, roots, grads, count);
}

graft_status graft_backward(graft_tensor *const *roots, graft_tensor *const *grads, uint32_t count,
                            graft_backward_flags flags) {
  if (count && !roots) return err_null(__func__, "roots");
  if (tns_recording && tns_recording->backward) {
    const tns_backward call = {.roots = roots, .grads = grads, .count = count, .flags = flags};
    return tns_recording->backward(tns_recording, &call);
  }
  backward b = {.name = "backward"};
  return start(&b, roots, grads, count, flags);
}

graft_status graft_grad(graft_tensor *const *roots, graft_tensor *const *grads, uint32_t count,
                        graft_tensor *const *inputs, uint32_t input_count, graft_backward_flags flags,
                        graft_tensor **results) {
  if (count && !roots) return err_null(__func__, "roots");
  if (input_count && !inputs) return err_null(__func__, "inputs");
  if (input_count && !results) return err_null(__func__, "results");
  if (!input_count) return GRAFT_OK;
  if (tns_recording && tns_recording->backward) {
    const tns_backward call = {roots, grads, inputs, results, count, input_count, flags};
    return tns_recording->backward(tns_recording, &call);
  }
  graft_tensor **found = calloc(input_count, sizeof *found);
  if (!found) return err_set(GRAFT_OUT_OF_MEMORY, "grad: no host memory");
  backward b = {.name = "grad", .inputs = inputs, .ninputs = input_count, .results = found};
  graft_status status = start(&b, roots, grads, count, flags);
  for (uint32_t i = 0; i < input_count; i++) {
    if (status) {
      graft_tensor_release(found[i]);
    } else {
      results[i] = found[i];
    }
  }
  free(found);
  return status;
}
