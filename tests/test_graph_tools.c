/* graft graph and graft run: what they show, what they read and write, what they refuse, and whether bisecting finds a
 * node that is wrong and a pass that is. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "cli/graph_tools.h"
#include "cli/npy.h"
#include "graph_files.h"
#include "suite.h"

#define MUTANTS GRAFT_BINARY_DIR "/lib/graft_mutants.so"

/* --- a graph and the program --- */

/* y = tanh(x @ w + c), w halved, and an exp that nobody sees. */
static void save_graph(void) {
  const int64_t x_sizes[] = {3, 4}, w_sizes[] = {4, 2};
  graft_graph *graph;
  graft_tensor *x, *w, *c = host(GRAFT_F32, 2, (float[]){0.25f, -0.5f}), *v = NULL, *sum = NULL, *unseen = NULL,
                       *y = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 2, x_sizes, NULL, &x));
  OK(graft_graph_input(graph, "w", GRAFT_F32, 2, w_sizes, (int64_t[]){1, 4}, &w));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_mm(x, w, &v));
  OK(graft_op_add_Tensor(v, c, graft_scalar_int(1), &sum));
  OK(graft_op_exp(sum, &unseen));
  OK(graft_op_tanh(sum, &y));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(w), NUMBER(0.5)}, 2, &w, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "y", y));
  OK(graft_graph_save(graph, file_path));
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, w, c, v, sum, unseen, y}, 7);
}

static char said[1 << 16];

/* Runs the program in the folder, where the graph is "g"; its exit status. What it prints is in `said`. */
static int program_says(const char *arguments) {
  static char command[1 << 16];
  snprintf(command, sizeof command, "cd %s && ln -sf graph.safetensors g && %s %s 2>&1", file_folder, PROGRAM,
           arguments);
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  said[fread(said, 1, sizeof said - 1, pipe)] = 0;
  int status = pclose(pipe);
  ck_assert_msg(WIFEXITED(status), "graft %s", arguments);
  return WEXITSTATUS(status);
}

static void expect_program(const char *arguments, int status, const char *text) {
  int is = program_says(arguments);
  ck_assert_msg(is == status, "graft %s: exit status %d\n%s", arguments, is, said);
  ck_assert_msg(strstr(said, text), "graft %s does not say \"%s\":\n%s", arguments, text, said);
}

static void also_says(const char *text) {
  ck_assert_msg(strstr(said, text), "it does not say \"%s\":\n%s", text, said);
}

/* --- graft graph --- */

START_TEST(graphs_are_shown) {
  save_graph();
  expect_program(
      "graph g", 0,
      "inputs:\n  x            x f32[3,4]\n  w            w f32[4,2]:[1,4]\nconstants:\n  constant.0   8 bytes\n");
  also_says("  0    v2 f32[3,2] = aten::mm(self=x, mat2=w f32[4,2]:[1,4])\n");
  also_says("  1    v3 f32[3,2] = aten::add.Tensor(self=v2, other=constant.0, alpha=1)\n");
  also_says("  4    !w f32[4,2]:[1,4] = aten::mul.Tensor(self=w f32[4,2]:[1,4], other=0.5)\n");
  also_says("outputs:\n  y            v5 f32[3,2]\n");
  also_says("on reference:0: 4 nodes after passes, 48 bytes of values in 64 bytes of memory, 8 bytes of constants");
  expect_program("graph g --passes", 0, "dead: 5 nodes, then 4\n  - v4 f32[3,2] = aten::exp(self=v3)\n");
  also_says("\ncse: 4 nodes, then 4\n");
  also_says("\nwithout dead            5 ");
  expect_program("graph g --dot", 0, "digraph");
  also_says("  node0 [shape=box, label=\"0 aten::mm\"]\n  input0 -> node0 [label=\"x f32[3,4]\"]\n");
  also_says("  node3 -> output0 [label=\"v5 f32[3,2]\"]\n");
  expect_program("graph g --json", 0, "\"op\":\t\"aten::mm\"");
}
END_TEST

/* --- graft run --- */

