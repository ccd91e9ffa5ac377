/* What the OpenCL backend asks of the driver for calls that it makes as one: which calls it puts together, and for each
 * of these groups what test_opencl_launches tells of single calls, and the text that the backend writes for a group.
 * Which calls go together, and a way that is as right as another, no result says; here each change is seen.
 *
 * The graphs are those of the tests of groups, test_opencl_chains and others, of which build/tests/described_* are made
 * again for devices that are described; nothing runs. expect/groups.txt has a digest for each test and device.
 *
 *     test_opencl_group_launches [GROUP]       compares, of one of these programs
 *     test_opencl_group_launches --write FILE  writes the table anew: after a change that is meant, and for new graphs
 *     test_opencl_group_launches --show TEST   prints what the digests of a row are of, as in: --show rows.other_dtypes
 */
#include <stdio.h>
#include <unistd.h>

#include "digest.h"
#include "opencl_described.h"
#include "own_folder.h"
#include "suite.h"

#define TABLE GRAFT_SOURCE_DIR "/reference_backend_opencl/expect/groups.txt"

enum { ROWS_MOST = 64, NAME_BYTES = 128, LINE_BYTES = 1 << 16, TABLE_LINE = 256, PATH_BYTES = 512 };

static const char *shown; /* a row; NULL: none */
static bool is_shown;     /* it was told of */

/* ---- what one program tells ---- */

typedef struct row {
  char name[NAME_BYTES];
  uint64_t of[DESCRIBED_DEVICES]; /* 0: nothing was told */
} row;

typedef struct group {
  const char *name;
  row rows[ROWS_MOST];
  int count;
} group;

static row *row_of(group *g, const char *test) {
  char name[NAME_BYTES];
  const int length = snprintf(name, sizeof name, "%s.%s", g->name, test);
  ck_assert_int_lt(length, NAME_BYTES);
  for (int i = 0; i < g->count; i++)
    if (strcmp(g->rows[i].name, name) == 0) return &g->rows[i];
  ck_assert_int_lt(g->count, ROWS_MOST);
  row *added = &g->rows[g->count++];
  *added = (row){{0}, {0}};
  memcpy(added->name, name, sizeof name);
  return added;
}

/* Lines of "= TEST", and what is told of that one behind it. */
static void read_told(group *g, int which, FILE *file) {
  static char line[LINE_BYTES];
  row *r = NULL;
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, "= ", 2) == 0) {
      line[strcspn(line, "\n")] = 0;
      r = row_of(g, line + 2);
      continue;
    }
    ck_assert_ptr_nonnull(r);
    r->of[which] = digest_with(r->of[which], line);
    if (!shown || strcmp(shown, r->name) != 0) continue;
    printf("%s %s", described[which].name, line);
    is_shown = true;
  }
}

/* Devices share what is found of how many arguments kernels have. Returns what is wrong; NULL: nothing. */
static const char *take_on(group *g, int which, const char *folder) {
  char told[PATH_BYTES], said[PATH_BYTES], command[3 * PATH_BYTES];
  snprintf(told, sizeof told, "%s/%s", folder, described[which].name);
  snprintf(said, sizeof said, "%s/counts", folder);
  setenv("GRAFT_TEST_DESCRIBED", described[which].name, 1);
  setenv("GRAFT_TEST_TOLD", told, 1);
  setenv("GRAFT_TEST_COUNTS", said, 1);
  snprintf(said, sizeof said, "%s/said", folder);
  snprintf(command, sizeof command, "'%s/tests/described_%s' >'%s' 2>&1 || { cat '%s' >&2; false; }", GRAFT_BINARY_DIR,
           g->name, said, said);
  if (system(command) != 0) return "fails";
  FILE *file = fopen(told, "r");
  if (!file) return "tells nothing";
  read_told(g, which, file);
  fclose(file);
  return NULL;
}

static void take(group *g, const char *name) {
  char folder[] = OWN_FOLDER;
  *g = (group){.name = name};
  folder_make(folder);
  const char *wrong = NULL;
  int which = 0;
  while (which < DESCRIBED_DEVICES && !(wrong = take_on(g, which, folder))) which++;
  folder_remove(folder);
  ck_assert_msg(!wrong, "described_%s on %s %s", name, described[which].name, wrong);
}

static void row_line(char line[TABLE_LINE], const row *r) {
  const size_t used = (size_t)snprintf(line, TABLE_LINE, "%s", r->name);
  digest_print(line + used, TABLE_LINE - used, r->of, DESCRIBED_DEVICES);
}

/* ---- the table ---- */

/* Those that tests/CMakeLists.txt makes. */
static const char *const groups[] = {"chains", "classes", "convolutions", "draws",  "epilogues", "graphs",
                                     "groups", "limits",  "norms",        "placed", "rows",      "summed"};
static const char *wanted; /* one of them; NULL: all */

