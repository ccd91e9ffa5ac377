/* Gradients on the reference device that can be checked by hand, those of gradients among them. */
#include "gradients.h"
#include "suite.h"

static graft_tensor *cube(graft_tensor *a) {
  graft_tensor *out = NULL;
  OK(graft_op_pow_Tensor_Scalar(a, graft_scalar_int(3), &out));
  return keep(out);
}

/* --- values --- */

START_TEST(product_and_sum) {
  graft_tensor *a = leaf(VECTOR(1, 2, 3)), *b = leaf(VECTOR(4, 5, 6));
  graft_tensor *y = sum(add(mul(a, b), a));
  ck_assert(graft_tensor_requires_grad(y));
  ck_assert(!graft_tensor_is_leaf(y));
  ck_assert(graft_tensor_is_leaf(a));
  OK(backward(y, 0));
  GRAD_IS(a, 5, 6, 7);
  GRAD_IS(b, 1, 2, 3);
  ck_assert_ptr_null(graft_tensor_grad(y));
  ck_assert(!graft_tensor_requires_grad(graft_tensor_grad(a)));
}
END_TEST

START_TEST(diamond) {
  graft_tensor *x = leaf(NUMBER(3));
  graft_tensor *y = mul(x, x), *left = mul(y, x), *right = mul(y, y);
  OK(backward(add(left, right), 0)); /* x^3 + x^4 */
  GRAD_IS(x, 3 * 9 + 4 * 27);
}
END_TEST

START_TEST(same_tensor_twice) {
  graft_tensor *a = leaf(VECTOR(1, 2));
  OK(backward(sum(add(a, a)), 0));
  GRAD_IS(a, 2, 2);
}
END_TEST

START_TEST(given_gradient) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *g = VECTOR(10, 100);
  graft_tensor *y = mul(a, a);
  FAILS(backward(y, 0), "root 0", "one element");
  OK(graft_backward(&y, &g, 1, 0));
  GRAD_IS(a, 20, 400);
  IS(g, 10, 100);
}
END_TEST

START_TEST(several_roots) {
  graft_tensor *a = leaf(NUMBER(2));
  graft_tensor *y = mul(a, a), *z = mul(y, a);
  OK(graft_backward((graft_tensor *[]){y, z, a}, NULL, 3, 0)); /* y is below z as well */
  GRAD_IS(a, 4 + 12 + 1);
}
END_TEST

START_TEST(broadcast_is_summed) {
  graft_tensor *row = leaf(VECTOR(1, 2, 3)), *number = leaf(NUMBER(10));
  graft_tensor *matrix = leaf(tensor_of(GRAFT_F64, 2, (const int64_t[]){2, 3}, VALUES(1, 2, 3, 4, 5, 6)));
  graft_tensor *column = leaf(tensor_of(GRAFT_F64, 2, (const int64_t[]){2, 1}, VALUES(7, 8)));
  OK(backward(sum(mul(add(mul(matrix, row), number), column)), 0));
  GRAD_IS(row, 1 * 7 + 4 * 8, 2 * 7 + 5 * 8, 3 * 7 + 6 * 8);
  GRAD_IS(number, 3 * 7 + 3 * 8);
  GRAD_IS(column, 14 + 30, 32 + 30);
  ck_assert_int_eq(graft_tensor_ndim(graft_tensor_grad(column)), 2);
  ck_assert_int_eq(graft_tensor_ndim(graft_tensor_grad(number)), 0);
}
END_TEST

START_TEST(dtype_is_cast_back) {
  const float ones[] = {1, 2};
  graft_tensor *half = leaf(tensor_of(GRAFT_F32, 1, (const int64_t[]){2}, ones)), *wide = leaf(VECTOR(3, 4));
  OK(backward(sum(mul(half, wide)), 0));
  GRAD_IS(wide, 1, 2);
  ck_assert_uint_eq(graft_tensor_dtype(graft_tensor_grad(half)), GRAFT_F32);
  float values[2];
  OK(graft_tensor_to_host(graft_tensor_grad(half), values));
  ck_assert(values[0] == 3 && values[1] == 4);
}
END_TEST

START_TEST(views) {
  graft_tensor *a = leaf(VECTOR(1, 2, 3));
  OK(backward(mul(select0(a, 1), select0(a, 2)), 0));
  GRAD_IS(a, 0, 3, 2);
}
END_TEST

