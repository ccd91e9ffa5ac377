/* Up to n of four elements, zeros for the others. `whole`: they lie side by side, at a multiple of 16 bytes. */
static INLINED float4 take_four(__global const float *from, long stride, int n, bool whole) {
  if (whole && n == 4) return *(__global const float4 *)from;
  float4 v = (float4)0;
  if (n > 0) v.x = from[0];
  if (n > 1) v.y = from[stride];
  if (n > 2) v.z = from[2 * stride];
  if (n > 3) v.w = from[3 * stride];
  return v;
}
