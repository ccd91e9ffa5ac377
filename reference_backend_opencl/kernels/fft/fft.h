/* What the files of the family share. */
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
  int64_t lanes;  /* so many lanes have a transform of `size` points each (rows.cl), and roots of this order; 0: none */
  int64_t halves; /* and of their results, the first of so many halves of a line */
} ocl_fft_table;

/* Where the parts begin, in complex numbers; 0: not there. A turn is low[t mod 2^shift] high[t / 2^shift]. */
typedef struct ocl_fft_parts {
  int64_t count, shift, low, high, load_factors, store_factors, lanes, halves;
} ocl_fft_parts;

ocl_fft_parts ocl_fft_parts_of(const ocl_fft_table *of);
graft_status ocl_fft_table_get(graft_device *device, const ocl_fft_table *of, cl_mem *buffer);

/* ---- A plan ---- */

enum { OCL_FFT_BATCH_DIMS = OCL_DIMS_MAX, OCL_FFT_RADIX_BITS = 5, OCL_FFT_STEPS_MAX = 12 };

/* As in fft.cl and rows.cl. */
enum {
  OCL_FFT_FROM_REAL = 1,
  OCL_FFT_FROM_HALF = 2,
  OCL_FFT_TO_REAL = 4,
  OCL_FFT_SWAP_LOADED = 8,
  OCL_FFT_SWAP_STORED = 256
};

/* What a step reads or writes. */
typedef enum ocl_fft_place {
  OCL_FFT_SELF,
  OCL_FFT_OUT,
  OCL_FFT_HALF,
  OCL_FFT_WORK_0,
  OCL_FFT_WORK_1,
  OCL_FFT_PLACES
} ocl_fft_place;

typedef struct ocl_fft_step {
  ocl_kernel kernel;
  cl_mem table;
  ocl_fft_place from, to;
} ocl_fft_step;

typedef struct ocl_fft_memo {
  ocl_fft_step *steps;
  int count;
  uint64_t begins[OCL_FFT_PLACES], bytes; /* in the workspace, whose beginning is the tiles' */
} ocl_fft_memo;

/* A side of a dim's transform: a tensor, or work of this dim's own. */
typedef struct ocl_fft_side {
  ocl_fft_place where;
  const int64_t *strides; /* NULL: work */
  bool real;
} ocl_fft_side;

typedef struct ocl_fft_line {
  ocl_fft_side from, to;
  int64_t dim, points; /* of the whole line */
  int64_t points_out;
  int64_t load_flags, store_flags;
  double scale;
  bool backward;
} ocl_fft_line;

typedef struct ocl_fft_plan {
  ocl_fft_memo *memo;
  graft_device *device;
  const ocl_dtype *real;
  const int64_t *shape; /* of the dims that are not transformed */
  int64_t rank;
  uint64_t tile_bytes, work_bytes;      /* the most that any step takes */
  int64_t batches, batches_first, kept; /* of the line at hand: how its batches lie; kept: dims of these */
  int64_t size[OCL_FFT_BATCH_DIMS], in[OCL_FFT_BATCH_DIMS], out[OCL_FFT_BATCH_DIMS], dense[OCL_FFT_BATCH_DIMS];
} ocl_fft_plan;

/* Lanes of a CPU's tile. */
unsigned ocl_fft_vector(const ocl_fft_plan *plan);

/* Whether a CPU makes whole lines at a time, one or some side by side: see rows.cl. The batches are laid out. */
bool ocl_fft_rows_serve(const ocl_fft_plan *plan, const ocl_fft_line *line);
graft_status ocl_fft_add_rows(ocl_fft_plan *plan, const ocl_fft_line *line);

#endif
