/* A graph to a file. Buffers are numbered anew, in the order in which inputs, calls and outputs first name them, so
 * that one graph gives one file, whatever else was made while it was recorded; what nobody names is left out. */
#include <stdlib.h>
#include <string.h>

#include "base/whole_file.h"
#include "graph/file.h"

/* A tensor of the file. */
typedef struct saved {
  const char *name;
  uint32_t buffer;
  graft_tensor *bytes;
  const gr_view *view; /* all of it, for the eyes of others; NULL: plain bytes */
} saved;

typedef struct writer {
  const graft_graph *graph;
  uint32_t *numbers;     /* by buffer: its number in the file; GR_NONE: none */
  const gr_view **views; /* by buffer: of a constant, a view that is all of it, for the eyes of others; or NULL */
  uint32_t *buffers;     /* by number */
  uint32_t *constants;   /* buffers, by the number of their tensor */
  saved *tensors;        /* constants by number, then values of inputs */
  uint32_t *order;       /* which of them, as their bytes lie in the file */
  uint32_t nbuffers, nconstants, ntensors;
  arena memory;
} writer;

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to write a graph");
}

/* --- numbers --- */

/* What the container calls a dtype; NULL: it has none of the kind. */
static const char *container_dtype(graft_dtype dtype) {
  static const struct {
    graft_dtype dtype;
    const char *name;
  } rows[] = {{GRAFT_BOOL, "BOOL"}, {GRAFT_U8, "U8"},   {GRAFT_I8, "I8"},   {GRAFT_I16, "I16"}, {GRAFT_U16, "U16"},
              {GRAFT_I32, "I32"},   {GRAFT_U32, "U32"}, {GRAFT_I64, "I64"}, {GRAFT_U64, "U64"}, {GRAFT_F16, "F16"},
              {GRAFT_BF16, "BF16"}, {GRAFT_F32, "F32"}, {GRAFT_F64, "F64"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].dtype == dtype) return rows[i].name;
  }
  return NULL;
}

/* Whether a view is all of its buffer, in order. */
static bool is_whole(const gr_buffer *b, const gr_view *view) {
  if (view->offset || !container_dtype(view->dtype)) return false;
  const uint64_t bytes = (uint64_t)tns_numel(view->ndim, view->sizes) * dt_bytes(view->dtype);
  return bytes == b->bytes && tns_is_contiguous(view->ndim, view->sizes, view->strides);
}

static void number_view(writer *w, const gr_view *view) {
  if (view->buffer == GR_NONE) return;
  const gr_buffer *b = &w->graph->buffers[view->buffer];
  if (b->constant && !w->views[view->buffer] && is_whole(b, view)) w->views[view->buffer] = view;
  if (w->numbers[view->buffer] != GR_NONE) return;
  w->numbers[view->buffer] = w->nbuffers;
  w->buffers[w->nbuffers++] = view->buffer;
  if (b->constant) w->constants[w->nconstants++] = view->buffer;
}

/* Of open sizes: what the calls name, which the nodes of one size need not see all of. */
static void number_constants(writer *w) {
  const gr_script *script = w->graph->script;
  for (uint32_t i = 0; i < script->nconstants; i++) number_view(w, &script->constants[i].view);
}

static void number_all(writer *w) {
  const graft_graph *graph = w->graph;
  for (uint32_t i = 0; i < graph->ninputs; i++) number_view(w, &graph->inputs[i].view);
  for (uint32_t n = 0; n < graph->nnodes; n++) {
    const gr_node *node = graph->nodes[n];
    for (uint32_t i = 0; i < node->noperands; i++) number_view(w, &node->operands[i].view);
    for (uint32_t i = 0; i < node->nresults; i++) number_view(w, &node->results[i].view);
  }
  for (uint32_t i = 0; i < graph->noutputs; i++) number_view(w, &graph->outputs[i].view);
}

static graft_status take_numbers(writer *w) {
  const size_t bytes = w->graph->nbuffers * sizeof *w->numbers;
  w->numbers = arena_take(&w->memory, bytes);
  w->views = arena_take(&w->memory, w->graph->nbuffers * sizeof *w->views);
  w->buffers = arena_take(&w->memory, bytes);
  w->constants = arena_take(&w->memory, bytes);
  if (!w->numbers || !w->views || !w->buffers || !w->constants) return no_memory();
  for (uint32_t i = 0; i < w->graph->nbuffers; i++) w->numbers[i] = GR_NONE;
  if (w->graph->script)
    number_constants(w);
  else
    number_all(w);
  return GRAFT_OK;
}

/* --- the graph as JSON --- */

