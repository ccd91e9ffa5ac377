/* The reference kernels behind the ABI, with the extension "graft.graph": groups of calls, run one by one on memory of
 * the plugin's own where they have none, so that what the host makes of groups shows without a compiler.
 *
 * Options: groups=runs (the default): calls that follow each other are one group; groups=spread: a third of the calls,
 * picked by number, is left out, and groups go around them; groups=refused: as runs, but compile refuses all;
 * groups=first: as runs, of version 1 of the extension, which is shown no call that draws; groups=over: as runs, of
 * which the output may lie over an input where that is so. And one lie each: groups=beyond, groups=circle,
 * groups=stolen, groups=both (two groups need each other), groups=unrun, groups=empty (OK without executable),
 * groups=failing, groups=short (a table that ends early). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "groups.h"
#include "ops/core/op.h"
#include "ops/core/ref.h"
#include "reference/reference.h"

static const char *mode = "runs";
static groups_seen seen;

static bool is_mode(const char *name) {
  return strcmp(mode, name) == 0;
}

/* --- which calls go together --- */

static bool shares(const graft_tensor_desc *const *a, uint32_t na, const graft_tensor_desc *const *b, uint32_t nb) {
  for (uint32_t i = 0; i < na; i++) {
    for (uint32_t j = 0; j < nb; j++) {
      if (a[i]->storage_id == b[j]->storage_id) return true;
    }
  }
  return false;
}

static bool draws(const graft_graph_node *node) {
  return GRAFT_HAS(node, graft_graph_node, flags) && node->flags & GRAFT_GRAPH_NODE_DRAWS;
}

static bool needs(const graft_graph_node *late, const graft_graph_node *early) {
  return shares(early->writes, early->write_count, late->reads, late->read_count) ||
         shares(early->writes, early->write_count, late->writes, late->write_count) ||
         shares(early->reads, early->read_count, late->writes, late->write_count) || (draws(early) && draws(late));
}

static void take_runs(const graft_graph_nodes *graph, uint32_t *groups) {
  uint32_t number = 1;
  for (uint32_t n = 0; n < graph->node_count; n++) {
    if (graph->nodes[n]->args)
      groups[n] = number;
    else
      number = n + 2;
  }
}

/* Of nodes in their order: those that need none but what is placed are placed, alone or in the group at hand. */
typedef struct placing {
  const graft_graph_nodes *graph;
  uint32_t *groups;
  bool *placed;
} placing;

static bool is_ready(const placing *p, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (!p->placed[i] && needs(p->graph->nodes[n], p->graph->nodes[i])) return false;
  }
  return !p->placed[n];
}

static bool is_wanted(const placing *p, uint32_t n) {
  return p->graph->nodes[n]->args && n % 3 != 1;
}

static bool place(placing *p, bool wanted, uint32_t number) {
  bool any = false;
  for (uint32_t n = 0; n < p->graph->node_count; n++) {
    if (is_wanted(p, n) != wanted || !is_ready(p, n)) continue;
    p->groups[n] = number;
    any = p->placed[n] = true;
  }
  return any;
}

static graft_status take_spread(const graft_graph_nodes *graph, uint32_t *groups) {
  placing p = {graph, groups, calloc(graph->node_count + 1u, sizeof *p.placed)};
  if (!p.placed) return GRAFT_OUT_OF_MEMORY;
  for (uint32_t number = 1;; number++) {
    bool alone = place(&p, false, 0), group = place(&p, true, number);
    if (!alone && !group) break;
  }
  free(p.placed);
  return GRAFT_OK;
}

static graft_status query(const graft_exec *exec, const graft_graph_nodes *graph, uint32_t *groups) {
  if (exec->stream || exec->memo) return GRAFT_INVALID_ARGUMENT;
  seen.queries++;
  seen.nodes = graph->node_count;
  seen.seen = graph->seen_count;
  if (is_mode("none")) return GRAFT_UNIMPLEMENTED;
  if (is_mode("spread")) return take_spread(graph, groups);
  take_runs(graph, groups);
  if (is_mode("beyond")) groups[0] = graph->node_count + 1;
  if (is_mode("circle")) groups[1] = 0;
  for (uint32_t n = 0; n < graph->node_count; n++) {
    if (is_mode("stolen") && !graph->nodes[n]->args) groups[n] = 1;
    if (is_mode("both")) groups[n] = 1 + n % 2;
  }
  return GRAFT_OK;
}

/* --- a group --- */

typedef struct storage {
  uint64_t id, bytes;
} storage;

struct graft_executable {
  const graft_graph_group *group;
  storage *inside; /* what has no memory */
  uint32_t ninside;
};