START_TEST(graphs_run) {
  save_graph();
  expect_program("run g -i x=random:1 -i w=random:2 -o y=y.npy -o w=w.npy", 0,
                 "g on reference:0: 5 nodes, 4 after passes");
  also_says("\nwritten w            f32[4,2]:1,4  min -0.");
  also_says("\noutput  y            f32[3,2]  min -");
  /* What was written is read: w is halved once more. */
  char path[160];
  cli_npy npy[2];
  float y[6];
  snprintf(path, sizeof path, "%s/y.npy", file_folder);
  OK(cli_npy_read(path, &npy[0]));
  ck_assert(npy[0].dtype == GRAFT_F32 && npy[0].ndim == 2 && npy[0].sizes[0] == 3 && npy[0].sizes[1] == 2);
  memcpy(y, npy[0].data, sizeof y);
  for (int i = 0; i < 6; i++) ck_assert(y[i] > -1 && y[i] < 1 && y[i] != 0);
  expect_program("run g -i x=random:1 -i w=w.npy -o w=w2.npy", 0, "output  y ");
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/%s.npy", file_folder, i ? "w2" : "w");
    cli_npy_free(&npy[0]);
    OK(cli_npy_read(path, &npy[0]));
    if (!i) npy[1] = npy[0], npy[0].data = NULL;
  }
  for (int i = 0; i < 8; i++) ck_assert(((float *)npy[0].data)[i] == ((float *)npy[1].data)[i] / 2);
  cli_npy_free(&npy[0]);
  cli_npy_free(&npy[1]);
  expect_program("run g -i x=random:1 -i w=random:2 --repeat 7", 0, "7 runs: the first ");
}
END_TEST

/* What is not given is drawn, as if it had been asked for by name. */
START_TEST(missing_inputs_are_drawn) {
  save_graph();
  expect_program("run g -i x=random:7 -i w=random:7", 0, "output  y ");
  char *all = strdup(said);
  expect_program("run g --random 7", 0, all);
  expect_program("run g --random 7 -i x=random:8", 0, "output  y ");
  ck_assert_msg(strcmp(all, said) != 0, "x is not drawn from its own seed:\n%s", said);
  free(all);
}
END_TEST

/* A step with a parameter for each input: all are given, and looked up. */
START_TEST(inputs_are_as_many_as_wanted) {
  enum { INPUTS = 700 };
  const int64_t n = 2;
  graft_graph *graph;
  graft_tensor *in, *sum = NULL, *next = NULL;
  OK(graft_graph_create(reference(), &graph));
  char *arguments = calloc(INPUTS, 32);
  size_t used = (size_t)sprintf(arguments, "run g");
  for (int i = 0; i < INPUTS; i++) {
    char name[16];
    snprintf(name, sizeof name, "in%d", i);
    OK(graft_graph_input(graph, name, GRAFT_F32, 1, &n, NULL, &in));
    if (i) {
      OK(graft_graph_call(graph, GRAFT_OP_ADD_TENSOR, (graft_value[]){T(sum), T(in)}, 2, &next, 1));
      graft_tensor_release(in);
      graft_tensor_release(sum);
      in = next;
      next = NULL;
    }
    sum = in;
    used += (size_t)sprintf(arguments + used, " -i %s=random:%d", name, i % 9);
  }
  OK(graft_graph_output(graph, "sum", sum));
  OK(graft_graph_save(graph, file_path));
  graft_tensor_release(sum);
  graft_graph_destroy(graph);
  expect_program(arguments, 0, "output  sum ");
  strcpy(arguments + used, " -i in699=random:1");
  expect_program(arguments, 2, "--input: in699 is given twice");
  free(arguments);
}
END_TEST

/* What a step begins with stands in the file; what is given goes before it. */
START_TEST(values_are_in_the_file) {
  const int64_t n = 2;
  graft_graph *graph;
  graft_tensor *w, *x, *value = host(GRAFT_F32, 2, (float[]){64, 32});
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "w", GRAFT_F32, 1, &n, NULL, &w));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_call(graph, GRAFT_OP_MUL_TENSOR, (graft_value[]){T(w), NUMBER(0.5)}, 2, &w, 1));
  OK(graft_graph_output(graph, "x", x));
  OK(graft_graph_input_set_value(graph, 0, value));
  OK(graft_graph_save(graph, file_path));
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){w, x, value}, 3);
  expect_program("graph g", 0, "  w            w f32[2], with a value\n  x            x f32[2]\n");
  expect_program("run g -i x=random:1 --repeat 3 -o w=w.npy", 0, "written w            f32[2]  min 4  max 8  mean 6");
  expect_program("run g --random 1 -i w=w.npy", 0, "written w            f32[2]  min 2  max 4  mean 3");
  expect_program("run g", 1, "input x is missing");
}
END_TEST

