/* Graphs in files: what comes out is what went in, for every op; a file is whole or not there; what can't be read is
 * refused with a text that says why. Damaged files are test_graph_hostile.c's. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "conformance/cases/cases.h"
#include "conformance/run/call.h"
#include "conformance/run/menu.h"
#include "graft/bridge.h"
#include "graph/file.h"
#include "graph_files.h"
#include "heap.h"
#include "suite.h"

/* --- graphs to try --- */

/* x + c into y, and y * 2: constants of several kinds, a write, a view, and numbers that JSON has no words for. */
static graft_graph *new_graph(void) {
  const int64_t three[] = {3}, whole = INT64_MAX;
  graft_graph *graph;
  graft_tensor *x, *y, *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *sum = NULL, *out = NULL, *part = NULL;
  graft_tensor *number = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, three, NULL, &x));
  OK(graft_graph_input(graph, "y", GRAFT_F32, 1, three, NULL, &y));
  OK(graft_tensor_from_host(reference(), GRAFT_F64, 0, NULL, (double[]){2}, &number));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_add_Tensor(x, c, graft_scalar_int(1), &sum));
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){T(y), T(sum)}, 2, &y, 1));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(y), T(number)}, 2, &out, 1));
  OK(graft_call(GRAFT_OP_SLICE_TENSOR, (graft_value[]){T(out), INT(0), INT(1), INT(whole)}, 4, &part, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "out", part));
  release_all((graft_tensor *[]){x, y, c, sum, out, part, number}, 7);
  return graph;
}

static void expect_run(const graft_graph *graph, graft_rt_device *device) {
  graft_graph_exec *exec;
  graft_tensor *in[2], *out,
      *host_in[] = {host(GRAFT_F32, 3, (float[]){1, 1, 1}), host(GRAFT_F32, 3, (float[]){0, 10, 20})};
  OK(graft_graph_compile(graph, device, NULL, &exec));
  for (int i = 0; i < 2; i++) OK(graft_tensor_to(host_in[i], device, GRAFT_DTYPE_NONE, &in[i]));
  OK(graft_graph_run(exec, in, 2, &out, 1));
  expect_values(out, 2, (float[]){26, 48});
  expect_values(in[1], 3, (float[]){2, 13, 24});
  graft_graph_exec_destroy(exec);
  release_all((graft_tensor *[]){in[0], in[1], out, host_in[0], host_in[1]}, 5);
}

START_TEST(comes_back) {
  graft_graph *graph = new_graph(), *back = through_file(graph, NULL, "the graph");
  ck_assert_uint_eq(graft_graph_node_count(back), graft_graph_node_count(graph));
  graft_graph_destroy(graph);
  expect_run(back, reference());
  for (int turn = 1; turn < DEVICES; turn++) {
    graft_rt_device *device = device_of(turn);
    if (!device) continue;
    expect_run(back, device);
    graft_graph *there = loaded(device, file_path);
    expect_run(there, device);
    graft_graph_destroy(there);
  }
  graft_graph_destroy(back);
}
END_TEST

/* Numbers in host memory stay there, wherever the file was loaded. */
START_TEST(host_numbers_stay) {
  const int64_t n = 3;
  graft_rt_device *device = device_of(1 + _i);
  if (!device) return;
  graft_graph *graph;
  graft_tensor *values = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *number[2], *x, *h, *y = NULL, *z = NULL;
  for (int i = 0; i < 2; i++)
    OK(graft_tensor_from_host(reference(), GRAFT_F32, 0, NULL, (float[]){(float)(10 + i)}, &number[i]));
  OK(graft_graph_create(device, &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_input_like(graph, "h", number[0], &h));
  OK(graft_graph_call(graph, GRAFT_OP_MUL_TENSOR, (graft_value[]){T(x), T(h)}, 2, &y, 1));
  OK(graft_graph_call(graph, GRAFT_OP_ADD_TENSOR, (graft_value[]){T(y), T(number[1])}, 2, &z, 1));
  OK(graft_graph_output(graph, "z", z));
  for (int there = 0; there < 2; there++) {
    graft_graph *back = through_file(graph, there ? device : NULL, "numbers");
    graft_graph_exec *exec;
    graft_graph_port port;
    graft_tensor *in[] = {NULL, number[0]}, *out = NULL;
    OK(graft_graph_input_query(back, 1, &port, sizeof port));
    ck_assert(port.on_host);
    OK(graft_tensor_to(values, device, GRAFT_DTYPE_NONE, &in[0]));
    OK(graft_graph_compile(back, device, NULL, &exec));
    OK(graft_graph_run(exec, in, 2, &out, 1));
    expect_values(out, 3, (float[]){21, 31, 41});
    graft_graph_exec_destroy(exec);
    graft_graph_destroy(back);
    release_all((graft_tensor *[]){in[0], out}, 2);
  }
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){values, number[0], number[1], x, h, y, z}, 7);
}
END_TEST

