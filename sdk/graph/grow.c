/* See grow.h. */
#include "graph/grow.h"

#include <stdlib.h>
#include <string.h>

graft_status gr_grow(void **items, uint32_t count, size_t item_bytes) {
  if (count && (count < 8 || count & (count - 1))) return GRAFT_OK; /* there is room up to the next power of two */
  void *grown = realloc(*items, (count ? (size_t)count * 2 : 8) * item_bytes);
  if (!grown) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a graph");
  *items = grown;
  return GRAFT_OK;
}

void *gr_grown_copy(const void *items, uint32_t count, size_t item_bytes) {
  uint32_t room = 8;
  while (room <= count) room *= 2;
  void *copy = malloc(room * item_bytes);
  return copy && count ? memcpy(copy, items, count * item_bytes) : copy;
}