/* x [n,2] by w [2,2] into a sum with y [2 * n], whose last number counts up: w has a value, and is written. */
static void save_open_graph(void) {
  graft_graph *graph;
  graft_tensor *x, *y, *w, *value;
  int64_t n, twice;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_size(graph, "n", 3, 1, 100, &n));
  OK(graft_graph_size_of(graph, GRAFT_SIZE_MUL, 2, n, &twice));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 2, (int64_t[]){n, 2}, NULL, &x));
  OK(graft_graph_input(graph, "y", GRAFT_F32, 1, &twice, NULL, &y));
  OK(graft_graph_input(graph, "w", GRAFT_F32, 2, (int64_t[]){2, 2}, NULL, &w));
  OK(graft_graph_record_begin(graph));
  graft_tensor *flat = CALL(VIEW, T(CALL(MM, T(x), T(w))), INTS(twice));
  graft_tensor *sum = CALL(ADD_TENSOR, T(flat), T(y));
  WRITE(w, MUL_TENSOR, T(w), NUMBER(0.5));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "sum", sum));
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 2, (int64_t[]){2, 2}, (float[]){8, 8, 8, 8}, &value));
  OK(graft_graph_input_set_value(graph, 2, value));
  OK(graft_graph_save(graph, file_path));
  graft_graph_destroy(graph);
  sweep();
  release_all((graft_tensor *[]){x, y, w, value}, 4);
}

/* Ones of a shape, as a file in the folder. */
static void save_ones(const char *name, int32_t ndim, const int64_t *sizes) {
  char path[160];
  float ones[64];
  graft_tensor *t;
  for (int i = 0; i < 64; i++) ones[i] = 1;
  OK(graft_tensor_from_host(reference(), GRAFT_F32, ndim, sizes, ones, &t));
  snprintf(path, sizeof path, "%s/%s", file_folder, name);
  OK(cli_npy_write(path, t));
  graft_tensor_release(t);
}

START_TEST(open_sizes_are_shown) {
  save_open_graph();
  expect_program("graph g", 0,
                 "sizes:\n  n            from 1 to 100, recorded at 3\n  2*n\n"
                 "inputs at all sizes:\n  x            f32[n,2]\n  y            f32[2*n]\n  w            f32[2,2]\n"
                 "at n = 3:\ninputs:\n  x            x f32[3,2]\n");
  expect_program("graph g --size n=5", 0, "at n = 5:\ninputs:\n  x            x f32[5,2]\n  y            y f32[10]\n");
  also_says("w f32[2,2], with a value\n");
  expect_program("graph g --size n=5 --passes", 0, "at n = 5:\ndead: 3 nodes, then 3\n");
  expect_program("graph g --size n=5 --dot", 0, "x f32[5,2]");
  ck_assert(strncmp(said, "digraph", 7) == 0);
  expect_program("graph g --size n=5 --bisect", 0, "agree");
  expect_program("graph g --json", 0, "\"size\":");
  expect_program("graph g --size n=0", 1, "--size: the size n is 0, and goes from 1 to 100");
  expect_program("graph g --size n=x", 2, "--size n=x: expected NAME=N, N a number");
  expect_program("graph g --size m=2", 1, "the graph has no open size m; `graft graph FILE` lists what it has");
  expect_program("graph g --size n=2 --size n=3", 2, "--size: n is given twice");
  save_graph();
  expect_program("graph g --size n=2", 1, "--size n: the graph has no open sizes");
}
END_TEST

