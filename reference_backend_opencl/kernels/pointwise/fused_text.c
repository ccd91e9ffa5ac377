/* The text around a fused kernel. Macros of common.cl and functions.cl are for one compute type, those of step.cl for
 * one op, those of formula.cl for one reduction. So there is a section for each reduction and one for each compute type
 * among the ops, with these files in it, and in it functions for each; behind each the macros are undefined, and from
 * the second section on functions get names of their own. The kernel stands in the last section. */
#include "kernels/pointwise/fused.h"

#include <ctype.h>
#include <string.h>

/* ---- names in a text ---- */

typedef void (*each_name)(ocl_text *to, const char *name, size_t length, int section);

static size_t word_length(const char *text) {
  size_t n = 0;
  while (isalnum((unsigned char)text[n]) || text[n] == '_') n++;
  return n;
}

static const char *next_line(const char *line) {
  const char *end = strchr(line, '\n');
  return end ? end + 1 : NULL;
}

static bool begins(const char *line, const char *word) {
  return strncmp(line, word, strlen(word)) == 0;
}

static void for_each_macro(ocl_text *to, const char *text, each_name each, int section) {
  for (const char *line = text; line; line = next_line(line)) {
    if (begins(line, "#define ")) each(to, line + 8, word_length(line + 8), section);
  }
}

/* Of lines that begin "static TYPE name(" or "static TYPE(of) name(". */
static void for_each_function(ocl_text *to, const char *text, each_name each, int section) {
  for (const char *line = text; line; line = next_line(line)) {
    if (!begins(line, "static ")) continue;
    const char *at = line + 7;
    at += word_length(at);
    if (*at == '(') at = strchr(at, ')') + 1;
    at += strspn(at, " *");
    const size_t length = word_length(at);
    if (at[length] == '(') each(to, at, length, section);
  }
}

static void undefine(ocl_text *to, const char *name, size_t length, int section) {
  (void)section;
  ocl_text_add(to, "#undef %.*s\n", (int)length, name);
}

static void rename_function(ocl_text *to, const char *name, size_t length, int section) {
  ocl_text_add(to, "#define %.*s %.*s_%d\n", (int)length, name, (int)length, name, section);
}

/* ---- an op ---- */

static void write_op(ocl_text *text, const ocl_fused_kernel *k, int number) {
  const ocl_fused_op *op = &k->ops[number];
  ocl_text head = {0};
  ocl_text_add(&head, "#define NUMBER %d\n#define INPUTS %d\n", number, op->operands.inputs);
  ocl_pointwise_head(&head, k->device, &op->operands, op->recipe, op->compute);
  if (head.failed) {
    text->failed = true;
    return;
  }
  const char *const parts[] = {head.items, ocl_kernel_source("pointwise/step"),
                               ocl_kernel_source("pointwise/fused_op")};
  enum { PARTS = sizeof parts / sizeof *parts };
  for (int i = 0; i < PARTS; i++) ocl_text_append(text, parts[i]);
  for (int i = 0; i < PARTS; i++) for_each_macro(text, parts[i], undefine, 0);
  ocl_text_free(&head);
}

/* ---- sections ---- */

/* Files in front of what a section has of its own. */
enum { PARTS_MAX = 5 };
typedef struct section {
  int number;
  const char *parts[PARTS_MAX + 1]; /* behind the last one NULL */
} section;

static void open_section(ocl_text *text, const section *s) {
  for (const char *const *part = s->parts; s->number > 0 && *part; part++)
    for_each_function(text, *part, rename_function, s->number);
  for (const char *const *part = s->parts; *part; part++) ocl_text_append(text, *part);
}

static void close_section(ocl_text *text, const section *s) {
  for (const char *const *part = s->parts; *part; part++) {
    for_each_macro(text, *part, undefine, s->number);
    if (s->number > 0) for_each_function(text, *part, undefine, s->number);
  }
}

static bool same_section(const ocl_dtype *a, const ocl_dtype *b) {
  return strcmp(a->compute, b->compute) == 0 && a->class == b->class;
}

/* The next op from number `at` on that stands in a section of its own, whose first op it is; nops: none. */
static int next_section(const ocl_fused_kernel *k, int at) {
  for (; at < k->nops; at++) {
    int earlier = 0;
    if (!ocl_fused_computes(&k->ops[at])) continue;
    while (earlier < at &&
           (!ocl_fused_computes(&k->ops[earlier]) || !same_section(k->ops[earlier].compute, k->ops[at].compute)))
      earlier++;
    if (earlier == at) return at;
  }
  return at;
}

static bool needs_powers(const ocl_fused_kernel *k, const ocl_dtype *compute) {
  bool needed = false;
  for (int i = 0; i < k->nops; i++) {
    const ocl_fused_op *op = &k->ops[i];
    needed = needed || (ocl_fused_computes(op) && same_section(op->compute, compute) && op->recipe->flags & OCL_POWERS);
  }
  return needed;
}

static void write_ops(ocl_text *text, const ocl_fused_kernel *k, const ocl_dtype *compute, int number, bool last) {
  ocl_text head = {0};
  ocl_head_types(&head, compute, k->device->vector_width, k->local);
  if (head.failed) {
    text->failed = true;
    return;
  }
  const section s = {.number = number,
                     .parts = {head.items, ocl_kernel_source("core/common"), ocl_kernel_source("core/exp"),
                               needs_powers(k, compute) ? ocl_kernel_source("pointwise/power") : "",
                               ocl_kernel_source("pointwise/functions")}};
  open_section(text, &s);
  for (int i = 0; i < k->nops; i++) {
    if (ocl_fused_computes(&k->ops[i]) && same_section(k->ops[i].compute, compute)) write_op(text, k, i);
  }
  if (last) ocl_fused_write_kernel(text, k);
  if (!last) close_section(text, &s);
  ocl_text_free(&head);
}

