#include "conformance/cases/families.h"

const cf_family *const cf_families[] = {
    &cf_pointwise, &cf_activations,   &cf_elementary, &cf_reduction,         &cf_scan,
    &cf_matmul,    &cf_convolution,   &cf_pooling,    &cf_normalization,     &cf_softmax,
    &cf_embedding, &cf_indexing,      &cf_scatter,    &cf_sorting,           &cf_shape,
    &cf_factory,   &cf_random_family, &cf_loss,       &cf_optimizer,         &cf_linalg,
    &cf_rnn,       &cf_attention,     &cf_resample,   &cf_normalization_rms, &cf_embedding_bag,
};
const uint32_t cf_family_count = sizeof cf_families / sizeof *cf_families;

/* Sizes 0, 1, 3, 13, 17, 33, 129, 1025 and ranks 0 to 6 all occur. */
const char *const cf_unary[] = {"s T[33,17]",   "m T[1025]",     "m T[]",          "m T[0]",
                                "m T[1]",       "m T[3]",        "m T[13]",        "m T[129]",
                                "m T[3,13,17]", "f T[2,3,1,17]", "f T[2,3,2,1,3]", "f T[2,1,3,2,2,3]",
                                "f T[33,0,3]",  "f T[129,33]",   "f T[1025,3]",    NULL};

const char *const cf_binary[] = {"s T[33,17] T[33,17]",
                                 "m T[33,17] T[17]",
                                 "m T[1025] T[1025]",
                                 "m T[13,1] T[17]",
                                 "m T[3,1,17] T[13,1]",
                                 "m T[33] 2",
                                 "m T[] T[33]",
                                 "m T[0] T[0]",
                                 "m T[1] T[1]",
                                 "m T[129] T[1]",
                                 "m T[] T[]",
                                 "m T[33,17] i64[17]=3",
                                 "f T[2,3,1,17] T[3,13,1]",
                                 "f T[2,3,2,1,3] T[3,1,5,3]",
                                 "f T[2,1,3,2,2,3] T[3,2,1,1]",
                                 "f T[0,3] T[3]",
                                 "f T[129,33] T[129,33]",
                                 "f T[1025,3] T[1025,1]",
                                 NULL};

const char *const cf_number[] = {"m T[33,17] 2",    "s T[1025] 3",        "m T[] 2", "m T[0] 2", "m T[129] 1",
                                 "f T[2,3,1,17] 3", "f T[2,1,3,2,2,3] 2", NULL};

const char *const cf_reduce_dims[] = {"s T[33,17] [1]",
                                      "m T[33,17] [0]",
                                      "m T[33,17] [0,1]",
                                      "m T[1025] [0] true",
                                      "m T[3,13,17] [1] true",
                                      "m T[0] [0]",
                                      "m T[13,129] [-1]",
                                      "m T[3,1,17] [1]",
                                      "m T[2,3,13,17] [0,2]",
                                      "m T[1025,3] [0]",
                                      "m T[33,17] _",
                                      "m T[] []",
                                      "m T[3,0,2] [1]",
                                      "f T[2,3,1,3,2,3] [0,3,5]",
                                      "f T[2,3,2,1,3] [1,4] true",
                                      "f T[129,1025] [1]",
                                      "f T[1] [0]",
                                      "f T[129,33] [0]",
                                      NULL};
