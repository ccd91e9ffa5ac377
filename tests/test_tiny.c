/* Graphs as C sources: what a compiled source gives is what libgraft gives on the reference backend, and what sources
 * hold. */
#include "tiny_sources.h"

static const int64_t one[] = {1, 1}, zero[] = {0, 0};

static void products(recorded *r) {
  const graft_scalar unit = graft_scalar_int(1);
  graft_tensor *a = F32(r, 5, 7), *b = F32(r, 6, 7), *bias = F32(r, 6), *column = F32(r, 5, 1);
  graft_tensor *turned = NULL, *back = NULL, *mm = NULL, *addmm = NULL, *other = NULL;
  record(r);
  OK(graft_op_permute(b, (int64_t[]){1, 0}, 2, &turned));
  OK(graft_op_mm(a, turned, &mm));
  OK(graft_op_addmm(bias, a, turned, unit, unit, &addmm));
  OK(graft_op_permute(a, (int64_t[]){1, 0}, 2, &back));
  OK(graft_op_addmm(column, a, back, unit, unit, &other));
  graft_tensor_release(turned);
  graft_tensor_release(back);
  give(r, "mm", mm);
  give(r, "addmm", addmm);
  give(r, "column", other);
}

enum { OUT_HEIGHT = 4, OUT_WIDTH = 3 }; /* of 7 by 8, by a kernel of 3 by 2 with the steps below */
static const int64_t stride[] = {2, 3}, padding[] = {1, 2}, dilation[] = {1, 3};

static void convolution(recorded *r) {
  graft_tensor *x = F32(r, 2, 3, 7, 8), *weight = F32(r, 4, 3, 3, 2), *bias = F32(r, 4), *y = NULL, *plain = NULL;
  record(r);
  OK(graft_op_convolution(x, weight, bias, stride, 2, padding, 2, dilation, 2, false, zero, 2, 1, &y));
  OK(graft_op_convolution(x, weight, NULL, one, 2, zero, 2, one, 2, false, zero, 2, 1, &plain));
  give(r, "y", y);
  give(r, "plain", plain);
}

static void convolution_gradients(recorded *r) {
  static const uint8_t all[] = {1, 1, 1};
  graft_tensor *grad = F32(r, 2, 4, OUT_HEIGHT, OUT_WIDTH), *x = F32(r, 2, 3, 7, 8), *weight = F32(r, 4, 3, 3, 2);
  graft_tensor *dx = NULL, *dweight = NULL, *dbias = NULL;
  record(r);
  OK(graft_op_convolution_backward(grad, x, weight, (int64_t[]){4}, 1, stride, 2, padding, 2, dilation, 2, false, zero,
                                   2, 1, all, &dx, &dweight, &dbias));
  give(r, "dx", dx);
  give(r, "dweight", dweight);
  give(r, "dbias", dbias);
}

static void sums(recorded *r) {
  graft_tensor *x = F32(r, 3, 4, 5), *outer = NULL, *inner = NULL, *both = NULL;
  record(r);
  OK(graft_op_sum_dim_IntList(x, (int64_t[]){0}, 1, true, GRAFT_F32, &outer));
  OK(graft_op_sum_dim_IntList(x, (int64_t[]){-1, 1}, 2, false, GRAFT_F32, &inner));
  OK(graft_op_sum_dim_IntList(x, (int64_t[]){0, 2}, 2, false, GRAFT_F32, &both));
  give(r, "outer", outer);
  give(r, "inner", inner);
  give(r, "both", both);
}

