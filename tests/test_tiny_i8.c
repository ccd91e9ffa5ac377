/* Quantized graphs as C sources: values that are whole numbers of i8 take a byte each, and what a source gives is what
 * the graph gives on the reference backend, which has all of them as f32, to the bit. Gradients are whole numbers here,
 * so that no sum is rounded, whatever its order. */
#include "tiny_sources.h"

static const int64_t one[] = {1, 1}, zero[] = {0, 0}, two[] = {2, 2};

static graft_tensor *take_i8(recorded *r, int32_t ndim, const int64_t *sizes) {
  return take(r, GRAFT_I8, ndim, sizes);
}
#define I8(r, ...) \
  take_i8(r, (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

/* As f32; the argument stays the caller's. */
static graft_tensor *widened(graft_tensor *x) {
  graft_tensor *y = NULL;
  OK(graft_op_to_copy(x, GRAFT_F32, NULL, 0, &y));
  return y;
}

static graft_tensor *times(graft_tensor *x, double factor) {
  graft_tensor *y = NULL;
  const graft_value call[] = {graft_value_tensor(x), graft_value_scalar(graft_scalar_float(factor))};
  OK(graft_call(GRAFT_OP_MUL_TENSOR, call, 2, &y, 1));
  return y;
}

/* x times a factor as whole numbers; the mask goes to *inside, where that is not NULL. */
static graft_tensor *quantized(graft_tensor *x, double factor, int low, int high, graft_tensor **inside) {
  graft_tensor *scaled = times(x, factor), *y = NULL, *mask = NULL;
  OK(graft_op_fake_quantize_per_tensor_affine_cachemask(scaled, 1, 0, low, high, &y, &mask));
  graft_tensor_release(scaled);
  if (inside)
    *inside = mask;
  else
    graft_tensor_release(mask);
  return y;
}

static void drop(graft_tensor *a, graft_tensor *b) {
  graft_tensor_release(a);
  graft_tensor_release(b);
}

/* --- sums of products --- */

static void products(recorded *r) {
  const graft_scalar unit = graft_scalar_int(1);
  graft_tensor *a = I8(r, 5, 70), *b = I8(r, 6, 70), *bias = take(r, GRAFT_I32, 1, (int64_t[]){6});
  graft_tensor *turned = NULL, *mm = NULL, *addmm = NULL;
  record(r);
  graft_tensor *left = widened(a), *right = widened(b), *first = widened(bias);
  OK(graft_op_permute(right, (int64_t[]){1, 0}, 2, &turned));
  OK(graft_op_mm(left, turned, &mm));
  OK(graft_op_addmm(first, left, turned, unit, unit, &addmm));
  drop(left, right);
  drop(first, turned);
  give(r, "mm", mm);
  give(r, "addmm", addmm);
}

/* One operand of i8 and one of f32, on either side. */
static void mixed_products(recorded *r) {
  const graft_scalar unit = graft_scalar_int(1);
  graft_tensor *grad = F32(r, 5, 6), *x = I8(r, 5, 7), *weight = I8(r, 7, 6), *column = F32(r, 7, 1), *row = F32(r, 7);
  graft_tensor *back = NULL, *turned = NULL, *dx = NULL, *dweight = NULL, *by_column = NULL, *by_row = NULL;
  record(r);
  graft_tensor *wide_x = widened(x), *wide_weight = widened(weight);
  OK(graft_op_permute(wide_x, (int64_t[]){1, 0}, 2, &back));
  OK(graft_op_permute(wide_weight, (int64_t[]){1, 0}, 2, &turned));
  OK(graft_op_mm(grad, turned, &dx));
  OK(graft_op_mm(back, grad, &dweight));
  OK(graft_op_addmm(column, back, grad, unit, unit, &by_column));
  OK(graft_op_addmm(row, grad, turned, unit, unit, &by_row));
  drop(wide_x, wide_weight);
  drop(back, turned);
  give(r, "dx", dx);
  give(r, "dweight", dweight);
  give(r, "by_column", by_column);
  give(r, "by_row", by_row);
}

static const int64_t stride[] = {2, 3}, padding[] = {1, 2}, dilation[] = {1, 3};

static void convolution(recorded *r) {
  graft_tensor *x = I8(r, 2, 3, 7, 8), *weight = I8(r, 4, 3, 3, 2), *bias = take(r, GRAFT_I32, 1, (int64_t[]){4});
  graft_tensor *y = NULL, *plain = NULL, *some = NULL, *few = NULL;
  const int64_t first = 1, end_ = 3;
  record(r);
  graft_tensor *wide = widened(x), *taps = widened(weight), *begin_ = widened(bias);
  OK(graft_op_convolution(wide, taps, begin_, stride, 2, padding, 2, dilation, 2, false, zero, 2, 1, &y));
  OK(graft_op_convolution(wide, taps, NULL, one, 2, zero, 2, one, 2, false, zero, 2, 1, &plain));
  OK(graft_op_slice_Tensor(taps, 0, &first, &end_, 1, &some)); /* some outputs */
  OK(graft_op_convolution(wide, some, NULL, one, 2, zero, 2, one, 2, false, zero, 2, 1, &few));
  drop(wide, taps);
  drop(begin_, some);
  give(r, "y", y);
  give(r, "plain", plain);
  give(r, "few", few);
}

static void convolution_gradients(recorded *r) {
  static const uint8_t all[] = {1, 1, 1};
  graft_tensor *grad = F32(r, 2, 4, 4, 3), *x = I8(r, 2, 3, 7, 8), *weight = I8(r, 4, 3, 3, 2);
  graft_tensor *dx = NULL, *dweight = NULL, *dbias = NULL;
  record(r);
  graft_tensor *wide = widened(x), *taps = widened(weight);
  OK(graft_op_convolution_backward(grad, wide, taps, (int64_t[]){4}, 1, stride, 2, padding, 2, dilation, 2, false, zero,
                                   2, 1, all, &dx, &dweight, &dbias));
  drop(wide, taps);
  give(r, "dx", dx);
  give(r, "dweight", dweight);
  give(r, "dbias", dbias);
}

/* Of the channels 1 and 2 of four outputs: the gradient is a view whose samples don't follow each other. */
static void chosen_channels(recorded *r) {
  static const uint8_t wanted[] = {0, 1, 1};
  const int64_t first = 1, end_ = 3;
  graft_tensor *grad = F32(r, 2, 4, 5, 6), *x = I8(r, 2, 3, 7, 8), *weight = I8(r, 4, 3, 3, 3);
  graft_tensor *some = NULL, *filters = NULL, *to = NULL, *none = NULL, *dweight = NULL, *dbias = NULL, *moved = NULL;
  record(r);
  graft_tensor *wide = widened(x), *taps = widened(weight);
  OK(graft_op_slice_Tensor(grad, 1, &first, &end_, 1, &some));
  OK(graft_op_slice_Tensor(taps, 0, &first, &end_, 1, &filters));
  OK(graft_op_slice_Tensor(weight, 0, &first, &end_, 1, &to));
  OK(graft_op_convolution_backward(some, wide, filters, (int64_t[]){2}, 1, one, 2, zero, 2, one, 2, false, zero, 2, 1,
                                   wanted, &none, &dweight, &dbias));
  OK(graft_op_sub_Tensor(filters, dweight, graft_scalar_float(0.03125), &moved));
  graft_tensor *held = quantized(moved, 1, -127, 127, NULL);
  OK(graft_tensor_copy(to, held));
  drop(wide, taps);
  drop(some, filters);
  drop(to, dweight);
  drop(moved, held);
  give(r, "dbias", dbias);
}

/* --- to whole numbers and back --- */

/* A source's first multiplication has halves, and numbers beyond both ends; a grid that is none of i8 stays f32. */
static void grids(recorded *r) {
  graft_tensor *x = F32(r, 200), *weight = I8(r, 200, 2), *row = NULL, *sums = NULL, *coarse = NULL, *inside = NULL;
  graft_tensor *mask = NULL, *low_mask = NULL, *masked = NULL;
  record(r);
  graft_tensor *whole = quantized(x, 199.5, -90, 100, &mask), *taps = widened(weight);
  OK(graft_op_view(whole, (int64_t[]){1, 200}, 2, &row));
  OK(graft_op_mm(row, taps, &sums));
  OK(graft_op_mul_Tensor(x, mask, &masked));
  OK(graft_op_fake_quantize_per_tensor_affine_cachemask(x, 0.0117, 3, -60, 70, &coarse, &inside));
  graft_tensor *positive = quantized(x, 300, 0, 255, &low_mask); /* more than i8 holds */
  drop(whole, taps);
  drop(row, NULL);
  give(r, "sums", sums);
  give(r, "mask", mask);
  give(r, "masked", masked);
  give(r, "coarse", coarse);
  give(r, "inside", inside);
  give(r, "positive", positive);
  graft_tensor_release(low_mask);
}

/* Windows over whole numbers, which a product reads, and their gradient. */
static void pooling(recorded *r) {
  graft_tensor *x = F32(r, 2, 3, 7, 6), *grad = F32(r, 2, 3, 4, 4), *weight = I8(r, 96, 1);
  graft_tensor *y = NULL, *places = NULL, *dx = NULL, *row = NULL, *sum = NULL;
  record(r);
  graft_tensor *whole = quantized(x, 3, -127, 127, NULL), *taps = widened(weight); /* many are equal */
  OK(graft_op_max_pool2d_with_indices(whole, two, 2, two, 2, one, 2, one, 2, false, &y, &places));
  OK(graft_op_max_pool2d_with_indices_backward(grad, whole, two, 2, two, 2, one, 2, one, 2, false, places, &dx));
  OK(graft_op_view(y, (int64_t[]){1, 96}, 2, &row));
  OK(graft_op_mm(row, taps, &sum));
  drop(whole, taps);
  drop(row, y);
  give(r, "places", places);
  give(r, "dx", dx);
  give(r, "sum", sum);
}

/* Casts whose result is read as f32, and those back. */
static void casts(recorded *r) {
  graft_tensor *bytes = I8(r, 40), *words = take(r, GRAFT_I32, 1, (int64_t[]){40}), *x = F32(r, 40), *whole = NULL;
  graft_tensor *ceiling = NULL;
  record(r);
  graft_tensor *wide = widened(bytes), *exact = widened(words), *large = times(x, 120);
  OK(graft_op_floor(large, &whole));
  OK(graft_op_round(exact, &ceiling));
  OK(graft_tensor_copy(words, whole));
  OK(graft_tensor_copy(bytes, whole));
  drop(large, whole);
  give(r, "wide", wide);
  give(r, "exact", exact);
  give(r, "rounded", ceiling);
}

/* A weight of i8 learns: up or down at random. */
static void random_rounding(recorded *r) {
  const int64_t size = 201;
  graft_tensor *weight = I8(r, size), *grad = F32(r, size), *moved = NULL, *chance = NULL, *sum = NULL, *whole = NULL;
  graft_tensor *held = NULL;
  record(r);
  graft_tensor *wide = widened(weight);
  OK(graft_op_sub_Tensor(wide, grad, graft_scalar_float(2.7), &moved));
  OK(graft_op_rand(&size, 1, GRAFT_F32, graft_device_reference(), &chance));
  OK(graft_op_add_Tensor(moved, chance, graft_scalar_int(1), &sum));
  OK(graft_op_floor(sum, &whole));
  OK(graft_op_clamp(whole, graft_scalar_float(-127), graft_scalar_float(127), &held));
  OK(graft_tensor_copy(weight, held));
  drop(wide, moved);
  drop(sum, whole);
  drop(held, NULL);
  give(r, "chance", chance);
}

/* A cast that is read behind a write to what it was cast from is a copy. */
static void written_before(recorded *r) {
  graft_tensor *weight = I8(r, 4, 5), *other = I8(r, 5, 3), *x = F32(r, 4, 5), *before = NULL, *after = NULL;
  record(r);
  graft_tensor *old = widened(weight), *right = widened(other), *large = quantized(x, 100, -127, 127, NULL);
  OK(graft_tensor_copy(weight, large));
  graft_tensor *now = widened(weight);
  OK(graft_op_mm(old, right, &before));
  OK(graft_op_mm(now, right, &after));
  drop(old, right);
  drop(now, large);
  give(r, "before", before);
  give(r, "after", after);
}

static const row rows[] = {
    {"products", products, 0, 0, 0, 1},
    {"mixed_products", mixed_products, 0, 0, 0, 1},
    {"convolution", convolution, 0, 0, 0, 1},
    {"convolution_gradients", convolution_gradients, 0, 0, 0, 1},
    {"chosen_channels", chosen_channels, 0, 0, 0, 1},
    {"grids", grids, 0, 0, 0, 0},
    {"pooling", pooling, 0, 0, 0, 1},
    {"casts", casts, 0, 0, 0, 0},
    {"random_rounding", random_rounding, 0, 0, 0, 0},
    {"written_before", written_before, 0, 0, 0, 0},
};

START_TEST(gives_what_the_graph_gives) {
  check_row(&rows[_i]);
}
END_TEST

/* --- what it takes --- */

static void expect_arena(const row *row, uint64_t bytes) {
  recorded r;
  begin(&r);
  row->record(&r);
  end(&r);
  const tiny_info info = emit(r.graph, NULL);
  ck_assert_msg(info.arena_bytes == bytes, "%s: %llu bytes", row->name, (unsigned long long)info.arena_bytes);
  graft_graph_destroy(r.graph);
}

/* Operands that stay as they are take no memory, beside a bias of six and sums of 30. What is written before it is read
 * takes 20 bytes; so do whole numbers and their mask, beside what they were before: each a multiple of 8. */
START_TEST(takes_a_byte_each) {
  expect_arena(&(row){"products", products, 0, 0, 0, 0}, 6 * 4 + 30 * 4 + 30 * 4);
  expect_arena(&(row){"written_before", written_before, 0, 0, 0, 0}, 24 + 80 + 24 + 24);
}
END_TEST

/* The next run draws on from where the run before stopped, and a caller can begin anew. */
START_TEST(draws_on) {
  const int64_t size = 5;
  float got[4][5], wanted[2][5];
  recorded r;
  graft_tensor *chance = NULL;
  begin(&r);
  record(&r);
  OK(graft_op_rand(&size, 1, GRAFT_F32, graft_device_reference(), &chance));
  give(&r, "chance", chance);
  end(&r);
  graft_generator_set_state(graft_generator_default(graft_device_reference()), 77, 0);
  emit(r.graph, NULL);
  void *library = compiled(1);
  uint64_t *state = dlsym(library, "graph_random");
  ck_assert(state && state[0] == 77 && state[1] == 0);
  for (int i = 0; i < 4; i++) {
    if (i == 2) state[0] = 78, state[1] = 0;
    ((caller)dlsym(library, "call"))((void *[]){got[i]});
  }
  for (int i = 0; i < 2; i++) {
    OK(graft_op_rand(&size, 1, GRAFT_F32, graft_device_reference(), (chance = NULL, &chance)));
    OK(graft_tensor_to_host(chance, wanted[i]));
    graft_tensor_release(chance);
  }
  ck_assert(!memcmp(got, wanted, sizeof wanted));
  ck_assert(memcmp(got[0], got[2], sizeof got[0]) != 0 && state[1] == 16);
  graft_graph_destroy(r.graph);
}
END_TEST

int main(void) {
  const suite_test tests[] = {
      EACH(gives_what_the_graph_gives, ROWS(rows)), ONCE(takes_a_byte_each), ONCE(draws_on), {0}};
  return run_suite("tiny_i8", tests,
                   (suite_options){.timeout_s = 120, .setup = make_folder, .teardown = remove_folder});
}
