/* Where a backend goes wrong with a graph. Each node runs alone, on the backend and on the one that it is held against,
 * from the values that the latter had before it: so the first node that differs is the one that is wrong, and not one
 * that was given something wrong. Then the whole graph runs on the backend without passes and with them, which must
 * agree to the bit. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph_tools.h"

typedef struct bisecting {
  const cli_bisect *b;
  cli_names names;
  graft_tensor **inputs; /* as given, in host memory */
  graft_tensor **state;  /* by buffer: its bytes before the next node, in host memory; NULL: nothing yet */
  double largest;        /* of the relative differences so far */
  uint32_t largest_node;
} bisecting;

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to bisect a graph");
}

/* --- bytes --- */

/* A copy of so many bytes on a device. `from` NULL: zeros. */
static graft_status copy_of(graft_tensor *from, uint64_t bytes, graft_rt_device *device, graft_tensor **copy) {
  const int64_t size = (int64_t)bytes;
  void *zeros = from ? NULL : calloc(1, bytes + 1);
  if (!from && !zeros) return no_memory();
  graft_status status = from ? graft_tensor_empty(device, GRAFT_U8, 1, &size, copy)
                             : graft_tensor_from_host(device, GRAFT_U8, 1, &size, zeros, copy);
  free(zeros);
  if (status || !from || !bytes) return status;
  status = graft_tensor_copy(*copy, from);
  if (status) graft_tensor_release(*copy);
  return status;
}

static graft_status bytes_of(graft_tensor *t, uint64_t bytes, graft_tensor **all) {
  const int64_t size = (int64_t)bytes, one = 1, first = t->offset * (int64_t)dt_bytes(t->dtype);
  return tns_new(t->storage, t->device, GRAFT_U8, 1, &size, &one, first, all);
}

/* --- one node --- */

/* A node as a graph of its own: buffers that it reads or writes come in and go out as bytes. */
typedef struct lone_node {
  graft_graph *graph;
  uint32_t *in, *out; /* buffers, by input and by output */
  uint32_t nin, nout;
} lone_node;

static graft_status add_port(const bisecting *s, lone_node *lone, uint32_t buffer, bool in) {
  char name[16];
  gr_view view = {.buffer = buffer, .dtype = GRAFT_U8, .ndim = 1, .strides = {1}};
  view.sizes[0] = (int64_t)s->b->graph->buffers[buffer].bytes;
  snprintf(name, sizeof name, "b%u", buffer);
  for (uint32_t i = 0; i < (in ? lone->nin : lone->nout); i++) {
    if ((in ? lone->in : lone->out)[i] == buffer) return GRAFT_OK;
  }
  if (in) {
    lone->graph->buffers[buffer].kind = GR_INPUT;
    lone->in[lone->nin++] = buffer;
    return gr_add_port(lone->graph, &lone->graph->inputs, &lone->graph->ninputs, name, &view);
  }
  lone->out[lone->nout++] = buffer;
  return gr_add_port(lone->graph, &lone->graph->outputs, &lone->graph->noutputs, name, &view);
}

static graft_status add_ports(const bisecting *s, const gr_node *node, lone_node *lone) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < node->noperands && !status; i++) {
    if (node->operands[i].view.buffer != GR_NONE) status = add_port(s, lone, node->operands[i].view.buffer, true);
  }
  for (uint32_t i = 0; i < node->nresults && !status; i++) {
    const gr_result *r = &node->results[i];
    if (r->view.buffer != GR_NONE) status = add_port(s, lone, r->view.buffer, r->given);
  }
  return status;
}

static void free_lone(lone_node *lone) {
  graft_graph_destroy(lone->graph);
  free(lone->in);
  free(lone->out);
}

static graft_status make_lone(const bisecting *s, gr_node *node, lone_node *lone) {
  const graft_graph *graph = s->b->graph;
  const size_t most = node->noperands + node->nresults + 1u;
  *lone = (lone_node){.in = calloc(most, sizeof *lone->in), .out = calloc(most, sizeof *lone->out)};
  graft_status status = lone->in && lone->out ? graft_graph_create(graph->device, &lone->graph) : no_memory();
  if (!status) lone->graph->default_dtype = graph->default_dtype;
  for (uint32_t i = 0; i < graph->nbuffers && !status; i++) {
    uint32_t index;
    status = gr_add_buffer(lone->graph, GR_VALUE, graph->buffers[i].bytes, &index);
    if (!status) lone->graph->buffers[index].on_host = graph->buffers[i].on_host;
  }
  if (!status) status = gr_grow((void **)&lone->graph->nodes, 0, sizeof *lone->graph->nodes);
  if (!status) lone->graph->nodes[lone->graph->nnodes++] = node; /* whose parts live as long as the whole graph */
  if (!status) status = add_ports(s, node, lone);
  if (status) free_lone(lone);
  return status;
}

