/* Reductions over some dimensions: rows of a table, like the pointwise ops. A call is one pass, or two where there are
 * too few outputs to keep the device busy: the first then leaves partial results in workspace, which the second
 * combines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "families.h"

/* What accumulation is done in: f32 for halves and f32, f64 for f64, i64 for whole numbers; or the input's own; or f64
 * wherever there is one, since squares and powers leave f32's range. */
typedef enum accumulation { AS_SUM, AS_INPUT, WIDEST } accumulation;

/* OpenCL C over v, a and b; x is the number of elements reduced, Y and s are explained in reduction.cl. */
typedef struct recipe {
  const char *init, *map, *combine, *finish;
  accumulation in;
} recipe;

enum { SUM, MEAN, PROD, MAX, MIN, ANY, AVERAGE, SQUARES, NORM_0, NORM_1, NORM_2, NORM_P, NORM_MAX, NORM_MIN };

static const recipe recipes[] = {
    [SUM] = {"0", "v", "ADD(a, b)", "v", AS_SUM},
    [MEAN] = {"0", "v", "ADD(a, b)", "QUOTIENT(v, x)", AS_SUM},
    [PROD] = {"ONE", "v", "MUL(a, b)", "v", AS_SUM},
    [MAX] = {"LEAST", "v", "MAXIMUM(a, b)", "v", AS_INPUT},
    [MIN] = {"MOST", "v", "MINIMUM(a, b)", "v", AS_INPUT},
    [ANY] = {"0", "TRUTH(v)", "EITHER(a, b)", "v", AS_INPUT},
    /* A variance: the average in the accumulator, then squares of what is left. */
    [AVERAGE] = {"0", "v", "ADD(a, b)", "QUOTIENT(v, x)", WIDEST},
    [SQUARES] = {"0", "(v - s) * (v - s)", "a + b", "v / x", WIDEST},
    [NORM_0] = {"0", "TRUTH(v)", "a + b", "v", WIDEST},
    [NORM_1] = {"0", "fabs(v)", "a + b", "v", WIDEST},
    [NORM_2] = {"0", "v * v", "a + b", "sqrt(v)", WIDEST},
    [NORM_P] = {"0", "pow(fabs(v), (VT)Y)", "a + b", "pow(v, (VT)1 / (VT)Y)", WIDEST},
    [NORM_MAX] = {"0", "fabs(v)", "MAXIMUM(a, b)", "v", AS_INPUT},
    [NORM_MIN] = {"MOST", "fabs(v)", "MINIMUM(a, b)", "v", AS_INPUT},
};

#define ANYTHING  (OCL_FLOATS | OCL_INTS | OCL_BOOLS | OCL_COMPLEX)
#define REALS     (OCL_FLOATS | OCL_INTS | OCL_BOOLS)
#define NUMBERS   (OCL_FLOATS | OCL_INTS | OCL_COMPLEX)
#define CONVERTED 1 /* takes a dtype argument: inputs come as they are */

static const struct row {
  uint32_t op_id;
  uint64_t inputs, outputs;
  int flags;
} rows[] = {
    {GRAFT_OP_SUM_DIM_INTLIST, ANYTHING, NUMBERS, CONVERTED},
    {GRAFT_OP_MEAN_DIM, ANYTHING, OCL_FLOATS | OCL_COMPLEX, CONVERTED},
    {GRAFT_OP_MEAN, ANYTHING, OCL_FLOATS | OCL_COMPLEX, CONVERTED},
    {GRAFT_OP_PROD, ANYTHING, NUMBERS, CONVERTED},
    {GRAFT_OP_PROD_DIM_INT, ANYTHING, NUMBERS, CONVERTED},
    {GRAFT_OP_AMAX, REALS, REALS, 0},
    {GRAFT_OP_AMIN, REALS, REALS, 0},
    {GRAFT_OP_ANY, ANYTHING, OCL_BOOLS | OCL_BIT(U8), 0},
    {GRAFT_OP_ANY_DIM, ANYTHING, OCL_BOOLS | OCL_BIT(U8), 0},
    {GRAFT_OP_ANY_DIMS, ANYTHING, OCL_BOOLS | OCL_BIT(U8), 0},
    {GRAFT_OP_VAR_CORRECTION, OCL_FLOATS, OCL_FLOATS, 0},
    {GRAFT_OP_LINALG_VECTOR_NORM, OCL_FLOATS, OCL_FLOATS, CONVERTED},
};

