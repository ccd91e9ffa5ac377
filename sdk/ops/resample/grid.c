/* Sampling at the points of a grid: grid_sampler in two and three dims, and its gradients. A point has a coordinate for
 * each dim of the image, the last dim's first; -1 to 1 is the image's extent. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

typedef struct grid_row {
  uint32_t backward; /* the op of the gradient; 0: this is one */
  int dims;
} grid_row;

enum { MOST_DIMS = 3, MOST_TAPS = 4 };
typedef enum interpolation { LINEAR, NEAREST, CUBIC, INTERPOLATIONS } interpolation;
typedef enum padding { ZEROS, BORDER, REFLECTION, PADDINGS } padding;

/* --- rules --- */

static graft_status check_mode(op_call *c, const char *name, int64_t modes) {
  int64_t mode = op_value_named(c->schema, c->args, name)->as.i;
  if (mode >= 0 && mode < modes) return GRAFT_OK;
  return op_error(c, "%s is %lld; expected 0 to %lld", name, (long long)mode, (long long)modes - 1);
}

static graft_status check(op_call *c, int dims, int input, int grid) {
  const graft_tensor *x = op_tensor(c, input), *points = op_tensor(c, grid);
  graft_status status = op_check_floating(c, input);
  if (!status) status = op_check_same_dtype(c, input, grid);
  if (status) return status;
  bool fits = x->ndim == dims + 2;
  for (int32_t i = 2; fits && i < x->ndim; i++) fits = x->sizes[i] > 0;
  if (!fits) return op_refuse(c, input, "%d spatial dims, none of them empty, behind batch and channels", dims);
  if (points->ndim != dims + 2 || points->sizes[0] != x->sizes[0] || points->sizes[dims + 1] != dims)
    return op_refuse(c, grid, "input's batch, %d dims of points and %d coordinates last", dims, dims);
  status = check_mode(c, "interpolation_mode", dims == 2 ? INTERPOLATIONS : CUBIC);
  return status ? status : check_mode(c, "padding_mode", PADDINGS);
}

/* [batch, channels, points...] */
static void sampled_sizes(const graft_tensor *x, const graft_tensor *points, int64_t *sizes) {
  sizes[0] = x->sizes[0];
  sizes[1] = x->sizes[1];
  for (int32_t i = 2; i < x->ndim; i++) sizes[i] = points->sizes[i - 1];
}

static graft_status infer_forward(op_call *c) {
  const grid_row *row = c->def->row;
  int64_t sizes[MOST_DIMS + 2];
  graft_status status = check(c, row->dims, ARG_grid_sampler_2d_input, ARG_grid_sampler_2d_grid);
  if (status) return status;
  const graft_tensor *x = op_tensor(c, ARG_grid_sampler_2d_input);
  sampled_sizes(x, op_tensor(c, ARG_grid_sampler_2d_grid), sizes);
  c->compute = x->dtype;
  op_out(c, OUT, x->dtype, x->ndim, sizes);
  return GRAFT_OK;
}

static graft_status infer_backward(op_call *c) {
  enum { GRAD = ARG_grid_sampler_2d_backward_grad_output, INPUT = ARG_grid_sampler_2d_backward_input };
  const grid_row *row = c->def->row;
  int64_t sizes[MOST_DIMS + 2];
  graft_status status = check(c, row->dims, INPUT, ARG_grid_sampler_2d_backward_grid);
  if (!status) status = op_check_same_dtype(c, INPUT, GRAD);
  if (status) return status;
  const graft_tensor *x = op_tensor(c, INPUT), *points = op_tensor(c, ARG_grid_sampler_2d_backward_grid);
  sampled_sizes(x, points, sizes);
  if (!tns_has_sizes(op_tensor(c, GRAD), x->ndim, sizes))
    return op_error(c, "grad_output has not the shape of the result (%s)", op_show_tensors(c));
  const uint8_t *mask = op_value_named(c->schema, c->args, "output_mask")->as.mask;
  c->compute = x->dtype;
  c->out_wanted[OUT_grid_sampler_2d_backward_out0] = mask[OUT_grid_sampler_2d_backward_out0];
  c->out_wanted[OUT_grid_sampler_2d_backward_out1] = mask[OUT_grid_sampler_2d_backward_out1];
  op_out(c, OUT_grid_sampler_2d_backward_out0, x->dtype, x->ndim, x->sizes);
  op_out(c, OUT_grid_sampler_2d_backward_out1, x->dtype, points->ndim, points->sizes);
  return GRAFT_OK;
}

