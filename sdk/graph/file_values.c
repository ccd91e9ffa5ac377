/* Numbers, views and arguments as JSON. JSON's numbers are doubles to most readers, so an integer beyond 2^53 is a
 * string of digits, and what JSON has no number for, NaN and infinity, a string of the bits. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/utf8.h"
#include "graph/file.h"

#define EXACT_MAX (INT64_C(1) << 53)

/* --- to JSON --- */

bool gr_json_put(cJSON *object, const char *key, cJSON *item) {
  if (object && item && cJSON_AddItemToObject(object, key, item)) return true;
  cJSON_Delete(item);
  return false;
}

bool gr_json_append(cJSON *array, cJSON *item) {
  if (array && item && cJSON_AddItemToArray(array, item)) return true;
  cJSON_Delete(item);
  return false;
}

cJSON *gr_json_whole(cJSON *object, bool good) {
  if (good) return object;
  cJSON_Delete(object);
  return NULL;
}

cJSON *gr_json_int(int64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRId64, value);
  return value > EXACT_MAX || value < -EXACT_MAX ? cJSON_CreateString(digits) : cJSON_CreateRaw(digits);
}

/* The fewest digits that give the very number back, with a point whatever the locale; cJSON's own are not exact. */
static void print_exactly(double value, char *text, size_t room) {
  for (int digits = 15; digits <= 17; digits++) {
    snprintf(text, room, "%.*g", digits, value);
    if (strtod(text, NULL) == value) break;
  }
  for (; *text; text++) {
    if (!strchr("+-0123456789e", *text)) *text = '.';
  }
}

static cJSON *json_float(double value) {
  char text[40];
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (isfinite(value) && (value != 0 || !signbit(value))) {
    print_exactly(value, text, sizeof text);
    return cJSON_CreateRaw(text);
  }
  snprintf(text, sizeof text, "0x%016" PRIx64, bits);
  return cJSON_CreateString(text);
}

cJSON *gr_json_number(const gr_sizes *sizes, int64_t value) {
  if (!gr_is_open(sizes, value)) return gr_json_int(value);
  cJSON *object = cJSON_CreateObject();
  return gr_json_whole(object, gr_json_put(object, "size", gr_json_int(gr_size_entry(value))));
}

cJSON *gr_json_numbers(const gr_sizes *sizes, const int64_t *items, int64_t count) {
  cJSON *array = cJSON_CreateArray();
  bool good = true;
  for (int64_t i = 0; i < count && good; i++) good = gr_json_append(array, gr_json_number(sizes, items[i]));
  return gr_json_whole(array, good);
}

static cJSON *json_scalar(const gr_sizes *sizes, const graft_scalar *s) {
  cJSON *array = cJSON_CreateArray();
  bool good = gr_json_append(array, cJSON_CreateString(graft_dtype_name(s->dtype)));
  if (s->dtype == GRAFT_F64) return gr_json_whole(array, good && gr_json_append(array, json_float(s->value.f)));
  if (s->dtype == GRAFT_I64)
    return gr_json_whole(array, good && gr_json_append(array, gr_json_number(sizes, s->value.i)));
  if (s->dtype != GRAFT_C128) return gr_json_whole(array, good && gr_json_append(array, gr_json_int(s->value.i)));
  good = good && gr_json_append(array, json_float(s->value.c[0])) && gr_json_append(array, json_float(s->value.c[1]));
  return gr_json_whole(array, good);
}

cJSON *gr_json_ints(const int64_t *items, int64_t count) {
  return gr_json_numbers(&gr_no_sizes, items, count);
}

cJSON *gr_json_view(const gr_view *view, uint32_t buffer) {
  cJSON *object = cJSON_CreateObject();
  bool good = gr_json_put(object, "buffer", gr_json_int(buffer)) &&
              gr_json_put(object, "dtype", cJSON_CreateString(graft_dtype_name(view->dtype))) &&
              gr_json_put(object, "sizes", gr_json_ints(view->sizes, view->ndim)) &&
              gr_json_put(object, "strides", gr_json_ints(view->strides, view->ndim));
  if (good && view->offset) good = gr_json_put(object, "offset", gr_json_int(view->offset));
  if (good && view->flags & TNS_CONJ) good = gr_json_put(object, "conjugate", cJSON_CreateTrue());
  if (good && view->flags & TNS_NEG) good = gr_json_put(object, "negative", cJSON_CreateTrue());
  return gr_json_whole(object, good);
}

