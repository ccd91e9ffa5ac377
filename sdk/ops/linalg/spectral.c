/* Eigenvalues and singular values of reference kernels, by Jacobi's rotations: slow, simple, and accurate to the last
 * bits (Golub and Van Loan, Matrix Computations, 8.5 and 8.6). */
#include <float.h>

#include "ops/linalg/lin.h"

enum { SWEEPS = 60 };

/* cos and sin of the rotation that takes the off-diagonal part of [[a, b], [b, d]], b real and positive, to 0. */
static void rotation(ref_real a, ref_real b, ref_real d, ref_real *c, ref_real *s) {
  ref_real theta = (d - a) / (2 * b);
  ref_real t = (theta >= 0 ? 1 : -1) / (fabsl(theta) + hypotl(theta, 1));
  *c = 1 / hypotl(t, 1);
  *s = t * *c;
}

static inline ref_complex turned(ref_complex z, ref_complex phase) {
  return cimagl(phase) == 0 ? z * creall(phase) : z * phase;
}

/* Columns p and q of m times [[c, s], [-conj(phase) s, conj(phase) c]]. */
static void rotate_columns(lin_matrix m, int64_t p, int64_t q, ref_real c, ref_real s, ref_complex phase) {
  for (int64_t i = 0; i < m.rows; i++) {
    ref_complex x = *lin_at(m, i, p), y = turned(*lin_at(m, i, q), conjl(phase));
    *lin_at(m, i, p) = c * x - s * y;
    *lin_at(m, i, q) = s * x + c * y;
  }
}

static void rotate_rows(lin_matrix m, int64_t p, int64_t q, ref_real c, ref_real s, ref_complex phase) {
  for (int64_t j = 0; j < m.cols; j++) {
    ref_complex x = *lin_at(m, p, j), y = turned(*lin_at(m, q, j), phase);
    *lin_at(m, p, j) = c * x - s * y;
    *lin_at(m, q, j) = s * x + c * y;
  }
}

/* Takes m's part (p, q) to 0, in its rows and columns and in those of vectors. False: it was 0 as it is. */
static bool rotate_hermitian(lin_matrix m, int64_t p, int64_t q, ref_real tiny, lin_matrix vectors) {
  ref_complex b = *lin_at(m, p, q);
  ref_real size = cabsl(b), c, s;
  if (!(size > tiny)) return false;
  rotation(creall(*lin_at(m, p, p)), size, creall(*lin_at(m, q, q)), &c, &s);
  rotate_columns(m, p, q, c, s, b / size);
  rotate_rows(m, p, q, c, s, b / size);
  rotate_columns(vectors, p, q, c, s, b / size);
  *lin_at(m, p, q) = *lin_at(m, q, p) = 0;
  return true;
}

/* Columns of m, and of `other` where there is one, in the order of values. */
static void sort_columns(lin_matrix values, bool descending, lin_matrix m, lin_matrix other) {
  for (int64_t k = 0; k < values.rows; k++) {
    int64_t best = k;
    for (int64_t i = k + 1; i < values.rows; i++) {
      ref_real x = creall(values.at[i]), y = creall(values.at[best]);
      if (descending ? x > y : x < y) best = i;
    }
    if (best == k) continue;
    ref_complex kept = values.at[k];
    values.at[k] = values.at[best], values.at[best] = kept;
    lin_matrix both[] = {m, other};
    for (int n = 0; n < 2; n++)
      for (int64_t i = 0; both[n].at && i < both[n].rows; i++) {
        kept = *lin_at(both[n], i, k);
        *lin_at(both[n], i, k) = *lin_at(both[n], i, best);
        *lin_at(both[n], i, best) = kept;
      }
  }
}

/* The factor that makes the largest part of column j real and positive. */
static ref_complex sign_of_column(lin_matrix m, int64_t j) {
  int64_t best = 0;
  for (int64_t i = 1; i < m.rows; i++)
    if (lin_square(*lin_at(m, i, j)) > lin_square(*lin_at(m, best, j)) * (1 + 1e-9L)) best = i;
  ref_complex most = *lin_at(m, best, j);
  return most == 0 ? 1 : conjl(most) / cabsl(most);
}

static void scale_column(lin_matrix m, int64_t j, ref_complex factor) {
  for (int64_t i = 0; m.at && i < m.rows; i++) *lin_at(m, i, j) *= factor;
}

void lin_eigh(lin_matrix a, lin_matrix values, lin_matrix vectors) {
  const ref_real norm = lin_norm(a);
  lin_identity(vectors);
  bool turned = isfinite(norm);
  for (int sweep = 0; sweep < SWEEPS && turned; sweep++) {
    turned = false;
    for (int64_t p = 0; p < a.rows; p++)
      for (int64_t q = p + 1; q < a.rows; q++)
        turned |= rotate_hermitian(a, p, q, norm * LDBL_EPSILON / 64 / (ref_real)a.rows, vectors);
  }
  for (int64_t i = 0; i < a.rows; i++) values.at[i] = isfinite(norm) ? creall(*lin_at(a, i, i)) : NAN;
  sort_columns(values, false, vectors, (lin_matrix){NULL, 0, 0});
  for (int64_t j = 0; j < vectors.cols; j++) scale_column(vectors, j, sign_of_column(vectors, j));
}