/* Runs it on a device; after[buffer] receives, in host memory, what each of its buffers then holds. */
static graft_status run_lone(const bisecting *s, const lone_node *lone, graft_rt_device *device, graft_tensor **after) {
  graft_graph_exec *exec;
  graft_tensor **in = calloc(lone->nin + lone->nout + 1u, sizeof *in), **out = in + lone->nin;
  const gr_buffer *buffers = s->b->graph->buffers;
  if (!in) return no_memory();
  graft_status status = graft_graph_compile(lone->graph, device, "none", &exec);
  if (status) return free(in), status;
  for (uint32_t i = 0; i < lone->nin && !status; i++) {
    const gr_buffer *b = &buffers[lone->in[i]];
    status = copy_of(s->state[lone->in[i]], b->bytes, b->on_host ? graft_device_reference() : device, &in[i]);
  }
  if (!status) status = graft_graph_run(exec, in, lone->nin, out, lone->nout);
  for (uint32_t i = 0; i < lone->nin + lone->nout && !status; i++) {
    const uint32_t buffer = i < lone->nin ? lone->in[i] : lone->out[i - lone->nin];
    status = copy_of(in[i], buffers[buffer].bytes, graft_device_reference(), &after[buffer]);
  }
  for (uint32_t i = 0; i < lone->nin + lone->nout; i++) graft_tensor_release(in[i]);
  graft_graph_exec_destroy(exec);
  free(in);
  return status;
}

/* --- what is the same --- */

/* How two results differ: the first element that does, and by how much. */
typedef struct difference {
  bool differs;
  int64_t element;
  dt_value is, expected;
  double most, size; /* the largest difference, the largest element */
} difference;

static double tolerance_of(const bisecting *s, graft_dtype dtype) {
  if (s->b->tolerance >= 0) return s->b->tolerance;
  switch (dt_is_complex(dtype) ? dt_real(dtype) : dtype) { /* half of the bits of its fraction */
    case GRAFT_F64: return 0x1p-26;
    case GRAFT_F32: return 0x1p-12;
    case GRAFT_F16: return 0x1p-5;
    case GRAFT_BF16: return 0x1p-4;
    case GRAFT_F8_E4M3FN: return 0x1p-2;
    case GRAFT_F8_E5M2: return 0x1p-1;
    default: return 0;
  }
}

static double gap(long double a, long double b) {
  if (a == b || (isnan(a) && isnan(b))) return 0;
  return isfinite(a) && isfinite(b) ? (double)fabsl(a - b) : INFINITY;
}

static double gap_of(dt_value a, dt_value b) {
  return fmax(gap(a.re, b.re), gap(a.im, b.im));
}

static double size_of(dt_value v) {
  return fmax(isfinite(v.re) ? (double)fabsl(v.re) : 0, isfinite(v.im) ? (double)fabsl(v.im) : 0);
}

static void compare_values(const bisecting *s, graft_dtype dtype, int64_t numel, const unsigned char *is,
                           const unsigned char *expected, difference *d) {
  const int64_t unit = (int64_t)dt_bytes(dtype);
  *d = (difference){0};
  for (int64_t i = 0; i < numel; i++) d->size = fmax(d->size, size_of(dt_load(dtype, expected + i * unit)));
  const double most = tolerance_of(s, dtype) * d->size;
  for (int64_t i = 0; i < numel; i++) {
    const dt_value a = dt_load(dtype, is + i * unit), b = dt_load(dtype, expected + i * unit);
    const double by = gap_of(a, b);
    d->most = fmax(d->most, by);
    if (by <= most || d->differs) continue;
    d->differs = true;
    d->element = i;
    d->is = a;
    d->expected = b;
  }
}

