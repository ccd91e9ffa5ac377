/* Element by element; the result may lie where an operand lies. */
#ifndef TINY_ELEMENTS_H
#define TINY_ELEMENTS_H

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

#endif
