/* Scans: sums, products, logarithms of sums and extrema that run along a line. */
#include "kernels/core/lines.h"

enum { SELF, DIM, OUT, VALUES, INDICES, READS };
static const char *const reads[] = {
    [SELF] = "self", [DIM] = "dim", [OUT] = "out", [VALUES] = "values", [INDICES] = "indices", [READS] = NULL};

/* An extremum by how its numbers compare with those before, else a function that joins two and what it leaves as is; of
 * complex numbers another one, of complex.cl, where there is one: a logarithm, whose angle depends on the order. */
typedef struct recipe {
  const char *at_least, *join, *nothing, *complex;
} recipe;

typedef struct operands {
  const recipe *recipe;
  const graft_tensor_desc *self, *out, *indices; /* indices: of an extremum */
  int64_t dim;
} operands;

typedef struct memo {
  ocl_kernel kernel;
} memo;

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const operands *call,
                                const ocl_dtype *dtype) {
  const recipe *recipe = call->recipe;
  const char *extremum = recipe->at_least;
  const bool is_complex = dtype->class == OCL_CLASS_COMPLEX, has_form = is_complex && recipe->complex;
  ocl_lines lines = ocl_lines_of(device, &call->self->dl, call->self->dl.ndim ? call->dim : -1);
  if (extremum || has_form) ocl_lines_plan_columns(device, &lines);
  if (lines.rows || extremum || is_complex) lines.vec = 1;
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, dtype);
  ocl_text_add(&head, "#define D_OUT %s\n#define D_IN %s\n", dtype->name, dtype->name);
  if (extremum) {
    ocl_text_add(&head, "#define AT_LEAST(a, b) ((a) %s (b))\n", extremum);
  } else {
    ocl_text_add(&head, "#define JOIN(a, b) %s(a, b)\n#define NOTHING %s\n", has_form ? recipe->complex : recipe->join,
                 recipe->nothing);
    if (has_form) ocl_text_add(&head, "#define STRETCH space.size\n");
  }
  const char *files = has_form ? "core/lines pointwise/complex scan/scan" : "core/lines scan/scan";
  graft_status status = ocl_kernel_make(kernel, device, &head, files, extremum ? "scan_extremum" : "scan");
  return status == GRAFT_OK ? ocl_lines_set(kernel, &lines) : status;
}

static graft_status prepare(void *memo_, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->self->dl.dtype);
  if (!dtype || call->out->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  if (dtype->class == (call->recipe->at_least ? OCL_CLASS_COMPLEX : OCL_CLASS_BOOL)) return GRAFT_UNIMPLEMENTED;
  return make_kernel(&((memo *)memo_)->kernel, device, call, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

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
  if (!recipe->at_least) {
    const ocl_argument arguments[] = {OCL_TENSOR(operands.out), OCL_TENSOR(operands.self)};
    return ocl_launch(&memo->kernel, call->exec->stream, OCL_ALL(arguments));
  }
  const ocl_argument arguments[] = {OCL_TENSOR(operands.out), OCL_TENSOR(operands.indices), OCL_TENSOR(operands.self)};
  return ocl_launch(&memo->kernel, call->exec->stream, OCL_ALL(arguments));
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
         .complex = "complex_log_add"),
    SCAN(cummax, REALS, .at_least = ">="),
    SCAN(cummax_helper, REALS, .at_least = ">="),
    SCAN(cummin, REALS, .at_least = "<="),
};
OCL_FAMILY(scan, ops)
