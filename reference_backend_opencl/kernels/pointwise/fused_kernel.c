/* The text of a fused kernel itself: values are variables, calls are calls of the functions that stand before it. */
#include "kernels/pointwise/fused_write.h"

#include <stdio.h>

static int inner_kind(int64_t stride) {
  return stride == 0 || stride == 1 ? (int)stride : 2;
}

int ocl_fused_lanes(const ocl_fused_kernel *k) {
  const int width = (int)k->device->vector_width, step = (int)k->space.team.vec;
  return step < width ? step : width;
}

int ocl_fused_parts(const ocl_fused_kernel *k) {
  return (int)k->space.team.vec / ocl_fused_lanes(k);
}

void ocl_fused_add_value(ocl_text *text, const ocl_fused_kernel *k, int value, int vector) {
  const bool kept = k->values[value].kept;
  if (kept && k->space.rows)
    ocl_text_add(text, "r_%d", value);
  else
    ocl_text_add(text, "v%d_%d", kept && ocl_fused_has_teams(k) ? vector % ocl_fused_parts(k) : vector, value);
}

void ocl_fused_declare(ocl_text *text, const ocl_fused_kernel *k, int value, int vector) {
  ocl_text_add(text, "VEC_OF(RAW(%s)) ", k->values[value].dtype->name);
  ocl_fused_add_value(text, k, value, vector);
  ocl_text_add(text, ";\n");
}

/* ---- parameters ---- */

static void write_parameters(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text, "KERNEL fused(");
  for (int i = 0; i < k->noutputs; i++) ocl_text_add(text, "PLACE(out_%d), ", i);
  for (int i = 0; i < k->ninputs; i++) {
    if (!k->inputs[i].drawn) ocl_text_add(text, "CONST_PLACE(in_%d), ", i);
  }
  if (k->nslots > 0 || k->space.team.splits > 1) ocl_text_add(text, "PLACE(scratch), ");
  ocl_text_add(text, "numbers given, space shape) {\n");
}

/* Where each operand begins: with the row at hand, or at its first element. */
void ocl_fused_write_begins(ocl_text *text, const ocl_fused_kernel *k, bool of_row) {
  for (int i = 0; i < k->geometry.operands; i++) {
    const bool out = i < k->noutputs;
    const int at = out ? i : i - k->noutputs;
    if (!out && k->inputs[at].drawn) {
      ocl_text_add(text, of_row ? "const long row_in_%d = start[%d];\n" : "const long row_in_%d = 0;\n", at, i);
      continue;
    }
    const char *name = k->values[out ? k->outputs[at].value : k->inputs[at].value].dtype->name;
    ocl_text_add(text, "__global %sRAW(%s) *row_%s_%d = %s(%s, %s_%d)", out ? "" : "const ", name, out ? "out" : "in",
                 at, out ? "POINTER" : "CONST_POINTER", name, out ? "out" : "in", at);
    if (of_row) ocl_text_add(text, " + start[%d]", i);
    ocl_text_add(text, ";\n");
  }
}

/* ---- what one call is ---- */

void ocl_fused_add_number(ocl_text *text, const ocl_dtype *compute, int number) {
  if (number < 0)
    ocl_text_add(text, "0");
  else
    ocl_text_add(text, "NUMBER_%s(given.at[%d])", compute->compute, number);
}

void ocl_fused_write_call(ocl_text *text, const ocl_fused_kernel *k, int number, int vector) {
  const ocl_fused_op *op = &k->ops[number];
  ocl_text_add(text, "op_%d(&", number);
  ocl_fused_add_value(text, k, op->value, vector);
  if (op->recipe->second) {
    ocl_text_add(text, ", &");
    ocl_fused_add_value(text, k, op->second_value, vector);
  }
  for (int i = 0; i < op->operands.inputs; i++) {
    const bool is_number = ocl_is_value(op->operands.input[i]);
    ocl_text_add(text, is_number ? ", " : ", &");
    if (is_number)
      ocl_fused_add_number(text, op->compute, op->input_number[i]);
    else
      ocl_fused_add_value(text, k, op->input_value[i], vector);
  }
  for (int i = 0; i < OCL_SCALARS_MAX; i++) {
    ocl_text_add(text, ", ");
    ocl_fused_add_number(text, op->compute, op->scalar_number[i]);
  }
  ocl_text_add(text, ");\n");
}