/* A step in place: parameter -= 0.3 gradient, and what was before it as it is seen after it. */
static void step_in_place(recorded *r) {
  graft_tensor *weight = F32(r, 30), *grad = F32(r, 30), *scaled = NULL, *sum = NULL, *product = NULL;
  record(r);
  OK(graft_op_mul_Tensor(weight, grad, &scaled));
  OK(graft_op_add_Tensor(scaled, grad, graft_scalar_float(0.7), &sum));
  OK(graft_op_mul_Tensor(sum, scaled, &product)); /* the sum may not lie where `scaled` still is */
  const graft_value call[] = {graft_value_tensor(weight), graft_value_tensor(grad),
                              graft_value_scalar(graft_scalar_float(-0.3))};
  OK(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &weight, 1));
  graft_tensor_release(scaled);
  graft_tensor_release(sum);
  give(r, "product", product);
}

static void rectified(recorded *r) {
  graft_tensor *x = F32(r, 40), *grad = F32(r, 40), *y = NULL, *dx = NULL;
  record(r);
  OK(graft_op_relu(x, &y));
  OK(graft_op_threshold_backward(grad, x, graft_scalar_float(0.25), &dx));
  give(r, "y", y);
  give(r, "dx", dx);
}

/* Windows that overlap and reach over the edge. */
static void pooling(recorded *r) {
  static const int64_t kernel[] = {3, 2}, steps[] = {2, 1}, edge[] = {1, 1};
  graft_tensor *x = F32(r, 2, 3, 7, 6), *grad = F32(r, 2, 3, 4, 7), *y = NULL, *places = NULL, *dx = NULL;
  record(r);
  OK(graft_op_max_pool2d_with_indices(x, kernel, 2, steps, 2, edge, 2, one, 2, false, &y, &places));
  OK(graft_op_max_pool2d_with_indices_backward(grad, x, kernel, 2, steps, 2, edge, 2, one, 2, false, places, &dx));
  give(r, "y", y);
  give(r, "places", places);
  give(r, "dx", dx);
}

/* Two gradients of two losses; the second label of each three is one that does not count. */
static void losses(recorded *r) {
  enum { ROWS_ = 6, CLASSES = 10, IGNORED = 1 };
  graft_tensor *x = F32(r, ROWS_, CLASSES), *grad = F32(r, ROWS_, CLASSES);
  graft_tensor *target = take(r, GRAFT_I64, 1, (int64_t[]){ROWS_}), *loss_grad = F32(r, 1);
  graft_tensor *logs = NULL, *dx = NULL, *scalar = NULL;
  record(r);
  OK(graft_op_log_softmax(x, 1, false, &logs));
  OK(graft_op_log_softmax_backward_data(grad, logs, 1, GRAFT_F32, &dx));
  OK(graft_op_view(loss_grad, NULL, 0, &scalar));
  for (int64_t mean = 1; mean <= 2; mean++) { /* 2: the sum */
    graft_tensor *loss = NULL, *total = NULL, *dlogs = NULL;
    OK(graft_op_nll_loss_forward(logs, target, NULL, mean, IGNORED, &loss, &total));
    OK(graft_op_nll_loss_backward(scalar, logs, target, NULL, mean, IGNORED, total, &dlogs));
    give(r, mean == 1 ? "mean" : "sum", loss);
    give(r, mean == 1 ? "dmean" : "dsum", dlogs);
    graft_tensor_release(total);
  }
  graft_tensor_release(scalar);
  give(r, "logs", logs);
  give(r, "dx", dx);
}

/* A step of a network on whole numbers and a loss without a softmax: nothing is rounded anywhere, so all bits agree,
 * whatever lies where in memory. */
