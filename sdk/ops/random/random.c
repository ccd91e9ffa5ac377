/* Random numbers: Philox 4x32-10 as graft/abi/exec.h specifies it, the same on every backend. Element i is element i of
 * the logical order, so none of these ops is elementwise. A complex number is two elements, the real part first. */
#include "ops/random/random.h"

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

uint64_t rnd_words_for(int64_t n, graft_dtype dtype) {
  if (dt_is_complex(dtype)) n *= 2;
  graft_dtype real = dt_real(dtype);
  uint64_t per_block = real == GRAFT_F64 || real == GRAFT_WIDE ? 2 : 4;
  return 4 * (((uint64_t)n + per_block - 1) / per_block);
}

static bool is_drawn(graft_dtype dtype) {
  return dt_is_complex(dtype) || (dt_is_float(dtype) && !dt_is_float8(dtype));
}

static graft_status infer_rand(op_call *c) {
  const in_rand in = in_rand_of(c->args);
  graft_dtype dtype = in.dtype ? in.dtype : dt_default();
  if (!is_drawn(dtype))
    return op_error(c, "not defined for %s; expected a floating or complex dtype", graft_dtype_name(dtype));
  graft_status status = op_check_sizes(c, ARG_rand_size);
  if (status) return status;
  op_set_dtype(c, ARG_rand_dtype, dtype);
  c->draws = rnd_words_for(tns_numel((int32_t)c->args[ARG_rand_size].count, c->args[ARG_rand_size].as.ints), dtype);
  op_out(c, OUT, dtype, (int32_t)c->args[ARG_rand_size].count, c->args[ARG_rand_size].as.ints);
  return GRAFT_OK;
}

static graft_status infer_uniform(op_call *c) {
  const in_uniform in = in_uniform_of(c->args);
  if (!is_drawn(in.self->dtype)) return op_refuse(c, ARG_uniform_self, "a floating or complex dtype");
  if (!(in.from <= in.to)) return op_error(c, "from %g to %g is no interval", in.from, in.to);
  if (!isfinite((double)dt_round(dt_real(in.self->dtype), in.to - in.from))) {
    return op_error(c, "the interval from %g to %g is too wide for %s", in.from, in.to,
                    graft_dtype_name(in.self->dtype));
  }
  c->draws = rnd_words_for(in.self->numel, in.self->dtype);
  op_out_like(c, OUT, in.self->dtype, in.self);
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
  int64_t n = op_int(c, ARG_randperm_n);
  graft_dtype dtype = op_dtype(c, dtype_arg) ? op_dtype(c, dtype_arg) : GRAFT_I64;
  bool integral = dt_is_integral(dtype, false) && (!dt_is_unsigned(dtype) || dtype == GRAFT_U8);
  if (!integral && (!dt_is_float(dtype) || dt_is_float8(dtype)))
    return op_error(c, "not defined for %s", graft_dtype_name(dtype));
  if (n < 0) return op_error(c, "n is %lld; expected 0 or more", (long long)n);
  if (n > most_integers(dtype))
    return op_error(c, "n is %lld, which is too large for %s", (long long)n, graft_dtype_name(dtype));
  op_set_dtype(c, dtype_arg, dtype);
  c->draws = rnd_words_for(n, GRAFT_F64); /* two words an element */
  op_out(c, OUT, dtype, 1, &n);
  return GRAFT_OK;
}

static graft_status infer_randperm(op_call *c) {
  return infer_permutation(c, ARG_randperm_dtype);
}
static graft_status infer_randperm_generator(op_call *c) {
  return infer_permutation(c, ARG_randperm_generator_dtype);
}

/* channels_last where the strides are those of it, for empty tensors too. */
static graft_memory_format layout_of(const graft_tensor *t) {
  int64_t strides[GRAFT_MAX_DIMS];
  if (t->numel || t->ndim < 4 || t->ndim > 5) return tns_suggest_format(t);
  tns_channels_last_strides(t->ndim, t->sizes, strides);
  bool same = true;
  for (int32_t i = 0; i < t->ndim; i++) same &= strides[i] == t->strides[i];
  return !same ? GRAFT_FORMAT_CONTIGUOUS : t->ndim == 4 ? GRAFT_FORMAT_CHANNELS_LAST : GRAFT_FORMAT_CHANNELS_LAST_3D;
}

