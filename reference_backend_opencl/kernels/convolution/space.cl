/* A convolution as the kernels see it (ocl_space of convolution.h):
 *   place = output * mul + off + tap_number * tap;  input = place / div, where div divides it
 * A forward convolution has mul = stride, a transposed one div = stride. Missing dimensions are of size 1. */
typedef struct {
  long pitch, width, height, in_width, in_height; /* of a row; the output's and the input's own sizes */
  long rows, top, left;                           /* packed rows; the place of the first element */
  long start, down, across; /* where the first tap is, how far down the next row of taps is, taps of a row */
} plane;

typedef struct {
  long batch, groups, out_channels, in_channels; /* channels of one group */
  long steps;                                    /* of the input's channels, as they are packed: of PAIRS two at a time */
  long out_size[3], in_size[3], taps[3];
  long mul[3], off[3], tap[3], div[3];
  long step[3], move[3]; /* every so many taps one meets an element, that many behind the one before */
  long weight_group, weight_out, weight_in; /* strides; taps are innermost and contiguous */
  long phase, row, first;                   /* elements of a packed phase and row; the place its first element has */
  long segments, blocks, units, per_item, images;
  long splits, row_splits; /* parts whose sums are made apart: of the batch, and so many of its images' rows */
  plane plane;
} space;

DEFINE_ACCESS(value, D)
