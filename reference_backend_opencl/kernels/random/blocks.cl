/* BLOCKS of philox.cl at once, their words one after the other. */
#ifdef IS_CPU
#define BLOCKS 8
static void draw_blocks(ulong counter, ulong seed, uint *words) {
  ulong8 counters = (ulong8)counter + (ulong8)(0, 1, 2, 3, 4, 5, 6, 7);
  uint8 x = convert_uint8(counters), y = convert_uint8(counters >> 32), z = (uint8)0, w = (uint8)0;
  uint key0 = (uint)seed, key1 = (uint)(seed >> 32), lanes[4][BLOCKS];
  for (int round = 0; round < 10; round++) {
    /* mul_hi takes PoCL several times as long. */
    const ulong8 first = convert_ulong8(x) * 0xD2511F53ul, second = convert_ulong8(z) * 0xCD9E8D57ul;
    const uint8 high0 = convert_uint8(first >> 32), low0 = convert_uint8(first);
    const uint8 high1 = convert_uint8(second >> 32), low1 = convert_uint8(second);
    x = high1 ^ y ^ key0;
    y = low1;
    z = high0 ^ w ^ key1;
    w = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  vstore8(x, 0, lanes[0]);
  vstore8(y, 0, lanes[1]);
  vstore8(z, 0, lanes[2]);
  vstore8(w, 0, lanes[3]);
#pragma unroll
  for (int b = 0; b < BLOCKS; b++) {
#pragma unroll
    for (int k = 0; k < 4; k++) words[4 * b + k] = lanes[k][b];
  }
}
#else
#define BLOCKS 1
static void draw_blocks(ulong counter, ulong seed, uint *words) { vstore4(philox(counter, seed), 0, words); }
#endif
