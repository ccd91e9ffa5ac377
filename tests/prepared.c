/* Writes what the host has done with an op's arguments when its slot is called: prepared FOLDER_OF_FIXTURES.
 *
 * One line an op, its id and its facts, for plugin_api/ops/prepared.tsv, from which the headers of the ABI have them.
 * It gives each op's rule all calls of the fixtures, and variants of them: a dim counted from the end, a list of one
 * item or of none, an argument left out. A fact is what the rule made of every call that it took, where at least one
 * was given otherwise. So facts follow the rules; prepared.sh compares them with what is checked in. */
#define GRAFT_FIXTURES_DIR fixtures_folder
static const char *fixtures_folder;

#include "fixtures/reader.h"

/* What was seen of an argument over all calls, as it was given and as the rule left it. */
typedef struct argument {
  bool was_negative, is_negative;   /* a number or an item of a list */
  bool was_absent, is_absent;       /* without a default */
  bool was_empty, is_empty;         /* a list; of tensors, all absent */
  bool was_unordered, is_unordered; /* a list, neither ascending nor descending repeats */
  bool was_short, is_short;         /* a list with fewer items than its length in the schema, or than spatial dims */
  bool is_long;                     /* or with more */
  bool is_other;                    /* a dtype, than the first output's */
  bool was_unlike, is_unlike;       /* a tensor, in sizes, to the first tensor of the call */
} argument;

typedef struct op {
  const op_schema *schema;
  unsigned calls;
  argument args[OP_MAX_ARGS];
  bool unwanted[OP_MAX_OUTS];
} op;

static op *ops;

static op *op_for(const op_schema *schema) {
  size_t count;
  return &ops[schema - op_schema_all(&count)];
}

static bool is_list(uint8_t kind) {
  return kind == OPK_INTS || kind == OPK_FLOATS || kind == OPK_SCALARS || kind == OPK_TENSORS;
}

/* How many items a list has when it is whole; -1: any number. */
static int64_t whole_length(const op_call *call, const op_arg *arg) {
  if (arg->bytes) return arg->bytes;
  const graft_value *first = &call->args[0];
  bool spatial = strcmp(call->schema->family, "convolution") == 0 || strcmp(call->schema->family, "pooling") == 0;
  if (!spatial || first->kind != GRAFT_VALUE_TENSOR || first->as.tensor->ndim < 3) return -1;
  return first->as.tensor->ndim - 2;
}

static bool has_negative(const graft_value *v) {
  if (v->kind == GRAFT_VALUE_INT) return v->as.i < 0;
  if (v->kind != GRAFT_VALUE_INTS) return false;
  for (uint32_t i = 0; i < v->count; i++) {
    if (v->as.ints[i] < 0) return true;
  }
  return false;
}

static bool is_unordered(const graft_value *v) {
  if (v->kind != GRAFT_VALUE_INTS) return false;
  for (uint32_t i = 1; i < v->count; i++) {
    if (v->as.ints[i] <= v->as.ints[i - 1]) return true;
  }
  return false;
}

static bool is_empty(const graft_value *v) {
  if (v->kind == GRAFT_VALUE_NONE) return false;
  for (uint32_t i = 0; v->kind == GRAFT_VALUE_TENSORS && i < v->count; i++) {
    if (v->as.tensors[i]) return false;
  }
  return v->kind == GRAFT_VALUE_TENSORS || v->count == 0;
}

/* Whether a tensor has other sizes than the first of the call. */
static bool is_unlike(const op_call *call, const graft_value *v) {
  const graft_value *first = &call->args[0];
  bool both = first->kind == GRAFT_VALUE_TENSOR && v->kind == GRAFT_VALUE_TENSOR;
  return both && !tns_same_sizes(first->as.tensor, v->as.tensor);
}

/* As a slot gets it. */
static void note_prepared(argument *a, const op_call *call, int i) {
  const op_arg *arg = &call->schema->args[i];
  const graft_value *now = &call->args[i];
  a->is_negative |= has_negative(now);
  a->is_unordered |= is_unordered(now);
  a->is_absent |= now->kind == GRAFT_VALUE_NONE;
  a->is_unlike |= is_unlike(call, now);
  a->is_other |= now->kind != GRAFT_VALUE_DTYPE || now->as.dtype != call->out[0].dtype;
  if (!is_list(arg->kind) || now->kind == GRAFT_VALUE_NONE) return;
  a->is_empty |= is_empty(now);
  if (arg->kind == OPK_TENSORS) return;
  int64_t whole = whole_length(call, arg);
  a->is_short |= now->count < whole;
  a->is_long |= whole >= 0 && now->count > whole;
}