static cJSON *json_list(const gr_sizes *sizes, const graft_value *v) {
  if (v->kind == GRAFT_VALUE_INTS) return gr_json_numbers(sizes, v->as.ints, v->count);
  cJSON *array = cJSON_CreateArray();
  bool good = true;
  for (uint32_t i = 0; i < v->count && good; i++) {
    switch (v->kind) {
      case GRAFT_VALUE_FLOATS: good = gr_json_append(array, json_float(v->as.floats[i])); break;
      case GRAFT_VALUE_SCALARS: good = gr_json_append(array, json_scalar(sizes, &v->as.scalars[i])); break;
      default: good = gr_json_append(array, cJSON_CreateBool(v->as.mask[i])); break;
    }
  }
  return gr_json_whole(array, good);
}

const char *const gr_file_size_ops[] = {
    [GRAFT_SIZE_ADD] = "add", [GRAFT_SIZE_SUB] = "sub", [GRAFT_SIZE_MUL] = "mul", [GRAFT_SIZE_DIV] = "div",
    [GRAFT_SIZE_MOD] = "mod", [GRAFT_SIZE_MIN] = "min", [GRAFT_SIZE_MAX] = "max"};

/* What an argument is called by, by its kind; NULL: not here. */
static const char *const kinds[] = {
    [GRAFT_VALUE_INT] = "int",         [GRAFT_VALUE_FLOAT] = "float",   [GRAFT_VALUE_BOOL] = "bool",
    [GRAFT_VALUE_SCALAR] = "number",   [GRAFT_VALUE_INTS] = "ints",     [GRAFT_VALUE_FLOATS] = "floats",
    [GRAFT_VALUE_SCALARS] = "numbers", [GRAFT_VALUE_MASK] = "mask",     [GRAFT_VALUE_STR] = "text",
    [GRAFT_VALUE_DTYPE] = "dtype",     [GRAFT_VALUE_DEVICE] = "device", [GRAFT_VALUE_MEMORY_FORMAT] = "format"};
enum { KINDS = sizeof kinds / sizeof *kinds };

static const char *const formats[] = {[GRAFT_FORMAT_DEFAULT] = "default",
                                      [GRAFT_FORMAT_CONTIGUOUS] = "contiguous",
                                      [GRAFT_FORMAT_PRESERVE] = "preserve",
                                      [GRAFT_FORMAT_CHANNELS_LAST] = "channels_last",
                                      [GRAFT_FORMAT_CHANNELS_LAST_3D] = "channels_last_3d"};
enum { FORMATS = sizeof formats / sizeof *formats };

static cJSON *json_payload(const gr_sizes *sizes, const graft_value *v) {
  switch (v->kind) {
    case GRAFT_VALUE_INT: return gr_json_number(sizes, v->as.i);
    case GRAFT_VALUE_FLOAT: return json_float(v->as.f);
    case GRAFT_VALUE_BOOL: return cJSON_CreateBool(v->as.i != 0);
    case GRAFT_VALUE_SCALAR: return json_scalar(sizes, &v->as.scalar);
    case GRAFT_VALUE_STR: return cJSON_CreateString(v->as.str);
    case GRAFT_VALUE_DTYPE: return cJSON_CreateString(v->as.dtype ? graft_dtype_name(v->as.dtype) : "none");
    case GRAFT_VALUE_DEVICE: return cJSON_CreateString(v->as.device ? "graph" : "none");
    case GRAFT_VALUE_MEMORY_FORMAT:
      return cJSON_CreateString(v->as.i >= 0 && v->as.i < FORMATS ? formats[v->as.i] : "");
    default: return json_list(sizes, v);
  }
}

cJSON *gr_json_value(const gr_sizes *sizes, const graft_value *v) {
  cJSON *object = cJSON_CreateObject();
  return gr_json_whole(
      object, v->kind < KINDS && kinds[v->kind] && gr_json_put(object, kinds[v->kind], json_payload(sizes, v)));
}

/* --- from JSON --- */

bool gr_json_get_int(const cJSON *item, int64_t *to) {
  if (cJSON_IsNumber(item)) {
    const double d = item->valuedouble;
    if (!(d >= -(double)EXACT_MAX && d <= (double)EXACT_MAX) || d != floor(d)) return false;
    return *to = (int64_t)d, true;
  }
  if (!cJSON_IsString(item)) return false;
  char *end;
  const char *text = item->valuestring;
  if (*text != '-' && (*text < '0' || *text > '9')) return false;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || *end || end == text) return false;
  return *to = value, true;
}

bool gr_json_get_number(const gr_sizes *sizes, const cJSON *item, int64_t *to) {
  uint32_t index;
  int64_t value;
  if (!cJSON_IsObject(item)) {
    if (!gr_json_get_int(item, &value) || (sizes->count && gr_is_among_names(value))) return false;
    return *to = value, true;
  }
  const cJSON *size = item->child;
  if (!size || size->next || !size->string || strcmp(size->string, "size") != 0) return false;
  if (!gr_json_get_index(size, &index) || index >= sizes->count) return false;
  return *to = gr_size_name(index), true;
}

