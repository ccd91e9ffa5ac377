/* Reading schemas; see schema_text.h. The rules are those of plugin_api/gen/schema.py and layout.py. */
#include "ops/core/schema_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ops/core/op.h"

/* Of a schema; of an op's name; of bool[N] and of a list that is a default. */
enum { MOST_BYTES = 4096, MOST_NAME = 120, MOST_ITEMS = 64 };

typedef struct reader {
  const char *text, *at; /* all of it, and what is left */
  arena *memory;
  op_schema *schema;
  op_arg *args;
  op_ret *rets;
  bool keyword_only, has_defaults; /* of what is being read, and of an argument before it */
} reader;

/* What may stand in a schema, and the member of the args struct that it becomes: alone, as a list, and alone where it
 * may be absent. */
typedef struct type {
  const char *name;
  uint8_t kind, list;            /* OPK_*; 0 as a list: there are none */
  uint8_t bytes, optional_bytes; /* of the member */
} type;

static const type types[] = {
    {"Tensor", OPK_TENSOR, OPK_TENSORS, 8, 8},
    {"int", OPK_INT, OPK_INTS, 8, 8},
    {"SymInt", OPK_INT, OPK_INTS, 8, 8},
    {"float", OPK_FLOAT, OPK_FLOATS, 8, 8},
    {"bool", OPK_BOOL, OPK_MASK, 1, 8},
    {"Scalar", OPK_SCALAR, OPK_SCALARS, 8, 8},
    {"str", OPK_STR, 0, 8, 8},
    {"ScalarType", OPK_DTYPE, 0, 4, 4},
};

static graft_status no_memory(void) {
  return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a schema");
}

/* --- words --- */

static void skip_blanks(reader *r) {
  while (*r->at == ' ') r->at++;
}

static bool take(reader *r, const char *token) {
  size_t length = strlen(token);
  skip_blanks(r);
  if (strncmp(r->at, token, length) != 0) return false;
  r->at += length;
  return true;
}

static size_t word_length(const char *at) {
  size_t n = 0;
  if (isalpha((unsigned char)*at) || *at == '_') {
    while (isalnum((unsigned char)at[n]) || at[n] == '_') n++;
  }
  return n;
}

/* "at column 12: expected ..., found '...'" */
static graft_status expected(const reader *r, const char *what) {
  const char *at = r->at;
  while (*at == ' ') at++;
  if (!*at) return err_set(GRAFT_INVALID_ARGUMENT, "it ends where %s is expected", what);
  return err_set(GRAFT_INVALID_ARGUMENT, "at column %d: expected %s, found \"%.20s\"", (int)(at - r->text) + 1, what,
                 at);
}

static graft_status need(reader *r, const char *token, const char *what) {
  return take(r, token) ? GRAFT_OK : expected(r, what);
}

/* A word of the schema that is kept. */
static graft_status read_word(reader *r, const char *what, const char **word) {
  skip_blanks(r);
  size_t length = word_length(r->at);
  if (!length) return expected(r, what);
  char *copy = arena_take(r->memory, length + 1);
  if (!copy) return no_memory();
  memcpy(copy, r->at, length);
  r->at += length;
  *word = copy;
  return GRAFT_OK;
}

/* --- the name --- */

bool op_is_own_namespace(const char *name) {
  return !strcmp(name, "aten") || !strcmp(name, "prims") || !strcmp(name, "graft");
}

static graft_status read_name(reader *r) {
  skip_blanks(r);
  const char *begin = r->at, *word;
  graft_status status = read_word(r, "a namespace", &word);
  if (!status && op_is_own_namespace(word))
    return err_set(GRAFT_INVALID_ARGUMENT, "the namespace \"%s\" is not the plugin's to take; expected one of its own",
                   word);
  if (!status) status = need(r, "::", "\"::\"");
  if (!status) status = read_word(r, "the name of the op", &word);
  if (!status && *r->at == '.') {
    r->at++;
    status = read_word(r, "the name of the overload", &word);
  }
  if (status) return status;
  size_t length = (size_t)(r->at - begin);
  static const char plain[] = ".default"; /* PyTorch's word for no overload */
  if (length > sizeof plain && !strncmp(r->at - (sizeof plain - 1), plain, sizeof plain - 1))
    length -= sizeof plain - 1;
  if (length > MOST_NAME)
    return err_set(GRAFT_INVALID_ARGUMENT, "its name has more than %d characters, namespace and overload included",
                   MOST_NAME);
  if (memchr(begin, ' ', length)) return err_set(GRAFT_INVALID_ARGUMENT, "a blank is in its name");
  char *name = arena_take(r->memory, length + 1);
  if (!name) return no_memory();
  memcpy(name, begin, length);
  r->schema->name = name;
  return GRAFT_OK;
}

