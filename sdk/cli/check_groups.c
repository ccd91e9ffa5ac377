/* Extension "graft.graph": which calls a plugin takes together, and what a group gives. The graphs are chains of one
 * op of f32. */
#include <math.h>
#include <string.h>

#include "check.h"

enum { LINKS = 4, ELEMENTS = 67, BYTES = ELEMENTS * sizeof(float), ZONE = 64 };

static float negative(float x) {
  return -x;
}
static float positive_part(float x) {
  return x < 0 ? 0 : x;
}

/* Ops that give the same number everywhere; chains are of the first one that the plugin groups, or has. Of neg it shows
 * how often it ran. */
typedef struct link_op {
  const char *name;
  float (*of)(float x);
} link_op;
static const link_op link_ops[] = {{"aten::neg", negative}, {"aten::abs", fabsf}, {"aten::relu", positive_part}};

typedef graft_args_neg link_args; /* of all of them */
_Static_assert(sizeof(link_args) == sizeof(graft_args_abs) && sizeof(link_args) == sizeof(graft_args_relu) &&
                   offsetof(link_args, out) == offsetof(graft_args_abs, out) &&
                   offsetof(link_args, out) == offsetof(graft_args_relu, out),
               "args of one tensor and one result");

/* A chain of calls: value n goes into node n, value n + 1 comes out. */
typedef struct chain {
  const op_schema *schema;
  float (*of)(float x);
  uint32_t count;
  int64_t shape[1], strides[1];
  graft_tensor_desc values[LINKS + 1];
  const graft_tensor_desc *pointers[LINKS + 1];
  link_args args[LINKS];
  graft_graph_node nodes[LINKS];
  const graft_graph_node *items[LINKS];
} chain;

static const graft_graph_api *find(ck_session *s) {
  return ck_extension(s, GRAFT_EXTENSION_GRAPH, 1, "the plugin compiles no groups of calls");
}

/* The table, where it is whole: else check_table says so. */
static const graft_graph_api *whole(ck_session *s) {
  const graft_graph_api *api = find(s);
  if (!api || !GRAFT_HAS(api, graft_graph_api, destroy) || !api->query || !api->compile || !api->run || !api->destroy)
    ck_skip("its table is not whole");
  return api;
}

static void check_table(ck_session *s) {
  const graft_graph_api *api = find(s);
  if (!api || api->struct_size < sizeof *api) ck_fail("its table is too short");
  ck_doing("graft_graph_api");
  if (!api->query) ck_fail("query is NULL");
  if (!api->compile) ck_fail("compile is NULL");
  if (!api->run) ck_fail("run is NULL");
  if (!api->destroy) ck_fail("destroy is NULL");
}

/* --- chains --- */

static graft_exec exec_of(const ck_session *s, graft_stream *stream) {
  return (graft_exec){.struct_size = sizeof(graft_exec), .device = s->device, .stream = stream};
}

static void make_chain_of(const ck_session *s, chain *c, const link_op *op, uint32_t count) {
  *c = (chain){.schema = op_schema_find(op->name), .of = op->of, .count = count, .shape = {ELEMENTS}, .strides = {1}};
  for (uint32_t i = 0; i <= count; i++) {
    c->values[i] = (graft_tensor_desc){.struct_size = sizeof c->values[i],
                                       .dl = {NULL, 12, s->target->device, 1, GRAFT_F32, c->shape, c->strides, 0},
                                       .storage_id = i + UINT64_C(1)};
    c->pointers[i] = &c->values[i];
  }
  for (uint32_t n = 0; n < count; n++) {
    c->args[n] =
        (link_args){.head = {sizeof c->args[n], c->schema->id, 0}, .self = c->pointers[n], .out = c->pointers[n + 1]};
    c->nodes[n] = (graft_graph_node){.struct_size = sizeof c->nodes[n],
                                     .args = &c->args[n].head,
                                     .reads = &c->pointers[n],
                                     .writes = &c->pointers[n + 1],
                                     .read_count = 1,
                                     .write_count = 1};
    c->items[n] = &c->nodes[n];
  }
}

/* Whether the plugin takes two calls of the op together; what is wrong with an answer is said elsewhere. */
static bool takes_together(const ck_session *s, const graft_graph_api *api, const link_op *op) {
  chain c;
  uint32_t groups[LINKS + 1] = {0};
  make_chain_of(s, &c, op, 2);
  const graft_tensor_desc *const seen[] = {c.pointers[0], c.pointers[2]};
  const graft_graph_nodes graph = {
      .struct_size = sizeof graph, .nodes = c.items, .seen = seen, .node_count = 2, .seen_count = 2};
  const graft_exec exec = exec_of(s, NULL);
  return api->query(&exec, &graph, groups) == GRAFT_OK && groups[0] && groups[0] == groups[1];
}

