/* Facts, promotion and conversions of dtypes: the 16-bit and 8-bit formats exhaustively, against arithmetic done
 * another way. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtypes.h"
#include "graft/tensor.h"
#include "suite.h"

enum { LDBL_BYTES = 10 }; /* of a long double's 16 the rest is anything */

START_TEST(numbers_names_and_sizes) {
  for (int i = 0; i < ABI_DTYPES; i++) {
    ck_assert_int_eq(dt_number(dtypes[i]), i);
    ck_assert_uint_eq(graft_dtype_parse(graft_dtype_name(dtypes[i])), dtypes[i]);
    ck_assert_uint_eq(dt_bytes(dtypes[i]), GRAFT_DTYPE_BYTES(dtypes[i]));
    ck_assert_uint_eq(dt_bit(dtypes[i]), UINT64_C(1) << i);
  }
  ck_assert_int_eq(dt_number(GRAFT_WIDE), GRAFT_NUMBER_WIDE);
  ck_assert_uint_eq(dt_bytes(GRAFT_WIDE), 16);
  ck_assert_uint_eq(dt_bytes(GRAFT_WIDE_COMPLEX), 32);
  ck_assert_int_eq(dt_number(12345), -1);
  ck_assert_uint_eq(dt_bytes(12345), 0);
  ck_assert_uint_eq(graft_dtype_parse("float32"), GRAFT_DTYPE_NONE);
  ck_assert_uint_eq(graft_dtype_parse(NULL), GRAFT_DTYPE_NONE);
}
END_TEST

START_TEST(categories) {
  ck_assert(dt_is_float(GRAFT_F8_E5M2) && dt_is_float(GRAFT_BF16) && dt_is_float(GRAFT_WIDE));
  ck_assert(!dt_is_float(GRAFT_C64) && !dt_is_float(GRAFT_I64) && !dt_is_float(12345));
  ck_assert(dt_is_integral(GRAFT_U64, false) && !dt_is_integral(GRAFT_BOOL, false) && dt_is_integral(GRAFT_BOOL, true));
  ck_assert(!dt_is_integral(12345, true));
  ck_assert(dt_is_unsigned(GRAFT_U8) && !dt_is_unsigned(GRAFT_I8) && !dt_is_unsigned(GRAFT_BOOL));
  ck_assert_uint_eq(dt_real(GRAFT_C128), GRAFT_F64);
  ck_assert_uint_eq(dt_real(GRAFT_I16), GRAFT_I16);
  ck_assert_uint_eq(dt_complex(GRAFT_F32), GRAFT_C64);
  ck_assert_uint_eq(dt_complex(GRAFT_WIDE), GRAFT_WIDE_COMPLEX);
  ck_assert_uint_eq(dt_accumulate(GRAFT_F16), GRAFT_F32);
  ck_assert_uint_eq(dt_accumulate(GRAFT_F64), GRAFT_F64);
  ck_assert_uint_eq(dt_accumulate(GRAFT_U8), GRAFT_I64);
}
END_TEST

START_TEST(promotion_is_symmetric_and_idempotent) {
  for (int i = 0; i < ABI_DTYPES; i++) {
    ck_assert_uint_eq(dt_promote(dtypes[i], dtypes[i]), dtypes[i]);
    for (int j = 0; j < ABI_DTYPES; j++)
      ck_assert_uint_eq(dt_promote(dtypes[i], dtypes[j]), dt_promote(dtypes[j], dtypes[i]));
  }
}
END_TEST