/* --- types --- */

static graft_status unknown_type(const reader *r, const char *begin, const char *what) {
  size_t length = strcspn(begin, " ,)=");
  (void)r;
  return err_set(
      GRAFT_INVALID_ARGUMENT,
      "%s has the type \"%.*s\", which a custom op can't have; it has Tensor, int, float, bool, Scalar, str, "
      "ScalarType, each with ? too, and Tensor[], Tensor?[], int[], float[], Scalar[], bool[N]",
      what, (int)length, begin);
}

static graft_status refuse_alias(const char *begin) {
  return err_set(GRAFT_INVALID_ARGUMENT,
                 "\"%.*s\": custom ops neither write into their arguments nor return views of them; give new results",
                 (int)strcspn(begin, " ,"), begin);
}

static graft_status read_list(reader *r, const char *begin, const type *t, op_arg *arg) {
  char *end;
  unsigned long length = strtoul(r->at, &end, 10);
  bool given = end != r->at;
  if (given && (!isdigit((unsigned char)*r->at) || !length || length > MOST_ITEMS))
    return err_set(GRAFT_INVALID_ARGUMENT, "\"%.*s\": expected a length of 1 to %d", (int)strcspn(begin, " ,"), begin,
                   MOST_ITEMS);
  r->at = end;
  bool whole = take(r, "]") && t->list;
  if (!whole || (given && t->kind != OPK_INT && t->kind != OPK_BOOL)) return unknown_type(r, begin, "an argument");
  if (t->kind == OPK_BOOL && !given)
    return err_set(GRAFT_INVALID_ARGUMENT, "\"bool[]\": a list of bools has a length, such as bool[3]");
  arg->kind = t->list;
  arg->bytes = (uint16_t)length;
  return GRAFT_OK;
}

/* "Tensor?", "int[2]"; the member's size, too. */
static graft_status read_type(reader *r, op_arg *arg, uint32_t *bytes) {
  skip_blanks(r);
  const char *begin = r->at;
  size_t length = word_length(begin);
  const type *t = NULL;
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strlen(types[i].name) == length && !strncmp(types[i].name, begin, length)) t = &types[i];
  if (!length) return expected(r, "a type");
  if (!t) return unknown_type(r, begin, "an argument");
  r->at += length;
  if (*r->at == '(') return refuse_alias(begin);
  bool item_optional = !strncmp(r->at, "?[", 2);
  if (item_optional) r->at++;
  arg->kind = t->kind;
  if (*r->at == '[') {
    r->at++;
    graft_status status = read_list(r, begin, t, arg);
    if (status) return status;
  }
  bool list = arg->kind != t->kind;
  if (*r->at == '(') return refuse_alias(begin);
  if (*r->at == '?') r->at++, arg->flags |= OPA_OPTIONAL;
  bool absent_list = arg->flags & OPA_OPTIONAL && (arg->kind == OPK_TENSORS || arg->kind == OPK_MASK);
  if ((item_optional && arg->kind != OPK_TENSORS) || absent_list) return unknown_type(r, begin, "an argument");
  if (item_optional) arg->flags |= OPA_OPTIONAL_ITEMS;
  *bytes = arg->kind == OPK_MASK ? arg->bytes : list ? 16 : arg->flags & OPA_OPTIONAL ? t->optional_bytes : t->bytes;
  return GRAFT_OK;
}

/* --- defaults: those that PyTorch's own reader takes --- */

static graft_status bad_default(const reader *r, const op_arg *arg) {
  return err_set(GRAFT_INVALID_ARGUMENT, "argument %s has the default \"%.*s\", which its type can't have", arg->name,
                 (int)strcspn(r->at, ",)"), r->at);
}

static bool read_number(reader *r, graft_scalar *number) {
  char *end, *end_of_int;
  skip_blanks(r);
  if (take(r, "True")) return *number = graft_scalar_bool(true), true;
  if (take(r, "False")) return *number = graft_scalar_bool(false), true;
  if (!isdigit((unsigned char)r->at[strspn(r->at, "-.")])) return false; /* such as inf */
  errno = 0;
  double real = strtod(r->at, &end);
  long long integer = strtoll(r->at, &end_of_int, 10);
  if (end == r->at || errno == ERANGE) return false;
  *number = end == end_of_int ? graft_scalar_int(integer) : graft_scalar_float(real);
  r->at = end;
  return true;
}

static double real_of(const graft_scalar *number) {
  return number->dtype == GRAFT_F64 ? number->value.f : (double)number->value.i;
}

