/* The engine of reductions over some dimensions. A call is one pass, or two where there are too few outputs to keep the
 * device busy: the first then leaves partial results in workspace, which the second combines. On a GPU these may be so
 * many that a third has to combine what the second leaves. */
#include "kernels/reduction/reduction.h"

#include <math.h>
#include <string.h>

/* ---- A call ---- */

typedef struct operands {
  const graft_tensor_desc *in, *out;
  uint32_t reduced; /* bit d: dimension d of `in` */
  bool keepdim;
  const ocl_reduction *formula;
  double y;                       /* of the formula: the order of a norm that has no formula of its own, else 0 */
  double correction;              /* of a variance: how many elements do not count */
  const graft_tensor_desc *other; /* a second output, or NULL: by the formula `second` */
  const ocl_reduction *second;
  uint64_t inputs, outputs; /* dtypes that are served */
} operands;

static uint32_t all_dims(const graft_tensor_desc *in) {
  return (UINT32_C(1) << in->dl.ndim) - 1;
}

static uint32_t dims_to_bits(graft_int_list dims, const graft_tensor_desc *in, bool empty_is_none) {
  if (!dims.items || (dims.count == 0 && !empty_is_none)) return all_dims(in);
  uint32_t bits = 0;
  for (uint64_t i = 0; in->dl.ndim && i < dims.count; i++) bits |= UINT32_C(1) << dims.items[i];
  return bits;
}

typedef struct pass {
  ocl_geometry kept;    /* operands: out, in */
  ocl_geometry reduced; /* operand: in */
  const ocl_dtype *out, *in;
  ocl_reduction formula;
  double x, y; /* as the formula has them */
  bool rows, shifted;
  int64_t splits, split_stride;
} pass;

static void split_geometry(const operands *call, const graft_tensor_desc *to, pass *pass) {
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
  bool counts = pass->formula.in == OCL_COUNTS, of_input = pass->formula.in == OCL_AS_INPUT || counts;
  bool of_complex = pass->in->class == OCL_CLASS_COMPLEX && !pass->formula.asks,
       wide = counts || pass->formula.in == OCL_WIDEST;
  const ocl_dtype *dtype = of_input || of_complex ? pass->in : pass->out;
  if (dtype->class == OCL_CLASS_FLOAT) {
    return ocl_dtype_of(device, dtype->code == GRAFT_F64 || (wide && device->has_f64) ? GRAFT_F64 : GRAFT_F32);
  }
  if (dtype->class == OCL_CLASS_COMPLEX && wide && device->has_f64) return ocl_dtype_of(device, GRAFT_C128);
  return dtype->class == OCL_CLASS_COMPLEX || pass->formula.in == OCL_AS_INPUT ? dtype
                                                                               : ocl_dtype_of(device, GRAFT_I64);
}

/* An explicit dtype converts before it reduces; of complex numbers there are real results, too. Loads convert to the
 * accumulator; where the dtype itself is narrower, *map becomes what rounds to it. False: not served. */
static bool converts(const ocl_dtype *from, const ocl_dtype *to, const char **map) {
  bool half = to->class == OCL_CLASS_FLOAT && to->bytes == 2;
  if (from == to || to->class == OCL_CLASS_COMPLEX) return true;
  if (from->class == OCL_CLASS_COMPLEX) return to->class == OCL_CLASS_FLOAT && 2 * to->bytes == from->bytes;
  if (to->class == OCL_CLASS_BOOL) return false;
  if (to->class == OCL_CLASS_INT) return from->class != OCL_CLASS_FLOAT || to->code == GRAFT_I64;
  if (!half) return true;
  if (from->code == GRAFT_F64 || from->bytes == 8 || *map[0] != 'v' || (*map)[1]) return false; /* two roundings */
  *map = to->code == GRAFT_F16 ? "from_f16(to_f16(v))" : "AS(float, CONVERT(uint, to_bf16(v)) << 16)";
  return true;
}

/* ---- The memo ---- */

/* One reduction is up to three kernels; a variance is up to three reductions. */
enum { PASSES_MAX = 3 };
typedef struct stage {
  ocl_kernel kernel[PASSES_MAX];
  int passes;
  uint64_t partial_bytes[PASSES_MAX - 1]; /* what a pass leaves to the next */
  ocl_number number;                      /* x of the formula */
} stage;

/* One output: a reduction, after those which find s for each place of it where the formula asks. */
enum { STAGES_MAX = 3 };
typedef struct result {
  stage stage[STAGES_MAX];
  int stages;
  const ocl_dtype *accumulator;
  uint64_t shift_bytes;
} result;

typedef struct memo {
  result result[2];
  int results;
} memo;

