/* What a plugin is asked of a call before there is memory for it: whether it serves it (op_query), and to compile what
 * it needs (prepare). Both see the call as the slot will, with buffers that are NULL. */
#include <string.h>

#include "dispatch/plan.h"

/* A call's description; what it points to lies in `memory`. */
typedef struct ahead {
  arena memory;
  dsp_frame frame;
  graft_exec exec;
  graft_philox philox;
  graft_output output;
  dt_value number; /* for numbers in host memory: any will do, since no answer depends on them */
  unsigned char *packed;
} ahead;

static const void *describe_operand(ahead *a, const dsp_plan *plan, const dsp_operand *o) {
  if (o->action == DSP_ABSENT) return NULL;
  if (o->action == DSP_DYNAMIC) return &a->output;
  graft_tensor_desc *desc = arena_take(&a->memory, sizeof *desc);
  if (!desc) return NULL;
  *desc = (graft_tensor_desc){
      .struct_size = sizeof *desc,
      .dl = {NULL, plan->device->dlpack_type, plan->device->index, o->ndim, o->dtype, o->sizes, o->strides, 0}};
  if (o->action != DSP_HOST_VALUE) return desc;
  desc->dl.ndim = 0;
  desc->dl.data = (graft_buffer *)(void *)&a->number;
  desc->flags = GRAFT_TENSOR_HOST_VALUE;
  return desc;
}

static bool place_operands(ahead *a, const dsp_plan *plan) {
  for (uint32_t f = 0; f < plan->nfields; f++) {
    const dsp_field *field = &plan->fields[f];
    const graft_tensor_desc **items = arena_take(&a->memory, (field->count + 1) * sizeof *items);
    if (!items) return false;
    for (uint32_t i = 0; i < field->count; i++) {
      const dsp_operand *o = &plan->operands[field->first + i];
      items[i] = describe_operand(a, plan, o);
      if (!items[i] && o->action != DSP_ABSENT) return false;
    }
    const graft_tensor_list list = {items, field->count};
    memcpy(a->packed + field->offset, field->is_list ? (const void *)&list : items,
           field->is_list ? sizeof list : sizeof *items);
  }
  return true;
}

/* False: no host memory. ahead_end follows in any case. */
static bool ahead_begin(ahead *a, dsp_plan *plan) {
  const op_schema *schema = plan->slot_schema;
  memset(a, 0, sizeof *a);
  a->frame = (dsp_frame){.plan = plan, .device = plan->device, .stream = plan->device->default_stream};
  const dsp_memo *memo = atomic_load_explicit(&plan->memo, memory_order_acquire);
  a->exec = (graft_exec){.struct_size = sizeof a->exec,
                         .device = plan->device->handle,
                         .flags = dsp_exec_flags(),
                         .host_context = &a->frame,
                         .memo = memo ? memo->value : NULL};
  a->packed = arena_take(&a->memory, schema->args_size);
  if (!a->packed) return false;
  memcpy(a->packed, plan->args, schema->args_size);
  a->philox.struct_size = sizeof a->philox;
  const graft_philox *philox = &a->philox;
  if (schema->flags & OPF_RANDOM) memcpy(a->packed + schema->philox_offset, &philox, sizeof philox);
  return place_operands(a, plan);
}

static void ahead_end(ahead *a) {
  dsp_frame_end(&a->frame);
  arena_free(&a->memory);
}

graft_status dsp_query(dsp_plan *plan, graft_op_caps *caps) {
  const graft_plugin *plugin = &plan->device->backend->plugin;
  if (!plugin->op_query || plugin->abi_minor < 2) return GRAFT_OK;
  ahead a;
  graft_status status = GRAFT_OUT_OF_MEMORY;
  if (ahead_begin(&a, plan)) status = plugin->op_query(&a.exec, (const graft_args *)(const void *)a.packed, caps);
  ahead_end(&a);
  return status;
}

graft_status dsp_prepare(dsp_plan *plan) {
  const graft_plugin *plugin = &plan->device->backend->plugin;
  int route = atomic_load(&plan->route);
  bool slot = route == DSP_ROUTE_PLUGIN || route == DSP_ROUTE_EQUAL;
  if (!slot || !plugin->prepare || plugin->abi_minor < 2) return GRAFT_OK;
  const char *name = plan->call.schema->name;
  ahead a;
  graft_status status = err_about(GRAFT_OUT_OF_MEMORY, name, "no host memory to describe the call");
  if (ahead_begin(&a, plan)) {
    err_clear();
    status = plugin->prepare(&a.exec, (const graft_args *)(const void *)a.packed);
  }
  ahead_end(&a);
  if (status == GRAFT_UNIMPLEMENTED) return GRAFT_OK; /* the slot will say so, too, or has nothing to compile */
  return dev_status(plan->device, status, name);
}