/* One that has a slot and that the plugin groups; else the first one that has a slot. */
static const link_op *find_link(const ck_session *s, const graft_graph_api *api) {
  enum { COUNT = sizeof link_ops / sizeof *link_ops };
  const link_op *first = NULL;
  for (const link_op *op = link_ops; op < link_ops + COUNT; op++) {
    if (!ck_slot_of(s, op_schema_find(op->name))) continue;
    if (takes_together(s, api, op)) return op;
    if (!first) first = op;
  }
  if (!first) ck_skip("the graphs of this check are of neg, abs or relu, and none of them has a slot");
  return first;
}

static void make_chain(ck_session *s, const graft_graph_api *api, chain *c, uint32_t count) {
  make_chain_of(s, c, find_link(s, api), count);
}

static void ask(ck_session *s, const graft_graph_api *api, const chain *c, uint32_t groups[LINKS + 1]) {
  const graft_tensor_desc *const seen[] = {c->pointers[0], c->pointers[c->count]};
  const graft_graph_nodes graph = {
      .struct_size = sizeof graph, .nodes = c->items, .seen = seen, .node_count = c->count, .seen_count = 2};
  const graft_exec exec = exec_of(s, NULL);
  memset(groups, 0, LINKS * sizeof *groups);
  groups[c->count] = UINT32_MAX;
  ck_doing("query of %u calls of %s", c->count, c->schema->name);
  graft_status status = api->query(&exec, &graph, groups);
  if (status == GRAFT_UNIMPLEMENTED) ck_skip("it takes no calls of %s together", c->schema->name);
  ck_is(status, GRAFT_OK);
  if (groups[c->count] != UINT32_MAX) ck_fail("it wrote behind the number of the last node");
  for (uint32_t n = 0; n < c->count; n++) {
    if (groups[n] > c->count)
      ck_fail("it puts node %u into group %u; expected 0, for none, to %u, the number of nodes", n, groups[n],
              c->count);
  }
}

/* --- the checks --- */

static void check_query(ck_session *s) {
  const graft_graph_api *api = whole(s);
  chain c;
  uint32_t groups[LINKS + 1], again[LINKS + 1];
  make_chain(s, api, &c, LINKS);
  ask(s, api, &c, groups);
  ask(s, api, &c, again);
  if (memcmp(groups, again, LINKS * sizeof *groups) != 0) ck_fail("it answers differently when it is asked again");
  c.nodes[1].args = NULL;
  ask(s, api, &c, groups);
  ck_doing("query of calls of which node 1 is not offered");
  if (groups[1]) ck_fail("it takes node 1, whose args are NULL, into group %u", groups[1]);
  for (uint32_t n = 2; n < LINKS; n++) {
    if (groups[0] && groups[0] == groups[n])
      ck_fail("it takes nodes 0 and %u as one group; node 1, outside, needs the one and is needed by the other", n);
  }
}

/* A compiled chain and its memory: the input, the output, and zones around each. */
typedef struct compiled {
  chain c;
  graft_graph_group group;
  graft_executable *executable;
  bool in_place; /* the output may lie over the input */
} compiled;

static void compile(ck_session *s, const graft_graph_api *api, compiled *made, uint32_t count) {
  uint32_t groups[LINKS + 1];
  make_chain(s, api, &made->c, count);
  chain *c = &made->c;
  ask(s, api, c, groups);
  for (uint32_t n = 0; n < count; n++) {
    if (!groups[n] || groups[n] != groups[0])
      ck_skip("it takes no chain of %u calls of %s as one", count, c->schema->name);
  }
  made->group = (graft_graph_group){.struct_size = sizeof made->group,
                                    .nodes = c->items,
                                    .inputs = &c->pointers[0],
                                    .outputs = &c->pointers[count],
                                    .node_count = count,
                                    .input_count = 1,
                                    .output_count = 1};
  graft_graph_compiled answer = {.struct_size = sizeof answer};
  const graft_exec exec = exec_of(s, NULL);
  ck_doing("compile of %u calls of %s", count, c->schema->name);
  graft_status status = api->compile(&exec, &made->group, &answer);
  if (status == GRAFT_UNIMPLEMENTED) ck_skip("compile refuses a chain of %u calls of %s", count, c->schema->name);
  ck_is(status, GRAFT_OK);
  if (!answer.executable) ck_fail("it answered OK and gave no executable");
  made->executable = answer.executable;
  made->in_place = answer.in_place & 1;
}

static graft_tensor_desc bound(const graft_tensor_desc *desc, graft_buffer *buffer, uint64_t offset) {
  graft_tensor_desc with = *desc;
  with.dl.data = buffer;
  with.dl.byte_offset = offset;
  return with;
}

