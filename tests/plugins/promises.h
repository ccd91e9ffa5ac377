/* What tests may ask of the plugin that notes what the host promises it, through its extension "promises.test". */
#ifndef GRAFT_TESTS_PROMISES_H
#define GRAFT_TESTS_PROMISES_H

#include <stdatomic.h>
#include <stdint.h>

#include "graft/abi/plugin.h"

#define PROMISES_EXTENSION "promises.test"

enum { PROMISES_DIMS = 8, PROMISES_WORKSPACES = 8 };

/* A tensor as the slot that ran last saw it. */
typedef struct promises_tensor {
  int32_t ndim;
  int64_t shape[PROMISES_DIMS], strides[PROMISES_DIMS];
} promises_tensor;

typedef struct promises_seen {
  promises_tensor self, other, out;
  graft_status workspaces[PROMISES_WORKSPACES]; /* the answers to as many requests in one call */
  int workspaces_apart;                         /* none of them shares a byte with another, all are aligned */
  graft_status no_bytes;                        /* to a request for none, and what it gave */
  graft_buffer *no_bytes_buffer;
  graft_buffer *empty_output; /* of nonzero, where nothing was found */
  atomic_int foreign_waits;   /* events of one device that a stream of another was to wait for */
  atomic_int peer_copies;
} promises_seen;

#endif
