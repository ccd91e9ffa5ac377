/* A table of rows. Each family's folder has one or more; families.c lists them. */
#ifndef GRAFT_SDK_OP_TABLE_H
#define GRAFT_SDK_OP_TABLE_H

#include "ops/core/op.h"

typedef struct op_table {
  const char *file; /* the source that it stands in: the tests compare its folder with the family column */
  const op_def *defs;
  uint32_t count;
} op_table;

#define OP_TABLE(name, defs)        \
  extern const op_table ops_##name; \
  const op_table ops_##name = {__FILE__, defs, sizeof(defs) / sizeof((defs)[0])};

/* What stands above core/ and is needed here: the tables of all families, NULL ends the list. wiring.c fills it in. */
typedef struct op_hooks_table {
  const op_table *const *tables;
} op_hooks_table;
extern const op_hooks_table op_hooks;

#endif
