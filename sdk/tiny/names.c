/* What dtypes and memory are called in C. */
#include <inttypes.h>
#include <stdarg.h>

#include "tiny/emitter.h"

const char *tiny_type(graft_dtype dtype) {
  switch ((int)dtype) {
    case GRAFT_F32: return "float";
    case GRAFT_I8: return "int8_t";
    case GRAFT_I32: return "int32_t";
    case GRAFT_I64: return "int64_t";
    default: return NULL;
  }
}

graft_tensor *tiny_held(const tiny_emitter *e, uint32_t input) {
  return e->options->values ? e->options->values[input] : NULL;
}

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
  for (uint32_t i = 0; i < e->graph->ninputs; i++) {
    if (e->graph->inputs[i].view.buffer != buffer) continue;
    const char *name = e->graph->inputs[i].name;
    return tiny_held(e, i) ? text_of(e, "%s_%s", e->options->name, name) : text_of(e, "in_%s", name);
  }
  if (e->graph->buffers[buffer].kind == GR_CONSTANT) return text_of(e, "constant_%" PRIu32, buffer);
  return text_of(e, "(%s *)(void *)(arena + %" PRIu64 ")", tiny_type(e->dtypes[buffer]), e->offsets[buffer]);
}

const char *tiny_pointer(tiny_emitter *e, const gr_view *view) {
  if (view->buffer == GR_NONE) return "NULL";
  const char *base = base_of(e, view->buffer);
  return view->offset ? text_of(e, "%s + %lld", base, (long long)view->offset) : base;
}