/* What integers become is what they became when it was recorded. */
START_TEST(the_default_dtype_is_kept) {
  const int64_t n = 3;
  graft_graph *graph;
  graft_graph_port port;
  graft_tensor *x, *y = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_default_dtype_set(GRAFT_F64));
  OK(graft_graph_input(graph, "x", GRAFT_I64, 1, &n, NULL, &x));
  OK(graft_graph_call(graph, GRAFT_OP_DIV_TENSOR, (graft_value[]){T(x), NUMBER(2)}, 2, &y, 1));
  OK(graft_graph_output(graph, "y", y));
  OK(graft_default_dtype_set(GRAFT_F32));
  graft_graph *back = through_file(graph, NULL, "halves");
  ck_assert(dt_default() == GRAFT_F32);
  OK(graft_graph_output_query(back, 0, &port, sizeof port));
  ck_assert(port.dtype == GRAFT_F64);
  graft_graph_destroy(back);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, y}, 2);
}
END_TEST

/* The same program gives the same bytes, whatever else was made before. */
START_TEST(same_graph_same_bytes) {
  graft_graph *first = new_graph(), *second = new_graph();
  OK(graft_graph_save(first, file_path));
  bytes a = read_all(file_path);
  graft_tensor *more = NULL, *x = host(GRAFT_F32, 1, (float[]){1});
  OK(graft_graph_call(second, GRAFT_OP_VIEW, (graft_value[]){T(x), INTS(1, 1)}, 2, &more, 1)); /* leaves no node */
  OK(graft_graph_save(second, file_path));
  bytes b = read_all(file_path);
  ck_assert(same_bytes(a, b));
  ck_assert_uint_eq(header_bytes(a) % 8, 0);
  ck_assert_int_eq(files_count(false), 1);
  free(a.at);
  free(b.at);
  release_all((graft_tensor *[]){x, more}, 2);
  graft_graph_destroy(first);
  graft_graph_destroy(second);
}
END_TEST

/* Weights stand in the file as what they are, each at a multiple of its elements' size. */
START_TEST(others_read_the_weights) {
  graft_graph *graph = new_graph();
  graft_tensor *x = host(GRAFT_BF16, 1, (uint16_t[]){0x3f80}), *out[2] = {NULL};
  OK(graft_graph_call(graph, GRAFT_OP_EXP, (graft_value[]){T(x)}, 1, out, 1));
  graft_tensor *complex = host(GRAFT_C64, 1, (float[]){1, 2});
  OK(graft_graph_call(graph, GRAFT_OP_EXP, (graft_value[]){T(complex)}, 1, out + 1, 1));
  OK(graft_graph_save(graph, file_path));
  bytes b = read_all(file_path);
  opened o = open_json(b);
  static const struct {
    const char *name, *dtype;
    int size, begin;
  } expected[] = {{"$/constant.1", "F64", -1, 0},
                  {"$/constant.0", "F32", 3, 8},
                  {"$/constant.2", "BF16", 1, 20},
                  {"$/constant.3", "U8", 8, 22}};
  for (int i = 0; i < 4; i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/dtype", expected[i].name);
    ck_assert_str_eq(cJSON_GetStringValue(json_at(o, path)), expected[i].dtype);
    snprintf(path, sizeof path, "%s/shape/0", expected[i].name);
    const cJSON *size = json_at(o, path);
    ck_assert_int_eq(size ? size->valueint : -1, expected[i].size);
    snprintf(path, sizeof path, "%s/data_offsets/0", expected[i].name);
    ck_assert_int_eq(json_at(o, path)->valueint, expected[i].begin);
  }
  cJSON_Delete(o.header);
  cJSON_Delete(o.graph);
  free(b.at);
  release_all((graft_tensor *[]){x, complex, out[0], out[1]}, 4);
  graft_graph_destroy(graph);
}
END_TEST

