#include "conformance/judge/factors.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long double complex cf_complex;

/* Matrix `index` of a stack. */
typedef struct cf_matrix {
  const dt_value *v;
  int64_t rows, columns;
} cf_matrix;

static cf_matrix cf_matrix_of(const cf_array *a, int64_t index) {
  int64_t rows = a->sizes[a->ndim - 2], columns = a->sizes[a->ndim - 1];
  return (cf_matrix){a->v + index * rows * columns, rows, columns};
}

/* As it is, or transposed in memory of its own. */
static bool cf_transposed(const cf_array *a, cf_array *to) {
  if (!cf_array_new(to, a->dtype, a->ndim, a->sizes)) return false;
  int64_t n = a->sizes[a->ndim - 1];
  for (int64_t i = 0; i < a->numel; i++) {
    int64_t row = i / n % n, column = i % n;
    to->v[i - row * n - column + column * n + row] = a->v[i];
  }
  return true;
}

static cf_complex cf_part(cf_matrix m, int64_t i, int64_t j) {
  dt_value v = m.v[i * m.columns + j];
  return v.re + v.im * I;
}

static int64_t cf_matrices_in(const cf_array *a) {
  int64_t each = a->sizes[a->ndim - 1] * a->sizes[a->ndim - 2];
  return each ? a->numel / each : 0;
}

/* An output by name; NULL: the op has none. */
static const cf_array *cf_result_named(const cf_check *check, const cf_array *results, const char *name) {
  const op_schema *schema = check->call->schema;
  for (uint32_t i = 0; i < schema->nrets && i < check->nouts; i++)
    if (schema->rets[i].name && strcmp(schema->rets[i].name, name) == 0) return &results[i];
  return NULL;
}

/* Whether an error is within its limit; worsens the verdict. */
static bool cf_hold(cf_verdict *v, const char *what, int64_t matrix, int64_t i, int64_t j, long double error,
                    long double limit) {
  double ratio = error == 0 ? 0 : limit > 0 && !isnan(error) ? (double)(error / limit) : INFINITY;
  if (ratio > v->ratio) v->ratio = ratio, v->error = (double)error;
  if (ratio <= 1) return true;
  v->ok = false;
  snprintf(v->text, sizeof v->text, "%s: matrix %lld at %lld,%lld is off by %.3Lg, more than %.3Lg", what,
           (long long)matrix, (long long)i, (long long)j, error, limit);
  return false;
}

/* ---- LU ---- */

static bool cf_exchange_rows(int64_t *rows, int64_t count, const cf_array *pivots, int64_t b, int64_t steps) {
  for (int64_t i = 0; i < count; i++) rows[i] = i;
  for (int64_t k = 0; k < steps; k++) {
    int64_t row = (int64_t)pivots->v[b * steps + k].re - 1;
    if (row < k || row >= count) return false;
    int64_t kept = rows[k];
    rows[k] = rows[row];
    rows[row] = kept;
  }
  return true;
}

/* Elementwise, |P A - L U| <= k u |L| |U| with k the smaller dim: theorem 9.3 of Higham, Accuracy and Stability of
 * Numerical Algorithms, 2nd edition, to first order; one more for the division of complex numbers by parts. */
static void cf_check_lu(const cf_check *check, cf_matrix a, cf_matrix lu, const int64_t *rows, int64_t b,
                        bool exchanged, cf_verdict *v) {
  int64_t k = a.rows < a.columns ? a.rows : a.columns;
  long double u = cf_u_acc(check->call->c->dtype),
              roundings = (dt_is_complex(check->call->c->dtype) ? 4 : 1) * (k + 1) * u;
  for (int64_t i = 0; i < a.rows; i++)
    for (int64_t j = 0; j < a.columns && v->ok; j++) {
      cf_complex sum = 0;
      long double terms = 0;
      for (int64_t p = 0; p <= i && p <= j && p < k; p++) {
        cf_complex term = (p == i ? 1 : cf_part(lu, i, p)) * cf_part(lu, p, j);
        sum += term, terms += cabsl(term);
      }
      cf_complex l = cf_part(lu, i, j);
      if (j < i && exchanged && fabsl(creall(l)) + fabsl(cimagl(l)) > 1.5L)
        cf_hold(v, "a multiplier above 1, so that the pivot was not the largest", b, i, j, cabsl(l), 1);
      cf_hold(v, "P A - L U", b, i, j, cabsl(sum - cf_part(a, rows[i], j)), roundings * terms);
    }
}

static void cf_check_factors(const cf_check *check, const cf_array *a, const cf_array *results, cf_verdict *v) {
  const cf_array *lu = cf_result_named(check, results, "LU"), *pivots = cf_result_named(check, results, "pivots");
  int64_t height = a->sizes[a->ndim - 2], width = a->sizes[a->ndim - 1], steps = height < width ? height : width;
  int64_t *rows = calloc((size_t)height + 1, sizeof *rows);
  if (!lu || !pivots || !rows || lu->numel != a->numel) cf_verdict_fail(v, "the factors are not there");
  for (int64_t b = 0; v->ok && b < cf_matrices_in(a); b++) {
    if (!cf_exchange_rows(rows, height, pivots, b, steps))
      cf_verdict_fail(v, "pivots: a row lies outside the matrix or above its place");
    else
      cf_check_lu(check, cf_matrix_of(a, b), cf_matrix_of(lu, b), rows, b, cf_arg_bool(check->call, "pivot", true), v);
  }
  free(rows);
}

void cf_lu_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  cf_check_factors(check, &check->in[0], results, v);
}

void cf_det_property(const cf_check *check, const cf_array *results, cf_verdict *v) {
  cf_verdict straight = *v, turned = *v;
  cf_array transpose = {0};
  cf_check_factors(check, &check->in[0], results, &straight);
  if (straight.ok)
    *v = straight;
  else if (!cf_transposed(&check->in[0], &transpose))
    cf_verdict_fail(v, "no memory to check the factors");
  else
    cf_check_factors(check, &transpose, results, &turned), *v = turned;
  cf_array_free(&transpose);
}
