/* Scans: sums, products and extrema that run along a line. */
#include "kernels/core/lines.h"

enum { SELF, DIM, OUT, VALUES, INDICES, READS };
static const char *const reads[] = {
    [SELF] = "self", [DIM] = "dim", [OUT] = "out", [VALUES] = "values", [INDICES] = "indices", [READS] = NULL};

typedef struct recipe {
  bool extremum;
  const char *defines;
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
  bool extremum = call->recipe->extremum;
  ocl_lines lines = ocl_lines_of(device, &call->self->dl, call->self->dl.ndim ? call->dim : -1);
  if (extremum) ocl_lines_plan_columns(device, &lines);
  if (lines.rows || extremum) lines.vec = 1;
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, dtype);
  ocl_text_add(&head, "#define D_OUT %s\n#define D_IN %s\n%s", dtype->name, dtype->name, call->recipe->defines);
  graft_status status =
      ocl_kernel_make(kernel, device, &head, "core/lines scan/scan", extremum ? "scan_extremum" : "scan");
  return status == GRAFT_OK ? ocl_lines_set(kernel, &lines) : status;
}

static graft_status prepare(void *memo_, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, call->self->dl.dtype);
  if (!dtype || call->out->dl.dtype != dtype->code) return GRAFT_UNIMPLEMENTED;
  bool number = dtype->class == OCL_CLASS_FLOAT || dtype->class == OCL_CLASS_INT;
  if (!number && !(call->recipe->extremum && dtype->class == OCL_CLASS_BOOL)) return GRAFT_UNIMPLEMENTED;
  return make_kernel(&((memo *)memo_)->kernel, device, call, dtype);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

static graft_status run(const ocl_call *call) {
  const recipe *recipe = call->op->recipe;
  const operands operands = {.recipe = recipe,
                             .self = ocl_read_tensor(call, SELF),
                             .out = ocl_read_tensor(call, recipe->extremum ? VALUES : OUT),
                             .indices = ocl_read_tensor(call, INDICES),
                             .dim = ocl_read_int(call, DIM, 0)};
  memo *memo;
  if (!operands.out || (recipe->extremum && !operands.indices)) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(call->exec, &memo_type, &operands, &memo);
  if (status != GRAFT_OK) return status;
  if (!recipe->extremum) {
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
    SCAN(cumsum, NUMBERS, .defines = "#define JOIN(a, b) ADD(a, b)\n#define NOTHING 0\n"),
    SCAN(cumprod, NUMBERS, .defines = "#define JOIN(a, b) MUL(a, b)\n#define NOTHING 1\n"),
    SCAN(cummax, REALS, .extremum = true, .defines = "#define EXTREMUM\n#define LARGEST\n"),
    SCAN(cummin, REALS, .extremum = true, .defines = "#define EXTREMUM\n"),
    SCAN(cummax_helper, REALS, .extremum = true, .defines = "#define EXTREMUM\n#define LARGEST\n"),
};
OCL_FAMILY(scan, ops)
