/* A call's arguments: reading them and making them canonical. */
#include <string.h>

#include "ops/core/op.h"

int op_arg_named(const op_schema *schema, const char *name) {
  for (int i = 0; i < schema->nargs; i++) {
    if (!strcmp(schema->args[i].name, name)) return i;
  }
  return -1;
}

const graft_value *op_value_named(const op_schema *schema, const graft_value *args, const char *name) {
  static const graft_value absent = {.kind = GRAFT_VALUE_NONE};
  int arg = op_arg_named(schema, name);
  return arg < 0 ? &absent : &args[arg];
}

graft_tensor *op_tensor(const op_call *call, int arg) {
  return call->args[arg].kind == GRAFT_VALUE_TENSOR ? call->args[arg].as.tensor : NULL;
}

int64_t op_int(const op_call *call, int arg) {
  return call->args[arg].as.i;
}
double op_float(const op_call *call, int arg) {
  return call->args[arg].as.f;
}
bool op_bool(const op_call *call, int arg) {
  return call->args[arg].kind == GRAFT_VALUE_BOOL && call->args[arg].as.i;
}

graft_dtype op_dtype(const op_call *call, int arg) {
  return call->args[arg].kind == GRAFT_VALUE_DTYPE ? call->args[arg].as.dtype : GRAFT_DTYPE_NONE;
}

graft_scalar op_scalar(const op_call *call, int arg) {
  return call->args[arg].kind == GRAFT_VALUE_SCALAR ? call->args[arg].as.scalar : graft_scalar_none();
}

char op_role(const op_schema *schema, const op_def *def, uint32_t arg) {
  const char *role = def->roles;
  for (uint32_t i = 0; i < arg && *role; i++) {
    if (schema->args[i].kind == OPK_TENSOR || schema->args[i].kind == OPK_TENSORS) role++;
  }
  return *role ? *role : 'k';
}

size_t op_value_bytes(const graft_value *value) {
  switch (value->kind) {
    case GRAFT_VALUE_INTS: return value->count * sizeof *value->as.ints;
    case GRAFT_VALUE_FLOATS: return value->count * sizeof *value->as.floats;
    case GRAFT_VALUE_SCALARS: return value->count * sizeof *value->as.scalars;
    case GRAFT_VALUE_MASK: return value->count;
    case GRAFT_VALUE_STR: return strlen(value->as.str) + 1;
    default: return 0;
  }
}

graft_status op_set_ints(op_call *call, int arg, const int64_t *items, uint32_t count) {
  int64_t *copy = arena_copy(call->lists, items, count * sizeof *items);
  if (!copy) return op_fail(call, GRAFT_OUT_OF_MEMORY, "no host memory for a list of %u numbers", count);
  call->args[arg] = (graft_value){GRAFT_VALUE_INTS, count, {.ints = copy}};
  return GRAFT_OK;
}

void op_set_int(op_call *call, int arg, int64_t value) {
  call->args[arg] = (graft_value){GRAFT_VALUE_INT, 0, {.i = value}};
}

void op_set_dtype(op_call *call, int arg, graft_dtype dtype) {
  call->args[arg] = (graft_value){GRAFT_VALUE_DTYPE, 0, {.dtype = dtype}};
}

graft_status op_wrap_dim(const op_call *call, int64_t *dim, int32_t ndim) {
  int64_t rank = ndim ? ndim : 1;
  if (*dim < -rank || *dim >= rank) {
    return op_out_of_range(call, "dim %lld is out of range: expected %lld to %lld", (long long)*dim, (long long)-rank,
                           (long long)rank - 1);
  }
  if (*dim < 0) *dim += rank;
  return GRAFT_OK;
}

graft_status op_wrap_dims(op_call *call, int arg, int32_t ndim, bool empty_means_all, uint32_t *mask) {
  const graft_value *value = &call->args[arg];
  uint32_t bits = 0;
  if (value->kind == GRAFT_VALUE_NONE || (value->count == 0 && empty_means_all)) {
    bits = ndim ? (1u << ndim) - 1 : 0;
  } else {
    for (uint32_t i = 0; i < value->count; i++) {
      int64_t dim = value->as.ints[i];
      graft_status status = op_wrap_dim(call, &dim, ndim);
      if (status) return status;
      if (bits >> dim & 1) return op_error(call, "dim %lld appears more than once in the list of dims", (long long)dim);
      bits |= 1u << dim;
    }
    if (!ndim) bits = 0;
  }
  int64_t dims[GRAFT_MAX_DIMS];
  uint32_t count = 0;
  for (int32_t i = 0; i < ndim; i++) {
    if (bits >> i & 1) dims[count++] = i;
  }
  *mask = bits;
  return op_set_ints(call, arg, dims, count);
}

graft_status op_check_step(const op_call *call, const char *name, int64_t number, int64_t least) {
  if (number < least)
    return op_error(call, "%s holds %lld; expected at least %lld", name, (long long)number, (long long)least);
  if (number > INT32_MAX)
    return op_error(call, "%s holds %lld; expected at most %d", name, (long long)number, INT32_MAX);
  return GRAFT_OK;
}

graft_status op_check_sizes(const op_call *call, int arg) {
  const graft_value *v = &call->args[arg];
  const char *name = call->schema->args[arg].name;
  if (v->count > GRAFT_MAX_DIMS)
    return op_error(call, "%s has %u items; expected at most %d", name, v->count, GRAFT_MAX_DIMS);
  for (uint32_t i = 0; i < v->count; i++) {
    if (v->as.ints[i] < 0) return op_error(call, "%s has a negative item, %lld", name, (long long)v->as.ints[i]);
  }
  if (tns_numel((int32_t)v->count, v->as.ints) < 0)
    return op_error(call, "%s says more elements than can be counted", name);
  return GRAFT_OK;
}

graft_status op_check_floating(const op_call *call, int arg) {
  const graft_tensor *t = op_tensor(call, arg);
  bool fits = !t || (dt_is_float(t->dtype) && !dt_is_float8(t->dtype));
  return fits ? GRAFT_OK : op_refuse(call, arg, "a floating dtype");
}

graft_status op_check_dtype(const op_call *call, int arg, graft_dtype dtype) {
  const graft_tensor *t = op_tensor(call, arg);
  return !t || t->dtype == dtype ? GRAFT_OK : op_refuse(call, arg, "%s", graft_dtype_name(dtype));
}

graft_status op_check_same_dtype(const op_call *call, int arg, int other) {
  const graft_tensor *a = op_tensor(call, arg), *b = op_tensor(call, other);
  if (!a || !b || a->dtype == b->dtype) return GRAFT_OK;
  return op_error(call, "%s and %s differ in dtype (%s)", call->schema->args[arg].name, call->schema->args[other].name,
                  op_show_tensors(call));
}
