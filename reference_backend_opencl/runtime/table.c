/* Tables of constants that kernels read, kept by their content or by what they are made from: a call that comes again
 * finds its table on the device. A table is made whole and never changed, so that all streams may read it at once; the
 * driver keeps one that was dropped for as long as a submitted kernel needs it. */
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/ocl.h"

enum { TABLES = 128 };
#define MOST_BYTES ((size_t)64 << 20) /* of all together, but for the one in use */

typedef struct table {
  XXH128_hash_t hash;
  size_t bytes;
  cl_mem buffer;
  uint64_t used; /* when, in lookups */
} table;

struct ocl_tables {
  pthread_mutex_t lock;
  uint64_t lookups;
  size_t bytes;
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

/* The table of this hash, or the place of the one least recently used. */
static table *find(ocl_tables *tables, XXH128_hash_t hash, bool *found) {
  table *oldest = &tables->items[0];
  for (table *t = tables->items; t < tables->items + TABLES; t++) {
    *found = t->buffer && t->hash.low64 == hash.low64 && t->hash.high64 == hash.high64;
    if (*found) return t;
    if (t->used < oldest->used) oldest = t;
  }
  return oldest;
}

static void drop(graft_device *device, table *t) {
  ocl_tables *tables = device->tables;
  if (t->buffer) ocl_buffer_release(device, t->buffer);
  tables->bytes -= t->bytes;
  *t = (table){0};
}

/* Drops tables, the oldest first, until so many bytes have room. */
static void make_room(graft_device *device, size_t bytes) {
  ocl_tables *tables = device->tables;
  while (tables->bytes && tables->bytes + bytes > MOST_BYTES) {
    table *oldest = NULL;
    for (table *t = tables->items; t < tables->items + TABLES; t++) {
      if (t->buffer && (!oldest || t->used < oldest->used)) oldest = t;
    }
    drop(device, oldest);
  }
}

static graft_status replace(graft_device *device, table *t, XXH128_hash_t hash, const void *content, size_t bytes) {
  cl_int error;
  void *source = (void *)(uintptr_t)content; /* read only, but OpenCL does not say const */
  cl_mem buffer = clCreateBuffer(device->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, source, &error);
  if (error != CL_SUCCESS) {
    return ocl_fail(device->plugin, GRAFT_OUT_OF_MEMORY, "a table of %zu bytes: %s", bytes, ocl_error_name(error));
  }
  drop(device, t);
  make_room(device, bytes);
  *t = (table){hash, bytes, buffer, 0};
  device->tables->bytes += bytes;
  return GRAFT_OK;
}

/* The table of this hash; `content`, or what make(of) gives, is put there where it is missing. */
static graft_status get(graft_device *device, XXH128_hash_t hash, const void *content, size_t bytes,
                        ocl_table_make make, const void *of, cl_mem *buffer) {
  ocl_tables *tables = device->tables;
  void *made = NULL;
  bool found;
  graft_status status = GRAFT_OK;
  pthread_mutex_lock(&tables->lock);
  table *t = find(tables, hash, &found);
  if (!found && make) status = make(of, &made, &bytes);
  if (!found && status == GRAFT_OK) status = replace(device, t, hash, make ? made : content, bytes);
  if (status == GRAFT_OK) {
    t->used = ++tables->lookups;
    clRetainMemObject(t->buffer);
    *buffer = t->buffer;
  }
  pthread_mutex_unlock(&tables->lock);
  free(made);
  return status;
}

graft_status ocl_table_get(graft_device *device, const void *content, size_t bytes, cl_mem *buffer) {
  return get(device, XXH3_128bits(content, bytes), content, bytes, NULL, NULL, buffer);
}

graft_status ocl_table_made(graft_device *device, const void *key, size_t key_bytes, ocl_table_make make,
                            const void *of, cl_mem *buffer) {
  /* The seed: not the hash of a content that equals the key. */
  return get(device, XXH3_128bits_withSeed(key, key_bytes, 1), NULL, 0, make, of, buffer);
}

void ocl_table_release(graft_device *device, cl_mem buffer) {
  ocl_tables *tables = device->tables;
  bool kept = false;
  pthread_mutex_lock(&tables->lock);
  for (table *t = tables->items; t < tables->items + TABLES; t++) kept = kept || t->buffer == buffer;
  if (kept)
    clReleaseMemObject(buffer);
  else
    ocl_buffer_release(device, buffer);
  pthread_mutex_unlock(&tables->lock);
}
