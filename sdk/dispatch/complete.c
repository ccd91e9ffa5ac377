/* Completing arguments: defaults, numbers given as another kind of number, lists of one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/plan.h"

static const char *const kind_names[] = {[OPK_TENSOR] = "Tensor",
                                         [OPK_TENSORS] = "Tensor[]",
                                         [OPK_INT] = "int",
                                         [OPK_FLOAT] = "float",
                                         [OPK_BOOL] = "bool",
                                         [OPK_SCALAR] = "number",
                                         [OPK_INTS] = "int[]",
                                         [OPK_FLOATS] = "float[]",
                                         [OPK_SCALARS] = "number[]",
                                         [OPK_MASK] = "bool[]",
                                         [OPK_STR] = "str",
                                         [OPK_DTYPE] = "dtype",
                                         [OPK_GENERATOR] = "Generator",
                                         [OPK_DEVICE] = "device",
                                         [OPK_LAYOUT] = "layout",
                                         [OPK_MEMORY_FORMAT] = "memory format",
                                         [OPK_FLAG] = "bool"};

/* The one value kind of an argument kind that needs no conversion. */
static const graft_value_kind own_kind[] = {[OPK_TENSOR] = GRAFT_VALUE_TENSOR,
                                            [OPK_TENSORS] = GRAFT_VALUE_TENSORS,
                                            [OPK_INT] = GRAFT_VALUE_INT,
                                            [OPK_FLOAT] = GRAFT_VALUE_FLOAT,
                                            [OPK_BOOL] = GRAFT_VALUE_BOOL,
                                            [OPK_SCALAR] = GRAFT_VALUE_SCALAR,
                                            [OPK_INTS] = GRAFT_VALUE_INTS,
                                            [OPK_FLOATS] = GRAFT_VALUE_FLOATS,
                                            [OPK_SCALARS] = GRAFT_VALUE_SCALARS,
                                            [OPK_MASK] = GRAFT_VALUE_MASK,
                                            [OPK_STR] = GRAFT_VALUE_STR,
                                            [OPK_DTYPE] = GRAFT_VALUE_DTYPE,
                                            [OPK_GENERATOR] = GRAFT_VALUE_GENERATOR,
                                            [OPK_DEVICE] = GRAFT_VALUE_DEVICE,
                                            [OPK_MEMORY_FORMAT] = GRAFT_VALUE_MEMORY_FORMAT,
                                            [OPK_FLAG] = GRAFT_VALUE_BOOL,
                                            [OPK_LAYOUT] = GRAFT_VALUE_INT};

static bool as_scalar(const graft_value *v, graft_scalar *scalar) {
  switch (v->kind) {
    case GRAFT_VALUE_SCALAR: *scalar = v->as.scalar; return true;
    case GRAFT_VALUE_INT: *scalar = graft_scalar_int(v->as.i); return true;
    case GRAFT_VALUE_FLOAT: *scalar = graft_scalar_float(v->as.f); return true;
    case GRAFT_VALUE_BOOL: *scalar = graft_scalar_bool(v->as.i != 0); return true;
    default: return false;
  }
}

/* A list of one number, `count` times. */
static bool repeat(op_call *call, int64_t number, uint32_t count, graft_value *list) {
  int64_t *items = arena_take(call->lists, count * sizeof *items);
  for (uint32_t i = 0; items && i < count; i++) items[i] = number;
  *list = (graft_value){GRAFT_VALUE_INTS, items ? count : 0, {.ints = items}};
  return items != NULL;
}

/* Converts a number to what the argument wants; false when it can't without loss of meaning. */
static bool convert(op_call *call, const op_arg *arg, const graft_value *v, graft_value *out) {
  graft_scalar scalar;
  bool number = as_scalar(v, &scalar);
  switch (arg->kind) {
    case OPK_TENSOR:
    case OPK_SCALAR: *out = (graft_value){GRAFT_VALUE_SCALAR, 0, {.scalar = scalar}}; return number;
    case OPK_FLOAT:
      if (!number || dt_is_complex(scalar.dtype)) return false;
      *out = (graft_value){GRAFT_VALUE_FLOAT, 0, {.f = (double)dt_scalar_value(&scalar).re}};
      return true;
    case OPK_INT:
    case OPK_BOOL:
    case OPK_FLAG:
      if (!number || !dt_is_integral(scalar.dtype, true)) return false;
      *out = (graft_value){arg->kind == OPK_INT ? GRAFT_VALUE_INT : GRAFT_VALUE_BOOL, 0, {.i = scalar.value.i}};
      return true;
    case OPK_INTS: {
      if (!number || !dt_is_integral(scalar.dtype, false)) return false;
      return repeat(call, scalar.value.i, arg->bytes ? arg->bytes : 1, out);
    }
    default: return false;
  }
}

/* int[2] given as one number or a list of one means that number twice. */
static bool stretch(op_call *call, const op_arg *arg, graft_value *v) {
  if (arg->kind != OPK_INTS || arg->bytes < 2 || v->count != 1) return true;
  return repeat(call, v->as.ints[0], arg->bytes, v);
}

graft_value dsp_complete_number(const op_arg *arg, const graft_value *given) {
  graft_value value = {0};
  bool absent = !given || given->kind == GRAFT_VALUE_NONE;
  const graft_value *from = absent ? arg->fallback : given;
  if (!from) return value;
  if (from->kind == own_kind[arg->kind]) return *from;
  convert(NULL, arg, from, &value); /* which no list of ints is made in */
  return value;
}

