/* Sorting: NaN counts as larger than every number, in both directions. */
#include <math.h>

#include "ops/sorting/sorting.h"

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status infer_sorted(op_call *c, int dim_arg) {
  const graft_tensor *self = op_tensor(c, ARG_sort_self);
  int64_t dim = op_int(c, dim_arg);
  graft_status status = op_wrap_dim(c, &dim, self->ndim);
  if (status) return status;
  if (dt_is_complex(self->dtype) || (dt_is_float8(self->dtype) && self->ndim))
    return op_refuse(c, ARG_sort_self, "a real dtype, which has an order");
  op_set_int(c, dim_arg, dim);
  c->compute = self->dtype;
  op_out_like(c, OUT_sort_values, self->dtype, self);
  op_out_like(c, OUT_sort_indices, GRAFT_I64, self);
  return GRAFT_OK;
}

static graft_status infer_sort(op_call *c) {
  return infer_sorted(c, ARG_sort_dim);
}
static graft_status infer_sort_stable(op_call *c) {
  return infer_sorted(c, ARG_sort_stable_dim);
}

/* Of ops that keep some of self along dim: the results have size `kept` there, and where that is negative, they lack
 * dim; k is at least `least`. */
static graft_status infer_some(op_call *c, int64_t kept, int64_t least) {
  const in_kthvalue in = in_kthvalue_of(c->args); /* self, k and dim stand in the same places in all of them */
  int64_t dim = in.dim, sizes[GRAFT_MAX_DIMS];
  int32_t ndim = 0;
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (status) return status;
  if (dt_is_complex(in.self->dtype) || in.self->dtype == GRAFT_BOOL)
    return op_refuse(c, ARG_topk_self, "a real dtype other than bool");
  int64_t size = in.self->ndim ? in.self->sizes[dim] : 1;
  if (in.k < least || in.k > size) {
    return op_error(c, "k is %lld; expected %lld to %lld, the size of dim %lld of self %s", (long long)in.k,
                    (long long)least, (long long)size, (long long)dim, op_show(c, ARG_topk_self));
  }
  for (int32_t i = 0; i < in.self->ndim; i++) {
    if (i != dim || kept >= 0) sizes[ndim++] = i == dim ? kept : in.self->sizes[i];
  }
  op_set_int(c, ARG_topk_dim, dim);
  c->compute = in.self->dtype;
  op_out(c, OUT_topk_values, in.self->dtype, ndim, sizes);
  op_out(c, OUT_topk_indices, GRAFT_I64, ndim, sizes);
  return GRAFT_OK;
}

static graft_status infer_topk(op_call *c) {
  return infer_some(c, in_topk_of(c->args).k, 0);
}

static graft_status infer_kthvalue(op_call *c) {
  return infer_some(c, in_kthvalue_of(c->args).keepdim ? 1 : -1, 1);
}

/* --- kernels --- */

static int ascending(const void *a, const void *b) {
  const srt_item *x = a, *y = b;
  bool x_nan = isnan(x->value), y_nan = isnan(y->value);
  if (x_nan != y_nan) return x_nan ? 1 : -1;
  if (x->value < y->value) return -1;
  if (x->value > y->value) return 1;
  return x->index < y->index ? -1 : x->index > y->index; /* which makes it stable */
}

