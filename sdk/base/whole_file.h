/* Files that are whole or not there: written beside their place under another name, brought to the disk, renamed. What
 * a link leads to is written, and what is no regular file is not. */
#ifndef GRAFT_SDK_WHOLE_FILE_H
#define GRAFT_SDK_WHOLE_FILE_H

#include <stdio.h>

#include "graft/error.h"

/* A file that takes the place of `path`, which is the caller's, when it is closed. */
typedef struct file_part {
  const char *path;
  char *target, *part; /* its place, and the name under which it is written */
  FILE *file;          /* may be written to directly */
  int error;           /* the first one of file_write */
} file_part;

/* Opens it where it could be put: errors name the path and what is wrong with it. */
graft_status file_open(const char *path, file_part *f);
void file_write(file_part *f, const void *data, size_t bytes);
/* Puts it in its place where all was written; removes it otherwise, and says why. */
graft_status file_close(file_part *f);
/* Removes it: what was there stays. */
void file_discard(file_part *f);

#endif
