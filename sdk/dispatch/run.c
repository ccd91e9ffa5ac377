/* Running a plan: descriptors on the stack, temporaries where the slot needs them, one call of the slot. */
#include <alloca.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/capture.h"
#include "dispatch/state.h"

enum { STACK_LIMIT = 32 * 1024 };

/* One run. `values` hold numbers that a descriptor points to. */
typedef struct run {
  dsp_plan *plan;
  dsp_capture *capture; /* that the call becomes a launch of; NULL: it runs */
  const graft_value *args;
  graft_tensor **outs;
  graft_tensor_desc *descs;
  const graft_tensor_desc **items;
  graft_tensor **temporaries; /* by operand; NULL where none */
  dt_value *numbers;          /* by operand: 32 bytes each, holding one element */
  unsigned char *packed;
  bool *made; /* by flat output: made for this call, not given */
  dsp_frame frame;
  graft_output dynamic[DSP_MAX_DYNAMIC];
} run;

void dsp_fill_desc(graft_tensor_desc *desc, const graft_tensor *t, graft_dtype dtype, int32_t ndim,
                   const int64_t *sizes, const int64_t *strides) {
  const graft_storage *storage = t->storage;
  *desc = (graft_tensor_desc){
      .struct_size = sizeof *desc,
      .dl = {storage->buffer, t->device->dlpack_type, t->device->index, ndim, dtype, sizes, strides, tns_first_byte(t)},
      .storage_id = storage->id};
  if (!atomic_load_explicit(&storage->unseen, memory_order_relaxed)) {
    desc->storage_version = atomic_load_explicit(&storage->version, memory_order_relaxed);
  }
}

graft_status dsp_new_output(const dsp_plan *plan, uint32_t index, graft_tensor **out) {
  const graft_meta *meta = &plan->out_metas[index];
  return graft_tensor_empty_strided(plan->device, meta->dtype, meta->ndim, meta->sizes, meta->strides, out);
}

static graft_tensor *source(const run *r, const dsp_operand *o) {
  if (o->is_output) return r->outs[o->item];
  const graft_value *value = &r->args[o->arg];
  return o->item >= 0 ? value->as.tensors[o->item] : value->as.tensor;
}

/* --- numbers --- */

void dsp_scalar_element(const graft_scalar *scalar, void *element) {
  memcpy(element, &scalar->value, sizeof scalar->value);
  if (scalar->dtype == GRAFT_BOOL) *(uint8_t *)element = scalar->value.i != 0;
}

static dt_value number_value(const graft_value *value, graft_dtype *dtype, void *element) {
  if (value->kind == GRAFT_VALUE_SCALAR) {
    *dtype = value->as.scalar.dtype;
    dsp_scalar_element(&value->as.scalar, element);
    return dt_scalar_value(&value->as.scalar);
  }
  const graft_tensor *t = value->as.tensor;
  *dtype = t->dtype;
  const char *data = (const char *)t->storage->host_pointer + (uint64_t)t->offset * dt_bytes(t->dtype);
  memcpy(element, data, dt_bytes(t->dtype));
  dt_value number = dt_load(t->dtype, data);
  if (!(t->flags & (TNS_CONJ | TNS_NEG))) return number;
  if (t->flags & TNS_CONJ) number.im = -number.im;
  if (t->flags & TNS_NEG) number = (dt_value){-number.re, -number.im};
  dt_store(t->dtype, element, number);
  return number;
}

static void number_desc(run *r, uint32_t i) {
  static const int64_t none = 0;
  const dsp_operand *o = &r->plan->operands[i];
  graft_dtype dtype;
  number_value(&r->args[o->arg], &dtype, &r->numbers[i]);
  r->descs[i] = (graft_tensor_desc){.struct_size = sizeof *r->descs,
                                    .dl = {(graft_buffer *)(void *)&r->numbers[i], r->plan->device->dlpack_type,
                                           r->plan->device->index, 0, dtype, &none, &none, 0},
                                    .flags = GRAFT_TENSOR_HOST_VALUE};
}

/* --- temporaries --- */

