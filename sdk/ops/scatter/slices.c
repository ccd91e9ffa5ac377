/* index_add, index_copy and index_fill, which write slices of self along a dim, and put, which writes elements of self
 * counted in a row. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/scatter/scatter.h"

/* --- rules --- */

/* The number of slices that source has; rank 0 counts as one. */
static int64_t slices(const graft_tensor *t, int64_t dim) {
  return t->ndim ? t->sizes[dim] : 1;
}

/* Integers take any alpha that they hold, and cut it: unlike that of add. */
static graft_status settle_alpha(op_call *c) {
  graft_scalar alpha = op_scalar(c, ARG_index_add_alpha);
  if (dt_is_float(c->compute) && dt_is_complex(alpha.dtype)) {
    return op_error(c, "alpha is complex, but the operands are real (%s)", op_show_tensors(c));
  }
  graft_status status = op_integer_holds(c, ARG_index_add_alpha, &c->args[ARG_index_add_alpha], c->compute);
  if (!status && dt_is_integral(c->compute, false) && !dt_is_integral(alpha.dtype, true)) {
    c->args[ARG_index_add_alpha].as.scalar = graft_scalar_int((int64_t)dt_scalar_value(&alpha).re);
  }
  return status;
}

graft_status sct_infer_along(op_call *c, bool adds) {
  const graft_tensor *self = op_tensor(c, ARG_index_add_self), *index = op_tensor(c, ARG_index_add_index),
                     *source = op_tensor(c, ARG_index_add_source);
  int64_t dim = op_int(c, ARG_index_add_dim);
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  op_set_int(c, ARG_index_add_dim, dim);
  if (index->dtype != GRAFT_I64 && !(adds && index->dtype == GRAFT_I32)) {
    return op_refuse(c, ARG_index_add_index, adds ? "i64 or i32" : "i64");
  }
  if (index->ndim > 1) return op_refuse(c, ARG_index_add_index, "rank 0 or 1");
  if ((status = op_check_same_dtype(c, ARG_index_add_self, ARG_index_add_source))) return status;
  bool line = !adds && self->ndim <= 1 && source->ndim <= 1; /* there rank 0 is as good as rank 1 */
  bool fits = self->ndim == source->ndim || line;
  for (int32_t i = 0; fits && !line && i < self->ndim; i++) fits = i == dim || self->sizes[i] == source->sizes[i];
  if (!fits)
    return op_error(c, "source must be self's shape but along dim %lld (%s)", (long long)dim, op_show_tensors(c));
  if (index->numel != slices(source, dim)) {
    return op_error(c, "expected one index for each slice of source along dim %lld (%s)", (long long)dim,
                    op_show_tensors(c));
  }
  c->compute = self->dtype;
  op_out(c, OUT, self->dtype, self->ndim, self->sizes);
  return adds ? GRAFT_OK /* PyTorch adds to nothing without a word */
              : idx_check_elements(c, ARG_index_add_self, dim, index);
}

static graft_status infer_index_add(op_call *c) {
  graft_status status = sct_infer_along(c, true);
  return status ? status : settle_alpha(c);
}
static graft_status infer_index_copy(op_call *c) {
  return sct_infer_along(c, false);
}

static graft_status infer_index_fill(op_call *c) {
  const in_index_fill_int_Tensor in = in_index_fill_int_Tensor_of(c->args);
  int64_t dim = in.dim;
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (status) return status;
  op_set_int(c, ARG_index_fill_int_Tensor_dim, dim);
  if ((status = op_check_dtype(c, ARG_index_fill_int_Tensor_index, GRAFT_I64))) return status;
  if (in.index->ndim > 1) return op_refuse(c, ARG_index_fill_int_Tensor_index, "rank 0 or 1");
  if (in.value && in.value->ndim) return op_refuse(c, ARG_index_fill_int_Tensor_value, "one number, of rank 0");
  if (in.value && dt_is_complex(in.value->dtype) && !dt_is_complex(in.self->dtype)) {
    return op_error(c, "a complex value does not fit into real self (%s)", op_show_tensors(c));
  }
  c->compute = in.self->dtype;
  op_out_like(c, OUT, in.self->dtype, in.self);
  status = op_number_fits(c, ARG_index_fill_int_Tensor_value, in.self->dtype);
  return status ? status : idx_check_elements(c, ARG_index_fill_int_Tensor_self, dim, in.index);
}

