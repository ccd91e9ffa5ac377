/* The OpenCL backend by itself: how it answers for its ops, what it refuses, what it says. Without it, nothing is done.
 */
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bad_input.h"
#include "device/device.h"
#include "marks.h"
#include "suite.h"

static graft_rt_device *opencl(void) {
  graft_rt_device *device = has_opencl() ? device_at(OPENCL, NULL, 0) : NULL;
  ck_assert_msg(device || !has_opencl(), "%s", graft_last_error());
  return device;
}

static void assert_text(const char *part) {
  ck_assert_msg(strstr(graft_last_error(), part), "expected \"%s\" in: %s", part, graft_last_error());
}

/* --- an index out of range names its op, whichever op it is --- */

static const char *const indexed[] = {
    "aten::embedding f32[3,4] i64[5]",
    "aten::embedding_dense_backward f32[5,4] i64[5] 3 -1 false",
    "aten::gather f32[3,4] 0 i64[3,4]",
    "aten::index_select f32[3,4] 0 i64[5]",
    "aten::index.Tensor f32[3,4] {i64[5]}",
    "aten::take f32[3] i64[5]",
    "aten::index_put f32[3,4] {i64[5]} f32[5,4]",
    "aten::_index_put_impl f32[3,4] {i64[5]} f32[5,4]",
    "aten::put f32[3] i64[5] f32[5]",
    "aten::index_add f32[3,4] 0 i64[5] f32[5,4]",
    "aten::index_copy f32[3,4] 0 i64[5] f32[5,4]",
    "aten::index_fill.int_Tensor f32[3,4] 0 i64[5] f32[]",
    "aten::scatter.src f32[3,4] 0 i64[3,4] f32[3,4]",
    "aten::scatter.value f32[3,4] 0 i64[3,4] 2",
    "aten::scatter_add f32[3,4] 0 i64[3,4] f32[3,4]",
    "aten::scatter_reduce.two f32[3,4] 0 i64[3,4] f32[3,4] 'sum'",
    "aten::nll_loss_forward f32[5,3] i64[5] _ 1 -100",
    "aten::nll_loss_backward f32[] f32[5,3] i64[5] _ 1 -100 f32[]",
    "aten::nll_loss2d_forward f32[5,3,1,1] i64[5,1,1] _ 1 -100",
    "aten::nll_loss2d_backward f32[] f32[5,3,1,1] i64[5,1,1] _ 1 -100 f32[]",
    "aten::embedding_renorm f32[3,4] i64[5] 1 2",
    "aten::_embedding_bag_per_sample_weights_backward f32[3,4] f32[3,4] i64[5] i64[3] i64[5] 0",
    "aten::max_unpool2d f32[1,1,2] i64[1,1,2] [1,3]",
    "aten::max_pool2d_with_indices_backward f32[1,1,1] f32[1,1,3] [1,3] [1,3] [0,0] [1,1] false i64[1,1,1]",
    "aten::_ctc_loss f32[4,1,3] i64[1,2] [4] [2]",
    "aten::multi_margin_loss f32[5,3] i64[5]",
    "aten::multi_margin_loss_backward f32[] f32[5,3] i64[5] 1 1 _ 1",
    "aten::multilabel_margin_loss_forward f32[5,3] i64[5,3] 1",
    "aten::multilabel_margin_loss_backward f32[] f32[5,3] i64[5,3] 1 f32[5,3]",
};

START_TEST(index_errors_name_their_op) {
  const char *line = indexed[_i];
  graft_rt_device *device = opencl();
  graft_rt_stream *usual, *stream;
  char name[128];
  if (!device) return;
  usual = graft_stream_current(device);
  OK(graft_stream_create(device, 0, 0, &stream)); /* which keeps the fault */
  graft_stream_set_current(stream);
  ck_assert_int_ne(call_of(line, device, &(wrong){3, true}), GRAFT_OK);
  snprintf(name, sizeof name, "%.*s: index 3 is out of range for a size of 3", (int)strcspn(line, " "), line);
  assert_text(name);
  graft_stream_set_current(usual);
  graft_stream_destroy(stream);
}
END_TEST