START_TEST(list_argument) {
  graft_tensor *a = leaf(VECTOR(1, 2)), *b = VECTOR(5), *c = leaf(VECTOR(3)), *all = NULL;
  OK(graft_op_cat((graft_tensor *[]){a, b, c}, 3, 0, &all));
  keep(all);
  OK(backward(sum(mul(all, all)), 0));
  GRAD_IS(a, 2, 4);
  GRAD_IS(c, 6);
  ck_assert_ptr_null(graft_tensor_grad(b));
}
END_TEST

START_TEST(integer_results_have_no_history) {
  graft_tensor *a = leaf(VECTOR(3, 1, 2)), *values = NULL, *indices = NULL;
  OK(graft_op_sort(a, 0, false, &values, &indices));
  keep(values), keep(indices);
  ck_assert(graft_tensor_requires_grad(values));
  ck_assert(!graft_tensor_requires_grad(indices));
  OK(backward(sum(mul(values, VECTOR(10, 20, 30))), 0));
  GRAD_IS(a, 30, 10, 20);
}
END_TEST

/* --- higher orders --- */

START_TEST(gradient_of_gradient) {
  graft_tensor *x = leaf(NUMBER(2)), *y = cube(x), *first = NULL, *second = NULL, *third = NULL;
  OK(graft_grad(&y, NULL, 1, &x, 1, GRAFT_BACKWARD_CREATE_GRAPH, &first));
  keep(first);
  IS(first, 12);
  ck_assert(graft_tensor_requires_grad(first));
  OK(graft_grad(&first, NULL, 1, &x, 1, GRAFT_BACKWARD_CREATE_GRAPH, &second));
  keep(second);
  IS(second, 12);
  OK(graft_grad(&second, NULL, 1, &x, 1, 0, &third));
  keep(third);
  IS(third, 6);
  ck_assert(!graft_tensor_requires_grad(third));
}
END_TEST

START_TEST(gradient_through_saved_result) {
  graft_tensor *x = leaf(VECTOR(0.5, -1)), *y = sum(exp_of(x)), *first = NULL, *second = NULL;
  OK(graft_grad(&y, NULL, 1, &x, 1, GRAFT_BACKWARD_CREATE_GRAPH, &first));
  keep(first);
  graft_tensor *again = sum(first);
  OK(graft_grad(&again, NULL, 1, &x, 1, 0, &second));
  IS(keep(second), exp(0.5), exp(-1));
}
END_TEST

static graft_status turn_grad_mode_off(void *context, graft_tensor *grad, graft_tensor **replacement) {
  (void)context, (void)grad, (void)replacement;
  graft_grad_mode_set(false);
  return GRAFT_OK;
}

/* What a formula emits follows from the flags of the backward, not from a mode that a hook may change meanwhile. */
START_TEST(create_graph_holds_behind_a_hook) {
  graft_tensor *x = leaf(VECTOR(1, 2)), *y = NULL, *rstd = NULL, *first = NULL;
  const int64_t shape[] = {2};
  OK(graft_op_fused_rms_norm(x, shape, 1, NULL, NULL, &y, &rstd));
  keep(y), keep(rstd);
  uint64_t handle;
  OK(graft_tensor_add_hook(y, turn_grad_mode_off, NULL, &handle));
  graft_tensor *total = sum(y);
  OK(graft_grad(&total, NULL, 1, &x, 1, GRAFT_BACKWARD_CREATE_GRAPH, &first));
  ck_assert(graft_tensor_requires_grad(keep(first)));
  ck_assert(graft_grad_mode());
}
END_TEST

START_TEST(accumulated_gradient_has_history_with_create_graph) {
  graft_tensor *x = leaf(NUMBER(2));
  OK(backward(cube(x), GRAFT_BACKWARD_CREATE_GRAPH));
  graft_tensor *first = graft_tensor_grad(x);
  ck_assert(graft_tensor_requires_grad(first));
  graft_tensor_retain(first);
  keep(first);
  OK(graft_tensor_set_grad(x, NULL)); /* else x holds a gradient whose history holds x */
  OK(backward(first, 0));
  GRAD_IS(x, 12);
}
END_TEST

/* --- where a formula divides by 0 --- */

/* All ones: of rank 1, so that the determinant is 0 in all directions, too. */
static graft_tensor *singular(void) {
  return leaf(tensor_of(GRAFT_F64, 2, (const int64_t[]){3, 3}, VALUES(1, 1, 1, 1, 1, 1, 1, 1, 1)));
}

