/* What the files that write calls ask of a node. */
#include "tiny/call.h"

#include <stdarg.h>

/* --- what a node has --- */

__attribute__((format(printf, 2, 3))) void tiny_refuse(tiny_emitter *e, const char *format, ...) {
  if (e->status) return;
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  e->status = err_about(GRAFT_UNIMPLEMENTED, e->node->schema->name, "%s", text);
}

const graft_value *tiny_arg(const tiny_emitter *e, uint32_t number) {
  return &e->node->args[number];
}

const gr_view *tiny_operand(const tiny_emitter *e, uint32_t number) {
  static const gr_view absent = {.buffer = GR_NONE};
  const graft_value *v = tiny_arg(e, number);
  return v->kind == GRAFT_VALUE_TENSOR ? &e->node->operands[v->as.i].view : &absent;
}

const gr_view *tiny_list_operand(const tiny_emitter *e, uint32_t number, uint32_t at) {
  return &e->node->operands[tiny_arg(e, number)->as.i + at].view;
}

const gr_view *tiny_result(const tiny_emitter *e, uint32_t number) {
  return &e->node->results[number].view;
}

bool tiny_is_there(const gr_view *view) {
  return view->buffer != GR_NONE;
}

int64_t tiny_numel(const gr_view *view) {
  return tns_numel(view->ndim, view->sizes);
}

bool tiny_is_i8(const tiny_emitter *e, const gr_view *view) {
  return tiny_is_there(view) && e->held[view->buffer] == GRAFT_I8;
}

void tiny_need_dtype(tiny_emitter *e, const gr_view *view, graft_dtype dtype, const char *what) {
  if (tiny_is_there(view) && e->held[view->buffer] != dtype)
    tiny_refuse(e, "%s is %s; the kernel is for %s", what, graft_dtype_name(e->held[view->buffer]),
                graft_dtype_name(dtype));
}

const char *tiny_place(tiny_emitter *e, const gr_view *view) {
  return e->status ? "" : tiny_pointer(e, view);
}

const char *tiny_dense(tiny_emitter *e, const gr_view *view, graft_dtype dtype, const char *what) {
  tiny_need_dtype(e, view, dtype, what);
  if (tiny_is_there(view) && !tns_is_contiguous(view->ndim, view->sizes, view->strides))
    tiny_refuse(e, "%s is a view whose elements don't follow each other; the kernel takes contiguous ones", what);
  return tiny_place(e, view);
}

const char *tiny_in(tiny_emitter *e, uint32_t number) {
  return tiny_dense(e, tiny_operand(e, number), GRAFT_F32, e->node->schema->args[number].name);
}

const char *tiny_out(tiny_emitter *e, uint32_t number) {
  return tiny_dense(e, tiny_result(e, number), GRAFT_F32, "the result");
}

const char *tiny_samples(tiny_emitter *e, const gr_view *view, graft_dtype dtype, const char *what) {
  tiny_need_dtype(e, view, dtype, what);
  if (tiny_is_there(view) && !tns_is_contiguous(view->ndim - 1, view->sizes + 1, view->strides + 1))
    tiny_refuse(e, "the elements of one sample of %s don't follow each other; the kernel takes such", what);
  return tiny_place(e, view);
}

double tiny_scalar(tiny_emitter *e, const graft_scalar *s, const char *what) {
  if (s->dtype == GRAFT_F64) return s->value.f;
  if (s->dtype == GRAFT_I64) return (double)s->value.i;
  tiny_refuse(e, "%s is no real number", what);
  return 0;
}

double tiny_number(tiny_emitter *e, uint32_t number) {
  const char *what = e->node->schema->args[number].name;
  if (tiny_arg(e, number)->kind == GRAFT_VALUE_SCALAR) return tiny_scalar(e, &tiny_arg(e, number)->as.scalar, what);
  tiny_refuse(e, "%s is no real number", what);
  return 0;
}

long long tiny_item(tiny_emitter *e, uint32_t number, uint32_t at) {
  const graft_value *v = tiny_arg(e, number);
  if (v->kind != GRAFT_VALUE_INTS || !v->count)
    return tiny_refuse(e, "%s is absent", e->node->schema->args[number].name), 0;
  return v->as.ints[at < v->count ? at : v->count - 1];
}

void tiny_need_apart(tiny_emitter *e) {
  for (uint32_t i = 0; i < e->node->nresults; i++) {
    for (uint32_t k = 0; k < e->node->noperands; k++) {
      const gr_view *to = tiny_result(e, i), *from = &e->node->operands[k].view;
      if (tiny_is_there(to) && to->buffer == from->buffer && !e->node->operands[k].written)
        tiny_refuse(e, "it writes to what it reads; only calls element by element may");
    }
  }
}

void tiny_need_same(tiny_emitter *e, const gr_view *from, const gr_view *to, const char *what) {
  if (!tiny_is_there(from)) tiny_refuse(e, "%s is a number; the kernel takes tensors", what);
  if (tiny_numel(from) != tiny_numel(to))
    tiny_refuse(e, "%s is broadcast; the kernel takes operands of one shape", what);
  if (from->buffer == to->buffer && from->offset != to->offset) tiny_refuse(e, "%s overlaps the result", what);
}
