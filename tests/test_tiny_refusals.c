/* Graphs that are no C source: what is said names the op and what stands in the way. */
#include <math.h>
#include <string.h>

#include "tiny/tiny.h"
#include "tiny_graphs.h"

static const int64_t one[] = {1, 1}, zero[] = {0, 0};

static void unknown_op(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = NULL;
  record(r);
  OK(graft_op_gelu(x, "none", &y));
  give(r, "y", y);
}

static void turned_operand(recorded *r) {
  graft_tensor *x = F32(r, 3, 2), *turned = NULL, *y = NULL;
  record(r);
  OK(graft_op_permute(x, (int64_t[]){1, 0}, 2, &turned));
  OK(graft_op_log_softmax(turned, 1, false, &y));
  graft_tensor_release(turned);
  give(r, "y", y);
}

static void broadcast(recorded *r) {
  graft_tensor *x = F32(r, 3, 2), *row = F32(r, 2), *y = NULL;
  record(r);
  OK(graft_op_add_Tensor(x, row, graft_scalar_int(1), &y));
  give(r, "y", y);
}

static void number(recorded *r) {
  graft_tensor *x = F32(r, 1), *y = NULL;
  record(r);
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(x), graft_value_float(2)}, 2, &y, 1));
  give(r, "y", y);
}

static void doubles(recorded *r) {
  graft_tensor *x = take(r, GRAFT_F64, 1, (int64_t[]){3}), *y = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  give(r, "y", y);
}

static void whole_numbers(recorded *r) {
  graft_tensor *x = take(r, GRAFT_I32, 1, (int64_t[]){3}), *y = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  give(r, "y", y);
}

static void grouped(recorded *r) {
  graft_tensor *x = F32(r, 1, 2, 4, 4), *weight = F32(r, 2, 1, 3, 3), *y = NULL;
  record(r);
  OK(graft_op_convolution(x, weight, NULL, one, 2, one, 2, one, 2, false, zero, 2, 2, &y));
  give(r, "y", y);
}

static void odd_name(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  give(r, "layer 0", y);
}

static void one_name(recorded *r) {
  graft_tensor *x = take_named(r, "a.b_c"), *other = take_named(r, "a_b.c"), *y = NULL;
  record(r);
  OK(graft_op_mul_Tensor(x, other, &y));
  give(r, "y", y);
}

static void one_output_name(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = NULL, *z = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  OK(graft_op_mul_Tensor(x, y, &z));
  give(r, "y.0", y);
  give(r, "y_0", z);
}

static void spread_windows(recorded *r) {
  static const int64_t kernel[] = {2, 2}, two[] = {2, 2};
  graft_tensor *x = F32(r, 1, 5, 5), *y = NULL, *places = NULL;
  record(r);
  OK(graft_op_max_pool2d_with_indices(x, kernel, 2, one, 2, zero, 2, two, 2, false, &y, &places));
  graft_tensor_release(places);
  give(r, "y", y);
}

static void taken_name(recorded *r) {
  graft_tensor *x = take_named(r, "ARENA.BYTES"), *y = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  give(r, "y", y);
}

/* Products of so many numbers of i8 could be more than i32 holds. */
static void long_product(recorded *r) {
  graft_tensor *a = take(r, GRAFT_I8, 2, (int64_t[]){1, 1 << 17}), *b = take(r, GRAFT_I8, 2, (int64_t[]){1 << 17, 1});
  graft_tensor *left = NULL, *right = NULL, *y = NULL;
  record(r);
  OK(graft_op_to_copy(a, GRAFT_F32, NULL, 0, &left));
  OK(graft_op_to_copy(b, GRAFT_F32, NULL, 0, &right));
  OK(graft_op_mm(left, right, &y));
  graft_tensor_release(left);
  graft_tensor_release(right);
  give(r, "y", y);
}

static void cast_of_labels(recorded *r) {
  graft_tensor *x = take(r, GRAFT_I64, 1, (int64_t[]){3}), *y = NULL;
  record(r);
  OK(graft_op_to_copy(x, GRAFT_F32, NULL, 0, &y));
  give(r, "y", y);
}

static void half_a_clamp(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = NULL;
  record(r);
  OK(graft_op_clamp(x, graft_scalar_float(0), (graft_scalar){0}, &y));
  give(r, "y", y);
}

