/* Negative log likelihood and its gradient. After cascade.cl and lines.cl, all rows.
 * The head defines D (values), D_TARGET, OP_ID, WEIGHTED, REDUCTION (0 none, 1 mean, 2 sum), EACH_ROW (1: a loss for each
 * row), INNER where `inner` is more than 1, and TAKEN where `in` has but the value of each row's class. */
#define MEAN 1
DEFINE_ACCESS(value, D)

/* Values are outer x classes x inner; a row is one (outer, inner), of one target. */
typedef struct {
  long rows, classes, inner, ignored;
} likelihood;

/* The class of a row, or -1. What is no class is reported and never looked up. */
static long class_of(__global const RAW(D_TARGET) * targets, long row, likelihood shape, __global long *faults) {
  long class = (long)targets[row];
  if (class == shape.ignored) return -1;
  if (class >= 0 && class < shape.classes) return class;
  REPORT(faults, OP_ID, class, shape.classes);
  return -1;
}

/* Where the value of a row's class stands. */
static long place_of(long row, long class, likelihood shape) {
#ifdef TAKEN
  return row;
#elif defined(INNER)
  return (row / shape.inner * shape.classes + class) * shape.inner + row % shape.inner;
#else
  return row * shape.classes + class;
#endif
}

static CT weight_of(__global const RAW(D) * weights, long class) {
#ifdef WEIGHTED
  return one_value(weights + class);
#else
  return (CT)1;
#endif
}

KERNEL nll_rows(PLACE(out), PLACE(total), CONST_PLACE(in), CONST_PLACE(target), CONST_PLACE(weight),
                __global long *faults, likelihood shape) {
  __global const RAW(D) *weights = CONST_POINTER(D, weight);
  for (long row = get_global_id(0); row < shape.rows; row += get_global_size(0)) {
    long class = class_of(CONST_POINTER(D_TARGET, target), row, shape, faults);
    VT loss = (VT)0;
    if (class >= 0) {
      loss = (VT)(-one_value(CONST_POINTER(D, in) + place_of(row, class, shape)) * weight_of(weights, class));
    }
    put_value(POINTER(D, out) + row, loss, 1);
  }
  if (get_global_id(0) == 0) put_value(POINTER(D, total), (VT)0, 1);
}

/* One work-group: losses and weights are one number a row. A work-item of a CPU adds up some rows, which it reads at once,
 * before it adds these sums. */
#ifdef IS_CPU
#define ROWS_AT_ONCE 16
#else
#define ROWS_AT_ONCE 1
#endif
KERNEL nll_sum(PLACE(out), PLACE(total), CONST_PLACE(in), CONST_PLACE(target), CONST_PLACE(weight),
               __global long *faults, likelihood shape) {
  GROUP_ARRAY(CT, shared);
  __global const RAW(D) *weights = CONST_POINTER(D, weight);
  cascade losses = cascade_of_none(), all_weights = cascade_of_none();
  for (long row = (long)get_local_id(0) * ROWS_AT_ONCE; row < shape.rows; row += LOCAL * ROWS_AT_ONCE) {
    const int rows = (int)min((long)ROWS_AT_ONCE, shape.rows - row);
    CT loss = 0, all = 0;
    for (int j = 0; j < rows; j++) {
      const long class = class_of(CONST_POINTER(D_TARGET, target), row + j, shape, faults);
      if (class < 0) continue;
      const CT w = weight_of(weights, class);
      loss -= one_value(CONST_POINTER(D, in) + place_of(row + j, class, shape)) * w;
      all += w;
    }
    cascade_add(&losses, loss);
    cascade_add(&all_weights, all);
  }
  CT loss = cascade_total(&losses), all = cascade_total(&all_weights);
  VT sum = total_sum(only((VT)loss, 1, 0), shared), sum_all = total_sum(only((VT)all, 1, 0), shared);
  if (get_local_id(0) != 0) return;
  put_value(POINTER(D, out), REDUCTION == MEAN ? sum / sum_all : sum, 1);
  put_value(POINTER(D, total), sum_all, 1);
}

/* Zero but where the class stands. A unit is a row's classes, or with INNER the rows of one class side by side. */
KERNEL nll_gradient(PLACE(out), CONST_PLACE(grad), CONST_PLACE(total), CONST_PLACE(target), CONST_PLACE(weight),
                    __global long *faults, likelihood shape, lines space) {
  __global const RAW(D) *weights = CONST_POINTER(D, weight);
  __global const RAW(D) *grads = CONST_POINTER(D, grad);
  __global const RAW(D_TARGET) *targets = CONST_POINTER(D_TARGET, target);
  CT divisor = REDUCTION == MEAN ? one_value(CONST_POINTER(D, total)) : (CT)1;
  long first = (long)UNIT_ID * space.per_item, last = min(first + space.per_item, space.units);
  for (long unit = first; unit < last; unit++) {
    __global RAW(D) *to = POINTER(D, out) + unit * space.size;
#ifdef INNER
    long outer = unit / shape.classes, here = unit % shape.classes;
    for (long j = get_local_id(0); j < space.size; j += LOCAL) {
      long row = outer * shape.inner + j, class = class_of(targets, row, shape, faults);
      CT g = class == here ? -one_value(grads + (EACH_ROW ? row : 0)) * weight_of(weights, class) / divisor : (CT)0;
      put_value(to + j, (VT)g, 1);
    }
#else
    long class = class_of(targets, unit, shape, faults);
    CT g = class >= 0 ? -one_value(grads + (EACH_ROW ? unit : 0)) * weight_of(weights, class) / divisor : (CT)0;
    EACH(i, n, 0, space.size, VT v = (VT)0; if (class >= i && class < i + n) {
      CT lanes[VEC];
      VSTORE(v, lanes);
      lanes[class - i] = g;
      v = VLOAD(lanes);
    } put_value(to + i, v, n))
#endif
  }
}
