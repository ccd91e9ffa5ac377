/* Reading the extension "graft.custom_ops" of a plugin that is being opened. A row that is wrong is refused alone, with
 * a line in the log: an op of a newer plugin's may be beyond this host. */
#include <stdlib.h>
#include <string.h>

#include "dispatch/custom.h"
#include "ops/core/schema_text.h"

/* A row on its way into the table. */
typedef struct candidate {
  graft_custom_op op;
  dsp_custom *made;        /* new; NULL: known or refused */
  const dsp_custom *known; /* the plugin was opened before */
  dsp_custom_row *row;     /* to be published with it, so that publishing can't fail */
} candidate;

typedef struct adoption {
  const char *plugin;
  candidate *all;
  uint32_t count;
  uint32_t made; /* how many rows are new */
  dsp_custom_tell_fn tell;
  void *context;
} adoption;

static uint32_t published; /* opening is serialised */

static const dsp_custom *custom_at(const candidate *c) {
  return c->made ? c->made : c->known;
}

static void free_made(candidate *c) {
  if (!c->made) return;
  arena_free(&c->made->memory);
  free(c->made);
  c->made = NULL;
}

/* With this thread's error text. */
static void refuse(const adoption *a, uint32_t i) {
  candidate *c = &a->all[i];
  a->tell(a->context, i, c->op.schema ? c->op.schema : "without a schema", graft_last_error());
  free_made(c);
  free(c->row);
  *c = (candidate){.op = c->op};
}

/* --- one row --- */

static graft_status copy_row(const graft_custom_op *from, graft_custom_op *to) {
  if (!from) return err_set(GRAFT_INVALID_ARGUMENT, "the pointer to it is NULL");
  size_t given = from->struct_size;
  if (given < GRAFT_SIZE_TO(graft_custom_op, slot))
    return err_set(GRAFT_INVALID_ARGUMENT, "its struct_size is %zu; set it to sizeof(graft_custom_op)", given);
  memcpy(to, from, given < sizeof *to ? given - given % sizeof(void *) : sizeof *to);
  if (!to->schema) return err_set(GRAFT_INVALID_ARGUMENT, "its schema is NULL");
  if (!to->infer) return err_set(GRAFT_INVALID_ARGUMENT, "infer is NULL");
  if (!to->slot) return err_set(GRAFT_INVALID_ARGUMENT, "slot is NULL");
  if (to->op_id >= GRAFT_OP_VENDOR_IDS) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT, "its id is %u; those of vendors begin at GRAFT_OP_VENDOR_IDS, 0x%x", to->op_id,
                 (unsigned)GRAFT_OP_VENDOR_IDS);
}

static graft_status check_unique(const adoption *a, uint32_t i, const op_schema *schema) {
  for (uint32_t j = 0; j < i; j++) {
    const dsp_custom *other = custom_at(&a->all[j]);
    if (!other) continue;
    if (a->all[j].op.op_id == a->all[i].op.op_id)
      return err_set(GRAFT_INVALID_ARGUMENT, "%s has the id 0x%x, too", other->schema.name, (unsigned)other->op_id);
    if (!strcmp(other->schema.name, schema->name))
      return err_set(GRAFT_INVALID_ARGUMENT, "two ops are called %s; an overload needs a name, %s.other", schema->name,
                     schema->name);
  }
  return GRAFT_OK;
}

/* The same op of the same plugin, or an error. */
static graft_status match_known(const adoption *a, candidate *c, const dsp_custom *known) {
  uint32_t gradient_id = known->gradient ? known->gradient->op_id : 0;
  if (strcmp(known->plugin, a->plugin) != 0)
    return err_set(GRAFT_INVALID_ARGUMENT, "%s is an op of the plugin %s", known->schema.name, known->plugin);
  if (strcmp(known->schema.schema, c->op.schema) != 0 || known->op_id != c->op.op_id ||
      gradient_id != c->op.gradient_id)
    return err_set(GRAFT_INVALID_ARGUMENT, "the plugin was opened before, and %s was another op then: %s",
                   known->schema.name, known->schema.schema);
  c->known = known;
  return GRAFT_OK;
}

static char *kept_text(arena *memory, const char *text) {
  return text ? arena_copy(memory, text, strlen(text) + 1) : NULL;
}

static graft_status make_custom(const adoption *a, candidate *c) {
  dsp_custom *made = c->made = calloc(1, sizeof *made);
  if (!made) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for it");
  graft_status status = op_schema_read(c->op.schema, &made->memory, &made->schema);
  if (status) return status;
  made->plugin = kept_text(&made->memory, a->plugin);
  made->cases = kept_text(&made->memory, c->op.cases);
  if (!made->plugin || (c->op.cases && !made->cases)) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for it");
  made->op_id = c->op.op_id;
  made->roundings = c->op.roundings;
  made->has_reference = c->op.reference != NULL;
  memset(made->gradient_of, -1, sizeof made->gradient_of);
  made->schema.table = OPT_CUSTOM;
  return GRAFT_OK;
}

