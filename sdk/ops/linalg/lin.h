/* What the files of this family share: rules of matrices, stacks of matrices for reference kernels (stack.c), the
 * algorithms that these run (factor.c, spectral.c), and what gradients are made of (products.c).
 *
 * A stack is a tensor whose last dims are a matrix, or a vector, for each index of the others. */
#ifndef GRAFT_LIN_H
#define GRAFT_LIN_H

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* The size of dim `from_end`, 1 being the last. */
static inline int64_t lin_size(const graft_tensor *t, int32_t from_end) {
  return t->sizes[t->ndim - from_end];
}
static inline int64_t lin_smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* ---- rules ---- */

/* f32, f64, c64 or c128, as LAPACK has them, and matrices, square ones. */
graft_status lin_check_dtype(const op_call *c, int arg);
graft_status lin_check_matrix(const op_call *c, int arg);
graft_status lin_check_square(const op_call *c, int arg);
graft_status lin_check_square_shape(const op_call *c, int arg); /* of any dtype */
/* Output n is a stack that lies in memory column by column, as LAPACK writes it; one without elements, of size 0. */
void lin_out_columns(op_call *c, int n, graft_dtype dtype, int32_t ndim, const int64_t *sizes);
void lin_out_none(op_call *c, int n, graft_dtype dtype);
/* The shape of a stack like `like` with matrices of so many rows and columns. */
typedef struct lin_shape {
  int32_t ndim;
  int64_t sizes[GRAFT_MAX_DIMS];
} lin_shape;
lin_shape lin_shape_of(const graft_tensor *like, int64_t rows, int64_t columns);
/* The batch dims of two stacks of matrices, broadcast, before those of a matrix like b's. */
graft_status lin_broadcast(const op_call *c, int a, int b, lin_shape *shape);
/* Output n has the batch dims of `like`, whose last `less` dims are matrices or vectors, and behind them `last` of
 * these sizes. */
void lin_out_batch(op_call *c, int n, graft_dtype dtype, const graft_tensor *like, int32_t less);
void lin_out_vectors(op_call *c, int n, graft_dtype dtype, const graft_tensor *like, int32_t less, int64_t size);

/* ---- stacks ---- */

/* One matrix, row by row; a vector has one column, a number is one by one. Real numbers have no imaginary part. `at`
 * is NULL where a result is not wanted. */
typedef struct lin_matrix {
  ref_complex *at;
  int64_t rows, cols;
} lin_matrix;
/* Sanitizers look here: GCC's does not see where a complex number of this size is read or written. */
static inline ref_complex *lin_at(lin_matrix m, int64_t i, int64_t j) {
#ifdef __SANITIZE_ADDRESS__
  if (i < 0 || i >= m.rows || j < 0 || j >= m.cols) abort();
#endif
  return &m.at[i * m.cols + j];
}

/* The square of its modulus. */
static inline ref_real lin_square(ref_complex z) {
  return creall(z) * creall(z) + cimagl(z) * cimagl(z);
}

/* A tensor whose last `tail` dims are one item of the stack: 2 matrices, 1 vectors, 0 numbers. */
typedef struct lin_operand {
  const graft_tensor_desc *desc;
  int32_t tail;
} lin_operand;

enum { LIN_OPERANDS = 8 };
/* Runs `item` for each matrix: its inputs, then its results, which come as zeros. Inputs are broadcast to the batch
 * dims of operands[like]. An item that returns a status fails the whole call. */
typedef graft_status (*lin_item_fn)(lin_matrix *m, const void *args);
graft_status lin_each(const lin_operand *operands, int ins, int outs, int like, lin_item_fn item, const void *args);

lin_matrix lin_new(int64_t rows, int64_t cols); /* zeros */
void lin_free(lin_matrix *m);
#define LIN_OWNED __attribute__((cleanup(lin_free)))
void lin_copy(lin_matrix to, lin_matrix from); /* the common rows and columns */
void lin_identity(lin_matrix m);
void lin_adjoint(lin_matrix to, lin_matrix from);
void lin_product(lin_matrix to, lin_matrix a, lin_matrix b);
/* Whether all numbers are finite and have no imaginary part: then sums of their products, as long as these are finite,
 * are the same of real numbers only, in a fraction of the time. */
