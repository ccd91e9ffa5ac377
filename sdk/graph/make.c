/* A graph for other sizes: the script is called once more, with numbers in the place of names. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/script.h"

typedef struct making {
  const graft_graph *open;
  const gr_script *script;
  const int64_t *values;  /* of sizes */
  graft_graph *graph;     /* that is made */
  graft_tensor **tensors; /* by value, owned */
  uint32_t *last;         /* by value: the entry that uses it last; GR_NONE: it is an output */
  arena memory;           /* of one entry */
} making;

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to make a graph for other sizes");
}

static int64_t value_of(const making *m, int64_t number) {
  return gr_size_value(&m->script->sizes, m->values, number);
}

/* --- inputs and constants --- */

static graft_status make_input(making *m, const gr_port *port) {
  const gr_view *view = &port->view;
  const gr_buffer *from = &m->open->buffers[view->buffer];
  graft_rt_device *device = from->on_host ? graft_device_reference() : m->open->device;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < view->ndim; i++) {
    sizes[i] = value_of(m, port->open->sizes[i]);
    strides[i] = value_of(m, port->open->strides[i]);
  }
  graft_tensor **t = &m->tensors[port->value_number];
  graft_status status =
      gr_new_input(m->graph, device, view->dtype, view->ndim, sizes, port->open->strided ? strides : NULL, t);
  if (status) return err_attribute(status, port->name);
  (*t)->flags |= view->flags;
  status = gr_add_input(m->graph, port->name, *t);
  if (status) return status;
  gr_buffer *made = &m->graph->buffers[m->graph->nbuffers - 1];
  made->on_host = from->on_host;
  made->donated = from->donated;
  return GRAFT_OK;
}

static graft_status add_constant(making *m, uint32_t from, graft_storage **storage) {
  const gr_buffer *b = &m->open->buffers[from];
  uint32_t index;
  graft_status status = gr_add_buffer(m->graph, GR_CONSTANT, b->bytes, &index);
  if (status) return status;
  graft_tensor_retain(b->constant);
  m->graph->buffers[index].constant = b->constant;
  m->graph->buffers[index].on_host = b->on_host;
  return tns_storage_symbolic(b->on_host ? graft_device_reference() : m->open->device, b->bytes,
                              m->graph->serial << 32 | (index + UINT64_C(1)), storage);
}

static graft_status make_constant(making *m, const gr_script_constant *c, graft_storage **storages) {
  const gr_view *v = &c->view;
  graft_storage **storage = &storages[v->buffer];
  graft_status status = *storage ? GRAFT_OK : add_constant(m, v->buffer, storage);
  graft_tensor **t = &m->tensors[c->value];
  if (!status) status = tns_new(*storage, (*storage)->device, v->dtype, v->ndim, v->sizes, v->strides, v->offset, t);
  if (!status) (*t)->flags |= v->flags;
  return status;
}

static graft_status make_constants(making *m) {
  graft_storage **storages = calloc(m->open->nbuffers + 1u, sizeof(graft_storage *));
  graft_status status = storages ? GRAFT_OK : no_memory();
  for (uint32_t i = 0; i < m->script->nconstants && !status; i++)
    status = make_constant(m, &m->script->constants[i], storages);
  for (uint32_t i = 0; storages && i < m->open->nbuffers; i++) tns_storage_release(storages[i]);
  free(storages);
  return status;
}

/* --- entries --- */

static graft_status tensor_of(const making *m, const gr_value_use *use, graft_tensor **t) {
  *t = use->value == GR_NONE ? NULL : m->tensors[use->value];
  if (!*t || !use->is_leaf || graft_tensor_requires_grad(*t) == use->requires_grad) return GRAFT_OK;
  return graft_tensor_set_requires_grad(*t, use->requires_grad);
}

static graft_status list_of(making *m, const gr_value_use *uses, uint32_t count, graft_tensor ***items) {
  graft_status status = GRAFT_OK;
  *items = arena_take(&m->memory, count * sizeof **items);
  if (!*items) return no_memory();
  for (uint32_t i = 0; i < count && !status; i++) status = tensor_of(m, &uses[i], &(*items)[i]);
  return status;
}

