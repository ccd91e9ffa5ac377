/* What stood in the way of a run: of this thread's last one, as graft/graph.h has it. */
#include "graph/exec.h"

_Thread_local graft_graph_failure gr_failing;

graft_graph_failure graft_graph_last_failure(void) {
  return gr_failing;
}
