/* The text form of op calls (conformance/text/text.h): what it accepts, what it says of what it does not, and that text
 * written from a parsed call is the canonical form of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/text/text.h"
#include "suite.h"

/* --- text to call to text --- */

static const struct {
  const char *text, *canonical; /* NULL: the same */
} round_trips[] = {
    {"aten::add.Tensor f32[2,3] i64[] alpha=2", NULL},
    {"aten.add.Tensor f32[2,3] i64[] 2", "aten::add.Tensor f32[2,3] i64[] alpha=2"},
    {"  aten::add.Tensor   f32[2,3]\ti64[]  alpha=1 ", "aten::add.Tensor f32[2,3] i64[]"},
    {"aten::abs.default f32[]", "aten::abs f32[]"},
    {"aten::add.Tensor f32[2,3]:1,2 f32[2,3]:3,1", "aten::add.Tensor f32[2,3]:1,2 f32[2,3]"},
    {"aten::abs bf16[2,3]:0,1@5", NULL},
    {"aten::abs f8_e4m3fn[]@7", NULL},
    {"aten::abs c64[0,3]", NULL},
    {"aten::add.Tensor f32[2] -3", NULL},
    {"aten::add.Tensor f32[2] 2.5 alpha=-1e-07", NULL},
    {"aten::add.Tensor f32[2] 1e-3", "aten::add.Tensor f32[2] 0.001"},
    {"aten::add.Tensor f32[2] 0.1", NULL},
    {"aten::add.Tensor f32[2] 2.", "aten::add.Tensor f32[2] 2.0"},
    {"aten::add.Tensor f32[2] true", NULL},
    {"aten::add.Tensor f32[2] inf", NULL},
    {"aten::add.Tensor f32[2] -inf", NULL},
    {"aten::add.Tensor f32[2] nan", NULL},
    {"aten::add.Tensor f32[2] 1+2j", "aten::add.Tensor f32[2] 1.0+2.0j"},
    {"aten::add.Tensor f32[2] 2j", "aten::add.Tensor f32[2] 0.0+2.0j"},
    {"aten::add.Tensor f32[2] -1.5-2e-3j", "aten::add.Tensor f32[2] -1.5-0.002j"},
    {"aten::add.Tensor f32[2] inf+nanj", "aten::add.Tensor f32[2] inf+nanj"},
    {"aten::add.Tensor f32[2] 18446744073709551615", NULL},
    {"aten::add.Tensor f32[2] -9223372036854775808", NULL},
    {"aten::cat {f32[2];f32[3]:2} -1", NULL},
    {"aten::cat {} dim=0", "aten::cat {}"},
    {"aten::index.Tensor f32[4,5] {_;i64[2]}", NULL},
    {"aten::index.Tensor indices={i64[2];_} self=f32[4,5]", "aten::index.Tensor f32[4,5] {i64[2];_}"},
    {"aten::sum.dim_IntList f32[2,3] [0,-1] true dtype=f64", NULL},
    {"aten::sum.dim_IntList f32[2,3] _ true", "aten::sum.dim_IntList f32[2,3] keepdim=true"},
    {"aten::sum.dim_IntList f32[2,3] []", NULL},
    {"aten::gelu f32[3] approximate='tanh'", NULL},
    {"aten::gelu f32[3] approximate='none'", "aten::gelu f32[3]"},
    {"aten::clone f32[1,2,3,4] memory_format='channels_last'", NULL},
    {"aten::full [2,3] 1.5 dtype=i32", NULL},
    {"aten::clamp f32[3] max=1", NULL},
    {"aten::convolution f32[1,2,5,5] f32[3,2,3,3] _ [1,1] [0,0] [1,1] false [0,0] 1",
     "aten::convolution f32[1,2,5,5] f32[3,2,3,3] stride=[1,1] padding=[0,0] dilation=[1,1] transposed=false "
     "output_padding=[0,0] groups=1"},
    {"aten::native_layer_norm_backward f32[2,3] f32[2,3] [3] f32[2,1] f32[2,1] f32[3] f32[3] [1,0,true]",
     "aten::native_layer_norm_backward f32[2,3] f32[2,3] [3] f32[2,1] f32[2,1] f32[3] f32[3] [1,0,1]"},
};

START_TEST(test_round_trip) {
  const char *text = round_trips[_i].text, *canonical = round_trips[_i].canonical;
  char written[512];
  txt_call call;
  ck_assert_msg(txt_parse_call(text, NULL, &call) == GRAFT_OK, "%s: %s", text, graft_last_error());
  ck_assert_msg(txt_make(&call, graft_device_reference(), NULL, NULL) == GRAFT_OK, "%s: %s", text, graft_last_error());
  txt_format_call(call.schema, call.args, call.nargs, written, sizeof written);
  ck_assert_str_eq(written, canonical ? canonical : text);
  txt_free(&call);
}
END_TEST