/* A number as a value of the kind, alone or in a list. */
static bool value_of(const graft_scalar *number, uint8_t kind, graft_value *value) {
  bool real = number->dtype == GRAFT_F64, truth = number->dtype == GRAFT_BOOL;
  switch (kind) {
    case OPK_INT: *value = graft_value_int(number->value.i); return !real && !truth;
    case OPK_FLOAT: *value = graft_value_float(real_of(number)); return !truth;
    case OPK_BOOL: *value = graft_value_bool(number->value.i != 0); return truth;
    case OPK_SCALAR: *value = graft_value_scalar(*number); return true;
    default: return false;
  }
}

static bool read_items(reader *r, uint8_t kind, graft_value *items, uint32_t *count) {
  *count = 0;
  if (take(r, "]")) return true;
  do {
    graft_scalar number;
    if (*count == MOST_ITEMS || !read_number(r, &number) || !value_of(&number, kind, &items[(*count)++])) return false;
  } while (take(r, ","));
  return take(r, "]");
}

/* The items of a list, which is laid out as its kind has it. */
static graft_value pack_items(reader *r, uint8_t kind, const graft_value *items, uint32_t count) {
  static const graft_value_kind kinds[] = {
      [OPK_INT] = GRAFT_VALUE_INTS, [OPK_FLOAT] = GRAFT_VALUE_FLOATS, [OPK_BOOL] = GRAFT_VALUE_MASK};
  graft_value list = {kinds[kind], count, {NULL}};
  int64_t *words = arena_take(r->memory, (count + 1) * sizeof *words);
  if (!words) return (graft_value){0};
  uint8_t *mask = (uint8_t *)(void *)words;
  for (uint32_t i = 0; i < count; i++) {
    if (kind == OPK_BOOL)
      mask[i] = items[i].as.i != 0;
    else
      words[i] = items[i].as.i; /* an int, or a double's bits */
  }
  list.as.ints = words;
  return list;
}

static graft_status read_list_default(reader *r, const op_arg *arg, uint8_t kind, graft_value *value) {
  graft_value items[MOST_ITEMS];
  uint32_t count = 1;
  graft_scalar number;
  if (take(r, "[")) {
    if (!read_items(r, kind, items, &count)) return bad_default(r, arg);
  } else {
    if (!arg->bytes || !read_number(r, &number) || !value_of(&number, kind, items)) return bad_default(r, arg);
    for (count = 1; count < arg->bytes; count++) items[count] = items[0];
  }
  if (arg->kind == OPK_MASK && count != arg->bytes) return bad_default(r, arg);
  *value = pack_items(r, kind, items, count);
  return value->kind ? GRAFT_OK : no_memory();
}

static graft_status read_text_default(reader *r, const op_arg *arg, graft_value *value) {
  char quote = *r->at;
  const char *end = quote == '"' || quote == '\'' ? strchr(r->at + 1, quote) : NULL;
  if (!end) return bad_default(r, arg);
  char *text = arena_take(r->memory, (size_t)(end - r->at));
  if (!text) return no_memory();
  memcpy(text, r->at + 1, (size_t)(end - r->at) - 1);
  *value = (graft_value){GRAFT_VALUE_STR, 0, {.str = text}};
  r->at = end + 1;
  return GRAFT_OK;
}

static graft_status read_default(reader *r, op_arg *arg) {
  static const uint8_t items[] = {[OPK_INTS] = OPK_INT, [OPK_FLOATS] = OPK_FLOAT, [OPK_MASK] = OPK_BOOL};
  graft_value *value = arena_take(r->memory, sizeof *value);
  graft_scalar number;
  graft_status status = GRAFT_OK;
  skip_blanks(r);
  if (!value) return no_memory();
  if (arg->flags & OPA_OPTIONAL && take(r, "None")) return GRAFT_OK;
  if (arg->kind == OPK_STR)
    status = read_text_default(r, arg, value);
  else if (!(arg->flags & OPA_OPTIONAL) && (arg->kind == OPK_INTS || arg->kind == OPK_FLOATS || arg->kind == OPK_MASK))
    status = read_list_default(r, arg, items[arg->kind], value);
  else if (!read_number(r, &number) || !value_of(&number, arg->kind, value))
    status = bad_default(r, arg);
  arg->fallback = value;
  return status;
}

/* --- arguments and results --- */

/* The member's place: aligned as its type, the largest being 8 bytes. */
static uint16_t place(op_schema *schema, const op_arg *arg, uint32_t bytes) {
  uint32_t alignment = arg && arg->kind == OPK_MASK ? 1 : bytes < 8 ? bytes : 8;
  schema->args_size = (schema->args_size + alignment - 1) / alignment * alignment;
  uint16_t offset = (uint16_t)schema->args_size;
  schema->args_size += bytes;
  return offset;
}