static graft_status infer_native_dropout(op_call *c) {
  const in_native_dropout in = in_native_dropout_of(c->args);
  bool train = op_absent(c, ARG_native_dropout_train) || op_bool(c, ARG_native_dropout_train);
  if (train && !(in.p >= 0 && in.p <= 1)) return op_error(c, "p is %g; expected 0 to 1", in.p);
  if (train && !dt_is_float(in.input->dtype) && !dt_is_complex(in.input->dtype))
    return op_refuse(c, ARG_native_dropout_input, "a floating dtype");
  c->compute = in.input->dtype;
  c->draws = !train ? 0 : rnd_words_for(in.input->numel, dt_real(in.input->dtype));
  graft_memory_format format = layout_of(in.input);
  for (int i = 0; i < 2; i++) {
    op_out_format(c, i, i ? GRAFT_BOOL : in.input->dtype, in.input->ndim, in.input->sizes, format);
    if (format == GRAFT_FORMAT_CONTIGUOUS) op_iterator_strides(&c->out[i], &(const graft_tensor *){in.input}, 1);
  }
  return GRAFT_OK;
}

/* bernoulli.p, bernoulli.Tensor: self says shape and dtype */
static graft_status infer_bernoulli(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_bernoulli_p_self), *p = op_tensor(c, ARG_bernoulli_p_p);
  bool real = !dt_is_complex(self->dtype) && !dt_is_float8(self->dtype);
  if (!real && (p || self->numel))
    return op_refuse(c, ARG_bernoulli_p_self, "a real dtype"); /* of nothing: as PyTorch */
  if (p)
    op_out_like(c, OUT, self->dtype, self);
  else
    op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  c->draws = rnd_words_for(self->numel, self->dtype);
  if (!p) {
    double chance = op_float(c, ARG_bernoulli_p_p);
    return chance >= 0 && chance <= 1 ? GRAFT_OK : op_error(c, "p is %g; expected 0 to 1", chance);
  }
  if (!tns_broadcasts_to(p, self->ndim, self->sizes))
    return op_error(c, "p does not broadcast to self (%s)", op_show_tensors(c));
  return op_check_floating(c, ARG_bernoulli_p_p);
}

static graft_status infer_prims_uniform(op_call *c) {
  const in_prims_uniform in = in_prims_uniform_of(c->args);
  graft_scalar bounds[] = {in.low, in.high};
  if (!is_drawn(in.dtype))
    return op_error(c, "not defined for %s; expected a floating or complex dtype", graft_dtype_name(in.dtype));
  if (dt_is_complex(in.low.dtype) || dt_is_complex(in.high.dtype)) return op_error(c, "expected real bounds");
  ref_real low = dt_scalar_value(&bounds[0]).re, high = dt_scalar_value(&bounds[1]).re;
  if (!(low <= high)) return op_error(c, "from %Lg to %Lg is no interval", low, high);
  graft_status status = op_check_sizes(c, ARG_prims_uniform_shape);
  if (status) return status;
  c->draws = rnd_words_for(tns_numel((int32_t)in.shape_count, in.shape), in.dtype);
  op_out(c, OUT, in.dtype, (int32_t)in.shape_count, in.shape);
  return GRAFT_OK;
}

static graft_status infer_normal(op_call *c) {
  const in_normal_float_float in = in_normal_float_float_of(c->args);
  graft_dtype dtype = in.dtype ? in.dtype : dt_default();
  if (!is_drawn(dtype))
    return op_error(c, "not defined for %s; expected a floating or complex dtype", graft_dtype_name(dtype));
  if (!(in.std >= 0)) return op_error(c, "std is %g; expected 0 or more", in.std);
  graft_status status = op_check_sizes(c, ARG_normal_float_float_size);
  if (status) return status;
  op_set_dtype(c, ARG_normal_float_float_dtype, dtype);
  c->draws = rnd_words_for(
      tns_numel((int32_t)c->args[ARG_normal_float_float_size].count, c->args[ARG_normal_float_float_size].as.ints),
      dtype);
  op_out(c, OUT, dtype, (int32_t)c->args[ARG_normal_float_float_size].count,
         c->args[ARG_normal_float_float_size].as.ints);
  return GRAFT_OK;
}

