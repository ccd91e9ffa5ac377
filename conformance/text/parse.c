/* Parsing; the other direction is in format.c. */
#include "conformance/text/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where parsing stands. The first error wins; after it every step does nothing and gives zeros. */
typedef struct txt_reader {
  const char *line, *at;
  char *arena; /* room for lists and strings, large enough for the whole line */
  txt_call *call;
  const char *subject; /* the argument being read, NULL before the first */
  graft_status status;
} txt_reader;

static void txt_expected(txt_reader *r, const char *what) {
  if (r->status != GRAFT_OK) return;
  int shown = (int)strcspn(r->at, " \t\n");
  r->status = err_set(GRAFT_INVALID_ARGUMENT, "column %d of \"%.*s\": expected %s%s%s, found %s%.*s%s",
                      (int)(r->at - r->line) + 1, (int)strcspn(r->line, "\n"), r->line, what, r->subject ? " for " : "",
                      r->subject ? r->subject : "", shown ? "\"" : "the end", shown > 40 ? 40 : shown, r->at,
                      shown ? "\"" : "");
}

static bool txt_ok(const txt_reader *r) {
  return r->status == GRAFT_OK;
}

static void txt_blanks(txt_reader *r) {
  while (*r->at == ' ' || *r->at == '\t') r->at++;
}

static bool txt_at_end(const txt_reader *r) {
  return *r->at == 0 || *r->at == '\n';
}

static bool txt_accept(txt_reader *r, char c) {
  if (!txt_ok(r) || *r->at != c) return false;
  r->at++;
  return true;
}

static void txt_need(txt_reader *r, char c) {
  char what[] = {'"', c, '"', 0};
  if (txt_ok(r) && !txt_accept(r, c)) txt_expected(r, what);
}

static bool txt_is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* The length of the word (letters, digits, underscores) that begins here. */
static size_t txt_word(const char *at) {
  size_t n = 0;
  while (txt_is_word(at[n])) n++;
  return n;
}

static bool txt_word_is(const char *at, const char *word) {
  return txt_word(at) == strlen(word) && memcmp(at, word, strlen(word)) == 0;
}

static bool txt_accept_word(txt_reader *r, const char *word) {
  if (!txt_ok(r) || !txt_word_is(r->at, word)) return false;
  r->at += strlen(word);
  return true;
}

static void *txt_take(txt_reader *r, size_t bytes) {
  void *taken = r->arena;
  r->arena += (bytes + 15) & ~(size_t)15;
  return taken;
}

/* --- numbers --- */

static int64_t txt_int(txt_reader *r) {
  if (!txt_ok(r)) return 0;
  const char *digits = r->at + (*r->at == '-' || *r->at == '+');
  char *end;
  errno = 0;
  long long value = strtoll(r->at, &end, 10);
  if (!isdigit((unsigned char)*digits) || txt_is_word(*end) || *end == '.') return txt_expected(r, "an integer"), 0;
  if (errno) return txt_expected(r, "an integer of 64 bits"), 0;
  r->at = end;
  return value;
}

/* One real number without reading what C's strtod takes beyond Python's forms (hexadecimal, "infinity"). *is_int tells
 * 2 from 2.0. */
static double txt_real(txt_reader *r, bool *is_int) {
  const char *p = r->at;
  double sign = *p == '-' ? -1 : 1;
  if (*p == '-' || *p == '+') p++;
  *is_int = false;
  bool inf = txt_word_is(p, "inf") || txt_word_is(p, "infj");
  if (inf || txt_word_is(p, "nan") || txt_word_is(p, "nanj")) {
    r->at = p + 3;
    return inf ? sign * HUGE_VAL : (double)NAN;
  }
  bool digits = isdigit((unsigned char)p[0]) || (p[0] == '.' && isdigit((unsigned char)p[1]));
  if (!digits || (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))) return txt_expected(r, "a number"), 0;
  char *end;
  double value = strtod(r->at, &end);
  *is_int = strcspn(p, ".eE") >= (size_t)(end - p);
  r->at = end;
  return value;
}

static graft_scalar txt_integer_scalar(txt_reader *r, const char *from) {
  graft_scalar s = graft_scalar_int(0);
  errno = 0;
  s.value.i = strtoll(from, NULL, 10);
  if (errno != ERANGE) return s;
  errno = 0;
  s.value.i = (int64_t)strtoull(from, NULL, 10);
  s.dtype = GRAFT_U64;
  if (errno || *from == '-') r->at = from, txt_expected(r, "an integer of 64 bits");
  return s;
}