static void wide_grid(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = NULL, *inside = NULL;
  record(r);
  OK(graft_op_fake_quantize_per_tensor_affine_cachemask(x, 1, 0, 0, INT64_C(1) << 31, &y, &inside));
  graft_tensor_release(inside);
  give(r, "y", y);
}

/* Every second row: the elements of a sample don't follow each other. */
static void split_samples(recorded *r) {
  const int64_t two = 2;
  graft_tensor *x = F32(r, 1, 2, 8, 4), *weight = F32(r, 2, 2, 3, 3), *rows = NULL, *y = NULL;
  record(r);
  OK(graft_op_slice_Tensor(x, 2, NULL, NULL, two, &rows));
  OK(graft_op_convolution(rows, weight, NULL, one, 2, one, 2, one, 2, false, zero, 2, 1, &y));
  graft_tensor_release(rows);
  give(r, "y", y);
}

static void endless_threshold(recorded *r) {
  graft_tensor *x = F32(r, 3), *grad = F32(r, 3), *y = NULL;
  record(r);
  OK(graft_op_threshold_backward(grad, x, graft_scalar_float(-INFINITY), &y));
  give(r, "y", y);
}

/* One item is written before another, which lies in the same memory, is read. */
static void tangled_lists(recorded *r) {
  graft_tensor *x = F32(r, 3), *y = F32(r, 3), *written[] = {x, y}, *other[] = {y, x};
  record(r);
  OK(graft_call(GRAFT_OP_FOREACH_ADD_LIST,
                (graft_value[]){graft_value_tensors(written, 2), graft_value_tensors(other, 2)}, 2, written, 2));
}

/* The node behind one that a pass takes out is named by its number in the graph as it was recorded. */
static void third_node(recorded *r) {
  graft_tensor *x = F32(r, 3), *unused = NULL, *active = NULL, *y = NULL;
  record(r);
  OK(graft_op_floor(x, &unused));
  OK(graft_op_relu(x, &active));
  OK(graft_op_gelu(active, "none", &y));
  graft_tensor_release(unused);
  graft_tensor_release(active);
  give(r, "y", y);
}

static const struct refused {
  void (*record)(recorded *r);
  const char *says[2];
} refusals[] = {
    {unknown_op, {"aten::gelu", "aten::convolution"}},
    {turned_operand, {"aten::_log_softmax", "follow each other"}},
    {broadcast, {"aten::add.Tensor", "broadcast"}},
    {number, {"aten::add.Tensor", "other is a number"}},
    {doubles, {"x0", "f64"}},
    {whole_numbers, {"aten::relu", "i32"}},
    {grouped, {"aten::convolution", "groups"}},
    {odd_name, {"'layer 0'", "letters"}},
    {one_name, {"inputs 'a.b_c' and 'a_b.c'", "a_b_c"}},
    {one_output_name, {"outputs 'y.0' and 'y_0'", "otherwise"}},
    {spread_windows, {"aten::max_pool2d_with_indices", "dilation"}},
    {taken_name, {"'ARENA_BYTES'", "otherwise"}},
    {long_product, {"graph node 2: aten::mm", "131072 products of i8"}},
    {cast_of_labels, {"aten::_to_copy", "no kernel from i64 to f32"}},
    {half_a_clamp, {"aten::clamp", "a bound alone"}},
    {wide_grid, {"aten::fake_quantize_per_tensor_affine_cachemask", "quant_max is beyond 2^24"}},
    {split_samples, {"aten::convolution", "one sample of input"}},
    {endless_threshold, {"aten::threshold_backward", "threshold is no finite number"}},
    {tangled_lists, {"aten::_foreach_add.List", "item 1 of other lies in memory"}},
    {third_node, {"graph node 2: ", "aten::gelu"}},
};

START_TEST(refuses) {
  recorded r;
  tiny_info info;
  begin(&r);
  refusals[_i].record(&r);
  end(&r);
  FILE *to = fopen("/dev/null", "w");
  ck_assert_int_ne(tiny_emit(r.graph, &(tiny_options){.name = "graph"}, to, &info), GRAFT_OK);
  for (int i = 0; i < 2; i++)
    ck_assert_msg(strstr(graft_last_error(), refusals[_i].says[i]) != NULL, "%s", graft_last_error());
  fclose(to);
  graft_graph_destroy(r.graph);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(refuses, ROWS(refusals)), {0}};
  return run_suite("tiny_refusals", tests, (suite_options){.timeout_s = 60});
}
