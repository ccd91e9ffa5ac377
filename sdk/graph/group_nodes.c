/* Nodes as the extension "graft.graph" shows them to a plugin: args structs whose descriptors have no data, one
 * descriptor for each view. */
#include <string.h>

#include "graph/exec.h"
#include "tensor/view.h"

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to show a graph to a plugin");
}

/* --- views --- */

const graft_tensor_desc *gr_describe_view(gr_describer *d, const gr_view *view) {
  graft_graph_exec *e = d->exec;
  for (gr_described *known = d->by_buffer[view->buffer]; known; known = known->next) {
    if (gr_same_view(&known->view, view)) return &known->desc;
  }
  gr_described *made = arena_take(&e->memory, sizeof *made);
  if (!made) return NULL;
  made->view = *view;
  made->desc =
      (graft_tensor_desc){.struct_size = sizeof made->desc,
                          .dl = {NULL, e->device->dlpack_type, e->device->index, view->ndim, view->dtype,
                                 made->view.sizes, made->view.strides, (uint64_t)view->offset * dt_bytes(view->dtype)},
                          .storage_id = view->buffer + UINT64_C(1)};
  if (e->graph->buffers[view->buffer].on_host) made->desc.flags = GRAFT_TENSOR_HOST_VALUE;
  made->next = d->by_buffer[view->buffer];
  d->by_buffer[view->buffer] = made;
  return &made->desc;
}

static gr_view expanded(const gr_view *view, const gr_view *to) {
  gr_view wide = *view;
  wide.ndim = to->ndim;
  memcpy(wide.sizes, to->sizes, sizeof wide.sizes);
  for (int32_t i = 0; i < to->ndim; i++) {
    const int32_t own = i - (to->ndim - view->ndim);
    wide.strides[i] = own < 0 || (view->sizes[own] == 1 && to->sizes[i] != 1) ? 0 : view->strides[own];
  }
  for (int32_t i = to->ndim; i < GRAFT_MAX_DIMS; i++) wide.strides[i] = 0;
  return wide;
}

/* --- a node --- */

/* One that is described: a call of a slot. */
typedef struct describing {
  gr_describer *d;
  const gr_node *node;
  bool copies;
  const graft_tensor_desc **reads, **writes;
  uint32_t nreads, nwrites;
} describing;

static bool is_copy(const gr_node *node) {
  const op_def *def = op_def_of(node->schema->id);
  return def && def->flags & OP_COPY;
}

/* Of a copy, the last operand. */
static const gr_view *source_of_copy(const gr_node *node) {
  uint32_t last = node->noperands;
  while (last > 0 && node->operands[last - 1].view.buffer == GR_NONE) last--;
  return last ? &node->operands[last - 1].view : NULL;
}

static gr_view view_of(const describing *k, const dsp_operand *o) {
  const gr_node *node = k->node;
  if (o->is_output) return node->results[o->item].view;
  if (k->copies) return expanded(source_of_copy(node), &node->results[0].view);
  const gr_view *view = &node->operands[node->args[o->arg].as.i + (o->item < 0 ? 0 : o->item)].view;
  const op_def *def = op_def_of(node->schema->id);
  const char role = op_role(node->schema, def, (uint32_t)o->arg);
  const bool number = k->d->exec->graph->buffers[view->buffer].on_host;
  const bool spreads = def->flags & (OP_ELEMENTWISE | OP_ITEM_BY_ITEM) && (role == 'b' || role == 'c');
  if (!number && spreads) return expanded(view, &node->results[o->item < 0 ? 0 : o->item].view);
  return *view;
}

static const graft_tensor_desc *describe_operand(void *context, const dsp_operand *o) {
  describing *k = context;
  const gr_view view = view_of(k, o);
  const graft_tensor_desc *desc = gr_describe_view(k->d, &view);
  if (!desc) return NULL;
  if (!o->is_output) k->reads[k->nreads++] = desc;
  if (o->is_output || o->mutated) k->writes[k->nwrites++] = desc;
  return desc;
}

/* --- which nodes are shown --- */

static bool has_bits(const gr_node *node) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < node->noperands; i++) {
    if (node->operands[i].view.buffer != GR_NONE) bits |= node->operands[i].view.flags;
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].view.buffer != GR_NONE) bits |= node->results[i].view.flags;
  }
  return bits & (TNS_CONJ | TNS_NEG);
}

