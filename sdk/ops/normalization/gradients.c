/* Normalizations written with other ops: decompositions, gradients, gradients of gradients.
 *
 * Notation: u = (x - mean) * rstd is a normalised element, a = g * weight what the cotangent g of a result becomes for
 * it, M the elements of a row. Then
 *   dx = rstd * (a - mean - u * mean(a * u)),   dweight = sum(g * u),   dbias = sum
 * where a row's mean and variance follow x, and dx = rstd * a where they are fixed. In the gradients of gradients mean
 * and rstd count as inputs of their own: what reaches them goes on to x through the forward op. So they are exact in
 * every order. */
#include "ops/normalization/normalization.h"

#include "ops/core/wide.h"
#include "ops/generated/fx_ops.h"

/* Shapes in which a row's statistics and the parameters broadcast. */
typedef struct frame {
  fx *s;
  const norm_args *at;
  const graft_value *args;
  graft_tensor *input;
  bool fixed;
  int32_t ndim, param_ndim;
  int64_t sizes[GRAFT_MAX_DIMS], row_sizes[GRAFT_MAX_DIMS], param_sizes[GRAFT_MAX_DIMS];
  uint32_t row_mask, param_mask; /* dims summed for statistics, and for parameters */
  double count;                  /* M */
  graft_tensor *x, *g, *mean, *rstd, *weight, *away, *unit;
} frame;

/* --- the frame --- */

static void frame_layer(frame *f) {
  int32_t lead = f->input->ndim - (int32_t)f->args[f->at->shape].count;
  f->ndim = f->input->ndim;
  f->param_ndim = f->ndim - lead;
  for (int32_t i = 0; i < f->ndim; i++) {
    f->sizes[i] = f->input->sizes[i];
    f->row_sizes[i] = i < lead ? f->sizes[i] : 1;
    if (i >= lead) f->param_sizes[i - lead] = f->sizes[i];
    *(i < lead ? &f->param_mask : &f->row_mask) |= 1u << i;
  }
}

static void frame_group(frame *f) {
  const norm_args *at = f->at;
  int64_t n = f->args[at->n].as.i, area = f->args[at->area].as.i, groups = f->args[at->groups].as.i;
  int64_t each = f->args[at->channels].as.i / groups;
  const int64_t all[] = {n, groups, each, area}, rows[] = {n, groups, 1, 1}, params[] = {1, groups, each, 1};
  f->ndim = f->param_ndim = 4;
  for (int i = 0; i < 4; i++) {
    f->sizes[i] = all[i];
    f->row_sizes[i] = rows[i];
    f->param_sizes[i] = params[i];
  }
  f->row_mask = 1u << 2 | 1u << 3;
  f->param_mask = 1u << 0 | 1u << 3;
}

static void frame_batch(frame *f) {
  f->ndim = f->param_ndim = f->input->ndim;
  for (int32_t i = 0; i < f->ndim; i++) {
    f->sizes[i] = f->input->sizes[i];
    f->row_sizes[i] = f->param_sizes[i] = i == 1 ? f->sizes[i] : 1;
  }
  f->row_mask = f->param_mask = ((1u << f->ndim) - 1) & ~(1u << 1);
}

static graft_tensor *shaped(fx *s, graft_tensor *t, int32_t ndim, const int64_t *sizes) {
  if (!t) return NULL;
  return tns_has_sizes(t, ndim, sizes) ? t : fx_reshape(s, t, ndim, sizes);
}

static graft_tensor *as_elements(const frame *f, graft_tensor *t) {
  return shaped(f->s, t, f->ndim, f->sizes);
}
static graft_tensor *as_rows(const frame *f, graft_tensor *t) {
  return shaped(f->s, t, f->ndim, f->row_sizes);
}
static graft_tensor *as_params(const frame *f, graft_tensor *t) {
  return shaped(f->s, t, f->param_ndim, f->param_sizes);
}

