/* The way of a call: plans, policy, in-place and out forms, numbers, prims, fallbacks. On the reference device and on
 * the null plugin, whose add does nothing. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/dispatch.h"
#include "graft/graft.h"
#include "heap.h"
#include "null_device.h"
#include "suite.h"

static graft_tensor *tensor(const float *values, int32_t ndim, const int64_t *sizes) {
  graft_tensor *t;
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, ndim, sizes, values, &t));
  return t;
}

static graft_tensor *vector(int64_t n, const float *values) {
  return tensor(values, 1, (int64_t[]){n});
}

static graft_value boxed(graft_tensor *t) {
  return (graft_value){GRAFT_VALUE_TENSOR, 0, {.tensor = t}};
}

START_TEST(in_place_and_out) {
  graft_tensor *a = vector(3, (float[]){1, 2, 3}), *b = vector(3, (float[]){10, 20, 30}), *out;
  uint64_t version = graft_tensor_version(a);
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(a), graft_value_tensor(b)}, 2, &a, 1));
  expect(a, 3, (float[]){11, 22, 33});
  ck_assert(graft_tensor_version(a) > version);
  OK(graft_tensor_empty(graft_device_reference(), GRAFT_F64, 1, (int64_t[]){3}, &out));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){graft_value_tensor(a), graft_value_tensor(b)}, 2, &out,
                1)); /* the given output is wider */
  double wide[3];
  OK(graft_tensor_to_host(out, wide));
  ck_assert(wide[2] == 990);
  graft_tensor_release(a);
  graft_tensor_release(b);
  graft_tensor_release(out);
}
END_TEST

/* The typed functions only give: what their pointers hold is not a tensor to write to. */
START_TEST(typed_calls_only_give) {
  graft_tensor *a = vector(3, (float[]){1, 2, 3}), *b = vector(3, (float[]){9, 9, 9}), *out = b;
  OK(graft_op_neg(a, &out));
  ck_assert_ptr_ne(out, b);
  expect(b, 3, (float[]){9, 9, 9});
  expect(out, 3, (float[]){-1, -2, -3});
  graft_tensor *items[] = {a, b}, *outs[] = {a, b};
  OK(graft_op_foreach_neg(items, 2, outs));
  ck_assert(outs[0] != a && outs[1] != b);
  expect(a, 3, (float[]){1, 2, 3});
  expect(outs[1], 3, (float[]){-9, -9, -9});
  graft_tensor *before = out;
  ck_assert_int_eq(graft_op_mm(a, b, &out), GRAFT_INVALID_ARGUMENT);
  ck_assert_ptr_eq(out, before);
  graft_tensor *all[] = {a, b, out, outs[0], outs[1]};
  for (int i = 0; i < ROWS(all); i++) graft_tensor_release(all[i]);
}
END_TEST

START_TEST(out_is_checked) {
  graft_tensor *a = vector(3, (float[]){1, 2, 3}), *narrow, *small, *wide = NULL;
  OK(graft_tensor_empty(graft_device_reference(), GRAFT_I32, 1, (int64_t[]){3}, &narrow));
  OK(graft_tensor_empty(graft_device_reference(), GRAFT_F32, 1, (int64_t[]){2}, &small));
  ck_assert_int_eq(
      graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(a), graft_value_tensor(a)}, 2, &narrow, 1),
      GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "i32"), "%s", graft_last_error());
  ck_assert_int_eq(
      graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(a), graft_value_tensor(a)}, 2, &small, 1),
      GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "f32[2]"), "%s", graft_last_error());
  OK(graft_op_expand(a, (int64_t[]){2, 3}, 2, false, &wide));
  ck_assert_int_eq(
      graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(a), graft_value_tensor(wide)}, 2, &wide, 1),
      GRAFT_INVALID_ARGUMENT); /* overlaps itself */
  graft_tensor_release(a);
  graft_tensor_release(narrow);
  graft_tensor_release(small);
  graft_tensor_release(wide);
}
END_TEST

