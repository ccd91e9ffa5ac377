/* The order of cases is fixed, and an id means the same case at every level. */
#include "conformance/run/menu.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/judge/tolerance.h"
#include "conformance/run/case.h"
#include "dispatch/plan.h"

uint32_t cf_op_dtypes(const cf_op *op, graft_dtype order[GRAFT_NUMBER_WIDE]) {
  static const graft_dtype usual[] = {GRAFT_F32,  GRAFT_F16, GRAFT_BF16, GRAFT_F64,       GRAFT_I64,    GRAFT_I32,
                                      GRAFT_BOOL, GRAFT_U8,  GRAFT_I8,   GRAFT_I16,       GRAFT_C64,    GRAFT_C128,
                                      GRAFT_U16,  GRAFT_U32, GRAFT_U64,  GRAFT_F8_E4M3FN, GRAFT_F8_E5M2};
  uint32_t n = 0;
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
    if (op->dtypes & 1u << dt_number(usual[i])) order[n++] = usual[i];
  if (n > 2 && order[1] == GRAFT_F16 && order[2] == GRAFT_BF16 && op_schema_find(op->name)->id % 2)
    order[1] = GRAFT_BF16, order[2] = GRAFT_F16;
  return n;
}

/* What is visited, and what is known of the row at hand. */
typedef struct cf_walk {
  const cf_selection *selection;
  cf_visit_fn visit;
  void *context;
  bool stopped;
  uint64_t number; /* cases so far, for shards */
  bool has_prims;  /* some prim is selected */
  const cf_op *op;
  cf_case c; /* the case being varied */
  cf_level text_level;
  uint32_t text_rank;  /* among the op's texts */
  uint32_t dtype_rank; /* among the op's dtypes */
  graft_dtype primary; /* f32, or the first of the op's dtypes */
} cf_walk;

/* ---- ways ---- */

static const struct {
  const char *word;
  uint32_t ways;
} cf_way_words[] = {
    {"chosen", CF_CHOSEN_WAY},
    {"equal", 1u << DSP_ROUTE_EQUAL},
    {"decomposition", 1u << DSP_ROUTE_DECOMPOSITION},
    {"reference", 1u << DSP_ROUTE_REFERENCE},
    {"all", CF_CHOSEN_WAY | 1u << DSP_ROUTE_EQUAL | 1u << DSP_ROUTE_DECOMPOSITION | 1u << DSP_ROUTE_REFERENCE},
};

uint32_t cf_ways_parse(const char *list) {
  uint32_t ways = 0;
  char copy[128], *rest;
  if (snprintf(copy, sizeof copy, "%s", list) >= (int)sizeof copy) return 0;
  for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
    uint32_t found = 0;
    for (size_t i = 0; i < sizeof cf_way_words / sizeof *cf_way_words; i++)
      if (strcmp(cf_way_words[i].word, word) == 0) found = cf_way_words[i].ways;
    if (!found) return 0;
    ways |= found;
  }
  return ways;
}

/* What a plugin's slots are tried against: other ways are the suite's matter from level full on. */
static uint32_t cf_ways_of(const cf_selection *s) {
  return s->ways ? s->ways : s->level == CF_FULL ? cf_ways_parse("all") : CF_CHOSEN_WAY;
}

/* Whether an op can have this way on some device. A gradient is recorded of the op itself, whichever way it went. */
static bool cf_has_way(const cf_case *c, dsp_route way) {
  const op_schema *schema = op_schema_of(c->op_id);
  const op_schema *meaning = schema->equal ? op_schema_of(schema->equal->op_id) : schema;
  const op_def *def = meaning ? op_def_of(meaning->id) : NULL;
  bool forward = c->mode == CF_FORWARD || c->mode >= CF_RANGE_PAST;
  if (!def || !forward || schema != meaning || def->host || def->flags & OP_COPY) return false;
  switch (way) {
    case DSP_ROUTE_EQUAL: return dsp_equal_prim(meaning, 0) != NULL;
    case DSP_ROUTE_DECOMPOSITION: return def->decompose != NULL;
    case DSP_ROUTE_REFERENCE: return def->reference || def->decompose;
    default: return false;
  }
}