static cJSON *json_view(const writer *w, const gr_view *view) {
  return view->buffer == GR_NONE ? cJSON_CreateNull() : gr_json_view(view, w->numbers[view->buffer]);
}

static cJSON *json_buffers(const writer *w) {
  static const char *const kinds[] = {[GR_VALUE] = "value", [GR_INPUT] = "input", [GR_CONSTANT] = "constant"};
  cJSON *array = cJSON_CreateArray();
  bool good = true;
  for (uint32_t i = 0; i < w->nbuffers && good; i++) {
    const gr_buffer *b = &w->graph->buffers[w->buffers[i]];
    cJSON *object = cJSON_CreateObject();
    good = gr_json_put(object, "kind", cJSON_CreateString(kinds[b->kind])) &&
           gr_json_put(object, "bytes", gr_json_int((int64_t)b->bytes)) &&
           (!b->on_host || gr_json_put(object, "on_host", cJSON_CreateTrue()));
    good = gr_json_append(array, object) && good;
  }
  return gr_json_whole(array, good);
}

static cJSON *json_ports(const writer *w, const gr_port *ports, uint32_t count) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t i = 0; i < count && good; i++) {
    cJSON *object = cJSON_CreateObject();
    good = gr_json_put(object, "name", cJSON_CreateString(ports[i].name)) &&
           gr_json_put(object, "view", json_view(w, &ports[i].view));
    good = gr_json_append(array, object) && good;
  }
  return gr_json_whole(array, good);
}

static cJSON *json_tensors(const writer *w, const gr_node *node, const graft_value *v) {
  cJSON *object = cJSON_CreateObject();
  const gr_operand *first = &node->operands[v->as.i];
  bool written = false, good = true;
  if (v->kind == GRAFT_VALUE_TENSOR) {
    good = gr_json_put(object, "tensor", json_view(w, &first->view));
    written = first->written;
  } else {
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < v->count && good; i++) {
      good = gr_json_append(list, json_view(w, &first[i].view));
      written |= first[i].written;
    }
    good = gr_json_put(object, "tensors", list) && good;
  }
  if (good && written) good = gr_json_put(object, "written", cJSON_CreateTrue());
  return gr_json_whole(object, good);
}

static bool is_tensor(const graft_value *v) {
  return v->kind == GRAFT_VALUE_TENSOR || v->kind == GRAFT_VALUE_TENSORS;
}

static bool put_args(const writer *w, const gr_node *node, cJSON *object) {
  cJSON *args = cJSON_CreateObject();
  bool good = true;
  for (uint32_t i = 0; i < node->nargs && good; i++) {
    const graft_value *v = &node->args[i];
    if (v->kind == GRAFT_VALUE_NONE) continue;
    good = gr_json_put(args, node->schema->args[i].name,
                       is_tensor(v) ? json_tensors(w, node, v) : gr_json_value(&gr_no_sizes, v));
  }
  return gr_json_put(object, "args", args) && good;
}

static bool put_results(const writer *w, const gr_node *node, cJSON *object) {
  cJSON *results = cJSON_CreateArray();
  bool good = true;
  for (uint32_t i = 0; i < node->nresults && good; i++) {
    const gr_result *r = &node->results[i];
    cJSON *result = r->view.buffer == GR_NONE ? cJSON_CreateNull() : cJSON_CreateObject();
    if (r->view.buffer != GR_NONE) good = gr_json_put(result, "view", json_view(w, &r->view));
    if (good && r->given) good = gr_json_put(result, "given", cJSON_CreateTrue());
    good = gr_json_append(results, result) && good;
  }
  return gr_json_put(object, "results", results) && good;
}

static cJSON *json_nodes(const writer *w) {
  cJSON *array = cJSON_CreateArray();
  bool good = array != NULL;
  for (uint32_t n = 0; n < w->graph->nnodes && good; n++) {
    const gr_node *node = w->graph->nodes[n];
    cJSON *object = cJSON_CreateObject();
    good = gr_json_put(object, "op", cJSON_CreateString(node->schema->name)) && put_args(w, node, object) &&
           put_results(w, node, object);
    good = gr_json_append(array, object) && good;
  }
  return gr_json_whole(array, good);
}