/* Makes columns p and q of g orthogonal. */
static bool orthogonalize(lin_matrix g, int64_t p, int64_t q, lin_matrix v) {
  ref_real a = 0, d = 0, c, s;
  ref_complex b = 0;
  for (int64_t i = 0; i < g.rows; i++) {
    a += lin_square(*lin_at(g, i, p));
    d += lin_square(*lin_at(g, i, q));
    b += conjl(*lin_at(g, i, p)) * *lin_at(g, i, q);
  }
  ref_real size = cabsl(b);
  if (!(size > LDBL_EPSILON * sqrtl(a) * sqrtl(d))) return false;
  rotation(a, size, d, &c, &s);
  rotate_columns(g, p, q, c, s, b / size);
  rotate_columns(v, p, q, c, s, b / size);
  return true;
}

/* Columns [from, cols) of q become unit vectors orthogonal to all before them. */
static void complete(lin_matrix q, int64_t from) {
  int64_t unit = 0;
  for (int64_t j = from; j < q.cols; unit++) {
    if (unit >= q.rows) return;
    for (int64_t i = 0; i < q.rows; i++) *lin_at(q, i, j) = i == unit;
    for (int twice = 0; twice < 2; twice++)
      for (int64_t k = 0; k < j; k++) {
        ref_complex dot = 0;
        for (int64_t i = 0; i < q.rows; i++) dot += conjl(*lin_at(q, i, k)) * *lin_at(q, i, j);
        for (int64_t i = 0; i < q.rows; i++) *lin_at(q, i, j) -= dot * *lin_at(q, i, k);
      }
    const ref_real length = lin_column_length(q, 0, j);
    if (length * length < 0.5L / (ref_real)q.rows) continue; /* some unit vector keeps at least so much */
    scale_column(q, j++, 1 / length);
  }
}

/* How many of the values, the largest first, have vectors: what is left of others are roundings of what was there,
 * which point wherever it did. */
static int64_t rank_of(lin_matrix s) {
  int64_t rank = 0, count = s.rows * s.cols;
  while (rank < count && creall(s.at[rank]) > LDBL_EPSILON * creall(s.at[0])) rank++;
  return rank;
}

/* Of rows >= columns: g becomes u's first columns, v the others' vectors. */
static void svd_tall(lin_matrix g, lin_matrix s, lin_matrix v) {
  bool turned = true;
  lin_identity(v);
  for (int64_t i = 0; i < g.rows * g.cols; i++)
    if (!isfinite(creall(g.at[i])) || !isfinite(cimagl(g.at[i]))) turned = false;
  bool finite = turned;
  for (int sweep = 0; sweep < SWEEPS && turned; sweep++) {
    turned = false;
    for (int64_t p = 0; p < g.cols; p++)
      for (int64_t q = p + 1; q < g.cols; q++) turned |= orthogonalize(g, p, q, v);
  }
  for (int64_t j = 0; j < g.cols; j++) {
    s.at[j] = finite ? lin_column_length(g, 0, j) : NAN;
  }
  sort_columns(s, true, g, v);
  for (int64_t j = 0; j < rank_of(s); j++) scale_column(g, j, 1 / s.at[j]);
}

graft_status lin_svd(lin_matrix a, lin_matrix u, lin_matrix s, lin_matrix vh) {
  bool tall = a.rows >= a.cols;
  int64_t m = tall ? a.rows : a.cols, k = tall ? a.cols : a.rows;
  LIN_OWNED lin_matrix g = lin_new(m, k), v = lin_new(k, k);
  LIN_OWNED lin_matrix full = lin_new(a.rows, u.at ? u.cols : k), other = lin_new(a.cols, vh.at ? vh.rows : k);
  if (!g.at || !v.at || !full.at || !other.at) return ref_no_memory();
  if (tall)
    lin_copy(g, a);
  else
    lin_adjoint(g, a);
  svd_tall(g, s, v);
  int64_t rank = rank_of(s);
  lin_copy(full, tall ? g : v);
  lin_copy(other, tall ? v : g);
  for (int64_t j = 0; j < k; j++) {
    ref_complex sign = sign_of_column(full, j);
    scale_column(full, j, sign);
    scale_column(other, j, sign);
  }
  complete(full, tall ? rank : k);
  complete(other, tall ? k : rank);
  if (u.at) lin_copy(u, full);
  if (vh.at) lin_adjoint(vh, other);
  return GRAFT_OK;
}
