/* The reference kernels' sums of products: several at once are what each is alone, to the bit, in whatever way they are
 * accumulated. */
#include <math.h>
#include <string.h>

#include "ops/core/ref.h"
#include "suite.h"

enum { MOST_TERMS = 19, ROWS_OF_Y = 7, STEP = 2, NEXT = MOST_TERMS * STEP + 1, NUMBER_BYTES = 10 };

static const unsigned modes[] = {REF_WIDE, REF_REVERSED, REF_NARROW, REF_NARROW | REF_REVERSED,
                                 REF_NARROW | REF_NO_FMA};
static const graft_dtype summed[] = {GRAFT_WIDE, GRAFT_F64, GRAFT_F32, GRAFT_BF16, GRAFT_I64};

/* Numbers whose sums are rounded, and differ by their order. */
static ref_real number(graft_dtype dtype, int64_t i) {
  return dt_is_integral(dtype, false) ? (ref_real)(i * i * 0x12345 - 77) : sinl((ref_real)i) * (i % 3 ? 1e6L : 1);
}

static void check_all(graft_dtype dtype, const ref_real *x, const ref_real *y, int64_t terms) {
  for (int64_t count = 0; count <= ROWS_OF_Y; count++) {
    ref_real sums[ROWS_OF_Y + 1] = {0};
    sums[count] = 42;
    ref_dots(dtype, x, STEP, (ref_factors){y, STEP, NEXT, count}, terms, sums);
    for (int64_t k = 0; k < count; k++) {
      const ref_real alone = ref_dot(dtype, x, STEP, y + k * NEXT, STEP, terms);
      ck_assert_msg(memcmp(&alone, &sums[k], NUMBER_BYTES) == 0, "%lld terms, sum %lld of %lld: %La, not %La",
                    (long long)terms, (long long)k, (long long)count, sums[k], alone);
    }
    ck_assert(sums[count] == 42);
  }
}

START_TEST(several_at_once) {
  ref_real x[NEXT], y[ROWS_OF_Y * NEXT];
  for (size_t d = 0; d < sizeof summed / sizeof *summed; d++) {
    for (int64_t i = 0; i < NEXT; i++) x[i] = number(summed[d], i);
    for (int64_t i = 0; i < ROWS_OF_Y * NEXT; i++) y[i] = number(summed[d], 3 * i + 5);
    ref_mode = modes[_i];
    for (int64_t terms = 0; terms <= MOST_TERMS; terms++) check_all(summed[d], x, y, terms);
    if (dt_is_integral(summed[d], false)) continue;
    y[2 * NEXT + 4 * STEP] = INFINITY; /* in one of them, from the first look at it on */
    y[5 * NEXT + 9 * STEP] = NAN;
    check_all(summed[d], x, y, MOST_TERMS);
    y[2 * NEXT + 12 * STEP] = -INFINITY;
    check_all(summed[d], x, y, MOST_TERMS);
  }
  ref_mode = REF_WIDE;
}
END_TEST

/* Of numbers that doubles hold and of others; where one is an infinity, or NaN. */
START_TEST(products_are_dots) {
  enum { N = 5, K = MOST_TERMS, M = 11 };
  for (size_t d = 0; d < sizeof summed / sizeof *summed; d++) {
    ref_real a[N * K], b[K * M], out[N * M];
    for (int special = 0; special < 4; special++) {
      for (int64_t i = 0; i < N * K; i++) a[i] = special ? (float)number(summed[d], i) : number(summed[d], i);
      for (int64_t i = 0; i < K * M; i++) b[i] = (float)number(summed[d], 3 * i + 5);
      if (special == 2 && !dt_is_integral(summed[d], false)) b[3 * M + 2] = INFINITY, b[9 * M + 6] = -NAN;
      if (special == 3) b[5 * M + 1] = number(summed[d], 7);
      ref_mode = modes[_i];
      ref_product(summed[d], N, K, M, a, b, out);
      for (int64_t i = 0; i < N * M; i++) {
        const ref_real alone = ref_dot(summed[d], a + i / M * K, 1, b + i % M, M, K);
        ck_assert_msg(memcmp(&alone, &out[i], NUMBER_BYTES) == 0, "number %lld: %La, not %La", (long long)i, out[i],
                      alone);
      }
    }
  }
  ref_mode = REF_WIDE;
}
END_TEST

START_TEST(scaled_are_added_as_each_is) {
  for (size_t d = 0; d < sizeof summed / sizeof *summed; d++) {
    ref_real to[] = {0.0L, -0.0L, INFINITY, number(summed[d], 4), number(summed[d], 5), number(summed[d], 9)};
    ref_real from[] = {-0.0L, -0.0L, -1, number(summed[d], 7), number(summed[d], 8), number(summed[d], 11)};
    const ref_real factor = dt_is_integral(summed[d], false) ? 3 : 1 / 3.0L;
    ref_real each[ROWS(to)];
    if (dt_is_integral(summed[d], false)) to[2] = 2; /* which has no infinity */
    memcpy(each, to, sizeof to);
    ref_mode = modes[_i];
    for (int i = 0; i < ROWS(to); i++) ref_add(summed[d], &each[i], factor * from[i]);
    ref_add_scaled(summed[d], to, factor, from, ROWS(to));
    for (int i = 0; i < ROWS(to); i++)
      ck_assert_msg(memcmp(&to[i], &each[i], NUMBER_BYTES) == 0, "number %d: %La, not %La", i, to[i], each[i]);
  }
  ref_mode = REF_WIDE;
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(several_at_once, ROWS(modes)),
                              EACH(products_are_dots, ROWS(modes)),
                              EACH(scaled_are_added_as_each_is, ROWS(modes)),
                              {0}};
  return run_suite("reference_sums", tests, (suite_options){0});
}