static graft_scalar txt_number(txt_reader *r) {
  if (txt_accept_word(r, "true")) return graft_scalar_bool(true);
  if (txt_accept_word(r, "false")) return graft_scalar_bool(false);
  bool is_int;
  const char *from = r->at;
  double re = txt_real(r, &is_int), im = 0;
  if (!txt_ok(r)) return graft_scalar_none();
  if (txt_accept(r, 'j')) {
    im = re, re = 0;
  } else if (*r->at == '+' || *r->at == '-') {
    im = txt_real(r, &is_int);
    txt_need(r, 'j');
  } else {
    return is_int ? txt_integer_scalar(r, from) : graft_scalar_float(re);
  }
  graft_scalar s = {GRAFT_C128, 0, {0}};
  s.value.c[0] = re, s.value.c[1] = im;
  return s;
}

static double txt_float(txt_reader *r) {
  bool is_int;
  return txt_ok(r) ? txt_real(r, &is_int) : 0;
}

static bool txt_bool(txt_reader *r) {
  if (txt_accept_word(r, "true") || txt_accept_word(r, "1")) return true;
  if (!txt_accept_word(r, "false") && !txt_accept_word(r, "0")) txt_expected(r, "true or false");
  return false;
}

/* --- names --- */

static graft_dtype txt_dtype(txt_reader *r) {
  char name[16];
  size_t n = txt_word(r->at);
  if (!txt_ok(r)) return GRAFT_DTYPE_NONE;
  graft_dtype dtype = GRAFT_DTYPE_NONE;
  if (n > 0 && n < sizeof name) {
    memcpy(name, r->at, n);
    name[n] = 0;
    dtype = graft_dtype_parse(name);
  }
  if (dtype == GRAFT_DTYPE_NONE) return txt_expected(r, "a dtype (such as f32, bf16, i64, bool)"), dtype;
  r->at += n;
  return dtype;
}

static const char *txt_str(txt_reader *r) {
  txt_need(r, '\'');
  size_t n = strcspn(r->at, "'\n");
  if (txt_ok(r) && r->at[n] != '\'') txt_expected(r, "a string that ends in '");
  if (!txt_ok(r)) return "";
  char *copy = txt_take(r, n + 1);
  memcpy(copy, r->at, n);
  copy[n] = 0;
  r->at += n + 1;
  return copy;
}

static graft_memory_format txt_memory_format(txt_reader *r) {
  static const struct {
    const char *name;
    graft_memory_format format;
  } formats[] = {
      {"'contiguous'", GRAFT_FORMAT_CONTIGUOUS},
      {"'preserve'", GRAFT_FORMAT_PRESERVE},
      {"'channels_last'", GRAFT_FORMAT_CHANNELS_LAST},
      {"'channels_last_3d'", GRAFT_FORMAT_CHANNELS_LAST_3D},
  };
  for (size_t i = 0; txt_ok(r) && i < sizeof formats / sizeof *formats; i++) {
    size_t n = strlen(formats[i].name);
    if (strncmp(r->at, formats[i].name, n) != 0) continue;
    r->at += n;
    return formats[i].format;
  }
  txt_expected(r, "'contiguous', 'preserve', 'channels_last' or 'channels_last_3d'");
  return GRAFT_FORMAT_DEFAULT;
}

/* --- tensors --- */

static int32_t txt_dims(txt_reader *r, int64_t *items, const char *what) {
  int32_t n = 0;
  do {
    if (n == GRAFT_MAX_DIMS) return txt_expected(r, "at most 16 dims"), n;
    const char *from = r->at;
    items[n++] = txt_int(r);
    if (txt_ok(r) && items[n - 1] < 0) r->at = from, txt_expected(r, what);
  } while (txt_accept(r, ','));
  return n;
}

