/* What tests may ask of the plugin that has what came with ABI 1.2, through its extension "ordered.test". */
#ifndef GRAFT_TESTS_ORDERED_H
#define GRAFT_TESTS_ORDERED_H

#include <stdatomic.h>

#include "graft/abi/plugin.h"

#define ORDERED_EXTENSION "ordered.test"

typedef struct ordered_counters {
  /* Memory: requests that name a stream, releases in the order of one and plain ones, buffers that are there. */
  atomic_int stream_allocations, ordered_releases, plain_releases, buffers;
  atomic_int waits, blocks;               /* stream_wait, and event_synchronize: the host blocked */
  atomic_int negs, other_negs, warm_negs; /* calls of neg: in f32, in other dtypes, and those that found a memo */
  atomic_int long_negs, in_place_negs;    /* neg of more than ORDERED_LONGEST elements, and of ORDERED_APART in place */
  atomic_int queries, prepares, buffers_seen; /* calls of op_query and prepare, and those of them with a buffer */
  atomic_int abs_calls;                       /* of a slot that reads too little of its args to serve anything */
  atomic_int draws;                           /* calls of cauchy, which says since 1.2 what it draws */
  atomic_uint flags;                          /* of the latest neg */
  _Atomic(uint64_t) version;                  /* of its tensor's storage */
} ordered_counters;

/* op_query refuses longer tensors, and takes those of the second size only beside their result. */
enum { ORDERED_LONGEST = 100, ORDERED_APART = 5 };

#endif
