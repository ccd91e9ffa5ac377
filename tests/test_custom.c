/* Ops that a plugin brings: their schemas, calls by name, errors, gradients. */
#include <string.h>
#include <sys/wait.h>

#include "bad_input.h"
#include "dispatch/dispatch.h"
#include "graft/bridge.h"
#include "graft/custom_ops.h"
#include "graft/graft.h"
#include "marks.h"
#include "ops/core/schema_text.h"
#include "suite.h"

static void says(const char *text) {
  ck_assert_msg(strstr(graft_last_error(), text), "\"%s\" does not say \"%s\"", graft_last_error(), text);
}

/* --- schemas --- */

static const struct {
  const char *text, *error;
} refused[] = {
    {"", "it ends where a namespace is expected"},
    {"aten::x(Tensor x) -> Tensor", "the namespace \"aten\" is not the plugin's to take"},
    {"graft::x(Tensor x) -> Tensor", "the namespace \"graft\""},
    {"scale(Tensor x) -> Tensor", "at column 6: expected \"::\", found \"(Tensor x) -> Tensor\""},
    {"acme::(Tensor x) -> Tensor", "at column 7: expected the name of the op"},
    {"acme::x.(Tensor x) -> Tensor", "expected the name of the overload"},
    {"acme:: x(Tensor x) -> Tensor", "a blank is in its name"},
    {"acme::x(Tensor) -> Tensor", "at column 15: expected the name of an argument"},
    {"acme::x(Tensor x, Tensor x) -> Tensor", "two arguments are called x"},
    {"acme::x(Tensor(a!) x) -> Tensor(a!)", "\"Tensor(a!)\": custom ops neither write into their arguments"},
    {"acme::x(Tensor(a) x) -> Tensor(a)", "nor return views"},
    {"acme::x(Tensor x) -> Tensor(a)", "nor return views"},
    {"acme::x(Tensor x, Generator? g) -> Tensor", "the type \"Generator?\", which a custom op can't have"},
    {"acme::x(Tensor x, Device d) -> Tensor", "the type \"Device\""},
    {"acme::x(Tensor x, bool[] m) -> Tensor", "a list of bools has a length"},
    {"acme::x(Tensor x, float[2] m) -> Tensor", "the type \"float[2]\""},
    {"acme::x(Tensor x, int[0] m) -> Tensor", "expected a length of 1 to"},
    {"acme::x(Tensor x, str[] m) -> Tensor", "the type \"str[]\""},
    {"acme::x(Tensor[]? x) -> Tensor", "the type \"Tensor[]?\""},
    {"acme::x(Tensor x, int n=2.5) -> Tensor", "argument n has the default \"\""},
    {"acme::x(Tensor x, int n=None) -> Tensor", "argument n has the default \"None\""},
    {"acme::x(Tensor x, bool[2] n=[True]) -> Tensor", "argument n has the default"},
    {"acme::x(Tensor x, float n=inf) -> Tensor", "argument n has the default \"inf\""},
    {"acme::x(Tensor x, Scalar[] n=[1]) -> Tensor", "argument n has the default \"[1]\""},
    {"acme::x(Tensor x, int[2]? n=[1, 2]) -> Tensor", "argument n has the default \"[1\""},
    {"acme::x(int n=1, Tensor x) -> Tensor", "argument x has no default, and one before it has"},
    {"acme::x2345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
     "890.abcd(Tensor x) -> Tensor",
     "its name has more than 120 characters"},
    {"acme::x(Tensor x -> Tensor", "at column 18: expected \",\" or \")\""},
    {"acme::x(Tensor x)", "it ends where \"->\" and results is expected"},
    {"acme::x(Tensor x) -> ()", "expected Tensor"},
    {"acme::x(Tensor x) -> int", "a result has the type \"int\"; custom ops give Tensor"},
    {"acme::x(Tensor x) -> Tensor[]", "a result has the type \"Tensor[]\""},
    {"acme::x(Tensor x) -> Tensor, Tensor", "at column 28: expected the end"},
};

