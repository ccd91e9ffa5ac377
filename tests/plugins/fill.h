/* What the test plugins fill memory with: a pattern of 1, 2, 4, 8 or 16 bytes, again and again. */
#ifndef GRAFT_TEST_FILL_H
#define GRAFT_TEST_FILL_H

#include <stdint.h>
#include <string.h>

/* By blocks of many patterns: an unoptimized build of the tests fills gigabytes. */
static inline void fill_with(char *to, uint64_t bytes, const void *pattern, uint32_t pattern_bytes) {
  enum { BLOCK = 64 };
  char block[BLOCK];
  for (uint32_t i = 0; i < BLOCK; i += pattern_bytes) memcpy(block + i, pattern, pattern_bytes);
  uint64_t done = 0;
  for (; done + BLOCK <= bytes; done += BLOCK) memcpy(to + done, block, BLOCK);
  memcpy(to + done, block, bytes - done);
}

#endif