static graft_status infer_exponential(op_call *c) {
  const in_exponential in = in_exponential_of(c->args);
  bool drawn =
      dt_is_float(in.self->dtype) && (is_drawn(in.self->dtype) || !in.self->numel); /* of nothing: as PyTorch */
  if (!drawn) return op_refuse(c, ARG_exponential_self, "a floating dtype");
  if (!(in.lambd > 0)) return op_error(c, "lambd is %g; expected more than 0", in.lambd);
  c->draws = rnd_words_for(in.self->numel, in.self->dtype);
  op_out_like(c, OUT, in.self->dtype, in.self);
  return GRAFT_OK;
}

/* --- bounds of random integers --- */

static int digits_of(graft_dtype dtype) {
  return dtype == GRAFT_F16 ? 11 : dtype == GRAFT_BF16 ? 8 : dtype == GRAFT_F32 ? 24 : 53;
}

/* The step of a floating dtype's numbers at whole number x, if more than 1. */
static int64_t step_at(graft_dtype dtype, int64_t x) {
  int bits = 0;
  for (uint64_t size = x < 0 ? 0 - (uint64_t)x : (uint64_t)x; size >>= 1;) bits++;
  int lost = bits - digits_of(dtype) + 1;
  return lost > 0 ? INT64_C(1) << lost : 1;
}

/* Bounds that a floating dtype rounds outwards move inwards, to its nearest numbers: what is drawn stays within. */
static void round_bounds(graft_dtype dtype, int64_t *from, int64_t *to) {
  ref_real low = dt_round(dtype, (ref_real)*from + 1), high = to ? dt_round(dtype, (ref_real)*to - 1) : 0;
  if (low < (ref_real)*from) *from = (int64_t)low + step_at(dtype, *from + 1);
  if (to && high >= (ref_real)*to) *to = (int64_t)(high - (ref_real)step_at(dtype, *to - 1));
}

/* The largest number that a bound may be in a dtype, and the smallest. */
static void integer_range(graft_dtype dtype, ref_real *least, ref_real *most) {
  *most = dt_largest(dtype);
  *least = dt_is_float(dtype) ? -*most : dtype == GRAFT_BOOL || dt_is_unsigned(dtype) ? 0 : -*most - 1;
}

/* Draws numbers of [from, to), or without `to` up to the largest of the dtype. In canonical form `to` is absent only
 * where the largest is that of 64 bits. */
static graft_status draw_integers(op_call *c, graft_dtype dtype, int64_t numel, int from_arg, int to_arg) {
  int64_t from = op_int(c, from_arg), to = op_absent(c, to_arg) ? 0 : op_int(c, to_arg);
  const char *low = c->schema->args[from_arg].name, *high = c->schema->args[to_arg].name;
  bool floating = dt_is_float(dtype);
  if (dt_is_complex(dtype) || dt_is_float8(dtype)) {
    return op_error(c, "not defined for %s; expected a real dtype", graft_dtype_name(dtype));
  }
  c->draws = rnd_words_for(numel, GRAFT_F64); /* two words an element */
  ref_real least, most;
  integer_range(dtype, &least, &most);
  if (op_absent(c, to_arg)) {
    if (from == INT64_MIN && (floating || dt_bytes(dtype) == 8)) return GRAFT_OK; /* all 64 bits */
    if (floating) most = ldexpl(1, digits_of(dtype));
    if (floating) round_bounds(dtype, &from, NULL);
    if (most < 0x1p63L - 1) op_set_int(c, to_arg, to = (int64_t)most + 1);
  } else {
    if (from >= to)
      return op_error(c, "%s is %lld, %s is %lld; expected less", low, (long long)from, high, (long long)to);
    if (floating) round_bounds(dtype, &from, &to);
    if (from >= to)
      return op_error(c, "%s holds no whole number from %lld to %lld", graft_dtype_name(dtype),
                      (long long)op_int(c, from_arg), (long long)op_int(c, to_arg));
    if ((ref_real)to - 1 > most || (ref_real)to - 1 < least) {
      return op_error(c, "%s - 1 is %lld, which is out of bounds for %s", high, (long long)(to - 1),
                      graft_dtype_name(dtype));
    }
    op_set_int(c, to_arg, to);
  }
  if ((ref_real)from < least || (ref_real)from > most) {
    return op_error(c, "%s is %lld, which is out of bounds for %s", low, (long long)from, graft_dtype_name(dtype));
  }
  op_set_int(c, from_arg, from);
  return GRAFT_OK;
}

static graft_status infer_random_from(op_call *c) {
  const graft_tensor *self = op_tensor(c, ARG_random_from_self);
  op_out_like(c, OUT, self->dtype, self);
  return draw_integers(c, self->dtype, self->numel, 1, 2);
}

