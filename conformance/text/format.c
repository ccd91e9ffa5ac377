/* The text form of calls: from values to text. What is written here, parse.c reads back. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/text/text.h"

typedef struct txt_writer {
  char *buffer;
  size_t capacity, length;
} txt_writer;

__attribute__((format(printf, 2, 3))) static void txt_put(txt_writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  size_t room = w->length < w->capacity ? w->capacity - w->length : 0;
  int n = vsnprintf(room ? w->buffer + w->length : NULL, room, format, args);
  va_end(args);
  if (n > 0) w->length += (size_t)n;
}

static txt_writer txt_writer_of(char *buffer, size_t capacity) {
  if (capacity) buffer[0] = 0;
  return (txt_writer){buffer, capacity, 0};
}

/* The shortest decimal that reads back as the same double, and looks like no integer. */
static void txt_put_double(txt_writer *w, double value) {
  char text[40];
  if (isnan(value)) return txt_put(w, "nan");
  if (isinf(value)) return txt_put(w, value < 0 ? "-inf" : "inf");
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  txt_put(w, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
}

static void txt_put_number(txt_writer *w, const graft_scalar *x) {
  switch (x->dtype) {
    case GRAFT_DTYPE_NONE: txt_put(w, "_"); break;
    case GRAFT_BOOL: txt_put(w, x->value.i ? "true" : "false"); break;
    case GRAFT_U64: txt_put(w, "%llu", (unsigned long long)x->value.i); break;
    case GRAFT_F64: txt_put_double(w, x->value.f); break;
    case GRAFT_C128:
      txt_put_double(w, x->value.c[0]);
      if (!signbit(x->value.c[1])) txt_put(w, "+");
      if (signbit(x->value.c[1]) && isnan(x->value.c[1])) txt_put(w, "+");
      txt_put_double(w, x->value.c[1]);
      txt_put(w, "j");
      break;
    default: txt_put(w, "%lld", (long long)x->value.i); break;
  }
}

static void txt_put_ints(txt_writer *w, const int64_t *items, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) txt_put(w, "%s%lld", i ? "," : "", (long long)items[i]);
}

static void txt_put_shape(txt_writer *w, graft_dtype dtype, int32_t ndim, const int64_t *sizes) {
  const char *name = graft_dtype_name(dtype);
  txt_put(w, "%s[", name ? name : "?");
  txt_put_ints(w, sizes, (uint32_t)ndim);
  txt_put(w, "]");
}

static void txt_put_tensor(txt_writer *w, const graft_tensor *t) {
  int64_t plain[GRAFT_MAX_DIMS];
  if (!t) return txt_put(w, "_");
  txt_put_shape(w, t->dtype, t->ndim, t->sizes);
  tns_contiguous_strides(t->ndim, t->sizes, plain);
  if (t->ndim && memcmp(plain, t->strides, (size_t)t->ndim * sizeof *plain) != 0) {
    txt_put(w, ":");
    txt_put_ints(w, t->strides, (uint32_t)t->ndim);
  }
  if (t->offset) txt_put(w, "@%lld", (long long)t->offset);
}

static void txt_put_list(txt_writer *w, const graft_value *v) {
  bool tensors = v->kind == GRAFT_VALUE_TENSORS;
  txt_put(w, tensors ? "{" : "[");
  for (uint32_t i = 0; i < v->count; i++) {
    if (i) txt_put(w, tensors ? ";" : ",");
    if (tensors) txt_put_tensor(w, v->as.tensors[i]);
    if (v->kind == GRAFT_VALUE_INTS) txt_put(w, "%lld", (long long)v->as.ints[i]);
    if (v->kind == GRAFT_VALUE_FLOATS) txt_put_double(w, v->as.floats[i]);
    if (v->kind == GRAFT_VALUE_SCALARS) txt_put_number(w, &v->as.scalars[i]);
    if (v->kind == GRAFT_VALUE_MASK) txt_put(w, "%d", v->as.mask[i] ? 1 : 0);
  }
  txt_put(w, tensors ? "}" : "]");
}