/* Visits a case that has its level and its way. */
static void cf_offer_one(cf_walk *w, const cf_case *c) {
  const cf_selection *s = w->selection;
  char id[CF_ID_BYTES];
  if (w->stopped || !cf_case_id(c, id)) return;
  if (s->listed && !cf_listed_has(s->listed, id)) return;
  if (s->shards && w->number++ % s->shards != s->shard - 1) return;
  if (!w->visit(w->context, c, id)) w->stopped = true;
}

/* ---- what is at smoke ---- */

/* Whether no row of the file before has results of this kind. */
static bool cf_is_first_of_class(const cf_walk *w) {
  const cf_op *ops = cf_topics[w->c.topic]->ops;
  for (const cf_op *op = ops; op < w->op; op++)
    if (op->rule.klass == w->op->rule.klass) return false;
  return true;
}

/* Of the first text in the primary dtype. How a tensor lies is as a rule seen to by code that ops share. */
static bool cf_layout_is_at_smoke(const cf_walk *w) {
  switch (w->c.layout) {
    case CF_CONTIGUOUS:
    case CF_TRANSPOSED:
    case CF_DETERMINISTIC: return true;
    case CF_OFFSET:
    case CF_EXPANDED:
    case CF_OUT:
    case CF_IN_PLACE: return cf_is_first_of_class(w);
    default: return false; /* elements that lie apart are mostly a program of their own */
  }
}

/* Which cases of mustpass are run at smoke, too: those that find most for the programs and the time that they cost, as
 * measured (docs/conformance.md). No op is left out; the first of each class in a file stands for the others where code
 * is shared. */
static bool cf_is_at_smoke(const cf_walk *w) {
  const cf_case *c = &w->c;
  bool first = w->text_rank == 0, primary = w->dtype_rank == 0;
  switch (c->mode) {
    case CF_FORWARD:
      if (!first) return primary && w->text_rank == 1 && c->layout == CF_CONTIGUOUS && cf_is_first_of_class(w);
      if (!primary) return c->dtype == GRAFT_C64 && c->layout == CF_CONTIGUOUS; /* a formula of its own */
      return cf_layout_is_at_smoke(w);
    case CF_VJP: return first && primary && c->layout == CF_CONTIGUOUS;
    case CF_GROUPED: return first && primary && cf_is_first_of_class(w);
    case CF_RANGE_PAST:
    case CF_RANGE_BELOW:
    case CF_RANGE_FAR: return first && primary;
    default: return false;
  }
}

/* ---- cases ---- */

static void cf_offer(cf_walk *w, cf_level level) {
  const cf_selection *s = w->selection;
  if (level == CF_MUSTPASS && cf_is_at_smoke(w)) level = CF_SMOKE;
  if (w->stopped || level > s->level) return;
  if (s->dtypes && !(s->dtypes & 1u << dt_number(w->c.dtype))) return;
  bool gradient = w->c.mode >= CF_VJP && w->c.mode <= CF_ADJOINT;
  if ((s->grad > 0 && !gradient) || (s->grad < 0 && gradient)) return;
  cf_case c = w->c;
  c.level = (uint16_t)level;
  uint32_t ways = cf_ways_of(s);
  if (ways & CF_CHOSEN_WAY) cf_offer_one(w, &c);
  for (dsp_route way = DSP_ROUTE_EQUAL; way <= DSP_ROUTE_REFERENCE; way++) {
    c.way = way;
    if (ways >> way & 1 && cf_has_way(&c, way)) cf_offer_one(w, &c);
  }
}

static cf_level cf_max_level(cf_level a, cf_level b) {
  return a > b ? a : b;
}

/* Which dtypes an op has beside the primary one, and from which level each is run. */
static cf_level cf_dtype_level(const cf_walk *w, uint32_t rank) {
  bool first = w->text_rank == 0;
  if (rank == 0) return w->text_level;
  if (first) return rank == 1 ? w->text_level : cf_max_level(CF_MUSTPASS, w->text_level);
  /* Other texts take one further dtype in turn: all of them together see them all. */
  return rank == 1 + w->text_rank % 3 ? cf_max_level(CF_MUSTPASS, w->text_level) : CF_FULL;
}

