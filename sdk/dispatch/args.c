/* The args struct of a plan's slot: a template with everything but the tensors, and where these go. See plan.h. */
#include <string.h>

#include "dispatch/custom.h"
#include "dispatch/plan.h"

static uint32_t string_value(const op_arg *arg, const char *text) {
  for (uint32_t i = 0; arg->strings && arg->strings[i]; i++) {
    if (!strcmp(arg->strings[i], text)) return i + 1;
  }
  return 0;
}

static void put_optional(const dsp_packed *p, uint32_t *used, const graft_value *v, unsigned char *field) {
  const uint64_t *pointer = NULL;
  if (v->kind != GRAFT_VALUE_NONE) {
    p->small[*used] = (uint64_t)v->as.i; /* an int, a double's bits, or 0 or 1 for a bool */
    pointer = &p->small[(*used)++];
  }
  memcpy(field, &pointer, sizeof pointer);
}

static void put_number(const dsp_packed *p, uint32_t i, const op_arg *arg, const graft_value *v, unsigned char *field,
                       uint32_t *used) {
  uint8_t flag = (uint8_t)v->as.i;
  if (arg->flags & OPA_OPTIONAL && (arg->kind == OPK_INT || arg->kind == OPK_FLOAT || arg->kind == OPK_BOOL)) {
    put_optional(p, used, v, field);
  } else if (arg->kind == OPK_INT || arg->kind == OPK_FLOAT) {
    memcpy(field, &v->as.i, 8);
  } else if (arg->kind == OPK_BOOL) {
    memcpy(field, &flag, 1);
  } else if (v->kind == GRAFT_VALUE_SCALAR) {
    p->scalars[i] = v->as.scalar;
    const graft_scalar *pointer = &p->scalars[i];
    memcpy(field, &pointer, sizeof pointer);
  }
}

static void put_list(const dsp_packed *p, const graft_value *v, unsigned char *field) {
  graft_int_list list = {NULL, 0}; /* all number lists are laid out alike */
  if (v->kind == GRAFT_VALUE_SCALARS) {
    list = (graft_int_list){(const int64_t *)(const void *)v->as.scalars, v->count};
  } else if (v->kind != GRAFT_VALUE_NONE) {
    list = (graft_int_list){v->as.ints ? v->as.ints : (const int64_t *)(const void *)p->bytes, v->count};
  }
  memcpy(field, &list, sizeof list);
}

static void put_text(const op_arg *arg, const graft_value *v, unsigned char *field) {
  const char *text = v->kind == GRAFT_VALUE_STR ? v->as.str : NULL;
  uint32_t value = text ? string_value(arg, text) : 0;
  if (arg->strings)
    memcpy(field, &value, sizeof value);
  else
    memcpy(field, &text, sizeof text);
}

static void put_argument(const dsp_packed *p, uint32_t i, const op_arg *arg, const graft_value *v, uint32_t *used) {
  unsigned char *field = p->bytes + arg->offset;
  switch (arg->kind) {
    case OPK_INT:
    case OPK_FLOAT:
    case OPK_BOOL:
    case OPK_SCALAR: put_number(p, i, arg, v, field, used); return;
    case OPK_INTS:
    case OPK_FLOATS:
    case OPK_SCALARS: put_list(p, v, field); return;
    case OPK_MASK:
      if (v->kind == GRAFT_VALUE_MASK) memcpy(field, v->as.mask, arg->bytes < v->count ? arg->bytes : v->count);
      return;
    case OPK_STR: put_text(arg, v, field); return;
    case OPK_DTYPE: {
      graft_dtype dtype = v->kind == GRAFT_VALUE_DTYPE ? v->as.dtype : GRAFT_DTYPE_NONE;
      memcpy(field, &dtype, sizeof dtype);
      return;
    }
    default: return;
  }
}

/* The fields that hold tensors, in the order of the operands; `values` are in the slot's schema's order. */
static void place_fields(dsp_plan *plan, const op_schema *schema, const graft_value *values) {
  uint32_t operand = 0;
  plan->nfields = plan->nlist_items = 0;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    const op_arg *arg = &schema->args[i];
    bool list = arg->kind == OPK_TENSORS;
    if (arg->kind != OPK_TENSOR && !list) continue;
    uint32_t count = list ? values[i].count : 1;
    plan->fields[plan->nfields++] = (dsp_field){arg->offset, list, operand, count};
    if (list) plan->nlist_items += count;
    operand += count;
  }
  for (uint32_t r = 0; r < schema->nrets; r++) {
    bool list = schema->rets[r].kind == OPK_TENSORS;
    uint32_t count = list ? values[plan->call.list_like[r]].count : 1;
    plan->fields[plan->nfields++] = (dsp_field){schema->rets[r].offset, list, operand, count};
    if (list) plan->nlist_items += count;
    operand += count;
  }
}

bool dsp_pack_values(arena *memory, const op_schema *schema, const graft_value *values, dsp_packed *packed) {
  *packed = (dsp_packed){.bytes = arena_take(memory, schema->args_size),
                         .scalars = arena_take(memory, schema->nargs * sizeof *packed->scalars),
                         .small = arena_take(memory, schema->nargs * sizeof *packed->small)};
  if (!packed->bytes || !packed->scalars || !packed->small) return false;
  graft_args head = {schema->args_size, dsp_plugin_op_id(schema), 0};
  memcpy(packed->bytes, &head, sizeof head);
  uint32_t used = 0;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    if (!(schema->args[i].flags & OPA_DROPPED)) put_argument(packed, i, &schema->args[i], &values[i], &used);
  }
  return true;
}

bool dsp_make_args(dsp_plan *plan, const op_schema *schema, const graft_value *values) {
  dsp_packed packed;
  plan->slot_schema = schema;
  plan->fields = arena_take(&plan->memory, (schema->nargs + schema->nrets) * sizeof *plan->fields);
  if (!plan->fields || !dsp_pack_values(&plan->memory, schema, values, &packed)) return false;
  plan->args = packed.bytes;
  place_fields(plan, schema, values);
  return true;
}
