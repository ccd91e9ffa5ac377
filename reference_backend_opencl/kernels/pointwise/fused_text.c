/* The text of a fused kernel. Macros of common.cl and functions.cl are for one compute type, those of step.cl for one
 * op. So there is a section for each compute type among the ops, with these files in it, and in it a function for each
 * op; behind each the macros are undefined, and from the second section on functions get names of their own. The kernel
 * stands in the last section. */
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
  for (int i = 0; i < PARTS; i++) ocl_text_add(text, "%s", parts[i]);
  for (int i = 0; i < PARTS; i++) for_each_macro(text, parts[i], undefine, 0);
  ocl_text_free(&head);
}

/* ---- a section ---- */

static bool same_section(const ocl_dtype *a, const ocl_dtype *b) {
  return strcmp(a->compute, b->compute) == 0 && a->class == b->class;
}

/* The next op from number `at` on that stands in a section of its own, whose first op it is; nops: none. */
static int next_section(const ocl_fused_kernel *k, int at) {
  for (; at < k->nops; at++) {
    int earlier = 0;
    while (earlier < at && (k->ops[earlier].moves || !same_section(k->ops[earlier].compute, k->ops[at].compute)))
      earlier++;
    if (!k->ops[at].moves && earlier == at) return at;
  }
  return at;
}

static bool needs_powers(const ocl_fused_kernel *k, const ocl_dtype *compute) {
  bool needed = false;
  for (int i = 0; i < k->nops; i++) {
    const ocl_fused_op *op = &k->ops[i];
    needed = needed || (!op->moves && same_section(op->compute, compute) && op->recipe->flags & OCL_POWERS);
  }
  return needed;
}

static void write_kernel(ocl_text *text, const ocl_fused_kernel *k);

static void write_section(ocl_text *text, const ocl_fused_kernel *k, const ocl_dtype *compute, int section, bool last) {
  ocl_text head = {0};
  ocl_head_types(&head, compute, k->device->vector_width, k->local);
  if (head.failed) {
    text->failed = true;
    return;
  }
  const char *const parts[] = {head.items, ocl_kernel_source("core/common"),
                               needs_powers(k, compute) ? ocl_kernel_source("pointwise/power") : "",
                               ocl_kernel_source("pointwise/functions")};
  enum { PARTS = sizeof parts / sizeof *parts };
  for (int i = 0; section > 0 && i < PARTS; i++) for_each_function(text, parts[i], rename_function, section);
  for (int i = 0; i < PARTS; i++) ocl_text_add(text, "%s", parts[i]);
  for (int i = 0; i < k->nops; i++) {
    if (!k->ops[i].moves && same_section(k->ops[i].compute, compute)) write_op(text, k, i);
  }
  if (last) write_kernel(text, k);
  for (int i = 0; !last && i < PARTS; i++) {
    for_each_macro(text, parts[i], undefine, section);
    if (section > 0) for_each_function(text, parts[i], undefine, section);
  }
  ocl_text_free(&head);
}

/* ---- the kernel ---- */

static int inner_kind(int64_t stride) {
  return stride == 0 || stride == 1 ? (int)stride : 2;
}

static void write_parameters(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text, "KERNEL fused(");
  for (int i = 0; i < k->noutputs; i++) ocl_text_add(text, "PLACE(out_%d), ", i);
  for (int i = 0; i < k->ninputs; i++) ocl_text_add(text, "CONST_PLACE(in_%d), ", i);
  ocl_text_add(text, "numbers given, space shape) {\n");
}

static void write_rows(ocl_text *text, const ocl_fused_kernel *k) {
  for (int i = 0; i < k->noutputs; i++) {
    const char *name = k->value_dtypes[k->outputs[i].value]->name;
    ocl_text_add(text, "    __global RAW(%s) *row_out_%d = POINTER(%s, out_%d) + start[%d];\n", name, i, name, i, i);
  }
  for (int i = 0; i < k->ninputs; i++) {
    const char *name = k->value_dtypes[k->inputs[i].value]->name;
    ocl_text_add(text, "    __global const RAW(%s) *row_in_%d = CONST_POINTER(%s, in_%d) + start[%d];\n", name, i, name,
                 i, k->noutputs + i);
  }
}