static void txt_tensor_spec(txt_reader *r, txt_tensor *spec) {
  *spec = (txt_tensor){.dtype = txt_dtype(r)};
  txt_need(r, '[');
  if (txt_ok(r) && !txt_accept(r, ']')) {
    spec->ndim = txt_dims(r, spec->sizes, "a size that is not negative");
    txt_need(r, ']');
  }
  tns_contiguous_strides(spec->ndim, spec->sizes, spec->strides);
  const char *from = r->at;
  /* A rank-0 tensor has no strides to write, but may have an offset: "f32[]@5"; "f32[]:" is a list of none. */
  if (txt_accept(r, ':') && spec->ndim > 0) {
    int32_t n = txt_dims(r, spec->strides, "a stride that is not negative");
    if (txt_ok(r) && n != spec->ndim) r->at = from, txt_expected(r, "one stride for each dim");
  }
  from = r->at;
  if (txt_accept(r, '@')) spec->offset = txt_int(r);
  if (spec->offset < 0) r->at = from, txt_expected(r, "an offset that is not negative");
}

graft_status txt_parse_tensor(const char **text, txt_tensor *spec) {
  txt_reader r = {.line = *text, .at = *text};
  txt_tensor parsed;
  txt_tensor_spec(&r, &parsed);
  if (!txt_ok(&r)) return r.status;
  *spec = parsed;
  *text = r.at;
  return GRAFT_OK;
}

static void txt_new_tensor(txt_reader *r, uint32_t arg) {
  txt_tensor *spec = &r->call->specs[r->call->ntensors++];
  txt_tensor_spec(r, spec);
  spec->arg = arg;
}

/* Items of a list that begins here, for room: no item is shorter than one character and its separator. */
static size_t txt_room(const txt_reader *r, const char *ends) {
  return strcspn(r->at, ends) / 2 + 1;
}

/* --- values, by the kind that the schema says --- */

static graft_value txt_tensor_value(txt_reader *r, uint32_t arg) {
  size_t n = txt_word(r->at);
  if (n > 0 && r->at[n] == '[') {
    txt_new_tensor(r, arg);
    return (graft_value){.kind = GRAFT_VALUE_TENSOR};
  }
  bool number = isdigit((unsigned char)*r->at) || strchr("+-.", *r->at) || txt_word_is(r->at, "true") ||
                txt_word_is(r->at, "false") || txt_word_is(r->at, "inf") || txt_word_is(r->at, "nan");
  if (!number) return txt_expected(r, "a tensor (f32[2,3]) or a number"), (graft_value){0};
  return (graft_value){.kind = GRAFT_VALUE_SCALAR, .as.scalar = txt_number(r)};
}

/* Which items are absent is kept in the list itself until txt_make: a present one points at its place, for want of a
 * tensor. */
static graft_value txt_tensors_value(txt_reader *r, uint32_t arg) {
  static graft_tensor present;
  txt_need(r, '{');
  graft_tensor **items = txt_take(r, txt_room(r, "} \n") * sizeof *items);
  uint32_t n = 0;
  if (!txt_accept(r, '}')) {
    do {
      bool absent = txt_accept(r, '_');
      if (!absent) txt_new_tensor(r, arg);
      items[n++] = absent ? NULL : &present;
    } while (txt_accept(r, ';'));
    txt_need(r, '}');
  }
  return (graft_value){.kind = GRAFT_VALUE_TENSORS, .count = n, .as.tensors = items};
}

static graft_value txt_list_value(txt_reader *r, uint8_t kind) {
  txt_need(r, '[');
  size_t room = txt_room(r, "] \n");
  union {
    void *any;
    int64_t *ints;
    double *floats;
    graft_scalar *scalars;
    uint8_t *mask;
  } items = {txt_take(r, room * sizeof(graft_scalar))};
  uint32_t n = 0;
  if (!txt_accept(r, ']')) {
    do {
      if (kind == OPK_INTS) items.ints[n++] = txt_int(r);
      if (kind == OPK_FLOATS) items.floats[n++] = txt_float(r);
      if (kind == OPK_SCALARS) items.scalars[n++] = txt_number(r);
      if (kind == OPK_MASK) items.mask[n++] = txt_bool(r);
    } while (txt_accept(r, ','));
    txt_need(r, ']');
  }
  graft_value v = {.kind = GRAFT_VALUE_INTS, .count = n, .as.ints = items.ints};
  if (kind == OPK_FLOATS) v.kind = GRAFT_VALUE_FLOATS, v.as.floats = items.floats;
  if (kind == OPK_SCALARS) v.kind = GRAFT_VALUE_SCALARS, v.as.scalars = items.scalars;
  if (kind == OPK_MASK) v.kind = GRAFT_VALUE_MASK, v.as.mask = items.mask;
  return v;
}

