/* What dtypes and memory are called in C. */
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tiny/emitter.h"

const char *tiny_type(graft_dtype dtype) {
  switch ((int)dtype) {
    case GRAFT_F32: return "float";
    case GRAFT_I8: return "int8_t";
    case GRAFT_I32: return "int32_t";
    case GRAFT_I64: return "int64_t";
    case GRAFT_BOOL: return "uint8_t";
    default: return NULL;
  }
}

graft_tensor *tiny_held(const tiny_emitter *e, uint32_t input) {
  return e->options->values ? e->options->values[input] : NULL;
}

/* --- inputs and outputs --- */

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* Letters, digits and _. */
static bool is_word(const char *text) {
  for (const char *c = text; *c; c++) {
    if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !is_digit(*c) && *c != '_') return false;
  }
  return *text;
}

/* A digit may be first: something stands before it. */
static graft_status take_name(tiny_emitter *e, const char *name, const char **taken) {
  char *text = arena_copy(&e->memory, name, strlen(name) + 1);
  if (!text) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the names of a source");
  for (char *c = text; *c; c++) {
    if (*c == '.') *c = '_';
  }
  *taken = text;
  if (is_word(text)) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "'%s' can't be in a name in C: that takes letters, digits and _, and . which becomes _", name);
}

/* kind: "inputs", for an error. */
static graft_status take_names(tiny_emitter *e, const char *kind, const gr_port *ports, uint32_t count,
                               const char **taken) {
  for (uint32_t i = 0; i < count; i++) {
    graft_status status = take_name(e, ports[i].name, &taken[i]);
    if (status) return status;
    for (uint32_t k = 0; k < i; k++) {
      if (strcmp(taken[k], taken[i]) != 0) continue;
      return err_set(GRAFT_INVALID_ARGUMENT, "the %s '%s' and '%s' would both be called %s in C; name one otherwise",
                     kind, ports[k].name, ports[i].name, taken[i]);
    }
  }
  return GRAFT_OK;
}

/* An input's name stands behind that of the source, as others do. */
static graft_status check_input_name(const char *name) {
  static const char *const taken[] = {"run", "random", "ARENA_BYTES", "UPDATED_BYTES", "CONSTANT_BYTES"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    if (!strcmp(name, taken[i]))
      return err_set(GRAFT_INVALID_ARGUMENT, "an input is called '%s', which a source uses itself; name it otherwise",
                     name);
  }
  return GRAFT_OK;
}

graft_status tiny_take_names(tiny_emitter *e) {
  const graft_graph *g = e->graph;
  const char *name = e->options->name;
  if (!is_word(name) || is_digit(*name))
    return err_set(GRAFT_INVALID_ARGUMENT, "'%s' can't be a name in C: it takes letters, digits and _, no digit first",
                   name);
  e->inputs = arena_take(&e->memory, g->ninputs * sizeof *e->inputs);
  e->outputs = arena_take(&e->memory, g->noutputs * sizeof *e->outputs);
  if (!e->inputs || !e->outputs) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the names of a source");
  graft_status status = take_names(e, "inputs", g->inputs, g->ninputs, e->inputs);
  for (uint32_t i = 0; i < g->ninputs && !status; i++) status = check_input_name(e->inputs[i]);
  return status ? status : take_names(e, "outputs", g->outputs, g->noutputs, e->outputs);
}

/* --- memory --- */

/* The text of printf in the emitter's memory; "" where there is none. */
__attribute__((format(printf, 2, 3))) static const char *text_of(tiny_emitter *e, const char *format, ...) {
  char text[512];
  va_list list;
  va_start(list, format);
  const int length = vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const char *made = length < (int)sizeof text ? arena_copy(&e->memory, text, (size_t)length + 1) : NULL;
  if (!made && !e->status) e->status = err_set(GRAFT_OUT_OF_MEMORY, "a name is too long, or there is no host memory");
  return made ? made : "";
}

static const char *base_of(tiny_emitter *e, uint32_t buffer) {
  if (e->same[buffer] != GR_NONE) buffer = e->same[buffer];
  for (uint32_t i = 0; i < e->graph->ninputs; i++) {
    if (e->graph->inputs[i].view.buffer != buffer) continue;
    const char *name = e->inputs[i];
    return tiny_held(e, i) ? text_of(e, "%s_%s", e->options->name, name) : text_of(e, "in_%s", name);
  }
  if (e->graph->buffers[buffer].kind == GR_CONSTANT) return text_of(e, "constant_%" PRIu32, buffer);
  return text_of(e, "(%s *)(void *)(arena + %" PRIu64 ")", tiny_type(e->held[buffer]), e->offsets[buffer]);
}

const char *tiny_pointer(tiny_emitter *e, const gr_view *view) {
  if (view->buffer == GR_NONE) return "NULL";
  const char *base = base_of(e, view->buffer);
  return view->offset ? text_of(e, "%s + %lld", base, (long long)view->offset) : base;
}
