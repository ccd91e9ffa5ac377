/* What both formats of a graph in a file have: buffers, views, names, values. */
#include "graph/file_parts.h"

#include <stdlib.h>
#include <string.h>

static graft_status no_memory(const loading *l) {
  return err_about(GRAFT_OUT_OF_MEMORY, l->file.path, "no host memory for its graph");
}

/* --- buffers --- */

static graft_status read_buffer(const loading *l, const cJSON *item, uint32_t number, file_buffer *b) {
  static const char *const kinds[] = {[GR_VALUE] = "value", [GR_INPUT] = "input", [GR_CONSTANT] = "constant"};
  const char *kind = cJSON_GetStringValue(field(item, "kind"));
  uint32_t at = 0;
  while (at < 3 && (!kind || strcmp(kinds[at], kind) != 0)) at++;
  if (at == 3) return bad(l, "buffer %u has no kind that there is", number);
  b->kind = (gr_kind)at;
  if (!gr_json_get_int(field(item, "bytes"), &b->bytes) || b->bytes < 0 || b->bytes > GR_BYTES_MAX)
    return bad(l, "buffer %u has no size in bytes that there is", number);
  if (!gr_json_get_bool(item, "on_host", &b->on_host) || (b->on_host && b->kind == GR_VALUE))
    return bad(l, "buffer %u is a value, and on_host; numbers in host memory are inputs and constants", number);
  return GRAFT_OK;
}

graft_status gr_load_buffers(loading *l) {
  const cJSON *list = field(l->file.graph, "buffers"), *item;
  if (!cJSON_IsArray(list)) return bad(l, "its graph has no list \"buffers\"");
  const size_t count = (size_t)cJSON_GetArraySize(list);
  l->buffers = arena_take(&l->memory, count * sizeof *l->buffers);
  if (!l->buffers) return no_memory(l);
  graft_status status = GRAFT_OK;
  cJSON_ArrayForEach(item, list) {
    if (!status) status = read_buffer(l, item, l->nbuffers, &l->buffers[l->nbuffers]);
    l->nbuffers++;
  }
  return status;
}

graft_rt_device *gr_load_device(const loading *l, const file_buffer *b) {
  return b->on_host ? graft_device_reference() : l->device;
}

/* A constant: its bytes, and a storage without memory that stands for it, as for any other value. */
static graft_status add_constant(loading *l, file_buffer *b, uint32_t number) {
  graft_tensor *made = NULL;
  uint32_t index;
  void *bytes;
  graft_status status = gr_file_read_constant(&l->file, number, (uint64_t)b->bytes, &bytes);
  if (status) return status;
  status = graft_tensor_from_host(gr_load_device(l, b), GRAFT_U8, 1, &b->bytes, bytes, &made);
  free(bytes);
  if (!status) status = gr_add_buffer(l->graph, GR_CONSTANT, (uint64_t)b->bytes, &index);
  if (status) {
    graft_tensor_release(made);
    return status;
  }
  l->graph->buffers[index].constant = made;
  l->graph->buffers[index].on_host = b->on_host;
  return tns_storage_symbolic(gr_load_device(l, b), (uint64_t)b->bytes, l->graph->serial << 32 | (index + UINT64_C(1)),
                              &b->storage);
}

graft_status gr_load_constants(loading *l) {
  uint32_t number = 0;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < l->nbuffers && !status; i++) {
    if (l->buffers[i].kind == GR_CONSTANT) status = add_constant(l, &l->buffers[i], number++);
  }
  return status;
}

/* --- views --- */

graft_status gr_load_view(const loading *l, const cJSON *item, const char *what, gr_view *view) {
  const char *problem = gr_json_get_view(item, view);
  if (problem) return unfit(what, "its view: %s", problem);
  if (!gr_json_get_index(field(item, "buffer"), &view->buffer) || view->buffer >= l->nbuffers)
    return unfit(what, "its view is of no buffer that there is");
  const file_buffer *b = &l->buffers[view->buffer];
  if (tns_extent_bytes(view->dtype, view->ndim, view->sizes, view->strides, view->offset) > b->bytes)
    return unfit(what, "its view goes beyond buffer %u, of %lld bytes", view->buffer, (long long)b->bytes);
  if (b->on_host && view->ndim) return unfit(what, "its view is of a number in host memory, and no number");
  return GRAFT_OK;
}

/* --- inputs and outputs --- */

graft_status gr_load_name(const loading *l, const cJSON *item, const char *kind, const char **name) {
  *name = cJSON_GetStringValue(field(item, "name"));
  return *name ? gr_check_name(kind, *name) : bad(l, "an %s has no name", kind);
}

graft_status gr_load_value(const loading *l, gr_port *input) {
  const gr_buffer *b = &l->graph->buffers[input->view.buffer];
  const int64_t count = (int64_t)b->bytes;
  void *bytes;
  graft_status status = gr_file_read_input(&l->file, input->name, b->bytes, &bytes);
  if (status || !bytes) return status;
  if (gr_has_open_size(l->graph, input)) {
    free(bytes);
    return unfit(input->name, "it has an open size, and begins with a value");
  }
  graft_rt_device *device = b->on_host ? graft_device_reference() : l->device;
  status = graft_tensor_from_host(device, GRAFT_U8, 1, &count, bytes, &input->value);
  free(bytes);
  return status;
}
