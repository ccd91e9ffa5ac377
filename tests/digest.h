/* Digests of texts, for tables of them: each a number to which text after text is added; 0 before the first. */
#ifndef GRAFT_TESTS_DIGEST_H
#define GRAFT_TESTS_DIGEST_H

#include <inttypes.h>
#include <stdio.h>

#include "conformance/run/fill.h"

static inline uint64_t digest_with(uint64_t digest, const char *text) {
  return (digest ^ cf_hash(text)) * UINT64_C(0x9E3779B97F4A7C15);
}

/* A word each, with a space in front; -: nothing was added. */
static inline void digest_print(char *to, size_t capacity, const uint64_t *digests, int count) {
  size_t used = 0;
  for (int i = 0; i < count && used < capacity; i++) {
    const int length = digests[i] ? snprintf(to + used, capacity - used, " %08" PRIx64, digests[i] >> 32)
                                  : snprintf(to + used, capacity - used, " -");
    used += (size_t)length;
  }
}

#endif
