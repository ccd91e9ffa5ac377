/* The table of all rows, and where a case stands in it. */
#ifndef GRAFT_CF_CASES_H
#define GRAFT_CF_CASES_H

#include "conformance/judge/call.h"

extern const cf_topic *const cf_topics[];
extern const uint32_t cf_topic_count;

const cf_op *cf_case_op(const cf_case *c);
const char *cf_case_family(const cf_case *c);
/* The arguments, as the row has them, without their level. */
const char *cf_case_text(const cf_case *c);

#endif