bool ocl_reduction_caps(uint32_t op_id, ocl_op_caps *caps) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].op_id != op_id) continue;
    caps->inputs = rows[i].inputs;
    caps->outputs = rows[i].outputs;
    caps->flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY;
    if (rows[i].flags & CONVERTED) caps->flags |= GRAFT_CAP_MIXED_DTYPE;
    return true;
  }
  return false;
}

/* ---- A call ---- */

typedef struct call {
  const graft_tensor_desc *in, *out;
  uint32_t reduced; /* bit d: dimension d of `in` */
  bool keepdim;
  int recipe;
  double number; /* Y of the recipe; of a variance, how many elements do not count */
} call;

static int64_t count_of(const graft_tensor_desc *desc) {
  int64_t count = 1;
  for (int d = 0; d < desc->dl.ndim; d++) count *= desc->dl.shape[d];
  return count;
}

static uint32_t all_dims(const graft_tensor_desc *in) {
  return (UINT32_C(1) << in->dl.ndim) - 1;
}

static uint32_t one_dim(int64_t dim, const graft_tensor_desc *in) {
  return in->dl.ndim ? UINT32_C(1) << dim : 0;
}

static uint32_t dims_to_bits(graft_int_list dims, const graft_tensor_desc *in, bool empty_is_all) {
  if (!dims.items || (dims.count == 0 && empty_is_all)) return all_dims(in);
  uint32_t bits = 0;
  for (uint64_t i = 0; i < dims.count; i++) bits |= one_dim(dims.items[i], in);
  return bits;
}

typedef struct pass {
  ocl_geometry kept;    /* operands: out, in */
  ocl_geometry reduced; /* operand: in */
  const ocl_dtype *out, *in;
  recipe recipe;
  double y; /* Y of the recipe */
  bool rows, shifted;
  int64_t splits, split_stride;
} pass;

static void split_geometry(const call *call, pass *pass) {
  const graft_dl_tensor *in = &call->in->dl, *out = &call->out->dl;
  pass->kept.operands = 2;
  pass->reduced.operands = 1;
  int o = out->ndim - 1;
  for (int d = in->ndim - 1; d >= 0; d--) {
    bool is_reduced = call->reduced >> d & 1;
    int64_t strides[OCL_OPERANDS_MAX] = {in->strides[d]};
    if (is_reduced) {
      ocl_geometry_push_outer(&pass->reduced, in->shape[d], strides);
    } else {
      strides[0] = out->strides[o];
      strides[1] = in->strides[d];
      ocl_geometry_push_outer(&pass->kept, in->shape[d], strides);
    }
    if (!is_reduced || call->keepdim) o--;
  }
}

/* The innermost kept dimension should be the input's: the output is the smaller of the two. */
static void order(pass *pass, bool empty) {
  int64_t out[OCL_DIMS_MAX];
  memcpy(out, pass->kept.stride[0], sizeof out);
  memcpy(pass->kept.stride[0], pass->kept.stride[1], sizeof out);
  memcpy(pass->kept.stride[1], out, sizeof out);
  ocl_geometry_sort(&pass->kept);
  memcpy(out, pass->kept.stride[0], sizeof out);
  memcpy(pass->kept.stride[0], pass->kept.stride[1], sizeof out);
  memcpy(pass->kept.stride[1], out, sizeof out);
  ocl_geometry_collapse(&pass->kept);
  ocl_geometry_sort(&pass->reduced);
  ocl_geometry_collapse(&pass->reduced);
  if (empty) pass->reduced = (ocl_geometry){.rank = 1, .operands = 1, .stride = {{1}}};
  bool wide_columns = pass->kept.stride[1][0] == 1 && pass->kept.size[0] >= 4;
  pass->rows = pass->reduced.stride[0][0] == 1 || !wide_columns;
}

static int64_t elements(const ocl_geometry *geometry) {
  int64_t count = 1;
  for (int d = 0; d < geometry->rank; d++) count *= geometry->size[d];
  return count;
}

static const ocl_dtype *accumulator(const graft_device *device, const pass *pass) {
  const ocl_dtype *dtype = pass->recipe.in == AS_INPUT ? pass->in : pass->out;
  if (dtype->class == OCL_CLASS_FLOAT) {
    bool wide = dtype->code == GRAFT_F64 || (pass->recipe.in == WIDEST && device->has_f64);
    return ocl_dtype_of(device, wide ? GRAFT_F64 : GRAFT_F32);
  }
  return dtype->class == OCL_CLASS_COMPLEX || pass->recipe.in == AS_INPUT ? dtype : ocl_dtype_of(device, GRAFT_I64);
}

