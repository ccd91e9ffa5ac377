/* A graph with open sizes from a file: its calls are read as data (script.h), of which nothing is believed, and made at
 * the sizes that the file has for examples (make.c), through the checks and rules that any call goes through. What
 * comes of that is the graph; other sizes are made of it as of one that was recorded. */
#include <string.h>

#include "graph/file_parts.h"
#include "graph/script.h"

typedef struct script_loading {
  loading *l;
  gr_script *script; /* the graph's */
  gr_entry *entry;   /* that is read, */
  const char *what;  /* what it calls, */
  uint32_t nuses;    /* and how many of its uses are */
} script_loading;

static graft_status no_memory(const script_loading *s) {
  return err_about(GRAFT_OUT_OF_MEMORY, s->l->file.path, "no host memory for its graph");
}

static graft_status list_of(const loading *l, const char *key, const cJSON **list) {
  *list = field(l->file.graph, key);
  return cJSON_IsArray(*list) ? GRAFT_OK : bad(l, "its graph has no list \"%s\"", key);
}

static void *take(const script_loading *s, size_t bytes) {
  return arena_take(&s->script->store->memory, bytes);
}

/* --- values: numbered in the order in which the file names them, so that a use is of an earlier one --- */

/* A new value. */
static graft_status take_new(const script_loading *s, const cJSON *item, const char *what, uint32_t *value) {
  if (!gr_json_get_index(item, value) || *value != s->script->nvalues)
    return unfit(what, "its value is not the next one, number %u", s->script->nvalues);
  s->script->nvalues++;
  return GRAFT_OK;
}

static graft_status take_known(const script_loading *s, const cJSON *item, const char *what, uint32_t *value) {
  if (gr_json_get_index(item, value) && *value < s->script->nvalues) return GRAFT_OK;
  return unfit(what, "it speaks of a value that is not there; there are %u before it", s->script->nvalues);
}

/* --- sizes --- */

static graft_status read_open(const loading *l, const cJSON *item, const char *name, int64_t *size) {
  int64_t example, least, most;
  graft_status status = gr_check_name("size", name);
  if (status) return status;
  if (!gr_json_get_int(field(item, "example"), &example) || !gr_json_get_int(field(item, "least"), &least) ||
      !gr_json_get_int(field(item, "most"), &most))
    return bad(l, "the size %s has no example, no least or no most", name);
  return graft_graph_size(l->graph, name, example, least, most, size);
}

static graft_status read_formula(const loading *l, const cJSON *item, uint32_t number, int64_t *size) {
  const gr_sizes *sizes = l->graph->script ? &l->graph->script->sizes : &gr_no_sizes;
  const char *name = cJSON_GetStringValue(field(item, "op"));
  const cJSON *of = field(item, "of"), *left = cJSON_IsArray(of) ? of->child : NULL, *right = left ? left->next : NULL;
  int64_t a, b;
  graft_size_op op = GRAFT_SIZE_ADD;
  while (op <= GRAFT_SIZE_MAX && name && strcmp(gr_file_size_ops[op], name) != 0) op++;
  if (!name || op > GRAFT_SIZE_MAX) return bad(l, "size %u has neither a name nor an op that there is", number);
  if (!right || right->next || !gr_json_get_number(sizes, left, &a) || !gr_json_get_number(sizes, right, &b))
    return bad(l, "size %u is not of two numbers or earlier sizes", number);
  return graft_graph_size_of(l->graph, op, a, b, size);
}

static graft_status read_sizes(const loading *l) {
  const cJSON *list, *item;
  uint32_t number = 0;
  graft_status status = list_of(l, "sizes", &list);
  if (!status && !list->child) status = bad(l, "its graph has no open size, and its format is of graphs that have");
  if (status) return status;
  cJSON_ArrayForEach(item, list) {
    const char *name = cJSON_GetStringValue(field(item, "name"));
    int64_t size;
    status = name ? read_open(l, item, name, &size) : read_formula(l, item, number, &size);
    if (status) return status;
    number++;
  }
  return GRAFT_OK;
}

