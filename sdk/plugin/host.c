/* What a plugin may ask of the host: graft_host. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "plugin/loader.h"

static void host_log(void *context, graft_log_level level, const char *message) {
  const graft_rt_backend *backend = context;
  if (level < GRAFT_LOG_ERROR) level = GRAFT_LOG_ERROR;
  if (level > GRAFT_LOG_DEBUG) level = GRAFT_LOG_DEBUG;
  err_log(level, "%s: %s", backend->name, message ? message : "");
}

static void host_set_error(void *context, const char *message) {
  (void)context;
  err_set(GRAFT_OK, "%s", message ? message : "");
}

/* The folder above all plugins' cache folders: absolute, malloc'ed, or NULL. An answer is not yet made. */
static char *cache_root(void) {
  const char *chosen = err_getenv("GRAFT_CACHE_DIR");
  if (chosen && strcmp(chosen, "none") == 0) return NULL;
  if (chosen && *chosen) {
    if (*chosen == '/') return str_new("%s", chosen);
    err_log(GRAFT_LOG_WARNING, "GRAFT_CACHE_DIR=%s is not an absolute path and is not used", chosen);
  }
  const char *cache = err_getenv("XDG_CACHE_HOME");
  if (cache && *cache == '/') return str_new("%s/graft", cache);
  const char *home = err_getenv("HOME");
  if (home && *home == '/') return str_new("%s/.cache/graft", home);
  return NULL;
}

/* mkdir -p with 0700. `path` is absolute and is changed only meanwhile. */
static int make_folders(char *path) {
  for (char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
    if (slash) *slash = 0;
    int failed = mkdir(path, 0700) != 0 && errno != EEXIST ? errno : 0;
    if (slash) *slash = '/';
    /* A parent that can't be made may exist behind a read-only or foreign folder: only the last one decides. */
    if (!slash) return failed;
  }
}

/* Why a cache folder can't be used, or NULL. What lies in it is run: it must be this user's own. */
static const char *cache_problem(char *path) {
  int failed = make_folders(path);
  if (failed) return strerror(failed);
  struct stat info;
  if (stat(path, &info) != 0) return strerror(errno);
  if (!S_ISDIR(info.st_mode)) return "not a folder";
  if (info.st_uid != geteuid()) return "it belongs to another user";
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return "others may write to it (chmod go-w)";
  if (access(path, W_OK | X_OK) != 0) return strerror(errno);
  return NULL;
}

static graft_status host_cache_directory(void *context, char *path, size_t capacity, size_t *length) {
  const graft_rt_backend *backend = context;
  char *root = cache_root();
  if (!root) return GRAFT_UNIMPLEMENTED;
  char *folder = str_new("%s/%s", root, backend->name);
  free(root);
  if (!folder) return GRAFT_OUT_OF_MEMORY;

  graft_status status = GRAFT_OK;
  const char *problem = cache_problem(folder);
  if (problem) {
    err_log(GRAFT_LOG_WARNING, "%s: compiled programs are not kept: %s: %s", backend->name, folder, problem);
    status = GRAFT_UNIMPLEMENTED;
  } else {
    size_t needed = strlen(folder);
    if (length) *length = needed;
    if (path && capacity) memcpy(path, needed < capacity ? folder : "", needed < capacity ? needed + 1 : 1);
  }
  free(folder);
  return status;
}

/* This host offers no extension yet. */
static graft_status host_extension(void *context, const char *name, uint32_t minimum, const void **table) {
  (void)context, (void)name, (void)minimum, (void)table;
  return GRAFT_UNIMPLEMENTED;
}

void plg_host_init(graft_rt_backend *backend) {
  backend->host = (graft_host){
      .struct_size = sizeof(graft_host),
      .abi_major = GRAFT_ABI_MAJOR,
      .abi_minor = GRAFT_ABI_MINOR,
      .context = backend,
      .log = host_log,
      .set_error = host_set_error,
      .workspace = plg_hooks.workspace,
      .output_shape = plg_hooks.output_shape,
      .memo_publish = plg_hooks.memo_publish,
      .cache_directory = host_cache_directory,
      .extension = host_extension,
  };
}
