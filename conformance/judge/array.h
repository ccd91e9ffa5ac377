/* Values of a tensor, on the host and in long double, whatever the tensor's dtype. */
#ifndef GRAFT_CF_ARRAY_H
#define GRAFT_CF_ARRAY_H

#include "tensor/tensor.h"

/* Values in row-major order. v is NULL where there are none. */
typedef struct cf_array {
  graft_dtype dtype;
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS];
  int64_t numel;
  dt_value *v;
} cf_array;

/* Zeros. False: too many elements, or no memory. */
bool cf_array_new(cf_array *a, graft_dtype dtype, int32_t ndim, const int64_t *sizes);
void cf_array_free(cf_array *a);
/* Reads a tensor; waits for its device. False, with a text in graft_last_error. */
bool cf_array_read(cf_array *a, graft_tensor *tensor);
/* The elements as a tensor of dtype holds them in memory, one behind the other (malloc'd). NULL: no memory. */
void *cf_array_bytes(const cf_array *a, graft_dtype dtype);

/* How an array divides into rows along a dim. */
typedef struct cf_axis {
  int64_t outer, length, inner;
} cf_axis;
cf_axis cf_axis_of(const cf_array *a, int64_t dim);

#endif
