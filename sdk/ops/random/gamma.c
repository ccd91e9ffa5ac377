/* Gamma variates by rejection (Marsaglia and Tsang, A simple method for generating gamma variables, ACM TOMS 26, 2000),
 * and how far one moves with its shape where the uniform numbers behind it stay. */
#include <math.h>

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/pointwise/pointwise.h"
#include "ops/random/random.h"

/* --- rules --- */

static graft_status infer_gamma(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_standard_gamma_self);
  graft_status status = op_check_floating(c, ARG_standard_gamma_self);
  if (status) return status;
  c->compute = self->dtype;
  c->draws = 4 * (uint64_t)self->numel;
  op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  return GRAFT_OK;
}

static graft_status infer_gamma_grad(op_call *c) {
  graft_status status = op_check_floating(c, ARG_standard_gamma_grad_self);
  if (!status) status = op_check_same_dtype(c, ARG_standard_gamma_grad_self, ARG_standard_gamma_grad_output);
  if (status) return status;
  c->compute = op_tensor(c, ARG_standard_gamma_grad_self)->dtype;
  return op_out_broadcast(c, OUT, c->compute);
}

/* --- kernels --- */

/* The four uniform numbers of an attempt. */
static void attempt_uniforms(const graft_philox *p, bool wide, uint64_t element, uint32_t attempt, ref_real *u) {
  uint64_t block = ref_philox_offset(p) / 4 + element;
  const uint32_t key[] = {(uint32_t)p->seed, (uint32_t)(p->seed >> 32)};
  uint32_t words[8];
  for (uint32_t half = 0; half <= wide; half++) {
    uint32_t high = wide ? 2 * attempt + half : attempt;
    ref_philox_block((uint32_t[]){(uint32_t)block, (uint32_t)(block >> 32), high, 0}, key, words + 4 * half);
  }
  for (int i = 0; i < 4; i++) {
    uint64_t bits = wide ? (uint64_t)words[2 * i + 1] << 32 | words[2 * i] : 0;
    u[i] = wide ? (ref_real)(bits >> 11) * 0x1p-53L : (ref_real)(words[i] >> 8) * 0x1p-24L;
  }
}

rnd_gamma rnd_gamma_of(const graft_philox *p, graft_dtype dtype, ref_real shape, uint64_t element) {
  bool wide = dtype == GRAFT_F64 || dtype == GRAFT_WIDE, boosts = shape < 1;
  rnd_gamma g = {.value = shape > 0 ? INFINITY : shape == 0 ? 0 : NAN, .y = 1, .slack = INFINITY};
  if (!(shape > 0) || isinf(shape)) return g;
  ref_real d = shape + boosts - 1 / 3.0L, u[4];
  g.c = 1 / sqrtl(9 * d);
  for (uint32_t attempt = 0; attempt < RND_GAMMA_ATTEMPTS; attempt++) {
    const ref_real two_pi = 6.283185307179586476925286766559L;
    attempt_uniforms(p, wide, element, attempt, u);
    ref_real radius = sqrtl(-2 * log1pl(-u[0])), z = radius * cosl(two_pi * u[1]), y = 1 + g.c * z;
    g.slack = fminl(g.slack, fabsl(y) / (24 * g.c * radius + 2));
    if (!(y > 0)) continue;
    ref_real v = y * y * y, left = log1pl(-u[2]), right = z * z / 2 + d * (1 - v + logl(v));
    ref_real terms = fabsl(left) + z * z / 2 + d * (1 + v + fabsl(logl(v)));
    ref_real moves = 24 * radius * (fabsl(z) + 3 * d * fabsl(1 - v) * g.c / y);
    g.slack = fminl(g.slack, fabsl(left - right) / (8 * terms + moves));
    if (!(left < right)) continue;
    g.y = y, g.radius = radius, g.boost = boosts ? log1pl(-u[3]) / shape : 0;
    g.value = d * v * expl(g.boost);
    return g;
  }
  g.value = d;
  return g;
}

static ref_real smallest_normal(graft_dtype dtype) {
  return dtype == GRAFT_F16 ? 0x1p-14L : dtype == GRAFT_F64 || dtype == GRAFT_WIDE ? 0x1p-1022L : 0x1p-126L;
}

