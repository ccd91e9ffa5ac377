/* The whole source. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tiny/emitter.h"

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory to write a graph as C");
}

/* --- dtypes --- */

static void write_element(FILE *to, graft_dtype dtype, const void *at) {
  const dt_value v = dt_load(dtype, at);
  if (dtype != GRAFT_F32) {
    const long long whole = dtype == GRAFT_I64 ? (long long)*(const int64_t *)at : (long long)v.re;
    fprintf(to, whole == INT64_MIN ? "INT64_MIN" : "%lld", whole);
  } else if (isfinite(v.re)) {
    fprintf(to, "%af", (double)v.re);
  } else {
    fputs(isnan(v.re) ? "NAN" : v.re < 0 ? "-INFINITY" : "INFINITY", to);
  }
}

/* --- what each buffer is read as --- */

static graft_status take_view(tiny_emitter *e, const char *what, const gr_view *view) {
  if (view->buffer == GR_NONE) return GRAFT_OK;
  graft_dtype *dtype = &e->dtypes[view->buffer];
  if (!tiny_type(view->dtype))
    return err_about(GRAFT_UNIMPLEMENTED, what, "%s is no dtype of such sources; they have f32, i8, i32, i64 and bool",
                     graft_dtype_name(view->dtype));
  if (view->flags) return err_about(GRAFT_UNIMPLEMENTED, what, "conjugate and negative bits are not served");
  if (*dtype && *dtype != view->dtype)
    return err_about(GRAFT_UNIMPLEMENTED, what, "memory that holds %s is read as %s, which is not served",
                     graft_dtype_name(*dtype), graft_dtype_name(view->dtype));
  if (e->graph->buffers[view->buffer].bytes > INT32_MAX)
    return err_about(GRAFT_UNIMPLEMENTED, what, "it has memory of %" PRIu64 " bytes; places are of 31 bits in sources",
                     e->graph->buffers[view->buffer].bytes);
  *dtype = view->dtype;
  return GRAFT_OK;
}

static graft_status take_node(tiny_emitter *e, const gr_node *node) {
  graft_status status = GRAFT_OK;
  if (!tiny_op_of(node)) {
    char names[2048];
    tiny_op_names(names, sizeof names);
    return err_about(GRAFT_UNIMPLEMENTED, node->schema->name, "sources have no kernel of it; they have those of %s",
                     names);
  }
  for (uint32_t i = 0; i < node->noperands && !status; i++)
    status = take_view(e, node->schema->name, &node->operands[i].view);
  for (uint32_t i = 0; i < node->nresults && !status; i++)
    status = take_view(e, node->schema->name, &node->results[i].view);
  return status;
}

static graft_status take_port(tiny_emitter *e, const gr_port *port) {
  graft_status status = take_view(e, port->name, &port->view);
  if (!status && !tns_is_contiguous(port->view.ndim, port->view.sizes, port->view.strides))
    status = err_about(GRAFT_UNIMPLEMENTED, port->name, "inputs and outputs are contiguous in such sources");
  return status;
}

static graft_status take_all(tiny_emitter *e) {
  const graft_graph *g = e->graph;
  graft_status status = tiny_take_names(e);
  for (uint32_t i = 0; i < g->ninputs && !status; i++) status = take_port(e, &g->inputs[i]);
  for (uint32_t i = 0; i < g->nnodes && !status; i++) {
    e->node = g->nodes[i];
    status = take_node(e, e->node);
  }
  if (status) return status;
  e->node = NULL;
  for (uint32_t i = 0; i < g->noutputs && !status; i++) status = take_port(e, &g->outputs[i]);
  return status;
}

/* --- memory --- */

typedef struct planning {
  gr_usage *usages;
  uint32_t *owners; /* by buffer: in whose memory it lies */
} planning;