static int by_name(const void *a, const void *b) {
  const op_schema *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

/* The ops of all calls; there is room for them. */
static uint32_t list_schemas(const graft_graph *graph, const op_schema **schemas) {
  uint32_t count = 0;
  const gr_script *script = graph->script;
  for (uint32_t n = 0; !script && n < graph->nnodes; n++) schemas[count++] = graph->nodes[n]->schema;
  for (uint32_t n = 0; script && n < script->nentries; n++) {
    if (script->entries[n]->act == GR_CALL) schemas[count++] = op_schema_of(script->entries[n]->op_id);
  }
  return count;
}

/* Each op once, by its name, and the hash of its schema. */
static cJSON *json_ops(const writer *w) {
  const uint32_t most = w->graph->script ? w->graph->script->nentries : w->graph->nnodes;
  const op_schema **schemas = calloc(most + 1u, sizeof *schemas);
  cJSON *object = schemas ? cJSON_CreateObject() : NULL;
  bool good = object != NULL;
  const uint32_t count = good ? list_schemas(w->graph, schemas) : 0;
  if (good) qsort(schemas, count, sizeof *schemas, by_name);
  for (uint32_t n = 0; n < count && good; n++) {
    char hash[17];
    if (n && schemas[n] == schemas[n - 1]) continue;
    gr_schema_hash(schemas[n], hash);
    good = gr_json_put(object, schemas[n]->name, cJSON_CreateString(hash));
  }
  free(schemas);
  return gr_json_whole(object, good);
}

static bool put_nodes(cJSON *root, const writer *w) {
  const graft_graph *graph = w->graph;
  return gr_json_put(root, "inputs", json_ports(w, graph->inputs, graph->ninputs)) &&
         gr_json_put(root, "nodes", json_nodes(w)) &&
         gr_json_put(root, "outputs", json_ports(w, graph->outputs, graph->noutputs));
}

/* The graph's JSON as text, the caller's. */
static char *graph_text(const writer *w) {
  const graft_graph *graph = w->graph;
  cJSON *root = cJSON_CreateObject();
  bool good = gr_json_put(root, "default_dtype", cJSON_CreateString(graft_dtype_name(graph->default_dtype))) &&
              gr_json_put(root, "ops", json_ops(w)) && gr_json_put(root, "buffers", json_buffers(w)) &&
              (graph->script ? gr_json_put_script(root, graph, w->numbers) : put_nodes(root, w));
  char *text = good ? cJSON_PrintUnformatted(root) : NULL;
  cJSON_Delete(root);
  return text;
}

/* --- the tensors --- */

static graft_status add_constant(writer *w, uint32_t number) {
  const uint32_t buffer = w->constants[number];
  char name[GR_FILE_NAME_MAX];
  const int length = snprintf(name, sizeof name, GR_FILE_CONSTANT, number);
  const char *copy = arena_copy(&w->memory, name, (size_t)length + 1);
  w->tensors[w->ntensors++] = (saved){copy, buffer, w->graph->buffers[buffer].constant, w->views[buffer]};
  return copy ? GRAFT_OK : no_memory();
}

static graft_status add_value(writer *w, const gr_port *port) {
  static const char prefix[] = GR_FILE_INPUT;
  const size_t room = sizeof prefix + strlen(port->name);
  const gr_view *view = is_whole(&w->graph->buffers[port->view.buffer], &port->view) ? &port->view : NULL;
  char *name = arena_take(&w->memory, room);
  if (!name) return no_memory();
  snprintf(name, room, "%s%s", prefix, port->name);
  w->tensors[w->ntensors++] = (saved){name, port->view.buffer, port->value, view};
  return GRAFT_OK;
}

static graft_status list_tensors(writer *w) {
  const graft_graph *graph = w->graph;
  const size_t most = (size_t)w->nconstants + graph->ninputs;
  w->tensors = arena_take(&w->memory, most * sizeof *w->tensors);
  w->order = arena_take(&w->memory, most * sizeof *w->order);
  if (!w->tensors || !w->order) return no_memory();
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < w->nconstants && !status; i++) status = add_constant(w, i);
  for (uint32_t i = 0; i < graph->ninputs && !status; i++) {
    if (graph->inputs[i].value) status = add_value(w, &graph->inputs[i]);
  }
  return status;
}

/* --- the header --- */

static bool put_tensor(const saved *t, cJSON *header, int64_t *end) {
  const int64_t bytes = t->bytes->numel, offsets[] = {*end, *end + bytes};
  const gr_view *view = t->view;
  cJSON *object = cJSON_CreateObject();
  bool good = gr_json_put(object, "dtype", cJSON_CreateString(view ? container_dtype(view->dtype) : "U8")) &&
              gr_json_put(object, "shape", view ? gr_json_ints(view->sizes, view->ndim) : gr_json_ints(&bytes, 1)) &&
              gr_json_put(object, "data_offsets", gr_json_ints(offsets, 2));
  *end += bytes;
  return gr_json_put(header, t->name, object) && good;
}

