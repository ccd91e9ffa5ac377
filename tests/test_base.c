/* What every room stands on: errors, texts, arenas. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/utf8.h"
#include "suite.h"

/* --- errors and texts --- */

START_TEST(error_text_may_hold_itself) {
  err_set(GRAFT_INTERNAL, "inner");
  ck_assert_int_eq(err_set(GRAFT_INVALID_ARGUMENT, "outer: %s", graft_last_error()), GRAFT_INVALID_ARGUMENT);
  ck_assert_str_eq(graft_last_error(), "outer: inner");
  err_clear();
  ck_assert(!err_is_set());
  ck_assert_str_eq(graft_last_error(), "outer: inner");
}
END_TEST

/* Texts that only look alike are not taken for it: the name must be what the error was made about. */
START_TEST(error_knows_its_subject) {
  err_set(GRAFT_INTERNAL, "aten::add: it was said so far");
  ck_assert(!err_is_about("aten::add"));
  err_about(GRAFT_INTERNAL, "aten::add.Tensor", "self is %s", "f32[2]");
  ck_assert_str_eq(graft_last_error(), "aten::add.Tensor: self is f32[2]");
  ck_assert(err_is_about("aten::add.Tensor") && !err_is_about("aten::add"));
  ck_assert_int_eq(err_attribute(GRAFT_INTERNAL, "aten::add.Tensor"), GRAFT_INTERNAL);
  ck_assert_str_eq(graft_last_error(), "aten::add.Tensor: self is f32[2]");
  err_attribute(GRAFT_INTERNAL, "aten::add");
  ck_assert_str_eq(graft_last_error(), "aten::add: aten::add.Tensor: self is f32[2]");
}
END_TEST

START_TEST(utf8_is_cut_between_characters) {
  char text[8];
  utf8_copy(text, sizeof text, "caf\xc3\xa9\x01\xff");
  ck_assert_str_eq(text, "caf\xc3\xa9??");
  utf8_copy(text, 5, "caf\xc3\xa9");
  ck_assert_str_eq(text, "caf");
  utf8_copy(text, sizeof text, "\xc0\xaf\xed\xa0\x80"); /* overlong, surrogate */
  ck_assert_str_eq(text, "?????");
}
END_TEST

START_TEST(status_names) {
  ck_assert_str_eq(graft_status_name(GRAFT_FORKED), "FORKED");
  ck_assert_str_eq(graft_status_name(GRAFT_OUT_OF_RANGE), "OUT_OF_RANGE");
  ck_assert_str_eq(graft_status_name(-1), "unknown status");
  ck_assert_str_eq(graft_status_name(1000), "unknown status");
}
END_TEST

/* --- arenas --- */

static bool all_are(const unsigned char *bytes, unsigned char value, size_t count) {
  size_t same = 0;
  while (same < count && bytes[same] == value) same++;
  return same == count;
}

START_TEST(arena_has_no_limit) {
  union {
    max_align_t alignment;
    char bytes[256];
  } room;
  memset(room.bytes, 0xff, sizeof room.bytes);
  arena a = ARENA_IN(room.bytes);
  unsigned char *taken[400];
  for (size_t i = 0; i < ROWS(taken); i++) {
    taken[i] = arena_take(&a, i * 37);
    ck_assert_ptr_nonnull(taken[i]);
    ck_assert_uint_eq((uintptr_t)taken[i] % _Alignof(max_align_t), 0);
    ck_assert(all_are(taken[i], 0, i * 37));
    memset(taken[i], (int)i, i * 37);
  }
  const bool is_within = (char *)taken[1] >= room.bytes && (char *)taken[1] < room.bytes + sizeof room.bytes;
#ifdef __SANITIZE_ADDRESS__
  ck_assert(!is_within); /* where whoever goes beyond a piece is seen */
#else
  ck_assert(is_within);
#endif
  for (size_t i = 0; i < ROWS(taken); i++) ck_assert(all_are(taken[i], (unsigned char)i, i * 37));
  arena_free(&a);
  ck_assert_str_eq(arena_copy(&a, "anew", 5), "anew");
  ck_assert_ptr_null(arena_take(&a, SIZE_MAX / 2));
  arena_free(&a);
}
END_TEST

static void note_line(void *context, graft_log_level level, const char *text) {
  err_log(GRAFT_LOG_WARNING, "the sink logs, too"); /* goes to stderr, and does not come back */
  snprintf(context, 100, "%d %s", level, text);
}

START_TEST(the_log_goes_where_the_application_says) {
  char line[100] = "";
  graft_log_set_sink(note_line, line);
  err_log(GRAFT_LOG_WARNING, "%s has come", "one");
  ck_assert_str_eq(line, "1 one has come");
  err_log(GRAFT_LOG_DEBUG, "nobody wants to know");
  ck_assert_str_eq(line, "1 one has come");
  graft_log_set_sink(NULL, NULL);
  err_log(GRAFT_LOG_WARNING, "two has come");
  ck_assert_str_eq(line, "1 one has come");
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(error_text_may_hold_itself),
                              ONCE(error_knows_its_subject),
                              ONCE(utf8_is_cut_between_characters),
                              ONCE(status_names),
                              ONCE(arena_has_no_limit),
                              ONCE(the_log_goes_where_the_application_says),
                              {0}};
  return run_suite("base", tests, (suite_options){0});
}
