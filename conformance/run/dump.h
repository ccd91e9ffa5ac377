/* Arrays as .npy files (format 1.0): floats as f8, complex as c16, everything else as i8 (int64). */
#ifndef GRAFT_CF_DUMP_H
#define GRAFT_CF_DUMP_H

#include "conformance/judge/array.h"

/* Removes what an earlier case left in the folder: files that are called as cf_dump calls them, nothing else. */
graft_status cf_dump_begin(const char *folder);

/* Writes `folder`/`name`.npy, the name with a number behind it. Nothing where folder is NULL. */
void cf_dump(const char *folder, const char *name, uint32_t number, const cf_array *a);

/* Whether a file could not be written; it is said on stderr, and nothing of it is left. */
bool cf_dump_failed(void);

#endif