static graft_status infer_randint(op_call *c) {
  const in_randint_low in = in_randint_low_of(c->args);
  graft_dtype dtype = in.dtype ? in.dtype : GRAFT_I64;
  graft_status status = op_check_sizes(c, ARG_randint_low_size);
  if (status) return status;
  op_set_dtype(c, ARG_randint_low_dtype, dtype);
  op_out(c, OUT, dtype, (int32_t)c->args[ARG_randint_low_size].count, c->args[ARG_randint_low_size].as.ints);
  return draw_integers(
      c, dtype, tns_numel((int32_t)c->args[ARG_randint_low_size].count, c->args[ARG_randint_low_size].as.ints), 0, 1);
}

static graft_status infer_multinomial(op_call *c) {
  const in_multinomial in = in_multinomial_of(c->args);
  int64_t samples = in.num_samples, categories = in.self->ndim ? in.self->sizes[in.self->ndim - 1] : 0;
  if (in.self->ndim < 1 || in.self->ndim > 2) return op_refuse(c, ARG_multinomial_self, "rank 1 or 2");
  graft_status status = op_check_floating(c, ARG_multinomial_self);
  if (status) return status;
  if (samples < 1) return op_error(c, "num_samples is %lld; expected 1 or more", (long long)samples);
  if (!in.replacement && samples > categories) {
    return op_error(c, "num_samples is %lld, of %lld categories; more than there are needs replacement",
                    (long long)samples, (long long)categories);
  }
  if (categories > INT64_C(1) << 24)
    return op_error(c, "%lld categories; expected at most 2^24", (long long)categories);
  int64_t sizes[2] = {in.self->ndim == 2 ? in.self->sizes[0] : samples, samples};
  if (!categories && (in.self->ndim == 1 || sizes[0])) return op_refuse(c, ARG_multinomial_self, "categories");
  c->compute = in.self->dtype;
  c->draws = rnd_words_for(sizes[0] * (in.self->ndim == 2 ? samples : 1), GRAFT_F64);
  op_out(c, OUT, GRAFT_I64, in.self->ndim, sizes);
  return GRAFT_OK;
}

/* native_dropout_backward: scale is a number that promotes */
static graft_status infer_native_dropout_backward(op_call *c) {
  graft_dtype dtype = op_tensor(c, ARG_native_dropout_backward_grad_output)->dtype;
  c->compute = dt_is_integral(dtype, true) ? dt_default() : dtype;
  return op_out_broadcast(c, OUT, c->compute);
}

/* --- kernels --- */

ref_real rnd_uniform(const graft_philox *p, graft_dtype dtype, uint64_t element) {
  return ref_philox_uniform(p, dt_is_half(dtype) ? GRAFT_F32 : dtype, element);
}

ref_real rnd_uniform_above(const graft_philox *p, graft_dtype dtype, uint64_t element) {
  ref_real u = rnd_uniform(p, dtype, element), least = dtype == GRAFT_F64 || dtype == GRAFT_WIDE ? 0x1p-53L : 0x1p-24L;
  return u > least ? u : least;
}

static ref_real draw_uniform(const graft_philox *p, graft_dtype dtype, uint64_t i) {
  return ref_philox_uniform(p, dtype, i);
}

ref_real rnd_normal(const graft_philox *p, graft_dtype dtype, uint64_t i) {
  const ref_real two_pi = 6.283185307179586476925286766559L;
  ref_real u1 = rnd_uniform(p, dtype, i & ~UINT64_C(1)), u2 = rnd_uniform(p, dtype, i | 1);
  ref_real r = sqrtl(-2 * logl(1 - u1));
  return i & 1 ? r * sinl(two_pi * u2) : r * cosl(two_pi * u2);
}

graft_status rnd_draw(const graft_tensor_desc *out, const graft_philox *p, rnd_fn fn, ref_real a, ref_real b) {
  graft_dtype real = dt_real(out->dl.dtype);
  REF_OWNED ref_array y = ref_new(ref_numel(out), dt_is_complex(out->dl.dtype));
  if (!y.re) return ref_no_memory();
  for (int64_t i = 0; i < y.count; i++) {
    uint64_t element = (uint64_t)i * (y.im ? 2 : 1);
    y.re[i] = a + b * fn(p, real, element);
    if (y.im) y.im[i] = a + b * fn(p, real, element + 1);
  }
  ref_write(out, &y);
  return GRAFT_OK;
}

