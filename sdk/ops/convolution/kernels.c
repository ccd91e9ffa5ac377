/* Reference kernels of convolutions.
 *
 * A convolution relates two grids: each position o of the coarse one sees, through tap k, position
 * o * stride - padding + k * dilation of the fine one. Forward and backward, plain and transposed, all are one of three
 * sums over that relation: to the coarse grid, to the fine grid, or to the taps. In all of them the weight is [coarse
 * channels, fine channels / groups, taps]. */
#include <string.h>

#include "ops/convolution/convolution.h"
#include "ops/core/ref.h"

typedef struct grid {
  int32_t dims;
  int64_t batch, groups, coarse_channels, fine_channels; /* channels of one group */
  int64_t coarse, fine, taps;                            /* positions */
  int64_t *fine_at;                                      /* [coarse][taps]: the position seen, or -1 in the padding */
  int64_t *coarse_at;                                    /* [fine][taps]: the position that sees it so, or -1 */
  /* The terms of sums that a group's channels have in common: the factor that they share, where the other one lies for
   * the first of these channels, and those others for some of them, `longest` each. */
  int64_t longest, *other;
  ref_array x, y;
} grid;

enum { TOGETHER = 4 };

typedef struct windows {
  const int64_t *coarse, *fine, *taps, *stride, *padding, *dilation;
} windows;

static int64_t count_of(const int64_t *sizes, int32_t dims) {
  int64_t count = 1;
  for (int32_t i = 0; i < dims; i++) count *= sizes[i];
  return count;
}

static int64_t position(const grid *g, const windows *w, int64_t coarse, int64_t tap) {
  int64_t at = 0, step = 1;
  for (int32_t i = g->dims - 1; i >= 0; i--) {
    int64_t here = coarse % w->coarse[i] * w->stride[i] - w->padding[i] + tap % w->taps[i] * w->dilation[i];
    if (here < 0 || here >= w->fine[i]) return -1;
    at += here * step;
    step *= w->fine[i];
    coarse /= w->coarse[i];
    tap /= w->taps[i];
  }
  return at;
}

static void grid_free(grid *g) {
  free(g->fine_at);
  free(g->coarse_at);
  free(g->other);
  ref_free(&g->x);
  ref_free(&g->y);
}

static void relate(grid *g, const windows *w) {
  for (int64_t i = 0; i < g->fine * g->taps; i++) g->coarse_at[i] = -1;
  for (int64_t o = 0; o < g->coarse; o++) {
    for (int64_t k = 0; k < g->taps; k++) {
      int64_t at = position(g, w, o, k);
      g->fine_at[o * g->taps + k] = at;
      if (at >= 0) g->coarse_at[at * g->taps + k] = o;
    }
  }
}

/* From the tensors on the two grids and the weight's shape. */
static graft_status grid_make(grid *g, const graft_tensor_desc *coarse, const graft_tensor_desc *fine,
                              const graft_tensor_desc *weight, graft_int_list stride, graft_int_list padding,
                              graft_int_list dilation, int64_t groups) {
  const int64_t *c = coarse->dl.shape, *f = fine->dl.shape, *w = weight->dl.shape;
  windows lists = {c + 2, f + 2, w + 2, stride.items, padding.items, dilation.items};
  *g = (grid){.dims = coarse->dl.ndim - 2,
              .batch = c[0],
              .groups = groups,
              .coarse_channels = w[0] / groups,
              .fine_channels = w[1]};
  g->coarse = count_of(lists.coarse, g->dims);
  g->fine = count_of(lists.fine, g->dims);
  g->taps = count_of(lists.taps, g->dims);
  g->fine_at = ref_zeros(g->coarse * g->taps, sizeof *g->fine_at);
  g->coarse_at = ref_zeros(g->fine * g->taps, sizeof *g->coarse_at);
  int64_t longest = (g->fine_channels > g->coarse_channels ? g->fine_channels : g->coarse_channels) * g->taps;
  g->longest = g->batch * g->coarse > longest ? g->batch * g->coarse : longest;
  g->other = ref_zeros(g->longest, sizeof *g->other);
  g->x = ref_new(g->longest, false);
  g->y = ref_new(g->longest * TOGETHER, false);
  if (!g->fine_at || !g->coarse_at || !g->other || !g->x.re || !g->y.re) {
    grid_free(g);
    return ref_no_memory();
  }
  relate(g, &lists);
  return GRAFT_OK;
}

/* --- the three sums ---
 * c, f and w are dense: [batch, groups * coarse_channels, coarse], [batch, groups * fine_channels, fine] and
 * [groups * coarse_channels, fine_channels, taps]. */

