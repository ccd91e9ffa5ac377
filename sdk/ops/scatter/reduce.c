/* scatter_reduce.two: what index names of self, brought together with the elements of src that go there, by a sum,
 * product, mean or extremum; without self's own element where it is not included. index_reduce does so with whole
 * slices along a dim, and its arguments stand alike. */
#include <string.h>

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"
#include "ops/scatter/scatter.h"

enum { SELF = ARG_scatter_reduce_two_self, DIM = ARG_scatter_reduce_two_dim };
enum {
  INDEX = ARG_scatter_reduce_two_index,
  SRC = ARG_scatter_reduce_two_src,
  REDUCE = ARG_scatter_reduce_two_reduce,
  INCLUDE_SELF = ARG_scatter_reduce_two_include_self
};

/* --- rule --- */

static bool reduces_by(const graft_value *args, const char *name) {
  return !strcmp(args[REDUCE].as.str, name);
}

static bool by_extremum(const graft_value *args) {
  return reduces_by(args, "amax") || reduces_by(args, "amin");
}

static graft_status infer_reduce(op_call *c) {
  const graft_tensor *self = op_tensor(c, SELF);
  graft_status status = sct_infer(c);
  if (status) return status;
  c->no_decompose = !reduces_by(c->args, "sum") && !reduces_by(c->args, "mean");
  if (dt_is_complex(self->dtype) && by_extremum(c->args)) return op_refuse(c, SELF, "a real dtype");
  if (self->dtype == GRAFT_BOOL && reduces_by(c->args, "mean")) return op_refuse(c, SELF, "a dtype that is not bool");
  return GRAFT_OK;
}

/* --- kernel --- */

static ref_real product(graft_dtype dtype, ref_real a, ref_real b) {
  if (!dt_is_integral(dtype, true)) return a * b;
  return ref_of_bits(dtype, ref_bits(a) * ref_bits(b));
}

/* An integer as its dtype holds it. */
static ref_real wrapped(graft_dtype dtype, ref_real x) {
  unsigned char bytes[16];
  if (!dt_is_integral(dtype, false)) return x;
  dt_store(dtype, bytes, (dt_value){x, 0});
  return dt_load(dtype, bytes).re;
}

static void join(uint32_t reduce, graft_dtype dtype, ref_array *y, int64_t at, const ref_array *x, int64_t from) {
  ref_real a = y->re[at], b = x->re[from];
  if (reduce == GRAFT_STR_SCATTER_REDUCE_AMAX) {
    y->re[at] = isnan(a) || a > b ? a : b;
  } else if (reduce == GRAFT_STR_SCATTER_REDUCE_AMIN) {
    y->re[at] = isnan(a) || a < b ? a : b;
  } else if (reduce == GRAFT_STR_SCATTER_REDUCE_PROD) {
    ref_complex both = y->im ? ref_at(y, at) * ref_at(x, from) : product(dtype, a, b);
    y->re[at] = wrapped(dtype, creall(both));
    if (y->im) y->im[at] = cimagl(both);
  } else {
    ref_add_element(dtype, y, at, x, from);
    y->re[at] = wrapped(dtype, y->re[at]);
  }
}

/* An integer is divided by a count of its own dtype, which wraps; 0 then counts as 1. */
static void divide(graft_dtype dtype, ref_array *y, int64_t at, ref_real count) {
  bool integral = dt_is_integral(dtype, false);
  if (integral) count = wrapped(dtype, count);
  if (count == 0) count = 1;
  y->re[at] /= count;
  if (y->im) y->im[at] /= count;
  if (integral) y->re[at] = wrapped(dtype, floorl(y->re[at]));
}

typedef struct reduction {
  const graft_args_scatter_reduce_two *a;
  ref_array y, x, index, count; /* count: elements brought together, 0 where index names nothing */
} reduction;