START_TEST(wrong_schemas_are_refused) {
  arena memory = {0};
  op_schema schema;
  ck_assert_int_eq(op_schema_read(refused[_i].text, &memory, &schema), GRAFT_INVALID_ARGUMENT);
  says(refused[_i].error);
  arena_free(&memory);
}
END_TEST

START_TEST(schemas_are_read) {
  arena memory = {0};
  op_schema schema;
  OK(op_schema_read(
      "acme::a_1.two( Tensor x, Tensor?[] y, bool b=False, SymInt[2] n=7, ScalarType? d=None, *, float f "
      "= 2, Scalar? s=1e-3, str t='a, b') -> (Tensor first, Tensor)",
      &memory, &schema));
  ck_assert_str_eq(schema.name, "acme::a_1.two");
  ck_assert_int_eq(schema.nargs, 8);
  ck_assert_int_eq(schema.nrets, 2);
  const uint8_t kinds[] = {OPK_TENSOR, OPK_TENSORS, OPK_BOOL, OPK_INTS, OPK_DTYPE, OPK_FLOAT, OPK_SCALAR, OPK_STR};
  const uint16_t offsets[] = {16, 24, 40, 48, 64, 72, 80, 88}; /* as a C compiler places them */
  for (int i = 0; i < 8; i++) {
    ck_assert_int_eq(schema.args[i].kind, kinds[i]);
    ck_assert_int_eq(schema.args[i].offset, offsets[i]);
    ck_assert_int_eq(!!(schema.args[i].flags & OPA_KWARG), i >= 5);
  }
  ck_assert(schema.args[1].flags & OPA_OPTIONAL_ITEMS);
  ck_assert_int_eq(schema.args[2].fallback->kind, GRAFT_VALUE_BOOL);
  ck_assert_int_eq(schema.args[3].fallback->count, 2);
  ck_assert_int_eq(schema.args[3].fallback->as.ints[1], 7);
  ck_assert_ptr_null(schema.args[4].fallback);
  ck_assert(schema.args[5].fallback->as.f == 2);
  ck_assert(schema.args[6].fallback->as.scalar.value.f == 1e-3);
  ck_assert_str_eq(schema.args[7].fallback->as.str, "a, b");
  ck_assert_str_eq(schema.rets[0].name, "first");
  ck_assert_str_eq(schema.rets[1].name, "out1");
  ck_assert_int_eq(schema.rets[1].offset, 104);
  ck_assert_int_eq(schema.args_size, 112);
  OK(op_schema_read(/* of 120 characters */
                    "acme::"
                    "x2345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
                    "901234567"
                    "890.abc(Tensor x) -> Tensor",
                    &memory, &schema));
  OK(op_schema_read(" acme::x.default (Tensor x) -> Tensor", &memory, &schema));
  ck_assert_str_eq(schema.name, "acme::x");
  arena_free(&memory);
}
END_TEST

/* --- calls --- */

static graft_rt_device *device;

static void open_custom(void) {
  graft_rt_backend *backend;
  OK(graft_backend_open(test_plugin("custom"), NULL, &backend));
  OK(graft_backend_device(backend, 0, &device));
}

static uint32_t op_named(const char *name) {
  uint32_t id = graft_op_find(name);
  ck_assert_msg(id, "there is no %s", name);
  return id;
}

static graft_tensor *floats(graft_rt_device *on, int64_t count, const float *values) {
  graft_tensor *t;
  OK(graft_tensor_from_host(on, GRAFT_F32, 1, &count, values, &t));
  return t;
}

static void holds(graft_tensor *t, int64_t count, const float *values) {
  float got[16];
  ck_assert_int_eq(graft_tensor_numel(t), count);
  OK(graft_tensor_to_host(t, got));
  for (int64_t i = 0; i < count; i++) ck_assert_msg(got[i] == values[i], "[%d] is %g", (int)i, (double)got[i]);
}

