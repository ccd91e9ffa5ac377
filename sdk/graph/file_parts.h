/* What both formats of a graph in a file are loaded with. Internal to file_load.c, file_parts.c and file_script_load.c.
 */
#ifndef GRAFT_SDK_GRAPH_FILE_PARTS_H
#define GRAFT_SDK_GRAPH_FILE_PARTS_H

#include "graph/file.h"

/* A buffer of the file. */
typedef struct file_buffer {
  gr_kind kind;
  bool on_host;
  int64_t bytes;
  graft_storage *storage; /* its place in the graph, owned; NULL: nothing has named it yet */
} file_buffer;

typedef struct loading {
  gr_file file;
  graft_rt_device *device;
  graft_graph *graph;
  file_buffer *buffers;
  uint32_t nbuffers;
  arena memory; /* of what one node needs, and of the buffers */
} loading;

/* The file is wrong; a part of it is: a call, an input. */
#define unfit(what, ...) err_about(GRAFT_INVALID_ARGUMENT, what, __VA_ARGS__)
#define bad(l, ...)      err_about(GRAFT_INVALID_ARGUMENT, (l)->file.path, __VA_ARGS__)

static inline const cJSON *field(const cJSON *object, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* --- file_parts.c --- */
graft_status gr_load_buffers(loading *l);
/* Where a buffer lies. */
graft_rt_device *gr_load_device(const loading *l, const file_buffer *b);
/* The constants among the buffers become the graph's, in their order. */
graft_status gr_load_constants(loading *l);
/* A view of a buffer of the file; view->buffer is the file's number. `what` has it, for an error. */
graft_status gr_load_view(const loading *l, const cJSON *item, const char *what, gr_view *view);
/* The value that an input of the graph begins with, where the file has one. */
graft_status gr_load_value(const loading *l, gr_port *input);
/* The name of an input or output. */
graft_status gr_load_name(const loading *l, const cJSON *item, const char *kind, const char **name);

/* --- file_script_load.c --- */
/* The rest of a graph with open sizes, once its ops, default dtype and buffers are read. */
graft_status gr_load_script(loading *l);

#endif