graft_status kernel_rand(const graft_exec *exec, const graft_args_rand *a) {
  return rnd_draw(a->out, a->philox, draw_uniform, 0, 1);
}

/* The variance of a complex number is 1, so that of each part a half. */
graft_status kernel_randn(const graft_exec *exec, const graft_args_randn *a) {
  return rnd_draw(a->out, a->philox, rnd_normal, 0, dt_is_complex(a->out->dl.dtype) ? sqrtl(0.5L) : 1);
}

graft_status kernel_uniform(const graft_exec *exec, const graft_args_uniform *a) {
  bool unit = a->from == 0 && a->to == 1; /* then a half type's number is truncated, else computed and rounded once */
  return rnd_draw(a->out, a->philox, unit ? draw_uniform : rnd_uniform, a->from, (ref_real)a->to - a->from);
}

graft_status kernel_prims_uniform(const graft_exec *exec, const graft_args_prims_uniform *a) {
  ref_real low = ref_scalar(a->low, 0), high = ref_scalar(a->high, 1);
  return rnd_draw(a->out, a->philox, low == 0 && high == 1 ? draw_uniform : rnd_uniform, low, high - low);
}

/* -ln(1 - u), never 0 */
static ref_real draw_exponential(const graft_philox *p, graft_dtype dtype, uint64_t i) {
  return -log1pl(-rnd_uniform_above(p, dtype, i));
}

graft_status kernel_normal_float_float(const graft_exec *exec, const graft_args_normal_float_float *a) {
  ref_real part = dt_is_complex(a->out->dl.dtype) ? sqrtl(0.5L) : 1;
  return rnd_draw(a->out, a->philox, rnd_normal, a->mean, a->std * part);
}

graft_status kernel_exponential(const graft_exec *exec, const graft_args_exponential *a) {
  return rnd_draw(a->out, a->philox, draw_exponential, 0, 1 / (ref_real)a->lambd);
}

/* 1 with probability p, or that of the same element of ps. */
static graft_status draw_bernoulli(const graft_tensor_desc *out, const graft_philox *p, double chance,
                                   const graft_tensor_desc *chances) {
  REF_OWNED ref_array y = ref_new(ref_numel(out), false), each = ref_read(chances);
  if (!(y.re && (each.re || !chances))) return ref_no_memory();
  for (int64_t i = 0; i < y.count; i++) {
    ref_real likely = each.re ? each.re[i] : (ref_real)chance;
    if (!(likely >= 0 && likely <= 1)) {
      return err_about(GRAFT_INVALID_ARGUMENT, "aten::bernoulli.Tensor", "p holds %Lg; expected 0 to 1", likely);
    }
    y.re[i] = rnd_uniform(p, out->dl.dtype, (uint64_t)i) < likely;
  }
  ref_write(out, &y);
  return GRAFT_OK;
}

graft_status kernel_bernoulli_p(const graft_exec *exec, const graft_args_bernoulli_p *a) {
  return draw_bernoulli(a->out, a->philox, a->p, NULL);
}

graft_status kernel_bernoulli_Tensor(const graft_exec *exec, const graft_args_bernoulli_Tensor *a) {
  return draw_bernoulli(a->out, a->philox, 0, a->p);
}

/* from + the high half of range * r, r of 64 bits; a range of 0 stands for 2^64. */
static graft_status draw_from(const graft_tensor_desc *out, const graft_philox *p, int64_t from, const int64_t *to) {
  uint64_t range = to ? (uint64_t)*to - (uint64_t)from : (uint64_t)INT64_MAX - (uint64_t)from + 1;
  REF_OWNED ref_array y = ref_new(ref_numel(out), false);
  if (!y.re) return ref_no_memory();
  for (int64_t i = 0; i < y.count; i++) {
    uint64_t low = ref_philox_word(p, 2 * (uint64_t)i),
             r = (uint64_t)ref_philox_word(p, 2 * (uint64_t)i + 1) << 32 | low;
    uint64_t step = range ? (uint64_t)((unsigned __int128)r * range >> 64) : r;
    y.re[i] = (ref_real)(int64_t)((uint64_t)from + step);
  }
  ref_write(out, &y);
  return GRAFT_OK;
}

graft_status kernel_random_from(const graft_exec *exec, const graft_args_random_from *a) {
  return draw_from(a->out, a->philox, a->from, a->to);
}