static graft_value txt_value(txt_reader *r, const op_arg *arg, uint32_t index) {
  switch (arg->kind) {
    case OPK_TENSOR: return txt_tensor_value(r, index);
    case OPK_TENSORS: return txt_tensors_value(r, index);
    case OPK_INT: return (graft_value){.kind = GRAFT_VALUE_INT, .as.i = txt_int(r)};
    case OPK_FLOAT: return (graft_value){.kind = GRAFT_VALUE_FLOAT, .as.f = txt_float(r)};
    case OPK_BOOL:
    case OPK_FLAG: return (graft_value){.kind = GRAFT_VALUE_BOOL, .as.i = txt_bool(r)};
    case OPK_SCALAR: return (graft_value){.kind = GRAFT_VALUE_SCALAR, .as.scalar = txt_number(r)};
    case OPK_INTS:
    case OPK_FLOATS:
    case OPK_SCALARS:
    case OPK_MASK: return txt_list_value(r, arg->kind);
    case OPK_STR: return (graft_value){.kind = GRAFT_VALUE_STR, .as.str = txt_str(r)};
    case OPK_DTYPE: return (graft_value){.kind = GRAFT_VALUE_DTYPE, .as.dtype = txt_dtype(r)};
    case OPK_MEMORY_FORMAT: return (graft_value){.kind = GRAFT_VALUE_MEMORY_FORMAT, .as.i = txt_memory_format(r)};
    default: txt_expected(r, "only _, since it is never written,"); return (graft_value){0};
  }
}

/* --- the call --- */

/* The argument that "name=" here names; -1 where no name stands here. */
static int txt_keyword(txt_reader *r) {
  const op_schema *schema = r->call->schema;
  size_t n = txt_word(r->at);
  if (n == 0 || r->at[n] != '=') return -1;
  for (int i = 0; i < schema->nargs; i++) {
    if (!txt_word_is(r->at, schema->args[i].name)) continue;
    r->at += n + 1;
    return i;
  }
  r->subject = schema->schema;
  txt_expected(r, "the name of an argument");
  return -1;
}

static void txt_argument(txt_reader *r, uint32_t *next, uint64_t *given, bool *keywords) {
  const op_schema *schema = r->call->schema;
  r->subject = NULL;
  int named = txt_keyword(r);
  if (!txt_ok(r)) return;
  if (named < 0 && *next >= schema->nargs) r->subject = schema->schema, txt_expected(r, "no further argument");
  if (named < 0 && *keywords) txt_expected(r, "name=value after an argument in that form");
  if (!txt_ok(r)) return;
  uint32_t index = named >= 0 ? (uint32_t)named : (*next)++;
  r->subject = schema->args[index].name;
  if (*given >> index & 1) return txt_expected(r, "no second value");
  *given |= UINT64_C(1) << index;
  *keywords = named >= 0;
  if (!txt_accept_word(r, "_")) r->call->args[index] = txt_value(r, &schema->args[index], index);
  if (txt_ok(r) && !isspace((unsigned char)*r->at) && !txt_at_end(r)) txt_expected(r, "a blank after the value");
}

static void txt_name(txt_reader *r) {
  char name[128];
  txt_blanks(r);
  size_t n = strcspn(r->at, " \t\n");
  if (n == 0 || n >= sizeof name) return txt_expected(r, "the name of an op");
  memcpy(name, r->at, n);
  name[n] = 0;
  r->call->schema = op_schema_find(name);
  if (!r->call->schema) return txt_expected(r, "the name of an op (`graft ops` lists them)");
  r->at += n;
  r->call->nargs = r->call->schema->nargs;
}

/* Tensors given by keyword may have come out of the schema's order; specs follow it. */
static void txt_sort(txt_call *call) {
  for (uint32_t i = 1; i < call->ntensors; i++) {
    txt_tensor moved = call->specs[i];
    uint32_t j = i;
    for (; j > 0 && call->specs[j - 1].arg > moved.arg; j--) call->specs[j] = call->specs[j - 1];
    call->specs[j] = moved;
  }
}

/* Each needed argument is there. One that PyTorch requires and whose kind has an absent form may be written `_`. */
static void txt_complete(txt_reader *r, uint64_t given) {
  const op_schema *schema = r->call->schema;
  for (int i = 0; i < schema->nargs; i++) {
    const op_arg *arg = &schema->args[i];
    if (given >> i & 1 || arg->fallback || arg->flags & (OPA_OPTIONAL | OPA_DROPPED)) continue;
    if (arg->kind == OPK_DEVICE || arg->kind == OPK_LAYOUT || arg->kind == OPK_GENERATOR) continue;
    r->subject = arg->name;
    return txt_expected(r, "a value");
  }
}