/* Of the first and third row of a matrix, four elements each, whose other elements are secrets. */
START_TEST(what_is_not_seen_is_not_saved) {
  float all[4][40], secret = 1234567;
  for (int row = 0; row < 4; row++) {
    for (int column = 0; column < 40; column++)
      all[row][column] = row % 2 || column < 30 || column > 33 ? secret : (float)(10 * row + column);
  }
  const int64_t n = 4;
  graft_graph *graph;
  graft_tensor *whole, *rows, *x, *out = NULL;
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 2, (int64_t[]){4, 40}, all, &whole));
  OK(tns_view(whole, 2, (int64_t[]){2, 4}, (int64_t[]){80, 1}, 30, &rows));
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_call(graph, GRAFT_OP_ADD_TENSOR, (graft_value[]){T(x), T(rows)}, 2, &out, 1));
  OK(graft_graph_output(graph, "out", out));
  graft_graph *back = through_file(graph, NULL, "two rows");
  bytes b = read_all(file_path);
  for (size_t i = 8 + header_bytes(b); i < b.count; i++)
    ck_assert(b.count - i < 4 || memcmp(b.at + i, &secret, 4) != 0);
  graft_graph_exec *exec;
  graft_tensor *in = host(GRAFT_F32, 4, (float[]){0, 0, 0, 1}), *sum = NULL;
  OK(graft_graph_compile(back, reference(), NULL, &exec));
  OK(graft_graph_run(exec, &in, 1, &sum, 1));
  expect_values(sum, 8, (float[]){30, 31, 32, 34, 50, 51, 52, 54});
  free(b.at);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(back);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){whole, rows, x, out, in, sum}, 6);
}
END_TEST

/* Numbers come back bit by bit. */
START_TEST(numbers_keep_their_bits) {
  static const graft_scalar scalars[] = {{GRAFT_F64, 0, {.f = 0.1}},
                                         {GRAFT_F64, 0, {.f = -0.0}},
                                         {GRAFT_F64, 0, {.i = 0x7ff800000000beef}},
                                         {GRAFT_F64, 0, {.f = -1.0 / 0.0}},
                                         {GRAFT_F64, 0, {.f = 5e-324}},
                                         {GRAFT_F64, 0, {.f = 1.7976931348623157e308}},
                                         {GRAFT_I64, 0, {.i = INT64_MIN}},
                                         {GRAFT_I64, 0, {.i = INT64_MAX}},
                                         {GRAFT_I64, 0, {.i = (1LL << 53) + 1}},
                                         {GRAFT_U64, 0, {.i = -1}},
                                         {GRAFT_BOOL, 0, {.i = 1}},
                                         {GRAFT_C128, 0, {.c = {-0.0, 1e300}}},
                                         {GRAFT_I64, 0, {.i = 5000000000LL}}};
  for (int i = 0; i < ROWS(scalars); i++) {
    graft_value v = graft_value_scalar(scalars[i]), back;
    arena memory = {0};
    cJSON *json = gr_json_value(&v);
    char *text = cJSON_PrintUnformatted(json);
    cJSON *again = cJSON_Parse(text);
    ck_assert_msg(gr_json_get_value(again, &memory, &back), "%s", text);
    ck_assert_msg(back.kind == v.kind && back.as.scalar.dtype == v.as.scalar.dtype &&
                      !memcmp(&back.as.scalar.value, &v.as.scalar.value, v.as.scalar.dtype == GRAFT_C128 ? 16 : 8),
                  "%s", text);
    cJSON_Delete(json);
    cJSON_Delete(again);
    cJSON_free(text);
    arena_free(&memory);
  }
}
END_TEST

/* --- every op --- */