/* One letter, as of UPLO, may come as a small one: LAPACK and PyTorch take it so. */
static bool is_small_letter_of(const char *known, const char *text) {
  return known[0] >= 'A' && known[0] <= 'Z' && !known[1] && text[0] == known[0] - 'A' + 'a' && !text[1];
}

/* The text becomes the schema's own. False: it is none of those that there are. */
static bool take_string(const op_arg *arg, graft_value *v) {
  for (const char *const *s = arg->strings; s && *s; s++) {
    if (strcmp(*s, v->as.str) != 0 && !is_small_letter_of(*s, v->as.str)) continue;
    v->as.str = *s;
    return true;
  }
  return !arg->strings;
}

static graft_status unknown_string(const op_schema *schema, const op_arg *arg, const char *text) {
  char known[256];
  size_t used = 0;
  for (const char *const *s = arg->strings; *s && used < sizeof known; s++)
    used += (size_t)snprintf(known + used, sizeof known - used, "%s'%s'", used ? ", " : "", *s);
  return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "argument %s can't be '%s'; expected one of %s", arg->name,
                   text, known);
}

static graft_status no_memory(const op_schema *schema) {
  return err_about(GRAFT_OUT_OF_MEMORY, schema->name, "no host memory for a list of numbers");
}

static graft_status check_items(const op_schema *schema, const op_arg *arg, const graft_value *v) {
  if (dsp_lacks_items(v)) {
    return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "argument %s is NULL; expected %s", arg->name,
                     kind_names[arg->kind]);
  }
  if (v->kind == GRAFT_VALUE_MASK && arg->kind == OPK_MASK && arg->bytes && v->count != arg->bytes) {
    return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "argument %s has %u items; expected bool[%u]", arg->name,
                     v->count, arg->bytes);
  }
  bool has_all = v->kind != GRAFT_VALUE_TENSORS || arg->flags & OPA_OPTIONAL_ITEMS;
  for (uint32_t i = 0; !has_all && i < v->count; i++) {
    if (v->as.tensors[i]) continue;
    return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "item %u of argument %s is NULL; expected a tensor", i,
                     arg->name);
  }
  return GRAFT_OK;
}

static bool is_absent(const graft_value *given) {
  return !given || given->kind == GRAFT_VALUE_NONE || (given->kind == GRAFT_VALUE_TENSOR && !given->as.tensor);
}

/* What an argument that was left out becomes has to be something, unless it may miss. */
static graft_status check_present(const op_schema *schema, const op_arg *arg, const graft_value *v) {
  bool may_miss = arg->flags & (OPA_OPTIONAL | OPA_DROPPED) || arg->kind == OPK_GENERATOR || arg->kind == OPK_DEVICE ||
                  arg->kind == OPK_LAYOUT || arg->kind == OPK_MEMORY_FORMAT || arg->kind == OPK_FLAG;
  if (v->kind != GRAFT_VALUE_NONE || may_miss) return GRAFT_OK;
  return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "argument %s is missing; expected %s", arg->name,
                   kind_names[arg->kind]);
}

graft_status dsp_check_count(const op_schema *schema, uint32_t nargs) {
  if (nargs <= schema->nargs) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "%s takes %u arguments, %u were given: %s", schema->name, schema->nargs, nargs,
                 schema->schema);
}

graft_status dsp_check_given(const op_schema *schema, const graft_value *args, uint32_t nargs) {
  for (uint32_t i = 0; i < schema->nargs; i++) {
    const op_arg *arg = &schema->args[i];
    const graft_value *given = i < nargs ? &args[i] : NULL, none = {0};
    graft_status status = !is_absent(given) ? check_items(schema, arg, given)
                          : arg->fallback   ? GRAFT_OK
                                            : check_present(schema, arg, &none);
    if (status) return status;
  }
  return GRAFT_OK;
}

static graft_status complete_one(op_call *call, const op_schema *schema, uint32_t i, const graft_value *given) {
  const op_arg *arg = &schema->args[i];
  graft_value *v = &call->args[i];
  if (is_absent(given)) {
    *v = arg->fallback ? *arg->fallback : (graft_value){0};
    if (v->kind != GRAFT_VALUE_NONE && v->kind != own_kind[arg->kind]) {
      graft_value fallback = *v;
      convert(call, arg, &fallback, v);
    }
    if (!stretch(call, arg, v)) return no_memory(schema);
    return check_present(schema, arg, v);
  }
  graft_status status = check_items(schema, arg, given);
  if (status) return status;
  if (given->kind == own_kind[arg->kind]) {
    *v = *given;
  } else if (!convert(call, arg, given, v)) {
    return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "argument %s expects %s", arg->name, kind_names[arg->kind]);
  }
  if (!stretch(call, arg, v)) return no_memory(schema);
  if (v->kind == GRAFT_VALUE_DTYPE && v->as.dtype && dt_number(v->as.dtype) < 0) {
    return err_about(GRAFT_INVALID_ARGUMENT, schema->name, "argument %s: 0x%08" PRIx32 " is not a dtype of tensors",
                     arg->name, v->as.dtype);
  }
  if (v->kind == GRAFT_VALUE_STR && !take_string(arg, v)) return unknown_string(schema, arg, v->as.str);
  return GRAFT_OK;
}

graft_status dsp_complete(op_call *call, const op_schema *schema, const graft_value *args, uint32_t nargs) {
  call->schema = schema;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    graft_status status = complete_one(call, schema, i, i < nargs ? &args[i] : NULL);
    if (status) return status;
  }
  return GRAFT_OK;
}
