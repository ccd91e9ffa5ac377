/* Random numbers: Philox 4x32-10 as graft/abi/exec.h specifies it, the same on every backend. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

/* 32-bit words that n elements of a dtype draw, rounded up to whole blocks. */
static uint64_t words_for(int64_t n, graft_dtype dtype) {
  uint64_t per_block = dtype == GRAFT_F64 || dtype == GRAFT_WIDE ? 2 : 4;
  return 4 * (((uint64_t)n + per_block - 1) / per_block);
}

/* native_dropout(input, p, train) -> (out, mask) */
static graft_status infer_native_dropout(op_call *c) {
  const graft_tensor *input = op_tensor(c, 0);
  double p = op_float(c, 1);
  if (!(p >= 0 && p <= 1)) return op_error(c, "p is %g; expected 0 to 1", p);
  if (!dt_is_float(input->dtype) && !dt_is_complex(input->dtype)) return op_refuse_dtype(c, 0, "a floating dtype");
  c->compute = input->dtype;
  c->draws = words_for(input->numel, input->dtype);
  op_out_like(c, 0, input->dtype, input);
  op_out_like(c, 1, GRAFT_BOOL, input);
  return GRAFT_OK;
}

static graft_status ref_native_dropout(const graft_exec *exec, const graft_args_native_dropout *a) {
  (void)exec;
  ref_array x = ref_read(a->input), mask = ref_new(x.count, false);
  graft_status status = x.re && mask.re ? GRAFT_OK : ref_no_memory();
  bool train = !a->train || *a->train;
  ref_real scale = a->p < 1 ? 1 / (1 - (ref_real)a->p) : 0;
  for (int64_t i = 0; !status && i < x.count; i++) {
    bool kept = !train || ref_philox_uniform(a->philox, dt_is_half(a->input->dl.dtype) ? GRAFT_F32 : a->input->dl.dtype,
                                             (uint64_t)i) < 1 - (ref_real)a->p;
    mask.re[i] = kept;
    x.re[i] = kept ? (train ? x.re[i] * scale : x.re[i]) : 0;
  }
  if (!status) {
    ref_write(a->out0, &x);
    ref_write(a->out1, &mask);
  }
  ref_free(&x);
  ref_free(&mask);
  return status;
}

static void vjp_native_dropout(op_vjp *v) {
  double p = v->args[1].as.f;
  bool train = v->args[2].kind == GRAFT_VALUE_NONE || v->args[2].as.i;
  if (v->g[0]) v->results[0] = train ? fx_muls(v->s, fx_mul(v->s, v->g[0], v->outs[1]), p < 1 ? 1 / (1 - p) : 0) : v->g[0];
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_NATIVE_DROPOUT, .roles = "v", .infer = infer_native_dropout, .vjp = vjp_native_dropout,
     .saves = OP_SAVE_OUT(1), .reference = OP_REF(native_dropout)},
};
OP_FAMILY_END(random, defs)