/* Whether the kernel reads operand number `number`. */
static bool is_read(const gr_node *node, uint32_t number) {
  const uint32_t unread = tiny_op_of(node)->unread_args;
  for (uint32_t k = 0; k < node->nargs; k++) {
    if (unread >> k & 1 && node->args[k].kind == GRAFT_VALUE_TENSOR && (uint32_t)node->args[k].as.i == number)
      return false;
  }
  return true;
}

static void use(planning *p, const gr_view *view, uint32_t node) {
  if (view->buffer == GR_NONE) return;
  gr_usage *usage = &p->usages[view->buffer];
  if (usage->first == GR_NONE) usage->first = node;
  usage->last = node;
}

static void find_spans(const tiny_emitter *e, planning *p) {
  const graft_graph *g = e->graph;
  for (uint32_t i = 0; i < g->nbuffers; i++) p->usages[i] = (gr_usage){.first = GR_NONE};
  for (uint32_t n = 0; n < g->nnodes; n++) {
    for (uint32_t i = 0; i < g->nodes[n]->noperands; i++) {
      if (is_read(g->nodes[n], i)) use(p, &g->nodes[n]->operands[i].view, n);
    }
    for (uint32_t i = 0; i < g->nodes[n]->nresults; i++) use(p, &g->nodes[n]->results[i].view, n);
  }
  for (uint32_t i = 0; i < g->noutputs; i++) use(p, &g->outputs[i].view, g->nnodes);
  for (uint32_t i = 0; i < g->nbuffers; i++) {
    const bool planned = g->buffers[i].kind == GR_VALUE && p->usages[i].first != GR_NONE;
    const uint64_t count = e->dtypes[i] ? g->buffers[i].bytes / dt_bytes(e->dtypes[i]) : 0;
    p->usages[i].bytes = planned && e->same[i] == GR_NONE ? count * dt_bytes(e->held[i]) : 0;
  }
}

/* Whether all of a buffer is this view, in order. */
static bool is_whole(const graft_graph *g, const gr_view *view) {
  return !view->offset && tns_is_contiguous(view->ndim, view->sizes, view->strides) &&
         (uint64_t)tns_numel(view->ndim, view->sizes) * dt_bytes(view->dtype) == g->buffers[view->buffer].bytes;
}

/* Gives a value that begins with an elementwise node the memory of an operand that ends with it. */
static void take_over(const tiny_emitter *e, planning *p, uint32_t n) {
  const graft_graph *g = e->graph;
  const gr_node *node = g->nodes[n];
  const gr_view *to = &node->results[0].view;
  if (!tiny_op_of(node)->elementwise || to->buffer == GR_NONE || p->usages[to->buffer].first != n) return;
  if (!p->usages[to->buffer].bytes || !is_whole(g, to)) return;
  for (uint32_t i = 0; i < node->noperands; i++) {
    const gr_view *from = &node->operands[i].view;
    if (from->buffer == GR_NONE || g->buffers[from->buffer].kind != GR_VALUE || !is_whole(g, from)) continue;
    if (p->usages[from->buffer].last != n || from->dtype != to->dtype) continue;
    if (e->held[from->buffer] != e->held[to->buffer] || e->same[from->buffer] != GR_NONE) continue;
    if (g->buffers[from->buffer].bytes != g->buffers[to->buffer].bytes) continue;
    const uint32_t owner = p->owners[from->buffer];
    p->owners[to->buffer] = owner;
    p->usages[owner].last = p->usages[to->buffer].last;
    p->usages[to->buffer].bytes = 0;
    return;
  }
}