/* An explicit dtype converts before it reduces. Loads convert to the accumulator; where the dtype itself is narrower,
 * *map becomes what rounds to it. False: not served. */
static bool converts(const ocl_dtype *from, const ocl_dtype *to, const char **map) {
  bool half = to->class == OCL_CLASS_FLOAT && to->bytes == 2;
  if (from == to) return true;
  if (from->class == OCL_CLASS_COMPLEX || to->class == OCL_CLASS_COMPLEX || to->class == OCL_CLASS_BOOL) return false;
  if (to->class == OCL_CLASS_INT) return from->class != OCL_CLASS_FLOAT || to->code == GRAFT_I64;
  if (!half) return true;
  if (from->code == GRAFT_F64 || from->bytes == 8 || *map[0] != 'v' || (*map)[1]) return false; /* two roundings */
  *map = to->code == GRAFT_F16 ? "from_f16(to_f16(v))" : "AS(float, CONVERT(uint, to_bf16(v)) << 16)";
  return true;
}

/* ---- The memo ---- */

/* One reduction is one or two kernels; a variance is two reductions. */
typedef struct stage {
  ocl_kernel kernel[2];
  int passes;
  uint64_t partial_bytes;
  ocl_number number; /* x of the recipe */
} stage;

typedef struct memo {
  stage stage[2];
  int stages;
  const ocl_dtype *accumulator;
  uint64_t shift_bytes;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  for (int i = 0; i < 2; i++) {
    ocl_kernel_destroy(&memo->stage[i].kernel[0]);
    ocl_kernel_destroy(&memo->stage[i].kernel[1]);
  }
  free(memo);
}

static int inner_kind(int64_t stride) {
  return stride == 0 ? 0 : stride == 1 ? 1 : 2;
}

static int add_geometry(int64_t *space, int n, const ocl_geometry *geometry) {
  for (int d = 0; d < geometry->rank; d++) space[n++] = geometry->size[d];
  for (int k = 0; k < geometry->operands; k++) {
    for (int d = 0; d < geometry->rank; d++) space[n++] = geometry->stride[k][d];
  }
  return n;
}

static int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static graft_status prepare_pass(ocl_kernel *kernel, graft_device *device, const pass *pass, const ocl_dtype *compute) {
  size_t local = device->is_cpu ? 1 : 64;
  int64_t vec = compute->class == OCL_CLASS_COMPLEX ? 1 : device->vector_width;
  ocl_text head = {0};
  ocl_head_types(&head, compute, (unsigned)vec, local);
  ocl_text_add(&head, "#define KEPT %d\n#define REDUCED %d\n#define D_OUT %s\n#define D_IN %s\n", pass->kept.rank,
               pass->reduced.rank, pass->out->name, pass->in->name);
  ocl_text_add(&head, "%s#define INNER_IN %d\n#define INNER_OUT %d\n", pass->rows ? "#define ROWS\n" : "",
               inner_kind(pass->rows ? pass->reduced.stride[0][0] : pass->kept.stride[1][0]),
               inner_kind(pass->kept.stride[0][0]));
  ocl_text_add(&head, "#define INIT (CT)(%s)\n#define MAP(v) %s\n#define COMBINE(a, b) %s\n#define FINISH(v) %s\n",
               pass->recipe.init, pass->recipe.map, pass->recipe.combine, pass->recipe.finish);
  ocl_text_add(&head, "#define Y %a%s\n%s", pass->y, compute->code == GRAFT_F64 ? "" : "f",
               pass->shifted ? "#define SHIFTED\n" : "");
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(kernel, device, head.items, "reduction", "reduce");
  ocl_text_free(&head);
  if (status != GRAFT_OK) return status;

  int64_t space[5 * OCL_DIMS_MAX + 10];
  int n = add_geometry(space, 0, &pass->kept);
  n = add_geometry(space, n, &pass->reduced);
  int64_t segment = pass->rows ? 64 * vec : 256, per_row = ceil_divide(pass->reduced.size[0], segment);
  int64_t segments = per_row > 0 ? per_row * (elements(&pass->reduced) / pass->reduced.size[0]) : 0;
  int64_t outputs_per_unit = pass->rows ? 1 : vec;
  int64_t units_per_row = ceil_divide(pass->kept.size[0], outputs_per_unit);
  int64_t units_per_split = units_per_row * (elements(&pass->kept) / pass->kept.size[0]);
  int64_t units = units_per_split * pass->splits;
  int64_t items = device->is_cpu ? 8 * (int64_t)device->compute_units : INT64_MAX;
  int64_t per_item = units > items ? ceil_divide(units, items) : 1;
  int64_t rest[10] = {segment,
                      per_row,
                      segments,
                      ceil_divide(segments, pass->splits),
                      pass->split_stride,
                      outputs_per_unit,
                      units_per_row,
                      units_per_split,
                      units,
                      per_item};
  memcpy(space + n, rest, sizeof rest);
  kernel->local[0] = local;
  kernel->global[0] = ((size_t)ceil_divide(units, per_item) + local - 1) / local * local;
  return ocl_kernel_constant(kernel, 7, sizeof *space * (size_t)(n + 10), space);
}