START_TEST(ops_are_called_by_name) {
  open_custom();
  uint32_t id = op_named("acme::scale_add");
  ck_assert_uint_eq(id, graft_op_find("acme.scale_add.default"));
  ck_assert_str_eq(graft_op_name(id), "acme::scale_add");
  ck_assert(graft_op_known(id));
  graft_custom_op_info info[16];
  ck_assert_uint_eq(graft_custom_ops(NULL, 0, 0), 11);
  ck_assert_uint_eq(graft_custom_ops(info, sizeof *info, 16), 11);
  ck_assert_uint_eq(info[0].op_id, id);
  ck_assert_uint_eq(info[0].gradient_id, op_named("acme::scale_add_backward"));
  ck_assert_str_eq(info[0].plugin, "custom");
  ck_assert(info[0].gradient_of[0] == 0 && info[0].gradient_of[1] == 1 && info[0].gradient_of[2] == -1);
  graft_tensor *x = floats(device, 2, (float[]){1, 2}), *y = floats(device, 2, (float[]){10, 20}), *out = NULL;
  graft_value args[] = {graft_value_tensor(x), graft_value_tensor(y), graft_value_float(0.5)};
  OK(graft_call(id, args, 3, &out, 1));
  holds(out, 2, (float[]){6, 12});
  ck_assert_int_eq(dsp_last_route(), DSP_ROUTE_PLUGIN);
  OK(graft_call(id, args, 2, &out, 1)); /* alpha is 1; into the tensor that is there */
  holds(out, 2, (float[]){11, 22});
  graft_tensor_release(out);
  graft_tensor_release(x);
  graft_tensor_release(y);
}
END_TEST

START_TEST(slots_see_their_arguments) {
  open_custom();
  graft_tensor *x = floats(device, 1, (float[]){8}), *y = floats(device, 2, (float[]){5, 6}), *outs[2] = {NULL};
  graft_tensor *more[] = {y, x};
  const graft_scalar numbers[] = {graft_scalar_int(1), graft_scalar_float(2.5)};
  graft_value args[15] = {graft_value_tensor(x),
                          {0},
                          graft_value_tensors(more, 2),
                          graft_value_int(7),
                          {GRAFT_VALUE_SCALARS, 2, {.scalars = numbers}}};
  double seen[16];
  OK(graft_call(op_named("acme::probe.all"), args, 5, outs, 2));
  OK(graft_tensor_to_host(outs[0], seen));
  const double defaults[] = {8, 2, 7, -1, 0.5, 1, 2, 3, 4, -1, 2, 5, 0, 4, -1, 5};
  for (int i = 0; i < 16; i++) ck_assert_msg(seen[i] == defaults[i], "[%d] is %g", i, seen[i]);
  ck_assert_ptr_null(outs[1]); /* which the call does not produce */
  graft_tensor_release(outs[0]);
  outs[0] = NULL;
  args[1] = graft_value_tensor(y);
  args[2] = graft_value_tensors(NULL, 0);
  args[5] = graft_value_int(70);
  args[6] = graft_value_float(1.5);
  args[7] = graft_value_bool(false);
  args[8] = graft_value_scalar(graft_scalar_float(2.5));
  args[9] = graft_value_ints((const int64_t[]){30, 40}, 2);
  args[10] = (graft_value){GRAFT_VALUE_FLOATS, 1, {.floats = (const double[]){9.5}}};
  args[11] = (graft_value){GRAFT_VALUE_MASK, 3, {.mask = (const uint8_t[]){0, 1, 1}}};
  args[12] = (graft_value){GRAFT_VALUE_DTYPE, 0, {.dtype = GRAFT_F64}};
  args[13] = (graft_value){GRAFT_VALUE_STR, 0, {.str = "exact and slow"}};
  args[14] = graft_value_bool(true);
  OK(graft_call(op_named("acme::probe.all"), args, 15, outs, 2));
  OK(graft_tensor_to_host(outs[0], seen));
  const double given[] = {8, 0, 7, 70, 1.5, 0, 2.5, 30, 40, 9.5, 2, 3, GRAFT_F64, 14, 1, 0};
  for (int i = 0; i < 16; i++) ck_assert_msg(seen[i] == given[i], "[%d] is %g", i, seen[i]);
  holds(outs[1], 2, (float[]){5, 6});
  for (int i = 0; i < 2; i++) graft_tensor_release(outs[i]), graft_tensor_release(more[i]);
}
END_TEST

