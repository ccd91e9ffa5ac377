/* The plugin "mutants": the reference plugin's tables behind slots that all come here first. Option bug=NAME plants one
 * bug of bugs.c; several of it are several plugins in one, which have a case in turn (conformance/run/arithmetics.h);
 * without it, everything is right. Option without=OP leaves the slot of an op empty. */
#include <string.h>

#include "conformance/mutants/bugs.h"
#include "conformance/run/arithmetics.h"
#include "ops/core/ref.h"

enum { MUT_MOST_PLANTED = 8 };

static const mut_bug *planted_bugs[MUT_MOST_PLANTED], *planted; /* and the one whose turn it is */
static uint32_t planted_count, planted_op;
static const op_schema *left_out;
static graft_status (*reference_extension)(void *self, const char *name, uint32_t minimum, const void **table);

static graft_status mut_enter(const graft_exec *exec, const graft_args *args) {
  mut_call call = {exec, args, op_schema_of(args->op_id), mut_reference_slot(args->op_id)};
  if (!call.inner) return GRAFT_UNIMPLEMENTED;
  if (planted) ref_mode = planted->mode;
  if (planted && planted->run && args->op_id == planted_op) return planted->run(&call);
  return call.inner(exec, args);
}

/* A table of the same slots, each leading to mut_enter. All slots have one calling convention: two pointers. */
static void mut_wrap(void *table, uint32_t which) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  mut_slot enter = mut_enter;
  for (size_t i = 0; i < count; i++)
    if (all[i].table == which && mut_reference_slot(all[i].id))
      memcpy((char *)table + all[i].slot_offset, &enter, sizeof enter);
  if (left_out && left_out->table == which) memset((char *)table + left_out->slot_offset, 0, sizeof enter);
}

static const char *mut_choose(uint32_t which) {
  planted = planted_bugs[which];
  planted_op = planted->op ? op_schema_find(planted->op)->id : 0;
  return planted->name;
}

static graft_status mut_plant(const char *name) {
  for (size_t i = 0; i < mut_bug_count && planted_count < MUT_MOST_PLANTED; i++) {
    if (strcmp(mut_bugs[i].name, name) != 0) continue;
    planted_bugs[planted_count] = &mut_bugs[i];
    mut_choose(planted_count++);
    return GRAFT_OK;
  }
  return GRAFT_INVALID_ARGUMENT;
}

static graft_status mut_extension(void *self, const char *name, uint32_t minimum, const void **table) {
  static cf_arithmetics arithmetics = {.struct_size = sizeof arithmetics, .choose = mut_choose};
  arithmetics.count = planted_count;
  if (strcmp(name, CF_ARITHMETICS) == 0 && planted_count > 1) return *table = &arithmetics, GRAFT_OK;
  return reference_extension ? reference_extension(self, name, minimum, table) : GRAFT_UNIMPLEMENTED;
}

/* What is wrong with it; NULL: nothing. */
static const char *mut_option(const char *option) {
  if (strncmp(option, "bug=", 4) == 0)
    return mut_plant(option + 4) == GRAFT_OK ? NULL : "no such bug; see conformance/mutants/bugs.c";
  if (strncmp(option, "without=", 8) != 0) return NULL;
  left_out = op_schema_find(option + 8);
  return left_out ? NULL : "without=OP: no such op";
}

GRAFT_EXPORT graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options,
                                               const graft_plugin **plugin) {
  static graft_plugin made;
  static graft_core_ops core;
  static graft_train_ops train;
  const graft_plugin *inner;
  planted = NULL, planted_count = 0;
  for (; options && *options; options++) {
    const char *problem = mut_option(*options);
    if (!problem) continue;
    host->set_error(host->context, problem);
    return GRAFT_INVALID_ARGUMENT;
  }
  graft_status s = ref_plugin_open(host, NULL, &inner);
  if (s != GRAFT_OK) return s;
  made = *inner;
  made.name = "mutants";
  reference_extension = made.extension;
  made.extension = mut_extension;
  core = *inner->core, train = *inner->train;
  mut_wrap(&core, OPT_CORE);
  mut_wrap(&train, OPT_TRAIN);
  made.core = &core, made.train = &train;
  *plugin = &made;
  return GRAFT_OK;
}
