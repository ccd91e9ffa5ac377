/* Gradients: the VJP as the backend computes it (its backward slots, the host's formulas on its ops) against the same
 * in long double; and the oracle's own VJP against its forward, by the adjoint identity. */
#include "conformance/run/gradient.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/judge/tolerance.h"
#include "conformance/run/answers.h"
#include "conformance/run/attempt.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "conformance/run/condition.h"
#include "conformance/run/dump.h"
#include "conformance/run/fill.h"
#include "conformance/run/guard.h"
#include "conformance/run/oracle.h"
#include "dispatch/custom.h"
#include "dispatch/dispatch.h"
#include "graft/autograd.h"

typedef struct cf_vjp {
  const cf_backend *backend;
  cf_call *call;
  cf_result *result;
  uint32_t nouts;
  bool wants[CF_MAX_TENSORS]; /* inputs whose gradient is asked for */
  cf_array g[CF_MAX_TENSORS]; /* cotangents, one an output; no values: that output has none */
  cf_array got[CF_MAX_TENSORS], want[CF_MAX_TENSORS], terms[CF_MAX_TENSORS], ones[CF_MAX_TENSORS];
  cf_array outs[CF_MAX_TENSORS]; /* of the oracle */
} cf_vjp;

static bool cf_differentiable(const cf_call *call, uint32_t i) {
  graft_dtype dtype = call->specs[i].dtype;
  const dsp_custom *custom = dsp_custom_of(call->schema);
  if (custom && custom->gradient && custom->gradient_of[call->spec_arg[i]] < 0) return false;
  return call->notes[i].tested && !cf_call_mutates(call, i) && (dt_is_float(dtype) || dt_is_complex(dtype));
}

/* ---- one side: forward, then graft_grad ---- */

typedef graft_status (*cf_cotangent_fn)(void *context, uint32_t out, graft_tensor *like, graft_tensor **g);

typedef struct cf_pass {
  graft_rt_device *device;
  graft_tensor *const *in;
  graft_value *args;
  cf_cotangent_fn cotangent;
  void *context;
  cf_array *grads; /* receives the gradients, one an input */
  cf_array *outs;  /* and the results; NULL: not asked */
  uint8_t *route;  /* and which way the forward call went; likewise */
} cf_pass;

static graft_status cf_backward(cf_vjp *v, const cf_pass *p, graft_tensor **outs) {
  graft_tensor *roots[CF_MAX_TENSORS], *gs[CF_MAX_TENSORS] = {0}, *inputs[CF_MAX_TENSORS], *grads[CF_MAX_TENSORS] = {0};
  uint32_t nroots = 0, ninputs = 0;
  graft_status s = GRAFT_OK;
  for (uint32_t i = 0; i < v->nouts && s == GRAFT_OK; i++) {
    if (!outs[i] || !graft_tensor_requires_grad(outs[i])) continue;
    roots[nroots] = outs[i];
    s = p->cotangent(p->context, i, outs[i], &gs[nroots]);
    nroots++;
  }
  for (uint32_t i = 0; i < v->call->ntensors; i++)
    if (v->wants[i]) inputs[ninputs++] = p->in[i];
  if (s == GRAFT_OK && nroots == 0) s = err_set(GRAFT_INTERNAL, "no output requires grad");
  if (s == GRAFT_OK) s = graft_grad(roots, gs, nroots, inputs, ninputs, 0, grads);
  for (uint32_t i = 0, k = 0; i < v->call->ntensors; i++) {
    if (!v->wants[i]) continue;
    if (s == GRAFT_OK && grads[k] && !cf_array_read(&p->grads[i], grads[k])) s = GRAFT_INTERNAL;
    graft_tensor_release(grads[k++]);
  }
  for (uint32_t i = 0; i < nroots; i++) graft_tensor_release(gs[i]);
  return s;
}