/* The first element of a channel. */
static int64_t plane(const grid *g, int64_t n, int64_t channels, int64_t channel, int64_t size) {
  return (n * g->groups * channels + channel) * size;
}

/* Copied as bytes: an x87 unit takes long to load and to store ten of them. */
static inline void take(ref_real *to, const ref_real *from) {
  memcpy(to, from, sizeof *to);
}

/* Appends a term. */
static inline int64_t term(grid *g, int64_t terms, const ref_real *x, int64_t other) {
  take(&g->x.re[terms], x);
  g->other[terms] = other;
  return terms + 1;
}

/* One sum for each of so many channels: their factors lie `next` apart in `others`, their sums `step` apart. */
typedef struct channels {
  int64_t count, next, step;
} channels;

static void sum_terms(grid *g, graft_dtype dtype, int64_t terms, const ref_array *others, channels all, ref_real *to) {
  for (int64_t first = 0; first < all.count; first += TOGETHER) {
    const int64_t count = all.count - first < TOGETHER ? all.count - first : TOGETHER;
    ref_real sums[TOGETHER];
    for (int64_t c = 0; c < count; c++) {
      const ref_real *from = others->re + (first + c) * all.next;
      for (int64_t i = 0; i < terms; i++) take(&g->y.re[c * g->longest + i], &from[g->other[i]]);
    }
    ref_dots(dtype, g->x.re, 1, (ref_factors){g->y.re, 1, g->longest, count}, terms, sums);
    for (int64_t c = 0; c < count; c++) to[(first + c) * all.step] = sums[c];
  }
}

static void sum_to_coarse(grid *g, graft_dtype dtype, const ref_array *f, const ref_array *w, ref_array *c) {
  const channels all = {g->coarse_channels, g->fine_channels * g->taps, g->coarse};
  for (int64_t i = 0; i < g->batch * g->groups * g->coarse; i++) {
    int64_t o = i % g->coarse, group = i / g->coarse % g->groups, n = i / g->coarse / g->groups, terms = 0;
    int64_t to = group * g->coarse_channels, from = group * g->fine_channels;
    for (int64_t cf = 0; cf < g->fine_channels; cf++) {
      const ref_real *seen = f->re + plane(g, n, g->fine_channels, from + cf, g->fine);
      for (int64_t k = 0; k < g->taps; k++) {
        int64_t at = g->fine_at[o * g->taps + k];
        if (at >= 0) terms = term(g, terms, &seen[at], (to * g->fine_channels + cf) * g->taps + k);
      }
    }
    sum_terms(g, dtype, terms, w, all, c->re + plane(g, n, g->coarse_channels, to, g->coarse) + o);
  }
}

static void sum_to_fine(grid *g, graft_dtype dtype, const ref_array *c, const ref_array *w, ref_array *f) {
  const channels all = {g->fine_channels, g->taps, g->fine};
  for (int64_t i = 0; i < g->batch * g->groups * g->fine; i++) {
    int64_t at = i % g->fine, group = i / g->fine % g->groups, n = i / g->fine / g->groups, terms = 0;
    int64_t first = group * g->coarse_channels;
    for (int64_t cc = first; cc < first + g->coarse_channels; cc++) {
      const ref_real *from = c->re + plane(g, n, g->coarse_channels, cc, g->coarse);
      for (int64_t k = 0; k < g->taps; k++) {
        int64_t o = g->coarse_at[at * g->taps + k];
        if (o >= 0) terms = term(g, terms, &from[o], cc * g->fine_channels * g->taps + k);
      }
    }
    sum_terms(g, dtype, terms, w, all, f->re + plane(g, n, g->fine_channels, group * g->fine_channels, g->fine) + at);
  }
}

static void sum_to_taps(grid *g, graft_dtype dtype, const ref_array *c, const ref_array *f, ref_array *w) {
  const channels all = {g->coarse_channels, g->coarse, g->fine_channels * g->taps};
  for (int64_t i = 0; i < g->groups * g->fine_channels * g->taps; i++) {
    int64_t k = i % g->taps, cf = i / g->taps % g->fine_channels, group = i / g->taps / g->fine_channels, terms = 0;
    int64_t first = group * g->coarse_channels;
    for (int64_t n = 0; n < g->batch; n++) {
      int64_t from = plane(g, n, g->coarse_channels, first, g->coarse);
      const ref_real *seen = f->re + plane(g, n, g->fine_channels, group * g->fine_channels + cf, g->fine);
      for (int64_t o = 0; o < g->coarse; o++) {
        int64_t at = g->fine_at[o * g->taps + k];
        if (at >= 0) terms = term(g, terms, &seen[at], from + o);
      }
    }
    sum_terms(g, dtype, terms, c, all, w->re + (first * g->fine_channels + cf) * g->taps + k);
  }
}