/* --- what is refused, and how --- */

static const struct {
  const char *text, *said;
} refusals[] = {
    {"", "column 1 of \"\": expected the name of an op, found the end"},
    {"aten::nonesuch f32[2]", "expected the name of an op (`graft ops` lists them), found \"aten::nonesuch\""},
    {"aten::add.Tensor f32[2]", "column 24 of \"aten::add.Tensor f32[2]\": expected a value for other, found the end"},
    {"aten::abs f31[2]", "column 11 of \"aten::abs f31[2]\": expected a dtype"},
    {"aten::abs x", "expected a tensor (f32[2,3]) or a number for self, found \"x\""},
    {"aten::abs f32[2,-3]", "expected a size that is not negative for self, found \"-3]\""},
    {"aten::abs f32[2,3", "expected \"]\" for self, found the end"},
    {"aten::abs f32[2,3]:1", "expected one stride for each dim for self"},
    {"aten::abs f32[2,3]:1,-1", "expected a stride that is not negative"},
    {"aten::abs f32[2]@-1", "expected an offset that is not negative"},
    {"aten::abs f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "expected at most 16 dims"},
    {"aten::abs f32[99999999999999999999]", "expected an integer of 64 bits"},
    {"aten::abs f32[2.5]", "expected an integer"},
    {"aten::abs f32[2]f32[2]", "expected a blank after the value"},
    {"aten::abs f32[2] f32[2]", "expected no further argument for aten::abs(Tensor self) -> Tensor"},
    {"aten::abs self=f32[2] self=f32[2]", "expected no second value for self"},
    {"aten::abs f32[2] self=f32[2]", "expected no second value for self"},
    {"aten::add.Tensor other=f32[2] f32[2]", "expected name=value after an argument in that form"},
    {"aten::add.Tensor f32[2] f32[2] beta=2", "expected the name of an argument for aten::add.Tensor("},
    {"aten::add.Tensor f32[2] 0x10", "expected a number for other"},
    {"aten::add.Tensor f32[2] 1+2", "expected \"j\""},
    {"aten::add.Tensor f32[2] 99999999999999999999", "expected an integer of 64 bits for other"},
    {"aten::select.int f32[2] 0 1.5", "expected an integer for index, found \"1.5\""},
    {"aten::sum.dim_IntList f32[2] [0] 2", "expected true or false for keepdim"},
    {"aten::sum.dim_IntList f32[2] 0", "expected \"[\" for dim, found \"0\""},
    {"aten::cat f32[2]", "expected \"{\" for tensors"},
    {"aten::gelu f32[2] approximate=tanh", "expected \"'\" for approximate"},
    {"aten::gelu f32[2] approximate='tanh", "expected a string that ends in ' for approximate"},
    {"aten::clone f32[2] memory_format='nhwc'", "expected 'contiguous', 'preserve', 'channels_last'"},
    {"aten::full [2] 1 device='cpu'", "expected only _, since it is never written, for device"},
    {"aten::abs f32[2] -> f32[2]:1", "expected no further argument"},
};

START_TEST(test_refusal) {
  txt_call call = {.nargs = 77};
  const char *text = refusals[_i].text;
  ck_assert_msg(txt_parse_call(text, NULL, &call) == GRAFT_INVALID_ARGUMENT, "accepted: %s", text);
  ck_assert_msg(strstr(graft_last_error(), refusals[_i].said) != NULL, "%s: said: %s", text, graft_last_error());
  ck_assert_uint_eq(call.nargs, 77); /* a failure leaves the call untouched */
}
END_TEST

START_TEST(test_rest) {
  txt_call call;
  const char *rest;
  ck_assert_int_eq(txt_parse_call("aten::abs f32[2] -> f32[2]:1\n", &rest, &call), GRAFT_OK);
  ck_assert_str_eq(rest, "f32[2]:1\n");
  txt_free(&call);
  ck_assert_int_eq(txt_parse_call("aten::abs f32[2]\n", &rest, &call), GRAFT_OK);
  ck_assert_ptr_null(rest);
  txt_free(&call);
}
END_TEST

START_TEST(test_values) {
  txt_call call;
  ck_assert_int_eq(txt_parse_call("aten::add.Tensor f32[2,3]:4,1@5 1-2j alpha=true", NULL, &call), GRAFT_OK);
  ck_assert_uint_eq(call.schema->id, GRAFT_OP_ADD_TENSOR);
  ck_assert_uint_eq(call.nargs, 3);
  ck_assert_uint_eq(call.ntensors, 1);
  ck_assert_uint_eq(call.specs[0].dtype, GRAFT_F32);
  ck_assert_int_eq(call.specs[0].ndim, 2);
  ck_assert_int_eq(call.specs[0].strides[0], 4);
  ck_assert_int_eq(call.specs[0].offset, 5);
  ck_assert_uint_eq(call.args[1].as.scalar.dtype, GRAFT_C128);
  ck_assert_double_eq(call.args[1].as.scalar.value.c[1], -2);
  ck_assert_uint_eq(call.args[2].as.scalar.dtype, GRAFT_BOOL);
  txt_free(&call);
}
END_TEST

/* --- tensors --- */

static graft_status count_fill(void *context, uint32_t index, graft_tensor *tensor) {
  ck_assert_uint_eq(index, (uint32_t) * (int *)context);
  ck_assert_ptr_nonnull(tensor->storage);
  ++*(int *)context;
  return GRAFT_OK;
}

START_TEST(test_make) {
  txt_call call;
  int filled = 0;
  ck_assert_int_eq(txt_parse_call("aten::index.Tensor f64[4,5]:1,4@2 {_;i64[2]}", NULL, &call), GRAFT_OK);
  ck_assert_int_eq(txt_make(&call, graft_device_reference(), count_fill, &filled), GRAFT_OK);
  ck_assert_int_eq(filled, 2);
  graft_tensor *self = call.args[0].as.tensor;
  ck_assert_int_eq(self->offset, 2);
  ck_assert_uint_ge(self->storage->bytes, 22 * 8);
  ck_assert_ptr_null(call.args[1].as.tensors[0]);
  ck_assert_ptr_eq(call.args[1].as.tensors[1], call.tensors[1]);
  txt_free(&call);

  ck_assert_int_eq(txt_parse_call("aten::full [2] 1", NULL, &call), GRAFT_OK);
  ck_assert_int_eq(txt_make(&call, graft_device_reference(), NULL, NULL), GRAFT_OK);
  ck_assert_uint_eq(call.args[4].kind, GRAFT_VALUE_DEVICE);
  txt_free(&call);

  ck_assert_int_eq(txt_parse_call("aten::abs f32[4294967296,4294967296]", NULL, &call), GRAFT_OK);
  ck_assert_int_eq(txt_make(&call, graft_device_reference(), NULL, NULL), GRAFT_INVALID_ARGUMENT);
  txt_free(&call);
}
END_TEST

/* Writing never passes the end of the buffer, and a cut text is terminated. */
START_TEST(test_cut) {
  char small[8];
  txt_call call;
  memset(small, 'x', sizeof small);
  ck_assert_int_eq(txt_parse_call("aten::add.Tensor f32[2,3] i64[]", NULL, &call), GRAFT_OK);
  txt_format_call(call.schema, call.args, call.nargs, small, 6);
  ck_assert_str_eq(small, "aten:");
  ck_assert_int_eq(small[6], 'x');
  txt_free(&call);
}
END_TEST

/* The lists of calls that the program carries: each is a call, of shapes that its op takes. */
static uint32_t calls_of(const char *path) {
  char line[65536];
  uint32_t calls = 0;
  FILE *file = fopen(path, "r");
  ck_assert_msg(file != NULL, "%s: cannot be opened", path);
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    char *bar = strstr(line, " | ");
    if (bar) *bar = 0;
    if (line[0] == '#' || !line[0]) continue;
    graft_meta metas[64];
    uint32_t count;
    txt_call call;
    ck_assert_msg(txt_parse_call(line, NULL, &call) == GRAFT_OK, "%s: %s: %s", path, line, graft_last_error());
    ck_assert_int_eq(txt_make(&call, graft_device_reference(), NULL, NULL), GRAFT_OK);
    graft_status status = graft_infer(call.schema->id, call.args, call.nargs, metas, sizeof *metas, 64, &count);
    ck_assert_msg(status == GRAFT_OK || status == GRAFT_UNIMPLEMENTED, "%s: %s: %s", path, line, graft_last_error());
    txt_free(&call);
    calls++;
  }
  fclose(file);
  return calls;
}

START_TEST(test_lists) {
  ck_assert_uint_gt(calls_of(GRAFT_SOURCE_DIR "/sdk/cli/bench_calls.txt"), 150);
  ck_assert_uint_gt(calls_of(GRAFT_SOURCE_DIR "/sdk/cli/warm_calls.txt"), 150);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(test_round_trip, ROWS(round_trips)),
                              EACH(test_refusal, ROWS(refusals)),
                              ONCE(test_rest),
                              ONCE(test_values),
                              ONCE(test_make),
                              ONCE(test_cut),
                              ONCE(test_lists),
                              {0}};
  return run_suite("text", tests, (suite_options){0});
}
