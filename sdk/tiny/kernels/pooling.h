/* The largest element of windows that slide over planes of height by width, and where in its plane it was. No
 * window lies outside of its plane as a whole. */
#ifndef TINY_POOLING_H
#define TINY_POOLING_H

#include <stdint.h>
#include <string.h>

typedef struct tiny_pool {
  int32_t planes, height, width, out_height, out_width, kernel_height, kernel_width;
  int32_t stride_y, stride_x, padding_y, padding_x;
} tiny_pool;

/* Where in its plane a tap of a window reads; -1: outside. */
static inline int32_t tiny_pool_at(const tiny_pool *p, int32_t y, int32_t column, int32_t tap) {
  const int32_t row = y * p->stride_y - p->padding_y + tap / p->kernel_width;
  const int32_t at = column * p->stride_x - p->padding_x + tap % p->kernel_width;
  return row < 0 || row >= p->height || at < 0 || at >= p->width ? -1 : row * p->width + at;
}

/* The place of the largest of a window, the first one where several are; a NaN is larger than all numbers. */
static inline int32_t tiny_max_pool2d_place_f32(const tiny_pool *p, const float *x, int32_t y, int32_t column) {
  int32_t best = -1;
  for (int32_t tap = 0; tap < p->kernel_height * p->kernel_width; tap++) {
    const int32_t place = tiny_pool_at(p, y, column, tap);
    if (place < 0) continue;
    if (best < 0 || x[place] > x[best] || x[place] != x[place]) best = place;
  }
  return best;
}

static inline void tiny_max_pool2d_f32(const tiny_pool *p, const float *x, float *out, int64_t *places) {
  for (int32_t n = 0; n < p->planes; n++, x += p->height * p->width) {
    for (int32_t y = 0; y < p->out_height; y++) {
      for (int32_t column = 0; column < p->out_width; column++, out++, places++) {
        *places = tiny_max_pool2d_place_f32(p, x, y, column);
        *out = x[*places];
      }
    }
  }
}

static inline int32_t tiny_max_pool2d_place_i8(const tiny_pool *p, const int8_t *x, int32_t y, int32_t column) {
  int32_t best = -1;
  for (int32_t tap = 0; tap < p->kernel_height * p->kernel_width; tap++) {
    const int32_t place = tiny_pool_at(p, y, column, tap);
    if (place >= 0 && (best < 0 || x[place] > x[best])) best = place;
  }
  return best;
}

static inline void tiny_max_pool2d_i8(const tiny_pool *p, const int8_t *x, int8_t *out, int64_t *places) {
  for (int32_t n = 0; n < p->planes; n++, x += p->height * p->width) {
    for (int32_t i = 0; i < p->out_height * p->out_width; i++, out++, places++) {
      *places = tiny_max_pool2d_place_i8(p, x, i / p->out_width, i % p->out_width);
      *out = x[*places];
    }
  }
}

static inline void tiny_max_pool2d_gradient_f32(const tiny_pool *p, const float *grad, const int64_t *places,
                                                float *x_grad) {
  memset(x_grad, 0, (size_t)(p->planes * p->height * p->width) * sizeof *x_grad);
  for (int32_t n = 0; n < p->planes; n++, x_grad += p->height * p->width) {
    for (int32_t i = 0; i < p->out_height * p->out_width; i++) x_grad[*places++] += *grad++;
  }
}

#endif