/* Nothing can be picked from or put into what has no elements; F.one_hot of -1 alone comes to this. */
static const char *const indexed_empty[] = {
    "aten::scatter.value f32[1,0] 1 i64[1,1] 2",
    "aten::scatter.src f32[1,0] 1 i64[1,1] f32[1,1]",
    "aten::scatter_add f32[1,0] 1 i64[1,1] f32[1,1]",
    "aten::scatter_reduce.two f32[1,0] 1 i64[1,1] f32[1,1] 'sum'",
    "aten::gather f32[1,0] 1 i64[1,1]",
    "aten::index_select f32[0,4] 0 i64[5]",
    "aten::index.Tensor f32[0,4] {i64[5]}",
    "aten::index_put f32[0,4] {i64[5]} f32[5,4]",
    "aten::index_copy f32[0,4] 0 i64[5] f32[5,4]",
    "aten::scatter_add f32[0,4] 0 i64[5000,4] f32[5000,4]",
    "aten::index_fill.int_Tensor f32[0,4] 0 i64[5] f32[]",
    "aten::take f32[0] i64[5]",
    "aten::put f32[0] i64[5] f32[5]",
    "aten::embedding f32[0,4] i64[5]",
};

START_TEST(indices_into_nothing_are_out_of_range) {
  graft_rt_device *devices[] = {graft_device_reference(), opencl()};
  for (int d = 0; d < 2; d++) {
    graft_rt_stream *usual, *stream;
    if (!devices[d]) continue;
    usual = graft_stream_current(devices[d]);
    OK(graft_stream_create(devices[d], 0, 0, &stream));
    graft_stream_set_current(stream);
    graft_status status = call_of(indexed_empty[_i], devices[d], &(wrong){-1, true});
    ck_assert_msg(status, "on %s: %s takes an index", graft_device_text(devices[d]), indexed_empty[_i]);
    graft_stream_set_current(usual);
    graft_stream_destroy(stream);
  }
}
END_TEST

/* --- who waits for an event alone is told, too --- */

START_TEST(an_event_behind_a_fault_says_what_it_was) {
  static const char said[] = "aten::index_select: index 3 is out of range for a size of 3";
  graft_rt_device *device = opencl();
  graft_rt_stream *usual, *stream;
  graft_rt_event *event;
  graft_tensor *x = NULL, *index = NULL, *out = NULL;
  if (!device) return;
  usual = graft_stream_current(device);
  OK(graft_stream_create(device, 0, 0, &stream));
  graft_stream_set_current(stream);
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){3}, (float[]){1, 2, 3}, &x));
  OK(graft_tensor_from_host(device, GRAFT_I64, 1, (int64_t[]){1}, (int64_t[]){3}, &index));
  OK(graft_op_index_select(x, 0, index, &out));
  OK(graft_event_create(device, 0, &event));
  OK(graft_event_record(event, stream));
  ck_assert_int_eq(graft_event_synchronize(event), GRAFT_STREAM_FAILED);
  assert_text(said);
  ck_assert_int_eq(graft_event_query(event), GRAFT_STREAM_FAILED);
  assert_text(said);
  graft_event_destroy(event);
  graft_stream_set_current(usual);
  graft_tensor_release(x);
  graft_tensor_release(index);
  graft_tensor_release(out);
  graft_stream_destroy(stream);
}
END_TEST

/* --- what must be understood is, or is refused --- */

typedef struct sum_call {
  graft_rt_device *device;
  graft_exec exec;
  graft_tensor_desc a, b, out;
  graft_args_add_Tensor args;
} sum_call;

static const int64_t sizes[] = {4}, strides[] = {1};

static graft_tensor_desc desc_of(void) {
  return (graft_tensor_desc){.struct_size = sizeof(graft_tensor_desc),
                             .dl = {.ndim = 1, .dtype = GRAFT_F32, .shape = sizes, .strides = strides}};
}

/* A call of add.Tensor, which is to be refused before anything is submitted: no memory stands behind it. */
static graft_status add(sum_call *call) {
  const graft_core_ops *core = call->device->backend->plugin.core;
  call->args = (graft_args_add_Tensor){
      .head = {sizeof call->args, GRAFT_OP_ADD_TENSOR, 0}, .self = &call->a, .other = &call->b, .out = &call->out};
  return core->add_Tensor(&call->exec, &call->args);
}