/* --- a call, from its args struct --- */

typedef struct sampling {
  int dims;
  interpolation interpolation;
  padding padding;
  bool align;
  int64_t batch, channels, size[MOST_DIMS]; /* of the image; dims in front that it lacks are 1 */
  int64_t pixels, points;                   /* of an image, and of its grid */
  const graft_tensor_desc *input, *grid, *grad_output, *out, *to_input, *to_grid;
} sampling;

static sampling sampling_of(const void *args) {
  const grid_row *row = op_row(((const graft_args *)args)->op_id);
  sampling s = {.dims = row->dims, .pixels = 1, .points = 1};
  int64_t interpolation_mode = 0, padding_mode = 0;
  uint8_t align = 0;
  ref_field(args, "interpolation_mode", &interpolation_mode, sizeof interpolation_mode);
  ref_field(args, "padding_mode", &padding_mode, sizeof padding_mode);
  ref_field(args, "align_corners", &align, sizeof align);
  ref_field(args, "input", &s.input, sizeof s.input);
  ref_field(args, "grid", &s.grid, sizeof s.grid);
  ref_field(args, "grad_output", &s.grad_output, sizeof s.grad_output);
  ref_field(args, "out", &s.out, sizeof s.out);
  ref_field(args, "out0", &s.to_input, sizeof s.to_input);
  ref_field(args, "out1", &s.to_grid, sizeof s.to_grid);
  s.interpolation = (interpolation)interpolation_mode;
  s.padding = (padding)padding_mode;
  s.align = align != 0;
  s.batch = s.input->dl.shape[0];
  s.channels = s.input->dl.shape[1];
  for (int d = 0, front = MOST_DIMS - s.dims; d < MOST_DIMS; d++) {
    s.size[d] = d < front ? 1 : s.input->dl.shape[2 + d - front];
    s.pixels *= s.size[d];
    if (d >= front) s.points *= s.grid->dl.shape[1 + d - front];
  }
  return s;
}

/* --- one dim of a point --- */

/* What a point reads along a dim: elements (-1: none, a zero), their weights, and how these change with the coordinate.
 */
typedef struct axis {
  int count;
  int64_t at[MOST_TAPS];
  ref_real weight[MOST_TAPS], slope[MOST_TAPS];
} axis;

/* Mirrored at low and high, given as their doubles, as often as it takes. *slope: 1 or -1. */
static ref_real mirrored(ref_real x, int64_t twice_low, int64_t twice_high, ref_real *slope) {
  *slope = twice_low == twice_high ? 0 : x < twice_low / 2.0L ? -1 : 1;
  if (twice_low == twice_high) return 0;
  ref_real low = twice_low / 2.0L, span = (twice_high - twice_low) / 2.0L, far = fabsl(x - low);
  ref_real extra = fmodl(far, span), flips = floorl(far / span);
  if (fmodl(flips, 2) == 0) return extra + low;
  *slope = -*slope;
  return span - extra + low;
}

/* Brought into the image, unless what lies outside is zero. NaN becomes 0. */
static ref_real inside(const sampling *s, ref_real x, int64_t size, ref_real *slope) {
  *slope = 1;
  if (s->padding == ZEROS) return x;
  if (s->padding == REFLECTION)
    x = s->align ? mirrored(x, 0, 2 * (size - 1), slope) : mirrored(x, -1, 2 * size - 1, slope);
  if (!(x > 0 && x < (ref_real)(size - 1))) *slope = 0;
  return fminl(fmaxl(x, 0), (ref_real)(size - 1));
}

