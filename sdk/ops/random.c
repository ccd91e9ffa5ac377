/* Random numbers: Philox 4x32-10 as graft/abi/exec.h specifies it, the same on every backend. Element i is element i of
 * the logical order, so none of these ops is elementwise. A complex number is two elements, the real part first. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

/* --- rules --- */

/* 32-bit words that n elements of a dtype draw, rounded up to whole blocks. */
static uint64_t words_for(int64_t n, graft_dtype dtype) {
  if (dt_is_complex(dtype)) n *= 2;
  graft_dtype real = dt_real(dtype);
  uint64_t per_block = real == GRAFT_F64 || real == GRAFT_WIDE ? 2 : 4;
  return 4 * (((uint64_t)n + per_block - 1) / per_block);
}

static bool is_drawn(graft_dtype dtype) {
  return dt_is_complex(dtype) || (dt_is_float(dtype) && !dt_is_float8(dtype));
}

/* rand, randn(size, dtype, layout, device, pin_memory) */
static graft_status infer_rand(op_call *c) {
  graft_dtype dtype = op_dtype(c, 1) ? op_dtype(c, 1) : DT_DEFAULT;
  if (!is_drawn(dtype)) return op_error(c, "not defined for %s; expected a floating or complex dtype", graft_dtype_name(dtype));
  graft_status status = op_check_sizes(c, 0);
  if (status) return status;
  op_set_dtype(c, 1, dtype);
  c->draws = words_for(tns_numel((int32_t)c->args[0].count, c->args[0].as.ints), dtype);
  op_out(c, 0, dtype, (int32_t)c->args[0].count, c->args[0].as.ints);
  return GRAFT_OK;
}

/* uniform(self, from, to, generator) */
static graft_status infer_uniform(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  double from = op_float(c, 1), to = op_float(c, 2);
  if (!is_drawn(self->dtype)) return op_refuse_dtype(c, 0, "a floating or complex dtype");
  if (!(from <= to)) return op_error(c, "from %g to %g is no interval", from, to);
  if (!isfinite((double)dt_round(dt_real(self->dtype), to - from))) {
    return op_error(c, "the interval from %g to %g is too wide for %s", from, to, graft_dtype_name(self->dtype));
  }
  c->draws = words_for(self->numel, self->dtype);
  op_out_like(c, 0, self->dtype, self);
  return GRAFT_OK;
}

/* The largest n whose numbers below n a dtype holds. */
static int64_t most_integers(graft_dtype dtype) {
  switch (dtype) {
    case GRAFT_F16: return (INT64_C(1) << 11) + 1;
    case GRAFT_F32: return (INT64_C(1) << 24) + 1;
    case GRAFT_F64: return (INT64_C(1) << 53) + 1;
    case GRAFT_BOOL: return 0;
    default: break;
  }
  if (!dt_is_integral(dtype, false) || dt_bytes(dtype) == 8) return INT64_MAX;
  return (INT64_C(1) << (8 * dt_bytes(dtype) - !dt_is_unsigned(dtype))) - 1;
}

static graft_status infer_permutation(op_call *c, int dtype_arg) {
  int64_t n = op_int(c, 0);
  graft_dtype dtype = op_dtype(c, dtype_arg) ? op_dtype(c, dtype_arg) : GRAFT_I64;
  bool integral = dt_is_integral(dtype, false) && (!dt_is_unsigned(dtype) || dtype == GRAFT_U8);
  if (!integral && (!dt_is_float(dtype) || dt_is_float8(dtype))) return op_error(c, "not defined for %s", graft_dtype_name(dtype));
  if (n < 0) return op_error(c, "n is %lld; expected 0 or more", (long long)n);
  if (n > most_integers(dtype)) return op_error(c, "n is %lld, which is too large for %s", (long long)n, graft_dtype_name(dtype));
  op_set_dtype(c, dtype_arg, dtype);
  c->draws = words_for(n, GRAFT_F64); /* two words an element */
  op_out(c, 0, dtype, 1, &n);
  return GRAFT_OK;
}

/* randperm(n, dtype, …); randperm.generator(n, generator, dtype, …) */
static graft_status infer_randperm(op_call *c) { return infer_permutation(c, 1); }
static graft_status infer_randperm_generator(op_call *c) { return infer_permutation(c, 2); }

/* channels_last where the strides are those of it, for empty tensors too. */
static graft_memory_format layout_of(const graft_tensor *t) {
  int64_t strides[GRAFT_MAX_DIMS];
  if (t->numel || t->ndim < 4 || t->ndim > 5) return tns_suggest_format(t);
  tns_channels_last_strides(t->ndim, t->sizes, strides);
  bool same = true;
  for (int32_t i = 0; i < t->ndim; i++) same &= strides[i] == t->strides[i];
  return !same ? GRAFT_FORMAT_CONTIGUOUS : t->ndim == 4 ? GRAFT_FORMAT_CHANNELS_LAST : GRAFT_FORMAT_CHANNELS_LAST_3D;
}