static bool begin(sum_call *call) {
  *call = (sum_call){.device = opencl()};
  call->a = call->b = call->out = desc_of();
  if (!call->device) return false;
  call->exec = (graft_exec){
      .struct_size = sizeof call->exec, .device = call->device->handle, .stream = call->device->default_stream->handle};
  return true;
}

START_TEST(exec_flags_must_be_understood) {
  sum_call call;
  if (!begin(&call)) return;
  for (int bit = 1; bit < 16; bit++) { /* 0: DETERMINISTIC */
    call.exec.flags = UINT32_C(1) << bit;
    ck_assert_msg(add(&call) == GRAFT_INVALID_ARGUMENT, "exec flag 0x%x", call.exec.flags);
    assert_text("aten::add.Tensor");
  }
}
END_TEST

START_TEST(tensor_flags_must_be_understood) {
  sum_call call;
  graft_tensor_desc *tensors[] = {&call.a, &call.b, &call.out};
  const char *const names[] = {"self", "other", "out"};
  for (int i = 0; i < 3; i++) {
    for (int bit = 1; bit < 16; bit++) { /* 0: HOST_VALUE, which the op knows */
      if (!begin(&call)) return;
      tensors[i]->flags = UINT32_C(1) << bit;
      ck_assert_msg(add(&call) == GRAFT_INVALID_ARGUMENT, "tensor flag 0x%x of %s", tensors[i]->flags, names[i]);
      assert_text("aten::add.Tensor");
      assert_text(names[i]);
    }
  }
}
END_TEST

/* A number in host memory goes only to an op that takes one. */
START_TEST(host_values_are_refused_where_none_are_taken) {
  sum_call call;
  if (!begin(&call)) return;
  call.a.flags = GRAFT_TENSOR_HOST_VALUE;
  const graft_args_clone args = {.head = {sizeof args, GRAFT_OP_CLONE, 0}, .self = &call.a, .out = &call.out};
  ck_assert_int_eq(call.device->backend->plugin.core->clone(&call.exec, &args), GRAFT_INVALID_ARGUMENT);
  assert_text("aten::clone");
}
END_TEST

START_TEST(tensor_flags_of_lists_must_be_understood) {
  sum_call call;
  if (!begin(&call)) return;
  call.b.flags = 2;
  const graft_tensor_desc *const items[] = {&call.a, &call.b};
  const graft_args_cat args = {.head = {sizeof args, GRAFT_OP_CAT, 0}, .tensors = {items, 2}, .out = &call.out};
  ck_assert_int_eq(call.device->backend->plugin.core->cat(&call.exec, &args), GRAFT_INVALID_ARGUMENT);
  assert_text("aten::cat");
  assert_text("tensors");
}
END_TEST

/* A Philox state on the device is of a later minor; it comes as UNIMPLEMENTED, so that the host takes another way. */
START_TEST(a_philox_state_is_not_served) {
  sum_call call;
  if (!begin(&call)) return;
  const graft_philox philox = {.struct_size = sizeof philox, .state = &call.b};
  const graft_args_uniform args = {
      .head = {sizeof args, GRAFT_OP_UNIFORM, 0}, .self = &call.a, .to = 1, .philox = &philox, .out = &call.out};
  ck_assert_int_eq(call.device->backend->plugin.train->uniform(&call.exec, &args), GRAFT_UNIMPLEMENTED);
}
END_TEST

/* --- numbers --- */

static graft_value value_of(graft_tensor *t) {
  return (graft_value){.kind = GRAFT_VALUE_TENSOR, .as.tensor = t};
}

/* One op of one or two operands, in host memory on the way in and out. */
static void run_op(uint32_t op, graft_rt_device *device, graft_dtype dtype, int64_t n, const void *a, const void *b,
                   void *out) {
  graft_tensor *x = NULL, *y = NULL, *result = NULL;
  OK(graft_tensor_from_host(device, dtype, 1, &n, a, &x));
  if (b) OK(graft_tensor_from_host(device, dtype, 1, &n, b, &y));
  const graft_value args[] = {value_of(x), value_of(y)}; /* y: where there are two */
  OK(graft_call(op, args, b ? 2 : 1, &result, 1));
  OK(graft_tensor_to_host(result, out));
  graft_tensor_release(x);
  graft_tensor_release(y);
  graft_tensor_release(result);
}

