/* A process that exits while PoCL compiles: a kernel where it is first run, in threads of PoCL's own, or a program, in
 * one of ours. Exit takes away what the compiler stands on, and these threads would crash it: they are waited for.
 *
 * Not by a handler of atexit. Those run last to first, and the compiler registers more of them as it first needs what
 * they free: in the midst of the work that is to be waited for. What a thread has registered for its own end runs
 * before all of them, in the thread that exits: as a rule the first one, and so that is waited for there. */
#define _GNU_SOURCE /* gettid, the kind of the lock */
#include <unistd.h>

#include "runtime/ocl.h"

/* glibc has it for C++'s thread_local variables. */
extern int __cxa_thread_atexit_impl(void (*function)(void *), void *argument, void *library) __attribute__((weak));
extern void *__dso_handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the two below, and the streams' links */
static graft_stream *watched;
static pid_t registered_in; /* a child made by fork has none of the driver's threads */

/* Held for reading while a program is built. Who waits comes before those that begin meanwhile. */
static pthread_rwlock_t building = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

/* A compiler that can't go on may call exit itself (LLVM does where a disk is full): that thread has nothing to wait
 * for that would end. */
static _Thread_local bool builds;

static void wait_for_compilers(void *unused) {
  (void)unused;
  if (getpid() != registered_in || builds) return;
  pthread_rwlock_wrlock(&building); /* kept: none begins any more */
  pthread_mutex_lock(&lock);
  for (graft_stream *stream = watched; stream; stream = stream->next_watched) {
    clFinish(stream->own_queue);
    if (stream->timed_queue) clFinish(stream->timed_queue);
  }
  pthread_mutex_unlock(&lock);
}

/* Once, by the first thread of the process. Where that fails, exit is what it would be without. */
static void register_wait(void) {
  if (gettid() != getpid() || !__cxa_thread_atexit_impl) return;
  pthread_mutex_lock(&lock);
  if (registered_in != getpid() && __cxa_thread_atexit_impl(wait_for_compilers, NULL, &__dso_handle) == 0)
    registered_in = getpid();
  pthread_mutex_unlock(&lock);
}

void ocl_exit_watch(graft_stream *stream) {
  if (!stream->device->compiles_here) return;
  register_wait();
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
  if (!device->compiles_here) return;
  register_wait();
  pthread_rwlock_rdlock(&building);
  builds = true;
}

void ocl_exit_build_ends(const graft_device *device) {
  if (!device->compiles_here) return;
  builds = false;
  pthread_rwlock_unlock(&building);
}
