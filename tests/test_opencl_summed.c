/* A product beside the sums of its first factor's rows, as the gradients of a layer's weight and bias are, which the
 * OpenCL backend makes as one call on a CPU: the bits of the calls one by one. */
#include "opencl_groups.h"

/* The gradient of a layer's results, of a row for each input, and those inputs. */
enum { GRAD, INPUT, OTHER, INPUTS };

/* Which calls are made as one: none, the product and the sums, the product and two behind it, or other two. */
typedef enum together { APART, PAIR, FOLLOWED, OTHERS } together;

typedef struct summed {
  const char *name;
  int64_t depth, rows, columns;
  void (*calls)(graft_tensor **in, graft_tensor **out, const void *what);
  together on_cpus, on_gpus;
} summed;

static graft_tensor *sum_of(graft_tensor *t, int64_t dim, bool keeps) {
  return CALL(SUM_DIM_INTLIST, T(t), INTS(dim), graft_value_bool(keeps));
}

static graft_tensor *weight_of(graft_tensor *grad, graft_tensor *input) {
  return CALL(MM, T(CALL(PERMUTE, T(grad), INTS(1, 0))), T(input));
}

static void of_layer(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(weight_of(in[GRAD], in[INPUT]));
  out[1] = retained(sum_of(in[GRAD], 0, true));
}

static void sum_first(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[1] = retained(sum_of(in[GRAD], 0, false));
  out[0] = retained(weight_of(in[GRAD], in[INPUT]));
}

/* What the product reads is made of the sums. */
static void sum_leads(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[1] = retained(sum_of(in[GRAD], 0, true));
  graft_tensor *total = sum_of(CALL(VIEW, T(out[1]), INTS(-1)), 0, false);
  out[0] = retained(weight_of(in[GRAD], CALL(MUL_TENSOR, T(in[INPUT]), T(total))));
}

/* That, and another layer's, which waits for it. */
static void one_of_two(graft_tensor **in, graft_tensor **out, const void *what) {
  sum_leads(in, out, what);
  graft_tensor *total = sum_of(CALL(VIEW, T(out[0]), INTS(-1)), 0, false);
  out[2] = retained(weight_of(in[OTHER], CALL(MUL_TENSOR, T(in[INPUT]), T(total))));
  out[3] = retained(sum_of(in[OTHER], 0, true));
}

/* Two of them, each of whose products waits for the other's sums. */
static void crossed(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *sums[2], *totals[2];
  for (int i = 0; i < 2; i++) {
    sums[i] = sum_of(in[i ? OTHER : GRAD], 0, true);
    totals[i] = sum_of(CALL(VIEW, T(sums[i]), INTS(-1)), 0, false);
    out[2 + i] = retained(sums[i]);
  }
  for (int i = 0; i < 2; i++)
    out[i] = retained(weight_of(in[i ? OTHER : GRAD], CALL(MUL_TENSOR, T(in[INPUT]), T(totals[!i]))));
}

/* Calls that go into the product's kernel. */
static void followed(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(CALL(NEG, T(CALL(RELU, T(weight_of(in[GRAD], in[INPUT]))))));
  out[1] = retained(sum_of(in[GRAD], 0, true));
}

/* What both read is written behind them, and so is what the product reads alone. */
static void written_after(graft_tensor **in, graft_tensor **out, const void *what) {
  of_layer(in, out, what);
  WRITE(in[GRAD], TRIL, T(in[GRAD]), INT(-1));
  WRITE(in[INPUT], MUL_TENSOR, T(in[INPUT]), NUMBER(3));
}

/* An input that lies transposed, which takes the first place in the product. */
static void turned(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const int64_t depth = in[INPUT]->sizes[0], columns = in[INPUT]->sizes[1];
  graft_tensor *lying = CALL(PERMUTE, T(CALL(VIEW, T(in[INPUT]), INTS(columns, depth))), INTS(1, 0));
  out[0] = retained(weight_of(in[GRAD], lying));
  out[1] = retained(sum_of(in[GRAD], 0, true));
}

static void of_columns(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(weight_of(in[GRAD], in[INPUT]));
  out[1] = retained(sum_of(in[GRAD], 1, true));
}

static void of_another(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(weight_of(in[GRAD], in[INPUT]));
  out[1] = retained(sum_of(in[OTHER], 0, true));
}

