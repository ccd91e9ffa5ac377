#include "conformance/report/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

typedef struct cf_target {
  char path[PATH_MAX], part[PATH_MAX + 32]; /* where links lead, and the name that it is written under */
} cf_target;

static graft_status cf_unfit(const char *option, const char *path, const char *why) {
  return err_set(GRAFT_INVALID_ARGUMENT, "%s%s%s: %s", option, *option ? " " : "", path, why);
}

/* Renaming would put a file in the place of a link, a pipe or a device. */
static graft_status cf_open_target(const char *option, const char *path, cf_target *to, FILE **f) {
  struct stat info;
  bool there = stat(path, &info) == 0;
  if (there && !S_ISREG(info.st_mode)) return cf_unfit(option, path, "not a regular file");
  if (there && !realpath(path, to->path)) return cf_unfit(option, path, strerror(errno));
  if (!there && snprintf(to->path, sizeof to->path, "%s", path) >= (int)sizeof to->path)
    return cf_unfit(option, path, strerror(ENAMETOOLONG));
  snprintf(to->part, sizeof to->part, "%s.%ld.part", to->path, (long)getpid());
  *f = fopen(to->part, "w");
  return *f ? GRAFT_OK : cf_unfit(option, path, strerror(errno));
}

graft_status cf_file_write(const char *path, void (*write)(FILE *, const void *), const void *context) {
  cf_target to;
  FILE *f;
  graft_status status = cf_open_target("", path, &to, &f);
  if (status != GRAFT_OK) return status;
  errno = 0;
  write(f, context);
  bool good = fflush(f) == 0 && !ferror(f);
  if (fclose(f) == 0 && good && rename(to.part, to.path) == 0) return GRAFT_OK;
  err_set(GRAFT_INTERNAL, "%s can't be written: %s", path, errno ? strerror(errno) : "input/output error");
  remove(to.part);
  return GRAFT_INTERNAL;
}

graft_status cf_file_probe(const char *option, const char *path) {
  cf_target to;
  FILE *f;
  graft_status status = cf_open_target(option, path, &to, &f);
  if (status != GRAFT_OK) return status;
  fclose(f);
  remove(to.part);
  return GRAFT_OK;
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
