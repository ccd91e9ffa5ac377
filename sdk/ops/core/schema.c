/* The op descriptions as tables, and finding a row. */
#include "ops/core/schema.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "graft/abi/plugin.h"
#include "ops/generated/schema.inc"

enum { HASH_SIZE = 2048 };
static uint16_t name_table[HASH_SIZE]; /* row + 1, open addressing */
static pthread_once_t names_once = PTHREAD_ONCE_INIT;

/* FNV-1a over the name with "::" read as '.', so that both spellings find the same row. */
static uint32_t name_hash(const char *name, size_t length) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < length; i++) {
    unsigned char ch = (unsigned char)name[i];
    if (ch == ':') {
      if (i + 1 < length && name[i + 1] == ':') i++;
      ch = '.';
    }
    hash = (hash ^ ch) * 16777619u;
  }
  return hash;
}

static bool name_equal(const char *row, const char *name, size_t length) {
  size_t i = 0;
  for (; *row && i < length; row++, i++) {
    if (*row == ':') {
      row++;
      if (name[i] == '.') continue;
      if (name[i] == ':' && i + 1 < length && name[i + 1] == ':') {
        i++;
        continue;
      }
      return false;
    }
    if (*row != name[i]) return false;
  }
  return !*row && i == length;
}

static void names_build(void) {
  for (size_t row = 0; row < OP_SCHEMA_COUNT; row++) {
    const char *name = op_schemas[row].name;
    uint32_t at = name_hash(name, strlen(name)) % HASH_SIZE;
    while (name_table[at]) at = (at + 1) % HASH_SIZE;
    name_table[at] = (uint16_t)(row + 1);
  }
}

/* --- ops that plugins bring --- */

static _Atomic(const op_schema *) custom[OP_MAX_CUSTOM];

const op_schema *op_schema_custom(uint32_t number) {
  return number < OP_MAX_CUSTOM ? atomic_load_explicit(&custom[number], memory_order_acquire) : NULL;
}

void op_schema_number(op_schema *schema, uint32_t number) {
  schema->id = GRAFT_OP_VENDOR_IDS + number;
  schema->table = OPT_CUSTOM;
  schema->slot_offset = number * (uint32_t)sizeof(void (*)(void));
}

void op_schema_publish(const op_schema *schema) {
  atomic_store_explicit(&custom[schema->id - GRAFT_OP_VENDOR_IDS], schema, memory_order_release);
}

static const op_schema *find_custom(const char *name, size_t length) {
  const op_schema *schema;
  for (uint32_t i = 0; (schema = op_schema_custom(i)); i++) {
    if (name_equal(schema->name, name, length)) return schema;
  }
  return NULL;
}

size_t op_schema_places(void) {
  return OP_SCHEMA_COUNT + OP_MAX_CUSTOM;
}

size_t op_schema_place(const op_schema *schema) {
  if (schema->table == OPT_CUSTOM) return OP_SCHEMA_COUNT + (schema->id - GRAFT_OP_VENDOR_IDS);
  return (size_t)(schema - op_schemas);
}

/* --- finding --- */

const op_schema *op_schema_find(const char *name) {
  pthread_once(&names_once, names_build);
  size_t length = strlen(name);
  static const char suffix[] = ".default";
  if (length > sizeof suffix - 1 && !strcmp(name + length - (sizeof suffix - 1), suffix)) length -= sizeof suffix - 1;
  for (uint32_t at = name_hash(name, length) % HASH_SIZE; name_table[at]; at = (at + 1) % HASH_SIZE) {
    const op_schema *schema = &op_schemas[name_table[at] - 1];
    if (name_equal(schema->name, name, length)) return schema;
  }
  return find_custom(name, length);
}

const op_schema *op_schema_of(uint32_t op_id) {
  if (op_id >= GRAFT_OP_VENDOR_IDS) return op_schema_custom(op_id - GRAFT_OP_VENDOR_IDS);
  uint32_t table = op_id / OP_TABLE_IDS;
  if (table >= sizeof op_first_rows / sizeof *op_first_rows) return NULL;
  size_t row = op_first_rows[table] + op_id % OP_TABLE_IDS - 1; /* number 0 is nobody's: the id then differs */
  return row < OP_SCHEMA_COUNT && op_schemas[row].id == op_id ? &op_schemas[row] : NULL;
}

const op_schema *op_schema_all(size_t *count) {
  *count = OP_SCHEMA_COUNT;
  return op_schemas;
}

uint32_t graft_op_find(const char *name) {
  if (err_is_null(name, __func__, "name")) return 0;
  const op_schema *schema = op_schema_find(name);
  return schema ? schema->id : 0;
}

bool op_schema_has_indices(const op_schema *schema) {
  for (uint32_t i = 0; i < schema->nargs; i++)
    if (schema->args[i].index) return true;
  return false;
}