static graft_status cf_forward_backward(cf_vjp *v, const cf_pass *p) {
  graft_tensor *outs[CF_MAX_TENSORS] = {0};
  graft_status s = GRAFT_OK;
  for (uint32_t i = 0; i < v->call->ntensors && s == GRAFT_OK; i++)
    if (v->wants[i]) s = graft_tensor_set_requires_grad(p->in[i], true);
  cf_seed_generator(p->device, v->call);
  bool before = graft_grad_mode_set(true);
  if (s == GRAFT_OK) s = graft_call(v->call->schema->id, p->args, v->call->schema->nargs, outs, v->nouts);
  if (p->route) *p->route = (uint8_t)dsp_last_route();
  for (uint32_t i = 0; s == GRAFT_OK && p->outs && i < v->nouts; i++)
    if (outs[i] && !cf_array_read(&p->outs[i], outs[i])) s = GRAFT_INTERNAL;
  if (s == GRAFT_OK) s = cf_backward(v, p, outs);
  graft_grad_mode_set(before);
  for (uint32_t i = 0; i < v->nouts; i++) graft_tensor_release(outs[i]);
  return s;
}

/* ---- the backend's side ---- */

static graft_status cf_draw_cotangent(cf_vjp *v, uint32_t out, graft_tensor *like) {
  cf_array *g = &v->g[out];
  if (!cf_array_new(g, like->dtype, like->ndim, like->sizes))
    return err_set(GRAFT_OUT_OF_MEMORY, "no memory for the cotangent of output %u", out);
  char id[CF_ID_BYTES];
  cf_case_id(v->call->c, id);
  cf_random random = {cf_hash(id) ^ (out + 1)};
  cf_note note = {.tested = true};
  if (v->call->c->mode == CF_VJP_ZERO) return GRAFT_OK; /* calloc'ed */
  cf_filling how = {.fill = CF_UNIFORM, .domain = CF_VALUES, .reduced = true};
  cf_fill_values(g, &note, &how, &random);
  /* Equal terms round alike, and growth(n) speaks of independent roundings: so the one value has few bits. */
  for (int64_t i = 0; v->call->c->mode == CF_VJP_EXPANDED && i < g->numel; i++) g->v[i] = (dt_value){1.25L, 0};
  return GRAFT_OK;
}

/* 'c', 'r', 'u', 'v' or '-'; see cf_grad. */
static char cf_phases_of(const cf_call *call, uint32_t out) {
  const char *phases = call->op->grad.phases;
  return phases ? phases[out] : '-';
}

/* Part (i, j) of a Hermitian matrix that nobody would guess, and the weight of a column or row. */
static dt_value cf_mixing(int64_t i, int64_t j, bool complex) {
  cf_random random = {(uint64_t)(i < j ? i * 4099 + j : j * 4099 + i)};
  long double re = 2 * cf_random_unit(&random) - 1, im = 2 * cf_random_unit(&random) - 1;
  return (dt_value){re, !complex || i == j ? 0 : i < j ? im : -im};
}
static long double cf_weight(int64_t j) {
  cf_random random = {(uint64_t)j + 77};
  return 0.5L + cf_random_unit(&random);
}

/* The whole of it, to be freed: each part is wanted once for each column or row. */
static dt_value *cf_mixings(int64_t size, bool complex) {
  dt_value *mixing = calloc((size_t)(size * size) + 1, sizeof *mixing); /* NULL is no memory, for 0 of them, too */
  for (int64_t at = 0; mixing && at < size * size; at++) mixing[at] = cf_mixing(at / size, at % size, complex);
  return mixing;
}

/* A stack of matrices and how their phases turn. */
typedef struct cf_turn {
  int64_t rows, columns;
  char phases;
  const dt_value *mixing; /* of rows, or, where rows turn, of columns */
} cf_turn;

/* Sum over k of mixing(i, k) x (k, j) times weight(j), or, of columns without an order, times 1; of rows, weight(i)
 * times the sum of x (i, k) mixing(k, j); of values without an order, a part of each. */
