/* A plugin of several arithmetics has each case in all of them, against answers that the oracle gives once. */
#include <math.h>
#include <string.h>

#include "conformance/conformance.h"
#include "conformance/run/answers.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "conformance/run/oracle.h"
#include "conformance/run/run.h"
#include "conformance/run/worker.h"
#include "graft/runtime.h"
#include "suite.h"

static const struct {
  const char *bug, *id;
} rows[] = {
    {"truncated", "aten.mul.Tensor/f32/33x17,33x17/contiguous/uniform/0"},
    {"half_gradient", "aten.sigmoid.default/f32/33x17/contiguous/uniform/0/vjp"},
    {"rough_vectors", "aten._linalg_svd.default/f32/3x13x5~general/contiguous/uniform/0"},
    {"rough_inverse", "aten.linalg_inv_ex.default/f64/3x13x13~general/contiguous/uniform/0"},
    {"not_deterministic", "aten.cumsum.default/f32/33x17,=1/deterministic/uniform/0"},
    {"philox_dropout", "aten.native_dropout.default/f32/33x17,=0.5,=true/contiguous/uniform/0"},
};

/* As the last of the plugin's arithmetics has it, where none is red. */
static void run_case(const char *id, const char *const *options, uint32_t count, cf_result *result) {
  cf_options o = {.backend = GRAFT_BINARY_DIR "/lib/graft_mutants.so", .plugin_option_count = count};
  cf_backend backend = {0};
  cf_case c;
  for (uint32_t i = 0; i < count; i++) o.plugin_options[i] = options[i];
  setenv("GRAFT_FALLBACK", "allow", 1);
  ck_assert_msg(cf_case_find(id, &c), "%s", id);
  ck_assert_msg(cf_backend_open(&o, &backend) == GRAFT_OK, "%s", graft_last_error());
  cf_run(&backend, &c, result);
}

START_TEST(a_case_that_is_red_in_one_is_red) {
  char bug[64];
  snprintf(bug, sizeof bug, "bug=%s", rows[_i / 2].bug);
  const char *const last[] = {"bug=right_reversed", "bug=right_narrow", bug};
  const char *const first[] = {bug, "bug=right_reversed", "bug=right_narrow"};
  cf_result result = {0};
  run_case(rows[_i / 2].id, _i % 2 ? last : first, 3, &result);
  ck_assert_int_eq(result.outcome, CF_FAIL);
  ck_assert_msg(strstr(result.text, rows[_i / 2].bug), "%s", result.text);
}
END_TEST

/* The last one's limits are made of answers about inputs that are moved a little. */
static const char *const right_ids[] = {
    "aten.mm.default/f32/33x17,17x129/contiguous/uniform/0",
    "aten.sigmoid.default/f32/33x17/contiguous/uniform/0/vjp",
    "aten._linalg_svd.default/f32/3x13x5~general/contiguous/uniform/0",
    "aten.cumsum.default/f32/33x17,=1/deterministic/uniform/0",
    "aten.native_dropout.default/f32/33x17,=0.5,=true/contiguous/uniform/0",
    "aten.linalg_qr.default/f32/3x13x13~general/contiguous/uniform/0/vjp",
};

START_TEST(what_is_right_in_all_passes_as_it_does_alone) {
  const char *const right[] = {"bug=right_reversed", "bug=right_narrow", "bug=right_no_fma"};
  cf_result together = {0}, alone = {0};
  run_case(right_ids[_i], right, 3, &together);
  run_case(right_ids[_i], &right[2], 1, &alone);
  ck_assert_msg(together.outcome == CF_PASS, "%s", together.text);
  ck_assert_msg(together.ratio == alone.ratio, "%g of the limit, and %g alone", together.ratio, alone.ratio);
}
END_TEST

/* ---- answers ---- */

static uint64_t offset_of_the_generator(void) {
  uint64_t seed, offset;
  graft_generator_state(graft_generator_default(graft_device_reference()), &seed, &offset);
  return offset;
}

static void set_offset(uint64_t offset) {
  graft_generator_set_state(graft_generator_default(graft_device_reference()), 1, offset);
}

