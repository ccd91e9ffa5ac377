/* Products with a matrix in CSR form, and sampled at its places: rules, reference kernels, decompositions, gradients.
 * Row r has the elements from crow_indices[r] to crow_indices[r + 1], element j of them stands in column
 * col_indices[j]; columns may come in any order and more than once. Elements before the first row or behind the last
 * belong to no row: a product passes over them, and what is sampled there is 0. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

enum { STARTS = ARG_csr_mm_crow_indices, COLUMNS = ARG_csr_mm_col_indices };
_Static_assert((int)STARTS == (int)ARG_csr_sampled_mm_crow_indices &&
                   (int)COLUMNS == (int)ARG_csr_sampled_mm_col_indices,
               "both ops have the indices at the same place");

/* --- rules --- */

static graft_status check_index(const op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  if (t->dtype != GRAFT_I64 && t->dtype != GRAFT_I32) return op_refuse(c, arg, "i64 or i32");
  return t->ndim == 1 ? GRAFT_OK : op_refuse(c, arg, "one dim");
}

/* What stands for the rest of the matrix: `dense` and `right` have a row for each of its columns. */
static graft_status check_csr(op_call *c, int by_column) {
  const graft_tensor *t = op_tensor(c, by_column);
  graft_status status = check_index(c, STARTS);
  if (!status) status = check_index(c, COLUMNS);
  if (status) return status;
  if (!op_tensor(c, STARTS)->numel) return op_refuse(c, STARTS, "an element more than the matrix has rows");
  if (t->ndim != 2) return op_refuse(c, by_column, "a matrix");
  if (t->dtype == GRAFT_BOOL || dt_is_float8(t->dtype)) return op_refuse(c, by_column, "a dtype with arithmetic");
  if (op_tensor(c, COLUMNS)->numel && !t->sizes[0])
    return op_out_of_range(c, "%s has no rows: %s", c->schema->args[by_column].name, op_show_tensors(c));
  c->compute = t->dtype;
  return GRAFT_OK;
}

static graft_status infer_csr_mm(op_call *c) {
  const in_csr_mm in = in_csr_mm_of(c->args);
  graft_status status = check_csr(c, ARG_csr_mm_dense);
  if (!status) status = op_check_same_dtype(c, ARG_csr_mm_values, ARG_csr_mm_dense);
  if (status) return status;
  if (in.values->ndim != 1 || in.values->numel != in.col_indices->numel) {
    return op_error(c, "expected a value for each column index, got %s", op_show_tensors(c));
  }
  op_out(c, OUT, c->compute, 2, (int64_t[]){in.crow_indices->numel - 1, in.dense->sizes[1]});
  return GRAFT_OK;
}

static graft_status infer_csr_sampled_mm(op_call *c) {
  const in_csr_sampled_mm in = in_csr_sampled_mm_of(c->args);
  graft_status status = check_csr(c, ARG_csr_sampled_mm_right);
  if (!status) status = op_check_same_dtype(c, ARG_csr_sampled_mm_left, ARG_csr_sampled_mm_right);
  if (status) return status;
  if (in.left->ndim != 2 || in.left->sizes[0] != in.crow_indices->numel - 1) {
    return op_error(c, "expected left to have a row for each of the CSR matrix, got %s", op_show_tensors(c));
  }
  if (in.left->sizes[1] != in.right->sizes[1]) {
    return op_error(c, "the rows of left and right differ in size: %s", op_show_tensors(c));
  }
  op_out(c, OUT, c->compute, 1, &in.col_indices->numel);
  return GRAFT_OK;
}

/* --- kernels --- */

typedef struct csr {
  const char *op;
  ref_array starts, columns;
  int64_t rows, width; /* width: how many columns it has */
} csr;