static dt_value cf_turned(const cf_turn *turn, const dt_value *x, int64_t i, int64_t j) {
  const int64_t columns = turn->columns;
  const char phases = turn->phases;
  dt_value sum = {0, 0};
  bool by_column = phases != 'r';
  if (phases == 'v') return (dt_value){0.75L * x[i * columns + j].re, 0.75L * x[i * columns + j].im};
  for (int64_t k = 0; k < (by_column ? turn->rows : columns); k++) {
    dt_value m = turn->mixing[by_column ? i * turn->rows + k : k * columns + j];
    dt_value y = x[by_column ? k * columns + j : i * columns + k];
    sum.re += m.re * y.re - m.im * y.im;
    sum.im += m.re * y.im + m.im * y.re;
  }
  long double weight = phases == 'u' ? 1 : cf_weight(by_column ? j : i);
  return (dt_value){sum.re * weight, sum.im * weight};
}

/* The cotangent that turns with the phases of `like`. */
static graft_status cf_turn_cotangent(cf_vjp *v, uint32_t out, graft_tensor *like, cf_array *g) {
  cf_array x = {0};
  if (!cf_array_read(&x, like)) return GRAFT_INTERNAL;
  cf_turn turn = {x.ndim > 1 ? x.sizes[x.ndim - 2] : 1, x.ndim ? x.sizes[x.ndim - 1] : 1, cf_phases_of(v->call, out),
                  NULL};
  const int64_t size = turn.phases == 'v' ? 0 : turn.phases == 'r' ? turn.columns : turn.rows;
  dt_value *mixing = cf_mixings(size, dt_is_complex(x.dtype));
  if (!mixing) {
    cf_array_free(&x);
    return err_set(GRAFT_OUT_OF_MEMORY, "no memory for the cotangent of output %u", out);
  }
  turn.mixing = mixing;
  int64_t each = turn.rows * turn.columns;
  for (int64_t at = 0; at < x.numel && v->call->c->mode != CF_VJP_ZERO; at++) {
    dt_value y = cf_turned(&turn, x.v + at / each * each, at % each / turn.columns, at % turn.columns);
    g->v[at] = (dt_value){dt_round(dt_real(g->dtype), y.re), dt_round(dt_real(g->dtype), y.im)};
  }
  cf_array_free(&x);
  free(mixing);
  return GRAFT_OK;
}

static graft_status cf_make_cotangent(cf_vjp *v, uint32_t out, graft_tensor *like) {
  graft_status s = cf_draw_cotangent(v, out, like);
  if (s != GRAFT_OK || cf_phases_of(v->call, out) == '-') return s;
  return cf_turn_cotangent(v, out, like, &v->g[out]);
}

static graft_status cf_device_cotangent(void *context, uint32_t out, graft_tensor *like, graft_tensor **g) {
  cf_vjp *v = context;
  graft_status s = cf_make_cotangent(v, out, like);
  if (s != GRAFT_OK) return s;
  const cf_array *a = &v->g[out];
  void *bytes = cf_array_bytes(a, a->dtype);
  if (!bytes) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for the cotangent of output %u", out);
  if (v->call->c->mode == CF_VJP_EXPANDED) {
    int64_t strides[GRAFT_MAX_DIMS] = {0}, one = 1;
    graft_tensor *base = NULL;
    s = graft_tensor_from_host(v->backend->device, a->dtype, 1, &one, bytes, &base);
    if (s == GRAFT_OK) s = tns_view(base, a->ndim, a->sizes, strides, 0, g);
    graft_tensor_release(base);
  } else {
    s = graft_tensor_from_host(v->backend->device, a->dtype, a->ndim, a->sizes, bytes, g);
  }
  free(bytes);
  return s;
}