static void make(cf_array arrays[CF_MAX_TENSORS], long double first) {
  const int64_t size = 2;
  memset(arrays, 0, CF_MAX_TENSORS * sizeof *arrays);
  ck_assert(cf_array_new(&arrays[0], GRAFT_WIDE, 1, &size));
  arrays[0].v[0] = (dt_value){first, 0};
}

START_TEST(the_same_question_has_the_same_answer) {
  cf_array kept[CF_MAX_TENSORS], first[CF_MAX_TENSORS] = {{0}};
  make(kept, 3);
  cf_answers_begin(true);
  const cf_question question = {.inputs = CF_ABSOLUTE, .values = cf_answers_values(0, kept, 1), .count = 1};
  ck_assert(!cf_answers_recall(&question, first, NULL));
  set_offset(40);
  cf_answers_keep(&question, kept, NULL);
  set_offset(80);
  kept[0].v[0].re = 5; /* it is a copy */
  ck_assert(cf_answers_recall(&question, first, NULL));
  ck_assert(first[0].v[0].re == 3 && first[0].numel == 2 && !first[1].v);
  ck_assert_uint_eq(offset_of_the_generator(), 40);
  cf_answers_begin(true);
  ck_assert_msg(!cf_answers_recall(&question, first, NULL), "an answer of another case");
  cf_array_free(&first[0]), cf_array_free(&kept[0]);
}
END_TEST

START_TEST(other_inputs_have_another_answer) {
  cf_array outs[CF_MAX_TENSORS] = {{0}}, moved[CF_MAX_TENSORS] = {{0}};
  cf_case c;
  cf_call call;
  ck_assert(cf_case_find("aten.abs.default/f32/33x17/contiguous/uniform/0", &c) && cf_call_open(&c, &call));
  ck_assert(cf_call_fill(&call, 1, true));
  cf_answers_begin(true);
  ck_assert(cf_oracle_run(&call, CF_AS_IS, false, 1, outs, NULL) == GRAFT_OK);
  call.in[0].v[0].re += 1;
  ck_assert(cf_oracle_run(&call, CF_AS_IS, false, 1, moved, NULL) == GRAFT_OK);
  ck_assert(moved[0].v[0].re == fabsl(call.in[0].v[0].re) && outs[0].v[0].re != moved[0].v[0].re);
  cf_answers_begin(false);
  cf_array_free(&outs[0]), cf_array_free(&moved[0]);
  cf_call_close(&call);
}
END_TEST

START_TEST(another_question_has_another_answer) {
  cf_array kept[CF_MAX_TENSORS], other[CF_MAX_TENSORS], first[CF_MAX_TENSORS] = {{0}};
  make(kept, 1), make(other, 1 + 0x1p-63L);
  cf_answers_begin(true);
  const cf_question question = {.values = cf_answers_values(0, kept, 1), .count = 1};
  cf_answers_keep(&question, kept, NULL);
  cf_question others[] = {question, question, question, question, question, question, question};
  others[0].inputs = CF_ONES;
  others[1].cotangents = CF_ONES;
  others[2].values = cf_answers_values(0, other, 1);
  others[3].gradient = true;
  others[4].widen_integers = true;
  others[5].wants_second = true;
  others[6].count = 2;
  for (int i = 0; i < ROWS(others); i++) ck_assert_msg(!cf_answers_recall(&others[i], first, NULL), "question %d", i);
  cf_array_free(&kept[0]), cf_array_free(&other[0]);
  cf_answers_begin(false);
  cf_answers_keep(&question, kept, NULL);
  ck_assert_msg(!cf_answers_recall(&question, first, NULL), "an answer that was not to be kept");
}
END_TEST

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "conformance") == 0) return cf_main_conformance(argc - 1, argv + 1);
  const suite_test tests[] = {EACH(a_case_that_is_red_in_one_is_red, 2 * ROWS(rows)),
                              EACH(what_is_right_in_all_passes_as_it_does_alone, ROWS(right_ids)),
                              ONCE(the_same_question_has_the_same_answer),
                              ONCE(other_inputs_have_another_answer),
                              ONCE(another_question_has_another_answer),
                              {0}};
  return run_suite("arithmetics", tests, (suite_options){.timeout_s = 120});
}
