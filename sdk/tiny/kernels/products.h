/* Sums of products. Matrices have strides, in elements, so that a transposed one needs no copy. */
#ifndef TINY_PRODUCTS_H
#define TINY_PRODUCTS_H

#include <stdint.h>
#include <string.h>

/* out[i][j] = sum over l of a[i][l] b[l][j]; with bias not NULL, bias[i][j] first. */
typedef struct tiny_mm {
  int32_t rows, columns, inner;
  int32_t a_row, a_column, b_row, b_column, bias_row, bias_column, out_row, out_column;
} tiny_mm;

static inline void tiny_mm_f32(const tiny_mm *m, const float *bias, const float *a, const float *b, float *out) {
  for (int32_t i = 0; i < m->rows; i++) {
    for (int32_t j = 0; j < m->columns; j++) {
      float sum = bias ? bias[i * m->bias_row + j * m->bias_column] : 0;
      for (int32_t l = 0; l < m->inner; l++) {
        sum += a[i * m->a_row + l * m->a_column] * b[l * m->b_row + j * m->b_column];
      }
      out[i * m->out_row + j * m->out_column] = sum;
    }
  }
}

/* x is [batch, inputs, height, width], the weight [outputs, inputs, kernel_height, kernel_width], the result
 * [batch, outputs, out_height, out_width]; outside of x are zeros. Of x and of a result's gradient, the elements of one
 * sample follow each other, and the next sample begins so many elements behind: some channels of more can be meant. */
typedef struct tiny_conv {
  int32_t batch, inputs, height, width, outputs, out_height, out_width, kernel_height, kernel_width;
  int32_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x, x_step, y_step;
} tiny_conv;

/* Where in x (of one sample) a tap of a window reads; -1: outside. */
static inline int32_t tiny_conv_at(const tiny_conv *c, int32_t channel, int32_t y, int32_t x, int32_t ky, int32_t kx) {
  const int32_t row = y * c->stride_y + ky * c->dilation_y - c->padding_y;
  const int32_t column = x * c->stride_x + kx * c->dilation_x - c->padding_x;
  if (row < 0 || row >= c->height || column < 0 || column >= c->width) return -1;
  return (channel * c->height + row) * c->width + column;
}

static inline float tiny_conv2d_window_f32(const tiny_conv *c, const float *x, const float *weight, int32_t y,
                                           int32_t column) {
  float sum = 0;
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
static inline void tiny_conv2d_f32(const tiny_conv *c, const float *x, const float *weight, const float *bias,
                                   float *out) {
  const int32_t taps = c->inputs * c->kernel_height * c->kernel_width;
  for (int32_t n = 0; n < c->batch; n++, x += c->x_step) {
    for (int32_t o = 0; o < c->outputs; o++) {
      for (int32_t y = 0; y < c->out_height; y++) {
        for (int32_t column = 0; column < c->out_width; column++)
          *out++ = tiny_conv2d_window_f32(c, x, weight + o * taps, y, column) + (bias ? bias[o] : 0);
      }
    }
  }
}

/* Adds what a gradient at one place of a result is to x. */
static inline void tiny_conv2d_spread_f32(const tiny_conv *c, float grad, const float *weight, int32_t y,
                                          int32_t column, float *x_grad) {
  for (int32_t i = 0; i < c->inputs; i++) {
    for (int32_t ky = 0; ky < c->kernel_height; ky++) {
      for (int32_t kx = 0; kx < c->kernel_width; kx++, weight++) {
        const int32_t at = tiny_conv_at(c, i, y, column, ky, kx);
        if (at >= 0) x_grad[at] += grad * *weight;
      }
    }
  }
}

/* The gradient of x. */
static inline void tiny_conv2d_input_gradient_f32(const tiny_conv *c, const float *grad, const float *weight,
                                                  float *x_grad) {
  const int32_t taps = c->inputs * c->kernel_height * c->kernel_width;
  memset(x_grad, 0, (size_t)(c->batch * c->inputs * c->height * c->width) * sizeof *x_grad);
  for (int32_t n = 0; n < c->batch; n++, grad += c->y_step, x_grad += c->inputs * c->height * c->width) {
    const float *at = grad;
    for (int32_t o = 0; o < c->outputs; o++) {
      for (int32_t y = 0; y < c->out_height; y++) {
        for (int32_t column = 0; column < c->out_width; column++)
          tiny_conv2d_spread_f32(c, *at++, weight + o * taps, y, column, x_grad);
      }
    }
  }
}

/* One element of the weight's gradient, of a tap; grad: of its output, in the first sample. */
static inline float tiny_conv2d_tap_gradient_f32(const tiny_conv *c, const float *grad, const float *x, int32_t channel,
                                                 int32_t ky, int32_t kx) {
  float sum = 0;
  for (int32_t n = 0; n < c->batch; n++, grad += c->y_step, x += c->x_step) {
    for (int32_t y = 0; y < c->out_height; y++) {
      for (int32_t column = 0; column < c->out_width; column++) {
        const int32_t at = tiny_conv_at(c, channel, y, column, ky, kx);
        if (at >= 0) sum += grad[y * c->out_width + column] * x[at];
      }
    }
  }
  return sum;
}

static inline void tiny_conv2d_weight_gradient_f32(const tiny_conv *c, const float *grad, const float *x,
                                                   float *weight_grad) {
  for (int32_t o = 0; o < c->outputs; o++, grad += c->out_height * c->out_width) {
    for (int32_t i = 0; i < c->inputs; i++) {
      for (int32_t ky = 0; ky < c->kernel_height; ky++) {
        for (int32_t kx = 0; kx < c->kernel_width; kx++)
          *weight_grad++ = tiny_conv2d_tap_gradient_f32(c, grad, x, i, ky, kx);
      }
    }
  }
}

#endif
