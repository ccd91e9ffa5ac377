/* Which way calls take on the OpenCL backend is a matter of speed: all ways are right, and no test of results sees a
 * change. Here each change is seen: for calls of the ops that choose, opencl_plans.txt holds which kernels a device
 * would launch, in how many work-groups, by which macros of their programs, and how large the buffers are that are
 * made. Devices are described, and nothing runs.
 *
 *     test_opencl_plans                compares
 *     test_opencl_plans --write FILE   writes what is so now, for the calls that FILE has: see that it is what you
 * meant
 */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "opencl_described.h"
#include "suite.h"

#define PLANS GRAFT_SOURCE_DIR "/reference_backend_opencl/expect/plans.txt"

/* ---- what a call does ---- */

static FILE *told;
static const idle_program *last; /* its macros have been told */

static const char *const of_all[] = {"HAS_F64", "IS_CPU", "CONVERTS_BF16", "QUICK_FUNCTIONS", "MT", "UT"};

static bool is_told(const char *name, size_t length) {
  for (int i = 0; i < ROWS(of_all); i++)
    if (strlen(of_all[i]) == length && strncmp(of_all[i], name, length) == 0) return false;
  return true;
}

/* Macros that are a number or a word; what is an expression is long, and tests of results see it. */
static void tell_macros(const char *head) {
  static const char define[] = "#define ";
  for (const char *line = head; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
    if (strncmp(line, define, strlen(define)) != 0) continue;
    const char *name = line + strlen(define), *value = name;
    while (isalnum((unsigned char)*value) || *value == '_') value++;
    const size_t length = strcspn(value, "\n");
    if (*value == '(' || length > 24 || memchr(value + (length > 0), ' ', length - (length > 0)) ||
        !is_told(name, (size_t)(value - name)))
      continue;
    fprintf(told, " %.*s", (int)(value - name), name);
    if (length > 0) fprintf(told, "=%.*s", (int)length - 1, value + 1);
  }
}

void idle_program_made(const idle_program *program) {
  (void)program;
}

void idle_launched(const idle_program *program, const char *kernel, cl_uint dims, const size_t *global,
                   const size_t *local) {
  size_t lanes = 1;
  if (!told) return;
  fprintf(told, "    %s", kernel);
  while (dims > 1 && global[dims - 1] == 1) dims--;
  for (cl_uint d = 0; d < dims; d++) {
    const size_t size = local ? local[d] : 1;
    lanes *= size;
    fprintf(told, "%c%zu", d ? 'x' : ' ', global[d] / size);
    if (global[d] % size) fprintf(told, "+%zu", global[d] % size);
  }
  if (lanes > 1) fprintf(told, " of %zu", lanes);
  if (program != last) {
    fprintf(told, ":");
    tell_macros(program->head);
  }
  last = program;
  fprintf(told, "\n");
}

void idle_buffer_made(size_t bytes) {
  if (told) fprintf(told, "    buffer %zu\n", bytes);
}

/* ---- the table ---- */

static graft_status leave(void *context, uint32_t index, graft_tensor *t) {
  (void)context, (void)index, (void)t;
  return GRAFT_OK;
}

static void make_call(const txt_call *call) {
  graft_tensor *outs[16] = {NULL};
  if (graft_call(call->schema->id, call->args, call->nargs, outs, ROWS(outs)) && told)
    fprintf(told, "    %s\n", graft_last_error());
  for (int i = 0; i < ROWS(outs); i++) graft_tensor_release(outs[i]);
}

/* Of a second call: what a device makes once, and keeps, is not told, so that it does not matter who came first. */
static char *plan_of(const char *line, graft_rt_device *device) {
  char *text = NULL;
  size_t bytes;
  txt_call call;
  ck_assert_msg(!txt_parse_call(line, NULL, &call), "%s: %s", line, graft_last_error());
  OK(txt_make(&call, device, leave, NULL));
  make_call(&call);
  OK(graft_device_synchronize(device));
  told = open_memstream(&text, &bytes);
  last = NULL;
  make_call(&call);
  fclose(told);
  told = NULL;
  OK(graft_device_synchronize(device));
  txt_free(&call);
  return text;
}