/* How many work-items should share an output: as many as keep the device busy, if each has enough to do. */
static int64_t choose_splits(const graft_device *device, const pass *pass) {
  int64_t wanted = device->is_cpu ? 2 * (int64_t)device->compute_units : 512 * (int64_t)device->compute_units;
  int64_t least = device->is_cpu ? 16384 : 512; /* elements for each */
  int64_t outputs = elements(&pass->kept), reduced = elements(&pass->reduced);
  int64_t splits = wanted / outputs, most = reduced / least;
  if (splits > most) splits = most;
  return splits > 1 ? splits : 1;
}

static graft_status prepare(stage *stage, graft_device *device, pass *only, const ocl_dtype *compute) {
  int64_t outputs = elements(&only->kept), splits = choose_splits(device, only);
  stage->passes = splits > 1 ? 2 : 1;
  only->splits = splits;
  if (splits == 1) return prepare_pass(&stage->kernel[0], device, only, compute);

  pass first = *only, second = *only;
  int64_t stride = 1;
  for (int d = 0; d < only->kept.rank; d++) {
    first.kept.stride[0][d] = second.kept.stride[1][d] = stride;
    stride *= only->kept.size[d];
  }
  first.out = second.in = compute;
  first.recipe.finish = "v";
  second.recipe.map = "v";
  second.shifted = false;
  first.split_stride = outputs;
  second.splits = 1;
  second.reduced = (ocl_geometry){.rank = 1, .operands = 1, .size = {splits}, .stride = {{outputs}}};
  second.rows = false;
  ocl_geometry_collapse(&second.kept);
  stage->partial_bytes = (uint64_t)(outputs * splits) * compute->bytes;
  graft_status status = prepare_pass(&stage->kernel[0], device, &first, compute);
  return status != GRAFT_OK ? status : prepare_pass(&stage->kernel[1], device, &second, compute);
}

static ocl_number number_of(double value) {
  return (ocl_number){.is_int = value == (double)(int64_t)value, .i = (int64_t)value, .re = value};
}

/* The average of what each output is made of, in the order of its kept dimensions; and the squares around it. */
static graft_status prepare_variance(memo *memo, graft_device *device, const call *call, pass *squares) {
  pass average = *squares;
  double count = (double)elements(&squares->reduced), left = count - call->number;
  int64_t stride = 1;
  for (int d = 0; d < average.kept.rank; d++) {
    average.kept.stride[0][d] = stride;
    stride *= average.kept.size[d];
  }
  average.recipe = recipes[AVERAGE];
  average.out = memo->accumulator;
  squares->shifted = true;
  memo->stages = 2;
  memo->shift_bytes = (uint64_t)stride * memo->accumulator->bytes;
  memo->stage[0].number = number_of(count);
  memo->stage[1].number = number_of(left > 0 ? left : 0);
  graft_status status = prepare(&memo->stage[0], device, &average, memo->accumulator);
  return status != GRAFT_OK ? status : prepare(&memo->stage[1], device, squares, memo->accumulator);
}

