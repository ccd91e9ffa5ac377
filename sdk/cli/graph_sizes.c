/* A graph with open sizes, at those that are given or that its inputs bring. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "graph/script.h"
#include "graph_values.h"
#include "npy.h"

/* The sizes of a graph on their way to being known. */
typedef struct binding {
  const graft_graph *graph;
  const gr_sizes *sizes;
  int64_t *values;   /* by size */
  const char **from; /* by size: who said it; NULL: nobody yet */
} binding;

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the sizes of a graph");
}

/* --- what is given --- */

static graft_status set(const binding *b, uint32_t i, int64_t value, const char *from) {
  const gr_size *s = &b->sizes->items[i];
  if (value < s->least || value > s->most)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s: the size %s is %" PRId64 ", and goes from %" PRId64 " to %" PRId64,
                   from, s->name, value, s->least, s->most);
  if (b->from[i] && b->values[i] != value)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s: the size %s is %" PRId64 ", and %" PRId64 " by %s", from, s->name,
                   value, b->values[i], b->from[i]);
  b->values[i] = value;
  b->from[i] = from;
  return GRAFT_OK;
}

static graft_status take_given(const binding *b, const cli_pair *given) {
  char *end;
  errno = 0;
  const long long value = strtoll(given->what, &end, 10);
  if (errno || *end || end == given->what)
    return err_set(GRAFT_INVALID_ARGUMENT, "--size %s=%s: '%s' is no number", given->name, given->what, given->what);
  for (uint32_t i = 0; i < b->sizes->count; i++) {
    if (b->sizes->items[i].op == GR_SIZE_OPEN && strcmp(b->sizes->items[i].name, given->name) == 0)
      return set(b, i, value, "--size");
  }
  return err_set(GRAFT_INVALID_ARGUMENT, "the graph has no open size %s; `graft graph FILE` lists what it has",
                 given->name);
}

/* --- what inputs bring --- */

/* Dimensions that are an open size as it stands; whether others fit shows when the values are taken. */
static graft_status take_dims(const binding *b, const gr_port *port, const int64_t *sizes, int32_t ndim) {
  graft_status status = GRAFT_OK;
  for (int32_t d = 0; d < ndim && ndim == port->view.ndim && !status; d++) {
    const int64_t number = port->open->sizes[d];
    if (!gr_is_open(b->sizes, number) || b->sizes->items[gr_size_entry(number)].op != GR_SIZE_OPEN) continue;
    status = set(b, gr_size_entry(number), sizes[d], port->name);
  }
  return status;
}

static graft_status take_input(const binding *b, uint32_t i, const cli_pairs *inputs) {
  const gr_port *port = &b->graph->inputs[i];
  const char *what = gr_has_open_size(b->graph, port) ? cli_pairs_find(inputs, port->name) : NULL;
  cli_npy npy;
  if (!what || strncmp(what, "random:", 7) == 0) return GRAFT_OK;
  graft_status status = cli_npy_read(what, &npy);
  if (status) return err_attribute(status, port->name);
  status = take_dims(b, port, npy.sizes, npy.ndim);
  cli_npy_free(&npy);
  return status;
}

/* Where nobody has said what a size is, it is as it was. */
static void take_kept(const binding *b, const gr_port *port, const graft_tensor *kept) {
  for (int32_t d = 0; kept && d < kept->ndim; d++) {
    const int64_t number = port->open->sizes[d];
    const uint32_t i = gr_size_entry(number);
    if (!gr_is_open(b->sizes, number) || b->sizes->items[i].op != GR_SIZE_OPEN || b->from[i]) continue;
    b->values[i] = kept->sizes[d];
    b->from[i] = port->name;
  }
}

/* What is said by nobody is as in the run before, or else as it was when the graph was recorded. */
static graft_status bind(const binding *b, const cli_pairs *given, const cli_pairs *inputs, graft_tensor *const *kept) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < given->count && !status; i++) status = take_given(b, &given->items[i]);
  for (uint32_t i = 0; i < b->graph->ninputs && !status; i++) status = take_input(b, i, inputs);
  for (uint32_t i = 0; kept && i < b->graph->ninputs; i++) take_kept(b, &b->graph->inputs[i], kept[i]);
  for (uint32_t i = 0; i < b->sizes->count; i++) {
    if (!b->from[i]) b->values[i] = b->sizes->examples[i];
  }
  return status ? status : gr_sizes_evaluate(b->sizes, b->values);
}

/* --- the graph --- */

static graft_status make(const graft_graph *graph, const int64_t *values, graft_graph **made) {
  graft_status status = gr_make(graph, values, made);
  for (uint32_t i = 0; !status && i < graph->ninputs; i++) {
    (*made)->inputs[i].value = graph->inputs[i].value;
    if (graph->inputs[i].value) graft_tensor_retain(graph->inputs[i].value);
  }
  return status;
}

graft_status cli_graph_at(const graft_graph *graph, const cli_graph_given *given, char *text, size_t room,
                          graft_graph **made) {
  *made = NULL;
  *text = 0;
  if (!graph->script) {
    if (!given->sizes->count) return GRAFT_OK;
    return err_set(GRAFT_INVALID_ARGUMENT, "--size %s: the graph has no open sizes", given->sizes->items[0].name);
  }
  binding b = {.graph = graph, .sizes = &graph->script->sizes};
  b.values = calloc(b.sizes->count, sizeof *b.values);
  b.from = calloc(b.sizes->count, sizeof *b.from);
  graft_status status = b.values && b.from ? bind(&b, given->sizes, given->inputs, given->kept) : no_memory();
  if (!status) status = make(graph, b.values, made);
  if (!status) gr_sizes_text(b.sizes, b.values, text, room);
  free(b.values);
  free(b.from);
  return status;
}

/* --- what is shown --- */

void cli_graph_print_sizes(const graft_graph *graph) {
  if (!graph->script) return;
  const gr_sizes *sizes = &graph->script->sizes;
  char text[GR_SIZE_TEXT];
  printf("sizes:\n");
  for (uint32_t i = 0; i < sizes->count; i++) {
    const gr_size *s = &sizes->items[i];
    if (s->op == GR_SIZE_OPEN)
      printf("  %-12s from %" PRId64 " to %" PRId64 ", recorded at %" PRId64 "\n", s->name, s->least, s->most,
             sizes->examples[i]);
    else
      printf("  %s\n", gr_size_text(sizes, gr_size_name(i), text, sizeof text));
  }
  printf("inputs at all sizes:\n");
  for (uint32_t i = 0; i < graph->ninputs; i++) {
    const gr_port *port = &graph->inputs[i];
    printf("  %-12s %s%s", port->name, graft_dtype_name(port->view.dtype),
           gr_shape_text(sizes, port->view.ndim, port->open->sizes, text, sizeof text));
    if (port->open->strided)
      printf(":%s", gr_shape_text(sizes, port->view.ndim, port->open->strides, text, sizeof text));
    putchar('\n');
  }
}
