/* Scaled dot product attention and its gradient: no matrix of weights is ever kept. */
#include <math.h>

#include "kernels/attention/attention.h"

/* As attention.cl counts tensors and numbers. */
enum { QUERY, KEY, VALUE, OUT, BIAS, GRAD, TO_QUERY, TO_KEY, TO_VALUE, TO_BIAS, LSE, TENSORS, BIAS_SIZES = TENSORS };
enum { HEADS, ROWS, COLUMNS, BATCH, STRIDES, SCALE = STRIDES + 4 * (BIAS_SIZES + 1), KEEP, THRESHOLD };
enum { WIDTH = THRESHOLD + 1, VALUE_WIDTH, TOLD, NUMBERS };
enum { TILE_LANES = 64, TILE_WIDEST = 128, TILE_LEAST = 1 << 16 }; /* as in tiles.cl; of multiplications, so many */
enum { FEW_ROWS = 8, FEW_COLUMNS = 128 };                          /* where a row is shared by a group */
/* As in registers.cl; the least rows and columns for which a tile is worth it, and what one takes of local memory. */
enum {
  REGISTER_ROWS = 64,
  REGISTER_ROWS_BACK = 32,
  REGISTER_WIDEST = 64,
  REGISTER_LEAST = 16,
  REGISTER_BYTES = 47 << 10
};
enum { TENSOR_ROWS = 128, TENSOR_LANES = 256 }; /* as in nvidia.cl */
enum { TENSOR_WIDEST = 256, TENSOR_WIDEST_BACK = 128 };
/* Up to so many multiplications, of heads that are no wider, a CPU takes a program that many calls share. */
enum { SHARED_MOST = 1 << 20, SHARED_WIDEST = 64 };
enum { WIDEST = 256, REGISTERS = 128 }; /* rows of a block lie in private memory, up to so many elements in registers */

typedef struct attention {
  const graft_tensor_desc *tensors[TENSORS];
  const ocl_dtype *dtype;
  const double *scale;
  double dropout;
  bool causal, is_cpu, adds_zero;
  /* By tensor cores: nvidia.cl; in register tiles: registers.cl; by local memory: tiles.cl, and that of few rows. */
  bool tensor, registers, tiles, few;
  bool shares; /* a program, with calls of other widths, masks and wishes */
  int64_t numbers[NUMBERS];
} attention;

/* Dims align at the end; those that a tensor has not, or has once for all, stand still. */
static void set_strides(attention *a, int which) {
  const graft_tensor_desc *t = a->tensors[which];
  for (int d = 0; t && d < t->dl.ndim; d++) {
    int at = STRIDES + 4 * which + (which == LSE ? 3 : 4) - t->dl.ndim + d;
    a->numbers[at] = t->dl.shape[d] == 1 ? 0 : t->dl.strides[d];
  }
}

static bool all_dense(const attention *a) {
  bool dense = true;
  for (int i = 0; i < LSE; i++) {
    const graft_tensor_desc *t = i == BIAS || i == TO_BIAS ? NULL : a->tensors[i];
    dense = dense && (!t || t->dl.shape[3] == 1 || t->dl.strides[3] == 1);
  }
  return dense;
}

/* Whether rows can be copied 16 bytes at a time. */
static bool is_copied(const attention *a, int which) {
  const graft_tensor_desc *t = a->tensors[which];
  const int64_t *strides = &a->numbers[STRIDES + 4 * which], each = 16 / (int64_t)a->dtype->bytes;
  return !t || (strides[0] % each == 0 && strides[1] % each == 0 && strides[2] % each == 0 &&
                t->dl.byte_offset % 16 == 0 && t->dl.shape[3] % each == 0);
}

/* Whether this is so of all tensors but the mask. */
static bool are_copied(const attention *a) {
  bool copied = true;
  for (int i = 0; i < LSE; i++) copied = copied && (i == BIAS || i == TO_BIAS || is_copied(a, i));
  return copied && all_dense(a);
}