/* ---- elements in memory ---- */

/* Where a vector lies that a step is at: of a row or a chunk at i, of columns at j in row i. */
typedef enum ocl_step { IN_ROW, AT_COLUMNS, IN_COLUMNS } step;

static step step_of(const ocl_fused_kernel *k) {
  return k->space.reduced && !k->space.rows ? IN_COLUMNS : IN_ROW;
}

/* FETCH(value, dtype, row, inner, step, place) or PUT. */
void ocl_fused_write_access(ocl_text *text, const ocl_fused_kernel *k, int operand, int vector, const char *row,
                            const char *place) {
  const bool out = operand < k->noutputs;
  const int at = out ? operand : operand - k->noutputs, value = out ? k->outputs[at].value : k->inputs[at].value;
  const int64_t inner = k->space.reduced ? k->inner[operand] : k->geometry.stride[operand][0];
  const bool drawn = !out && k->inputs[at].drawn;
  ocl_text_add(text, out ? "PUT(" : drawn ? "DRAW(" : "FETCH(");
  ocl_fused_add_value(text, k, value, vector);
  if (drawn)
    ocl_text_add(text, ", given.at[%d], given.at[%d], (row_in_%d", k->inputs[at].stream, k->inputs[at].stream + 1, at);
  else
    ocl_text_add(text, ", %s, (row_%s_%d", k->values[value].dtype->name, out ? "out" : "in", at);
  if (row) ocl_text_add(text, " + %s * shape.stride[%d].along[0]", row, operand);
  ocl_text_add(text, "), %d, %s[%d]%s, (%s))\n", inner_kind(inner), k->space.reduced ? "shape.inner" : "shape.stride",
               operand, k->space.reduced ? "" : ".along[0]", place);
}

static void write_access(ocl_text *text, const ocl_fused_kernel *k, int operand, int vector, step step) {
  char place[32];
  snprintf(place, sizeof place, "%s + %d * VEC", step == IN_ROW ? "i" : "j", vector);
  ocl_fused_write_access(text, k, operand, vector, step == IN_COLUMNS ? "i" : NULL, place);
}

static void write_slot(ocl_text *text, const ocl_fused_kernel *k, int slot, int vector, bool store) {
  const int value = k->slots[slot];
  ocl_text_add(text, store ? "PUT(" : "FETCH(");
  ocl_fused_add_value(text, k, value, vector);
  ocl_text_add(text, ", %s, slot_%d, 1, 1, (i + %d * VEC))\n", k->values[value].dtype->name, slot, vector);
}

/* ---- a step of a phase: so many vectors, which take turns: an op of one need not wait for the op before it ---- */

static void write_fetches(ocl_text *text, const ocl_fused_kernel *k, int phase, int vector) {
  for (int v = 0; v < k->nvalues; v++) {
    if (!k->values[v].kept) ocl_fused_declare(text, k, v, vector);
  }
  for (int i = 0; i < k->ninputs; i++) {
    const ocl_fused_value *value = &k->values[k->inputs[i].value];
    if (!value->kept && k->needed[phase][k->inputs[i].value])
      write_access(text, k, k->noutputs + i, vector, step_of(k));
  }
  for (int s = 0; s < k->nslots; s++) {
    if (k->needed[phase][k->slots[s]] && k->values[k->slots[s]].phase < phase) write_slot(text, k, s, vector, false);
  }
}

static void write_puts(ocl_text *text, const ocl_fused_kernel *k, int phase, int vector) {
  for (int s = 0; s < k->nslots; s++) {
    if (k->values[k->slots[s]].phase == phase) write_slot(text, k, s, vector, true);
  }
  for (int i = 0; i < k->noutputs; i++) {
    if (k->outputs[i].view.whole && k->output_phase[i] == phase) write_access(text, k, i, vector, step_of(k));
  }
}

static void write_take(ocl_text *text, const ocl_fused_kernel *k, int stage, int vector) {
  const ocl_fused_stage *s = &k->stages[stage];
  ocl_text_add(text, "t%d_%d = take_%d(t%d_%d, &", vector, stage, stage, vector, stage);
  ocl_fused_add_value(text, k, s->source, vector);
  if (s->shift >= 0)
    ocl_text_add(text, ", s%d_%d, n);\n", k->space.rows ? 0 : vector, s->shift);
  else
    ocl_text_add(text, ", 0, n);\n");
}

