/* A graph as a picture: the language of graphviz. Ellipses are inputs and outputs, boxes calls, notes constants; an
 * edge is a value from who wrote it last to who reads it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_tools.h"

typedef struct drawing {
  cli_names names;
  char **from; /* by buffer: the box that wrote it last; NULL: nothing yet; owned */
} drawing;

static void print_quoted(const char *text) {
  putchar('"');
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') putchar('\\');
    putchar(*text == '\n' ? ' ' : *text);
  }
  putchar('"');
}

static void set_from(drawing *d, uint32_t buffer, const char *kind, uint32_t number) {
  char text[32];
  snprintf(text, sizeof text, "%s%u", kind, number);
  free(d->from[buffer]);
  d->from[buffer] = strdup(text);
}

static void draw_edge(const drawing *d, const gr_view *view, const char *kind, uint32_t to) {
  char text[512];
  if (view->buffer == GR_NONE || !d->from[view->buffer]) return;
  printf("  %s -> %s%u [label=", d->from[view->buffer], kind, to);
  print_quoted(cli_view_text(&d->names, view, true, text, sizeof text));
  printf("]\n");
}

static void draw_sources(drawing *d) {
  const graft_graph *graph = d->names.graph;
  for (uint32_t i = 0; i < graph->ninputs; i++) {
    printf("  input%u [shape=ellipse, label=", i);
    print_quoted(graph->inputs[i].name);
    printf("]\n");
    set_from(d, graph->inputs[i].view.buffer, "input", i);
  }
  for (uint32_t i = 0; i < graph->nbuffers; i++) {
    if (graph->buffers[i].kind != GR_CONSTANT) continue;
    printf("  constant%u [shape=note, label=", i);
    print_quoted(d->names.names[i]);
    printf("]\n");
    set_from(d, i, "constant", i);
  }
}

static void draw_node(drawing *d, uint32_t n) {
  const gr_node *node = d->names.graph->nodes[n];
  char label[160];
  snprintf(label, sizeof label, "%u %s", n, node->schema->name);
  printf("  node%u [shape=box, label=", n);
  print_quoted(label);
  printf("]\n");
  for (uint32_t i = 0; i < node->noperands; i++) draw_edge(d, &node->operands[i].view, "node", n);
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].given) draw_edge(d, &node->results[i].view, "node", n); /* the order of writes */
  }
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_operand *o = &node->operands[i];
    if (o->written && o->view.buffer != GR_NONE) set_from(d, o->view.buffer, "node", n);
  }
  for (uint32_t i = 0; i < node->nresults; i++) {
    if (node->results[i].view.buffer != GR_NONE) set_from(d, node->results[i].view.buffer, "node", n);
  }
}

static void draw_outputs(const drawing *d) {
  const graft_graph *graph = d->names.graph;
  for (uint32_t i = 0; i < graph->noutputs; i++) {
    printf("  output%u [shape=ellipse, label=", i);
    print_quoted(graph->outputs[i].name);
    printf("]\n");
    draw_edge(d, &graph->outputs[i].view, "output", i);
  }
}

graft_status cli_graph_dot(const graft_graph *graph) {
  drawing d = {0};
  graft_status status = cli_names_make(graph, &d.names);
  if (status) return status;
  d.from = calloc(graph->nbuffers + 1u, sizeof *d.from);
  if (!d.from) status = err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a picture");
  if (!status) {
    printf("digraph graph_of_calls {\n");
    draw_sources(&d);
    for (uint32_t n = 0; n < graph->nnodes; n++) draw_node(&d, n);
    draw_outputs(&d);
    printf("}\n");
  }
  for (uint32_t i = 0; d.from && i < graph->nbuffers; i++) free(d.from[i]);
  free(d.from);
  cli_names_free(&d.names);
  return status;
}
