/* What the OpenCL backend asks of the driver for each of the suite's calls: which programs, by which macros and
 * options; which kernels, with which arguments, over how many work-items; which buffers, copies and fills. What no
 * result of the suite's depends on, and a way that is as right as another, shows in no case; here each change is seen.
 * expect/launches.txt has a digest for each op and device, over the calls at level mustpass (in a graph with
 * neighbours, too), of the largest family, whose ops share their host code, those at smoke: what stands in kernels'
 * files is none of it. Devices are described, as in test_opencl_plans, which tells in words what fewer calls do;
 * nothing runs.
 *
 *     test_opencl_launches [FAMILY]     compares; --op LIST: of these ops, as the suite names them
 *     test_opencl_launches --write FILE writes the table anew: after a change that is meant, and for new cases
 *     test_opencl_launches --show OP    prints what the digests of an op are of
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include <dlfcn.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "conformance/cases/cases.h"
#include "conformance/run/attempt.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "conformance/run/fill.h"
#include "conformance/run/menu.h"
#include "opencl_described.h"
#include "suite.h"

#define TABLE GRAFT_SOURCE_DIR "/reference_backend_opencl/expect/launches.txt"

#define LARGEST "pointwise"

enum { OPS_MOST = 1024 };

/* ---- what is told ---- */

static FILE *told; /* NULL: nobody listens */

static void tell(const char *format, ...) {
  va_list items;
  if (!told) return;
  va_start(items, format);
  vfprintf(told, format, items);
  va_end(items);
}

static void tell_sizes(const char *what, cl_uint dims, const size_t *sizes) {
  tell(" %s", what);
  for (cl_uint d = 0; sizes && d < dims; d++) tell(" %zu", sizes[d]);
}

static void tell_argument(const idle_argument *a) {
  if (a->buffer_bytes) {
    tell(" buffer:%zu", a->buffer_bytes);
    return;
  }
  tell(a->value ? " %zu:" : " local:%zu", a->bytes);
  for (size_t i = 0; a->value && i < a->bytes; i++) tell("%02x", ((const unsigned char *)a->value)[i]);
}

void idle_program_made(const idle_program *program) {
  (void)program; /* which comes first changes with who came before */
}

void idle_launched(const idle_program *program, const char *kernel, cl_uint dims, const size_t *global,
                   const size_t *local) {
  cl_uint count;
  const idle_argument *arguments = idle_arguments(&count);
  if (!told) return;
  tell("%s", kernel);
  tell_sizes("over", dims, global);
  tell_sizes("of", dims, local);
  tell(" with");
  for (cl_uint i = 0; i < count; i++) tell_argument(&arguments[i]);
  tell("\n%s%s%s\n", program->options ? program->options : "", program->files, program->head);
}

void idle_buffer_made(size_t bytes) {
  tell("buffer %zu\n", bytes);
}

#define SEEN __attribute__((visibility("default")))
#define REAL(name, variable)         \
  __typeof__(name) *variable = NULL; \
  *(void **)&(variable) = dlsym(RTLD_NEXT, #name)

SEEN cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t at, size_t to_at, size_t bytes,
                                cl_uint count, const cl_event *events, cl_event *event) {
  REAL(clEnqueueCopyBuffer, real);
  tell("copy %zu from %zu to %zu\n", bytes, at, to_at);
  return real(queue, from, to, at, to_at, bytes, count, events, event);
}

SEEN cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t size, size_t at,
                                size_t bytes, cl_uint count, const cl_event *events, cl_event *event) {
  REAL(clEnqueueFillBuffer, real);
  tell("fill %zu at %zu with ", bytes, at);
  for (size_t i = 0; i < size; i++) tell("%02x", ((const unsigned char *)pattern)[i]);
  tell("\n");
  return real(queue, buffer, pattern, size, at, bytes, count, events, event);
}

SEEN cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocks, size_t at, size_t bytes,
                                 const void *from, cl_uint count, const cl_event *events, cl_event *event) {
  REAL(clEnqueueWriteBuffer, real);
  tell("write %zu at %zu\n", bytes, at);
  return real(queue, buffer, blocks, at, bytes, from, count, events, event);
}

/* ---- one call ---- */

/* The second time: what a device makes once, and keeps for all ops, is told of none. */
static void attempt(cf_call *call, graft_rt_device *device, FILE *to) {
  cf_result result = {.c = *call->c};
  const cf_backend backend = {.device = device, .seed = 1};
  cf_attempt *s = calloc(1, sizeof *s);
  ck_assert_ptr_nonnull(s);
  s->backend = &backend, s->call = call, s->result = &result;
  bool made = cf_attempt_begin(s);
  for (int run = 0; made && run < 2; run++) {
    graft_tensor *outs[CF_MAX_TENSORS] = {NULL};
    made = cf_attempt_prepare(s, run, outs);
    if (made) {
      told = run ? to : NULL;
      const graft_status status = cf_attempt_call(s, outs);
      tell("%s%s\n", status ? graft_last_error() : "", s->absent ? " absent" : "");
      told = NULL;
      cf_attempt_release(s, outs);
    }
  }
  if (!made) fprintf(to, "not made: %s\n", result.text);
  cf_attempt_end(s);
  free(s);
}

static char *text_of(const cf_case *c, graft_rt_device *device) {
  char *text = NULL;
  size_t bytes;
  cf_call call;
  ck_assert_msg(cf_call_open(c, &call), "%s", graft_last_error());
  ck_assert(cf_call_fill(&call, 1, true));
  FILE *to = open_memstream(&text, &bytes);
  attempt(&call, device, to);
  fclose(to);
  cf_call_close(&call);
  return text;
}

