/* What is there: discovery by manifests, and the list of backends that are open. */
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "plugin/loader.h"

const char *graft_version(void) {
  return GRAFT_VERSION;
}

#define MANIFEST_SUFFIX ".graft.json"

/* A growing list of manifests, in the order of the search. */
typedef struct found {
  plg_manifest *items;
  size_t count, capacity;
} found;

static pthread_once_t discover_once = PTHREAD_ONCE_INIT;
static const graft_backend_info **rows_of_infos;
static graft_backend_info *infos; /* sorted by name, then in the order of the search; the built-in one among them */
static size_t info_count;

static _Atomic(graft_rt_backend *) opened; /* grows at its head */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/* --- discovery --- */

static bool add(found *all, const char *path, plg_origin origin) {
  if (all->count == all->capacity) {
    size_t capacity = all->capacity ? all->capacity * 2 : 16;
    plg_manifest *items = realloc(all->items, capacity * sizeof *items);
    if (!items) return false;
    all->items = items;
    all->capacity = capacity;
  }
  plg_manifest_read(path, origin, &all->items[all->count++]);
  return true;
}

static int is_manifest(const struct dirent *entry) {
  size_t length = strlen(entry->d_name), suffix = strlen(MANIFEST_SUFFIX);
  return entry->d_name[0] != '.' && length > suffix && strcmp(entry->d_name + length - suffix, MANIFEST_SUFFIX) == 0;
}

