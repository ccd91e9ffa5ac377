/* Matrix products: rules, reference kernels, decompositions, gradients. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

/* Two factors of one rank (2, or 3 with a batch): out[n] becomes their product's shape. */
static graft_status infer_product(op_call *c, int first, int second, int32_t ndim) {
  const graft_tensor *a = op_tensor(c, first), *b = op_tensor(c, second);
  if (a->ndim != ndim || b->ndim != ndim) {
    return op_error(c, "expected two factors of rank %d, got %s", ndim, op_show_tensors(c));
  }
  if (ndim == 3 && a->sizes[0] != b->sizes[0]) return op_error(c, "the batch sizes differ: %s", op_show_tensors(c));
  if (a->sizes[ndim - 1] != b->sizes[ndim - 2]) return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  graft_status status = op_check_same_dtype(c, first, second);
  if (status) return status;
  if (a->dtype == GRAFT_BOOL && a->numel && b->numel) return op_refuse(c, first, "a dtype with arithmetic");
  c->compute = a->dtype;
  int64_t sizes[3] = {a->sizes[0], a->sizes[1], b->sizes[ndim - 1]};
  sizes[ndim - 1] = b->sizes[ndim - 1];
  op_out(c, OUT, a->dtype, ndim, sizes);
  return GRAFT_OK;
}

static graft_status infer_mm(op_call *c) {
  return infer_product(c, ARG_mm_self, ARG_mm_mat2, 2);
}
static graft_status infer_bmm(op_call *c) {
  return infer_product(c, ARG_bmm_self, ARG_bmm_mat2, 3);
}

/* beta and alpha become numbers of the dtype's own kind: 2.5 counts as 2 for integers. */
static graft_status canonical_factor(op_call *c, int arg) {
  graft_scalar *factor = &c->args[arg].as.scalar;
  dt_value value = dt_scalar_value(factor);
  if (dt_is_complex(c->compute)) return GRAFT_OK;
  if (dt_is_complex(factor->dtype)) {
    return op_error(c, "%s is complex and the tensors are %s", c->schema->args[arg].name, graft_dtype_name(c->compute));
  }
  graft_status status = op_integer_holds(c, arg, &c->args[arg], c->compute);
  if (status) return status;
  if (dt_is_integral(c->compute, true)) *factor = graft_scalar_int((int64_t)value.re);
  return GRAFT_OK;
}

static graft_status expands(op_call *c, const graft_tensor *self) {
  const graft_meta *out = &c->out[OUT];
  bool fits = self->ndim <= out->ndim;
  for (int32_t i = 0; fits && i < self->ndim; i++) {
    int64_t size = out->sizes[out->ndim - self->ndim + i];
    fits = self->sizes[i] == size || self->sizes[i] == 1;
  }
  return fits ? GRAFT_OK : op_error(c, "self does not expand to the product's shape: %s", op_show_tensors(c));
}

/* self * beta + alpha * (a b): addmm, baddbmm and addmv, whose arguments stand alike. */
static graft_status finish_added(op_call *c) {
  graft_status status = op_check_same_dtype(c, ARG_addmm_self, ARG_addmm_mat1);
  if (!status) status = expands(c, op_tensor(c, ARG_addmm_self));
  if (!status) status = canonical_factor(c, ARG_addmm_beta);
  return status ? status : canonical_factor(c, ARG_addmm_alpha);
}

static graft_status infer_addmm(op_call *c) {
  graft_status status = infer_product(c, ARG_addmm_mat1, ARG_addmm_mat2, 2);
  return status ? status : finish_added(c);
}

/* The activation is relu, or gelu in the form with erf. */
static graft_status infer_addmm_activation(op_call *c) {
  graft_status status = infer_addmm(c);
  if (status) return status;
  if (dt_is_complex(c->compute)) return op_refuse(c, ARG_addmm_activation_mat1, "a real dtype");
  return op_bool(c, ARG_addmm_activation_use_gelu) && !dt_is_float(c->compute)
             ? op_refuse(c, ARG_addmm_activation_mat1, "a floating dtype")
             : GRAFT_OK;
}