static uint64_t unit_of(const saved *t) {
  return t->view ? dt_bytes(t->view->dtype) : 1;
}

/* Those of the largest elements come first, so that each begins at a multiple of its own. */
static void order_tensors(writer *w) {
  uint32_t count = 0;
  for (uint64_t unit = 8; unit; unit /= 2) {
    for (uint32_t i = 0; i < w->ntensors; i++) {
      if (unit_of(&w->tensors[i]) == unit) w->order[count++] = i;
    }
  }
}

static cJSON *json_header(const writer *w, const char *graph) {
  cJSON *header = cJSON_CreateObject(), *metadata = cJSON_CreateObject();
  bool good =
      gr_json_put(metadata, GR_FILE_VERSION, cJSON_CreateString(w->graph->script ? GR_FILE_OPEN : GR_FILE_FORMAT)) &&
      gr_json_put(metadata, GR_FILE_GRAPH, cJSON_CreateString(graph));
  good = gr_json_put(header, GR_FILE_METADATA, metadata) && good;
  int64_t end = 0;
  for (uint32_t i = 0; i < w->ntensors && good; i++) good = put_tensor(&w->tensors[w->order[i]], header, &end);
  return gr_json_whole(header, good);
}

static graft_status header_text(const writer *w, char **text) {
  char *graph = graph_text(w);
  cJSON *header = graph ? json_header(w, graph) : NULL;
  *text = header ? cJSON_PrintUnformatted(header) : NULL;
  cJSON_Delete(header);
  cJSON_free(graph);
  if (!*text) return no_memory();
  if (strlen(*text) <= GR_FILE_HEADER_MAX) return GRAFT_OK;
  return err_set(GRAFT_UNIMPLEMENTED, "a graph whose description takes %zu bytes; a file has room for %d",
                 strlen(*text), (int)GR_FILE_HEADER_MAX);
}

/* --- the whole --- */

static void write_header(file_part *to, const char *text) {
  const size_t length = strlen(text), padded = (length + 7) / 8 * 8;
  unsigned char head[8]; /* little-endian, as all machines are that Graft runs on */
  for (int i = 0; i < 8; i++) head[i] = (unsigned char)((uint64_t)padded >> (8 * i));
  file_write(to, head, sizeof head);
  file_write(to, text, length);
  file_write(to, "       ", padded - length);
}

static graft_status write_tensor(const writer *w, const saved *t, file_part *to) {
  const bool constant = w->graph->buffers[t->buffer].constant == t->bytes;
  void *bytes = malloc((size_t)t->bytes->numel + 1);
  if (!bytes) return no_memory();
  graft_status status = graft_tensor_to_host(t->bytes, bytes);
  if (!status && constant && !t->view) status = gr_clear_unseen(w->graph, t->buffer, bytes);
  if (!status) file_write(to, bytes, (size_t)t->bytes->numel);
  free(bytes);
  return status;
}

static graft_status write_all(writer *w, const char *path) {
  char *text;
  file_part to;
  order_tensors(w);
  graft_status status = header_text(w, &text);
  if (status) return status;
  status = file_open(path, &to);
  if (!status) {
    write_header(&to, text);
    for (uint32_t i = 0; i < w->ntensors && !status; i++) status = write_tensor(w, &w->tensors[w->order[i]], &to);
    if (status)
      file_discard(&to);
    else
      status = file_close(&to);
  }
  cJSON_free(text);
  return status;
}

static graft_status check_graph(const graft_graph *graph) {
  if (tns_recording) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_save: this thread records a graph; end that recording first");
  }
  if (graph->failed) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_save: the recording of the graph has ended: %s",
                   graph->failure);
  }
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; graph->script && i < graph->script->sizes.count && !status; i++) {
    const gr_size *size = &graph->script->sizes.items[i];
    if (size->op == GR_SIZE_OPEN) status = gr_check_name("size", size->name);
  }
  for (uint32_t i = 0; i < graph->ninputs && !status; i++) status = gr_check_name("input", graph->inputs[i].name);
  for (uint32_t i = 0; i < graph->noutputs && !status; i++) status = gr_check_name("output", graph->outputs[i].name);
  return status;
}

graft_status graft_graph_save(const graft_graph *graph, const char *path) {
  if (!graph) return err_null(__func__, "graph");
  if (!path) return err_null(__func__, "path");
  writer w = {.graph = graph};
  graft_status status = check_graph(graph);
  if (!status) status = take_numbers(&w);
  if (!status) status = list_tensors(&w);
  if (!status) status = write_all(&w, path);
  arena_free(&w.memory);
  return status;
}