START_TEST(partial_overlap) {
  graft_tensor *a = vector(4, (float[]){1, 2, 3, 4}), *head = NULL, *tail = NULL;
  int64_t zero = 0, one = 1, three = 3, four = 4;
  OK(graft_op_slice_Tensor(a, 0, &zero, &three, 1, &head));
  OK(graft_op_slice_Tensor(a, 0, &one, &four, 1, &tail));
  ck_assert_int_eq(graft_call(GRAFT_OP_NEG, (graft_value[]){graft_value_tensor(head)}, 1, &tail, 1),
                   GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "clone()"), "%s", graft_last_error());
  expect(a, 4, (float[]){1, 2, 3, 4}); /* nothing was written */
  graft_tensor_release(a);
  graft_tensor_release(head);
  graft_tensor_release(tail);
}
END_TEST

START_TEST(numbers_promote_by_category) {
  graft_tensor *half, *out = NULL, *i = NULL;
  OK(graft_tensor_empty(graft_device_reference(), GRAFT_BF16, 1, (int64_t[]){1}, &half));
  graft_value fill[] = {boxed(half), {GRAFT_VALUE_SCALAR, 0, {.scalar = graft_scalar_int(13)}}};
  OK(graft_call(GRAFT_OP_FILL_SCALAR, fill, 2, &half, 1));
  graft_value args[] = {boxed(half), {GRAFT_VALUE_FLOAT, 0, {.f = 0.1}}};
  OK(graft_call(GRAFT_OP_MUL_TENSOR, args, 2, &out, 1));
  ck_assert_uint_eq(graft_tensor_dtype(out), GRAFT_BF16);
  graft_scalar value;
  OK(graft_tensor_item(out, &value));
  ck_assert(value.value.f == 1.296875); /* the number keeps its digits: 13 * bf16(0.1) would be 1.3046875 */
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_I32, 1, (int64_t[]){1}, (int32_t[]){2}, &i));
  graft_tensor_release(out);
  out = NULL;
  args[0] = boxed(i);
  OK(graft_call(GRAFT_OP_MUL_TENSOR, args, 2, &out, 1));
  ck_assert_uint_eq(graft_tensor_dtype(out), GRAFT_F32);
  graft_tensor_release(out);
  graft_tensor_release(i);
  graft_tensor_release(half);
}
END_TEST

START_TEST(prims_are_the_aten_ops) {
  graft_tensor *a = tensor((float[]){1, 2, 3, 4, 5, 6}, 2, (int64_t[]){2, 3}), *out = NULL;
  graft_value add[] = {boxed(a), boxed(a)};
  OK(graft_call(GRAFT_OP_PRIMS_ADD, add, 2, &out, 1));
  expect(out, 6, (float[]){2, 4, 6, 8, 10, 12});
  graft_tensor_release(out);
  out = NULL;
  int64_t dims[] = {1};
  graft_value sum[] = {boxed(a), {GRAFT_VALUE_INTS, 1, {.ints = dims}}};
  OK(graft_call(GRAFT_OP_PRIMS_SUM, sum, 2, &out, 1));
  expect(out, 2, (float[]){6, 15});
  graft_tensor_release(out);
  out = NULL;
  graft_value cast[] = {boxed(a), {GRAFT_VALUE_DTYPE, 0, {.dtype = GRAFT_I64}}};
  OK(graft_call(GRAFT_OP_PRIMS_CONVERT_ELEMENT_TYPE, cast, 2, &out, 1));
  ck_assert_uint_eq(graft_tensor_dtype(out), GRAFT_I64);
  graft_tensor_release(out);
  graft_tensor_release(a);
}
END_TEST

