/* A convolution of f32 as the kernels of GPUs see it (f32.c):
 *   place = output * mul + off + tap_number * tap;  input = place / div, where div divides it
 * A forward convolution has mul = stride, a transposed one div = stride. Missing dimensions are of size 1. */
typedef struct {
  long batch, groups, out_channels, in_channels; /* channels of one group */
  long out_size[3], in_size[3], taps[3], mul[3], off[3], tap[3], div[3];
  long step[3]; /* from one tap that a phase meets to the next */
  long weight_group, weight_out, weight_in; /* strides; taps are innermost and contiguous */
  long phases, depth, width;                /* K of the largest phase and output channels, rounded up */
  long panels_m, panels_n, splits, split_depth;
} window;

#define VOLUME(size) ((size)[0] * (size)[1] * (size)[2])

#ifndef FORWARD
/* The parts of a weight's gradient, added up in their order: one weight each. */
KERNEL_OF(64, 1) sum_splits(PLACE(weight), CONST_PLACE(parts), window s) {
  const long all = s.groups * s.out_channels * s.in_channels * VOLUME(s.taps), at = get_global_id(0);
  if (at >= all) return;
  __global const float *from = CONST_POINTER(D, parts) + at;
  float sum = 0;
  for (long split = 0; split < s.splits;) {
    float span = 0;
    for (const long end = min(split + 32, s.splits); split < end; split++) span += from[split * all];
    sum += span;
  }
  POINTER(D, weight)[at] = sum;
}
#endif