/* 0 where the arguments are 1 and 2; no overflow near 0; each with what the correctly rounded result is. */
START_TEST(log_gamma_near_its_zeros_and_near_0) {
  static const float a[] = {1, 2, 0x1.000002p0f, 0x1.fffffep0f, 1e-40f, -1e-40f, 1e-30f, 0.25f, 2.75f, 9.5f, 12};
  enum { N = sizeof a / sizeof *a };
  float out[N];
  graft_rt_device *device = opencl();
  if (!device) return;
  run_op(GRAFT_OP_LGAMMA, device, GRAFT_F32, N, a, NULL, out);
  for (int i = 0; i < N; i++) {
    float right = (float)lgamma(a[i]);
    ck_assert_msg(fabsf(out[i] - right) <= 8 * (nextafterf(fabsf(right), INFINITY) - fabsf(right)),
                  "lgamma(%a): %a, expected %a", a[i], out[i], right);
  }
}
END_TEST

START_TEST(remainders_by_denormal_numbers) {
  static const float a[] = {3.4e38f, -3.4e38f, 3.4e38f, 1, 0x1p127f}, b[] = {1e-40f, 1e-40f, 0x1p-149f, 3e-45f, 1e-38f};
  enum { N = sizeof a / sizeof *a };
  float out[N];
  graft_rt_device *device = opencl();
  if (!device) return;
  run_op(GRAFT_OP_FMOD_TENSOR, device, GRAFT_F32, N, a, b, out);
  for (int i = 0; i < N; i++) {
    ck_assert_msg(out[i] == fmodf(a[i], b[i]), "fmod(%a, %a): %a, expected %a", a[i], b[i], out[i], fmodf(a[i], b[i]));
  }
}
END_TEST

/* By the width or more, and by a negative number, nothing is left of an unsigned number, of a signed one its sign. */
static const struct {
  const char *name;
  graft_dtype dtype;
  int64_t a, by, right;
} shifts[] = {
    {"u8", GRAFT_U8, 255, 7, 1},           {"u8", GRAFT_U8, 255, 8, 0},           {"u8", GRAFT_U8, 128, 200, 0},
    {"i8", GRAFT_I8, -128, 8, -1},         {"i8", GRAFT_I8, 127, -1, 0},          {"u16", GRAFT_U16, 65535, 15, 1},
    {"u16", GRAFT_U16, 65535, 16, 0},      {"i16", GRAFT_I16, -1, 16, -1},        {"u32", GRAFT_U32, UINT32_MAX, 31, 1},
    {"u32", GRAFT_U32, UINT32_MAX, 32, 0}, {"i32", GRAFT_I32, INT32_MIN, 32, -1}, {"i32", GRAFT_I32, INT32_MIN, -1, -1},
    {"u64", GRAFT_U64, -1, 63, 1},         {"u64", GRAFT_U64, -1, 64, 0},         {"i64", GRAFT_I64, INT64_MIN, 64, -1},
};

START_TEST(right_shifts_by_the_width) {
  graft_rt_device *devices[] = {graft_device_reference(), opencl()};
  for (int d = 0; d < 2; d++) {
    int64_t out = 0;
    size_t bytes = GRAFT_DTYPE_BYTES(shifts[_i].dtype);
    if (!devices[d]) continue;
    run_op(GRAFT_OP_BITWISE_RIGHT_SHIFT_TENSOR, devices[d], shifts[_i].dtype, 1, &shifts[_i].a, &shifts[_i].by, &out);
    ck_assert_msg(memcmp(&out, &shifts[_i].right, bytes) == 0, "on %s: %s %lld >> %lld", graft_device_text(devices[d]),
                  shifts[_i].name, (long long)shifts[_i].a, (long long)shifts[_i].by);
  }
}
END_TEST

