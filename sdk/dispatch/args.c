/* The args struct of a plan's slot: a template with everything but the tensors, and where these go. See plan.h. */
#include <string.h>

#include "dispatch/plan.h"

static uint32_t string_value(const op_arg *arg, const char *text) {
  for (uint32_t i = 0; arg->strings && arg->strings[i]; i++) {
    if (!strcmp(arg->strings[i], text)) return i + 1;
  }
  return 0;
}

static void put_optional(dsp_plan *plan, uint32_t *used, const graft_value *v, unsigned char *field) {
  const uint64_t *pointer = NULL;
  if (v->kind != GRAFT_VALUE_NONE) {
    plan->small[*used] = (uint64_t)v->as.i; /* an int, a double's bits, or 0 or 1 for a bool */
    pointer = &plan->small[(*used)++];
  }
  memcpy(field, &pointer, sizeof pointer);
}

static void put_number(dsp_plan *plan, uint32_t i, const op_arg *arg, const graft_value *v, unsigned char *field,
                       uint32_t *used) {
  uint8_t flag = (uint8_t)v->as.i;
  if (arg->flags & OPA_OPTIONAL && (arg->kind == OPK_INT || arg->kind == OPK_FLOAT || arg->kind == OPK_BOOL)) {
    put_optional(plan, used, v, field);
  } else if (arg->kind == OPK_INT || arg->kind == OPK_FLOAT) {
    memcpy(field, &v->as.i, 8);
  } else if (arg->kind == OPK_BOOL) {
    memcpy(field, &flag, 1);
  } else if (v->kind == GRAFT_VALUE_SCALAR) {
    plan->scalars[i] = v->as.scalar;
    const graft_scalar *pointer = &plan->scalars[i];
    memcpy(field, &pointer, sizeof pointer);
  }
}

static void put_list(dsp_plan *plan, const graft_value *v, unsigned char *field) {
  graft_int_list list = {NULL, 0}; /* all number lists are laid out alike */
  if (v->kind == GRAFT_VALUE_SCALARS) {
    list = (graft_int_list){(const int64_t *)(const void *)v->as.scalars, v->count};
  } else if (v->kind != GRAFT_VALUE_NONE) {
    list = (graft_int_list){v->as.ints ? v->as.ints : (const int64_t *)(const void *)plan->args, v->count};
  }
  memcpy(field, &list, sizeof list);
}

static void put_argument(dsp_plan *plan, uint32_t i, const op_arg *arg, const graft_value *v, uint32_t *used) {
  unsigned char *field = plan->args + arg->offset;
  switch (arg->kind) {
    case OPK_INT:
    case OPK_FLOAT:
    case OPK_BOOL:
    case OPK_SCALAR: put_number(plan, i, arg, v, field, used); return;
    case OPK_INTS:
    case OPK_FLOATS:
    case OPK_SCALARS: put_list(plan, v, field); return;
    case OPK_MASK:
      if (v->kind == GRAFT_VALUE_MASK) memcpy(field, v->as.mask, arg->bytes < v->count ? arg->bytes : v->count);
      return;
    case OPK_STR: {
      uint32_t value = v->kind == GRAFT_VALUE_STR ? string_value(arg, v->as.str) : 0;
      memcpy(field, &value, sizeof value);
      return;
    }
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

bool dsp_make_args(dsp_plan *plan, const op_schema *schema, const graft_value *values) {
  plan->slot_schema = schema;
  plan->args = arena_take(&plan->memory, schema->args_size);
  plan->scalars = arena_take(&plan->memory, schema->nargs * sizeof *plan->scalars);
  plan->small = arena_take(&plan->memory, schema->nargs * sizeof *plan->small);
  plan->fields = arena_take(&plan->memory, (schema->nargs + schema->nrets) * sizeof *plan->fields);
  if (!plan->args || !plan->scalars || !plan->small || !plan->fields) return false;
  graft_args head = {schema->args_size, schema->id, 0};
  memcpy(plan->args, &head, sizeof head);
  uint32_t used = 0;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    if (!(schema->args[i].flags & OPA_DROPPED)) put_argument(plan, i, &schema->args[i], &values[i], &used);
  }
  place_fields(plan, schema, values);
  return true;
}
