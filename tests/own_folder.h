/* A folder of a test's own, which goes with all that is in it. */
#ifndef GRAFT_TESTS_OWN_FOLDER_H
#define GRAFT_TESTS_OWN_FOLDER_H

#include "suite.h"

#define OWN_FOLDER "/tmp/graft_test_XXXXXX" /* what folder_make is given, in an array that it writes to */

static inline void folder_make(char *path) {
  ck_assert_ptr_nonnull(mkdtemp(path));
}

static inline void folder_remove(const char *path) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", path);
  ck_assert_int_eq(system(command), 0);
}

#endif
