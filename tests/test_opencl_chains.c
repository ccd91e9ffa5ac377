/* _foreach ops that the OpenCL backend fuses give, to the bit, what they give one by one: steps of optimizers over
 * lists of several sizes and dtypes, lists that nobody else sees, lists that share tensors, and what is too large is
 * cut. */
#include "opencl_groups.h"

/* --- calls on lists --- */

enum { TENSORS = 2 };

#define LIST(list)        graft_value_tensors(list, TENSORS)
#define INTO(to, op, ...) call_lists(to, GRAFT_OP_##op, ARGS(__VA_ARGS__))

static graft_value numbers(const graft_scalar *list) {
  return (graft_value){.kind = GRAFT_VALUE_SCALARS, .count = TENSORS, .as = {.scalars = list}};
}

static void call_lists(graft_tensor **to, uint32_t op, const graft_value *args, size_t nargs) {
  const graft_status status = graft_call(op, args, (uint32_t)nargs, to, TENSORS);
  ck_assert_msg(!status, "%s", graft_last_error());
}

/* A list of new tensors, which live until the program is over. */
#define NEW(list, op, ...)                            \
  graft_tensor *list[TENSORS] = {NULL, NULL};         \
  call_lists(list, GRAFT_OP_##op, ARGS(__VA_ARGS__)); \
  for (int i = 0; i < TENSORS; i++) later(list[i])

/* --- steps of optimizers: parameters, gradients, and two lists of state --- */

static const graft_scalar *rates(void) {
  static graft_scalar numbers[TENSORS];
  numbers[0] = graft_scalar_float(-0.37);
  numbers[1] = graft_scalar_float(-0.011);
  return numbers;
}

static const graft_scalar *roots(void) {
  static graft_scalar numbers[TENSORS];
  numbers[0] = graft_scalar_float(0.71);
  numbers[1] = graft_scalar_float(0.93);
  return numbers;
}

static void adamw(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, **g = in + 2, **m = in + 4, **v = in + 6;
  (void)out, (void)what;
  INTO(p, FOREACH_MUL_SCALAR, LIST(p), NUMBER(0.999));
  INTO(m, FOREACH_LERP_SCALAR, LIST(m), LIST(g), NUMBER(0.1));
  INTO(v, FOREACH_MUL_SCALAR, LIST(v), NUMBER(0.99));
  INTO(v, FOREACH_ADDCMUL_SCALAR, LIST(v), LIST(g), LIST(g), NUMBER(0.01));
  NEW(root, FOREACH_SQRT, LIST(v));
  INTO(root, FOREACH_DIV_SCALARLIST, LIST(root), numbers(roots()));
  INTO(root, FOREACH_ADD_SCALAR, LIST(root), NUMBER(1e-8));
  INTO(p, FOREACH_ADDCDIV_SCALARLIST, LIST(p), LIST(m), LIST(root), numbers(rates()));
}

/* As optimizers with the option capturable have it: how many steps there were, and what follows from that, is a number
 * of each tensor in memory. */
static void capturable(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, **g = in + 2, **v = in + 4, **steps = in + 6;
  (void)out, (void)what;
  INTO(steps, FOREACH_ADD_SCALAR, LIST(steps), NUMBER(1));
  INTO(v, FOREACH_MUL_SCALAR, LIST(v), NUMBER(0.99));
  INTO(v, FOREACH_ADDCMUL_SCALAR, LIST(v), LIST(g), LIST(g), NUMBER(0.01));
  NEW(rate, FOREACH_POW_SCALARANDTENSOR, NUMBER(0.9), LIST(steps));
  NEW(bias, FOREACH_POW_SCALARANDTENSOR, NUMBER(0.99), LIST(steps));
  INTO(rate, FOREACH_SUB_SCALAR, LIST(rate), NUMBER(1));
  INTO(bias, FOREACH_SUB_SCALAR, LIST(bias), NUMBER(1));
  INTO(bias, FOREACH_NEG, LIST(bias));
  INTO(rate, FOREACH_DIV_SCALAR, LIST(rate), NUMBER(0.01));
  INTO(rate, FOREACH_RECIPROCAL, LIST(rate));
  INTO(bias, FOREACH_SQRT, LIST(bias));
  NEW(root, FOREACH_SQRT, LIST(v));
  INTO(root, FOREACH_DIV_LIST, LIST(root), LIST(bias));
  INTO(root, FOREACH_ADD_SCALAR, LIST(root), NUMBER(1e-8));
  INTO(root, FOREACH_DIV_LIST, LIST(root), LIST(rate));
  INTO(p, FOREACH_ADDCDIV_SCALAR, LIST(p), LIST(g), LIST(root), NUMBER(1));
}

/* The same, each result a list of its own, some of which come out. */
static void functional(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, **g = in + 2, **m = in + 4, **v = in + 6;
  (void)what;
  NEW(shrunk, FOREACH_MUL_SCALAR, LIST(p), NUMBER(0.999));
  NEW(average, FOREACH_LERP_SCALAR, LIST(m), LIST(g), NUMBER(0.9));
  NEW(squares, FOREACH_ADDCMUL_SCALAR, LIST(v), LIST(g), LIST(g), NUMBER(0.01));
  NEW(size, FOREACH_ABS, LIST(squares));
  NEW(root, FOREACH_SQRT, LIST(size));
  NEW(least, FOREACH_MAXIMUM_LIST, LIST(root), LIST(g));
  NEW(step, FOREACH_DIV_LIST, LIST(average), LIST(least));
  NEW(stepped, FOREACH_SUB_LIST, LIST(shrunk), LIST(step));
  for (int i = 0; i < TENSORS; i++) {
    out[i] = retained(stepped[i]);
    out[TENSORS + i] = retained(average[i]);
    out[2 * TENSORS + i] = retained(root[i]);
  }
}

static graft_tensor *tensor_of(graft_dtype dtype, int64_t count, uint32_t seed) {
  graft_tensor *all = filled(dtype, count + 1, seed), *t;
  const int64_t stride = 1;
  OK(tns_new(all->storage, device, dtype, 1, &count, &stride, 1, &t)); /* from the second element on */
  graft_tensor_release(all);
  return t;
}

/* Lists whose tensors have these dtypes and sizes. */
typedef struct kind {
  graft_dtype dtypes[TENSORS];
  int64_t counts[TENSORS];
} kind;

static void fill_lists(graft_tensor **in, const kind *k, uint32_t lists) {
  for (uint32_t i = 0; i < lists * TENSORS; i++)
    in[i] = tensor_of(k->dtypes[i % TENSORS], k->counts[i % TENSORS], i + 1);
}

static void compare_lists(const char *name, const way *w, const kind *k) {
  graft_tensor *in[RESULTS], *same[RESULTS];
  fill_lists(in, k, w->ninputs / TENSORS);
  fill_lists(same, k, w->ninputs / TENSORS);
  compare(name, w, in, same);
  release_all(in, w->ninputs);
  release_all(same, w->ninputs);
}

static const kind kinds[] = {
    {{GRAFT_F32, GRAFT_F32}, {ELEMENTS, 33}},   {{GRAFT_F64, GRAFT_F64}, {17, 1}},
    {{GRAFT_BF16, GRAFT_F32}, {ELEMENTS, 129}}, {{GRAFT_F16, GRAFT_F16}, {15, 2 * ELEMENTS}},
    {{GRAFT_F32, GRAFT_F32}, {0, 200}},
};

START_TEST(a_step_of_adamw) {
  if (!device) return;
  const way w = {adamw, NULL, 8, 0, 8, 1, .at_least = false};
  compare_lists("AdamW", &w, &kinds[_i]);
}
END_TEST

/* Three lists, and the counts: tensors without dimensions. */
static void fill_counted(graft_tensor **in, const kind *k) {
  fill_lists(in, k, 3);
  for (int i = 6; i < 8; i++) {
    graft_tensor *one = tensor_of(k->dtypes[i % TENSORS], 1, 1);
    in[i] = retained(CALL(ABS, T(CALL(SELECT_INT, T(one), INT(0), INT(0)))));
    graft_tensor_release(one);
  }
  sweep();
}

static const kind counted[] = {
    {{GRAFT_F32, GRAFT_F32}, {ELEMENTS, 33}}, {{GRAFT_F64, GRAFT_F64}, {17, 1}}, {{GRAFT_F16, GRAFT_F16}, {15, 40}}};

/* Two kernels: of the counts, and of the parameters, which read a number for each of them. */
START_TEST(a_step_that_counts_in_memory) {
  if (!device) return;
  const way w = {capturable, NULL, 8, 0, 16, 2, .at_least = false};
  graft_tensor *in[RESULTS], *same[RESULTS];
  fill_counted(in, &counted[_i]);
  fill_counted(same, &counted[_i]);
  compare("capturable", &w, in, same);
  release_all(in, 8);
  release_all(same, 8);
}
END_TEST

START_TEST(lists_that_come_out_and_lists_that_do_not) {
  if (!device) return;
  const way w = {functional, NULL, 8, 6, 8, 1, .at_least = false};
  compare_lists("functional", &w, &kinds[_i]);
}
END_TEST

/* --- lists of whole numbers, which wrap --- */

static void whole(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **second = in + 2;
  (void)what;
  NEW(sum, FOREACH_ADD_LIST, LIST(in), LIST(second), graft_value_scalar(graft_scalar_int(100)));
  NEW(product, FOREACH_MUL_LIST, LIST(sum), LIST(sum));
  NEW(sign, FOREACH_SIGN, LIST(product));
  for (int i = 0; i < TENSORS; i++) {
    out[i] = retained(product[i]);
    out[TENSORS + i] = retained(sign[i]);
  }
}

START_TEST(whole_numbers) {
  if (!device) return;
  const way w = {whole, NULL, 4, 4, 3, 1, .at_least = false};
  const kind wraps[] = {{{GRAFT_U8, GRAFT_I16}, {ELEMENTS, 40}}, {{GRAFT_I64, GRAFT_I64}, {5, 40}}};
  for (int i = 0; i < 2; i++) compare_lists("whole numbers", &w, &wraps[i]);
}
END_TEST

/* --- copies, which convert --- */

static void copies(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, **g = in + 2;
  (void)out, (void)what;
  INTO(p, FOREACH_COPY, LIST(p), LIST(g));
  INTO(p, FOREACH_MUL_SCALAR, LIST(p), NUMBER(1.7));
  INTO(g, FOREACH_ZERO, LIST(g));
}

START_TEST(copies_that_convert) {
  if (!device) return;
  const way w = {copies, NULL, 4, 0, 3, 1, .at_least = false};
  graft_tensor *in[4], *same[4];
  for (uint32_t i = 0; i < 4; i++) {
    const graft_dtype dtype = i < 2 ? GRAFT_BF16 : GRAFT_F32;
    in[i] = tensor_of(dtype, 70 + 9 * (i % 2), i + 1);
    same[i] = tensor_of(dtype, 70 + 9 * (i % 2), i + 1);
  }
  compare("copies", &w, in, same);
  release_all(in, 4);
  release_all(same, 4);
}
END_TEST

/* --- one number in memory for all --- */

static void by_one(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor *one = CALL(SELECT_INT, T(in[2]), INT(0), INT(5));
  (void)out, (void)what;
  INTO(in, FOREACH_MUL_TENSOR, LIST(in), T(one));
  INTO(in, FOREACH_NEG, LIST(in));
}

START_TEST(one_tensor_for_all) {
  if (!device) return;
  const way w = {by_one, NULL, 4, 0, 2, 1, .at_least = false};
  compare_lists("one for all", &w, &kinds[0]);
}
END_TEST

/* --- lists that share tensors, but not the list --- */

static void turned(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor *back[] = {in[1], in[0]}, *mixed[] = {in[0], in[2]};
  (void)out, (void)what;
  INTO(in, FOREACH_ADD_SCALAR, LIST(in), NUMBER(2));
  INTO(back, FOREACH_MUL_LIST, LIST(back), LIST(in));
  INTO(mixed, FOREACH_ADD_LIST, LIST(mixed), LIST(in));
  INTO(in, FOREACH_NEG, LIST(in));
}

static void twice(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor *same[] = {in[0], in[0]};
  (void)out, (void)what;
  INTO(same, FOREACH_ADD_SCALAR, LIST(same), NUMBER(2));
  INTO(same, FOREACH_MUL_SCALAR, LIST(same), NUMBER(3));
}

START_TEST(lists_that_share_tensors) {
  if (!device) return;
  const kind k = {{GRAFT_F32, GRAFT_F32}, {50, 50}};
  compare_lists("turned", &(way){turned, NULL, 4, 0, 0, 0, .at_least = false}, &k);
  compare_lists("twice", &(way){twice, NULL, 2, 0, 0, 0, .at_least = false}, &k);
}
END_TEST

/* --- a list of which some tensors are seen --- */

static void seen_in_part(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)what;
  NEW(moved, FOREACH_ADD_SCALAR, LIST(in), NUMBER(2));
  NEW(turned, FOREACH_NEG, LIST(moved));
  NEW(root, FOREACH_ABS, LIST(turned));
  out[0] = retained(turned[1]);
  out[1] = retained(root[0]);
  out[2] = retained(root[1]);
}

