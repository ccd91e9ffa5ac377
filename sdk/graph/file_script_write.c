/* What a file says of a graph with open sizes: its sizes, and the calls as they were made (script.h). Its nodes, which
 * hold for one size, are not in it. */
#include <stdlib.h>

#include "graph/file.h"

/* Values are numbered anew, in the order in which the file names them: inputs, constants, results. */
typedef struct script_writer {
  const graft_graph *graph;
  const gr_script *script;
  const uint32_t *buffers; /* by buffer: its number in the file */
  uint32_t *values;        /* by value: its number in the file */
  uint32_t nvalues;
} script_writer;

/* --- numbers --- */

static void number_value(script_writer *w, uint32_t value) {
  w->values[value] = w->nvalues++;
}

static void number_results(script_writer *w, const gr_entry *entry) {
  for (uint32_t i = 0; i < entry->nouts; i++) {
    if (entry->outs[i].value != GR_NONE && !entry->outs[i].given) number_value(w, entry->outs[i].value);
  }
}

static void number_all(script_writer *w) {
  for (uint32_t i = 0; i < w->graph->ninputs; i++) number_value(w, w->graph->inputs[i].value_number);
  for (uint32_t i = 0; i < w->script->nconstants; i++) number_value(w, w->script->constants[i].value);
  for (uint32_t i = 0; i < w->script->nentries; i++) number_results(w, w->script->entries[i]);
}

static cJSON *json_number_of(const script_writer *w, uint32_t value) {
  return value == GR_NONE ? cJSON_CreateNull() : gr_json_int(w->values[value]);
}

/* --- sizes --- */

static cJSON *json_size(const gr_sizes *sizes, uint32_t i) {
  const gr_size *s = &sizes->items[i];
  cJSON *object = cJSON_CreateObject();
  if (s->op == GR_SIZE_OPEN) {
    return gr_json_whole(object, gr_json_put(object, "name", cJSON_CreateString(s->name)) &&
                                     gr_json_put(object, "example", gr_json_int(sizes->examples[i])) &&
                                     gr_json_put(object, "least", gr_json_int(s->least)) &&
                                     gr_json_put(object, "most", gr_json_int(s->most)));
  }
  return gr_json_whole(object,
                       gr_json_put(object, "op", cJSON_CreateString(gr_file_size_ops[s->op])) &&
                           gr_json_put(object, "of", gr_json_numbers(sizes, (const int64_t[]){s->left, s->right}, 2)));
}

static cJSON *json_sizes(const gr_sizes *sizes) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t i = 0; i < sizes->count && good; i++) good = gr_json_append(array, json_size(sizes, i));
  return gr_json_whole(array, good);
}

/* --- inputs, constants and outputs --- */

static cJSON *json_input(const script_writer *w, const gr_port *port) {
  const gr_view *view = &port->view;
  const gr_sizes *sizes = &w->script->sizes;
  cJSON *object = cJSON_CreateObject();
  bool good = gr_json_put(object, "name", cJSON_CreateString(port->name)) &&
              gr_json_put(object, "value", json_number_of(w, port->value_number)) &&
              gr_json_put(object, "dtype", cJSON_CreateString(graft_dtype_name(view->dtype))) &&
              gr_json_put(object, "sizes", gr_json_numbers(sizes, port->open->sizes, view->ndim));
  if (good && port->open->strided)
    good = gr_json_put(object, "strides", gr_json_numbers(sizes, port->open->strides, view->ndim));
  if (good && view->flags & TNS_CONJ) good = gr_json_put(object, "conjugate", cJSON_CreateTrue());
  if (good && view->flags & TNS_NEG) good = gr_json_put(object, "negative", cJSON_CreateTrue());
  if (good && w->graph->buffers[view->buffer].on_host) good = gr_json_put(object, "on_host", cJSON_CreateTrue());
  return gr_json_whole(object, good);
}

static cJSON *json_inputs(const script_writer *w) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t i = 0; i < w->graph->ninputs && good; i++)
    good = gr_json_append(array, json_input(w, &w->graph->inputs[i]));
  return gr_json_whole(array, good);
}

static cJSON *json_constants(const script_writer *w) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t i = 0; i < w->script->nconstants && good; i++) {
    const gr_script_constant *c = &w->script->constants[i];
    cJSON *object = cJSON_CreateObject();
    good = gr_json_put(object, "value", json_number_of(w, c->value)) &&
           gr_json_put(object, "view", gr_json_view(&c->view, w->buffers[c->view.buffer]));
    good = gr_json_append(array, object) && good;
  }
  return gr_json_whole(array, good);
}

static cJSON *json_outputs(const script_writer *w) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t i = 0; i < w->graph->noutputs && good; i++) {
    const gr_port *port = &w->graph->outputs[i];
    cJSON *object = cJSON_CreateObject();
    good = gr_json_put(object, "name", cJSON_CreateString(port->name)) &&
           gr_json_put(object, "value", json_number_of(w, port->value_number));
    good = gr_json_append(array, object) && good;
  }
  return gr_json_whole(array, good);
}

/* --- calls --- */

