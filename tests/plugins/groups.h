/* What the plugin of groups notes, as an extension of its own. */
#ifndef GRAFT_TESTS_GROUPS_H
#define GRAFT_TESTS_GROUPS_H

#include "graft/abi/plugin.h"

#define GROUPS_SEEN "groups.seen"

typedef struct groups_seen {
  uint32_t queries, nodes, seen;              /* the latest one's */
  uint32_t compiled, inputs, outputs, inside; /* likewise */
  uint32_t runs, destroyed;
} groups_seen;

typedef struct groups_api {
  size_t struct_size;
  groups_seen *seen;
} groups_api;

#endif