static graft_status values_of(graft_tensor *bytes, const gr_view *view, unsigned char **values) {
  graft_tensor *t;
  graft_status status =
      tns_new(bytes->storage, bytes->device, view->dtype, view->ndim, view->sizes, view->strides, view->offset, &t);
  if (status) return status;
  t->flags |= view->flags;
  *values = malloc((size_t)t->numel * dt_bytes(t->dtype) + 1);
  status = *values ? graft_tensor_to_host(t, *values) : no_memory();
  graft_tensor_release(t);
  return status;
}

static graft_status compare_view(const bisecting *s, const gr_view *view, graft_tensor *const *is,
                                 graft_tensor *const *expected, difference *d) {
  unsigned char *a = NULL, *b = NULL;
  graft_status status = values_of(is[view->buffer], view, &a);
  if (!status) status = values_of(expected[view->buffer], view, &b);
  if (!status) compare_values(s, view->dtype, tns_numel(view->ndim, view->sizes), a, b, d);
  free(a);
  free(b);
  return status;
}

static void print_value(dt_value v, graft_dtype dtype) {
  printf("%.9Lg", v.re);
  if (dt_is_complex(dtype)) printf("%+.9Lgi", v.im);
}

static void print_difference(const bisecting *s, uint32_t node, const gr_view *view, const difference *d) {
  char text[512];
  char *call = cli_node_text(&s->names, s->b->graph->nodes[node]);
  printf("node %u differs: %s\n", node, call ? call : "");
  printf("  %s: element %lld is ", cli_view_text(&s->names, view, true, text, sizeof text), (long long)d->element);
  print_value(d->is, view->dtype);
  printf(" on %s and ", graft_device_text(s->b->device));
  print_value(d->expected, view->dtype);
  printf(" on %s; the largest difference is %.3g, the largest element %.3g\n", graft_device_text(s->b->against),
         d->most, d->size);
  free(call);
}

/* All that the node writes. */
static graft_status compare_node(bisecting *s, uint32_t n, graft_tensor *const *is, graft_tensor *const *expected,
                                 bool *found) {
  const gr_node *node = s->b->graph->nodes[n];
  for (uint32_t i = 0; i < node->noperands + node->nresults && !*found; i++) {
    const bool operand = i < node->noperands;
    const gr_view *view = operand ? &node->operands[i].view : &node->results[i - node->noperands].view;
    difference d;
    if (view->buffer == GR_NONE || (operand && !node->operands[i].written)) continue;
    graft_status status = compare_view(s, view, is, expected, &d);
    if (status) return status;
    const double relative = d.most > 0 ? d.most / fmax(d.size, DBL_MIN) : 0;
    if (relative > s->largest) s->largest = relative, s->largest_node = n;
    *found = d.differs;
    if (d.differs) print_difference(s, n, view, &d);
  }
  return GRAFT_OK;
}

/* --- node by node --- */

static graft_status compare_draws(const bisecting *s, uint32_t n, uint64_t seed, uint64_t offset, bool *found) {
  uint64_t seeds[2], offsets[2];
  graft_generator_state(graft_generator_default(s->b->device), &seeds[0], &offsets[0]);
  graft_generator_state(graft_generator_default(s->b->against), &seeds[1], &offsets[1]);
  if (offsets[0] == offsets[1] || *found) return GRAFT_OK;
  *found = true;
  char *call = cli_node_text(&s->names, s->b->graph->nodes[n]);
  printf("node %u differs: %s\n  it drew %llu numbers on %s and %llu on %s (seed %llu)\n", n, call ? call : "",
         (unsigned long long)(offsets[0] - offset), graft_device_text(s->b->device),
         (unsigned long long)(offsets[1] - offset), graft_device_text(s->b->against), (unsigned long long)seed);
  free(call);
  return GRAFT_OK;
}

/* Runs on both, compares, and goes on with what the other one gave. */
static graft_status try_node(bisecting *s, uint32_t n, graft_tensor **is, graft_tensor **expected, bool *found) {
  lone_node lone;
  uint64_t seed, offset;
  graft_status status = make_lone(s, s->b->graph->nodes[n], &lone);
  if (status) return status;
  graft_generator_state(graft_generator_default(s->b->against), &seed, &offset);
  status = run_lone(s, &lone, s->b->against, expected);
  if (!status && s->b->device != s->b->against)
    graft_generator_set_state(graft_generator_default(s->b->device), seed, offset);
  if (!status) status = run_lone(s, &lone, s->b->device, is);
  if (status) { /* a graph of one node numbers it 0 */
    char subject[40];
    snprintf(subject, sizeof subject, "node %u, run alone", n);
    status = err_attribute(status, subject);
  }
  if (!status) status = compare_node(s, n, is, expected, found);
  if (!status && s->b->device != s->b->against) status = compare_draws(s, n, seed, offset, found);
  free_lone(&lone);
  return status;
}

