/* What the OpenCL backend does in another way once a call has more elements than a small one's program serves, which is
 * beyond the sizes of most cases of the suite: operands that stand still along a row, tiles that are turned, and sines
 * and cosines near all multiples of a quarter turn. */
#include "opencl_groups.h"

enum { TALL = 251, WIDE = 403, COUNT = TALL * WIDE };

static graft_tensor *dense(graft_tensor *t) {
  return CALL(CLONE, T(t), {GRAFT_VALUE_MEMORY_FORMAT, 0, {.i = GRAFT_FORMAT_CONTIGUOUS}});
}

static unsigned char *bytes_of(graft_tensor *t) {
  unsigned char *bytes = malloc((size_t)t->numel * dt_bytes(graft_tensor_dtype(t)));
  ck_assert_ptr_nonnull(bytes);
  OK(graft_tensor_to_host(t, bytes));
  return bytes;
}

/* ---- operands that stand still along a row ---- */

static graft_tensor *column_of(graft_dtype dtype) {
  graft_tensor *all = filled(dtype, TALL, 3), *t;
  const int64_t sizes[] = {TALL, WIDE}, strides[] = {1, 0};
  OK(tns_new(all->storage, device, dtype, 2, sizes, strides, 0, &t));
  graft_tensor_release(all);
  return later(t);
}

static const struct still {
  const char *name;
  graft_dtype dtype, mask;
  int place; /* of the column among the operands */
} stills[] = {
    {"sub, bf16, the second", GRAFT_BF16, GRAFT_DTYPE_NONE, 1}, {"sub, f16, the first", GRAFT_F16, GRAFT_DTYPE_NONE, 0},
    {"sub, f32, the second", GRAFT_F32, GRAFT_DTYPE_NONE, 1},   {"sub, i64, the first", GRAFT_I64, GRAFT_DTYPE_NONE, 0},
    {"where, f32, its mask", GRAFT_F32, GRAFT_BOOL, 0},
};

/* The same of a matrix that holds the column's numbers. */
static graft_tensor *with(const struct still *s, graft_tensor *column, graft_tensor *other) {
  if (s->mask != GRAFT_DTYPE_NONE) return CALL(WHERE_SELF, T(column), T(other), T(CALL(NEG, T(other))));
  return s->place ? CALL(SUB_TENSOR, T(other), T(column)) : CALL(SUB_TENSOR, T(column), T(other));
}

START_TEST(columns_are_spread) {
  const struct still *s = &stills[_i];
  if (!device) return;
  graft_tensor *column = column_of(s->mask != GRAFT_DTYPE_NONE ? s->mask : s->dtype);
  graft_tensor *other = later(sized(s->dtype, TALL, WIDE, 5)), *whole = dense(column);
  ck_assert_int_eq(graft_tensor_strides(whole)[1], 1);
  graft_tensor *is = with(s, column, other), *expected = with(s, whole, other);
  unsigned char *a = bytes_of(is), *b = bytes_of(expected);
  for (size_t i = 0; i < COUNT * dt_bytes(s->dtype); i++) ck_assert_msg(a[i] == b[i], "%s: byte %zu", s->name, i);
  free(a);
  free(b);
  sweep();
}
END_TEST

/* ---- tiles that are turned: of sizes that no width of a vector divides, in front of rows that stay as they are ----
 */

enum { BESIDE = 32 };

static const graft_dtype turned[] = {GRAFT_U8, GRAFT_BF16, GRAFT_F32, GRAFT_I64, GRAFT_C128};

static unsigned char byte_at(int64_t i) {
  return (unsigned char)((uint32_t)i * 2654435761u >> 24);
}