static void write_step(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors) {
  for (int v = 0; v < vectors; v++) write_fetches(text, k, phase, v);
  for (int i = 0; i < k->nops; i++) {
    for (int v = 0; v < vectors && k->runs[phase][i]; v++) ocl_fused_write_call(text, k, i, v);
  }
  for (int s = 0; s < k->nstages; s++) {
    for (int v = 0; v < vectors && k->stages[s].phase == phase; v++) write_take(text, k, s, v);
  }
  for (int v = 0; v < vectors; v++) write_puts(text, k, phase, v);
}

/* ---- without reductions ---- */

static void write_chunks(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text,
               "long first = (long)get_global_id(0) * shape.per_item;\n"
               "long last = min(first + shape.per_item, shape.chunks);\n"
               "for (long at = first; at < last; at++) {\nBEGIN_CHUNK(at)\n");
  ocl_fused_write_begins(text, k, true);
  if (k->device->is_cpu) {
    ocl_text_add(text, "for (; i + 2 * VEC <= end; i += 2 * VEC) {\nconst int n = VEC;\n");
    write_step(text, k, 0, 2);
    ocl_text_add(text, "}\n");
  }
  ocl_text_add(text, "for (; i < end; i += VEC) {\nint n = (int)min((long)VEC, end - i);\n");
  write_step(text, k, 0, 1);
  ocl_text_add(text, "}\n}\n");
}

/* ---- with reductions ---- */

static bool has_stages(const ocl_fused_kernel *k, int phase) {
  bool has = false;
  for (int s = 0; s < k->nstages; s++) has = has || k->stages[s].phase == phase;
  return has;
}

/* Totals and their levels, of each vector that has its own. */
static void open_stages(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors) {
  for (int s = 0; s < k->nstages; s++) {
    for (int v = 0; v < vectors && k->stages[s].phase == phase; v++) {
      const char *type = k->stages[s].pass.accumulator->compute;
      ocl_text_add(text, "VEC_OF(%s) all%d_%d = nothing_%d(), levels%d_%d[LEVELS];\n", type, v, s, s, v, s);
      ocl_text_add(text, "CLEAR(levels%d_%d, nothing_%d)\n", v, s, s);
    }
  }
}

static void open_totals(ocl_text *text, const ocl_fused_kernel *k, int phase, int totals) {
  for (int s = 0; s < k->nstages; s++) {
    for (int t = 0; t < totals && k->stages[s].phase == phase; t++) {
      ocl_text_add(text, "VEC_OF(%s) t%d_%d = nothing_%d();\n", k->stages[s].pass.accumulator->compute, t, s, s);
    }
  }
}

static void raise_totals(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors) {
  for (int s = 0; s < k->nstages; s++) {
    for (int v = 0; v < vectors && k->stages[s].phase == phase; v++) {
      ocl_text_add(text, "all%d_%d = join_%d(all%d_%d, t%d_%d);\n", v, s, s, v, s, v, s);
      ocl_text_add(text, "RAISE(levels%d_%d, all%d_%d, nothing_%d, join_%d, segment)\n", v, s, v, s, s, s);
    }
  }
}

static void close_stages(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors) {
  for (int s = 0; s < k->nstages; s++) {
    const ocl_fused_stage *stage = &k->stages[s];
    for (int v = 0; v < vectors && stage->phase == phase; v++) {
      ocl_text_add(text, "BRING_TOGETHER(levels%d_%d, all%d_%d, join_%d, segments)\n", v, s, v, s, s);
      ocl_text_add(text, "s%d_%d = total_%d(all%d_%d, ", v, s, s, v, s);
      if (stage->shift >= 0)
        ocl_text_add(text, "s%d_%d, ", v, stage->shift);
      else
        ocl_text_add(text, "0, ");
      ocl_fused_add_number(text, stage->pass.accumulator, stage->number);
      ocl_text_add(text, ");\n");
      if (stage->value < 0) continue;
      ocl_text_add(text, "give_%d(&", s);
      ocl_fused_add_value(text, k, stage->value, v);
      ocl_text_add(text, ", s%d_%d);\n", v, s);
    }
  }
}

