/* The objects of async.c, for liar.c, which changes what it does. */
#ifndef GRAFT_TESTS_ASYNC_H
#define GRAFT_TESTS_ASYNC_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "graft/abi/plugin.h"

typedef struct async_instance {
  graft_plugin plugin;
  graft_memory_api memory;
  graft_stream_api stream;
  graft_core_ops core;
  const graft_host *host;
} async_instance;

struct graft_device {
  async_instance *self;
};

struct graft_buffer {
  uint64_t bytes;
  char *memory;
};

/* One record of an event; shared, freed with the last who holds it. */
typedef struct record {
  atomic_int references;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int is_done, timed;
  struct timespec time;
} record;

struct graft_event {
  graft_event_flags flags;
  pthread_mutex_t lock; /* guards latest */
  record *latest;
};

typedef struct command {
  struct command *next;
  uint64_t number; /* in its stream, from 1 */
  void (*run)(struct command *);
  char *to;
  const char *from;
  void *owned;
  uint64_t bytes;
  uint32_t pattern_bytes;
  char pattern[16];
  record *record;
  graft_event *event; /* for lies */
} command;

struct graft_stream {
  graft_stream_flags flags;
  pthread_t thread;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  command *first, *last;
  uint64_t submitted, done;
  int ends;
};

/* An instance that keeps every rule. */
graft_status async_open(const graft_host *host, const char *name, async_instance **made);

#endif