static bool has_memory(const graft_graph_group *group, uint64_t id) {
  for (uint32_t i = 0; i < group->input_count; i++) {
    if (group->inputs[i]->storage_id == id) return true;
  }
  for (uint32_t i = 0; i < group->output_count; i++) {
    if (group->outputs[i]->storage_id == id) return true;
  }
  return false;
}

static uint64_t reach(const graft_tensor_desc *desc) {
  uint64_t last = 0;
  for (int32_t d = 0; d < desc->dl.ndim; d++) {
    if (!desc->dl.shape[d]) return 0;
    last += (uint64_t)((desc->dl.shape[d] - 1) * desc->dl.strides[d]);
  }
  return desc->dl.byte_offset + (last + 1) * GRAFT_DTYPE_BYTES(desc->dl.dtype);
}

static void add_inside(graft_executable *e, const graft_tensor_desc *desc) {
  if (desc->flags & GRAFT_TENSOR_HOST_VALUE || has_memory(e->group, desc->storage_id)) return;
  uint32_t i = 0;
  while (i < e->ninside && e->inside[i].id != desc->storage_id) i++;
  if (i == e->ninside) e->inside[e->ninside++].id = desc->storage_id;
  if (reach(desc) > e->inside[i].bytes) e->inside[i].bytes = reach(desc);
}

/* Whether nothing with memory is written before the last call, which reads each element where it writes. */
static bool writes_last(const graft_graph_group *group) {
  const graft_graph_node *last = group->nodes[group->node_count - 1];
  const bool writes = group->output_count == 1 && last->write_count == 1 && last->writes[0] == group->outputs[0];
  return writes && op_def_of(last->args->op_id)->flags & OP_ELEMENTWISE;
}

static graft_status compile(const graft_exec *exec, const graft_graph_group *group, graft_graph_compiled *compiled) {
  if (exec->stream || is_mode("refused")) return exec->stream ? GRAFT_INVALID_ARGUMENT : GRAFT_UNIMPLEMENTED;
  if (is_mode("empty")) return GRAFT_OK;
  if (is_mode("failing")) return GRAFT_INTERNAL;
  uint32_t most = 0;
  for (uint32_t n = 0; n < group->node_count; n++) most += group->nodes[n]->read_count + group->nodes[n]->write_count;
  graft_executable *e = calloc(1, sizeof *e);
  if (e) e->inside = calloc(most + 1u, sizeof *e->inside);
  if (!e || !e->inside) return GRAFT_OUT_OF_MEMORY;
  e->group = group;
  for (uint32_t n = 0; n < group->node_count; n++) {
    const graft_graph_node *node = group->nodes[n];
    for (uint32_t i = 0; i < node->read_count; i++) add_inside(e, node->reads[i]);
    for (uint32_t i = 0; i < node->write_count; i++) add_inside(e, node->writes[i]);
  }
  seen.compiled++;
  seen.inputs = group->input_count;
  seen.outputs = group->output_count;
  seen.inside = e->ninside;
  compiled->executable = e;
  if (is_mode("over")) compiled->flags = GRAFT_EXECUTABLE_UNALIGNED;
  if (is_mode("over") && writes_last(group)) compiled->in_place = UINT64_MAX;
  return GRAFT_OK;
}

static graft_status destroy(graft_executable *e) {
  seen.destroyed++;
  free(e->inside);
  free(e);
  return GRAFT_OK;
}

/* --- a run --- */

enum { MOST_TENSORS = 64 };

typedef struct running {
  const graft_executable *e;
  const graft_graph_run_args *args;
  graft_buffer *buffers; /* of what is inside */
  graft_tensor_desc descs[MOST_TENSORS];
  const graft_tensor_desc *items[MOST_TENSORS];
  uint32_t ndescs, nitems, ndrawn;
} running;

/* The descriptor with memory in place of one without. */
static const graft_tensor_desc *bound(running *r, const graft_tensor_desc *desc) {
  const graft_graph_group *group = r->e->group;
  if (!desc || desc->dl.data) return desc; /* absent, or a number that stays */
  for (uint32_t i = 0; i < group->output_count; i++) {
    if (group->outputs[i] == desc) return r->args->outputs[i];
  }
  for (uint32_t i = 0; i < group->input_count; i++) {
    if (group->inputs[i] == desc) return r->args->inputs[i];
  }
  if (r->ndescs == MOST_TENSORS) abort();
  graft_tensor_desc *own = &r->descs[r->ndescs++];
  *own = *desc;
  uint32_t i = 0;
  while (r->e->inside[i].id != desc->storage_id) i++;
  own->dl.data = &r->buffers[i];
  return own;
}

