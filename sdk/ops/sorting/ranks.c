/* median, nanmedian, mode: values that are found once all are in order. NaN counts as larger than every number. */
#include "ops/sorting/sorting.h"

#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status infer_median(op_call *c) {
  const in_median in = in_median_of(c->args);
  bool ordered = !dt_is_complex(in.self->dtype) && !dt_is_float8(in.self->dtype) && in.self->dtype != GRAFT_BOOL;
  if (!ordered && in.self->numel) return op_refuse(c, ARG_median_self, "a real dtype other than bool");
  c->compute = in.self->dtype;
  op_out(c, OUT, in.self->dtype, 0, NULL);
  return GRAFT_OK;
}

static graft_status infer_mode(op_call *c) {
  const in_mode in = in_mode_of(c->args);
  int64_t dim = in.dim, sizes[GRAFT_MAX_DIMS];
  int32_t ndim = 0;
  graft_status status = op_wrap_dim(c, &dim, in.self->ndim);
  if (status) return status;
  if (in.self->ndim && !in.self->sizes[dim])
    return op_error(c, "dim %lld of self %s has no element to choose from", (long long)dim, op_show(c, ARG_mode_self));
  if ((dt_is_complex(in.self->dtype) || dt_is_float8(in.self->dtype)) && in.self->numel && in.self->ndim)
    return op_refuse(c, ARG_mode_self, "a real dtype, which has an order");
  for (int32_t i = 0; i < in.self->ndim; i++) {
    if (i != dim || in.keepdim) sizes[ndim++] = i == dim ? 1 : in.self->sizes[i];
  }
  op_set_int(c, ARG_mode_dim, dim);
  c->compute = in.self->dtype;
  op_out(c, OUT_mode_values, in.self->dtype, ndim, sizes);
  op_out(c, OUT_mode_indices, GRAFT_I64, ndim, sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

/* Which of n > 0 elements in order it is. */
typedef int64_t (*pick_fn)(const srt_item *line, int64_t n);

/* The lower of the two in the middle; a NaN where there is one. */
static int64_t pick_median(const srt_item *line, int64_t n) {
  return isnan(line[n - 1].value) ? n - 1 : (n - 1) / 2;
}

static int64_t pick_nanmedian(const srt_item *line, int64_t n) {
  int64_t numbers = n;
  while (numbers && isnan(line[numbers - 1].value)) numbers--;
  return numbers ? (numbers - 1) / 2 : 0;
}

/* The last of the first longest run of equals; a NaN equals nothing. */
static int64_t pick_mode(const srt_item *line, int64_t n) {
  int64_t best = 0, most = 0, run = 0;
  for (int64_t i = 0; i < n; i++) {
    run = i && line[i].value == line[i - 1].value ? run + 1 : 1;
    if (run > most) most = run, best = i;
  }
  return best;
}

static graft_status pick_lines(const ref_array *x, ref_split s, pick_fn pick, const graft_tensor_desc *values,
                               const graft_tensor_desc *indices) {
  REF_OWNED ref_array y = ref_new(s.outer * s.inner, x->im != NULL), at = ref_new(s.outer * s.inner, false);
  srt_item *line = ref_zeros(s.size, sizeof *line);
  graft_status status = x->re && y.re && at.re && line ? GRAFT_OK : ref_no_memory();
  for (int64_t l = 0; !status && l < y.count; l++) {
    int64_t first = l / s.inner * s.size * s.inner + l % s.inner;
    for (int64_t i = 0; i < s.size; i++) line[i] = (srt_item){x->re[first + i * s.inner], i};
    srt_line(line, s.size, false);
    int64_t rank = s.size ? pick(line, s.size) : 0;
    y.re[l] = s.size ? line[rank].value : NAN; /* of nothing */
    at.re[l] = (ref_real)line[rank].index;
    if (y.im && s.size) y.im[l] = x->im[first + line[rank].index * s.inner]; /* of a tensor without dims: it alone */
  }
  if (!status) ref_write(values, &y);
  if (!status) ref_write(indices, &at);
  free(line);
  return status;
}

static graft_status median_of(const graft_tensor_desc *self, pick_fn pick, const graft_tensor_desc *out) {
  REF_OWNED ref_array x = ref_read(self);
  return pick_lines(&x, (ref_split){1, x.count, 1}, pick, out, NULL);
}

graft_status kernel_median(const graft_exec *exec, const graft_args_median *a) {
  return median_of(a->self, pick_median, a->out);
}

graft_status kernel_nanmedian(const graft_exec *exec, const graft_args_nanmedian *a) {
  return median_of(a->self, pick_nanmedian, a->out);
}

graft_status kernel_mode(const graft_exec *exec, const graft_args_mode *a) {
  REF_OWNED ref_array x = ref_read(a->self);
  return pick_lines(&x, ref_split_at(a->self, a->dim), pick_mode, a->values, a->indices);
}

/* --- decomposition --- */

/* In order, NaN are last: the one in the middle of the numbers, or where these are asked for the last. */
static void decompose_median(fx *s, const op_call *c, graft_tensor **outs) {
  const in_median in = in_median_of(c->args);
  graft_tensor *sorted, *order, *at;
  int64_t n = in.self->numel, one = 1, zero = 0;
  if (!n) {
    outs[OUT] = fx_cast(s, fx_full(s, &zero, 0, graft_scalar_float(NAN), GRAFT_F64, c->device), in.self->dtype);
    return;
  }
  fx_sort(s, fx_reshape(s, in.self, 1, &n), 0, false, &sorted, &order);
  if (!dt_is_float(in.self->dtype)) {
    outs[OUT] = fx_select_int(s, sorted, 0, (n - 1) / 2);
    return;
  }
  graft_tensor *nans = fx_cast(s, fx_isnan(s, sorted), GRAFT_I64);
  const graft_value count = fx_tensor(fx_sum(s, nans, 1, true)), most = fx_int(n - 1), least = fx_int(0);
  if (c->schema->id == GRAFT_OP_MEDIAN) {
    graft_tensor *some = fx_ne_Scalar(s, count.as.tensor, graft_scalar_int(0));
    at = fx_where(s, some, most, fx_int((n - 1) / 2));
  } else {
    graft_tensor *last = fx_binary(s, GRAFT_OP_SUB_TENSOR, most, count);
    graft_tensor *numbers = fx_where(s, fx_lt_Scalar(s, last, graft_scalar_int(0)), least, fx_tensor(last));
    at = fx_divide(s, fx_tensor(numbers), fx_int(2), "floor");
  }
  outs[OUT] = fx_reshape(s, fx_index_select(s, sorted, 0, fx_reshape(s, at, 1, &one)), 0, &zero);
}

/* --- gradients --- */

/* The elements equal to it share its gradient; a NaN equals NaN. */
static void vjp_median(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, ARG_median_self), *out = v->outs[OUT];
  graft_tensor *same = fx_logical_or(v->s, fx_eq_Tensor(v->s, self, out),
                                     fx_logical_and(v->s, fx_isnan(v->s, self), fx_isnan(v->s, out)));
  graft_tensor *share = fx_cast(v->s, same, v->g[OUT]->dtype);
  if (!share) return;
  graft_tensor *count = fx_sum(v->s, share, share->ndim ? (1u << share->ndim) - 1 : 0, false);
  v->results[ARG_median_self] = fx_mul(v->s, share, fx_div(v->s, v->g[OUT], count));
}

static void vjp_mode(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, ARG_mode_self);
  v->results[ARG_mode_self] = fx_unpick(v->s, v->g[OUT_mode_values], v->outs[OUT_mode_indices],
                                        v->args[ARG_mode_dim].as.i, self->ndim, self->sizes);
}

#define MEDIAN(op)                                                                                   \
  {                                                                                                  \
    .op_id = OP_WITH_KERNEL(op), .roles = "v", .infer = infer_median, .decompose = decompose_median, \
    .vjp = vjp_median, .saves = OP_SAVE_ARG(op, self) | OP_SAVE_OUT(op, out), .flags = OP_NO_WIDEN   \
  }

static const op_def defs[] = {
    MEDIAN(median),
    MEDIAN(nanmedian),
    {.op_id = OP_WITH_KERNEL(mode),
     .roles = "v",
     .infer = infer_mode,
     .vjp = vjp_mode,
     .saves = OP_SAVE_OUT(mode, indices),
     .flags = OP_NO_WIDEN | OP_EXACT_OUT},
};
OP_TABLE(sorting_ranks, defs)
