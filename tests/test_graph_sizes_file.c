/* Graphs with open sizes in files: what comes out serves all sizes as what went in does; nothing of a file is believed.
 */
#include "graph_damage.h"
#include "sized_programs.h"
#include "suite.h"

enum { PROGRAMS = sizeof programs / sizeof *programs, TRIES = 3000 };

/* Each program, from each of its sizes, through a file, and run at all of them. */
START_TEST(comes_back) {
  const sized_program *p = &programs[_i];
  make_constant();
  for (size_t e = 0; e < sizeof recorded_sizes / sizeof *recorded_sizes; e++) {
    graft_graph *graph = record_sized(p, recorded_sizes[e][0], recorded_sizes[e][1]);
    graft_graph *back = through_file(graph, NULL, p->name);
    graft_graph_exec *exec;
    graft_graph_destroy(graph);
    graft_status status = graft_graph_compile(back, reference(), NULL, &exec);
    ck_assert_msg(!status, "%s: %s", p->name, graft_last_error());
    graft_graph_destroy(back);
    compare_at_all(p, exec);
    graft_graph_exec_destroy(exec);
  }
  graft_tensor_release(constant);
}
END_TEST

/* Strides, a number in host memory, a list, a value, text, and a second input of a formula's size. */
static graft_graph *new_open_graph(void) {
  graft_graph *graph;
  graft_tensor *x, *y, *w, *sum = NULL, *both = NULL, *value = host(GRAFT_F32, 2, (float[]){3, 4});
  int64_t n, twice;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_size(graph, "n", 2, 1, INT64_MAX, &n));
  OK(graft_graph_size_of(graph, GRAFT_SIZE_MUL, n, 2, &twice));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 2, (int64_t[]){n, 2}, (int64_t[]){1, n}, &x));
  OK(graft_graph_input(graph, "y", GRAFT_F32, 1, &twice, NULL, &y));
  OK(graft_graph_input(graph, "w", GRAFT_F32, 1, (int64_t[]){2}, NULL, &w));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_add_Tensor(x, w, graft_scalar_int(1), &sum));
  graft_tensor *flat =
      CALL(VIEW, T(CALL(CLONE, T(sum), {GRAFT_VALUE_MEMORY_FORMAT, 0, {.i = GRAFT_FORMAT_CONTIGUOUS}})), INTS(twice));
  OK(graft_op_cat((graft_tensor *[]){flat, y}, 2, 0, &both));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "both", both));
  OK(graft_graph_input_set_value(graph, 2, value));
  sweep();
  release_all((graft_tensor *[]){x, y, w, sum, both, value}, 6);
  return graph;
}

START_TEST(inputs_come_back) {
  graft_graph *graph = new_open_graph(), *back = through_file(graph, NULL, "inputs");
  graft_graph_exec *exec;
  graft_tensor *in[3], *out, *whole = host(GRAFT_F32, 6, (float[]){1, 2, 3, 4, 5, 6});
  graft_graph_destroy(graph);
  OK(graft_graph_compile(back, reference(), NULL, &exec));
  OK(graft_graph_input_value(back, 2, reference(), &in[2]));
  OK(tns_new(whole->storage, reference(), GRAFT_F32, 2, (int64_t[]){3, 2}, (int64_t[]){1, 3}, 0, &in[0]));
  in[1] = host(GRAFT_F32, 6, (float[]){0, 0, 0, 0, 0, 7});
  OK(graft_graph_run(exec, in, 3, &out, 1));
  expect_values(out, 12, (float[]){4, 8, 5, 9, 6, 10, 0, 0, 0, 0, 0, 7});
  release_all((graft_tensor *[]){in[0], in[1], in[2], out, whole}, 5);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(back);
}
END_TEST

/* What the calls at the sizes of the recording do not see of a constant is in the file. */
START_TEST(constants_are_whole) {
  make_constant();
  graft_graph *graph = record_sized(&programs[6], 1, 1);
  OK(graft_graph_save(graph, file_path));
  bytes b = read_all(file_path);
  opened o = open_json(b);
  ck_assert_str_eq(cJSON_GetStringValue(json_at(o, "$/__metadata__/graft.format")), "2");
  ck_assert_int_eq(json_at(o, "$/constant.0/shape/0")->valueint, 10);
  bytes same = close_json(o, b);
  graft_graph_destroy(graph);
  graft_tensor_release(constant);
  free(b.at);
  free(same.at);
}
END_TEST

