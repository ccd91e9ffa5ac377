/* Graphs in use: what is bound and recorded, what is refused and how, several threads and devices, and memory that runs
 * out. */
#include <pthread.h>

#include "graft/bridge.h"
#include "graph_programs.h"
#include "heap.h"
#include "null_device.h"
#include "suite.h"

/* --- what is bound --- */

/* out = a * 2; a += b */
static graft_graph_exec *two_inputs(int64_t n) {
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *a, *b, *out = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "a", GRAFT_F32, 1, &n, NULL, &a));
  OK(graft_graph_input(graph, "b", GRAFT_F32, 1, &n, NULL, &b));
  OK(graft_graph_call(graph, GRAFT_OP_MUL_TENSOR, (graft_value[]){T(a), NUMBER(2)}, 2, &out, 1));
  OK(graft_graph_call(graph, GRAFT_OP_ADD_TENSOR, (graft_value[]){T(a), T(b)}, 2, &a, 1));
  OK(graft_graph_output(graph, "out", out));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  ck_assert_uint_eq(graft_graph_node_count(graph), 2);
  ck_assert_uint_eq(graft_graph_input_count(graph), 2);
  ck_assert_uint_eq(graft_graph_output_count(graph), 1);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){a, b, out}, 3);
  return exec;
}

START_TEST(inputs_are_checked) {
  graft_graph_exec *exec = two_inputs(3);
  graft_tensor *a = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *wide = host(GRAFT_F64, 3, (double[]){1, 2, 3});
  graft_tensor *longer = host(GRAFT_F32, 4, (float[]){1, 2, 3, 4}), *out = NULL, *apart, *leaf;
  assert_says(graft_graph_run(exec, &a, 1, &out, 1), GRAFT_INVALID_ARGUMENT, "2 inputs");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, a}, 2, &out, 0), GRAFT_INVALID_ARGUMENT, "1 outputs");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, NULL}, 2, &out, 1), GRAFT_INVALID_ARGUMENT,
              "input b is NULL");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, wide}, 2, &out, 1), GRAFT_INVALID_ARGUMENT, "input b is f64");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){longer, a}, 2, &out, 1), GRAFT_INVALID_ARGUMENT, "input a is");
  const int64_t size = 3, two = 2, one = 1;
  graft_tensor *six = host(GRAFT_F32, 6, (float[]){1, 2, 3, 4, 5, 6});
  OK(tns_new(six->storage, reference(), GRAFT_F32, 1, &size, &two, 0, &apart));
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, apart}, 2, &out, 1), GRAFT_INVALID_ARGUMENT, "strides");
  /* What is written shares nothing with another input; what is read may. */
  graft_tensor *left, *right;
  OK(tns_new(six->storage, reference(), GRAFT_F32, 1, &size, &one, 0, &left));
  OK(tns_new(six->storage, reference(), GRAFT_F32, 1, &size, &one, 2, &right));
  assert_says(graft_graph_run(exec, (graft_tensor *[]){left, right}, 2, &out, 1), GRAFT_INVALID_ARGUMENT,
              "share memory");
  assert_says(graft_graph_run(exec, (graft_tensor *[]){a, a}, 2, &out, 1), GRAFT_INVALID_ARGUMENT, "share memory");
  OK(graft_tensor_detach(a, &leaf));
  OK(graft_tensor_set_requires_grad(leaf, true));
  assert_says(graft_graph_run(exec, (graft_tensor *[]){left, leaf}, 2, &out, 1), GRAFT_INVALID_ARGUMENT,
              "requires grad");
  ck_assert_ptr_null(out);
  expect_values(a, 3, (float[]){1, 2, 3});
  bool grad = graft_grad_mode_set(false);
  OK(graft_graph_run(exec, (graft_tensor *[]){left, leaf}, 2, &out, 1));
  graft_grad_mode_set(grad);
  assert_says(GRAFT_OK, GRAFT_OK, "requires grad"); /* what goes well leaves the text of what did not */
  expect_values(six, 6, (float[]){2, 4, 6, 4, 5, 6});
  expect_values(out, 3, (float[]){2, 4, 6});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){a, wide, longer, out, apart, leaf, six, left, right}, 9);
}
END_TEST

