#include "conformance/judge/call.h"

#include <math.h>
#include <string.h>

static const graft_value *cf_arg_value(const cf_call *call, const char *name) {
  const op_schema *schema = call->text.schema;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    if (strcmp(schema->args[i].name, name) != 0) continue;
    const graft_value *v = &call->text.args[i];
    return v->kind == GRAFT_VALUE_NONE ? schema->args[i].fallback : v;
  }
  return NULL;
}

double cf_arg_number(const cf_call *call, const char *name, double otherwise) {
  const graft_value *v = cf_arg_value(call, name);
  if (!v) return otherwise;
  switch (v->kind) {
    case GRAFT_VALUE_INT:
    case GRAFT_VALUE_BOOL: return (double)v->as.i;
    case GRAFT_VALUE_FLOAT: return v->as.f;
    case GRAFT_VALUE_SCALAR: return (double)dt_scalar_value(&v->as.scalar).re;
    case GRAFT_VALUE_INTS: return v->count ? (double)v->as.ints[0] : otherwise;
    default: return otherwise;
  }
}

dt_value cf_arg_complex(const cf_call *call, const char *name, double otherwise) {
  const graft_value *v = cf_arg_value(call, name);
  if (v && v->kind == GRAFT_VALUE_SCALAR) return dt_scalar_value(&v->as.scalar);
  return (dt_value){cf_arg_number(call, name, otherwise), 0};
}

long double cf_arg_size(const cf_call *call, const char *name) {
  dt_value number = cf_arg_complex(call, name, 0);
  return hypotl(number.re, number.im);
}

bool cf_arg_bool(const cf_call *call, const char *name, bool otherwise) {
  return cf_arg_number(call, name, otherwise) != 0;
}

int64_t cf_arg_int(const cf_call *call, const char *name, int64_t otherwise) {
  return (int64_t)cf_arg_number(call, name, (double)otherwise);
}