static void txt_arguments(txt_reader *r, const char **rest) {
  uint32_t next = 0;
  uint64_t given = 0;
  bool keywords = false;
  for (txt_blanks(r); txt_ok(r) && !txt_at_end(r); txt_blanks(r)) {
    if (rest && r->at[0] == '-' && r->at[1] == '>') {
      *rest = r->at + 2 + strspn(r->at + 2, " \t");
      break;
    }
    txt_argument(r, &next, &given, &keywords);
  }
  if (txt_ok(r)) txt_complete(r, given);
}

graft_status txt_parse_call(const char *line, const char **rest, txt_call *call) {
  txt_call parsed = {0};
  txt_reader r = {.line = line, .at = line, .call = &parsed};
  const char *after = NULL;
  txt_name(&r);
  if (!txt_ok(&r)) return r.status;

  size_t length = strcspn(line, "\n"), tensors = 1;
  for (size_t i = 0; i < length; i++) tensors += line[i] == '[';
  size_t specs = tensors * (sizeof(txt_tensor) + sizeof(graft_tensor *)) + 16;
  /* A list takes at most 24 bytes for each two characters, and 15 for its alignment. */
  parsed.memory = calloc(1, specs + 32 * (length + 2));
  if (!parsed.memory) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for a call of %zu characters", length);
  parsed.specs = parsed.memory;
  parsed.tensors = (graft_tensor **)(parsed.specs + tensors);
  r.arena = (char *)parsed.memory + (specs & ~(size_t)15);

  txt_arguments(&r, rest ? &after : NULL);
  if (!txt_ok(&r)) return txt_free(&parsed), r.status;
  txt_sort(&parsed);
  if (rest) *rest = after;
  *call = parsed;
  return GRAFT_OK;
}

/* --- making tensors --- */

static graft_status txt_make_one(const txt_tensor *spec, graft_rt_device *device, bool memory, graft_tensor **tensor) {
  int64_t bytes = tns_extent_bytes(spec->dtype, spec->ndim, spec->sizes, spec->strides, spec->offset);
  if (tns_numel(spec->ndim, spec->sizes) < 0 || bytes < 0)
    return err_set(GRAFT_INVALID_ARGUMENT, "a tensor of rank %d has more elements than 64 bits count", spec->ndim);
  graft_storage *storage = NULL;
  if (memory) {
    graft_status status = tns_storage_new(device, (uint64_t)bytes, &storage);
    if (status != GRAFT_OK) return status;
  }
  graft_status status =
      tns_new(storage, device, spec->dtype, spec->ndim, spec->sizes, spec->strides, spec->offset, tensor);
  if (storage) tns_storage_release(storage);
  return status;
}

/* Puts the tensors made into the values that name them. */
static void txt_place(txt_call *call, graft_rt_device *device) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < call->nargs; i++) {
    graft_value *v = &call->args[i];
    if (v->kind == GRAFT_VALUE_TENSOR) v->as.tensor = call->tensors[next++];
    /* The list lies in the call's own memory; the const is there for callers. */
    graft_tensor **items = v->kind == GRAFT_VALUE_TENSORS ? (graft_tensor **)(uintptr_t)v->as.tensors : NULL;
    for (uint32_t k = 0; items && k < v->count; k++)
      if (items[k]) items[k] = call->tensors[next++];
    if (call->schema->args[i].kind == OPK_DEVICE) v->kind = GRAFT_VALUE_DEVICE, v->as.device = device;
  }
}

graft_status txt_make(txt_call *call, graft_rt_device *device, txt_fill_fn fill, void *context) {
  for (uint32_t i = 0; i < call->ntensors; i++) {
    graft_status status = txt_make_one(&call->specs[i], device, fill != NULL, &call->tensors[i]);
    if (status == GRAFT_OK && fill) status = fill(context, i, call->tensors[i]);
    if (status != GRAFT_OK) return status;
  }
  txt_place(call, device);
  return GRAFT_OK;
}

void txt_free(txt_call *call) {
  for (uint32_t i = 0; i < call->ntensors; i++) graft_tensor_release(call->tensors[i]);
  free(call->memory);
  *call = (txt_call){0};
}
