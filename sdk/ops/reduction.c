/* Reductions over dims: rules, reference kernels, gradients. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

/* --- rules --- */

/* The shape without the dims in mask, or with size 1 there. */
static int32_t reduced_sizes(const graft_tensor *t, uint32_t mask, bool keepdim, int64_t *sizes) {
  int32_t ndim = 0;
  for (int32_t i = 0; i < t->ndim; i++) {
    if (!(mask >> i & 1)) sizes[ndim++] = t->sizes[i];
    else if (keepdim) sizes[ndim++] = 1;
  }
  return ndim;
}

/* A reduction's result is laid out as its input is, as TensorIterator does it. */
static void out_reduced(op_call *c, int n, graft_dtype dtype, uint32_t mask, bool keepdim) {
  const graft_tensor *self = op_tensor(c, 0);
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t ndim = reduced_sizes(self, mask, keepdim, sizes);
  op_out(c, n, dtype, ndim, sizes);
}

/* sum.dim_IntList(self, dim, keepdim, dtype) */
static graft_status infer_sum(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  graft_dtype dtype = op_dtype(c, 3);
  if (!dtype) dtype = dt_is_integral(self->dtype, true) ? GRAFT_I64 : self->dtype;
  uint32_t mask;
  graft_status status = op_wrap_dims(c, 1, self->ndim, true, &mask);
  if (status) return status;
  c->compute = dtype;
  op_set_dtype(c, 3, dtype);
  out_reduced(c, 0, dtype, mask, op_bool(c, 2));
  return GRAFT_OK;
}

/* --- kernels --- */

/* Visits the reduced elements of each output element: gathers them into `line` in row-major order. */
typedef struct ref_lines {
  int64_t outputs, length;
  int64_t *starts, *steps; /* element offsets into the dense input: of each output, of each reduced element */
} ref_lines;

static void fill_offsets(int64_t *offsets, const graft_dl_tensor *t, uint32_t mask, bool reduced) {
  int64_t strides[GRAFT_MAX_DIMS], index[GRAFT_MAX_DIMS] = {0};
  tns_contiguous_strides(t->ndim, t->shape, strides);
  int64_t offset = 0;
  for (int64_t n = 0;; n++) {
    offsets[n] = offset;
    int32_t i = t->ndim - 1;
    for (; i >= 0; i--) {
      if ((mask >> i & 1) != (unsigned)reduced) continue;
      offset += strides[i];
      if (++index[i] < t->shape[i]) break;
      offset -= strides[i] * t->shape[i];
      index[i] = 0;
    }
    if (i < 0) return;
  }
}

static bool lines_make(ref_lines *l, const graft_dl_tensor *t, uint32_t mask) {
  l->outputs = l->length = 1;
  for (int32_t i = 0; i < t->ndim; i++) *(mask >> i & 1 ? &l->length : &l->outputs) *= t->shape[i];
  l->starts = calloc((size_t)l->outputs + 1, sizeof *l->starts);
  l->steps = calloc((size_t)l->length + 1, sizeof *l->steps);
  if (!l->starts || !l->steps) return false;
  if (l->outputs) fill_offsets(l->starts, t, mask, false);
  if (l->length) fill_offsets(l->steps, t, mask, true);
  return true;
}

static void lines_free(ref_lines *l) {
  free(l->starts);
  free(l->steps);
}

static uint32_t mask_of(graft_int_list dims) {
  uint32_t mask = 0;
  for (uint64_t i = 0; i < dims.count; i++) mask |= 1u << dims.items[i];
  return mask;
}

typedef ref_real (*line_fn)(graft_dtype dtype, const ref_real *line, int64_t length);

static ref_real line_sum(graft_dtype dtype, const ref_real *line, int64_t length) { return ref_sum(dtype, line, 1, length); }

static void reduce_part(const ref_lines *l, const ref_real *values, ref_real *line, line_fn fn, graft_dtype dtype,
                        ref_real *out) {
  for (int64_t o = 0; o < l->outputs; o++) {
    for (int64_t i = 0; i < l->length; i++) line[i] = values[l->starts[o] + l->steps[i]];
    out[o] = fn(dtype, line, l->length);
  }
}

static graft_status reduce(const graft_tensor_desc *self, const graft_tensor_desc *out, uint32_t mask, line_fn fn) {
  ref_lines l;
  ref_array x = ref_read(self), y = ref_new(ref_numel(out), dt_is_complex(out->dl.dtype));
  graft_status status = ref_no_memory();
  if (x.re && y.re && lines_make(&l, &self->dl, mask)) {
    ref_array line = ref_new(l.length, false);
    if (line.re) {
      reduce_part(&l, x.re, line.re, fn, out->dl.dtype, y.re);
      if (x.im && y.im) reduce_part(&l, x.im, line.re, fn, out->dl.dtype, y.im);
      ref_write(out, &y);
      status = GRAFT_OK;
    }
    ref_free(&line);
    lines_free(&l);
  }
  ref_free(&x);
  ref_free(&y);
  return status;
}

static graft_status ref_sum_dim_IntList(const graft_exec *exec, const graft_args_sum_dim_IntList *a) {
  (void)exec;
  return reduce(a->self, a->out, mask_of(a->dim), line_sum);
}

/* --- gradients --- */

static uint32_t vjp_mask(const op_vjp *v, int arg) {
  return mask_of((graft_int_list){v->args[arg].as.ints, v->args[arg].count});
}

static void vjp_sum(op_vjp *v) {
  graft_tensor *self = vjp_arg(v, 0);
  v->results[0] = fx_unreduce(v->s, v->g[0], vjp_mask(v, 1), v->args[2].as.i != 0, self->ndim, self->sizes);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_SUM_DIM_INTLIST, .roles = "v", .infer = infer_sum, .vjp = vjp_sum,
     .reference = OP_REF(sum_dim_IntList)},
};
OP_FAMILY_END(reduction, defs)
