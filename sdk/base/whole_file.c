#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/str.h"

static graft_status cant(const char *path, int error) {
  return err_set(GRAFT_INVALID_ARGUMENT, "%s can't be written: %s", path, strerror(error ? error : EIO));
}

/* Where a link leads: renaming would put a file in the place of the link. */
static char *target_of(const char *path) {
  struct stat info;
  if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode)) return str_new("%s", path);
  return realpath(path, NULL);
}

static graft_status no_target(const char *path, int error) {
  char leads_to[PATH_MAX];
  ssize_t length = error == ENOENT ? readlink(path, leads_to, sizeof leads_to) : -1;
  if (length < 0) return cant(path, error);
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "%s can't be written: it is a symbolic link to %.*s, which is not there; remove it, or make that file",
                 path, (int)length, leads_to);
}

static void give_back(file_part *f) {
  free(f->target);
  free(f->part);
}

/* Two threads may write one file, and a process that was killed may have had this one's number. */
static char *name_beside(const char *target) {
  static _Atomic(uint32_t) last;
  return str_new("%s.%ld-%" PRIu32 ".part", target, (long)getpid(), atomic_fetch_add(&last, 1));
}

static void open_part(file_part *f) {
  do {
    free(f->part);
    f->part = name_beside(f->target);
    f->file = f->part ? fopen(f->part, "wxe") : NULL;
  } while (f->part && !f->file && errno == EEXIST);
}

graft_status file_open(const char *path, file_part *f) {
  struct stat info;
  *f = (file_part){.path = path};
  const bool is_there = stat(path, &info) == 0;
  if (is_there && !S_ISREG(info.st_mode)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "%s can't be written: it is there and no regular file", path);
  }
  f->target = target_of(path);
  if (!f->target) return no_target(path, errno);
  open_part(f);
  if (f->file) {
    if (is_there) (void)!fchmod(fileno(f->file), info.st_mode & 0777); /* who may read it stays as it was */
    return GRAFT_OK;
  }
  graft_status status = cant(path, errno);
  give_back(f);
  return status;
}

void file_write(file_part *f, const void *data, size_t bytes) {
  errno = 0;
  if (!f->error && bytes && fwrite(data, 1, bytes, f->file) != bytes) f->error = errno ? errno : EIO;
}

/* Leaves errno where it fails. */
static bool put_in_place(file_part *f) {
  errno = 0;
  bool good = !f->error && fflush(f->file) == 0 && !ferror(f->file) && fsync(fileno(f->file)) == 0;
  const int error = errno;
  good = fclose(f->file) == 0 && good;
  if (good) return rename(f->part, f->target) == 0;
  if (error) errno = error;
  return false;
}

void file_discard(file_part *f) {
  fclose(f->file);
  unlink(f->part);
  give_back(f);
}

graft_status file_close(file_part *f) {
  graft_status status = put_in_place(f) ? GRAFT_OK : cant(f->path, f->error ? f->error : errno);
  if (status) unlink(f->part);
  give_back(f);
  return status;
}
