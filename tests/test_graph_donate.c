/* Inputs that are handed over to a run: their memory ends, or serves the run, once they are read no more; and nobody
 * who still holds some of it sees another value, whatever was donated. */
#include "graft/bridge.h"
#include "graph/exec.h"
#include "graph_programs.h"
#include "suite.h"

enum { N = 1024, BYTES = 4 * N };

/* --- a program ---
 * out = tanh(cos(sin(a) * b)) * b: a is read by the first call alone, b to the end. */

typedef struct setup {
  graft_graph *graph;
  graft_graph_exec *exec;
  uint32_t ninputs, noutputs;
} setup;

static graft_tensor *filled(float first) {
  const int64_t n = N;
  float values[N];
  graft_tensor *t;
  for (int i = 0; i < N; i++) values[i] = first + (float)i / 512;
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, values, &t));
  return t;
}

static void chain(graft_tensor **in, graft_tensor **out) {
  graft_tensor *product = CALL(MUL_TENSOR, T(CALL(SIN, T(in[0]))), T(in[1]));
  out[0] = retained(CALL(MUL_TENSOR, T(CALL(TANH, T(CALL(COS, T(product))))), T(in[1])));
}
/* The same, and the input once more as an output. */
static void chain_and_input(graft_tensor **in, graft_tensor **out) {
  chain(in, out);
  out[1] = retained(in[0]);
}
/* The same, and the input is written. */
static void chain_and_write(graft_tensor **in, graft_tensor **out) {
  chain(in, out);
  WRITE(in[0], MUL_TENSOR, T(in[0]), NUMBER(2));
}
/* a is not read. */
static void one_input(graft_tensor **in, graft_tensor **out) {
  out[0] = retained(CALL(TANH, T(CALL(COS, T(CALL(SIN, T(in[1])))))));
}

static setup compiled(void (*run)(graft_tensor **in, graft_tensor **out), uint32_t noutputs, uint32_t donated) {
  const int64_t n = N;
  setup s = {.ninputs = 2, .noutputs = noutputs};
  graft_tensor *in[2], *out[2] = {NULL};
  OK(graft_graph_create(reference(), &s.graph));
  for (uint32_t i = 0; i < 2; i++)
    OK(graft_graph_input(s.graph, (const char[]){(char)('a' + i), 0}, GRAFT_F32, 1, &n, NULL, &in[i]));
  for (uint32_t i = 0; i < 2; i++) {
    if (donated & 1u << i) OK(graft_graph_input_donate(s.graph, i));
  }
  OK(graft_graph_record_begin(s.graph));
  run(in, out);
  OK(graft_graph_record_end(s.graph));
  for (uint32_t i = 0; i < noutputs; i++) OK(graft_graph_output(s.graph, (const char[]){(char)('p' + i), 0}, out[i]));
  OK(graft_graph_compile(s.graph, reference(), "-inplace", &s.exec));
  sweep();
  release_all(in, 2);
  release_all(out, 2);
  return s;
}

static void end(setup *s) {
  graft_graph_exec_destroy(s->exec);
  graft_graph_destroy(s->graph);
}

static uint64_t donated_bytes(const setup *s) {
  graft_graph_exec_info info;
  OK(graft_graph_exec_query(s->exec, &info, sizeof info));
  return info.donated_bytes;
}

static void expect_same_values(graft_tensor *is, graft_tensor *expected, const char *what) {
  float x[N], y[N];
  OK(graft_tensor_to_host(is, x));
  OK(graft_tensor_to_host(expected, y));
  ck_assert_msg(!memcmp(x, y, sizeof x), "%s has other values", what);
}

/* What the calls give, one by one. */
static graft_tensor *called(void (*run)(graft_tensor **in, graft_tensor **out), graft_tensor *a, graft_tensor *b) {
  graft_tensor *in[] = {a, b}, *out[2] = {NULL};
  run(in, out);
  sweep();
  graft_tensor_release(out[1]);
  return out[0];
}

static graft_memory_stat allocated(void) {
  graft_memory_statistics now = {.struct_size = sizeof now};
  OK(graft_memory_stats(reference(), &now));
  return now.allocated_bytes;
}

/* --- what a run does with them --- */

/* Who holds what of the donated input besides the run. */
typedef enum hold { HOLD_NOTHING, HOLD_TENSOR, HOLD_VIEW, HOLD_OTHER_INPUT, HOLD_CONSTANT } hold;

static const struct {
  const char *name;
  hold held;
} lies[] = {{"nobody", HOLD_NOTHING},
            {"the caller, who reads it later", HOLD_TENSOR},
            {"a view of a part", HOLD_VIEW},
            {"the other input, donated too", HOLD_OTHER_INPUT},
            {"a constant of another graph", HOLD_CONSTANT}};

