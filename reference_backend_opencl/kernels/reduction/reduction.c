/* Reductions over some dimensions: rows of a table, like the pointwise ops. A call is one pass, or two where there are
 * too few outputs to keep the device busy: the first then leaves partial results in workspace, which the second
 * combines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/families.h"

/* What accumulation is done in: f32 for halves and f32, f64 for f64, i64 for whole numbers; or the input's own; or f64
 * wherever there is one, since squares and powers leave f32's range; or what counts elements of the input. */
typedef enum accumulation { AS_SUM, AS_INPUT, WIDEST, COUNTS } accumulation;

/* OpenCL C over v, a and b; x is the number of elements reduced, Y and s are explained in reduction.cl. Where a recipe
 * has s, `first` is the one that finds it. */
typedef struct recipe {
  const char *init, *map, *combine, *finish;
  accumulation in;
  int first;
} recipe;

enum {
  SUM,
  MEAN,
  PROD,
  MAX,
  MIN,
  ANY,
  ALL,
  COUNT,
  NUMBERS_SUM,
  AVERAGE,
  SQUARES,
  DEVIATION,
  LARGEST,
  LOG_SUM,
  NORM_0,
  NORM_1,
  NORM_2,
  NORM_P,
  NORM_MAX,
  NORM_MIN
};

static const recipe recipes[] = {
    [SUM] = {"0", "v", "ADD(a, b)", "v", AS_SUM},
    [MEAN] = {"0", "v", "ADD(a, b)", "QUOTIENT(v, x)", AS_SUM},
    [PROD] = {"ONE", "v", "MUL(a, b)", "v", AS_SUM},
    [MAX] = {"LEAST", "v", "MAXIMUM(a, b)", "v", AS_INPUT},
    [MIN] = {"MOST", "v", "MINIMUM(a, b)", "v", AS_INPUT},
    [ANY] = {"0", "TRUTH(v)", "EITHER(a, b)", "v", AS_INPUT},
    [ALL] = {"ONE", "TRUTH(v)", "BOTH(a, b)", "v", AS_INPUT},
    [COUNT] = {"0", "TRUTH(v)", "ADD(a, b)", "v", COUNTS},
    [NUMBERS_SUM] = {"0", "NUMBER(v)", "ADD(a, b)", "v", AS_SUM},
    /* A variance: the average in the accumulator, then squares of what is left. */
    [AVERAGE] = {"0", "v", "ADD(a, b)", "QUOTIENT(v, x)", WIDEST},
    [SQUARES] = {"0", "(v - s) * (v - s)", "a + b", "v / x", WIDEST, AVERAGE},
    [DEVIATION] = {"0", "(v - s) * (v - s)", "a + b", "sqrt(v / x)", WIDEST, AVERAGE},
    /* A sum of exponentials: shifted by the largest, so that it does not overflow. */
    [LARGEST] = {"LEAST", "v", "MAXIMUM(a, b)", "FINITE(v)", AS_SUM},
    [LOG_SUM] = {"0", "exp(v - s)", "a + b", "log(v) + s", AS_SUM, LARGEST},
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
    {GRAFT_OP_ALL, ANYTHING, OCL_BOOLS | OCL_BIT(U8), 0},
    {GRAFT_OP_ALL_DIM, ANYTHING, OCL_BOOLS | OCL_BIT(U8), 0},
    {GRAFT_OP_MAX, REALS, REALS, 0},
    {GRAFT_OP_MIN, REALS, REALS, 0},
    {GRAFT_OP_AMINMAX, REALS, REALS, 0},
    {GRAFT_OP_NANSUM, REALS, OCL_FLOATS | OCL_INTS, CONVERTED},
    {GRAFT_OP_COUNT_NONZERO, ANYTHING, OCL_BIT(I64), 0},
    {GRAFT_OP_LOGSUMEXP, OCL_FLOATS, OCL_FLOATS, 0},
    {GRAFT_OP_STD_CORRECTION, OCL_FLOATS, OCL_FLOATS, 0},
    {GRAFT_OP_VAR_MEAN_CORRECTION, OCL_FLOATS, OCL_FLOATS, 0},
    {GRAFT_OP_STD_MEAN_CORRECTION, OCL_FLOATS, OCL_FLOATS, 0},
    {GRAFT_OP_NORM_SCALAROPT_DIM, OCL_FLOATS, OCL_FLOATS, 0},
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
  double number;                  /* Y of the recipe; of a variance, how many elements do not count */
  const graft_tensor_desc *other; /* a second output, or NULL: by the recipe `second` */
  int second;
} call;

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

