/* A graph as a file: the container safetensors, which other programs read too. 8 bytes, the length of a JSON object;
 * the object, padded with blanks to a multiple of 8; the bytes of the constants, one behind the other. Under
 * "__metadata__" stand "graft.format", the version of what follows, and "graft.graph": the graph as JSON, whose keys
 * docs/graphs.md explains.
 *
 * - file_values.c: numbers, views and arguments as JSON, both ways
 * - file_write.c: a graph to a file, whole or not at all; file_reach.c: what of a constant is seen
 * - file_script_write.c, file_script_load.c: of a graph with open sizes, the calls as they were made
 * - file_read.c: the container, of which nothing is believed; file_load.c: a graph from it; file_parts.c:
 *   what both formats have
 * - file_dump.c: GRAFT_GRAPH_DUMP
 *
 * A file is loaded by recording it: its calls are made again, through the checks and the rules that any call goes
 * through, on tensors without memory. So nothing that a program could not have recorded comes out of a file, and what
 * this libgraft makes of a call is held against what the file says of it. Begin reading in file_load.c. */
#ifndef GRAFT_SDK_GRAPH_FILE_H
#define GRAFT_SDK_GRAPH_FILE_H

#include <cjson/cJSON.h>
#include <stdio.h>

#include "graph/graph.h"

#define GR_FILE_FORMAT   "1" /* of a graph whose sizes are fixed */
#define GR_FILE_OPEN     "2" /* of one with open sizes. A reader refuses all others */
#define GR_FILE_METADATA "__metadata__"
#define GR_FILE_VERSION  "graft.format"
#define GR_FILE_GRAPH    "graft.graph"
#define GR_FILE_CONSTANT "constant.%u" /* the tensor of the constant with this number */
#define GR_FILE_INPUT    "input."      /* and its name: the tensor of the value that an input begins with */
enum {
  GR_FILE_HEADER_MAX = 64 << 20, /* bytes: a hostile one costs some thirty times as much host memory */
  GR_FILE_DEPTH_MAX = 12,        /* brackets in the graph's JSON */
  GR_FILE_NAME_MAX = 24 + sizeof "constant."
};

/* --- file_values.c: what is NULL was not made, for want of host memory --- */
/* Adds an item, which it takes over; false where there is none. */
bool gr_json_put(cJSON *object, const char *key, cJSON *item);
bool gr_json_append(cJSON *array, cJSON *item);
/* The object, or nothing where something of it is missing. */
cJSON *gr_json_whole(cJSON *object, bool good);
cJSON *gr_json_int(int64_t value);
cJSON *gr_json_ints(const int64_t *items, int64_t count);
/* Where a size may be open, a number, or {"size": 3} for entry 3 of the table. */
cJSON *gr_json_number(const gr_sizes *sizes, int64_t value);
cJSON *gr_json_numbers(const gr_sizes *sizes, const int64_t *items, int64_t count);
/* A view; `buffer` is the file's number for its buffer. */
cJSON *gr_json_view(const gr_view *view, uint32_t buffer);
/* An argument that is neither a tensor nor absent. */
cJSON *gr_json_value(const gr_sizes *sizes, const graft_value *value);
/* Each of these says whether there was such a thing; *to is as it was otherwise. */
bool gr_json_get_int(const cJSON *item, int64_t *to);
/* Also an open size of the table, as its name. */
bool gr_json_get_number(const gr_sizes *sizes, const cJSON *item, int64_t *to);
bool gr_json_get_index(const cJSON *item, uint32_t *to);
bool gr_json_get_dtype(const cJSON *item, graft_dtype *to);
bool gr_json_get_bool(const cJSON *object, const char *key, bool *to); /* absent: false */
/* dtype, sizes, strides, offset and bits; the buffer is the caller's to look up. Overflow of the elements' places is
 * refused. NULL, or what is wrong. */
const char *gr_json_get_view(const cJSON *object, gr_view *view);
/* What is wrong with a view whose sizes and strides are none below 0; NULL: nothing. */
const char *gr_view_problem(const gr_view *view);
/* An argument that holds no tensor; what it points to lives in `memory`, or in the JSON. A device is NULL. */
bool gr_json_get_value(const gr_sizes *sizes, const cJSON *object, arena *memory, graft_value *value);
/* The hash of an op's schema, 16 digits and a NUL. */
void gr_schema_hash(const op_schema *schema, char hash[17]);
/* The error of a name that a file does not take. `kind`: "input", "output" or "size". */
graft_status gr_check_name(const char *kind, const char *name);

/* --- file_script_write.c --- */
/* Puts in sizes, inputs, constants, calls and outputs of a graph with open sizes. `buffers`: numbers of constants in
 * the file, by buffer. False: no host memory. */
bool gr_json_put_script(cJSON *root, const graft_graph *graph, const uint32_t *buffers);
extern const char *const gr_file_size_ops[GRAFT_SIZE_MAX + 1]; /* names, by graft_size_op */

/* --- file_reach.c --- */
/* Zeros in a copy of a constant's bytes where no call and no output sees them: a file gives away nothing else. */
graft_status gr_clear_unseen(const graft_graph *graph, uint32_t buffer, unsigned char *bytes);

/* --- file_read.c --- */
/* Where a constant lies in the data. */
typedef struct gr_file_span {
  bool there;
  uint64_t first, bytes;
} gr_file_span;
typedef struct gr_file {
  const char *path;
  int fd;
  uint64_t first, bytes;   /* of the data */
  cJSON *header;           /* names of tensors and what they are; owned */
  cJSON *graph;            /* owned */
  gr_file_span *constants; /* by number; owned */
  uint32_t nconstants;     /* of which not all need be there */
  bool has_open_sizes;     /* format GR_FILE_OPEN */
} gr_file;
graft_status gr_file_open(const char *path, gr_file *file);
void gr_file_close(gr_file *file);
/* The bytes of constant `number`, of which there are to be so many; the caller's. */
graft_status gr_file_read_constant(const gr_file *file, uint32_t number, uint64_t bytes, void **to);

/* The bytes of the value that an input begins with, of which there are to be so many; *to is NULL where it has none. */
graft_status gr_file_read_input(const gr_file *file, const char *name, uint64_t bytes, void **to);

/* --- file_dump.c --- */
/* Writes the graph where GRAFT_GRAPH_DUMP says, if it says so. What fails is a warning. */
void gr_dump(const graft_graph *graph);

#endif
