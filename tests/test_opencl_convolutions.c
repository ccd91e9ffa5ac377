/* Pointwise calls that the OpenCL backend makes in the kernel of the convolution before them give, to the bit, what the
 * calls give one by one; and where a convolution's kernels take none, these still run as they do alone. */
#include "opencl_groups.h"

#define ADDED(a, b) CALL(ADD_TENSOR, T(a), T(b))
#define TIMES(a, b) CALL(MUL_TENSOR, T(a), T(b))

enum { DIMS = 2, INPUTS = 6 };

typedef struct shape {
  const char *name;
  int64_t images, in, out, size[DIMS], window[DIMS], stride, padding, dilation, groups;
  bool transposed, infinite; /* infinite: a weight, which zeros of the padding spoil */
} shape;

typedef struct setting {
  const shape *of;
  graft_dtype dtype;
} setting;

/* Of the result, without output padding. */
static int64_t result_size(const shape *s, int d) {
  const int64_t reach = s->dilation * (s->window[d] - 1);
  return s->transposed ? (s->size[d] - 1) * s->stride - 2 * s->padding + reach + 1
                       : (s->size[d] + 2 * s->padding - reach - 1) / s->stride + 1;
}

/* --- programs: in: the input, a weight, a bias, a residual of the result's shape, a scale of channels, a variance ---
 */

static graft_tensor *convolved(graft_tensor **in, const shape *s, bool biased) {
  const graft_value none = {0};
  return CALL(CONVOLUTION, T(in[0]), T(in[1]), biased ? T(in[2]) : none, INTS(s->stride, s->stride),
              INTS(s->padding, s->padding), INTS(s->dilation, s->dilation), graft_value_bool(s->transposed), INTS(0, 0),
              INT(s->groups));
}

static graft_tensor *of_channels(graft_tensor *t) {
  return CALL(VIEW, T(t), INTS(1, t->sizes[0], 1, 1));
}

static void biased_relu(graft_tensor **in, graft_tensor **out, const void *what) {
  const setting *s = what;
  out[0] = retained(CALL(RELU, T(convolved(in, s->of, true))));
}

/* The bias is added behind it, as a call of its own; the sum in between is seen, too. */
static void scaled_residual(graft_tensor **in, graft_tensor **out, const void *what) {
  const setting *s = what;
  graft_tensor *scaled = ADDED(TIMES(convolved(in, s->of, false), of_channels(in[4])), of_channels(in[2]));
  out[0] = retained(scaled);
  out[1] = retained(CALL(HARDSWISH, T(ADDED(scaled, in[3]))));
}

/* A batch normalization as it is in inference, by the scale, the bias and what stands for statistics. */
static graft_tensor *normalized(graft_tensor *t, graft_tensor **in, graft_tensor **rstd) {
  graft_tensor *results[3] = {NULL, NULL, NULL};
  const graft_value args[] = {
      T(t), T(in[4]), T(in[2]), T(in[4]), T(in[5]), graft_value_float(0.1), graft_value_float(1e-3)};
  OK(graft_call(GRAFT_OP_NATIVE_BATCH_NORM_LEGIT_NO_TRAINING, args, ROWS(args), results, 3));
  for (int i = 0; i < 3; i++) later(results[i]);
  if (rstd) *rstd = retained(results[2]);
  return results[0];
}

static void normalized_residual(graft_tensor **in, graft_tensor **out, const void *what) {
  const setting *s = what;
  out[0] = retained(CALL(RELU, T(ADDED(normalized(convolved(in, s->of, false), in, NULL), in[3]))));
}

/* The statistics are seen, which only the op itself gives. */
static void normalized_and_seen(graft_tensor **in, graft_tensor **out, const void *what) {
  const setting *s = what;
  out[0] = retained(CALL(RELU, T(ADDED(normalized(convolved(in, s->of, true), in, &out[1]), in[3]))));
}