static void exact_step(recorded *r) {
  static const int64_t two[] = {2, 2};
  graft_tensor *x = F32(r, 2, 2, 6, 6), *target = take(r, GRAFT_I64, 1, (int64_t[]){2});
  graft_tensor *parameters[] = {F32(r, 3, 2, 3, 3), F32(r, 3), F32(r, 27, 4), F32(r, 4)};
  graft_tensor *sums_ = NULL, *active = NULL, *pooled = NULL, *places = NULL, *flat = NULL, *scores = NULL;
  graft_tensor *loss = NULL, *total = NULL;
  const graft_scalar unit = graft_scalar_int(1);
  for (int i = 0; i < 4; i++) OK(graft_tensor_set_requires_grad(parameters[i], true));
  record(r);
  OK(graft_op_convolution(x, parameters[0], parameters[1], one, 2, one, 2, one, 2, false, zero, 2, 1, &sums_));
  OK(graft_op_relu(sums_, &active));
  OK(graft_op_max_pool2d_with_indices(active, two, 2, two, 2, zero, 2, one, 2, false, &pooled, &places));
  OK(graft_op_view(pooled, (int64_t[]){2, 27}, 2, &flat));
  OK(graft_op_addmm(parameters[3], flat, parameters[2], unit, unit, &scores));
  OK(graft_op_nll_loss_forward(scores, target, NULL, 2, -100, &loss, &total));
  OK(graft_backward(&loss, NULL, 1, 0));
  graft_grad_mode_set(false);
  for (int i = 0; i < 4; i++) {
    const graft_value call[] = {graft_value_tensor(parameters[i]), graft_value_tensor(graft_tensor_grad(parameters[i])),
                                graft_value_scalar(graft_scalar_float(0.25))};
    OK(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &parameters[i], 1));
    OK(graft_tensor_set_grad(parameters[i], NULL));
  }
  graft_grad_mode_set(true);
  graft_tensor *inner[] = {sums_, active, pooled, places, flat, scores, total};
  for (int i = 0; i < 7; i++) graft_tensor_release(inner[i]);
  give(r, "loss", loss);
}

/* On lists of two, as optimizers do it in place: the last argument, which may be absent, is a number. */
static void on_lists(uint32_t op, graft_tensor **written, graft_tensor **other, graft_scalar number) {
  graft_value call[3] = {graft_value_tensors(written, 2)};
  uint32_t count = 1;
  if (other) call[count++] = graft_value_tensors(other, 2);
  if (number.dtype) call[count++] = graft_value_scalar(number);
  OK(graft_call(op, call, count, written, 2));
}

/* Momentum with decay, and a step: of parameters, gradients and momenta of two shapes. */
static void descent(recorded *r) {
  graft_tensor *p[] = {F32(r, 30), F32(r, 2, 3)}, *grads[] = {F32(r, 30), F32(r, 2, 3)};
  graft_tensor *momenta[] = {F32(r, 30), F32(r, 2, 3)}, *decayed[2] = {NULL}, *turned[2] = {NULL}, *product[2] = {NULL};
  graft_tensor *moved[2] = {NULL};
  record(r);
  OK(graft_op_foreach_add_List(grads, 2, p, 2, graft_scalar_float(0.01), decayed));
  on_lists(GRAFT_OP_FOREACH_MUL_SCALAR, momenta, NULL, graft_scalar_float(0.9));
  on_lists(GRAFT_OP_FOREACH_ADD_LIST, momenta, decayed, graft_scalar_float(0.75));
  OK(graft_op_foreach_neg(momenta, 2, turned));
  OK(graft_op_foreach_mul_List(turned, 2, decayed, 2, product));
  OK(graft_op_foreach_addcmul_Scalar(p, 2, momenta, 2, decayed, 2, graft_scalar_float(0.5), moved));
  on_lists(GRAFT_OP_FOREACH_SUB_LIST, moved, momenta, graft_scalar_float(0.1));
  on_lists(GRAFT_OP_FOREACH_COPY, p, moved, (graft_scalar){0});
  on_lists(GRAFT_OP_FOREACH_ZERO, grads, NULL, (graft_scalar){0});
  graft_tensor *inner[] = {decayed[0], decayed[1], turned[0], turned[1], moved[0], moved[1]};
  for (int i = 0; i < 6; i++) graft_tensor_release(inner[i]);
  give(r, "product0", product[0]);
  give(r, "product1", product[1]);
}

