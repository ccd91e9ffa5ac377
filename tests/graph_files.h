/* What the tests of graphs in files share: a folder of their own, files as bytes, the JSON in them, and a graph. */
#ifndef GRAFT_TESTS_GRAPH_FILES_H
#define GRAFT_TESTS_GRAPH_FILES_H

#include <cjson/cJSON.h>
#include <dirent.h>

#include "graph_programs.h"

/* --- files --- */

static char file_folder[64], file_path[128];

/* A folder in memory, where that is: a file that is saved waits for its disk. */
static inline void files_begin(void) {
  const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
  snprintf(file_folder, sizeof file_folder, "%s/graft-files-XXXXXX", base);
  ck_assert_ptr_nonnull(mkdtemp(file_folder));
  snprintf(file_path, sizeof file_path, "%s/graph.safetensors", file_folder);
}

/* How many files are in the folder; they are removed where `clean`. */
static inline int files_count(bool clean) {
  DIR *folder = opendir(file_folder);
  ck_assert_ptr_nonnull(folder);
  int count = 0;
  for (struct dirent *entry; (entry = readdir(folder));) {
    char path[512];
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", file_folder, entry->d_name);
    if (clean) remove(path);
    count++;
  }
  closedir(folder);
  return count;
}

static inline void files_end(void) {
  files_count(true);
  rmdir(file_folder);
}

typedef struct bytes {
  unsigned char *at;
  size_t count;
} bytes;

static inline bytes read_all(const char *path) {
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f != NULL, "%s", path);
  bytes b = {malloc(1 << 20), 0};
  b.count = fread(b.at, 1, 1 << 20, f);
  ck_assert_uint_lt(b.count, 1 << 20);
  fclose(f);
  return b;
}

static inline void write_all(const char *path, bytes b) {
  FILE *f = fopen(path, "wb");
  ck_assert_msg(f && fwrite(b.at, 1, b.count, f) == b.count && fclose(f) == 0, "%s", path);
}

static inline bool same_bytes(bytes a, bytes b) {
  return a.count == b.count && memcmp(a.at, b.at, a.count) == 0;
}

/* --- the JSON of a file --- */

static inline size_t header_bytes(bytes b) {
  uint64_t length;
  memcpy(&length, b.at, 8);
  ck_assert_uint_le(length, b.count - 8);
  return length;
}

/* The header, and the graph in it. */
typedef struct opened {
  cJSON *header, *graph;
} opened;

static inline opened open_json(bytes b) {
  opened o = {.header = cJSON_ParseWithLength((char *)b.at + 8, header_bytes(b))};
  cJSON *text = cJSON_GetObjectItem(cJSON_GetObjectItem(o.header, "__metadata__"), "graft.graph");
  o.graph = cJSON_Parse(cJSON_GetStringValue(text));
  ck_assert_ptr_nonnull(o.graph);
  return o;
}

/* The file with that JSON in the place of its own; what is opened ends. Without a graph, the header has its text. */
static inline bytes close_json(opened o, bytes from) {
  const size_t data = 8 + header_bytes(from);
  if (o.graph) {
    char *graph = cJSON_PrintUnformatted(o.graph);
    cJSON_ReplaceItemInObject(cJSON_GetObjectItem(o.header, "__metadata__"), "graft.graph", cJSON_CreateString(graph));
    cJSON_free(graph);
  }
  char *header = cJSON_PrintUnformatted(o.header);
  const uint64_t length = strlen(header);
  bytes made = {malloc(8 + length + from.count - data + 1), 8 + length + from.count - data};
  memcpy(made.at, &length, 8);
  memcpy(made.at + 8, header, length);
  memcpy(made.at + 8 + length, from.at + data, from.count - data);
  cJSON_free(header);
  cJSON_Delete(o.header);
  cJSON_Delete(o.graph);
  return made;
}

