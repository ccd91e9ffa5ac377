/* Matrix products: rules, reference kernels, gradients. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

/* --- rules --- */

static graft_status same_dtype(op_call *c, int first, int second) {
  if (op_tensor(c, first)->dtype == op_tensor(c, second)->dtype) return GRAFT_OK;
  return op_error(c, "%s and %s differ in dtype (%s)", c->schema->args[first].name, c->schema->args[second].name,
                  op_show_tensors(c));
}

/* mm(self, mat2) */
static graft_status infer_mm(op_call *c) {
  const graft_tensor *a = op_tensor(c, 0), *b = op_tensor(c, 1);
  if (a->ndim != 2 || b->ndim != 2) return op_error(c, "expected two matrices, got %s", op_show_tensors(c));
  if (a->sizes[1] != b->sizes[0]) return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  graft_status status = same_dtype(c, 0, 1);
  if (status) return status;
  c->compute = a->dtype;
  op_out(c, 0, a->dtype, 2, (int64_t[]){a->sizes[0], b->sizes[1]});
  return GRAFT_OK;
}

/* --- kernels --- */

/* out = a b for dense a [n,k] and b [k,m]; complex products by their parts. */
static void product(graft_dtype dtype, int64_t n, int64_t k, int64_t m, const ref_array *a, int64_t a0, const ref_array *b,
                    int64_t b0, ref_array *out, int64_t out0) {
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < m; j++) {
      int64_t row = a0 + i * k, column = b0 + j, at = out0 + i * m + j;
      out->re[at] = ref_dot(dtype, a->re + row, 1, b->re + column, m, k);
      if (!out->im) continue;
      out->re[at] -= ref_dot(dtype, a->im + row, 1, b->im + column, m, k);
      out->im[at] = ref_dot(dtype, a->re + row, 1, b->im + column, m, k) +
                    ref_dot(dtype, a->im + row, 1, b->re + column, m, k);
    }
  }
}

static graft_status ref_mm(const graft_exec *exec, const graft_args_mm *args) {
  (void)exec;
  ref_array a = ref_read(args->self), b = ref_read(args->mat2);
  ref_array out = ref_new(ref_numel(args->out), a.im != NULL);
  graft_status status = a.re && b.re && out.re ? GRAFT_OK : ref_no_memory();
  if (!status) {
    const int64_t *left = args->self->dl.shape, *right = args->mat2->dl.shape;
    product(args->out->dl.dtype, left[0], left[1], right[1], &a, 0, &b, 0, &out, 0);
    ref_write(args->out, &out);
  }
  ref_free(&a);
  ref_free(&b);
  ref_free(&out);
  return status;
}

/* --- gradients --- */

static void vjp_mm(op_vjp *v) {
  if (vjp_needs(v, 0)) v->results[0] = fx_mm(v->s, v->g[0], fx_adjoint(v->s, vjp_arg(v, 1)));
  if (vjp_needs(v, 1)) v->results[1] = fx_mm(v->s, fx_adjoint(v->s, vjp_arg(v, 0)), v->g[0]);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_MM, .roles = "vv", .infer = infer_mm, .vjp = vjp_mm, .saves = OP_SAVE_ARG(0) | OP_SAVE_ARG(1),
     .reference = OP_REF(mm)},
};
OP_FAMILY_END(matmul, defs)