graft_status kernel_randint_low(const graft_exec *exec, const graft_args_randint_low *a) {
  return draw_from(a->out, a->philox, a->low, &a->high);
}

/* Of the weights that are left (what is taken is negative): their sum, in f64 and in order. */
static double total_of(const double *weights, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) sum += weights[k] > 0 ? weights[k] : 0;
  return sum;
}

/* The first category whose running sum lies above u * total, or is the total where that product rounds to it. Where no
 * weight is left, the first category without one. */
static int64_t category_at(const double *weights, int64_t n, double u) {
  double sum = 0, total = total_of(weights, n), at = u * total;
  for (int64_t k = 0; k < n; k++) {
    if (total > 0 ? weights[k] <= 0 : weights[k] < 0) continue;
    sum += weights[k];
    if (sum > at || sum >= total) return k;
  }
  return 0;
}

static graft_status check_weights(const double *weights, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    if (!(weights[k] >= 0) || isinf(weights[k])) {
      return err_about(GRAFT_INVALID_ARGUMENT, "aten::multinomial", "weight %lld is %g; expected 0 or more, and finite",
                       (long long)k, weights[k]);
    }
  }
  return total_of(weights, n) > 0
             ? GRAFT_OK
             : err_about(GRAFT_INVALID_ARGUMENT, "aten::multinomial", "no category of a row has a weight");
}

graft_status kernel_multinomial(const graft_exec *exec, const graft_args_multinomial *a) {
  const graft_dl_tensor *self = &a->self->dl;
  int64_t n = self->shape[self->ndim - 1], rows = n ? ref_numel(a->self) / n : 0, samples = a->num_samples;
  REF_OWNED ref_array x = ref_read(a->self), y = ref_new(rows * samples, false);
  double *weights = ref_zeros(n, sizeof *weights);
  graft_status status = x.re && y.re && weights ? GRAFT_OK : ref_no_memory();
  for (int64_t row = 0; !status && row < rows; row++) {
    for (int64_t k = 0; k < n; k++) weights[k] = (double)x.re[row * n + k];
    status = check_weights(weights, n);
    for (int64_t j = 0; !status && j < samples; j++) {
      int64_t i = row * samples + j;
      int64_t pick = category_at(weights, n, (double)ref_philox_uniform(a->philox, GRAFT_F64, (uint64_t)i));
      y.re[i] = (ref_real)pick;
      if (!a->replacement) weights[pick] = -1;
    }
  }
  if (!status) ref_write(a->out, &y);
  free(weights);
  return status;
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
  REF_OWNED ref_array y = ref_new(ref_numel(out), false);
  keyed *items = ref_zeros(y.count, sizeof *items);
  graft_status status = y.re && items ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < y.count; i++) {
    uint64_t low = ref_philox_word(p, 2 * (uint64_t)i), high = ref_philox_word(p, 2 * (uint64_t)i + 1);
    items[i] = (keyed){high << 32 | low, i};
  }
  if (!status) qsort(items, (size_t)y.count, sizeof *items, by_key);
  for (int64_t i = 0; !status && i < y.count; i++) y.re[i] = (ref_real)items[i].index;
  if (!status) ref_write(out, &y);
  free(items);
  return status;
}

graft_status kernel_randperm(const graft_exec *exec, const graft_args_randperm *a) {
  return permute(a->out, a->philox);
}

graft_status kernel_randperm_generator(const graft_exec *exec, const graft_args_randperm_generator *a) {
  return permute(a->out, a->philox);
}

graft_status kernel_native_dropout(const graft_exec *exec, const graft_args_native_dropout *a) {
  REF_OWNED ref_array x = ref_read(a->input), mask = ref_new(x.count, false);
  if (!(x.re && mask.re)) return ref_no_memory();
  bool train = !a->train || *a->train;
  graft_dtype real = dt_real(a->input->dl.dtype);
  double keep = 1 - a->p; /* in f64, for all devices alike */
  ref_real scale = !train ? 1 : a->p < 1 ? 1 / (1 - (ref_real)a->p) : 0;
  for (int64_t i = 0; i < x.count; i++) {
    mask.re[i] = !train || rnd_uniform(a->philox, real, (uint64_t)i) < keep;
    x.re[i] = mask.re[i] != 0 ? x.re[i] * scale : 0;
    if (x.im) x.im[i] = mask.re[i] != 0 ? x.im[i] * scale : 0;
  }
  ref_write(a->out0, &x);
  ref_write(a->out1, &mask);
  return GRAFT_OK;
}

