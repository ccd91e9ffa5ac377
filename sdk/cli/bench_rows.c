/* The rows of graft bench: the lines of bench_calls.txt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char *const lines[] = {
#include "bench_calls.inc"
};
enum { LINES = sizeof lines / sizeof *lines };

/* A product of numbers: "2*512*512". */
static double product(const char *text) {
  double value = 1;
  char *end;
  for (;; text = end + 1) {
    value *= strtod(text, &end);
    if (*end != '*' || end == text) return value;
  }
}

static bool begins(const char *word, const char *with) {
  return strncmp(word, with, strlen(with)) == 0;
}

/* One option behind the call; those that only PyTorch's side reads are passed over. */
static void take_option(bench_row *row, const char *word) {
  if (begins(word, "flops=")) row->operations = product(word + strlen("flops="));
  if (begins(word, "below=")) row->bound = strtoll(word + strlen("below="), NULL, 10);
  if (begins(word, "only=gpu")) row->large = true;
  if (begins(word, "range=")) {
    char *end;
    row->low = strtod(word + strlen("range="), &end);
    row->high = *end == ':' ? strtod(end + 1, NULL) : row->low;
  }
}

static void take_options(bench_row *row, const char *text) {
  for (; *text; text += strspn(text, " ")) {
    if (begins(text, "name=")) return; /* the last, and it has blanks */
    take_option(row, text);
    text += strcspn(text, " ");
  }
}

uint32_t bench_row_count(void) {
  return LINES;
}

bench_row bench_row_at(uint32_t index) {
  const char *line = lines[index], *bar = strstr(line, " | ");
  bench_row row = {.bound = 2, .high = 1};
  snprintf(row.call, sizeof row.call, "%.*s", bar ? (int)(bar - line) : (int)strlen(line), line);
  if (bar) take_options(&row, bar + strlen(" | "));
  return row;
}
