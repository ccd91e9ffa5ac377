/* The engine of reductions over some dimensions. A call is one pass, or two where there are too few outputs to keep the
 * device busy: the first then leaves partial results in workspace, which the second combines. How a pass is laid over a
 * CPU stands here; over a GPU, in teams.c. */
#include "kernels/reduction/reduction.h"

#include <string.h>

typedef ocl_reduction_call operands;
typedef ocl_reduction_pass pass;

/* ---- The memo ---- */

/* One reduction is up to two kernels; a variance is up to three reductions. */
enum { PASSES_MAX = 2 };
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
  bool gives_first; /* its last stage makes the call's other output, too */
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

/* How many vectors side by side a work-item of a CPU takes: more than one where all cores have enough to do. */
static int64_t width_of(const graft_device *device, const pass *pass, int64_t vec) {
  enum { WIDE = 8 };
  bool is_long = pass->kept.size[0] >= 2 * (int64_t)device->compute_units * WIDE * vec;
  return !pass->rows && pass->kept.stride[1][0] == 1 && is_long ? WIDE : 1;
}

bool ocl_reduction_widen_if_small(pass *pass) {
  if (ocl_geometry_elements(&pass->kept) * ocl_geometry_elements(&pass->reduced) > OCL_SMALL) return false;
  ocl_geometry_widen(&pass->kept);
  ocl_geometry_widen(&pass->reduced);
  return true;
}

/* How many elements of a row, or of a column, are added up one after the other. */
static int64_t segment_of(const pass *pass, int64_t vec) {
  if (pass->of_subtotals) return 1;
  return pass->rows ? OCL_SEGMENT * vec : OCL_SEGMENT;
}