static graft_status infer_put(op_call *c) {
  const in_put in = in_put_of(c->args);
  graft_status status = op_check_dtype(c, ARG_put_index, GRAFT_I64);
  if (!status) status = op_check_same_dtype(c, ARG_put_self, ARG_put_source);
  if (status) return status;
  if (in.index->numel != in.source->numel) {
    return op_error(c, "expected as many elements in index as in source (%s)", op_show_tensors(c));
  }
  if (!in.self->numel && in.index->numel) return op_error(c, "self has no element to write (%s)", op_show_tensors(c));
  c->compute = in.self->dtype;
  op_out_like(c, OUT, in.self->dtype, in.self);
  return GRAFT_OK;
}

/* --- kernels --- */

/* What happens to an element and the one that is written there. */
typedef struct writer {
  graft_dtype dtype;
  bool adds;
  ref_complex factor; /* of what is added */
} writer;

static void write_one(const writer *w, ref_array *y, int64_t at, const ref_array *x, int64_t from) {
  ref_real re = x->re[from], im = x->im ? x->im[from] : 0;
  if (w->adds && w->factor != 1) {
    ref_complex term = ref_at(x, from) * w->factor;
    re = creall(term), im = cimagl(term);
  }
  const ref_array value = {1, &re, &im};
  if (w->adds)
    ref_add_element(w->dtype, y, at, &value, 0);
  else
    ref_take(y, at, &value, 0);
}

typedef struct along {
  const char *op;
  const graft_tensor_desc *self, *index, *source, *out;
  int64_t dim;
  bool one, wraps; /* one: source is a single element for all */
  writer how;
} along;

static graft_status write_along(const along *a) {
  REF_OWNED ref_array y = ref_read(a->self), x = ref_read(a->source), index = ref_read(a->index);
  graft_status status = x.re && y.re && index.re ? GRAFT_OK : ref_no_memory();
  ref_split s = ref_split_at(a->self, a->dim);
  int64_t rows = index.count;
  for (int64_t n = 0; n < s.outer * rows * s.inner && !status; n++) {
    int64_t inner = n % s.inner, row = n / s.inner % rows, outer = n / s.inner / rows, value = (int64_t)index.re[row];
    status = idx_wrap(a->op, &value, a->wraps, a->dim, s.size);
    if (!status) write_one(&a->how, &y, (outer * s.size + value) * s.inner + inner, &x, a->one ? 0 : n);
  }
  if (!status) ref_write(a->out, &y);
  return status;
}

graft_status kernel_index_add(const graft_exec *exec, const graft_args_index_add *a) {
  graft_dtype dtype = a->self->dl.dtype;
  dt_value alpha = a->alpha ? dt_scalar_value(a->alpha) : (dt_value){1, 0};
  if (dt_is_float(dt_real(dtype))) { /* as kernels have it */
    alpha.re = dt_round(dt_accumulate(dt_real(dtype)), alpha.re);
    alpha.im = dt_round(dt_accumulate(dt_real(dtype)), alpha.im);
  }
  along call = {"aten::index_add",
                a->self,
                a->index,
                a->source,
                a->out,
                a->dim,
                false,
                false,
                {dtype, true, CMPLXL(alpha.re, alpha.im)}};
  return write_along(&call);
}

graft_status kernel_index_copy(const graft_exec *exec, const graft_args_index_copy *a) {
  along call = {
      .op = "aten::index_copy", .self = a->self, .index = a->index, .source = a->source, .out = a->out, .dim = a->dim};
  return write_along(&call);
}

graft_status kernel_index_fill_int_Tensor(const graft_exec *exec, const graft_args_index_fill_int_Tensor *a) {
  along call = {.op = "aten::index_fill.int_Tensor",
                .self = a->self,
                .index = a->index,
                .source = a->value,
                .out = a->out,
                .dim = a->dim,
                .one = true,
                .wraps = true};
  return write_along(&call);
}

graft_status kernel_put(const graft_exec *exec, const graft_args_put *a) {
  REF_OWNED ref_array y = ref_read(a->self), x = ref_read(a->source), index = ref_read(a->index);
  graft_status status = x.re && y.re && index.re ? GRAFT_OK : ref_no_memory();
  writer how = {a->self->dl.dtype, a->accumulate, 1};
  for (int64_t i = 0; i < index.count && !status; i++) {
    int64_t at = (int64_t)index.re[i];
    status = idx_wrap("aten::put", &at, true, IDX_NO_DIM, y.count);
    if (!status) write_one(&how, &y, at, &x, i);
  }
  if (!status) ref_write(a->out, &y);
  return status;
}

