/* Eigenvalues of any square matrix: Hessenberg form, then the shifted QR algorithm on complex numbers (Golub and Van
 * Loan, Matrix Computations, 7.4 and 7.5), then vectors of the triangle. */
#include <float.h>

#include "ops/linalg/lin.h"

enum { STEPS_EACH = 60 };

/* a = Q H Q^H by reflectors; q becomes Q, v is scratch. */
static void hessenberg(lin_matrix a, lin_matrix q, lin_matrix v) {
  int64_t n = a.rows;
  lin_identity(q);
  for (int64_t k = 0; k + 2 < n; k++) {
    const ref_real length = lin_column_length(a, k + 1, k);
    if (lin_column_length(a, k + 2, k) == 0) continue;
    ref_complex head = *lin_at(a, k + 1, k), turn = head == 0 ? 1 : head / cabsl(head);
    ref_real squares = 0;
    for (int64_t i = k + 1; i < n; i++) v.at[i] = *lin_at(a, i, k);
    v.at[k + 1] += turn * length;
    for (int64_t i = k + 1; i < n; i++) squares += creall(v.at[i] * conjl(v.at[i]));
    for (int64_t j = 0; j < n; j++) {
      ref_complex sum = 0;
      for (int64_t i = k + 1; i < n; i++) sum += conjl(v.at[i]) * *lin_at(a, i, j);
      for (int64_t i = k + 1; i < n; i++) *lin_at(a, i, j) -= v.at[i] * (2 * sum / squares);
    }
    lin_matrix both[] = {a, q};
    for (int w = 0; w < 2; w++)
      for (int64_t i = 0; i < n; i++) {
        ref_complex sum = 0;
        for (int64_t j = k + 1; j < n; j++) sum += *lin_at(both[w], i, j) * v.at[j];
        for (int64_t j = k + 1; j < n; j++) *lin_at(both[w], i, j) -= (2 * sum / squares) * conjl(v.at[j]);
      }
    for (int64_t i = k + 2; i < n; i++) *lin_at(a, i, k) = 0;
  }
}

/* The eigenvalue of the last two by two part that is nearest its last number; now and then another shift. */
static ref_complex shift_of(lin_matrix a, int64_t high, int tries) {
  ref_complex p = *lin_at(a, high - 1, high - 1), q = *lin_at(a, high - 1, high);
  ref_complex r = *lin_at(a, high, high - 1), d = *lin_at(a, high, high);
  if (tries % 11 == 10) return d + cabsl(r);
  ref_complex half = (p + d) / 2, root = csqrtl((p - d) * (p - d) / 4 + q * r);
  ref_complex x = half + root, y = half - root;
  return cabsl(x - d) < cabsl(y - d) ? x : y;
}

/* One step on rows and columns [low, high] of a, by rotations; the rest of a, and q, are turned, too. */
static void qr_step(lin_matrix a, lin_matrix q, int64_t low, int64_t high, ref_complex shift) {
  ref_complex x = *lin_at(a, low, low) - shift, y = *lin_at(a, low + 1, low);
  for (int64_t k = low; k < high; k++) {
    if (k > low) x = *lin_at(a, k, k - 1), y = *lin_at(a, k + 1, k - 1);
    ref_real length = hypotl(cabsl(x), cabsl(y));
    ref_complex c = length > 0 ? x / length : 1, s = length > 0 ? y / length : 0;
    for (int64_t j = 0; j < a.cols; j++) {
      ref_complex up = *lin_at(a, k, j), down = *lin_at(a, k + 1, j);
      *lin_at(a, k, j) = conjl(c) * up + conjl(s) * down;
      *lin_at(a, k + 1, j) = -s * up + c * down;
    }
    if (k > low) *lin_at(a, k + 1, k - 1) = 0;
    lin_matrix both[] = {a, q};
    for (int w = 0; w < 2; w++)
      for (int64_t i = 0; i < both[w].rows; i++) {
        ref_complex left = *lin_at(both[w], i, k), right = *lin_at(both[w], i, k + 1);
        *lin_at(both[w], i, k) = left * c + right * s;
        *lin_at(both[w], i, k + 1) = -left * conjl(s) + right * conjl(c);
      }
  }
}