/* What one step holds for the next, and numbers that begin as one. */
static void copies(recorded *r) {
  graft_tensor *x = F32(r, 30), *like = F32(r, 4), *before = NULL, *ones = NULL, *whole = NULL;
  const graft_value call[] = {graft_value_tensor(x), graft_value_scalar(graft_scalar_float(2.5))};
  record(r);
  OK(graft_op_clone(x, GRAFT_FORMAT_CONTIGUOUS, &before));
  OK(graft_op_fill_Scalar(like, graft_scalar_int(1), &ones));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, call, 2, &x, 1));
  OK(graft_op_floor(x, &whole));
  give(r, "before", before);
  give(r, "ones", ones);
  give(r, "whole", whole);
}

/* A batch of none: there is no value that takes memory, but calls that name where one would lie. */
static void empty_batch(recorded *r) {
  graft_tensor *x = F32(r, 0, 4), *weight = F32(r, 4, 3), *image = F32(r, 0, 2, 5, 5), *filter = F32(r, 2, 2, 3, 3);
  graft_tensor *active = NULL, *scores = NULL, *logs = NULL, *filtered = NULL;
  record(r);
  OK(graft_op_relu(x, &active));
  OK(graft_op_mm(active, weight, &scores));
  OK(graft_op_log_softmax(scores, 1, false, &logs));
  OK(graft_op_convolution(image, filter, NULL, one, 2, one, 2, one, 2, false, zero, 2, 1, &filtered));
  graft_tensor_release(active);
  graft_tensor_release(scores);
  give(r, "logs", logs);
  give(r, "filtered", filtered);
}

/* An argument is written from values without elements: only what is read lies where values do. */
static void empty_sum(recorded *r) {
  graft_tensor *x = F32(r, 3, 0), *weight = F32(r, 0, 2), *sum = F32(r, 3, 2), *active = NULL;
  record(r);
  OK(graft_op_relu(x, &active));
  OK(graft_call(GRAFT_OP_MM, (graft_value[]){graft_value_tensor(active), graft_value_tensor(weight)}, 2, &sum, 1));
  graft_tensor_release(active);
}

static const row rows[] = {
    {"products", products, 8, 15, 0, 0},
    {"convolution", convolution, 3 * 3 * 2 + 1, 7, 0, 0},
    {"convolution_gradients", convolution_gradients, 2 * OUT_HEIGHT *OUT_WIDTH, 7, 0,
     0}, /* a weight's; an x's: 4 * 6 */
    {"sums", sums, 20, 1, 0, 0},
    {"step_in_place", step_in_place, 4, 3, 0, 0}, /* 0.7 in f32, two products, two sums */
    /* Numbers below 2, so each rounding is off by 1 at most. Decayed gradients have two, momenta three more, products
     * of both one more: 5 * 1.01 + 2 * 1.66 + 1 < 10; a step three, half of those of the products, and two more: < 12.
     * The reference has no more. */
    {"descent", descent, 0, 0, 2 * 12, 0},
    {"copies", copies, 0, 0, 0, 0},
    {"rectified", rectified, 0, 0, 0, 0},
    {"pooling", pooling, 6, 2, 0, 0}, /* an x lies in at most 2 by 2 windows */
    /* Of 10 numbers from -1 to 1: log_softmax is off by its exp (the argument, 2 at most, and 2 for expf), 9 sums,
     * logf (2 of log 10 < 3), two subtractions (2 + 5): 30; its gradient by exp of those 30 and 3 more, times the sum
     * of at most 10, and by 9 of that sum and one product and one subtraction each: 30 * 10 + 9 * 10 + 2 * 10 + 11; a
     * loss by six of the first and as many sums of numbers up to 5. */
    {"losses", losses, 0, 0, 30 * 10 + 9 * 10 + 2 * 10 + 11, 0},
    {"exact_step", exact_step, 0, 0, 0, 1},
    {"empty_batch", empty_batch, 0, 0, 0, 0},
    {"empty_sum", empty_sum, 0, 0, 0, 0},
};

START_TEST(gives_what_the_graph_gives) {
  check_row(&rows[_i]);
}
END_TEST