static void bind_field(running *r, unsigned char *field, bool is_list) {
  if (!is_list) {
    const graft_tensor_desc *desc;
    memcpy(&desc, field, sizeof desc);
    desc = bound(r, desc);
    memcpy(field, &desc, sizeof desc);
    return;
  }
  graft_tensor_list list;
  memcpy(&list, field, sizeof list);
  if (r->nitems + list.count > MOST_TENSORS) abort();
  const graft_tensor_desc **items = r->items + r->nitems;
  for (uint64_t i = 0; i < list.count; i++) items[i] = bound(r, list.items[i]);
  r->nitems += (uint32_t)list.count;
  list.items = items;
  memcpy(field, &list, sizeof list);
}

/* What a call that draws draws from: the next one of the run's. */
static void bind_philox(running *r, const graft_graph_node *node, const op_schema *schema, unsigned char *packed) {
  if (!draws(node)) return;
  const graft_philox *philox = r->args->philox[r->ndrawn++];
  memcpy(packed + schema->philox_offset, &philox, sizeof philox);
}

static graft_status run_node(running *r, const graft_exec *exec, const graft_graph_node *node) {
  const op_schema *schema = op_schema_of(node->args->op_id);
  const void *tables[] = {[OPT_CORE] = ref_core(), [OPT_PRIMS] = ref_prims(), [OPT_TRAIN] = ref_train()};
  graft_status (*slot)(const graft_exec *, const void *);
  memcpy(&slot, (const char *)tables[schema->table] + schema->slot_offset, sizeof slot);
  union {
    max_align_t alignment;
    unsigned char bytes[1024];
  } packed;
  memcpy(packed.bytes, node->args, schema->args_size);
  r->ndescs = r->nitems = 0;
  for (uint32_t i = 0; i < schema->nargs; i++) {
    const uint8_t kind = schema->args[i].kind;
    if (kind == OPK_TENSOR || kind == OPK_TENSORS)
      bind_field(r, packed.bytes + schema->args[i].offset, kind == OPK_TENSORS);
  }
  for (uint32_t i = 0; i < schema->nrets; i++)
    bind_field(r, packed.bytes + schema->rets[i].offset, schema->rets[i].kind == OPK_TENSORS);
  bind_philox(r, node, schema, packed.bytes);
  return slot(exec, packed.bytes);
}

static graft_status run(const graft_exec *exec, graft_executable *e, const graft_graph_run_args *args) {
  running r = {.e = e, .args = args, .buffers = calloc(e->ninside + 1u, sizeof *r.buffers)};
  graft_status status = r.buffers ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  if (is_mode("unrun")) status = GRAFT_UNIMPLEMENTED;
  for (uint32_t i = 0; i < e->ninside && !status; i++) {
    char *data = malloc(e->inside[i].bytes + 1);
    if (data) memset(data, 0xff, e->inside[i].bytes);
    ref_buffer_over(&r.buffers[i], data);
    if (!data) status = GRAFT_OUT_OF_MEMORY;
  }
  for (uint32_t n = 0; n < e->group->node_count && !status; n++) status = run_node(&r, exec, e->group->nodes[n]);
  for (uint32_t i = 0; r.buffers && i < e->ninside; i++) free(r.buffers[i].data);
  free(r.buffers);
  seen.runs++;
  return status;
}

/* --- the plugin --- */

static graft_status extension(void *self, const char *name, uint32_t minimum, const void **table) {
  static const graft_graph_api api = {sizeof api, query, compile, run, destroy};
  static const graft_graph_api part = {GRAFT_SIZE_TO(graft_graph_api, run), query, compile, run, NULL};
  static const groups_api counts = {sizeof counts, &seen};
  (void)self;
  if (strcmp(name, GROUPS_SEEN) == 0) return *table = &counts, GRAFT_OK;
  const uint32_t version = is_mode("first") || is_mode("stolen") ? 1 : GRAFT_GRAPH_VERSION;
  if (strcmp(name, GRAFT_EXTENSION_GRAPH) != 0 || minimum > version) return GRAFT_UNIMPLEMENTED;
  *table = is_mode("short") ? &part : &api;
  return GRAFT_OK;
}

GRAFT_EXPORT graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options,
                                               const graft_plugin **plugin) {
  static graft_plugin made;
  static char chosen[16];
  const graft_plugin *inner;
  graft_status status = ref_plugin_open(host, NULL, &inner);
  for (; options && *options; options++) {
    if (strncmp(*options, "groups=", 7) != 0 || strlen(*options + 7) >= sizeof chosen) {
      char text[256];
      snprintf(text, sizeof text, "groups: the option \"%.128s\" is not known", *options);
      host->set_error(host->context, text);
      return GRAFT_INVALID_ARGUMENT;
    }
    strcpy(chosen, *options + 7);
    mode = chosen;
  }
  if (status) return status;
  made = *inner;
  made.name = "groups";
  made.extension = extension;
  *plugin = &made;
  return GRAFT_OK;
}