START_TEST(promotion_as_in_pytorch) {
  static const graft_dtype rows[][3] = {
      {GRAFT_BOOL, GRAFT_U8, GRAFT_U8},    {GRAFT_U8, GRAFT_I8, GRAFT_I16},
      {GRAFT_I64, GRAFT_F16, GRAFT_F16},   {GRAFT_F16, GRAFT_BF16, GRAFT_F32},
      {GRAFT_BF16, GRAFT_F32, GRAFT_F32},  {GRAFT_F64, GRAFT_C64, GRAFT_C128},
      {GRAFT_F16, GRAFT_C64, GRAFT_C64},   {GRAFT_U16, GRAFT_U32, 0},
      {GRAFT_U16, GRAFT_I64, 0},           {GRAFT_U64, GRAFT_F16, GRAFT_F16},
      {GRAFT_U32, GRAFT_C64, 0},           {GRAFT_BOOL, GRAFT_U16, 0},
      {GRAFT_F8_E4M3FN, GRAFT_F8_E5M2, 0}, {GRAFT_F8_E5M2, GRAFT_F32, 0},
      {GRAFT_WIDE, GRAFT_F64, GRAFT_WIDE}, {GRAFT_WIDE, GRAFT_C64, GRAFT_WIDE_COMPLEX},
      {GRAFT_WIDE, GRAFT_F8_E5M2, 0},      {12345, GRAFT_F32, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ck_assert_msg(dt_promote(rows[i][0], rows[i][1]) == rows[i][2], "%s with %s gives %s", graft_dtype_name(rows[i][0]),
                  graft_dtype_name(rows[i][1]), graft_dtype_name(dt_promote(rows[i][0], rows[i][1])));
  }
}
END_TEST

/* A format for the tests: how many bits, and how its finite values are spelled out by their definition. */
typedef struct small_format {
  graft_dtype dtype;
  int bits, fraction, bias;
  uint32_t largest, overflow;
} small_format;

static const small_format formats[] = {
    {GRAFT_F16, 16, 10, 15, 0x7bff, 0x7c00},
    {GRAFT_BF16, 16, 7, 127, 0x7f7f, 0x7f80},
    {GRAFT_F8_E4M3FN, 8, 3, 7, 0x7e, 0x7e},
    {GRAFT_F8_E5M2, 8, 2, 15, 0x7b, 0x7c},
};

static long double decode(const small_format *f, uint32_t bits) {
  int exponent = (int)(bits >> f->fraction), fraction = (int)(bits & ((1u << f->fraction) - 1));
  if (exponent == 0) return ldexpl(fraction, 1 - f->bias - f->fraction);
  return ldexpl(fraction + (1 << f->fraction), exponent - f->bias - f->fraction);
}

static uint32_t encode(const small_format *f, long double value) {
  uint32_t bits = 0;
  dt_store(f->dtype, &bits, (dt_value){value, 0});
  return bits;
}

static void check_code(const small_format *f, long double value, uint32_t expected) {
  uint32_t sign = 1u << (f->bits - 1);
  ck_assert_msg(encode(f, value) == expected, "%s: %La is 0x%x, expected 0x%x", graft_dtype_name(f->dtype), value,
                encode(f, value), expected);
  ck_assert_uint_eq(encode(f, -value), expected | sign);
}

START_TEST(small_floats_round_to_nearest_even) {
  const small_format *f = &formats[_i];
  for (uint32_t bits = 0; bits <= f->largest; bits++) {
    long double value = decode(f, bits);
    ck_assert(dt_load(f->dtype, &bits).re == value);
    check_code(f, value, bits);
    if (bits == f->largest) break;
    long double middle = (value + decode(f, bits + 1)) / 2;
    check_code(f, middle, bits & 1 ? bits + 1 : bits);
    check_code(f, nextafterl(middle, 0), bits);
    check_code(f, nextafterl(middle, INFINITY), bits + 1);
  }
}
END_TEST

START_TEST(small_floats_overflow_and_special) {
  const small_format *f = &formats[_i];
  long double step = decode(f, f->largest) - decode(f, f->largest - 1);
  long double limit = decode(f, f->largest) + step / 2; /* the largest is odd or saturates: half a step is too much */
  check_code(f, nextafterl(limit, 0), f->largest);
  check_code(f, limit, f->overflow);
  check_code(f, 1e4000L, f->overflow);
  check_code(f, INFINITY, f->overflow);
  check_code(f, 0x1p-16000L, 0);
  uint32_t nan = encode(f, NAN);
  ck_assert(isnan((double)dt_load(f->dtype, &nan).re));
  ck_assert(signbit(dt_load(f->dtype, &(uint32_t){1u << (f->bits - 1)}).re));
  for (uint32_t bits = f->overflow + 1; bits < 1u << (f->bits - 1); bits++) {
    ck_assert(isnan((double)dt_load(f->dtype, &bits).re));
  }
}
END_TEST

static uint16_t stored(graft_dtype dtype, long double value) {
  uint16_t bits;
  dt_store(dtype, &bits, (dt_value){value, 0});
  return bits;
}

/* 1 + 2^-11 + 2^-40 through f32 would lose the last bit and round down to 1. */
START_TEST(one_rounding_only) {
  ck_assert_uint_eq(stored(GRAFT_F16, 1 + 0x1p-11L + 0x1p-40L), 0x3c01);
  ck_assert_uint_eq(stored(GRAFT_F16, 1 + 0x1p-11L + 0x1p-60L), 0x3c01); /* nor through f64 */
  ck_assert_uint_eq(stored(GRAFT_BF16, 1 + 0x1p-8L + 0x1p-60L), 0x3f81);
  ck_assert(dt_round(GRAFT_F32, 1 + 0x1p-24L + 0x1p-60L) == 1 + 0x1p-23L);
}
END_TEST

START_TEST(integers_are_exact_and_wrap) {
  static const struct {
    graft_dtype dtype;
    long double from, to;
  } rows[] = {
      {GRAFT_I64, -0x1p63L, -0x1p63L},
      {GRAFT_I64, 0x1p63L - 1, 0x1p63L - 1},
      {GRAFT_U64, 0x1p64L - 1, 0x1p64L - 1},
      {GRAFT_U64, -1, 0x1p64L - 1},
      {GRAFT_U8, 300, 44},
      {GRAFT_I8, 200, -56},
      {GRAFT_I32, 3e9L, -1294967296},
      {GRAFT_U16, -1.9L, 65535},
      {GRAFT_I16, 2.9L, 2},
      {GRAFT_BOOL, -0.25L, 1},
      {GRAFT_BOOL, 0, 0},
      {GRAFT_U32, 4294967295.0L, 4294967295.0L},
      {GRAFT_I64, 1e30L, -0x1p63L},
      {GRAFT_I8, 1e30L, 0},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ck_assert_msg(dt_round(rows[i].dtype, rows[i].from) == rows[i].to, "row %zu gives %Lg", i,
                  dt_round(rows[i].dtype, rows[i].from));
  }
  ck_assert(dt_round(GRAFT_I32, NAN) == 0);
}
END_TEST

START_TEST(complex_values) {
  float pair[2] = {1.5f, -2};
  dt_value value = dt_load(GRAFT_C64, pair);
  ck_assert(value.re == 1.5L && value.im == -2);
  float real;
  dt_store(GRAFT_F32, &real, value);
  ck_assert(real == 1.5f);
  uint8_t truth;
  dt_store(GRAFT_BOOL, &truth, (dt_value){0, 2});
  ck_assert_uint_eq(truth, 1);
}
END_TEST

/* Rows with gaps, of values that wrap, overflow, round, or are not numbers: what one element after the other gives. */
START_TEST(rows_as_element_by_element) {
  enum { COUNT = 9, MOST_BYTES = 32, APART = 3, STEP = 4 };
  const graft_dtype dtype = _i < ABI_DTYPES ? dtypes[_i] : _i == ABI_DTYPES ? GRAFT_WIDE : GRAFT_WIDE_COMPLEX;
  static const long double numbers[COUNT] = {0.0L, -0.0L, 1.7L, -300.5L, 70000.0L, 1e30L, NAN, -INFINITY, 0x1p-140L};
  const int64_t bytes = APART * (int64_t)dt_bytes(dtype);
  unsigned char row[COUNT * APART * MOST_BYTES], each[sizeof row];
  for (int pairs = 0; pairs < 2; pairs++) {
    long double re[COUNT * STEP] = {0}, im[COUNT * STEP] = {0}, got_re[COUNT * STEP], got_im[COUNT * STEP];
    memset(row, 0x5a, sizeof row);
    memset(each, 0x5a, sizeof each);
    for (int i = 0; i < COUNT; i++) {
      re[i * STEP] = numbers[i], im[i * STEP] = numbers[COUNT - 1 - i];
      dt_store(dtype, each + i * bytes, (dt_value){numbers[i], pairs ? im[i * STEP] : 0});
    }
    dt_store_row(dtype, row, bytes, COUNT, (dt_parts){re, pairs ? im : NULL, STEP});
    dt_load_row(dtype, row, bytes, COUNT, (dt_parts){got_re, pairs ? got_im : NULL, STEP});
    if (dtype != GRAFT_WIDE && dtype != GRAFT_WIDE_COMPLEX) ck_assert_mem_eq(row, each, sizeof row);
    for (int i = 0; i < COUNT; i++) {
      const dt_value value = dt_load(dtype, each + i * bytes);
      ck_assert_mem_eq(&got_re[i * STEP], &value.re, LDBL_BYTES);
      if (pairs) ck_assert_mem_eq(&got_im[i * STEP], &value.im, LDBL_BYTES);
      for (int64_t k = (int64_t)dt_bytes(dtype); k < bytes; k++) ck_assert_uint_eq(row[i * bytes + k], 0x5a);
    }
  }
}
END_TEST

START_TEST(scalars_both_ways) {
  uint64_t big = UINT64_MAX;
  graft_scalar s = dt_item(GRAFT_U64, &big);
  ck_assert_uint_eq(s.dtype, GRAFT_U64);
  ck_assert(dt_scalar_value(&s).re == 0x1p64L - 1);
  uint16_t half = 0x3c00;
  s = dt_item(GRAFT_F16, &half);
  ck_assert(s.dtype == GRAFT_F64 && s.value.f == 1);
  int32_t minus = -7;
  s = dt_item(GRAFT_I32, &minus);
  ck_assert(s.dtype == GRAFT_I64 && s.value.i == -7);
  uint8_t yes = 1;
  s = dt_item(GRAFT_BOOL, &yes);
  ck_assert(s.dtype == GRAFT_BOOL && s.value.i == 1);
  double pair[2] = {1, 2};
  s = dt_item(GRAFT_C128, pair);
  ck_assert(s.dtype == GRAFT_C128 && s.value.c[1] == 2);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(numbers_names_and_sizes),
                              ONCE(categories),
                              ONCE(promotion_is_symmetric_and_idempotent),
                              ONCE(promotion_as_in_pytorch),
                              EACH(small_floats_round_to_nearest_even, ROWS(formats)),
                              EACH(small_floats_overflow_and_special, ROWS(formats)),
                              ONCE(one_rounding_only),
                              ONCE(integers_are_exact_and_wrap),
                              ONCE(complex_values),
                              EACH(rows_as_element_by_element, ABI_DTYPES + 2),
                              ONCE(scalars_both_ways),
                              {0}};
  return run_suite("dtype", tests, (suite_options){.timeout_s = 60});
}