static int descending(const void *a, const void *b) {
  const srt_item *x = a, *y = b;
  bool x_nan = isnan(x->value), y_nan = isnan(y->value);
  if (x_nan != y_nan) return x_nan ? -1 : 1;
  if (x->value > y->value) return -1;
  if (x->value < y->value) return 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

void srt_line(srt_item *line, int64_t n, bool down) {
  qsort(line, (size_t)n, sizeof *line, down ? descending : ascending);
}

/* k of each line along dim, in order, behind the first `skip`. */
static graft_status sort_lines(const graft_tensor_desc *self, int64_t dim, bool down, int64_t skip, int64_t k,
                               const graft_tensor_desc *values, const graft_tensor_desc *indices) {
  ref_split s = ref_split_at(self, dim);
  REF_OWNED ref_array x = ref_read(self), y = ref_new(s.outer * k * s.inner, false), at = ref_new(y.count, false);
  srt_item *line = ref_zeros(s.size, sizeof *line);
  graft_status status = x.re && y.re && at.re && line ? GRAFT_OK : ref_no_memory();
  for (int64_t l = 0; !status && l < s.outer * s.inner; l++) {
    int64_t first = l / s.inner * s.size * s.inner + l % s.inner, to = l / s.inner * k * s.inner + l % s.inner;
    for (int64_t i = 0; i < s.size; i++) line[i] = (srt_item){x.re[first + i * s.inner], i};
    srt_line(line, s.size, down);
    for (int64_t i = 0; i < k; i++) {
      y.re[to + i * s.inner] = line[skip + i].value;
      at.re[to + i * s.inner] = (ref_real)line[skip + i].index;
    }
  }
  if (!status) ref_write(values, &y);
  if (!status) ref_write(indices, &at);
  free(line);
  return status;
}

graft_status kernel_sort_stable(const graft_exec *exec, const graft_args_sort_stable *a) {
  return sort_lines(a->self, a->dim, a->descending, 0, ref_split_at(a->self, a->dim).size, a->values, a->indices);
}

graft_status kernel_sort(const graft_exec *exec, const graft_args_sort *a) {
  return sort_lines(a->self, a->dim, a->descending, 0, ref_split_at(a->self, a->dim).size, a->values, a->indices);
}

graft_status kernel_topk(const graft_exec *exec, const graft_args_topk *a) {
  if (!ref_numel(a->values)) return GRAFT_OK;
  return sort_lines(a->self, a->dim, a->largest, 0, a->self->dl.ndim ? a->k : 1, a->values, a->indices);
}

graft_status kernel_kthvalue(const graft_exec *exec, const graft_args_kthvalue *a) {
  return sort_lines(a->self, a->dim, false, a->k - 1, 1, a->values, a->indices);
}

/* --- decompositions --- */

static void decompose_sort(fx *s, const op_call *c, graft_tensor **outs) {
  const in_sort in = in_sort_of(c->args);
  fx_sort_stable(s, in.self, &(const bool){true}, in.dim, in.descending, &outs[OUT_sort_values],
                 &outs[OUT_sort_indices]);
}

static void decompose_topk(fx *s, const op_call *c, graft_tensor **outs) {
  const in_topk in = in_topk_of(c->args);
  int64_t k = in.k;
  fx_sort(s, in.self, in.dim, in.largest, &outs[OUT_topk_values], &outs[OUT_topk_indices]);
  for (int i = 0; i < 2 && in.self->ndim; i++) outs[i] = fx_slice_Tensor(s, outs[i], in.dim, NULL, &k, 1);
}

static void decompose_kthvalue(fx *s, const op_call *c, graft_tensor **outs) {
  const in_kthvalue in = in_kthvalue_of(c->args);
  fx_sort(s, in.self, in.dim, false, &outs[OUT_kthvalue_values], &outs[OUT_kthvalue_indices]);
  for (int i = 0; i < 2 && in.self->ndim; i++) {
    outs[i] = fx_select_int(s, outs[i], in.dim, in.k - 1);
    if (in.keepdim) outs[i] = fx_unsqueeze(s, outs[i], in.dim);
  }
}

/* --- gradients: each value's goes back to where it was --- */

static void back(op_vjp *v, int dim_arg) {
  graft_tensor *self = vjp_arg(v, ARG_sort_self);
  v->results[ARG_sort_self] =
      fx_unpick(v->s, v->g[OUT_sort_values], v->outs[OUT_sort_indices], v->args[dim_arg].as.i, self->ndim, self->sizes);
}

static void vjp_sort(op_vjp *v) {
  back(v, ARG_sort_dim);
}
static void vjp_sort_stable(op_vjp *v) {
  back(v, ARG_sort_stable_dim);
}
static void vjp_topk(op_vjp *v) {
  back(v, ARG_topk_dim);
}
static void vjp_kthvalue(op_vjp *v) {
  back(v, ARG_kthvalue_dim);
}

/* --- searchsorted, bucketize --- */

static graft_status check_search(op_call *c, int sequence_arg, int values_arg, bool out_int32) {
  const graft_tensor *sequence = op_tensor(c, sequence_arg), *values = op_tensor(c, values_arg);
  bool fits = sequence->ndim == 1 || (sequence->ndim == values->ndim && sequence->ndim);
  for (int32_t i = 0; fits && sequence->ndim != 1 && i < sequence->ndim - 1; i++) {
    fits = sequence->sizes[i] == values->sizes[i];
  }
  if (!fits)
    return op_error(c, "boundaries must have rank 1, or the leading dims of the values (%s)", op_show_tensors(c));
  graft_dtype dtype = op_promote(c, ARG_searchsorted_Tensor_sorted_sequence, ARG_searchsorted_Tensor_self);
  if (!dtype || dt_is_complex(dtype) || dt_is_float8(dtype) || dtype == GRAFT_BOOL) {
    return op_error(c, "%s; expected real dtypes other than bool", op_show_tensors(c));
  }
  if (out_int32 && sequence->ndim && sequence->sizes[sequence->ndim - 1] >= INT32_MAX) {
    return op_error(c, "i32 can't hold the places of %s", op_show(c, sequence_arg));
  }
  c->compute = dtype;
  op_out(c, OUT, out_int32 ? GRAFT_I32 : GRAFT_I64, values->ndim, values->sizes);
  return GRAFT_OK;
}

static graft_status infer_searchsorted(op_call *c) {
  const in_searchsorted_Tensor in = in_searchsorted_Tensor_of(c->args);
  if (in.side && in.side[0] == 'l' && in.right) return op_error(c, "side is 'left' and right is true");
  if (in.sorter) {
    if (!tns_same_sizes(in.sorter, in.sorted_sequence))
      return op_error(c, "sorter must have the shape of sorted_sequence (%s)", op_show_tensors(c));
    graft_status status = op_check_dtype(c, ARG_searchsorted_Tensor_sorter, GRAFT_I64);
    if (status) return status;
  }
  c->args[ARG_searchsorted_Tensor_right] =
      graft_value_bool(in.right || (in.side && in.side[0] == 'r')); /* says it all */
  return check_search(c, ARG_searchsorted_Tensor_sorted_sequence, ARG_searchsorted_Tensor_self, in.out_int32);
}

static graft_status infer_bucketize(op_call *c) {
  const in_bucketize_Tensor in = in_bucketize_Tensor_of(c->args);
  if (in.boundaries->ndim != 1) return op_refuse(c, ARG_bucketize_Tensor_boundaries, "rank 1");
  return check_search(c, ARG_bucketize_Tensor_boundaries, ARG_bucketize_Tensor_self, in.out_int32);
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
  REF_OWNED ref_array x = ref_read(values), s = ref_read(sequence), order = ref_read(sorter);
  if (!(x.re && s.re && (order.re || !sorter))) return ref_no_memory();
  int64_t n = sequence->dl.shape[sequence->dl.ndim - 1],
          per_row = values->dl.ndim ? values->dl.shape[values->dl.ndim - 1] : 1;
  for (int64_t i = 0; i < x.count; i++) {
    int64_t row = sequence->dl.ndim == 1 ? 0 : i / per_row * n;
    x.re[i] = (ref_real)place_of(s.re + row, order.re ? order.re + row : NULL, n, x.re[i], right);
  }
  ref_write(out, &x);
  return GRAFT_OK;
}

graft_status kernel_searchsorted_Tensor(const graft_exec *exec, const graft_args_searchsorted_Tensor *a) {
  return search_all(a->sorted_sequence, a->self, a->sorter, a->right, a->out);
}

graft_status kernel_bucketize_Tensor(const graft_exec *exec, const graft_args_bucketize_Tensor *a) {
  return search_all(a->boundaries, a->self, NULL, a->right, a->out);
}

static void decompose_bucketize(fx *s, const op_call *c, graft_tensor **outs) {
  const in_bucketize_Tensor in = in_bucketize_Tensor_of(c->args);
  outs[OUT] = fx_searchsorted_Tensor(s, in.boundaries, in.self, in.out_int32, in.right, NULL, NULL);
}

/* --- isin --- */

static graft_status infer_isin(op_call *c) {
  const graft_tensor *elements = op_tensor(c, ARG_isin_Tensor_Tensor_elements);
  for (int i = 0; i < 2; i++) {
    graft_dtype dtype = op_tensor(c, i)->dtype;
    if (dt_is_complex(dtype) || dtype == GRAFT_BOOL || dt_is_float8(dtype)) {
      return op_refuse(c, i, "a real dtype other than bool");
    }
  }
  c->compute = op_promote(c, ARG_isin_Tensor_Tensor_elements, ARG_isin_Tensor_Tensor_test_elements);
  if (!c->compute) return op_error(c, "the dtypes have none in common (%s)", op_show_tensors(c));
  op_out(c, OUT, GRAFT_BOOL, elements->ndim, elements->sizes);
  return GRAFT_OK;
}

graft_status kernel_isin_Tensor_Tensor(const graft_exec *exec, const graft_args_isin_Tensor_Tensor *a) {
  REF_OWNED ref_array x = ref_read(a->elements), tests = ref_read(a->test_elements);
  if (!(x.re && tests.re)) return ref_no_memory();
  for (int64_t i = 0; i < x.count; i++) {
    bool found = false;
    for (int64_t k = 0; k < tests.count && !found; k++) found = x.re[i] == tests.re[k];
    x.re[i] = found != (a->invert != 0);
  }
  ref_write(a->out, &x);
  return GRAFT_OK;
}

/* Found where a sorted list would have it. */
static void decompose_isin(fx *s, const op_call *c, graft_tensor **outs) {
  const in_isin_Tensor_Tensor in = in_isin_Tensor_Tensor_of(c->args);
  graft_tensor *elements = in.elements, *tests = in.test_elements, *sorted, *order;
  if (!tests->numel) {
    outs[OUT] =
        fx_full(s, elements->sizes, (uint32_t)elements->ndim, graft_scalar_bool(in.invert), GRAFT_BOOL, c->device);
    return;
  }
  fx_sort(s, fx_reshape(s, tests, 1, &tests->numel), 0, false, &sorted, &order);
  graft_tensor *flat = fx_reshape(s, elements, 1, &elements->numel), *numbers = sorted;
  if (dt_is_float(sorted->dtype)) { /* NaNs come last, and no value is told to lie before one */
    graft_value most = fx_tensor(fx_filled(s, sorted, 0, NULL, (double)INFINITY, sorted->dtype));
    numbers = fx_where(s, fx_ne_Tensor(s, sorted, sorted), most, fx_tensor(sorted));
  }
  graft_tensor *at = fx_searchsorted_Tensor(s, numbers, flat, false, false, NULL, NULL);
  graft_tensor *last = fx_full(s, (int64_t[]){0}, 0, graft_scalar_int(tests->numel - 1), GRAFT_I64, c->device);
  graft_tensor *there = fx_index_select(s, sorted, 0, fx_minimum(s, at, last));
  graft_tensor *found = (in.invert ? fx_ne_Tensor : fx_eq_Tensor)(s, there, flat);
  outs[OUT] = fx_reshape(s, found, elements->ndim, elements->sizes);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(sort),
     .roles = "v",
     .infer = infer_sort,
     .decompose = decompose_sort,
     .vjp = vjp_sort,
     .saves = OP_SAVE_OUT(sort, indices),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(sort_stable),
     .roles = "v",
     .infer = infer_sort_stable,
     .vjp = vjp_sort_stable,
     .saves = OP_SAVE_OUT(sort_stable, indices),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(topk),
     .roles = "v",
     .infer = infer_topk,
     .decompose = decompose_topk,
     .vjp = vjp_topk,
     .saves = OP_SAVE_OUT(topk, indices),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(kthvalue),
     .roles = "v",
     .infer = infer_kthvalue,
     .decompose = decompose_kthvalue,
     .vjp = vjp_kthvalue,
     .saves = OP_SAVE_OUT(kthvalue, indices),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(searchsorted_Tensor),
     .roles = "vvk",
     .infer = infer_searchsorted,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(bucketize_Tensor),
     .roles = "vv",
     .infer = infer_bucketize,
     .decompose = decompose_bucketize,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
    {.op_id = OP_WITH_KERNEL(isin_Tensor_Tensor),
     .roles = "vv",
     .infer = infer_isin,
     .decompose = decompose_isin,
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
};
OP_TABLE(sorting, defs)
