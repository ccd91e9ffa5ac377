/* Sorting: NaN counts as larger than every number, in both directions. */
#include "ops/core/families.h"
#include "ops/core/ref.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status infer_sorted(op_call *c, int dim_arg) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t dim = op_int(c, dim_arg);
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  if (dt_is_complex(self->dtype) || (dt_is_float8(self->dtype) && self->ndim))
    return op_refuse_dtype(c, 0, "a real dtype, which has an order");
  op_set_int(c, dim_arg, dim);
  c->compute = self->dtype;
  op_out_like(c, 0, self->dtype, self);
  op_out_like(c, 1, GRAFT_I64, self);
  return GRAFT_OK;
}

/* sort(self, dim, descending); sort.stable(self, stable, dim, descending) */
static graft_status infer_sort(op_call *c) {
  return infer_sorted(c, 1);
}
static graft_status infer_sort_stable(op_call *c) {
  return infer_sorted(c, 2);
}

/* topk(self, k, dim, largest, sorted) */
static graft_status infer_topk(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t k = op_int(c, 1), dim = op_int(c, 2), sizes[GRAFT_MAX_DIMS];
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  if (dt_is_complex(self->dtype) || self->dtype == GRAFT_BOOL)
    return op_refuse_dtype(c, 0, "a real dtype other than bool");
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

static void vjp_sort(op_vjp *v) {
  back(v, 1);
}
static void vjp_sort_stable(op_vjp *v) {
  back(v, 2);
}
static void vjp_topk(op_vjp *v) {
  back(v, 2);
}

/* --- searchsorted(sorted_sequence, self, out_int32, right, side, sorter), bucketize(self, boundaries, out_int32,
 * right) --- */

static graft_status check_search(op_call *c, int sequence_arg, int values_arg, bool out_int32) {
  const graft_tensor *sequence = op_tensor(c, sequence_arg), *values = op_tensor(c, values_arg);
  bool fits = sequence->ndim == 1 || (sequence->ndim == values->ndim && sequence->ndim);
  for (int32_t i = 0; fits && sequence->ndim != 1 && i < sequence->ndim - 1; i++) {
    fits = sequence->sizes[i] == values->sizes[i];
  }
  if (!fits)
    return op_error(c, "boundaries must have rank 1, or the leading dims of the values (%s)", op_show_tensors(c));
  graft_dtype dtype = op_promote(c, 0, 2); /* both are of the first two arguments */
  if (!dtype || dt_is_complex(dtype) || dt_is_float8(dtype) || dtype == GRAFT_BOOL) {
    return op_error(c, "%s; expected real dtypes other than bool", op_show_tensors(c));
  }
  if (out_int32 && sequence->ndim && sequence->sizes[sequence->ndim - 1] >= INT32_MAX) {
    return op_error(c, "i32 can't hold the places of %s", op_show(c, sequence_arg));
  }
  c->compute = dtype;
  op_out(c, 0, out_int32 ? GRAFT_I32 : GRAFT_I64, values->ndim, values->sizes);
  return GRAFT_OK;
}

static bool to_the_right(const graft_value *right, const graft_value *side) {
  return (right->kind == GRAFT_VALUE_BOOL && right->as.i) || (side->kind == GRAFT_VALUE_STR && side->as.str[0] == 'r');
}

static graft_status infer_searchsorted(op_call *c) {
  const graft_tensor *sequence = op_tensor(c, 0), *sorter = op_tensor(c, 5);
  bool left = c->args[4].kind == GRAFT_VALUE_STR && c->args[4].as.str[0] == 'l';
  if (left && op_bool(c, 3)) return op_error(c, "side is 'left' and right is true");
  if (sorter) {
    bool same = sorter->ndim == sequence->ndim;
    for (int32_t i = 0; same && i < sorter->ndim; i++) same = sorter->sizes[i] == sequence->sizes[i];
    if (!same) return op_error(c, "sorter must have the shape of sorted_sequence (%s)", op_show_tensors(c));
    if (sorter->dtype != GRAFT_I64) return op_refuse_dtype(c, 5, "i64");
  }
  bool right = to_the_right(&c->args[3], &c->args[4]);
  c->args[3] = (graft_value){GRAFT_VALUE_BOOL, 0, {.i = right}}; /* canonical: `right` says it all */
  return check_search(c, 0, 1, op_bool(c, 2));
}

static graft_status infer_bucketize(op_call *c) {
  if (op_tensor(c, 1)->ndim != 1) return op_error(c, "boundaries is %s; expected rank 1", op_show(c, 1));
  return check_search(c, 1, 0, op_bool(c, 2));
}

/* How many of a sequence come before a value, or before and with it. NaN comes last. */
static int64_t place_of(const ref_real *sequence, const ref_real *order, int64_t n, ref_real value, bool right) {
  int64_t low = 0, high = n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    ref_real there = sequence[order ? (int64_t)order[middle] : middle];
    bool behind = right ? there > value : there >= value;
    if (behind)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static graft_status search_all(const graft_tensor_desc *sequence, const graft_tensor_desc *values,
                               const graft_tensor_desc *sorter, bool right, const graft_tensor_desc *out) {
  ref_array x = ref_read(values), s = ref_read(sequence), order = ref_read(sorter);
  graft_status status = x.re && s.re && (order.re || !sorter) ? GRAFT_OK : ref_no_memory();
  int64_t n = sequence->dl.shape[sequence->dl.ndim - 1],
          per_row = values->dl.ndim ? values->dl.shape[values->dl.ndim - 1] : 1;
  for (int64_t i = 0; !status && i < x.count; i++) {
    int64_t row = sequence->dl.ndim == 1 ? 0 : i / per_row * n;
    x.re[i] = (ref_real)place_of(s.re + row, order.re ? order.re + row : NULL, n, x.re[i], right);
  }
  if (!status) ref_write(out, &x);
  ref_free(&x);
  ref_free(&s);
  ref_free(&order);
  return status;
}

static graft_status ref_searchsorted_Tensor(const graft_exec *exec, const graft_args_searchsorted_Tensor *a) {
  (void)exec;
  return search_all(a->sorted_sequence, a->self, a->sorter, a->right, a->out);
}

static graft_status ref_bucketize_Tensor(const graft_exec *exec, const graft_args_bucketize_Tensor *a) {
  (void)exec;
  return search_all(a->boundaries, a->self, NULL, a->right, a->out);
}

static void decompose_bucketize(fx *s, const op_call *c, graft_tensor **outs) {
  outs[0] = fx_searchsorted_Tensor(s, op_tensor(c, 1), op_tensor(c, 0), op_bool(c, 2), op_bool(c, 3), NULL, NULL);
}

/* --- isin(elements, test_elements, assume_unique, invert) --- */

static graft_status infer_isin(op_call *c) {
  const graft_tensor *elements = op_tensor(c, 0);
  for (int i = 0; i < 2; i++) {
    graft_dtype dtype = op_tensor(c, i)->dtype;
    if (dt_is_complex(dtype) || dtype == GRAFT_BOOL || dt_is_float8(dtype)) {
      return op_refuse_dtype(c, i, "a real dtype other than bool");
    }
  }
  c->compute = op_promote(c, 0, 2);
  if (!c->compute) return op_error(c, "the dtypes have none in common (%s)", op_show_tensors(c));
  op_out(c, 0, GRAFT_BOOL, elements->ndim, elements->sizes);
  return GRAFT_OK;
}

static graft_status ref_isin_Tensor_Tensor(const graft_exec *exec, const graft_args_isin_Tensor_Tensor *a) {
  (void)exec;
  ref_array x = ref_read(a->elements), tests = ref_read(a->test_elements);
  graft_status status = x.re && tests.re ? GRAFT_OK : ref_no_memory();
  for (int64_t i = 0; !status && i < x.count; i++) {
    bool found = false;
    for (int64_t k = 0; k < tests.count && !found; k++) found = x.re[i] == tests.re[k];
    x.re[i] = found != (a->invert != 0);
  }
  if (!status) ref_write(a->out, &x);
  ref_free(&x);
  ref_free(&tests);
  return status;
}

/* Found where a sorted list would have it. */
static void decompose_isin(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *elements = op_tensor(c, 0), *tests = op_tensor(c, 1), *sorted, *order;
  bool invert = op_bool(c, 3);
  if (!tests->numel) {
    outs[0] = fx_full(s, elements->sizes, (uint32_t)elements->ndim, graft_scalar_bool(invert), GRAFT_BOOL, c->device);
    return;
  }
  fx_sort(s, fx_reshape(s, tests, 1, &tests->numel), 0, false, &sorted, &order);
  graft_tensor *flat = fx_reshape(s, elements, 1, &elements->numel);
  graft_tensor *at = fx_searchsorted_Tensor(s, sorted, flat, false, false, NULL, NULL);
  graft_tensor *last = fx_full(s, (int64_t[]){0}, 0, graft_scalar_int(tests->numel - 1), GRAFT_I64, c->device);
  graft_tensor *there = fx_index_select(s, sorted, 0, fx_minimum(s, at, last));
  graft_tensor *found = (invert ? fx_ne_Tensor : fx_eq_Tensor)(s, there, flat);
  outs[0] = fx_reshape(s, found, elements->ndim, elements->sizes);
}

/* --- _unique2(self, sorted, return_inverse, return_counts): sorted in any case --- */

static graft_status infer_unique(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t none = 0;
  if (dt_is_complex(self->dtype) || dt_is_float8(self->dtype))
    return op_refuse_dtype(c, 0, "a real dtype, which has an order");
  c->dynamic = c->decompose_only = true;
  c->compute = self->dtype;
  op_out(c, 0, self->dtype, 1, &self->numel);
  if (op_bool(c, 2))
    op_out(c, 1, GRAFT_I64, self->ndim, self->sizes);
  else
    op_out(c, 1, GRAFT_I64, 1, &none);
  op_out(c, 2, GRAFT_I64, 1, op_bool(c, 3) ? &self->numel : &none);
  return GRAFT_OK;
}

static graft_tensor *nothing(fx *s, const op_call *c) {
  return fx_full(s, (int64_t[]){0}, 1, graft_scalar_int(0), GRAFT_I64, c->device);
}

/* Sorted, an element is new where it differs from the one before; how many were new until then is its number. */
static void decompose_unique(fx *s, const op_call *c, graft_tensor **outs) {
  graft_tensor *self = op_tensor(c, 0), *sorted, *order;
  int64_t n = self->numel, one = 1, but_last = n - 1;
  outs[1] = outs[2] = NULL;
  if (!n) {
    outs[0] = fx_reshape(s, self, 1, &n);
    outs[1] = op_bool(c, 2) ? fx_full(s, self->sizes, (uint32_t)self->ndim, graft_scalar_int(0), GRAFT_I64, c->device)
                            : nothing(s, c);
    outs[2] = nothing(s, c);
    return;
  }
  fx_sort(s, fx_reshape(s, self, 1, &n), 0, false, &sorted, &order);
  graft_tensor *later = fx_slice_Tensor(s, sorted, 0, &one, NULL, 1),
               *before = fx_slice_Tensor(s, sorted, 0, NULL, &but_last, 1);
  graft_tensor *first = fx_full(s, &one, 1, graft_scalar_bool(true), GRAFT_BOOL, c->device);
  graft_tensor *fresh = fx_cat(s, (graft_tensor *[]){first, fx_ne_Tensor(s, later, before)}, 2, 0);
  outs[0] = fx_masked_select(s, sorted, fresh);
  if (op_bool(c, 2)) {
    graft_tensor *number =
        fx_add_Scalar(s, fx_cumsum(s, fresh, 0, GRAFT_I64), graft_scalar_int(-1), graft_scalar_int(1));
    outs[1] = fx_reshape(s, fx_scatter_src(s, fx_zeros_like(s, number), 0, order, number), self->ndim, self->sizes);
  } else {
    outs[1] = nothing(s, c);
  }
  if (op_bool(c, 3)) {
    graft_tensor *starts = fx_select_int(s, fx_nonzero(s, fresh), 1, 0);
    graft_tensor *end = fx_full(s, &one, 1, graft_scalar_int(n), GRAFT_I64, c->device);
    graft_tensor *ends = fx_cat(s, (graft_tensor *[]){fx_slice_Tensor(s, starts, 0, &one, NULL, 1), end}, 2, 0);
    outs[2] = fx_sub(s, ends, starts);
  } else {
    outs[2] = nothing(s, c);
  }
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_SORT,
     .roles = "v",
     .infer = infer_sort,
     .decompose = decompose_sort,
     .vjp = vjp_sort,
     .saves = OP_SAVE_OUT(1),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(sort)},
    {.op_id = GRAFT_OP_SORT_STABLE,
     .roles = "v",
     .infer = infer_sort_stable,
     .vjp = vjp_sort_stable,
     .saves = OP_SAVE_OUT(1),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(sort_stable)},
    {.op_id = GRAFT_OP_TOPK,
     .roles = "v",
     .infer = infer_topk,
     .decompose = decompose_topk,
     .vjp = vjp_topk,
     .saves = OP_SAVE_OUT(1),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(topk)},
    {.op_id = GRAFT_OP_SEARCHSORTED_TENSOR,
     .roles = "vvk",
     .infer = infer_searchsorted,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(searchsorted_Tensor)},
    {.op_id = GRAFT_OP_BUCKETIZE_TENSOR,
     .roles = "vv",
     .infer = infer_bucketize,
     .decompose = decompose_bucketize,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(bucketize_Tensor)},
    {.op_id = GRAFT_OP_ISIN_TENSOR_TENSOR,
     .roles = "vv",
     .infer = infer_isin,
     .decompose = decompose_isin,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT,
     .reference = OP_REF(isin_Tensor_Tensor)},
    {.op_id = GRAFT_OP_UNIQUE2,
     .roles = "v",
     .infer = infer_unique,
     .decompose = decompose_unique,
     .flags = OP_NO_WIDEN},
};
OP_TABLE(sorting, defs)