/* A folder that was seen under another name is not read again. */
static bool seen(const found *all, const char *folder) {
  size_t length = strlen(folder);
  for (size_t i = 0; i < all->count; i++) {
    const char *path = all->items[i].path;
    if (strncmp(path, folder, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/')) return true;
  }
  return false;
}

/* False, and errno, where there is no such folder. */
static bool search_folder(found *all, const char *path, plg_origin origin) {
  char *folder = realpath(path, NULL);
  if (!folder) return false;
  struct dirent **entries = NULL;
  int count = seen(all, folder) ? 0 : scandir(folder, &entries, is_manifest, alphasort);
  for (int i = 0; i < count; i++) {
    char *manifest = str_new("%s/%s", folder, entries[i]->d_name);
    if (manifest) add(all, manifest, origin);
    free(manifest);
    free(entries[i]);
  }
  free(entries);
  free(folder);
  return true;
}

/* One that need not be there. */
static void search_folder_if_any(found *all, const char *path, plg_origin origin) {
  if (!search_folder(all, path, origin)) err_log(GRAFT_LOG_DEBUG, "no plugins in %s: there is no such folder", path);
}

/* One that the user named. */
static void search_named_folder(found *all, const char *path) {
  if (*path != '/')
    err_log(GRAFT_LOG_WARNING, "GRAFT_PLUGIN_PATH: \"%s\" is not an absolute path and is not searched", path);
  else if (!search_folder(all, path, PLG_DISCOVERED))
    err_log(GRAFT_LOG_WARNING, "GRAFT_PLUGIN_PATH: no folder %s: %s", path, strerror(errno));
}

static void search_list(found *all, const char *list) {
  while (list && *list) {
    int length = (int)strcspn(list, ":");
    char *folder = str_new("%.*s", length, list);
    if (folder && *folder) search_named_folder(all, folder);
    free(folder);
    list += length + (list[length] == ':');
  }
}

static void search_data_home(found *all) {
  const char *data = err_getenv("XDG_DATA_HOME");
  const char *home = err_getenv("HOME");
  char *folder = NULL;
  if (data && *data == '/') {
    folder = str_new("%s/graft/plugins", data);
  } else if (home && *home == '/') {
    folder = str_new("%s/.local/share/graft/plugins", home);
  }
  if (folder) search_folder_if_any(all, folder, PLG_DISCOVERED);
  free(folder);
}

/* The nth folder of plugins that goes with libgraft, malloc'ed; NULL: there are no more. */
static char *own_folder(int nth) {
  static const char *const places[] = {"graft/plugins", "../lib/graft/plugins"};
  if (nth == sizeof places / sizeof *places) return NULL;
  char *file = plg_own_file();
  char *path = file ? str_new("%s/%s", dirname(file), places[nth]) : NULL;
  free(file);
  return path;
}

static void search_own_folders(found *all) {
  char *path;
  for (int i = 0; (path = own_folder(i)); i++) {
    search_folder_if_any(all, path, PLG_OWN);
    free(path);
  }
}

plg_origin plg_origin_of(const char *path) {
  char *copy = str_new("%s", path), *folder = copy ? realpath(dirname(copy), NULL) : NULL, *own;
  plg_origin origin = PLG_DISCOVERED;
  for (int i = 0; folder && (own = own_folder(i)); i++) {
    char *resolved = realpath(own, NULL);
    if (resolved && strcmp(resolved, folder) == 0) origin = PLG_OWN;
    free(resolved);
    free(own);
  }
  free(folder);
  free(copy);
  return origin;
}

/* --- what of it counts --- */

/* Whether a comma-separated list holds a name. */
static bool list_holds(const char *list, const char *name) {
  size_t length = strlen(name);
  while (*list) {
    size_t part = strcspn(list, ",");
    if (part == length && memcmp(list, name, length) == 0) return true;
    list += part + (list[part] == ',');
  }
  return false;
}

static bool is_found(const found *all, const char *name) {
  for (size_t i = 0; i < all->count; i++) {
    if (strcmp(all->items[i].name, name) == 0) return true;
  }
  return strcmp(name, "reference") == 0 || strcmp(name, "none") == 0;
}

/* A misspelt name must not look like a plugin that is out of order. */
static void warn_of_absent(const found *all, const char *filter) {
  while (*filter) {
    size_t length = strcspn(filter, ",");
    char *name = str_new("%.*s", (int)length, filter);
    if (name && *name && !is_found(all, name)) {
      err_log(GRAFT_LOG_WARNING, "GRAFT_PLUGINS: no plugin is called \"%s\"", name);
    }
    free(name);
    filter += length + (filter[length] == ',');
  }
}

static void apply_filter(found *all) {
  const char *filter = err_getenv("GRAFT_PLUGINS");
  if (!filter || !*filter) return;
  warn_of_absent(all, filter);
  for (size_t i = 0; i < all->count; i++) {
    plg_manifest *manifest = &all->items[i];
    if (list_holds(filter, manifest->name)) continue;
    free(manifest->problem);
    manifest->problem = str_new("left out by GRAFT_PLUGINS=%s", filter);
  }
}

/* The first usable one of a name, in the order of the search, is the one. */
static void refuse_duplicates(found *all) {
  for (size_t i = 0; i < all->count; i++) {
    for (size_t k = 0; k < i && !all->items[i].problem; k++) {
      if (all->items[k].problem || strcmp(all->items[k].name, all->items[i].name) != 0) continue;
      all->items[i].problem =
          str_new("another plugin of this name is found before it: %s; remove one of them", all->items[k].path);
    }
  }
}

static int by_name(const void *a, const void *b) {
  const graft_backend_info *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  if (order) return order;
  return (x->problem != NULL) - (y->problem != NULL);
}

static graft_backend_info info_of(const plg_manifest *manifest) {
  return (graft_backend_info){
      .struct_size = sizeof(graft_backend_info),
      .name = manifest->name ? manifest->name : "",
      .vendor = manifest->vendor ? manifest->vendor : "",
      .version = manifest->version ? manifest->version : "",
      .manifest = manifest->path,
      .library = manifest->library ? manifest->library : "",
      .problem = manifest->problem,
  };
}

static void discover(void) {
  found all = {0};
  search_list(&all, err_getenv("GRAFT_PLUGIN_PATH"));
  search_data_home(&all);
  search_own_folders(&all);
  apply_filter(&all);
  refuse_duplicates(&all);

  static graft_backend_info builtin;
  builtin = (graft_backend_info){
      .struct_size = sizeof builtin,
      .name = "reference",
      .vendor = "Graft",
      .version = graft_version(),
      .library = "built in",
  };
  static const graft_backend_info *only = &builtin;
  infos = calloc(all.count + 1, sizeof *infos);
  rows_of_infos = calloc(all.count + 1, sizeof *rows_of_infos);
  if (!infos || !rows_of_infos) { /* the built-in backend needs no memory to be named */
    infos = &builtin;
    rows_of_infos = &only;
    info_count = 1;
    return;
  }
  for (size_t i = 0; i < all.count; i++) {
    infos[i] = info_of(&all.items[i]);
    free(all.items[i].licence); /* an info has no place for it */
  }
  infos[all.count] = builtin;
  info_count = all.count + 1;
  qsort(infos, info_count, sizeof *infos, by_name);
  for (size_t i = 0; i < info_count; i++) rows_of_infos[i] = &infos[i];
  free(all.items); /* the other strings live on in infos */
  for (size_t i = 0; i < info_count; i++) {
    if (infos[i].problem) err_log(GRAFT_LOG_INFO, "%s: not used: %s", infos[i].manifest, infos[i].problem);
  }
}

graft_status graft_backends(const graft_backend_info *const **rows, size_t *count) {
  if (!rows) return err_null(__func__, "infos");
  if (!count) return err_null(__func__, "count");
  pthread_once(&discover_once, discover);
  *rows = rows_of_infos;
  *count = info_count;
  return GRAFT_OK;
}

/* --- opened backends --- */

/* What tells one instance from another: path and options. */
static char *key_of(const char *path, const char *const *options) {
  char *key = str_new("%s", path);
  for (; key && options && *options; options++) {
    char *longer = str_new("%s\n%s", key, *options);
    free(key);
    key = longer;
  }
  return key;
}

graft_rt_backend *plg_opened(void) {
  return atomic_load(&opened);
}

/* The head of the list of opened backends, which only grows. */
static void publish(graft_rt_backend *backend) {
  graft_rt_backend *head = atomic_load(&opened);
  do backend->next = head;
  while (!atomic_compare_exchange_weak(&opened, &head, backend));
}

static graft_rt_backend *find_opened(const char *key) {
  for (graft_rt_backend *at = atomic_load(&opened); at; at = at->next) {
    if (at->key && strcmp(at->key, key) == 0) return at;
  }
  return NULL;
}

/* Opens under a lock: two threads that ask for the same library get one instance. */
static graft_status open_library(const char *path, const char *name, const char *const *options,
                                 graft_rt_backend **backend) {
  char *key = key_of(path, options);
  if (!key) return err_about(GRAFT_OUT_OF_MEMORY, path, "no host memory to open it");
  pthread_mutex_lock(&open_lock);
  graft_rt_backend *made = find_opened(key);
  graft_status status = made ? GRAFT_OK : plg_load(path, name, options, &made);
  if (!status && !made->key) {
    made->key = key;
    key = NULL;
    plg_hooks.opened(made);
    publish(made);
  }
  pthread_mutex_unlock(&open_lock);
  free(key);
  if (!status) *backend = made;
  return status;
}

void plg_forget(graft_rt_backend *backend) {
  pthread_mutex_lock(&open_lock);
  free(backend->key);
  backend->key = NULL;
  pthread_mutex_unlock(&open_lock);
}

static graft_status open_manifest(const char *path, const char *const *options, graft_rt_backend **backend) {
  plg_manifest manifest;
  plg_manifest_read(path, PLG_TYPED, &manifest);
  graft_status status = manifest.problem ? err_about(GRAFT_INCOMPATIBLE, path, "%s", manifest.problem)
                                         : open_library(manifest.library, manifest.name, options, backend);
  plg_manifest_free(&manifest);
  return status;
}

static bool has_suffix(const char *text, const char *suffix) {
  size_t length = strlen(text), tail = strlen(suffix);
  return length >= tail && strcmp(text + length - tail, suffix) == 0;
}

static graft_status open_path(const char *path, const char *const *options, graft_rt_backend **backend) {
  char *real = realpath(path, NULL);
  if (!real) return err_about(GRAFT_INVALID_ARGUMENT, path, "%m");
  graft_status status =
      has_suffix(real, ".json") ? open_manifest(real, options, backend) : open_library(real, NULL, options, backend);
  free(real);
  return status;
}

static graft_status no_such_plugin(const char *name) {
  struct stat info;
  if (stat(name, &info) == 0 && S_ISREG(info.st_mode)) {
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "no plugin is called \"%s\", but there is such a file here: to open that, give its path, ./%s", name,
                   name);
  }
  char list[1024] = "";
  size_t used = 0;
  for (size_t i = 0; i < info_count && used < sizeof list; i++) {
    if (infos[i].problem) continue;
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", infos[i].name);
  }
  return err_set(
      GRAFT_INVALID_ARGUMENT,
      "no plugin is called \"%s\"; found: %s (add its folder to GRAFT_PLUGIN_PATH, or give the path of its library)",
      name, list);
}

static graft_status open_builtin(const char *const *options, graft_rt_backend **backend) {
  if (options && *options) {
    return err_about(GRAFT_INVALID_ARGUMENT, "reference", "option \"%s\": the built-in backend has no options",
                     *options);
  }
  return plg_reference(backend);
}

graft_status graft_backend_open(const char *name_or_path, const char *const *options, graft_rt_backend **backend) {
  if (!name_or_path) return err_null(__func__, "name_or_path");
  if (!backend) return err_null(__func__, "backend");
  if (strchr(name_or_path, '/')) return open_path(name_or_path, options, backend);
  const graft_backend_info *const *rows, *refused = NULL;
  size_t count;
  graft_backends(&rows, &count);
  for (size_t i = 0; i < count; i++) {
    if (strcmp(rows[i]->name, name_or_path) != 0) continue;
    if (!rows[i]->manifest) return open_builtin(options, backend);
    if (!rows[i]->problem) return open_library(rows[i]->library, rows[i]->name, options, backend);
    if (!refused) refused = rows[i];
  }
  if (!refused) return no_such_plugin(name_or_path);
  return err_about(GRAFT_INCOMPATIBLE, refused->manifest, "%s", refused->problem);
}

/* Opened at the first call for which there is memory. */
graft_status plg_reference(graft_rt_backend **backend) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static graft_rt_backend *reference;
  graft_status status = GRAFT_OK;
  pthread_mutex_lock(&lock);
  if (!reference) {
    status = plg_negotiate(plg_hooks.builtin, NULL, "reference", NULL, &reference);
    if (!status) publish(reference);
  }
  if (!status) *backend = reference;
  pthread_mutex_unlock(&lock);
  return status;
}

const char *graft_backend_name(const graft_rt_backend *backend) {
  if (err_is_null(backend, __func__, "backend")) return NULL;
  return backend->name;
}
