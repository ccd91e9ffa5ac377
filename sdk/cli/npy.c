/* .npy: a magic word, a version, the length of a header, the header (a Python dict), the elements. */
#include "npy.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/whole_file.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

#define bad(path, ...) err_about(GRAFT_INVALID_ARGUMENT, path, __VA_ARGS__)

enum { HEADER_MAX = 64 << 10 };

/* Those of several bytes come with '<' before them, those of one with '|'. */
static const struct {
  const char *code;
  graft_dtype dtype;
} codes[] = {{"b1", GRAFT_BOOL}, {"u1", GRAFT_U8},  {"i1", GRAFT_I8},  {"u2", GRAFT_U16},  {"i2", GRAFT_I16},
             {"u4", GRAFT_U32},  {"i4", GRAFT_I32}, {"u8", GRAFT_U64}, {"i8", GRAFT_I64},  {"f2", GRAFT_F16},
             {"f4", GRAFT_F32},  {"f8", GRAFT_F64}, {"c8", GRAFT_C64}, {"c16", GRAFT_C128}};
enum { CODES = sizeof codes / sizeof *codes };

/* --- the header --- */

/* What follows 'key': in the dict; NULL: nothing. */
static const char *value_of(const char *header, const char *key) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "'%s'", key);
  const char *at = strstr(header, quoted);
  if (!at) return NULL;
  for (at += strlen(quoted); isspace((unsigned char)*at); at++) continue;
  if (*at++ != ':') return NULL;
  while (isspace((unsigned char)*at)) at++;
  return at;
}

static graft_status take_code(const char *path, const char *code, cli_npy *npy) {
  char order = code[0];
  for (int i = 0; i < CODES; i++) {
    if (strcmp(codes[i].code, code + 1) != 0) continue;
    npy->dtype = codes[i].dtype;
    npy->item_bytes = (uint32_t)dt_bytes(npy->dtype);
  }
  if (!strcmp(code + 1, "V1") || !strcmp(code + 1, "V2")) npy->item_bytes = (uint32_t)(code[2] - '0');
  if (!npy->item_bytes)
    return bad(path, "its elements are '%s', which no tensor has; save them as f4, i8 or the like", code);
  if (order != '>' || npy->item_bytes == 1) return GRAFT_OK;
  return bad(path, "its elements are big-endian ('%s'); save them with .astype('<%s')", code, code + 1);
}

static graft_status take_descr(const char *path, const char *header, cli_npy *npy) {
  const char *at = value_of(header, "descr");
  char code[8];
  size_t length = at && *at == '\'' ? strcspn(at + 1, "'") : 0;
  if (length < 3 || length >= sizeof code || !strchr("<>|=", at[1]))
    return bad(path, "its elements are of several parts, or of no kind that tensors have");
  snprintf(code, sizeof code, "%.*s", (int)length, at + 1);
  return take_code(path, code, npy);
}

static graft_status take_shape(const char *path, const char *header, cli_npy *npy) {
  const char *at = value_of(header, "shape");
  if (!at || *at++ != '(') return bad(path, "its header has no shape");
  for (;;) {
    char *end;
    while (isspace((unsigned char)*at) || *at == ',') at++;
    if (*at == ')') break;
    errno = 0;
    long long size = strtoll(at, &end, 10);
    if (end == at || errno || size < 0) return bad(path, "its header has no shape");
    if (npy->ndim == GRAFT_MAX_DIMS) return bad(path, "it has more than %d dimensions", GRAFT_MAX_DIMS);
    npy->sizes[npy->ndim++] = size;
    at = end;
  }
  return tns_numel(npy->ndim, npy->sizes) < 0 ? bad(path, "its shape overflows") : GRAFT_OK;
}

static graft_status take_header(const char *path, const char *header, cli_npy *npy) {
  const char *order = value_of(header, "fortran_order");
  if (!order) return bad(path, "its header has no fortran_order");
  npy->by_columns = *order == 'T';
  graft_status status = take_descr(path, header, npy);
  return status ? status : take_shape(path, header, npy);
}

/* --- reading --- */