/* As it was given. */
static void note_given(argument *a, const op_call *call, int i, const graft_value *given) {
  const op_arg *arg = &call->schema->args[i];
  if (given->kind == GRAFT_VALUE_NONE) {
    a->was_absent |= !arg->fallback;
    return;
  }
  a->was_unlike |= is_unlike(call, given);
  a->was_negative |= has_negative(given);
  a->was_unordered |= is_unordered(given);
  a->was_empty |= is_list(arg->kind) && is_empty(given);
  a->was_short |= is_list(arg->kind) && arg->kind != OPK_TENSORS && given->count < whole_length(call, arg);
}

/* What is always decomposed reaches no slot. */
static void note_call(const op_schema *schema, const graft_value *args) {
  dsp_room room;
  arena lists = ARENA_IN(room.bytes);
  op_call made = {.lists = &lists};
  if (!dsp_infer(&made, schema, args, schema->nargs)) {
    op *o = op_for(schema);
    for (int i = 0; i < schema->nargs; i++) note_given(&o->args[i], &made, i, &args[i]);
    o->calls += !made.decompose_only;
    for (int i = 0; !made.decompose_only && i < schema->nargs; i++) note_prepared(&o->args[i], &made, i);
    for (uint32_t i = 0; !made.decompose_only && i < schema->nrets; i++)
      o->unwanted[i] |= i >= made.nouts || !made.out_wanted[i];
  }
  arena_free(&lists);
}

/* --- calls and their variants --- */

static void note_with(const op_schema *schema, const graft_value *args, int i, graft_value other) {
  graft_value varied[OP_MAX_ARGS];
  memcpy(varied, args, schema->nargs * sizeof *varied);
  varied[i] = other;
  note_call(schema, varied);
}

/* The rank that dims count to: the first tensor's. */
static int32_t rank_of(const op_schema *schema, const graft_value *args) {
  for (int i = 0; i < schema->nargs; i++) {
    if (args[i].kind == GRAFT_VALUE_TENSOR) return args[i].as.tensor->ndim;
    if (args[i].kind == GRAFT_VALUE_TENSORS && args[i].count && args[i].as.tensors[0])
      return args[i].as.tensors[0]->ndim;
  }
  return 0;
}

static bool is_dim(int64_t value, int32_t rank) {
  return value >= 0 && value < rank;
}

static void vary_list(const op_schema *schema, const graft_value *args, int i) {
  graft_value other = args[i];
  int32_t rank = rank_of(schema, args);
  int64_t items[GRAFT_MAX_DIMS];
  bool alike = true, dims = other.count <= GRAFT_MAX_DIMS;
  for (uint32_t k = 0; k < other.count && k < GRAFT_MAX_DIMS; k++) {
    alike &= other.as.ints[k] == other.as.ints[0];
    dims &= is_dim(other.as.ints[k], rank);
    items[other.count - 1 - k] = other.as.ints[k] - rank; /* from the end, and the last one first */
  }
  if (dims) note_with(schema, args, i, (graft_value){.kind = other.kind, .count = other.count, .as.ints = items});
  if (alike && other.count > 1) {
    other.count = 1;
    note_with(schema, args, i, other);
  }
  other.count = 0;
  note_with(schema, args, i, other);
}

/* Without each of the outputs, one at a time. */
static void vary_mask(const op_schema *schema, const graft_value *args, int i) {
  uint8_t items[GRAFT_MAX_DIMS];
  const graft_value other = {.kind = args[i].kind, .count = args[i].count, .as.mask = items};
  for (uint32_t k = 0; k < other.count && other.count <= GRAFT_MAX_DIMS; k++) {
    memcpy(items, args[i].as.mask, other.count);
    items[k] = 0;
    note_with(schema, args, i, other);
  }
}

static void note_variants(const op_schema *schema, const graft_value *args) {
  note_call(schema, args);
  for (int i = 0; i < schema->nargs; i++) {
    graft_value other = args[i];
    if (other.kind == GRAFT_VALUE_INTS) vary_list(schema, args, i);
    if (other.kind == GRAFT_VALUE_MASK) vary_mask(schema, args, i);
    if (other.kind == GRAFT_VALUE_TENSORS) note_with(schema, args, i, (graft_value){.kind = GRAFT_VALUE_TENSORS});
    if (other.kind == GRAFT_VALUE_INT && is_dim(other.as.i, rank_of(schema, args))) {
      other.as.i -= rank_of(schema, args);
      note_with(schema, args, i, other);
    }
    if (other.kind != GRAFT_VALUE_NONE && schema->args[i].flags & OPA_OPTIONAL)
      note_with(schema, args, i, (graft_value){.kind = GRAFT_VALUE_NONE});
  }
}

