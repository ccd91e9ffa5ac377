/* Cases by a file of ids, one a line, as --list prints them. */
#ifndef GRAFT_CF_LISTED_H
#define GRAFT_CF_LISTED_H

#include <stdbool.h>

#include "graft/error.h"

typedef struct cf_listed cf_listed;

/* INVALID_ARGUMENT where the file can't be read or has no id. */
graft_status cf_listed_read(const char *path, cf_listed **listed);
/* Whether the id stands in the file; it is then one that some case has. */
bool cf_listed_has(cf_listed *listed, const char *id);
/* The first id, in the order of their texts, that nobody has asked about; NULL: there is none. */
const char *cf_listed_idle(const cf_listed *listed);
void cf_listed_free(cf_listed *listed);

#endif
