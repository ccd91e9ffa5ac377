/* Compiled programs on disk. A file is a header and the driver's binary; it appears under its name only when it is
 * whole (written under another name, then renamed), and is believed only if its hash says so. Nothing that goes wrong
 * here is an error: the program is compiled again. */
#define _POSIX_C_SOURCE 200809L
#define XXH_INLINE_ALL
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "runtime/ocl.h"

#define MAGIC "graftcl1"

typedef struct header {
  char magic[8];
  uint64_t bytes;
  uint64_t hash; /* XXH3-64 of the binary */
} header;

static void mix(XXH3_state_t *state, const char *text) {
  /* With its NUL, so that two texts can't trade letters at the seam. */
  XXH3_128bits_update(state, text, strlen(text) + 1);
}

ocl_key ocl_key_of(const char *source, const char *options, const char *device) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  mix(&state, source);
  mix(&state, options);
  mix(&state, device);
  XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return (ocl_key){hash.low64, hash.high64};
}

bool ocl_disk_folder(graft_device *device, char *folder, size_t capacity) {
  const graft_host *host = device->plugin->host;
  size_t length = 0;
  if (atomic_load(&device->disk_unusable)) return false;
  if (!GRAFT_HAS(host, graft_host, cache_directory) ||
      host->cache_directory(host->context, folder, capacity, &length) != GRAFT_OK || length == 0 ||
      length >= capacity) {
    atomic_store(&device->disk_unusable, true); /* the host has said why */
    return false;
  }
  return true;
}

static bool path_of(graft_device *device, ocl_key key, char path[PATH_MAX]) {
  char folder[PATH_MAX - 64];
  if (!ocl_disk_folder(device, folder, sizeof folder)) return false;
  snprintf(path, PATH_MAX, "%s/%016llx%016llx.clbin", folder, (unsigned long long)key.high,
           (unsigned long long)key.low);
  return true;
}

void *ocl_disk_load(graft_device *device, ocl_key key, size_t *bytes) {
  char path[PATH_MAX];
  if (!path_of(device, key, path)) return NULL;
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  header head;
  void *binary = NULL;
  /* The length is compared with the file's before it is believed: it may be rubbish. */
  if (fread(&head, sizeof head, 1, file) == 1 && memcmp(head.magic, MAGIC, sizeof head.magic) == 0 &&
      fseek(file, 0, SEEK_END) == 0 && (uint64_t)ftell(file) == sizeof head + head.bytes && head.bytes > 0 &&
      fseek(file, sizeof head, SEEK_SET) == 0 && (binary = malloc(head.bytes))) {
    if (fread(binary, head.bytes, 1, file) != 1 || XXH3_64bits(binary, head.bytes) != head.hash) {
      free(binary);
      binary = NULL;
    }
  }
  fclose(file);
  if (binary) *bytes = head.bytes;
  return binary;
}

static bool write_all(const char *path, const void *binary, size_t bytes) {
  FILE *file = fopen(path, "wbx");
  if (!file) return false;
  header head = {.bytes = bytes, .hash = XXH3_64bits(binary, bytes)};
  memcpy(head.magic, MAGIC, sizeof head.magic);
  bool written = fwrite(&head, sizeof head, 1, file) == 1 && fwrite(binary, bytes, 1, file) == 1;
  return fclose(file) == 0 && written;
}

void ocl_disk_save(graft_device *device, ocl_key key, const void *binary, size_t bytes) {
  static atomic_uint serial;
  char path[PATH_MAX], temporary[PATH_MAX + 48];
  if (!path_of(device, key, path)) return;
  snprintf(temporary, sizeof temporary, "%s.%ld.%u", path, (long)getpid(), atomic_fetch_add(&serial, 1));
  if (write_all(temporary, binary, bytes) && rename(temporary, path) == 0) return;
  int reason = errno;
  unlink(temporary);
  if (!atomic_exchange(&device->disk_unusable, true)) {
    ocl_log(device->plugin, GRAFT_LOG_WARNING, "compiled programs are not kept: %s: %s", path, strerror(reason));
  }
}