/* --- inputs --- */

/* Sizes or strides, among which there may be open ones. */
static bool get_dims(const script_loading *s, const cJSON *list, int64_t *dims, int32_t *ndim) {
  const cJSON *item;
  int32_t n = 0;
  if (!cJSON_IsArray(list)) return false;
  cJSON_ArrayForEach(item, list) {
    if (n == GRAFT_MAX_DIMS || !gr_json_get_number(&s->script->sizes, item, &dims[n])) return false;
    n++;
  }
  return *ndim = n, true;
}

typedef struct file_input {
  const char *name;
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  bool strided, on_host, conjugate, negative;
} file_input;

static graft_status read_input(const script_loading *s, const cJSON *item, file_input *in) {
  const cJSON *strides = field(item, "strides");
  int32_t nstrides = 0;
  *in = (file_input){.strided = strides != NULL};
  graft_status status = gr_load_name(s->l, item, "input", &in->name);
  if (status) return status;
  if (!gr_json_get_dtype(field(item, "dtype"), &in->dtype)) return unfit(in->name, "it has no known dtype");
  if (!get_dims(s, field(item, "sizes"), in->sizes, &in->ndim))
    return unfit(in->name, "its sizes are no list of at most %d sizes", GRAFT_MAX_DIMS);
  if (strides && (!get_dims(s, strides, in->strides, &nstrides) || nstrides != in->ndim))
    return unfit(in->name, "its strides are no list of one stride a size");
  if (!gr_json_get_bool(item, "on_host", &in->on_host) || !gr_json_get_bool(item, "conjugate", &in->conjugate) ||
      !gr_json_get_bool(item, "negative", &in->negative))
    return unfit(in->name, "what it is, is neither true nor false");
  return in->on_host && in->ndim ? unfit(in->name, "it is in host memory, and no number") : GRAFT_OK;
}

static graft_status new_input(const script_loading *s, const file_input *in, graft_tensor **made) {
  const gr_sizes *open = &s->script->sizes;
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < in->ndim; i++) {
    sizes[i] = gr_size_value(open, open->examples, in->sizes[i]);
    strides[i] = gr_size_value(open, open->examples, in->strides[i]);
    if (sizes[i] < 0 || (in->strided && strides[i] < 0)) return unfit(in->name, "a size or stride is below 0");
  }
  graft_rt_device *device = in->on_host ? graft_device_reference() : s->l->device;
  graft_status status =
      gr_new_input(s->l->graph, device, in->dtype, in->ndim, sizes, in->strided ? strides : NULL, made);
  if (!status) (*made)->flags |= (in->conjugate ? TNS_CONJ : 0u) | (in->negative ? TNS_NEG : 0u);
  return status;
}

static graft_status add_input(const script_loading *s, const cJSON *item) {
  file_input in;
  graft_tensor *made;
  graft_graph *graph = s->l->graph;
  const uint32_t value = s->script->nvalues;
  uint32_t named;
  graft_status status = read_input(s, item, &in);
  if (!status) status = new_input(s, &in, &made);
  if (status) return status;
  const gr_view view = gr_view_of(made, 0, 0);
  const char *problem = gr_view_problem(&view);
  status = problem ? unfit(in.name, "%s", problem) : GRAFT_OK;
  if (!status) status = gr_add_traced_input(graph, in.name, made, in.sizes, in.strided ? in.strides : NULL);
  graft_tensor_release(made);
  if (status) return status;
  graph->buffers[graph->nbuffers - 1].on_host = in.on_host; /* also where the graph's device is the host's */
  if (gr_json_get_index(field(item, "value"), &named) && named == value)
    return gr_load_value(s->l, &graph->inputs[graph->ninputs - 1]);
  return unfit(in.name, "its value is not the next one, number %u", value);
}

static graft_status add_inputs(const script_loading *s) {
  const cJSON *list, *item;
  graft_status status = list_of(s->l, "inputs", &list);
  if (status) return status;
  cJSON_ArrayForEach(item, list) {
    status = add_input(s, item);
    if (status) return status;
  }
  return GRAFT_OK;
}