/* --- what can't be read --- */

static const struct {
  int program; /* -1: new_open_graph */
  const char *at, *json, *says;
} edits[] = {
    {-1, "$/__metadata__/graft.format", "\"1\"", "x: its view: it is no object"},
    {-1, "sizes", "[]", "its graph has no open size"},
    {-1, "sizes", NULL, "no list \"sizes\""},
    {-1, "sizes/0/name", "\"\"", "the name is empty"},
    {-1, "sizes/0/name", NULL, "size 0 has neither a name nor an op that there is"},
    {-1, "sizes/0/example", "0", "n: 0 is no example of a size from 1 to"},
    {-1, "sizes/0/example", "\"x\"", "the size n has no example"},
    {-1, "sizes/0/least", "-1", "the least is -1; expected 0 or more"},
    {-1, "sizes/1", "{\"name\":\"n\",\"example\":1,\"least\":1,\"most\":1}", "a size named n"},
    {-1, "sizes/1/op", "\"pow\"", "size 1 has neither a name nor an op that there is"},
    {-1, "sizes/1/of/0/size", "1", "size 1 is not of two numbers or earlier sizes"},
    {-1, "sizes/1/of/0", "{\"size\":0,\"more\":0}", "size 1 is not of two numbers or earlier sizes"},
    {-1, "sizes/1/of/0", "\"-4611686018427387904\"", "size 1 is not of two numbers or earlier sizes"},
    {-1, "sizes/1/of/1", "\"9223372036854775807\"", "is no number that a size can be where n = 2"},
    {-1, "sizes/1/of", "[1]", "size 1 is not of two numbers or earlier sizes"},
    {-1, "inputs/0/name", "\"y\"", "the graph has an input named y"},
    {-1, "inputs/0/dtype", "\"f33\"", "x: it has no known dtype"},
    {-1, "inputs/0/sizes/0/size", "7", "x: its sizes are no list"},
    {-1, "inputs/0/sizes/0", "-1", "x: a size or stride is below 0"},
    {-1, "inputs/0/strides/0", "-1", "x: a size or stride is below 0"},
    {-1, "inputs/0/strides", "[1]", "x: its strides are no list of one stride a size"},
    {-1, "inputs/0/conjugate", "true", "x: it is conjugate and not complex"},
    {-1, "inputs/0/on_host", "true", "x: it is in host memory, and no number"},
    {-1, "inputs/0/on_host", "1", "x: what it is, is neither true nor false"},
    {-1, "inputs/1/value", "0", "y: its value is not the next one, number 1"},
    {-1, "inputs/2/sizes/0", "{\"size\":0}", "w: it has an open size, and begins with a value"},
    {6, "buffers/0", "{\"kind\":\"value\",\"bytes\":8}", "buffer 0 is no constant"},
    {-1, "calls/0/op", "\"aten::sub.Tensor\"", "call 0 of the graph: it calls no op that \"ops\" names"},
    {-1, "calls/0/args", NULL, "call 0 of the graph: aten::add.Tensor: it has no \"args\""},
    {-1, "calls/0/args/more", "{\"int\":1}", "it has no argument more"},
    {-1, "calls/0/args/self/tensor", "3", "it speaks of a value that is not there; there are 3 before it"},
    {-1, "calls/0/args/self/tensor", "-1", "it speaks of a value that is not there"},
    {-1, "calls/0/args/self/tensor/requires_grad", "1", "a leaf neither requires grad nor not"},
    {-1, "calls/0/args/alpha", "{\"thing\":1}", "argument alpha is nothing that an argument can be"},
    {-1, "calls/0/args/other", NULL,
     "call 0 of the graph, made for n = 2: aten::add.Tensor: argument other is missing"},
    {-1, "calls/0/results/0", "2", "its value is not the next one, number 3"},
    {-1, "calls/0/results", NULL, "it has no list of results"},
    {-1, "calls/0/results/0", "{\"given\":3}", "it speaks of a value that is not there"},
    {-1, "calls/0/grad_mode", "1", "its modes are neither true nor false"},
    {-1, "calls/2/args/size/ints/0", "{\"size\":2}", "argument size is nothing that an argument can be"},
    {-1, "calls/2/args/size/ints/0", "\"-4611686018427387904\"", "argument size is nothing that an argument can be"},
    {-1, "calls/2/args/size/ints/0", "5", "call 2 of the graph, made for n = 2: aten::view"},
    {-1, "outputs/0/value", "99", "both: it speaks of a value that is not there"},
    {-1, "outputs/0/name", NULL, "an output has no name"},
    {6, "constants/0/value", "0", "a constant: its value is not the next one, number 1"},
    {6, "constants/0/view/sizes/0", "11", "a constant: its view goes beyond buffer 0, of 40 bytes"},
    {6, "constants/0/view", "{\"buffer\":1,\"dtype\":\"f32\",\"sizes\":[],\"strides\":[]}",
     "buffer 1 is named before buffer 0"},
    {6, "constants", "[]", "buffer 0 is no constant's"},
    {9, "calls/4/roots", "[99]", "graft_backward: it speaks of a value that is not there"},
    {9, "calls/4/cotangents", "[]", "graft_backward: it has no lists of roots and as many cotangents"},
    {9, "calls/4/flags", "-1", "graft_backward: it has no flags"},
    {9, "calls/4/flags", "64", "unknown flags 0x40"},
    {9, "calls/4/gradients/0/of", "99", "graft_backward: it speaks of a value that is not there"},
    {11, "calls/3/results", "[]", "graft_grad: it has not one result an input"},
};