static graft_status read_argument(reader *r) {
  op_schema *schema = r->schema;
  if (take(r, "*")) {
    r->keyword_only = true;
    return GRAFT_OK;
  }
  if (schema->nargs == OP_MAX_ARGS)
    return err_set(GRAFT_INVALID_ARGUMENT, "it has more than %d arguments", OP_MAX_ARGS);
  op_arg *arg = &r->args[schema->nargs];
  uint32_t bytes = 0;
  graft_status status = read_type(r, arg, &bytes);
  if (!status) status = read_word(r, "the name of an argument", &arg->name);
  for (uint32_t i = 0; !status && i < schema->nargs; i++)
    if (!strcmp(r->args[i].name, arg->name))
      status = err_set(GRAFT_INVALID_ARGUMENT, "two arguments are called %s", arg->name);
  if (status) return status;
  if (r->keyword_only) arg->flags |= OPA_KWARG;
  arg->offset = place(schema, arg, bytes);
  schema->nargs++;
  bool has_default = take(r, "=");
  if (!has_default && r->has_defaults && !r->keyword_only)
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "argument %s has no default, and one before it has; it belongs before that, or behind a *",
                   arg->name);
  r->has_defaults |= has_default;
  return has_default ? read_default(r, arg) : GRAFT_OK;
}

static graft_status read_arguments(reader *r) {
  graft_status status = need(r, "(", "\"(\"");
  if (status || take(r, ")")) return status;
  do status = read_argument(r);
  while (!status && take(r, ","));
  return status ? status : need(r, ")", "\",\" or \")\"");
}

static graft_status read_result(reader *r) {
  op_schema *schema = r->schema;
  skip_blanks(r);
  const char *begin = r->at;
  size_t length = word_length(begin);
  if (schema->nrets == OP_MAX_OUTS) return err_set(GRAFT_INVALID_ARGUMENT, "it has more than %d results", OP_MAX_OUTS);
  if (!length) return expected(r, "Tensor");
  if (length != 6 || strncmp(begin, "Tensor", 6) != 0 || begin[6] == '[' || begin[6] == '?')
    return err_set(GRAFT_INVALID_ARGUMENT,
                   "a result has the type \"%.*s\"; custom ops give Tensor, or several: "
                   "(Tensor, Tensor)",
                   (int)strcspn(begin, " ,)"), begin);
  r->at += length;
  if (*r->at == '(') return refuse_alias(begin);
  op_ret *ret = &r->rets[schema->nrets];
  skip_blanks(r);
  graft_status status = GRAFT_OK;
  if (word_length(r->at)) status = read_word(r, "the name of a result", &ret->name);
  ret->kind = OPK_TENSOR;
  ret->offset = place(schema, NULL, 8);
  schema->nrets++;
  return status;
}

/* What those without a name are called, as in the generated rows. */
static const char *const unnamed[] = {"out0", "out1", "out2", "out3", "out4", "out5", "out6", "out7", "out8", "out9"};
_Static_assert(sizeof unnamed / sizeof *unnamed == OP_MAX_OUTS, "a name for each");

static graft_status read_results(reader *r) {
  graft_status status = need(r, "->", "\"->\" and results");
  if (!status && !take(r, "("))
    status = read_result(r);
  else if (!status) {
    do status = read_result(r);
    while (!status && take(r, ","));
    if (!status) status = need(r, ")", "\",\" or \")\"");
  }
  for (uint32_t i = 0; i < r->schema->nrets; i++)
    if (!r->rets[i].name) r->rets[i].name = r->schema->nrets == 1 ? "out" : unnamed[i];
  skip_blanks(r);
  return status || !*r->at ? status : expected(r, "the end");
}

graft_status op_schema_read(const char *text, arena *memory, op_schema *schema) {
  if (strnlen(text, MOST_BYTES) == MOST_BYTES)
    return err_set(GRAFT_INVALID_ARGUMENT, "it has more than %d characters", MOST_BYTES - 1);
  *schema = (op_schema){.family = "custom",
                        .route = OPROUTE_SLOT,
                        .strides = OPS_CONTIGUOUS,
                        .level = 4,
                        .args_size = sizeof(graft_args)};
  reader r = {.memory = memory, .schema = schema};
  schema->schema = r.text = r.at = arena_copy(memory, text, strlen(text) + 1);
  schema->args = r.args = arena_take(memory, OP_MAX_ARGS * sizeof *r.args);
  schema->rets = r.rets = arena_take(memory, OP_MAX_OUTS * sizeof *r.rets);
  if (!r.text || !r.args || !r.rets) return no_memory();
  graft_status status = read_name(&r);
  if (!status) status = read_arguments(&r);
  if (!status) status = read_results(&r);
  schema->args_size = (schema->args_size + 7) / 8 * 8;
  return status;
}