static graft_status infer_baddbmm(op_call *c) {
  graft_status status = infer_product(c, ARG_baddbmm_batch1, ARG_baddbmm_batch2, 3);
  return status ? status : finish_added(c);
}

/* The sum of a batch's products. */
static graft_status infer_addbmm(op_call *c) {
  graft_status status = infer_product(c, ARG_addbmm_batch1, ARG_addbmm_batch2, 3);
  if (status) return status;
  const in_addbmm in = in_addbmm_of(c->args);
  if (in.batch1->dtype == GRAFT_BOOL) return op_refuse(c, ARG_addbmm_batch1, "a dtype with arithmetic");
  op_out(c, OUT, in.batch1->dtype, 2, (int64_t[]){in.batch1->sizes[1], in.batch2->sizes[2]});
  return finish_added(c);
}

/* A factor of a pointwise op: of the result's kind or below. */
static graft_status check_factor(op_call *c, int arg) {
  graft_scalar factor = op_scalar(c, arg);
  const char *name = c->schema->args[arg].name;
  if (!factor.dtype) return GRAFT_OK;
  if (factor.dtype == GRAFT_BOOL && c->compute != GRAFT_BOOL)
    return op_error(c, "%s is a bool and the result is %s; expected a number", name, graft_dtype_name(c->compute));
  if (dt_is_integral(c->compute, true) && !dt_is_integral(factor.dtype, true))
    return op_error(c, "%s is not an integer and the result is %s", name, graft_dtype_name(c->compute));
  if (dt_is_complex(factor.dtype) && !dt_is_complex(c->compute))
    return op_error(c, "%s is complex and the result is %s", name, graft_dtype_name(c->compute));
  return GRAFT_OK;
}

/* beta self + alpha vec1 vec2^T, a pointwise op of a self that was expanded: dtypes promote, whatever self's rank, and
 * strides are an iterator's. */
static graft_status infer_addr(op_call *c) {
  const in_addr in = in_addr_of(c->args);
  if (in.vec1->ndim != 1 || in.vec2->ndim != 1)
    return op_error(c, "vec1 and vec2 have to be vectors: %s", op_show_tensors(c));
  c->compute = dt_promote(dt_promote(in.self->dtype, in.vec1->dtype), in.vec2->dtype);
  if (!c->compute) return op_error(c, "the dtypes have none in common: %s", op_show_tensors(c));
  op_out(c, OUT, c->compute, 2, (int64_t[]){in.vec1->numel, in.vec2->numel});
  graft_status status = expands(c, in.self);
  if (!status) status = check_factor(c, ARG_addr_beta);
  if (!status) status = check_factor(c, ARG_addr_alpha);
  if (status) return status;
  graft_tensor column = {.dtype = in.vec1->dtype, .ndim = 2, .numel = in.vec1->numel};
  column.sizes[0] = in.vec1->numel, column.sizes[1] = 1;
  column.strides[0] = in.vec1->strides[0], column.strides[1] = 1;
  op_iterator_strides(&c->out[OUT], (const graft_tensor *const[]){in.self, &column, in.vec2}, 3);
  return GRAFT_OK;
}

/* A matrix and a vector. */
static graft_status infer_matrix_vector(op_call *c, int first, int second) {
  const graft_tensor *a = op_tensor(c, first), *x = op_tensor(c, second);
  if (a->ndim != 2 || x->ndim != 1) return op_error(c, "expected a matrix and a vector, got %s", op_show_tensors(c));
  if (a->sizes[1] != x->sizes[0]) return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  graft_status status = op_check_same_dtype(c, first, second);
  if (status) return status;
  if (a->dtype == GRAFT_BOOL) return op_refuse(c, first, "a dtype with arithmetic");
  c->compute = a->dtype;
  op_out(c, OUT, a->dtype, 1, a->sizes);
  return GRAFT_OK;
}