/* Sums of the rows but the last, which begin where the matrix does. */
static void of_fewer(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  const int64_t rows = in[GRAD]->sizes[0];
  out[0] = retained(weight_of(in[GRAD], in[INPUT]));
  out[1] = retained(sum_of(CALL(SLICE_TENSOR, T(in[GRAD]), INT(0), INT(0), INT(rows - 1), INT(1)), 0, true));
}

/* All rows but the last, and all but the first. */
static void of_later_rows(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  graft_tensor *rows[INPUTS];
  for (int i = 0; i < INPUTS; i++) {
    const int64_t from = i == OTHER, count = in[i]->sizes[0] - 1;
    rows[i] = CALL(SLICE_TENSOR, T(in[i == OTHER ? GRAD : i]), INT(0), INT(from), INT(from + count), INT(1));
  }
  out[0] = retained(weight_of(rows[GRAD], rows[INPUT]));
  out[1] = retained(sum_of(rows[OTHER], 0, true));
}

/* The gradient changes between the two, by a call that joins no other. */
static void written_between(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  out[0] = retained(weight_of(in[GRAD], in[INPUT]));
  WRITE(in[GRAD], TRIL, T(in[GRAD]), INT(-1));
  out[1] = retained(sum_of(in[GRAD], 0, true));
}

/* Of so few rows, so deep, that the product packs them whatever the number of cores is. */
static const summed programs_of[] = {
    {"a layer's", 1400, 24, 33, of_layer, PAIR, APART},
    {"the sum first", 1400, 24, 33, sum_first, PAIR, APART},
    {"panels that are not whole", 1451, 21, 37, of_layer, PAIR, APART},
    {"few rows", 7000, 5, 33, of_layer, PAIR, APART},
    {"one subtotal", 64, 2048, 2080, of_layer, PAIR, APART},
    {"three levels of subtotals", 64 * 260 + 7, 24, 33, of_layer, PAIR, APART},
    {"rows in parts", 32768, 256, 33, of_layer, PAIR, APART},
    {"the sum leads to the product", 1400, 24, 33, sum_leads, APART, APART},
    {"one of two layers", 1400, 24, 33, one_of_two, PAIR, APART},
    {"crossed", 1400, 24, 33, crossed, APART, APART},
    {"followed", 1400, 24, 33, followed, FOLLOWED, FOLLOWED},
    {"written after", 1400, 24, 33, written_after, PAIR, APART},
    {"turned", 1400, 24, 33, turned, PAIR, APART},
    {"sums of columns", 1400, 24, 33, of_columns, APART, APART},
    {"sums of another matrix", 1400, 24, 33, of_another, APART, APART},
    {"sums of fewer rows", 1400, 24, 33, of_fewer, APART, APART},
    {"sums of later rows", 1401, 24, 33, of_later_rows, APART, APART},
    {"written between", 1400, 24, 33, written_between, APART, APART},
};

static bool of_cpus = true; /* the kernels at hand */

static void compare_summed(const summed *p, graft_dtype dtype) {
  char name[96];
  snprintf(name, sizeof name, "%s, %d bytes", p->name, (int)dt_bytes(dtype));
  graft_tensor *in[INPUTS], *same[INPUTS];
  for (int way = 0; way < 2; way++) {
    graft_tensor **to = way ? same : in;
    for (uint32_t i = 0; i < INPUTS; i++) to[i] = sized(dtype, p->depth, i == INPUT ? p->columns : p->rows, i + 1);
  }
  together on = of_cpus ? p->on_cpus : p->on_gpus;
  if (on == PAIR && dtype == GRAFT_BF16) on = APART; /* whose sums are of f32 */
  const way w = {.calls = p->calls,
                 .ninputs = INPUTS,
                 .noutputs = p->calls == crossed || p->calls == one_of_two ? 4 : 2,
                 .grouped_nodes = on == APART      ? 0
                                  : on == FOLLOWED ? 3
                                                   : 2,
                 .groups = on != APART};
  compare(name, &w, in, same);
  release_all(in, INPUTS);
  release_all(same, INPUTS);
}

START_TEST(of_dtypes) {
  if (!device) return;
  compare_summed(&programs_of[_i], GRAFT_F32);
  if (programs_of[_i].rows > 100) return; /* large, and the others' ways are the same */
  compare_summed(&programs_of[_i], GRAFT_F64);
  compare_summed(&programs_of[_i], GRAFT_BF16);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(of_dtypes, ROWS(programs_of)), {0}};
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1);
  const int failed = run_suite("opencl_summed", tests, on_one_device(open_for_cpus));
  of_cpus = false;
  return run_suite("opencl_summed_of_gpus", tests, on_one_device(open_for_gpus)) || failed;
}