START_TEST(open_sizes_run) {
  save_open_graph();
  save_ones("x2.npy", 2, (int64_t[]){2, 2});
  save_ones("x4.npy", 2, (int64_t[]){4, 2});
  save_ones("y4.npy", 1, (int64_t[]){4});
  save_ones("y8.npy", 1, (int64_t[]){8});
  expect_program("run g -i x=x2.npy -i y=y4.npy --then -i x=x4.npy -i y=y8.npy -o sum=s.npy --then", 0,
                 "g on reference:0 at n = 2: 3 nodes, 3 after passes");
  also_says("output  sum          f32[4]  min 17  max 17  mean 17\n");
  also_says("g on reference:0 at n = 4: 3 nodes");
  also_says("written w            f32[2,2]  min 2  max 2  mean 2\noutput  sum          f32[8]  min 9 ");
  /* The third goes on with what the second left. */
  also_says("written w            f32[2,2]  min 1  max 1  mean 1\noutput  sum          f32[8]  min 5 ");
  char path[160];
  cli_npy npy;
  snprintf(path, sizeof path, "%s/s.npy", file_folder);
  OK(cli_npy_read(path, &npy));
  ck_assert_int_eq(npy.sizes[0], 8);
  cli_npy_free(&npy);
  expect_program("run g --random 1", 0, "at n = 3: ");
  expect_program("run g --random 1 --size n=7 --then --size n=9", 0, "sum          f32[14]");
  also_says("sum          f32[18]");
  expect_program("run g -i x=x4.npy --random 1", 0, "at n = 4: ");
  expect_program("run g -i x=x4.npy -i y=y4.npy", 1, "input y: y4.npy has f32[4]; expected f32[8]");
  expect_program("run g -i x=x4.npy --size n=5 --random 1", 1, "x: the size n is 4, and 5 by --size");
  expect_program("run g -i x=x4.npy", 1, "input y is missing: f32[8]");
  expect_program("run g -i x=y4.npy --random 1", 1, "input x: y4.npy has f32[4]; expected f32[3,2]");
  expect_program("tiny g --size n=4 -o t.c", 0, "t.c: ");
}
END_TEST

/* A file in the order of columns is the same array. */
START_TEST(columns_are_an_order) {
  save_graph();
  char header[128];
  bytes b = {malloc(256), 0};
  int n = snprintf(header, sizeof header, "%-117s\n", "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }");
  memcpy(b.at, (unsigned char[]){0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, 0}, 10);
  memcpy(b.at + 10, header, (size_t)n);
  for (int column = 0; column < 4; column++) {
    for (int row = 0; row < 3; row++)
      memcpy(b.at + 10 + n + 4 * (column * 3 + row), &(float){(float)(10 * row + column)}, 4);
  }
  b.count = (size_t)(10 + n + 48);
  char path[160];
  snprintf(path, sizeof path, "%s/x.npy", file_folder);
  write_all(path, b);
  free(b.at);
  /* A graph that gives its input back. */
  graft_graph *graph;
  graft_tensor *x;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 2, (int64_t[]){3, 4}, NULL, &x));
  OK(graft_graph_output(graph, "same", x));
  OK(graft_graph_save(graph, file_path));
  graft_graph_destroy(graph);
  graft_tensor_release(x);
  expect_program("run g -i x=x.npy -o same=same.npy", 0, "min 0  max 23  mean 11.5");
  snprintf(path, sizeof path, "%s/same.npy", file_folder);
  cli_npy same;
  OK(cli_npy_read(path, &same));
  for (int i = 0; i < 12; i++) ck_assert(((float *)same.data)[i] == (float)(10 * (i / 4) + i % 4));
  cli_npy_free(&same);
}
END_TEST

/* Every dtype goes out and comes back. */
START_TEST(arrays_keep_their_bits) {
  char path[160];
  snprintf(path, sizeof path, "%s/a.npy", file_folder);
  for (int number = 0; number <= GRAFT_NUMBER_F8_E5M2; number++) {
    const graft_dtype dtype = dt_of_number(number);
    const int64_t sizes[] = {2, 1, 3};
    unsigned char data[6 * 16];
    for (size_t i = 0; i < sizeof data; i++) data[i] = number ? (unsigned char)(i * 7 + 1) : i & 1;
    graft_tensor *t;
    cli_npy npy;
    OK(graft_tensor_from_host(reference(), dtype, 3, sizes, data, &t));
    OK(cli_npy_write(path, t));
    OK(cli_npy_read(path, &npy));
    ck_assert(npy.dtype == dtype || (!npy.dtype && (dtype == GRAFT_BF16 || dt_is_float8(dtype))));
    ck_assert(npy.ndim == 3 && npy.sizes[0] == 2 && npy.sizes[1] == 1 && npy.sizes[2] == 3 && !npy.by_columns);
    ck_assert(memcmp(npy.data, data, 6 * dt_bytes(dtype)) == 0);
    cli_npy_free(&npy);
    graft_tensor_release(t);
  }
}
END_TEST