/* In evaluation batch norm only reads the running statistics, so that their elements may share memory. */
START_TEST(what_a_call_only_reads_may_be_expanded) {
  graft_rt_device *device = opencl();
  graft_tensor *x, *one, *statistics, *out[3] = {NULL}, *legit[3] = {NULL};
  float values[4], right[4] = {0, 1, 2, 3};
  if (!device) return;
  OK(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){2, 2}, (float[]){1, 2, 3, 4}, &x));
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){1}, (float[]){1}, &one));
  OK(graft_op_expand(one, (int64_t[]){2}, 1, false, &statistics));
  OK(graft_op_native_batch_norm(x, NULL, NULL, statistics, statistics, false, 0.1, 0, &out[0], &out[1], &out[2]));
  OK(graft_tensor_to_host(out[0], values));
  ck_assert(memcmp(values, right, sizeof right) == 0);
  OK(graft_op_native_batch_norm_legit(x, NULL, NULL, statistics, statistics, false, 0.1, 0, &legit[0], &legit[1],
                                      &legit[2]));
  OK(graft_tensor_to_host(legit[0], values));
  ck_assert(memcmp(values, right, sizeof right) == 0);
  graft_tensor *all[] = {x, one, statistics, out[0], out[1], out[2], legit[0], legit[1], legit[2]};
  for (int i = 0; i < ROWS(all); i++) graft_tensor_release(all[i]);
}
END_TEST

/* Ten million equal numbers: a sum that went from one end to the other would be off by 2e-5 and more. */
enum { LONG = 10000000 };
#define TENTH ((double)0.1f)
static const struct {
  const char *call; /* floats are tenths, integers 0 */
  double right;
  int result;   /* which of its results */
  double limit; /* relative; 0: 1e-6 */
} long_sums[] = {
    {.call = "aten::sum.dim_IntList f32[10000000] [0]", .right = LONG * TENTH},
    {.call = "aten::sum.dim_IntList f32[1000000,10] [0]", .right = LONG / 10 * TENTH},
    {.call = "aten::sum.dim_IntList f32[10,1000000] [1]", .right = LONG / 10 * TENTH},
    {.call = "aten::mean f32[10000000]", .right = TENTH},
    {.call = "aten::dot f32[10000000] f32[10000000]", .right = LONG * TENTH * TENTH},
    /* In one sum it would be off by 8.7e-4. */
    {.call = "aten::mm f32[3,300000] f32[300000,3]", .right = 300000 * TENTH * TENTH, .limit = 2e-6},
    {.call = "aten::native_layer_norm f32[1,1000000] [1000000] _ _ 1e-5", .right = TENTH, .result = 1},
    {.call = "aten::nll_loss_forward f32[1000000,2] i64[1000000] _ 2 -100", .right = -LONG / 10 * TENTH},
};

static graft_status fill_with_tenths(void *context, uint32_t index, graft_tensor *t) {
  (void)context, (void)index;
  return graft_call(GRAFT_OP_FILL_SCALAR, (graft_value[]){graft_value_tensor(t), graft_value_float(0.1f)}, 2, &t, 1);
}

START_TEST(long_sums_are_made_in_a_tree) {
  graft_rt_device *device = opencl();
  txt_call call;
  graft_tensor *outs[3] = {NULL};
  if (!device) return;
  float *values = calloc(LONG, sizeof *values);
  OK(txt_parse_call(long_sums[_i].call, NULL, &call));
  OK(txt_make(&call, device, fill_with_tenths, NULL));
  OK(graft_call(call.schema->id, call.args, call.nargs, outs, call.schema->nrets));
  graft_tensor *out = outs[long_sums[_i].result];
  OK(graft_tensor_to_host(out, values));
  double right = long_sums[_i].right, limit = long_sums[_i].limit > 0 ? long_sums[_i].limit : 1e-6;
  for (int64_t i = 0; i < graft_tensor_numel(out); i++) {
    ck_assert_msg(fabs(values[i] - right) <= limit * fabs(right), "%s: %.9g, expected %.9g: off by %.2g",
                  long_sums[_i].call, values[i], right, fabs(values[i] / right - 1));
  }
  for (int i = 0; i < 3; i++) graft_tensor_release(outs[i]);
  txt_free(&call);
  free(values);
}
END_TEST

/* --- numbers that are no probability: told by the device, as an index is --- */