static void release(void *pointer) {
  memo *memo = pointer;
  for (int i = 0; i < 2 * STAGES_MAX; i++) {
    stage *stage = &memo->result[i / STAGES_MAX].stage[i % STAGES_MAX];
    for (int p = 0; p < PASSES_MAX; p++) ocl_kernel_destroy(&stage->kernel[p]);
  }
}

static int inner_kind(int64_t stride) {
  return stride == 0 ? 0 : stride == 1 ? 1 : 2;
}

/* How many vectors side by side a work-item of a CPU takes: more than one where all cores have enough to do. */
static int64_t width_of(const graft_device *device, const pass *pass, int64_t vec) {
  enum { WIDE = 8 };
  bool is_long = pass->kept.size[0] >= 2 * (int64_t)device->compute_units * WIDE * vec;
  return device->is_cpu && !pass->rows && pass->kept.stride[1][0] == 1 && is_long ? WIDE : 1;
}

static graft_status prepare_pass(ocl_kernel *kernel, graft_device *device, const pass *pass, const ocl_dtype *compute) {
  size_t local = device->is_cpu ? 1 : 64;
  int64_t vec = compute->class == OCL_CLASS_COMPLEX ? 1 : device->vector_width;
  int64_t width = width_of(device, pass, vec);
  ocl_text head = {0};
  ocl_head_types(&head, compute, (unsigned)vec, local);
  ocl_text_add(&head, "#define WIDTH %d\n", (int)width);
  ocl_text_add(&head, "#define KEPT %d\n#define REDUCED %d\n#define D_OUT %s\n#define D_IN %s\n", pass->kept.rank,
               pass->reduced.rank, pass->out->name, pass->in->name);
  ocl_text_add(&head, "%s#define INNER_IN %d\n#define INNER_OUT %d\n", pass->rows ? "#define ROWS\n" : "",
               inner_kind(pass->rows ? pass->reduced.stride[0][0] : pass->kept.stride[1][0]),
               inner_kind(pass->kept.stride[0][0]));
  ocl_text_add(&head, "#define INIT (CT)(%s)\n#define MAP(v) %s\n#define COMBINE(a, b) %s\n#define FINISH(v) %s\n",
               pass->formula.init, pass->formula.map, pass->formula.combine, pass->formula.finish);
  bool is_double = compute->code == GRAFT_F64 || compute->code == GRAFT_C128;
  ocl_text_add(&head, "#define Y %a%s\n%s", pass->y, is_double ? "" : "f", pass->shifted ? "#define SHIFTED\n" : "");
  graft_status status = ocl_kernel_make(kernel, device, &head, "reduction/reduction", "reduce");
  if (status != GRAFT_OK) return status;

  int64_t space[5 * OCL_DIMS_MAX + 10];
  int n = ocl_geometry_numbers(&pass->kept, space);
  n += ocl_geometry_numbers(&pass->reduced, space + n);
  int64_t segment = pass->rows ? 64 * vec : 64, per_row = ocl_ceil_divide(pass->reduced.size[0], segment);
  int64_t segments = per_row > 0 ? per_row * (elements(&pass->reduced) / pass->reduced.size[0]) : 0;
  int64_t outputs_per_unit = pass->rows ? 1 : width * vec;
  int64_t units_per_row = ocl_ceil_divide(pass->kept.size[0], outputs_per_unit);
  int64_t units_per_split = units_per_row * (elements(&pass->kept) / pass->kept.size[0]);
  int64_t units = units_per_split * pass->splits;
  int64_t items = device->is_cpu ? 8 * (int64_t)device->compute_units : INT64_MAX;
  int64_t per_item = units > items ? ocl_ceil_divide(units, items) : 1;
  int64_t rest[10] = {segment,
                      per_row,
                      segments,
                      ocl_ceil_divide(segments, pass->splits),
                      pass->split_stride,
                      outputs_per_unit,
                      units_per_row,
                      units_per_split,
                      units,
                      per_item};
  memcpy(space + n, rest, sizeof rest);
  ocl_kernel_size(kernel, ocl_ceil_divide(units, per_item), local);
  return ocl_kernel_set(kernel, 1, &(ocl_argument){sizeof *space * (size_t)(n + 10), space});
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

/* How many partial results of each output the next pass leaves, of so many that one work-item would take longer to
 * combine than a launch takes; 1: it combines them all. */
static int64_t choose_middle(const graft_device *device, int64_t splits) {
  enum { MANY = 1024 };
  return device->is_cpu || splits < MANY ? 1 : (int64_t)sqrt((double)splits);
}

static graft_status append_pass(stage *stage, graft_device *device, const pass *pass, const ocl_dtype *compute) {
  int n = stage->passes++;
  if (n < PASSES_MAX - 1) stage->partial_bytes[n] = (uint64_t)(elements(&pass->kept) * pass->splits) * compute->bytes;
  return prepare_pass(&stage->kernel[n], device, pass, compute);
}

/* So many elements, so far apart: the partial results of an output, for one. */
static ocl_geometry line_of(int64_t size, int64_t stride) {
  return (ocl_geometry){.rank = 1, .operands = 1, .size = {size}, .stride = {{stride}}};
}

static graft_status prepare_stage(stage *stage, graft_device *device, pass *only, const ocl_dtype *compute) {
  int64_t outputs = elements(&only->kept), splits = choose_splits(device, only);
  stage->passes = 0;
  only->splits = splits;
  if (splits == 1) return append_pass(stage, device, only, compute);

  pass first = *only, last = *only;
  int64_t stride = 1;
  for (int d = 0; d < only->kept.rank; d++) {
    first.kept.stride[0][d] = last.kept.stride[1][d] = stride;
    stride *= only->kept.size[d];
  }
  first.out = last.in = compute;
  first.formula.finish = "v"; /* s may be wanted by the map and by the finish */
  last.formula.map = "v";
  first.split_stride = outputs;
  last.splits = 1;
  last.rows = false;
  graft_status status = append_pass(stage, device, &first, compute);
  int64_t few = choose_middle(device, splits);
  if (status == GRAFT_OK && few > 1) {
    pass middle = last;
    memcpy(middle.kept.stride[0], middle.kept.stride[1], sizeof middle.kept.stride[0]);
    middle.out = compute;
    middle.formula.finish = "v";
    middle.splits = few;
    middle.split_stride = outputs;
    middle.reduced = line_of(splits, outputs);
    ocl_geometry_collapse(&middle.kept);
    status = append_pass(stage, device, &middle, compute);
    splits = few;
  }
  if (status != GRAFT_OK) return status;
  last.reduced = line_of(splits, outputs);
  ocl_geometry_collapse(&last.kept);
  return append_pass(stage, device, &last, compute);
}

static ocl_number number_of(double value) {
  return (ocl_number){.is_int = value == (double)(int64_t)value, .i = (int64_t)value, .re = value};
}

/* What s of a reduction is for each output, in the order of its kept dimensions. */
static pass shift_of(const pass *shifted, const ocl_dtype *accumulator) {
  pass shift = *shifted;
  int64_t stride = 1;
  for (int d = 0; d < shift.kept.rank; d++) {
    shift.kept.stride[0][d] = stride;
    stride *= shift.kept.size[d];
  }
  shift.formula = *shifted->formula.first;
  shift.out = accumulator;
  shift.x = (double)elements(&shifted->reduced);
  if (shift.formula.of_one && shift.x > 1) {
    shift.reduced = line_of(1, 1);
  }
  return shift;
}

/* Appends a reduction, after what finds s for it. f64 holds sums of 2^29 equal numbers of any narrower dtype exactly.
 */
static graft_status append_stages(result *result, graft_device *device, pass *pass) {
  const ocl_dtype *compute = result->accumulator;
  bool exact = device->has_f64 && pass->in->code != GRAFT_F64 && pass->in->code != GRAFT_C128;
  pass->shifted = pass->formula.first && !(pass->formula.first->of_one && exact);
  if (pass->shifted) {
    struct pass shift = shift_of(pass, compute);
    result->shift_bytes = (uint64_t)elements(&shift.kept) * compute->bytes;
    graft_status status = append_stages(result, device, &shift);
    if (status != GRAFT_OK) return status;
  }
  stage *stage = &result->stage[result->stages++];
  stage->number = number_of(pass->x);
  return prepare_stage(stage, device, pass, compute);
}

static graft_status prepare_result(result *result, graft_device *device, const operands *call,
                                   const graft_tensor_desc *to, const ocl_reduction *formula) {
  pass only = {.in = ocl_dtype_of(device, call->in->dl.dtype),
               .out = ocl_dtype_of(device, to->dl.dtype),
               .formula = *formula,
               .y = call->y};
  if (!only.in || !only.out || call->in->dl.ndim > OCL_DIMS_MAX || !(call->inputs >> only.in->number & 1) ||
      !(call->outputs >> only.out->number & 1)) {
    return GRAFT_UNIMPLEMENTED;
  }
  if (only.in != only.out && !formula->asks && !converts(only.in, only.out, &only.formula.map)) {
    return GRAFT_UNIMPLEMENTED;
  }
  split_geometry(call, to, &only);
  order(&only, ocl_elements(call->in) == 0);
  result->accumulator = accumulator(device, &only);
  bool float_count =
      formula->in == OCL_COUNTS && (only.in->class == OCL_CLASS_FLOAT || only.in->class == OCL_CLASS_COMPLEX);
  if (float_count && !device->has_f64 && elements(&only.reduced) > 1 << 24) return GRAFT_UNIMPLEMENTED;
  only.x = fmax(0, (double)elements(&only.reduced) - (formula->first ? call->correction : 0));
  result->stages = 0;
  return append_stages(result, device, &only);
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  memo->results = call->other ? 2 : 1;
  graft_status status = prepare_result(&memo->result[0], device, call, call->out, call->formula);
  if (status != GRAFT_OK || !call->other) return status;
  return prepare_result(&memo->result[1], device, call, call->other, call->second);
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .prepare = prepare, .release = release};

/* ---- A launch ---- */

static graft_status run_stage(const graft_exec *exec, stage *stage, const ocl_dtype *accumulator, ocl_place out,
                              ocl_place in, ocl_place shift) {
  ocl_value x;
  size_t bytes = ocl_number_as(&stage->number, accumulator, &x);
  ocl_place from = in;
  graft_status status = GRAFT_OK;
  for (int p = 0; status == GRAFT_OK && p < stage->passes; p++) {
    ocl_place to = out;
    if (p < stage->passes - 1) status = ocl_workspace(exec, stage->partial_bytes[p], &to);
    if (status != GRAFT_OK) return status;
    const ocl_argument arguments[] = {OCL_PLACE(to), OCL_PLACE(from), OCL_PLACE(shift), {bytes, &x}};
    status = ocl_launch(&stage->kernel[p], exec->stream, OCL_ALL(arguments));
    from = to;
  }
  return status;
}

static graft_status run_result(const graft_exec *exec, result *result, const graft_tensor_desc *to, ocl_place in) {
  ocl_place out = ocl_place_of(to);
  if (!in.buffer) in = out; /* of no elements, and never read */
  ocl_place shift = in;     /* of a stage that has none */
  graft_status status = GRAFT_OK;
  for (int i = 0; status == GRAFT_OK && i < result->stages - 1; i++) {
    ocl_place found;
    status = ocl_workspace(exec, result->shift_bytes, &found);
    if (status == GRAFT_OK) status = run_stage(exec, &result->stage[i], result->accumulator, found, in, shift);
    shift = found;
  }
  if (status != GRAFT_OK) return status;
  return run_stage(exec, &result->stage[result->stages - 1], result->accumulator, out, in, shift);
}

static graft_status run(const graft_exec *exec, const operands *call) {
  memo *memo;
  if (ocl_elements(call->out) == 0) return GRAFT_OK;
  graft_status status = ocl_memo_get(exec, &memo_type, call, &memo);
  if (status != GRAFT_OK) return status;
  ocl_place in = ocl_place_of(call->in);
  status = run_result(exec, &memo->result[0], call->out, in);
  return status == GRAFT_OK && call->other ? run_result(exec, &memo->result[1], call->other, in) : status;
}

/* ---- The engine ---- */

enum { SELF, DIM, KEEPDIM, CORRECTION, ORD, P, INP, DIMS, READS }; /* inp and dims: what prims call self and dim */
const char *const ocl_reduction_reads[] = {
    [SELF] = "self", [DIM] = "dim",   [KEEPDIM] = "keepdim", [CORRECTION] = "correction", [ORD] = "ord", [P] = "p",
    [INP] = "inp",   [DIMS] = "dims", [READS] = NULL};

graft_status ocl_reduce(const ocl_call *call) {
  const ocl_reduction_recipe *recipe = call->op->recipe;
  const graft_scalar *ord = ocl_read_scalar(call, ORD);
  const double order = ocl_real_of_scalar(ord ? ord : ocl_read_scalar(call, P), 2);
  const graft_tensor_desc *in = ocl_read_tensor(call, SELF);
  bool is_prim = in == NULL;
  operands operands = {.in = is_prim ? ocl_read_tensor(call, INP) : in,
                       .out = ocl_result(call, 0),
                       .keepdim = ocl_read_bool(call, KEEPDIM),
                       .formula = recipe->norm ? ocl_reduction_of_norm(order) : recipe->out,
                       .other = recipe->second ? ocl_result(call, 1) : NULL,
                       .second = recipe->second,
                       .inputs = call->op->inputs,
                       .outputs = call->op->outputs};
  const bool of_truths = operands.out && operands.out->dl.dtype == GRAFT_BOOL && operands.formula;
  if (of_truths && operands.formula->of_truths) operands.formula = operands.formula->of_truths;
  operands.correction = ocl_real_of_scalar(ocl_read_scalar(call, CORRECTION), 1);
  operands.y = operands.formula && operands.formula->takes_y ? order : 0;
  operands.reduced = dims_to_bits(ocl_read_ints(call, is_prim ? DIMS : DIM), operands.in, recipe->empty_is_none);
  if (!operands.out || !operands.formula) return GRAFT_UNIMPLEMENTED;
  return run(call->exec, &operands);
}