static graft_status read_row(adoption *a, uint32_t i, const graft_custom_op *row) {
  candidate *c = &a->all[i];
  graft_status status = copy_row(row, &c->op);
  if (!status) status = make_custom(a, c);
  if (!status) status = check_unique(a, i, &c->made->schema);
  if (status) return status;
  c->row = calloc(1, sizeof *c->row);
  if (!c->row) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for it");
  const op_schema *known = op_schema_find(c->made->schema.name);
  if (known) {
    free_made(c);
    return match_known(a, c, dsp_custom_of(known));
  }
  if (published + a->made >= OP_MAX_CUSTOM)
    return err_set(GRAFT_OUT_OF_MEMORY, "there is no room for it; a process has at most %d custom ops", OP_MAX_CUSTOM);
  a->made++;
  return GRAFT_OK;
}

/* --- gradients --- */

static bool same_type(const op_arg *a, const op_arg *b) {
  const uint8_t absence = OPA_OPTIONAL | OPA_OPTIONAL_ITEMS;
  return a->kind == b->kind && (a->flags & absence) == (b->flags & absence) && a->bytes == b->bytes;
}

/* Keyword-only arguments are found by their names, from Python. */
static bool same_argument(const op_arg *a, const op_arg *b) {
  bool fits = a->flags & OPA_KWARG ? !strcmp(a->name, b->name) : !(b->flags & OPA_KWARG);
  return fits && same_type(a, b);
}

/* It takes a cotangent for each result and then the op's arguments. */
static graft_status check_signature(const op_schema *op, const op_schema *gradient) {
  bool fits = gradient->nargs == op->nrets + op->nargs;
  for (uint32_t i = 0; fits && i < op->nrets; i++) fits = gradient->args[i].kind == OPK_TENSOR;
  for (uint32_t i = 0; fits && i < op->nargs; i++) fits = same_argument(&op->args[i], &gradient->args[op->nrets + i]);
  if (fits) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "its gradient is %s; expected one that takes %u Tensor%s, a cotangent for each result, and then the "
                 "arguments of the op, keyword-only ones with the same names",
                 gradient->schema, op->nrets, op->nrets == 1 ? "" : "s");
}

static bool is_named(const op_ret *ret) {
  return !strncmp(ret->name, "grad_", 5);
}

static graft_status map_named(dsp_custom *custom, const op_schema *gradient) {
  memset(custom->gradient_of, -1, sizeof custom->gradient_of); /* linking begins anew when a row was refused */
  for (uint32_t r = 0; r < gradient->nrets; r++) {
    const op_ret *ret = &gradient->rets[r];
    int arg = is_named(ret) ? op_arg_named(&custom->schema, ret->name + 5) : -1;
    if (arg < 0 || custom->schema.args[arg].kind != OPK_TENSOR)
      return err_set(GRAFT_INVALID_ARGUMENT, "the result %s of its gradient %s names no Tensor argument of it",
                     ret->name, gradient->name);
    if (custom->gradient_of[arg] >= 0)
      return err_set(GRAFT_INVALID_ARGUMENT, "two results of its gradient %s are called %s", gradient->name, ret->name);
    custom->gradient_of[arg] = (int8_t)r;
  }
  return GRAFT_OK;
}

static graft_status map_in_order(dsp_custom *custom, const op_schema *gradient) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < custom->schema.nargs; i++)
    if (custom->schema.args[i].kind == OPK_TENSOR) custom->gradient_of[i] = (int8_t)next++;
  if (next == gradient->nrets) return GRAFT_OK;
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "it has %u Tensor arguments, and its gradient %s has %u results; call them grad_ARGUMENT where not "
                 "every argument has one",
                 next, gradient->name, gradient->nrets);
}

static graft_status link_gradient(const adoption *a, candidate *c) {
  const dsp_custom *gradient = NULL;
  for (uint32_t i = 0; i < a->count; i++)
    if (custom_at(&a->all[i]) && a->all[i].op.op_id == c->op.gradient_id) gradient = custom_at(&a->all[i]);
  if (!gradient)
    return err_set(GRAFT_INVALID_ARGUMENT, "its gradient_id is 0x%x, and no op of the plugin that is served has it",
                   (unsigned)c->op.gradient_id);
  graft_status status = check_signature(&c->made->schema, &gradient->schema);
  if (status) return status;
  c->made->gradient = gradient;
  bool named = false;
  for (uint32_t r = 0; r < gradient->schema.nrets; r++) named = named || is_named(&gradient->schema.rets[r]);
  return named ? map_named(c->made, &gradient->schema) : map_in_order(c->made, &gradient->schema);
}

/* An op goes with its gradient, and that may go with one of its own. */
static void link_gradients(const adoption *a) {
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t i = 0; i < a->count; i++) {
      candidate *c = &a->all[i];
      if (!c->made || !c->op.gradient_id || !link_gradient(a, c)) continue;
      refuse(a, i);
      changed = true;
    }
  }
}

/* --- publishing --- */

static uint64_t tensor_arguments(const op_schema *schema) {
  uint64_t tensors = 0;
  for (uint32_t i = 0; i < schema->nargs; i++)
    if (schema->args[i].kind == OPK_TENSOR || schema->args[i].kind == OPK_TENSORS) tensors |= UINT64_C(1) << i;
  return tensors;
}

