#include "conformance/run/call.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/run/fill.h"

/* ---- reading a row's text ---- */

typedef struct cf_reader {
  const char *at;
  char *to, *end;
  cf_note *notes;
  uint32_t count;
  const char *dtype;
} cf_reader;

static bool cf_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static void cf_emit(cf_reader *r, const char *from, size_t n) {
  for (size_t i = 0; i < n && r->to < r->end; i++) *r->to++ = from[i];
}

static const char *const cf_kinds[] = {
    [CF_GENERAL] = "general",       [CF_ALIKE] = "alike",      [CF_HERMITIAN] = "hermitian", [CF_DEFINITE] = "definite",
    [CF_DOMINANT] = "dominant",     [CF_FACTOR] = "factor",    [CF_PIVOTS] = "pivots",       [CF_PAIRS] = "pairs",
    [CF_REFLECTORS] = "reflectors", [CF_SCALES] = "scales",    [CF_APART] = "apart",         [CF_RISING] = "rising",
    [CF_MASKED] = "masked",         [CF_SINGULAR] = "singular"};

static cf_matrices cf_read_kind(const char *word, size_t length) {
  for (int k = CF_GENERAL; k <= CF_MASKED; k++)
    if (strlen(cf_kinds[k]) == length && strncmp(word, cf_kinds[k], length) == 0) return (cf_matrices)k;
  return CF_ANY_MATRIX;
}

/* What stands behind a tensor and is not part of the common grammar. */
static void cf_read_note(cf_reader *r, cf_note *note) {
  for (;;) {
    char *end = NULL;
    if (*r->at == '!')
      note->distinct = true, r->at++;
    else if (*r->at == '+')
      note->positive = true, r->at++;
    else if (*r->at == '^')
      note->infinities = true, r->at++;
    else if (*r->at == '<') {
      note->bound = strtoll(r->at + 1, &end, 10), r->at = end;
      if (strncmp(r->at, "..", 2)) continue;
      note->between = true, note->low = note->bound;
      note->bound = strtoll(r->at + 2, &end, 10), r->at = end;
    } else if (*r->at == '?')
      note->has_sentinel = true, note->sentinel = strtoll(r->at + 1, &end, 10), r->at = end;
    else if (*r->at == '~') {
      size_t length = 0;
      while (cf_word(r->at[1 + length])) length++;
      note->matrices = cf_read_kind(r->at + 1, length), r->at += 1 + length;
    } else if (*r->at == '=')
      note->constant = true, note->value = strtold(r->at + 1, &end), r->at = end;
    else
      return;
  }
}

static void cf_read_word(cf_reader *r) {
  size_t n = 0;
  while (cf_word(r->at[n])) n++;
  bool tested = n == 1 && *r->at == 'T';
  cf_emit(r, tested ? r->dtype : r->at, tested ? strlen(r->dtype) : n);
  r->at += n;
  if (*r->at != '[') return;
  size_t close = strcspn(r->at, "]");
  close += r->at[close] == ']'; /* a plugin's text may lack it, which the parser then says */
  if (r->at[close] == ':') close += 1 + strspn(r->at + close + 1, "0123456789,");
  if (r->at[close] == '@') close += 1 + strspn(r->at + close + 1, "0123456789");
  cf_emit(r, r->at, close);
  r->at += close;
  if (r->count == CF_MAX_TENSORS) return;
  cf_note *note = &r->notes[r->count++];
  note->tested = tested;
  cf_read_note(r, note);
}

/* The plain text of a row for one dtype; fills notes, one a tensor. */
static uint32_t cf_expand(const char *text, const char *dtype, char *plain, size_t capacity, cf_note *notes) {
  cf_reader r = {.at = text, .to = plain, .end = plain + capacity - 1, .notes = notes, .dtype = dtype};
  while (*r.at) {
    if (isalpha((unsigned char)*r.at)) {
      cf_read_word(&r);
      continue;
    }
    size_t n = 1;
    if (*r.at == '\'') {
      n += strcspn(r.at + 1, "'");
      n += r.at[n] == '\'';
    }
    cf_emit(&r, r.at, n);
    r.at += n;
  }
  *r.to = 0;
  return r.count;
}

/* ---- layouts ---- */

static bool cf_restride(txt_tensor *t, int layout) {
  int32_t n = t->ndim;
  int64_t step = 2;
  switch (layout) {
    case CF_TRANSPOSED:
      if (n < 2 || t->sizes[n - 1] < 2 || t->sizes[n - 2] < 2) return false;
      t->strides[n - 2] = 1;
      t->strides[n - 1] = t->sizes[n - 2];
      return true;
    case CF_SLICED:
      if (n < 1) return false;
      for (int32_t d = n - 1; d >= 0; d--) {
        t->strides[d] = step;
        step = step * t->sizes[d] + 1;
      }
      return true;
    case CF_OFFSET: t->offset = 3; return true;
    case CF_EXPANDED:
      for (int32_t d = 0; d < n; d++) {
        if (t->sizes[d] < 2) continue;
        t->strides[d] = 0;
        return true;
      }
      return false;
    case CF_CHANNELS_LAST:
      if (n != 4 || t->sizes[1] < 2) return false;
      tns_channels_last_strides(n, t->sizes, t->strides);
      return true;
    default: return true;
  }
}

