/* graft/bridge.h: what another framework's tensors are bound to Graft with. */
#include <stdlib.h>
#include <string.h>

#include "graft/abi/op_ids.h"
#include "graft/bridge.h"
#include "graft/graft.h"
#include "suite.h"

#define OK(call)                                                    \
  do {                                                              \
    graft_status ok_status = (call);                                \
    ck_assert_msg(ok_status == GRAFT_OK, "%s", graft_last_error()); \
  } while (0)

static graft_value tensor_value(graft_tensor *tensor) {
  graft_value value = {GRAFT_VALUE_TENSOR, 0, {0}};
  value.as.tensor = tensor;
  return value;
}

static graft_view view_of(int32_t ndim, const int64_t *sizes, const int64_t *strides, int64_t offset) {
  return (graft_view){.dtype = GRAFT_F32, .ndim = ndim, .sizes = sizes, .strides = strides, .offset = offset};
}

START_TEST(a_storage_has_memory_and_a_device) {
  graft_rt_device *device = graft_device_reference();
  graft_storage *storage;
  OK(graft_storage_new(device, 24, &storage));
  ck_assert_ptr_nonnull(graft_storage_address(storage));
  ck_assert_ptr_nonnull(graft_storage_host_pointer(storage));
  ck_assert_uint_eq(graft_storage_bytes(storage), 24);
  ck_assert_ptr_eq(graft_storage_device(storage), device);
  graft_storage_retain(storage);
  graft_storage_release(storage);
  OK(graft_storage_record_stream(storage, graft_stream_current(device)));
  ck_assert(!graft_storage_has_recorded(storage));
  graft_rt_stream *other;
  OK(graft_stream_create(device, 0, 0, &other));
  OK(graft_storage_record_stream(storage, other));
  ck_assert(graft_storage_has_recorded(storage));
  graft_storage_release(storage);
  OK(graft_stream_destroy(other));
  graft_storage_release(NULL);
  OK(graft_storage_new(device, 0, &storage));
  ck_assert_uint_eq(graft_storage_bytes(storage), 0);
  graft_storage_release(storage);
}
END_TEST

START_TEST(borrowed_tensors_take_part_in_calls) {
  graft_storage *storage;
  OK(graft_storage_new(graft_device_reference(), 6 * sizeof(float), &storage));
  float *data = graft_storage_host_pointer(storage);
  for (int i = 0; i < 6; i++) data[i] = (float)i;
  /* columns 1 and 2 of a 2 x 3 matrix, transposed; and a row in host memory */
  graft_tensor_space spaces[3];
  graft_view part = view_of(2, (int64_t[]){2, 2}, (int64_t[]){1, 3}, 1);
  float numbers[2] = {10, 20};
  graft_view row = view_of(1, (int64_t[]){2}, (int64_t[]){1}, 0);
  graft_value args[2] = {tensor_value(graft_tensor_borrow(&spaces[0], storage, &part)),
                         tensor_value(graft_tensor_borrow_host(&spaces[1], numbers, sizeof numbers, &row))};
  graft_tensor *sum = NULL;
  OK(graft_call(GRAFT_OP_ADD_TENSOR, args, 2, &sum, 1));
  float values[4];
  OK(graft_tensor_to_host(sum, values));
  ck_assert_float_eq(values[0], 11);
  ck_assert_float_eq(values[1], 24);
  ck_assert_float_eq(values[2], 12);
  ck_assert_float_eq(values[3], 25);
  ck_assert_ptr_ne(graft_tensor_storage(sum), storage);
  graft_tensor_release(sum);
  /* in place, seen in the storage's version */
  graft_tensor *self = args[0].as.tensor;
  uint64_t version = graft_tensor_version(self);
  OK(graft_call(GRAFT_OP_ADD_TENSOR, args, 2, &self, 1));
  ck_assert_uint_gt(graft_tensor_version(self), version);
  ck_assert_float_eq(data[0], 0);
  ck_assert_float_eq(data[4], 24);
  graft_storage_release(storage);
}
END_TEST

static const float six[6] = {1, 2, 3, 4, 5, 6};

static graft_tensor *six_numbers(void) {
  graft_tensor *tensor = NULL;
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, 2, (int64_t[]){2, 3}, six, &tensor));
  return tensor;
}

static uint64_t bytes_in_use(void) {
  graft_memory_statistics now = {.struct_size = sizeof now};
  OK(graft_memory_stats(graft_device_reference(), &now));
  return now.allocated_bytes.current;
}