START_TEST(chances_lie_between_0_and_1) {
  static const float chances[] = {2, -1, NAN, INFINITY};
  graft_rt_device *devices[] = {graft_device_reference(), opencl()};
  for (int d = 0; d < 2; d++) {
    graft_rt_device *device = devices[d];
    const int64_t n = 3;
    const float p[] = {0, chances[_i], 1};
    graft_tensor *chance = NULL, *out = NULL;
    graft_rt_stream *usual, *stream;
    if (!device) continue;
    usual = graft_stream_current(device);
    OK(graft_stream_create(device, 0, 0, &stream));
    graft_stream_set_current(stream);
    OK(graft_tensor_from_host(device, GRAFT_F32, 1, &n, p, &chance));
    graft_status status = graft_op_bernoulli_Tensor(chance, chance, NULL, &out);
    if (!status) status = graft_stream_synchronize(stream);
    ck_assert_msg(status, "on %s: bernoulli took %g", graft_device_text(device), chances[_i]);
    assert_text("aten::bernoulli.Tensor");
    assert_text("0 ");
    graft_tensor_release(chance);
    graft_tensor_release(out);
    graft_stream_set_current(usual);
    graft_stream_destroy(stream);
  }
}
END_TEST

/* --- what else a kernel finds wrong --- */

static const struct {
  const char *call;
  int64_t integer;  /* which all integers are */
  float number;     /* and all others */
  const char *text; /* of many faults any may be told: each of these has one place */
} faulty[] = {
    {"aten::floor_divide i64[3] i64[3]", 0, 0, "aten::floor_divide: integer division by zero"},
    {"aten::fmod.Tensor i64[3] i64[3]", 0, 0, "aten::fmod.Tensor: integer division by zero"},
    {"aten::bernoulli.Tensor f32[3] f32[3]", 0, 2,
     "aten::bernoulli.Tensor: a number that must lie between 0 and 1 does not"},
    {"aten::binary_cross_entropy f32[1] f32[1]", 0, 2,
     "aten::binary_cross_entropy: a number that must lie between 0 and 1 does not"},
    {"aten::binary_cross_entropy f32[1] f32[1] reduction=0", 0, 2,
     "aten::binary_cross_entropy: a number that must lie between 0 and 1 does not"},
    {"aten::multinomial f32[1,3] 1 true", 0, 0, "aten::multinomial: the weights of row 0 are no distribution"},
    {"aten::multinomial f32[1,3] 1 true", 0, -1, "aten::multinomial: the weights of row 0 are no distribution"},
    {"aten::multinomial f32[1,3] 1 true", 0, INFINITY, "aten::multinomial: the weights of row 0 are no distribution"},
    {"aten::histc f32[4] 4", 0, INFINITY, "aten::histc: the range of the data is not finite"},
    {"aten::histc f32[4] 4", 0, NAN, "aten::histc: the range of the data is not finite"},
    {"aten::bincount i64[4]", -1, 0, "aten::bincount: self has the number -1; expected 0 to 2^40 - 1"},
    {"aten::bincount i64[4] f32[4]", INT64_C(1) << 40, 0,
     "aten::bincount: self has the number 1099511627776; expected 0 to 2^40 - 1"},
    {"aten::segment_reduce f32[4] 'sum' lengths=i64[2]", 1, 0,
     "aten::segment_reduce: the lengths or offsets of row 0 do not cut the dim"},
    {"aten::segment_reduce f32[4] 'sum' lengths=i64[2]", -2, 0,
     "aten::segment_reduce: the lengths or offsets of row 0 do not cut the dim"},
};

static graft_status fill_alike(void *context, uint32_t index, graft_tensor *t) {
  const int *row = context;
  (void)index;
  bool integral = graft_tensor_dtype(t) == GRAFT_I64;
  const graft_value value =
      integral ? graft_value_int(faulty[*row].integer) : graft_value_float((double)faulty[*row].number);
  return graft_call(GRAFT_OP_FILL_SCALAR, (graft_value[]){graft_value_tensor(t), value}, 2, &t, 1);
}

START_TEST(faults_say_what_is_wrong) {
  graft_rt_device *device = opencl();
  graft_rt_stream *usual, *stream;
  graft_tensor *out = NULL;
  txt_call call;
  if (!device) return;
  usual = graft_stream_current(device);
  OK(graft_stream_create(device, 0, 0, &stream));
  graft_stream_set_current(stream);
  OK(txt_parse_call(faulty[_i].call, NULL, &call));
  OK(txt_make(&call, device, fill_alike, &_i));
  graft_status status = graft_call(call.schema->id, call.args, call.nargs, &out, 1);
  if (!status) status = graft_stream_synchronize(stream);
  ck_assert_msg(status, "%s was computed", faulty[_i].call);
  assert_text(faulty[_i].text);
  graft_tensor_release(out);
  txt_free(&call);
  graft_stream_set_current(usual);
  graft_stream_destroy(stream);
}
END_TEST