/* Whether the case differs from the contiguous one. */
static bool cf_apply_layout(cf_call *call, int layout) {
  bool changed = layout == CF_CONTIGUOUS || layout >= CF_OUT;
  for (uint32_t i = 0; i < call->ntensors; i++) {
    txt_tensor *t = &call->specs[i];
    bool plain = t->offset == 0 && tns_is_contiguous(t->ndim, t->sizes, t->strides);
    if (!plain || tns_numel(t->ndim, t->sizes) == 0) continue;
    cf_matrices kind = call->notes[i].matrices;
    bool whole = call->notes[i].distinct || (kind && kind != CF_SCALES); /* any scale serves any reflector */
    if (layout == CF_EXPANDED && (cf_call_mutates(call, i) || whole)) continue;
    if (layout < CF_OUT) changed |= cf_restride(t, layout);
  }
  return changed;
}

/* ---- prims that equal the row's op ---- */

static bool cf_same_constant(const graft_value *a, const graft_value *b) {
  if (!a || !b) return !a == !b || (a ? a->kind : b->kind) == GRAFT_VALUE_NONE;
  if (a->kind != b->kind) return false;
  switch (a->kind) {
    case GRAFT_VALUE_NONE: return true;
    case GRAFT_VALUE_FLOAT: return a->as.f == b->as.f;
    case GRAFT_VALUE_INT:
    case GRAFT_VALUE_BOOL:
    case GRAFT_VALUE_MEMORY_FORMAT: return a->as.i == b->as.i;
    case GRAFT_VALUE_DTYPE: return a->as.dtype == b->as.dtype;
    case GRAFT_VALUE_STR: return strcmp(a->as.str, b->as.str) == 0;
    case GRAFT_VALUE_SCALAR: {
      dt_value x = dt_scalar_value(&a->as.scalar), y = dt_scalar_value(&b->as.scalar);
      return x.re == y.re && x.im == y.im;
    }
    default: return false;
  }
}

/* Rewrites a call of an aten op as one of the prim; false where the prim can't say it. */
static bool cf_to_prim(cf_call *call, const op_schema *prim) {
  const op_schema *aten = call->schema;
  graft_value args[OP_MAX_ARGS] = {{0}};
  int16_t where[OP_MAX_ARGS];
  if (!prim->equal || prim->equal->op_id != aten->id) return false;
  for (uint32_t i = 0; i < aten->nargs; i++) {
    const op_equal_arg *from = i < prim->equal->count ? &prim->equal->args[i] : NULL;
    const graft_value *given = &call->args[i], *fallback = aten->args[i].fallback;
    where[i] = from ? from->source : -1;
    if (given->kind == GRAFT_VALUE_NONE && fallback) given = fallback;
    if (where[i] >= 0)
      args[where[i]] = *given;
    else if (aten->args[i].flags & OPA_DROPPED || aten->args[i].kind == OPK_DEVICE)
      continue;
    else if (!cf_same_constant(given, from ? from->constant : fallback))
      return false;
  }
  for (uint32_t i = 0; i < call->ntensors; i++) {
    if (where[call->spec_arg[i]] < 0) return false;
    call->spec_arg[i] = (uint32_t)where[call->spec_arg[i]];
  }
  for (uint32_t i = 0; i < prim->nargs; i++) { /* what the prim asks for and the aten op does not say */
    bool optional = prim->args[i].fallback || prim->args[i].flags & (OPA_OPTIONAL | OPA_DROPPED);
    bool supplied = args[i].kind != GRAFT_VALUE_NONE || prim->args[i].kind == OPK_DEVICE;
    if (!optional && !supplied) return false;
  }
  memcpy(call->args, args, sizeof args);
  call->schema = prim;
  return true;
}

/* ---- calls ---- */

/* Whether there is an index to spoil, where the case asks for it. */
static bool cf_has_range(const cf_call *call) {
  const cf_case *c = call->c;
  if (c->mode < CF_RANGE_PAST) return true;
  if (c->variant >= call->ntensors || !cf_call_is_index(call, c->variant)) return false;
  const txt_tensor *t = &call->specs[c->variant];
  if (call->notes[c->variant].has_sentinel) return false; /* which may end what is read */
  return tns_numel(t->ndim, t->sizes) > 0 && (c->mode != CF_RANGE_FAR || t->dtype == GRAFT_I64);
}