START_TEST(a_list_of_which_a_part_is_seen) {
  if (!device) return;
  compare_lists("in part", &(way){seen_in_part, NULL, 2, 3, 0, 0, .at_least = true}, &kinds[0]);
}
END_TEST

/* --- more than one kernel has --- */

enum { LONG = 80 };

static void many(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, **g = in + 2;
  (void)out, (void)what;
  for (int i = 0; i < LONG; i++) INTO(p, FOREACH_ADD_LIST, LIST(p), LIST(g), NUMBER(0.25 + i));
}

START_TEST(what_is_too_long_is_cut) {
  if (!device) return;
  compare_lists("many", &(way){many, NULL, 4, 0, LONG, 3, .at_least = false}, &kinds[0]);
}
END_TEST

/* Each call reads a list of its own, of two of six tensors. */
static void of_many_lists(graft_tensor **in, graft_tensor **out, const void *what) {
  enum { READ = 6 };
  graft_tensor **p = in, **read = in + TENSORS;
  (void)out;
  for (int i = 0; i + 1 < *(const int *)what; i++) {
    graft_tensor *two[TENSORS] = {read[i % READ], read[i / READ]};
    INTO(p, FOREACH_ADD_LIST, LIST(p), LIST(two), NUMBER(0.25 + i));
  }
}

