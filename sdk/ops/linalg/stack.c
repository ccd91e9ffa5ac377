/* Rules of matrices, and stacks of them for reference kernels. */
#include "ops/linalg/lin.h"

#include <string.h>

#include "base/error.h"

/* --- rules --- */

graft_status lin_check_dtype(const op_call *c, int arg) {
  graft_dtype dtype = op_tensor(c, arg)->dtype;
  bool fits = dt_is_complex(dtype) || (dt_is_float(dtype) && !dt_is_half(dtype) && !dt_is_float8(dtype));
  return fits ? GRAFT_OK : op_refuse(c, arg, "f32, f64, c64 or c128");
}

static graft_status check_matrix_shape(const op_call *c, int arg) {
  return op_tensor(c, arg)->ndim < 2 ? op_refuse(c, arg, "a matrix, or a stack of matrices") : GRAFT_OK;
}

graft_status lin_check_matrix(const op_call *c, int arg) {
  graft_status status = check_matrix_shape(c, arg);
  return status ? status : lin_check_dtype(c, arg);
}

graft_status lin_check_square_shape(const op_call *c, int arg) {
  const graft_tensor *t = op_tensor(c, arg);
  graft_status status = check_matrix_shape(c, arg);
  if (status) return status;
  return t->sizes[t->ndim - 1] == t->sizes[t->ndim - 2] ? GRAFT_OK : op_refuse(c, arg, "square matrices");
}

graft_status lin_check_square(const op_call *c, int arg) {
  graft_status status = lin_check_matrix(c, arg);
  return status ? status : lin_check_square_shape(c, arg);
}

void lin_out_columns(op_call *c, int n, graft_dtype dtype, int32_t ndim, const int64_t *sizes) {
  op_out(c, n, dtype, ndim, sizes);
  if (ndim < 2) return;
  c->out[n].strides[ndim - 2] = 1;
  c->out[n].strides[ndim - 1] = sizes[ndim - 2] > 1 ? sizes[ndim - 2] : 1;
}

void lin_out_none(op_call *c, int n, graft_dtype dtype) {
  op_out(c, n, dtype, 1, (const int64_t[]){0});
}

lin_shape lin_shape_of(const graft_tensor *like, int64_t rows, int64_t columns) {
  lin_shape shape = {.ndim = like->ndim};
  memcpy(shape.sizes, like->sizes, (size_t)like->ndim * sizeof *like->sizes);
  shape.sizes[like->ndim - 2] = rows;
  shape.sizes[like->ndim - 1] = columns;
  return shape;
}

graft_status lin_broadcast(const op_call *c, int a, int b, lin_shape *shape) {
  const graft_tensor *x = op_tensor(c, a), *y = op_tensor(c, b);
  int32_t more = x->ndim > y->ndim ? x->ndim : y->ndim;
  *shape = (lin_shape){.ndim = more};
  for (int32_t d = 1; d <= more; d++) {
    int64_t n = d <= x->ndim ? x->sizes[x->ndim - d] : 1, m = d <= y->ndim ? y->sizes[y->ndim - d] : 1;
    if (d > 2 && n != m && n != 1 && m != 1) {
      return op_error(c, "the batch dims do not broadcast: %s", op_show_tensors(c));
    }
    shape->sizes[more - d] = d <= 2 || n == 1 ? m : n;
  }
  return GRAFT_OK;
}

void lin_out_batch(op_call *c, int n, graft_dtype dtype, const graft_tensor *like, int32_t less) {
  op_out(c, n, dtype, like->ndim - less, like->sizes);
}

void lin_out_vectors(op_call *c, int n, graft_dtype dtype, const graft_tensor *like, int32_t less, int64_t size) {
  int64_t sizes[GRAFT_MAX_DIMS];
  int32_t batch = like->ndim - less;
  memcpy(sizes, like->sizes, (size_t)batch * sizeof *sizes);
  sizes[batch] = size;
  op_out(c, n, dtype, batch + 1, sizes);
}

/* --- stacks --- */

typedef struct stack {
  ref_complex *all;
  lin_matrix item;
  int64_t count; /* items */
} stack;

static int64_t product(const int64_t *sizes, int32_t count) {
  int64_t n = 1;
  for (int32_t i = 0; i < count; i++) n *= sizes[i];
  return n;
}

static int32_t batch_dims(const lin_operand *o) {
  int32_t batch = o->desc->dl.ndim - o->tail;
  return batch > 0 ? batch : 0;
}

static bool stack_open(stack *s, const lin_operand *o, bool read) {
  *s = (stack){0};
  if (!o->desc) return true;
  const graft_dl_tensor *t = &o->desc->dl;
  int32_t batch = batch_dims(o), tail = t->ndim - batch;
  s->count = product(t->shape, batch);
  s->item.rows = tail > 0 ? t->shape[batch] : 1;
  s->item.cols = tail > 1 ? t->shape[batch + 1] : 1;
  int64_t numel = ref_numel(o->desc);
  s->all = ref_zeros(numel, sizeof *s->all);
  if (!s->all || !read) return s->all;
  REF_OWNED ref_array values = ref_read(o->desc);
  /* Not ref_at, whose product with I makes a zero positive. */
  for (int64_t i = 0; values.re && i < numel; i++) s->all[i] = CMPLXL(values.re[i], values.im ? values.im[i] : 0);
  return values.re;
}