static void cf_walk_layouts(cf_walk *w, uint32_t dtype_rank) {
  const cf_op *op = w->op;
  bool slot = op_schema_find(op->name)->route == OPROUTE_SLOT && !(op_schema_find(op->name)->flags & OPF_DYNAMIC);
  for (int layout = CF_TRANSPOSED; layout < CF_LAYOUTS; layout++) {
    if (layout <= CF_CHANNELS_LAST && (op->flags & CF_FLAT)) continue;
    if (layout == CF_OUT && !slot) continue;
    if (layout == CF_IN_PLACE && (!(op->flags & CF_INPLACE) || w->text_rank > 0)) continue;
    if (layout == CF_DETERMINISTIC && !(op->flags & CF_ORDERED)) continue;
    if (layout == CF_IN_PLACE && cf_mantissa(w->c.dtype) == 0) continue;
    if (layout == CF_TF32 && !(op->flags & CF_FACTORS && w->c.dtype == GRAFT_F32)) continue;
    cf_level level = CF_FULL;
    if ((dtype_rank == 0 && w->text_rank < 2) || layout == CF_TF32) level = CF_MUSTPASS;
    w->c.layout = (uint8_t)layout;
    cf_offer(w, cf_max_level(level, w->text_level));
  }
  w->c.layout = CF_CONTIGUOUS;
}

/* Whether integers give integers. Where they become floats first, large ones round on the way, which is another op's
 * matter. */
static bool cf_whole_result(const cf_op *op) {
  cf_class k = op->rule.klass;
  return k == CF_EXACT || k == CF_ROUNDED || k == CF_SCALED || k == CF_SUM || k == CF_PERMUTED;
}

static void cf_walk_fills(cf_walk *w, uint32_t dtype_rank) {
  const cf_op *op = w->op;
  bool floating = cf_mantissa(w->c.dtype) > 0, reals = floating && !dt_is_complex(w->c.dtype);
  /* Beside an infinite part, or one that is no number, what arithmetic makes of the other is each implementation's own;
   * what is moved, compared or asked for is not. */
  bool by_parts = floating && op->rule.klass == CF_EXACT;
  if (op->flags & CF_NATIVE && !(op->flags & CF_SPECIAL)) return; /* random numbers come from no inputs */
  for (int fill = CF_INTEGERS; fill < CF_FILLS; fill++) {
    if (fill == CF_INTEGERS && !floating) continue;
    if (fill == CF_EXPONENTS && !(op->flags & CF_WIDE)) continue;
    if (fill == CF_EXPONENTS && !floating && !cf_whole_result(op)) continue;
    if (fill == CF_SPECIALS && (!(op->flags & CF_SPECIAL) || !(reals || by_parts))) continue;
    bool other = (fill == CF_EXPONENTS && w->c.dtype == GRAFT_I64) || (fill == CF_SPECIALS && w->c.dtype == GRAFT_C64);
    other |= fill != CF_INTEGERS && w->c.dtype == GRAFT_F64; /* its functions are another library's than those of f32 */
    bool early = w->text_rank == 0 && (dtype_rank < 2 || other);
    cf_level level = cf_max_level(early ? CF_MUSTPASS : CF_FULL, w->text_level);
    w->c.fill = (uint8_t)fill;
    cf_offer(w, level);
  }
  w->c.fill = CF_UNIFORM;
}

