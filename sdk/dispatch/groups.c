/* Groups of calls, towards the plugin; see groups.h. */
#include "dispatch/groups.h"

#include <string.h>

/* --- a call --- */

/* One that is packed. */
typedef struct packing {
  const dsp_plan *plan;
  const graft_value *args;
  dsp_describe_fn describe;
  void *context;
  arena *memory;
} packing;

static const graft_tensor_desc *describe_number(const packing *p, const graft_scalar *scalar) {
  static const int64_t none = 0;
  graft_tensor_desc *desc = arena_take(p->memory, sizeof *desc);
  void *element = arena_take(p->memory, sizeof scalar->value);
  if (!desc || !element) return NULL;
  dsp_scalar_element(scalar, element);
  *desc = (graft_tensor_desc){
      .struct_size = sizeof *desc,
      .dl = {element, p->plan->device->dlpack_type, p->plan->device->index, 0, scalar->dtype, &none, &none, 0},
      .flags = GRAFT_TENSOR_HOST_VALUE};
  return desc;
}

static const graft_tensor_desc *describe(const packing *p, const dsp_operand *o) {
  const graft_value *value = o->is_output ? NULL : &p->args[o->arg];
  bool number = o->action == DSP_HOST_VALUE && value && value->kind == GRAFT_VALUE_SCALAR;
  return number ? describe_number(p, &value->as.scalar) : p->describe(p->context, o);
}

static bool place_field(const packing *p, const dsp_field *field, unsigned char *packed) {
  const graft_tensor_desc **items = arena_take(p->memory, (field->count + 1) * sizeof *items);
  if (!items) return false;
  for (uint32_t i = 0; i < field->count; i++) {
    const dsp_operand *o = &p->plan->operands[field->first + i];
    if (o->action == DSP_ABSENT) continue;
    items[i] = describe(p, o);
    if (!items[i]) return false;
  }
  const graft_tensor_list list = {items, field->count};
  memcpy(packed + field->offset, field->is_list ? (const void *)&list : items,
         field->is_list ? sizeof list : sizeof *items);
  return true;
}

graft_status dsp_pack_call(dsp_plan *plan, const graft_value *args, dsp_describe_fn describe_operand, void *context,
                           arena *memory, const graft_args **packed) {
  const packing p = {plan, args, describe_operand, context, memory};
  unsigned char *bytes = arena_copy(memory, plan->args, plan->slot_schema->args_size);
  bool good = bytes != NULL;
  for (uint32_t f = 0; f < plan->nfields && good; f++) good = place_field(&p, &plan->fields[f], bytes);
  if (!good) return err_about(GRAFT_OUT_OF_MEMORY, plan->call.schema->name, "no host memory to describe the call");
  dsp_fill_late(plan, args, bytes);
  *packed = (const graft_args *)(const void *)bytes;
  return GRAFT_OK;
}

/* --- the plugin's functions --- */

graft_status dsp_graph_api(graft_rt_device *device, const graft_graph_api **api, bool *draws) {
  enum { FIRST = 1, WITH_DRAWS = 2 };
  const void *found = NULL;
  void *self;
  *api = NULL;
  graft_status status = graft_device_extension(device, GRAFT_EXTENSION_GRAPH, WITH_DRAWS, &found, &self);
  *draws = !status;
  if (status == GRAFT_UNIMPLEMENTED)
    status = graft_device_extension(device, GRAFT_EXTENSION_GRAPH, FIRST, &found, &self);
  if (status == GRAFT_UNIMPLEMENTED) return GRAFT_OK;
  if (status) return status;
  const graft_graph_api *table = found;
  bool whole = table && GRAFT_HAS(table, graft_graph_api, destroy) && table->query && table->compile && table->run &&
               table->destroy;
  if (!whole) {
    return err_about(GRAFT_INTERNAL, device->text, "the plugin's table \"%s\" is not whole", GRAFT_EXTENSION_GRAPH);
  }
  *api = table;
  return GRAFT_OK;
}

/* What a plugin is called with, whose text is then told from an older one; `frame` is what it may ask for meanwhile. */
static graft_exec begin(dsp_frame *frame, graft_rt_device *device, graft_rt_stream *stream) {
  err_clear();
  *frame = (dsp_frame){.device = device, .stream = stream};
  return (graft_exec){
      .struct_size = sizeof(graft_exec), .device = device->handle, .flags = dsp_exec_flags(), .host_context = frame};
}

graft_status dsp_query_groups(graft_rt_device *device, const graft_graph_api *api, const graft_graph_nodes *graph,
                              uint32_t *groups) {
  dsp_frame frame;
  const graft_exec exec = begin(&frame, device, device->default_stream);
  graft_status status = api->query(&exec, graph, groups);
  dsp_frame_end(&frame);
  if (status == GRAFT_UNIMPLEMENTED) {
    memset(groups, 0, graph->node_count * sizeof *groups);
    return GRAFT_OK;
  }
  return dev_status(device, status, "asking which calls go together");
}

graft_status dsp_compile_group(graft_rt_device *device, const graft_graph_api *api, const graft_graph_group *group,
                               graft_graph_compiled *compiled) {
  dsp_frame frame;
  const graft_exec exec = begin(&frame, device, device->default_stream);
  *compiled = (graft_graph_compiled){.struct_size = sizeof *compiled};
  graft_status status = api->compile(&exec, group, compiled);
  dsp_frame_end(&frame);
  if (status == GRAFT_UNIMPLEMENTED) return status;
  if (!status && !compiled->executable) {
    return err_about(GRAFT_INTERNAL, device->text, "the plugin returned OK for a group of calls, and no executable");
  }
  return dev_status(device, status, "compiling a group of calls");
}

void dsp_draw(const dsp_plan *plan, graft_philox *philox) {
  *philox = (graft_philox){.struct_size = sizeof *philox};
  dev_generator_draw(&plan->device->generator, plan->call.draws, &philox->seed, &philox->offset);
}

graft_status dsp_run_group(graft_rt_stream *stream, const graft_graph_api *api, graft_executable *executable,
                           const graft_graph_run_args *args) {
  dsp_frame frame;
  graft_rt_device *device = stream->device;
  graft_exec exec = begin(&frame, device, stream);
  pthread_mutex_lock(&stream->lock);
  dev_mark(stream, 0); /* no one op */
  exec.stream = stream->handle;
  graft_status status = api->run(&exec, executable, args);
  pthread_mutex_unlock(&stream->lock);
  if (!status && frame.workspace_count && !dsp_keep_workspace) status = dsp_zone_check(&frame);
  dsp_frame_end(&frame);
  if (status == GRAFT_UNIMPLEMENTED) {
    return err_about(GRAFT_INTERNAL, device->text,
                     "the plugin compiled a group of calls, and says UNIMPLEMENTED when it is to run");
  }
  return dev_status(device, status, "running a group of calls");
}
