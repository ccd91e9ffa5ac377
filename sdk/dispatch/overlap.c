/* Which tensors of a call that writes to given outputs are one memory. A key says how each output lies to the arguments
 * in its own place; here it is found whether any lie across, which is rare. See plan.h. */
#include <alloca.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch/state.h"

enum { NONE = UINT32_MAX, STACK_MOST = 1024 };

/* Outputs by storage: a hash table of the first one of each, and a chain of those that follow in it. */
typedef struct written {
  graft_tensor *const *outs;
  uint32_t mask;
  uint32_t *heads, *next;
  int64_t *low, *high; /* by head: the bytes between which all of the chain lie */
  tns_overlap worst;
} written;

/* What is certain comes before what may be, and that before the very same memory. */
static void note(written *w, tns_overlap overlap) {
  static const int weight[] = {
      [TNS_OVERLAP_NONE] = 0, [TNS_OVERLAP_FULL] = 1, [TNS_OVERLAP_MAYBE] = 2, [TNS_OVERLAP_PARTIAL] = 3};
  if (weight[overlap] > weight[w->worst]) w->worst = overlap;
}

static uint32_t *head_of(written *w, const graft_storage *storage) {
  uint32_t at = (uint32_t)((uintptr_t)storage >> 4) * 2654435769u >> 7 & w->mask;
  while (w->heads[at] != NONE && w->outs[w->heads[at]]->storage != storage) at = (at + 1) & w->mask;
  return &w->heads[at];
}

static void add(written *w, uint32_t i) {
  const graft_tensor *t = w->outs[i];
  int64_t begin = t->offset * (int64_t)dt_bytes(t->dtype);
  int64_t end = tns_extent_bytes(t->dtype, t->ndim, t->sizes, t->strides, t->offset);
  uint32_t *head = head_of(w, t->storage), first = *head;
  w->next[i] = NONE;
  if (first == NONE) {
    *head = i;
    w->low[i] = begin;
    w->high[i] = end;
    return;
  }
  bool beside = end <= w->low[first] || begin >= w->high[first]; /* parts of one storage mostly come in order */
  for (uint32_t j = first; !beside && j != NONE; j = w->next[j]) note(w, tns_overlap_of(t, w->outs[j]));
  w->next[i] = w->next[first];
  w->next[first] = i;
  if (begin < w->low[first]) w->low[first] = begin;
  if (end > w->high[first]) w->high[first] = end;
}

/* Item `place` of a list: it may be the output of its own place, and shares nothing with the others. */
static void compare_item(written *w, const graft_tensor *t, uint32_t place, uint32_t nouts) {
  const graft_tensor *own = place < nouts ? w->outs[place] : NULL;
  if (t == own && w->worst == TNS_OVERLAP_NONE) return;
  for (uint32_t j = *head_of(w, t->storage); j != NONE; j = w->next[j]) {
    tns_overlap overlap = tns_overlap_of(t, w->outs[j]);
    if (w->outs[j] == own && overlap == TNS_OVERLAP_FULL) {
      if (w->worst == TNS_OVERLAP_NONE) return; /* then it can't share memory with other outputs */
      continue;
    }
    note(w, overlap);
  }
}

static void compare_all(written *w, const op_schema *schema, const graft_value *args, uint32_t nargs, uint32_t nouts) {
  memset(w->heads, 0xff, (w->mask + 1) * sizeof *w->heads);
  for (uint32_t i = 0; i < nouts; i++) {
    if (w->outs[i] && w->outs[i]->storage && w->outs[i]->numel) add(w, i);
  }
  const op_def *def = op_def_of(schema->id);
  if (!def || !(def->flags & OP_ITEM_BY_ITEM)) return;
  for (uint32_t a = 0; a < nargs; a++) {
    for (uint32_t i = 0; args[a].kind == GRAFT_VALUE_TENSORS && i < args[a].count; i++) {
      const graft_tensor *t = args[a].as.tensors[i];
      if (t && t->storage && t->numel) compare_item(w, t, i, nouts);
    }
  }
}

tns_overlap dsp_written_overlap(const op_schema *schema, const graft_value *args, uint32_t nargs,
                                graft_tensor *const *outs, uint32_t nouts) {
  bool list = schema->nrets && schema->rets[0].kind == OPK_TENSORS, given = false;
  if (nouts < 2 && !list) return TNS_OVERLAP_NONE;
  for (uint32_t i = 0; i < nouts && !given; i++) given = outs[i] != NULL;
  if (!given) return TNS_OVERLAP_NONE;
  written w = {.outs = outs, .mask = 7, .worst = TNS_OVERLAP_NONE};
  while (w.mask < 2 * nouts) w.mask = w.mask * 2 + 1;
  size_t bytes = nouts * (2 * sizeof *w.low + sizeof *w.next) + (w.mask + 1) * sizeof *w.heads;
  bool on_heap = nouts > STACK_MOST;
  w.low = on_heap ? malloc(bytes) : alloca(bytes);
  if (!w.low) return TNS_OVERLAP_MAYBE;
  w.high = w.low + nouts;
  w.next = (uint32_t *)(w.high + nouts);
  w.heads = w.next + nouts;
  compare_all(&w, schema, args, nargs, nouts);
  if (on_heap) free(w.low);
  return w.worst;
}
