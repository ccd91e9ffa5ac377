/* Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the numbers that libgraft
 * draws from the same seed at the same place. */
#ifndef TINY_RANDOM_H
#define TINY_RANDOM_H

#include <stdint.h>

static inline void tiny_philox_block(uint64_t seed, uint64_t block, uint32_t words[4]) {
  uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  uint32_t w[4] = {(uint32_t)block, (uint32_t)(block >> 32), 0, 0};
  for (int32_t round = 0; round < 10; round++) {
    const uint64_t a = (uint64_t)w[0] * 0xD2511F53u, b = (uint64_t)w[2] * 0xCD9E8D57u;
    w[0] = (uint32_t)(b >> 32) ^ w[1] ^ key[0];
    w[1] = (uint32_t)b;
    w[2] = (uint32_t)(a >> 32) ^ w[3] ^ key[1];
    w[3] = (uint32_t)a;
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  for (int32_t i = 0; i < 4; i++) words[i] = w[i];
}

/* Uniform from 0 to below 1, of 24 bits. state: the seed, and how many words were drawn, in whole blocks. */
static inline void tiny_rand_f32(int32_t count, uint64_t state[2], float *out) {
  for (int32_t at = 0; at < count; at += 4, state[1] += 4) {
    uint32_t words[4];
    tiny_philox_block(state[0], state[1] / 4, words);
    for (int32_t i = 0; i < 4 && at + i < count; i++) out[at + i] = (float)(words[i] >> 8) * 0x1p-24f;
  }
}

#endif