static bool cf_device_gradient(cf_vjp *v) {
  cf_guarded in[CF_MAX_TENSORS] = {{0}};
  graft_tensor *tensors[CF_MAX_TENSORS], *items[CF_MAX_TENSORS];
  graft_value args[OP_MAX_ARGS];
  graft_status s = GRAFT_OK;
  for (uint32_t i = 0; i < v->call->ntensors && s == GRAFT_OK; i++) {
    s = cf_guard_input(v->backend->device, &v->call->specs[i], &v->call->in[i], CF_ZONE, &in[i]);
    tensors[i] = in[i].view;
  }
  uint64_t before = cf_fallback_total();
  if (s == GRAFT_OK) {
    cf_call_args(v->call, v->backend->device, tensors, args, items);
    cf_pass pass = {.device = v->backend->device,
                    .in = tensors,
                    .args = args,
                    .cotangent = cf_device_cotangent,
                    .context = v,
                    .grads = v->got,
                    .route = &v->result->route};
    s = cf_forward_backward(v, &pass);
  }
  v->result->fallback = cf_fallback_total() > before;
  char problem[160];
  for (uint32_t i = 0; s == GRAFT_OK && i < v->call->ntensors; i++) {
    if (cf_guard_check(&in[i], cf_call_mutates(v->call, i), NULL, problem, sizeof problem)) continue;
    cf_fail(v->result, "input %u %s by forward or backward", i, problem);
    break;
  }
  for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) cf_guard_free(&in[i]);
  return cf_succeeded(v->result, s, "") && v->result->outcome == CF_PASS;
}

/* ---- the oracle's side ---- */

typedef struct cf_oracle_g {
  cf_vjp *v;
  cf_transform transform;
} cf_oracle_g;

static graft_status cf_oracle_cotangent(void *context, uint32_t out, graft_tensor *like, graft_tensor **g) {
  cf_oracle_g *o = context;
  if (!o->v->g[out].v) return err_set(GRAFT_INTERNAL, "output %u requires grad with the oracle only", out);
  cf_precision precision = cf_precision_of(o->v->call);
  if (cf_phases_of(o->v->call, out) != '-') {
    cf_array turned = {0};
    bool memory =
        cf_array_new(&turned, dt_is_complex(like->dtype) ? GRAFT_WIDE_COMPLEX : GRAFT_WIDE, like->ndim, like->sizes);
    graft_status s = memory ? cf_turn_cotangent(o->v, out, like, &turned) : GRAFT_OUT_OF_MEMORY;
    if (s == GRAFT_OK) s = cf_oracle_tensor(&turned, o->transform, precision, g);
    cf_array_free(&turned);
    return s;
  }
  return cf_oracle_tensor(&o->v->g[out], o->transform, precision, g);
}

static graft_status cf_oracle_pass(cf_vjp *v, cf_transform inputs, cf_cotangent_fn cotangent, void *context,
                                   cf_array *outs, cf_array *grads) {
  cf_side side;
  graft_status s = cf_oracle_open(v->call, inputs, false, &side);
  if (s != GRAFT_OK) return s;
  cf_pass pass = {.device = graft_device_reference(),
                  .in = side.in,
                  .args = side.args,
                  .cotangent = cotangent,
                  .context = context,
                  .grads = grads,
                  .outs = outs};
  s = cf_forward_backward(v, &pass);
  cf_side_close(&side);
  return s;
}

/* Of cotangents that turn the oracle takes its own. */
static uint64_t cf_given_values(const cf_vjp *v) {
  uint64_t values = cf_answers_values(0, v->call->in, v->call->ntensors);
  for (uint32_t i = 0; i < v->nouts; i++)
    if (cf_phases_of(v->call, i) == '-') values = cf_answers_values(values, &v->g[i], 1);
  return values;
}

static graft_status cf_answer_gradient(cf_oracle_g *o, cf_transform inputs, cf_array *outs, cf_array *grads) {
  const cf_question question = {.inputs = inputs,
                                .cotangents = o->transform,
                                .gradient = true,
                                .values = cf_given_values(o->v),
                                .wants_second = outs != NULL,
                                .count = o->v->nouts};
  if (cf_answers_recall(&question, grads, outs)) return GRAFT_OK;
  graft_status s = cf_oracle_pass(o->v, inputs, cf_oracle_cotangent, o, outs, grads);
  if (s == GRAFT_OK) cf_answers_keep(&question, grads, outs);
  return s;
}