static graft_status number_to_device(run *r, const dsp_operand *o, graft_tensor **out) {
  char element[32];
  graft_dtype dtype;
  dt_value value = number_value(&r->args[o->arg], &dtype, element);
  dt_store(o->dtype, element, value);
  graft_tensor *one;
  graft_status status = graft_tensor_from_host(r->plan->device, o->dtype, 0, NULL, element, &one);
  if (status || !o->ndim) {
    if (!status) *out = one;
    return status;
  }
  int64_t zeros[GRAFT_MAX_DIMS] = {0};
  graft_tensor *wide, *full = NULL;
  status = tns_view(one, o->ndim, o->view_sizes, zeros, 0, &wide);
  if (!status) {
    status = graft_tensor_empty(r->plan->device, o->dtype, o->ndim, o->sizes, &full);
    if (!status) status = graft_tensor_copy(full, wide);
    graft_tensor_release(wide);
  }
  graft_tensor_release(one);
  if (status)
    graft_tensor_release(full);
  else
    *out = full;
  return status;
}

static graft_status make_temporary(run *r, uint32_t i) {
  const dsp_operand *o = &r->plan->operands[i];
  graft_tensor *t = NULL, *view;
  bool number = !o->is_output && (r->args[o->arg].kind == GRAFT_VALUE_SCALAR ||
                                  (o->item < 0 && source(r, o)->device != r->plan->device));
  if (number) {
    graft_status status = number_to_device(r, o, &t);
    if (!status) r->temporaries[i] = t;
    return status;
  }
  graft_status status = graft_tensor_empty(r->plan->device, o->dtype, o->ndim, o->sizes, &t);
  if (status || (o->is_output && !o->mutated)) {
    r->temporaries[i] = t;
    return status;
  }
  graft_tensor *from = source(r, o);
  status = tns_view(from, o->ndim, o->view_sizes, o->view_strides, from->offset, &view);
  if (!status) {
    status = graft_tensor_copy(t, view);
    graft_tensor_release(view);
  }
  if (status)
    graft_tensor_release(t);
  else
    r->temporaries[i] = t;
  return status;
}

/* What was written to a temporary goes to where it belongs. */
static graft_status copy_back(run *r, uint32_t i) {
  const dsp_operand *o = &r->plan->operands[i];
  if (!r->temporaries[i] || !(o->is_output || o->mutated)) return GRAFT_OK;
  graft_tensor *to = source(r, o), *view;
  graft_status status = tns_view(to, o->ndim, o->view_sizes, o->view_strides, to->offset, &view);
  if (status) return status;
  status = graft_tensor_copy(view, r->temporaries[i]);
  graft_tensor_release(view);
  return status;
}

/* --- descriptors --- */

/* A value of a graph outside of its recording, a gradient formula that reads what its op did not save, or a tensor made
 * for shape inference only. */
static graft_status no_memory_behind(const run *r, const dsp_operand *o) {
  const op_schema *schema = r->plan->call.schema;
  return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "%s %s",
                   o->is_output ? schema->rets[o->arg].name : schema->args[o->arg].name,
                   tns_no_memory_text(source(r, o)));
}

static graft_status prepare_operand(run *r, uint32_t i) {
  const dsp_operand *o = &r->plan->operands[i];
  switch (o->action) {
    case DSP_ABSENT:
    case DSP_DYNAMIC: return GRAFT_OK;
    case DSP_HOST_VALUE:
      if (r->args[o->arg].kind == GRAFT_VALUE_TENSOR && tns_lacks_memory(source(r, o))) return no_memory_behind(r, o);
      number_desc(r, i);
      return GRAFT_OK;
    case DSP_DIRECT:
      if (tns_lacks_memory(source(r, o))) return no_memory_behind(r, o);
      dsp_fill_desc(&r->descs[i], source(r, o), o->dtype, o->ndim, o->sizes, o->strides);
      return GRAFT_OK;
    default: break;
  }
  if (!o->is_output && r->args[o->arg].kind == GRAFT_VALUE_TENSOR && tns_lacks_memory(source(r, o)))
    return no_memory_behind(r, o);
  graft_status status = make_temporary(r, i);
  if (status) return status;
  dsp_fill_desc(&r->descs[i], r->temporaries[i], o->dtype, o->ndim, o->sizes, o->strides);
  return GRAFT_OK;
}

static const void *pointer_of(run *r, uint32_t i) {
  const dsp_operand *o = &r->plan->operands[i];
  if (o->action == DSP_ABSENT) return NULL;
  if (o->action != DSP_DYNAMIC) return &r->descs[i];
  graft_output *output = &r->dynamic[o->item];
  *output = (graft_output){.plan = r->plan, .index = (uint32_t)o->item};
  return output;
}

