/* What needs little memory on the OpenCL backend: results of groups and of softmax over what they are made of, products
 * of a matrix that has to be packed, and gradients of convolutions. */
#include "opencl_groups.h"

enum { LINES = 256, WIDTH = 1024, ENTRIES = LINES * WIDTH, BYTES = 4 * ENTRIES };
enum { A, B, TARGET, GRAD, TOTAL_WEIGHT, GIVEN };

static graft_tensor *in_a_chain(graft_tensor **in) {
  return CALL(MUL_TENSOR, T(CALL(NEG, T(CALL(EXP, T(in[A]))))), T(in[B]));
}
static graft_tensor *without_its_mean(graft_tensor **in) {
  return CALL(SUB_TENSOR, T(in[A]), T(CALL(MEAN_DIM, T(in[A]), INTS(1), graft_value_bool(true))));
}
static graft_tensor *softmax(graft_tensor **in) {
  return CALL(SOFTMAX, T(in[A]), INT(1), graft_value_bool(false));
}
static graft_tensor *log_softmax(graft_tensor **in) {
  return CALL(LOG_SOFTMAX, T(in[A]), INT(1), graft_value_bool(false));
}
static graft_tensor *entropy(graft_tensor **in) {
  enum { MEAN = 1, IGNORED = -100 };
  graft_tensor *between = CALL(NLL_LOSS_BACKWARD, T(in[GRAD]), T(in[A]), T(in[TARGET]), T(NULL), INT(MEAN),
                               INT(IGNORED), T(in[TOTAL_WEIGHT]));
  return CALL(LOG_SOFTMAX_BACKWARD_DATA, T(between), T(in[A]), INT(1),
              (graft_value){GRAFT_VALUE_DTYPE, 0, {.i = GRAFT_F32}});
}

static const struct over_row {
  const char *name;
  graft_tensor *(*run)(graft_tensor **in);
} rows[] = {{"a chain", in_a_chain},
            {"a row and its mean", without_its_mean},
            {"softmax", softmax},
            {"its logarithm", log_softmax},
            {"the gradient of a cross entropy", entropy}};

static void fill_in(graft_tensor **in) {
  const int64_t lines = LINES;
  int64_t targets[LINES];
  for (int i = 0; i < LINES; i++) targets[i] = i * 3;
  for (int i = A; i <= B; i++) in[i] = sized(GRAFT_F32, LINES, WIDTH, (uint32_t)i + 1);
  OK(graft_tensor_from_host(device, GRAFT_I64, 1, &lines, targets, &in[TARGET]));
  for (int i = GRAD; i <= TOTAL_WEIGHT; i++)
    OK(graft_tensor_from_host(device, GRAFT_F32, 0, NULL, (const float[]){LINES - (float)i}, &in[i]));
}

static graft_graph_exec *compiled_for(const struct over_row *row, graft_tensor **like) {
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *in[GIVEN], *out;
  OK(graft_graph_create(device, &graph));
  for (uint32_t i = 0; i < GIVEN; i++)
    OK(graft_graph_input_like(graph, (const char[]){(char)('a' + i), 0}, like[i], &in[i]));
  OK(graft_graph_input_donate(graph, A));
  OK(graft_graph_record_begin(graph));
  out = retained(row->run(in));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "out", out));
  OK(graft_graph_compile(graph, device, NULL, &exec));
  sweep();
  release_all(in, GIVEN);
  graft_tensor_release(out);
  graft_graph_destroy(graph);
  return exec;
}

static graft_memory_stat allocated(void) {
  graft_memory_statistics now = {.struct_size = sizeof now};
  OK(graft_memory_stats(device, &now));
  return now.allocated_bytes;
}

static void expect_equal(graft_tensor *is, graft_tensor *expected, const char *name) {
  float *x = malloc(BYTES), *y = malloc(BYTES);
  OK(graft_tensor_to_host(is, x));
  OK(graft_tensor_to_host(expected, y));
  ck_assert_msg(!memcmp(x, y, BYTES), "%s: other values", name);
  free(x);
  free(y);
}

START_TEST(results_lie_over_what_is_read_no_more) {
  const struct over_row *row = &rows[_i];
  if (!device) return;
  for (int held = 0; held < 2; held++) {
    graft_tensor *in[GIVEN], *own[GIVEN], *out = NULL;
    fill_in(in);
    fill_in(own);
    graft_graph_exec *exec = compiled_for(row, in);
    graft_tensor *expected = retained(row->run(own)), *kept = held ? retained(in[A]) : NULL;
    sweep();
    const int64_t before = allocated().current;
    graft_memory_reset_peak(device);
    OK(graft_graph_run_letting_go(exec, in, GIVEN, (const uint8_t[GIVEN]){1}, &out, 1));
    const int64_t more = allocated().peak - before;
    ck_assert_msg(held ? more >= BYTES : more < BYTES, "%s%s: %lld bytes more", row->name, held ? ", held" : "",
                  (long long)more);
    expect_equal(out, expected, row->name);
    if (kept) expect_equal(kept, own[A], row->name);
    release_all((graft_tensor *[]){kept, out, expected}, 3);
    release_all(own, GIVEN);
    release_all(in + 1, GIVEN - 1);
    graft_graph_exec_destroy(exec);
  }
}
END_TEST

