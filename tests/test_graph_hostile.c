/* Files of graphs of fixed sizes that were damaged at random. Under the sanitizers this looks for more than crashes. */
#include "cli/fuzz.h"
#include "graph_damage.h"
#include "suite.h"

enum { PROGRAMS = 12, MOST_FILES = 3 * PROGRAMS, TRIES = 2000 };

/* --- files to begin with --- */

static bytes files[MOST_FILES];
static uint32_t nfiles;

/* The graphs of random programs, as they are compiled. */
/* One whose input begins with a value. */
static void add_file_with_value(void) {
  graft_graph *graph = new_graph();
  graft_tensor *value = host(GRAFT_F32, 3, (float[]){1, 2, 3});
  OK(graft_graph_input_set_value(graph, 1, value));
  OK(graft_graph_save(graph, file_path));
  files[nfiles++] = read_all(file_path);
  graft_tensor_release(value);
  graft_graph_destroy(graph);
}

static void make_files(void) {
  fuzz_report report;
  setenv("GRAFT_GRAPH_DUMP", file_folder, 1);
  for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
    fuzz_program program;
    fuzz_make(seed, &program);
    ck_assert_msg(fuzz_agrees(&program, reference(), NULL, &report), "%s", report.why);
  }
  unsetenv("GRAFT_GRAPH_DUMP");
  for (uint32_t i = 1; i <= MOST_FILES; i++) {
    char path[160];
    snprintf(path, sizeof path, "%s/graph-%ld-%u.safetensors", file_folder, (long)getpid(), i);
    if (access(path, R_OK) == 0) files[nfiles++] = read_all(path);
  }
  ck_assert_uint_ge(nfiles, PROGRAMS);
  if (nfiles == MOST_FILES) free(files[--nfiles].at);
  add_file_with_value();
}

START_TEST(damage_is_found_or_harmless) {
  make_files();
  damage_files(files, nfiles, TRIES, _i);
  for (uint32_t i = 0; i < nfiles; i++) free(files[i].at);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(damage_is_found_or_harmless, 2), {0}};
  return run_suite("graph_hostile", tests,
                   (suite_options){.timeout_s = 240, .setup = files_begin, .teardown = files_end});
}
