/* Sums over dims: out[j] = the sum over i and k of x[i][j][k], so over the first dims, the last ones, or both. step:
 * from one x[i] to the next. */
#ifndef TINY_SUMS_H
#define TINY_SUMS_H

#include <stdint.h>
#include <string.h>

static inline void tiny_sum_f32(int32_t outer, int32_t kept, int32_t inner, int32_t step, const float *x, float *out) {
  memset(out, 0, (size_t)kept * sizeof *out);
  for (int32_t i = 0; i < outer; i++, x += step) {
    for (int32_t j = 0; j < kept; j++) {
      for (int32_t k = 0; k < inner; k++) out[j] += x[j * inner + k];
    }
  }
}

#endif
