#include "conformance/report/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static FILE *cf_open_part(const char *path, char *part, size_t capacity) {
  snprintf(part, capacity, "%s.%ld.part", path, (long)getpid());
  return fopen(part, "w");
}

graft_status cf_file_write(const char *path, void (*write)(FILE *, const void *), const void *context) {
  char part[1100];
  FILE *f = cf_open_part(path, part, sizeof part);
  if (!f) return err_set(GRAFT_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  errno = 0;
  write(f, context);
  bool good = fflush(f) == 0 && !ferror(f);
  if (fclose(f) == 0 && good && rename(part, path) == 0) return GRAFT_OK;
  err_set(GRAFT_INTERNAL, "%s can't be written: %s", path, errno ? strerror(errno) : "input/output error");
  remove(part);
  return GRAFT_INTERNAL;
}

graft_status cf_file_probe(const char *option, const char *path) {
  char part[1100];
  FILE *f = cf_open_part(path, part, sizeof part);
  if (!f) return err_set(GRAFT_INVALID_ARGUMENT, "%s %s: %s", option, path, strerror(errno));
  fclose(f);
  remove(part);
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
