/* See script.h. */
#include "graph/script.h"

#include <stdlib.h>
#include <string.h>

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for what a graph with open sizes keeps of its calls");
}

static bool is_of_graph(const graft_graph *graph, const graft_tensor *t) {
  return t->storage && t->storage->symbol >> 32 == graph->serial && t->storage->symbol;
}

/* --- names among arguments --- */

static bool put_scalar(const gr_sizes *sizes, const int64_t *values, graft_scalar *s) {
  if (s->dtype != GRAFT_I64 || !gr_is_open(sizes, s->value.i)) return false;
  s->value.i = gr_size_value(sizes, values, s->value.i);
  return true;
}

/* False: no host memory. */
static bool put_list(const gr_sizes *sizes, const int64_t *values, graft_value *v, arena *memory, bool *any) {
  const bool ints = v->kind == GRAFT_VALUE_INTS;
  const size_t bytes = op_value_bytes(v);
  char *copy = bytes ? arena_copy(memory, v->as.str, bytes) : NULL;
  if (bytes && !copy) return false;
  for (uint32_t i = 0; i < v->count; i++) {
    int64_t *number = &((int64_t *)(void *)copy)[ints ? i : 0];
    if (!ints) {
      *any |= put_scalar(sizes, values, &((graft_scalar *)(void *)copy)[i]);
    } else if (gr_is_open(sizes, *number)) {
      *number = gr_size_value(sizes, values, *number);
      *any = true;
    }
  }
  if (bytes) v->as.str = copy;
  return true;
}

graft_value *gr_with_values(const gr_sizes *sizes, const int64_t *values, const graft_value *args, uint32_t nargs,
                            arena *memory, bool *any) {
  graft_value *copy = arena_copy(memory, args, nargs * sizeof *args);
  *any = false;
  for (uint32_t i = 0; copy && i < nargs; i++) {
    graft_value *v = &copy[i];
    bool good = true;
    if (v->kind == GRAFT_VALUE_INT && gr_is_open(sizes, v->as.i)) {
      v->as.i = gr_size_value(sizes, values, v->as.i);
      *any = true;
    } else if (v->kind == GRAFT_VALUE_SCALAR) {
      *any |= put_scalar(sizes, values, &v->as.scalar);
    } else if (v->kind == GRAFT_VALUE_INTS || v->kind == GRAFT_VALUE_SCALARS) {
      good = put_list(sizes, values, v, memory, any);
    }
    if (!good) return NULL;
  }
  return copy;
}

/* --- tensors among arguments --- */

typedef struct writing {
  graft_graph *graph;
  const char *what; /* is called */
  gr_entry *entry;
  uint32_t next; /* use */
} writing;

static arena *memory_of(const writing *w) {
  return &w->graph->script->store->memory;
}

static graft_status check_tensor(const graft_graph *graph, const char *what, const graft_tensor *t) {
  if (!t || !is_of_graph(graph, t) || gr_traced(graph, t) != GR_NONE) return GRAFT_OK;
  return err_about(
      GRAFT_INVALID_ARGUMENT, what,
      "%s was made by no call of an op, nor by graft_backward for a leaf, and the graph has open sizes: it "
      "can't be followed to others; make it by an op (aten::empty.memory_format, aten::alias)",
      TNS_SHAPE(t));
}

/* What arithmetic on a name gives is refused, which else would be some number. */
static graft_status check_number(const graft_graph *graph, const char *what, int64_t number) {
  const gr_sizes *sizes = &graph->script->sizes;
  if (!gr_is_among_names(number) || gr_is_open(sizes, number)) return GRAFT_OK;
  return err_about(GRAFT_INVALID_ARGUMENT, what,
                   "%lld is no size of the graph, and looks as if it were computed of one; what follows from an open "
                   "size is made by graft_graph_size_of",
                   (long long)number);
}

static graft_status check_scalar(const graft_graph *graph, const char *what, const graft_scalar *s) {
  return s->dtype == GRAFT_I64 ? check_number(graph, what, s->value.i) : GRAFT_OK;
}

static graft_status check_numbers(const graft_graph *graph, const char *what, const graft_value *v) {
  graft_status status = GRAFT_OK;
  if (v->kind == GRAFT_VALUE_INT) status = check_number(graph, what, v->as.i);
  if (v->kind == GRAFT_VALUE_SCALAR) status = check_scalar(graph, what, &v->as.scalar);
  for (uint32_t k = 0; v->kind == GRAFT_VALUE_INTS && k < v->count && !status; k++)
    status = check_number(graph, what, v->as.ints[k]);
  for (uint32_t k = 0; v->kind == GRAFT_VALUE_SCALARS && k < v->count && !status; k++)
    status = check_scalar(graph, what, &v->as.scalars[k]);
  return status;
}