/* The offset at which a tensor begins: as far as the device aligns, and not less than the zone. */
static uint64_t offset_of(ck_session *s) {
  const uint64_t alignment = ck_property(s, GRAFT_DEVICE_ALIGNMENT, 8, 64);
  return (ZONE + alignment - 1) / alignment * alignment;
}

/* From one buffer to another one, or over what is in it. */
static void run_between(ck_session *s, const graft_graph_api *api, const compiled *made, graft_stream *stream,
                        graft_buffer *from, graft_buffer *to) {
  const uint64_t offset = offset_of(s);
  const graft_tensor_desc in = bound(made->group.inputs[0], from, offset),
                          out = bound(made->group.outputs[0], to, offset);
  const graft_tensor_desc *inputs[] = {&in}, *outputs[] = {&out};
  const graft_graph_run_args args = {sizeof args, inputs, outputs, NULL};
  const graft_exec exec = exec_of(s, stream);
  CK_CALL(GRAFT_OK, api->run(&exec, made->executable, &args), "run of a chain of %u calls%s", made->c.count,
          from == to ? " in place" : "");
  ck_synchronize(s, stream);
}

static void run(ck_session *s, const graft_graph_api *api, const compiled *made, graft_stream *stream, unsigned seed) {
  const uint64_t offset = offset_of(s), bytes = (offset + BYTES + ZONE + 4095) / 4096 * 4096;
  unsigned char *before = ck_alloc(bytes), *expected = ck_alloc(bytes), *over = ck_alloc(bytes), *got = ck_alloc(bytes);
  graft_buffer *from = ck_buffer(s, bytes), *to = ck_buffer(s, bytes);
  ck_pattern(before, bytes, seed);
  memcpy(over, before, bytes);
  memset(expected, 0x5a, bytes);
  ck_write(s, stream, to, 0, expected, bytes);
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    const float value = (float)i - 7.5f + (float)seed;
    float result = value;
    for (uint32_t n = 0; n < made->c.count; n++) result = made->c.of(result);
    memcpy(before + offset + i * sizeof value, &value, sizeof value);
    memcpy(expected + offset + i * sizeof value, &result, sizeof value);
    memcpy(over + offset + i * sizeof value, &result, sizeof value);
  }
  ck_write(s, stream, from, 0, before, bytes);
  run_between(s, api, made, stream, from, to);
  ck_read(s, stream, to, 0, got, bytes);
  ck_same(got, expected, bytes, "after a run of a chain of %u calls, the buffer of its output", made->c.count);
  ck_read(s, stream, from, 0, got, bytes);
  ck_same(got, before, bytes, "after a run of a chain of %u calls, the buffer of its input", made->c.count);
  if (!made->in_place) return;
  run_between(s, api, made, stream, from, from);
  ck_read(s, stream, from, 0, got, bytes);
  ck_same(got, over, bytes, "after a run of a chain of %u calls in place, their buffer", made->c.count);
}

static void destroy(const graft_graph_api *api, compiled *made) {
  CK_CALL(GRAFT_OK, api->destroy(made->executable), "destroy of a chain of %u calls", made->c.count);
}

static void check_run(ck_session *s) {
  const graft_graph_api *api = whole(s);
  compiled odd, even;
  compile(s, api, &odd, 3);
  compile(s, api, &even, 2);
  graft_stream *streams[] = {ck_stream(s, 0), ck_stream(s, 0)};
  for (unsigned i = 0; i < 4; i++) {
    run(s, api, &odd, streams[i % 2], i);
    run(s, api, &even, streams[i / 2], i);
  }
  destroy(api, &odd);
  destroy(api, &even);
}

static void check_destroy(ck_session *s) {
  const graft_graph_api *api = whole(s);
  compiled first, second;
  graft_stream *stream = ck_stream(s, 0);
  compile(s, api, &first, 2);
  run(s, api, &first, stream, 1);
  destroy(api, &first);
  memset(&first, 0x5a, sizeof first); /* the group lives for as long as its executable */
  compile(s, api, &second, 3);
  run(s, api, &second, stream, 2);
  destroy(api, &second);
}

static const ck_check checks[] = {
    {"group.table", "The table of \"graft.graph\" is whole.", CK_DEVICE, .run = check_table},
    {"group.query", "query takes what it was offered into groups that can run at once, always alike.", CK_DEVICE,
     .run = check_query},
    {"group.run", "A group writes what its calls would and nothing else, on any stream.", CK_DEVICE, .run = check_run},
    {"group.destroy", "Nothing of an executable that was destroyed shows in the next one.", CK_DEVICE,
     .run = check_destroy},
};

const ck_table ck_group_checks = {checks, sizeof checks / sizeof *checks};
