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

/* A gamma variate as exec.h says, and how it came about: z, of this radius, gave y = 1 + c z, and the value is d y^3 e
 * to the power of boost. slack: by how many unit roundoffs the arithmetic may be off before an attempt is decided
 * otherwise. */
enum { RND_GAMMA_ATTEMPTS = 64 };
typedef struct rnd_gamma {
  ref_real value, y, c, radius, boost, slack;
} rnd_gamma;
rnd_gamma rnd_gamma_of(const graft_philox *p, graft_dtype dtype, ref_real shape, uint64_t element);

#endif
