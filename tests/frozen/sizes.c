/* The same plugin as one of an earlier minor (-DSHORTER: structs end before their last optional field) or of a later one
 * (-DLONGER: each has a field more than any host of today knows). Nothing that carries a struct_size may mind. */
#include <graft/abi/plugin.h>

static graft_status plugin_open(const graft_host *host, const char *const *options, const graft_plugin **plugin);
#define graft_plugin_open_v1 plugin_open
#include "plugin.c"
#undef graft_plugin_open_v1

#if defined SHORTER

/* The mandatory functions stand last in the tables of memory and streams, so those have nothing to lose. */
static void resize(instance *self) {
  static graft_core_ops shorter;
  shorter = core;
  shorter.struct_size = sizeof shorter - sizeof(void *);
  self->table.struct_size = offsetof(graft_plugin, extension);
  self->table.core = &shorter;
}

static const graft_plugin *table_of(instance *self) { return &self->table; }

#elif defined LONGER

/* The unknown field leads nowhere: a host that follows it is lost. */
#define LONGER_STRUCT(type)    \
  typedef struct longer_##type { \
    type known;                \
    void *unknown;             \
  } longer_##type

LONGER_STRUCT(graft_plugin);
LONGER_STRUCT(graft_memory_api);
LONGER_STRUCT(graft_stream_api);
LONGER_STRUCT(graft_core_ops);

#define LENGTHEN(to, from)               \
  do {                                   \
    (to).known = (from);                 \
    (to).known.struct_size = sizeof(to); \
    (to).unknown = (void *)(uintptr_t)1; \
  } while (0)

static void resize(instance *self) {
  static longer_graft_memory_api longer_memory;
  static longer_graft_stream_api longer_streams;
  static longer_graft_core_ops longer_core;
  LENGTHEN(longer_memory, memory);
  LENGTHEN(longer_streams, streams);
  LENGTHEN(longer_core, core);
  self->table.memory = &longer_memory.known;
  self->table.stream = &longer_streams.known;
  self->table.core = &longer_core.known;
  self->table.abi_minor = GRAFT_ABI_MINOR + 7;
}

/* Leaked with the instance that it describes: there is no room for it there. */
static const graft_plugin *table_of(instance *self) {
  static longer_graft_plugin tables[64];
  static unsigned used;
  longer_graft_plugin *table = &tables[used++ % 64];
  LENGTHEN(*table, self->table);
  return &table->known;
}

#endif

graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options, const graft_plugin **plugin) {
  const graft_plugin *made;
#ifdef LONGER /* keeps the rules of the minor that it says it is of: since 1.2 options are known or refused */
  if (options && *options) {
    host->set_error(host->context, *options);
    return GRAFT_INVALID_ARGUMENT;
  }
#endif
  graft_status status = plugin_open(host, options, &made);
  if (status) return status;
  resize(made->self);
  *plugin = table_of(made->self);
  return GRAFT_OK;
}