static graft_status read_header(const char *path, FILE *f, cli_npy *npy) {
  unsigned char head[12];
  if (fread(head, 1, 10, f) != 10 || memcmp(head, "\x93NUMPY", 6) != 0) return bad(path, "it is no .npy file");
  const bool is_long = head[6] > 1;
  if (head[6] < 1 || head[6] > 3) return bad(path, "it has version %u of .npy; 1 to 3 are read", head[6]);
  if (is_long && fread(head + 10, 1, 2, f) != 2) return bad(path, "it ends in its header");
  size_t length = head[8] | (size_t)head[9] << 8;
  if (is_long) length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
  if (length > HEADER_MAX) return bad(path, "its header has %zu bytes", length);
  char *header = calloc(1, length + 1);
  if (!header) return err_about(GRAFT_OUT_OF_MEMORY, path, "no host memory for its header");
  graft_status status = fread(header, 1, length, f) == length ? GRAFT_OK : bad(path, "it ends in its header");
  if (!status) status = take_header(path, header, npy);
  free(header);
  return status;
}

static graft_status read_elements(const char *path, FILE *f, cli_npy *npy) {
  const int64_t numel = tns_numel(npy->ndim, npy->sizes);
  int64_t bytes;
  long begin = ftell(f);
  if (__builtin_mul_overflow(numel, (int64_t)npy->item_bytes, &bytes)) return bad(path, "its shape overflows");
  if (begin < 0 || fseek(f, 0, SEEK_END) != 0) return bad(path, "it can't be read: %s", strerror(errno));
  const long there = ftell(f) - begin;
  if (there != bytes)
    return bad(path, "it has %ld bytes of elements, and its shape takes %lld", there, (long long)bytes);
  npy->data = malloc((size_t)bytes + 1);
  if (!npy->data) return err_about(GRAFT_OUT_OF_MEMORY, path, "no host memory for %lld bytes", (long long)bytes);
  if (fseek(f, begin, SEEK_SET) != 0 || fread(npy->data, 1, (size_t)bytes, f) != (size_t)bytes)
    return bad(path, "it can't be read: %s", strerror(errno));
  return GRAFT_OK;
}

graft_status cli_npy_read(const char *path, cli_npy *npy) {
  *npy = (cli_npy){0};
  FILE *f = fopen(path, "rb");
  if (!f) return bad(path, "it can't be read: %s", strerror(errno));
  graft_status status = read_header(path, f, npy);
  if (!status) status = read_elements(path, f, npy);
  fclose(f);
  if (status) cli_npy_free(npy);
  return status;
}

void cli_npy_free(cli_npy *npy) {
  free(npy->data);
  npy->data = NULL;
}

/* --- writing --- */

static void format_code(graft_dtype dtype, char code[8]) {
  snprintf(code, 8, "|V%u", (unsigned)dt_bytes(dtype));
  for (int i = 0; i < CODES; i++) {
    if (codes[i].dtype == dtype) snprintf(code, 8, "%c%s", dt_bytes(dtype) == 1 ? '|' : '<', codes[i].code);
  }
}

static void write_header(file_part *to, const graft_tensor *t) {
  char code[8], shape[24 * GRAFT_MAX_DIMS] = "", header[1024];
  size_t used = 0;
  format_code(t->dtype, code);
  for (int32_t i = 0; i < t->ndim; i++)
    used += (size_t)snprintf(shape + used, sizeof shape - used, "%lld%s", (long long)t->sizes[i],
                             t->ndim == 1 || i + 1 < t->ndim ? ", " : "");
  int n = snprintf(header, sizeof header - 64, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", code, shape);
  while ((n + 11) % 64 != 0) header[n++] = ' '; /* elements begin at a multiple of 64 */
  header[n++] = '\n';
  const unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, (unsigned char)(n >> 8)};
  file_write(to, magic, sizeof magic);
  file_write(to, header, (size_t)n);
}

graft_status cli_npy_write(const char *path, graft_tensor *t) {
  const size_t bytes = (size_t)t->numel * dt_bytes(t->dtype);
  void *data = malloc(bytes + 1);
  if (!data) return err_about(GRAFT_OUT_OF_MEMORY, path, "no host memory for %zu bytes", bytes);
  file_part to;
  graft_status status = graft_tensor_to_host(t, data);
  if (!status) status = file_open(path, &to);
  if (!status) {
    write_header(&to, t);
    file_write(&to, data, bytes);
    status = file_close(&to);
  }
  free(data);
  return status;
}