/* --- products --- */

/* a' b of a matrix of 32 MiB: what a few of its columns give, and how little memory that takes. */
START_TEST(a_large_matrix_is_packed_in_parts) {
  enum { DEPTH = 1024, MANY = 8192, FEW = 24, SOME = 128 };
  if (!device) return;
  graft_tensor *a = sized(GRAFT_F32, DEPTH, MANY, 1), *b = sized(GRAFT_F32, DEPTH, FEW, 2);
  graft_tensor *turned = retained(CALL(PERMUTE, T(a), INTS(1, 0)));
  const int64_t before = allocated().current;
  graft_memory_reset_peak(device);
  graft_tensor *all = retained(CALL(MM, T(turned), T(b)));
  const int64_t more = allocated().peak - before;
  ck_assert_msg(more < (int64_t)16 << 20, "%lld bytes more", (long long)more);
  for (int64_t first = 0; first < MANY; first += MANY / 2 - SOME / 2) {
    const int64_t end = first + SOME < MANY ? first + SOME : MANY;
    graft_tensor *part = CALL(SLICE_TENSOR, T(all), INT(0), INT(first), INT(end));
    graft_tensor *rows_of_a = CALL(SLICE_TENSOR, T(turned), INT(0), INT(first), INT(end));
    graft_tensor *own = CALL(MM, T(CALL(CLONE, T(rows_of_a))), T(b)), *bits = CALL(EQ_TENSOR, T(part), T(own));
    graft_scalar same;
    OK(graft_tensor_item(CALL(ALL, T(bits)), &same));
    ck_assert_msg(same.value.i, "rows from %lld on", (long long)first);
    sweep();
  }
  release_all((graft_tensor *[]){a, b, turned, all}, 4);
}
END_TEST

/* --- convolutions --- */

static int64_t peak_of_gradients(graft_tensor *grad, graft_tensor *in, graft_tensor *weight, bool to_in,
                                 bool to_weight) {
  graft_tensor *out[3] = {NULL, NULL, NULL};
  const graft_value args[] = {T(grad),
                              T(in),
                              T(weight),
                              {0},
                              INTS(1, 1),
                              INTS(1, 1),
                              INTS(1, 1),
                              graft_value_bool(false),
                              INTS(0, 0),
                              INT(1),
                              {GRAFT_VALUE_MASK, 3, {.mask = (const uint8_t[]){to_in, to_weight, false}}}};
  graft_memory_reset_peak(device);
  OK(graft_call(GRAFT_OP_CONVOLUTION_BACKWARD, args, ROWS(args), out, 3));
  const int64_t after = allocated().current, peak = allocated().peak;
  release_all(out, 3);
  return peak - after;
}

/* Both gradients of a convolution need temporary memory, one after the other. */
START_TEST(gradients_of_a_convolution_share_memory) {
  if (!device) return;
  graft_tensor *x = sized(GRAFT_F32, 64 * 32, 8 * 8, 1), *y = sized(GRAFT_F32, 64 * 64, 8 * 8, 2),
               *w = sized(GRAFT_F32, 64 * 32, 9, 3);
  graft_tensor *in = CALL(VIEW, T(x), INTS(64, 32, 8, 8)), *grad = CALL(VIEW, T(y), INTS(64, 64, 8, 8)),
               *weight = CALL(VIEW, T(w), INTS(64, 32, 3, 3));
  const int64_t to_in = peak_of_gradients(grad, in, weight, true, false),
                to_weight = peak_of_gradients(grad, in, weight, false, true),
                both = peak_of_gradients(grad, in, weight, true, true);
  ck_assert_int_gt(to_in, 0);
  ck_assert_int_gt(to_weight, 0);
  ck_assert_int_le(both, to_in > to_weight ? to_in : to_weight);
  sweep();
  release_all((graft_tensor *[]){x, y, w}, 3);
}
END_TEST

int main(void) {
  return run_suite("opencl_over",
                   (suite_test[]){EACH(results_lie_over_what_is_read_no_more, ROWS(rows)),
                                  ONCE(a_large_matrix_is_packed_in_parts),
                                  ONCE(gradients_of_a_convolution_share_memory),
                                  {0}},
                   on_one_device(open_for_cpus));
}
