/* The dtype that operands are brought to, with PyTorch's three categories; and whether a number fits a dtype. */
#include <math.h>

#include "ops/core/op.h"

typedef struct categories {
  graft_dtype dimensioned, rank0, number;
} categories;

static graft_dtype join(graft_dtype a, graft_dtype b) {
  if (!a) return b;
  return b ? dt_promote(a, b) : a;
}

graft_dtype op_number_dtype(const graft_scalar *scalar) {
  switch (dt_category_of(scalar->dtype)) {
    case DT_BOOL: return GRAFT_BOOL;
    case DT_INTEGER: return GRAFT_I64;
    case DT_FLOAT: return dt_default();
    default: return dt_complex(dt_default());
  }
}

static bool gather(categories *c, const graft_value *value) {
  if (value->kind == GRAFT_VALUE_SCALAR) {
    c->number = join(c->number, op_number_dtype(&value->as.scalar));
    return c->number;
  }
  if (value->kind == GRAFT_VALUE_TENSORS) {
    for (uint32_t i = 0; i < value->count; i++) {
      graft_value item = fx_tensor(value->as.tensors[i]);
      if (!gather(c, &item)) return false;
    }
    return true;
  }
  if (value->kind != GRAFT_VALUE_TENSOR) return true;
  graft_dtype *at = value->as.tensor->ndim ? &c->dimensioned : &c->rank0;
  *at = join(*at, value->as.tensor->dtype);
  return *at;
}

/* A lower category counts only where its kind (bool < integer < float < complex) is higher, and then only by its kind
 * where the higher one is floating. */
static graft_dtype combine(graft_dtype higher, graft_dtype lower) {
  if (!higher) return lower;
  if (!lower || dt_category_of(lower) <= dt_category_of(higher)) return higher;
  return dt_is_float(higher) ? dt_complex(higher) : dt_promote(higher, lower);
}

graft_dtype op_promote(const op_call *call, int first, int last) {
  categories c = {0};
  for (int i = first; i <= last; i++) {
    if (!gather(&c, &call->args[i])) return GRAFT_DTYPE_NONE;
  }
  return combine(combine(c.dimensioned, c.rank0), c.number);
}

graft_dtype op_promote_tensors(const op_call *call) {
  categories c = {0};
  for (int i = 0; i < call->schema->nargs; i++) {
    if (call->schema->args[i].kind == OPK_TENSOR && !gather(&c, &call->args[i])) return GRAFT_DTYPE_NONE;
  }
  return combine(combine(c.dimensioned, c.rank0), c.number);
}

static int64_t wrapped(int64_t number, graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_U8: return (uint8_t)number;
    case GRAFT_I8: return (int8_t)number;
    case GRAFT_U16: return (uint16_t)number;
    case GRAFT_I16: return (int16_t)number;
    case GRAFT_U32: return (uint32_t)number;
    case GRAFT_I32: return (int32_t)number;
    default: return number;
  }
}

graft_value op_wrapped_number(const op_call *call, int arg, graft_value value) {
  if (value.kind != GRAFT_VALUE_SCALAR || value.as.scalar.dtype != GRAFT_I64) return value;
  if (!(call->def->flags & OP_PROMOTES_NUMBERS)) return value;
  /* A condition is no operand. */
  if (call->schema->args[arg].kind == OPK_TENSOR && op_role(call->schema, call->def, (uint32_t)arg) != 'b')
    return value;
  value.as.scalar.value.i = wrapped(value.as.scalar.value.i, call->compute);
  return value;
}

graft_status op_value_fits(const op_call *call, int arg, const graft_value *given, graft_dtype dtype) {
  graft_scalar number = given->kind == GRAFT_VALUE_SCALAR ? given->as.scalar : (graft_scalar){0};
  if (!number.dtype || number.dtype == GRAFT_BOOL || dtype == GRAFT_BOOL) return GRAFT_OK;
  dt_value value = dt_scalar_value(&number);
  long double most = dt_largest(dtype);
  bool integral = dt_is_integral(dtype, false);
  bool has_infinity = !integral && dtype != GRAFT_F8_E4M3FN;
  bool wraps = integral && dt_is_unsigned(dtype) && dt_is_integral(number.dtype, false);
  long double least = wraps || !integral ? -most : dt_is_unsigned(dtype) ? 0 : -most - 1;
  bool fits = !(value.im != 0 && !dt_is_complex(dtype));
  if (isnan(value.re))
    fits &= !integral;
  else if (isinf(value.re))
    fits &= has_infinity;
  else
    fits &= value.re <= most && value.re >= least;
  if (dt_is_complex(dtype) && isfinite(value.im)) fits &= fabsl(value.im) <= most;
  if (fits) return GRAFT_OK;
  /* Of a whole number all digits: one just beyond a range would look like one within. */
  const int digits = value.re == rintl(value.re) && fabsl(value.re) < 0x1p64L ? 20 : 6;
  return op_error(call, "%s is %.*Lg%s, which %s can't hold", call->schema->args[arg].name, digits, value.re,
                  value.im != 0 ? " with an imaginary part" : "", graft_dtype_name(dtype));
}

graft_status op_number_fits(const op_call *call, int arg, graft_dtype dtype) {
  return op_value_fits(call, arg, &call->args[arg], dtype);
}

graft_status op_integer_holds(const op_call *call, int arg, const graft_value *value, graft_dtype dtype) {
  return dt_is_integral(dtype, false) ? op_value_fits(call, arg, value, dtype) : GRAFT_OK;
}