/* One call as a graph: whether it could be recorded. */
static bool record_call(const cf_call *call, graft_graph *graph) {
  graft_tensor *tensors[CF_MAX_TENSORS] = {0}, *items[CF_MAX_TENSORS], *outs[CF_MAX_TENSORS] = {0};
  graft_value args[OP_MAX_ARGS];
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < call->ntensors && !status; i++) {
    const txt_tensor *t = &call->specs[i];
    graft_tensor *input;
    char name[16];
    snprintf(name, sizeof name, "x%u", i);
    const int64_t count = t->offset + tns_extent_bytes(t->dtype, t->ndim, t->sizes, t->strides, 0);
    status = graft_graph_input(graph, name, t->dtype, 1, &count, NULL, &input);
    if (status) break;
    status = tns_view(input, t->ndim, t->sizes, t->strides, t->offset, &tensors[i]);
    graft_tensor_release(input);
  }
  cf_call_args(call, reference(), tensors, args, items);
  uint32_t nouts = cf_call_outs(call);
  if (!nouts) nouts = CF_MAX_TENSORS;
  if (!status) status = graft_graph_call(graph, call->schema->id, args, call->schema->nargs, outs, nouts);
  for (uint32_t i = 0; i < nouts && !status; i++) {
    char name[16];
    snprintf(name, sizeof name, "y%u", i);
    if (outs[i]) status = graft_graph_output(graph, name, outs[i]);
  }
  release_all(tensors, call->ntensors);
  release_all(outs, CF_MAX_TENSORS);
  return !status;
}

static void try_row(cf_case row, uint32_t *calls, uint32_t *saved) {
  const cf_op *op = cf_case_op(&row);
  graft_dtype dtypes[GRAFT_NUMBER_WIDE];
  if (!cf_op_dtypes(op, dtypes)) return;
  row.dtype = dtypes[0];
  row.op_id = op_schema_find(op->name)->id;
  for (uint16_t text = 0; op->texts[text]; text++) {
    cf_call call;
    graft_graph *graph;
    row.text = text;
    if (!cf_call_open(&row, &call)) continue;
    OK(graft_graph_create(reference(), &graph));
    (*calls)++;
    if (record_call(&call, graph)) {
      char name[256];
      snprintf(name, sizeof name, "%s %s", op->name, cf_case_text(&row));
      graft_graph_destroy(through_file(graph, NULL, name));
      (*saved)++;
    }
    graft_graph_destroy(graph);
    cf_call_close(&call);
  }
}

/* A call of the suite for each row of it, whatever kinds of arguments it has. */
START_TEST(every_op_comes_back) {
  uint32_t calls = 0, saved = 0;
  for (uint32_t t = 0; t < cf_topic_count; t++) {
    for (uint32_t i = 0; i < cf_topics[t]->count; i++)
      try_row((cf_case){.topic = (uint16_t)t, .op = (uint16_t)i}, &calls, &saved);
  }
  ck_assert_msg(calls > 1000 && saved > calls * 9 / 10, "%u of %u calls were saved", saved, calls);
}
END_TEST

/* --- what can't be read --- */