START_TEST(errors_name_op_and_plugin) {
  open_custom();
  uint32_t id = op_named("acme::scale_add"), opaque = op_named("acme::opaque");
  graft_tensor *x = floats(device, 2, (float[]){1, 2}), *y = floats(device, 1, (float[]){1}), *out = NULL;
  graft_value args[] = {graft_value_tensor(x), graft_value_tensor(y)};
  ck_assert_int_eq(graft_call(id, args, 2, &out, 1), GRAFT_INVALID_ARGUMENT);
  says("acme::scale_add: the rule of its shapes: x and y must have one shape and one dtype");
  ck_assert_int_eq(graft_call(id, args, 1, &out, 1), GRAFT_INVALID_ARGUMENT);
  says("acme::scale_add: argument y is missing; expected Tensor");
  graft_tensor *host = floats(graft_device_reference(), 2, (float[]){1, 2});
  args[0] = graft_value_tensor(host);
  ck_assert_int_eq(graft_call(opaque, args, 1, &out, 1), GRAFT_UNIMPLEMENTED);
  says("acme::opaque: nothing serves x f32[2] on reference:0: it is an op of the plugin custom");
  ck_assert_ptr_null(out);
  graft_tensor *const all[] = {x, y, host};
  for (int i = 0; i < 3; i++) graft_tensor_release(all[i]);
}
END_TEST

/* Tensors of the host go to the reference function. */
START_TEST(reference_functions_serve_host_memory) {
  open_custom();
  graft_tensor *x = floats(graft_device_reference(), 3, (float[]){1, 2, 3}), *out = NULL, *turned;
  graft_value args[] = {graft_value_tensor(x)};
  OK(graft_call(op_named("acme::cube"), args, 1, &out, 1));
  holds(out, 3, (float[]){1, 8, 27});
  graft_tensor_release(out);
  out = NULL;
  /* What it is given is contiguous: every second element here. */
  const int64_t two = 2, step = 2;
  OK(graft_op_as_strided(x, &two, 1, &step, 1, NULL, &turned));
  args[0] = graft_value_tensor(turned);
  OK(graft_call(op_named("acme::cube"), args, 1, &out, 1));
  holds(out, 2, (float[]){1, 27});
  graft_tensor *const all[] = {x, out, turned};
  for (int i = 0; i < 3; i++) graft_tensor_release(all[i]);
}
END_TEST

/* Opened again with other options it has the same ops; a plugin that is closed has none. */
START_TEST(backends_share_and_lose_their_ops) {
  open_custom();
  uint32_t id = op_named("acme::cube");
  graft_rt_backend *again;
  graft_rt_device *other;
  OK(graft_backend_open(test_plugin("custom"), (const char *const[]){"instance=2", NULL}, &again));
  OK(graft_backend_device(again, 0, &other));
  ck_assert(other != device);
  ck_assert_uint_eq(id, graft_op_find("acme::cube"));
  graft_tensor *x = floats(other, 1, (float[]){3}), *out = NULL;
  graft_value args[] = {graft_value_tensor(x)};
  OK(graft_call(id, args, 1, &out, 1));
  holds(out, 1, (float[]){27});
  graft_tensor_release(x);
  graft_tensor_release(out);
  OK(graft_backend_close(again));
  OK(graft_backend_close(device->backend));
  graft_tensor *host = floats(graft_device_reference(), 1, (float[]){3});
  args[0] = graft_value_tensor(host);
  out = NULL;
  ck_assert_int_eq(graft_call(id, args, 1, &out, 1), GRAFT_INVALID_ARGUMENT);
  says("acme::cube: the plugin custom, whose op it is, was closed");
  graft_tensor_release(host);
}
END_TEST