static bool cf_oracle_gradient(cf_vjp *v, cf_transform inputs, cf_transform g, cf_array *outs, cf_array *grads) {
  graft_status s = cf_answer_gradient(&(cf_oracle_g){v, g}, inputs, outs, grads);
  return s == GRAFT_OK || cf_fail(v->result, "the oracle's gradient: %s", graft_last_error());
}

static graft_status cf_probe_gradient(void *context, cf_array *grads) {
  return cf_answer_gradient(context, CF_AS_IS, NULL, grads);
}

/* S, the sum of the absolute terms of each element, and how many terms there are. */
static bool cf_gradient_terms(cf_vjp *v) {
  cf_oracle_g context = {v, CF_AS_IS};
  switch (v->call->op->grad.kind) {
    case CF_GRAD_ABS:
      return cf_oracle_gradient(v, CF_ABSOLUTE, CF_ABSOLUTE, NULL, v->terms) &&
             cf_oracle_gradient(v, CF_ONES, CF_ONES, NULL, v->ones);
    case CF_GRAD_BACKWARD:
      return cf_condition(v->call, v->g, cf_probe_gradient, &context, v->want, v->call->ntensors, v->terms) ||
             cf_fail(v->result, "the oracle cannot compute the limits: %s", graft_last_error());
    case CF_GRAD_SELECT: return cf_oracle_gradient(v, CF_AS_IS, CF_ABSOLUTE, NULL, v->terms);
    default: return true;
  }
}

/* The most elements that any tensor of the call has for one of this gradient. */
static long double cf_ratio_terms(const cf_vjp *v, const cf_array *grad) {
  int64_t most = grad->numel;
  for (uint32_t i = 0; i < v->nouts; i++) most = v->outs[i].numel > most ? v->outs[i].numel : most;
  return grad->numel ? ceill((long double)most / (long double)grad->numel) : 1;
}

static void cf_gradient_limits(const cf_vjp *v, uint32_t i, long double *limits) {
  const cf_grad *rule = &v->call->op->grad;
  const cf_array *want = &v->want[i];
  graft_dtype dtype = v->got[i].dtype;
  long double n = cf_ratio_terms(v, want);
  if (rule->kind == CF_GRAD_CUSTOM) {
    cf_check check = {.call = v->call, .in = v->call->in, .nouts = v->nouts, .outs = v->outs, .g = v->g};
    rule->terms(&check, i, limits);
  }
  for (int64_t k = 0; k < want->numel; k++) {
    long double s = limits[k], terms = n, size = cf_modulus(want->v[k]);
    if (rule->kind == CF_GRAD_KAPPA) s = cf_modulus(v->g[0].v[k]) * rule->kappa(v->call->in[0].v[k].re);
    if (v->terms[i].v) s = cf_modulus(v->terms[i].v[k]);
    if (v->ones[i].v) terms = fmaxl(1, cf_modulus(v->ones[i].v[k]));
    if (rule->kind == CF_GRAD_BACKWARD) {
      limits[k] = rule->steps * cf_matrix_size(v->call) * cf_u_acc(dtype) * s + cf_ulp(dtype, size) / 2;
      continue;
    }
    long double roundings = rule->steps * cf_u(dtype) + (rule->inner + cf_growth(terms)) * cf_u_acc(dtype);
    limits[k] = roundings * s + cf_ulp(dtype, size) / 2;
  }
}

