/* Open sizes of a graph, and what is computed of them.
 *
 * Where a size may be open, an int64_t is a number or a name: one of the numbers from GR_SIZE_FIRST on, GR_SIZE_APART
 * apart, which nobody means as a size, stands for an entry of a table. An entry is an open size or says how it follows
 * from earlier entries and numbers; so the table is evaluated from its beginning to its end, and holds no cycle.
 *
 * Internal to graph/. */
#ifndef GRAFT_SDK_GRAPH_SIZES_H
#define GRAFT_SDK_GRAPH_SIZES_H

#include "base/arena.h"
#include "graft/graph.h"

#define GR_SIZE_FIRST (INT64_MIN / 2)
#define GR_SIZE_APART (INT64_C(1) << 40) /* what arithmetic on a name gives is no other name */
enum {
  GR_SIZE_OPEN = 0, /* no graft_size_op */
  GR_SIZES_MOST = 4096,
  GR_SIZE_DEPTH_MAX = 32, /* of an expression: it is printed by recursion */
  GR_SIZE_TEXT = 160
};

typedef struct gr_size {
  graft_size_op op; /* GR_SIZE_OPEN: open */
  const char *name; /* of an open one */
  int64_t least, most;
  int64_t left, right; /* operands: numbers or names */
  uint32_t depth;
  uint32_t input; /* of an open one, once it is compiled: which dimension of which input it is (gr_find_bound) */
  int32_t dim;
} gr_size;

typedef struct gr_sizes {
  gr_size *items;
  int64_t *examples; /* what each is while calls are recorded */
  uint32_t count;
} gr_sizes;
/* Those of a graph that has none. */
extern const gr_sizes gr_no_sizes;

/* The name of an entry, and the entry of a name. */
static inline int64_t gr_size_name(uint32_t entry) {
  return GR_SIZE_FIRST + (int64_t)entry * GR_SIZE_APART;
}
static inline uint32_t gr_size_entry(int64_t name) {
  return (uint32_t)((name - GR_SIZE_FIRST) / GR_SIZE_APART);
}
/* Whether a number is among names, or beside the first one, so that it can't be meant as one. */
static inline bool gr_is_among_names(int64_t number) {
  return number > GR_SIZE_FIRST - GR_SIZE_APART && number < gr_size_name(GR_SIZES_MOST);
}
static inline bool gr_is_open(const gr_sizes *sizes, int64_t number) {
  return number >= GR_SIZE_FIRST && number < gr_size_name(sizes->count) &&
         (number - GR_SIZE_FIRST) % GR_SIZE_APART == 0;
}
/* What a number or name is, where entry i is values[i]. */
static inline int64_t gr_size_value(const gr_sizes *sizes, const int64_t *values, int64_t number) {
  return gr_is_open(sizes, number) ? values[gr_size_entry(number)] : number;
}
/* Appends an entry; `size` receives its name. Errors: a limit; what can't be computed of the examples. */
graft_status gr_sizes_add(gr_sizes *sizes, const gr_size *entry, int64_t example, int64_t *size);
graft_status gr_sizes_copy(const gr_sizes *from, gr_sizes *to);
void gr_sizes_free(gr_sizes *sizes);
/* Computes entry i, which is not open, from earlier ones; false: it can't be. The error of such a one, naming it. */
bool gr_size_compute(const gr_sizes *sizes, uint32_t i, int64_t *values);
graft_status gr_size_refuse(const gr_sizes *sizes, uint32_t i, const int64_t *values);
/* Computes the entries that are not open from those that are. INVALID_ARGUMENT, naming it, of one that can't be. */
graft_status gr_sizes_evaluate(const gr_sizes *sizes, int64_t *values);
/* A number or name as a formula, cut where `room` ends. */
const char *gr_size_text(const gr_sizes *sizes, int64_t number, char *text, size_t room);
/* The same of several: "[n,2*n]". */
const char *gr_shape_text(const gr_sizes *sizes, int32_t ndim, const int64_t *numbers, char *text, size_t room);
/* The open sizes and what they are: "batch = 4, length = 17". */
const char *gr_sizes_text(const gr_sizes *sizes, const int64_t *values, char *text, size_t room);
/* The same, of those that a number or name follows from. */
const char *gr_sizes_of_text(const gr_sizes *sizes, const int64_t *values, int64_t number, char *text, size_t room);

#endif
