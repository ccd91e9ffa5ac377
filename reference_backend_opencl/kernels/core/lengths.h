/* |x|_p of lines: for kernels that lengths.cl stands in front of. */
#ifndef OCL_LENGTHS_H
#define OCL_LENGTHS_H

#include <math.h>

#include "runtime/ocl.h"

/* LENGTH of the head: which p it is. Those that have a formula of their own need not be told p as a number. */
static inline void ocl_length_head(ocl_text *head, double p) {
  enum { COUNTED, ADDED, SQUARED, POWERS, MOST, LEAST };
  int length = isinf(p) ? (p > 0 ? MOST : LEAST) : p == 0 ? COUNTED : p == 1 ? ADDED : p == 2 ? SQUARED : POWERS;
  ocl_text_add(head, "#define LENGTH %d\n", length);
}

#endif
