#include "base/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

#define ERR_CAPACITY 2048

/* The text outlives err_clear: graft_last_error promises the latest failure even after calls that succeeded. */
static _Thread_local char err_text[ERR_CAPACITY];
static _Thread_local size_t err_subject; /* how long the subject at the head of the text is; 0: none */
static _Thread_local bool err_fresh;

static graft_status err_put(graft_status status, const char *subject, const char *format, va_list arguments) {
  char text[ERR_CAPACITY]; /* an argument may be err_text itself */
  size_t head = 0;
  if (subject) {
    snprintf(text, sizeof text, "%s: ", subject);
    head = strlen(text);
  }
  vsnprintf(text + head, sizeof text - head, format, arguments);
  utf8_copy(err_text, sizeof err_text, text);
  err_subject = subject ? strlen(subject) : 0;
  err_fresh = true;
  return status;
}

graft_status err_set(graft_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  err_put(status, NULL, format, arguments);
  va_end(arguments);
  return status;
}

graft_status err_about(graft_status status, const char *subject, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  err_put(status, subject, format, arguments);
  va_end(arguments);
  return status;
}

graft_status err_null(const char *function, const char *parameter) {
  return err_about(GRAFT_INVALID_ARGUMENT, function, "%s is NULL", parameter);
}

bool err_is_about(const char *subject) {
  return err_subject && err_subject == strlen(subject) && memcmp(err_text, subject, err_subject) == 0;
}

graft_status err_attribute(graft_status status, const char *subject) {
  return err_is_about(subject) ? status : err_about(status, subject, "%s", err_text);
}

void err_clear(void) {
  err_fresh = false;
}

bool err_is_set(void) {
  return err_fresh;
}

const char *graft_last_error(void) {
  return err_text;
}

const char *graft_status_name(graft_status status) {
  static const char *const names[] = {
      [GRAFT_OK] = "OK",
      [GRAFT_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
      [GRAFT_UNIMPLEMENTED] = "UNIMPLEMENTED",
      [GRAFT_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
      [GRAFT_NOT_READY] = "NOT_READY",
      [GRAFT_DEVICE_LOST] = "DEVICE_LOST",
      [GRAFT_STREAM_FAILED] = "STREAM_FAILED",
      [GRAFT_INTERNAL] = "INTERNAL",
      [GRAFT_INCOMPATIBLE] = "INCOMPATIBLE",
      [GRAFT_FORKED] = "FORKED",
      [GRAFT_OUT_OF_RANGE] = "OUT_OF_RANGE",
  };
  if (status < 0 || status >= (graft_status)(sizeof names / sizeof *names)) return "unknown status";
  return names[status];
}

static const char *const level_names[] = {"error", "warning", "info", "debug"};
static pthread_once_t level_once = PTHREAD_ONCE_INIT;
static graft_log_level level_shown = GRAFT_LOG_WARNING;

static void read_level(void) {
  const char *wanted = err_getenv("GRAFT_LOG");
  if (!wanted) return;
  for (graft_log_level level = GRAFT_LOG_ERROR; level <= GRAFT_LOG_DEBUG; level++) {
    if (strcasecmp(wanted, level_names[level]) == 0) {
      level_shown = level;
      return;
    }
  }
  fprintf(stderr, "graft: warning: GRAFT_LOG=%s is none of error, warning, info, debug\n", wanted);
}

static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below, held while the sink runs */
static graft_log_sink_fn log_sink;
static void *sink_context;
static _Thread_local bool in_sink;

void graft_log_set_sink(graft_log_sink_fn sink, void *context) {
  pthread_mutex_lock(&sink_lock);
  log_sink = sink;
  sink_context = context;
  pthread_mutex_unlock(&sink_lock);
}

static bool write_to_sink(graft_log_level level, const char *text) {
  if (in_sink) return false;
  pthread_mutex_lock(&sink_lock);
  bool taken = log_sink != NULL;
  in_sink = true;
  if (taken) log_sink(sink_context, level, text);
  in_sink = false;
  pthread_mutex_unlock(&sink_lock);
  return taken;
}

static void write_line(graft_log_level level, const char *text) {
  /* One call, so that the lines of threads don't mix. */
  if (!write_to_sink(level, text)) fprintf(stderr, "graft: %s: %s\n", level_names[level], text);
}

void err_log(graft_log_level level, const char *format, ...) {
  pthread_once(&level_once, read_level);
  if (level > level_shown) return;
  if (level < GRAFT_LOG_ERROR) level = GRAFT_LOG_ERROR;
  char text[ERR_CAPACITY], clean[ERR_CAPACITY];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  utf8_copy(clean, sizeof clean, text);
  write_line(level, clean);
}

const char *err_getenv(const char *name) {
  return secure_getenv(name);
}
