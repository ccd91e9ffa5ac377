/* What the parent asks a child of, since it never opens a plugin itself: the child becomes `graft conformance` with a
 * hidden option, tells over a pipe, and ends. */
#ifndef GRAFT_CF_RUN_TELLER_H
#define GRAFT_CF_RUN_TELLER_H

#include <stdio.h>
#include <sys/types.h>

#include "conformance/run/worker.h"

/* In the parent: starts the child as what the option says. NULL: it could not be started. */
FILE *cf_teller_start(const cf_options *options, const char *as, pid_t *pid);
/* Closes `from`, where there is one, and waits for the child: what waitpid says of it, -1 where there is none. */
int cf_teller_end(FILE *from, pid_t pid);
/* In the child: where it tells. What it prints else goes to stderr, since stdout is the report's. */
FILE *cf_teller_open(void);

#endif