static graft_status plan(tiny_emitter *e) {
  const graft_graph *g = e->graph;
  planning p = {.usages = arena_take(&e->memory, g->nbuffers * sizeof *p.usages),
                .owners = arena_take(&e->memory, g->nbuffers * sizeof *p.owners)};
  gr_spot *spots = arena_take(&e->memory, g->nbuffers * sizeof *spots);
  uint64_t *arenas;
  uint32_t narenas;
  if (!p.usages || !p.owners || !spots) return no_memory();
  find_spans(e, &p);
  for (uint32_t i = 0; i < g->nbuffers; i++) p.owners[i] = i;
  for (uint32_t n = 0; n < g->nnodes; n++) take_over(e, &p, n);
  const gr_room room = {.alignment = 8, .most = UINT64_MAX};
  graft_status status = gr_plan_memory(p.usages, g->nbuffers, &room, spots, &arenas, &narenas);
  if (status) return status;
  e->arena_bytes = narenas ? arenas[0] : 0; /* there is no largest size, so there is one */
  free(arenas);
  for (uint32_t i = 0; i < g->nbuffers; i++) e->offsets[i] = spots[p.owners[i]].offset;
  return GRAFT_OK;
}

/* --- what the source offers --- */

static bool is_written(const graft_graph *g, uint32_t buffer) {
  for (uint32_t n = 0; n < g->nnodes; n++) {
    if (tiny_writes(g->nodes[n], buffer)) return true;
  }
  return false;
}

static bool draws(const graft_graph *g) {
  for (uint32_t n = 0; n < g->nnodes; n++) {
    if (gr_is_random(g->nodes[n])) return true;
  }
  return false;
}

static uint64_t count_of(const gr_view *view) {
  return (uint64_t)tns_numel(view->ndim, view->sizes);
}

/* "const float step_weight[640]" of an input with values. */
static void write_held(tiny_emitter *e, uint32_t input) {
  const gr_port *port = &e->graph->inputs[input];
  const uint64_t count = count_of(&port->view);
  fprintf(e->to, "%s%s %s_%s[%" PRIu64 "]", is_written(e->graph, port->view.buffer) ? "" : "const ",
          tiny_type(port->view.dtype), e->options->name, e->inputs[input], count ? count : 1);
}

static void write_prototype(tiny_emitter *e) {
  const graft_graph *g = e->graph;
  const char *between = "";
  fprintf(e->to, "void %s_run(", e->options->name);
  for (uint32_t i = 0; i < g->ninputs; i++) {
    if (tiny_held(e, i)) continue;
    const gr_view *view = &g->inputs[i].view;
    fprintf(e->to, "%s%s%s *in_%s", between, is_written(g, view->buffer) ? "" : "const ", tiny_type(view->dtype),
            e->inputs[i]);
    between = ", ";
  }
  for (uint32_t i = 0; i < g->noutputs; i++, between = ", ")
    fprintf(e->to, "%s%s *out_%s", between, tiny_type(g->outputs[i].view.dtype), e->outputs[i]);
  fputs(*between ? ")" : "void)", e->to);
}

static void count_bytes(const tiny_emitter *e, tiny_info *info) {
  const graft_graph *g = e->graph;
  *info = (tiny_info){.arena_bytes = e->arena_bytes};
  for (uint32_t i = 0; i < g->ninputs; i++) {
    const uint64_t bytes = count_of(&g->inputs[i].view) * dt_bytes(g->inputs[i].view.dtype);
    if (is_written(g, g->inputs[i].view.buffer))
      info->updated_bytes += bytes;
    else if (tiny_held(e, i))
      info->constant_bytes += bytes;
  }
  for (uint32_t i = 0; i < g->nbuffers; i++) {
    if (g->buffers[i].kind == GR_CONSTANT && e->dtypes[i]) info->constant_bytes += g->buffers[i].bytes;
  }
}

