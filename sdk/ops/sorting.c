/* Sorting: NaN counts as larger than every number, in both directions. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

/* --- rules --- */

static graft_status infer_sorted(op_call *c, int dim_arg) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t dim = op_int(c, dim_arg);
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  if (dt_is_complex(self->dtype) || (dt_is_float8(self->dtype) && self->ndim)) return op_refuse_dtype(c, 0, "a real dtype, which has an order");
  op_set_int(c, dim_arg, dim);
  c->compute = self->dtype;
  op_out_like(c, 0, self->dtype, self);
  op_out_like(c, 1, GRAFT_I64, self);
  return GRAFT_OK;
}

/* sort(self, dim, descending); sort.stable(self, stable, dim, descending) */
static graft_status infer_sort(op_call *c) { return infer_sorted(c, 1); }
static graft_status infer_sort_stable(op_call *c) { return infer_sorted(c, 2); }

/* topk(self, k, dim, largest, sorted) */
static graft_status infer_topk(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t k = op_int(c, 1), dim = op_int(c, 2), sizes[GRAFT_MAX_DIMS];
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  if (dt_is_complex(self->dtype) || self->dtype == GRAFT_BOOL) return op_refuse_dtype(c, 0, "a real dtype other than bool");
  int64_t size = self->ndim ? self->sizes[dim] : 1;
  if (k < 0 || k > size) {
    return op_error(c, "k is %lld; expected 0 to %lld, the size of dim %lld of self %s", (long long)k, (long long)size,
                    (long long)dim, op_show(c, 0));
  }
  for (int32_t i = 0; i < self->ndim; i++) sizes[i] = i == dim ? k : self->sizes[i];
  op_set_int(c, 2, dim);
  c->compute = self->dtype;
  op_out(c, 0, self->dtype, self->ndim, sizes);
  op_out(c, 1, GRAFT_I64, self->ndim, sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

typedef struct ranked {
  ref_real value;
  int64_t index;
} ranked;

static int ascending(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  bool x_nan = isnan(x->value), y_nan = isnan(y->value);
  if (x_nan != y_nan) return x_nan ? 1 : -1;
  if (x->value < y->value) return -1;
  if (x->value > y->value) return 1;
  return x->index < y->index ? -1 : x->index > y->index; /* which makes it stable */
}

static int descending(const void *a, const void *b) {
  const ranked *x = a, *y = b;
  bool x_nan = isnan(x->value), y_nan = isnan(y->value);
  if (x_nan != y_nan) return x_nan ? -1 : 1;
  if (x->value > y->value) return -1;
  if (x->value < y->value) return 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

/* The first k of each line along dim, in order. */
static graft_status sort_lines(const graft_tensor_desc *self, int64_t dim, bool down, int64_t k,
                               const graft_tensor_desc *values, const graft_tensor_desc *indices) {
  ref_split s = ref_split_at(self, dim);
  ref_array x = ref_read(self), y = ref_new(s.outer * k * s.inner, false), at = ref_new(y.count, false);
  ranked *line = calloc((size_t)s.size + 1, sizeof *line);
  graft_status status = x.re && y.re && at.re && line ? GRAFT_OK : ref_no_memory();
  for (int64_t l = 0; l < s.outer * s.inner && !status; l++) {
    int64_t first = l / s.inner * s.size * s.inner + l % s.inner, to = l / s.inner * k * s.inner + l % s.inner;
    for (int64_t i = 0; i < s.size; i++) line[i] = (ranked){x.re[first + i * s.inner], i};
    qsort(line, (size_t)s.size, sizeof *line, down ? descending : ascending);
    for (int64_t i = 0; i < k; i++) {
      y.re[to + i * s.inner] = line[i].value;
      at.re[to + i * s.inner] = (ref_real)line[i].index;
    }
  }
  if (!status) {
    ref_write(values, &y);
    ref_write(indices, &at);
  }
  free(line);
  ref_free(&x);
  ref_free(&y);
  ref_free(&at);
  return status;
}

static graft_status ref_sort_stable(const graft_exec *exec, const graft_args_sort_stable *a) {
  (void)exec;
  return sort_lines(a->self, a->dim, a->descending, ref_split_at(a->self, a->dim).size, a->values, a->indices);
}

static graft_status ref_sort(const graft_exec *exec, const graft_args_sort *a) {
  (void)exec;
  return sort_lines(a->self, a->dim, a->descending, ref_split_at(a->self, a->dim).size, a->values, a->indices);
}

static graft_status ref_topk(const graft_exec *exec, const graft_args_topk *a) {
  (void)exec;
  if (!ref_numel(a->values)) return GRAFT_OK;
  return sort_lines(a->self, a->dim, a->largest, a->self->dl.ndim ? a->k : 1, a->values, a->indices);
}

/* --- decompositions --- */

static void decompose_sort(fx *s, const op_call *c, graft_tensor **outs) {
  fx_sort_stable(s, op_tensor(c, 0), &(const bool){true}, op_int(c, 1), op_bool(c, 2), &outs[0], &outs[1]);
}

static void decompose_topk(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0);
  int64_t k = op_int(c, 1), dim = op_int(c, 2);
  fx_sort(s, self, dim, op_bool(c, 3), &outs[0], &outs[1]);
  for (int i = 0; i < 2 && self->ndim; i++) outs[i] = fx_slice_Tensor(s, outs[i], dim, NULL, &k, 1);
}

/* --- gradients: each value's goes back to where it was --- */

static void back(op_vjp *v, int dim_arg) {
  graft_tensor *self = vjp_arg(v, 0);
  if (!v->g[0]) return;
  graft_tensor *zeros = fx_filled(v->s, v->g[0], self->ndim, self->sizes, 0, v->g[0]->dtype);
  v->results[0] = fx_scatter_src(v->s, zeros, v->args[dim_arg].as.i, v->outs[1], v->g[0]);
}

static void vjp_sort(op_vjp *v) { back(v, 1); }
static void vjp_sort_stable(op_vjp *v) { back(v, 2); }
static void vjp_topk(op_vjp *v) { back(v, 2); }

static const op_def defs[] = {
    {.op_id = GRAFT_OP_SORT, .roles = "v", .infer = infer_sort, .decompose = decompose_sort, .vjp = vjp_sort,
     .saves = OP_SAVE_OUT(1), .flags = OP_NO_WIDEN, .reference = OP_REF(sort)},
    {.op_id = GRAFT_OP_SORT_STABLE, .roles = "v", .infer = infer_sort_stable, .vjp = vjp_sort_stable,
     .saves = OP_SAVE_OUT(1), .flags = OP_NO_WIDEN, .reference = OP_REF(sort_stable)},
    {.op_id = GRAFT_OP_TOPK, .roles = "v", .infer = infer_topk, .decompose = decompose_topk, .vjp = vjp_topk,
     .saves = OP_SAVE_OUT(1), .flags = OP_NO_WIDEN, .reference = OP_REF(topk)},
};
OP_FAMILY_END(sorting, defs)
