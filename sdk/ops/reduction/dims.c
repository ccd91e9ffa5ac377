/* Which dims a reduction takes away: where its row says that the arguments stand. */
#include "ops/reduction/reduction.h"

uint32_t red_mask(uint32_t op_id, const graft_value *args, int32_t ndim) {
  const red_row *row = op_row(op_id);
  int at = row->dims;
  uint32_t all = ndim ? (1u << ndim) - 1 : 0;
  if (at < 0 || args[at].kind == GRAFT_VALUE_NONE) return all;
  if (args[at].kind == GRAFT_VALUE_INT) return all & 1u << args[at].as.i;
  uint32_t mask = 0;
  for (uint32_t i = 0; i < args[at].count; i++) mask |= 1u << args[at].as.ints[i];
  return mask;
}

bool red_keepdim(uint32_t op_id, const graft_value *args) {
  const red_row *row = op_row(op_id);
  int at = row->keepdim;
  return at >= 0 && args[at].kind == GRAFT_VALUE_BOOL && args[at].as.i;
}

int64_t red_count(const graft_tensor *self, uint32_t mask) {
  int64_t count = 1;
  for (int32_t i = 0; i < self->ndim; i++) count *= mask >> i & 1 ? self->sizes[i] : 1;
  return count;
}