/* native_dropout(input, p, train) -> (out, mask); without training p is not looked at */
static graft_status infer_native_dropout(op_call *c) {
  const graft_tensor *input = op_tensor(c, 0);
  double p = op_float(c, 1);
  bool train = op_absent(c, 2) || op_bool(c, 2);
  if (train && !(p >= 0 && p <= 1)) return op_error(c, "p is %g; expected 0 to 1", p);
  if (train && !dt_is_float(input->dtype) && !dt_is_complex(input->dtype)) return op_refuse_dtype(c, 0, "a floating dtype");
  c->compute = input->dtype;
  c->draws = words_for(input->numel, dt_real(input->dtype));
  graft_memory_format format = layout_of(input);
  for (int i = 0; i < 2; i++) {
    op_out_format(c, i, i ? GRAFT_BOOL : input->dtype, input->ndim, input->sizes, format);
    if (format == GRAFT_FORMAT_CONTIGUOUS) op_iterator_strides(&c->out[i], &(const graft_tensor *){input}, 1);
  }
  return GRAFT_OK;
}

/* native_dropout_backward(grad_output, mask, scale): scale is a number that promotes */
static graft_status infer_native_dropout_backward(op_call *c) {
  graft_dtype dtype = op_tensor(c, 0)->dtype;
  c->compute = dt_is_integral(dtype, true) ? DT_DEFAULT : dtype;
  return op_out_broadcast(c, 0, c->compute);
}

/* --- kernels --- */

/* The element's uniform number for arithmetic: half types compute with that of f32. */
static ref_real wide_uniform(const graft_philox *p, graft_dtype dtype, uint64_t element) {
  return ref_philox_uniform(p, dt_is_half(dtype) ? GRAFT_F32 : dtype, element);
}

static ref_real draw_uniform(const graft_philox *p, graft_dtype dtype, uint64_t i) { return ref_philox_uniform(p, dtype, i); }

static ref_real draw_normal(const graft_philox *p, graft_dtype dtype, uint64_t i) {
  const ref_real two_pi = 6.283185307179586476925286766559L;
  ref_real u1 = wide_uniform(p, dtype, i & ~UINT64_C(1)), u2 = wide_uniform(p, dtype, i | 1);
  ref_real r = sqrtl(-2 * logl(1 - u1));
  return i & 1 ? r * sinl(two_pi * u2) : r * cosl(two_pi * u2);
}

typedef ref_real (*draw_fn)(const graft_philox *p, graft_dtype dtype, uint64_t element);

/* out = a + b * draw; both parts of a complex number alike. */
static graft_status draw(const graft_tensor_desc *out, const graft_philox *p, draw_fn fn, ref_real a, ref_real b) {
  graft_dtype real = dt_real(out->dl.dtype);
  ref_array y = ref_new(ref_numel(out), dt_is_complex(out->dl.dtype));
  if (!y.re) return ref_no_memory();
  for (int64_t i = 0; i < y.count; i++) {
    uint64_t element = (uint64_t)i * (y.im ? 2 : 1);
    y.re[i] = a + b * fn(p, real, element);
    if (y.im) y.im[i] = a + b * fn(p, real, element + 1);
  }
  ref_write(out, &y);
  ref_free(&y);
  return GRAFT_OK;
}

static graft_status ref_rand(const graft_exec *exec, const graft_args_rand *a) {
  (void)exec;
  return draw(a->out, a->philox, draw_uniform, 0, 1);
}

/* The variance of a complex number is 1, so that of each part a half. */
static graft_status ref_randn(const graft_exec *exec, const graft_args_randn *a) {
  (void)exec;
  return draw(a->out, a->philox, draw_normal, 0, dt_is_complex(a->out->dl.dtype) ? sqrtl(0.5L) : 1);
}

static graft_status ref_uniform(const graft_exec *exec, const graft_args_uniform *a) {
  (void)exec;
  bool unit = a->from == 0 && a->to == 1; /* then a half type's number is truncated, else computed and rounded once */
  return draw(a->out, a->philox, unit ? draw_uniform : wide_uniform, a->from, (ref_real)a->to - a->from);
}

typedef struct keyed {
  uint64_t key;
  int64_t index;
} keyed;