static void cast_silu(graft_tensor **in, graft_tensor **out, const void *what) {
  const setting *s = what;
  const graft_dtype other = s->dtype == GRAFT_F32 ? GRAFT_BF16 : GRAFT_F32;
  graft_tensor *result = convolved(in, s->of, true);
  out[0] = retained(CALL(GT_SCALAR, T(result), NUMBER(0)));
  out[1] = retained(CALL(SILU, T(cast(result, other))));
}

typedef struct followed {
  const char *name;
  calls_fn calls;
  uint32_t outputs, nodes;
} followed;
static const followed programs_of[] = {{"bias, relu", biased_relu, 1, 2},
                                       {"scale, bias, residual, hardswish", scaled_residual, 2, 5},
                                       {"batch norm, residual, relu", normalized_residual, 1, 4},
                                       {"batch norm that is seen", normalized_and_seen, 2, 2},
                                       {"mask, cast, silu", cast_silu, 2, 4}};

/* Small; rows and planes with tails; windows of one element as products; one channel a group; strides, dilation,
 * groups; transposed; images side by side; more taps than are unrolled; what zeros spoil. */
static const shape shapes_of[] = {
    {"one element", 1, 1, 1, {1, 1}, {1, 1}, 1, 0, 1, 1, false, false},
    {"small", 2, 3, 5, {6, 7}, {3, 3}, 1, 1, 1, 1, false, false},
    {"small, infinite", 2, 3, 5, {6, 7}, {3, 3}, 1, 1, 1, 1, false, true},
    {"planes", 2, 40, 24, {14, 14}, {3, 3}, 1, 1, 1, 1, false, false},
    {"planes, infinite", 2, 40, 24, {13, 7}, {3, 3}, 1, 1, 1, 1, false, true},
    {"long rows", 2, 16, 19, {9, 75}, {3, 3}, 1, 1, 1, 1, false, true},
    {"stride of two", 2, 24, 33, {20, 30}, {3, 3}, 2, 1, 1, 1, false, false},
    {"product", 3, 40, 24, {9, 11}, {1, 1}, 1, 0, 1, 1, false, true},
    {"depthwise", 2, 36, 36, {24, 41}, {3, 3}, 1, 1, 1, 36, false, false},
    {"depthwise, infinite", 2, 36, 72, {20, 37}, {5, 3}, 1, 2, 1, 36, false, true},
    {"groups, dilated", 2, 24, 36, {19, 17}, {3, 2}, 1, 2, 2, 3, false, false},
    {"transposed", 2, 24, 16, {11, 21}, {3, 3}, 2, 1, 1, 2, true, true},
    {"images side by side", 20, 40, 19, {5, 4}, {3, 3}, 1, 1, 1, 1, false, true},
    {"images side by side, transposed", 35, 24, 22, {3, 4}, {3, 3}, 2, 1, 1, 2, true, true},
    {"wide window", 2, 8, 9, {3, 60}, {1, 14}, 1, 0, 1, 1, false, false},
};

static graft_tensor *laid(double (*value)(int64_t, uint32_t), graft_dtype dtype, const int64_t size[4], uint32_t seed) {
  int64_t strides[4], count = 1;
  graft_tensor *t;
  for (int d = 3; d >= 0; count *= size[d--]) strides[d] = count;
  graft_tensor *all = filled_with(value, dtype, count, seed);
  OK(tns_new(all->storage, device, dtype, 4, size, strides, 0, &t));
  graft_tensor_release(all);
  return t;
}

/* Where the window meets an infinity beside zeros of the padding, these spoil a result. */
static double rarely_infinite_at(int64_t i, uint32_t seed) {
  return i % 401 == 6 ? INFINITY : plain_value_at(i, seed);
}

static double positive_value_at(int64_t i, uint32_t seed) {
  return 0.1 + fabs(plain_value_at(i, seed));
}