static const struct {
  const char *at, *json; /* what stands there instead; NULL: it is taken out */
  graft_status status;
  const char *says;
} edits[] = {
    {"$/__metadata__/graft.format", "\"2\"", GRAFT_INCOMPATIBLE, "it has format 2, and this libgraft ("},
    {"$/__metadata__/graft.graph", NULL, GRAFT_INVALID_ARGUMENT, "it is no graph: a safetensors file without"},
    {"$/__metadata__/graft.graph", "\"[\"", GRAFT_INVALID_ARGUMENT, "its graph is not valid JSON"},
    {"$/__metadata__/graft.graph", "\"[[[[[[[[[[[[[]]]]]]]]]]]]]\"", GRAFT_INVALID_ARGUMENT, "nest deeper than 12"},
    {"$/constant.0/dtype", "\"F16\"", GRAFT_INVALID_ARGUMENT, "\"constant.0\" has other offsets than its 6 bytes need"},
    {"$/constant.0/shape/0", "-1", GRAFT_INVALID_ARGUMENT, "\"constant.0\" has no dtype and shape that fit"},
    {"$/constant.0/shape/0", "\"9223372036854775807\"", GRAFT_INVALID_ARGUMENT, "no dtype and shape that fit"},
    {"$/constant.1", NULL, GRAFT_INVALID_ARGUMENT, "\"constant.0\" does not begin where the one before it ends"},
    {"$/constant.0", NULL, GRAFT_INVALID_ARGUMENT, "12 bytes behind its last constant are nobody's"},
    {"ops/aten::add.Tensor", "\"0123456789abcdef\"", GRAFT_INCOMPATIBLE,
     "it calls aten::add.Tensor as another version of it was: here that is aten::add.Tensor("},
    {"ops/aten::add.Tensor", NULL, GRAFT_INVALID_ARGUMENT, "graph node 0: it calls no op that \"ops\" names"},
    {"nodes/0/op", "\"aten::sub.Tensor\"", GRAFT_INVALID_ARGUMENT, "graph node 0: it calls no op"},
    {"buffers/0/bytes", "13", GRAFT_INVALID_ARGUMENT, "input x: its buffer has 13 bytes, its view takes 12"},
    {"buffers/0/kind", "\"thing\"", GRAFT_INVALID_ARGUMENT, "buffer 0 has no kind"},
    {"buffers/0/on_host", "true", GRAFT_INVALID_ARGUMENT, "its view is of a number in host memory, and no number"},
    {"buffers/2/bytes", "4611686018427387905", GRAFT_INVALID_ARGUMENT, "buffer 2 has no size"},
    {"inputs/0/view/offset", "1", GRAFT_INVALID_ARGUMENT, "its view goes beyond buffer 0, of 12 bytes"},
    {"inputs/1/name", "\"x\"", GRAFT_INVALID_ARGUMENT, "the graph has an input named x; names are given once"},
    {"inputs/1/view/buffer", "0", GRAFT_INVALID_ARGUMENT, "of none that another one has"},
    {"inputs/1", NULL, GRAFT_INVALID_ARGUMENT, "is an input that \"inputs\" does not name"},
    {"nodes/0/args/self/tensor/sizes/0", "4", GRAFT_INVALID_ARGUMENT,
     "graph node 0: aten::add.Tensor: its view goes beyond buffer 0"},
    {"nodes/0/args/self/tensor/strides/0", "\"4611686018427387904\"", GRAFT_INVALID_ARGUMENT,
     "the places of its elements overflow"},
    {"nodes/0/args/self/tensor/dtype", "\"f33\"", GRAFT_INVALID_ARGUMENT, "its view: it has no known dtype"},
    {"nodes/0/args/self/tensor/buffer", "99", GRAFT_INVALID_ARGUMENT, "its view is of no buffer that there is"},
    {"nodes/0/args/self/tensor/conjugate", "true", GRAFT_INVALID_ARGUMENT, "it is conjugate and not complex"},
    {"nodes/0/args/other", NULL, GRAFT_INVALID_ARGUMENT,
     "aten::add.Tensor: argument other is missing; expected Tensor"},
    {"nodes/0/args/more", "{\"int\":1}", GRAFT_INVALID_ARGUMENT, "aten::add.Tensor: it has no argument more"},
    {"nodes/0/args/alpha", "{\"text\":\"1\"}", GRAFT_INVALID_ARGUMENT,
     "aten::add.Tensor: argument alpha expects number"},
    {"nodes/0/results/0/view/sizes/0", "2", GRAFT_INVALID_ARGUMENT,
     "the file says that result 0 is f32[2] and lies otherwise; here the call gives f32[3]"},
    {"nodes/0/results/0/view/buffer", "0", GRAFT_INVALID_ARGUMENT, "its result 0 is new, and its buffer is not"},
    {"nodes/0/results/0", "null", GRAFT_INVALID_ARGUMENT, "the file has no result 0, and the call gives one"},
    {"nodes/0/args/self/written", "true", GRAFT_INVALID_ARGUMENT, "argument self is written, and here it is not"},
    {"outputs/0/view/offset", "2", GRAFT_INVALID_ARGUMENT, "out: its view goes beyond buffer"},
    {"default_dtype", "\"i64\"", GRAFT_INVALID_ARGUMENT, "no default dtype"},
};

static void edit(opened o, const char *at, const char *json) {
  char parent[128];
  snprintf(parent, sizeof parent, "%s", at);
  char *key = strrchr(parent, '/');
  cJSON *in = key ? (*key = 0, json_at(o, parent)) : o.graph, *old = json_at(o, at);
  key = key ? key + 1 : parent;
  ck_assert_ptr_nonnull(in);
  if (!json)
    cJSON_Delete(cJSON_DetachItemViaPointer(in, old));
  else if (cJSON_IsArray(in))
    cJSON_ReplaceItemViaPointer(in, old, cJSON_Parse(json));
  else if (old)
    cJSON_ReplaceItemInObjectCaseSensitive(in, key, cJSON_Parse(json));
  else
    cJSON_AddItemToObject(in, key, cJSON_Parse(json));
}

