/* Extension "graft.custom_ops": the rows, and what the plugin says of calls. Numbers are the conformance suite's
 * matter.
 */
#include <string.h>

#include "check.h"
#include "dispatch/custom.h"
#include "dispatch/plan.h"
#include "ops/core/schema_text.h"

static const graft_custom_ops_api *find(ck_session *s) {
  return ck_extension(s, GRAFT_EXTENSION_CUSTOM_OPS, GRAFT_CUSTOM_OPS_VERSION, "the plugin has no ops of its own");
}

/* The table, where it is whole: else check_table says so. */
static const graft_custom_ops_api *whole(ck_session *s) {
  const graft_custom_ops_api *api = find(s);
  if (!api || !GRAFT_HAS(api, graft_custom_ops_api, ops) || (api->count && !api->ops))
    ck_skip("its table is not whole");
  return api;
}

static void check_table(ck_session *s) {
  const graft_custom_ops_api *api = find(s);
  ck_doing("graft_custom_ops_api");
  if (!api || !GRAFT_HAS(api, graft_custom_ops_api, ops)) ck_fail("its table is too short");
  if (api->count && !api->ops) ck_fail("ops is NULL, and count %u", api->count);
  if (api->reserved) ck_fail("reserved is %u; expected 0", api->reserved);
}

_Noreturn static void refused(void *context, uint32_t row, const char *schema, const char *problem) {
  (void)context;
  ck_doing("op %u, %.100s", row, schema);
  ck_fail("%s", problem);
}

static void check_rows(ck_session *s) {
  if (!dsp_custom_review(s->plugin.name, whole(s), refused, NULL)) ck_skip("no host memory");
}

/* Rows that can be read; check_rows has told of others. */
static bool row_at(const graft_custom_ops_api *api, uint32_t i, arena *memory, op_schema *schema) {
  const graft_custom_op *op = api->ops[i];
  bool has = op && op->struct_size >= GRAFT_SIZE_TO(graft_custom_op, slot) && op->schema && op->infer;
  return has && !op_schema_read(op->schema, memory, schema);
}

static bool announces(const graft_custom_ops_api *api, uint32_t op_id) {
  for (uint32_t i = 0; i < api->count; i++)
    if (api->ops[i] && api->ops[i]->op_id == op_id) return true;
  return false;
}

static void check_caps(ck_session *s) {
  const graft_custom_ops_api *api = whole(s);
  if (!s->plugin.op_caps) ck_skip("the plugin has no op_caps");
  for (uint32_t i = 0; i < api->count; i++) {
    graft_op_caps caps = {.struct_size = sizeof caps};
    if (!api->ops[i]) continue;
    CK_CALL(GRAFT_OK, s->plugin.op_caps(s->device, api->ops[i]->op_id, &caps), "op_caps of %.100s",
            api->ops[i]->schema ? api->ops[i]->schema : "an op");
  }
  uint32_t nobody = GRAFT_OP_VENDOR_IDS + 0x00ffffff;
  while (announces(api, nobody)) nobody++;
  graft_op_caps caps = {.struct_size = sizeof caps};
  CK_CALL(GRAFT_UNIMPLEMENTED, s->plugin.op_caps(s->device, nobody, &caps), "op_caps of op 0x%x, which it has not",
          (unsigned)nobody);
}

/* --- infer --- */

enum { CAPACITY = GRAFT_MAX_DIMS, ZONE = 4, MARK = 0x5a5a5a5a };

/* A call of an op: square matrices, numbers and lists of ones, absent where they may be. */
typedef struct call {
  const graft_args *args;
  graft_tensor_desc matrix;
  const graft_tensor_desc *tensors[2];
  int64_t shape[2], strides[2];
} call;

typedef struct answer {
  graft_status status;
  graft_custom_result results[OP_MAX_OUTS], *pointers[OP_MAX_OUTS];
  int64_t shapes[OP_MAX_OUTS][CAPACITY + ZONE];
} answer;

static graft_value value_for(const op_arg *arg) {
  static const int64_t ones[64] = {1, 1, 1};
  static const uint8_t bits[64] = {1};
  static const graft_scalar none;
  static const double zero;
  if (arg->fallback) return *arg->fallback;
  if (arg->flags & OPA_OPTIONAL) return (graft_value){0};
  switch (arg->kind) {
    case OPK_INT: return graft_value_int(1);
    case OPK_FLOAT: return graft_value_float(0.5);
    case OPK_BOOL: return graft_value_bool(true);
    case OPK_SCALAR: return graft_value_scalar(graft_scalar_int(1));
    case OPK_INTS: return graft_value_ints(ones, arg->bytes ? arg->bytes : 2);
    case OPK_FLOATS: return (graft_value){GRAFT_VALUE_FLOATS, 0, {.floats = &zero}};
    case OPK_SCALARS: return (graft_value){GRAFT_VALUE_SCALARS, 0, {.scalars = &none}};
    case OPK_MASK: return (graft_value){GRAFT_VALUE_MASK, arg->bytes, {.mask = bits}};
    case OPK_STR: return (graft_value){GRAFT_VALUE_STR, 0, {.str = ""}};
    case OPK_DTYPE: return (graft_value){GRAFT_VALUE_DTYPE, 0, {.dtype = GRAFT_F32}};
    default: return (graft_value){0};
  }
}

