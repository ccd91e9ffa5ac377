/* Scans: sums, products, logarithms of sums and extrema that run along a line. */
#include "kernels/core/lines.h"

enum { SELF, DIM, OUT, VALUES, INDICES, READS };
static const char *const reads[] = {
    [SELF] = "self", [DIM] = "dim", [OUT] = "out", [VALUES] = "values", [INDICES] = "indices", [READS] = NULL};

/* An extremum by how its numbers compare with those before, else a function that joins two and what it leaves as is; of
 * complex numbers another one, of complex.cl, where there is one: a logarithm, whose angle depends on the order. */
typedef struct recipe {
  const char *at_least, *join, *nothing, *complex;
  bool slow; /* joining takes so long that lanes gain more than rows side by side cost */
} recipe;

typedef struct operands {
  const recipe *recipe;
  const graft_tensor_desc *self, *out, *indices; /* indices: of an extremum */
  int64_t dim;
} operands;

/* As groups.cl has it. */
typedef struct group_space {
  int64_t size, inner, block, blocks;
} group_space;

typedef struct memo {
  ocl_kernel scan, totals, before; /* the latter two where lines are cut into blocks */
  bool in_groups;                  /* scan is of groups.cl */
  int64_t all_blocks;              /* of all lines */
} memo;

enum {
  GROUP = 256,
  EACH = 4, /* elements of a work-item side by side, where a line has so many */
  BLOCK_MIN = 4 * GROUP,
  BLOCKS_MAX = 1024 /* a line's, which one work-group scans */
};

static void add_recipe(ocl_text *head, const recipe *recipe, const ocl_dtype *dtype, bool has_form) {
  ocl_text_add(head, "#define D_OUT %s\n#define D_IN %s\n", dtype->name, dtype->name);
  if (recipe->at_least) {
    ocl_text_add(head, "#define AT_LEAST(a, b) ((a) %s (b))\n", recipe->at_least);
    return;
  }
  ocl_text_add(head, "#define JOIN(a, b) %s(a, b)\n#define NOTHING %s\n", has_form ? recipe->complex : recipe->join,
               recipe->nothing);
  if (has_form) ocl_text_add(head, "#define SCAN_STRETCH space.size\n");
}

static graft_status make_lines(memo *memo, graft_device *device, const recipe *recipe, const ocl_dtype *dtype,
                               ocl_lines lines) {
  const bool is_complex = dtype->class == OCL_CLASS_COMPLEX, has_form = is_complex && recipe->complex;
  if (recipe->at_least || has_form) ocl_lines_plan_columns(device, &lines);
  if (lines.rows || recipe->at_least || is_complex) lines.vec = 1;
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, dtype);
  add_recipe(&head, recipe, dtype, has_form);
  const char *files =
      has_form ? "core/lines pointwise/complex scan/joins scan/scan" : "core/lines scan/joins scan/scan";
  graft_status status = ocl_kernel_make(&memo->scan, device, &head, files, recipe->at_least ? "scan_extremum" : "scan");
  return status == GRAFT_OK ? ocl_lines_set(&memo->scan, &lines) : status;
}

/* A CPU's scan of rows, a lane for each (rows.cl). */
static bool takes_rows(const graft_device *device, const recipe *recipe, const ocl_dtype *dtype,
                       const ocl_lines *lines) {
  return device->is_cpu && recipe->slow && dtype->class == OCL_CLASS_FLOAT && lines->rows &&
         lines->outer >= (int64_t)device->vector_width && lines->outer * lines->size > OCL_SMALL;
}

static graft_status make_rows(memo *memo, graft_device *device, const recipe *recipe, const ocl_dtype *dtype,
                              const ocl_lines *lines) {
  const ocl_lines beside = {
      .outer = 1, .size = lines->size, .inner = lines->outer, .vec = device->vector_width, .local = 1};
  ocl_text head = {0};
  ocl_lines_head(&head, &beside, dtype);
  add_recipe(&head, recipe, dtype, false);
  graft_status status =
      ocl_kernel_make(&memo->scan, device, &head, "core/lines core/square scan/joins scan/rows", "scan_rows");
  return status == GRAFT_OK ? ocl_lines_set(&memo->scan, &beside) : status;
}

