/* Memory that is taken piece by piece and given back all at once. */
#ifndef GRAFT_SDK_ARENA_H
#define GRAFT_SDK_ARENA_H

#include <stddef.h>

/* Zero-initialised, an arena takes all its memory from the heap. */
typedef struct arena {
  char *at, *end;             /* what is left of the newest chunk */
  struct arena_chunk *chunks; /* from the heap, newest first */
} arena;

/* An arena that begins in `room`, aligned for any type, which outlives it. Under the address sanitizer it takes nothing
 * of it, so that an arena which is not given back shows. */
#ifdef __SANITIZE_ADDRESS__
#define ARENA_BEGIN(room) sizeof(room)
#else
#define ARENA_BEGIN(room) 0
#endif
#define ARENA_IN(room) \
  { .at = (char *)(room) + ARENA_BEGIN(room), .end = (char *)(room) + sizeof(room) }

/* Zeroed memory, aligned for any type; 0 bytes are some. NULL: no host memory. */
void *arena_take(arena *arena, size_t bytes);
void *arena_copy(arena *arena, const void *from, size_t bytes);

/* Gives everything back. The arena may then be used anew, from the heap. */
void arena_free(arena *arena);

#endif