static frame frame_of(fx *s, uint32_t op_id, const graft_value *args) {
  const norm_args *at = norm_args_of(op_id);
  frame f = {.s = s, .at = at, .args = args, .input = norm_tensor(args, at->input), .fixed = norm_fixed(at, args)};
  if (at->kind == NORM_LAYER)
    frame_layer(&f);
  else if (at->kind == NORM_GROUP)
    frame_group(&f);
  else
    frame_batch(&f);
  f.count = 1;
  for (int32_t i = 0; i < f.ndim; i++) f.count *= f.row_mask >> i & 1 ? (double)f.sizes[i] : 1;
  f.x = as_elements(&f, f.input);
  f.g = as_elements(&f, norm_tensor(args, at->grad));
  f.weight = as_params(&f, norm_tensor(args, at->weight));
  return f;
}

static graft_tensor *inverse_root(fx *s, graft_tensor *variance, double eps) {
  return fx_rsqrt(s, fx_adds(s, variance, eps));
}

/* mean and rstd as given (in the shape they have), and what follows from them. */
static void set_statistics(frame *f, graft_tensor *mean, graft_tensor *rstd) {
  f->mean = as_rows(f, mean);
  f->rstd = as_rows(f, rstd);
  f->away = fx_sub(f->s, f->x, f->mean);
  f->unit = fx_mul(f->s, f->away, f->rstd);
}

/* Those of a backward op's arguments. */
static void given_statistics(frame *f) {
  const norm_args *at = f->at;
  if (!f->fixed) {
    set_statistics(f, norm_tensor(f->args, at->mean), norm_tensor(f->args, at->rstd));
    return;
  }
  graft_tensor *rstd = inverse_root(f->s, norm_tensor(f->args, at->running_var), f->args[at->eps].as.f);
  set_statistics(f, norm_tensor(f->args, at->running_mean), rstd);
}

/* --- sums --- */

static graft_tensor *row_sum(const frame *f, graft_tensor *t) {
  return fx_sum(f->s, t, f->row_mask, true);
}

static graft_tensor *over_count(const frame *f, graft_tensor *t, double count) {
  return fx_binary(f->s, GRAFT_OP_DIV_TENSOR, fx_tensor(t), fx_float(count));
}

static graft_tensor *row_mean(const frame *f, graft_tensor *t) {
  return over_count(f, row_sum(f, t), f->count);
}

/* Sums over all that share a parameter, in the parameters' shape. */
static graft_tensor *param_sum(const frame *f, graft_tensor *t) {
  graft_tensor *sum = fx_sum(f->s, t, f->param_mask, false);
  if (f->at->kind == NORM_LAYER) return sum;
  int64_t channels = 1;
  for (int32_t i = 0; i < f->param_ndim; i++) channels *= f->param_sizes[i];
  return shaped(f->s, sum, 1, &channels);
}

static graft_tensor *weighted(const frame *f, graft_tensor *t) {
  return f->weight ? fx_mul(f->s, t, f->weight) : t;
}

/* t - mean - u * mean(t * u) */
static graft_tensor *projected(const frame *f, graft_tensor *t) {
  if (f->fixed) return t;
  graft_tensor *slope = row_mean(f, fx_mul(f->s, t, f->unit));
  return fx_sub(f->s, fx_sub(f->s, t, row_mean(f, t)), fx_mul(f->s, f->unit, slope));
}

static graft_tensor *add(fx *s, graft_tensor *a, graft_tensor *b) {
  return a && b ? fx_add(s, a, b) : a ? a : b;
}

/* --- decompositions --- */

/* running = momentum * now + (1 - momentum) * running, in place */
static void update(fx *s, graft_tensor *running, graft_tensor *now, double momentum) {
  if (!running || s->status) return;
  now = shaped(s, now, running->ndim, running->sizes);
  fx_copy_into(s, running, fx_add(s, fx_muls(s, now, momentum), fx_muls(s, running, 1 - momentum)));
}