static void read_line(const char *line) {
  txt_call call;
  const char *expected;
  if (txt_parse_call(line, &expected, &call)) {
    fprintf(stderr, "prepared: %s\n", graft_last_error());
    exit(1);
  }
  const op_def *def = op_def_of(call.schema->id);
  bool served = def && def->infer && call.schema->route == OPROUTE_SLOT;
  if (served && !txt_make(&call, graft_device_reference(), NULL, NULL)) note_variants(call.schema, call.args);
  txt_free(&call);
}

static void read_file(const char *path) {
  size_t size;
  char *text = fixture_read(path, &size);
  if (!text) {
    fprintf(stderr, "prepared: %s can't be read\n", path);
    exit(1);
  }
  for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
    *end = 0;
    read_line(line);
  }
  free(text);
}

/* --- in words --- */

enum { WORDS = 160 };

static const char *separator; /* before the next group of a line */

/* "NAME, NAME WORDS" for the names whose words are these. */
typedef struct group {
  const char *words;
  bool begun;
} group;

static void add_name(group *g, const char *name) {
  printf("%s%s", g->begun ? ", " : separator, name);
  g->begun = true;
}

static void end_group(const group *g) {
  if (!g->begun) return;
  printf(" %s", g->words);
  separator = "; ";
}

static void say_tensors(const op *o, char role, const char *words) {
  const op_def *def = op_def_of(o->schema->id);
  group g = {words, false};
  for (uint32_t i = 0; i < o->schema->nargs; i++) {
    const op_arg *arg = &o->schema->args[i];
    bool tensor = arg->kind == OPK_TENSOR || arg->kind == OPK_TENSORS;
    if (tensor && op_role(o->schema, def, i) == role) add_name(&g, arg->name);
  }
  end_group(&g);
}

static void add_fact(char *words, bool holds, const char *fact) {
  size_t used = strlen(words);
  if (holds) snprintf(words + used, WORDS - used, "%s%s", used ? ", " : "", fact);
}

static void facts_of(const op *o, int i, char *words) {
  const argument *a = &o->args[i];
  const op_arg *arg = &o->schema->args[i];
  words[0] = 0;
  add_fact(words, a->was_negative && !a->is_negative, "none negative");
  add_fact(words, a->was_unordered && !a->is_unordered, "ascending");
  add_fact(words, a->was_absent && !a->is_absent, "never absent");
  add_fact(words, a->was_absent && !a->is_other && arg->kind == OPK_DTYPE, "that of out");
  add_fact(words, (a->was_empty || a->was_absent) && is_list(arg->kind) && !a->is_absent && !a->is_empty,
           "never empty");
  add_fact(words, a->was_unlike && !a->is_unlike, "sized as the first tensor");
  add_fact(words, a->was_short && !a->is_short && !a->is_long, arg->bytes ? "at full length" : "one a spatial dim");
}

static void say_arguments(const op *o) {
  char words[OP_MAX_ARGS][WORDS];
  bool said[OP_MAX_ARGS] = {false};
  for (int i = 0; i < o->schema->nargs; i++) facts_of(o, i, words[i]);
  for (int i = 0; i < o->schema->nargs; i++) {
    group g = {words[i], false};
    for (int k = i; k < o->schema->nargs; k++) {
      if (said[k] || !words[k][0] || strcmp(words[i], words[k]) != 0) continue;
      add_name(&g, o->schema->args[k].name);
      said[k] = true;
    }
    end_group(&g);
  }
}

static void say_outputs(const op *o) {
  group g = {"may be NULL", false};
  for (uint32_t i = 0; i < o->schema->nrets && i < OP_MAX_OUTS; i++) {
    if (o->unwanted[i]) add_name(&g, o->schema->rets[i].name);
  }
  end_group(&g);
}

static void say(const op *o) {
  printf("%u\t", o->schema->id);
  separator = "";
  if (op_def_of(o->schema->id)->flags & OP_ELEMENTWISE) {
    printf("elementwise");
    separator = "; ";
  }
  say_tensors(o, 'b', "broadcast and promoted");
  say_tensors(o, 'c', "broadcast");
  say_tensors(o, 'v', "promoted");
  say_tensors(o, 'i', "as indices");
  say_arguments(o);
  say_outputs(o);
  printf("\n");
}

int main(int argc, char **argv) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  if (argc != 2) return 2;
  fixtures_folder = argv[1];
  ops = calloc(count, sizeof *ops);
  for (size_t i = 0; i < count; i++) ops[i].schema = &all[i];
  if (!fixture_each(".meta.zst", read_file)) {
    fprintf(stderr, "prepared: no fixtures in %s\n", fixtures_folder);
    return 1;
  }
  printf("# Written by tests/prepared.c from libgraft's rules, for the comments of the op headers; do not edit.\n");
  for (size_t i = 0; i < count; i++) {
    if (ops[i].calls) say(&ops[i]);
  }
  free(ops);
  return 0;
}
