/* Softmax, its logarithm, and their gradients. */
#include "kernels/core/held.h"
#include "kernels/core/lines.h"

/* As softmax.cl counts them. */
enum { SOFTMAX, LOG_SOFTMAX, SAFE_SOFTMAX, SOFTMAX_BACKWARD, LOG_SOFTMAX_BACKWARD };

enum { SELF, GRAD_OUTPUT, OUTPUT, MASK, DIM, OUT, READS };
static const char *const reads[] = {
    [SELF] = "self", [GRAD_OUTPUT] = "grad_output", [OUTPUT] = "output", [MASK] = "mask", [DIM] = "dim", [OUT] = "out",
    [READS] = NULL};

typedef struct operands {
  int op;
  int64_t dim;
  const graft_tensor_desc *out, *a, *b, *mask; /* mask: or NULL */
} operands;

typedef struct memo {
  ocl_kernel kernel;
} memo;

static void add_head(ocl_text *head, const operands *call, const ocl_dtype *out, const ocl_dtype *in) {
  ocl_text_add(head, "#define OP %d\n#define D_OUT %s\n#define D_IN %s\n%s", call->op, out->name, in->name,
               call->mask ? "#define MASKED\n" : "");
}

/* A program for all lines, but of a processor's rows those of one vector, and those of which it keeps what it computes
 * once and needs twice: in the result, or in its nearer caches. */
static void add_size(ocl_text *head, const graft_device *device, const ocl_lines *lines, int op, bool is_exact) {
  enum { ASIDE = 32768 };
  const bool is_plain = op == SOFTMAX || op == SAFE_SOFTMAX, is_own = device->is_cpu && lines->rows && !lines->small;
  if (is_exact) ocl_text_add(head, "#define KEEPS\n");
  if (is_own && lines->size == lines->vec)
    ocl_text_add(head, "#define ONE_VECTOR\n");
  else if (is_own && is_plain && !is_exact && lines->size <= ASIDE)
    ocl_text_add(head, "#define ASIDE %d\n", ASIDE);
}

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const operands *call, const ocl_dtype *out,
                                const ocl_dtype *in) {
  const ocl_dtype *compute = ocl_dtype_of(device, out->bytes == 8 ? GRAFT_F64 : GRAFT_F32);
  ocl_lines lines = ocl_lines_of(device, &call->a->dl, call->dim);
  ocl_held held;
  ocl_text head = {0};
  int arrays = call->op >= SOFTMAX_BACKWARD ? 2 : 1;
  if (lines.rows && ocl_held_plan(device, lines.outer, lines.size, compute, arrays, &held)) {
    ocl_held_head(&head, &held, compute);
    add_head(&head, call, out, in);
    graft_status status = ocl_kernel_make(kernel, device, &head, "core/held core/exp softmax/held", "softmax");
    return status != GRAFT_OK ? status : ocl_held_set(kernel, &held);
  }
  ocl_lines_share(device, &lines);
  ocl_lines_head(&head, &lines, compute);
  add_head(&head, call, out, in);
  add_size(&head, device, &lines, call->op, out == compute);
  graft_status status = ocl_kernel_make(kernel, device, &head, "core/lines core/exp softmax/softmax", "softmax");
  return status != GRAFT_OK ? status : ocl_lines_set(kernel, &lines);
}

static graft_status prepare(void *memo_, graft_device *device, const void *from) {
  const operands *call = from;
  const ocl_dtype *out = ocl_dtype_of(device, call->out->dl.dtype), *a = ocl_dtype_of(device, call->a->dl.dtype);
  if (!out || !a || out->class != OCL_CLASS_FLOAT || a->class != OCL_CLASS_FLOAT) return GRAFT_UNIMPLEMENTED;
  if (call->b->dl.dtype != a->code || (a->bytes == 8 && out->bytes != 8)) return GRAFT_UNIMPLEMENTED;
  return make_kernel(&((memo *)memo_)->kernel, device, call, out, a);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = 1, .prepare = prepare};

/* The recipe is the op's number. */
static graft_status run(const ocl_call *call) {
  const graft_tensor_desc *self = ocl_read_tensor(call, SELF);
  const operands operands = {.op = *(const int *)call->op->recipe,
                             .dim = ocl_read_int(call, DIM, 0),
                             .out = ocl_read_tensor(call, OUT),
                             .a = self ? self : ocl_read_tensor(call, GRAD_OUTPUT),
                             .b = self ? self : ocl_read_tensor(call, OUTPUT),
                             .mask = ocl_read_tensor(call, MASK)};
  memo *memo;
  graft_status status = ocl_memo_get(call->exec, &memo_type, &operands, &memo);
  if (status != GRAFT_OK) return status;
  const graft_tensor_desc *mask = operands.mask ? operands.mask : operands.a; /* not looked at */
  const ocl_argument arguments[] = {OCL_TENSOR(operands.out), OCL_TENSOR(operands.a), OCL_TENSOR(operands.b),
                                    OCL_TENSOR(mask)};
  return ocl_launch(&memo->kernel, call->exec->stream, OCL_ALL(arguments));
}

#define SOFTMAX_OP(op, number)                                                                          \
  {                                                                                                     \
    OCL_ENGINE(op, run, reads, &(const int){number}), .inputs = OCL_FLOATS, .outputs = OCL_FLOATS,      \
                                                      .flags = GRAFT_CAP_UNALIGNED | GRAFT_CAP_IN_PLACE \
  }

static const ocl_op ops[] = {
    SOFTMAX_OP(softmax, SOFTMAX),
    SOFTMAX_OP(log_softmax, LOG_SOFTMAX),
    SOFTMAX_OP(safe_softmax, SAFE_SOFTMAX),
    SOFTMAX_OP(softmax_backward_data, SOFTMAX_BACKWARD),
    SOFTMAX_OP(log_softmax_backward_data, LOG_SOFTMAX_BACKWARD),
    SOFTMAX_OP(masked_softmax_backward, SOFTMAX_BACKWARD),
};
OCL_FAMILY(softmax, ops)