static void measure(frame *f, double eps) {
  graft_tensor *mean = row_mean(f, f->x), *away = fx_sub(f->s, f->x, mean), *squares = fx_mul(f->s, away, away);
  graft_tensor *sum = row_sum(f, squares);
  set_statistics(f, mean, inverse_root(f->s, over_count(f, sum, f->count), eps));
  if (f->at->kind != NORM_BATCH) return;
  double momentum = f->args[f->at->momentum].as.f;
  update(f->s, norm_tensor(f->args, f->at->running_mean), mean, momentum);
  update(f->s, norm_tensor(f->args, f->at->running_var), over_count(f, sum, f->count - 1), momentum);
}

/* Running statistics of a half type beside inputs that have been widened: f32 ones for the call, written back. */
static void run_wider_batch(fx *s, const op_call *c, graft_tensor **outs) {
  op_call wide = *c;
  const norm_args *at = norm_args_of(c->schema->id);
  const int8_t running[] = {at->running_mean, at->running_var};
  for (int i = 0; i < 2; i++) {
    graft_tensor *t = norm_tensor(c->args, running[i]);
    if (t) wide.args[running[i]] = fx_tensor(fx_cast(s, t, GRAFT_F32));
  }
  op_ran_wider(s, &wide, outs);
  for (int i = 0; i < 2 && !norm_fixed(at, c->args) && !s->status; i++) {
    graft_tensor *t = norm_tensor(c->args, running[i]), *now = norm_tensor(wide.args, running[i]);
    if (t && t != now) fx_copy_into(s, t, now);
  }
}

static bool runs_wider(const op_call *c, graft_dtype input) {
  return c->compute == GRAFT_F32 && (dt_is_half(input) || dt_is_half(c->out[OUT_native_group_norm_out0].dtype));
}

void norm_decompose_forward(fx *s, const op_call *c, graft_tensor **outs) {
  frame f = frame_of(s, c->schema->id, c->args);
  if (runs_wider(c, c->out[OUT_native_group_norm_out0].dtype)) {
    if (f.at->kind == NORM_BATCH)
      run_wider_batch(s, c, outs);
    else
      op_ran_wider(s, c, outs);
    return;
  }
  double eps = c->args[f.at->eps].as.f;
  if (f.fixed) {
    graft_tensor *mean = norm_tensor(c->args, f.at->running_mean), *variance = norm_tensor(c->args, f.at->running_var);
    set_statistics(&f, mean, inverse_root(s, variance, eps));
  } else {
    measure(&f, eps);
  }
  graft_tensor *y = weighted(&f, f.unit), *bias = as_params(&f, norm_tensor(c->args, f.at->bias));
  if (s->status) return;
  outs[OUT_native_group_norm_out0] = shaped(s, bias ? fx_add(s, y, bias) : y, f.input->ndim, f.input->sizes);
  outs[OUT_native_group_norm_out1] =
      shaped(s, f.mean, c->out[OUT_native_group_norm_out1].ndim, c->out[OUT_native_group_norm_out1].sizes);
  outs[OUT_native_group_norm_out2] =
      shaped(s, f.rstd, c->out[OUT_native_group_norm_out2].ndim, c->out[OUT_native_group_norm_out2].sizes);
}

/* All of a backward's tensors in f32, those that the caller leaves as they are (role k) too. */
static void run_wider_backward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_value args[OP_MAX_ARGS];
  for (uint32_t i = 0; i < c->schema->nargs; i++) {
    args[i] = c->args[i];
    if (args[i].kind == GRAFT_VALUE_TENSOR) args[i] = fx_tensor(fx_cast(s, args[i].as.tensor, GRAFT_F32));
  }
  fx_call(s, c->schema->id, args, c->schema->nargs, outs, 3);
}

void norm_decompose_backward(fx *s, const op_call *c, graft_tensor **outs) {
  bool half = false;
  for (int i = 0; i < 3; i++) half |= c->out_wanted[i] && dt_is_half(c->out[i].dtype);
  if (half && c->compute == GRAFT_F32) {
    run_wider_backward(s, c, outs);
    return;
  }
  frame f = frame_of(s, c->schema->id, c->args);
  given_statistics(&f);
  if (c->out_wanted[OUT_native_group_norm_backward_out0]) {
    graft_tensor *dx = fx_mul(s, projected(&f, weighted(&f, f.g)), f.rstd);
    outs[OUT_native_group_norm_backward_out0] = shaped(s, dx, f.input->ndim, f.input->sizes);
  }
  if (c->out_wanted[OUT_native_group_norm_backward_out1])
    outs[OUT_native_group_norm_backward_out1] = param_sum(&f, fx_mul(s, f.g, f.unit));
  if (c->out_wanted[OUT_native_group_norm_backward_out2])
    outs[OUT_native_group_norm_backward_out2] = param_sum(&f, f.g);
}

