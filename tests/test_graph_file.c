/* Graphs in files: what comes out is what went in, for every op. What is refused is test_graph_file_errors.c's. */
#include "conformance/cases/cases.h"
#include "conformance/run/call.h"
#include "conformance/run/menu.h"
#include "graft/bridge.h"
#include "graph/file.h"
#include "graph_files.h"
#include "suite.h"

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
    cJSON *json = gr_json_value(&gr_no_sizes, &v);
    char *text = cJSON_PrintUnformatted(json);
    cJSON *again = cJSON_Parse(text);
    ck_assert_msg(gr_json_get_value(&gr_no_sizes, again, &memory, &back), "%s", text);
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

/* --- what inputs begin with --- */

static void expect_value(const graft_graph *graph, uint32_t input, graft_rt_device *device, const float values[3]) {
  graft_tensor *value;
  OK(graft_graph_input_value(graph, input, device, &value));
  ck_assert_ptr_eq(graft_tensor_device(value), device);
  expect_values(value, 3, values);
  graft_tensor_release(value);
}

START_TEST(inputs_begin_with_values) {
  graft_graph *graph = new_graph();
  graft_tensor *y = host(GRAFT_F32, 3, (float[]){7, 8, 9}), *out = NULL, *x = host(GRAFT_F32, 3, (float[]){1, 1, 1});
  graft_graph_port port;
  OK(graft_graph_input_set_value(graph, 1, x)); /* and is replaced */
  OK(graft_graph_input_set_value(graph, 1, y));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(y), T(y)}, 2, &y, 1)); /* the graph has what it was */
  graft_graph *back = through_file(graph, NULL, "a graph with a value");
  OK(graft_graph_input_query(back, 1, &port, sizeof port));
  ck_assert(port.has_value);
  OK(graft_graph_input_query(back, 0, &port, sizeof port));
  ck_assert(!port.has_value);
  for (int turn = 0; turn < DEVICES; turn++) {
    if (turn && !device_of(turn)) continue;
    expect_value(back, 1, turn ? device_of(turn) : reference(), (float[]){7, 8, 9});
  }
  /* A run goes on from a value of its own. */
  graft_graph_exec *exec;
  graft_tensor *in[2] = {x};
  OK(graft_graph_input_value(back, 1, reference(), &in[1]));
  OK(graft_graph_compile(back, reference(), NULL, &exec));
  OK(graft_graph_run(exec, in, 2, &out, 1));
  expect_values(in[1], 3, (float[]){9, 11, 13});
  expect_value(back, 1, reference(), (float[]){7, 8, 9});
  bytes b = read_all(file_path);
  opened o = open_json(b);
  ck_assert_str_eq(cJSON_GetStringValue(json_at(o, "$/input.y/dtype")), "F32");
  ck_assert_int_eq(json_at(o, "$/input.y/shape/0")->valueint, 3);
  cJSON_Delete(o.header);
  cJSON_Delete(o.graph);
  free(b.at);
  graft_graph_exec_destroy(exec);
  graft_graph_destroy(back);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){y, out, in[0], in[1]}, 4);
}
END_TEST

/* A value lies as its input does, in the file as plain bytes with zeros in the gaps. */
START_TEST(values_lie_as_their_inputs) {
  const int64_t sizes[] = {2, 2}, strides[] = {3, 1};
  float all[5];
  graft_graph *graph;
  graft_tensor *x, *value;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 2, sizes, strides, &x));
  OK(graft_graph_output(graph, "same", x));
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 2, sizes, (float[]){1, 2, 3, 4}, &value));
  OK(graft_graph_input_set_value(graph, 0, value));
  graft_tensor_release(value);
  graft_graph *back = through_file(graph, NULL, "a value with gaps");
  OK(graft_graph_input_value(back, 0, reference(), &value));
  ck_assert(value->strides[0] == 3 && value->strides[1] == 1);
  expect_values(value, 4, (float[]){1, 2, 3, 4});
  bytes b = read_all(file_path);
  ck_assert_uint_eq(b.count, 8 + header_bytes(b) + sizeof all);
  memcpy(all, b.at + b.count - sizeof all, sizeof all);
  for (int i = 0; i < 5; i++) ck_assert(all[i] == ((float[]){1, 2, 0, 3, 4})[i]);
  free(b.at);
  graft_graph_destroy(back);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, value}, 2);
}
END_TEST

START_TEST(values_that_do_not_fit) {
  graft_graph *graph = new_graph(), *back;
  graft_tensor *two = host(GRAFT_F32, 2, (float[]){1, 2}), *value = NULL,
               *three = host(GRAFT_F32, 3, (float[]){1, 2, 3});
  assert_says(graft_graph_input_set_value(graph, 1, two), GRAFT_INVALID_ARGUMENT,
              "graft_graph_input_set_value: input y is f32[3], its value f32[2]");
  assert_says(graft_graph_input_set_value(graph, 2, two), GRAFT_INVALID_ARGUMENT, "input 2; the graph has 2");
  assert_says(graft_graph_input_value(graph, 1, reference(), &value), GRAFT_INVALID_ARGUMENT,
              "graft_graph_input_value: input y has no value of its own");
  ck_assert_ptr_null(value);
  OK(graft_graph_record_begin(graph));
  assert_says(graft_graph_input_set_value(graph, 1, three), GRAFT_INVALID_ARGUMENT, "end that recording first");
  OK(graft_graph_record_end(graph));
  OK(graft_graph_input_set_value(graph, 1, three));
  OK(graft_graph_save(graph, file_path));
  /* A file that says another size of it. */
  bytes b = read_all(file_path);
  opened o = open_json(b);
  cJSON *item = json_at(o, "$/input.y");
  cJSON_ReplaceItemInObject(item, "dtype", cJSON_CreateString("U8"));
  cJSON_ReplaceItemInObject(item, "shape", cJSON_Parse("[12]"));
  bytes same = close_json(o, b);
  write_all(file_path, same);
  graft_graph_destroy(loaded(NULL, file_path));
  o = open_json(b);
  item = json_at(o, "$/input.y");
  cJSON_SetValuestring(cJSON_GetObjectItem(item, "dtype"), "F16");
  cJSON_ReplaceItemInObject(item, "shape", cJSON_Parse("[3]"));
  bytes wrong = close_json(o, b);
  write_all(file_path, wrong);
  assert_says(graft_graph_load(NULL, file_path, &back), GRAFT_INVALID_ARGUMENT,
              "tensor \"input.y\" has other offsets than its 6 bytes need");
  free(b.at);
  free(same.at);
  free(wrong.at);
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){two, three}, 2);
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

int main(void) {
  const suite_test tests[] = {ONCE(comes_back),
                              EACH(host_numbers_stay, DEVICES - 1),
                              ONCE(the_default_dtype_is_kept),
                              ONCE(same_graph_same_bytes),
                              ONCE(others_read_the_weights),
                              ONCE(what_is_not_seen_is_not_saved),
                              ONCE(numbers_keep_their_bits),
                              ONCE(every_op_comes_back),
                              ONCE(ports_are_described),
                              ONCE(inputs_begin_with_values),
                              ONCE(values_lie_as_their_inputs),
                              ONCE(values_that_do_not_fit),
                              ONCE(compiled_graphs_are_written),
                              ONCE(dumps_may_fail),
                              {0}};
  return run_suite("graph_file", tests, (suite_options){.timeout_s = 120, .setup = files_begin, .teardown = files_end});
}
