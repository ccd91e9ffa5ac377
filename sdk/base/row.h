/* Rows of arrays that the application made: as long as it knows them, which may be shorter or longer than here. */
#ifndef GRAFT_SDK_ROW_H
#define GRAFT_SDK_ROW_H

#include <stddef.h>
#include <string.h>

static inline void row_copy(void *to, size_t to_bytes, const void *from, size_t from_bytes) {
  size_t common = to_bytes < from_bytes ? to_bytes : from_bytes;
  memcpy(to, from, common);
  memset((char *)to + common, 0, to_bytes - common);
}

#endif
