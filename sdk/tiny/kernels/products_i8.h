/* Sums of products where operands are held as i8. Of two such they are i32, and become f32 at the end: up to 1,024
 * products that is exact, beyond it one rounding. Gradients are f32, times one operand of i8. */
#ifndef TINY_PRODUCTS_I8_H
#define TINY_PRODUCTS_I8_H

#include <stdint.h>
#include <string.h>

static inline void tiny_mm_i8(const tiny_mm *m, const float *bias, const int8_t *a, const int8_t *b, float *out) {
  for (int32_t i = 0; i < m->rows; i++) {
    for (int32_t j = 0; j < m->columns; j++) {
      int32_t sum = 0;
      for (int32_t l = 0; l < m->inner; l++) {
        sum += a[i * m->a_row + l * m->a_column] * b[l * m->b_row + j * m->b_column];
      }
      out[i * m->out_row + j * m->out_column] = (float)sum + (bias ? bias[i * m->bias_row + j * m->bias_column] : 0);
    }
  }
}

/* Where b is the one of i8, a caller has the transposes change places. */
static inline void tiny_mm_i8_f32(const tiny_mm *m, const float *bias, const int8_t *a, const float *b, float *out) {
  for (int32_t i = 0; i < m->rows; i++) {
    for (int32_t j = 0; j < m->columns; j++) {
      float sum = bias ? bias[i * m->bias_row + j * m->bias_column] : 0;
      for (int32_t l = 0; l < m->inner; l++) {
        sum += (float)a[i * m->a_row + l * m->a_column] * b[l * m->b_row + j * m->b_column];
      }
      out[i * m->out_row + j * m->out_column] = sum;
    }
  }
}

static inline int32_t tiny_conv2d_window_i8(const tiny_conv *c, const int8_t *x, const int8_t *weight, int32_t y,
                                            int32_t column) {
  int32_t sum = 0;
  for (int32_t i = 0; i < c->inputs; i++) {
    for (int32_t ky = 0; ky < c->kernel_height; ky++) {
      for (int32_t kx = 0; kx < c->kernel_width; kx++, weight++) {
        const int32_t at = tiny_conv_at(c, i, y, column, ky, kx);
        if (at >= 0) sum += x[at] * *weight;
      }
    }
  }
  return sum;
}

/* bias may be NULL. */
static inline void tiny_conv2d_i8(const tiny_conv *c, const int8_t *x, const int8_t *weight, const float *bias,
                                  float *out) {
  const int32_t taps = c->inputs * c->kernel_height * c->kernel_width;
  for (int32_t n = 0; n < c->batch; n++, x += c->x_step) {
    for (int32_t o = 0; o < c->outputs; o++) {
      for (int32_t y = 0; y < c->out_height; y++) {
        for (int32_t column = 0; column < c->out_width; column++)
          *out++ = (float)tiny_conv2d_window_i8(c, x, weight + o * taps, y, column) + (bias ? bias[o] : 0);
      }
    }
  }
}

/* Adds what a gradient at one place of a result is to x. */
static inline void tiny_conv2d_spread_i8(const tiny_conv *c, float grad, const int8_t *weight, int32_t y,
                                         int32_t column, float *x_grad) {
  for (int32_t i = 0; i < c->inputs; i++) {
    for (int32_t ky = 0; ky < c->kernel_height; ky++) {
      for (int32_t kx = 0; kx < c->kernel_width; kx++, weight++) {
        const int32_t at = tiny_conv_at(c, i, y, column, ky, kx);
        if (at >= 0) x_grad[at] += grad * (float)*weight;
      }
    }
  }
}

/* The gradient of x. */
static inline void tiny_conv2d_input_gradient_i8(const tiny_conv *c, const float *grad, const int8_t *weight,
                                                 float *x_grad) {
  const int32_t taps = c->inputs * c->kernel_height * c->kernel_width;
  memset(x_grad, 0, (size_t)(c->batch * c->inputs * c->height * c->width) * sizeof *x_grad);
  for (int32_t n = 0; n < c->batch; n++, grad += c->y_step, x_grad += c->inputs * c->height * c->width) {
    const float *at = grad;
    for (int32_t o = 0; o < c->outputs; o++) {
      for (int32_t y = 0; y < c->out_height; y++) {
        for (int32_t column = 0; column < c->out_width; column++)
          tiny_conv2d_spread_i8(c, *at++, weight + o * taps, y, column, x_grad);
      }
    }
  }
}

/* One element of the weight's gradient, of a tap; grad: of its output, in the first sample. */
static inline float tiny_conv2d_tap_gradient_i8(const tiny_conv *c, const float *grad, const int8_t *x, int32_t channel,
                                                int32_t ky, int32_t kx) {
  float sum = 0;
  for (int32_t n = 0; n < c->batch; n++, grad += c->y_step, x += c->x_step) {
    for (int32_t y = 0; y < c->out_height; y++) {
      for (int32_t column = 0; column < c->out_width; column++) {
        const int32_t at = tiny_conv_at(c, channel, y, column, ky, kx);
        if (at >= 0) sum += grad[y * c->out_width + column] * (float)x[at];
      }
    }
  }
  return sum;
}

static inline void tiny_conv2d_weight_gradient_i8(const tiny_conv *c, const float *grad, const int8_t *x,
                                                  float *weight_grad) {
  for (int32_t o = 0; o < c->outputs; o++, grad += c->out_height * c->out_width) {
    for (int32_t i = 0; i < c->inputs; i++) {
      for (int32_t ky = 0; ky < c->kernel_height; ky++) {
        for (int32_t kx = 0; kx < c->kernel_width; kx++)
          *weight_grad++ = tiny_conv2d_tap_gradient_i8(c, grad, x, i, ky, kx);
      }
    }
  }
}

#endif
