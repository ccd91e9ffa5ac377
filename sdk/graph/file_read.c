/* The container of a file: its header, and where constants lie. Nothing is believed: lengths, offsets and shapes must
 * fit each other and the file, to the byte. */
#include "graph/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

static graft_status no_memory(const gr_file *f) {
  return err_about(GRAFT_OUT_OF_MEMORY, f->path, "no host memory to read it");
}

#define bad(file, ...) err_about(GRAFT_INVALID_ARGUMENT, (file)->path, __VA_ARGS__)

static graft_status read_at(const gr_file *f, uint64_t at, void *to, uint64_t bytes) {
  char *next = to;
  while (bytes) {
    ssize_t got = pread(f->fd, next, bytes < (1u << 30) ? bytes : 1u << 30, (off_t)at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return bad(f, "it can't be read: %s", strerror(errno));
    if (got == 0) return bad(f, "it ends early: it became shorter while it was read");
    next += got;
    at += (uint64_t)got;
    bytes -= (uint64_t)got;
  }
  return GRAFT_OK;
}

static graft_status open_file(gr_file *f, uint64_t *size) {
  struct stat info;
  f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* a pipe of that name does not hang us */
  if (f->fd < 0) return bad(f, "it can't be read: %s", strerror(errno));
  if (fstat(f->fd, &info) != 0 || !S_ISREG(info.st_mode)) return bad(f, "it is not a regular file");
  *size = (uint64_t)info.st_size;
  return GRAFT_OK;
}

/* --- the header --- */

/* How deep brackets nest outside strings: the parser goes a function deeper for each. */
static int nesting(const char *text, size_t length) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < length; i++) {
    if (in_string && text[i] == '\\') {
      i++;
      continue;
    }
    if (text[i] == '"') in_string = !in_string;
    if (in_string) continue;
    if (text[i] == '{' || text[i] == '[') depth++;
    if (text[i] == '}' || text[i] == ']') depth--;
    if (depth > deepest) deepest = depth;
  }
  return deepest;
}

static graft_status parse(const gr_file *f, const char *what, const char *text, size_t length, cJSON **json) {
  if (memchr(text, 0, length)) return bad(f, "%s holds a NUL byte", what);
  if (nesting(text, length) > GR_FILE_DEPTH_MAX)
    return bad(f, "the brackets of %s nest deeper than %d", what, GR_FILE_DEPTH_MAX);
  *json = cJSON_ParseWithLengthOpts(text, length + 1, NULL, 1);
  if (!*json) return bad(f, "%s is not valid JSON", what);
  return cJSON_IsObject(*json) ? GRAFT_OK : bad(f, "%s is no JSON object", what);
}

static graft_status read_header(gr_file *f, uint64_t size) {
  unsigned char head[8];
  uint64_t length = 0;
  if (size < sizeof head)
    return bad(f, "it is no graph: a safetensors file begins with 8 bytes, and it has %" PRIu64, size);
  graft_status status = read_at(f, 0, head, sizeof head);
  if (status) return status;
  for (int i = 0; i < 8; i++) length |= (uint64_t)head[i] << (8 * i);
  if (length > GR_FILE_HEADER_MAX) {
    return bad(f, "it is no graph: a header of %" PRIu64 " bytes; at most %d are taken", length,
               (int)GR_FILE_HEADER_MAX);
  }
  if (length > size - sizeof head) {
    return bad(f, "it ends early: its header has %" PRIu64 " bytes, of which %" PRIu64 " are there", length,
               size - (uint64_t)sizeof head);
  }
  char *text = malloc(length + 1);
  if (!text) return no_memory(f);
  status = read_at(f, sizeof head, text, length);
  text[length] = 0;
  if (!status) status = parse(f, "its header", text, length, &f->header);
  free(text);
  f->first = sizeof head + length;
  f->bytes = size - f->first;
  return status;
}

/* --- tensors --- */