/* Multiplications of a product of queries and keys. */
static double work_of(const attention *a) {
  const int64_t *n = a->numbers;
  return (double)n[BATCH] * (double)n[HEADS] * (double)n[ROWS] * (double)n[COLUMNS] *
         (double)a->tensors[QUERY]->dl.shape[3];
}

static bool is_within(const attention *a, int64_t widest) {
  int64_t width = a->tensors[QUERY]->dl.shape[3], value_width = a->tensors[VALUE]->dl.shape[3];
  return width > 0 && width <= widest && value_width > 0 && value_width <= widest;
}

/* Whether Hopper's tensor cores serve: halves, in enough rows and columns to be worth a program. */
static bool has_tensor_tiles(const attention *a, graft_device *device) {
  return is_within(a, a->tensors[GRAD] ? TENSOR_WIDEST_BACK : TENSOR_WIDEST) && are_copied(a) &&
         ocl_tensor_cores_serve(device, ocl_tensor_way_of_halves(a->dtype->code), work_of(a));
}

/* Whether a GPU makes tiles of f32 in registers. */
static bool has_register_tiles(const attention *a, const graft_device *device) {
  return !a->is_cpu && device->local_bytes >= REGISTER_BYTES && a->dtype->code == GRAFT_F32 &&
         work_of(a) >= TILE_LEAST && is_within(a, REGISTER_WIDEST) && a->numbers[ROWS] >= REGISTER_LEAST &&
         a->numbers[COLUMNS] >= REGISTER_LEAST;
}

/* As SHARED in attention.cl has them. */
static void tell(attention *a) {
  const bool told[] = {a->causal, a->tensors[BIAS] != NULL, a->tensors[TO_QUERY] != NULL, a->tensors[TO_KEY] != NULL,
                       a->tensors[TO_VALUE] != NULL};
  a->numbers[WIDTH] = a->tensors[QUERY]->dl.shape[3];
  a->numbers[VALUE_WIDTH] = a->tensors[VALUE]->dl.shape[3];
  for (int i = 0; i < (int)(sizeof told / sizeof *told); i++) a->numbers[TOLD] |= (int64_t)told[i] << i;
}

static bool prepare(attention *a, const graft_exec *exec) {
  const int64_t *q = a->tensors[QUERY]->dl.shape;
  a->is_cpu = exec->device->is_cpu;
  a->numbers[BATCH] = q[0];
  a->numbers[HEADS] = q[1];
  a->numbers[ROWS] = q[2];
  a->numbers[COLUMNS] = a->tensors[KEY]->dl.shape[2];
  for (int i = 0; i < TENSORS; i++) set_strides(a, i);
  const graft_tensor_desc *bias = a->tensors[BIAS];
  for (int d = 0; d < 4; d++) {
    int own = d - 4 + (bias ? bias->dl.ndim : 0);
    a->numbers[STRIDES + 4 * BIAS_SIZES + d] = own < 0 ? 1 : bias->dl.shape[own];
  }
  graft_dtype dtype = a->tensors[QUERY]->dl.dtype;
  a->dtype = ocl_dtype_of(exec->device, dtype);
  double keep = 1 - a->dropout;
  a->numbers[SCALE] = ocl_direct_number(dtype, a->scale ? *a->scale : 1 / sqrt((double)q[3]));
  a->numbers[KEEP] = ocl_direct_number(dtype, keep > 0 ? 1 / keep : 0);
  a->numbers[THRESHOLD] = (int64_t)ceil(keep * 0x1p24);
  a->tensor = has_tensor_tiles(a, exec->device);
  /* Of halves PoCL takes minutes to compile them. */
  a->registers = has_register_tiles(a, exec->device);
  a->tiles =
      !a->registers && !a->is_cpu && a->dtype->bytes >= 4 && work_of(a) >= TILE_LEAST && is_within(a, TILE_WIDEST);
  a->few = a->tiles && !a->tensors[GRAD] && a->numbers[ROWS] <= FEW_ROWS && a->numbers[COLUMNS] >= FEW_COLUMNS;
  a->shares = a->is_cpu && work_of(a) <= SHARED_MOST && is_within(a, SHARED_WIDEST);
  if (a->shares) tell(a);
  return q[3] <= WIDEST && a->tensors[VALUE]->dl.shape[3] <= WIDEST;
}