static graft_status infer_mv(op_call *c) {
  return infer_matrix_vector(c, ARG_mv_self, ARG_mv_vec);
}

static graft_status infer_addmv(op_call *c) {
  graft_status status = infer_matrix_vector(c, ARG_addmv_mat, ARG_addmv_vec);
  return status ? status : finish_added(c);
}

static graft_status infer_dot(op_call *c) {
  const graft_tensor *a = op_tensor(c, ARG_dot_self), *b = op_tensor(c, ARG_dot_tensor);
  if (a->ndim != 1 || b->ndim != 1) return op_error(c, "expected two vectors, got %s", op_show_tensors(c));
  if (a->sizes[0] != b->sizes[0]) return op_error(c, "the sizes differ: %s", op_show_tensors(c));
  graft_status status = op_check_same_dtype(c, ARG_dot_self, ARG_dot_tensor);
  if (status) return status;
  if (a->dtype == GRAFT_BOOL) return op_refuse(c, ARG_dot_self, "a dtype with arithmetic");
  c->compute = a->dtype;
  op_out(c, OUT, a->dtype, 0, NULL);
  return GRAFT_OK;
}

/* --- kernels --- */

/* One kernel serves all: out = beta self + alpha (a b), for each of a batch. self is NULL where it does not count. */
typedef struct product {
  const graft_tensor_desc *a, *b, *self, *out;
  const graft_scalar *beta, *alpha;
} product;

/* out = a b for dense a [n,k] and b [k,m]; complex products by their parts. */
static void multiply(graft_dtype dtype, int64_t n, int64_t k, int64_t m, const ref_array *a, int64_t a0,
                     const ref_array *b, int64_t b0, ref_array *out, int64_t out0) {
  ref_product(dtype, n, k, m, a->re + a0, b->re + b0, out->re + out0);
  for (int64_t i = 0; out->im && i < n; i++) {
    for (int64_t j = 0; j < m; j++) {
      int64_t row = a0 + i * k, column = b0 + j, at = out0 + i * m + j;
      out->re[at] -= ref_dot(dtype, a->im + row, 1, b->im + column, m, k);
      out->im[at] =
          ref_dot(dtype, a->re + row, 1, b->im + column, m, k) + ref_dot(dtype, a->im + row, 1, b->re + column, m, k);
    }
  }
}

static ref_complex factor(const graft_scalar *scalar) {
  if (!scalar) return 1;
  dt_value value = dt_scalar_value(scalar);
  return CMPLXL(value.re, value.im);
}

/* A factor of 0 takes its term away, NaN and infinity with it, where PyTorch says so: for beta. */
static void scale_and_add(const product *p, const ref_array *self, ref_array *out) {
  ref_complex alpha = factor(p->alpha), beta = self->re ? factor(p->beta) : 0;
  for (int64_t i = 0; i < out->count; i++) {
    if (!out->im) {
      ref_real value = creall(alpha) * out->re[i];
      out->re[i] = beta != 0 ? value + creall(beta) * self->re[i] : value;
      continue;
    }
    ref_complex value = alpha == 1 ? ref_at(out, i) : alpha * ref_at(out, i);
    if (beta != 0) value += beta == 1 ? ref_at(self, i) : beta * ref_at(self, i);
    out->re[i] = creall(value);
    out->im[i] = cimagl(value);
  }
}

static graft_status run_product(const product *p) {
  REF_OWNED ref_array a = ref_read(p->a), b = ref_read(p->b), self = ref_read(p->self);
  REF_OWNED ref_array out = ref_new(ref_numel(p->out), a.im != NULL);
  if (!(a.re && b.re && out.re && (self.re || !p->self))) return ref_no_memory();
  int32_t ndim = p->out->dl.ndim;
  const int64_t *left = p->a->dl.shape + ndim - 2, *right = p->b->dl.shape + ndim - 2;
  int64_t n = left[0], k = left[1], m = right[1], batch = ndim == 3 ? p->out->dl.shape[0] : 1;
  for (int64_t i = 0; i < batch; i++) {
    multiply(p->out->dl.dtype, n, k, m, &a, i * n * k, &b, i * k * m, &out, i * n * m);
  }
  if (p->alpha) scale_and_add(p, &self, &out);
  ref_write(p->out, &out);
  return GRAFT_OK;
}

