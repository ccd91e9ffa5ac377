/* What tests may ask of the plugin of odd slots, through its extension "slots.test". */
#ifndef GRAFT_TESTS_SLOTS_H
#define GRAFT_TESTS_SLOTS_H

#include <stdatomic.h>

#include "graft/abi/plugin.h"

#define SLOTS_EXTENSION "slots.test"

typedef struct slots_counters {
  atomic_int late_records;       /* events put on a stream that was destroyed: the host's fault */
  atomic_int memos, early_memos; /* memos destroyed, and those of them while their slot ran */
  /* Memos of lerp.Scalar, which serve every number, and of addcmul, which serve one each: made, and destroyed. */
  atomic_int lerp_memos, lerp_memos_gone, addcmul_memos, addcmul_memos_gone;
  atomic_int wrong_memos;  /* addcmul found a memo of another number */
  atomic_int list_calls;   /* of the slot of _foreach_add.Scalar */
  atomic_int beside_calls; /* of slots that put out masks and indices */
  atomic_int index_calls;  /* of slots that read indices unchecked */
  atomic_int failing;      /* set by a test: events recorded now report a fault */
} slots_counters;

#endif