static void make_six(const setting *s, graft_tensor **in) {
  const shape *of = s->of;
  const int64_t first = of->transposed ? of->in : of->out, second = (of->transposed ? of->out : of->in) / of->groups;
  in[0] = laid(plain_value_at, s->dtype, (int64_t[]){of->images, of->in, of->size[0], of->size[1]}, 1);
  in[1] = laid(of->infinite ? rarely_infinite_at : plain_value_at, s->dtype,
               (int64_t[]){first, second, of->window[0], of->window[1]}, 2);
  in[2] = filled_with(plain_value_at, s->dtype, of->out, 3);
  in[3] = laid(plain_value_at, s->dtype, (int64_t[]){of->images, of->out, result_size(of, 0), result_size(of, 1)}, 4);
  in[4] = filled_with(plain_value_at, s->dtype, of->out, 5);
  in[5] = filled_with(positive_value_at, s->dtype, of->out, 6);
}

/* Nodes that run in groups: all, where the kernels take calls that follow; else those behind the convolution, if two.
 */
static void compare_shape(const followed *p, const setting *s, bool follows) {
  char name[128];
  snprintf(name, sizeof name, "%s, %s, %d bytes", p->name, s->of->name, (int)dt_bytes(s->dtype));
  graft_tensor *in[INPUTS], *same[INPUTS];
  make_six(s, in);
  make_six(s, same);
  const uint32_t behind = p->nodes - 1 > 1 ? p->nodes - 1 : 0;
  const way w = {p->calls, s, INPUTS, p->outputs, follows ? p->nodes : behind, 1, .at_least = true};
  compare(name, &w, in, same);
  release_all(in, INPUTS);
  release_all(same, INPUTS);
}

/* Which convolutions are made in kernels that take no calls: none with kernels for CPUs; those of f32 in registers; and
 * large ones of halves where there are tensor cores. */
static enum { NONE, OF_F32, OF_HALVES_TOO } alone;

static bool is_a_gpu(void) {
  graft_device_kind kind = GRAFT_DEVICE_KIND_OTHER;
  size_t size;
  return device && !graft_device_query(device, GRAFT_DEVICE_KIND, &kind, sizeof kind, &size) &&
         kind == GRAFT_DEVICE_KIND_GPU;
}

static void close_device(void) {
  OK(graft_backend_close(device->backend));
  device = NULL;
}

/* Portable kernels, which are the same on all GPUs; on others these would be those for CPUs. */
static void open_as_any_gpu(void) {
  static bool opened;
  alone = OF_F32;
  if (!opened) open_for_gpus();
  if (!opened && is_a_gpu()) {
    close_device();
    open_with("kernels=portable");
  }
  opened = true;
}

/* All that a GPU has; on others this would be the same again. */
static void open_as_this_gpu(void) {
  alone = OF_HALVES_TOO;
  open_for_gpus();
  if (device && !is_a_gpu()) close_device();
}

START_TEST(of_f32) {
  if (!device) return;
  for (size_t s = 0; s < ROWS(shapes_of); s++)
    compare_shape(&programs_of[_i], &(setting){&shapes_of[s], GRAFT_F32}, alone == NONE);
}
END_TEST

START_TEST(of_other_dtypes) {
  if (!device) return;
  static const graft_dtype dtypes[] = {GRAFT_BF16, GRAFT_F16, GRAFT_F64};
  static const int some[] = {2, 4, 7, 9, 12};
  for (size_t d = 0; d < ROWS(dtypes); d++) {
    if (dtypes[d] == GRAFT_F64 && programs_of[_i].calls == cast_silu) continue;
    const bool follows = alone != OF_HALVES_TOO || dtypes[d] == GRAFT_F64;
    for (size_t s = 0; s < ROWS(some); s++)
      compare_shape(&programs_of[_i], &(setting){&shapes_of[some[s]], dtypes[d]}, follows);
  }
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(of_f32, ROWS(programs_of)), EACH(of_other_dtypes, ROWS(programs_of)), {0}};
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1); /* tiles take PoCL's optimizer long */
  const suite_options cpus = on_one_device(open_for_cpus);
  const suite_options any_gpu = on_one_device(open_as_any_gpu), this_gpu = on_one_device(open_as_this_gpu);
  return run_suite("opencl_convolutions", tests, cpus) || run_suite("opencl_convolutions_of_any_gpu", tests, any_gpu) ||
         run_suite("opencl_convolutions_of_this_gpu", tests, this_gpu);
}