/* --- constants --- */

/* Buffers are named in their order, as they are numbered when the calls are made. */
static graft_status add_constant(const script_loading *s, const cJSON *item, uint32_t *seen) {
  gr_script_constant constant;
  graft_status status = gr_load_view(s->l, field(item, "view"), "a constant", &constant.view);
  if (!status) status = take_new(s, field(item, "value"), "a constant", &constant.value);
  if (status) return status;
  if (constant.view.buffer > *seen)
    return bad(s->l, "buffer %u is named before buffer %u", constant.view.buffer, *seen);
  if (constant.view.buffer == *seen) ++*seen;
  constant.view.buffer += s->l->graph->ninputs;
  status = gr_grow((void **)&s->script->constants, s->script->nconstants, sizeof constant);
  if (!status) s->script->constants[s->script->nconstants++] = constant;
  return status;
}

static graft_status add_constants(const script_loading *s) {
  const cJSON *list, *item;
  uint32_t seen = 0;
  graft_status status = list_of(s->l, "constants", &list);
  for (uint32_t i = 0; i < s->l->nbuffers && !status; i++) {
    if (s->l->buffers[i].kind != GR_CONSTANT) status = bad(s->l, "buffer %u is no constant", i);
  }
  if (!status) status = gr_load_constants(s->l);
  if (status) return status;
  cJSON_ArrayForEach(item, list) {
    status = add_constant(s, item, &seen);
    if (status) return status;
  }
  return seen == s->l->nbuffers ? GRAFT_OK : bad(s->l, "buffer %u is no constant's", seen);
}

/* --- calls --- */

static graft_status take_use(script_loading *s, const cJSON *item) {
  gr_value_use *use = &s->entry->uses[s->nuses++];
  const cJSON *grad = field(item, "requires_grad");
  *use = (gr_value_use){.value = GR_NONE};
  if (cJSON_IsNull(item)) return GRAFT_OK;
  if (!cJSON_IsObject(item)) return take_known(s, item, s->what, &use->value);
  if (!cJSON_IsBool(grad)) return unfit(s->what, "a leaf neither requires grad nor not");
  use->is_leaf = true;
  use->requires_grad = cJSON_IsTrue(grad);
  return take_known(s, field(item, "value"), s->what, &use->value);
}

static graft_status take_uses(script_loading *s, const cJSON *list) {
  const cJSON *item;
  cJSON_ArrayForEach(item, list) {
    graft_status status = take_use(s, item);
    if (status) return status;
  }
  return GRAFT_OK;
}

/* What it points to is to live as the script does. */
static graft_status keep_value(const script_loading *s, graft_value *v) {
  if (v->kind == GRAFT_VALUE_STR && !(v->as.str = arena_copy(&s->script->store->memory, v->as.str, op_value_bytes(v))))
    return no_memory(s);
  if (v->kind == GRAFT_VALUE_DEVICE) v->as.device = s->l->device;
  return GRAFT_OK;
}

static graft_status take_arg(script_loading *s, const op_schema *schema, const cJSON *item) {
  const int arg = op_arg_named(schema, item->string);
  if (arg < 0) return unfit(s->what, "it has no argument %.40s", item->string);
  const cJSON *tensor = field(item, "tensor"), *tensors = field(item, "tensors");
  graft_value *v = &s->entry->args[arg];
  if (v->kind != GRAFT_VALUE_NONE) return unfit(s->what, "argument %s stands there twice", item->string);
  if (cJSON_IsArray(tensors) || tensor) {
    *v = (graft_value){.kind = tensor ? GRAFT_VALUE_TENSOR : GRAFT_VALUE_TENSORS,
                       .count = tensor ? 0 : (uint32_t)cJSON_GetArraySize(tensors),
                       .as.i = s->nuses};
    return tensor ? take_use(s, tensor) : take_uses(s, tensors);
  }
  if (gr_json_get_value(&s->script->sizes, item, &s->script->store->memory, v)) return keep_value(s, v);
  return unfit(s->what, "argument %s is nothing that an argument can be", item->string);
}

