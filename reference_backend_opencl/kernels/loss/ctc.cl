/* Connectionist temporal classification. The head defines D (f32 or f64), D_TARGET and OP_ID.
 *
 * An entry of L labels has 2L + 1 states: blank, label, blank, ..., blank. A work-group takes an entry, step by step;
 * its work-items share the states. `table` has for each entry its steps, its labels, and where its labels begin. */
typedef struct {
  long steps, batch, classes, states, blank, skips_infinite;
} ctc_shape;

#if LOCAL > 1
#define STEP_DONE barrier(CLK_GLOBAL_MEM_FENCE)
#else
#define STEP_DONE
#endif
#define NOTHING ((CT)(-INFINITY))

typedef struct {
  long n, steps, states;
  __global const RAW(D_TARGET) *labels;
} entry_t;

static entry_t entry_at(long n, __global const RAW(D_TARGET) *targets, __global const long *table) {
  entry_t e = {n, table[3 * n], 2 * table[3 * n + 1] + 1, targets + table[3 * n + 2]};
  return e;
}

/* The class of a state. What is no class is reported and taken for blank. */
static long class_of(entry_t e, long s, ctc_shape shape, __global long *faults) {
  if (s % 2 == 0) return shape.blank;
  long class = (long)e.labels[s / 2];
  if (class >= 0 && class < shape.classes) return class;
  REPORT(faults, OP_ID, class, shape.classes);
  return shape.blank;
}

static CT log_add(CT a, CT b) {
  CT most = a != a || a > b ? a : b, least = a != a || a > b ? b : a;
  return most == NOTHING || most == -NOTHING || most != most ? most : most + log1p(exp(least - most));
}

/* Alpha, forwards (way -1), or beta, backwards (way 1). */
static INLINED void walk_steps(entry_t e, __global CT *rows, __global const CT *p, ctc_shape shape, int way,
                               __global long *faults) {
  for (long i = get_local_id(0); i < shape.steps * shape.states; i += LOCAL)
    if (i / shape.states >= e.steps || i % shape.states >= e.states) rows[i] = NOTHING;
  for (long i = 0; i < e.steps; i++) {
    long t = way < 0 ? i : e.steps - 1 - i;
    __global const CT *now = p + (t * shape.batch + e.n) * shape.classes;
    __global CT *to = rows + t * shape.states, *from = to + way * shape.states;
    for (long s = get_local_id(0); s < e.states; s += LOCAL) {
      long class = class_of(e, s, shape, faults), beside = s + way, behind = beside + way;
      CT sum = (way < 0 ? s : e.states - 1 - s) < 2 ? (CT)0 : NOTHING;
      if (i > 0) {
        sum = from[s];
        if (beside >= 0 && beside < e.states) sum = log_add(sum, from[beside]);
        if (behind >= 0 && behind < e.states && class_of(e, behind, shape, faults) != class)
          sum = log_add(sum, from[behind]);
      }
      to[s] = sum + now[class];
    }
    STEP_DONE;
  }
}

KERNEL ctc_alpha(PLACE(loss), PLACE(alpha), CONST_PLACE(in), CONST_PLACE(target), __global const long *table,
                 __global long *faults, ctc_shape shape) {
  entry_t e = entry_at((long)get_group_id(0), CONST_POINTER(D_TARGET, target), table);
  __global CT *rows = POINTER(D, alpha) + e.n * shape.steps * shape.states;
  walk_steps(e, rows, CONST_POINTER(D, in), shape, -1, faults);
  if (get_local_id(0) != 0) return;
  __global const CT *last = rows + (e.steps - 1) * shape.states + e.states - 1;
  CT all = e.states == 1 ? (CT)0 : NOTHING;
  if (e.steps > 0) all = e.states == 1 ? last[0] : log_add(last[0], last[-1]);
  (POINTER(D, loss))[e.n] = -all;
}

KERNEL ctc_beta(PLACE(beta), CONST_PLACE(in), CONST_PLACE(target), __global const long *table, __global long *faults,
                ctc_shape shape) {
  entry_t e = entry_at((long)get_group_id(0), CONST_POINTER(D_TARGET, target), table);
  walk_steps(e, POINTER(D, beta) + e.n * shape.steps * shape.states, CONST_POINTER(D, in), shape, 1, faults);
}

/* A work-item takes a step of an entry: for each class its probability, less the share of the likelihood that passes
 * through it. */
KERNEL ctc_slopes(PLACE(out), CONST_PLACE(grad), CONST_PLACE(in), CONST_PLACE(target), CONST_PLACE(loss),
                  CONST_PLACE(alpha), CONST_PLACE(beta), __global const long *table, __global long *faults,
                  ctc_shape shape) {
  long unit = get_global_id(0), t = unit / shape.batch, n = unit % shape.batch;
  if (t >= shape.steps) return;
  entry_t e = entry_at(n, CONST_POINTER(D_TARGET, target), table);
  __global CT *to = POINTER(D, out) + unit * shape.classes;
  __global const CT *p = CONST_POINTER(D, in) + unit * shape.classes;
  long at = (n * shape.steps + t) * shape.states;
  __global const CT *before = CONST_POINTER(D, alpha) + at, *after = CONST_POINTER(D, beta) + at;
  CT nll = (CONST_POINTER(D, loss))[n], g = (CONST_POINTER(D, grad))[n];
  int left_out = t >= e.steps || (shape.skips_infinite && nll == -NOTHING);
  for (long k = 0; k < shape.classes; k++) to[k] = left_out ? (CT)0 : NOTHING;
  if (left_out) return;
  for (long s = 0; s < e.states; s++) {
    long class = class_of(e, s, shape, faults);
    to[class] = log_add(to[class], before[s] + after[s]);
  }
  for (long k = 0; k < shape.classes; k++) to[k] = (exp(p[k]) - exp(to[k] + nll - p[k])) * g;
}