/* An input with values is an array of the source, which a run changes where the graph writes to it. */
START_TEST(holds_first_values) {
  recorded r;
  begin(&r);
  graft_tensor *weight = F32(&r, 3), *grad = F32(&r, 3);
  record(&r);
  const graft_value call[] = {graft_value_tensor(weight), graft_value_tensor(grad),
                              graft_value_scalar(graft_scalar_int(1))};
  OK(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &weight, 1));
  end(&r);
  graft_tensor *values[2] = {NULL};
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, 1, (int64_t[]){3}, (float[]){1, -0.1f, INFINITY},
                            &values[0]));
  const tiny_info info = emit(r.graph, values);
  ck_assert_uint_eq(info.arena_bytes, 0);
  ck_assert_uint_eq(info.updated_bytes, 12);
  ck_assert_uint_eq(info.constant_bytes, 0);
  void *library = compiled(1);
  caller run = (caller)dlsym(library, "call");
  const float *held = dlsym(library, "graph_x0");
  ck_assert(held[0] == 1 && held[1] == -0.1f && held[2] == INFINITY);
  run((void *[]){(float[]){0.5f, 0, 0}});
  ck_assert(held[0] == 0.5f && held[1] == -0.1f && held[2] == INFINITY);
  graft_tensor_release(values[0]);
  graft_graph_destroy(r.graph);
}
END_TEST

/* weight -= grad, as modules of PyTorch name such inputs, and the weight again under a name with a point. */
static void dotted_step(recorded *r) {
  begin(r);
  graft_tensor *weight = take_named(r, "model.0.weight"), *grad = take_named(r, "0.grad");
  record(r);
  const graft_value call[] = {graft_value_tensor(weight), graft_value_tensor(grad),
                              graft_value_scalar(graft_scalar_int(1))};
  OK(graft_call(GRAFT_OP_SUB_TENSOR, call, 3, &weight, 1));
  OK(graft_graph_output(r->graph, "stepped.0", weight));
  end(r);
}

static void expect_step(void *library, float first, float second) {
  float stepped[2] = {0};
  const float *held = dlsym(library, "graph_model_0_weight");
  ck_assert_ptr_nonnull(held);
  ((caller)dlsym(library, "call"))((void *[]){(float[]){0.5f, 4}, stepped});
  ck_assert(held[0] == first && held[1] == second);
  ck_assert(stepped[0] == first && stepped[1] == second);
}

/* By the program, with these options, from the graph in the folder. */
static void emit_by_program(const char *options) {
  shell(GRAFT_BINARY_DIR "/bin/graft tiny graph.safetensors %s -o source.c >said 2>&1 || ! cat said", options);
}

/* A point is _ in C, and an input that has a value in the file begins with it where no other is given. */
START_TEST(holds_values_of_the_file) {
  recorded r;
  char path[64];
  graft_tensor *value;
  dotted_step(&r);
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F32, 1, (int64_t[]){2}, (float[]){2, 8}, &value));
  OK(graft_graph_input_set_value(r.graph, 0, value));
  snprintf(path, sizeof path, "%s/graph.safetensors", folder);
  OK(graft_graph_save(r.graph, path));
  emit_by_program("");
  void *library = compiled(2);
  expect_step(library, 1.5f, 4);
  expect_step(library, 1, 0);
  emit_by_program("-i model.0.weight=random:1");
  shell("! grep -q '0x1p+1f, 0x1p+3f' source.c && grep -q 'float graph_model_0_weight.2. = {' source.c");
  graft_tensor_release(value);
  graft_graph_destroy(r.graph);
}
END_TEST

int main(void) {
  const suite_test tests[] = {
      EACH(gives_what_the_graph_gives, ROWS(rows)), ONCE(holds_first_values), ONCE(holds_values_of_the_file), {0}};
  return run_suite("tiny", tests, (suite_options){.timeout_s = 120, .setup = make_folder, .teardown = remove_folder});
}