/* --- options --- */

static const struct {
  const char *option, *text;
} refused[] = {
    {"kernel=gpu", "did you mean \"kernels\"?"},
    {"devcie=0", "did you mean \"device\"?"},
    {"verbose=1", "options are device=..., kernels=... and optimize=..."},
    {"kernels", "options are device=..., kernels=... and optimize=..."},
    {"kernels=fpga", "kernels for \"fpga\""},
    {"kernels=CPU", "cpu, gpu or portable"},
    {"device", "expected name=value"},
    {"kernelss=gpu", "did you mean \"kernels\"?"},
    {"krenels=gpu", "did you mean \"kernels\"?"},
    {"ernels=gpu", "did you mean \"kernels\"?"},
    {"devi=0", "did you mean \"device\"?"},
    {"dev=0", "expected name=value"},
    {"kernABC=gpu", "expected name=value"},
    {"=gpu", "expected name=value"},
    {"a name that is longer than those that are compared=1", "expected name=value"},
};

/* By the environment, by an option, which wins; empty is not said. */
static const struct {
  const char *variable, *value, *option;
  graft_status status;
} chosen[] = {
    {"GRAFT_OPENCL_KERNELS", "fpga", NULL, GRAFT_INVALID_ARGUMENT},
    {"GRAFT_OPENCL_KERNELS", "fpga", "kernels=gpu", GRAFT_OK},
    {"GRAFT_OPENCL_KERNELS", "gpu", "kernels=fpga", GRAFT_INVALID_ARGUMENT},
    {"GRAFT_OPENCL_KERNELS", "portable", NULL, GRAFT_OK},
    {"GRAFT_OPENCL_KERNELS", "", NULL, GRAFT_OK},
    {"GRAFT_OPENCL_KERNELS", "fpga", "kernels=", GRAFT_OK},
    {"GRAFT_OPENCL_DEVICE", "0", NULL, GRAFT_OK},
    {"GRAFT_OPENCL_DEVICE", "99", NULL, GRAFT_INVALID_ARGUMENT},
    {"GRAFT_OPENCL_DEVICE", "99", "device=0", GRAFT_OK},
    {"GRAFT_OPENCL_DEVICE", "0", "device=99", GRAFT_INVALID_ARGUMENT},
    {"GRAFT_OPENCL_DEVICE", "", NULL, GRAFT_OK},
    {"GRAFT_OPENCL_DEVICE", "0x", NULL, GRAFT_INVALID_ARGUMENT},
    {"GRAFT_OPENCL_OPTIMIZE", "no", NULL, GRAFT_OK},
    {"GRAFT_OPENCL_OPTIMIZE", "always", NULL, GRAFT_OK},
    {"GRAFT_OPENCL_OPTIMIZE", "0", NULL, GRAFT_INVALID_ARGUMENT},
    {"GRAFT_OPENCL_OPTIMIZE", "0", "optimize=yes", GRAFT_OK},
    {"GRAFT_OPENCL_OPTIMIZE", "yes", "optimize=off", GRAFT_INVALID_ARGUMENT},
};

START_TEST(options_win_over_the_environment) {
  const char *const options[] = {chosen[_i].option, NULL};
  graft_rt_backend *backend;
  graft_rt_device *device;
  if (!has_opencl()) return;
  setenv(chosen[_i].variable, chosen[_i].value, 1);
  graft_status status = graft_backend_open(OPENCL, options, &backend);
  if (!status) status = graft_backend_device(backend, 0, &device);
  ck_assert_int_eq(status, chosen[_i].status);
  if (!status) ck_assert_int_eq(job(device), 0);
}
END_TEST

START_TEST(unknown_options_are_refused) {
  graft_rt_backend *backend;
  if (!has_opencl()) return;
  const char *const options[] = {refused[_i].option, NULL};
  ck_assert_int_eq(graft_backend_open(OPENCL, options, &backend), GRAFT_INVALID_ARGUMENT);
  assert_text(refused[_i].text);
}
END_TEST