/* Lanes of a stage's totals, and the functions that it is made of. */
static unsigned stage_vec(const ocl_fused_kernel *k) {
  return ocl_fused_has_teams(k) ? (unsigned)k->space.team.vec : k->device->vector_width;
}

static const char *stage_functions(const ocl_fused_kernel *k) {
  return ocl_kernel_source(ocl_fused_has_teams(k) ? "pointwise/fused_team_stage" : "pointwise/fused_stage");
}

/* A reduction: its formula is made of macros, so that it has a section of its own. */
static void write_stage(ocl_text *text, const ocl_fused_kernel *k, int number, bool last) {
  ocl_text head = {0};
  ocl_reduction_head(&head, &k->stages[number].pass, stage_vec(k), k->local);
  ocl_text_add(&head, "#define STAGE %d\n#define D_TOTAL %s\n", number, k->stages[number].pass.accumulator->name);
  if (head.failed) {
    text->failed = true;
    return;
  }
  const section s = {.number = number,
                     .parts = {head.items, ocl_kernel_source("core/common"), ocl_kernel_source("core/exp"),
                               ocl_kernel_source("reduction/formula")}};
  const char *functions = stage_functions(k);
  open_section(text, &s);
  ocl_text_append(text, functions);
  if (last) ocl_fused_write_kernel(text, k);
  if (!last) {
    for_each_macro(text, functions, undefine, number);
    close_section(text, &s);
  }
  ocl_text_free(&head);
}

/* Local memory that a work-group's stages ask for, in elements of fused_teams.cl. */
static int64_t shared_elements(const ocl_fused_kernel *k) {
  enum { ELEMENT = 64 };
  int64_t most = 1;
  for (int s = 0; s < k->nstages; s++) {
    const int64_t lanes = k->space.rows ? 1 : k->space.team.vec;
    const int64_t bytes = (int64_t)ocl_number_as(&(ocl_number){0}, k->stages[s].pass.accumulator, &(ocl_value){0});
    most = ocl_larger(most, ocl_ceil_divide((int64_t)k->local * lanes * bytes, ELEMENT));
  }
  return most;
}

/* Of teams the kernel has a section of its own: its vectors are those of the ops, not those of a stage. */
static void write_team_kernel(ocl_text *text, const ocl_fused_kernel *k, int number) {
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(k->device, GRAFT_F32), k->device->vector_width, k->local);
  ocl_text_add(&head, "#define TEAM_VEC %d\n#define SHARED %d\n", (int)k->space.team.vec, (int)shared_elements(k));
  if (head.failed) {
    text->failed = true;
    return;
  }
  open_section(text, &(section){.number = number, .parts = {head.items, ocl_kernel_source("core/common")}});
  ocl_fused_write_kernel(text, k);
  ocl_text_free(&head);
}

void ocl_fused_write(ocl_text *text, const ocl_fused_kernel *k) {
  const bool teams = ocl_fused_has_teams(k);
  int number = 0, at = next_section(k, 0);
  for (; number < k->nstages; number++)
    write_stage(text, k, number, number + 1 == k->nstages && at == k->nops && !teams);
  for (int next; at < k->nops; at = next, number++) {
    next = next_section(k, at + 1);
    write_ops(text, k, k->ops[at].compute, number, next == k->nops && !teams);
  }
  if (teams) write_team_kernel(text, k, number);
}

/* Sections from 1 on: functions of what comes behind have their own names. */
void ocl_fused_write_functions(ocl_text *text, const graft_device *device, size_t local, const ocl_fused_op *ops,
                               int nops) {
  const ocl_fused_kernel k = {.device = device, .local = local, .ops = ops, .nops = nops};
  int number = 1;
  for (int at = next_section(&k, 0), next; at < nops; at = next, number++) {
    next = next_section(&k, at + 1);
    write_ops(text, &k, ops[at].compute, number, false);
  }
}

/* All sections are closed: what follows has head and common.cl of its own, whose functions get new names. */
void ocl_fused_write_before_product(ocl_text *text, const ocl_fused_kernel *k) {
  int number = 0;
  for (int at = next_section(k, 0), next; at < k->nops; at = next, number++) {
    next = next_section(k, at + 1);
    write_ops(text, k, k->ops[at].compute, number, false);
  }
  ocl_text head = {0};
  ocl_head_types(&head, ocl_dtype_of(k->device, GRAFT_F32), k->device->vector_width, k->local);
  ocl_text_add(&head, "#define OPERANDS %d\n#define NUMBERS %d\n", k->geometry.operands,
               k->nnumbers > 0 ? k->nnumbers : 1);
  if (head.failed) {
    text->failed = true;
    return;
  }
  const char *common = ocl_kernel_source("core/common");
  const section s = {.number = number, .parts = {head.items, common}};
  open_section(text, &s);
  ocl_fused_write_follower(text, k);
  for_each_macro(text, ocl_kernel_source("pointwise/fused"), undefine, 0);
  close_section(text, &s);
  ocl_text_free(&head);
  for_each_function(text, common, rename_function, number + 1);
  ocl_fused_write_parameters_of_follower(text, k);
}
