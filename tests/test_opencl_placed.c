/* Gradients of attention that the OpenCL backend writes to where calls behind it add zero to them, as to parts of the
 * gradient of what query, key and value were taken out of: the bits of the calls one by one. A GPU makes all of them
 * one by one. */
#include "opencl_groups.h"

enum { PARTS = 3, GRAD = PARTS, WHOLE, INPUTS, HEADS_OF_ALL = 2, LENGTH_OF_ALL = 21 };

typedef struct attention {
  const char *name;
  bool causal, without_key;
  double dropout;
  double scale; /* of products; 0: not given */
  double added; /* to each gradient */
  int overlap;  /* halves that the place of each shares with the next one's */
  bool seen;    /* the gradient of the query, too */
  bool pairs;   /* whether all of it is one call */
} attention;
static const attention programs_of[] = {
    {"parts", .pairs = true},
    {"causal", .causal = true, .pairs = true},
    {"-0 is given", .causal = true, .scale = -0.5, .pairs = true},
    {"dropout", .dropout = 0.25, .pairs = true},
    {"without key", .without_key = true, .pairs = true},
    {"one is added", .added = 1},
    {"-0 is added", .added = -0.0},
    {"seen", .seen = true},
    {"halves of one place", .overlap = 1},
    {"one place", .overlap = 2},
};

/* Of a matrix that has a row for each batch and place: batches, heads, places and elements. */
static graft_tensor *heads_of(graft_tensor *matrix) {
  const int64_t batch = matrix->sizes[0] / LENGTH_OF_ALL, width = matrix->sizes[1] / HEADS_OF_ALL;
  graft_tensor *wide = CALL(VIEW, T(matrix), INTS(batch, LENGTH_OF_ALL, HEADS_OF_ALL, width));
  return CALL(PERMUTE, T(wide), INTS(0, 2, 1, 3));
}

/* Columns for one of the parts. */
static graft_tensor *part_of(graft_tensor *whole, int part, int overlap) {
  const int64_t width = whole->sizes[1] / PARTS, from = part * (2 - overlap) * width / 2;
  return heads_of(CALL(SLICE_TENSOR, T(whole), INT(1), INT(from), INT(from + width), INT(1)));
}

static void gradients(graft_tensor **in, graft_tensor **out, const void *what) {
  enum { OUTPUT, LSE, SEED = 6, OFFSET, OUTS = 9 };
  const attention *p = what;
  const uint8_t wanted[] = {1, !p->without_key, 1, 0};
  graft_tensor *of[PARTS], *outs[OUTS] = {NULL}, *made[4] = {NULL}, *grad = heads_of(in[GRAD]);
  for (int i = 0; i < PARTS; i++) of[i] = heads_of(in[i]);
  const graft_value none = graft_value_tensor(NULL), dropout = graft_value_float(p->dropout),
                    causal = graft_value_bool(p->causal), scale = p->scale != 0 ? graft_value_float(p->scale) : none;
  OK(graft_call(GRAFT_OP_SCALED_DOT_PRODUCT_FUSED_ATTENTION_OVERRIDEABLE,
                (graft_value[]){T(of[0]), T(of[1]), T(of[2]), none, dropout, causal, graft_value_bool(false), scale}, 8,
                outs, OUTS));
  for (int i = 0; i < OUTS; i++) {
    if (outs[i]) later(outs[i]);
  }
  const graft_value mask = {GRAFT_VALUE_MASK, 4, {.mask = wanted}}, length = graft_value_int(LENGTH_OF_ALL);
  const graft_value args[] = {T(grad), T(of[0]), T(of[1]), T(of[2]), none,    mask,   T(outs[OUTPUT]), T(outs[LSE]),
                              none,    none,     length,   length,   dropout, causal, T(outs[SEED]),   T(outs[OFFSET]),
                              scale};
  OK(graft_call(GRAFT_OP_SCALED_DOT_PRODUCT_FUSED_ATTENTION_OVERRIDEABLE_BACKWARD, args, ROWS(args), made, 4));
  for (int i = 0; i < PARTS; i++) {
    if (!made[i]) continue;
    later(made[i]);
    WRITE(part_of(in[WHOLE], i, p->overlap), ADD_TENSOR, T(made[i]), NUMBER(p->added));
  }
  out[0] = retained(p->seen ? made[0] : in[WHOLE]);
}

static bool of_cpus = true; /* the kernels at hand */

static void compare_attention(const attention *p, graft_dtype dtype, int64_t batch, int64_t width) {
  char name[96];
  snprintf(name, sizeof name, "%s, %d bytes, %d x %d", p->name, (int)dt_bytes(dtype), (int)batch, (int)width);
  graft_tensor *in[INPUTS], *same[INPUTS];
  for (int way = 0; way < 2; way++) {
    for (uint32_t i = 0; i < INPUTS; i++) {
      const int64_t columns = (i == WHOLE ? PARTS : 1) * HEADS_OF_ALL * width;
      (way ? same : in)[i] = sized(dtype, batch * LENGTH_OF_ALL, columns, i + 1);
    }
  }
  const bool pairs = p->pairs && of_cpus && dtype != GRAFT_BF16;
  const bool onto_one = p->overlap == 2; /* elementwise calls on one tensor */
  const uint32_t nodes = pairs ? 4 - p->without_key : onto_one ? PARTS : 0;
  const way w = {gradients, p, INPUTS, 1, nodes, pairs || onto_one, .seed = 7};
  compare(name, &w, in, same);
  release_all(in, INPUTS);
  release_all(same, INPUTS);
}

START_TEST(of_dtypes) {
  if (!device) return;
  compare_attention(&programs_of[_i], GRAFT_F32, 2, 8);
  compare_attention(&programs_of[_i], GRAFT_F64, 1, 5);
  compare_attention(&programs_of[_i], GRAFT_BF16, 1, 8);
}
END_TEST

/* More than a small program takes: a program of their own. */
START_TEST(of_wide_heads) {
  if (!device) return;
  compare_attention(&programs_of[_i], GRAFT_F32, 1, 72);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(of_dtypes, ROWS(programs_of)), EACH(of_wide_heads, ROWS(programs_of)), {0}};
  setenv("GRAFT_OPENCL_OPTIMIZE", "no", 1);
  const int failed = run_suite("opencl_placed", tests, on_one_device(open_for_cpus));
  of_cpus = false;
  return run_suite("opencl_placed_of_gpus", tests, on_one_device(open_for_gpus)) || failed;
}