static graft_status take_arg(making *m, const gr_entry *entry, graft_value *v) {
  graft_tensor *t;
  graft_tensor **items;
  graft_status status = GRAFT_OK;
  if (v->kind == GRAFT_VALUE_TENSOR) {
    status = tensor_of(m, &entry->uses[v->as.i], &t);
    v->as.tensor = t;
  } else if (v->kind == GRAFT_VALUE_TENSORS) {
    status = list_of(m, &entry->uses[v->as.i], v->count, &items);
    v->as.tensors = items;
  } else if (v->kind == GRAFT_VALUE_DEVICE && v->as.device) {
    v->as.device = m->open->device;
  }
  return status;
}

/* What an entry gave takes its place, or is nobody's. */
static graft_status keep_outs(making *m, const gr_entry *entry, graft_tensor **outs) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < entry->nouts; i++) {
    const gr_made_value *out = &entry->outs[i];
    if (out->given) continue;
    if (out->value != GR_NONE)
      m->tensors[out->value] = outs[i];
    else
      graft_tensor_release(outs[i]);
    if (out->value != GR_NONE && !outs[i])
      status =
          err_set(GRAFT_INVALID_ARGUMENT, "it gives no result %u at these sizes, and gave one when it was recorded", i);
  }
  return status;
}

/* A call may have given results, and fail after that: its history could not be recorded. */
static void drop_outs(const gr_entry *entry, graft_tensor **outs) {
  for (uint32_t i = 0; i < entry->nouts; i++) {
    if (!entry->outs[i].given) graft_tensor_release(outs[i]);
  }
}

static graft_status make_call(making *m, const gr_entry *entry) {
  bool named;
  graft_value *args = gr_with_values(&m->script->sizes, m->values, entry->args, entry->nargs, &m->memory, &named);
  graft_tensor **outs = arena_take(&m->memory, entry->nouts * sizeof *outs);
  graft_status status = args && outs ? GRAFT_OK : no_memory();
  for (uint32_t i = 0; i < entry->nargs && !status; i++) status = take_arg(m, entry, &args[i]);
  for (uint32_t i = 0; i < entry->nouts && !status; i++)
    outs[i] = entry->outs[i].given ? m->tensors[entry->outs[i].value] : NULL;
  if (!status) status = graft_call(entry->op_id, args, entry->nargs, outs, entry->nouts);
  if (!status) return keep_outs(m, entry, outs);
  if (outs) drop_outs(entry, outs);
  return status;
}

/* The gradients that it left in leaves. */
static graft_status keep_gradients(making *m, const gr_entry *entry) {
  for (uint32_t i = 0; i < entry->nouts; i++) {
    const gr_made_value *out = &entry->outs[i];
    if (out->value == GR_NONE) continue;
    graft_tensor *grad = graft_tensor_grad(m->tensors[out->leaf]);
    if (!grad) return err_set(GRAFT_INVALID_ARGUMENT, "it gives a leaf no gradient, and gave one when it was recorded");
    graft_tensor_retain(grad);
    m->tensors[out->value] = grad;
  }
  return GRAFT_OK;
}

static graft_status make_backward(making *m, const gr_entry *entry) {
  graft_tensor **roots, **grads, **inputs;
  const uint32_t count = entry->count, ninputs = entry->nuses - 2 * count;
  graft_tensor **results = arena_take(&m->memory, entry->nouts * sizeof *results);
  graft_status status = results ? list_of(m, entry->uses, count, &roots) : no_memory();
  if (!status) status = list_of(m, entry->uses + count, count, &grads);
  if (!status) status = list_of(m, entry->uses + 2 * count, ninputs, &inputs);
  if (status) return status;
  if (entry->act == GR_BACKWARD) {
    status = graft_backward(roots, grads, count, entry->flags);
    return status ? status : keep_gradients(m, entry);
  }
  status = graft_grad(roots, grads, count, inputs, ninputs, entry->flags, results);
  return status ? status : keep_outs(m, entry, results);
}

