/* What ops refuse, and what they say then, to the letter: refusals.txt has a call a line, and below it the status and
 * the text. Tensors hold 1, 0, -1 and so on down, integers 1, 0, -1 in turns.
 *
 *     test_refusals                compares
 *     test_refusals --write FILE   writes what is said now, for the calls that FILE has
 *
 * test_refusals.py looks whether each refusal of sdk/ops has a call. */
#include <stdio.h>

#include "bad_input.h"
#include "suite.h"
#include "tensor/dtype.h"

#define REFUSALS GRAFT_SOURCE_DIR "/tests/refusals.txt"

static graft_status fill_down(void *context, uint32_t index, graft_tensor *t) {
  (void)context, (void)index;
  const graft_dtype dtype = graft_tensor_dtype(t);
  const size_t bytes = GRAFT_DTYPE_BYTES(dtype);
  const int64_t n = graft_tensor_numel(t);
  const bool whole = dt_is_integral(dtype, true);
  char *data = calloc((size_t)n + 1, bytes);
  for (int64_t i = 0; i < n; i++) {
    dt_store(dtype, data + (size_t)i * bytes, (dt_value){.re = (long double)(1 - (whole ? i % 3 : i))});
  }
  const graft_status status = put_elements(t, data);
  free(data);
  return status;
}

/* The status and the text of a call that fails; NULL: it does not. */
static const char *refusal_of(const char *line, graft_rt_device *device) {
  static char said[2048];
  txt_call call;
  graft_tensor *outs[16] = {NULL};
  graft_status status = txt_parse_call(line, NULL, &call);
  const bool parsed = !status;
  if (parsed) status = txt_make(&call, device, fill_down, NULL);
  if (!status) status = graft_call(call.schema->id, call.args, call.nargs, outs, ROWS(outs));
  if (!status) status = graft_device_synchronize(device);
  snprintf(said, sizeof said, "%s: %s", graft_status_name(status), graft_last_error());
  for (int i = 0; i < ROWS(outs); i++) graft_tensor_release(outs[i]);
  if (parsed) txt_free(&call);
  return status ? said : NULL;
}

static FILE *table(const char *path, const char *mode) {
  FILE *file = fopen(path, mode);
  ck_assert_msg(file, "%s", path);
  return file;
}

/* Calls begin a line; what is said of them stands behind a blank, remarks behind a #. */
START_TEST(refusals_are_those_of_the_table) {
  char line[2048], expected[2048] = "";
  FILE *file = table(REFUSALS, "r");
  graft_rt_device *device = graft_device_reference();
  int calls = 0;
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    if (strchr("# ", *line)) continue;
    ck_assert(fgets(expected, sizeof expected, file) && expected[0] == ' ');
    expected[strcspn(expected, "\n")] = '\0';
    const char *said = refusal_of(line, device);
    ck_assert_msg(said, "%s is taken", line);
    ck_assert_msg(strcmp(said, expected + 1) == 0, "%s:\n%s\nis now\n%s\nIf that is meant, test_refusals --write %s",
                  line, expected + 1, said, REFUSALS);
    calls++;
  }
  ck_assert_int_gt(calls, 0);
  fclose(file);
}
END_TEST

static const char *to_write; /* a path */

START_TEST(the_table_is_written) {
  char line[2048], *text = NULL;
  size_t bytes;
  FILE *file = table(to_write, "r"), *anew = open_memstream(&text, &bytes);
  while (fgets(line, sizeof line, file)) {
    line[strcspn(line, "\n")] = '\0';
    if (*line == ' ') continue;
    fprintf(anew, "%s\n", line);
    if (*line != '#') {
      const char *said = refusal_of(line, graft_device_reference());
      fprintf(anew, " %s\n", said ? said : "taken");
    }
  }
  fclose(file);
  fclose(anew);
  file = table(to_write, "w");
  fputs(text, file);
  fclose(file);
  free(text);
}
END_TEST

int main(int argc, char **argv) {
  const suite_test tests[] = {ONCE(refusals_are_those_of_the_table), {0}},
                   writing[] = {ONCE(the_table_is_written), {0}};
  if (argc == 3 && strcmp(argv[1], "--write") == 0) to_write = argv[2];
  return run_suite("refusals", to_write ? writing : tests, (suite_options){.timeout_s = 120});
}