/* --- decompositions: as scatters along dim 0 of rank 1, or along dim with the index in source's shape --- */

/* self as rank 1 where it has rank 0. */
static graft_tensor *at_least_one_dim(fx *s, graft_tensor *t) {
  return t->ndim ? t : fx_reshape(s, t, 1, (const int64_t[]){1});
}

graft_tensor *sct_spread_index(fx *s, const graft_tensor *self, int64_t dim, graft_tensor *index) {
  int64_t sizes[GRAFT_MAX_DIMS], line[GRAFT_MAX_DIMS];
  int32_t ndim = self->ndim ? self->ndim : 1;
  for (int32_t i = 0; i < ndim; i++) {
    line[i] = i == dim ? index->numel : 1;
    sizes[i] = i == dim || !self->ndim ? index->numel : self->sizes[i];
  }
  return fx_expand(s, fx_reshape(s, index, ndim, line), sizes, (uint32_t)ndim, false);
}

static void scatter_slices(fx *s, const op_call *c, graft_tensor *index, graft_tensor *source, bool adds,
                           graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, ARG_index_add_self),
               *row = sct_spread_index(s, self, op_int(c, ARG_index_add_dim), index);
  graft_tensor *base = at_least_one_dim(s, self);
  source = source->numel == row->numel && source->ndim ? fx_reshape(s, source, row->ndim, row->sizes)
                                                       : fx_expand(s, source, row->sizes, (uint32_t)row->ndim, false);
  graft_tensor *out = adds ? fx_scatter_add(s, base, op_int(c, ARG_index_add_dim), row, source)
                           : fx_scatter_src(s, base, op_int(c, ARG_index_add_dim), row, source);
  outs[OUT] = fx_reshape(s, out, self->ndim, self->sizes);
}

static void decompose_index_add(fx *s, const op_call *c, graft_tensor **outs) {
  const in_index_add in = in_index_add_of(c->args);
  graft_scalar alpha = in.alpha;
  graft_tensor *source = in.source;
  bool plain = !alpha.dtype || (dt_scalar_value(&alpha).re == 1 && dt_scalar_value(&alpha).im == 0);
  if (!plain) source = fx_scale(s, source, alpha);
  scatter_slices(s, c, in.index, source, true, outs);
}

static void decompose_index_copy(fx *s, const op_call *c, graft_tensor **outs) {
  const in_index_copy in = in_index_copy_of(c->args);
  scatter_slices(s, c, in.index, in.source, false, outs);
}

/* The value as a tensor, of a number, too. */
static graft_tensor *value_of(fx *s, const op_call *c, int arg) {
  graft_tensor *value = op_tensor(c, arg), *self = op_tensor(c, ARG_index_fill_int_Tensor_self);
  return value ? value : fx_full(s, NULL, 0, op_scalar(c, arg), self->dtype, self->device);
}

static void decompose_index_fill(fx *s, const op_call *c, graft_tensor **outs) {
  const in_index_fill_int_Tensor in = in_index_fill_int_Tensor_of(c->args);
  graft_tensor *index = idx_from_the_end(s, in.index, slices(in.self, in.dim));
  scatter_slices(s, c, index, value_of(s, c, 3), false, outs);
}

static void decompose_put(fx *s, const op_call *c, graft_tensor **outs) {
  const in_put in = in_put_of(c->args);
  graft_tensor *self = in.self, *source = in.source;
  graft_tensor *row = fx_reshape(s, idx_from_the_end(s, in.index, self->numel), 1, &source->numel);
  graft_tensor *flat = fx_reshape(s, self, 1, &self->numel), *x = fx_reshape(s, source, 1, &source->numel);
  graft_tensor *out = in.accumulate ? fx_scatter_add(s, flat, 0, row, x) : fx_scatter_src(s, flat, 0, row, x);
  outs[OUT] = fx_reshape(s, out, self->ndim, self->sizes);
}

/* --- gradients --- */

static graft_tensor *zero(op_vjp *v) {
  return fx_filled(v->s, v->g[OUT], 0, NULL, 0, v->g[OUT]->dtype);
}