START_TEST(edits_are_refused) {
  graft_graph *graph = new_graph(), *back = NULL;
  OK(graft_graph_save(graph, file_path));
  const int64_t before = atomic_load(&reference()->storages);
  bytes b = read_all(file_path);
  opened o = open_json(b);
  edit(o, edits[_i].at, edits[_i].json);
  if (strstr(edits[_i].at, "graft.graph")) { /* it is the text that was edited */
    cJSON_Delete(o.graph);
    o.graph = NULL;
  }
  bytes made = close_json(o, b);
  write_all(file_path, made);
  assert_says(graft_graph_load(NULL, file_path, &back), edits[_i].status, edits[_i].says);
  ck_assert_msg(strstr(graft_last_error(), file_path) == graft_last_error(), "%s", graft_last_error());
  ck_assert_ptr_null(back);
  ck_assert_int_eq(atomic_load(&reference()->storages), before);
  free(b.at);
  free(made.at);
  graft_graph_destroy(graph);
}
END_TEST

/* Cut at every place, and with a byte more. */
START_TEST(cut_files_are_refused) {
  graft_graph *graph = new_graph(), *back = NULL;
  OK(graft_graph_save(graph, file_path));
  bytes b = read_all(file_path);
  for (size_t n = 0; n < b.count; n++) {
    write_all(file_path, (bytes){b.at, n});
    assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT,
                n < 8 ? "begins with 8 bytes" : "it ends early");
  }
  b.at[b.count] = 0;
  write_all(file_path, (bytes){b.at, b.count + 1});
  assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT, "1 bytes behind its last constant");
  memset(b.at, 0xff, 8);
  write_all(file_path, b);
  assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT,
              "a header of 18446744073709551615 bytes");
  assert_says(graft_graph_load(NULL, file_folder, &back), GRAFT_INVALID_ARGUMENT, "not a regular file");
  assert_says(graft_graph_load(NULL, "/nowhere/at.all", &back), GRAFT_INVALID_ARGUMENT,
              "/nowhere/at.all: it can't be read: No such file");
  free(b.at);
  graft_graph_destroy(graph);
}
END_TEST

START_TEST(constants_stand_there_once) {
  graft_graph *graph = new_graph(), *back = NULL;
  OK(graft_graph_save(graph, file_path));
  bytes b = read_all(file_path);
  unsigned char *name = memmem(b.at, b.count, "\"constant.1\"", 12);
  ck_assert_ptr_nonnull(name);
  name[10] = '0';
  write_all(file_path, b);
  assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT,
              "tensor \"constant.0\" stands there twice");
  name[10] = '7';
  write_all(file_path, b);
  assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT,
              "its graph has a constant 1, and it has no \"constant.1\"");
  free(b.at);
  graft_graph_destroy(graph);
}
END_TEST

/* --- ops of plugins --- */

static void save_custom(void) {
  graft_rt_device *device = device_at(test_plugin("custom"), NULL, 0);
  ck_assert_msg(device != NULL, "%s", graft_last_error());
  const int64_t n = 3;
  graft_graph *graph;
  graft_tensor *x, *out = NULL;
  OK(graft_graph_create(device, &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_call(graph, graft_op_find("acme::cube"), (graft_value[]){T(x)}, 1, &out, 1));
  OK(graft_graph_output(graph, "out", out));
  graft_graph_destroy(through_file(graph, device, "acme::cube"));
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, out}, 2);
}

START_TEST(ops_of_plugins_need_them) {
  graft_graph *back;
  pid_t child = fork();
  if (!child) {
    save_custom();
    _exit(0);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  assert_says(
      graft_graph_load(NULL, file_path, &back), GRAFT_INCOMPATIBLE,
      "it calls acme::cube, an op that a plugin brings, and none that is open does; open the backend that brings "
      "\"acme\" first");
  graft_rt_device *device = device_at(test_plugin("custom"), NULL, 0);
  graft_graph_destroy(loaded(device, file_path));
}
END_TEST

/* --- what is written is whole --- */

START_TEST(full_disks_leave_the_old_file) {
  graft_graph *graph = new_graph();
  OK(graft_graph_save(graph, file_path));
  bytes before = read_all(file_path);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit old, less;
  getrlimit(RLIMIT_FSIZE, &old);
  for (size_t n = 0; n < before.count; n += 97) {
    less = (struct rlimit){n, old.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &less), 0);
    assert_says(graft_graph_save(graph, file_path), GRAFT_INVALID_ARGUMENT, "can't be written: File too large");
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    bytes after = read_all(file_path);
    ck_assert(same_bytes(before, after));
    free(after.at);
    ck_assert_int_eq(files_count(false), 1);
  }
  assert_says(graft_graph_save(graph, "/dev/full"), GRAFT_INVALID_ARGUMENT,
              "/dev/full can't be written: it is there and no regular file");
  assert_says(graft_graph_save(graph, "/nowhere/at.all"), GRAFT_INVALID_ARGUMENT,
              "/nowhere/at.all can't be written: No such file");
  free(before.at);
  graft_graph_destroy(graph);
}
END_TEST