static void add_number(ocl_text *text, const ocl_fused_op *op, int number) {
  if (number < 0)
    ocl_text_add(text, ", 0");
  else
    ocl_text_add(text, ", NUMBER_%s(given.at[%d])", op->compute->compute, number);
}

static void write_call(ocl_text *text, const ocl_fused_op *op, int number, int vector) {
  ocl_text_add(text, "      op_%d(&v%d_%d", number, vector, op->value);
  if (op->recipe->second) ocl_text_add(text, ", &v%d_%d", vector, op->second_value);
  for (int i = 0; i < op->operands.inputs; i++) {
    if (ocl_is_value(op->operands.input[i]))
      add_number(text, op, op->input_number[i]);
    else
      ocl_text_add(text, ", &v%d_%d", vector, op->input_value[i]);
  }
  for (int i = 0; i < OCL_SCALARS_MAX; i++) add_number(text, op, op->scalar_number[i]);
  ocl_text_add(text, ");\n");
}

static void write_fetches(ocl_text *text, const ocl_fused_kernel *k, int vector) {
  for (int i = 0; i < k->nvalues; i++)
    ocl_text_add(text, "      VEC_OF(RAW(%s)) v%d_%d;\n", k->value_dtypes[i]->name, vector, i);
  for (int i = 0; i < k->ninputs; i++) {
    const int operand = k->noutputs + i, value = k->inputs[i].value;
    ocl_text_add(text, "      FETCH(v%d_%d, %s, row_in_%d, %d, %d, (i + %d * VEC))\n", vector, value,
                 k->value_dtypes[value]->name, i, inner_kind(k->geometry.stride[operand][0]), operand, vector);
  }
}

static void write_puts(ocl_text *text, const ocl_fused_kernel *k, int vector) {
  for (int i = 0; i < k->noutputs; i++) {
    const int value = k->outputs[i].value;
    ocl_text_add(text, "      PUT(v%d_%d, %s, row_out_%d, %d, %d, (i + %d * VEC))\n", vector, value,
                 k->value_dtypes[value]->name, i, inner_kind(k->geometry.stride[i][0]), i, vector);
  }
}

/* Of so many vectors, which take turns: an op of one need not wait for the op before it. */
static void write_step(ocl_text *text, const ocl_fused_kernel *k, int vectors) {
  for (int v = 0; v < vectors; v++) write_fetches(text, k, v);
  for (int i = 0; i < k->nops; i++) {
    for (int v = 0; v < vectors && !k->ops[i].moves; v++) write_call(text, &k->ops[i], i, v);
  }
  for (int v = 0; v < vectors; v++) write_puts(text, k, v);
}

static void write_kernel(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text, "#define RANK %d\n#define OPERANDS %d\n#define NUMBERS %d\n%s", k->geometry.rank,
               k->geometry.operands, k->nnumbers > 0 ? k->nnumbers : 1, ocl_kernel_source("pointwise/fused"));
  write_parameters(text, k);
  ocl_text_add(text,
               "  long first = (long)get_global_id(0) * shape.per_item;\n"
               "  long last = min(first + shape.per_item, shape.chunks);\n"
               "  for (long at = first; at < last; at++) {\n    BEGIN_CHUNK(at)\n");
  write_rows(text, k);
  if (k->device->is_cpu) {
    ocl_text_add(text, "    for (; i + 2 * VEC <= end; i += 2 * VEC) {\n      const int n = VEC;\n");
    write_step(text, k, 2);
    ocl_text_add(text, "    }\n");
  }
  ocl_text_add(text, "    for (; i < end; i += VEC) {\n      int n = (int)min((long)VEC, end - i);\n");
  write_step(text, k, 1);
  ocl_text_add(text, "    }\n  }\n}\n");
}

void ocl_fused_write(ocl_text *text, const ocl_fused_kernel *k) {
  int section = 0;
  for (int at = next_section(k, 0), next; at < k->nops; at = next, section++) {
    next = next_section(k, at + 1);
    write_section(text, k, k->ops[at].compute, section, next == k->nops);
  }
}
