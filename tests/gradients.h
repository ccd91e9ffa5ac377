/* What the tests of autograd share: tensors released after each test, checks of values, ops whose results are kept. */
#ifndef GRAFT_TESTS_GRADIENTS_H
#define GRAFT_TESTS_GRADIENTS_H

#include <math.h>
#include <string.h>

#include "graft/autograd.h"
#include "graft/memory.h"
#include "graft/ops.h"
#include "marks.h"

/* Tensors that a test makes are released after it. */
enum { MAX_KEPT = 512 };
static _Thread_local graft_tensor *kept[MAX_KEPT];
static _Thread_local int nkept;
static int64_t blocks_before;

static inline graft_tensor *keep(graft_tensor *t) {
  ck_assert_int_lt(nkept, MAX_KEPT);
  return kept[nkept++] = t;
}

static inline void release_kept(void) {
  while (nkept) graft_tensor_release(kept[--nkept]);
}

static inline int64_t live_blocks(void) {
  graft_memory_statistics stats = {.struct_size = sizeof stats};
  ck_assert_int_eq(graft_memory_stats(graft_device_reference(), &stats), GRAFT_OK);
  return stats.allocation.current;
}

static inline void setup(void) {
  blocks_before = live_blocks();
}

/* Nothing may be left: a cycle of references would show here. */
static inline void teardown(void) {
  release_kept();
  ck_assert_int_eq(live_blocks(), blocks_before);
}

#define OK(call)                                                    \
  do {                                                              \
    graft_status ok_status = (call);                                \
    ck_assert_msg(ok_status == GRAFT_OK, "%s", graft_last_error()); \
  } while (0)

/* The call fails, and its text says each of the words. */
#define FAILS(call, ...)                                                                              \
  do {                                                                                                \
    ck_assert_int_ne((call), GRAFT_OK);                                                               \
    const char *fails_words[] = {__VA_ARGS__};                                                        \
    for (size_t w = 0; w < sizeof fails_words / sizeof *fails_words; w++)                             \
      ck_assert_msg(strstr(graft_last_error(), fails_words[w]) != NULL, "\"%s\" does not say \"%s\"", \
                    graft_last_error(), fails_words[w]);                                              \
  } while (0)

static inline graft_tensor *tensor_of(graft_dtype dtype, int32_t ndim, const int64_t *sizes, const void *data) {
  graft_tensor *t;
  OK(graft_tensor_from_host(graft_device_reference(), dtype, ndim, sizes, data, &t));
  return keep(t);
}

#define VALUES(...) ((const double[]){__VA_ARGS__})
#define COUNT(...)  ((int64_t)(sizeof VALUES(__VA_ARGS__) / sizeof(double)))
#define VECTOR(...) tensor_of(GRAFT_F64, 1, (const int64_t[]){COUNT(__VA_ARGS__)}, VALUES(__VA_ARGS__))
#define NUMBER(x)   tensor_of(GRAFT_F64, 0, NULL, VALUES(x))

static inline graft_tensor *leaf(graft_tensor *t) {
  OK(graft_tensor_set_requires_grad(t, true));
  return t;
}

static inline void check_values(graft_tensor *t, int64_t count, const double *expected) {
  double values[64];
  ck_assert_ptr_nonnull(t);
  ck_assert_int_eq(graft_tensor_numel(t), count);
  ck_assert_uint_eq(graft_tensor_dtype(t), GRAFT_F64);
  OK(graft_tensor_to_host(t, values));
  for (int64_t i = 0; i < count; i++) ck_assert_double_eq_tol(values[i], expected[i], 1e-12 * (1 + fabs(expected[i])));
}
#define IS(t, ...)      check_values((t), COUNT(__VA_ARGS__), VALUES(__VA_ARGS__))
#define GRAD_IS(t, ...) IS(graft_tensor_grad(t), __VA_ARGS__)

/* Ops, with results kept. */
static inline graft_tensor *mul(graft_tensor *a, graft_tensor *b) {
  graft_tensor *out = NULL;
  OK(graft_op_mul_Tensor(a, b, &out));
  return keep(out);
}
static inline graft_tensor *add(graft_tensor *a, graft_tensor *b) {
  graft_tensor *out = NULL;
  OK(graft_op_add_Tensor(a, b, graft_scalar_int(1), &out));
  return keep(out);
}
static inline graft_tensor *exp_of(graft_tensor *a) {
  graft_tensor *out = NULL;
  OK(graft_op_exp(a, &out));
  return keep(out);
}
static inline graft_tensor *select0(graft_tensor *a, int64_t index) {
  graft_tensor *out = NULL;
  OK(graft_op_select_int(a, 0, index, &out));
  return keep(out);
}
static inline graft_tensor *sum(graft_tensor *a) {
  int64_t dims[16];
  graft_tensor *out = NULL;
  for (int32_t i = 0; i < graft_tensor_ndim(a); i++) dims[i] = i;
  OK(graft_op_sum_dim_IntList(a, dims, (uint32_t)graft_tensor_ndim(a), false, 0, &out));
  return keep(out);
}
static inline graft_status backward(graft_tensor *root, graft_backward_flags flags) {
  return graft_backward(&root, NULL, 1, flags);
}

#endif