static void cf_walk_gradients(cf_walk *w, uint32_t dtype_rank) {
  const cf_op *op = w->op;
  bool floating = cf_mantissa(w->c.dtype) > 0, first = w->text_rank == 0;
  if (op->grad.kind == CF_GRAD_NONE || !floating || dt_is_float8(w->c.dtype)) return;
  w->c.mode = CF_VJP;
  cf_level level = dtype_rank == 0 || first ? CF_MUSTPASS : CF_FULL;
  cf_offer(w, cf_max_level(level, w->text_level));
  level = dtype_rank == 0 && first ? CF_MUSTPASS : CF_FULL;
  w->c.mode = CF_VJP_ZERO, cf_offer(w, cf_max_level(level, w->text_level));
  w->c.mode = CF_VJP_EXPANDED;
  if (!op->grad.phases) cf_offer(w, cf_max_level(level, w->text_level)); /* one number does not turn with anything */
  w->c.mode = CF_ADJOINT; /* of the oracle alone: once, with values of f64, which hardly ever tie */
  bool finest = w->c.dtype == GRAFT_F64 || (dtype_rank == 0 && !(op->dtypes & CF_BIT(F64)));
  if (finest && !(op->flags & CF_NO_ADJOINT)) cf_offer(w, cf_max_level(CF_MUSTPASS, w->text_level));
  w->c.mode = CF_VJP;
  for (int layout = CF_TRANSPOSED; layout <= CF_EXPANDED && !(op->flags & CF_FLAT); layout++) {
    w->c.layout = (uint8_t)layout;
    bool early = dtype_rank == 0 && first && layout == CF_TRANSPOSED;
    cf_offer(w, cf_max_level(early ? CF_MUSTPASS : CF_FULL, w->text_level));
  }
  w->c.layout = CF_CONTIGUOUS, w->c.mode = CF_FORWARD;
}

/* In a graph with neighbours. Each such case costs a program of its own, so that one op of a kind stands for others. */
static void cf_walk_grouped(cf_walk *w, uint32_t dtype_rank) {
  bool early = dtype_rank == 0 && (w->text_rank == 0 || cf_is_first_of_class(w));
  w->c.mode = CF_GROUPED;
  cf_offer(w, cf_max_level(early ? CF_MUSTPASS : CF_FULL, w->text_level));
  w->c.mode = CF_FORWARD;
}

/* An index out of range: of each index tensor of each text, in the primary dtype. */
static void cf_walk_ranges(cf_walk *w, uint32_t dtype_rank) {
  const op_schema *schema = op_schema_find(w->op->name);
  if (dtype_rank || !op_schema_has_indices(schema)) return;
  for (int mode = CF_RANGE_PAST; mode <= CF_RANGE_FAR; mode++)
    for (uint8_t spec = 0; spec < CF_MAX_TENSORS; spec++) {
      w->c.mode = (uint8_t)mode, w->c.variant = spec;
      cf_offer(w, cf_max_level(CF_MUSTPASS, w->text_level));
    }
  w->c.mode = CF_FORWARD, w->c.variant = 0;
}

static void cf_walk_text(cf_walk *w) {
  graft_dtype order[GRAFT_NUMBER_WIDE];
  uint32_t n = cf_op_dtypes(w->op, order);
  for (uint32_t rank = 0; rank < n && !w->stopped; rank++) {
    w->c.dtype = order[rank];
    w->dtype_rank = rank;
    cf_offer(w, cf_dtype_level(w, rank));
    cf_walk_layouts(w, rank);
    cf_walk_fills(w, rank);
    cf_walk_gradients(w, rank);
    cf_walk_grouped(w, rank);
    cf_walk_ranges(w, rank);
  }
}

/* A glob over "aten.mm.default" and, as PyTorch writes it, "aten::mm". */
static bool cf_op_matches(const char *glob, const char *name) {
  char dotted[128];
  if (fnmatch(glob, name, 0) == 0) return true;
  snprintf(dotted, sizeof dotted, "%s", name);
  char *colons = strstr(dotted, "::");
  if (!colons) return false;
  memmove(colons + 1, colons + 2, strlen(colons + 2) + 1);
  *colons = '.';
  if (fnmatch(glob, dotted, 0) == 0) return true;
  if (!strchr(colons + 1, '.')) strncat(dotted, ".default", sizeof dotted - strlen(dotted) - 1);
  return fnmatch(glob, dotted, 0) == 0;
}

static bool cf_op_selected(const cf_selection *s, const char *name) {
  size_t length;
  for (const char *at = s->ops; at && *at; at += length + (at[length] == ',')) {
    char glob[128];
    length = strcspn(at, ",");
    if (length >= sizeof glob) continue; /* no name is as long */
    snprintf(glob, sizeof glob, "%.*s", (int)length, at);
    if (cf_op_matches(glob, name)) return true;
  }
  return !s->ops;
}

static bool cf_is_word(const char *name, size_t length, const char *word) {
  return strlen(word) == length && memcmp(name, word, length) == 0;
}