/* What a line has one of: variables, and what of it is known before any phase. */
static void open_line(ocl_text *text, const ocl_fused_kernel *k, int vectors) {
  for (int w = 0; w < vectors; w++) {
    for (int v = 0; v < k->nvalues; v++) {
      if (k->values[v].kept) ocl_fused_declare(text, k, v, w);
    }
    for (int s = 0; s < k->nstages; s++)
      ocl_text_add(text, "VEC_OF(%s) s%d_%d;\n", k->stages[s].pass.accumulator->compute, w, s);
  }
  if (k->space.rows) ocl_text_add(text, "{\nconst int n = 1;\nconst long i = 0;\n");
  for (int w = 0; w < vectors; w++) {
    for (int i = 0; i < k->ninputs; i++) {
      if (k->values[k->inputs[i].value].kept)
        write_access(text, k, k->noutputs + i, w, k->space.rows ? IN_ROW : AT_COLUMNS);
    }
  }
  if (k->space.rows) ocl_text_add(text, "}\n");
}

/* The calls on what a line has one of that can be made before this phase. */
void ocl_fused_write_kept(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors) {
  for (int i = 0; i < k->nops; i++) {
    if (!ocl_fused_computes(&k->ops[i])) continue;
    const ocl_fused_value *value = &k->values[k->ops[i].value];
    for (int w = 0; w < vectors && value->kept && value->phase == phase; w++) ocl_fused_write_call(text, k, i, w);
  }
}

static void close_line(ocl_text *text, const ocl_fused_kernel *k, int vectors) {
  if (k->space.rows) ocl_text_add(text, "{\nconst int n = 1;\nconst long i = 0;\n");
  for (int w = 0; w < vectors; w++) {
    for (int i = 0; i < k->noutputs; i++) {
      if (!k->outputs[i].view.whole) write_access(text, k, i, w, k->space.rows ? IN_ROW : AT_COLUMNS);
    }
  }
  if (k->space.rows) ocl_text_add(text, "}\n");
}

/* Four totals side by side, as reduction.cl has them. */
static void write_row_segments(ocl_text *text, const ocl_fused_kernel *k, int phase) {
  enum { TOTALS = 4 };
  open_stages(text, k, phase, 1);
  ocl_text_add(text,
               "const long segments = (shape.length + 64 * VEC - 1) / (64 * VEC);\n"
               "for (long segment = 0; segment < segments; segment++) {\n"
               "long i = segment * 64 * VEC, end = min(i + 64 * VEC, shape.length);\n");
  open_totals(text, k, phase, TOTALS);
  ocl_text_add(text, "for (; i + %d * VEC <= end; i += %d * VEC) {\nconst int n = VEC;\n", TOTALS, TOTALS);
  write_step(text, k, phase, TOTALS);
  ocl_text_add(text, "}\n");
  for (int s = 0; s < k->nstages; s++) {
    if (k->stages[s].phase != phase) continue;
    ocl_text_add(text,
                 "t0_%d = join_%d(t0_%d, t1_%d);\nt2_%d = join_%d(t2_%d, t3_%d);\nt0_%d = join_%d(t0_%d, t2_%d);\n", s,
                 s, s, s, s, s, s, s, s, s, s, s);
  }
  ocl_text_add(text, "for (; i < end; i += VEC) {\nint n = (int)min((long)VEC, end - i);\n");
  write_step(text, k, phase, 1);
  ocl_text_add(text, "}\n");
  raise_totals(text, k, phase, 1);
  ocl_text_add(text, "}\n");
  close_stages(text, k, phase, 1);
}

static void write_row_end(ocl_text *text, const ocl_fused_kernel *k, int phase) {
  ocl_text_add(text,
               "long i = 0, end = shape.length;\n"
               "for (; i + 2 * VEC <= end; i += 2 * VEC) {\nconst int n = VEC;\n");
  write_step(text, k, phase, 2);
  ocl_text_add(text, "}\nfor (; i < end; i += VEC) {\nint n = (int)min((long)VEC, end - i);\n");
  write_step(text, k, phase, 1);
  ocl_text_add(text, "}\n");
}

