/* log_softmax over the last dim, the loss that reads it at the labels, and the gradients of both. */
#ifndef TINY_LOSS_H
#define TINY_LOSS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline void tiny_log_softmax_f32(int32_t rows, int32_t count, const float *x, float *out) {
  for (int32_t n = 0; n < rows; n++, x += count, out += count) {
    float most = x[0], sum = 0;
    for (int32_t i = 1; i < count; i++) most = x[i] > most ? x[i] : most;
    for (int32_t i = 0; i < count; i++) sum += expf(x[i] - most);
    const float log_sum = logf(sum);
    for (int32_t i = 0; i < count; i++) out[i] = x[i] - most - log_sum;
  }
}

/* `logs` is what tiny_log_softmax_f32 gave. */
static inline void tiny_log_softmax_gradient_f32(int32_t rows, int32_t count, const float *grad, const float *logs,
                                                 float *out) {
  for (int32_t n = 0; n < rows; n++, grad += count, logs += count, out += count) {
    float sum = 0;
    for (int32_t i = 0; i < count; i++) sum += grad[i];
    for (int32_t i = 0; i < count; i++) out[i] = grad[i] - expf(logs[i]) * sum;
  }
}

/* The mean over the rows (their sum where mean is 0) of what is lost at the labels; *total is how many counted: a row
 * whose label is `ignored` does not, and neither does one whose label is no class, which a caller must not give. */
static inline void tiny_nll_loss_f32(int32_t rows, int32_t count, int mean, int64_t ignored, const float *logs,
                                     const int64_t *labels, float *loss, float *total) {
  float sum = 0, used = 0;
  for (int32_t n = 0; n < rows; n++, logs += count) {
    if (labels[n] == ignored || labels[n] < 0 || labels[n] >= count) continue;
    sum -= logs[labels[n]];
    used += 1;
  }
  *loss = mean ? sum / used : sum;
  *total = used;
}

static inline void tiny_nll_loss_gradient_f32(int32_t rows, int32_t count, int mean, int64_t ignored, const float *grad,
                                              const int64_t *labels, const float *total, float *out) {
  const float share = mean ? *grad / *total : *grad;
  memset(out, 0, (size_t)(rows * count) * sizeof *out);
  for (int32_t n = 0; n < rows; n++, out += count) {
    if (labels[n] != ignored && labels[n] >= 0 && labels[n] < count) out[labels[n]] = -share;
  }
}

#endif