graft_status kernel_mm(const graft_exec *exec, const graft_args_mm *a) {
  return run_product(&(product){.a = a->self, .b = a->mat2, .out = a->out});
}

graft_status kernel_bmm(const graft_exec *exec, const graft_args_bmm *a) {
  return run_product(&(product){.a = a->self, .b = a->mat2, .out = a->out});
}

graft_status kernel_addmm(const graft_exec *exec, const graft_args_addmm *a) {
  return run_product(&(product){a->mat1, a->mat2, a->self, a->out, a->beta, a->alpha});
}

graft_status kernel_baddbmm(const graft_exec *exec, const graft_args_baddbmm *a) {
  return run_product(&(product){a->batch1, a->batch2, a->self, a->out, a->beta, a->alpha});
}

/* --- decompositions --- */

static bool is_number(graft_scalar scalar, long double value) {
  dt_value v = dt_scalar_value(&scalar);
  return v.re == value && v.im == 0;
}

static graft_tensor *scaled(fx *s, graft_tensor *t, graft_scalar by) {
  return is_number(by, 1) ? t : fx_scale(s, t, by);
}

/* beta self + alpha times a product; beta 0 leaves self out, whatever it holds. */
static graft_tensor *added(fx *s, const op_call *c, graft_tensor *made) {
  graft_scalar beta = op_scalar(c, ARG_addmm_beta);
  graft_tensor *out = scaled(s, made, op_scalar(c, ARG_addmm_alpha));
  return is_number(beta, 0) ? out : fx_add(s, out, scaled(s, op_tensor(c, ARG_addmm_self), beta));
}

static void decompose_addmm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_addmm in = in_addmm_of(c->args);
  outs[OUT] = added(s, c, fx_mm(s, in.mat1, in.mat2));
}

static void decompose_addmm_activation(fx *s, const op_call *c, graft_tensor **outs) {
  const in_addmm_activation in = in_addmm_activation_of(c->args);
  graft_tensor *sum = fx_addmm(s, in.self, in.mat1, in.mat2, in.beta, in.alpha);
  outs[OUT] = in.use_gelu ? fx_gelu(s, sum, "none") : fx_relu(s, sum);
}

static void decompose_baddbmm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_baddbmm in = in_baddbmm_of(c->args);
  outs[OUT] = added(s, c, fx_bmm(s, in.batch1, in.batch2));
}

/* The batch is a part of the inner size. */
static void decompose_addbmm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_addbmm in = in_addbmm_of(c->args);
  const int64_t *left = in.batch1->sizes, *right = in.batch2->sizes;
  graft_tensor *rows = fx_reshape(s, fx_transpose(s, in.batch1, 0, 1), 2, (int64_t[]){left[1], left[0] * left[2]});
  graft_tensor *columns = fx_reshape(s, in.batch2, 2, (int64_t[]){right[0] * right[1], right[2]});
  outs[OUT] = fx_addmm(s, in.self, rows, columns, in.beta, in.alpha);
}

/* Of truths, + is or and * is and. */
static graft_tensor *addr_of_truths(fx *s, const in_addr *in) {
  graft_tensor *column = fx_unsqueeze(s, in->vec1, 1), *all = fx_logical_and(s, column, in->vec2);
  if (is_number(in->alpha, 0)) all = fx_zeros_like(s, all);
  return is_number(in->beta, 0) ? all : fx_logical_or(s, in->self, all);
}

