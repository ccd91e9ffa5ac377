/* Work that leaves the device: what GRAFT_FALLBACK says of it, and what was counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/row.h"
#include "dispatch/state.h"

typedef struct fallback_row {
  graft_fallback_info info;
  char device[sizeof((graft_rt_device *)0)->text], dtypes[64]; /* a device may be closed */
} fallback_row;

static pthread_mutex_t rows_lock = PTHREAD_MUTEX_INITIALIZER;
static fallback_row **rows;
static size_t row_count, row_capacity;

static void describe_dtypes(const dsp_plan *plan, const graft_value *args, char *text, size_t room) {
  size_t used = 0;
  *text = 0;
  for (uint32_t i = 0; i < plan->call.schema->nargs && used + 16 < room; i++) {
    const graft_tensor *t = args[i].kind == GRAFT_VALUE_TENSOR ? args[i].as.tensor : NULL;
    if (args[i].kind == GRAFT_VALUE_TENSORS && args[i].count) t = args[i].as.tensors[0];
    if (t) used += (size_t)snprintf(text + used, room - used, "%s%s", used ? "," : "", graft_dtype_name(t->dtype));
  }
}

static fallback_row *row_locked(uint32_t op_id, const char *device, const char *dtypes, bool *fresh) {
  *fresh = false;
  for (size_t i = 0; i < row_count; i++) {
    if (rows[i]->info.op_id == op_id && !strcmp(rows[i]->device, device) && !strcmp(rows[i]->dtypes, dtypes))
      return rows[i];
  }
  if (row_count == row_capacity) {
    size_t capacity = row_capacity ? row_capacity * 2 : 64;
    fallback_row **grown = realloc(rows, capacity * sizeof *rows);
    if (!grown) return NULL;
    rows = grown;
    row_capacity = capacity;
  }
  fallback_row *row = calloc(1, sizeof *row);
  if (!row) return NULL;
  snprintf(row->dtypes, sizeof row->dtypes, "%s", dtypes);
  snprintf(row->device, sizeof row->device, "%s", device);
  row->info = (graft_fallback_info){op_id, row->device, row->dtypes, 0};
  rows[row_count++] = row;
  *fresh = true;
  return row;
}

dsp_fallback dsp_fallback_policy(void) {
  static _Atomic(int) known = -1;
  int policy = atomic_load_explicit(&known, memory_order_relaxed);
  if (policy >= 0) return (dsp_fallback)policy;
  const char *text = err_getenv("GRAFT_FALLBACK");
  policy = DSP_FALLBACK_WARN;
  if (text && !strcmp(text, "allow"))
    policy = DSP_FALLBACK_ALLOW;
  else if (text && !strcmp(text, "error"))
    policy = DSP_FALLBACK_ERROR;
  else if (text && *text && strcmp(text, "warn")) {
    err_log(GRAFT_LOG_WARNING, "GRAFT_FALLBACK=%s is none of allow, warn, error; taken as warn", text);
  }
  atomic_store(&known, policy);
  return (dsp_fallback)policy;
}

static void count_fallback(const dsp_plan *plan, const graft_value *args) {
  char dtypes[64];
  describe_dtypes(plan, args, dtypes, sizeof dtypes);
  const char *device = graft_device_text(plan->device);
  pthread_mutex_lock(&rows_lock);
  bool fresh;
  fallback_row *row = row_locked(plan->call.schema->id, device, dtypes, &fresh);
  if (row) row->info.count++;
  pthread_mutex_unlock(&rows_lock);
  if (fresh && dsp_fallback_policy() == DSP_FALLBACK_WARN) {
    err_log(GRAFT_LOG_WARNING, "%s (%s) is not served by %s and runs in host memory; GRAFT_FALLBACK=error forbids this",
            plan->call.schema->name, dtypes, device);
  }
}

size_t graft_fallbacks(graft_fallback_info *out, size_t row_bytes, size_t capacity) {
  pthread_mutex_lock(&rows_lock);
  for (size_t i = 0; out && i < row_count && i < capacity; i++) {
    row_copy((char *)out + i * row_bytes, row_bytes, &rows[i]->info, sizeof rows[i]->info);
  }
  size_t count = row_count;
  pthread_mutex_unlock(&rows_lock);
  return count;
}

graft_status dsp_allow_fallback(const dsp_plan *plan, const graft_value *args) {
  if (dsp_fallback_policy() == DSP_FALLBACK_ERROR) {
    op_call call = plan->call;
    memcpy(call.args, args, call.schema->nargs * sizeof *args);
    return err_about(GRAFT_UNIMPLEMENTED, call.schema->name,
                     "%s does not serve %s, and GRAFT_FALLBACK=error forbids running it in host memory",
                     graft_device_text(plan->device), op_show_tensors(&call));
  }
  count_fallback(plan, args);
  return GRAFT_OK;
}
