/* Sampling at the points of a grid. A result is a sum whose weights come from positions: where a point lies among the
 * elements is off by eight roundings at most of what is added up on the way, (|coordinate| + 1) x size, and what the
 * point reads moves as fast as the filter lets it. Where that may put a point beyond the middle between two elements
 * (nearest) or beyond an element (the slope of linear), what it reads, or its slope, may be that of the neighbour. */
#include <math.h>
#include <string.h>

#include "conformance/cases/rows.h"

typedef struct cf_sampling {
  const cf_array *input, *points;
  int32_t dims;
  int64_t count; /* points of an image */
  bool nearest, cubic, align;
  long double norm, slope, bend,
      most; /* of the filter: sum of the weights, their slopes, these' slopes; of the input */
} cf_sampling;

static long double cf_largest_of(const cf_array *a) {
  long double most = 0;
  for (int64_t i = 0; i < a->numel; i++) most = fmaxl(most, fabsl(a->v[i].re));
  return most;
}

static cf_sampling cf_sampling_of(const cf_check *k) {
  cf_sampling s = {.input = cf_arg_array(k, "input"), .points = cf_arg_array(k, "grid"), .count = 1};
  int64_t mode = cf_arg_int(k->call, "interpolation_mode", 0);
  s.dims = s.input->ndim - 2;
  for (int32_t d = 0; d < s.dims; d++) s.count *= s.points->sizes[1 + d];
  s.nearest = mode == 1, s.cubic = mode == 2;
  s.align = cf_arg_int(k->call, "align_corners", 0) != 0;
  s.norm = s.cubic ? 1.375L : 1;
  s.slope = s.cubic ? 4.2L : s.nearest ? 0 : 2;
  s.bend = s.cubic ? 15 : 0;
  s.most = cf_largest_of(s.input);
  return s;
}

/* How far a point's position may be off along dim d, in u. */
static long double cf_offset(const cf_sampling *s, int64_t point, int32_t d) {
  long double coordinate = s->points->v[point * s->dims + s->dims - 1 - d].re;
  return 8 * (fabsl(coordinate) + 1) * (long double)s->input->sizes[2 + d];
}

static long double cf_offsets(const cf_sampling *s, int64_t point) {
  long double sum = 0;
  for (int32_t d = 0; d < s->dims; d++) sum += cf_offset(s, point, d);
  return sum;
}

/* Whether the point may lie on either side of where its neighbours change. */
static bool cf_unsure(const cf_sampling *s, int64_t point, long double u) {
  for (int32_t d = 0; d < s->dims; d++) {
    long double size = (long double)s->input->sizes[2 + d];
    long double coordinate = s->points->v[point * s->dims + s->dims - 1 - d].re;
    long double x = s->align ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
    if (s->nearest) x += 0.5L;
    if (fabsl(x - rintl(x)) <= cf_offset(s, point, d) * u) return true;
  }
  return false;
}

static long double cf_u_of(const cf_check *k) {
  return cf_u_acc(k->call->c->dtype);
}

/* What a result may be off by, in u. */
static long double cf_sample_roundings(const cf_check *k, const cf_sampling *s, int64_t point) {
  long double taps = powl(s->cubic ? 4 : 2, s->dims), others = powl(s->norm, s->dims - 1);
  if (s->nearest) return cf_unsure(s, point, cf_u_of(k)) ? 2 * s->most / cf_u_of(k) : 0;
  return s->most * others * (cf_offsets(s, point) * s->slope + s->norm * (cf_growth(taps) + 60));
}

static void cf_l_sample(const cf_check *k, uint32_t out, long double *limits) {
  cf_sampling s = cf_sampling_of(k);
  int64_t planes = s.input->sizes[1] * s.count;
  for (int64_t i = 0; i < k->outs[out].numel; i++) {
    long double roundings = cf_sample_roundings(k, &s, i / planes * s.count + i % s.count);
    limits[i] = s.nearest && roundings == 0 ? 0 : cf_limit_of(k, out, i, roundings);
  }
}

/* The same of the image's gradient, an element of which may get something of every point: g is the largest cotangent.
 */
static void cf_image_roundings(const cf_check *k, const cf_sampling *s, long double g, long double *roundings) {
  int64_t image = s->input->numel / (s->input->sizes[0] ? s->input->sizes[0] : 1);
  for (int64_t n = 0; n < s->input->sizes[0]; n++) {
    long double sum = 0;
    for (int64_t p = n * s->count; p < (n + 1) * s->count; p++) {
      bool jumps = s->nearest && cf_unsure(s, p, cf_u_of(k));
      sum += g * (jumps ? 1 / cf_u_of(k) : powl(s->norm, s->dims - 1) * cf_offsets(s, p) * s->slope + 60);
    }
    sum += g * cf_growth((long double)s->count) * (long double)s->count;
    for (int64_t i = 0; i < image; i++) roundings[n * image + i] = sum;
  }
}

/* And of the grid's. */
static void cf_grid_roundings(const cf_check *k, const cf_sampling *s, long double g, long double *roundings) {
  long double terms = (long double)s->input->sizes[1] * powl(s->cubic ? 4 : 2, s->dims);
  long double each = (long double)s->input->sizes[1] * g * s->most * powl(s->norm, s->dims - 1);
  for (int64_t i = 0; i < s->points->numel; i++) {
    int64_t p = i / s->dims, d = s->dims - 1 - i % s->dims;
    long double scale = (long double)s->input->sizes[2 + d] / 2 * each;
    bool jumps = !s->cubic && !s->nearest && cf_unsure(s, p, cf_u_of(k));
    roundings[i] = scale * (cf_offsets(s, p) * (s->slope * s->slope + s->bend) + (cf_growth(terms) + 60) * s->slope);
    if (jumps) roundings[i] += 2 * s->slope * scale / cf_u_of(k);
  }
}

