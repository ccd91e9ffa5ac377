/* GRAFT_GRAPH_DUMP: each graph that is compiled is written to a folder. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "graph/file.h"

void gr_dump(const graft_graph *graph) {
  static _Atomic(uint32_t) last;
  const char *folder = err_getenv("GRAFT_GRAPH_DUMP");
  if (!folder || !*folder) return;
  const uint32_t number = atomic_fetch_add(&last, 1) + 1;
  char *path = str_new("%s/graph-%ld-%" PRIu32 ".safetensors", folder, (long)getpid(), number);
  if (path && graft_graph_save(graph, path) == GRAFT_OK)
    err_log(GRAFT_LOG_INFO, "GRAFT_GRAPH_DUMP: wrote %s", path);
  else
    err_log(GRAFT_LOG_WARNING, "GRAFT_GRAPH_DUMP: %s", path ? graft_last_error() : "no host memory for a name");
  free(path);
}
