/* Roots of unity and what else passes read, made in long double and rounded once. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>

#include "kernels/fft/fft.h"

typedef long double complex number;

static number turned(int64_t k, int64_t n) {
  const long double turn = 6.283185307179586476925286766559005768L;
  long double angle = turn * (long double)(k % n) / (long double)n;
  return cosl(angle) - sinl(angle) * I;
}

/* exp(-pi i k^2 / n), since 2 j k = j^2 + k^2 - (k - j)^2. */
static number chirp(int64_t k, int64_t n) {
  return turned((int64_t)((uint64_t)k * (uint64_t)k % (uint64_t)(2 * n)), 2 * n);
}

/* The transform of count = 2^k numbers in place; root[k * step] are the roots of order count. */
static void transform(number *x, number *work, const number *root, int64_t count, int64_t step) {
  if (count == 1) return;
  int64_t half = count / 2;
  for (int64_t i = 0; i < half; i++) {
    work[i] = x[2 * i];
    work[half + i] = x[2 * i + 1];
  }
  transform(work, x, root, half, 2 * step);
  transform(work + half, x + half, root, half, 2 * step);
  for (int64_t i = 0; i < half; i++) {
    number a = work[i], b = work[half + i] * root[i * step];
    x[i] = a + b;
    x[half + i] = a - b;
  }
}

/* The transform of conjugate chirps, over its length. */
static bool spectrum(number *to, int64_t n, int64_t length) {
  number *root = malloc((size_t)length * sizeof *root), *work = malloc((size_t)length * sizeof *work);
  bool ok = root && work;
  for (int64_t k = 0; ok && k < length; k++) {
    root[k] = turned(k, length);
    int64_t distance = k < n ? k : length - k;
    to[k] = distance < n ? conjl(chirp(distance, n)) / (long double)length : 0;
  }
  if (ok) transform(to, work, root, length, 1);
  free(root);
  free(work);
  return ok;
}

ocl_fft_parts ocl_fft_parts_of(const ocl_fft_table *of) {
  ocl_fft_parts parts = {.count = of->size};
  if (of->turns) {
    while (((int64_t)1 << parts.shift) < of->turns && ((int64_t)1 << 2 * parts.shift) < of->turns) parts.shift++;
    if (of->turns <= OCL_FFT_DIRECT) {
      while (((int64_t)1 << parts.shift) < of->turns) parts.shift++;
    }
    parts.low = parts.count;
    parts.count += (int64_t)1 << parts.shift;
    if (of->turns > OCL_FFT_DIRECT) {
      parts.high = parts.count;
      parts.count += (of->turns >> parts.shift) + 1;
    }
  }
  if (of->chirp_in) {
    parts.load_factors = parts.count;
    parts.count += of->chirp;
  }
  if (of->chirp_out || of->spectrum) {
    parts.store_factors = parts.count;
    parts.count += of->spectrum ? of->length : of->chirp;
  }
  if (of->lanes) {
    parts.lanes = parts.count;
    parts.count += (of->size + 1) * of->lanes;
  }
  if (of->halves) {
    parts.halves = parts.count;
    parts.count += of->halves;
  }
  return parts;
}

static graft_status make(const void *from, void **content, size_t *bytes) {
  const ocl_fft_table *of = from;
  ocl_fft_parts parts = ocl_fft_parts_of(of);
  number *all = calloc((size_t)parts.count, sizeof *all);
  *bytes = (size_t)parts.count * 2 * (of->wide ? sizeof(double) : sizeof(float));
  *content = malloc(*bytes);
  bool ok = all && *content;
  for (int64_t k = 0; ok && k < of->size; k++) all[k] = turned(k, of->size);
  for (int64_t k = 0; ok && of->turns && k < (int64_t)1 << parts.shift; k++) all[parts.low + k] = turned(k, of->turns);
  for (int64_t k = 0; ok && parts.high && k <= of->turns >> parts.shift; k++) {
    all[parts.high + k] = turned(k << parts.shift, of->turns);
  }
  for (int64_t k = 0; ok && of->chirp_in && k < of->chirp; k++) all[parts.load_factors + k] = chirp(k, of->chirp);
  for (int64_t k = 0; ok && of->chirp_out && k < of->chirp; k++) all[parts.store_factors + k] = chirp(k, of->chirp);
  for (int64_t i = 0; ok && i < of->size * of->lanes; i++) {
    all[parts.lanes + i] = turned(i / of->lanes * (i % of->lanes), of->size * of->lanes);
  }
  for (int64_t k = 0; ok && k < of->lanes; k++) all[parts.lanes + of->size * of->lanes + k] = turned(k, of->lanes);
  for (int64_t k = 0; ok && k < of->halves; k++) all[parts.halves + k] = turned(k, 2 * of->halves);
  if (ok && of->spectrum) ok = spectrum(all + parts.store_factors, of->chirp, of->length);
  for (int64_t k = 0; ok && k < parts.count; k++) {
    if (of->wide) {
      ((double *)*content)[2 * k] = (double)creall(all[k]);
      ((double *)*content)[2 * k + 1] = (double)cimagl(all[k]);
    } else {
      ((float *)*content)[2 * k] = (float)creall(all[k]);
      ((float *)*content)[2 * k + 1] = (float)cimagl(all[k]);
    }
  }
  free(all);
  if (ok) return GRAFT_OK;
  free(*content);
  *content = NULL;
  return GRAFT_OUT_OF_MEMORY;
}

graft_status ocl_fft_table_get(graft_device *device, const ocl_fft_table *of, cl_mem *buffer) {
  return ocl_table_made(device, of, sizeof *of, make, of, buffer);
}
