/* graft_graph_compile, and what it leaves for later where sizes are open: an executable for those of a run. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/capture.h"
#include "graph/exec.h"
#include "graph/file.h"
#include "graph/script.h"

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a graph at other sizes");
}

/* Under the lock of those that make. */
static graft_status make(graft_graph_exec *e, const int64_t *values, size_t bytes, graft_graph_exec **made) {
  graft_graph *graph;
  int64_t *copy = malloc(bytes);
  if (!copy) return no_memory();
  memcpy(copy, values, bytes);
  graft_status status = gr_make(e->graph, values, &graph);
  if (!status) {
    status = gr_compile_with(graph, &(gr_exec_choice){e->device, e->flags, e->passes}, gr_compile_fixed, made);
    graft_graph_destroy(graph);
  }
  if (status) {
    free(copy);
    return status;
  }
  atomic_fetch_add_explicit(&(*made)->refs, 1, memory_order_relaxed);
  const gr_made_item gone = gr_made_put(e->made, (gr_made_item){copy, *made, 0});
  graft_graph_exec_destroy(gone.exec);
  free(gone.values);
  return GRAFT_OK;
}

static graft_status made_for(graft_graph_exec *e, const int64_t *values, graft_graph_exec **made) {
  const size_t bytes = e->graph->script->sizes.count * sizeof *values;
  *made = gr_made_find(e->made, values, bytes);
  if (*made) return GRAFT_OK;
  if (dsp_capture_of(e->device)) {
    gr_failing = GRAFT_GRAPH_CAPTURE_FAILED;
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "a graph with open sizes is captured at sizes that it has not run at; run it once before");
  }
  gr_failing = GRAFT_GRAPH_SIZES_FAILED;
  pthread_mutex_lock(&e->made->making);
  *made = gr_made_find(e->made, values, bytes); /* another thread may have made it */
  graft_status status = *made ? GRAFT_OK : make(e, values, bytes, made);
  pthread_mutex_unlock(&e->made->making);
  return status;
}

graft_status gr_made_for_inputs(graft_graph_exec *e, graft_tensor *const *inputs, graft_graph_exec **made) {
  int64_t few[64];
  const uint32_t count = e->graph->script->sizes.count;
  int64_t *values = count > 64 ? malloc(count * sizeof *values) : few;
  if (!values) return no_memory();
  graft_status status = gr_bind_sizes(e->graph, inputs, values);
  if (!status) status = made_for(e, values, made);
  if (values != few) free(values);
  return status;
}

/* At the sizes of the recording, so that what is wrong shows now. */
static graft_status compile_open(const graft_graph *graph, graft_graph_exec *e) {
  graft_graph_exec *made;
  const graft_graph_failure before = gr_failing; /* this is no run */
  graft_status status = gr_take_graph(graph, e);
  if (!status) status = gr_find_bound(e->graph);
  if (!status) status = gr_made_new(&e->made);
  if (!status) status = made_for(e, e->graph->script->sizes.examples, &made);
  if (!status) graft_graph_exec_destroy(made); /* it is kept */
  gr_failing = before;
  return status;
}

graft_status graft_graph_compile(const graft_graph *graph, graft_rt_device *device, const char *passes,
                                 graft_graph_exec **exec) {
  if (!graph) return err_null(__func__, "graph");
  if (!device) return err_null(__func__, "device");
  if (!exec) return err_null(__func__, "exec");
  if (tns_recording) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "graft_graph_compile: this thread records a graph; end that recording first");
  }
  if (graph->failed) {
    return err_set(GRAFT_INVALID_ARGUMENT, "graft_graph_compile: the recording of the graph has ended: %s",
                   graph->failure);
  }
  gr_dump(graph);
  gr_exec_choice choice = {.device = device, .flags = dsp_exec_flags()};
  graft_status status = gr_choose_passes(passes, &choice.passes);
  return status ? status : gr_compile_with(graph, &choice, graph->script ? compile_open : gr_compile_fixed, exec);
}