bool gr_json_get_index(const cJSON *item, uint32_t *to) {
  int64_t value;
  if (!gr_json_get_int(item, &value) || value < 0 || value >= GR_NONE) return false;
  return *to = (uint32_t)value, true;
}

bool gr_json_get_dtype(const cJSON *item, graft_dtype *to) {
  if (!cJSON_IsString(item)) return false;
  graft_dtype dtype = graft_dtype_parse(item->valuestring);
  const int number = dtype ? dt_number(dtype) : -1;
  if (number < 0 || number >= GRAFT_NUMBER_WIDE) return false;
  return *to = dtype, true;
}

bool gr_json_get_bool(const cJSON *object, const char *key, bool *to) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
  if (item && !cJSON_IsBool(item)) return false;
  return *to = cJSON_IsTrue(item), true;
}

static bool get_float(const cJSON *item, double *to) {
  if (cJSON_IsNumber(item)) return *to = item->valuedouble, true;
  if (!cJSON_IsString(item) || strlen(item->valuestring) != 18 || strncmp(item->valuestring, "0x", 2) != 0)
    return false;
  char *end;
  uint64_t bits = strtoull(item->valuestring + 2, &end, 16);
  if (*end || item->valuestring[2] == '-') return false;
  memcpy(to, &bits, sizeof bits);
  return true;
}

static bool get_scalar(const gr_sizes *sizes, const cJSON *item, graft_scalar *to) {
  graft_scalar s = {0};
  if (!cJSON_IsArray(item) || !item->child || !gr_json_get_dtype(item->child, &s.dtype)) return false;
  const cJSON *first = item->child->next, *second = first ? first->next : NULL;
  if (!first || (s.dtype == GRAFT_C128) != (second != NULL) || (second && second->next)) return false;
  bool good = false;
  switch (s.dtype) {
    case GRAFT_F64: good = get_float(first, &s.value.f); break;
    case GRAFT_C128: good = get_float(first, &s.value.c[0]) && get_float(second, &s.value.c[1]); break;
    case GRAFT_BOOL: good = gr_json_get_int(first, &s.value.i) && s.value.i >= 0 && s.value.i <= 1; break;
    case GRAFT_I64: good = gr_json_get_number(sizes, first, &s.value.i); break;
    case GRAFT_U64: good = gr_json_get_int(first, &s.value.i); break;
    default: break;
  }
  if (good) *to = s;
  return good;
}

static bool get_items(const cJSON *array, int32_t most, int64_t *items, int32_t *count) {
  if (!cJSON_IsArray(array)) return false;
  const cJSON *item;
  int32_t n = 0;
  cJSON_ArrayForEach(item, array) {
    if (n == most || !gr_json_get_int(item, &items[n]) || items[n] < 0) return false;
    n++;
  }
  return *count = n, true;
}

const char *gr_view_problem(const gr_view *v) {
  if (tns_numel(v->ndim, v->sizes) < 0) return "its sizes overflow";
  int64_t end;
  if (tns_extent_bytes(v->dtype, v->ndim, v->sizes, v->strides, v->offset) < 0 ||
      __builtin_mul_overflow(v->offset, (int64_t)dt_bytes(v->dtype), &end) || end > GR_BYTES_MAX)
    return "the places of its elements overflow";
  if (v->flags & TNS_CONJ && !dt_is_complex(v->dtype)) return "it is conjugate and not complex";
  if (v->flags & TNS_NEG && (v->dtype == GRAFT_BOOL || dt_is_unsigned(v->dtype))) return "it is negative and unsigned";
  return NULL;
}

const char *gr_json_get_view(const cJSON *object, gr_view *view) {
  gr_view v = {.buffer = GR_NONE};
  int32_t nstrides;
  bool conjugate, negative;
  const cJSON *offset = cJSON_GetObjectItemCaseSensitive(object, "offset");
  if (!cJSON_IsObject(object)) return "it is no object";
  if (!gr_json_get_dtype(cJSON_GetObjectItemCaseSensitive(object, "dtype"), &v.dtype)) return "it has no known dtype";
  if (!get_items(cJSON_GetObjectItemCaseSensitive(object, "sizes"), GRAFT_MAX_DIMS, v.sizes, &v.ndim))
    return "its sizes are no list of at most 16 sizes";
  if (!get_items(cJSON_GetObjectItemCaseSensitive(object, "strides"), GRAFT_MAX_DIMS, v.strides, &nstrides) ||
      nstrides != v.ndim)
    return "its strides are no list of one stride a size";
  if (offset && (!gr_json_get_int(offset, &v.offset) || v.offset < 0)) return "its offset is no place";
  if (!gr_json_get_bool(object, "conjugate", &conjugate) || !gr_json_get_bool(object, "negative", &negative))
    return "its bits are neither true nor false";
  v.flags = (conjugate ? TNS_CONJ : 0u) | (negative ? TNS_NEG : 0u);
  const char *problem = gr_view_problem(&v);
  if (!problem) *view = v;
  return problem;
}

