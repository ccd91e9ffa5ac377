/* A graph from a file. One of fixed sizes is recorded once more: each call is made on tensors that stand for the file's
 * buffers, and what comes of it is held against what the file says. One with open sizes is file_script_load.c's. */
#include <stdlib.h>
#include <string.h>

#include "graph/file_parts.h"

static graft_status no_memory(const loading *l) {
  return err_about(GRAFT_OUT_OF_MEMORY, l->file.path, "no host memory for its graph");
}

/* --- views --- */

/* The place in the graph of a buffer that is read, or written, before any call gives it: memory as it comes. */
static graft_status open_buffer(const loading *l, uint32_t number, const char *what) {
  file_buffer *b = &l->buffers[number];
  graft_tensor *made;
  if (b->storage) return GRAFT_OK;
  if (b->kind != GR_VALUE) return unfit(what, "buffer %u is an input that \"inputs\" does not name", number);
  graft_status status = graft_tensor_empty(l->device, GRAFT_U8, 1, &b->bytes, &made);
  if (!status) b->storage = tns_release_to_storage(made);
  return status;
}

static graft_status tensor_of(const loading *l, const gr_view *view, const char *what, graft_tensor **t) {
  graft_status status = open_buffer(l, view->buffer, what);
  if (status) return status;
  graft_storage *storage = l->buffers[view->buffer].storage;
  status = tns_new(storage, storage->device, view->dtype, view->ndim, view->sizes, view->strides, view->offset, t);
  if (!status) (*t)->flags |= view->flags;
  return status;
}

/* --- inputs and outputs --- */

static graft_status read_port(const loading *l, const cJSON *item, const char *kind, const char **name, gr_view *view) {
  graft_status status = gr_load_name(l, item, kind, name);
  return status ? status : gr_load_view(l, field(item, "view"), *name, view);
}

/* A tensor that lies as the input does, of which there need be no memory. */
static graft_status make_like(const loading *l, const gr_view *view, graft_tensor **like) {
  graft_rt_device *device = gr_load_device(l, &l->buffers[view->buffer]);
  graft_storage *storage;
  graft_status status = tns_storage_symbolic(device, 0, UINT64_MAX, &storage);
  if (status) return status;
  status = tns_new(storage, device, view->dtype, view->ndim, view->sizes, view->strides, 0, like);
  if (!status) (*like)->flags |= view->flags;
  tns_storage_release(storage);
  return status;
}

static graft_status add_input(loading *l, const cJSON *item) {
  const char *name;
  gr_view view;
  graft_tensor *like, *input;
  graft_status status = read_port(l, item, "input", &name, &view);
  if (status) return status;
  file_buffer *b = &l->buffers[view.buffer];
  if (b->kind != GR_INPUT || b->storage || view.offset)
    return bad(l, "input %s: it is the whole of a buffer of kind input, and of none that another one has", name);
  status = make_like(l, &view, &like);
  if (status) return status;
  status = graft_graph_input_like(l->graph, name, like, &input);
  graft_tensor_release(like);
  if (status) return status;
  b->storage = tns_release_to_storage(input);
  gr_buffer *made = &l->graph->buffers[l->graph->nbuffers - 1];
  made->on_host = b->on_host; /* also where the graph's device is the host's */
  if (made->bytes == (uint64_t)b->bytes) return gr_load_value(l, &l->graph->inputs[l->graph->ninputs - 1]);
  return bad(l, "input %s: its buffer has %lld bytes, its view takes %llu", name, (long long)b->bytes,
             (unsigned long long)made->bytes);
}

static graft_status add_inputs(loading *l) {
  const cJSON *list = field(l->file.graph, "inputs"), *item;
  if (!cJSON_IsArray(list)) return bad(l, "its graph has no list \"inputs\"");
  cJSON_ArrayForEach(item, list) {
    graft_status status = add_input(l, item);
    if (status) return status;
  }
  return GRAFT_OK;
}

static graft_status add_output(const loading *l, const cJSON *item) {
  const char *name;
  gr_view view;
  graft_tensor *value;
  graft_status status = read_port(l, item, "output", &name, &view);
  if (!status) status = tensor_of(l, &view, name, &value);
  if (status) return status;
  status = graft_graph_output(l->graph, name, value);
  graft_tensor_release(value);
  return status;
}

static graft_status add_outputs(const loading *l) {
  const cJSON *list = field(l->file.graph, "outputs"), *item;
  if (!cJSON_IsArray(list)) return bad(l, "its graph has no list \"outputs\"");
  cJSON_ArrayForEach(item, list) {
    graft_status status = add_output(l, item);
    if (status) return status;
  }
  return GRAFT_OK;
}

