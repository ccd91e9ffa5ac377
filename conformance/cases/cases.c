#include "conformance/cases/cases.h"

#include "conformance/cases/rows.h"

const cf_topic *const cf_topics[] = {
    &cf_topic_pointwise_arithmetic,
    &cf_topic_pointwise_bessel,
    &cf_topic_pointwise_complex,
    &cf_topic_pointwise_gamma,
    &cf_topic_pointwise_logic,
    &cf_topic_pointwise_elementary,
    &cf_topic_pointwise_activations,
    &cf_topic_pointwise_polynomials,
    &cf_topic_pointwise_special,
    &cf_topic_reduction,
    &cf_topic_scan,
    &cf_topic_matmul,
    &cf_topic_convolution,
    &cf_topic_pooling,
    &cf_topic_normalization,
    &cf_topic_softmax,
    &cf_topic_embedding,
    &cf_topic_indexing,
    &cf_topic_scatter,
    &cf_topic_sorting,
    &cf_topic_sparse,
    &cf_topic_shape,
    &cf_topic_factory,
    &cf_topic_fft,
    &cf_topic_quantized,
    &cf_topic_random,
    &cf_topic_loss,
    &cf_topic_optimizer,
    &cf_topic_linalg,
    &cf_topic_linalg_distances,
    &cf_topic_rnn_cells,
    &cf_topic_rnn_layers,
    &cf_topic_attention,
    &cf_topic_resample_taps,
    &cf_topic_resample_grid,
    &cf_topic_custom,
};
const uint32_t cf_topic_count = sizeof cf_topics / sizeof *cf_topics;

const cf_op *cf_case_op(const cf_case *c) {
  return &cf_topics[c->topic]->ops[c->op];
}

const char *cf_case_family(const cf_case *c) {
  return cf_topics[c->topic]->family;
}

const char *cf_case_text(const cf_case *c) {
  return cf_case_op(c)->texts[c->text] + 2;
}
