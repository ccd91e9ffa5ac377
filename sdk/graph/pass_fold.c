/* Constants folded: a node that reads constants alone runs now, once, on the device, and its results are constants. Not
 * where it draws random numbers, writes to what was there, or makes much out of little: a large tensor of one number is
 * written sooner than it is read. Of a tensor that is filled with a number, and read by calls alone whose slots take
 * one element in its place, there is that element. A node that fails stays, and fails when the graph runs, as its call
 * would. */
#include <stdlib.h>
#include <string.h>

#include "graph/exec.h"

enum { SMALL_BYTES = 1 << 20 };

typedef struct folding {
  graft_graph *graph;
  uint32_t *writes; /* by buffer */
} folding;

static bool can_fold(const folding *f, const gr_node *node) {
  const gr_buffer *buffers = f->graph->buffers;
  uint64_t in = 0, out = 0;
  if (gr_is_random(node) || !node->nresults) return false;
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_operand *o = &node->operands[i];
    if (o->view.buffer == GR_NONE) continue;
    if (o->written || buffers[o->view.buffer].kind != GR_CONSTANT) return false;
    in += buffers[o->view.buffer].bytes;
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    const gr_result *r = &node->results[i];
    if (r->view.buffer == GR_NONE) continue;
    if (r->given || f->writes[r->view.buffer] != 1) return false;
    out += buffers[r->view.buffer].bytes;
  }
  return out <= SMALL_BYTES || out <= in;
}

static graft_status constant_tensor(const folding *f, const gr_view *view, graft_tensor **t) {
  *t = NULL;
  if (view->buffer == GR_NONE) return GRAFT_OK;
  graft_tensor *bytes = f->graph->buffers[view->buffer].constant;
  const int64_t offset = bytes->offset / (int64_t)dt_bytes(view->dtype) + view->offset;
  graft_status status =
      tns_new(bytes->storage, bytes->device, view->dtype, view->ndim, view->sizes, view->strides, offset, t);
  if (!status) (*t)->flags |= view->flags;
  return status;
}

/* The call of a node; outs receives nresults tensors. */
static graft_status call(const folding *f, const gr_node *node, graft_tensor **operands, graft_tensor **outs) {
  graft_value args[OP_MAX_ARGS];
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->noperands && !status; i++)
    status = constant_tensor(f, &node->operands[i].view, &operands[i]);
  if (status) return status;
  for (uint32_t i = 0; i < node->nargs; i++) {
    args[i] = node->args[i];
    if (args[i].kind == GRAFT_VALUE_TENSOR) args[i] = fx_tensor(operands[args[i].as.i]);
    if (args[i].kind == GRAFT_VALUE_TENSORS) args[i] = graft_value_tensors(operands + args[i].as.i, args[i].count);
    if (args[i].kind == GRAFT_VALUE_DEVICE) args[i].as.device = f->graph->device;
  }
  return graft_call(node->schema->id, args, node->nargs, outs, node->nresults);
}

/* The bytes of a result, which lies as the node's view says. */
static graft_status bytes_of(const folding *f, const graft_tensor *t, uint64_t size, graft_tensor **bytes) {
  const int64_t count = (int64_t)size, one = 1, base = t->offset * (int64_t)dt_bytes(t->dtype);
  graft_tensor *there;
  graft_status status = tns_new(t->storage, t->device, GRAFT_U8, 1, &count, &one, base, &there);
  if (status || (uint64_t)base % f->graph->device->alignment == 0) {
    *bytes = there;
    return status;
  }
  status = graft_tensor_empty(t->device, GRAFT_U8, 1, &count, bytes);
  if (!status && (status = graft_tensor_copy(*bytes, there))) graft_tensor_release(*bytes);
  graft_tensor_release(there);
  return status;
}

/* All results become constants, or none does. */
static graft_status keep_results(const folding *f, const gr_node *node, graft_tensor **outs) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->nresults && !status; i++) {
    const uint32_t buffer = node->results[i].view.buffer;
    graft_tensor *bytes;
    if (buffer == GR_NONE || !outs[i]) continue;
    status = bytes_of(f, outs[i], f->graph->buffers[buffer].bytes, &bytes);
    if (status) break;
    graft_tensor_release(outs[i]);
    outs[i] = bytes;
  }
  for (uint32_t i = 0; i < node->nresults && !status; i++) {
    const uint32_t buffer = node->results[i].view.buffer;
    if (buffer == GR_NONE || !outs[i]) continue;
    f->graph->buffers[buffer].kind = GR_CONSTANT;
    f->graph->buffers[buffer].constant = outs[i];
    outs[i] = NULL;
  }
  return status;
}

static graft_status fold(const folding *f, const gr_node *node, bool *folded) {
  graft_tensor **tensors = calloc(node->noperands + node->nresults + 1u, sizeof *tensors);
  if (!tensors) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a pass over a graph");
  graft_tensor **outs = tensors + node->noperands;
  *folded = call(f, node, tensors, outs) == GRAFT_OK && keep_results(f, node, outs) == GRAFT_OK;
  for (uint32_t i = 0; i < node->noperands + node->nresults; i++) graft_tensor_release(tensors[i]);
  free(tensors);
  return GRAFT_OK;
}

/* --- fills --- */

