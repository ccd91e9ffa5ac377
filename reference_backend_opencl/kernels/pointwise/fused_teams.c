/* Fused kernels with reductions for a GPU: the text around what fused_teams.cl says, and how lines are laid over teams.
 * A work-item has few steps of a line, whose values it holds in registers until the line's reductions are known; or it
 * goes through them once in each phase. */
#include <stdio.h>
#include <string.h>

#include "kernels/pointwise/fused_write.h"

enum { PLACE_BYTES = 64 };

/* ---- how lines are laid ---- */

static int64_t count_steps(const ocl_fused_kernel *k) {
  const int64_t length = ocl_fused_length(&k->space);
  return k->space.rows ? length / k->space.team.vec : length;
}

int ocl_fused_held_steps(const ocl_fused_kernel *k) {
  enum { LANES = 32, VECTORS = 8, CALLS = 160 };
  const ocl_fused_team *team = &k->space.team;
  const int64_t steps = ocl_ceil_divide(count_steps(k), team->depth), vectors = steps * ocl_fused_parts(k);
  if (team->splits > 1 || steps * team->vec > LANES || vectors > VECTORS || vectors * k->nops > CALLS) return 0;
  return (int)steps;
}

int64_t ocl_fused_lay_teams(const ocl_fused_kernel *k, int64_t *numbers, int *count, uint64_t *scratch_bytes) {
  enum { LINE = 64 };
  const ocl_fused_team *team = &k->space.team;
  const int64_t lines = ocl_fused_lines(&k->space), steps = count_steps(k);
  int n = ocl_geometry_numbers(&k->geometry, numbers);
  for (int i = 0; i < k->geometry.operands; i++) numbers[n++] = k->inner[i];
  numbers[n++] = lines;
  numbers[n++] = steps;
  numbers[n++] = ocl_ceil_divide(steps, team->splits);
  numbers[n++] = team->width;
  numbers[n++] = team->depth;
  *scratch_bytes = 0;
  for (int s = 0; s < k->nstages; s++) {
    numbers[n++] = (int64_t)*scratch_bytes;
    if (team->splits == 1) continue;
    const int64_t bytes = lines * team->splits * k->stages[s].pass.accumulator->bytes;
    *scratch_bytes += (uint64_t)ocl_round_up(bytes, LINE);
  }
  *count = n;
  const int64_t columns = lines / team->vec, units = k->space.rows ? lines : ocl_ceil_divide(columns, team->width);
  return units * team->width * team->depth;
}

/* ---- steps ---- */

/* Where vector `vector` of the steps at hand lies: in its row, or among the columns. */
static void write_access(ocl_text *text, const ocl_fused_kernel *k, int operand, int vector) {
  char place[PLACE_BYTES], row[PLACE_BYTES];
  const int parts = ocl_fused_parts(k), step = vector / parts, lane = vector % parts * ocl_fused_lanes(k);
  snprintf(row, sizeof row, "step_%d", step);
  if (k->space.rows)
    snprintf(place, sizeof place, "step_%d * TEAM_VEC + %d", step, lane);
  else
    snprintf(place, sizeof place, "line + %d", lane);
  ocl_fused_write_access(text, k, operand, vector, k->space.rows ? NULL : row, place);
}

static bool is_had(const ocl_fused_kernel *k, int value, int phase) {
  bool had = false;
  for (int p = 0; p < phase && k->held; p++) had = had || k->needed[p][value];
  return had;
}

static void declare_whole(ocl_text *text, const ocl_fused_kernel *k, int vectors) {
  for (int w = 0; w < vectors; w++) {
    for (int v = 0; v < k->nvalues; v++) {
      if (!k->values[v].kept) ocl_fused_declare(text, k, v, w);
    }
  }
}

static void write_fetches(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors) {
  for (int i = 0; i < k->ninputs; i++) {
    const int value = k->inputs[i].value;
    if (k->values[value].kept || !k->needed[phase][value] || is_had(k, value, phase)) continue;
    for (int w = 0; w < vectors; w++) write_access(text, k, k->noutputs + i, w);
  }
}