/* Plans are for aligned inputs; another one takes the long way, to the same end. */
START_TEST(inputs_may_begin_anywhere) {
  graft_graph_exec *exec = two_inputs(3);
  graft_tensor *six = host(GRAFT_F32, 6, (float[]){9, 1, 2, 3, 4, 5}), *b = host(GRAFT_F32, 3, (float[]){1, 1, 1});
  graft_tensor *at, *out = NULL;
  const int64_t size = 3, one = 1;
  OK(tns_new(six->storage, reference(), GRAFT_F32, 1, &size, &one, 1, &at));
  uint64_t version = graft_tensor_version(six);
  OK(graft_graph_run(exec, (graft_tensor *[]){at, b}, 2, &out, 1));
  ck_assert_uint_gt(graft_tensor_version(six), version);
  expect_values(six, 6, (float[]){9, 2, 3, 4, 4, 5});
  expect_values(out, 3, (float[]){2, 4, 6});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){six, b, at, out}, 4);
}
END_TEST

/* --- what is recorded --- */

START_TEST(constants_are_values) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *x, *first = NULL, *second = NULL, *out[3];
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_add_Tensor(x, c, graft_scalar_int(1), &first));
  OK(graft_graph_record_end(graph));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(c), NUMBER(10)}, 2, &c, 1));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_add_Tensor(x, c, graft_scalar_int(1), &second)); /* the same tensor with other values */
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "first", first));
  OK(graft_graph_output(graph, "second", second));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(c), NUMBER(10)}, 2, &c, 1));
  graft_tensor_release(c);
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  graft_graph_destroy(graph); /* what was compiled stays */
  graft_tensor *in = host(GRAFT_F32, 3, (float[]){0, 0, 1});
  OK(graft_graph_run(exec, &in, 1, out, 2));
  expect_values(out[0], 3, (float[]){1, 2, 4});
  expect_values(out[1], 3, (float[]){10, 20, 31});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){x, first, second, in, out[0], out[1]}, 6);
}
END_TEST

/* A constant that comes out is the caller's to write to. */
START_TEST(constants_come_out_as_copies) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *x, *sum = NULL, *view = NULL, *out[2];
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(c, &view)); /* folded */
  OK(graft_op_add_Tensor(x, view, graft_scalar_int(1), &sum));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "sum", sum));
  OK(graft_graph_output(graph, "constant", view));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  for (int i = 0; i < 2; i++) {
    OK(graft_graph_run(exec, &c, 1, out, 2));
    float values[3];
    OK(graft_tensor_to_host(out[1], values));
    ck_assert_msg(values[0] > 2.7f && values[0] < 2.8f, "%g", values[0]);
    OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(out[1]), NUMBER(10)}, 2, &out[1], 1));
    release_all(out, 2);
  }
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){c, x, sum, view}, 4);
}
END_TEST

/* The default dtype at the first call counts, not the one under which the graph was made; and there is one for all. */
START_TEST(calls_share_one_default_dtype) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *powers = NULL, *other = NULL, *out = NULL, *in = host(GRAFT_I64, 3, (int64_t[]){1, 2, 3});
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_I64, 1, &n, NULL, &x));
  OK(graft_default_dtype_set(GRAFT_F64));
  graft_status first = graft_graph_call(graph, GRAFT_OP_EXP, (graft_value[]){T(x)}, 1, &powers, 1);
  OK(graft_default_dtype_set(GRAFT_F32));
  OK(first);
  ck_assert_int_eq(graft_graph_call(graph, GRAFT_OP_EXP, (graft_value[]){T(x)}, 1, &other, 1), GRAFT_INVALID_ARGUMENT);
  ck_assert_ptr_nonnull(strstr(graft_last_error(), "the default dtype is f32"));
  OK(graft_graph_output(graph, "powers", powers));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_run(exec, &in, 1, &out, 1));
  double is[3];
  ck_assert_int_eq(out->dtype, GRAFT_F64);
  OK(graft_tensor_to_host(out, is));
  ck_assert_double_eq_tol(is[0], 2.718281828459045, 1e-15); /* f32 would be off by 1e-7 */
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, powers, out, in}, 4);
}
END_TEST

/* What a rule reads of the thread is as it was when the call was recorded. */
START_TEST(the_default_dtype_is_kept) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *third = NULL, *out = NULL, *in = host(GRAFT_I64, 3, (int64_t[]){1, 2, 3});
  OK(graft_default_dtype_set(GRAFT_F64));
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_I64, 1, &n, NULL, &x));
  OK(graft_graph_call(graph, GRAFT_OP_DIV_TENSOR, (graft_value[]){T(x), NUMBER(3)}, 2, &third, 1));
  OK(graft_graph_output(graph, "third", third));
  OK(graft_default_dtype_set(GRAFT_F32));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  OK(graft_graph_run(exec, &in, 1, &out, 1));
  double is[3];
  ck_assert_int_eq(out->dtype, GRAFT_F64);
  OK(graft_tensor_to_host(out, is));
  ck_assert(is[0] == 1.0 / 3);
  ck_assert_int_eq(graft_default_dtype_get(), GRAFT_F32);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, third, out, in}, 4);
}
END_TEST

