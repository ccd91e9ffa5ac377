/* The commands `graft conformance` and `graft case`. */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conformance/conformance.h"
#include "conformance/report/file.h"
#include "conformance/report/report.h"
#include "conformance/run/case.h"
#include "conformance/run/custom.h"
#include "conformance/run/custom_rows.h"
#include "conformance/run/dump.h"
#include "conformance/run/fused.h"
#include "dispatch/dispatch.h"

/* ---- options ---- */

typedef struct cf_arguments {
  cf_options options;
  bool worker, custom_ops, fusions, list, words;
  const char *id, *cases;
  bool wants_id;
  char ops[4096], families[1024]; /* of all options that name some */
} cf_arguments;

enum {
  CF_O_LEVEL = 256,
  CF_O_OP,
  CF_O_CASES,
  CF_O_DTYPE,
  CF_O_FAMILY,
  CF_O_GRAD,
  CF_O_JOBS,
  CF_O_SHARD,
  CF_O_SEED,
  CF_O_WAYS,
  CF_O_FAIL_FAST,
  CF_O_WAIVERS,
  CF_O_REPORT,
  CF_O_EXPECT,
  CF_O_WRITE_EXPECT,
  CF_O_WORKER,
  CF_O_CUSTOM_OPS,
  CF_O_FUSIONS,
  CF_O_LIMIT,
  CF_O_DUMP,
  CF_O_VERBOSE,
  CF_O_LIST,
  CF_O_WORDS
};

#define CF_DEFAULT_BACKEND "(default: the plugin that was found, where it is one, else reference)"

static const struct argp_option cf_conformance_options[] = {
    {NULL, 'b', "NAME|PATH", 0, "the backend: a name that `graft backends` lists, or a library " CF_DEFAULT_BACKEND, 0},
    {NULL, 'd', "N", 0, "its device, counted from 0", 0},
    {NULL, 'o', "KEY=VALUE", 0, "an option for the plugin; may be repeated", 0},
    {"level", CF_O_LEVEL, "smoke|mustpass|full", 0, "how much is run (default smoke)", 0},
    {"op", CF_O_OP, "LIST", 0, "only these ops: 'aten.mm*', 'aten::mm,prims.*'; may be repeated", 0},
    {"cases", CF_O_CASES, "FILE", 0, "only the cases whose ids stand in the file, one a line, as --list prints them",
     0},
    {"family", CF_O_FAMILY, "LIST", 0, "only the ops of these families: reduction,scan", 0},
    {"dtype", CF_O_DTYPE, "LIST", 0, "only these dtypes: f32,bf16", 0},
    {"grad", CF_O_GRAD, "only|no", 0, "gradients alone, or none", 0},
    {"jobs", CF_O_JOBS, "N", 0, "worker processes (default: one a processor, at most 4)", 0},
    {"shard", CF_O_SHARD, "I/N", 0, "the I-th of N parts of the cases", 0},
    {"seed", CF_O_SEED, "N", 0, "other values in the same cases", 0},
    {"ways", CF_O_WAYS, "LIST|all", 0,
     "which ways calls go: chosen (as dispatch does, the default), equal, decomposition, reference; all is the default "
     "of level full",
     0},
    {"fail-fast", CF_O_FAIL_FAST, NULL, 0, "stop at the first failure", 0},
    {"waivers", CF_O_WAIVERS, "FILE", 0, "known failures: lines of PATTERN LINK YYYY-MM-DD", 0},
    {"report", CF_O_REPORT, "DIR", 0, "write report.html, results.jsonl and junit.xml there", 0},
    {"expect", CF_O_EXPECT, "FILE", 0, "what --write-expect wrote: support that was lost since then is a failure", 0},
    {"write-expect", CF_O_WRITE_EXPECT, "FILE", 0, "write which op, dtype and layout is computed by what", 0},
    {"time-limit", CF_O_LIMIT, "S", 0, "seconds a case may take (default 60)", 0},
    {"list", CF_O_LIST, NULL, 0, "run nothing; print the ids of the cases, one a line", 0},
    {"words", CF_O_WORDS, NULL, 0, "run nothing; print the words that ids are made of, and what they mean", 0},
    {"verbose", CF_O_VERBOSE, NULL, 0,
     "name each case on stderr before it is run, so that a driver's words can be told "
     "apart (with --jobs 1)",
     0},
    {"worker", CF_O_WORKER, NULL, OPTION_HIDDEN, NULL, 0},
    {"custom-ops", CF_O_CUSTOM_OPS, NULL, OPTION_HIDDEN, NULL, 0},
    {"fusions", CF_O_FUSIONS, NULL, OPTION_HIDDEN, NULL, 0},
    {0},
};

