#include <sys/ioctl.h>
#include <unistd.h>

#include "conformance/report/report.h"
#include "conformance/run/case.h"

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
void cf_report_line(const cf_report *report, const cf_result *r) {
  bool bad = cf_is_red(r);
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
  printf("%-14s %7llu %8llu %7llu %11llu %9llu %7llu %12llu %7llu\n", name, (unsigned long long)t->run,
         (unsigned long long)t->passed, (unsigned long long)t->failed, (unsigned long long)t->decomposed,
         (unsigned long long)t->fallback, (unsigned long long)t->host, (unsigned long long)t->unsupported,
         (unsigned long long)t->waived);
}

void cf_report_summary(const cf_report *report) {
  if (cf_on_terminal()) printf("\r\033[K");
  printf("\n%s  %s\n", report->hello.device, report->hello.name);
  printf("%-14s %7s %8s %7s %11s %9s %7s %12s %7s\n", "family", "run", "passed", "failed", "decomposed", "fallback",
         "host", "unsupported", "waived");
  for (uint32_t i = 0; i < report->family_count; i++) {
    const cf_family *family = &report->families[i];
    if (family->tally.run + family->tally.unsupported) cf_tally_print(family->name, &family->tally);
  }
  cf_tally_print("all", &report->all);
  printf("%.1f s", report->seconds);
  const cf_statistics *s = &report->hello.statistics;
  if (s->known) {
    printf("; %llu programs built", (unsigned long long)s->programs_built);
    if (s->programs_with_header)
      printf(" (%llu with the driver's long header)", (unsigned long long)s->programs_with_header);
    printf(", %llu loaded, %.1f s in builds, %llu launches", (unsigned long long)s->programs_loaded,
           (double)s->build_nanoseconds * 1e-9, (unsigned long long)s->launches);
  }
  printf("\n");
  uint32_t bad = report->hello.bad_endings;
  if (bad)
    printf("%u worker process%s ended badly, after %s last case: %s\n", bad, bad == 1 ? "" : "es",
           bad == 1 ? "its" : "their", report->hello.text);
  if (report->done < report->total && !report->options->fail_fast)
    printf("%u of %u cases were not run: no worker process could be started for them\n", report->total - report->done,
           report->total);
  if (report->total && cf_report_status(report) == 3)
    printf("no case was run on the plugin: its op tables serve none of the %u cases selected\n", report->total);
  char verdict[160];
  cf_report_verdict(report, verdict, sizeof verdict);
  printf("%s\n", verdict);
}