static void write_calls(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors) {
  for (int i = 0; i < k->nops; i++) {
    for (int w = 0; w < vectors && k->runs[phase][i]; w++) ocl_fused_write_call(text, k, i, w);
  }
}

/* Of the last of held steps a work-item may have none. */
static void write_puts(ocl_text *text, const ocl_fused_kernel *k, int phase, int vectors) {
  const int parts = ocl_fused_parts(k), last = k->held ? k->held - 1 : -1;
  for (int w = 0; w < vectors; w++) {
    ocl_text_add(text, w / parts == last ? "if (is_there && is_last) {\n" : "if (is_there) {\n");
    for (int i = 0; i < k->noutputs; i++) {
      if (k->outputs[i].view.whole && k->output_phase[i] == phase) write_access(text, k, i, w);
    }
    ocl_text_add(text, "}\n");
  }
}

static void write_take(ocl_text *text, const ocl_fused_kernel *k, int stage, int step, int total) {
  const ocl_fused_stage *s = &k->stages[stage];
  const int parts = ocl_fused_parts(k);
  const char *dtype = k->values[s->source].dtype->name;
  ocl_text_add(text, "{\nconst VEC_OF(RAW(%s)) lanes[] = {", dtype);
  for (int p = 0; p < parts; p++) {
    ocl_fused_add_value(text, k, s->source, step * parts + p);
    ocl_text_add(text, ", ");
  }
  ocl_text_add(text, "};\nt%d_%d = take_%d(t%d_%d, (__private const RAW(%s) *)lanes, ", total, stage, stage, total,
               stage, dtype);
  if (s->shift >= 0)
    ocl_text_add(text, "s_%d);\n}\n", s->shift);
  else
    ocl_text_add(text, "0);\n}\n");
}

static void write_takes(ocl_text *text, const ocl_fused_kernel *k, int phase, int step, int total) {
  for (int s = 0; s < k->nstages; s++) {
    if (k->stages[s].phase == phase) write_take(text, k, s, step, total);
  }
}

static bool has_stages(const ocl_fused_kernel *k, int phase) {
  bool has = false;
  for (int s = 0; s < k->nstages; s++) has = has || k->stages[s].phase == phase;
  return has;
}

static void open_totals(ocl_text *text, const ocl_fused_kernel *k, int phase, const char *name, int totals) {
  for (int s = 0; s < k->nstages; s++) {
    for (int t = 0; t < totals && k->stages[s].phase == phase; t++)
      ocl_text_add(text, "team_%d %s%d_%d = nothing_%d();\n", s, name, t, s, s);
  }
}

/* The totals side by side into the first. */
static void join_totals(ocl_text *text, const ocl_fused_kernel *k, int phase, int totals) {
  for (int s = 0; s < k->nstages; s++) {
    for (int t = 1; t < totals && k->stages[s].phase == phase; t++)
      ocl_text_add(text, "t0_%d = join_%d(t0_%d, t%d_%d);\n", s, s, s, t, s);
  }
}

/* ---- a line whose values are held ---- */

static void name_held_steps(ocl_text *text, const ocl_fused_kernel *k) {
  const int last = k->held - 1;
  for (int step = 0; step < last; step++) ocl_text_add(text, "const long step_%d = place + %d * depth;\n", step, step);
  ocl_text_add(text, "const bool is_last = place + %d * depth < steps;\n", last);
  ocl_text_add(text, "const long step_%d = is_last ? place + %d * depth : %s;\n", last, last, last ? "step_0" : "0");
}

/* As teams.cl takes so many steps: as many as are side by side at a time, the rest one by one into the first total. */
static void take_held(ocl_text *text, const ocl_fused_kernel *k, int phase, int steps) {
  const int at_once = (int)k->space.team.at_once, whole = steps / at_once * at_once;
  for (int step = 0; step < steps; step++) write_takes(text, k, phase, step, step < whole ? step % at_once : 0);
}