static void fill_args(run *r) {
  memcpy(r->packed, r->plan->args, r->plan->slot_schema->args_size);
  uint32_t item = 0;
  for (uint32_t f = 0; f < r->plan->nfields; f++) {
    const dsp_field *field = &r->plan->fields[f];
    if (!field->is_list) {
      const void *pointer = pointer_of(r, field->first);
      memcpy(r->packed + field->offset, &pointer, sizeof pointer);
      continue;
    }
    graft_tensor_list list = {r->items + item, field->count};
    for (uint32_t i = 0; i < field->count; i++) r->items[item++] = pointer_of(r, field->first + i);
    memcpy(r->packed + field->offset, &list, sizeof list);
  }
}

void dsp_fill_late(const dsp_plan *plan, const graft_value *args, unsigned char *packed) {
  for (uint64_t left = plan->late; left; left &= left - 1) {
    uint32_t i = (uint32_t)__builtin_ctzll(left);
    const op_arg *arg = &plan->slot_schema->args[i];
    const graft_value *value = &args[i];
    unsigned char *field = packed + arg->offset;
    if (arg->kind == OPK_SCALARS) {
      const graft_scalar_list list = {value->as.scalars, value->count};
      memcpy(field, &list, sizeof list);
    } else if (arg->kind == OPK_FLOAT && !(arg->flags & OPA_OPTIONAL)) {
      memcpy(field, &value->as.f, sizeof value->as.f);
    } else {
      const void *pointer = value->kind == GRAFT_VALUE_NONE ? NULL : &value->as;
      memcpy(field, &pointer, sizeof pointer);
    }
  }
}

static graft_generator *generator_of(const run *r) {
  const op_schema *schema = r->plan->call.schema;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    if (schema->args[i].kind == OPK_GENERATOR && r->args[i].kind == GRAFT_VALUE_GENERATOR)
      return r->args[i].as.generator;
  }
  return &r->plan->device->generator;
}

static void fill_philox(run *r, graft_philox *philox) {
  const op_schema *schema = r->plan->slot_schema;
  if (!(schema->flags & OPF_RANDOM)) return;
  *philox = (graft_philox){.struct_size = sizeof *philox};
  if (dsp_philox.active) {
    philox->seed = dsp_philox.seed;
    philox->offset = dsp_philox.offset;
  } else {
    dev_generator_draw(generator_of(r), r->plan->call.draws, &philox->seed, &philox->offset);
  }
  memcpy(r->packed + schema->philox_offset, &(const graft_philox *){philox}, sizeof(void *));
}

/* --- the call --- */

_Thread_local void (*dsp_keep_workspace)(mem_block *block);

void dsp_frame_end(dsp_frame *frame) {
  for (uint32_t i = 0; i < frame->workspace_count; i++)
    (dsp_keep_workspace ? dsp_keep_workspace : mem_free)(frame->workspaces[i]);
  for (uint32_t i = 0; i < frame->loser_count; i++) {
    if (frame->losers[i].destroy) frame->losers[i].destroy(frame->losers[i].value);
  }
}

graft_status dsp_enter_slot(dsp_plan *plan, const graft_args *args, graft_exec_flags flags, graft_rt_stream *stream,
                            dsp_frame *frame) {
  frame->plan = plan;
  frame->device = plan->device;
  frame->stream = stream;
  frame->workspace_count = frame->loser_count = 0; /* its arrays are filled in as far as these say */
  const dsp_memo *memo = atomic_load_explicit(&plan->memo, memory_order_acquire);
  graft_exec exec = {.struct_size = sizeof exec,
                     .device = plan->device->handle,
                     .flags = flags,
                     .host_context = frame,
                     .memo = memo ? memo->value : NULL};
  err_clear();
  pthread_mutex_lock(&stream->lock);
  dev_mark(stream, plan->slot_schema->id);
  exec.stream = stream->handle;
  graft_status status = plan->slot(&exec, args);
  pthread_mutex_unlock(&stream->lock);
  if (!status && frame->workspace_count && !dsp_keep_workspace) status = dsp_zone_check(frame);
  dsp_frame_end(frame);
  return status;
}

