/* libgraft: status codes and error texts.
 *
 * Every fallible function returns a graft_status (plugin_api's, see graft/abi/base.h) and leaves its outputs untouched
 * on failure. The text of the latest failure is kept per thread. */
#ifndef GRAFT_ERROR_H
#define GRAFT_ERROR_H

#include "graft/abi/base.h"

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

/* The name of a status, such as "INVALID_ARGUMENT". Never NULL. */
GRAFT_EXPORT const char *graft_status_name(graft_status status);

#ifdef __cplusplus
}
#endif

#endif