/* Whether it can stand between other calls: views and what draws or writes to its arguments can't, nor what has results
 * of sizes that its values decide. */
static bool cf_fits_between_others(const cf_call *call) {
  const op_schema *schema = call->schema;
  const uint32_t nouts = cf_call_outs(call);
  bool fits = schema->strides != OPS_VIEW && !(schema->flags & OPF_DYNAMIC) && nouts > 0;
  fits &= nouts <= CF_MAX_TENSORS && cf_call_first_read(call) >= 0;
  for (uint32_t i = 0; i < call->ntensors; i++) fits &= !cf_call_mutates(call, i);
  return fits;
}

bool cf_call_open(const cf_case *c, cf_call *call) {
  char plain[640];
  memset(call, 0, sizeof *call);
  call->c = c;
  call->op = cf_case_op(c);
  int used = snprintf(plain, sizeof plain, "%s ", call->op->name);
  uint32_t notes =
      cf_expand(cf_case_text(c), graft_dtype_name(c->dtype), plain + used, sizeof plain - (size_t)used, call->notes);
  if (txt_parse_call(plain, NULL, &call->text) != GRAFT_OK) return false;
  call->schema = call->text.schema;
  call->specs = call->text.specs;
  call->ntensors = call->text.ntensors;
  memcpy(call->args, call->text.args, sizeof call->args);
  for (uint32_t i = 0; i < call->ntensors; i++) call->spec_arg[i] = call->specs[i].arg;
  if (notes != call->ntensors || notes > CF_MAX_TENSORS) {
    err_set(GRAFT_INTERNAL, "%s: row \"%s\" has more than %d tensors", call->op->name, cf_case_text(c), CF_MAX_TENSORS);
    return cf_call_close(call), false;
  }
  bool exists = c->op_id == call->schema->id || cf_to_prim(call, op_schema_of(c->op_id));
  exists = exists && cf_apply_layout(call, c->layout) && cf_has_range(call);
  exists = exists && (c->mode != CF_GROUPED || cf_fits_between_others(call));
  if (!exists) err_clear(), cf_call_close(call);
  return exists;
}

void cf_call_close(cf_call *call) {
  for (uint32_t i = 0; i < call->ntensors; i++) cf_array_free(&call->in[i]);
  txt_free(&call->text);
  call->ntensors = 0;
}

bool cf_call_is_index(const cf_call *call, uint32_t spec) {
  graft_dtype dtype = call->specs[spec].dtype;
  bool mask =
      call->args[call->spec_arg[spec]].kind == GRAFT_VALUE_TENSORS && (dtype == GRAFT_U8 || dtype == GRAFT_BOOL);
  return op_reads_indices(call->schema, call->args, call->spec_arg[spec]) && !mask;
}

bool cf_call_mutates(const cf_call *call, uint32_t spec) {
  return op_mutates(call->schema, call->spec_arg[spec]);
}

bool cf_call_returns_input(const cf_call *call) {
  const op_schema *schema = call->schema;
  bool aliased = schema->nrets == 1 && schema->rets[0].kind == OPK_TENSOR && schema->rets[0].flags & OPR_ALIASED;
  return aliased && call->ntensors && call->spec_arg[0] == 0 && schema->args[0].flags & OPA_MUTATED &&
         schema->route == OPROUTE_SLOT;
}

void cf_call_args(const cf_call *call, graft_rt_device *device, graft_tensor *const *tensors, graft_value *args,
                  graft_tensor **items) {
  uint32_t next = 0, room = 0;
  memcpy(args, call->args, sizeof call->args);
  for (uint32_t i = 0; i < call->schema->nargs; i++)
    if (call->schema->args[i].kind == OPK_DEVICE) args[i] = (graft_value){GRAFT_VALUE_DEVICE, 0, {.device = device}};
  for (uint32_t i = 0; i < call->ntensors; i++)
    if (args[call->spec_arg[i]].kind == GRAFT_VALUE_TENSOR) args[call->spec_arg[i]].as.tensor = tensors[i];
  for (uint32_t a = 0; a < call->schema->nargs; a++) {
    if (args[a].kind != GRAFT_VALUE_TENSORS) continue;
    while (next < call->ntensors && call->spec_arg[next] != a) next++;
    graft_tensor *const *present = args[a].as.tensors; /* the parser marks absent items with NULL */
    args[a].as.tensors = items + room;
    for (uint32_t k = 0; k < args[a].count && room < CF_MAX_TENSORS; k++)
      items[room++] = present[k] ? tensors[next++] : NULL;
    next = 0;
  }
}

static uint32_t cf_list_length(const cf_call *call) {
  for (uint32_t a = 0; a < call->schema->nargs; a++)
    if (call->args[a].kind == GRAFT_VALUE_INTS) return call->args[a].count;
  return 0;
}