static uint64_t container_bytes(const char *dtype) {
  static const struct {
    const char *name;
    uint64_t bytes;
  } rows[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2}, {"U16", 2}, {"F16", 2}, {"BF16", 2},
              {"I32", 4},  {"U32", 4}, {"F32", 4}, {"I64", 8}, {"U64", 8}, {"F64", 8}};
  for (size_t i = 0; dtype && i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].name, dtype) == 0) return rows[i].bytes;
  }
  return 0;
}

/* The bytes that dtype and shape ask for; false: they are none, or too many. */
static bool shape_bytes(const cJSON *tensor, uint64_t *bytes) {
  *bytes = container_bytes(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tensor, "dtype")));
  const cJSON *shape = cJSON_GetObjectItemCaseSensitive(tensor, "shape"), *item;
  if (!*bytes || !cJSON_IsArray(shape)) return false;
  cJSON_ArrayForEach(item, shape) {
    int64_t size;
    if (!gr_json_get_int(item, &size) || size < 0 || __builtin_mul_overflow(*bytes, (uint64_t)size, bytes))
      return false;
  }
  return true;
}

static bool offsets_of(const cJSON *tensor, int64_t offsets[2]) {
  const cJSON *pair = cJSON_GetObjectItemCaseSensitive(tensor, "data_offsets");
  const cJSON *first = cJSON_IsArray(pair) ? pair->child : NULL, *second = first ? first->next : NULL;
  if (!second || second->next) return false;
  return gr_json_get_int(first, &offsets[0]) && gr_json_get_int(second, &offsets[1]) && offsets[0] >= 0 &&
         offsets[0] <= offsets[1];
}

/* The number of a constant by the name of its tensor; GR_NONE: it is another one's. */
static uint32_t number_of(const char *name) {
  static const char prefix[] = "constant.";
  char again[GR_FILE_NAME_MAX];
  if (strncmp(name, prefix, sizeof prefix - 1) != 0) return GR_NONE;
  const unsigned long number = strtoul(name + sizeof prefix - 1, NULL, 10);
  if (number >= GR_NONE) return GR_NONE;
  snprintf(again, sizeof again, GR_FILE_CONSTANT, (unsigned)number);
  return strcmp(again, name) == 0 ? (uint32_t)number : GR_NONE;
}

static graft_status note_constant(gr_file *f, const char *name, const int64_t offsets[2]) {
  const uint32_t number = number_of(name);
  if (number >= f->nconstants) return GRAFT_OK; /* there are not so many: it is nobody's */
  gr_file_span *span = &f->constants[number];
  if (span->there) return bad(f, "tensor \"%.40s\" stands there twice", name);
  *span = (gr_file_span){true, (uint64_t)offsets[0], (uint64_t)(offsets[1] - offsets[0])};
  return GRAFT_OK;
}

static graft_status check_tensor(gr_file *f, const cJSON *tensor, uint64_t *end) {
  int64_t offsets[2];
  uint64_t bytes;
  const char *name = tensor->string;
  if (!shape_bytes(tensor, &bytes)) return bad(f, "tensor \"%.40s\" has no dtype and shape that fit", name);
  if (!offsets_of(tensor, offsets) || (uint64_t)offsets[1] - (uint64_t)offsets[0] != bytes)
    return bad(f, "tensor \"%.40s\" has other offsets than its %" PRIu64 " bytes need", name, bytes);
  if ((uint64_t)offsets[0] != *end) return bad(f, "tensor \"%.40s\" does not begin where the one before it ends", name);
  *end = (uint64_t)offsets[1];
  return note_constant(f, name, offsets);
}

