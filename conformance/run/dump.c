#include "conformance/run/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conformance/judge/tolerance.h"

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
