/* A graph as text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "conformance/text/text.h"
#include "graph_tools.h"

/* --- names --- */

static const char *name_of(cli_names *n, const char *prefix, uint32_t number) {
  char text[32];
  int length = snprintf(text, sizeof text, "%s%u", prefix, number);
  return arena_copy(&n->memory, text, (size_t)length + 1);
}

graft_status cli_names_make(const graft_graph *graph, cli_names *n) {
  *n = (cli_names){.graph = graph};
  n->names = arena_take(&n->memory, graph->nbuffers * sizeof *n->names);
  uint32_t values = 0, constants = 0;
  bool good = n->names != NULL;
  for (uint32_t i = 0; i < graph->nbuffers && good; i++) {
    const bool constant = graph->buffers[i].kind == GR_CONSTANT;
    n->names[i] = constant ? name_of(n, "constant.", constants++) : name_of(n, "v", values++);
    good = n->names[i] != NULL;
  }
  for (uint32_t i = 0; i < graph->ninputs && good; i++) n->names[graph->inputs[i].view.buffer] = graph->inputs[i].name;
  if (!good) cli_names_free(n);
  return good ? GRAFT_OK : err_set(GRAFT_OUT_OF_MEMORY, "no host memory for names");
}

void cli_names_free(cli_names *n) {
  arena_free(&n->memory);
}

/* --- views and nodes --- */

char *cli_view_text(const cli_names *n, const gr_view *view, bool dtype, char *text, size_t room) {
  if (view->buffer == GR_NONE) {
    snprintf(text, room, "_");
    return text;
  }
  const uint64_t bytes = n->graph->buffers[view->buffer].bytes;
  const int64_t numel = tns_numel(view->ndim, view->sizes);
  const bool contiguous = tns_is_contiguous(view->ndim, view->sizes, view->strides);
  const bool whole = contiguous && !view->offset && (uint64_t)numel * dt_bytes(view->dtype) == bytes;
  size_t used = (size_t)snprintf(text, room, "%s", n->names[view->buffer]);
  if ((dtype || !whole) && used < room)
    used += (size_t)snprintf(text + used, room - used, " %s%s", graft_dtype_name(view->dtype),
                             TNS_INTS(view->ndim, view->sizes));
  if (!contiguous && used < room)
    used += (size_t)snprintf(text + used, room - used, ":%s", TNS_INTS(view->ndim, view->strides));
  if (view->offset && used < room) used += (size_t)snprintf(text + used, room - used, "@%lld", (long long)view->offset);
  if (view->flags && used < room)
    snprintf(text + used, room - used, "%s%s", view->flags & TNS_CONJ ? " conjugate" : "",
             view->flags & TNS_NEG ? " negative" : "");
  return text;
}

static void print_operands(const cli_names *n, const gr_node *node, const graft_value *v, FILE *to) {
  const bool list = v->kind == GRAFT_VALUE_TENSORS;
  const uint32_t count = list ? v->count : 1;
  char text[512];
  if (list) fputc('{', to);
  for (uint32_t i = 0; i < count; i++) {
    const gr_operand *o = &node->operands[v->as.i + i];
    fprintf(to, "%s%s%s", i ? "; " : "", o->written ? "!" : "", cli_view_text(n, &o->view, false, text, sizeof text));
  }
  if (list) fputc('}', to);
}

static void print_args(const cli_names *n, const gr_node *node, FILE *to) {
  const char *between = "";
  char text[512];
  for (uint32_t i = 0; i < node->nargs; i++) {
    const graft_value *v = &node->args[i];
    if (v->kind == GRAFT_VALUE_NONE || v->kind == GRAFT_VALUE_DEVICE) continue;
    fprintf(to, "%s%s=", between, node->schema->args[i].name);
    between = ", ";
    if (v->kind == GRAFT_VALUE_TENSOR || v->kind == GRAFT_VALUE_TENSORS)
      print_operands(n, node, v, to);
    else
      fputs(txt_format_value(v, text, sizeof text), to);
  }
}

