/* Element by element; the result may lie where an operand lies. */
#ifndef TINY_ELEMENTS_H
#define TINY_ELEMENTS_H

#include <math.h>
#include <stdint.h>

static inline void tiny_relu_f32(int32_t count, const float *x, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = x[i] < 0 ? 0 : x[i]; /* a NaN stays */
}

/* The gradient where x is above the threshold, else 0; a NaN of x lets it through. */
static inline void tiny_relu_gradient_f32(int32_t count, float threshold, const float *grad, const float *x,
                                          float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = x[i] <= threshold ? 0 : grad[i];
}

/* A step of gradient descent is one with a scale below 0. */
static inline void tiny_add_scaled_f32(int32_t count, float scale, const float *a, const float *b, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = a[i] + scale * b[i];
}

static inline void tiny_mul_f32(int32_t count, const float *a, const float *b, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = a[i] * b[i];
}

static inline void tiny_scale_f32(int32_t count, float scale, const float *x, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = x[i] * scale;
}

static inline void tiny_floor_f32(int32_t count, const float *x, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = floorf(x[i]);
}

/* Ties to even. */
static inline void tiny_round_f32(int32_t count, const float *x, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = rintf(x[i]);
}

/* A NaN stays. */
static inline void tiny_clamp_f32(int32_t count, float low, float high, const float *x, float *out) {
  for (int32_t i = 0; i < count; i++) {
    const float least = x[i] < low ? low : x[i];
    out[i] = least > high ? high : least;
  }
}

/* mask: 0 or 1 */
static inline void tiny_mask_f32(int32_t count, const float *x, const uint8_t *mask, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = x[i] * (float)mask[i];
}

static inline void tiny_addcmul_f32(int32_t count, float scale, const float *self, const float *a, const float *b,
                                    float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = self[i] + scale * a[i] * b[i];
}

static inline void tiny_fill_f32(int32_t count, float value, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = value;
}

static inline void tiny_copy_f32(int32_t count, const float *x, float *out) {
  for (int32_t i = 0; i < count; i++) out[i] = x[i];
}

#endif
