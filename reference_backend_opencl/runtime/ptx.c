/* See ptx.h. */
#include "runtime/ptx.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

char *ocl_ptx_uncover(const char *ptx) {
  static const char mark[] = OCL_PTX_MARK, target[] = ".target sm_90";
  char *text = malloc(strlen(ptx) + 2), *to = text; /* one letter more, and the end */
  bool named = false;
  while (text && *ptx) {
    if (strncmp(ptx, mark, sizeof mark - 1) == 0) {
      ptx += sizeof mark - 1;
    } else if (!named && strncmp(ptx, target, sizeof target - 1) == 0 && ptx[sizeof target - 1] != 'a') {
      memcpy(to, target, sizeof target - 1);
      to += sizeof target - 1;
      ptx += sizeof target - 1;
      *to++ = 'a';
      named = true;
    } else {
      *to++ = *ptx++;
    }
  }
  if (text) *to = '\0';
  return text;
}
