/* Small tables of constants that kernels read, kept by their content: a call that comes again finds its table on the
 * device. A table is made whole and never changed, so that all streams may read it at once; the driver keeps one that
 * was dropped for as long as a submitted kernel needs it. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ocl.h"

enum { TABLES = 128 };

typedef struct table {
  XXH128_hash_t hash;
  size_t bytes;
  cl_mem buffer;
  uint64_t used; /* when, in lookups */
} table;

struct ocl_tables {
  pthread_mutex_t lock;
  uint64_t lookups;
  table items[TABLES];
};

ocl_tables *ocl_tables_new(void) {
  ocl_tables *tables = calloc(1, sizeof *tables);
  if (tables) pthread_mutex_init(&tables->lock, NULL);
  return tables;
}

void ocl_tables_free(ocl_tables *tables) {
  for (int i = 0; i < TABLES; i++) {
    if (tables->items[i].buffer) clReleaseMemObject(tables->items[i].buffer);
  }
  pthread_mutex_destroy(&tables->lock);
  free(tables);
}

/* The table of this content, or the place of the one least recently used. */
static table *find(ocl_tables *tables, XXH128_hash_t hash, size_t bytes, bool *found) {
  table *oldest = &tables->items[0];
  for (table *t = tables->items; t < tables->items + TABLES; t++) {
    *found = t->buffer && t->bytes == bytes && t->hash.low64 == hash.low64 && t->hash.high64 == hash.high64;
    if (*found) return t;
    if (t->used < oldest->used) oldest = t;
  }
  return oldest;
}

static graft_status replace(graft_device *device, table *t, XXH128_hash_t hash, const void *content, size_t bytes) {
  cl_int error;
  void *source = (void *)(uintptr_t)content; /* read only, but OpenCL does not say const */
  cl_mem buffer = clCreateBuffer(device->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, source, &error);
  if (error != CL_SUCCESS) {
    return ocl_fail(device->plugin, GRAFT_OUT_OF_MEMORY, "a table of %zu bytes: %s", bytes, ocl_error_name(error));
  }
  if (t->buffer) clReleaseMemObject(t->buffer);
  *t = (table){hash, bytes, buffer, 0};
  return GRAFT_OK;
}

graft_status ocl_table_get(graft_device *device, const void *content, size_t bytes, cl_mem *buffer) {
  ocl_tables *tables = device->tables;
  XXH128_hash_t hash = XXH3_128bits(content, bytes);
  bool found;
  pthread_mutex_lock(&tables->lock);
  table *t = find(tables, hash, bytes, &found);
  graft_status status = found ? GRAFT_OK : replace(device, t, hash, content, bytes);
  if (status == GRAFT_OK) {
    t->used = ++tables->lookups;
    clRetainMemObject(t->buffer);
    *buffer = t->buffer;
  }
  pthread_mutex_unlock(&tables->lock);
  return status;
}
