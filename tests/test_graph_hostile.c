/* Files of graphs that were damaged at random, as bytes and as JSON that is whole and says something else: each gives
 * an error or a graph that can be saved, compiled and run. Under the sanitizers this looks for more than crashes. The
 * seed is fixed. */
#include "cli/fuzz.h"
#include "graph/graph.h"
#include "graph_files.h"
#include "suite.h"

enum { PROGRAMS = 12, MOST_FILES = 3 * PROGRAMS, TRIES = 2000, MOST_NODES = 1 << 14, SMALL = 1 << 20 };

static uint64_t state = 20250611;

static uint32_t draw(uint32_t below) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(state >> 33) % below;
}

/* --- files to begin with --- */

static bytes files[MOST_FILES];
static uint32_t nfiles;

/* The graphs of random programs, as they are compiled. */
/* One whose input begins with a value. */
static void add_file_with_value(void) {
  graft_graph *graph = new_graph();
  graft_tensor *value = host(GRAFT_F32, 3, (float[]){1, 2, 3});
  OK(graft_graph_input_set_value(graph, 1, value));
  OK(graft_graph_save(graph, file_path));
  files[nfiles++] = read_all(file_path);
  graft_tensor_release(value);
  graft_graph_destroy(graph);
}

static void make_files(void) {
  fuzz_report report;
  setenv("GRAFT_GRAPH_DUMP", file_folder, 1);
  for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
    fuzz_program program;
    fuzz_make(seed, &program);
    ck_assert_msg(fuzz_agrees(&program, reference(), NULL, &report), "%s", report.why);
  }
  unsetenv("GRAFT_GRAPH_DUMP");
  for (uint32_t i = 1; i <= MOST_FILES; i++) {
    char path[160];
    snprintf(path, sizeof path, "%s/graph-%ld-%u.safetensors", file_folder, (long)getpid(), i);
    if (access(path, R_OK) == 0) files[nfiles++] = read_all(path);
  }
  ck_assert_uint_ge(nfiles, PROGRAMS);
  if (nfiles == MOST_FILES) free(files[--nfiles].at);
  add_file_with_value();
}

/* --- damage to bytes --- */

static void damage_byte(bytes *b) {
  const size_t at =
      draw(3) ? 8 + draw((uint32_t)header_bytes(files[0])) % (uint32_t)(b->count - 8) : draw((uint32_t)b->count);
  switch (draw(4)) {
    case 0: b->at[at] ^= (unsigned char)(1u << draw(8)); break;
    case 1: b->at[at] = (unsigned char)draw(256); break;
    case 2: memmove(b->at + at, b->at + at + 1, b->count-- - at - 1); break;
    default: b->at[at] = (unsigned char)"0129-.[]{}\":,e\\u"[draw(16)]; break;
  }
}

static bytes damage_bytes(bytes from) {
  bytes b = {malloc(from.count + 1), from.count};
  memcpy(b.at, from.at, from.count);
  for (uint32_t n = 1 + draw(4); n && b.count > 16; n--) damage_byte(&b);
  return b;
}

/* --- damage to JSON --- */

typedef struct place {
  cJSON *in, *item;
} place;

static uint32_t collect(cJSON *in, place *places, uint32_t count) {
  cJSON *item;
  cJSON_ArrayForEach(item, in) {
    if (count == MOST_NODES) break;
    places[count++] = (place){in, item};
    count = collect(item, places, count);
  }
  return count;
}

static cJSON *odd_value(void) {
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

static void replace(const place *at, cJSON *by) {
  if (cJSON_IsObject(at->in)) {
    char key[256];
    snprintf(key, sizeof key, "%s", at->item->string);
    cJSON_ReplaceItemInObjectCaseSensitive(at->in, key, by);
  } else {
    cJSON_ReplaceItemViaPointer(at->in, at->item, by);
  }
}

static void damage_item(cJSON *root, place *places) {
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

static bytes damage_json(bytes from) {
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

static uint64_t bytes_of(const graft_graph *graph) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < graph->nbuffers && sum < SMALL; i++) sum += graph->buffers[i].bytes;
  return sum;
}

static graft_tensor *input_for(const graft_graph *graph, uint32_t i) {
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

static void try_to_run(const graft_graph *graph, graft_graph_exec *exec) {
  graft_tensor **in = calloc(graph->ninputs + 1, sizeof *in), **out = calloc(graph->noutputs + 1, sizeof *out);
  for (uint32_t i = 0; i < graph->ninputs; i++) in[i] = input_for(graph, i);
  if (graft_graph_run(exec, in, graph->ninputs, out, graph->noutputs)) ck_assert(*graft_last_error());
  release_all(in, graph->ninputs);
  release_all(out, graph->noutputs);
  free(in);
  free(out);
}

/* 1: it was loaded. */
static int try_file(bytes b) {
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

START_TEST(damage_is_found_or_harmless) {
  make_files();
  const int64_t before = atomic_load(&reference()->storages);
  int read = 0;
  for (int i = 0; i < TRIES; i++) {
    const bytes from = files[draw(nfiles)], b = _i ? damage_json(from) : damage_bytes(from);
    read += try_file(b);
    free(b.at);
    ck_assert_int_eq(atomic_load(&reference()->storages), before);
  }
  ck_assert_msg(read > 0 && read < TRIES / 2, "%d of %d were read", read, TRIES);
  for (uint32_t i = 0; i < nfiles; i++) free(files[i].at);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(damage_is_found_or_harmless, 2), {0}};
  return run_suite("graph_hostile", tests,
                   (suite_options){.timeout_s = 240, .setup = files_begin, .teardown = files_end});
}