static graft_status go_on(bisecting *s, graft_tensor **is, graft_tensor **expected) {
  for (uint32_t i = 0; i < s->b->graph->nbuffers; i++) {
    graft_tensor_release(is[i]);
    is[i] = NULL;
    if (!expected[i]) continue;
    graft_tensor_release(s->state[i]);
    s->state[i] = expected[i];
    expected[i] = NULL;
  }
  return GRAFT_OK;
}

static graft_status try_nodes(bisecting *s, bool *found) {
  const uint32_t count = s->b->graph->nbuffers;
  graft_tensor **is = calloc(2u * count + 2u, sizeof *is);
  if (!is) return no_memory();
  graft_status status = GRAFT_OK;
  for (uint32_t n = 0; n < s->b->graph->nnodes && !status && !*found; n++) {
    status = try_node(s, n, is, is + count, found);
    if (!status) status = go_on(s, is, is + count);
  }
  for (uint32_t i = 0; i < 2 * count; i++) graft_tensor_release(is[i]);
  free(is);
  return status;
}

static graft_status begin_state(bisecting *s) {
  const graft_graph *graph = s->b->graph;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < graph->nbuffers && !status; i++) {
    const gr_buffer *b = &graph->buffers[i];
    if (b->constant) status = copy_of(b->constant, b->bytes, graft_device_reference(), &s->state[i]);
  }
  for (uint32_t i = 0; i < graph->ninputs && !status; i++) {
    const uint32_t buffer = graph->inputs[i].view.buffer;
    graft_tensor *all;
    status = bytes_of(s->inputs[i], graph->buffers[buffer].bytes, &all);
    if (status) break;
    status = copy_of(all, graph->buffers[buffer].bytes, graft_device_reference(), &s->state[buffer]);
    graft_tensor_release(all);
  }
  return status;
}

/* --- passes --- */

/* What a whole run left: outputs, then inputs, as values. */
typedef struct whole_run {
  unsigned char **values; /* owned */
  size_t *bytes;
  uint32_t count;
} whole_run;

static void free_run(whole_run *run) {
  for (uint32_t i = 0; run->values && i < run->count; i++) free(run->values[i]);
  free(run->values);
  free(run->bytes);
}

static graft_status run_once(const bisecting *s, graft_graph_exec *exec, graft_tensor **in, graft_tensor **out,
                             whole_run *run) {
  const graft_graph *graph = s->b->graph;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < graph->ninputs && !status; i++) in[i] = NULL;
  status = cli_graph_inputs(graph, s->b->device, s->b->inputs, "random:1", in);
  graft_generator_set_state(graft_generator_default(s->b->device), 1, 0);
  if (!status) status = graft_graph_run(exec, in, graph->ninputs, out, graph->noutputs);
  for (uint32_t i = 0; i < run->count && !status; i++) {
    graft_tensor *t = i < graph->noutputs ? out[i] : in[i - graph->noutputs];
    run->bytes[i] = (size_t)t->numel * dt_bytes(t->dtype);
    run->values[i] = malloc(run->bytes[i] + 1);
    status = run->values[i] ? graft_tensor_to_host(t, run->values[i]) : no_memory();
  }
  return status;
}

static graft_status run_whole(const bisecting *s, const char *passes, whole_run *run) {
  const graft_graph *graph = s->b->graph;
  graft_graph_exec *exec;
  *run = (whole_run){.count = graph->ninputs + graph->noutputs};
  run->values = calloc(run->count + 1u, sizeof *run->values);
  run->bytes = calloc(run->count + 1u, sizeof *run->bytes);
  graft_tensor **in = calloc(run->count + 1u, sizeof *in), **out = in + graph->ninputs;
  graft_status status =
      run->values && run->bytes && in ? graft_graph_compile(graph, s->b->device, passes, &exec) : no_memory();
  if (status) return free(in), status;
  if (s->b->fault) s->b->fault(exec);
  status = run_once(s, exec, in, out, run);
  for (uint32_t i = 0; i < run->count; i++) graft_tensor_release(in[i]);
  graft_graph_exec_destroy(exec);
  free(in);
  return status;
}

