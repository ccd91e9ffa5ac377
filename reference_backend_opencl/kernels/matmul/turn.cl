/* A factor of a product, copied so that K lies contiguously: rows of `pitch` elements, which begin at multiples of 16
 * bytes, with zeros beyond K. The head defines D, what it is read as, ELEMENT and ELEMENT_BYTES, what it is written as,
 * and how, TURNED_NOT, TURNED_F16 or TURNED_TF32. A group turns SIDE rows and SIDE steps of K in local memory. */
typedef struct {
  long rows, depth, row_stride, depth_stride, batch_stride, pitch, tiles_rows, tiles_depth;
} turned;

#define SIDE 64
#define LANES 256
#define SHARE (SIDE * SIDE / LANES)
#define ROW_WORDS (SIDE * ELEMENT_BYTES / 4)
#define WORDS_PITCH (ROW_WORDS + 1) /* odd: neighbouring rows lie in other banks */

#ifdef TURNED_TF32
/* To the nearest number of 11 bits, of two that are as near the larger; finite ones stay finite. A NaN's bits may all
 * lie where tensor cores do not look. */
static uint tf32_of(float x) {
  uint bits = as_uint(x), size = bits & 0x7fffffffu, sign = bits & 0x80000000u;
  uint rounded = min((size + 0x1000u) & 0xffffe000u, 0x7f7fe000u);
  return sign | (size < 0x7f800000u ? rounded : size == 0x7f800000u ? size : 0x7fc00000u);
}
#define ONE(p) tf32_of(*(p))
#elif defined(TURNED_F16)
#define ONE(p) to_f16(LOAD(D, __global, p))
#else
#define ONE(p) (*(p))
#endif

KERNEL_OF(LANES, 1) turn(PLACE(work), CONST_PLACE(in), turned t) {
  __local uint words[SIDE * WORDS_PITCH];
  __local ELEMENT *tile = (__local ELEMENT *)words;
  const int lane = get_local_id(0);
  const long group = get_group_id(0), rest = group / t.tiles_depth, batch = rest / t.tiles_rows;
  const long depth = group % t.tiles_depth * SIDE, row = rest % t.tiles_rows * SIDE;
  const bool along = t.depth_stride == 1;
  __global const RAW(D) *from = CONST_POINTER(D, in) + batch * t.batch_stride;
  ELEMENT share[SHARE];
#pragma unroll
  for (int s = 0; s < SHARE; s++) {
    int at = s * LANES + lane, quick = at % SIDE, slow = at / SIDE;
    long r = row + (along ? slow : quick), k = depth + (along ? quick : slow);
    share[s] = 0;
    if (r < t.rows && k < t.depth) share[s] = (ELEMENT)ONE(from + r * t.row_stride + k * t.depth_stride);
  }
#pragma unroll
  for (int s = 0; s < SHARE; s++) {
    int at = s * LANES + lane, quick = at % SIDE, slow = at / SIDE;
    tile[(along ? slow : quick) * (WORDS_PITCH * 4 / ELEMENT_BYTES) + (along ? quick : slow)] = share[s];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  __global uint *to = (__global uint *)(work + offset_work) + ((batch * t.rows + row) * t.pitch + depth) * ELEMENT_BYTES / 4;
#pragma unroll
  for (int at = lane; at < SIDE * ROW_WORDS; at += LANES) {
    int r = at / ROW_WORDS, word = at % ROW_WORDS;
    if (row + r < t.rows && depth + word * 4 / ELEMENT_BYTES < t.pitch)
      to[r * t.pitch * ELEMENT_BYTES / 4 + word] = words[r * WORDS_PITCH + word];
  }
}
