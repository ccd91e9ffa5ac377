/* The ops of a plugin that the parent never opens: it asks a child for them. */
#ifndef GRAFT_CF_CUSTOM_H
#define GRAFT_CF_CUSTOM_H

#include "conformance/run/worker.h"

/* In the parent: makes the ops of the plugin known, as far as their schemas go, and their rows. A plugin that does not
 * open has none; who opens it for work says why. Ops without a reference function are named on stderr: nothing is there
 * to test them by. */
graft_status cf_custom_fetch(const cf_options *options);
/* In the child: opens the plugin, tells of its ops and ends. */
int cf_custom_tell(const cf_options *options);

#endif
