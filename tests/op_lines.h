/* Files with a line for each op that has something there, in the order of the ops; remarks behind a #. */
#ifndef GRAFT_TESTS_OP_LINES_H
#define GRAFT_TESTS_OP_LINES_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The next line that is no remark; an empty one is the end. */
static inline void op_lines_next(FILE *file, char *line, int size) {
  do {
    if (!fgets(line, size, file)) *line = 0;
    line[strcspn(line, "\n")] = 0;
  } while (*line == '#');
}

/* Whether that op's name begins the line. */
static inline bool op_lines_names(const char *line, const char *name) {
  const size_t length = strlen(name);
  return strcspn(line, " ") == length && memcmp(line, name, length) == 0;
}

#endif