static void split_geometry(const call *call, const graft_tensor_desc *to, pass *pass) {
  const graft_dl_tensor *in = &call->in->dl, *out = &to->dl;
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
  bool counts = pass->recipe.in == COUNTS, of_input = pass->recipe.in == AS_INPUT || counts;
  const ocl_dtype *dtype = of_input ? pass->in : pass->out;
  if (dtype->class == OCL_CLASS_FLOAT) {
    bool wide = dtype->code == GRAFT_F64 || ((pass->recipe.in == WIDEST || counts) && device->has_f64);
    return ocl_dtype_of(device, wide ? GRAFT_F64 : GRAFT_F32);
  }
  if (dtype->class == OCL_CLASS_COMPLEX && counts && device->has_f64) return ocl_dtype_of(device, GRAFT_C128);
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

/* One output: a reduction, after that which finds s for each place of it where the recipe asks. */
typedef struct result {
  stage stage[2];
  int stages;
  const ocl_dtype *accumulator;
  uint64_t shift_bytes;
} result;

typedef struct memo {
  result result[2];
  int results;
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  for (int i = 0; i < 4; i++) {
    ocl_kernel_destroy(&memo->result[i / 2].stage[i % 2].kernel[0]);
    ocl_kernel_destroy(&memo->result[i / 2].stage[i % 2].kernel[1]);
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
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(kernel, device, head.items, "reduction/reduction", "reduce");
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
  first.shifted = second.shifted = only->shifted; /* s may be wanted by the map and by the finish */
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

/* What s is for each output, in the order of its kept dimensions; and the reduction that takes it. */
static graft_status prepare_shifted(result *result, graft_device *device, const call *call, pass *shifted) {
  pass first = *shifted;
  double count = (double)elements(&shifted->reduced), left = count - call->number;
  int64_t stride = 1;
  for (int d = 0; d < first.kept.rank; d++) {
    first.kept.stride[0][d] = stride;
    stride *= first.kept.size[d];
  }
  first.recipe = recipes[shifted->recipe.first];
  first.out = result->accumulator;
  shifted->shifted = true;
  result->stages = 2;
  result->shift_bytes = (uint64_t)stride * result->accumulator->bytes;
  result->stage[0].number = number_of(count);
  result->stage[1].number = number_of(left > 0 ? left : 0);
  graft_status status = prepare(&result->stage[0], device, &first, result->accumulator);
  return status != GRAFT_OK ? status : prepare(&result->stage[1], device, shifted, result->accumulator);
}

static const struct row *find_row(uint32_t op_id) {
  const struct row *row = rows;
  while (row->op_id != op_id) row++;
  return row;
}

static graft_status prepare_result(result *result, graft_device *device, const call *call, const struct row *row,
                                   const graft_tensor_desc *to, int recipe) {
  pass only = {.in = ocl_dtype_of(device, call->in->dl.dtype),
               .out = ocl_dtype_of(device, to->dl.dtype),
               .recipe = recipes[recipe],
               .y = call->number};
  if (!only.in || !only.out || call->in->dl.ndim > OCL_DIMS_MAX || !(row->inputs >> only.in->number & 1) ||
      !(row->outputs >> only.out->number & 1)) {
    return GRAFT_UNIMPLEMENTED;
  }
  bool asks = recipe == ANY || recipe == ALL || recipe == COUNT; /* whether an element is 0, whatever its dtype */
  if (only.in != only.out && !asks && !converts(only.in, only.out, &only.recipe.map)) return GRAFT_UNIMPLEMENTED;
  split_geometry(call, to, &only);
  order(&only, ocl_elements(call->in) == 0);
  result->accumulator = accumulator(device, &only);
  bool float_count = recipe == COUNT && (only.in->class == OCL_CLASS_FLOAT || only.in->class == OCL_CLASS_COMPLEX);
  if (float_count && !device->has_f64 && elements(&only.reduced) > 1 << 24) return GRAFT_UNIMPLEMENTED;
  if (only.recipe.first) return prepare_shifted(result, device, call, &only);
  result->stages = 1;
  result->stage[0].number = number_of((double)elements(&only.reduced));
  return prepare(&result->stage[0], device, &only, result->accumulator);
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const call *call = call_pointer;
  const struct row *row = find_row(((const graft_args *)args)->op_id);
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->results = call->other ? 2 : 1;
  graft_status status = prepare_result(&memo->result[0], exec->device, call, row, call->out, call->recipe);
  if (status == GRAFT_OK && call->other) {
    status = prepare_result(&memo->result[1], exec->device, call, row, call->other, call->second);
  }
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
  const ocl_argument second[] = {PLACE(out), PLACE(partial), PLACE(shift), {bytes, &x}};
  return ocl_launch(&stage->kernel[1], exec->stream, 7, second);
}

static graft_status run_result(const graft_exec *exec, result *result, const graft_tensor_desc *to, place in) {
  place out = {to->dl.data, to->dl.byte_offset}, shift;
  if (!in.buffer) in = out; /* of no elements, and never read */
  if (result->stages == 1) return run_stage(exec, &result->stage[0], result->accumulator, out, in, in);
  graft_status status = workspace(exec, result->shift_bytes, &shift);
  if (status == GRAFT_OK) status = run_stage(exec, &result->stage[0], result->accumulator, shift, in, in);
  return status == GRAFT_OK ? run_stage(exec, &result->stage[1], result->accumulator, out, in, shift) : status;
}

static graft_status run(const graft_exec *exec, const void *args, const call *call) {
  void *pointer;
  if (ocl_elements(call->out) == 0) return GRAFT_OK;
  graft_status status = ocl_memo_get(exec, args, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  place in = {call->in->dl.data, call->in->dl.byte_offset};
  status = run_result(exec, &memo->result[0], call->out, in);
  return status == GRAFT_OK && call->other ? run_result(exec, &memo->result[1], call->other, in) : status;
}

/* ---- Slots ---- */

#define SLOT(op, dims, keep, recipe)                                              \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) { \
    call call = {args->self, args->out, dims, keep, recipe, 0, NULL, 0};          \
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

SLOT(all, all_dims(args->self), false, ALL)
SLOT(all_dim, one_dim(args->dim, args->self), args->keepdim, ALL)
SLOT(max, all_dims(args->self), false, MAX)
SLOT(min, all_dims(args->self), false, MIN)
SLOT(nansum, LISTED, args->keepdim, NUMBERS_SUM)
SLOT(logsumexp, LISTED, args->keepdim, LOG_SUM)
#define DIM_OR_ALL (args->dim ? one_dim(*args->dim, args->self) : all_dims(args->self))
SLOT(count_nonzero, DIM_OR_ALL, false, COUNT)

graft_status ocl_op_aminmax(const graft_exec *exec, const graft_args_aminmax *args) {
  call call = {args->self, args->min, DIM_OR_ALL, args->keepdim, MIN, 0, args->max, MAX};
  return args->min && args->max ? run(exec, args, &call) : GRAFT_UNIMPLEMENTED;
}

static double number_or(const graft_scalar *scalar, double absent) {
  ocl_number number = {.re = absent};
  if (scalar) ocl_number_of_scalar(scalar, &number);
  return number.re;
}

#define SPREAD(op, recipe, to, mean)                                                                            \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) {                               \
    call call = {args->self, to, LISTED, args->keepdim, recipe, number_or(args->correction, 1), mean, AVERAGE}; \
    return to ? run(exec, args, &call) : GRAFT_UNIMPLEMENTED;                                                   \
  }
SPREAD(var_correction, SQUARES, args->out, NULL)
SPREAD(std_correction, DEVIATION, args->out, NULL)
SPREAD(var_mean_correction, SQUARES, args->out0, args->out1)
SPREAD(std_mean_correction, DEVIATION, args->out0, args->out1)

static int recipe_of_norm(double p) {
  if (isinf(p)) return p > 0 ? NORM_MAX : NORM_MIN;
  return p == 0 ? NORM_0 : p == 1 ? NORM_1 : p == 2 ? NORM_2 : NORM_P;
}

#define NORM(op, order)                                                                                    \
  graft_status ocl_op_##op(const graft_exec *exec, const graft_args_##op *args) {                          \
    double p = number_or(order, 2);                                                                        \
    int recipe = recipe_of_norm(p);                                                                        \
    call call = {args->self, args->out, LISTED, args->keepdim, recipe, recipe == NORM_P ? p : 0, NULL, 0}; \
    return isnan(p) ? GRAFT_UNIMPLEMENTED : run(exec, args, &call);                                        \
  }
NORM(linalg_vector_norm, args->ord)
NORM(norm_ScalarOpt_dim, args->p)