/* A value that backward needs and that was written over is found while recording, too. */
START_TEST(stale_values_are_found) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_tensor *x, *y = NULL, *sum = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_tensor_set_requires_grad(x, true));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(x, &y));
  OK(graft_op_sum_dim_IntList(y, NULL, 0, false, GRAFT_DTYPE_NONE, &sum));
  bool grad = graft_grad_mode_set(false);
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){T(y), NUMBER(1)}, 2, &y, 1));
  graft_grad_mode_set(grad);
  assert_says(graft_backward(&sum, NULL, 1, 0), GRAFT_INVALID_ARGUMENT, "changed in place");
  OK(graft_graph_record_end(graph));
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, y, sum}, 3);
}
END_TEST

START_TEST(refusals_name_the_op) {
  const int64_t n = 3;
  graft_graph *graph, *other;
  graft_tensor *x, *y, *t = NULL, *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *leaf;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_create(reference(), &other));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_input(other, "y", GRAFT_F32, 1, &n, NULL, &y));
  assert_says(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &t), GRAFT_INVALID_ARGUMENT, "named x");
  assert_says(graft_graph_record_end(graph), GRAFT_INVALID_ARGUMENT, "does not record");
  OK(graft_graph_record_begin(graph));
  assert_says(graft_graph_record_begin(other), GRAFT_INVALID_ARGUMENT, "already");
  assert_says(graft_graph_record_end(other), GRAFT_INVALID_ARGUMENT, "does not record");
  graft_graph_exec *exec = NULL;
  assert_says(graft_graph_compile(other, reference(), NULL, &exec), GRAFT_INVALID_ARGUMENT, "records a graph");
  const graft_value written[] = {T(c), NUMBER(1)};
  assert_says(graft_call(GRAFT_OP_ADD_TENSOR, written, 2, &c, 1), GRAFT_INVALID_ARGUMENT, "aten::add.Tensor");
  assert_says(graft_op_exp(y, &t), GRAFT_INVALID_ARGUMENT, "another graph");
  OK(graft_tensor_detach(c, &leaf));
  OK(graft_tensor_set_requires_grad(leaf, true));
  assert_says(graft_op_exp(leaf, &t), GRAFT_INVALID_ARGUMENT, "requires grad");
  assert_says(graft_op_mm(x, x, &t), GRAFT_INVALID_ARGUMENT, "aten::mm");
  ck_assert_uint_eq(graft_graph_node_count(graph), 0); /* none of these left anything */
  OK(graft_op_exp(x, &t));
  OK(graft_graph_record_end(graph));
  ck_assert_uint_eq(graft_graph_node_count(graph), 1);
  expect_values(c, 3, (float[]){1, 2, 3});
  /* Values of a graph are none outside. */
  float values[3];
  assert_says(graft_tensor_to_host(t, values), GRAFT_INVALID_ARGUMENT, "value of a graph");
  assert_says(graft_tensor_copy(c, t), GRAFT_INVALID_ARGUMENT, "value of a graph");
  graft_tensor *none = NULL;
  assert_says(graft_op_exp(t, &none), GRAFT_INVALID_ARGUMENT, "aten::exp: self stands for a value of a graph");
  assert_says(graft_op_exp(t, &none), GRAFT_INVALID_ARGUMENT, "graft_graph_record_begin");
  const graft_value both[] = {T(c), T(t)};
  assert_says(graft_call(GRAFT_OP_MUL_TENSOR, both, 2, &none, 1), GRAFT_INVALID_ARGUMENT,
              "aten::mul.Tensor: other stands for a value of a graph");
  assert_says(graft_graph_output(other, "t", t), GRAFT_INVALID_ARGUMENT, "another one");
  assert_says(graft_graph_output(graph, "c", c), GRAFT_INVALID_ARGUMENT, "no value of this graph");
  assert_says(graft_graph_compile(graph, reference(), "-cse,fold", &exec), GRAFT_INVALID_ARGUMENT, "\"fold\"");
  graft_graph_destroy(graph);
  graft_graph_destroy(other);
  release_all((graft_tensor *[]){x, y, t, c, leaf}, 5);
}
END_TEST

