/* Error texts and the log. Errors are made where the knowledge is and travel up unchanged. */
#ifndef GRAFT_SDK_ERROR_H
#define GRAFT_SDK_ERROR_H

#include <stdbool.h>

#include "graft/abi/host.h"
#include "graft/error.h"

/* Sets this thread's error text and returns `status`: return err_set(GRAFT_INVALID_ARGUMENT, "...", ...). */
__attribute__((format(printf, 2, 3))) graft_status err_set(graft_status status, const char *format, ...);

/* The same for what has a name (an op, a device, a file): the text is "SUBJECT: ...", and is known to be about it. */
__attribute__((format(printf, 3, 4))) graft_status err_about(graft_status status, const char *subject,
                                                             const char *format, ...);

bool err_is_about(const char *subject);

/* Puts a subject before the text of a failure that came from below, unless it is about that already. */
graft_status err_attribute(graft_status status, const char *subject);

/* INVALID_ARGUMENT with the text for a NULL in a public function: return err_null(__func__, "tensor"). */
__attribute__((cold)) graft_status err_null(const char *function, const char *parameter);

/* Whether a pointer is NULL, with the text set then; for public functions that return no status. */
static inline bool err_is_null(const void *pointer, const char *function, const char *parameter) {
  return !pointer && err_null(function, parameter) != GRAFT_OK;
}

/* Forgets the text, before a call whose text is to be told from an older one. */
void err_clear(void);

/* Whether a text was set since err_clear. graft_last_error keeps the older one all the same. */
bool err_is_set(void);

/* Writes a line to the log, on stderr or the application's sink, if GRAFT_LOG (error, warning, info, debug; default
 * warning) admits it. */
__attribute__((format(printf, 2, 3))) void err_log(graft_log_level level, const char *format, ...);

/* getenv that answers NULL in a set-user-ID program (AT_SECURE). */
const char *err_getenv(const char *name);

#endif