static bool stack_write(const stack *s, const graft_tensor_desc *desc) {
  if (!desc) return true;
  REF_OWNED ref_array values = ref_new(ref_numel(desc), dt_is_complex(desc->dl.dtype));
  for (int64_t i = 0; values.re && i < values.count; i++) {
    values.re[i] = creall(s->all[i]);
    if (values.im) values.im[i] = cimagl(s->all[i]);
  }
  if (values.re) ref_write(desc, &values);
  return values.re;
}

/* Which item of an operand stands beside item `index` of the stack it is broadcast to. */
static int64_t item_of(const lin_operand *o, const lin_operand *like, int64_t index) {
  int32_t own = batch_dims(o), all = batch_dims(like);
  int64_t at = 0, step = 1;
  for (int32_t d = 1; d <= all; d++) {
    int64_t size = like->desc->dl.shape[all - d], mine = d <= own ? o->desc->dl.shape[own - d] : 1;
    if (mine > 1) at += index % size * step;
    step *= mine;
    index /= size;
  }
  return at;
}

static graft_status run_items(const lin_operand *operands, stack *stacks, int ins, int outs, int like, lin_item_fn item,
                              const void *args) {
  int64_t count = operands[like].desc ? stacks[like].count : 0;
  for (int64_t b = 0; b < count; b++) {
    lin_matrix m[LIN_OPERANDS];
    for (int i = 0; i < ins + outs; i++) {
      m[i] = stacks[i].item;
      if (!operands[i].desc) continue;
      m[i].at = stacks[i].all + item_of(&operands[i], &operands[like], b) * m[i].rows * m[i].cols;
    }
    graft_status status = item(m, args);
    if (status) return status;
  }
  return GRAFT_OK;
}

graft_status lin_each(const lin_operand *operands, int ins, int outs, int like, lin_item_fn item, const void *args) {
  stack stacks[LIN_OPERANDS];
  bool memory = true;
  graft_status status = GRAFT_OK;
  for (int i = 0; i < ins + outs; i++) memory = stack_open(&stacks[i], &operands[i], i < ins) && memory;
  if (memory) status = run_items(operands, stacks, ins, outs, like, item, args);
  for (int i = ins; memory && !status && i < ins + outs; i++) memory = stack_write(&stacks[i], operands[i].desc);
  for (int i = 0; i < ins + outs; i++) free(stacks[i].all);
  return memory ? status : ref_no_memory();
}

lin_matrix lin_new(int64_t rows, int64_t cols) {
  return (lin_matrix){ref_zeros(rows * cols, sizeof(ref_complex)), rows, cols};
}

void lin_free(lin_matrix *m) {
  free(m->at);
}

void lin_copy(lin_matrix to, lin_matrix from) {
  for (int64_t i = 0; i < to.rows && i < from.rows; i++)
    for (int64_t j = 0; j < to.cols && j < from.cols; j++) *lin_at(to, i, j) = *lin_at(from, i, j);
}

void lin_identity(lin_matrix m) {
  for (int64_t i = 0; i < m.rows; i++)
    for (int64_t j = 0; j < m.cols; j++) *lin_at(m, i, j) = i == j;
}

void lin_adjoint(lin_matrix to, lin_matrix from) {
  for (int64_t i = 0; i < to.rows; i++)
    for (int64_t j = 0; j < to.cols; j++) *lin_at(to, i, j) = conjl(*lin_at(from, j, i));
}

bool lin_is_real(lin_matrix m) {
  bool real = true;
  for (int64_t i = 0; i < m.rows * m.cols; i++) real &= cimagl(m.at[i]) == 0 && isfinite(creall(m.at[i]));
  return real;
}

ref_complex lin_row_by_column(bool real, lin_matrix a, int64_t i, lin_matrix b, int64_t j, int64_t first,
                              int64_t last) {
  ref_complex sum = 0;
  if (real) {
    ref_real of_real = 0;
    for (int64_t k = first; k < last; k++) of_real += creall(*lin_at(a, i, k)) * creall(*lin_at(b, k, j));
    return of_real;
  }
  for (int64_t k = first; k < last; k++) sum += *lin_at(a, i, k) * *lin_at(b, k, j);
  return sum;
}

void lin_product(lin_matrix to, lin_matrix a, lin_matrix b) {
  const bool real = lin_is_real(a) && lin_is_real(b);
  for (int64_t i = 0; i < to.rows; i++)
    for (int64_t j = 0; j < to.cols; j++) *lin_at(to, i, j) = lin_row_by_column(real, a, i, b, j, 0, a.cols);
}

ref_real lin_column_length(lin_matrix m, int64_t first, int64_t j) {
  ref_real squares = 0;
  for (int64_t i = first; i < m.rows; i++) squares += lin_square(*lin_at(m, i, j));
  return sqrtl(squares);
}

ref_real lin_norm(lin_matrix m) {
  ref_real squares = 0;
  for (int64_t i = 0; i < m.rows * m.cols; i++) squares += lin_square(m.at[i]);
  return sqrtl(squares);
}

graft_status lin_check_info(bool check, int64_t info, const char *what) {
  if (!check || !info) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "%s (info is %lld)", what, (long long)info);
}
