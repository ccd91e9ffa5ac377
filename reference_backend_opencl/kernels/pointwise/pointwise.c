/* The pointwise ops: one implementation for every row of table.h. */
#include <stdlib.h>
#include <string.h>

#include "kernels/families.h"

enum { INPUTS_MAX = 3, SCALARS_MAX = 3 };

/* Where a row's arguments lie in its args struct; 0 ends a list, since the head comes first. Numbers are scalars, or
 * reals (pointers to double); a mode is a str, a bool (flag) or an int (whole), and makes a program of its own. */
typedef struct fields {
  uint16_t input[INPUTS_MAX], scalar[SCALARS_MAX], real[SCALARS_MAX], mode, flag, whole, out, second;
} fields;

typedef struct row {
  uint32_t op_id;
  fields at;
  uint64_t dtypes;
  uint32_t flags;
  const char *expression;
} row;

#define AT(op, field)      (uint16_t) offsetof(graft_args_##op, field)
#define OUT(op)            .out = AT(op, out)
#define IN1(op, p)         .input = {AT(op, p)}
#define IN2(op, p, q)      .input = {AT(op, p), AT(op, q)}
#define IN3(op, p, q, r)   .input = {AT(op, p), AT(op, q), AT(op, r)}
#define NUM1(op, p)        .scalar = {AT(op, p)}
#define NUM2(op, p, q)     .scalar = {AT(op, p), AT(op, q)}
#define NUM3(op, p, q, r)  .scalar = {AT(op, p), AT(op, q), AT(op, r)}
#define REAL1(op, p)       .real = {AT(op, p)}
#define REAL3(op, p, q, r) .real = {AT(op, p), AT(op, q), AT(op, r)}
#define MODE(op, p)        .mode = AT(op, p)

#define FIELDS_UNARY(op) \
  { IN1(op, self), OUT(op) }
#define FIELDS_COPY(op) \
  { IN1(op, src), OUT(op) }
#define FIELDS_FILL(op) \
  { NUM1(op, value), OUT(op) }
#define FIELDS_FULL(op) \
  { NUM1(op, fill_value), OUT(op) }
#define FIELDS_GELU(op) \
  { IN1(op, self), MODE(op, approximate), OUT(op) }
#define FIELDS_ELU(op) \
  { IN1(op, self), NUM3(op, alpha, scale, input_scale), OUT(op) }
#define FIELDS_HARDTANH(op) \
  { IN1(op, self), NUM2(op, min_val, max_val), OUT(op) }
#define FIELDS_LEAKY(op) \
  { IN1(op, self), NUM1(op, negative_slope), OUT(op) }
#define FIELDS_SOFTPLUS(op) \
  { IN1(op, self), NUM2(op, beta, threshold), OUT(op) }
#define FIELDS_CLAMP(op) \
  { IN1(op, self), NUM2(op, min, max), OUT(op) }
#define FIELDS_CLAMP_MIN(op) \
  { IN1(op, self), NUM1(op, min), OUT(op) }
#define FIELDS_SCALAR(op) \
  { IN1(op, self), NUM1(op, other), OUT(op) }
#define FIELDS_SCALAR_ALPHA(op) \
  { IN1(op, self), NUM2(op, other, alpha), OUT(op) }
#define FIELDS_SCALAR_MODE(op) \
  { IN1(op, self), NUM1(op, other), MODE(op, rounding_mode), OUT(op) }
#define FIELDS_POW_EXPONENT(op) \
  { IN1(op, self), NUM1(op, exponent), OUT(op) }
#define FIELDS_POW_BASE(op) \
  { IN1(op, exponent), NUM1(op, self), OUT(op) }
#define FIELDS_BINARY(op) \
  { IN2(op, self, other), OUT(op) }
#define FIELDS_BINARY_ALPHA(op) \
  { IN2(op, self, other), NUM1(op, alpha), OUT(op) }
#define FIELDS_BINARY_MODE(op) \
  { IN2(op, self, other), MODE(op, rounding_mode), OUT(op) }
