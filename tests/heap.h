/* Counts what the program asks of the heap, and can make one request fail. Programs that include this are linked with
 * --wrap for each of the functions (tests/CMakeLists.txt), which reaches libgraft's objects in them and no library. */
#ifndef GRAFT_TESTS_HEAP_H
#define GRAFT_TESTS_HEAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static _Atomic(uint64_t) heap_calls;
static _Atomic(uint64_t) heap_failing; /* the call that gets nothing, counted as heap_calls; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);

static bool heap_gives(void) {
  return ++heap_calls != heap_failing;
}

void *__wrap_malloc(size_t bytes) {
  return heap_gives() ? __real_malloc(bytes) : NULL;
}
void *__wrap_calloc(size_t count, size_t bytes) {
  return heap_gives() ? __real_calloc(count, bytes) : NULL;
}
void *__wrap_realloc(void *old, size_t bytes) {
  return heap_gives() ? __real_realloc(old, bytes) : NULL;
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return heap_gives() ? __real_aligned_alloc(alignment, bytes) : NULL;
}

#endif