static void write_held(ocl_text *text, const ocl_fused_kernel *k, int phase) {
  const int vectors = k->held * ocl_fused_parts(k);
  const int totals = k->held < k->space.team.at_once ? 1 : (int)k->space.team.at_once;
  write_fetches(text, k, phase, vectors);
  write_calls(text, k, phase, vectors);
  if (has_stages(k, phase)) {
    open_totals(text, k, phase, "t", totals);
    ocl_text_add(text, "if (is_last) {\n");
    take_held(text, k, phase, k->held);
    ocl_text_add(text, "} else {\n");
    take_held(text, k, phase, k->held - 1);
    ocl_text_add(text, "}\n");
    join_totals(text, k, phase, totals);
    for (int s = 0; s < k->nstages; s++) {
      if (k->stages[s].phase == phase) ocl_text_add(text, "all0_%d = t0_%d;\n", s, s);
    }
  }
  write_puts(text, k, phase, vectors);
}

/* ---- a line that is gone through again ---- */

static void write_steps(ocl_text *text, const ocl_fused_kernel *k, int phase, int steps) {
  const int vectors = steps * ocl_fused_parts(k);
  for (int step = 0; step < steps; step++) ocl_text_add(text, "const long step_%d = at + %d * depth;\n", step, step);
  declare_whole(text, k, vectors);
  write_fetches(text, k, phase, vectors);
  write_calls(text, k, phase, vectors);
  for (int step = 0; step < steps; step++) write_takes(text, k, phase, step, step);
  write_puts(text, k, phase, vectors);
}

/* As teams.cl goes through them. */
static void write_loop(ocl_text *text, const ocl_fused_kernel *k, int phase) {
  const int at_once = (int)k->space.team.at_once;
  ocl_text_add(text,
               "for (long at = first_step + place; at < steps;) {\n"
               "const long end = min(steps, at + STRETCH * %d * depth);\n",
               at_once);
  open_totals(text, k, phase, "t", at_once);
  ocl_text_add(text, "for (; at + %d * depth < end; at += %d * depth) {\n", at_once - 1, at_once);
  write_steps(text, k, phase, at_once);
  ocl_text_add(text, "}\nfor (; at < end; at += depth) {\n");
  write_steps(text, k, phase, 1);
  ocl_text_add(text, "}\n");
  join_totals(text, k, phase, at_once);
  for (int s = 0; s < k->nstages; s++) {
    if (k->stages[s].phase == phase) ocl_text_add(text, "all0_%d = join_%d(all0_%d, t0_%d);\n", s, s, s, s);
  }
  ocl_text_add(text, "}\n");
}

/* ---- what a team has together ---- */

/* A result as vectors: all lanes of a row's are it; of columns each has its own. */
static void give_result(ocl_text *text, const ocl_fused_kernel *k, int stage) {
  const int value = k->stages[stage].value, lanes = ocl_fused_lanes(k), width = (int)k->device->vector_width;
  const char *dtype = k->values[value].dtype->name;
  ocl_text_add(text, "{\nRAW(%s) lanes[%d];\ngive_%d(lanes, s_%d);\n", dtype,
               lanes < width ? width : (int)k->space.team.vec, stage, stage);
  if (k->space.rows) {
    ocl_fused_add_value(text, k, value, 0);
    ocl_text_add(text, " = (VEC_OF(RAW(%s)))lanes[0];\n}\n", dtype);
    return;
  }
  for (int lane = lanes; lane < width; lane++) ocl_text_add(text, "lanes[%d] = lanes[0];\n", lane);
  for (int p = 0; p < ocl_fused_parts(k); p++) {
    ocl_fused_add_value(text, k, value, p);
    ocl_text_add(text, " = LANES_AT(lanes + %d);\n", p * lanes);
  }
  ocl_text_add(text, "}\n");
}