#define FIELDS_POW(op) \
  { IN2(op, self, exponent), OUT(op) }
#define FIELDS_CLAMP_MIN_TENSOR(op) \
  { IN2(op, self, min), OUT(op) }
#define FIELDS_LERP(op) \
  { IN2(op, self, end), NUM1(op, weight), OUT(op) }
#define FIELDS_MASKED_FILL(op) \
  { IN2(op, mask, self), NUM1(op, value), OUT(op) }
#define FIELDS_OUTPUT_GRAD(op) \
  { IN2(op, grad_output, output), OUT(op) }
#define FIELDS_INPUT_GRAD(op) \
  { IN2(op, grad_output, self), OUT(op) }
#define FIELDS_THRESHOLD(op) \
  { IN2(op, grad_output, self), NUM1(op, threshold), OUT(op) }
#define FIELDS_GELU_GRAD(op) \
  { IN2(op, grad_output, self), MODE(op, approximate), OUT(op) }
#define FIELDS_CLAMP_TENSOR(op) \
  { IN3(op, self, min, max), OUT(op) }
#define FIELDS_LERP_TENSOR(op) \
  { IN3(op, self, end, weight), OUT(op) }
#define FIELDS_ADDC(op) \
  { IN3(op, self, tensor1, tensor2), NUM1(op, value), OUT(op) }
#define FIELDS_WHERE(op) \
  { IN3(op, condition, self, other), OUT(op) }
#define FIELDS_MASKED_FILL_TENSOR(op) \
  { IN3(op, mask, self, value), OUT(op) }
#define FIELDS_CELU(op) \
  { IN1(op, self), NUM1(op, alpha), OUT(op) }
#define FIELDS_REPLACE(op) \
  { IN1(op, self), NUM2(op, threshold, value), OUT(op) }
#define FIELDS_SHRINK(op) \
  { IN1(op, self), NUM1(op, lambd), OUT(op) }
#define FIELDS_PRELU(op) \
  { IN2(op, self, weight), OUT(op) }
#define FIELDS_HEAVISIDE(op) \
  { IN2(op, self, values), OUT(op) }
#define FIELDS_NAN_TO_NUM(op) \
  { IN1(op, self), REAL3(op, nan, posinf, neginf), OUT(op) }
#define FIELDS_LOGIT(op) \
  { IN1(op, self), REAL1(op, eps), OUT(op) }
#define FIELDS_POLYGAMMA(op) \
  { IN1(op, self), .whole = AT(op, n), OUT(op) }
#define FIELDS_ELU_GRAD(op) \
  { IN2(op, grad_output, self_or_result), NUM3(op, alpha, scale, input_scale), .flag = AT(op, is_result), OUT(op) }
#define FIELDS_HARDTANH_GRAD(op) \
  { IN2(op, grad_output, self), NUM2(op, min_val, max_val), OUT(op) }
#define FIELDS_LEAKY_GRAD(op) \
  { IN2(op, grad_output, self), NUM1(op, negative_slope), OUT(op) }
#define FIELDS_SOFTPLUS_GRAD(op) \
  { IN2(op, grad_output, self), NUM2(op, beta, threshold), OUT(op) }
#define FIELDS_HARDSHRINK_GRAD(op) \
  { IN2(op, grad_out, self), NUM1(op, lambd), OUT(op) }
#define FIELDS_SHRINK_GRAD(op) \
  { IN2(op, grad_output, self), NUM1(op, lambd), OUT(op) }
#define FIELDS_LOGIT_GRAD(op) \
  { IN2(op, grad_output, self), REAL1(op, eps), OUT(op) }
#define FIELDS_LOG_SIGMOID_GRAD(op) \
  { IN3(op, grad_output, self, buffer), OUT(op) }
#define FIELDS_LOG_SIGMOID(op) \
  { IN1(op, self), .out = AT(op, output), .second = AT(op, buffer) }
#define FIELDS_PRELU_GRAD(op) \
  { IN3(op, grad_output, self, weight), .out = AT(op, out0), .second = AT(op, out1) }
