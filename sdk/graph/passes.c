/* Which passes there are, and which run. Views need none: a graph has views where a program has ops that make them. */
#include <string.h>

#include "graph/graph.h"

/* In the order in which they run; those without a function here are part of compile.c. */
static const struct pass {
  const char *name;
  uint32_t bit;
  graft_status (*run)(graft_graph *graph);
} passes[] = {
    {"dead", GR_PASS_DEAD, gr_pass_dead}, {"cse", GR_PASS_CSE, gr_pass_cse},
    {"fold", GR_PASS_FOLD, gr_pass_fold}, {"direct", GR_PASS_DIRECT, gr_pass_direct},
    {"late", GR_PASS_LATE, gr_pass_late}, {"fuse", GR_PASS_FUSE, NULL},
    {"inplace", GR_PASS_INPLACE, NULL},   {"memory", GR_PASS_MEMORY, NULL},
};
enum { NPASSES = sizeof passes / sizeof *passes };

bool gr_pass_at(uint32_t number, const char **name, uint32_t *bit) {
  if (number >= NPASSES) return false;
  *name = passes[number].name;
  *bit = passes[number].bit;
  return true;
}

static graft_status unknown(const char *where, const char *word, size_t length) {
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "%s: \"%.*s\" is no choice of passes; expected \"none\", or names with a minus, separated by commas: "
                 "-dead, -cse, -fold, -direct, -late, -fuse, -inplace, -memory",
                 where, (int)length, word);
}

static graft_status choose_word(const char *where, const char *word, size_t length, uint32_t *chosen) {
  if (length == 4 && !strncmp(word, "none", 4)) return *chosen = 0, GRAFT_OK;
  for (uint32_t i = 0; i < NPASSES && length && *word == '-'; i++) {
    if (strlen(passes[i].name) != length - 1 || strncmp(word + 1, passes[i].name, length - 1) != 0) continue;
    *chosen &= ~passes[i].bit;
    return GRAFT_OK;
  }
  return unknown(where, word, length);
}

static graft_status choose(const char *where, const char *text, uint32_t *chosen) {
  graft_status status = GRAFT_OK;
  while (text && *text && !status) {
    size_t length = strcspn(text, ",");
    status = choose_word(where, text, length, chosen);
    text += length + (text[length] == ',');
  }
  return status;
}

graft_status gr_choose_passes(const char *text, uint32_t *chosen) {
  *chosen = 0;
  for (uint32_t i = 0; i < NPASSES; i++) *chosen |= passes[i].bit;
  graft_status status = choose("GRAFT_GRAPH_PASSES", err_getenv("GRAFT_GRAPH_PASSES"), chosen);
  if (!status) status = choose("passes", text, chosen);
  /* Memory that is taken over is memory that was planned. */
  if (!(*chosen & GR_PASS_MEMORY)) *chosen &= ~(uint32_t)GR_PASS_INPLACE;
  return status;
}

graft_status gr_run_passes(graft_graph *graph, uint32_t chosen) {
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < NPASSES && !status; i++) {
    if (passes[i].run && chosen & passes[i].bit) status = passes[i].run(graph);
  }
  return status;
}
