/* <name>.graft.json: what a plugin says of itself before any of its code runs. Written by vendors, read before trust.
 */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "plugin/loader.h"

#define MANIFEST_BYTES_MAX (64 * 1024)
#define MANIFEST_DEPTH_MAX 8

bool plg_name_is_valid(const char *name) {
  if (!name || !*name || *name == '.' || *name == '-' || strlen(name) > PLG_NAME_MAX) return false;
  if (strcmp(name, "none") == 0) return false; /* GRAFT_PLUGINS=none */
  for (; *name; name++) {
    if (!isalnum((unsigned char)*name) && !strchr("_-.", *name)) return false;
  }
  return true;
}

/* How deep brackets nest outside strings. The parser's own limit is too generous for a page of text. */
static int nesting(const char *text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (; *text; text++) {
    if (*text == '"') in_string = !in_string;
    if (in_string && *text == '\\' && text[1]) text++;
    if (in_string) continue;
    if (*text == '{' || *text == '[') depth++;
    if (*text == '}' || *text == ']') depth--;
    if (depth > deepest) deepest = depth;
  }
  return deepest;
}

static bool climbs_out(const char *path) {
  for (const char *part = path; part; part = strchr(part, '/')) {
    while (*part == '/') part++;
    if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == 0)) return true;
  }
  return false;
}

/* Takes over the string at `key`; false when it is there and no string. */
static bool take_string(const cJSON *root, const char *key, char **string) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, key);
  if (!item) return true;
  if (!cJSON_IsString(item)) return false;
  free(*string);
  *string = str_new("%s", item->valuestring);
  return true;
}

static char *check_version(const cJSON *root, plg_manifest *manifest) {
  const cJSON *major = cJSON_GetObjectItemCaseSensitive(root, "abi_major");
  const cJSON *minor = cJSON_GetObjectItemCaseSensitive(root, "abi_minor");
  if (!cJSON_IsNumber(major) || (minor && !cJSON_IsNumber(minor))) {
    return str_new("abi_major and abi_minor must be numbers (abi_major is required)");
  }
  manifest->abi_minor = minor ? minor->valuedouble : PLG_NO_MINOR;
  if (major->valuedouble == GRAFT_ABI_MAJOR) return NULL;
  return str_new("it is built for ABI major %g and this libgraft speaks %d; install a build of it for that",
                 major->valuedouble, GRAFT_ABI_MAJOR);
}

static char *check_fields(const cJSON *root, plg_manifest *manifest) {
  static const char *const keys[] = {"name", "vendor", "version", "library", "licence"};
  char **const places[] = {&manifest->name, &manifest->vendor, &manifest->version, &manifest->library,
                           &manifest->licence};
  if (!cJSON_IsObject(root)) return str_new("it holds no JSON object");
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
    if (!take_string(root, keys[i], places[i])) return str_new("\"%s\" must be a string", keys[i]);
  }
  if (!cJSON_GetObjectItemCaseSensitive(root, "name")) return str_new("\"name\" is missing");
  if (!plg_name_is_valid(manifest->name)) {
    return str_new("\"name\" must be 1 to %d letters, digits and _ - . (not \"none\")", PLG_NAME_MAX);
  }
  if (strcmp(manifest->name, "reference") == 0) return str_new("\"reference\" is the name of the built-in backend");
  if (!manifest->library || !*manifest->library) return str_new("\"library\" is missing");
  if (manifest->library[0] == '/') return str_new("\"library\" must be relative to the manifest's folder");
  if (climbs_out(manifest->library)) return str_new("\"library\" must not climb out of its folder with \"..\"");
  return check_version(root, manifest);
}

void plg_manifest_parse(const char *text, size_t bytes, plg_manifest *manifest) {
  if (bytes > MANIFEST_BYTES_MAX) {
    manifest->problem = str_new("it is larger than %d KiB", MANIFEST_BYTES_MAX / 1024);
    return;
  }
  if (memchr(text, 0, bytes)) {
    manifest->problem = str_new("it is not text: it holds a NUL byte");
    return;
  }
  if (nesting(text) > MANIFEST_DEPTH_MAX) {
    manifest->problem = str_new("its brackets nest deeper than %d", MANIFEST_DEPTH_MAX);
    return;
  }
  const char *end = text;
  cJSON *root = cJSON_ParseWithLengthOpts(text, bytes + 1, &end, 1);
  if (root) {
    manifest->problem = check_fields(root, manifest);
    cJSON_Delete(root);
    return;
  }
  int line = 1;
  for (const char *at = text; at < end; at++) line += *at == '\n';
  manifest->problem = str_new("it is not valid JSON (near line %d)", line);
}

