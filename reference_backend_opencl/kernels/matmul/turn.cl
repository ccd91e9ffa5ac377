/* A factor of a product, copied so that K lies contiguously: rows of `pitch` elements, which begin at multiples of 16
 * bytes, with zeros beyond K. The head defines D, what it is read as, FACTOR_TYPE and FACTOR_BYTES, what it is written as,
 * and how, TURNED_NOT, TURNED_F16 or TURNED_TF32. A group turns SIDE rows and SIDE steps of K in local memory. */
typedef struct {
  long rows, depth, row_stride, depth_stride, batch_stride, pitch, tiles_rows, tiles_depth;
} turned;

#define SIDE 64
#define LANES 256
#define SHARE (SIDE * SIDE / LANES) /* elements of a work-item: one of each pass */
#define SLOW (LANES / SIDE)         /* lines of a pass */
#define ROW_WORDS (SIDE * FACTOR_BYTES / 4)
#define WORDS_PITCH (ROW_WORDS + 1) /* odd: neighbouring rows lie in other banks */
#define PITCH (WORDS_PITCH * 4 / FACTOR_BYTES)

#ifdef TURNED_TF32
/* To the nearest number of 11 bits, of two that are as near the larger; finite ones stay finite. A NaN's bits may all
 * lie where tensor cores do not look. */
static uint tf32_of(float x) {
  uint bits = as_uint(x), size = bits & 0x7fffffffu, sign = bits & 0x80000000u;
  uint rounded = min((size + 0x1000u) & 0xffffe000u, 0x7f7fe000u);
  return sign | (size < 0x7f800000u ? rounded : size == 0x7f800000u ? size : 0x7fc00000u);
}
#define TURNED(p) tf32_of(*(p))
#elif defined(TURNED_F16)
#define TURNED(p) to_f16(LOAD(D, __private, p))
#else
#define TURNED(p) (*(p))
#endif

KERNEL_OF(LANES, 1) turn(PLACE(work), CONST_PLACE(in), turned t) {
  __local uint words[SIDE * WORDS_PITCH];
  __local FACTOR_TYPE *tile = (__local FACTOR_TYPE *)words;
  const int lane = get_local_id(0);
  const long group = get_group_id(0), rest = group / t.tiles_depth, batch = rest / t.tiles_rows;
  const long depth = group % t.tiles_depth * SIDE, row = rest % t.tiles_rows * SIDE;
  const bool along = t.depth_stride == 1;
  __global const RAW(D) *from = CONST_POINTER(D, in) + batch * t.batch_stride;
  /* Beyond the edges the last is read again, so that no read waits for another. */
  const int quick = lane % SIDE, slow = lane / SIDE;
  const long quick_left = (along ? t.depth - depth : t.rows - row) - quick;
  const long slow_left = (along ? t.rows - row : t.depth - depth) - slow;
  const long quick_stride = along ? t.depth_stride : t.row_stride, slow_stride = along ? t.row_stride : t.depth_stride;
  from += row * t.row_stride + depth * t.depth_stride + (quick + min(quick_left - 1, (long)0)) * quick_stride;
  RAW(D) share[SHARE];
#pragma unroll
  for (int s = 0; s < SHARE; s++) share[s] = from[(slow + min((long)s * SLOW, slow_left - 1)) * slow_stride];
#pragma unroll
  for (int s = 0; s < SHARE; s++) {
    const int i = slow + s * SLOW;
    tile[along ? i * PITCH + quick : quick * PITCH + i] =
        quick_left > 0 && s * SLOW < slow_left ? (FACTOR_TYPE)TURNED(share + s) : (FACTOR_TYPE)0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  __global uint *to = (__global uint *)(work + offset_work) + ((batch * t.rows + row) * t.pitch + depth) * FACTOR_BYTES / 4;
#pragma unroll
  for (int s = 0; s < SIDE * ROW_WORDS / LANES; s++) {
    const int r = (s * LANES + lane) / ROW_WORDS, word = (s * LANES + lane) % ROW_WORDS;
    if (row + r < t.rows && depth + word * 4 / FACTOR_BYTES < t.pitch)
      to[r * t.pitch * FACTOR_BYTES / 4 + word] = words[r * WORDS_PITCH + word];
  }
}