static bool is_negligible(lin_matrix a, int64_t i) {
  ref_real beside = cabsl(*lin_at(a, i, i)) + cabsl(*lin_at(a, i - 1, i - 1));
  return cabsl(*lin_at(a, i, i - 1)) <= LDBL_EPSILON / 2 * beside || cabsl(*lin_at(a, i, i - 1)) < LDBL_MIN;
}

/* a = Q T Q^H, T upper triangular. */
static bool schur(lin_matrix a, lin_matrix q) {
  int tries = 0;
  for (int64_t high = a.rows - 1; high > 0;) {
    int64_t low = high;
    while (low > 0 && !is_negligible(a, low)) low--;
    if (low > 0) *lin_at(a, low, low - 1) = 0;
    if (low == high) {
      high--, tries = 0;
      continue;
    }
    if (++tries > STEPS_EACH) return false;
    qr_step(a, q, low, high, shift_of(a, high, tries));
  }
  return true;
}

/* By real and then by imaginary part; what differs in the last bits counts as equal, so that pairs stay in order. */
static bool comes_first(ref_complex a, ref_complex b, ref_real tiny) {
  if (fabsl(creall(a) - creall(b)) > tiny) return creall(a) < creall(b);
  return cimagl(a) < cimagl(b);
}

/* The largest part of each vector becomes real and positive. */
static void turn_vector(lin_matrix vectors, int64_t k) {
  ref_complex most = 0;
  for (int64_t i = 0; i < vectors.rows; i++)
    if (cabsl(*lin_at(vectors, i, k)) > cabsl(most) * (1 + 1e-9L)) most = *lin_at(vectors, i, k);
  for (int64_t i = 0; most != 0 && i < vectors.rows; i++) *lin_at(vectors, i, k) *= conjl(most) / cabsl(most);
}

static void put_in_order(lin_matrix values, lin_matrix vectors, ref_real tiny) {
  for (int64_t k = 0; k < values.rows; k++) {
    int64_t best = k;
    for (int64_t i = k + 1; i < values.rows; i++)
      if (comes_first(values.at[i], values.at[best], tiny)) best = i;
    ref_complex kept = values.at[k];
    values.at[k] = values.at[best], values.at[best] = kept;
    for (int64_t i = 0; i < vectors.rows; i++) {
      kept = *lin_at(vectors, i, k);
      *lin_at(vectors, i, k) = *lin_at(vectors, i, best), *lin_at(vectors, i, best) = kept;
    }
    turn_vector(vectors, k);
  }
}

graft_status lin_eig(lin_matrix a, lin_matrix values, lin_matrix vectors) {
  int64_t n = a.rows;
  const ref_real norm = lin_norm(a);
  LIN_OWNED lin_matrix q = lin_new(n, n), x = lin_new(n, 1);
  if (!q.at || !x.at) return ref_no_memory();
  if (!isfinite(norm)) return err_set(GRAFT_INVALID_ARGUMENT, "linalg.eig: the matrix has an infinity or NaN");
  hessenberg(a, q, x);
  if (!schur(a, q)) return err_set(GRAFT_INVALID_ARGUMENT, "linalg.eig: no convergence");
  for (int64_t k = 0; k < n; k++) {
    ref_complex value = values.at[k] = *lin_at(a, k, k);
    for (int64_t i = k; i >= 0; i--) {
      ref_complex sum = i == k ? 1 : 0, gap = *lin_at(a, i, i) - value;
      for (int64_t j = i + 1; j <= k; j++) sum -= *lin_at(a, i, j) * x.at[j];
      if (i < k && cabsl(gap) < LDBL_EPSILON * norm) gap = LDBL_EPSILON * norm;
      x.at[i] = i == k ? 1 : sum / gap;
    }
    ref_real length = 0; /* by hypot: with divisions by small gaps, parts may be beyond what has a square */
    for (int64_t i = 0; i < n; i++) {
      ref_complex sum = 0;
      for (int64_t j = 0; j <= k; j++) sum += *lin_at(q, i, j) * x.at[j];
      *lin_at(vectors, i, k) = sum;
      length = hypotl(length, cabsl(sum));
    }
    for (int64_t i = 0; i < n; i++) *lin_at(vectors, i, k) /= length;
  }
  put_in_order(values, vectors, norm * 1e-15L);
  return GRAFT_OK;
}
