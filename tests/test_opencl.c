/* The OpenCL backend by itself: how it answers for its ops, what it refuses, what it says. Without it, nothing is done.
 */
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bad_input.h"
#include "device/device.h"
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

/* --- options --- */

static const struct {
  const char *option, *text;
} refused[] = {
    {"kernel=gpu", "did you mean \"kernels\"?"},
    {"devcie=0", "did you mean \"device\"?"},
    {"verbose=1", "options are device=... and kernels=..."},
    {"kernels", "options are device=... and kernels=..."},
    {"kernels=fpga", "cpu or gpu"},
};

START_TEST(unknown_options_are_refused) {
  graft_rt_backend *backend;
  if (!has_opencl()) return;
  const char *const options[] = {refused[_i].option, NULL};
  ck_assert_int_eq(graft_backend_open(OPENCL, options, &backend), GRAFT_INVALID_ARGUMENT);
  assert_text(refused[_i].text);
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

/* That each row stands in the table of its family, the backend asserts when it is opened; here, that each table stands
 * in the folder of its family. */
START_TEST(tables_stand_in_their_familys_folder) {
  static char text[1 << 16];
  glob_t files;
  int tables = 0;
  ck_assert_int_eq(glob(GRAFT_SOURCE_DIR "/reference_backend_opencl/kernels/*/*.c", 0, NULL, &files), 0);
  for (size_t i = 0; i < files.gl_pathc; i++) {
    char name[32] = "", folder[64];
    FILE *file = fopen(files.gl_pathv[i], "r");
    ck_assert(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = 0;
    fclose(file);
    const char *table = strstr(text, "\nOCL_FAMILY(");
    if (!table) continue;
    tables++;
    ck_assert_int_eq(sscanf(table, "\nOCL_FAMILY(%31[a-z]", name), 1);
    snprintf(folder, sizeof folder, "/kernels/%s/", name);
    ck_assert_msg(strstr(files.gl_pathv[i], folder), "%s: has the table of %s", files.gl_pathv[i], name);
  }
  globfree(&files);
  ck_assert_int_gt(tables, 0);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(index_errors_name_their_op, ROWS(indexed)),
                              ONCE(exec_flags_must_be_understood),
                              ONCE(tensor_flags_must_be_understood),
                              ONCE(host_values_are_refused_where_none_are_taken),
                              ONCE(tensor_flags_of_lists_must_be_understood),
                              ONCE(a_philox_state_is_not_served),
                              EACH(unknown_options_are_refused, ROWS(refused)),
                              ONCE(known_options_are_taken),
                              ONCE(tables_stand_in_their_familys_folder),
                              {0}};
  return run_suite("opencl", tests, (suite_options){.timeout_s = 300});
}