static void write_rows(ocl_text *text, const ocl_fused_kernel *k) {
  for (int s = 0; s < k->nslots; s++) {
    const char *name = k->values[k->slots[s]].dtype->name;
    ocl_text_add(text, "__global RAW(%s) *slot_%d = SLOT_AT(%s, %d);\n", name, s, name, s);
  }
  ocl_text_add(text,
               "long first = (long)get_global_id(0) * shape.per_item;\n"
               "long last = min(first + shape.per_item, shape.lines);\n"
               "for (long at = first; at < last; at++) {\nBEGIN_ROW(at)\n");
  ocl_fused_write_begins(text, k, true);
  open_line(text, k, 1);
  for (int phase = 0; phase < k->nphases; phase++) {
    ocl_fused_write_kept(text, k, phase, 1);
    ocl_text_add(text, "{\n");
    (has_stages(k, phase) ? write_row_segments : write_row_end)(text, k, phase);
    ocl_text_add(text, "}\n");
  }
  ocl_fused_write_kept(text, k, k->nphases, 1);
  close_line(text, k, 1);
  ocl_text_add(text, "}\n");
}

/* Columns j to j + vectors * VEC, n in each vector, row by row. */
static void write_columns_at(ocl_text *text, const ocl_fused_kernel *k, int vectors) {
  open_line(text, k, vectors);
  for (int phase = 0; phase < k->nphases; phase++) {
    ocl_fused_write_kept(text, k, phase, vectors);
    ocl_text_add(text, "{\n");
    open_stages(text, k, phase, vectors);
    ocl_text_add(text,
                 "const long segments = (shape.length + 63) / 64;\n"
                 "for (long segment = 0; segment < segments; segment++) {\n"
                 "long i = segment * 64, end = min(i + 64, shape.length);\n");
    open_totals(text, k, phase, vectors);
    ocl_text_add(text, "for (; i < end; i++) {\n");
    write_step(text, k, phase, vectors);
    ocl_text_add(text, "}\n");
    raise_totals(text, k, phase, vectors);
    ocl_text_add(text, "}\n");
    close_stages(text, k, phase, vectors);
    ocl_text_add(text, "}\n");
  }
  ocl_fused_write_kept(text, k, k->nphases, vectors);
  close_line(text, k, vectors);
}

/* As much of a row at once as is worth going to another page of memory for. */
static void write_columns(ocl_text *text, const ocl_fused_kernel *k) {
  enum { WIDE = 4 };
  ocl_fused_write_begins(text, k, false);
  ocl_text_add(text,
               "long j = (long)get_global_id(0) * shape.per_item;\n"
               "long last = min(j + shape.per_item, shape.lines);\n"
               "for (; j + %d * VEC <= last; j += %d * VEC) {\nconst int n = VEC;\n",
               WIDE, WIDE);
  write_columns_at(text, k, WIDE);
  ocl_text_add(text, "}\nfor (; j < last; j += VEC) {\nint n = (int)min((long)VEC, last - j);\n");
  write_columns_at(text, k, 1);
  ocl_text_add(text, "}\n");
}

/* What lays the elements over the device. */
static const char *space_of(const ocl_fused_kernel *k) {
  if (!k->space.reduced) return "pointwise/fused_chunks";
  return ocl_fused_has_teams(k) ? "pointwise/fused_teams" : "pointwise/fused_rows";
}

static bool has_draws(const ocl_fused_kernel *k) {
  bool has = false;
  for (int i = 0; i < k->ninputs; i++) has = has || k->inputs[i].drawn;
  return has;
}

void ocl_fused_write_kernel(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text, "#define RANK %d\n#define OPERANDS %d\n#define NUMBERS %d\n#define SLOTS %d\n", k->geometry.rank,
               k->geometry.operands, k->nnumbers > 0 ? k->nnumbers : 1, k->nslots > 0 ? k->nslots : 1);
  ocl_text_add(text, "#define STAGES %d\n%s%s", k->nstages, ocl_kernel_source("pointwise/fused"),
               ocl_kernel_source(space_of(k)));
  if (has_draws(k))
    ocl_text_add(text, "%s%s", ocl_kernel_source("random/philox"), ocl_kernel_source("pointwise/fused_draw"));
  write_parameters(text, k);
  if (!k->space.reduced)
    write_chunks(text, k);
  else if (ocl_fused_has_teams(k))
    ocl_fused_write_teams(text, k);
  else if (k->space.rows)
    write_rows(text, k);
  else
    write_columns(text, k);
  ocl_text_add(text, "}\n");
}