/* Of many rows and columns a CPU makes vectors. */
static int block_of(const attention *a) {
  bool vectors = a->is_cpu && a->numbers[ROWS] > 8 && a->numbers[COLUMNS] > 8;
  return vectors ? 32 : a->is_cpu ? 8 : 1;
}

/* What nvidia.cl asks for. */
static void write_tensor_head(ocl_text *head, const attention *a) {
  const ocl_tensor_way *way = ocl_tensor_way_of_halves(a->dtype->code);
  int64_t width = a->tensors[QUERY]->dl.shape[3], value_width = a->tensors[VALUE]->dl.shape[3];
  int theirs = !a->tensors[GRAD] && width <= 128 && value_width <= 128 ? 128 : 64;
  ocl_text_add(head, "#define THEIRS %d\n%s", theirs, a->dtype->code == GRAFT_F16 ? "#define NARROW\n" : "");
  ocl_head_multiply(head, "multiply_scores", way, theirs, OCL_FACTOR_ALONG, OCL_FACTOR_ALONG);
  ocl_head_multiply(head, "multiply_values", way, (int)ocl_round_up(value_width, 64), OCL_FACTOR_REGISTERS,
                    OCL_FACTOR_ACROSS);
  ocl_head_multiply(head, "multiply_keys", way, (int)ocl_round_up(width, 64), OCL_FACTOR_REGISTERS, OCL_FACTOR_ACROSS);
}

/* What a program is for that no other shape shares. */
static void write_shape(ocl_text *head, const attention *a) {
  ocl_text_add(head, "#define WIDTH %lld\n#define VALUE_WIDTH %lld\n#define CAUSAL %d\n",
               (long long)a->tensors[QUERY]->dl.shape[3], (long long)a->tensors[VALUE]->dl.shape[3], a->causal);
  ocl_text_add(head, "#define HAS_BIAS %d\n#define WANTS_QUERY %d\n#define WANTS_KEY %d\n#define WANTS_VALUE %d\n%s",
               a->tensors[BIAS] != NULL, a->tensors[TO_QUERY] != NULL, a->tensors[TO_KEY] != NULL,
               a->tensors[TO_VALUE] != NULL, all_dense(a) ? "#define UNIT\n" : "");
}

static void write_head(ocl_text *head, const void *of) {
  const attention *a = of;
  int64_t width = a->tensors[QUERY]->dl.shape[3];
  graft_dtype lse = a->tensors[LSE]->dl.dtype;
  ocl_text_add(head, "#define BLOCK %d\n%s", block_of(a), a->is_cpu ? "#define EXP_LANES 16\n" : "");
  if (a->shares)
    ocl_text_add(head, "#define SHARED\n#define WIDEST %d\n", SHARED_WIDEST);
  else
    write_shape(head, a);
  ocl_text_add(head, "%s%s#define D_LSE %s\n", a->tensors[GRAD] ? "" : "#define FORWARD\n",
               !a->is_cpu && width <= REGISTERS ? "#define REGISTERS\n" : "",
               lse == GRAFT_F64   ? "f64"
               : lse == GRAFT_F32 ? "f32"
               : lse == GRAFT_F16 ? "f16"
                                  : "bf16");
  if (a->dropout) ocl_text_add(head, "#define DROPOUT\n");
  if (a->adds_zero) ocl_text_add(head, "#define ADDS_ZERO\n");
  if (a->tensor || a->registers || a->tiles) ocl_text_add(head, "#define ELSEWHERE\n%s", a->few ? "#define FEW\n" : "");
  if (a->registers && are_copied(a)) ocl_text_add(head, "#define ALIGNED\n");
  if (a->tensor) write_tensor_head(head, a);
}

/* What all its programs begin with. */
#define ATTENTION_FILES "random/philox random/blocks core/direct core/exp attention/vectors attention/attention"

