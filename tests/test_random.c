/* Random numbers: Philox itself, and how words become numbers, as graft/abi/exec.h says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/text/text.h"
#include "graft/runtime.h"
#include "ops/core/op.h"
#include "ops/core/ref.h"

#include "ops/generated/fx_ops.h"
#include "suite.h"

static fx s;
static graft_rt_device *cpu;

static void setup(void) {
  cpu = graft_device_reference();
  fx_begin(&s, &fx_execute);
}

static void teardown(void) {
  ck_assert_msg(fx_end(&s) == GRAFT_OK, "%s", graft_last_error());
}

static void seed(uint64_t value, uint64_t offset) {
  graft_generator_set_state(graft_generator_default(cpu), value, offset);
}

static void ck_offset(uint64_t expected) {
  uint64_t value, offset;
  graft_generator_state(graft_generator_default(cpu), &value, &offset);
  ck_assert_uint_eq(offset, expected);
}

static double *numbers(graft_tensor *t) {
  ck_assert_msg(t != NULL, "%s", graft_last_error());
  double *data = calloc((size_t)t->numel + 1, sizeof *data);
  ck_assert_int_eq(graft_tensor_to_host(fx_cast(&s, t, GRAFT_F64), data), GRAFT_OK);
  return data;
}

/* Random123's known answers (kat_vectors, philox 4x32 10). */
START_TEST(known_answers) {
  static const struct {
    uint32_t counter[4], key[2], words[4];
  } rows[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
              {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
              {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
               {0xa4093822, 0x299f31d0},
               {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint32_t words[4];
    ref_philox_block(rows[i].counter, rows[i].key, words);
    for (int w = 0; w < 4; w++) ck_assert_uint_eq(words[w], rows[i].words[w]);
  }
}
END_TEST

/* A block has four words, the counter of blocks 64 bits and the key both halves of the seed. */
START_TEST(words_lie_in_blocks) {
  const graft_philox philox = {
      .struct_size = sizeof philox, .seed = UINT64_C(0x299f31d0a4093822), .offset = 4 * UINT64_C(0x85a308dffffffff)};
  uint32_t words[8];
  ref_philox_block((uint32_t[]){~0u, 0x85a308d, 0, 0}, (uint32_t[]){0xa4093822, 0x299f31d0}, words);
  ref_philox_block((uint32_t[]){0, 0x85a308e, 0, 0}, (uint32_t[]){0xa4093822, 0x299f31d0}, words + 4);
  for (uint64_t w = 0; w < 8; w++) ck_assert_uint_eq(ref_philox_word(&philox, w), words[w]);
}
END_TEST

/* Mean, variance and distribution of gamma variates: within 5 sigma, and Kolmogorov's statistic below what one of 20000
 * draws exceeds. */
START_TEST(gamma_variates) {
  static const double shapes[] = {0.25, 1, 2.5, 40};
  const int64_t n = 40000;
  for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
    seed(11 + k, 0);
    graft_tensor *shape = fx_full(&s, &n, 1, graft_scalar_float(shapes[k]), GRAFT_F32, cpu);
    graft_tensor *x = fx_standard_gamma(&s, shape, NULL), *sorted, *places;
    ck_offset(4 * (uint64_t)n);
    fx_sort(&s, x, 0, false, &sorted, &places);
    double *values = numbers(sorted), *chances = numbers(fx_igamma(&s, shape, sorted));
    double mean = 0, square = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
      mean += values[i] / (double)n;
      square += (values[i] - shapes[k]) * (values[i] - shapes[k]) / (double)n;
      most = fmax(most, fmax((double)(i + 1) / (double)n - chances[i], chances[i] - (double)i / (double)n));
    }
    double a = shapes[k]; /* the mean's variance is a / n, that of the squares (2 a^2 + 6 a) / n */
    ck_assert_msg(fabs(mean - a) < 5 * sqrt(a / (double)n), "mean %g of shape %g", mean, a);
    ck_assert_msg(fabs(square - a) < 5 * sqrt((2 * a * a + 6 * a) / (double)n), "variance %g of shape %g", square, a);
    ck_assert_msg(most * sqrt((double)n) < 2.3, "Kolmogorov's statistic is %g for shape %g", most * sqrt((double)n), a);
    free(values), free(chances);
  }
}
END_TEST

START_TEST(uniform_from_words) {
  static const uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  int64_t four = 4, two = 2;
  seed(0, 0);
  double *f32 = numbers(fx_rand(&s, &four, 1, GRAFT_F32, cpu));
  ck_offset(4);
  seed(0, 0);
  double *f64 = numbers(fx_rand(&s, &two, 1, GRAFT_F64, cpu));
  ck_offset(4);
  seed(0, 0);
  double *f16 = numbers(fx_rand(&s, &four, 1, GRAFT_F16, cpu));
  seed(0, 0);
  double *bf16 = numbers(fx_rand(&s, &four, 1, GRAFT_BF16, cpu));
  for (int i = 0; i < 4; i++) {
    ck_assert(f32[i] == (words[i] >> 8) * 0x1p-24);
    ck_assert(f16[i] <= f32[i] && f32[i] - f16[i] < 0x1p-11 && f16[i] < 1);
    ck_assert(bf16[i] <= f32[i] && f32[i] - bf16[i] < 0x1p-8 && bf16[i] < 1);
  }
  for (int i = 0; i < 2; i++) {
    ck_assert(f64[i] == (double)(((uint64_t)words[2 * i + 1] << 32 | words[2 * i]) >> 11) * 0x1p-53);
  }
  free(f32), free(f64), free(f16), free(bf16);
}
END_TEST

/* A half type keeps as many significant bits of a small number as of a large one, and never reaches 1. */
START_TEST(half_types_are_truncated) {
  int64_t n = 1 << 16;
  double *wide, *half;
  for (int i = 0; i < 2; i++) {
    int bits = i ? 8 : 11;
    seed(7, 0);
    wide = numbers(fx_rand(&s, &n, 1, GRAFT_F32, cpu));
    seed(7, 0);
    half = numbers(fx_rand(&s, &n, 1, i ? GRAFT_BF16 : GRAFT_F16, cpu));
    for (int64_t k = 0; k < n; k++) {
      int exponent;
      frexp(wide[k], &exponent);
      ck_assert(half[k] == trunc(ldexp(wide[k], bits - exponent)) * ldexp(1, exponent - bits));
    }
    free(wide), free(half);
  }
}
END_TEST

/* The offset goes on by whole blocks, and a call is a part of the one stream. */
START_TEST(streams_go_on) {
  int64_t five = 5, eight = 8;
  seed(3, 0);
  double *all = numbers(fx_rand(&s, (int64_t[]){16}, 1, GRAFT_F32, cpu));
  ck_offset(16);
  seed(3, 0);
  double *first = numbers(fx_rand(&s, &five, 1, GRAFT_F32, cpu));
  ck_offset(8);
  double *rest = numbers(fx_rand(&s, &eight, 1, GRAFT_F32, cpu));
  ck_offset(16);
  for (int i = 0; i < 5; i++) ck_assert(first[i] == all[i]);
  for (int i = 0; i < 8; i++) ck_assert(rest[i] == all[8 + i]);
  free(all), free(first), free(rest);
  fx_rand(&s, &five, 1, GRAFT_F64, cpu); /* two words each, in blocks of two elements */
  ck_offset(16 + 12);
  fx_randperm(&s, 5, GRAFT_I64, cpu);
  ck_offset(28 + 12);
  int64_t none = 0;
  fx_rand(&s, &none, 1, GRAFT_F32, cpu);
  ck_offset(40);
}
END_TEST

/* How many words a call takes, of an op in a dtype: each number has one, in f64 two, and a complex one has those of
 * both parts; by whole blocks of four. A call that went on by less would share its words with the next one. */
enum { OF_DTYPE, OF_REAL, TWO, FOUR };
static const struct drawing {
  const char *line; /* T the dtype, N how many */
  int words;
  bool of_complex;
} drawings[] = {{"aten::rand [N] dtype=T", OF_DTYPE, true},
                {"aten::randn [N] dtype=T", OF_DTYPE, true},
                {"aten::normal.float_float 0.0 1.0 [N] dtype=T", OF_DTYPE, true},
                {"aten::uniform T[N]", OF_DTYPE, true},
                {"prims::uniform [N] low=0 high=1 dtype=T stride=[1]", OF_DTYPE, true},
                {"aten::exponential T[N]", OF_DTYPE, false},
                {"aten::cauchy T[N]", OF_DTYPE, false},
                {"aten::geometric T[N] 0.5", OF_DTYPE, false},
                {"aten::log_normal T[N]", OF_DTYPE, false},
                {"aten::bernoulli.p T[N] 0.5", OF_DTYPE, false},
                {"aten::bernoulli.Tensor T[N] f32[N]", OF_DTYPE, false},
                {"aten::native_dropout T[N] 0.5 true", OF_REAL, true},
                {"aten::native_dropout T[N] 0.5 _", OF_REAL, true},
                {"aten::rrelu_with_noise T[N] T[N] 0.125 0.5 true", OF_DTYPE, false},
                {"aten::random.from T[N] 0 100", TWO, false},
                {"aten::randint.low 0 100 [N] dtype=T", TWO, false},
                {"aten::multinomial T[N,3] 1", TWO, false},
                {"aten::_standard_gamma T[N]", FOUR, false}};

static void write_line(char *to, const char *line, graft_dtype dtype, int n) {
  for (; *line; line++) {
    if (*line == 'T' && strncmp(line, "Tensor", 6) != 0)
      to += sprintf(to, "%s", graft_dtype_name(dtype));
    else if (*line == 'N')
      to += sprintf(to, "%d", n);
    else
      *to++ = *line;
  }
  *to = 0;
}

static graft_status ones(void *context, uint32_t index, graft_tensor *tensor) {
  (void)context, (void)index;
  graft_tensor *filled = fx_filled(&s, tensor, tensor->ndim, tensor->sizes, 1, tensor->dtype);
  return filled ? graft_tensor_copy(tensor, filled) : s.status;
}

static void draw(const char *line) {
  txt_call call;
  graft_tensor *outs[OP_MAX_OUTS] = {NULL};
  graft_meta metas[OP_MAX_OUTS];
  uint32_t n = 0;
  ck_assert_msg(!txt_parse_call(line, NULL, &call) && !txt_make(&call, cpu, ones, NULL), "%s", graft_last_error());
  graft_status status = graft_infer(call.schema->id, call.args, call.nargs, metas, sizeof *metas, OP_MAX_OUTS, &n);
  if (!status) status = graft_call(call.schema->id, call.args, call.nargs, outs, n);
  ck_assert_msg(!status, "%s: %s", line, graft_last_error());
  for (uint32_t i = 0; i < n; i++) graft_tensor_release(outs[i]);
  txt_free(&call);
}

START_TEST(calls_go_on_by_their_words) {
  static const graft_dtype dtypes[] = {GRAFT_F16, GRAFT_BF16, GRAFT_F32, GRAFT_F64, GRAFT_C64, GRAFT_C128};
  static const int counts[] = {1, 2, 3, 4, 5, 9}; /* whole blocks among them */
  const struct drawing *d = &drawings[_i];
  for (int i = 0; i < ROWS(dtypes); i++) {
    graft_dtype real = dt_real(dtypes[i]);
    if (dt_is_complex(dtypes[i]) && !d->of_complex) continue;
    int each = real == GRAFT_F64 ? 2 : 1;
    if (d->words == OF_DTYPE && dt_is_complex(dtypes[i])) each *= 2;
    if (d->words == TWO) each = 2;
    if (d->words == FOUR) each = 4;
    for (int k = 0; k < ROWS(counts); k++) {
      char line[128];
      write_line(line, d->line, dtypes[i], counts[k]);
      seed(1, 8);
      draw(line);
      uint64_t seen, offset, expected = 8 + (uint64_t)(counts[k] * each + 3) / 4 * 4;
      graft_generator_state(graft_generator_default(cpu), &seen, &offset);
      ck_assert_msg(offset == expected, "%s: from 8 to %llu, expected %llu", line, (unsigned long long)offset,
                    (unsigned long long)expected);
    }
  }
}
END_TEST

START_TEST(normal_by_box_muller) {
  int64_t n = 1001; /* odd: the last pair is half used */
  for (int i = 0; i < 2; i++) {
    graft_dtype dtype = i ? GRAFT_F64 : GRAFT_F32;
    int64_t more = n + 1;
    seed(11, 0);
    double *u = numbers(fx_rand(&s, &more, 1, dtype, cpu));
    seed(11, 0);
    double *z = numbers(fx_randn(&s, &n, 1, dtype, cpu)), mean = 0, square = 0;
    for (int64_t k = 0; k < n; k++) {
      double r = sqrt(-2 * log1p(-u[k & ~1])), angle = 6.283185307179586 * u[k | 1];
      ck_assert_double_eq_tol(z[k], k & 1 ? r * sin(angle) : r * cos(angle), i ? 1e-14 : 1e-6);
      mean += z[k] / (double)n;
      square += z[k] * z[k] / (double)n;
    }
    ck_assert(fabs(mean) < 5 / sqrt((double)n) && fabs(square - 1) < 5 * sqrt(2.0 / (double)n));
    free(u), free(z);
  }
}
END_TEST

START_TEST(permutations_are_sorted_keys) {
  enum { N = 257 };
  seed(5, 8);
  double *p = numbers(fx_randperm(&s, N, GRAFT_I64, cpu));
  graft_philox philox = {.struct_size = sizeof philox, .seed = 5, .offset = 8};
  bool seen[N] = {false};
  uint64_t before = 0;
  for (int i = 0; i < N; i++) {
    uint64_t at = (uint64_t)p[i];
    ck_assert(at < N && !seen[at]);
    seen[at] = true;
    uint64_t key = (uint64_t)ref_philox_word(&philox, 2 * at + 1) << 32 | ref_philox_word(&philox, 2 * at);
    ck_assert(key >= before);
    before = key;
  }
  free(p);
}
END_TEST

/* What lies where does not matter: element i is that of the logical order. */
START_TEST(uniform_fills_in_logical_order) {
  int64_t sizes[] = {3, 5}, n = 15;
  graft_tensor *plain = fx_filled(&s, fx_full(&s, &n, 1, graft_scalar_int(0), GRAFT_F64, cpu), 2, sizes, 0, GRAFT_F64);
  graft_tensor *turned =
      fx_clone(&s, fx_transpose(&s, fx_reshape(&s, plain, 2, (int64_t[]){5, 3}), 0, 1), GRAFT_FORMAT_PRESERVE);
  seed(1, 0);
  double *a = numbers(fx_uniform(&s, plain, -2, 3, NULL));
  seed(1, 0);
  graft_tensor *drawn = fx_uniform(&s, turned, -2, 3, NULL);
  ck_assert_int_eq(drawn->strides[0], 1);
  double *b = numbers(fx_clone(&s, drawn, GRAFT_FORMAT_CONTIGUOUS));
  for (int i = 0; i < n; i++) ck_assert(a[i] == b[i] && a[i] >= -2 && a[i] < 3);
  free(a), free(b);
}
END_TEST

START_TEST(dropout_keeps_below) {
  int64_t n = 4096;
  for (int i = 0; i < 3; i++) {
    graft_dtype dtype = i == 0 ? GRAFT_F32 : i == 1 ? GRAFT_F64 : GRAFT_BF16;
    graft_tensor *ones = fx_full(&s, &n, 1, graft_scalar_int(1), dtype, cpu), *out, *mask;
    seed(9, 0);
    double *u = numbers(fx_rand(&s, &n, 1, dtype == GRAFT_BF16 ? GRAFT_F32 : dtype, cpu));
    seed(9, 0);
    fx_native_dropout(&s, ones, 0.25, &(const bool){true}, &out, &mask);
    double *kept = numbers(mask), *values = numbers(out);
    for (int64_t k = 0; k < n; k++) {
      ck_assert((kept[k] != 0) == (u[k] < 0.75));
      ck_assert(kept[k] != 0 ? fabs(values[k] - 4.0 / 3) < 0.01 : values[k] == 0);
    }
    free(u), free(kept), free(values);
  }
}
END_TEST

START_TEST(coins_fall_below_p) {
  int64_t n = 4097;
  for (int i = 0; i < 3; i++) {
    graft_dtype dtype = i == 0 ? GRAFT_F32 : i == 1 ? GRAFT_F64 : GRAFT_I64;
    graft_tensor *like = fx_full(&s, &n, 1, graft_scalar_int(0), dtype, cpu);
    graft_tensor *p = fx_full(&s, &n, 1, graft_scalar_float(0.3), GRAFT_F64, cpu);
    seed(4, 16);
    double *u = numbers(fx_rand(&s, &n, 1, i == 1 ? GRAFT_F64 : GRAFT_F32, cpu));
    seed(4, 16);
    double *coins = numbers(fx_bernoulli_p(&s, like, 0.3, NULL));
    ck_offset(16 + (i == 1 ? 8196 : 4100));
    seed(4, 16);
    double *each = numbers(fx_bernoulli_Tensor(&s, like, p, NULL));
    for (int64_t k = 0; k < n; k++) ck_assert(coins[k] == (u[k] < 0.3) && each[k] == coins[k]);
    free(u), free(coins), free(each);
  }
}
END_TEST

/* What happens with a chance happens where the number drawn is below it: not where it is that very number. */
START_TEST(a_chance_excludes_its_own_number) {
  int64_t n = 64;
  for (int i = 0; i < 2; i++) {
    graft_dtype dtype = i ? GRAFT_F64 : GRAFT_F32;
    graft_tensor *like = fx_full(&s, &n, 1, graft_scalar_int(1), dtype, cpu), *out, *mask;
    seed(5, 0);
    graft_tensor *drawn = fx_rand(&s, &n, 1, dtype, cpu);
    double *u = numbers(drawn);
    for (int64_t k = 0; k < n; k += 9) {
      seed(5, 0);
      double *coin = numbers(fx_bernoulli_p(&s, like, u[k], NULL));
      seed(5, 0);
      fx_native_dropout(&s, like, 1 - u[k], &(const bool){true}, &out, &mask);
      double *kept = numbers(mask);
      for (int64_t j = 0; j < n; j++) {
        ck_assert((coin[j] != 0) == (u[j] < u[k]));
        if (1 - (1 - u[k]) == u[k]) ck_assert((kept[j] != 0) == (u[j] < u[k]));
      }
      free(coin), free(kept);
    }
    seed(5, 0);
    double *own = numbers(fx_bernoulli_Tensor(&s, like, drawn, NULL));
    for (int64_t k = 0; k < n; k++) ck_assert(own[k] == 0);
    free(u), free(own);
  }
}
END_TEST

START_TEST(whole_numbers_by_their_high_half) {
  int64_t n = 101, to = 17;
  graft_tensor *like = fx_full(&s, &n, 1, graft_scalar_int(0), GRAFT_I64, cpu);
  graft_philox philox = {.struct_size = sizeof philox, .seed = 6, .offset = 4};
  seed(6, 4);
  double *drawn = numbers(fx_random_from(&s, like, -5, &to, NULL));
  ck_offset(4 + 204);
  for (int64_t k = 0; k < n; k++) {
    uint64_t high = ref_philox_word(&philox, 2 * (uint64_t)k + 1), low = ref_philox_word(&philox, 2 * (uint64_t)k);
    ck_assert(drawn[k] == -5 + (double)((high * 22 + (low * 22 >> 32)) >> 32));
  }
  seed(6, 4);
  double *again = numbers(fx_randint_low(&s, -5, 17, &n, 1, GRAFT_I8, cpu));
  for (int64_t k = 0; k < n; k++) ck_assert(again[k] == drawn[k]);
  free(drawn), free(again);
}
END_TEST

START_TEST(exponentials_are_above_zero) {
  int64_t n = 4096;
  for (int i = 0; i < 2; i++) {
    graft_dtype dtype = i ? GRAFT_F64 : GRAFT_F32;
    seed(12, 0);
    double *u = numbers(fx_rand(&s, &n, 1, dtype, cpu)), mean = 0;
    seed(12, 0);
    double *x = numbers(fx_exponential(&s, fx_full(&s, &n, 1, graft_scalar_int(0), dtype, cpu), 2, NULL));
    for (int64_t k = 0; k < n; k++) {
      ck_assert(x[k] > 0 && fabs(x[k] + log1p(-u[k]) / 2) <= (i ? 1e-15 : 1e-6) * (1 + x[k]));
      mean += x[k] / (double)n;
    }
    ck_assert(fabs(mean - 0.5) < 5 * 0.5 / sqrt((double)n));
    free(u), free(x);
  }
}
END_TEST

/* Shares as the weights have them; and without replacement each category once, those without a weight last. */
START_TEST(choices_follow_their_weights) {
  static const float weights[] = {1, 0, 2, 5, 0};
  int64_t n = 8000;
  graft_tensor *p;
  ck_assert_int_eq(graft_tensor_from_host(cpu, GRAFT_F32, 1, (int64_t[]){5}, weights, &p), GRAFT_OK);
  fx_own(&s, p);
  seed(2, 0);
  double *drawn = numbers(fx_multinomial(&s, p, n, true, NULL)), count[5] = {0};
  ck_offset(2 * (uint64_t)n);
  for (int64_t k = 0; k < n; k++) count[(int)drawn[k]]++;
  for (int k = 0; k < 5; k++) {
    double share = weights[k] / 8;
    ck_assert(fabs(count[k] / (double)n - share) <= 5 * sqrt(share * (1 - share) / (double)n));
  }
  for (uint64_t i = 0; i < 16; i++) {
    seed(i, 0);
    double *once = numbers(fx_multinomial(&s, p, 5, false, NULL));
    ck_assert(once[3] == 1 && once[4] == 4 && once[0] + once[1] + once[2] == 5);
    ck_assert(once[0] != once[1] && once[1] != once[2]);
    free(once);
  }
  free(drawn);
}
END_TEST

/* clang-format off */

int main(void) {
  const suite_test tests[] = {ONCE(known_answers), ONCE(words_lie_in_blocks), ONCE(uniform_from_words), ONCE(half_types_are_truncated),
                              ONCE(streams_go_on), EACH(calls_go_on_by_their_words, ROWS(drawings)),
                              ONCE(normal_by_box_muller), ONCE(permutations_are_sorted_keys),
                              ONCE(uniform_fills_in_logical_order), ONCE(dropout_keeps_below),
                              ONCE(a_chance_excludes_its_own_number), ONCE(coins_fall_below_p),
                              ONCE(whole_numbers_by_their_high_half),
                              ONCE(exponentials_are_above_zero), ONCE(choices_follow_their_weights),
                              ONCE(gamma_variates), {0}};
  return run_suite("random", tests, (suite_options){.setup = setup, .teardown = teardown, .timeout_s = 60});
}