START_TEST(errors_name_the_op) {
  graft_tensor *a = tensor((float[]){1, 2, 3, 4, 5, 6}, 2, (int64_t[]){2, 3}), *b = vector(2, (float[]){1, 2}),
               *out = NULL;
  ck_assert_int_eq(graft_op_add_Tensor(a, b, graft_scalar_none(), &out), GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "aten::add.Tensor") && strstr(graft_last_error(), "f32[2,3]") &&
                    strstr(graft_last_error(), "f32[2]"),
                "%s", graft_last_error());
  ck_assert_ptr_null(out);
  ck_assert_int_eq(graft_op_mm(a, a, &out), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_call(GRAFT_OP_MM, &(graft_value){0}, 1, &out, 1), GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "self"), "%s", graft_last_error());
  ck_assert_int_eq(graft_call(999999, NULL, 0, &out, 1), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_op_gelu(a, "tnah", &out), GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "tnah"), "%s", graft_last_error());
  const graft_dtype unknown = 0x4d;
  ck_assert_int_eq(graft_op_cumsum(a, 0, unknown, &out), GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "aten::cumsum") && strstr(graft_last_error(), "0x0000004d"), "%s",
                graft_last_error());
  graft_tensor_release(a);
  graft_tensor_release(b);
}
END_TEST

/* Where an op takes tensors it is called with numbers: with nothing else, behind a tensor, and before one. Each call
 * answers, and none reads what a number has not. */
/* UPLO is one letter, small or not, and it says which triangle is read. */
START_TEST(letters_are_known_small) {
  static const char *const letters[] = {"L", "l", "U", "u"};
  graft_tensor *a = tensor((float[]){2, 1, 0, 2}, 2, (int64_t[]){2, 2}), *outs[2];
  for (int i = 0; i < ROWS(letters); i++) {
    OK(graft_op_linalg_eigh(a, letters[i], true, &outs[0], &outs[1]));
    expect(outs[0], 2, i < 2 ? (float[]){2, 2} : (float[]){1, 3});
    graft_tensor_release(outs[0]);
    graft_tensor_release(outs[1]);
  }
  ck_assert_int_eq(graft_op_linalg_eigh(a, "x", true, &outs[0], &outs[1]), GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "argument UPLO can't be 'x'; expected one of 'L', 'U'"), "%s",
                graft_last_error());
  ck_assert_int_eq(graft_op_linalg_eigh(a, "ul", true, &outs[0], &outs[1]), GRAFT_INVALID_ARGUMENT);
  graft_tensor_release(a);
}
END_TEST

START_TEST(numbers_in_place_of_tensors) {
  enum { ALL, BEHIND, BEFORE, PATTERNS };
  static const int64_t sizes[] = {64, 64}, dims[] = {0, 1};
  graft_tensor *x = NULL;
  OK(graft_op_full(sizes, 2, graft_scalar_float(2), GRAFT_F32, graft_device_reference(), &x));
  size_t count;
  const op_schema *schemas = op_schema_all(&count);
  int refused = 0;
  for (size_t i = 0; i < PATTERNS * count; i++) {
    const op_schema *schema = &schemas[i / PATTERNS];
    graft_value args[OP_MAX_ARGS] = {0};
    graft_tensor *outs[16] = {NULL};
    int pattern = i % PATTERNS, seen = 0;
    for (uint32_t k = 0; k < schema->nargs; k++) {
      if (schema->args[k].kind == OPK_INTS) args[k] = graft_value_ints(dims, 2);
      if (schema->args[k].kind == OPK_INT) args[k] = graft_value_int(1);
      if (schema->args[k].kind != OPK_TENSOR) continue;
      bool number = pattern == ALL || (pattern == BEHIND) == (seen++ > 0);
      args[k] = number ? graft_value_scalar(graft_scalar_float(-1.5)) : graft_value_tensor(x);
    }
    if (!seen && pattern != ALL) continue;
    refused += graft_call(schema->id, args, schema->nargs, outs, schema->nrets) != GRAFT_OK;
    for (int k = 0; k < ROWS(outs); k++) graft_tensor_release(outs[k]);
  }
  ck_assert_int_gt(refused, 0);
  graft_tensor *out = NULL;
  const graft_value number = graft_value_scalar(graft_scalar_float(1.5));
  ck_assert_int_eq(graft_call(GRAFT_OP_CLONE, &number, 1, &out, 1), GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "self is a number"), "%s", graft_last_error());
  ck_assert_int_eq(graft_prepare(GRAFT_OP_CLONE, &number, 1), GRAFT_INVALID_ARGUMENT);
  const graft_value right = graft_value_tensor(x);
  ck_assert_int_eq(graft_call(GRAFT_OP_ALIAS, &right, 1, NULL, 0), GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "room for 0"), "%s", graft_last_error());
  graft_tensor_release(x);
}
END_TEST

