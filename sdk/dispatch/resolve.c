/* Making a plan: what each operand becomes for the slot at hand. See plan.h. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/state.h"

/* Everything resolve works on; the plan owns what it allocates. */
typedef struct resolver {
  dsp_plan *plan;
  op_call *call;
  graft_tensor *const *outs;
  graft_op_caps caps;
  bool no_memory; /* of the host, to bring the call into the form of a slot: no reason to go another way */
} resolver;

/* --- operands --- */

static bool has_zero_stride(const dsp_operand *o) {
  for (int32_t i = 0; i < o->ndim; i++) {
    if (o->view_strides[i] == 0 && o->view_sizes[i] > 1) return true;
  }
  return false;
}

static void set_view(dsp_operand *o, int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  o->ndim = ndim;
  if (!ndim) return;
  memcpy(o->view_sizes, sizes, (size_t)ndim * sizeof *sizes);
  memcpy(o->view_strides, strides, (size_t)ndim * sizeof *strides);
}

/* The view of a broadcast operand in the output's sizes. */
static void set_broadcast_view(dsp_operand *o, const graft_tensor *t, const graft_meta *out) {
  int64_t strides[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < out->ndim; i++) {
    int32_t own = i - (out->ndim - t->ndim);
    strides[i] = own < 0 || (t->sizes[own] == 1 && out->sizes[i] != 1) ? 0 : t->strides[own];
  }
  set_view(o, out->ndim, out->sizes, strides);
}

static void add_input(resolver *r, uint32_t arg, int32_t item, const graft_value *value, graft_tensor *t) {
  op_call *call = r->call;
  dsp_operand *o = &r->plan->operands[r->plan->noperands++];
  *o = (dsp_operand){.arg = (int16_t)arg, .item = item};
  char role = op_role(call->schema, call->def, arg);
  bool converts = (role == 'b' || role == 'v') && call->compute;
  bool foreign = t && t->device != call->device; /* a rank-0 tensor in host memory: a number to this op */
  o->mutated = op_call_writes(call, arg);
  if (value->kind == GRAFT_VALUE_SCALAR || foreign) {
    o->action = DSP_HOST_VALUE;
    o->dtype = foreign ? t->dtype : value->as.scalar.dtype;
    return;
  }
  if (!t) {
    o->action = DSP_ABSENT;
    return;
  }
  o->action = DSP_DIRECT;
  o->dtype = converts ? call->compute : t->dtype;
  if (role == 'i' && t->dtype == GRAFT_I32 && !(r->caps.flags & GRAFT_CAP_INDEX_I32)) o->dtype = GRAFT_I64;
  if (role == 'b' || role == 'c') {
    const bool each = item >= 0 && call->schema->rets[OUT].kind == OPK_TENSORS;
    set_broadcast_view(o, t, each ? &r->plan->out_metas[item] : &call->out[OUT]);
  } else {
    set_view(o, t->ndim, t->sizes, t->strides);
  }
}

static void add_output(resolver *r, uint32_t ret, uint32_t flat) {
  dsp_operand *o = &r->plan->operands[r->plan->noperands++];
  *o = (dsp_operand){.arg = (int16_t)ret, .item = (int32_t)flat, .is_output = true};
  const graft_meta *meta = &r->plan->out_metas[flat];
  o->dtype = meta->dtype;
  if (!r->plan->out_wanted[flat]) {
    o->action = DSP_ABSENT;
    return;
  }
  if (r->call->schema->rets[ret].flags & OPR_DYNAMIC) {
    o->action = DSP_DYNAMIC;
    return;
  }
  const graft_tensor *given = r->outs[flat];
  o->action = DSP_DIRECT;
  set_view(o, meta->ndim, meta->sizes, given ? given->strides : meta->strides);
}

static void add_operands(resolver *r) {
  const op_schema *schema = r->call->schema;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    const graft_value *value = &r->call->args[i];
    if (schema->args[i].kind == OPK_TENSOR) {
      add_input(r, i, -1, value, op_tensor(r->call, (int)i));
    } else if (schema->args[i].kind == OPK_TENSORS) {
      for (uint32_t j = 0; j < value->count; j++) {
        graft_value item = fx_tensor(value->as.tensors[j]);
        add_input(r, i, (int32_t)j, &item, value->as.tensors[j]);
      }
    }
  }
  uint32_t flat = 0;
  for (uint32_t ret = 0; ret < schema->nrets; ret++) {
    uint32_t count = schema->rets[ret].kind == OPK_TENSORS ? r->call->args[r->call->list_like[ret]].count : 1;
    for (uint32_t i = 0; i < count; i++) add_output(r, ret, flat++);
  }
}