bool cf_is_family(const char *name, size_t length) {
  for (uint32_t t = 0; t < cf_topic_count; t++)
    if (cf_is_word(name, length, cf_topics[t]->family)) return true;
  return false;
}

static bool cf_family_selected(const cf_selection *s, const char *family) {
  size_t length;
  for (const char *at = s->families; at && *at; at += length + (at[length] == ',')) {
    length = strcspn(at, ",");
    if (cf_is_word(at, length, family)) return true;
  }
  return !s->families;
}

bool cf_any_op_selected(const cf_selection *selection) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    if (cf_op_selected(selection, all[i].name)) return true;
  }
  for (uint32_t i = 0; op_schema_custom(i); i++)
    if (cf_op_selected(selection, op_schema_custom(i)->name)) return true;
  return false;
}

/* Prims that equal the row's op: routing is what is tested, so the first text that they can say is enough. */
static void cf_walk_prims(cf_walk *w, uint32_t aten) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  graft_dtype order[GRAFT_NUMBER_WIDE];
  if (!cf_op_dtypes(w->op, order)) return;
  for (size_t i = 0; i < count && !w->stopped; i++) {
    if (all[i].table != OPT_PRIMS || !all[i].equal || all[i].equal->op_id != aten) continue;
    if (!cf_op_selected(w->selection, all[i].name)) continue;
    w->c.op_id = all[i].id;
    for (uint32_t text = 0; w->op->texts[text]; text++) {
      char id[CF_ID_BYTES];
      w->c.text = (uint16_t)text, w->c.dtype = order[0];
      if (!cf_case_id(&w->c, id)) continue;
      cf_offer(w, CF_SMOKE);
      break;
    }
  }
}

/* Whether one of an op's prims is; with 0 one of any op's. */
static bool cf_prims_selected(const cf_selection *s, uint32_t aten) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  for (size_t i = 0; i < count; i++) {
    if (all[i].table != OPT_PRIMS || !all[i].equal || (aten && all[i].equal->op_id != aten)) continue;
    if (cf_op_selected(s, all[i].name)) return true;
  }
  return false;
}

static void cf_walk_op(cf_walk *w) {
  const op_schema *schema = op_schema_find(w->op->name);
  if (!schema) return;
  w->c.op_id = schema->id;
  w->text_rank = 0;
  for (uint32_t i = 0; w->op->texts[i] && cf_op_selected(w->selection, w->op->name) && !w->stopped; i++) {
    char level = w->op->texts[i][0];
    w->c.text = (uint16_t)i;
    w->text_level = level == 's' ? CF_SMOKE : level == 'm' ? CF_MUSTPASS : CF_FULL;
    cf_walk_text(w);
    w->text_rank++;
  }
  if (w->has_prims && cf_prims_selected(w->selection, schema->id)) cf_walk_prims(w, schema->id);
}

void cf_menu(const cf_selection *selection, cf_visit_fn visit, void *context) {
  cf_walk w = {.selection = selection, .visit = visit, .context = context};
  w.has_prims = cf_prims_selected(selection, 0);
  for (uint32_t t = 0; t < cf_topic_count; t++)
    for (uint32_t i = 0; i < cf_topics[t]->count && !w.stopped; i++) {
      if (!cf_family_selected(selection, cf_topics[t]->family)) break;
      w.c = (cf_case){.topic = (uint16_t)t, .op = (uint16_t)i};
      w.op = &cf_topics[t]->ops[i];
      cf_walk_op(&w);
    }
}

typedef struct cf_search {
  const char *id;
  cf_case *found;
  bool done;
} cf_search;

static bool cf_search_visit(void *context, const cf_case *c, const char *id) {
  cf_search *s = context;
  if (strcmp(id, s->id) != 0) return true;
  *s->found = *c;
  s->done = true;
  return false;
}

bool cf_case_find(const char *id, cf_case *c) {
  char op[96];
  snprintf(op, sizeof op, "%.*s", (int)strcspn(id, "/"), id);
  cf_selection all = {.level = CF_FULL, .ops = op, .ways = cf_ways_parse("all")};
  cf_search search = {.id = id, .found = c};
  cf_menu(&all, cf_search_visit, &search);
  return search.done;
}