static void define(dsp_custom *custom) {
  custom->def = (op_def){.op_id = custom->schema.id, .roles = "", .infer = dsp_custom_infer};
  if (custom->has_reference) custom->def.reference = dsp_custom_reference;
  if (!custom->gradient) return;
  custom->gradient_has_reference = custom->gradient->has_reference;
  custom->def.vjp = dsp_custom_vjp;
  custom->def.saves = tensor_arguments(&custom->schema);
}

static void add_row(graft_rt_backend *backend, const candidate *c) {
  dsp_custom *custom = (dsp_custom *)(uintptr_t)custom_at(c); /* its list of rows alone changes */
  *c->row = (dsp_custom_row){.next = atomic_load(&custom->rows), .backend = backend, .op = c->op};
  c->row->op.schema = custom->schema.schema;
  c->row->op.cases = custom->cases;
  atomic_store(&custom->rows, c->row);
}

/* An op is whole, and so is its gradient, before it can be found. */
static void publish(adoption *a, graft_rt_backend *backend) {
  for (uint32_t i = 0; i < a->count; i++) {
    candidate *c = &a->all[i];
    if (custom_at(c)) add_row(backend, c);
    if (c->made) op_schema_number(&c->made->schema, published++);
  }
  for (uint32_t i = 0; i < a->count; i++) {
    if (!a->all[i].made) continue;
    define(a->all[i].made);
    op_def_add(&a->all[i].made->def);
  }
  for (uint32_t i = 0; i < a->count; i++)
    if (a->all[i].made) op_schema_publish(&a->all[i].made->schema);
}

/* --- the table --- */

/* Reads all rows; false: no host memory. */
static bool read_all(adoption *a, const graft_custom_op *const *rows) {
  a->all = calloc(a->count, sizeof *a->all);
  if (!a->all) return false;
  for (uint32_t i = 0; i < a->count; i++)
    if (read_row(a, i, rows[i])) refuse(a, i);
  link_gradients(a);
  return true;
}

bool dsp_custom_review(const char *plugin, const graft_custom_ops_api *api, dsp_custom_tell_fn tell, void *context) {
  adoption a = {.plugin = plugin, .count = api->count, .tell = tell, .context = context};
  if (!a.count) return true;
  bool read = read_all(&a, api->ops);
  for (uint32_t i = 0; read && i < a.count; i++) {
    free_made(&a.all[i]);
    free(a.all[i].row);
  }
  free(a.all);
  return read;
}

bool dsp_custom_declare(const dsp_custom_facts *facts) {
  candidate c = {
      .op = {.schema = facts->schema, .cases = facts->cases, .op_id = facts->op_id, .roundings = facts->roundings}};
  adoption a = {.plugin = facts->plugin};
  if (published == OP_MAX_CUSTOM || make_custom(&a, &c)) {
    free_made(&c);
    return false;
  }
  dsp_custom *custom = c.made;
  custom->has_reference = facts->has_reference;
  custom->gradient_has_reference = facts->gradient_has_reference;
  op_schema_number(&custom->schema, published++);
  define(custom);
  op_def_add(&custom->def);
  op_schema_publish(&custom->schema);
  return true;
}

static const graft_custom_ops_api *table_of(graft_rt_backend *backend) {
  const graft_plugin *plugin = &backend->plugin;
  const void *found = NULL;
  if (!plugin->extension) return NULL;
  graft_status status = plugin->extension(plugin->self, GRAFT_EXTENSION_CUSTOM_OPS, GRAFT_CUSTOM_OPS_VERSION, &found);
  if (status == GRAFT_UNIMPLEMENTED) return NULL;
  const graft_custom_ops_api *api = found;
  if (!status && api && GRAFT_HAS(api, graft_custom_ops_api, ops) && (api->ops || !api->count)) return api;
  err_log(GRAFT_LOG_WARNING, "%s: its table \"%s\" is not whole; its custom ops are left out", backend->name,
          GRAFT_EXTENSION_CUSTOM_OPS);
  return NULL;
}

static void log_refused(void *context, uint32_t row, const char *schema, const char *problem) {
  const graft_rt_backend *backend = context;
  err_log(GRAFT_LOG_WARNING, "%s: its custom op %u, %.120s, is left out: %s", backend->name, row, schema, problem);
}

void dsp_custom_adopt(graft_rt_backend *backend) {
  const graft_custom_ops_api *api = table_of(backend);
  if (!api || !api->count) return;
  adoption a = {.plugin = backend->name,
                .count = api->count < OP_MAX_CUSTOM ? api->count : OP_MAX_CUSTOM,
                .tell = log_refused,
                .context = backend};
  if (a.count < api->count)
    err_log(GRAFT_LOG_WARNING, "%s: of its %u custom ops those behind the first %u are left out", backend->name,
            api->count, a.count);
  if (read_all(&a, api->ops))
    publish(&a, backend);
  else
    err_log(GRAFT_LOG_WARNING, "%s: no host memory for its custom ops, which are left out", backend->name);
  free(a.all);
}