/* Those of parts.c come with an args struct of its own. */
#define PART(p) (uint16_t) offsetof(ocl_parts, p)
#define FIELDS_PARTS2(op) \
  { .input = {PART(a), PART(b)}, .out = PART(out), .second = PART(second) }
#define FIELDS_PARTS3(op) \
  { .input = {PART(a), PART(b), PART(c)}, .out = PART(out), .second = PART(second) }
#define FIELDS_GATE(op) \
  { .input = {PART(a), PART(b)}, .out = PART(out) }

/* The rows, their numbers, and a typed slot for each. Those of OCL_POINTWISE_COPY have theirs in copy.c. */
#define ROW(kind, op, id, dtypes, flags, expression) {GRAFT_OP_##id, FIELDS_##kind(op), dtypes, flags, expression},
static const row rows[] = {OCL_POINTWISE_CORE(ROW) OCL_POINTWISE_TRAIN(ROW) OCL_POINTWISE_COPY(ROW)
                               OCL_POINTWISE_PARTS(ROW) OCL_POINTWISE_COMPLEX(ROW)};

static graft_status run(const graft_exec *exec, const void *args, const row *row);

#define NUMBER(kind, op, ...) ROW_##op,
enum {
  OCL_POINTWISE_CORE(NUMBER) OCL_POINTWISE_TRAIN(NUMBER) OCL_POINTWISE_COPY(NUMBER) OCL_POINTWISE_PARTS(NUMBER)
      OCL_POINTWISE_COMPLEX(NUMBER) ROW_COUNT
};