/* Rows of a storage of bytes, which are byte_at(place) or 0. */
static graft_tensor *rows_of_bytes(graft_dtype dtype, int64_t rows, int64_t columns, bool zero) {
  const int64_t sizes[] = {rows, columns}, bytes = rows * columns * (int64_t)dt_bytes(dtype);
  unsigned char *values = calloc((size_t)bytes, 1);
  graft_tensor *t;
  ck_assert_ptr_nonnull(values);
  for (int64_t i = 0; i < bytes && !zero; i++) values[i] = byte_at(i);
  OK(graft_tensor_from_host(device, dtype, 2, sizes, values, &t));
  free(values);
  return later(t);
}

START_TEST(matrices_are_turned) {
  const graft_dtype dtype = turned[_i];
  const size_t size = dt_bytes(dtype);
  const int64_t sizes[] = {TALL, WIDE}, along[] = {WIDE, 1}, across[] = {1, TALL};
  const unsigned char zeros[16] = {0};
  if (!device) return;
  graft_tensor *from = rows_of_bytes(dtype, WIDE + 1, TALL, false),
               *to = rows_of_bytes(dtype, TALL + BESIDE, WIDE, true);
  graft_tensor *source, *target;
  OK(tns_new(from->storage, device, dtype, 2, sizes, across, TALL, &source));
  OK(tns_new(to->storage, device, dtype, 2, sizes, along, 0, &target));
  OK(graft_tensor_copy(later(target), later(source)));
  unsigned char *is = bytes_of(to), *was = bytes_of(from);
  for (int64_t i = 0; i < to->numel; i++) {
    const unsigned char *expected = i < COUNT ? was + (size_t)(TALL + i % WIDE * TALL + i / WIDE) * size : zeros;
    ck_assert_msg(!memcmp(is + (size_t)i * size, expected, size), "of %zu bytes: element %d", size, (int)i);
  }
  free(is);
  free(was);
  sweep();
}
END_TEST

/* ---- sines and cosines ---- */

#define NEAR_MOST 32768.0f /* as functions.cl has it */

/* The floats about multiples of a quarter turn, of either sign, and beyond those that are near, to the largest. */
static float wave_at(int64_t i) {
  float x = (float)((double)(i / 4) * M_PI_2);
  if (i / 4 > 22000) x = (float)ldexp(1 + (double)(i % 1000) / 1000, 15 + (int)(i / 1000 % 112));
  return (i & 1 ? -1.0f : 1.0f) * (i & 2 ? nextafterf(x, INFINITY) : x);
}

START_TEST(waves_are_right) {
  if (!device) return;
  float *x = malloc(COUNT * sizeof *x);
  ck_assert_ptr_nonnull(x);
  for (int64_t i = 0; i < COUNT; i++) x[i] = wave_at(i);
  graft_tensor *t;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (const int64_t[]){COUNT}, x, &t));
  later(t);
  for (int cosine = 0; cosine < 2; cosine++) {
    float *is = (float *)(void *)bytes_of(cosine ? CALL(COS, T(t)) : CALL(SIN, T(t)));
    for (int64_t i = 0; i < COUNT; i++) {
      const double expected = cosine ? cos((double)x[i]) : sin((double)x[i]);
      const double limit = fabsf(x[i]) <= NEAR_MOST ? 1 : 4; /* ulp; beyond, what OpenCL lets a driver be off */
      const double ulp = ldexp(1, (expected == 0 ? -125 : ilogb(expected)) - 23);
      ck_assert_msg(fabs(is[i] - expected) <= limit * ulp && !signbit(is[i]) == !signbit(expected),
                    "%s(%a) is %a, expected %a", cosine ? "cos" : "sin", (double)x[i], (double)is[i], expected);
    }
    free(is);
  }
  free(x);
  sweep();
}
END_TEST

int main(void) {
  const suite_test tests[] = {
      EACH(matrices_are_turned, ROWS(turned)), ONCE(waves_are_right), EACH(columns_are_spread, ROWS(stills)), {0}};
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1);
  const int failed = run_suite("opencl_large", tests, on_one_device(open_for_cpus));
  return run_suite("opencl_large_of_gpus", tests, on_one_device(open_for_gpus)) || failed;
}