static graft_status read_item(graft_tensor *x) {
  graft_scalar value;
  graft_tensor *one = NULL;
  graft_status status = graft_op_select_int(x, 0, 0, &one);
  if (!status) status = graft_tensor_item(one, &value);
  graft_tensor_release(one);
  return status;
}
static graft_status read_all(graft_tensor *x) {
  float values[3];
  return graft_tensor_to_host(x, values);
}
static graft_status bring(graft_tensor *x) {
  graft_tensor *t;
  return graft_tensor_from_host(x->device, GRAFT_F32, 1, x->sizes, (float[]){1, 2, 3}, &t);
}
static graft_status find_nonzero(graft_tensor *x) {
  graft_tensor *t = NULL;
  return graft_op_nonzero(x, &t);
}

static const struct {
  graft_status (*call)(graft_tensor *x);
  const char *name;
} ends[] = {{read_item, "graft_tensor_item"},
            {read_all, "graft_tensor_to_host"},
            {bring, "graft_tensor_from_host"},
            {find_nonzero, "aten::nonzero"}};

START_TEST(what_depends_on_values_ends_it) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec = NULL;
  graft_tensor *x, *t = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  assert_says(ends[_i].call(x), GRAFT_UNIMPLEMENTED, ends[_i].name);
  assert_says(graft_op_exp(x, &t), GRAFT_INVALID_ARGUMENT, ends[_i].name);
  assert_says(graft_graph_record_end(graph), GRAFT_INVALID_ARGUMENT, ends[_i].name);
  assert_says(graft_graph_record_begin(graph), GRAFT_INVALID_ARGUMENT, ends[_i].name);
  assert_says(graft_graph_compile(graph, reference(), NULL, &exec), GRAFT_INVALID_ARGUMENT, ends[_i].name);
  graft_graph_destroy(graph);
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &t)); /* calls run again */
  release_all((graft_tensor *[]){x, t}, 2);
}
END_TEST

/* A graph that goes while it is recorded leaves the thread as it was. */
START_TEST(destroying_ends_recording) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_tensor *x, *y = NULL, *t;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(x, &y));
  graft_graph_destroy(graph);
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &t));
  release_all((graft_tensor *[]){x, y, t}, 3);
}
END_TEST

START_TEST(a_failing_node_is_named) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *x, *index, *plus = NULL, *taken = NULL, *out = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_input(graph, "index", GRAFT_I64, 1, &n, NULL, &index));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_exp(x, &plus));
  OK(graft_op_index_select(plus, 0, index, &taken));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "taken", taken));
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  graft_tensor *in[] = {host(GRAFT_F32, 3, (float[]){1, 2, 3}), host(GRAFT_I64, 3, (int64_t[]){0, 7, 1})};
  assert_says(graft_graph_run(exec, in, 2, &out, 1), GRAFT_OUT_OF_RANGE,
              "graph node 1: reference:0: aten::index_select");
  ck_assert_ptr_null(out);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, index, plus, taken, in[0], in[1]}, 6);
}
END_TEST

/* A graph, compiled or not, keeps its device open as a tensor does. */
START_TEST(keeps_its_device_open) {
  graft_rt_device *device = null_device(NULL);
  graft_rt_backend *backend = device->backend;
  graft_graph *graph;
  graft_graph_exec *exec;
  OK(graft_graph_create(device, &graph));
  assert_says(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT, "in use");
  OK(graft_graph_compile(graph, device, NULL, &exec));
  graft_graph_destroy(graph);
  assert_says(graft_backend_close(backend), GRAFT_INVALID_ARGUMENT, "in use");
  graft_graph_exec_destroy(exec);
  OK(graft_backend_close(backend));
}
END_TEST

/* A graph that was recorded for one device runs on another one: the values are those of that device's calls. */
START_TEST(compiles_for_another_device) {
  const int64_t n = 3;
  graft_rt_device *device = device_of(1 + _i);
  if (!device) return;
  graft_graph *graph;
  graft_graph_exec *exec;
  graft_tensor *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *x, *sum = NULL, *made = NULL, *moved, *out = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_full(&n, 1, graft_scalar_float(10), GRAFT_F32, reference(), &made));
  OK(graft_op_add_Tensor(x, c, graft_scalar_int(1), &sum));
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){T(sum), T(made)}, 2, &sum, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "sum", sum));
  OK(graft_graph_compile(graph, device, NULL, &exec));
  graft_graph_destroy(graph);
  assert_says(graft_graph_run(exec, &c, 1, &out, 1), GRAFT_INVALID_ARGUMENT, "on reference:0");
  OK(graft_tensor_to(c, device, GRAFT_DTYPE_NONE, &moved));
  OK(graft_graph_run(exec, &moved, 1, &out, 1));
  ck_assert_ptr_eq(out->device, device);
  expect_values(out, 3, (float[]){12, 14, 16});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){c, x, sum, made, moved, out}, 6);
}
END_TEST

