#include "conformance/mutants/access.h"

#include <string.h>

static uint16_t mut_offset(const op_schema *schema, const char *name) {
  for (uint32_t i = 0; i < schema->nargs; i++)
    if (strcmp(schema->args[i].name, name) == 0) return schema->args[i].offset;
  for (uint32_t i = 0; i < schema->nrets; i++)
    if (strcmp(schema->rets[i].name, name) == 0) return schema->rets[i].offset;
  return 0;
}

mut_args mut_copy(const mut_call *c) {
  mut_args copy;
  memcpy(copy.bytes, c->args, c->schema->args_size);
  return copy;
}

void *mut_field(const mut_call *c, mut_args *copy, const char *name) {
  return copy->bytes + mut_offset(c->schema, name);
}

const graft_tensor_desc *mut_desc(const mut_call *c, const char *name) {
  const graft_tensor_desc *d;
  memcpy(&d, (const unsigned char *)c->args + mut_offset(c->schema, name), sizeof d);
  return d;
}

void mut_replace(const mut_call *c, mut_args *copy, const char *name, const graft_tensor_desc *d) {
  memcpy(mut_field(c, copy, name), &d, sizeof d);
}

int64_t mut_numel(const graft_tensor_desc *d) {
  int64_t n = 1;
  for (int32_t i = 0; i < d->dl.ndim; i++) n *= d->dl.shape[i];
  return n;
}

char *mut_at(const graft_tensor_desc *d, int64_t i) {
  int64_t at = 0;
  for (int32_t k = d->dl.ndim - 1; k >= 0; k--) {
    at += i % d->dl.shape[k] * d->dl.strides[k];
    i /= d->dl.shape[k];
  }
  return ref_data(d) + at * (int64_t)dt_bytes(d->dl.dtype);
}

long double mut_get(const graft_tensor_desc *d, int64_t i) {
  return dt_load(d->dl.dtype, mut_at(d, i)).re;
}
void mut_put(const graft_tensor_desc *d, int64_t i, long double v) {
  dt_store(d->dl.dtype, mut_at(d, i), (dt_value){v, 0});
}

graft_status mut_inner(const mut_call *c, const mut_args *copy) {
  return c->inner(c->exec, &copy->head);
}
