/* What a check says of itself: what it is doing, and how it ended. */
#include "check_message.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

ck_message *ck_now;

/* What this thread is doing; the message has what was said last, by any of them, for a parent that sees a crash. */
static _Thread_local char doing_here[sizeof ck_now->doing];
static pthread_mutex_t message_lock = PTHREAD_MUTEX_INITIALIZER;

void ck_doing(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(doing_here, sizeof doing_here, format, arguments);
  va_end(arguments);
  pthread_mutex_lock(&message_lock);
  memcpy(ck_now->doing, doing_here, sizeof doing_here);
  pthread_mutex_unlock(&message_lock);
}

void ck_say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(ck_now->text, sizeof ck_now->text, format, arguments);
  va_end(arguments);
}

/* The first word counts: threads may fail together. The lock is kept to the end, so that none changes it. */
static _Noreturn void end(ck_outcome how, const char *format, va_list arguments) {
  int pending = CK_PENDING;
  char text[700] = "";
  if (format) vsnprintf(text, sizeof text, format, arguments);
  pthread_mutex_lock(&message_lock);
  const char *doing = doing_here[0] ? doing_here : ck_now->doing;
  if (how == CK_FAILED && doing[0]) {
    snprintf(ck_now->text, sizeof ck_now->text, "%s: %s", doing, text);
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