/* What was there stays where the disk is full, and what is no file is not taken for one. */
START_TEST(arrays_are_whole_or_not_written) {
  char path[160];
  snprintf(path, sizeof path, "%s/a.npy", file_folder);
  const int64_t sizes[] = {100};
  const float data[100] = {1};
  graft_tensor *t;
  struct rlimit old;
  OK(graft_tensor_from_host(reference(), GRAFT_F32, 1, sizes, data, &t));
  OK(cli_npy_write(path, t));
  bytes before = read_all(path);
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){200, old.rlim_max}), 0);
  assert_says(cli_npy_write(path, t), GRAFT_INVALID_ARGUMENT, "a.npy can't be written: File too large");
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
  bytes after = read_all(path);
  ck_assert(same_bytes(before, after));
  assert_says(cli_npy_write("/dev/full", t), GRAFT_INVALID_ARGUMENT, "it is there and no regular file");
  ck_assert_int_eq(access("/dev/full", F_OK), 0);
  free(before.at);
  free(after.at);
  graft_tensor_release(t);
}
END_TEST

/* --- refusals --- */

static const struct {
  const char *header; /* NULL: no .npy at all */
  size_t data;
  const char *says;
} arrays[] = {
    {NULL, 8, "x.npy: it is no .npy file"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (3, 4), }", 48,
     "x.npy: its elements are big-endian ('>f4'); save them with .astype('<f4')"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }", 96,
     "input x: x.npy has f64[3,4]; expected f32[3,4]"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3), }", 48,
     "input x: x.npy has f32[4,3]; expected f32[3,4]"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 44,
     "x.npy: it has 44 bytes of elements, and its shape takes 48"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4), }", 48, "x.npy: its header has no shape"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3000000000, 4000000000), }", 48, "x.npy: its shape overflows"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': (3, 4), }", 48,
     "x.npy: its elements are of several parts, or of no kind"},
    {"{'descr': '<U4', 'fortran_order': False, 'shape': (3, 4), }", 48,
     "x.npy: its elements are '<U4', which no tensor has"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3, 4), }", 48, "its elements are of several parts"},
    {"{'shape': (3, 4), 'descr': '<f4'}", 48, "x.npy: its header has no fortran_order"},
};

START_TEST(arrays_are_refused) {
  save_graph();
  unsigned char file[512] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
  size_t length = arrays[_i].header ? strlen(arrays[_i].header) : 0;
  file[8] = (unsigned char)length;
  if (arrays[_i].header)
    memcpy(file + 10, arrays[_i].header, length);
  else
    file[0] = 'x';
  char path[160];
  snprintf(path, sizeof path, "%s/x.npy", file_folder);
  write_all(path, (bytes){file, 10 + length + arrays[_i].data});
  expect_program("run g -i x=x.npy -i w=random:1", 1, arrays[_i].says);
}
END_TEST