static void drop_used(making *m, const gr_entry *entry, uint32_t number) {
  for (uint32_t i = 0; i < entry->nuses + entry->nouts; i++) {
    const uint32_t value = i < entry->nuses ? entry->uses[i].value : entry->outs[i - entry->nuses].value;
    if (value == GR_NONE || m->last[value] != number) continue;
    graft_tensor_release(m->tensors[value]);
    m->tensors[value] = NULL;
  }
}

static graft_status make_entry(making *m, uint32_t number) {
  const gr_entry *entry = m->script->entries[number];
  const bool grad = graft_grad_mode_set(entry->grad_mode), inference = graft_inference_mode_set(entry->inference_mode);
  graft_status status = entry->act == GR_CALL ? make_call(m, entry) : make_backward(m, entry);
  graft_inference_mode_set(inference);
  graft_grad_mode_set(grad);
  arena_free(&m->memory);
  if (!status) drop_used(m, entry, number);
  if (!status) return GRAFT_OK;
  char subject[GR_SIZE_TEXT + 48], sizes[GR_SIZE_TEXT];
  snprintf(subject, sizeof subject, "call %" PRIu32 " of the graph, made for %s", number,
           gr_sizes_text(&m->script->sizes, m->values, sizes, sizeof sizes));
  return err_attribute(status, subject);
}

/* --- the whole --- */

static void note_last(making *m, const gr_entry *entry, uint32_t number) {
  for (uint32_t i = 0; i < entry->nuses; i++) {
    if (entry->uses[i].value != GR_NONE) m->last[entry->uses[i].value] = number;
  }
  for (uint32_t i = 0; i < entry->nouts; i++) {
    const gr_made_value *out = &entry->outs[i];
    if (out->value != GR_NONE) m->last[out->value] = number;
    if (out->leaf != GR_NONE) m->last[out->leaf] = number;
  }
}

static graft_status take_room(making *m) {
  m->tensors = calloc(m->script->nvalues + 1u, sizeof *m->tensors);
  m->last = calloc(m->script->nvalues + 1u, sizeof *m->last);
  if (!m->tensors || !m->last) return no_memory();
  for (uint32_t i = 0; i < m->script->nvalues; i++) m->last[i] = GR_NONE;
  for (uint32_t i = 0; i < m->script->nentries; i++) note_last(m, m->script->entries[i], i);
  for (uint32_t i = 0; i < m->open->noutputs; i++) m->last[m->open->outputs[i].value_number] = GR_NONE;
  /* Gradients are asked of leaves at the end of later entries, too. */
  for (uint32_t i = 0; i < m->open->ninputs; i++) m->last[m->open->inputs[i].value_number] = GR_NONE;
  return GRAFT_OK;
}

static graft_status call_all(making *m) {
  graft_status status = graft_graph_record_begin(m->graph);
  if (status) return status;
  for (uint32_t i = 0; i < m->script->nentries && !status; i++) status = make_entry(m, i);
  graft_status ended = graft_graph_record_end(m->graph);
  return status ? status : ended;
}

static graft_status name_outputs(making *m) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < m->open->noutputs && !status; i++) {
    const gr_port *port = &m->open->outputs[i];
    status = graft_graph_output(m->graph, port->name, m->tensors[port->value_number]);
  }
  return status;
}

graft_status gr_make(const graft_graph *open, const int64_t *values, graft_graph **made) {
  making m = {.open = open, .script = open->script, .values = values};
  const graft_dtype dtype = dt_default();
  graft_status status = graft_graph_create(open->device, &m.graph);
  if (status) return status;
  m.graph->default_dtype = open->default_dtype;
  dt_set_default(open->default_dtype);
  status = take_room(&m);
  for (uint32_t i = 0; i < open->ninputs && !status; i++) status = make_input(&m, &open->inputs[i]);
  if (!status) status = make_constants(&m);
  if (!status) status = call_all(&m);
  if (!status) status = name_outputs(&m);
  if (!status) status = gr_check_bytes(m.graph);
  dt_set_default(dtype);
  for (uint32_t i = 0; m.tensors && i < m.script->nvalues; i++) graft_tensor_release(m.tensors[i]);
  free(m.tensors);
  free(m.last);
  if (status)
    graft_graph_destroy(m.graph);
  else
    *made = m.graph;
  return status;
}