char *cli_node_text(const cli_names *n, const gr_node *node) {
  char *made = NULL, text[512];
  size_t bytes;
  FILE *to = open_memstream(&made, &bytes);
  if (!to) return NULL;
  for (uint32_t i = 0; i < node->nresults; i++) {
    const gr_result *r = &node->results[i];
    fprintf(to, "%s%s%s", i ? ", " : "", r->given ? "!" : "", cli_view_text(n, &r->view, true, text, sizeof text));
  }
  fprintf(to, "%s%s(", node->nresults ? " = " : "", node->schema->name);
  print_args(n, node, to);
  fputc(')', to);
  fclose(to);
  return made;
}

/* --- the whole --- */

static void print_ports(const cli_names *n, const char *what, const gr_port *ports, uint32_t count) {
  char text[512];
  printf("%s:%s\n", what, count ? "" : " none");
  for (uint32_t i = 0; i < count; i++) {
    const gr_view *view = &ports[i].view;
    const bool on_host = n->graph->buffers[view->buffer].on_host;
    printf("  %-12s %s%s%s\n", ports[i].name, cli_view_text(n, view, true, text, sizeof text),
           on_host ? " in host memory" : "", ports[i].value ? ", with a value" : "");
  }
}

static void print_constants(const cli_names *n) {
  uint64_t sum = 0;
  uint32_t count = 0;
  for (uint32_t i = 0; i < n->graph->nbuffers; i++) {
    const gr_buffer *b = &n->graph->buffers[i];
    if (b->kind != GR_CONSTANT) continue;
    if (!count++) printf("constants:\n");
    printf("  %-12s %llu bytes%s\n", n->names[i], (unsigned long long)b->bytes, b->on_host ? " in host memory" : "");
    sum += b->bytes;
  }
  if (!count) printf("constants: none\n");
  if (count > 1) printf("  %-12s %llu bytes\n", "all", (unsigned long long)sum);
}

static graft_status print_nodes(const cli_names *n) {
  printf("nodes:%s\n", n->graph->nnodes ? "" : " none");
  for (uint32_t i = 0; i < n->graph->nnodes; i++) {
    char *text = cli_node_text(n, n->graph->nodes[i]);
    if (!text) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the text of a node");
    printf("  %-4u %s\n", i, text);
    free(text);
  }
  return GRAFT_OK;
}

static graft_status query(const graft_graph *graph, graft_rt_device *device, const char *passes,
                          graft_graph_exec_info *info) {
  graft_graph_exec *exec;
  graft_status status = graft_graph_compile(graph, device, passes, &exec);
  if (status) return status;
  status = graft_graph_exec_query(exec, info, sizeof *info);
  graft_graph_exec_destroy(exec);
  return status;
}

static graft_status print_memory(const graft_graph *graph, graft_rt_device *device) {
  graft_graph_exec_info info;
  graft_status status = query(graph, device, NULL, &info);
  if (status) return status;
  printf("on %s: %u nodes after passes, %llu bytes of values in %llu bytes of memory, %llu bytes of constants\n",
         graft_device_text(device), info.nodes, (unsigned long long)info.value_bytes,
         (unsigned long long)info.arena_bytes, (unsigned long long)info.constant_bytes);
  return GRAFT_OK;
}

graft_status cli_graph_show(const graft_graph *graph, graft_rt_device *device) {
  cli_names n;
  graft_status status = cli_names_make(graph, &n);
  if (status) return status;
  print_ports(&n, "inputs", graph->inputs, graph->ninputs);
  print_constants(&n);
  status = print_nodes(&n);
  print_ports(&n, "outputs", graph->outputs, graph->noutputs);
  cli_names_free(&n);
  return status ? status : print_memory(graph, device);
}

/* --- passes --- */

