#include "conformance/run/dump.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "conformance/judge/tolerance.h"

/* Whether a file is called NAME, a number and .npy, by one of the names that cases dump. */
static bool cf_is_dumped(const char *file) {
  static const char *const names[] = {"input", "output", "oracle", "limit", "gradient", "oracle_gradient"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    size_t length = strlen(names[i]), digits = 0;
    if (strncmp(file, names[i], length) != 0) continue;
    digits = strspn(file + length, "0123456789");
    if (digits && strcmp(file + length + digits, ".npy") == 0) return true;
  }
  return false;
}

graft_status cf_dump_begin(const char *folder) {
  graft_status status = GRAFT_OK;
  DIR *files = opendir(folder);
  if (!files) return err_set(GRAFT_INVALID_ARGUMENT, "%s: %s", folder, strerror(errno));
  for (const struct dirent *file; status == GRAFT_OK && (file = readdir(files));) {
    char path[1024];
    struct stat what;
    int length = snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
    if (!cf_is_dumped(file->d_name) || length >= (int)sizeof path || lstat(path, &what) != 0) continue;
    if (S_ISREG(what.st_mode) && remove(path) != 0)
      status = err_set(GRAFT_INVALID_ARGUMENT, "%s, of an earlier case: %s", path, strerror(errno));
  }
  closedir(files);
  return status;
}

static int cf_npy_header(const cf_array *a, const char *descr, char *header, size_t capacity) {
  char shape[256] = "";
  size_t used = 0;
  for (int32_t d = 0; d < a->ndim; d++)
    used += (size_t)snprintf(shape + used, sizeof shape - used, "%lld,", (long long)a->sizes[d]);
  int n = snprintf(header, capacity, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
  while ((n + 11) % 64 != 0) header[n++] = ' ';
  header[n++] = '\n';
  return n;
}

static void cf_npy_write(FILE *f, const cf_array *a) {
  char header[512];
  bool complex = dt_is_complex(a->dtype), real = !complex && cf_mantissa(a->dtype) > 0;
  int n = cf_npy_header(a, complex ? "<c16" : real ? "<f8" : "<i8", header, sizeof header);
  unsigned char magic[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)n, (unsigned char)(n >> 8)};
  fwrite(magic, 1, sizeof magic, f);
  fwrite(header, 1, (size_t)n, f);
  for (int64_t i = 0; i < a->numel; i++) {
    double parts[2] = {(double)a->v[i].re, (double)a->v[i].im};
    int64_t whole = (int64_t)a->v[i].re;
    if (complex || real)
      fwrite(parts, sizeof *parts, complex ? 2 : 1, f);
    else
      fwrite(&whole, sizeof whole, 1, f);
  }
}

static bool failed;

bool cf_dump_failed(void) {
  return failed;
}

void cf_dump(const char *folder, const char *name, uint32_t number, const cf_array *a) {
  char path[1024];
  if (!folder) return;
  snprintf(path, sizeof path, "%s/%s%u.npy", folder, name, number);
  FILE *f = fopen(path, "wb");
  if (f) cf_npy_write(f, a);
  bool written = f && !ferror(f);
  if ((f && fclose(f) != 0) || !written) {
    failed = true;
    fprintf(stderr, "graft case: %s: %s\n", path, strerror(errno));
    remove(path); /* half of an array is none */
  }
}
