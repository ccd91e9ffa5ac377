/* What is told on the terminal, and the counts that all reports share. */
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "conformance/cf.h"

const char *cf_outcome_name(int outcome) {
  static const char *const names[] = {"pass", "fail", "unsupported", "crash", "timeout", "waived"};
  return names[outcome];
}

const char *cf_result_word(const cf_result *r) {
  if (r->outcome == CF_CRASH || r->outcome == CF_TIMEOUT) return "fail";
  if (r->outcome != CF_PASS) return cf_outcome_name(r->outcome);
  if (r->c.mode == CF_ADJOINT) return "pass";
  if (r->fallback || r->route == DSP_ROUTE_REFERENCE) return "fallback";
  return r->route == DSP_ROUTE_DECOMPOSITION ? "decomposed" : "pass";
}

void cf_tally_add(cf_tally *t, const cf_result *r) {
  bool failed = r->outcome == CF_FAIL || r->outcome == CF_CRASH || r->outcome == CF_TIMEOUT;
  if (r->outcome == CF_UNSUPPORTED) {
    t->unsupported++;
    return;
  }
  t->run++;
  if (failed)
    t->failed++;
  else if (r->outcome == CF_WAIVED)
    t->waived++;
  else
    t->passed++;
  if (r->outcome != CF_PASS) return;
  const char *word = cf_result_word(r);
  if (strcmp(word, "fallback") == 0) t->fallback++;
  if (strcmp(word, "decomposed") == 0) t->decomposed++;
}

int cf_report_status(const cf_report *report) {
  if (report->all.failed || report->done < report->total) return 1;
  bool nothing = report->slots_selected ? report->executed == 0 : report->all.run == 0;
  return nothing ? 3 : 0;
}

void cf_reproduce(const cf_report *report, const cf_result *r, char *text, size_t capacity) {
  char id[CF_ID_BYTES] = "";
  const cf_options *o = report->options;
  cf_case_id(&r->c, id);
  int n = snprintf(text, capacity, "graft case %s -b %s", id, o->backend);
  if (o->device && n > 0 && (size_t)n < capacity) n += snprintf(text + n, capacity - (size_t)n, " -d %d", o->device);
  for (uint32_t i = 0; i < o->plugin_option_count && (size_t)n < capacity; i++)
    n += snprintf(text + n, capacity - (size_t)n, " -o %s", o->plugin_options[i]);
  if (o->seed && (size_t)n < capacity)
    snprintf(text + n, capacity - (size_t)n, " --seed %llu", (unsigned long long)o->seed);
}

static bool cf_on_terminal(void) {
  return isatty(STDOUT_FILENO);
}

static int cf_terminal_width(void) {
  struct winsize size;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 40 ? size.ws_col : 80;
}

static void cf_print_failure(const cf_report *report, const cf_result *r) {
  char command[512];
  cf_reproduce(report, r, command, sizeof command);
  printf("%s%s %s\n", cf_on_terminal() ? "\r\033[K" : "", cf_outcome_name(r->outcome), r->text);
  printf("     %s\n", command);
}

/* On a terminal one line that moves; elsewhere a line at each twentieth. */
void cf_report_line(cf_report *report, const cf_result *r) {
  bool bad = r->outcome == CF_FAIL || r->outcome == CF_CRASH || r->outcome == CF_TIMEOUT;
  if (bad && report->all.failed <= 50) cf_print_failure(report, r);
  if (bad && report->all.failed == 51) printf("further failures are in the report and in the count only\n");
  if (cf_on_terminal()) {
    char id[CF_ID_BYTES] = "", line[512];
    if (report->done % 4 && report->done != report->total) return;
    cf_case_id(&r->c, id);
    snprintf(line, sizeof line, "%5u/%u  %llu failed  %s", report->done, report->total,
             (unsigned long long)report->all.failed, id);
    printf("\r\033[K%.*s", cf_terminal_width() - 1, line);
    fflush(stdout);
    return;
  }
  uint32_t part = report->total / 20 ? report->total / 20 : 1;
  if (report->done % part && report->done != report->total) return;
  printf("%5u of %u cases, %llu failed\n", report->done, report->total, (unsigned long long)report->all.failed);
  fflush(stdout);
}

static void cf_tally_print(const char *name, const cf_tally *t) {
  printf("%-14s %7llu %8llu %7llu %11llu %9llu %12llu %7llu\n", name, (unsigned long long)t->run,
         (unsigned long long)t->passed, (unsigned long long)t->failed, (unsigned long long)t->decomposed,
         (unsigned long long)t->fallback, (unsigned long long)t->unsupported, (unsigned long long)t->waived);
}

void cf_report_summary(const cf_report *report) {
  if (cf_on_terminal()) printf("\r\033[K");
  printf("\n%s  %s\n", report->hello.device, report->hello.name);
  printf("%-14s %7s %8s %7s %11s %9s %12s %7s\n", "family", "run", "passed", "failed", "decomposed", "fallback",
         "unsupported", "waived");
  for (uint32_t i = 0; i < cf_family_count; i++) {
    const cf_tally *t = &report->families[i];
    if (t->run + t->unsupported) cf_tally_print(cf_families[i]->name, t);
  }
  cf_tally_print("all", &report->all);
  printf("%.1f s", report->seconds);
  const cf_hello *h = &report->hello;
  if (h->has_statistics)
    printf("; %llu programs built, %llu loaded, %.1f s in builds, %llu launches", (unsigned long long)h->programs_built,
           (unsigned long long)h->programs_loaded, (double)h->build_nanoseconds * 1e-9,
           (unsigned long long)h->launches);
  printf("\n");
  if (report->done < report->total && !report->options->fail_fast)
    printf("%u of %u cases were not run: no worker process could be started for them\n", report->total - report->done,
           report->total);
  if (cf_report_status(report) == 3)
    printf("no case was run on the plugin: its op tables serve none of the %u cases selected\n", report->total);
}