START_TEST(determinants_of_singular_matrices) {
  graft_tensor *a = singular(), *b = singular(), *outs[4] = {NULL};
  double values[9];
  OK(graft_op_linalg_det(a, &outs[0], &outs[1], &outs[2]));
  for (int i = 0; i < 3; i++) keep(outs[i]);
  OK(backward(outs[0], 0));
  GRAD_IS(a, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  OK(graft_op_linalg_slogdet(b, &outs[0], &outs[1], &outs[2],
                             &outs[3])); /* the logarithm of 0, whose slope is not finite */
  for (int i = 0; i < 4; i++) keep(outs[i]);
  OK(backward(outs[1], 0));
  OK(graft_tensor_to_host(graft_tensor_grad(b), values));
  for (int i = 0; i < 9; i++) ck_assert(!isfinite(values[i]));
}
END_TEST

/* A mask without dims takes all of a tensor, or nothing. */
START_TEST(put_by_one_truth) {
  for (int truth = 0; truth < 2; truth++) {
    graft_tensor *mask = tensor_of(GRAFT_BOOL, 0, NULL, &(const uint8_t){(uint8_t)truth}), *out = NULL;
    graft_tensor *x = leaf(VECTOR(1, 2, 3)), *y = leaf(NUMBER(4));
    OK(graft_op_index_put(x, &mask, 1, y, false, &out));
    OK(backward(sum(mul(keep(out), VECTOR(7, 8, 9))), 0));
    if (truth)
      GRAD_IS(x, 0, 0, 0);
    else
      GRAD_IS(x, 7, 8, 9);
    GRAD_IS(y, truth ? 24 : 0);
  }
}
END_TEST

/* The logarithm of a base that is negative or complex is complex: the gradients are those of a tensor with that number.
 */
START_TEST(powers_of_a_number_with_complex_exponents) {
  const double bases[][2] = {{-1.5, 0}, {1, 2}, {0, -3}, {0, 0}}, *base = bases[_i];
  const double exponents[] = {1, 2, 0.5, -1};
  graft_scalar number = {.dtype = GRAFT_C128, .value.c = {base[0], base[1]}};
  if (base[1] == 0) number = graft_scalar_float(base[0]);
  graft_tensor *x = leaf(tensor_of(GRAFT_C128, 1, (const int64_t[]){2}, exponents)), *out = NULL;
  graft_tensor *y = leaf(tensor_of(GRAFT_C128, 1, (const int64_t[]){2}, exponents)), *other = NULL;
  graft_tensor *ones = tensor_of(GRAFT_C128, 1, (const int64_t[]){2}, (const double[]){1, 0, 1, 0});
  double slopes[4], wanted[4];
  OK(graft_op_pow_Scalar(number, x, &out));
  OK(graft_op_pow_Tensor_Tensor(tensor_of(GRAFT_C128, 0, NULL, base), y, &other));
  OK(graft_backward((graft_tensor *[]){keep(out), keep(other)}, (graft_tensor *[]){ones, ones}, 2, 0));
  OK(graft_tensor_to_host(graft_tensor_grad(x), slopes));
  OK(graft_tensor_to_host(graft_tensor_grad(y), wanted));
  for (int i = 0; i < 4; i++) ck_assert_double_eq_tol(slopes[i], wanted[i], 1e-12 * (1 + fabs(wanted[i])));
}
END_TEST

/* One that is zero everywhere is there all the same, as PyTorch has it: an optimizer passes over what has none. */
START_TEST(zeros_are_gradients) {
  graft_status (*const ops[])(graft_tensor *, graft_tensor *, graft_tensor **) = {graft_op_copysign_Tensor,
                                                                                  graft_op_nextafter};
  graft_tensor *x = leaf(VECTOR(2, -3)), *y = leaf(VECTOR(-1, 5)), *out = NULL;
  OK(ops[_i](x, y, &out));
  OK(backward(sum(keep(out)), 0));
  ck_assert_ptr_nonnull(graft_tensor_grad(y));
  GRAD_IS(y, 0, 0);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(product_and_sum),
                              ONCE(diamond),
                              ONCE(same_tensor_twice),
                              ONCE(given_gradient),
                              ONCE(several_roots),
                              ONCE(broadcast_is_summed),
                              ONCE(dtype_is_cast_back),
                              ONCE(views),
                              ONCE(list_argument),
                              ONCE(integer_results_have_no_history),
                              ONCE(gradient_of_gradient),
                              ONCE(gradient_through_saved_result),
                              ONCE(create_graph_holds_behind_a_hook),
                              ONCE(accumulated_gradient_has_history_with_create_graph),
                              ONCE(determinants_of_singular_matrices),
                              ONCE(put_by_one_truth),
                              EACH(powers_of_a_number_with_complex_exponents, 4),
                              EACH(zeros_are_gradients, 2),
                              {0}};
  return run_suite("gradients", tests, (suite_options){.setup = setup, .teardown = teardown, .timeout_s = 60});
}