void norm_decompose_legit(fx *s, const op_call *c, graft_tensor **outs) {
  const norm_args *at = norm_args_of(c->schema->id);
  fx_native_batch_norm(s, op_tensor(c, ARG_native_batch_norm_legit_input),
                       op_tensor(c, ARG_native_batch_norm_legit_weight), op_tensor(c, ARG_native_batch_norm_legit_bias),
                       norm_tensor(c->args, at->running_mean), norm_tensor(c->args, at->running_var),
                       !norm_fixed(at, c->args), op_float(c, at->momentum), op_float(c, at->eps),
                       &outs[OUT_native_batch_norm_legit_out0], &outs[OUT_native_batch_norm_legit_out1],
                       &outs[OUT_native_batch_norm_legit_out2]);
}

/* --- gradients of the forward ops --- */

static void call_backward(op_vjp *v, const norm_args *at, const uint8_t *mask, graft_tensor **d) {
  const graft_value *args = v->args;
  graft_tensor *g = v->g[OUT_native_group_norm_out0], *x = norm_tensor(args, at->input),
               *weight = norm_tensor(args, at->weight);
  graft_tensor *mean = v->outs[OUT_native_group_norm_out1], *rstd = v->outs[OUT_native_group_norm_out2];
  if (at->kind == NORM_LAYER) {
    fx_native_layer_norm_backward(v->s, g, x, args[at->shape].as.ints, args[at->shape].count, mean, rstd, weight,
                                  norm_tensor(args, at->bias), mask, &d[0], &d[1], &d[2]);
  } else if (at->kind == NORM_GROUP) {
    fx_native_group_norm_backward(v->s, g, x, mean, rstd, weight, args[at->n].as.i, args[at->channels].as.i,
                                  args[at->area].as.i, args[at->groups].as.i, mask, &d[0], &d[1], &d[2]);
  } else {
    /* Training changes the running statistics and does not depend on them. */
    bool fixed = norm_fixed(at, args);
    fx_native_batch_norm_backward(v->s, g, x, weight, fixed ? norm_tensor(args, at->running_mean) : NULL,
                                  fixed ? norm_tensor(args, at->running_var) : NULL, mean, rstd, !fixed,
                                  args[at->eps].as.f, mask, &d[0], &d[1], &d[2]);
  }
}

/* What cotangents of mean and rstd give x: gm / M - gr * rstd^2 * u / M */
static graft_tensor *through_statistics(op_vjp *v) {
  frame f = frame_of(v->s, v->schema->id, v->args);
  set_statistics(&f, v->outs[OUT_native_group_norm_out1], v->outs[OUT_native_group_norm_out2]);
  graft_tensor *gm = as_rows(&f, v->g[OUT_native_group_norm_out1]), *gr = as_rows(&f, v->g[OUT_native_group_norm_out2]),
               *sum = NULL;
  if (gm) sum = fx_expand(v->s, gm, f.sizes, (uint32_t)f.ndim, false);
  if (gr) {
    graft_tensor *slope = fx_mul(v->s, fx_mul(v->s, gr, fx_mul(v->s, f.rstd, f.rstd)), f.unit);
    sum = sum ? fx_sub(v->s, sum, slope) : fx_neg(v->s, slope);
  }
  return shaped(v->s, over_count(&f, sum, f.count), f.input->ndim, f.input->sizes);
}

