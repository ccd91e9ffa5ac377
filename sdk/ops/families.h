/* All that libgraft knows about ops. */
#ifndef GRAFT_SDK_FAMILIES_H
#define GRAFT_SDK_FAMILIES_H

#include "ops/core/table.h"

/* The tables of all families; NULL ends the list. */
extern const op_table *const ops_families[];

#endif