static bool cf_compare_gradient(cf_vjp *v, uint32_t i, cf_verdict *verdict) {
  char what[64];
  snprintf(what, sizeof what, "gradient of %s", v->call->schema->args[v->call->spec_arg[i]].name);
  if (!v->got[i].v && !v->want[i].v) return true;
  if (!v->got[i].v || !v->want[i].v)
    return cf_fail(v->result, "%s is there on one side only (%s)", what, v->got[i].v ? "the backend" : "the oracle");
  if (v->got[i].dtype != v->call->specs[i].dtype)
    return cf_fail(v->result, "%s is %s, not %s", what, graft_dtype_name(v->got[i].dtype),
                   graft_dtype_name(v->call->specs[i].dtype));
  long double *limits = calloc((size_t)v->want[i].numel + 1, sizeof *limits);
  if (!limits) return cf_fail(v->result, "no memory for the limits");
  cf_gradient_limits(v, i, limits);
  cf_comparison how = {.limits = limits, .any_zero = true, .flushes = v->backend->flushes, .what = what};
  cf_compare(&v->got[i], &v->want[i], &how, verdict);
  free(limits);
  cf_dump(v->backend->dump, "gradient", i, &v->got[i]);
  cf_dump(v->backend->dump, "oracle_gradient", i, &v->want[i]);
  return verdict->ok;
}

static cf_vjp *cf_vjp_new(const cf_backend *backend, cf_call *call, cf_result *result) {
  cf_vjp *v = calloc(1, sizeof *v);
  if (!v) {
    cf_fail(result, "no memory for the case");
    return NULL;
  }
  v->backend = backend, v->call = call, v->result = result;
  v->nouts = cf_call_outs(call);
  for (uint32_t i = 0; i < call->ntensors; i++) v->wants[i] = cf_differentiable(call, i);
  return v;
}

static void cf_vjp_free(cf_vjp *v) {
  cf_array *all[] = {v->g, v->got, v->want, v->terms, v->ones, v->outs};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++)
    for (uint32_t i = 0; i < CF_MAX_TENSORS; i++) cf_array_free(&all[k][i]);
  free(v);
}

void cf_run_gradient(const cf_backend *backend, cf_call *call, cf_result *result) {
  cf_vjp *v = cf_vjp_new(backend, call, result);
  if (!v) return;
  cf_verdict verdict = {.ok = true};
  bool ok =
      cf_device_gradient(v) && cf_oracle_gradient(v, CF_AS_IS, CF_AS_IS, v->outs, v->want) && cf_gradient_terms(v);
  if (ok && call->op->rule.klass == CF_PERMUTED) {
    cf_order_ties(call, &v->got[0], NULL);
    cf_order_ties(call, &v->want[0], &v->terms[0]);
  }
  for (uint32_t i = 0; ok && i < call->ntensors; i++)
    if (v->wants[i]) ok = cf_compare_gradient(v, i, &verdict);
  if (!verdict.ok) cf_fail(result, "%s", verdict.text);
  result->ratio = verdict.ratio, result->error = verdict.error;
  cf_vjp_free(v);
}

/* ---- <J u, v> = <u, J^T v> ---- */

static void cf_shift(cf_call *call, const cf_array *directions, long double h) {
  for (uint32_t i = 0; i < call->ntensors; i++)
    for (int64_t k = 0; directions[i].v && k < directions[i].numel; k++) {
      call->in[i].v[k].re += h * directions[i].v[k].re;
      call->in[i].v[k].im += h * directions[i].v[k].im;
    }
}

static bool cf_shifted_forward(cf_vjp *v, const cf_array *directions, long double h, cf_array *outs) {
  cf_shift(v->call, directions, h);
  cf_seed_generator(graft_device_reference(), v->call); /* the same draws each time */
  graft_status s = cf_oracle_run(v->call, CF_AS_IS, false, v->nouts, outs, NULL);
  cf_shift(v->call, directions, -h);
  return s == GRAFT_OK || cf_fail(v->result, "the oracle: %s", graft_last_error());
}

typedef struct cf_product {
  long double sum, terms;
} cf_product;

static void cf_product_add(cf_product *p, dt_value a, dt_value b) {
  long double re = a.re * b.re, im = a.im * b.im;
  p->sum += re + im;
  p->terms += fabsl(re) + fabsl(im);
}