bool lin_is_real(lin_matrix m);
/* The sum of a(i, k) b(k, j) over k in [first, last). */
ref_complex lin_row_by_column(bool real, lin_matrix a, int64_t i, lin_matrix b, int64_t j, int64_t first, int64_t last);
/* Lengths, of a column from row `first` on and of all numbers of a matrix. A long double has the squares of the largest
 * and of the smallest f64, and more: none has to be scaled. */
ref_real lin_column_length(lin_matrix m, int64_t first, int64_t j);
ref_real lin_norm(lin_matrix m);
/* The status of a call that asks for its errors: `what` about the matrix whose info is not 0. */
graft_status lin_check_info(bool check, int64_t info, const char *what);

/* ---- algorithms, in place unless said otherwise; info is LAPACK's ---- */

/* The lower factor of what the lower triangle says; above it all is 0. */
int64_t lin_cholesky(lin_matrix a);
/* Rows are exchanged as pivots says, 1-based, rows of the smaller dim. */
int64_t lin_lu(lin_matrix a, lin_matrix pivots, bool pivot);
void lin_exchange_rows(lin_matrix b, lin_matrix pivots, bool back);
/* OUT_OF_RANGE where one names no row; negative ones name pairs of rows, where there are such. */
graft_status lin_check_pivots(const char *op, lin_matrix pivots, int64_t rows, bool pairs);
/* op(t) x = b with a triangle of t. */
typedef struct lin_triangle {
  bool upper, unit;
} lin_triangle;
void lin_solve_triangle(lin_matrix t, lin_triangle kind, lin_matrix b);
/* Solves a x = b with lu and pivots, or the adjoint system. */
void lin_solve_lu(lin_matrix lu, lin_matrix pivots, bool adjoint, lin_matrix b);
/* Householder's factorization as LAPACK leaves it; q becomes its first columns. */
void lin_qr(lin_matrix a, lin_matrix tau);
void lin_reflectors_product(lin_matrix v, lin_matrix tau, lin_matrix q);
/* c becomes Q c, or its adjoint times c. */
void lin_apply_reflectors(lin_matrix v, lin_matrix tau, bool adjoint, lin_matrix c);
/* Eigenvalues, ascending, and vectors of a Hermitian matrix; the largest part of each vector is real and positive. */
void lin_eigh(lin_matrix a, lin_matrix values, lin_matrix vectors);
/* a = u diag(s) vh, s descending; square u and vh are completed. The largest part of each column of u is positive. */
graft_status lin_svd(lin_matrix a, lin_matrix u, lin_matrix s, lin_matrix vh);
/* Values by real and then by imaginary part, vectors of length 1 whose largest part is positive. */
graft_status lin_eig(lin_matrix a, lin_matrix values, lin_matrix vectors);

/* ---- gradients ---- */

graft_tensor *lin_mm(fx *s, graft_tensor *a, graft_tensor *b); /* stacks, batch dims broadcast */
graft_tensor *lin_diagonal(fx *s, graft_tensor *a);
/* A stack of diagonal matrices. */
graft_tensor *lin_diagonal_matrix(fx *s, graft_tensor *diagonal);
graft_tensor *lin_eye(fx *s, int64_t size, graft_tensor *like);
/* A vector, or a number, of each of a stack beside a matrix: as a column, as a row. */
graft_tensor *lin_column(fx *s, graft_tensor *a);
graft_tensor *lin_row(fx *s, graft_tensor *a);
graft_tensor *lin_add(fx *s, graft_tensor *a, graft_tensor *b); /* NULL is 0 */
/* Rows or columns [from, from + size). */
graft_tensor *lin_narrow(fx *s, graft_tensor *a, int32_t from_end, int64_t from, int64_t size);

#endif
