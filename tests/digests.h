/* A table with a line for each op: how many of the suite's calls it is of, and digests of what is told of these, by
 * column. Who includes it tells, and says what the columns are. */
#ifndef GRAFT_TESTS_DIGESTS_H
#define GRAFT_TESTS_DIGESTS_H

#include <stdio.h>
#include <string.h>

#include "conformance/run/menu.h"
#include "digest.h"
#include "op_lines.h"
#include "suite.h"

enum { DIGEST_OPS = 1024, DIGEST_COLUMNS = 5, DIGEST_LINE = 256 };

typedef struct digests {
  const char *columns[DIGEST_COLUMNS + 1]; /* their names; NULL behind the last */
  bool shows;                              /* prints the texts */
  uint64_t of[DIGEST_OPS][DIGEST_COLUMNS];
  uint32_t cases[DIGEST_OPS];
} digests;

static inline size_t digest_row(const cf_case *c) {
  size_t count;
  const size_t row = (size_t)(op_schema_of(c->op_id) - op_schema_all(&count));
  ck_assert_uint_lt(row, DIGEST_OPS);
  return row;
}

/* One more text, which is freed. */
static inline void digest_text(digests *d, size_t row, int column, const char *id, char *text) {
  if (d->shows) printf("%s %s\n%s", d->columns[column], id, text);
  d->of[row][column] = digest_with(d->of[row][column], text);
  free(text);
}

/* Name, cases and digests; -: nothing was told. */
static inline void digest_line(char line[DIGEST_LINE], const digests *d, size_t row) {
  size_t count, used = (size_t)snprintf(line, DIGEST_LINE, "%s %u", op_schema_all(&count)[row].name, d->cases[row]);
  int columns = 0;
  while (d->columns[columns]) columns++;
  digest_print(line + used, DIGEST_LINE - used, d->of[row], columns);
}

typedef struct digest_words {
  char of[2 + DIGEST_COLUMNS][128]; /* name, cases, digests; "": it has no such word */
} digest_words;

static inline digest_words digest_read(const char *line) {
  digest_words words = {{{0}}};
  for (int i = 0, used = 0; i < 2 + DIGEST_COLUMNS; i++, line += used)
    if (sscanf(line, "%127s%n", words.of[i], &used) != 1) break;
  return words;
}

/* What is other than in the table, to stderr; expected "": the table has no such line. */
static inline void digest_difference(const digests *d, const char *expected, const char *found) {
  const digest_words was = digest_read(expected), is = digest_read(found);
  if (strcmp(was.of[1], is.of[1]) != 0) {
    fprintf(stderr, "%s: %s cases, of which the table knows %s\n", is.of[0], is.of[1], *was.of[1] ? was.of[1] : "none");
    return;
  }
  for (int i = 0; d->columns[i]; i++)
    if (strcmp(was.of[2 + i], is.of[2 + i]) != 0) fprintf(stderr, "%s: %s is another\n", is.of[0], d->columns[i]);
}

/* Holds them against the table, whose lines stand in the order of the ops; in part: what was not told of is passed
 * over. */
static inline void digests_compare(const digests *d, const char *path, const char *program, bool in_part) {
  char expected[DIGEST_LINE], line[DIGEST_LINE];
  int wrong = 0;
  size_t count;
  const op_schema *all = op_schema_all(&count);
  FILE *file = fopen(path, "r");
  ck_assert_msg(file != NULL, "%s can't be read", path);
  op_lines_next(file, expected, DIGEST_LINE);
  for (size_t row = 0; row < count; row++) {
    const bool named = op_lines_names(expected, all[row].name);
    digest_line(line, d, row);
    if (d->cases[row] && !(named && strcmp(line, expected) == 0)) {
      digest_difference(d, named ? expected : "", line);
      wrong++;
    }
    if (named && (d->cases[row] || in_part)) op_lines_next(file, expected, DIGEST_LINE);
  }
  fclose(file);
  ck_assert_msg(!wrong && !*expected,
                "%d ops are not what %s says, whose next line is '%s'. `%s --show OP` prints what the digests are of, "
                "here and in a tree without the change. If it is meant, or of new cases: %s --write %s",
                wrong, path, expected, program, program, path);
}

static inline void digests_write(const digests *d, const char *path, const char *remark) {
  char line[DIGEST_LINE];
  size_t count;
  op_schema_all(&count);
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  fputs(remark, file);
  for (size_t row = 0; row < count; row++) {
    if (!d->cases[row]) continue;
    digest_line(line, d, row);
    fprintf(file, "%s\n", line);
  }
  ck_assert_int_eq(fclose(file), 0);
}

/* `--write FILE`, `--show OP`, `--op LIST`; NULL: not given. */
typedef struct digest_options {
  const char *write, *show, *ops;
} digest_options;

static inline digest_options digest_options_of(int argc, char **argv) {
  digest_options options = {0};
  if (argc == 3 && strcmp(argv[1], "--write") == 0) options.write = argv[2];
  if (argc == 3 && strcmp(argv[1], "--show") == 0) options.show = argv[2];
  if (argc == 3 && strcmp(argv[1], "--op") == 0) options.ops = argv[2];
  return options;
}

#endif