static graft_tensor *cell_of(const gr_describer *d, uint32_t cell) {
  return cell == GR_NONE ? NULL : &d->frame->cells[cell];
}

/* A plan by which a plugin could run a node on what it is shown of it, and what goes into its args; NULL: none. */
typedef struct shown_call {
  dsp_plan *plan;
  const graft_value *args;
} shown_call;

/* How the conversion slot would make a copy. */
static graft_status show_copy(gr_describer *d, uint32_t n, shown_call *shown) {
  gr_step *step = &d->exec->steps[n];
  const gr_view *source = source_of_copy(step->node);
  if (!source || step->results[0] == GR_NONE || source->buffer == step->node->results[0].view.buffer) return GRAFT_OK;
  uint32_t at = step->node->noperands;
  while (step->operands[at - 1] == GR_NONE) at--;
  graft_tensor *to = cell_of(d, step->results[0]), *from = cell_of(d, step->operands[at - 1]), *wide = NULL;
  if (from->device != to->device) return GRAFT_OK;
  graft_value *args = arena_take(&d->exec->memory, OP_MAX_ARGS * sizeof *args);
  if (!args) return no_memory();
  graft_status status = tns_same_sizes(to, from) ? GRAFT_OK : tns_expand(from, to->ndim, to->sizes, &wide);
  if (!status) status = dsp_find_conversion(to, wide ? wide : from, &step->conversion, args);
  graft_tensor_release(wide);
  *shown = (shown_call){step->conversion, args};
  return status;
}

static graft_status find_shown(gr_describer *d, uint32_t n, shown_call *shown) {
  gr_step *step = &d->exec->steps[n];
  *shown = (shown_call){NULL, NULL};
  if ((gr_is_random(step->node) && !d->exec->shows_draws) || has_bits(step->node)) return GRAFT_OK;
  graft_status status = GRAFT_OK;
  if (is_copy(step->node))
    status = show_copy(d, n, shown);
  else
    *shown = (shown_call){step->plan, step->args};
  const dsp_plan *plan = shown->plan;
  if (status || !plan || !gr_is_slot(plan) || !plan->simple || plan->empty) shown->plan = NULL;
  return gr_node_error(status, n);
}

static bool list_views(describing *k) {
  for (uint32_t i = 0; i < k->node->noperands; i++) {
    const gr_operand *o = &k->node->operands[i];
    if (o->view.buffer == GR_NONE) continue;
    const graft_tensor_desc *desc = gr_describe_view(k->d, &o->view);
    if (!desc) return false;
    k->reads[k->nreads++] = desc;
    if (o->written) k->writes[k->nwrites++] = desc;
  }
  for (uint32_t i = 0; i < k->node->nresults; i++) {
    if (k->node->results[i].view.buffer == GR_NONE) continue;
    const graft_tensor_desc *desc = gr_describe_view(k->d, &k->node->results[i].view);
    if (!desc) return false;
    k->writes[k->nwrites++] = desc;
  }
  return true;
}

graft_status gr_describe_node(gr_describer *d, uint32_t n, const graft_graph_node **described) {
  graft_graph_exec *e = d->exec;
  const gr_node *node = e->graph->nodes[n];
  const uint32_t most = node->noperands + node->nresults + 1;
  graft_graph_node *shown = arena_take(&e->memory, sizeof *shown);
  describing k = {.d = d,
                  .node = node,
                  .copies = is_copy(node),
                  .reads = arena_take(&e->memory, most * sizeof *k.reads),
                  .writes = arena_take(&e->memory, most * sizeof *k.writes)};
  if (!shown || !k.reads || !k.writes) return no_memory();
  shown_call call;
  const graft_args *packed = NULL;
  graft_status status = find_shown(d, n, &call);
  if (!status && call.plan)
    status = dsp_pack_call(call.plan, call.args, describe_operand, &k, &e->memory, &packed);
  else if (!status && !list_views(&k))
    status = no_memory();
  *shown = (graft_graph_node){.struct_size = sizeof *shown,
                              .args = packed,
                              .reads = k.reads,
                              .writes = k.writes,
                              .read_count = k.nreads,
                              .write_count = k.nwrites,
                              .flags = gr_is_random(node) ? GRAFT_GRAPH_NODE_DRAWS : 0};
  *described = shown;
  return status;
}
