/* Ops: the rows of the families' tables, and how a call finds its row.
 *
 * A family exports one table (kernels/families.c lists them) with a row for each op that it serves. From the rows come
 * the tables of slots that the host sees, the answers of op_caps, and the names in reports. Every slot holds one
 * function, which refuses what is not understood, flags and all, and then calls what the row says. */
#ifndef OCL_OP_H
#define OCL_OP_H

#include <stdbool.h>

#include "generated/ops.h"
#include "graft/abi/plugin.h"

typedef struct ocl_plugin ocl_plugin;
typedef struct ocl_registry ocl_registry;

/* ---- What a schema says (generated/signatures.inc) ---- */

typedef enum ocl_field_kind {
  OCL_FIELD_TENSOR,
  OCL_FIELD_TENSORS,
  OCL_FIELD_OUTPUT, /* a graft_output */
  OCL_FIELD_SCALAR,
  OCL_FIELD_SCALARS,
  OCL_FIELD_INT,
  OCL_FIELD_INTS,
  OCL_FIELD_FLOAT,
  OCL_FIELD_FLOATS,
  OCL_FIELD_BOOL,
  OCL_FIELD_MASK,
  OCL_FIELD_STR,
  OCL_FIELD_DTYPE,
  OCL_FIELD_GENERATOR
} ocl_field_kind;

enum {
  OCL_FIELD_POINTER = 1, /* of a number that may be absent */
  OCL_FIELD_RESULT = 2
};

/* An argument or a result, and where it lies in the args struct. */
typedef struct ocl_field {
  const char *name;
  uint8_t kind, flags;
  uint16_t offset;
  uint16_t values; /* those of a str argument are 1 to this, and 0 where it is absent */
} ocl_field;

typedef struct ocl_signature {
  uint32_t id;
  const char *name;     /* "aten::add.Tensor" */
  const char *family;   /* whose table its row stands in */
  uint8_t table;        /* OCL_CORE ... */
  uint16_t slot, count; /* where the slot lies in its table; how many fields */
  const ocl_field *fields;
} ocl_signature;

enum { OCL_CORE, OCL_PRIMS, OCL_TRAIN, OCL_OP_TABLES };

/* Of any op id; "an op" for one that is not known. */
const char *ocl_op_name(uint32_t op_id);

/* ---- What a family says ---- */

typedef struct ocl_op ocl_op;

/* A call of an op whose row names an engine: one function that serves many ops. */
typedef struct ocl_call {
  const graft_exec *exec;
  const void *args;
  const ocl_op *op;
  const ocl_signature *signature;
  const int8_t *at; /* for each of op->reads which of the signature's fields it is; -1: this op has none of that name */
} ocl_call;

typedef graft_status (*ocl_slot)(const graft_exec *exec, const void *args);
typedef graft_status (*ocl_engine)(const ocl_call *call);

enum { OCL_READS_MAX = 24 };

/* A row. It serves the op by a function of its own (OCL_OP) or by an engine (OCL_ENGINE). */
struct ocl_op {
  uint32_t id;
  ocl_slot slot;
  ocl_engine engine;
  const char *const *reads; /* names of the arguments and results that the engine reads, NULL at the end; or NULL */
  const void *recipe;       /* the engine's own: what makes this op of it */
  const void *fused;        /* an ocl_pointwise_recipe that says what the slot does, for groups of calls; or NULL */
  uint64_t inputs, outputs; /* dtypes of value tensors, OCL_FLOATS and so on */
  graft_cap_flags flags;
};

/* Begins a row: {OCL_OP(topk), .inputs = ...} is served by ocl_op_topk, whose type is checked against the slot's. */
#define OCL_OP(op) .id = OCL_ID_##op, .slot = _Generic(&ocl_op_##op, graft_##op##_fn : (ocl_slot)(void *)&ocl_op_##op)
#define OCL_ENGINE(op, engine_, reads_, recipe_) \
  .id = OCL_ID_##op, .engine = engine_, .reads = reads_, .recipe = recipe_

typedef struct ocl_family {
  const char *name; /* of its folder, too */
  bool is_heavy;    /* its calls take far longer than the elements of their tensors say */
  const ocl_op *ops;
  size_t count;
} ocl_family;

#define OCL_FAMILY_OF(name, heavy, table) \
  const ocl_family ocl_family_##name = {#name, heavy, table, sizeof(table) / sizeof *(table)};
#define OCL_FAMILY(name, table)       OCL_FAMILY_OF(name, false, table)
#define OCL_HEAVY_FAMILY(name, table) OCL_FAMILY_OF(name, true, table)

/* All of them, NULL at the end (kernels/families.c). */
extern const ocl_family *const ocl_families[];

/* ---- What engines read ---- */

/* By the place of a name in op->reads. What is absent, or not an argument of the op at all, is NULL, false or `absent`.
 */
const graft_tensor_desc *ocl_read_tensor(const ocl_call *call, int read);
graft_tensor_list ocl_read_list(const ocl_call *call, int read);
const graft_scalar *ocl_read_scalar(const ocl_call *call, int read);
bool ocl_read_bool(const ocl_call *call, int read);
int64_t ocl_read_int(const ocl_call *call, int read, int64_t absent);
double ocl_read_float(const ocl_call *call, int read, double absent);
graft_int_list ocl_read_ints(const ocl_call *call, int read); /* one int is a list of it */
/* The nth result; NULL: not wanted. */
const graft_tensor_desc *ocl_result(const ocl_call *call, int nth);
/* For engines that go through the fields themselves. */
static inline const void *ocl_field_in(const void *args, const ocl_field *field) {
  return (const char *)args + field->offset;
}

/* A call as an engine gets it, whatever serves it. UNIMPLEMENTED: nothing does, or not all of it is understood. */
graft_status ocl_call_of(const graft_exec *exec, const graft_args *args, ocl_call *call);

/* ---- The registry of an instance ---- */

/* Puts the rows of all families in their places. A row that can't be right, a second one for an op or one in another
 * family's table, is a defect and fails. */
graft_status ocl_registry_open(ocl_plugin *plugin);
void ocl_registry_close(ocl_registry *registry);
const graft_core_ops *ocl_core_ops(const ocl_registry *registry);
const graft_prims_ops *ocl_prims_ops(const ocl_registry *registry);
const graft_train_ops *ocl_train_ops(const ocl_registry *registry);
graft_status ocl_op_caps_of(graft_device *device, uint32_t op_id, graft_op_caps *caps);

#endif