static graft_status call_slot(run *r, const graft_philox *philox) {
  dsp_plan *plan = r->plan;
  graft_status status = dsp_enter_slot(plan, (const graft_args *)(const void *)r->packed, dsp_exec_flags(),
                                       graft_stream_current(plan->device), &r->frame);
  if (status == GRAFT_UNIMPLEMENTED && philox->struct_size && !dsp_philox.active) {
    /* The next way draws the same numbers. */
    dsp_philox = (dsp_philox_override){true, philox->seed, philox->offset};
    return status;
  }
  return status && status != GRAFT_UNIMPLEMENTED ? dev_status(plan->device, status, plan->call.schema->name) : status;
}

/* --- captured --- */

static graft_status no_launch(const run *r) {
  return err_about(GRAFT_OUT_OF_MEMORY, r->plan->call.schema->name, "no host memory to capture it");
}

/* Numbers of this call, where the launch finds them. */
static graft_status keep_late(run *r) {
  if (!r->plan->late) return GRAFT_OK;
  const uint32_t nargs = r->plan->slot_schema->nargs;
  graft_value *args = dsp_capture_copy(r->capture, r->args, nargs * sizeof *args);
  if (!args) return no_launch(r);
  for (uint64_t left = r->plan->late; left; left &= left - 1) {
    graft_value *value = &args[__builtin_ctzll(left)];
    if (value->kind != GRAFT_VALUE_SCALARS || !value->count) continue;
    value->as.scalars = dsp_capture_copy(r->capture, value->as.scalars, value->count * sizeof *value->as.scalars);
    if (!value->as.scalars) return no_launch(r);
  }
  dsp_fill_late(r->plan, args, r->packed);
  return GRAFT_OK;
}

static graft_status keep_philox(run *r, dsp_launch *launch) {
  const op_schema *schema = r->plan->slot_schema;
  if (!(schema->flags & OPF_RANDOM)) return GRAFT_OK;
  if (generator_of(r) != &r->plan->device->generator)
    return dsp_capture_refuse(r->capture, schema->name,
                              "it draws from another generator than its device's default one");
  graft_philox *philox = dsp_capture_take(r->capture, sizeof *philox);
  if (!philox) return no_launch(r);
  philox->struct_size = sizeof *philox;
  memcpy(r->packed + schema->philox_offset, &(const graft_philox *){philox}, sizeof(void *));
  launch->as.slot.philox = philox;
  return GRAFT_OK;
}

static graft_status see_operand(run *r, dsp_launch *launch, uint32_t i) {
  const dsp_operand *o = &r->plan->operands[i];
  if (o->action != DSP_DIRECT && o->action != DSP_TEMPORARY) return GRAFT_OK;
  const graft_tensor *t = o->action == DSP_DIRECT ? source(r, o) : r->temporaries[i];
  const dsp_place place = {.desc = &r->descs[i], .shows_version = true, .written = o->is_output || o->mutated};
  return dsp_capture_see(r->capture, launch, t->storage, place);
}

/* What the slot would be called with lies in the capture's memory. */
static graft_status capture_slot(run *r) {
  dsp_launch launch = {.kind = DSP_LAUNCH_SLOT};
  launch.as.slot.plan = r->plan;
  launch.as.slot.args = (const graft_args *)(const void *)r->packed;
  graft_status status = keep_late(r);
  if (!status) status = keep_philox(r, &launch);
  if (!status) status = dsp_capture_room(r->capture, &launch, r->plan->noperands);
  for (uint32_t i = 0; i < r->plan->noperands && !status; i++) status = see_operand(r, &launch, i);
  return status ? status : dsp_capture_add(r->capture, &launch);
}

/* --- around it --- */

/* The outputs whose shape the slot said; those of a slot that failed are dropped. */
static graft_status take_dynamic(run *r, graft_status status) {
  bool unsaid = false;
  for (uint32_t i = 0; i < r->plan->noperands; i++) {
    const dsp_operand *o = &r->plan->operands[i];
    if (o->action != DSP_DYNAMIC) continue;
    r->outs[o->item] = r->dynamic[o->item].tensor;
    r->made[o->item] = r->outs[o->item] != NULL;
    unsaid |= !r->outs[o->item];
  }
  if (status || !unsaid) return status;
  return err_set(GRAFT_INTERNAL, "%s on %s: the plugin returned OK without saying an output's shape",
                 r->plan->call.schema->name, graft_device_text(r->plan->device));
}