static size_t item_bytes(graft_value_kind kind) {
  switch (kind) {
    case GRAFT_VALUE_SCALARS: return sizeof(graft_scalar);
    case GRAFT_VALUE_MASK: return 1;
    default: return 8; /* ints and floats */
  }
}

static bool get_item(const gr_sizes *sizes, const cJSON *item, graft_value_kind kind, void *to) {
  switch (kind) {
    case GRAFT_VALUE_INTS: return gr_json_get_number(sizes, item, to);
    case GRAFT_VALUE_FLOATS: return get_float(item, to);
    case GRAFT_VALUE_SCALARS: return get_scalar(sizes, item, to);
    default: *(uint8_t *)to = cJSON_IsTrue(item); return cJSON_IsBool(item);
  }
}

static bool get_list(const gr_sizes *sizes, const cJSON *array, arena *memory, graft_value *v) {
  if (!cJSON_IsArray(array)) return false;
  const int count = cJSON_GetArraySize(array);
  const size_t bytes = item_bytes(v->kind);
  char *items = arena_take(memory, (size_t)count * bytes);
  if (!items) return false;
  v->count = (uint32_t)count;
  v->as.str = items; /* the pointers of a value are one */
  const cJSON *item;
  cJSON_ArrayForEach(item, array) {
    if (!get_item(sizes, item, v->kind, items)) return false;
    items += bytes;
  }
  return true;
}

static bool get_format(const cJSON *item, int64_t *to) {
  for (int i = 0; i < FORMATS && cJSON_IsString(item); i++) {
    if (strcmp(formats[i], item->valuestring) == 0) return *to = i, true;
  }
  return false;
}

static bool is_text(const cJSON *item, const char *text) {
  return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static bool get_payload(const gr_sizes *sizes, const cJSON *item, arena *memory, graft_value *v) {
  switch (v->kind) {
    case GRAFT_VALUE_INT: return gr_json_get_number(sizes, item, &v->as.i);
    case GRAFT_VALUE_FLOAT: return get_float(item, &v->as.f);
    case GRAFT_VALUE_BOOL: v->as.i = cJSON_IsTrue(item); return cJSON_IsBool(item);
    case GRAFT_VALUE_SCALAR: return get_scalar(sizes, item, &v->as.scalar);
    case GRAFT_VALUE_STR: v->as.str = cJSON_GetStringValue(item); return v->as.str != NULL;
    case GRAFT_VALUE_DTYPE: return is_text(item, "none") || gr_json_get_dtype(item, &v->as.dtype);
    case GRAFT_VALUE_DEVICE: return is_text(item, "graph") || is_text(item, "none");
    case GRAFT_VALUE_MEMORY_FORMAT: return get_format(item, &v->as.i);
    default: return get_list(sizes, item, memory, v);
  }
}

bool gr_json_get_value(const gr_sizes *sizes, const cJSON *object, arena *memory, graft_value *value) {
  const cJSON *item = cJSON_IsObject(object) ? object->child : NULL;
  if (!item || item->next || !item->string) return false;
  for (graft_value_kind kind = 0; kind < KINDS; kind++) {
    graft_value v = {.kind = kind};
    if (!kinds[kind] || strcmp(kinds[kind], item->string) != 0) continue;
    if (!get_payload(sizes, item, memory, &v)) return false;
    if (kind == GRAFT_VALUE_DEVICE && is_text(item, "none")) v.kind = GRAFT_VALUE_NONE;
    return *value = v, true;
  }
  return false;
}

void gr_schema_hash(const op_schema *schema, char hash[17]) {
  snprintf(hash, 17, "%016" PRIx64, (uint64_t)XXH3_64bits(schema->schema, strlen(schema->schema)));
}

graft_status gr_check_name(const char *kind, const char *name) {
  const size_t room = strlen(name) + 1;
  char *clean = malloc(room);
  if (!clean) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the name of an %s", kind);
  utf8_copy(clean, room, name);
  bool same = strcmp(clean, name) == 0;
  graft_status status =
      same ? GRAFT_OK
           : err_set(GRAFT_INVALID_ARGUMENT, "the %s \"%s\": a file takes names of UTF-8 without control characters",
                     kind, clean);
  free(clean);
  return status;
}
