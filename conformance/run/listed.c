#include "conformance/run/listed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/run/case.h"

typedef struct cf_line {
  char id[CF_ID_BYTES];
  bool met;
} cf_line;

struct cf_listed {
  size_t count, capacity;
  cf_line *lines; /* by id */
};

static int cf_by_id(const void *a, const void *b) {
  return strcmp(((const cf_line *)a)->id, ((const cf_line *)b)->id);
}

static int cf_with_id(const void *id, const void *line) {
  return strcmp(id, ((const cf_line *)line)->id);
}

/* In order, and each once. */
static void cf_listed_sort(cf_listed *listed) {
  size_t kept = 0;
  qsort(listed->lines, listed->count, sizeof *listed->lines, cf_by_id);
  for (size_t i = 0; i < listed->count; i++)
    if (!kept || cf_by_id(&listed->lines[i], &listed->lines[kept - 1])) listed->lines[kept++] = listed->lines[i];
  listed->count = kept;
}

static bool cf_listed_add(cf_listed *listed, const char *id) {
  if (listed->count == listed->capacity) {
    size_t capacity = listed->capacity ? 2 * listed->capacity : 256;
    cf_line *lines = realloc(listed->lines, capacity * sizeof *lines);
    if (!lines) return false;
    listed->lines = lines, listed->capacity = capacity;
  }
  cf_line *line = &listed->lines[listed->count++];
  line->met = false;
  snprintf(line->id, sizeof line->id, "%s", id);
  return true;
}

static graft_status cf_listed_take(cf_listed *listed, const char *path, FILE *f) {
  char line[2 * CF_ID_BYTES];
  while (fgets(line, sizeof line, f)) {
    line[strcspn(line, "\r\n")] = 0;
    if (strlen(line) >= CF_ID_BYTES) return err_set(GRAFT_INVALID_ARGUMENT, "%s: no id is as long: %s", path, line);
    if (*line && !cf_listed_add(listed, line)) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for the ids of %s", path);
  }
  if (ferror(f)) return err_set(GRAFT_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  if (!listed->count) return err_set(GRAFT_INVALID_ARGUMENT, "%s has no id (`graft conformance --list`)", path);
  cf_listed_sort(listed);
  return GRAFT_OK;
}

graft_status cf_listed_read(const char *path, cf_listed **listed) {
  FILE *f = fopen(path, "r");
  if (!f) return err_set(GRAFT_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  cf_listed *l = calloc(1, sizeof *l);
  graft_status s = l ? cf_listed_take(l, path, f) : err_set(GRAFT_OUT_OF_MEMORY, "no memory for the ids of %s", path);
  fclose(f);
  if (s != GRAFT_OK)
    cf_listed_free(l);
  else
    *listed = l;
  return s;
}

bool cf_listed_has(cf_listed *listed, const char *id) {
  cf_line *line = bsearch(id, listed->lines, listed->count, sizeof *line, cf_with_id);
  if (line) line->met = true;
  return line != NULL;
}

const char *cf_listed_idle(const cf_listed *listed) {
  for (size_t i = 0; listed && i < listed->count; i++)
    if (!listed->lines[i].met) return listed->lines[i].id;
  return NULL;
}

void cf_listed_free(cf_listed *listed) {
  if (!listed) return;
  free(listed->lines);
  free(listed);
}
