/* Fake quantization, after direct.cl: a piece is VEC elements. All is computed in CT from numbers of f32, as PyTorch has
 * it; so is 1 / scale, which is rounded correctly. */
#define LOW NUMBER(0)
#define HIGH NUMBER(1)
#define SCALE NUMBER(2)
#define INVERSE NUMBER(3)
#define ZERO_POINT NUMBER(4)
#define CHANNELS n.of[5]
#define INNER n.of[6] /* elements of a channel that lie together */
#define COUNT n.of[7] /* elements in all */

DEFINE_ACCESS(value, D)
DEFINE_ACCESS(truth, bool)
DEFINE_ACCESS(i32, i32)
DEFINE_ACCESS(f32, f32)
DEFINE_ACCESS(f16, f16)

/* Places among the integers, held to their range; NaN is the lowest of them. */
static VT held_between(VT at, CT low, CT high, __global uchar *mask, int lanes) {
  put_truth(mask, (at >= low) & (at <= high) ? (VT)1 : (VT)0, lanes);
  return at > low ? fmin(at, (VT)high) : (VT)low;
}

KERNEL fake_quantize(PLACE(out), PLACE(mask), CONST_PLACE(in), numbers n) {
  EACH_UNIT(unit) {
    const long i = unit * VEC;
    const int lanes = (int)min((long)VEC, COUNT - i);
    const VT at = ZERO_POINT + rint(get_value(CONST_POINTER(D, in) + i, lanes) * INVERSE);
    const VT held = held_between(at, LOW, HIGH, mask + offset_mask + i, lanes);
    const VEC_OF(float) value = CONVERT(float, held - ZERO_POINT) * (float)SCALE; /* of f64, too, a product of f32 */
    put_value(ELEMENTS(out) + i, CONVERT(CT, value), lanes);
  }
}

/* An integer zero point is added to what has been rounded, another one before that. */
#define ROUND_FIRST(zero, x) ((zero) + rint(x))
#define ROUND_LAST(zero, x) rint((zero) + (x))
#define FAKE_QUANTIZE_CHANNELS(dtype, place)                                                           \
  KERNEL fake_quantize_channels_##dtype(PLACE(out), PLACE(mask), CONST_PLACE(in), CONST_PLACE(scales), \
                                        CONST_PLACE(zeros), numbers n) {                               \
    EACH_UNIT(unit) {                                                                                  \
      const long i = unit * VEC;                                                                       \
      const int lanes = (int)min((long)VEC, COUNT - i);                                                \
      CT scale[VEC], inverse[VEC], zero[VEC];                                                          \
      for (int j = 0; j < VEC; j++) {                                                                  \
        const long run = divided(i + min(j, lanes - 1), INNER);                                        \
        const long channel = run - divided(run, CHANNELS) * CHANNELS;                                  \
        const float factor = ((__global const float *)(scales + offset_scales))[channel];              \
        scale[j] = (CT)factor;                                                                         \
        inverse[j] = (CT)(1.0f / factor);                                                              \
        zero[j] = one_##dtype(CONST_POINTER(dtype, zeros) + channel);                                  \
      }                                                                                                \
      const VT offset = VLOAD(zero);                                                                   \
      const VT at = place(offset, get_value(CONST_POINTER(D, in) + i, lanes) * VLOAD(inverse));        \
      const VT held = held_between(at, LOW, HIGH, mask + offset_mask + i, lanes);                      \
      put_value(ELEMENTS(out) + i, (held - offset) * VLOAD(scale), lanes);                             \
    }                                                                                                  \
  }
FAKE_QUANTIZE_CHANNELS(i32, ROUND_FIRST)
FAKE_QUANTIZE_CHANNELS(f32, ROUND_LAST)
FAKE_QUANTIZE_CHANNELS(f16, ROUND_LAST)