static void mark_written(run *r) {
  for (uint32_t i = 0; i < r->plan->nouts; i++) {
    if (r->outs[i]) tns_bump(r->outs[i]);
  }
  for (uint32_t i = 0; i < r->plan->noperands; i++) {
    const dsp_operand *o = &r->plan->operands[i];
    if (o->mutated && !o->is_output && o->action != DSP_ABSENT) tns_bump(source(r, o));
  }
}

static graft_status enter_slot(run *r) {
  dsp_fill_late(r->plan, r->args, r->packed);
  graft_philox philox = {0};
  fill_philox(r, &philox);
  return take_dynamic(r, call_slot(r, &philox));
}

static graft_status run_prepared(run *r) {
  dsp_plan *plan = r->plan;
  for (uint32_t i = 0; i < plan->noperands; i++) {
    graft_status status = prepare_operand(r, i);
    if (status) return status;
  }
  fill_args(r);
  graft_status status = r->capture ? capture_slot(r) : enter_slot(r);
  for (uint32_t i = 0; !plan->simple && !status && i < plan->noperands; i++) status = copy_back(r, i);
  if (!status) mark_written(r);
  return status;
}

/* New tensors for outputs not given, but those whose shape the slot says. */
static graft_status new_outputs(run *r) {
  for (uint32_t i = 0; i < r->plan->noperands; i++) {
    const dsp_operand *o = &r->plan->operands[i];
    if (!o->is_output || o->action == DSP_ABSENT || o->action == DSP_DYNAMIC || r->outs[o->item]) continue;
    graft_status status = dsp_new_output(r->plan, (uint32_t)o->item, &r->outs[o->item]);
    if (status) return status;
    r->made[o->item] = true;
  }
  return GRAFT_OK;
}

static void drop_outputs(run *r) {
  for (uint32_t i = 0; i < r->plan->nouts; i++) {
    if (!r->made[i]) continue;
    graft_tensor_release(r->outs[i]);
    r->outs[i] = NULL;
  }
}

graft_status dsp_run_slot(dsp_plan *plan, const graft_value *args, graft_tensor **outs) {
  dsp_capture *capture = dsp_capture_of(plan->device);
  if (capture) {
    graft_status refused = dsp_capture_admits(capture, plan);
    if (refused) return refused;
  }
  uint32_t n = plan->noperands + 1;
  size_t bytes = n * (sizeof(graft_tensor_desc) + sizeof(graft_tensor *) + sizeof(dt_value)) +
                 (plan->nlist_items + 1) * sizeof(void *) + plan->slot_schema->args_size + plan->nouts + 64;
  bool on_heap = !capture && bytes > STACK_LIMIT;
  unsigned char *memory = capture ? dsp_capture_take(capture, bytes) : on_heap ? malloc(bytes) : alloca(bytes);
  if (!memory) return err_about(GRAFT_OUT_OF_MEMORY, plan->call.schema->name, "no host memory for descriptors");
  run r; /* frame and dynamic are filled in when they are used */
  r.plan = plan;
  r.capture = capture;
  r.args = args;
  r.outs = outs;
  r.numbers = (dt_value *)(((uintptr_t)memory + 15) / 16 * 16);
  r.descs = (graft_tensor_desc *)(r.numbers + n);
  r.temporaries = (graft_tensor **)(r.descs + n);
  r.items = (const graft_tensor_desc **)(r.temporaries + n);
  r.packed = (unsigned char *)(r.items + plan->nlist_items + 1);
  r.made = (bool *)(r.packed + plan->slot_schema->args_size);
  memset(r.temporaries, 0, n * sizeof *r.temporaries);
  memset(r.made, 0, plan->nouts);
  bool grad = plan->simple ? false : graft_grad_mode_set(false);
  graft_status status = !plan->simple && plan->checks_indices ? dsp_check_indices(&plan->call, args) : GRAFT_OK;
  if (!status) status = new_outputs(&r);
  if (!status) status = run_prepared(&r);
  if (status) drop_outputs(&r);
  if (!plan->simple) {
    for (uint32_t i = 0; i < plan->noperands; i++) graft_tensor_release(r.temporaries[i]);
    graft_grad_mode_set(grad);
  }
  if (on_heap) free(memory);
  return status;
}
