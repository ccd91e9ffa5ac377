/* Pointwise calls behind a matrix product or a convolution, in its kernel: each vector of its result goes through them
 * where it would be written. matmul.cl and convolution/followed.cl call what is written here, and store what that makes
 * of it; other outputs are written here. */
#include "kernels/pointwise/fused_write.h"

static const ocl_dtype *dtype_of(const ocl_fused_kernel *k, bool out, int at) {
  return k->values[out ? k->outputs[at].value : k->inputs[at].value].dtype;
}

/* Each operand but the main output: what stands before its name, out_0 or in_0 for one, and behind it. */
typedef struct frame {
  const char *out, *in, *again, *behind; /* again: between the name and the same once more; NULL: it is there once */
} frame;

static void add_operand(ocl_text *text, const frame *f, const char *kind, int at) {
  ocl_text_add(text, "%s%s_%d", kind[0] == 'o' ? f->out : f->in, kind, at);
  if (f->again) ocl_text_add(text, "%s%s_%d", f->again, kind, at);
  ocl_text_append(text, f->behind);
}

static void each_operand(ocl_text *text, const ocl_fused_kernel *k, const frame *f) {
  for (int i = 0; i < k->noutputs; i++) {
    if (i != k->main_output) add_operand(text, f, "out", i);
  }
  for (int i = 0; i < k->ninputs; i++) add_operand(text, f, "in", i);
}

static void write_types(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text,
               "typedef struct {\n"
               "long batch[OPERANDS], row[OPERANDS], column[OPERANDS];\n"
               "} follow_space;\n"
               "typedef struct {\n"
               "__global const uchar *addend;\n");
  each_operand(text, k, &(frame){"__global uchar *", "__global const uchar *", NULL, ";\n"});
  ocl_text_add(text, "numbers given;\nfollow_space shape;\n} extras;\n");
}

/* Rows of operands from the first one on, from their first columns on. */
static void write_rows(ocl_text *text, const ocl_fused_kernel *k, int first) {
  for (int i = first; i < k->geometry.operands; i++) {
    const bool out = i < k->noutputs;
    const int at = out ? i : i - k->noutputs;
    if (i == k->main_output) continue;
    const char *name = dtype_of(k, out, at)->name, *kind = out ? "out" : "in";
    ocl_text_add(text,
                 "__global %sRAW(%s) *row_%s_%d = (__global %sRAW(%s) *)more.%s_%d + batch * shape.batch[%d] + "
                 "line * shape.row[%d];\n",
                 out ? "" : "const ", name, kind, at, out ? "" : "const ", name, kind, at, i, i);
  }
}

static void write_access(ocl_text *text, const ocl_fused_kernel *k, int operand) {
  const bool out = operand < k->noutputs;
  const int at = out ? operand : operand - k->noutputs;
  ocl_text_add(text, out ? "PUT(" : "FETCH_SPREAD(");
  ocl_fused_add_value(text, k, out ? k->outputs[at].value : k->inputs[at].value, 0);
  ocl_text_add(text, ", %s, row_%s_%d, shape.column[%d], shape.column[%d], column)\n", dtype_of(k, out, at)->name,
               out ? "out" : "in", at, operand, operand);
}

/* What a vector will read is asked for while its sums are made. */
static void write_ahead(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text,
               "static void epilogue_ahead(long line, long column, long batch, extras more) {\n"
               "const follow_space shape = more.shape;\n");
  write_rows(text, k, k->noutputs);
  for (int i = 0; i < k->ninputs; i++)
    ocl_text_add(text, "PREFETCH(row_in_%d + shape.column[%d] * column);\n", i, k->noutputs + i);
  ocl_text_add(text, "}\n");
}

static void write_function(ocl_text *text, const ocl_fused_kernel *k) {
  const char *to = dtype_of(k, true, k->main_output)->name;
  ocl_text_add(text,
               "static void epilogue(__private RAW(%s) *to, __private const RAW(%s) *sums, long line, long column, "
               "long batch, int n, extras more) {\n"
               "const numbers given = more.given;\nconst follow_space shape = more.shape;\n",
               to, k->values[k->product_value].dtype->name);
  for (int v = 0; v < k->nvalues; v++) ocl_fused_declare(text, k, v, 0);
  write_rows(text, k, 0);
  ocl_fused_add_value(text, k, k->product_value, 0);
  ocl_text_add(text, " = LANES_AT(sums);\n");
  for (int i = 0; i < k->ninputs; i++) write_access(text, k, k->noutputs + i);
  for (int i = 0; i < k->nops; i++) {
    if (ocl_fused_computes(&k->ops[i])) ocl_fused_write_call(text, k, i, 0);
  }
  for (int i = 0; i < k->noutputs; i++) {
    if (i != k->main_output) write_access(text, k, i);
  }
  ocl_text_add(text, "LANES_TO(");
  ocl_fused_add_value(text, k, k->outputs[k->main_output].value, 0);
  ocl_text_add(text, ", to);\n}\n");
}

void ocl_fused_write_follower(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_append(text, ocl_kernel_source("pointwise/fused"));
  write_types(text, k);
  write_ahead(text, k);
  write_function(text, k);
}

/* Behind the section of the function. */
void ocl_fused_write_parameters_of_follower(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text, "#define EPILOGUE_LANES %u\n#define D_TO %s\n#define EPILOGUE_PARAMETERS", k->device->vector_width,
               dtype_of(k, true, k->main_output)->name);
  each_operand(text, k, &(frame){", PLACE(", ", CONST_PLACE(", NULL, ")"});
  ocl_text_add(text, ", numbers given, follow_space follow_shape\n#define EXTRAS_WITH(addend) ((extras){addend");
  each_operand(text, k, &(frame){", ", ", ", " + offset_", ""});
  ocl_text_add(text, ", given, follow_shape})\n#define ADDEND_OF(extras) ((extras).addend)\n");
}
