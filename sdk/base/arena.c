#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* At least; what asks for more has a chunk of its own. So has all under the address sanitizer, which then sees who goes
 * beyond a piece. */
#ifdef __SANITIZE_ADDRESS__
enum { CHUNK_BYTES = 0 };
#else
enum { CHUNK_BYTES = 2048 };
#endif

typedef struct arena_chunk {
  struct arena_chunk *next;
  alignas(max_align_t) char bytes[];
} arena_chunk;

void *arena_take(arena *arena, size_t bytes) {
  const size_t unit = alignof(max_align_t);
  bytes = (bytes + !bytes + unit - 1) / unit * unit;
  if (bytes > (size_t)(arena->end - arena->at)) {
    size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    arena_chunk *chunk = malloc(sizeof *chunk + room);
    if (!chunk) return NULL;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->at = chunk->bytes;
    arena->end = chunk->bytes + room;
  }
  void *taken = arena->at;
  arena->at += bytes;
  return memset(taken, 0, bytes);
}

void *arena_copy(arena *arena, const void *from, size_t bytes) {
  void *copy = arena_take(arena, bytes);
  return copy && bytes ? memcpy(copy, from, bytes) : copy;
}

void arena_free(arena *arena) {
  while (arena->chunks) {
    arena_chunk *chunk = arena->chunks;
    arena->chunks = chunk->next;
    free(chunk);
  }
  arena->at = arena->end = NULL;
}
