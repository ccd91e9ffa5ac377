/* Files of graphs, damaged at random: as bytes, and as JSON that is whole and says something else. What comes of one is
 * an error, or a graph that can be saved, compiled and run. The seed is fixed. */
#ifndef GRAFT_TESTS_GRAPH_DAMAGE_H
#define GRAFT_TESTS_GRAPH_DAMAGE_H

#include "graph/graph.h"
#include "graph_files.h"

enum { MOST_NODES = 1 << 14, SMALL = 1 << 20 };

static uint64_t state = 20250611;

static inline uint32_t draw(uint32_t below) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(state >> 33) % below;
}

/* --- damage to bytes --- */

static inline void damage_byte(bytes *b, uint32_t header) {
  const size_t at = draw(3) ? 8 + draw(header) % (uint32_t)(b->count - 8) : draw((uint32_t)b->count);
  switch (draw(4)) {
    case 0: b->at[at] ^= (unsigned char)(1u << draw(8)); break;
    case 1: b->at[at] = (unsigned char)draw(256); break;
    case 2: memmove(b->at + at, b->at + at + 1, b->count-- - at - 1); break;
    default: b->at[at] = (unsigned char)"0129-.[]{}\":,e\\u"[draw(16)]; break;
  }
}

static inline bytes damage_bytes(bytes from) {
  bytes b = {malloc(from.count + 1), from.count};
  memcpy(b.at, from.at, from.count);
  const uint32_t header = (uint32_t)header_bytes(from);
  for (uint32_t n = 1 + draw(4); n && b.count > 16; n--) damage_byte(&b, header);
  return b;
}

/* --- damage to JSON --- */

typedef struct place {
  cJSON *in, *item;
} place;

static inline uint32_t collect(cJSON *in, place *places, uint32_t count) {
  cJSON *item;
  cJSON_ArrayForEach(item, in) {
    if (count == MOST_NODES) break;
    places[count++] = (place){in, item};
    count = collect(item, places, count);
  }
  return count;
}

static inline cJSON *odd_value(void) {
  static const char *const odd[] = {"0",
                                    "1",
                                    "-1",
                                    "2",
                                    "3",
                                    "7",
                                    "1e300",
                                    "0.5",
                                    "null",
                                    "{}",
                                    "[]",
                                    "true",
                                    "\"\"",
                                    "\"f64\"",
                                    "\"i64\"",
                                    "\"bool\"",
                                    "\"c64\"",
                                    "\"9223372036854775807\"",
                                    "\"-9223372036854775808\"",
                                    "4611686018427387904",
                                    "2147483647",
                                    "4294967295",
                                    "[0]",
                                    "[-1]",
                                    "\"0x7ff8000000000000\"",
                                    "false"};
  return cJSON_Parse(odd[draw(sizeof odd / sizeof *odd)]);
}

static inline void replace(const place *at, cJSON *by) {
  if (cJSON_IsObject(at->in)) {
    char key[256];
    snprintf(key, sizeof key, "%s", at->item->string);
    cJSON_ReplaceItemInObjectCaseSensitive(at->in, key, by);
  } else {
    cJSON_ReplaceItemViaPointer(at->in, at->item, by);
  }
}

static inline void damage_item(cJSON *root, place *places) {
  const uint32_t count = collect(root, places, 0);
  if (!count) return;
  const place *at = &places[draw(count)], *other = &places[draw(count)];
  switch (draw(5)) {
    case 0: cJSON_Delete(cJSON_DetachItemViaPointer(at->in, at->item)); break;
    case 1: replace(at, cJSON_Duplicate(other->item, true)); break;
    case 2:
      if (cJSON_IsArray(at->in)) cJSON_AddItemToArray(at->in, cJSON_Duplicate(at->item, true));
      break;
    case 3:
      if (cJSON_IsNumber(at->item)) replace(at, cJSON_CreateNumber(at->item->valuedouble + (draw(2) ? 1 : -1)));
      break;
    default: replace(at, odd_value()); break;
  }
}

static inline bytes damage_json(bytes from) {
  opened o = open_json(from);
  place *places = malloc(MOST_NODES * sizeof *places);
  for (uint32_t n = 1 + draw(2); n; n--) damage_item(draw(8) ? o.graph : o.header, places);
  free(places);
  if (!cJSON_GetObjectItem(cJSON_GetObjectItem(o.header, "__metadata__"), "graft.graph")) {
    cJSON_Delete(o.graph);
    o.graph = NULL;
  }
  return close_json(o, from);
}

/* --- what comes of it --- */

static inline uint64_t bytes_of(const graft_graph *graph) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < graph->nbuffers && sum < SMALL; i++) sum += graph->buffers[i].bytes;
  return sum;
}

static inline graft_tensor *input_for(const graft_graph *graph, uint32_t i) {
  const gr_view *view = &graph->inputs[i].view;
  const int64_t count = (int64_t)graph->buffers[view->buffer].bytes;
  unsigned char *zeros = calloc(1, (size_t)count + 1);
  graft_tensor *whole, *input;
  OK(graft_tensor_from_host(reference(), GRAFT_U8, 1, &count, zeros, &whole));
  OK(tns_new(whole->storage, whole->device, view->dtype, view->ndim, view->sizes, view->strides, 0, &input));
  input->flags |= view->flags;
  graft_tensor_release(whole);
  free(zeros);
  return input;
}

static inline void try_to_run(const graft_graph *graph, graft_graph_exec *exec) {
  graft_tensor **in = calloc(graph->ninputs + 1, sizeof *in), **out = calloc(graph->noutputs + 1, sizeof *out);
  for (uint32_t i = 0; i < graph->ninputs; i++) in[i] = input_for(graph, i);
  if (graft_graph_run(exec, in, graph->ninputs, out, graph->noutputs)) ck_assert(*graft_last_error());
  release_all(in, graph->ninputs);
  release_all(out, graph->noutputs);
  free(in);
  free(out);
}

/* 1: it was loaded. */
static inline int try_file(bytes b) {
  graft_graph *graph;
  graft_graph_exec *exec;
  write_all(file_path, b);
  if (graft_graph_load(NULL, file_path, &graph)) {
    ck_assert_msg(strncmp(graft_last_error(), file_path, strlen(file_path)) == 0, "%s", graft_last_error());
    return 0;
  }
  graft_graph_destroy(through_file(graph, NULL, "what a damaged file gave"));
  const bool small = bytes_of(graph) < SMALL;
  if (small && graft_graph_compile(graph, reference(), NULL, &exec) == GRAFT_OK) {
    try_to_run(graph, exec);
    graft_graph_exec_destroy(exec);
  }
  graft_graph_destroy(graph);
  return 1;
}

/* A number of tries on files that are whole. Not all of them may be read, and some are. */
static inline void damage_files(const bytes *files, uint32_t nfiles, int tries, bool json) {
  const int64_t before = atomic_load(&reference()->storages);
  int read = 0;
  for (int i = 0; i < tries; i++) {
    const bytes from = files[draw(nfiles)], b = json ? damage_json(from) : damage_bytes(from);
    read += try_file(b);
    free(b.at);
    ck_assert_int_eq(atomic_load(&reference()->storages), before);
  }
  ck_assert_msg(read > 0 && read < tries / 2, "%d of %d were read", read, tries);
}

#endif
