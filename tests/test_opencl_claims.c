/* What the OpenCL backend says that it serves is what it serves: each dtype that the capabilities of an op name is
 * one in which a case computes the right thing with the op's slot, and where the suite's menu has no case of it, one is
 * made here of the op's first. What `expect/mustpass.txt` has the slot compute is among the capabilities, so that a
 * claim that was lost is seen without running that level. What an op says beside its dtypes stands in
 * `expect/flags.txt`: a flag that is lost costs copies that no number shows.
 *
 * `test_opencl_claims FAMILY` looks at the ops of one family; `test_opencl_claims --write` writes the flags anew. */
#include <stdio.h>
#include <string.h>

#include "bad_input.h"
#include "conformance/cases/cases.h"
#include "conformance/run/case.h"
#include "conformance/run/menu.h"
#include "conformance/run/run.h"
#include "dispatch/plan.h"
#include "op_lines.h"
#include "suite.h"
#include "tensor/dtype.h"

#define EXPECT GRAFT_SOURCE_DIR "/reference_backend_opencl/expect/mustpass.txt"
#define FLAGS  GRAFT_SOURCE_DIR "/reference_backend_opencl/expect/flags.txt"

static const char *wanted; /* family; NULL: all */
static graft_rt_device *device;

/* Once in a process, which the tests share: PoCL reads ten megabytes in each that compiles. */
static void open_device(void) {
  if (device) return;
  static const char *const options[] = {"optimize=no", NULL}; /* it takes most of the time */
  device = device_at(OPENCL, options, 0);
}

static void setup(void) {
  open_device();
  ck_assert_msg(device != NULL, "%s", graft_last_error());
}

/* ---- what the file expects ---- */

static bool takes_tensors(const op_schema *schema) {
  for (int i = 0; i < schema->nargs; i++) {
    if (schema->args[i].kind == OPK_TENSOR || schema->args[i].kind == OPK_TENSORS) return true;
  }
  return false;
}

/* Among what it takes; what takes no tensor says what it gives. A set that is empty claims nothing: the host has to ask
 * the slot. A bool and a small integer may reach a slot as an i64. */
static bool is_claimed(const op_schema *schema, const graft_op_caps *caps, graft_dtype dtype) {
  uint64_t claimed = takes_tensors(schema) ? caps->input_dtypes : caps->output_dtypes;
  if (schema->nrets && !caps->output_dtypes) return false;
  return claimed & dt_bit(dtype) || (dt_is_integral(dtype, true) && claimed & dt_bit(GRAFT_I64));
}

static graft_dtype dtype_named(const char *name) {
  for (int n = 0; n < GRAFT_NUMBER_WIDE; n++)
    if (strcmp(graft_dtype_name(dt_of_number(n)), name) == 0) return dt_of_number(n);
  ck_abort_msg("%s is no dtype", name);
}

/* "aten::abs f32 contiguous:p transposed:p"; returns 1 where its slot is expected to compute what it does not claim. */
static int judge_line(char *line) {
  line[strcspn(line, "#\n")] = 0;
  char *rest, *name = strtok_r(line, " ", &rest), *dtype = strtok_r(NULL, " ", &rest), *kind;
  const op_schema *schema = name ? op_schema_find(name) : NULL;
  bool computed = false;
  while (dtype && (kind = strtok_r(NULL, " ", &rest))) computed |= strchr(strchr(kind, ':') + 1, 'p') != NULL;
  op_slot slot;
  graft_op_caps caps;
  if (!schema || !computed) return 0;
  if (!dsp_caps(device, schema, &slot, &caps)) {
    if (schema->equal || dsp_offers_prim(device, schema)) return 0;
    fprintf(stderr, "%s: its slot is gone\n", name);
    return 1;
  }
  if (is_claimed(schema, &caps, dtype_named(dtype))) return 0;
  fprintf(stderr, "%s: no longer claims %s\n", name, dtype);
  return 1;
}

START_TEST(what_is_expected_is_claimed) {
  static char line[1 << 16];
  int lines = 0, wrong = 0;
  FILE *file = fopen(EXPECT, "r");
  ck_assert_msg(file != NULL, "%s can't be read", EXPECT);
  while (fgets(line, sizeof line, file)) lines++, wrong += judge_line(line);
  fclose(file);
  ck_assert_int_gt(lines, 1000);
  ck_assert_msg(wrong == 0, "%d claims are less than " EXPECT " expects", wrong);
}
END_TEST