static void write_declarations(tiny_emitter *e, const tiny_info *info) {
  const char *name = e->options->name;
  fprintf(e->to,
          "/* Written by `graft tiny`; do not edit. It needs no library but that of C, and no heap: compile it as it "
          "is.\n * A program that calls it defines TINY_DECLARATIONS and includes it, to get what comes first. */\n"
          "#include <stdint.h>\n\n"
          "/* Bytes of memory: values in between, what is updated, what is only read. */\n"
          "enum { %s_ARENA_BYTES = %" PRIu64 ", %s_UPDATED_BYTES = %" PRIu64 ", %s_CONSTANT_BYTES = %" PRIu64 " };\n",
          name, info->arena_bytes, name, info->updated_bytes, name, info->constant_bytes);
  for (uint32_t i = 0; i < e->graph->ninputs; i++) {
    if (!tiny_held(e, i)) continue;
    fputs("extern ", e->to);
    write_held(e, i);
    fputs(";\n", e->to);
  }
  if (draws(e->graph))
    fprintf(e->to,
            "/* Random numbers: their seed, and how many 32-bit words were drawn. */\nextern uint64_t %s_random[2];\n",
            name);
  fputs("/* By one thread at a time. */\n", e->to);
  write_prototype(e);
  fputs(";\n\n#ifndef TINY_DECLARATIONS\n#include <math.h>\n#include <string.h>\n", e->to);
}

/* --- what it holds --- */

static void write_values(tiny_emitter *e, graft_dtype dtype, const unsigned char *bytes, uint64_t count) {
  const uint64_t unit = dt_bytes(dtype);
  fputs(" = {", e->to);
  for (uint64_t i = 0; i < count; i++) {
    fputs(i % 8 ? ", " : i ? ",\n  " : "\n  ", e->to);
    write_element(e->to, dtype, bytes + i * unit);
  }
  fputs(count ? "\n};\n" : "0};\n", e->to);
}

/* A tensor of the reference device. */
static void write_tensor(tiny_emitter *e, graft_dtype dtype, graft_tensor *t, uint64_t bytes) {
  unsigned char *data = malloc(bytes + 1);
  graft_status status = data ? graft_tensor_to_host(t, data) : no_memory();
  if (!status) write_values(e, dtype, data, bytes / dt_bytes(dtype));
  if (!e->status) e->status = status;
  free(data);
}

/* Whether the source names the arena: a value without elements lies there, too, and takes nothing. */
static bool names_arena(const tiny_emitter *e) {
  for (uint32_t i = 0; i < e->graph->nbuffers; i++) {
    if (e->graph->buffers[i].kind == GR_VALUE && e->dtypes[i]) return true;
  }
  return false;
}

static void write_memory(tiny_emitter *e) {
  const graft_graph *g = e->graph;
  fputc('\n', e->to);
  if (names_arena(e))
    fprintf(e->to, "static _Alignas(8) unsigned char arena[%" PRIu64 "];\n", e->arena_bytes ? e->arena_bytes : 1);
  if (draws(g)) {
    uint64_t seed;
    graft_generator_state(graft_generator_default(graft_device_reference()), &seed, NULL);
    fprintf(e->to, "uint64_t %s_random[2] = {UINT64_C(%" PRIu64 "), 0};\n", e->options->name, seed);
  }
  for (uint32_t i = 0; i < g->ninputs; i++) {
    const gr_view *view = &g->inputs[i].view;
    if (!tiny_held(e, i)) continue;
    write_held(e, i);
    write_tensor(e, view->dtype, tiny_held(e, i), count_of(view) * dt_bytes(view->dtype));
  }
  for (uint32_t i = 0; i < g->nbuffers; i++) {
    const gr_buffer *b = &g->buffers[i];
    if (b->kind != GR_CONSTANT || !e->dtypes[i]) continue;
    fprintf(e->to, "static const %s constant_%" PRIu32 "[%" PRIu64 "]", tiny_type(e->dtypes[i]), i,
            b->bytes ? b->bytes / dt_bytes(e->dtypes[i]) : 1);
    write_tensor(e, e->dtypes[i], b->constant, b->bytes);
  }
}

/* --- what it does --- */