/* --- geometry ---
 * An elementwise op does not care which dim is which. All operands are permuted alike so that the output runs in
 * memory order, and dims that lie one behind the other in every operand become one: channels_last and any other dense
 * layout arrive as one contiguous dim, and a kernel sees the fewest dims there can be. */

static bool takes_part(const dsp_operand *o) {
  return o->action == DSP_DIRECT;
}

static void permute_operand(dsp_operand *o, const int32_t *order, int32_t ndim) {
  int64_t sizes[GRAFT_MAX_DIMS], strides[GRAFT_MAX_DIMS];
  for (int32_t i = 0; i < ndim; i++) {
    sizes[i] = o->view_sizes[order[i]];
    strides[i] = o->view_strides[order[i]];
  }
  set_view(o, ndim, sizes, strides);
}

static bool can_merge(const dsp_plan *plan, int32_t outer, int32_t inner) {
  for (uint32_t i = 0; i < plan->noperands; i++) {
    const dsp_operand *o = &plan->operands[i];
    if (takes_part(o) && o->view_strides[outer] != o->view_strides[inner] * o->view_sizes[inner]) return false;
  }
  return true;
}

static void merge_dims(dsp_plan *plan, int32_t ndim) {
  int32_t last = 0; /* the dim that the next one may join */
  for (int32_t i = 1; i < ndim; i++) {
    bool merge = can_merge(plan, last, i);
    if (!merge) last++;
    for (uint32_t j = 0; j < plan->noperands; j++) {
      dsp_operand *o = &plan->operands[j];
      if (!takes_part(o)) continue;
      o->view_sizes[last] = (merge ? o->view_sizes[last] : 1) * o->view_sizes[i];
      o->view_strides[last] = o->view_strides[i];
    }
  }
  for (uint32_t j = 0; j < plan->noperands; j++) {
    if (takes_part(&plan->operands[j])) plan->operands[j].ndim = last + 1;
  }
}

static void normalise_elementwise(dsp_plan *plan) {
  const dsp_operand *lead = NULL;
  for (uint32_t i = 0; i < plan->noperands; i++) {
    if (plan->operands[i].is_output && takes_part(&plan->operands[i])) lead = &plan->operands[i];
  }
  if (!lead || !lead->ndim) return;
  int32_t order[GRAFT_MAX_DIMS], kept = 0;
  for (int32_t i = 0; i < lead->ndim; i++) {
    if (lead->view_sizes[i] == 1) continue;
    int32_t at = kept++;
    for (; at > 0 && lead->view_strides[order[at - 1]] < lead->view_strides[i]; at--) order[at] = order[at - 1];
    order[at] = i;
  }
  if (!kept) order[kept++] = 0; /* one element: one dim of size 1 */
  for (uint32_t i = 0; i < plan->noperands; i++) {
    if (takes_part(&plan->operands[i])) permute_operand(&plan->operands[i], order, kept);
  }
  merge_dims(plan, kept);
}

/* --- capabilities --- */

static bool dtype_offered(uint64_t set, graft_dtype dtype) {
  return !set || (set & dt_bit(dtype));
}

static bool is_aligned(const resolver *r, const graft_tensor *t) {
  if (!t->storage) return true;
  return tns_first_byte(t) % r->call->device->alignment == 0;
}

/* The tensor behind an operand; NULL: an output not yet made, or a number. */
static const graft_tensor *source_of(const resolver *r, const dsp_operand *o) {
  if (o->is_output) return r->outs[o->item];
  const graft_value *value = &r->call->args[o->arg];
  if (value->kind == GRAFT_VALUE_SCALAR) return NULL;
  return o->item >= 0 ? value->as.tensors[o->item] : value->as.tensor;
}

/* An item of a list that has one element in memory, in the shape of the item that it stands beside. */
static bool is_spread_item(const resolver *r, const dsp_operand *o) {
  bool spread = !o->is_output && o->item >= 0 && op_role(r->call->schema, r->call->def, (uint32_t)o->arg) == 'c';
  for (int32_t i = 0; i < o->ndim && spread; i++) spread = o->view_sizes[i] == 1 || o->view_strides[i] == 0;
  return spread;
}