START_TEST(nobody_sees_another_value) {
  const hold held = lies[_i].held;
  setup s = compiled(chain, 1, 3);
  graft_tensor *a = filled(1), *a_again = filled(1), *b = held == HOLD_OTHER_INPUT ? retained(a) : filled(2);
  graft_tensor *expected = called(chain, a, b), *kept = NULL, *out = NULL;
  if (held == HOLD_TENSOR) kept = retained(a);
  if (held == HOLD_VIEW) kept = retained(CALL(SLICE_TENSOR, T(a), INT(0), INT(8), INT(N)));
  if (held == HOLD_CONSTANT) OK(graft_tensor_detach(a, &kept));
  graft_tensor *in[] = {a, b};
  OK(graft_graph_run_letting_go(s.exec, in, 2, NULL, &out, 1));
  ck_assert_ptr_null(in[0]);
  ck_assert_ptr_null(in[1]);
  expect_same_values(out, expected, lies[_i].name);
  if (held == HOLD_VIEW) {
    graft_tensor *part = CALL(SLICE_TENSOR, T(a_again), INT(0), INT(8), INT(N));
    ck_assert_msg(graft_tensor_storage(kept) != graft_tensor_storage(part), "%s", lies[_i].name);
    float x[N - 8], y[N - 8];
    OK(graft_tensor_to_host(kept, x));
    OK(graft_tensor_to_host(part, y));
    ck_assert_msg(!memcmp(x, y, sizeof x), "%s", lies[_i].name);
    sweep();
  } else if (kept) {
    expect_same_values(kept, a_again, lies[_i].name);
  }
  release_all((graft_tensor *[]){a_again, expected, kept, out}, 4);
  end(&s);
}
END_TEST

/* Where nobody has it, values lie in it; else they take as much elsewhere. */
START_TEST(memory_serves_the_run) {
  setup plain = compiled(chain, 1, 0), s = compiled(chain, 1, 1);
  graft_graph_exec_info info, donated;
  OK(graft_graph_exec_query(plain.exec, &info, sizeof info));
  OK(graft_graph_exec_query(s.exec, &donated, sizeof donated));
  ck_assert_uint_eq(info.donated_bytes, 0);
  ck_assert_uint_eq(info.arena_bytes, 2 * BYTES);
  ck_assert_uint_eq(donated.donated_bytes, BYTES);
  ck_assert_uint_eq(donated.arena_bytes, BYTES);
  for (uint8_t let_go = 0; let_go < 2; let_go++) {
    graft_tensor *in[] = {filled(1), filled(2)}, *out = NULL;
    const int64_t before = allocated().current;
    graft_memory_reset_peak(reference());
    OK(graft_graph_run_letting_go(s.exec, in, 2, (const uint8_t[]){let_go, 0}, &out, 1));
    ck_assert_int_eq(allocated().peak - before, (let_go ? 2 : 3) * BYTES); /* an arena, the output, and the place */
    release_all(in, 2);
    graft_tensor_release(out);
  }
  end(&plain);
  end(&s);
}
END_TEST

/* Inputs that are read no more are gone while the run goes on. */
START_TEST(inputs_end_early) {
  for (int let_go = 0; let_go < 2; let_go++) {
    setup s = compiled(chain, 1, 0);
    graft_tensor *in[] = {filled(1), filled(2)}, *a = in[0], *out = NULL;
    const uint8_t which[] = {(uint8_t)let_go, 0};
    const int64_t before = allocated().current;
    OK(graft_graph_run_letting_go(s.exec, in, 2, which, &out, 1));
    ck_assert_ptr_eq(in[0], let_go ? NULL : a);
    ck_assert_int_eq(allocated().current, before + (let_go ? 0 : BYTES));
    release_all(in, 2);
    graft_tensor_release(out);
    end(&s);
  }
}
END_TEST

/* Runs that keep their inputs take other memory for what would lie there. */
START_TEST(kept_inputs_stay) {
  setup s = compiled(chain, 1, 3);
  graft_tensor *in[] = {filled(1), filled(2)}, *again[] = {filled(1), filled(2)}, *out = NULL;
  graft_tensor *expected = called(chain, in[0], in[1]);
  for (int i = 0; i < 2; i++) {
    OK(graft_graph_run(s.exec, in, 2, &out, 1));
    expect_same_values(out, expected, "the output");
    for (int j = 0; j < 2; j++) expect_same_values(in[j], again[j], "an input");
    graft_tensor_release(out);
  }
  release_all(in, 2);
  release_all(again, 2);
  graft_tensor_release(expected);
  end(&s);
}
END_TEST

/* What work of another stream may still read is not taken. */
START_TEST(memory_knows_its_stream) {
  graft_tensor *a = filled(1);
  mem_block *block = a->storage->block;
  graft_rt_stream *own = graft_stream_current(reference()), *other;
  OK(graft_stream_create(reference(), 0, 0, &other));
  ck_assert(mem_is_of_stream(block, own));
  ck_assert(!mem_is_of_stream(block, other));
  OK(graft_storage_record_stream(a->storage, own));
  ck_assert(mem_is_of_stream(block, own));
  OK(graft_storage_record_stream(a->storage, other));
  ck_assert(!mem_is_of_stream(block, own));
  graft_tensor_release(a);
  graft_stream_destroy(other);
}
END_TEST