/* Whether the node fills new memory, whole, with a number. */
static bool is_fill(const folding *f, const gr_node *node) {
  const op_def *def = op_def_of(node->schema->id);
  if (!def || !(def->flags & OP_FILLS) || node->nresults != 1) return false;
  const gr_view *view = &node->results[0].view;
  if (view->buffer == GR_NONE || view->flags || !dt_is_float(view->dtype)) return false;
  const gr_buffer *buffer = &f->graph->buffers[view->buffer];
  const uint64_t bytes = (uint64_t)tns_numel(view->ndim, view->sizes) * dt_bytes(view->dtype);
  return buffer->kind == GR_VALUE && !buffer->on_host && f->writes[view->buffer] == 1 && buffer->bytes == bytes;
}

/* Which argument an operand is of. */
static uint32_t arg_of(const gr_node *node, uint32_t operand) {
  uint32_t a = 0;
  for (; a < node->nargs; a++) {
    const graft_value *v = &node->args[a];
    const uint64_t count = v->kind == GRAFT_VALUE_TENSORS ? v->count : v->kind == GRAFT_VALUE_TENSOR;
    if (operand >= (uint64_t)v->as.i && operand - (uint64_t)v->as.i < count) break;
  }
  return a;
}

/* Whether the slot of a node takes one element in place of this operand. */
static bool takes_element(const folding *f, const gr_node *node, uint32_t operand) {
  const op_def *def = op_def_of(node->schema->id);
  op_slot slot;
  graft_op_caps caps;
  if (!def || !dsp_caps(f->graph->device, node->schema, &slot, &caps)) return false;
  const uint32_t arg = arg_of(node, operand);
  const char role = op_role(node->schema, def, arg);
  const graft_cap_flags strided = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED;
  if (def->flags & OP_ITEM_BY_ITEM) return role == 'c' && caps.flags & GRAFT_CAP_EXPANDED_ITEMS;
  return def->flags & OP_ELEMENTWISE && (role == 'b' || role == 'c') && (caps.flags & strided) == strided;
}

static bool all_take_element(const folding *f, const gr_node *fill) {
  const gr_view *filled = &fill->results[0].view;
  for (uint32_t n = 0; n < f->graph->nnodes; n++) {
    const gr_node *node = f->graph->nodes[n];
    for (uint32_t i = 0; node != fill && i < node->noperands; i++) {
      const gr_view *view = &node->operands[i].view;
      if (view->buffer != filled->buffer) continue;
      if (view->dtype != filled->dtype || view->flags || !takes_element(f, node, i)) return false;
    }
  }
  return true;
}

static void read_element(graft_graph *graph, uint32_t buffer) {
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    gr_node *node = graph->nodes[n];
    for (uint32_t i = 0; i < node->noperands; i++) {
      gr_view *view = &node->operands[i].view;
      if (view->buffer != buffer) continue;
      view->offset = 0;
      memset(view->strides, 0, sizeof view->strides);
    }
  }
}

/* Leaves the element of a fill; what fails is filled in each run. */
static bool keep_element(const folding *f, const gr_node *fill) {
  const int64_t one = 1;
  const graft_dtype dtype = fill->results[0].view.dtype;
  gr_buffer *buffer = &f->graph->buffers[fill->results[0].view.buffer];
  const uint64_t before = buffer->bytes;
  graft_tensor *unset = NULL, *element = NULL;
  graft_value args[OP_MAX_ARGS];
  graft_status status = graft_tensor_empty(f->graph->device, dtype, 1, &one, &unset);
  for (uint32_t i = 0; i < fill->nargs; i++)
    args[i] = fill->args[i].kind == GRAFT_VALUE_TENSOR ? fx_tensor(unset) : fill->args[i];
  if (!status) status = graft_call(fill->schema->id, args, fill->nargs, &element, 1);
  buffer->bytes = dt_bytes(dtype);
  if (!status) status = keep_results(f, fill, &element);
  graft_tensor_release(unset);
  graft_tensor_release(element);
  if (status) buffer->bytes = before;
  return !status;
}

static graft_status fold_fills(const folding *f) {
  graft_graph *graph = f->graph;
  bool *is_output = NULL;
  graft_status status = gr_mark_outputs(graph, &is_output);
  for (uint32_t n = 0; !status && n < graph->nnodes;) {
    const gr_node *node = graph->nodes[n];
    const bool folds = is_fill(f, node) && !is_output[node->results[0].view.buffer] && all_take_element(f, node) &&
                       keep_element(f, node);
    if (folds) {
      memmove(&graph->nodes[n], &graph->nodes[n + 1], (--graph->nnodes - n) * sizeof *graph->nodes);
      read_element(graph, node->results[0].view.buffer);
    } else {
      n++;
    }
  }
  free(is_output);
  return status;
}

graft_status gr_pass_fold(graft_graph *graph) {
  folding f = {graph, calloc(graph->nbuffers + 1u, sizeof *f.writes)};
  graft_status status = f.writes ? GRAFT_OK : err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a pass over a graph");
  for (uint32_t n = 0; n < graph->nnodes && !status; n++) gr_count_writes(graph->nodes[n], f.writes);
  uint32_t kept = 0;
  for (uint32_t n = 0; n < graph->nnodes && !status; n++) {
    gr_node *node = graph->nodes[n];
    bool folded = false;
    if (can_fold(&f, node)) status = fold(&f, node, &folded);
    if (!folded) graph->nodes[kept++] = node;
  }
  graph->nnodes = kept;
  if (!status) status = fold_fills(&f);
  free(f.writes);
  /* What only folded nodes read is no longer needed. */
  return status ? status : gr_drop_constants(graph);
}