static const struct {
  const char *arguments;
  int status;
  const char *says;
} refusals[] = {
    {"run", 2, "which file?"},
    {"run g h", 2, "Usage"},
    {"run nowhere", 1, "graft run: nowhere: it can't be read: No such file"},
    {"run g -i x=random:1", 1,
     "graft run: input w is missing: f32[4,2] with strides [1,4]; give --input w=FILE.npy or --input w=random:1"},
    {"run g -i x=random:1 -i w=random:1 -i z=random:1", 1,
     "the graph has no input z; `graft graph FILE` lists what it has"},
    {"run g -i x=random:x -i w=random:1", 1, "input x: 'random:x' has no seed"},
    {"run g -i x=random:1 -i x=random:2", 2, "--input: x is given twice"},
    {"run g -i x", 2, "--input: 'x' is no NAME=WHAT"},
    {"run g -i x=random:1 -i w=random:1 -o z=z.npy", 1,
     "the graph has no output z, nor an input of that name that it writes"},
    {"run g -i x=random:1 -i w=random:1 -o x=x.npy", 1, "the graph has no output x"},
    {"run g -i x=random:1 -i w=random:1 -o y=no/where.npy", 1, "no/where.npy can't be written: No such file"},
    {"run g -i x=none.npy -i w=random:1 -o y=no/where.npy", 1, "no/where.npy can't be written: No such file"},
    {"run g -i x=none.npy -i w=random:1", 1, "none.npy: it can't be read: No such file"},
    {"run g -b nowhere", 2, "graft run: "},
    {"run g --repeat 0", 2, "--repeat: expected 1 to"},
    {"run g -i x=random:1", 1, "input w is missing: f32[4,2] with strides [1,4]; give --input w=FILE.npy or"},
    {"run g --random x", 2, "--random"},
    {"graph", 2, "which file?"},
    {"graph nowhere", 1, "graft graph: nowhere: it can't be read"},
    {"graph g --dot --json", 2, "one of --passes, --dot, --json and --bisect"},
    {"graph g --bisect --tolerance -1", 2, "--tolerance: '-1' is no number from 0"},
    {"graph g --bisect --against nowhere", 2, "nowhere"},
    {"graph g --against reference", 2, "--against is for --bisect"},
    {"graph g --passes --tolerance 0.1", 2, "--tolerance is for --bisect"},
    {"graph g --dot -i x=random:1", 2, "--input is for --bisect"},
    {"graph g -d 4294967296", 2, "-d: '4294967296' is no device number"},
    {"run g -d 4294967296", 2, "-d: '4294967296' is no device number"},
    {"graph g --bisect -i z=random:1", 1, "the graph has no input z"},
};

START_TEST(mistakes_are_named) {
  save_graph();
  expect_program(refusals[_i].arguments, refusals[_i].status, refusals[_i].says);
}
END_TEST

/* GRAFT_GRAPH_DUMP is for programs that make graphs: here the graph is in a file already. */
START_TEST(commands_on_a_file_dump_nothing) {
  save_graph();
  setenv("GRAFT_GRAPH_DUMP", file_folder, 1);
  expect_program("graph g --passes", 0, "");
  expect_program("graph g --bisect", 0, "");
  expect_program("run g -i x=random:1 -i w=random:1", 0, "");
  unsetenv("GRAFT_GRAPH_DUMP");
  ck_assert_int_eq(files_count(false), 2); /* the graph, and a link to it */
}
END_TEST

/* --- bisecting --- */

START_TEST(nothing_is_found_where_nothing_is) {
  save_graph();
  expect_program("graph g --bisect", 0, "5 nodes agree, each by itself\npasses agree to the bit on reference:0\n");
  if (has_opencl())
    expect_program("graph g --bisect -b " OPENCL, 0, "5 nodes agree, each by itself; the largest difference");
}
END_TEST

/* A plugin with a planted bug: in the call that is wrong, and not in what is made of it. */
START_TEST(wrong_nodes_are_found) {
  if (access(MUTANTS, R_OK) != 0) return;
  save_graph();
  expect_program(
      "graph g --bisect -b " MUTANTS " -o bug=tail", 1,
      "node 1 differs: v3 f32[3,2] = aten::add.Tensor(self=v2, other=constant.0, alpha=1)\n  v3 f32[3,2]: element ");
  also_says(" on mutants:0 and ");
  /* From what the node before it gave: of zeros it would be c itself. */
  ck_assert_msg(!strstr(said, " and -0.5 on ") && !strstr(said, " and 0.25 on "), "%s", said);
  also_says(" on reference:0; the largest difference is ");
  expect_program("graph g --bisect -b " MUTANTS, 0, "5 nodes agree");
}
END_TEST