/* They lie in the order in which they stand, without gaps, to the end of the file. */
static graft_status check_tensors(gr_file *f) {
  const cJSON *tensor;
  uint64_t end = 0;
  f->nconstants = (uint32_t)cJSON_GetArraySize(f->header);
  f->constants = calloc(f->nconstants + 1u, sizeof *f->constants);
  if (!f->constants) return no_memory(f);
  cJSON_ArrayForEach(tensor, f->header) {
    graft_status status = strcmp(tensor->string, GR_FILE_METADATA) ? check_tensor(f, tensor, &end) : GRAFT_OK;
    if (status) return status;
  }
  if (end > f->bytes)
    return bad(f, "it ends early: %" PRIu64 " of %" PRIu64 " bytes of constants are there", f->bytes, end);
  return end == f->bytes ? GRAFT_OK : bad(f, "%" PRIu64 " bytes behind its last constant are nobody's", f->bytes - end);
}

static graft_status read_graph(gr_file *f) {
  const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(f->header, GR_FILE_METADATA);
  const char *version = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, GR_FILE_VERSION));
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(metadata, GR_FILE_GRAPH));
  if (!version || !text)
    return bad(f, "it is no graph: a safetensors file without \"%s\" and \"%s\"", GR_FILE_VERSION, GR_FILE_GRAPH);
  f->has_open_sizes = strcmp(version, GR_FILE_OPEN) == 0;
  if (!f->has_open_sizes && strcmp(version, GR_FILE_FORMAT) != 0) {
    return err_about(GRAFT_INCOMPATIBLE, f->path,
                     "it has format %.20s, and this libgraft (%s) reads formats " GR_FILE_FORMAT " and " GR_FILE_OPEN
                     "; save it anew with this one, or load it with the one that wrote it",
                     version, graft_version());
  }
  return parse(f, "its graph", text, strlen(text), &f->graph);
}

graft_status gr_file_open(const char *path, gr_file *f) {
  uint64_t size = 0;
  *f = (gr_file){.path = path, .fd = -1};
  graft_status status = open_file(f, &size);
  if (!status) status = read_header(f, size);
  if (!status) status = read_graph(f);
  if (!status) status = check_tensors(f);
  if (status) gr_file_close(f);
  return status;
}

void gr_file_close(gr_file *f) {
  if (f->fd >= 0) close(f->fd);
  cJSON_Delete(f->header);
  cJSON_Delete(f->graph);
  free(f->constants);
}

static graft_status read_bytes(const gr_file *f, const gr_file_span *span, void **to) {
  void *made = malloc(span->bytes + 1); /* no more than the file has */
  if (!made) return no_memory(f);
  graft_status status = read_at(f, f->first + span->first, made, span->bytes);
  if (status)
    free(made);
  else
    *to = made;
  return status;
}

graft_status gr_file_read_constant(const gr_file *f, uint32_t number, uint64_t bytes, void **to) {
  const gr_file_span *span = number < f->nconstants ? &f->constants[number] : NULL;
  if (!span || !span->there)
    return bad(f, "its graph has a constant %u, and it has no \"" GR_FILE_CONSTANT "\"", number, number);
  if (span->bytes != bytes)
    return bad(f, "\"" GR_FILE_CONSTANT "\" has %" PRIu64 " bytes, its graph asks for %" PRIu64, number, span->bytes,
               bytes);
  return read_bytes(f, span, to);
}

graft_status gr_file_read_input(const gr_file *f, const char *name, uint64_t bytes, void **to) {
  char *tensor = str_new(GR_FILE_INPUT "%s", name);
  *to = NULL;
  if (!tensor) return no_memory(f);
  int64_t offsets[2];
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(f->header, tensor);
  free(tensor);
  if (!item || !offsets_of(item, offsets)) return GRAFT_OK; /* check_tensors has looked at those that are there */
  const gr_file_span span = {true, (uint64_t)offsets[0], (uint64_t)(offsets[1] - offsets[0])};
  if (span.bytes == bytes) return read_bytes(f, &span, to);
  return bad(f, "\"" GR_FILE_INPUT "%.40s\" has %" PRIu64 " bytes, its input takes %" PRIu64, name, span.bytes, bytes);
}