uint32_t cf_call_outs(const cf_call *call) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < call->schema->nrets; i++) {
    const op_ret *ret = &call->schema->rets[i];
    if (ret->kind != OPK_TENSORS) { /* a number takes its place, too, with no tensor */
      n++;
      continue;
    }
    uint32_t length = 0; /* a list output is as long as the list it corresponds to; by name, else the first list */
    for (uint32_t a = 0; a < call->schema->nargs; a++) {
      if (call->args[a].kind != GRAFT_VALUE_TENSORS) continue;
      size_t name = strlen(call->schema->args[a].name);
      bool named = ret->name && strncmp(ret->name, call->schema->args[a].name, name) == 0 && ret->name[name] == '_';
      if (named) {
        length = call->args[a].count;
        break;
      }
      if (!length) length = call->args[a].count;
    }
    if (!length) length = cf_list_length(call); /* split_with_sizes and its like */
    n += length;
  }
  return n;
}

/* An expanded dim repeats its first element. Equal terms round alike, and growth(n) speaks of independent roundings: so
 * where they are summed they get few bits. */
static void cf_repeat_expanded(cf_array *a, const txt_tensor *t, bool reduced) {
  for (int32_t d = 0; d < t->ndim; d++) {
    if (t->strides[d] != 0 || t->sizes[d] < 2) continue;
    for (int64_t k = 0; reduced && dt_is_float(a->dtype) && k < a->numel; k++)
      a->v[k].re = dt_round(t->dtype, dt_round(GRAFT_BF16, a->v[k].re));
    cf_axis x = cf_axis_of(a, d);
    for (int64_t o = 0; o < x.outer; o++)
      for (int64_t k = 1; k < x.length; k++)
        memcpy(&a->v[(o * x.length + k) * x.inner], &a->v[o * x.length * x.inner], (size_t)x.inner * sizeof *a->v);
  }
}

/* Numbers that a call names, at which it may bend: thresholds, bounds. Such as half types hold, too, so that an element
 * can be one. */
static uint32_t cf_numbers_of(const cf_call *call, long double numbers[CF_NUMBERS]) {
  uint32_t count = 0;
  numbers[count++] = 0;
  for (uint32_t i = 0; i < call->schema->nargs && count < CF_NUMBERS; i++) {
    const graft_value *v = &call->args[i];
    if (v->kind == GRAFT_VALUE_NONE && call->schema->args[i].fallback) v = call->schema->args[i].fallback;
    if (v->kind != GRAFT_VALUE_SCALAR && v->kind != GRAFT_VALUE_FLOAT) continue;
    long double x = v->kind == GRAFT_VALUE_FLOAT ? (long double)v->as.f : dt_scalar_value(&v->as.scalar).re;
    if (fabsl(x) >= 0x1p-10L && fabsl(x) <= 0x1p10L && dt_round(GRAFT_BF16, x) == x) numbers[count++] = x;
  }
  return count;
}

bool cf_call_fill(cf_call *call, uint64_t seed, bool denormals) {
  cf_class k = call->op->rule.klass;
  bool reduced = k == CF_SUM || k == CF_PROD || k == CF_CUSTOM || k == CF_GATED || k == CF_BACKWARD || k == CF_PROPERTY;
  cf_random random = {seed};
  long double numbers[CF_NUMBERS];
  /* Where elements are summed up, none is at a threshold; differences are no slopes there. */
  bool summed = k == CF_SUM || k == CF_PROD || k == CF_BACKWARD || k == CF_PROPERTY;
  uint32_t count = summed || call->c->mode == CF_ADJOINT ? 0 : cf_numbers_of(call, numbers);
  for (uint32_t i = 0; i < call->ntensors; i++) {
    const txt_tensor *t = &call->specs[i];
    const cf_note *note = &call->notes[i];
    cf_array *a = &call->in[i];
    if (!cf_array_new(a, t->dtype, t->ndim, t->sizes)) return false;
    cf_filling how = {.fill = note->tested ? (cf_fill)call->c->fill : CF_UNIFORM,
                      .domain = note->positive ? CF_POSITIVE : call->op->domain,
                      .reduced = reduced,
                      .denormals = denormals,
                      .numbers = numbers,
                      .number_count = note->tested ? count : 0};
    cf_fill_values(a, note, &how, &random);
    cf_fill_matrices(a, note->matrices);
    cf_repeat_expanded(a, t, reduced);
  }
  return true;
}

int cf_call_first_read(const cf_call *call) {
  for (uint32_t i = 0; i < call->ntensors; i++)
    if (call->notes[i].tested && !cf_call_is_index(call, i) && !cf_call_mutates(call, i)) return (int)i;
  return -1;
}
