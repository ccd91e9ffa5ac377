#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance/report/report.h"

static graft_status cf_write_one(const cf_report *report, const char *name, void (*write)(FILE *, const cf_report *)) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", report->options->report, name);
  FILE *f = fopen(path, "w");
  if (!f) return err_set(GRAFT_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  write(f, report);
  return fclose(f) == 0 ? GRAFT_OK : err_set(GRAFT_INTERNAL, "%s: %s", path, strerror(errno));
}

graft_status cf_report_write(const cf_report *report) {
  const char *folder = report->options->report;
  if (!folder) return GRAFT_OK;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return err_set(GRAFT_INVALID_ARGUMENT, "--report %s: %s", folder, strerror(errno));
  graft_status s = cf_write_one(report, "results.jsonl", cf_write_json);
  if (s == GRAFT_OK) s = cf_write_one(report, "junit.xml", cf_write_junit);
  if (s == GRAFT_OK) s = cf_write_one(report, "report.html", cf_write_html);
  if (s == GRAFT_OK) printf("report: %s/report.html\n", folder);
  return s;
}
