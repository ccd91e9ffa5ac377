/* What the files of the family sorting share. */
#ifndef GRAFT_SDK_SORTING_H
#define GRAFT_SDK_SORTING_H

#include "ops/core/ref.h"

typedef struct srt_item {
  ref_real value;
  int64_t index;
} srt_item;

/* Sorts stably; a NaN is larger than every number. */
void srt_line(srt_item *line, int64_t n, bool descending);

#endif