/* --- rows and answers that are wrong --- */

/* The lines of the log, one behind the other. */
static char log_lines[8192];

static void note_line(void *context, graft_log_level level, const char *text) {
  (void)context;
  size_t used = strlen(log_lines);
  snprintf(log_lines + used, sizeof log_lines - used, "%d %s\n", level, text);
}

/* Another plugin with the same ops, one of them changed. */
static graft_status open_liar(const char *lie) {
  graft_rt_backend *backend;
  setenv("GRAFT_LIE", lie, 1);
  graft_log_set_sink(note_line, NULL);
  graft_status status = graft_backend_open(test_plugin("liar"), NULL, &backend);
  graft_log_set_sink(NULL, NULL);
  if (!status) OK(graft_backend_device(backend, 0, &device));
  return status;
}

static graft_status call_one(const char *op, graft_tensor *x, graft_tensor **out) {
  graft_value args[] = {graft_value_tensor(x)};
  *out = NULL;
  return graft_call(op_named(op), args, 1, out, 1);
}

/* What the lies leave alone works. */
static void the_others_work(void) {
  graft_tensor *x = floats(device, 2, (float[]){1, 2}), *y = floats(device, 2, (float[]){10, 20}), *out = NULL;
  graft_value args[] = {graft_value_tensor(x), graft_value_tensor(y), graft_value_float(0.5)};
  OK(graft_call(op_named("acme::scale_add"), args, 3, &out, 1));
  holds(out, 2, (float[]){6, 12});
  graft_tensor *const all[] = {x, y, out};
  for (int i = 0; i < 3; i++) graft_tensor_release(all[i]);
}

static const struct {
  const char *lie, *line;
} left_out[] = {
    {"custom_no_slot", "liar: its custom op 2, acme::cube(Tensor x) -> Tensor, is left out: slot is NULL"},
    {"custom_no_infer", "acme::cube(Tensor x) -> Tensor, is left out: infer is NULL"},
    {"custom_no_schema", "liar: its custom op 2, without a schema, is left out: its schema is NULL"},
    {"custom_no_row", "liar: its custom op 2, without a schema, is left out: the pointer to it is NULL"},
    {"custom_schema", "is left out: \"Tensor(a!)\": custom ops neither write into their arguments"},
    {"custom_taken", "is left out: the namespace \"aten\" is not the plugin's to take"},
    {"custom_long_name", "is left out: its name has more than 120 characters"},
    {"custom_id", "is left out: acme::scale_add has the id 0x80000001, too"},
    {"custom_low_id", "is left out: its id is"},
    {"custom_gradient", "is left out: its gradient_id is 0x8000000c, and no op of the plugin that is served has it"},
    {"custom_other_gradient", "is left out: its gradient is acme::scale_add_backward"},
    {"custom_keyword", "keyword-only ones with the same names"},
    {"custom_twice", "is left out: two results of its gradient acme::cube_backward are called grad_x"},
    {"custom_half_named", "is left out: the result dx of its gradient acme::cube_backward names no Tensor argument"},
};

START_TEST(wrong_rows_are_left_out) {
  OK(open_liar(left_out[_i].lie));
  ck_assert_msg(strstr(log_lines, left_out[_i].line), "no \"%s\" in:\n%s", left_out[_i].line, log_lines);
  ck_assert_msg(strchr(log_lines, '\n') == log_lines + strlen(log_lines) - 1, "more than a line:\n%s", log_lines);
  ck_assert(strlen(log_lines) < 600);
  ck_assert_uint_eq(graft_op_find("acme::cube"), 0);
  ck_assert_uint_eq(graft_custom_ops(NULL, 0, 0), 10);
  the_others_work();
}
END_TEST