/* One that this host has broadcast: what has that shape as the caller gives it can be copied for a slot. */
static bool is_broadcast_item(const resolver *r, const dsp_operand *o) {
  return is_spread_item(r, o) && source_of(r, o)->numel != tns_numel(o->ndim, o->view_sizes);
}

/* Slots take a list whose items have one element each; where some have more, those that can be copied are. */
static bool is_of_spread_items(const resolver *r, const dsp_operand *o) {
  bool spread = is_spread_item(r, o);
  for (uint32_t i = 0; i < r->plan->noperands && spread; i++)
    spread = r->plan->operands[i].arg != o->arg || is_spread_item(r, &r->plan->operands[i]);
  return spread;
}

static bool layout_served(const resolver *r, const dsp_operand *o) {
  if (r->caps.flags & GRAFT_CAP_EXPANDED_ITEMS && (is_broadcast_item(r, o) || is_of_spread_items(r, o))) return true;
  if (has_zero_stride(o))
    return !o->is_output && (r->caps.flags & GRAFT_CAP_EXPANDED) && (r->caps.flags & GRAFT_CAP_STRIDED);
  return tns_is_contiguous(o->ndim, o->view_sizes, o->view_strides) || (r->caps.flags & GRAFT_CAP_STRIDED);
}

/* Whether the operand shares memory with a written one in a way the slot does not take. */
static bool clashes(const resolver *r, const dsp_operand *o, const graft_tensor *t) {
  if (!o->is_output || !t) return false;
  for (uint32_t i = 0; i < r->plan->noperands; i++) {
    const dsp_operand *input = &r->plan->operands[i];
    if (input->is_output || input->action == DSP_ABSENT || input->action == DSP_HOST_VALUE) continue;
    const graft_tensor *other = source_of(r, input);
    if (!other || other->storage != t->storage) continue;
    tns_overlap overlap = tns_overlap_of(t, other);
    if (overlap == TNS_OVERLAP_NONE) continue;
    if (overlap != TNS_OVERLAP_FULL || !(r->caps.flags & GRAFT_CAP_IN_PLACE) || t->dtype != other->dtype) return true;
  }
  return false;
}

/* A slot sees dtypes and strides, not which inputs had dimensions before they were expanded: where no input that keeps
 * a stride has the promoted dtype, a floating one that lost all of its strides could be of rank 0 or not. */
static bool mix_is_unambiguous(const resolver *r) {
  bool clear = true;
  for (uint32_t i = 0; i < r->plan->noperands; i++) {
    const dsp_operand *o = &r->plan->operands[i];
    const graft_tensor *t = o->is_output || o->action == DSP_HOST_VALUE ? NULL : source_of(r, o);
    if (!t) continue;
    bool expanded = o->ndim > 0;
    for (int32_t d = 0; d < o->ndim; d++) expanded = expanded && o->view_strides[d] == 0;
    if (t->dtype == r->call->compute && !expanded) return true;
    clear = clear && dt_is_integral(t->dtype, true);
  }
  return clear;
}

static bool needs_temporary(const resolver *r, const dsp_operand *o) {
  const graft_tensor *t = source_of(r, o);
  if (!t) return !layout_served(r, o); /* a new output in strides the slot does not write */
  bool index = !o->is_output && op_role(r->call->schema, r->call->def, (uint32_t)o->arg) == 'i';
  bool mixed = (r->caps.flags & GRAFT_CAP_MIXED_DTYPE) && r->plan->out_metas[0].dtype == r->call->compute;
  if (t->dtype != o->dtype && (o->is_output || index || !mixed || !mix_is_unambiguous(r))) return true;
  /* Slots widen what is mixed; a number of rank 0 may be of a dtype that holds more than the one computed in. Half
   * types are computed in f32, which has it unrounded. */
  const graft_dtype compute = r->call->compute;
  if (t->dtype != o->dtype && !dt_is_half(compute) && dt_promote(t->dtype, compute) != compute) return true;
  if (!layout_served(r, o) || clashes(r, o, t)) return true;
  /* A copy's caller honours the bits itself. */
  if ((t->flags & (TNS_CONJ | TNS_NEG)) && !(r->call->def->flags & OP_COPY)) return true;
  return !is_aligned(r, t) && !(r->caps.flags & GRAFT_CAP_UNALIGNED);
}

