/* Philox 4x32-10: the four words of the block with this counter. */
static uint4 philox_of(ulong counter, uint high, ulong seed) {
  uint4 c = (uint4)((uint)counter, (uint)(counter >> 32), high, 0);
  uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  for (int round = 0; round < 10; round++) {
    uint high0 = mul_hi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
    uint high1 = mul_hi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
    c = (uint4)(high1 ^ c.y ^ key.x, low1, high0 ^ c.w ^ key.y, low0);
    key += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
static uint4 philox(ulong counter, ulong seed) { return philox_of(counter, 0, seed); }