static const struct {
  const char *lie, *error;
} wrong_answers[] = {
    {"custom_dtype", "acme::cube: infer of the plugin liar gave the result out the dtype 0x00007777, which is none"},
    {"custom_dims", "acme::cube: infer of the plugin liar gave the result out a shape that is none: 17 dims"},
    {"custom_size", "acme::cube: infer of the plugin liar gave the result out a shape that is none"},
    {"custom_huge", "acme::cube: infer of the plugin liar gave the result out a shape that is none: 2 dims"},
    {"custom_nothing", "acme::cube: infer of the plugin liar said OK and of no result what it is"},
    {"custom_status", "acme::cube: the rule of its shapes"},
};

START_TEST(wrong_answers_of_infer_are_errors) {
  OK(open_liar(wrong_answers[_i].lie));
  ck_assert_msg(!*log_lines, "%s", log_lines);
  graft_tensor *x = floats(device, 2, (float[]){1, 2}), *out;
  graft_status status = call_one("acme::cube", x, &out);
  ck_assert_msg(status && status != GRAFT_UNIMPLEMENTED, "%s", graft_last_error());
  says(wrong_answers[_i].error);
  ck_assert_msg(!strchr(graft_last_error(), '\n'), "%s", graft_last_error());
  ck_assert_ptr_null(out);
  the_others_work();
  graft_tensor_release(x);
}
END_TEST

START_TEST(gradients_of_another_shape_are_an_error) {
  OK(open_liar("custom_gradient_shape"));
  graft_tensor *x = floats(device, 2, (float[]){2, 3}), *g = floats(device, 2, (float[]){1, 1}), *out, *grad = NULL;
  OK(graft_tensor_set_requires_grad(x, true));
  OK(call_one("acme::cube", x, &out));
  ck_assert_int_ne(graft_grad(&out, &g, 1, &x, 1, 0, &grad), GRAFT_OK);
  says("acme::cube: its gradient formula gave");
  ck_assert_ptr_null(grad);
  graft_tensor *const all[] = {x, g, out};
  for (int i = 0; i < 3; i++) graft_tensor_release(all[i]);
}
END_TEST

/* A name belongs to the plugin that came first; on the other's device its op is one that the device has not. */
START_TEST(names_belong_to_one_plugin) {
  open_custom();
  graft_rt_device *first = device;
  OK(open_liar("none"));
  ck_assert(device != first);
  ck_assert_msg(strstr(log_lines,
                       "liar: its custom op 2, acme::cube(Tensor x) -> Tensor, is left out: acme::cube is "
                       "an op of the plugin custom"),
                "%s", log_lines);
  ck_assert_uint_eq(graft_custom_ops(NULL, 0, 0), 11);
  graft_tensor *x = floats(first, 1, (float[]){3}), *y = floats(device, 1, (float[]){3}), *out, *none;
  OK(call_one("acme::cube", x, &out));
  holds(out, 1, (float[]){27});
  ck_assert_int_eq(dsp_last_route(), DSP_ROUTE_PLUGIN);
  ck_assert_int_eq(call_one("acme::opaque", y, &none), GRAFT_UNIMPLEMENTED);
  says("acme::opaque: nothing serves x f32[1] on liar:0");
  device = first;
  the_others_work();
  graft_tensor *const all[] = {x, y, out};
  for (int i = 0; i < 3; i++) graft_tensor_release(all[i]);
}
END_TEST

/* Where there is no room for all, an op whose gradient found none is not there either. */
START_TEST(a_process_has_so_many_ops) {
  open_custom();
  OK(open_liar("custom_many"));
  size_t before = 11, pairs = 1022 / 2, room = 1024 - before - pairs; /* for gradients */
  char name[32];
  for (size_t i = 0; i < pairs; i++) {
    snprintf(name, sizeof name, "many::op%zu", i);
    ck_assert_msg(!graft_op_find(name) == (i >= room), "%s", name);
    snprintf(name, sizeof name, "many::of%zu", i);
    ck_assert_msg(!graft_op_find(name) == (i >= room), "%s", name);
  }
  ck_assert_uint_eq(graft_custom_ops(NULL, 0, 0), before + 2 * room);
  ck_assert_msg(strstr(log_lines, "there is no room for it; a process has at most 1024 custom ops"), "%s", log_lines);
}
END_TEST