static void decompose_addr(fx *s, const op_call *c, graft_tensor **outs) {
  const in_addr in = in_addr_of(c->args);
  graft_tensor *column = fx_unsqueeze(s, in.vec1, 1);
  if (c->compute == GRAFT_BOOL)
    outs[OUT] = addr_of_truths(s, &in);
  else if (is_number(in.beta, 0))
    outs[OUT] = scaled(s, fx_mul_Tensor(s, column, in.vec2), in.alpha);
  else
    outs[OUT] = fx_addcmul(s, scaled(s, in.self, in.beta), column, in.vec2, in.alpha);
}

static graft_tensor *times_vector(fx *s, graft_tensor *a, graft_tensor *x) {
  if (!a || !x) return NULL;
  graft_tensor *column = fx_reshape(s, x, 2, (int64_t[]){x->sizes[0], 1});
  return fx_reshape(s, fx_mm(s, a, column), 1, a->sizes);
}

static void decompose_mv(fx *s, const op_call *c, graft_tensor **outs) {
  const in_mv in = in_mv_of(c->args);
  outs[OUT] = times_vector(s, in.self, in.vec);
}

static void decompose_addmv(fx *s, const op_call *c, graft_tensor **outs) {
  const in_addmv in = in_addmv_of(c->args);
  outs[OUT] = added(s, c, times_vector(s, in.mat, in.vec));
}

/* Not as a matrix product, whose one result would be one long sum. */
static graft_tensor *inner_product(fx *s, graft_tensor *a, graft_tensor *b) {
  if (!a || !b) return NULL;
  return fx_sum_dim_IntList(s, fx_mul_Tensor(s, a, b), NULL, 0, false, a->dtype);
}

static void decompose_dot(fx *s, const op_call *c, graft_tensor **outs) {
  const in_dot in = in_dot_of(c->args);
  outs[OUT] = inner_product(s, in.self, in.tensor);
}

static void decompose_vdot(fx *s, const op_call *c, graft_tensor **outs) {
  const in_vdot in = in_vdot_of(c->args);
  outs[OUT] = inner_product(s, fx_conj(s, in.self), in.other);
}

/* --- gradients --- */

static void vjp_mm(op_vjp *v) {
  const in_mm in = in_mm_of(v->args);
  if (vjp_needs(v, ARG_mm_self)) v->results[ARG_mm_self] = fx_mm(v->s, v->g[OUT], fx_adjoint(v->s, in.mat2));
  if (vjp_needs(v, ARG_mm_mat2)) v->results[ARG_mm_mat2] = fx_mm(v->s, fx_adjoint(v->s, in.self), v->g[OUT]);
}

static void vjp_bmm(op_vjp *v) {
  const in_bmm in = in_bmm_of(v->args);
  if (vjp_needs(v, ARG_bmm_self)) v->results[ARG_bmm_self] = fx_bmm(v->s, v->g[OUT], fx_adjoint(v->s, in.mat2));
  if (vjp_needs(v, ARG_bmm_mat2)) v->results[ARG_bmm_mat2] = fx_bmm(v->s, fx_adjoint(v->s, in.self), v->g[OUT]);
}

static graft_scalar conjugate(graft_scalar x) {
  if (dt_is_complex(x.dtype)) x.value.c[1] = -x.value.c[1];
  return x;
}

static graft_scalar factor_of(const op_vjp *v, int arg) {
  return conjugate(v->args[arg].as.scalar);
}

static void vjp_added(op_vjp *v, int first, int second, graft_tensor *(*times)(fx *, graft_tensor *, graft_tensor *)) {
  fx *s = v->s;
  graft_tensor *g = v->g[OUT], *a = vjp_arg(v, first), *b = vjp_arg(v, second);
  graft_scalar alpha = factor_of(v, ARG_addmm_alpha);
  if (vjp_needs(v, ARG_addmm_self)) v->results[ARG_addmm_self] = scaled(s, g, factor_of(v, ARG_addmm_beta));
  if (vjp_needs(v, first)) v->results[first] = scaled(s, times(s, g, fx_adjoint(s, b)), alpha);
  if (vjp_needs(v, second)) v->results[second] = scaled(s, times(s, fx_adjoint(s, a), g), alpha);
}

