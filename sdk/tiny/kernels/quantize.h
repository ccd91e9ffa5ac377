/* Numbers of f32 that are whole and in -128 to 127 are held as i8: how they become so, and how a weight of i8 learns.
 */
#ifndef TINY_QUANTIZE_H
#define TINY_QUANTIZE_H

#include <math.h>
#include <stdint.h>

/* x to the nearest whole number, ties to even, held between low and high, which a NaN becomes; inside[i]: whether it
 * was between them before. */
static inline void tiny_quantize_i8(int32_t count, int32_t low, int32_t high, const float *x, int8_t *out,
                                    uint8_t *inside) {
  for (int32_t i = 0; i < count; i++) {
    const float at = rintf(x[i]), held = at < (float)high ? at : (float)high;
    out[i] = (int8_t)(at > (float)low ? held : (float)low);
    inside[i] = at >= (float)low && at <= (float)high;
  }
}

/* The same, in steps of `scale` from `zero`, and back to numbers of f32; inverse: 1 / scale in f32. */
typedef struct tiny_grid {
  float scale, inverse, zero, low, high;
} tiny_grid;

static inline void tiny_fake_quantize_f32(const tiny_grid *g, int32_t count, const float *x, float *out,
                                          uint8_t *inside) {
  for (int32_t i = 0; i < count; i++) {
    const float at = g->zero + rintf(x[i] * g->inverse), held = at < g->high ? at : g->high;
    inside[i] = at >= g->low && at <= g->high;
    out[i] = ((at > g->low ? held : g->low) - g->zero) * g->scale;
  }
}

static inline void tiny_widen_i8(int32_t count, const int8_t *x, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = (float)x[i];
}

static inline void tiny_widen_i32(int32_t count, const int32_t *x, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = (float)x[i];
}

static inline void tiny_copy_i8(int32_t count, const int8_t *x, int8_t *out) {
  for (int32_t i = 0; i < count; i++) out[i] = x[i];
}

/* Towards 0; what an integer can't hold becomes the nearest that it can, and a NaN 0. */
static inline void tiny_to_i8(int32_t count, const float *x, int8_t *out) {
  for (int32_t i = 0; i < count; i++)
    out[i] = (int8_t)(x[i] >= 127 ? 127 : x[i] > -128 ? x[i] : x[i] <= -128 ? -128 : 0);
}

static inline void tiny_to_i32(int32_t count, const float *x, int32_t *out) {
  for (int32_t i = 0; i < count; i++) {
    out[i] = x[i] >= 0x1p31f ? INT32_MAX : x[i] > -0x1p31f ? (int32_t)x[i] : x[i] <= -0x1p31f ? INT32_MIN : 0;
  }
}

static inline void tiny_add_scaled_i8(int32_t count, float scale, const int8_t *a, const float *b, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = (float)a[i] + scale * b[i];
}

#endif
