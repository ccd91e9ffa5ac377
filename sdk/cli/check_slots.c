/* The slots of a plugin's op tables: which there are, and what op_caps says of them. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "tensor/dtype.h"

const void *ck_slot_of(const ck_session *s, const op_schema *schema) {
  const void *tables[] = {[OPT_CORE] = s->plugin.core, [OPT_PRIMS] = s->plugin.prims, [OPT_TRAIN] = s->plugin.train};
  const char *table = tables[schema->table];
  size_t size;
  const void *slot = NULL;
  if (!table || schema->route != OPROUTE_SLOT) return NULL;
  memcpy(&size, table, sizeof size);
  if (schema->slot_offset + sizeof slot <= size) memcpy(&slot, table + schema->slot_offset, sizeof slot);
  return slot;
}

graft_op_caps ck_caps_of(ck_session *s, const op_schema *schema) {
  graft_op_caps caps = {.struct_size = sizeof caps};
  if (!s->plugin.op_caps) return caps;
  CK_CALL(GRAFT_OK, s->plugin.op_caps(s->device, schema->id, &caps), "op_caps of %s", schema->name);
  return caps;
}

const char *ck_dtypes(char *text, uint64_t dtypes) {
  size_t used = 0;
  text[0] = 0;
  for (int number = 0; number < 64 && used < CK_DTYPES_BYTES; number++) {
    if (!(dtypes >> number & 1)) continue;
    graft_dtype dtype = dt_of_number(number);
    const char *comma = used ? ", " : "";
    if (dtype == GRAFT_DTYPE_NONE)
      used += (size_t)snprintf(text + used, CK_DTYPES_BYTES - used, "%snumber %d", comma, number);
    else
      used += (size_t)snprintf(text + used, CK_DTYPES_BYTES - used, "%s%s", comma, graft_dtype_name(dtype));
  }
  return used ? text : "none";
}

/* All inputs that op_caps allows to some op. */
static void say_dtypes(ck_session *s, char *text) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  uint64_t dtypes = 0;
  bool any = !s->plugin.op_caps;
  for (size_t i = 0; i < count; i++) {
    if (!ck_slot_of(s, &all[i])) continue;
    graft_op_caps caps = ck_caps_of(s, &all[i]);
    dtypes |= caps.input_dtypes;
    any |= !caps.input_dtypes;
  }
  if (any)
    snprintf(text, CK_DTYPES_BYTES, "any dtype");
  else
    ck_dtypes(text, dtypes);
}

static void count_slots(ck_session *s) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  unsigned of_table[] = {[OPT_CORE] = 0, [OPT_PRIMS] = 0, [OPT_TRAIN] = 0}, slots = 0;
  char dtypes[CK_DTYPES_BYTES];
  for (size_t i = 0; i < count; i++) {
    if (!ck_slot_of(s, &all[i])) continue;
    of_table[all[i].table]++;
    slots++;
  }
  if (!slots) {
    ck_say("no op has a slot; `graft ops -b` lists how each is run");
    return;
  }
  say_dtypes(s, dtypes);
  ck_say(
      "%u op%s a slot (core %u, prims %u, train %u), by op_caps for %s; the checks call a few of them, with f32; "
      "`graft conformance` judges numbers, and other dtypes",
      slots, slots == 1 ? " has" : "s have", of_table[OPT_CORE], of_table[OPT_PRIMS], of_table[OPT_TRAIN], dtypes);
}

const ck_check ck_slot_count = {"slots", "", CK_DEVICE, .run = count_slots};