/* --- ops --- */

static graft_status unknown_op(const loading *l, const char *name) {
  char space[64];
  snprintf(space, sizeof space, "%.*s", (int)strcspn(name, ":"), name);
  if (op_is_own_namespace(space) || !strstr(name, "::"))
    return err_about(GRAFT_INCOMPATIBLE, l->file.path,
                     "it calls %.80s, which this libgraft (%s) does not know; load it with the one that wrote it", name,
                     graft_version());
  return err_about(GRAFT_INCOMPATIBLE, l->file.path,
                   "it calls %.80s, an op that a plugin brings, and none that is open does; open the backend that "
                   "brings \"%s\" first (graft graph and graft run: -b NAME)",
                   name, space);
}

static graft_status check_op(const loading *l, const cJSON *item) {
  const op_schema *schema = op_schema_find(item->string);
  const char *hash = cJSON_GetStringValue(item);
  char own[17];
  if (!schema || strcmp(schema->name, item->string) != 0) return unknown_op(l, item->string);
  gr_schema_hash(schema, own);
  if (hash && strcmp(hash, own) == 0) return GRAFT_OK;
  return err_about(GRAFT_INCOMPATIBLE, l->file.path,
                   "it calls %s as another version of it was: here that is %s; record the graph anew", schema->name,
                   schema->schema);
}

static graft_status check_ops(const loading *l) {
  const cJSON *list = field(l->file.graph, "ops"), *item;
  if (!cJSON_IsObject(list)) return bad(l, "its graph has no object \"ops\"");
  cJSON_ArrayForEach(item, list) {
    graft_status status = check_op(l, item);
    if (status) return status;
  }
  return GRAFT_OK;
}

/* --- nodes --- */

/* A call on its way. */
typedef struct node_call {
  const loading *l;
  const op_schema *schema;
  arena memory;
  graft_value args[OP_MAX_ARGS];
  bool written[OP_MAX_ARGS]; /* as the file says */
  graft_tensor **tensors;    /* what it was made of, owned */
  uint32_t ntensors;
  graft_tensor **outs;
  gr_view *results; /* as the file says; buffer GR_NONE: absent */
  bool *given;
  uint32_t nresults;
} node_call;

static graft_status take_tensor(node_call *c, const cJSON *item, graft_tensor **t) {
  gr_view view;
  *t = NULL;
  if (cJSON_IsNull(item)) return GRAFT_OK;
  graft_status status = gr_load_view(c->l, item, c->schema->name, &view);
  if (status) return status;
  status = tensor_of(c->l, &view, c->schema->name, t);
  if (!status) c->tensors[c->ntensors++] = *t;
  return status;
}

static graft_status take_tensors(node_call *c, const cJSON *list, graft_value *v) {
  const cJSON *item;
  const uint32_t count = (uint32_t)cJSON_GetArraySize(list);
  graft_tensor **items = arena_take(&c->memory, count * sizeof *items);
  if (!items) return no_memory(c->l);
  *v = graft_value_tensors(items, count);
  cJSON_ArrayForEach(item, list) {
    graft_status status = take_tensor(c, item, items++);
    if (status) return status;
  }
  return GRAFT_OK;
}

static graft_status take_arg(node_call *c, const cJSON *item) {
  const int arg = op_arg_named(c->schema, item->string);
  if (arg < 0) return unfit(c->schema->name, "it has no argument %.40s", item->string);
  graft_value *v = &c->args[arg];
  const cJSON *tensor = field(item, "tensor"), *tensors = field(item, "tensors");
  graft_tensor *t = NULL;
  graft_status status = GRAFT_OK;
  if (v->kind != GRAFT_VALUE_NONE) return unfit(c->schema->name, "argument %s stands there twice", item->string);
  if (cJSON_IsArray(tensors)) {
    status = take_tensors(c, tensors, v);
  } else if (tensor) {
    status = take_tensor(c, tensor, &t);
    *v = fx_tensor(t);
  } else if (!gr_json_get_value(&gr_no_sizes, item, &c->memory, v)) {
    return unfit(c->schema->name, "argument %s is nothing that an argument can be", item->string);
  }
  if (v->kind == GRAFT_VALUE_DEVICE) v->as.device = c->l->device;
  if (!status && (tensor || tensors) && !gr_json_get_bool(item, "written", &c->written[arg]))
    status = unfit(c->schema->name, "argument %s is neither written nor not", item->string);
  return status;
}