static const char *txt_memory_format_name(int64_t format) {
  static const char *const names[] = {"_", "'contiguous'", "'preserve'", "'channels_last'", "'channels_last_3d'"};
  return format >= 0 && format < (int64_t)(sizeof names / sizeof *names) ? names[format] : "_";
}

static void txt_put_value(txt_writer *w, const graft_value *v) {
  switch (v->kind) {
    case GRAFT_VALUE_TENSOR: txt_put_tensor(w, v->as.tensor); break;
    case GRAFT_VALUE_INT: txt_put(w, "%lld", (long long)v->as.i); break;
    case GRAFT_VALUE_FLOAT: txt_put_double(w, v->as.f); break;
    case GRAFT_VALUE_BOOL: txt_put(w, v->as.i ? "true" : "false"); break;
    case GRAFT_VALUE_SCALAR: txt_put_number(w, &v->as.scalar); break;
    case GRAFT_VALUE_TENSORS:
    case GRAFT_VALUE_INTS:
    case GRAFT_VALUE_FLOATS:
    case GRAFT_VALUE_SCALARS:
    case GRAFT_VALUE_MASK: txt_put_list(w, v); break;
    case GRAFT_VALUE_STR: txt_put(w, "'%s'", v->as.str); break;
    case GRAFT_VALUE_DTYPE: txt_put(w, "%s", graft_dtype_name(v->as.dtype)); break;
    case GRAFT_VALUE_MEMORY_FORMAT: txt_put(w, "%s", txt_memory_format_name(v->as.i)); break;
    default: txt_put(w, "_"); break;
  }
}

/* The argument as a word of its own, to be compared with its default's. */
static bool txt_same(const graft_value *a, const graft_value *b) {
  char x[256], y[256];
  return strcmp(txt_format_value(a, x, sizeof x), txt_format_value(b, y, sizeof y)) == 0;
}

/* Whether reading the text without this argument gives the same call. */
static bool txt_may_omit(const op_arg *arg, const graft_value *v) {
  /* A memory format never reaches a slot, but says how the result lies in memory. */
  if (arg->flags & OPA_DROPPED && arg->kind != OPK_MEMORY_FORMAT) return true;
  if (arg->kind == OPK_DEVICE || arg->kind == OPK_GENERATOR) return true;
  if (v->kind == GRAFT_VALUE_NONE) return arg->fallback != NULL || arg->flags & OPA_OPTIONAL;
  return arg->fallback && txt_same(v, arg->fallback);
}

char *txt_format_call(const op_schema *schema, const graft_value *args, uint32_t nargs, char *buffer, size_t capacity) {
  txt_writer w = txt_writer_of(buffer, capacity);
  txt_put(&w, "%s", schema->name);
  bool keyword = false;
  for (uint32_t i = 0; i < nargs && i < schema->nargs; i++) {
    const op_arg *arg = &schema->args[i];
    keyword = keyword || arg->flags & OPA_KWARG;
    if (txt_may_omit(arg, &args[i])) {
      keyword = true;
      continue;
    }
    txt_put(&w, keyword ? " %s=" : " ", arg->name);
    txt_put_value(&w, &args[i]);
  }
  return buffer;
}

char *txt_format_value(const graft_value *value, char *buffer, size_t capacity) {
  txt_writer w = txt_writer_of(buffer, capacity);
  txt_put_value(&w, value);
  return buffer;
}

char *txt_format_tensor(const graft_tensor *tensor, char *buffer, size_t capacity) {
  txt_writer w = txt_writer_of(buffer, capacity);
  txt_put_tensor(&w, tensor);
  return buffer;
}

char *txt_format_meta(const graft_meta *meta, char *buffer, size_t capacity) {
  txt_writer w = txt_writer_of(buffer, capacity);
  txt_put_shape(&w, meta->dtype, meta->ndim, meta->sizes);
  if (meta->ndim) txt_put(&w, ":");
  txt_put_ints(&w, meta->strides, (uint32_t)meta->ndim);
  return buffer;
}

char *txt_format_number(const graft_scalar *number, char *buffer, size_t capacity) {
  txt_writer w = txt_writer_of(buffer, capacity);
  txt_put_number(&w, number);
  return buffer;
}