static graft_status check_ranges(const csr *m) {
  for (int64_t row = 0; row <= m->rows; row++) {
    int64_t begin = (int64_t)m->starts.re[row], end = row < m->rows ? (int64_t)m->starts.re[row + 1] : begin;
    if (begin >= 0 && begin <= end && end <= m->columns.count) continue;
    return err_about(GRAFT_OUT_OF_RANGE, m->op,
                     "row %lld has the elements from %lld to %lld; expected them among the %lld there are",
                     (long long)row, (long long)begin, (long long)end, (long long)m->columns.count);
  }
  for (int64_t j = 0; j < m->columns.count; j++) {
    if (m->columns.re[j] >= 0 && m->columns.re[j] < m->width) continue;
    return err_about(GRAFT_OUT_OF_RANGE, m->op, "column index %lld at position %lld is out of range for %lld columns",
                     (long long)m->columns.re[j], (long long)j, (long long)m->width);
  }
  return GRAFT_OK;
}

/* Sets a dot product of two lines of n elements, complex ones by their parts. */
static void set_dot(graft_dtype dtype, ref_array *out, int64_t at, const ref_array *a, int64_t a0, const ref_array *b,
                    int64_t b0, int64_t n) {
  out->re[at] = ref_dot(dtype, a->re + a0, 1, b->re + b0, 1, n);
  if (!out->im) return;
  out->re[at] -= ref_dot(dtype, a->im + a0, 1, b->im + b0, 1, n);
  out->im[at] = ref_dot(dtype, a->re + a0, 1, b->im + b0, 1, n) + ref_dot(dtype, a->im + a0, 1, b->re + b0, 1, n);
}

static void multiply(const csr *m, const ref_array *values, const ref_array *dense, ref_array *line, ref_array *out,
                     graft_dtype dtype, int64_t size) {
  for (int64_t i = 0; i < m->rows * size; i++) {
    int64_t begin = (int64_t)m->starts.re[i / size], end = (int64_t)m->starts.re[i / size + 1];
    for (int64_t j = begin; j < end; j++) ref_take(line, j - begin, dense, (int64_t)m->columns.re[j] * size + i % size);
    set_dot(dtype, out, i, values, begin, line, 0, end - begin);
  }
}

graft_status kernel_csr_mm(const graft_exec *exec, const graft_args_csr_mm *a) {
  REF_OWNED ref_array starts = ref_read(a->crow_indices), columns = ref_read(a->col_indices);
  REF_OWNED ref_array values = ref_read(a->values), dense = ref_read(a->dense);
  bool is_complex = values.im != NULL;
  REF_OWNED ref_array line = ref_new(columns.count, is_complex), out = ref_new(ref_numel(a->out), is_complex);
  if (!starts.re || !columns.re || !values.re || !dense.re || !line.re || !out.re) return ref_no_memory();
  csr m = {"graft::csr_mm", starts, columns, a->out->dl.shape[0], a->dense->dl.shape[0]};
  graft_status status = check_ranges(&m);
  if (status) return status;
  multiply(&m, &values, &dense, &line, &out, a->out->dl.dtype, a->out->dl.shape[1]);
  ref_write(a->out, &out);
  return GRAFT_OK;
}

graft_status kernel_csr_sampled_mm(const graft_exec *exec, const graft_args_csr_sampled_mm *a) {
  REF_OWNED ref_array starts = ref_read(a->crow_indices), columns = ref_read(a->col_indices);
  REF_OWNED ref_array left = ref_read(a->left), right = ref_read(a->right);
  REF_OWNED ref_array out = ref_new(columns.count, left.im != NULL);
  if (!starts.re || !columns.re || !left.re || !right.re || !out.re) return ref_no_memory();
  csr m = {"graft::csr_sampled_mm", starts, columns, a->left->dl.shape[0], a->right->dl.shape[0]};
  graft_status status = check_ranges(&m);
  if (status) return status;
  int64_t size = a->left->dl.shape[1];
  for (int64_t row = 0; row < m.rows; row++) {
    for (int64_t j = (int64_t)starts.re[row]; j < (int64_t)starts.re[row + 1]; j++) {
      set_dot(a->out->dl.dtype, &out, j, &left, row * size, &right, (int64_t)columns.re[j] * size, size);
    }
  }
  ref_write(a->out, &out);
  return GRAFT_OK;
}

