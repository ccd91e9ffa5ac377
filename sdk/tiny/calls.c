/* Which ops there are kernels of: the rows of all files that write calls. */
#include "tiny/call.h"

static const tiny_op *const tables[] = {tiny_products, tiny_elements, tiny_lists, tiny_quantized, tiny_reductions};
enum { NTABLES = sizeof tables / sizeof *tables };

const tiny_op *tiny_op_of(const gr_node *node) {
  for (uint32_t t = 0; t < NTABLES; t++) {
    for (const tiny_op *op = tables[t]; op->id; op++) {
      if (op->id == node->schema->id) return op;
    }
  }
  return NULL;
}

void tiny_op_names(char *text, size_t room) {
  size_t used = 0;
  for (uint32_t t = 0; t < NTABLES; t++) {
    for (const tiny_op *op = tables[t]; op->id && used < room; op++)
      used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", op_schema_of(op->id)->name);
  }
}
