/* What the passes of a Fourier transform read beside their input (tables.c). */
#ifndef OCL_FFT_H
#define OCL_FFT_H

#include "runtime/ocl.h"

enum { OCL_FFT_DIRECT = 4096 }; /* so many roots are one table; more are products of two, from a table each */

/* Which table, of int64_t alone, so that its bytes are a key. */
typedef struct ocl_fft_table {
  int64_t wide;                          /* f64 */
  int64_t size;                          /* roots of this order */
  int64_t turns;                         /* and those of this one, for the passes behind; 0: none */
  int64_t chirp;                         /* points of a line that is a convolution; 0: it is not */
  int64_t length;                        /* which has this length */
  int64_t chirp_in, chirp_out, spectrum; /* what of it this pass reads */
} ocl_fft_table;

/* Where the parts begin, in complex numbers; 0: not there. A turn is low[t mod 2^shift] high[t / 2^shift]. */
typedef struct ocl_fft_parts {
  int64_t count, shift, low, high, load_factors, store_factors;
} ocl_fft_parts;

ocl_fft_parts ocl_fft_parts_of(const ocl_fft_table *of);
graft_status ocl_fft_table_get(graft_device *device, const ocl_fft_table *of, cl_mem *buffer);

#endif