/* --- decompositions --- */

/* For each element the row that it belongs to, and whether it belongs to one; where not, the row is 0. */
typedef struct places {
  graft_tensor *row, *inside;
} places;

/* Indices as i64, looked up among as many as there are: one outside is refused, as kernels do. */
static graft_tensor *checked(fx *s, graft_tensor *indices, int64_t count) {
  return fx_index_select(s, fx_count_up(s, count, GRAFT_I64, indices->device), 0, fx_contiguous(s, indices));
}

static places places_of(fx *s, graft_tensor *starts, int64_t elements) {
  int64_t rows = starts->numel - 1;
  graft_tensor *sorted = checked(s, starts, elements + 1);
  graft_tensor *row =
      fx_searchsorted_Tensor(s, sorted, fx_count_up(s, elements, GRAFT_I64, starts->device), false, true, NULL, NULL);
  row = fx_binary(s, GRAFT_OP_ADD_TENSOR, fx_tensor(row), fx_int(-1));
  graft_tensor *inside =
      fx_logical_and(s, fx_is(s, GRAFT_OP_GE_TENSOR, row, 0), fx_is(s, GRAFT_OP_LT_TENSOR, row, (double)rows));
  return (places){fx_only_where(s, inside, row), inside};
}

static graft_tensor *down(fx *s, graft_tensor *t) {
  return t ? fx_unsqueeze(s, t, 1) : NULL;
}

/* How many terms of a row are added before their sum is: about the root of what a row has. n equal terms, one added
 * after the other, would be rounded the same way n times. */
static int64_t part_length(int64_t elements, int64_t rows) {
  int64_t length = 16;
  while (length * length < elements / rows) length++;
  return length;
}

/* terms [elements, size] added up by row, in parts. Row + j / length tells the parts of elements j from one another,
 * since neither goes down where the other goes up; terms of no row are 0, and in a part behind the others. */
static graft_tensor *sum_rows(fx *s, places p, graft_tensor *terms, const graft_meta *out) {
  if (s->status) return NULL;
  int64_t elements = terms->sizes[0], rows = out->sizes[0], length = part_length(elements, rows);
  int64_t parts = rows + elements / length, all = parts + 1;
  graft_tensor *count = fx_count_up(s, elements, GRAFT_I64, terms->device);
  graft_tensor *part = fx_add(s, p.row, fx_divide(s, fx_tensor(count), fx_int(length), "floor"));
  part = fx_where(s, p.inside, fx_tensor(part), fx_int(parts));
  graft_tensor *row = fx_index_copy(s, fx_filled(s, terms, 1, &all, 0, GRAFT_I64), 0, part, p.row);
  graft_tensor *none = fx_filled(s, terms, 2, (int64_t[]){all, out->sizes[1]}, 0, terms->dtype);
  graft_tensor *sums = fx_index_add(s, none, 0, part, terms, graft_scalar_int(1));
  return fx_index_add(s, fx_filled(s, terms, 2, out->sizes, 0, terms->dtype), 0, row, sums, graft_scalar_int(1));
}

static void decompose_csr_mm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_csr_mm in = in_csr_mm_of(c->args);
  const graft_meta *out = &c->out[OUT];
  if (in.values->numel && out->sizes[0] && out->sizes[1]) {
    places p = places_of(s, in.crow_indices, in.values->numel);
    graft_tensor *terms = fx_mul(s, fx_index_select(s, in.dense, 0, in.col_indices), down(s, in.values));
    outs[OUT] = sum_rows(s, p, fx_only_where(s, down(s, p.inside), terms), out);
    return;
  }
  if (!in.values->numel) checked(s, in.crow_indices, 1);
  outs[OUT] = fx_filled(s, in.dense, 2, out->sizes, 0, in.dense->dtype);
}

