/* Files that are whole or not there: written beside their place under another name, brought to the disk, renamed. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "graph/file.h"

static graft_status cant(const char *path, int error) {
  return err_set(GRAFT_INVALID_ARGUMENT, "%s can't be written: %s", path, strerror(error ? error : EIO));
}

/* Where a link leads: renaming would put a file in the place of the link. */
static char *target_of(const char *path) {
  struct stat info;
  if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode)) return str_new("%s", path);
  return realpath(path, NULL);
}

static void give_back(gr_temporary *t) {
  free(t->target);
  free(t->part);
}

/* Two threads may write one file, and a process that was killed may have had this one's number. */
static char *name_beside(const char *target) {
  static _Atomic(uint32_t) last;
  return str_new("%s.%ld-%" PRIu32 ".part", target, (long)getpid(), atomic_fetch_add(&last, 1));
}

static void open_part(gr_temporary *t) {
  do {
    free(t->part);
    t->part = name_beside(t->target);
    t->file = t->part ? fopen(t->part, "wxe") : NULL;
  } while (t->part && !t->file && errno == EEXIST);
}

graft_status gr_temporary_open(const char *path, gr_temporary *t) {
  struct stat info;
  *t = (gr_temporary){.path = path};
  const bool is_there = stat(path, &info) == 0;
  if (is_there && !S_ISREG(info.st_mode)) {
    return err_set(GRAFT_INVALID_ARGUMENT, "%s can't be written: it is there and no regular file", path);
  }
  t->target = target_of(path);
  if (!t->target) return cant(path, errno);
  open_part(t);
  if (t->file) {
    if (is_there) (void)!fchmod(fileno(t->file), info.st_mode & 0777); /* who may read it stays as it was */
    return GRAFT_OK;
  }
  graft_status status = cant(path, errno);
  give_back(t);
  return status;
}

void gr_temporary_write(gr_temporary *t, const void *data, size_t bytes) {
  errno = 0;
  if (!t->error && bytes && fwrite(data, 1, bytes, t->file) != bytes) t->error = errno ? errno : EIO;
}

/* Leaves errno where it fails. */
static bool put_in_place(gr_temporary *t) {
  errno = 0;
  bool good = !t->error && fflush(t->file) == 0 && fsync(fileno(t->file)) == 0;
  const int error = errno;
  good = fclose(t->file) == 0 && good;
  if (good) return rename(t->part, t->target) == 0;
  if (error) errno = error;
  return false;
}

graft_status gr_temporary_close(gr_temporary *t, graft_status status) {
  if (status) {
    fclose(t->file);
  } else if (!put_in_place(t)) {
    status = cant(t->path, t->error ? t->error : errno);
  }
  if (status) unlink(t->part);
  give_back(t);
  return status;
}