static graft_status take_result(node_call *c, const cJSON *item, uint32_t i) {
  c->results[i].buffer = GR_NONE;
  if (cJSON_IsNull(item)) return GRAFT_OK;
  const cJSON *view = field(item, "view");
  if (!view || !gr_json_get_bool(item, "given", &c->given[i])) return unfit(c->schema->name, "its result is no view");
  graft_status status = gr_load_view(c->l, view, c->schema->name, &c->results[i]);
  if (status || c->given[i]) return status ? status : take_tensor(c, view, &c->outs[i]);
  const file_buffer *b = &c->l->buffers[c->results[i].buffer];
  if (b->kind == GR_VALUE && !b->storage) return GRAFT_OK;
  return unfit(c->schema->name, "its result %u is new, and its buffer is not", i);
}

/* All views there can be in a node, to have room for them. */
static uint32_t count_views(const cJSON *node) {
  uint32_t count = (uint32_t)cJSON_GetArraySize(field(node, "results"));
  const cJSON *item;
  cJSON_ArrayForEach(item, field(node, "args")) count += 1 + (uint32_t)cJSON_GetArraySize(field(item, "tensors"));
  return count;
}

static graft_status take_room(node_call *c, const cJSON *node) {
  c->nresults = (uint32_t)cJSON_GetArraySize(field(node, "results"));
  c->tensors = arena_take(&c->memory, count_views(node) * sizeof *c->tensors);
  c->outs = arena_take(&c->memory, c->nresults * sizeof *c->outs);
  c->results = arena_take(&c->memory, c->nresults * sizeof *c->results);
  c->given = arena_take(&c->memory, c->nresults * sizeof *c->given);
  return c->tensors && c->outs && c->results && c->given ? GRAFT_OK : no_memory(c->l);
}

static graft_status read_call(node_call *c, const cJSON *node) {
  const cJSON *args = field(node, "args"), *results = field(node, "results"), *item;
  const char *name = cJSON_GetStringValue(field(node, "op"));
  if (!name || !field(field(c->l->file.graph, "ops"), name))
    return err_set(GRAFT_INVALID_ARGUMENT, "it calls no op that \"ops\" names");
  c->schema = op_schema_find(name);
  if (!cJSON_IsObject(args) || !cJSON_IsArray(results)) return unfit(name, "it has no \"args\" or no \"results\"");
  graft_status status = take_room(c, node);
  cJSON_ArrayForEach(item, args) {
    if (!status) status = take_arg(c, item);
  }
  uint32_t i = 0;
  cJSON_ArrayForEach(item, results) {
    if (!status) status = take_result(c, item, i++);
  }
  return status;
}

/* --- what came of it --- */

static graft_status check_written(const node_call *c, const gr_node *node) {
  for (uint32_t i = 0; i < node->nargs; i++) {
    const graft_value *v = &node->args[i];
    const bool list = v->kind == GRAFT_VALUE_TENSORS;
    bool written = false;
    for (uint32_t k = 0; (list && k < v->count) || (v->kind == GRAFT_VALUE_TENSOR && k < 1); k++)
      written |= node->operands[v->as.i + k].written;
    if (written == c->written[i]) continue;
    return unfit(c->schema->name, "the file says that argument %s is%s written, and here it is%s",
                 c->schema->args[i].name, written ? " not" : "", written ? "" : " not");
  }
  return GRAFT_OK;
}

/* The call must have become one node, of the same op. Where no result has an element, there is none. */
static graft_status check_node(const node_call *c, uint32_t before) {
  const graft_graph *graph = c->l->graph;
  bool empty = c->nresults != 0;
  for (uint32_t i = 0; i < c->nresults; i++) empty &= !c->outs[i] || c->outs[i]->numel == 0;
  if (graph->nnodes == before && empty) return GRAFT_OK;
  if (graph->nnodes == before + 1 && graph->nodes[before]->schema == c->schema)
    return check_written(c, graph->nodes[before]);
  return unfit(c->schema->name, "it is no call of a graph, which holds those that it is made of");
}