static bool is_among(const gr_node *node, gr_node *const *nodes, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (nodes[i] == node) return true;
  }
  return false;
}

/* The nodes of a graph as they are at one time, and their texts. */
typedef struct listing {
  gr_node **nodes;
  char **texts;
  uint32_t count;
} listing;

static void free_listing(listing *l) {
  for (uint32_t i = 0; l->texts && i < l->count; i++) free(l->texts[i]);
  free(l->texts);
  free(l->nodes);
}

static graft_status list_nodes(const graft_graph *graph, listing *l) {
  cli_names n;
  *l = (listing){.count = graph->nnodes};
  l->nodes = calloc(l->count + 1u, sizeof *l->nodes);
  l->texts = calloc(l->count + 1u, sizeof *l->texts);
  graft_status status =
      l->nodes && l->texts ? cli_names_make(graph, &n) : err_set(GRAFT_OUT_OF_MEMORY, "no host memory for nodes");
  if (status) return status;
  for (uint32_t i = 0; i < l->count; i++) {
    l->nodes[i] = graph->nodes[i];
    l->texts[i] = cli_node_text(&n, graph->nodes[i]);
  }
  cli_names_free(&n);
  return GRAFT_OK;
}

/* The nodes of one time that another one lacks. */
static void print_missing(const char *sign, const listing *of, const listing *in) {
  for (uint32_t i = 0; i < of->count; i++) {
    if (!is_among(of->nodes[i], in->nodes, in->count)) printf("  %s %s\n", sign, of->texts[i] ? of->texts[i] : "?");
  }
}

/* Runs one pass on what those before it left, and prints which nodes went and came. */
static graft_status show_pass(graft_graph *graph, const char *name, uint32_t bit) {
  listing before, after = {0};
  graft_status status = list_nodes(graph, &before);
  if (!status) status = gr_run_passes(graph, bit);
  if (!status) status = list_nodes(graph, &after);
  if (!status) {
    printf("%s: %u nodes, then %u\n", name, before.count, after.count);
    print_missing("-", &before, &after);
    print_missing("+", &after, &before);
  }
  free_listing(&before);
  free_listing(&after);
  return status;
}

static graft_status show_nodes(const graft_graph *graph) {
  const char *name;
  uint32_t bit;
  graft_graph *clone;
  graft_status status = gr_clone(graph, &clone);
  for (uint32_t i = 0; !status && gr_pass_at(i, &name, &bit); i++) {
    const uint32_t in_compile = GR_PASS_INPLACE | GR_PASS_MEMORY; /* those change no nodes */
    if (!(bit & in_compile)) status = show_pass(clone, name, bit);
  }
  graft_graph_destroy(clone);
  return status;
}

static graft_status print_row(const graft_graph *graph, graft_rt_device *device, const char *what, const char *passes) {
  graft_graph_exec_info info;
  graft_status status = query(graph, device, passes, &info);
  if (status) return status;
  printf("%-16s %8u %14llu %14llu %14llu\n", what, info.nodes, (unsigned long long)info.value_bytes,
         (unsigned long long)info.arena_bytes, (unsigned long long)info.constant_bytes);
  return GRAFT_OK;
}

graft_status cli_graph_show_passes(const graft_graph *graph, graft_rt_device *device) {
  const char *name;
  uint32_t bit;
  graft_status status = show_nodes(graph);
  if (!status)
    printf("%-16s %8s %14s %14s %14s\n", graft_device_text(device), "nodes", "bytes planned", "of memory",
           "of constants");
  if (!status) status = print_row(graph, device, "all passes", NULL);
  for (uint32_t i = 0; !status && gr_pass_at(i, &name, &bit); i++) {
    char what[32], without[32];
    snprintf(what, sizeof what, "without %s", name);
    snprintf(without, sizeof without, "-%s", name);
    status = print_row(graph, device, what, without);
  }
  return status ? status : print_row(graph, device, "none", "none");
}