graft_status kernel_native_dropout_backward(const graft_exec *exec, const graft_args_native_dropout_backward *a) {
  REF_OWNED ref_array g = ref_read(a->grad_output), mask = ref_read(a->mask);
  if (!(g.re && mask.re)) return ref_no_memory();
  for (int64_t i = 0; i < g.count; i++) {
    ref_real factor = mask.re[i] * (ref_real)a->scale;
    g.re[i] *= factor;
    if (g.im) g.im[i] *= factor;
  }
  ref_write(a->out, &g);
  return GRAFT_OK;
}

/* --- decompositions and gradients --- */

static void decompose_native_dropout_backward(fx *s, const op_call *c, graft_tensor **outs) {
  const in_native_dropout_backward in = in_native_dropout_backward_of(c->args);
  graft_tensor *g = in.grad_output;
  outs[OUT] = fx_mul(s, g, fx_muls(s, fx_cast(s, in.mask, dt_real(c->compute)), in.scale));
}

static void vjp_native_dropout(op_vjp *v) {
  double p = v->args[ARG_native_dropout_p].as.f;
  bool train = v->args[ARG_native_dropout_train].kind == GRAFT_VALUE_NONE || v->args[ARG_native_dropout_train].as.i;
  if (!v->g[OUT_native_dropout_out0]) return;
  v->results[ARG_native_dropout_input] =
      train ? fx_native_dropout_backward(v->s, v->g[OUT_native_dropout_out0], v->outs[OUT_native_dropout_out1],
                                         p < 1 ? 1 / (1 - p) : 0)
            : v->g[OUT_native_dropout_out0];
}

static void vjp_native_dropout_backward(op_vjp *v) {
  const in_native_dropout_backward in = in_native_dropout_backward_of(v->args);
  v->results[ARG_native_dropout_backward_grad_output] = fx_native_dropout_backward(v->s, v->g[OUT], in.mask, in.scale);
}

static void vjp_none(op_vjp *v) {
  (void)v;
} /* self says the shape only */

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(rand), .roles = "", .infer = infer_rand},
    {.op_id = OP_WITH_KERNEL(randn), .roles = "", .infer = infer_rand},
    {.op_id = OP_WITH_KERNEL(randperm), .roles = "", .infer = infer_randperm},
    {.op_id = OP_WITH_KERNEL(randperm_generator), .roles = "", .infer = infer_randperm_generator},
    {.op_id = OP_WITH_KERNEL(uniform), .roles = "k", .infer = infer_uniform, .vjp = vjp_none},
    {.op_id = OP_WITH_KERNEL(prims_uniform), .roles = "", .infer = infer_prims_uniform},
    {.op_id = OP_WITH_KERNEL(native_dropout),
     .roles = "v",
     .infer = infer_native_dropout,
     .vjp = vjp_native_dropout,
     .saves = OP_SAVE_OUT(native_dropout, out1)},
    {.op_id = OP_WITH_KERNEL(native_dropout_backward),
     .roles = "bc",
     .infer = infer_native_dropout_backward,
     .decompose = decompose_native_dropout_backward,
     .vjp = vjp_native_dropout_backward,
     .saves = OP_SAVE_ARG(native_dropout_backward, mask),
     .flags = OP_ELEMENTWISE},
    {.op_id = OP_WITH_KERNEL(bernoulli_p), .roles = "k", .infer = infer_bernoulli, .vjp = vjp_none},
    {.op_id = OP_WITH_KERNEL(bernoulli_Tensor), .roles = "kc", .infer = infer_bernoulli, .vjp = vjp_none},
    {.op_id = OP_WITH_KERNEL(normal_float_float), .roles = "", .infer = infer_normal},
    {.op_id = OP_WITH_KERNEL(exponential), .roles = "k", .infer = infer_exponential, .vjp = vjp_none},
    {.op_id = OP_WITH_KERNEL(random_from), .roles = "k", .infer = infer_random_from, .vjp = vjp_none},
    {.op_id = OP_WITH_KERNEL(randint_low), .roles = "", .infer = infer_randint},
    {.op_id = OP_WITH_KERNEL(multinomial),
     .roles = "v",
     .infer = infer_multinomial,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
};
OP_TABLE(random, defs)
