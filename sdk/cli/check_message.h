/* What a check of a child process tells its parent. */
#ifndef GRAFT_CLI_CHECK_MESSAGE_H
#define GRAFT_CLI_CHECK_MESSAGE_H

#include <stdatomic.h>

#include "check.h"

typedef enum ck_outcome { CK_PENDING, CK_OK, CK_FAILED, CK_SKIPPED } ck_outcome;

/* In shared memory: it outlives a crash. */
typedef struct ck_message {
  _Atomic(int) outcome;
  char text[1024];
  char doing[256];
} ck_message;

extern ck_message *ck_now; /* of the check that runs */

#endif