static int by_key(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static graft_status permute(const graft_tensor_desc *out, const graft_philox *p) {
  ref_array y = ref_new(ref_numel(out), false);
  keyed *items = calloc((size_t)y.count + 1, sizeof *items);
  graft_status status = y.re && items ? GRAFT_OK : ref_no_memory();
  if (!status) {
    for (int64_t i = 0; i < y.count; i++) {
      uint64_t low = ref_philox_word(p, 2 * (uint64_t)i), high = ref_philox_word(p, 2 * (uint64_t)i + 1);
      items[i] = (keyed){high << 32 | low, i};
    }
    qsort(items, (size_t)y.count, sizeof *items, by_key);
    for (int64_t i = 0; i < y.count; i++) y.re[i] = (ref_real)items[i].index;
    ref_write(out, &y);
  }
  free(items);
  ref_free(&y);
  return status;
}

static graft_status ref_randperm(const graft_exec *exec, const graft_args_randperm *a) {
  (void)exec;
  return permute(a->out, a->philox);
}

static graft_status ref_randperm_generator(const graft_exec *exec, const graft_args_randperm_generator *a) {
  (void)exec;
  return permute(a->out, a->philox);
}

static graft_status ref_native_dropout(const graft_exec *exec, const graft_args_native_dropout *a) {
  (void)exec;
  ref_array x = ref_read(a->input), mask = ref_new(x.count, false);
  graft_status status = x.re && mask.re ? GRAFT_OK : ref_no_memory();
  bool train = !a->train || *a->train;
  graft_dtype real = dt_real(a->input->dl.dtype);
  ref_real scale = !train ? 1 : a->p < 1 ? 1 / (1 - (ref_real)a->p) : 0;
  for (int64_t i = 0; !status && i < x.count; i++) {
    mask.re[i] = !train || wide_uniform(a->philox, real, (uint64_t)i) < 1 - (ref_real)a->p;
    x.re[i] = mask.re[i] != 0 ? x.re[i] * scale : 0;
    if (x.im) x.im[i] = mask.re[i] != 0 ? x.im[i] * scale : 0;
  }
  if (!status) {
    ref_write(a->out0, &x);
    ref_write(a->out1, &mask);
  }
  ref_free(&x);
  ref_free(&mask);
  return status;
}

static graft_status ref_native_dropout_backward(const graft_exec *exec, const graft_args_native_dropout_backward *a) {
  (void)exec;
  ref_array g = ref_read(a->grad_output), mask = ref_read(a->mask);
  graft_status status = g.re && mask.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < g.count; i++) {
    ref_real factor = mask.re[i] * (ref_real)a->scale;
    g.re[i] *= factor;
    if (g.im) g.im[i] *= factor;
  }
  if (!status) ref_write(a->out, &g);
  ref_free(&g);
  ref_free(&mask);
  return status;
}

/* --- decompositions and gradients --- */

static void decompose_native_dropout_backward(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *g = op_tensor(c, 0), *mask = op_tensor(c, 1);
  outs[0] = fx_mul(s, g, fx_muls(s, fx_cast(s, mask, dt_real(c->compute)), op_float(c, 2)));
}

static void vjp_native_dropout(op_vjp *v) {
  double p = v->args[1].as.f;
  bool train = v->args[2].kind == GRAFT_VALUE_NONE || v->args[2].as.i;
  if (!v->g[0]) return;
  v->results[0] = train ? fx_native_dropout_backward(v->s, v->g[0], v->outs[1], p < 1 ? 1 / (1 - p) : 0) : v->g[0];
}

static void vjp_native_dropout_backward(op_vjp *v) {
  v->results[0] = fx_native_dropout_backward(v->s, v->g[0], vjp_arg(v, 1), v->args[2].as.f);
}

static void vjp_none(op_vjp *v) { (void)v; } /* self says the shape only */

static const op_def defs[] = {
    {.op_id = GRAFT_OP_RAND, .roles = "", .infer = infer_rand, .reference = OP_REF(rand)},
    {.op_id = GRAFT_OP_RANDN, .roles = "", .infer = infer_rand, .reference = OP_REF(randn)},
    {.op_id = GRAFT_OP_RANDPERM, .roles = "", .infer = infer_randperm, .reference = OP_REF(randperm)},
    {.op_id = GRAFT_OP_RANDPERM_GENERATOR, .roles = "", .infer = infer_randperm_generator,
     .reference = OP_REF(randperm_generator)},
    {.op_id = GRAFT_OP_UNIFORM, .roles = "k", .infer = infer_uniform, .vjp = vjp_none, .reference = OP_REF(uniform)},
    {.op_id = GRAFT_OP_NATIVE_DROPOUT, .roles = "v", .infer = infer_native_dropout, .vjp = vjp_native_dropout,
     .saves = OP_SAVE_OUT(1), .reference = OP_REF(native_dropout)},
    {.op_id = GRAFT_OP_NATIVE_DROPOUT_BACKWARD, .roles = "bc", .infer = infer_native_dropout_backward,
     .decompose = decompose_native_dropout_backward, .vjp = vjp_native_dropout_backward, .saves = OP_SAVE_ARG(1),
     .flags = OP_ELEMENTWISE, .reference = OP_REF(native_dropout_backward)},
};
OP_FAMILY_END(random, defs)