#define DEFINE_SLOT(kind, op, ...)                                                \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) { \
    return run(exec, args, &rows[ROW_##op]);                                      \
  }
OCL_POINTWISE_CORE(DEFINE_SLOT)
OCL_POINTWISE_TRAIN(DEFINE_SLOT)

static const row *find_row(uint32_t op_id) {
  for (size_t i = 0; i < ROW_COUNT; i++) {
    if (rows[i].op_id == op_id) return &rows[i];
  }
  return NULL;
}

bool ocl_pointwise_caps(uint32_t op_id, ocl_op_caps *caps) {
  const row *row = find_row(op_id);
  if (!row) return false;
  caps->inputs = row->dtypes | (row->flags & FLOAT_RESULT ? WHOLE_SET : 0);
  caps->outputs = row->flags & BOOL_RESULT ? OCL_BOOLS : row->dtypes;
  caps->flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED;
  if (!row->at.second) caps->flags |= GRAFT_CAP_IN_PLACE; /* a second output is written while inputs are still read */
  if (!(row->flags & CAST)) caps->flags |= GRAFT_CAP_HOST_VALUE;
  if (!(row->flags & (BOOL_RESULT | MASK_FIRST))) caps->flags |= GRAFT_CAP_MIXED_DTYPE;
  return true;
}

/* ---- The arguments of a call ---- */

typedef struct call {
  const graft_tensor_desc *out, *second, *input[INPUTS_MAX];
  const graft_scalar *scalar[SCALARS_MAX];
  graft_scalar made[SCALARS_MAX]; /* of reals */
  int inputs, scalars;
  uint32_t mode;
} call;

static const void *pointer_at(const void *args, uint16_t offset) {
  const void *value;
  memcpy(&value, (const char *)args + offset, sizeof value);
  return value;
}

static void read_mode(call *call, const void *args, const fields *at) {
  const char *base = args;
  int64_t whole;
  if (at->mode) memcpy(&call->mode, base + at->mode, sizeof call->mode);
  if (at->flag) call->mode = *(const uint8_t *)(base + at->flag);
  if (at->whole) memcpy(&whole, base + at->whole, sizeof whole), call->mode = (uint32_t)whole;
}

static void read_call(call *call, const void *args, const row *row) {
  *call = (struct call){.out = pointer_at(args, row->at.out)};
  if (row->at.second) call->second = pointer_at(args, row->at.second);
  while (call->inputs < INPUTS_MAX && row->at.input[call->inputs]) {
    call->input[call->inputs] = pointer_at(args, row->at.input[call->inputs]);
    call->inputs++;
  }
  while (call->scalars < SCALARS_MAX && row->at.scalar[call->scalars]) {
    call->scalar[call->scalars] = pointer_at(args, row->at.scalar[call->scalars]);
    call->scalars++;
  }
  while (call->scalars < SCALARS_MAX && row->at.real[call->scalars]) {
    const double *real = pointer_at(args, row->at.real[call->scalars]);
    if (real) {
      call->made[call->scalars] = (graft_scalar){.dtype = GRAFT_F64, .value.f = *real};
      call->scalar[call->scalars] = &call->made[call->scalars];
    }
    call->scalars++;
  }
  read_mode(call, args, &row->at);
}

/* An operand that is a number, or absent: no memory stands behind it. */
static bool is_value(const graft_tensor_desc *desc) {
  return !desc || desc->flags & GRAFT_TENSOR_HOST_VALUE;
}

/* ---- Which dtypes go together ---- */

/* Whether this input takes part in promotion as a tensor with dimensions: one that was expanded whole was of rank 0. */
static bool is_dimensioned(const graft_tensor_desc *desc) {
  bool expanded = desc->dl.ndim > 0;
  for (int d = 0; d < desc->dl.ndim; d++) expanded = expanded && desc->dl.strides[d] == 0;
  return !expanded;
}

/* Whether a value of `from` enters a computation in `to` as promotion would have it, without a rounding in between. */
static bool widens(const ocl_dtype *from, const ocl_dtype *to) {
  if (to->class == OCL_CLASS_FLOAT) {
    return from->class == OCL_CLASS_INT || from->class == OCL_CLASS_BOOL ||
           (from->class == OCL_CLASS_FLOAT && from->bytes < to->bytes);
  }
  bool to_signed = to->code == GRAFT_I16 || to->code == GRAFT_I32 || to->code == GRAFT_I64;
  if (to->class != OCL_CLASS_INT) return false;
  return from->class == OCL_CLASS_BOOL || (from->class == OCL_CLASS_INT && to_signed && from->bytes < to->bytes);
}

/* The host does not say what the promoted dtype is. It is the output's if an input with dimensions has that dtype and
 * all others widen to it, or if whole numbers meet a fraction (f32, the default dtype); anything else goes back to the
 * host. */
static bool mixed_is_served(const graft_device *device, const call *call, const row *row, int first) {
  const ocl_dtype *to = ocl_dtype_of(device, call->out->dl.dtype);
  bool anchored = false, fraction = row->flags & FLOAT_RESULT;
  for (int k = first; k < call->inputs; k++) {
    const graft_tensor_desc *desc = call->input[k];
    const ocl_dtype *from = desc ? ocl_dtype_of(device, desc->dl.dtype) : to;
    if (!from) return false;
    if (is_value(desc)) {
      fraction = fraction || (desc && from->class == OCL_CLASS_FLOAT);
      continue;
    }
    if (from != to && !widens(from, to)) return false;
    anchored = anchored || (from == to && is_dimensioned(desc));
  }
  for (int k = 0; k < call->scalars; k++)
    fraction = fraction || (call->scalar[k] && call->scalar[k]->dtype == GRAFT_F64);
  if (anchored) return true;
  for (int k = first; k < call->inputs; k++) {
    const graft_tensor_desc *desc = call->input[k];
    if (!is_value(desc) && ocl_dtype_of(device, desc->dl.dtype)->class == OCL_CLASS_FLOAT) return false;
  }
  return fraction && to->code == GRAFT_F32;
}

/* Whether a value of `from` that is not 0 stays so in `to`, and not the other way round. */
static bool keeps_more(const ocl_dtype *to, const ocl_dtype *from) {
  bool to_float = to->class == OCL_CLASS_FLOAT, from_float = from->class == OCL_CLASS_FLOAT;
  return to_float != from_float ? to_float : to->bytes > from->bytes;
}

/* The dtype that all operands of a logical op are converted to without one of them becoming 0. */
static const ocl_dtype *logical_dtype(const graft_device *device, const call *call, const row *row) {
  const ocl_dtype *most = NULL;
  for (int k = 0; k < call->inputs; k++) {
    const ocl_dtype *dtype = ocl_dtype_of(device, call->input[k]->dl.dtype);
    if (!dtype || !(row->dtypes >> dtype->number & 1)) return NULL;
    if (!most || keeps_more(dtype, most)) most = dtype;
  }
  return most;
}

/* The dtype that is computed in, or NULL where the call is not served. */
static const ocl_dtype *compute_dtype(const graft_device *device, const call *call, const row *row) {
  int first = row->flags & MASK_FIRST ? 1 : 0;
  const ocl_dtype *out = ocl_dtype_of(device, call->out->dl.dtype), *in = NULL;
  bool same = true;
  if (!out) return NULL;
  if (row->flags & LOGICAL) return out->code == GRAFT_BOOL ? logical_dtype(device, call, row) : NULL;
  if (first && call->input[0]->dl.dtype != GRAFT_BOOL) return NULL;
  for (int k = first; k < call->inputs; k++) {
    if (is_value(call->input[k])) continue;
    const ocl_dtype *dtype = ocl_dtype_of(device, call->input[k]->dl.dtype);
    if (!dtype) return NULL;
    if (!in) in = dtype;
    same = same && dtype == in;
  }
  const ocl_dtype *compute = row->flags & (BOOL_RESULT | CAST) ? in : out;
  if (!compute || !(row->dtypes >> compute->number & 1)) return NULL;
  if (row->flags & CAST) return compute;
  if (row->flags & BOOL_RESULT) return same && out->code == GRAFT_BOOL ? compute : NULL;
  if (!in || (same && in == out)) return compute;
  if (row->flags & MASK_FIRST) return NULL;
  return mixed_is_served(device, call, row, first) ? compute : NULL;
}

/* ---- The memo ---- */

typedef struct memo {
  ocl_kernel kernel;
  const ocl_dtype *compute;
  bool reports; /* a divisor of 0 */
} memo;

/* The operand that integers are divided by, where it is a tensor: -1 for none. */
static int divisor_of(const call *call, const row *row, const ocl_dtype *compute) {
  int last = call->inputs - 1;
  bool divides = row->flags & DIVIDES && compute->class == OCL_CLASS_INT;
  return divides && call->scalars == 0 && !is_value(call->input[last]) ? last : -1;
}

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->kernel);
  free(memo);
}

