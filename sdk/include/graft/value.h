/* libgraft: the boxed form of an op's arguments, and the one entry that runs any op.
 *
 * Arguments stand in the order of the schema, all of them, those that are absent as NONE; trailing ones may be left
 * out and take the schema's default. A Tensor argument may also be given a SCALAR: a Python number, which takes part in
 * type promotion as such. Everything that a value points to is the caller's and is only read during the call. */
#ifndef GRAFT_VALUE_H
#define GRAFT_VALUE_H

#include "graft/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t graft_value_kind;
enum {
  GRAFT_VALUE_NONE = 0,
  GRAFT_VALUE_TENSOR = 1,
  GRAFT_VALUE_TENSORS = 2, /* an item may be NULL where the schema says Tensor?[] */
  GRAFT_VALUE_INT = 3,
  GRAFT_VALUE_FLOAT = 4,
  GRAFT_VALUE_BOOL = 5, /* as.i is 0 or 1 */
  GRAFT_VALUE_SCALAR = 6,
  GRAFT_VALUE_INTS = 7,
  GRAFT_VALUE_FLOATS = 8,
  GRAFT_VALUE_SCALARS = 9,
  GRAFT_VALUE_MASK = 10, /* bool[N] */
  GRAFT_VALUE_STR = 11,
  GRAFT_VALUE_DTYPE = 12,
  GRAFT_VALUE_DEVICE = 13,
  GRAFT_VALUE_GENERATOR = 14,
  GRAFT_VALUE_MEMORY_FORMAT = 15 /* as.i is a graft_memory_format */
};

/* Arrays of it are the caller's, so it never grows. */
typedef struct graft_value {
  graft_value_kind kind;
  uint32_t count; /* items of a list */
  union {
    graft_tensor *tensor;
    graft_tensor *const *tensors;
    int64_t i;
    double f;
    graft_dtype dtype;
    graft_scalar scalar;
    const int64_t *ints;
    const double *floats;
    const graft_scalar *scalars;
    const char *str;
    const uint8_t *mask;
    graft_rt_device *device;
    graft_generator *generator;
  } as;
} graft_value;

static inline graft_scalar graft_scalar_int(int64_t value) {
  graft_scalar s = {GRAFT_I64, 0, {0}};
  s.value.i = value;
  return s;
}

static inline graft_scalar graft_scalar_float(double value) {
  graft_scalar s = {GRAFT_F64, 0, {0}};
  s.value.f = value;
  return s;
}

static inline graft_scalar graft_scalar_bool(bool value) {
  graft_scalar s = {GRAFT_BOOL, 0, {0}};
  s.value.i = value ? 1 : 0;
  return s;
}

/* No number: the schema's default, or absent. */
static inline graft_scalar graft_scalar_none(void) {
  graft_scalar s = {GRAFT_DTYPE_NONE, 0, {0}};
  return s;
}

/* Values of arguments. NULL is absent, but for a list of tensors, which is only empty; so is a scalar without a dtype.
 * What a pointer points to is the caller's. */
static inline graft_value graft_value_tensor(GRAFT_NULLABLE graft_tensor *tensor) {
  graft_value v = {tensor ? GRAFT_VALUE_TENSOR : GRAFT_VALUE_NONE, 0, {tensor}};
  return v;
}

static inline graft_value graft_value_tensors(graft_tensor *const *items, uint32_t count) {
  graft_value v = {GRAFT_VALUE_TENSORS, count, {NULL}};
  v.as.tensors = items;
  return v;
}

static inline graft_value graft_value_int(int64_t number) {
  graft_value v = {GRAFT_VALUE_INT, 0, {NULL}};
  v.as.i = number;
  return v;
}

static inline graft_value graft_value_float(double number) {
  graft_value v = {GRAFT_VALUE_FLOAT, 0, {NULL}};
  v.as.f = number;
  return v;
}

static inline graft_value graft_value_bool(bool flag) {
  graft_value v = {GRAFT_VALUE_BOOL, 0, {NULL}};
  v.as.i = flag ? 1 : 0;
  return v;
}

static inline graft_value graft_value_scalar(graft_scalar scalar) {
  graft_value v = {scalar.dtype ? GRAFT_VALUE_SCALAR : GRAFT_VALUE_NONE, 0, {NULL}};
  v.as.scalar = scalar;
  return v;
}

static inline graft_value graft_value_ints(GRAFT_NULLABLE const int64_t *items, uint32_t count) {
  graft_value v = {items ? GRAFT_VALUE_INTS : GRAFT_VALUE_NONE, count, {NULL}};
  v.as.ints = items;
  return v;
}

/* Runs an op (GRAFT_OP_* of graft/abi/op_ids.h). outs has one item for each output tensor of the schema (for a Tensor[]
 * output, one for each item); items behind those are left as they are. On entry an item is NULL: it receives a new
 * tensor, owned by the caller; or a tensor: the result is written there (the out form), and where that tensor is also
 * the argument of that name, in place. Only this function writes into given tensors: the typed ones of graft/ops.h
 * always give new ones. Records the call for autograd where grad mode is on and an input requires it. Errors name the
 * op, dtypes and shapes. Asynchronous on the current stream of the device. */
GRAFT_EXPORT graft_status graft_call(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_tensor **outs,
                                     uint32_t nouts);

/* Makes ready for calls of these dtypes, shapes and strides: finds their way, and has the plugin compile what they
 * need, so that the first of them need not. Runs nothing; of tensors only the description counts. May take as long as a
 * compiler does. */
GRAFT_EXPORT graft_status graft_prepare(uint32_t op_id, const graft_value *args, uint32_t nargs);

/* The op id of an overload, "aten::add.Tensor" or "aten.add.Tensor"; 0 when unknown. */
GRAFT_EXPORT uint32_t graft_op_find(const char *name) GRAFT_NULL_GIVES(0);

/* A description of a tensor that is not there. A later libgraft may append fields. */
typedef struct graft_meta {
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS];
  int64_t strides[GRAFT_MAX_DIMS];
} graft_meta;

/* The shapes, dtypes and strides that graft_call would give, without running anything. `metas` has room for `capacity`
 * rows of meta_bytes each (sizeof(graft_meta) as the caller knows it: of a shorter row the tail is left out, of a
 * longer one it is zeroed); *count receives how many results there are. */
GRAFT_EXPORT graft_status graft_infer(uint32_t op_id, const graft_value *args, uint32_t nargs, graft_meta *metas,
                                      size_t meta_bytes, uint32_t capacity, uint32_t *count);

/* How calls left the plugin since the process began: one row for each (op, device, dtypes). Strings stay valid. A later
 * libgraft may append fields. */
typedef struct graft_fallback_info {
  uint32_t op_id;
  const char *device;
  const char *dtypes; /* such as "f16,f16" */
  uint64_t count;
} graft_fallback_info;

/* Fills at most `capacity` rows of row_bytes each (sizeof(graft_fallback_info), as above), none where `rows` is NULL,
 * and returns how many there are. */
GRAFT_EXPORT size_t graft_fallbacks(GRAFT_NULLABLE graft_fallback_info *rows, size_t row_bytes, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