/* A number, or, of a leaf, also whether it requires grad; null: absent. */
static cJSON *json_use(const script_writer *w, const gr_value_use *use) {
  if (use->value == GR_NONE || !use->is_leaf) return json_number_of(w, use->value);
  cJSON *object = cJSON_CreateObject();
  return gr_json_whole(object, gr_json_put(object, "value", json_number_of(w, use->value)) &&
                                   gr_json_put(object, "requires_grad", cJSON_CreateBool(use->requires_grad)));
}

static cJSON *json_uses(const script_writer *w, const gr_value_use *uses, uint32_t count) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t i = 0; i < count && good; i++) good = gr_json_append(array, json_use(w, &uses[i]));
  return gr_json_whole(array, good);
}

static cJSON *json_arg(const script_writer *w, const gr_entry *entry, const graft_value *v) {
  cJSON *object;
  switch (v->kind) {
    case GRAFT_VALUE_TENSOR:
      object = cJSON_CreateObject();
      return gr_json_whole(object, gr_json_put(object, "tensor", json_use(w, &entry->uses[v->as.i])));
    case GRAFT_VALUE_TENSORS:
      object = cJSON_CreateObject();
      return gr_json_whole(object, gr_json_put(object, "tensors", json_uses(w, &entry->uses[v->as.i], v->count)));
    default: return gr_json_value(&w->script->sizes, v);
  }
}

static cJSON *json_args(const script_writer *w, const gr_entry *entry) {
  const op_schema *schema = op_schema_of(entry->op_id);
  cJSON *args = cJSON_CreateObject();
  bool good = args != NULL;
  for (uint32_t i = 0; i < entry->nargs && good; i++) {
    const graft_value *v = &entry->args[i];
    if (v->kind != GRAFT_VALUE_NONE) good = gr_json_put(args, schema->args[i].name, json_arg(w, entry, v));
  }
  return gr_json_whole(args, good);
}

/* A new value's number; of what was written to a value that was there, that one's. */
static cJSON *json_result(const script_writer *w, const gr_made_value *out) {
  if (!out->given) return json_number_of(w, out->value);
  cJSON *object = cJSON_CreateObject();
  return gr_json_whole(object, gr_json_put(object, "given", json_number_of(w, out->value)));
}

static cJSON *json_gradient(const script_writer *w, const gr_made_value *out) {
  cJSON *object = cJSON_CreateObject();
  return gr_json_whole(object, gr_json_put(object, "of", json_number_of(w, out->leaf)) &&
                                   gr_json_put(object, "value", json_number_of(w, out->value)));
}

static cJSON *json_results(const script_writer *w, const gr_entry *entry) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t i = 0; i < entry->nouts && good; i++) {
    const gr_made_value *out = &entry->outs[i];
    good = gr_json_append(array, entry->act == GR_BACKWARD ? json_gradient(w, out) : json_result(w, out));
  }
  return gr_json_whole(array, good);
}

static bool put_roots(const script_writer *w, const gr_entry *entry, cJSON *object) {
  const uint32_t count = entry->count;
  bool good = gr_json_put(object, "roots", json_uses(w, entry->uses, count)) &&
              gr_json_put(object, "cotangents", json_uses(w, entry->uses + count, count)) &&
              gr_json_put(object, "flags", gr_json_int(entry->flags));
  if (entry->act == GR_BACKWARD || !good) return good;
  return gr_json_put(object, "inputs", json_uses(w, entry->uses + 2 * (size_t)count, entry->nuses - 2 * count));
}

static cJSON *json_entry(const script_writer *w, const gr_entry *entry) {
  cJSON *object = cJSON_CreateObject();
  bool good;
  if (entry->act == GR_CALL) {
    good = gr_json_put(object, "op", cJSON_CreateString(op_schema_of(entry->op_id)->name)) &&
           gr_json_put(object, "args", json_args(w, entry));
  } else {
    good = put_roots(w, entry, object);
  }
  good = good && gr_json_put(object, entry->act == GR_BACKWARD ? "gradients" : "results", json_results(w, entry));
  if (good && entry->grad_mode) good = gr_json_put(object, "grad_mode", cJSON_CreateTrue());
  if (good && entry->inference_mode) good = gr_json_put(object, "inference_mode", cJSON_CreateTrue());
  return gr_json_whole(object, good);
}

static cJSON *json_calls(const script_writer *w) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t i = 0; i < w->script->nentries && good; i++)
    good = gr_json_append(array, json_entry(w, w->script->entries[i]));
  return gr_json_whole(array, good);
}

/* --- the whole --- */

bool gr_json_put_script(cJSON *root, const graft_graph *graph, const uint32_t *buffers) {
  script_writer w = {.graph = graph, .script = graph->script, .buffers = buffers};
  w.values = calloc(w.script->nvalues + 1u, sizeof *w.values);
  if (!w.values) return false;
  number_all(&w);
  const bool good = gr_json_put(root, "sizes", json_sizes(&w.script->sizes)) &&
                    gr_json_put(root, "inputs", json_inputs(&w)) &&
                    gr_json_put(root, "constants", json_constants(&w)) && gr_json_put(root, "calls", json_calls(&w)) &&
                    gr_json_put(root, "outputs", json_outputs(&w));
  free(w.values);
  return good;
}
