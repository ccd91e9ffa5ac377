/* What tests may ask of the plugin of every slot kind (kinds.c), through its extension "frozen.kinds". The layout is
 * part of the kept binaries: append only. */
#ifndef GRAFT_TESTS_FROZEN_KINDS_H
#define GRAFT_TESTS_FROZEN_KINDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define KINDS_EXTENSION "frozen.kinds"

typedef struct kinds_seen {
  size_t struct_size;
  atomic_ullong calls[32];        /* of each slot, by kinds_slot */
  atomic_ullong memos_made;       /* published and kept */
  atomic_ullong memos_found;      /* in exec->memo */
  atomic_ullong memos_destroyed;  /* by the host */
  atomic_ullong workspaces;       /* asked for */
  atomic_ullong outputs_found;    /* shapes given to output_shape */
  atomic_ullong host_values;      /* numbers in host memory */
  atomic_ullong in_place;         /* outputs that are an input */
  atomic_ullong expanded;         /* inputs of stride 0 */
  atomic_ullong mixed;            /* inputs of another dtype than the output */
  atomic_ullong narrow_indices;   /* indices that came as i32 */
  atomic_ullong absent_items;     /* NULL items of tensor lists */
  atomic_ullong absent_arguments; /* optional arguments that were NULL or 0 */
  atomic_ullong unwanted_outputs; /* NULL outputs */
  atomic_ullong index_errors;     /* indices that were refused */
  atomic_ullong peer_copies, pinned_blocks, timed_streams, timed_events, waits;
  atomic_ullong options; /* "count=N" when the plugin was opened */
} kinds_seen;

typedef enum kinds_slot {
  KINDS_ADD,
  KINDS_RELU,
  KINDS_MM,
  KINDS_MUL,
  KINDS_CLAMP,
  KINDS_SUM,
  KINDS_CAT,
  KINDS_INDEX,
  KINDS_NONZERO,
  KINDS_GELU,
  KINDS_ARGMAX,
  KINDS_DROPOUT,
  KINDS_LAYER_NORM_BACKWARD,
  KINDS_ARANGE,
  KINDS_FOREACH_ADD,
  KINDS_SGD,
  KINDS_RRELU,
  KINDS_EQUAL,
  KINDS_SIN,
  KINDS_AS_STRIDED_SCATTER,
  KINDS_FMAX,
  KINDS_COUNT
} kinds_slot;

#endif
