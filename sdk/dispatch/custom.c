/* The table of the ops that plugins bring; see custom.h. */
#include "dispatch/custom.h"

#include <stddef.h>
#include <string.h>

#include "base/row.h"
#include "graft/custom_ops.h"

const dsp_custom *dsp_custom_of(const op_schema *schema) {
  if (schema->table != OPT_CUSTOM) return NULL;
  return (const dsp_custom *)(const void *)((const char *)schema - offsetof(dsp_custom, schema));
}

uint32_t dsp_plugin_op_id(const op_schema *schema) {
  const dsp_custom *custom = dsp_custom_of(schema);
  return custom ? custom->op_id : schema->id;
}

static bool is_open(graft_rt_backend *backend) {
  pthread_mutex_lock(&backend->lock);
  bool open = !backend->closed;
  pthread_mutex_unlock(&backend->lock);
  return open;
}

const dsp_custom_row *dsp_custom_row_for(const dsp_custom *custom, const graft_rt_backend *backend) {
  for (const dsp_custom_row *row = atomic_load(&custom->rows); row; row = row->next) {
    if (row->backend == backend || (backend->is_reference && is_open(row->backend))) return row;
  }
  return NULL;
}

op_slot dsp_custom_slot(const graft_rt_backend *backend, const op_schema *schema) {
  const dsp_custom *custom = dsp_custom_of(schema);
  if (backend->is_reference) return custom->def.reference;
  const dsp_custom_row *row = dsp_custom_row_for(custom, backend);
  op_slot slot = NULL;
  if (row) memcpy(&slot, &row->op.slot, sizeof slot);
  return slot;
}

size_t graft_custom_ops(graft_custom_op_info *rows, size_t row_bytes, size_t capacity) {
  const op_schema *schema;
  uint32_t n = 0;
  for (; (schema = op_schema_custom(n)); n++) {
    const dsp_custom *custom = dsp_custom_of(schema);
    const graft_custom_op_info info = {.op_id = schema->id,
                                       .gradient_id = custom->gradient ? custom->gradient->schema.id : 0,
                                       .schema = schema->schema,
                                       .plugin = custom->plugin,
                                       .gradient_of = custom->gradient_of,
                                       .has_reference = custom->has_reference};
    if (rows && n < capacity) row_copy((char *)rows + n * row_bytes, row_bytes, &info, sizeof info);
  }
  return n;
}