static void vjp_addmm(op_vjp *v) {
  vjp_added(v, ARG_addmm_mat1, ARG_addmm_mat2, fx_mm);
}
static void vjp_baddbmm(op_vjp *v) {
  vjp_added(v, ARG_baddbmm_batch1, ARG_baddbmm_batch2, fx_bmm);
}

/* Each product of the batch has the same cotangent. */
static void vjp_addbmm(op_vjp *v) {
  const in_addbmm in = in_addbmm_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  const int64_t sizes[] = {in.batch1->sizes[0], g->sizes[0], g->sizes[1]};
  graft_tensor *each = fx_expand(s, fx_unsqueeze(s, g, 0), sizes, 3, false);
  graft_scalar alpha = factor_of(v, ARG_addbmm_alpha);
  if (vjp_needs(v, ARG_addbmm_self)) v->results[ARG_addbmm_self] = scaled(s, g, factor_of(v, ARG_addbmm_beta));
  if (vjp_needs(v, ARG_addbmm_batch1))
    v->results[ARG_addbmm_batch1] = scaled(s, fx_bmm(s, each, fx_adjoint(s, in.batch2)), alpha);
  if (vjp_needs(v, ARG_addbmm_batch2))
    v->results[ARG_addbmm_batch2] = scaled(s, fx_bmm(s, fx_adjoint(s, in.batch1), each), alpha);
}

static void vjp_addr(op_vjp *v) {
  const in_addr in = in_addr_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  graft_scalar alpha = factor_of(v, ARG_addr_alpha);
  if (vjp_needs(v, ARG_addr_self)) v->results[ARG_addr_self] = scaled(s, g, factor_of(v, ARG_addr_beta));
  if (vjp_needs(v, ARG_addr_vec1))
    v->results[ARG_addr_vec1] = scaled(s, times_vector(s, g, fx_conj(s, in.vec2)), alpha);
  if (vjp_needs(v, ARG_addr_vec2))
    v->results[ARG_addr_vec2] = scaled(s, times_vector(s, fx_transpose(s, g, 0, 1), fx_conj(s, in.vec1)), alpha);
}

/* Gradients of a x: g x^H and a^H g. */
static graft_tensor *outer(fx *s, graft_tensor *g, graft_tensor *x) {
  return fx_mul(s, fx_unsqueeze(s, g, 1), fx_unsqueeze(s, fx_conj(s, x), 0));
}

static void vjp_mv(op_vjp *v) {
  const in_mv in = in_mv_of(v->args);
  fx *s = v->s;
  if (vjp_needs(v, ARG_mv_self)) v->results[ARG_mv_self] = outer(s, v->g[OUT], in.vec);
  if (vjp_needs(v, ARG_mv_vec)) v->results[ARG_mv_vec] = times_vector(s, fx_adjoint(s, in.self), v->g[OUT]);
}

static void vjp_addmv(op_vjp *v) {
  const in_addmv in = in_addmv_of(v->args);
  fx *s = v->s;
  if (vjp_needs(v, ARG_addmv_self)) v->results[ARG_addmv_self] = scaled(s, v->g[OUT], factor_of(v, ARG_addmv_beta));
  graft_scalar alpha = factor_of(v, ARG_addmv_alpha);
  if (vjp_needs(v, ARG_addmv_mat)) v->results[ARG_addmv_mat] = scaled(s, outer(s, v->g[OUT], in.vec), alpha);
  if (vjp_needs(v, ARG_addmv_vec))
    v->results[ARG_addmv_vec] = scaled(s, times_vector(s, fx_adjoint(s, in.mat), v->g[OUT]), alpha);
}

static void vjp_dot(op_vjp *v) {
  const in_dot in = in_dot_of(v->args);
  fx *s = v->s;
  if (vjp_needs(v, ARG_dot_self)) v->results[ARG_dot_self] = fx_mul(s, v->g[OUT], fx_conj(s, in.tensor));
  if (vjp_needs(v, ARG_dot_tensor)) v->results[ARG_dot_tensor] = fx_mul(s, v->g[OUT], fx_conj(s, in.self));
}