/* --- gradients --- */

/* A tensor of the device whose gradient is wanted. */
static graft_tensor *leaf(int64_t count, const float *values) {
  graft_tensor *t = floats(device, count, values);
  OK(graft_tensor_set_requires_grad(t, true));
  return t;
}

START_TEST(gradients_go_through_the_gradient_op) {
  open_custom();
  graft_tensor *x = leaf(2, (float[]){1, 2}), *y = leaf(2, (float[]){3, 4}), *out = NULL, *grads[2] = {NULL};
  graft_tensor *g = floats(device, 2, (float[]){10, 100}), *const inputs[] = {x, y};
  graft_value args[] = {graft_value_tensor(x), graft_value_tensor(y), graft_value_float(0.5)};
  OK(graft_call(op_named("acme::scale_add"), args, 3, &out, 1));
  ck_assert(graft_tensor_requires_grad(out));
  OK(graft_grad(&out, &g, 1, inputs, 2, 0, grads));
  holds(grads[0], 2, (float[]){10, 100});
  holds(grads[1], 2, (float[]){5, 50});
  ck_assert_int_eq(dsp_last_route(), DSP_ROUTE_PLUGIN);
  graft_tensor *const all[] = {x, y, out, g, grads[0], grads[1]};
  for (int i = 0; i < 6; i++) graft_tensor_release(all[i]);
}
END_TEST

START_TEST(gradients_have_gradients) {
  open_custom();
  graft_tensor *x = leaf(2, (float[]){2, 3}), *out = NULL, *first = NULL, *second = NULL;
  graft_tensor *g = floats(device, 2, (float[]){1, 1});
  graft_value args[] = {graft_value_tensor(x)};
  OK(graft_call(op_named("acme::cube"), args, 1, &out, 1));
  OK(graft_grad(&out, &g, 1, &x, 1, GRAFT_BACKWARD_CREATE_GRAPH, &first));
  holds(first, 2, (float[]){12, 27});
  OK(graft_grad(&first, &g, 1, &x, 1, 0, &second));
  holds(second, 2, (float[]){12, 18});
  graft_tensor *const all[] = {x, out, first, second, g};
  for (int i = 0; i < 5; i++) graft_tensor_release(all[i]);
}
END_TEST

/* Results that have names say whose gradients they are: an index has none. */
START_TEST(gradients_are_named) {
  open_custom();
  const int64_t picked[] = {2, 0, 2}, count = 3;
  graft_tensor *x = leaf(3, (float[]){5, 6, 7}), *index, *out = NULL, *grad = NULL;
  graft_tensor *g = floats(device, 3, (float[]){1, 10, 100});
  OK(graft_tensor_from_host(device, GRAFT_I64, 1, &count, picked, &index));
  graft_value args[] = {graft_value_tensor(x), graft_value_tensor(index)};
  OK(graft_call(op_named("acme::pick"), args, 2, &out, 1));
  holds(out, 3, (float[]){7, 5, 7});
  OK(graft_grad(&out, &g, 1, &x, 1, 0, &grad));
  holds(grad, 3, (float[]){10, 0, 101});
  graft_tensor *const all[] = {x, index, out, g, grad};
  for (int i = 0; i < 5; i++) graft_tensor_release(all[i]);
}
END_TEST

