/* Where the plugins of tests/plugins were built: beside the test, or where GRAFT_TEST_PLUGINS says. */
#ifndef GRAFT_TESTS_PLUGIN_PATH_H
#define GRAFT_TESTS_PLUGIN_PATH_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A folder, absolute; static storage. */
static inline const char *test_plugin_folder(void) {
  static _Thread_local char folder[PATH_MAX];
  const char *chosen = getenv("GRAFT_TEST_PLUGINS");
  if (chosen) return chosen;
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 16);
  folder[length > 0 ? length : 0] = 0;
  char *slash = strrchr(folder, '/');
  snprintf(slash ? slash : folder, 16, "/plugins");
  return folder;
}

/* The path of a plugin's library; static storage, valid until the next call but one. */
static inline const char *test_plugin(const char *name) {
  static _Thread_local char paths[2][PATH_MAX + 64];
  static _Thread_local int turn;
  turn = !turn;
  snprintf(paths[turn], sizeof paths[turn], "%s/%.48s.so", test_plugin_folder(), name);
  return paths[turn];
}

#endif
