/* Check, whose assertions note where they stand only where that is news.
 *
 * Each assertion that holds is written to a file of Check's, and flushed, so that a crash can be reported as "after
 * this point". A loop that asserts something of each element writes the same place again and again, which took half of
 * the time of tests that compare tensors. The place that was noted last is not noted again: what is reported stays the
 * same. */
#ifndef GRAFT_TESTS_MARKS_H
#define GRAFT_TESTS_MARKS_H

#include <check.h>

static inline void note_place(const char *file, int line) {
  static _Thread_local const char *last_file;
  static _Thread_local int last_line;
  if (file == last_file && line == last_line) return;
  last_file = file;
  last_line = line;
  _mark_point(file, line);
}
#define _mark_point(file, line) note_place(file, line) /* what Check's macros call */

#endif