/* Up to as many as a kernel takes (OCL_LISTS_MAX). */
static const int numbers_of_lists[] = {8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

START_TEST(lists_of_each_number) {
  static const kind same = {{GRAFT_F32, GRAFT_F32}, {ELEMENTS, ELEMENTS}};
  const int *count = &numbers_of_lists[_i];
  if (!device) return;
  compare_lists("of_many_lists", &(way){of_many_lists, count, RESULTS, 0, (uint32_t)*count - 1, 1}, &same);
}
END_TEST

/* --- what is done tensor by tensor, between calls on lists --- */

/* As Rprop has it: signs become factors, each by a mask and a number in memory. */
static void by_tensors(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, **g = in + 2, **sizes = in + 4;
  (void)out, (void)what;
  NEW(signs, FOREACH_MUL_LIST, LIST(p), LIST(g));
  INTO(signs, FOREACH_SIGN, LIST(signs));
  for (int i = 0; i < TENSORS; i++) {
    graft_tensor *grown = CALL(MUL_TENSOR, T(signs[i]), NUMBER(1.25 + i));
    graft_tensor *chosen = CALL(WHERE_SELF, T(CALL(GT_SCALAR, T(signs[i]), NUMBER(0))), T(grown), T(signs[i]));
    signs[i] = CALL(CLAMP, T(chosen), NUMBER(-0.5), NUMBER(3.5));
  }
  INTO(sizes, FOREACH_MUL_LIST, LIST(sizes), LIST(signs));
  INTO(p, FOREACH_ADDCMUL_SCALAR, LIST(p), LIST(signs), LIST(sizes), NUMBER(-1));
}

/* Of one dtype, which is no half type where it is compared, and none of them empty. */
static const kind alike[] = {{{GRAFT_F32, GRAFT_F32}, {ELEMENTS, 33}}, {{GRAFT_F64, GRAFT_F64}, {17, 1}}};

START_TEST(calls_of_each_tensor) {
  if (!device) return;
  const way w = {by_tensors, NULL, 6, 0, 4 + 4 * TENSORS, 1, .at_least = false};
  compare_lists("by tensors", &w, &alike[_i]);
}
END_TEST

/* So many that a kernel is of these alone, without the call on lists that they are columns by. */
static void many_by_tensors(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, **g = in + 2;
  (void)out, (void)what;
  for (int k = 0; k < TENSORS; k++)
    for (int i = 0; i < LONG; i++) WRITE(p[k], ADD_TENSOR, T(p[k]), T(g[k]), NUMBER(0.25 + i));
  INTO(p, FOREACH_NEG, LIST(p));
}

START_TEST(too_many_calls_of_each_tensor_are_cut) {
  if (!device) return;
  const way w = {many_by_tensors, NULL, 4, 0, LONG * TENSORS + 1, 3, .at_least = false};
  compare_lists("many by tensors", &w, &alike[_i]);
}
END_TEST

START_TEST(calls_of_tensors_that_are_not_alike) {
  if (!device) return;
  compare_lists("by tensors", &(way){by_tensors, NULL, 6, 0, 0, 0, .at_least = true}, &kinds[_i]);
}
END_TEST

/* What the calls of single tensors read does not lie side by side, as that of lists does. */
static void with_gaps(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, *factors[TENSORS];
  (void)out, (void)what;
  INTO(p, FOREACH_ADD_SCALAR, LIST(p), NUMBER(0.5));
  for (int i = 0; i < TENSORS; i++) factors[i] = CALL(MUL_TENSOR, T(p[i]), T(in[TENSORS + i]));
  INTO(p, FOREACH_MUL_LIST, LIST(p), LIST(factors));
}

static void every_second(graft_tensor **in) {
  for (uint32_t i = 0; i < 2 * TENSORS; i++) {
    const int64_t count = 101 + 40 * (i % TENSORS), stride = i < TENSORS ? 1 : 2;
    graft_tensor *all = filled(GRAFT_F32, stride * count, i + 1);
    OK(tns_new(all->storage, device, GRAFT_F32, 1, &count, &stride, 0, &in[i]));
    graft_tensor_release(all);
  }
}

START_TEST(calls_of_tensors_with_gaps) {
  if (!device) return;
  graft_tensor *in[RESULTS], *same[RESULTS];
  every_second(in);
  every_second(same);
  compare("with gaps", &(way){with_gaps, NULL, 2 * TENSORS, 0, 0, 0, .at_least = true}, in, same);
  release_all(in, 2 * TENSORS);
  release_all(same, 2 * TENSORS);
}
END_TEST

/* No call on lists is in the group of these, whose sizes differ from those of what follows from them. */
static void of_counts(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **p = in, **g = in + 2, **counts = in + 6, *rates[TENSORS];
  (void)out, (void)what;
  for (int i = 0; i < TENSORS; i++) {
    graft_tensor *slower = CALL(ADD_TENSOR, T(CALL(MUL_TENSOR, T(counts[i]), NUMBER(0.3))), NUMBER(1));
    rates[i] = CALL(MUL_TENSOR, T(CALL(RECIPROCAL, T(slower))), NUMBER(-0.01));
  }
  NEW(step, FOREACH_MUL_LIST, LIST(g), LIST(rates));
  INTO(p, FOREACH_ADD_LIST, LIST(p), LIST(step), NUMBER(1));
}

START_TEST(calls_of_each_count) {
  if (!device) return;
  const way w = {of_counts, NULL, 8, 0, 2 + 4 * TENSORS, 2, .at_least = false};
  graft_tensor *in[RESULTS], *same[RESULTS];
  fill_counted(in, &counted[_i]);
  fill_counted(same, &counted[_i]);
  compare("of counts", &w, in, same);
  release_all(in, 8);
  release_all(same, 8);
}
END_TEST

/* Calls of two tensors that look like one on lists, but for the call on lists that stands between them. */
static void between(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **g = in + 2;
  (void)out, (void)what;
  INTO(in, FOREACH_MUL_SCALAR, LIST(in), NUMBER(1.5));
  WRITE(in[0], ADD_TENSOR, T(in[0]), NUMBER(2));
  INTO(g, FOREACH_ADD_LIST, LIST(g), LIST(in), NUMBER(1));
  WRITE(in[1], ADD_TENSOR, T(in[1]), NUMBER(2));
  INTO(g, FOREACH_MUL_LIST, LIST(g), LIST(in));
}

START_TEST(calls_on_both_sides_of_one_on_lists) {
  if (!device) return;
  compare_lists("between", &(way){between, NULL, 4, 0, 0, 0, .at_least = true}, &kinds[0]);
}
END_TEST

/* The same op of other dtypes is another call. */
static void unlike(graft_tensor **in, graft_tensor **out, const void *what) {
  (void)out, (void)what;
  graft_tensor *turned[] = {CALL(NEG, T(in[0])), CALL(ABS, T(in[1]))};
  INTO(in, FOREACH_MUL_LIST, LIST(in), LIST(turned));
}

START_TEST(calls_that_differ) {
  if (!device) return;
  compare_lists("unlike", &(way){unlike, NULL, 2, 0, 0, 0, .at_least = true}, &kinds[0]);
}
END_TEST

/* The calls of a group alone could be columns in another way than all calls of the graph: as four rows of a sum in
 * place and a difference, of which every other one has its operands the other way round, so that a column would read in
 * memory what the one before it still has in registers. A call on lists of other sizes says that they are rows of two
 * items. */
static void two_rows(graft_tensor **in, graft_tensor **out, const void *what) {
  graft_tensor **x = in, **g = in + 2, **y = in + 4;
  graft_tensor *of_x[TENSORS], *of_y[TENSORS];
  (void)what;
  for (int i = 0; i < TENSORS; i++) {
    of_x[i] = CALL(SELECT_INT, T(x[i]), INT(0), INT(0));
    of_y[i] = CALL(SELECT_INT, T(y[i]), INT(0), INT(0));
  }
  INTO(of_x, FOREACH_ADD_LIST, LIST(of_x), LIST(of_y), NUMBER(1));
  for (int i = 0; i < TENSORS; i++) {
    WRITE(x[i], ADD_TENSOR, T(x[i]), NUMBER(2));
    out[2 * i] = retained(CALL(SUB_TENSOR, T(x[i]), T(g[i])));
    WRITE(y[i], ADD_TENSOR, T(y[i]), NUMBER(2));
    out[2 * i + 1] = retained(CALL(SUB_TENSOR, T(g[i]), T(y[i])));
  }
}

START_TEST(calls_that_are_other_columns_by_themselves) {
  if (!device) return;
  compare_lists("two rows", &(way){two_rows, NULL, 6, 4, 0, 0, .at_least = true}, &kinds[0]);
}
END_TEST

/* --- calls that give each other nothing --- */

/* Far apart in the order of the calls; both begin what a third one goes on with, or not. */
static void begin_in_two_places(graft_tensor **in, graft_tensor **out, const void *what) {
  enum { APART = 12 };
  graft_tensor **p = in, **g = in + 2, *t = p[0];
  NEW(size, FOREACH_ABS, LIST(p));
  for (int i = 0; i < APART; i++) t = CALL(CUMSUM, T(t), INT(0));
  NEW(other, FOREACH_ABS, LIST(g));
  if (*(const bool *)what) INTO(size, FOREACH_ADD_LIST, LIST(size), LIST(other), NUMBER(1));
  for (int i = 0; i < TENSORS; i++) {
    out[i] = retained(size[i]);
    out[TENSORS + i] = retained(other[i]);
  }
  out[2 * TENSORS] = retained(t);
}

static const struct places {
  const char *name;
  bool meet;
  int64_t counts[TENSORS];
  uint32_t nodes;
} places_of[] = {{"places that meet", true, {ELEMENTS, 33}, 3},
                 {"places that do not", false, {ELEMENTS, 33}, 0},
                 {"numbers", false, {1, 1}, 2}, /* of each tensor: no memory to speak of */
                 {"numbers, and more", false, {1, 2}, 0}};

START_TEST(calls_that_need_not_each_other) {
  if (!device) return;
  const struct places *p = &places_of[_i];
  const kind k = {{GRAFT_F32, GRAFT_F32}, {p->counts[0], p->counts[1]}};
  const way w = {begin_in_two_places, &p->meet, 4, 5, p->nodes, p->nodes > 0, .passes = "-late"};
  compare_lists(p->name, &w, &k);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(a_step_of_adamw, ROWS(kinds)),
                              EACH(a_step_that_counts_in_memory, ROWS(counted)),
                              EACH(lists_that_come_out_and_lists_that_do_not, ROWS(kinds)),
                              ONCE(whole_numbers),
                              ONCE(copies_that_convert),
                              ONCE(one_tensor_for_all),
                              ONCE(lists_that_share_tensors),
                              ONCE(a_list_of_which_a_part_is_seen),
                              ONCE(what_is_too_long_is_cut),
                              EACH(lists_of_each_number, ROWS(numbers_of_lists)),
                              EACH(calls_of_each_tensor, ROWS(alike)),
                              EACH(too_many_calls_of_each_tensor_are_cut, ROWS(alike)),
                              EACH(calls_of_tensors_that_are_not_alike, ROWS(kinds)),
                              ONCE(calls_of_tensors_with_gaps),
                              EACH(calls_of_each_count, ROWS(counted)),
                              ONCE(calls_on_both_sides_of_one_on_lists),
                              ONCE(calls_that_differ),
                              ONCE(calls_that_are_other_columns_by_themselves),
                              EACH(calls_that_need_not_each_other, ROWS(places_of)),
                              {0}};
  const int failed = run_suite("opencl_chains", tests, on_one_device(open_for_cpus));
  return run_suite("opencl_chains_of_gpus", tests, on_one_device(open_for_gpus)) || failed;
}
