/* BLOCKS of philox.cl at once, their words one after the other. */
#ifdef IS_CPU
#define BLOCKS 8
/* A word is the lower half of a lane of 64 bits, what stands above it nobody looks at: so a product's halves need no lane
 * of their own, and a round is two multiplications, two shifts and the sums. mul_hi takes PoCL several times as long. */
#define LOW_HALF 0xFFFFFFFFul
static void draw_blocks(ulong counter, ulong seed, uint *words) {
  ulong8 x = (ulong8)counter + (ulong8)(0, 1, 2, 3, 4, 5, 6, 7), y = x >> 32, z = (ulong8)0, w = (ulong8)0;
  uint key0 = (uint)seed, key1 = (uint)(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; round++) {
    const ulong8 first = (x & LOW_HALF) * 0xD2511F53ul, second = (z & LOW_HALF) * 0xCD9E8D57ul;
    x = (second >> 32) ^ y ^ key0;
    y = second;
    z = (first >> 32) ^ w ^ key1;
    w = first;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  const ulong8 front = (x & LOW_HALF) | y << 32, back = (z & LOW_HALF) | w << 32;
  vstore16(as_uint16((ulong8)(front.s0, back.s0, front.s1, back.s1, front.s2, back.s2, front.s3, back.s3)), 0, words);
  vstore16(as_uint16((ulong8)(front.s4, back.s4, front.s5, back.s5, front.s6, back.s6, front.s7, back.s7)), 1, words);
}
#else
#define BLOCKS 1
static void draw_blocks(ulong counter, ulong seed, uint *words) { vstore4(philox(counter, seed), 0, words); }
#endif