/* ---- what ops say beside their dtypes ---- */

static const struct flag_name {
  graft_cap_flags flag;
  const char *name;
} flag_names[] = {
    {GRAFT_CAP_STRIDED, "strided"},
    {GRAFT_CAP_EXPANDED, "expanded"},
    {GRAFT_CAP_UNALIGNED, "unaligned"},
    {GRAFT_CAP_MIXED_DTYPE, "mixed_dtype"},
    {GRAFT_CAP_IN_PLACE, "in_place"},
    {GRAFT_CAP_HOST_VALUE, "host_value"},
    {GRAFT_CAP_EMPTY, "empty"},
    {GRAFT_CAP_DETERMINISTIC, "deterministic"},
    {GRAFT_CAP_INDEX_I32, "index_i32"},
    {GRAFT_CAP_PHILOX_STATE, "philox_state"},
    {GRAFT_CAP_HOST_CHECKS_INDICES, "host_checks_indices"},
    {GRAFT_CAP_MEMO_IGNORES_SCALARS, "memo_ignores_scalars"},
    {GRAFT_CAP_EXPANDED_ITEMS, "expanded_items"},
};

/* "aten::abs strided expanded"; false where the backend has no slot of the op. */
static bool say_flags(const op_schema *schema, char line[256]) {
  op_slot slot;
  graft_op_caps caps;
  if (!dsp_caps(device, schema, &slot, &caps)) return false;
  size_t used = (size_t)snprintf(line, 256, "%s", schema->name);
  for (int i = 0; i < ROWS(flag_names); i++)
    if (caps.flags & flag_names[i].flag) used += (size_t)snprintf(line + used, 256 - used, " %s", flag_names[i].name);
  return true;
}

START_TEST(flags_are_those_of_the_file) {
  char expected[256], said[256];
  int wrong = 0, ops = 0;
  size_t count;
  const op_schema *all = op_schema_all(&count);
  FILE *file = fopen(FLAGS, "r");
  ck_assert_msg(file != NULL, "%s can't be read", FLAGS);
  op_lines_next(file, expected, sizeof expected);
  for (size_t i = 0; i < count; i++) {
    bool is_named = op_lines_names(expected, all[i].name);
    bool has_slot = say_flags(&all[i], said);
    if (has_slot != is_named || (has_slot && strcmp(said, expected) != 0)) {
      fprintf(stderr, "says: %s\nfile: %s\n", has_slot ? said : "(no slot)", is_named ? expected : "(no line)");
      wrong++;
    }
    ops += has_slot;
    if (is_named) op_lines_next(file, expected, sizeof expected);
  }
  fclose(file);
  ck_assert_int_gt(ops, 400);
  ck_assert_msg(!wrong && !*expected,
                "%d ops say otherwise than " FLAGS
                ", whose next line is '%s'. A flag that is gone costs copies; of a new "
                "one see that cases meet it. Then: test_opencl_claims --write",
                wrong, expected);
}
END_TEST

static int write_flags(void) {
  static const char path[] = FLAGS ".new";
  char line[256];
  size_t count;
  const op_schema *all = op_schema_all(&count);
  FILE *file = fopen(path, "w");
  open_device();
  if (!file || !device) return fprintf(stderr, "%s: %s\n", path, device ? "can't be written" : graft_last_error()), 1;
  fprintf(file,
          "# What each op of the OpenCL backend says beside its dtypes (GRAFT_CAP_*); tests/test_opencl_claims.c.\n");
  for (size_t i = 0; i < count; i++)
    if (say_flags(&all[i], line)) fprintf(file, "%s\n", line);
  bool good = fclose(file) == 0 && rename(path, FLAGS) == 0;
  if (!good) perror(path);
  return good ? 0 : 1;
}

/* ---- what no case of level mustpass meets ---- */

#define INTEGERS  "u8 i8 i16 i32 i64 u16 u32 u64"
#define COMPLEX   "c64 c128"
#define UNROUNDED "of integers the oracle multiplies by the number itself, the slot by what f32 makes of it"
#define REALS     "the row's limit is one of real numbers"
#define PROMOTED  "the result is of another dtype, and the op's parts convert to it"
#define MEAN      "means of these are left to other ops"

