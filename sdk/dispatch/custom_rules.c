/* What stands for the rule, the gradient and the reference kernel of an op that a plugin brings: each describes the
 * call and asks the plugin. */
#include <string.h>

#include "dispatch/custom.h"
#include "dispatch/plan.h"
#include "ops/core/ref.h"

/* --- descriptors --- */

/* A tensor without memory, as infer sees it. */
static graft_tensor_desc *describe(arena *memory, const graft_tensor *t) {
  graft_tensor_desc *desc = arena_take(memory, sizeof *desc);
  if (!desc) return NULL;
  *desc = (graft_tensor_desc){
      .struct_size = sizeof *desc,
      .dl = {NULL, t->device->dlpack_type, t->device->index, t->ndim, t->dtype, t->sizes, t->strides, 0}};
  return desc;
}

static bool put_tensors(arena *memory, const graft_value *v, unsigned char *field) {
  const graft_tensor_desc **items = arena_take(memory, (v->count + 1) * sizeof *items);
  if (!items) return false;
  for (uint32_t i = 0; i < v->count; i++) {
    if (v->as.tensors[i] && !(items[i] = describe(memory, v->as.tensors[i]))) return false;
  }
  const graft_tensor_list list = {items, v->count};
  memcpy(field, &list, sizeof list);
  return true;
}

/* The args struct of a call that has no memory and no results yet; NULL: no host memory. */
static unsigned char *describe_args(const op_call *call) {
  dsp_packed packed;
  if (!dsp_pack_values(call->lists, call->schema, call->args, &packed)) return NULL;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    const graft_value *v = &call->args[i];
    unsigned char *field = packed.bytes + call->schema->args[i].offset;
    if (v->kind == GRAFT_VALUE_TENSORS && !put_tensors(call->lists, v, field)) return NULL;
    if (v->kind != GRAFT_VALUE_TENSOR) continue;
    const graft_tensor_desc *desc = describe(call->lists, v->as.tensor);
    if (!desc) return NULL;
    memcpy(field, &desc, sizeof(void *));
  }
  return packed.bytes;
}

/* --- the rule --- */

/* What infer writes to. */
typedef struct results {
  graft_custom_result items[OP_MAX_OUTS];
  graft_custom_result *pointers[OP_MAX_OUTS];
  int64_t shapes[OP_MAX_OUTS][GRAFT_MAX_DIMS];
} results;

static void prepare_results(results *r, uint32_t count) {
  memset(r, 0, sizeof *r);
  for (uint32_t i = 0; i < count; i++) {
    r->items[i] =
        (graft_custom_result){.struct_size = sizeof *r->items, .capacity = GRAFT_MAX_DIMS, .shape = r->shapes[i]};
    r->pointers[i] = &r->items[i];
  }
}

static graft_status take_result(op_call *call, const dsp_custom *custom, uint32_t i, const graft_custom_result *r) {
  const char *name = call->schema->rets[i].name;
  if (!r->dtype) {
    op_out(call, (int)i, GRAFT_DTYPE_NONE, 0, NULL);
    call->out_wanted[i] = false;
    return GRAFT_OK;
  }
  if (dt_number(r->dtype) < 0)
    return op_fail(call, GRAFT_INTERNAL, "infer of the plugin %s gave the result %s the dtype 0x%08x, which is none",
                   custom->plugin, name, (unsigned)r->dtype);
  bool shape = r->ndim >= 0 && r->ndim <= GRAFT_MAX_DIMS;
  for (int32_t d = 0; shape && d < r->ndim; d++) shape = r->shape[d] >= 0;
  if (!shape || tns_numel(r->ndim, r->shape) < 0)
    return op_fail(call, GRAFT_INTERNAL,
                   "infer of the plugin %s gave the result %s a shape that is none: %d dims, each size at least 0, at "
                   "most %d of them and as many elements as memory can have are expected",
                   custom->plugin, name, r->ndim, GRAFT_MAX_DIMS);
  op_out(call, (int)i, r->dtype, r->ndim, r->shape);
  return GRAFT_OK;
}

static const dsp_custom_row *row_for_call(const dsp_custom *custom, const op_call *call) {
  const dsp_custom_row *row = dsp_custom_row_for(custom, call->device->backend);
  return row ? row : dsp_custom_row_for(custom, graft_device_reference()->backend);
}