enum { LINES_MAX = 40000 };
typedef struct lines {
  char *text;
  char *items[LINES_MAX];
  int count;
} lines;

static void add_line(lines *to, char *line) {
  ck_assert_int_lt(to->count, LINES_MAX);
  to->items[to->count++] = line;
}

static void read_lines(lines *to, char *text) {
  to->text = text;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) add_line(to, line);
}

static char *text_of_file(const char *path) {
  FILE *file = fopen(path, "r");
  char *text = NULL;
  size_t capacity = 0;
  ck_assert_msg(file, "%s", path);
  ck_assert_int_gt(getdelim(&text, &capacity, '\0', file), 0);
  fclose(file);
  return text;
}

/* One plan for all devices that have it. */
static void tell_plans(FILE *out, char **plans) {
  bool done[DESCRIBED_DEVICES] = {false};
  for (int d = 0; d < DESCRIBED_DEVICES; d++) {
    if (done[d]) continue;
    fprintf(out, " ");
    for (int other = d; other < DESCRIBED_DEVICES; other++) {
      if (strcmp(plans[d], plans[other]) != 0) continue;
      fprintf(out, " %s", described[other].name);
      done[other] = true;
    }
    fprintf(out, "\n%s", plans[d]);
  }
}

/* The table anew, for the calls and remarks that stand in an old one. */
static char *table_of(const lines *old) {
  graft_rt_device *opened[DESCRIBED_DEVICES];
  char **plans = calloc((size_t)old->count * DESCRIBED_DEVICES, sizeof *plans), *text;
  size_t bytes;
  for (int d = 0; d < DESCRIBED_DEVICES; d++) {
    opened[d] = open_described(d);
    for (int i = 0; i < old->count; i++)
      if (!strchr(" #", old->items[i][0])) plans[i * DESCRIBED_DEVICES + d] = plan_of(old->items[i], opened[d]);
  }
  FILE *out = open_memstream(&text, &bytes);
  for (int i = 0; i < old->count; i++) {
    if (old->items[i][0] == ' ') continue;
    fprintf(out, "%s\n", old->items[i]);
    if (old->items[i][0] != '#') tell_plans(out, &plans[i * DESCRIBED_DEVICES]);
  }
  fclose(out);
  return text;
}

START_TEST(plans_are_those_of_the_table) {
  static lines expected, found;
  if (!has_opencl()) return;
  prepare_described();
  read_lines(&expected, text_of_file(PLANS));
  read_lines(&found, table_of(&expected));
  const char *call = "";
  for (int i = 0; i < expected.count || i < found.count; i++) {
    const char *wanted = i < expected.count ? expected.items[i] : "", *is = i < found.count ? found.items[i] : "";
    if (wanted[0] != ' ') call = wanted;
    ck_assert_msg(strcmp(wanted, is) == 0,
                  "line %d, %s:\n%s\nis now\n%s\nIf that is meant, test_opencl_plans --write %s", i, call, wanted, is,
                  PLANS);
  }
}
END_TEST

static const char *to_write; /* a path */

START_TEST(the_table_is_written) {
  static lines old;
  prepare_described();
  read_lines(&old, text_of_file(to_write));
  char *table = table_of(&old);
  FILE *to = fopen(to_write, "w");
  ck_assert_ptr_nonnull(to);
  fputs(table, to);
  fclose(to);
}
END_TEST

int main(int argc, char **argv) {
  const suite_test tests[] = {ONCE(plans_are_those_of_the_table), {0}}, writing[] = {ONCE(the_table_is_written), {0}};
  if (argc == 3 && strcmp(argv[1], "--write") == 0) to_write = argv[2];
  return run_suite("opencl_plans", to_write ? writing : tests, (suite_options){.timeout_s = 300});
}