static graft_status check_args(const graft_graph *graph, const char *what, const graft_value *args, uint32_t nargs) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < nargs && !status; i++) {
    if (args[i].kind == GRAFT_VALUE_TENSOR) status = check_tensor(graph, what, args[i].as.tensor);
    for (uint32_t k = 0; args[i].kind == GRAFT_VALUE_TENSORS && k < args[i].count && !status; k++)
      status = check_tensor(graph, what, args[i].as.tensors[k]);
    if (!status) status = check_numbers(graph, what, &args[i]);
  }
  return status;
}

static graft_status check_list(const graft_graph *graph, const char *what, graft_tensor *const *items, uint32_t count) {
  const graft_value list = graft_value_tensors(items, count);
  return items ? check_args(graph, what, &list, 1) : GRAFT_OK;
}

static graft_status add_constant(const writing *w, graft_tensor *t, uint32_t *value) {
  gr_script *s = w->graph->script;
  gr_script_constant constant;
  graft_status status = gr_constant_view(w->graph, w->what, t, &constant.view);
  if (!status) status = gr_grow((void **)&s->constants, s->nconstants, sizeof *s->constants);
  if (status) return status;
  *value = constant.value =
      s->nvalues++; /* it is no tensor's: what the tensor holds may have changed at its next use */
  s->constants[s->nconstants++] = constant;
  return GRAFT_OK;
}

static graft_status keep_leaf(const writing *w, graft_tensor *t, uint32_t value) {
  gr_script *s = w->graph->script;
  for (uint32_t i = 0; i < s->nleaves; i++) {
    if (s->leaves[i].tensor == t) return GRAFT_OK;
  }
  graft_status status = gr_grow((void **)&s->leaves, s->nleaves, sizeof *s->leaves);
  if (status) return status;
  graft_tensor_retain(t);
  s->leaves[s->nleaves++] = (gr_leaf){value, t};
  return GRAFT_OK;
}

static graft_status add_use(writing *w, graft_tensor *t) {
  gr_value_use *use = &w->entry->uses[w->next++];
  *use = (gr_value_use){.value = GR_NONE};
  if (!t) return GRAFT_OK;
  use->value = gr_traced(w->graph, t);
  if (use->value == GR_NONE) return add_constant(w, t, &use->value);
  use->is_leaf = graft_tensor_is_leaf(t);
  use->requires_grad = graft_tensor_requires_grad(t);
  return use->is_leaf && use->requires_grad ? keep_leaf(w, t, use->value) : GRAFT_OK;
}

static graft_status add_list(writing *w, graft_tensor *const *items, uint32_t count) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < count && !status; i++) status = add_use(w, items ? items[i] : NULL);
  return status;
}

static graft_status add_arg(writing *w, graft_value *v) {
  const size_t bytes = v->kind == GRAFT_VALUE_TENSORS ? 0 : op_value_bytes(v);
  const uint32_t first = w->next;
  graft_status status = GRAFT_OK;
  if (bytes && !(v->as.str = arena_copy(memory_of(w), v->as.str, bytes))) return no_memory();
  if (v->kind == GRAFT_VALUE_GENERATOR) *v = (graft_value){0}; /* the device's default one: it was checked */
  if (v->kind == GRAFT_VALUE_TENSOR) {
    status = add_use(w, v->as.tensor);
    v->as.i = first;
  } else if (v->kind == GRAFT_VALUE_TENSORS) {
    status = add_list(w, v->as.tensors, v->count);
    v->as.i = first;
  }
  return status;
}

/* --- entries --- */

static uint32_t count_uses(const graft_value *args, uint32_t nargs) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < nargs; i++)
    count += args[i].kind == GRAFT_VALUE_TENSOR ? 1 : args[i].kind == GRAFT_VALUE_TENSORS ? args[i].count : 0;
  return count;
}

static graft_status new_entry(writing *w, const gr_entry *like) {
  arena *memory = memory_of(w);
  w->entry = arena_copy(memory, like, sizeof *like);
  if (!w->entry) return no_memory();
  w->entry->grad_mode = graft_grad_mode();
  w->entry->inference_mode = graft_inference_mode();
  w->entry->uses = arena_take(memory, like->nuses * sizeof *like->uses);
  w->entry->outs = arena_take(memory, like->nouts * sizeof *like->outs);
  return w->entry->uses && w->entry->outs ? GRAFT_OK : no_memory();
}

