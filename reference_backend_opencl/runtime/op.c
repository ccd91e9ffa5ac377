/* The registry of ops: see op.h. */
#include <stdlib.h>
#include <string.h>

#include "runtime/ocl.h"

#include "generated/signatures.inc"

enum { SIGNATURES = sizeof signatures / sizeof *signatures };

/* ---- Ids ---- */

/* The ids of a table follow each other from the table's first one on. */
enum { IDS_OF_A_TABLE = 10000 };

typedef struct entry {
  const ocl_op *op; /* NULL: not served */
  bool is_heavy;    /* as its family is */
  const ocl_signature *signature;
  int8_t at[OCL_READS_MAX];
} entry;

struct ocl_registry {
  graft_core_ops core;
  graft_prims_ops prims;
  graft_train_ops train;
  entry entries[OCL_OP_TABLES][OCL_OP_NUMBERS];
};

static const ocl_signature *signature_of(uint32_t op_id) {
  size_t low = 0, high = SIGNATURES;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (signatures[middle].id < op_id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < SIGNATURES && signatures[low].id == op_id ? &signatures[low] : NULL;
}

const char *ocl_op_name(uint32_t op_id) {
  const ocl_signature *signature = signature_of(op_id);
  return signature ? signature->name : "an op";
}

/* NULL for an id that no row can have. */
static entry *entry_of(ocl_registry *registry, uint32_t op_id) {
  uint32_t table = op_id / IDS_OF_A_TABLE, number = op_id % IDS_OF_A_TABLE;
  return table < OCL_OP_TABLES && number < OCL_OP_NUMBERS ? &registry->entries[table][number] : NULL;
}

/* ---- What engines read ---- */

/* The op's argument of that name, if it has one of that kind. */
static const ocl_field *field_read(const ocl_call *call, int read, ocl_field_kind kind) {
  const ocl_field *field = call->at[read] < 0 ? NULL : &call->signature->fields[call->at[read]];
  return field && field->kind == kind ? field : NULL;
}

/* Where the value lies; NULL where it is absent. */
static const void *value_read(const ocl_call *call, int read, ocl_field_kind kind) {
  const ocl_field *field = field_read(call, read, kind);
  const void *place = field ? ocl_field_in(call->args, field) : NULL;
  return field && field->flags & OCL_FIELD_POINTER ? *(const void *const *)place : place;
}

const graft_tensor_desc *ocl_read_tensor(const ocl_call *call, int read) {
  const graft_tensor_desc *const *place = value_read(call, read, OCL_FIELD_TENSOR);
  return place ? *place : NULL;
}

graft_tensor_list ocl_read_list(const ocl_call *call, int read) {
  const graft_tensor_list *place = value_read(call, read, OCL_FIELD_TENSORS);
  return place ? *place : (graft_tensor_list){0};
}

const graft_scalar *ocl_read_scalar(const ocl_call *call, int read) {
  const graft_scalar *const *place = value_read(call, read, OCL_FIELD_SCALAR);
  return place ? *place : NULL;
}

bool ocl_read_bool(const ocl_call *call, int read) {
  const uint8_t *place = value_read(call, read, OCL_FIELD_BOOL);
  return place && *place;
}

int64_t ocl_read_int(const ocl_call *call, int read, int64_t absent) {
  const int64_t *place = value_read(call, read, OCL_FIELD_INT);
  return place ? *place : absent;
}

double ocl_read_float(const ocl_call *call, int read, double absent) {
  const double *place = value_read(call, read, OCL_FIELD_FLOAT);
  return place ? *place : absent;
}

graft_int_list ocl_read_ints(const ocl_call *call, int read) {
  const int64_t *one = value_read(call, read, OCL_FIELD_INT);
  const graft_int_list *list = value_read(call, read, OCL_FIELD_INTS);
  return list ? *list : (graft_int_list){one, one ? 1 : 0};
}

const graft_tensor_desc *ocl_result(const ocl_call *call, int nth) {
  const ocl_field *field = call->signature->fields;
  while (!(field->flags & OCL_FIELD_RESULT)) field++;
  return *(const graft_tensor_desc *const *)ocl_field_in(call->args, field + nth);
}

/* ---- The one function in every slot ---- */

enum { MUST_UNDERSTAND = 0xffff };
static const graft_exec_flags exec_flags_known = GRAFT_EXEC_DETERMINISTIC;

static bool is_understood(const graft_tensor_desc *desc, graft_tensor_flags known) {
  return !desc || !(desc->flags & MUST_UNDERSTAND & ~known);
}

static graft_status check_list(const graft_tensor_list *list, graft_tensor_flags known) {
  for (uint64_t i = 0; i < list->count; i++) {
    if (!is_understood(list->items[i], known)) return GRAFT_INVALID_ARGUMENT;
  }
  return GRAFT_OK;
}

static graft_status check_field(const void *args, const ocl_field *field, graft_tensor_flags known) {
  const void *place = ocl_field_in(args, field);
  switch ((ocl_field_kind)field->kind) {
    case OCL_FIELD_TENSOR:
      return is_understood(*(const graft_tensor_desc *const *)place, known) ? GRAFT_OK : GRAFT_INVALID_ARGUMENT;
    case OCL_FIELD_TENSORS: return check_list(place, known);
    case OCL_FIELD_STR: return *(const uint32_t *)place <= field->values ? GRAFT_OK : GRAFT_UNIMPLEMENTED;
    case OCL_FIELD_GENERATOR: {
      const graft_philox *philox = *(const graft_philox *const *)place;
      return philox && GRAFT_HAS(philox, graft_philox, state) ? GRAFT_UNIMPLEMENTED : GRAFT_OK;
    }
    default: return GRAFT_OK;
  }
}

/* Whether all that must be understood is, wherever in a call it stands. */
static graft_status check(const graft_exec *exec, const void *args, const entry *entry) {
  const ocl_plugin *plugin = exec->device->plugin;
  const char *name = entry->signature->name;
  graft_tensor_flags known = entry->op->flags & GRAFT_CAP_HOST_VALUE ? GRAFT_TENSOR_HOST_VALUE : 0;
  if (exec->flags & MUST_UNDERSTAND & ~exec_flags_known) {
    return ocl_fail(plugin, GRAFT_INVALID_ARGUMENT, "%s: exec flags 0x%x, of which only 0x%x are understood", name,
                    (unsigned)exec->flags, (unsigned)exec_flags_known);
  }
  for (uint16_t i = 0; i < entry->signature->count; i++) {
    const ocl_field *field = &entry->signature->fields[i];
    graft_status status = check_field(args, field, known);
    if (status == GRAFT_INVALID_ARGUMENT) {
      return ocl_fail(plugin, status, "%s: a flag of %s that must be understood is not: only 0x%x are", name,
                      field->name, (unsigned)known);
    }
    if (status != GRAFT_OK) return status;
  }
  return GRAFT_OK;
}

graft_status ocl_call_of(const graft_exec *exec, const graft_args *args, ocl_call *call) {
  const entry *entry = entry_of(exec->device->plugin->registry, args->op_id);
  if (!entry || !entry->op) return GRAFT_UNIMPLEMENTED;
  *call = (ocl_call){exec, args, entry->op, entry->signature, entry->at};
  return check(exec, args, entry);
}

/* ---- Small calls ---- */

/* Elements of all tensors of a call that is small. */
enum { SMALL_CALL = 2 * OCL_SMALL };

static int64_t elements_of(const void *args, const ocl_field *field) {
  const void *place = ocl_field_in(args, field);
  int64_t sum = 0;
  if (field->kind == OCL_FIELD_TENSOR) {
    const graft_tensor_desc *desc = *(const graft_tensor_desc *const *)place;
    return desc ? ocl_elements(desc) : 0;
  }
  if (field->kind != OCL_FIELD_TENSORS) return 0;
  const graft_tensor_list *list = place;
  for (uint64_t i = 0; i < list->count && sum <= SMALL_CALL; i++)
    sum += list->items[i] ? ocl_elements(list->items[i]) : 0;
  return sum;
}

/* Only asked where programs may be made. */
static bool is_small(const graft_exec *exec, const void *args, const entry *entry) {
  int64_t sum = 0;
  if (exec->memo || entry->is_heavy || !exec->device->optimizes_slowly) return false;
  for (uint16_t i = 0; i < entry->signature->count && sum <= SMALL_CALL; i++)
    sum += elements_of(args, &entry->signature->fields[i]);
  return sum <= SMALL_CALL;
}

static graft_status enter(const graft_exec *exec, const graft_args *args) {
  ocl_call call;
  graft_status status = ocl_call_of(exec, args, &call);
  if (status != GRAFT_OK) return status;
  const bool small = is_small(exec, args, entry_of(exec->device->plugin->registry, args->op_id));
  if (small) ocl_program_for_small_calls(true);
  status = call.op->slot ? call.op->slot(exec, args) : call.op->engine(&call);
  if (small) ocl_program_for_small_calls(false);
  return status;
}

/* ---- Rows ---- */

static graft_status refuse(const ocl_plugin *plugin, const ocl_signature *signature, const char *what) {
  return ocl_fail(plugin, GRAFT_INTERNAL, "%s: %s", signature->name, what);
}

static int8_t field_of(const ocl_signature *signature, const char *name) {
  for (uint16_t i = 0; i < signature->count; i++) {
    if (strcmp(signature->fields[i].name, name) == 0) return (int8_t)i;
  }
  return -1;
}

static graft_status add(ocl_plugin *plugin, const ocl_family *family, const ocl_op *op) {
  ocl_registry *registry = plugin->registry;
  void *const tables[OCL_OP_TABLES] = {&registry->core, &registry->prims, &registry->train};
  const ocl_signature *signature = signature_of(op->id);
  entry *entry = entry_of(registry, op->id);
  if (strcmp(signature->family, family->name) != 0) {
    return ocl_fail(plugin, GRAFT_INTERNAL, "%s: its row is in the family %s, its description says %s", signature->name,
                    family->name, signature->family);
  }
  if (entry->op) return refuse(plugin, signature, "two rows");
  *entry = (struct entry){.op = op, .is_heavy = family->is_heavy, .signature = signature};
  for (int i = 0; op->reads && op->reads[i]; i++) {
    if (i == OCL_READS_MAX) return refuse(plugin, signature, "its engine reads more than OCL_READS_MAX arguments");
    entry->at[i] = field_of(signature, op->reads[i]);
  }
  graft_status (*slot)(const graft_exec *, const graft_args *) = enter;
  memcpy((char *)tables[signature->table] + signature->slot, &slot, sizeof slot);
  return GRAFT_OK;
}

graft_status ocl_registry_open(ocl_plugin *plugin) {
  ocl_registry *registry = plugin->registry = calloc(1, sizeof *registry);
  if (!registry) return GRAFT_OUT_OF_MEMORY;
  registry->core.struct_size = sizeof registry->core;
  registry->prims.struct_size = sizeof registry->prims;
  registry->train.struct_size = sizeof registry->train;
  graft_status status = GRAFT_OK;
  for (int f = 0; ocl_families[f] && status == GRAFT_OK; f++) {
    const ocl_family *family = ocl_families[f];
    for (size_t i = 0; i < family->count && status == GRAFT_OK; i++) status = add(plugin, family, &family->ops[i]);
  }
  return status;
}

void ocl_registry_close(ocl_registry *registry) {
  free(registry);
}

const graft_core_ops *ocl_core_ops(const ocl_registry *registry) {
  return &registry->core;
}

const graft_prims_ops *ocl_prims_ops(const ocl_registry *registry) {
  return &registry->prims;
}

const graft_train_ops *ocl_train_ops(const ocl_registry *registry) {
  return &registry->train;
}

/* ---- Capabilities ---- */

graft_status ocl_op_caps_of(graft_device *device, uint32_t op_id, graft_op_caps *out) {
  const entry *entry = entry_of(device->plugin->registry, op_id);
  if (!entry || !entry->op) return GRAFT_UNIMPLEMENTED;
  uint64_t served = device->has_f64 ? UINT64_MAX : ~(OCL_BIT(F64) | OCL_BIT(C128));
  graft_op_caps mine = {
      .struct_size = out->struct_size,
      .input_dtypes = entry->op->inputs & served,
      .output_dtypes = entry->op->outputs & served,
      /* In-order queues and fixed orders of summation: every op here gives the same bits each time. */
      .flags = entry->op->flags | GRAFT_CAP_DETERMINISTIC,
      .exec_flags_known = exec_flags_known,
      .max_ndim = OCL_DIMS_MAX,
  };
  memcpy(out, &mine, out->struct_size < sizeof mine ? out->struct_size : sizeof mine); /* what fits */
  return GRAFT_OK;
}
