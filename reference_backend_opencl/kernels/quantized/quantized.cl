/* Fake quantization, after direct.cl: a piece is an element. All is computed in CT from numbers of f32, as PyTorch has
 * it; so is 1 / scale, which is rounded correctly. */
#define LOW NUMBER(0)
#define HIGH NUMBER(1)
#define SCALE NUMBER(2)
#define INVERSE NUMBER(3)
#define ZERO_POINT NUMBER(4)
#define CHANNELS n.of[5]
#define INNER n.of[6] /* elements of a channel that lie together */

/* A place among the integers, held to their range; NaN is the lowest of them. */
static CT held_between(CT at, CT low, CT high, __global uchar *mask) {
  *mask = at >= low && at <= high;
  return at > low ? fmin(at, high) : low;
}

KERNEL fake_quantize(PLACE(out), PLACE(mask), CONST_PLACE(in), numbers n) {
  EACH_UNIT(i) {
    const CT at = ZERO_POINT + rint(GET(CONST_POINTER(D, in) + i) * INVERSE);
    const CT held = held_between(at, LOW, HIGH, mask + offset_mask + i);
    PUT(ELEMENTS(out) + i, (CT)((float)(held - ZERO_POINT) * (float)SCALE)); /* of f64, too, a product of f32 */
  }
}

/* An integer zero point is added to what has been rounded, another one before that. */
#define ROUND_FIRST(zero, x) ((zero) + rint(x))
#define ROUND_LAST(zero, x) rint((zero) + (x))
#define FAKE_QUANTIZE_CHANNELS(dtype, place)                                                           \
  KERNEL fake_quantize_channels_##dtype(PLACE(out), PLACE(mask), CONST_PLACE(in), CONST_PLACE(scales), \
                                        CONST_PLACE(zeros), numbers n) {                               \
    EACH_UNIT(i) {                                                                                     \
      const long channel = i / INNER % CHANNELS;                                                       \
      const float scale = ((__global const float *)(scales + offset_scales))[channel];                 \
      const CT zero = LOAD(dtype, __global, CONST_POINTER(dtype, zeros) + channel);                    \
      const CT at = place(zero, GET(CONST_POINTER(D, in) + i) * (CT)(1.0f / scale));                   \
      const CT held = held_between(at, LOW, HIGH, mask + offset_mask + i);                             \
      PUT(ELEMENTS(out) + i, (held - zero) * (CT)scale);                                               \
    }                                                                                                  \
  }
FAKE_QUANTIZE_CHANNELS(i32, ROUND_FIRST)
FAKE_QUANTIZE_CHANNELS(f32, ROUND_LAST)
FAKE_QUANTIZE_CHANNELS(f16, ROUND_LAST)