static graft_status take_new_result(const node_call *c, uint32_t i) {
  graft_tensor *made = c->outs[i];
  const gr_view *view = &c->results[i];
  if (!made != (view->buffer == GR_NONE)) {
    return unfit(c->schema->name, "the file has %s result %u, and the call gives %s", made ? "no" : "a", i,
                 made ? "one" : "none");
  }
  if (!made) return GRAFT_OK;
  file_buffer *b = &c->l->buffers[view->buffer];
  const gr_view is = gr_view_of(made, view->buffer, 0);
  char says[160];
  if (gr_same_view(&is, view) && made->storage->bytes == (uint64_t)b->bytes && !b->storage) {
    c->outs[i] = NULL;
    b->storage = tns_release_to_storage(made);
    return GRAFT_OK;
  }
  return unfit(c->schema->name, "the file says that result %u is %s%s and lies otherwise; here the call gives %s", i,
               graft_dtype_name(view->dtype), tns_format_ints(says, sizeof says, (uint64_t)view->ndim, view->sizes),
               TNS_SHAPE(made));
}

static graft_status run_call(node_call *c) {
  const uint32_t before = c->l->graph->nnodes;
  graft_status status = graft_call(c->schema->id, c->args, c->schema->nargs, c->outs, c->nresults);
  if (!status) status = check_node(c, before);
  for (uint32_t i = 0; i < c->nresults && !status; i++) {
    if (!c->given[i]) status = take_new_result(c, i);
  }
  return status;
}

static void free_call(node_call *c) {
  for (uint32_t i = 0; c->outs && c->given && i < c->nresults; i++) {
    if (!c->given[i]) graft_tensor_release(c->outs[i]);
  }
  for (uint32_t i = 0; i < c->ntensors; i++) graft_tensor_release(c->tensors[i]);
  arena_free(&c->memory);
}

static graft_status add_node(const loading *l, const cJSON *node, uint32_t number) {
  node_call c = {.l = l};
  graft_status status = read_call(&c, node);
  if (!status) status = run_call(&c);
  free_call(&c);
  return gr_node_error(status, number);
}

static graft_status add_nodes(const loading *l) {
  const cJSON *list = field(l->file.graph, "nodes"), *item;
  if (!cJSON_IsArray(list)) return bad(l, "its graph has no list \"nodes\"");
  uint32_t number = 0;
  cJSON_ArrayForEach(item, list) {
    graft_status status = add_node(l, item, number++);
    if (status) return status;
  }
  return GRAFT_OK;
}

/* --- the whole --- */

static graft_status read_dtype(loading *l) {
  graft_dtype dtype;
  if (!gr_json_get_dtype(field(l->file.graph, "default_dtype"), &dtype) || !dt_is_float(dtype))
    return bad(l, "its graph has no default dtype that there is");
  l->graph->default_dtype = dtype;
  dt_set_default(dtype);
  return GRAFT_OK;
}

static graft_status record_all(const loading *l) {
  graft_status status = graft_graph_record_begin(l->graph);
  if (status) return status;
  status = add_nodes(l);
  if (!status) status = add_outputs(l);
  graft_status ended = graft_graph_record_end(l->graph);
  if (!status) status = ended;
  return status ? status : gr_check_bytes(l->graph);
}

static graft_status load_nodes(loading *l) {
  graft_status status = gr_load_constants(l);
  if (!status) status = add_inputs(l);
  return status ? status : record_all(l);
}

static graft_status load(loading *l) {
  const graft_dtype dtype = dt_default();
  const bool grad = graft_grad_mode_set(false);
  graft_status status = read_dtype(l);
  if (!status) status = check_ops(l);
  if (!status) status = gr_load_buffers(l);
  if (!status) status = l->file.has_open_sizes ? gr_load_script(l) : load_nodes(l);
  dt_set_default(dtype);
  graft_grad_mode_set(grad);
  return status;
}

graft_status graft_graph_load(graft_rt_device *device, const char *path, graft_graph **graph) {
  if (!path) return err_null(__func__, "path");
  if (!graph) return err_null(__func__, "graph");
  if (tns_recording) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_load: this thread records a graph; end that recording first");
  }
  loading l = {.device = device ? device : graft_device_reference()};
  if (!l.device) return GRAFT_OUT_OF_MEMORY;
  graft_status status = gr_file_open(path, &l.file);
  if (status) return status;
  status = graft_graph_create(l.device, &l.graph);
  if (!status) status = load(&l);
  for (uint32_t i = 0; i < l.nbuffers && l.buffers; i++) tns_storage_release(l.buffers[i].storage);
  gr_file_close(&l.file);
  arena_free(&l.memory);
  if (status)
    graft_graph_destroy(l.graph);
  else
    *graph = l.graph;
  return status ? err_attribute(status, path) : GRAFT_OK;
}