static bool make_geometry(const call *call, ocl_geometry *geometry) {
  const graft_dl_tensor *out = &call->out->dl;
  *geometry = (ocl_geometry){.operands = call->inputs + 1 + (call->second != NULL)};
  if (out->ndim > OCL_DIMS_MAX) return false;
  for (int d = out->ndim - 1; d >= 0; d--) {
    int64_t strides[OCL_OPERANDS_MAX] = {out->strides[d]};
    for (int k = 0; k < call->inputs; k++) {
      if (is_value(call->input[k])) continue;
      const graft_dl_tensor *in = &call->input[k]->dl;
      if (in->ndim != out->ndim || in->shape[d] != out->shape[d]) return false;
      strides[k + 1] = in->strides[d];
    }
    if (call->second) strides[call->inputs + 1] = call->second->dl.strides[d];
    ocl_geometry_push_outer(geometry, out->shape[d], strides);
  }
  ocl_geometry_sort(geometry);
  ocl_geometry_collapse(geometry);
  return true;
}

static int inner_kind(int64_t stride) {
  return stride == 0 ? 0 : stride == 1 ? 1 : 2;
}

static void write_head(ocl_text *head, const graft_device *device, const call *call, const row *row,
                       const ocl_dtype *compute, const ocl_geometry *geometry, size_t local) {
  bool complex =
      compute->class == OCL_CLASS_COMPLEX || ocl_dtype_of(device, call->out->dl.dtype)->class == OCL_CLASS_COMPLEX;
  ocl_head_types(head, compute, complex ? 1 : device->vector_width, local);
  ocl_text_add(head, "#define RANK %d\n#define INPUTS %d\n", geometry->rank, call->inputs);
  ocl_text_add(head, "#define EXPRESSION %s\n#define MODE %u\n", row->expression, call->mode);
  ocl_text_add(head, "#define D_OUT %s\n#define INNER_OUT %d\n", ocl_dtype_of(device, call->out->dl.dtype)->name,
               inner_kind(geometry->stride[0][0]));
  if (call->second) ocl_text_add(head, "#define INNER_SECOND %d\n", inner_kind(geometry->stride[call->inputs + 1][0]));
  if (row->flags & BOOL_RESULT) ocl_text_add(head, "#define BOOL_RESULT\n");
  if (row->flags & MASK_FIRST) ocl_text_add(head, "#define MASK_0\n");
  int divisor = divisor_of(call, row, compute);
  if (divisor >= 0) ocl_text_add(head, "#define DIVISOR %c\n#define OP_ID %u\n", 'a' + divisor, row->op_id);
  for (int k = 0; k < call->inputs; k++) {
    if (call->input[k]) ocl_text_add(head, "#define HAS_%c\n", 'A' + k);
    if (is_value(call->input[k])) {
      ocl_text_add(head, "#define VALUE_%d\n", k);
    } else {
      ocl_text_add(head, "#define D_%d %s\n#define INNER_%d %d\n", k,
                   ocl_dtype_of(device, call->input[k]->dl.dtype)->name, k, inner_kind(geometry->stride[k + 1][0]));
    }
  }
  for (int k = 0; k < call->scalars; k++) {
    if (call->scalar[k]) ocl_text_add(head, "#define HAS_%c\n", 'X' + k);
  }
}

