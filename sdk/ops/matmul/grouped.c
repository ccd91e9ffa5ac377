/* _grouped_mm: products of groups of rows, of columns or of the inner dim, which offsets cut: group g ends before
 * offs[g] and begins where the one before it ends. Of two stacks of matrices each pair is a group. What lies behind the
 * last offset is in no group: 0 in the result. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rule --- */

static graft_status check_offsets(const op_call *c, const in_grouped_mm *in) {
  bool stacks = in->self->ndim == 3 && in->mat2->ndim == 3;
  if (stacks == (in->offs != NULL)) {
    return op_error(c, "offs are %s: %s; expected them where one of the factors is a matrix",
                    in->offs ? "given" : "missing", op_show_tensors(c));
  }
  if (stacks)
    return in->self->sizes[0] == in->mat2->sizes[0] ? GRAFT_OK
                                                    : op_error(c, "the batch sizes differ: %s", op_show_tensors(c));
  graft_status status = op_check_dtype(c, ARG_grouped_mm_offs, GRAFT_I32);
  if (status) return status;
  const graft_tensor *stack = in->self->ndim == 3 ? in->self : in->mat2->ndim == 3 ? in->mat2 : NULL;
  bool fits = in->offs->ndim == 1 && (!stack || stack->sizes[0] == in->offs->sizes[0]);
  return fits ? GRAFT_OK : op_refuse(c, ARG_grouped_mm_offs, "one number for each group");
}

static graft_status infer_grouped(op_call *c) {
  const in_grouped_mm in = in_grouped_mm_of(c->args);
  const graft_tensor *a = in.self, *b = in.mat2;
  bool ranks = (a->ndim == 2 || a->ndim == 3) && (b->ndim == 2 || b->ndim == 3);
  if (!ranks) return op_error(c, "expected matrices or stacks of them, got %s", op_show_tensors(c));
  graft_status status = op_check_floating(c, ARG_grouped_mm_self);
  if (!status) status = op_check_same_dtype(c, ARG_grouped_mm_self, ARG_grouped_mm_mat2);
  if (status) return status;
  if (a->dtype == GRAFT_F64) return op_refuse(c, ARG_grouped_mm_self, "f16, bf16 or f32");
  if (a->sizes[a->ndim - 1] != b->sizes[b->ndim - 2]) {
    return op_error(c, "the inner sizes differ: %s", op_show_tensors(c));
  }
  if (in.bias) return op_refuse(c, ARG_grouped_mm_bias, "none: it is not defined here");
  if (in.out_dtype && in.out_dtype != a->dtype) {
    return op_error(c, "out_dtype is %s; expected that of self, %s", graft_dtype_name(in.out_dtype),
                    graft_dtype_name(a->dtype));
  }
  status = check_offsets(c, &in);
  if (status) return status;
  c->compute = a->dtype;
  int64_t rows = a->sizes[a->ndim - 2], columns = b->sizes[b->ndim - 1];
  if (a->ndim != b->ndim)
    op_out(c, OUT, a->dtype, 2, (int64_t[]){rows, columns});
  else
    op_out(c, OUT, a->dtype, 3, (int64_t[]){in.offs ? in.offs->sizes[0] : a->sizes[0], rows, columns});
  return GRAFT_OK;
}

/* --- kernel --- */

typedef struct grouped {
  int64_t rows, columns, depth; /* of the whole factors' matrices */
  ref_array a, b, y;
  graft_dtype dtype;
} grouped;

/* Part of a group's product: rows, columns and inner places that are its own. */
typedef struct part {
  int64_t group, row, row_end, column, column_end, inner, inner_end;
  bool stacked_a, stacked_b, stacked_out;
} part;

static void multiply_part(grouped *p, const part *g) {
  const ref_real *a = p->a.re + (g->stacked_a ? g->group * p->rows * p->depth : 0);
  const ref_real *b = p->b.re + (g->stacked_b ? g->group * p->depth * p->columns : 0);
  ref_real *y = p->y.re + (g->stacked_out ? g->group * p->rows * p->columns : 0);
  for (int64_t i = g->row; i < g->row_end; i++)
    for (int64_t j = g->column; j < g->column_end; j++)
      y[i * p->columns + j] = ref_dot(p->dtype, a + i * p->depth + g->inner, 1, b + g->inner * p->columns + j,
                                      p->columns, g->inner_end - g->inner);
}

graft_status kernel_grouped_mm(const graft_exec *exec, const graft_args_grouped_mm *args) {
  const graft_dl_tensor *self = &args->self->dl, *mat2 = &args->mat2->dl;
  REF_OWNED ref_array a = ref_read(args->self), b = ref_read(args->mat2), offs = ref_read(args->offs),
                      y = ref_new(ref_numel(args->out), false);
  if (!a.re || !b.re || !y.re || (args->offs && !offs.re)) return ref_no_memory();
  grouped p = {.rows = self->shape[self->ndim - 2],
               .columns = mat2->shape[mat2->ndim - 1],
               .depth = self->shape[self->ndim - 1],
               .a = a,
               .b = b,
               .y = y,
               .dtype = self->dtype};
  bool flat_a = self->ndim == 2, flat_b = mat2->ndim == 2;
  int64_t groups = args->offs ? offs.count : self->shape[0], begin = 0;
  int64_t size = flat_a && flat_b ? p.depth : flat_a ? p.rows : p.columns;
  for (int64_t g = 0; g < groups; g++) {
    int64_t end = args->offs ? (int64_t)offs.re[g] : size;
    if (args->offs && (end < begin || end > size)) {
      return err_about(GRAFT_OUT_OF_RANGE, "aten::_grouped_mm",
                       "offs[%lld] is %lld; expected %lld to %lld: none below the one before, none beyond the size",
                       (long long)g, (long long)end, (long long)begin, (long long)size);
    }
    part all = {g, 0, p.rows, 0, p.columns, 0, p.depth, !flat_a, !flat_b, flat_a == flat_b};
    if (flat_a && flat_b) all.inner = begin, all.inner_end = end;
    if (flat_a && !flat_b) all.row = begin, all.row_end = end;
    if (!flat_a && flat_b) all.column = begin, all.column_end = end;
    multiply_part(&p, &all);
    begin = end;
  }
  ref_write(args->out, &p.y);
  return GRAFT_OK;
}

/* --- gradient --- */

/* Each factor's is a grouped product with the other one, along the dim that is left. */
static void vjp_grouped(op_vjp *v) {
  const in_grouped_mm in = in_grouped_mm_of(v->args);
  fx *s = v->s;
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, ARG_grouped_mm_self)) {
    v->results[ARG_grouped_mm_self] = fx_grouped_mm(s, g, fx_turned(s, in.mat2), in.offs, NULL, GRAFT_DTYPE_NONE);
  }
  if (vjp_needs(v, ARG_grouped_mm_mat2)) {
    v->results[ARG_grouped_mm_mat2] = fx_grouped_mm(s, fx_turned(s, in.self), g, in.offs, NULL, GRAFT_DTYPE_NONE);
  }
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(grouped_mm),
     .roles = "vvkv",
     .infer = infer_grouped,
     .vjp = vjp_grouped,
     .saves = OP_SAVE_ARGS(grouped_mm, self, mat2, offs),
     .flags = OP_NO_WIDEN},
};
OP_TABLE(matmul_grouped, defs)
