#include "conformance/run/custom_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cases/cases.h"
#include "conformance/cases/rows.h"
#include "conformance/run/call.h"
#include "dispatch/custom.h"

enum { ROUNDINGS = 8, TEXTS = 64, TEXT_BYTES = 512 };

/* ---- texts ---- */

/* Of one op: those with a T, for each dtype, and those that name their dtypes. */
typedef struct cf_custom_texts {
  const char *tested[TEXTS + 1], *plain[TEXTS + 1];
  uint32_t tested_count, plain_count, count;
} cf_custom_texts;

static bool cf_has_tested(const char *text) {
  for (const char *at = text; (at = strchr(at, 'T')); at++)
    if (at[1] == '[' && (at == text || strchr(" {;=", at[-1]))) return true;
  return false;
}

/* The first is run at level smoke, too. */
static graft_status cf_add_text(cf_custom_texts *t, const char *text, size_t length) {
  bool blank = strspn(text, " ") >= length;
  if (blank) return GRAFT_OK;
  char *kept = malloc(length + 3);
  if (!kept) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for a case");
  if (t->count == TEXTS) return err_set(GRAFT_INVALID_ARGUMENT, "it has more than %d cases", TEXTS);
  snprintf(kept, length + 3, "%c %.*s", t->count ? 'm' : 's', (int)length, text);
  t->count++;
  if (cf_has_tested(kept + 2))
    t->tested[t->tested_count++] = kept;
  else
    t->plain[t->plain_count++] = kept;
  return GRAFT_OK;
}

static graft_status cf_given_texts(const char *cases, cf_custom_texts *t) {
  graft_status status = GRAFT_OK;
  for (const char *line = cases; !status && *line;) {
    size_t length = strcspn(line, "\n");
    status = cf_add_text(t, line, length);
    line += length + (line[length] == '\n');
  }
  if (!status && !t->count)
    status = err_set(GRAFT_INVALID_ARGUMENT, "its cases hold no line; with NULL for them the suite makes its own");
  return status;
}

/* An argument that has to be given, as name=value; an empty text: it may be left out. */
static void cf_made_argument(const op_arg *arg, const char *shape, char *text, size_t room) {
  static const char *const values[] = {
      [OPK_INT] = "1",  [OPK_FLOAT] = "0.5", [OPK_BOOL] = "true",    [OPK_SCALAR] = "0.5",
      [OPK_STR] = "''", [OPK_DTYPE] = "f32", [OPK_FLOATS] = "[0.5]", [OPK_SCALARS] = "[0.5]"};
  *text = 0;
  if (arg->fallback || arg->flags & OPA_OPTIONAL) return;
  int used = snprintf(text, room, " %s=", arg->name);
  text += used, room -= (size_t)used;
  if (arg->kind == OPK_TENSOR) {
    snprintf(text, room, "%s", shape);
  } else if (arg->kind == OPK_TENSORS) {
    snprintf(text, room, "{%s;%s}", shape, shape);
  } else if (arg->kind == OPK_INTS || arg->kind == OPK_MASK) {
    uint32_t count = arg->bytes ? arg->bytes : 1;
    for (uint32_t i = 0; i < count && room > 4; i++, text += 2, room -= 2) snprintf(text, room, "%c1", i ? ',' : '[');
    snprintf(text, room, "]");
  } else {
    snprintf(text, room, "%s", values[arg->kind]);
  }
}

static graft_status cf_made_texts(const op_schema *schema, cf_custom_texts *t) {
  static const char *const shapes[] = {"T[33,17]", "T[1025]", "T[]", "T[0]", "T[3,13,17]"};
  graft_status status = GRAFT_OK;
  for (size_t s = 0; !status && s < sizeof shapes / sizeof *shapes; s++) {
    char text[TEXT_BYTES] = "", one[TEXT_BYTES / 4];
    size_t used = 0;
    for (uint32_t i = 0; i < schema->nargs && used < sizeof text; i++) {
      cf_made_argument(&schema->args[i], shapes[s], one, sizeof one);
      used += (size_t)snprintf(text + used, sizeof text - used, "%s", one);
    }
    if (used >= sizeof text)
      return err_set(GRAFT_INVALID_ARGUMENT, "it has so many arguments that it has to say cases");
    status = cf_add_text(t, text + (*text == ' '), strlen(text + (*text == ' ')));
  }
  return status;
}

/* ---- rows ---- */

/* How far a result may be follows from how far it moves with its inputs (run/condition.h): the suite does not know the
 * arithmetic of such an op. */
static graft_status cf_add_row(cf_op *rows, const dsp_custom *custom, const char *const *texts, uint32_t count,
                               uint32_t dtypes) {
  double roundings = custom->roundings ? custom->roundings : ROUNDINGS;
  if (!count) return GRAFT_OK;
  const char **kept = calloc(count + 1, sizeof *kept);
  if (!kept) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for its cases");
  memcpy(kept, texts, count * sizeof *kept);
  cf_op *op = &rows[cf_topic_custom.count++];
  *op = (cf_op){.name = custom->schema.name,
                .texts = kept,
                .dtypes = dtypes,
                .rule = {.klass = CF_BACKWARD, .ulps = roundings},
                .domain = CF_VALUES};
  if (custom->gradient_has_reference) op->grad = (cf_grad){.kind = CF_GRAD_BACKWARD, .steps = roundings};
  return GRAFT_OK;
}

/* A case that can't be read would be one that is never run. */
static graft_status cf_check_rows(uint32_t from) {
  for (uint32_t i = from; i < cf_topic_custom.count; i++)
    for (uint32_t text = 0; cf_topic_custom.ops[i].texts[text]; text++) {
      const cf_op *op = &cf_topic_custom.ops[i];
      cf_case c = {.topic = (uint16_t)(cf_topic_count - 1),
                   .op = (uint16_t)i,
                   .text = (uint16_t)text,
                   .op_id = op_schema_find(op->name)->id,
                   .dtype = GRAFT_F32};
      cf_call call;
      err_clear();
      if (!cf_call_open(&c, &call))
        return err_set(GRAFT_INVALID_ARGUMENT, "its case \"%s\": %s", op->texts[text] + 2, graft_last_error());
      cf_call_close(&call);
    }
  return GRAFT_OK;
}

static graft_status cf_take_one(cf_op *rows, const dsp_custom *custom) {
  cf_custom_texts *t = calloc(1, sizeof *t);
  if (!t) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for its cases");
  graft_status status = custom->cases ? cf_given_texts(custom->cases, t) : cf_made_texts(&custom->schema, t);
  uint32_t from = cf_topic_custom.count;
  if (!status) status = cf_add_row(rows, custom, t->tested, t->tested_count, CF_FLOATS);
  if (!status) status = cf_add_row(rows, custom, t->plain, t->plain_count, CF_BIT(F32));
  free(t);
  return status ? status : cf_check_rows(from);
}

graft_status cf_custom_take(void) {
  const op_schema *schema;
  uint32_t count = 0;
  while (op_schema_custom(count)) count++;
  if (!count) return GRAFT_OK;
  cf_op *rows = calloc(2 * (size_t)count, sizeof *rows);
  if (!rows) return err_set(GRAFT_OUT_OF_MEMORY, "no memory for the cases of custom ops");
  cf_topic_custom.ops = rows, cf_topic_custom.count = 0;
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; !status && (schema = op_schema_custom(i)); i++) {
    const dsp_custom *custom = dsp_custom_of(schema);
    if (custom->has_reference) status = cf_take_one(rows, custom);
    if (status) err_attribute(status, schema->name);
  }
  return status;
}
