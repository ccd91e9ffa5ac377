/* What is kept of a compiled graph with open sizes: an executable for each of the sizes that ran last. */
#include <stdlib.h>
#include <string.h>

#include "graph/exec.h"

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a graph at other sizes");
}

graft_status gr_made_new(gr_made **made) {
  gr_made *m = calloc(1, sizeof *m);
  if (!m) return no_memory();
  pthread_mutex_init(&m->making, NULL);
  pthread_mutex_init(&m->lock, NULL);
  *made = m;
  return GRAFT_OK;
}

void gr_made_free(gr_made *made) {
  if (!made) return;
  for (uint32_t i = 0; i < made->count; i++) free(made->items[i].values);
  pthread_mutex_destroy(&made->making);
  pthread_mutex_destroy(&made->lock);
  free(made);
}

graft_graph_exec *gr_made_find(gr_made *m, const int64_t *values, size_t bytes) {
  graft_graph_exec *found = NULL;
  pthread_mutex_lock(&m->lock);
  for (uint32_t i = 0; i < m->count && !found; i++) {
    if (memcmp(m->items[i].values, values, bytes) != 0) continue;
    found = m->items[i].exec;
    m->items[i].used = ++m->clock;
    atomic_fetch_add_explicit(&found->refs, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&m->lock);
  return found;
}

gr_made_item gr_made_put(gr_made *m, gr_made_item item) {
  gr_made_item gone = {0};
  pthread_mutex_lock(&m->lock);
  uint32_t at = m->count;
  if (m->count == GR_MADE_MOST) {
    at = 0;
    for (uint32_t i = 1; i < m->count; i++) {
      if (m->items[i].used < m->items[at].used) at = i;
    }
    gone = m->items[at];
  } else {
    m->count++;
  }
  item.used = ++m->clock;
  m->items[at] = item;
  pthread_mutex_unlock(&m->lock);
  return gone;
}

graft_graph_exec *gr_made_latest(const gr_made *made) {
  const gr_made_item *latest = &made->items[0];
  for (uint32_t i = 1; i < made->count; i++) {
    if (made->items[i].used > latest->used) latest = &made->items[i];
  }
  return latest->exec;
}