/* An op that the other backend has no kernel for. */
START_TEST(nodes_that_fail_are_named) {
  const int64_t n = 3;
  graft_rt_device *device = device_at(test_plugin("custom"), NULL, 0);
  graft_graph *graph;
  graft_tensor *x, *y = NULL, *z = NULL;
  char command[512];
  ck_assert_msg(device != NULL, "%s", graft_last_error());
  OK(graft_graph_create(device, &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, &n, NULL, &x));
  OK(graft_graph_call(graph, graft_op_find("acme::cube"), (graft_value[]){T(x)}, 1, &y, 1));
  OK(graft_graph_call(graph, graft_op_find("acme::opaque"), (graft_value[]){T(y)}, 1, &z, 1));
  OK(graft_graph_output(graph, "z", z));
  OK(graft_graph_save(graph, file_path));
  graft_graph_destroy(graph);
  release_all((graft_tensor *[]){x, y, z}, 3);
  expect_program("graph g", 1, "it calls acme::cube, an op that a plugin brings, and none that is open does");
  also_says("(graft graph and graft run: -b NAME)");
  expect_program("graph g --json", 0, "\"op\":\t\"acme::cube\"");
  snprintf(command, sizeof command, "graph g --bisect -b %s", test_plugin("custom"));
  expect_program(command, 1, "graft graph: node 1, run alone: graph node 0: acme::opaque: nothing serves x f32[3]");
  snprintf(command, sizeof command, "run g -i x=random:1 -b %s", test_plugin("custom"));
  expect_program(command, 0, "output  z ");
}
END_TEST

/* The numbers of a node become others, where a pass ran. */
static void change_numbers(const graft_graph_exec *exec, uint32_t pass) {
  for (uint32_t n = 0; n < exec->graph->nnodes && exec->passes & pass; n++) {
    const gr_step *step = &exec->steps[n];
    for (uint32_t i = 0; i < step->node->nargs; i++) {
      graft_value *v = &step->args[i];
      if (v->kind == GRAFT_VALUE_SCALAR && v->as.scalar.dtype == GRAFT_F64) v->as.scalar.value.f = 3;
    }
  }
}
static void with_cse(graft_graph_exec *exec) {
  change_numbers(exec, GR_PASS_CSE);
}
static void with_memory(graft_graph_exec *exec) {
  change_numbers(exec, GR_PASS_MEMORY);
}

static const struct {
  void (*fault)(graft_graph_exec *exec);
  const char *says;
} faults[] = {{with_memory, "pass memory differs: on reference:0, input w is other with it than without"},
              {with_cse, "pass cse differs: on reference:0, input w is other with it than without"}};

START_TEST(wrong_passes_are_found) {
  static cli_pairs none;
  save_graph();
  graft_graph *graph = loaded(NULL, file_path);
  cli_bisect b = {.graph = graph,
                  .device = reference(),
                  .against = reference(),
                  .inputs = &none,
                  .tolerance = -1,
                  .fault = faults[_i].fault};
  bool found = false;
  char path[160];
  snprintf(path, sizeof path, "%s/said", file_folder);
  fflush(stdout);
  int before = dup(1);
  ck_assert_ptr_nonnull(freopen(path, "w", stdout));
  OK(cli_graph_bisect(&b, &found));
  fflush(stdout);
  dup2(before, 1);
  close(before);
  bytes is = read_all(path);
  is.at[is.count] = 0;
  ck_assert(found);
  ck_assert_msg(strstr((char *)is.at, faults[_i].says), "%s", (char *)is.at);
  free(is.at);
  graft_graph_destroy(graph);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(graphs_are_shown),
                              ONCE(graphs_run),
                              ONCE(missing_inputs_are_drawn),
                              ONCE(inputs_are_as_many_as_wanted),
                              ONCE(values_are_in_the_file),
                              ONCE(open_sizes_are_shown),
                              ONCE(open_sizes_run),
                              ONCE(columns_are_an_order),
                              ONCE(arrays_keep_their_bits),
                              ONCE(arrays_are_whole_or_not_written),
                              EACH(arrays_are_refused, ROWS(arrays)),
                              ONCE(commands_on_a_file_dump_nothing),
                              EACH(mistakes_are_named, ROWS(refusals)),
                              ONCE(nothing_is_found_where_nothing_is),
                              ONCE(wrong_nodes_are_found),
                              ONCE(nodes_that_fail_are_named),
                              EACH(wrong_passes_are_found, ROWS(faults)),
                              {0}};
  return run_suite("graph_tools", tests,
                   (suite_options){.timeout_s = 120, .setup = files_begin, .teardown = files_end});
}