START_TEST(a_device_that_is_not_there_is_told) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  if (!has_opencl()) return;
  OK(graft_backend_open(OPENCL, (const char *const[]){"device=no such device", NULL}, &backend));
  ck_assert_int_eq(graft_backend_device(backend, 0, &device), GRAFT_INVALID_ARGUMENT);
  assert_text("no such device");
}
END_TEST

START_TEST(known_options_are_taken) {
  if (has_opencl()) {
    ck_assert_msg(device_at(OPENCL, (const char *const[]){"kernels=gpu", "device=cpu", NULL}, 0), "%s",
                  graft_last_error());
  }
}
END_TEST

/* --- the tables of the families --- */

static void read_text(const char *path, char *text, size_t capacity) {
  FILE *file = fopen(path, "r");
  ck_assert_msg(file, "%s", path);
  text[fread(text, 1, capacity - 1, file)] = 0;
  ck_assert_msg(feof(file) || fgetc(file) == EOF, "%s is longer than %zu bytes", path, capacity);
  fclose(file);
}

/* That each row stands in the table of its family, the backend asserts when it is opened; here, that each table stands
 * in the folder of its family and in the list of families. */
START_TEST(tables_stand_in_their_familys_folder) {
  static char text[1 << 16], list[1 << 12];
  glob_t files;
  int tables = 0;
  read_text(GRAFT_SOURCE_DIR "/reference_backend_opencl/kernels/families.c", list, sizeof list);
  ck_assert_int_eq(glob(GRAFT_SOURCE_DIR "/reference_backend_opencl/kernels/*/*.c", 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    char name[32] = "", folder[64];
    read_text(files.gl_pathv[i], text, sizeof text);
    const char *table = strstr(text, "\nOCL_FAMILY(");
    if (!table) continue;
    tables++;
    ck_assert_int_eq(sscanf(table, "\nOCL_FAMILY(%31[a-z]", name), 1);
    snprintf(folder, sizeof folder, "/kernels/%s/", name);
    ck_assert_msg(strstr(files.gl_pathv[i], folder), "%s: has the table of %s", files.gl_pathv[i], name);
    snprintf(folder, sizeof folder, "X(%s)", name);
    ck_assert_msg(strstr(list, folder), "%s: its family stands in no list, so no op of it is served",
                  files.gl_pathv[i]);
  }
  globfree(&files);
  ck_assert_int_gt(tables, 0);
}
END_TEST

int main(void) {
  /* They leave the device as it was, and share a process: PoCL reads ten megabytes in each that compiles. */
  const suite_test calls[] = {EACH(index_errors_name_their_op, ROWS(indexed)),
                              EACH(indices_into_nothing_are_out_of_range, ROWS(indexed_empty)),
                              ONCE(an_event_behind_a_fault_says_what_it_was),
                              ONCE(exec_flags_must_be_understood),
                              ONCE(tensor_flags_must_be_understood),
                              ONCE(host_values_are_refused_where_none_are_taken),
                              ONCE(tensor_flags_of_lists_must_be_understood),
                              ONCE(a_philox_state_is_not_served),
                              ONCE(log_gamma_near_its_zeros_and_near_0),
                              ONCE(remainders_by_denormal_numbers),
                              EACH(right_shifts_by_the_width, ROWS(shifts)),
                              ONCE(what_a_call_only_reads_may_be_expanded),
                              EACH(long_sums_are_made_in_a_tree, ROWS(long_sums)),
                              EACH(chances_lie_between_0_and_1, 4),
                              EACH(faults_say_what_is_wrong, ROWS(faulty)),
                              ONCE(tables_stand_in_their_familys_folder),
                              {0}};
  const suite_test opened[] = {EACH(unknown_options_are_refused, ROWS(refused)),
                               EACH(options_win_over_the_environment, ROWS(chosen)),
                               ONCE(a_device_that_is_not_there_is_told),
                               ONCE(known_options_are_taken),
                               {0}};
  const int failed = run_suite("opencl", calls, (suite_options){.shared_process = true});
  return run_suite("opencl_opened", opened, (suite_options){.timeout_s = 300}) || failed;
}
