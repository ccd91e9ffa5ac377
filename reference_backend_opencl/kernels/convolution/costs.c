/* What the ways of a convolution cost on CPUs. */
#include "kernels/convolution/convolution.h"

/* In multiplications of a vector: to pack one; to bring a weight to its tile; and those of a gradient's tile, which
 * reads a vector for two of them, in its own place. */
#define PACKED     4
#define WEIGHT     4
#define IN_SQUARES 1.8

/* Of a tile one vector wide: up to so many channels. */
enum { NARROW_TILE = 8 };

/* How many k of [0, count) have 0 <= k * step + first < end. */
static int64_t count_inside(int64_t count, int64_t step, int64_t first, int64_t end) {
  const int64_t low = first < 0 ? ocl_ceil_divide(-first, step) : 0;
  const int64_t high = end > first ? ocl_ceil_divide(end - first, step) : 0;
  const int64_t last = high < count ? high : count;
  return last > low ? last - low : 0;
}

double ocl_met_taps(const ocl_space *s, int d) {
  double pairs = 0;
  for (int64_t k = 0; k < s->taps[d]; k++) {
    const int64_t shift = s->off[d] + k * s->tap[d];
    pairs += (double)(s->div[d] == 1 ? count_inside(s->out_size[d], s->mul[d], shift, s->in_size[d])
                                     : count_inside(s->in_size[d], s->div[d], -shift, s->out_size[d]));
  }
  return pairs;
}

/* Wider than a register. */
static double registers_of(const graft_device *device, const ocl_dtype *dtype, int64_t vec) {
  const int64_t bytes = vec * (dtype->bytes < 4 ? 4 : dtype->bytes), most = 4 * (int64_t)device->vector_width;
  return bytes > most ? (double)bytes / (double)most : 1;
}

/* Multiplications of a vector by one weight of each output channel of a group. */
static double vectors_of(const ocl_space *s) {
  const double rows = ocl_met_taps(s, 0) * ocl_met_taps(s, 1) * (double)(s->batch * s->groups);
  return rows * (double)(s->taps[2] * s->segments * s->steps);
}

static double packing_of(const ocl_space *s, int64_t vec) {
  return PACKED * (double)(s->batch * s->groups * s->steps * s->in_size[0] * s->in_size[1]) *
         (double)ocl_ceil_divide(s->row, vec);
}

double ocl_rows_cost(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s, int64_t vec, int64_t wide,
                     int64_t tile) {
  const double channels = (double)(s->blocks * tile);
  const double weights = channels * (double)(s->groups * s->steps * ocl_volume(s->taps));
  const double each = tile > NARROW_TILE ? 1 : OCL_NARROW; /* so many channels use a vector as often as two do */
  const double products = vectors_of(s) * channels * (wide > 1 ? (double)wide : each);
  return registers_of(device, dtype, vec) * (products + packing_of(s, vec)) + WEIGHT * weights;
}

double ocl_squares_cost(const graft_device *device, const ocl_dtype *dtype, const ocl_space *s, const ocl_space *outs,
                        int64_t vec, int64_t tile) {
  const double channels = (double)(s->blocks * tile) * (double)ocl_round_up(s->in_channels, tile);
  const double products = vectors_of(s) / (double)s->steps * channels * IN_SQUARES;
  return registers_of(device, dtype, vec) * (products + packing_of(s, vec) + packing_of(outs, vec));
}
