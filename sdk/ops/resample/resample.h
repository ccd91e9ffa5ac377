/* Resampling: ops whose every dim is a small linear map of its own, so that an element of the result is a sum over
 * taps: adaptive average pooling, upsampling (nearest, linear), reflection and replication padding; and their
 * gradients, the same maps transposed. Rules and gradients in resample.c, taps and reference kernels in
 * resample_kernels.c. */
#ifndef GRAFT_SDK_RESAMPLE_H
#define GRAFT_SDK_RESAMPLE_H

#include "ops/core/op.h"

typedef enum resample_kind {
  RESAMPLE_ADAPTIVE,
  RESAMPLE_NEAREST, /* the element at floor(o * scale) */
  RESAMPLE_EXACT,   /* the element whose middle is nearest: floor((o + 1/2) * scale) */
  RESAMPLE_LINEAR,
  RESAMPLE_REFLECT,
  RESAMPLE_REPLICATE
} resample_kind;

/* One row an op. */
typedef struct resample_row {
  uint32_t op_id, other; /* other: its gradient, or what it is the gradient of */
  resample_kind kind;
  int8_t dims;
  bool backward;
} resample_row;
const resample_row *resample_row_of(uint32_t op_id);

static inline bool resample_is_upsample(resample_kind kind) {
  return kind == RESAMPLE_NEAREST || kind == RESAMPLE_EXACT || kind == RESAMPLE_LINEAR;
}
static inline bool resample_is_padding(resample_kind kind) {
  return kind == RESAMPLE_REFLECT || kind == RESAMPLE_REPLICATE;
}

graft_status ref_resample(const graft_exec *exec, const void *args);

#endif