void norm_vjp_forward(op_vjp *v) {
  const norm_args *at = norm_args_of(v->schema->id);
  const int8_t wanted[] = {at->input, at->weight, at->bias};
  uint8_t mask[3];
  for (int i = 0; i < 3; i++) mask[i] = vjp_needs(v, wanted[i]);
  graft_tensor *d[3] = {NULL};
  if (v->g[OUT_native_group_norm_out0]) call_backward(v, at, mask, d);
  if (mask[0] && (v->g[OUT_native_group_norm_out1] || v->g[OUT_native_group_norm_out2]) && !norm_fixed(at, v->args))
    d[0] = add(v->s, d[0], through_statistics(v));
  for (int i = 0; i < 3; i++) {
    if (mask[i]) v->results[wanted[i]] = d[i];
  }
}

/* --- gradients of the backward ops --- */

/* With cotangents U, V, W of dx, dweight, dbias, and P what `projected` does:
 *   of g:      weight * rstd * P(U) + V * u + W
 *   of weight: sum(g * rstd * P(U))
 *   of u:      h = g * V - rstd * (U * mean(a * u) + a * mean(U * u))
 *   of x: h * rstd,   of mean: -sum * rstd,   of rstd: sum(h * (x - mean)) + sum(U * P(a))
 * and with fixed statistics P(U) = U and h = g * V. */
typedef struct second {
  graft_tensor *u, *v, *w; /* U, V, W in the frame's shapes; NULL: zero */
  graft_tensor *pushed;    /* rstd * P(U) */
  graft_tensor *a, *h;
} second;

static second second_of(op_vjp *v, const frame *f) {
  fx *s = v->s;
  second q = {as_elements(f, v->g[OUT_native_group_norm_backward_out0]),
              as_params(f, v->g[OUT_native_group_norm_backward_out1]),
              as_params(f, v->g[OUT_native_group_norm_backward_out2]),
              NULL,
              NULL,
              NULL};
  if (q.v) q.h = fx_mul(s, f->g, q.v);
  if (!q.u) return q;
  q.pushed = fx_mul(s, projected(f, q.u), f->rstd);
  q.a = weighted(f, f->g);
  if (f->fixed) return q;
  graft_tensor *along = fx_mul(s, q.u, row_mean(f, fx_mul(s, q.a, f->unit)));
  graft_tensor *across = fx_mul(s, q.a, row_mean(f, fx_mul(s, q.u, f->unit)));
  q.h = add(s, q.h, fx_neg(s, fx_mul(s, f->rstd, fx_add(s, along, across))));
  return q;
}

static void result(op_vjp *v, int arg, graft_tensor *t) {
  graft_tensor *like = arg >= 0 && vjp_needs(v, arg) ? vjp_arg(v, arg) : NULL;
  if (like && t) v->results[arg] = shaped(v->s, t, like->ndim, like->sizes);
}

void norm_vjp_backward(op_vjp *v) {
  fx *s = v->s;
  frame f = frame_of(s, v->schema->id, v->args);
  const norm_args *at = f.at;
  given_statistics(&f);
  second q = second_of(v, &f);
  if (s->status) return;
  if (vjp_needs(v, at->grad)) {
    graft_tensor *sum = q.pushed ? weighted(&f, q.pushed) : NULL;
    if (q.v) sum = add(s, sum, fx_mul(s, q.v, f.unit));
    if (q.w) sum = add(s, sum, fx_expand(s, q.w, f.sizes, (uint32_t)f.ndim, false));
    result(v, at->grad, sum);
  }
  if (vjp_needs(v, at->input) && q.h) result(v, at->input, fx_mul(s, q.h, f.rstd));
  if (f.weight && q.pushed && vjp_needs(v, at->weight)) {
    result(v, at->weight, param_sum(&f, fx_mul(s, f.g, q.pushed)));
  }
  if (f.fixed) return;
  if (q.h && vjp_needs(v, at->mean)) result(v, at->mean, fx_neg(s, fx_mul(s, row_sum(&f, q.h), f.rstd)));
  if (!vjp_needs(v, at->rstd)) return;
  graft_tensor *sum = q.h ? row_sum(&f, fx_mul(s, q.h, f.away)) : NULL;
  if (q.u) sum = add(s, sum, row_sum(&f, fx_mul(s, q.u, projected(&f, q.a))));
  result(v, at->rstd, sum);
}
