/* Products of matrices in few bits, one kernel each: _int_mm, _scaled_mm, and weights of i8 or of 4 bits. */
#include "kernels/core/direct.h"
#include "kernels/matmul/matmul.h"

/* The numbers of products.cl. */
enum {
  ROWS,
  COLUMNS,
  DEPTH,
  GROUP,
  STEP_A,
  STEP_B,
  STEP_BIAS,
  A_ROW,
  A_DEPTH,
  B_DEPTH,
  B_COLUMN,
  OUT_ROW,
  OUT_COLUMN,
  CHUNK,
  NUMBERS
};
enum { TILE = 8 };
/* Of more rows than these the decompositions are faster: weights are unpacked once for the product of mm, which reads
 * rows less often. About where both take as long on a processor with vectors of 16. */
enum { ROWS_OF_INT8 = 8, ROWS_OF_INT4 = 64, ROWS_OF_FLOAT8 = 48 };

static int64_t tiles_of(int64_t rows) {
  return ocl_ceil_divide(rows, TILE);
}

/* Of a vector in the kernels. */
static unsigned lanes_of(const graft_exec *exec) {
  const graft_device *device = exec->stream->device;
  return device->is_cpu ? device->vector_width : 4;
}

/* ---- weights in the rows of a matrix ---- */

typedef struct weights {
  const graft_tensor_desc *self, *weights, *scales, *out;
  int64_t group; /* 0: weights of 8 bits */
  unsigned lanes;
} weights;

static void head_of_weights(ocl_text *head, const void *of) {
  const weights *call = of;
  ocl_text_add(head, "#define HALF %u\n", call->lanes / 2);
  ocl_text_append(head, call->group ? "#define D_WEIGHT u8\n#define FOUR_BITS\n" : "#define D_WEIGHT i8\n");
}

static graft_status multiply_weights(const graft_exec *exec, weights *of) {
  of->lanes = lanes_of(exec);
  const int64_t rows = of->out->dl.shape[0], columns = of->out->dl.shape[1];
  const int64_t numbers[NUMBERS] = {
      [ROWS] = rows, [COLUMNS] = columns, [DEPTH] = of->self->dl.shape[1], [GROUP] = of->group};
  ocl_direct call = {.file = "core/direct quantized/numbers quantized/products",
                     .dtype = of->self->dl.dtype,
                     .lanes = of->lanes,
                     .head = head_of_weights,
                     .of = of,
                     .numbers = numbers,
                     .count = NUMBERS,
                     .places = 4};
  call.stages[0] = (ocl_stage){
      .entry = "multiply_weights",
      .units = tiles_of(rows) * columns,
      .places = {ocl_place_of(of->out), ocl_place_of(of->self), ocl_place_of(of->weights), ocl_place_of(of->scales)}};
  return ocl_direct_run(exec, &call);
}

graft_status ocl_op_weight_int8pack_mm(const graft_exec *exec, const graft_args_weight_int8pack_mm *args) {
  if (args->self->dl.shape[0] > ROWS_OF_INT8) return GRAFT_UNIMPLEMENTED;
  weights call = {.self = args->self, .weights = args->mat2, .scales = args->scales, .out = args->out};
  return multiply_weights(exec, &call);
}

graft_status ocl_op_weight_int4pack_mm(const graft_exec *exec, const graft_args_weight_int4pack_mm *args) {
  if (args->self->dl.shape[0] > ROWS_OF_INT4) return GRAFT_UNIMPLEMENTED;
  weights call = {.self = args->self,
                  .weights = args->mat2,
                  .scales = args->qScaleAndZeros,
                  .out = args->out,
                  .group = args->qGroupSize};
  return multiply_weights(exec, &call);
}

/* ---- two matrices ---- */

enum { A, B, OUT, SCALE_A, SCALE_B, BIAS, LAST, TENSORS };
static const char *const names[TENSORS] = {
    [A] = "D_A",       [B] = "D_B",      [OUT] = "D_OUT", [SCALE_A] = "D_SCALE_A", [SCALE_B] = "D_SCALE_B",
    [BIAS] = "D_BIAS", [LAST] = "D_LAST"};

typedef struct matrices {
  const graft_device *device;
  const graft_tensor_desc *tensors[TENSORS]; /* from SCALE_A on NULL: none */
} matrices;

static void head_of_matrices(ocl_text *head, const void *of) {
  const matrices *call = of;
  for (int i = 0; i < TENSORS; i++) {
    const graft_tensor_desc *tensor = call->tensors[i];
    if (tensor) ocl_text_add(head, "#define %s %s\n", names[i], ocl_dtype_of(call->device, tensor->dl.dtype)->name);
  }
}

/* Of one number for all: 0. */
static int64_t step_of(const graft_tensor_desc *scale, int dim) {
  return scale && ocl_elements(scale) > 1 ? scale->dl.strides[dim] : 0;
}