/* A CPU's scan of rows of whole numbers, whose lanes share a row (lanes.cl). */
static bool takes_lanes(const graft_device *device, const recipe *recipe, const ocl_dtype *dtype,
                        const ocl_lines *lines) {
  return device->is_cpu && !recipe->at_least && dtype->class == OCL_CLASS_INT && lines->rows &&
         lines->outer * lines->size > OCL_SMALL;
}

static graft_status make_lanes(memo *memo, graft_device *device, const recipe *recipe, const ocl_dtype *dtype,
                               ocl_lines lines) {
  lines.vec = 4;
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, dtype);
  add_recipe(&head, recipe, dtype, false);
  graft_status status = ocl_kernel_make(&memo->scan, device, &head, "core/lines scan/joins scan/lanes", "scan_lanes");
  return status == GRAFT_OK ? ocl_lines_set(&memo->scan, &lines) : status;
}

static graft_status make_groups(memo *memo, graft_device *device, const recipe *recipe, const ocl_dtype *dtype,
                                const ocl_lines *lines, bool cut) {
  group_space space = {.size = lines->size, .inner = lines->inner, .block = lines->size, .blocks = 1};
  if (cut) {
    space.block = ocl_round_up(ocl_larger(ocl_ceil_divide(lines->size, BLOCKS_MAX), BLOCK_MIN), GROUP);
    space.blocks = ocl_ceil_divide(lines->size, space.block);
  }
  const int64_t count = lines->outer * lines->inner;
  const size_t local = cut ? GROUP : lines->local;
  memo->in_groups = true;
  memo->all_blocks = count * space.blocks;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, local);
  ocl_text_add(&head, "#define EACH %d\n", space.block >= EACH * (int64_t)local ? EACH : 1);
  add_recipe(&head, recipe, dtype, false);
  const char *files = "scan/joins scan/groups";
  graft_status status = ocl_kernel_init(&memo->scan, device, &head, files, "scan_blocks");
  if (status == GRAFT_OK && cut) status = ocl_kernel_init(&memo->totals, device, &head, files, "block_totals");
  if (status == GRAFT_OK && cut) status = ocl_kernel_init(&memo->before, device, &head, files, "before_blocks");
  ocl_text_free(&head);
  const ocl_argument last = OCL_VALUE(space);
  if (status == GRAFT_OK) status = ocl_kernel_set(&memo->scan, 1, &last);
  if (status == GRAFT_OK && cut) status = ocl_kernel_set(&memo->totals, 1, &last);
  if (status == GRAFT_OK && cut) status = ocl_kernel_set(&memo->before, 1, &last);
  ocl_kernel_size(&memo->scan, memo->all_blocks * (int64_t)local, local);
  ocl_kernel_size(&memo->totals, memo->all_blocks * (int64_t)local, local);
  ocl_kernel_size(&memo->before, count * (int64_t)local, local);
  return status;
}

/* A CPU's work-items take whole lines. Others go in groups along rows, and long lines that are too few for the device
 * are cut. A complex logarithm is not: its angle depends on the order. */
static graft_status make_kernels(memo *memo, graft_device *device, const operands *call, const ocl_dtype *dtype) {
  const recipe *recipe = call->recipe;
  ocl_lines lines = ocl_lines_of(device, &call->self->dl, call->self->dl.ndim ? call->dim : -1);
  bool in_order = dtype->class == OCL_CLASS_COMPLEX && recipe->complex;
  int64_t enough = (int64_t)device->compute_units * (lines.rows ? 1 : 64);
  if (takes_rows(device, recipe, dtype, &lines)) return make_rows(memo, device, recipe, dtype, &lines);
  if (takes_lanes(device, recipe, dtype, &lines)) return make_lanes(memo, device, recipe, dtype, lines);
  bool cut = lines.size >= 2 * BLOCK_MIN && lines.outer * lines.inner < enough;
  if (device->is_cpu || in_order || !(lines.rows || cut)) return make_lines(memo, device, recipe, dtype, lines);
  return make_groups(memo, device, recipe, dtype, &lines, cut);
}