static void cf_l_sample_back(const cf_check *k, uint32_t out, long double *limits) {
  cf_sampling s = cf_sampling_of(k);
  long double g = cf_largest_of(cf_arg_array(k, "grad_output"));
  (out == 0 ? cf_image_roundings : cf_grid_roundings)(k, &s, g, limits);
  for (int64_t i = 0; i < k->outs[out].numel; i++) limits[i] = cf_limit_of(k, out, i, limits[i]);
}

static void cf_g_sample(const cf_check *k, uint32_t in, long double *terms) {
  cf_sampling s = cf_sampling_of(k);
  (in == 0 ? cf_image_roundings : cf_grid_roundings)(k, &s, cf_largest_of(&k->g[0]), terms);
}

#define CF_SAMPLED(n, ...)                                                                           \
  {                                                                                                  \
    "aten::" n, CF_TEXTS(__VA_ARGS__), CF_FLOATS, CF_R_CUSTOM(cf_l_sample), CF_VALUES, CF_ORDERED, { \
      .kind = CF_GRAD_CUSTOM, .terms = cf_g_sample, .steps = 0, .inner = 1                           \
    }                                                                                                \
  }
#define CF_SAMPLED_BACK(n, ...)                                                                                     \
  {                                                                                                                 \
    "aten::" n "_backward", CF_TEXTS(__VA_ARGS__), CF_FLOATS, CF_R_CUSTOM(cf_l_sample_back), CF_VALUES, CF_ORDERED, \
        CF_G_NONE                                                                                                   \
  }

static const cf_op cf_grid_ops[] = {
    CF_SAMPLED(
        "grid_sampler_2d", "s T[2,3,5,7] T[2,4,6,2] 0 0 false", "m T[2,2,5,7] T[2,8,9,2] 0 0 false",
        "m T[3,2,5,7] T[3,8,16,2] 0 1 false", /* whole stretches of 64 points */
        "m T[1,2,5,7] T[1,3,5,2] 0 1 true", "m T[1,2,5,7] T[1,3,5,2] 0 2 false", "s T[2,13,5,7] T[2,3,5,2] 0 0 false",
        "m T[2,13,5,7] T[2,3,5,2] 2 1 true", "m T[1,2,5,7] T[1,3,5,2] 1 0 false", "m T[1,2,5,7] T[1,3,5,2] 1 2 true",
        "m T[2,3,5,7] T[2,4,6,2] 2 0 true", "m T[1,2,5,7] T[1,3,5,2] 2 2 false", "f T[1,2,5,7] T[1,3,5,2] 0 0 true",
        "f T[1,2,5,7] T[1,3,5,2] 0 1 false", "f T[1,2,5,7] T[1,3,5,2] 0 2 true", "f T[1,2,5,7] T[1,3,5,2] 1 1 false",
        "f T[1,2,5,7] T[1,3,5,2] 2 1 false", "f T[1,2,5,7] T[1,3,5,2] 2 2 true", "f T[1,2,1,1] T[1,3,5,2] 0 2 true"),
    CF_SAMPLED_BACK(
        "grid_sampler_2d", "s T[2,3,4,6] T[2,3,5,7] T[2,4,6,2] 0 0 false [1,1]",
        "m T[1,2,3,5] T[1,2,5,7] T[1,3,5,2] 0 1 true [1,1]", "m T[1,2,3,5] T[1,2,5,7] T[1,3,5,2] 0 2 false [0,1]",
        "m T[1,2,3,5] T[1,2,5,7] T[1,3,5,2] 1 2 true [1,0]", "m T[1,2,3,5] T[1,2,5,7] T[1,3,5,2] 2 2 false [1,1]",
        "m T[1,2,3,5] T[1,2,5,7] T[1,3,5,2] 2 0 true [1,1]"),
    CF_SAMPLED("grid_sampler_3d", "m T[2,3,4,5,3] T[2,2,3,4,3] 0 0 false", "m T[1,2,4,5,3] T[1,2,3,2,3] 0 2 true",
               "m T[1,2,4,5,3] T[1,2,3,2,3] 1 1 false", "f T[1,2,4,5,3] T[1,2,3,2,3] 0 1 false",
               "f T[1,2,4,5,3] T[1,2,3,2,3] 1 0 true", "m T[2,3,4,5,6] T[2,6,4,5,3] 0 0 false"),
    CF_SAMPLED_BACK("grid_sampler_3d", "m T[2,3,2,3,4] T[2,3,4,5,3] T[2,2,3,4,3] 0 0 false [1,1]",
                    "m T[1,2,2,3,2] T[1,2,4,5,3] T[1,2,3,2,3] 0 2 true [1,1]",
                    "m T[1,2,2,3,2] T[1,2,4,5,3] T[1,2,3,2,3] 1 1 false [1,1]",
                    "m T[2,3,6,4,5] T[2,3,4,5,6] T[2,6,4,5,3] 0 0 false [1,1]"),
};

CF_TOPIC(resample_grid, "resample", cf_grid_ops);
