/* Where values lie: largest first, each in the smallest gap that fits among those that are alive at the same time, of a
 * donor where one has such a gap. All of a plan belongs to one stream, so that reuse makes no work wait for other work.
 */
#include <stdlib.h>

#include "graph/graph.h"

/* A value in its turn. */
typedef struct turn {
  uint64_t bytes; /* rounded up to the alignment */
  uint32_t value;
} turn;

typedef struct planner {
  const gr_usage *usages;
  gr_spot *spots;
  const gr_room *room;
  uint64_t *arenas; /* the donors first */
  uint32_t narenas;
  turn *turns;    /* largest first */
  uint32_t *near; /* turns that share an arena and a moment with the one to be placed, by offset */
} planner;

static int compare_turns(const void *a, const void *b) {
  const turn *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->value < y->value ? -1 : 1;
}

static bool alive_together(const gr_usage *a, const gr_usage *b) {
  return a->first <= b->last && b->first <= a->last;
}

static uint64_t offset_of(const planner *p, uint32_t at) {
  return p->spots[p->turns[at].value].offset;
}

/* Those of the first `count` turns that are in the way, in the order of their offsets. */
static uint32_t collect_near(planner *p, uint32_t arena, uint32_t count) {
  const gr_usage *own = &p->usages[p->turns[count].value];
  uint32_t n = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t value = p->turns[i].value;
    if (p->spots[value].arena != arena || !alive_together(own, &p->usages[value])) continue;
    uint32_t at = n++;
    for (; at > 0 && offset_of(p, p->near[at - 1]) > offset_of(p, i); at--) p->near[at] = p->near[at - 1];
    p->near[at] = i;
  }
  return n;
}

/* The start of the smallest gap that holds the turn's value, or the end of all that is in the way. */
static uint64_t best_offset(planner *p, uint32_t arena, uint32_t count) {
  const uint64_t bytes = p->turns[count].bytes;
  uint32_t n = collect_near(p, arena, count);
  uint64_t end = 0, best = UINT64_MAX, best_gap = UINT64_MAX;
  for (uint32_t i = 0; i < n; i++) {
    uint64_t begin = offset_of(p, p->near[i]);
    if (begin >= end && begin - end >= bytes && begin - end < best_gap) {
      best = end;
      best_gap = begin - end;
    }
    uint64_t after = begin + p->turns[p->near[i]].bytes;
    if (after > end) end = after;
  }
  return best == UINT64_MAX ? end : best;
}

/* Whether the turn's value may begin at the offset. A donor does not grow, and need not hold what fills up the
 * alignment. */
static bool fits(const planner *p, uint32_t arena, const turn *t, uint64_t offset) {
  const gr_usage *usage = &p->usages[t->value];
  const bool given = arena < p->room->ndonors;
  if (given && usage->first < p->room->donors[arena].from) return false;
  const uint64_t most = given ? p->arenas[arena] : p->room->most, bytes = given ? usage->bytes : t->bytes;
  return offset <= most && bytes <= most - offset;
}

/* Into the first arena that has room for it, or a new one. */
static void place(planner *p, uint32_t count) {
  const turn *t = &p->turns[count];
  for (uint32_t arena = 0; arena < p->narenas; arena++) {
    uint64_t offset = best_offset(p, arena, count);
    if (!fits(p, arena, t, offset)) continue;
    p->spots[t->value] = (gr_spot){arena, offset};
    if (arena >= p->room->ndonors && offset + t->bytes > p->arenas[arena]) p->arenas[arena] = offset + t->bytes;
    return;
  }
  p->spots[t->value] = (gr_spot){p->narenas, 0};
  p->arenas[p->narenas++] = t->bytes;
}

graft_status gr_plan_memory(const gr_usage *usages, uint32_t count, const gr_room *room, gr_spot *spots,
                            uint64_t **arenas, uint32_t *narenas) {
  planner p = {.usages = usages, .spots = spots, .room = room, .narenas = room->ndonors};
  p.turns = calloc(count + 1u, sizeof *p.turns);
  p.near = calloc(count + 1u, sizeof *p.near);
  p.arenas = calloc(room->ndonors + count + 1u, sizeof *p.arenas);
  graft_status status = GRAFT_OK;
  if (!p.turns || !p.near || !p.arenas) {
    status = err_set(GRAFT_OUT_OF_MEMORY, "no host memory for the memory plan of %u values", count);
  }
  for (uint32_t i = 0; !status && i < room->ndonors; i++) p.arenas[i] = room->donors[i].bytes;
  for (uint32_t i = 0; !status && i < count; i++) {
    spots[i] = (gr_spot){GR_NONE, 0};
    p.turns[i] = (turn){(usages[i].bytes + room->alignment - 1) & ~(room->alignment - 1), i};
  }
  if (!status) qsort(p.turns, count, sizeof *p.turns, compare_turns);
  for (uint32_t i = 0; !status && i < count && p.turns[i].bytes; i++) place(&p, i);
  free(p.turns);
  free(p.near);
  if (status) {
    free(p.arenas);
    return status;
  }
  *arenas = p.arenas;
  *narenas = p.narenas;
  return GRAFT_OK;
}
