/* graft bench: how long ops take on a backend. */
#include <argp.h>
#include <cjson/cJSON.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"

typedef struct options {
  bench_target target;
  const char *op;
  bool json, large;
} options;

enum { KEY_LIMIT = 256, KEY_LARGE };

static error_t parse(int key, char *argument, struct argp_state *state) {
  options *o = state->input;
  switch (key) {
    case 'b': o->target.backend = argument; return 0;
    case 'd': o->target.device = cli_device_number(argument, state); return 0;
    case KEY_LIMIT: {
      char *end;
      o->target.limit_s = strtod(argument, &end);
      if (*end || end == argument || !(o->target.limit_s > 0 && o->target.limit_s <= 86400))
        argp_error(state, "--time-limit: '%s' is no number of seconds", argument);
      return 0;
    }
    case 'o': o->op = cli_only_pattern(o->op, argument, state); return 0;
    case 'j': o->json = true; return 0;
    case KEY_LARGE: o->large = true; return 0;
    case ARGP_KEY_ARG: argp_usage(state); return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

/* A glob over "aten::mm", "aten.mm" and "aten.mm.default". */
static bool selected(const char *glob, const char *call) {
  char name[128], dotted[160];
  if (!glob) return true;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(call, " "), call);
  if (!fnmatch(glob, name, 0)) return true;
  char *colons = strstr(name, "::");
  if (!colons) return false;
  snprintf(dotted, sizeof dotted, "%.*s.%s", (int)(colons - name), name, colons + 2);
  if (!fnmatch(glob, dotted, 0)) return true;
  if (!strchr(colons + 2, '.')) strcat(dotted, ".default");
  return !fnmatch(glob, dotted, 0);
}

static const char *rate_of(const bench_result *r, double *rate) {
  *rate = (r->operations > 0 ? r->operations : r->bytes) / r->median_s * 1e-9;
  return r->operations > 0 ? "GFLOP/s" : "GB/s";
}

/* 12.3 us, 4.56 ms: three digits that mean something. */
static void show_time(double seconds, char text[16]) {
  if (seconds < 1e-3)
    snprintf(text, 16, "%.2f us", seconds * 1e6);
  else if (seconds < 1)
    snprintf(text, 16, "%.2f ms", seconds * 1e3);
  else
    snprintf(text, 16, "%.2f s", seconds);
}

static void print_row(const bench_row *row, const bench_result *r) {
  char median[16], first[16];
  if (r->status != GRAFT_OK) {
    printf("%-62s  %s: %.120s\n", row->call, graft_status_name(r->status), r->problem);
    return;
  }
  double rate;
  const char *unit = rate_of(r, &rate);
  show_time(r->median_s, median);
  show_time(r->first_s, first);
  printf("%-62s  %-13s %10s %9.2f %-7s %11s\n", row->call, r->way, median, rate, unit, first);
}

static cJSON *json_row(const bench_row *row, const bench_result *r) {
  cJSON *item = cJSON_CreateObject();
  cJSON_AddStringToObject(item, "call", row->call);
  cJSON_AddStringToObject(item, "status", graft_status_name(r->status));
  if (r->status != GRAFT_OK) {
    cJSON_AddStringToObject(item, "problem", r->problem);
    return item;
  }
  double rate;
  cJSON_AddStringToObject(item, "way", r->way);
  cJSON_AddNumberToObject(item, "median_seconds", r->median_s);
  cJSON_AddNumberToObject(item, "best_seconds", r->best_s);
  cJSON_AddNumberToObject(item, "first_seconds", r->first_s);
  cJSON_AddNumberToObject(item, "rounds", r->rounds);
  cJSON_AddNumberToObject(item, "calls_per_round", r->calls);
  cJSON_AddNumberToObject(item, "bytes", r->bytes);
  if (r->operations > 0) cJSON_AddNumberToObject(item, "operations", r->operations);
  const char *unit = rate_of(r, &rate);
  cJSON_AddNumberToObject(item, "rate", rate);
  cJSON_AddStringToObject(item, "unit", unit);
  return item;
}

/* Whether the row shows a fault: one without an implementation, or that takes too long, does not. */
static bool is_fault(graft_status status) {
  return status != GRAFT_OK && status != GRAFT_UNIMPLEMENTED && status != GRAFT_NOT_READY;
}

/* Returns how many rows were run, or -1 when one failed. */
static int run_rows(const options *o, bench_worker *worker, cJSON *list) {
  int run = 0;
  bool failed = false;
  for (uint32_t i = 0; i < bench_row_count(); i++) {
    bench_row row = bench_row_at(i);
    if ((row.large && !o->large) || !selected(o->op, row.call)) continue;
    bench_result result;
    bench_worker_run(worker, i, &result);
    failed = failed || is_fault(result.status);
    run += result.status == GRAFT_OK;
    if (list)
      cJSON_AddItemToArray(list, json_row(&row, &result));
    else
      print_row(&row, &result);
    fflush(stdout);
  }
  return failed ? -1 : run;
}

static void print_head(const bench_hello *hello) {
  printf("%s  %s\nMedians. Rates count each argument and result once, or two operations a term of a product.\n\n",
         hello->device, hello->name);
  printf("%-62s  %-13s %10s %17s %11s\n", "call", "run by", "time", "rate", "first call");
}

static void print_json(cJSON *list) {
  char *text = cJSON_Print(list);
  puts(text ? text : "[]");
  free(text);
  cJSON_Delete(list);
}

int cli_bench(int argc, char **argv) {
  static const struct argp_option rows[] = {
      {"backend", 'b', "NAME|PATH", 0, "a backend's name or the path of its library (default: reference)", 0},
      {"device", 'd', "N", 0, "its device, counted from 0", 0},
      {"op", 'o', "GLOB", 0, "only these ops: 'aten.mm*', 'aten::sum.*'", 0},
      {"time-limit", KEY_LIMIT, "S", 0, "seconds a call and its repetitions may take (default: 20)", 0},
      {"large", KEY_LARGE, NULL, 0, "also calls that are too large for a processor", 0},
      {"json", 'j', NULL, 0, "one JSON array on stdout", 0},
      {0}};
  static const struct argp argp = {
      rows,
      parse,
      NULL,
      "Times ops on a backend: medians of repeated rounds of calls with results that are there "
      "already, each round up to one synchronize. The first call builds what it needs. Slow calls "
      "are repeated less, and given up at the time limit.",
      NULL,
      NULL,
      NULL};
  options o = {.target = {.backend = "reference", .limit_s = 20}};
  if (argp_parse(&argp, argc, argv, 0, NULL, &o)) return CLI_USAGE;
  bench_worker worker = {.target = o.target};
  bench_hello hello = {0};
  if (!bench_worker_begin(&worker, &hello)) {
    fprintf(stderr, "graft bench: %s\n", hello.problem);
    return CLI_USAGE;
  }
  cJSON *list = o.json ? cJSON_CreateArray() : NULL;
  if (!list) print_head(&hello);
  int run = run_rows(&o, &worker, list);
  bench_worker_end(&worker);
  if (list) print_json(list);
  if (run == 0)
    fprintf(stderr, "graft bench: nothing was timed%s%s\n", o.op ? ": no row matches " : "", o.op ? o.op : "");
  return run < 0 ? CLI_FAILED : run ? CLI_OK : CLI_NOTHING;
}
