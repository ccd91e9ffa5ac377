/* What a check says of itself: what it is doing, and how it ended. */
#include "check_message.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

ck_message *ck_now;

void ck_doing(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(ck_now->doing, sizeof ck_now->doing, format, arguments);
  va_end(arguments);
}

void ck_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(ck_now->text, sizeof ck_now->text, format, arguments);
  va_end(arguments);
}

/* The first word counts: threads may fail together. */
static _Noreturn void end(ck_outcome how, const char *format, va_list arguments) {
  int pending = CK_PENDING;
  char text[700] = "";
  if (format) vsnprintf(text, sizeof text, format, arguments);
  if (how == CK_FAILED && ck_now->doing[0]) {
    snprintf(ck_now->text, sizeof ck_now->text, "%s: %s", ck_now->doing, text);
  } else {
    snprintf(ck_now->text, sizeof ck_now->text, "%s", text);
  }
  atomic_compare_exchange_strong(&ck_now->outcome, &pending, (int)how);
  _exit(0);
}

void ck_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  end(CK_FAILED, format, arguments);
}

void ck_skip(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  end(CK_SKIPPED, format, arguments);
}