static graft_status take_result(const script_loading *s, const cJSON *item, gr_made_value *out) {
  *out = (gr_made_value){GR_NONE, false, GR_NONE};
  if (cJSON_IsNull(item)) return GRAFT_OK;
  if (!cJSON_IsObject(item)) return take_new(s, item, s->what, &out->value);
  out->given = true;
  return take_known(s, field(item, "given"), s->what, &out->value);
}

static graft_status take_gradient(const script_loading *s, const cJSON *item, gr_made_value *out) {
  *out = (gr_made_value){GR_NONE, false, GR_NONE};
  graft_status status = take_known(s, field(item, "of"), s->what, &out->leaf);
  if (status || cJSON_IsNull(field(item, "value"))) return status;
  return take_new(s, field(item, "value"), s->what, &out->value);
}

static graft_status take_results(const script_loading *s, const cJSON *list) {
  const cJSON *item;
  gr_made_value *out = s->entry->outs;
  cJSON_ArrayForEach(item, list) {
    graft_status status = s->entry->act == GR_BACKWARD ? take_gradient(s, item, out++) : take_result(s, item, out++);
    if (status) return status;
  }
  return GRAFT_OK;
}

/* Given results must be there before the call, so uses come first. */
static graft_status take_room(script_loading *s, uint32_t nuses, const cJSON *results) {
  if (!cJSON_IsArray(results)) return unfit(s->what, "it has no list of results");
  s->entry->nuses = nuses;
  s->entry->nouts = (uint32_t)cJSON_GetArraySize(results);
  s->entry->uses = take(s, nuses * sizeof *s->entry->uses);
  s->entry->outs = take(s, s->entry->nouts * sizeof *s->entry->outs);
  s->entry->args = take(s, s->entry->nargs * sizeof *s->entry->args);
  return s->entry->uses && s->entry->outs && s->entry->args ? GRAFT_OK : no_memory(s);
}

static uint32_t count_uses(const cJSON *args) {
  const cJSON *item;
  uint32_t count = 0;
  cJSON_ArrayForEach(item, args) count += 1 + (uint32_t)cJSON_GetArraySize(field(item, "tensors"));
  return count;
}

static graft_status read_call(script_loading *s, const cJSON *call) {
  const cJSON *args = field(call, "args"), *results = field(call, "results"), *item;
  const char *name = cJSON_GetStringValue(field(call, "op"));
  if (!name || !field(field(s->l->file.graph, "ops"), name))
    return err_set(GRAFT_INVALID_ARGUMENT, "it calls no op that \"ops\" names");
  const op_schema *schema = op_schema_find(name); /* it was looked at with all ops */
  s->what = schema->name;
  s->entry->op_id = schema->id;
  s->entry->nargs = schema->nargs;
  if (!cJSON_IsObject(args)) return unfit(s->what, "it has no \"args\"");
  graft_status status = take_room(s, count_uses(args), results);
  cJSON_ArrayForEach(item, args) {
    if (!status) status = take_arg(s, schema, item);
  }
  s->entry->nuses = s->nuses; /* there is room for more */
  return status ? status : take_results(s, results);
}

static graft_status read_backward(script_loading *s, const cJSON *call) {
  const cJSON *roots = field(call, "roots"), *cotangents = field(call, "cotangents"), *inputs = field(call, "inputs");
  s->entry->act = inputs ? GR_GRAD : GR_BACKWARD;
  s->what = inputs ? "graft_grad" : "graft_backward";
  s->entry->count = (uint32_t)cJSON_GetArraySize(roots);
  if (!cJSON_IsArray(roots) || !cJSON_IsArray(cotangents) || (inputs && !cJSON_IsArray(inputs)) ||
      (uint32_t)cJSON_GetArraySize(cotangents) != s->entry->count)
    return unfit(s->what, "it has no lists of roots and as many cotangents");
  if (!gr_json_get_index(field(call, "flags"), &s->entry->flags)) return unfit(s->what, "it has no flags");
  const uint32_t ninputs = (uint32_t)cJSON_GetArraySize(inputs);
  const cJSON *results = field(call, inputs ? "results" : "gradients");
  graft_status status = take_room(s, 2 * s->entry->count + ninputs, results);
  if (!status) status = take_uses(s, roots);
  if (!status) status = take_uses(s, cotangents);
  if (!status) status = take_uses(s, inputs);
  if (!status) status = take_results(s, results);
  if (!status && inputs && s->entry->nouts != ninputs) status = unfit(s->what, "it has not one result an input");
  return status;
}