static void fill_contiguous(dsp_operand *o) {
  memcpy(o->sizes, o->view_sizes, sizeof o->sizes);
  tns_contiguous_strides(o->ndim, o->sizes, o->strides);
}

/* A number where the slot wants a tensor: a rank-0 tensor in the compute dtype, expanded where that is served. */
static void materialise_number(const resolver *r, dsp_operand *o) {
  o->action = DSP_TEMPORARY;
  if (r->call->compute) o->dtype = r->call->compute;
  const graft_meta *out = &r->plan->out_metas[0];
  int64_t zeros[GRAFT_MAX_DIMS] = {0};
  if (r->call->def->flags & OP_ELEMENTWISE) set_view(o, out->ndim, out->sizes, zeros);
}

/* An integer tensor in host memory, of another integer dtype than is computed in: its value is not known here. */
static bool may_wrap(const resolver *r, const dsp_operand *o) {
  const graft_dtype compute = r->call->compute;
  return compute && dt_is_integral(compute, false) && r->call->args[o->arg].kind == GRAFT_VALUE_TENSOR &&
         dt_is_integral(o->dtype, false) && o->dtype != compute &&
         op_role(r->call->schema, r->call->def, (uint32_t)o->arg) == 'b';
}

/* Sets of dtypes speak of values; masks and indices come whatever they say. */
static bool takes_dtype(const resolver *r, const dsp_operand *o) {
  const op_schema *schema = r->call->schema;
  if (o->is_output) return schema->rets[o->arg].flags & OPR_NO_VALUE || dtype_offered(r->caps.output_dtypes, o->dtype);
  char role = op_role(schema, r->call->def, (uint32_t)o->arg);
  return (role != 'b' && role != 'v') || dtype_offered(r->caps.input_dtypes, o->dtype);
}

static bool settle_operands(resolver *r) {
  bool elementwise = r->call->def->flags & OP_ELEMENTWISE;
  for (uint32_t i = 0; i < r->plan->noperands; i++) {
    dsp_operand *o = &r->plan->operands[i];
    if (o->action != DSP_HOST_VALUE) continue;
    if (!(r->caps.flags & GRAFT_CAP_HOST_VALUE) || may_wrap(r, o)) materialise_number(r, o);
  }
  if (elementwise) normalise_elementwise(r->plan);
  r->plan->checks_indices = (r->caps.flags & GRAFT_CAP_HOST_CHECKS_INDICES) && op_schema_has_indices(r->call->schema);
  r->plan->simple = !r->plan->checks_indices;
  for (uint32_t i = 0; i < r->plan->noperands; i++) {
    dsp_operand *o = &r->plan->operands[i];
    if (o->action == DSP_DYNAMIC && (o->item >= DSP_MAX_DYNAMIC || r->outs[o->item])) return false;
    if (o->action == DSP_HOST_VALUE || o->action == DSP_ABSENT || o->action == DSP_DYNAMIC) continue;
    if (!takes_dtype(r, o)) return false;
    if (is_broadcast_item(r, o) && !(r->caps.flags & GRAFT_CAP_EXPANDED_ITEMS)) return false;
    if (r->caps.max_ndim && (uint32_t)o->ndim > r->caps.max_ndim) return false;
    if (o->action == DSP_DIRECT && needs_temporary(r, o)) {
      /* Making a temporary is itself a copy: a copy goes as it is or through host memory. */
      if (r->call->def->flags & OP_COPY) return false;
      o->action = DSP_TEMPORARY;
    }
    if (o->action == DSP_DIRECT) {
      memcpy(o->sizes, o->view_sizes, sizeof o->sizes);
      memcpy(o->strides, o->view_strides, sizeof o->strides);
      if (!o->is_output) o->dtype = source_of(r, o)->dtype;
    } else {
      fill_contiguous(o);
      r->plan->simple = false;
    }
  }
  return true;
}

/* --- ways --- */

/* Whether all beyond what the plugin reads of the args is as it was before there was such an argument. */
static bool args_known(const resolver *r) {
  const dsp_plan *plan = r->plan;
  uint32_t known = r->caps.args_size_known;
  if (!known) return true;
  for (uint32_t i = known; i < plan->slot_schema->args_size; i++) {
    if (plan->args[i]) return false;
  }
  for (uint32_t f = 0; f < plan->nfields; f++) {
    const dsp_field *field = &plan->fields[f];
    if (field->offset >= known && (field->is_list || plan->operands[field->first].action != DSP_ABSENT)) return false;
  }
  return true;
}