static void decompose_csr_sampled_mm(fx *s, const op_call *c, graft_tensor **outs) {
  const in_csr_sampled_mm in = in_csr_sampled_mm_of(c->args);
  int64_t elements = in.col_indices->numel;
  if (!elements || !in.left->numel) {
    if (elements) {
      checked(s, in.crow_indices, elements + 1);
      checked(s, in.col_indices, in.right->sizes[0]);
    }
    outs[OUT] = fx_filled(s, in.left, 1, &elements, 0, in.left->dtype);
    return;
  }
  places p = places_of(s, in.crow_indices, elements);
  graft_tensor *left = fx_index_select(s, in.left, 0, p.row), *right = fx_index_select(s, in.right, 0, in.col_indices);
  outs[OUT] = fx_only_where(s, p.inside, fx_sum(s, fx_mul(s, left, right), 1u << 1, false));
}

/* --- gradients --- */

/* The product of the transposed matrix, of `columns` columns, and `dense`: its elements sorted by column. */
static graft_tensor *transposed_mm(fx *s, graft_tensor *starts, graft_tensor *indices, graft_tensor *values,
                                   int64_t columns, graft_tensor *dense) {
  const bool stable = true;
  if (!values || !dense || !values->numel || !dense->numel) {
    return dense ? fx_filled(s, dense, 2, (int64_t[]){columns, dense->sizes[1]}, 0, dense->dtype) : NULL;
  }
  places p = places_of(s, starts, values->numel);
  graft_tensor *sorted, *order;
  fx_sort_stable(s, fx_cast(s, indices, GRAFT_I64), &stable, 0, false, &sorted, &order);
  graft_tensor *begins = fx_searchsorted_Tensor(s, sorted, fx_count_up(s, columns + 1, GRAFT_I64, starts->device),
                                                false, false, NULL, NULL);
  graft_tensor *rows = fx_index_select(s, p.row, 0, order);
  return fx_csr_mm(s, begins, rows, fx_index_select(s, fx_only_where(s, p.inside, values), 0, order), dense);
}

static void vjp_csr_mm(op_vjp *v) {
  const in_csr_mm in = in_csr_mm_of(v->args);
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, ARG_csr_mm_values)) {
    v->results[ARG_csr_mm_values] =
        fx_csr_sampled_mm(v->s, in.crow_indices, in.col_indices, g, fx_conj(v->s, in.dense));
  }
  if (vjp_needs(v, ARG_csr_mm_dense)) {
    v->results[ARG_csr_mm_dense] =
        transposed_mm(v->s, in.crow_indices, in.col_indices, fx_conj(v->s, in.values), in.dense->sizes[0], g);
  }
}

static void vjp_csr_sampled_mm(op_vjp *v) {
  const in_csr_sampled_mm in = in_csr_sampled_mm_of(v->args);
  graft_tensor *g = v->g[OUT];
  if (vjp_needs(v, ARG_csr_sampled_mm_left)) {
    v->results[ARG_csr_sampled_mm_left] = fx_csr_mm(v->s, in.crow_indices, in.col_indices, g, fx_conj(v->s, in.right));
  }
  if (vjp_needs(v, ARG_csr_sampled_mm_right)) {
    v->results[ARG_csr_sampled_mm_right] =
        transposed_mm(v->s, in.crow_indices, in.col_indices, g, in.right->sizes[0], fx_conj(v->s, in.left));
  }
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(csr_mm),
     .roles = "iivv",
     .infer = infer_csr_mm,
     .decompose = decompose_csr_mm,
     .vjp = vjp_csr_mm,
     .saves = OP_SAVE_ARGS(csr_mm, crow_indices, col_indices, values, dense)},
    {.op_id = OP_WITH_KERNEL(csr_sampled_mm),
     .roles = "iivv",
     .infer = infer_csr_sampled_mm,
     .decompose = decompose_csr_sampled_mm,
     .vjp = vjp_csr_sampled_mm,
     .saves = OP_SAVE_ARGS(csr_sampled_mm, crow_indices, col_indices, left, right)},
};
OP_TABLE(sparse, defs)
