/* What a plugin offers of an op, and which prim equals which aten op. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/custom.h"
#include "dispatch/state.h"

static op_slot slot_of(const graft_rt_backend *backend, const op_schema *schema) {
  if (schema->table == OPT_CUSTOM) return dsp_custom_slot(backend, schema);
  const void *tables[] = {[OPT_CORE] = backend->core, [OPT_PRIMS] = backend->prims, [OPT_TRAIN] = backend->train};
  const char *table = tables[schema->table];
  const op_def *def = op_def_of(schema->id);
  if (!table || schema->route != OPROUTE_SLOT) return NULL;
  if (def && def->flags & OP_SINCE_1_2 && backend->plugin.abi_minor < 2) return NULL;
  op_slot slot;
  memcpy(&slot, table + schema->slot_offset, sizeof slot);
  return slot;
}

static uint64_t late_numbers(const op_schema *schema, bool offered, const graft_op_caps *caps) {
  const op_def *def = op_def_of(schema->id);
  uint64_t late = 0;
  if (!def || (offered && !(caps->flags & GRAFT_CAP_MEMO_IGNORES_SCALARS))) return 0;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    uint8_t kind = schema->args[i].kind;
    if (kind == OPK_FLOAT || kind == OPK_SCALAR || kind == OPK_SCALARS) late |= UINT64_C(1) << i;
  }
  return late & ~def->rule_reads;
}

static void ask(graft_rt_device *device, const op_schema *schema, dsp_op_state *state) {
  op_slot slot = slot_of(device->backend, schema);
  graft_op_caps caps = {.struct_size = sizeof caps};
  bool offered = slot != NULL;
  if (offered && device->backend->plugin.op_caps) {
    graft_status status = device->backend->plugin.op_caps(device->handle, dsp_plugin_op_id(schema), &caps);
    /* A slot without a word on its capabilities may still be tried. */
    if (status == GRAFT_UNIMPLEMENTED)
      caps = (graft_op_caps){.struct_size = sizeof caps};
    else if (status)
      offered = false;
  }
  /* Threads that ask at once get the same answer; one writes it. */
  dsp_device *all = dsp_device_of(device);
  pthread_mutex_lock(&all->lock);
  if (!atomic_load(&state->known)) {
    state->slot = slot;
    state->caps = caps;
    state->late = late_numbers(schema, offered, &caps);
    atomic_store_explicit(&state->known, offered ? 1 : 2, memory_order_release);
  }
  pthread_mutex_unlock(&all->lock);
}

/* What is known of an op on a device, asked once. */
static const dsp_op_state *state_of(graft_rt_device *device, const op_schema *schema) {
  dsp_op_state *state = &dsp_device_of(device)->ops[op_schema_place(schema)];
  if (!atomic_load_explicit(&state->known, memory_order_acquire)) ask(device, schema, state);
  return state;
}

bool dsp_caps(graft_rt_device *device, const op_schema *schema, op_slot *slot, graft_op_caps *caps) {
  const dsp_op_state *state = state_of(device, schema);
  if (atomic_load_explicit(&state->known, memory_order_acquire) != 1) return false;
  *slot = state->slot;
  *caps = state->caps;
  return true;
}

const op_schema *dsp_equal_prim(const op_schema *schema, uint32_t nth) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    if (all[i].table == OPT_PRIMS && all[i].equal && all[i].equal->op_id == schema->id && nth-- == 0) return &all[i];
  }
  return NULL;
}

bool dsp_lacks_dtype(const graft_rt_device *device, graft_dtype dtype) {
  if (device->is_reference) return false; /* whose kernels take the suite's long double, too */
  if (!device->dtypes || !dtype || dtype == GRAFT_BOOL || dtype == GRAFT_I32 || dtype == GRAFT_I64) return false;
  return !(device->dtypes & dt_bit(dtype));
}

bool dsp_offers_prim(graft_rt_device *device, const op_schema *schema) {
  op_slot slot;
  graft_op_caps caps;
  for (uint32_t nth = 0;; nth++) {
    const op_schema *prim = dsp_equal_prim(schema, nth);
    if (!prim || dsp_caps(device, prim, &slot, &caps)) return prim != NULL;
  }
}

uint64_t dsp_late_numbers(graft_rt_device *device, const op_schema *schema, const op_def *def) {
  return def && def->flags & OP_LATE_NUMBERS ? state_of(device, schema)->late : 0;
}

/* Whether a canonical argument has the value that the equality fixes. */
static bool has_constant(const graft_value *value, const graft_value *constant) {
  if (!constant || constant->kind == GRAFT_VALUE_NONE) return value->kind == GRAFT_VALUE_NONE;
  if (value->kind == GRAFT_VALUE_NONE) return true;
  if (value->kind == GRAFT_VALUE_SCALAR) {
    dt_value v = dt_scalar_value(&value->as.scalar);
    if (constant->kind == GRAFT_VALUE_SCALAR) return v.re == dt_scalar_value(&constant->as.scalar).re && v.im == 0;
    return v.im == 0 && v.re == (constant->kind == GRAFT_VALUE_FLOAT ? (long double)constant->as.f : constant->as.i);
  }
  if (value->kind != constant->kind) return false;
  if (value->kind == GRAFT_VALUE_FLOAT) return value->as.f == constant->as.f;
  if (value->kind == GRAFT_VALUE_STR) return !strcmp(value->as.str, constant->as.str);
  return value->as.i == constant->as.i;
}

bool dsp_to_prim(const op_call *call, const op_schema *prim, graft_value *args) {
  for (uint32_t i = 0; i < prim->nargs; i++) args[i] = (graft_value){0};
  const op_equal *equal = prim->equal;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    const graft_value *value = &call->args[i];
    bool mapped = i < equal->count && equal->args[i].source >= 0;
    if (mapped) {
      args[equal->args[i].source] = *value;
      continue;
    }
    const graft_value *constant = i < equal->count ? equal->args[i].constant : call->schema->args[i].fallback;
    uint8_t kind = call->schema->args[i].kind;
    if (kind == OPK_DEVICE || kind == OPK_LAYOUT || kind == OPK_FLAG || kind == OPK_GENERATOR) continue;
    if (!has_constant(value, constant)) return false;
  }
  return true;
}