static const struct argp_option cf_case_options[] = {
    {NULL, 'b', "NAME|PATH", 0, "the backend, likewise " CF_DEFAULT_BACKEND, 0},
    {NULL, 'd', "N", 0, "its device, counted from 0", 0},
    {NULL, 'o', "KEY=VALUE", 0, "an option for the plugin; may be repeated", 0},
    {"seed", CF_O_SEED, "N", 0, "the seed of the run that failed", 0},
    {"dump", CF_O_DUMP, "DIR", 0, "write inputs, result, oracle and limit there as .npy", 0},
    {0},
};

static uint32_t cf_parse_dtypes(const char *list, struct argp_state *state) {
  uint32_t set = 0;
  char copy[256], *rest = copy;
  if (snprintf(copy, sizeof copy, "%s", list) >= (int)sizeof copy) argp_error(state, "--dtype: the list is too long");
  for (char *name = strtok_r(copy, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
    graft_dtype dtype = graft_dtype_parse(name);
    if (dtype == GRAFT_DTYPE_NONE)
      argp_error(state, "--dtype: no dtype is called '%s' (f32, bf16, i64, bool, ...)", name);
    else
      set |= 1u << dt_number(dtype);
  }
  if (!set) argp_error(state, "--dtype: the list is empty; expected dtypes such as f32,bf16");
  return set;
}

static void cf_check_families(const char *list, struct argp_state *state) {
  if (!*list) argp_error(state, "--family: the list is empty; expected families such as reduction,scan");
  for (size_t length; *list; list += length + (list[length] == ',')) {
    length = strcspn(list, ",");
    if (cf_is_family(list, length)) continue;
    argp_error(state, "--family: no op is of a family '%.*s' (docs/architecture.md)", (int)length, list);
  }
}

/* Options that are given again add to what was listed before. */
static const char *cf_add_list(char *list, size_t room, const char *more, const char *option,
                               struct argp_state *state) {
  size_t length = strlen(list);
  int written = snprintf(list + length, room - length, "%s%s", length ? "," : "", more);
  if (written >= (int)(room - length)) argp_error(state, "%s: the list is too long, %zu characters", option, room - 1);
  return list;
}

static uint64_t cf_parse_number(const char *text, const char *option, uint64_t most, struct argp_state *state) {
  char *end;
  errno = 0;
  unsigned long long n = strtoull(text, &end, 10);
  if (*end || end == text || *text == '-' || errno || n > most)
    argp_error(state, "%s: '%s' is no number from 0 to %" PRIu64, option, text, most);
  return n;
}

static void cf_parse_shard(cf_selection *s, const char *text, struct argp_state *state) {
  char more;
  bool two = sscanf(text, "%u/%u%c", &s->shard, &s->shards, &more) == 2;
  if (!two || s->shard < 1 || s->shard > s->shards)
    argp_error(state, "--shard: '%s' is not I/N with 1 <= I <= N", text);
}

static error_t cf_parse(int key, char *arg, struct argp_state *state) {
  cf_arguments *a = state->input;
  cf_options *o = &a->options;
  cf_selection *s = &o->selection;
  switch (key) {
    case 'b': o->backend = arg; return 0;
    case 'd': o->device = (int32_t)cf_parse_number(arg, "-d", INT32_MAX, state); return 0;
    case 'o':
      if (o->plugin_option_count >= 15)
        argp_error(state, "-o: at most 15 options");
      else
        o->plugin_options[o->plugin_option_count++] = arg;
      return 0;
    case CF_O_LEVEL:
      if (cf_level_parse(arg) < 0) argp_error(state, "--level: '%s' is none of smoke, mustpass, full", arg);
      s->level = (cf_level)cf_level_parse(arg);
      return 0;
    case CF_O_OP: s->ops = cf_add_list(a->ops, sizeof a->ops, arg, "--op", state); return 0;
    case CF_O_CASES: a->cases = arg; return 0;
    case CF_O_FAMILY:
      cf_check_families(arg, state);
      s->families = cf_add_list(a->families, sizeof a->families, arg, "--family", state);
      return 0;
    case CF_O_DTYPE: s->dtypes |= cf_parse_dtypes(arg, state); return 0;
    case CF_O_GRAD:
      s->grad = strcmp(arg, "only") == 0 ? 1 : strcmp(arg, "no") == 0 ? -1 : 0;
      if (!s->grad) argp_error(state, "--grad: '%s' is neither only nor no", arg);
      return 0;
    case CF_O_JOBS:
      o->jobs = (uint32_t)cf_parse_number(arg, "--jobs", UINT32_MAX, state);
      if (o->jobs == 0) argp_error(state, "--jobs: 0 processes run no case");
      return 0;
    case CF_O_SHARD: cf_parse_shard(s, arg, state); return 0;
    case CF_O_WAYS:
      s->ways = cf_ways_parse(arg);
      if (!s->ways)
        argp_error(state, "--ways: '%s' has a word that is none of chosen, equal, decomposition, reference, all", arg);
      return 0;
    case CF_O_SEED: o->seed = cf_parse_number(arg, "--seed", UINT64_MAX, state); return 0;
    case CF_O_FAIL_FAST: o->fail_fast = true; return 0;
    case CF_O_WAIVERS: o->waivers = arg; return 0;
    case CF_O_REPORT: o->report = arg; return 0;
    case CF_O_EXPECT: o->expect = arg; return 0;
    case CF_O_WRITE_EXPECT: o->write_expect = arg; return 0;
    case CF_O_LIMIT:
      o->time_limit_s = (double)cf_parse_number(arg, "--time-limit", UINT32_MAX, state);
      if (o->time_limit_s == 0) argp_error(state, "--time-limit: in 0 s no case is done");
      return 0;
    case CF_O_DUMP: o->dump = arg; return 0;
    case CF_O_VERBOSE: o->verbose = true; return 0;
    case CF_O_LIST: a->list = true; return 0;
    case CF_O_WORDS: a->words = true; return 0;
    case CF_O_WORKER: a->worker = true; return 0;
    case CF_O_CUSTOM_OPS: a->custom_ops = true; return 0;
    case CF_O_FUSIONS: a->fusions = true; return 0;
    case ARGP_KEY_ARG:
      if (!a->wants_id || a->id) argp_usage(state);
      a->id = arg;
      return 0;
    case ARGP_KEY_END:
      if (a->wants_id && !a->id) argp_error(state, "which case? (an id as the report prints it)");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* Without -b: the one plugin that was found, else the reference. */
static const char *cf_default_backend(void) {
  const graft_backend_info *const *infos;
  size_t count;
  const char *only = NULL;
  if (graft_backends(&infos, &count) != GRAFT_OK) return "reference";
  for (size_t i = 0; i < count; i++) {
    if (!infos[i]->manifest || infos[i]->problem) continue;
    if (only) return "reference";
    only = infos[i]->name;
  }
  return only ? only : "reference";
}

static uint32_t cf_default_jobs(void) {
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : n > 4 ? 4 : (uint32_t)n;
}

/* ---- graft conformance ---- */

typedef struct cf_session {
  cf_report report;
  cf_cases cases;
  char today[16];
  struct timespec from;
} cf_session;

static bool cf_collect(void *context, const cf_case *c, const char *id) {
  cf_cases *cases = context;
  (void)id;
  if (cases->count == cases->capacity) {
    uint32_t capacity = cases->capacity ? 2 * cases->capacity : 1024;
    cf_case *items = realloc(cases->items, capacity * sizeof *items);
    if (!items) return cases->incomplete = true, false;
    cases->items = items, cases->capacity = capacity;
  }
  cases->items[cases->count++] = *c;
  return true;
}

static bool cf_visit_result(void *context, uint32_t index, const cf_result *result) {
  cf_session *session = context;
  cf_report *report = &session->report;
  cf_result r = *result;
  cf_report_add(report, index, session->today, &r);
  cf_report_line(report, &r);
  return !(cf_is_red(&r) && report->options->fail_fast);
}

static int cf_end(const char *text, int status) {
  fprintf(stderr, "graft conformance: %s\n", text);
  return status;
}

static int cf_usage(const char *text) {
  return cf_end(text, 2);
}

static void cf_say_nothing_matches(FILE *to, const cf_selection *s) {
  char near[256];
  if (!s->ops || cf_any_op_selected(s))
    fprintf(to, "no case matches --op, --family, --dtype, --grad, --ways and --shard\n");
  else if (cf_near_ops(s->ops, near, sizeof near))
    fprintf(to, "no case matches --op '%s'; did you mean %s?\n", s->ops, near);
  else
    fprintf(to, "no case matches --op '%s'; `graft ops` lists the ops\n", s->ops);
}

static void cf_now(char *text, size_t capacity) {
  time_t now = time(NULL);
  struct tm parts;
  gmtime_r(&now, &parts);
  strftime(text, capacity, "%Y-%m-%d %H:%M:%SZ", &parts);
}

/* Whether less than a level is run. */
static bool cf_selects(const cf_selection *s) {
  return s->ops || s->families || s->dtypes || s->grad || s->listed || s->shards;
}

/* An id that no case has is no id, or of another level or selection; it would be passed over in silence. */
static bool cf_all_listed_met(const cf_selection *s) {
  const char *idle = cf_listed_idle(s->listed);
  if (idle) fprintf(stderr, "graft conformance: --cases: no case of the selection is called '%s'\n", idle);
  return !idle;
}

static int cf_session_run(cf_session *session) {
  cf_report *report = &session->report;
  const cf_options *o = report->options;
  struct timespec to;
  cf_menu(&o->selection, cf_collect, &session->cases);
  if (!cf_all_listed_met(&o->selection)) return 2;
  if (session->cases.incomplete || !cf_report_open(report, &session->cases)) return cf_usage("no memory for the cases");
  bool holds = o->expect || o->write_expect;
  if (holds && cf_expect_open(o, &session->cases, &report->expect) != GRAFT_OK) return cf_usage(graft_last_error());
  if (cf_report_begin(report) != GRAFT_OK) return cf_usage(graft_last_error());
  clock_gettime(CLOCK_MONOTONIC, &session->from);
  int status = cf_workers_run(o, &session->cases, &report->hello, cf_visit_result, session);
  clock_gettime(CLOCK_MONOTONIC, &to);
  report->seconds = (double)(to.tv_sec - session->from.tv_sec) + (double)(to.tv_nsec - session->from.tv_nsec) * 1e-9;
  if (status != 0) {
    cf_report_abandon(report);
    return cf_usage(report->hello.text);
  }
  if (report->expect) report->vanished = cf_expect_summary(report->expect);
  cf_report_summary(report);
  if (!cf_selects(&o->selection) && report->done == report->total) cf_waivers_say_idle(report->waivers, o->waivers);
  if (report->total == 0) cf_say_nothing_matches(stdout, &o->selection);
  if (report->expect && cf_expect_write(report->expect) != GRAFT_OK) return cf_end(graft_last_error(), 1);
  if (cf_report_write(report) != GRAFT_OK) return cf_end(graft_last_error(), 1);
  return cf_report_status(report);
}

/* Counts in *context. */
static bool cf_print_id(void *context, const cf_case *c, const char *id) {
  uint32_t *count = context;
  (void)c;
  ++*count;
  return puts(id) >= 0;
}

/* What matches nothing is told where no id goes. */
static int cf_list(const cf_selection *selection) {
  uint32_t count = 0;
  cf_menu(selection, cf_print_id, &count);
  const bool met = cf_all_listed_met(selection);
  cf_listed_free(selection->listed);
  if (!met) return 2;
  if (count) return 0;
  cf_say_nothing_matches(stderr, selection);
  return 3;
}

static int cf_words(void) {
  cf_print_words();
  return 0;
}

/* A selection's lines in the place of a whole level's. */
static bool cf_would_cut(const cf_options *o) {
  bool same = o->expect && o->write_expect && strcmp(o->expect, o->write_expect) == 0;
  return same && cf_selects(&o->selection);
}

int cf_main_conformance(int argc, char **argv) {
  static const struct argp argp = {cf_conformance_options,
                                   cf_parse,
                                   "",
                                   "Runs the conformance suite on a backend: each op against the same op in long "
                                   "double, forward and backward, within "
                                   "the error that its arithmetic allows.\v"
                                   "Exit status: 0 all passed, 1 something failed, 2 usage, no such plugin, one that "
                                   "cannot be loaded or has no device, "
                                   "3 a device opened and no case was run on it, or --list has none.\n\n"
                                   "  graft conformance -b opencl --level smoke\n"
                                   "  graft conformance -b ./libchip.so --op 'aten.mm*' --level full --report out\n",
                                   NULL,
                                   NULL,
                                   NULL};
  cf_arguments a = {.options = {.time_limit_s = 60}};
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0) return 2;
  if (cf_would_cut(&a.options))
    return cf_usage("--write-expect would leave but the chosen cases in the file of --expect; name another one");
  if (!a.options.backend) a.options.backend = cf_default_backend();
  if (a.worker) return cf_worker_main(&a.options);
  if (a.custom_ops) return cf_custom_tell(&a.options);
  if (a.fusions) return cf_fusions_tell(&a.options);
  if (!a.words && cf_custom_fetch(&a.options) != GRAFT_OK) return cf_usage(graft_last_error());
  if (a.cases && cf_listed_read(a.cases, &a.options.selection.listed) != GRAFT_OK) return cf_usage(graft_last_error());
  if (a.list) return cf_list(&a.options.selection);
  if (a.words) return cf_words();
  if (!a.options.jobs) a.options.jobs = cf_default_jobs();
  cf_session *session = calloc(1, sizeof *session);
  if (!session) return cf_usage("no memory");
  session->report.options = &a.options;
  cf_now(session->report.began, sizeof session->report.began);
  snprintf(session->today, sizeof session->today, "%.10s", session->report.began);
  bool readable = !a.options.waivers || cf_waivers_read(a.options.waivers, &session->report.waivers) == GRAFT_OK;
  int status = readable ? cf_session_run(session) : cf_usage(graft_last_error());
  cf_report_close(&session->report);
  free(session->cases.items);
  free(session);
  cf_listed_free(a.options.selection.listed);
  return status;
}

/* ---- graft case ---- */

static int cf_case_failed(const char *text) {
  fprintf(stderr, "graft case: %s\n", text);
  return 2;
}

int cf_main_case(int argc, char **argv) {
  static const struct argp argp = {
      cf_case_options,
      cf_parse,
      "ID",
      "Runs one case of the conformance suite again, in this process, so that a debugger can follow it.\v"
      "  graft case aten.mm.default/f32/33x17,17x129/transposed/uniform/0 -b opencl --dump out\n",
      NULL,
      NULL,
      NULL};
  cf_arguments a = {.options = {.time_limit_s = 60}, .wants_id = true};
  cf_backend backend = {0};
  cf_result r;
  cf_case c;
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &a) != 0) return 2;
  if (!a.options.backend) a.options.backend = cf_default_backend();
  bool found = cf_case_find(a.id, &c), opened = false;
  if (!found) { /* one of the plugin's own ops, perhaps */
    opened = cf_backend_open(&a.options, &backend) == GRAFT_OK;
    if (opened && cf_custom_take() != GRAFT_OK) return cf_case_failed(graft_last_error());
    found = opened && cf_case_find(a.id, &c);
  }
  if (!found) return cf_case_failed("no case has this id (`graft conformance --list` prints ids)");
  if (a.options.dump && cf_folder("--dump", a.options.dump) != GRAFT_OK) return cf_case_failed(graft_last_error());
  if (!opened && cf_backend_open(&a.options, &backend) != GRAFT_OK) return cf_case_failed(graft_last_error());
  if (a.options.dump && cf_dump_begin(a.options.dump) != GRAFT_OK) return cf_case_failed(graft_last_error());
  cf_run(&backend, &c, &r);
  printf("%s  %s\n", cf_result_word(&r), a.id);
  printf("device %s, way %s%s, error %.6g, error/limit %.4g, %.1f ms\n", graft_device_text(backend.device),
         dsp_route_name((dsp_route)r.route), r.fallback ? " (left the device)" : "", r.error, r.ratio, r.milliseconds);
  if (r.text[0]) printf("%s\n", r.text);
  if (cf_dump_failed()) return 1;
  if (a.options.dump) printf("dumped to %s\n", a.options.dump);
  if (r.outcome == CF_UNSUPPORTED || r.outcome == CF_ABSENT) return 3;
  return r.outcome == CF_PASS ? 0 : 1;
}