START_TEST(empty_tensors) {
  graft_tensor *none = tensor(NULL, 2, (int64_t[]){0, 3}), *out = NULL;
  OK(graft_op_exp(none, &out));
  ck_assert_int_eq(graft_tensor_numel(out), 0);
  graft_tensor_release(out);
  out = NULL;
  OK(graft_op_sum_dim_IntList(none, (int64_t[]){0}, 1, false, GRAFT_DTYPE_NONE, &out));
  expect(out, 3, (float[]){0, 0, 0});
  graft_tensor_release(out);
  out = NULL;
  OK(graft_op_nonzero(none, &out));
  ck_assert_int_eq(graft_tensor_sizes(out)[0], 0);
  graft_tensor_release(out);
  out = NULL;
  OK(graft_op_full(NULL, 0, graft_scalar_float(3), GRAFT_F32, graft_device_reference(),
                   &out)); /* a list without items */
  ck_assert_int_eq(graft_tensor_ndim(out), 0);
  expect(out, 1, (float[]){3});
  graft_tensor_release(out);
  graft_tensor_release(none);
}
END_TEST

/* Longer than any room on the stack, and than what a call or a plan once had for its lists. */
START_TEST(a_list_has_no_limit) {
  enum { PARTS = 1000 };
  static const int64_t ones[PARTS] = {[0 ... PARTS - 1] = 1};
  static graft_tensor *parts[PARTS];
  static graft_meta metas[PARTS];
  graft_tensor *whole;
  uint32_t count = 0;
  OK(graft_tensor_empty(graft_device_reference(), GRAFT_F32, 1, (int64_t[]){PARTS}, &whole));
  const graft_value sizes = {GRAFT_VALUE_INTS, PARTS, {.ints = ones}}, call[] = {boxed(whole), sizes};
  OK(graft_infer(GRAFT_OP_SPLIT_WITH_SIZES, call, 2, metas, sizeof *metas, PARTS, &count));
  ck_assert_uint_eq(count, PARTS);
  ck_assert(metas[PARTS - 1].ndim == 1 && metas[PARTS - 1].sizes[0] == 1);
  OK(graft_call(GRAFT_OP_SPLIT_WITH_SIZES, call, 2, parts, PARTS));
  for (int i = 0; i < PARTS; i++) graft_tensor_release(parts[i]);
  /* Each dim once, or an error that says so: never an end of the process. */
  graft_tensor *out = NULL;
  const graft_value dims[] = {boxed(whole), sizes};
  ck_assert_int_eq(graft_call(GRAFT_OP_FLIP, dims, 2, &out, 1), GRAFT_OUT_OF_RANGE);
  ck_assert_int_eq(graft_call(GRAFT_OP_ROLL, (graft_value[]){boxed(whole), sizes, sizes}, 3, &out, 1),
                   GRAFT_INVALID_ARGUMENT);
  graft_tensor_release(whole);
}
END_TEST