static void close_stage(ocl_text *text, const ocl_fused_kernel *k, int stage, int turn) {
  const ocl_fused_stage *s = &k->stages[stage];
  ocl_text_add(text, "all0_%d = together_%d(all0_%d, width, depth, place, (__local shared_%d *)shared[%d]);\n", stage,
               stage, stage, stage, turn % 2);
  if (k->space.team.splits > 1) {
    ocl_text_add(text,
                 "if (is_there && place == 0) leave_%d(scratch + offset_scratch + shape.partial[%d], "
                 "(long)get_group_id(1) * shape.lines + line, all0_%d);\n",
                 stage, stage, stage);
    return;
  }
  ocl_text_add(text, "s_%d = total_%d(all0_%d, ", stage, stage, stage);
  if (s->shift >= 0)
    ocl_text_add(text, "s_%d, ", s->shift);
  else
    ocl_text_add(text, "0, ");
  ocl_fused_add_number(text, s->pass.accumulator, s->number);
  ocl_text_add(text, ");\n");
  if (s->value >= 0) give_result(text, k, stage);
}

/* ---- a line ---- */

static void write_kept_access(ocl_text *text, const ocl_fused_kernel *k, int operand) {
  char place[PLACE_BYTES];
  const int parts = k->space.rows ? 1 : ocl_fused_parts(k);
  for (int p = 0; p < parts; p++) {
    snprintf(place, sizeof place, k->space.rows ? "0" : "line + %d", p * ocl_fused_lanes(k));
    ocl_fused_write_access(text, k, operand, p, NULL, place);
  }
}

static void open_line(ocl_text *text, const ocl_fused_kernel *k) {
  const int parts = k->space.rows ? 1 : ocl_fused_parts(k);
  for (int v = 0; v < k->nvalues; v++) {
    for (int p = 0; p < parts && k->values[v].kept; p++) ocl_fused_declare(text, k, v, p);
  }
  for (int s = 0; s < k->nstages; s++) ocl_text_add(text, "team_%d s_%d, all0_%d = nothing_%d();\n", s, s, s, s);
  ocl_text_add(text, "{\nconst int n = %d;\n", k->space.rows ? 1 : ocl_fused_lanes(k));
  for (int i = 0; i < k->ninputs; i++) {
    if (k->values[k->inputs[i].value].kept) write_kept_access(text, k, k->noutputs + i);
  }
  ocl_text_add(text, "}\n");
}

/* What a second pass makes of partial results is none of this kernel's. */
static void close_line(ocl_text *text, const ocl_fused_kernel *k) {
  ocl_text_add(text, "if (is_there && place == 0) {\nconst int n = %d;\n", k->space.rows ? 1 : ocl_fused_lanes(k));
  for (int i = 0; i < k->noutputs && k->space.team.splits == 1; i++) {
    if (!k->outputs[i].view.whole) write_kept_access(text, k, i);
  }
  ocl_text_add(text, "}\n");
}

void ocl_fused_write_teams(ocl_text *text, const ocl_fused_kernel *k) {
  int turn = 0;
  const int kept = k->space.rows ? 1 : ocl_fused_parts(k);
  ocl_text_add(text, "BEGIN_TEAM\n%s\n", k->space.rows ? "BEGIN_LINE\nBEGIN_ROW(line)" : "BEGIN_COLUMNS");
  ocl_fused_write_begins(text, k, k->space.rows);
  open_line(text, k);
  if (k->held) {
    name_held_steps(text, k);
    declare_whole(text, k, k->held * ocl_fused_parts(k));
  }
  for (int phase = 0; phase < k->nphases; phase++) {
    ocl_fused_write_kept(text, k, phase, kept);
    ocl_text_add(text, "{\nconst int n = %d;\n", ocl_fused_lanes(k));
    (k->held ? write_held : write_loop)(text, k, phase);
    ocl_text_add(text, "}\n");
    for (int s = 0; s < k->nstages; s++) {
      if (k->stages[s].phase == phase) close_stage(text, k, s, turn++);
    }
  }
  ocl_fused_write_kept(text, k, k->nphases, kept);
  close_line(text, k);
}
