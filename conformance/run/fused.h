/* With what a plugin takes an op's calls together, by its extension "graft.graph". */
#ifndef GRAFT_CF_RUN_FUSED_H
#define GRAFT_CF_RUN_FUSED_H

#include "conformance/run/worker.h"
#include "ops/core/schema.h"

typedef enum cf_fusion {
  CF_FUSES_NOTHING,
  CF_FUSES_BEFORE = 1, /* with the call that made its first input */
  CF_FUSES_AFTER = 2,  /* with the call that its first result goes to */
  CF_FUSES_BOTH = 3
} cf_fusion;

/* Asks the plugin for the suite's calls of the op in its first dtype, each with a negation before and behind it.
 * Nothing is compiled. */
cf_fusion cf_fusion_of(const op_schema *schema, graft_rt_device *device);
/* "none", "before", "after", "both". */
const char *cf_fusion_name(cf_fusion fusion);

/* A cf_fusion for each op, as op_schema_all has them, asked in a process of its own, since a plugin may take that down
 * or come to no end. The caller frees it. NULL: there is no answer, which stderr is told. */
uint8_t *cf_fusions_fetch(const cf_options *options);
/* That of one op; nothing of a plugin's own, and where there is no answer. */
cf_fusion cf_fusion_among(const uint8_t *fusions, const op_schema *schema);
/* What that process does. An exit status. */
int cf_fusions_tell(const cf_options *options);

#endif