START_TEST(no_malloc_on_the_hot_path) {
  graft_rt_device *device = null_device(NULL);
  graft_tensor *a, *b, *out;
  OK(graft_tensor_empty(device, GRAFT_F32, 2, (int64_t[]){4, 4}, &a));
  OK(graft_tensor_empty(device, GRAFT_F32, 2, (int64_t[]){4, 4}, &b));
  OK(graft_tensor_empty(device, GRAFT_F32, 2, (int64_t[]){4, 4}, &out));
  graft_value args[] = {graft_value_tensor(a), graft_value_tensor(b)};
  OK(graft_call(GRAFT_OP_ADD_TENSOR, args, 2, &out, 1));
  ck_assert_int_eq(dsp_last_route(), DSP_ROUTE_PLUGIN);
  uint64_t before = heap_calls; /* asserts of Check go to the heap, too */
  graft_status status = GRAFT_OK;
  for (int i = 0; i < 1000 && !status; i++) status = graft_call(GRAFT_OP_ADD_TENSOR, args, 2, &out, 1);
  uint64_t after = heap_calls;
  OK(status);
  ck_assert_uint_eq(after, before);
  graft_tensor_release(a);
  graft_tensor_release(b);
  graft_tensor_release(out);
}
END_TEST

static uint64_t count_fallbacks(uint32_t op_id) {
  graft_fallback_info rows[256];
  size_t count = graft_fallbacks(rows, sizeof *rows, 256);
  uint64_t sum = 0;
  for (size_t i = 0; i < count && i < 256; i++) sum += rows[i].op_id == op_id ? rows[i].count : 0;
  return sum;
}

START_TEST(fallbacks_are_counted_and_right) {
  graft_rt_device *device = null_device(NULL);
  graft_tensor *a, *out = NULL;
  float values[] = {1, 4, 9};
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){3}, values, &a));
  uint64_t before = count_fallbacks(GRAFT_OP_SQRT);
  OK(graft_op_sqrt(a, &out));
  ck_assert_int_eq(dsp_last_route(), DSP_ROUTE_REFERENCE);
  ck_assert_ptr_eq(graft_tensor_device(out), device);
  expect(out, 3, (float[]){1, 2, 3});
  ck_assert_uint_eq(count_fallbacks(GRAFT_OP_SQRT), before + 1);
  graft_tensor_release(a);
  graft_tensor_release(out);
}
END_TEST

/* An application of another time knows other sizes of the structs in its arrays. */
START_TEST(rows_are_as_long_as_the_caller_says) {
  graft_tensor *t = tensor((float[]){1, 2, 3, 4, 5, 6}, 2, (int64_t[]){2, 3});
  graft_value args[] = {graft_value_tensor(t), graft_value_int(1)};
  struct {
    graft_meta meta;
    uint64_t later;
  } longer[3];
  struct {
    graft_dtype dtype;
    int32_t ndim;
  } shorter[3];
  uint32_t count = 0;
  memset(longer, 0xff, sizeof longer);
  memset(shorter, 0xff, sizeof shorter);
  OK(graft_infer(GRAFT_OP_MAX_DIM, args, 2, &longer[0].meta, sizeof longer[0], 3, &count));
  ck_assert_uint_eq(count, 2);
  ck_assert_int_eq(longer[1].meta.dtype, GRAFT_I64);
  ck_assert_int_eq(longer[1].meta.sizes[0], 2);
  ck_assert_uint_eq(longer[0].later, 0);
  ck_assert_uint_eq(longer[2].later, UINT64_MAX);
  OK(graft_infer(GRAFT_OP_MAX_DIM, args, 2, (graft_meta *)(void *)shorter, sizeof shorter[0], 3, &count));
  ck_assert_int_eq(shorter[0].dtype, GRAFT_F32);
  ck_assert_int_eq(shorter[1].dtype, GRAFT_I64);
  ck_assert_int_eq(shorter[1].ndim, 1);
  ck_assert_int_eq(shorter[2].ndim, -1);
  graft_tensor_release(t);
}
END_TEST