/* --- memory that can't be had --- */

/* All of it: two inputs, a constant, a call in place, a view, a draw, and two runs. */
static graft_status make_and_run(void) {
  const int64_t n = 3;
  graft_graph *graph = NULL;
  graft_graph_exec *exec = NULL;
  graft_tensor *in[2] = {NULL}, *c = NULL, *sum = NULL, *twice = NULL, *out[2] = {NULL}, *x = NULL;
  graft_status status = graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &c);
  if (!status) status = graft_graph_create(reference(), &graph);
  for (int i = 0; i < 2 && !status; i++)
    status = graft_graph_input(graph, i ? "b" : "a", GRAFT_F32, 1, &n, NULL, &in[i]);
  if (!status) status = graft_graph_record_begin(graph);
  bool began = !status;
  if (!status) status = graft_op_add_Tensor(in[0], c, graft_scalar_int(1), &sum);
  if (!status) status = graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(in[1]), T(sum)}, 2, &in[1], 1);
  if (!status) status = graft_op_exp(c, &twice);
  if (!status) status = graft_op_add_Tensor(sum, twice, graft_scalar_int(1), &x);
  if (began) graft_graph_record_end(graph);
  if (!status) status = graft_graph_output(graph, "x", x);
  if (!status) status = graft_graph_output(graph, "b", in[1]);
  if (!status) status = graft_graph_compile(graph, reference(), NULL, &exec);
  graft_tensor *given[2] = {NULL};
  for (int i = 0; i < 2 && !status; i++)
    status = graft_tensor_from_host(reference(), GRAFT_F32, 1, &n, (float[]){1, 2, 3}, &given[i]);
  if (!status) status = graft_graph_run(exec, given, 2, out, 2);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){in[0], in[1], c, sum, twice, x, given[0], given[1], out[0], out[1]}, 10);
  return status;
}

/* Each request fails once: an error, and nothing is left behind. */
START_TEST(memory_runs_out_anywhere) {
  OK(make_and_run());
  const int64_t before = atomic_load(&reference()->storages);
  uint64_t failed = 0;
  for (uint64_t at = 1;; at++) {
    heap_failing = heap_calls + at;
    graft_status status = make_and_run();
    bool reached = heap_calls >= heap_failing;
    heap_failing = 0;
    ck_assert_int_eq(atomic_load(&reference()->storages), before);
    if (!reached) break;
    failed += status != GRAFT_OK;
    ck_assert_msg(!status || status == GRAFT_OUT_OF_MEMORY, "request %llu: %s", (unsigned long long)at,
                  graft_last_error());
    OK(make_and_run());
  }
  ck_assert_uint_gt(failed, 50);
}
END_TEST

/* --- many at once --- */

static void *run_often(void *context) {
  graft_graph_exec *exec = context;
  for (int i = 0; i < 200; i++) {
    graft_tensor *in[] = {host(GRAFT_F32, 3, (float[]){(float)i, 2, 3}), host(GRAFT_F32, 3, (float[]){1, 1, 1})}, *out;
    OK(graft_graph_run(exec, in, 2, &out, 1));
    expect_values(out, 3, (float[]){(float)(2 * i), 4, 6});
    expect_values(in[0], 3, (float[]){(float)(i + 1), 3, 4});
    release_all((graft_tensor *[]){in[0], in[1], out}, 3);
  }
  return NULL;
}

START_TEST(two_threads_run_it) {
  graft_graph_exec *exec = two_inputs(3);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, run_often, exec), 0);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
  graft_graph_exec_destroy(exec);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(inputs_are_checked),
                              ONCE(inputs_may_begin_anywhere),
                              ONCE(constants_are_values),
                              ONCE(constants_come_out_as_copies),
                              ONCE(the_default_dtype_is_kept),
                              ONCE(calls_share_one_default_dtype),
                              ONCE(stale_values_are_found),
                              ONCE(refusals_name_the_op),
                              EACH(what_depends_on_values_ends_it, ROWS(ends)),
                              ONCE(destroying_ends_recording),
                              ONCE(a_failing_node_is_named),
                              EACH(compiles_for_another_device, DEVICES - 1),
                              ONCE(memory_runs_out_anywhere),
                              ONCE(keeps_its_device_open),
                              ONCE(two_threads_run_it),
                              {0}};
  return run_suite("graph_use", tests, (suite_options){.timeout_s = 60});
}
