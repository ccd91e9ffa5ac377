/* Graphs in files that go wrong: what can't be read is refused with a text that says why; a file is whole or not there;
 * memory runs out. Files that are damaged at random are test_graph_hostile.c's. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "graph_files.h"
#include "heap.h"
#include "sized_programs.h"
#include "suite.h"

/* --- what can't be read --- */

static const struct {
  const char *at, *json; /* what stands there instead; NULL: it is taken out */
  graft_status status;
  const char *says;
} edits[] = {
    {"$/__metadata__/graft.format", "\"3\"", GRAFT_INCOMPATIBLE, "it has format 3, and this libgraft ("},
    {"$/__metadata__/graft.format", "\"2\"", GRAFT_INVALID_ARGUMENT, "its graph has no list \"sizes\""},
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

/* What a killed save of a process with this number left, as in a container where it is always the same. */
START_TEST(parts_of_others_are_passed_by) {
  graft_graph *graph = new_graph();
  enum { LEFT = 50 };
  for (int i = 0; i < LEFT; i++) {
    char part[200];
    snprintf(part, sizeof part, "%s.%ld-%d.part", file_path, (long)getpid(), i);
    write_all(part, (bytes){(unsigned char *)"old", 3});
  }
  OK(graft_graph_save(graph, file_path));
  ck_assert_int_eq(files_count(false), LEFT + 1);
  graft_graph_destroy(loaded(NULL, file_path));
  graft_graph_destroy(graph);
}
END_TEST

START_TEST(who_may_read_it_stays) {
  graft_graph *graph = new_graph();
  struct stat info;
  OK(graft_graph_save(graph, file_path));
  ck_assert_int_eq(chmod(file_path, 0600), 0);
  OK(graft_graph_save(graph, file_path));
  ck_assert(stat(file_path, &info) == 0 && (info.st_mode & 0777) == 0600);
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

/* One that leads nowhere is named with where it leads, and stays. */
START_TEST(links_to_nothing_are_named) {
  graft_graph *graph = new_graph();
  struct stat info;
  ck_assert_int_eq(symlink("/nowhere/at.all", file_path), 0);
  assert_says(graft_graph_save(graph, file_path), GRAFT_INVALID_ARGUMENT,
              "can't be written: it is a symbolic link to /nowhere/at.all, which is not there");
  ck_assert(lstat(file_path, &info) == 0 && S_ISLNK(info.st_mode));
  ck_assert_int_eq(files_count(false), 1);
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
  assert_says(graft_graph_input(graph, "", GRAFT_F32, 1, &n, NULL, &x), GRAFT_INVALID_ARGUMENT,
              "graft_graph_input: the name is empty");
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

/* A step with a backward, at open sizes, or the graph of fixed ones. */
static graft_graph *graph_to_save(bool open) {
  return open ? record_sized(&programs[9], 4, 3) : new_graph();
}

/* Each request fails once, those of the JSON too: an error, and nothing is left behind. */
START_TEST(memory_runs_out_anywhere) {
  graft_graph *graph = graph_to_save(_i);
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
  const suite_test tests[] = {EACH(edits_are_refused, ROWS(edits)),
                              ONCE(cut_files_are_refused),
                              ONCE(constants_stand_there_once),
                              ONCE(ops_of_plugins_need_them),
                              ONCE(full_disks_leave_the_old_file),
                              ONCE(killed_saves_leave_the_old_file),
                              ONCE(parts_of_others_are_passed_by),
                              ONCE(who_may_read_it_stays),
                              ONCE(links_are_followed),
                              ONCE(links_to_nothing_are_named),
                              ONCE(saving_is_refused),
                              EACH(memory_runs_out_anywhere, 2),
                              {0}};
  return run_suite("graph_file_errors", tests,
                   (suite_options){.timeout_s = 120, .setup = files_begin, .teardown = files_end});
}