graft_status kernel_standard_gamma(const graft_exec *exec, const graft_args_standard_gamma *a) {
  REF_OWNED ref_array shapes = ref_read(a->self);
  if (!shapes.re) return ref_no_memory();
  graft_dtype dtype = a->self->dl.dtype;
  ref_real least = smallest_normal(dtype);
  for (int64_t i = 0; i < shapes.count; i++) {
    ref_real x = rnd_gamma_of(a->philox, dtype, shapes.re[i], (uint64_t)i).value;
    shapes.re[i] = x < least ? least : x;
  }
  ref_write(a->out, &shapes);
  return GRAFT_OK;
}

/* Where x is small, by the first terms of the series of the distribution. */
static ref_real slope_of_series(ref_real shape, ref_real x) {
  ref_real factor = 1, divisor = shape, sum = 1 / shape, squares = 1 / (shape * shape);
  for (int i = 1; i <= 5; i++) {
    factor *= -x / i, divisor += 1;
    sum += factor / divisor, squares += factor / (divisor * divisor);
  }
  ref_real power = powl(x, shape), density = powl(x, shape - 1) * expl(-x);
  ref_real slope = -((logl(x) - pw_digamma(shape)) * power * sum - power * squares) / density;
  return isnan(slope) ? 0 : slope;
}

/* Of large shapes, by the saddle point; near it, by a polynomial. */
static ref_real slope_of_saddle(ref_real a, ref_real x) {
  if (0.9L * a <= x && x <= 1.1L * a) {
    ref_real first = 1 + 24 * a * (1 + 12 * a);
    ref_real second = 1440 * a * a + 6 * x * (53 - 120 * x) - 65 * x * x / a + a * (107 + 3600 * x);
    return first * second / (1244160 * a * a * a * a);
  }
  ref_real ratio = logl(x / a), root = sqrtl(8 * a), away = a - x;
  ref_real power = powl(-away - a * ratio, -1.5L), pull = root / away + (x < a ? -power : power);
  ref_real term = ratio * pull - sqrtl(2 / a) * (a + x) / (away * away);
  return -(1 + 1 / (12 * a) * (1 + 1 / (24 * a))) * x * term / root;
}

/* Elsewhere by a quotient of polynomials. */
static ref_real slope_of_quotient(ref_real a, ref_real x) {
  static const ref_real rows[3][8] = {
      {0.16009398L, -0.094634809L, 0.025146376L, -0.0030648343L, 1, 0.32668115L, 0.10406089L, 0.0014179084L},
      {0.53487893L, 0.1298071L, 0.065735949L, -0.0015649758L, 0.16639465L, 0.020070113L, -0.0035938915L,
       -0.00058392623L},
      {0.040121004L, -0.0065914022L, -0.0026286047L, -0.0013441777L, 0.017050642L, -0.0021309326L, 0.00085092367L,
       -1.5247877e-07L}};
  ref_real u = logl(x / a), v = logl(a), parts[2] = {0, 0};
  for (int i = 7; i >= 0; i--) parts[i / 4] = parts[i / 4] * v + rows[0][i] + u * (rows[1][i] + u * rows[2][i]);
  return expl(parts[0] / parts[1]);
}

static ref_real slope_of(ref_real shape, ref_real x) {
  if (x < 0.8L) return slope_of_series(shape, x);
  return shape > 8 ? slope_of_saddle(shape, x) : slope_of_quotient(shape, x);
}

graft_status kernel_standard_gamma_grad(const graft_exec *exec, const graft_args_standard_gamma_grad *a) {
  REF_OWNED ref_array shapes = ref_read(a->self), x = ref_read(a->output);
  if (!shapes.re || !x.re) return ref_no_memory();
  for (int64_t i = 0; i < x.count; i++) x.re[i] = slope_of(shapes.re[i], x.re[i]);
  ref_write(a->out, &x);
  return GRAFT_OK;
}

/* --- gradient --- */

static void vjp_gamma(op_vjp *v) {
  graft_tensor *slope = fx_standard_gamma_grad(v->s, vjp_arg(v, ARG_standard_gamma_self), v->outs[OUT]);
  v->results[ARG_standard_gamma_self] = fx_mul(v->s, v->g[OUT], slope);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(standard_gamma),
     .roles = "v",
     .infer = infer_gamma,
     .vjp = vjp_gamma,
     .saves = OP_SAVE_ARG(standard_gamma, self) | OP_SAVE_OUT(standard_gamma, out),
     .flags = OP_SINCE_1_2 | OP_NO_WIDEN},
    {.op_id = OP_WITH_KERNEL(standard_gamma_grad), .roles = "bb", .infer = infer_gamma_grad, .flags = OP_ELEMENTWISE},
};
OP_TABLE(random_gamma, defs)
