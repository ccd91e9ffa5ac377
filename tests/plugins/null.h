/* What tests may ask of the null plugin, through its extension "null.test". */
#ifndef GRAFT_TESTS_NULL_H
#define GRAFT_TESTS_NULL_H

#include "graft/abi/plugin.h"

#define NULL_EXTENSION "null.test"

/* Counts since open; `buffers` and the like are those alive. */
typedef struct null_counters {
  int64_t allocate_calls, release_calls, fill_calls;
  int64_t buffers, streams, events, devices;
  int64_t bytes;
  int64_t copies_reusable, copies_kept; /* copy_from_host with and without SOURCE_REUSABLE */
  int64_t unaligned;                    /* copies that break COPY_GRANULARITY */
  int64_t released_busy;                /* buffers released while a stream had work: the host's fault */
  int64_t calls;                        /* of any function of memory and stream */
} null_counters;

typedef struct null_test_api {
  size_t struct_size;
  void (*counters)(void *self, null_counters *counters);
  /* With option lazy=1 work is done only when someone waits for it, or here. */
  void (*finish)(void *self);
  /* The next call that waits or asks reports a fault on every stream. */
  void (*fault)(void *self, int on);
} null_test_api;

#endif