/* Brings the call into the form that the capabilities ask for. */
static bool fill_slot(resolver *r, const op_schema *schema, const graft_value *values) {
  r->plan->noperands = 0;
  add_operands(r);
  if (!settle_operands(r)) return false;
  if (!dsp_make_args(r->plan, schema, values)) r->no_memory = true;
  return !r->no_memory && args_known(r);
}

/* Tries a slot for the call: true when every operand can be brought to what it takes. */
static bool try_slot(resolver *r, const op_schema *schema, const graft_value *values) {
  dsp_plan *plan = r->plan;
  if (!dsp_caps(r->call->device, schema, &plan->slot, &r->caps)) return false;
  graft_exec_flags must = dsp_exec_flags() & 0xffff;
  bool deterministic = (must & GRAFT_EXEC_DETERMINISTIC) && (r->caps.flags & GRAFT_CAP_DETERMINISTIC);
  if (must & ~r->caps.exec_flags_known & ~(deterministic ? (uint32_t)GRAFT_EXEC_DETERMINISTIC : 0u)) return false;
  if (!fill_slot(r, schema, values)) return false;
  graft_op_caps said = r->caps;
  const graft_status status = dsp_query(plan, &said);
  r->no_memory |= status == GRAFT_OUT_OF_MEMORY;
  if (status) return false;
  if (memcmp(&said, &r->caps, sizeof said) == 0) return true;
  r->caps = said; /* the plugin takes this call in another form than others of the op */
  return fill_slot(r, schema, values);
}

static bool try_prims(resolver *r) {
  graft_value values[OP_MAX_ARGS];
  for (uint32_t nth = 0;; nth++) {
    const op_schema *prim = dsp_equal_prim(r->call->schema, nth);
    if (!prim) return false;
    if (dsp_to_prim(r->call, prim, values) && try_slot(r, prim, values)) return true;
  }
}

static dsp_route other_ways(const op_call *call, dsp_route after) {
  if (call->def->flags & OP_COPY) return DSP_ROUTE_NONE;
  bool half = dt_is_half(call->compute) && !(call->def->flags & OP_NO_WIDEN);
  bool may = after < DSP_ROUTE_DECOMPOSITION && !call->no_decompose;
  /* A half type that is not widened here may be so in the parts. */
  if (half || !dt_is_half(call->compute)) may &= !dsp_lacks_dtype(call->device, half ? GRAFT_F32 : call->compute);
  if (may && !call->device->is_reference) {
    if (call->def->decompose || half) return DSP_ROUTE_DECOMPOSITION;
  }
  if (may && call->def->decompose) return DSP_ROUTE_DECOMPOSITION;
  if (after < DSP_ROUTE_REFERENCE && !call->device->is_reference && (call->def->reference || call->def->decompose)) {
    return DSP_ROUTE_REFERENCE;
  }
  return DSP_ROUTE_NONE;
}

static bool has_forced(resolver *r, dsp_route way) {
  switch (way) {
    case DSP_ROUTE_EQUAL: return !r->call->decompose_only && !r->plan->in_order && try_prims(r);
    case DSP_ROUTE_DECOMPOSITION: return r->call->def->decompose && other_ways(r->call, DSP_ROUTE_EQUAL) == way;
    case DSP_ROUTE_REFERENCE: return other_ways(r->call, DSP_ROUTE_DECOMPOSITION) == way;
    default: return false;
  }
}

static dsp_route choose(resolver *r) {
  const dsp_forced *f = &dsp_forcing;
  bool forced = f->way != DSP_ROUTE_NONE && f->op_id == r->call->schema->id && f->device == r->call->device;
  if (forced && has_forced(r, f->way)) return f->way;
  if (!r->call->decompose_only && !r->plan->in_order) {
    if (try_slot(r, r->call->schema, r->call->args)) return DSP_ROUTE_PLUGIN;
    if (try_prims(r)) return DSP_ROUTE_EQUAL;
  }
  return other_ways(r->call, DSP_ROUTE_NONE);
}

void dsp_next_route(dsp_plan *plan, dsp_route tried) {
  int now = (int)tried;
  dsp_route next = other_ways(&plan->call, tried < DSP_ROUTE_DECOMPOSITION ? DSP_ROUTE_EQUAL : tried);
  atomic_compare_exchange_strong(&plan->route, &now, (int)next);
}

