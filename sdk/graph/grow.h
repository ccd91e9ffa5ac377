/* Arrays that grow at their end. Internal to graph/. */
#ifndef GRAFT_SDK_GRAPH_GROW_H
#define GRAFT_SDK_GRAPH_GROW_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* An array that grows by doubling: room for one more item behind `count`. OUT_OF_MEMORY with a text. */
graft_status gr_grow(void **items, uint32_t count, size_t item_bytes);
/* A copy that grows so; NULL: no host memory. */
void *gr_grown_copy(const void *items, uint32_t count, size_t item_bytes);

#endif
