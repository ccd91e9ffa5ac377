/* The product by which runtime/nvidia.c sees whether tensor cores do what nvidia.cl says: 64 x 8 over 16 steps of K. */
static ushort whole_number(int value) { return (ushort)(as_uint((float)value) >> 16); }

static INLINED void put_local(uint at, ushort value) {
  __asm volatile("st.shared.u16 [%0], %1;" : : "r"(at), "h"(value) : "memory");
}

KERNEL_OF(128, 1) probe(__global float *out) {
  __local uchar strips[(64 + 8) * ROW_BYTES] __attribute__((aligned(1024)));
  uint a = local_address(strips), b = a + 64 * ROW_BYTES;
  int lane = get_local_id(0);
  for (int at = lane; at < (64 + 8) * 16; at += 128) {
    int row = at / 16, k = at % 16;
    uint place = swizzled(row, k / 8) + k % 8 * 2;
    put_local(a + place, whole_number(row < 64 ? (row + 3 * k) % 17 - 8 : (5 * (row - 64) + k) % 13 - 6));
  }
  tensor_fence();
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum[4] = {0, 0, 0, 0};
  tensor_begin();
  multiply_tensor(sum, descriptor(a, 0), descriptor(b, 0));
  tensor_commit();
  TENSOR_WAIT(0);
  int row = lane / 32 * 16 + lane % 32 / 4, column = lane % 4 * 2;
  for (int i = 0; i < 4; i++) out[(row + i / 2 * 8) * 8 + column + i % 2] = sum[i];
}