/* Whether a part of a decomposition would be computed in a dtype that the device lacks: by a slot that does not list
 * it, or away from the device. What decomposes in turn is judged by its own parts. */
static bool is_lacking(const resolver *r, dsp_route route) {
  graft_dtype dtype = r->call->compute ? r->call->compute : r->plan->nouts ? r->plan->out_metas[0].dtype : 0;
  bool listed = r->caps.input_dtypes | r->caps.output_dtypes;
  bool here = route == DSP_ROUTE_DECOMPOSITION || route == DSP_ROUTE_HOST;
  if (route == DSP_ROUTE_PLUGIN || route == DSP_ROUTE_EQUAL) here = listed;
  return !here && dsp_lacks_dtype(r->call->device, dtype);
}

/* Lists and strings live in the call's arena and in the caller's memory: the plan keeps copies. */
static bool own_lists(dsp_plan *plan) {
  op_call *call = &plan->call;
  call->lists = NULL;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    graft_value *v = &call->args[i];
    size_t bytes = op_value_bytes(v);
    if (bytes && !(v->as.str = arena_copy(&plan->memory, v->as.str, bytes))) return false;
  }
  return true;
}

static graft_status check_outs(const op_call *call, const dsp_plan *plan, graft_tensor *const *outs) {
  for (uint32_t i = 0; i < plan->nouts; i++) {
    const graft_tensor *out = outs[i];
    const graft_meta *meta = &plan->out_metas[i];
    if (!out || !plan->out_wanted[i]) continue;
    if (out->device != call->device)
      return op_error(call, "the given output %u is on %s; expected %s", i, graft_device_text(out->device),
                      graft_device_text(call->device));
    if (call->dynamic) return op_error(call, "an output whose size depends on data can't be given");
    if (out->ndim != meta->ndim || memcmp(out->sizes, meta->sizes, (size_t)meta->ndim * 8)) {
      char text[160];
      return op_error(call, "the given output %u is %s; expected the result's shape, of rank %d with %lld elements", i,
                      tns_describe(out, text, sizeof text), meta->ndim, (long long)tns_numel(meta->ndim, meta->sizes));
    }
    if ((call->def->flags & OP_EXACT_OUT) && out->dtype != meta->dtype &&
        !(meta->dtype == GRAFT_BOOL && out->dtype == GRAFT_U8)) {
      return op_error(call, "the given output is %s; expected %s", graft_dtype_name(out->dtype),
                      graft_dtype_name(meta->dtype));
    }
    if (dt_category_of(meta->dtype) > dt_category_of(out->dtype)) {
      return op_error(call, "the result is %s and can't be written to a given output of %s",
                      graft_dtype_name(meta->dtype), graft_dtype_name(out->dtype));
    }
    if (tns_overlaps_itself(out))
      return op_error(call, "elements of the given output %u share memory; clone() it first", i);
  }
  return GRAFT_OK;
}

/* An op that only writes into arguments has something to do where these have elements. */
static bool writes_arguments(const op_call *call) {
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    const graft_tensor *t = op_call_writes(call, i) ? op_tensor(call, (int)i) : NULL;
    if (t && t->numel) return true;
  }
  return false;
}

static bool all_empty(const dsp_plan *plan) {
  if (!plan->nouts && writes_arguments(&plan->call)) return false;
  for (uint32_t i = 0; i < plan->nouts; i++) {
    if (plan->out_wanted[i] && tns_numel(plan->out_metas[i].ndim, plan->out_metas[i].sizes) != 0) return false;
  }
  return !plan->call.dynamic;
}

/* An input without elements whose op still has a result (the sum of nothing): kernels of plugins are not asked. Where
 * other inputs have elements, these stay on the device if the op is made of others. */
static bool other_way_for_empty(const resolver *r, dsp_route *route) {
  bool empty = false, full = false;
  for (uint32_t i = 0; i < r->plan->noperands; i++) {
    const dsp_operand *o = &r->plan->operands[i];
    if (o->is_output || o->action == DSP_ABSENT || o->action == DSP_HOST_VALUE) continue;
    const graft_tensor *t = source_of(r, o);
    empty |= t && t->numel == 0;
    full |= t && t->numel != 0;
  }
  const op_schema *schema = r->call->schema;
  full |= schema->nargs && schema->args[0].kind == OPK_TENSORS; /* lists go item by item */
  bool decompose = full && r->call->def->decompose && !r->call->no_decompose;
  *route = decompose ? DSP_ROUTE_DECOMPOSITION : DSP_ROUTE_REFERENCE;
  return empty;
}