static int64_t element(ref_real x, int64_t size) {
  return x >= 0 && x < (ref_real)size ? (int64_t)x : -1;
}

/* Keys' cubic convolution with -0.75, and its slope. */
static ref_real cubic(ref_real x, ref_real *slope) {
  const ref_real a = -0.75L, far = fabsl(x), side = x < 0 ? -1 : 1;
  *slope = side * (far < 1 ? (3 * (a + 2) * far - 2 * (a + 3)) * far : a * ((3 * far - 10) * far + 8));
  return far < 1 ? ((a + 2) * far - (a + 3)) * far * far + 1 : ((far - 5) * far + 8) * far * a - 4 * a;
}

static axis axis_of(const sampling *s, ref_real coordinate, int64_t size) {
  ref_real scale = (s->align ? size - 1 : size) / 2.0L, turn, ignored;
  ref_real x = s->align ? (coordinate + 1) * scale : (coordinate + 1) * scale - 0.5L;
  axis a = {.count = s->interpolation == NEAREST ? 1 : s->interpolation == LINEAR ? 2 : 4};
  if (s->interpolation != CUBIC) x = inside(s, x, size, &turn);
  ref_real low = s->interpolation == NEAREST ? rintl(x) : floorl(x);
  for (int k = 0; k < a.count; k++) {
    if (s->interpolation == CUBIC) {
      a.weight[k] = cubic(x - low + 1 - k, &a.slope[k]);
      a.slope[k] *= scale;
      a.at[k] = element(inside(s, low - 1 + k, size, &ignored), size);
    } else {
      a.weight[k] = a.count == 1 ? 1 : k ? x - low : low + 1 - x;
      a.slope[k] = a.count == 1 ? 0 : (k ? 1 : -1) * scale * turn;
      a.at[k] = element(low + k, size);
    }
  }
  return a;
}

/* --- a point --- */

/* Outside of the image the pixel is -1, and its value 0. */
typedef struct tap {
  int64_t pixel;
  ref_real weight, slope[MOST_DIMS];
} tap;

enum { TAPS = MOST_TAPS * MOST_TAPS * MOST_TAPS };

/* What the point with these coordinates reads; returns how many taps. In two dims those outside of the image are of
 * them, so that a weight of NaN counts, as with PyTorch; in three it passes over them. */
static int taps_of(const sampling *s, const ref_real *point, tap *taps) {
  axis a[MOST_DIMS];
  int count = 0;
  for (int d = 0; d < MOST_DIMS; d++) {
    a[d] = (axis){.count = 1, .weight = {1}};
    if (d >= MOST_DIMS - s->dims) a[d] = axis_of(s, point[MOST_DIMS - 1 - d], s->size[d]);
  }
  for (int i = 0; i < a[0].count; i++) {
    for (int j = 0; j < a[1].count; j++) {
      for (int k = 0; k < a[2].count; k++) {
        bool outside = a[0].at[i] < 0 || a[1].at[j] < 0 || a[2].at[k] < 0;
        if (outside && s->dims == 3) continue;
        int64_t pixel = (a[0].at[i] * s->size[1] + a[1].at[j]) * s->size[2] + a[2].at[k];
        ref_real u = a[0].weight[i], v = a[1].weight[j], w = a[2].weight[k];
        taps[count++] = (tap){
            outside ? -1 : pixel, u * v * w, {a[0].slope[i] * v * w, u * a[1].slope[j] * w, u * v * a[2].slope[k]}};
      }
    }
  }
  return count;
}

/* --- kernels --- */

static ref_real value_of(const ref_array *x, int64_t first, const tap *t) {
  return t->pixel < 0 ? 0 : x->re[first + t->pixel];
}