START_TEST(a_tensor_is_unpacked) {
  const uint64_t before = bytes_in_use();
  graft_tensor *tensor = six_numbers();
  graft_storage *storage = graft_tensor_storage(tensor);
  graft_tensor_parts parts;
  graft_tensor_unpack(tensor, &parts);
  ck_assert_ptr_eq(parts.storage, storage);
  ck_assert_ptr_eq(parts.device, graft_device_reference());
  ck_assert_ptr_eq(parts.address, graft_storage_address(storage));
  ck_assert_uint_eq(parts.bytes, 24);
  ck_assert_int_eq(parts.view.dtype, GRAFT_F32);
  ck_assert_int_eq(parts.view.ndim, 2);
  ck_assert_ptr_eq(parts.view.sizes, parts.sizes);
  ck_assert_ptr_eq(parts.view.strides, parts.strides);
  ck_assert_int_eq(parts.sizes[1], 3);
  ck_assert_int_eq(parts.strides[0], 3);
  ck_assert(!parts.view.offset && !parts.view.conj && !parts.view.neg);
  ck_assert_uint_gt(bytes_in_use(), before);
  graft_storage_release(parts.storage);
  ck_assert_uint_eq(bytes_in_use(), before);
}
END_TEST

START_TEST(a_tensor_that_others_hold_outlives_its_parts) {
  const uint64_t before = bytes_in_use();
  graft_tensor *tensor = six_numbers();
  float after[6];
  graft_tensor_retain(tensor);
  graft_tensor_parts parts;
  graft_tensor_unpack(tensor, &parts);
  graft_storage_release(parts.storage);
  OK(graft_tensor_to_host(tensor, after));
  ck_assert_mem_eq(six, after, sizeof six);
  graft_tensor_release(tensor);
  ck_assert_uint_eq(bytes_in_use(), before);
}
END_TEST

START_TEST(a_borrowed_conjugate_is_copied_as_one) {
  graft_storage *storage;
  OK(graft_storage_new(graft_device_reference(), 2 * sizeof(float), &storage));
  float *data = graft_storage_host_pointer(storage), result[2] = {0};
  data[0] = 3, data[1] = 4;
  graft_view view = {.dtype = GRAFT_C64, .conj = true};
  graft_view plain = {.dtype = GRAFT_C64};
  graft_tensor_space spaces[2];
  OK(graft_tensor_copy_async(graft_tensor_borrow_host(&spaces[0], result, sizeof result, &plain),
                             graft_tensor_borrow(&spaces[1], storage, &view)));
  ck_assert_float_eq(result[0], 3);
  ck_assert_float_eq(result[1], -4);
  graft_storage_release(storage);
}
END_TEST

START_TEST(questions_about_ops) {
  ck_assert(graft_op_known(GRAFT_OP_ADD_TENSOR));
  ck_assert(!graft_op_known(0));
  ck_assert_str_eq(graft_op_name(GRAFT_OP_ADD_TENSOR), "aten::add.Tensor");
  ck_assert_str_eq(graft_op_route(graft_device_reference(), GRAFT_OP_ADD_TENSOR), "plugin");
  ck_assert_str_eq(graft_op_route(graft_device_reference(), graft_op_find("prims::add")), "equal");
  ck_assert_str_eq(graft_op_route(graft_device_reference(), GRAFT_OP_SLICE_TENSOR), "host");
  ck_assert_str_eq(graft_op_route(graft_device_reference(), 0), "unsupported");
  ck_assert_ptr_null(graft_op_name(0));
  ck_assert_uint_eq(graft_exec_flags_set(GRAFT_EXEC_DETERMINISTIC), 0);
  ck_assert_uint_eq(graft_exec_flags_set(0), GRAFT_EXEC_DETERMINISTIC);
  ck_assert(!graft_is_forked());
}
END_TEST

static bool refuses(uint32_t op_id, const graft_value *args, uint32_t nargs) {
  graft_meta metas[2];
  uint32_t count;
  ck_assert_int_eq(graft_infer(op_id, args, nargs, metas, sizeof *metas, 2, &count), GRAFT_INVALID_ARGUMENT);
  return graft_refuses_dtype(op_id, args, nargs);
}

static graft_tensor *of(graft_dtype dtype, int64_t size) {
  graft_tensor *made;
  OK(graft_tensor_empty(graft_device_reference(), dtype, 1, &size, &made));
  return made;
}

