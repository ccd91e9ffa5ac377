/* What the OpenCL backend asks of the driver for calls of many sizes and dtypes, as test_opencl_launches tells it for
 * the suite's: expect/calls.txt has a call a line, in the suite's words, and a digest for each device that is
 * described; nothing runs. Which way a call takes, and how its work is cut, changes with sizes that no case of the
 * suite has: these calls are those of expect/plans.txt with other numbers, drawn once by tests/draw_calls.py.
 *
 *     test_opencl_calls                compares
 *     test_opencl_calls --write FILE   writes the digests anew, for the calls that FILE has, without those that are
 *                                      refused: after a change that is meant, and for new calls
 *     test_opencl_calls --show CALL    prints what the digests of a call are of
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "digest.h"
#include "opencl_described.h"
#include "opencl_told.h"
#include "suite.h"

#define TABLE GRAFT_SOURCE_DIR "/reference_backend_opencl/expect/calls.txt"

enum { CALLS_MOST = 4096, LINE_BYTES = 1024, OUTS_MOST = 16 };

static const char *const between = " ="; /* a call and its digests */

typedef struct row {
  char *call;
  char *digests; /* as the table has them; NULL: none yet */
  uint64_t of[DESCRIBED_DEVICES];
  bool refused;
} row;

static row rows[CALLS_MOST];
static int count;

/* ---- one call ---- */

static graft_status leave(void *context, uint32_t index, graft_tensor *t) {
  (void)context, (void)index, (void)t;
  return GRAFT_OK;
}

static bool make_call(const txt_call *call) {
  graft_tensor *outs[OUTS_MOST] = {NULL};
  const bool made = !graft_call(call->schema->id, call->args, call->nargs, outs, OUTS_MOST);
  if (!made) tell("%s\n", graft_last_error());
  for (int i = 0; i < OUTS_MOST; i++) graft_tensor_release(outs[i]);
  return made;
}

/* Of a second call: what a device makes once, and keeps, is not told, so that it does not matter who came first. */
static char *text_of(row *r, graft_rt_device *device) {
  char *text = NULL;
  size_t bytes;
  txt_call call;
  ck_assert_msg(!txt_parse_call(r->call, NULL, &call), "%s: %s", r->call, graft_last_error());
  OK(txt_make(&call, device, leave, NULL));
  if (!make_call(&call)) r->refused = true;
  OK(graft_device_synchronize(device));
  FILE *to = open_memstream(&text, &bytes);
  told = to;
  make_call(&call);
  told = NULL;
  fclose(to);
  OK(graft_device_synchronize(device));
  txt_free(&call);
  return text;
}

static void take_digests(const char *shown) {
  bool is_there = !shown;
  for (int i = 0; i < count && !is_there; i++) is_there = strcmp(shown, rows[i].call) == 0;
  ck_assert_msg(is_there, "%s has no call '%s'; a call is a line up to '%s'", TABLE, shown, between);
  prepare_described();
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1); /* whether programs are optimized follows from how often they came */
  idle_read_zeros(true);
  for (int number = 0; number < DESCRIBED_DEVICES; number++) {
    graft_rt_device *device = open_described(number);
    for (int i = 0; i < count; i++) {
      if (shown && strcmp(shown, rows[i].call) != 0) continue;
      char *text = text_of(&rows[i], device);
      if (shown) printf("%s\n%s", described[number].name, text);
      rows[i].of[number] = cf_hash(text);
      free(text);
    }
    OK(graft_backend_close(device->backend));
  }
  expect_nothing_held();
}

/* ---- the table ---- */

static void read_rows(const char *path) {
  char line[LINE_BYTES];
  FILE *file = fopen(path, "r");
  ck_assert_msg(file, "%s can't be read", path);
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = 0;
    if (*line == '#' || !*line) continue;
    ck_assert_int_lt(count, CALLS_MOST);
    char *end = strstr(line, between);
    rows[count] = (row){.digests = end ? strdup(end + strlen(between)) : NULL};
    if (end) *end = 0;
    rows[count++].call = strdup(line);
  }
  fclose(file);
}

START_TEST(calls_are_those_of_the_table) {
  int wrong = 0;
  if (!has_opencl()) return;
  read_rows(TABLE);
  take_digests(NULL);
  for (int i = 0; i < count; i++) {
    char text[LINE_BYTES];
    digest_print(text, sizeof text, rows[i].of, DESCRIBED_DEVICES);
    if (rows[i].digests && strcmp(text, rows[i].digests) == 0) continue;
    fprintf(stderr, "%s\ntable:%s\nis:   %s\n", rows[i].call, rows[i].digests ? rows[i].digests : " no digests", text);
    wrong++;
  }
  ck_assert_int_gt(count, 0);
  ck_assert_msg(
      !wrong,
      "%d of %d calls are not what %s says. test_opencl_calls --show CALL prints what the digests are of, here "
      "and in a tree without the change. If it is meant: test_opencl_calls --write %s",
      wrong, count, TABLE, TABLE);
}
END_TEST

static const char *to_write, *to_show; /* a path, and a call */

START_TEST(the_table_is_written) {
  read_rows(to_write);
  take_digests(NULL);
  FILE *to = fopen(to_write, "w");
  ck_assert_ptr_nonnull(to);
  fputs(
      "# Calls of many sizes, and digests of what each asks of the driver on each device that "
      "tests/opencl_described.h\n"
      "# describes. tests/test_opencl_calls.c\n",
      to);
  for (int i = 0; i < count; i++) {
    char text[LINE_BYTES];
    digest_print(text, sizeof text, rows[i].of, DESCRIBED_DEVICES);
    if (!rows[i].refused) fprintf(to, "%s%s%s\n", rows[i].call, between, text);
  }
  ck_assert_int_eq(fclose(to), 0);
}
END_TEST

START_TEST(the_text_is_shown) {
  read_rows(TABLE);
  take_digests(to_show);
}
END_TEST

int main(int argc, char **argv) {
  const suite_test tests[] = {ONCE(calls_are_those_of_the_table), {0}};
  const suite_test writing[] = {ONCE(the_table_is_written), {0}}, showing[] = {ONCE(the_text_is_shown), {0}};
  if (argc == 3 && strcmp(argv[1], "--write") == 0) to_write = argv[2];
  if (argc == 3 && strcmp(argv[1], "--show") == 0) to_show = argv[2];
  if (argc > 1 && !to_write && !to_show) {
    fprintf(stderr, "test_opencl_calls: '%s' is neither --write FILE nor --show CALL\n", argv[1]);
    return 2;
  }
  return run_suite("opencl_calls", to_show ? showing : to_write ? writing : tests, (suite_options){.timeout_s = 300});
}
