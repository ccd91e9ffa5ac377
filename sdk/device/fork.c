/* Drivers do not survive fork, and nothing may be called once exit has begun. Both move one counter. */
#include <stdlib.h>

#include "device/internal.h"
#include "graft/bridge.h"

static _Atomic(uint32_t) generation = 1;
static _Atomic(uint32_t) used_in; /* the generation in which a driver was first used */
static atomic_bool exiting;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void move(void) {
  atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void at_exit(void) {
  atomic_store(&exiting, true);
  move();
}

static void watch(void) {
  pthread_atfork(NULL, NULL, move);
}

void dev_watch_exit(void) {
  if (atexit(at_exit)) err_log(GRAFT_LOG_WARNING, "no room for a handler of exit; devices may be used while it runs");
}

/* A number that changes in a child after fork and when exit begins; never 0. */
static uint32_t current_generation(void) {
  return atomic_load_explicit(&generation, memory_order_relaxed);
}

bool graft_is_forked(void) {
  uint32_t first = atomic_load_explicit(&used_in, memory_order_relaxed);
  return first && first != current_generation() && !atomic_load(&exiting);
}

bool dev_forked(const graft_rt_device *device) {
  return device->generation != current_generation() && !device->is_reference;
}

static graft_status gone(const char *who) {
  if (atomic_load(&exiting)) return err_about(GRAFT_FORKED, who, "the process is exiting; nothing runs any more");
  return err_about(GRAFT_FORKED, who,
                   "its driver was in use when this process was forked and does not work here; use the device in the "
                   "parent only, or start workers with spawn or before the first use of the device");
}

graft_status dev_forked_error(const graft_rt_device *device) {
  return gone(device->text);
}

graft_status dev_enter(graft_rt_backend *backend) {
  pthread_once(&once, watch);
  if (backend->is_reference) return GRAFT_OK;
  uint32_t now = current_generation(), before = 0, unused = 0;
  if (atomic_load(&exiting)) return gone(backend->name);
  atomic_compare_exchange_strong(&used_in, &unused, now);
  if (atomic_compare_exchange_strong(&backend->generation, &before, now) || before == now) return GRAFT_OK;
  return gone(backend->name);
}