/* --- slots --- */

static void add_bias(ref_array *out, const ref_array *bias, int64_t positions) {
  for (int64_t i = 0; i < out->count; i++) out->re[i] += bias->re[i / positions % bias->count];
}

graft_status kernel_convolution(const graft_exec *exec, const graft_args_convolution *a) {
  grid g;
  const graft_tensor_desc *coarse = a->transposed ? a->input : a->out, *fine = a->transposed ? a->out : a->input;
  graft_status status = grid_make(&g, coarse, fine, a->weight, a->stride, a->padding, a->dilation, a->groups);
  if (status) return status;
  graft_dtype dtype = a->out->dl.dtype;
  REF_OWNED ref_array x = ref_read(a->input), w = ref_read(a->weight), b = ref_read(a->bias);
  REF_OWNED ref_array out = ref_new(ref_numel(a->out), false);
  if (x.re && w.re && out.re && (b.re || !a->bias)) {
    if (a->transposed)
      sum_to_fine(&g, dtype, &x, &w, &out);
    else
      sum_to_coarse(&g, dtype, &x, &w, &out);
    if (b.count) add_bias(&out, &b, a->transposed ? g.fine : g.coarse);
    ref_write(a->out, &out);
  } else {
    status = ref_no_memory();
  }
  grid_free(&g);
  return status;
}

/* The sum of a channel's gradients. */
static graft_status backward_bias(const graft_tensor_desc *out, const ref_array *grad, int64_t batch,
                                  int64_t positions) {
  if (!out) return GRAFT_OK;
  int64_t channels = ref_numel(out);
  REF_OWNED ref_array sums = ref_new(channels, false), line = ref_new(batch * positions, false);
  if (!(sums.re && line.re)) return ref_no_memory();
  for (int64_t c = 0; grad->count && c < channels; c++) {
    for (int64_t i = 0; i < line.count; i++) {
      line.re[i] = grad->re[(i / positions * channels + c) * positions + i % positions];
    }
    sums.re[c] = ref_sum(out->dl.dtype, line.re, 1, line.count);
  }
  ref_write(out, &sums);
  return GRAFT_OK;
}

static graft_status backward_input(grid *g, const graft_args_convolution_backward *a, const ref_array *grad,
                                   const ref_array *w) {
  if (!a->out0) return GRAFT_OK;
  REF_OWNED ref_array out = ref_new(ref_numel(a->out0), false);
  if (!out.re) return ref_no_memory();
  if (a->transposed)
    sum_to_coarse(g, a->out0->dl.dtype, grad, w, &out);
  else
    sum_to_fine(g, a->out0->dl.dtype, grad, w, &out);
  ref_write(a->out0, &out);
  return GRAFT_OK;
}

static graft_status backward_weight(grid *g, const graft_args_convolution_backward *a, const ref_array *grad,
                                    const ref_array *x) {
  if (!a->out1) return GRAFT_OK;
  REF_OWNED ref_array out = ref_new(ref_numel(a->out1), false);
  if (!out.re) return ref_no_memory();
  sum_to_taps(g, a->out1->dl.dtype, a->transposed ? x : grad, a->transposed ? grad : x, &out);
  ref_write(a->out1, &out);
  return GRAFT_OK;
}

graft_status kernel_convolution_backward(const graft_exec *exec, const graft_args_convolution_backward *a) {
  grid g;
  const graft_tensor_desc *coarse = a->transposed ? a->input : a->grad_output;
  const graft_tensor_desc *fine = a->transposed ? a->grad_output : a->input;
  graft_status status = grid_make(&g, coarse, fine, a->weight, a->stride, a->padding, a->dilation, a->groups);
  if (status) return status;
  REF_OWNED ref_array grad = ref_read(a->grad_output), x = ref_read(a->input), w = ref_read(a->weight);
  status = grad.re && x.re && w.re ? GRAFT_OK : ref_no_memory();
  if (!status) status = backward_input(&g, a, &grad, &w);
  if (!status) status = backward_weight(&g, a, &grad, &x);
  if (!status) status = backward_bias(a->out2, &grad, g.batch, a->transposed ? g.fine : g.coarse);
  grid_free(&g);
  return status;
}