/* Ended while it writes: the signal of the limit comes in the middle of it. */
START_TEST(killed_saves_leave_the_old_file) {
  graft_graph *graph = new_graph();
  OK(graft_graph_save(graph, file_path));
  bytes before = read_all(file_path);
  pid_t child = fork();
  if (!child) {
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){100, 100});
    graft_graph_save(graph, file_path);
    _exit(0);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  bytes after = read_all(file_path);
  ck_assert(same_bytes(before, after));
  free(before.at);
  free(after.at);
  graft_graph_destroy(graph);
}
END_TEST

/* A link stays one, and leads to the new file. */
START_TEST(links_are_followed) {
  graft_graph *graph = new_graph();
  char target[160];
  snprintf(target, sizeof target, "%s/target", file_folder);
  write_all(target, (bytes){(unsigned char *)"old", 3});
  ck_assert_int_eq(symlink(target, file_path), 0);
  OK(graft_graph_save(graph, file_path));
  struct stat info;
  ck_assert(lstat(file_path, &info) == 0 && S_ISLNK(info.st_mode));
  graft_graph_destroy(loaded(NULL, target));
  graft_graph_destroy(graph);
}
END_TEST

START_TEST(saving_is_refused) {
  graft_graph *graph = new_graph(), *back;
  const int64_t n = 1;
  graft_tensor *x;
  OK(graft_graph_record_begin(graph));
  assert_says(graft_graph_save(graph, file_path), GRAFT_INVALID_ARGUMENT,
              "graft_graph_save: this thread records a graph");
  assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT,
              "graft_graph_load: this thread records a graph");
  OK(graft_graph_record_end(graph));
  OK(graft_graph_input(graph, "a\nb", GRAFT_F32, 1, &n, NULL, &x)); /* a newline is text */
  graft_tensor_release(x);
  OK(graft_graph_save(graph, file_path));
  OK(graft_graph_input(graph, "a\x01\xff", GRAFT_F32, 1, &n, NULL, &x));
  graft_tensor_release(x);
  assert_says(graft_graph_save(graph, file_path), GRAFT_INVALID_ARGUMENT,
              "the input \"a??\": a file takes names of UTF-8");
  graft_graph_destroy(graph);
}
END_TEST

/* --- what a graph says of itself --- */

START_TEST(ports_are_described) {
  graft_graph *graph = new_graph();
  graft_graph_port port;
  OK(graft_graph_input_query(graph, 1, &port, sizeof port));
  ck_assert_str_eq(port.name, "y");
  ck_assert(port.dtype == GRAFT_F32 && port.ndim == 1 && port.sizes[0] == 3 && port.strides[0] == 1);
  ck_assert(port.is_written && !port.on_host && !port.conjugate);
  OK(graft_graph_input_query(graph, 0, &port, sizeof port));
  ck_assert(!port.is_written);
  OK(graft_graph_output_query(graph, 0, &port, sizeof port));
  ck_assert_str_eq(port.name, "out");
  ck_assert(port.sizes[0] == 2);
  memset(&port, 7, sizeof port);
  OK(graft_graph_input_query(graph, 0, &port, sizeof port.name));
  ck_assert_int_eq(port.ndim, 0x07070707);
  assert_says(graft_graph_input_query(graph, 2, &port, sizeof port), GRAFT_INVALID_ARGUMENT,
              "graft_graph_input_query: index 2; the graph has 2");
  assert_says(graft_graph_output_query(graph, 0, &port, 0), GRAFT_INVALID_ARGUMENT, "port_bytes is 0");
  graft_graph_destroy(graph);
}
END_TEST