START_TEST(rows_of_fallbacks_are_as_long_as_the_caller_says) {
  graft_rt_device *device = null_device(NULL);
  graft_tensor *x, *out = NULL;
  struct {
    graft_fallback_info info;
    uint64_t later;
  } longer[3];
  struct {
    uint32_t op_id;
    const char *device;
  } shorter[3];
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){3}, (float[]){1, 4, 9}, &x));
  OK(graft_op_sqrt(x, &out));
  graft_tensor_release(out);
  out = NULL;
  OK(graft_op_sin(x, &out));
  memset(longer, 0xff, sizeof longer);
  memset(shorter, 0xff, sizeof shorter);
  ck_assert_uint_eq(graft_fallbacks(&longer[0].info, sizeof longer[0], 3), 2);
  ck_assert_uint_eq(graft_fallbacks((graft_fallback_info *)(void *)shorter, sizeof shorter[0], 3), 2);
  const uint32_t ids[] = {GRAFT_OP_SQRT, GRAFT_OP_SIN};
  for (int i = 0; i < 2; i++) {
    ck_assert_uint_eq(longer[i].info.op_id, ids[i]);
    ck_assert_uint_eq(longer[i].info.count, 1);
    ck_assert_uint_eq(longer[i].later, 0);
    ck_assert_uint_eq(shorter[i].op_id, ids[i]);
    ck_assert_str_eq(shorter[i].device, graft_device_text(device));
  }
  ck_assert_uint_eq(longer[2].later, UINT64_MAX);
  ck_assert_uint_eq(shorter[2].op_id, UINT32_MAX);
  graft_tensor_release(x);
  graft_tensor_release(out);
}
END_TEST

START_TEST(devices_do_not_mix) {
  graft_rt_device *device = null_device(NULL);
  graft_tensor *a, *b = vector(3, (float[]){1, 2, 3}), *out = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){3}, (float[]){1, 2, 3}, &a));
  ck_assert_int_eq(graft_op_mul_Tensor(a, b, &out), GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(strstr(graft_last_error(), "reference:0"), "%s", graft_last_error());
  ck_assert_ptr_null(out);
  graft_tensor_release(a);
  graft_tensor_release(b);
}
END_TEST

START_TEST(equal_seeds_draw_equal_numbers) {
  graft_tensor *x = vector(8, (float[]){1, 1, 1, 1, 1, 1, 1, 1}), *first = NULL, *second = NULL, *mask = NULL,
               *other = NULL;
  graft_generator *generator = graft_generator_default(graft_device_reference());
  graft_generator_seed(generator, 42);
  OK(graft_op_native_dropout(x, 0.5, NULL, &first, &mask));
  uint64_t seed, offset;
  graft_generator_state(generator, &seed, &offset);
  ck_assert_uint_eq(offset, 8);
  graft_generator_seed(generator, 42);
  OK(graft_op_native_dropout(x, 0.5, NULL, &second, &other));
  float values[8];
  OK(graft_tensor_to_host(first, values));
  expect(second, 8, values);
  graft_tensor_release(x);
  graft_tensor_release(first);
  graft_tensor_release(second);
  graft_tensor_release(mask);
  graft_tensor_release(other);
}
END_TEST

int main(void) {
  setenv("GRAFT_FALLBACK", "allow", 1);
  const suite_test tests[] = {ONCE(in_place_and_out),
                              ONCE(typed_calls_only_give),
                              ONCE(rows_are_as_long_as_the_caller_says),
                              ONCE(rows_of_fallbacks_are_as_long_as_the_caller_says),
                              ONCE(out_is_checked),
                              ONCE(partial_overlap),
                              ONCE(numbers_promote_by_category),
                              ONCE(prims_are_the_aten_ops),
                              ONCE(errors_name_the_op),
                              ONCE(letters_are_known_small),
                              ONCE(numbers_in_place_of_tensors),
                              ONCE(empty_tensors),
                              ONCE(a_list_has_no_limit),
                              ONCE(no_malloc_on_the_hot_path),
                              ONCE(fallbacks_are_counted_and_right),
                              ONCE(devices_do_not_mix),
                              ONCE(equal_seeds_draw_equal_numbers),
                              {0}};
  return run_suite("dispatch", tests, (suite_options){0});
}