START_TEST(ops_without_a_gradient_say_so) {
  open_custom();
  graft_tensor *x = leaf(2, (float[]){2, 3}), *out = NULL, *grad = NULL;
  graft_tensor *g = floats(device, 2, (float[]){1, 1});
  graft_value args[] = {graft_value_tensor(x)};
  OK(graft_call(op_named("acme::opaque"), args, 1, &out, 1));
  ck_assert_int_eq(graft_grad(&out, &g, 1, &x, 1, 0, &grad), GRAFT_UNIMPLEMENTED);
  says("acme::opaque has no gradient formula, and a gradient reached it");
  graft_tensor *const all[] = {x, out, g};
  for (int i = 0; i < 3; i++) graft_tensor_release(all[i]);
}
END_TEST

/* --- the conformance suite --- */

static char output[1 << 16];

static int conformance(const char *lie, const char *selection) {
  char command[4096];
  snprintf(command, sizeof command, "GRAFT_LIE='%s' '%s' conformance -b '%s' --jobs 1 %s 2>&1", lie, PROGRAM,
           test_plugin("custom"), selection);
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  size_t bytes = fread(output, 1, sizeof output - 1, pipe);
  output[bytes] = 0;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void prints(const char *text) {
  ck_assert_msg(strstr(output, text), "no \"%s\" in:\n%.3000s", text, output);
}

START_TEST(right_ops_conform) {
  ck_assert_msg(conformance("none", "--op 'acme.*' --level mustpass") == 0, "%.3000s", output);
  prints("10 ops served");
  prints("acme::opaque is not tested: the plugin custom gives no reference function for it");
  ck_assert_int_eq(conformance("none", "--op 'acme.cube*' --level mustpass --list"), 0);
  prints("acme.cube.default/f32/x=33x17");
  prints("adjoint");
}
END_TEST

static const struct {
  const char *lie, *selection, *text;
} wrong_ops[] = {
    {"numbers", "--op acme.scale_add --grad no", "acme.scale_add.default/f32"},
    {"numbers", "--op acme.pick", "acme.pick.default/f32"},
    {"gradients", "--op acme.scale_add --grad only", "gradient of y"},
    {"gradients", "--op acme.cube_backward --grad no", "acme.cube_backward.default/f32"},
    {"formula", "--op acme.cube --grad only --level mustpass", "adjoint identity"},
};

START_TEST(wrong_ops_do_not) {
  ck_assert_msg(conformance(wrong_ops[_i].lie, wrong_ops[_i].selection) == 1, "%.3000s", output);
  prints(wrong_ops[_i].text);
}
END_TEST

START_TEST(cases_that_cannot_be_read_are_an_error) {
  ck_assert_msg(conformance("cases", "--op acme.cube") == 2, "%.3000s", output);
  prints("acme::cube: its case \"T[3\": ");
  ck_assert_msg(conformance("no cases", "--op acme.cube") == 2, "%.3000s", output);
  prints("acme::cube: its cases hold no line");
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(wrong_schemas_are_refused, ROWS(refused)),
                              ONCE(schemas_are_read),
                              ONCE(ops_are_called_by_name),
                              ONCE(slots_see_their_arguments),
                              ONCE(errors_name_op_and_plugin),
                              ONCE(reference_functions_serve_host_memory),
                              ONCE(backends_share_and_lose_their_ops),
                              EACH(wrong_rows_are_left_out, ROWS(left_out)),
                              EACH(wrong_answers_of_infer_are_errors, ROWS(wrong_answers)),
                              ONCE(gradients_of_another_shape_are_an_error),
                              ONCE(names_belong_to_one_plugin),
                              ONCE(a_process_has_so_many_ops),
                              ONCE(gradients_go_through_the_gradient_op),
                              ONCE(gradients_have_gradients),
                              ONCE(gradients_are_named),
                              ONCE(ops_without_a_gradient_say_so),
                              ONCE(right_ops_conform),
                              EACH(wrong_ops_do_not, ROWS(wrong_ops)),
                              ONCE(cases_that_cannot_be_read_are_an_error),
                              {0}};
  return run_suite("custom", tests, (suite_options){.timeout_s = 240});
}