static void write_kernels(tiny_emitter *e) {
  static const struct kernels {
    uint32_t bit;
    const char *file;
  } files[] = {{TINY_ELEMENTS, "elements.h"},       {TINY_PRODUCTS, "products.h"}, {TINY_SUMS, "sums.h"},
               {TINY_POOLING, "pooling.h"},         {TINY_LOSS, "loss.h"},         {TINY_QUANTIZE, "quantize.h"},
               {TINY_PRODUCTS_I8, "products_i8.h"}, {TINY_RANDOM, "random.h"}};
  uint32_t wanted = 0;
  for (uint32_t n = 0; n < e->graph->nnodes; n++) {
    const tiny_op *op = tiny_op_of(e->graph->nodes[n]);
    wanted |= op->kernels | (tiny_has_i8(e, e->graph->nodes[n]) ? op->i8_kernels : 0);
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    for (const tiny_kernel_file *f = tiny_kernel_files; wanted & files[i].bit && f->name; f++) {
      if (!strcmp(f->name, files[i].file)) fprintf(e->to, "\n%s", f->text);
    }
  }
}

static void write_run(tiny_emitter *e) {
  const graft_graph *g = e->graph;
  fputc('\n', e->to);
  write_prototype(e);
  fputs(" {\n", e->to);
  if (names_arena(e)) fputs("  (void)arena;\n", e->to);
  for (uint32_t i = 0; i < g->ninputs; i++) {
    if (!tiny_held(e, i)) fprintf(e->to, "  (void)in_%s;\n", e->inputs[i]);
  }
  for (uint32_t n = 0; n < g->nnodes && !e->status; n++) {
    e->node = g->nodes[n];
    tiny_op_of(e->node)->emit(e);
  }
  if (!e->status) e->node = NULL;
  for (uint32_t i = 0; i < g->noutputs; i++) {
    const gr_view *view = &g->outputs[i].view;
    fprintf(e->to, "  memcpy(out_%s, %s, %" PRIu64 ");\n", e->outputs[i], tiny_pointer(e, view),
            count_of(view) * dt_bytes(view->dtype));
  }
  fputs("}\n#endif\n", e->to);
}

static graft_status emit(tiny_emitter *e, tiny_info *info) {
  e->dtypes = arena_take(&e->memory, e->graph->nbuffers * sizeof *e->dtypes);
  e->held = arena_take(&e->memory, e->graph->nbuffers * sizeof *e->held);
  e->same = arena_take(&e->memory, e->graph->nbuffers * sizeof *e->same);
  e->offsets = arena_take(&e->memory, e->graph->nbuffers * sizeof *e->offsets);
  graft_status status = e->dtypes && e->held && e->same && e->offsets ? take_all(e) : no_memory();
  if (status) return status;
  tiny_choose_i8(e);
  status = plan(e);
  if (status) return status;
  count_bytes(e, info);
  write_declarations(e, info);
  write_kernels(e);
  write_memory(e);
  write_run(e);
  return e->status;
}

/* The number of the node that was being looked at, among all nodes that were recorded: what `graft graph` calls it. */
static uint32_t number_of(const tiny_emitter *e, gr_node *const *recorded, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (recorded[i] == e->node) return i;
  }
  return GR_NONE;
}

static graft_status emit_after_passes(tiny_emitter *e, graft_graph *graph, tiny_info *info) {
  const uint32_t count = graph->nnodes;
  gr_node **recorded = arena_copy(&e->memory, graph->nodes, count * sizeof *recorded);
  if (count && !recorded) return no_memory();
  graft_status status = gr_run_passes(graph, GR_PASS_DEAD | GR_PASS_CSE | GR_PASS_FOLD);
  if (!status) status = emit(e, info);
  const uint32_t number = e->node ? number_of(e, recorded, count) : GR_NONE;
  return status && number != GR_NONE ? gr_node_error(status, number) : status;
}

graft_status tiny_emit(const graft_graph *graph, const tiny_options *options, FILE *to, tiny_info *info) {
  graft_graph *clone;
  graft_status status = gr_clone(graph, &clone);
  if (status) return status;
  tiny_emitter e = {.graph = clone, .options = options, .to = to};
  status = emit_after_passes(&e, clone, info);
  arena_free(&e.memory);
  graft_graph_destroy(clone);
  return status;
}