/* --- what is donated and may not be reused --- */

static const struct {
  const char *name;
  void (*run)(graft_tensor **in, graft_tensor **out);
  uint32_t noutputs;
} not_reused[] = {{"an output views it", chain_and_input, 2},
                  {"it is written", chain_and_write, 1},
                  {"nobody reads it", one_input, 1}};

START_TEST(others_give_nothing) {
  setup s = compiled(not_reused[_i].run, not_reused[_i].noutputs, 1);
  graft_tensor *in[] = {filled(1), filled(2)}, *a = filled(1), *b = filled(2), *out[2] = {NULL};
  ck_assert_msg(donated_bytes(&s) == 0, "%s", not_reused[_i].name);
  graft_tensor *own = filled(1), *expected = called(not_reused[_i].run, own, b);
  OK(graft_graph_run_letting_go(s.exec, in, 2, NULL, out, s.noutputs));
  expect_same_values(out[0], expected, not_reused[_i].name);
  if (out[1]) expect_same_values(out[1], a, not_reused[_i].name);
  release_all((graft_tensor *[]){a, b, own, expected, out[0], out[1]}, 6);
  end(&s);
}
END_TEST

/* --- errors: what is let go is gone, whatever is returned --- */

START_TEST(misuse_is_told) {
  setup s = compiled(chain, 1, 1);
  const int64_t before = atomic_load(&reference()->storages), few = 3;
  graft_tensor *out = NULL, *in[] = {filled(1), NULL};
  assert_says(graft_graph_input_donate(s.graph, 2), GRAFT_INVALID_ARGUMENT, "input 2; the graph has 2");
  OK(graft_tensor_empty(reference(), GRAFT_F32, 1, &few, &in[1]));
  assert_says(graft_graph_run_letting_go(s.exec, in, 2, NULL, &out, 1), GRAFT_INVALID_ARGUMENT, "input b is");
  ck_assert_ptr_null(in[0]);
  ck_assert_ptr_null(in[1]);
  ck_assert_int_eq(atomic_load(&reference()->storages), before);
  in[0] = filled(1);
  assert_says(graft_graph_run_letting_go(s.exec, in, 1, NULL, &out, 1), GRAFT_INVALID_ARGUMENT,
              "graft_graph_run_letting_go: the graph has 2 inputs, 1 were given");
  in[0] = filled(1);
  in[1] = filled(2);
  assert_says(graft_graph_run_letting_go(s.exec, in, 2, NULL, NULL, 0), GRAFT_INVALID_ARGUMENT, "has 1 outputs");
  in[0] = filled(1);
  in[1] = filled(2);
  const uint8_t first[] = {1, 0};
  assert_says(graft_graph_run_letting_go(NULL, in, 2, first, &out, 1), GRAFT_INVALID_ARGUMENT, "exec");
  ck_assert_ptr_null(in[0]);
  graft_tensor_release(in[1]);
  ck_assert_int_eq(atomic_load(&reference()->storages), before);
  ck_assert_ptr_null(out);
  end(&s);
}
END_TEST

/* A capture reads its inputs again with each launch, so their memory stays theirs. */
START_TEST(captures_keep_them) {
  setup s = compiled(chain, 1, 1);
  graft_graph_capture *capture;
  graft_tensor *in[] = {filled(1), filled(2)}, *own[] = {filled(1), filled(2)}, *out = NULL;
  graft_tensor *expected = called(chain, own[0], own[1]);
  graft_status status = graft_graph_capture_begin(reference(), NULL, &capture);
  if (!status) {
    status = graft_graph_run_letting_go(s.exec, in, 2, NULL, &out, 1);
    if (!status) status = graft_graph_capture_end(capture);
    for (int i = 0; i < 3 && !status; i++) {
      OK(graft_graph_capture_launch(capture));
      expect_same_values(out, expected, "what a launch gave");
    }
    graft_graph_capture_destroy(capture);
  }
  ck_assert_msg(!status, "%s", graft_last_error());
  release_all(own, 2);
  release_all((graft_tensor *[]){expected, out}, 2);
  end(&s);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(nobody_sees_another_value, ROWS(lies)),
                              ONCE(memory_serves_the_run),
                              ONCE(inputs_end_early),
                              ONCE(kept_inputs_stay),
                              ONCE(memory_knows_its_stream),
                              EACH(others_give_nothing, ROWS(not_reused)),
                              ONCE(misuse_is_told),
                              ONCE(captures_keep_them),
                              {0}};
  return run_suite("graph_donate", tests, (suite_options){.timeout_s = 60});
}