static void describe(ck_session *s, call *c, const graft_custom_op *op, const op_schema *schema, arena *memory) {
  graft_value values[OP_MAX_ARGS];
  dsp_packed packed;
  c->shape[0] = c->shape[1] = c->strides[0] = 3, c->strides[1] = 1;
  c->matrix = (graft_tensor_desc){.struct_size = sizeof c->matrix,
                                  .dl = {.device_type = 12,
                                         .device_id = s->target->device,
                                         .ndim = 2,
                                         .dtype = GRAFT_F32,
                                         .shape = c->shape,
                                         .strides = c->strides}};
  c->tensors[0] = c->tensors[1] = &c->matrix;
  for (uint32_t i = 0; i < schema->nargs; i++) values[i] = value_for(&schema->args[i]);
  if (!dsp_pack_values(memory, schema, values, &packed)) ck_skip("no host memory");
  for (uint32_t i = 0; i < schema->nargs; i++) {
    const graft_tensor_list list = {c->tensors, 2};
    const op_arg *arg = &schema->args[i];
    if (arg->kind == OPK_TENSOR) memcpy(packed.bytes + arg->offset, c->tensors, sizeof *c->tensors);
    if (arg->kind == OPK_TENSORS) memcpy(packed.bytes + arg->offset, &list, sizeof list);
  }
  graft_args head = {schema->args_size, op->op_id, 0};
  memcpy(packed.bytes, &head, sizeof head);
  c->args = (const graft_args *)(const void *)packed.bytes;
}

/* A result as the host takes it. */
static void check_result(uint32_t i, const graft_custom_result *r) {
  if (r->dtype && dt_number(r->dtype) < 0)
    ck_fail("result %u has the dtype 0x%x, which is none", i, (unsigned)r->dtype);
  if (r->ndim < 0 || r->ndim > CAPACITY) ck_fail("result %u has %d dims; there is room for %d", i, r->ndim, CAPACITY);
  for (int32_t d = 0; d < r->ndim; d++)
    if (r->shape[d] < 0) ck_fail("result %u has the size %lld", i, (long long)r->shape[d]);
}

static void ask(ck_session *s, const graft_custom_op *op, const op_schema *schema, const call *c, answer *a) {
  memset(a, 0, sizeof *a);
  for (uint32_t i = 0; i < schema->nrets; i++) {
    for (int k = 0; k < CAPACITY + ZONE; k++) a->shapes[i][k] = MARK;
    a->results[i] =
        (graft_custom_result){.struct_size = sizeof *a->results, .capacity = CAPACITY, .shape = a->shapes[i]};
    a->pointers[i] = &a->results[i];
  }
  ck_doing("infer of %s", schema->name);
  a->status = op->infer(s->plugin.self, c->args, a->pointers, schema->nrets);
  if (a->status && a->status != GRAFT_INVALID_ARGUMENT && a->status != GRAFT_UNIMPLEMENTED)
    ck_fail("expected OK, or INVALID_ARGUMENT where matrices do not fit, got %s", ck_status_text(a->status));
  for (uint32_t i = 0; i < schema->nrets; i++) {
    for (int k = CAPACITY; k < CAPACITY + ZONE; k++)
      if (a->shapes[i][k] != MARK) ck_fail("it wrote a size behind the %d that there is room for", CAPACITY);
    const graft_custom_result *r = &a->results[i];
    if (r->shape != a->shapes[i] || r->capacity != CAPACITY || r->struct_size != sizeof *r)
      ck_fail("it changed what the host had filled in of result %u", i);
    if (!a->status) check_result(i, r);
  }
}

static void check_infer(ck_session *s) {
  const graft_custom_ops_api *api = whole(s);
  for (uint32_t i = 0; i < api->count; i++) {
    static answer first, again;
    arena memory = {0};
    op_schema schema;
    call c;
    if (row_at(api, i, &memory, &schema)) {
      describe(s, &c, api->ops[i], &schema, &memory);
      ask(s, api->ops[i], &schema, &c, &first);
      ask(s, api->ops[i], &schema, &c, &again);
      bool same = first.status == again.status && !memcmp(first.shapes, again.shapes, sizeof first.shapes);
      for (uint32_t r = 0; same && r < schema.nrets; r++)
        same = first.results[r].dtype == again.results[r].dtype && first.results[r].ndim == again.results[r].ndim;
      if (!same) ck_fail("asked twice of one call, it answers differently");
    }
    arena_free(&memory);
  }
}

static const ck_check checks[] = {
    {.name = "custom.table",
     .rule = "The table of \"graft.custom_ops\" is whole.",
     .needs = CK_PLUGIN,
     .run = check_table},
    {.name = "custom.rows",
     .rule =
         "Each row has a schema that is served, an id of the vendors', a name and an id of its own, infer, slot, and "
         "a gradient that fits.",
     .needs = CK_PLUGIN,
     .run = check_rows},
    {.name = "custom.infer",
     .rule =
         "infer answers from dtypes, shapes and numbers alone, the same each time, and writes no more than there is "
         "room for.",
     .needs = CK_PLUGIN,
     .run = check_infer},
    {.name = "custom.caps",
     .rule = "op_caps knows the ids of the table, and no others of the vendors'.",
     .needs = CK_DEVICE,
     .run = check_caps},
};

const ck_table ck_custom_checks = {checks, sizeof checks / sizeof *checks};
