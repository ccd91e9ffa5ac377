/* What the generated wrappers are made of beside the graft_value_* of graft/value.h: typed arguments to graft_value,
 * and back. Private to libgraft. */
#ifndef GRAFT_OPS_WRAP_H
#define GRAFT_OPS_WRAP_H

#include "graft/value.h"

static inline graft_value wrap_none(void) {
  return (graft_value){.kind = GRAFT_VALUE_NONE};
}

static inline graft_value wrap_optional_int(const int64_t *value) {
  return value ? graft_value_int(*value) : wrap_none();
}

static inline graft_value wrap_optional_float(const double *value) {
  return value ? graft_value_float(*value) : wrap_none();
}

static inline graft_value wrap_optional_bool(const bool *value) {
  return value ? graft_value_bool(*value) : wrap_none();
}

/* A list that an op requires: one without items may be NULL. */
static inline graft_value wrap_required_ints(const int64_t *items, uint32_t count) {
  static const int64_t none[1];
  return graft_value_ints(items || count ? items : none, count);
}

static inline graft_value wrap_floats(const double *items, uint32_t count) {
  return (graft_value){.kind = items ? GRAFT_VALUE_FLOATS : GRAFT_VALUE_NONE, .count = count, .as.floats = items};
}

static inline graft_value wrap_scalars(const graft_scalar *items, uint32_t count) {
  return (graft_value){.kind = items ? GRAFT_VALUE_SCALARS : GRAFT_VALUE_NONE, .count = count, .as.scalars = items};
}

static inline graft_value wrap_mask(const uint8_t *items, uint32_t count) {
  return (graft_value){.kind = items ? GRAFT_VALUE_MASK : GRAFT_VALUE_NONE, .count = count, .as.mask = items};
}

static inline graft_value wrap_str(const char *text) {
  return (graft_value){.kind = text ? GRAFT_VALUE_STR : GRAFT_VALUE_NONE, .as.str = text};
}

static inline graft_value wrap_dtype(graft_dtype dtype) {
  return (graft_value){.kind = dtype ? GRAFT_VALUE_DTYPE : GRAFT_VALUE_NONE, .as.dtype = dtype};
}

static inline graft_value wrap_device(graft_rt_device *device) {
  return (graft_value){.kind = device ? GRAFT_VALUE_DEVICE : GRAFT_VALUE_NONE, .as.device = device};
}

static inline graft_value wrap_memory_format(graft_memory_format format) {
  return (graft_value){.kind = format ? GRAFT_VALUE_MEMORY_FORMAT : GRAFT_VALUE_NONE, .as.i = format};
}

static inline graft_value wrap_generator(graft_generator *generator) {
  return (graft_value){.kind = generator ? GRAFT_VALUE_GENERATOR : GRAFT_VALUE_NONE, .as.generator = generator};
}

/* --- the way back: what a value holds, as the wrappers take it --- */

static inline graft_tensor *unwrap_tensor(const graft_value *value) {
  return value->kind == GRAFT_VALUE_TENSOR ? value->as.tensor : NULL;
}

static inline const int64_t *unwrap_optional_int(const graft_value *value) {
  return value->kind == GRAFT_VALUE_INT ? &value->as.i : NULL;
}

static inline const double *unwrap_optional_float(const graft_value *value) {
  return value->kind == GRAFT_VALUE_FLOAT ? &value->as.f : NULL;
}

static inline bool unwrap_bool(const graft_value *value) {
  return value->kind == GRAFT_VALUE_BOOL && value->as.i;
}

static inline graft_scalar unwrap_scalar(const graft_value *value) {
  return value->kind == GRAFT_VALUE_SCALAR ? value->as.scalar : graft_scalar_none();
}

static inline const int64_t *unwrap_ints(const graft_value *value) {
  return value->kind == GRAFT_VALUE_INTS ? value->as.ints : NULL;
}

static inline const double *unwrap_floats(const graft_value *value) {
  return value->kind == GRAFT_VALUE_FLOATS ? value->as.floats : NULL;
}

static inline const graft_scalar *unwrap_scalars(const graft_value *value) {
  return value->kind == GRAFT_VALUE_SCALARS ? value->as.scalars : NULL;
}

static inline const uint8_t *unwrap_mask(const graft_value *value) {
  return value->kind == GRAFT_VALUE_MASK ? value->as.mask : NULL;
}

static inline const char *unwrap_str(const graft_value *value) {
  return value->kind == GRAFT_VALUE_STR ? value->as.str : NULL;
}

static inline graft_dtype unwrap_dtype(const graft_value *value) {
  return value->kind == GRAFT_VALUE_DTYPE ? value->as.dtype : GRAFT_DTYPE_NONE;
}

static inline graft_rt_device *unwrap_device(const graft_value *value) {
  return value->kind == GRAFT_VALUE_DEVICE ? value->as.device : NULL;
}

static inline graft_memory_format unwrap_memory_format(const graft_value *value) {
  return value->kind == GRAFT_VALUE_MEMORY_FORMAT ? (graft_memory_format)value->as.i : 0;
}

static inline graft_generator *unwrap_generator(const graft_value *value) {
  return value->kind == GRAFT_VALUE_GENERATOR ? value->as.generator : NULL;
}

#endif