START_TEST(a_refused_dtype_is_told_from_other_refusals) {
  graft_tensor *f = of(GRAFT_F32, 2), *i = of(GRAFT_I64, 2), *c = of(GRAFT_C64, 2), *b = of(GRAFT_BOOL, 2),
               *longer = of(GRAFT_I64, 3);
  const graft_value half = {GRAFT_VALUE_SCALAR, 0, {.scalar = graft_scalar_float(0.5)}};
  /* of tensors, of one in a list, of a number that promotes, of an argument */
  ck_assert(refuses(GRAFT_OP_FLOOR, (graft_value[]){tensor_value(c)}, 1));
  ck_assert(refuses(GRAFT_OP_BITWISE_AND_TENSOR, (graft_value[]){tensor_value(f), tensor_value(f)}, 2));
  ck_assert(refuses(GRAFT_OP_BITWISE_AND_TENSOR, (graft_value[]){tensor_value(i), half}, 2));
  const graft_value list = {GRAFT_VALUE_TENSORS, 2, {.tensors = (graft_tensor *[]){f, i}}};
  ck_assert(refuses(GRAFT_OP_FOREACH_LERP_SCALAR, (graft_value[]){list, list, half}, 3));
  const graft_value number = {GRAFT_VALUE_SCALAR, 0, {.scalar = graft_scalar_int(0)}},
                    steps = {GRAFT_VALUE_INT, 0, {.i = 3}}, truth = {GRAFT_VALUE_DTYPE, 0, {.dtype = GRAFT_BOOL}};
  ck_assert(refuses(GRAFT_OP_LINSPACE, (graft_value[]){number, number, steps, truth}, 4));
  /* shapes, dtypes that differ, numbers, indices; and what is not refused */
  ck_assert(!refuses(GRAFT_OP_FLOOR, (graft_value[]){{0}}, 1));
  ck_assert(!refuses(GRAFT_OP_BITWISE_AND_TENSOR, (graft_value[]){tensor_value(i), tensor_value(longer)}, 2));
  ck_assert(!refuses(GRAFT_OP_DOT, (graft_value[]){tensor_value(f), tensor_value(i)}, 2));
  ck_assert(!refuses(GRAFT_OP_ADD_TENSOR, (graft_value[]){tensor_value(i), tensor_value(i), half}, 3));
  ck_assert(!refuses(GRAFT_OP_TAKE, (graft_value[]){tensor_value(f), tensor_value(b)}, 2));
  ck_assert(!graft_refuses_dtype(GRAFT_OP_FLOOR, (graft_value[]){tensor_value(f)}, 1));
  ck_assert(!graft_refuses_dtype(0, NULL, 0));
  for (graft_tensor **t = (graft_tensor *[]){f, i, c, b, longer, NULL}; *t; t++) graft_tensor_release(*t);
}
END_TEST

START_TEST(the_default_dtype_is_the_threads) {
  int64_t values[2] = {4, 9};
  float narrow[2];
  double wide[2];
  graft_tensor *in, *out = NULL;
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_I64, 1, (int64_t[]){2}, values, &in));
  graft_value args[2] = {tensor_value(in), {GRAFT_VALUE_SCALAR, 0, {.scalar = graft_scalar_float(0.5)}}};
  ck_assert_uint_eq(graft_default_dtype_get(), GRAFT_F32);
  for (int round = 0; round < 3; round++) { /* the plan of one default is not taken for the other */
    graft_dtype dtype = round == 1 ? GRAFT_F64 : GRAFT_F32;
    OK(graft_default_dtype_set(dtype));
    OK(graft_call(GRAFT_OP_SQRT, args, 1, &out, 1));
    ck_assert_uint_eq(graft_tensor_dtype(out), dtype);
    graft_tensor_release(out);
    out = NULL;
    OK(graft_call(GRAFT_OP_ADD_SCALAR, args, 2, &out, 1));
    ck_assert_uint_eq(graft_tensor_dtype(out), dtype);
    OK(graft_tensor_to_host(out, round == 1 ? (void *)wide : narrow));
    graft_tensor_release(out);
    out = NULL;
  }
  ck_assert_double_eq(wide[1], 9.5);
  ck_assert_float_eq(narrow[1], 9.5f);
  ck_assert_int_eq(graft_default_dtype_set(GRAFT_I64), GRAFT_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "i64"));
  ck_assert_uint_eq(graft_default_dtype_get(), GRAFT_F32);
  graft_tensor_release(in);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(a_storage_has_memory_and_a_device),
                              ONCE(borrowed_tensors_take_part_in_calls),
                              ONCE(a_tensor_is_unpacked),
                              ONCE(a_tensor_that_others_hold_outlives_its_parts),
                              ONCE(a_borrowed_conjugate_is_copied_as_one),
                              ONCE(questions_about_ops),
                              ONCE(a_refused_dtype_is_told_from_other_refusals),
                              ONCE(the_default_dtype_is_the_threads),
                              {0}};
  return run_suite("bridge", tests, (suite_options){0});
}