/* The first to come replaces self's own element where that is not included. */
static graft_status reduce_all(reduction *r) {
  const graft_args_scatter_reduce_two *a = r->a;
  graft_dtype dtype = a->self->dl.dtype;
  idx_line line = idx_line_of("aten::scatter_reduce.two", a->self, a->index, a->dim);
  idx_line source = idx_line_of(line.op, a->src, a->index, 0);
  graft_status status = GRAFT_OK;
  for (int64_t i = 0; i < r->index.count && !status; i++) {
    int64_t at = idx_line_at(&line, i, (int64_t)r->index.re[i], &status);
    int64_t row = a->index->dl.ndim ? i / (r->index.count / a->index->dl.shape[0]) : 0;
    int64_t from = status ? 0 : idx_line_at(&source, i, row, &status);
    if (status) break;
    if (a->include_self || r->count.re[at] > 0) {
      join(a->reduce, dtype, &r->y, at, &r->x, from);
    } else {
      ref_take(&r->y, at, &r->x, from);
    }
    r->count.re[at]++;
  }
  for (int64_t i = 0; i < r->y.count && !status && a->reduce == GRAFT_STR_SCATTER_REDUCE_MEAN; i++) {
    ref_real count = r->count.re[i] + (a->include_self ? 1 : 0);
    if (r->count.re[i] > 0) divide(dtype, &r->y, i, count);
  }
  return status;
}

graft_status kernel_scatter_reduce_two(const graft_exec *exec, const graft_args_scatter_reduce_two *a) {
  if (!ref_texts_are_known(op_schema_of(a->head.op_id), a)) return GRAFT_UNIMPLEMENTED;
  REF_OWNED ref_array y = ref_read(a->self), x = ref_read(a->src), index = ref_read(a->index),
                      count = ref_new(ref_numel(a->self), false);
  reduction r = {a, y, x, index, count};
  graft_status status = y.re && x.re && index.re && count.re ? reduce_all(&r) : ref_no_memory();
  if (!status) ref_write(a->out, &y);
  return status;
}

/* --- decomposition: sums and means; products and extrema have none --- */

/* How many elements come together, in self's dtype, in which integers wrap; 1 where that is 0. */
static graft_tensor *counts(fx *s, graft_tensor *self, int64_t dim, graft_tensor *index, bool include_self) {
  graft_tensor *ones = fx_filled(s, self, index->ndim, index->sizes, 1, GRAFT_I64);
  graft_tensor *own = fx_filled(s, self, self->ndim, self->sizes, include_self, GRAFT_I64);
  graft_tensor *sum = fx_cast(s, fx_scatter_add(s, own, dim, index, ones), dt_real(self->dtype));
  bool never_zero = include_self && !dt_is_integral(self->dtype, false);
  return never_zero ? sum
                    : fx_masked_fill_Scalar(s, sum, fx_eq_Scalar(s, sum, graft_scalar_int(0)), graft_scalar_int(1));
}

static void decompose_reduce(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, SELF), *index = op_tensor(c, INDEX), *src = op_tensor(c, SRC);
  int64_t dim = op_int(c, DIM);
  bool mean = reduces_by(c->args, "mean"), own = op_bool(c, INCLUDE_SELF);
  graft_tensor *base = own ? self : fx_scatter_value(s, self, dim, index, graft_scalar_int(0));
  outs[OUT] = fx_scatter_add(s, base, dim, index, src);
  if (!mean) return;
  graft_tensor *count = counts(s, self, dim, index, own);
  if (dt_is_integral(self->dtype, false)) {
    outs[OUT] = fx_div_Tensor_mode(s, outs[OUT], count, "floor");
  } else {
    outs[OUT] = fx_div(s, outs[OUT], count);
  }
}

/* --- index_reduce: an index for each slice, spread over it --- */

static graft_status infer_index_reduce(op_call *c) {
  const graft_tensor *self = op_tensor(c, SELF);
  graft_status status = sct_infer_along(c, true);
  bool paired = dt_is_complex(self->dtype), averages = reduces_by(c->args, "mean");
  bool ordered = !paired && !dt_is_float8(self->dtype) && self->dtype != GRAFT_BOOL;
  bool on_bool = by_extremum(c->args) && self->dtype == GRAFT_BOOL;
  bool whole = op_bool(c, INCLUDE_SELF) && (reduces_by(c->args, "prod") || (averages && paired) || on_bool);
  bool takes = ordered || whole; /* as PyTorch */
  return status || takes ? status : op_refuse(c, SELF, "a real dtype other than bool");
}