static ocl_direct call_of(const attention *a, int places) {
  const char *file = a->tensor      ? ATTENTION_FILES " core/nvidia attention/nvidia"
                     : a->registers ? ATTENTION_FILES " attention/registers"
                     : a->tiles     ? ATTENTION_FILES " attention/tiles"
                                    : ATTENTION_FILES;
  return (ocl_direct){.file = file,
                      .dtype = a->tensors[QUERY]->dl.dtype,
                      .head = write_head,
                      .of = a,
                      .numbers = a->numbers,
                      .count = NUMBERS,
                      .places = places};
}

static ocl_stage stage_of(const attention *a, const char *entry, int length) {
  int64_t heads = a->numbers[BATCH] * a->numbers[HEADS];
  int64_t tile = a->tensors[GRAD] ? REGISTER_ROWS_BACK : REGISTER_ROWS;
  int64_t rows = a->few ? 1 : a->tensor ? TENSOR_ROWS : a->registers ? tile : a->tiles ? TILE_LANES : block_of(a);
  return (ocl_stage){.entry = entry,
                     .units = heads * ocl_ceil_divide(a->numbers[length], rows),
                     .together = a->tensor      ? TENSOR_LANES
                                 : a->registers ? (size_t)(2 * tile)
                                 : a->tiles     ? TILE_LANES
                                                : 0};
}

static graft_status put_number(const graft_exec *exec, const graft_tensor_desc *to, uint64_t value) {
  return ocl_memory_api.fill(exec->stream, to->dl.data, to->dl.byte_offset, sizeof value, &value, sizeof value);
}

graft_status ocl_op_scaled_dot_product_fused_attention_overrideable(
    const graft_exec *exec, const graft_args_scaled_dot_product_fused_attention_overrideable *args) {
  attention a = {.tensors = {[QUERY] = args->query,
                             [KEY] = args->key,
                             [VALUE] = args->value,
                             [BIAS] = args->attn_bias,
                             [OUT] = args->output,
                             [LSE] = args->logsumexp},
                 .scale = args->scale,
                 .dropout = args->dropout_p,
                 .causal = args->is_causal};
  if (!prepare(&a, exec)) return GRAFT_UNIMPLEMENTED;
  const graft_tensor_desc *places[] = {args->output, args->logsumexp, args->philox_seed, args->philox_offset,
                                       args->query,  args->key,       args->value,       args->attn_bias};
  enum { PLACES = sizeof places / sizeof *places };
  ocl_direct call = call_of(&a, PLACES);
  call.stages[0] = stage_of(&a, "attention", ROWS);
  for (int i = 0; i < PLACES; i++) call.stages[0].places[i] = ocl_place_of(places[i]);
  graft_status status = GRAFT_OK;
  if (a.dropout || !call.stages[0].units) { /* else the kernel writes zeros */
    status = put_number(exec, args->philox_seed, a.dropout ? args->philox->seed : 0);
    if (status == GRAFT_OK) status = put_number(exec, args->philox_offset, a.dropout ? args->philox->offset : 0);
  }
  return status == GRAFT_OK ? ocl_direct_run(exec, &call) : status;
}

typedef graft_args_scaled_dot_product_fused_attention_overrideable_backward backward_args;
enum { BACKWARD_PLACES = 14 };