/* What is not asked of a claim: that the result be right, or that the slot compute it. */
static const struct exemption {
  const char *op, *dtypes, *why;
} exemptions[] = {
    {"aten::mul.Scalar", INTEGERS, UNROUNDED},     {"aten::scatter_reduce.two", COMPLEX, REALS},
    {"aten::index_reduce", COMPLEX, REALS},        {"aten::index_reduce", "u16 u32 u64", MEAN},
    {"aten::add.Scalar", "bool", PROMOTED},        {"aten::bitwise_and.Scalar", "bool", PROMOTED},
    {"aten::bitwise_or.Scalar", "bool", PROMOTED}, {"aten::bitwise_xor.Scalar", "bool", PROMOTED},
};

static bool has_word(const char *words, const char *word) {
  size_t length = strlen(word);
  for (const char *at = words; (at = strstr(at, word)); at += length)
    if ((at == words || at[-1] == ' ') && (at[length] == ' ' || !at[length])) return true;
  return false;
}

static bool is_exempt(const char *op, graft_dtype dtype) {
  for (int i = 0; i < ROWS(exemptions); i++)
    if (strcmp(exemptions[i].op, op) == 0 && has_word(exemptions[i].dtypes, graft_dtype_name(dtype))) return true;
  return false;
}

typedef struct met {
  cf_case first;
  uint64_t dtypes;
} met;

static bool meet(void *context, const cf_case *c, const char *id) {
  met *met = context;
  (void)id;
  if (!met->dtypes) met->first = *c;
  met->dtypes |= dt_bit(c->dtype);
  return true;
}

/* Returns 1 where the op's slot does not do in this dtype what it claims. What the op's rule refuses never comes to it.
 */
static int judge_claim(const cf_case *first, graft_dtype dtype) {
  const char *name = cf_case_op(first)->name;
  cf_case c = *first;
  c.dtype = dtype;
  /* Numbers of all sizes, where the row says what comes of them: the small ones of unsigned dtypes are those of others.
   */
  const cf_op *op = cf_case_op(first);
  if (op->flags & CF_WIDE && op->rule.klass == CF_EXACT && dt_is_integral(dtype, false)) c.fill = CF_EXPONENTS;
  cf_result result = {.c = c};
  cf_run(&(cf_backend){.device = device, .seed = 1}, &c, &result);
  bool refused = result.route == DSP_ROUTE_NONE && strstr(result.text, "INVALID_ARGUMENT");
  bool good = refused || (result.outcome == CF_PASS && result.route == DSP_ROUTE_PLUGIN);
  if (good != is_exempt(name, dtype)) return 0;
  fprintf(stderr, good ? "%s %s: does what it claims now: take the exemption out%s\n" : "%s %s: claimed, but %s\n",
          name, graft_dtype_name(dtype),
          good           ? ""
          : *result.text ? result.text
                         : cf_result_word(&result));
  return 1;
}

static int judge_op(const op_schema *schema) {
  graft_op_caps caps;
  op_slot slot;
  met met = {.dtypes = 0};
  int wrong = 0;
  if (!dsp_caps(device, schema, &slot, &caps)) return 0;
  cf_menu(&(cf_selection){.level = CF_MUSTPASS, .ops = schema->name, .ways = CF_CHOSEN_WAY}, meet, &met);
  for (int n = 0; met.dtypes && n < GRAFT_NUMBER_F8_E4M3FN; n++) { /* what f8 is converted to and from has cases */
    graft_dtype dtype = dt_of_number(n);
    if (caps.input_dtypes & ~met.dtypes & dt_bit(dtype)) wrong += judge_claim(&met.first, dtype);
  }
  return wrong;
}

START_TEST(claims_beyond_the_menu_are_kept) {
  const cf_topic *topic = cf_topics[_i];
  int wrong = 0;
  for (uint32_t i = 0; i < topic->count && (!wanted || strcmp(wanted, topic->family) == 0); i++)
    wrong += judge_op(op_schema_find(topic->ops[i].name));
  ck_assert_msg(wrong == 0, "%d claims of %s are not kept", wrong, topic->family);
}
END_TEST

int main(int count, char **arguments) {
  if (count > 1 && strcmp(arguments[1], "--write") == 0) return write_flags();
  if (count > 1) wanted = arguments[1];
  const suite_test tests[] = {ONCE(what_is_expected_is_claimed),
                              ONCE(flags_are_those_of_the_file),
                              EACH(claims_beyond_the_menu_are_kept, (int)cf_topic_count),
                              {0}};
  return run_suite("opencl_claims", tests, (suite_options){.setup = setup, .shared_process = true});
}