/* What "nodes/0/args/self" leads to; "$/constant.0" in the header; NULL: nothing. */
static inline cJSON *json_at(opened o, const char *path) {
  cJSON *at = *path == '$' ? o.header : o.graph;
  if (*path == '$') path += 1 + (path[1] == '/');
  while (at && *path) {
    char key[64];
    size_t length = strcspn(path, "/");
    snprintf(key, sizeof key, "%.*s", (int)length, path);
    at = cJSON_IsArray(at) ? cJSON_GetArrayItem(at, atoi(key)) : cJSON_GetObjectItemCaseSensitive(at, key);
    path += length + (path[length] == '/');
  }
  return at;
}

/* Something else in the place of what a path leads to; NULL: it is taken out. */
static inline void edit(opened o, const char *at, const char *json) {
  char parent[128];
  snprintf(parent, sizeof parent, "%s", at);
  char *key = strrchr(parent, '/');
  cJSON *in = key ? (*key = 0, json_at(o, parent)) : o.graph, *old = json_at(o, at);
  key = key ? key + 1 : parent;
  ck_assert_ptr_nonnull(in);
  if (!json)
    cJSON_Delete(cJSON_DetachItemViaPointer(in, old));
  else if (cJSON_IsArray(in))
    cJSON_ReplaceItemViaPointer(in, old, cJSON_Parse(json));
  else if (old)
    cJSON_ReplaceItemInObjectCaseSensitive(in, key, cJSON_Parse(json));
  else
    cJSON_AddItemToObject(in, key, cJSON_Parse(json));
}

/* --- graphs --- */

/* x + c into y, and y * 2: constants of several kinds, a write, a view, and numbers that JSON has no words for. */
static inline graft_graph *new_graph(void) {
  const int64_t three[] = {3}, whole = INT64_MAX;
  graft_graph *graph;
  graft_tensor *x, *y, *c = host(GRAFT_F32, 3, (float[]){1, 2, 3}), *sum = NULL, *out = NULL, *part = NULL;
  graft_tensor *number = NULL;
  OK(graft_graph_create(reference(), &graph));
  OK(graft_graph_input(graph, "x", GRAFT_F32, 1, three, NULL, &x));
  OK(graft_graph_input(graph, "y", GRAFT_F32, 1, three, NULL, &y));
  OK(graft_tensor_from_host(reference(), GRAFT_F64, 0, NULL, (double[]){2}, &number));
  OK(graft_graph_record_begin(graph));
  OK(graft_op_add_Tensor(x, c, graft_scalar_int(1), &sum));
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){T(y), T(sum)}, 2, &y, 1));
  OK(graft_call(GRAFT_OP_MUL_TENSOR, (graft_value[]){T(y), T(number)}, 2, &out, 1));
  OK(graft_call(GRAFT_OP_SLICE_TENSOR, (graft_value[]){T(out), INT(0), INT(1), INT(whole)}, 4, &part, 1));
  OK(graft_graph_record_end(graph));
  OK(graft_graph_output(graph, "out", part));
  release_all((graft_tensor *[]){x, y, c, sum, out, part, number}, 7);
  return graph;
}

static inline graft_graph *loaded(graft_rt_device *device, const char *path) {
  graft_graph *graph = NULL;
  graft_status status = graft_graph_load(device, path, &graph);
  ck_assert_msg(!status, "%s", graft_last_error());
  return graph;
}

/* Saves, loads and saves again: the two files must be the same. What was loaded is the caller's. */
static inline graft_graph *through_file(const graft_graph *graph, graft_rt_device *device, const char *name) {
  char again[160];
  snprintf(again, sizeof again, "%s.again", file_path);
  graft_status status = graft_graph_save(graph, file_path);
  ck_assert_msg(!status, "%s: %s", name, graft_last_error());
  graft_graph *made = NULL;
  status = graft_graph_load(device, file_path, &made);
  ck_assert_msg(!status, "%s: %s", name, graft_last_error());
  OK(graft_graph_save(made, again));
  bytes a = read_all(file_path), b = read_all(again);
  ck_assert_msg(same_bytes(a, b), "%s is saved otherwise after it was loaded:\n%s\n%s", name, (char *)a.at + 8,
                (char *)b.at + 8);
  free(a.at);
  free(b.at);
  return made;
}

#endif