/* How the index space is cut: on a CPU into a few long pieces for each core, on a GPU into one vector a work-item. */
static void cut(const graft_device *device, const ocl_geometry *geometry, size_t local, int64_t numbers[4],
                size_t *global) {
  int64_t rows = 1, items = device->is_cpu ? 4 * (int64_t)device->compute_units : INT64_MAX;
  for (int d = 1; d < geometry->rank; d++) rows *= geometry->size[d];
  int64_t size = geometry->size[0], chunk = device->vector_width;
  if (device->is_cpu) {
    const int64_t least = 2048; /* below, starting a work-group costs more than it does */
    chunk = size * rows / items;
    chunk = (chunk < least ? least : chunk) / 16 * 16;
    if (chunk > 65536) chunk = 65536;
  }
  if (chunk > size) chunk = size;
  int64_t per_row = (size + chunk - 1) / chunk, chunks = per_row * rows;
  int64_t per_item = chunks / items > 0 ? (chunks + items - 1) / items : 1;
  if (device->is_cpu && per_item * chunk < 1024) per_item = (1024 + chunk - 1) / chunk;
  int64_t work_items = (chunks + per_item - 1) / per_item;
  numbers[0] = chunk;
  numbers[1] = per_row;
  numbers[2] = chunks;
  numbers[3] = per_item;
  *global = ((size_t)work_items + local - 1) / local * local;
}

