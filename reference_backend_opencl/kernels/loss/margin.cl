/* Losses of rows of scores, after cascade.cl and direct.cl. A piece is a row of n.of[0] rows of n.of[1] classes. The head defines
 *   P          1 or 2, the power that a distance is raised to     WEIGHTED  a weight for each class
 *   OP_ID      whose target is at fault                           D_LOSS  what row losses are stored as
 *   EACH_ROW   the cotangent is one a row                         LABELS  multilabel_margin_loss */
#define CLASSES n.of[1]
#define MARGIN NUMBER(2)  /* what classes must be apart */
#define DIVISOR NUMBER(3) /* of the loss */
#define TARGETS(row) ((__global const long *)(target + offset_target) + (row) * TARGET_STRIDE)
#ifdef LABELS
#define TARGET_STRIDE CLASSES
#define LEAST (-1L)
#else
#define TARGET_STRIDE 1
#define LEAST 0L
#endif
#define GRADIENT(row) GET(ELEMENTS(grad) + (EACH_ROW ? (row) : 0))

/* A class, or -1: the row's list ends there, or it is none and was reported. */
static long class_of(long class, long classes, __global long *faults) {
  if (class >= 0 && class < classes) return class;
  if (class < LEAST || class >= classes) REPORT(faults, OP_ID, class, classes);
  return -1;
}

#ifdef LABELS
/* Marks the classes of a row's list. */
static void mark(__global RAW(D) *marks, __global const long *list, long classes, __global long *faults) {
  for (long d = 0; d < classes; d++) PUT(marks + d, (CT)0);
  for (long j = 0; j < classes; j++) {
    long class = class_of(list[j], classes, faults);
    if (class < 0) break;
    PUT(marks + class, (CT)1);
  }
}

KERNEL margin_rows(PLACE(out), PLACE(marks), PLACE(in), PLACE(target), __global long *faults, numbers n) {
  EACH_UNIT(row) {
    __global const RAW(D) *x = ELEMENTS(in) + row * CLASSES;
    __global RAW(D) *marked = ELEMENTS(marks) + row * CLASSES;
    __global const long *list = TARGETS(row);
    mark(marked, list, CLASSES, faults);
    CT sum = 0;
    for (long j = 0; j < CLASSES; j++) {
      long class = class_of(list[j], CLASSES, faults);
      if (class < 0) break;
      CT own = (CT)1 - GET(x + class), part = 0;
      for (long d = 0; d < CLASSES; d++) {
        CT z = own + GET(x + d);
        if (GET(marked + d) == 0 && z > 0) part += z;
      }
      sum += part;
    }
    STORE(D_LOSS, __global, POINTER(D_LOSS, out) + row, sum / DIVISOR);
  }
}

/* Counts are whole numbers: those for a class that is in the list are what its pairs add to the others. */
KERNEL margin_gradient(PLACE(out), PLACE(grad), PLACE(in), PLACE(target), PLACE(marks), __global long *faults,
                       numbers n) {
  EACH_UNIT(row) {
    __global const RAW(D) *x = ELEMENTS(in) + row * CLASSES, *marked = ELEMENTS(marks) + row * CLASSES;
    __global const long *list = TARGETS(row);
    CT g = GRADIENT(row) / DIVISOR;
    for (long c = 0; c < CLASSES; c++) {
      bool other = GET(marked + c) == 0;
      CT own = GET(x + c);
      long count = 0;
      for (long j = 0; j < CLASSES; j++) {
        long class = class_of(list[j], CLASSES, faults);
        if (class < 0) break;
        if (other && (CT)1 - GET(x + class) + own > 0) count++;
        for (long d = 0; class == c && d < CLASSES; d++) {
          if (GET(marked + d) == 0 && (CT)1 - own + GET(x + d) > 0) count--;
        }
      }
      PUT(ELEMENTS(out) + row * CLASSES + c, g * (CT)count);
    }
  }
}
#else
#ifdef WEIGHTED
#define WEIGHT(class) GET(ELEMENTS(weight) + (class))
#else
#define WEIGHT(class) ((CT)1)
#endif

KERNEL margin_rows(PLACE(out), PLACE(in), PLACE(target), PLACE(weight), __global long *faults, numbers n) {
  EACH_UNIT(row) {
    __global const RAW(D) *x = ELEMENTS(in) + row * CLASSES;
    long class = class_of(TARGETS(row)[0], CLASSES, faults);
    CT sum = 0;
    if (class >= 0) {
      CT own = MARGIN - GET(x + class);
      for (long d = 0; d < CLASSES; d++) {
        CT z = own + GET(x + d);
        if (d != class && z > 0) sum += P == 2 ? z * z : z;
      }
      sum *= WEIGHT(class);
    }
    STORE(D_LOSS, __global, POINTER(D_LOSS, out) + row, sum / DIVISOR);
  }
}

KERNEL margin_gradient(PLACE(out), PLACE(grad), PLACE(in), PLACE(target), PLACE(weight), __global long *faults,
                       numbers n) {
  EACH_UNIT(row) {
    __global const RAW(D) *x = ELEMENTS(in) + row * CLASSES;
    __global RAW(D) *to = ELEMENTS(out) + row * CLASSES;
    long class = class_of(TARGETS(row)[0], CLASSES, faults);
    CT scale = class >= 0 ? GRADIENT(row) * WEIGHT(class) / DIVISOR : (CT)0;
    CT own = class >= 0 ? MARGIN - GET(x + class) : (CT)0, sum = 0;
    for (long d = 0; d < CLASSES; d++) {
      CT z = own + GET(x + d), slope = z > 0 ? (P == 2 ? 2 * z : (CT)1) : (CT)0;
      if (d == class || class < 0) slope = 0;
      sum += slope;
      PUT(to + d, slope * scale);
    }
    if (class >= 0) PUT(to + class, -sum * scale);
  }
}
#endif

/* One work-item: row losses are few against their scores. */
KERNEL margin_sum(PLACE(out), PLACE(losses), PLACE(unused2), PLACE(unused3), __global long *faults, numbers n) {
  EACH_UNIT(one) {
    cascade sum = cascade_of_none();
    for (long row = 0; row < n.of[0]; row++) cascade_add(&sum, POINTER(D_LOSS, losses)[row]);
    PUT(ELEMENTS(out), cascade_total(&sum));
  }
}