graft_status dsp_custom_infer(op_call *call) {
  const dsp_custom *custom = dsp_custom_of(call->schema);
  const dsp_custom_row *row = row_for_call(custom, call);
  if (!row) return op_error(call, "the plugin %s, whose op it is, was closed; open it again", custom->plugin);
  const unsigned char *args = describe_args(call);
  if (!args) return op_fail(call, GRAFT_OUT_OF_MEMORY, "no host memory to describe the call");
  uint32_t count = call->schema->nrets;
  results r;
  prepare_results(&r, count);
  err_clear();
  graft_status status =
      row->op.infer(row->backend->plugin.self, (const graft_args *)(const void *)args, r.pointers, count);
  if (status) return plg_status_of(call->schema->name, status, "the rule of its shapes");
  bool any = false;
  for (uint32_t i = 0; i < count && !status; i++) {
    status = take_result(call, custom, i, &r.items[i]);
    any = any || r.items[i].dtype;
  }
  if (status || any) return status;
  return op_fail(
      call, GRAFT_INTERNAL,
      "infer of the plugin %s said OK and of no result what it is; dtype, ndim and shape of one at least are "
      "expected",
      custom->plugin);
}

/* --- the gradient --- */

static void put_cotangents(const op_vjp *v, graft_value *args) {
  for (uint32_t i = 0; i < v->schema->nrets; i++)
    args[i] = fx_tensor(v->g[i] ? v->g[i] : fx_zeros_like(v->s, v->outs[i]));
}

static bool has_all(const op_vjp *v, const dsp_custom *custom) {
  for (uint32_t i = 0; i < v->schema->nargs; i++) {
    if (!(v->needs >> i & 1) || custom->gradient_of[i] >= 0) continue;
    fx_fail(v->s, err_about(GRAFT_UNIMPLEMENTED, v->schema->name, "its gradient %s gives none for the argument %s",
                            custom->gradient->schema.name, v->schema->args[i].name));
    return false;
  }
  return true;
}

void dsp_custom_vjp(op_vjp *v) {
  const dsp_custom *custom = dsp_custom_of(v->schema);
  const op_schema *gradient = &custom->gradient->schema;
  graft_value args[OP_MAX_ARGS] = {{0}};
  graft_tensor *outs[OP_MAX_OUTS] = {0};
  if (!has_all(v, custom)) return;
  put_cotangents(v, args);
  memcpy(args + v->schema->nrets, v->args, v->schema->nargs * sizeof *args);
  fx_call(v->s, gradient->id, args, gradient->nargs, outs, gradient->nrets);
  for (uint32_t i = 0; i < v->schema->nargs; i++)
    if (v->needs >> i & 1) v->results[i] = outs[custom->gradient_of[i]];
}

/* --- the reference kernel --- */

/* A tensor of the reference device as one of plain memory. */
static const graft_tensor_desc *in_host_memory(arena *memory, const graft_tensor_desc *d) {
  graft_tensor_desc *copy = arena_copy(memory, d, sizeof *d);
  if (!copy) return NULL;
  copy->dl.data = (graft_buffer *)(void *)ref_data(d);
  copy->dl.byte_offset = 0;
  return copy;
}

static bool move_tensor(arena *memory, unsigned char *field) {
  const graft_tensor_desc *d;
  memcpy(&d, field, sizeof(void *));
  if (!d) return true;
  d = in_host_memory(memory, d);
  memcpy(field, &d, sizeof(void *));
  return d != NULL;
}

static bool move_list(arena *memory, unsigned char *field) {
  graft_tensor_list list;
  memcpy(&list, field, sizeof list);
  const graft_tensor_desc **items = arena_take(memory, (list.count + 1) * sizeof *items);
  for (uint64_t i = 0; items && i < list.count; i++) {
    if (list.items[i] && !(items[i] = in_host_memory(memory, list.items[i]))) return false;
  }
  list.items = items;
  memcpy(field, &list, sizeof list);
  return items != NULL;
}

static bool move_all(arena *memory, const op_schema *schema, unsigned char *args) {
  for (uint32_t i = 0; i < schema->nargs; i++) {
    unsigned char *field = args + schema->args[i].offset;
    if (schema->args[i].kind == OPK_TENSOR && !move_tensor(memory, field)) return false;
    if (schema->args[i].kind == OPK_TENSORS && !move_list(memory, field)) return false;
  }
  for (uint32_t i = 0; i < schema->nrets; i++)
    if (!move_tensor(memory, args + schema->rets[i].offset)) return false;
  return true;
}

graft_status dsp_custom_reference(const graft_exec *exec, const void *args) {
  const dsp_frame *frame = exec->host_context;
  const op_schema *schema = frame->plan->slot_schema;
  const dsp_custom *custom = dsp_custom_of(schema);
  const dsp_custom_row *row = dsp_custom_row_for(custom, graft_device_reference()->backend);
  if (!row || !row->op.reference) return GRAFT_UNIMPLEMENTED;
  dsp_room room;
  arena memory = ARENA_IN(room.bytes);
  unsigned char *copy = arena_copy(&memory, args, schema->args_size);
  graft_status status = GRAFT_OUT_OF_MEMORY;
  if (copy && move_all(&memory, schema, copy))
    status = row->op.reference(row->backend->plugin.self, (const graft_args *)(const void *)copy);
  arena_free(&memory);
  return status;
}
