#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/report/report.h"

/* Under another name until it is whole. */
static graft_status cf_write_one(const cf_report *report, const char *name, void (*write)(FILE *, const cf_report *)) {
  char path[1024], part[1100];
  snprintf(path, sizeof path, "%s/%s", report->options->report, name);
  snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
  FILE *f = fopen(part, "w");
  if (!f) return err_set(GRAFT_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  errno = 0;
  write(f, report);
  bool good = fflush(f) == 0 && !ferror(f);
  if (fclose(f) == 0 && good && rename(part, path) == 0) return GRAFT_OK;
  err_set(GRAFT_INTERNAL, "%s can't be written: %s", path, errno ? strerror(errno) : "input/output error");
  remove(part);
  return GRAFT_INTERNAL;
}

graft_status cf_folder(const char *option, const char *folder) {
  struct stat info;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s %s: %s", option, folder, strerror(errno));
  if (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))
    return err_set(GRAFT_INVALID_ARGUMENT, "%s %s: not a folder", option, folder);
  if (access(folder, W_OK | X_OK) != 0)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s %s: %s", option, folder, strerror(errno));
  return GRAFT_OK;
}

graft_status cf_report_begin(const cf_report *report) {
  return report->options->report ? cf_folder("--report", report->options->report) : GRAFT_OK;
}

void cf_report_abandon(const cf_report *report) {
  if (report->options->report) rmdir(report->options->report); /* unless there is something in it */
}

graft_status cf_report_write(const cf_report *report) {
  const char *folder = report->options->report;
  if (!folder) return GRAFT_OK;
  graft_status s = cf_write_one(report, "results.jsonl", cf_write_json);
  if (s == GRAFT_OK) s = cf_write_one(report, "junit.xml", cf_write_junit);
  if (s == GRAFT_OK) s = cf_write_one(report, "report.html", cf_write_html);
  if (s == GRAFT_OK) printf("report: %s/report.html\n", folder);
  return s;
}