static const struct row *find_row(uint32_t op_id) {
  const struct row *row = rows;
  while (row->op_id != op_id) row++;
  return row;
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const call *call = call_pointer;
  const struct row *row = find_row(((const graft_args *)args)->op_id);
  graft_device *device = exec->device;
  pass only = {.in = ocl_dtype_of(device, call->in->dl.dtype),
               .out = ocl_dtype_of(device, call->out->dl.dtype),
               .recipe = recipes[call->recipe],
               .y = call->number};
  if (!only.in || !only.out || call->in->dl.ndim > OCL_DIMS_MAX || !(row->inputs >> only.in->number & 1) ||
      !(row->outputs >> only.out->number & 1)) {
    return GRAFT_UNIMPLEMENTED;
  }
  if (only.in != only.out && call->recipe != ANY && !converts(only.in, only.out, &only.recipe.map)) {
    return GRAFT_UNIMPLEMENTED;
  }
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  split_geometry(call, &only);
  order(&only, count_of(call->in) == 0);
  memo->accumulator = accumulator(device, &only);
  memo->stages = 1;
  memo->stage[0].number = number_of((double)elements(&only.reduced));
  graft_status status = call->recipe == SQUARES ? prepare_variance(memo, device, call, &only)
                                                : prepare(&memo->stage[0], device, &only, memo->accumulator);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

/* ---- A launch ---- */

typedef struct place {
  graft_buffer *buffer;
  uint64_t offset;
} place;

#define PLACE(p) OCL_BUFFER((p).buffer), OCL_VALUE((p).offset)

static graft_status workspace(const graft_exec *exec, uint64_t bytes, place *place) {
  return exec->device->plugin->host->workspace(exec, bytes, 0, &place->buffer, &place->offset);
}

static graft_status run_stage(const graft_exec *exec, stage *stage, const ocl_dtype *accumulator, place out, place in,
                              place shift) {
  ocl_value x;
  size_t bytes = ocl_number_as(&stage->number, accumulator, &x);
  place partial = out;
  graft_status status = stage->passes == 2 ? workspace(exec, stage->partial_bytes, &partial) : GRAFT_OK;
  if (status != GRAFT_OK) return status;
  const ocl_argument first[] = {PLACE(partial), PLACE(in), PLACE(shift), {bytes, &x}};
  status = ocl_launch(&stage->kernel[0], exec->stream, 7, first);
  if (status != GRAFT_OK || stage->passes == 1) return status;
  const ocl_argument second[] = {PLACE(out), PLACE(partial), PLACE(partial), {bytes, &x}};
  return ocl_launch(&stage->kernel[1], exec->stream, 7, second);
}

static graft_status run(const graft_exec *exec, const void *args, const call *call) {
  void *pointer;
  if (count_of(call->out) == 0) return GRAFT_OK;
  graft_status status = ocl_memo_get(exec, args, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  place out = {call->out->dl.data, call->out->dl.byte_offset}, in = {call->in->dl.data, call->in->dl.byte_offset};
  if (!in.buffer) in = out; /* of no elements, and never read */
  if (memo->stages == 1) return run_stage(exec, &memo->stage[0], memo->accumulator, out, in, in);
  place average;
  status = workspace(exec, memo->shift_bytes, &average);
  if (status == GRAFT_OK) status = run_stage(exec, &memo->stage[0], memo->accumulator, average, in, in);
  if (status == GRAFT_OK) status = run_stage(exec, &memo->stage[1], memo->accumulator, out, in, average);
  return status;
}

/* ---- Slots ---- */

#define SLOT(op, dims, keep, recipe)                                              \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) { \
    call call = {args->self, args->out, dims, keep, recipe, 0};                   \
    return run(exec, args, &call);                                                \
  }
#define LISTED dims_to_bits(args->dim, args->self, true)
SLOT(sum_dim_IntList, LISTED, args->keepdim, SUM)
SLOT(mean_dim, LISTED, args->keepdim, MEAN)
SLOT(mean, all_dims(args->self), false, MEAN)
SLOT(prod, all_dims(args->self), false, PROD)
SLOT(prod_dim_int, one_dim(args->dim, args->self), args->keepdim, PROD)
SLOT(amax, LISTED, args->keepdim, MAX)
SLOT(amin, LISTED, args->keepdim, MIN)
SLOT(any, all_dims(args->self), false, ANY)
SLOT(any_dim, one_dim(args->dim, args->self), args->keepdim, ANY)
SLOT(any_dims, dims_to_bits(args->dim, args->self, false), args->keepdim, ANY)

static double number_or(const graft_scalar *scalar, double absent) {
  ocl_number number = {.re = absent};
  if (scalar) ocl_number_of_scalar(scalar, &number);
  return number.re;
}

graft_status ocl_op_var_correction(const graft_exec *exec, const graft_args_var_correction *args) {
  call call = {args->self, args->out, LISTED, args->keepdim, SQUARES, number_or(args->correction, 1)};
  return run(exec, args, &call);
}

graft_status ocl_op_linalg_vector_norm(const graft_exec *exec, const graft_args_linalg_vector_norm *args) {
  double p = number_or(args->ord, 2);
  int recipe = isinf(p) ? (p > 0 ? NORM_MAX : NORM_MIN) : p == 0 ? NORM_0 : p == 1 ? NORM_1 : p == 2 ? NORM_2 : NORM_P;
  if (isnan(p)) return GRAFT_UNIMPLEMENTED;
  call call = {args->self, args->out, LISTED, args->keepdim, recipe, recipe == NORM_P ? p : 0};
  return run(exec, args, &call);
}