/* The number of the first output or input that differs; count: none. */
static uint32_t first_difference(const whole_run *a, const whole_run *b) {
  uint32_t i = 0;
  while (i < a->count && !memcmp(a->values[i], b->values[i], a->bytes[i])) i++;
  return i;
}

/* Whether the graph with these passes gives what it does without any. */
static graft_status try_passes(const bisecting *s, const whole_run *without, const char *passes, uint32_t *differs) {
  whole_run run;
  graft_status status = run_whole(s, passes, &run);
  if (!status) *differs = first_difference(without, &run);
  free_run(&run);
  return status;
}

/* "-memory,-inplace": all passes from number `first` on are left out. */
static void leave_out(uint32_t first, char *text, size_t room) {
  const char *name;
  uint32_t bit;
  *text = 0;
  for (size_t used = 0; gr_pass_at(first, &name, &bit) && used < room; first++)
    used += (size_t)snprintf(text + used, room - used, "%s-%s", used ? "," : "", name);
}

static void print_pass(const bisecting *s, const char *pass, uint32_t differs) {
  const graft_graph *graph = s->b->graph;
  const bool output = differs < graph->noutputs;
  printf("pass %s differs: on %s, %s %s is other with it than without\n", pass, graft_device_text(s->b->device),
         output ? "output" : "input",
         output ? graph->outputs[differs].name : graph->inputs[differs - graph->noutputs].name);
}

/* Passes come in one by one, until one makes a difference. */
static graft_status find_pass(const bisecting *s, const whole_run *without, bool *found) {
  const char *name;
  uint32_t bit, differs = without->count;
  graft_status status = try_passes(s, without, NULL, &differs);
  for (uint32_t i = 0; !status && differs < without->count && !*found && gr_pass_at(i, &name, &bit); i++) {
    char passes[256];
    uint32_t now = without->count;
    leave_out(i + 1, passes, sizeof passes);
    status = try_passes(s, without, passes, &now);
    *found = !status && now < without->count;
    if (*found) print_pass(s, name, now);
  }
  if (!status && differs < without->count && !*found) {
    *found = true;
    print_pass(s, "(several together)", differs);
  }
  return status;
}

/* --- the whole --- */

static graft_status bisect(bisecting *s, bool *found) {
  graft_status status = begin_state(s);
  graft_generator_set_state(graft_generator_default(s->b->against), 1, 0);
  if (!status) status = try_nodes(s, found);
  if (status || *found) return status;
  printf("%u nodes agree, each by itself", s->b->graph->nnodes);
  if (s->largest > 0)
    printf("; the largest difference, relative to a result's largest element, is %.3g, of node %u", s->largest,
           s->largest_node);
  putchar('\n');
  whole_run without;
  status = run_whole(s, "none", &without);
  if (!status) status = find_pass(s, &without, found);
  free_run(&without);
  if (!status && !*found) printf("passes agree to the bit on %s\n", graft_device_text(s->b->device));
  return status;
}

graft_status cli_graph_bisect(const cli_bisect *b, bool *found) {
  const graft_graph *graph = b->graph;
  bisecting s = {.b = b};
  *found = false;
  graft_status status = cli_names_make(graph, &s.names);
  if (status) return status;
  s.inputs = calloc(graph->ninputs + 1u, sizeof *s.inputs);
  s.state = calloc(graph->nbuffers + 1u, sizeof *s.state);
  status = s.inputs && s.state ? cli_graph_inputs(graph, graft_device_reference(), b->inputs, "random:1", s.inputs)
                               : no_memory();
  const bool given = !status;
  if (!status) status = bisect(&s, found);
  for (uint32_t i = 0; given && i < graph->ninputs; i++) graft_tensor_release(s.inputs[i]);
  for (uint32_t i = 0; s.state && i < graph->nbuffers; i++) graft_tensor_release(s.state[i]);
  free(s.inputs);
  free(s.state);
  cli_names_free(&s.names);
  return status;
}