static void decompose_index_reduce(fx *s, const op_call *c, graft_tensor **outs) {
  const in_index_reduce in = in_index_reduce_of(c->args);
  if (!in.index->numel) {
    outs[OUT] = fx_clone(s, in.self, GRAFT_FORMAT_CONTIGUOUS);
    return;
  }
  graft_tensor *index = sct_spread_index(s, in.self, in.dim, in.index);
  if (s->status) return;
  graft_tensor *self = in.self->ndim ? in.self : fx_reshape(s, in.self, 1, (const int64_t[]){1});
  graft_tensor *src = fx_reshape(s, in.source, index->ndim, index->sizes);
  graft_tensor *out = fx_scatter_reduce_two(s, self, in.dim, index, src, in.reduce, in.include_self);
  outs[OUT] = fx_reshape(s, out, in.self->ndim, in.self->sizes);
}

/* --- gradient --- */

/* The part of src that index names places for. */
static graft_tensor *used_of_src(op_vjp *v, const graft_tensor *index) {
  graft_tensor *src = vjp_arg(v, SRC);
  if (src->ndim != index->ndim) return fx_reshape(v->s, src, index->ndim, index->sizes);
  for (int32_t i = 0; i < index->ndim; i++) {
    const int64_t first = 0, end = index->sizes[i];
    if (src && src->sizes[i] > end) src = fx_slice_Tensor(v->s, src, i, &first, &end, 1);
  }
  return src;
}

typedef struct parts {
  fx *s;
  int64_t dim;
  graft_tensor *self, *index, *src, *g, *out;
  bool own;
} parts;

/* What scatter_reduce calls index and self; in index_reduce rank 0 counts as one slice. */
static void see_slices(op_vjp *v, parts *p) {
  if (v->schema->id != GRAFT_OP_INDEX_REDUCE) return;
  p->index = sct_spread_index(p->s, p->self, p->dim, p->index);
  if (p->self->ndim) return;
  const int64_t one = 1;
  p->self = fx_reshape(p->s, p->self, 1, &one);
  p->g = fx_reshape(p->s, p->g, 1, &one);
  p->out = fx_reshape(p->s, p->out, 1, &one);
}

/* A gradient in src's shape. */
static graft_tensor *to_src(op_vjp *v, graft_tensor *g) {
  graft_tensor *src = vjp_arg(v, SRC);
  return v->schema->id == GRAFT_OP_INDEX_REDUCE ? fx_reshape(v->s, g, src->ndim, src->sizes) : sct_padded(v, g);
}

static graft_tensor *named(const parts *p, graft_tensor *t) {
  return fx_gather(p->s, t, p->dim, p->index, false);
}

static graft_tensor *zero_of(const parts *p, graft_tensor *t) {
  return fx_eq_Scalar(p->s, t, graft_scalar_int(0));
}

static graft_tensor *ones_at(const parts *p, graft_tensor *t, graft_tensor *mask) {
  return fx_masked_fill_Scalar(p->s, t, mask, graft_scalar_int(1));
}

static graft_tensor *multiplied(const parts *p, graft_tensor *self, graft_tensor *src) {
  return fx_scatter_reduce_two(p->s, self, p->dim, p->index, src, "prod", p->own);
}

/* Products leave the range of half types where a quotient of two does not. */
static const parts *widen(parts *p) {
  if (!dt_is_half(p->g->dtype)) return p;
  p->g = fx_widened(p->s, p->g);
  p->self = fx_widened(p->s, p->self);
  p->src = fx_widened(p->s, p->src);
  p->out = multiplied(p, p->self, p->src);
  return p;
}

