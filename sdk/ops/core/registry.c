/* Finding an op's row by its id. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "ops/core/table.h"

/* Ids count from 1 in each table of the ABI: core below 10000, prims from 10001, train from 20001. */
enum { RANGE = 10000, RANGES = 3, RANGE_ROOM = 1024 };
static const op_def *by_id[RANGES][RANGE_ROOM];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const op_def **place(uint32_t op_id) {
  uint32_t range = op_id / RANGE, row = op_id % RANGE;
  return range < RANGES && row < RANGE_ROOM ? &by_id[range][row] : NULL;
}

static void build(void) {
  for (const op_table *const *table = op_hooks.tables; *table; table++) {
    for (uint32_t i = 0; i < (*table)->count; i++) {
      const op_def **at = place((*table)->defs[i].op_id);
      if (!at || *at) abort(); /* RANGE_ROOM is too small, or an id has two rows */
      *at = &(*table)->defs[i];
    }
  }
}

/* Ops that plugins bring. */
static _Atomic(const op_def *) custom[OP_MAX_CUSTOM];

void op_def_add(const op_def *def) {
  atomic_store_explicit(&custom[def->op_id - GRAFT_OP_VENDOR_IDS], def, memory_order_release);
}

static const op_def *custom_of(uint32_t number) {
  return number < OP_MAX_CUSTOM ? atomic_load_explicit(&custom[number], memory_order_acquire) : NULL;
}

const op_def *op_def_of(uint32_t op_id) {
  if (op_id >= GRAFT_OP_VENDOR_IDS) return custom_of(op_id - GRAFT_OP_VENDOR_IDS);
  pthread_once(&once, build);
  const op_def **at = place(op_id);
  return at ? *at : NULL;
}