static graft_status append(const writing *w) {
  gr_script *s = w->graph->script;
  graft_status status = gr_grow((void **)&s->entries, s->nentries, sizeof *s->entries);
  if (!status) s->entries[s->nentries++] = w->entry;
  return status;
}

/* A tensor that a call gave: a new value, or one that was there. */
static gr_made_value note_out(graft_graph *graph, graft_tensor *t) {
  if (!t) return (gr_made_value){GR_NONE, false, GR_NONE};
  const uint32_t value = gr_traced(graph, t);
  if (value != GR_NONE) return (gr_made_value){value, true, GR_NONE};
  return (gr_made_value){gr_trace(graph, t), false, GR_NONE};
}

static graft_status add_call(graft_graph *graph, uint32_t op_id, const graft_value *args, uint32_t nargs,
                             graft_tensor **outs, uint32_t nouts) {
  writing w = {.graph = graph, .what = op_schema_of(op_id)->name};
  graft_status status = new_entry(
      &w,
      &(gr_entry){.act = GR_CALL, .op_id = op_id, .nargs = nargs, .nouts = nouts, .nuses = count_uses(args, nargs)});
  if (status) return status;
  w.entry->args = arena_copy(memory_of(&w), args, nargs * sizeof *args);
  if (!w.entry->args) return no_memory();
  for (uint32_t i = 0; i < nargs && !status; i++) status = add_arg(&w, &w.entry->args[i]);
  for (uint32_t i = 0; i < nouts && !status; i++) w.entry->outs[i] = note_out(graph, outs[i]);
  return status ? status : append(&w);
}

/* Calls on what is no value of the graph, and gives none, are made once for all: views of constants. */
static bool is_of_interest(const graft_graph *graph, const graft_value *args, uint32_t nargs, graft_tensor **outs,
                           uint32_t nouts) {
  for (uint32_t i = 0; i < nouts; i++) {
    if (outs[i] && is_of_graph(graph, outs[i])) return true;
  }
  for (uint32_t i = 0; i < nargs; i++) {
    const graft_value *v = &args[i];
    if (v->kind == GRAFT_VALUE_TENSOR && v->as.tensor && gr_traced(graph, v->as.tensor) != GR_NONE) return true;
    for (uint32_t k = 0; v->kind == GRAFT_VALUE_TENSORS && k < v->count; k++) {
      if (v->as.tensors[k] && gr_traced(graph, v->as.tensors[k]) != GR_NONE) return true;
    }
  }
  return false;
}

/* While what the thread called calls others, these are not the thread's. */
static void listen(graft_graph *graph, bool listens) {
  graph->recorder.base.call = listens ? gr_script_call : NULL;
  graph->recorder.base.base.backward = listens ? gr_script_backward : NULL;
}

static void give_up(bool *given, graft_tensor **outs, uint32_t nouts) {
  for (uint32_t i = 0; i < nouts; i++) {
    if (given[i]) continue;
    graft_tensor_release(outs[i]);
    outs[i] = NULL;
  }
}

graft_status gr_script_call(dsp_recorder *self, uint32_t op_id, const graft_value *args, uint32_t nargs,
                            graft_tensor **outs, uint32_t nouts) {
  graft_graph *graph = ((gr_recorder *)(void *)self)->graph;
  const gr_sizes *sizes = &graph->script->sizes;
  const op_schema *schema = op_schema_of(op_id);
  const char *name = schema ? schema->name : "graft_call";
  arena memory = {0};
  bool named = false;
  graft_status status = check_args(graph, name, args, nargs);
  if (!status) status = check_list(graph, name, outs, nouts);
  if (status) return status;
  graft_value *plain = gr_with_values(sizes, sizes->examples, args, nargs, &memory, &named);
  bool *given = arena_take(&memory, nouts * sizeof *given);
  status = plain && given ? GRAFT_OK : no_memory();
  for (uint32_t i = 0; i < nouts && !status; i++) given[i] = outs[i] != NULL;
  if (!status) {
    listen(graph, false);
    status = graft_call(op_id, plain, nargs, outs, nouts);
    listen(graph, true);
    if (!status && (named || is_of_interest(graph, args, nargs, outs, nouts))) {
      status = add_call(graph, op_id, args, nargs, outs, nouts);
      if (status) gr_fail(graph, status); /* there is a node for it, and no entry */
      if (status) give_up(given, outs, nouts);
    }
  }
  arena_free(&memory);
  return status;
}

/* --- gradients --- */

static graft_status note_gradients(writing *w) {
  gr_script *s = w->graph->script;
  for (uint32_t i = 0; i < s->nleaves; i++) {
    graft_tensor *grad = graft_tensor_grad(s->leaves[i].tensor);
    w->entry->outs[i] = (gr_made_value){GR_NONE, false, s->leaves[i].value};
    if (grad && is_of_graph(w->graph, grad)) w->entry->outs[i].value = gr_trace(w->graph, grad);
  }
  return GRAFT_OK;
}

