/* Which families there are, and finding an op's rules by id. A new family adds one line here. */
#include <pthread.h>

#include "ops/families.h"
#include "ops/op.h"

static const op_family *const families[] = {
#define FAMILY(name) &ops_##name,
    OP_FAMILIES(FAMILY)
#undef FAMILY
};

/* Ids count from 1 in each table: core below 10000, prims from 10001, train from 20001. */
enum { TABLE_STRIDE = 10000, TABLES = 3, TABLE_ROOM = 1024 };
static const op_def *by_id[TABLES][TABLE_ROOM];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const op_def **place(uint32_t op_id) {
  uint32_t table = op_id / TABLE_STRIDE, row = op_id % TABLE_STRIDE;
  return table < TABLES && row < TABLE_ROOM ? &by_id[table][row] : NULL;
}

static void build(void) {
  for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
    for (uint32_t i = 0; i < families[f]->count; i++) {
      const op_def **at = place(families[f]->defs[i].op_id);
      if (at) *at = &families[f]->defs[i];
    }
  }
}

const op_def *op_def_of(uint32_t op_id) {
  pthread_once(&once, build);
  const op_def **at = place(op_id);
  return at ? *at : NULL;
}