/* Reads the whole file into `text`, which has room for one byte more than the limit. Returns a problem or NULL. */
static char *read_file(const char *path, plg_trust *trust, char *text, size_t *bytes) {
  /* NONBLOCK: a pipe of that name must not hang whoever imports us. */
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return str_new("it can't be read: %s", strerror(errno));
  struct stat info;
  char *problem = NULL;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) problem = str_new("it is not a regular file");
  if (!problem) plg_trust_check(trust, path, &info);
  while (!problem && *bytes <= MANIFEST_BYTES_MAX) {
    ssize_t got = read(file, text + *bytes, MANIFEST_BYTES_MAX + 1 - *bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) problem = str_new("it can't be read: %s", strerror(errno));
    if (got <= 0) break;
    *bytes += (size_t)got;
  }
  close(file);
  text[*bytes] = 0;
  return problem;
}

/* The absolute path of a file's folder, malloc'ed. */
static char *folder_of(const char *path) {
  char *copy = str_new("%s", path);
  char *folder = copy ? realpath(dirname(copy), NULL) : NULL;
  free(copy);
  return folder;
}

/* Checks the folder that holds `path`, and the one that holds what a link there leads to. */
static void check_folders(plg_trust *trust, const char *path) {
  char *real = realpath(path, NULL);
  char *folder = folder_of(path), *target = real ? folder_of(real) : NULL;
  if (folder) plg_trust_check(trust, folder, NULL);
  if (target && (!folder || strcmp(folder, target) != 0)) plg_trust_check(trust, target, NULL);
  free(target);
  free(folder);
  free(real);
}

/* Replaces the relative library by its absolute, resolved path. */
static char *resolve_library(const char *path, plg_manifest *manifest) {
  char *folder = folder_of(path);
  char *joined = folder ? str_new("%s/%s", folder, manifest->library) : NULL;
  char *resolved = joined ? realpath(joined, NULL) : NULL;
  char *problem = NULL;
  if (!resolved) {
    problem = str_new("its library %s: %s", joined ? joined : manifest->library, strerror(errno));
  } else {
    free(manifest->library);
    manifest->library = resolved;
  }
  free(joined);
  free(folder);
  return problem;
}

/* All that others may write to is named at once, so that one command mends it. */
static char *trust_problem(plg_trust *trust, const char *path, const char *library) {
  char *manifest_folder = folder_of(path), *library_folder = folder_of(library);
  check_folders(trust, path);
  plg_trust_check(trust, library, NULL);
  if (!manifest_folder || !library_folder || strcmp(manifest_folder, library_folder) != 0)
    check_folders(trust, library);
  free(manifest_folder);
  free(library_folder);
  return plg_trust_end(trust);
}

/* "x" of ".../x.graft.json", to have a name for what can't be read. */
static char *stem_of(const char *path) {
  const char *base = strrchr(path, '/');
  base = base ? base + 1 : path;
  const char *end = strstr(base, ".graft.json");
  return str_new("%.*s", (int)(end && end > base ? (size_t)(end - base) : strlen(base)), base);
}

void plg_manifest_read(const char *path, plg_origin origin, plg_manifest *manifest) {
  *manifest = (plg_manifest){.path = str_new("%s", path), .name = stem_of(path)};
  char *text = malloc(MANIFEST_BYTES_MAX + 2);
  size_t bytes = 0;
  if (!text) {
    manifest->problem = str_new("no host memory to read it");
    return;
  }
  plg_trust trust = {.origin = origin};
  manifest->problem = read_file(path, &trust, text, &bytes);
  if (!manifest->problem) plg_manifest_parse(text, bytes, manifest);
  if (!manifest->problem) manifest->problem = resolve_library(path, manifest);
  char *problem = manifest->problem ? plg_trust_end(&trust) : trust_problem(&trust, path, manifest->library);
  if (problem) {
    free(manifest->problem); /* what others may have written says nothing */
    manifest->problem = problem;
  }
  free(text);
}

void plg_manifest_free(plg_manifest *manifest) {
  free(manifest->name);
  free(manifest->vendor);
  free(manifest->version);
  free(manifest->licence);
  free(manifest->path);
  free(manifest->library);
  free(manifest->problem);
  *manifest = (plg_manifest){0};
}