static bool is_of(const char *row_name, const char *group_name) {
  const size_t length = strlen(group_name);
  return strncmp(row_name, group_name, length) == 0 && row_name[length] == '.';
}

/* "": there is no such line. */
static void say_difference(const char *expected, const char *found) {
  fprintf(stderr, "table: %s\nis:    %s\n", *expected ? expected : "no such row", *found ? found : "no such test");
}

/* Of that group, its rows behind each other. */
static int compare_rows(const group *g, FILE *file) {
  char expected[TABLE_LINE], line[TABLE_LINE];
  int wrong = 0, at = 0;
  while (fgets(expected, sizeof expected, file)) {
    if (!is_of(expected, g->name)) continue;
    expected[strcspn(expected, "\n")] = 0;
    *line = 0;
    if (at < g->count) row_line(line, &g->rows[at++]);
    if (strcmp(line, expected) == 0) continue;
    say_difference(expected, line);
    wrong++;
  }
  for (; at < g->count; at++, wrong++) {
    row_line(line, &g->rows[at]);
    say_difference("", line);
  }
  return wrong;
}

START_TEST(groups_are_those_of_the_table) {
  static group g;
  if (!has_opencl() || (wanted && strcmp(wanted, groups[_i]) != 0)) return;
  take(&g, groups[_i]);
  FILE *file = fopen(TABLE, "r");
  ck_assert_msg(file, "%s can't be read", TABLE);
  const int wrong = compare_rows(&g, file);
  fclose(file);
  ck_assert_msg(!wrong,
                "%d rows of %s are not what %s says. test_opencl_group_launches --show ROW prints what the digests are "
                "of, here and in a tree without the change. If it is meant: test_opencl_group_launches --write %s",
                wrong, g.name, TABLE, TABLE);
}
END_TEST

/* Where a program has gone, its rows would be compared with nothing. */
START_TEST(each_row_is_of_one_of_the_groups) {
  char line[TABLE_LINE];
  FILE *file = fopen(TABLE, "r");
  ck_assert_msg(file, "%s can't be read", TABLE);
  while (fgets(line, sizeof line, file)) {
    int of = 0;
    while (of < ROWS(groups) && !is_of(line, groups[of])) of++;
    ck_assert_msg(*line == '#' || of < ROWS(groups), "of which group? %s", line);
  }
  fclose(file);
}
END_TEST

static const char *to_write; /* a path */

/* When all is told: a table is not lost where a program fails. */
START_TEST(the_table_is_written) {
  static group g;
  char *text = NULL;
  size_t bytes;
  FILE *to = open_memstream(&text, &bytes);
  fprintf(to,
          "# Of each test of the OpenCL backend's groups a digest of what its graphs ask of the driver on each "
          "device\n# that tests/opencl_described.h describes. tests/test_opencl_group_launches.c\n");
  for (int i = 0; i < ROWS(groups); i++) {
    char line[TABLE_LINE];
    take(&g, groups[i]);
    for (int r = 0; r < g.count; r++) {
      row_line(line, &g.rows[r]);
      fprintf(to, "%s\n", line);
    }
  }
  fclose(to);
  to = fopen(to_write, "w");
  ck_assert_msg(to, "%s can't be written", to_write);
  fputs(text, to);
  ck_assert_int_eq(fclose(to), 0);
  free(text);
}
END_TEST

START_TEST(the_text_is_shown) {
  static group g;
  int of = 0;
  while (of < ROWS(groups) && !is_of(shown, groups[of])) of++;
  if (of < ROWS(groups)) take(&g, groups[of]);
  ck_assert_msg(is_shown, "%s has no row '%s'", TABLE, shown);
}
END_TEST

static bool is_known(const char *name) {
  for (int i = 0; i < ROWS(groups); i++)
    if (strcmp(name, groups[i]) == 0) return true;
  return false;
}

static int refuse(const char *argument) {
  fprintf(stderr, "test_opencl_group_launches: '%s' is no group; these are:", argument);
  for (int i = 0; i < ROWS(groups); i++) fprintf(stderr, " %s", groups[i]);
  fprintf(stderr, "; or --write FILE, or --show ROW\n");
  return 2;
}

int main(int argc, char **argv) {
  const suite_test tests[] = {
      EACH(groups_are_those_of_the_table, ROWS(groups)), ONCE(each_row_is_of_one_of_the_groups), {0}};
  const suite_test writing[] = {ONCE(the_table_is_written), {0}}, showing[] = {ONCE(the_text_is_shown), {0}};
  if (argc == 3 && strcmp(argv[1], "--write") == 0) to_write = argv[2];
  if (argc == 3 && strcmp(argv[1], "--show") == 0) shown = argv[2];
  if (argc == 2 && is_known(argv[1])) wanted = argv[1];
  if (argc > 1 && !to_write && !shown && !wanted) return refuse(argv[1]);
  const suite_test *asked = shown ? showing : to_write ? writing : tests;
  return run_suite("opencl_group_launches", asked, (suite_options){.timeout_s = 300});
}