static graft_status add_call(script_loading *s, const cJSON *call) {
  s->entry = take(s, sizeof *s->entry);
  s->nuses = 0;
  if (!s->entry) return no_memory(s);
  if (!gr_json_get_bool(call, "grad_mode", &s->entry->grad_mode) ||
      !gr_json_get_bool(call, "inference_mode", &s->entry->inference_mode))
    return err_set(GRAFT_INVALID_ARGUMENT, "its modes are neither true nor false");
  graft_status status = field(call, "roots") ? read_backward(s, call) : read_call(s, call);
  if (!status) status = gr_grow((void **)&s->script->entries, s->script->nentries, sizeof *s->script->entries);
  if (!status) s->script->entries[s->script->nentries++] = s->entry;
  return status;
}

static graft_status add_calls(script_loading *s) {
  const cJSON *list, *item;
  char subject[32];
  graft_status status = list_of(s->l, "calls", &list);
  if (status) return status;
  cJSON_ArrayForEach(item, list) {
    status = add_call(s, item);
    if (!status) continue;
    snprintf(subject, sizeof subject, "call %u of the graph", s->script->nentries);
    return err_attribute(status, subject);
  }
  return GRAFT_OK;
}

/* --- outputs --- */

static graft_status add_output(const script_loading *s, const cJSON *item) {
  const gr_view none = {.buffer = GR_NONE}; /* what it is shows when the calls are made */
  graft_graph *graph = s->l->graph;
  const char *name;
  uint32_t value;
  graft_status status = gr_load_name(s->l, item, "output", &name);
  if (!status) status = take_known(s, field(item, "value"), name, &value);
  if (!status) status = gr_add_port(graph, &graph->outputs, &graph->noutputs, name, &none);
  if (!status) graph->outputs[graph->noutputs - 1].value_number = value;
  return status;
}

static graft_status add_outputs(const script_loading *s) {
  const cJSON *list, *item;
  graft_status status = list_of(s->l, "outputs", &list);
  if (status) return status;
  cJSON_ArrayForEach(item, list) {
    status = add_output(s, item);
    if (status) return status;
  }
  return GRAFT_OK;
}

/* --- the whole --- */

/* The graph that the calls gave at the examples takes the place of what they were read into: inputs and constants have
 * the same numbers there. */
static graft_status make(loading *l) {
  graft_graph *read = l->graph, *made;
  graft_status status = gr_make(read, read->script->sizes.examples, &made);
  if (status) return status;
  for (uint32_t i = 0; i < read->ninputs; i++) {
    gr_port *to = &made->inputs[i], *from = &read->inputs[i];
    to->value_number = from->value_number;
    to->open = from->open;
    to->value = from->value;
    from->value = NULL;
  }
  for (uint32_t i = 0; i < read->noutputs; i++) made->outputs[i].value_number = read->outputs[i].value_number;
  made->script = read->script;
  read->script = NULL;
  graft_graph_destroy(read);
  l->graph = made;
  return GRAFT_OK;
}

graft_status gr_load_script(loading *l) {
  graft_status status = read_sizes(l);
  if (status) return status;
  script_loading s = {.l = l, .script = l->graph->script};
  status = add_inputs(&s);
  if (!status) status = add_constants(&s);
  if (!status) status = add_calls(&s);
  if (!status) status = add_outputs(&s);
  return status ? status : make(l);
}
