/* Counts what the program asks of the heap. Programs that include this are linked with --wrap for each of the functions
 * (tests/CMakeLists.txt), which reaches libgraft's objects in them and no library. */
#ifndef GRAFT_TESTS_HEAP_H
#define GRAFT_TESTS_HEAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static _Atomic(uint64_t) heap_calls;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes) {
  heap_calls++;
  return __real_malloc(bytes);
}
void *__wrap_calloc(size_t count, size_t bytes) {
  heap_calls++;
  return __real_calloc(count, bytes);
}
void *__wrap_realloc(void *old, size_t bytes) {
  heap_calls++;
  return __real_realloc(old, bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  heap_calls++;
  return __real_aligned_alloc(alignment, bytes);
}

#endif