/* The stages of a gradient, without places; `a` is what the call is of. False: it is none for these kernels. */
static bool read_backward(const graft_exec *exec, const backward_args *args, bool adds_zero, attention *a,
                          ocl_direct *call) {
  *a = (attention){.tensors = {[QUERY] = args->query,
                               [KEY] = args->key,
                               [VALUE] = args->value,
                               [BIAS] = args->attn_bias,
                               [OUT] = args->out,
                               [LSE] = args->logsumexp,
                               [GRAD] = args->grad_out,
                               [TO_QUERY] = args->grad_query,
                               [TO_KEY] = args->grad_key,
                               [TO_VALUE] = args->grad_value,
                               [TO_BIAS] = args->grad_attn_bias},
                   .scale = args->scale,
                   .dropout = args->dropout_p,
                   .causal = args->is_causal,
                   .adds_zero = adds_zero};
  if (!prepare(a, exec)) return false;
  *call = call_of(a, BACKWARD_PLACES);
  ocl_stage *stage = call->stages;
  if (a->tensor || a->registers)
    *stage++ =
        (ocl_stage){.entry = "attention_deltas", .units = a->numbers[BATCH] * a->numbers[HEADS] * a->numbers[ROWS]};
  if (!(a->tensor || a->registers) || args->grad_query) *stage++ = stage_of(a, "attention_rows", ROWS);
  if (a->tiles && args->grad_key) *stage++ = stage_of(a, "attention_keys", COLUMNS);
  if (a->tiles && args->grad_value) *stage++ = stage_of(a, "attention_values", COLUMNS);
  if (!a->tiles && (args->grad_key || args->grad_value)) *stage++ = stage_of(a, "attention_columns", COLUMNS);
  if (args->grad_attn_bias)
    *stage = (ocl_stage){.entry = "attention_bias", .units = ocl_elements(args->grad_attn_bias)};
  return true;
}

static graft_status place_backward(const graft_exec *exec, const backward_args *args, const attention *a,
                                   ocl_direct *call) {
  ocl_place delta;
  uint64_t bytes = (uint64_t)(a->numbers[BATCH] * a->numbers[HEADS] * a->numbers[ROWS] + 1) * 8;
  graft_status status = ocl_workspace(exec, bytes, &delta);
  if (status != GRAFT_OK) return status;
  enum { DELTA = 4 };
  const graft_tensor_desc *places[BACKWARD_PLACES] = {
      args->grad_query, args->grad_key,  args->grad_value,  args->grad_attn_bias, NULL,
      args->grad_out,   args->query,     args->key,         args->value,          args->attn_bias,
      args->out,        args->logsumexp, args->philox_seed, args->philox_offset};
  for (int s = 0; s < OCL_DIRECT_STAGES; s++) {
    for (int i = 0; i < BACKWARD_PLACES; i++) call->stages[s].places[i] = i == DELTA ? delta : ocl_place_of(places[i]);
  }
  return GRAFT_OK;
}

graft_status ocl_op_scaled_dot_product_fused_attention_overrideable_backward(const graft_exec *exec,
                                                                             const backward_args *args) {
  attention a;
  ocl_direct call;
  if (!read_backward(exec, args, false, &a, &call)) return GRAFT_UNIMPLEMENTED;
  const graft_status status = place_backward(exec, args, &a, &call);
  return status == GRAFT_OK ? ocl_direct_run(exec, &call) : status;
}

graft_status ocl_attention_make_placed(const graft_exec *exec, const backward_args *args, ocl_direct_kernels **made) {
  attention a;
  ocl_direct call;
  if (!read_backward(exec, args, true, &a, &call)) return GRAFT_UNIMPLEMENTED;
  return ocl_direct_make(exec->device, &call, made);
}

graft_status ocl_attention_run_placed(const graft_exec *exec, const backward_args *args, ocl_direct_kernels *made) {
  attention a;
  ocl_direct call;
  if (!read_backward(exec, args, true, &a, &call)) return GRAFT_UNIMPLEMENTED;
  const graft_status status = place_backward(exec, args, &a, &call);
  return status == GRAFT_OK ? ocl_direct_run_made(exec, &call, made) : status;
}

#define LAYOUTS (GRAFT_CAP_UNALIGNED | GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_EMPTY)

static const ocl_op ops[] = {
    {OCL_OP(scaled_dot_product_fused_attention_overrideable), .inputs = OCL_FLOATS,
     .outputs = OCL_FLOATS | OCL_BIT(I64), .flags = LAYOUTS},
    {OCL_OP(scaled_dot_product_fused_attention_overrideable_backward), .inputs = OCL_FLOATS,
     .outputs = OCL_FLOATS | OCL_BIT(I64), .flags = LAYOUTS},
};
OCL_FAMILY(attention, ops)
