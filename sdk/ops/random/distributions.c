/* Distributions that are functions of a uniform or a normal number: cauchy, geometric, log_normal. */
#include "ops/core/table.h"
#include "ops/random/random.h"

/* --- rules: self says shape and dtype --- */

static graft_status draw_like(op_call *c, bool integers) {
  const graft_tensor *self = op_tensor(c, ARG_cauchy_self);
  bool real = !dt_is_complex(self->dtype) && self->dtype != GRAFT_BOOL;
  bool computed = !dt_is_float8(self->dtype) || !self->numel; /* of nothing: as PyTorch */
  if (!real || !computed || (!integers && !dt_is_float(self->dtype)))
    return op_refuse(c, ARG_cauchy_self, integers ? "a real dtype other than bool" : "a floating dtype");
  c->draws = rnd_words_for(self->numel, self->dtype);
  op_out_like(c, OUT, self->dtype, self);
  return GRAFT_OK;
}

static graft_status infer_cauchy(op_call *c) {
  const in_cauchy in = in_cauchy_of(c->args);
  if (!(in.sigma > 0)) return op_error(c, "sigma is %g; expected more than 0", in.sigma);
  return draw_like(c, false);
}

static graft_status infer_geometric(op_call *c) {
  const in_geometric in = in_geometric_of(c->args);
  if (!(in.p > 0 && in.p < 1)) return op_error(c, "p is %g; expected it between 0 and 1", in.p);
  return draw_like(c, true);
}

static graft_status infer_log_normal(op_call *c) {
  const in_log_normal in = in_log_normal_of(c->args);
  if (!(in.std > 0)) return op_error(c, "std is %g; expected more than 0", in.std);
  return draw_like(c, false);
}

/* --- kernels --- */

static const ref_real pi = 3.141592653589793238462643383279L;

/* tan(pi (u - 1/2)); near its poles from the other side, where the angle is small and as exact as u. */
static ref_real draw_cauchy(const graft_philox *p, graft_dtype dtype, uint64_t i) {
  ref_real u = rnd_uniform_above(p, dtype, i);
  if (u < 0.25L) return -1 / tanl(pi * u);
  return u > 0.75L ? 1 / tanl(pi * (1 - u)) : tanl(pi * (u - 0.5L));
}

graft_status kernel_cauchy(const graft_exec *exec, const graft_args_cauchy *a) {
  return rnd_draw(a->out, a->philox, draw_cauchy, a->median, a->sigma);
}

graft_status kernel_geometric(const graft_exec *exec, const graft_args_geometric *a) {
  REF_OWNED ref_array y = ref_new(ref_numel(a->out), false);
  if (!y.re) return ref_no_memory();
  for (int64_t i = 0; i < y.count; i++) {
    ref_real u = rnd_uniform(a->philox, a->out->dl.dtype, (uint64_t)i);
    y.re[i] = fmaxl(ceill(log1pl(-u) / log1pl(-(ref_real)a->p)), 1);
  }
  ref_write(a->out, &y);
  return GRAFT_OK;
}

graft_status kernel_log_normal(const graft_exec *exec, const graft_args_log_normal *a) {
  REF_OWNED ref_array y = ref_new(ref_numel(a->out), false);
  if (!y.re) return ref_no_memory();
  for (int64_t i = 0; i < y.count; i++)
    y.re[i] = expl(a->mean + a->std * rnd_normal(a->philox, a->out->dl.dtype, (uint64_t)i));
  ref_write(a->out, &y);
  return GRAFT_OK;
}

static void vjp_none(op_vjp *v) {
  (void)v;
} /* self says the shape only */

#define DISTRIBUTION(op) \
  { .op_id = OP_WITH_KERNEL(op), .roles = "k", .infer = infer_##op, .vjp = vjp_none, .flags = OP_SINCE_1_2 }

static const op_def defs[] = {DISTRIBUTION(cauchy), DISTRIBUTION(geometric), DISTRIBUTION(log_normal)};
OP_TABLE(random_distributions, defs)
