/* Planted bugs: each changes one op of the reference plugin in one way that a real plugin has been wrong in. The suite
 * must find each by the mustpass cases of its op. */
#ifndef GRAFT_MUTANTS_BUGS_H
#define GRAFT_MUTANTS_BUGS_H

#include "conformance/mutants/access.h"

typedef struct mut_bug {
  const char *name;
  const char *op;   /* "aten::mm"; NULL: all ops, and nothing must be found */
  const char *kind; /* bugs of one kind are wrong in one way */
  graft_status (*run)(const mut_call *call);
  unsigned mode; /* REF_* for the variants that are right */
} mut_bug;

extern const mut_bug mut_bugs[];
extern const size_t mut_bug_count;

/* The kernel that the reference has for another op. */
mut_slot mut_reference_slot(uint32_t op_id);

#endif
