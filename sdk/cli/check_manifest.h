/* The manifest that leads to the plugin under check. */
#ifndef GRAFT_CLI_CHECK_MANIFEST_H
#define GRAFT_CLI_CHECK_MANIFEST_H

#include "check.h"
#include "plugin/loader.h"

/* The one the user named, or the one beside the library; false where there is none. */
bool ck_manifest(const ck_target *target, plg_manifest *manifest);

#endif
