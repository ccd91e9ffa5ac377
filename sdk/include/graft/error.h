/* libgraft: status codes and error texts.
 *
 * Every fallible function returns a graft_status (plugin_api's, see graft/abi/base.h) and leaves its outputs untouched
 * on failure. The text of the latest failure is kept per thread. */
#ifndef GRAFT_ERROR_H
#define GRAFT_ERROR_H

#include "graft/abi/host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* NULL. Only a parameter that GRAFT_NULLABLE stands before may be NULL, and a list or memory whose count beside it
 * is 0. A function that returns a status answers another NULL with GRAFT_INVALID_ARGUMENT and a text that names the
 * function, or the op, and the parameter. One that returns none has no effect then, sets that text all the same, and
 * gives what GRAFT_NULL_GIVES behind its declaration says. */
#define GRAFT_NULLABLE
#define GRAFT_NULL_GIVES(answer)

/* The text of this thread's latest failure: op, dtypes, shapes, file or plugin, what was expected, what to do. Never
 * NULL; valid until this thread's next failure. */
GRAFT_EXPORT const char *graft_last_error(void);

/* Receives a line of the log: a graft_log_level, and a text without a prefix and without an end of line, valid during
 * the call. */
typedef void (*graft_log_sink_fn)(void *context, graft_log_level level, const char *text);

/* Where the lines go that GRAFT_LOG admits (error, warning, info, debug; warning if it says nothing): to `sink`, or
 * with NULL to stderr again. Calls of the sink come from any thread, one at a time; what it logs itself by calling
 * libgraft goes to stderr. On return the former sink is called no more. It must not set a sink. (0.x: may still
 * change.) */
GRAFT_EXPORT void graft_log_set_sink(GRAFT_NULLABLE graft_log_sink_fn sink, GRAFT_NULLABLE void *context);

/* The name of a status, such as "INVALID_ARGUMENT". Never NULL. */
GRAFT_EXPORT const char *graft_status_name(graft_status status);

#ifdef __cplusplus
}
#endif

#endif
