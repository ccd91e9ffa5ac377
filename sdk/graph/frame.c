/* Frames: the tensors and arguments of one run. */
#include <stdlib.h>
#include <string.h>

#include "graph/exec.h"

static void fill_cell(graft_tensor *t, const gr_view *view, graft_rt_device *device) {
  memset(t, 0, sizeof *t);
  atomic_init(&t->refs, 1);
  t->dtype = view->dtype;
  t->ndim = view->ndim;
  t->flags = view->flags;
  t->device = device;
  t->numel = tns_numel(view->ndim, view->sizes);
  memcpy(t->sizes, view->sizes, sizeof t->sizes);
  memcpy(t->strides, view->strides, sizeof t->strides);
}

static graft_tensor *cell_of(gr_frame *frame, uint32_t cell) {
  return cell == GR_NONE ? NULL : &frame->cells[cell];
}

static void fill_step(gr_frame *frame, const gr_step *step) {
  const gr_node *node = step->node;
  graft_tensor **operands = frame->operands + step->first_operand;
  graft_value *args = frame->args + step->first_arg;
  for (uint32_t i = 0; i < node->noperands; i++) operands[i] = cell_of(frame, step->operands[i]);
  for (uint32_t i = 0; i < node->nargs; i++) {
    args[i] = step->args[i];
    const int64_t at = node->args[i].as.i;
    if (node->args[i].kind == GRAFT_VALUE_TENSOR) args[i] = fx_tensor(operands[at]);
    if (node->args[i].kind == GRAFT_VALUE_TENSORS) args[i] = graft_value_tensors(operands + at, node->args[i].count);
  }
}

static bool take_arrays(const graft_graph_exec *exec, gr_frame *f) {
  const graft_graph *graph = exec->graph;
  f->cells = calloc(exec->ncells + 1u, sizeof *f->cells);
  f->args = calloc(exec->nargs + 1u, sizeof *f->args);
  f->operands = calloc(exec->noperands + 1u, sizeof *f->operands);
  f->results = calloc(exec->nresults + 1u, sizeof *f->results);
  f->storages = calloc(graph->nbuffers + 1u, sizeof *f->storages);
  f->handed = calloc(graph->nbuffers + 1u, sizeof *f->handed);
  f->bases = calloc(graph->nbuffers + 1u, sizeof *f->bases);
  f->arenas = calloc(exec->narenas + 1u, sizeof *f->arenas);
  f->descs = calloc(exec->ndescs + 1u, sizeof *f->descs);
  f->desc_items = calloc(exec->ndescs + 1u, sizeof *f->desc_items);
  f->philox = calloc(exec->ndraws + 1u, sizeof *f->philox);
  f->philox_items = calloc(exec->ndraws + 1u, sizeof *f->philox_items);
  for (uint32_t i = 0; f->descs && f->desc_items && i < exec->ndescs; i++) f->desc_items[i] = &f->descs[i];
  for (uint32_t i = 0; f->philox && f->philox_items && i < exec->ndraws; i++) f->philox_items[i] = &f->philox[i];
  return f->descs && f->desc_items && f->cells && f->args && f->operands && f->results && f->storages && f->handed &&
         f->bases && f->arenas && f->philox && f->philox_items;
}

graft_status gr_frame_new(const graft_graph_exec *exec, gr_frame **frame) {
  gr_frame *f = calloc(1, sizeof *f);
  if (!f || !take_arrays(exec, f)) {
    gr_frame_free(f);
    return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the run of a graph");
  }
  const graft_graph *graph = exec->graph;
  for (uint32_t i = 0; i < exec->ncells; i++) {
    const gr_view *view = &exec->cells[i].view;
    bool on_host = graph->buffers[view->buffer].on_host;
    fill_cell(&f->cells[i], view, on_host ? graft_device_reference() : exec->device);
  }
  for (uint32_t i = 0; i < graph->nnodes; i++) fill_step(f, &exec->steps[i]);
  *frame = f;
  return GRAFT_OK;
}

void gr_frame_free(gr_frame *f) {
  if (!f) return;
  free(f->cells);
  free(f->args);
  free(f->operands);
  free(f->results);
  free(f->storages);
  free(f->handed);
  free(f->bases);
  free(f->arenas);
  free(f->descs);
  free(f->desc_items);
  free(f->philox);
  free(f->philox_items);
  free(f);
}

graft_status gr_frame_bind(const graft_graph_exec *exec, gr_frame *frame, uint32_t buffer, graft_storage *storage,
                           uint64_t base) {
  frame->storages[buffer] = storage;
  frame->bases[buffer] = base;
  for (uint32_t i = exec->places[buffer].first_cell; i != GR_NONE; i = exec->cells[i].next) {
    const uint64_t unit = dt_bytes(exec->cells[i].view.dtype);
    if (base % unit) {
      return err_set(
          GRAFT_INVALID_ARGUMENT,
          "it begins at byte %llu of its storage, and the graph views it as %s, of %llu bytes each; clone it",
          (unsigned long long)base, graft_dtype_name(exec->cells[i].view.dtype), (unsigned long long)unit);
    }
    frame->cells[i].storage = storage;
    frame->cells[i].offset = (int64_t)(base / unit) + exec->cells[i].view.offset;
  }
  return GRAFT_OK;
}