static graft_status add_backward(graft_graph *graph, const tns_backward *call) {
  writing w = {.graph = graph, .what = call->ninputs ? "graft_grad" : "graft_backward"};
  const gr_entry like = {.act = call->ninputs ? GR_GRAD : GR_BACKWARD,
                         .flags = call->flags,
                         .count = call->count,
                         .nuses = 2 * call->count + call->ninputs,
                         /* A root that is a leaf may be new among them. */
                         .nouts = call->ninputs ? call->ninputs : graph->script->nleaves + call->count};
  graft_status status = new_entry(&w, &like);
  if (!status) status = add_list(&w, call->roots, call->count);
  if (!status) status = add_list(&w, call->grads, call->count);
  if (!status) status = add_list(&w, call->inputs, call->ninputs);
  if (status) return status;
  if (call->ninputs) {
    for (uint32_t i = 0; i < call->ninputs; i++) {
      graft_tensor *t = call->results[i];
      w.entry->outs[i] = (gr_made_value){t ? gr_trace(graph, t) : GR_NONE, false, GR_NONE};
    }
  } else {
    w.entry->nouts = graph->script->nleaves;
    status = note_gradients(&w);
  }
  return status ? status : append(&w);
}

graft_status gr_script_backward(tns_recorder *self, const tns_backward *call) {
  graft_graph *graph = ((gr_recorder *)(void *)self)->graph;
  const char *name = call->ninputs ? "graft_grad" : "graft_backward";
  graft_status status = check_list(graph, name, call->roots, call->count);
  if (!status) status = check_list(graph, name, call->grads, call->count);
  if (!status) status = check_list(graph, name, call->inputs, call->ninputs);
  if (status) return status;
  listen(graph, false);
  status = call->ninputs ? graft_grad(call->roots, call->grads, call->count, call->inputs, call->ninputs, call->flags,
                                      call->results)
                         : graft_backward(call->roots, call->grads, call->count, call->flags);
  listen(graph, true);
  if (status) return status;
  status = add_backward(graph, call);
  return status ? gr_fail(graph, status) : GRAFT_OK;
}

/* --- the public part --- */

static const char *copy_name(graft_graph *graph, const char *name) {
  return arena_copy(&graph->script->store->memory, name, strlen(name) + 1);
}

static graft_status check_new(const graft_graph *graph, const char *name, int64_t example, int64_t least,
                              int64_t most) {
  if (!graph->script && (graph->nbuffers || graph->nnodes))
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "graft_graph_size: the graph has inputs or calls already; name a size first");
  if (!*name) return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_size: the name is empty");
  if (least < 0)
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_size: %s: the least is %lld; expected 0 or more", name,
                   (long long)least);
  if (example < least || most < example)
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_size: %s: %lld is no example of a size from %lld to %lld", name,
                   (long long)example, (long long)least, (long long)most);
  for (uint32_t i = 0; graph->script && i < graph->script->sizes.count; i++) {
    const gr_size *s = &graph->script->sizes.items[i];
    if (s->op == GR_SIZE_OPEN && strcmp(s->name, name) == 0)
      return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_size: the graph has a size named %s", name);
  }
  return GRAFT_OK;
}

graft_status graft_graph_size(graft_graph *graph, const char *name, int64_t example, int64_t least, int64_t most,
                              int64_t *size) {
  if (!graph) return err_null(__func__, "graph");
  if (!name) return err_null(__func__, "name");
  if (!size) return err_null(__func__, "size");
  graft_status status = check_new(graph, name, example, least, most);
  if (!status && !graph->script) status = gr_script_new(&graph->script);
  if (status) return status;
  const gr_size entry = {.name = copy_name(graph, name), .least = least, .most = most};
  return entry.name ? gr_sizes_add(&graph->script->sizes, &entry, example, size) : no_memory();
}

graft_status graft_graph_size_of(graft_graph *graph, graft_size_op op, int64_t left, int64_t right, int64_t *size) {
  if (!graph) return err_null(__func__, "graph");
  if (!size) return err_null(__func__, "size");
  if (!graph->script)
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_size_of: the graph has no open size; see graft_graph_size");
  if (op < GRAFT_SIZE_ADD || op > GRAFT_SIZE_MAX)
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_size_of: %u is no graft_size_op", op);
  return gr_sizes_add(&graph->script->sizes, &(gr_size){.op = op, .left = left, .right = right}, 0, size);
}