/* ---- digests ---- */

typedef struct digests {
  graft_rt_device *device;
  int number; /* of the device */
  uint64_t of[OPS_MOST][DESCRIBED_DEVICES];
  uint32_t cases[OPS_MOST];
  bool shows; /* prints the text */
} digests;

static bool visit(void *context, const cf_case *c, const char *id) {
  digests *d = context;
  size_t count;
  const size_t row = (size_t)(op_schema_of(c->op_id) - op_schema_all(&count));
  if ((c->mode != CF_FORWARD && c->mode != CF_GROUPED) || c->fill != CF_UNIFORM) return true;
  if (c->level > CF_SMOKE && strcmp(cf_case_family(c), LARGEST) == 0) return true;
  ck_assert_uint_lt(row, OPS_MOST);
  char *text = text_of(c, d->device);
  if (d->shows) printf("%s %s\n%s", described[d->number].name, id, text);
  d->of[row][d->number] = (d->of[row][d->number] ^ cf_hash(text)) * UINT64_C(0x9E3779B97F4A7C15);
  d->cases[row] += d->number == 0;
  free(text);
  return true;
}

static void take_digests(digests *d, const char *ops, const char *families, bool shows) {
  *d = (digests){.shows = shows};
  prepare_described();
  for (d->number = 0; d->number < DESCRIBED_DEVICES; d->number++) {
    d->device = open_described(d->number);
    idle_read_zeros(true);
    cf_menu(&(cf_selection){.level = CF_MUSTPASS, .ops = ops, .families = families, .grad = -1, .ways = CF_CHOSEN_WAY},
            visit, d);
    idle_read_zeros(false);
  }
}

static void say_line(char line[256], const digests *d, size_t row) {
  size_t count, used = (size_t)snprintf(line, 256, "%s %u", op_schema_all(&count)[row].name, d->cases[row]);
  for (int i = 0; i < DESCRIBED_DEVICES; i++)
    used += (size_t)snprintf(line + used, 256 - used, " %08" PRIx64, d->of[row][i] >> 32);
}

static const char *wanted, *ops; /* families, and ops; NULL: all */

static bool read_line(FILE *file, char line[256]) {
  do {
    if (!fgets(line, 256, file)) return false;
    line[strcspn(line, "\n")] = 0;
  } while (*line == '#');
  return true;
}

/* Of the ops that were asked for. Returns how many lines are other than in the table. */
static int compare(FILE *file, const digests *found) {
  static bool named[OPS_MOST];
  char line[256], expected[256];
  int wrong = 0;
  size_t count;
  const op_schema *all = op_schema_all(&count);
  while (read_line(file, expected)) {
    const size_t length = strcspn(expected, " ");
    size_t row = 0;
    while (row < count && (strncmp(all[row].name, expected, length) != 0 || all[row].name[length])) row++;
    ck_assert_msg(row < count, "%s: there is no such op", expected);
    named[row] = true;
    if (!found->cases[row]) continue;
    say_line(line, found, row);
    if (strcmp(line, expected) != 0) fprintf(stderr, "expected: %s\nis now:   %s\n", expected, line), wrong++;
  }
  for (size_t row = 0; row < count; row++)
    if (found->cases[row] && !named[row]) fprintf(stderr, "%s is not there\n", all[row].name), wrong++;
  return wrong;
}

START_TEST(launches_are_those_of_the_table) {
  static digests found;
  if (!has_opencl()) return;
  FILE *file = fopen(TABLE, "r");
  ck_assert_msg(file != NULL, "%s can't be read", TABLE);
  take_digests(&found, ops, wanted, false);
  const int wrong = compare(file, &found);
  fclose(file);
  ck_assert_msg(
      wrong == 0,
      "%d ops are not what " TABLE
      " says. `test_opencl_launches --show OP` prints what the digests are of, here "
      "and in a tree without the change. If it is meant, or of new cases: test_opencl_launches --write " TABLE,
      wrong);
}
END_TEST

static const char *to_write; /* a path */

START_TEST(the_table_is_written) {
  static digests found;
  char line[256];
  size_t count;
  op_schema_all(&count);
  take_digests(&found, NULL, NULL, false);
  FILE *file = fopen(to_write, "w");
  ck_assert_ptr_nonnull(file);
  fprintf(file,
          "# Of each op: how many of the suite's calls are made, and a digest of what they ask of the "
          "driver on\n"
          "# each device that tests/opencl_described.h describes. tests/test_opencl_launches.c\n");
  for (size_t row = 0; row < count; row++) {
    if (!found.cases[row]) continue;
    say_line(line, &found, row);
    fprintf(file, "%s\n", line);
  }
  ck_assert_int_eq(fclose(file), 0);
}
END_TEST

static const char *to_show; /* an op */

START_TEST(the_text_is_shown) {
  static digests found;
  take_digests(&found, to_show, NULL, true);
}
END_TEST

int main(int argc, char **argv) {
  const suite_test tests[] = {ONCE(launches_are_those_of_the_table), {0}};
  const suite_test writing[] = {ONCE(the_table_is_written), {0}}, showing[] = {ONCE(the_text_is_shown), {0}};
  if (argc == 3 && strcmp(argv[1], "--write") == 0) to_write = argv[2];
  if (argc == 3 && strcmp(argv[1], "--show") == 0) to_show = argv[2];
  if (argc == 2) wanted = argv[1];
  if (argc == 3 && strcmp(argv[1], "--op") == 0) ops = argv[2];
  return run_suite("opencl_launches",
                   to_show    ? showing
                   : to_write ? writing
                              : tests,
                   (suite_options){.timeout_s = 600});
}