/* --- GRAFT_GRAPH_DUMP --- */

START_TEST(compiled_graphs_are_written) {
  graft_graph *graph = new_graph();
  graft_graph_exec *exec;
  setenv("GRAFT_GRAPH_DUMP", file_folder, 1);
  for (int i = 0; i < 2; i++) {
    OK(graft_graph_compile(graph, reference(), NULL, &exec));
    graft_graph_exec_destroy(exec);
  }
  unsetenv("GRAFT_GRAPH_DUMP");
  ck_assert_int_eq(files_count(false), 2);
  char path[160];
  snprintf(path, sizeof path, "%s/graph-%ld-2.safetensors", file_folder, (long)getpid());
  OK(graft_graph_save(graph, file_path));
  bytes a = read_all(path), b = read_all(file_path);
  ck_assert(same_bytes(a, b));
  free(a.at);
  free(b.at);
  graft_graph_destroy(graph);
}
END_TEST

/* A folder that is not there is a warning, and compiling goes on. */
static char last_warning[512];
static void note_warning(void *context, graft_log_level level, const char *text) {
  (void)context;
  if (level == GRAFT_LOG_WARNING) snprintf(last_warning, sizeof last_warning, "%s", text);
}

START_TEST(dumps_may_fail) {
  graft_graph *graph = new_graph();
  graft_graph_exec *exec;
  setenv("GRAFT_GRAPH_DUMP", "/nowhere", 1);
  graft_log_set_sink(note_warning, NULL);
  OK(graft_graph_compile(graph, reference(), NULL, &exec));
  graft_log_set_sink(NULL, NULL);
  ck_assert_msg(strstr(last_warning, "GRAFT_GRAPH_DUMP: /nowhere/graph-") &&
                    strstr(last_warning, "can't be written: No such file"),
                "%s", last_warning);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(graph);
}
END_TEST

/* --- memory that can't be had --- */

static graft_status save_and_load(const graft_graph *graph) {
  graft_graph *back = NULL;
  graft_status status = graft_graph_save(graph, file_path);
  if (!status) status = graft_graph_load(NULL, file_path, &back);
  graft_graph_destroy(back);
  return status;
}

static void *counted_malloc(size_t bytes) {
  return malloc(bytes);
}

/* Each request fails once, those of the JSON too: an error, and nothing is left behind. */
START_TEST(memory_runs_out_anywhere) {
  graft_graph *graph = new_graph();
  cJSON_InitHooks(&(cJSON_Hooks){counted_malloc, free});
  OK(save_and_load(graph));
  const int64_t before = atomic_load(&reference()->storages);
  uint64_t failed = 0;
  for (uint64_t at = 1;; at++) {
    heap_failing = heap_calls + at;
    graft_status status = save_and_load(graph);
    bool reached = heap_calls >= heap_failing;
    heap_failing = 0;
    ck_assert_int_eq(atomic_load(&reference()->storages), before);
    if (!reached) break;
    failed += status != GRAFT_OK;
    ck_assert_int_eq(files_count(false), access(file_path, R_OK) == 0);
  }
  ck_assert_uint_gt(failed, 300);
  OK(save_and_load(graph));
  cJSON_InitHooks(NULL);
  graft_graph_destroy(graph);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(comes_back),
                              EACH(host_numbers_stay, DEVICES - 1),
                              ONCE(the_default_dtype_is_kept),
                              ONCE(same_graph_same_bytes),
                              ONCE(others_read_the_weights),
                              ONCE(what_is_not_seen_is_not_saved),
                              ONCE(numbers_keep_their_bits),
                              ONCE(every_op_comes_back),
                              EACH(edits_are_refused, ROWS(edits)),
                              ONCE(cut_files_are_refused),
                              ONCE(constants_stand_there_once),
                              ONCE(ops_of_plugins_need_them),
                              ONCE(full_disks_leave_the_old_file),
                              ONCE(killed_saves_leave_the_old_file),
                              ONCE(links_are_followed),
                              ONCE(saving_is_refused),
                              ONCE(ports_are_described),
                              ONCE(compiled_graphs_are_written),
                              ONCE(dumps_may_fail),
                              ONCE(memory_runs_out_anywhere),
                              {0}};
  return run_suite("graph_file", tests, (suite_options){.timeout_s = 120, .setup = files_begin, .teardown = files_end});
}
