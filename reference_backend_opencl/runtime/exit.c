/* A process that exits while PoCL compiles: a kernel where it is first run, in threads of PoCL's own, or a program, in
 * one of ours. Exit takes the compiler's data away, and these threads would crash it: they are waited for.
 *
 * Handlers of exit run last to first, and the compiler registers some as it first needs what they free. So the wait is
 * registered anew behind each program that was built and behind what first ran of it; the first of these handlers that
 * runs does all. What never waited for a kernel has nothing that would tell when its first one was compiled: where it
 * exits meanwhile, it may still crash. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include "runtime/ocl.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below, and the streams' links */
static graft_stream *watched;
static pid_t registered_in; /* a child made by fork has none of these threads */

static atomic_bool compiled; /* since a stream was last waited for */

static pthread_rwlock_t building = PTHREAD_RWLOCK_INITIALIZER; /* held for reading while a program is built */

static void wait_for_compilers(void) {
  static bool waited;
  if (waited || getpid() != registered_in) return;
  waited = true;
  pthread_rwlock_wrlock(&building); /* kept: none begins any more */
  pthread_mutex_lock(&lock);
  for (graft_stream *stream = watched; stream; stream = stream->next_watched) {
    clFinish(stream->own_queue);
    if (stream->timed_queue) clFinish(stream->timed_queue);
  }
  pthread_mutex_unlock(&lock);
}

/* Where there is no room for a handler, exit is what it would be without. */
static void register_wait(void) {
  pthread_mutex_lock(&lock);
  if (atexit(wait_for_compilers) == 0) registered_in = getpid();
  pthread_mutex_unlock(&lock);
}

void ocl_exit_watch(graft_stream *stream) {
  if (!stream->device->compiles_here) return;
  pthread_mutex_lock(&lock);
  stream->next_watched = watched;
  watched = stream;
  pthread_mutex_unlock(&lock);
}

void ocl_exit_forget(graft_stream *stream) {
  if (!stream->device->compiles_here) return;
  pthread_mutex_lock(&lock);
  graft_stream **at = &watched;
  while (*at != stream) at = &(*at)->next_watched;
  *at = stream->next_watched;
  pthread_mutex_unlock(&lock);
}

void ocl_exit_build_begins(const graft_device *device) {
  if (device->compiles_here) pthread_rwlock_rdlock(&building);
}

void ocl_exit_build_ends(const graft_device *device) {
  if (!device->compiles_here) return;
  pthread_rwlock_unlock(&building);
  register_wait();
  atomic_store(&compiled, true);
}

void ocl_exit_waited(const graft_device *device) {
  if (device->compiles_here && atomic_load_explicit(&compiled, memory_order_relaxed) &&
      atomic_exchange(&compiled, false))
    register_wait();
}