static graft_status sample(const graft_exec *exec, const void *args) {
  sampling s = sampling_of(args);
  REF_OWNED ref_array x = ref_read(s.input), grid = ref_read(s.grid), to = ref_new(ref_numel(s.out), false);
  if (!(x.re && grid.re && to.re)) return ref_no_memory();
  for (int64_t i = 0; i < s.batch * s.points; i++) {
    tap taps[TAPS];
    int count = taps_of(&s, grid.re + i * s.dims, taps);
    for (int64_t c = 0; c < s.channels; c++) {
      int64_t plane = i / s.points * s.channels + c;
      ref_real weights[TAPS], values[TAPS];
      for (int k = 0; k < count; k++) {
        weights[k] = taps[k].weight;
        values[k] = value_of(&x, plane * s.pixels, &taps[k]);
      }
      to.re[plane * s.points + i % s.points] = ref_dot(s.out->dl.dtype, weights, 1, values, 1, count);
    }
  }
  ref_write(s.out, &to);
  return GRAFT_OK;
}

static graft_status sample_backward(const graft_exec *exec, const void *args) {
  sampling s = sampling_of(args);
  graft_dtype dtype = s.input->dl.dtype;
  REF_OWNED ref_array x = ref_read(s.input), grid = ref_read(s.grid), grad = ref_read(s.grad_output),
                      to_input = ref_new(x.count, false), to_grid = ref_new(grid.count, false);
  if (!(x.re && grid.re && grad.re && to_input.re && to_grid.re)) return ref_no_memory();
  for (int64_t i = 0; i < s.batch * s.points; i++) {
    tap taps[TAPS];
    int count = taps_of(&s, grid.re + i * s.dims, taps);
    for (int64_t c = 0; c < s.channels; c++) {
      int64_t plane = i / s.points * s.channels + c;
      ref_real g = grad.re[plane * s.points + i % s.points];
      for (int k = 0; k < count; k++) {
        ref_real value = value_of(&x, plane * s.pixels, &taps[k]);
        if (taps[k].pixel >= 0) ref_add(dtype, &to_input.re[plane * s.pixels + taps[k].pixel], g * taps[k].weight);
        for (int d = 0; d < s.dims && s.interpolation != NEAREST; d++) /* the nearest is the same beside the point */
          ref_add(dtype, &to_grid.re[i * s.dims + d], g * value * taps[k].slope[MOST_DIMS - 1 - d]);
      }
    }
  }
  if (s.to_input) ref_write(s.to_input, &to_input);
  if (s.to_grid) ref_write(s.to_grid, &to_grid);
  return GRAFT_OK;
}

/* --- gradients: of the forward only, as in PyTorch --- */

enum { LONGEST = 8 };

static void vjp_sample(op_vjp *v) {
  const grid_row *row = op_row(v->schema->id);
  const uint8_t wanted[] = {vjp_needs(v, ARG_grid_sampler_2d_input), vjp_needs(v, ARG_grid_sampler_2d_grid)};
  graft_value args[LONGEST] = {fx_tensor(v->g[OUT])};
  uint32_t count = 1;
  if (!v->g[OUT]) return;
  for (uint32_t i = 0; i < v->schema->nargs; i++) args[count++] = v->args[i];
  args[count++] = wrap_mask(wanted, 2);
  fx_call(v->s, row->backward, args, count, v->results, 2);
}

#define SAMPLER(name, upper, dims_)                                                                              \
  {.op_id = GRAFT_OP_##upper,                                                                                    \
   .roles = "vv",                                                                                                \
   .infer = infer_forward,                                                                                       \
   .vjp = vjp_sample,                                                                                            \
   .saves = OP_SAVE_ARGS(name, input, grid),                                                                     \
   .reference = sample,                                                                                          \
   .row = &(const grid_row){.backward = GRAFT_OP_##upper##_BACKWARD, .dims = dims_}},                            \
  {                                                                                                              \
    .op_id = GRAFT_OP_##upper##_BACKWARD, .roles = "vvv", .infer = infer_backward, .reference = sample_backward, \
    .row = &(const grid_row) {                                                                                   \
      .dims = dims_                                                                                              \
    }                                                                                                            \
  }

static const op_def defs[] = {
    SAMPLER(grid_sampler_2d, GRID_SAMPLER_2D, 2),
    SAMPLER(grid_sampler_3d, GRID_SAMPLER_3D, 3),
};
OP_TABLE(resample_grid, defs)
