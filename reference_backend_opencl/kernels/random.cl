/* Philox 4x32-10 and what is drawn from it. The numbers are the ABI's: element i takes word i mod 4 of the block with
 * counter offset/4 + i/4, f64 two words an element; so every backend draws the same ones.
 *
 * The head defines D (the dtype) and WIDE for f64. */
static uint4 philox(ulong counter, ulong seed) {
  uint4 c = (uint4)((uint)counter, (uint)(counter >> 32), 0, 0);
  uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  for (int round = 0; round < 10; round++) {
    uint high0 = mul_hi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
    uint high1 = mul_hi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
    c = (uint4)(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}

#ifdef WIDE
#define PER_BLOCK 2
#define DRAW(k) (((ulong)words[2 * (k) + 1] << 32 | words[2 * (k)]) >> 11) /* 53 bits */
#else
#define PER_BLOCK 4
#define DRAW(k) ((ulong)(words[k] >> 8)) /* 24 bits */
#endif

/* Keeps an element where its number lies below `threshold`, (1 - p) in the numbers' own unit: no rounding is left to
 * differ in. A work-item takes `blocks_per_item` blocks. */
__kernel __attribute__((reqd_work_group_size(LOCAL, 1, 1))) void dropout(
    __global uchar *out, ulong offset_out, __global uchar *mask, ulong offset_mask, __global const uchar *in,
    ulong offset_in, ulong seed, ulong first_block, ulong threshold, CT scale, ulong n, ulong blocks_per_item) {
  __global RAW(D) *to = (__global RAW(D) *)(out + offset_out);
  __global const RAW(D) *from = (__global const RAW(D) *)(in + offset_in);
  ulong block = get_global_id(0) * blocks_per_item, blocks = (n + PER_BLOCK - 1) / PER_BLOCK;
  ulong last = min(block + blocks_per_item, blocks);
  for (; block < last; block++) {
    uint words[4];
    vstore4(philox(first_block + block, seed), 0, words);
    ulong begin = block * PER_BLOCK;
    int count = (int)min(n - begin, (ulong)PER_BLOCK);
    for (int k = 0; k < count; k++) {
      uchar keep = DRAW(k) < threshold;
      CT v = LOAD(D, __global, from + begin + k);
      STORE(D, __global, to + begin + k, keep ? v * scale : (CT)0);
      mask[offset_mask + begin + k] = keep;
    }
  }
}
