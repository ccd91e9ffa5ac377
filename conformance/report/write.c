/* The files of a report. */
#include <unistd.h>

#include "conformance/report/file.h"
#include "conformance/report/report.h"

graft_status cf_report_begin(const cf_report *report) {
  return report->options->report ? cf_folder("--report", report->options->report) : GRAFT_OK;
}

void cf_report_abandon(const cf_report *report) {
  if (report->options->report) rmdir(report->options->report); /* unless there is something in it */
}

graft_status cf_report_write(cf_report *report) {
  static const struct {
    const char *name;
    void (*write)(FILE *f, const void *report);
  } files[] = {{"results.jsonl", cf_write_json}, {"junit.xml", cf_write_junit}, {"report.html", cf_write_html}};
  const char *folder = report->options->report;
  char path[1024];
  if (!folder) return GRAFT_OK;
  report->fusions = cf_fusions_fetch(report->options);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
    graft_status s = cf_file_write(path, files[i].write, report);
    if (s != GRAFT_OK) return s;
  }
  printf("report: %s/report.html\n", folder);
  return GRAFT_OK;
}