static void vjp_vdot(op_vjp *v) {
  const in_vdot in = in_vdot_of(v->args);
  fx *s = v->s;
  if (vjp_needs(v, ARG_vdot_self)) v->results[ARG_vdot_self] = fx_mul(s, fx_conj(s, v->g[OUT]), in.other);
  if (vjp_needs(v, ARG_vdot_other)) v->results[ARG_vdot_other] = fx_mul(s, v->g[OUT], in.self);
}

/* self of addmm, baddbmm and addmv reaches a kernel in the result's shape ('b'): a bias has stride 0 there. */
static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(mm),
     .flags = OP_EXACT_OUT,
     .roles = "vv",
     .infer = infer_mm,
     .vjp = vjp_mm,
     .saves = OP_SAVE_ARGS(mm, self, mat2)},
    {.op_id = OP_WITH_KERNEL(bmm),
     .flags = OP_EXACT_OUT,
     .roles = "vv",
     .infer = infer_bmm,
     .vjp = vjp_bmm,
     .saves = OP_SAVE_ARGS(bmm, self, mat2)},
    {.op_id = OP_WITH_KERNEL(addmm),
     .flags = OP_EXACT_OUT,
     .roles = "bvv",
     .infer = infer_addmm,
     .decompose = decompose_addmm,
     .vjp = vjp_addmm,
     .saves = OP_SAVE_ARGS(addmm, mat1, mat2)},
    {.op_id = GRAFT_OP_ADDMM_ACTIVATION,
     .roles = "bvv",
     .infer = infer_addmm_activation,
     .decompose = decompose_addmm_activation}, /* no gradient, as in PyTorch */
    {.op_id = OP_WITH_KERNEL(baddbmm),
     .flags = OP_EXACT_OUT,
     .roles = "bvv",
     .infer = infer_baddbmm,
     .decompose = decompose_baddbmm,
     .vjp = vjp_baddbmm,
     .saves = OP_SAVE_ARGS(baddbmm, batch1, batch2)},
    {.op_id = GRAFT_OP_ADDBMM,
     .flags = OP_EXACT_OUT | OP_NO_WIDEN,
     .roles = "bvv",
     .infer = infer_addbmm,
     .decompose = decompose_addbmm,
     .vjp = vjp_addbmm,
     .saves = OP_SAVE_ARGS(addbmm, batch1, batch2)},
    {.op_id = GRAFT_OP_ADDR,
     .roles = "bvv",
     .infer = infer_addr,
     .decompose = decompose_addr,
     .vjp = vjp_addr,
     .saves = OP_SAVE_ARGS(addr, vec1, vec2)},
    {.op_id = GRAFT_OP_MV,
     .flags = OP_EXACT_OUT,
     .roles = "vv",
     .infer = infer_mv,
     .decompose = decompose_mv,
     .vjp = vjp_mv,
     .saves = OP_SAVE_ARGS(mv, self, vec)},
    {.op_id = GRAFT_OP_ADDMV,
     .flags = OP_EXACT_OUT,
     .roles = "bvv",
     .infer = infer_addmv,
     .decompose = decompose_addmv,
     .vjp = vjp_addmv,
     .saves = OP_SAVE_ARGS(addmv, mat, vec)},
    {.op_id = GRAFT_OP_DOT,
     .flags = OP_EXACT_OUT,
     .roles = "vv",
     .infer = infer_dot,
     .decompose = decompose_dot,
     .vjp = vjp_dot,
     .saves = OP_SAVE_ARGS(dot, self, tensor)},
    {.op_id = GRAFT_OP_VDOT,
     .flags = OP_EXACT_OUT,
     .roles = "vv",
     .infer = infer_dot,
     .decompose = decompose_vdot,
     .vjp = vjp_vdot,
     .saves = OP_SAVE_ARGS(vdot, self, other)},
};
OP_TABLE(matmul, defs)