static graft_status prepare(void *memo_, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->self->dl.dtype);
  if (!dtype || call->out->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  if (dtype->class == (call->recipe->at_least ? OCL_CLASS_COMPLEX : OCL_CLASS_BOOL)) return GRAFT_UNIMPLEMENTED;
  return make_kernels(memo_, device, call, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 3, .prepare = prepare};

/* Where a block is a line there is nothing to find before. */
static graft_status run_groups(const graft_exec *exec, memo *memo, const operands *call) {
  ocl_place work = ocl_place_of(call->out);
  const graft_tensor_desc *indices = call->indices ? call->indices : call->out;
  graft_status status = GRAFT_OK;
  if (memo->totals.handle) {
    enum { STATE_BYTES = 16 }; /* at most */
    status = ocl_workspace(exec, (uint64_t)memo->all_blocks * STATE_BYTES, &work);
    const ocl_argument totals[] = {OCL_PLACE(work), OCL_TENSOR(call->self)};
    if (status == GRAFT_OK) status = ocl_launch(&memo->totals, exec->stream, OCL_ALL(totals));
    const ocl_argument before[] = {OCL_PLACE(work)};
    if (status == GRAFT_OK) status = ocl_launch(&memo->before, exec->stream, OCL_ALL(before));
  }
  if (status != GRAFT_OK) return status;
  const ocl_argument scan[] = {OCL_TENSOR(call->out), OCL_TENSOR(indices), OCL_TENSOR(call->self), OCL_PLACE(work)};
  return ocl_launch(&memo->scan, exec->stream, OCL_ALL(scan));
}

static graft_status run(const ocl_call *call) {
  const recipe *recipe = call->op->recipe;
  const operands operands = {.recipe = recipe,
                             .self = ocl_read_tensor(call, SELF),
                             .out = ocl_read_tensor(call, recipe->at_least ? VALUES : OUT),
                             .indices = ocl_read_tensor(call, INDICES),
                             .dim = ocl_read_int(call, DIM, 0)};
  memo *memo;
  if (!operands.out || (recipe->at_least && !operands.indices)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(call->exec, &memo_type, &operands, &memo);
  if (status != GRAFT_OK) return status;
  if (memo->in_groups) return run_groups(call->exec, memo, &operands);
  if (!recipe->at_least) {
    const ocl_argument arguments[] = {OCL_TENSOR(operands.out), OCL_TENSOR(operands.self)};
    return ocl_launch(&memo->scan, call->exec->stream, OCL_ALL(arguments));
  }
  const ocl_argument arguments[] = {OCL_TENSOR(operands.out), OCL_TENSOR(operands.indices), OCL_TENSOR(operands.self)};
  return ocl_launch(&memo->scan, call->exec->stream, OCL_ALL(arguments));
}

#define SCAN(op, set, ...)                                                                     \
  {                                                                                            \
    OCL_ENGINE(op, run, reads, (&(const recipe){__VA_ARGS__})), .inputs = set, .outputs = set, \
                                                                .flags = GRAFT_CAP_UNALIGNED   \
  }
#define NUMBERS (OCL_FLOATS | OCL_INTS)
#define REALS   (NUMBERS | OCL_BOOLS)

static const ocl_op ops[] = {
    SCAN(cumsum, NUMBERS | OCL_COMPLEX, .join = "ADD", .nothing = "0"),
    SCAN(cumprod, NUMBERS | OCL_COMPLEX, .join = "MUL", .nothing = "ONE"),
    SCAN(logcumsumexp, OCL_FLOATS | OCL_COMPLEX, .join = "log_add", .nothing = "-INFINITY",
         .complex = "complex_log_add", .slow = true),
    SCAN(cummax, REALS, .at_least = ">="),
    SCAN(cummax_helper, REALS, .at_least = ">="),
    SCAN(cummin, REALS, .at_least = "<="),
};
OCL_FAMILY(scan, ops)
