#include "conformance/report/file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/whole_file.h"

graft_status cf_file_write(const char *path, void (*write)(FILE *, const void *), const void *context) {
  file_part f;
  graft_status status = file_open(path, &f);
  if (status != GRAFT_OK) return status;
  write(f.file, context);
  return file_close(&f);
}

graft_status cf_file_probe(const char *option, const char *path) {
  file_part f;
  graft_status status = file_open(path, &f);
  if (status != GRAFT_OK) return err_set(status, "%s %s", option, graft_last_error());
  file_discard(&f);
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