static graft_status cf_adjoint_cotangent(void *context, uint32_t out, graft_tensor *like, graft_tensor **g) {
  cf_vjp *v = context;
  graft_status s = cf_make_cotangent(v, out, like);
  if (s != GRAFT_OK) return s;
  for (int64_t i = 0; i < v->g[out].numel; i++) v->g[out].v[i].re = (double)v->g[out].v[i].re;
  return cf_oracle_tensor(&v->g[out], CF_AS_IS, cf_precision_of(v->call), g);
}

/* Directions to move the inputs in. */
static bool cf_draw_directions(cf_vjp *v, cf_array *u) {
  const cf_call *call = v->call;
  cf_random random = {cf_hash(call->op->name) + 17};
  cf_note note = {.tested = true};
  cf_filling how = {.fill = CF_UNIFORM, .domain = CF_UNIT, .reduced = true};
  for (uint32_t i = 0; i < call->ntensors; i++) {
    if (!v->wants[i]) continue;
    if (!cf_array_new(&u[i], call->specs[i].dtype, call->specs[i].ndim, call->specs[i].sizes))
      return cf_fail(v->result, "no memory for the directions");
    cf_fill_values(&u[i], &note, &how, &random);
    bool hermitian = call->notes[i].matrices == CF_HERMITIAN || call->notes[i].matrices == CF_DEFINITE;
    if (hermitian) cf_fill_hermitian(&u[i]);
  }
  return true;
}

/* J^T v, with the results and v itself. */
static bool cf_adjoint_gradient(cf_vjp *v) {
  graft_status s = cf_oracle_pass(v, CF_AS_IS, cf_adjoint_cotangent, v, v->outs, v->want);
  return cf_succeeded(v->result, s, "the oracle's gradient");
}

static void cf_judge_adjoint(cf_result *result, const cf_product *left, const cf_product *right) {
  const long double tolerance = 1e-7L;
  result->error = (double)fabsl(left->sum - right->sum);
  result->limit = (double)(tolerance * (left->terms + right->terms) + 1e-12L);
  result->ratio = result->error / result->limit;
  if (isnan(left->sum) && right->terms == 0) result->ratio = 0; /* no inputs to move: the mean of nothing */
  if (!(result->ratio <= 1))
    cf_fail(result, "adjoint identity of the oracle: <Ju,v> = %.12Lg, <u,J'v> = %.12Lg", left->sum, right->sum);
}

void cf_run_adjoint(cf_call *call, cf_result *result) {
  const cf_precision precision = cf_precision_of(call);
  const long double h = precision.doubles || precision.native ? 0x1p-20L : 1e-9L;
  cf_vjp *v = cf_vjp_new(NULL, call, result);
  if (!v) return;
  cf_array *u = v->terms, *plus = v->ones, *minus = v->got;
  bool ok = cf_draw_directions(v, u) && cf_adjoint_gradient(v);
  for (uint32_t i = 0; i < call->ntensors; i++) /* what has no gradient is held still */
    if (!v->want[i].v) cf_array_free(&u[i]);
  ok = ok && cf_shifted_forward(v, u, h, plus) && cf_shifted_forward(v, u, -h, minus);
  cf_product left = {0}, right = {0};
  for (uint32_t i = 0; ok && i < v->nouts; i++)
    for (int64_t k = 0; v->g[i].v && k < v->g[i].numel; k++) {
      dt_value slope = {(plus[i].v[k].re - minus[i].v[k].re) / (2 * h), (plus[i].v[k].im - minus[i].v[k].im) / (2 * h)};
      cf_product_add(&left, slope, v->g[i].v[k]);
    }
  for (uint32_t i = 0; ok && i < call->ntensors; i++)
    for (int64_t k = 0; u[i].v && v->want[i].v && k < u[i].numel; k++)
      cf_product_add(&right, u[i].v[k], v->want[i].v[k]);
  if (ok) cf_judge_adjoint(result, &left, &right);
  cf_vjp_free(v);
}