static graft_status multiply_matrices(const graft_exec *exec, matrices *of, graft_dtype compute) {
  const graft_dl_tensor *a = &of->tensors[A]->dl, *b = &of->tensors[B]->dl, *out = &of->tensors[OUT]->dl;
  const int64_t rows = out->shape[0], columns = out->shape[1];
  const int64_t numbers[NUMBERS] = {[ROWS] = rows,
                                    [COLUMNS] = columns,
                                    [DEPTH] = a->shape[1],
                                    [STEP_A] = step_of(of->tensors[SCALE_A], 0),
                                    [STEP_B] = step_of(of->tensors[SCALE_B], 1),
                                    [STEP_BIAS] = step_of(of->tensors[BIAS], 0),
                                    [A_ROW] = a->strides[0],
                                    [A_DEPTH] = a->strides[1],
                                    [B_DEPTH] = b->strides[0],
                                    [B_COLUMN] = b->strides[1],
                                    [OUT_ROW] = out->strides[0],
                                    [OUT_COLUMN] = out->strides[1]};
  ocl_direct call = {.file = "core/direct quantized/numbers quantized/products",
                     .dtype = compute,
                     .lanes = lanes_of(exec),
                     .head = head_of_matrices,
                     .of = of,
                     .numbers = numbers,
                     .count = NUMBERS,
                     .places = TENSORS};
  call.stages[0] =
      (ocl_stage){.entry = "multiply_matrices", .units = tiles_of(rows) * ocl_ceil_divide(columns, lanes_of(exec))};
  of->device = exec->stream->device;
  for (int i = 0; i < TENSORS; i++) {
    const graft_tensor_desc *tensor = of->tensors[i];
    if (tensor && !ocl_dtype_of(of->device, tensor->dl.dtype)) return GRAFT_UNIMPLEMENTED;
    call.stages[0].places[i] = ocl_place_of(tensor);
  }
  return ocl_direct_run(exec, &call);
}

/* As bytes.cl has it; how many pieces each core should get at least. */
enum { PANEL = 32, EACH_CORE = 4 };

/* i8 by i8, on a processor that multiplies bytes four at a time. A piece is a panel of columns of B, which is packed
 * for it, and a chunk of the rows. */
static graft_status multiply_bytes(const graft_exec *exec, const matrices *of) {
  const graft_dl_tensor *a = &of->tensors[A]->dl, *b = &of->tensors[B]->dl, *out = &of->tensors[OUT]->dl;
  const graft_device *device = exec->stream->device;
  const int64_t depth = a->shape[1];
  if (!device->dots_bytes || a->dtype != GRAFT_I8 || b->dtype != GRAFT_I8 || depth == 0) return GRAFT_UNIMPLEMENTED;
  const int64_t panels = ocl_ceil_divide(out->shape[1], PANEL), tiles = tiles_of(out->shape[0]);
  if (!panels || !tiles) return GRAFT_OK;
  const int64_t parts = ocl_ceil_divide(EACH_CORE * (int64_t)device->compute_units, panels);
  const int64_t chunk = ocl_ceil_divide(tiles, parts < tiles ? parts : tiles);
  const int64_t numbers[NUMBERS] = {
      [ROWS] = out->shape[0],     [COLUMNS] = out->shape[1],   [DEPTH] = depth,
      [A_ROW] = a->strides[0],    [A_DEPTH] = a->strides[1],   [B_DEPTH] = b->strides[0],
      [B_COLUMN] = b->strides[1], [OUT_ROW] = out->strides[0], [OUT_COLUMN] = out->strides[1],
      [CHUNK] = chunk * TILE};
  ocl_direct call = {.file = "core/direct core/square quantized/numbers quantized/bytes",
                     .dtype = GRAFT_I32,
                     .lanes = PANEL / 2,
                     .numbers = numbers,
                     .count = NUMBERS,
                     .places = 3};
  call.stages[0] = (ocl_stage){
      .entry = "multiply_bytes",
      .units = panels * ocl_ceil_divide(tiles, chunk),
      .places = {ocl_place_of(of->tensors[A]), ocl_place_of(of->tensors[B]), ocl_place_of(of->tensors[OUT])}};
  return ocl_direct_run(exec, &call);
}

graft_status ocl_op_int_mm(const graft_exec *exec, const graft_args_int_mm *args) {
  graft_status status = ocl_tensor_mm(exec, args->self, args->mat2, args->out, NULL);
  if (status != GRAFT_UNIMPLEMENTED) return status;
  matrices call = {.tensors = {[A] = args->self, [B] = args->mat2, [OUT] = args->out}};
  status = multiply_bytes(exec, &call);
  return status != GRAFT_UNIMPLEMENTED ? status : multiply_matrices(exec, &call, GRAFT_I32);
}

graft_status ocl_op_scaled_mm(const graft_exec *exec, const graft_args_scaled_mm *args) {
  graft_dtype to = args->out->dl.dtype;
  bool narrow = to == GRAFT_F8_E4M3FN || to == GRAFT_F8_E5M2;
  const ocl_scales scales = {args->scale_a, args->scale_b, args->bias, narrow ? args->scale_result : NULL};
  graft_status status = ocl_tensor_mm(exec, args->self, args->mat2, args->out, &scales);
  if (status != GRAFT_UNIMPLEMENTED) return status;
  if (args->self->dl.shape[0] > ROWS_OF_FLOAT8) return GRAFT_UNIMPLEMENTED;
  matrices call = {.tensors = {[A] = args->self,
                               [B] = args->mat2,
                               [OUT] = args->out,
                               [SCALE_A] = args->scale_a,
                               [SCALE_B] = args->scale_b,
                               [BIAS] = args->bias,
                               [LAST] = narrow ? args->scale_result : NULL}};
  return multiply_matrices(exec, &call, GRAFT_F32);
}