static bool partial_overlap(const op_call *call, const dsp_plan *plan, graft_tensor *const *outs, uint32_t *which) {
  if (!(call->def->flags & OP_ELEMENTWISE)) return false;
  for (uint32_t i = 0; i < plan->nouts; i++) {
    for (uint32_t a = 0; outs[i] && a < call->schema->nargs; a++) {
      const graft_tensor *t = op_tensor(call, (int)a);
      if (!t || t->storage != outs[i]->storage || tns_overlap_of(outs[i], t) != TNS_OVERLAP_PARTIAL) continue;
      *which = a;
      return true;
    }
  }
  return false;
}

static dsp_plan *plan_new(const op_call *call) {
  dsp_plan *plan = calloc(1, sizeof *plan);
  if (!plan) return NULL;
  atomic_init(&plan->refs, 1);
  plan->device = call->device;
  plan->call = *call;
  plan->nouts = op_flat_count(call);
  uint32_t inputs = 0;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    if (call->schema->args[i].kind == OPK_TENSOR) inputs++;
    if (call->schema->args[i].kind == OPK_TENSORS) inputs += call->args[i].count;
  }
  plan->operands = arena_take(&plan->memory, (inputs + plan->nouts) * sizeof *plan->operands);
  plan->out_metas = arena_take(&plan->memory, plan->nouts * sizeof *plan->out_metas);
  plan->out_wanted = arena_take(&plan->memory, plan->nouts * sizeof *plan->out_wanted);
  if (plan->operands && plan->out_metas && plan->out_wanted && own_lists(plan)) return plan;
  dsp_plan_free(plan);
  return NULL;
}

/* Outputs that share memory with each other: lists then go item by item, as PyTorch does, and no slot is asked. */
static graft_status check_written(const op_call *call, dsp_plan *plan, graft_tensor *const *outs) {
  tns_overlap overlap = dsp_written_overlap(call->schema, call->args, call->schema->nargs, outs, plan->nouts);
  plan->in_order = overlap != TNS_OVERLAP_NONE && (call->def->flags & OP_ITEM_BY_ITEM);
  if (plan->in_order || overlap != TNS_OVERLAP_PARTIAL) return GRAFT_OK;
  return op_error(call,
                  "some elements of two of the written tensors are one memory location; clone() one of them first");
}

graft_status dsp_resolve(op_call *call, graft_tensor *const *outs, uint32_t nouts, dsp_plan **result) {
  const op_schema *schema = call->schema;
  dsp_plan *plan = plan_new(call);
  if (!plan) return err_about(GRAFT_OUT_OF_MEMORY, schema->name, "no host memory for the plan of a call");
  uint32_t which;
  graft_status status = GRAFT_OK;
  if (plan->nouts > nouts) {
    status = err_set(GRAFT_INVALID_ARGUMENT, "%s has %u outputs here, room for %u was given", call->schema->name,
                     plan->nouts, nouts);
  }
  if (!status) status = op_flat_outputs(call, plan->out_metas, plan->out_wanted, plan->nouts);
  if (!status) status = check_outs(call, plan, outs);
  if (!status) status = check_written(call, plan, outs);
  if (!status && partial_overlap(call, plan, outs, &which)) {
    status = op_error(call, "some elements of %s and of the written tensor are one memory location; clone() it first",
                      call->schema->args[which].name);
  }
  if (status) {
    dsp_plan_free(plan);
    return status;
  }
  resolver r = {.plan = plan, .call = &plan->call, .outs = outs};
  plan->empty = all_empty(plan);
  dsp_route route = plan->empty ? DSP_ROUTE_HOST : choose(&r);
  if (r.no_memory) {
    dsp_plan_free(plan);
    return err_about(GRAFT_OUT_OF_MEMORY, schema->name, "no host memory for the plan of a call");
  }
  bool slot = (route == DSP_ROUTE_PLUGIN || route == DSP_ROUTE_EQUAL) && !call->device->is_reference;
  dsp_route other;
  if (slot && !(r.caps.flags & GRAFT_CAP_EMPTY) && other_way_for_empty(&r, &other)) route = other;
  atomic_init(&plan->route, (int)route);
  plan->lacking = is_lacking(&r, route);
  *result = plan;
  return GRAFT_OK;
}
