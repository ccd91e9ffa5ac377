/* What the OpenCL backend asks of the driver for each of the suite's calls: which programs, by which macros and
 * options; which kernels, with which arguments, over how many work-items; which buffers, copies and fills. What no
 * result of the suite's depends on, and a way that is as right as another, shows in no case; here each change is seen.
 * expect/launches.txt has a digest for each op and device, over the calls at level mustpass (in a graph with
 * neighbours, too), of the largest family, whose ops share their host code, those at smoke: what stands in kernels'
 * files is none of it. Devices are described, as in test_opencl_plans, which tells in words what fewer calls do;
 * nothing runs. What each device's ops have taken of the driver they have given back when it is closed.
 *
 *     test_opencl_launches [FAMILY]     compares; --op LIST: of these ops, as the suite names them
 *     test_opencl_launches --write FILE writes the table anew: after a change that is meant, and for new cases
 *     test_opencl_launches --show OP    prints what the digests of an op are of
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "conformance/cases/cases.h"
#include "conformance/run/attempt.h"
#include "conformance/run/call.h"
#include "conformance/run/case.h"
#include "device/device.h"
#include "digests.h"
#include "opencl_described.h"
#include "opencl_told.h"

#define TABLE GRAFT_SOURCE_DIR "/reference_backend_opencl/expect/launches.txt"

#define LARGEST "pointwise"

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
  ck_assert_msg(made, "a call can't be made: %s", result.text);
  cf_attempt_end(s);
  free(s);
}

static char *text_of(cf_call *call, graft_rt_device *device) {
  char *text = NULL;
  size_t bytes;
  FILE *to = open_memstream(&text, &bytes);
  attempt(call, device, to);
  fclose(to);
  return text;
}

/* ---- digests ---- */

typedef struct asked {
  digests digests;
  graft_rt_device *devices[DESCRIBED_DEVICES];
} asked;

static bool visit(void *context, const cf_case *c, const char *id) {
  asked *a = context;
  if ((c->mode != CF_FORWARD && c->mode != CF_GROUPED) || c->fill != CF_UNIFORM) return true;
  if (c->level > CF_SMOKE && strcmp(cf_case_family(c), LARGEST) == 0) return true;
  const size_t row = digest_row(c);
  cf_call call;
  ck_assert_msg(cf_call_open(c, &call), "%s", graft_last_error());
  ck_assert(cf_call_fill(&call, 1, true));
  for (int number = 0; number < DESCRIBED_DEVICES; number++) {
    idle_describe(described[number].answers);
    digest_text(&a->digests, row, number, id, text_of(&call, a->devices[number]));
  }
  a->digests.cases[row]++;
  cf_call_close(&call);
  return true;
}

static digest_options options;
static const char *families; /* NULL: all */

static void take_digests(asked *a) {
  const char *ops = options.show ? options.show : options.ops;
  *a = (asked){.digests.shows = options.show};
  prepare_described();
  for (int number = 0; number < DESCRIBED_DEVICES; number++) {
    a->digests.columns[number] = described[number].name;
    a->devices[number] = open_described(number);
  }
  idle_read_zeros(true);
  cf_menu(&(cf_selection){.level = CF_MUSTPASS, .ops = ops, .families = families, .grad = -1, .ways = CF_CHOSEN_WAY},
          visit, a);
  idle_read_zeros(false);
}

/* When their devices are closed. */
static void expect_all_given_back(asked *a) {
  for (int number = 0; number < DESCRIBED_DEVICES; number++) OK(graft_backend_close(a->devices[number]->backend));
  expect_nothing_held();
}

static asked found;

START_TEST(launches_are_those_of_the_table) {
  if (!has_opencl()) return;
  take_digests(&found);
  expect_all_given_back(&found);
  digests_compare(&found.digests, TABLE, "test_opencl_launches", options.ops || families);
}
END_TEST

START_TEST(the_table_is_written) {
  take_digests(&found);
  digests_write(&found.digests, options.write,
                "# Of each op: how many of the suite's calls are made, and a digest of what they ask of the "
                "driver on\n"
                "# each device that tests/opencl_described.h describes. tests/test_opencl_launches.c\n");
}
END_TEST

START_TEST(the_text_is_shown) {
  take_digests(&found);
}
END_TEST

/* No larger one, and none that is smaller. */
START_TEST(a_buffer_is_as_large_as_the_device_lets_it_be) {
  enum { LARGEST_BYTES = 1 << 20 };
  static const idle_answer little[] = {IDLE_NUMBER(CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong, LARGEST_BYTES), {0}};
  const int64_t largest = LARGEST_BYTES, more = LARGEST_BYTES + 1;
  graft_tensor *t, *none = NULL;
  if (!has_opencl()) return;
  prepare_described();
  idle_describe(little);
  graft_rt_device *device = device_at(OPENCL, (const char *const[]){"kernels=gpu", "optimize=no", NULL}, 0);
  OK(graft_tensor_empty(device, GRAFT_U8, 1, &largest, &t));
  graft_tensor_release(t);
  ck_assert_int_eq(graft_tensor_empty(device, GRAFT_U8, 1, &more, &none), GRAFT_OUT_OF_MEMORY);
  OK(graft_backend_close(device->backend));
}
END_TEST

int main(int argc, char **argv) {
  const suite_test tests[] = {
      ONCE(launches_are_those_of_the_table), ONCE(a_buffer_is_as_large_as_the_device_lets_it_be), {0}};
  const suite_test writing[] = {ONCE(the_table_is_written), {0}}, showing[] = {ONCE(the_text_is_shown), {0}};
  options = digest_options_of(argc, argv);
  if (argc == 2) families = argv[1];
  return run_suite("opencl_launches",
                   options.show    ? showing
                   : options.write ? writing
                                   : tests,
                   (suite_options){.timeout_s = 600});
}
