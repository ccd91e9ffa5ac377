/* Tensors with memory that a recording comes upon: their values now. */
#include "graph/graph.h"
#include "tensor/copy.h"

static uint64_t address_unit(const graft_graph *graph) {
  return graph->device->alignment > 64 ? graph->device->alignment : 64;
}

/* The bytes of a storage from `first` on, in memory of the graph's own. */
static graft_status copy_bytes(graft_tensor *t, uint64_t first, uint64_t bytes, graft_tensor **made) {
  const int64_t size = (int64_t)bytes, one = 1;
  graft_tensor *from;
  tns_recorder *recording = tns_recording;
  tns_recording = NULL; /* this is to run */
  graft_status status = tns_new(t->storage, t->device, GRAFT_U8, 1, &size, &one, (int64_t)first, &from);
  if (!status) {
    status = graft_tensor_empty(t->device, GRAFT_U8, 1, &size, made);
    if (!status && (status = tns_copy(*made, from))) graft_tensor_release(*made);
    graft_tensor_release(from);
  }
  tns_recording = recording;
  return status;
}

static bool is_known(const gr_buffer *b, const graft_storage *storage, uint64_t first, uint64_t bytes) {
  return b->kind == GR_CONSTANT && b->source_id == storage->id && b->source_first == first && b->bytes == bytes &&
         b->source_version == atomic_load(&storage->version);
}

static graft_status add_constant(graft_graph *graph, graft_tensor *t, uint64_t first, uint64_t bytes, uint32_t *index) {
  const graft_storage *storage = t->storage;
  bool unseen = atomic_load(&storage->unseen);
  for (uint32_t i = 0; !unseen && i < graph->nbuffers; i++) {
    if (is_known(&graph->buffers[i], storage, first, bytes)) return *index = i, GRAFT_OK;
  }
  graft_tensor *made;
  graft_status status = copy_bytes(t, first, bytes, &made);
  if (status) return status;
  status = gr_add_buffer(graph, GR_CONSTANT, bytes, index);
  if (status) {
    graft_tensor_release(made);
    return status;
  }
  gr_buffer *b = &graph->buffers[*index];
  b->constant = made;
  b->on_host = t->device != graph->device;
  if (unseen) return GRAFT_OK;
  b->source_id = storage->id;
  b->source_version = atomic_load(&storage->version);
  b->source_first = first;
  return GRAFT_OK;
}

graft_status gr_constant_view(graft_graph *graph, const char *op, graft_tensor *t, gr_view *view) {
  char is[160];
  tns_describe(t, is, sizeof is);
  if (!t->storage) return err_about(GRAFT_INVALID_ARGUMENT, op, "%s has a shape but no memory", is);
  if (graft_tensor_requires_grad(t)) {
    return err_about(GRAFT_INVALID_ARGUMENT, op,
                     "%s requires grad and is no value of the graph that is recorded, which would be lost to its "
                     "history; make it an input (graft_graph_input_like), or detach it",
                     is);
  }
  if (t->device != graph->device && (!t->device->is_reference || t->ndim)) {
    return err_about(GRAFT_INVALID_ARGUMENT, op, "%s is on %s; the graph is recorded for %s", is,
                     graft_device_text(t->device), graft_device_text(graph->device));
  }
  uint64_t begin = (uint64_t)t->offset * dt_bytes(t->dtype), unit = address_unit(graph), first = begin / unit * unit;
  int64_t end = t->numel ? tns_extent_bytes(t->dtype, t->ndim, t->sizes, t->strides, t->offset) : (int64_t)first;
  uint32_t index;
  graft_status status = add_constant(graph, t, first, (uint64_t)end - first, &index);
  if (!status) *view = gr_view_of(t, index, first);
  return status;
}