/* The slices of g that index names, in source's shape. */
static graft_tensor *to_source(op_vjp *v) {
  graft_tensor *source = vjp_arg(v, ARG_index_add_source);
  return fx_reshape(v->s,
                    fx_index_select(v->s, v->g[OUT], v->args[ARG_index_add_dim].as.i, vjp_arg(v, ARG_index_add_index)),
                    source->ndim, source->sizes);
}

static void vjp_index_add(op_vjp *v) {
  if (vjp_needs(v, ARG_index_add_self)) v->results[ARG_index_add_self] = v->g[OUT];
  if (!vjp_needs(v, ARG_index_add_source)) return;
  graft_scalar alpha = v->args[ARG_index_add_alpha].kind == GRAFT_VALUE_SCALAR ? v->args[ARG_index_add_alpha].as.scalar
                                                                               : graft_scalar_int(1);
  if (alpha.dtype == GRAFT_C128) alpha.value.c[1] *= -1;
  bool plain = dt_scalar_value(&alpha).re == 1 && dt_scalar_value(&alpha).im == 0;
  v->results[ARG_index_add_source] = plain ? to_source(v) : fx_scale(v->s, to_source(v), alpha);
}

static void vjp_index_copy(op_vjp *v) {
  const in_index_copy in = in_index_copy_of(v->args);
  if (vjp_needs(v, ARG_index_add_self))
    v->results[ARG_index_add_self] = fx_index_fill_int_Tensor(v->s, v->g[OUT], in.dim, in.index, zero(v));
  if (vjp_needs(v, ARG_index_copy_source)) v->results[ARG_index_copy_source] = to_source(v);
}

/* An element that several indices name counts once. */
static void vjp_index_fill(op_vjp *v) {
  const in_index_fill_int_Tensor in = in_index_fill_int_Tensor_of(v->args);
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, ARG_index_fill_int_Tensor_self))
    v->results[ARG_index_fill_int_Tensor_self] = fx_index_fill_int_Tensor(v->s, g, in.dim, in.index, zero(v));
  if (!vjp_needs(v, ARG_index_fill_int_Tensor_value)) return;
  graft_tensor *none = fx_filled(v->s, g, g->ndim, g->sizes, 0, GRAFT_BOOL);
  graft_tensor *named =
      fx_index_fill_int_Tensor(v->s, none, in.dim, in.index, fx_filled(v->s, g, 0, NULL, 1, GRAFT_BOOL));
  graft_tensor *taken = fx_only_where(v->s, named, g);
  if (taken)
    v->results[ARG_index_fill_int_Tensor_value] = fx_sum(v->s, taken, taken->ndim ? (1u << taken->ndim) - 1 : 0, false);
}

static void vjp_put(op_vjp *v) {
  const in_put in = in_put_of(v->args);
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, ARG_put_self)) {
    bool accumulates = in.accumulate;
    graft_tensor *zeros = accumulates ? NULL : fx_filled(v->s, g, in.source->ndim, in.source->sizes, 0, g->dtype);
    v->results[ARG_put_self] = accumulates ? g : fx_put(v->s, g, in.index, zeros, false);
  }
  if (vjp_needs(v, ARG_put_source))
    v->results[ARG_put_source] = fx_reshape(v->s, fx_take(v->s, g, in.index), in.source->ndim, in.source->sizes);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(index_add),
     .flags = OP_EXACT_OUT,
     .roles = "viv",
     .infer = infer_index_add,
     .decompose = decompose_index_add,
     .vjp = vjp_index_add,
     .saves = OP_SAVE_ARG(index_add, index)},
    {.op_id = OP_WITH_KERNEL(index_copy),
     .roles = "viv",
     .infer = infer_index_copy,
     .decompose = decompose_index_copy,
     .vjp = vjp_index_copy,
     .saves = OP_SAVE_ARG(index_copy, index),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(index_fill_int_Tensor),
     .roles = "viv",
     .infer = infer_index_fill,
     .decompose = decompose_index_fill,
     .vjp = vjp_index_fill,
     .saves = OP_SAVE_ARG(index_fill_int_Tensor, index),
     .flags = OP_NO_WIDEN | OP_TAKES_NUMBER | OP_HOLDS_LAST},
    {.op_id = OP_WITH_KERNEL(put),
     .roles = "viv",
     .infer = infer_put,
     .decompose = decompose_put,
     .vjp = vjp_put,
     .saves = OP_SAVE_ARG(put, index),
     .flags = OP_NO_WIDEN},
};
OP_TABLE(scatter_slices, defs)
