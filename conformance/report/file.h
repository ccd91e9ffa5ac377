/* Files that appear when they are whole. */
#ifndef GRAFT_CF_FILE_H
#define GRAFT_CF_FILE_H

#include <stdio.h>

#include "graft/runtime.h"

/* Writes a file under another name and renames it. What a link leads to is written; what is no regular file, not. */
graft_status cf_file_write(const char *path, void (*write)(FILE *f, const void *context), const void *context);
/* Whether it can be written, said before there is anything to write; `option` is what asked for it. */
graft_status cf_file_probe(const char *option, const char *path);
/* Makes a folder to write files into, or takes one that is there; `option` is what asked for it. */
graft_status cf_folder(const char *option, const char *folder);

#endif