static bytes file_of(int program) {
  make_constant();
  graft_graph *graph = program < 0 ? new_open_graph() : record_sized(&programs[program], 4, 3);
  OK(graft_graph_save(graph, file_path));
  graft_graph_destroy(graph);
  graft_tensor_release(constant);
  return read_all(file_path);
}

START_TEST(edits_are_refused) {
  graft_graph *back = NULL;
  bytes b = file_of(edits[_i].program);
  const int64_t before = atomic_load(&reference()->storages);
  opened o = open_json(b);
  edit(o, edits[_i].at, edits[_i].json);
  bytes made = close_json(o, b);
  write_all(file_path, made);
  assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT, edits[_i].says);
  ck_assert_msg(strstr(graft_last_error(), file_path) == graft_last_error(), "%s", graft_last_error());
  ck_assert_int_eq(atomic_load(&reference()->storages), before);
  free(b.at);
  free(made.at);
}
END_TEST

START_TEST(cut_files_are_refused) {
  graft_graph *back = NULL;
  bytes b = file_of(_i);
  for (size_t n = 0; n < b.count; n++) {
    write_all(file_path, (bytes){b.at, n});
    assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT,
                n < 8 ? "begins with 8 bytes" : "it ends early");
  }
  free(b.at);
}
END_TEST

/* One bit of each byte of each file, in turn: an error, or what can be saved, compiled and run. */
START_TEST(turned_bits_are_found_or_harmless) {
  bytes b = file_of(_i);
  for (size_t n = 0; n < b.count; n++) {
    const unsigned char was = b.at[n];
    b.at[n] ^= (unsigned char)(1u << n % 8);
    try_file(b);
    b.at[n] = was;
  }
  free(b.at);
}
END_TEST

START_TEST(damage_is_found_or_harmless) {
  bytes files[PROGRAMS + 1];
  for (int i = 0; i <= PROGRAMS; i++) files[i] = file_of(i - 1);
  damage_files(files, PROGRAMS + 1, TRIES, _i);
  for (int i = 0; i <= PROGRAMS; i++) free(files[i].at);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(comes_back, PROGRAMS),
                              ONCE(inputs_come_back),
                              ONCE(constants_are_whole),
                              EACH(edits_are_refused, ROWS(edits)),
                              EACH(cut_files_are_refused, PROGRAMS),
                              EACH(turned_bits_are_found_or_harmless, PROGRAMS),
                              EACH(damage_is_found_or_harmless, 2),
                              {0}};
  return run_suite("graph_sizes_file", tests,
                   (suite_options){.timeout_s = 240, .setup = files_begin, .teardown = files_end});
}
