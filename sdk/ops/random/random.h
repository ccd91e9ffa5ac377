/* What the files of the family random share. */
#ifndef GRAFT_SDK_RANDOM_H
#define GRAFT_SDK_RANDOM_H

#include "ops/core/op.h"
#include "ops/core/ref.h"

/* 32-bit words that n elements of a dtype draw, rounded up to whole blocks. */
uint64_t rnd_words_for(int64_t n, graft_dtype dtype);
/* An element's uniform and normal number for arithmetic: half types and integers compute with that of f32. */
ref_real rnd_uniform(const graft_philox *p, graft_dtype dtype, uint64_t element);
/* The same, where 0 counts as the next number: never 0. */
ref_real rnd_uniform_above(const graft_philox *p, graft_dtype dtype, uint64_t element);
ref_real rnd_normal(const graft_philox *p, graft_dtype dtype, uint64_t element);
typedef ref_real (*rnd_fn)(const graft_philox *p, graft_dtype dtype, uint64_t element);
/* out = a + b * number; both parts of a complex one alike. */
graft_status rnd_draw(const graft_tensor_desc *out, const graft_philox *p, rnd_fn fn, ref_real a, ref_real b);

#endif
