/* What the files of cases/ share. Each has the rows of a family, or of a topic of one, as a table that ends in
 * CF_TOPIC; cases.c lists them. */
#ifndef GRAFT_CF_ROWS_H
#define GRAFT_CF_ROWS_H

#include <math.h>

#include "conformance/judge/tolerance.h"

#define CF_TOPIC(symbol, family, rows) \
  const cf_topic cf_topic_##symbol = {family, __FILE__, rows, sizeof(rows) / sizeof *(rows)}

extern const cf_topic cf_topic_attention, cf_topic_convolution, cf_topic_embedding, cf_topic_factory, cf_topic_fft,
    cf_topic_indexing, cf_topic_linalg, cf_topic_linalg_distances, cf_topic_loss, cf_topic_matmul,
    cf_topic_normalization, cf_topic_optimizer, cf_topic_pointwise_activations, cf_topic_pointwise_arithmetic,
    cf_topic_pointwise_bessel, cf_topic_pointwise_complex, cf_topic_pointwise_elementary, cf_topic_pointwise_gamma,
    cf_topic_pointwise_logic, cf_topic_pointwise_polynomials, cf_topic_pointwise_special, cf_topic_pooling,
    cf_topic_quantized, cf_topic_random, cf_topic_reduction, cf_topic_resample_grid, cf_topic_resample_taps,
    cf_topic_rnn_cells, cf_topic_rnn_layers, cf_topic_scan, cf_topic_scatter, cf_topic_shape, cf_topic_softmax,
    cf_topic_sorting, cf_topic_sparse;

/* Of ops that plugins bring: run/custom_rows.c fills in the rows of those that are there. */
extern cf_topic cf_topic_custom;

/* How many u a lerp of a and b (moduli, and those of w and of 1 - w) is off: a + w (b - a), or a (1 - w) + w b, 2 of
 * |a| + |w| (|a| + |b|); b - (b - a) (1 - w), as PyTorch does it for weights from 1/2 on, 3 of |1 - w| (|a| + |b|). */
static inline long double cf_lerp_terms(long double a, long double b, long double w, long double rest) {
  return fmaxl(2 * (a + w * (a + b)), 3 * rest * (a + b));
}

/* As many dims as a tensor has at most, and all of these but the last one. */
#define CF_MOST_BUT_ONE "2,1,3,1,1,1,1,1,1,1,1,1,1,1,2"
#define CF_MOST_DIMS    "T[" CF_MOST_BUT_ONE ",3]"

/* Argument texts that many rows share (texts.c). */
extern const char *const cf_unary[], *const cf_binary[], *const cf_number[], *const cf_reduce_dims[];

#endif