/* What the product of the others is: the product over the element, or without it where it alone is 0. */
static void vjp_product(op_vjp *v, const parts *p) {
  if (vjp_needs(v, SELF)) {
    graft_tensor *self = ones_at(p, p->self, zero_of(p, p->self));
    graft_tensor *others = fx_div(p->s, multiplied(p, self, p->src), self);
    v->results[SELF] = fx_mul(p->s, p->g, fx_conj(p->s, others));
  }
  if (!vjp_needs(v, SRC)) return;
  graft_tensor *is_zero = zero_of(p, p->src);
  graft_tensor *none = fx_filled(p->s, p->g, p->self->ndim, p->self->sizes, 0, GRAFT_I64);
  graft_tensor *zeros = named(p, fx_scatter_add(p->s, none, p->dim, p->index, fx_cast(p->s, is_zero, GRAFT_I64)));
  graft_tensor *alone = fx_logical_and(p->s, is_zero, fx_eq_Scalar(p->s, zeros, graft_scalar_int(1)));
  graft_tensor *without = named(p, multiplied(p, p->self, ones_at(p, p->src, alone)));
  graft_tensor *others = fx_div(p->s, named(p, p->out), ones_at(p, p->src, is_zero));
  graft_tensor *slope = fx_where_self(p->s, alone, without, others);
  v->results[SRC] = to_src(v, fx_mul(p->s, named(p, p->g), fx_conj(p->s, slope)));
}

/* Those that are the extremum share the gradient. */
static void vjp_extremum(op_vjp *v, const parts *p) {
  graft_tensor *self_is = fx_cast(p->s, fx_eq_Tensor(p->s, p->self, p->out), p->g->dtype);
  graft_tensor *src_is = fx_cast(p->s, fx_eq_Tensor(p->s, p->src, named(p, p->out)), p->g->dtype);
  graft_tensor *each = fx_div(p->s, p->g, fx_scatter_add(p->s, self_is, p->dim, p->index, src_is));
  if (vjp_needs(v, SELF)) v->results[SELF] = fx_mul(p->s, self_is, each);
  if (vjp_needs(v, SRC)) v->results[SRC] = to_src(v, fx_mul(p->s, src_is, named(p, each)));
}

static void vjp_sum(op_vjp *v, const parts *p, bool mean) {
  graft_tensor *g = p->g;
  if (mean) g = fx_div(p->s, g, counts(p->s, p->self, p->dim, p->index, p->own));
  v->results[SELF] = g;
  if (vjp_needs(v, SRC)) v->results[SRC] = to_src(v, named(p, g));
}

static void vjp_reduce(op_vjp *v) {
  graft_tensor *index = vjp_arg(v, INDEX), *src = vjp_arg(v, SRC);
  parts p = {v->s, v->args[DIM].as.i, vjp_arg(v, SELF), index,
             NULL, v->g[OUT],         v->outs[OUT],     v->args[INCLUDE_SELF].as.i};
  if (!index->numel) {
    v->results[SELF] = p.g;
    v->results[SRC] = fx_filled(p.s, p.g, src->ndim, src->sizes, 0, p.g->dtype);
    return;
  }
  see_slices(v, &p);
  if (p.s->status) return;
  bool mean = reduces_by(v->args, "mean");
  if (mean || reduces_by(v->args, "sum")) {
    vjp_sum(v, &p, mean);
  } else {
    p.src = used_of_src(v, p.index);
    if (by_extremum(v->args))
      vjp_extremum(v, &p);
    else
      vjp_product(v, widen(&p));
  }
  if (!vjp_needs(v, SELF))
    v->results[SELF] = NULL;
  else if (!p.own)
    v->results[SELF] = fx_scatter_value(p.s, v->results[SELF], p.dim, p.index, graft_scalar_int(0));
  if (v->results[SELF] && v->results[SELF]->ndim != v->g[OUT]->ndim)
    v->results[SELF] = fx_reshape(p.s, v->results[SELF], v->g[OUT]->ndim, v->g[OUT]->sizes);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(scatter_reduce_two),
     .flags = OP_EXACT_OUT,
     .roles = "viv",
     .infer = infer_reduce,
     .decompose = decompose_reduce,
     .vjp = vjp_reduce,
     .saves = OP_SAVE_ARGS(scatter_reduce_two, self, index, src) | OP_SAVE_OUT(scatter_reduce_two, out)},
    {.op_id = GRAFT_OP_INDEX_REDUCE,
     .flags = OP_EXACT_OUT,
     .roles = "viv",
     .infer = infer_index_reduce,
     .decompose = decompose_index_reduce,
     .vjp = vjp_reduce,
     .saves = OP_SAVE_ARGS(index_reduce, self, index, source) | OP_SAVE_OUT(index_reduce, out)},
};
OP_TABLE(scatter_reduce, defs)