static graft_status set_space(memo *memo, const ocl_geometry *geometry, size_t local) {
  int64_t space[(OCL_OPERANDS_MAX + 1) * OCL_DIMS_MAX + 4];
  int n = 0;
  for (int d = 0; d < geometry->rank; d++) space[n++] = geometry->size[d];
  for (int k = 0; k < geometry->operands; k++) {
    for (int d = 0; d < geometry->rank; d++) space[n++] = geometry->stride[k][d];
  }
  cut(memo->kernel.device, geometry, local, space + n, &memo->kernel.global[0]);
  memo->kernel.local[0] = local;
  cl_uint index = 2 + 2 * (cl_uint)(geometry->operands - 1) + SCALARS_MAX + memo->reports;
  return ocl_kernel_constant(&memo->kernel, index, sizeof *space * (size_t)(n + 4), space);
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *row_pointer, void **out) {
  graft_device *device = exec->device;
  const row *row = row_pointer;
  call call;
  read_call(&call, args, row);
  const ocl_dtype *compute = compute_dtype(device, &call, row);
  ocl_geometry geometry;
  if (!compute || !make_geometry(&call, &geometry)) return GRAFT_UNIMPLEMENTED;
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->compute = compute;
  memo->reports = divisor_of(&call, row, compute) >= 0;
  size_t local = device->is_cpu ? 1 : 128;
  ocl_text head = {0};
  write_head(&head, device, &call, row, compute, &geometry, local);
  const char *files = row->flags & SPECIAL ? "pointwise/special pointwise/pointwise" : "pointwise/pointwise";
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(&memo->kernel, device, head.items, files, "pointwise");
  ocl_text_free(&head);
  if (status == GRAFT_OK) status = set_space(memo, &geometry, local);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

/* ---- A call ---- */

static graft_status run(const graft_exec *exec, const void *args, const row *row) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, args, row, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  call call;
  read_call(&call, args, row);
  static const uint64_t unused = 0;
  bool compares = row->flags & BOOL_RESULT;
  ocl_value values[INPUTS_MAX + SCALARS_MAX] = {0};
  ocl_argument arguments[OCL_ARGUMENTS_MAX] = {OCL_TENSOR(call.out)};
  cl_uint n = 2;
  if (call.second) {
    arguments[n++] = (ocl_argument){sizeof(cl_mem), &call.second->dl.data->handle};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), &call.second->dl.byte_offset};
  }
  for (int k = 0; k < call.inputs + SCALARS_MAX; k++) {
    bool is_input = k < call.inputs, is_scalar = !is_input && k - call.inputs < call.scalars;
    const graft_tensor_desc *desc = is_input ? call.input[k] : NULL;
    const graft_scalar *scalar = is_scalar ? call.scalar[k - call.inputs] : NULL;
    if (desc && !is_value(desc)) {
      arguments[n++] = (ocl_argument){sizeof(cl_mem), &desc->dl.data->handle};
      arguments[n++] = (ocl_argument){sizeof(uint64_t), &desc->dl.byte_offset};
      continue;
    }
    ocl_number number = {.is_int = true, .i = 1, .re = 1}; /* what is absent is alpha, or not looked at */
    if (desc && !ocl_number_of_tensor(desc, &number)) return GRAFT_UNIMPLEMENTED;
    if (scalar) ocl_number_of_scalar(scalar, &number);
    bool is_divisor = desc ? call.scalars == 0 && k == call.inputs - 1 : scalar != NULL;
    if (row->flags & DIVIDES && memo->compute->class == OCL_CLASS_INT && is_divisor && number.i == 0) {
      return ocl_fail(exec->device->plugin, GRAFT_INVALID_ARGUMENT, "integer division by zero");
    }
    if (compares && memo->compute->bytes == 2 && memo->compute->class == OCL_CLASS_FLOAT) {
      number = (ocl_number){.re = ocl_round_to(memo->compute->code, (float)number.re)};
    }
    size_t bytes = ocl_number_as(&number, memo->compute, &values[k]);
    arguments[n++] = (ocl_argument){bytes, &values[k]};
    if (is_input) arguments[n++] = (ocl_argument){sizeof unused, &unused};
  }
  cl_mem faults;
  if (memo->reports) {
    status = ocl_stream_faults(exec->stream, &faults);
    if (status != GRAFT_OK) return status;
    arguments[n++] = (ocl_argument)OCL_VALUE(faults);
  }
  return ocl_launch(&memo->kernel, exec->stream, n, arguments);
}

graft_status ocl_pointwise(const graft_exec *exec, const void *args, uint32_t op_id) {
  return run(exec, args, find_row(op_id));
}