static graft_status prepare_pieces(ocl_kernel *kernel, graft_device *device, const pass *exact) {
  pass shared = *exact;
  const pass *pass = &shared;
  bool is_small = ocl_reduction_widen_if_small(&shared);
  const ocl_dtype *compute = pass->accumulator;
  const size_t local = 1;
  int64_t vec = compute->class == OCL_CLASS_COMPLEX ? 1 : device->vector_width;
  int64_t width = width_of(device, pass, vec);
  ocl_text head = {0};
  ocl_reduction_head(&head, pass, (unsigned)vec, local);
  ocl_text_add(&head, "#define WIDTH %d\n#define KEPT %d\n#define REDUCED %d\n", (int)width, pass->kept.rank,
               pass->reduced.rank);
  ocl_text_add(&head, "#define INNER_IN %d\n#define INNER_OUT %s\n%s",
               ocl_is_unit(pass->rows ? pass->reduced.stride[0][0] : pass->kept.stride[1][0]),
               is_small                               ? "(stride == 1)"
               : ocl_is_unit(pass->kept.stride[0][0]) ? "1"
                                                      : "0",
               is_small ? "#define SMALL\n" : "");
  graft_status status =
      ocl_kernel_make(kernel, device, &head, "core/exp reduction/formula reduction/reduction", "reduce");
  if (status != GRAFT_OK) return status;

  int64_t space[5 * OCL_DIMS_MAX + 10];
  int n = ocl_geometry_numbers(&pass->kept, space);
  n += ocl_geometry_numbers(&pass->reduced, space + n);
  const int64_t segment = segment_of(pass, vec), per_row = ocl_ceil_divide(pass->reduced.size[0], segment);
  int64_t segments = per_row > 0 ? per_row * (ocl_geometry_elements(&pass->reduced) / pass->reduced.size[0]) : 0;
  int64_t outputs_per_unit = pass->rows ? 1 : width * vec;
  int64_t units_per_row = ocl_ceil_divide(pass->kept.size[0], outputs_per_unit);
  int64_t units_per_split = units_per_row * (ocl_geometry_elements(&pass->kept) / pass->kept.size[0]);
  int64_t units = units_per_split * pass->splits;
  int64_t items = 8 * (int64_t)device->compute_units;
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

static graft_status append_pass(stage *stage, graft_device *device, const pass *pass) {
  int n = stage->passes++;
  if (n < PASSES_MAX - 1)
    stage->partial_bytes[n] = (uint64_t)(ocl_geometry_elements(&pass->kept) * pass->splits) * pass->accumulator->bytes;
  return device->is_cpu ? prepare_pieces(&stage->kernel[n], device, pass)
                        : ocl_reduction_prepare_teams(&stage->kernel[n], device, pass);
}

/* So many elements, so far apart: the partial results of an output, for one. */
static ocl_geometry line_of(int64_t size, int64_t stride) {
  return (ocl_geometry){.rank = 1, .operands = 1, .size = {size}, .stride = {{stride}}};
}

static int64_t choose_splits(const graft_device *device, const pass *pass) {
  return device->is_cpu ? ocl_reduction_splits(device, pass) : ocl_reduction_team_splits(device, pass);
}

/* Partial results lie in the order of the kept dimensions. */
static void lay_partials(const pass *only, int64_t strides[OCL_DIMS_MAX]) {
  int64_t stride = 1;
  for (int d = 0; d < only->kept.rank; d++) {
    strides[d] = stride;
    stride *= only->kept.size[d];
  }
}

pass ocl_reduction_last(const graft_device *device, const pass *only, int64_t splits) {
  pass last = *only;
  lay_partials(only, last.kept.stride[1]);
  last.in = only->accumulator;
  last.formula.map = "v";
  last.splits = 1;
  last.reduced = line_of(splits, ocl_geometry_elements(&only->kept));
  ocl_geometry_collapse(&last.kept);
  last.rows = !device->is_cpu && last.kept.size[0] < COLUMNS_LEAST;
  return last;
}

graft_status ocl_subtotals_prepare(ocl_kernel *kernel, graft_device *device, const pass *only) {
  pass last = ocl_reduction_last(device, only, ocl_ceil_divide(ocl_geometry_elements(&only->reduced), OCL_SEGMENT));
  last.of_subtotals = true;
  return prepare_pieces(kernel, device, &last);
}

graft_status ocl_subtotals_launch(ocl_kernel *kernel, graft_stream *stream, const ocl_dtype *accumulator, ocl_place to,
                                  ocl_place subtotals) {
  const ocl_number unseen = {.is_int = true};
  ocl_value x;
  const size_t bytes = ocl_number_as(&unseen, accumulator, &x);
  const ocl_argument arguments[] = {OCL_PLACE(to), OCL_PLACE(subtotals), OCL_PLACE(subtotals), {bytes, &x}};
  return ocl_launch(kernel, stream, OCL_ALL(arguments));
}

static graft_status prepare_stage(stage *stage, graft_device *device, pass *only) {
  int64_t splits = choose_splits(device, only);
  stage->passes = 0;
  only->splits = splits;
  if (splits == 1) return append_pass(stage, device, only);

  pass first = *only;
  lay_partials(only, first.kept.stride[0]);
  first.out = only->accumulator;
  first.formula.finish = "v"; /* s may be wanted by the map and by the finish */
  first.split_stride = ocl_geometry_elements(&only->kept);
  graft_status status = append_pass(stage, device, &first);
  if (status != GRAFT_OK) return status;
  const pass last = ocl_reduction_last(device, only, splits);
  return append_pass(stage, device, &last);
}

/* Appends a reduction, after what finds s for it where it does not do so itself. */
static graft_status append_stages(result *result, graft_device *device, pass *pass) {
  pass->finds_first = !device->is_cpu && ocl_reduction_team_finds_first(device, pass);
  if (!pass->finds_first) pass->first_out = NULL;
  result->gives_first = pass->first_out;
  if (pass->shifted && !pass->finds_first) {
    ocl_reduction_pass shift = ocl_reduction_shift(device, pass);
    result->shift_bytes = (uint64_t)ocl_geometry_elements(&shift.kept) * shift.accumulator->bytes;
    graft_status status = append_stages(result, device, &shift);
    if (status != GRAFT_OK) return status;
  }
  stage *stage = &result->stage[result->stages++];
  stage->number = ocl_reduction_number(pass);
  return prepare_stage(stage, device, pass);
}

/* Whether the second output of a call is what the first one finds before, and lies as that does. */
static bool is_found_before(const operands *call, const ocl_reduction *formula) {
  if (!call->other || !formula->first || formula->first->alone != call->second) return false;
  const graft_dl_tensor *a = &call->out->dl, *b = &call->other->dl;
  bool alike = a->ndim == b->ndim;
  for (int d = 0; alike && d < a->ndim; d++) alike = a->strides[d] == b->strides[d];
  return alike;
}

static graft_status prepare_result(result *result, graft_device *device, const operands *call,
                                   const graft_tensor_desc *to, const ocl_reduction *formula) {
  pass only;
  graft_status status = ocl_reduction_plan(device, call, to, formula, &only);
  if (status != GRAFT_OK) return status;
  if (is_found_before(call, formula)) only.first_out = ocl_dtype_of(device, call->other->dl.dtype);
  result->accumulator = only.accumulator;
  result->stages = 0;
  return append_stages(result, device, &only);
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  memo *memo = pointer;
  const operands *call = from;
  memo->results = call->other ? 2 : 1;
  graft_status status = prepare_result(&memo->result[0], device, call, call->out, call->formula);
  if (status != GRAFT_OK || !call->other) return status;
  if (memo->result[0].gives_first) {
    memo->results = 1;
    return GRAFT_OK;
  }
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

static graft_status run_result(const graft_exec *exec, result *result, const graft_tensor_desc *to,
                               const graft_tensor_desc *other, ocl_place in) {
  ocl_place out = ocl_place_of(to);
  if (!in.buffer) in = out;                                         /* of no elements, and never read */
  ocl_place shift = result->gives_first ? ocl_place_of(other) : in; /* `in`: of a stage that has none */
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
  status = run_result(exec, &memo->result[0], call->out, call->other, in);
  if (status != GRAFT_OK || memo->results == 1) return status;
  return run_result(exec, &memo->result[1], call->other, NULL, in);
}

graft_status ocl_reduce(const ocl_call *call) {
  operands operands;
  return ocl_reduction_read(call, &operands) ? run(call->exec, &operands) : GRAFT_UNIMPLEMENTED;
}
